use super::ID;
use crate::twin::naive::stream::{Op, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::EventKind;

const PARAMS: &str = r#"{"min_refresh":2,"window_s":1,"level_tol_ticks":"1"}"#;

const TICK: i64 = 10;
const LEVEL: i64 = 1_000;

fn op() -> impl Strategy<Value = Op> {
    use EventKind::{Bbo, Exec, OrderAmend, OrderCancel, OrderNew, Ref};
    let kind = prop::sample::select(
        &[
            OrderNew,
            OrderNew,
            OrderNew,
            OrderNew,
            Exec,
            Exec,
            Exec,
            Exec,
            OrderAmend,
            OrderCancel,
            Bbo,
            Bbo,
            Bbo,
            Ref,
        ][..],
    );
    let px = prop::sample::select(
        &[
            LEVEL,
            LEVEL,
            LEVEL,
            LEVEL,
            LEVEL,
            LEVEL,
            LEVEL,
            LEVEL + TICK,
            LEVEL + TICK + 1,
            LEVEL - TICK,
            LEVEL + 2 * TICK,
        ][..],
    );
    let qty = prop::sample::select(&[(6, 0), (7, 0), (12, 0), (12, 0), (3, 0), (3, 0), (1, -3), (0, 0)][..]);
    let shown = prop::sample::select(&[Some(10), Some(10), Some(9), Some(6), Some(5), Some(0), None][..]);
    let mostly = |max: u32| prop_oneof![20 => Just(1), 1 => 0..=max];
    ((kind, step(), any::<u8>(), 0u8..3), (mostly(2), mostly(2), mostly(2)), (px, qty, shown)).prop_map(
        |((kind, by, odd, oid), (owner, instr, venue), (px, qty, shown))| Op {
            kind,
            by: if odd % 4 > 0 { by.clamp(-1, 1) } else { by * 100 },
            owner,
            instr,
            venue,
            oid,
            side: if odd % 16 == 1 { 2 } else { 1 },
            px: Some(px).filter(|_| odd != 2),
            qty: Some(qty),
            bid: (odd != 6).then_some(if odd % 8 == 1 { px } else { LEVEL }),
            bid_qty: shown,
            ask: Some(LEVEL + 5 * TICK),
            partial: odd % 4 == 2,
            tick: Some(if odd % 8 == 3 { TICK + 1 } else { TICK }),
            ..SILENT
        },
    )
}

/// Entries and executions at prices on and beside the tolerance, and a best price that shows another state of the orders.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 120, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
