//! Wanted fields by slot: one table look-up for each field of a message instead of a search for
//! each wanted tag, and repeating groups entry by entry.
//!
//! ```text
//! wanted   35 → 0, 38 → 1, 453 → group 0: 448 → 0, 447 → 1, 452 → 2
//! message  35=D 38=100 453=2 448=A 447=D 452=1 448=B 447=D 10=…
//! slots    0: 35   1: 38      entries of group 0   0: 448 447 452   1: 448 447 -
//! ```
//!
//! The first of a repeated tag counts. Fields inside a group are in its entries, not in the slots
//! of the message. A group that does not have as many entries as its count says is a fault.

use std::sync::Arc;

use super::fault::FixFault;
use super::plain::{digits, plain_length};
use super::shapes::SHAPES;
use super::token::{FieldToken, TokenSlice};

/// The fields wanted of a message, compiled.
///
/// ```
/// use std::sync::Arc;
/// use unitape_codec::fix::{NextFixFrame, FixFramer, GroupSelection, FieldExtractor, MessageTokenizer, FieldSelection};
///
/// let parties = GroupSelection::new(453, &[448, 452], &[447, 802]);
/// let wanted = FieldSelection::new(&[35, 55], vec![parties]).unwrap();
/// let bytes = b"8=FIX.4.4\x019=42\x0135=D\x01453=2\x01448=A\x01452=1\x01448=B\x01447=D\x0155=VOD\x0110=239\x01";
/// let (mut tokens, mut slots) = (MessageTokenizer::new(), FieldExtractor::new(Arc::new(wanted)));
/// let NextFixFrame::Message(_) = tokens.frame(&FixFramer::default(), bytes, 0, true) else { panic!() };
/// let filled = slots.fill(bytes, tokens.as_slice()).unwrap();
/// assert_eq!(filled.get(1).unwrap().slice(bytes), b"VOD");
/// let entries: Vec<_> = filled.entries(0).collect();
/// assert_eq!(entries.len(), 2);
/// assert_eq!(entries[1].get(0).unwrap().slice(bytes), b"B");
/// assert!(entries[1].get(1).is_none());
/// ```
#[derive(Debug, Clone)]
pub struct FieldSelection {
    /// Wanted fields, then the counts of the groups.
    slots: TagMap,
    /// Number of wanted fields.
    fields: usize,
    groups: Vec<GroupSelection>,
}

/// The fields wanted of the entries of a group.
#[derive(Debug, Clone)]
pub struct GroupSelection {
    count_tag: u32,
    /// Slot and one more of every tag that an entry may hold, `OTHER` if it is not wanted; 0 for
    /// tags that end the group.
    members: TagMap,
    wanted_fields: usize,
    /// The tag that starts every entry.
    delimiter: u32,
    /// Slots of the message whose tags are also members here.
    shared_slots: Vec<(u32, usize)>,
}

/// Member that is not wanted.
const OTHER: u8 = u8::MAX;

impl GroupSelection {
    /// Selects the fields `wanted` of the group counted by `count_tag`. The first of them starts every entry; entries
    /// may also hold `others`, nested groups included.
    ///
    /// # Panics
    /// Panics if `wanted` is empty or has more than 200 tags.
    #[must_use]
    pub fn new(count_tag: u32, wanted: &[u32], other_tags: &[u32]) -> Self {
        assert!((1..=WANTED_MAX).contains(&wanted.len()), "{} wanted fields", wanted.len());
        let mut members = TagMap::default();
        other_tags.iter().for_each(|&tag| members.set_class(tag, OTHER));
        // The first slot of a tag named twice counts.
        wanted.iter().enumerate().rev().for_each(|(slot, &tag)| members.set_class(tag, slot as u8 + 1));
        GroupSelection {
            count_tag,
            members,
            wanted_fields: wanted.len(),
            delimiter: wanted[0],
            shared_slots: Vec::new(),
        }
    }
}

impl FieldSelection {
    /// Selects the fields `tags`, in slots of that order, and these groups. Returns `None` if both together are more
    /// than 200, or if a group is also selected as a field or another group.
    #[must_use]
    pub fn new(tags: &[u32], mut groups: Vec<GroupSelection>) -> Option<Self> {
        if tags.len() + groups.len() > WANTED_MAX {
            return None;
        }
        let mut slots = TagMap::default();
        tags.iter().enumerate().rev().for_each(|(slot, &tag)| slots.set_class(tag, slot as u8 + 1));
        for (index, group) in groups.iter().enumerate() {
            if slots.get(group.count_tag) != 0 {
                return None;
            }
            slots.set_class(group.count_tag, (tags.len() + index) as u8 + 1);
        }
        for group in &mut groups {
            let shared = tags.iter().enumerate().filter(|&(_, &tag)| group.members.get(tag) != 0);
            group.shared_slots = shared.map(|(slot, &tag)| (tag, slot + 1)).collect();
        }
        Some(FieldSelection { slots, fields: tags.len(), groups })
    }
}

