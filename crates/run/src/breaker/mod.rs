//! The loop of circuit breakers: a tape through limits, and the trips on a control tape.
//!
//! ```text
//!  tape ──▶ BreakerRun::step ──▶ signals ──▶ ControlTape ──▶ the market
//!               ▲                                │
//!               └──── acts of persons ◀──────────┘   when the run comes by the end of the tape at which they were made
//! ```
//!
//! The control tape is no function of the watched one, because persons trip and reset. So each control has an id and a cause. A
//! run judges the tape from its oldest event, puts the acts of persons in force as it comes by their causes, and appends only
//! trips whose id is not there: a process that is killed at any moment loses none and doubles none.

mod control_tape;

pub use control_tape::{ControlTape, cause_missing, controls_in_force, read_controls, require_controls_of};

pub(crate) use control_tape::control_tape_id;

use crate::Error;
use crate::surveil::{LOOK, LiveControl, LiveCursor, open_when_there};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;
use unitape_model::{LostNameCounts, Position};
use unitape_query::follow::{FollowOutcome, TapeFollower};
use unitape_tape::{ReadOptions, TapeId};
use unitape_watch::breakers::{Breaker, BreakerRules, BreakerSignal, RecordedControl};

/// A step of a run.
#[derive(Debug)]
pub enum BreakerOutcome<'a> {
    /// The next frame was judged; it has caused these, often none.
    Frame(&'a [BreakerSignal]),
    /// All that is on the tape was judged.
    AtEnd,
    /// The tape was cut back: the limits have counted events that it does not have any more.
    Rewound,
}

/// Limits that read a tape, and the controls that were there before.
pub struct BreakerRun {
    follower: TapeFollower,
    breaker: Breaker,
    /// Acts of persons and signals of limits, in the order of their causes.
    acts: Pending,
    pending_trips: Pending,
    signals: Vec<BreakerSignal>,
}

/// Recorded controls that the run has not come by yet.
struct Pending(std::collections::VecDeque<RecordedControl>);

impl Pending {
    fn new(mut controls: Vec<RecordedControl>) -> Self {
        controls.sort_by_key(|control| control.cause.position);
        Self(controls.into())
    }

    /// Applies the controls with a cause at `position` or before.
    fn apply_controls_until(&mut self, position: Position, breaker: &mut Breaker) {
        while let Some(control) = self.0.front().filter(|control| control.cause.position <= position) {
            breaker.apply(control);
            self.0.pop_front();
        }
    }
}

impl BreakerRun {
    /// Begins at the oldest event of the tape in `dir`.
    ///
    /// # Errors
    /// Fails if the tape or its log of definitions cannot be read, or if retention has removed its beginning.
    pub fn open(dir: &Path, rules: BreakerRules, read: ReadOptions) -> Result<Self, Error> {
        let (follower, names) = TapeFollower::open(dir, read)?;
        if follower.reader().position() != Position(0) {
            let reason = "retention has removed its beginning; a breaker needs all events before a trip, so it cannot begin here";
            return Err(Error::OtherTape { path: dir.to_owned(), reason: reason.to_owned() });
        }
        let mut breaker = Breaker::new(rules);
        breaker.names = names;
        let (acts, trips) = (Pending::new(Vec::new()), Pending::new(Vec::new()));
        Ok(Self { follower, breaker, acts, pending_trips: trips, signals: Vec::new() })
    }

    /// Takes the records of the control tape. The run must not have judged any event yet.
    pub fn take_recorded(&mut self, records: &[RecordedControl]) {
        let (acts, trips) = records.iter().cloned().partition(|record| record.user.is_some());
        (self.acts, self.pending_trips) = (Pending::new(acts), Pending::new(trips));
    }

    /// Judges the next frame.
    ///
    /// # Errors
    /// Fails if the tape is damaged or cannot be read.
    pub fn step(&mut self) -> Result<BreakerOutcome<'_>, Error> {
        self.signals.clear();
        let frame = match self.follower.next_step()? {
            FollowOutcome::Frame { frame, .. } => frame,
            FollowOutcome::AtEnd => {
                let tape_position = self.follower.reader().position();
                self.acts.apply_controls_until(tape_position, &mut self.breaker);
                return Ok(BreakerOutcome::AtEnd);
            }
            FollowOutcome::Rewound { .. } => return Ok(BreakerOutcome::Rewound),
        };
        let position = frame.position;
        self.acts.apply_controls_until(position, &mut self.breaker);
        match self.breaker.on_frame(position, frame.bytes, &mut self.signals) {
            Err(unitape_watch::Error::Frame { message, .. }) => {
                self.follower.refuse_frame(position, &message)?
            }
            other => other?,
        }
        // A trip of an earlier run, with other rules perhaps, is in force all the same.
        self.pending_trips.apply_controls_until(position, &mut self.breaker);
        Ok(BreakerOutcome::Frame(&self.signals))
    }

    /// Returns whether a recorded control was caused behind the end of the tape, where the run is.
    pub fn has_cause_ahead(&self) -> bool {
        !self.acts.0.is_empty() || !self.pending_trips.0.is_empty()
    }

    /// Returns the limits, with the trips in force and the used amounts.
    pub fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// Returns the follower of the tape, which knows the damage that it skipped.
    pub fn follower(&self) -> &TapeFollower {
        &self.follower
    }

    /// Returns how many names are lost.
    pub fn lost_names(&self) -> LostNameCounts {
        self.breaker.names.lost_names()
    }

    /// Returns the id of the tape.
    pub fn id(&self) -> TapeId {
        self.follower.reader().id()
    }
}

