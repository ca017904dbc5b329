//! The slow, obvious twin: the rules read aloud, a byte at a time, on an input that is all there; values by the
//! standard library and as text. Tests, the bench and the fuzzer hold the fast path against it.

use crate::fixed::layout::{ColumnFormat, DateSource};
use crate::fixed::text::{NumberStorage, RecordTerminator, ShortRecordPolicy, SignStyle, TrimSide};
use crate::fixed::{ColumnLayout, FixedWidthLayout, RECORD_BYTES_MAX, RecordFaultCode, RecordRole};
use crate::foreign::{ForeignCheck, ForeignInput};
use crate::times::AmbiguousTimes;
use jiff::civil::{Date, DateTime, Time};
use std::collections::BTreeMap;

/// A record at its place in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NaiveRecord {
    /// Where the record starts.
    pub offset: usize,
    /// Its bytes without the terminator.
    pub length: usize,
    /// Its name and the text of its values by column, or the code of what is wrong with it.
    pub outcome: Result<Read, RecordFaultCode>,
}

/// A record's name, and the text of its values by column.
pub type Read = (String, Vec<(String, Vec<u8>)>);

/// Decodes a whole input.
#[must_use]
pub fn decode(layout: &FixedWidthLayout, input: &[u8]) -> Vec<NaiveRecord> {
    let mut out = Vec::new();
    let mut dates: BTreeMap<usize, Date> = BTreeMap::new();
    let mut at = 0;
    while at < input.len() {
        let first = at == 0;
        if layout.terminator != RecordTerminator::None {
            while at < input.len() && (input[at] == b'\n' || input[at] == b'\r') {
                at += 1;
            }
            if at == input.len() {
                break;
            }
        }
        let (length, end, endless) = line(layout, &input[at..]);
        let raw = &input[at..at + length];
        let is_text = layout.terminator != RecordTerminator::None && layout.page.is_none();
        let is_end = |b: &u8| matches!(b, 0 | 0x1a | b'\r' | b'\n');
        let rest = &input[at..];
        if is_text && !first && matches!(rest[0], 0 | 0x1a) && rest.len() <= 4096 && rest.iter().all(is_end) {
            break;
        }
        let foreign = match ForeignInput::check(input, true) {
            ForeignCheck::Is(kind) if first && is_text => Some(RecordFaultCode::from(kind)),
            _ => None,
        };
        let what = if let Some(code) = foreign {
            Err(code)
        } else if endless {
            Err(RecordFaultCode::LongRecord)
        } else {
            record(layout, raw, first, &mut dates)
        };
        out.push(NaiveRecord { offset: at, length, outcome: what });
        at += end;
    }
    out
}

/// Returns the length of the line, the offset after its terminator, and whether it has no end.
fn line(layout: &FixedWidthLayout, input: &[u8]) -> (usize, usize, bool) {
    let limit = 2 * RECORD_BYTES_MAX;
    if layout.terminator == RecordTerminator::None {
        let bytes = layout.records().iter().map(|r| r.bytes()).max().unwrap_or(1).min(input.len());
        return (bytes, bytes, false);
    }
    for (i, byte) in input.iter().enumerate().take(limit) {
        let carriage = i > 0 && input[i - 1] == b'\r';
        if *byte == b'\n' && (carriage || layout.terminator == RecordTerminator::Newline) {
            return (if carriage { i - 1 } else { i }, i + 1, false);
        }
    }
    let length = input.len().min(limit);
    (length, length, length == limit)
}

