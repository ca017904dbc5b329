use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind};

const PARAMS: &str = r#"{"max_life_ms":20,"min_ratio":"5","max_filled_pct":10,"max_dist_ticks":"3","cancel_after_exec_ms":10,"min_notional":"50000","link_score_min":"0.8"}"#;

const TICK: i64 = 500_000_000;
const BEST: i64 = 2_500_000_000_000;

fn op() -> impl Strategy<Value = Op> {
    use EventKind::{Bbo, Exec, OrderAmend, OrderCancel, OrderNew, Party, Ref};
    let kind = prop::sample::select(
        &[
            OrderNew,
            OrderNew,
            OrderNew,
            OrderAmend,
            OrderCancel,
            OrderCancel,
            Exec,
            Exec,
            Bbo,
            Ref,
            Party,
            Party,
            Party,
        ][..],
    );
    let px = prop::sample::select(&[BEST, BEST, BEST, BEST - 3 * TICK, BEST - 3 * TICK - 1, BEST + TICK][..]);
    let qty = prop::sample::select(&[(200, 0), (200, 0), (200, 0), (20, 0)][..]);
    let small = prop::sample::select(&[(40, 0), (20, 0), (1, 0), (40_000_000_001, -9), (0, 0)][..]);
    let score = prop::sample::select(&[None, None, Some((8, -1)), Some((799_999_999, -9)), Some((1, 0))][..]);
    let mostly = |max: u32| prop_oneof![12 => Just(1), 1 => 0..=max];
    ((kind, step(), any::<u8>(), 1u8..3), (1u32..4, 0u32..8, mostly(2), mostly(2)), (px, qty, small, score))
        .prop_map(|((kind, by, odd, oid), (owner, group, instr, venue), (px, qty, small, score))| Op {
            kind,
            by: if odd % 4 > 0 { by.clamp(-1, 1) } else { by },
            owner: if kind != Party && odd == 10 { 0 } else { owner },
            // Most owners are of one group.
            group: if group > 1 { 5 } else { group },
            instr,
            venue,
            // Executions are mostly on the other side, and of another order.
            oid: if kind == Exec && odd % 8 > 0 { 3 } else { oid },
            side: if (odd % 16 == 1) != (kind == Exec) { 2 } else { 1 },
            px: Some(px),
            qty: if kind == Exec {
                Some(small)
            } else {
                Some(qty).filter(|_| kind != OrderAmend || odd % 2 == 0)
            },
            bid: (odd != 8).then_some(BEST),
            partial: odd % 32 == 9,
            ask: Some(BEST + TICK),
            tick: (odd != 9).then_some(TICK),
            more: score
                .into_iter()
                .map(|(mantissa, exponent)| (EventField::LinkScore, OpValue::Decimal(mantissa, exponent)))
                .collect(),
            ..SILENT
        })
}

/// Groups and scores that change between an execution and the cancel: each owner must count as it is known at the cancel.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 200, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
