//! Opening for writing: make the tape, or find its end and cut what lies after it.
//!
//! A killed process leaves whole claims, then a header word that is zero; the bytes after it were never reachable,
//! and recovery zeroes them, so that they cannot come back. After a reboot without a clean close, pages may be
//! missing anywhere after the durable position, so there only spans whose checksum matches are believed.

use std::path::{Path, PathBuf};

use unitape_model::Position;

use crate::disk::durable::load_durable;
use crate::disk::hot::HotNotice;
use crate::disk::layout::{
    HEADER_PAGE, SegmentHeader, TapeId, TapeManifest, TapePaths, check_segment_bytes, list_segments,
    remove_unfinished, segment_path,
};
use crate::disk::lineage::Lineage;
use crate::disk::lock::{FileLock, boot_id, holder};
use crate::disk::map::{HeaderWordState, MappedSegment, SegmentAllocation};
use crate::disk::pending_cut::PendingCut;
use crate::disk::seal::unseal;
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::state_page::StatePage;
use crate::disk::sys;
use crate::error::{Error, FileContext, Result, with_committed_end};
use crate::trust::unsynced_tail::{check_before_writing, check_known, end_of_copy, first_lost, trusted_end};
use crate::write::backing::apply_backing;
use crate::write::cut::{CutPlan, OpeningState, RecoveredEnd, WriterOpening, cut_sums, truncate_tape};
use crate::write::hot::{HotDirectory, HotDiscovery};
use crate::write::options::WriterOptions;
use crate::write::origin::{OriginEpoch, TapeOrigin, check_empty};
use crate::write::prior_state::PriorTapeState;

/// The state of the tape that a writer found on opening, and the cut that it made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The tape was made just now.
    pub was_created: bool,
    /// The last writer closed the tape (also true for a new one).
    pub was_closed: bool,
    /// The machine was restarted since the last writer, which had not closed.
    pub has_rebooted: bool,
    /// Position after the last complete unit: the writer continues here.
    pub end_position: Position,
    /// Non-META frames before it.
    pub ordinal: u64,
    /// Committed bytes after the last complete unit that were cut.
    pub cut_bytes: u64,
    /// The writer's epoch: one more than that of the writer before, also after a clean close. It never goes back.
    pub epoch: u64,
    /// Hot segments that the tape named and that are not its own, or are of an earlier version.
    pub hot_notice: Option<HotNotice>,
}

pub(crate) struct OpenedTape {
    pub paths: TapePaths,
    pub meta: TapeManifest,
    pub recovery: RecoveryReport,
    /// The hot directory, of a hot tape.
    pub hot_directory: Option<HotDirectory>,
    /// Directory of the live segments.
    pub segments_dir: PathBuf,
    /// Where new ones are made before they get their name.
    pub making_dir: PathBuf,
    pub current_segment: Option<MappedSegment>,
    pub lineage: Lineage,
    pub prior_state: PriorTapeState,
}

/// A tape that is to be opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenRequest<'a> {
    pub id: TapeId,
    /// The origin of a new tape; `None`: position 0.
    pub origin: Option<&'a TapeOrigin<'a>>,
    pub options: &'a WriterOptions,
}

pub(crate) fn open(dir: &Path, request: &OpenRequest<'_>) -> Result<(OpenedTape, FileLock)> {
    let OpenRequest { id, options, origin } = *request;
    check_segment_bytes(options.segment_bytes)?;
    options.retention.check()?;
    sys::make_dir(dir).with_context("make", dir)?;
    let paths = TapePaths { tape_dir: dir.into() };
    let created = !dir.join("tape.toml").exists();
    if created {
        check_empty(&paths, origin)?;
    } else {
        // Before anything is touched: a foreign tape or version stays unchanged.
        check_id(dir, id)?;
        PendingCut::refuse(&paths, id)?;
    }
    sys::make_dir(&paths.run().join("cursors")).with_context("make", &paths.run())?;
    let mut lock = FileLock::acquire(&paths.writer_lock())?;
    // Another process may have made it before this one had the lock.
    let created = created && !dir.join("tape.toml").exists();
    let mut past = PriorTapeState::observe(&paths, created);
    match open_locked(paths.clone(), request, &mut lock, &mut past) {
        Ok(opened) => Ok((opened, lock)),
        Err(e) => {
            past.restore(&paths, id, lock);
            Err(e)
        }
    }
}

