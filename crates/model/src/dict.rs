//! Names and their ids.

use crate::id::{NAME_BYTES_MAX, NameKind};
use crate::name_source::{LazyNames, NameSource};
use crate::words;
use hashbrown::DefaultHashBuilder;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Assigns or finds the id of a name while an event is being built.
pub trait NameResolver {
    /// Returns the id of `name`, which will be in the arena at byte `offset` (for a later correction of a provisional
    /// id).
    fn resolve(&mut self, dict: NameKind, name: &[u8], offset: usize) -> Result<u32, crate::Refusal>;

    /// Takes back the name that was resolved last, to `id`, for byte `offset`: appends it to `name`, and forgets the fix-up that it
    /// may have.
    fn take_back(
        &mut self,
        dict: NameKind,
        id: u32,
        offset: usize,
        name: &mut Vec<u8>,
    ) -> Result<(), crate::Refusal>;
}

/// All names of a tape with their ids, kept by the part that gives ids or has read the definitions.
///
/// ```
/// use unitape_model::{NameKind, Dictionary};
/// let mut d = Dictionary::default();
/// assert_eq!(d.intern(NameKind::Venue, b"XLON").unwrap(), (1, true));
/// assert_eq!(d.get(NameKind::Venue, b"XLON"), Some(1));
/// assert_eq!(d.name(NameKind::Venue, 1), Some("XLON"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    tables: [DictionaryTable; NameKind::COUNT],
    /// Names that are opened when they are asked for. Their ids come first, and are empty in the tables: a name that a table has
    /// is found without a look at this.
    lazy: Option<Arc<LazyNames>>,
}

#[derive(Clone, Debug, Default)]
struct DictionaryTable {
    seeds: HashSeeds,
    short_names: NameHashTable<ShortName>,
    long_names: NameHashTable<LongName>,
    /// End of each name in `name_text`; the name of id `n` ends at `ends[n - 1]`.
    ends: Vec<u32>,
    name_text: Vec<u8>,
}

impl Dictionary {
    /// Makes a dictionary of the names of `source`, which are opened one by one when they are asked for. Names that are interned
    /// later get the ids behind them.
    pub fn with_source(source: Arc<dyn NameSource>) -> Self {
        let (mut this, lazy) = (Self::default(), LazyNames::new(source));
        for kind in NameKind::ALL {
            this.tables[kind as usize].ends.resize(lazy.count(kind), 0);
        }
        this.lazy = Some(Arc::new(lazy));
        this
    }

    /// Looks up the id of `name`.
    #[inline]
    pub fn get(&self, dict: NameKind, name: &[u8]) -> Option<u32> {
        match (self.tables[dict as usize].get(name), &self.lazy) {
            (None, Some(lazy)) => lazy.find(dict, name),
            (found, _) => found,
        }
    }

    /// Begins a lookup of a name of at most [`SOUGHT_BYTES`] of ASCII, and prefetches the cache line of its entry.
    /// Returns `None` for any other name.
    #[inline]
    pub fn start_lookup(&self, dict: NameKind, name: &[u8]) -> Option<NameLookup> {
        let table = &self.tables[dict as usize];
        if name.is_empty() || name.len() > SOUGHT_BYTES {
            return None;
        }
        let len = name.len() as u32;
        let (words, hash) = if name.len() <= SHORT_BYTES {
            let short_name = ShortName { word: words::word(name), len, id: 0 };
            let hash = short_name.hash(&table.seeds);
            table.short_names.ask_for(hash);
            ([short_name.word, 0, 0, 0], hash)
        } else {
            let long_name = LongName::from_name(name, 0, &table.seeds);
            let hash = long_name.hash(&table.seeds);
            table.long_names.ask_for(hash);
            (long_name.words, hash)
        };
        let is_ascii = words.iter().fold(0, |all, word| all | word) & NOT_ASCII == 0;
        is_ascii.then_some(NameLookup { words, hash, len, dict })
    }

    /// Completes a lookup in this dictionary and returns the id of the name, if it has an id.
    #[inline]
    pub fn finish_lookup(&self, s: &NameLookup) -> Option<u32> {
        let table = &self.tables[s.dict as usize];
        let found = if s.len as usize <= SHORT_BYTES {
            table.short_names.find(s.hash, |e| e.word == s.words[0] && e.len == s.len)
        } else {
            table.long_names.find(s.hash, |e| e.words == s.words && e.len == s.len)
        };
        match (found, &self.lazy) {
            (None, Some(lazy)) => lazy.find(s.dict, s.name(&mut [0; SOUGHT_BYTES])),
            (found, _) => found,
        }
    }

