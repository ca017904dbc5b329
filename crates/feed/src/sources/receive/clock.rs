//! The clock of a run: when no feed has brought an event for a time, it writes a tick into a journal of its own.
//!
//! The sequencer asks it, because only there it is known what is on the tape before a tick. The tick is in the journal
//! before it is placed; it comes from there as anything else does, so a later run finds it there, too.

use crate::error::Error;
use crate::formats::clock::{ClockTick, MessagePlace};
use crate::sources::journal::{
    self, CLOSED, InitialJournalState, LastFile, StreamContinuity, StreamJournal, journaled_bytes,
    noted_number,
};
use crate::sources::stats::RunMonitor;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use unitape_model::UnixNanos;

/// The reader of wall time.
pub type WallClock = fn() -> UnixNanos;

/// The settings of a run's clock.
#[derive(Clone, Copy, Debug)]
pub struct ClockSource {
    /// A tick after so long without an event; its time is a multiple of it.
    pub interval: Duration,
    /// Wall time.
    pub now: WallClock,
}

impl PartialEq for ClockSource {
    fn eq(&self, other: &Self) -> bool {
        self.interval == other.interval
    }
}

impl Eq for ClockSource {}

impl ClockSource {
    /// A clock of the system's time.
    pub fn new(interval: Duration) -> Self {
        Self { interval, now: super::now }
    }
}

/// When a tick is due, and what its time is.
#[derive(Clone, Debug)]
pub struct QuietTimer {
    interval_ns: i64,
    /// The last event or the last look, on a clock that never steps back.
    since_ns: i64,
    /// The time of the last tick.
    last: UnixNanos,
}

impl QuietTimer {
    /// A timer that begins at 0 of the clock that never steps back.
    pub fn new(interval: Duration) -> Self {
        let interval_ns = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX).max(1);
        Self { interval_ns, since_ns: 0, last: UnixNanos::MIN }
    }

    /// When the next tick is due, on the clock that never steps back.
    pub fn due_ns(&self) -> i64 {
        self.since_ns.saturating_add(self.interval_ns)
    }

    /// Notes that an event came.
    pub fn note_event(&mut self, now_ns: i64) {
        self.since_ns = self.since_ns.max(now_ns);
    }

    /// Notes a tick.
    pub fn note_tick(&mut self, ts: UnixNanos) {
        self.last = self.last.max(ts);
    }

    /// The time of the tick that is due: `wall` rounded down. None before it is due, and while wall time has not
    /// passed the last tick by an interval.
    pub fn tick(&mut self, now_ns: i64, wall: UnixNanos) -> Option<UnixNanos> {
        if now_ns < self.due_ns() {
            return None;
        }
        self.since_ns = now_ns;
        let ts = UnixNanos(wall.0 - wall.0.rem_euclid(self.interval_ns));
        (ts > self.last).then_some(ts)
    }
}

/// A clock before the tape is open.
#[derive(Debug)]
pub struct TickRequest {
    /// Index of its feed.
    pub feed: usize,
    source: ClockSource,
    dir: PathBuf,
    tape_number: u64,
    held: File,
}

impl TickRequest {
    /// Holds the journal in `dir`; `None` where it is closed.
    ///
    /// # Errors
    /// When another run holds it.
    pub fn hold(
        feed: usize,
        source: ClockSource,
        dir: &Path,
        tape_number: u64,
    ) -> Result<Option<Self>, Error> {
        if dir.join(CLOSED).exists() {
            return Ok(None);
        }
        let held = journal::lock(dir)?;
        Ok(Some(Self { feed, source, dir: dir.to_owned(), tape_number, held }))
    }

    /// Notes the journal as it is before anything is written.
    pub fn note_start(&self, stats: &RunMonitor) {
        // Once is enough: a feed has one receiver.
        _ = stats.feeds[self.feed].journal_start.set(InitialJournalState::read(&self.dir));
        stats.feeds[self.feed].received_bytes.store(journaled_bytes(&self.dir), Ordering::Relaxed);
    }

