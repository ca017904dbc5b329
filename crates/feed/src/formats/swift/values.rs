//! Values found in a message, and how they are read.

use super::selection::SwiftFieldSelector;
use unitape_codec::swift_mt::parts::{SubfieldFormat, SwiftComponent, SwiftComponents};
use unitape_codec::swift_mt::{Span, ValueFault, value};
use unitape_model::words;

/// A value: its place and its kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct SwiftFieldValue {
    value_start: u32,
    value_end: u32,
    pub(super) kind: SwiftValueKind,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SwiftValueKind {
    /// A component, or lines of text.
    Part(SubfieldFormat),
    /// An amount, and whether it is less than zero.
    Signed(bool),
    /// Nanoseconds since 1970 in UTC.
    Moment(i64),
    /// The type of the message.
    Kind,
    /// The type of the message after `MT`.
    Mt,
    /// For an acknowledgement: whether it is a refusal.
    Ack(bool),
    /// The message may have been sent before.
    Repeat,
    /// One letter.
    Letter(u8),
    /// The lines of the statement.
    Entries,
    /// What is to say about the sum of the transactions.
    SumNote,
    /// Not of its tag's form.
    Invalid,
}

impl SwiftFieldValue {
    #[inline]
    pub(super) fn from_span(span: Span, kind: SwiftValueKind) -> Self {
        Self { value_start: span.start as u32, value_end: span.end as u32, kind }
    }

    /// Returns whether the value covers exactly this range.
    pub(super) fn is_at(&self, start: usize, end: usize) -> bool {
        (self.value_start as usize, self.value_end as usize) == (start, end)
    }

    pub(super) fn is_moment(&self) -> bool {
        matches!(self.kind, SwiftValueKind::Moment(_))
    }

    fn slice<'b>(&self, buf: &'b [u8]) -> &'b [u8] {
        buf.get(self.value_start as usize..self.value_end as usize).unwrap_or_default()
    }

    pub(super) fn letter(&self) -> &'static [u8] {
        const LETTERS: &[u8] = b"0123456789";
        match self.kind {
            SwiftValueKind::Letter(letter) => {
                LETTERS.iter().position(|l| *l == letter).map_or(b"", |n| &LETTERS[n..=n])
            }
            _ => b"",
        }
    }

    /// Returns the value as plain text.
    pub(super) fn text<'v>(&self, buf: &'v [u8], scratch: &'v mut Vec<u8>) -> &'v [u8] {
        let text = self.slice(buf);
        scratch.clear();
        match self.kind {
            SwiftValueKind::Part(SubfieldFormat::Lines | SubfieldFormat::Text) => {
                // Up to a carriage return, which stays unless a line feed follows.
                let mut value_left = text;
                while let Some(cr_offset) = words::find(value_left, b'\r') {
                    let kept_end = cr_offset + usize::from(value_left.get(cr_offset + 1) != Some(&b'\n'));
                    scratch.extend_from_slice(&value_left[..kept_end]);
                    value_left = &value_left[cr_offset + 1..];
                }
                if value_left.len() == text.len() {
                    return text;
                }
                scratch.extend_from_slice(value_left);
            }
            SwiftValueKind::Part(SubfieldFormat::Amount) => value::write_amount(text, scratch),
            SwiftValueKind::Signed(is_negative) => {
                // Nothing is not less than nothing.
                if is_negative && text.iter().any(|b| (b'1'..=b'9').contains(b)) {
                    scratch.push(b'-');
                }
                value::write_amount(text, scratch);
            }
            SwiftValueKind::Part(kind) => match parse_day(kind, text) {
                Some(day) => day.write(scratch),
                None => return text,
            },
            _ => return text,
        }
        scratch
    }

    /// Returns the value as nanoseconds since 1970 in UTC.
    pub(super) fn to_unix_nanos(self, buf: &[u8]) -> Option<i64> {
        match self.kind {
            SwiftValueKind::Moment(nanos) => Some(nanos),
            SwiftValueKind::Part(kind) => parse_day(kind, self.slice(buf)).map(value::CalendarDay::nanos),
            _ => None,
        }
    }
}

fn parse_day(kind: SubfieldFormat, text: &[u8]) -> Option<value::CalendarDay> {
    match kind {
        SubfieldFormat::Date => value::date(text),
        SubfieldFormat::ValueDate => value::value_date(text),
        SubfieldFormat::DateLong => value::date_long(text),
        _ => None,
    }
}

