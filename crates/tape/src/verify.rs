//! Inspects a tape without changing it: its identity, and whether it is whole.

use std::fs;
use std::path::{Path, PathBuf};

use unitape_model::{FrameHeader, Position, frame::KIND_PAD};

use crate::disk::definitions::{DEFINITION_KINDS, DefinitionReader};
use crate::disk::durable::{DurableMark, load_durable};
use crate::disk::hot::{HotNotice, hot_notice};
use crate::disk::layout::{HEADER_PAGE, SegmentHeader, TapeId, TapePaths, segment_path};
use crate::disk::lineage::Lineage;
use crate::disk::lock::{boot_id, field, lock_writer_pid};
use crate::disk::map::{HeaderWordState, MappedSegment};
use crate::disk::origin::OriginRecord;
use crate::disk::pending_cut::PendingCut;
use crate::disk::seal::is_sealed;
use crate::disk::segment_index::{self, IndexBuilder};
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::state_page::StatePage;
use crate::error::{Error, FileContext, Result};
use crate::read::damage::{DamagedParts, ReadOptions, UnverifiedBytes};
use crate::read::reader::{Reader, StartPosition};
use crate::repair::accepted_ranges;
use crate::trust::segment_sums::{OpenSpan, SegmentSums, StoredChecksumState};
use crate::trust::unsynced_tail::first_lost;

/// Facts about a tape, read from its frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapeSummary {
    /// The identity of the tape.
    pub id: TapeId,
    /// Version of its format.
    pub format: u64,
    /// Bytes of frames in a segment.
    pub segment_bytes: u64,
    /// Segments there are.
    pub segments: u64,
    /// Oldest position retained.
    pub oldest_position: Position,
    /// Position after the last committed frame.
    pub end_position: Position,
    /// Committed frames retained, bookkeeping included.
    pub frames: u64,
    /// Ordinal of the first event retained.
    pub first_ordinal: u64,
    /// Events ever put on the tape (non-META frames).
    pub ordinals: u64,
    /// Frames before this position survive power loss.
    pub durable: Position,
    /// Bytes that its files occupy on the disk.
    pub disk_bytes: u64,
    /// Process that has it open for writing, 0 if it does not say.
    pub writer: Option<u64>,
    /// Directory of its hot segments.
    pub hot_dir: Option<PathBuf>,
    /// Damaged parts that were passed over.
    pub damaged: DamagedParts,
    /// Bytes that should have a checksum and could not be compared with one.
    pub unverified_bytes: UnverifiedBytes,
}

/// The state of a tape, as far as it is known without reading the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapeStatus {
    /// The identity of the tape.
    pub id: TapeId,
    /// Oldest position retained.
    pub oldest_position: Position,
    /// Frames before this position survive power loss.
    pub durable: Position,
    /// Whether a process has it open for writing, or its end is in shared memory.
    pub live: bool,
}

/// Returns the state of the tape in `dir`.
///
/// # Errors
/// Fails if `dir` is no tape, has a foreign version, or has damaged small files.
pub fn tape_status(dir: &Path) -> Result<TapeStatus> {
    let segment_locator = SegmentLocator::open(dir)?;
    Ok(TapeStatus {
        id: segment_locator.meta.id,
        oldest_position: segment_locator.oldest_position()?,
        durable: load_durable(&segment_locator.paths)?.position,
        live: lock_writer_pid(&segment_locator.paths)?.is_some() || segment_locator.hot_place()?.is_some(),
    })
}

/// Returns the process that has the tape in `dir` open for writing, if there is one; 0 if its number is unknown.
pub fn writer_pid(dir: &Path) -> Option<u64> {
    lock_writer_pid(&TapePaths { tape_dir: dir.into() }).ok().flatten()
}

/// Returns the oldest position of the tape in `dir`.
///
/// # Errors
/// Fails if `dir` is no tape or has a foreign version.
pub fn oldest_position(dir: &Path) -> Result<Position> {
    SegmentLocator::open(dir)?.oldest_position()
}

/// Reads the facts about the tape in `dir`.
///
/// # Errors
/// Fails if `dir` is no tape or has a foreign version, and at damage on the way.
pub fn info(dir: &Path) -> Result<TapeSummary> {
    info_with(dir, ReadOptions::default())
}

