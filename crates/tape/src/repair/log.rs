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
    offset: u64,
    length: u32,
}

/// The readable parts of the log.
#[derive(Debug, Default)]
struct LogSurvey {
    head: bool,
    records: Vec<LogRecord>,
    /// Bytes between sound records: from, to.
    gaps: Vec<(u64, u64)>,
    bytes: u64,
}

/// A lost part of the log, and the part rebuilt from the segments.
#[derive(Debug)]
struct LogGap {
    from: u64,
    to: u64,
    /// Positions after the record before the gap, and of the record after it.
    since: Position,
    before: Position,
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
        let end = durable.position;
        let log = LogSurvey::from_file(&path, &survey.meta)?;
        let mut gaps = log.gaps(durable.definitions_bytes, end);
        let mut writer = RebuiltLog::compare(&path, &survey.meta, log.head)?;
        merge(survey, &log, wounds, end, &mut |position, frame| {
            for gap in gaps.iter_mut().filter(|g| g.since <= position && position < g.before) {
                gap.defined_bytes += (RECORD + frame.len()) as u64;
            }
            writer.push(position, frame)
        })?;
        // Beyond that a recorder that died may have left what the tape has, and nothing else.
        let (tape_end, durable_bytes) = (survey.end().0, durable.definitions_bytes);
        let is_within_durable = log.gaps.iter().all(|&(from, _)| from < durable_bytes)
            && log.records.iter().all(|record| record.position < tape_end);
        let (is_same, length) =
            (writer.is_same && writer.is_all(self.closed || !is_within_durable)?, writer.length);
        // A tape that was cut to nothing keeps nothing of the log.
        let surplus = log.records.iter().any(|record| record.position >= tape_end)
            || tape_end == Position(0) && !log.gaps.is_empty();
        // The tape has all of it, and its recorder writes it again; but for a head after which nobody would read on.
        let never =
            !surplus && end.0 == 0 && durable.definitions_bytes == 0 && (log.head || log.bytes < HEAD as u64);
        let counted = durable.definitions_bytes;
        durable.definitions_bytes = if never || surplus && end.0 == 0 { 0 } else { length };
        if is_same || never {
            if is_same && counted != length && end.0 > 0 && counted > 0 {
                let problem = format!("it says that {counted} bytes of definitions.log are durable");
                self.mends(&self.paths.durable(), 24, problem, format!("they are {length}"));
            }
            return Ok(());
        }
        let (log_problem, offset) = match (path.exists(), gaps.first()) {
            (false, _) => ("the dictionary log is missing".to_owned(), 0),
            (true, Some(gap)) => {
                (format!("{} bytes of it cannot be read", gap.to.saturating_sub(gap.from)), gap.from)
            }
            (true, None) if !log.head => ("its head is damaged".to_owned(), 0),
            (true, None) => ("it does not say what the segments do".to_owned(), HEAD as u64),
        };
        let action = format!("made again from its sound records and the segments: {length} bytes");
        self.mends(&path, offset, log_problem, action);
        let first = survey.oldest();
        if gaps.is_empty() && log.records.is_empty() && first.0 > 0 {
            // Nothing says how much of it there was.
            gaps.push(LogGap {
                from: HEAD as u64,
                to: HEAD as u64 + 1,
                since: Position(0),
                before: first,
                defined_bytes: 0,
            });
        }
        for gap in gaps.iter().filter(|g| g.defined_bytes < g.to.saturating_sub(g.from)) {
            let upto = gap.before.min(end);
            // Nothing is lost of what the segments have; the record was of what was cut.
            if has_all(survey, wounds, gap.since, upto) {
                continue;
            }
            let gap_problem = format!("definitions of positions {} to {upto} are lost", gap.since);
            let action = match gap.since < first {
                true => {
                    "their segments were removed by retention; names that they define are not known any more"
                }
                false => "the segments do not have them either",
            };
            if self.options.apply {
                self.backup.log(&format!("lost definitions {} {upto}", gap.since))?;
            }
            self.find(RepairFinding {
                file: path.clone(),
                offset: gap.from,
                positions: Some((gap.since, upto)),
                problem: gap_problem,
                remedy: RepairRemedy::Nothing,
                action: action.to_owned(),
                mended: false,
            });
        }
        if self.options.apply {
            let temp = self.backup.temp_path()?;
            let mut writer = RebuiltLog::write(temp.clone(), &survey.meta)?;
            merge(survey, &log, wounds, end, &mut |position, frame| writer.push(position, frame))?;
            writer.finish()?;
            self.backup.install(&temp, &path, &FileAttributes::default())?;
        }
        Ok(())
    }
}

