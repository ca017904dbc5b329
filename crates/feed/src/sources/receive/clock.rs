//! The clock of a run: when no feed has brought an event for a time, it writes a tick into a journal of its own.
//!
//! The sequencer asks it, because only there it is known what is on the tape before a tick. The tick is in the journal
//! before it is placed; it comes from there as anything else does, so a later run finds it there, too.

use crate::error::Error;
use crate::formats::clock::{ClockTick, MessagePlace};
use crate::pipeline::lead::{ClockLeadLimits, known_time};
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
    /// Makes a clock of the system's time.
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
    /// The time of the last credible tick.
    last_tick: UnixNanos,
    /// The latest time of a tick that was not credible.
    last_ahead: UnixNanos,
    /// The last credible reading of the host's clock.
    believed: Option<HostReading>,
    /// The run has said that the host's clock is behind the last tick.
    is_behind: bool,
    /// A sentence on the host's clock for the run to report.
    host_clock_note: Option<String>,
}

/// The host's clock, and a clock that cannot be set, read at one moment.
#[derive(Clone, Copy, Debug)]
pub struct HostReading {
    /// Wall time.
    pub wall: UnixNanos,
    /// Time since the host was started, sleep included.
    pub boot_ns: i64,
}

/// The event time and the bounds with which the host's clock is compared.
#[derive(Clone, Copy, Debug)]
pub struct TickReference {
    /// The latest time of a placed, credible event.
    pub placed_max: UnixNanos,
    /// The bounds.
    pub lead: ClockLeadLimits,
}

/// A tick that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueTick {
    /// Its time.
    pub ts: UnixNanos,
    /// It leads by more than it may.
    pub is_ahead: bool,
}

impl QuietTimer {
    /// Makes a timer that begins at 0 of the monotonic clock.
    pub fn new(interval: Duration) -> Self {
        let interval_ns = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX).max(1);
        Self {
            interval_ns,
            since_ns: 0,
            last_tick: UnixNanos::MIN,
            last_ahead: UnixNanos::MIN,
            believed: None,
            is_behind: false,
            host_clock_note: None,
        }
    }

    /// Returns when the next tick is due, on the monotonic clock.
    pub fn due_ns(&self) -> i64 {
        self.since_ns.saturating_add(self.interval_ns)
    }

    /// Notes that an event came.
    pub fn note_event(&mut self, now_ns: i64) {
        self.since_ns = self.since_ns.max(now_ns);
    }

    /// Notes a tick.
    pub fn note_tick(&mut self, ts: UnixNanos, is_ahead: bool) {
        match is_ahead {
            true => self.last_ahead = self.last_ahead.max(ts),
            false => self.last_tick = ts,
        }
    }

    /// Takes the sentence on the host's clock that the run is to report.
    pub fn take_note(&mut self) -> Option<String> {
        self.host_clock_note.take()
    }

    /// Returns the tick that is due, with wall time rounded down. Returns `None` before it is due, and while wall time has not
    /// passed the last tick by an interval.
    ///
    /// A clock that is behind the last tick by more than an event may lead its receipt was set back, or was wrong before: the
    /// ticks continue by it.
    pub fn tick(&mut self, now_ns: i64, host: HostReading, reference: &TickReference) -> Option<DueTick> {
        if now_ns < self.due_ns() {
            return None;
        }
        self.since_ns = now_ns;
        let wall = host.wall;
        let ts = UnixNanos(wall.0.saturating_sub(wall.0.rem_euclid(self.interval_ns)));
        if self.host_leads(host, reference) {
            return (ts > self.last_tick.max(self.last_ahead)).then_some(DueTick { ts, is_ahead: true });
        }
        let tick = Some(DueTick { ts, is_ahead: false });
        if ts > self.last_tick {
            self.is_behind = false;
            return tick;
        }
        let is_set_back = self.last_tick > reference.lead.after_receipt(wall);
        let behind_ns = self.last_tick.0.saturating_sub(wall.0).max(0) as u64;
        if behind_ns > BEHIND_NS && !std::mem::replace(&mut self.is_behind, !is_set_back) {
            let continues = match is_set_back {
                true => {
                    "ticks continue by the host's clock, and readers that believed the earlier ones stay at their time"
                }
                false => "no tick comes until it is there",
            };
            self.host_clock_note = Some(format!(
                "the host's clock says {} (ns since 1970), which is {:.0?} before the last tick: {continues}",
                wall.0,
                Duration::from_nanos(behind_ns)
            ));
        }
        tick.filter(|_| is_set_back)
    }

    /// Returns whether the host's clock leads by more than it may. Either it jumped and no event has a time near it, or it
    /// leads the events by more than a time without a receipt may.
    fn host_leads(&mut self, host: HostReading, reference: &TickReference) -> bool {
        let TickReference { placed_max, lead } = reference;
        let placed_time = known_time(*placed_max);
        let steady = |before: HostReading| {
            UnixNanos(before.wall.0.saturating_add(host.boot_ns.saturating_sub(before.boot_ns)))
        };
        let expected = self.believed.filter(|before| known_time(before.wall).is_some()).map(steady);
        let has_jumped = expected.is_some_and(|expected| host.wall > lead.after_receipt(expected))
            && placed_time.is_none_or(|placed| host.wall > lead.after_receipt(placed));
        let leads = has_jumped || placed_time.is_some_and(|placed| host.wall > lead.after_feeds(placed));
        if !leads {
            self.believed = Some(host);
        }
        leads
    }
}

