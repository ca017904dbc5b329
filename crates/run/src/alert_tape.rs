//! The alerts of a watch as `alert` events on a tape of their own.
//!
//! ```text
//!  source   ■ ■ ■ ■ ■ ■ ■        the alerts that one event completes are one unit:
//!               │     │          names, alert, alert …
//!  alerts       a     a a        source_tape, trigger_seq, trigger_position, rule_version, params_hash, key, detail
//! ```
//!
//! The id of the tape comes from the id of the source and the rules of the watch: the version of the engine, and of each
//! scenario its definition and its parameters, and the calendar. So a watch never continues the alerts of other rules.

use crate::Error;
use crate::derived_tape::{DerivedContent, DerivedPoint, DerivedTape, DerivedTotals, derived_id};
use std::collections::BTreeSet;
use std::path::Path;
use unitape_model::{EventField, EventKind, EventValue, NameKind, Position, Refusal, UnixNanos};
use unitape_query::follow::{FollowOutcome, TapeFollower};
use unitape_tape::{ReadOptions, TapeId};
use unitape_watch::{Alert, ENGINE_VERSION, RecordedAlert, ScenarioRules, ScenarioSelection, WatchRules};

/// A tape of alerts that is being written.
#[derive(Debug)]
pub struct AlertTape {
    tape: DerivedTape,
    id: TapeId,
    source: TapeId,
    rules: Vec<ScenarioRules>,
}

/// What an alert tape has from earlier watches.
#[derive(Debug, Default)]
pub struct AdoptedAlerts {
    /// Its alerts: position of the event, scenario, and key as JSON.
    alerts: BTreeSet<(Option<Position>, String, Vec<u8>)>,
    /// The detail of the last control `blind`.
    pub blind: Option<String>,
}

impl AdoptedAlerts {
    /// Returns whether the tape has this alert already.
    pub fn has(&self, alert: &Alert) -> bool {
        let mut key = Vec::new();
        alert.write_key(&mut key);
        self.alerts.contains(&(alert.position, alert.scenario.to_string(), key))
    }
}

impl AlertTape {
    /// Makes or continues the tape in `dir` with the alerts of the tape `source` under the rules of `selection`.
    ///
    /// # Errors
    /// Fails if the directory has another tape, alerts of another source, or alerts of other rules; if another process
    /// writes it; or if it cannot be read or written.
    pub fn open(
        dir: &Path,
        source: TapeId,
        selection: &ScenarioSelection,
        read: ReadOptions,
    ) -> Result<Self, Error> {
        let rules = selection.rules()?;
        let id = alert_tape_id(source, &rules);
        Ok(Self { tape: DerivedTape::open(dir, id, CONTENT, read)?, id, source, rules: rules.scenarios })
    }

    /// Puts the alerts of one event onto the tape as one unit, or compares them with the unit that is there. Returns
    /// whether they were appended.
    ///
    /// # Errors
    /// Fails if the tape has other alerts there, or cannot be read or written.
    pub fn write_alerts(&mut self, alerts: &[Alert]) -> Result<bool, Error> {
        for alert in alerts {
            self.write_alert(alert)?;
        }
        self.tape.commit()
    }

    /// Fails if the tape has alerts that the source, which is at its end, does not give.
    ///
    /// # Errors
    /// Fails if the tape has such alerts or cannot be read.
    pub fn require_compared(&mut self) -> Result<(), Error> {
        self.tape.require_compared()
    }

    /// Goes on after a point, as [`DerivedTape::skip_to`] does.
    ///
    /// # Errors
    /// Fails if the tape cannot be read.
    pub fn skip_to(&mut self, point: DerivedPoint) -> Result<bool, Error> {
        self.tape.skip_to(point)
    }

    /// Returns the point after the last unit.
    pub fn point(&self) -> DerivedPoint {
        self.tape.point()
    }

    /// Returns whether all alerts are durable.
    pub fn is_durable(&self) -> bool {
        self.tape.is_durable()
    }

    /// Returns the id of the tape.
    pub fn id(&self) -> TapeId {
        self.id
    }

    /// Takes the alerts that are on the tape as they are, because the source has lost the events behind them.
    ///
    /// # Errors
    /// Fails if the tape cannot be read.
    pub fn adopt(&mut self) -> Result<AdoptedAlerts, Error> {
        let mut adopted = AdoptedAlerts::default();
        self.tape.adopt_written(|event, names| {
            let text = |field| match event.field(field, &mut [0; 36]) {
                Some(EventValue::Json(json)) => Some(json.to_owned()),
                _ => None,
            };
            if let Some(recorded) = RecordedAlert::read(event, names.dictionary()) {
                let alert = recorded.alert;
                let mut key = Vec::new();
                alert.write_key(&mut key);
                adopted.alerts.insert((alert.position, alert.scenario.to_string(), key));
            } else if let Some(detail) = text(EventField::Detail) {
                adopted.blind = Some(detail);
            }
        })?;
        Ok(adopted)
    }

