//! Repeating groups: which fields belong to which entry.
//!
//! ```text
//! 268=2 | 269=0 270=1.5 290=1 5001=x | 269=1 270=1.6 290=1 | 5002=y 10=…
//! count   ╰ entry 1: a member that   ╯  ╰ entry 2 ────────╯   behind the last entry: the message's
//!           nobody wants, and a tag
//!           that nobody lists
//! ```
//!
//! The members are those that the mapping names and those of the standard, for the message types whose rules read the
//! group. A tag that the standard has in the message outside the group ends the entry. A tag that neither knows belongs to
//! the entry if more of the group follows.

use super::TagMap;
use crate::mapping::{GroupSlots, MappingPlan, MessageRefusal, PathSlots, printable};
use std::collections::{BTreeMap, BTreeSet};
use unitape_codec::fix::{FieldToken, GroupMembership, TagLabel, TokenSlice};

/// The tag is not of the group: its entry ends.
pub(super) const END: u8 = 0;
/// A member without a slot.
const UNUSED: u8 = 255;
/// Neither the mapping nor the standard has the tag in the message.
const UNLISTED: u8 = 254;
/// It depends on the message type.
const BY_TYPE: u8 = 253;

/// Tokens between the count and the first entry, looked at again for each entry.
const LEAD_MAX: usize = 16;

/// A repeating group.
#[derive(Debug)]
pub(super) struct GroupTags {
    /// Slot of its count in the message, and the tag.
    pub count: u8,
    count_tag: u32,
    /// First tag of every entry.
    pub delimiter: u32,
    /// Slot of that one.
    pub first: u8,
    /// Slots of its members inside an entry, or one of the words above.
    pub members: TagMap,
    /// For each message type, the tags that are [`BY_TYPE`].
    by_type: Vec<TypeClasses>,
    /// Members that a message also has outside the group.
    also_outside: BTreeSet<u32>,
}

/// What tags are in messages of one type.
#[derive(Debug)]
struct TypeClasses {
    msg_type: Box<[u8]>,
    classes: BTreeMap<u32, u8>,
}

impl GroupTags {
    /// Collects the tags of group `index` of a plan.
    pub fn new(index: usize, group: &GroupSlots<u32>, places: &PathSlots<u32>, plan: &MappingPlan) -> Self {
        let (count_tag, count) = group.count.expect("FIX groups are counted");
        let mut types = plan.types_of_group(index);
        if types.is_empty() {
            types.insert(b"");
        }
        let memberships = types.iter().map(|message_type| {
            let mut membership = GroupMembership::new(message_type, count_tag);
            if !membership.is_standard {
                // Of a venue's own message, the mapping says what is in it.
                let mapped_tags = places.message.iter().filter(|(_, slot)| **slot != 0).map(|(tag, _)| *tag);
                membership.outer_tags.extend(mapped_tags.chain(places.dropped.iter().copied()));
            }
            membership
        });
        let memberships: Vec<GroupMembership> = memberships.collect();
        let class = |membership: &GroupMembership, tag| {
            if membership.members.contains(tag) {
                UNUSED
            } else if membership.outer_tags.contains(tag) {
                END
            } else {
                UNLISTED
            }
        };
        let mut members = group.members.clone();
        let mut by_type: Vec<_> = types
            .iter()
            .map(|name| TypeClasses { msg_type: Box::from(*name), classes: BTreeMap::new() })
            .collect();
        for tag in memberships.iter().flat_map(|m| m.members.iter().chain(&m.outer_tags)) {
            if members.contains_key(tag) {
                continue;
            }
            let first_class = class(&memberships[0], tag);
            if memberships.iter().all(|m| class(m, tag) == first_class) {
                members.insert(*tag, first_class);
                continue;
            }
            members.insert(*tag, BY_TYPE);
            for (of_type, membership) in by_type.iter_mut().zip(&memberships) {
                of_type.classes.insert(*tag, class(membership, tag));
            }
        }
        let outside = memberships.iter().flat_map(|m| &m.outer_tags).copied();
        let also_outside = outside.filter(|tag| members[tag] != END).collect();
        let members = TagMap::new(UNLISTED, &members);
        let delimiter_class = members.get(group.delimiter);
        Self {
            count,
            count_tag,
            delimiter: group.delimiter,
            first: delimiter_class,
            members,
            by_type,
            also_outside,
        }
    }

