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
use crate::alert_reader::{AlertReader, AlertTapeContent, BLIND, SOURCE_CUT};
use crate::derived_tape::{DerivedContent, DerivedPoint, DerivedTape, DerivedTotals, derived_id};
use std::collections::BTreeMap;
use std::path::Path;
use unitape_model::{Event, EventField, EventKind, EventValue, NameKind, Position, Refusal, UnixNanos};
use unitape_tape::{LineagePoint, ReadOptions, Reader, TapeId};
use unitape_watch::{Alert, ENGINE_VERSION, RecordedAlert, ScenarioRules, ScenarioSelection, WatchRules};

/// A tape of alerts that is being written.
#[derive(Debug)]
pub struct AlertTape {
    tape: DerivedTape,
    id: TapeId,
    source: TapeId,
    scenario_rules: Vec<ScenarioRules>,
}

/// The alerts that an alert tape has from earlier watches, whose source may not give them any more.
#[derive(Debug, Default)]
pub struct AdoptedAlerts {
    /// The number of alerts with one identity: one event can cause several.
    alerts: BTreeMap<AlertIdentity, u32>,
    /// The detail of the last control `blind`.
    blind_detail: Option<String>,
    /// The last cut of the source that has a control `source_cut`.
    noted_cut: Option<LineagePoint>,
    /// The last event of the source that caused an alert after that control.
    last_cause: Option<Position>,
    /// The time of the last alert.
    last_ts: UnixNanos,
}

/// A remark of a watch about its source, which becomes a `control` on the alert tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchNote {
    /// The action: `blind` or `source_cut`.
    pub action: &'static str,
    /// The reason.
    pub reason: &'static str,
    /// The part of the source, as a JSON object.
    pub detail: String,
}

impl AdoptedAlerts {
    /// Removes the alerts that the tape has from the alerts of one event.
    pub fn remove_written(&self, alerts: &mut Vec<Alert>) {
        let mut counts: BTreeMap<AlertIdentity, u32> = BTreeMap::new();
        alerts.retain(|alert| {
            let key = identity_of(alert);
            let written_count = self.alerts.get(&key).copied().unwrap_or(0);
            let count = counts.entry(key).or_default();
            *count += 1;
            *count > written_count
        });
    }

    /// Returns the time of the last alert.
    pub fn last_ts(&self) -> UnixNanos {
        self.last_ts
    }

    /// Returns the note that retention has removed the events between two positions, unless the tape has it.
    pub fn blind_note(&self, from: Position, to: Position) -> Option<WatchNote> {
        let detail = format!("{{\"from\":{},\"to\":{}}}", from.0, to.0);
        let is_noted = self.blind_detail.as_ref() == Some(&detail);
        (!is_noted).then_some(WatchNote { action: BLIND, reason: "retention", detail })
    }

    /// Returns the last cut of the source that has a note.
    pub fn noted_cut(&self) -> Option<LineagePoint> {
        self.noted_cut
    }

    /// Returns the cut of the source in `dir` behind an alert that has no note yet.
    ///
    /// # Errors
    /// Fails if the source cannot be read.
    pub fn new_cut(&self, dir: &Path) -> Result<Option<LineagePoint>, Error> {
        let Some(position) = self.last_cause else { return Ok(None) };
        let epoch = self.noted_cut.map_or(0, |cut| cut.epoch);
        Ok(Reader::cut_before(dir, LineagePoint { epoch, position: position.plus(1) })?)
    }

    fn add_control(&mut self, event: &Event<'_>) {
        let mut buffer = [0; 36];
        let is_cut = match event.field(EventField::Action, &mut buffer) {
            Some(EventValue::Text(BLIND)) => false,
            Some(EventValue::Text(SOURCE_CUT)) => true,
            _ => return,
        };
        let Some(EventValue::Json(detail)) = event.field(EventField::Detail, &mut buffer) else { return };
        if is_cut {
            let detail: serde_json::Value = serde_json::from_str(detail).unwrap_or_default();
            let number = |name| detail[name].as_u64().unwrap_or(0);
            self.noted_cut = Some(LineagePoint { epoch: number("epoch"), position: Position(number("to")) });
            self.last_cause = None;
        } else {
            self.blind_detail = Some(detail.to_owned());
        }
    }
}

