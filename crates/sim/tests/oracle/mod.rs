//! The scenarios again, slowly, from their text and from nothing else. It reads lines of events as anyone would and
//! shares no code with the simulator or with the watch. Every look goes over all that came before, oldest first.

mod flow;
mod orders;

use serde_json::Value;

pub use flow::{marking_close, runaway_algo, structuring, wash_trade};
pub use orders::{layering, order_to_trade_ratio, quote_stuffing, spoofing};

/// An event as it is in a line.
pub struct Event {
    pub seq: u64,
    pub ts: i64,
    pub kind: String,
    fields: Value,
}

/// Scenario, key as JSON text, number of the event that completes it.
pub type Alert = (&'static str, String, u64);

impl Event {
    pub fn parse(line: &str) -> Event {
        let fields: Value = serde_json::from_str(line).expect("a line of JSON");
        let int = |name: &str| fields[name].as_i64().unwrap_or_else(|| panic!("no {name} in {line}"));
        Event {
            seq: int("seq") as u64,
            ts: int("ts"),
            kind: fields["kind"].as_str().expect("kind").into(),
            fields,
        }
    }

    pub fn find(&self, name: &str) -> Option<&str> {
        self.fields[name].as_str()
    }

    pub fn get(&self, name: &str) -> &str {
        self.find(name).unwrap_or_else(|| panic!("no {name} in {}", self.fields))
    }

    /// A decimal in units of 1e-9.
    pub fn nano(&self, name: &str) -> Option<i128> {
        let text = self.find(name)?;
        let (whole, places) = text.split_once('.').unwrap_or((text, ""));
        assert!(places.len() <= 9, "{text}");
        Some(format!("{whole}{places:0<9}").parse().expect("a decimal"))
    }

    pub fn num(&self, name: &str) -> i128 {
        self.nano(name).unwrap_or_else(|| panic!("no {name} in {}", self.fields))
    }

    pub fn is_message(&self) -> bool {
        matches!(self.kind.as_str(), "order_new" | "order_amend" | "order_cancel")
    }

    /// Some of the fields as a key.
    pub fn key(&self, names: &[&str]) -> String {
        key(&names.iter().map(|n| (*n, self.get(n))).collect::<Vec<_>>())
    }
}

/// A key as JSON text.
pub fn key(pairs: &[(&str, &str)]) -> String {
    let parts: Vec<String> = pairs.iter().map(|(name, value)| format!("\"{name}\":\"{value}\"")).collect();
    format!("{{{}}}", parts.join(","))
}

pub const MS: i64 = 1_000_000;
/// One, in units of 1e-9.
pub const ONE: i128 = 1_000_000_000;
