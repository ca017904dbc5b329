//! Any bytes as FAST in every framing, whole and in pieces; for tests and the fuzzer.

use super::{FastMappingDecoder, FastMessagesConfig};
use crate::block::{Block, BlockMessage, BlockMessageKind};
use crate::formats::decoder::{DecodeOptions, FeedDecoder};
use crate::mapping::Mapping;
use std::sync::OnceLock;
use unitape_model::{Dictionary, UnixNanos};

const TEMPLATES: &str = r#"<templates>
<template name="Deal" id="1">
  <uInt64 name="Time"/><string name="Desk" presence="optional"/>
  <sequence name="Orders"><length name="N"/>
    <string name="Order"/><group name="Trader"><string name="Name"/></group>
    <sequence name="Fills"><length name="M"/>
      <decimal name="Px"/><uInt32 name="Qty"/><byteVector name="Id"/>
    </sequence>
  </sequence>
</template>
<template name="Quote" id="2">
  <uInt64 name="Time"><increment value="5"/></uInt64><string name="Order"><copy value="a"/></string>
  <decimal name="Px"><exponent><default value="-2"/></exponent><mantissa><delta/></mantissa></decimal>
  <templateRef/>
</template>
</templates>"#;

const MAPPING: &str = r#"
name = "any"
format = "fast"
[fast_messages]
templates = ["moex-trades.xml"]
framing = "FRAMING"
reset = "RESET"
[message]
ts = "SendingTime@us"
[[rule]]
ignore = true
"#;

const RULES: &str = r#"
[message]
ts = "Time@us"
[group."Orders.Fills"]
members = ["Px", "Qty", "Id", "Order", "Trader.Name"]
[[rule]]
when = { "@template" = "Quote" }
[[rule.event]]
kind = "index"
fields = { index = "Order", px = "Px" }
[[rule]]
[[rule.event]]
kind = "exec"
each = "Orders.Fills"
fields = { oid = "Order", px = "Px", qty = "Qty", match_id = "Id", trader = "Trader.Name" }
"#;

/// Checks that reading bytes whole and in pieces gives the same result. The first byte chooses the framing and the
/// dictionary reset, the second the length of the pieces.
///
/// # Panics
/// Panics if the results differ.
pub fn try_bytes(bytes: &[u8]) {
    /// One mapping of each framing and reset: reading a mapping takes longer than reading the bytes.
    static MAPPINGS: [OnceLock<Mapping>; FRAMINGS.len() * RESETS.len()] =
        [const { OnceLock::new() }; FRAMINGS.len() * RESETS.len()];
    let [mode, piece, bytes @ ..] = bytes else { return };
    let mapping_index = usize::from(*mode) % MAPPINGS.len();
    let (framing, reset) = (FRAMINGS[mapping_index % FRAMINGS.len()], RESETS[mapping_index / FRAMINGS.len()]);
    let mapping = MAPPINGS[mapping_index].get_or_init(|| mapping(framing, reset));
    let unsplit_traces = read(mapping, bytes, bytes.len().max(1));
    let parts = read(mapping, bytes, usize::from(*piece) + 1);
    assert_eq!(unsplit_traces, parts, "{framing}, {reset}, in pieces of {piece}");
}

const FRAMINGS: [&str; 6] = ["frames", "cme", "moex", "emdi", "length-prefix", "raw"];
const RESETS: [&str; 3] = ["message", "packet", "never"];

fn mapping(framing: &str, reset: &str) -> Mapping {
    let head = MAPPING.replace("FRAMING", framing).replace("RESET", reset);
    // Files are not the fuzzer's business: the templates are put in place of those that are named.
    let mut mapping = Mapping::parse(&head, "any").expect("it is ours");
    let (table, _) = head.split_at(head.find("[message]").unwrap_or(0));
    let rules: Mapping = toml::from_str(&format!("{table}{RULES}")).expect("it is ours");
    mapping = Mapping { text: head, origin: mapping.origin.clone(), ..rules };
    mapping.template_texts = vec![("t.xml".to_owned(), TEMPLATES.to_owned())];
    mapping
}

type UnitTrace = (u64, UnixNanos, u32, u32, bool);

/// Returns the result of each message, and the bytes in quarantine.
fn read(mapping: &Mapping, bytes: &[u8], piece: usize) -> (Vec<UnitTrace>, Vec<u8>) {
    let text = FastMessagesConfig::from_mapping(mapping).expect("it is ours");
    let mut decoder = FeedDecoder::new(FastMappingDecoder::new(mapping, &text).expect("it is ours"));
    let (mut block, mut units, mut raw) = (Block::default(), Vec::new(), Vec::new());
    let (mut from, mut to) = (0, 0);
    loop {
        to = (to + piece).min(bytes.len());
        block.bytes.clear();
        block.bytes.extend_from_slice(&bytes[from..to]);
        (block.base, block.eof) = (from as u64, to == bytes.len());
        decoder.decode(&mut block, 1, &Dictionary::default(), &DecodeOptions::default());
        assert!(block.tally.is_balanced(), "every message is accounted for");
        let trace_of =
            |u: &BlockMessage| (u.offset, u.ts, u.events, u.length, u.kind == BlockMessageKind::Quarantine);
        units.extend(
            block.units.iter().filter(|u| !matches!(u.kind, BlockMessageKind::Progress { .. })).map(trace_of),
        );
        raw.extend_from_slice(&block.raw);
        from += block.decoded;
        if block.eof {
            assert_eq!(from, bytes.len(), "nothing is left over");
            return (units, raw);
        }
    }
}
