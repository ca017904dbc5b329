//! The small searches of framing: message starts, trailers, line ends. Each accepts plain bytes and
//! says "need" where the buffer ends before the answer.

use super::data::RawFieldTags;
use super::plain::plain_length;
use super::sep::{FieldSeparator, SeparatorOutcome};
use unitape_base::Span;

/// Bytes after a position that a start or trailer there may take, at most.
pub(crate) const LOOKAHEAD: usize = 32;

/// Letters, digits and dots after `8=FIX`, at most.
const VERSION_LEN_MAX: usize = 11;

/// Bytes of the value of CheckSum (10) that are still read as one, at most.
const CHECKSUM_LEN_MAX: usize = 7;

/// Whether a message starts somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageStartOutcome {
    /// Yes; the second field is at this offset.
    Yes(usize),
    No,
    /// The buffer ends too soon to say.
    Need,
}

/// Checks for `8=FIX`, a version and a separator at `offset`.
#[inline]
pub(crate) fn begin_string(buf: &[u8], offset: usize, sep: FieldSeparator) -> MessageStartOutcome {
    let bytes_after = &buf[offset.min(buf.len())..];
    if !bytes_after.starts_with(b"8=FIX") {
        return if b"8=FIX".starts_with(bytes_after) {
            MessageStartOutcome::Need
        } else {
            MessageStartOutcome::No
        };
    }
    let mut pos = offset + 5;
    while pos - offset < 5 + VERSION_LEN_MAX
        && buf.get(pos).is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'.')
    {
        pos += 1;
    }
    match sep.check_at(buf, pos) {
        SeparatorOutcome::Yes => MessageStartOutcome::Yes(pos + sep.len()),
        SeparatorOutcome::No => MessageStartOutcome::No,
        SeparatorOutcome::Need => MessageStartOutcome::Need,
    }
}

/// Finds every `8=FIX` in `buf[from..]` and decides whether a message starts there (rule 2 of
/// [`frame`](super::frame)). Bytes before `from` do not matter.
pub(crate) fn message_starts<'b>(
    buf: &'b [u8],
    from: usize,
    sep: FieldSeparator,
    data: &'b RawFieldTags,
) -> impl Iterator<Item = (usize, MessageStartOutcome)> + 'b {
    let bytes_after = buf.get(from..).unwrap_or_default();
    memchr::memmem::find_iter(bytes_after, b"8=FIX").map(move |distance| {
        let offset = from + distance;
        (offset, classify_message_start(buf, from, offset, sep, data))
    })
}

/// Finds the last message start in `buf`.
pub(crate) fn last_start(buf: &[u8], sep: FieldSeparator, data: &RawFieldTags) -> Option<usize> {
    memchr::memmem::rfind_iter(buf, b"8=FIX").find(|&offset| {
        matches!(classify_message_start(buf, 0, offset, sep, data), MessageStartOutcome::Yes(_))
    })
}

fn classify_message_start(
    buf: &[u8],
    from: usize,
    offset: usize,
    sep: FieldSeparator,
    data: &RawFieldTags,
) -> MessageStartOutcome {
    let bytes_before = &buf[from..offset];
    let message_start = begin_string(buf, offset, sep);
    match bytes_before.last() {
        Some(b'0'..=b'9') => match message_start {
            MessageStartOutcome::Yes(next) if buf[next..].starts_with(b"9=") => message_start,
            MessageStartOutcome::Yes(next) if b"9=".starts_with(&buf[next..]) => MessageStartOutcome::Need,
            MessageStartOutcome::Yes(_) => MessageStartOutcome::No,
            other => other,
        },
        Some(b'=') => {
            let digits = bytes_before[..bytes_before.len() - 1]
                .iter()
                .rev()
                .take(10)
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            let tag = &bytes_before[bytes_before.len() - 1 - digits..bytes_before.len() - 1];
            match plain_length(tag) {
                Some(tag) if data.is_data(tag as u32) => MessageStartOutcome::No,
                _ => message_start,
            }
        }
        _ => message_start,
    }
}

/// A CheckSum (10) field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChecksumScanOutcome {
    /// It ends at `end`; `value` if it is three digits.
    Ends {
        value: Option<u16>,
        end: usize,
    },
    No,
    /// The buffer ends too soon to say.
    Need,
}

/// Whether a line end ends things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageEndRule {
    /// No: it is a byte like others.
    No,
    /// CheckSum (10), and a message where it is right after a separator.
    AfterSep,
    /// CheckSum (10), and any message without one.
    Any,
}

