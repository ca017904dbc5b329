//! No check is lost: the checks of the tree and the deep run are compared with a manifest of earlier checks.
//!
//! ```text
//! sources of the tree ──scan──▶ numbers ─┐
//! numbers of the deep run ───────────────┼──▶ each at least as the manifest says, or a problem
//! xtask/checks.tsv ──────────────────────┘
//! ```
//!
//! `cargo xtask checks` prints the numbers of this tree as lines of the manifest. It does not see whether a run really
//! runs what the tree holds: that is for the steps to do.

mod amounts;
mod manifest;
mod scan;
mod source;
mod tokens;

use std::path::Path;

use crate::cargo::root;
use crate::tidy::TidyProblem;
use crate::{XtaskFailure, deep};
use manifest::{CheckManifest, MANIFEST};
use scan::SourceScan;

/// The kind of a counted check, in the order of the kinds' words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CheckKind {
    /// Cases of the properties of a test.
    Cases,
    /// A fuzz target.
    Fuzz,
    /// Inputs after which the search of a fuzz target may end, though seconds are left.
    FuzzInputs,
    /// Functions that are tests and are not run.
    Ignored,
    /// Preemptions that loom explores.
    Loom,
    /// Rounds of a test by a variable and the file that reads it: `UNITAPE_KILL_ROUNDS/kill`.
    Rounds,
    /// Functions that are tests.
    Test,
}

impl CheckKind {
    const ALL: [Self; 7] =
        [Self::Cases, Self::Fuzz, Self::FuzzInputs, Self::Ignored, Self::Loom, Self::Rounds, Self::Test];

    /// The word for it in the manifest.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Cases => "cases",
            Self::Fuzz => "fuzz",
            Self::FuzzInputs => "fuzz-inputs",
            Self::Ignored => "ignored",
            Self::Loom => "loom",
            Self::Rounds => "rounds",
            Self::Test => "test",
        }
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// A check: its kind and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CheckName {
    pub(crate) kind: CheckKind,
    pub(crate) name: String,
}

impl CheckName {
    pub(crate) fn new(kind: CheckKind, name: &str) -> Self {
        Self { kind, name: name.to_owned() }
    }
}

/// A number that the deep run raises. Rounds are those of one file, `VARIABLE/FILE`, or of every file that reads the
/// variable, `VARIABLE`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeepNumber {
    pub(crate) kind: CheckKind,
    pub(crate) name: &'static str,
    pub(crate) number: u64,
}

impl DeepNumber {
    fn covers(&self, kind: CheckKind, name: &str) -> bool {
        let variable = name.split('/').next().filter(|_| kind == CheckKind::Rounds);
        self.kind == kind && (self.name == name || Some(self.name) == variable)
    }
}

/// `cargo xtask checks`: the numbers of this tree, or of another, as lines of the manifest; with `--new` those alone that
/// the manifest does not have, or has lower.
pub(crate) fn run(args: &[String]) -> Result<u8, XtaskFailure> {
    let (mut root, mut only_new) = (root(), false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--new" => only_new = true,
            "--tree" => {
                root = args
                    .next()
                    .ok_or_else(|| XtaskFailure::Usage("--tree wants a folder".to_owned()))?
                    .into();
            }
            other => {
                return Err(XtaskFailure::Usage(format!("unknown argument `{other}`; see cargo xtask help")));
            }
        }
    }
    // All lines are shown also where there is no manifest yet.
    let manifest = if only_new { read(&crate::cargo::root())? } else { CheckManifest::default() };
    for (check, &number) in &scan::scan(&root)?.numbers {
        // A test that is not run is nothing that must stay so.
        let is_wanted = number > manifest.number(check) && check.kind != CheckKind::Ignored;
        if !only_new || is_wanted {
            println!("{}\t{}\t{number}", check.kind.word(), check.name);
        }
    }
    Ok(0)
}

/// The checks that the manifest names and no run does any more.
pub(crate) fn check(root: &Path) -> Result<Vec<TidyProblem>, String> {
    Ok(compare(&read(root)?, &scan::scan(root)?, &deep::numbers()))
}

fn read(root: &Path) -> Result<CheckManifest, String> {
    let text = std::fs::read_to_string(root.join(MANIFEST)).map_err(|e| format!("{MANIFEST}: {e}"))?;
    CheckManifest::read(&text)
}

fn compare(manifest: &CheckManifest, scan: &SourceScan, deep: &[DeepNumber]) -> Vec<TidyProblem> {
    let done = DoneChecks { manifest, scan, deep };
    let mut problems = done.lines_without_use();
    for entry in &manifest.entries {
        let CheckName { kind, name } = &entry.check;
        // A test that is missing has no cases: one line says so.
        let is_told = *kind == CheckKind::Cases && done.number(CheckKind::Test, name) == 0;
        let number = done.number(*kind, name);
        if number < entry.number && !done.is_gone(name) && !is_told {
            problems.push(problem(entry.line, done.message(&entry.check, number, entry.number)));
        }
    }
    problems
}

