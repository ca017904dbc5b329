//! A decoded message: a flat list of entries, used again for the next one.

use super::program::{Info, Of, Program};
use super::template::{Field, Kind, Name, Type};
use std::ops::Range;
use std::sync::Arc;
use zerocopy::IntoBytes;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    Int,
    UInt,
    Decimal,
    /// Up to eight bytes, in the entry.
    Short,
    /// More, in the arena.
    Long,
    Group,
    Sequence,
    Element,
    /// Of a group, a sequence or an element.
    End,
}

/// Sixteen bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// The number; the bytes, the first the lowest; offset and length in the arena; how many elements.
    pub bits: u64,
    /// Of the field.
    pub info: u32,
    pub tag: Tag,
    /// Of a decimal.
    pub exponent: i8,
    /// Of a short text.
    pub len: u8,
}

/// A value of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'m> {
    /// int32, int64.
    Int(i64),
    /// uInt32, uInt64, and what is told as such.
    UInt(u64),
    /// Mantissa times ten to the exponent, from −63 to 63.
    Decimal {
        /// The mantissa.
        mantissa: i64,
        /// The exponent.
        exponent: i8,
    },
    /// A string: ASCII, or what should be UTF-8.
    Text(&'m [u8]),
    /// A byte vector.
    Bytes(&'m [u8]),
}

/// An item of a message, in the order of the template.
#[derive(Debug, Clone, Copy)]
pub enum Item<'m> {
    /// A field and its value.
    Value(&'m Arc<Field>, Value<'m>),
    /// A group begins.
    Group(&'m Name),
    /// A sequence of so many elements begins.
    Sequence(&'m Name, u32),
    /// One of its elements begins.
    Element,
    /// What began last is over.
    End,
}

/// A message as the decoder has it, until the next one.
#[derive(Debug, Clone, Copy)]
pub struct Message<'m> {
    pub(super) program: &'m Program,
    pub(super) entries: &'m [Entry],
    pub(super) arena: &'m [u8],
    /// The templates of its dynamic references, in order.
    pub(super) named: &'m [u32],
    /// Its template, by its place in the list.
    pub template: usize,
    /// Bytes it has.
    pub bytes: usize,
}

impl<'m> Message<'m> {
    /// What is in it, in order. What is absent is not there.
    pub fn items(&self) -> impl Iterator<Item = Item<'m>> + Clone + use<'m> {
        let Self { program, entries, arena, .. } = *self;
        entries.iter().map(move |entry| {
            if entry.tag == Tag::Element || entry.tag == Tag::End {
                return if entry.tag == Tag::Element { Item::Element } else { Item::End };
            }
            let info: &Info = &program.infos[entry.info as usize];
            match &info.of {
                Of::Group(name) => Item::Group(name),
                Of::Sequence(name) => Item::Sequence(name, entry.bits as u32),
                Of::Field(field) => Item::Value(field, value(entry, field, arena)),
                Of::Reference(_) => unreachable!("it has no entries"),
            }
        })
    }

    /// The first value of this name outside of groups and sequences.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value<'m>> {
        let mut depth = 0;
        for item in self.items() {
            match item {
                Item::Value(field, value) if depth == 0 && field.name.local == name => return Some(value),
                Item::Group(_) | Item::Sequence(..) | Item::Element => depth += 1,
                Item::End => depth -= 1,
                Item::Value(..) => {}
            }
        }
        None
    }
}

fn value<'m>(entry: &'m Entry, field: &Field, arena: &'m [u8]) -> Value<'m> {
    let text = |bytes| match field.kind {
        Kind::Plain(Type::Bytes, _) => Value::Bytes(bytes),
        _ => Value::Text(bytes),
    };
    match entry.tag {
        Tag::Int => Value::Int(entry.bits as i64),
        Tag::UInt => Value::UInt(entry.bits),
        Tag::Decimal => Value::Decimal { mantissa: entry.bits as i64, exponent: entry.exponent },
        // The lowest byte is the first.
        Tag::Short => text(&entry.bits.as_bytes()[..usize::from(entry.len)]),
        Tag::Long => text(&arena[span(entry.bits)]),
        Tag::Group | Tag::Sequence | Tag::Element | Tag::End => unreachable!("no value"),
    }
}

/// Where a long text lies.
pub(super) fn span(bits: u64) -> Range<usize> {
    let (from, len) = ((bits >> 32) as usize, (bits & 0xffff_ffff) as usize);
    from..from + len
}
