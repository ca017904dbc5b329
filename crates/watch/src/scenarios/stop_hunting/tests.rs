use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset, step};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind, NameKind};

const PARAMS: &str = r#"{"window_s":1,"min_aggr_share_pct":50,"barrier_ticks":"2","reverse_ms":1000}"#;

const TICK: i64 = 10;
const STOP: i64 = 1_000;

fn op() -> impl Strategy<Value = Op> {
    use EventKind::{Exec, OrderAmend, OrderCancel, OrderNew, Ref, Trade};
    let kind = prop::sample::select(
        &[
            Exec,
            Exec,
            Exec,
            Exec,
            Exec,
            Exec,
            Exec,
            Exec,
            Trade,
            Trade,
            OrderNew,
            OrderNew,
            OrderAmend,
            OrderCancel,
            Ref,
            Ref,
        ][..],
    );
    let near = prop::sample::select(&[STOP, STOP, STOP - 2 * TICK, STOP - 2 * TICK - 1, STOP + 2 * TICK][..]);
    let far =
        prop::sample::select(&[STOP - 5 * TICK, STOP - 5 * TICK, STOP - 5 * TICK, STOP + 9 * TICK, STOP][..]);
    let qty =
        prop::sample::select(&[(10, 0), (10, 0), (10, 0), (20, 0), (9_999_999_999, -9), (5, 0), (0, 0)][..]);
    let mostly = |max: u32| prop_oneof![40 => Just(1), 1 => 0..=max];
    (
        (kind, step(), any::<u8>(), 1u8..4),
        (mostly(2), mostly(2), mostly(2), mostly(2)),
        (near, far, qty, any::<u8>()),
    )
        .prop_map(|((kind, by, odd, oid), (owner, instr, venue, firm), (near, far, qty, choice))| {
            let is_order = kind == OrderNew || kind == OrderAmend;
            let trades_back = kind == Exec && odd % 2 == 0;
            let text = |field, text| (field, OpValue::Text(text));
            let mut more = vec![(EventField::Firm, OpValue::Name(NameKind::Firm, firm.max(1)))];
            if is_order && choice % 16 > 0 {
                more.push((
                    EventField::StopPx,
                    OpValue::Price(if choice % 16 == 1 { STOP + TICK } else { STOP }),
                ));
            }
            if is_order {
                more.push(text(EventField::Capacity, if choice % 16 == 2 { "P" } else { "A" }));
            }
            match kind {
                Exec => more.push(text(EventField::Liq, ["R", "R", "R", "A"][usize::from(choice % 4)])),
                Trade if choice % 8 < 3 => {
                    more.push(text(
                        EventField::Action,
                        ["cancel", "correct", "new"][usize::from(choice % 8)],
                    ));
                }
                Trade if choice % 8 == 3 => more.push((EventField::TradeFlags, OpValue::Flag("no_last"))),
                _ => {}
            }
            Op {
                kind,
                by: if odd % 4 > 0 { by.clamp(-1, 1) } else { by * 100 },
                owner,
                instr: if kind == Trade { instr.max(1) } else { instr },
                venue,
                oid: if kind == Exec { 7 } else { oid },
                id: oid,
                // Half of the executions trade the other way, and more.
                side: if trades_back || odd == 1 { 2 } else { 1 },
                px: Some(if kind == Trade { far } else { near }),
                qty: Some(if trades_back && odd % 4 == 0 { (40, 0) } else { qty }),
                tick: Some(if odd % 8 == 3 { TICK + 1 } else { TICK }),
                more,
                ..SILENT
            }
        })
}

/// Shares of a volume that is corrected, stops that come and go, and quantities that are reversed in parts.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 120, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
