//! The sessions of a block, found by the names of the two that talk.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;
use unitape_model::words;

/// The sessions of a block: found by name, each with its latest run.
#[derive(Debug, Default)]
pub struct SessionIndex {
    session_id_by_name: HashTable<u32>,
    /// Seeded per process: names come from outside, and no output depends on the hash.
    hasher: DefaultHashBuilder,
    /// Some sessions by key, and their number and one more: each where its key says, the latest one there.
    keys: SessionNameCache,
    /// By session.
    pub(crate) latest_run_by_session: Vec<u32>,
    /// Runs before this one are closed: a mark of progress follows them.
    pub(crate) open_runs: usize,
}

/// The names of the two that talk in a session, if they are short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionNameKey {
    words: [u64; 2],
    lengths: [u8; 2],
}

impl SessionNameKey {
    /// Puts a name in its place; false if it is too long for it.
    #[inline]
    pub fn set_name(&mut self, i: usize, name: &[u8]) -> bool {
        (self.words[i], self.lengths[i]) = (words::word(name), name.len().min(9) as u8);
        name.len() <= 8
    }

    #[inline]
    fn slot_index(&self) -> usize {
        let mixed = self.words[0].rotate_left(29) ^ self.words[1];
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
    }
}

#[derive(Debug)]
struct SessionNameCache(Box<[(SessionNameKey, u32); 256]>);

impl Default for SessionNameCache {
    fn default() -> Self {
        Self(Box::new([(SessionNameKey::default(), 0); 256]))
    }
}

impl SessionIndex {
    #[inline]
    pub(crate) fn by_key(&self, key: &SessionNameKey) -> Option<usize> {
        let (stored_key, id) = &self.keys.0[key.slot_index()];
        (stored_key == key).then_some(*id as usize)?.checked_sub(1)
    }

    /// Has `key` find the session of this number.
    pub(crate) fn keep_key(&mut self, key: SessionNameKey, id: usize) {
        self.keys.0[key.slot_index()] = (key, id as u32 + 1);
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        if !self.latest_run_by_session.is_empty() {
            self.keys.0.fill(Default::default());
        }
        self.session_id_by_name.clear();
        self.latest_run_by_session.clear();
        self.open_runs = 0;
    }

    #[inline]
    pub(crate) fn id(&mut self, sessions: &mut Vec<Vec<u8>>, name: &[u8]) -> usize {
        let hash = self.hasher.hash_one(name);
        match self.session_id_by_name.find(hash, |id| sessions[*id as usize] == name) {
            Some(&id) => id as usize,
            None => self.add_session(sessions, name, hash),
        }
    }

    #[cold]
    fn add_session(&mut self, sessions: &mut Vec<Vec<u8>>, name: &[u8], hash: u64) -> usize {
        // The name is in every mark of progress: it must be short, and come back from there as it was.
        if name.len() > SESSION_BYTES_MAX || std::str::from_utf8(name).is_err() {
            let name = format!("blake3:{}", blake3::hash(name).to_hex());
            return self.id(sessions, name.as_bytes());
        }
        let id = sessions.len();
        sessions.push(name.to_vec());
        self.latest_run_by_session.push(u32::MAX);
        self.session_id_by_name
            .insert_unique(hash, id as u32, |id| self.hasher.hash_one(&sessions[*id as usize][..]));
        id
    }
}

/// Bytes of a session's name that are kept as received; a longer name is identified by its hash.
const SESSION_BYTES_MAX: usize = 128;
