//! Names and their ids.

use crate::id::{NAME_BYTES_MAX, NameKind};
use crate::words;
use hashbrown::DefaultHashBuilder;
use std::hash::BuildHasher;

/// Gives or finds the id of a name while an event is being built.
pub trait NameResolver {
    /// The id of `name`, which will be in the arena at byte `at` (for a fix-up, should it be provisional).
    fn resolve(&mut self, dict: NameKind, name: &[u8], at: usize) -> Result<u32, crate::Refusal>;

    /// Takes back the name that was resolved last, to `id`, for byte `at`: appends it to `name`, and forgets the fix-up that it
    /// may have.
    fn take_back(
        &mut self,
        dict: NameKind,
        id: u32,
        at: usize,
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
}

#[derive(Clone, Debug, Default)]
struct DictionaryTable {
    seeds: HashSeeds,
    short: NameHashTable<ShortName>,
    long: NameHashTable<LongName>,
    /// End of each name in `text`; the name of id `n` ends at `ends[n - 1]`.
    ends: Vec<u32>,
    text: Vec<u8>,
}

impl Dictionary {
    /// The id of `name`.
    #[inline]
    pub fn get(&self, dict: NameKind, name: &[u8]) -> Option<u32> {
        self.tables[dict as usize].get(name)
    }

    /// Begins to look for a name of at most [`SOUGHT_BYTES`] of ASCII: the line where its id would be is asked for.
    /// `None` for any other.
    #[inline]
    pub fn start_lookup(&self, dict: NameKind, name: &[u8]) -> Option<NameLookup> {
        let table = &self.tables[dict as usize];
        if name.is_empty() || name.len() > SOUGHT_BYTES {
            return None;
        }
        let len = name.len() as u32;
        let (words, hash) = if name.len() <= SHORT_BYTES {
            let wanted = ShortName { word: words::word(name), len, id: 0 };
            let hash = wanted.hash(&table.seeds);
            table.short.ask_for(hash);
            ([wanted.word, 0, 0, 0], hash)
        } else {
            let wanted = LongName::of(name, 0, &table.seeds);
            let hash = wanted.hash(&table.seeds);
            table.long.ask_for(hash);
            (wanted.words, hash)
        };
        let ascii = words.iter().fold(0, |all, word| all | word) & NOT_ASCII == 0;
        ascii.then_some(NameLookup { words, hash, len, dict })
    }

    /// The id of a name that was sought in this dictionary.
    #[inline]
    pub fn finish_lookup(&self, s: &NameLookup) -> Option<u32> {
        let table = &self.tables[s.dict as usize];
        if s.len as usize <= SHORT_BYTES {
            table.short.find(s.hash, |e| e.word == s.words[0] && e.len == s.len)
        } else {
            table.long.find(s.hash, |e| e.words == s.words && e.len == s.len)
        }
    }

    /// The name of `id`.
    pub fn name(&self, dict: NameKind, id: u32) -> Option<&str> {
        // None is empty but those that were left out.
        let bytes = self.tables[dict as usize].name(id).filter(|name| !name.is_empty())?;
        Some(std::str::from_utf8(bytes).expect("only UTF-8 is interned"))
    }

    /// The id of `name`, given now if it has none; the flag says whether it is new.
    pub fn intern(&mut self, dict: NameKind, name: &[u8]) -> Result<(u32, bool), crate::Refusal> {
        self.intern_up_to(dict, name, dict.id_max())
    }

    /// As [`Dictionary::intern`], with ids up to `id_max`: ids that represent names elsewhere than in events, as
    /// a block's own do, need not fit an event's place for them.
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

    /// Leaves the ids before `id` that are not defined without a name, because their definitions are lost; gives
    /// how many. No more than [`LEFT_OUT_MAX`] at once.
    pub(crate) fn leave_out(&mut self, dict: NameKind, id: u32) -> u64 {
        let table = &mut self.tables[dict as usize];
        let wanted = id as usize - 1;
        if wanted <= table.ends.len() || wanted - table.ends.len() > LEFT_OUT_MAX {
            return 0;
        }
        let left_out = wanted - table.ends.len();
        let end = table.ends.last().copied().unwrap_or(0);
        table.ends.resize(wanted, end);
        left_out as u64
    }

