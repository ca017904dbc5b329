//! The context that the measurements share.

use crate::error::Error;
use crate::tape::TapeTuning;
use std::path::{Path, PathBuf};

/// The cases to measure, and the options.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// The cases to run; all when empty.
    pub wanted: Vec<CaseSelection>,
    /// Small counts and few repeats: the figures mean nothing.
    pub quick: bool,
    /// The directory of the files.
    pub dir: PathBuf,
    /// For how long `sustained` writes.
    pub seconds: u64,
    /// The settings with which the tapes of `tape` are opened.
    pub tune: TapeTuning,
    /// Receives a note on each case that is left out.
    pub note: fn(&str),
}

/// A bench, or one of its cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseSelection {
    /// The bench.
    pub bench: String,
    /// The case; all of them without.
    pub case: Option<String>,
}

/// The context that the measurements share.
#[derive(Debug)]
pub struct BenchContext {
    pub options: BenchOptions,
    /// `tmpfs` or `disk`, of `dir`.
    pub medium: String,
}

impl BenchContext {
    /// Makes the directory.
    pub fn new(options: BenchOptions) -> Result<Self, Error> {
        let dir = &options.dir;
        std::fs::create_dir_all(dir).map_err(|e| Error::Failed(format!("{}: {e}", dir.display())))?;
        let medium = place_of(dir);
        Ok(Self { options, medium })
    }

    pub fn wants_any_of(&self, bench: &str) -> bool {
        self.options.wanted.is_empty() || self.options.wanted.iter().any(|wanted| wanted.bench == bench)
    }

    pub fn wants(&self, bench: &str, case: &str) -> bool {
        let named =
            |wanted: &CaseSelection| wanted.bench == bench && wanted.case.as_ref().is_none_or(|c| c == case);
        self.options.wanted.is_empty() || self.options.wanted.iter().any(named)
    }

    /// Returns whether the user asked for one of these cases by its name.
    pub fn names(&self, bench: &str, cases: &[&str]) -> bool {
        self.options
            .wanted
            .iter()
            .any(|wanted| wanted.bench == bench && wanted.case.as_deref().is_some_and(|c| cases.contains(&c)))
    }

    /// Returns whether the run is quick. A quick run has small counts, and its figures mean nothing.
    pub fn quick(&self) -> bool {
        self.options.quick
    }

    /// Returns the small number with `--quick`, otherwise the full number.
    pub fn pick(&self, quick: u64, full: u64) -> u64 {
        if self.options.quick { quick } else { full }
    }

    pub fn repeats(&self, full: usize) -> usize {
        if self.options.quick { 2 } else { full }
    }

    /// Makes a new directory that is removed when dropped.
    pub fn fresh(&self, case: &str) -> Result<ScratchDir, Error> {
        for n in 0..1000 {
            let dir = self.options.dir.join(format!("unitape-bench-{}-{case}-{n}", std::process::id()));
            match std::fs::create_dir(&dir) {
                Ok(()) => return Ok(ScratchDir(dir)),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(Error::Failed(format!("{}: {e}", dir.display()))),
            }
        }
        Err(Error::Failed(format!("{}: full of directories of earlier runs", self.options.dir.display())))
    }

    /// Returns the file system that holds the live segments of a backing.
    pub fn place_of(&self, backing: &str) -> String {
        if backing == "hot" { "tmpfs".to_owned() } else { self.medium.clone() }
    }
}

/// A directory that goes with its owner.
#[derive(Debug)]
pub struct ScratchDir(PathBuf);

impl ScratchDir {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // A directory left behind is no reason to fail a measurement that is done.
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns whether files in `dir` are in memory or on a disk.
fn place_of(dir: &Path) -> String {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    match rustix::fs::statfs(dir) {
        #[allow(clippy::unnecessary_cast, reason = "the width differs between platforms")]
        Ok(fs) if fs.f_type as i64 == TMPFS_MAGIC => "tmpfs".to_owned(),
        _ => "disk".to_owned(),
    }
}
