use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind};

const PARAMS: &str =
    r#"{"window_ms":10,"max_ping_qty":"100","min_pings":2,"follow_ms":5,"min_follow_ratio":"2.5"}"#;

fn op() -> impl Strategy<Value = Op> {
    use EventKind::{Exec, OrderAmend, OrderCancel, OrderNew};
    let kind = prop::sample::select(
        &[OrderNew, OrderNew, OrderNew, OrderNew, OrderNew, OrderAmend, OrderCancel, Exec, Exec, Exec][..],
    );
    let qty = prop::sample::select(
        &[
            (100, 0),
            (1, 2),
            (100_000_000_001, -9),
            (40, 0),
            (40, 0),
            (0, 0),
            (-1, 0),
            (250, 0),
            (249_999, -3),
            (1, 3),
            (1, 3),
        ][..],
    );
    let tif = prop::sample::select(&[None, Some("IOC"), Some("IOC"), Some("IOC"), Some("FOK")][..]);
    let mostly = |max: u32| prop_oneof![12 => Just(1), 1 => 0..=max];
    ((kind, step(), any::<u8>(), 0u8..3), (mostly(2), mostly(2), mostly(2)), (qty, tif)).prop_map(
        |((kind, by, odd, oid), (owner, instr, venue), (qty, tif))| Op {
            kind,
            by: if odd % 4 > 0 { by.clamp(-1, 1) } else { by },
            owner: if kind == Exec && odd % 3 == 0 { 0 } else { owner },
            instr,
            venue,
            oid,
            side: if odd % 16 == 1 { 2 } else { 1 },
            px: Some(10),
            qty: (odd != 2).then_some(qty),
            more: tif.into_iter().map(|tif| (EventField::Tif, OpValue::Text(tif))).collect(),
            ..SILENT
        },
    )
}

/// The greatest quantity of a window, and executions of probes whose ids are used again.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