    /// Looks up the name of `id`.
    pub fn name(&self, dict: NameKind, id: u32) -> Option<&str> {
        let bytes = self.tables[dict as usize].name(id)?;
        // A name is empty only if it was left out, or if a source has it.
        if bytes.is_empty() {
            return self.lazy.as_ref()?.name(dict, id);
        }
        Some(std::str::from_utf8(bytes).expect("only UTF-8 is interned"))
    }

    /// Returns the id of `name`, and assigns an id if it has none. The flag says whether the id is new.
    pub fn intern(&mut self, dict: NameKind, name: &[u8]) -> Result<(u32, bool), crate::Refusal> {
        self.intern_up_to(dict, name, dict.id_max())
    }

    /// Interns a name as [`Dictionary::intern`] does, with ids up to `id_max`. Ids that represent names outside events,
    /// such as a block's own, need not fit an event's field.
    pub fn intern_up_to(
        &mut self,
        dict: NameKind,
        name: &[u8],
        id_max: u32,
    ) -> Result<(u32, bool), crate::Refusal> {
        if let Some(id) = self.get(dict, name) {
            return Ok((id, false));
        }
        check_name(name)?;
        let table = &mut self.tables[dict as usize];
        let id = table.ends.len() as u32 + 1;
        if id > id_max {
            return Err(crate::Refusal::DictionaryFull);
        }
        table.insert(name, id);
        Ok((id, true))
    }

    /// Leaves the undefined ids before `id` without a name, because their definitions are lost. Returns their number,
    /// at most [`LEFT_OUT_MAX`] at once.
    pub(crate) fn leave_out(&mut self, dict: NameKind, id: u32) -> u64 {
        let table = &mut self.tables[dict as usize];
        let entry_index = id as usize - 1;
        if entry_index <= table.ends.len() || entry_index - table.ends.len() > LEFT_OUT_MAX {
            return 0;
        }
        let left_out = entry_index - table.ends.len();
        let text_end = table.ends.last().copied().unwrap_or(0);
        table.ends.resize(entry_index, text_end);
        left_out as u64
    }

    /// Takes over a definition whose id need not follow the ids before it: ids between have no name. Returns `false`
    /// and changes nothing if the id is 0, above `id_max` or not above all others, or if the name is invalid.
    #[must_use]
    pub fn define_sparse(&mut self, dict: NameKind, id: u32, name: &[u8], id_max: u32) -> bool {
        let table = &mut self.tables[dict as usize];
        let is_next = id as usize > table.ends.len() && id <= id_max;
        if !is_next || check_name(name).is_err() || std::str::from_utf8(name).is_err() {
            return false;
        }
        let end = table.ends.last().copied().unwrap_or(0);
        table.ends.resize(id as usize - 1, end);
        self.insert_defined(dict, id, name);
        true
    }

    /// Takes over a definition read from a tape. Returns false if it does not follow the definitions before it.
    #[must_use]
    pub fn define(&mut self, dict: NameKind, id: u32, name: &[u8]) -> bool {
        if id <= self.len(dict) {
            return self.name(dict, id).is_some_and(|known| known.as_bytes() == name);
        }
        let table = &mut self.tables[dict as usize];
        let is_next_id = id as usize == table.ends.len() + 1 && std::str::from_utf8(name).is_ok();
        if is_next_id {
            self.insert_defined(dict, id, name);
        }
        is_next_id
    }

    /// Adds a defined name. If an earlier id has the same name, it is found under that one.
    fn insert_defined(&mut self, dict: NameKind, id: u32, name: &[u8]) {
        let table = &mut self.tables[dict as usize];
        match &self.lazy {
            Some(lazy) if lazy.find(dict, name).is_some() => table.append_text(name),
            _ => table.insert(name, id),
        }
    }

    /// Counts the names in `dict`.
    #[inline]
    pub fn len(&self, dict: NameKind) -> u32 {
        self.tables[dict as usize].ends.len() as u32
    }

    /// Forgets all names, also those of a source, and keeps the memory.
    pub fn clear(&mut self) {
        self.lazy = None;
        for t in self.tables.iter_mut().filter(|t| !t.ends.is_empty()) {
            t.clear();
        }
    }

