//! Checksums before data: a reader compares each span with its sum before it gives out a frame of it.
//!
//! ```text
//!   span     │▓▓▓▓▓▓▓▓▓▓▓▓▓▓│▓▓▓▓▓▓▓▓▓▓▓▓▓▓│▓▓▓▓▓░░░░░░░░░│░░░░░░░░
//!            whole: its sum   whole          ▲ durable      beyond: no sum vouches for it yet
//!   frames   ■■■■ ■■■■■■■■■ ■■■■■■■■ ■■■■■■ ■│■■■ ■■■ ■■
//!                       ▲ at     ▲ limit: frames up to here need no further question
//! ```
//!
//! A reader compares the end of a frame with its limit, as it would with the segment's end, so a frame that is checked
//! costs nothing more. At the limit the reader comes here, once in 64 KiB.
//!
//! The sums cover a part of the tape that depends on its holder:
//!
//! | the tape | covered |
//! |---|---|
//! | is closed | all of it |
//! | has a writer or a recorder, or they died | up to the durable position |
//!
//! The durable position lies within a span mostly. The file `durable` has the sum of exactly the bytes before it. Tapes of
//! earlier builds have no such sum; the one in the `.crc` is of the bytes that were there when the recorder flushed, with
//! zeros after them: those up to the durable position, or some more.
//!
//! A sum that does not match is looked at again before it is damage, and so is one that is missing: a recorder that
//! begins again writes the sums of its segment again, and retention removes a segment's file before its sums.

use std::path::Path;
use std::time::Duration;

use unitape_model::{LINE, Position};

use crate::disk::durable::load_durable;
use crate::disk::layout::{HEADER_PAGE, TapePaths, read_start};
use crate::disk::lock::{boot_id, field, holder};
use crate::disk::map::{HeaderWordState, MappedSegment};
use crate::disk::seal::is_sealed;
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::state_page::StatePage;
use crate::error::{Error, FileContext, Result, optional};
use crate::read::damage::UnverifiedBytes;
use crate::trust::span::{extend_with_zeros, matches_prefix_sum, span_sum};

/// How often something that does not match is looked at again, and how long after one another.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(1);

/// How often a reader asks for sums that a recorder is about to write again.
const WAITS: u32 = 50;

/// The comparison of one segment's spans with their sums, as far as a reader has come.
#[derive(Debug)]
pub(crate) struct SpanVerifier {
    /// False: all frames are returned without checks.
    pub is_enabled: bool,
    span: u64,
    /// The checksums in the segment's file when it was read; `None`: not read yet.
    segment_sums: Option<Vec<u8>>,
    /// Sums of this segment were missing and did not come; true if that is to be reported.
    given_up: Option<bool>,
    /// Spans that match, a bit each.
    matching: Vec<u64>,
    /// Data offset up to which the span of the durable position matches.
    durable_part_end: u64,
    /// The reach of the sums, if it was looked up for this segment.
    coverage: Option<ChecksumCoverage>,
    /// The segment is sealed; only durable segments are.
    is_sealed: Option<bool>,
    /// The end of the last span that matches, and of the last span that was not compared.
    checked_end: Position,
    unchecked_end: Position,
    /// The tape has more than its durable position says, and the report has that.
    overrun: bool,
    /// Bytes that should have been compared and could not be.
    pub unverified_bytes: UnverifiedBytes,
}

/// How far the sums of a tape reach.
#[derive(Clone, Copy, Debug)]
struct ChecksumCoverage {
    /// The durable position.
    durable: Position,
    /// The position in the file `durable`, and the sum of the bytes before it in its span.
    open_span_sum: Option<(Position, u32)>,
    /// A writer died, and the machine was not restarted since.
    abandoned: bool,
    /// No process has the tape open, and the last writer closed it: the checksums cover everything.
    is_closed: bool,
}

/// The tape's parts that a comparison uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanCheckContext<'a> {
    pub segment_locator: &'a SegmentLocator,
    pub page: Option<&'a StatePage>,
    pub segment: &'a MappedSegment,
}

/// The holder of a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriterPresence {
    Closed,
    /// A writer died.
    Abandoned {
        /// The machine was restarted since.
        rebooted: bool,
    },
    /// A writer or a recorder is there.
    InUse,
}

