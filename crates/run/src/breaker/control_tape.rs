//! The control tape: trips, warnings, and persons' acts on them.

use crate::Error;
use crate::derived_tape::derived_id;
use crate::tape_content::require_control_tape;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use unitape_model::{
    DefinitionTable, EventBuilder, EventField, EventKind, EventValue, FrameHeader, InlineId, NameKind,
    Refusal, TapePosition, UnixNanos, flags,
};
use unitape_query::follow::{FollowOutcome, TapeFollower};
use unitape_tape::{ReadOptions, SyncPolicy, TapeId, TapeManifest, Writer, WriterOptions};
use unitape_watch::breakers::{BreakerSignal, ControlVerb, RecordedControl, Scope};

/// The writer of a control tape, and the records that it had before.
pub struct ControlTape {
    tape_dir: PathBuf,
    writer: Writer,
    definitions: DefinitionTable,
    records: Vec<RecordedControl>,
    appended_controls: u64,
}

impl ControlTape {
    /// Makes or continues the control tape of `source` in `dir`.
    ///
    /// # Errors
    /// Fails if another process writes the tape, if it is another tape or has another source, or if it cannot be read
    /// or written.
    pub fn open(dir: &Path, source: TapeId, read: ReadOptions) -> Result<Self, Error> {
        let id = control_tape_id(source);
        require_id(dir, id, read)?;
        let sync = SyncPolicy::Every { bytes: 1, interval: Duration::from_millis(100) };
        let options = WriterOptions { sync_policy: sync, ..WriterOptions::default() };
        let (writer, _) = Writer::open(dir, id, options).map_err(|error| match error {
            unitape_tape::Error::Locked { holder, .. } => {
                Error::ControlsHeld { path: dir.to_owned(), holder }
            }
            error => error.into(),
        })?;
        let (names, records) = read_all(dir, read)?;
        Ok(Self { tape_dir: dir.to_owned(), writer, definitions: names, records, appended_controls: 0 })
    }

    /// Returns the controls that were there when the tape was opened, in its order.
    pub fn records(&self) -> &[RecordedControl] {
        &self.records
    }

    /// Returns the number of controls that were appended.
    pub fn appended(&self) -> u64 {
        self.appended_controls
    }

    /// Appends controls as one unit.
    ///
    /// # Errors
    /// Fails if a control cannot be an event, or if the tape cannot be written.
    pub fn append_controls(&mut self, records: &[RecordedControl]) -> Result<(), Error> {
        let (mut unit, mut last) = (Vec::new(), 0);
        for record in records {
            let mut field_names = Vec::new();
            let mut id_of = |field, dict: NameKind, name: &str, unit: &mut Vec<u8>| -> Result<(), Refusal> {
                let (id, is_new) = self.definitions.dictionary_mut().intern(dict, name.as_bytes())?;
                if is_new {
                    EventBuilder::define(unit, dict, id, name)?;
                }
                field_names.push((field, EventValue::Sym(dict, id)));
                Ok(())
            };
            let Scope { kind, name } = &record.scope;
            let name_id = id_of(kind.field(), kind.dict(), name, &mut unit)
                .and_then(|()| {
                    let persons =
                        [(EventField::By, &record.user), (EventField::SecondBy, &record.second_user)];
                    persons.into_iter().try_for_each(|(field, user)| match user {
                        Some(user) => id_of(field, NameKind::Name, user, &mut unit),
                        None => Ok(()),
                    })
                })
                .and_then(|()| {
                    last = unit.len();
                    write_control(record, &field_names, &mut unit)
                });
            name_id.map_err(|refusal| Error::OtherTape {
                path: self.tape_dir.clone(),
                reason: format!("the control `{}` cannot be written: {refusal}", record.id),
            })?;
        }
        let header = FrameHeader::read(&unit[last..]);
        header.with_flags(header.flags() | flags::LAST).write(&mut unit[last..]);
        self.writer.append(&unit)?;
        self.appended_controls += records.len() as u64;
        Ok(())
    }

    /// Makes the tape durable.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn close(self) -> Result<(), Error> {
        Ok(self.writer.close()?)
    }

    /// Returns the error of a source that was cut back while it was read.
    pub fn source_cut(&self) -> Error {
        let reason = "the watched tape was cut back while it was read; run the command again";
        Error::OtherTape { path: self.tape_dir.clone(), reason: reason.to_owned() }
    }

    /// Returns the error of a source that ends before the cause of a control.
    pub fn cause_missing(&self) -> Error {
        cause_missing(&self.tape_dir)
    }
}

/// Returns the error of the control tape in `dir` if its source ends before the cause of a control.
pub fn cause_missing(dir: &Path) -> Error {
    let reason = "it has controls whose cause the watched tape does not have: that tape was cut; name another directory";
    Error::OtherTape { path: dir.to_owned(), reason: reason.to_owned() }
}

