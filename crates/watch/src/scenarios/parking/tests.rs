use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind, NameKind};

const PARAMS: &str = r#"{"max_days":1,"px_tol_bps":"20"}"#;

const DAY: i64 = 86_400_000_000_000;
/// Steps on and beside the limit of one day.
const STEPS: &[i64] = &[0, 0, 1, DAY / 4, DAY / 2, DAY - 1, DAY, DAY + 1, -1, -DAY / 2, -DAY];
/// 20 bps of the price of a sale at 1000 are 2.
const PX: i64 = 1_000_000_000_000;

fn op() -> impl Strategy<Value = Op> {
    let kind =
        prop::sample::select(&[EventKind::Exec, EventKind::Exec, EventKind::Exec, EventKind::OrderNew][..]);
    let px = prop_oneof![
        6 => prop::sample::select(&[PX, PX, PX + 2_000_000_000, PX + 2_000_000_001, PX - 2_000_000_000][..]),
        1 => prop::sample::select(&[0, -PX, i64::MAX - 1, i64::MIN][..]),
    ];
    let qty = prop::sample::select(&[(5, 0), (5, 0), (5_000_000_001, -9), (7, 30), (0, 0), (-5, 0)][..]);
    let mostly = |max: u32| prop_oneof![8 => Just(1), 1 => 0..=max];
    let names = (mostly(2), mostly(2), mostly(2), mostly(2));
    (kind, prop::sample::select(STEPS), names, (px, qty), (1u8..4, any::<u8>())).prop_map(
        |(kind, by, (owner, instr, venue, cpty), (px, qty), (oid, odd))| {
            let cpty = (cpty != 0).then_some((EventField::Cpty, OpValue::Name(NameKind::Firm, cpty)));
            Op {
                kind,
                by,
                owner,
                instr,
                venue,
                side: if odd < 8 { 0 } else { 1 + odd % 2 },
                oid,
                px: (odd != 9).then_some(px),
                qty: Some(qty),
                more: cpty.into_iter().collect(),
                ..SILENT
            }
        },
    )
}

/// A sale could be used twice, or a later one before an earlier one.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
