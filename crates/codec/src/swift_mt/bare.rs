//! Bodies without an envelope, as banks write their statements, and what is around them.

use super::frame::{EnvelopeForm, FramedSwiftMessage, PREFACE_BYTES, PREFACE_LINES};
use super::tokens::SwiftTag;
use memchr::{memchr, memmem, memrchr};
use unitape_base::Span;

/// Finds the second colon of a line `:tag:…` that starts at `offset`. A tag must be two to sixteen upper-case
/// letters, digits or `_`.
#[inline]
pub(super) fn tag_at(buf: &[u8], offset: usize) -> Option<usize> {
    // Nearly all tags are two digits, or these and a letter.
    match buf.get(offset..)? {
        [b':', a, b, b':', ..] if is_tag_byte(*a) && is_tag_byte(*b) => Some(offset + 3),
        [b':', a, b, c, b':', ..] if is_tag_byte(*a) && is_tag_byte(*b) && is_tag_byte(*c) => {
            Some(offset + 4)
        }
        [b':', rest @ ..] => long_tag(rest).map(|len| offset + 1 + len),
        _ => None,
    }
}

/// Finds the tag like [`tag_at`], and returns it too.
#[inline(always)]
pub(super) fn parse_tag_at(text: &[u8], offset: usize) -> Option<(SwiftTag, usize)> {
    if let Some(&[b':', a, b, c, d]) = text.get(offset..).and_then(|rest| rest.first_chunk::<5>()) {
        let is_tag_byte = |byte: u8| TAG_BYTES[usize::from(byte)];
        let has_two_bytes = c == b':';
        if is_tag_byte(a) & is_tag_byte(b) & (has_two_bytes | (is_tag_byte(c) & (d == b':'))) {
            return Some((
                SwiftTag::packed([a, b, c], has_two_bytes),
                offset + 4 - usize::from(has_two_bytes),
            ));
        }
    }
    let colon = tag_at(text, offset)?;
    Some((SwiftTag::new(&text[offset + 1..colon]), colon))
}

/// Returns the length of a tag of any length before a colon.
#[cold]
fn long_tag(rest: &[u8]) -> Option<usize> {
    let len = rest.iter().take(TAG_MAX + 1).take_while(|b| is_tag_byte(**b)).count();
    ((2..=TAG_MAX).contains(&len) && rest.get(len) == Some(&b':')).then_some(len)
}

/// The answer of [`is_tag_byte`] for each byte.
static TAG_BYTES: [bool; 256] = {
    let mut are = [false; 256];
    let mut byte = 0;
    while byte < are.len() {
        are[byte] = is_tag_byte(byte as u8);
        byte += 1;
    }
    are
};

#[inline]
const fn is_tag_byte(byte: u8) -> bool {
    byte.is_ascii_digit() || byte.is_ascii_uppercase() || byte == b'_'
}

/// Bytes of a tag, at most.
const TAG_MAX: usize = 16;

