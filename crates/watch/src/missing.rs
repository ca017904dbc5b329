//! Values that events lacked, for the report on the quality of the data.

use crate::state::{StateFault, StateReader, StateValue, watch_state};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::collections::BTreeMap;
use unitape_model::{Event, EventField, EventKind};

/// A value without which an event cannot be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MissingValue {
    /// A field of the event or, where it may inherit the field, of its order.
    Field(EventField),
    /// The order of the event: no `order_new` of it was seen.
    Order,
    /// The best price of the venue and instrument.
    BestPrice,
    /// A field of the instrument's reference data.
    Reference(EventField),
    /// The usual values that it is compared with.
    Baseline,
}

impl MissingValue {
    /// Returns the value's name for people and in JSON.
    pub fn name(self) -> String {
        match self {
            Self::Field(field) => field.name().to_owned(),
            Self::Order => "order".to_owned(),
            Self::BestPrice => "best price".to_owned(),
            Self::Baseline => "baseline".to_owned(),
            Self::Reference(field) => format!("ref.{}", field.name()),
        }
    }
}

/// A missing value, with the kind and the source of the event that lacked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MissingKey {
    /// The value.
    pub value: MissingValue,
    /// The kind of the event.
    pub kind: EventKind,
    /// The number of the event's source on its tape; 0 if it has none.
    pub source: u32,
}

/// The number of events that lacked each value. Of too many values, kinds and sources the last count in the total alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingCounts {
    total: u64,
    by_key: HashMap<MissingKey, u64, FxBuildHasher>,
}

/// The greatest number of values, kinds and sources that are told apart; the others count in the total alone.
const KEYS_MAX: usize = 1 << 14;

impl StateValue for MissingKey {
    fn write(&self, out: &mut Vec<u8>) {
        let (word, field) = match self.value {
            MissingValue::Field(field) => (0u8, field as u16),
            MissingValue::Order => (1, 0),
            MissingValue::BestPrice => (2, 0),
            MissingValue::Reference(field) => (3, field as u16),
            MissingValue::Baseline => (4, 0),
        };
        (word, field, self.kind as u8).write(out);
        self.source.write(out);
    }

    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
        let (word, field, kind) = <(u8, u16, u8)>::read(input)?;
        let field = || EventField::from_u16(field).ok_or(StateFault);
        let value = match word {
            0 => MissingValue::Field(field()?),
            1 => MissingValue::Order,
            2 => MissingValue::BestPrice,
            3 => MissingValue::Reference(field()?),
            4 => MissingValue::Baseline,
            _ => return Err(StateFault),
        };
        let kind = EventKind::from_u8(kind).ok_or(StateFault)?;
        Ok(Self { value, kind, source: StateValue::read(input)? })
    }
}

watch_state!(MissingCounts { total, by_key });

impl MissingCounts {
    /// Counts an event that lacks a value.
    pub(crate) fn add(&mut self, value: MissingValue, event: &Event<'_>) {
        self.total += 1;
        let key = MissingKey { value, kind: event.kind(), source: event.source() };
        let has_room = self.by_key.len() < KEYS_MAX;
        match self.by_key.get_mut(&key) {
            Some(count) => *count += 1,
            None if has_room => _ = self.by_key.insert(key, 1),
            None => {}
        }
    }

    /// Returns the number of events that lacked a value.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the counts in the order of their keys.
    pub fn counts(&self) -> Vec<(MissingKey, u64)> {
        let mut counts: Vec<_> = self.by_key.iter().map(|(key, count)| (*key, *count)).collect();
        counts.sort_unstable();
        counts
    }

    /// Returns the number of events that lacked each value, in the order of the values.
    pub fn by_value(&self) -> BTreeMap<MissingValue, u64> {
        let mut values = BTreeMap::new();
        self.by_key.iter().for_each(|(key, count)| *values.entry(key.value).or_insert(0) += count);
        values
    }

    /// Adds the counts of a later run.
    pub fn merge(&mut self, later: &Self) {
        self.total += later.total;
        for (key, count) in &later.by_key {
            *self.by_key.entry(*key).or_insert(0) += count;
        }
    }
}
