//! Alerts become cases: an alert tape is read from where the database says it was read before.
//!
//! ```text
//!  alert tape   a a a c a a │ a a a a           c: a control `blind`; other kinds are passed over and counted
//!               └─ stored ─┘ └ one transaction: alerts, cases, actions, and the position after them
//!                           ▲
//!                           └ cursor `case-…` of the tape: shows the lag, holds retention
//! ```
//!
//! The position is stored with the rows, so a process that is killed at any moment neither loses nor doubles an alert. The named
//! cursor follows it and decides nothing.
//!
//! An alert is not a case: alerts of one scenario, key and session date join one open case. An alert that was ingested before,
//! from a replay or with other parameters, is counted as seen again: the same source tape, trigger, scenario and key make it the
//! same alert.

mod identity;

use crate::Error;
use crate::model::{ActionKind, alert_identity, group_of, key_json, next_state};
use crate::store::{AlertTapeCursor, CaseStore, CaseWriter, NewAction, NewAlert};
use identity::{check_identity, frame_digest};
use std::path::{Path, PathBuf};
use unitape_codec::events::{EventLineDetail, write_event};
use unitape_model::{
    Calendar, DefinitionTable, Event, EventField, EventKind, EventValue, LostNameCounts, Position,
};
use unitape_run::address::TapeRangeBound;
use unitape_run::follow::{FollowOutcome, TapeFollower};
use unitape_tape::{Cursor, ReadOptions, TapeId, TapeManifest};
use unitape_watch::{Alert, RecordedAlert};

/// What is ingested, and how.
pub struct IngestOptions<'a> {
    /// Directory of the alert tape.
    pub alerts: &'a Path,
    /// Directory of the tape that was watched: its id must be that in the alerts.
    pub source: &'a Path,
    /// Session dates by the venue of an alert; UTC dates for venues that it does not have.
    pub calendar: &'a Calendar,
    /// How the alert tape is read.
    pub read: ReadOptions,
    /// Returns our clock, nanoseconds since 1970.
    pub now: &'a dyn Fn() -> i64,
    /// Returns whether ingest must end at the end of the tape; asked there, and at each batch.
    pub end: &'a dyn Fn() -> IngestEnd,
}

/// When ingest ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IngestEnd {
    /// Ends once all that is on the tape was read.
    AtEnd,
    /// Waits for more at the end of the tape.
    Never,
    /// Ends at once.
    Now,
}

/// An alert that was ingested, and is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct IngestedAlert {
    /// Its number.
    pub number: u64,
    /// Its case.
    pub case: u64,
    /// What it did.
    pub effect: IngestEffect,
    /// The alert.
    pub recorded: RecordedAlert,
}

/// What an alert did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IngestEffect {
    /// It opened a case.
    Opened,
    /// It joined an open case.
    Joined,
    /// It was there already.
    SeenAgain,
}

impl IngestEffect {
    /// Returns the word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Joined => "joined",
            Self::SeenAgain => "seen_again",
        }
    }
}

/// What a call has ingested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestTotals {
    /// Alerts that are new.
    pub alerts: u64,
    /// Cases that they opened.
    pub cases: u64,
    /// Alerts that were there already.
    pub seen_again: u64,
    /// Controls `blind`.
    pub blind: u64,
    /// Events of other kinds.
    pub passed_over: u64,
}

/// The result of a call.
#[derive(Debug)]
pub struct IngestReport {
    /// What was ingested.
    pub totals: IngestTotals,
    /// The follower of the alert tape, which knows the damage that it passed over.
    pub follower: TapeFollower,
    /// The names of the alert tape that are lost.
    pub lost_names: LostNameCounts,
}