/// Scans the trailer `10=…|` at `offset`. A line end or the end of the input may end it too.
#[inline]
pub(crate) fn scan_trailer(
    buf: &[u8],
    offset: usize,
    sep: FieldSeparator,
    line_ends: MessageEndRule,
    eof: bool,
) -> ChecksumScanOutcome {
    let bytes_after = &buf[offset.min(buf.len())..];
    // The common case, three digits and a one-byte separator, in one look.
    if let (Some(sep), &[b'1', b'0', b'=', a, b, c, last, ..]) = (sep.byte(), bytes_after)
        && last == sep
        && a.is_ascii_digit()
        && b.is_ascii_digit()
        && c.is_ascii_digit()
    {
        let value = u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0');
        return ChecksumScanOutcome::Ends { value: Some(value), end: offset + 7 };
    }
    if !bytes_after.starts_with(b"10=") {
        return if b"10=".starts_with(bytes_after) {
            ChecksumScanOutcome::Need
        } else {
            ChecksumScanOutcome::No
        };
    }
    let value_at = offset + 3;
    let at_line_end = line_ends != MessageEndRule::No;
    for len in 0..=CHECKSUM_LEN_MAX {
        let pos = value_at + len;
        let value = || match &buf[value_at..pos] {
            digits @ [_, _, _] => plain_length(digits).map(|value| value as u16),
            _ => None,
        };
        match sep.check_at(buf, pos) {
            SeparatorOutcome::Yes => {
                return ChecksumScanOutcome::Ends { value: value(), end: pos + sep.len() };
            }
            SeparatorOutcome::Need if at_line_end && eof => {
                return ChecksumScanOutcome::Ends { value: value(), end: buf.len() };
            }
            SeparatorOutcome::Need => return ChecksumScanOutcome::Need,
            SeparatorOutcome::No if at_line_end && matches!(buf[pos], b'\r' | b'\n') => {
                return ChecksumScanOutcome::Ends { value: value(), end: pos };
            }
            SeparatorOutcome::No => {}
        }
    }
    ChecksumScanOutcome::No
}

/// Where a message of unknown length ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageEndOutcome {
    /// Its CheckSum (10) field starts at `body_end` and ends at `end`.
    Trailer { body_end: usize, end: usize },
    /// A line ends here.
    Line(usize),
    /// Not in these bytes.
    None,
    /// The buffer ends too soon to say.
    Need,
}

/// Finds the first `|10=…|` in `part[from..]`, or the first line end that ends a message. `eof` must be true if no
/// bytes of this message follow `part`.
pub(crate) fn first_end(
    part: &[u8],
    from: usize,
    sep: FieldSeparator,
    line_ends: MessageEndRule,
    eof: bool,
) -> MessageEndOutcome {
    let trailer_found = first_trailer(part, from, sep, line_ends, eof);
    if line_ends == MessageEndRule::No {
        return trailer_found;
    }
    let bytes_before = match trailer_found {
        MessageEndOutcome::Trailer { body_end, .. } => body_end,
        _ => part.len(),
    };
    let lines = memchr::memchr2_iter(b'\r', b'\n', &part[from..bytes_before]).map(|distance| from + distance);
    for line in lines {
        if line_ends == MessageEndRule::Any || part[from..line].ends_with(sep.bytes()) {
            return MessageEndOutcome::Line(line);
        }
    }
    trailer_found
}

fn first_trailer(
    part: &[u8],
    from: usize,
    sep: FieldSeparator,
    line_ends: MessageEndRule,
    eof: bool,
) -> MessageEndOutcome {
    let needle: &[u8] = match sep {
        FieldSeparator::Soh => b"\x0110=",
        FieldSeparator::Pipe => b"|10=",
        FieldSeparator::Semicolon => b";10=",
        FieldSeparator::CaretA => b"^A10=",
    };
    for distance in memchr::memmem::find_iter(&part[from..], needle) {
        let body_end = from + distance + sep.len();
        match scan_trailer(part, body_end, sep, line_ends, eof) {
            ChecksumScanOutcome::Ends { end, .. } => return MessageEndOutcome::Trailer { body_end, end },
            ChecksumScanOutcome::Need => return MessageEndOutcome::Need,
            ChecksumScanOutcome::No => {}
        }
    }
    MessageEndOutcome::None
}

/// Returns whether garbage seems to contain a part of a message.
pub(crate) fn looks_like_message(garbage: &[u8], sep: FieldSeparator) -> bool {
    let field = |separator_offset: usize| {
        let bytes_after = &garbage[separator_offset + sep.len()..];
        [&b"8="[..], b"9=", b"35=", b"10="].iter().any(|tag| bytes_after.starts_with(tag))
    };
    let first_byte = sep.bytes()[0];
    memchr::memmem::find(garbage, b"8=FIX").is_some()
        || memchr::memchr_iter(first_byte, garbage).any(|offset| sep.is_at(garbage, offset) && field(offset))
}

/// Finds the value of the first field `tag` in a body. The span counts from the start of the body.
pub(crate) fn find_field(body: &[u8], tag: u32, sep: FieldSeparator) -> Option<Span> {
    let mut offset = 0;
    while offset < body.len() {
        let value_end = sep.find(body, offset).unwrap_or(body.len());
        let equals = body[offset..value_end].iter().take(10).position(|&byte| byte == b'=');
        if let Some(equals) = equals
            && plain_length(&body[offset..offset + equals]) == Some(tag as usize)
        {
            return Some(Span { start: offset + equals + 1, end: value_end });
        }
        offset = value_end + sep.len();
    }
    None
}

/// Adds up all bytes. It is simple enough that the compiler makes wide adds of it.
pub(crate) fn byte_sum(bytes: &[u8]) -> u64 {
    // 128 bytes of 255 fit in a u16 with room: lanes are added up often enough.
    bytes.chunks(128).map(|chunk| u64::from(chunk.iter().map(|&b| u16::from(b)).sum::<u16>())).sum()
}
