//! Caches name ids by the bytes of their column. The general path looks up names that the cache lacks. Ids of the
//! dictionary stay valid in its later states; provisional ids of a block are forgotten when the next block begins.

use super::program::GeneralRecordView;
use crate::block::{Block, BlockNameResolver, IdFixup};
use crate::mapping::{FieldPlan, MappingPlan, ParsedMessage, UnmatchedPolicy};
use unitape_codec::fixed::{ColumnLayout, LANES, RecordBatch, StridedRecords};
use unitape_model::id::{PROVISIONAL, VENUE_PROVISIONAL};
use unitape_model::{Dictionary, NameKind};

/// A column of up to 16 bytes as a name.
#[derive(Debug)]
pub(super) struct NameColumn {
    column: u16,
    column_start: usize,
    masks: [u64; 2],
    table: Option<(usize, Option<UnmatchedPolicy>)>,
    is_required: bool,
    dict: NameKind,
    pub frame_offset: usize,
    /// Whether its id has 16 bits.
    pub has_short_id: bool,
    /// By hash, the latest name of a place first; of one byte, by that byte.
    cached_names: Box<[[CachedName; 2]]>,
    /// Places that hold ids which are good for the current block only.
    provisional: Vec<u32>,
    /// The number of names that the dictionary had when it was last looked at, and the last of them: it is the same
    /// one as long as it has that name in its place.
    names: (u32, Vec<u8>),
}

#[derive(Clone, Copy, Debug)]
struct CachedName {
    key: [u64; 2],
    /// 0 where there is no name.
    id: u32,
    /// 1 if there is something at this place.
    is_present: u32,
}

impl CachedName {
    const NONE: CachedName = CachedName { key: [0; 2], id: 0, is_present: 0 };

    /// Compares the entry with a key: returns 0 if it is present and has this key.
    #[inline(always)]
    fn differs_from(&self, key: [u64; 2]) -> u64 {
        (self.key[0] ^ key[0]) | (self.key[1] ^ key[1]) | u64::from(self.is_present ^ 1)
    }
}

/// Places by hash; each has room for two names.
const PLACES: usize = 4096;

impl NameColumn {
    pub(super) fn new(
        field: &FieldPlan,
        column: u16,
        layout: &ColumnLayout,
        dict: NameKind,
        frame_offset: u16,
    ) -> Option<Self> {
        let length = layout.length();
        if length > 16 {
            return None;
        }
        let mask = |bytes: usize| if bytes == 0 { 0 } else { u64::MAX >> (64 - 8 * bytes.min(8)) };
        Some(Self {
            column,
            column_start: layout.start(),
            masks: [mask(length), mask(length.saturating_sub(8))],
            table: field.table,
            is_required: field.required,
            dict,
            frame_offset: frame_offset.into(),
            has_short_id: dict == NameKind::Venue,
            cached_names: vec![[CachedName::NONE; 2]; if length == 1 { 256 } else { PLACES }].into(),
            provisional: Vec::new(),
            names: (0, Vec::new()),
        })
    }

    /// Returns the end of the 16 bytes that a look-up reads.
    pub(super) fn bytes_needed(&self) -> usize {
        self.column_start + 16
    }

    /// Begins a block: forgets provisional ids, and all other ids if the dictionary has changed.
    pub(super) fn begin_block(&mut self, dictionary: &Dictionary) {
        for slot in self.provisional.drain(..) {
            self.cached_names[slot as usize] = [CachedName::NONE; 2];
        }
        let name = |n: u32| dictionary.name(self.dict, n).unwrap_or_default().as_bytes();
        let (before, last) = &self.names;
        if dictionary.len(self.dict) < *before || name(*before) != last {
            self.cached_names.fill([CachedName::NONE; 2]);
        }
        let now = dictionary.len(self.dict);
        if now != self.names.0 {
            self.names = (now, name(now).to_vec());
        }
    }

    /// Finds the id of the name in `record`, if this block knows it; 0 without a name.
    #[inline]
    pub(super) fn find_id(&self, record: &[u8]) -> Option<u32> {
        let key = self.record_key(record);
        self.cached_names[self.slot_of_key(key)]
            .iter()
            .find(|entry| entry.differs_from(key) == 0)
            .map(|entry| entry.id)
    }

