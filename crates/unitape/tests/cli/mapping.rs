//! `unitape mapping`: a shipped mapping is a file that can be copied and changed, and `check` says of every message of
//! a sample what becomes of it and why.

use crate::common::{self, assert_closes, file, root, run};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Shipped mappings and files for them.
fn samples(dir: &Path) -> Vec<(&'static str, PathBuf)> {
    let vectors = root().join("vectors");
    let out = dir.join("day");
    let args = "generate market --events 3000 --instruments 40 --minutes 120 --format fixed --out";
    run(args.split(' ').map(OsStr::new).chain([out.as_os_str()])).code(0);
    let records = std::fs::read_to_string(out.join("market.fixed")).unwrap();
    let few: String = records.split_inclusive('\n').take(400).collect();
    vec![
        ("jse-fix50-indices", vectors.join("fix/jse/jse_fix50_marketdata_head80.fix")),
        ("fix44-orders", file(dir, "orders.fix", common::flow(3, 400, true).0)),
        ("swift-mt", vectors.join("swift/prowide/unit_test_messages.rje")),
        ("nyse-taq-bbo-98", vectors.join("fixed/taq/nyse_taq_bbo_20140206.txt")),
        ("sim-day", file(dir, "few.fixed", few)),
        ("nasdaq-itch50", vectors.join("itch/20200130.itch50")),
        ("nasdaq-itch50-stateless", vectors.join("itch/20200130.itch50")),
        ("iex", vectors.join("iex/deep_plus.pcap")),
        ("iso20022", vectors.join("iso20022/moov/statement_1.xml")),
        ("nyse-taq-trades", vectors.join("csv/EQY_US_ALL_TRADE_20161024.txt")),
        ("nyse-taq-quotes", vectors.join("csv/SPLITS_US_ALL_BBO_A_20161024.txt")),
        ("nyse-taq-nbbo", vectors.join("csv/EQY_US_ALL_NBBO_20161024.txt")),
        ("nyse-taq-master", vectors.join("csv/EQY_US_ALL_REF_MASTER_20161024.txt")),
    ]
}

/// `mapping check` with these arguments, as JSON.
fn check(mapping: &str, sample: &Path, code: Option<i32>) -> Vec<Value> {
    let args = ["mapping", "check", mapping, "--json"].map(OsStr::new);
    let ran = run(args.into_iter().chain([sample.as_os_str()]));
    if let Some(code) = code { ran.code(code).lines() } else { ran.lines() }
}

/// The events of a file by a mapping.
fn events(dir: &Path, format: &str, mapping: &str, sample: &Path) -> Vec<Value> {
    let tape = tempfile::tempdir_in(dir).unwrap();
    let feed = format!("f={format}:{mapping}:{}", sample.display());
    let args = ["consolidate", "--feed", &feed, "--tape"].map(OsStr::new);
    let ran = run(args.into_iter().chain([tape.path().as_os_str()]));
    assert!(matches!(ran.code, Some(0 | 3)), "{mapping}: {}", ran.stderr);
    common::cat(tape.path(), &[])
}

