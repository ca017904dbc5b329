//! Names by the bytes of their column: an id that was looked up once is found again by what stands in the record.
//! What is not found is looked up by the general way, once in a block.

use super::program::Slow;
use crate::block::{Block, Fixup, Names};
use crate::mapping::{FieldPlan, Message, Otherwise, Plan};
use unitape_codec::fixed::{Column, Even, LANES, Rows};
use unitape_model::id::{PROVISIONAL, VENUE_PROVISIONAL};
use unitape_model::{Dict, Dictionary};

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
    /// By hash.
    known: Box<[Known; NAMES]>,
    /// The names of these.
    names: Box<[Text; NAMES]>,
    /// Which block is in hand; from 1.
    epoch: u32,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    key: [u64; 2],
    /// 0 where there is no name.
    id: u32,
    /// The block in which it was last good, 0 for none.
    epoch: u32,
}

/// A name, for a later block to see that the id is still its; longer ones are looked up anew.
#[derive(Clone, Copy, Debug)]
struct Text {
    text: [u8; NAME_BYTES],
    length: u8,
}

const NAME_BYTES: usize = 16;
const TOO_LONG: u8 = u8::MAX;
const UNKNOWN: Known = Known { key: [0; 2], id: 0, epoch: 0 };
const NO_TEXT: Text = Text { text: [0; NAME_BYTES], length: TOO_LONG };

const NAMES: usize = 1024;

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
            known: Box::new([UNKNOWN; NAMES]),
            names: Box::new([NO_TEXT; NAMES]),
            epoch: 1,
        })
    }

    /// A look-up takes 16 bytes.
    pub(super) fn reach(&self) -> usize {
        self.start + 16
    }

    /// A block begins: provisional ids are no more, others are looked at once more.
    pub(super) fn begin_block(&mut self) {
        self.epoch = match self.epoch.checked_add(1) {
            Some(epoch) => epoch,
            None => {
                self.known.fill(UNKNOWN);
                1
            }
        };
    }

    /// The id of the name in `record`, if it is known in this block; 0 where there is none.
    #[inline]
    pub(super) fn find(&mut self, record: &[u8], known: &Dictionary) -> Option<u32> {
        let key = self.key(record);
        let slot = self.slot(key);
        let found = &self.known[slot];
        if found.key != key || found.epoch != self.epoch && !self.renew(slot, known) {
            return None;
        }
        Some(self.known[slot].id)
    }

    /// The ids of many records; false where not all of them are known for good.
    #[inline]
    pub(super) fn find_all(&mut self, rows: Even<'_>, known: &Dictionary, ids: &mut [u32; LANES]) -> bool {
        let mut any = 0;
        if self.masks == [0xff, 0] {
            for (id, [byte]) in ids.iter_mut().zip(rows.column::<1>(self.start)) {
                let slot = usize::from(*byte);
                let found = &self.known[slot];
                *id = found.id;
                any |= *id;
                if found.epoch != self.epoch && !self.renew(slot, known) {
                    return false;
                }
            }
            return any & PROVISIONAL == 0;
        }
        for (id, bytes) in ids.iter_mut().zip(rows.column::<16>(self.start)) {
            let key = self.masked(bytes);
            let slot = self.slot(key);
            let found = &self.known[slot];
            *id = found.id;
            any |= *id;
            let other = (found.key[0] ^ key[0]) | (found.key[1] ^ key[1]);
            if (other | u64::from(found.epoch ^ self.epoch)) != 0 && (other != 0 || !self.renew(slot, known)) {
                return false;
            }
        }
        any & PROVISIONAL == 0
    }

    /// Whether a name found in an earlier block still has its id.
    #[cold]
    fn renew(&mut self, slot: usize, known: &Dictionary) -> bool {
        let dict = self.dict;
        let found = &mut self.known[slot];
        let name = &self.names[slot];
        // Ids that a block gave by itself are not of the dictionary; it has no name for them.
        let same = found.id == 0
            || name
                .text
                .get(..name.length.into())
                .is_some_and(|text| known.name(dict, found.id).is_some_and(|name| name.as_bytes() == text));
        let good = found.epoch != 0 && same;
        if good {
            found.epoch = self.epoch;
        }
        good
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
        let (mut kept, mut length) = ([0; NAME_BYTES], TOO_LONG);
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
                    Some(text) => {
                        if let Some(room) = kept.get_mut(..text.len()) {
                            room.copy_from_slice(text);
                            length = text.len() as u8;
                        }
                        names.resolve_now(self.dict, text, frame + self.at).ok()?
                    }
                }
            }
        };
        let slot = self.slot(key);
        self.known[slot] = Known { key, id, epoch: self.epoch };
        self.names[slot] = Text { text: kept, length };
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

    /// Where a name is looked for: one of a byte has a place of its own.
    #[inline]
    fn slot(&self, key: [u64; 2]) -> usize {
        if self.masks[0] == 0xff {
            return key[0] as usize % NAMES;
        }
        let mixed = (key[0] ^ key[1].rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 54) as usize % NAMES
    }

    #[inline]
    fn key(&self, record: &[u8]) -> [u64; 2] {
        self.masked(record[self.start..].first_chunk().expect("sixteen bytes"))
    }

    #[inline]
    fn masked(&self, bytes: &[u8; 16]) -> [u64; 2] {
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
