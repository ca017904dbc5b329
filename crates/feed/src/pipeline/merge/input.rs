//! A tape that is merged: its units one after the other, up to where it ended when the merge began.

use crate::error::Error;
use crate::pipeline::lead::{ClockLeadLimits, known_time};
use crate::pipeline::merge::state::{InputProgress, PlacedFrame};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use unitape_model::message::KIND_MESSAGE;
use unitape_model::{
    DefinitionTable, Event, EventKind, FrameHeader, LINE, NameKind, Position, UnixNanos, flags, schema::at,
};
use unitape_tape::{LineagePoint, LostDefinitions, ReadOptions, Reader, StartPosition, accepted_ranges};

/// A tape to be merged, as the caller names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputTape {
    /// Its name in the merge.
    pub name: String,
    /// Its directory.
    pub dir: PathBuf,
}

impl InputTape {
    /// Reads `[NAME=]DIR`; without a name the last part of the directory is the name.
    ///
    /// # Errors
    /// Fails if the option has neither.
    pub fn parse(option: &str) -> Result<Self, Error> {
        let name_and_dir = option.split_once('=').filter(|(name, _)| !name.contains('/'));
        let (name, dir) = match name_and_dir {
            Some((name, dir)) => (name.to_owned(), PathBuf::from(dir)),
            None => (last_part(Path::new(option)), PathBuf::from(option)),
        };
        let usage_error =
            |reason: &str| Error::Config { origin: format!("--tape-in {option}"), reason: reason.to_owned() };
        if name.is_empty() || dir.as_os_str().is_empty() {
            return Err(usage_error("not of the form [NAME=]DIR"));
        }
        if name.trim() != name || name.chars().any(char::is_control) {
            return Err(usage_error("a name has no control characters, and no blank at its start or end"));
        }
        Ok(Self { name, dir })
    }
}

/// Returns the last part of a directory's name, or of its full path if it has no name, as `.`.
fn last_part(dir: &Path) -> String {
    let part = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    part(dir).or_else(|| part(&dir.canonicalize().ok()?)).unwrap_or_default()
}

/// A tape that is being merged.
#[derive(Debug)]
pub struct TapeReading {
    /// As the caller names it.
    pub tape: InputTape,
    /// How far it is placed.
    pub progress: InputProgress,
    /// Its names and sources.
    pub names: DefinitionTable,
    /// Ids of the merge's tape, by dictionary and own id; 0 is not looked for yet.
    pub ids: [Vec<u32>; NameKind::COUNT],
    /// Ids of sources there, by own id.
    pub sources: FxHashMap<u32, u32>,
    /// The current unit.
    pub unit: Option<UnitInHand>,
    /// A part that retention removed and that is not yet noted.
    pub gap: Option<RemovedPart>,
    /// Parts that were skipped because they are damaged, and that are not yet noted.
    pub passed_over: Vec<RemovedPart>,
    /// Parts that a repair accepted without a check and that are not placed, in order.
    accepted: VecDeque<RemovedPart>,
    options: ReadOptions,
    reader: Reader,
    /// Where it ends for this merge.
    target: u64,
    /// Frames that were read. The first unit that is not placed begins at `at`.
    frames: Vec<u8>,
    unplaced_start: usize,
    /// Where the frames of the last read begin, here and on the tape.
    run: RunStart,
    /// The frames before `run` end in damage, so that a unit ends there.
    is_cut: bool,
    /// Whether the merge records how far the tape is placed.
    has_records: bool,
    damaged_count: u64,
    /// The last frame of the unit that was placed last, in the frames that were read.
    last_frame: Option<std::ops::Range<usize>>,
}

/// The first byte of a run of frames.
#[derive(Clone, Copy, Debug, Default)]
struct RunStart {
    offset: usize,
    position: u64,
    /// Position after the frames of the run before it.
    end_before: u64,
}

/// A part of a tape that is not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedPart {
    /// Where it begins.
    pub from: u64,
    /// Where it ends.
    pub to: u64,
}

