use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind};

const PARAMS: &str = r#"{"window_s":1,"min_trades":2,"max_trade_qty":"100","min_upticks":1}"#;

fn op() -> impl Strategy<Value = Op> {
    use EventKind::{Exec, OrderNew, Party, Trade};
    let kind = prop::sample::select(
        &[Exec, Exec, Exec, Exec, Exec, Exec, Exec, Exec, Trade, Trade, OrderNew, Party][..],
    );
    let px = prop::sample::select(&[Some(1), Some(2), Some(3), Some(4), Some(-1), None][..]);
    let qty = prop::sample::select(
        &[(1, 2), (1, 2), (1, 2), (1, 2), (50, 0), (100_000_000_001, -9), (5, 0), (0, 0)][..],
    );
    let mostly = |max: u32| prop_oneof![12 => Just(1), 1 => 0..=max];
    ((kind, step(), any::<u8>(), 0u8..6), (0u32..4, mostly(2), mostly(2)), (px, qty, 1u8..3)).prop_map(
        |((kind, by, odd, id), (owner, instr, venue), (px, qty, side))| {
            let is_trade = kind == Trade;
            let action = ["cancel", "correct", "new"][usize::from(odd % 3)];
            let action = is_trade.then_some((EventField::Action, OpValue::Text(action)));
            let no_last = (odd % 32 == 3).then_some((EventField::TradeFlags, OpValue::Flag("no_last")));
            Op {
                kind,
                by: if odd % 4 > 0 { by.clamp(-1, 1) } else { by * 100 },
                owner: if kind == Party { owner.max(1) } else { owner },
                // Most owners are of one group.
                group: [5, 5, 5, 1, 0][usize::from(odd % 5)],
                instr: if is_trade { instr.max(1) } else { instr },
                venue,
                oid: id,
                id,
                side,
                px: if is_trade { px.or(Some(2)) } else { px },
                qty: Some(qty),
                more: action.into_iter().chain(no_last).collect(),
                ..SILENT
            }
        },
    )
}

/// Prints that are corrected or cancelled, legs of one match, and owners that change their group.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
