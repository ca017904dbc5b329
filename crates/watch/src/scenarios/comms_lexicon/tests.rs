use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind, NameKind};

const PARAMS: &str = r#"{"phrases":["move to whatsapp","spoof","x x","","é","-- a"]}"#;

/// Parts of texts: phrases, nearly phrases, and what separates them.
const PARTS: &[&str] = &[
    "move to whatsapp",
    "Move",
    "to",
    "WhatsApp",
    "spoof",
    "SPOOF",
    "x",
    "X",
    "É",
    "é",
    "e\u{301}",
    "İ",
    " ",
    " ",
    "  ",
    "\n",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "\u{a0}",
    ">",
    "\n> ",
    " >",
    "-- ",
    "\n-- \n",
    "-- \r\n",
    "--",
    "_",
    ".",
    "\"",
    "9",
    "a",
];

fn op() -> impl Strategy<Value = Op> {
    let text = proptest::collection::vec(prop::sample::select(PARTS), 0..9)
        .prop_map(|parts| &*parts.concat().leak());
    let kind =
        prop::sample::select(&[EventKind::Comm, EventKind::Comm, EventKind::Comm, EventKind::News][..]);
    (kind, step(), proptest::option::weighted(0.9, text), 0u32..5, 0u8..6).prop_map(
        |(kind, by, text, from, msg_id)| {
            let mut more = Vec::new();
            more.extend(text.map(|text| (EventField::Text, OpValue::Text(text))));
            more.extend((from != 0).then_some((EventField::From, OpValue::Name(NameKind::Name, from))));
            more.extend((msg_id != 0).then_some((EventField::MsgId, OpValue::Id(msg_id))));
            Op { kind, by, more, ..SILENT }
        },
    )
}

/// A fast search could find a phrase in a part of a word, or miss it over the end of a line.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
