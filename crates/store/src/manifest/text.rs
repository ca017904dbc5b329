//! How values of the manifest are written as text.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use unitape_model::Position;
use unitape_tape::TapeId;

use crate::day::Day;
use crate::keys::{DayKeys, WrappedKeys, hex, parse_hex};
use crate::schema::TickSchema;

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for TickSchema {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for TickSchema {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        Self::from_name(&String::deserialize(d)?).ok_or_else(|| D::Error::custom("no schema of ours"))
    }
}

pub(super) mod tape_text {
    use super::*;

    pub fn serialize<S: Serializer>(tape: &TapeId, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.collect_str(tape)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<TapeId, D::Error> {
        u128::from_str_radix(&String::deserialize(d)?, 16).map(TapeId).map_err(D::Error::custom)
    }
}

/// Numbers beyond the range of JSON readers.
pub(super) mod number_text {
    use super::*;

    pub fn serialize<S: Serializer>(number: &u128, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.collect_str(&format_args!("{number:032x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<u128, D::Error> {
        u128::from_str_radix(&String::deserialize(d)?, 16).map_err(D::Error::custom)
    }
}

pub(super) mod sealed_keys {
    use super::*;

    pub fn serialize<S: Serializer>(keys: &DayKeys, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.collect_map(keys.iter().map(|(day, key)| (day, hex(key))))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<DayKeys, D::Error> {
        let keys = BTreeMap::<Day, String>::deserialize(d)?;
        let key = |text: String| parse_hex(&text).ok_or_else(|| D::Error::custom("no key in digits"));
        keys.into_iter().map(|(day, text)| Ok((day, key(text)?))).collect()
    }
}

/// The sealed keys of a store, each in digits.
pub(super) mod wrapped_keys {
    use super::*;

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Digits {
        signing: String,
        names: String,
        index: String,
    }

    pub fn serialize<S: Serializer>(keys: &WrappedKeys, s: S) -> std::result::Result<S::Ok, S::Error> {
        let [signing, names, index] = [&keys.signing, &keys.names, &keys.index].map(|key| hex(key));
        Digits { signing, names, index }.serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<WrappedKeys, D::Error> {
        let Digits { signing, names, index } = Digits::deserialize(d)?;
        let key = |text: String| parse_hex(&text).ok_or_else(|| D::Error::custom("no key in digits"));
        Ok(WrappedKeys { signing: key(signing)?, names: key(names)?, index: key(index)? })
    }
}

/// A position is a plain number here.
pub(super) mod position_number {
    use super::*;

    pub fn serialize<S: Serializer>(position: &Position, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.serialize_u64(position.0)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<Position, D::Error> {
        u64::deserialize(d).map(Position)
    }
}

/// So are the positions of days.
pub(super) mod position_numbers {
    use super::*;

    type Days = BTreeMap<Day, Position>;

    pub fn serialize<S: Serializer>(days: &Days, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.collect_map(days.iter().map(|(day, position)| (day, position.0)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<Days, D::Error> {
        let days = BTreeMap::<Day, u64>::deserialize(d)?;
        Ok(days.into_iter().map(|(day, position)| (day, Position(position))).collect())
    }
}