fn problem(line: usize, message: String) -> TidyProblem {
    TidyProblem { place: format!("{MANIFEST}:{line}"), message }
}

/// The checks that the runs do, next to those in the manifest.
struct DoneChecks<'c> {
    manifest: &'c CheckManifest,
    scan: &'c SourceScan,
    deep: &'c [DeepNumber],
}

impl DoneChecks<'_> {
    /// The amount done of a check under its name and all later ones.
    fn number(&self, kind: CheckKind, name: &str) -> u64 {
        self.manifest.names(name).into_iter().map(|name| self.number_of_name(kind, name)).sum()
    }

    fn number_of_name(&self, kind: CheckKind, name: &str) -> u64 {
        let of = |kind| self.scan.number(kind, name);
        let functions = of(CheckKind::Test) + of(CheckKind::Ignored);
        // The deep run cannot run what the tree does not hold, whatever its table says.
        let (tree, most) = match kind {
            CheckKind::Test => (of(CheckKind::Test), functions),
            CheckKind::Ignored => (functions, functions),
            CheckKind::Cases if of(CheckKind::Test) == 0 => (0, if functions > 0 { u64::MAX } else { 0 }),
            CheckKind::Cases => (of(kind), u64::MAX),
            CheckKind::Rounds => (of(kind), if of(kind) > 0 { u64::MAX } else { 0 }),
            CheckKind::Fuzz => (of(kind), of(kind)),
            CheckKind::FuzzInputs | CheckKind::Loom => (of(kind), u64::MAX),
        };
        let covering = self.deep.iter().filter(|deep| deep.covers(kind, name));
        let deep = covering.map(|deep| deep.number).max().unwrap_or(0);
        tree.max(deep.min(most))
    }

    fn is_gone(&self, name: &str) -> bool {
        self.manifest.gone.iter().any(|gone| gone.name == name)
    }

    /// Lines that say of a check what is not so would hide its loss later.
    fn lines_without_use(&self) -> Vec<TidyProblem> {
        let mut problems = Vec::new();
        let is_named = |name: &str| self.manifest.entries.iter().any(|entry| entry.check.name == name);
        let is_there = |name: &str| self.scan.numbers.keys().any(|check| check.name == name);
        for gone in &self.manifest.gone {
            let name = &gone.name;
            if is_there(name) {
                let said =
                    format!("the manifest says that `{name}` is gone, but the tree has it; remove this line");
                problems.push(problem(gone.line, said));
            } else if !is_named(name) {
                problems
                    .push(problem(gone.line, format!("no entry has the name `{name}`; remove this line")));
            }
        }
        for renamed in self.manifest.renamed.iter().filter(|renamed| !is_named(&renamed.old)) {
            let said = format!("no entry has the name `{}`; remove this line", renamed.old);
            problems.push(problem(renamed.line, said));
        }
        problems
    }

    fn message(&self, check: &CheckName, found: u64, wanted: u64) -> String {
        let name = &check.name;
        let or_deep = "raise the number, or let the deep run do as much";
        match check.kind {
            CheckKind::Test | CheckKind::Ignored => {
                let lead = if found == 0 { "is in no tier" } else { "is lost in part" };
                let ignored = self.scan.number(CheckKind::Ignored, name);
                let why = if ignored > 0 && check.kind == CheckKind::Test {
                    format!(" and ignores it {}", times(ignored))
                } else {
                    String::new()
                };
                format!(
                    "the test `{name}` {lead}: the manifest names it, the tree runs it {} instead of {wanted}{why}; \
                     put it back, or name what replaced it with a line `renamed`",
                    times(found)
                )
            }
            CheckKind::Cases => format!(
                "the test `{name}` has too few cases: the manifest names {wanted}, no tier runs more than {found}; \
                 {or_deep}"
            ),
            CheckKind::Rounds => format!(
                "the rounds `{name}` are too few: the manifest names {wanted}, no tier makes more than {found}; \
                 {or_deep}"
            ),
            CheckKind::Fuzz => format!(
                "the fuzz target `{name}` is in no tier: the manifest names it, the tree does not have it; put it \
                 back, or name what replaced it with a line `renamed`"
            ),
            CheckKind::FuzzInputs => format!(
                "the fuzz targets have too few inputs: the manifest names {wanted}, no tier runs more than {found}; \
                 {or_deep}"
            ),
            CheckKind::Loom => format!(
                "loom explores too few preemptions: the manifest names {wanted}, no tier explores more than {found}; \
                 {or_deep}"
            ),
        }
    }
}

fn times(number: u64) -> String {
    if number == 1 { "1 time".to_owned() } else { format!("{number} times") }
}

#[cfg(test)]
mod tests;
