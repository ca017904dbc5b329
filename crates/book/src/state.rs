//! The state of books as bytes: the contents of a checkpoint.
//!
//! ```text
//!   books ── encode ─▶ bytes ── decode ─▶ books that continue as the first ones do, with the same bytes at every event
//! ```
//!
//! Equal events give equal bytes: slabs are kept slot by slot with their free lists, and maps are sorted by key.
//! Indexes are made again. All numbers are little-endian. Lists begin with their length in eight bytes, and an option
//! with one byte. The bytes carry no checksum and no version: the caller must add both and must return only bytes that
//! match. The reader compares all parts with each other (`state_check`). Forged bytes give no books, or books that can
//! be used.

use hashbrown::HashMap;
use std::hash::{BuildHasher, Hash};

/// A type that can be written as bytes and read back.
pub(crate) trait State: Sized {
    fn encode(&self, out: &mut Vec<u8>);
    fn decode(input: &mut &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl State for $number {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn decode(input: &mut &[u8]) -> Option<Self> {
                input.split_off(..size_of::<Self>()).map(|b| Self::from_le_bytes(b.try_into().expect("its length")))
            }
        })*
    };
}

numbers!(u8, i8, u16, u32, i64, i128);

/// Lengths and numbers of events: none comes near its end, at which counting would overflow.
impl State for u64 {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        let bytes = input.split_off(..size_of::<Self>())?;
        Some(Self::from_le_bytes(bytes.try_into().expect("its length"))).filter(|count| *count < 1 << 62)
    }
}

/// A struct is its fields, in this order; all of them must be named.
macro_rules! state {
    ($name:ident { $($field:tt),* $(,)? }) => {
        impl $crate::state::State for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                let Self { $($field: _),* } = self;
                $($crate::state::State::encode(&self.$field, out);)*
            }

            fn decode(input: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: $crate::state::State::decode(input)?),* })
            }
        }
    };
}
pub(crate) use state;

impl State for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        u8::from(*self).encode(out);
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        match u8::decode(input)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<T: State> State for Option<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.is_some().encode(out);
        if let Some(value) = self {
            value.encode(out);
        }
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        match bool::decode(input)? {
            true => T::decode(input).map(Some),
            false => Some(None),
        }
    }
}

impl<A: State, B: State> State for (A, B) {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
        self.1.encode(out);
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        Some((A::decode(input)?, B::decode(input)?))
    }
}

impl<T: State, const N: usize> State for [T; N] {
    fn encode(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.encode(out));
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        let mut all = Vec::with_capacity(N);
        for _ in 0..N {
            all.push(T::decode(input)?);
        }
        all.try_into().ok()
    }
}

impl<T: State> State for Vec<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.len() as u64).encode(out);
        self.iter().for_each(|value| value.encode(out));
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        // Each is a byte or more, so a length that cannot be asks for no memory.
        let count = usize::try_from(u64::decode(input)?).ok().filter(|count| *count <= input.len())?;
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(T::decode(input)?);
        }
        Some(all)
    }
}

impl State for Box<[u8]> {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.len() as u64).encode(out);
        out.extend_from_slice(self);
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        let count = usize::try_from(u64::decode(input)?).ok()?;
        input.split_off(..count).map(Into::into)
    }
}

impl State for Box<str> {
    fn encode(&self, out: &mut Vec<u8>) {
        Box::<[u8]>::from(self.as_bytes()).encode(out);
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        let bytes = Box::<[u8]>::decode(input)?;
        String::from_utf8(bytes.into()).ok().map(Into::into)
    }
}

impl<K: State + Ord + Hash, V: State, S: BuildHasher + Default> State for HashMap<K, V, S> {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut all: Vec<(&K, &V)> = self.iter().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        (all.len() as u64).encode(out);
        for (key, value) in all {
            key.encode(out);
            value.encode(out);
        }
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        let all = Vec::<(K, V)>::decode(input)?;
        all.is_sorted_by(|a, b| a.0 < b.0).then(|| all.into_iter().collect())
    }
}

impl State for unitape_model::InstrumentId {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        u32::decode(input).map(Self)
    }
}

impl State for (u32, u16, unitape_model::InstrumentId) {
    fn encode(&self, out: &mut Vec<u8>) {
        ((self.0, self.1), self.2).encode(out);
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        let ((feed, venue), instrument) = State::decode(input)?;
        Some((feed, venue, instrument))
    }
}
