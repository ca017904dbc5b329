//! A tape that begins at an origin: made as a tape whose beginning retention has removed, or found again.
//!
//! ```text
//!  run/origin ─▶ run/lineage ─▶ definitions.log ─▶ .crc, durable ─▶ first segment ─▶ tape.toml
//!  └──────────────── killed here: the next opening makes all of it again ───────┘   └▶ a tape, closed at its origin
//! ```
//!
//! Each file is flushed before the next one, and `tape.toml` makes it a tape. The opening that follows is an ordinary
//! one: it finds a tape that was closed at the origin.

use std::fs;

use unitape_model::{DefinitionTable, FrameHeader, LINE, Position};

use crate::disk::definitions::{DEFINITION_KINDS, encode_head, encode_record};
use crate::disk::durable::{DurableMark, store_durable};
use crate::disk::filler::fillers;
use crate::disk::layout::{
    HEADER_PAGE, SEGMENT_INDEX_MAX, SegmentHeader, TapeId, TapeManifest, TapePaths, list_segments,
    read_start, remove, segment_path, sync_dir,
};
use crate::disk::lineage::{Lineage, newest_epoch};
use crate::disk::map::{HeaderWordState, MappedSegment, SegmentAllocation};
use crate::disk::origin::OriginRecord;
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::state_page::StatePage;
use crate::disk::sys;
use crate::error::{Error, FileContext, OriginMismatch, Result};
use crate::trust::span::span_sum;
use crate::write::options::WriterOptions;

/// A definition, as the dictionary log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionRecord {
    /// Where the frame is on the tape.
    pub position: Position,
    /// The frame, with its stamp.
    pub frame: Vec<u8>,
}

/// The origin of a tape that does not begin at 0: the position, and a summary of the earlier part.
#[derive(Clone, Copy, Debug)]
pub struct TapeOrigin<'a> {
    /// The first unit is here, a multiple of the line.
    pub position: Position,
    /// Events (non-META frames) before that; at least 1, except where the position is 0.
    pub ordinal: u64,
    /// All definitions before that, in the order of the tape.
    pub definitions: &'a [DefinitionRecord],
    /// The epoch of the writer, at least 1 and greater than that of every writer that it fences.
    pub epoch: u64,
}

/// The epoch that an opening at an origin requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OriginEpoch {
    /// The tape was made just now, and its lineage has the epoch of this opening.
    pub is_begun: bool,
    /// The requested epoch; 0: the next one.
    pub requested_epoch: u64,
}

