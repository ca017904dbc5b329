//! The follower's flushes: which files are written and not yet on the disk, and what becomes of a flush that
//! fails.
//!
//! ```text
//!  flushed                    position
//!    ▼                           ▼
//!  ──┤ files held open, oldest … ├──▶    all flushed: flushed := position, durable := the last unit's end before it
//!                                        one failed:  hot segments there? ─▶ go back, write them into new files
//!                                                     else ─▶ lost, until the tape is opened anew
//! ```
//!
//! After a flush that failed the kernel takes the pages for clean: the next flush of the same file would succeed
//! and say nothing. So the durable position never goes over bytes whose flush failed, unless they were written
//! again. Each file stays open from before the follower is done with it until it is flushed, because the kernel
//! tells an error of its own write-back to open files only.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use crate::Sync;
use crate::disk::durable::{Durable, load_durable, store_durable};
use crate::disk::layout::{Paths, list_segments, sync_dir};
use crate::disk::lineage::{check_newest, newest_epoch};
use crate::disk::live::Live;
use crate::disk::run::State;
use crate::disk::sys;
use crate::error::{At, Error, Result};
use crate::keep::seal::seal;
use crate::record::durable::{DurabilityFailure, Flushed};
use crate::record::follow::{Follower, IDLE};
use crate::record::segment_sums::vouch;
use crate::write::trust::check_known;
use crate::write::writer::Writer;

/// Files that may be open and not flushed; more, and they are flushed sooner than they would be.
const OPEN_MAX: usize = 128;

/// Committed bytes that a follower which cannot catch up gathers before it flushes for those who wait.
const GROUP_BYTES: u64 = 8 << 20;

/// Flushes in a row that fail before the writer is told, while the recorder can still make it good.
const PATIENCE: u32 = 3;

/// What is to be flushed, and how that went.
#[derive(Debug)]
pub(crate) struct Flush {
    /// What is told: the last whole unit that is on the disk. More of the tape would be cut after a power loss, and a
    /// position in the middle of a unit would be one that the tape then does not reach.
    pub durable: Durable,
    /// All bytes before this are on the disk.
    pub flushed: Durable,
    last: Instant,
    open: Vec<(Flushed, File)>,
    /// Copies of segments up to the one that begins at this position or is before it are made anew, because a flush of
    /// theirs has failed; 0: none.
    suspect: u64,
    /// Nothing more becomes durable.
    lost: Option<DurabilityFailure>,
    in_a_row: u32,
    /// The tape's directory has the names of all its files on the disk.
    names: bool,
}

impl Flush {
    pub fn new(durable: Durable) -> Self {
        let last = Instant::now();
        Self {
            durable,
            flushed: durable,
            last,
            open: Vec::new(),
            suspect: 0,
            lost: None,
            in_a_row: 0,
            names: false,
        }
    }

    /// Takes over what another recorder left behind: one that died, or whose flush had failed.
    /// True if everything up to the tape's `end` is to be written again.
    pub fn take_over(&mut self, paths: &Paths, state: &State, died: bool, end: u64) -> Result<bool> {
        let failure = state.failure(paths);
        let again = failure.as_ref().is_some_and(|f| !f.lasting);
        if again {
            self.suspect = end;
        } else {
            self.lost = failure;
        }
        if died || again {
            // It may have died between writing and flushing it.
            store_durable(paths, &self.durable)?;
        }
        state.set_durable(self.durable.position);
        Ok(again)
    }

    /// Holds a file open until it is flushed.
    pub fn hold(&mut self, what: Flushed, file: &File, path: &Path) -> Result<()> {
        if self.is_lost() {
            return Ok(());
        }
        let file = file.try_clone().at("hold open", path)?;
        self.open.retain(|(held, _)| *held != what);
        self.open.push((what, file));
        Ok(())
    }

    pub fn is_full(&self) -> bool {
        self.open.len() >= OPEN_MAX
    }

    /// Whether the copy of the segment that begins at `base` is to be made anew. The one that begins where the flush
    /// ended may have been begun.
    pub fn is_suspect(&self, base: u64) -> bool {
        self.suspect > 0 && base <= self.suspect
    }

    pub fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    fn files(&self, paths: &Paths) -> std::result::Result<(), (Flushed, Error)> {
        for (what, file) in &self.open {
            let path = Flushed::path_of(what.word(), paths);
            sys::sync_data(file).at("flush", &path).map_err(|e| (*what, e))?;
            // Without a name it is on the disk and yet gone.
            if matches!(what, Flushed::Segment(_)) && file.metadata().is_ok_and(|m| m.nlink() == 0) {
                let source = std::io::Error::from_raw_os_error(libc::ENOENT);
                return Err((*what, Error::Io { doing: "flush", path, source }));
            }
        }
        sync_dir(&paths.segments()).map_err(|e| (Flushed::Directory, e))
    }
}

