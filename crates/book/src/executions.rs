//! The last executions that books have seen. The books recognise a repeated execution by them.

use crate::state::State;
use unitape_model::records::OrderRecord;

/// Executions that are remembered, at most: 128 KiB. One that was forgotten is not known, which leaves its book stale.
const PLACES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 14;
/// Bits of a key.
const KEY_BITS: u32 = 62;

/// A key for each of the last executions, in the place that its first bits give it.
pub(crate) struct RecentExecutions {
    keys: Box<[u64]>,
}

impl Default for RecentExecutions {
    fn default() -> Self {
        Self { keys: vec![0; PLACES].into() }
    }
}

impl RecentExecutions {
    /// Records an execution of an order of this listing.
    #[inline]
    pub fn note_execution(&mut self, listing: u32, order: &OrderRecord) {
        let key = execution_key(listing, &order.oid, &order.id2);
        self.keys[slot_of(key)] = key;
    }

    /// Returns whether the execution was noted lately. An execution without an id always counts as noted.
    pub fn has_execution(&self, listing: u32, order: &OrderRecord) -> bool {
        let key = execution_key(listing, &order.oid, &order.id2);
        // Without an id it can be any.
        order.id2[0] != 0 && self.keys[slot_of(key)] == key
    }
}

#[inline]
fn slot_of(key: u64) -> usize {
    (key >> (KEY_BITS - PLACE_BITS)) as usize % PLACES
}

/// Hashes an order and an execution. The hash is never 0.
#[inline]
fn execution_key(listing: u32, order_id: &[u8; 24], execution_id: &[u8; 24]) -> u64 {
    let words = order_id.chunks_exact(8).chain(execution_id.chunks_exact(8));
    let words = words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    // Each word goes through a multiplication: an XOR of the words is the same for orders and executions that count in step.
    let hash = words.fold(u64::from(listing) + 1, |hash, word| {
        (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    });
    hash.wrapping_mul(0xd6e8_feb8_6659_fd93) >> (64 - KEY_BITS) | 1
}

impl State for RecentExecutions {
    fn encode(&self, out: &mut Vec<u8>) {
        self.keys.iter().copied().filter(|key| *key != 0).collect::<Vec<u64>>().encode(out);
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        let mut this = Self::default();
        for key in Vec::<u64>::decode(input)? {
            this.keys[slot_of(key)] = key;
        }
        Some(this)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    // Ids that count in step once cancelled each other: of 4,096 executions, 4,095 shared a key with another.
    #[test]
    fn orders_and_executions_that_count_in_step_have_keys_of_their_own() {
        let mut keys = HashSet::new();
        for shift in [0, 8, 23, 46, 52] {
            for n in 1..4_096u64 {
                let (mut order_id, mut execution_id) = ([0; 24], [0; 24]);
                order_id[..8].copy_from_slice(&n.to_le_bytes());
                execution_id[..8].copy_from_slice(&n.rotate_left(shift).to_le_bytes());
                keys.insert(execution_key(1, &order_id, &execution_id));
            }
        }
        assert_eq!(keys.len(), 5 * 4_095);
    }
}
