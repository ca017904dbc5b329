use super::ID;
use crate::twin::naive::stream::{Op, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::EventKind;

const PARAMS: &str = r#"{"entry_gap_ms":500,"min_repeat":2,"window_s":1}"#;

fn op() -> impl Strategy<Value = Op> {
    use EventKind::{Exec, OrderAmend, OrderNew, Party};
    let order = prop::sample::select(
        &[
            OrderNew, OrderNew, OrderNew, OrderNew, OrderNew, OrderNew, OrderNew, OrderNew, OrderAmend, Exec,
            Exec, Exec, Exec, Exec, Exec, Exec, Exec, Exec, Exec,
        ][..],
    );
    let qty = prop::sample::select(
        &[(10, 0), (10, 0), (10, 0), (10, 0), (10, 0), (10, 0), (1, 1), (1, 1), (5, 0), (0, 0)][..],
    );
    let mostly = |max: u32| prop_oneof![24 => Just(1), 1 => 0..=max];
    let order = ((order, step(), any::<u8>(), 1u8..4), (mostly(2), mostly(2), 1u8..4), qty).prop_map(
        |((kind, by, odd, oid), (instr, venue, id), qty)| Op {
            kind,
            by: if odd % 16 > 0 { by.clamp(-1, 1) } else { by * 100 },
            // Two orders of one owner and one of another; few name a third one, or none.
            owner: if odd % 32 == 1 { u32::from(odd / 64) } else { 1 + u32::from(oid % 2) },
            instr,
            venue,
            oid,
            side: if odd % 32 == 2 { 1 + oid / 2 % 2 } else { 1 + oid % 2 },
            id,
            px: Some(1),
            qty: Some(qty),
            ..SILENT
        },
    );
    prop_oneof![
        60 => order,
        1 => (1u32..4, 1u32..4).prop_map(|(owner, group)| Op { kind: Party, owner, group, ..SILENT }),
    ]
}

/// Legs that meet after a reuse of their match id or order id, and counters that begin again after an alert.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 120, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