/// Reads the facts about the tape in `dir`, with or without checks, and stopping at damage or not.
///
/// # Errors
/// Fails as [`info`] does; damaged segments are no error if the options pass over damage.
pub fn info_with(dir: &Path, options: ReadOptions) -> Result<TapeSummary> {
    use std::os::unix::fs::MetadataExt;
    let segment_locator = SegmentLocator::open(dir)?;
    let indices = segment_locator.indices()?;
    let mut reader = Reader::open_with(dir, StartPosition::Oldest, options)?;
    let (first, first_ordinal) = (reader.position(), reader.ordinal());
    let mut frames = 0;
    while let Some(run) = reader.next_run(1 << 20)? {
        frames += unitape_model::frames(run.bytes).count() as u64;
    }
    let mut disk_bytes = 0;
    for folder in [dir.to_path_buf(), segment_locator.paths.segments()] {
        for entry in fs::read_dir(&folder).with_context("list", &folder)? {
            let meta = entry.with_context("list", &folder)?.metadata().with_context("look at", &folder)?;
            disk_bytes += if meta.is_file() { meta.blocks() * 512 } else { 0 };
        }
    }
    Ok(TapeSummary {
        id: segment_locator.meta.id,
        format: crate::FORMAT_VERSION,
        segment_bytes: segment_locator.meta.segment_bytes,
        segments: indices.len() as u64,
        oldest_position: first,
        end_position: reader.position(),
        frames,
        first_ordinal,
        ordinals: reader.ordinal(),
        // A damaged file counts as unverified.
        durable: load_durable(&segment_locator.paths).map_or(Position(0), |durable| durable.position),
        disk_bytes,
        writer: lock_writer_pid(&segment_locator.paths)?,
        hot_dir: segment_locator.hot_place()?,
        damaged: reader.damaged().clone(),
        unverified_bytes: reader.unverified().clone(),
    })
}

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyFinding {
    /// In which file.
    pub file_path: PathBuf,
    /// At which byte of it.
    pub offset: u64,
    /// The problem, in words.
    pub problem: String,
    /// From and to: the affected positions of the tape, if any. Frames before them are not harmed; after them, reading
    /// continues at the start of the next segment ([`Reader::skip_damage`]).
    pub position_range: Option<(Position, Position)>,
}

/// The result of `verify`: counts and problems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Frames seen, bookkeeping included.
    pub frames: u64,
    /// Complete units seen.
    pub unit_count: u64,
    /// Events seen (non-META frames).
    pub events: u64,
    /// Checksummed spans that were compared.
    pub spans: u64,
    /// Definitions in the log.
    pub definitions: u64,
    /// Everything before this position can be used.
    pub intact_to: Position,
    /// From and to: the positions that no checksum covers, because they are not durable yet or the tape has none.
    pub not_covered: Option<(Position, Position)>,
    /// Parts that a repair has accepted although nothing vouched for them.
    pub accepted: Vec<(Position, Position)>,
    /// The problems, in the order of the tape.
    pub problems: Vec<VerifyFinding>,
}

impl VerifyReport {
    /// Returns whether the verification found no problem.
    pub fn is_intact(&self) -> bool {
        self.problems.is_empty()
    }

    fn add_problem(&mut self, file: &Path, offset: u64, problem: impl Into<String>) {
        self.add_finding(file, offset, problem.into(), None);
    }

    /// Adds a problem that removes the positions `from..to`.
    fn add_loss(
        &mut self,
        file: &Path,
        offset: u64,
        problem: impl Into<String>,
        from: Position,
        to: Position,
    ) {
        self.add_finding(file, offset, problem.into(), Some((from, to.max(from))));
    }

    fn add_finding(
        &mut self,
        file: &Path,
        offset: u64,
        problem: String,
        positions: Option<(Position, Position)>,
    ) {
        // A bound: a thoroughly broken tape is described well enough by the first ones.
        if self.problems.len() < 1000 {
            self.problems.push(VerifyFinding {
                file_path: file.into(),
                offset,
                problem,
                position_range: positions,
            });
        }
    }

    fn error(&mut self, error: Error, file: &Path, positions: Option<(Position, Position)>) {
        match error {
            Error::Damage { path, offset, reason } => self.add_finding(&path, offset, reason, positions),
            other => self.add_finding(file, 0, other.to_string(), positions),
        }
    }
}