/// Ingests an alert tape; `sink` is given what each transaction has stored, once it is durable.
///
/// # Errors
/// Fails if the tape holds no alerts but other events; if the alert tape was made from another tape than the source; if it is another tape of the same id, or was cut back
/// behind what was read; if a tape cannot be read; or if the database cannot be written. What was stored before stays.
pub fn ingest<E: From<Error>>(
    store: &mut CaseStore,
    options: &IngestOptions<'_>,
    mut sink: impl FnMut(&[IngestedAlert]) -> Result<(), E>,
) -> Result<IngestReport, E> {
    let mut ingest = AlertIngest::open(store, options)?;
    let mut totals = IngestTotals::default();
    loop {
        let batch = ingest.take_batch(store, options, &mut totals)?;
        sink(&batch.alerts)?;
        if let Some(failure) = batch.failure {
            return Err(failure.into());
        }
        let ingest_end = (options.end)();
        match (ingest_end, batch.is_last) {
            (IngestEnd::Now, _) | (IngestEnd::AtEnd, true) => break,
            (IngestEnd::Never, true) => ingest.wait_for_alerts()?,
            (_, false) => {}
        }
    }
    let AlertIngest { follower, definitions: names, .. } = ingest;
    Ok(IngestReport { totals, lost_names: names.lost_names(), follower })
}

/// What a transaction has stored.
struct StoredBatch {
    alerts: Vec<IngestedAlert>,
    /// The end of the tape was reached.
    is_last: bool,
    /// Why nothing after it can be read.
    failure: Option<Error>,
}

/// A frame of the alert tape.
struct ReadFrame {
    position: Position,
    /// The position after it.
    end_position: u64,
    digest: [u8; 32],
    /// None for bookkeeping.
    frame_content: Option<FrameContent>,
}

struct AlertIngest {
    tape_dir: PathBuf,
    source: TapeId,
    follower: TapeFollower,
    definitions: DefinitionTable,
    /// The row of the tape in the database.
    row: i64,
    /// Up to where it was read, as the database has it.
    cursor: AlertTapeCursor,
    named_cursor: Cursor,
    now: i64,
    /// The position of the last event that caused alerts, and the numbers of these alerts.
    last_trigger: Option<u64>,
    last_alerts: Vec<u64>,
}

