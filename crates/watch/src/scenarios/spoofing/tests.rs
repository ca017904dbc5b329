use super::ID;
use crate::twin::naive::stream::{Op, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::EventKind;

const PARAMS: &str = r#"{"max_life_ms":20,"min_ratio":"5","max_filled_pct":10,"max_dist_ticks":"3",
    "cancel_after_exec_ms":10,"min_notional":"50000"}"#;

const TICK: i64 = 500_000_000;
const BEST: i64 = 2_500_000_000_000;

fn op() -> impl Strategy<Value = Op> {
    let kind = prop::sample::select(
        &[
            EventKind::OrderNew,
            EventKind::OrderNew,
            EventKind::OrderNew,
            EventKind::OrderAmend,
            EventKind::OrderCancel,
            EventKind::OrderCancel,
            EventKind::OrderCancel,
            EventKind::Exec,
            EventKind::Exec,
            EventKind::Exec,
            EventKind::Bbo,
            EventKind::Ref,
        ][..],
    );
    let px = prop_oneof![
        6 => prop::sample::select(&[BEST, BEST - 3 * TICK, BEST - 3 * TICK - 1, BEST + TICK, BEST + 3 * TICK][..]),
        1 => prop::sample::select(&[BEST + 4 * TICK, BEST - 4 * TICK, 0, -BEST, i64::MAX - 1, i64::MIN][..]),
    ];
    let qty = prop_oneof![
        8 => prop::sample::select(&[(20, 0), (200, 0), (40, 0), (1, 2)][..]),
        1 => prop::sample::select(&[(199_999_999_999, -10), (20_000_000_001, -9), (0, 0), (-4, 0), (i64::MAX, 30)][..]),
    ];
    let small =
        prop::sample::select(&[(4, 0), (4, 0), (2, 0), (1, 0), (40, 0), (4_000_000_001, -9), (0, 0)][..]);
    // Mostly the same owner and book, so that things meet.
    let mostly = |max: u32| prop_oneof![8 => Just(1), 1 => 0..=max];
    (
        (kind, step(), mostly(2), mostly(2), mostly(2), 0u8..4, 1u8..4),
        (1u8..3, any::<u8>(), proptest::option::weighted(0.95, px), proptest::option::weighted(0.9, qty)),
        (any::<bool>(), any::<u8>(), small, 0u8..4),
    )
        .prop_map(
            |(
                (kind, by, owner, instr, venue, oid, id),
                (side, odd, px, qty),
                (short, lack, small, taken),
            )| {
                let needs = kind == EventKind::Exec;
                // Most reductions are of an event without a total.
                let is_reduction = kind == EventKind::OrderAmend && taken > 0;
                Op {
                    kind,
                    by: if short { by.clamp(-1, 1) } else { by },
                    owner,
                    // A side that is not said is rare.
                    side: if odd == 0 { 0 } else { side },
                    instr,
                    venue,
                    oid,
                    id,
                    px: if needs { px.or(Some(BEST)) } else { px },
                    qty: if needs { Some(small) } else { qty.filter(|_| !is_reduction || taken == 3) },
                    qty_reduced: is_reduction.then_some(if taken == 1 { small } else { (160, 0) }),
                    bid: (lack % 8 != 0).then_some(BEST),
                    bid_qty: [None, Some(0), Some(7)][usize::from(lack / 8 % 3)],
                    partial: lack / 24 % 2 == 1,
                    ask: (lack % 8 != 1).then_some(BEST + TICK * i64::from(lack % 2)),
                    tick: (lack % 4 != 0).then_some(if lack % 16 == 1 { 0 } else { TICK }),
                    ..SILENT
                }
            },
        )
}

/// Sums that are differences of running totals, slots of orders that are used again, accounts that come and go: each
/// could count an execution too many or too few.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 6_000, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
