//! Files into a store: each feed goes through a tape of its own, which is removed afterwards.
//!
//! ```text
//! feed 1 ─▶ STORE.sealing/tape ─▶ seal ─▶ generation      the tape is removed, and the next feed begins
//! feed 2 ─▶ STORE.sealing/tape ─▶ seal ─▶ generation
//!                                            └─ last: days of many parts are compacted
//! ```
//!
//! The identity of such a tape follows from the feed's name, format and mapping and from the names and the content of its
//! files. So the same files add nothing when they are sealed again.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use unitape_feed::{ConsolidateOptions, FileFeed, RunOutcome, RunProgress, consolidate, is_stdin};
use unitape_model::UnixNanos;
use unitape_store::{
    CompactOptions, MasterKey, PARTS_MAX, SealOptions, SealReport, StoreProgress, compact, seal,
};

use crate::Error;
use crate::inputs::LoadedInputs;

/// How files are sealed.
#[derive(Debug)]
pub struct FileSealOptions<'a> {
    /// Worker threads of the decoders, 1 or more.
    pub workers: usize,
    /// How each tape is sealed.
    pub seal: SealOptions<'a>,
    /// Reads the clock, for the times of the commits.
    pub clock: fn() -> UnixNanos,
    /// Set by a signal.
    pub stop: &'a AtomicBool,
}

/// What happens while files are sealed, for those who watch.
#[derive(Debug)]
pub enum FileSealStep<'a> {
    /// A feed is decoded.
    Decode {
        /// Its name.
        feed: &'a str,
        /// How far it is.
        progress: Arc<RunProgress>,
    },
    /// Its events are sealed.
    Seal {
        /// Its name.
        feed: &'a str,
        /// How far it is.
        progress: &'a StoreProgress,
    },
}

/// A feed that was sealed.
#[derive(Debug)]
pub struct SealedFeed {
    /// Its name.
    pub name: String,
    /// What was read.
    pub outcome: RunOutcome,
    /// What was added to the store.
    pub report: SealReport,
}

/// Seals each of the feeds into the store in `store`. Passes each feed that is done to `done`. `watch` runs each step of the work
/// beside a display of its progress. Returns why a day was not compacted that should have been, as [`SealReport`] has it.
///
/// # Errors
/// Fails if a file cannot be read or is stdin, if the store cannot be changed, or if the work was stopped. Feeds that are done
/// stay in the store; those that are not have added nothing.
pub fn seal_files(
    store: &Path,
    key: &MasterKey,
    inputs: LoadedInputs,
    options: &FileSealOptions<'_>,
    watch: &mut dyn FnMut(&FileSealStep<'_>, &mut dyn FnMut()),
    done: &mut dyn FnMut(SealedFeed),
) -> Result<Option<String>, Error> {
    let LoadedInputs { feeds, rules } = inputs;
    if feeds.iter().flat_map(|feed| &feed.files).any(|file| is_stdin(file)) {
        return Err(Error::SealedStdin);
    }
    let work_folder = WorkFolder::make(store)?;
    for feed in feeds {
        let name = feed.name.clone();
        let tape = work_folder.folder.join("tape");
        let outcome = decode(&tape, feed, &rules, options, watch)?;
        if outcome.stopped {
            return Err(Error::SealStopped);
        }
        let progress = StoreProgress::default();
        let seal_options = SealOptions {
            progress: Some(&progress),
            stop: Some(options.stop),
            compacts: false,
            ..options.seal
        };
        let mut result = None;
        watch(&FileSealStep::Seal { feed: &name, progress: &progress }, &mut || {
            result = Some(seal(&tape, store, key, (options.clock)(), &seal_options));
        });
        let report = result.expect("the step was run")?;
        fs::remove_dir_all(&tape).map_err(|source| Error::File { path: tape.clone(), source })?;
        done(SealedFeed { name, outcome, report });
    }
    drop(work_folder);
    let compaction = CompactOptions {
        parts_max: PARTS_MAX,
        memory_bytes: options.seal.memory_bytes,
        stop: Some(options.stop),
        random: options.seal.random,
        ..CompactOptions::default()
    };
    match compact(store, key, &compaction) {
        // The next seal does it.
        Ok(_) | Err(unitape_store::Error::Stopped) => Ok(None),
        Err(e) => Ok(Some(format!("the days of many parts are not compacted: {e}"))),
    }
}

/// Decodes a feed onto the tape.
fn decode(
    tape: &Path,
    feed: FileFeed,
    rules: &std::collections::BTreeMap<String, unitape_feed::ChangedSourcePolicy>,
    options: &FileSealOptions<'_>,
    watch: &mut dyn FnMut(&FileSealStep<'_>, &mut dyn FnMut()),
) -> Result<RunOutcome, Error> {
    let name = feed.name.clone();
    let consolidate_options = ConsolidateOptions {
        feeds: vec![feed],
        workers: options.workers,
        stop: Some(options.stop),
        feed_rules: rules.clone(),
        ..ConsolidateOptions::default()
    };
    let progress = consolidate_options.progress.clone();
    let (mut consolidate_options, mut result) = (Some(consolidate_options), None);
    watch(&FileSealStep::Decode { feed: &name, progress }, &mut || {
        result = consolidate_options.take().map(|options| consolidate(tape, options));
    });
    let result = result.expect("the step was run");
    result.map_err(|e| Error::Input(Box::new(e)))
}

/// The folder beside the store in which the tapes of a seal lie, for its owner alone. It is removed at the end; what a killed
/// seal has left there is removed by the next one.
#[derive(Debug)]
struct WorkFolder {
    folder: PathBuf,
    _lock: File,
}

impl WorkFolder {
    fn make(store: &Path) -> Result<Self, Error> {
        let mut name = store.file_name().unwrap_or_default().to_owned();
        name.push(".sealing");
        let folder = store.with_file_name(name);
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::File { path, source }
        };
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            made => made.map_err(fail(&folder))?,
        }
        let lock_path = folder.join("lock");
        let lock = OpenOptions::new().write(true).create(true).truncate(false).open(&lock_path);
        let lock = lock.map_err(fail(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::SealLocked { path: lock_path }),
            Err(TryLockError::Error(source)) => return Err(Error::File { path: lock_path, source }),
        }
        let tape = folder.join("tape");
        match fs::remove_dir_all(&tape) {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            removed => removed.map_err(fail(&tape))?,
        }
        Ok(Self { folder, _lock: lock })
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // What cannot be removed now, the next seal removes.
        _ = fs::remove_dir_all(&self.folder);
    }
}
