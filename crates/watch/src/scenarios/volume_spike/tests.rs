use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind};

const PARAMS: &str = r#"{"bucket_s":1,"baseline_buckets":12,"mult":"2","min_qty":"5"}"#;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

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
        20 => prop::sample::select(&[0, 1, SECOND / 2, SECOND - 1, SECOND, SECOND, 2 * SECOND][..]),
        1 => prop::sample::select(&[-1, -SECOND, 5 * SECOND, -20 * SECOND, DAY - 20 * SECOND][..]),
    ];
    let qty = prop::sample::select(&[(1, 0), (1, 0), (2, 0), (5, 0), (2, 1), (15, -1), (0, 0), (-3, 0)][..]);
    let mostly = |max: u32| prop_oneof![12 => Just(1), 1 => 0..=max];
    (by, qty, mostly(2), mostly(2), 0u8..5, 0u8..40, 0u8..8).prop_map(
        |(by, qty, instr, venue, id, mark, kind)| Op {
            kind: if kind == 0 { EventKind::Clock } else { EventKind::Trade },
            by,
            instr,
            venue,
            id,
            px: Some(SECOND),
            qty: Some(qty),
            more: marks(mark),
            ..SILENT
        },
    )
}

/// A bucket that is empty, of the day before or changed by a correction could be counted wrongly.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// A bucket from before a reset must not be judged after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
