//! Batches of a merge of tapes go onto its tape after their records, so that a merge that was killed resumes.

use crate::account::retention_checkpoint;
use crate::error::Error;
use crate::pipeline::merge::output::MergedTape;
use crate::pipeline::merge::state::{MergeRecord, MergeStateLog};
use std::path::Path;
use unitape_model::{FrameHeader, Position, frames};
use unitape_tape::Reader;

/// The records of a merge, and what its tape has after the last of them.
#[derive(Debug)]
pub struct MergeRecorder {
    pub(super) log: MergeStateLog,
    /// The tape has frames after the last record: those of the merge must be the same.
    pub(super) written_frames: Option<WrittenFrames>,
}

/// Frames that the tape has already.
#[derive(Debug)]
pub struct WrittenFrames {
    pub(super) reader: Reader,
    pub(super) end_position: Position,
}

impl MergeRecorder {
    /// Puts the batch on the tape, after the record of it.
    ///
    /// # Errors
    /// Fails if the disk refuses, or if the tape has other frames there.
    pub fn flush(&mut self, tape: &mut MergedTape) -> Result<(), Error> {
        self.compare_written(tape)?;
        if tape.batch.is_empty() {
            return Ok(());
        }
        let extent = batch_extent(tape);
        self.record(tape, extent.end_offset)?;
        let batch = &tape.batch;
        let before = |limit: u64| {
            let mut cut = (0, 0);
            for (offset, header, frame) in frames(batch) {
                let frame_end = (offset + frame.len()) as u64;
                if frame_end > limit {
                    break;
                }
                cut = (frame_end, cut.1 + u64::from(!header.is_meta()));
            }
            cut
        };
        let mut claim = tape.writer.claim(batch.len() as u64, before, extent.ordinals)?;
        claim.write_frames(batch)?;
        claim.publish();
        assert_eq!(tape.writer.end().0, extent.end_offset, "the record says where the batch ends");
        tape.batch.clear();
        Ok(())
    }

    /// Records the state with the tape's end there.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn record(&mut self, tape: &mut MergedTape, end: u64) -> Result<(), Error> {
        let mut record = std::mem::take(&mut tape.new_records);
        (record.end, record.raw) = (end, tape.account.raw_bytes);
        record.user_messages = tape.merge_state.user_messages;
        record.progress.clone_from(&tape.merge_state.progress);
        self.log.append(&record)?;
        tape.merge_state.apply(record);
        Ok(())
    }

    /// Compares the batch with the tape after the last record; frames that the tape lacks stay in the batch.
    fn compare_written(&mut self, tape: &mut MergedTape) -> Result<(), Error> {
        let Some(WrittenFrames { reader, end_position: end }) = &mut self.written_frames else {
            return Ok(());
        };
        let mut compared_bytes = 0;
        for (offset, header, frame) in frames(&tape.batch) {
            if reader.position() >= *end {
                break;
            }
            let written_frame = reader.next()?;
            let is_same = written_frame.as_ref().is_some_and(|written| {
                let unstamped = FrameHeader::new_unstamped(
                    written.header.kind(),
                    written.header.flags(),
                    written.header.lines(),
                );
                unstamped == header && written.bytes[8..] == frame[8..]
            });
            if !is_same {
                let position = written_frame.map_or(*end, |written| written.position);
                return Err(Error::Inconsistent { position, reason: OTHER_FRAMES.to_owned() });
            }
            compared_bytes = offset + frame.len();
        }
        let reached = reader.position() >= *end;
        tape.batch.drain(..compared_bytes);
        if reached {
            self.written_frames = None;
            tape.raw_log.release()?;
        }
        Ok(())
    }

    /// Fails if the tape has frames that the merge did not make; all inputs must be placed up to their targets.
    ///
    /// # Errors
    /// Fails if the tape has such frames.
    pub fn refuse_rest(&self) -> Result<(), Error> {
        match &self.written_frames {
            Some(written) if written.reader.position() < written.end_position => {
                let position = written.reader.position();
                Err(Error::Inconsistent { position, reason: OTHER_FRAMES.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Closes the tape, and keeps the state and the account of all of it in one record.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn close(self, mut tape: MergedTape, dir: &Path) -> Result<(), Error> {
        tape.raw_log.sync()?;
        let (end, id) = (tape.writer.end(), tape.writer.meta().id.to_string());
        tape.writer.close()?;
        let fresh = MergeRecord {
            end: end.0,
            raw: tape.account.raw_bytes,
            progress: tape.merge_state.progress.clone(),
            user_messages: tape.merge_state.user_messages,
            ..tape.new_records
        };
        tape.merge_state.apply(fresh);
        tape.merge_state.account = Some(retention_checkpoint::kept_account(&tape.account, &id, end)?);
        MergeStateLog::replace(dir, &tape.merge_state)
    }
}

/// Where a batch will end on the tape, and its events.
#[derive(Clone, Copy, Debug)]
struct BatchExtent {
    end_offset: u64,
    ordinals: u64,
}

/// Computes where the batch will end. A frame that does not fit its segment begins the next segment.
fn batch_extent(tape: &MergedTape) -> BatchExtent {
    let (segment_bytes, start) = (tape.writer.meta().segment_bytes, tape.writer.end().0);
    let mut extent = BatchExtent { end_offset: start, ordinals: 0 };
    for (_, header, frame) in frames(&tape.batch) {
        let bytes = frame.len() as u64;
        if extent.end_offset % segment_bytes + bytes > segment_bytes {
            extent.end_offset = extent.end_offset.next_multiple_of(segment_bytes);
        }
        extent.end_offset += bytes;
        extent.ordinals += u64::from(!header.is_meta());
    }
    extent
}

const OTHER_FRAMES: &str = "the tape has frames that this merge did not make; use a new tape";
