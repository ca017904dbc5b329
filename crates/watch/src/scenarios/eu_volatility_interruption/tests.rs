use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind};

const PARAMS: &str = r#"{"static_bps":"1000","dynamic_bps":"300","auction_s":300}"#;

const UNIT: i64 = 1_000_000_000;

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

fn op() -> impl Strategy<Value = Op> {
    let px = prop_oneof![
        9 => prop::sample::select(&[100 * UNIT, 103 * UNIT, 103 * UNIT + 1, 97 * UNIT, 110 * UNIT, 110 * UNIT + 1, 90 * UNIT][..]),
        1 => prop::sample::select(&[0, -UNIT, i64::MAX - 1, i64::MIN][..]),
    ];
    let phase = prop::sample::select(&["auction", "auction", "auction", "open", "close"][..]);
    let mostly = |max: u32| prop_oneof![8 => Just(1), 1 => 0..=max];
    (step(), px, phase, mostly(2), mostly(2), (0u8..5, 0u8..25, 0u8..6)).prop_map(
        |(by, px, phase, instr, venue, (id, mark, kind))| {
            let op = Op { by, instr, venue, px: Some(px), ..SILENT };
            match kind {
                0 => Op {
                    kind: EventKind::Session,
                    px: (mark > 5).then_some(px),
                    more: vec![(EventField::Phase, OpValue::Text(phase))],
                    ..op
                },
                _ => Op { kind: EventKind::Trade, id, qty: Some((1, 0)), more: marks(mark), ..op },
            }
        },
    )
}

/// The trade before could be one that was cancelled or corrected, of another venue, or of volume alone.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// A reference price from before a reset must not be compared after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
