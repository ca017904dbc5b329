use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind};

const PARAMS: &str = r#"{"trigger_pct":"10","tz_offset_s":-3600}"#;

const UNIT: i64 = 1_000_000_000;
const HOUR: i64 = 3_600 * UNIT;
const DAY: i64 = 24 * HOUR;
/// The venue `NBBO`.
const NATIONAL: u32 = 6;

/// A field of a trade that makes it no print of its own, or one that counts in volumes alone.
fn marks(mark: u8) -> Vec<(EventField, OpValue)> {
    match mark {
        0 => vec![(EventField::Action, OpValue::Text("cancel"))],
        1 | 2 => vec![(EventField::Action, OpValue::Text("correct"))],
        3 => vec![(EventField::TradeFlags, OpValue::Flag("no_last"))],
        4 => vec![(EventField::Action, OpValue::Text("new"))],
        _ => Vec::new(),
    }
}

/// Times from a Wednesday on, at 23:00 local time.
fn op() -> impl Strategy<Value = Op> {
    let by = prop_oneof![
        9 => prop::sample::select(&[0, 0, 1, UNIT, HOUR - 1, HOUR][..]),
        3 => prop::sample::select(&[DAY, 2 * DAY, DAY - 1, -HOUR, -DAY, 3 * DAY][..]),
    ];
    let px = prop_oneof![
        9 => prop::sample::select(&[90 * UNIT, 90 * UNIT + 1, 90 * UNIT - 1, 91 * UNIT, 89 * UNIT][..]),
        1 => prop::sample::select(&[0, -UNIT, i64::MIN][..]),
    ];
    let kind = prop::sample::select(&[0, 1, 1, 2, 3, 3, 3, 4][..]);
    let short = prop::sample::select(&["Y", "Y", "Y", "N", "E"][..]);
    let mostly = |max: u32| prop_oneof![8 => Just(1), 1 => 0..=max];
    (by, px, kind, short, (mostly(2), mostly(2), mostly(2)), (0u8..5, 0u8..25, 0u8..8)).prop_map(
        |(by, px, kind, short, (instr, venue, trader), (id, mark, lack))| {
            let side = if lack == 0 { 0 } else { 2 - u8::from(lack == 1) };
            let op = Op { by, instr, venue, trader, id, oid: id, px: Some(px), ..SILENT };
            match kind {
                0 => {
                    let close = if mark == 0 { 0 } else { 100 * UNIT };
                    Op {
                        kind: EventKind::Ref,
                        more: vec![(EventField::PrevClose, OpValue::Price(close))],
                        ..op
                    }
                }
                1 => Op { kind: EventKind::Trade, qty: Some((1, 0)), more: marks(mark), ..op },
                2 => Op {
                    kind: EventKind::Bbo,
                    venue: if mark > 2 { NATIONAL } else { venue },
                    bid: (lack > 0).then_some(90 * UNIT),
                    ask: Some(91 * UNIT),
                    partial: mark < 5,
                    ..op
                },
                3 => Op {
                    kind: EventKind::Exec,
                    side,
                    px: (lack != 2).then_some(px),
                    qty: Some((1, 0)),
                    more: vec![(EventField::Short, OpValue::Text(short))],
                    ..op
                },
                _ => Op { kind: EventKind::OrderNew, side, ..op },
            }
        },
    )
}

/// The next trading day after a Friday, a second trigger and a bid that is gone could each be judged wrongly.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// A price test from before a reset must not apply after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
