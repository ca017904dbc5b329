//! The lines of a block, for formats whose messages are lines of JSON.

use crate::block::{Block, MessageOrigin};
use unitape_codec::events::{LINE_BYTES_MAX, NextLine, next_line};

/// Returns the offset after the last newline of `buf`.
pub fn cut(buf: &[u8]) -> usize {
    buf.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1)
}

/// Decodes all whole lines of `block`, of this source, and quarantines those that are too long.
#[inline(always)]
pub fn decode_lines(
    block: &mut Block,
    source: u32,
    mut decode: impl FnMut(&mut Block, &[u8], MessageOrigin),
) {
    let bytes = std::mem::take(&mut block.bytes);
    let mut line_start = 0;
    loop {
        let start = block.base + line_start as u64;
        let next = match next_line(&bytes, line_start, block.eof) {
            NextLine::Line { bytes: line, next } => {
                decode(block, line, MessageOrigin { source, offset: start });
                next
            }
            NextLine::TooLong { .. } => {
                // A piece of fixed size, so that the cut does not depend on where the block ends; what is left
                // of the line is no message either and follows it.
                let next = (line_start + LINE_BYTES_MAX).min(bytes.len());
                block.quarantine(
                    source,
                    start,
                    &bytes[line_start..next],
                    "too_large",
                    "line longer than 4 MiB",
                );
                next
            }
            NextLine::More | NextLine::End => break,
        };
        block.progress(start, block.base + next as u64);
        line_start = next;
    }
    block.decoded = line_start;
    block.bytes = bytes;
}
