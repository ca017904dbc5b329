//! The fields of a message that the mapping asks for, noted in one pass over its items.
//!
//! ```text
//!  items ─▶ node of the path that is open ─ wants ─▶ slot of the message
//!            (made when a path is first met,        ├▶ value of an entry, of the group whose element is open
//!             found by the place of its name)       └▶ value around entries, for those that come behind it
//! ```

use super::path::{FastFieldPath, FastValueConversion};
use crate::mapping::PathSlots;
use std::collections::BTreeSet;
use std::ops::Range;
use unitape_fast::template::{IntegerMeaning, QualifiedName, TemplateField};
use unitape_fast::{FieldValue, Message, MessageToken};

/// A value found in the current message; it is valid until the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastFieldValue {
    pub value: FastStoredValue,
    pub reading: FastValueConversion,
    /// The nanoseconds of one unit, if the template says that the value counts since 1970; otherwise 0.
    pub unit_ns: u64,
}

/// A value; texts lie in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastStoredValue {
    Int(i64),
    UInt(u64),
    Decimal {
        mantissa: i64,
        exponent: i8,
    },
    Text {
        from: u32,
        to: u32,
    },
    Bytes {
        from: u32,
        to: u32,
    },
    /// The name of the message's template.
    Template,
}

/// The mapping's fields, and their values in the current message.
#[derive(Debug)]
pub struct FastFieldTable {
    field_selection: FastFieldSelection,
    nodes: Vec<TemplatePathNode>,
    message_slots: Vec<Option<FastFieldValue>>,
    group_entries: Vec<GroupEntries>,
    arena: Vec<u8>,
    /// Unlisted values: the node, and the value.
    unlisted_values: Vec<(u32, FastFieldValue)>,
    /// Nodes that are open.
    open_nodes: Vec<u32>,
}

#[derive(Debug)]
struct FastFieldSelection {
    message: Vec<(String, FastValueConversion, u8)>,
    group_paths: Vec<FastGroupPaths>,
    dropped_paths: BTreeSet<String>,
    template: Vec<u8>,
    number_slots: Vec<u8>,
    channel: Vec<u8>,
    keeps_unlisted: bool,
}

#[derive(Debug)]
struct FastGroupPaths {
    sequence: String,
    members: Vec<(String, FastValueConversion, u8)>,
}

/// The entries of a group.
#[derive(Debug, Default)]
struct GroupEntries {
    values: Vec<(u8, FastFieldValue)>,
    entries: Vec<Range<u32>>,
    /// Start of the open entry's values.
    open_start: usize,
    /// Earlier values of the surrounding elements, from the innermost on: level, slot and value; the first of each.
    outer_values: Vec<(u32, u8, FastFieldValue)>,
    /// The unlisted values in each entry, by their numbers, and the first of the open one.
    unlisted_ranges: Vec<Range<u32>>,
    open_unlisted_start: usize,
}

/// A path that was met.
#[derive(Debug)]
struct TemplatePathNode {
    node_path: String,
    /// Its children by the place of their name, in the order in which they were met.
    children: Vec<(usize, u32)>,
    /// The child that was met last.
    last_child: usize,
    value_targets: Vec<FastValueTarget>,
    /// It is kept where it is.
    is_kept: bool,
    /// The sequence whose element it is in, if it is in one.
    sequence: Option<u32>,
    /// The number of elements around it.
    level: u32,
    /// For a sequence: the groups whose entries its elements are, and the groups in whose entries its elements are
    /// nested.
    entries_of: Vec<usize>,
    nested_groups: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
enum FastValueTarget {
    Message(u8, FastValueConversion),
    Entry(usize, u8, FastValueConversion),
    Around(usize, u8, FastValueConversion),
}

/// Paths that are kept from one message to the next, and that one message may have.
const NODES_KEPT: usize = 1 << 16;
const NODES_MAX: usize = 1 << 20;

/// A message has more paths than the table accepts.
#[derive(Debug)]
pub struct TooManyPaths;

impl FastFieldTable {
    /// Makes a table for the fields at these paths.
    pub fn new(places: &PathSlots<FastFieldPath>, slots: usize) -> Self {
        let mut wants = FastFieldSelection {
            message: Vec::new(),
            group_paths: Vec::new(),
            dropped_paths: BTreeSet::new(),
            template: Vec::new(),
            number_slots: Vec::new(),
            channel: Vec::new(),
            keeps_unlisted: places.keeps,
        };
        for (path, slot) in places.message.iter().filter(|(_, slot)| **slot != 0) {
            match path {
                FastFieldPath::Template => wants.template.push(*slot),
                FastFieldPath::Number => wants.number_slots.push(*slot),
                FastFieldPath::Channel => wants.channel.push(*slot),
                FastFieldPath::Value { path, reading } => wants.message.push((path.clone(), *reading, *slot)),
            }
        }
        let name = |path: &FastFieldPath| match path {
            FastFieldPath::Value { path, .. } => path.clone(),
            FastFieldPath::Template | FastFieldPath::Number | FastFieldPath::Channel => String::new(),
        };
        for group in &places.groups {
            let members = group.members.iter().filter_map(|(path, slot)| match path {
                FastFieldPath::Value { path, reading } => Some((path.clone(), *reading, *slot)),
                FastFieldPath::Template | FastFieldPath::Number | FastFieldPath::Channel => None,
            });
            wants.group_paths.push(FastGroupPaths {
                sequence: group.count.as_ref().map(|(path, _)| name(path)).unwrap_or_default(),
                members: members.collect(),
            });
        }
        wants.dropped_paths = places.dropped.iter().map(name).collect();
        let groups = wants.group_paths.iter().map(|_| GroupEntries::default()).collect();
        let nodes = vec![TemplatePathNode::root()];
        let (arena, unlisted, open) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            field_selection: wants,
            nodes,
            message_slots: vec![None; slots],
            group_entries: groups,
            arena,
            unlisted_values: unlisted,
            open_nodes: open,
        }
    }

