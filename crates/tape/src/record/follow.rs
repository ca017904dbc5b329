//! The recorder behind the writer: dictionary log, checksums, durable position, and in a hot tape the copy
//! on the disk.
//!
//! It knows the tape only through its files, so it can be a thread of the writer or a process of its own. After
//! a death it begins again at the segment of the durable position and does everything from there once more;
//! whatever is there already comes out the same.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use unitape_model::Position;

use crate::disk::definitions::{DefinitionLog, LogRecoveryLimits};
use crate::disk::durable::DurableMark;
use crate::disk::end::{committed_bytes, find_end};
use crate::disk::failure::FlushedFile;
use crate::disk::layout::{SegmentHeader, list_segments, remove, segment_path};
use crate::disk::lock::FileLock;
use crate::disk::map::{HeaderWordState, MappedSegment, SegmentAllocation};
use crate::disk::seal::{seal_segments, unseal};
use crate::disk::segment_index::{self, IndexBuilder};
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::state_page::StatePage;
use crate::disk::{segment_pool, sys};
use crate::error::{Error, FileContext, Result};
use crate::record::copy::{SegmentCopy, SpareCopy};
use crate::record::copy_thread::{CopyJob, CopyThread, ON_THE_WAY_MAX};
use crate::record::flush::{self, FlushState, SyncPolicy};
use crate::record::recorder_run::{PIECE_BYTES, RecordedExtent};
use crate::record::sums::ChecksumWriter;
use crate::retention::eligibility::RemovalOptions;
use crate::retention::enforce::RetentionEnforcer;
use crate::trust::segment_sums::check_copy;

mod sync;

/// Runs the recorder of a hot tape as a process of its own, until `stop` is set and all is recorded.
///
/// Waits for a writer as long as it must; a writer may come and go.
///
/// # Errors
/// Fails at an error of the lock or the disk, and at damage. Everything recorded stays.
pub fn record(dir: &Path, sync: SyncPolicy, removal: RemovalOptions, stop: &AtomicBool) -> Result<()> {
    let segment_locator = SegmentLocator::open(dir)?;
    sys::make_dir(&segment_locator.paths.run()).with_context("make", &segment_locator.paths.run())?;
    let mut recorder = TapeRecorder::open(segment_locator, sync, 2)?;
    recorder.set_removal(removal);
    let mut quiet = 0u32;
    loop {
        // Relaxed: a wish, nothing is read under it.
        let stopping = stop.load(Ordering::Relaxed);
        let has_moved = match recorder.step().and_then(|moved| recorder.housekeep().map(|()| moved)) {
            Err(e) if recorder.is_mending(&e) => {
                std::thread::sleep(MENDING);
                continue;
            }
            other => other?,
        };
        quiet = if has_moved { 0 } else { quiet.saturating_add(1) };
        if !has_moved {
            if stopping {
                return recorder.finish();
            }
            // A writer that closes waits for this, whatever the policy.
            if quiet == 32 && recorder.position > recorder.flush.flushed.position {
                recorder.sync_last()?;
            }
            std::thread::sleep(IDLE);
        }
    }
}

/// Pause of a recorder that has caught up; it looks rarely, so that the writer's lines stay with the writer.
pub(crate) const IDLE: Duration = Duration::from_millis(1);

/// Pause before the recorder writes again the data that a flush has lost.
pub(crate) const MENDING: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct TapeRecorder {
    /// The copier is the first field, so that it is dropped first: it reads from `source` while it has something to
    /// write.
    copier: Option<CopyThread>,
    pub(crate) segment_locator: SegmentLocator,
    pub(crate) sync_policy: SyncPolicy,
    keep_segments: u64,
    /// Followed up to here.
    pub position: Position,
    /// Bytes of the definitions before that.
    pub(crate) definitions_bytes: u64,
    /// The last whole unit of that; never before the durable one.
    pub(crate) last_unit_end: DurableMark,
    /// Given to the copier, in their order.
    on_the_way: VecDeque<RecordedExtent>,
    /// The run after those, looked at and not for the copier.
    next_extent: Option<RecordedExtent>,
    source: Option<MappedSegment>,
    segment_copy: Option<Arc<SegmentCopy>>,
    spare_copy: SpareCopy,
    pub(crate) checksum_writer: ChecksumWriter,
    /// Of the segment that is followed.
    index_builder: IndexBuilder,
    first_ordinal: u64,
    pub(crate) definitions: DefinitionLog,
    pub(crate) state_page: StatePage,
    pub(crate) flush: FlushState,
    /// The last step ended where nothing more was committed.
    pub(crate) caught_up: bool,
    /// The epoch of the writer whose thread this is; `None` in a recorder process, where writers change.
    pub(crate) writer_epoch: Option<u64>,
    /// The epoch whose frames it follows.
    epoch: u64,
    retention: RetentionEnforcer,
    idle_rounds: u32,
    _lock: FileLock,
}

