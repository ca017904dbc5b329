//! Reads a value from left to right and notes its components.

use super::super::fault::ValueFault;
use super::super::tokens::SwiftField;
use super::super::value::{self, CalendarDay, Decimal};
use super::super::words;
use super::{SubfieldFormat, SwiftComponent, SwiftComponents};
use memchr::memchr;

/// The contents expected at the cursor: mostly the name of the component. It is small enough to be handed on in
/// registers.
pub(super) type ExpectedText = &'static str;

/// The expected contents in a value that is longer than its last component.
const END: ExpectedText = "the end of the value";

/// The result of a step.
pub(super) type ComponentResult = Result<(), ExpectedText>;

/// Steps through the value at `text[at..end]`. Bytes after the value may be loaded, and are not looked at.
pub(super) struct ValueCursor<'c> {
    value_text: &'c [u8],
    text_offset: usize,
    offset: usize,
    /// One past the first line of the value.
    line_end: usize,
    value_end: usize,
    components: &'c mut SwiftComponents,
    /// Parts noted.
    component_count: usize,
}

impl<'c> ValueCursor<'c> {
    #[inline(always)]
    pub(super) fn new(text: &'c [u8], token: &SwiftField, parts: &'c mut SwiftComponents) -> Self {
        let value_end = text.len().min(token.end as usize);
        let base = value_end.min(token.start as usize);
        ValueCursor {
            value_text: text,
            text_offset: base,
            offset: base,
            line_end: value_end.min(token.line as usize),
            value_end,
            components: parts,
            component_count: 0,
        }
    }

