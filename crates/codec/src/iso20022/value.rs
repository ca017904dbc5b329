//! Values: where an element's text stands, what it says, and times and amounts as plain integers.
//!
//! | XML | here |
//! |---|---|
//! | text with references, CDATA, comments | [`Value::text`]: the characters alone |
//! | `2018-04-27`, `2018-04-27+02:00` | [`time`]: its midnight |
//! | `2009-10-30T12:01:45.123+02:00` | [`time`]: the moment in UTC, to the nanosecond; without an offset it is taken as UTC |
//! | `+0010.50`, `.5`, `5.` | [`decimal`]: the digits that count |

use super::reference;
use super::scan::is_white;
use memchr::memmem;

/// Where the text of an element, or an attribute's value, stands, and what has to be done to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Value {
    /// Offset of its first byte.
    pub start: u32,
    /// Offset behind its last byte.
    pub end: u32,
    /// How it is written.
    pub form: Form,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// As it is.
    #[default]
    Plain,
    /// With references (`&amp;`).
    References,
    /// With comments or CDATA inside, and maybe references.
    Marked,
    /// Of an attribute, with references, tabs or line ends: normalised as XML 1.0, section 3.3.3 says.
    Attribute,
}

impl Value {
    /// The bytes in which it stands.
    #[inline]
    #[must_use]
    pub fn raw<'b>(&self, buf: &'b [u8]) -> &'b [u8] {
        buf.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Whether there is nothing at all.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// The text: references replaced, CDATA unpacked, comments left out, line ends as `\n`. White space around it
    /// is not part of it, but for what stands in CDATA.
    #[inline]
    #[must_use]
    pub fn text<'v>(&self, buf: &'v [u8], scratch: &'v mut Vec<u8>) -> &'v [u8] {
        let raw = self.raw(buf);
        if self.form == Form::Plain && !raw.contains(&b'\r') {
            return raw;
        }
        scratch.clear();
        match self.form {
            Form::Attribute => attribute(raw, scratch),
            form => cook(raw, form, scratch),
        }
        scratch
    }
}

#[cold]
fn cook(mut raw: &[u8], form: Form, out: &mut Vec<u8>) {
    // White space up to here is not to be cut off again.
    let mut kept = 0;
    while !raw.is_empty() {
        let marked = form == Form::Marked && raw[0] == b'<';
        if !marked {
            let n = match form {
                Form::Marked => memchr::memchr(b'<', raw).unwrap_or(raw.len()),
                Form::Plain | Form::References | Form::Attribute => raw.len(),
            };
            let (text, rest) = raw.split_at(n);
            let from = out.len();
            plain(text, out);
            if kept == 0 {
                let white = out[from..].iter().take_while(|b| is_white(**b)).count();
                if from == 0 {
                    out.drain(..white);
                }
            }
            raw = rest;
        } else if let Some(rest) = raw.strip_prefix(b"<![CDATA[") {
            let n = memmem::find(rest, b"]]>").unwrap_or(rest.len());
            line_ends(&rest[..n], out);
            kept = out.len();
            raw = rest.get(n + 3..).unwrap_or_default();
        } else {
            let end: &[u8] = if raw.starts_with(b"<!--") { b"-->" } else { b"?>" };
            let n = memmem::find(&raw[2..], end).map_or(raw.len(), |n| n + 2 + end.len());
            raw = raw.get(n..).unwrap_or_default();
        }
    }
    while out.len() > kept && out.last().is_some_and(|b| is_white(*b)) {
        out.pop();
    }
}

/// XML 1.0, 3.3.3, for attributes of type CDATA: each tab and line end is a blank, a reference is its character.
#[cold]
fn attribute(raw: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        at += 1;
        match byte {
            // Section 2.11: the two bytes are one line end.
            b'\r' if raw.get(at) == Some(&b'\n') => {}
            b'\t' | b'\n' | b'\r' => out.push(b' '),
            b'&' => match reference::read(raw, at - 1) {
                reference::Read::Is(c, end) => {
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    at = end;
                }
                // What is no reference was refused before.
                _ => out.push(byte),
            },
            _ => out.push(byte),
        }
    }
}

fn plain(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(n) = memchr::memchr(b'&', rest) {
        line_ends(&rest[..n], out);
        match reference::read(rest, n) {
            reference::Read::Is(c, end) => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[end..];
            }
            // What is no reference was refused before.
            _ => {
                out.push(b'&');
                rest = &rest[n + 1..];
            }
        }
    }
    line_ends(rest, out);
}

fn line_ends(text: &[u8], out: &mut Vec<u8>) {
    for (n, byte) in text.iter().enumerate() {
        match byte {
            b'\r' if text.get(n + 1) == Some(&b'\n') => {}
            b'\r' => out.push(b'\n'),
            _ => out.push(*byte),
        }
    }
}