impl SpanVerifier {
    pub fn new(span: u64, is_enabled: bool) -> Self {
        Self {
            is_enabled,
            span,
            segment_sums: None,
            given_up: None,
            matching: Vec::new(),
            durable_part_end: 0,
            coverage: None,
            is_sealed: None,
            checked_end: Position(0),
            unchecked_end: Position(0),
            overrun: false,
            unverified_bytes: UnverifiedBytes::default(),
        }
    }

    /// Starts the checks over for another segment, or for another mapping of the same segment.
    pub fn begin_segment(&mut self) {
        (self.segment_sums, self.coverage, self.is_sealed, self.given_up, self.durable_part_end) =
            (None, None, None, None, 0);
        self.matching.clear();
    }

    /// Compares the covered bytes before data offset `need`. `offset` is the start of a frame, and everything before
    /// `limit` was compared already. Returns the new limit, which is at or beyond `need`.
    ///
    /// # Errors
    /// Fails at damage, and if retention has just removed the segment.
    #[cold]
    pub fn check_up_to(
        &mut self,
        scope: &SpanCheckContext<'_>,
        offset: u64,
        mut limit: u64,
        need: u64,
    ) -> Result<u64> {
        if !self.is_enabled {
            return Ok(scope.segment.data_bytes);
        }
        let base = scope.segment.base_position;
        if base.plus(offset) < self.checked_end.max(self.unchecked_end) && limit == offset {
            // Read once more.
            (self.checked_end, self.unchecked_end) = (Position(0), base.plus(offset));
        }
        while limit < need {
            limit = self.next(scope, offset, limit)?;
            let reached = base.plus(limit);
            if self.checked_end < reached {
                self.unchecked_end = reached;
            }
        }
        Ok(limit)
    }

    /// Checks a frame that is looked up by its position: the spans from that of `offset` on.
    pub fn vouch(&mut self, scope: &SpanCheckContext<'_>, offset: u64, need: u64) -> Result<()> {
        let mut limit = offset;
        while self.is_enabled && limit < need {
            let span = limit / self.span;
            if self.sum_matches(span) {
                limit = (span + 1) * self.span;
            } else if limit < self.durable_part_end && span == (self.durable_part_end - 1) / self.span {
                limit = self.durable_part_end;
            } else {
                limit = self.next(scope, offset, limit)?;
            }
        }
        Ok(())
    }

    /// Returns whether all bytes from one position to the other match their checksums.
    pub fn is_checked(&self, from: Position, to: Position) -> bool {
        self.is_enabled && from >= self.unchecked_end && to <= self.checked_end
    }

    /// Returns the durable position, as far as this reader knows it.
    pub fn durable(&mut self, live: &SegmentLocator, page: Option<&StatePage>) -> Result<Position> {
        let coverage = match self.coverage {
            Some(cached_coverage) => cached_coverage,
            None => self.look_up_coverage(live, page)?,
        };
        Ok(coverage.durable.max(page.map_or(Position(0), StatePage::durable)))
    }

    /// Compares the span at `limit`, or finds that it is not covered. Returns the limit after it.
    fn next(&mut self, scope: &SpanCheckContext<'_>, offset: u64, limit: u64) -> Result<u64> {
        let (base, from) = (scope.segment.base_position, limit - limit % self.span);
        let span_end = from + self.span;
        let (durable, closed) = self.durable_limit(scope, offset)?;
        let mut sealed = || *self.is_sealed.get_or_insert_with(|| is_sealed(&scope.segment.path));
        if base.plus(span_end) <= durable || sealed() {
            self.compare_whole_span(scope, from)
        } else if !closed && base.plus(limit) >= durable {
            self.compare_undurable_span(scope, offset, from)
        } else {
            self.compare_partial_span(scope, offset, limit)
        }
    }

