//! One pass over FIX messages, from bytes to typed records: the product's way and the slow one.
//!
//! Like `typed.rs` this is compiled by `bench/peers` too.

use crate::typed::{TypedGroupEntry, TypedMessage, ValueReader};
use std::sync::Arc;
use unitape_codec::fix::{
    ExtractedFields, FieldExtractor, FieldSelection, FixFramer, GroupSelection, MessageTokenizer,
    NextFixFrame, value,
};
use unitape_codec::twin::fix::naive;

/// The result of a pass over an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixPassResult {
    /// Good messages.
    pub messages: u64,
    /// Faulty messages and values.
    pub faults: u64,
    /// The sum over all records, see [`TypedMessage::sum`].
    pub sum: u64,
}

/// Runs the product's decoder: one pass over the bytes of a message, then one look at each field.
pub fn fast_pass(
    tokens: &mut MessageTokenizer,
    input: &[u8],
    mut each: impl FnMut(&TypedMessage),
) -> FixPassResult {
    let framer = FixFramer::default();
    let mut slots = FieldExtractor::new(wanted());
    let (mut typed, mut timestamps) = (TypedMessage::default(), value::TimestampReader::default());
    let (mut pass, mut offset) = (FixPassResult::default(), 0);
    loop {
        match tokens.frame(&framer, input, offset, true) {
            NextFixFrame::Message(message) => {
                offset = message.span.end;
                let (bytes, fields) = (message.span.slice(input), tokens.as_slice());
                let Ok(filled) = slots.fill(bytes, fields) else {
                    pass.faults += 1;
                    continue;
                };
                typed.clear();
                typed.fields = fields.len() as u32;
                pass.faults += fill(&mut typed, &mut timestamps, filled, bytes);
                pass.messages += 1;
                pass.sum = pass.sum.wrapping_add(typed.sum());
                each(&typed);
            }
            NextFixFrame::Bad { span, .. } | NextFixFrame::Skipped(span) => {
                pass.faults += 1;
                offset = span.end;
            }
            NextFixFrame::Incomplete { .. } | NextFixFrame::End => return pass,
        }
    }
}

/// Selects the fields of the record, by slot.
pub fn wanted() -> Arc<FieldSelection> {
    let parties = GroupSelection::new(453, &[448, 447, 452], &[802, 523, 803]);
    let entries = GroupSelection::new(268, &[279, 55, 269, 270, 451, 273, 83], &[58, 271, 272, 278]);
    let tags = [35, 34, 1181, 52, 60, 44, 38, 54, 11, 55, 1];
    Arc::new(FieldSelection::new(&tags, vec![parties, entries]).expect("a few tags"))
}

/// Reads the values in the slots; how many are not of their type.
#[inline(always)]
fn fill(
    typed: &mut TypedMessage,
    timestamps: &mut value::TimestampReader,
    slots: ExtractedFields<'_>,
    bytes: &[u8],
) -> u64 {
    let mut faults = 0;
    let mut check = |good: bool| faults += u64::from(!good);
    let get = |slot| slots.get(slot);
    if let Some(token) = get(0) {
        check(token.padded_value(bytes).map(|v| typed.msg_type = v).is_some());
    }
    for slot in [1, 2] {
        if let Some(token) = get(slot) {
            check(token.int(bytes).map(|v| typed.sequence = v).is_some());
        }
    }
    if let Some(token) = get(3) {
        check(timestamps.read(token.slice(bytes)).map(|v| typed.sent_ns = v).is_some());
    }
    if let Some(token) = get(4) {
        check(timestamps.read(token.slice(bytes)).map(|v| typed.transacted_ns = v).is_some());
    }
    if let Some(token) = get(5) {
        let price = token.decimal(bytes);
        check(price.map(|v| (typed.price, typed.price_exponent) = (v.mantissa, v.exponent)).is_some());
    }
    if let Some(token) = get(6) {
        let quantity = token.decimal(bytes);
        check(
            quantity.map(|v| (typed.quantity, typed.quantity_exponent) = (v.mantissa, v.exponent)).is_some(),
        );
    }
    if let Some(token) = get(7) {
        check(token.first_byte(bytes).map(|v| typed.side = v).is_some());
    }
    for (slot, text) in [(8, &mut typed.id), (9, &mut typed.symbol), (10, &mut typed.account)] {
        if let Some(token) = get(slot) {
            check(token.padded_value(bytes).map(|v| *text = v).is_some());
        }
    }
    let parties = slots.entries(0);
    typed.stated += parties.len() as u32;
    for entry in parties {
        let Some(part) = typed.parts.get_mut(typed.entries as usize) else { return faults + 1 };
        typed.entries += 1;
        *part = TypedGroupEntry::default();
        let get = |slot| entry.get(slot);
        if let Some(token) = get(0) {
            check(token.padded_value(bytes).map(|v| part.id = v).is_some());
        }
        if let Some(token) = get(1) {
            check(token.first_byte(bytes).map(|v| part.kind = v).is_some());
        }
        if let Some(token) = get(2) {
            check(token.int(bytes).map(|v| part.number = v).is_some());
        }
    }
    let entries = slots.entries(1);
    typed.stated += entries.len() as u32;
    for entry in entries {
        let Some(part) = typed.parts.get_mut(typed.entries as usize) else { return faults + 1 };
        typed.entries += 1;
        *part = TypedGroupEntry::default();
        let get = |slot| entry.get(slot);
        if let Some(token) = get(0) {
            check(token.first_byte(bytes).map(|v| part.action = v).is_some());
        }
        if let Some(token) = get(1) {
            check(token.padded_value(bytes).map(|v| part.id = v).is_some());
        }
        if let Some(token) = get(2) {
            check(token.first_byte(bytes).map(|v| part.kind = v).is_some());
        }
        if let Some(token) = get(3) {
            let price = token.decimal(bytes);
            check(price.map(|v| (part.price, part.price_exponent) = (v.mantissa, v.exponent)).is_some());
        }
        if let Some(token) = get(4) {
            let change = token.decimal(bytes);
            check(change.map(|v| (part.change, part.change_exponent) = (v.mantissa, v.exponent)).is_some());
        }
        if let Some(token) = get(5) {
            check(value::time(token.slice(bytes)).map(|v| part.time_ns = v).is_some());
        }
        if let Some(token) = get(6) {
            check(token.int(bytes).map(|v| part.number = v).is_some());
        }
    }
    faults
}

