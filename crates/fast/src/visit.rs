//! A message told to a visitor, part by part.

use super::entry::{Entry, Form};
use super::program::{Inside, Of};
use super::record::{Message, Value, value};

/// A value of a message, whatever its type, until somebody asks: most visitors know what to expect of a field.
#[derive(Debug, Clone, Copy)]
pub struct Decoded<'m> {
    entry: &'m Entry,
    message: &'m Message<'m>,
}

impl<'m> Decoded<'m> {
    #[inline(always)]
    fn is(self, form: Form) -> bool {
        self.entry.apart().form == form as u8
    }

    /// The value.
    #[inline(always)]
    #[must_use]
    pub fn get(self) -> Value<'m> {
        of_any_form(self.entry, self.message)
    }

    /// The value of an uInt32 or uInt64, or what is told as such.
    #[inline(always)]
    #[must_use]
    pub fn uint(self) -> Option<u64> {
        self.is(Form::UInt).then_some(self.entry.bits)
    }

    /// That of an int32 or int64.
    #[inline(always)]
    #[must_use]
    pub fn int(self) -> Option<i64> {
        self.is(Form::Int).then_some(self.entry.bits as i64)
    }

    /// The number that a byte vector of up to eight bytes is, the highest first.
    #[inline(always)]
    #[must_use]
    pub fn uint_of_bytes(self) -> Option<u64> {
        let is_bytes = || self.message.program.infos[self.entry.info() as usize].is_bytes;
        let is_short = self.is(Form::Short) && is_bytes();
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
        self.is(Form::Decimal).then_some((self.entry.bits as i64, self.entry.apart().extra as i8))
    }
}

/// What comes next in a message, a value or something else: of anything but a value nothing is told but its tag.
#[derive(Debug, Clone, Copy)]
pub struct Part<'m>(Decoded<'m>);

impl Part<'_> {
    /// Its tag.
    #[inline(always)]
    #[must_use]
    pub fn tag(self) -> u16 {
        self.0.entry.apart().tag
    }

    /// As [`Decoded::uint`].
    #[inline(always)]
    #[must_use]
    pub fn uint(self) -> Option<u64> {
        self.0.uint()
    }

    /// As [`Decoded::int`].
    #[inline(always)]
    #[must_use]
    pub fn int(self) -> Option<i64> {
        self.0.int()
    }

    /// As [`Decoded::decimal`].
    #[inline(always)]
    #[must_use]
    pub fn decimal(self) -> Option<(i64, i8)> {
        self.0.decimal()
    }

    /// The text of one byte that it is.
    #[inline(always)]
    #[must_use]
    pub fn letter(self) -> Option<u8> {
        let Decoded { entry, message } = self.0;
        let is_letter = self.0.is(Form::Short) && entry.apart().extra == 1;
        (is_letter && !message.program.infos[entry.info() as usize].is_bytes).then_some(entry.bits as u8)
    }
}

/// The parts of a message that are still to come; see [`Visitor::parts`].
#[derive(Debug)]
pub struct Parts<'m> {
    entries: std::slice::Iter<'m, Entry>,
    message: &'m Message<'m>,
    /// What was begun last, and is not over, is an element.
    in_element: bool,
}

impl<'m> Parts<'m> {
    /// The next one.
    #[inline(always)]
    #[must_use]
    pub fn first(&self) -> Option<Part<'m>> {
        let entry = self.entries.as_slice().first()?;
        Some(Part(Decoded { entry, message: self.message }))
    }

    /// It was taken, and was a value.
    #[inline(always)]
    pub fn took(&mut self) {
        let part = self.entries.next();
        debug_assert!(part.is_some_and(Entry::is_value), "no value");
    }

    /// Whether an element begins, the first of a sequence or, with the end of the one before it, another: then it is taken.
    #[inline(always)]
    pub fn element(&mut self) -> bool {
        let begins = self.first().is_some_and(|Part(part)| part.is(Form::Element));
        if begins {
            self.entries.next();
            self.in_element = true;
        }
        begins
    }
}

/// Is told what is in a message, in order; see [`super::Decoder::decode_with`].
pub trait Visitor {
    /// A field's tag, and its value.
    fn value(&mut self, tag: u16, value: Decoded<'_>);
    /// A group begins.
    fn group(&mut self, _tag: u16) {}
    /// A sequence of so many elements begins.
    fn sequence(&mut self, _tag: u16, _elements: u32) {}
    /// One of its elements begins.
    fn element(&mut self) {}
    /// What began last is over.
    fn end(&mut self) {}
    /// A message in the message begins, of this template; what it has comes under the tags of that one.
    fn inner(&mut self, _template: usize) {}
    /// It is over.
    fn inner_end(&mut self) {}
    /// A visitor that knows what most values are can take these itself as they come, which is quicker, and the elements
    /// among them; it leaves the first part that it does not take. It is asked between all other calls, and need take
    /// nothing; of templates with constants it is not asked.
    #[inline(always)]
    fn parts(&mut self, _parts: &mut Parts<'_>) {}
}

impl Message<'_> {
    /// Tells a visitor all that is in it: the quickest way through a message.
    #[inline]
    pub fn visit(&self, visitor: &mut impl Visitor) {
        match self.program.templates[self.template].has_constants {
            true => self.walk::<true>(visitor),
            false => self.walk::<false>(visitor),
        }
    }

    /// Where a template has no constant that anybody asked for, none is looked for.
    #[inline(always)]
    fn walk<const CONSTANTS: bool>(&self, visitor: &mut impl Visitor) {
        let program = self.program;
        let mut inside = program.templates[self.template].inside;
        let mut parts = Parts { entries: self.entries.iter(), message: self, in_element: false };
        loop {
            if !CONSTANTS {
                visitor.parts(&mut parts);
            }
            let Some(entry) = parts.entries.next() else { break };
            let info = || &program.infos[entry.info() as usize];
            if CONSTANTS {
                let is_end = matches!(entry.form(), Form::Element | Form::End);
                let before = if is_end { inside.to } else { info().constants };
                constants(self, &mut inside, before, visitor);
            }
            // Most are, and what they are is nobody's business but the visitor's.
            if entry.is_value() {
                visitor.value(entry.tag(), Decoded { entry, message: self });
                continue;
            }
            match entry.form() {
                Form::Group => {
                    (inside, parts.in_element) = (info().inside, false);
                    visitor.group(entry.tag());
                }
                Form::Sequence => {
                    (inside, parts.in_element) = (Inside::NOTHING, false);
                    visitor.sequence(entry.tag(), entry.bits as u32);
                }
                Form::Inner => {
                    (inside, parts.in_element) = (program.templates[entry.bits as usize].inside, false);
                    visitor.inner(entry.bits as usize);
                }
                Form::Element => {
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
                    inside = Inside { from: info.constants, to: info.around };
                    parts.in_element = info.in_element;
                    match info.of {
                        // In which there may be constants.
                        Of::Dynamic if CONSTANTS => visitor.inner_end(),
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
fn of_any_form<'m>(entry: &'m Entry, message: &'m Message<'m>) -> Value<'m> {
    value(entry, message.program, message.arena)
}

/// Tells the constants of a block that are not told yet and stand before this place.
#[inline(never)]
fn constants(message: &Message<'_>, inside: &mut Inside, before: u32, visitor: &mut impl Visitor) {
    while inside.from < before {
        let entry = &message.program.constants[inside.from as usize].entry;
        visitor.value(entry.tag(), Decoded { entry, message });
        inside.from += 1;
    }
}
