//! The loop of surveillance: a tape through the scenarios of a watch, replayed or live.
//!
//! ```text
//!  tape ──▶ Surveillance::step ──▶ alerts of the event ──▶ the caller (replay)
//!                                                      └─▶ AlertTape (live, `watch_live`)
//! ```

use crate::Error;
use crate::alert_tape::AlertTape;
use crate::derived_tape::DerivedTotals;
use std::path::Path;
use std::time::{Duration, Instant};
use unitape_model::{Event, EventKind, LostNameCounts, Position};
use unitape_query::address::EventAddress;
use unitape_query::follow::{FollowOutcome, SkippedDefinitions, TapeFollower, TapeRange};
use unitape_query::{EventFilter, EventSelection};
use unitape_tape::{Cursor, Frame, ReadOptions, Reader};
use unitape_watch::{Alert, ReplaySummary, ScenarioSelection, TapeWatch};

/// A step of surveillance.
#[derive(Debug)]
pub enum SurveilOutcome<'a> {
    /// The next frame was judged; these alerts it completes, often none.
    Frame(&'a [Alert]),
    /// All that is on the tape, or in the part, was judged.
    AtEnd,
    /// The tape was cut back: the scenarios have seen events that it does not have any more.
    Rewound {
        /// The position up to which it was read.
        from: Position,
        /// The position of the cut.
        to: Position,
    },
}

/// Scenarios that read a tape.
pub struct Surveillance {
    follower: TapeFollower,
    watch: TapeWatch,
    range: TapeRange,
    /// The conditions beside the range, if there are any.
    filter: Option<EventFilter>,
    skipped: Option<SkippedDefinitions>,
    is_complete: bool,
    alerts: Vec<Alert>,
    events: u64,
    alert_count: u64,
}

impl Surveillance {
    /// Begins at the start of the range of `events` in the tape in `dir`. The scenarios see the selected events alone.
    ///
    /// # Errors
    /// Fails if a scenario is unknown, or if the tape or its log of definitions cannot be read.
    pub fn open(
        dir: &Path,
        scenarios: &ScenarioSelection,
        events: &EventSelection,
        read: ReadOptions,
    ) -> Result<Self, Error> {
        let mut watch = TapeWatch::new(scenarios)?;
        let range = events.range;
        let (mut follower, names) = TapeFollower::open(dir, read)?;
        watch.names = names;
        let begins_at_start = follower.reader().position() == Position(0);
        let has_since = range.times.is_some_and(|times| times.since.is_some());
        let is_complete = range.seek(&mut follower, &mut watch.names)?;
        // A part that begins at its own place or time does not need earlier events.
        let is_complete = is_complete && (begins_at_start || range.from.is_some() || has_since);
        let skipped = range.times.and_then(|times| follower.keep_times(times));
        let mut filter = events.is_narrowed().then(|| EventFilter::new(events));
        if let Some(filter) = &mut filter {
            filter.update_ids(watch.names.dictionary());
        }
        Ok(Self {
            follower,
            watch,
            range,
            filter,
            skipped,
            is_complete,
            alerts: Vec::new(),
            events: 0,
            alert_count: 0,
        })
    }

