//! The blocks of a message with an envelope: `{1:…}{2:…}{3:{…}}{4:…-}{5:{…}}{S:{…}}`.

use super::NEST_MAX;
use super::fault::SwiftFault;
use super::frame::{EnvelopeForm, FramedSwiftMessage};
use memchr::{memchr2, memmem};
use unitape_base::Span;

/// The result of reading a message with an envelope.
pub(super) enum EnvelopeScanOutcome {
    Done(FramedSwiftMessage),
    /// The next message starts here before this one has ended.
    Next(usize),
    /// The blocks are wrong at `at`.
    Bad {
        fault: SwiftFault,
        offset: usize,
    },
    /// The bytes there are do not decide.
    Need,
}

/// Reads the blocks from `from` on, where `{1:` is. `is_final`: the input ends where `buf` ends.
#[inline]
pub(super) fn scan(buf: &[u8], from: usize, is_final: bool) -> EnvelopeScanOutcome {
    let mut message = FramedSwiftMessage::default();
    // Where the message is over unless more of it follows; 0 until the text is there.
    let mut message_end = 0;
    let mut offset = from;
    loop {
        while message_end == 0 && matches!(buf.get(offset), Some(b'\r' | b'\n')) {
            offset += 1;
        }
        let id = match block_start(buf, offset) {
            BlockStartOutcome::Block(id) => id,
            BlockStartOutcome::Cut if !is_final => return EnvelopeScanOutcome::Need,
            BlockStartOutcome::Cut | BlockStartOutcome::Other if message_end > 0 => break,
            BlockStartOutcome::Cut => return EnvelopeScanOutcome::Need,
            BlockStartOutcome::Other => {
                return EnvelopeScanOutcome::Bad {
                    fault: SwiftFault::NoBlock { offset: (offset - from) as u32 },
                    offset,
                };
            }
        };
        let index = match id {
            b'S' => 5,
            digit => usize::from(digit - b'1'),
        };
        if id == b'1' && offset > from {
            if message_end == 0 {
                return EnvelopeScanOutcome::Next(offset);
            }
            let is_ack = message.ack.is_empty() && is_acknowledgement(buf, &message);
            if !is_ack {
                break;
            }
            message = FramedSwiftMessage {
                ack: Span { start: from, end: message_end },
                ..FramedSwiftMessage::default()
            };
            message_end = 0;
        }
        if message_end > 0 && !matches!(id, b'5' | b'S') || message.blocks[index].start > 0 {
            if message_end > 0 {
                break;
            }
            return EnvelopeScanOutcome::Bad {
                fault: SwiftFault::Twice { block: id, offset: (offset - from) as u32 },
                offset,
            };
        }
        let block_start = offset + 3;
        let content = match id {
            b'4' => text_block_end(buf, block_start),
            _ if message_end > 0 => trailer(buf, block_start),
            _ => header(buf, block_start, id),
        };
        let (end, after) = match content {
            BlockEndOutcome::Ends { end, after } => (end, after),
            BlockEndOutcome::Need if message_end > 0 && is_final => break,
            BlockEndOutcome::Next(_) if message_end > 0 => break,
            BlockEndOutcome::Next(next) => return EnvelopeScanOutcome::Next(next),
            BlockEndOutcome::Need => return EnvelopeScanOutcome::Need,
            BlockEndOutcome::Bad { fault, offset } => {
                return EnvelopeScanOutcome::Bad { fault: shift_fault(fault, from), offset };
            }
        };
        message.blocks[index] = Span { start: block_start, end };
        offset = after;
        if id == b'4' || message_end > 0 {
            message_end = after;
        }
    }
    message.form = EnvelopeForm::Envelope;
    message.span = Span { start: from, end: message_end };
    EnvelopeScanOutcome::Done(message)
}

/// Returns whether the blocks so far are an acknowledgement, which the message may follow.
fn is_acknowledgement(buf: &[u8], message: &FramedSwiftMessage) -> bool {
    let service = &message.blocks[0].slice(buf);
    let has_sub_blocks = without_line_ends(message.blocks[3].slice(buf)).starts_with(b"{");
    has_sub_blocks && message.blocks[1].start == 0 && service.get(1..3) == Some(b"21")
}

/// Finds the last `{1:` that begins a message, as far as the bytes before it show.
pub(super) fn last_start(buf: &[u8]) -> Option<usize> {
    let mut last_block_end = buf.len();
    loop {
        let header_start = memmem::rfind(&buf[..last_block_end], b"{1:")?;
        last_block_end = header_start;
        let bytes_before = &buf[..header_start];
        // Inside a system message's text.
        if bytes_before.ends_with(b"{4:") {
            continue;
        }
        // Right after an acknowledgement.
        let closed_block = bytes_before.strip_suffix(b"}").map(without_last_line_ends);
        if closed_block.is_some_and(|inside| inside.ends_with(b"}"))
            && let Some(ack) = memmem::rfind(bytes_before, b"{1:")
            && buf[ack + 3..].get(1..3) == Some(b"21")
            && memmem::find(&buf[ack..header_start], b"{2:").is_none()
        {
            continue;
        }
        return Some(header_start);
    }
}

/// The start of a block, or of something else, at a place.
pub(super) enum BlockStartOutcome {
    Block(u8),
    Other,
    /// The buffer ends before that is known.
    Cut,
}

#[inline]
pub(super) fn block_start(buf: &[u8], offset: usize) -> BlockStartOutcome {
    match buf[offset.min(buf.len())..] {
        [b'{', id @ (b'1'..=b'5' | b'S'), b':', ..] => BlockStartOutcome::Block(id),
        [] | [b'{'] | [b'{', b'1'..=b'5' | b'S'] => BlockStartOutcome::Cut,
        _ => BlockStartOutcome::Other,
    }
}

