//! No test vanishes without a word: the numbers of each package are compared with the last record.
//!
//! ```text
//! cargo nextest list ──▶ tests         ─┐
//! sources as text    ──▶ cases, rounds ─┴─▶ each at least as in xtask/checks.txt, or an error names the package
//! ```
//!
//! `docs/testing.md` lists what the scan of the sources sees. The step `test` compares the numbers of the whole
//! workspace, on Linux alone: other systems leave out tests.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cargo::{Metadata, root};
use crate::tidy::files;
use crate::{XtaskFailure, tools};

const RECORD: &str = "xtask/checks.txt";
const HEADER: &str = "\
# The least numbers of tests, property cases and rounds; `cargo xtask checks --record` writes this file.
# package               tests    cases   rounds
";
/// Cases of a property test whose block has no config.
const CASES_WITHOUT_CONFIG: u64 = 256;

/// Tests that nextest or pytest runs; cases of property tests and inputs of fuzz targets; rounds, seeds and tries where
/// no variable asks for others.
const UNITS: [&str; 3] = ["tests", "property cases", "rounds"];

/// The number of each unit by the name of the package.
type PackageCounts = BTreeMap<String, [u64; 3]>;

/// `cargo xtask checks`: builds the tests, then compares their numbers with the record, or writes the record.
pub(crate) fn run(args: &[String]) -> Result<u8, XtaskFailure> {
    let is_record = match args {
        [] => false,
        [arg] if arg == "--record" => true,
        _ => return Err(XtaskFailure::Usage("checks takes --record alone; see cargo xtask help".to_owned())),
    };
    tools::c_compiler()?;
    let nextest = tools::install(&tools::CARGO_NEXTEST, &Metadata::load()?.target_dir()?)?;
    let locked = tools::fetch();
    if is_record {
        let text = write_record(&count(&nextest, locked)?);
        std::fs::write(root().join(RECORD), &text).map_err(|e| format!("{RECORD}: {e}"))?;
        print!("{text}");
    } else {
        check(&nextest, locked)?;
        println!("checks: no number is below {RECORD}");
    }
    Ok(0)
}

/// Compares the numbers of the whole workspace with the record. An error names each number that fell.
pub(crate) fn check(nextest: &Path, locked: &str) -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        eprintln!("the numbers of tests are not compared: the record is one of Linux");
        return Ok(());
    }
    let text = std::fs::read_to_string(root().join(RECORD)).map_err(|e| format!("{RECORD}: {e}"))?;
    let problems = compare(&read_record(&text)?, &count(nextest, locked)?);
    match problems.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "{}. Put back what is lost; if it is meant, run `cargo xtask checks --record` and commit {RECORD}",
            problems.join("; ")
        )),
    }
}

fn read_record(text: &str) -> Result<PackageCounts, String> {
    let mut record = PackageCounts::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let mut fields = line.split_whitespace();
        let name = fields.next().unwrap_or_default();
        let numbers: Result<Vec<u64>, _> = fields.map(str::parse).collect();
        let Some(counts) = numbers.ok().and_then(|numbers| numbers.try_into().ok()) else {
            return Err(format!("{RECORD}:{}: a line is a package and three numbers", index + 1));
        };
        if record.insert(name.to_owned(), counts).is_some() {
            return Err(format!("{RECORD}:{}: a second line of {name}", index + 1));
        }
    }
    Ok(record)
}

fn write_record(counts: &PackageCounts) -> String {
    let line = |(name, [tests, cases, rounds]): (&String, &[u64; 3])| {
        format!("{name:21} {tests:>7} {cases:>8} {rounds:>8}\n")
    };
    std::iter::once(HEADER.to_owned()).chain(counts.iter().map(line)).collect()
}

/// The numbers that are lower than in the record, and the packages that the record does not have.
fn compare(record: &PackageCounts, counts: &PackageCounts) -> Vec<String> {
    let mut problems = Vec::new();
    for name in counts.keys().filter(|name| !record.contains_key(*name)) {
        problems.push(format!("{name} has tests and is not in the record"));
    }
    for (name, recorded) in record {
        let current = counts.get(name).copied().unwrap_or_default();
        for (index, unit) in UNITS.iter().enumerate().filter(|(index, _)| current[*index] < recorded[*index])
        {
            problems
                .push(format!("{name} has {} {unit}, the record has {}", current[index], recorded[index]));
        }
    }
    problems
}