fn write_control(
    record: &RecordedControl,
    names: &[(EventField, EventValue<'_>)],
    unit: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let mut event = EventBuilder::begin(unit, EventKind::Control, record.ts);
    event.set_field(EventField::Action, EventValue::Text(record.verb.name()))?;
    event.set_field(EventField::Id, EventValue::Id(InlineId::Text(record.id.as_bytes())))?;
    event.set_field(EventField::ScopeKind, EventValue::Text(record.scope.kind.name()))?;
    event.set_field(EventField::Cause, EventValue::TapePosition(record.cause))?;
    for (field, name) in names {
        event.set_field(*field, *name)?;
    }
    if let Some(reason) = &record.reason {
        event.set_field(EventField::Reason, EventValue::Text(reason))?;
    }
    if let Some(detail) = &record.detail {
        event.set_field(EventField::Detail, EventValue::Json(detail))?;
    }
    if let Some(trip_end) = record.until {
        event.set_field(EventField::Until, EventValue::Nanos(trip_end))?;
    }
    if record.dry_run {
        event.set_field(EventField::DryRun, EventValue::Bool(true))?;
    }
    event.finish(0).map(drop)
}

/// Makes the record of a limit's signal.
pub(super) fn record_of(signal: &BreakerSignal, source: TapeId) -> RecordedControl {
    let detail = serde_json::json!({ "limit": signal.limit, "used": signal.used, "max": signal.max });
    RecordedControl {
        id: signal.id.clone(),
        verb: signal.verb,
        scope: signal.scope.clone(),
        ts: signal.ts,
        cause: TapePosition { tape: source.0, position: signal.cause },
        reason: Some(signal.reason.to_owned()),
        detail: Some(detail.to_string()),
        user: None,
        second_user: None,
        until: signal.until,
        dry_run: signal.dry_run,
    }
}

/// Returns the id of the control tape of a source. Rules do not change the id: a trip stays in force when the rules
/// change.
pub(crate) fn control_tape_id(source: TapeId) -> TapeId {
    derived_id("controls", source, b"")
}

fn require_id(dir: &Path, id: TapeId, read: ReadOptions) -> Result<(), Error> {
    match TapeManifest::load(dir) {
        Ok(manifest) if manifest.id != id => {
            // The message for a tape of another kind.
            require_control_tape(dir, read)?;
            Err(Error::OtherTape {
                path: dir.to_owned(),
                reason: "it is not the control tape of this tape; name another directory".to_owned(),
            })
        }
        Ok(_) | Err(unitape_tape::Error::NotATape { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Fails if the tape in `dir` is not the control tape of `source`.
///
/// # Errors
/// Fails if it is another tape or cannot be read.
pub fn require_controls_of(dir: &Path, source: TapeId, read: ReadOptions) -> Result<(), Error> {
    require_id(dir, control_tape_id(source), read)
}

/// Reads the controls of the tape in `dir`, in its order.
///
/// # Errors
/// Fails if there is no tape, if it holds something else, or if it is damaged or cannot be read.
pub fn read_controls(dir: &Path, read: ReadOptions) -> Result<Vec<RecordedControl>, Error> {
    require_control_tape(dir, read)?;
    Ok(read_all(dir, read)?.1)
}

fn read_all(dir: &Path, read: ReadOptions) -> Result<(DefinitionTable, Vec<RecordedControl>), Error> {
    let (mut follower, mut names) = TapeFollower::open(dir, read)?;
    let mut records = Vec::new();
    loop {
        let frame = match follower.next_step()? {
            FollowOutcome::Frame { frame, .. } => frame,
            FollowOutcome::AtEnd => return Ok((names, records)),
            FollowOutcome::Rewound { from, to } => {
                return Err(unitape_tape::Error::Rewound { from, to }.into());
            }
        };
        let position = frame.position;
        match names.admit_frame(frame.bytes) {
            Ok(event) => {
                records.extend(event.and_then(|event| RecordedControl::read(&event, names.dictionary())));
            }
            Err(flaw) => follower.refuse_frame(position, &flaw)?,
        }
    }
}

/// Returns the trips that are in force after these controls, by scope, with rehearsals beside trips. Trips with `until`
/// are included. If `now` is the time of the watched tape, expired trips are left out.
pub fn controls_in_force(records: &[RecordedControl], now: Option<UnixNanos>) -> Vec<RecordedControl> {
    let mut ordered: Vec<&RecordedControl> = records.iter().collect();
    // A person's act came before the event at that place.
    ordered.sort_by_key(|record| (record.cause.position, record.user.is_none()));
    let mut active = BTreeMap::<(&Scope, bool), &RecordedControl>::new();
    for record in ordered {
        match record.verb {
            ControlVerb::Trip(action) => {
                let previous_trip = active.get(&(&record.scope, record.dry_run));
                let is_weaker = previous_trip.is_some_and(|previous| {
                    let is_over = previous.until.is_some_and(|until| until <= record.ts);
                    let is_shorter =
                        previous.until.is_some_and(|end| record.until.is_none_or(|until| until > end));
                    match previous.verb {
                        ControlVerb::Trip(before) if before == action => !is_over && !is_shorter,
                        ControlVerb::Trip(before) => before > action && !is_over,
                        _ => false,
                    }
                });
                if !is_weaker {
                    active.insert((&record.scope, record.dry_run), record);
                }
            }
            ControlVerb::Resume => {
                active.retain(|(scope, _), _| *scope != &record.scope);
            }
            ControlVerb::Warn => {}
        }
    }
    let is_over =
        |record: &RecordedControl| record.until.is_some_and(|until| now.is_some_and(|now| until <= now));
    active.into_values().filter(|record| !is_over(record)).cloned().collect()
}
