//! The recorder's flushes: which files are written and not yet on the disk, and what becomes of a flush that
//! fails.
//!
//! ```text
//!  flushed                    position
//!    ▼                           ▼
//!  ──┤ files held open, oldest … ├──▶    all flushed: flushed := position, durable := the last unit's end before it
//!                                        one failed:  hot segments there? ─▶ go back, write them into new files
//!                                                     else ─▶ lost, until the tape is reopened
//! ```
//!
//! After a flush that failed the kernel considers the pages clean: the next flush of the same file would succeed
//! without an error. So the durable position never passes bytes whose flush failed, unless they were written again.
//! Each file stays open from before the recorder is done with it until it is flushed, because the kernel reports an
//! error of its own write-back to open files only.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use unitape_model::Position;

use crate::disk::durable::{DurableMark, load_durable, store_durable};
use crate::disk::failure::{DurabilityFailure, FlushedFile};
use crate::disk::layout::{TapePaths, sync_dir};
use crate::disk::segment_index::store_index;
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::state_page::StatePage;
use crate::disk::sys;
use crate::error::{Error, FileContext, Result};
use crate::trust::segment_sums::vouch;
use crate::trust::unsynced_tail::check_known;

/// When committed frames are flushed to the disk and the durable position advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// When the writer closes.
    OnClose,
    /// After this many bytes or this much time, whichever comes first.
    Every {
        /// Bytes that may be committed and not durable.
        bytes: u64,
        /// Time that committed bytes may wait.
        interval: Duration,
    },
}

/// Files that may be open and not flushed; more, and they are flushed sooner than they would be.
const OPEN_MAX: usize = 128;

/// The state of flushing: positions that are on the disk, files to flush, and failures.
#[derive(Debug)]
pub(crate) struct FlushState {
    /// The position that is reported: the last whole unit on the disk. More of the tape would be cut after a power
    /// loss. The tape would then not reach a position in the middle of a unit.
    pub durable: DurableMark,
    /// All bytes before this are on the disk.
    pub flushed: DurableMark,
    pub last_flush: Instant,
    pub open_files: Vec<(FlushedFile, File)>,
    indexes: Vec<UnflushedIndex>,
    /// unitape makes copies of segments up to the one at this position again, because a flush of theirs has failed.
    pub recopy_limit: Option<Position>,
    /// Nothing more becomes durable.
    pub failure: Option<DurabilityFailure>,
    pub in_a_row: u32,
    /// The tape's directory has the names of all its files on the disk.
    pub names_are_durable: bool,
}

/// The index of a finished segment that is not flushed.
#[derive(Debug)]
struct UnflushedIndex {
    segment_index: u64,
    bytes: Vec<u8>,
    /// None: it could not be written.
    index_file: Option<File>,
}

impl FlushState {
    pub fn new(durable: DurableMark) -> Self {
        let flush_time = Instant::now();
        Self {
            durable,
            flushed: durable,
            last_flush: flush_time,
            open_files: Vec::new(),
            indexes: Vec::new(),
            recopy_limit: None,
            failure: None,
            in_a_row: 0,
            names_are_durable: false,
        }
    }

    /// Takes over from another recorder that died, or whose flush had failed. Returns true if everything up to the
    /// tape's `end` must be written again.
    pub fn take_over(
        &mut self,
        paths: &TapePaths,
        state: &StatePage,
        died: bool,
        end: Position,
    ) -> Result<bool> {
        let failure = state.failure(paths);
        let must_rewrite = failure.as_ref().is_some_and(|f| !f.lasting);
        if must_rewrite {
            self.suspect_to(end);
        } else {
            self.failure = failure;
        }
        if died || must_rewrite {
            // It may have died between writing and flushing it.
            store_durable(paths, &self.durable)?;
        }
        state.set_durable(self.durable.position);
        Ok(must_rewrite)
    }

    /// Has copies made again up to the segment that begins at `position` or is before it. Before the first byte of the
    /// tape nothing was written that could be lost.
    pub fn suspect_to(&mut self, position: Position) {
        self.recopy_limit = self.recopy_limit.max(Some(position).filter(|position| *position > Position(0)));
    }

    /// Holds a file open until it is flushed.
    pub fn hold_open(&mut self, flushed_file: FlushedFile, file: &File, path: &Path) -> Result<()> {
        if self.is_lost() {
            return Ok(());
        }
        let file = file.try_clone().with_context("hold open", path)?;
        self.open_files.retain(|(open_file, _)| *open_file != flushed_file);
        self.open_files.push((flushed_file, file));
        Ok(())
    }

    /// Writes the index of a segment, to be flushed later. If it cannot be written, that is tried once more then.
    pub fn write_index(&mut self, paths: &TapePaths, index: u64, bytes: Vec<u8>) {
        self.indexes.retain(|entry| entry.segment_index != index);
        let file = store_index(paths, index, &bytes).ok();
        self.indexes.push(UnflushedIndex { segment_index: index, bytes, index_file: file });
    }

    /// Forgets the indexes of segment `from` and of later segments.
    pub fn forget_indexes(&mut self, from: u64) {
        self.indexes.retain(|entry| entry.segment_index < from);
    }

    /// Flushes the indexes, before their segments count as durable. An index that cannot be flushed is removed: a tape
    /// is complete without it.
    pub fn flush_indexes(&mut self, paths: &TapePaths) {
        for UnflushedIndex { segment_index: index, bytes, index_file: file } in self.indexes.drain(..) {
            let is_flushed = file.is_some_and(|file| sys::sync_data(&file).is_ok());
            let retry = || store_index(paths, index, &bytes).is_ok_and(|file| sys::sync_data(&file).is_ok());
            if !is_flushed && !retry() {
                _ = sys::unlink(&paths.index(index));
            }
        }
    }

    pub fn is_full(&self) -> bool {
        self.open_files.len() >= OPEN_MAX
    }

    /// Returns whether the copy of the segment that begins at `base` must be made again. The segment at the end of the
    /// flush may have been begun.
    pub fn is_suspect(&self, base: Position) -> bool {
        self.recopy_limit.is_some_and(|suspect| base <= suspect)
    }

    pub fn is_lost(&self) -> bool {
        self.failure.is_some()
    }

    pub fn files(&self, paths: &TapePaths) -> std::result::Result<(), (FlushedFile, Error)> {
        for (flushed_file, file) in &self.open_files {
            let path = FlushedFile::path_of(flushed_file.to_word(), paths);
            sys::sync_data(file).with_context("flush", &path).map_err(|e| (*flushed_file, e))?;
            // Without a name it is on the disk and yet gone.
            if matches!(flushed_file, FlushedFile::Segment(_))
                && file.metadata().is_ok_and(|m| m.nlink() == 0)
            {
                let source = std::io::Error::from_raw_os_error(libc::ENOENT);
                return Err((*flushed_file, Error::Io { doing: "flush", path, source }));
            }
        }
        sync_dir(&paths.segments()).map_err(|e| (FlushedFile::Directory, e))
    }
}

/// Reads the durable position from its file, to begin with.
pub(crate) fn initial_state(live: &SegmentLocator) -> Result<FlushState> {
    // A recorder may come before any writer.
    check_known(live, !live.paths.writer_lock().exists())?;
    let mut durable = load_durable(&live.paths)?;
    vouch(&live.paths, &live.meta, &mut durable)?;
    Ok(FlushState::new(durable))
}
