//! Earlier counts, by the bytes of the binaries, so that a count is right whatever made them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value};

use super::builds::MeasuredBuild;
use super::cases::{CaseWork, InstructionCase};
use super::measure::CaseFigure;

/// How cases are run and what of the counts is the figure; another number where that changes.
const METHOD: u32 = 1;

/// The figures of one build.
#[derive(Debug)]
pub(crate) struct FigureCache {
    path: PathBuf,
    /// The other inputs of a figure: the way of counting, and the example's bytes for cases of the tape or the inputs
    /// for the others.
    input_keys: [String; 2],
    entries: Map<String, Value>,
}

impl FigureCache {
    /// The cache of a build, counted on these inputs by this valgrind.
    pub(crate) fn open(
        dir: &Path,
        build: &MeasuredBuild,
        inputs: u64,
        valgrind: &Path,
    ) -> Result<Self, String> {
        let version = Command::new(valgrind).arg("--version").output();
        let version = version.map_err(|e| format!("{}: {e}", valgrind.display()))?;
        let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
        let describe_inputs = |input_hash: u64| format!("{METHOD} {input_hash:016x} {version}");
        Self::load(dir, build.hash, [describe_inputs(build.probe_hash), describe_inputs(inputs)])
    }

    fn load(dir: &Path, build: u64, input_keys: [String; 2]) -> Result<Self, String> {
        let folder = dir.join("results");
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let path = folder.join(format!("{build:016x}.json"));
        // An unreadable cache has nothing: the cases are counted again.
        let entries =
            fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        Ok(Self { path, input_keys, entries })
    }

    /// The figures of a case, if it was counted in the same way.
    pub(crate) fn get(&self, case: &InstructionCase) -> Option<Vec<CaseFigure>> {
        self.entries.get(&self.key(case))?.as_array()?.iter().map(CaseFigure::from_json).collect()
    }

    /// Keeps the figures of a case.
    pub(crate) fn insert_figures(&mut self, case: &InstructionCase, figures: &[CaseFigure]) {
        let figures = figures.iter().map(CaseFigure::to_json).collect();
        self.entries.insert(self.key(case), Value::Array(figures));
        let text = serde_json::to_string_pretty(&self.entries).unwrap_or_default();
        let new = self.path.with_extension("new");
        if let Err(e) = fs::write(&new, text).and_then(|()| fs::rename(&new, &self.path)) {
            eprintln!("xtask: {}: {e}; the figures are not kept", self.path.display());
        }
    }

    fn key(&self, case: &InstructionCase) -> String {
        let [tape, other_inputs] = &self.input_keys;
        let inputs = if matches!(case.work, CaseWork::Tape) { tape } else { other_inputs };
        format!("{} {inputs}", case.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure of other inputs, of another valgrind or of another binary is not this one's.
    #[test]
    fn figures_come_back_for_the_same_binary_inputs_and_valgrind_alone() {
        let dir = tempfile::tempdir().unwrap();
        let figures =
            vec![CaseFigure { name: "a/b".to_owned(), instructions: 2.5, all_threads: 3.0, operations: 4 }];
        let open = |build, tape: &str, other_inputs: &str| {
            FigureCache::load(dir.path(), build, [tape.to_owned(), other_inputs.to_owned()]).unwrap()
        };
        let case = |name| super::super::cases::select_cases(&[String::from(name)]).unwrap()[0];
        let (fix, tape) = (case("fix/jse"), case("tape/record"));
        open(1, "x", "y").insert_figures(&fix, &figures);
        open(1, "x", "y").insert_figures(&tape, &[]);
        assert_eq!(open(1, "z", "y").get(&fix), Some(figures), "another example is nothing to a bench");
        assert_eq!(open(1, "x", "z").get(&tape), Some(Vec::new()), "other inputs are nothing to the tape");
        assert_eq!(open(1, "x", "z").get(&fix), None);
        assert_eq!(open(1, "z", "y").get(&tape), None);
        assert_eq!(open(2, "x", "y").get(&fix), None);
        assert_eq!(open(1, "x", "y").get(&case("fix/orders")), None);
        fs::write(dir.path().join("results").join(format!("{:016x}.json", 1)), "{").unwrap();
        assert_eq!(open(1, "x", "y").get(&fix), None, "half a file");
    }
}