/// The result of a run.
pub struct BreakerReport {
    /// The run, with its limits and its reader.
    pub run: BreakerRun,
    /// Controls on the control tape, including earlier controls.
    pub controls: u64,
    /// The controls that this call has appended.
    pub appended: u64,
}

/// Follows the tape in `source` and appends the signals of its limits to the control tape in `controls`. `sink`
/// receives each control that this call has appended, once it is on the tape.
///
/// Returns `None` if the run was stopped before there was a tape.
///
/// # Errors
/// Fails if a tape cannot be read or written, or if another process writes the control tape. Fails if the control tape
/// has another source, or has causes that the source does not have. Fails if retention has removed the beginning of the
/// source, or if the source was cut back.
pub fn run_breaker<E: From<Error>>(
    source: &Path,
    controls: &Path,
    rules: &BreakerRules,
    read: ReadOptions,
    control: &LiveControl<'_>,
    mut sink: impl FnMut(&RecordedControl) -> Result<(), E>,
) -> Result<Option<BreakerReport>, E> {
    let open_run = || BreakerRun::open(source, rules.clone(), read);
    let Some(mut run) = open_when_there(control, open_run)? else { return Ok(None) };
    let mut tape = ControlTape::open(controls, run.id(), read)?;
    run.take_recorded(tape.records());
    let mut cursor = LiveCursor::open(source, controls, "breaker", "")?;
    let judged = judge_until_end(&mut run, &mut tape, &mut cursor, control, &mut sink);
    // Signals from before an error stay, and must be as durable as any.
    let (controls, appended) = (tape.records().len() as u64 + tape.appended(), tape.appended());
    let close_result = tape.close();
    judged?;
    close_result?;
    cursor.store_position(run.follower.reader())?;
    Ok(Some(BreakerReport { run, controls, appended }))
}

fn judge_until_end<E: From<Error>>(
    run: &mut BreakerRun,
    tape: &mut ControlTape,
    cursor: &mut LiveCursor,
    control: &LiveControl<'_>,
    sink: &mut impl FnMut(&RecordedControl) -> Result<(), E>,
) -> Result<(), E> {
    let recorded_ids: BTreeSet<String> = tape.records().iter().map(|record| record.id.clone()).collect();
    let source = run.id();
    let mut last_look = Instant::now();
    // Looked at before the tape is drained: all that was committed before the writer ended is judged in this round.
    let mut is_last_round = (control.is_finished)()?;
    let mut frames = 0u32;
    loop {
        match run.step()? {
            BreakerOutcome::Frame(signals) => {
                let new_signals = signals.iter().filter(|signal| !recorded_ids.contains(&signal.id));
                let records: Vec<RecordedControl> =
                    new_signals.map(|signal| control_tape::record_of(signal, source)).collect();
                if !records.is_empty() {
                    tape.append_controls(&records)?;
                    records.iter().try_for_each(&mut *sink)?;
                }
                frames = frames.wrapping_add(1);
                if frames.is_multiple_of(FRAMES_A_LOOK) {
                    if (control.is_stopped)() {
                        return Ok(());
                    }
                    cursor.store_position(run.follower.reader())?;
                }
                continue;
            }
            BreakerOutcome::Rewound => return Err(tape.source_cut().into()),
            BreakerOutcome::AtEnd => {}
        }
        if run.has_cause_ahead() {
            return Err(tape.cause_missing().into());
        }
        if (control.is_stopped)() || is_last_round {
            return Ok(());
        }
        if control.spin && last_look.elapsed() < LOOK {
            std::hint::spin_loop();
            continue;
        }
        last_look = Instant::now();
        cursor.store_position(run.follower.reader())?;
        is_last_round = (control.is_finished)()?;
        if !is_last_round
            && !control.spin
            && let FollowOutcome::Rewound { .. } = run.follower.wait().map_err(Error::from)?
        {
            return Err(tape.source_cut().into());
        }
    }
}

/// Frames between two looks whether the run must end, on a tape that has more.
const FRAMES_A_LOOK: u32 = 1 << 16;
