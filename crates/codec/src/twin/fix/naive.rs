//! The slow, obvious twin of framing and fields: the rules of `frame.rs` read aloud, a byte at a
//! time, on an input that is all there. Tests and the fuzzer hold the fast path against it.

use crate::fix::{
    FieldFault, FieldSeparator, FieldToken, FixFault, FixFramer, FixLeniency, FramedFixMessage, NextFixFrame,
};
use unitape_base::Span;

/// Finds the frame at `input[at..]`, the whole input.
#[must_use]
pub fn frame(framer: &FixFramer, input: &[u8], at: usize) -> NextFixFrame {
    let mut from = at;
    while from < input.len() && (input[from] == b'\r' || input[from] == b'\n') {
        from += 1;
    }
    if from >= input.len() {
        return NextFixFrame::End;
    }
    let bad = |end, fault| NextFixFrame::Bad { span: Span { start: from, end }, fault };
    let sep = framer.sep();
    let Some(second) = header_end(input, from, sep) else {
        if input.len() - from <= 16 && is_start_cut_off(&input[from..], sep) {
            return bad(input.len(), FixFault::Truncated);
        }
        let mut end = from;
        let line_end = |at: usize| framer.reads_log() && (input[at] == b'\r' || input[at] == b'\n');
        while end < input.len()
            && end < from + framer.max_message()
            && !starts(framer, input, from, end)
            && !line_end(end)
        {
            end += 1;
        }
        let piece = &input[from..end];
        let part = |text: &[u8]| (0..piece.len()).any(|at| piece[at..].starts_with(text));
        let field = |tag: &[u8]| part(&[sep.bytes(), tag].concat());
        let was_message = part(b"8=FIX") || field(b"8=") || field(b"9=") || field(b"35=") || field(b"10=");
        if framer.reads_log() && !was_message {
            return NextFixFrame::Skipped(Span { start: from, end });
        }
        return bad(end, FixFault::Garbage);
    };
    // The claim of BodyLength.
    let mut pos = second;
    let mut claimed = 0u64;
    let mut fault = None;
    if input[pos..].starts_with(b"9=") {
        pos += 2;
        let mut digits = 0;
        while pos < input.len() && input[pos].is_ascii_digit() && digits < 9 {
            claimed = claimed * 10 + u64::from(input[pos] - b'0');
            pos += 1;
            digits += 1;
        }
        if pos == input.len() || input[pos..] == b"^"[..] && sep == FieldSeparator::CaretA {
            return bad(input.len(), FixFault::Truncated);
        }
        if digits == 0 || !sep_at(input, pos, sep) {
            fault = Some(FixFault::BodyLengthField);
        } else {
            pos += sep_len(sep);
        }
    } else if b"9=".starts_with(&input[pos..]) {
        return bad(input.len(), FixFault::Truncated);
    } else {
        fault = Some(FixFault::BodyLengthField);
    }
    if fault.is_some() {
        return unclaimed(framer, input, from, second, fault, 0);
    }
    let body = pos;
    if claimed as usize + 7 + (body - from) > framer.max_message() {
        let limit = framer.max_message() as u32;
        let fault = FixFault::BodyLengthLimit { claimed: claimed as u32, limit };
        return unclaimed(framer, input, from, body, Some(fault), claimed);
    }
    // Where the claim leads: every separator counts as one.
    let mut left = claimed;
    let mut body_end = body;
    let mut last_was_sep = false;
    while left > 0 && body_end < input.len() {
        last_was_sep = sep_at(input, body_end, sep);
        body_end += if last_was_sep { sep_len(sep) } else { 1 };
        left -= 1;
    }
    let start_inside =
        |end: usize| (from + 1..end).any(|p| p + 5 <= end && starts(framer, &input[..end], from, p));
    let mut leads = left == 0 && last_was_sep;
    // Where a separator is two bytes, a start inside ends the count.
    leads &= sep != FieldSeparator::CaretA || !(from + 1..body_end).any(|p| starts(framer, input, from, p));
    let end = if leads { trailer_end(framer, input, body_end) } else { None };
    let Some((end, digits)) = end else {
        return unclaimed(framer, input, from, body, None, claimed);
    };
    let computed = sum(&input[from..body_end], sep);
    if digits == Some(u16::from(computed)) {
        let message = message(framer, input, Span { start: from, end }, body, body_end, true, true);
        if message.msg_type.start == message.msg_type.end && !framer.accepts(FixLeniency::TYPE) {
            return bad(end, FixFault::MsgType);
        }
        return NextFixFrame::Message(message);
    }
    if start_inside(body_end) {
        return unclaimed(framer, input, from, body, None, claimed);
    }
    if framer.accepts(FixLeniency::CHECKSUM) {
        let span = Span { start: from, end };
        return NextFixFrame::Message(message(framer, input, span, body, body_end, false, true));
    }
    match digits {
        Some(stated) => bad(end, FixFault::Checksum { stated, computed }),
        None => bad(end, FixFault::ChecksumField),
    }
}

