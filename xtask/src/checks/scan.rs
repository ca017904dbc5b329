//! The checks of a tree: its tests, their cases and rounds, its fuzz targets and the bounds of its runs.
//!
//! ```text
//! crates/**.rs, xtask/**.rs, fuzz/tests/*.rs ──▶ tests, cases, rounds ─┐
//! fuzz/src/targets/*.rs                      ──▶ fuzz targets          ├──▶ SourceScan: kind, name, number
//! xtask/src/*.rs                             ──▶ bounds of the runs   ─┘
//! ```
//!
//! Sources are read as text: a test of another system or of loom counts like any other. A test is known by its bare
//! name, which stays when it moves to another file, module or crate; tests of one name count together. Tests without
//! the harness and commands in documents are not seen.

use std::collections::BTreeMap;
use std::path::Path;

use super::amounts::{cases, constant, helper, rounds};
use super::source::RustSource;
use super::{CheckKind, CheckName};
use crate::tidy::files::{self, TreeFile};

/// The amount of each check.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct SourceScan {
    pub(crate) numbers: BTreeMap<CheckName, u64>,
}

impl SourceScan {
    pub(crate) fn number(&self, kind: CheckKind, name: &str) -> u64 {
        self.numbers.get(&CheckName::new(kind, name)).copied().unwrap_or(0)
    }

    fn add(&mut self, kind: CheckKind, name: &str, number: u64) {
        *self.numbers.entry(CheckName::new(kind, name)).or_default() += number;
    }
}

/// The scan of a tree.
pub(crate) fn scan(root: &Path) -> Result<SourceScan, String> {
    scan_files(&files::list(root)?)
}

fn scan_files(files: &[TreeFile]) -> Result<SourceScan, String> {
    let mut scan = SourceScan::default();
    // Helpers of tests are known in their own crate, so a crate is read as a whole.
    let mut crates: BTreeMap<&str, Vec<&TreeFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.extension() == "rs") {
        let parts: Vec<&str> = file.path.split('/').collect();
        match parts[..] {
            ["crates", name, ..] => crates.entry(name).or_default().push(file),
            ["xtask", ..] => crates.entry("").or_default().push(file),
            ["python", ..] => crates.entry("python").or_default().push(file),
            ["fuzz", "tests", ..] => crates.entry("fuzz").or_default().push(file),
            // Old trees have other folders.
            ["fuzz", "src", "targets", name] => scan.add(CheckKind::Fuzz, stem(name), 1),
            ["fuzz", "targets" | "fuzz_targets", name] if name != "main.rs" => {
                scan.add(CheckKind::Fuzz, stem(name), 1);
            }
            _ => {}
        }
    }
    for files in crates.values() {
        scan_crate(files, &mut scan)?;
    }
    for file in files.iter().filter(|file| file.path.starts_with("python/tests/test_")) {
        scan_python(file, &mut scan);
    }
    Ok(scan)
}

/// Adds the tests of a module that pytest runs. Those of several parameters count once.
fn scan_python(file: &TreeFile, scan: &mut SourceScan) {
    let tests = file.text().unwrap_or_default().lines().filter_map(|line| line.strip_prefix("def test_"));
    for name in tests.filter_map(|rest| rest.split('(').next()) {
        scan.add(CheckKind::Test, &format!("test_{name}"), 1);
    }
}

fn scan_crate(files: &[&TreeFile], scan: &mut SourceScan) -> Result<(), String> {
    let mut sources = Vec::with_capacity(files.len());
    for file in files {
        let text = file.text().ok_or_else(|| format!("{}: this source is no text", file.path))?;
        sources.push(RustSource::read(&file.path, text)?);
    }
    let mut helpers = Vec::new();
    for source in &sources {
        for function in &source.functions {
            helpers.extend(helper(source, function)?);
        }
    }
    for source in &sources {
        for test in source.functions.iter().filter(|function| function.is_test) {
            let kind = if test.is_ignored { CheckKind::Ignored } else { CheckKind::Test };
            scan.add(kind, test.name, 1);
            if let Some(number) = cases(source, test, &helpers)? {
                scan.add(CheckKind::Cases, test.name, number);
            }
        }
        for round in rounds(source)? {
            let name = format!("{}/{}", round.variable, file_of(source.path));
            scan.add(CheckKind::Rounds, &name, round.number);
        }
        bounds(source, scan)?;
    }
    Ok(())
}