/// Checks the tape in `dir`: header pages, frames, units, tails, checksums, dictionary log.
///
/// On a tape in use it checks the committed frames, and checksums up to the durable position.
///
/// # Errors
/// Fails if `dir` is no tape or has a foreign version, or if a file cannot be read. The report lists damage.
pub fn verify(dir: &Path) -> Result<VerifyReport> {
    if dir.is_file() {
        return Err(Error::NotATape { path: dir.into(), reason: "it is a file, and a tape is a directory" });
    }
    let segment_locator = SegmentLocator::open(dir)?;
    let mut report = VerifyReport::default();
    let was_closed = !segment_locator.paths.writer_lock().exists();
    let in_use = lock_writer_pid(&segment_locator.paths)?.is_some();
    let mut is_damaged = false;
    let mark = load_durable(&segment_locator.paths).unwrap_or_else(|e| {
        report.error(e, &segment_locator.paths.durable(), None);
        is_damaged = true;
        DurableMark::default()
    });
    let durable = mark.position;
    match Lineage::load(&segment_locator.paths, segment_locator.meta.id) {
        Err(e @ (Error::Damage { .. } | Error::ForeignTape { .. })) => {
            report.error(e, &Lineage::path(&segment_locator.paths), None);
        }
        other => drop(other?),
    }
    if let Err(e) = OriginRecord::load(&segment_locator.paths) {
        report.error(e, &OriginRecord::path(&segment_locator.paths), None);
    }
    match PendingCut::load(&segment_locator.paths, segment_locator.meta.id) {
        Ok(None) => {}
        Ok(Some(cut)) => report.add_problem(&PendingCut::path(&segment_locator.paths), 0, cut.problem_text()),
        Err(e) => report.error(e, &PendingCut::path(&segment_locator.paths), None),
    }
    if let Some(notice) = hot_notice(dir)?.filter(HotNotice::may_miss_part) {
        report.add_problem(&segment_locator.paths.hot(), 0, notice.to_string());
    }
    let known_end = if was_closed { durable } else { StatePage::peek(&segment_locator.paths)?.max(durable) };
    let log = DefinitionReader::open(dir);
    let mut log = match log {
        Ok(log) => Some(log),
        Err(e) => {
            report.error(e, &segment_locator.paths.definitions(), None);
            None
        }
    };
    let indices = segment_locator.indices()?;
    let Some(&oldest) = indices.first() else {
        report.add_problem(&segment_locator.paths.segments(), 0, "there is no segment");
        return Ok(report);
    };
    let size = segment_locator.meta.segment_bytes;
    let mut logged = DefinitionLogVerifier { next_definition: None, required_end: known_end };
    let start_position = Position(oldest * size);
    // The log alone has the definitions before an origin within the segment.
    logged.skip_to(&mut log, segment_locator.oldest_position()?, &mut report);
    let mut walk = VerifyWalk {
        position: start_position,
        ordinal: None,
        has_ended: false,
        broken: false,
        unit_open: false,
        is_sound: true,
        index_builder: IndexBuilder::new(&segment_locator.meta),
        durable,
    };
    for (i, &index) in indices.iter().enumerate() {
        let path = segment_path(&segment_locator.paths.segments(), index);
        if i > 0 && index != indices[i - 1] + 1 {
            let missing = indices[i - 1] + 1;
            let path = segment_path(&segment_locator.paths.segments(), missing);
            let (from, to) = (Position(missing * size), Position(index * size));
            report.add_loss(&path, 0, "the segment is missing", from, to);
            walk.break_at(to);
        }
        let (segment, first_ordinal) = match segment_locator.segment(index) {
            Ok(Some(opened_segment)) => opened_segment,
            Ok(None) => continue,
            Err(e) => {
                let (from, to) = (Position(index * size), Position((index + 1) * size));
                report.error(e, &path, Some((from, to)));
                walk.break_at(to);
                continue;
            }
        };
        if walk.broken {
            logged.skip_below(&mut log, Position(index * size), &mut report);
        }
        walk.segment(&segment, first_ordinal, in_use, &mut report, |position, frame, report| {
            logged.compare_definition(&mut log, position, frame, report);
        });
        let stored = match (was_closed, in_use) {
            (true, _) => StoredChecksumState::Covered,
            (_, true) => StoredChecksumState::Moving,
            _ => StoredChecksumState::AtLeastCovered,
        };
        let problems_before = report.problems.len();
        walk.broken |= check_sums(&segment_locator, index, &mark, stored, &mut report);
        let is_finished = walk.is_sound && walk.position == segment.end_position();
        if is_finished && report.problems.len() == problems_before {
            let header = SegmentHeader { meta: segment_locator.meta, index, first_ordinal };
            check_index(&segment_locator, &mut walk.index_builder, &header, durable, &mut report);
        }
    }
    if !was_closed
        && !in_use
        && !is_rebooted(&segment_locator.paths)
        && let Some((from, error)) = first_lost(&segment_locator, durable)?
    {
        let checked_end = walk.position.max(from);
        report.error(error, &segment_locator.paths.segments(), Some((from, checked_end)));
        report.intact_to = report.intact_to.min(from);
    }
    logged.report_rest(&mut log, walk.position, &mut report);
    if walk.unit_open && !in_use {
        report.add_problem(
            &segment_path(&segment_locator.paths.segments(), walk.position.0 / size),
            HEADER_PAGE,
            "the last unit is not complete",
        );
    }
    if walk.position < durable && !walk.broken {
        let path = segment_path(&segment_locator.paths.segments(), walk.position.0 / size);
        let problem = format!("the tape ends before its durable position {durable}");
        report.add_loss(&path, HEADER_PAGE + walk.position.0 % size, problem, walk.position, durable);
    }
    let check_start = durable.max(start_position);
    if walk.position > check_start && !is_damaged {
        let path = segment_locator.paths.durable();
        if in_use || !was_closed && path.exists() {
            report.not_covered = Some((check_start, walk.position));
        } else if path.exists() {
            let end_problem =
                format!("unverified: the tape was closed, and this says that it ends at position {durable}");
            report.add_loss(&path, 16, end_problem, check_start, walk.position);
        } else {
            let file_problem =
                "unverified: the file is missing, so nothing says which checksums are to be believed";
            report.add_loss(&path, 0, file_problem, check_start, walk.position);
        }
    }
    report.accepted = accepted_ranges(dir);
    Ok(report)
}