fn open_locked(
    paths: TapePaths,
    request: &OpenRequest<'_>,
    lock: &mut FileLock,
    past: &mut PriorTapeState,
) -> Result<OpenedTape> {
    let OpenRequest { id, options, origin } = *request;
    let (dir, created) = (&paths.tape_dir, past.was_created);
    let origin = match origin {
        Some(origin) => origin.prepare_tape(&paths, id, options, created)?,
        None => OriginEpoch::default(),
    };
    // One that begins at an origin is a closed tape by now.
    past.was_created &= !origin.is_begun;
    if !dir.join("tape.toml").exists() {
        TapeManifest { id, segment_bytes: options.segment_bytes }.store(&paths)?;
    }
    let meta = check_id(dir, id)?;
    sys::make_dir(&paths.segments()).with_context("make", &paths.segments())?;

    let (before, boot) = (lock.stale_holder.clone(), boot_id());
    let mut opening = WriterOpening::begin_opening(
        &paths,
        meta.id,
        &OpeningState { lock_text: &before, boot: &boot, is_new_tape: past.was_created, origin },
        options,
    )?;
    let (rebooted, epoch) = (opening.has_rebooted, opening.lineage.epoch);
    past.open_boot = Some(opening.open_before);
    let signature = |boot: &str| format!("pid {}\nepoch {epoch}\nboot {boot}\n", std::process::id());
    // A recovery after a restart that is itself killed was none: the next one must not believe the tape either.
    lock.sign(&signature(if rebooted { "before" } else { &boot }))?;
    let state = StatePage::open(&paths)?;
    if rebooted {
        state.reset();
    }
    state.keep_epoch(opening.epoch_before, rebooted);
    state.set_retention(&options.retention);
    remove_unfinished(&paths.run())?;
    let hot = HotDiscovery::find_hot_directory(&paths, meta.id, rebooted)?;
    let notice = hot.hot_notice.clone();

    let segment_locator = SegmentLocator::from_manifest(paths.clone(), meta);
    let flush_failed = state.failure(&paths).is_some();
    let mut doubt = RecoveryInputs {
        was_closed: opening.was_closed,
        has_rebooted: rebooted,
        flush_failed,
        truncate_damage: options.truncate_damage,
        reached: state.published_end().0,
        remade: false,
    };
    let outcome = match look_before(&segment_locator, &state, &mut doubt) {
        Err(e @ Error::Damage { .. }) if hot.is_copy => {
            doubt.reached = Position(0);
            end_of_copy(&segment_locator, e, || look_before(&segment_locator, &state, &mut doubt))
        }
        other => other,
    };
    let recovered_end = outcome?;
    // Before anything after it goes: a reader that misses a segment asks whether the tape reaches into it.
    state.set_end(recovered_end.position, recovered_end.ordinal);
    // Before anything goes, and long before a frame of this epoch comes.
    // A writer that is alive, and is fenced by this one, writes into a file without a name from here on.
    let is_cut = rebooted
        || recovered_end.may_be_missed
        || origin.requested_epoch > 0 && !opening.was_closed && !created;
    opening.store_lineage(&segment_locator, is_cut.then_some(recovered_end.position), &boot)?;
    let cut_plan = CutPlan { replaces: is_cut, may_zero: rebooted, allocation: options.segment_allocation() };
    // A recorder that lives sees the new epoch and cuts them itself.
    if !opening.was_closed && holder(&paths.recorder_lock())?.is_none() {
        cut_sums(&segment_locator, recovered_end.position)?;
    }
    truncate_tape(&segment_locator, &recovered_end, hot.own_dir.as_ref(), &cut_plan)?;
    if flush_failed {
        write_again(&segment_locator, &recovered_end)?;
        state.set_mending();
    }
    let hot = apply_backing(&segment_locator, &recovered_end, options, hot)?;
    let (segments_dir, making) = match &hot {
        Some(hot) => (hot.hot_dir.clone(), hot.hot_dir.clone()),
        None => (paths.segments(), paths.run()),
    };
    let current = take_current(&segments_dir, &making, &meta, &recovered_end, options.segment_allocation())?;
    // The segments that were cut have lost their names: a process that sees the new epoch finds only the rest.
    state.set_epoch(epoch);
    lock.sign(&signature(&boot))?;
    let recovery = RecoveryReport {
        was_created: created,
        was_closed: opening.was_closed,
        has_rebooted: rebooted,
        end_position: recovered_end.position,
        ordinal: recovered_end.ordinal,
        cut_bytes: recovered_end.cut_bytes,
        epoch,
        hot_notice: notice,
    };
    let (lineage, past) = (opening.lineage, *past);
    Ok(OpenedTape {
        paths,
        meta,
        recovery,
        hot_directory: hot,
        segments_dir,
        making_dir: making,
        current_segment: current,
        lineage,
        prior_state: past,
    })
}

