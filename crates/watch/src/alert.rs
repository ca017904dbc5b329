//! The alert of a scenario.

use std::io::Write as _;
use unitape_model::UnixNanos;

/// An alert: these events, taken together, are worth a look.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    /// The scenario.
    pub scenario: &'static str,
    /// Event time of the event that completed it.
    pub ts: UnixNanos,
    /// Ordinal of that event.
    pub trigger_seq: u64,
    /// Its parties and instruments: the names that the scenario's definition lists, in its order.
    pub key: Vec<(&'static str, String)>,
    /// For people: which arm, which events.
    pub detail: serde_json::Value,
}

impl Alert {
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

    /// The order in which alerts of one event are printed: scenario, then key.
    pub(crate) fn order(&self, other: &Self) -> std::cmp::Ordering {
        let values = |a: &Self| a.key.iter().map(|(_, v)| v.clone()).collect::<Vec<_>>();
        self.scenario.cmp(other.scenario).then_with(|| values(self).cmp(&values(other)))
    }
}
