//! A message, passed to a visitor part by part.

use super::entry::{DecodedEntry, DecodedEntryKind};
use super::program::{CompiledPartKind, ConstantRange};
use super::record::{FieldValue, Message, value};

/// A value of a message, whatever its type, until somebody asks: most visitors know what to expect of a field.
#[derive(Debug, Clone, Copy)]
pub struct DecodedValue<'m> {
    entry: &'m DecodedEntry,
    message: &'m Message<'m>,
}

impl<'m> DecodedValue<'m> {
    #[inline(always)]
    fn is(self, form: DecodedEntryKind) -> bool {
        self.entry.unpacked_view().form == form as u8
    }

    /// The value.
    #[inline(always)]
    #[must_use]
    pub fn get(self) -> FieldValue<'m> {
        of_any_form(self.entry, self.message)
    }

    /// The value of an uInt32 or uInt64, or one encoded as such.
    #[inline(always)]
    #[must_use]
    pub fn uint(self) -> Option<u64> {
        self.is(DecodedEntryKind::UInt).then_some(self.entry.bits)
    }

    /// The value of an int32 or int64.
    #[inline(always)]
    #[must_use]
    pub fn int(self) -> Option<i64> {
        self.is(DecodedEntryKind::Int).then_some(self.entry.bits as i64)
    }

    /// The number that a byte vector of up to eight bytes is, the highest first.
    #[inline(always)]
    #[must_use]
    pub fn uint_of_bytes(self) -> Option<u64> {
        let is_bytes = || self.message.program.infos[self.entry.info() as usize].is_bytes;
        let is_short = self.is(DecodedEntryKind::Short) && is_bytes();
        // The lowest byte is the first, and there is nothing above the last.
        is_short.then(|| match self.entry.extra() {
            0 => 0,
            len => self.entry.bits.swap_bytes() >> (64 - 8 * u32::from(len.min(8))),
        })
    }

    /// Mantissa and exponent of a decimal.
    #[inline(always)]
    #[must_use]
    pub fn decimal(self) -> Option<(i64, i8)> {
        self.is(DecodedEntryKind::Decimal)
            .then_some((self.entry.bits as i64, self.entry.unpacked_view().extra as i8))
    }
}

/// The next part of a message, a value or something else; of anything but a value, only the tag is available.
#[derive(Debug, Clone, Copy)]
pub struct MessagePart<'m>(DecodedValue<'m>);

impl MessagePart<'_> {
    /// Its tag.
    #[inline(always)]
    #[must_use]
    pub fn tag(self) -> u16 {
        self.0.entry.unpacked_view().tag
    }

    /// As [`DecodedValue::uint`].
    #[inline(always)]
    #[must_use]
    pub fn uint(self) -> Option<u64> {
        self.0.uint()
    }

    /// As [`DecodedValue::int`].
    #[inline(always)]
    #[must_use]
    pub fn int(self) -> Option<i64> {
        self.0.int()
    }

    /// As [`DecodedValue::decimal`].
    #[inline(always)]
    #[must_use]
    pub fn decimal(self) -> Option<(i64, i8)> {
        self.0.decimal()
    }

    /// The text of one byte that it is.
    #[inline(always)]
    #[must_use]
    pub fn letter(self) -> Option<u8> {
        let DecodedValue { entry, message } = self.0;
        let is_letter = self.0.is(DecodedEntryKind::Short) && entry.unpacked_view().extra == 1;
        (is_letter && !message.program.infos[entry.info() as usize].is_bytes).then_some(entry.bits as u8)
    }
}

/// The parts of a message that are still to come; see [`MessageVisitor::parts`].
#[derive(Debug)]
pub struct MessagePartIter<'m> {
    entries: std::slice::Iter<'m, DecodedEntry>,
    message: &'m Message<'m>,
    /// The innermost open part is an element.
    in_element: bool,
}

impl<'m> MessagePartIter<'m> {
    /// The next one.
    #[inline(always)]
    #[must_use]
    pub fn first(&self) -> Option<MessagePart<'m>> {
        let entry = self.entries.as_slice().first()?;
        Some(MessagePart(DecodedValue { entry, message: self.message }))
    }

    /// It was read, and was a value.
    #[inline(always)]
    pub fn skip_value(&mut self) {
        let part = self.entries.next();
        debug_assert!(part.is_some_and(DecodedEntry::is_value), "no value");
    }

    /// Whether an element begins, the first of a sequence or, with the end of the one before it, another: then it is taken.
    #[inline(always)]
    pub fn element(&mut self) -> bool {
        let begins = self.first().is_some_and(|MessagePart(part)| part.is(DecodedEntryKind::Element));
        if begins {
            self.entries.next();
            self.in_element = true;
        }
        begins
    }
}