impl TapeRecorder {
    pub fn open(live: SegmentLocator, sync: SyncPolicy, keep_segments: u64) -> Result<Self> {
        let mut lock = FileLock::acquire(&live.paths.recorder_lock())?;
        lock.sign(&format!("pid {}\n", std::process::id()))?;
        sys::make_dir(&live.paths.segments()).with_context("make", &live.paths.segments())?;
        // A recorder that died may have left its spare copy, or an index without a name.
        remove(&SpareCopy::path(&live))?;
        remove(&segment_index::temp_path(&live.paths))?;
        let size = live.meta.segment_bytes;
        let mut flush = flush::initial_state(&live)?;
        let durable = flush.durable;
        // The writer's recovery has cut everything beyond the tape's end; the log is cut against the same end.
        let tape_end = find_end(&live, durable.position)?;
        let mut first_unsealed = durable.position.0 / size;
        if durable.position == Position(0) {
            first_unsealed = live.indices()?.first().copied().unwrap_or(0);
        }
        let definitions_start = durable.position.max(Position(first_unsealed * size));
        let bounds = LogRecoveryLimits {
            durable_bytes: durable.definitions_bytes,
            tape_end,
            cuts_broken_records: true,
        };
        let mut definitions = DefinitionLog::open(&live.paths, &live.meta, definitions_start, bounds)?;
        let state = StatePage::open(&live.paths)?;
        let epoch = state.epoch();
        // Before the first step, which may have nothing to do until a writer that waits for this continues.
        state.set_recorded(durable.position);
        if flush.take_over(&live.paths, &state, !lock.stale_holder.is_empty(), tape_end)? {
            definitions.rewind(durable.definitions_bytes, durable.position, definitions_start)?;
        }
        let oldest = Position(live.indices()?.first().copied().unwrap_or(0).saturating_mul(size));
        state.publish_oldest(oldest, oldest);
        // A recorder that died in between, or that did not seal, may have left segments open.
        seal_segments(&live.paths, oldest.0 / size, durable.position.0 / size)?;
        let sums = ChecksumWriter::new(&live.meta);
        let index = IndexBuilder::new(&live.meta);
        Ok(Self {
            copier: None,
            position: Position(first_unsealed * size),
            definitions_bytes: definitions.bytes_passed(),
            last_unit_end: durable,
            on_the_way: VecDeque::with_capacity(ON_THE_WAY_MAX),
            next_extent: None,
            segment_locator: live,
            sync_policy: sync,
            keep_segments,
            source: None,
            segment_copy: None,
            spare_copy: SpareCopy::default(),
            checksum_writer: sums,
            index_builder: index,
            first_ordinal: 0,
            definitions,
            state_page: state,
            flush,
            caught_up: false,
            writer_epoch: None,
            epoch,
            retention: RetentionEnforcer::default(),
            idle_rounds: 0,
            _lock: lock,
        })
    }

    /// Follows for about a mebibyte; false if there was nothing to follow.
    ///
    /// After an error the segment is done again from its start: everything in it comes out the same.
    pub fn step(&mut self) -> Result<bool> {
        let result = self.try_step();
        if result.is_err() {
            self.restart_segment();
        }
        result
    }

    fn try_step(&mut self) -> Result<bool> {
        self.caught_up = true;
        let epoch = self.state_page.epoch();
        if epoch != self.epoch {
            if let Some(own_epoch) = self.writer_epoch.filter(|writer_epoch| epoch > *writer_epoch) {
                // The copies and the checksums are the later writer's.
                return Err(Error::Fenced {
                    path: self.segment_locator.paths.tape_dir.clone(),
                    epoch: own_epoch,
                    newest: epoch,
                });
            }
            self.restart_at_durable()?;
            self.epoch = epoch;
        }
        if self.source.is_none() && !self.enter_segment()? {
            return Ok(false);
        }
        self.give_pieces()?;
        if let Some(piece) = self.on_the_way.pop_front() {
            if let Some(copier) = &mut self.copier {
                copier.wait_oldest()?;
            }
            return self.pass_piece(piece).map(|()| true);
        }
        let Some(piece) = self.next_extent.take() else { return Ok(false) };
        let source = self.source.as_ref().expect("entered");
        let data_offset = self.position.0 - source.base_position.0;
        if piece.end_offset == data_offset && piece.pad.is_none() && piece.end_offset < source.data_bytes {
            self.idle_rounds += 1;
            if self.idle_rounds.is_multiple_of(16)
                && let Some(moved_source) = self.segment_locator.remap_moved(source)?
                // A hot segment that another process has removed is followed further; the file found instead is its
                // copy.
                && !(self.segment_copy.as_ref().is_some_and(|copy| copy.segment.path == moved_source.path)
                    && self.segment_locator.hot_place()?.is_some_and(|hot| source.path.starts_with(hot)))
            {
                self.take_source(moved_source)?;
            }
            return Ok(false);
        }
        if let Some(copy) = &self.segment_copy {
            copy.copy_range(source, data_offset, piece.end_offset)?;
        }
        self.pass_piece(piece).map(|()| true)
    }