impl WatchNote {
    /// Makes the note that the source was cut back behind an alert.
    pub fn source_cut(cut: LineagePoint) -> Self {
        let detail = format!("{{\"to\":{},\"epoch\":{}}}", cut.position.0, cut.epoch);
        Self { action: SOURCE_CUT, reason: "the tape was cut back behind an alert", detail }
    }
}

/// The fields that make two alerts the same: position of the event, time, scenario, and key as JSON.
type AlertIdentity = (Option<Position>, i64, String, Vec<u8>);

fn identity_of(alert: &Alert) -> AlertIdentity {
    let mut key = Vec::new();
    alert.write_key(&mut key);
    (alert.position, alert.ts.0, alert.scenario.to_string(), key)
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
        Ok(Self {
            tape: DerivedTape::open(dir, id, CONTENT, read)?,
            id,
            source,
            scenario_rules: rules.scenarios,
        })
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

    /// Takes the alerts that were not compared as they are, because the source has lost the events behind them.
    ///
    /// # Errors
    /// Fails if the tape cannot be read.
    pub fn adopt_alerts(&mut self) -> Result<AdoptedAlerts, Error> {
        let mut adopted = AdoptedAlerts::default();
        self.tape.adopt_written(|event, names| {
            let Some(recorded) = RecordedAlert::read(event, names.dictionary()) else {
                return adopted.add_control(event);
            };
            let alert = &recorded.alert;
            adopted.last_cause = adopted.last_cause.max(alert.position);
            adopted.last_ts = alert.ts;
            *adopted.alerts.entry(identity_of(alert)).or_default() += 1;
        })?;
        Ok(adopted)
    }

    /// Returns whether all alerts of before have been compared or taken over.
    pub fn is_compared(&self) -> bool {
        self.tape.is_compared()
    }

    /// Puts a note onto the tape as a control.
    ///
    /// # Errors
    /// Fails if the tape cannot be written.
    pub fn write_note(&mut self, ts: UnixNanos, note: &WatchNote) -> Result<(), Error> {
        let write = |tape: &mut DerivedTape| -> Result<(), Refusal> {
            let mut event = tape.begin_event(EventKind::Control, ts);
            event.set_field(EventField::Action, EventValue::Text(note.action))?;
            event.set_field(EventField::Reason, EventValue::Text(note.reason))?;
            event.set_field(EventField::Detail, EventValue::Json(&note.detail))?;
            event.finish(0).map(drop)
        };
        write(&mut self.tape).map_err(|refusal| Error::OtherTape {
            path: self.tape.dir().to_owned(),
            reason: format!("the control `{}` cannot be written: {refusal}", note.action),
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
        let mut field_names = Vec::new();
        for (field, key, dict) in KEY_FIELDS {
            if let Some(name) = alert.key_value(key).filter(|name| is_name(name)) {
                field_names.push((field, EventValue::Sym(dict, self.tape.id_of(dict, name)?)));
            }
        }
        let mut key = Vec::new();
        alert.write_key(&mut key);
        let key = String::from_utf8(key).expect("JSON is text");
        let detail = alert.detail.to_string();
        let rules = self.scenario_rules.iter().find(|rules| rules.id == alert.scenario);
        let write = |tape: &mut DerivedTape, detail: &str| -> Result<(), Refusal> {
            let mut event = tape.begin_event(EventKind::Alert, alert.ts);
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
            for (field, name) in &field_names {
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
    let mut reader = AlertReader::open(dir, read)?;
    let mut alerts = Vec::new();
    while let Some(record) = reader.next_record()? {
        if let AlertTapeContent::Alert(recorded) = record.content {
            alerts.push(recorded);
        }
    }
    Ok(alerts)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// One event can complete two alerts with one key. A tape that has one of them lacks the other.
    #[test]
    fn an_adopted_alert_hides_one_alert_and_not_its_twin() {
        let key = vec![("acct".into(), "A".to_owned())];
        let (scenario, ts) = ("payments_passthrough".into(), UnixNanos(5));
        let position = Some(Position(64));
        let detail = serde_json::Value::Null;
        let alert = Alert { scenario, ts, trigger_seq: 7, position, key, detail };
        let mut adopted = AdoptedAlerts::default();
        adopted.alerts.insert(identity_of(&alert), 1);
        let mut alerts = vec![alert.clone(), alert];
        adopted.remove_written(&mut alerts);
        assert_eq!(alerts.len(), 1);
        adopted.remove_written(&mut alerts);
        assert!(alerts.is_empty());
    }
}
