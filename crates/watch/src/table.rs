//! A map of bounded size whose entries stay in their slots, and which forgets the oldest first.

use crate::state::{StateFault, StateReader, StateValue, WatchState, state_value, wrapped};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hash};

/// The worth of keeping an entry. Spent entries are forgotten before others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryRank {
    Spent = 0,
    Kept = 1,
}

wrapped!(EntryRank, u8, |rank| *rank as u8, |byte| match byte {
    0 => Some(EntryRank::Spent),
    1 => Some(EntryRank::Kept),
    _ => None,
});

/// Two queues in the order of arrival, one for each rank, over slots that are reused: a map whose entries leave quickly
/// stays small and in cache. A slot's number stays the same as long as its entry exists.
pub(crate) struct BoundedTable<K, V> {
    /// Seeded per process: keys come from outside, and nothing that is seen depends on the hash.
    hasher: DefaultHashBuilder,
    index: HashTable<u32>,
    slots: Vec<TableSlot<K, V>>,
    free_slots: Vec<u32>,
    queues: [TableQueue; 2],
    entries_max: usize,
    spent_max: usize,
    /// Entries forgotten because there was no room, by rank.
    pub forgotten_entries: [u64; 2],
}

struct TableSlot<K, V> {
    key: K,
    value: V,
    older: u32,
    newer: u32,
    rank: EntryRank,
}

#[derive(Clone, Copy)]
struct TableQueue {
    oldest: u32,
    newest: u32,
    len: usize,
}

const NONE: u32 = u32::MAX;
const EMPTY: TableQueue = TableQueue { oldest: NONE, newest: NONE, len: 0 };

state_value!(TableQueue { oldest, newest, len });

impl<K: StateValue, V: StateValue> StateValue for TableSlot<K, V> {
    fn write(&self, out: &mut Vec<u8>) {
        let Self { key, value, older, newer, rank } = self;
        key.write(out);
        value.write(out);
        (*older, *newer, *rank).write(out);
    }

    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
        let (key, value) = <(K, V)>::read(input)?;
        let (older, newer, rank) = <(u32, u32, EntryRank)>::read(input)?;
        Ok(Self { key, value, older, newer, rank })
    }
}

/// With the numbers of the slots, which other states name.
impl<K: StateValue + Copy + Eq + Hash, V: StateValue> WatchState for BoundedTable<K, V> {
    fn save(&self, out: &mut Vec<u8>) {
        self.slots.write(out);
        self.free_slots.write(out);
        self.queues.write(out);
        self.forgotten_entries.write(out);
    }

    fn load(&mut self, input: &mut StateReader<'_>) -> Result<(), StateFault> {
        self.slots.load(input)?;
        self.free_slots.load(input)?;
        self.queues.load(input)?;
        self.forgotten_entries.load(input)?;
        let mut is_used = vec![true; self.slots.len()];
        for slot in &self.free_slots {
            *is_used.get_mut(*slot as usize).ok_or(StateFault)? = false;
        }
        self.index.clear();
        let (slots, hasher) = (&self.slots, &self.hasher);
        let hash = |slot: &u32| hasher.hash_one(slots[*slot as usize].key);
        for slot in (0..slots.len() as u32).filter(|slot| is_used[*slot as usize]) {
            self.index.insert_unique(hash(&slot), slot, hash);
        }
        let linked: usize = self.queues.iter().map(|queue| queue.len).sum();
        if linked == self.index.len() && linked <= self.entries_max { Ok(()) } else { Err(StateFault) }
    }
}

impl<K: Copy + Eq + Hash, V> BoundedTable<K, V> {
    /// Makes a map of at most `max` entries, of which at most `spent_max` are spent.
    pub fn new(max: usize, spent_max: usize) -> Self {
        assert!((1..NONE as usize).contains(&max));
        Self {
            hasher: DefaultHashBuilder::default(),
            index: HashTable::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            queues: [EMPTY; 2],
            entries_max: max,
            spent_max,
            forgotten_entries: [0; 2],
        }
    }

    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Finds the slot of `key`.
    #[inline]
    pub fn find(&self, key: &K) -> Option<u32> {
        let slots = &self.slots;
        self.index.find(self.hasher.hash_one(key), |&i| slots[i as usize].key == *key).copied()
    }

    #[inline]
    pub fn get(&self, slot: u32) -> &V {
        &self.slots[slot as usize].value
    }

    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut V {
        &mut self.slots[slot as usize].value
    }

