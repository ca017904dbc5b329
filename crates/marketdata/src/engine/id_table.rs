//! The numbers of ids: looked up for every message, and for its entries.

use super::ids::NativeId;

/// Products or instruments by the pair of channels and the venue's id: two pairs may use one id for two of them. An open
/// table, at most half full, in which one look finds nearly all.
#[derive(Clone, Debug)]
pub(super) struct IdTable {
    /// As many as two to the power of `bits`.
    slots: Vec<IdSlot>,
    bits: u32,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct IdSlot {
    bits: u64,
    /// The pair of the id, and the kind of the id.
    pair_and_kind: u32,
    /// The number; [`FREE`] if the slot is free.
    number: u32,
}

const FREE: u32 = u32::MAX;
const NONE: IdSlot = IdSlot { bits: 0, pair_and_kind: 0, number: FREE };

impl Default for IdTable {
    fn default() -> Self {
        Self { slots: vec![NONE; 64], bits: 6, count: 0 }
    }
}

impl IdTable {
    /// Looks up the number of an id, or returns `None` if it has no number.
    #[inline(always)]
    pub fn get(&self, pair: u16, id: NativeId) -> Option<u32> {
        let slot = self.slot_of_id(id.bits, pack_pair_and_kind(pair, id));
        let number = self.slots[slot].number;
        (number != FREE).then_some(number)
    }

    /// Assigns a number to an id that has no number.
    pub fn insert(&mut self, pair: u16, id: NativeId, number: u32) {
        assert_ne!(number, FREE, "a number that means none");
        if self.count * 2 >= self.slots.len() {
            self.bits += 1;
            let slots = std::mem::replace(&mut self.slots, vec![NONE; 1 << self.bits]);
            for old_slot in slots.into_iter().filter(|slot| slot.number != FREE) {
                let slot = self.slot_of_id(old_slot.bits, old_slot.pair_and_kind);
                self.slots[slot] = old_slot;
            }
        }
        let (bits, pair_and_kind) = (id.bits, pack_pair_and_kind(pair, id));
        let slot = self.slot_of_id(bits, pair_and_kind);
        assert_eq!(self.slots[slot].number, FREE, "it has a number");
        self.slots[slot] = IdSlot { bits, pair_and_kind, number };
        self.count += 1;
    }

    /// Returns the slot of an id, or the free slot for it.
    #[inline(always)]
    fn slot_of_id(&self, bits: u64, pair_and_kind: u32) -> usize {
        let slot_mask = self.slots.len() - 1;
        // Its highest bits, which all of an id's change, and by which numbers in a row are far from each other.
        let hash = (bits ^ u64::from(pair_and_kind) << 40).wrapping_mul(ODD);
        let mut index = (hash >> (u64::BITS - self.bits)) as usize & slot_mask;
        while self.slots[index].number != FREE
            && (self.slots[index].bits, self.slots[index].pair_and_kind) != (bits, pair_and_kind)
        {
            index = (index + 1) & slot_mask;
        }
        index
    }
}

#[inline]
fn pack_pair_and_kind(pair: u16, id: NativeId) -> u32 {
    u32::from(pair) << 8 | u32::from(id.kind)
}

/// 2^64 by the golden ratio, odd.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Numbers in a row and any others, and texts whose first bytes are the same.
    fn any_bits() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..300, any::<u64>(), (0u64..300).prop_map(|n| n << 56)]
    }

    proptest! {
        /// Ids that differ in their pair alone, or in being a number or a text, are several, and none must be lost on the
        /// way of another.
        #[test]
        fn as_a_map_has_them(ids in prop::collection::vec((0u16..3, any_bits(), 250u8..255), 0..600)) {
            let (mut table, mut twin) = (IdTable::default(), HashMap::new());
            for (n, (pair, bits, kind)) in ids.into_iter().enumerate() {
                let id = NativeId { bits, kind };
                prop_assert_eq!(table.get(pair, id), twin.get(&(pair, id)).copied());
                twin.entry((pair, id)).or_insert_with(|| {
                    table.insert(pair, id, n as u32);
                    n as u32
                });
            }
            for ((pair, id), number) in twin {
                prop_assert_eq!(table.get(pair, id), Some(number));
            }
        }
    }
}
