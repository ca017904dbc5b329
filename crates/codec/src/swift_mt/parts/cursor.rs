//! Reads a value from left to right and notes its components.

use super::super::fault::ValueFault;
use super::super::value;
use super::{Kind, Parts};
use memchr::memchr;

/// What a step comes to.
pub(super) type Step = Result<(), ValueFault>;

pub(super) struct Cursor<'c> {
    text: &'c [u8],
    at: usize,
    parts: &'c mut Parts,
}

impl<'c> Cursor<'c> {
    #[inline]
    pub(super) fn new(text: &'c [u8], parts: &'c mut Parts) -> Self {
        Cursor { text, at: 0, parts }
    }

    /// What is left.
    #[inline]
    pub(super) fn rest(&self) -> &'c [u8] {
        &self.text[self.at..]
    }

    #[cold]
    pub(super) fn fault(&self, expected: &'static str) -> ValueFault {
        ValueFault { offset: self.at as u32, expected }
    }

    /// Nothing must be left.
    #[inline]
    pub(super) fn end(&self) -> Step {
        if self.at == self.text.len() { Ok(()) } else { Err(self.fault("the end of the value")) }
    }

    /// Takes this text if it stands here.
    #[inline]
    pub(super) fn lit(&mut self, text: &[u8]) -> bool {
        let there = self.rest().starts_with(text);
        if there {
            self.at += text.len();
        }
        there
    }

    #[inline]
    pub(super) fn must(&mut self, text: &[u8], expected: &'static str) -> Step {
        if self.lit(text) { Ok(()) } else { Err(self.fault(expected)) }
    }

    /// Takes a line end if one stands here.
    #[inline]
    pub(super) fn newline(&mut self) -> bool {
        self.lit(b"\n") || self.lit(b"\r\n")
    }

    /// Notes the next `len` bytes.
    #[inline]
    pub(super) fn take(&mut self, name: &'static str, kind: Kind, len: usize) {
        self.parts.push(name, kind, (self.at, self.at + len));
        self.at += len;
    }

    /// Passes over `len` bytes.
    #[inline]
    pub(super) fn pass(&mut self, len: usize) {
        self.at += len;
    }

    /// How many of the next bytes are of a class, at most `max`.
    #[inline]
    pub(super) fn run(&self, class: Class, max: usize) -> usize {
        self.rest().iter().take(max).take_while(|b| class.holds(**b)).count()
    }

    /// Exactly `len` bytes of a class.
    #[inline]
    pub(super) fn fixed(&mut self, name: &'static str, class: Class, len: usize) -> Step {
        if self.run(class, len) < len {
            return Err(self.fault(class.expected()));
        }
        self.take(name, Kind::Text, len);
        Ok(())
    }

    /// One to `max` bytes of a class.
    #[inline]
    pub(super) fn upto(&mut self, name: &'static str, class: Class, max: usize) -> Step {
        match self.run(class, max) {
            0 => Err(self.fault(class.expected())),
            len => {
                self.take(name, Kind::Text, len);
                Ok(())
            }
        }
    }

    /// `YYMMDD` and its like.
    #[inline]
    pub(super) fn date(&mut self, name: &'static str, kind: Kind) -> Step {
        let rest = self.rest();
        let (len, good, expected) = match kind {
            Kind::DateLong => {
                (8, rest.get(..8).is_some_and(|t| value::date_long(t).is_some()), "a day YYYYMMDD")
            }
            Kind::ValueDate => {
                (6, rest.get(..6).is_some_and(|t| value::value_date(t).is_some()), "a day YYMMDD")
            }
            _ => (6, rest.get(..6).is_some_and(|t| value::date(t).is_some()), "a day YYMMDD"),
        };
        if !good {
            return Err(self.fault(expected));
        }
        self.take(name, kind, len);
        Ok(())
    }

    /// `HHMM` or `HHMMSS`.
    #[inline]
    pub(super) fn time(&mut self, name: &'static str, len: usize) -> Step {
        if self.rest().get(..len).is_none_or(|t| value::time(t).is_none()) {
            return Err(self.fault(if len == 4 { "a time HHMM" } else { "a time HHMMSS" }));
        }
        self.take(name, Kind::Time, len);
        Ok(())
    }

    /// `15d`, as widely as [`value::amount`] reads it.
    #[inline]
    pub(super) fn amount(&mut self, name: &'static str) -> Step {
        let len = self.rest().iter().take_while(|b| b.is_ascii_digit() || **b == b',').count();
        if value::amount(&self.rest()[..len]).is_none() {
            return Err(self.fault("an amount"));
        }
        self.take(name, Kind::Amount, len);
        Ok(())
    }

    /// `3!a15d`.
    #[inline]
    pub(super) fn currency_amount(&mut self) -> Step {
        self.fixed("currency", Class::Letters, 3)?;
        self.amount("amount")
    }

    /// A BIC, up to the end of the line.
    #[inline]
    pub(super) fn bic(&mut self) -> Step {
        let len = self.line_len();
        if !value::is_bic(&self.rest()[..len]) {
            return Err(self.fault("a BIC"));
        }
        self.take("bic", Kind::Text, len);
        Ok(())
    }

    /// The rest of the line, one byte at least.
    #[inline]
    pub(super) fn line(&mut self, name: &'static str) -> Step {
        match self.line_len() {
            0 => Err(self.fault("text")),
            len => {
                self.take(name, Kind::Text, len);
                Ok(())
            }
        }
    }

    /// The rest of the value, one byte at least.
    #[inline]
    pub(super) fn lines(&mut self, name: &'static str) -> Step {
        match self.rest().len() {
            0 => Err(self.fault("text")),
            len => {
                self.take(name, Kind::Lines, len);
                Ok(())
            }
        }
    }

    /// Bytes up to the line end.
    #[inline]
    pub(super) fn line_len(&self) -> usize {
        let rest = self.rest();
        match memchr(b'\n', rest) {
            Some(n) if n > 0 && rest[n - 1] == b'\r' => n - 1,
            Some(n) => n,
            None => rest.len(),
        }
    }
}

/// Bytes of a sort.
#[derive(Clone, Copy)]
pub(super) enum Class {
    /// `n`.
    Digits,
    /// `a`.
    Letters,
    /// `c`.
    Plain,
}

impl Class {
    #[inline]
    pub(super) const fn holds(self, byte: u8) -> bool {
        match self {
            Class::Digits => byte.is_ascii_digit(),
            Class::Letters => byte.is_ascii_uppercase(),
            Class::Plain => byte.is_ascii_digit() || byte.is_ascii_uppercase(),
        }
    }

    const fn expected(self) -> &'static str {
        match self {
            Class::Digits => "digits",
            Class::Letters => "upper-case letters",
            Class::Plain => "upper-case letters or digits",
        }
    }
}