/// A mapping that works only under the name and from the place it is shipped with is no file to begin one's own with.
#[test]
fn a_copy_of_a_shipped_mapping_under_another_name_makes_the_same_events() {
    let dir = tempfile::tempdir().unwrap();
    let samples = samples(dir.path());
    let listed = run(["mapping", "list"]).code(0);
    for line in listed.text().lines() {
        let mut words = line.split_whitespace();
        let (name, format) = (words.next().unwrap(), words.next().unwrap());
        let text = run(["mapping", "show", name]).code(0).text().to_owned();
        let mut copy = text.replace(&format!("name = \"{name}\""), "name = \"mine\"");
        assert_ne!(copy, text, "{name} has another name within");
        let layout =
            text.lines().find_map(|l| l.strip_prefix("layout = \"")).and_then(|l| l.split('"').next());
        if let Some(layout) = layout {
            let layout_text = run(["mapping", "show", name, "--layout"]).code(0).text().to_owned();
            file(dir.path(), "my-layout.toml", &layout_text);
            copy = copy.replace(&format!("layout = \"{layout}\""), "layout = \"my-layout.toml\"");
        }
        let copy = file(dir.path(), "mine.toml", copy).display().to_string();
        run(["mapping", "check", &copy]).code(0);
        let Some((_, sample)) = samples.iter().find(|(n, _)| *n == name) else { continue };
        let (shipped, mine) =
            (events(dir.path(), format, name, sample), events(dir.path(), format, &copy, sample));
        assert!(!shipped.is_empty(), "{name}: nothing came of the sample");
        assert_eq!(shipped, mine, "{name}");
    }
    run(["mapping", "show", "nope"]).code(2).says(&["no shipped mapping `nope`", "fix44-orders"]);
    run(["mapping", "show", "swift-mt", "--layout"]).code(2).says(&["names neither layout nor templates"]);
}

/// An explanation that differs from the mapper's actions would mislead people. For every sample, it has as many
/// events and refusals as the account. A message is refused exactly when something in it is marked so.
#[test]
fn explanations_and_the_account_agree() {
    let dir = tempfile::tempdir().unwrap();
    for (name, sample) in samples(dir.path()) {
        let mut lines = check(name, &sample, None);
        let account = lines.pop().unwrap();
        assert_closes(&account);
        let is = |m: &&Value, outcome: &str| m["outcome"] == outcome;
        let refused = lines.iter().filter(|m| is(m, "quarantined")).count();
        assert_eq!(account["quarantined"], refused, "{name}");
        let list = |m: &Value, key: &str| m[key].as_array().cloned().unwrap_or_default();
        let made: Vec<Value> =
            lines.iter().filter(|m| is(m, "events")).flat_map(|m| list(m, "events")).collect();
        assert!(made.iter().all(|e| e["becomes"].is_object()), "{name}: an event without its line");
        // A duplicate is one on the tape only.
        let duplicates = account["duplicates"].as_u64().unwrap();
        let events = account["events"].as_u64().unwrap();
        assert!(made.len() as u64 == events || duplicates > 0, "{name}: {} and {events}", made.len());
        for m in &lines {
            let fields = list(m, "events").iter().flat_map(|e| list(e, "fields")).collect::<Vec<_>>();
            let marked = fields.iter().any(|f| !f["refused"].is_null()) || !m["time"]["refused"].is_null();
            if marked {
                assert_eq!(m["outcome"], "quarantined", "{name}: {m}");
            }
            let rule = &m["rule"]["number"];
            if rule.is_number() && m["outcome"] == "quarantined" {
                let elsewhere =
                    ["no_event", "group_count"].contains(&m["quarantined"]["reason"].as_str().unwrap());
                assert!(marked || elsewhere, "{name}: {m}");
            }
        }
        if let Some(rules) = account["rules"].as_array().filter(|r| !r.is_empty()) {
            let decided: u64 = rules.iter().map(|r| r["messages"].as_u64().unwrap()).sum();
            let with_rule = lines.iter().filter(|m| m["rule"].is_object()).count() as u64;
            assert_eq!(decided, with_rule, "{name}");
        }
    }
}

fn example(name: &str) -> PathBuf {
    root().join("examples/feeds").join(name)
}

fn line_of(text: &str, what: &str) -> usize {
    1 + text.lines().position(|l| l.contains(what)).unwrap_or_else(|| panic!("no {what}"))
}