/// The bounds of the ordinary run, in the sources of the project's own commands.
fn bounds(source: &RustSource<'_>, scan: &mut SourceScan) -> Result<(), String> {
    if !source.path.starts_with("xtask/src/") {
        return Ok(());
    }
    let bound = match source.path {
        "xtask/src/fuzz.rs" => constant(source, "RUNS"),
        "xtask/src/steps.rs" => constant(source, "FUZZ_RUNS"),
        _ => None,
    };
    if let Some(number) = bound {
        scan.add(CheckKind::FuzzInputs, "each", number);
    }
    if source.path == "xtask/src/steps.rs"
        && let Some(number) = constant(source, "LOOM_PREEMPTIONS")
    {
        scan.add(CheckKind::Loom, "preemptions", number);
        return Ok(());
    }
    for at in 0..source.tokens.len() {
        if !source.begins(at, &["env", "("])
            || source.tokens.get(at + 2).and_then(|token| token.text()) != Some("LOOM_MAX_PREEMPTIONS")
        {
            continue;
        }
        let text = source.tokens.get(at + 4).and_then(|token| token.text());
        let number: u64 = text.and_then(|text| text.parse().ok()).ok_or_else(|| {
            source.complaint(at, "the scan of checks reads a literal number of preemptions here")
        })?;
        let name = CheckName::new(CheckKind::Loom, "preemptions");
        // Where several runs have a bound, the ordinary one has the least.
        scan.numbers.entry(name).and_modify(|least| *least = number.min(*least)).or_insert(number);
    }
    Ok(())
}

/// The name of a file without its folders and its ending.
/// A file by its stem; a module of a test binary with the name of the binary, as `cli_kill` of `tests/cli/kill.rs`.
fn file_of(path: &str) -> String {
    match path.rsplit_once("/tests/").and_then(|(_, inside)| inside.split_once('/')) {
        Some((binary, _)) => format!("{binary}_{}", stem(path)),
        None => stem(path).to_owned(),
    }
}

fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan_lines(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<TreeFile> = files.iter().map(|(path, text)| TreeFile::new(path, text)).collect();
        let scan = scan_files(&files).unwrap();
        scan.numbers
            .iter()
            .map(|(check, number)| format!("{} {} {number}", check.kind.word(), check.name))
            .collect()
    }

    /// A test that moved is the same test; one of two with the same name must not replace both.
    #[test]
    fn tests_are_known_by_their_bare_name_and_counted() {
        let text = "#[test] fn a() {} #[test] fn b() {} fn c() {} #[test] #[ignore] fn d() {}";
        let other = "mod tests { #[test] fn a() { let text = \"#[test] fn e() {}\"; } }";
        let files = [("crates/x/src/lib.rs", text), ("xtask/src/m.rs", other), ("bench/src/lib.rs", text)];
        assert_eq!(scan_lines(&files), ["ignored d 1", "test a 2", "test b 1"]);
    }

    #[test]
    fn tests_in_python_count() {
        let text = "def test_a(tape):\n    def test_b():\n        pass\n\n\ndef helper():\n    pass\n";
        let files = [
            ("python/tests/test_x.py", text),
            ("python/tests/conftest.py", text),
            ("examples/test_y.py", text),
        ];
        assert_eq!(scan_lines(&files), ["test test_a 1"]);
    }

    #[test]
    fn cases_and_rounds_of_one_name_are_sums() {
        let block = "proptest! { #[test] fn a(x in 0..9) {} }";
        let rounds = "fn f() { number(\"UNITAPE_X_ROUNDS\", 200); number(\"UNITAPE_X_ROUNDS\", 20); }";
        let files = [("crates/x/a.rs", block), ("crates/y/b.rs", block), ("crates/y/tests/kill.rs", rounds)];
        assert_eq!(scan_lines(&files), ["cases a 512", "rounds UNITAPE_X_ROUNDS/kill 220", "test a 2"]);
    }

    #[test]
    fn helpers_of_tests_are_those_of_their_crate() {
        let helper = "fn hold(cases: u32) { TestRunner::new(P { cases, ..p() }); }";
        let test = "#[test] fn a() { hold(40); }";
        let other = "#[test] fn b() { hold(50); }";
        let files = [("crates/x/a.rs", helper), ("crates/x/b.rs", test), ("crates/y/b.rs", other)];
        assert_eq!(scan_lines(&files), ["cases a 40", "test a 1", "test b 1"]);
    }

    #[test]
    fn targets_and_bounds_are_found_in_trees_of_today_and_of_before() {
        let loom = "fn f() { command.env(\"LOOM_MAX_PREEMPTIONS\", \"3\"); }";
        let before = format!("const FUZZ_RUNS: u32 = 20_000; {loom}");
        let old = [("fuzz/fuzz_targets/x.rs", ""), ("xtask/src/steps.rs", before.as_str())];
        let new = [
            ("fuzz/src/lib.rs", ""),
            ("fuzz/src/targets/x.rs", ""),
            ("xtask/src/steps.rs", loom),
            ("xtask/src/deep.rs", "fn f() { command.env(\"LOOM_MAX_PREEMPTIONS\", \"4\"); }"),
        ];
        let constant =
            ("xtask/src/steps.rs", "const LOOM_PREEMPTIONS: u64 = 3; f(\"LOOM_MAX_PREEMPTIONS\", n)");
        assert_eq!(scan_lines(&[constant]), ["loom preemptions 3"]);
        assert_eq!(scan_lines(&old), ["fuzz x 1", "fuzz-inputs each 20000", "loom preemptions 3"]);
        assert_eq!(scan_lines(&new), ["fuzz x 1", "loom preemptions 3"]);
    }
}
