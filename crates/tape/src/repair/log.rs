//! `definitions.log`, made again from its own records that are sound and the frames of the segments.
//!
//! ```text
//!  removed segments │ segments that are there
//!  ─────────────────┼───────────────────────────
//!  records that     │ frames; a record where the frame cannot be read, or lies in a span that does not match
//!  are sound        │
//! ```
//!
//! Records that are lost and whose segments are gone are lost for good; the report says where they were.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use unitape_model::{FrameHeader, LINE, Position};

use crate::disk::definitions::{DEFINITION_KINDS, HEAD, RECORD, encode_head, encode_record};
use crate::disk::durable::DurableMark;
use crate::disk::layout::TapeManifest;
use crate::disk::sys;
use crate::error::{FileContext, Result};
use crate::repair::backup::FileAttributes;
use crate::repair::spans::UnmendedRange;
use crate::repair::{RepairFinding, RepairRemedy, RepairSession};
use crate::trust::survey::{SegmentScanEnd, TapeSurvey};

/// A record of the log that is sound.
#[derive(Clone, Copy, Debug)]
struct LogRecord {
    position: Position,
    /// Where it begins in the file, and bytes of its frame.
    file_offset: u64,
    frame_bytes: u32,
}

/// The readable parts of the log.
#[derive(Debug, Default)]
struct LogSurvey {
    header_is_intact: bool,
    records: Vec<LogRecord>,
    /// Bytes between sound records: from, to.
    gaps: Vec<(u64, u64)>,
    bytes: u64,
}

/// A lost part of the log, and the part rebuilt from the segments.
#[derive(Debug)]
struct LogGap {
    from_offset: u64,
    to_offset: u64,
    /// Positions after the record before the gap, and of the record after it.
    position_from: Position,
    position_to: Position,
    /// Bytes of the lost records that the segments still define.
    defined_bytes: u64,
}