fn record(
    layout: &FixedWidthLayout,
    raw: &[u8],
    first: bool,
    dates: &mut BTreeMap<usize, Date>,
) -> Result<Read, RecordFaultCode> {
    let original = raw.to_vec();
    let mut latin1 = Vec::new();
    let raw = match layout.page {
        None => raw,
        Some(page) => {
            page.to_latin1(raw, &mut latin1);
            &latin1
        }
    };
    let is = |r: &&crate::fixed::RecordLayout| {
        let selected = r.selectors.iter().all(|s| {
            raw.len() >= s.range.end && s.values.iter().any(|v| raw[s.range.start..s.range.end] == v[..])
        });
        if first && layout.header.is_some() {
            r.role() == RecordRole::Header
        } else {
            r.role() != RecordRole::Header && selected
        }
    };
    let record = layout.records().iter().find(is).ok_or(RecordFaultCode::UnknownRecord)?;
    let mut raw = raw.to_vec();
    if raw.len() > record.bytes() {
        return Err(RecordFaultCode::LongRecord);
    }
    if raw.len() < record.bytes() && layout.short == ShortRecordPolicy::Error {
        return Err(RecordFaultCode::ShortRecord);
    }
    while raw.len() < record.bytes() {
        raw.push(b' ');
    }
    let mut own_dates: BTreeMap<usize, Date> = BTreeMap::new();
    let mut texts: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    // Times that wait for a date of the record go last.
    let waits =
        |c: &ColumnLayout| matches!(c.format, ColumnFormat::Time(_, Some((DateSource::Record(_), _))));
    for late in [false, true] {
        for (i, column) in record.columns().iter().enumerate().filter(|(_, c)| waits(c) == late) {
            if let ColumnFormat::Stored(storage, places) = &column.format {
                let at = column.start()..column.start() + column.length();
                let whole = original.get(at).map_or_else(|| vec![0x40; column.length()], <[u8]>::to_vec);
                match stored(&whole, *storage, usize::from(places.unwrap_or(0)))? {
                    Some(text) => _ = texts.insert(i, text),
                    None if column.required => return Err(RecordFaultCode::Missing),
                    None => {}
                }
                continue;
            }
            let text = value(layout, column, &raw, (i, &mut own_dates), dates)?;
            // Latin-1 is Unicode's beginning.
            let text = match (&column.format, layout.page) {
                (ColumnFormat::Text, Some(_)) => {
                    text.map(|t| t.iter().map(|b| char::from(*b)).collect::<String>().into_bytes())
                }
                _ => text,
            };
            match text {
                Some(text) if column.is_output() => _ = texts.insert(i, text),
                None if column.required && !matches!(column.format, ColumnFormat::Literal(_)) => {
                    return Err(RecordFaultCode::Missing);
                }
                _ => {}
            }
        }
    }
    if record.role() == RecordRole::Header {
        *dates = own_dates;
    }
    let texts = texts.into_iter().map(|(i, text)| (record.columns()[i].name().to_owned(), text));
    Ok((record.name().to_owned(), texts.collect()))
}

/// Decodes a number by its hexadecimal digits.
fn stored(whole: &[u8], storage: NumberStorage, places: usize) -> Result<Option<Vec<u8>>, RecordFaultCode> {
    if storage == NumberStorage::Packed && whole.iter().all(|b| *b == 0x40) {
        return Ok(None);
    }
    let hex: String = whole.iter().map(|b| format!("{b:02x}")).collect();
    let n = match storage {
        NumberStorage::Packed => {
            let (digits, sign) = hex.split_at(hex.len() - 1);
            let minus = match sign {
                "a" | "c" | "e" | "f" => "",
                "b" | "d" => "-",
                _ => return Err(RecordFaultCode::BadNumber),
            };
            if !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(RecordFaultCode::BadNumber);
            }
            format!("{minus}{digits}").parse::<i128>().map_err(|_| RecordFaultCode::NumberRange)?
        }
        _ => {
            let n = i128::from_str_radix(&hex, 16).map_err(|_| RecordFaultCode::BadNumber)?;
            let all = 1i128 << (8 * whole.len());
            if storage == NumberStorage::Binary && n >= all / 2 { n - all } else { n }
        }
    };
    let n = i64::try_from(n).map_err(|_| RecordFaultCode::NumberRange)?;
    let digits = format!("{:0width$}", n.unsigned_abs(), width = places + 1);
    let (units, fraction) = digits.split_at(digits.len() - places);
    Ok(Some(plain(n < 0, units, fraction)))
}

