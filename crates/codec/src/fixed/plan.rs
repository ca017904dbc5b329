//! The compiled form of a record: what to do with each column, small enough to stay in the nearest cache.
//!
//! Each step has a quick way for the common case of its sort; whatever that does not take (blanks, signs, another
//! form) goes the careful way, which reads any column by its description.

use super::code::RecordFaultCode;
use super::digits::{POW10, exponent_at, parse_number, with_exponent};
use super::fault::RecordFault;
use super::layout::{ColumnFormat, ColumnLayout, DateSource};
use super::step::{ColumnInstruction, ColumnOp};
use super::text::{NumberStorage, SignStyle, TrimSide};
use super::value::ColumnValue;
use crate::times::{CachedTimeZone, DateAndTime, LocalTimeFault};
use unitape_model::{Decimal, NumberFault};

/// The state beside a record that its values depend on.
#[derive(Debug)]
pub struct RecordContext<'a> {
    /// Values of the header, empty where it is not known.
    pub header: &'a [ColumnValue],
    pub zone_caches: &'a mut [CachedTimeZone],
}

/// Makes the instructions for these columns. Times that need a date from the same record come last.
pub fn steps(columns: &[ColumnLayout]) -> Vec<ColumnInstruction> {
    let waits =
        |c: &ColumnLayout| matches!(c.format, ColumnFormat::Time(_, Some((DateSource::Record(_), _))));
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|i| waits(&columns[*i]));
    order.into_iter().map(|i| column_instruction(&columns[i], i as u16)).collect()
}

fn column_instruction(column: &ColumnLayout, index: u16) -> ColumnInstruction {
    let op = match &column.format {
        ColumnFormat::Filler => ColumnOp::Skip,
        ColumnFormat::Text if column.length() == 1 && column.trim != TrimSide::None => {
            ColumnOp::Char(column.pad)
        }
        ColumnFormat::Text if column.trim == TrimSide::Right => ColumnOp::Text(column.pad),
        ColumnFormat::Int(SignStyle::None) => ColumnOp::Digits,
        ColumnFormat::Decimal(SignStyle::None, Some(places)) => ColumnOp::Places(-(*places as i8)),
        ColumnFormat::Time(form, Some((DateSource::Header(header), zone))) => match form.clock_digits {
            Some(digits) => ColumnOp::Clock { digits, header: *header, zone: *zone },
            None => ColumnOp::Careful,
        },
        _ => ColumnOp::Careful,
    };
    let (start, end) = (column.start() as u16, (column.start() + column.length()) as u16);
    let has_none_values = !column.none_values.is_empty();
    // A column without a value cannot be missing.
    let required = column.required && column.is_output();
    ColumnInstruction {
        op,
        column_start: start,
        column_end: end,
        column: index,
        is_required: required,
        has_none_values,
    }
}

/// Reads all columns of a record that has its full length; `identifier` is its number in the layout.
#[inline]
pub fn run(
    steps: &[ColumnInstruction],
    columns: &[ColumnLayout],
    record: &[u8],
    kind: u16,
    values: &mut [ColumnValue],
    context: &mut RecordContext<'_>,
) -> Result<(), RecordFault> {
    for step in steps {
        let (start, end) = (usize::from(step.column_start), usize::from(step.column_end));
        let says_none =
            || columns[usize::from(step.column)].none_values.iter().any(|n| n[..] == record[start..end]);
        let quick = match step.op {
            _ if step.has_none_values && says_none() => Some(ColumnValue::None),
            ColumnOp::Skip => Some(ColumnValue::None),
            ColumnOp::Char(pad) if record[start] == pad => Some(ColumnValue::None),
            ColumnOp::Char(_) => Some(ColumnValue::Text { start: start as u32, end: end as u32 }),
            ColumnOp::Text(pad) => Some(right_trimmed(record, start, end, pad)),
            ColumnOp::Digits => parse_number(record, start, end).map(|n| ColumnValue::Int(n as i64)),
            ColumnOp::Places(exponent) => parse_number(record, start, end)
                .map(|n| ColumnValue::Decimal { mantissa: n as i64, exponent }),
            ColumnOp::Clock { digits, header, zone } => clock_nanos(
                record,
                start,
                end,
                ClockTimeSpec { fraction_digits: digits, header, zone_index: zone },
                context,
            ),
            ColumnOp::Careful => None,
        };
        let value = match quick {
            Some(value) => value,
            None => match read_any(&columns[usize::from(step.column)], record, values, context) {
                Ok(value) => value,
                Err(code) => return Err(RecordFault::column(code, kind, step.column)),
            },
        };
        if step.is_required && value == ColumnValue::None {
            return Err(RecordFault::column(RecordFaultCode::Missing, kind, step.column));
        }
        values[usize::from(step.column)] = value;
    }
    Ok(())
}