impl RepairSession<'_> {
    /// Compares the log with the segments, and rebuilds it if it differs.
    pub(super) fn definitions(
        &mut self,
        survey: &TapeSurvey,
        durable: &mut DurableMark,
        wounds: &[UnmendedRange],
    ) -> Result<()> {
        let path = self.paths.definitions();
        let durable_end = durable.position;
        let log = LogSurvey::from_file(&path, &survey.meta)?;
        let mut gaps = log.durable_gaps(durable.definitions_bytes, durable_end);
        let mut writer = RebuiltLog::compare_log(&path, &survey.meta, log.header_is_intact)?;
        merge_definitions(survey, &log, wounds, durable_end, &mut |position, frame| {
            for gap in gaps.iter_mut().filter(|g| g.position_from <= position && position < g.position_to) {
                gap.defined_bytes += (RECORD + frame.len()) as u64;
            }
            writer.push(position, frame)
        })?;
        // Beyond that a recorder that died may have left what the tape has, and nothing else.
        let (tape_end, durable_bytes) = (survey.end_positions().0, durable.definitions_bytes);
        let is_within_durable = log.gaps.iter().all(|&(from, _)| from < durable_bytes)
            && log.records.iter().all(|record| record.position < tape_end);
        let (is_same, length) =
            (writer.is_same && writer.is_all(self.was_closed || !is_within_durable)?, writer.length);
        // A tape that was cut to nothing keeps nothing of the log.
        let surplus = log.records.iter().any(|record| record.position >= tape_end)
            || tape_end == Position(0) && !log.gaps.is_empty();
        // The tape has all of it, and its recorder writes it again; but for a head after which nobody would read on.
        let never = !surplus
            && durable_end.0 == 0
            && durable.definitions_bytes == 0
            && (log.header_is_intact || log.bytes < HEAD as u64);
        let counted = durable.definitions_bytes;
        durable.definitions_bytes = if never || surplus && durable_end.0 == 0 { 0 } else { length };
        if is_same || never {
            if is_same && counted != length && durable_end.0 > 0 && counted > 0 {
                let problem = format!("it says that {counted} bytes of definitions.log are durable");
                self.add_mended(&self.paths.durable(), 24, problem, format!("they are {length}"));
            }
            return Ok(());
        }
        let (log_problem, offset) = match (path.exists(), gaps.first()) {
            (false, _) => ("the dictionary log is missing".to_owned(), 0),
            (true, Some(gap)) => (
                format!("{} bytes of it cannot be read", gap.to_offset.saturating_sub(gap.from_offset)),
                gap.from_offset,
            ),
            (true, None) if !log.header_is_intact => ("its head is damaged".to_owned(), 0),
            (true, None) => ("it does not say what the segments do".to_owned(), HEAD as u64),
        };
        let action = format!("made again from its sound records and the segments: {length} bytes");
        self.add_mended(&path, offset, log_problem, action);
        let oldest_position = survey.oldest_position();
        if gaps.is_empty() && log.records.is_empty() && oldest_position.0 > 0 {
            // Nothing says how much of it there was.
            gaps.push(LogGap {
                from_offset: HEAD as u64,
                to_offset: HEAD as u64 + 1,
                position_from: Position(0),
                position_to: oldest_position,
                defined_bytes: 0,
            });
        }
        for gap in gaps.iter().filter(|g| g.defined_bytes < g.to_offset.saturating_sub(g.from_offset)) {
            let upto = gap.position_to.min(durable_end);
            // Nothing is lost of what the segments have; the record was of what was cut.
            if has_all(survey, wounds, gap.position_from, upto) {
                continue;
            }
            let gap_problem = format!("definitions of positions {} to {upto} are lost", gap.position_from);
            let action = match gap.position_from < oldest_position {
                true => {
                    "their segments were removed by retention; names that they define are not known any more"
                }
                false => "the segments do not have them either",
            };
            if self.options.apply {
                self.backup.log(&format!("lost definitions {} {upto}", gap.position_from))?;
            }
            self.add_finding(RepairFinding {
                file_path: path.clone(),
                offset: gap.from_offset,
                position_range: Some((gap.position_from, upto)),
                problem: gap_problem,
                remedy: RepairRemedy::Nothing,
                action: action.to_owned(),
                is_mended: false,
            });
        }
        if self.options.apply {
            let temp = self.backup.temp_path()?;
            let mut writer = RebuiltLog::create_log(temp.clone(), &survey.meta)?;
            merge_definitions(survey, &log, wounds, durable_end, &mut |position, frame| {
                writer.push(position, frame)
            })?;
            writer.finish_log()?;
            self.backup.install(&temp, &path, &FileAttributes::default())?;
        }
        Ok(())
    }
}

/// Passes all definitions before `end` in order: those of the segments, or those of the log if the segments are missing
/// or cannot be trusted.
fn merge_definitions(
    survey: &TapeSurvey,
    log: &LogSurvey,
    wounds: &[UnmendedRange],
    end: Position,
    give: &mut dyn FnMut(Position, &[u8]) -> Result<()>,
) -> Result<()> {
    let path = survey.paths.definitions();
    let mut file = File::open(&path).ok().map(BufReader::new);
    let mut frame = Vec::new();
    let mut read_record = |record: &LogRecord, frame: &mut Vec<u8>| -> Result<()> {
        frame.resize(record.frame_bytes as usize, 0);
        if let Some(file) = &mut file {
            file.seek(SeekFrom::Start(record.file_offset + RECORD as u64)).with_context("read", &path)?;
            file.read_exact(frame).with_context("read", &path)?;
        }
        Ok(())
    };
    // The segments themselves confirm these positions: walked frames.
    let walked = |position: Position| {
        position >= survey.oldest_position()
            && survey.segment_at(position).is_some_and(|s| position.0 - s.base_position.0 < s.frames_end)
            && !in_wound(wounds, position)
    };
    let mut records = log.records.iter().filter(|r| r.position < end).peekable();
    survey.definitions(end, &mut |position, on_tape| {
        while let Some(record) = records.next_if(|r| r.position < position) {
            if !walked(record.position) {
                read_record(record, &mut frame)?;
                give(record.position, &frame)?;
            }
        }
        match records.next_if(|r| r.position == position) {
            // The log has a checksum of its own for it.
            Some(record) if in_wound(wounds, position) => {
                read_record(record, &mut frame)?;
                give(record.position, &frame)
            }
            _ => give(position, on_tape),
        }
    })?;
    for record in records.filter(|r| !walked(r.position)) {
        read_record(record, &mut frame)?;
        give(record.position, &frame)?;
    }
    Ok(())
}