fn check_id(dir: &Path, wanted: TapeId) -> Result<TapeManifest> {
    let meta = TapeManifest::load(dir)?;
    if meta.id != wanted {
        return Err(Error::ForeignTape { path: dir.into(), tape_id: meta.id, expected_id: wanted });
    }
    Ok(meta)
}

/// The facts that decide which frames the walk to the end believes.
struct RecoveryInputs {
    /// The last writer closed.
    was_closed: bool,
    has_rebooted: bool,
    /// A flush has failed.
    flush_failed: bool,
    truncate_damage: bool,
    /// The tape came this far, as its last writer recorded; a claim of it may not have been published.
    reached: Position,
    /// The durable position was rebuilt from checksums, and no other source is trusted.
    remade: bool,
}

/// Finds the end of the tape, and compares its durable bytes with the checksums. Changes no frame and no checksum.
fn look_before(live: &SegmentLocator, state: &StatePage, doubt: &mut RecoveryInputs) -> Result<RecoveredEnd> {
    let loaded_mark = check_known(live, doubt.was_closed).and_then(|()| load_durable(&live.paths));
    let mut durable = match loaded_mark {
        Err(Error::Damage { .. }) if doubt.truncate_damage => {
            doubt.remade = true;
            crate::trust::durable_rebuild::remake_durable(live)?
        }
        other => other?,
    };
    if doubt.has_rebooted {
        // A recorder that came before the writer has published it, and may have nothing to publish again.
        state.set_durable(durable.position);
    }
    let tape_end = find_end(live, doubt)?;
    check_before_writing(live, &mut durable, tape_end.position, doubt.was_closed)?;
    Ok(tape_end)
}

