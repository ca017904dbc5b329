//! The slow, obvious twin: the rules read aloud, a byte at a time, on an input that is all there. Values of typed
//! columns are read as for fixed-width records, whose twin is elsewhere.

use crate::csv::layout::TextEncoding;
use crate::csv::{CsvFaultCode, CsvLayout};
use crate::fixed::inside::{ColumnBytes, RecordContext, needs_other_column, read};
use crate::fixed::{self, ColumnValue};
use crate::foreign::{ForeignCheck, ForeignInput};

/// A row at its place in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NaiveRow {
    /// Where it starts.
    pub offset: usize,
    /// Its bytes without the line end.
    pub length: usize,
    /// Its content, or the code of its fault.
    pub outcome: Result<RowContent, &'static str>,
}

/// The kind and the cells of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowContent {
    /// The header and its names.
    Header(Vec<String>),
    /// A row: names and texts of the values that are not empty, of the layout's columns first.
    Row(Vec<(String, Vec<u8>)>),
    /// The trailer and its count.
    Trailer(Option<u64>),
}

/// Decodes the input of a file called `name`.
#[must_use]
pub fn decode(layout: &CsvLayout, name: &str, input: &[u8]) -> Vec<NaiveRow> {
    let mut out = Vec::new();
    let mut header: Option<Result<Vec<String>, ()>> = None;
    if !layout.header {
        header = Some(Ok(layout.row.columns().iter().map(|c| c.name().to_owned()).collect()));
    }
    let day = layout.day.or_else(|| CsvLayout::day_of(name));
    let mut may_be_header = !layout.header;
    let mut at = if input.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let is_foreign = match ForeignInput::check(input, true) {
        ForeignCheck::Is(kind) => {
            let seen = &input[..input.len().min(layout.row_bytes_max)];
            at = seen.iter().position(|b| *b == b'\n').map_or(seen.len(), |at| at + 1);
            out.push(NaiveRow { offset: 0, length: at, outcome: Err(CsvFaultCode::from(kind).as_str()) });
            header = Some(Err(()));
            true
        }
        _ => false,
    };
    let changed;
    let layout = match stated_separator(&input[at..]).filter(|_| !is_foreign) {
        None => layout,
        Some(separator) => {
            let end = line(&input[at..]).1.unwrap_or(input.len() - at);
            if layout.states_separator && separator != layout.separator {
                out.push(NaiveRow { offset: at, length: end, outcome: Err("bad_separator") });
                header = Some(Err(()));
                at += end;
                layout
            } else {
                at += if layout.lines_skipped == 0 { end } else { 0 };
                changed = CsvLayout { separator, ..layout.clone() };
                &changed
            }
        }
    };
    let skip = if matches!(header, Some(Err(()))) { 0 } else { layout.lines_skipped };
    for _ in 0..skip {
        if line(&input[at..]).1.is_none() && has_bare_return(&input[at..]) {
            let length = input.len() - at;
            return vec![NaiveRow { offset: at, length, outcome: Err("bare_return") }];
        }
        at += line(&input[at..]).1.unwrap_or(input.len() - at);
    }
    if layout.finds_header && header.is_none() {
        let (mut next, mut first) = (at, None);
        let mut found = None;
        let mut lines = 0;
        while next < input.len() {
            if matches!(input[next], b'\n' | b'\r') {
                next += 1;
                continue;
            }
            first.get_or_insert(next);
            lines += 1;
            if row(layout, &input[next..]).is_ok_and(|(values, length, _)| {
                length <= layout.row_bytes_max && values.len() <= 4096 && {
                    let names = text_names(layout, &values);
                    layout.row.columns().iter().all(|c| names.iter().any(|n| n == c.source()))
                }
            }) {
                found = Some(next);
                break;
            }
            next += line(&input[next..]).1.unwrap_or(input.len() - next);
        }
        match found {
            Some(start) => at = start,
            None if lines == 0 => return out,
            None => {
                let end = line(&input[at..]).1.unwrap_or(input.len() - at);
                let length = input[at..at + end].trim_ascii_end().len();
                let is_bare = has_bare_return(&input[at..at + length]);
                let code = if is_bare { "bare_return" } else { "header_not_found" };
                out.push(NaiveRow { offset: at, length, outcome: Err(code) });
                header = Some(Err(()));
                at += end;
            }
        }
    }
    loop {
        while at < input.len() && (input[at] == b'\n' || input[at] == b'\r') {
            at += 1;
        }
        if at == input.len() {
            return out;
        }
        let is_end = |b: &u8| matches!(b, 0 | 0x1a | b'\r' | b'\n');
        if at > 0
            && matches!(input[at], 0 | 0x1a)
            && input.len() - at <= 4096
            && input[at..].iter().all(is_end)
        {
            return out;
        }
        let (line, line_end) = line(&input[at..]);
        let most = layout.row_bytes_max;
        let far = line_end.is_none_or(|end| end > most + 2);
        if Some(input[at]) == layout.comment {
            if far && input.len() - at >= most + 2 {
                out.push(NaiveRow { offset: at, length: most, outcome: Err("long_row") });
                at += most;
            } else if line_end.is_none() && has_bare_return(&input[at..]) {
                out.push(NaiveRow { offset: at, length: input.len() - at, outcome: Err("bare_return") });
                at = input.len();
            } else {
                at += line_end.unwrap_or(line);
            }
            continue;
        }
        // The bad bytes are a line, or a piece of a long one.
        let (bad_length, bad_end) = match line_end.filter(|_| !far) {
            Some(end) => (line, end),
            None if input.len() - at >= most + 2 => (most, most),
            None => (input.len() - at, input.len() - at),
        };
        let seen = &input[at..input.len().min(at + most + 2)];
        let is_bare_piece = !seen.contains(&b'\n') && has_bare_return(seen);
        let too_long = if is_bare_piece { "bare_return" } else { "long_row" };
        let parsed = row(layout, &input[at..]);
        if let Ok((values, length, _)) = &parsed
            && may_be_header
            && *length <= most
            && matches!(header, Some(Ok(_)))
        {
            let names = text_names(layout, values);
            let columns = layout.row.columns();
            if names.iter().all(|name| columns.iter().any(|c| c.source() == name)) {
                header = None;
            }
        }
        may_be_header = false;
        let (length, end, what) = match parsed {
            Err(code) => {
                header.get_or_insert(Err(()));
                (bad_length, bad_end, Err(if code == "long_row" { too_long } else { code }))
            }
            Ok((_, length, _)) if length > most => {
                header.get_or_insert(Err(()));
                (bad_length, bad_end, Err(too_long))
            }
            Ok((values, length, end)) => {
                let raw = &input[at..at + length];
                let what = match layout.encoding {
                    TextEncoding::Utf8 => whole(layout, &values, raw, &mut header, day),
                    TextEncoding::Declared(charset) => {
                        let utf8 = |value: &Vec<u8>| {
                            let mut text = String::new();
                            match charset.decode(value, &mut text) {
                                Ok(()) => text.into_bytes(),
                                Err(_) => vec![0xff],
                            }
                        };
                        let values: Vec<Vec<u8>> = values.iter().map(utf8).collect();
                        let all = values.concat();
                        whole(layout, &values, &all, &mut header, day)
                    }
                };
                (length, end, what)
            }
        };
        out.push(NaiveRow { offset: at, length, outcome: what });
        at += end;
    }
}