    /// Looks at the next frames, and gives the copier large pieces as long as it accepts more.
    fn give_pieces(&mut self) -> Result<()> {
        let source = self.source.as_ref().expect("entered");
        while self.next_extent.is_none() && self.on_the_way.len() < ON_THE_WAY_MAX {
            let piece_start = match self.on_the_way.back() {
                Some(last) if !last.has_more => break,
                Some(last) => last.end_offset,
                None => self.position.0 - source.base_position.0,
            };
            // A small piece is soon found, and the disk waits for it.
            let waits = self.segment_copy.is_some() && self.on_the_way.is_empty();
            let at_most = if waits { APART_MIN } else { PIECE_BYTES };
            let piece = match RecordedExtent::scan(
                piece_start,
                at_most,
                source,
                &mut self.definitions,
                &mut self.index_builder,
            ) {
                // Pieces on the way come first; the error is met again after them.
                Err(_) if !self.on_the_way.is_empty() => break,
                other => other?,
            };
            let much = piece.end_offset - piece_start >= APART_MIN;
            match &self.segment_copy {
                Some(copy) if much && start_copier(&mut self.copier) => {
                    let (copy, to) = (copy.clone(), piece.end_offset);
                    let load =
                        CopyJob { copy, source: source.view(), from_offset: piece_start, to_offset: to };
                    if let Some(copier) = &mut self.copier {
                        copier.submit(load);
                    }
                    self.on_the_way.push_back(piece);
                    if to >= source.data_bytes / 2 {
                        self.spare_copy.make_copy(&self.segment_locator, source.segment_index + 1);
                    }
                }
                _ => self.next_extent = Some(piece),
            }
        }
        Ok(())
    }

    /// Continues after a piece, which a hot tape has copied.
    fn pass_piece(&mut self, piece: RecordedExtent) -> Result<()> {
        let source = self.source.as_ref().expect("entered");
        let (base, from) = (source.base_position, self.position.0 - source.base_position.0);
        // SAFETY: every frame of the range was seen committed.
        let bytes = unsafe { source.bytes(from, (piece.end_offset - from) as usize) };
        let (before, tail_bytes) =
            bytes.split_at(piece.last_unit_end.map_or(0, |mark| mark.position.0 - base.0 - from) as usize);
        self.checksum_writer.add_bytes(before)?;
        let open_sum = Some(self.checksum_writer.open_sum());
        self.checksum_writer.add_bytes(tail_bytes)?;
        let full = piece.pad.is_some() || piece.end_offset == source.data_bytes;
        self.idle_rounds = 0;
        self.caught_up = !full && !piece.has_more && self.on_the_way.is_empty();
        if let Some(pad) = piece.pad {
            if let Some(copy) = &self.segment_copy {
                copy.segment.commit(piece.end_offset, pad);
            }
            self.checksum_writer.add_bytes(&pad.0.to_le_bytes())?;
        }
        self.definitions.flush()?;
        // Before the end of the segment, which may flush.
        self.definitions_bytes = piece.definitions_bytes;
        if let Some(unit_end) = piece.last_unit_end
            && unit_end.position > self.last_unit_end.position
        {
            self.last_unit_end = DurableMark { open_sum, ..unit_end };
        }
        if full {
            if self.last_unit_end.position == base.plus(piece.end_offset) {
                // A pad belongs to no unit: the last whole unit before it also ends after it.
                self.last_unit_end.position = base.plus(self.segment_locator.meta.segment_bytes);
                self.last_unit_end.open_sum = Some(0);
            }
            self.finish_segment()?;
        } else {
            // A reader of durable data waits for its sums, also for that of its last span.
            self.checksum_writer.store_sums(self.position < self.flush.flushed.position)?;
            self.position = self.position.max(base.plus(piece.end_offset));
        }
        self.state_page.set_recorded(self.position);
        if full && self.copier.is_some() && self.enter_segment()? {
            // The disk has something to do while what there is now is flushed.
            self.give_pieces()?;
        }
        Ok(())
    }

