//! A decoded message: a flat list of entries, used again for the next one.
//!
//! ```text
//!  entries:   value  value  Sequence  Element  value  Element  value  End   value
//!                                     └ ends the one before it        └ ends the last one, too
//! ```
//!
//! A constant of a template has no entry. The reader inserts it: each field knows how many constants precede it in
//! its block ([`ConstantRange`]).

use super::entry::{DecodedEntry, DecodedEntryKind, span};
use super::program::{
    CompiledPart, CompiledPartKind, CompiledTemplate, ConstantEntry, ConstantRange, DecodeProgram,
};
use super::projection::DecodedFieldRef;
use super::template::{QualifiedName, TemplateField};
use std::sync::Arc;
use zerocopy::IntoBytes;

/// A value of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValue<'m> {
    /// int32, int64.
    Int(i64),
    /// uInt32, uInt64, and values encoded as such.
    UInt(u64),
    /// Mantissa times ten to the exponent, from −63 to 63.
    Decimal {
        /// The mantissa.
        mantissa: i64,
        /// The exponent.
        exponent: i8,
    },
    /// A string: ASCII, or text that should be UTF-8.
    Text(&'m [u8]),
    /// A byte vector.
    Bytes(&'m [u8]),
}

/// An item of a message, in the order of the template.
#[derive(Debug, Clone, Copy)]
pub enum MessageToken<'m> {
    /// A field and its value.
    Value(&'m Arc<TemplateField>, FieldValue<'m>),
    /// A group begins.
    Group(&'m QualifiedName),
    /// A sequence of this many elements begins.
    Sequence(&'m QualifiedName, u32),
    /// An element of the sequence begins.
    Element,
    /// The innermost open part ends.
    End,
}

/// An item with the facts about its name, for code that writes objects.
#[derive(Clone, Copy)]
pub(super) enum ObjectToken<'m> {
    Value(&'m CompiledPart, FieldValue<'m>),
    Group(&'m CompiledPart),
    Sequence(&'m CompiledPart),
    /// An element of the sequence of this name begins.
    Element(&'m CompiledPart),
    /// A message in the message begins, of this template.
    Inner(&'m CompiledPart, usize),
    /// The innermost open part ends.
    End,
}

/// An item of a message, with the caller's own tag in place of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaggedToken<'m> {
    /// A field's tag, and its value.
    Value(u16, FieldValue<'m>),
    /// A group begins.
    Group(u16),
    /// A sequence of this many elements begins.
    Sequence(u16, u32),
    /// An element of the sequence begins.
    Element,
    /// The innermost open part ends.
    End,
}

/// A message as the decoder has it, until the next one.
#[derive(Debug, Clone, Copy)]
pub struct Message<'m> {
    pub(super) program: &'m DecodeProgram,
    pub(super) entries: &'m [DecodedEntry],
    pub(super) arena: &'m [u8],
    /// The index of its template in the list.
    pub template: usize,
    /// Bytes it has.
    pub bytes: usize,
}

impl<'m> Message<'m> {
    /// Returns the parts of the message, in order. Absent parts and parts outside the decoder's projection are left
    /// out.
    pub fn items(&self) -> impl Iterator<Item = MessageToken<'m>> + Clone + use<'m> {
        let (program, arena) = (self.program, self.arena);
        self.expanded_entries::<false>().map(move |expanded_entry| {
            let info = |entry: &DecodedEntry| &program.infos[entry.info() as usize];
            match expanded_entry {
                ExpandedEntry::Entry(entry) => match (entry.form(), &info(entry).kind) {
                    (DecodedEntryKind::Group, kind) => MessageToken::Group(kind.name()),
                    (DecodedEntryKind::Sequence, kind) => {
                        MessageToken::Sequence(kind.name(), entry.bits as u32)
                    }
                    (_, CompiledPartKind::Field(field)) => {
                        MessageToken::Value(field, value(entry, program, arena))
                    }
                    (_, kind) => unreachable!("{kind:?} has no value"),
                },
                ExpandedEntry::Element(_) => MessageToken::Element,
                ExpandedEntry::Inner(_) => unreachable!("not asked for"),
                ExpandedEntry::End => MessageToken::End,
            }
        })
    }

    /// Returns the parts of the message with the tags of the projection. Without a projection, all tags are
    /// [`super::UNTAGGED`].
    pub fn tagged_tokens(&self) -> impl Iterator<Item = TaggedToken<'m>> + Clone + use<'m> {
        let (program, arena) = (self.program, self.arena);
        self.expanded_entries::<false>().map(move |expanded_entry| match expanded_entry {
            ExpandedEntry::Entry(entry) => match entry.form() {
                DecodedEntryKind::Group => TaggedToken::Group(entry.tag()),
                DecodedEntryKind::Sequence => TaggedToken::Sequence(entry.tag(), entry.bits as u32),
                _ => TaggedToken::Value(entry.tag(), value(entry, program, arena)),
            },
            ExpandedEntry::Element(_) => TaggedToken::Element,
            ExpandedEntry::Inner(_) => unreachable!("not asked for"),
            ExpandedEntry::End => TaggedToken::End,
        })
    }

    /// Returns the parts of the message and of the messages inside it, each with its compiled part.
    pub(super) fn tokens(&self) -> impl Iterator<Item = ObjectToken<'m>> + Clone + use<'m> {
        let (program, arena) = (self.program, self.arena);
        self.expanded_entries::<true>().map(move |expanded_entry| {
            let info = |entry: &DecodedEntry| &program.infos[entry.info() as usize];
            match expanded_entry {
                ExpandedEntry::Entry(entry) => match entry.form() {
                    DecodedEntryKind::Group => ObjectToken::Group(info(entry)),
                    DecodedEntryKind::Sequence => ObjectToken::Sequence(info(entry)),
                    _ => ObjectToken::Value(info(entry), value(entry, program, arena)),
                },
                ExpandedEntry::Element(entry) => ObjectToken::Element(info(entry)),
                ExpandedEntry::Inner(entry) => ObjectToken::Inner(info(entry), entry.bits as usize),
                ExpandedEntry::End => ObjectToken::End,
            }
        })
    }

    /// Returns the value of a field that was looked up before. Returns the first value if the field is in a sequence.
    #[must_use]
    pub fn field(&self, field: DecodedFieldRef) -> Option<FieldValue<'m>> {
        let info = &self.program.infos[field.info as usize];
        let entry = match info.constant {
            Some(index) => {
                // Its block is in the message if it is the template's own, or if an entry shows it.
                let is_present = self
                    .expanded_entries::<false>()
                    .any(|s| matches!(s, ExpandedEntry::Entry(e) if e.info() == field.info));
                is_present.then(|| &self.program.constants[index as usize].entry)
            }
            None => {
                self.entries.iter().find(|e| e.info() == field.info && e.form() <= DecodedEntryKind::Long)
            }
        };
        entry.map(|entry| value(entry, self.program, self.arena))
    }

    /// Finds the first value of this name outside of groups and sequences.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<FieldValue<'m>> {
        let mut depth = 0;
        for item in self.items() {
            match item {
                MessageToken::Value(field, value) if depth == 0 && field.name.local == name => {
                    return Some(value);
                }
                MessageToken::Group(_) | MessageToken::Sequence(..) | MessageToken::Element => depth += 1,
                MessageToken::End => depth -= 1,
                MessageToken::Value(..) => {}
            }
        }
        None
    }

    /// Returns the value of an entry if the entry is of this field.
    pub(super) fn value(
        &self,
        entry: &'m DecodedEntry,
        expected_field: &Arc<TemplateField>,
    ) -> Option<FieldValue<'m>> {
        match &self.program.infos[entry.info() as usize].kind {
            CompiledPartKind::Field(field) if Arc::ptr_eq(field, expected_field) => {
                Some(value(entry, self.program, self.arena))
            }
            _ => None,
        }
    }

    fn expanded_entries<const INNER: bool>(&self) -> EntryExpander<'m, INNER> {
        let block = &self.program.templates[self.template].inside;
        EntryExpander {
            infos: &self.program.infos,
            constants: &self.program.constants,
            templates: &self.program.templates,
            entries: self.entries.iter(),
            constants_left: *block,
            in_element: false,
        }
    }
}