    /// Opens the journal, when the tape's account has been read.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn open(self, stats: &Arc<RunMonitor>) -> Result<ClockWriter, Error> {
        let noted = noted_number(&self.dir);
        let number = noted.map_or(0, |noted| noted.number).max(self.tape_number);
        let read = stats.feeds[self.feed].journal_read.get().copied().unwrap_or_default();
        let known = match noted {
            Some(noted) if noted.is_of_this_boot => LastFile { number, read_bytes: 0 },
            _ => LastFile { number: number.max(read.number), read_bytes: read.read_of(number) },
        };
        Ok(ClockWriter {
            feed: self.feed,
            timer: QuietTimer::new(self.source.interval),
            now: self.source.now,
            journal: StreamJournal::open(&self.dir, StreamContinuity::Pipe, known)?,
            stats: stats.clone(),
            _held: self.held,
        })
    }
}

/// Writes ticks into their journal.
#[derive(Debug)]
pub struct ClockWriter {
    feed: usize,
    /// When the next one is due.
    pub timer: QuietTimer,
    now: WallClock,
    journal: StreamJournal,
    stats: Arc<RunMonitor>,
    _held: File,
}

impl ClockWriter {
    /// Writes a tick if one is due, and whether it did. `after` gives the last message of each feed that is on the tape.
    /// A tick that cannot be written is left out, and the run says so.
    pub fn write(&mut self, now_ns: i64, after: impl FnOnce() -> BTreeMap<String, MessagePlace>) -> bool {
        let Some(ts) = self.timer.tick(now_ns, (self.now)()) else { return false };
        let line = ClockTick { ts: ts.0, after: after() }.to_line();
        let written = self.journal.begin().and_then(|_| self.journal.append(&line, (self.now)()));
        let stats = &self.stats.feeds[self.feed];
        if let Err(e) = written {
            stats.link.note(format!("a tick could not be written and is left out: {e}"));
            return false;
        }
        self.timer.note_tick(ts);
        stats.note_received(line.len() as u64);
        // Release: pairs with the Acquire of the intake; what was written before is there.
        stats.began.store(true, Ordering::Release);
        stats.came.store(true, Ordering::Release);
        self.stats.wake.notify();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn ticks(steps: &[(i64, i64)]) -> Vec<i64> {
        let mut timer = QuietTimer::new(Duration::from_secs(1));
        let mut all = Vec::new();
        for &(now_ns, wall) in steps {
            if let Some(ts) = timer.tick(now_ns, UnixNanos(wall)) {
                timer.note_tick(ts);
                all.push(ts.0);
            }
        }
        all
    }

    /// A tick of a time that is not a whole one fires timers at another moment in each run.
    #[test]
    fn a_tick_has_wall_time_rounded_down() {
        assert_eq!(ticks(&[(S, 17 * S + 999_999_999), (2 * S, 18 * S + 1)]), [17 * S, 18 * S]);
        assert_eq!(ticks(&[(S - 1, 17 * S)]), [0; 0], "too early");
        assert_eq!(ticks(&[(S, -1)]), [-S], "before 1970");
    }

    /// A busy run would be full of ticks.
    #[test]
    fn each_event_puts_the_tick_off() {
        let mut timer = QuietTimer::new(Duration::from_secs(1));
        for n in 1..10 {
            timer.note_event(n * S / 2);
            assert_eq!(timer.tick(n * S / 2 + S - 1, UnixNanos(n * S)), None);
        }
        assert_eq!(timer.due_ns(), 9 * S / 2 + S);
        assert!(timer.tick(9 * S / 2 + S, UnixNanos(20 * S)).is_some());
    }

    /// A wall clock that was set back would give a tick twice, or an earlier one after a later one.
    #[test]
    fn ticks_ascend_when_the_clock_steps_back() {
        let steps = [(S, 100 * S), (2 * S, 90 * S), (3 * S, 100 * S + 5), (4 * S, 101 * S)];
        assert_eq!(ticks(&steps), [100 * S, 101 * S]);
    }
}