/// Returns the separator that the first line states: `sep=` and one character that is no letter or digit.
fn stated_separator(input: &[u8]) -> Option<u8> {
    let (length, _) = line(input);
    let text = String::from_utf8_lossy(&input[..length]).to_lowercase();
    let text = match text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
        Some(inner) => inner,
        None => &text,
    };
    let rest = text.strip_prefix("sep=")?.as_bytes();
    let byte = *rest.first().filter(|_| rest.len() == 1)?;
    (byte.is_ascii() && !byte.is_ascii_alphanumeric() && byte != b'"').then_some(byte)
}

/// Returns the values of a row as names; equal names get numbers.
fn text_names(layout: &CsvLayout, values: &[Vec<u8>]) -> Vec<String> {
    let utf8 = |value: &Vec<u8>| match layout.encoding {
        TextEncoding::Utf8 => String::from_utf8_lossy(value).trim().to_owned(),
        TextEncoding::Declared(charset) => {
            let mut text = String::new();
            _ = charset.decode(value, &mut text);
            text.trim().to_owned()
        }
    };
    let names: Vec<String> = values.iter().map(utf8).collect();
    numbered(&names)
}

/// Numbers equal names: the second is `name#2`.
fn numbered(names: &[String]) -> Vec<String> {
    let number = |i: usize| names[..i].iter().filter(|n| **n == names[i]).count();
    let of = |i: usize| match number(i) {
        n if n > 0 && !names[i].is_empty() => format!("{}#{}", names[i], n + 1),
        _ => names[i].clone(),
    };
    (0..names.len()).map(of).collect()
}