/// The rule, why not the ones before it, and where each value came from: a look at tape and mapping side by side does
/// not show these.
#[test]
fn a_message_is_explained() {
    let mapping = example("harbour.toml");
    let text = std::fs::read_to_string(&mapping).unwrap();
    let lines = check(mapping.to_str().unwrap(), &example("harbour.log"), Some(0));
    assert_eq!(lines.len(), 9, "eight messages and the account");
    let amend = &lines[3];
    assert_eq!((&amend["n"], &amend["type"], &amend["outcome"]), (&3.into(), &"8".into(), &"events".into()));
    assert_eq!(amend["rule"]["number"], 2);
    let over = &amend["passed_over"][0];
    assert_eq!((&over["rule"]["number"], &over["failed"]["path"]), (&1.into(), &"150".into()));
    assert_eq!((&over["failed"]["wanted"], &over["failed"]["value"]), (&"0".into(), &"5".into()));
    assert_eq!(over["failed"]["line"], line_of(&text, r#"when = { "35" = "8", "150" = "0" }"#));
    let event = &amend["events"][0];
    assert_eq!(event["kind"], "order_amend");
    let fields = event["fields"].as_array().unwrap();
    let field = |name: &str| fields.iter().find(|f| f["field"] == name).unwrap();
    let side = field("side");
    assert_eq!((&side["from"], &side["source"], &side["table"]), (&"54".into(), &"1".into(), &"side".into()));
    assert_eq!((&field("venue")["from"], &field("venue")["source"]), (&"const".into(), &"XHRB".into()));
    assert_eq!((&event["becomes"]["side"], &event["becomes"]["qty"]), (&"B".into(), &"12".into()));
    assert_eq!(lines[2]["events"][0]["kept"][0]["name"], "58");
    assert_eq!(lines[2]["events"][0]["kept"][0]["why"], "unlisted");
    assert_eq!(lines[0]["outcome"], "ignored");
    let few = run([
        "mapping".as_ref(),
        "check".as_ref(),
        mapping.as_os_str(),
        example("harbour.log").as_os_str(),
        "--json".as_ref(),
        "--messages".as_ref(),
        "2".as_ref(),
    ]);
    assert_eq!(few.code(0).lines().len(), 3, "two messages and the account");
}

/// The mapper stops at the first value it refuses; who mends a mapping wants to see all of them.
#[test]
fn all_that_is_wrong_with_a_message_is_told_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(example("harbour.toml")).unwrap();
    let broken = text.replacen("px = \"44\"", "px = \"20001\"", 1).replacen("\"1\" = \"B\"\n", "", 1);
    let mapping = file(dir.path(), "broken.toml", &broken);
    let lines = check(mapping.to_str().unwrap(), &example("harbour.log"), Some(3));
    let order = &lines[2];
    assert_eq!(order["quarantined"]["reason"], "unknown_value");
    let fields = order["events"][0]["fields"].as_array().unwrap();
    let refused: Vec<_> = fields.iter().filter(|f| !f["refused"].is_null()).collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert_eq!((&refused[0]["field"], &refused[1]["field"]), (&"side".into(), &"px".into()));
    assert_eq!(refused[1]["line"], line_of(&broken, "px = \"20001\""));
    assert_eq!(refused[1]["source"], "T17");
    let words = run([
        OsStr::new("mapping"),
        "check".as_ref(),
        mapping.as_os_str(),
        example("harbour.log").as_os_str(),
    ]);
    let words = words.code(3).text().to_owned();
    let said = format!("✗ line {}: not a decimal number", line_of(&broken, "px = \"20001\""));
    assert!(words.contains(&said), "{words}");
}

// `mapping check` said of a guessed name that it was kept as it came, and the event had the letters of the guess.
#[test]
fn guessed_text_is_explained_as_a_guess() {
    let dir = tempfile::tempdir().unwrap();
    let payment = b"{1:F01AAAABEBBAXXX0000000000}{2:O1030915260302BBBBDEFFAXXX00000000002603020930N}{4:\n:20:R\n:23B:CRED\n\
        :32A:260302EUR10,\n:50K:/DE1\nJ\xfcrgen\n:59:/GB2\nPAID\n-}";
    let sample = file(dir.path(), "letters.fin", payment);
    let message = &check("swift-mt", &sample, Some(0))[0];
    let fields = message["events"][0]["fields"].as_array().unwrap();
    let payer = fields.iter().find(|field| field["field"] == "dr_name").unwrap();
    assert_eq!(payer["note"], "not UTF-8: read as windows-1252, which is a guess");
    assert!(payer["refused"].is_null(), "{payer}");
    assert_eq!(message["events"][0]["becomes"]["dr_name"], "J\u{fc}rgen");
}

// Who has another form in the file was sent to a page, and had to find which of forty it is.
#[test]
fn a_form_that_reads_the_value_is_suggested() {
    let dir = tempfile::tempdir().unwrap();
    let layout = r#"
        name = "l"
        zone = "UTC"
        column = [
          { name = "time", type = "timestamp", form = "YYYY-MM-DD HH:MM:SS", required = true },
          { name = "day", type = "date", form = "YYYY-MM-DD" },
          { name = "px", type = "decimal", required = true },
        ]
    "#;
    file(dir.path(), "l.toml", layout);
    let rules = "unlisted = \"drop\"\n[[rule]]\n[[rule.event]]\nkind = \"trade\"\n[rule.event.fields]\ninstr = { const = \"X\" }\npx = \"px\"\nqty = { const = \"1\" }\n";
    let rows =
        format!("name = \"m\"\nformat = \"csv\"\nlayout = \"l.toml\"\n[message]\nts = \"time\"\n{rules}");
    let texts = format!("name = \"t\"\nformat = \"jsonl\"\n[message]\nts = \"time\"\n{rules}");
    let (rows, texts) = (file(dir.path(), "m.toml", rows), file(dir.path(), "t.toml", texts));
    let good = "2026-03-02 09:30:00";
    for (time, day, px, wanted) in [
        (
            "02.03.2026 09:30:00.125",
            "",
            "1",
            "try `form = \"DD.MM.YYYY HH:MM:SS.fff\"`, which reads 2026-03-02T09:30:00.125",
        ),
        ("1772461800000", "", "1", "try `form = \"@ms\"`, which reads 2026-03-02T14:30:00Z"),
        (
            "3/2/2026 9:30 PM",
            "",
            "1",
            "`form = \"M/D/YYYY H:MM AM\"`, which reads 2026-03-02T21:30:00, or `form = \"D/M/YYYY H:MM AM\"`",
        ),
        (good, "14.03.26", "1", "try `form = \"DD.MM.YY\", pivot = 1970`, which reads 2026-03-14"),
        (good, "", "1.234,56", "try `point = \",\", thousands = \".\"`, which reads 1234.56"),
        (good, "", "(12.00)", "try `negative = [\"parentheses\"]`, which reads -12.00"),
        (good, "", "$12.50", "`$` is no part of a number"),
    ] {
        let sample = file(dir.path(), "sample.csv", format!("time,day,px\n{time},{day},\"{px}\"\n"));
        let args = ["mapping", "check", rows.to_str().unwrap(), sample.to_str().unwrap()];
        let ran = run(args).code(3);
        assert!(ran.text().contains(wanted), "{wanted}: {}", ran.text());
        let lines = check(rows.to_str().unwrap(), &sample, Some(3));
        let suggestion = lines.iter().find_map(|line| line["quarantined"]["suggestion"].as_str());
        assert!(suggestion.is_some_and(|text| text.contains(wanted)), "{wanted}: {lines:?}");
    }
    for (time, wanted) in [
        ("1772461800000", "try `@ms` behind the path, which reads 2026-03-02T14:30:00Z"),
        ("\"02.03.2026 09:30\"", "try `@DD.MM.YYYY HH:MM` behind the path, which reads 2026-03-02T09:30:00"),
    ] {
        let sample = file(dir.path(), "sample.jsonl", format!("{{\"time\":{time},\"px\":\"1\"}}\n"));
        let ran = run(["mapping", "check", texts.to_str().unwrap(), sample.to_str().unwrap()]).code(3);
        assert!(ran.text().contains(wanted), "{wanted}: {}", ran.text());
    }
    // Without a form that reads it nothing is suggested.
    let sample = file(dir.path(), "sample.csv", "time,day,px\nyesterday,,1\n");
    let ran = run(["mapping", "check", rows.to_str().unwrap(), sample.to_str().unwrap()]).code(3);
    assert!(!ran.text().contains("try "), "{}", ran.text());
}

/// A sample is read twice, and stdin can be read once.
#[test]
fn a_sample_may_come_on_stdin() {
    let sample = std::fs::read(example("harbour.log")).unwrap();
    let mapping = example("harbour.toml").display().to_string();
    let ran = common::run_with_stdin(["mapping", "check", &mapping, "-", "--json"], &sample);
    assert_eq!(ran.code(0).lines().len(), 9);
}

/// A mistake has its file and line, also one that the reader of TOML finds.
#[test]
fn mistakes_have_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(example("harbour.toml")).unwrap();
    for (right, wrong) in [
        ("qty = \"38\"", "qty = \"3B\""),
        ("table = \"phase\"", "table = \"phases\""),
        ("kind = \"exec\"", "kind = \"exce\""),
        ("ts = \"52\"", "ts = 52"),
        ("[table.side]", "[table.side"),
        ("sequence = \"34\"", "sequense = \"34\""),
    ] {
        let broken = text.replacen(right, wrong, 1);
        let path = file(dir.path(), "broken.toml", &broken);
        let place = format!("broken.toml:{}: ", line_of(&broken, wrong));
        run([OsStr::new("mapping"), "check".as_ref(), path.as_os_str()]).code(1).says(&[&place]);
    }
}