/// Adds up the bytes, with every separator counted as byte 1.
fn sum(bytes: &[u8], sep: FieldSeparator) -> u8 {
    let mut sum = 0u32;
    let mut p = 0;
    while p < bytes.len() {
        if sep_at(bytes, p, sep) {
            sum += 1;
            p += sep_len(sep);
        } else {
            sum += u32::from(bytes[p]);
            p += 1;
        }
    }
    (sum % 256) as u8
}

fn accepts_both(framer: &FixFramer) -> bool {
    framer.accepts(FixLeniency::LENGTH | FixLeniency::CHECKSUM)
}

/// Applies rule 6. Without a `fault`, BodyLength claims the wrong number.
fn unclaimed(
    framer: &FixFramer,
    input: &[u8],
    from: usize,
    body: usize,
    fault: Option<FixFault>,
    claimed: u64,
) -> NextFixFrame {
    let sep = framer.sep();
    let limit = from + framer.max_message();
    let bad = |end, fault| NextFixFrame::Bad { span: Span { start: from, end }, fault };
    let lenient_message = |body_end: usize, end: usize| {
        let span = Span { start: from, end };
        NextFixFrame::Message(message(framer, input, span, body.min(body_end), body_end, false, false))
    };
    let open_end = |mut end: usize| {
        if !accepts_both(framer) {
            return bad(end, FixFault::Truncated);
        }
        while end > from && (input[end - 1] == b'\r' || input[end - 1] == b'\n') {
            end -= 1;
        }
        lenient_message(end, end)
    };
    let next = (from + 1..input.len().min(limit)).find(|&p| starts(framer, input, from, p));
    let part = &input[..next.unwrap_or(input.len())];
    for p in from..part.len().min(limit) {
        let after_sep = p >= from + sep_len(sep) && sep_at(part, p - sep_len(sep), sep);
        let line_end = part[p] == b'\r' || part[p] == b'\n';
        if line_end && (framer.reads_log() || accepts_both(framer) && after_sep) {
            return open_end(p);
        }
        if !after_sep || !part[p..].starts_with(b"10=") {
            continue;
        }
        if let Some((end, stated)) = trailer_end(framer, part, p) {
            if accepts_both(framer) {
                return lenient_message(p, end);
            }
            if framer.accepts(FixLeniency::LENGTH) {
                let computed = sum(&input[from..p], sep);
                if stated == Some(u16::from(computed)) {
                    let NextFixFrame::Message(message) = lenient_message(p, end) else { unreachable!() };
                    if message.msg_type.start == message.msg_type.end && !framer.accepts(FixLeniency::TYPE) {
                        return bad(end, FixFault::MsgType);
                    }
                    return NextFixFrame::Message(FramedFixMessage { checksum_ok: true, ..message });
                }
                return match stated {
                    Some(stated) => bad(end, FixFault::Checksum { stated, computed }),
                    None => bad(end, FixFault::ChecksumField),
                };
            }
            let mut found = 0;
            let mut at = body;
            while at < p {
                at += if sep_at(input, at, sep) { sep_len(sep) } else { 1 };
                found += 1;
            }
            let claimed = claimed as u32;
            return bad(end, fault.unwrap_or(FixFault::BodyLength { claimed, actual: found }));
        }
        // A value cut off by the end of the input cannot be distinguished from a long one.
        let value = &part[p + 3..];
        if next.is_none() && value.len() <= 7 {
            break;
        }
    }
    if let Some(next) = next {
        return open_end(next);
    }
    if input.len() <= limit {
        return open_end(input.len());
    }
    bad(limit, FixFault::NoEnd { limit: framer.max_message() as u32 })
}