/// Returns the length of a line, and the offset after its line end, if it has one.
fn line(input: &[u8]) -> (usize, Option<usize>) {
    match input.iter().position(|b| *b == b'\n') {
        Some(at) if at > 0 && input[at - 1] == b'\r' => (at - 1, Some(at + 1)),
        Some(at) => (at, Some(at + 1)),
        None => (input.len(), None),
    }
}

/// Returns whether any byte other than a carriage return follows a carriage return.
fn has_bare_return(line: &[u8]) -> bool {
    line.windows(2).any(|pair| pair[0] == b'\r' && pair[1] != b'\r')
}

/// The values of a row, its length and its end with the line end.
type Parsed = (Vec<Vec<u8>>, usize, usize);

fn row(layout: &CsvLayout, input: &[u8]) -> Result<Parsed, &'static str> {
    let most = layout.row_bytes_max;
    let seen = &input[..input.len().min(most + 2)];
    let whole = input.len() < most + 2;
    let (mut values, mut at) = (Vec::new(), 0);
    loop {
        let mut value = Vec::new();
        if layout.quote.is_some() && seen.get(at).copied() == layout.quote {
            at += 1;
            loop {
                let quote = |at: usize| seen.get(at).copied() == layout.quote;
                if at >= seen.len() {
                    return Err("unclosed_quote");
                }
                if !quote(at) {
                    value.push(seen[at]);
                    at += 1;
                } else if quote(at + 1) {
                    value.push(seen[at]);
                    at += 2;
                } else if at + 1 == seen.len() && !whole {
                    return Err("unclosed_quote");
                } else {
                    at += 1;
                    break;
                }
            }
            values.push(value);
            match &seen[at..] {
                [b, ..] if *b == layout.separator => at += 1,
                [b'\n', ..] => return Ok((values, at, at + 1)),
                [b'\r', b'\n', ..] => return Ok((values, at, at + 2)),
                [b'\r'] if whole => return Ok((values, at, at + 1)),
                [] if whole => return Ok((values, at, at)),
                [] | [b'\r'] => return Err("long_row"),
                [b'\r', ..] => return Err("bare_return"),
                _ => return Err("bad_quote"),
            }
            continue;
        }
        loop {
            match seen.get(at) {
                Some(b) if *b == layout.separator || Some(*b) == layout.quote => {
                    if value.contains(&b'\r') {
                        return Err("bare_return");
                    }
                    if *b != layout.separator {
                        return Err("bad_quote");
                    }
                    at += 1;
                    break;
                }
                Some(b'\n') | None if has_bare_return(&value) => return Err("bare_return"),
                Some(b'\n') => {
                    let cut = value.last() == Some(&b'\r');
                    value.truncate(value.len() - usize::from(cut));
                    values.push(value);
                    return Ok((values, at - usize::from(cut), at + 1));
                }
                Some(b) => value.push(*b),
                None if !whole => return Err("long_row"),
                None => {
                    let cut = value.last() == Some(&b'\r');
                    value.truncate(value.len() - usize::from(cut));
                    values.push(value);
                    return Ok((values, at - usize::from(cut), at));
                }
            }
            at += 1;
        }
        values.push(value);
    }
}

/// Finds a column by its name; `name#1` is the first of several.
fn position(names: &[String], name: &str) -> Option<usize> {
    let first = name.strip_suffix("#1");
    let exact = names.iter().position(|n| n == name);
    exact.or_else(|| names.iter().position(|n| Some(n.as_str()) == first))
}