/// Returns whether the machine was restarted since the tape had a writer, which did not close it.
fn is_rebooted(paths: &TapePaths) -> bool {
    let text = fs::read_to_string(paths.writer_lock()).unwrap_or_default();
    field(&text, "boot").unwrap_or_default() != boot_id()
}

struct VerifyWalk {
    position: Position,
    ordinal: Option<u64>,
    /// The end has been met, or damage after which nothing durable is: the rest must be empty.
    has_ended: bool,
    /// Damage has been met: the intact part ends there, even if intact frames follow.
    broken: bool,
    unit_open: bool,
    /// Nothing is wrong in the segment walked last.
    is_sound: bool,
    /// The segment's index, built from its frames.
    index_builder: IndexBuilder,
    durable: Position,
}

impl VerifyWalk {
    /// Skips damage up to `next`. Bytes there are still checked if they are durable.
    fn break_at(&mut self, next: Position) {
        self.is_sound = false;
        (self.broken, self.unit_open, self.ordinal) = (true, false, None);
        (self.position, self.has_ended) = (next, self.has_ended || next >= self.durable);
    }

    fn segment(
        &mut self,
        segment: &MappedSegment,
        first_ordinal: u64,
        in_use: bool,
        report: &mut VerifyReport,
        mut definition: impl FnMut(Position, &[u8], &mut VerifyReport),
    ) {
        let mut offset = 0;
        let mut ordinal = first_ordinal;
        let problems_before = report.problems.len();
        if !self.has_ended
            && self.ordinal.is_some_and(|o| o != first_ordinal)
            && segment.header_state(0) != HeaderWordState::Nothing
        {
            report.add_problem(
                &segment.path,
                56,
                "the first ordinal does not follow from the segment before",
            );
        }
        self.index_builder.begin_segment();
        while !self.has_ended {
            let (mut events, mut units, mut unit_end) = (0, 0, 0);
            let frame_offset = offset;
            offset =
                self.index_builder.add_plain_events(segment, offset, segment.data_bytes, |header, end| {
                    events += 1;
                    if header.is_last() {
                        (units, unit_end) = (units + 1, end);
                    }
                });
            if events > 0 {
                self.position = segment.base_position.plus(offset);
                self.unit_open = unit_end < offset;
                (report.frames, report.events) = (report.frames + events, report.events + events);
                (report.unit_count, ordinal) = (report.unit_count + units, ordinal + events);
                if !self.broken && unit_end > frame_offset {
                    report.intact_to = segment.base_position.plus(unit_end);
                }
            }
            if offset >= segment.data_bytes {
                break;
            }
            match segment.header_state(offset) {
                HeaderWordState::Frame(header) => {
                    self.index_builder.add_frame(segment, offset, header);
                    if DEFINITION_KINDS.contains(&header.kind()) {
                        // SAFETY: `look` saw the frame committed at `offset`, its length within the segment.
                        let frame = unsafe { segment.bytes(offset, header.len_bytes()) };
                        definition(segment.base_position.plus(offset), frame, report);
                    }
                    offset += header.len_bytes() as u64;
                    let is_filler = header.kind() == KIND_PAD;
                    report.frames += u64::from(!is_filler);
                    report.events += u64::from(!header.is_meta());
                    ordinal += u64::from(!header.is_meta());
                    self.unit_open = !header.is_last();
                    self.position = segment.base_position.plus(offset);
                    if header.is_last() {
                        report.unit_count += u64::from(!is_filler);
                        if !self.broken {
                            report.intact_to = self.position;
                        }
                    }
                }
                HeaderWordState::Pad => {
                    if let Some(nonzero_offset) = segment.first_nonzero(offset + 64).filter(|_| !in_use) {
                        report.add_problem(
                            &segment.path,
                            HEADER_PAGE + nonzero_offset,
                            "bytes behind the pad of a segment",
                        );
                    }
                    self.position = segment.end_position();
                    break;
                }
                // A hole in the durable part: another process removed the frames.
                HeaderWordState::Nothing if segment.base_position.plus(offset) < self.durable && !in_use => {
                    let (from, end) = (segment.base_position.plus(offset), segment.end_position());
                    let problem = "nothing stands here, and the tape is durable further";
                    report.add_loss(
                        &segment.path,
                        HEADER_PAGE + offset,
                        problem,
                        from,
                        end.min(self.durable),
                    );
                    return self.break_at(end);
                }
                HeaderWordState::Nothing => self.has_ended = true,
                HeaderWordState::Damage(header) => {
                    let frame_problem = format!("no frame can start with {header}");
                    let (from, end) = (segment.base_position.plus(offset), segment.end_position());
                    report.add_loss(&segment.path, HEADER_PAGE + offset, frame_problem, from, end);
                    return self.break_at(end);
                }
            }
        }
        if self.has_ended
            && !in_use
            && let Some(stray_offset) = segment.first_nonzero(offset)
        {
            report.add_problem(&segment.path, HEADER_PAGE + stray_offset, "bytes behind the end of the tape");
        }
        self.ordinal = Some(ordinal);
        self.is_sound = report.problems.len() == problems_before;
    }
}