/// Walks from the durable segment to the last complete unit.
fn find_end(live: &SegmentLocator, doubt: &RecoveryInputs) -> Result<RecoveredEnd> {
    let &RecoveryInputs {
        was_closed: clean,
        has_rebooted: rebooted,
        flush_failed: failed,
        truncate_damage,
        reached,
        remade,
    } = doubt;
    let size = live.meta.segment_bytes;
    let durable = load_durable(&live.paths)?.position;
    let mut first_loss = None;
    let limit = if rebooted || remade {
        trusted_end(live, durable)?
    } else if failed || !clean {
        first_loss = first_lost(live, durable)?;
        first_loss.as_ref().map_or(Position(u64::MAX), |(position, _)| *position)
    } else {
        Position(u64::MAX)
    };
    let segment_indices = live.indices()?;
    let mut index = durable.0 / size;
    if !segment_indices.contains(&index) && index > 0 && durable.0.is_multiple_of(size) {
        index -= 1;
    }
    if durable == Position(0) {
        index = segment_indices.first().copied().unwrap_or(0);
    }
    let mut last_unit_end =
        RecoveredEnd { position: Position(index * size), ordinal: 0, cut_bytes: 0, may_be_missed: false };
    let (mut frame_position, mut ordinal) = (last_unit_end.position, 0);
    let mut is_first_segment = true;
    let mut broken = None;
    'segments: loop {
        let segment = match live.segment(index) {
            Ok(Some((segment, first_ordinal))) => {
                if is_first_segment {
                    (ordinal, last_unit_end.ordinal, is_first_segment) =
                        (first_ordinal, first_ordinal, false);
                } else if first_ordinal != ordinal && segment.header_state(0) != HeaderWordState::Nothing {
                    broken =
                        Some(Error::damage(&segment.path, 56, "the segment's first ordinal does not follow"));
                    break;
                }
                segment
            }
            Ok(None) => {
                let has_continued = reached > Position(index * size);
                let path = || segment_path(&live.paths.segments(), index);
                let missing_reason = "the segment is missing, the tape continued in it";
                let removed = || has_continued.then(|| Error::damage(&path(), 0, missing_reason));
                broken = live.explain_missing(index).err().or_else(removed);
                break;
            }
            Err(e) => {
                broken = Some(e);
                break;
            }
        };
        let mut offset = 0;
        while offset < size {
            match segment.header_state(offset) {
                HeaderWordState::Frame(header) if frame_position.plus(header.len_bytes() as u64) <= limit => {
                    offset += header.len_bytes() as u64;
                    frame_position = frame_position.plus(header.len_bytes() as u64);
                    ordinal += u64::from(!header.is_meta());
                    if header.is_last() {
                        (last_unit_end.position, last_unit_end.ordinal) = (frame_position, ordinal);
                    }
                }
                HeaderWordState::Pad if frame_position.plus(8) <= limit => {
                    // The recorder may have been here and no further: the durable position is after the pad then.
                    if last_unit_end.position == frame_position && segment.end_position() <= limit {
                        last_unit_end.position = segment.end_position();
                    }
                    break;
                }
                HeaderWordState::Damage(header) => {
                    let reason = format!("no frame can start with {header}");
                    broken = Some(Error::damage(&segment.path, HEADER_PAGE + offset, reason));
                    break 'segments;
                }
                _ => break 'segments,
            }
        }
        index += 1;
        frame_position = Position(index * size);
    }
    if is_first_segment && index > 0 {
        // The number of events before the end is not known, and a guess would number all later ones wrongly.
        let path = || segment_path(&live.paths.segments(), index);
        let ordinal_reason = "no segment says how many events come before the end of the tape";
        return Err(broken.unwrap_or_else(|| Error::damage(&path(), 0, ordinal_reason)));
    }
    if broken.is_none() {
        broken = first_loss.map(|(_, error)| error);
    }
    if last_unit_end.position < durable {
        let path = segment_path(&live.paths.segments(), last_unit_end.position.0 / size);
        let offset = HEADER_PAGE + last_unit_end.position.0 % size;
        let end_reason = format!(
            "the tape ends at position {}, before its durable position {durable}",
            last_unit_end.position
        );
        return Err(broken.unwrap_or_else(|| Error::damage(&path, offset, end_reason)));
    }
    last_unit_end.may_be_missed = broken.is_some() || frame_position > last_unit_end.position;
    if let Some(error) = broken
        && !rebooted
        && !truncate_damage
    {
        return Err(error);
    }
    last_unit_end.cut_bytes = frame_position.0.saturating_sub(last_unit_end.position.0);
    Ok(last_unit_end)
}

/// Writes bytes that are not durable again, so that the next flush includes them.
fn write_again(live: &SegmentLocator, end: &RecoveredEnd) -> Result<()> {
    let size = live.meta.segment_bytes;
    let durable = load_durable(&live.paths)?.position;
    for index in list_segments(&live.paths.segments())?.into_iter().filter(|&i| i >= durable.0 / size) {
        let path = segment_path(&live.paths.segments(), index);
        unseal(&path)?;
        if let Some((segment, _)) = MappedSegment::open(&path, &live.meta, index, true)? {
            segment.rewrite_pages(end.position.0.saturating_sub(segment.base_position.0).min(size));
        }
    }
    Ok(())
}

