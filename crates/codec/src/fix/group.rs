//! Repeating groups: which fields after a count belong to which entry.
//!
//! ```text
//! 453=2 | 448=A 447=D 802=1 | 523=x 803=4 | 452=1 | 448=B 447=D 452=3 | 55=…
//! count   ╰ entry 1 ──────────────────────────╯    ╰ entry 2 ───────╯   no member: the end
//!                       ╰ nested group of 1 ─╯
//! ```
//!
//! An entry starts with the delimiter, the first field of the group; the others may come in any
//! order, each belongs to the entry as long as it is a member. So does a field that the dictionary has
//! nowhere in the message, if more of the group follows. The count must be the number of entries
//! (`group_count`).

use std::sync::Arc;

use super::MAX_GROUP_DEPTH;
use super::fault::FixFault;
use super::plain::{digits, plain_length};
use super::token::TokenSlice;

/// A repeating group, from a dictionary or stated by a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSpec {
    count_tag: u32,
    delimiter: Option<u32>,
    /// Count tags of nested groups included.
    members: TagSet,
    nested: GroupTable,
}

/// Groups by their count tag.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupTable {
    tags: TagSet,
    /// In the order of `tags`.
    groups: Vec<Arc<GroupSpec>>,
}

impl GroupTable {
    /// Makes a table of these groups. If two groups have the same count tag, the first group counts.
    #[must_use]
    pub fn new(mut groups: Vec<Arc<GroupSpec>>) -> Self {
        groups.sort_by_key(|group| group.count_tag);
        groups.dedup_by_key(|group| group.count_tag);
        let tags = TagSet::new(groups.iter().map(|group| group.count_tag).collect());
        GroupTable { tags, groups }
    }

    /// Returns a table without groups.
    #[must_use]
    pub fn empty() -> &'static Self {
        static EMPTY: GroupTable = GroupTable { tags: TagSet::EMPTY, groups: Vec::new() };
        &EMPTY
    }

    /// Looks up a group by its count tag.
    #[inline]
    #[must_use]
    pub fn get(&self, count_tag: u32) -> Option<&Arc<GroupSpec>> {
        if !self.tags.contains(count_tag) {
            return None;
        }
        let index = self.tags.sorted_tags.binary_search(&count_tag).ok()?;
        self.groups.get(index)
    }

    /// Lists the groups, sorted by count tag.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<GroupSpec>> {
        self.groups.iter()
    }
}

/// Tags, with a bit for each of the low ones: dictionaries name hundreds of members, and every
/// field of an entry is looked up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TagSet {
    sorted_tags: Vec<u32>,
    low_tags: [u64; 32],
}

impl TagSet {
    const EMPTY: TagSet = TagSet { sorted_tags: Vec::new(), low_tags: [0; 32] };

    pub(super) fn new(mut tags: Vec<u32>) -> Self {
        tags.sort_unstable();
        tags.dedup();
        let mut low = [0; 32];
        for &tag in &tags {
            if let Some(word) = low.get_mut(tag as usize / 64) {
                *word |= 1 << (tag % 64);
            }
        }
        TagSet { sorted_tags: tags, low_tags: low }
    }

    /// Returns the sorted tags.
    #[cfg(test)]
    pub(super) fn as_slice(&self) -> &[u32] {
        &self.sorted_tags
    }

    #[inline]
    pub(super) fn contains(&self, tag: u32) -> bool {
        match self.low_tags.get(tag as usize / 64) {
            Some(word) => word >> (tag % 64) & 1 == 1,
            None => self.sorted_tags.binary_search(&tag).is_ok(),
        }
    }
}

impl GroupSpec {
    /// Makes a group that `count_tag` counts, with these member fields and nested groups. Without a `delimiter`, the
    /// field after the count starts every entry.
    #[must_use]
    pub fn new(
        count_tag: u32,
        delimiter: Option<u32>,
        mut members: Vec<u32>,
        nested: Vec<Arc<GroupSpec>>,
    ) -> Self {
        members.extend(delimiter);
        members.extend(nested.iter().map(|group| group.count_tag));
        let (members, nested) = (TagSet::new(members), GroupTable::new(nested));
        GroupSpec { count_tag, delimiter, members, nested }
    }

    /// Returns the tag of the count field (NumInGroup).
    #[must_use]
    pub const fn count_tag(&self) -> u32 {
        self.count_tag
    }

    /// Returns the tag that must start every entry, if the group has one.
    #[must_use]
    pub const fn delimiter(&self) -> Option<u32> {
        self.delimiter
    }

    /// Returns the sorted tags of an entry's fields, including the count tags of nested groups.
    #[must_use]
    pub fn members(&self) -> &[u32] {
        &self.members.sorted_tags
    }

    /// Returns the nested groups.
    #[must_use]
    pub const fn nested(&self) -> &GroupTable {
        &self.nested
    }