    /// Returns the durable position, and whether the tape is closed.
    fn durable_limit(&mut self, scope: &SpanCheckContext<'_>, offset: u64) -> Result<(Position, bool)> {
        for round in 0..TRIES {
            if round > 0 {
                // The tape was closed when this reader looked; a writer may have opened it since.
                std::thread::sleep(PAUSE);
                self.look_up_coverage(
                    scope.segment_locator,
                    StatePage::attach_reader(&scope.segment_locator.paths)?.as_ref(),
                )?;
            }
            let durable = self.durable(scope.segment_locator, scope.page)?;
            let is_closed = self.coverage.is_some_and(|coverage| coverage.is_closed);
            let ends = durable > Position(0) && scope.segment.base_position.plus(offset) >= durable;
            if self.overrun
                || !is_closed
                || !ends
                || !matches!(scope.segment.header_state(offset), HeaderWordState::Frame(_))
            {
                return Ok((durable, is_closed));
            }
        }
        let durable = self.durable(scope.segment_locator, scope.page)?;
        let reason = format!("it says that the tape ends at position {durable}, and there is more");
        self.unverified_bytes.note_missing_sum(&scope.segment_locator.paths.durable(), &reason);
        self.overrun = true;
        Ok((durable, true))
    }

    /// Compares a span that is not durable, of a tape whose writer died. The bytes are still the ones that its recorder
    /// saw.
    fn compare_undurable_span(
        &mut self,
        scope: &SpanCheckContext<'_>,
        offset: u64,
        from: u64,
    ) -> Result<u64> {
        let (segment, to) = (scope.segment, from + self.span);
        for round in 0..TRIES {
            if round > 0 {
                // A writer may have come, and its recorder writes the sums again.
                self.pause_and_drop_sums();
                self.look_up_coverage(
                    scope.segment_locator,
                    StatePage::attach_reader(&scope.segment_locator.paths)?.as_ref(),
                )?;
            }
            if !self.coverage.is_some_and(|coverage| coverage.abandoned) {
                break;
            }
            let path = scope.segment_locator.paths.crc(segment.segment_index);
            let sums = read_sums(&path, segment.data_bytes / self.span * 4)?;
            let sum_offset = (from / self.span * 4) as usize;
            let Some(stated_sum) = sums.get(sum_offset..sum_offset + 4) else { break };
            let stated_sum: [u8; 4] = stated_sum.try_into().expect("four bytes");
            let committed_end_offset = committed_end(segment, offset, to).max(from);
            // SAFETY: what is before `at` was committed when it was read, and the walk has seen what follows.
            let bytes = unsafe { segment.bytes(from, (committed_end_offset - from) as usize) };
            let is_last = sum_offset + 8 > sums.len();
            if span_sum(bytes, self.span).to_le_bytes() == stated_sum
                || is_last && matches_prefix_sum(bytes, self.span, stated_sum)
            {
                break;
            }
            if round + 1 == TRIES {
                return Err(self.mismatch_error(segment, from, committed_end_offset));
            }
        }
        Ok(to)
    }

    /// Compares a wholly durable span.
    fn compare_whole_span(&mut self, scope: &SpanCheckContext<'_>, from: u64) -> Result<u64> {
        let (segment, to) = (scope.segment, from + self.span);
        // SAFETY: below the durable position, so committed, and within the segment, whose size is a multiple of the
        // span.
        let sum = crc32c::crc32c(unsafe { segment.bytes(from, self.span as usize) }).to_le_bytes();
        for _ in 0..TRIES {
            match self.span_sum(scope, from, to)? {
                Some(wanted) if wanted == sum => {
                    self.note_span(from / self.span);
                    self.checked_end = segment.base_position.plus(to);
                    return Ok(to);
                }
                Some(_) => self.pause_and_drop_sums(),
                None => return Ok(to),
            }
        }
        Err(self.mismatch_error(segment, from, to))
    }

