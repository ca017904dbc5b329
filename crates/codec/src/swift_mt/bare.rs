//! Bodies without an envelope, as banks write their statements, and what is around them.

use super::frame::{EnvelopeForm, FramedSwiftMessage, PREFACE_BYTES, PREFACE_LINES};
use super::tokens::SwiftTag;
use memchr::{memchr, memmem, memrchr};
use unitape_base::Span;

/// The tag of a line `:tag:…` that starts at `at`: where it ends, at the second colon. Two to sixteen
/// upper-case letters, digits or `_`.
#[inline]
pub(super) fn tag_at(buf: &[u8], at: usize) -> Option<usize> {
    // Nearly all tags are two digits, or these and a letter.
    match buf.get(at..)? {
        [b':', a, b, b':', ..] if is_tag_byte(*a) && is_tag_byte(*b) => Some(at + 3),
        [b':', a, b, c, b':', ..] if is_tag_byte(*a) && is_tag_byte(*b) && is_tag_byte(*c) => Some(at + 4),
        [b':', rest @ ..] => long_tag(rest).map(|len| at + 1 + len),
        _ => None,
    }
}

/// As [`tag_at`], with the tag.
#[inline(always)]
pub(super) fn tag_here(text: &[u8], at: usize) -> Option<(SwiftTag, usize)> {
    if let Some(&[b':', a, b, c, d]) = text.get(at..).and_then(|rest| rest.first_chunk::<5>()) {
        let is = |byte: u8| TAG_BYTES[usize::from(byte)];
        let two = c == b':';
        if is(a) & is(b) & (two | (is(c) & (d == b':'))) {
            return Some((SwiftTag::packed([a, b, c], two), at + 4 - usize::from(two)));
        }
    }
    let colon = tag_at(text, at)?;
    Some((SwiftTag::new(&text[at + 1..colon]), colon))
}

/// The length of a tag of any length that is before a colon.
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

/// Whether a body starts at `at`: a tag of two digits and maybe another one or a letter, or `NS`; `None` if
/// the buffer ends before that is known.
#[inline]
pub(super) fn starts(buf: &[u8], at: usize) -> Option<bool> {
    match buf[at.min(buf.len())..] {
        [] | [b':'] | [b':', b'0'..=b'9' | b'N'] => None,
        [b':', b'0'..=b'9', b'0'..=b'9'] | [b':', b'N', b'S'] => None,
        [b':', b'0'..=b'9', b'0'..=b'9', b':', ..] | [b':', b'N', b'S', b':', ..] => Some(true),
        [b':', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9' | b'A'..=b'Z'] => None,
        [b':', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9' | b'A'..=b'Z', b':', ..] => Some(true),
        _ => Some(false),
    }
}

/// The body whose first field is at `first`, with a preface from `from` on; `None` if the bytes so far do not show
/// where it ends.
pub(super) fn scan(buf: &[u8], from: usize, first: usize, whole: bool) -> Option<FramedSwiftMessage> {
    let body = |end: usize, over: usize| {
        let mut message = FramedSwiftMessage {
            span: Span { start: from, end: over },
            form: EnvelopeForm::Bare,
            preface: Span { start: from, end: first },
            ..FramedSwiftMessage::default()
        };
        message.blocks[3] = Span { start: first, end };
        Some(message)
    };
    let (mut at, mut reference, mut statement) = (first, false, false);
    loop {
        let line = memchr(b'\n', &buf[at.min(buf.len())..]).map(|n| &buf[at..at + n]);
        let line = match line {
            Some(line) => line,
            None if whole => &buf[at..],
            None => return None,
        };
        if let Some(n) = memmem::find(line, b"{1:").filter(|_| !line.starts_with(b"-}")) {
            return body(at + n, at + n);
        }
        match line.first() {
            Some(b':') => match line.get(1..4) {
                Some(b"20:") => {
                    if reference || statement {
                        return body(at, at);
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
                    return body(at, at + 2);
                }
                if let Some(said) = terminator(line) {
                    return body(at, at + said);
                }
            }
            Some(b'$') if is_blank(&line[1..]) && at > first => return body(at, at),
            _ => {}
        }
        at += line.len() + 1;
        if at > buf.len() || (at == buf.len() && whole) {
            return body(buf.len(), buf.len());
        }
    }
}

/// Bytes of the terminator `-` or `-XXX` that is all of `line`; the byte 3 ends a transmission, whatever follows it.
fn terminator(line: &[u8]) -> Option<usize> {
    let said = if line.starts_with(b"-XXX") { 4 } else { 1 };
    let rest = line.strip_prefix(b"-").map(|_| &line[said..])?;
    let rest = memchr(ETX, rest).map_or(rest, |n| &rest[..n]);
    is_blank(rest).then_some(said)
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
pub(super) fn check_preface(buf: &[u8], from: usize, whole: bool) -> PrefaceVerdict {
    let (mut at, mut lines, mut braces) = (from, 0, false);
    loop {
        let line_end = memchr(b'\n', &buf[at..]).map(|n| at + n);
        let line = match line_end {
            Some(end) => &buf[at..end],
            None => &buf[at..],
        };
        // A message may start in the middle of a line, and the rest of one may end there.
        let starts_at = memmem::find(line, b"{1:");
        let ends_at = memmem::find(line, b"-}").map(|n| n + 2);
        if let Some(n) = [starts_at, ends_at].into_iter().flatten().min() {
            return PrefaceVerdict::Garbage(at + n);
        }
        if braces && line_end.is_some() && terminator(line) == Some(1) {
            return PrefaceVerdict::Garbage(at + 1);
        }
        braces |= line.iter().any(|b| matches!(b, b'{' | b'}'));
        let Some(end) = line_end else {
            return if whole { PrefaceVerdict::Garbage(buf.len()) } else { PrefaceVerdict::Need };
        };
        at = end + 1;
        lines += 1;
        if !braces {
            match starts(buf, at) {
                Some(true) if lines <= PREFACE_LINES && at - from <= PREFACE_BYTES => {
                    return PrefaceVerdict::Preface(at);
                }
                Some(true) => return PrefaceVerdict::Garbage(at),
                Some(false) => {}
                None if whole => {}
                None => return PrefaceVerdict::Need,
            }
        }
    }
}

/// The last place where a body seems to start: after a terminator, or at `:20:`.
pub(super) fn last_start(buf: &[u8]) -> Option<usize> {
    let mut end = buf.len();
    let mut reference = None;
    loop {
        let Some(newline) = memrchr(b'\n', &buf[..end]) else { return reference };
        let line = &buf[newline + 1..end];
        if line.starts_with(b":20:") && reference.is_none() {
            reference = Some(newline + 1);
        }
        // Only a whole line decides, and only if something follows it.
        if end < buf.len() && terminator(line).is_some() && end + 1 < buf.len() {
            return Some(end + 1);
        }
        end = newline;
    }
}