/// Returns whether the segments have all frames of these positions, without a wound among them.
fn has_all(survey: &TapeSurvey, wounds: &[UnmendedRange], from: Position, to: Position) -> bool {
    let size = survey.meta.segment_bytes;
    let is_complete = |base: Position| {
        let segment_survey = survey.segment_at(base);
        segment_survey.is_some_and(|segment| {
            segment.scan_end == SegmentScanEnd::Full || segment.base_position.plus(segment.frames_end) >= to
        })
    };
    if from < survey.oldest_position() {
        return false;
    }
    let mut bases = (from.0 / size..to.0.div_ceil(size)).map(|index| Position(index * size));
    bases.all(is_complete) && !wounds.iter().any(|wound| wound.from_position < to && from < wound.to_position)
}

fn in_wound(wounds: &[UnmendedRange], position: Position) -> bool {
    wounds.iter().any(|w| w.from_position <= position && position < w.to_position)
}

impl LogSurvey {
    fn from_file(path: &std::path::Path, meta: &TapeManifest) -> Result<Self> {
        let mut out = Self::default();
        let mut bytes = Vec::new();
        match File::open(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(out),
            Err(e) => return Err(e).with_context("open", path),
            Ok(mut file) => _ = file.read_to_end(&mut bytes).with_context("read", path)?,
        }
        out.bytes = bytes.len() as u64;
        out.header_is_intact = bytes.starts_with(&encode_head(meta));
        let (mut offset, mut gap, mut last) = (HEAD.min(bytes.len()), None, None);
        while offset < bytes.len() {
            // A second one of what was before is no gap: nothing is lost by leaving it out.
            if gap.is_none()
                && let Some(stray) =
                    record_at(&bytes, offset, None).filter(|r| last.is_some_and(|last| r.position <= last))
            {
                offset += RECORD + stray.frame_bytes as usize;
                continue;
            }
            match record_at(&bytes, offset, last) {
                Some(record) => {
                    out.gaps.extend(gap.take().map(|from: usize| (from as u64, offset as u64)));
                    last = Some(record.position);
                    offset += RECORD + record.frame_bytes as usize;
                    out.records.push(record);
                }
                None => {
                    let gap_start = *gap.get_or_insert(offset);
                    offset = match offset == gap_start {
                        // The length in its own head is tried first: a frame may hold bytes that look like a record.
                        true => stated_end(&bytes, offset)
                            .filter(|&end| is_record(&bytes, end, last))
                            .unwrap_or(offset + STEP),
                        false => offset + STEP,
                    };
                }
            }
        }
        out.gaps.extend(gap.map(|from| (from as u64, bytes.len() as u64)));
        Ok(out)
    }

    /// Returns the durable gaps of the log, including a missing end.
    fn durable_gaps(&self, durable_bytes: u64, end: Position) -> Vec<LogGap> {
        let mut gaps: Vec<_> = self.gaps.iter().map(|&(from, to)| self.make_gap(from, to, end)).collect();
        let log_end = self.bytes.max(HEAD as u64);
        if durable_bytes > log_end {
            let open_gap = self.gaps.last().filter(|(_, to)| *to == self.bytes).map(|(from, _)| *from);
            gaps.truncate(gaps.len() - usize::from(open_gap.is_some()));
            gaps.push(self.make_gap(open_gap.unwrap_or(log_end), durable_bytes, end));
        }
        gaps.retain(|gap| gap.position_from < end && (durable_bytes == 0 || gap.from_offset < durable_bytes));
        gaps
    }

    fn make_gap(&self, from: u64, to: u64, end: Position) -> LogGap {
        let record_end = |r: &LogRecord| r.position.plus(u64::from(r.frame_bytes));
        let since = self.records.iter().rev().find(|r| r.file_offset < from).map_or(Position(0), record_end);
        let position_before = self.records.iter().find(|r| r.file_offset >= to).map_or(end, |r| r.position);
        LogGap {
            from_offset: from,
            to_offset: to,
            position_from: since,
            position_to: position_before,
            defined_bytes: 0,
        }
    }
}

/// Records begin at multiples of this, counted from the end of the head.
const STEP: usize = 16;