impl AlertIngest {
    fn open(store: &mut CaseStore, options: &IngestOptions<'_>) -> Result<Self, Error> {
        let dir = options.alerts;
        unitape_run::tape_content::require_alert_tape(dir, options.read)?;
        let (mut follower, mut names) = TapeFollower::open(dir, options.read)?;
        let tape = follower.reader().id().to_string();
        let source = TapeManifest::load(options.source)?.id;
        let writer = store.begin_write()?;
        let (row, cursor) = match writer.tape_cursor(&tape)? {
            // Nothing was read of this tape. To look for its alerts would scan all actions.
            Some((row, cursor)) if cursor.position == 0 => (row, cursor),
            Some((row, cursor)) => {
                // The alerts that come are checked one by one; this is for a tape that has no more of them.
                let recorded_source =
                    writer.source_of_alerts(row)?.filter(|candidate| *candidate != source.to_string());
                if let Some(recorded_source) = recorded_source {
                    let source_dir = options.source.display();
                    let reason = format!(
                        "its alerts are of the tape {recorded_source}, and {source_dir} is the tape {source}"
                    );
                    return Err(Error::Ingest { path: dir.to_owned(), reason });
                }
                (row, cursor)
            }
            None => {
                let row = writer.add_tape(&tape, &source.to_string())?;
                (row, AlertTapeCursor { position: 0, last: None, passed_over: 0 })
            }
        };
        let (last_trigger, last_alerts) = match cursor.position {
            0 => (None, Vec::new()),
            _ => writer.last_alerts_of(row)?,
        };
        writer.commit()?;
        check_identity(dir, &cursor, options.read)?;
        if cursor.position > 0 {
            let resume_bound = TapeRangeBound::Position(Position(cursor.position));
            follower.seek(resume_bound, &mut names).map_err(|error| retained_error(dir, error))?;
        } else if follower.reader().position() != Position(0) {
            let reason = "retention has removed its beginning before any alert was read; the cases would lack these alerts";
            return Err(Error::Ingest { path: dir.to_owned(), reason: reason.to_owned() });
        }
        let id: String = store.id()?[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let named_cursor = Cursor::open(dir, &format!("case-{id}"))?;
        Ok(Self {
            tape_dir: dir.to_owned(),
            source,
            follower,
            definitions: names,
            row,
            cursor,
            named_cursor,
            now: 0,
            last_trigger,
            last_alerts,
        })
    }

    /// Stores what one transaction takes, and returns it.
    ///
    /// What comes before damage, or before an alert of another tape, is stored as well; the error is then in the batch.
    fn take_batch(
        &mut self,
        store: &mut CaseStore,
        options: &IngestOptions<'_>,
        totals: &mut IngestTotals,
    ) -> Result<StoredBatch, Error> {
        let mut batch = StoredBatch { alerts: Vec::new(), is_last: true, failure: None };
        let mut cursor = self.cursor.clone();
        let mut counted = *totals;
        self.now = (options.now)();
        let mut writer: Option<CaseWriter<'_>> = None;
        let mut store = Some(store);
        for _ in 0..BATCH_FRAMES {
            let frame = match self.read_frame(options, cursor.position) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    batch.failure = Some(error);
                    break;
                }
            };
            batch.is_last = false;
            if frame.end_position <= cursor.position {
                continue;
            }
            if let Some(content) = frame.frame_content {
                let writer = match &mut writer {
                    Some(writer) => writer,
                    none => {
                        none.insert(self.begin_transaction(store.take().expect("one transaction a batch"))?)
                    }
                };
                self.store_content(writer, content, frame.position, options, &mut counted, &mut batch)?;
            }
            cursor.position = frame.end_position;
            cursor.last = Some((frame.position.0, frame.digest));
            if batch.alerts.len() >= BATCH_ALERTS {
                break;
            }
        }
        if cursor == self.cursor {
            if batch.failure.is_none() {
                self.catch_up()?;
            }
            return Ok(batch);
        }
        cursor.passed_over += counted.passed_over - totals.passed_over;
        let writer = match writer {
            Some(writer) => writer,
            None => self.begin_transaction(store.take().expect("one transaction a batch"))?,
        };
        writer.store_tape_cursor(self.row, &cursor)?;
        writer.commit()?;
        (self.cursor, *totals) = (cursor, counted);
        if batch.failure.is_none() {
            self.named_cursor.store_point(self.follower.reader().point())?;
        }
        Ok(batch)
    }

    /// Moves the named cursor to where the database is, if a process was killed between the two.
    fn catch_up(&mut self) -> Result<(), Error> {
        let point = self.follower.reader().point();
        let is_there = self.cursor.position > 0 && point.position.0 >= self.cursor.position;
        if is_there && self.named_cursor.load_point()? != Some(point) {
            self.named_cursor.store_point(point)?;
        }
        Ok(())
    }

    /// Reads the next frame; none at the end of the tape. `read_to` is where the frames begin that were not read before.
    fn read_frame(&mut self, options: &IngestOptions<'_>, read_to: u64) -> Result<Option<ReadFrame>, Error> {
        let (cut, frame) = match self.follower.next_step()? {
            FollowOutcome::AtEnd => return Ok(None),
            FollowOutcome::Rewound { from, to } => (Some((from, to)), None),
            FollowOutcome::Frame { frame, .. } => (None, Some(frame)),
        };
        if let Some((from, to)) = cut {
            return Err(self.cut_back(from, to));
        }
        let frame = frame.expect("a frame if there was no cut");
        let position = frame.position;
        let event_end = position.0 + frame.bytes.len() as u64;
        let digest = frame_digest(frame.bytes);
        // A seek may begin earlier, at definitions that the log of the tape does not have yet.
        let is_bookkeeping = frame.header.is_meta() || event_end <= read_to;
        let content = match self.definitions.admit_frame(frame.bytes) {
            Ok(Some(event)) if !is_bookkeeping => {
                FrameContent::read_event(&event, &self.definitions).map(Some)
            }
            Ok(_) => Ok(None),
            Err(flaw) => Err(flaw.to_string()),
        };
        let content = match content {
            Ok(content) => content,
            Err(reason) => {
                self.follower.refuse_frame(position, &reason)?;
                None
            }
        };
        if let Some(FrameContent::Alert(recorded)) = &content {
            self.check_source(recorded, position, options.source)?;
        }
        Ok(Some(ReadFrame { position, end_position: event_end, digest, frame_content: content }))
    }

    /// Fails if an alert is of another tape than the source.
    fn check_source(&self, recorded: &RecordedAlert, position: Position, source: &Path) -> Result<(), Error> {
        let source_text = match recorded.source_tape {
            Some(id) if id == self.source.0 => return Ok(()),
            Some(id) => format!("is of the tape {}", TapeId(id)),
            None => "names no tape".to_owned(),
        };
        let reason = format!(
            "the alert at position {position} {source_text}, and {} is the tape {}",
            source.display(),
            self.source
        );
        Err(self.refusal_error(&reason))
    }

    /// Begins a transaction, unless another process has ingested this tape meanwhile.
    fn begin_transaction<'s>(&self, store: &'s mut CaseStore) -> Result<CaseWriter<'s>, Error> {
        let writer = store.begin_write()?;
        let tape = self.follower.reader().id().to_string();
        match writer.tape_cursor(&tape)? {
            Some((_, stored)) if stored == self.cursor => Ok(writer),
            _ => Err(Error::Ingesting { path: self.tape_dir.clone() }),
        }
    }

    fn store_content(
        &mut self,
        writer: &mut CaseWriter<'_>,
        content: FrameContent,
        position: Position,
        options: &IngestOptions<'_>,
        totals: &mut IngestTotals,
        batch: &mut StoredBatch,
    ) -> Result<(), Error> {
        match content {
            FrameContent::Other => totals.passed_over += 1,
            FrameContent::Blind { venue, ts, line } => {
                let date = options.calendar.session_date(&venue, unitape_model::UnixNanos(ts)).to_string();
                totals.blind += 1;
                writer.append_action(&NewAction {
                    text: Some(&line),
                    session_date: Some(&date),
                    tape: Some(self.row),
                    position: Some(position.0),
                    ..NewAction::new(ActionKind::Blind, self.now)
                })?;
            }
            FrameContent::Alert(recorded) => {
                let alert = self.store_alert(writer, *recorded, position, options)?;
                match alert.effect {
                    IngestEffect::Opened => {
                        (totals.alerts, totals.cases) = (totals.alerts + 1, totals.cases + 1)
                    }
                    IngestEffect::Joined => totals.alerts += 1,
                    IngestEffect::SeenAgain => totals.seen_again += 1,
                }
                batch.alerts.push(alert);
            }
        }
        Ok(())
    }

    /// Returns the identity of the next alert. One event can cause several alerts with one scenario and one key; they
    /// differ by their order.
    fn next_identity(&mut self, writer: &CaseWriter<'_>, alert: &Alert) -> Result<[u8; 32], Error> {
        let trigger = alert.position.map(|position| position.0);
        if trigger.is_none() || trigger != self.last_trigger {
            self.last_alerts.clear();
        }
        self.last_trigger = trigger;
        let mut occurrence = 0;
        loop {
            let identity = alert_identity(self.source.0, alert, occurrence);
            match writer.find_alert(&identity)? {
                Some((number, _)) if self.last_alerts.contains(&number) => occurrence += 1,
                _ => return Ok(identity),
            }
        }
    }

    fn store_alert(
        &mut self,
        writer: &mut CaseWriter<'_>,
        recorded: RecordedAlert,
        position: Position,
        options: &IngestOptions<'_>,
    ) -> Result<IngestedAlert, Error> {
        let alert = &recorded.alert;
        let identity = self.next_identity(writer, alert)?;
        let action = NewAction {
            tape: Some(self.row),
            position: Some(position.0),
            ..NewAction::new(ActionKind::Alert, self.now)
        };
        if let Some((number, case)) = writer.find_alert(&identity)? {
            self.last_alerts.push(number);
            let state = writer.count_again(number, case, self.now)?;
            let rules = rules_json(&recorded);
            writer.append_action(&NewAction {
                kind: ActionKind::SeenAgain,
                case: Some(case),
                state: Some(state),
                alert: Some(number),
                text: Some(&rules),
                ..action
            })?;
            return Ok(IngestedAlert { number, case, effect: IngestEffect::SeenAgain, recorded });
        }
        let venue = alert.key_value("venue").unwrap_or_default();
        let date = options.calendar.session_date(venue, alert.ts).to_string();
        let (group, key) = (group_of(alert, &date), key_json(alert));
        let open_case = writer.open_case(&group)?;
        let (case, before, effect) = match open_case {
            Some((case, state)) => (case, state, IngestEffect::Joined),
            None => {
                let case = writer.open(&recorded, &key, &date, &group, self.now)?;
                (case, crate::CaseState::New, IngestEffect::Opened)
            }
        };
        // A damaged index may name a closed case as open.
        let state = next_state(before, ActionKind::Alert).ok_or_else(|| {
            writer.damaged(format!("case {case} is {before}, and the index of open cases has it"))
        })?;
        let source = self.source.to_string();
        let (tape, position) = (self.row, position.0);
        let new =
            NewAlert { case, identity, source: &source, recorded: &recorded, key: &key, tape, position };
        let (number, digest) = writer.add_alert(&new, state, self.now)?;
        self.last_alerts.push(number);
        writer.append_action(&NewAction {
            case: Some(case),
            state: Some(state),
            alert: Some(number),
            alert_digest: Some(digest),
            session_date: Some(&date),
            ..action
        })?;
        Ok(IngestedAlert { number, case, effect, recorded })
    }

    fn wait_for_alerts(&mut self) -> Result<(), Error> {
        match self.follower.wait()? {
            FollowOutcome::Rewound { from, to } => Err(self.cut_back(from, to)),
            _ => Ok(()),
        }
    }

    fn cut_back(&self, from: Position, to: Position) -> Error {
        if to.0 >= self.cursor.position {
            let reason = format!(
                "it was cut back from position {from} to {to} while it was read; run the command again"
            );
            return self.refusal_error(&reason);
        }
        identity::cut_back(&self.tape_dir, self.cursor.position)
    }

    fn refusal_error(&self, reason: &str) -> Error {
        Error::Ingest { path: self.tape_dir.clone(), reason: reason.to_owned() }
    }
}