fn value(
    layout: &FixedWidthLayout,
    column: &ColumnLayout,
    raw: &[u8],
    (index, own): (usize, &mut BTreeMap<usize, Date>),
    header: &BTreeMap<usize, Date>,
) -> Result<Option<Vec<u8>>, RecordFaultCode> {
    let whole = &raw[column.start()..column.start() + column.length()];
    if let ColumnFormat::Literal(is) = &column.format {
        return if whole == &is[..] { Ok(None) } else { Err(RecordFaultCode::BadLiteral) };
    }
    if column.none_values.iter().any(|n| n == whole) {
        return Ok(None);
    }
    let mut text = whole.to_vec();
    while matches!(column.trim, TrimSide::Right | TrimSide::Both) && text.last() == Some(&column.pad) {
        text.pop();
    }
    while matches!(column.trim, TrimSide::Left | TrimSide::Both) && text.first() == Some(&column.pad) {
        text.remove(0);
    }
    if let ColumnFormat::Flag { yes, no } = &column.format {
        if yes.contains(&text) || yes.iter().any(|v| v == whole) {
            return Ok(Some(b"Y".to_vec()));
        }
        if no.contains(&text) || no.iter().any(|v| v == whole) {
            return Ok(Some(b"N".to_vec()));
        }
        return if text.is_empty() { Ok(None) } else { Err(RecordFaultCode::BadFlag) };
    }
    if text.is_empty() {
        return Ok(None);
    }
    let as_str = || String::from_utf8(text.clone()).unwrap_or_else(|_| "?".to_owned());
    match &column.format {
        ColumnFormat::Literal(_) | ColumnFormat::Flag { .. } | ColumnFormat::Stored(..) => Ok(None),
        ColumnFormat::Filler => Ok(None),
        ColumnFormat::Text if column.squeezes_blanks => {
            while let Some(i) = text.windows(2).position(|w| w == b"  ") {
                text.remove(i);
            }
            Ok(Some(text))
        }
        ColumnFormat::Text => Ok(Some(text)),
        ColumnFormat::Int(sign) => {
            let n = signed(&as_str(), *sign).ok_or(RecordFaultCode::BadNumber)?;
            let n: i64 = n.parse().map_err(|_| RecordFaultCode::NumberRange)?;
            Ok(Some(n.to_string().into_bytes()))
        }
        ColumnFormat::Decimal(sign, Some(places)) => {
            let n = signed(&as_str(), *sign).ok_or(RecordFaultCode::BadNumber)?;
            let n: i64 = n.parse().map_err(|_| RecordFaultCode::NumberRange)?;
            let digits = format!("{:0width$}", n.unsigned_abs(), width = usize::from(*places) + 1);
            let (units, fraction) = digits.split_at(digits.len() - usize::from(*places));
            Ok(Some(plain(n < 0, units, fraction)))
        }
        ColumnFormat::Decimal(sign, None) => {
            let (digits, negative) = overpunch(&as_str(), *sign);
            let trims = matches!(sign, SignStyle::Leading | SignStyle::Trailing);
            let digits = if trims { digits.trim_ascii() } else { &digits };
            let (units, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            let written = format!("{units}{fraction}");
            if written.is_empty() || !written.bytes().all(|b| b.is_ascii_digit()) {
                return Err(RecordFaultCode::BadNumber);
            }
            let significant = written.trim_start_matches('0').trim_end_matches('0');
            let fits = significant.is_empty() || significant.parse::<i64>().is_ok();
            if !fits || fraction.trim_end_matches('0').len() > 30 {
                return Err(RecordFaultCode::NumberRange);
            }
            Ok(Some(plain(negative, units, fraction)))
        }
        ColumnFormat::Date(form) => {
            let read = form.read(&text).map_err(|_| RecordFaultCode::BadDate)?;
            let date = date(read.days);
            own.insert(index, date);
            Ok(Some(date.to_string().into_bytes()))
        }
        ColumnFormat::Time(form, on) => {
            let nanos = form.read(&text).map_err(|_| RecordFaultCode::BadTime)?.nanos;
            let day = match on {
                None => return Ok(Some(clock(time(nanos)).into_bytes())),
                Some((DateSource::Record(i), _)) => own.get(&usize::from(*i)),
                Some((DateSource::Header(i), _)) => header.get(&usize::from(*i)),
            };
            let day = *day.ok_or(RecordFaultCode::NoDate)?;
            let zone = on.as_ref().map_or(0, |(_, z)| *z);
            instant(layout, on_day(day, nanos)?, zone)
        }
        ColumnFormat::Timestamp(form, zone) => {
            let read = form.read(&text).map_err(|_| RecordFaultCode::BadTime)?;
            let local = on_day(date(read.days), read.nanos)?;
            match read.offset {
                None => instant(layout, local, *zone),
                Some(east) => {
                    let utc = local.checked_sub(jiff::Span::new().seconds(east));
                    let utc = utc.map_err(|_| RecordFaultCode::BadTime)?;
                    Ok(Some(format!("{}T{}Z", utc.date(), clock(utc.time())).into_bytes()))
                }
            }
        }
    }
}

/// Returns the digits with a minus if they have one; `None` if `text` is no such number.
fn signed(text: &str, sign: SignStyle) -> Option<String> {
    let (digits, negative) = overpunch(text, sign);
    let digits = match sign {
        SignStyle::Leading | SignStyle::Trailing => digits.trim_ascii().to_owned(),
        _ => digits,
    };
    let ok = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    ok.then(|| format!("{}{digits}", if negative { "-" } else { "" }))
}

fn overpunch(text: &str, sign: SignStyle) -> (String, bool) {
    let punched = |c: char| match c {
        '{' => ('0', false),
        '}' => ('0', true),
        'A'..='I' => ((c as u8 - b'A' + b'1') as char, false),
        'J'..='R' => ((c as u8 - b'J' + b'1') as char, true),
        c => (c, false),
    };
    let mut chars: Vec<char> = text.chars().collect();
    match sign {
        SignStyle::None => (text.to_owned(), false),
        SignStyle::Leading => match text.strip_prefix(['+', '-']) {
            Some(rest) => (rest.to_owned(), text.starts_with('-')),
            None => (text.to_owned(), false),
        },
        SignStyle::Trailing => match text.strip_suffix(['+', '-']) {
            Some(rest) => (rest.to_owned(), text.ends_with('-')),
            None => (text.to_owned(), false),
        },
        SignStyle::Overpunch | SignStyle::LeadingOverpunch => {
            let at = if sign == SignStyle::Overpunch { chars.len().saturating_sub(1) } else { 0 };
            let Some(c) = chars.get_mut(at) else { return (text.to_owned(), false) };
            let (digit, negative) = punched(*c);
            *c = digit;
            (chars.into_iter().collect(), negative)
        }
    }
}

/// Writes a decimal in canonical form.
fn plain(negative: bool, units: &str, fraction: &str) -> Vec<u8> {
    let units = units.trim_start_matches('0');
    let units = if units.is_empty() { "0" } else { units };
    let fraction = fraction.trim_end_matches('0');
    let sign = if negative && (units != "0" || !fraction.is_empty()) { "-" } else { "" };
    match fraction {
        "" => format!("{sign}{units}").into_bytes(),
        _ => format!("{sign}{units}.{fraction}").into_bytes(),
    }
}

fn date(days: i32) -> Date {
    let epoch = Date::constant(1970, 1, 1);
    epoch.checked_add(jiff::Span::new().days(days)).unwrap_or(epoch)
}

fn time(nanos: i64) -> Time {
    Time::midnight().checked_add(jiff::Span::new().nanoseconds(nanos)).unwrap_or(Time::midnight())
}

/// Converts a time of a day; a leap second is on the next day.
fn on_day(day: Date, nanos: i64) -> Result<DateTime, RecordFaultCode> {
    let midnight = day.to_datetime(Time::midnight());
    midnight.checked_add(jiff::Span::new().nanoseconds(nanos)).map_err(|_| RecordFaultCode::BadTime)
}

fn clock(time: Time) -> String {
    let base = format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second());
    match time.subsec_nanosecond() {
        0 => base,
        n if n % 1_000_000 == 0 => format!("{base}.{:03}", n / 1_000_000),
        n if n % 1_000 == 0 => format!("{base}.{:06}", n / 1_000),
        n => format!("{base}.{n:09}"),
    }
}