#[inline]
fn right_trimmed(record: &[u8], start: usize, end: usize, pad: u8) -> ColumnValue {
    let text = &record[start..end];
    match text.iter().rposition(|b| *b != pad) {
        Some(last) => ColumnValue::Text { start: start as u32, end: (start + last + 1) as u32 },
        None => ColumnValue::None,
    }
}

/// How the digits of a clock time become an instant. [`ColumnOp::Clock`] has the same fields: with this struct inside, an
/// op would be larger.
#[derive(Clone, Copy)]
struct ClockTimeSpec {
    /// Digits of a second after HHMMSS.
    fraction_digits: u8,
    /// Column of the header that has the day.
    header: u16,
    zone_index: u16,
}

#[inline]
fn clock_nanos(
    record: &[u8],
    start: usize,
    end: usize,
    spec: ClockTimeSpec,
    context: &mut RecordContext<'_>,
) -> Option<ColumnValue> {
    let ClockTimeSpec { fraction_digits: digits, header, zone_index: zone } = spec;
    let &ColumnValue::Date(days) = context.header.get(usize::from(header))? else { return None };
    let n = parse_number(record, start, end)? as i64;
    let unit = POW10[usize::from(digits)];
    let (clock, fraction) = (n / unit, n % unit);
    let (hour, minute, second) = (clock / 10_000, clock / 100 % 100, clock % 100);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let nanos =
        ((hour * 60 + minute) * 60 + second) * 1_000_000_000 + fraction * POW10[9 - usize::from(digits)];
    context.zone_caches[usize::from(zone)].utc(days, nanos).ok().map(ColumnValue::Instant)
}

/// Reads any column.
pub fn read_any(
    column: &ColumnLayout,
    record: &[u8],
    values: &[ColumnValue],
    context: &mut RecordContext<'_>,
) -> Result<ColumnValue, RecordFaultCode> {
    let (start, end) = (column.start(), column.start() + column.length());
    read(column, ColumnBytes { bytes: &record[start..end], record_offset: start }, values, context)
}

/// The bytes of a column's value, blanks and all.
#[derive(Debug, Clone, Copy)]
pub struct ColumnBytes<'b> {
    pub bytes: &'b [u8],
    /// Their offset in the record: text is returned as offsets from the same place.
    pub record_offset: usize,
}

