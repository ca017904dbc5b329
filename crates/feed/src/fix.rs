//! FIX messages for the mapper: framed, their fields noted slot by slot in one pass.

use crate::block::Block;
use crate::error::Error;
use crate::mapping::{
    Cursor, Dialect, GroupPlaces, Mapper, Mapping, Message, Origin, Places, Refused, compile, parse_u64,
    shown,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use unitape_codec::fix::{Frame, Framer, TokenSlice, Tokens, value};
use unitape_model::{Dictionary, Refusal, UnixNanos};

/// Decodes blocks of FIX; one per worker and feed.
#[derive(Debug)]
pub struct FixDecoder {
    framer: Framer,
    mapper: Mapper<Index>,
    tags: Tags,
    tokens: Tokens,
    /// The token in each slot of the message.
    slots: Vec<Option<Index>>,
    /// Tokens that nothing names and that are kept.
    unlisted: Vec<u16>,
}

/// FIX names its fields by tag.
#[derive(Clone, Copy, Debug)]
pub struct FixDialect;

/// Index of a token and one more; slots are many and mostly empty, so they are two bytes each.
type Index = std::num::NonZeroU16;

/// Fields of a message; an index and one more are 16 bits.
const FIELDS_MAX: usize = u16::MAX as usize - 1;

/// Slot number of a tag that nothing names and that is to be kept.
const KEEP: u8 = 255;

/// Tags below this are found in a table.
const DENSE: usize = 2048;

impl Dialect for FixDialect {
    type Path = u32;
    const TYPE_PATH: &'static str = "35";
    const COUNTED_GROUPS: bool = true;

    fn path(&self, text: &str) -> Result<u32, String> {
        text.parse().ok().filter(|t| *t > 0).ok_or_else(|| format!("`{text}` is no tag"))
    }

    fn framing(&self) -> Vec<u32> {
        vec![8, 9, 10]
    }
}

impl FixDecoder {
    /// A decoder for messages of `framer` by `mapping`.
    ///
    /// # Errors
    /// When the mapping cannot be compiled.
    pub fn new(framer: Framer, mapping: &Mapping) -> Result<Self, Error> {
        let (plan, places) = compile(mapping, &FixDialect)?;
        Ok(Self {
            framer,
            slots: vec![None; plan.slot_count],
            mapper: Mapper::new(plan),
            tags: Tags::new(&places),
            tokens: Tokens::new(),
            unlisted: Vec::new(),
        })
    }

    /// Decodes all whole messages of `block`.
    pub fn decode(&mut self, block: &mut Block, source: u32, known: &Dictionary) {
        let bytes = std::mem::take(&mut block.bytes);
        let mut at = 0;
        let mut detail = String::new();
        loop {
            let frame = self.tokens.frame(&self.framer, &bytes, at, block.eof);
            let span = match frame {
                Frame::Message(message) => {
                    let raw = message.span.of(&bytes);
                    let offset = block.base + message.span.start as u64;
                    self.message(block, raw, Origin { source, offset }, known);
                    message.span
                }
                Frame::Bad { span, fault } => {
                    let offset = block.base + span.start as u64;
                    detail.clear();
                    _ = write!(detail, "{fault}");
                    block.quarantine(source, offset, span.of(&bytes), fault.code().as_str(), &detail);
                    span
                }
                Frame::Incomplete { from, .. } => {
                    block.decoded = from;
                    break;
                }
                Frame::End => {
                    block.decoded = bytes.len();
                    break;
                }
            };
            block.progress(block.base + span.start as u64, block.base + span.end as u64);
            at = span.end;
        }
        block.bytes = bytes;
    }

    fn message(&mut self, block: &mut Block, raw: &[u8], origin: Origin, known: &Dictionary) {
        let tokens = self.tokens.as_slice();
        if tokens.len() > FIELDS_MAX {
            let detail = format!("{} fields, more than {FIELDS_MAX}", tokens.len());
            block.quarantine(origin.source, origin.offset, raw, Refusal::TooLarge.code(), &detail);
            return;
        }
        self.slots.fill(None);
        self.unlisted.clear();
        for (i, &tag) in tokens.tags().iter().enumerate() {
            match self.tags.message.get(tag) {
                0 => {}
                KEEP => self.unlisted.push(i as u16),
                slot => {
                    let s = &mut self.slots[usize::from(slot)];
                    *s = s.or(Index::new(i as u16 + 1));
                }
            }
        }
        let fields = Fields { raw, tokens, slots: &self.slots, unlisted: &self.unlisted, tags: &self.tags };
        self.mapper.message(block, &fields, origin, known);
    }
}

/// The message in hand.
struct Fields<'m> {
    raw: &'m [u8],
    tokens: TokenSlice<'m>,
    slots: &'m [Option<Index>],
    unlisted: &'m [u16],
    tags: &'m Tags,
}