    /// Takes over a definition whose id need not follow the ones before it: ids between have no name. Returns `false`, and changes
    /// nothing, if the id is 0, above `id_max` or not above all others, or if the name is no name.
    #[must_use]
    pub fn define_sparse(&mut self, dict: NameKind, id: u32, name: &[u8], id_max: u32) -> bool {
        let table = &mut self.tables[dict as usize];
        let is_next = id as usize > table.ends.len() && id <= id_max;
        if !is_next || check_name(name).is_err() || std::str::from_utf8(name).is_err() {
            return false;
        }
        let end = table.ends.last().copied().unwrap_or(0);
        table.ends.resize(id as usize - 1, end);
        table.insert(name, id);
        true
    }

    /// Takes over a definition read from a tape; false when it does not follow the ones before it.
    #[must_use]
    pub fn define(&mut self, dict: NameKind, id: u32, name: &[u8]) -> bool {
        let table = &mut self.tables[dict as usize];
        if id as usize <= table.ends.len() {
            return !name.is_empty() && table.name(id) == Some(name);
        }
        let next = id as usize == table.ends.len() + 1 && std::str::from_utf8(name).is_ok();
        if next {
            table.insert(name, id);
        }
        next
    }

    /// The number of names in `dict`.
    #[inline]
    pub fn len(&self, dict: NameKind) -> u32 {
        self.tables[dict as usize].ends.len() as u32
    }

    /// Forgets all names and keeps the memory.
    pub fn clear(&mut self) {
        for t in self.tables.iter_mut().filter(|t| !t.ends.is_empty()) {
            t.clear();
        }
    }

    /// Whether no name is known.
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
    /// Whose name it is.
    #[inline]
    pub fn dict(&self) -> NameKind {
        self.dict
    }

    /// The name itself.
    pub fn name<'a>(&self, room: &'a mut [u8; SOUGHT_BYTES]) -> &'a [u8] {
        let len = self.len as usize;
        let mut put = |at: usize, word: u64| room[at..at + 8].copy_from_slice(&word.to_le_bytes());
        // They lap over one another, and say the same where they do.
        let [a, b, c, d] = self.words;
        put(0, a);
        if len > 16 {
            put(8, b);
            put(len - 16, c);
            put(len - 8, d);
        } else if len > SHORT_BYTES {
            put(len - 8, b);
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

/// Whether `name` may be interned: UTF-8, 1 to [`NAME_BYTES_MAX`] bytes.
pub fn check_name(name: &[u8]) -> Result<(), crate::Refusal> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(crate::Refusal::NameLength);
    }
    std::str::from_utf8(name).map(|_| ()).map_err(|_| crate::Refusal::NotUtf8)
}

/// Makes the hash this process's own: names come from outside, and nothing that is written depends on it.
#[derive(Clone, Debug)]
struct HashSeeds {
    first: u64,
    last: u64,
    whole: DefaultHashBuilder,
}

impl Default for HashSeeds {
    fn default() -> Self {
        let whole = DefaultHashBuilder::default();
        Self { first: whole.hash_one(1u64), last: whole.hash_one(2u64), whole }
    }
}

impl HashSeeds {
    /// Both halves of the product, so that every bit of what goes in is in what comes out.
    #[inline]
    fn mix(&self, first: u64, last: u64) -> u64 {
        let product = u128::from(first ^ self.first) * u128::from(last ^ self.last);
        let folded = product as u64 ^ (product >> 64) as u64;
        // Where a half is what its seed is the product says nothing of the other; this does.
        folded ^ last.rotate_left(32)
    }
}

/// A name's id beside the bytes that distinguish it, so that a look-up touches one cache line, or two at most.
///
/// Short names are most of those that are looked up for every event, and the most of them; theirs are small, so that
/// a hundred thousand accounts stay near.
trait NameEntry: Copy + Default {
    /// 0 where there is none.
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
        let start = seeds.mix(a, b);
        if (17..=SOUGHT_BYTES as u32).contains(&self.len) { seeds.mix(start ^ c, d) } else { start }
    }
}