/// A clock that is behind the last tick by less is not worth a word.
const BEHIND_NS: u64 = 1_000_000_000;

/// A clock before the tape is open.
#[derive(Debug)]
pub struct TickRequest {
    /// Index of its feed.
    pub feed: usize,
    source: ClockSource,
    journal_dir: PathBuf,
    tape_number: u64,
    lock_file: File,
}

impl TickRequest {
    /// Holds the journal in `dir`; `None` where it is closed.
    ///
    /// # Errors
    /// Fails if another run holds the clock's journal.
    pub fn hold(
        feed: usize,
        source: ClockSource,
        dir: &Path,
        tape_number: u64,
    ) -> Result<Option<Self>, Error> {
        if dir.join(CLOSED).exists() {
            return Ok(None);
        }
        let lock = journal::lock(dir)?;
        Ok(Some(Self { feed, source, journal_dir: dir.to_owned(), tape_number, lock_file: lock }))
    }

    /// Notes the journal as it is before anything is written.
    pub fn note_start(&self, stats: &RunMonitor) {
        // Once is enough: a feed has one receiver.
        _ = stats.feeds[self.feed].journal_start.set(InitialJournalState::read(&self.journal_dir));
        stats.feeds[self.feed].received_bytes.store(journaled_bytes(&self.journal_dir), Ordering::Relaxed);
    }

    /// Opens the journal, when the tape's account has been read.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn open(self, stats: &Arc<RunMonitor>) -> Result<ClockWriter, Error> {
        let file_note = noted_number(&self.journal_dir);
        let number = file_note.map_or(0, |note| note.number).max(self.tape_number);
        let journal_read = stats.feeds[self.feed].journal_read.get().copied().unwrap_or_default();
        let last_file = match file_note {
            Some(note) if note.is_of_this_boot => LastFile { number, read_bytes: 0 },
            _ => {
                LastFile { number: number.max(journal_read.number), read_bytes: journal_read.read_of(number) }
            }
        };
        Ok(ClockWriter {
            feed: self.feed,
            timer: QuietTimer::new(self.source.interval),
            now: self.source.now,
            journal: StreamJournal::open(&self.journal_dir, StreamContinuity::Pipe, last_file)?,
            stats: stats.clone(),
            _held: self.lock_file,
        })
    }
}

/// Writes ticks into their journal.
#[derive(Debug)]
pub struct ClockWriter {
    feed: usize,
    /// When the next tick is due.
    pub timer: QuietTimer,
    now: WallClock,
    journal: StreamJournal,
    stats: Arc<RunMonitor>,
    _held: File,
}