    /// Notes that the watch has not seen a part of the source, which retention has removed.
    ///
    /// # Errors
    /// Fails if the tape cannot be written.
    pub fn write_blind(&mut self, ts: UnixNanos, detail: &str) -> Result<(), Error> {
        let write = |tape: &mut DerivedTape| -> Result<(), Refusal> {
            let mut event = tape.begin(EventKind::Control, ts);
            event.set_field(EventField::Action, EventValue::Text("blind"))?;
            event.set_field(EventField::Reason, EventValue::Text("retention"))?;
            event.set_field(EventField::Detail, EventValue::Json(detail))?;
            event.finish(0).map(drop)
        };
        write(&mut self.tape).map_err(|refusal| Error::OtherTape {
            path: self.tape.dir().to_owned(),
            reason: format!("the note of a lost part cannot be written: {refusal}"),
        })?;
        self.tape.commit().map(drop)
    }

    /// Returns the counts so far.
    pub fn totals(&self) -> DerivedTotals {
        self.tape.totals()
    }

    /// Returns the error of a source that was cut back while it was watched.
    pub fn source_cut(&self) -> Error {
        self.tape.input_cut()
    }

    /// Makes the tape durable, and returns the counts.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn close(self) -> Result<DerivedTotals, Error> {
        self.tape.close()
    }

    fn write_alert(&mut self, alert: &Alert) -> Result<(), Error> {
        let scenario = self.tape.id_of(NameKind::Name, &alert.scenario)?;
        let mut names = Vec::new();
        for (field, key, dict) in KEY_FIELDS {
            if let Some(name) = alert.key_value(key).filter(|name| is_name(name)) {
                names.push((field, EventValue::Sym(dict, self.tape.id_of(dict, name)?)));
            }
        }
        let mut key = Vec::new();
        alert.write_key(&mut key);
        let key = String::from_utf8(key).expect("JSON is text");
        let detail = alert.detail.to_string();
        let rules = self.rules.iter().find(|rules| rules.id == alert.scenario);
        let write = |tape: &mut DerivedTape, detail: &str| -> Result<(), Refusal> {
            let mut event = tape.begin(EventKind::Alert, alert.ts);
            event.set_field(EventField::Scenario, EventValue::Sym(NameKind::Name, scenario))?;
            event.set_field(EventField::TriggerSeq, EventValue::UInt(alert.trigger_seq))?;
            if let Some(position) = alert.position {
                event.set_field(EventField::TriggerPosition, EventValue::UInt(position.0))?;
            }
            event.set_field(EventField::SourceTape, EventValue::Tape(self.source.0))?;
            if let Some(rules) = rules {
                event.set_field(EventField::RuleVersion, EventValue::Text(&rules.version))?;
                event.set_field(EventField::ParamsHash, EventValue::Text(&rules.params_hash))?;
            }
            for (field, name) in &names {
                event.set_field(*field, *name)?;
            }
            event.set_field(EventField::Key, EventValue::Json(&key))?;
            event.set_field(EventField::Detail, EventValue::Json(detail))?;
            event.finish(0).map(drop)
        };
        match write(&mut self.tape, &detail) {
            // Ids of orders and matches have the feed's length.
            Err(Refusal::TooLarge) => {
                let short = format!("{{\"left_out\":\"a detail of {} bytes\"}}", detail.len());
                self.tape.retry();
                write(&mut self.tape, &short)
            }
            outcome => outcome,
        }
        .map_err(|refusal| Error::OtherTape {
            path: self.tape.dir().to_owned(),
            reason: format!("the alert of event {} cannot be written: {refusal}", alert.trigger_seq),
        })
    }
}

/// Reads the alerts of the tape in `dir`, in its order.
///
/// # Errors
/// Fails if the tape is damaged or cannot be read.
pub fn read_alerts(dir: &Path, read: ReadOptions) -> Result<Vec<RecordedAlert>, Error> {
    let (mut follower, mut names) = TapeFollower::open(dir, read)?;
    let mut alerts = Vec::new();
    loop {
        let frame = match follower.step()? {
            FollowOutcome::Frame { frame, .. } => frame,
            FollowOutcome::AtEnd => return Ok(alerts),
            FollowOutcome::Rewound { from, to } => {
                return Err(unitape_tape::Error::Rewound { from, to }.into());
            }
        };
        let position = frame.position;
        match names.admit_frame(frame.bytes) {
            Ok(event) => {
                alerts.extend(event.and_then(|event| RecordedAlert::read(&event, names.dictionary())));
            }
            Err(flaw) => follower.refuse(position, &flaw)?,
        }
    }
}

/// Returns the id of the tape with the alerts of `source` under these rules.
pub fn alert_tape_id(source: TapeId, rules: &WatchRules) -> TapeId {
    let mut text = format!("engine {ENGINE_VERSION}\n");
    for ScenarioRules { id, version, params_hash } in &rules.scenarios {
        text += &format!("{id} {version} {params_hash}\n");
    }
    if let Some(hash) = &rules.calendar_hash {
        text += &format!("calendar {hash}\n");
    }
    derived_id("alerts", source, text.as_bytes())
}

/// Returns whether a dictionary takes this text as a name.
fn is_name(text: &str) -> bool {
    (1..=255).contains(&text.len())
}

/// The names of a key that have a field of their own.
const KEY_FIELDS: [(EventField, &str, NameKind); 3] = [
    (EventField::Owner, "owner", NameKind::Owner),
    (EventField::Venue, "venue", NameKind::Venue),
    (EventField::Instr, "instr", NameKind::Instrument),
];

const CONTENT: DerivedContent = DerivedContent { noun: "alerts", rules: "scenarios, parameters or calendar" };
