use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind};

const PARAMS: &str = r#"{"window_s":10,"min_move_bps":"50","min_share_pct":"25","min_notional":"500"}"#;

const SECOND: i64 = 1_000_000_000;
const PX: i64 = 100 * SECOND;

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
    let by = prop_oneof![
        9 => prop::sample::select(&[0, 0, 0, SECOND, SECOND, 5 * SECOND, 9 * SECOND, 10 * SECOND][..]),
        1 => prop::sample::select(&[-SECOND, -10 * SECOND, 10 * SECOND - 1, 60 * SECOND][..]),
    ];
    let px = prop_oneof![
        9 => prop::sample::select(&[PX, PX, PX, PX + SECOND / 2][..]),
        1 => prop::sample::select(&[0, -PX][..]),
    ];
    let close = prop::sample::select(
        &[PX + SECOND / 2, PX + SECOND / 2, PX + SECOND / 2 - 1, PX + SECOND, PX - SECOND / 2, PX][..],
    );
    let qty =
        prop::sample::select(&[(10, 0), (10, 0), (5, 0), (9_999_999_999, -9), (4, 1), (0, 0), (-1, 0)][..]);
    let liq = prop::sample::select(&["R", "R", "X", "A"][..]);
    let kind = prop::sample::select(&[0, 0, 1, 1, 1, 2, 2, 2, 2][..]);
    let mostly = |max: u32| prop_oneof![8 => Just(1), 1 => 0..=max];
    (by, (px, close), qty, liq, kind, (mostly(2), mostly(2), mostly(2)), (0u8..5, 0u8..25, 0u8..8)).prop_map(
        |(by, (px, close), qty, liq, kind, (instr, venue, owner), (id, mark, side))| {
            let op = Op { by, instr, venue, px: Some(px), qty: Some(qty), id, ..SILENT };
            match kind {
                0 => Op {
                    kind: EventKind::Session,
                    px: (mark > 1).then_some(close),
                    more: vec![(EventField::Phase, OpValue::Text(if mark == 2 { "open" } else { "close" }))],
                    ..op
                },
                1 => Op { kind: EventKind::Trade, more: marks(mark), ..op },
                _ => Op {
                    kind: EventKind::Exec,
                    owner,
                    side: if side < 6 { 1 } else { side - 6 + 1 },
                    px: (mark > 1).then_some(px),
                    more: vec![(EventField::Liq, OpValue::Text(liq))],
                    ..op
                },
            }
        },
    )
}

/// Executions and volume at the borders of the window, and a last trade that is cancelled, could be summed wrongly.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Executions from before a reset must not count after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