    /// Compares a partly covered span: that of the durable position, or a span of a closed tape whose durable position
    /// is unknown.
    fn compare_partial_span(&mut self, scope: &SpanCheckContext<'_>, offset: u64, limit: u64) -> Result<u64> {
        let (segment, from) = (scope.segment, limit - limit % self.span);
        let (base, to) = (segment.base_position, from + self.span);
        for round in 0..TRIES {
            if round > 0 {
                // It may have been opened or closed meanwhile, and the recorder may have come further.
                self.pause_and_drop_sums();
                self.look_up_coverage(
                    scope.segment_locator,
                    StatePage::attach_reader(&scope.segment_locator.paths)?.as_ref(),
                )?;
            }
            let durable = self.durable(scope.segment_locator, scope.page)?;
            let is_closed = self.coverage.is_some_and(|coverage| coverage.is_closed);
            if base.plus(to) <= durable {
                return self.compare_whole_span(scope, from);
            }
            if !is_closed && base.plus(limit) >= durable {
                return Ok(to);
            }
            if !is_closed && let Some(sum) = self.open_sum(scope.segment_locator, durable)? {
                let durable_offset = durable.0 - base.0;
                // SAFETY: before the durable position, so committed, and within the segment by `to`.
                if crc32c::crc32c(unsafe { segment.bytes(from, (durable_offset - from) as usize) }) == sum {
                    return Ok(self.pass_bytes(base, limit, durable_offset, to));
                }
                if round + 1 == TRIES {
                    return Err(self.mismatch_error(segment, from, durable_offset));
                }
                continue;
            }
            let committed_offset = committed_end(segment, offset, to);
            // SAFETY: the walk has seen everything from `at`, which is not beyond `end`, committed; what is before
            // `at` is committed too: it is before the durable position, or the tape is closed.
            let bytes = unsafe { segment.bytes(from, committed_offset.max(from) as usize - from as usize) };
            let least = if is_closed { committed_offset } else { durable.0 - base.0 };
            let Some(stated_sum) = self.span_sum(scope, from, committed_offset)? else { return Ok(to) };
            // The sum of a closed tape is of all that is there; otherwise it is of the durable bytes, or of some
            // more.
            let exact =
                |to: u64| span_sum(&bytes[..(to - from) as usize], self.span).to_le_bytes() == stated_sum;
            let match_end = match [committed_offset, least]
                .into_iter()
                .find(|&to| (least..=committed_offset).contains(&to) && exact(to))
            {
                None if !is_closed || round + 1 == TRIES => {
                    let least = if is_closed { 0 } else { least - from };
                    start_of(bytes, &stated_sum, least, self.span).map(|length| from + length)
                }
                exact_end => exact_end,
            };
            if let Some(matched_end) = match_end {
                let passed = self.pass_bytes(base, limit, matched_end, to);
                if is_closed && matched_end < committed_offset {
                    let gap_reason = "it has no sum of what the tape has after this";
                    self.add_unverified(scope, gap_reason, matched_end, committed_offset)?;
                    return Ok(to);
                }
                return Ok(passed);
            }
        }
        let committed_offset = committed_end(segment, offset, to);
        match tenancy(&scope.segment_locator.paths)? {
            // A writer is active, and the checksum is of another moment than the bytes read.
            WriterPresence::InUse => Ok(to),
            // The sum may be of bytes that were cut since, or that a power loss took.
            WriterPresence::Abandoned { rebooted }
                if rebooted
                    || StatePage::peek(&scope.segment_locator.paths)? > base.plus(committed_offset) =>
            {
                let reason = "the sum of the last span is of another moment";
                self.add_unverified(scope, reason, limit, committed_offset)?;
                Ok(to)
            }
            _ => Err(self.mismatch_error(segment, from, committed_offset)),
        }
    }

    /// Returns the checksum of the bytes before the durable position in its span, if the file `durable` has it.
    fn open_sum(&mut self, live: &SegmentLocator, durable: Position) -> Result<Option<u32>> {
        let Some(coverage) = self.coverage else { return Ok(None) };
        let mut open_sum = coverage.open_span_sum;
        if open_sum.is_none_or(|(position, _)| position != durable) {
            // The recorder writes the file before it says that more is durable.
            open_sum =
                self.look_up_coverage(live, StatePage::attach_reader(&live.paths)?.as_ref())?.open_span_sum;
        }
        Ok(open_sum.filter(|(position, _)| *position == durable).map(|(_, sum)| sum))
    }

    /// Notes that the bytes before data offset `end` of a span match, and returns the limit.
    fn pass_bytes(&mut self, base: Position, limit: u64, end: u64, to: u64) -> u64 {
        self.durable_part_end = end;
        self.checked_end = self.checked_end.max(base.plus(end));
        // The rest of the span is not covered.
        if end > limit { end } else { to }
    }

