use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind, NameKind};

const PARAMS: &str = r#"{"min_share_pct":"40","settle_days":3}"#;

const DAY: i64 = 86_400_000_000_000;
/// Steps around midnight, UTC; streams begin with 1970.
const STEPS: &[i64] = &[0, 0, 0, 0, 0, 0, 1, DAY / 2, DAY - 1, DAY, -1, -DAY / 2, -DAY];

fn op() -> impl Strategy<Value = Op> {
    let kind = prop::sample::select(
        &[
            EventKind::Position,
            EventKind::Position,
            EventKind::Position,
            EventKind::Trade,
            EventKind::Trade,
            EventKind::Trade,
            EventKind::Ref,
            EventKind::Ref,
            EventKind::Ref,
            EventKind::Party,
        ][..],
    );
    // Most prices fall with the number of the instrument, and the contracts expire in that order.
    let px = prop::sample::select(&[0, 0, 0, 0, -1_000_000_000, 1_000_000_000, 1_000_000_001][..]);
    // 40 of 100.
    let qty = prop::sample::select(&[(40, 0), (20, 0), (39_999_999_999, -9), (60, 0), (-20, 0), (0, 0)][..]);
    let total = prop::sample::select(
        &[Some((100, 0)), Some((100, 0)), Some((100_000_000_001, -9)), Some((0, 0)), None][..],
    );
    let names = (1u32..4, 0u32..3, prop::sample::select(&[1, 1, 2, 2, 3][..]), 0u32..3);
    ((kind, prop::sample::select(STEPS)), names, (px, qty, total), (any::<u8>(), 1u8..5, 1i32..5)).prop_map(
        |((kind, by), (owner, group, instr, venue), (px, qty, total), (odd, id, expiry))| {
            let mut more = Vec::new();
            if let Some((mantissa, exponent)) = total {
                let total = OpValue::Decimal(mantissa, exponent);
                more.extend([(EventField::OpenInterest, total.clone()), (EventField::Float, total)]);
            }
            // Most expiries follow the number of the instrument.
            let expiry = if odd % 8 == 0 { expiry } else { instr as i32 * 2 };
            more.extend((odd % 16 != 1).then_some((EventField::Expiry, OpValue::Date(expiry))));
            let underlying = 4 + u32::from(odd % 16 == 2);
            more.extend(
                (odd % 16 != 3)
                    .then_some((EventField::Underlying, OpValue::Name(NameKind::Instrument, underlying))),
            );
            more.extend((odd % 16 == 4).then_some((EventField::TradeFlags, OpValue::Flag("no_last"))));
            let action = ["cancel", "correct"].get(usize::from(odd % 16).wrapping_sub(5));
            more.extend(action.map(|action| (EventField::Action, OpValue::Text(action))));
            Op {
                kind,
                by,
                owner,
                group,
                instr,
                venue,
                id,
                px: Some(px - i64::from(instr) * 1_000_000_000),
                qty: (odd != 7 || kind == EventKind::Trade).then_some(qty),
                more,
                ..SILENT
            }
        },
    )
}

/// An old position, reference or trade could be taken for the last.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