fn instant(
    layout: &FixedWidthLayout,
    local: DateTime,
    zone: u16,
) -> Result<Option<Vec<u8>>, RecordFaultCode> {
    let zone = layout.zone_caches.get(usize::from(zone)).ok_or(RecordFaultCode::BadTime)?;
    let ambiguous = zone.time_zone().to_ambiguous_timestamp(local);
    let fault = match ambiguous.offset() {
        jiff::tz::AmbiguousOffset::Gap { .. } => Some(RecordFaultCode::SkippedTime),
        jiff::tz::AmbiguousOffset::Fold { .. } => Some(RecordFaultCode::AmbiguousTime),
        jiff::tz::AmbiguousOffset::Unambiguous { .. } => None,
    };
    let utc = match (zone.ambiguous(), fault) {
        (AmbiguousTimes::Second, _) => ambiguous.later(),
        (AmbiguousTimes::Refuse | AmbiguousTimes::ByOrder, Some(code)) => return Err(code),
        _ => ambiguous.earlier(),
    };
    let utc = utc.map_err(|_| RecordFaultCode::BadTime)?;
    let utc = jiff::tz::Offset::UTC.to_datetime(utc);
    Ok(Some(format!("{}T{}Z", utc.date(), clock(utc.time())).into_bytes()))
}
