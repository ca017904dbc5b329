use super::ID;
use crate::twin::naive::stream::{Op, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::EventKind;

const PARAMS: &str = r#"{"window_ms":10,"min_msgs":4,"max_live_ms":5,"min_fast_cancel_pct":60,"max_exec_pct":30,"cooldown_ms":25}"#;

fn op() -> impl Strategy<Value = Op> {
    use EventKind::{Clock, Exec, OrderAmend, OrderCancel, OrderNew};
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
            OrderCancel,
            Exec,
            Clock,
        ][..],
    );
    let qty = prop::sample::select(&[Some((1, 0)), Some((1, 0)), Some((2, 0)), None, Some((0, 0))][..]);
    let mostly = |max: u32| prop_oneof![9 => Just(1), 1 => 0..=max];
    ((kind, step(), any::<u8>(), 0u8..4), (mostly(2), mostly(2), mostly(2), qty)).prop_map(
        |((kind, by, odd, oid), (trader, instr, venue, qty))| Op {
            kind,
            by: if odd % 4 > 0 { by.clamp(-1, 1) } else { by },
            // Cancels without a trader or an instrument have those of their orders.
            trader: if kind == OrderCancel && odd % 5 == 0 { 0 } else { trader },
            instr: if kind == OrderCancel && odd % 7 == 0 { 0 } else { instr },
            venue,
            oid,
            side: 1,
            px: Some(1),
            qty,
            ..SILENT
        },
    )
}

/// Counts in a window whose events come from orders that are live, filled, cancelled or unknown.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
