//! When the recorder flushes, and how it continues after a flush that failed.

use std::time::Instant;

use unitape_model::Position;

use super::TapeRecorder;
use crate::disk::durable::{DurableMark, store_durable};
use crate::disk::failure::{DurabilityFailure, FlushedFile};
use crate::disk::layout::{list_segments, sync_dir};
use crate::disk::lineage::{check_newest, newest_epoch};
use crate::disk::seal::seal_segments;
use crate::error::{Error, Result};
use crate::record::flush::SyncPolicy;

/// Committed bytes that a recorder which cannot catch up gathers before it flushes for waiting callers.
const GROUP_BYTES: u64 = 8 << 20;

/// Flushes in a row that may fail, while the recorder can still make them good, before the writer gets an error.
const PATIENCE: u32 = 3;

impl TapeRecorder {
    /// Flushes if the policy says so, or if a caller waits for it.
    pub fn sync_if_due(&mut self) -> Result<()> {
        let unflushed_bytes = self.position.0.saturating_sub(self.flush.flushed.position.0);
        if unflushed_bytes == 0 || self.flush.is_lost() {
            return Ok(());
        }
        let due = match self.sync_policy {
            SyncPolicy::Every { bytes, interval } => {
                unflushed_bytes >= bytes || self.flush.last_flush.elapsed() >= interval
            }
            SyncPolicy::OnClose => false,
        };
        let requested_position = self.state_page.requested_position();
        let asked = requested_position > self.flush.durable.position
            && (self.position >= requested_position || self.caught_up || unflushed_bytes >= GROUP_BYTES);
        if due || asked { self.flush_all() } else { Ok(()) }
    }

    /// Flushes everything followed to the disk and advances the durable position to the last whole unit of it.
    ///
    /// # Errors
    /// Fails if a flush failed: nothing more is durable than before, and the error says what happens next.
    pub fn flush_all(&mut self) -> Result<()> {
        if let Some(lasting_failure) = &self.flush.failure {
            return Err(lasting_failure.error(self.flush.durable.position));
        }
        if self.position < self.flush.flushed.position || !self.is_newest()? {
            return Ok(());
        }
        self.checksum_writer.store_sums(true)?;
        self.definitions.flush()?;
        let paths = self.segment_locator.paths.clone();
        let flushed = self.flush.files(&paths);
        let flushed =
            flushed.and_then(|()| self.definitions.sync().map_err(|e| (FlushedFile::Definitions, e)));
        if let Err((file, error)) = flushed {
            return Err(self.handle_flush_failure(file, error)?);
        }
        self.flush.flush_indexes(&paths);
        // Not the log's present length: the next run was looked at already.
        let definitions_bytes = self.definitions_bytes;
        let flushed = DurableMark { position: self.position, definitions_bytes, open_sum: None };
        let durable = self.last_unit_end;
        let stored = store_durable(&paths, &durable).and_then(|()| match self.flush.names_are_durable {
            true => Ok(()),
            // Once: this recorder made the file, or an earlier process made it and died before the flush.
            false => sync_dir(&paths.tape_dir),
        });
        if let Err(error) = stored {
            // The files are on the disk; only the word that says so is written once more.
            let errno = errno_of(&error);
            self.state_page.fail(errno, FlushedFile::Durable, false);
            self.flush.in_a_row += 1;
            let failure = DurabilityFailure { errno, file_path: paths.durable(), lasting: false };
            return Err(failure.error(self.flush.durable.position));
        }
        self.flush.names_are_durable = true;
        let flushed_before = self.flush.flushed.position;
        (self.flush.durable, self.flush.flushed) = (durable, flushed);
        self.flush.in_a_row = 0;
        if self.flush.recopy_limit.is_none_or(|suspect| self.position >= suspect) {
            self.flush.recopy_limit = None;
            self.state_page.set_mended();
        }
        self.state_page.set_durable(durable.position);
        let size = self.segment_locator.meta.segment_bytes;
        let live_index = self.position.0 / size;
        seal_segments(&paths, flushed_before.0 / size, live_index)?;
        self.flush.open_files.retain(|(flushed_file, _)| match flushed_file {
            FlushedFile::Segment(index) | FlushedFile::Checksums(index) => *index >= live_index,
            _ => false,
        });
        self.flush.last_flush = Instant::now();
        Ok(())
    }

