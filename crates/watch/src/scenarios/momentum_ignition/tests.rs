use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind};

const PARAMS: &str =
    r#"{"ignite_ms":10,"min_aggr_execs":2,"min_move_bps":"30","reverse_ms":10,"min_reverse_pct":80}"#;

const PX: i64 = 10_000;

fn op() -> impl Strategy<Value = Op> {
    use EventKind::{Exec, OrderNew};
    let kind = prop::sample::select(&[Exec, Exec, Exec, Exec, Exec, Exec, Exec, Exec, OrderNew][..]);
    let px = prop::sample::select(
        &[
            Some(PX),
            Some(PX),
            Some(PX + 30),
            Some(PX + 29),
            Some(PX - 30),
            Some(PX - 30),
            Some(PX + 15),
            Some(0),
            Some(-PX),
            None,
        ][..],
    );
    let qty = prop::sample::select(
        &[(1, 1), (1, 1), (8, 0), (7_999_999_999, -9), (1, 0), (0, 0), (i64::MAX, 30)][..],
    );
    let liq = prop::sample::select(&[None, Some("A"), Some("R"), Some("R"), Some("R"), Some("X")][..]);
    let mostly = |max: u32| prop_oneof![16 => Just(1), 1 => 0..=max];
    ((kind, step(), any::<u8>(), 1u8..3), (mostly(2), mostly(2), mostly(2)), (px, qty, liq)).prop_map(
        |((kind, by, odd, side), (owner, instr, venue), (px, qty, liq))| Op {
            kind,
            by: if odd % 4 > 0 { by.clamp(-1, 1) } else { by },
            owner,
            instr,
            venue,
            oid: side,
            side: if odd % 16 == 1 { 0 } else { side },
            px,
            qty: Some(qty),
            more: liq.into_iter().map(|liq| (EventField::Liq, OpValue::Text(liq))).collect(),
            ..SILENT
        },
    )
}

/// Averages of quantities of any size, ignitions that end and begin again, and executions that an alert consumed.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 120, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