fn message(
    framer: &FixFramer,
    input: &[u8],
    span: Span,
    body: usize,
    body_end: usize,
    checksum_ok: bool,
    length_ok: bool,
) -> FramedFixMessage {
    let body = Span { start: body.min(body_end), end: body_end };
    let sep = framer.sep();
    let mut msg_type = Span { start: body.start, end: body.start };
    let mut at = body.start;
    let mut first = true;
    while at < body.end && (first || framer.accepts(FixLeniency::TYPE)) {
        let mut end = at;
        while end < body.end && !sep_at(&input[..body.end], end, sep) {
            end += 1;
        }
        let field = &input[at..end];
        let digits = field.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = field[..digits].iter().take(9).fold(0, |n, &d| n * 10 + u64::from(d - b'0'));
        let is_type = match first {
            true => field.starts_with(b"35="),
            false => false,
        };
        // A lenient search reads the tag as a number: 035 is 35.
        let lenient_type = framer.accepts(FixLeniency::TYPE)
            && (1..=9).contains(&digits)
            && number == 35
            && field.get(digits) == Some(&b'=');
        if is_type || lenient_type {
            let start = at + if is_type { 3 } else { digits + 1 };
            msg_type = Span { start, end };
            break;
        }
        at = end + sep_len(sep);
        first = false;
    }
    FramedFixMessage { span, body, msg_type, checksum_ok, length_ok }
}

/// Returns the end of a CheckSum field at `at`, and its value if it is three digits.
fn trailer_end(framer: &FixFramer, input: &[u8], at: usize) -> Option<(usize, Option<u16>)> {
    let value = input[at..].strip_prefix(b"10=")?;
    for len in 0..=7 {
        let pos = at + 3 + len;
        let digits = value.get(..len).filter(|v| len == 3 && v.iter().all(u8::is_ascii_digit));
        let number = digits.map(|v| v.iter().fold(0, |n, &d| n * 10 + u16::from(d - b'0')));
        if sep_at(input, pos, framer.sep()) {
            return Some((pos + sep_len(framer.sep()), number));
        }
        if accepts_both(framer) || framer.reads_log() {
            if pos >= input.len() || framer.sep() == FieldSeparator::CaretA && input[pos..] == b"^"[..] {
                return Some((input.len(), number));
            }
            if input[pos] == b'\r' || input[pos] == b'\n' {
                return Some((pos, number));
            }
        }
        if pos >= input.len() {
            return None;
        }
    }
    None
}

/// Returns the end of `8=FIX…|` at `at`.
fn header_end(input: &[u8], at: usize, sep: FieldSeparator) -> Option<usize> {
    let rest = input[at..].strip_prefix(b"8=FIX")?;
    for len in 0..=11 {
        if sep_at(rest, len, sep) {
            return Some(at + 5 + len + sep_len(sep));
        }
        if !rest.get(len).is_some_and(|&b| b.is_ascii_alphanumeric() || b == b'.') {
            return None;
        }
    }
    None
}

/// Returns whether `rest`, the end of the input, may continue as a message start.
fn is_start_cut_off(rest: &[u8], sep: FieldSeparator) -> bool {
    let mut longer = rest.to_vec();
    if rest.len() < 5 {
        return b"8=FIX".starts_with(rest);
    }
    if sep == FieldSeparator::CaretA && rest.ends_with(b"^") {
        longer.push(b'A');
    } else {
        longer.extend_from_slice(sep.bytes());
    }
    header_end(&longer, 0, sep).is_some()
}

