//! Ticks of a run's clock: lines of JSON that a run writes into a journal of its own when its feeds are quiet.
//!
//! ```text
//!  {"ts":1772434801000000000,"after":{"orders":{"file":"00000001.raw","offset":4711,"part":2}}}
//! ```
//!
//! A tick becomes an event `clock`. `after` has the last message of each feed that was on the tape before it; so a merge
//! puts the tick into the same place again, whatever the times of the messages are. `ahead` is true if the run did not
//! believe its host's clock. The line has the verdict, so that a later run of the journals does not judge again.

use crate::block::{Block, BlockMessageKind, MessageOrigin, MessageSpan};
use crate::error::Error;
use crate::formats::block_items::decode_lines;
use crate::formats::format::{ByteFormat, Format, FormatDecoder};
use crate::mapping::Mapping;
use crate::reference::{InstrumentLookup, PlainInstruments};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use unitape_codec::events::{LINE_BYTES_MAX, LineParseOptions, parse_line};
use unitape_model::{Dictionary, flags};

/// The format's word.
pub const NAME: &str = "clock";

/// A tick as its journal has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClockTick {
    /// Its time, in ns since 1970.
    pub ts: i64,
    /// By feed: the last message before the tick. A feed that is not named has no such message.
    #[serde(default)]
    pub after: BTreeMap<String, MessagePlace>,
    /// Its time leads by more than it may.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ahead: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// The place of a message, or of a mark, in the sources of its feed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MessagePlace {
    /// Name of the source.
    pub file: String,
    /// Its first byte.
    pub offset: u64,
    /// 0: a mark of progress at this byte; 1: the end of the source; 2: a message.
    pub part: u8,
}

impl ClockTick {
    /// Encodes the tick as a line with its newline.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("names and numbers");
        line.push(b'\n');
        line
    }

    /// Parses the tick in a line.
    ///
    /// # Errors
    /// Fails if the line is no tick.
    pub fn parse(line: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(line)
    }
}

impl Format {
    /// Ticks of a run's clock, which need no mapping.
    pub fn clock() -> Self {
        Self::new_unmapped(NAME, Arc::new(ClockFormat))
    }

    /// Returns whether the messages are ticks of a run's clock.
    pub fn is_clock(&self) -> bool {
        self.name() == NAME
    }
}

#[derive(Debug)]
struct ClockFormat;

impl ByteFormat for ClockFormat {
    fn decoder(&self, _mapping: &Mapping) -> Result<Box<dyn FormatDecoder>, Error> {
        Ok(Box::new(ClockDecoder))
    }
}

#[derive(Debug)]
struct ClockDecoder;

impl FormatDecoder for ClockDecoder {
    fn decode_block(&mut self, block: &mut Block, source: u32, dictionary: &Dictionary) {
        decode_lines(block, source, LINE_BYTES_MAX, |block, line, origin| {
            decode_line(block, line, origin, dictionary);
        });
    }
}

fn decode_line(block: &mut Block, line: &[u8], origin: MessageOrigin, dictionary: &Dictionary) {
    let MessageOrigin { source, offset } = origin;
    let tick = match ClockTick::parse(line) {
        Ok(tick) => tick,
        Err(_) if line.is_empty() => return,
        Err(e) => return block.quarantine(source, offset, line, "malformed", &format!("no tick: {e}")),
    };
    let mark = block.mark();
    let options = LineParseOptions { source, offset: offset as u32, flags: flags::LAST, reads_flags: false };
    let (arena, mut names) = block.builder(dictionary);
    let event = format!(r#"{{"kind":"clock","ts":{}}}"#, tick.ts);
    let parsed = parse_line(event.as_bytes(), &mut PlainInstruments.resolver(&mut names), arena, &options);
    match parsed {
        Ok(_) => {
            let span = MessageSpan { offset, length: line.len() };
            block.end_message(
                span,
                unitape_model::UnixNanos(tick.ts),
                1,
                BlockMessageKind::Events,
                dictionary,
            );
        }
        Err(e) => {
            block.roll_back(mark);
            block.quarantine(source, offset, line, e.code, &e.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against a changed line: it is in journals, and a later build reads it.
    #[test]
    fn a_tick_comes_back_from_its_line() {
        let position = MessagePlace { file: "00000001.raw".to_owned(), offset: 4711, part: 2 };
        let tick = ClockTick { ts: 5, after: BTreeMap::from([("a".to_owned(), position)]), ahead: false };
        let line = tick.to_line();
        let text = "{\"ts\":5,\"after\":{\"a\":{\"file\":\"00000001.raw\",\"offset\":4711,\"part\":2}}}\n";
        assert_eq!(String::from_utf8_lossy(&line), text);
        assert_eq!(ClockTick::parse(line.trim_ascii_end()).unwrap(), tick);
        let leading_tick = ClockTick { after: BTreeMap::new(), ahead: true, ..tick };
        assert_eq!(
            String::from_utf8_lossy(&leading_tick.to_line()),
            "{\"ts\":5,\"after\":{},\"ahead\":true}\n"
        );
        assert_eq!(ClockTick::parse(&leading_tick.to_line()).unwrap(), leading_tick);
        assert!(ClockTick::parse(b"{\"ts\":5,\"afetr\":{}}").is_err());
    }

    /// Guards against a lost line: a line that is no tick must go into quarantine and into the account.
    #[test]
    fn what_is_no_tick_is_quarantined() {
        let lines = b"{\"ts\":5}\n\n{\"ts\":\"x\"}\n{\"ts\":6,\"after\":{}}\n";
        let tally = crate::try_bytes(&Format::clock(), lines).unwrap();
        assert_eq!((tally.messages, tally.events, tally.quarantined), (3, 2, 1));
    }
}