    /// Begins the segment again: everything in it comes out the same.
    fn restart_segment(&mut self) {
        self.definitions.rewind_to_mark();
        self.restart_at(Position(
            self.position.0 - self.position.0 % self.segment_locator.meta.segment_bytes,
        ));
    }

    /// Sets the clock for finishing and removing segments, and the hook that is called before a removal.
    pub fn set_removal(&mut self, removal: RemovalOptions) {
        self.retention = RetentionEnforcer::new(removal);
    }

    /// Says whose recorder this is.
    pub fn set_writer_epoch(&mut self, epoch: u64) {
        self.writer_epoch = Some(epoch);
    }

    /// Does the periodic work: flushes if a flush is due, and removes segments beyond the retention limits.
    pub fn housekeep(&mut self) -> Result<()> {
        self.sync_if_due()?;
        let Some(keep) =
            self.retention.announce_removals(&self.segment_locator, &self.state_page, self.position)?
        else {
            return Ok(());
        };
        // Recovery begins at the durable position, and the dictionary log must have what goes.
        let retained_from = Position(keep * self.segment_locator.meta.segment_bytes);
        if self.flush.durable.position < retained_from {
            if self.flush.is_lost() {
                return Ok(());
            }
            self.flush_all()?;
            // A unit that begins before that, and is not whole yet.
            if self.flush.durable.position < retained_from {
                return Ok(());
            }
        }
        self.retention.remove(&self.segment_locator, &self.state_page, keep);
        Ok(())
    }

    /// Runs the last flush and the last pass, when there is nothing more to follow.
    pub fn finish(&mut self) -> Result<()> {
        self.sync_last()?;
        self.housekeep()?;
        self.retention.save_state(&self.segment_locator);
        Ok(())
    }

    /// Restarts at the segment base `position`, because later writes cannot be trusted.
    pub fn restart_at(&mut self, position: Position) {
        self.source = None;
        self.segment_copy = None;
        self.on_the_way.clear();
        self.next_extent = None;
        if let Some(copier) = &mut self.copier {
            copier.wait_all();
        }
        self.position = position;
        // Those of segments that come again are made again.
        self.flush.forget_indexes(position.0 / self.segment_locator.meta.segment_bytes);
        self.definitions_bytes = self.definitions.bytes_passed();
        // Units before the position stay whole. Later ones are found again, as far as they are not flushed.
        if self.last_unit_end.position > position {
            self.last_unit_end = self.flush.durable;
        }
    }

    /// Begins the segment of the position; false if it is not there yet.
    fn enter_segment(&mut self) -> Result<bool> {
        self.definitions.mark();
        let index = self.position.0 / self.segment_locator.meta.segment_bytes;
        let Some((segment, first_ordinal)) = self.segment_locator.segment(index)? else {
            self.segment_locator.explain_missing(index)?;
            if self.segment_locator.is_lost(index, || Ok(self.state_page.published_end().0))? {
                return Err(self.give_up_durability(index));
            }
            return Ok(false);
        };
        if self.flush.is_full() && !self.flush.is_lost() {
            self.flush_all()?;
        }
        self.checksum_writer.begin_segment(&self.segment_locator.paths, &segment, &self.flush.durable)?;
        if let Some((file, path)) = &self.checksum_writer.sums_file {
            self.flush.hold_open(FlushedFile::Checksums(index), file, path)?;
        }
        self.position = segment.base_position;
        self.index_builder.begin_segment();
        self.first_ordinal = first_ordinal;
        let header = SegmentHeader { meta: self.segment_locator.meta, index, first_ordinal };
        self.take_source_with(segment, &header)?;
        Ok(true)
    }

    fn take_source(&mut self, segment: MappedSegment) -> Result<()> {
        let (_, first_ordinal) =
            MappedSegment::open(&segment.path, &self.segment_locator.meta, segment.segment_index, false)?
                .ok_or_else(|| {
                    Error::damage(&segment.path, 0, "the segment went away while it was opened")
                })?;
        let header =
            SegmentHeader { meta: self.segment_locator.meta, index: segment.segment_index, first_ordinal };
        self.take_source_with(segment, &header)
    }