impl TapeOrigin<'_> {
    /// Checks that a tape with segments of this size can begin at the origin.
    ///
    /// # Errors
    /// Fails with the reason if it cannot.
    pub(crate) fn check(&self, options: &WriterOptions) -> Result<()> {
        let line = LINE as u64;
        let position = self.position.0;
        if !position.is_multiple_of(line) {
            return Err(Error::Option("the position of an origin must be a multiple of 64"));
        }
        if position / options.segment_bytes > SEGMENT_INDEX_MAX {
            return Err(Error::Option("the position of an origin is beyond what a tape can hold"));
        }
        if position == 0 && self.ordinal > 0 {
            return Err(Error::Option(
                "no event comes before position 0, so the ordinal of an origin there is 0",
            ));
        }
        if position > 0 && self.ordinal == 0 {
            return Err(Error::Option("an origin after position 0 must have an ordinal of at least 1"));
        }
        if self.ordinal > position / line {
            return Err(Error::Option("an origin cannot have more events before it than lines"));
        }
        if self.epoch == 0 || self.epoch > EPOCH_MAX {
            return Err(Error::Option("the epoch of an origin must be a number from 1 to 2^62"));
        }
        if self.epoch < options.epoch_min {
            return Err(Error::Option("the epoch of an origin must be at least `epoch_min`"));
        }
        self.check_definitions()
    }

    fn check_definitions(&self) -> Result<()> {
        let mut definitions = DefinitionTable::default();
        let mut covered = Position(0);
        for (index, DefinitionRecord { position, frame }) in self.definitions.iter().enumerate() {
            let position = *position;
            let bad_definition = |reason: String| Err(Error::BadDefinition { index, position, reason });
            let is_frame = frame.len() >= LINE && FrameHeader::read(frame).len_bytes() == frame.len();
            if !is_frame {
                return bad_definition("it is not one whole frame".into());
            }
            let header = FrameHeader::read(frame);
            if !DEFINITION_KINDS.contains(&header.kind()) || !header.is_meta() {
                return bad_definition(format!("{header} is no definition"));
            }
            if !position.0.is_multiple_of(LINE as u64) || !header.is_at(position) {
                return bad_definition("its stamp is that of another position".into());
            }
            if position < covered {
                return bad_definition(format!(
                    "it does not come after the one before it, which ends at {covered}"
                ));
            }
            if position.0 > self.position.0.saturating_sub(frame.len() as u64) {
                return bad_definition(format!("it does not end before the origin {}", self.position));
            }
            if let Err(fault) = definitions.admit_frame(frame) {
                return bad_definition(fault.to_string());
            }
            covered = position.plus(frame.len() as u64);
        }
        Ok(())
    }

    /// Makes the tape, or checks that the existing tape begins here and may be opened with this epoch. The caller has
    /// the lock; `created` says that there is no tape yet.
    ///
    /// # Errors
    /// Fails if the tape begins elsewhere, if the epoch is not greater than the tape's, or if the system refuses.
    pub(crate) fn prepare_tape(
        &self,
        paths: &TapePaths,
        id: TapeId,
        options: &WriterOptions,
        created: bool,
    ) -> Result<OriginEpoch> {
        let record = match OriginRecord::load(paths)? {
            Some(record) if record.tape != id && created => {
                return Err(Error::ForeignTape {
                    path: OriginRecord::path(paths),
                    tape_id: record.tape,
                    expected_id: id,
                });
            }
            // It was copied into the directory of another tape.
            other => other.filter(|record| record.tape == id),
        };
        let newest = match newest_epoch(paths, id) {
            // The opening decides how to treat such a lineage.
            Err(Error::Damage { .. } | Error::ForeignTape { .. }) => 0,
            other => other?,
        };
        let last_epoch = record.map_or(0, |record| record.epoch);
        let is_same = self.epoch == last_epoch;
        let epoch_taken = Error::EpochTaken {
            path: paths.tape_dir.clone(),
            epoch: self.epoch,
            newest: newest.max(last_epoch),
        };
        let ours =
            OriginRecord { tape: id, position: self.position, ordinal: self.ordinal, epoch: self.epoch };
        if created {
            if self.epoch < last_epoch || self.epoch < newest || self.epoch == newest && !is_same {
                return Err(epoch_taken);
            }
            if let Some(record) = record.filter(|record| is_same && *record != ours) {
                return Err(unfinished_origin(paths, &record));
            }
            if self.position > Position(0) {
                let meta = TapeManifest { id, segment_bytes: options.segment_bytes };
                self.make_tape(paths, &meta)?;
                return Ok(OriginEpoch { is_begun: true, requested_epoch: 0 });
            }
            ours.store(paths)?;
            return Ok(OriginEpoch { is_begun: false, requested_epoch: self.epoch });
        }
        self.check_begins_here(paths, record)?;
        if is_same {
            return Ok(OriginEpoch::default());
        }
        let asked = match record {
            // The last writer was not opened at an origin, and the caller knows its epoch.
            None if self.epoch == newest => 0,
            _ if self.epoch > newest.max(last_epoch) => self.epoch,
            _ => return Err(epoch_taken),
        };
        // Before the lineage: from here on the opener of before is refused.
        ours.store(paths)?;
        Ok(OriginEpoch { is_begun: false, requested_epoch: asked })
    }

    /// Makes sure that the tape that is there begins at this origin, or did before retention removed segments.
    fn check_begins_here(&self, paths: &TapePaths, record: Option<OriginRecord>) -> Result<()> {
        let (position, ordinal) = match record {
            Some(record) => (record.position, record.ordinal),
            None => {
                let segment_locator =
                    SegmentLocator::from_manifest(paths.clone(), TapeManifest::load(&paths.tape_dir)?);
                let oldest = segment_locator.oldest_position()?;
                let first_segment = segment_locator.segment(oldest.0 / segment_locator.meta.segment_bytes)?;
                // Without a segment the opening reports the missing data.
                (oldest, first_segment.map_or(self.ordinal, |(_, first_ordinal)| first_ordinal))
            }
        };
        if (position, ordinal) == (self.position, self.ordinal) {
            return Ok(());
        }
        Err(Error::OtherOrigin(Box::new(OriginMismatch {
            tape_dir: paths.tape_dir.clone(),
            position,
            ordinal,
            wanted_position: self.position,
            wanted_ordinal: self.ordinal,
        })))
    }

    /// Makes a closed tape that ends at the origin.
    fn make_tape(&self, paths: &TapePaths, meta: &TapeManifest) -> Result<()> {
        for path in [paths.hot(), paths.hot_mark()] {
            if path.symlink_metadata().is_ok() {
                let reason = "`run/` names the hot segments of an earlier tape; remove `run/` or name another directory";
                return Err(Error::NotATape { path: paths.tape_dir.clone(), reason });
            }
        }
        let index = self.position.0 / meta.segment_bytes;
        self.discard_unfinished(paths)?;
        let Self { position, ordinal, epoch, .. } = *self;
        OriginRecord { tape: meta.id, position, ordinal, epoch }.store(paths)?;
        // What the page says is of an earlier tape.
        remove(&paths.run().join(StatePage::NAME))?;
        Lineage::begin(meta.id, epoch, position).store(paths)?;
        sys::make_dir(&paths.segments()).with_context("make", &paths.segments())?;
        let definitions_bytes = self.write_definitions(paths, meta)?;
        let temp = paths.run().join("making-first");
        let header = SegmentHeader { meta: *meta, index, first_ordinal: ordinal };
        let mut segment = MappedSegment::create(&temp, &header, SegmentAllocation::Ready)?;
        let length = position.0 - segment.base_position.0;
        for (offset, filler) in fillers(length).rev() {
            segment.commit(offset, filler);
        }
        sys::sync_data(&segment.file).with_context("flush", &temp)?;
        let open_sum = write_sums(paths, meta, &segment, length)?;
        store_durable(paths, &DurableMark { position, definitions_bytes, open_sum: Some(open_sum) })?;
        let path = segment_path(&paths.segments(), index);
        sys::rename(&temp, &path).with_context("rename", &path)?;
        segment.path = path;
        sync_dir(&paths.segments())?;
        sync_dir(&paths.tape_dir)?;
        meta.store(paths)
    }

    /// Writes the dictionary log and returns its bytes.
    fn write_definitions(&self, paths: &TapePaths, meta: &TapeManifest) -> Result<u64> {
        let mut log = encode_head(meta).to_vec();
        for DefinitionRecord { position, frame } in self.definitions {
            log.extend_from_slice(&encode_record(*position, frame));
            log.extend_from_slice(frame);
        }
        let path = paths.definitions();
        remove(&path)?;
        let file = sys::open_or_make(&path).with_context("create", &path)?;
        sys::write_at(&file, &log, 0).with_context("write", &path)?;
        sys::sync_data(&file).with_context("flush", &path)?;
        Ok(log.len() as u64)
    }

    /// Removes the files of an opening that died before it had made the tape, and no other files.
    fn discard_unfinished(&self, paths: &TapePaths) -> Result<()> {
        let Some(record) = OriginRecord::load(paths)? else { return Ok(()) };
        check_unfinished(paths, &record)?;
        let segments_dir = paths.segments();
        for entry in fs::read_dir(&segments_dir).into_iter().flatten() {
            remove(&entry.with_context("list", &segments_dir)?.path())?;
        }
        remove(&paths.durable())?;
        remove(&paths.definitions())
    }
}