impl LongName {
    #[inline]
    fn of(name: &[u8], id: u32, seeds: &HashSeeds) -> Self {
        let word = |b: &[u8; 8]| u64::from_le_bytes(*b);
        let last = name.last_chunk().map_or(0, word);
        let words = match (name.first_chunk::<16>(), name.last_chunk::<16>()) {
            (Some(start), Some(end)) if (17..=SOUGHT_BYTES).contains(&name.len()) => {
                let (start, end) = (start.as_chunks().0, end.as_chunks().0);
                [word(&start[0]), word(&start[1]), word(&end[0]), last]
            }
            _ if name.len() <= 16 => [words::word(name), last, 0, 0],
            _ => [seeds.whole.hash_one(name), last, 0, 0],
        };
        Self { words, len: name.len() as u32, id }
    }
}

/// Entries by hash, one after the other where they meet; at most three of four places are taken.
#[derive(Clone, Debug)]
struct NameHashTable<E> {
    entries: Vec<E>,
    used: usize,
}

impl<E> Default for NameHashTable<E> {
    fn default() -> Self {
        Self { entries: Vec::new(), used: 0 }
    }
}

impl<E: NameEntry> NameHashTable<E> {
    /// The entry of this hash that `is` the one looked for.
    #[inline]
    fn find(&self, hash: u64, is: impl Fn(&E) -> bool) -> Option<u32> {
        let mask = self.entries.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        // Without any entries there is no place; otherwise one is free at least.
        while let Some(entry) = self.entries.get(at).filter(|e| e.id() != 0) {
            if is(entry) {
                return Some(entry.id());
            }
            at = (at + 1) & mask;
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
        if (self.used + 1) * 4 > self.entries.len() * 3 {
            let more = (self.entries.len() * 2).max(16);
            let old = std::mem::replace(&mut self.entries, vec![E::default(); more]);
            old.into_iter().filter(|e| e.id() != 0).for_each(|e| self.put(e, seeds));
        }
        self.put(entry, seeds);
        self.used += 1;
    }

    fn put(&mut self, entry: E, seeds: &HashSeeds) {
        let mask = self.entries.len() - 1;
        let mut at = entry.hash(seeds) as usize & mask;
        while self.entries[at].id() != 0 {
            at = (at + 1) & mask;
        }
        self.entries[at] = entry;
    }

    fn clear(&mut self) {
        if self.used > 0 {
            self.entries.fill(E::default());
            self.used = 0;
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

/// Brings a line near; a hint without effect on what the program computes.
#[inline]
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch touches no memory that the program can see; any address will do.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

impl DictionaryTable {
    #[inline]
    fn get(&self, name: &[u8]) -> Option<u32> {
        let len = name.len() as u32;
        if name.len() <= SHORT_BYTES {
            let wanted = ShortName { word: words::word(name), len, id: 0 };
            return self.short.find(wanted.hash(&self.seeds), |e| e.word == wanted.word && e.len == len);
        }
        let wanted = LongName::of(name, 0, &self.seeds);
        let same = |e: &LongName| {
            e.words == wanted.words
                && e.len == len
                && (name.len() <= SOUGHT_BYTES || self.name(e.id) == Some(name))
        };
        self.long.find(wanted.hash(&self.seeds), same)
    }

    #[inline]
    fn name(&self, id: u32) -> Option<&[u8]> {
        let i = (id as usize).checked_sub(1)?;
        let end = *self.ends.get(i)? as usize;
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        Some(&self.text[start..end])
    }

    fn insert(&mut self, name: &[u8], id: u32) {
        self.text.extend_from_slice(name);
        self.ends.push(u32::try_from(self.text.len()).expect("names under 4 GiB"));
        if name.len() <= SHORT_BYTES {
            let entry = ShortName { word: words::word(name), len: name.len() as u32, id };
            self.short.insert(entry, &self.seeds);
        } else {
            self.long.insert(LongName::of(name, id, &self.seeds), &self.seeds);
        }
    }

    fn clear(&mut self) {
        self.short.clear();
        self.long.clear();
        self.ends.clear();
        self.text.clear();
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
            for (at, byte) in others {
                let mut name = name.clone();
                let at = at % name.len();
                name[at] = byte;
                for name in [&name[..], &name[..=at], &name[at..]] {
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
