use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind, NameKind};

const PARAMS: &str = r#"{"window_ms":10,"min_move_bps":"20","min_deriv_delta_ratio":"5"}"#;

const PX: i64 = 1_000_000_000_000;
/// 20 bps.
const MOVE: i64 = 2_000_000_000;

/// Instrument 1 is the underlying, 2 the derivative.
fn op() -> impl Strategy<Value = Op> {
    let kind = prop::sample::select(
        &[
            EventKind::Trade,
            EventKind::Trade,
            EventKind::Trade,
            EventKind::Exec,
            EventKind::Exec,
            EventKind::Exec,
            EventKind::Exec,
            EventKind::Ref,
            EventKind::Party,
        ][..],
    );
    let px = prop_oneof![
        16 => prop::sample::select(&[PX, PX, PX, PX + MOVE, PX + MOVE, PX + MOVE - 1, PX + 2 * MOVE, PX - MOVE][..]),
        1 => prop::sample::select(&[0, -PX, i64::MAX - 1, i64::MIN][..]),
    ];
    // The volumes are those of which an execution of 5 is about a quarter.
    let qty =
        prop::sample::select(&[(10, 0), (5, 0), (5, 0), (1, 1), (5_000_000_001, -9), (0, 0), (-5, 0)][..]);
    let liq = prop::sample::select(&[Some("R"), Some("R"), Some("R"), Some("A"), Some("X"), None][..]);
    let mostly = |max: u32| prop_oneof![16 => Just(1), 1 => 0..=max];
    let names = (mostly(3), mostly(2), 0u32..3, mostly(2));
    ((kind, step(), 0u8..8), names, (px, qty, liq), (1u8..4, any::<u8>(), 1u8..5)).prop_map(
        |((kind, by, short), (owner, group, instr, venue), (px, qty, liq), (oid, odd, id))| {
            let mut more = Vec::new();
            more.extend(liq.map(|liq| (EventField::Liq, OpValue::Text(liq))));
            more.extend((odd % 16 == 1).then_some((EventField::TradeFlags, OpValue::Flag("no_last"))));
            let action = ["new", "cancel", "correct"].get(usize::from(odd % 16).wrapping_sub(2));
            more.extend(action.map(|action| (EventField::Action, OpValue::Text(action))));
            // Most executions are at the first price, and cost nothing.
            let px = if kind == EventKind::Exec && odd % 4 != 3 { PX } else { px };
            let mut instr = instr.max(1);
            if kind == EventKind::Ref {
                instr = 2 + u32::from(odd % 16 == 5);
                let underlying = 1 + u32::from(odd % 16 == 6);
                more.push((EventField::Underlying, OpValue::Name(NameKind::Instrument, underlying)));
                let multiplier = [100, 100, 100, -100][usize::from(odd % 4)];
                more.extend(
                    (odd % 8 != 7).then_some((EventField::Multiplier, OpValue::Decimal(multiplier, 0))),
                );
            }
            Op {
                kind,
                by: if short > 0 { by.clamp(-1, 1) } else { by },
                owner: if odd == 0 { 0 } else { owner },
                group,
                instr,
                venue,
                side: if odd < 4 { 0 } else { 1 + odd % 8 / 6 },
                oid,
                id,
                px: Some(px),
                qty: Some(qty),
                more,
                ..SILENT
            }
        },
    )
}

/// A print or an execution at an edge of the window could move price, volume or cost.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
