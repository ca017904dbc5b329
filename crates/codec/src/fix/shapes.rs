//! Sequences of tags seen before. The messages of a feed have few of them, so that a message is
//! compared with the one expected instead of read tag by tag: only where they differ it is read.
//!
//! ```text
//! message  8=FIX.4.4|9=128|35=D|38=100|…|10=203|
//! tags     8=        9=    35=  38=    …  10=       the text of the shape, all of it or nothing
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use super::data::DataTags;
use super::group::digits;

/// A sequence of tags.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    /// A number that no other shape of this process has; none is 0.
    pub id: u64,
    pub tags: Vec<u32>,
    /// Tags and `=`, one after the other, and `PADDING` bytes.
    pub text: Vec<u8>,
    pub text_len: usize,
    /// Bytes from the separator before each field to its value, and `PADDING` more.
    pub skips: Vec<u32>,
    /// The tag and `=` of each field as the first bytes of a word, which bytes these are, and how many.
    pub words: Vec<(u64, u64, u32)>,
}

/// Bytes, or numbers, that may be read behind the last.
const PADDING: usize = 64;

/// Fields of a shape, at most.
const FIELDS_MAX: usize = 512;

/// Shapes remembered, at most.
const SHAPES: usize = 64;

/// The shapes of a stream of messages.
#[derive(Debug, Clone)]
pub(crate) struct Shapes {
    /// At most `SHAPES`, each at any place; the place of the next one to be replaced.
    list: Vec<Shape>,
    next: usize,
    /// Place and one more of the shape last seen for each key.
    expected: [u8; 256],
}

impl Default for Shapes {
    fn default() -> Self {
        Shapes { list: Vec::new(), next: 0, expected: [0; 256] }
    }
}

impl Shapes {
    /// The place of the shape last seen for `key`.
    #[inline(always)]
    pub(crate) fn expected(&self, key: u8) -> Option<usize> {
        usize::from(self.expected[usize::from(key)]).checked_sub(1)
    }

    /// The shape at a place that [`Shapes::expected`] gave since the last [`Shapes::learn`].
    #[inline(always)]
    pub(crate) fn at(&self, place: usize) -> &Shape {
        &self.list[place]
    }

    /// Expects `tags`, which were read from a good message without data fields, for `key`.
    pub(crate) fn learn(&mut self, key: u8, tags: &[u32], data: &DataTags) {
        let known = self.list.iter().position(|shape| shape.tags == tags);
        let place = match known {
            Some(place) => place,
            None => {
                // Eight bytes hold a tag of seven digits and `=`.
                let plain = |&tag: &u32| tag < 10_000_000 && data.data_of(tag).is_none();
                if tags.len() > FIELDS_MAX || !tags.iter().all(plain) {
                    return;
                }
                let place = self.next;
                self.next = (place + 1) % SHAPES;
                if place == self.list.len() {
                    self.list.push(Shape::new(tags));
                } else {
                    self.list[place] = Shape::new(tags);
                }
                place
            }
        };
        self.expected[usize::from(key)] = place as u8 + 1;
    }
}

impl Shape {
    fn new(tags: &[u32]) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        // Relaxed: the numbers need only differ.
        let id = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let mut text = Vec::new();
        let mut words = Vec::with_capacity(tags.len());
        for tag in tags {
            let start = text.len();
            text.extend_from_slice(format!("{tag}=").as_bytes());
            let mut word = [0; 8];
            word[..text.len() - start].copy_from_slice(&text[start..]);
            let len = (text.len() - start) as u32;
            words.push((u64::from_le_bytes(word), u64::MAX >> (64 - 8 * len), len));
        }
        let text_len = text.len();
        text.resize(text_len + PADDING, 0);
        let mut skips: Vec<u32> = tags.iter().map(|&tag| digits(tag) + 2).collect();
        skips.resize(tags.len() + PADDING, 0);
        Shape { id, tags: tags.to_vec(), text, text_len, skips, words }
    }
}
