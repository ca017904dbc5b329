//! Puts events from JSON Lines onto the tape unchanged.

use crate::block::affected_books::{AffectedBooks, changes_books};
use crate::block::{Block, BlockMessageKind, MessageOrigin, MessageSpan};
use crate::error::Error;
use crate::formats::format::{ByteFormat, Format, FormatDecoder};
use crate::mapping::Mapping;
use crate::reference::{InstrumentLookup, PlainInstruments, ReferenceLookup};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use unitape_codec::events::{
    LINE_BYTES_MAX, LineParseOptions, NextLine, ParsedEventLine, next_line, parse_line,
};
use unitape_model::{Dictionary, EventKind, UnixNanos, flags};

/// The format's word.
pub const NAME: &str = "events";

impl Format {
    /// Events as JSON Lines, which need no mapping.
    pub fn events() -> Self {
        Self::new_unmapped(NAME, Arc::new(EventLinesFormat))
    }

    /// Whether its messages are events already.
    pub fn is_events(&self) -> bool {
        self.name() == NAME
    }
}

#[derive(Debug)]
struct EventLinesFormat;

impl ByteFormat for EventLinesFormat {
    fn decoder(&self, mapping: &Mapping) -> Result<Box<dyn FormatDecoder>, Error> {
        Ok(match mapping.reference.clone() {
            None => Box::new(PlainInstruments),
            Some(reference) => Box::new(ReferenceLookup::new(reference)),
        })
    }

    /// Behind the last newline.
    fn cut(&self, buf: &[u8]) -> usize {
        buf.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1)
    }
}

impl FormatDecoder for PlainInstruments {
    fn stretch(&mut self, block: &mut Block, source: u32, known: &Dictionary) {
        decode(block, source, known, self);
    }
}

impl FormatDecoder for ReferenceLookup {
    fn stretch(&mut self, block: &mut Block, source: u32, known: &Dictionary) {
        decode(block, source, known, self);
    }
}

/// Decodes all whole lines of `block`.
fn decode(block: &mut Block, source: u32, known: &Dictionary, by: &mut impl InstrumentLookup) {
    let bytes = std::mem::take(&mut block.bytes);
    let mut at = 0;
    loop {
        let start = block.base + at as u64;
        let next = match next_line(&bytes, at, block.eof) {
            NextLine::Line { bytes: line, next } => {
                decode_line(block, line, MessageOrigin { source, offset: start }, known, by);
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
    origin: MessageOrigin,
    known: &Dictionary,
    by: &mut impl InstrumentLookup,
) {
    let MessageOrigin { source, offset } = origin;
    by_venue(line, by);
    let mark = block.mark();
    let options = LineParseOptions { source, offset: offset as u32, flags: flags::LAST };
    let (arena, mut names) = block.builder(known);
    let parsed = parse_line(line, &mut by.resolver(&mut names), arena, &options);
    let missed = by.take_missed();
    match parsed {
        Ok(ParsedEventLine::Event { ts, .. }) => {
            if missed {
                block.note_unresolved();
            }
            let span = MessageSpan { offset, length: line.len() };
            block.end_message(span, ts, 1, BlockMessageKind::Events, known);
        }
        // An empty line is no message; headers, cases and expectations are messages that we know and do not want.
        Ok(ParsedEventLine::Blank) => {}
        Ok(_) => block.end_ignored(),
        Err(e) => {
            block.roll_back(mark);
            let concern = concern(line, by);
            block.quarantine_message(origin, line, e.code, &e.to_string(), &concern);
        }
    }
}

/// The books that a refused line may concern.
#[cold]
fn concern<I: InstrumentLookup>(line: &[u8], _: &I) -> AffectedBooks {
    #[derive(Deserialize)]
    struct EventLineSubject {
        kind: Option<String>,
        instr: Option<String>,
        venue: Option<String>,
    }
    let Ok(head) = serde_json::from_slice::<EventLineSubject>(line) else { return AffectedBooks::Feed };
    match head.kind.as_deref().map(|kind| (EventKind::from_name(kind), EventKind::reserved_from_name(kind))) {
        Some((_, Some(_))) => return AffectedBooks::Nothing,
        Some((Some(kind), _)) if !changes_books(kind) => return AffectedBooks::Nothing,
        _ => {}
    }
    // Where names are looked up, the one on the tape is another.
    if I::BY_REFERENCE {
        return AffectedBooks::Feed;
    }
    AffectedBooks::from_names(
        head.instr.as_deref().map(str::as_bytes),
        head.venue.as_deref().map(str::as_bytes),
    )
}

/// Passes venue and time of an event to the instrument lookup before its names are resolved.
#[inline(always)]
fn by_venue<I: InstrumentLookup>(line: &[u8], by: &mut I) {
    if !I::BY_REFERENCE {
        return;
    }
    /// The fields of an event that its instrument depends on.
    #[derive(Default, Deserialize)]
    struct InstrumentLookupFields<'l> {
        #[serde(borrow)]
        ts: Option<&'l RawValue>,
        #[serde(borrow)]
        venue: Option<&'l RawValue>,
        #[serde(borrow)]
        mic: Option<&'l RawValue>,
    }
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    // A line that is no event is refused when it is read.
    let head: InstrumentLookupFields<'_> = serde_json::from_slice(line).unwrap_or_default();
    let ts = head.ts.and_then(|ts| ts.get().parse().ok()).unwrap_or(0);
    let text = |json: &RawValue| serde_json::from_str::<String>(json.get()).ok();
    let venue = head.venue.or(head.mic).and_then(text);
    by.set_event(venue.as_deref().map(str::as_bytes), UnixNanos(ts));
}