/// Compares the index of a segment that is durable, and in which nothing else is wrong, with its frames.
fn check_index(
    live: &SegmentLocator,
    frames: &mut IndexBuilder,
    header: &SegmentHeader,
    durable: Position,
    report: &mut VerifyReport,
) {
    let segment_start = Position(header.index * header.meta.segment_bytes);
    let segment_end = segment_start.plus(header.meta.segment_bytes);
    let is_durable = segment_end <= durable || is_sealed(&segment_path(&live.paths.segments(), header.index));
    if is_durable && let Some(fault) = segment_index::find_fault(&live.paths, frames, header) {
        let problem =
            format!("{}, of positions {segment_start} to {segment_end}; readers do without it", fault.reason);
        report.add_problem(&live.paths.index(header.index), fault.offset, problem);
    }
}

/// Compares the checksums of a segment on the disk; true if one does not match.
fn check_sums(
    live: &SegmentLocator,
    index: u64,
    durable: &DurableMark,
    stored: StoredChecksumState,
    report: &mut VerifyReport,
) -> bool {
    let (size, span) = (live.meta.segment_bytes, live.meta.span());
    let base = Position(index * size);
    let mut covered = durable.position.0.saturating_sub(base.0).min(size);
    if stored == StoredChecksumState::Moving && durable.open_sum.is_none() {
        covered -= covered % span;
    }
    let path = segment_path(&live.paths.segments(), index);
    let sums_path = live.paths.crc(index);
    // Only durable segments are sealed, whatever an older `durable` says.
    if is_sealed(&path) {
        covered = size;
    }
    if covered == 0 {
        return false;
    }
    let checks = match SegmentSums::load(&live.paths, &live.meta, index) {
        Ok(checks) => checks,
        Err(e) => {
            report.add_problem(&sums_path, 0, e.to_string());
            return false;
        }
    };
    let Ok(Some((segment, _))) = MappedSegment::open(&path, &live.meta, index, false) else { return false };
    let mut broken = false;
    let span_count = covered.div_ceil(span);
    if checks.len() < span_count {
        let unchecked_start = base.plus(checks.len() * span);
        let problem = match sums_path.exists() {
            true => format!("unverified: there must be {span_count} checksums and are {}", checks.len()),
            false => "unverified: the checksums are missing".to_owned(),
        };
        report.add_loss(&sums_path, checks.len() * 4, problem, unchecked_start, base.plus(covered));
        report.intact_to = report.intact_to.min(unchecked_start);
        broken = true;
    }
    let open_span = OpenSpan { covered_sum: durable.open_sum, stored_state: stored };
    for i in 0..span_count {
        // Frames before the durable position are committed.
        let Some(fault) = checks.fault(&segment, i, covered, open_span) else {
            report.spans += 1;
            continue;
        };
        if !fault.missing {
            report.spans += 1;
            let sum_problem = format!("the checksum of the {span} bytes from here does not match");
            let (from, to) = (base.plus(fault.from_offset), base.plus(fault.to_offset));
            report.add_loss(&path, HEADER_PAGE + fault.from_offset, sum_problem, from, to);
            report.intact_to = report.intact_to.min(from);
            broken = true;
        }
    }
    broken
}