    /// Reads the checksum of the span at `from`, whose data ends at `to`. Returns `None` if it is missing, and notes it
    /// if it should exist.
    fn span_sum(&mut self, scope: &SpanCheckContext<'_>, from: u64, to: u64) -> Result<Option<[u8; 4]>> {
        let segment = scope.segment;
        let path = scope.segment_locator.paths.crc(segment.segment_index);
        let sum_offset = (from / self.span * 4) as usize;
        let mut abandoned_rounds = 0;
        for round in 0.. {
            if self.segment_sums.is_none() {
                let bytes = segment.data_bytes / self.span * 4;
                self.segment_sums = Some(read_sums(&path, bytes)?);
            }
            if let Some(sum) =
                self.segment_sums.as_ref().and_then(|sums| sums.get(sum_offset..sum_offset + 4))
            {
                return Ok(Some(sum.try_into().expect("four bytes")));
            }
            if self.given_up.is_none() {
                // A reader that had come a moment later would have found the segment gone.
                if scope
                    .segment_locator
                    .indices()?
                    .first()
                    .is_some_and(|&oldest| oldest > segment.segment_index)
                {
                    let oldest = scope.segment_locator.oldest_position()?;
                    return Err(Error::Retained { position: segment.base_position.plus(from), oldest });
                }
                // A recorder begins at the segment of the durable position and writes its sums again.
                let in_use = tenancy(&scope.segment_locator.paths)? == WriterPresence::InUse;
                let durable = self
                    .look_up_coverage(
                        scope.segment_locator,
                        StatePage::attach_reader(&scope.segment_locator.paths)?.as_ref(),
                    )?
                    .durable;
                let may_come = in_use && durable <= segment.end_position();
                // Looks while a recorder is there do not count: it may have died only just now.
                abandoned_rounds += u32::from(!may_come);
                self.given_up = match may_come {
                    true => (round >= WAITS).then_some(false),
                    false => (abandoned_rounds > TRIES).then_some(true),
                };
            }
            if let Some(reported) = self.given_up {
                if reported {
                    self.add_unverified(scope, "the checksum is missing", from, to)?;
                }
                break;
            }
            self.pause_and_drop_sums();
        }
        Ok(None)
    }

    /// Notes that the bytes between two data offsets could not be compared with the checksums.
    ///
    /// # Errors
    /// Fails as at damage if the mapped file is no longer that of the tape: the checksums are of another file, and the
    /// reader maps the segment again.
    fn add_unverified(
        &mut self,
        scope: &SpanCheckContext<'_>,
        reason: &str,
        from: u64,
        to: u64,
    ) -> Result<()> {
        let segment = scope.segment;
        if !scope.segment_locator.is_current(segment)? {
            scope.segment_locator.explain_missing(segment.segment_index)?;
            return Err(self.mismatch_error(segment, from, to));
        }
        let path = scope.segment_locator.paths.crc(segment.segment_index);
        let (from, to) = (segment.base_position.plus(from), segment.base_position.plus(to));
        self.unverified_bytes.add_bytes(&path, reason, from, to);
        Ok(())
    }

    /// Lets a moment pass and has the sums read again.
    fn pause_and_drop_sums(&mut self) {
        std::thread::sleep(PAUSE);
        self.segment_sums = None;
    }