    /// Judges the next frame.
    ///
    /// # Errors
    /// Fails if the tape is damaged or cannot be read.
    #[inline]
    pub fn step(&mut self) -> Result<SurveilOutcome<'_>, Error> {
        self.alerts.clear();
        let (ordinal, frame) = match self.follower.step()? {
            FollowOutcome::Frame { ordinal, frame } => (ordinal, frame),
            FollowOutcome::AtEnd => return Ok(SurveilOutcome::AtEnd),
            FollowOutcome::Rewound { from, to } => return Ok(SurveilOutcome::Rewound { from, to }),
        };
        let (position, seq) = (frame.position, ordinal + 1);
        let address = EventAddress { seq, position };
        let is_done = self.filter.as_ref().is_some_and(|filter| filter.is_done(address));
        if is_done || self.range.is_over(address) {
            return Ok(SurveilOutcome::AtEnd);
        }
        if let Some(skipped) = &mut self.skipped {
            skipped.learn_before(&frame, &mut self.watch.names)?;
            if let Some(filter) = &mut self.filter {
                filter.update_ids(self.watch.names.dictionary());
            }
        }
        let is_meta = frame.header.is_meta();
        let is_selected = is_meta
            || self.range.has(address, &frame)
                && self.filter.as_mut().is_none_or(|filter| is_wanted(filter, &frame, address));
        if is_selected {
            self.events += u64::from(!is_meta);
            match self.watch.on_frame(position, frame.bytes, seq, &mut self.alerts) {
                Err(unitape_watch::Error::Frame { message, .. }) => {
                    self.follower.refuse(position, &message)?
                }
                other => other?,
            }
            if let Some(filter) = self.filter.as_mut().filter(|_| is_meta) {
                filter.update_ids(self.watch.names.dictionary());
            }
            self.alert_count += self.alerts.len() as u64;
        }
        Ok(SurveilOutcome::Frame(&self.alerts))
    }

    /// Waits at the end of the tape until there is more, for a fifth of a second at most.
    ///
    /// # Errors
    /// Fails as [`Surveillance::step`] does.
    pub fn wait(&mut self) -> Result<SurveilOutcome<'_>, Error> {
        Ok(match self.follower.wait()? {
            FollowOutcome::Rewound { from, to } => SurveilOutcome::Rewound { from, to },
            _ => SurveilOutcome::AtEnd,
        })
    }

    /// Returns whether retention has left all of the part.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the follower of the tape, which knows the damage that it skipped.
    pub fn follower(&self) -> &TapeFollower {
        &self.follower
    }

    /// Returns the reader of the tape.
    pub fn reader(&self) -> &Reader {
        self.follower.reader()
    }

    /// Returns how many names are lost.
    pub fn lost_names(&self) -> LostNameCounts {
        self.watch.names.lost_names()
    }

    /// Returns the conditions beside the range, if there are any.
    pub fn filter(&self) -> Option<&EventFilter> {
        self.filter.as_ref()
    }

    /// Returns the watch with its names.
    pub fn watch(&self) -> &TapeWatch {
        &self.watch
    }

    /// Returns the counts so far.
    pub fn summary(&self) -> ReplaySummary {
        let mut summary =
            ReplaySummary { events: self.events, alerts: self.alert_count, ..ReplaySummary::default() };
        summary.add_counters(&self.watch.watch);
        summary
    }
}

/// Returns whether the watch gets this frame. A message in quarantine may be of any instrument, so that it always gets these.
fn is_wanted(filter: &mut EventFilter, frame: &Frame<'_>, address: EventAddress) -> bool {
    let is_quarantine = Event::new(frame.bytes).is_some_and(|event| event.kind() == EventKind::Quarantine);
    is_quarantine || filter.select_frame(frame, address)
}

/// Decides when a live watch ends, and how it waits.
pub struct LiveControl<'a> {
    /// Returns whether the watch must end at once.
    pub is_stopped: &'a dyn Fn() -> bool,
    /// Returns whether the source gets no more events. The watch then ends once all events are judged, and a missing
    /// source is an error.
    pub is_finished: &'a dyn Fn() -> Result<bool, Error>,
    /// Looks for the next event without a pause. It uses a core.
    pub spin: bool,
    /// Is called once if the watch begins to wait for a tape that is not there.
    pub on_missing: &'a dyn Fn(),
}

/// The result of a live watch.
pub struct LiveReport {
    /// The watch, with its counters and its reader.
    pub surveillance: Surveillance,
    /// The alerts on the alert tape, including earlier alerts, and the alerts that this call appended.
    pub totals: DerivedTotals,
}

/// Follows the tape in `source` and puts its alerts onto the tape in `alerts`, from the oldest event on. `sink` is given each
/// alert once its unit is on the alert tape, and whether it was appended by this call.
///
/// The call may end at any moment, also by a kill: the next call judges the source again, compares the alerts with the
/// existing alerts, and appends the rest. The cursor `watch-ID` of the source has the first 16 digits of the alert
/// tape's id. It shows the progress of the watch and holds retention.
///
/// Returns `None` if the watch was stopped before there was a tape.
///
/// # Errors
/// Fails if a scenario is unknown; if a tape cannot be read or written; if the alert tape is another one, or has alerts that the
/// source does not give; if retention has removed the beginning of the source; if the source was cut back.
pub fn watch_live<E: From<Error>>(
    source: &Path,
    alerts: &Path,
    selection: &ScenarioSelection,
    read: ReadOptions,
    control: &LiveControl<'_>,
    mut sink: impl FnMut(&Alert, bool) -> Result<(), E>,
) -> Result<Option<LiveReport>, E> {
    let open = || Surveillance::open(source, selection, &EventSelection::default(), read);
    let Some(mut surveillance) = open_when_there(control, open)? else { return Ok(None) };
    if surveillance.reader().position() != Position(0) {
        let reason = "retention has removed its beginning; a watch needs all events before an alert, so it cannot begin here";
        return Err(Error::OtherTape { path: source.to_owned(), reason: reason.to_owned() }.into());
    }
    let id = surveillance.reader().id();
    let mut tape = AlertTape::open(alerts, id, selection, read)?;
    let mut cursor = LiveCursor::open(source, alerts, "watch")?;
    let judged = judge_until_end(&mut surveillance, &mut tape, &mut cursor, control, &mut sink);
    // The alerts of before an error stay, and must be as durable as any.
    let closed = tape.close();
    judged?;
    let totals = closed?;
    cursor.store(surveillance.reader())?;
    Ok(Some(LiveReport { surveillance, totals }))
}

