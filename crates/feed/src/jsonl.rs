//! Events as JSON Lines, onto the tape as they are.

use crate::block::Block;
use unitape_codec::events::{LINE_BYTES_MAX, Line, LineOptions, NextLine, next_line, parse_line};
use unitape_model::{Dictionary, flags};

/// Behind the last newline of `buf`.
pub fn cut(buf: &[u8]) -> usize {
    buf.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1)
}

/// Decodes all whole lines of `block`.
pub fn decode(block: &mut Block, source: u32, known: &Dictionary) {
    let bytes = std::mem::take(&mut block.bytes);
    let mut at = 0;
    loop {
        let start = block.base + at as u64;
        let next = match next_line(&bytes, at, block.eof) {
            NextLine::Line { bytes: line, next } => {
                decode_line(block, line, source, start, known);
                next
            }
            NextLine::TooLong { .. } => {
                // A piece of fixed size, so that the cut does not depend on where the block ends; what is left
                // of the line is no event either and follows it.
                let next = (at + LINE_BYTES_MAX).min(bytes.len());
                block.quarantine(source, start, &bytes[at..next], "too_large", "line longer than 4 MiB");
                next
            }
            NextLine::More => break,
            NextLine::End => break,
        };
        block.progress(start, block.base + next as u64);
        at = next;
    }
    block.decoded = at;
    block.bytes = bytes;
}

fn decode_line(block: &mut Block, line: &[u8], source: u32, offset: u64, known: &Dictionary) {
    let mark = block.mark();
    let options = LineOptions { source, offset: offset as u32, flags: flags::LAST };
    let (arena, mut names) = block.builder(known);
    match parse_line(line, &mut names, arena, &options) {
        Ok(Line::Event { ts, .. }) => block.end_message((offset, line.len()), ts.0, 1, false, known),
        // An empty line is no message; headers, cases and expectations are messages that we know and do not want.
        Ok(Line::Blank) => {}
        Ok(_) => block.end_ignored(),
        Err(e) => {
            block.back_to(mark);
            block.quarantine(source, offset, line, e.code, &e.to_string());
        }
    }
}