    /// Looks up how far the sums reach.
    fn look_up_coverage(
        &mut self,
        live: &SegmentLocator,
        page: Option<&StatePage>,
    ) -> Result<ChecksumCoverage> {
        let is_closed = page.is_none() && !live.paths.writer_lock().exists();
        let mark = page.map_or(Position(0), StatePage::durable);
        let mut open_sum = None;
        let durable = match load_durable(&live.paths) {
            Ok(durable) => {
                open_sum = durable.open_sum.map(|sum| (durable.position, sum));
                // It is made at the first flush, and a tape that is closed was flushed.
                let must = || {
                    Ok::<_, Error>(
                        is_closed || mark > Position(0) || tenancy(&live.paths)? != WriterPresence::InUse,
                    )
                };
                if self.is_enabled
                    && durable.position == Position(0)
                    && !live.paths.durable().exists()
                    && must()?
                {
                    self.unverified_bytes.note_missing_sum(&live.paths.durable(), "it is missing");
                }
                durable.position
            }
            Err(e) if e.is_shortage() => return Err(e),
            Err(e) => {
                if self.is_enabled {
                    self.unverified_bytes.note_missing_sum(&live.paths.durable(), &e.to_string());
                }
                Position(0)
            }
        };
        let abandoned = !is_closed && tenancy(&live.paths)? == WriterPresence::Abandoned { rebooted: false };
        let coverage =
            ChecksumCoverage { durable: durable.max(mark), open_span_sum: open_sum, abandoned, is_closed };
        self.coverage = Some(coverage);
        Ok(coverage)
    }

    fn sum_matches(&self, span: u64) -> bool {
        self.matching.get((span / 64) as usize).is_some_and(|bits| bits >> (span % 64) & 1 == 1)
    }

    fn note_span(&mut self, span: u64) {
        let word = (span / 64) as usize;
        if self.matching.len() <= word {
            self.matching.resize(word + 1, 0);
        }
        self.matching[word] |= 1 << (span % 64);
    }

    fn mismatch_error(&self, segment: &MappedSegment, from: u64, to: u64) -> Error {
        let (base, span) = (segment.base_position, self.span);
        let reason = format!(
            "the checksum of the {span} bytes from here does not match (positions {} to {})",
            base.plus(from),
            base.plus(to)
        );
        Error::damage(&segment.path, HEADER_PAGE + from, reason)
    }
}

/// Returns the end of the committed frames, walking from the frame at `start` up to data offset `to`.
fn committed_end(segment: &MappedSegment, start: u64, to: u64) -> u64 {
    let mut span_end = start;
    while span_end < to {
        match segment.header_state(span_end) {
            HeaderWordState::Frame(header) => span_end += header.len_bytes() as u64,
            // The rest of the segment is empty.
            HeaderWordState::Pad => return to,
            HeaderWordState::Nothing | HeaderWordState::Damage(_) => break,
        }
    }
    span_end.min(to)
}

/// Finds a start of `bytes` whose checksum is `sum`. Returns its length in bytes: whole lines, at least `least` bytes.
fn start_of(bytes: &[u8], sum: &[u8; 4], least: u64, span: u64) -> Option<u64> {
    let mut running = 0;
    let mut length = 0;
    for line in bytes.chunks(LINE) {
        running = crc32c::crc32c_append(running, line);
        length += line.len() as u64;
        if length >= least && extend_with_zeros(running, span - length).to_le_bytes() == *sum {
            return Some(length);
        }
    }
    None
}

/// Returns whether the segments still hold everything before `end` that other files describe. If the tape was not
/// opened since a power loss, the loss may have removed data from the segments only.
pub(crate) fn survives(paths: &TapePaths, end: Position) -> Result<bool> {
    match tenancy(paths)? {
        WriterPresence::Abandoned { rebooted: true } => {
            Ok(optional(load_durable(paths))?.is_some_and(|durable| end <= durable.position))
        }
        _ => Ok(true),
    }
}

fn tenancy(paths: &TapePaths) -> Result<WriterPresence> {
    let lock = paths.writer_lock();
    let lock_text = || optional(std::fs::read_to_string(&lock).with_context("read", &lock));
    loop {
        let text = lock_text()?;
        if holder(&lock)?.is_some() || holder(&paths.recorder_lock())?.is_some() {
            return Ok(WriterPresence::InUse);
        }
        // A writer that opens or closes between the two looks changes the text, which has its epoch.
        if lock_text()? == text {
            return Ok(match text {
                Some(text) => {
                    let rebooted = field(&text, "boot").unwrap_or_default() != boot_id();
                    WriterPresence::Abandoned { rebooted }
                }
                None => WriterPresence::Closed,
            });
        }
    }
}

/// Reads checksums; empty if the file is missing or cannot be read, which the caller notes.
fn read_sums(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    Ok(optional(read_start(path, bytes_max).with_context("read", path))?.unwrap_or_default())
}