/// A day or a moment in nanoseconds since 1970 in UTC. `None` for anything else, for years before 1900 and after
/// 2261, and where digits behind the ninth place of a second are not 0. Second 60 is the first second of the next minute; a
/// moment without an offset is UTC.
#[must_use]
pub fn time(text: &[u8]) -> Option<i64> {
    let (day, rest) = text.split_at_checked(10)?;
    let &[a, b, c, d, b'-', m, n, b'-', e, f] = day else { return None };
    let year = u16::from(pair(a, b)?) * 100 + u16::from(pair(c, d)?);
    let day = crate::swift_mt::value::Day::new(year, pair(m, n)?, pair(e, f)?)?.nanos();
    let Some(clock) = rest.strip_prefix(b"T") else {
        return day.checked_sub(offset(rest)?);
    };
    let (hms, mut rest) = clock.split_at_checked(8)?;
    let &[a, b, b':', c, d, b':', e, f] = hms else { return None };
    let (hours, minutes, seconds) = (pair(a, b)?, pair(c, d)?, pair(e, f)?);
    let mut fraction = 0;
    if let Some(digits) = rest.strip_prefix(b".") {
        let count = digits.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, behind) = digits.split_at(count);
        if count == 0 || digits.iter().skip(9).any(|b| *b != b'0') {
            return None;
        }
        fraction = (0..9).fold(0, |n, i| n * 10 + i64::from(digits.get(i).map_or(0, |b| b - b'0')));
        rest = behind;
    }
    // The end of a day may be written as its 24th hour.
    let end_of_day = hours == 24 && minutes == 0 && seconds == 0 && fraction == 0;
    if !end_of_day && hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let clock = (i64::from(hours) * 60 + i64::from(minutes)) * 60 + i64::from(seconds);
    day.checked_add(clock * NANOS + fraction)?.checked_sub(offset(rest)?)
}

/// `Z`, `+02:00` or nothing, in nanoseconds east of UTC.
fn offset(text: &[u8]) -> Option<i64> {
    let &[sign @ (b'+' | b'-'), a, b, b':', c, d] = text else {
        return matches!(text, b"" | b"Z").then_some(0);
    };
    let (hours, minutes) = (pair(a, b)?, pair(c, d)?);
    if hours > 14 || minutes > 59 || hours == 14 && minutes > 0 {
        return None;
    }
    let east = (i64::from(hours) * 60 + i64::from(minutes)) * 60 * NANOS;
    Some(if sign == b'-' { -east } else { east })
}

const NANOS: i64 = 1_000_000_000;

#[inline]
fn pair(tens: u8, ones: u8) -> Option<u8> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then(|| tens * 10 + ones)
}

/// A decimal number without its `+`, which XML allows and our numbers do not have.
#[inline]
#[must_use]
pub fn decimal(text: &[u8]) -> &[u8] {
    match text {
        [b'+', rest @ ..] if rest.first().is_some_and(|b| b.is_ascii_digit() || *b == b'.') => rest,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(form: Form, raw: &str) -> String {
        let value = Value { start: 0, end: raw.len() as u32, form };
        let mut scratch = Vec::new();
        String::from_utf8(value.text(raw.as_bytes(), &mut scratch).to_vec()).expect("UTF-8")
    }

    // A payload that was cut into CDATA sections must fit together again: their blanks are not ours to trim.
    #[test]
    fn texts_are_unpacked() {
        for (form, raw, want) in [
            (Form::Plain, "AB\r\nC\rD", "AB\nC\nD"),
            (Form::References, "a &amp;&#x41;&#246; &lt;b&gt; &apos;&quot;", "a &A\u{f6} <b> '\""),
            (Form::Marked, "\n  <![CDATA[ <x> &amp; ]]>\n", " <x> &amp; "),
            (Form::Marked, "one<!-- no < -->two <?pi > ?> ", "onetwo"),
            (Form::Marked, " <!-- --> a<![CDATA[]]> ", "a"),
        ] {
            assert_eq!(text(form, raw), want, "{raw:?}");
        }
    }

    #[test]
    fn times_are_moments_in_utc() {
        let day = 86_400 * NANOS;
        for (text, want) in [
            ("1970-01-02", Some(day)),
            ("1970-01-02+02:00", Some(day - 2 * 3600 * NANOS)),
            ("1970-01-02Z", Some(day)),
            ("1970-01-01T24:00:00", Some(day)),
            ("1970-01-01T12:01:45+02:00", Some((10 * 3600 + 105) * NANOS)),
            ("1970-01-01T00:00:00.5-00:30", Some(1800 * NANOS + NANOS / 2)),
            ("1970-01-01T00:00:00.1234567890", Some(123_456_789)),
            ("1970-01-01T00:00:00.1234567891", None),
            ("1970-01-01T00:00:00.", None),
            ("1970-01-01T24:00:01", None),
            ("1970-01-01T23:59:60", Some(day)),
            ("1970-01-01T23:59:60.5Z", Some(day + NANOS / 2)),
            ("1970-01-01T23:59:61", None),
            ("1970-01-01T00:60:00", None),
            ("1970-13-01", None),
            ("1970-1-1", None),
            ("1970-01-01T00:00", None),
            ("1970-01-01T00:00:00+15:00", None),
            ("1970-01-01 00:00:00", None),
            ("", None),
        ] {
            assert_eq!(time(text.as_bytes()), want, "{text}");
        }
    }
}
