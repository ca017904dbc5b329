use super::ID;
use crate::twin::naive::stream::{Op, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::EventKind;

const PARAMS: &str = r#"{"attract_ticks":"2","reprice_ms":500,"min_events":2,"window_s":1}"#;

const TICK: i64 = 10;
const BID: i64 = 1_000;
const ASK: i64 = BID + 2 * TICK;

fn op() -> impl Strategy<Value = Op> {
    use EventKind::{Bbo, Exec, OrderAmend, OrderCancel, OrderNew, Ref};
    let kind = prop::sample::select(
        &[
            OrderNew,
            OrderNew,
            OrderNew,
            OrderNew,
            OrderAmend,
            OrderAmend,
            OrderAmend,
            Exec,
            Exec,
            Exec,
            Exec,
            OrderCancel,
            Bbo,
            Ref,
        ][..],
    );
    let mostly = |max: u32| prop_oneof![40 => Just(1), 1 => 0..=max];
    ((kind, step(), any::<u8>(), any::<u8>()), (mostly(2), mostly(2), 1u8..4), 0usize..9).prop_map(
        |((kind, by, odd, choice), (instr, venue, oid), pick)| {
            // Most orders offer, and those of another owner buy.
            let is_contra = kind == OrderNew && choice % 2 == 0;
            let entry = [ASK - TICK, ASK, ASK - 1, BID].get(pick).copied().unwrap_or(ASK - TICK);
            let worse = [ASK + TICK - 1, ASK + 2 * TICK, ASK - TICK].get(pick).copied().unwrap_or(ASK + TICK);
            Op {
                kind,
                by: if odd % 16 > 0 { by.clamp(-1, 1) } else { by * 100 },
                owner: if odd == 4 { 0 } else { 1 + u32::from(is_contra) },
                instr,
                venue,
                oid: if is_contra { 5 } else { oid / 2 },
                side: if (odd % 32 == 1) != is_contra { 1 } else { 2 },
                px: Some(if kind == OrderNew { entry } else { worse }),
                qty: Some(if odd == 5 { (0, 0) } else { (5, 0) }),
                bid: (odd != 6).then_some(BID),
                ask: (odd != 7).then_some(ASK),
                partial: odd % 2 == 0,
                tick: Some(if odd % 16 == 8 { TICK + 1 } else { TICK }),
                ..SILENT
            }
        },
    )
}

/// Lures that lack one part: the best price, the reprice, the other owner or the execution at the new price.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 200, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