/// Entries with constants inserted and all ends explicit.
enum ExpandedEntry<'m> {
    /// A value, or a group or a sequence that begins.
    Entry(&'m DecodedEntry),
    Element(&'m DecodedEntry),
    /// A message in the message, where these are asked for.
    Inner(&'m DecodedEntry),
    End,
}

/// With `INNER` messages in the message begin and end as groups do.
#[derive(Clone)]
struct EntryExpander<'m, const INNER: bool> {
    infos: &'m [CompiledPart],
    constants: &'m [ConstantEntry],
    templates: &'m [CompiledTemplate],
    entries: std::slice::Iter<'m, DecodedEntry>,
    /// Constants of the block that were not returned yet.
    constants_left: ConstantRange,
    /// The innermost open part is an element.
    in_element: bool,
}

impl<'m, const INNER: bool> Iterator for EntryExpander<'m, INNER> {
    type Item = ExpandedEntry<'m>;

    #[inline]
    fn next(&mut self) -> Option<ExpandedEntry<'m>> {
        loop {
            let Some(entry) = self.entries.as_slice().first() else {
                return self.constant(self.constants_left.to);
            };
            let info = &self.infos[entry.info() as usize];
            if entry.form() < DecodedEntryKind::Element || entry.form() == DecodedEntryKind::Inner {
                if let Some(constant) = self.constant(info.constants) {
                    return Some(constant);
                }
                self.entries.next();
                match entry.form() {
                    DecodedEntryKind::Group | DecodedEntryKind::Sequence => {
                        (self.constants_left, self.in_element) = (info.inside, false);
                        if entry.form() == DecodedEntryKind::Sequence {
                            self.constants_left = ConstantRange::NOTHING;
                        }
                    }
                    DecodedEntryKind::Inner => {
                        let template = &self.templates[entry.bits as usize];
                        (self.constants_left, self.in_element) = (template.inside, false);
                        if INNER {
                            return Some(ExpandedEntry::Inner(entry));
                        }
                        continue;
                    }
                    _ => {}
                }
                return Some(ExpandedEntry::Entry(entry));
            }
            if let Some(constant) = self.constant(self.constants_left.to) {
                return Some(constant);
            }
            if self.in_element {
                (self.constants_left, self.in_element) = (ConstantRange::NOTHING, false);
                return Some(ExpandedEntry::End);
            }
            self.entries.next();
            if entry.form() == DecodedEntryKind::Element {
                (self.constants_left, self.in_element) = (info.inside, true);
                return Some(ExpandedEntry::Element(entry));
            }
            self.constants_left = ConstantRange { from: info.constants, to: info.block_constants_end };
            self.in_element = info.in_element;
            if INNER || !matches!(info.kind, CompiledPartKind::Dynamic) {
                return Some(ExpandedEntry::End);
            }
        }
    }
}