/// Wanted fields and groups together, at most.
const WANTED_MAX: usize = 200;

/// The wanted fields of one message at a time.
///
/// The messages of a feed have few *shapes*, that is sequences of tags. Where each slot's field is
/// depends on the shape alone, so the last ones are remembered: a message of a known shape costs a
/// comparison of the counts of its groups.
#[derive(Debug, Clone)]
pub struct FieldExtractor {
    /// The first layout is for messages without a remembered shape, the others for the shapes by their index.
    shapes: Vec<SlotLayout>,
    selection: Arc<FieldSelection>,
}

/// Where the slots' fields are.
#[derive(Debug, Clone, Default)]
struct SlotLayout {
    /// The id of the tags; 0 if they may be any.
    id: u64,
    /// The token for each slot and one more, `NONE` for an absent field; slot 0 is for unwanted fields.
    tokens: SlotTokens,
    /// Entries of all groups, one after the other: the same for each slot and one more.
    rows: Vec<u32>,
    groups: Vec<GroupRowLayout>,
    /// The counts that the groups of the message must have.
    expected_counts: Vec<ExpectedGroupCount>,
}

/// The count of a group.
#[derive(Debug, Clone, Copy)]
struct ExpectedGroupCount {
    /// Its field, and its value if that is one digit; what no byte is for a longer one.
    token: u32,
    digit: u16,
    entries: u32,
}

#[derive(Debug, Clone)]
struct SlotTokens([u32; 256]);

/// No token: no message has this many.
const NONE: u32 = u32::MAX;

impl Default for SlotTokens {
    fn default() -> Self {
        SlotTokens([NONE; 256])
    }
}

/// The entries of one group.
#[derive(Debug, Clone, Copy, Default)]
struct GroupRowLayout {
    entries: u32,
    /// The rows start here, one after the other.
    first_row: usize,
    width: usize,
}

impl FieldExtractor {
    /// Makes an extractor for the selection `wanted`.
    #[must_use]
    pub fn new(wanted: Arc<FieldSelection>) -> Self {
        FieldExtractor { shapes: vec![SlotLayout::default()], selection: wanted }
    }

    /// Finds the selected fields and groups among `tokens`, the fields of `message`.
    ///
    /// # Errors
    /// Fails with `group_count` if the count of a selected group is no number or differs from the number of its
    /// entries.
    #[inline(always)]
    pub fn fill<'s>(
        &'s mut self,
        message: &[u8],
        tokens: TokenSlice<'s>,
    ) -> Result<ExtractedFields<'s>, FixFault> {
        let id = tokens.shape();
        let mut shape_index = id as usize % SHAPES + 1;
        if id == 0 || self.shapes.get(shape_index).is_none_or(|shape| shape.id != id) {
            // The tags alone: what is not handed on stays in registers.
            shape_index = self.add_shape(id, tokens.tags());
        }
        let shape = &self.shapes[shape_index];
        for count in &shape.expected_counts {
            let token = tokens.token_at(count.token as usize);
            if !count.is_right(message, token.start, token.end) {
                return Err(count.fault(token.tag, token.start, token.slice(message)));
            }
        }
        Ok(ExtractedFields { shape, tokens })
    }

    /// Returns the index at which the shape with these tags is stored.
    #[cold]
    fn add_shape(&mut self, id: u64, tags: &[u32]) -> usize {
        let shape_index = if id == 0 { 0 } else { id as usize % SHAPES + 1 };
        if shape_index >= self.shapes.len() {
            self.shapes.resize(shape_index + 1, SlotLayout::default());
        }
        let shape = &mut self.shapes[shape_index];
        shape.assign_slots(&self.selection, tags);
        shape.id = id;
        shape_index
    }
}

/// The wanted fields of one message.
#[derive(Debug, Clone, Copy)]
pub struct ExtractedFields<'s> {
    shape: &'s SlotLayout,
    tokens: TokenSlice<'s>,
}

impl<'s> ExtractedFields<'s> {
    /// Returns the field in `slot`, if the message has it.
    #[inline(always)]
    #[must_use]
    pub fn get(self, slot: usize) -> Option<FieldToken> {
        self.tokens.get(*self.shape.tokens.0.get(slot + 1)? as usize)
    }

    /// Lists the entries of the selected group `index`.
    #[inline(always)]
    pub fn entries(self, index: usize) -> impl ExactSizeIterator<Item = GroupEntry<'s>> {
        let GroupRowLayout { first_row: start, width, entries, .. } =
            self.shape.groups.get(index).copied().unwrap_or_default();
        (0..entries as usize).map(move |n| {
            let row = start + n * width;
            GroupEntry { row: &self.shape.rows[row + 1..row + width], tokens: self.tokens }
        })
    }
}

