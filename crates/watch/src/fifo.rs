//! A map of bounded size that forgets its oldest entry first.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hash};

/// Slots are reused, so a map whose entries go quickly stays small and in cache.
pub(crate) struct FifoMap<K, V> {
    /// Seeded per process: keys come from outside, and nothing that is seen depends on the hash.
    hasher: DefaultHashBuilder,
    table: HashTable<u32>,
    slots: Vec<Slot<K, V>>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    max: usize,
    /// Entries forgotten because there was no room.
    pub bound_hit: u64,
}

struct Slot<K, V> {
    key: K,
    value: V,
    older: u32,
    newer: u32,
}

const NONE: u32 = u32::MAX;

impl<K: Copy + Eq + Hash, V: Copy> FifoMap<K, V> {
    /// A map of at most `max` entries.
    pub fn new(max: usize) -> Self {
        assert!((1..NONE as usize).contains(&max));
        Self {
            hasher: DefaultHashBuilder::default(),
            table: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            max,
            bound_hit: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    #[inline]
    pub fn get(&self, key: &K) -> Option<V> {
        let slots = &self.slots;
        let at = self.table.find(self.hasher.hash_one(key), |&i| slots[i as usize].key == *key)?;
        Some(slots[*at as usize].value)
    }

    /// Puts `value` under `key` as the newest entry, in place of an older one of the same key.
    #[inline]
    pub fn insert(&mut self, key: K, value: V) {
        self.remove(&key);
        if self.table.len() == self.max {
            let oldest = self.slots[self.oldest as usize].key;
            self.remove(&oldest);
            self.bound_hit += 1;
        }
        let slot = Slot { key, value, older: self.newest, newer: NONE };
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
        match self.newest {
            NONE => self.oldest = at,
            newest => self.slots[newest as usize].newer = at,
        }
        self.newest = at;
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.table.insert_unique(hasher.hash_one(key), at, |&i| hasher.hash_one(slots[i as usize].key));
    }

    #[inline]
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let slots = &self.slots;
        let found =
            self.table.find_entry(self.hasher.hash_one(key), |&i| slots[i as usize].key == *key).ok()?;
        let (at, _) = found.remove();
        let Slot { value, older, newer, .. } = self.slots[at as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        self.free.push(at);
        Some(value)
    }

    /// Forgets everything but the counter.
    pub fn clear(&mut self) {
        self.table.clear();
        self.slots.clear();
        self.free.clear();
        (self.oldest, self.newest) = (NONE, NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        /// The links of the order and the table could part company on a removal in the middle.
        #[test]
        fn agrees_with_a_list(ops in proptest::collection::vec((0u8..8, 0u8..3), 0..200)) {
            let mut map = FifoMap::new(4);
            let mut twin: Vec<(u8, usize)> = Vec::new();
            let mut lost = 0;
            for (i, (key, op)) in ops.into_iter().enumerate() {
                let at = twin.iter().position(|(k, _)| *k == key);
                match op {
                    0 => prop_assert_eq!(map.remove(&key), at.map(|at| twin.remove(at).1)),
                    _ => {
                        map.insert(key, i);
                        at.map(|at| twin.remove(at));
                        if twin.len() == 4 {
                            twin.remove(0);
                            lost += 1;
                        }
                        twin.push((key, i));
                    }
                }
                prop_assert_eq!((map.len(), map.bound_hit), (twin.len(), lost));
                for k in 0..8 {
                    prop_assert_eq!(map.get(&k), twin.iter().find(|(t, _)| *t == k).map(|t| t.1));
                }
            }
            map.clear();
            prop_assert_eq!((map.len(), map.get(&1)), (0, None));
        }
    }
}