impl Follower {
    /// Flushes if the policy says so, or somebody waits for it.
    pub fn sync_if_due(&mut self) -> Result<()> {
        let behind = self.position.saturating_sub(self.flush.flushed.position);
        if behind == 0 || self.flush.is_lost() {
            return Ok(());
        }
        let due = match self.sync {
            Sync::Every { bytes, interval } => behind >= bytes || self.flush.last.elapsed() >= interval,
            Sync::OnClose => false,
        };
        let wanted = self.state.wanted();
        let asked = wanted > self.flush.durable.position
            && (self.position >= wanted || self.caught_up || behind >= GROUP_BYTES);
        if due || asked { self.sync() } else { Ok(()) }
    }

    /// Flushes everything followed to the disk and advances the durable position to the last whole unit of it.
    ///
    /// # Errors
    /// A flush that failed: nothing more is durable than before, and the error says what becomes of it.
    pub fn sync(&mut self) -> Result<()> {
        if let Some(lost) = &self.flush.lost {
            return Err(lost.error(self.flush.durable.position));
        }
        if self.position < self.flush.flushed.position || !self.is_newest()? {
            return Ok(());
        }
        self.sums.store(true)?;
        self.definitions.flush()?;
        let paths = self.live.paths.clone();
        let flushed = self.flush.files(&paths);
        let flushed = flushed.and_then(|()| self.definitions.sync().map_err(|e| (Flushed::Definitions, e)));
        if let Err((what, error)) = flushed {
            return Err(self.failed(what, error)?);
        }
        // Not what the log has by now: what comes next was looked at already.
        let definitions_bytes = self.definitions_bytes;
        let flushed = Durable { position: self.position, definitions_bytes, open_sum: None };
        let durable = self.whole;
        let stored = store_durable(&paths, &durable).and_then(|()| match self.flush.names {
            true => Ok(()),
            // Once: it was made, or made by somebody who died before this.
            false => sync_dir(&paths.dir),
        });
        if let Err(error) = stored {
            // The files are on the disk; only the word that says so is written once more.
            let errno = errno_of(&error);
            self.state.fail(errno, Flushed::Durable, false);
            self.flush.in_a_row += 1;
            let failure = DurabilityFailure { errno, path: paths.durable(), lasting: false };
            return Err(failure.error(self.flush.durable.position));
        }
        self.flush.names = true;
        let before = self.flush.flushed.position;
        (self.flush.durable, self.flush.flushed) = (durable, flushed);
        self.flush.in_a_row = 0;
        if self.position >= self.flush.suspect {
            self.flush.suspect = 0;
            self.state.mended();
        }
        self.state.set_durable(durable.position);
        let size = self.live.meta.segment_bytes;
        let live = self.position / size;
        seal(&paths, before / size, live)?;
        self.flush.open.retain(|(what, _)| match what {
            Flushed::Segment(index) | Flushed::Checksums(index) => *index >= live,
            _ => false,
        });
        self.flush.last = Instant::now();
        Ok(())
    }

    /// Whether nothing has opened the tape since that this recorder does not follow: then nothing more becomes durable
    /// by it.
    ///
    /// # Errors
    /// A writer later than the one whose thread this is.
    fn is_newest(&self) -> Result<bool> {
        let (paths, tape) = (&self.live.paths, self.live.meta.id);
        match self.writer_epoch {
            Some(epoch) => check_newest(paths, tape, epoch).map(|()| true),
            // While a writer opens, its epoch is in the file and not yet on the page.
            None => {
                let (newest, epoch) = (newest_epoch(paths, tape)?, self.state.epoch());
                Ok(newest == epoch || newest == 0 || epoch == 0)
            }
        }
    }

    /// Begins again at what is flushed: a writer has opened the tape, and may have cut and replaced what is beyond it.
    ///
    /// # Errors
    /// The dictionary log cannot be read.
    pub fn begin_again(&mut self) -> Result<()> {
        let Durable { position, definitions_bytes, .. } = self.flush.flushed;
        let from = position - position % self.live.meta.segment_bytes;
        self.flush.open.clear();
        self.definitions.rewind(definitions_bytes, position, from)?;
        self.go_back(from);
        Ok(())
    }