/// Applies rule 2 to a start that is searched for.
fn starts(framer: &FixFramer, input: &[u8], from: usize, at: usize) -> bool {
    let Some(next) = header_end(input, at, framer.sep()) else { return false };
    // A search from `from` on: inside a message it begins one byte later, which no rule sees, as
    // a message begins with `8=`.
    if at == from {
        return true;
    }
    match input[at - 1] {
        b'0'..=b'9' => input[next..].starts_with(b"9="),
        b'=' => {
            let mut first = at - 1;
            while first > from && input[first - 1].is_ascii_digit() && at - first <= 10 {
                first -= 1;
            }
            let digits = &input[first..at - 1];
            let tag = digits.iter().fold(0u64, |n, &d| n * 10 + u64::from(d - b'0'));
            !((1..=9).contains(&digits.len()) && framer.data_tags().is_data(tag as u32))
        }
        _ => true,
    }
}

/// Splits `message` into its fields.
///
/// # Errors
/// Fails at the first field that is not `tag=value`.
pub fn tokens(framer: &FixFramer, message: &[u8]) -> Result<Vec<FieldToken>, FixFault> {
    let sep = framer.sep();
    let accepts_empty = framer.accepts(FixLeniency::EMPTY);
    let accepts_data = framer.accepts(FixLeniency::DATA);
    let mut found: Vec<FieldToken> = Vec::new();
    let mut at = 0;
    while at < message.len() {
        let before = found.last().map_or(0, |token| token.tag);
        let fault = |tag, kind| Err(FixFault::Field { offset: at as u32, tag, kind });
        let mut end = at;
        while end < message.len() && !sep_at(message, end, sep) {
            end += 1;
        }
        if end == at {
            if accepts_empty {
                at += sep_len(sep);
                continue;
            }
            return fault(before, FieldFault::Empty);
        }
        let Some(equals) = (at..end).find(|&p| message[p] == b'=') else {
            return fault(before, FieldFault::NoEquals);
        };
        let digits = &message[at..equals];
        if digits.is_empty()
            || digits.len() > 9
            || digits[0] == b'0'
            || !digits.iter().all(u8::is_ascii_digit)
        {
            return fault(before, FieldFault::Tag);
        }
        let tag = digits.iter().fold(0, |n, &d| n * 10 + u32::from(d - b'0'));
        let value = equals + 1;
        // The field before may say how long this one is.
        if let Some(previous) = found.last()
            && framer.data_tags().data_of(previous.tag) == Some(tag)
        {
            let length = previous.slice(message);
            let length = std::str::from_utf8(length)
                .ok()
                .filter(|text| text.bytes().all(|b| b.is_ascii_digit()) && text.len() <= 9)
                .and_then(|text| text.parse::<usize>().ok());
            let fits = length.map(|length| value + length).filter(|&data_end| {
                data_end <= message.len() && sep_at(message, data_end, sep)
                    || accepts_data && data_end == message.len()
            });
            match fits {
                Some(data_end) => end = data_end,
                None if accepts_data => {}
                None => {
                    let stated = length.map(|length| length as u32);
                    return fault(tag, FieldFault::DataLength { length_tag: previous.tag, stated });
                }
            }
        }
        if end == value && !accepts_empty {
            return fault(tag, FieldFault::NoValue);
        }
        found.push(FieldToken { tag, start: value as u32, end: end as u32 });
        at = end + sep_len(sep);
    }
    Ok(found)
}

fn sep_len(sep: FieldSeparator) -> usize {
    if sep == FieldSeparator::CaretA { 2 } else { 1 }
}

fn sep_at(bytes: &[u8], at: usize, sep: FieldSeparator) -> bool {
    match sep {
        FieldSeparator::Soh => bytes.get(at) == Some(&1),
        FieldSeparator::Pipe => bytes.get(at) == Some(&b'|'),
        FieldSeparator::Semicolon => bytes.get(at) == Some(&b';'),
        FieldSeparator::CaretA => bytes.get(at) == Some(&b'^') && bytes.get(at + 1) == Some(&b'A'),
    }
}
