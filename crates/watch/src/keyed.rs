//! One state a key, of a bounded number.

use crate::state::{StateFault, StateReader, StateValue, WatchState};
use crate::table::{BoundedTable, EntryRank};
use std::hash::Hash;

/// States kept at most; the oldest is forgotten first.
const STATES_MAX: usize = 1 << 20;

/// A state for each key.
pub(crate) struct KeyedStates<K, V> {
    table: BoundedTable<K, V>,
}

impl<K: Copy + Eq + Hash, V> KeyedStates<K, V> {
    pub fn new() -> Self {
        Self { table: BoundedTable::new(STATES_MAX, 0) }
    }

    /// Returns the state of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.table.find(key).map(|slot| self.table.get(slot))
    }

    /// Returns the state of a key for changes.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.table.find(key).map(|slot| self.table.get_mut(slot))
    }

    /// Returns the state of a key, a new one if it has none.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let slot = match self.table.find(&key) {
            Some(slot) => slot,
            None => self.table.insert(key, make(), EntryRank::Kept),
        };
        self.table.get_mut(slot)
    }

    /// Sets the state of a key, which becomes the newest.
    pub fn set(&mut self, key: K, state: V) {
        self.table.insert(key, state, EntryRank::Kept);
    }

    /// Forgets the state of a key.
    pub fn remove(&mut self, key: &K) {
        if let Some(slot) = self.table.find(key) {
            self.table.remove(slot);
        }
    }

    /// States kept now.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// States forgotten because there was no room.
    pub fn bound_hit(&self) -> u64 {
        self.table.forgotten_entries[EntryRank::Kept as usize]
    }

    /// Forgets everything but the counters.
    pub fn clear(&mut self) {
        self.table.clear();
    }
}

impl<K: StateValue + Copy + Eq + Hash, V: StateValue> WatchState for KeyedStates<K, V> {
    fn save(&self, out: &mut Vec<u8>) {
        self.table.save(out);
    }

    fn load(&mut self, input: &mut StateReader<'_>) -> Result<(), StateFault> {
        self.table.load(input)
    }
}