    /// Notes the fields of the message; `number` and `channel` come from the framing before it.
    pub fn read_fields(
        &mut self,
        message: &Message<'_>,
        number: Option<u32>,
        channel: Option<u8>,
    ) -> Result<(), TooManyPaths> {
        self.clear();
        let make_value = |value| FastFieldValue { value, reading: FastValueConversion::AsItIs, unit_ns: 0 };
        for slot in &self.field_selection.template {
            self.message_slots[usize::from(*slot)] = Some(make_value(FastStoredValue::Template));
        }
        let number = number.map(|n| make_value(FastStoredValue::UInt(n.into())));
        let channel = channel.map(|n| make_value(FastStoredValue::UInt(n.into())));
        for (slots, slot_value) in
            [(&self.field_selection.number_slots, number), (&self.field_selection.channel, channel)]
        {
            for slot in slots {
                self.message_slots[usize::from(*slot)] = slot_value;
            }
        }
        self.open_nodes.push(0);
        for item in message.items() {
            let node = self.open_nodes.last().copied().unwrap_or(0);
            match item {
                MessageToken::Value(field, value) => {
                    let node = self.child_node(node, &field.name, false)?;
                    self.value(node, value, unit_of(field));
                }
                MessageToken::Group(name) => {
                    let node = self.child_node(node, name, false)?;
                    self.open_nodes.push(node);
                }
                MessageToken::Sequence(name, length) => {
                    let node = self.child_node(node, name, true)?;
                    self.value(node, FieldValue::UInt(length.into()), 0);
                    self.open_nodes.push(node);
                }
                MessageToken::Element => {
                    self.begin_element(node);
                    self.open_nodes.push(node);
                }
                MessageToken::End => {
                    self.open_nodes.pop();
                    // An element's node is that of its sequence, below it.
                    if self.open_nodes.last() == Some(&node) {
                        self.end_element(node);
                    }
                }
            }
        }
        Ok(())
    }

    fn clear(&mut self) {
        if self.nodes.len() > NODES_KEPT {
            self.nodes.truncate(1);
            self.nodes[0].children.clear();
        }
        self.message_slots.fill(None);
        for group in &mut self.group_entries {
            group.values.clear();
            group.entries.clear();
            group.unlisted_ranges.clear();
            group.outer_values.clear();
        }
        self.arena.clear();
        self.unlisted_values.clear();
        self.open_nodes.clear();
    }

    #[inline]
    fn child_node(
        &mut self,
        parent: u32,
        name: &QualifiedName,
        is_sequence: bool,
    ) -> Result<u32, TooManyPaths> {
        // A name lives as long as the templates do, so its address identifies it for that time.
        let address = std::ptr::from_ref(name) as usize;
        let node = &mut self.nodes[parent as usize];
        // Items come in the order of the template: what comes next is mostly what came next before.
        let (before, after) = node.children.split_at(node.last_child.min(node.children.len()));
        let index_after = after.iter().position(|(p, _)| *p == address).map(|n| n + before.len());
        let child_index = index_after.or_else(|| before.iter().position(|(p, _)| *p == address));
        match child_index {
            Some(n) => {
                node.last_child = n + 1;
                Ok(node.children[n].1)
            }
            None => self.new_child(parent, address, &name.local, is_sequence),
        }
    }

