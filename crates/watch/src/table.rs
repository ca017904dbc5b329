//! A map of bounded size whose entries stay in their slots, and which forgets the oldest first.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hash};

/// The worth of keeping an entry. Spent entries are forgotten before others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryRank {
    Spent = 0,
    Kept = 1,
}

/// Two queues in the order of arrival, one of each rank, over slots that are reused: a map whose entries go
/// quickly stays small and in cache. A slot's number stays the same as long as its entry is there.
pub(crate) struct BoundedTable<K, V> {
    /// Seeded per process: keys come from outside, and nothing that is seen depends on the hash.
    hasher: DefaultHashBuilder,
    index: HashTable<u32>,
    slots: Vec<TableSlot<K, V>>,
    free: Vec<u32>,
    queues: [TableQueue; 2],
    max: usize,
    spent_max: usize,
    /// Entries forgotten because there was no room, by rank.
    pub forgotten: [u64; 2],
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

impl<K: Copy + Eq + Hash, V> BoundedTable<K, V> {
    /// A map of at most `max` entries, `spent_max` of them spent.
    pub fn new(max: usize, spent_max: usize) -> Self {
        assert!((1..NONE as usize).contains(&max));
        Self {
            hasher: DefaultHashBuilder::default(),
            index: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            queues: [EMPTY; 2],
            max,
            spent_max,
            forgotten: [0; 2],
        }
    }

    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// The slot of `key`.
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

    /// Puts `value` under `key` as the newest of its rank, in place of an older one of the same key.
    #[inline]
    pub fn insert(&mut self, key: K, value: V, rank: EntryRank) -> u32 {
        let hash = self.hasher.hash_one(key);
        let slots = &self.slots;
        if let Some(&at) = self.index.find(hash, |&i| slots[i as usize].key == key) {
            self.unlink(at);
            self.slots[at as usize].value = value;
            self.link(at, rank);
            self.trim();
            return at;
        }
        if self.index.len() == self.max {
            self.forget(if self.queues[EntryRank::Spent as usize].len > 0 {
                EntryRank::Spent
            } else {
                EntryRank::Kept
            });
        }
        let slot = TableSlot { key, value, older: NONE, newer: NONE, rank };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.index.insert_unique(hash, at, |&i| hasher.hash_one(slots[i as usize].key));
        self.link(at, rank);
        self.trim();
        at
    }

    /// Moves the entry in `slot` to the new end of the queue of `rank`, if it is not of that rank already.
    #[inline]
    pub fn set_rank(&mut self, slot: u32, rank: EntryRank) {
        if self.slots[slot as usize].rank != rank {
            self.unlink(slot);
            self.link(slot, rank);
            self.trim();
        }
    }

    /// Takes the entry in `slot` out.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        self.unlink(slot);
        let (slots, hasher) = (&self.slots, &self.hasher);
        let found = self.index.find_entry(hasher.hash_one(slots[slot as usize].key), |&i| i == slot);
        found.expect("a slot that is in use").remove();
        self.free.push(slot);
    }

    /// Forgets everything but the counters.
    pub fn clear(&mut self) {
        self.index.clear();
        self.slots.clear();
        self.free.clear();
        self.queues = [EMPTY; 2];
    }

    fn trim(&mut self) {
        while self.queues[EntryRank::Spent as usize].len > self.spent_max {
            self.forget(EntryRank::Spent);
        }
    }

    fn forget(&mut self, rank: EntryRank) {
        self.remove(self.queues[rank as usize].oldest);
        self.forgotten[rank as usize] += 1;
    }

    #[inline]
    fn unlink(&mut self, at: u32) {
        let TableSlot { older, newer, rank, .. } = self.slots[at as usize];
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
    fn link(&mut self, at: u32, rank: EntryRank) {
        let queue = &mut self.queues[rank as usize];
        let slot = &mut self.slots[at as usize];
        (slot.older, slot.newer, slot.rank) = (queue.newest, NONE, rank);
        let newest = std::mem::replace(&mut queue.newest, at);
        queue.len += 1;
        match newest {
            NONE => queue.oldest = at,
            newest => self.slots[newest as usize].newer = at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        /// The links of the queues and the index could part company on a removal in the middle.
        #[test]
        fn agrees_with_a_list(ops in proptest::collection::vec((0u8..8, 0u8..6), 0..200)) {
            let mut table = BoundedTable::new(5, 2);
            let mut twin: Vec<(u8, usize, EntryRank)> = Vec::new();
            let mut lost = [0; 2];
            for (i, (key, op)) in ops.into_iter().enumerate() {
                let at = twin.iter().position(|(k, ..)| *k == key);
                let rank = if op % 2 == 0 { EntryRank::Spent } else { EntryRank::Kept };
                match op {
                    0 => {
                        let slot = table.find(&key);
                        prop_assert_eq!(slot.map(|s| *table.get(s)), at.map(|at| twin.remove(at).1));
                        slot.into_iter().for_each(|s| table.remove(s));
                    }
                    1 | 2 => {
                        if let (Some(slot), Some(at)) = (table.find(&key), at) {
                            table.set_rank(slot, rank);
                            if twin[at].2 != rank {
                                let (k, v, _) = twin.remove(at);
                                twin.push((k, v, rank));
                            }
                        }
                    }
                    _ => {
                        table.insert(key, i, rank);
                        at.map(|at| twin.remove(at));
                        if twin.len() == 5 {
                            let spent = twin.iter().position(|(.., r)| *r == EntryRank::Spent);
                            let (.., r) = twin.remove(spent.unwrap_or(0));
                            lost[r as usize] += 1;
                        }
                        twin.push((key, i, rank));
                    }
                }
                while twin.iter().filter(|(.., r)| *r == EntryRank::Spent).count() > 2 {
                    twin.remove(twin.iter().position(|(.., r)| *r == EntryRank::Spent).unwrap());
                    lost[0] += 1;
                }
                prop_assert_eq!((table.len(), table.forgotten), (twin.len(), lost));
                for k in 0..8 {
                    let found = table.find(&k).map(|s| *table.get(s));
                    prop_assert_eq!(found, twin.iter().find(|(t, ..)| *t == k).map(|t| t.1));
                }
            }
            table.clear();
            prop_assert_eq!((table.len(), table.find(&1)), (0, None));
        }
    }
}