    /// Returns the rest of the value.
    #[inline(always)]
    pub(super) fn rest(&self) -> &'c [u8] {
        &self.value_text[self.offset..self.value_end]
    }

    /// Loads the eight bytes from `distance` on, with zeros for bytes after the value.
    #[inline(always)]
    fn word_at(&self, distance: usize) -> u64 {
        let offset = self.offset + distance;
        let bytes_left = self.value_end.saturating_sub(offset);
        match self.value_text.get(offset..).and_then(|rest| rest.first_chunk::<8>()) {
            Some(bytes) => u64::from_le_bytes(*bytes) & low_byte_mask(bytes_left),
            None => last_word(self.value_text, offset, bytes_left),
        }
    }

    /// Makes the fault of missing contents.
    #[inline(always)]
    pub(super) fn fault(&self, expected: ExpectedText) -> ValueFault {
        ValueFault { offset: (self.offset - self.text_offset) as u32, expected_component: expected }
    }

    /// Returns the number of noted components.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        self.component_count
    }

    /// Fails unless the value is fully read.
    #[inline(always)]
    pub(super) fn end(&self) -> ComponentResult {
        if self.offset == self.value_end { Ok(()) } else { Err(END) }
    }

    /// Takes this text if it is here.
    #[inline(always)]
    pub(super) fn literal<const N: usize>(&mut self, text: &[u8; N]) -> bool {
        let is_match = self.rest().first_chunk::<N>() == Some(text);
        if is_match {
            self.offset += N;
        }
        is_match
    }

    #[inline(always)]
    pub(super) fn expect_literal<const N: usize>(
        &mut self,
        text: &[u8; N],
        expected: ExpectedText,
    ) -> ComponentResult {
        if self.literal(text) { Ok(()) } else { Err(expected) }
    }

    /// Takes a line end, if there is one.
    #[inline(always)]
    pub(super) fn newline(&mut self) -> bool {
        self.literal(b"\n") || self.literal(b"\r\n")
    }

    /// Notes the next `len` bytes.
    #[inline(always)]
    pub(super) fn component(&mut self, name: &'static str, kind: SubfieldFormat, len: usize) {
        self.take_number(name, kind, len, 0, 0);
    }

    /// Notes the next `len` bytes with their value: a number and a power of ten.
    #[inline(always)]
    fn take_number(
        &mut self,
        name: &'static str,
        kind: SubfieldFormat,
        len: usize,
        number: i64,
        exponent: i8,
    ) {
        let value_start = (self.offset - self.text_offset) as u32;
        self.offset += len;
        let value_end = (self.offset - self.text_offset) as u32;
        // The table is larger than any form has parts; a test holds them to it.
        if let Some(item) = self.components.items.get_mut(self.component_count) {
            *item = SwiftComponent { name, start: value_start, end: value_end, number, kind, exponent };
            self.component_count += 1;
        }
    }

    /// Passes over `len` bytes.
    #[inline(always)]
    pub(super) fn skip(&mut self, len: usize) {
        self.offset += len;
    }

    /// Counts how many of the next bytes are of a class, at most `max`.
    #[inline(always)]
    pub(super) fn run(&self, class: CharacterClass, max: usize) -> usize {
        let run_length = words::run(class.mark_bytes(self.word_at(0)));
        if run_length < 8 || max <= 8 {
            return run_length.min(max);
        }
        8 + self.rest()[8..].iter().take(max - 8).take_while(|b| class.holds(**b)).count()
    }

    /// Reads exactly `len` bytes of a class.
    #[inline(always)]
    pub(super) fn fixed(&mut self, name: &'static str, class: CharacterClass, len: usize) -> ComponentResult {
        if self.run(class, len) < len {
            return Err(name);
        }
        self.component(name, SubfieldFormat::Text, len);
        Ok(())
    }

    /// Reads one to `max` bytes of a class.
    #[inline(always)]
    pub(super) fn text_up_to(
        &mut self,
        name: &'static str,
        class: CharacterClass,
        max: usize,
    ) -> ComponentResult {
        match self.run(class, max) {
            0 => Err(name),
            len => {
                self.component(name, SubfieldFormat::Text, len);
                Ok(())
            }
        }
    }

    /// Reads `YYMMDD` or another date form and returns its midnight.
    #[inline(always)]
    pub(super) fn date(&mut self, name: &'static str, kind: SubfieldFormat) -> Result<i64, ExpectedText> {
        let word = self.word_at(0);
        let (len, midnight) = match kind {
            SubfieldFormat::DateLong => (8, words::date_long(word)),
            _ => (6, words::date(word, kind == SubfieldFormat::ValueDate)),
        };
        let Some(midnight) = midnight else { return Err(name) };
        self.take_number(name, kind, len, midnight, 0);
        Ok(midnight)
    }

    /// Reads `MMDD`, four digits right after a value date with this midnight. Four digits that are no day have no
    /// meaning.
    #[inline(always)]
    pub(super) fn entry_date(&mut self, midnight: i64) {
        let near = words::entry_date(
            self.value_text[self.offset - 6..].first_chunk::<2>(),
            self.word_at(0),
            midnight,
        );
        let date_ns =
            near.or_else(|| far_entry_date(&self.value_text[self.offset - 6..])).unwrap_or(i64::MIN);
        self.take_number("entry_date", SubfieldFormat::EntryDate, 4, date_ns, 0);
    }

    /// Reads `HHMM` or `HHMMSS`.
    #[inline(always)]
    pub(super) fn time(&mut self, name: &'static str, len: usize) -> ComponentResult {
        let word = self.word_at(0);
        let zeros = u64::from_le_bytes(*b"\0\0\0\x0000\0\0");
        let word = if len == 4 { word & 0xffff_ffff | zeros } else { word };
        let Some(seconds) = words::time(word) else { return Err(name) };
        self.take_number(name, SubfieldFormat::Time, len, seconds, 0);
        Ok(())
    }

    /// Reads `15d`, as leniently as [`value::amount`].
    #[inline(always)]
    pub(super) fn amount(&mut self, name: &'static str) -> ComponentResult {
        match words::amount(self.word_at(0), self.word_at(8)).or_else(|| long_amount(self.rest())) {
            Some((len, amount)) => {
                self.take_number(name, SubfieldFormat::Amount, len, amount.mantissa, amount.exponent);
                Ok(())
            }
            None => Err(name),
        }
    }

    /// Reads `3!a15d`.
    #[inline(always)]
    pub(super) fn currency_amount(&mut self) -> ComponentResult {
        self.fixed("currency", CharacterClass::Letters, 3)?;
        self.amount("amount")
    }

    /// Reads a BIC up to the end of the line.
    #[inline(always)]
    pub(super) fn bic(&mut self) -> ComponentResult {
        let len = self.line_len();
        if !value::is_bic(&self.rest()[..len]) {
            return Err("bic");
        }
        self.component("bic", SubfieldFormat::Text, len);
        Ok(())
    }

    /// Reads the rest of the line, at least one byte.
    #[inline(always)]
    pub(super) fn line(&mut self, name: &'static str) -> ComponentResult {
        match self.line_len() {
            0 => Err(name),
            len => {
                self.component(name, SubfieldFormat::Text, len);
                Ok(())
            }
        }
    }

    /// Reads the rest of the value, at least one byte.
    #[inline(always)]
    pub(super) fn lines(&mut self, name: &'static str) -> ComponentResult {
        match self.rest().len() {
            0 => Err(name),
            len => {
                self.component(name, SubfieldFormat::Lines, len);
                Ok(())
            }
        }
    }

    /// Returns the number of bytes up to the line end.
    #[inline(always)]
    pub(super) fn line_len(&self) -> usize {
        if self.offset <= self.line_end {
            return self.line_end - self.offset;
        }
        let unread_bytes = self.rest();
        match memchr(b'\n', unread_bytes) {
            Some(n) if n > 0 && unread_bytes[n - 1] == b'\r' => n - 1,
            Some(n) => n,
            None => unread_bytes.len(),
        }
    }
}