/// What ingest makes of an event.
enum FrameContent {
    Alert(Box<RecordedAlert>),
    Blind { venue: String, ts: i64, line: String },
    Other,
}

impl FrameContent {
    /// Reads an event; fails if it is an alert that cannot be read.
    fn read_event(event: &Event<'_>, names: &DefinitionTable) -> Result<Self, String> {
        match event.kind() {
            EventKind::Alert => match RecordedAlert::read(event, names.dictionary()) {
                Some(recorded) => Ok(Self::Alert(Box::new(recorded))),
                None => Err("an alert without a scenario".to_owned()),
            },
            EventKind::Control if is_blind(event) => {
                let mut line = Vec::new();
                write_event(&mut line, event, 0, names.dictionary(), names, EventLineDetail::Plain);
                let venue = match event.field(EventField::Venue, &mut [0; 36]) {
                    Some(EventValue::Sym(dict, id)) => {
                        names.dictionary().name(dict, id).unwrap_or_default().to_owned()
                    }
                    _ => String::new(),
                };
                Ok(Self::Blind {
                    venue,
                    ts: event.ts_event().0,
                    line: String::from_utf8_lossy(&line).into_owned(),
                })
            }
            _ => Ok(Self::Other),
        }
    }
}

fn is_blind(event: &Event<'_>) -> bool {
    matches!(event.field(EventField::Action, &mut [0; 36]), Some(EventValue::Text("blind")))
}

/// Returns the rules under which an alert was raised again.
fn rules_json(recorded: &RecordedAlert) -> String {
    let RecordedAlert { rule_version, params_hash, .. } = recorded;
    serde_json::json!({ "rule_version": rule_version, "params_hash": params_hash }).to_string()
}

fn retained_error(dir: &Path, error: unitape_tape::Error) -> Error {
    match error {
        unitape_tape::Error::Retained { position, oldest } => {
            let reason = format!(
                "retention has removed alerts that were not read: it was read to position {position}, and now begins at {oldest}; \
                 set hold_for_cursors where the tape has limits"
            );
            Error::Ingest { path: dir.to_owned(), reason }
        }
        other => other.into(),
    }
}

/// The most frames and alerts of a transaction.
const BATCH_FRAMES: usize = 1 << 14;
const BATCH_ALERTS: usize = 256;