    /// Puts `value` under `key` as the newest of its rank. Replaces an older entry with the same key.
    #[inline]
    pub fn insert(&mut self, key: K, value: V, rank: EntryRank) -> u32 {
        let hash = self.hasher.hash_one(key);
        let slots = &self.slots;
        if let Some(&slot_index) = self.index.find(hash, |&i| slots[i as usize].key == key) {
            self.unlink_slot(slot_index);
            self.slots[slot_index as usize].value = value;
            self.link_slot(slot_index, rank);
            self.trim_entries();
            return slot_index;
        }
        if self.index.len() == self.entries_max {
            self.forget_entry(if self.queues[EntryRank::Spent as usize].len > 0 {
                EntryRank::Spent
            } else {
                EntryRank::Kept
            });
        }
        let slot = TableSlot { key, value, older: NONE, newer: NONE, rank };
        let slot_index = match self.free_slots.pop() {
            Some(free_index) => {
                self.slots[free_index as usize] = slot;
                free_index
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.index.insert_unique(hash, slot_index, |&i| hasher.hash_one(slots[i as usize].key));
        self.link_slot(slot_index, rank);
        self.trim_entries();
        slot_index
    }

    /// Moves the entry in `slot` to the new end of the queue of `rank`, if it is not of that rank already.
    #[inline]
    pub fn set_rank(&mut self, slot: u32, rank: EntryRank) {
        if self.slots[slot as usize].rank != rank {
            self.unlink_slot(slot);
            self.link_slot(slot, rank);
            self.trim_entries();
        }
    }

    /// Takes the entry in `slot` out.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        self.unlink_slot(slot);
        let (slots, hasher) = (&self.slots, &self.hasher);
        let entry = self.index.find_entry(hasher.hash_one(slots[slot as usize].key), |&i| i == slot);
        entry.expect("a slot that is in use").remove();
        self.free_slots.push(slot);
    }

    /// Forgets everything but the counters.
    pub fn clear(&mut self) {
        self.index.clear();
        self.slots.clear();
        self.free_slots.clear();
        self.queues = [EMPTY; 2];
    }

    /// Returns the slot of the oldest entry of a rank.
    pub fn oldest(&self, rank: EntryRank) -> Option<u32> {
        let oldest = self.queues[rank as usize].oldest;
        (oldest != NONE).then_some(oldest)
    }

    fn trim_entries(&mut self) {
        while self.queues[EntryRank::Spent as usize].len > self.spent_max {
            self.forget_entry(EntryRank::Spent);
        }
    }

    fn forget_entry(&mut self, rank: EntryRank) {
        self.remove(self.queues[rank as usize].oldest);
        self.forgotten_entries[rank as usize] += 1;
    }

    #[inline]
    fn unlink_slot(&mut self, slot_index: u32) {
        let TableSlot { older, newer, rank, .. } = self.slots[slot_index as usize];
        let queue = &mut self.queues[rank as usize];
        queue.len -= 1;
        match older {
            NONE => queue.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        match newer {
            NONE => queue.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
    }

    #[inline]
    fn link_slot(&mut self, slot_index: u32, rank: EntryRank) {
        let queue = &mut self.queues[rank as usize];
        let slot = &mut self.slots[slot_index as usize];
        (slot.older, slot.newer, slot.rank) = (queue.newest, NONE, rank);
        let newest = std::mem::replace(&mut queue.newest, slot_index);
        queue.len += 1;
        match newest {
            NONE => queue.oldest = slot_index,
            newest => self.slots[newest as usize].newer = slot_index,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        /// Fails if the links of the queues and the index disagree after a removal in the middle.
        #[test]
        fn agrees_with_a_list(ops in proptest::collection::vec((0u8..8, 0u8..6), 0..200)) {
            let mut table = BoundedTable::new(5, 2);
            let mut twin: Vec<(u8, usize, EntryRank)> = Vec::new();
            let mut forgotten = [0; 2];
            for (i, (key, op)) in ops.into_iter().enumerate() {
                let twin_index = twin.iter().position(|(k, ..)| *k == key);
                let rank = if op % 2 == 0 { EntryRank::Spent } else { EntryRank::Kept };
                match op {
                    0 => {
                        let slot = table.find(&key);
                        prop_assert_eq!(slot.map(|s| *table.get(s)), twin_index.map(|index| twin.remove(index).1));
                        slot.into_iter().for_each(|s| table.remove(s));
                    }
                    1 | 2 => {
                        if let (Some(slot), Some(index)) = (table.find(&key), twin_index) {
                            table.set_rank(slot, rank);
                            if twin[index].2 != rank {
                                let (k, v, _) = twin.remove(index);
                                twin.push((k, v, rank));
                            }
                        }
                    }
                    _ => {
                        table.insert(key, i, rank);
                        twin_index.map(|index| twin.remove(index));
                        if twin.len() == 5 {
                            let spent = twin.iter().position(|(.., r)| *r == EntryRank::Spent);
                            let (.., r) = twin.remove(spent.unwrap_or(0));
                            forgotten[r as usize] += 1;
                        }
                        twin.push((key, i, rank));
                    }
                }
                while twin.iter().filter(|(.., r)| *r == EntryRank::Spent).count() > 2 {
                    twin.remove(twin.iter().position(|(.., r)| *r == EntryRank::Spent).unwrap());
                    forgotten[0] += 1;
                }
                prop_assert_eq!((table.len(), table.forgotten_entries), (twin.len(), forgotten));
                for k in 0..8 {
                    let entry = table.find(&k).map(|s| *table.get(s));
                    prop_assert_eq!(entry, twin.iter().find(|(t, ..)| *t == k).map(|t| t.1));
                }
            }
            table.clear();
            prop_assert_eq!((table.len(), table.find(&1)), (0, None));
        }
    }
}