    /// Returns whether the dictionary has no names.
    pub fn is_empty(&self) -> bool {
        self.tables.iter().all(|t| t.ends.is_empty())
    }
}

/// A name on the way to its id, see [`Dictionary::start_lookup`].
#[derive(Clone, Copy, Debug)]
pub struct NameLookup {
    words: [u64; 4],
    hash: u64,
    len: u32,
    dict: NameKind,
}

impl NameLookup {
    /// Returns the kind of the name.
    #[inline]
    pub fn dict(&self) -> NameKind {
        self.dict
    }

    /// Copies the name into `room` and returns its bytes.
    pub fn name<'a>(&self, room: &'a mut [u8; SOUGHT_BYTES]) -> &'a [u8] {
        let len = self.len as usize;
        let mut write_word =
            |offset: usize, word: u64| room[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
        // They lap over one another, and say the same where they do.
        let [a, b, c, d] = self.words;
        write_word(0, a);
        if len > 16 {
            write_word(8, b);
            write_word(len - 16, c);
            write_word(len - 8, d);
        } else if len > SHORT_BYTES {
            write_word(len - 8, b);
        }
        &room[..len]
    }
}

impl NameResolver for Dictionary {
    fn resolve(&mut self, dict: NameKind, name: &[u8], _at: usize) -> Result<u32, crate::Refusal> {
        self.intern(dict, name).map(|(id, _)| id)
    }

    fn take_back(
        &mut self,
        dict: NameKind,
        id: u32,
        _at: usize,
        name: &mut Vec<u8>,
    ) -> Result<(), crate::Refusal> {
        name.extend_from_slice(self.name(dict, id).ok_or(crate::Refusal::TwoPublishers)?.as_bytes());
        Ok(())
    }
}

/// Checks that `name` may be interned: UTF-8, 1 to [`NAME_BYTES_MAX`] bytes.
pub fn check_name(name: &[u8]) -> Result<(), crate::Refusal> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(crate::Refusal::NameLength);
    }
    std::str::from_utf8(name).map(|_| ()).map_err(|_| crate::Refusal::NotUtf8)
}

/// Makes the hash this process's own: names come from outside, and nothing that is written depends on it.
#[derive(Clone, Debug)]
struct HashSeeds {
    first_seed: u64,
    last_seed: u64,
    hash_builder: DefaultHashBuilder,
}

impl Default for HashSeeds {
    fn default() -> Self {
        let hash_builder = DefaultHashBuilder::default();
        Self { first_seed: hash_builder.hash_one(1u64), last_seed: hash_builder.hash_one(2u64), hash_builder }
    }
}

impl HashSeeds {
    /// Mixes both halves of the product, so that every input bit affects the output.
    #[inline]
    fn mix(&self, first: u64, last: u64) -> u64 {
        let product = u128::from(first ^ self.first_seed) * u128::from(last ^ self.last_seed);
        let folded = product as u64 ^ (product >> 64) as u64;
        // If an input half equals its seed, the product says nothing about the other half; this rotation does.
        folded ^ last.rotate_left(32)
    }
}

/// A name's id beside the bytes that distinguish it, so that a lookup touches at most two cache lines, usually a single
/// one.
///
/// Most names, and most names looked up for every event, are short. Their entries are small, so that a hundred thousand
/// accounts stay in the cache.
trait NameEntry: Copy + Default {
    /// Returns the id of the entry; 0 if the slot is free.
    fn id(&self) -> u32;
    fn hash(&self, seeds: &HashSeeds) -> u64;
}

/// A name of at most eight bytes.
#[derive(Clone, Copy, Debug, Default)]
struct ShortName {
    word: u64,
    len: u32,
    id: u32,
}

/// A longer one: all of it up to [`SOUGHT_BYTES`], otherwise its hash and its end; the text says the rest. The hash is
/// of all of it, so that names from outside that are alike at their ends do not meet.
///
/// ```text
///  9 to 16 bytes   first 8, last 8, 0, 0
///  up to 32        first 8, the 8 after them, the last 8 but 8, last 8; they lap over one another
///  more            hash, last 8, 0, 0
/// ```
#[derive(Clone, Copy, Debug, Default)]
struct LongName {
    words: [u64; 4],
    len: u32,
    id: u32,
}