/// Receives the contents of a message, in order; see [`super::Decoder::decode_with`].
pub trait MessageVisitor {
    /// A field's tag, and its value.
    fn value(&mut self, tag: u16, value: DecodedValue<'_>);
    /// A group begins.
    fn group(&mut self, _tag: u16) {}
    /// A sequence of this many elements begins.
    fn sequence(&mut self, _tag: u16, _elements: u32) {}
    /// An element of the sequence begins.
    fn element(&mut self) {}
    /// The innermost open part ends.
    fn end(&mut self) {}
    /// A message in the message begins, of this template; what it has comes under the tags of that one.
    fn inner(&mut self, _template: usize) {}
    /// It is over.
    fn inner_end(&mut self) {}
    /// A visitor that knows what most values are can take these itself as they come, which is quicker, and the elements
    /// among them; it leaves the first part that it does not take. It is asked between all other calls, and need take
    /// nothing; of templates with constants it is not asked.
    #[inline(always)]
    fn parts(&mut self, _parts: &mut MessagePartIter<'_>) {}
}

impl Message<'_> {
    /// Passes all contents to a visitor: the quickest way through a message.
    #[inline]
    pub fn visit(&self, visitor: &mut impl MessageVisitor) {
        match self.program.templates[self.template].has_constants {
            true => self.walk::<true>(visitor),
            false => self.walk::<false>(visitor),
        }
    }

    /// Where a template has no constant that anybody asked for, none is looked for.
    #[inline(always)]
    fn walk<const CONSTANTS: bool>(&self, visitor: &mut impl MessageVisitor) {
        let program = self.program;
        let mut inside = program.templates[self.template].inside;
        let mut parts = MessagePartIter { entries: self.entries.iter(), message: self, in_element: false };
        loop {
            if !CONSTANTS {
                visitor.parts(&mut parts);
            }
            let Some(entry) = parts.entries.next() else { break };
            let info = || &program.infos[entry.info() as usize];
            if CONSTANTS {
                let is_end = matches!(entry.form(), DecodedEntryKind::Element | DecodedEntryKind::End);
                let before = if is_end { inside.to } else { info().constants };
                constants(self, &mut inside, before, visitor);
            }
            // Most entries are values, and only the visitor needs their kind.
            if entry.is_value() {
                visitor.value(entry.tag(), DecodedValue { entry, message: self });
                continue;
            }
            match entry.form() {
                DecodedEntryKind::Group => {
                    (inside, parts.in_element) = (info().inside, false);
                    visitor.group(entry.tag());
                }
                DecodedEntryKind::Sequence => {
                    (inside, parts.in_element) = (ConstantRange::NOTHING, false);
                    visitor.sequence(entry.tag(), entry.bits as u32);
                }
                DecodedEntryKind::Inner => {
                    (inside, parts.in_element) = (program.templates[entry.bits as usize].inside, false);
                    visitor.inner(entry.bits as usize);
                }
                DecodedEntryKind::Element => {
                    if CONSTANTS {
                        inside = info().inside;
                    }
                    if parts.in_element {
                        visitor.end();
                    }
                    parts.in_element = true;
                    visitor.element();
                }
                _ => {
                    if parts.in_element {
                        visitor.end();
                    }
                    let info = info();
                    inside = ConstantRange { from: info.constants, to: info.around };
                    parts.in_element = info.in_element;
                    match info.of {
                        // In which there may be constants.
                        CompiledPartKind::Dynamic if CONSTANTS => visitor.inner_end(),
                        _ => visitor.end(),
                    }
                }
            }
        }
        if CONSTANTS && inside.from < inside.to {
            let before = inside.to;
            constants(self, &mut inside, before, visitor);
        }
    }
}

#[inline(never)]
fn of_any_form<'m>(entry: &'m DecodedEntry, message: &'m Message<'m>) -> FieldValue<'m> {
    value(entry, message.program, message.arena)
}

/// Passes the constants of a block before this place that were not passed yet.
#[inline(never)]
fn constants(
    message: &Message<'_>,
    inside: &mut ConstantRange,
    before: u32,
    visitor: &mut impl MessageVisitor,
) {
    while inside.from < before {
        let entry = &message.program.constants[inside.from as usize].entry;
        visitor.value(entry.tag(), DecodedValue { entry, message });
        inside.from += 1;
    }
}
