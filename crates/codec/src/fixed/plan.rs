//! The compiled form of a record: what to do with each column, small enough to stay in the nearest cache.
//!
//! Each step has a quick way for the common case of its sort; whatever that does not take (blanks, signs, another
//! form) goes the careful way, which reads any column by its description.

use super::code::Code;
use super::digits::{POW10, number};
use super::fault::Fault;
use super::layout::{Column, DateOf, Sort};
use super::step::{Op, Step};
use super::text::{Sign, Storage, Trim};
use super::value::Value;
use super::when::Zone;
use unitape_model::{Decimal, NumError};

/// What values depend on beside their record.
#[derive(Debug)]
pub struct Around<'a> {
    /// Values of the header, empty where it is not known.
    pub header: &'a [Value],
    pub zones: &'a mut [Zone],
}

/// The steps for these columns; times that need a date of the same record come last.
pub fn steps(columns: &[Column]) -> Vec<Step> {
    let waits = |c: &Column| matches!(c.sort, Sort::Time(_, Some((DateOf::Record(_), _))));
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|i| waits(&columns[*i]));
    order.into_iter().map(|i| step(&columns[i], i as u16)).collect()
}

fn step(column: &Column, index: u16) -> Step {
    let op = match &column.sort {
        Sort::Filler => Op::Skip,
        Sort::Text if column.length() == 1 && column.trim != Trim::None => Op::Char(column.pad),
        Sort::Text if column.trim == Trim::Right => Op::Text(column.pad),
        Sort::Int(Sign::None) => Op::Digits,
        Sort::Decimal(Sign::None, Some(places)) => Op::Places(-(*places as i8)),
        Sort::Time(form, Some((DateOf::Header(header), zone))) => match form.clock_digits {
            Some(digits) => Op::Clock { digits, header: *header, zone: *zone },
            None => Op::Careful,
        },
        _ => Op::Careful,
    };
    let (start, end) = (column.start() as u16, (column.start() + column.length()) as u16);
    let none = !column.none.is_empty();
    // What says nothing cannot be missing.
    let required = column.required && column.speaks();
    Step { op, start, end, column: index, required, none }
}

/// Reads all columns of a record that has its full length; `kind` is its number in the layout.
#[inline]
pub fn run(
    steps: &[Step],
    columns: &[Column],
    record: &[u8],
    kind: u16,
    values: &mut [Value],
    around: &mut Around<'_>,
) -> Result<(), Fault> {
    for step in steps {
        let (start, end) = (usize::from(step.start), usize::from(step.end));
        let says_none = || columns[usize::from(step.column)].none.iter().any(|n| n[..] == record[start..end]);
        let quick = match step.op {
            _ if step.none && says_none() => Some(Value::None),
            Op::Skip => Some(Value::None),
            Op::Char(pad) if record[start] == pad => Some(Value::None),
            Op::Char(_) => Some(Value::Text { start: start as u32, end: end as u32 }),
            Op::Text(pad) => Some(right_trimmed(record, start, end, pad)),
            Op::Digits => number(record, start, end).map(|n| Value::Int(n as i64)),
            Op::Places(exponent) => {
                number(record, start, end).map(|n| Value::Decimal { mantissa: n as i64, exponent })
            }
            Op::Clock { digits, header, zone } => clock(record, start, end, (digits, header, zone), around),
            Op::Careful => None,
        };
        let value = match quick {
            Some(value) => value,
            None => match careful(&columns[usize::from(step.column)], record, values, around) {
                Ok(value) => value,
                Err(code) => return Err(Fault::column(code, kind, step.column)),
            },
        };
        if step.required && value == Value::None {
            return Err(Fault::column(Code::Missing, kind, step.column));
        }
        values[usize::from(step.column)] = value;
    }
    Ok(())
}

#[inline]
fn right_trimmed(record: &[u8], start: usize, end: usize, pad: u8) -> Value {
    let text = &record[start..end];
    match text.iter().rposition(|b| *b != pad) {
        Some(last) => Value::Text { start: start as u32, end: (start + last + 1) as u32 },
        None => Value::None,
    }
}