/// "0 rules" was all that was said of a handler's configuration, and reference data of another pair were never used.
#[test]
fn a_handlers_configuration_tells_what_it_holds() {
    let path = root().join("examples/feeds/box.toml");
    let check = |path: &Path, more: &[&str]| {
        let args = ["mapping", "check"].map(OsStr::new).into_iter().chain([path.as_os_str()]);
        run(args.chain(more.iter().map(OsStr::new)))
    };
    let ran = check(&path, &[]).code(0);
    let said = ran.text();
    for part in
        ["packets of 3 channels of XBOX, messages numbered by product", "line A: 2, line B: 2", "1 beacon"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let summary = &check(&path, &["--json"]).code(0).lines()[0]["fast"];
    assert_eq!((&summary["venue"], &summary["numbered_by"]), (&"XBOX".into(), &"product".into()));
    assert_eq!(summary["channels"][2]["role"], "reference");
    assert!(check(Path::new("t7-emdi"), &[]).code(0).text().contains("no channels yet"));

    let dir = tempfile::tempdir().unwrap();
    let vectors = root().join("vectors/fast/box").display().to_string();
    let text = std::fs::read_to_string(&path).unwrap().replace("../../vectors/fast/box", &vectors);
    let of = |role: &str| format!("role = \"{role}\"\n");
    let other = text.replace(&of("reference"), &format!("{}pair = \"fx\"\n", of("reference")));
    let line = other.lines().position(|line| line.starts_with("pair")).unwrap() + 1;
    let path = file(dir.path(), "pair.toml", other);
    check(&path, &[]).code(1).says(&[&format!("pair.toml:{line}"), "pair `fx`", "no incremental channel"]);
    // Reference data alone are for nobody, and a configuration all the same.
    let from = text.find("[[fast.channel]]").unwrap();
    let to = text.rfind("[[fast.channel]]").unwrap();
    let alone = file(dir.path(), "alone.toml", format!("{}{}", &text[..from], &text[to..]));
    check(&alone, &[]).code(0);
}
