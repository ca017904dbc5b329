//! A decoded message: a flat list of entries, used again for the next one.
//!
//! ```text
//!  entries:   value  value  Sequence  Element  value  Element  value  End   value
//!                                     └ ends the one before it        └ ends the last one, too
//! ```
//!
//! What a template tells by a constant has no entry. It is put in by whoever reads: each field knows how many constants
//! stand before it in its block ([`Inside`]).

use super::entry::{Entry, Form, span};
use super::program::{Compiled, Constant, Info, Inside, Of, Program};
use super::projection::FieldRef;
use super::template::{Field, Name};
use std::sync::Arc;
use zerocopy::IntoBytes;

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

/// An item with what is known of its name, for who writes objects.
#[derive(Clone, Copy)]
pub(super) enum Token<'m> {
    Value(&'m Info, Value<'m>),
    Group(&'m Info),
    Sequence(&'m Info),
    /// An element of the sequence of this name begins.
    Element(&'m Info),
    /// A message in the message begins, of this template.
    Inner(&'m Info, usize),
    /// What began last is over.
    End,
}

/// The same with the caller's own tags in place of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell<'m> {
    /// A field's tag, and its value.
    Value(u16, Value<'m>),
    /// A group begins.
    Group(u16),
    /// A sequence of so many elements begins.
    Sequence(u16, u32),
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
    /// Its template, by its place in the list.
    pub template: usize,
    /// Bytes it has.
    pub bytes: usize,
}

impl<'m> Message<'m> {
    /// What is in it, in order. What is absent is not there, nor what is not in the decoder's projection.
    pub fn items(&self) -> impl Iterator<Item = Item<'m>> + Clone + use<'m> {
        let (program, arena) = (self.program, self.arena);
        self.seen::<false>().map(move |seen| {
            let info = |entry: &Entry| &program.infos[entry.info() as usize];
            match seen {
                Seen::Entry(entry) => match (entry.form(), &info(entry).of) {
                    (Form::Group, of) => Item::Group(of.name()),
                    (Form::Sequence, of) => Item::Sequence(of.name(), entry.bits as u32),
                    (_, Of::Field(field)) => Item::Value(field, value(entry, program, arena)),
                    (_, of) => unreachable!("{of:?} has no value"),
                },
                Seen::Element(_) => Item::Element,
                Seen::Inner(_) => unreachable!("not asked for"),
                Seen::End => Item::End,
            }
        })
    }

    /// The same with the tags of the projection, which without one are all [`super::UNTAGGED`].
    pub fn cells(&self) -> impl Iterator<Item = Cell<'m>> + Clone + use<'m> {
        let (program, arena) = (self.program, self.arena);
        self.seen::<false>().map(move |seen| match seen {
            Seen::Entry(entry) => match entry.form() {
                Form::Group => Cell::Group(entry.tag()),
                Form::Sequence => Cell::Sequence(entry.tag(), entry.bits as u32),
                _ => Cell::Value(entry.tag(), value(entry, program, arena)),
            },
            Seen::Element(_) => Cell::Element,
            Seen::Inner(_) => unreachable!("not asked for"),
            Seen::End => Cell::End,
        })
    }

    /// The same with messages in the message, each with what is known of its name.
    pub(super) fn tokens(&self) -> impl Iterator<Item = Token<'m>> + Clone + use<'m> {
        let (program, arena) = (self.program, self.arena);
        self.seen::<true>().map(move |seen| {
            let info = |entry: &Entry| &program.infos[entry.info() as usize];
            match seen {
                Seen::Entry(entry) => match entry.form() {
                    Form::Group => Token::Group(info(entry)),
                    Form::Sequence => Token::Sequence(info(entry)),
                    _ => Token::Value(info(entry), value(entry, program, arena)),
                },
                Seen::Element(entry) => Token::Element(info(entry)),
                Seen::Inner(entry) => Token::Inner(info(entry), entry.bits as usize),
                Seen::End => Token::End,
            }
        })
    }

    /// The value of a field that was looked up before; the first, where it is in a sequence.
    #[must_use]
    pub fn field(&self, field: FieldRef) -> Option<Value<'m>> {
        let info = &self.program.infos[field.info as usize];
        let entry = match info.constant {
            Some(index) => {
                // Its block is in the message if it is the template's own, or something says so.
                let there =
                    self.seen::<false>().any(|s| matches!(s, Seen::Entry(e) if e.info() == field.info));
                there.then(|| &self.program.constants[index as usize].entry)
            }
            None => self.entries.iter().find(|e| e.info() == field.info && e.form() <= Form::Long),
        };
        entry.map(|entry| value(entry, self.program, self.arena))
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

    /// The value of one of its entries, if it is of this field.
    pub(super) fn value(&self, entry: &'m Entry, of: &Arc<Field>) -> Option<Value<'m>> {
        match &self.program.infos[entry.info() as usize].of {
            Of::Field(field) if Arc::ptr_eq(field, of) => Some(value(entry, self.program, self.arena)),
            _ => None,
        }
    }

    fn seen<const INNER: bool>(&self) -> SeenIter<'m, INNER> {
        let block = &self.program.templates[self.template].inside;
        SeenIter {
            infos: &self.program.infos,
            constants: &self.program.constants,
            templates: &self.program.templates,
            entries: self.entries.iter(),
            inside: *block,
            in_element: false,
        }
    }
}

/// Entries with constants put in and all ends told.
enum Seen<'m> {
    /// A value, or a group or a sequence that begins.
    Entry(&'m Entry),
    Element(&'m Entry),
    /// A message in the message, where these are asked for.
    Inner(&'m Entry),
    End,
}

/// With `INNER` messages in the message begin and end as groups do.
#[derive(Clone)]
struct SeenIter<'m, const INNER: bool> {
    infos: &'m [Info],
    constants: &'m [Constant],
    templates: &'m [Compiled],
    entries: std::slice::Iter<'m, Entry>,
    /// Constants of the block that are not told yet.
    inside: Inside,
    /// What is open is an element.
    in_element: bool,
}

impl<'m, const INNER: bool> Iterator for SeenIter<'m, INNER> {
    type Item = Seen<'m>;

    #[inline]
    fn next(&mut self) -> Option<Seen<'m>> {
        loop {
            let Some(entry) = self.entries.as_slice().first() else {
                return self.constant(self.inside.to);
            };
            let info = &self.infos[entry.info() as usize];
            if entry.form() < Form::Element || entry.form() == Form::Inner {
                if let Some(constant) = self.constant(info.constants) {
                    return Some(constant);
                }
                self.entries.next();
                match entry.form() {
                    Form::Group | Form::Sequence => {
                        (self.inside, self.in_element) = (info.inside, false);
                        if entry.form() == Form::Sequence {
                            self.inside = Inside::NOTHING;
                        }
                    }
                    Form::Inner => {
                        let template = &self.templates[entry.bits as usize];
                        (self.inside, self.in_element) = (template.inside, false);
                        if INNER {
                            return Some(Seen::Inner(entry));
                        }
                        continue;
                    }
                    _ => {}
                }
                return Some(Seen::Entry(entry));
            }
            if let Some(constant) = self.constant(self.inside.to) {
                return Some(constant);
            }
            if self.in_element {
                (self.inside, self.in_element) = (Inside::NOTHING, false);
                return Some(Seen::End);
            }
            self.entries.next();
            if entry.form() == Form::Element {
                (self.inside, self.in_element) = (info.inside, true);
                return Some(Seen::Element(entry));
            }
            self.inside = Inside { from: info.constants, to: info.around };
            self.in_element = info.in_element;
            if INNER || !matches!(info.of, Of::Dynamic) {
                return Some(Seen::End);
            }
        }
    }
}

impl<'m, const INNER: bool> SeenIter<'m, INNER> {
    #[inline]
    fn constant(&mut self, before: u32) -> Option<Seen<'m>> {
        if self.inside.from >= before {
            return None;
        }
        self.inside.from += 1;
        Some(Seen::Entry(&self.constants[self.inside.from as usize - 1].entry))
    }
}

#[inline]
pub(super) fn value<'m>(entry: &'m Entry, program: &Program, arena: &'m [u8]) -> Value<'m> {
    let is_bytes = || program.infos[entry.info() as usize].is_bytes;
    let text = |bytes| if is_bytes() { Value::Bytes(bytes) } else { Value::Text(bytes) };
    match entry.form() {
        Form::Int => Value::Int(entry.bits as i64),
        Form::UInt => Value::UInt(entry.bits),
        Form::Decimal => Value::Decimal { mantissa: entry.bits as i64, exponent: entry.extra() as i8 },
        // The lowest byte is the first.
        Form::Short => text(&entry.bits.as_bytes()[..usize::from(entry.extra())]),
        Form::Long => text(&arena[span(entry.bits)]),
        _ => unreachable!("no value"),
    }
}
