//! The components of a value: `32A` is a date, a currency and an amount.
//!
//! ```text
//! :61:  190425 0426 C R 1234,5 NTRF REF//BANKREF⏎details
//!       date   entry_date mark funds amount type reference bank_reference details
//! :95P: :SELL//FOOOFRPP
//!        qualifier bic
//! ```
//!
//! The form of each tag is that of the SWIFT User Handbook (category 1 to 9, 2019 and later), in its own
//! notation (`6!n3!a15d`) in the tests. Four things are accepted more widely, since banks do so: free text (`x`) may
//! be longer than the standard says and may hold any byte, amounts see [`value`], a
//! statement line (`61`) may have blanks for the entry date and a line end before its amount, and its details may
//! be on the first line, right after sixteen characters of reference.
//!
//! A component that a value does not have is not among its parts. A tag without a form here has no parts at all.

mod cursor;
mod party;
mod payment;
mod securities;
mod statement;

use super::fault::ValueFault;
use super::tokens::{SwiftField, SwiftTag, first_line};
use super::value;
use cursor::{ExpectedText, ValueCursor};

/// How a component is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubfieldFormat {
    /// Text of one line.
    Text,
    /// Lines of text.
    Lines,
    /// An amount or a rate with a comma.
    Amount,
    /// `YYMMDD`.
    Date,
    /// `YYMMDD` of a statement line.
    ValueDate,
    /// `YYYYMMDD`.
    DateLong,
    /// `MMDD` after a value date.
    EntryDate,
    /// `HHMM` or `HHMMSS`.
    Time,
}

/// All names of components, sorted.
pub const NAMES: &[&str] = &[
    "account",
    "address",
    "amount",
    "balance",
    "bank_reference",
    "bic",
    "code",
    "count",
    "country",
    "currency",
    "currency2",
    "date",
    "description",
    "details",
    "entry_date",
    "flag",
    "fraction",
    "funds",
    "id",
    "id_code",
    "id_country",
    "information",
    "isin",
    "issuer",
    "lines",
    "location",
    "mark",
    "name",
    "narrative",
    "number",
    "offset",
    "place",
    "price",
    "qualifier",
    "quantity",
    "rate",
    "reference",
    "sequence",
    "sign",
    "subfunction",
    "time",
    "total",
    "type",
];

/// A component: its name, its kind and where it is in the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwiftComponent {
    /// Name, in the words of the docs.
    pub name: &'static str,
    /// First byte in the value.
    pub start: u32,
    /// One past its last byte.
    pub end: u32,
    /// The number in it, if it has one: the mantissa of an amount, midnight of a day in nanoseconds since 1970 in
    /// UTC, seconds of a time; 0 for text, `i64::MIN` for an entry date that is no day.
    pub number: i64,
    /// How it is written.
    pub kind: SubfieldFormat,
    /// The exponent of an amount: its mantissa is multiplied by ten to this power.
    pub exponent: i8,
}

impl SwiftComponent {
    /// Returns the component's text in `value`.
    #[inline]
    #[must_use]
    pub fn slice<'v>(&self, value: &'v [u8]) -> &'v [u8] {
        value.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// The components of one value, in order; used again for the next.
#[derive(Debug, Clone)]
pub struct SwiftComponents {
    items: [SwiftComponent; PARTS_MAX],
    len: usize,
}

/// Components of a value, at most.
const PARTS_MAX: usize = 12;

impl Default for SwiftComponents {
    fn default() -> Self {
        let empty =
            SwiftComponent { name: "", start: 0, end: 0, number: 0, kind: SubfieldFormat::Text, exponent: 0 };
        SwiftComponents { items: [empty; PARTS_MAX], len: 0 }
    }
}

impl SwiftComponents {
    /// Returns all components.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[SwiftComponent] {
        &self.items[..self.len]
    }

    /// Finds a component by its name.
    #[inline]
    #[must_use]
    pub fn part(&self, name: &str) -> Option<&SwiftComponent> {
        // Names differ mostly in length or first letter, and are seldom compared by a call.
        let first_letter = name.as_bytes().first();
        let alike = |part: &SwiftComponent| {
            part.name.len() == name.len() && part.name.as_bytes().first() == first_letter
        };
        self.as_slice().iter().find(|part| alike(part) && part.name == name)
    }

    /// Finds a component by its name and returns its text in `value`.
    #[inline]
    #[must_use]
    pub fn get<'v>(&self, value: &'v [u8], name: &str) -> Option<&'v [u8]> {
        self.part(name).map(|part| part.slice(value))
    }

    /// Adds a component. The table has room for more components than any form has, which a test checks.
    #[inline(always)]
    fn push(&mut self, part: SwiftComponent) {
        if let Some(item) = self.items.get_mut(self.len) {
            *item = part;
            self.len += 1;
        }
    }
}