/// Makes a mask of the lowest `bytes` bytes of a word, or of all eight.
#[inline(always)]
const fn low_byte_mask(bytes: usize) -> u64 {
    let bits = if bytes < 8 { 8 * bytes as u64 } else { 64 };
    // Without a branch on a length, which nothing foretells.
    !(u64::MAX << (bits & 63)) | 0u64.wrapping_sub(bits >> 6)
}

/// Loads at most eight bytes from `offset` on, where the text has fewer than eight.
#[inline(never)]
fn last_word(text: &[u8], offset: usize, have: usize) -> u64 {
    if have == 0 {
        return 0;
    }
    match text.last_chunk::<8>() {
        // The bytes before it are shifted out; those after the value are none of it.
        Some(last) => u64::from_le_bytes(*last) >> (8 * (8 - (text.len() - offset))) & low_byte_mask(have),
        None => text[offset..offset + have].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Parses an amount of any length.
#[cold]
fn long_amount(rest: &[u8]) -> Option<(usize, Decimal)> {
    let len = rest.iter().take_while(|b| b.is_ascii_digit() || **b == b',').count();
    value::amount(&rest[..len]).map(|amount| (len, amount))
}

/// Parses the entry date in `YYMMDDMMDD` if it is in another year.
#[cold]
fn far_entry_date(text: &[u8]) -> Option<i64> {
    value::entry_date(&text[6..10], value::value_date(&text[..6])?).map(CalendarDay::nanos)
}

/// A class of bytes.
#[derive(Clone, Copy)]
pub(super) enum CharacterClass {
    /// `n`.
    Digits,
    /// `a`.
    Letters,
    /// `c`.
    Plain,
}

impl CharacterClass {
    #[inline(always)]
    pub(super) const fn holds(self, byte: u8) -> bool {
        match self {
            CharacterClass::Digits => byte.is_ascii_digit(),
            CharacterClass::Letters => byte.is_ascii_uppercase(),
            CharacterClass::Plain => byte.is_ascii_digit() || byte.is_ascii_uppercase(),
        }
    }

    #[inline(always)]
    const fn mark_bytes(self, word: u64) -> u64 {
        match self {
            CharacterClass::Digits => words::digits(word),
            CharacterClass::Letters => words::letters(word),
            CharacterClass::Plain => words::alphanumerics(word),
        }
    }
}