    fn take_source_with(&mut self, source: MappedSegment, header: &SegmentHeader) -> Result<()> {
        source.read_once();
        let path = segment_path(&self.segment_locator.paths.segments(), header.index);
        self.segment_copy = if source.path == path {
            None
        } else {
            unseal(&path)?;
            let base = Position(header.index * self.segment_locator.meta.segment_bytes);
            let existing_copy = match self.flush.is_suspect(base) {
                // The file may differ from the disk. The segment gets a new file, on other blocks.
                true => None,
                false => MappedSegment::open(&path, &self.segment_locator.meta, header.index, true)?,
            };
            let (segment, have) = match existing_copy {
                Some((segment, _)) => {
                    segment.write_header(header);
                    let committed_end = committed_bytes(&segment);
                    check_copy(&self.segment_locator, &segment, committed_end, &self.flush.durable)?;
                    if committed_end < segment.data_bytes
                        && segment.header_state(committed_end) != HeaderWordState::Pad
                    {
                        // A copy that was cut off: its first word is missing, the rest may be there.
                        segment.reserve_blocks(committed_end, SegmentAllocation::Ready)?;
                        segment.zero_from(committed_end);
                    }
                    (segment, committed_end)
                }
                None => {
                    let covered = self.flush.durable.position.0.saturating_sub(base.0).min(source.data_bytes);
                    // SAFETY: below the durable position, so committed, and within the segment.
                    let durable = unsafe { source.bytes(0, covered as usize) };
                    match self.spare_copy.install(&self.segment_locator, header, path, durable) {
                        Ok(segment) => (segment, covered),
                        Err(e) if covered > 0 => {
                            return Err(self.handle_flush_failure(FlushedFile::Segment(header.index), e)?);
                        }
                        Err(e) => return Err(e),
                    }
                }
            };
            Some(Arc::new(SegmentCopy::new(segment, have)))
        };
        let copied_segment = self.segment_copy.as_ref().map_or(&source, |copy| &copy.segment);
        self.flush.hold_open(
            FlushedFile::Segment(header.index),
            &copied_segment.file,
            &copied_segment.path,
        )?;
        self.source = Some(source);
        Ok(())
    }

    /// Writes the index of segment `index`, which is finished and has its checksums. A tape is whole without it.
    fn store_index(&mut self, index: u64) {
        let (paths, meta) = (&self.segment_locator.paths, self.segment_locator.meta);
        let Some(sums) = segment_index::load_sums_crc(paths, &meta, index) else { return };
        let header = SegmentHeader { meta, index, first_ordinal: self.first_ordinal };
        let bytes = self.index_builder.finish(&header, sums);
        self.flush.write_index(paths, index, bytes);
    }

    fn finish_segment(&mut self) -> Result<()> {
        let index = self.checksum_writer.segment_index;
        self.checksum_writer.add_pad_zeros()?;
        self.checksum_writer.store_sums(true)?;
        let time = self.retention.finish_time();
        self.checksum_writer.set_finish_time(time)?;
        self.retention.add_finished(index, time);
        self.store_index(index);
        if let Some(source) = self.source.take() {
            self.segment_locator.return_segment(source);
        }
        if let Some(copy) = self.segment_copy.take() {
            sys::begin_write_back(&copy.segment.file);
        }
        self.position = Position((index + 1) * self.segment_locator.meta.segment_bytes);
        // With the position: after an error below, the recorder begins again with the next segment, not with this one.
        self.definitions.mark();
        if let Some(hot) = self.segment_locator.hot_place()? {
            let old_segments: Vec<u64> = list_segments(&hot)?
                .into_iter()
                .filter(|old| old + self.keep_segments <= index + 1)
                .collect();
            let size = self.segment_locator.meta.segment_bytes;
            // Bytes that are not durable may have to be written again, and only from this directory.
            if old_segments.last().is_some_and(|last| (last + 1) * size > self.flush.flushed.position.0)
                && !self.flush.is_lost()
            {
                self.flush_all()?;
            }
            for old in old_segments {
                segment_pool::retire_segment(&hot, old)?;
            }
        }
        Ok(())
    }
}

/// Starts the copy thread if necessary and returns whether it runs. Without it the recorder does each step in turn.
fn start_copier(copier: &mut Option<CopyThread>) -> bool {
    if copier.is_none() {
        *copier = CopyThread::start_thread().ok();
    }
    copier.is_some()
}

/// Bytes from which it is worth a thread's attention to write them apart.
const APART_MIN: u64 = 1 << 20;
