//! The last executions that books have seen, by which one that is sent again is known.

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
    /// Notes an execution of an order of this listing.
    #[inline]
    pub fn note(&mut self, listing: u32, order: &OrderRecord) {
        let key = key(listing, order);
        self.keys[place(key)] = key;
    }

    /// Whether the execution is one of those that were noted last.
    pub fn has(&self, listing: u32, order: &OrderRecord) -> bool {
        let key = key(listing, order);
        // Without an id it can be any.
        order.id2[0] != 0 && self.keys[place(key)] == key
    }
}

#[inline]
fn place(key: u64) -> usize {
    (key >> (KEY_BITS - PLACE_BITS)) as usize % PLACES
}

/// A hash of order and execution, not 0.
#[inline]
fn key(listing: u32, order: &OrderRecord) -> u64 {
    let words = order.oid.chunks_exact(8).chain(order.id2.chunks_exact(8));
    let words = words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    // One multiplication is enough: ids that differ in one word differ before it.
    let folded = words.fold(u64::from(listing), |folded, word| folded.rotate_left(23) ^ word);
    let hash = folded.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash >> (64 - KEY_BITS) | 1
}

impl State for RecentExecutions {
    fn put(&self, out: &mut Vec<u8>) {
        self.keys.iter().copied().filter(|key| *key != 0).collect::<Vec<u64>>().put(out);
    }

    fn get(input: &mut &[u8]) -> Option<Self> {
        let mut this = Self::default();
        for key in Vec::<u64>::get(input)? {
            this.keys[place(key)] = key;
        }
        Some(this)
    }
}