/// Runs the slow path: one byte at a time, with values parsed by the standard library.
pub fn slow_pass(input: &[u8], mut each: impl FnMut(&TypedMessage)) -> FixPassResult {
    let framer = FixFramer::default();
    let (mut pass, mut offset) = (FixPassResult::default(), 0);
    loop {
        let span = match naive::frame(&framer, input, offset) {
            NextFixFrame::Message(message) => {
                let bytes = message.span.slice(input);
                match naive::tokens(&framer, bytes) {
                    Ok(fields) => {
                        let mut typed = TypedMessage::default();
                        for token in fields {
                            pass.faults +=
                                u64::from(!typed.field::<StdValueReader>(token.tag, token.slice(bytes)));
                        }
                        pass.faults += u64::from(typed.stated != typed.entries);
                        pass.messages += 1;
                        pass.sum = pass.sum.wrapping_add(typed.sum());
                        each(&typed);
                    }
                    Err(_) => pass.faults += 1,
                }
                message.span
            }
            NextFixFrame::Bad { span, .. } | NextFixFrame::Skipped(span) => {
                pass.faults += 1;
                span
            }
            NextFixFrame::Incomplete { .. } | NextFixFrame::End => return pass,
        };
        offset = span.end;
    }
}

/// Values as the product reads them.
pub struct ProductValueReader;

impl ValueReader for ProductValueReader {
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
    #[inline(always)]
    fn time(text: &[u8]) -> Option<i64> {
        value::time(text)
    }
}

/// Values by the standard library, and the day by counting years and months.
struct StdValueReader;

impl ValueReader for StdValueReader {
    fn decimal(text: &[u8]) -> Option<(i64, i8)> {
        let text = std::str::from_utf8(text).ok()?;
        let (integer_digits, fraction) = text.split_once('.').unwrap_or((text, ""));
        Some((format!("{integer_digits}{fraction}").parse().ok()?, -i8::try_from(fraction.len()).ok()?))
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
        Some((years + months + day - 1) * 86_400_000_000_000 + Self::time(text.get(9..)?.as_bytes())?)
    }

    fn time(text: &[u8]) -> Option<i64> {
        let text = std::str::from_utf8(text).ok()?;
        let part = |from, to| text.get(from..to)?.parse::<i64>().ok();
        let seconds = part(0, 2)? * 3600 + part(3, 5)? * 60 + part(6, 8)?;
        let fraction = text.get(9..).unwrap_or("");
        Some(seconds * 1_000_000_000 + format!("{fraction:0<9}").parse::<i64>().ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the twin shares a mistake with the fast path. Both are compared with plain arithmetic.
    #[test]
    fn slow_values_are_right_where_calendars_go_wrong() {
        let day = 86_400 * 1_000_000_000;
        for (text, ns) in [
            ("19700101-00:00:00", 0),
            ("20000301-00:00:00.5", 11_017 * day + 500_000_000),
            ("20260302-09:00:00.123", 20_514 * day + 9 * 3_600_000_000_000 + 123_000_000),
        ] {
            assert_eq!(StdValueReader::timestamp(text.as_bytes()), Some(ns), "{text}");
            assert_eq!(ProductValueReader::timestamp(text.as_bytes()), Some(ns), "{text}");
        }
        assert_eq!(StdValueReader::decimal(b"-12.50"), Some((-1250, -2)));
        assert_eq!(StdValueReader::decimal(b"12x"), None);
    }
}