/// The next unit.
#[derive(Clone, Copy, Debug)]
pub struct UnitInHand {
    /// Its bytes in the frames that were read.
    pub start: usize,
    /// Where its last frame begins there.
    pub last_frame: usize,
    /// Where it ends there.
    pub end: usize,
    /// The time by which it is merged; least before the first time of its tape.
    pub ts: i64,
    /// Whether the unit is flagged as late if it is placed after a later time. Bookkeeping, a user's message and an
    /// event whose time is not credible are not flagged.
    pub has_time: bool,
    /// The event whose time it has.
    pub timed: Option<TimedEvent>,
}

/// The first event of a unit with its own time.
#[derive(Clone, Copy, Debug)]
pub struct TimedEvent {
    /// Where its frame begins in the frames that were read.
    pub offset: usize,
    /// Its time.
    pub ts: UnixNanos,
}

impl TapeReading {
    /// Opens a tape where it is placed up to.
    ///
    /// # Errors
    /// Fails if the tape cannot be read, or was cut back before that place.
    pub fn open(tape: InputTape, progress: InputProgress, options: ReadOptions) -> Result<Self, Error> {
        let point = LineagePoint { epoch: progress.epoch, position: Position(progress.position) };
        let opened_reader = match progress.position {
            0 => Reader::open_with(&tape.dir, StartPosition::Oldest, options),
            _ => Reader::resume_with(&tape.dir, point, options),
        };
        let reader = match opened_reader {
            Err(unitape_tape::Error::Retained { .. }) => {
                Reader::open_with(&tape.dir, StartPosition::Oldest, options)?
            }
            Err(unitape_tape::Error::NoFrame(_)) => return Err(changed(&tape.name, CUT_BACK)),
            opened => opened?,
        };
        let reader_position = reader.position().0;
        if reader_position < progress.position || reader.rewinds().count > 0 {
            return Err(changed(&tape.name, CUT_BACK));
        }
        if let Some(last_position) = progress.last.filter(|_| progress.position > 0) {
            is_known_again(&tape, last_position, options)?;
        }
        let mut definitions = DefinitionTable::default();
        if options.skip_damage {
            definitions.set_log(LostDefinitions::names(&tape.dir));
        }
        let mut log = LostDefinitions::new(&tape.dir, options.skip_damage);
        log.learn_before(Position(reader_position), |_, frame| definitions.admit_frame(frame).map(drop))?;
        let gap = (reader_position > progress.position)
            .then_some(RemovedPart { from: progress.position, to: reader_position });
        Ok(Self {
            progress,
            names: definitions,
            ids: Default::default(),
            sources: FxHashMap::default(),
            unit: None,
            gap,
            passed_over: Vec::new(),
            accepted: accepted_parts(&tape.dir),
            tape,
            options,
            damaged_count: reader.damaged().count,
            reader,
            target: 0,
            frames: Vec::new(),
            unplaced_start: 0,
            run: RunStart { offset: 0, position: reader_position, end_before: reader_position },
            is_cut: false,
            has_records: true,
            last_frame: None,
        })
    }

    /// Reads up to this position, and no further.
    pub fn set_target(&mut self, target: u64) {
        self.target = target;
    }

    /// Returns the reader, which knows what it skipped.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Finds the next unit, if there is one up to the target.
    ///
    /// # Errors
    /// Fails if the tape is damaged, or was cut back meanwhile.
    #[inline]
    pub fn look(&mut self) -> Result<Option<UnitInHand>, Error> {
        if self.unit.is_none() {
            while !self.find_unit() {
                if !self.read_frames()? {
                    break;
                }
            }
        }
        Ok(self.unit)
    }

    /// Returns the frames of the current unit; empty without a unit.
    pub fn unit_bytes(&self) -> &[u8] {
        self.unit.map_or(&[], |unit| &self.frames[unit.start..unit.end])
    }

