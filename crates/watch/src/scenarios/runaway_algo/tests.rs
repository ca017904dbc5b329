use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind, NameKind};

const PARAMS: &str = r#"{"msg_window_ms":1000,"max_msgs":3,"notional_window_s":1,"max_notional":"0.0000004","overfill_pct":"99.5","repeat_window_ms":500,"max_repeats":1}"#;

fn op() -> impl Strategy<Value = Op> {
    use EventKind::{Exec, OrderAmend, OrderCancel, OrderNew, Parent};
    let kind =
        prop::sample::select(&[OrderNew, OrderNew, OrderAmend, OrderCancel, Exec, Exec, Exec, Parent][..]);
    // Prices of some nanos: 400 of them are the greatest notional.
    let px = prop::sample::select(&[Some(10), Some(10), Some(10), Some(-10), Some(9), None][..]);
    let qty = prop::sample::select(&[(10, 0), (10, 0), (200, -1), (199, -1), (1, -9), (-5, 0)][..]);
    ((kind, step(), any::<u8>(), 0u8..4), (0u32..5, 0u8..3, 1u32..3), (px, qty)).prop_map(
        |((kind, by, odd, oid), (algo, parent, venue), (px, qty))| {
            let algo = (algo > 0).then_some((EventField::Algo, OpValue::Name(NameKind::Algo, algo)));
            let parent =
                (parent > 0 || kind == Parent).then_some((EventField::Parent, OpValue::Id(parent.max(1))));
            Op {
                kind,
                by: if odd % 2 == 0 { by.clamp(-1, 1) } else { by * 100 },
                instr: if odd % 16 == 1 { 2 } else { 1 },
                venue: if odd % 4 == 1 { venue } else { 1 },
                oid,
                side: if odd % 16 == 2 { 2 } else { 1 },
                px,
                qty: Some(qty),
                more: algo.into_iter().chain(parent).collect(),
                ..SILENT
            }
        },
    )
}

/// Sums of a window and of a parent over all algorithms, each reason once: a second alert, or a lost one, is found here.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
