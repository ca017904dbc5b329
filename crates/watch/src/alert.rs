//! The alert of a scenario.

use serde_json::Value;
use std::borrow::Cow;
use std::io::Write as _;
use unitape_model::{Dictionary, Event, EventField, EventKind, EventValue, Position, UnixNanos};

/// An alert: these events, taken together, are worth a look.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    /// The scenario.
    pub scenario: Cow<'static, str>,
    /// Event time of the event that completed it.
    pub ts: UnixNanos,
    /// Ordinal of that event.
    pub trigger_seq: u64,
    /// Position of that event, if it is on a tape.
    pub position: Option<Position>,
    /// Its parties and instruments: the names that the scenario's definition lists, in its order.
    pub key: Vec<(Cow<'static, str>, String)>,
    /// For people: which arm, which events.
    pub detail: Value,
}

/// An event that an alert names as evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvidenceEvent {
    /// Its ordinal on the watched tape.
    pub seq: u64,
    /// Its position, if the watched events were on a tape.
    pub position: Option<Position>,
}

/// An alert as an alert tape has it: the alert, and the tape and the rules that gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedAlert {
    /// The alert.
    pub alert: Alert,
    /// The id of the watched tape, or `None` for alerts of other origin.
    pub source_tape: Option<u128>,
    /// The version of the scenario's definition, 16 hexadecimal digits.
    pub rule_version: Option<String>,
    /// The hash of the scenario's parameters, 16 hexadecimal digits.
    pub params_hash: Option<String>,
}

impl RecordedAlert {
    /// Reads an `alert` event. Returns `None` for an event of another kind or without a scenario. `names` are the names
    /// of its tape.
    pub fn read(event: &Event<'_>, names: &Dictionary) -> Option<Self> {
        if event.kind() != EventKind::Alert {
            return None;
        }
        let text = |field| match event.field(field, &mut [0; 36]) {
            Some(EventValue::Text(text)) => Some(text.to_owned()),
            _ => None,
        };
        let number = |field| match event.field(field, &mut [0; 36]) {
            Some(EventValue::UInt(number)) => Some(number),
            _ => None,
        };
        let json = |field| match event.field(field, &mut [0; 36]) {
            Some(EventValue::Json(json)) => serde_json::from_str::<Value>(json).ok(),
            _ => None,
        };
        let scenario = match event.field(EventField::Scenario, &mut [0; 36])? {
            EventValue::Sym(dict, id) => names.name(dict, id)?.to_owned(),
            _ => return None,
        };
        let key = match json(EventField::Key) {
            Some(Value::Object(key)) => {
                key.into_iter().map(|(name, value)| (name.into(), key_text(value))).collect()
            }
            _ => Vec::new(),
        };
        let source_tape = match event.field(EventField::SourceTape, &mut [0; 36]) {
            Some(EventValue::Tape(id)) => Some(id),
            _ => None,
        };
        Some(Self {
            alert: Alert {
                scenario: scenario.into(),
                ts: event.ts_event(),
                trigger_seq: number(EventField::TriggerSeq).unwrap_or(0),
                position: number(EventField::TriggerPosition).map(Position),
                key,
                detail: json(EventField::Detail).unwrap_or(Value::Null),
            },
            source_tape,
            rule_version: text(EventField::RuleVersion),
            params_hash: text(EventField::ParamsHash),
        })
    }
}

/// Returns the text of a key's value: a text unchanged, any other JSON value as JSON.
fn key_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

impl Alert {
    /// Makes an alert without a position: the watch adds it.
    pub(crate) fn new(
        scenario: &'static str,
        ts: UnixNanos,
        trigger_seq: u64,
        key: Vec<(&'static str, String)>,
        detail: Value,
    ) -> Self {
        let key = key.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect();
        Self { scenario: Cow::Borrowed(scenario), ts, trigger_seq, position: None, key, detail }
    }

    /// Returns the value of a name of the key.
    pub fn key_value(&self, name: &str) -> Option<&str> {
        self.key.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the events that the alert names as evidence, in their order, the completing event included.
    pub fn evidence(&self) -> Vec<EvidenceEvent> {
        let numbers = |name: &str| -> Vec<u64> {
            self.detail[name].as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
        };
        let positions = numbers("positions");
        let seqs = numbers("seqs");
        let mut events: Vec<EvidenceEvent> = seqs
            .iter()
            .enumerate()
            .map(|(n, seq)| EvidenceEvent { seq: *seq, position: positions.get(n).copied().map(Position) })
            .collect();
        if !events.iter().any(|event| event.seq == self.trigger_seq) {
            events.push(EvidenceEvent { seq: self.trigger_seq, position: self.position });
        }
        events.sort_by_key(|event| event.seq);
        events.dedup();
        events
    }

    /// Appends the alert to `out` as one JSON object, without a newline.
    pub fn write_json(&self, out: &mut Vec<u8>, case: Option<&str>) {
        // Writing to a Vec cannot fail, and text is always JSON.
        let _ = write!(
            out,
            r#"{{"scenario":"{}","ts":{},"trigger_seq":{},"key":"#,
            self.scenario, self.ts.0, self.trigger_seq
        );
        self.write_key(out);
        out.extend_from_slice(br#","detail":"#);
        let _ = serde_json::to_writer(&mut *out, &self.detail);
        if let Some(case) = case {
            out.extend_from_slice(br#","case":"#);
            let _ = serde_json::to_writer(&mut *out, case);
        }
        out.push(b'}');
    }

    /// Appends the key to `out` as a JSON object.
    pub fn write_key(&self, out: &mut Vec<u8>) {
        for (i, (name, value)) in self.key.iter().enumerate() {
            let _ = write!(out, r#"{}"{name}":"#, if i == 0 { '{' } else { ',' });
            let _ = serde_json::to_writer(&mut *out, value);
        }
        out.extend_from_slice(if self.key.is_empty() { b"{}" } else { b"}" });
    }

    /// Compares two alerts by the order in which alerts of one event are printed: by scenario, then by the text of the key,
    /// which is its values joined by commas.
    pub(crate) fn order(&self, other: &Self) -> std::cmp::Ordering {
        let text =
            |alert: &Self| alert.key.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(",");
        self.scenario.cmp(&other.scenario).then_with(|| text(self).cmp(&text(other)))
    }
}
