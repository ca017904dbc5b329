//! Events as JSON Lines, onto the tape as they are.

use crate::block::Block;
use crate::reference::Instruments;
use serde::Deserialize;
use serde_json::value::RawValue;
use unitape_codec::events::{LINE_BYTES_MAX, Line, LineOptions, NextLine, next_line, parse_line};
use unitape_model::{Dictionary, UnixNanos, flags};

/// Behind the last newline of `buf`.
pub fn cut(buf: &[u8]) -> usize {
    buf.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1)
}

/// Decodes all whole lines of `block`.
pub fn decode(block: &mut Block, source: u32, known: &Dictionary, by: &mut impl Instruments) {
    let bytes = std::mem::take(&mut block.bytes);
    let mut at = 0;
    loop {
        let start = block.base + at as u64;
        let next = match next_line(&bytes, at, block.eof) {
            NextLine::Line { bytes: line, next } => {
                decode_line(block, line, (source, start), known, by);
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

fn decode_line(
    block: &mut Block,
    line: &[u8],
    (source, offset): (u32, u64),
    known: &Dictionary,
    by: &mut impl Instruments,
) {
    by_venue(line, by);
    let mark = block.mark();
    let options = LineOptions { source, offset: offset as u32, flags: flags::LAST };
    let (arena, mut names) = block.builder(known);
    let parsed = parse_line(line, &mut by.over(&mut names), arena, &options);
    let missed = by.missed();
    match parsed {
        Ok(Line::Event { ts, .. }) => {
            if missed {
                block.note_unresolved();
            }
            block.end_message((offset, line.len()), ts.0, 1, false, known);
        }
        // An empty line is no message; headers, cases and expectations are messages that we know and do not want.
        Ok(Line::Blank) => {}
        Ok(_) => block.end_ignored(),
        Err(e) => {
            block.back_to(mark);
            block.quarantine(source, offset, line, e.code, &e.to_string());
        }
    }
}

/// Tells venue and time of an event, before its names are resolved, to what looks them up.
#[inline(always)]
fn by_venue<I: Instruments>(line: &[u8], by: &mut I) {
    if !I::BY_REFERENCE {
        return;
    }
    /// What of an event its instrument depends on.
    #[derive(Default, Deserialize)]
    struct Head<'l> {
        #[serde(borrow)]
        ts: Option<&'l RawValue>,
        #[serde(borrow)]
        venue: Option<&'l RawValue>,
        #[serde(borrow)]
        mic: Option<&'l RawValue>,
    }
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    // What is no event is refused when it is read.
    let head: Head<'_> = serde_json::from_slice(line).unwrap_or_default();
    let ts = head.ts.and_then(|ts| ts.get().parse().ok()).unwrap_or(0);
    let text = |json: &RawValue| serde_json::from_str::<String>(json.get()).ok();
    let venue = head.venue.or(head.mic).and_then(text);
    by.at(venue.as_deref().map(str::as_bytes), UnixNanos(ts));
}