/// Reads the value of any column.
pub fn read(
    column: &ColumnLayout,
    value: ColumnBytes<'_>,
    values: &[ColumnValue],
    context: &mut RecordContext<'_>,
) -> Result<ColumnValue, RecordFaultCode> {
    let ColumnBytes { bytes: column_bytes, record_offset: start } = value;
    if let ColumnFormat::Literal(is) = &column.format {
        return if column_bytes == &is[..] {
            Ok(ColumnValue::None)
        } else {
            Err(RecordFaultCode::BadLiteral)
        };
    }
    if let ColumnFormat::Stored(storage, places) = &column.format {
        // Bytes of a binary number may be any.
        if *storage == NumberStorage::Packed && column_bytes.iter().all(|b| *b == EBCDIC_BLANK) {
            return Ok(ColumnValue::None);
        }
        let n = decode_stored(column_bytes, *storage)?;
        return Ok(match places {
            None => ColumnValue::Int(n),
            Some(places) => ColumnValue::Decimal { mantissa: n, exponent: -(*places as i8) },
        });
    }
    let (from, to) = trim_range(column_bytes, column.pad, column.trim);
    let text = &column_bytes[from..to];
    // A separated value has no length, and blanks around it say nothing.
    let says_none =
        |n: &Vec<u8>| n == column_bytes || column.is_separated() && n == column_bytes.trim_ascii();
    if column.none_values.iter().any(says_none) {
        return Ok(ColumnValue::None);
    }
    if let ColumnFormat::Flag { yes, no } = &column.format {
        // A blank may be one of the values.
        let one_of = |list: &[Vec<u8>]| list.iter().any(|v| v == text || v == column_bytes);
        return match (one_of(yes), one_of(no)) {
            (true, _) => Ok(ColumnValue::Flag(true)),
            (_, true) => Ok(ColumnValue::Flag(false)),
            _ if text.is_empty() => Ok(ColumnValue::None),
            _ => Err(RecordFaultCode::BadFlag),
        };
    }
    if text.is_empty() {
        return Ok(ColumnValue::None);
    }
    let normalized;
    let text = match &column.marks {
        None => text,
        Some(marks) => {
            normalized = marks.normalize(text)?;
            normalized.as_bytes()
        }
    };
    match &column.format {
        ColumnFormat::Text
        | ColumnFormat::Filler
        | ColumnFormat::Literal(_)
        | ColumnFormat::Flag { .. }
        | ColumnFormat::Stored(..) => {
            Ok(ColumnValue::Text { start: (start + from) as u32, end: (start + to) as u32 })
        }
        ColumnFormat::Int(sign) => {
            let sign = if column.marks.is_some() { SignStyle::Leading } else { *sign };
            match parse_integer(text, sign) {
                Err(RecordFaultCode::BadNumber) if column.has_exponents() && exponent_at(text).is_some() => {
                    let d = written_decimal(text, sign, true)?;
                    let n = d.scaled(0).ok_or(RecordFaultCode::BadNumber)?;
                    i64::try_from(n).map(ColumnValue::Int).map_err(|_| RecordFaultCode::NumberRange)
                }
                n => n.map(ColumnValue::Int),
            }
        }
        ColumnFormat::Decimal(sign, Some(places)) => {
            Ok(ColumnValue::Decimal { mantissa: parse_integer(text, *sign)?, exponent: -(*places as i8) })
        }
        ColumnFormat::Decimal(sign, None) => {
            let sign = if column.marks.is_some() { SignStyle::Leading } else { *sign };
            let d = written_decimal(text, sign, column.has_exponents())?;
            Ok(ColumnValue::Decimal { mantissa: d.mantissa(), exponent: d.exponent() })
        }
        ColumnFormat::Date(form) => {
            form.read(text).map(|r| ColumnValue::Date(r.days)).map_err(|_| RecordFaultCode::BadDate)
        }
        ColumnFormat::Timestamp(form, zone) => {
            let date_and_time = form.read(text).map_err(|_| RecordFaultCode::BadTime)?;
            instant_of(date_and_time, context.zone_caches.get_mut(usize::from(*zone)))
        }
        ColumnFormat::Time(form, date) => {
            let nanos = form.read(text).map_err(|_| RecordFaultCode::BadTime)?.nanos;
            let (day, zone) = match date {
                None => return Ok(ColumnValue::Time(nanos)),
                Some((DateSource::Record(i), zone)) => (values.get(usize::from(*i)), zone),
                Some((DateSource::Header(i), zone)) => (context.header.get(usize::from(*i)), zone),
            };
            let Some(&ColumnValue::Date(days)) = day else { return Err(RecordFaultCode::NoDate) };
            let date_and_time = DateAndTime { days, nanos, offset: None };
            instant_of(date_and_time, context.zone_caches.get_mut(usize::from(*zone)))
        }
    }
}

/// Parses a number with a written decimal point.
#[inline]
fn written_decimal(text: &[u8], sign: SignStyle, has_exponents: bool) -> Result<Decimal, RecordFaultCode> {
    let (negative, digits) = split_sign(text, sign)?;
    // The sign was removed; another one is no digit.
    let signed = digits.bytes().first() == Some(&b'-');
    let d = if signed { Err(NumberFault::Malformed) } else { Decimal::parse(digits.bytes()) };
    let d = match d {
        Err(NumberFault::Malformed) if !signed && has_exponents => {
            with_exponent(digits.bytes()).map_err(code_of)?
        }
        d => d.map_err(code_of)?,
    };
    Ok(if negative { Decimal::from_canonical(-d.mantissa(), d.exponent()) } else { d })
}

const fn code_of(fault: NumberFault) -> RecordFaultCode {
    match fault {
        NumberFault::Malformed => RecordFaultCode::BadNumber,
        NumberFault::DoesNotFit => RecordFaultCode::NumberRange,
    }
}

/// Converts a date with a time to an instant: by its offset, or in its zone.
#[inline]
fn instant_of(read: DateAndTime, zone: Option<&mut CachedTimeZone>) -> Result<ColumnValue, RecordFaultCode> {
    if let Some(instant) = read.instant() {
        return instant.map(ColumnValue::Instant).ok_or(RecordFaultCode::BadTime);
    }
    let zone = zone.ok_or(RecordFaultCode::BadTime)?;
    zone.utc(read.days, read.nanos).map(ColumnValue::Instant).map_err(|fault| match fault {
        LocalTimeFault::Twice => RecordFaultCode::AmbiguousTime,
        LocalTimeFault::TwiceUnordered => RecordFaultCode::UnorderedTime,
        LocalTimeFault::Never => RecordFaultCode::SkippedTime,
        LocalTimeFault::Range => RecordFaultCode::BadTime,
    })
}

/// The byte that fills a field of text where a number was not set.
pub const EBCDIC_BLANK: u8 = 0x40;

