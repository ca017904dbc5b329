use super::ID;
use crate::twin::naive::stream::{Op, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::EventKind;

const PARAMS: &str = r#"{"min_orders":2,"min_levels":2,"build_ms":20,"cancel_ms":10,"min_size_ratio":"2","cancel_pct":50,"max_filled_pct":10}"#;

fn op() -> impl Strategy<Value = Op> {
    use EventKind::{Exec, OrderAmend, OrderCancel, OrderNew};
    let kind = prop::sample::select(
        &[
            OrderNew,
            OrderNew,
            OrderNew,
            OrderNew,
            OrderAmend,
            OrderCancel,
            OrderCancel,
            OrderCancel,
            Exec,
            Exec,
        ][..],
    );
    let px = prop::sample::select(&[None, Some(9), Some(9), Some(10), Some(10), Some(11), Some(11)][..]);
    let qty = prop::sample::select(&[(10, 0), (10, 0), (20, 0), (11, 0), (2, 1), (0, 0)][..]);
    let small = prop::sample::select(&[(10, 0), (5, 0), (1, 0), (2, 0), (21, -1), (-4, 0)][..]);
    let mostly = |max: u32| prop_oneof![24 => Just(1), 1 => 0..=max];
    ((kind, step(), any::<u8>(), 1u8..5), (mostly(2), mostly(2), mostly(2)), (px, qty, small)).prop_map(
        |((kind, by, odd, oid), (owner, instr, venue), (px, qty, small))| {
            let is_exec = kind == Exec;
            Op {
                kind,
                by: if odd % 8 > 0 { by.clamp(-1, 1) } else { by },
                owner,
                instr,
                venue,
                // Executions are mostly of an order that is no layer.
                oid: if is_exec && odd % 4 > 0 { 8 } else { oid },
                side: if (odd % 16 == 1) != is_exec { 2 } else { 1 },
                px: px.filter(|_| kind != OrderAmend || odd % 2 == 0),
                qty: if is_exec {
                    Some(small)
                } else {
                    Some(qty).filter(|_| kind != OrderAmend || odd % 3 == 0)
                },
                qty_reduced: (kind == OrderAmend && odd % 3 == 1).then_some(small),
                ..SILENT
            }
        },
    )
}

/// Episodes that end, sums of remaining quantities, and ids that are used again: each could keep an order that is no layer.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 120, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