    /// Finds the ids of many records. Returns false unless all ids are known and final.
    #[inline]
    pub(super) fn find_all(&self, rows: StridedRecords<'_>, ids: &mut [u32; LANES]) -> bool {
        let mut any = 0;
        if self.masks == [0xff, 0] {
            let mut name_bits = 1;
            for (id, [byte]) in ids.iter_mut().zip(rows.column::<1>(self.column_start)) {
                let [entry, _] = self.cached_names[usize::from(*byte)];
                *id = entry.id;
                any |= entry.id;
                name_bits &= entry.is_present;
            }
            return any & PROVISIONAL == 0 && name_bits == 1;
        }
        for (id, bytes) in ids.iter_mut().zip(rows.column::<16>(self.column_start)) {
            let key = self.mask_name(bytes);
            let [first, second] = &self.cached_names[self.slot_of_key(key)];
            let entry = if first.differs_from(key) == 0 { first } else { second };
            if entry.differs_from(key) != 0 {
                return false;
            }
            *id = entry.id;
            any |= entry.id;
        }
        any & PROVISIONAL == 0
    }

    /// Looks it up by the general path; `None` if that refuses it. Notes its place if the id is provisional.
    #[cold]
    pub(super) fn resolve_name(
        &mut self,
        plan: &MappingPlan,
        record: &[u8],
        fields: &GeneralRecordView<'_>,
        names: &mut BlockNameResolver<'_>,
        frame: usize,
    ) -> Option<u32> {
        let key = self.record_key(record);
        let id = match fields.column(self.column) {
            None if self.is_required => return None,
            None => 0,
            Some(column) => {
                let mut scratch = Vec::new();
                let text = fields.text(column, &mut scratch);
                let text = match self.table {
                    None => Some(text),
                    Some((table, otherwise)) => match (plan.tables[table].get(text), otherwise) {
                        (Some(value), _) => Some(value),
                        (None, Some(UnmatchedPolicy::Keep)) => Some(text),
                        (None, Some(UnmatchedPolicy::Omit)) => None,
                        (None, None) => return None,
                    },
                };
                match text {
                    None => 0,
                    Some(text) => names.resolve_now(self.dict, text, frame + self.frame_offset).ok()?,
                }
            }
        };
        let slot = self.slot_of_key(key);
        if id & PROVISIONAL != 0 {
            self.provisional.push(slot as u32);
        }
        let [first, _] = self.cached_names[slot];
        self.cached_names[slot] = [CachedName { key, id, is_present: 1 }, first];
        Some(id)
    }

    /// Notes the place of a provisional id that was found.
    #[inline]
    pub(super) fn note_provisional(&self, block: &mut Block, id: u32, frame: usize) {
        if id & PROVISIONAL != 0 {
            let id_offset = (frame + self.frame_offset) as u32;
            block.fixups.push(IdFixup {
                frame: frame as u32,
                id_offset,
                dict: self.dict,
                id: id & !PROVISIONAL,
            });
        }
    }

    /// Returns the slot in which a name is looked up. A name of one byte has its own slot.
    #[inline]
    fn slot_of_key(&self, key: [u64; 2]) -> usize {
        let hash = match self.masks[0] {
            0xff => key[0],
            _ => (key[0] ^ key[1].rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52,
        };
        hash as usize & (self.cached_names.len() - 1)
    }

    #[inline]
    fn record_key(&self, record: &[u8]) -> [u64; 2] {
        self.mask_name(record[self.column_start..].first_chunk().expect("sixteen bytes"))
    }

    #[inline]
    fn mask_name(&self, bytes: &[u8; 16]) -> [u64; 2] {
        let (first, second) = bytes.split_at(8);
        let word = |b: &[u8]| u64::from_le_bytes(b.try_into().expect("eight bytes"));
        [word(first) & self.masks[0], word(second) & self.masks[1]]
    }
}

/// Returns an id as a venue's field holds it.
#[inline]
pub(super) fn short_id(id: u32) -> u16 {
    id as u16 | if id & PROVISIONAL != 0 { VENUE_PROVISIONAL } else { 0 }
}
