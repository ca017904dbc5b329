//! What executions inherit from their orders, and ids as keys.

use crate::fifo::FifoMap;
use std::hash::Hasher as _;
use unitape_model::records::Order;
use unitape_model::{Event, Field, InlineId, Kind, Value};

/// Orders kept at most: a busy day of one firm. The oldest is forgotten first.
const ORDERS_MAX: usize = 1 << 20;

/// An order or match id as a key of fixed size: its 24 bytes in the frame or, for one that stands in the
/// extension, a mark that no id in place begins with, its length and a 128-bit hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct IdKey([u8; 24]);

impl IdKey {
    const MARK_HASHED: u8 = 0x1f;

    /// The key of `field`, whose place in the fixed part is `slot`.
    #[inline]
    pub fn of(event: &Event<'_>, field: Field, slot: &[u8; 24]) -> Option<Self> {
        if slot[0] != 0 {
            return Some(Self(*slot));
        }
        Self::from_extension(event, field)
    }

    #[cold]
    fn from_extension(event: &Event<'_>, field: Field) -> Option<Self> {
        let mut scratch = [0; 36];
        let Some(Value::Id(id)) = event.field(field, &mut scratch) else { return None };
        let number;
        let bytes = match id {
            InlineId::Text(t) => t,
            InlineId::Number(n) => {
                number = n.to_le_bytes();
                &number
            }
        };
        let mut key = [0; 24];
        key[0] = Self::MARK_HASHED;
        key[1] = u8::from(matches!(id, InlineId::Number(_)));
        key[4..8].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        for half in 0..2u8 {
            // Its keys are fixed, so the key is the same on every run.
            let mut hasher = std::hash::DefaultHasher::new();
            hasher.write_u8(half);
            hasher.write(bytes);
            let at = 8 + usize::from(half) * 8;
            key[at..at + 8].copy_from_slice(&hasher.finish().to_le_bytes());
        }
        Some(Self(key))
    }
}

/// The owner of each order, by venue and order id.
pub(crate) struct Orders {
    owners: FifoMap<(u16, IdKey), u32>,
}

impl Orders {
    pub fn new() -> Self {
        Self { owners: FifoMap::new(ORDERS_MAX) }
    }

    /// Takes note of an `order_new`, or of an `order_amend` that tells what the order did not.
    #[inline]
    pub fn on_order(&mut self, event: &Event<'_>) {
        let Some((order, key)) = Self::key(event) else { return };
        let owner = order.owner.get();
        let known = event.kind() != Kind::OrderNew && self.owners.get(&key).is_some();
        if owner != 0 && !known {
            self.owners.insert(key, owner);
        } else if event.kind() == Kind::OrderNew {
            // The id is used again, by an order that names no owner.
            self.owners.remove(&key);
        }
    }

    /// The owner of an execution: its own word, or that of its order; 0 when neither says.
    #[inline]
    pub fn owner(&self, event: &Event<'_>) -> u32 {
        match Order::of(event).map_or(0, |o| o.owner.get()) {
            0 => Self::key(event).and_then(|(_, key)| self.owners.get(&key)).unwrap_or(0),
            owner => owner,
        }
    }

    pub fn reset(&mut self) {
        self.owners.clear();
    }

    pub fn bound_hit(&self) -> u64 {
        self.owners.bound_hit
    }

    #[inline]
    fn key<'a>(event: &Event<'a>) -> Option<(&'a Order, (u16, IdKey))> {
        let order = Order::of(event)?;
        let oid = IdKey::of(event, Field::Oid, &order.oid)?;
        Some((order, (event.venue(), oid)))
    }
}