/// Passes all definitions before `end` in order: those of the segments, or those of the log if the segments are missing
/// or cannot be trusted.
fn merge(
    survey: &TapeSurvey,
    log: &LogSurvey,
    wounds: &[UnmendedRange],
    end: Position,
    give: &mut dyn FnMut(Position, &[u8]) -> Result<()>,
) -> Result<()> {
    let path = survey.paths.definitions();
    let mut file = File::open(&path).ok().map(BufReader::new);
    let mut frame = Vec::new();
    let mut read = |record: &LogRecord, frame: &mut Vec<u8>| -> Result<()> {
        frame.resize(record.length as usize, 0);
        if let Some(file) = &mut file {
            file.seek(SeekFrom::Start(record.offset + RECORD as u64)).with_context("read", &path)?;
            file.read_exact(frame).with_context("read", &path)?;
        }
        Ok(())
    };
    // The segments themselves confirm these positions: walked frames.
    let walked = |position: Position| {
        position >= survey.oldest()
            && survey.segment_at(position).is_some_and(|s| position.0 - s.base.0 < s.frames_end)
            && !in_wound(wounds, position)
    };
    let mut records = log.records.iter().filter(|r| r.position < end).peekable();
    survey.definitions(end, &mut |position, on_tape| {
        while let Some(record) = records.next_if(|r| r.position < position) {
            if !walked(record.position) {
                read(record, &mut frame)?;
                give(record.position, &frame)?;
            }
        }
        match records.next_if(|r| r.position == position) {
            // The log has a checksum of its own for it.
            Some(record) if in_wound(wounds, position) => {
                read(record, &mut frame)?;
                give(record.position, &frame)
            }
            _ => give(position, on_tape),
        }
    })?;
    for record in records.filter(|r| !walked(r.position)) {
        read(record, &mut frame)?;
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
            segment.stop == SegmentScanEnd::Full || segment.base.plus(segment.frames_end) >= to
        })
    };
    if from < survey.oldest() {
        return false;
    }
    let mut bases = (from.0 / size..to.0.div_ceil(size)).map(|index| Position(index * size));
    bases.all(is_complete) && !wounds.iter().any(|wound| wound.from < to && from < wound.to)
}