    /// Reads the group whose count field is `tokens[at]`; any field that is not a member ends it.
    ///
    /// # Errors
    /// Fails with `group_count` if the count is no number or differs from the number of entries, here or in a nested
    /// group. Fails also if groups nest deeper than [`MAX_GROUP_DEPTH`].
    pub fn read<'t>(
        &'t self,
        message: &'t [u8],
        tokens: TokenSlice<'t>,
        count_index: usize,
    ) -> Result<RepeatingGroupIter<'t>, FixFault> {
        self.read_in(GroupScope { message, tokens, body_tags: None }, count_index)
    }

    /// Reads the group whose count field is `tokens[at]` in a message of a known body.
    pub(super) fn read_in<'t>(
        &'t self,
        scope: GroupScope<'t>,
        count_index: usize,
    ) -> Result<RepeatingGroupIter<'t>, FixFault> {
        let group_end = self.group_end(scope, count_index, None)?;
        Ok(RepeatingGroupIter { spec: self, scope, next_token: count_index + 1, end_token: group_end })
    }

    /// Returns the index after the last token of the group that the token at `count_index` counts.
    fn group_end(
        &self,
        scope: GroupScope<'_>,
        count_index: usize,
        outer: Option<&OuterGroup<'_>>,
    ) -> Result<usize, FixFault> {
        let count = scope.tokens.token_at(count_index);
        // The field starts before `tag=`.
        let offset = count.start - 1 - digits(count.tag);
        let depth = outer.map_or(0, |outer| outer.depth);
        if depth == MAX_GROUP_DEPTH {
            return Err(FixFault::GroupDepth { offset, tag: count.tag });
        }
        let stated = plain_length(count.slice(scope.message)).map_or(u32::MAX, |stated| stated as u32);
        let (mut next, mut entry_count) = (count_index + 1, 0);
        while stated != u32::MAX && self.starts_entry(scope.tokens, count_index, next) {
            next = self.entry_end(scope, count_index, next, outer)?;
            entry_count += 1;
        }
        if stated == entry_count {
            Ok(next)
        } else {
            let ended_by = scope.tokens.get(next).map_or(0, |token| token.tag);
            Err(FixFault::GroupCount { offset, tag: self.count_tag, stated, actual: entry_count, ended_by })
        }
    }

    fn starts_entry(&self, tokens: TokenSlice<'_>, count_index: usize, next: usize) -> bool {
        let Some(token) = tokens.get(next) else { return false };
        match self.delimiter {
            Some(delimiter) => token.tag == delimiter,
            None => token.tag == tokens.token_at(count_index + 1).tag && self.members.contains(token.tag),
        }
    }

    /// Returns the index after the last token of the entry that starts at `start`.
    fn entry_end(
        &self,
        scope: GroupScope<'_>,
        count_index: usize,
        start: usize,
        outer: Option<&OuterGroup<'_>>,
    ) -> Result<usize, FixFault> {
        let mut next_token = start;
        while let Some(token) = scope.tokens.get(next_token) {
            if next_token > start && self.starts_entry(scope.tokens, count_index, next_token) {
                break;
            }
            if !self.members.contains(token.tag) {
                match self.next_member(scope, next_token, outer) {
                    Some(member) => next_token = member,
                    None => break,
                }
                continue;
            }
            next_token = match self.nested.get(token.tag) {
                Some(nested) => {
                    let depth = outer.map_or(0, |outer| outer.depth) + 1;
                    nested.group_end(
                        scope,
                        next_token,
                        Some(&OuterGroup { group: self, outer_group: outer, depth }),
                    )?
                }
                None => next_token + 1,
            };
        }
        Ok(next_token)
    }

    /// Finds the group's next token, past fields from `start` on that the dictionary has nowhere in the message.
    /// Returns `None` if no token of the group follows them.
    #[cold]
    fn next_member(
        &self,
        scope: GroupScope<'_>,
        start: usize,
        outer: Option<&OuterGroup<'_>>,
    ) -> Option<usize> {
        let body = scope.body_tags?;
        let is_elsewhere = |tag| {
            let mut outers = std::iter::successors(outer, |outer| outer.outer_group);
            body.contains(tag) || outers.any(|outer| outer.group.members.contains(tag))
        };
        let mut later_tokens = (start..).map_while(|next| Some((next, scope.tokens.get(next)?.tag)));
        let (next, tag) = later_tokens.find(|(_, tag)| self.members.contains(*tag) || is_elsewhere(*tag))?;
        (self.members.contains(tag) && (next > start) && !is_elsewhere(tag)).then_some(next)
    }
}

/// A message whose groups are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupScope<'t> {
    pub message: &'t [u8],
    pub tokens: TokenSlice<'t>,
    /// The tags that the message has outside groups; `None` if they are unknown.
    pub body_tags: Option<&'t TagSet>,
}

/// The groups around the current group.
struct OuterGroup<'g> {
    group: &'g GroupSpec,
    outer_group: Option<&'g OuterGroup<'g>>,
    depth: usize,
}

/// The entries of a group that was read: an iterator over the fields of each, nested groups
/// included.
#[derive(Debug, Clone)]
pub struct RepeatingGroupIter<'t> {
    spec: &'t GroupSpec,
    scope: GroupScope<'t>,
    next_token: usize,
    end_token: usize,
}

impl RepeatingGroupIter<'_> {
    /// Returns the index of the first token after the group.
    #[must_use]
    pub const fn end(&self) -> usize {
        self.end_token
    }
}

impl<'t> Iterator for RepeatingGroupIter<'t> {
    type Item = TokenSlice<'t>;

    fn next(&mut self) -> Option<TokenSlice<'t>> {
        if self.next_token >= self.end_token {
            return None;
        }
        let entry_start = self.next_token;
        // Reading has found every entry good; `start` also is a token of the delimiter's tag.
        let tokens = self.scope.tokens.range(0, self.end_token);
        let scope = GroupScope { tokens, ..self.scope };
        let entry_end =
            self.spec.entry_end(scope, entry_start - 1, entry_start, None).unwrap_or(self.end_token);
        self.next_token = entry_end;
        Some(tokens.range(entry_start, entry_end))
    }
}