impl ClockWriter {
    /// Writes a tick if one is due; returns whether it did. `after` gives the last message of each feed on the tape.
    /// A tick that cannot be written is left out, and the run reports it.
    pub fn write(
        &mut self,
        now_ns: i64,
        reference: &TickReference,
        after: impl FnOnce() -> BTreeMap<String, MessagePlace>,
    ) -> bool {
        let boot_ns = unitape_tape::ClockSource::default().now().boot_ns;
        let host = HostReading { wall: (self.now)(), boot_ns: i64::try_from(boot_ns).unwrap_or(i64::MAX) };
        let due = self.timer.tick(now_ns, host, reference);
        let stats = &self.stats.feeds[self.feed];
        if let Some(note) = self.timer.take_note() {
            stats.link.note(note);
        }
        let Some(DueTick { ts, is_ahead }) = due else { return false };
        let line = ClockTick { ts: ts.0, after: after(), ahead: is_ahead }.to_line();
        let append_result = self.journal.begin().and_then(|_| self.journal.append(&line, (self.now)()));
        if let Err(e) = append_result {
            stats.link.note(format!("a tick could not be written and is left out: {e}"));
            return false;
        }
        self.timer.note_tick(ts, is_ahead);
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

    /// Steps of the steady clocks and of wall time, and the time of the last event.
    fn due(lead: ClockLeadLimits, steps: &[(i64, i64, i64)]) -> (Vec<DueTick>, Vec<String>) {
        let mut timer = QuietTimer::new(Duration::from_secs(1));
        let (mut all, mut notes) = (Vec::new(), Vec::new());
        for &(now_ns, wall, placed_max) in steps {
            let host = HostReading { wall: UnixNanos(wall), boot_ns: now_ns };
            let reference = TickReference { placed_max: UnixNanos(placed_max), lead };
            if let Some(due) = timer.tick(now_ns, host, &reference) {
                timer.note_tick(due.ts, due.is_ahead);
                all.push(due);
            }
            notes.extend(timer.take_note());
        }
        (all, notes)
    }

    fn ticks(steps: &[(i64, i64)]) -> Vec<i64> {
        let steps: Vec<_> = steps.iter().map(|&(now_ns, wall)| (now_ns, wall, i64::MIN)).collect();
        due(ClockLeadLimits::default(), &steps).0.iter().map(|due| due.ts.0).collect()
    }

    const NOW: i64 = 1_772_440_000 * S;
    const HOUR: i64 = 3600 * S;
    const YEAR: i64 = 365 * 24 * HOUR;

    fn believed(seconds: &[i64]) -> Vec<DueTick> {
        seconds.iter().map(|s| DueTick { ts: UnixNanos(NOW + s * S), is_ahead: false }).collect()
    }

    fn ahead_tick(ts: i64) -> DueTick {
        DueTick { ts: UnixNanos(ts), is_ahead: true }
    }

    /// Guards against a tick of a clock that had jumped: readers were at its time, and no later tick came.
    #[test]
    fn ticks_of_a_clock_that_jumps_are_not_believed() {
        let steps = [
            (S, NOW, NOW),
            (2 * S, NOW + S, NOW),
            (3 * S, NOW + YEAR + 2 * S, NOW),
            (4 * S, NOW + YEAR + 3 * S, NOW),
            (5 * S, NOW + 4 * S, NOW),
        ];
        let (ticks, notes) = due(ClockLeadLimits::default(), &steps);
        assert_eq!(ticks[..2], believed(&[0, 1]));
        assert_eq!(ticks[2..4], [ahead_tick(NOW + YEAR + 2 * S), ahead_tick(NOW + YEAR + 3 * S)]);
        assert_eq!(ticks[4..], believed(&[4]));
        assert_eq!(notes, [""; 0]);
        // A night without an event is no jump, and without bounds nothing is.
        let night = [(S, NOW, NOW), (12 * HOUR, NOW + 12 * HOUR - S, NOW)];
        assert!(due(ClockLeadLimits::default(), &night).0.iter().all(|due| !due.is_ahead));
        assert!(due(ClockLeadLimits::UNBOUNDED, &steps).0.iter().all(|due| !due.is_ahead));
    }

    /// Guards against a host that starts with a wrong clock: only events can show it. A corrected clock is believed
    /// when an event has its time.
    #[test]
    fn events_say_whether_the_clock_is_right() {
        let far = NOW + 400 * 24 * HOUR;
        let (ticks, _) = due(ClockLeadLimits::default(), &[(S, far, NOW), (2 * S, far + S, NOW)]);
        assert_eq!(ticks, [ahead_tick(far), ahead_tick(far + S)]);
        let right = [(S, NOW, NOW), (2 * S, NOW + HOUR, NOW), (3 * S, NOW + HOUR + S, NOW + HOUR)];
        let (ticks, _) = due(ClockLeadLimits::default(), &right);
        assert_eq!(
            ticks[1..],
            [ahead_tick(NOW + HOUR), DueTick { ts: UnixNanos(NOW + HOUR + S), is_ahead: false }]
        );
    }

    /// Guards against one tick of a later year that silently stopped all later runs.
    #[test]
    fn a_clock_that_was_set_back_far_ticks_and_says_so() {
        let ticks_after_setback = |setback_ns: i64| {
            let (ticks, notes) = due(
                ClockLeadLimits::default(),
                &[
                    (S, NOW + setback_ns, NOW),
                    (2 * S, NOW + S, NOW),
                    (3 * S, NOW + 2 * S, NOW),
                    (4 * S, NOW + 3 * S, NOW),
                ],
            );
            (ticks[1..].to_vec(), notes)
        };
        let (ticks, notes) = ticks_after_setback(YEAR);
        assert_eq!(ticks, believed(&[1, 2, 3]));
        assert!(notes.len() == 1 && notes[0].contains("ticks continue by the host's clock"), "{notes:?}");
        let (ticks, notes) = ticks_after_setback(HOUR / 10);
        assert_eq!(ticks, []);
        assert!(notes.len() == 1 && notes[0].contains("no tick comes until it is there"), "{notes:?}");
        assert_eq!(ticks_after_setback(2 * S), (believed(&[3]), vec![]), "too little to speak of");
    }

    /// Guards against a tick with a fraction of a second, which fires timers at another moment in each run.
    #[test]
    fn a_tick_has_wall_time_rounded_down() {
        assert_eq!(ticks(&[(S, 17 * S + 999_999_999), (2 * S, 18 * S + 1)]), [17 * S, 18 * S]);
        assert_eq!(ticks(&[(S - 1, 17 * S)]), [0; 0], "too early");
        assert_eq!(ticks(&[(S, -1)]), [-S], "before 1970");
    }

    const NOTHING: TickReference =
        TickReference { placed_max: UnixNanos::MIN, lead: ClockLeadLimits::UNBOUNDED };

    /// Guards against a busy run full of ticks.
    #[test]
    fn each_event_puts_the_tick_off() {
        let host = |wall| HostReading { wall: UnixNanos(wall), boot_ns: 0 };
        let mut timer = QuietTimer::new(Duration::from_secs(1));
        for n in 1..10 {
            timer.note_event(n * S / 2);
            assert_eq!(timer.tick(n * S / 2 + S - 1, host(n * S), &NOTHING), None);
        }
        assert_eq!(timer.due_ns(), 9 * S / 2 + S);
        assert!(timer.tick(9 * S / 2 + S, host(20 * S), &NOTHING).is_some());
    }

    /// Guards against a wall clock that was set back: it would give a tick twice, or ticks out of order.
    #[test]
    fn ticks_ascend_when_the_clock_steps_back() {
        let steps = [(S, 100 * S), (2 * S, 90 * S), (3 * S, 100 * S + 5), (4 * S, 101 * S)];
        assert_eq!(ticks(&steps), [100 * S, 101 * S]);
    }
}