fn record_at(bytes: &[u8], offset: usize, last: Option<Position>) -> Option<LogRecord> {
    let head = bytes.get(offset..offset + RECORD)?;
    let position = Position(u64::from_le_bytes(head[..8].try_into().expect("eight bytes")));
    let length = u32::from_le_bytes(head[8..12].try_into().expect("four bytes"));
    let is_plausible =
        length > 0 && (length as usize).is_multiple_of(LINE) && last.is_none_or(|last| last < position);
    let frame = is_plausible.then(|| bytes.get(offset + RECORD..offset + RECORD + length as usize))??;
    let header = FrameHeader::read(frame);
    let sound = *head == encode_record(position, frame)
        && header.is_at(position)
        && header.len_bytes() == length as usize
        && DEFINITION_KINDS.contains(&header.kind());
    sound.then_some(LogRecord { position, file_offset: offset as u64, frame_bytes: length })
}

fn is_record(bytes: &[u8], offset: usize, last: Option<Position>) -> bool {
    offset == bytes.len() || record_at(bytes, offset, last).is_some()
}

/// Returns the end of a broken record according to its own length field.
fn stated_end(bytes: &[u8], offset: usize) -> Option<usize> {
    let length =
        u32::from_le_bytes(bytes.get(offset + 8..offset + 12)?.try_into().expect("four bytes")) as usize;
    let record_end = offset + RECORD + length;
    (length > 0 && length.is_multiple_of(LINE) && record_end <= bytes.len()).then_some(record_end)
}

/// The log as it should be, compared with the existing log or written.
struct RebuiltLog {
    log_path: PathBuf,
    old_log: Option<BufReader<File>>,
    new: Option<BufWriter<File>>,
    is_same: bool,
    length: u64,
}

impl RebuiltLog {
    fn compare_log(path: &std::path::Path, meta: &TapeManifest, is_head_sound: bool) -> Result<Self> {
        let mut old_log = File::open(path).ok().map(BufReader::new);
        let mut head_bytes = [0; HEAD];
        let mut is_same = is_head_sound;
        if let Some(old_log) = &mut old_log {
            is_same &= old_log.read_exact(&mut head_bytes).is_ok() && head_bytes == encode_head(meta);
        }
        is_same &= old_log.is_some();
        Ok(Self { log_path: path.into(), old_log, new: None, is_same, length: HEAD as u64 })
    }

    fn create_log(path: PathBuf, meta: &TapeManifest) -> Result<Self> {
        let options = std::fs::OpenOptions::new().write(true).create(true).truncate(true).clone();
        let mut new_log = BufWriter::new(sys::open(&path, &options).with_context("create", &path)?);
        new_log.write_all(&encode_head(meta)).with_context("write", &path)?;
        Ok(Self { log_path: path, old_log: None, new: Some(new_log), is_same: true, length: HEAD as u64 })
    }

    fn push(&mut self, position: Position, frame: &[u8]) -> Result<()> {
        let head = encode_record(position, frame);
        self.length += (RECORD + frame.len()) as u64;
        if let Some(new_log) = &mut self.new {
            return new_log
                .write_all(&head)
                .and_then(|()| new_log.write_all(frame))
                .with_context("write", &self.log_path);
        }
        if self.is_same
            && let Some(old) = &mut self.old_log
        {
            let mut old_bytes = vec![0; RECORD + frame.len()];
            let is_read = old.read_exact(&mut old_bytes).is_ok();
            self.is_same = is_read && old_bytes[..RECORD] == head && old_bytes[RECORD..] == *frame;
        }
        Ok(())
    }

    /// Returns whether the existing log has nothing more than this, or only records that a recorder was about to make
    /// durable.
    fn is_all(&mut self, closed: bool) -> Result<bool> {
        let Some(old_log) = &mut self.old_log else { return Ok(false) };
        Ok(!closed || old_log.read(&mut [0]).with_context("read", &self.log_path)? == 0)
    }

    fn finish_log(self) -> Result<()> {
        let Some(new_log) = self.new else { return Ok(()) };
        let file = new_log
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)
            .with_context("write", &self.log_path)?;
        sys::sync_data(&file).with_context("flush", &self.log_path)
    }
}