impl NameEntry for ShortName {
    #[inline]
    fn id(&self) -> u32 {
        self.id
    }

    #[inline]
    fn hash(&self, seeds: &HashSeeds) -> u64 {
        seeds.mix(self.word, 0)
    }
}

impl NameEntry for LongName {
    #[inline]
    fn id(&self) -> u32 {
        self.id
    }

    #[inline]
    fn hash(&self, seeds: &HashSeeds) -> u64 {
        let [a, b, c, d] = self.words;
        let hash_state = seeds.mix(a, b);
        if (17..=SOUGHT_BYTES as u32).contains(&self.len) { seeds.mix(hash_state ^ c, d) } else { hash_state }
    }
}

impl LongName {
    #[inline]
    fn from_name(name: &[u8], id: u32, seeds: &HashSeeds) -> Self {
        let word = |b: &[u8; 8]| u64::from_le_bytes(*b);
        let last_word = name.last_chunk().map_or(0, word);
        let words = match (name.first_chunk::<16>(), name.last_chunk::<16>()) {
            (Some(start), Some(end)) if (17..=SOUGHT_BYTES).contains(&name.len()) => {
                let (start, end) = (start.as_chunks().0, end.as_chunks().0);
                [word(&start[0]), word(&start[1]), word(&end[0]), last_word]
            }
            _ if name.len() <= 16 => [words::word(name), last_word, 0, 0],
            _ => [seeds.hash_builder.hash_one(name), last_word, 0, 0],
        };
        Self { words, len: name.len() as u32, id }
    }
}

/// Entries by hash, one after the other where they meet; at most three of four places are taken.
#[derive(Clone, Debug)]
struct NameHashTable<E> {
    entries: Vec<E>,
    used_slots: usize,
}

impl<E> Default for NameHashTable<E> {
    fn default() -> Self {
        Self { entries: Vec::new(), used_slots: 0 }
    }
}

impl<E: NameEntry> NameHashTable<E> {
    /// Finds the entry with this hash for which `is` returns true.
    #[inline]
    fn find(&self, hash: u64, is: impl Fn(&E) -> bool) -> Option<u32> {
        let mask = self.entries.len().wrapping_sub(1);
        let mut slot = hash as usize & mask;
        // Without any entries there is no place; otherwise one is free at least.
        while let Some(entry) = self.entries.get(slot).filter(|e| e.id() != 0) {
            if is(entry) {
                return Some(entry.id());
            }
            slot = (slot + 1) & mask;
        }
        None
    }

    /// Brings the place of this hash near.
    #[inline]
    fn ask_for(&self, hash: u64) {
        if let Some(entry) = self.entries.get(hash as usize & self.entries.len().wrapping_sub(1)) {
            prefetch(std::ptr::from_ref(entry).cast());
        }
    }

    fn insert(&mut self, entry: E, seeds: &HashSeeds) {
        if (self.used_slots + 1) * 4 > self.entries.len() * 3 {
            let new_capacity = (self.entries.len() * 2).max(16);
            let old_entries = std::mem::replace(&mut self.entries, vec![E::default(); new_capacity]);
            old_entries.into_iter().filter(|e| e.id() != 0).for_each(|e| self.insert_entry(e, seeds));
        }
        self.insert_entry(entry, seeds);
        self.used_slots += 1;
    }

    fn insert_entry(&mut self, entry: E, seeds: &HashSeeds) {
        let mask = self.entries.len() - 1;
        let mut slot = entry.hash(seeds) as usize & mask;
        while self.entries[slot].id() != 0 {
            slot = (slot + 1) & mask;
        }
        self.entries[slot] = entry;
    }

    fn clear(&mut self) {
        if self.used_slots > 0 {
            self.entries.fill(E::default());
            self.used_slots = 0;
        }
    }
}

/// Ids that may be left without a name at once.
const LEFT_OUT_MAX: usize = 1 << 20;

/// Names up to this length are short.
const SHORT_BYTES: usize = 8;

/// Names up to this length are distinguished by their entry alone, and may be sought.
pub const SOUGHT_BYTES: usize = 32;

const NOT_ASCII: u64 = 0x8080_8080_8080_8080;

/// Prefetches a cache line; a hint that does not affect results.
#[inline]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch touches no memory that the program can see; any address will do.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