/// Opens the segment that holds the end, if it exists. Makes the first segment of a new tape.
fn take_current(
    segments_dir: &Path,
    making: &Path,
    meta: &TapeManifest,
    end: &RecoveredEnd,
    allocation: SegmentAllocation,
) -> Result<Option<MappedSegment>> {
    let index = end.position.0 / meta.segment_bytes;
    let path = segment_path(segments_dir, index);
    let header = SegmentHeader { meta: *meta, index, first_ordinal: end.ordinal };
    if let Some((segment, _)) = MappedSegment::open(&path, meta, index, true)? {
        // Before the first write: a full disk is an error here, and a signal in the middle of an append.
        with_committed_end(
            segment.reserve_blocks(end.position.0 - segment.base_position.0, allocation),
            end.position,
        )?;
        if end.position == segment.base_position {
            segment.write_header(&header);
        }
        return Ok(Some(segment));
    }
    if end.position > Position(0) {
        return Ok(None);
    }
    let mut segment = MappedSegment::create(&making.join("making-first"), &header, allocation)?;
    sys::rename(&segment.path, &path).with_context("rename", &path)?;
    segment.path = path;
    Ok(Some(segment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::durable::{DurableMark, load_durable, store_durable};
    use crate::disk::layout::remove;
    use crate::record::flush::SyncPolicy;
    use crate::record::follow::TapeRecorder;
    use crate::{Reader, StartPosition, Writer};
    use unitape_model::{LINE, flags};

    /// Power fails when the recorder has just flushed the first segment of a unit that lies in two. The position
    /// reported as durable is the start of the unit, so that the tape reaches it without the rest.
    #[test]
    fn a_tape_that_is_durable_into_a_unit_is_cut_before_it() {
        const SEGMENT: u64 = 16 << 10;
        let dir = tempfile::tempdir().unwrap();
        let options = || WriterOptions {
            segment_bytes: SEGMENT,
            sync_policy: crate::SyncPolicy::OnClose,
            ..WriterOptions::default()
        };
        let (mut writer, _) = Writer::open(dir.path(), TapeId(1), options()).unwrap();
        let mut single = vec![0; LINE];
        unitape_model::FrameHeader::new_unstamped(40, flags::LAST, 1).write(&mut single);
        // Two definitions, one of them in the first half of the unit, and then an event.
        let mut unit = vec![0; 3 * LINE];
        unitape_model::FrameHeader::new_unstamped(*crate::DEFINITION_KINDS.start(), 0, 1).write(&mut unit);
        unitape_model::FrameHeader::new_unstamped(40, flags::LAST, 2).write(&mut unit[LINE..]);
        let mut definition = vec![0; LINE];
        unitape_model::FrameHeader::new_unstamped(*crate::DEFINITION_KINDS.start(), flags::LAST, 1)
            .write(&mut definition);
        writer.append(&definition).unwrap();
        while writer.end().0 < SEGMENT - LINE as u64 {
            writer.append(&single).unwrap();
        }
        let begin = writer.end().0;
        writer.append(&unit).unwrap();
        assert_eq!(
            (begin, writer.end().0),
            (SEGMENT - LINE as u64, SEGMENT + 2 * LINE as u64),
            "it lies in two"
        );
        drop(writer);

        let paths = TapePaths { tape_dir: dir.path().into() };
        let meta = TapeManifest::load(dir.path()).unwrap();
        let mut recorder =
            TapeRecorder::open(SegmentLocator::from_manifest(paths.clone(), meta), SyncPolicy::OnClose, 1)
                .unwrap();
        while recorder.position < Position(SEGMENT) {
            recorder.step().unwrap();
        }
        assert_eq!(recorder.position, Position(SEGMENT));
        recorder.flush_all().unwrap();
        drop(recorder);
        let durable = load_durable(&paths).unwrap();
        assert_eq!(durable.position, Position(begin));
        // The power fails: what was not flushed is gone.
        remove(&segment_path(&paths.segments(), 1)).unwrap();
        let text = std::fs::read_to_string(paths.writer_lock()).unwrap();
        std::fs::write(paths.writer_lock(), text.replace("boot ", "boot another-")).unwrap();

        let (mut writer, recovery) = Writer::open(dir.path(), TapeId(1), options()).unwrap();
        assert_eq!(
            (recovery.has_rebooted, recovery.end_position.0, recovery.cut_bytes),
            (true, begin, LINE as u64)
        );
        writer.append(&unit).unwrap();
        writer.close().unwrap();
        assert!(crate::verify(dir.path()).unwrap().is_intact());
        let mut definitions = crate::DefinitionReader::open(dir.path()).unwrap();
        let mut positions = Vec::new();
        while let Some((position, _)) = definitions.next().unwrap() {
            positions.push(position.0);
        }
        assert_eq!(positions, [0, begin]);
    }

    /// A recorder has written the file that says how far the tape is durable, and its flush is still under way or has
    /// failed: a writer that closed was once informed that all was well.
    #[test]
    fn what_only_the_file_says_is_not_durable() {
        let (dir, hot_parent) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let options = WriterOptions {
            segment_bytes: 16 << 10,
            backing: crate::Backing::Hot { dir: Some(hot_parent.path().join("hot")), window_segments: 2 },
            recorder: crate::RecorderLocation::External,
            recorder_wait: std::time::Duration::from_millis(20),
            ..WriterOptions::default()
        };
        let (mut writer, _) = Writer::open(dir.path(), TapeId(1), options).unwrap();
        let mut unit = vec![0; LINE];
        unitape_model::FrameHeader::new_unstamped(40, flags::LAST, 1).write(&mut unit);
        writer.append(&unit).unwrap();
        let paths = TapePaths { tape_dir: dir.path().into() };
        let live = SegmentLocator::from_manifest(paths.clone(), TapeManifest::load(dir.path()).unwrap());
        let recorder = TapeRecorder::open(live, SyncPolicy::OnClose, 1).unwrap();
        let position = writer.end();
        store_durable(&paths, &DurableMark { position, ..DurableMark::default() }).unwrap();
        let error = writer.close().unwrap_err();
        assert!(matches!(error, Error::RecorderBehind { .. }), "{error}");
        drop(recorder);
    }

    /// Power fails when the recorder has just come to the padded end of a segment: the last unit lies before the durable
    /// position, and the tape was refused as shorter than that.
    #[test]
    fn a_tape_that_is_durable_up_to_behind_a_pad_is_opened() {
        const SEGMENT: u64 = 16 << 10;
        let dir = tempfile::tempdir().unwrap();
        let options = || WriterOptions { segment_bytes: SEGMENT, ..WriterOptions::default() };
        let (mut writer, _) = Writer::open(dir.path(), TapeId(1), options()).unwrap();
        let mut unit = vec![0; 5 * LINE];
        unitape_model::FrameHeader::new_unstamped(40, flags::LAST, 5).write(&mut unit);
        let unit_count = SEGMENT / unit.len() as u64;
        assert!(!SEGMENT.is_multiple_of(unit.len() as u64), "the segment ends with a pad");
        for _ in 0..=unit_count {
            writer.append(&unit).unwrap();
        }
        writer.close().unwrap();
        let paths = TapePaths { tape_dir: dir.path().into() };
        let durable = load_durable(&paths).unwrap();
        store_durable(&paths, &DurableMark { position: Position(SEGMENT), ..durable }).unwrap();
        std::fs::remove_file(segment_path(&paths.segments(), 1)).unwrap();

        let (mut writer, recovery) = Writer::open(dir.path(), TapeId(1), options()).unwrap();
        assert_eq!((recovery.end_position.0, recovery.ordinal, recovery.cut_bytes), (SEGMENT, unit_count, 0));
        writer.append(&unit).unwrap();
        writer.close().unwrap();
        let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
        let mut frames = 0;
        while reader.next().unwrap().is_some() {
            frames += 1;
        }
        assert_eq!((frames, reader.position().0), (unit_count + 1, SEGMENT + unit.len() as u64));
        assert!(crate::verify(dir.path()).unwrap().is_intact());
    }
}