/// Returns the part of a value that the mapping selects; `result` is the value's parsed result, `value_span` its
/// place.
pub(super) fn select_part(
    want: &SwiftFieldSelector,
    result: Result<bool, ValueFault>,
    parts: &SwiftComponents,
    value: &[u8],
    value_span: Span,
) -> Option<SwiftFieldValue> {
    if result.is_err() {
        return Some(SwiftFieldValue::from_span(value_span, SwiftValueKind::Invalid));
    }
    let span_of = |part: &SwiftComponent| Span {
        start: value_span.start + part.start as usize,
        end: value_span.start + part.end as usize,
    };
    match want {
        SwiftFieldSelector::Whole => {
            Some(SwiftFieldValue::from_span(value_span, SwiftValueKind::Part(SubfieldFormat::Lines)))
        }
        SwiftFieldSelector::Named(name) => parts
            .part(name)
            .map(|part| SwiftFieldValue::from_span(span_of(part), SwiftValueKind::Part(part.kind))),
        SwiftFieldSelector::Signed => {
            let amount = parts.as_slice().iter().find(|part| part.kind == SubfieldFormat::Amount)?;
            let mark = parts.get(value, "mark").unwrap_or_default();
            let is_negative = parts.part("sign").is_some() || matches!(mark, b"D" | b"RC" | b"ED");
            Some(SwiftFieldValue::from_span(span_of(amount), SwiftValueKind::Signed(is_negative)))
        }
        SwiftFieldSelector::Country => {
            let country_start = value_span.start + country_offset(value)?;
            let span = Span { start: country_start, end: country_start + 2 };
            Some(SwiftFieldValue::from_span(span, SwiftValueKind::Part(SubfieldFormat::Text)))
        }
        SwiftFieldSelector::Moment => {
            let part = parts.part("date")?;
            let nanos = parse_day(part.kind, part.slice(value))?.nanos();
            let seconds = parts.get(value, "time").and_then(value::time).unwrap_or(0);
            Some(SwiftFieldValue::from_span(
                value_span,
                SwiftValueKind::Moment(nanos + (seconds - offset_seconds(parts, value)) * NANOS),
            ))
        }
    }
}

/// Returns the part of block 1 or 2 that the mapping selects.
pub(super) fn from_header(
    name: &str,
    result: Result<bool, ValueFault>,
    parts: &SwiftComponents,
    content: &[u8],
    span: Span,
) -> Option<SwiftFieldValue> {
    if result.is_err() {
        return Some(SwiftFieldValue::from_span(span, SwiftValueKind::Invalid));
    }
    if name == "moment" {
        let day = value::date(parts.get(content, "output_date")?)?;
        let seconds = value::time(parts.get(content, "output_time")?)?;
        return Some(SwiftFieldValue::from_span(span, SwiftValueKind::Moment(day.nanos() + seconds * NANOS)));
    }
    let part = parts.part(name)?;
    let part_span = Span { start: span.start + part.start as usize, end: span.start + part.end as usize };
    Some(SwiftFieldValue::from_span(part_span, SwiftValueKind::Part(part.kind)))
}

pub(super) const NANOS: i64 = 1_000_000_000;

/// Finds the country code in a party of option F: `3/US/NEW YORK`. Only the first line with that number has a code
/// (Category 1, MT 103, field 50F, number 3).
fn country_offset(value: &[u8]) -> Option<usize> {
    let mut offset = 0;
    for line in value.split_inclusive(|b| *b == b'\n') {
        if let [b'3', b'/', rest @ ..] = line {
            return match rest.trim_ascii_end() {
                [a, b] | [a, b, b'/', ..] if a.is_ascii_uppercase() && b.is_ascii_uppercase() => {
                    Some(offset + 2)
                }
                _ => None,
            };
        }
        offset += line.len();
    }
    None
}

/// Finds the code with which a field 72 states that its message returns a payment: line 1 is `/RETN/…` or `/REJT/…`
/// (Standards MT Usage Guidelines, Payments Reject/Return Guidelines; the network checks it, error T80).
pub(super) fn return_code(value: &[u8]) -> Option<Span> {
    let is_return = value.starts_with(b"/RETN/") || value.starts_with(b"/REJT/");
    is_return.then_some(Span { start: 1, end: 5 })
}

/// Seconds east of UTC, as far as the value says.
fn offset_seconds(parts: &SwiftComponents, text: &[u8]) -> i64 {
    let Some(offset) = parts.get(text, "offset") else { return 0 };
    // `98E` may have hours alone.
    let seconds = match *offset {
        [a @ b'0'..=b'9', b @ b'0'..=b'9'] => i64::from((a - b'0') * 10 + b - b'0') * 3600,
        _ => value::time(offset).unwrap_or(0),
    };
    match parts.get(text, "sign") {
        Some(b"-" | b"N") => -seconds,
        _ => seconds,
    }
}
