use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind};

const PARAMS: &str = r#"{"window_s":1,"move_bps":"200","min_trades":3,"cooldown_s":2}"#;

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
        9 => prop::sample::select(&[0, 1, SECOND / 5, SECOND / 3, SECOND - 1, SECOND, 2 * SECOND][..]),
        1 => prop::sample::select(&[-1, -SECOND, -SECOND / 2, 5 * SECOND][..]),
    ];
    let px = prop_oneof![
        9 => prop::sample::select(&[PX, PX + 2 * SECOND, PX + 2 * SECOND - 1, 98 * SECOND, 98 * SECOND + 1][..]),
        1 => prop::sample::select(&[0, -PX, i64::MAX - 1, i64::MIN][..]),
    ];
    let mostly = |max: u32| prop_oneof![8 => Just(1), 1 => 0..=max];
    (by, px, mostly(2), mostly(2), 0u8..5, 0u8..25, 0u8..30).prop_map(
        |(by, px, instr, venue, id, mark, kind)| Op {
            kind: if kind == 0 { EventKind::Clock } else { EventKind::Trade },
            by,
            instr,
            venue,
            id,
            px: Some(px),
            qty: Some((1, 0)),
            more: marks(mark),
            ..SILENT
        },
    )
}

/// Extremes of a window that lose their print, by time or by a cancel, could stay or go too early.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// A cooldown or a price from before a reset must not hold an alert back or give one.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