#[inline]
fn clock(
    record: &[u8],
    start: usize,
    end: usize,
    (digits, header, zone): (u8, u16, u16),
    around: &mut Around<'_>,
) -> Option<Value> {
    let &Value::Date(days) = around.header.get(usize::from(header))? else { return None };
    let n = number(record, start, end)? as i64;
    let unit = POW10[usize::from(digits)];
    let (clock, fraction) = (n / unit, n % unit);
    let (hour, minute, second) = (clock / 10_000, clock / 100 % 100, clock % 100);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let nanos =
        ((hour * 60 + minute) * 60 + second) * 1_000_000_000 + fraction * POW10[9 - usize::from(digits)];
    around.zones[usize::from(zone)].utc(days, nanos).map(Value::Instant)
}

/// Reads any column.
pub fn careful(
    column: &Column,
    record: &[u8],
    values: &[Value],
    around: &mut Around<'_>,
) -> Result<Value, Code> {
    let (start, end) = (column.start(), column.start() + column.length());
    read(column, (&record[start..end], start), values, around)
}

/// Reads the value `whole` of any column; text is told by its offset, of which `start` is that of `whole`.
pub fn read(
    column: &Column,
    (whole, start): (&[u8], usize),
    values: &[Value],
    around: &mut Around<'_>,
) -> Result<Value, Code> {
    if let Sort::Literal(is) = &column.sort {
        return if whole == &is[..] { Ok(Value::None) } else { Err(Code::BadLiteral) };
    }
    if let Sort::Stored(storage, places) = &column.sort {
        // Bytes of a binary number may be any.
        if *storage == Storage::Packed && whole.iter().all(|b| *b == EBCDIC_BLANK) {
            return Ok(Value::None);
        }
        let n = stored(whole, *storage)?;
        return Ok(match places {
            None => Value::Int(n),
            Some(places) => Value::Decimal { mantissa: n, exponent: -(*places as i8) },
        });
    }
    let (from, to) = trimmed(whole, column.pad, column.trim);
    let text = &whole[from..to];
    if column.none.iter().any(|n| n == whole) {
        return Ok(Value::None);
    }
    if let Sort::Flag { yes, no } = &column.sort {
        // A blank may be one of the values.
        let one_of = |list: &[Vec<u8>]| list.iter().any(|v| v == text || v == whole);
        return match (one_of(yes), one_of(no)) {
            (true, _) => Ok(Value::Flag(true)),
            (_, true) => Ok(Value::Flag(false)),
            _ if text.is_empty() => Ok(Value::None),
            _ => Err(Code::BadFlag),
        };
    }
    if text.is_empty() {
        return Ok(Value::None);
    }
    let plain;
    let text = match &column.marks {
        None => text,
        Some(marks) => {
            plain = marks.plain(text)?;
            plain.as_bytes()
        }
    };
    match &column.sort {
        Sort::Text | Sort::Filler | Sort::Literal(_) | Sort::Flag { .. } | Sort::Stored(..) => {
            Ok(Value::Text { start: (start + from) as u32, end: (start + to) as u32 })
        }
        Sort::Int(_) if column.marks.is_some() => Ok(Value::Int(integer(text, Sign::Leading)?)),
        Sort::Int(sign) => Ok(Value::Int(integer(text, *sign)?)),
        Sort::Decimal(sign, Some(places)) => {
            Ok(Value::Decimal { mantissa: integer(text, *sign)?, exponent: -(*places as i8) })
        }
        Sort::Decimal(sign, None) => {
            let sign = if column.marks.is_some() { Sign::Leading } else { *sign };
            let (negative, digits) = split_sign(text, sign)?;
            // The sign was taken off; another one is no digit.
            let signed = digits.bytes().first() == Some(&b'-');
            let d = if signed { Err(NumError::Malformed) } else { Decimal::parse(digits.bytes()) };
            let d = d.map_err(|e| match e {
                NumError::Malformed => Code::BadNumber,
                NumError::DoesNotFit => Code::NumberRange,
            })?;
            let mantissa = if negative { -d.mantissa() } else { d.mantissa() };
            Ok(Value::Decimal { mantissa, exponent: d.exponent() })
        }
        Sort::Date(form) => form.read(text).map(|r| Value::Date(r.days)).ok_or(Code::BadDate),
        Sort::Timestamp(form, zone) => {
            let read = form.read(text).ok_or(Code::BadTime)?;
            let utc = around.zones[usize::from(*zone)].utc(read.days, read.nanos);
            utc.map(Value::Instant).ok_or(Code::BadTime)
        }
        Sort::Time(form, date) => {
            let nanos = form.read(text).ok_or(Code::BadTime)?.nanos;
            let (day, zone) = match date {
                None => return Ok(Value::Time(nanos)),
                Some((DateOf::Record(i), zone)) => (values.get(usize::from(*i)), zone),
                Some((DateOf::Header(i), zone)) => (around.header.get(usize::from(*i)), zone),
            };
            let Some(&Value::Date(days)) = day else { return Err(Code::NoDate) };
            let utc = around.zones[usize::from(*zone)].utc(days, nanos);
            utc.map(Value::Instant).ok_or(Code::BadTime)
        }
    }
}