impl Message for Fields<'_> {
    type Ref = Index;
    const FIELD: &'static str = "tag";
    const TYPE: &'static str = "MsgType";
    const TIME: &'static str = "UTCTimestamp";

    fn raw(&self) -> &[u8] {
        self.raw
    }

    #[inline]
    fn slot(&self, slot: u8) -> Option<Index> {
        self.slots[usize::from(slot)]
    }

    #[inline]
    fn text<'v>(&'v self, index: Index, _: &'v mut Vec<u8>) -> &'v [u8] {
        self.tokens.at(usize::from(index.get()) - 1).of(self.raw)
    }

    #[inline]
    fn time(&self, index: Index) -> Option<UnixNanos> {
        value::timestamp(self.tokens.at(usize::from(index.get()) - 1).of(self.raw)).map(UnixNanos)
    }

    #[inline]
    fn next_entry(
        &self,
        group: usize,
        cursor: &mut Cursor,
        entry: &mut [Option<Index>],
    ) -> Result<bool, Refused> {
        let group = &self.tags.groups[group];
        let Some(count) = self.slots[usize::from(group.count)] else { return Ok(false) };
        let tokens = self.tokens;
        // The token behind the count, whose index and one more this is.
        let start = if cursor.found == 0 { usize::from(count.get()) } else { cursor.at };
        if tokens.get(start).is_none_or(|t| t.tag != group.delimiter) {
            let stated = tokens.at(usize::from(count.get()) - 1).of(self.raw);
            return if parse_u64(stated) == Some(cursor.found) {
                Ok(false)
            } else {
                Err(group.miscounted(stated, cursor.found))
            };
        }
        let mut at = start;
        while let Some(token) = tokens.get(at)
            && (at == start || token.tag != group.delimiter)
        {
            let slot = match group.members.get(token.tag) {
                0 => break,
                slot => &mut entry[usize::from(slot)],
            };
            *slot = slot.or(Index::new(at as u16 + 1));
            at += 1;
        }
        *cursor = Cursor { at, found: cursor.found + 1 };
        Ok(true)
    }

    fn unlisted(&self, mut keep: impl FnMut(&str, &[u8]) -> Result<(), Refused>) -> Result<(), Refused> {
        for &i in self.unlisted {
            let token = self.tokens.at(usize::from(i));
            keep(&token.tag.to_string(), token.of(self.raw))?;
        }
        Ok(())
    }
}

/// Slots by tag.
#[derive(Debug)]
struct Tags {
    message: TagMap,
    groups: Vec<GroupTags>,
}

/// A repeating group.
#[derive(Debug)]
struct GroupTags {
    /// Slot of its count in the message, and the tag.
    count: u8,
    count_tag: u32,
    /// First tag of every entry.
    delimiter: u32,
    /// Slots of its members inside an entry; 0 for a tag that is none of its members.
    members: TagMap,
}

impl Tags {
    fn new(places: &Places<u32>) -> Self {
        let other = if places.keeps { KEEP } else { 0 };
        let message = TagMap::new(other, &places.message);
        Self { message, groups: places.groups.iter().map(GroupTags::new).collect() }
    }
}

impl GroupTags {
    fn new(group: &GroupPlaces<u32>) -> Self {
        let (count_tag, count) = group.count.expect("FIX groups are counted");
        let members = TagMap::new(0, &group.members);
        Self { count, count_tag, delimiter: group.delimiter, members }
    }

    #[cold]
    fn miscounted(&self, stated: &[u8], found: u64) -> Refused {
        Refused {
            code: "group_count",
            detail: format!("group {}: {} stated, {found} entries found", self.count_tag, shown(stated)),
        }
    }
}

/// Tag → slot, dense for the tags in use.
#[derive(Debug)]
struct TagMap {
    dense: Box<[u8]>,
    sparse: BTreeMap<u32, u8>,
    other: u8,
}

impl TagMap {
    fn new(other: u8, slots: &BTreeMap<u32, u8>) -> Self {
        let mut this = Self { dense: vec![other; DENSE].into(), sparse: BTreeMap::new(), other };
        for (&tag, &slot) in slots {
            match this.dense.get_mut(tag as usize) {
                Some(s) => *s = slot,
                None => _ = this.sparse.insert(tag, slot),
            }
        }
        this
    }

    #[inline]
    fn get(&self, tag: u32) -> u8 {
        match self.dense.get(tag as usize) {
            Some(slot) => *slot,
            None => self.sparse.get(&tag).copied().unwrap_or(self.other),
        }
    }
}
