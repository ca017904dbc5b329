use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind};

const PARAMS: &str = r#"{"max_age_ms":10,"tol_bps":"1"}"#;

const UNIT: i64 = 1_000_000_000;
/// The venue `NBBO`.
const NATIONAL: u32 = 6;

/// The best price is 100.00 to 101.00, and a basis point of it 0.01 and 0.0101.
fn op() -> impl Strategy<Value = Op> {
    let px = prop_oneof![
        9 => prop::sample::select(
            &[100 * UNIT, 99_990_000_000, 99_989_999_999, 101 * UNIT, 101_010_100_000, 101_010_100_001][..]
        ),
        1 => prop::sample::select(&[0, -UNIT, i64::MAX - 1, i64::MIN][..]),
    ];
    let flags = prop::sample::select(&["iso", "exempt", "auction", "no_last"][..]);
    let kind = prop::sample::select(&[0, 1, 1, 1, 2][..]);
    let mostly = |max: u32| prop_oneof![8 => Just(1), 1 => 0..=max];
    (step(), px, flags, kind, (mostly(2), mostly(2)), (0u8..5, 0u8..25, 0u8..8)).prop_map(
        |(by, px, flag, kind, (instr, venue), (id, mark, lack))| {
            let op = Op { by, instr, venue, id, oid: lack % 4, ..SILENT };
            let flags = (mark < 8).then_some((EventField::TradeFlags, OpValue::Flag(flag)));
            match kind {
                0 => Op {
                    kind: EventKind::Bbo,
                    venue: if mark > 2 { NATIONAL } else { venue },
                    bid: (lack != 0).then_some(if mark == 3 { 0 } else { 100 * UNIT }),
                    bid_qty: (lack < 2).then_some(0),
                    ask: (lack != 1).then_some(if mark == 4 { -UNIT } else { 101 * UNIT }),
                    partial: lack < 3,
                    ..op
                },
                1 => Op {
                    kind: EventKind::Exec,
                    px: (mark != 9).then_some(px),
                    qty: Some((1, 0)),
                    more: flags.into_iter().collect(),
                    ..op
                },
                _ => Op { kind: EventKind::OrderNew, ..op },
            }
        },
    )
}

/// The national best price could be stale by one nanosecond, one-sided, partial or that of a venue.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// A best price from before a reset must not be compared after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
