//! Sequences of tags seen before. The messages of a feed have few of them, so that a message is
//! compared with the one expected instead of read tag by tag: only where they differ it is read.
//!
//! ```text
//! message  8=FIX.4.4|9=128|35=D|38=100|…|10=203|
//! tags     8=        9=    35=  38=    …  10=       the text of the shape, all of it or nothing
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use super::data::RawFieldTags;
use super::plain::digits;

/// A sequence of tags.
#[derive(Debug, Clone)]
pub(crate) struct TagSequence {
    /// The number of this shape in the process; 0 means no shape. The number modulo `SHAPES` is its index.
    pub id: u64,
    hash: u64,
    pub tags: Vec<u32>,
    /// Tags and `=`, one after the other, and `PADDING` bytes.
    pub tag_text: Vec<u8>,
    pub text_len: usize,
    /// Bytes from the separator before each field to its value, and `PADDING` more.
    pub skips: Vec<u32>,
    /// The tag and `=` of each field as the first bytes of a word, which bytes these are, and how many.
    pub tag_words: Vec<(u64, u64, u32)>,
}

/// Bytes, or numbers, that may be read after the last.
const PADDING: usize = 64;

/// Fields of a shape, at most.
const FIELDS_MAX: usize = 512;

/// Shapes remembered, at most; a power of two.
pub(crate) const SHAPES: usize = 512;

/// Places of the look-up by tags, and how many of them are looked at for a shape.
const PLACES: usize = 4 * SHAPES;
const PROBES: usize = 8;

/// Number of message kinds that are distinguished by their keys.
const KEYS: usize = 1024;

/// When all places are used, one in this number of new shapes is remembered in place of the oldest: to make one costs
/// as much as to read ten messages.
const PATIENCE: u32 = 256;

/// The shapes of a stream of messages.
///
/// A shape is made when its tags occur for the second time, so that messages with unique tags make no shapes. A
/// message without a remembered shape is read tag by tag.
#[derive(Debug, Clone)]
pub(crate) struct TagSequenceCache {
    /// At most `SHAPES`, each at any place; the place of the next one to be replaced.
    list: Vec<TagSequence>,
    next_index: usize,
    /// New shapes met while all places were taken.
    refused_shapes: u32,
    /// Place and one more of the shape last seen for each key.
    expected_shapes: Box<[u16; KEYS]>,
    /// Place and one more of the shape whose tags hash to about here.
    by_hash: Box<[u16; PLACES]>,
    /// Hashes of tags met once.
    seen_hashes: Box<[u32; PLACES]>,
}

impl Default for TagSequenceCache {
    fn default() -> Self {
        TagSequenceCache {
            list: Vec::new(),
            next_index: 0,
            refused_shapes: 0,
            expected_shapes: Box::new([0; KEYS]),
            by_hash: Box::new([0; PLACES]),
            seen_hashes: Box::new([0; PLACES]),
        }
    }
}

impl TagSequenceCache {
    /// Returns the index of the shape last seen for `key`.
    #[inline(always)]
    pub(crate) fn expected_shape(&self, key: u32) -> Option<usize> {
        usize::from(self.expected_shapes[key as usize % KEYS]).checked_sub(1)
    }

    /// Returns the shape at an index that [`TagSequenceCache::expected_shape`] gave since the last
    /// [`TagSequenceCache::expect_tags`].
    #[inline(always)]
    pub(crate) fn shape_at(&self, index: usize) -> &TagSequence {
        &self.list[index]
    }

    /// Expects `tags`, which were read from a good message without data fields, for `key`. The place of
    /// their shape, if it is remembered.
    pub(crate) fn expect_tags(&mut self, key: u32, tags: &[u32], data: &RawFieldTags) -> Option<usize> {
        let hash = hash(tags);
        let index = self.find_shape(hash, tags).or_else(|| self.make_shape(hash, tags, data))?;
        self.expected_shapes[key as usize % KEYS] = index as u16 + 1;
        Some(index)
    }