impl DictionaryTable {
    #[inline]
    fn get(&self, name: &[u8]) -> Option<u32> {
        let len = name.len() as u32;
        if name.len() <= SHORT_BYTES {
            let short_name = ShortName { word: words::word(name), len, id: 0 };
            return self
                .short_names
                .find(short_name.hash(&self.seeds), |e| e.word == short_name.word && e.len == len);
        }
        let long_name = LongName::from_name(name, 0, &self.seeds);
        let is_same_name = |e: &LongName| {
            e.words == long_name.words
                && e.len == len
                && (name.len() <= SOUGHT_BYTES || self.name(e.id) == Some(name))
        };
        self.long_names.find(long_name.hash(&self.seeds), is_same_name)
    }

    #[inline]
    fn name(&self, id: u32) -> Option<&[u8]> {
        let i = (id as usize).checked_sub(1)?;
        let text_end = *self.ends.get(i)? as usize;
        let text_start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        Some(&self.name_text[text_start..text_end])
    }

    fn append_text(&mut self, name: &[u8]) {
        self.name_text.extend_from_slice(name);
        self.ends.push(u32::try_from(self.name_text.len()).expect("names under 4 GiB"));
    }

    fn insert(&mut self, name: &[u8], id: u32) {
        self.append_text(name);
        if name.len() <= SHORT_BYTES {
            let entry = ShortName { word: words::word(name), len: name.len() as u32, id };
            self.short_names.insert(entry, &self.seeds);
        } else {
            self.long_names.insert(LongName::from_name(name, id, &self.seeds), &self.seeds);
        }
    }

    fn clear(&mut self) {
        self.short_names.clear();
        self.long_names.clear();
        self.ends.clear();
        self.name_text.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn agrees_with_a_plain_map(names in proptest::collection::vec("[A-C]{1,3}", 0..60)) {
            let (mut d, mut twin) = (Dictionary::default(), HashMap::new());
            for n in &names {
                let next = twin.len() as u32 + 1;
                let id = *twin.entry(n.clone()).or_insert(next);
                prop_assert_eq!(d.intern(NameKind::Owner, n.as_bytes()).unwrap(), (id, id == next));
                prop_assert_eq!(d.name(NameKind::Owner, id), Some(n.as_str()));
            }
            prop_assert_eq!(d.len(NameKind::Owner) as usize, twin.len());
            prop_assert_eq!(d.get(NameKind::Venue, b"A"), None);
        }
    }

    proptest! {
        /// Names of every length around where a key stops holding all of a name, alike but for one byte.
        #[test]
        fn names_that_differ_in_one_byte_are_different(
            name in proptest::collection::vec(b'a'..=b'c', 1..40),
            others in proptest::collection::vec((0usize..40, b'a'..=b'c'), 0..40),
        ) {
            let (mut d, mut twin) = (Dictionary::default(), HashMap::new());
            for (raw_index, byte) in others {
                let mut name = name.clone();
                let index = raw_index % name.len();
                name[index] = byte;
                for name in [&name[..], &name[..=index], &name[index..]] {
                    let next = twin.len() as u32 + 1;
                    let id = *twin.entry(name.to_vec()).or_insert(next);
                    prop_assert_eq!(d.get(NameKind::Owner, name), (id != next).then_some(id));
                    prop_assert_eq!(d.intern(NameKind::Owner, name).unwrap(), (id, id == next));
                    let sought = d.start_lookup(NameKind::Owner, name);
                    prop_assert_eq!(sought.is_some(), name.len() <= SOUGHT_BYTES);
                    if let Some(s) = sought {
                        prop_assert_eq!(d.finish_lookup(&s), Some(id));
                        let mut room = [0; SOUGHT_BYTES];
                        prop_assert_eq!(s.name(&mut room), name);
                    }
                }
            }
        }
    }

    #[test]
    fn definitions_follow_each_other() {
        let mut d = Dictionary::default();
        assert!(d.define(NameKind::Venue, 1, b"XLON"));
        assert!(d.define(NameKind::Venue, 1, b"XLON"), "the same again is fine");
        assert!(!d.define(NameKind::Venue, 1, b"CHIX"));
        assert!(!d.define(NameKind::Venue, 3, b"CHIX"));
        assert!(matches!(d.intern(NameKind::Venue, b"\xff"), Err(crate::Refusal::NotUtf8)));
    }
}