/// Decodes a number in binary form.
fn decode_stored(bytes: &[u8], storage: NumberStorage) -> Result<i64, RecordFaultCode> {
    match storage {
        NumberStorage::Text => Err(RecordFaultCode::BadNumber),
        NumberStorage::Packed => {
            let (last, leading_bytes) = bytes.split_last().ok_or(RecordFaultCode::BadNumber)?;
            let negative = match last & 15 {
                0xa | 0xc | 0xe | 0xf => false,
                0xb | 0xd => true,
                _ => return Err(RecordFaultCode::BadNumber),
            };
            let digits = leading_bytes.iter().flat_map(|b| [b >> 4, b & 15]).chain([last >> 4]);
            let mut n = Ok(0i64);
            for digit in digits {
                if digit > 9 {
                    return Err(RecordFaultCode::BadNumber);
                }
                let digit = i64::from(if negative { -(digit as i8) } else { digit as i8 });
                let next = |n: i64| n.checked_mul(10).and_then(|n| n.checked_add(digit));
                n = n.and_then(|n| next(n).ok_or(RecordFaultCode::NumberRange));
            }
            n
        }
        NumberStorage::Binary | NumberStorage::Unsigned => {
            let negative = storage == NumberStorage::Binary && bytes.first().is_some_and(|b| b >> 7 == 1);
            let fill = if negative { u64::MAX } else { 0 };
            let n = bytes.iter().fold(fill, |n, b| n << 8 | u64::from(*b));
            match storage {
                NumberStorage::Binary => Ok(n as i64),
                _ => i64::try_from(n).map_err(|_| RecordFaultCode::NumberRange),
            }
        }
    }
}

/// Returns the range of `text` without its padding.
pub fn trim_range(text: &[u8], pad: u8, trim: TrimSide) -> (usize, usize) {
    let (left, right) = match trim {
        TrimSide::Left => (true, false),
        TrimSide::Right => (false, true),
        TrimSide::Both => (true, true),
        TrimSide::None => (false, false),
    };
    let Some(text_start) = text.iter().position(|b| *b != pad) else {
        // Without trimming a blank is text; otherwise it is nothing.
        return if trim == TrimSide::None { (0, text.len()) } else { (0, 0) };
    };
    let text_last = text.iter().rposition(|b| *b != pad).unwrap_or(text_start);
    (if left { text_start } else { 0 }, if right { text_last + 1 } else { text.len() })
}

/// Digits without their sign.
struct UnsignedDigits {
    text: [u8; 64],
    len: usize,
}

impl UnsignedDigits {
    fn bytes(&self) -> &[u8] {
        &self.text[..self.len]
    }
}

/// Takes the sign off: whether it is minus, and the digits.
fn split_sign(text: &[u8], sign: SignStyle) -> Result<(bool, UnsignedDigits), RecordFaultCode> {
    let mut digits = UnsignedDigits { text: [0; 64], len: 0 };
    let mut negative = false;
    let digits_text = match (sign, text) {
        (SignStyle::Leading, [b @ (b'+' | b'-'), rest @ ..])
        | (SignStyle::Trailing, [rest @ .., b @ (b'+' | b'-')]) => {
            negative = *b == b'-';
            rest
        }
        _ => text,
    };
    // Blanks may be between sign and digits.
    let digits_text = if matches!(sign, SignStyle::Leading | SignStyle::Trailing) {
        digits_text.trim_ascii()
    } else {
        digits_text
    };
    let room = digits.text.get_mut(..digits_text.len()).ok_or(RecordFaultCode::NumberRange)?;
    room.copy_from_slice(digits_text);
    digits.len = digits_text.len();
    let punched = match sign {
        SignStyle::Overpunch => room.last_mut(),
        SignStyle::LeadingOverpunch => room.first_mut(),
        _ => None,
    };
    if let Some(byte) = punched {
        (*byte, negative) = match *byte {
            b'{' => (b'0', false),
            b @ b'A'..=b'I' => (b - b'A' + b'1', false),
            b'}' => (b'0', true),
            b @ b'J'..=b'R' => (b - b'J' + b'1', true),
            b => (b, false),
        };
    }
    Ok((negative, digits))
}

fn parse_integer(text: &[u8], sign: SignStyle) -> Result<i64, RecordFaultCode> {
    let (negative, digits) = split_sign(text, sign)?;
    if digits.len == 0 || !digits.bytes().iter().all(u8::is_ascii_digit) {
        return Err(RecordFaultCode::BadNumber);
    }
    let step = |n: i64, b: &u8| {
        let digit = i64::from(b - b'0');
        n.checked_mul(10)?.checked_add(if negative { -digit } else { digit })
    };
    digits.bytes().iter().try_fold(0i64, step).ok_or(RecordFaultCode::NumberRange)
}