/// The numbers of all packages that have tests.
fn count(nextest: &Path, locked: &str) -> Result<PackageCounts, String> {
    let mut counts = PackageCounts::new();
    let mut command = Command::new(nextest);
    command.args(["nextest", "list", "--workspace", "--message-format", "oneline", "--color", "never"]);
    command.arg(locked).current_dir(root()).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|e| format!("cargo nextest list: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo nextest list: {}", output.status));
    }
    // `unitape-tape::kill a_writer_that_is_killed`
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let package = line.split([' ', ':']).next().unwrap_or_default();
        counts.entry(package.to_owned()).or_default()[0] += 1;
    }
    let packages = Metadata::load()?.packages();
    for file in files::list(&root())? {
        // The tests of this scan hold examples of what it sees.
        let package = packages.iter().find(|package| package.holds(&file.path) && package.folder != "xtask");
        let Some((package, text)) = package.zip(file.text()) else { continue };
        let scanned = match file.extension() {
            "rs" => scan(text),
            "py" => [text.lines().filter(|line| line.starts_with("def test_")).count() as u64, 0, 0],
            _ => continue,
        };
        if scanned != [0; 3] {
            let counts = counts.entry(package.name.clone()).or_default();
            counts.iter_mut().zip(scanned).for_each(|(count, scanned)| *count += scanned);
        }
    }
    Ok(counts)
}

/// A block of property tests, or the table of the fuzz targets.
struct PropertyBlock<'t> {
    indent: &'t str,
    tests: u64,
    cases_each: u64,
}

/// The cases and rounds of a source, line by line.
fn scan(text: &str) -> [u64; 3] {
    let (mut cases, mut rounds) = (0, 0);
    let mut block: Option<PropertyBlock<'_>> = None;
    for line in text.lines() {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        if code.starts_with("//") {
            continue;
        }
        if code == "proptest! {" || code == "targets! {" {
            block = Some(PropertyBlock { indent, tests: 0, cases_each: CASES_WITHOUT_CONFIG });
        } else if let Some(ended) = block.take_if(|block| code == "}" && block.indent == indent) {
            cases += ended.tests * ended.cases_each;
        }
        let configs = ["with_cases(", "ProptestConfig { cases: "];
        let config = configs.iter().find_map(|config| number(text, code.split_once(config)?.1));
        match (&mut block, config) {
            (Some(block), Some(number)) => block.cases_each = number,
            (None, Some(number)) => cases += number,
            (Some(block), None) if code.starts_with("#[test]") => block.tests += 1,
            (Some(_), None) => cases += target_inputs(code).unwrap_or(0),
            (None, None) => {}
        }
        let arguments = code.strip_prefix("hold(").unwrap_or_default();
        cases += arguments.split(", ").find_map(leading_number).unwrap_or(0);
        rounds += rounds_of(text, code);
    }
    [0, cases, rounds]
}

/// The inputs in a line of the table of fuzz targets: `book_events 20_000`.
fn target_inputs(code: &str) -> Option<u64> {
    let (_, inputs) = code.split_once(' ')?;
    inputs.replace('_', "").parse().ok()
}

/// The defaults of the variables in a line: `number("UNITAPE_KILL_ROUNDS", 200)`.
fn rounds_of(text: &str, code: &str) -> u64 {
    let default = |rest: &str| {
        let (variable, rest) = rest.split_once('"')?;
        let is_counted = ["ROUNDS", "SEEDS", "TRIES"].iter().any(|end| variable.ends_with(end));
        let starts = [", ", ").map_or(", ").unwrap_or("];
        number(text, starts.iter().find_map(|start| rest.strip_prefix(start))?).filter(|_| is_counted)
    };
    code.split("(\"UNITAPE_").skip(1).filter_map(default).sum()
}

/// The number with which an expression begins: a literal, or a constant of the same file.
fn number(text: &str, expression: &str) -> Option<u64> {
    leading_number(expression).or_else(|| {
        let name = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
        let (_, declaration) = text.split_once(&format!("const {name}: "))?;
        leading_number(declaration.split_once("= ")?.1)
    })
}