    /// Returns whether this recorder follows the last opening of the tape. After a later opening it makes nothing more
    /// durable.
    ///
    /// # Errors
    /// Fails if a later writer than this thread's writer has opened the tape.
    fn is_newest(&self) -> Result<bool> {
        let (paths, tape) = (&self.segment_locator.paths, self.segment_locator.meta.id);
        match self.writer_epoch {
            Some(epoch) => check_newest(paths, tape, epoch).map(|()| true),
            // While a writer opens, its epoch is in the file and not yet on the page.
            None => {
                let (newest, epoch) = (newest_epoch(paths, tape)?, self.state_page.epoch());
                Ok(newest == epoch || newest == 0 || epoch == 0)
            }
        }
    }

    /// Restarts at the flushed position: a writer has opened the tape, and may have cut and replaced later frames.
    ///
    /// # Errors
    /// Fails if the dictionary log cannot be read.
    pub fn restart_at_durable(&mut self) -> Result<()> {
        let DurableMark { position, definitions_bytes, .. } = self.flush.flushed;
        let segment_start = Position(position.0 - position.0 % self.segment_locator.meta.segment_bytes);
        self.flush.open_files.clear();
        self.definitions.rewind(
            definitions_bytes,
            position,
            segment_start.max(self.segment_locator.oldest_position()?),
        )?;
        self.restart_at(segment_start);
        Ok(())
    }

    /// Flushes at the end of all; tries again where the failed range can be written again.
    pub fn sync_last(&mut self) -> Result<()> {
        let recorded_end = self.position;
        for _ in 0..PATIENCE {
            match self.flush_all() {
                Err(Error::DurabilityFailed { .. }) if !self.flush.is_lost() => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                    while self.position < recorded_end && self.step()? {}
                }
                other => return other,
            }
        }
        match self.flush_all() {
            // A recorder that is about to end writes nothing again.
            Err(Error::DurabilityFailed { path, durable, source, .. }) if !self.flush.is_lost() => {
                let consequence = "the rest is in shared memory; reopen the tape when the disk is mended, and before the \
                            machine is restarted, to have it written again";
                Err(Error::DurabilityFailed { path, durable, source, consequence })
            }
            other => other,
        }
    }

    /// Returns whether the recorder can still repair `error` by itself.
    pub fn is_mending(&self, error: &Error) -> bool {
        matches!(error, Error::DurabilityFailed { .. })
            && !self.flush.is_lost()
            && !self.flush.in_a_row.is_multiple_of(PATIENCE)
    }

    /// Gives durability up: another process has removed segment `index` before the recorder looked at it.
    pub fn give_up_durability(&mut self, index: u64) -> Error {
        let file = FlushedFile::Segment(index);
        let path = FlushedFile::path_of(file.to_word(), &self.segment_locator.paths);
        let failure = DurabilityFailure { errno: libc::ENOENT, file_path: path, lasting: true };
        let error = failure.error(self.flush.durable.position);
        if !self.flush.is_lost() {
            self.state_page.fail(libc::ENOENT, file, true);
            self.flush.failure = Some(failure);
        }
        error
    }

    /// Goes back to the flushed position if the hot segments have everything since. Otherwise gives durability up.
    pub(crate) fn handle_flush_failure(&mut self, file: FlushedFile, error: Error) -> Result<Error> {
        let errno = errno_of(&error);
        let size = self.segment_locator.meta.segment_bytes;
        let first_segment = self.flush.flushed.position.0 / size;
        let hot = match self.segment_locator.hot_place()? {
            Some(dir) => list_segments(&dir)?,
            None => Vec::new(),
        };
        let has_all_hot =
            (first_segment..self.position.0.div_ceil(size)).all(|index| hot.binary_search(&index).is_ok());
        let DurableMark { position, definitions_bytes, .. } = self.flush.flushed;
        // Without the dictionary log nothing is written again.
        let segment_start = Position(first_segment * size);
        let definitions_start = segment_start.max(self.segment_locator.oldest_position()?);
        let can_rewrite =
            has_all_hot && self.definitions.rewind(definitions_bytes, position, definitions_start).is_ok();
        let path = FlushedFile::path_of(file.to_word(), &self.segment_locator.paths);
        let failure = DurabilityFailure { errno, file_path: path, lasting: !can_rewrite };
        self.flush.open_files.clear();
        self.state_page.fail(errno, file, !can_rewrite);
        let error = failure.error(self.flush.durable.position);
        if can_rewrite {
            self.flush.in_a_row += 1;
            self.flush.suspect_to(self.position);
            self.restart_at(segment_start);
        } else {
            self.flush.failure = Some(failure);
        }
        Ok(error)
    }
}

fn errno_of(error: &Error) -> i32 {
    match error {
        Error::Io { source, .. } | Error::DiskFull { source, .. } => source.raw_os_error().unwrap_or(0),
        _ => 0,
    }
}
