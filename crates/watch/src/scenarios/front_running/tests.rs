use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind, NameKind};

const PARAMS: &str = r#"{"max_ahead_ms":10,"min_client_notional":"1000","min_own_notional":"200"}"#;

const PX: i64 = 100_000_000_000;

fn op() -> impl Strategy<Value = Op> {
    let kind = prop::sample::select(
        &[
            EventKind::OrderRecv,
            EventKind::OrderRecv,
            EventKind::OrderNew,
            EventKind::OrderNew,
            EventKind::Exec,
            EventKind::Exec,
            EventKind::Exec,
        ][..],
    );
    let px = prop::sample::select(&[PX, PX, PX, PX, PX, PX - 1, PX + 1, 2 * PX, -PX, 0][..]);
    // One of 2 and one of 10 are the least notionals.
    let qty = prop::sample::select(
        &[(2, 0), (2, 0), (2, 0), (10, 0), (10, 0), (1, 0), (1_999_999_999, -9), (0, 0), (-2, 0)][..],
    );
    let client_qty =
        prop::sample::select(&[(10, 0), (10, 0), (10, 0), (10, 0), (10, 0), (9_999_999_999, -9), (0, 0)][..]);
    let mostly = |max: u32| prop_oneof![16 => Just(1), 1 => 0..=max];
    let capacity = prop::sample::select(
        &[Some("P"), Some("P"), Some("P"), Some("P"), Some("A"), Some("A"), Some("R"), None][..],
    );
    let ids = (prop_oneof![4 => Just(1u8), 1 => 2u8..4], 4u8..8, any::<u8>());
    (
        (kind, step(), px, qty, client_qty),
        (mostly(2), mostly(2), mostly(2), mostly(2)),
        (capacity, ids, 0u8..8),
    )
        .prop_map(
            |(
                (kind, by, px, qty, client_qty),
                (instr, venue, trader, firm),
                (capacity, (oid, coid, odd), short),
            )| {
                let mut more = vec![(EventField::Coid, OpValue::Id(coid))];
                more.extend(capacity.map(|capacity| (EventField::Capacity, OpValue::Text(capacity))));
                more.extend((firm != 0).then_some((EventField::Firm, OpValue::Name(NameKind::Firm, firm))));
                // The parent stands on the order or on the execution.
                let is_client = capacity == Some("A") && kind == EventKind::Exec;
                more.extend((is_client || odd % 4 == 0).then_some((EventField::Parent, OpValue::Id(coid))));
                Op {
                    kind,
                    by: if short > 0 { by.clamp(-1, 1) } else { by },
                    trader,
                    instr,
                    venue,
                    side: if odd == 0 { 0 } else { 1 + odd % 16 / 15 },
                    oid,
                    px: (odd != 1).then_some(px),
                    qty: Some(if kind == EventKind::OrderRecv { client_qty } else { qty }),
                    more,
                    ..SILENT
                }
            },
        )
}

/// An execution before the client order, or one that is too old, could be counted; a client order could be judged twice.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
