use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind};

const PARAMS: &str = r#"{"max_dev_bps":"500","max_notional":"1000","max_adv_pct":"20"}"#;

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
        9 => prop::sample::select(&[100 * UNIT, 105 * UNIT, 105 * UNIT + 1, 95 * UNIT, 95 * UNIT - 1, 110 * UNIT, 90 * UNIT][..]),
        1 => prop::sample::select(&[0, -UNIT, i64::MAX - 1, i64::MIN][..]),
    ];
    let qty = prop::sample::select(
        &[(1, 0), (1, 0), (10, 0), (10_000_000_001, -9), (2, 0), (0, 0), (-5, 0), (i64::MAX, 30)][..],
    );
    let kind = prop::sample::select(&[0, 1, 2, 3, 3, 3][..]);
    let mostly = |max: u32| prop_oneof![8 => Just(1), 1 => 0..=max];
    (step(), px, qty, kind, (mostly(2), mostly(2), mostly(2)), (0u8..5, 0u8..25, 0u8..12)).prop_map(
        |(by, px, qty, kind, (instr, venue, trader), (id, mark, lack))| {
            let op = Op { by, instr, venue, px: Some(px), qty: Some(qty), ..SILENT };
            match kind {
                0 => Op {
                    kind: EventKind::Ref,
                    more: vec![
                        (EventField::PrevClose, OpValue::Price(px)),
                        (EventField::Adv, OpValue::Decimal(qty.0.min(50), 0)),
                    ],
                    ..op
                },
                1 => Op {
                    kind: EventKind::Bbo,
                    bid: (lack > 2).then_some(px.saturating_sub(UNIT)),
                    ask: (lack != 3).then_some(px.min(200 * UNIT) + UNIT),
                    partial: lack == 2,
                    ..op
                },
                2 => Op { kind: EventKind::Trade, id, more: marks(mark), ..op },
                _ => Op {
                    kind: EventKind::OrderNew,
                    trader,
                    oid: id,
                    side: if lack == 0 { 0 } else { 1 + lack % 2 },
                    px: (lack != 1).then_some(px),
                    qty: (lack != 2).then_some(qty),
                    ..op
                },
            }
        },
    )
}

/// The reference could be that of another venue, of a one-sided book or of a trade that was cancelled.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// A reference from before a reset must not be compared after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