/// What a field of text is filled with where a number was not set.
pub const EBCDIC_BLANK: u8 = 0x40;

/// A number that is no text.
fn stored(bytes: &[u8], storage: Storage) -> Result<i64, Code> {
    match storage {
        Storage::Text => Err(Code::BadNumber),
        Storage::Packed => {
            let (last, whole) = bytes.split_last().ok_or(Code::BadNumber)?;
            let negative = match last & 15 {
                0xa | 0xc | 0xe | 0xf => false,
                0xb | 0xd => true,
                _ => return Err(Code::BadNumber),
            };
            let digits = whole.iter().flat_map(|b| [b >> 4, b & 15]).chain([last >> 4]);
            let mut n = Ok(0i64);
            for digit in digits {
                if digit > 9 {
                    return Err(Code::BadNumber);
                }
                let digit = i64::from(if negative { -(digit as i8) } else { digit as i8 });
                let next = |n: i64| n.checked_mul(10).and_then(|n| n.checked_add(digit));
                n = n.and_then(|n| next(n).ok_or(Code::NumberRange));
            }
            n
        }
        Storage::Binary | Storage::Unsigned => {
            let negative = storage == Storage::Binary && bytes.first().is_some_and(|b| b >> 7 == 1);
            let fill = if negative { u64::MAX } else { 0 };
            let n = bytes.iter().fold(fill, |n, b| n << 8 | u64::from(*b));
            match storage {
                Storage::Binary => Ok(n as i64),
                _ => i64::try_from(n).map_err(|_| Code::NumberRange),
            }
        }
    }
}

/// What is left of `text` without its padding, as a range.
pub fn trimmed(text: &[u8], pad: u8, trim: Trim) -> (usize, usize) {
    let (left, right) = match trim {
        Trim::Left => (true, false),
        Trim::Right => (false, true),
        Trim::Both => (true, true),
        Trim::None => (false, false),
    };
    let Some(first) = text.iter().position(|b| *b != pad) else {
        // Without trimming a blank is text; otherwise it is nothing.
        return if trim == Trim::None { (0, text.len()) } else { (0, 0) };
    };
    let last = text.iter().rposition(|b| *b != pad).unwrap_or(first);
    (if left { first } else { 0 }, if right { last + 1 } else { text.len() })
}

/// Digits without their sign.
struct Digits {
    text: [u8; 64],
    len: usize,
}

impl Digits {
    fn bytes(&self) -> &[u8] {
        &self.text[..self.len]
    }
}

/// Takes the sign off: whether it is minus, and the digits.
fn split_sign(text: &[u8], sign: Sign) -> Result<(bool, Digits), Code> {
    let mut digits = Digits { text: [0; 64], len: 0 };
    let mut negative = false;
    let rest = match (sign, text) {
        (Sign::Leading, [b @ (b'+' | b'-'), rest @ ..])
        | (Sign::Trailing, [rest @ .., b @ (b'+' | b'-')]) => {
            negative = *b == b'-';
            rest
        }
        _ => text,
    };
    // Blanks may stand between sign and digits.
    let rest = if matches!(sign, Sign::Leading | Sign::Trailing) { rest.trim_ascii() } else { rest };
    let room = digits.text.get_mut(..rest.len()).ok_or(Code::NumberRange)?;
    room.copy_from_slice(rest);
    digits.len = rest.len();
    let punched = match sign {
        Sign::Overpunch => room.last_mut(),
        Sign::LeadingOverpunch => room.first_mut(),
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

fn integer(text: &[u8], sign: Sign) -> Result<i64, Code> {
    let (negative, digits) = split_sign(text, sign)?;
    if digits.len == 0 || !digits.bytes().iter().all(u8::is_ascii_digit) {
        return Err(Code::BadNumber);
    }
    let step = |n: i64, b: &u8| {
        let digit = i64::from(b - b'0');
        n.checked_mul(10)?.checked_add(if negative { -digit } else { digit })
    };
    digits.bytes().iter().try_fold(0i64, step).ok_or(Code::NumberRange)
}
