//! Names and their ids.

use crate::id::{Dict, NAME_BYTES_MAX};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// Gives or finds the id of a name while an event is being built.
pub trait Resolve {
    /// The id of `name`, which will stand in the arena at byte `at` (for a fix-up, should it be provisional).
    fn resolve(&mut self, dict: Dict, name: &[u8], at: usize) -> Result<u32, crate::Refusal>;
}

/// All names of a tape with their ids, kept by whoever gives ids or has read the definitions.
///
/// ```
/// use unitape_model::{Dict, Dictionary};
/// let mut d = Dictionary::default();
/// assert_eq!(d.intern(Dict::Venue, b"XLON").unwrap(), (1, true));
/// assert_eq!(d.get(Dict::Venue, b"XLON"), Some(1));
/// assert_eq!(d.name(Dict::Venue, 1), Some("XLON"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    tables: [Table; Dict::COUNT],
}

#[derive(Clone, Debug, Default)]
struct Table {
    /// Seeded per process: names come from outside, and nothing that is written depends on the hash.
    hasher: DefaultHashBuilder,
    ids: HashTable<Entry>,
    /// End of each name in `text`; the name of id `n` ends at `ends[n - 1]`.
    ends: Vec<u32>,
    text: Vec<u8>,
}

impl Dictionary {
    /// The id of `name`.
    #[inline]
    pub fn get(&self, dict: Dict, name: &[u8]) -> Option<u32> {
        self.tables[dict as usize].get(name)
    }

    /// The name of `id`.
    pub fn name(&self, dict: Dict, id: u32) -> Option<&str> {
        let bytes = self.tables[dict as usize].name(id)?;
        Some(std::str::from_utf8(bytes).expect("only UTF-8 is interned"))
    }

    /// The id of `name`, given now if it has none; the flag says whether it is new.
    pub fn intern(&mut self, dict: Dict, name: &[u8]) -> Result<(u32, bool), crate::Refusal> {
        self.intern_up_to(dict, name, dict.id_max())
    }

    /// As [`Dictionary::intern`], with ids up to `id_max`: ids that stand for names elsewhere than in events, as
    /// a block's own do, need not fit an event's place for them.
    pub fn intern_up_to(
        &mut self,
        dict: Dict,
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

    /// Takes over a definition read from a tape; false when it does not follow the ones before it.
    pub fn define(&mut self, dict: Dict, id: u32, name: &[u8]) -> bool {
        let table = &mut self.tables[dict as usize];
        if id as usize <= table.ends.len() {
            return table.name(id) == Some(name);
        }
        let next = id as usize == table.ends.len() + 1 && std::str::from_utf8(name).is_ok();
        if next {
            table.insert(name, id);
        }
        next
    }

    /// How many names `dict` holds.
    pub fn len(&self, dict: Dict) -> u32 {
        self.tables[dict as usize].ends.len() as u32
    }

    /// Forgets all names and keeps the memory.
    pub fn clear(&mut self) {
        for t in self.tables.iter_mut().filter(|t| !t.ends.is_empty()) {
            t.ids.clear();
            t.ends.clear();
            t.text.clear();
        }
    }

    /// Whether no name is known.
    pub fn is_empty(&self) -> bool {
        self.tables.iter().all(|t| t.ends.is_empty())
    }
}

impl Resolve for Dictionary {
    fn resolve(&mut self, dict: Dict, name: &[u8], _at: usize) -> Result<u32, crate::Refusal> {
        self.intern(dict, name).map(|(id, _)| id)
    }
}

/// Whether `name` may be interned: UTF-8, 1 to [`NAME_BYTES_MAX`] bytes.
pub fn check_name(name: &[u8]) -> Result<(), crate::Refusal> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(crate::Refusal::NameLength);
    }
    std::str::from_utf8(name).map(|_| ()).map_err(|_| crate::Refusal::NotUtf8)
}

/// A name's id beside what tells it from other names, so that a look-up touches one cache line.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    id: u32,
}

/// All of a short name, or length and both ends of a long one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    first: u64,
    last: u64,
    len: u32,
}

impl Key {
    #[inline]
    fn of(name: &[u8]) -> Self {
        let four = |b: &[u8; 4]| u64::from(u32::from_le_bytes(*b));
        let (first, last) = match (name.first_chunk(), name.last_chunk()) {
            // The two overlap in the middle; the length says where.
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => match (name.first_chunk(), name.last_chunk()) {
                (Some(first), Some(last)) => (four(first), four(last)),
                _ => (name.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0),
            },
        };
        Self { first, last, len: name.len() as u32 }
    }

    /// Whether it says all of the name.
    #[inline]
    fn is_whole(self) -> bool {
        self.len <= 16
    }

    #[inline]
    fn hash(self, name: &[u8], hasher: &DefaultHashBuilder) -> u64 {
        if self.is_whole() { hasher.hash_one((self.first, self.last)) } else { hasher.hash_one(name) }
    }
}

impl Table {
    #[inline]
    fn get(&self, name: &[u8]) -> Option<u32> {
        let key = Key::of(name);
        let same = |e: &Entry| e.key == key && (key.is_whole() || self.name(e.id) == Some(name));
        self.ids.find(key.hash(name, &self.hasher), same).map(|e| e.id)
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
        let (ends, text, hasher) = (&self.ends, &self.text, &self.hasher);
        let key = Key::of(name);
        self.ids.insert_unique(key.hash(name, hasher), Entry { key, id }, |e| {
            let i = e.id as usize - 1;
            let start = if i == 0 { 0 } else { ends[i - 1] as usize };
            e.key.hash(&text[start..ends[i] as usize], hasher)
        });
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
                prop_assert_eq!(d.intern(Dict::Owner, n.as_bytes()).unwrap(), (id, id == next));
                prop_assert_eq!(d.name(Dict::Owner, id), Some(n.as_str()));
            }
            prop_assert_eq!(d.len(Dict::Owner) as usize, twin.len());
            prop_assert_eq!(d.get(Dict::Venue, b"A"), None);
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
                    prop_assert_eq!(d.get(Dict::Owner, name), (id != next).then_some(id));
                    prop_assert_eq!(d.intern(Dict::Owner, name).unwrap(), (id, id == next));
                }
            }
        }
    }

    #[test]
    fn definitions_follow_each_other() {
        let mut d = Dictionary::default();
        assert!(d.define(Dict::Venue, 1, b"XLON"));
        assert!(d.define(Dict::Venue, 1, b"XLON"), "the same again is fine");
        assert!(!d.define(Dict::Venue, 1, b"CHIX"));
        assert!(!d.define(Dict::Venue, 3, b"CHIX"));
        assert!(matches!(d.intern(Dict::Venue, b"\xff"), Err(crate::Refusal::NotUtf8)));
    }
}
