//! Puts events from JSON Lines onto the tape unchanged.

use crate::account::says_sum_differs;
use crate::block::affected_books::{AffectedBooks, changes_books};
use crate::block::{Block, BlockMessageKind, MessageOrigin, MessageSpan};
use crate::error::Error;
use crate::formats::block_items::decode_lines;
use crate::formats::format::{ByteFormat, Format, FormatDecoder};
use crate::mapping::Mapping;
use crate::reference::{InstrumentLookup, PlainInstruments, ReferenceLookup};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use unitape_codec::events::{LINE_BYTES_MAX, LineParseOptions, ParsedEventLine, parse_line};
use unitape_model::{Dictionary, Event, EventKind, UnixNanos, flags};

/// The format's word.
pub const NAME: &str = "events";

impl Format {
    /// Makes the format for events as JSON Lines, which needs no mapping.
    pub fn events() -> Self {
        Self::new_unmapped(NAME, Arc::new(EventLinesFormat))
    }

    /// Returns whether the messages are already events.
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
}

impl FormatDecoder for PlainInstruments {
    fn decode_block(&mut self, block: &mut Block, source: u32, dictionary: &Dictionary) {
        decode_lines(block, source, LINE_BYTES_MAX, |block, line, origin| {
            decode_line(block, line, origin, dictionary, self);
        });
    }
}

impl FormatDecoder for ReferenceLookup {
    fn decode_block(&mut self, block: &mut Block, source: u32, dictionary: &Dictionary) {
        decode_lines(block, source, LINE_BYTES_MAX, |block, line, origin| {
            decode_line(block, line, origin, dictionary, self);
        });
    }
}

fn decode_line(
    block: &mut Block,
    line: &[u8],
    origin: MessageOrigin,
    dictionary: &Dictionary,
    lookup: &mut impl InstrumentLookup,
) {
    let MessageOrigin { source, offset } = origin;
    set_lookup_event(line, lookup);
    let mark = block.mark();
    let options = LineParseOptions { source, offset: offset as u32, flags: flags::LAST, reads_flags: false };
    let (arena, mut names) = block.builder(dictionary);
    let parsed = parse_line(line, &mut lookup.resolver(&mut names), arena, &options);
    let missed = lookup.take_missed();
    match parsed {
        Ok(ParsedEventLine::Event { ts, .. }) => {
            if missed {
                block.note_unresolved();
            }
            let says = Event::new(&block.arena[mark.arena..]).is_some_and(|event| says_sum_differs(&event));
            block.has_findings |= says;
            let span = MessageSpan { offset, length: line.len() };
            block.end_message(span, ts, 1, BlockMessageKind::Events, dictionary);
        }
        // An empty line is no message; headers, cases and expectations are messages that we know and do not want.
        Ok(ParsedEventLine::Blank) => {}
        Ok(_) => block.end_ignored(),
        Err(e) => {
            block.roll_back(mark);
            let concern = affected_books(line, lookup);
            block.quarantine_message(origin, line, e.code, &e.to_string(), &concern);
        }
    }
}

/// Returns the books that a refused line may affect.
#[cold]
fn affected_books<I: InstrumentLookup>(line: &[u8], _: &I) -> AffectedBooks {
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
fn set_lookup_event<I: InstrumentLookup>(line: &[u8], lookup: &mut I) {
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
    lookup.set_event(venue.as_deref().map(str::as_bytes), UnixNanos(ts));
}