fn whole(
    layout: &CsvLayout,
    values: &[Vec<u8>],
    raw: &[u8],
    header: &mut Option<Result<Vec<String>, ()>>,
    day: Option<i32>,
) -> Result<RowContent, &'static str> {
    if values.len() > 4096 {
        header.get_or_insert(Err(()));
        return Err("ragged_row");
    }
    let columns = layout.row.columns();
    let Some(known) = header else {
        let names: Result<Vec<String>, _> = values.iter().map(|v| String::from_utf8(v.clone())).collect();
        let Ok(names) = names else {
            *header = Some(Err(()));
            return Err("not_utf8");
        };
        let names: Vec<String> = names.iter().map(|n| n.trim().to_owned()).collect();
        let is_wanted = |n: &String| columns.iter().any(|c| c.source() == n);
        let is_wanted_by_number = |n: &String| {
            columns.iter().any(|c| {
                let rest = c.source().strip_prefix(n.as_str()).and_then(|r| r.strip_prefix('#'));
                rest.is_some_and(|r| !r.is_empty() && r.bytes().all(|b| b.is_ascii_digit()))
            })
        };
        let twice = |n: &String| {
            let is_there_twice = !n.is_empty() && names.iter().filter(|m| *m == n).count() > 1;
            is_there_twice && is_wanted(n) && !is_wanted_by_number(n)
        };
        let refused = names.iter().any(twice);
        let names = numbered(&names);
        let collides = names.iter().any(|n| !n.is_empty() && names.iter().filter(|m| *m == n).count() > 1);
        let lacks =
            columns.iter().any(|c| (c.required || c.is_expected) && position(&names, c.source()).is_none());
        let is_unmet = layout.header && !layout.column_needs.unmet(&names).is_empty();
        if refused || collides || lacks || is_unmet {
            *header = Some(Err(()));
            return Err("bad_header");
        }
        *header = Some(Ok(names.clone()));
        return Ok(RowContent::Header(names));
    };
    if let Some(trailer) = layout.trailer.as_ref().filter(|t| t.first_value == values[0]) {
        let Some(count) = trailer.count else { return Ok(RowContent::Trailer(None)) };
        let text = values.get(count).and_then(|v| String::from_utf8(v.clone()).ok()).unwrap_or_default();
        let text = text.trim();
        return match text.parse() {
            Ok(n) if !text.starts_with('+') => Ok(RowContent::Trailer(Some(n))),
            _ => Err("bad_trailer"),
        };
    }
    let Ok(names) = known else { return Err("no_header") };
    if values.len() > names.len() || values.len() < names.len() && !layout.pad {
        return Err("ragged_row");
    }
    if std::str::from_utf8(raw).is_err() {
        return Err("not_utf8");
    }
    let mut zones = layout.zone_caches.clone();
    let header = [day.map_or(ColumnValue::None, ColumnValue::Date)];
    let mut typed = vec![ColumnValue::None; columns.len()];
    for late in [false, true] {
        for (i, column) in columns.iter().enumerate().filter(|(_, c)| needs_other_column(c) == late) {
            if let Some(text) = position(names, column.source()).and_then(|i| values.get(i)) {
                let mut around = RecordContext { header: &header, zone_caches: &mut zones };
                let whole = ColumnBytes { bytes: text, record_offset: 0 };
                typed[i] =
                    read(column, whole, &typed, &mut around).map_err(fixed::RecordFaultCode::as_str)?;
            }
            if typed[i] == ColumnValue::None && column.required && column.is_output() {
                return Err("missing");
            }
        }
    }
    let mut out = Vec::new();
    for (column, value) in columns.iter().zip(typed).filter(|(c, v)| *v != ColumnValue::None && c.is_output())
    {
        let at = position(names, column.source()).unwrap_or(0);
        let mut text = Vec::new();
        value.write(&values[at], column.collapses_blanks(), &mut text);
        out.push((column.name().to_owned(), text));
    }
    for (name, value) in names.iter().zip(values) {
        let is_of_layout =
            |c: &crate::fixed::ColumnLayout| position(std::slice::from_ref(name), c.source()).is_some();
        if !value.is_empty() && !columns.iter().any(is_of_layout) {
            out.push((name.clone(), value.clone()));
        }
    }
    Ok(RowContent::Row(out))
}