/// Where the content of a block ends.
pub(super) enum BlockEndOutcome {
    Ends {
        /// Where the content ends.
        end: usize,
        /// Behind the closing brace.
        after: usize,
    },
    Next(usize),
    Bad {
        fault: SwiftFault,
        offset: usize,
    },
    Need,
}

/// Faults are found at places in the buffer and reported with offsets from the start of the message.
fn shift_fault(fault: SwiftFault, from: usize) -> SwiftFault {
    match fault {
        SwiftFault::Unclosed { block, offset } => {
            SwiftFault::Unclosed { block, offset: offset - from as u32 }
        }
        SwiftFault::Depth { offset } => SwiftFault::Depth { offset: offset - from as u32 },
        other => other,
    }
}

/// Finds the end of a block other than the text. Its braces must be in pairs, and it must contain no other block.
#[inline]
fn header(buf: &[u8], start: usize, block: u8) -> BlockEndOutcome {
    let (mut depth, mut offset) = (1, start);
    while let Some(n) = memchr2(b'{', b'}', &buf[offset..]) {
        offset += n;
        if buf[offset] == b'}' {
            depth -= 1;
            if depth == 0 {
                return BlockEndOutcome::Ends { end: offset, after: offset + 1 };
            }
        } else {
            match block_start(buf, offset) {
                BlockStartOutcome::Block(b'1') => return BlockEndOutcome::Next(offset),
                BlockStartOutcome::Block(_) => {
                    return BlockEndOutcome::Bad {
                        fault: SwiftFault::Unclosed { block, offset: offset as u32 },
                        offset,
                    };
                }
                BlockStartOutcome::Cut => return BlockEndOutcome::Need,
                BlockStartOutcome::Other => {}
            }
            depth += 1;
            if depth > NEST_MAX {
                return BlockEndOutcome::Bad { fault: SwiftFault::Depth { offset: offset as u32 }, offset };
            }
        }
        offset += 1;
    }
    BlockEndOutcome::Need
}

/// Finds the end of a block after the text. If a line or the next message starts before the block is closed, the
/// message ends before the block.
#[inline]
pub(super) fn trailer(buf: &[u8], start: usize) -> BlockEndOutcome {
    let mut depth = 1;
    for (n, byte) in buf[start.min(buf.len())..].iter().enumerate() {
        let offset = start + n;
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b'\r' | b'\n' | b'$' => return BlockEndOutcome::Next(offset),
            _ => {}
        }
        if depth == 0 {
            return BlockEndOutcome::Ends { end: offset, after: offset + 1 };
        }
        if depth > NEST_MAX {
            return BlockEndOutcome::Next(offset);
        }
    }
    BlockEndOutcome::Need
}

/// Finds the end of block 4.
#[inline]
fn text_block_end(buf: &[u8], start: usize) -> BlockEndOutcome {
    match without_line_ends(&buf[start.min(buf.len())..]).first() {
        None => BlockEndOutcome::Need,
        Some(b'{') => nested_block_end(buf, start),
        Some(_) => lines(buf, start),
    }
}

/// Strips leading line ends, which are legal between `{4:` and the fields of a service message.
#[inline]
fn without_line_ends(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count()..]
}

fn without_last_line_ends(text: &[u8]) -> &[u8] {
    &text[..text.len() - text.iter().rev().take_while(|b| matches!(b, b'\r' | b'\n')).count()]
}

/// Finds the `-}` that ends the fields.
#[inline]
fn lines(buf: &[u8], start: usize) -> BlockEndOutcome {
    let mut offset = start;
    while let Some(n) = memchr2(b'{', b'}', &buf[offset..]) {
        offset += n;
        if buf[offset] == b'}' {
            if offset > start && buf[offset - 1] == b'-' {
                return BlockEndOutcome::Ends { end: offset - 1, after: offset + 1 };
            }
        } else {
            match super::frame::starts_message(buf, offset) {
                Some(true) => return BlockEndOutcome::Next(offset),
                Some(false) => {}
                None => return BlockEndOutcome::Need,
            }
        }
        offset += 1;
    }
    BlockEndOutcome::Need
}

/// Blocks in block 4: `{177:…}{451:0}`, or another message's blocks.
#[cold]
fn nested_block_end(buf: &[u8], start: usize) -> BlockEndOutcome {
    let (mut depth, mut offset) = (1, start);
    while let Some(n) = memchr2(b'{', b'}', &buf[offset..]) {
        offset += n;
        if buf[offset] == b'}' {
            depth -= 1;
            if depth == 0 {
                return BlockEndOutcome::Ends { end: offset, after: offset + 1 };
            }
            offset += 1;
            continue;
        }
        match block_start(buf, offset) {
            BlockStartOutcome::Cut => return BlockEndOutcome::Need,
            // A system message's text may quote another message, which is then first in it.
            BlockStartOutcome::Block(b'1') if offset > start => return BlockEndOutcome::Next(offset),
            BlockStartOutcome::Block(b'4') => {
                match without_line_ends(&buf[buf.len().min(offset + 3)..]).first() {
                    None => return BlockEndOutcome::Need,
                    Some(b'{') => {}
                    Some(_) => match lines(buf, offset + 3) {
                        BlockEndOutcome::Ends { after, .. } => {
                            offset = after;
                            continue;
                        }
                        other => return other,
                    },
                }
            }
            BlockStartOutcome::Block(_) | BlockStartOutcome::Other => {}
        }
        depth += 1;
        if depth > NEST_MAX {
            return BlockEndOutcome::Bad { fault: SwiftFault::Depth { offset: offset as u32 }, offset };
        }
        offset += 1;
    }
    BlockEndOutcome::Need
}