/// Returns whether a body starts at `offset`: a tag of `NS`, or of two digits and perhaps another digit or letter.
/// Returns `None` if the buffer ends before that is known.
#[inline]
pub(super) fn starts(buf: &[u8], offset: usize) -> Option<bool> {
    match buf[offset.min(buf.len())..] {
        [] | [b':'] | [b':', b'0'..=b'9' | b'N'] => None,
        [b':', b'0'..=b'9', b'0'..=b'9'] | [b':', b'N', b'S'] => None,
        [b':', b'0'..=b'9', b'0'..=b'9', b':', ..] | [b':', b'N', b'S', b':', ..] => Some(true),
        [b':', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9' | b'A'..=b'Z'] => None,
        [b':', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9' | b'A'..=b'Z', b':', ..] => Some(true),
        _ => Some(false),
    }
}

/// Frames the body whose first field is at `first`, with a preface from `from` on. Returns `None` if the bytes so far
/// do not show where it ends.
pub(super) fn scan(buf: &[u8], from: usize, first: usize, is_final: bool) -> Option<FramedSwiftMessage> {
    let body = |end: usize, span_end: usize| {
        let mut message = FramedSwiftMessage {
            span: Span { start: from, end: span_end },
            form: EnvelopeForm::Bare,
            preface: Span { start: from, end: first },
            ..FramedSwiftMessage::default()
        };
        message.blocks[3] = Span { start: first, end };
        Some(message)
    };
    let (mut offset, mut reference, mut statement) = (first, false, false);
    loop {
        let line = memchr(b'\n', &buf[offset.min(buf.len())..]).map(|n| &buf[offset..offset + n]);
        let line = match line {
            Some(line) => line,
            None if is_final => &buf[offset..],
            None => return None,
        };
        if let Some(n) = memmem::find(line, b"{1:").filter(|_| !line.starts_with(b"-}")) {
            return body(offset + n, offset + n);
        }
        match line.first() {
            Some(b':') => match line.get(1..4) {
                Some(b"20:") => {
                    if reference || statement {
                        return body(offset, offset);
                    }
                    reference = true;
                }
                Some(&[b'6', b'0' | b'1' | b'2' | b'4' | b'5', _] | b"86:" | b"25:" | b"28:" | b"28C") => {
                    statement = true;
                }
                _ => {}
            },
            Some(b'-') => {
                if line.get(1) == Some(&b'}') {
                    return body(offset, offset + 2);
                }
                if let Some(terminator_bytes) = terminator_length(line) {
                    return body(offset, offset + terminator_bytes);
                }
            }
            Some(b'$') if is_blank(&line[1..]) && offset > first => return body(offset, offset),
            _ => {}
        }
        offset += line.len() + 1;
        if offset > buf.len() || (offset == buf.len() && is_final) {
            return body(buf.len(), buf.len());
        }
    }
}

/// Returns the length of the terminator `-` or `-XXX` if it is all of `line`. The byte 3 ends a transmission,
/// whatever follows it.
fn terminator_length(line: &[u8]) -> Option<usize> {
    let length = if line.starts_with(b"-XXX") { 4 } else { 1 };
    let after_terminator = line.strip_prefix(b"-").map(|_| &line[length..])?;
    let after_terminator = memchr(ETX, after_terminator).map_or(after_terminator, |n| &after_terminator[..n]);
    is_blank(after_terminator).then_some(length)
}

/// The control character that ends a transmission.
const ETX: u8 = 3;

fn is_blank(rest: &[u8]) -> bool {
    rest.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r'))
}

/// The kind of bytes that start no message.
pub(super) enum PrefaceVerdict {
    /// A preface; the body starts here.
    Preface(usize),
    /// Garbage up to here.
    Garbage(usize),
    /// The bytes there are do not decide.
    Need,
}

/// Lines from `from` on, where nothing starts, up to where something does.
pub(super) fn check_preface(buf: &[u8], from: usize, is_final: bool) -> PrefaceVerdict {
    let (mut offset, mut lines, mut braces) = (from, 0, false);
    loop {
        let line_end = memchr(b'\n', &buf[offset..]).map(|n| offset + n);
        let line = match line_end {
            Some(end) => &buf[offset..end],
            None => &buf[offset..],
        };
        // A message may start in the middle of a line, and the rest of one may end there.
        let starts_at = memmem::find(line, b"{1:");
        let ends_at = memmem::find(line, b"-}").map(|n| n + 2);
        if let Some(n) = [starts_at, ends_at].into_iter().flatten().min() {
            return PrefaceVerdict::Garbage(offset + n);
        }
        if braces && line_end.is_some() && terminator_length(line) == Some(1) {
            return PrefaceVerdict::Garbage(offset + 1);
        }
        braces |= line.iter().any(|b| matches!(b, b'{' | b'}'));
        let Some(end) = line_end else {
            return if is_final { PrefaceVerdict::Garbage(buf.len()) } else { PrefaceVerdict::Need };
        };
        offset = end + 1;
        lines += 1;
        if !braces {
            match starts(buf, offset) {
                Some(true) if lines <= PREFACE_LINES && offset - from <= PREFACE_BYTES => {
                    return PrefaceVerdict::Preface(offset);
                }
                Some(true) => return PrefaceVerdict::Garbage(offset),
                Some(false) => {}
                None if is_final => {}
                None => return PrefaceVerdict::Need,
            }
        }
    }
}

/// Finds the last offset where a body seems to start: after a terminator, or at `:20:`.
pub(super) fn last_start(buf: &[u8]) -> Option<usize> {
    let mut body_end = buf.len();
    let mut reference = None;
    loop {
        let Some(newline) = memrchr(b'\n', &buf[..body_end]) else { return reference };
        let line = &buf[newline + 1..body_end];
        if line.starts_with(b":20:") && reference.is_none() {
            reference = Some(newline + 1);
        }
        // Only a whole line decides, and only if something follows it.
        if body_end < buf.len() && terminator_length(line).is_some() && body_end + 1 < buf.len() {
            return Some(body_end + 1);
        }
        body_end = newline;
    }
}
