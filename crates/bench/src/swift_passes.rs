//! One pass over SWIFT MT messages, from bytes to typed components: the product's way and the slow one.
//!
//! Like `typed.rs` this is compiled by `bench/peers` too.

use unitape_codec::swift_mt::parts::{SubfieldFormat, SwiftComponent, SwiftComponents, split_field};
use unitape_codec::swift_mt::{NextSwiftFrame, SwiftFieldTokenizer, SwiftFramer, SwiftTag};
use unitape_codec::twin::swift_mt::{naive, naive_parts};

/// The result of a pass over an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SwiftPassResult {
    pub messages: u64,
    pub faults: u64,
    pub fields: u64,
    pub parts: u64,
    /// The sum over all values, so that the timed loop cannot leave any of them out.
    pub sum: u64,
}

/// A component that was found.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct MeasuredComponent<'a> {
    pub tag: SwiftTag,
    pub kind: SubfieldFormat,
    pub text: &'a [u8],
    /// Its part of the sum.
    pub number: u64,
}

/// Converts a component to a number: amounts by mantissa and exponent, dates and times by their value, text by its
/// length and first byte.
#[inline]
fn number(part: &SwiftComponent, value: &[u8]) -> u64 {
    match part.kind {
        SubfieldFormat::Amount => (part.number as u64) << 6 | u64::from(part.exponent.unsigned_abs()),
        SubfieldFormat::Date
        | SubfieldFormat::ValueDate
        | SubfieldFormat::DateLong
        | SubfieldFormat::EntryDate
        | SubfieldFormat::Time => part.number as u64,
        _ => words(part.slice(value)),
    }
}

/// Converts text to a number.
#[inline]
fn words(text: &[u8]) -> u64 {
    text.len() as u64 ^ u64::from(text.first().copied().unwrap_or(0)) << 32
}

/// Converts a component to a number with the standard library.
fn slow_number(kind: SubfieldFormat, value: &[u8], (start, end): (usize, usize)) -> Option<u64> {
    let text = value.get(start..end)?;
    let text_of = std::str::from_utf8(text).ok()?;
    let day = |year: i64, month: &str, day: &str| {
        let leap = |y: i64| y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
        let month_days = [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let years: i64 = (1970..year).map(|y| 365 + i64::from(leap(y))).sum();
        let months: i64 = month_days.get(..month.parse::<usize>().ok()?.checked_sub(1)?)?.iter().sum();
        Some(((years + months + day.parse::<i64>().ok()? - 1) * 86_400_000_000_000) as u64)
    };
    match kind {
        SubfieldFormat::Amount => {
            let (integer_digits, decimals) = text_of.split_once(',').unwrap_or((text_of, ""));
            let mantissa: u64 = format!("{integer_digits}{decimals}").parse().ok()?;
            Some(mantissa << 6 | decimals.len() as u64)
        }
        SubfieldFormat::Date | SubfieldFormat::ValueDate => {
            day(2000 + text_of.get(..2)?.parse::<i64>().ok()?, text_of.get(2..4)?, text_of.get(4..)?)
        }
        // In these messages, the year is the year of the value date before it.
        SubfieldFormat::EntryDate => {
            let year = std::str::from_utf8(value.get(..2)?).ok()?;
            day(2000 + year.parse::<i64>().ok()?, text_of.get(..2)?, text_of.get(2..)?)
        }
        SubfieldFormat::DateLong => {
            day(text_of.get(..4)?.parse().ok()?, text_of.get(4..6)?, text_of.get(6..)?)
        }
        SubfieldFormat::Time => {
            let pairs: Option<Vec<u64>> =
                (0..text.len()).step_by(2).map(|n| text_of.get(n..n + 2)?.parse().ok()).collect();
            Some(pairs?.iter().chain(&[0, 0, 0]).take(3).fold(0, |sum, pair| sum * 60 + pair))
        }
        _ => Some(words(text)),
    }
}

/// Runs the product's decoder: splits every wanted field of every message into components and reads each component's
/// value.
pub fn fast_pass(
    fields: &mut SwiftFieldTokenizer,
    input: &[u8],
    is_selected: impl Fn(SwiftTag) -> bool,
    mut each: impl FnMut(MeasuredComponent<'_>),
) -> SwiftPassResult {
    let framer = SwiftFramer::default();
    let (mut pass, mut offset, mut parts) = (SwiftPassResult::default(), 0, SwiftComponents::default());
    loop {
        match fields.frame(&framer, input, offset, true) {
            NextSwiftFrame::Message(message) => {
                let text = message.text().slice(input);
                for token in fields.as_slice() {
                    if !is_selected(token.tag) {
                        continue;
                    }
                    let value = token.slice(text);
                    pass.faults += u64::from(split_field(token, text, &mut parts).is_err());
                    for part in parts.as_slice() {
                        let number = number(part, value);
                        pass.parts += 1;
                        pass.sum = pass.sum.rotate_left(1).wrapping_add(number);
                        each(MeasuredComponent {
                            tag: token.tag,
                            kind: part.kind,
                            text: part.slice(value),
                            number,
                        });
                    }
                }
                pass.fields += fields.as_slice().len() as u64;
                pass.messages += 1;
                offset = message.span.end;
            }
            NextSwiftFrame::Bad { span, .. } => {
                pass.faults += 1;
                offset = span.end;
            }
            NextSwiftFrame::Incomplete { .. } | NextSwiftFrame::End => return pass,
        }
    }
}

/// Runs the slow path: one byte at a time, with the notation of the standard read literally.
pub fn slow_pass(
    input: &[u8],
    is_selected: impl Fn(SwiftTag) -> bool,
    mut each: impl FnMut(MeasuredComponent<'_>),
) -> SwiftPassResult {
    let framer = SwiftFramer::default();
    let (mut pass, mut offset) = (SwiftPassResult::default(), 0);
    loop {
        let span = match naive::frame(&framer, input, offset) {
            NextSwiftFrame::Message(message) => {
                let text = message.text().slice(input);
                let tokens = naive::tokens(text);
                for token in &tokens {
                    let name = String::from_utf8_lossy(token.name(text)).into_owned();
                    let (tag, value) = (SwiftTag::new(name.as_bytes()), token.slice(text));
                    if !is_selected(tag) {
                        continue;
                    }
                    match naive_parts::split(&name, value) {
                        None => {}
                        Some(Err(())) => pass.faults += 1,
                        Some(Ok(components)) => {
                            for (_, kind, start, end) in components {
                                match slow_number(kind, value, (start, end)) {
                                    Some(number) => {
                                        pass.parts += 1;
                                        pass.sum = pass.sum.rotate_left(1).wrapping_add(number);
                                        each(MeasuredComponent {
                                            tag,
                                            kind,
                                            text: &value[start..end],
                                            number,
                                        });
                                    }
                                    None => pass.faults += 1,
                                }
                            }
                        }
                    }
                }
                pass.fields += tokens.len() as u64;
                pass.messages += 1;
                message.span
            }
            NextSwiftFrame::Bad { span, .. } => {
                pass.faults += 1;
                span
            }
            NextSwiftFrame::Incomplete { .. } | NextSwiftFrame::End => return pass,
        };
        offset = span.end;
    }
}