/// Judges all events of the source, until the watch is stopped or the source is finished.
fn judge_until_end<E: From<Error>>(
    surveillance: &mut Surveillance,
    tape: &mut AlertTape,
    cursor: &mut LiveCursor,
    control: &LiveControl<'_>,
    sink: &mut impl FnMut(&Alert, bool) -> Result<(), E>,
) -> Result<(), E> {
    let mut last_look = Instant::now();
    // Looked at before the tape is drained: all that was committed before the writer ended is judged in this round.
    let mut is_last_round = (control.is_finished)()?;
    let mut frames = 0u32;
    loop {
        match surveillance.step()? {
            SurveilOutcome::Frame(alerts) => {
                if !alerts.is_empty() {
                    let is_new = tape.write_alerts(alerts)?;
                    alerts.iter().try_for_each(|alert| sink(alert, is_new))?;
                }
                frames = frames.wrapping_add(1);
                if frames.is_multiple_of(FRAMES_A_LOOK) {
                    if (control.is_stopped)() {
                        return Ok(());
                    }
                    cursor.store(surveillance.reader())?;
                }
                continue;
            }
            SurveilOutcome::Rewound { .. } => return Err(tape.source_cut().into()),
            SurveilOutcome::AtEnd => {}
        }
        tape.require_compared()?;
        if (control.is_stopped)() || is_last_round {
            return Ok(());
        }
        if control.spin && last_look.elapsed() < LOOK {
            std::hint::spin_loop();
            continue;
        }
        last_look = Instant::now();
        cursor.store(surveillance.reader())?;
        is_last_round = (control.is_finished)()?;
        if !is_last_round
            && !control.spin
            && let SurveilOutcome::Rewound { .. } = surveillance.wait()?
        {
            return Err(tape.source_cut().into());
        }
    }
}

/// Opens a tape as soon as it exists. Returns `None` if the watch was stopped before that.
pub(crate) fn open_when_there<T>(
    control: &LiveControl<'_>,
    open: impl Fn() -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let mut is_said = false;
    loop {
        let is_last_try = (control.is_finished)()?;
        match open() {
            Err(Error::Tape(error))
                if matches!(*error, unitape_tape::Error::NotATape { .. }) && !is_last_try => {}
            other => return other.map(Some),
        }
        if (control.is_stopped)() {
            return Ok(None);
        }
        if !is_said {
            (control.on_missing)();
            is_said = true;
        }
        std::thread::sleep(APPEARANCE);
    }
}

/// The named cursor of a live watch or breaker on its source.
pub(crate) struct LiveCursor {
    cursor: Cursor,
    stored: Option<Position>,
}

impl LiveCursor {
    /// Opens the cursor `PREFIX-ID`, with the first 16 digits of the id of the tape that is written.
    pub fn open(source: &Path, written: &Path, prefix: &str) -> Result<Self, Error> {
        let id = unitape_tape::TapeManifest::load(written)?.id.to_string();
        let cursor = Cursor::open(source, &format!("{prefix}-{}", &id[..16]))?;
        Ok(Self { cursor, stored: None })
    }

    /// Stores how far the reader is, if it has moved.
    pub fn store(&mut self, reader: &Reader) -> Result<(), Error> {
        if self.stored != Some(reader.position()) {
            self.cursor.store_point(reader.point())?;
            self.stored = Some(reader.position());
        }
        Ok(())
    }
}

/// Frames between two looks whether the watch must end, on a tape that has more.
const FRAMES_A_LOOK: u32 = 1 << 16;
/// The time between two checks whether a process writes the tape.
pub(crate) const LOOK: Duration = Duration::from_millis(200);
/// The time between two looks whether there is a tape.
const APPEARANCE: Duration = Duration::from_millis(20);