fn in_wound(wounds: &[UnmendedRange], position: Position) -> bool {
    wounds.iter().any(|w| w.from <= position && position < w.to)
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
        out.head = bytes.starts_with(&encode_head(meta));
        let (mut offset, mut gap, mut last) = (HEAD.min(bytes.len()), None, None);
        while offset < bytes.len() {
            // A second one of what was before is no gap: nothing is lost by leaving it out.
            if gap.is_none()
                && let Some(stray) =
                    record_at(&bytes, offset, None).filter(|r| last.is_some_and(|last| r.position <= last))
            {
                offset += RECORD + stray.length as usize;
                continue;
            }
            match record_at(&bytes, offset, last) {
                Some(record) => {
                    out.gaps.extend(gap.take().map(|from: usize| (from as u64, offset as u64)));
                    last = Some(record.position);
                    offset += RECORD + record.length as usize;
                    out.records.push(record);
                }
                None => {
                    let from = *gap.get_or_insert(offset);
                    offset = match offset == from {
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
    fn gaps(&self, durable_bytes: u64, end: Position) -> Vec<LogGap> {
        let mut gaps: Vec<_> = self.gaps.iter().map(|&(from, to)| self.gap(from, to, end)).collect();
        let have = self.bytes.max(HEAD as u64);
        if durable_bytes > have {
            let open = self.gaps.last().filter(|(_, to)| *to == self.bytes).map(|(from, _)| *from);
            gaps.truncate(gaps.len() - usize::from(open.is_some()));
            gaps.push(self.gap(open.unwrap_or(have), durable_bytes, end));
        }
        gaps.retain(|gap| gap.since < end && (durable_bytes == 0 || gap.from < durable_bytes));
        gaps
    }

    fn gap(&self, from: u64, to: u64, end: Position) -> LogGap {
        let record_end = |r: &LogRecord| r.position.plus(u64::from(r.length));
        let since = self.records.iter().rev().find(|r| r.offset < from).map_or(Position(0), record_end);
        let before = self.records.iter().find(|r| r.offset >= to).map_or(end, |r| r.position);
        LogGap { from, to, since, before, defined_bytes: 0 }
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
    sound.then_some(LogRecord { position, offset: offset as u64, length })
}

fn is_record(bytes: &[u8], offset: usize, last: Option<Position>) -> bool {
    offset == bytes.len() || record_at(bytes, offset, last).is_some()
}

/// Returns the end of a broken record according to its own length field.
fn stated_end(bytes: &[u8], offset: usize) -> Option<usize> {
    let length =
        u32::from_le_bytes(bytes.get(offset + 8..offset + 12)?.try_into().expect("four bytes")) as usize;
    let end = offset + RECORD + length;
    (length > 0 && length.is_multiple_of(LINE) && end <= bytes.len()).then_some(end)
}

/// The log as it should be, compared with the existing log or written.
struct RebuiltLog {
    path: PathBuf,
    old: Option<BufReader<File>>,
    new: Option<BufWriter<File>>,
    is_same: bool,
    length: u64,
}

impl RebuiltLog {
    fn compare(path: &std::path::Path, meta: &TapeManifest, head: bool) -> Result<Self> {
        let mut old = File::open(path).ok().map(BufReader::new);
        let mut start = [0; HEAD];
        let mut is_same = head;
        if let Some(old) = &mut old {
            is_same &= old.read_exact(&mut start).is_ok() && start == encode_head(meta);
        }
        is_same &= old.is_some();
        Ok(Self { path: path.into(), old, new: None, is_same, length: HEAD as u64 })
    }

    fn write(path: PathBuf, meta: &TapeManifest) -> Result<Self> {
        let options = std::fs::OpenOptions::new().write(true).create(true).truncate(true).clone();
        let mut new = BufWriter::new(sys::open(&path, &options).with_context("create", &path)?);
        new.write_all(&encode_head(meta)).with_context("write", &path)?;
        Ok(Self { path, old: None, new: Some(new), is_same: true, length: HEAD as u64 })
    }

    fn push(&mut self, position: Position, frame: &[u8]) -> Result<()> {
        let head = encode_record(position, frame);
        self.length += (RECORD + frame.len()) as u64;
        if let Some(new) = &mut self.new {
            return new
                .write_all(&head)
                .and_then(|()| new.write_all(frame))
                .with_context("write", &self.path);
        }
        if self.is_same
            && let Some(old) = &mut self.old
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
        let Some(old) = &mut self.old else { return Ok(false) };
        Ok(!closed || old.read(&mut [0]).with_context("read", &self.path)? == 0)
    }

    fn finish(self) -> Result<()> {
        let Some(new) = self.new else { return Ok(()) };
        let file = new
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)
            .with_context("write", &self.path)?;
        sys::sync_data(&file).with_context("flush", &self.path)
    }
}