/// Greatest epoch that may be requested; later openings have later epochs.
const EPOCH_MAX: u64 = 1 << 62;

/// Names that an opening at an origin makes before there is a tape.
const UNFINISHED_NAMES: [&str; 4] = ["run", "segments", "definitions.log", "durable"];

/// Checks that the directory of a new tape is empty, or has only files of an opening at an origin that died.
pub(crate) fn check_empty(paths: &TapePaths, origin: Option<&TapeOrigin<'_>>) -> Result<()> {
    let dir = &paths.tape_dir;
    let record = OriginRecord::load(paths)?.filter(|record| record.position > Position(0));
    if let Some(record) = &record {
        check_unfinished(paths, record)?;
    }
    for entry in fs::read_dir(dir).with_context("list", dir)? {
        let name = entry.with_context("list", dir)?.file_name();
        let is_left = record.is_some() && UNFINISHED_NAMES.iter().any(|left| name == *left);
        if name != "run" && !is_left {
            return Err(Error::NotATape {
                path: dir.into(),
                reason: "it holds other things and no tape.toml",
            });
        }
    }
    let Some(record) = record else { return Ok(()) };
    match origin {
        Some(origin) if origin.position > Position(0) => Ok(()),
        _ => Err(unfinished_origin(paths, &record)),
    }
}