    fn find_shape(&self, hash: u64, tags: &[u32]) -> Option<usize> {
        let mut places = probe_indices(hash).map(|probe| usize::from(self.by_hash[probe]).wrapping_sub(1));
        places.find(|&index| self.list.get(index).is_some_and(|s| s.hash == hash && s.tags == tags))
    }

    fn make_shape(&mut self, hash: u64, tags: &[u32], data: &RawFieldTags) -> Option<usize> {
        let seen_hash = &mut self.seen_hashes[hash as usize % PLACES];
        if *seen_hash != (hash >> 32) as u32 {
            *seen_hash = (hash >> 32) as u32;
            return None;
        }
        // Eight bytes hold a tag of seven digits and `=`.
        let is_simple_tag = |&tag: &u32| tag < 10_000_000 && data.data_of(tag).is_none();
        if tags.is_empty() || tags.len() > FIELDS_MAX || !tags.iter().all(is_simple_tag) {
            return None;
        }
        let index = self.next_index;
        if let Some(old_shape) = self.list.get(index) {
            self.refused_shapes += 1;
            if self.refused_shapes < PATIENCE {
                return None;
            }
            if let Some(probe) =
                probe_indices(old_shape.hash).find(|&probe| self.by_hash[probe] == index as u16 + 1)
            {
                self.by_hash[probe] = 0;
            }
            self.refused_shapes = 0;
            self.list[index] = TagSequence::new(index, hash, tags);
        } else {
            self.list.push(TagSequence::new(index, hash, tags));
        }
        self.next_index = (index + 1) % SHAPES;
        let free = probe_indices(hash).find(|&probe| self.by_hash[probe] == 0);
        self.by_hash[free.unwrap_or(hash as usize % PLACES)] = index as u16 + 1;
        Some(index)
    }
}

fn probe_indices(hash: u64) -> impl Iterator<Item = usize> {
    (0..PROBES).map(move |n| (hash as usize).wrapping_add(n) % PLACES)
}

/// Hashes the tags in four sums at a time, so that no multiplication waits for the previous multiplication.
fn hash(tags: &[u32]) -> u64 {
    let mix = |sum: u64, tag: u32| (sum ^ u64::from(tag)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let (fours, rest) = tags.as_chunks::<4>();
    let mut sums = [tags.len() as u64, 1, 2, 3];
    for four in fours {
        for (sum, &tag) in sums.iter_mut().zip(four) {
            *sum = mix(*sum, tag);
        }
    }
    let sum = rest.iter().fold(sums[0], |sum, &tag| mix(sum, tag));
    let sum = sums[1..]
        .iter()
        .fold(sum, |sum, &lane_sum| (sum ^ lane_sum).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(31));
    sum ^ sum >> 32
}

impl TagSequence {
    fn new(index: usize, hash: u64, tags: &[u32]) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        // Relaxed: the numbers need only differ.
        let id = (LAST.fetch_add(1, Ordering::Relaxed) + 1) * SHAPES as u64 + index as u64;
        let mut text = Vec::new();
        let mut words = Vec::with_capacity(tags.len());
        for tag in tags {
            let key_start = text.len();
            text.extend_from_slice(format!("{tag}=").as_bytes());
            let mut word = [0; 8];
            word[..text.len() - key_start].copy_from_slice(&text[key_start..]);
            let len = (text.len() - key_start) as u32;
            words.push((u64::from_le_bytes(word), u64::MAX >> (64 - 8 * len), len));
        }
        let text_len = text.len();
        text.resize(text_len + PADDING, 0);
        let mut skips: Vec<u32> = tags.iter().map(|&tag| digits(tag) + 2).collect();
        skips.resize(tags.len() + PADDING, 0);
        TagSequence { id, hash, tags: tags.to_vec(), tag_text: text, text_len, skips, tag_words: words }
    }
}