/// The dictionary log beside the walk over the tape.
struct DefinitionLogVerifier {
    next_definition: Option<(Position, Vec<u8>)>,
    /// The log must have everything before this position.
    required_end: Position,
}

impl DefinitionLogVerifier {
    fn next_definition(&mut self, log: &mut Option<DefinitionReader>, report: &mut VerifyReport) {
        self.next_definition = None;
        if let Some(log_reader) = log {
            match log_reader.next() {
                Ok(Some((position, frame))) => {
                    report.definitions += 1;
                    self.next_definition = Some((position, frame.to_vec()));
                }
                Ok(None) => *log = None,
                Err(e) => {
                    report.error(e, Path::new("definitions.log"), None);
                    *log = None;
                }
            }
        }
    }

    fn skip_to(&mut self, log: &mut Option<DefinitionReader>, position: Position, report: &mut VerifyReport) {
        self.next_definition(log, report);
        while self
            .next_definition
            .as_ref()
            .is_some_and(|(definition_position, _)| *definition_position < position)
        {
            self.next_definition(log, report);
        }
    }

    /// Skips the log's records of a damaged part of the tape.
    fn skip_below(
        &mut self,
        log: &mut Option<DefinitionReader>,
        position: Position,
        report: &mut VerifyReport,
    ) {
        while self
            .next_definition
            .as_ref()
            .is_some_and(|(definition_position, _)| *definition_position < position)
        {
            self.next_definition(log, report);
        }
    }

    fn compare_definition(
        &mut self,
        log: &mut Option<DefinitionReader>,
        position: Position,
        frame: &[u8],
        report: &mut VerifyReport,
    ) {
        let is_same = self
            .next_definition
            .as_ref()
            .is_some_and(|(definition_position, logged)| *definition_position == position && logged == frame);
        if is_same {
            self.next_definition(log, report);
        } else if position < self.required_end {
            let kind = FrameHeader::read(frame).kind();
            let problem = format!(
                "the definition (kind {kind}) at position {position} is not in the log as it is on the tape"
            );
            report.add_problem(Path::new("definitions.log"), 0, problem);
            self.skip_to_after(log, position, report);
        }
    }

    fn skip_to_after(
        &mut self,
        log: &mut Option<DefinitionReader>,
        position: Position,
        report: &mut VerifyReport,
    ) {
        while self
            .next_definition
            .as_ref()
            .is_some_and(|(definition_position, _)| *definition_position <= position)
        {
            self.next_definition(log, report);
        }
    }

    fn report_rest(&mut self, log: &mut Option<DefinitionReader>, end: Position, report: &mut VerifyReport) {
        while let Some((definition_position, _)) = &self.next_definition {
            if *definition_position < end || self.required_end >= end {
                let problem = format!(
                    "the log has a definition at position {definition_position} that the tape does not have"
                );
                report.add_problem(Path::new("definitions.log"), 0, problem);
            }
            self.next_definition(log, report);
        }
    }
}
