use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind, NameKind};

const PARAMS: &str = r#"{"max_after_ms":10,"min_repeat":2,"window_days":1}"#;

const MS: i64 = 1_000_000;
const DAY: i64 = 86_400_000_000_000;
/// Steps on and beside the limits of 10 ms and one day.
const STEPS: &[i64] =
    &[0, 0, 0, 1, 5 * MS, 10 * MS - 1, 10 * MS, 10 * MS + 1, DAY / 2, DAY - 10 * MS, DAY, -1, -10 * MS, -DAY];

fn op() -> impl Strategy<Value = Op> {
    let kind = prop::sample::select(
        &[EventKind::OrderRecv, EventKind::Exec, EventKind::Exec, EventKind::Exec, EventKind::OrderNew][..],
    );
    let mostly = |max: u32| prop_oneof![8 => Just(1), 1 => 0..=max];
    let capacity = prop::sample::select(&[Some("P"), Some("P"), Some("A"), Some("R"), None][..]);
    let names = (0u32..3, mostly(2), mostly(2), mostly(2));
    (kind, prop::sample::select(STEPS), names, capacity, (1u8..4, 0u8..20)).prop_map(
        |(kind, by, (trader, instr, venue, firm), capacity, (oid, side))| {
            let mut more = vec![(EventField::Coid, OpValue::Id(4))];
            more.extend(capacity.map(|capacity| (EventField::Capacity, OpValue::Text(capacity))));
            more.extend((firm != 0).then_some((EventField::Firm, OpValue::Name(NameKind::Firm, firm))));
            // Most are purchases; a few do not say.
            let side = if side < 15 { 1 } else { side % 3 };
            Op { kind, by, trader, instr, venue, side, oid, qty: Some((1, 0)), more, ..SILENT }
        },
    )
}

/// A repeat could be counted for each client that it follows, or for a client of another firm.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
