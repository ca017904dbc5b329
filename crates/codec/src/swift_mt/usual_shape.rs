//! One pass over a message of the usual shape: blocks 1, 2 and maybe 3, a text of fields, trailers. It
//! finds line feeds and braces 64 bytes at once; blocks and fields are then read off these places.
//!
//! A message of another shape is left to [`SwiftFramer`](super::SwiftFramer) and
//! [`SwiftFieldTokenizer::read`](super::SwiftFieldTokenizer::read). They say the same of messages of this shape: the tests check it.

use super::bare::parse_tag_at;
use super::blocks::{BlockEndOutcome, BlockStartOutcome, block_start, trailer};
use super::frame::{EnvelopeForm, FramedSwiftMessage};
use super::simd::{DelimiterOffsets, SwiftKernel};
use super::tokens::{SwiftField, SwiftTag};
use unitape_base::Span;

/// Bytes up to the end of the text, at most: messages of the network have 10,000.
const QUICK_MAX: usize = 12 << 10;

/// Reads the message that starts at `view[from..]` and puts its fields in `tokens`. Returns `None` if it has another
/// shape. `is_final` must be true if the input ends where `view` ends.
#[inline]
pub(super) fn message(
    kernel: SwiftKernel,
    view: &[u8],
    from: usize,
    is_final: bool,
    places: &mut DelimiterOffsets,
    tokens: &mut Vec<SwiftField>,
) -> Option<FramedSwiftMessage> {
    let view_left = &view[from..view.len().min(from + QUICK_MAX)];
    if !view_left.starts_with(b"{1:") || !kernel.index(view_left, places) {
        return None;
    }
    let (&stop, places) = places.as_slice().split_last()?;
    let mut places = places.iter().map(|offset| *offset as usize);
    let mut message = FramedSwiftMessage { form: EnvelopeForm::Envelope, ..FramedSwiftMessage::default() };
    let mut offset = 0;
    let text_start = loop {
        while matches!(view_left.get(offset), Some(b'\r' | b'\n')) {
            offset += 1;
        }
        let id = match view_left.get(offset..)? {
            [b'{', id @ b'1'..=b'4', b':', ..] => *id,
            _ => return None,
        };
        // Line feeds between blocks, then the brace itself.
        while places.next()? != offset {}
        if id == b'4' {
            break offset + 3;
        }
        let block = &mut message.blocks[usize::from(id - b'1')];
        if block.start > 0 || (id == b'1') != (offset == 0) {
            return None;
        }
        let text_length = block_end(view_left, &mut places)?;
        *block = Span { start: from + offset + 3, end: from + text_length };
        offset = text_length + 1;
    };
    let stop = stop as usize;
    // The text ends before its `-}`.
    let text = view_left.get(text_start..stop - 1)?;
    fields(text, text_start, places, tokens)?;
    message.blocks[3] = Span { start: from + text_start, end: from + stop - 1 };
    let mut message_end = from + stop + 1;
    loop {
        let id = match block_start(view, message_end) {
            BlockStartOutcome::Block(id @ (b'5' | b'S')) => id,
            BlockStartOutcome::Cut if !is_final => return None,
            _ => break,
        };
        let block = &mut message.blocks[if id == b'S' { 5 } else { 4 }];
        if block.start > 0 {
            break;
        }
        match trailer(view, message_end + 3) {
            BlockEndOutcome::Ends { end, after } => {
                *block = Span { start: message_end + 3, end };
                message_end = after;
            }
            BlockEndOutcome::Need if !is_final => return None,
            _ => break,
        }
    }
    message.span = Span { start: from, end: message_end };
    Some(message)
}

/// Finds where a block before the text ends; its sub-blocks may have braces of their own.
#[inline]
fn block_end(rest: &[u8], places: &mut impl Iterator<Item = usize>) -> Option<usize> {
    let mut in_value = false;
    loop {
        let offset = places.next()?;
        match rest[offset] {
            b'}' if !in_value => return Some(offset),
            b'}' => in_value = false,
            b'{' if !in_value && matches!(block_start(rest, offset), BlockStartOutcome::Other) => {
                in_value = true
            }
            b'{' => return None,
            _ => {}
        }
    }
}

/// Reads the fields of `text`, which starts at `start`, off the places of its line feeds.
#[inline]
fn fields(
    text: &[u8],
    start: usize,
    places: impl Iterator<Item = usize>,
    tokens: &mut Vec<SwiftField>,
) -> Option<()> {
    tokens.clear();
    let mut tag_start = text.iter().take_while(|b| matches!(b, b'\r' | b'\n' | b' ' | b'\t')).count();
    let (mut tag, colon) = parse_tag_at(text, tag_start)?;
    let mut value = colon + 1;
    // Where the first line of the value ends, once a line feed of it was seen.
    let mut line = usize::MAX;
    for offset in places {
        let feed = offset - start;
        if text[feed] != b'\n' {
            if text[feed] == b'{' {
                return None;
            }
            continue;
        }
        if feed < value {
            continue;
        }
        let next_line = feed + 1;
        // Behind the last byte of this line.
        let value_end = feed - usize::from(feed > value && text[feed - 1] == b'\r');
        line = line.min(value_end);
        if text.get(next_line) == Some(&b':')
            && let Some((next_tag, colon)) = parse_tag_at(text, next_line)
        {
            tokens.push(token(text, tag, tag_start, ValueExtent { start: value, line, end: value_end }));
            (tag_start, tag, value, line) = (next_line, next_tag, colon + 1, usize::MAX);
        }
    }
    tokens.push(token(text, tag, tag_start, ValueExtent { start: value, line, end: text.len() }));
    Some(())
}

/// The extent of a field's value, line ends after it still included.
#[derive(Clone, Copy)]
pub(super) struct ValueExtent {
    pub(super) start: usize,
    /// One past the first line; `end` or more where there is no other line.
    pub(super) line: usize,
    pub(super) end: usize,
}

/// Makes a field whose tag starts at `tag_start`; strips the line ends at the end of its value.
#[inline(always)]
pub(super) fn token(text: &[u8], tag: SwiftTag, tag_start: usize, value: ValueExtent) -> SwiftField {
    let ValueExtent { start, line, mut end } = value;
    while end > start && matches!(text[end - 1], b'\r' | b'\n') {
        end -= 1;
    }
    SwiftField {
        tag,
        name: tag_start as u32 + 1,
        start: start as u32,
        line: line.min(end) as u32,
        end: end as u32,
    }
}
