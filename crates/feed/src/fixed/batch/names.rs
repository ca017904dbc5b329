//! What is told by text and comes again and again: names to ids, and the columns that are kept beside the fields.
//! Both are looked up by the column's bytes as they stand in the record; what is not found is made by the general
//! way, once.

use super::program::Slow;
use crate::block::{Block, Fixup, Names};
use crate::mapping::{FieldPlan, Message, Otherwise, Plan, json_string};
use unitape_codec::fixed::{Column, Record};
use unitape_model::id::{PROVISIONAL, VENUE_PROVISIONAL};
use unitape_model::{Dict, EventBuilder, Kind, LINE, Resolve, UnixNanos};

/// A column of up to 16 bytes as a name.
#[derive(Debug)]
pub(super) struct Name {
    column: u16,
    start: usize,
    masks: [u64; 2],
    table: Option<(usize, Option<Otherwise>)>,
    required: bool,
    dict: Dict,
    pub at: usize,
    /// Whether its id has 16 bits.
    pub short: bool,
    /// The one found last, and others by hash. The id is 0 where there is no name.
    last: Known,
    known: Vec<Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    key: [u64; 2],
    id: u32,
    there: bool,
}

const UNKNOWN: Known = Known { key: [0; 2], id: 0, there: false };

const NAMES: usize = 256;

impl Name {
    pub(super) fn new(field: &FieldPlan, column: u16, of: &Column, dict: Dict, at: u16) -> Option<Self> {
        let length = of.length();
        if length > 16 {
            return None;
        }
        let mask = |bytes: usize| if bytes == 0 { 0 } else { u64::MAX >> (64 - 8 * bytes.min(8)) };
        Some(Self {
            column,
            start: of.start(),
            masks: [mask(length), mask(length.saturating_sub(8))],
            table: field.table,
            required: field.required,
            dict,
            at: at.into(),
            short: dict == Dict::Venue,
            last: UNKNOWN,
            known: vec![UNKNOWN; NAMES],
        })
    }

    pub(super) fn reach(&self) -> usize {
        self.start + 16
    }

    pub(super) fn forget(&mut self) {
        self.last.there = false;
        self.known.iter_mut().for_each(|k| k.there = false);
    }

    /// The id of the name in `record`, if it has been seen in this block; 0 where there is none.
    #[inline]
    pub(super) fn find(&mut self, record: &[u8]) -> Option<u32> {
        let key = self.key(record);
        if self.last.there && self.last.key == key {
            return Some(self.last.id);
        }
        let known = self.known[slot(key)];
        if known.there && known.key == key {
            self.last = known;
            return Some(known.id);
        }
        None
    }

    /// Looks it up by the general way; `None` where that refuses it. Notes its place if the id is provisional.
    #[cold]
    pub(super) fn learn(
        &mut self,
        plan: &Plan,
        record: &[u8],
        fields: &Slow<'_>,
        names: &mut Names<'_>,
        frame: usize,
    ) -> Option<u32> {
        let key = self.key(record);
        let id = match fields.column(self.column) {
            None if self.required => return None,
            None => 0,
            Some(column) => {
                let mut scratch = Vec::new();
                let text = fields.text(column, &mut scratch);
                let text = match self.table {
                    None => Some(text),
                    Some((table, otherwise)) => match (plan.tables[table].get(text), otherwise) {
                        (Some(value), _) => Some(value),
                        (None, Some(Otherwise::Keep)) => Some(text),
                        (None, Some(Otherwise::Omit)) => None,
                        (None, None) => return None,
                    },
                };
                match text {
                    None => 0,
                    Some(text) => names.resolve(self.dict, text, frame + self.at).ok()?,
                }
            }
        };
        self.last = Known { key, id, there: true };
        self.known[slot(key)] = self.last;
        Some(id)
    }

    /// Notes the place of a provisional id that was found.
    #[inline]
    pub(super) fn note(&self, block: &mut Block, id: u32, frame: usize) {
        if id & PROVISIONAL != 0 {
            let at = (frame + self.at) as u32;
            block.fixups.push(Fixup { frame: frame as u32, at, dict: self.dict, id: id & !PROVISIONAL });
        }
    }

    #[inline]
    fn key(&self, record: &[u8]) -> [u64; 2] {
        let bytes: &[u8; 16] = record[self.start..self.start + 16].try_into().expect("sixteen bytes");
        let (first, second) = bytes.split_at(8);
        let word = |b: &[u8]| u64::from_le_bytes(b.try_into().expect("eight bytes"));
        [word(first) & self.masks[0], word(second) & self.masks[1]]
    }
}