    /// Returns the tag's slot in an entry of a message of this type, or its other class, but never [`BY_TYPE`].
    fn slot_of_tag(&self, tag: u32, msg_type: &[u8]) -> u8 {
        let class = self.members.get(tag);
        if class != BY_TYPE {
            return class;
        }
        let classes_of =
            |name: &[u8]| self.by_type.iter().find(|type_classes| *type_classes.msg_type == *name);
        let classes = classes_of(msg_type).or_else(|| classes_of(b""));
        classes.and_then(|entry| entry.classes.get(&tag)).copied().unwrap_or(UNLISTED)
    }
}

/// The fields of a group in a message.
#[derive(Clone, Copy)]
pub(super) struct GroupFields<'g> {
    pub group: &'g GroupTags,
    pub tokens: TokenSlice<'g>,
    /// Index of the first token behind the count.
    pub first_token: usize,
    pub msg_type: &'g [u8],
    /// The value of the count.
    pub stated_count: &'g [u8],
}

impl GroupFields<'_> {
    fn slot_of_token(&self, token: FieldToken) -> u8 {
        self.group.slot_of_tag(token.tag, self.msg_type)
    }

    /// Finds the first of the `count` tokens from `start` on whose tag the mapping or the standard lists.
    fn first_listed(&self, start: usize, count: usize) -> Option<(usize, FieldToken)> {
        let mut tokens =
            (start..start.saturating_add(count)).map_while(|index| Some((index, self.tokens.get(index)?)));
        tokens.find(|(_, token)| self.slot_of_token(*token) != UNLISTED)
    }

    /// Finds the start of an entry that does not begin with the mapping's delimiter. Returns its index and the tag
    /// that starts every entry: some venues start entries with another member. Returns `None` if there is no further
    /// entry.
    pub fn unusual_start(&self, index: usize, entry_count: u64) -> Option<(usize, u32)> {
        let (lead, first) = self.first_listed(self.first_token, LEAD_MAX)?;
        if self.slot_of_token(first) == END || first.tag != self.group.delimiter && self.is_stated(0) {
            return None;
        }
        let start_index = if entry_count == 0 { lead } else { index };
        let token = self.tokens.get(start_index)?;
        (token.tag == first.tag).then_some((start_index, first.tag))
    }

    /// Returns whether the message states this count.
    pub fn is_stated(&self, count: u64) -> bool {
        self.stated_number() == Some(count)
    }

    fn stated_number(&self) -> Option<u64> {
        unitape_base::digits::parse_u64(self.stated_count)
    }

    /// Returns the index after the last token of entry `number`; the token at `at` must be the entry's next token.
    /// `put` gets slot and index of each member.
    pub fn entry_end(
        &self,
        mut at: usize,
        delimiter: u32,
        number: u64,
        mut put: impl FnMut(u8, usize),
    ) -> usize {
        let is_last = self.stated_number().is_none_or(|stated| stated <= number);
        while let Some(token) = self.tokens.get(at)
            && token.tag != delimiter
        {
            match self.slot_of_token(token) {
                END => break,
                UNUSED => at += 1,
                UNLISTED => match self.first_listed(at, usize::MAX) {
                    Some((next, token))
                        if self.slot_of_token(token) != END
                            && !(is_last && self.group.also_outside.contains(&token.tag)) =>
                    {
                        at = next;
                    }
                    _ => break,
                },
                slot => {
                    put(slot, at);
                    at += 1;
                }
            }
        }
        at
    }

    /// Makes the refusal of a group whose number of entries differs from its count. `end_index` is the index of the
    /// token after the last entry.
    #[cold]
    pub fn count_refusal(&self, entry_count: u64, end_index: usize) -> MessageRefusal {
        let mut detail = format!(
            "group {}: {} stated, {entry_count} entries found",
            TagLabel(self.group.count_tag),
            printable(self.stated_count)
        );
        if let Some(token) = self.tokens.get(end_index) {
            let digits = token.tag.checked_ilog10().unwrap_or(0) + 1;
            let position =
                format!("{} at byte {}", TagLabel(token.tag), token.start.saturating_sub(digits + 1));
            detail += &match entry_count {
                0 => format!("; entry 1 begins with {}, not with {position}", TagLabel(self.group.delimiter)),
                _ => format!("; entry {entry_count} ended at {position}"),
            };
        }
        MessageRefusal { code: "group_count", detail }
    }
}
