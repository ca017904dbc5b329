//! State that can be saved and loaded again, so that a watch that begins again need not judge all events anew.
//!
//! ```text
//!  counts as u64 · numbers little-endian · maps in the order of their keys · slots with their numbers
//! ```
//!
//! A state is loaded into one that was made with the same rules. What is loaded and saved again has the same bytes. Indexes by
//! hash are not saved: they are made again.

use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, Hash};
use unitape_model::{Amount, CivilDate, Decimal, InstrumentId, Position, Price, UnixNanos};

/// Bytes that are no state of these rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state of the watch ends early, or holds values that it cannot have")]
pub struct StateFault;

/// The bytes of a state that are not read yet.
#[derive(Debug)]
pub struct StateReader<'a>(&'a [u8]);

impl<'a> StateReader<'a> {
    /// Begins at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the next `count` bytes.
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], StateFault> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(StateFault)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Reads a count of things that take a byte each at least.
    fn count(&mut self) -> Result<usize, StateFault> {
        let count = u64::read(self)?;
        if count > self.0.len() as u64 { Err(StateFault) } else { Ok(count as usize) }
    }

    /// Fails if bytes are left.
    ///
    /// # Errors
    /// Fails with [`StateFault`].
    pub fn finish(self) -> Result<(), StateFault> {
        if self.0.is_empty() { Ok(()) } else { Err(StateFault) }
    }
}

/// A value of a state.
pub(crate) trait StateValue: Sized {
    /// Appends the value.
    fn write(&self, out: &mut Vec<u8>);
    /// Reads a value.
    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault>;
}

/// A state that was made with its parameters and takes over what was saved.
pub trait WatchState {
    /// Appends the state.
    fn save(&self, out: &mut Vec<u8>);
    /// Replaces the state by the saved one.
    ///
    /// # Errors
    /// Fails if the bytes are no such state. The state is then undefined, and must be reset.
    fn load(&mut self, input: &mut StateReader<'_>) -> Result<(), StateFault>;
}

/// Any value is a state without parameters.
impl<T: StateValue> WatchState for T {
    fn save(&self, out: &mut Vec<u8>) {
        self.write(out);
    }

    fn load(&mut self, input: &mut StateReader<'_>) -> Result<(), StateFault> {
        *self = T::read(input)?;
        Ok(())
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl StateValue for $integer {
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
                let bytes = input.bytes(size_of::<Self>())?;
                Ok(Self::from_le_bytes(bytes.try_into().map_err(|_| StateFault)?))
            }
        }
    )*};
}
integers!(u8, i8, u16, u32, i32, u64, i64, i128);

/// Writes and reads a type by another one: `wrapped!(UnixNanos, i64, |ts| ts.0, |ns| Some(UnixNanos(ns)))`.
macro_rules! wrapped {
    ($outer:ty, $inner:ty, $unwrap:expr, $wrap:expr) => {
        impl $crate::state::StateValue for $outer {
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                let unwrap: fn(&$outer) -> $inner = $unwrap;
                $crate::state::StateValue::write(&unwrap(self), out);
            }

            #[inline]
            fn read(input: &mut $crate::state::StateReader<'_>) -> Result<Self, $crate::state::StateFault> {
                let wrap: fn($inner) -> Option<$outer> = $wrap;
                wrap(<$inner as $crate::state::StateValue>::read(input)?).ok_or($crate::state::StateFault)
            }
        }
    };
}
pub(crate) use wrapped;

/// Writes and reads a struct by its fields, all of them: `state_value!(Leg { ts, px })`.
macro_rules! state_value {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::state::StateValue for $name {
            fn write(&self, out: &mut Vec<u8>) {
                let Self { $($field),* } = self;
                $($crate::state::StateValue::write($field, out);)*
            }

            fn read(
                input: &mut $crate::state::StateReader<'_>,
            ) -> Result<Self, $crate::state::StateFault> {
                Ok(Self { $($field: $crate::state::StateValue::read(input)?),* })
            }
        }
    };
}
pub(crate) use state_value;