/// Splits a value by the form of its tag; returns false if the tag has no known form. If it fails, there are no
/// parts.
///
/// # Errors
/// Fails if the value departs from its form.
///
/// ```
/// use unitape_codec::swift_mt::{SwiftTag, parts};
///
/// let mut parts = parts::SwiftComponents::default();
/// let value = b"/DE89370400440532013000\r\nKARL KAUFMANN\r\nHAUPTSTR 1";
/// assert_eq!(parts::split(SwiftTag::new(b"59"), value, &mut parts), Ok(true));
/// assert_eq!(parts.get(value, "account"), Some(&b"DE89370400440532013000"[..]));
/// assert_eq!(parts.get(value, "name"), Some(&b"KARL KAUFMANN"[..]));
/// ```
pub fn split(tag: SwiftTag, value: &[u8], parts: &mut SwiftComponents) -> Result<bool, ValueFault> {
    let line = first_line(value) as u32;
    split_field(&SwiftField { tag, name: 0, start: 0, line, end: value.len() as u32 }, value, parts)
}

/// Splits the value of a field of `text`, as [`split`] does; places are from the start of its value.
///
/// # Errors
/// Fails if the value departs from its form.
#[inline(never)]
pub fn split_field(field: &SwiftField, text: &[u8], parts: &mut SwiftComponents) -> Result<bool, ValueFault> {
    parts.len = 0;
    let Some((number, letter)) = field.tag.split() else { return Ok(false) };
    // All of it is one function, and the cursor lives in registers.
    let mut cursor = ValueCursor::new(text, field, parts);
    let is_known = read_form(number, letter, &mut cursor)
        .and_then(|is_known| if is_known { cursor.end() } else { Ok(()) }.map(|()| is_known))
        .map_err(|expected| cursor.fault(expected))?;
    if is_known {
        parts.len = cursor.count();
    }
    Ok(is_known)
}

/// Reads a value by its tag's number and letter (0 without a letter).
#[inline(always)]
fn read_form(number: u8, letter: u8, c: &mut ValueCursor<'_>) -> Result<bool, ExpectedText> {
    match (number, letter) {
        (50..=59, _) | (82..=87, b'A' | b'B' | b'C' | b'D') => party::read_form(number, letter, c),
        (60 | 62, b'F' | b'M') | (64 | 65 | 61 | 86 | 25 | 28, 0) | (28, b'C' | b'D') | (25, b'P') => {
            statement::read_form(number, letter, c)
        }
        (34, b'F') | (90, b'C' | b'D') | (13, b'D' | 0) => statement::read_form(number, letter, c),
        (17 | 19 | 24 | 25 | 36 | 90 | 92..=95 | 97..=99, b'A'..=b'Z')
        | (13, b'A' | b'B')
        | (22, b'F' | b'H')
        | (11, b'A')
        | (16, b'R' | b'S')
        | (20, b'C')
        | (23, b'G')
        | (28, b'E')
        | (35, b'B')
        | (70, b'C'..=b'G') => securities::read_form(number, letter, c),
        _ => payment::read_form(number, letter, c),
    }
}

/// Notes components at fixed offsets, checked by their kind. Returns the offset after the last one.
pub(super) fn positions(
    parts: &mut SwiftComponents,
    text: &[u8],
    places: &[super::header::HeaderComponent],
) -> Result<usize, ValueFault> {
    if places.first().is_some_and(|component| component.2 == 0) {
        parts.len = 0;
    }
    let mut after = 0;
    for &(name, kind, start, len) in places {
        let bytes = text.get(start..start + len);
        let number = bytes.and_then(|t| match kind {
            SubfieldFormat::Date => value::date(t).map(value::CalendarDay::nanos),
            SubfieldFormat::Time => value::time(t),
            _ => t.iter().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase()).then_some(0),
        });
        let Some(number) = number else {
            parts.len = 0;
            return Err(ValueFault { offset: start as u32, expected_component: name });
        };
        let (start, end) = (start as u32, (start + len) as u32);
        parts.push(SwiftComponent { name, start, end, number, kind, exponent: 0 });
        after = end as usize;
    }
    Ok(after)
}

/// Makes the fault of bytes after the expected end of the text.
pub(super) fn ends(parts: &mut SwiftComponents, offset: usize) -> ValueFault {
    parts.len = 0;
    ValueFault { offset: offset as u32, expected_component: "the end of the block" }
}
