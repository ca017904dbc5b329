//! The loop of surveillance: a tape through the scenarios of a watch, replayed or live.
//!
//! ```text
//!  tape ──▶ Surveillance::step ──▶ alerts of the event ──▶ the caller (replay)
//!                                                      └─▶ AlertTape (live, `watch_live`)
//! ```

use crate::Error;
use crate::alert_tape::{AdoptedAlerts, AlertTape, WatchNote};
use crate::derived_tape::{DerivedPoint, DerivedTotals};
use crate::opened_watch::{OpenedWatch, WatchDirs};
use crate::watch_snapshot::{SnapshotStore, SourcePoint, TailChecksum, WatchSnapshot};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use unitape_model::{DefinitionTable, Event, EventKind, LostNameCounts, Position, UnixNanos};
use unitape_query::address::{EventAddress, TapeRangeBound};
use unitape_query::follow::{FollowOutcome, SkippedDefinitions, TapeFollower, TapeRange};
use unitape_query::{EventFilter, EventSelection};
use unitape_tape::{Cursor, Frame, LineagePoint, ReadOptions, Reader};
use unitape_watch::{Alert, ReplaySummary, ScenarioSelection, StateReader, TapeWatch, WatchState};

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
    skipped_definitions: Option<SkippedDefinitions>,
    is_complete: bool,
    alerts: Vec<Alert>,
    events: u64,
    alert_count: u64,
    /// The checksum of the last frames.
    tail_checksum: TailChecksum,
    /// The time of the last event.
    last_ts: Option<UnixNanos>,
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
            skipped_definitions: skipped,
            is_complete,
            alerts: Vec::new(),
            events: 0,
            alert_count: 0,
            tail_checksum: TailChecksum::default(),
            last_ts: None,
        })
    }

    /// Goes on where a snapshot of a watch with the same rules was made. The whole tape is judged.
    ///
    /// # Errors
    /// Fails as [`Surveillance::open`] does, and if the snapshot has another state.
    pub(crate) fn resume(
        dir: &Path,
        scenarios: &ScenarioSelection,
        snapshot: &WatchSnapshot,
        read: ReadOptions,
    ) -> Result<Self, Error> {
        let resume_bound = TapeRangeBound::Position(Position(snapshot.source.position));
        let range = TapeRange { from: Some(resume_bound), ..TapeRange::default() };
        let mut this =
            Self::open(dir, scenarios, &EventSelection { range, ..EventSelection::default() }, read)?;
        let mut state = StateReader::new(&snapshot.state);
        let loaded = this.watch.load(&mut state).and_then(|()| state.finish());
        loaded.map_err(|fault| Error::OtherTape { path: dir.to_owned(), reason: fault.to_string() })?;
        (this.events, this.alert_count) = (snapshot.source.events, snapshot.alert_count);
        this.tail_checksum = snapshot.source.tail;
        Ok(this)
    }

    /// Saves the state as a snapshot. The alert tape has all alerts so far, up to `alerts`.
    pub fn take_snapshot(&self, alerts: DerivedPoint) -> WatchSnapshot {
        let mut state = Vec::new();
        self.watch.save(&mut state);
        let source = SourcePoint::from_reader(self.reader(), self.tail_checksum);
        WatchSnapshot { source, alerts, alert_count: self.alert_count, state }
    }

    /// Judges the next frame.
    ///
    /// # Errors
    /// Fails if the tape is damaged or cannot be read.
    #[inline]
    pub fn step(&mut self) -> Result<SurveilOutcome<'_>, Error> {
        self.step_observed(|_, _, _| {})
    }

    /// Judges the next frame, and gives `observer` the event of it, with the names of the tape. The alerts returned are of that
    /// event.
    ///
    /// # Errors
    /// Fails as [`Surveillance::step`] does.
    #[inline]
    pub fn step_observed(
        &mut self,
        mut observer: impl FnMut(&Event<'_>, u64, &DefinitionTable),
    ) -> Result<SurveilOutcome<'_>, Error> {
        self.alerts.clear();
        let (ordinal, frame) = match self.follower.next_step()? {
            FollowOutcome::Frame { ordinal, frame } => (ordinal, frame),
            FollowOutcome::AtEnd => return Ok(SurveilOutcome::AtEnd),
            FollowOutcome::Rewound { from, to } => return Ok(SurveilOutcome::Rewound { from, to }),
        };
        let (position, seq) = (frame.position, ordinal + 1);
        let address = EventAddress { seq, position };
        if self.range.is_reached_by(address) {
            self.tail_checksum.add_frame(position, frame.bytes);
        }
        let is_done = self.filter.as_ref().is_some_and(|filter| filter.is_done(address));
        if is_done || self.range.is_over(address) {
            return Ok(SurveilOutcome::AtEnd);
        }
        if let Some(skipped) = &mut self.skipped_definitions {
            skipped.learn_before(&frame, &mut self.watch.names)?;
            if let Some(filter) = &mut self.filter {
                filter.update_ids(self.watch.names.dictionary());
            }
        }
        let is_meta = frame.header.is_meta();
        let is_selected = is_meta
            || self.range.contains_event(address, &frame)
                && self.filter.as_mut().is_none_or(|filter| is_wanted(filter, &frame, address));
        if is_selected {
            self.events += u64::from(!is_meta);
            self.last_ts =
                Event::new(frame.bytes).filter(|_| !is_meta).map(|event| event.ts_event()).or(self.last_ts);
            match self.watch.on_frame(position, frame.bytes, seq, &mut self.alerts) {
                Err(unitape_watch::Error::Frame { message, .. }) => {
                    self.follower.refuse_frame(position, &message)?
                }
                Ok(()) if !is_meta => {
                    if let Some(event) = Event::new(frame.bytes) {
                        observer(&event, seq, &self.watch.names);
                    }
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

    /// Returns whether the source is durable up to a point.
    fn is_durable(&mut self, point: SourcePoint) -> bool {
        self.follower.durable().is_ok_and(|durable| durable.0 >= point.position)
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
    /// Is given the reason if a snapshot cannot be written, once until one can be. The watch goes on: without a snapshot, a
    /// restart judges the source from an earlier point.
    pub on_snapshot_refused: &'a dyn Fn(&Error),
    /// Is given the reason if a snapshot is too large to be read. The watch goes on at an earlier point.
    pub on_snapshot_passed_over: &'a dyn Fn(&Error),
    /// The number of events between two snapshots while there is more to judge. At the end of the tape a thirty-second of it
    /// is enough.
    pub snapshot_events: u64,
}

/// The result of a live watch.
pub struct LiveReport {
    /// The watch, with its counters and its reader.
    pub surveillance: Surveillance,
    /// The alerts on the alert tape, including earlier alerts, and the alerts that this call appended.
    pub totals: DerivedTotals,
    /// The part of the source that the watch could not see, because retention has removed it and there is no snapshot.
    pub blind: Option<(Position, Position)>,
    /// Where the source was cut back behind an alert that the alert tape has.
    pub source_cut: Option<Position>,
}

/// Follows the tape in `source` and puts its alerts onto the tape in `alerts`. `sink` is given each alert once its unit is on
/// the alert tape, and whether it was appended by this call.
///
/// The call may end at any moment, also by a kill. The next call goes on at the last snapshot in `ALERTS.state` that both tapes
/// reach, or at the oldest event; it compares the alerts with the existing alerts, and appends the rest. If there is no such
/// snapshot and retention has removed the beginning of the source, the watch is blind for that part: it begins at the oldest
/// event, notes the part on the alert tape, and leaves out alerts that the tape has. If the source was cut back behind an alert,
/// as a power loss may do, the alert stays, a control `source_cut` follows it, and the watch goes on in the same way.
///
/// The cursor `watch-ID` of the source has the first 16 digits of the alert tape's id and shows the progress of the watch. The
/// cursor `watch-ID-snapshot` is at the last snapshot, where a restart goes on. Both hold retention.
///
/// Returns `None` if the watch was stopped before there was a tape.
///
/// # Errors
/// Fails if a scenario is unknown; if a tape cannot be read or written; if the alert tape is another one, or has alerts that the
/// source does not give; if the source was cut back.
pub fn watch_live<E: From<Error>>(
    source: &Path,
    alerts: &Path,
    selection: &ScenarioSelection,
    read: ReadOptions,
    control: &LiveControl<'_>,
    mut sink: impl FnMut(&Alert, bool) -> Result<(), E>,
) -> Result<Option<LiveReport>, E> {
    let open_watch = || Surveillance::open(source, selection, &EventSelection::default(), read);
    let Some(surveillance) = open_when_there(control, open_watch)? else { return Ok(None) };
    let dirs = WatchDirs { source, alerts };
    let opened =
        OpenedWatch::with_source(surveillance, dirs, selection, read, control.on_snapshot_passed_over)?;
    let OpenedWatch { surveillance, alert_tape: mut tape, snapshots: store, is_resumed } = opened;
    let is_blind = !is_resumed && surveillance.reader().position() != Position(0);
    let adoption = match is_blind {
        true => Some(Adoption::of_blind(source, &surveillance, &mut tape)?),
        false => None,
    };
    let cursor = LiveCursor::open(source, alerts, "watch", "")?;
    let mut restart = LiveCursor::open(source, alerts, "watch", "-snapshot")?;
    restart.store_position(surveillance.reader())?;
    let mut watch = LiveWatch {
        judged_at_snapshot: surveillance.reader().ordinal(),
        surveillance,
        tape,
        cursor,
        restart,
        store,
        pending_snapshot: None,
        is_snapshot_refused: false,
        source: source.to_owned(),
        adoption,
    };
    let judged = watch.judge_until_end(control, &mut sink);
    // The alerts of before an error stay, and must be as durable as any.
    let LiveWatch {
        surveillance,
        tape,
        mut cursor,
        mut restart,
        store,
        adoption,
        mut is_snapshot_refused,
        ..
    } = watch;
    let last_snapshot = judged.is_ok().then(|| surveillance.take_snapshot(tape.point()));
    let close_result = tape.close();
    judged?;
    let totals = close_result?;
    cursor.store_position(surveillance.reader())?;
    let mut surveillance = surveillance;
    if let Some(last_snapshot) = last_snapshot.filter(|last| surveillance.is_durable(last.source)) {
        let write_result = store.write_snapshot(&last_snapshot);
        if write_result.is_ok() {
            restart.store_point(last_snapshot.source.point())?;
        }
        note_refused(write_result, &mut is_snapshot_refused, control);
    }
    let (blind, source_cut) =
        adoption.map_or((None, None), |adoption| (adoption.blind_range, adoption.source_cut));
    Ok(Some(LiveReport { surveillance, totals, blind, source_cut }))
}

/// The alerts that a watch has taken over, because the source has lost events behind them.
#[derive(Debug)]
struct Adoption {
    adopted: AdoptedAlerts,
    /// The part of the source that retention has removed.
    blind_range: Option<(Position, Position)>,
    /// Where the source was cut back behind an alert.
    source_cut: Option<Position>,
    /// The notes that are not on the alert tape yet.
    pending_notes: Vec<WatchNote>,
}

impl Adoption {
    /// Takes over all alerts, because retention has removed the beginning of the source.
    fn of_blind(source: &Path, surveillance: &Surveillance, tape: &mut AlertTape) -> Result<Self, Error> {
        let adopted = tape.adopt_alerts()?;
        let (from, to) = (Position(0), surveillance.reader().position());
        let mut adoption = Self::new(adopted, source)?;
        adoption.blind_range = Some((from, to));
        adoption.pending_notes.extend(adoption.adopted.blind_note(from, to));
        Ok(adoption)
    }

    /// Takes over the alerts that were not compared, if the source was cut back behind one of them.
    fn of_cut(source: &Path, tape: &mut AlertTape) -> Result<Option<Self>, Error> {
        if tape.is_compared() {
            return Ok(None);
        }
        Ok(Some(Self::new(tape.adopt_alerts()?, source)?).filter(|adoption| adoption.source_cut.is_some()))
    }

    fn new(adopted: AdoptedAlerts, source: &Path) -> Result<Self, Error> {
        let new_cut = adopted.new_cut(source)?;
        let source_cut = new_cut.or(adopted.noted_cut()).map(|cut| cut.position);
        let notes = new_cut.map(WatchNote::source_cut).into_iter().collect();
        Ok(Self { adopted, blind_range: None, source_cut, pending_notes: notes })
    }
}

/// A live watch at work.
struct LiveWatch {
    surveillance: Surveillance,
    tape: AlertTape,
    /// How far the source was judged.
    cursor: LiveCursor,
    /// The last snapshot, where a restart goes on. Retention must not remove the events behind it.
    restart: LiveCursor,
    store: SnapshotStore,
    /// A snapshot that waits until both tapes are durable up to its points.
    pending_snapshot: Option<WatchSnapshot>,
    /// Whether the disk refused the last snapshot.
    is_snapshot_refused: bool,
    /// The ordinal of the source at the last snapshot.
    judged_at_snapshot: u64,
    /// The directory of the source.
    source: PathBuf,
    adoption: Option<Adoption>,
}

impl LiveWatch {
    /// Judges all events of the source, until the watch is stopped or the source is finished.
    fn judge_until_end<E: From<Error>>(
        &mut self,
        control: &LiveControl<'_>,
        sink: &mut impl FnMut(&Alert, bool) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut last_look = Instant::now();
        // Looked at before the tape is drained: all that was committed before the writer ended is judged in this round.
        let mut is_last_round = (control.is_finished)()?;
        let mut frames = 0;
        loop {
            match self.surveillance.step()? {
                SurveilOutcome::Frame(alerts) => {
                    let has_alerts = !alerts.is_empty();
                    if has_alerts {
                        self.write_alerts(sink)?;
                    } else if self
                        .adoption
                        .as_ref()
                        .is_some_and(|adoption| !adoption.pending_notes.is_empty())
                    {
                        self.write_notes()?;
                    }
                    frames += 1;
                    if frames >= FRAMES_A_LOOK.min(control.snapshot_events) {
                        frames = 0;
                        if (control.is_stopped)() {
                            return Ok(());
                        }
                        self.cursor.store_position(self.surveillance.reader())?;
                        self.keep_snapshot(control, control.snapshot_events)?;
                    }
                    continue;
                }
                SurveilOutcome::Rewound { .. } => return Err(self.tape.source_cut().into()),
                SurveilOutcome::AtEnd => {}
            }
            if let Err(error) = self.tape.require_compared() {
                self.adopt_cut(error)?;
                self.write_notes()?;
            }
            if (control.is_stopped)() || is_last_round {
                return Ok(());
            }
            if control.spin && last_look.elapsed() < LOOK {
                std::hint::spin_loop();
                continue;
            }
            last_look = Instant::now();
            self.cursor.store_position(self.surveillance.reader())?;
            self.keep_snapshot(control, control.snapshot_events.div_ceil(32))?;
            is_last_round = (control.is_finished)()?;
            if !is_last_round
                && !control.spin
                && let SurveilOutcome::Rewound { .. } = self.surveillance.wait()?
            {
                return Err(self.tape.source_cut().into());
            }
        }
    }

    /// Writes the alerts of the last event, those excepted that were taken over.
    fn write_alerts<E: From<Error>>(
        &mut self,
        sink: &mut impl FnMut(&Alert, bool) -> Result<(), E>,
    ) -> Result<(), E> {
        self.write_notes()?;
        let is_new = match self.write_others() {
            Ok(is_new) => is_new,
            Err(error) => {
                self.adopt_cut(error)?;
                self.write_notes()?;
                self.write_others()?
            }
        };
        self.surveillance.alerts.iter().try_for_each(|alert| sink(alert, is_new))
    }

    /// Writes the alerts of the last event that were not taken over.
    fn write_others(&mut self) -> Result<bool, Error> {
        if let Some(adoption) = &self.adoption {
            adoption.adopted.remove_written(&mut self.surveillance.alerts);
        }
        self.tape.write_alerts(&self.surveillance.alerts)
    }

    /// Takes over the alerts that the source does not give, if it was cut back behind one of them. Otherwise returns `error`.
    fn adopt_cut(&mut self, error: Error) -> Result<(), Error> {
        match Adoption::of_cut(&self.source, &mut self.tape)? {
            None => Err(error),
            adoption => {
                self.adoption = adoption;
                Ok(())
            }
        }
    }

    /// Puts the notes onto the alert tape, at the time of the last event or, if there is none, of the last alert.
    fn write_notes(&mut self) -> Result<(), Error> {
        let Some(adoption) = &mut self.adoption else { return Ok(()) };
        let ts = self.surveillance.last_ts.unwrap_or(adoption.adopted.last_ts());
        adoption.pending_notes.drain(..).try_for_each(|note| self.tape.write_note(ts, &note))
    }

    /// Makes a snapshot if this many events were judged since the last one, and writes the one that waits once both tapes are
    /// durable.
    fn keep_snapshot(&mut self, control: &LiveControl<'_>, events: u64) -> Result<(), Error> {
        if let Some(pending) = self.pending_snapshot.take_if(|_| self.tape.is_durable()) {
            match self.surveillance.is_durable(pending.source) {
                true => {
                    let write_result = self.store.write_snapshot(&pending);
                    if write_result.is_ok() {
                        self.restart.store_point(pending.source.point())?;
                    }
                    note_refused(write_result, &mut self.is_snapshot_refused, control);
                }
                false => self.pending_snapshot = Some(pending),
            }
        }
        let ordinal = self.surveillance.reader().ordinal();
        if self.pending_snapshot.is_none() && ordinal - self.judged_at_snapshot >= events {
            self.pending_snapshot = Some(self.surveillance.take_snapshot(self.tape.point()));
            self.judged_at_snapshot = ordinal;
        }
        Ok(())
    }
}

/// Says that the disk refused a snapshot, unless it refused the one before as well.
fn note_refused(written: Result<(), Error>, is_refused: &mut bool, control: &LiveControl<'_>) {
    let was_refused = std::mem::replace(is_refused, written.is_err());
    if let (Err(error), false) = (written, was_refused) {
        (control.on_snapshot_refused)(&error);
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

/// A named cursor of a live watch or breaker on its source.
pub(crate) struct LiveCursor {
    cursor: Cursor,
    stored_position: Option<Position>,
}

impl LiveCursor {
    /// Opens the cursor of this name: prefix, `-`, the first 16 digits of the id of the tape that is written, and suffix.
    pub fn open(source: &Path, written: &Path, prefix: &str, suffix: &str) -> Result<Self, Error> {
        let id = unitape_tape::TapeManifest::load(written)?.id.to_string();
        let cursor = Cursor::open(source, &format!("{prefix}-{}{suffix}", &id[..16]))?;
        Ok(Self { cursor, stored_position: None })
    }

    /// Stores how far the reader is, if it has moved.
    pub fn store_position(&mut self, reader: &Reader) -> Result<(), Error> {
        self.store_point(reader.point())
    }

    /// Stores a point, if it is another position.
    pub fn store_point(&mut self, point: LineagePoint) -> Result<(), Error> {
        if self.stored_position != Some(point.position) {
            self.cursor.store_point(point)?;
            self.stored_position = Some(point.position);
        }
        Ok(())
    }
}

/// Frames between two looks whether the watch must end, on a tape that has more.
const FRAMES_A_LOOK: u64 = 1 << 16;
/// The time between two checks whether a process writes the tape.
pub(crate) const LOOK: Duration = Duration::from_millis(200);
/// The time between two looks whether there is a tape.
const APPEARANCE: Duration = Duration::from_millis(20);