impl ExpectedGroupCount {
    /// Returns whether the count of this message, at `start..end`, equals the number of entries in its shape.
    #[inline(always)]
    fn is_right(&self, message: &[u8], start: u32, end: u32) -> bool {
        let first_byte = message.get(start as usize).copied().unwrap_or(0);
        end == start + 1 && u16::from(first_byte) == self.digit || self.is_right_in_full(message, start, end)
    }

    /// Compares a count of any number of digits.
    #[inline(never)]
    fn is_right_in_full(&self, message: &[u8], start: u32, end: u32) -> bool {
        let value = message.get(start as usize..end as usize).unwrap_or_default();
        plain_length(value) == Some(self.entries as usize)
    }

    #[cold]
    fn fault(&self, tag: u32, start: u32, value: &[u8]) -> FixFault {
        let stated = plain_length(value).map_or(u32::MAX, |stated| stated as u32);
        FixFault::GroupCount {
            offset: start - 1 - digits(tag),
            tag,
            stated,
            actual: self.entries,
            ended_by: 0,
        }
    }
}

impl SlotLayout {
    fn assign_slots(&mut self, wanted: &FieldSelection, tags: &[u32]) {
        self.tokens.0.fill(NONE);
        // From the last to the first, so that the first of a tag stays.
        for (token_index, &tag) in tags.iter().enumerate().rev() {
            self.tokens.0[usize::from(wanted.slots.get(tag))] = token_index as u32;
        }
        self.rows.clear();
        self.groups.clear();
        self.expected_counts.clear();
        for (index, group) in wanted.groups.iter().enumerate() {
            let row_index = self.rows.len();
            let count = self.tokens.0[wanted.fields + index + 1];
            let entries = if count == NONE { 0 } else { self.entries(group, tags, count as usize) };
            let width = group.wanted_fields + 1;
            self.groups.push(GroupRowLayout { entries, first_row: row_index, width });
            if count != NONE {
                let digit = if entries < 10 { u16::from(b'0') + entries as u16 } else { u16::MAX };
                self.expected_counts.push(ExpectedGroupCount { token: count, digit, entries });
            }
        }
    }

    /// Reads the entries of the group counted by the token at `count`; how many.
    fn entries(&mut self, group: &GroupSelection, tags: &[u32], count: usize) -> u32 {
        let (mut index, mut entry_count) = (count + 1, 0);
        while tags.get(index) == Some(&group.delimiter) {
            let row = self.rows.len();
            self.rows.resize(row + group.wanted_fields + 1, NONE);
            let row = &mut self.rows[row..];
            row[1] = index as u32;
            index += 1;
            while index < tags.len() && tags[index] != group.delimiter {
                let slot = match group.members.get(tags[index]) {
                    0 => break,
                    OTHER => 0,
                    slot => usize::from(slot),
                };
                if row[slot] == NONE {
                    row[slot] = index as u32;
                }
                index += 1;
            }
            entry_count += 1;
        }
        // A tag that is also a member and was first seen inside: it is searched for after the group.
        for &(tag, slot) in &group.shared_slots {
            let first_token = self.tokens.0[slot] as usize;
            if first_token >= count && first_token < index {
                let next_distance = tags[index..].iter().position(|&t| t == tag);
                self.tokens.0[slot] = next_distance.map_or(NONE, |distance| (index + distance) as u32);
            }
        }
        entry_count
    }
}

/// One entry of a group.
#[derive(Debug, Clone, Copy)]
pub struct GroupEntry<'s> {
    row: &'s [u32],
    tokens: TokenSlice<'s>,
}

impl GroupEntry<'_> {
    /// Returns the field in `slot`, if the entry has it.
    #[inline(always)]
    #[must_use]
    pub fn get(self, slot: usize) -> Option<FieldToken> {
        self.tokens.get(*self.row.get(slot)? as usize)
    }
}

/// A byte for each tag, 0 unless set.
#[derive(Debug, Clone)]
struct TagMap {
    dense: Box<[u8; DENSE]>,
    /// Sorted.
    sparse: Vec<(u32, u8)>,
}

/// Tags below this are found in a table.
const DENSE: usize = 2048;

impl Default for TagMap {
    fn default() -> Self {
        TagMap { dense: Box::new([0; DENSE]), sparse: Vec::new() }
    }
}

impl TagMap {
    fn set_class(&mut self, tag: u32, value: u8) {
        match self.dense.get_mut(tag as usize) {
            Some(entry) => *entry = value,
            None => match self.sparse.binary_search_by_key(&tag, |&(tag, _)| tag) {
                Ok(index) => self.sparse[index].1 = value,
                Err(index) => self.sparse.insert(index, (tag, value)),
            },
        }
    }

    #[inline(always)]
    fn get(&self, tag: u32) -> u8 {
        match self.dense.get(tag as usize) {
            Some(&value) => value,
            None => self.get_sparse(tag),
        }
    }

    #[inline]
    fn get_sparse(&self, tag: u32) -> u8 {
        let sparse_index = self.sparse.binary_search_by_key(&tag, |&(tag, _)| tag);
        sparse_index.map_or(0, |index| self.sparse[index].1)
    }
}