/// Checks that a tape without `tape.toml` has no units. Without units an opening at an origin died; otherwise a user
/// has removed that file.
fn check_unfinished(paths: &TapePaths, record: &OriginRecord) -> Result<()> {
    let segments_dir = paths.segments();
    for index in list_segments(&segments_dir)? {
        let path = segment_path(&segments_dir, index);
        let page = read_start(&path, HEADER_PAGE).with_context("read", &path)?;
        let header = SegmentHeader::read(&page).filter(|header| header.index == index);
        let is_empty = match header {
            Some(SegmentHeader { meta, .. }) if record.position.0 / meta.segment_bytes == index => {
                let offset = record.position.0 % meta.segment_bytes;
                let segment = MappedSegment::map(&path, &meta, index, false);
                matches!(segment, Ok(Some(segment)) if segment.header_state(offset) == HeaderWordState::Nothing)
            }
            _ => false,
        };
        if !is_empty {
            let reason = "tape.toml is missing, and segments are there; `unitape tape repair DIR --apply` makes it again";
            return Err(Error::NotATape { path: paths.tape_dir.clone(), reason });
        }
    }
    Ok(())
}

fn unfinished_origin(paths: &TapePaths, record: &OriginRecord) -> Error {
    let &OriginRecord { position, ordinal, epoch, .. } = record;
    Error::Unfinished { path: paths.tape_dir.clone(), position, ordinal, epoch }
}

/// Writes the checksums of the first `length` bytes of a segment, and returns the checksum of the bytes in its open
/// span.
fn write_sums(paths: &TapePaths, meta: &TapeManifest, segment: &MappedSegment, length: u64) -> Result<u32> {
    let (path, span) = (paths.crc(segment.segment_index), meta.span());
    remove(&path)?;
    if length == 0 {
        return Ok(0);
    }
    // SAFETY: `length` is less than the segment's size, and the fillers that `make_tape` has committed cover it.
    let bytes = unsafe { segment.bytes(0, length as usize) };
    let sums: Vec<u8> =
        bytes.chunks(span as usize).flat_map(|part| span_sum(part, span).to_le_bytes()).collect();
    let file = sys::open_or_make(&path).with_context("create", &path)?;
    sys::write_at(&file, &sums, 0).with_context("write", &path)?;
    sys::sync_data(&file).with_context("flush", &path)?;
    Ok(crc32c::crc32c(&bytes[(length - length % span) as usize..]))
}
