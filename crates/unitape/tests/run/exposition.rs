//! `/metrics` as a scraper reads it: the text format 0.0.4 of Prometheus, and the rules of `promtool check metrics`.
//!
//! A page with a sample before its TYPE, or with a series twice, is refused as a whole, and an operator sees nothing.

use crate::common::root;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

/// Fails if a page breaks a rule. If this machine has promtool, it is asked as well.
#[track_caller]
pub fn assert_is_accepted(page: &str) {
    assert_eq!(problems(page), Vec::<String>::new(), "{page}");
    if let Some((accepted, words)) = ask_promtool(&["check", "metrics"], page) {
        assert!(accepted && words.is_empty(), "{words}\n{page}");
    }
}

/// Returns whether promtool accepts its stdin, and what it prints; none without promtool.
fn ask_promtool(args: &[&str], input: &str) -> Option<(bool, String)> {
    let mut command = Command::new("promtool");
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("without promtool: {error}");
            return None;
        }
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let words = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&words).into_owned()))
}

/// The help, the type and the samples of a name.
#[derive(Default)]
struct Family {
    help: Option<String>,
    kind: Option<String>,
    samples: usize,
}

/// Returns each broken rule of the text format and of promtool.
fn problems(page: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut families: BTreeMap<&str, Family> = BTreeMap::new();
    let mut series = BTreeSet::new();
    let mut current = "";
    if !page.ends_with('\n') {
        problems.push("the last line has no end".to_owned());
    }
    for line in page.lines() {
        let mut problem = |text: &str| problems.push(format!("{line}: {text}"));
        let comment = line.strip_prefix("# ").and_then(|comment| comment.split_once(' '));
        let name = match comment {
            Some(("HELP" | "TYPE", rest)) => rest.split(' ').next().unwrap_or_default(),
            _ => line.split(['{', ' ']).next().unwrap_or_default(),
        };
        let is_new = !families.contains_key(name);
        if name != current && !is_new {
            problem("the lines of a name are apart");
        }
        current = name;
        let family = families.entry(name).or_default();
        match comment {
            Some(("HELP", rest)) => {
                if family.help.replace(rest[name.len()..].trim().to_owned()).is_some() {
                    problem("a second HELP");
                }
            }
            Some(("TYPE", rest)) => {
                if family.kind.replace(rest[name.len()..].trim().to_owned()).is_some() {
                    problem("a second TYPE");
                }
                if family.samples > 0 {
                    problem("TYPE after a sample");
                }
            }
            _ => {
                family.samples += 1;
                if family.kind.is_none() {
                    problem("a sample without TYPE");
                }
                match sample(line) {
                    Some(name) if !series.insert(name) => problem("a series twice"),
                    Some(_) => {}
                    None => problem("no sample"),
                }
            }
        }
    }
    for (name, family) in &families {
        let kind = family.kind.as_deref().unwrap_or_default();
        let words: Vec<&str> = name.split('_').collect();
        let mut rule = |holds: bool, text: &str| {
            if !holds {
                problems.push(format!("{name}: {text}"));
            }
        };
        rule(family.help.as_ref().is_some_and(|help| !help.is_empty()), "no help");
        rule(matches!(kind, "counter" | "gauge"), "a type that unitape does not have");
        rule(name.ends_with("_total") == (kind == "counter"), "counters, and only counters, end with _total");
        rule(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "only small letters and _");
        let is_reserved = ["bucket", "count", "sum"].contains(words.last().unwrap_or(&""));
        rule(!is_reserved, "a suffix of histograms and summaries");
        for word in words {
            rule(!UNITS_NOT_BASE.contains(&word), "a unit that is no base unit");
            rule(!["gauge", "counter", "summary", "histogram"].contains(&word), "a type in the name");
        }
    }
    problems
}

/// Returns the name and the labels of a sample whose value is a number.
fn sample(line: &str) -> Option<&str> {
    let (series, value) = line.rsplit_once(' ')?;
    value.parse::<f64>().ok()?;
    let Some((_, labels)) = series.split_once('{') else { return Some(series) };
    let (label, mut text) = labels.strip_suffix("\"}")?.split_once("=\"")?;
    if !label.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') {
        return None;
    }
    while let Some((before, after)) = text.split_once('\\') {
        let is_escape = after.starts_with(['\\', '"', 'n']);
        if before.contains('"') || !is_escape {
            return None;
        }
        text = &after[1..];
    }
    (!text.contains('"')).then_some(series)
}

/// Units that promtool wants as seconds, bytes, meters, ratios and so on, and abbreviations of units.
const UNITS_NOT_BASE: [&str; 36] = [
    "nanoseconds",
    "microseconds",
    "milliseconds",
    "minutes",
    "hours",
    "days",
    "weeks",
    "kilobytes",
    "megabytes",
    "gigabytes",
    "terabytes",
    "kibibytes",
    "mebibytes",
    "gibibytes",
    "bits",
    "percent",
    "celsius",
    "kelvins",
    "kilometers",
    "s",
    "sec",
    "ms",
    "us",
    "ns",
    "m",
    "min",
    "h",
    "d",
    "b",
    "kb",
    "mb",
    "gb",
    "tb",
    "kib",
    "mib",
    "gib",
];

/// A rule that never finds anything protects nothing.
#[test]
fn each_broken_rule_is_found() {
    let good = "# HELP a_total A.\n# TYPE a_total counter\na_total{feed=\"x\\\"y\\\\\"} 1\na_total{feed=\"z\"} 2.5\n";
    assert_is_accepted(good);
    for (from, to, rule) in [
        ("# HELP a_total A.\n", "", "no help"),
        (" A.\n", "\n", "no help"),
        ("# TYPE a_total counter\n", "", "without TYPE"),
        ("counter", "gauge", "_total"),
        ("\"z\"", "\"x\\\"y\\\\\"", "a series twice"),
        ("2.5", "two", "no sample"),
        ("\"z\"", "\"z\"\"", "no sample"),
        ("\"z\"", "\"\\z\"", "no sample"),
        ("a_total{feed=\"z\"}", "b 1\na_total{feed=\"z\"}", "apart"),
        ("# TYPE", "# HELP a_total B.\n# TYPE", "a second HELP"),
        ("2.5\n", "2.5\n# TYPE a_total counter\n", "a second TYPE"),
        ("2.5\n", "2.5", "no end"),
        ("a_total", "a_ms_total", "base unit"),
        ("a_total", "a_counter_total", "a type in the name"),
        ("a_total", "a_count", "suffix"),
        ("a_total", "aB_total", "small letters"),
    ] {
        let bad = good.replace(from, to);
        let broken = problems(&bad);
        assert!(broken.iter().any(|problem| problem.contains(rule)), "{rule}: {broken:?} in\n{bad}");
    }
}

#[test]
fn the_alert_rules_are_accepted() {
    let rules = std::fs::read_to_string(root().join("deploy/alerts.yml")).unwrap();
    let file = root().join("deploy/alerts.yml");
    assert_eq!(rules.matches("- alert: ").count(), rules.matches("summary: ").count());
    if let Some((accepted, words)) = ask_promtool(&["check", "rules", file.to_str().unwrap()], "") {
        assert!(accepted, "{words}");
    }
}
