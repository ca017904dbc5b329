//! One pass over FIX messages, from bytes to typed records: the product's way and the slow one.
//!
//! Like `typed.rs` this is compiled by `bench/peers` too.

use super::typed::{Typed, Values};
use unitape_codec::fix::{Frame, Framer, Tokens, naive, value};

/// What a pass over an input came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Good messages.
    pub messages: u64,
    /// Faulty messages and values.
    pub faults: u64,
    /// Of all records, see [`Typed::sum`].
    pub sum: u64,
}

/// The product's way: one pass over the bytes of a message.
pub fn fast_pass(tokens: &mut Tokens, input: &[u8], mut each: impl FnMut(&Typed)) -> Pass {
    let framer = Framer::default();
    let (mut pass, mut at) = (Pass::default(), 0);
    loop {
        match tokens.frame(&framer, input, at, true) {
            Frame::Message(message) => {
                let bytes = message.span.of(input);
                let mut typed = Typed::default();
                for token in tokens.as_slice() {
                    pass.faults += u64::from(!typed.field::<Fast>(token.tag, token.of(bytes)));
                }
                pass.messages += 1;
                pass.sum = pass.sum.wrapping_add(typed.sum());
                each(&typed);
                at = message.span.end;
            }
            Frame::Bad { span, .. } => {
                pass.faults += 1;
                at = span.end;
            }
            Frame::Incomplete { .. } | Frame::End => return pass,
        }
    }
}

/// The slow way: a byte at a time, values by the standard library.
pub fn slow_pass(input: &[u8], mut each: impl FnMut(&Typed)) -> Pass {
    let framer = Framer::default();
    let (mut pass, mut at) = (Pass::default(), 0);
    loop {
        let span = match naive::frame(&framer, input, at) {
            Frame::Message(message) => {
                let bytes = message.span.of(input);
                match naive::tokens(&framer, bytes) {
                    Ok(fields) => {
                        let mut typed = Typed::default();
                        for token in fields {
                            pass.faults += u64::from(!typed.field::<Slow>(token.tag, token.of(bytes)));
                        }
                        pass.messages += 1;
                        pass.sum = pass.sum.wrapping_add(typed.sum());
                        each(&typed);
                    }
                    Err(_) => pass.faults += 1,
                }
                message.span
            }
            Frame::Bad { span, .. } => {
                pass.faults += 1;
                span
            }
            Frame::Incomplete { .. } | Frame::End => return pass,
        };
        at = span.end;
    }
}

/// Values as the product reads them.
pub struct Fast;

impl Values for Fast {
    #[inline(always)]
    fn decimal(text: &[u8]) -> Option<(i64, i8)> {
        value::decimal(text).map(|d| (d.mantissa, d.exponent))
    }
    #[inline(always)]
    fn int(text: &[u8]) -> Option<i64> {
        value::int(text)
    }
    #[inline(always)]
    fn timestamp(text: &[u8]) -> Option<i64> {
        value::timestamp(text)
    }
}

/// Values by the standard library, and the day by counting years and months.
struct Slow;

impl Values for Slow {
    fn decimal(text: &[u8]) -> Option<(i64, i8)> {
        let text = std::str::from_utf8(text).ok()?;
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        Some((format!("{whole}{fraction}").parse().ok()?, -i8::try_from(fraction.len()).ok()?))
    }

    fn int(text: &[u8]) -> Option<i64> {
        std::str::from_utf8(text).ok()?.parse().ok()
    }

    fn timestamp(text: &[u8]) -> Option<i64> {
        let text = std::str::from_utf8(text).ok()?;
        let part = |from, to| text.get(from..to)?.parse::<i64>().ok();
        let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
        let leap = |y: i64| y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
        let month_days = [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let years: i64 = (1970..year).map(|y| 365 + i64::from(leap(y))).sum();
        let months: i64 = month_days.get(..usize::try_from(month - 1).ok()?)?.iter().sum();
        let seconds =
            (years + months + day - 1) * 86_400 + part(9, 11)? * 3600 + part(12, 14)? * 60 + part(15, 17)?;
        let fraction = text.get(18..).unwrap_or("");
        Some(seconds * 1_000_000_000 + format!("{fraction:0<9}").parse::<i64>().ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A twin that shares the fast path's mistakes would check nothing; both are held against plain arithmetic.
    #[test]
    fn slow_values_are_right_where_calendars_go_wrong() {
        let day = 86_400 * 1_000_000_000;
        for (text, ns) in [
            ("19700101-00:00:00", 0),
            ("20000301-00:00:00.5", 11_017 * day + 500_000_000),
            ("20260302-09:00:00.123", 20_514 * day + 9 * 3_600_000_000_000 + 123_000_000),
        ] {
            assert_eq!(Slow::timestamp(text.as_bytes()), Some(ns), "{text}");
            assert_eq!(Fast::timestamp(text.as_bytes()), Some(ns), "{text}");
        }
        assert_eq!(Slow::decimal(b"-12.50"), Some((-1250, -2)));
        assert_eq!(Slow::decimal(b"12x"), None);
    }
}
