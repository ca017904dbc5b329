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
        if self.slots.len() > self.entries_max || self.queues[EntryRank::Spent as usize].len > self.spent_max
        {
            return Err(StateFault);
        }
        let mut is_free = vec![false; self.slots.len()];
        for slot in &self.free_slots {
            let is_free = is_free.get_mut(*slot as usize).ok_or(StateFault)?;
            if std::mem::replace(is_free, true) {
                return Err(StateFault);
            }
        }
        self.check_queues(is_free)?;
        self.index.clear();
        let (slots, hasher) = (&self.slots, &self.hasher);
        let hash = |slot: &u32| hasher.hash_one(slots[*slot as usize].key);
        for slot in self.queues.iter().flat_map(|queue| linked_slots(slots, *queue)) {
            let key = slots[slot as usize].key;
            if self.index.find(hash(&slot), |other| slots[*other as usize].key == key).is_some() {
                return Err(StateFault);
            }
            self.index.insert_unique(hash(&slot), slot, hash);
        }
        Ok(())
    }
}

/// Returns the slots of a queue whose links were checked, the oldest first.
fn linked_slots<K, V>(slots: &[TableSlot<K, V>], queue: TableQueue) -> impl Iterator<Item = u32> {
    let newer = |slot: &u32| Some(slots[*slot as usize].newer).filter(|newer| *newer != NONE);
    std::iter::successors(Some(queue.oldest).filter(|oldest| *oldest != NONE), newer)
}

impl<K, V> BoundedTable<K, V> {
    /// Checks loaded queues: each slot that is not free must be in the queue of its rank, once, with links both ways.
    fn check_queues(&self, mut is_passed: Vec<bool>) -> Result<(), StateFault> {
        for (rank, queue) in [EntryRank::Spent, EntryRank::Kept].into_iter().zip(&self.queues) {
            let (mut older, mut next, mut count) = (NONE, queue.oldest, 0);
            while next != NONE {
                // A slot that is passed twice is free, in both queues, or in a cycle.
                let is_passed = is_passed.get_mut(next as usize).ok_or(StateFault)?;
                let slot = &self.slots[next as usize];
                if std::mem::replace(is_passed, true) || slot.rank != rank || slot.older != older {
                    return Err(StateFault);
                }
                (older, next, count) = (next, slot.newer, count + 1);
            }
            if queue.newest != older || queue.len != count {
                return Err(StateFault);
            }
        }
        if is_passed.into_iter().all(|is_passed| is_passed) { Ok(()) } else { Err(StateFault) }
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

    /// Returns the entry in `slot`, also if it was removed since. Returns `None` if there is no such slot.
    #[inline]
    pub fn get_checked(&self, slot: u32) -> Option<&V> {
        self.slots.get(slot as usize).map(|slot| &slot.value)
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

    type SmallTable = BoundedTable<u32, u32>;
    /// The name of a damage, and what does it.
    type Damage = (&'static str, fn(&mut SmallTable));

    /// Returns a table with kept entries, spent entries and a free slot.
    fn sample() -> SmallTable {
        let mut table = BoundedTable::new(6, 2);
        for key in 0..5 {
            table.insert(key, 10 * key, if key % 2 == 0 { EntryRank::Kept } else { EntryRank::Spent });
        }
        table.remove(table.find(&2).unwrap());
        table
    }

    fn load(bytes: &[u8]) -> Result<SmallTable, StateFault> {
        let mut table = BoundedTable::new(6, 2);
        let mut reader = StateReader::new(bytes);
        table.load(&mut reader)?;
        reader.finish()?;
        Ok(table)
    }

    /// Returns whether the damaged table loads.
    fn loads(damage: impl Fn(&mut SmallTable)) -> bool {
        let (mut table, mut bytes) = (sample(), Vec::new());
        damage(&mut table);
        table.save(&mut bytes);
        load(&bytes).is_ok()
    }

    /// A snapshot with a right checksum and wrong links made the watch panic, or remove the oldest entry for ever.
    #[test]
    fn links_that_contradict_each_other_do_not_load() {
        assert!(loads(|_| {}));
        // Slots: 0 kept, 1 spent, 2 free, 3 spent, 4 kept.
        let damages: [Damage; 16] = [
            ("a link out of range", |table| table.slots[0].newer = 9),
            ("a back link out of range", |table| table.slots[0].older = 9),
            ("a cycle", |table| table.slots[4].newer = 0),
            ("a slot that follows itself", |table| table.slots[4].newer = 4),
            ("a back link to another slot", |table| table.slots[4].older = 1),
            ("the other queue", |table| table.slots[0].newer = 3),
            ("a rank of the other queue", |table| table.slots[4].rank = EntryRank::Spent),
            ("an oldest out of range", |table| table.queues[1].oldest = 5),
            ("an oldest in the middle", |table| table.queues[1].oldest = 4),
            ("a newest in the middle", |table| table.queues[1].newest = 0),
            ("a count too many", |table| table.queues[0].len = 3),
            ("counts that cancel out", |table| (table.queues[0].len, table.queues[1].len) = (3, 1)),
            ("counts whose sum is too large", |table| {
                (table.queues[0].len, table.queues[1].len) = (5, usize::MAX)
            }),
            ("a slot that is free twice", |table| table.free_slots.push(2)),
            ("a slot that is free and linked", |table| table.free_slots.push(0)),
            ("two entries of one key", |table| table.slots[4].key = 0),
        ];
        for (name, damage) in damages {
            assert!(!loads(damage), "{name}");
        }
        assert!(!loads(|table| table.free_slots[0] = 5), "a free slot out of range");
        assert!(!loads(|table| table.free_slots.clear()), "a slot in no queue");
    }

    /// A table with more slots than it may have would hand out a slot number that means `none`.
    #[test]
    fn a_table_that_is_too_large_does_not_load() {
        for (entries_max, spent_max) in [(4, 2), (6, 1)] {
            let (mut table, mut bytes) = (SmallTable::new(entries_max, spent_max), Vec::new());
            sample().save(&mut bytes);
            assert_eq!(
                table.load(&mut StateReader::new(&bytes)),
                Err(StateFault),
                "{entries_max} {spent_max}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        /// Fails if any bytes make a table that panics or loops.
        #[test]
        fn changed_bytes_load_as_a_sound_table_or_not_at_all(
            changes in proptest::collection::vec((any::<proptest::sample::Index>(), 0u8..8), 1..4),
        ) {
            let mut bytes = Vec::new();
            sample().save(&mut bytes);
            for (index, byte) in changes {
                let index = index.index(bytes.len());
                bytes[index] = byte.wrapping_sub(1);
            }
            if let Ok(mut table) = load(&bytes) {
                for key in 0..20 {
                    table.insert(key, key, if key % 3 == 0 { EntryRank::Spent } else { EntryRank::Kept });
                }
                while let Some(slot) = table.oldest(EntryRank::Kept).or(table.oldest(EntryRank::Spent)) {
                    table.remove(slot);
                }
                prop_assert_eq!(table.len(), 0);
            }
        }
    }

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
