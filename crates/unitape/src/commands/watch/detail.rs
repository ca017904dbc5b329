//! The detail of an alert for people: its values with units, and the few that tell the most.

use crate::commands::tape::utc;
use serde_json::Value;

/// Returns a value of a detail for people. The end of its name is its unit.
pub fn value_text(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}{}", unit_text(name)),
        Value::Number(number) => {
            match (number.as_i64(), NANOS_BY_UNIT.iter().find(|(end, _)| name.ends_with(end))) {
                (Some(ts), _) if name == "ts" || name.ends_with("_ts") => utc(ts),
                (Some(count), Some((_, nanos))) => duration_text(i128::from(count) * i128::from(*nanos)),
                _ => format!("{number}{}", unit_text(name)),
            }
        }
        Value::Array(list) => match list.iter().map(Value::as_str).collect::<Option<Vec<_>>>() {
            Some(texts) if !texts.is_empty() => texts.join(" + "),
            _ => value.to_string(),
        },
        other => other.to_string(),
    }
}

/// Returns the names and values of a detail that tell the most, as one line: its words first, then its numbers. Ids and lists
/// are left out.
pub fn telling_values(detail: &Value) -> String {
    let pairs = || detail.as_object().into_iter().flatten();
    let is_word = |name: &str| WORDS.contains(&name);
    let is_number = |value: &Value| !value.is_array() && !value.is_object() && !value.is_null();
    let words = pairs().filter(|(name, _)| is_word(name));
    let numbers = pairs().filter(|(name, value)| !is_word(name) && is_number(value) && !is_id(name));
    let parts = words.chain(numbers).take(TELLING_MAX);
    parts.map(|(name, value)| format!("{name} {}", value_text(name, value))).collect::<Vec<_>>().join(", ")
}

/// Returns whether this part of a detail names the evidence, which is shown apart.
pub fn names_evidence(name: &str) -> bool {
    matches!(name, "seqs" | "positions")
}

/// Returns a duration in its greatest unit, with at most three places.
pub fn duration_text(nanos: i128) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let length = nanos.unsigned_abs();
    let (unit_nanos, unit) =
        UNITS.into_iter().find(|(unit_nanos, _)| length >= *unit_nanos).unwrap_or((1, "ns"));
    let thousandths = (length * 1_000 + unit_nanos / 2) / unit_nanos;
    let places = format!("{:03}", thousandths % 1_000);
    match places.trim_end_matches('0') {
        "" => format!("{sign}{} {unit}", thousandths / 1_000),
        places => format!("{sign}{}.{places} {unit}", thousandths / 1_000),
    }
}

fn unit_text(name: &str) -> &'static str {
    match name {
        _ if name.ends_with("_pct") => " %",
        _ if name.ends_with("_bps") => " bps",
        _ => "",
    }
}

fn is_id(name: &str) -> bool {
    ["oid", "coid", "parent"].contains(&name) || name.ends_with("_oid") || name.ends_with("_id")
}

/// The names whose values are words of a scenario.
const WORDS: [&str; 9] =
    ["arm", "reason", "reasons", "phrases", "kind", "type", "field", "direction", "side"];
const TELLING_MAX: usize = 4;
const NANOS_BY_UNIT: [(&str, i64); 3] = [("_ns", 1), ("_ms", 1_000_000), ("_s", 1_000_000_000)];
const SECOND: u128 = 1_000_000_000;
const UNITS: [(u128, &str); 6] = [
    (86_400 * SECOND, "d"),
    (3_600 * SECOND, "h"),
    (60 * SECOND, "min"),
    (SECOND, "s"),
    (1_000_000, "ms"),
    (1_000, "µs"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_have_the_unit_of_their_name() {
        for (name, value, text) in [
            ("life_ns", json!(2_200_000_000i64), "2.2 s"),
            ("age_ns", json!(999), "999 ns"),
            ("age_ns", json!(1_234_567), "1.235 ms"),
            ("gap_ns", json!(-90_000_000_000i64), "-1.5 min"),
            ("window_ms", json!(60_000), "1 min"),
            ("window_s", json!(86_400), "1 d"),
            ("news_ts", json!(1_000), "1970-01-01 00:00:00.000001000"),
            ("move_bps", json!("12.5"), "12.5 bps"),
            ("share_pct", json!(40), "40 %"),
            ("qty", json!("20000"), "20000"),
            ("levels", json!([1, 2]), "[1,2]"),
            ("reasons", json!(["notional", "adv"]), "notional + adv"),
            ("exec_match_ids", json!([]), "[]"),
            ("life_ns", json!(u64::MAX), "18446744073709551615"),
        ] {
            assert_eq!(value_text(name, &value), text, "{name} {value}");
        }
    }

    #[test]
    fn words_come_first_and_ids_and_lists_are_left_out() {
        let detail = json!({
            "spoof_oid": "S1", "match_id": "M", "qty": "5", "px": "1", "seqs": [1], "life_ns": 5, "filled": "0", "last": 1,
            "reason": "pause"
        });
        assert_eq!(telling_values(&detail), "reason pause, qty 5, px 1, life_ns 5 ns");
        assert_eq!(telling_values(&Value::Null), "");
    }
}