impl<'m, const INNER: bool> EntryExpander<'m, INNER> {
    #[inline]
    fn constant(&mut self, before: u32) -> Option<ExpandedEntry<'m>> {
        if self.constants_left.from >= before {
            return None;
        }
        self.constants_left.from += 1;
        Some(ExpandedEntry::Entry(&self.constants[self.constants_left.from as usize - 1].entry))
    }
}

#[inline]
pub(super) fn value<'m>(entry: &'m DecodedEntry, program: &DecodeProgram, arena: &'m [u8]) -> FieldValue<'m> {
    let is_bytes = || program.infos[entry.info() as usize].is_bytes;
    let text = |bytes| if is_bytes() { FieldValue::Bytes(bytes) } else { FieldValue::Text(bytes) };
    match entry.form() {
        DecodedEntryKind::Int => FieldValue::Int(entry.bits as i64),
        DecodedEntryKind::UInt => FieldValue::UInt(entry.bits),
        DecodedEntryKind::Decimal => {
            FieldValue::Decimal { mantissa: entry.bits as i64, exponent: entry.extra() as i8 }
        }
        // The lowest byte is the first.
        DecodedEntryKind::Short => text(&entry.bits.as_bytes()[..usize::from(entry.extra())]),
        DecodedEntryKind::Long => text(&arena[span(entry.bits)]),
        _ => unreachable!("no value"),
    }
}
