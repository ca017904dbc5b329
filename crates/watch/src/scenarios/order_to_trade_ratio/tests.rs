use super::ID;
use crate::twin::naive::stream::{Op, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::EventKind;

const PARAMS: &str = r#"{"window_ms":10,"min_msgs":4,"max_ratio":"1.5","cooldown_ms":25}"#;

fn op() -> impl Strategy<Value = Op> {
    let kind = prop::sample::select(
        &[
            EventKind::OrderNew,
            EventKind::OrderNew,
            EventKind::OrderAmend,
            EventKind::OrderCancel,
            EventKind::Exec,
            EventKind::Trade,
        ][..],
    );
    // Traders that are not said are those of the order, if it says one.
    (kind, step(), 0u32..3, 0u8..3, 0u32..3, any::<bool>()).prop_map(
        |(kind, by, trader, oid, venue, short)| Op {
            kind,
            by: if short { by.clamp(-1, 1) } else { by },
            trader,
            oid,
            venue,
            px: Some(1),
            qty: Some((1, 0)),
            ..SILENT
        },
    )
}

/// Counts that are differences could be off by one at either edge of the window, or after time went back.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 3_000, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