fn leading_number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    text[..end].replace('_', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(record: &str, counts: &str) -> Vec<String> {
        compare(&read_record(record).unwrap(), &read_record(counts).unwrap())
    }

    /// Tests once moved between runs, and nobody could say whether all of them arrived.
    #[test]
    fn a_fall_names_the_package_and_both_numbers_and_a_rise_is_none() {
        assert_eq!(
            compared("a 5 256 0\nb 3 0 200", "a 4 256 0\nb 3 0 20"),
            ["a has 4 tests, the record has 5", "b has 20 rounds, the record has 200",]
        );
        assert_eq!(compared("a 5 256 0", "a 5 8 0"), ["a has 8 property cases, the record has 256"]);

        assert_eq!(compared("a 5 256 0", "a 6 300 10"), [""; 0]);
    }

    /// A package without a line would lose its tests unseen, and one that is gone has lost them all.
    #[test]
    fn a_package_that_is_missing_on_either_side_is_told() {
        assert_eq!(compared("", "a 5 0 0"), ["a has tests and is not in the record"]);
        assert_eq!(compared("a 5 0 0", ""), ["a has 0 tests, the record has 5"]);
    }

    #[test]
    fn a_damaged_record_is_told_with_its_line() {
        for (line, message) in [
            ("b 1 2", "three numbers"),
            ("b 1 2 3 4", "three numbers"),
            ("b 1 -2 3", "three numbers"),
            ("b 1 x 3", "three numbers"),
            ("<<<<<<< HEAD", "three numbers"),
            ("", "three numbers"),
            ("a 1 2 3", "a second line of a"),
        ] {
            let error = read_record(&format!("# package\na 1 2 3\n{line}\n")).unwrap_err();
            assert!(error.starts_with("xtask/checks.txt:3: ") && error.contains(message), "{line}: {error}");
        }
        let text = std::fs::read_to_string(root().join(RECORD)).unwrap();
        assert_eq!(write_record(&read_record(&text).unwrap()), text, "the record of the tree");
    }

    #[test]
    fn cases_are_those_of_blocks_and_helpers() {
        let cases = |text: &str| scan(text)[1];
        let two = "    #[test]\n    fn a(x in 0..9) {\n    }\n    #[test]\n    fn b(x in 0..9) {\n    }\n}\n";
        assert_eq!(cases(&format!("proptest! {{\n{two}")), 512);
        for config in [
            "ProptestConfig::with_cases(2_000)",
            "ProptestConfig { cases: 2000, ..d() }",
            "P::with_cases(MANY)",
        ] {
            let text =
                format!("const MANY: u32 = 2_000;\nproptest! {{\n    #![proptest_config({config})]\n{two}");
            assert_eq!(cases(&text), 4_000, "{config}");
        }
        assert_eq!(cases("hold(DEF.id, PARAMS, 4_000, 60, op);\nself.hold(7);\nfn hold(a: u8) {"), 4_000);
        assert_eq!(cases("let runner = TestRunner::new(ProptestConfig::with_cases(600));"), 600);
        assert_eq!(cases("targets! {\n    book_events 20_000\n    csv_rows 5000\n}\n"), 25_000);
        assert_eq!(cases("// with_cases(600)\n#[test]\nfn a() {}\n"), 0);
    }

    #[test]
    fn rounds_are_the_defaults_of_their_variables() {
        let text = r#"const SEEDS: u64 = 60;
            let (rounds, seed) = (number("UNITAPE_KILL_ROUNDS", 200) / 5, number("UNITAPE_SEED", 1));
            std::env::var("UNITAPE_AGAIN_ROUNDS").map_or(1_000, |n| n.parse().unwrap());
            number("UNITAPE_SEEDS").unwrap_or(SEEDS) + var("UNITAPE_TRIES").unwrap_or(7);
            command.env("UNITAPE_KILL_ROUNDS", "5").env("UNITAPE_SEEDS_FROM", 9);"#;
        assert_eq!(scan(text), [0, 0, 1_267]);
    }
}