/// An id as a venue's place has it.
#[inline]
pub(super) fn short_id(id: u32) -> u16 {
    id as u16 | if id & PROVISIONAL != 0 { VENUE_PROVISIONAL } else { 0 }
}

#[inline]
fn slot(key: [u64; 2]) -> usize {
    let mixed = (key[0] ^ key[1].rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as usize % NAMES
}

/// Columns that are kept, as the extension they make.
#[derive(Debug)]
pub(super) struct Kept {
    /// Name and column, in the order in which they are kept.
    columns: Vec<(String, u16)>,
    kind: Kind,
    /// Words of the record that hold all of these columns, and nothing else once masked.
    words: Vec<(usize, u64)>,
    found: Vec<Extension>,
    text: Vec<u8>,
    last: usize,
}

#[derive(Clone, Copy, Debug)]
struct Extension {
    key: [u64; WORDS_MAX],
    start: u32,
    /// Whole lines; 0 where none of the columns has a value.
    length: u32,
    there: bool,
}

const WORDS_MAX: usize = 4;
const EXTENSIONS: usize = 1024;

/// Extensions are kept for so many bytes, then all are made anew.
const KEPT_BYTES_MAX: usize = 1 << 20;

const NO_EXTENSION: Extension = Extension { key: [0; WORDS_MAX], start: 0, length: 0, there: false };

impl Kept {
    pub(super) fn new(columns: Vec<(String, u16)>, record: &Record, kind: Kind) -> Option<Self> {
        let mut bytes: Vec<usize> = Vec::new();
        for (_, column) in &columns {
            let of = &record.columns()[usize::from(*column)];
            if !of.is_text() {
                return None;
            }
            bytes.extend(of.start()..of.start() + of.length());
        }
        bytes.sort_unstable();
        bytes.dedup();
        let mut words: Vec<(usize, u64)> = Vec::new();
        for byte in bytes {
            match words.last_mut() {
                Some((start, mask)) if byte < *start + 8 => *mask |= 0xff << (8 * (byte - *start)),
                _ => words.push((byte, 0xff)),
            }
        }
        (words.len() <= WORDS_MAX).then(|| Self {
            columns,
            kind,
            words,
            found: vec![NO_EXTENSION; EXTENSIONS],
            text: Vec::new(),
            last: 0,
        })
    }

    pub(super) fn reach(&self) -> usize {
        self.words.last().map_or(0, |(start, _)| start + 8)
    }

    /// The extension of this record, if it was made before.
    #[inline]
    pub(super) fn find(&mut self, record: &[u8]) -> Option<&[u8]> {
        let key = self.key(record);
        let mut at = self.last;
        if self.found[at].key != key {
            at = extension_slot(&key);
        }
        let found = &self.found[at];
        if !found.there || found.key != key {
            return None;
        }
        self.last = at;
        Some(&self.text[found.start as usize..(found.start + found.length) as usize])
    }

    /// Makes it as the general way does; false where that would refuse it.
    #[cold]
    pub(super) fn learn(&mut self, record: &[u8], fields: &Slow<'_>) -> bool {
        if self.text.len() > KEPT_BYTES_MAX {
            self.text.clear();
            self.found.fill(NO_EXTENSION);
        }
        let mut frame = Vec::new();
        let mut event = EventBuilder::begin(&mut frame, self.kind, UnixNanos(0));
        let fixed = usize::from(event.schema().fixed_bytes);
        let mut scratch = Vec::new();
        for (name, column) in &self.columns {
            if let Some(column) = fields.column(*column)
                && event.unmapped(name, &json_string(fields.text(column, &mut scratch))).is_err()
            {
                return false;
            }
        }
        if event.finish(0).is_err() {
            return false;
        }
        let extension = &frame[fixed..];
        debug_assert!(extension.len().is_multiple_of(LINE));
        let key = self.key(record);
        let (start, length) = (self.text.len() as u32, extension.len() as u32);
        self.found[extension_slot(&key)] = Extension { key, start, length, there: true };
        self.text.extend_from_slice(extension);
        true
    }

    #[inline]
    fn key(&self, record: &[u8]) -> [u64; WORDS_MAX] {
        let mut key = [0; WORDS_MAX];
        for (key, (start, mask)) in key.iter_mut().zip(&self.words) {
            let bytes: [u8; 8] = record[*start..*start + 8].try_into().expect("eight bytes");
            *key = u64::from_le_bytes(bytes) & mask;
        }
        key
    }
}

#[inline]
fn extension_slot(key: &[u64; WORDS_MAX]) -> usize {
    let mixed = key.iter().fold(0u64, |h, k| (h.rotate_left(23) ^ k).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (mixed >> 54) as usize % EXTENSIONS
}
