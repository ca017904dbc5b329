use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind};

const PARAMS: &str = r#"{"dev_bps":"100"}"#;

const UNIT: i64 = 1_000_000_000;

fn op() -> impl Strategy<Value = Op> {
    let px = prop_oneof![
        9 => prop::sample::select(&[100 * UNIT, 101 * UNIT, 101 * UNIT + 1, 99 * UNIT, 99 * UNIT - 1, 102 * UNIT][..]),
        1 => prop::sample::select(&[0, -UNIT, i64::MAX - 1, i64::MIN][..]),
    ];
    let source = prop::sample::select(&["composite", "evaluated"][..]);
    let kind = prop::sample::select(&[0, 1, 1, 2][..]);
    let mostly = |max: u32| prop_oneof![8 => Just(1), 1 => 0..=max];
    (step(), px, source, kind, (mostly(2), mostly(2)), (0u8..5, 0u8..12)).prop_map(
        |(by, px, source, kind, (instr, venue), (id, lack))| {
            let op = Op { by, instr, venue, id, oid: id, px: Some(px), ..SILENT };
            match kind {
                // A reference without instrument cannot be.
                0 => Op {
                    kind: EventKind::RefPx,
                    instr: instr.max(1),
                    more: vec![(EventField::Source, OpValue::Text(source))],
                    ..op
                },
                1 => Op { kind: EventKind::Exec, px: (lack > 0).then_some(px), qty: Some((1, 0)), ..op },
                _ => Op { kind: EventKind::OrderNew, ..op },
            }
        },
    )
}

/// The reference could be an earlier one, one of another instrument, or one that has no percentage.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// A reference from before a reset must not be compared after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
