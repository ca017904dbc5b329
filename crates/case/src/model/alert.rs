//! An alert of a case: what makes it the same alert, and which case it belongs to.

use serde_json::Value;
use std::borrow::Cow;
use unitape_model::{Position, UnixNanos};
use unitape_watch::{Alert, RecordedAlert};

/// An alert as the database has it.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertRecord {
    /// Its number, in the order of ingest.
    pub number: u64,
    /// The case that it belongs to.
    pub case: u64,
    /// The alert, with the tape and the rules that gave it.
    pub recorded: RecordedAlert,
    /// How often it was read again: of a replay, or with other parameters.
    pub seen_again: u64,
}

impl AlertRecord {
    /// Makes the alert from what the database has of it: `key` and `detail` are JSON.
    pub(crate) fn alert_of(stored: StoredAlert) -> Alert {
        let key = match serde_json::from_str(&stored.key) {
            Ok(Value::Object(key)) => key
                .into_iter()
                .map(|(name, value)| match value {
                    Value::String(text) => (name.into(), text),
                    other => (name.into(), other.to_string()),
                })
                .collect(),
            _ => Vec::new(),
        };
        Alert {
            scenario: Cow::Owned(stored.scenario),
            ts: UnixNanos(stored.ts),
            trigger_seq: stored.trigger_seq,
            position: stored.trigger_position.map(Position),
            key,
            detail: serde_json::from_str(&stored.detail).unwrap_or(Value::Null),
        }
    }
}

/// The columns of an alert.
#[derive(Debug)]
pub(crate) struct StoredAlert {
    pub scenario: String,
    pub ts: i64,
    pub trigger_seq: u64,
    pub trigger_position: Option<u64>,
    /// JSON, as `detail`.
    pub key: String,
    pub detail: String,
}

/// Returns the key of an alert as JSON.
pub(crate) fn key_json(alert: &Alert) -> String {
    let mut out = Vec::new();
    // Names of a key come from a tape: unlike those of a scenario they may need escapes.
    out.push(b'{');
    for (n, (name, value)) in alert.key.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        serde_json::to_writer(&mut out, name).expect("text is JSON");
        out.push(b':');
        serde_json::to_writer(&mut out, value).expect("text is JSON");
    }
    out.push(b'}');
    String::from_utf8(out).expect("JSON is text")
}

/// Returns what makes two alerts the same one: source tape, trigger, scenario and key, whatever the parameters and the order of
/// the key were. `occurrence` counts from 0 the alerts of one event that have the same scenario and key.
pub(crate) fn alert_identity(source: u128, alert: &Alert, occurrence: u32) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hash_part(&mut hasher, b"unitape alert");
    hash_part(&mut hasher, &source.to_le_bytes());
    let (kind, trigger) = match alert.position {
        Some(position) => (b"position", position.0),
        None => (b"ordinal.", alert.trigger_seq),
    };
    hash_part(&mut hasher, kind);
    hash_part(&mut hasher, &trigger.to_le_bytes());
    put_scenario_and_key(&mut hasher, alert);
    if occurrence > 0 {
        hash_part(&mut hasher, &occurrence.to_le_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// Returns what makes two alerts belong to one case: scenario, key and session date.
pub(crate) fn group_of(alert: &Alert, session_date: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hash_part(&mut hasher, b"unitape case");
    hash_part(&mut hasher, session_date.as_bytes());
    put_scenario_and_key(&mut hasher, alert);
    *hasher.finalize().as_bytes()
}

fn put_scenario_and_key(hasher: &mut blake3::Hasher, alert: &Alert) {
    hash_part(hasher, alert.scenario.as_bytes());
    let mut key: Vec<(&str, &str)> =
        alert.key.iter().map(|(name, value)| (&**name, value.as_str())).collect();
    key.sort_unstable();
    for (name, value) in key {
        hash_part(hasher, name.as_bytes());
        hash_part(hasher, value.as_bytes());
    }
}

/// Each part with its length before it: two lists of parts never give the same bytes.
fn hash_part(hasher: &mut blake3::Hasher, part: &[u8]) {
    hasher.update(&(part.len() as u64).to_le_bytes());
    hasher.update(part);
}

/// Returns the parties that the key of an alert names.
pub fn parties_of(alert: &Alert) -> Vec<String> {
    let mut parties = Vec::new();
    for (_, value) in alert.key.iter().filter(|(name, _)| names_party(name)) {
        // `owners` is a list.
        match serde_json::from_str::<Vec<String>>(value) {
            Ok(list) => parties.extend(list),
            Err(_) => parties.push(value.clone()),
        }
    }
    parties.sort_unstable();
    parties.dedup();
    parties
}

/// Returns whether this name in the key of an alert names a party, not the subject of what the party did.
pub fn names_party(name: &str) -> bool {
    PARTY_NAMES.contains(&name)
}

/// The names in the keys of scenarios that name a party.
const PARTY_NAMES: [&str; 13] = [
    "acct", "algo", "cpty", "cr_acct", "desk", "dr_acct", "firm", "from", "group", "owner", "owners", "to",
    "trader",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn alert(key: &[(&str, &str)]) -> Alert {
        let key = key.iter().map(|(name, value)| ((*name).to_owned().into(), (*value).to_owned())).collect();
        let (scenario, ts) = ("s".into(), UnixNanos(5));
        Alert { scenario, ts, trigger_seq: 7, position: Some(Position(64)), key, detail: Value::Null }
    }

    #[test]
    fn the_order_of_a_key_does_not_matter_and_where_a_name_ends_does() {
        let (a, b) = (alert(&[("owner", "A"), ("instr", "X")]), alert(&[("instr", "X"), ("owner", "A")]));
        assert_eq!(alert_identity(1, &a, 0), alert_identity(1, &b, 0));
        assert_eq!(group_of(&a, "2026-03-02"), group_of(&b, "2026-03-02"));
        let c = alert(&[("owner", "AX"), ("instr", "")]);
        assert_ne!(alert_identity(1, &a, 0), alert_identity(1, &c, 0));
        assert_ne!(alert_identity(1, &a, 0), alert_identity(2, &a, 0));
        assert_ne!(group_of(&a, "2026-03-02"), group_of(&a, "2026-03-03"));
        let without_position = Alert { position: None, trigger_seq: 64, ..a.clone() };
        assert_ne!(alert_identity(1, &a, 0), alert_identity(1, &without_position, 0));
    }

    #[test]
    fn parties_are_those_of_the_key() {
        let a = alert(&[("owner", "B"), ("venue", "XLON"), ("trader", "A"), ("side", "B")]);
        assert_eq!(parties_of(&a), ["A", "B"]);
        assert_eq!(parties_of(&alert(&[("owners", r#"["C","D"]"#), ("instr", "X")])), ["C", "D"]);
    }

    /// A name with a quote once made a key that nobody could read back.
    #[test]
    fn a_key_is_read_back_whatever_it_holds() {
        let odd = alert(&[("own\"er\u{202e}", "A\0\n\"")]);
        let (scenario, detail) = ("s".to_owned(), "null".to_owned());
        let (key, trigger_position) = (key_json(&odd), Some(64));
        let stored = StoredAlert { scenario, ts: 5, trigger_seq: 7, trigger_position, key, detail };
        assert_eq!(AlertRecord::alert_of(stored), odd);
    }
}