/// Saves and loads a state by its fields; those after the bar are its parameters, or are made by a call after the others are
/// loaded: `watch_state!(LegLog { log, base | max } then rebuild)`.
macro_rules! watch_state {
    ($name:ident { | $($fixed:ident),* $(,)? }) => {
        impl $crate::state::WatchState for $name {
            fn save(&self, _out: &mut Vec<u8>) {
                let Self { $($fixed: _),* } = self;
            }

            fn load(
                &mut self,
                _input: &mut $crate::state::StateReader<'_>,
            ) -> Result<(), $crate::state::StateFault> {
                Ok(())
            }
        }
    };
    ($name:ident { $($field:ident),* $(,)? $(| $($fixed:ident),* $(,)?)? } $(then $rebuild:ident)?) => {
        // A state may have no fields.
        #[allow(unused_variables)]
        impl $crate::state::WatchState for $name {
            fn save(&self, out: &mut Vec<u8>) {
                let Self { $($field,)* $($($fixed: _,)*)? } = self;
                $($crate::state::WatchState::save($field, out);)*
            }

            fn load(
                &mut self,
                input: &mut $crate::state::StateReader<'_>,
            ) -> Result<(), $crate::state::StateFault> {
                let Self { $($field,)* $($($fixed: _,)*)? } = self;
                $($crate::state::WatchState::load($field, input)?;)*
                $(self.$rebuild()?;)?
                Ok(())
            }
        }
    };
}
pub(crate) use watch_state;

wrapped!(bool, u8, |value| u8::from(*value), |byte| match byte {
    0 => Some(false),
    1 => Some(true),
    _ => None,
});
wrapped!(usize, u64, |value| *value as u64, |value| usize::try_from(value).ok());
wrapped!(UnixNanos, i64, |ts| ts.0, |ns| Some(UnixNanos(ns)));
wrapped!(Price, i64, |px| px.0, |px| Some(Price(px)));
wrapped!(InstrumentId, u32, |id| id.0, |id| Some(InstrumentId(id)));
wrapped!(Position, u64, |position| position.0, |position| Some(Position(position)));
wrapped!(CivilDate, i32, |date| date.days(), |days| Some(CivilDate::from_days(days)));
wrapped!(Decimal, (i64, i8), |decimal| (decimal.mantissa(), decimal.exponent()), |(mantissa, exponent)| {
    Some(Decimal::from_canonical(mantissa, exponent))
});

wrapped!(Amount, (i128, i8), |amount| (amount.mantissa(), amount.exponent()), |(mantissa, exponent)| {
    Some(Amount::from_canonical(mantissa, exponent))
});

impl<A: StateValue, B: StateValue> StateValue for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
        Ok((A::read(input)?, B::read(input)?))
    }
}

impl<A: StateValue, B: StateValue, C: StateValue> StateValue for (A, B, C) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
        self.2.write(out);
    }

    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
        Ok((A::read(input)?, B::read(input)?, C::read(input)?))
    }
}

impl<T: StateValue> StateValue for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        self.iter().for_each(|value| value.write(out));
    }

    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
        Ok(if bool::read(input)? { Some(T::read(input)?) } else { None })
    }
}

impl<T: StateValue, const N: usize> StateValue for [T; N] {
    fn write(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.write(out));
    }

    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
        let values: Vec<T> = (0..N).map(|_| T::read(input)).collect::<Result<_, _>>()?;
        values.try_into().map_err(|_| StateFault)
    }
}

impl<T: StateValue> StateValue for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        self.iter().for_each(|value| value.write(out));
    }

    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
        (0..input.count()?).map(|_| T::read(input)).collect()
    }
}

impl<T: StateValue> StateValue for VecDeque<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        self.iter().for_each(|value| value.write(out));
    }

    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
        Vec::read(input).map(Self::from)
    }
}

impl StateValue for String {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
        let count = input.count()?;
        String::from_utf8(input.bytes(count)?.to_vec()).map_err(|_| StateFault)
    }
}

impl<K: StateValue + Ord, V: StateValue> StateValue for BTreeMap<K, V> {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        for (key, value) in self {
            key.write(out);
            value.write(out);
        }
    }

    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
        (0..input.count()?).map(|_| <(K, V)>::read(input)).collect()
    }
}

impl<T: StateValue + Ord> StateValue for BTreeSet<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        self.iter().for_each(|value| value.write(out));
    }

    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
        (0..input.count()?).map(|_| T::read(input)).collect()
    }
}

/// In the order of the keys.
impl<K: StateValue + Ord + Hash, V: StateValue, S: BuildHasher + Default> StateValue for HashMap<K, V, S> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut entries: Vec<(&K, &V)> = self.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        entries.len().write(out);
        for (key, value) in entries {
            key.write(out);
            value.write(out);
        }
    }

    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
        (0..input.count()?).map(|_| <(K, V)>::read(input)).collect()
    }
}
