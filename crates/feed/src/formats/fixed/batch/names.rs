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
    start: usize,
    masks: [u64; 2],
    table: Option<(usize, Option<UnmatchedPolicy>)>,
    required: bool,
    dict: NameKind,
    pub at: usize,
    /// Whether its id has 16 bits.
    pub short: bool,
    /// By hash, the latest name of a place first; of one byte, by that byte.
    known: Box<[[CachedName; 2]]>,
    /// Places that hold ids which are good for the block in hand only.
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
    there: u32,
}

impl CachedName {
    const NONE: CachedName = CachedName { key: [0; 2], id: 0, there: 0 };

    /// 0 if it is known and of this key.
    #[inline(always)]
    fn differs(&self, key: [u64; 2]) -> u64 {
        (self.key[0] ^ key[0]) | (self.key[1] ^ key[1]) | u64::from(self.there ^ 1)
    }
}

/// Places by hash; each has room for two names.
const PLACES: usize = 4096;

impl NameColumn {
    pub(super) fn new(
        field: &FieldPlan,
        column: u16,
        of: &ColumnLayout,
        dict: NameKind,
        at: u16,
    ) -> Option<Self> {
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
            short: dict == NameKind::Venue,
            known: vec![[CachedName::NONE; 2]; if length == 1 { 256 } else { PLACES }].into(),
            provisional: Vec::new(),
            names: (0, Vec::new()),
        })
    }

    /// A look-up takes 16 bytes.
    pub(super) fn reach(&self) -> usize {
        self.start + 16
    }

    /// A block begins: provisional ids are no more, and all others go with another dictionary.
    pub(super) fn begin_block(&mut self, known: &Dictionary) {
        for place in self.provisional.drain(..) {
            self.known[place as usize] = [CachedName::NONE; 2];
        }
        let name = |n: u32| known.name(self.dict, n).unwrap_or_default().as_bytes();
        let (before, last) = &self.names;
        if known.len(self.dict) < *before || name(*before) != last {
            self.known.fill([CachedName::NONE; 2]);
        }
        let now = known.len(self.dict);
        if now != self.names.0 {
            self.names = (now, name(now).to_vec());
        }
    }

    /// The id of the name in `record`, if it is known in this block; 0 where there is none.
    #[inline]
    pub(super) fn find(&self, record: &[u8]) -> Option<u32> {
        let key = self.key(record);
        self.known[self.place(key)].iter().find(|known| known.differs(key) == 0).map(|known| known.id)
    }

    /// The ids of many records; false where not all of them are known for good.
    #[inline]
    pub(super) fn find_all(&self, rows: StridedRecords<'_>, ids: &mut [u32; LANES]) -> bool {
        let mut any = 0;
        if self.masks == [0xff, 0] {
            let mut all = 1;
            for (id, [byte]) in ids.iter_mut().zip(rows.column::<1>(self.start)) {
                let [known, _] = self.known[usize::from(*byte)];
                *id = known.id;
                any |= known.id;
                all &= known.there;
            }
            return any & PROVISIONAL == 0 && all == 1;
        }
        for (id, bytes) in ids.iter_mut().zip(rows.column::<16>(self.start)) {
            let key = self.masked(bytes);
            let [first, second] = &self.known[self.place(key)];
            let known = if first.differs(key) == 0 { first } else { second };
            if known.differs(key) != 0 {
                return false;
            }
            *id = known.id;
            any |= known.id;
        }
        any & PROVISIONAL == 0
    }

    /// Looks it up by the general path; `None` if that refuses it. Notes its place if the id is provisional.
    #[cold]
    pub(super) fn learn(
        &mut self,
        plan: &MappingPlan,
        record: &[u8],
        fields: &GeneralRecordView<'_>,
        names: &mut BlockNameResolver<'_>,
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
                        (None, Some(UnmatchedPolicy::Keep)) => Some(text),
                        (None, Some(UnmatchedPolicy::Omit)) => None,
                        (None, None) => return None,
                    },
                };
                match text {
                    None => 0,
                    Some(text) => names.resolve_now(self.dict, text, frame + self.at).ok()?,
                }
            }
        };
        let place = self.place(key);
        if id & PROVISIONAL != 0 {
            self.provisional.push(place as u32);
        }
        let [first, _] = self.known[place];
        self.known[place] = [CachedName { key, id, there: 1 }, first];
        Some(id)
    }

    /// Notes the place of a provisional id that was found.
    #[inline]
    pub(super) fn note(&self, block: &mut Block, id: u32, frame: usize) {
        if id & PROVISIONAL != 0 {
            let at = (frame + self.at) as u32;
            block.fixups.push(IdFixup { frame: frame as u32, at, dict: self.dict, id: id & !PROVISIONAL });
        }
    }

    /// The place in which a name is looked for: a name of one byte has a place of its own.
    #[inline]
    fn place(&self, key: [u64; 2]) -> usize {
        let hash = match self.masks[0] {
            0xff => key[0],
            _ => (key[0] ^ key[1].rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52,
        };
        hash as usize & (self.known.len() - 1)
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