    /// Flushes at the end of all; tries again where the failed range can be written again.
    pub fn sync_last(&mut self) -> Result<()> {
        let end = self.position;
        for _ in 0..PATIENCE {
            match self.sync() {
                Err(Error::DurabilityFailed { .. }) if !self.flush.is_lost() => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                    while self.position < end && self.step()? {}
                }
                other => return other,
            }
        }
        match self.sync() {
            // Nobody writes it again who is about to end.
            Err(Error::DurabilityFailed { path, durable, source, .. }) if !self.flush.is_lost() => {
                let what = "the rest is in shared memory; open the tape anew when the disk is mended, and before the \
                            machine is restarted, to have it written again";
                Err(Error::DurabilityFailed { path, durable, source, what })
            }
            other => other,
        }
    }

    /// Whether an error is one that the recorder makes good by itself, for now.
    pub fn is_mending(&self, error: &Error) -> bool {
        matches!(error, Error::DurabilityFailed { .. })
            && !self.flush.is_lost()
            && !self.flush.in_a_row.is_multiple_of(PATIENCE)
    }

    /// Gives durability up: somebody has removed segment `index` before it was looked at.
    pub fn lose(&mut self, index: u64) -> Error {
        let what = Flushed::Segment(index);
        let path = Flushed::path_of(what.word(), &self.live.paths);
        let failure = DurabilityFailure { errno: libc::ENOENT, path, lasting: true };
        let error = failure.error(self.flush.durable.position);
        if !self.flush.is_lost() {
            self.state.fail(libc::ENOENT, what, true);
            self.flush.lost = Some(failure);
        }
        error
    }

    /// Goes back to what is flushed where the hot segments have all since, or gives durability up.
    pub(crate) fn failed(&mut self, what: Flushed, error: Error) -> Result<Error> {
        let errno = errno_of(&error);
        let size = self.live.meta.segment_bytes;
        let first = self.flush.flushed.position / size;
        let hot = match self.live.hot_place()? {
            Some(place) => list_segments(&place)?,
            None => Vec::new(),
        };
        let there = (first..self.position.div_ceil(size)).all(|index| hot.binary_search(&index).is_ok());
        let Durable { position, definitions_bytes, .. } = self.flush.flushed;
        // Without the dictionary log nothing is written again.
        let again = there && self.definitions.rewind(definitions_bytes, position, first * size).is_ok();
        let path = Flushed::path_of(what.word(), &self.live.paths);
        let failure = DurabilityFailure { errno, path, lasting: !again };
        self.flush.open.clear();
        self.state.fail(errno, what, !again);
        let error = failure.error(self.flush.durable.position);
        if again {
            self.flush.in_a_row += 1;
            self.flush.suspect = self.flush.suspect.max(self.position);
            self.go_back(first * size);
        } else {
            self.flush.lost = Some(failure);
        }
        Ok(error)
    }
}

impl Writer {
    /// Waits for a recorder of its own process to record all, or does it when there is none.
    pub(crate) fn drain_external(&self) -> Result<()> {
        let since = Instant::now();
        loop {
            match Follower::open(Live::of(self.paths.clone(), self.meta), self.options.sync, 1) {
                Ok(mut follower) => {
                    while follower.position < self.end().0 || follower.step()? {
                        follower.step()?;
                    }
                    return follower.sync_last();
                }
                // Not the file that says so: it is written before it is flushed, and its flush may fail.
                Err(Error::Locked { .. }) if self.state.durable() >= self.end().0 => return Ok(()),
                Err(Error::Locked { .. }) if since.elapsed() >= self.options.recorder_wait => {
                    if let Some(failure) = self.durability_failure() {
                        return Err(failure.error(self.state.durable()));
                    }
                    return Err(Error::RecorderBehind { recorded: self.recorded(), wanted: self.end() });
                }
                Err(Error::Locked { .. }) => std::thread::sleep(IDLE),
                Err(e) => return Err(e),
            }
        }
    }
}

/// The durable position as its file has it, to begin with.
pub(crate) fn begin(live: &Live) -> Result<Flush> {
    // A recorder may come before any writer.
    check_known(live, !live.paths.writer_lock().exists())?;
    let mut durable = load_durable(&live.paths)?;
    vouch(&live.paths, &live.meta, &mut durable)?;
    Ok(Flush::new(durable))
}

fn errno_of(error: &Error) -> i32 {
    match error {
        Error::Io { source, .. } | Error::DiskFull { source, .. } => source.raw_os_error().unwrap_or(0),
        _ => 0,
    }
}
