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
    /// Receives what is left out.
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
    pub place: String,
}

impl BenchContext {
    /// Makes the directory.
    pub fn new(options: BenchOptions) -> Result<Self, Error> {
        let dir = &options.dir;
        std::fs::create_dir_all(dir).map_err(|e| Error::Failed(format!("{}: {e}", dir.display())))?;
        let place = place_of(dir);
        Ok(Self { options, place })
    }

    pub fn wants_any_of(&self, bench: &str) -> bool {
        self.options.wanted.is_empty() || self.options.wanted.iter().any(|wanted| wanted.bench == bench)
    }

    pub fn wants(&self, bench: &str, case: &str) -> bool {
        let named =
            |wanted: &CaseSelection| wanted.bench == bench && wanted.case.as_ref().is_none_or(|c| c == case);
        self.options.wanted.is_empty() || self.options.wanted.iter().any(named)
    }

    /// Whether one of these cases was asked for by its own name.
    pub fn names(&self, bench: &str, cases: &[&str]) -> bool {
        self.options
            .wanted
            .iter()
            .any(|wanted| wanted.bench == bench && wanted.case.as_deref().is_some_and(|c| cases.contains(&c)))
    }

    /// Whether counts are small, and figures mean nothing.
    pub fn quick(&self) -> bool {
        self.options.quick
    }

    /// The small number with `--quick`, the full one without.
    pub fn pick(&self, quick: u64, full: u64) -> u64 {
        if self.options.quick { quick } else { full }
    }

    pub fn repeats(&self, full: usize) -> usize {
        if self.options.quick { 2 } else { full }
    }

    /// A new directory, gone when dropped.
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

    /// The directory of a backing's live segments.
    pub fn place_of(&self, backing: &str) -> String {
        if backing == "hot" { "tmpfs".to_owned() } else { self.place.clone() }
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

/// Whether files in `dir` are memory.
fn place_of(dir: &Path) -> String {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    match rustix::fs::statfs(dir) {
        #[allow(clippy::unnecessary_cast, reason = "the width differs between platforms")]
        Ok(fs) if fs.f_type as i64 == TMPFS_MAGIC => "tmpfs".to_owned(),
        _ => "disk".to_owned(),
    }
}