    /// Takes the frames that were read. The caller must give them back with [`TapeReading::put_back`].
    pub fn take_frames(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.frames)
    }

    /// Takes the frames back.
    pub fn put_back(&mut self, frames: Vec<u8>) {
        self.frames = frames;
    }

    /// Returns whether the time of the current unit leads by more than it may. `latest` must be the latest credible
    /// time.
    ///
    /// An event with a receipt that its tape has bounded already leads only if it leads its receipt, too.
    pub fn leads(&self, lead: &ClockLeadLimits, latest: UnixNanos) -> bool {
        let Some(timed) = self.unit.and_then(|unit| unit.timed) else { return false };
        if known_time(latest).is_none_or(|latest| timed.ts <= lead.after_feeds(latest)) {
            return false;
        }
        let frame = &self.frames[timed.offset..];
        let frame = &frame[..FrameHeader::read(frame).len_bytes()];
        // A frame that is no event of a known layout is refused when it is placed.
        let received = Event::new(frame).and_then(|event| event.ts_recv()).and_then(known_time);
        received.is_none_or(|received| timed.ts > lead.after_receipt(received))
    }

    /// Puts the current unit at the running maximum of its tape, because its time is not credible.
    pub fn disbelieve(&mut self) {
        let running_max = self.progress.running_max.unwrap_or(i64::MIN);
        if let Some(unit) = &mut self.unit {
            (unit.ts, unit.has_time, unit.timed) = (running_max, false, None);
        }
    }

    /// Advances past the current unit, which is placed.
    #[inline]
    pub fn advance(&mut self) {
        let Some(unit) = self.unit.take() else { return };
        self.unplaced_start = unit.end;
        self.last_frame = self.has_records.then_some(unit.last_frame..unit.end);
        if unit.ts > i64::MIN {
            self.progress.running_max = Some(unit.ts);
        }
        self.progress.position = self.position_of(unit.end);
    }

    /// Notes the last frame that is placed, by which a later merge knows the tape again.
    pub fn note_last(&mut self) {
        let Some(last_frame) = self.last_frame.take() else { return };
        if let Some(bytes) = last_frame.start.checked_sub(self.run.offset) {
            let position = self.run.position + bytes as u64;
            self.progress.last = Some(PlacedFrame::new(position, &self.frames[last_frame]));
        }
    }

    /// Notes damage that nothing follows up to the target. A tape whose end is damaged ends before it for its readers, so
    /// this looks once more for what comes next.
    ///
    /// # Errors
    /// Fails if the tape cannot be read.
    pub fn note_last_damage(&mut self) -> Result<(), Error> {
        match self.reader.next_run(1) {
            Ok(_) | Err(unitape_tape::Error::Retained { .. } | unitape_tape::Error::Rewound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let damaged = self.reader.damaged();
        let parts = damaged.parts.iter().skip(self.damaged_count as usize);
        self.passed_over
            .extend(parts.map(|part| RemovedPart { from: part.from_position.0, to: part.to_position.0 }));
        self.damaged_count = damaged.count;
        Ok(())
    }

    /// Leaves out what only a merge with records uses: accepted parts, and the last frame that is placed.
    pub fn leave_out_records(&mut self) {
        self.has_records = false;
        self.accepted.clear();
    }

    /// Forgets accepted parts that are on the tape of the merge.
    pub fn forget_accepted(&mut self, parts: &[RemovedPart]) {
        self.accepted.retain(|part| !parts.contains(part));
    }

    /// Returns whether the current unit reaches an accepted part, or has passed one.
    #[inline]
    pub fn meets_accepted(&self) -> bool {
        !self.accepted.is_empty() && self.accepted[0].from < self.unit_end()
    }

    /// Takes the accepted parts that the current unit reaches. Those before it are not in the merge, or were placed before
    /// they were accepted.
    pub fn take_accepted(&mut self) -> Vec<RemovedPart> {
        let (begin, end) = (self.progress.position, self.unit_end());
        let mut reached = Vec::new();
        while let Some(part) = self.accepted.pop_front_if(|part| part.from < end) {
            if part.to > begin {
                reached.push(part);
            }
        }
        reached
    }

    /// Returns the position after the current unit; without a unit, the position up to which all is placed.
    fn unit_end(&self) -> u64 {
        self.unit.map_or(self.progress.position, |unit| self.position_of(unit.end))
    }

    /// Returns the position of the end of a frame that was read.
    fn position_of(&self, end: usize) -> u64 {
        match end.checked_sub(self.run.offset) {
            None | Some(0) => self.run.end_before,
            Some(bytes) => self.run.position + bytes as u64,
        }
    }

    /// Returns whether damage is skipped instead of reported as an error.
    pub fn skips_damage(&self) -> bool {
        self.options.skip_damage
    }

    /// Makes the error for a damaged frame.
    pub fn damage_at(&self, offset: usize, reason: &dyn std::fmt::Display) -> Error {
        let position = match offset.checked_sub(self.run.offset) {
            Some(bytes) => self.run.position + bytes as u64,
            None => self.run.end_before,
        };
        self.reader.damage_at(Position(position), reason).into()
    }

    /// Looks for a whole unit in the frames at hand.
    #[inline]
    fn find_unit(&mut self) -> bool {
        let (start, mut end) = (self.unplaced_start, self.unplaced_start);
        let mut first_header = None;
        let mut last_frame;
        while self.frames.len() >= end + LINE {
            let frame = &self.frames[end..];
            let header = FrameHeader::read(frame);
            if first_header.is_none() && !header.is_meta() {
                first_header = Some((
                    end,
                    header,
                    i64::from_le_bytes(frame[at::TS_EVENT..][..8].try_into().expect("eight bytes")),
                ));
            }
            (last_frame, end) = (end, end + header.len_bytes());
            if header.is_last() || self.is_cut && end == self.run.offset {
                self.is_cut &= end != self.run.offset;
                let running_max = self.progress.running_max.unwrap_or(i64::MIN);
                let unit = match first_header {
                    Some((offset, header, ts)) if has_own_time(header) => {
                        let timed = Some(TimedEvent { offset, ts: UnixNanos(ts) });
                        UnitInHand { start, last_frame, end, ts: running_max.max(ts), has_time: true, timed }
                    }
                    Some((_, header, _)) => {
                        let has_time = header.kind() == EventKind::Quarantine as u8;
                        UnitInHand { start, last_frame, end, ts: running_max, has_time, timed: None }
                    }
                    None => {
                        UnitInHand { start, last_frame, end, ts: running_max, has_time: false, timed: None }
                    }
                };
                self.unit = Some(unit);
                return true;
            }
        }
        false
    }

    /// Reads further frames after those that are not placed; false at the target.
    fn read_frames(&mut self) -> Result<bool, Error> {
        self.note_last();
        self.frames.drain(..self.unplaced_start);
        let position_before = self.reader.position().0;
        (self.unplaced_start, self.run.offset) = (0, self.frames.len());
        if position_before >= self.target {
            return Ok(false);
        }
        let read_result = match self.reader.next_run(READ_BYTES) {
            Err(unitape_tape::Error::Retained { .. }) => return self.pass_gap(),
            Err(unitape_tape::Error::Rewound { .. }) => return Err(changed(&self.tape.name, CUT_BACK)),
            read => read?,
        };
        let Some(run) = read_result.filter(|run| run.position.0 < self.target) else { return Ok(false) };
        let bytes = run.bytes.len().min((self.target - run.position.0) as usize);
        self.frames.extend_from_slice(&run.bytes[..bytes]);
        self.run = RunStart { position: run.position.0, end_before: position_before, ..self.run };
        if self.reader.damaged().count != self.damaged_count {
            let known_count = self.damaged_count as usize;
            let parts = self.reader.damaged().parts.iter().skip(known_count);
            self.passed_over
                .extend(parts.map(|part| RemovedPart { from: part.from_position.0, to: part.to_position.0 }));
            self.damaged_count = self.reader.damaged().count;
            self.is_cut = self.run.offset > 0;
        }
        self.progress.epoch = self.reader.point().epoch;
        Ok(true)
    }

    /// Continues at the oldest frame: retention removed the next frames.
    fn pass_gap(&mut self) -> Result<bool, Error> {
        let start_progress = InputProgress { position: 0, ..self.progress };
        let oldest = Self::open(self.tape.clone(), start_progress, self.options)?;
        let placed_end = self.progress.position;
        self.gap = Some(RemovedPart { from: placed_end, to: oldest.run.position });
        (self.reader, self.names, self.run) = (oldest.reader, oldest.names, oldest.run);
        self.damaged_count = oldest.damaged_count;
        self.frames.clear();
        Ok(true)
    }
}

/// Returns the parts that a repair of the tape in `dir` accepted, in order.
fn accepted_parts(dir: &Path) -> VecDeque<RemovedPart> {
    let mut parts: Vec<_> =
        accepted_ranges(dir).into_iter().map(|(from, to)| RemovedPart { from: from.0, to: to.0 }).collect();
    parts.sort_by_key(|part| (part.from, part.to));
    parts.dedup();
    parts.into()
}

/// Refuses a tape that has another frame where one was placed: it was cut back and has grown again, or it is another tape
/// of the same id.
fn is_known_again(tape: &InputTape, last: PlacedFrame, options: ReadOptions) -> Result<(), Error> {
    let position = Position(last.position);
    let mut reader = match Reader::open_with(&tape.dir, StartPosition::At(position), options) {
        // Retention has removed it since.
        Err(unitape_tape::Error::Retained { .. }) => return Ok(()),
        Err(unitape_tape::Error::NoFrame(_)) => return Err(changed(&tape.name, OTHER_FRAME)),
        opened => opened?,
    };
    let is_same = reader.next()?.is_some_and(|frame| PlacedFrame::new(frame.position.0, frame.bytes) == last);
    // Damage of the frame is reported where it is read.
    if is_same || reader.damaged().count > 0 { Ok(()) } else { Err(changed(&tape.name, OTHER_FRAME)) }
}

/// Makes the error for an input tape that has changed.
pub fn changed(name: &str, reason: &str) -> Error {
    Error::MergeInput { name: name.to_owned(), reason: reason.to_owned() }
}

/// Returns whether a unit that begins with this event has the event's time; otherwise it follows the previous unit on
/// its tape.
#[inline]
fn has_own_time(first: FrameHeader) -> bool {
    let kind = first.kind();
    kind != KIND_MESSAGE && kind != EventKind::Quarantine as u8 && first.flags() & flags::CLOCK_AHEAD == 0
}

const CUT_BACK: &str = "the tape was cut back before what the merge has of it; use a new tape for the merge";

const OTHER_FRAME: &str = "a frame that the merge has of it is another one now: the tape was cut back and has grown again, \
                           or it is another tape; use a new tape for the merge";

/// Bytes that are read of a tape at once.
const READ_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against a directory with an equals sign in its path, which was once taken for a name and the rest of
    /// the path.
    #[test]
    fn a_name_comes_before_the_directory() {
        let parse = |option| InputTape::parse(option).map(|t| (t.name, t.dir.display().to_string())).ok();
        let is = |name: &str, dir: &str| Some((name.to_owned(), dir.to_owned()));
        assert_eq!(parse("a=x/y"), is("a", "x/y"));
        assert_eq!(parse("x/y"), is("y", "x/y"));
        assert_eq!(parse("x/y/"), is("y", "x/y/"));
        assert_eq!(parse("./k=v/t"), is("t", "./k=v/t"));
        assert_eq!([parse("=x"), parse("x="), parse("")], [None, None, None]);
        assert!(parse(".").is_some_and(|(name, _)| !name.is_empty()));
    }
}
