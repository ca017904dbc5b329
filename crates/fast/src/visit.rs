//! A message, passed to a visitor part by part.

use super::entry::{DecodedEntry, DecodedEntryKind};
use super::program::{CompiledPartKind, ConstantRange};
use super::record::{FieldValue, Message, value};

/// A value of a message whose type is not resolved yet: most visitors know what to expect of a field.
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

    /// Returns the value.
    #[inline(always)]
    #[must_use]
    pub fn get(self) -> FieldValue<'m> {
        of_any_form(self.entry, self.message)
    }

    /// Returns the value of a uInt32 or uInt64, or of a field with the same encoding.
    #[inline(always)]
    #[must_use]
    pub fn uint(self) -> Option<u64> {
        self.is(DecodedEntryKind::UInt).then_some(self.entry.bits)
    }

    /// Returns the value of an int32 or int64.
    #[inline(always)]
    #[must_use]
    pub fn int(self) -> Option<i64> {
        self.is(DecodedEntryKind::Int).then_some(self.entry.bits as i64)
    }

    /// Reads a byte vector of up to eight bytes as a big-endian number.
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

    /// Returns the mantissa and the exponent of a decimal.
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
    /// Returns the tag of the part.
    #[inline(always)]
    #[must_use]
    pub fn tag(self) -> u16 {
        self.0.entry.unpacked_view().tag
    }

    /// Returns an unsigned integer, as [`DecodedValue::uint`].
    #[inline(always)]
    #[must_use]
    pub fn uint(self) -> Option<u64> {
        self.0.uint()
    }

    /// Returns a signed integer, as [`DecodedValue::int`].
    #[inline(always)]
    #[must_use]
    pub fn int(self) -> Option<i64> {
        self.0.int()
    }

    /// Returns a decimal, as [`DecodedValue::decimal`].
    #[inline(always)]
    #[must_use]
    pub fn decimal(self) -> Option<(i64, i8)> {
        self.0.decimal()
    }

    /// Returns the character of a text of one byte.
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
    /// Returns the next part without taking it.
    #[inline(always)]
    #[must_use]
    pub fn first(&self) -> Option<MessagePart<'m>> {
        let entry = self.entries.as_slice().first()?;
        Some(MessagePart(DecodedValue { entry, message: self.message }))
    }

    /// Skips the next part, which must be a value.
    #[inline(always)]
    pub fn skip_value(&mut self) {
        let part = self.entries.next();
        debug_assert!(part.is_some_and(DecodedEntry::is_value), "no value");
    }

    /// Takes the start of the next element. Returns false if the sequence has no more elements.
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
    /// Receives the tag and the value of a field.
    fn value(&mut self, tag: u16, value: DecodedValue<'_>);
    /// Receives the start of a group.
    fn group(&mut self, _tag: u16) {}
    /// Receives the start of a sequence with this many elements.
    fn sequence(&mut self, _tag: u16, _elements: u32) {}
    /// Receives the start of an element of the sequence.
    fn element(&mut self) {}
    /// Receives the end of the innermost open part.
    fn end(&mut self) {}
    /// Receives the start of a message inside the message, with the index of its template. Its parts come under the
    /// tags of that template.
    fn inner(&mut self, _template: usize) {}
    /// Receives the end of a message inside the message.
    fn inner_end(&mut self) {}
    /// Takes parts directly, which is faster for a visitor that knows the types of most values. It may take values and
    /// elements, and leaves the first part that it does not take. The decoder calls it between all other calls, and it
    /// need not take anything. The decoder does not call it for templates with constants.
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

    /// Walks the parts of the message. Without `CONSTANTS`, it looks for no constants, because none is selected.
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
                let position_before = if is_end { inside.to } else { info().constants };
                constants(self, &mut inside, position_before, visitor);
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
                    inside = ConstantRange { from: info.constants, to: info.block_constants_end };
                    parts.in_element = info.in_element;
                    match info.kind {
                        // In which there may be constants.
                        CompiledPartKind::Dynamic if CONSTANTS => visitor.inner_end(),
                        _ => visitor.end(),
                    }
                }
            }
        }
        if CONSTANTS && inside.from < inside.to {
            let position_before = inside.to;
            constants(self, &mut inside, position_before, visitor);
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