    #[cold]
    fn new_child(
        &mut self,
        parent: u32,
        address: usize,
        name: &str,
        is_sequence: bool,
    ) -> Result<u32, TooManyPaths> {
        if self.nodes.len() >= NODES_MAX {
            return Err(TooManyPaths);
        }
        let number = self.nodes.len() as u32;
        let parent_node = &mut self.nodes[parent as usize];
        parent_node.children.push((address, number));
        parent_node.last_child = parent_node.children.len();
        let path = if parent_node.node_path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", parent_node.node_path)
        };
        // A sequence is open where its elements are: what is in it is in one of them.
        let (sequence_node, level) = match parent_node.is_sequence() {
            true => (Some(parent), (parent_node.level & !SEQUENCE) + 1),
            false => (parent_node.sequence, parent_node.level),
        };
        let node = self.make_node(path, sequence_node, level, is_sequence);
        self.nodes.push(node);
        Ok(number)
    }

    fn make_node(
        &self,
        path: String,
        sequence_node: Option<u32>,
        level: u32,
        is_sequence: bool,
    ) -> TemplatePathNode {
        let wants = &self.field_selection;
        let mut node = TemplatePathNode { sequence: sequence_node, level, ..TemplatePathNode::root() };
        for (_, reading, slot) in wants.message.iter().filter(|(p, ..)| *p == path) {
            node.value_targets.push(FastValueTarget::Message(*slot, *reading));
        }
        // Its name from the element of each sequence around it on.
        let mut names: Vec<(&str, &str)> = Vec::new();
        let mut up = sequence_node;
        while let Some(ancestor) = up {
            let sequence = &self.nodes[ancestor as usize];
            names.push((&sequence.node_path, &path[sequence.node_path.len() + 1..]));
            up = sequence.sequence;
        }
        for (g, group) in wants.group_paths.iter().enumerate() {
            let Some((home, name)) = names.iter().find(|(home, _)| is_in(&group.sequence, home)) else {
                continue;
            };
            for (_, reading, slot) in group.members.iter().filter(|(member, ..)| member == name) {
                node.value_targets.push(match *home == group.sequence {
                    true => FastValueTarget::Entry(g, *slot, *reading),
                    false => FastValueTarget::Around(g, *slot, *reading),
                });
            }
        }
        let is_dropped = |name: &str| {
            wants.dropped_paths.contains(name) || wants.group_paths.iter().any(|g| g.sequence == name)
        };
        let dropped = is_dropped(&path) || names.iter().any(|(_, name)| is_dropped(name));
        node.is_kept = wants.keeps_unlisted && !is_sequence && node.value_targets.is_empty() && !dropped;
        if is_sequence {
            let all = wants.group_paths.iter().enumerate();
            node.entries_of = all.clone().filter(|(_, g)| g.sequence == path).map(|(n, _)| n).collect();
            node.nested_groups = all
                .filter(|(_, g)| g.sequence != path && is_in(&g.sequence, &path))
                .map(|(n, _)| n)
                .collect();
            node.level = level | SEQUENCE;
        }
        node.node_path = path;
        node
    }

    #[inline]
    fn value(&mut self, node: u32, value: FieldValue<'_>, unit_ns: u64) {
        let node_of = &self.nodes[node as usize];
        if node_of.value_targets.is_empty() && !node_of.is_kept {
            return;
        }
        let mut hold = |bytes: &[u8]| {
            let text_start = self.arena.len() as u32;
            self.arena.extend_from_slice(bytes);
            (text_start, self.arena.len() as u32)
        };
        let value = match value {
            FieldValue::Int(n) => FastStoredValue::Int(n),
            FieldValue::UInt(n) => FastStoredValue::UInt(n),
            FieldValue::Decimal { mantissa, exponent } => FastStoredValue::Decimal { mantissa, exponent },
            // As everywhere: what is empty is not there.
            FieldValue::Text([]) | FieldValue::Bytes([]) => return,
            FieldValue::Text(bytes) => {
                let (from, to) = hold(bytes);
                FastStoredValue::Text { from, to }
            }
            FieldValue::Bytes(bytes) => {
                let (from, to) = hold(bytes);
                FastStoredValue::Bytes { from, to }
            }
        };
        let value_with = |reading| FastFieldValue { value, reading, unit_ns };
        for want in &node_of.value_targets {
            match *want {
                FastValueTarget::Message(slot, reading) => {
                    let slot_value = &mut self.message_slots[usize::from(slot)];
                    if slot_value.is_none() {
                        *slot_value = Some(value_with(reading));
                    }
                }
                FastValueTarget::Entry(group, slot, reading) => {
                    self.group_entries[group].values.push((slot, value_with(reading)));
                }
                FastValueTarget::Around(group, slot, reading) => {
                    let (outer_values, level) =
                        (&mut self.group_entries[group].outer_values, node_of.level & !SEQUENCE);
                    if !outer_values.iter().any(|(l, s, _)| (*l, *s) == (level, slot)) {
                        let index = outer_values.partition_point(|(l, ..)| *l >= level);
                        outer_values.insert(index, (level, slot, value_with(reading)));
                    }
                }
            }
        }
        if node_of.is_kept {
            self.unlisted_values.push((node, value_with(FastValueConversion::AsItIs)));
        }
    }

    /// Begins an element of this sequence.
    fn begin_element(&mut self, node: u32) {
        let (node, unlisted_count) = (&self.nodes[node as usize], self.unlisted_values.len());
        for group in &node.entries_of {
            let group = &mut self.group_entries[*group];
            group.open_start = group.values.len();
            group.open_unlisted_start = unlisted_count;
        }
        let level = (node.level & !SEQUENCE) + 1;
        for group in &node.nested_groups {
            // Values of the element before it do not belong to this one.
            self.group_entries[*group].outer_values.retain(|(l, ..)| *l < level);
        }
    }

    fn end_element(&mut self, node: u32) {
        for group in &self.nodes[node as usize].entries_of {
            let GroupEntries {
                values,
                entries,
                open_start,
                outer_values,
                unlisted_ranges,
                open_unlisted_start,
            } = &mut self.group_entries[*group];
            // Behind its own, the innermost first: of equal slots the first stays.
            values.extend(outer_values.iter().map(|(_, slot, field_value)| (*slot, *field_value)));
            entries.push(*open_start as u32..values.len() as u32);
            unlisted_ranges.push(*open_unlisted_start as u32..self.unlisted_values.len() as u32);
        }
    }

    /// Returns the value in a slot of the message.
    #[inline]
    pub fn slot_value(&self, slot: u8) -> Option<FastFieldValue> {
        self.message_slots[usize::from(slot)]
    }

    /// Returns the bytes of a text.
    #[inline]
    pub fn bytes(&self, from: u32, to: u32) -> &[u8] {
        &self.arena[from as usize..to as usize]
    }

    /// Fills `entry` with the values of the group's `n`th entry, if it has one.
    #[inline]
    pub fn entry(&self, group: usize, n: usize, entry: &mut [Option<FastFieldValue>]) -> bool {
        let group_of = &self.group_entries[group];
        let Some(values) = group_of.entries.get(n) else { return false };
        for (slot, field_value) in &group_of.values[values.start as usize..values.end as usize] {
            if let Some(target) = entry.get_mut(usize::from(*slot))
                && target.is_none()
            {
                *target = Some(*field_value);
            }
        }
        true
    }

    /// Returns the numbers of the unlisted values in the group's `n`th entry.
    pub fn entry_span(&self, group: usize, n: usize) -> Range<u32> {
        self.group_entries[group].unlisted_ranges.get(n).cloned().unwrap_or_default()
    }

    /// Returns the numbers of the unlisted values in entries of these groups, in order.
    pub fn entry_spans(&self, groups: &[usize]) -> Vec<Range<u32>> {
        let mut spans: Vec<_> =
            groups.iter().flat_map(|group| self.group_entries[*group].unlisted_ranges.clone()).collect();
        spans.sort_unstable_by_key(|span| span.start);
        spans
    }

    /// Iterates over path and value of the unlisted values with these numbers.
    pub fn unlisted_values(&self, numbers: Range<u32>) -> impl Iterator<Item = (&str, FastFieldValue)> {
        let end = self.unlisted_values.len().min(numbers.end as usize);
        let unlisted = self.unlisted_values.get(numbers.start as usize..end).unwrap_or_default();
        unlisted
            .iter()
            .map(|(node, field_value)| (self.nodes[*node as usize].node_path.as_str(), *field_value))
    }
}

/// In `Node::level`: it is a sequence.
const SEQUENCE: u32 = 1 << 31;

impl TemplatePathNode {
    fn root() -> Self {
        Self {
            node_path: String::new(),
            children: Vec::new(),
            last_child: 0,
            value_targets: Vec::new(),
            is_kept: false,
            sequence: None,
            level: 0,
            entries_of: Vec::new(),
            nested_groups: Vec::new(),
        }
    }

    fn is_sequence(&self) -> bool {
        self.level & SEQUENCE != 0
    }
}

/// Returns whether `path` is `home` or inside it.
fn is_in(path: &str, home: &str) -> bool {
    path.strip_prefix(home).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn unit_of(field: &TemplateField) -> u64 {
    match field.meaning {
        IntegerMeaning::Timestamp { unit_ns } => unit_ns,
        _ => 0,
    }
}
