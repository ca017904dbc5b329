use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind};

const PARAMS: &str = r#"{"tz_offset_s":56095,"limit_state_s":15,"pause_min":1,"double_open":true}"#;

const SECOND: i64 = 1_000_000_000;
const CENT: i64 = SECOND / 100;
/// The venue `NBBO`.
const NATIONAL: u32 = 6;

/// A field of a trade that makes it no print of its own, or one that counts in volumes alone.
fn marks(mark: u8) -> Vec<(EventField, OpValue)> {
    match mark {
        0 => vec![(EventField::Action, OpValue::Text("cancel"))],
        1 | 2 => vec![(EventField::Action, OpValue::Text("correct"))],
        3 => vec![(EventField::TradeFlags, OpValue::Flag("no_last"))],
        4 => vec![(EventField::Action, OpValue::Text("new"))],
        _ => Vec::new(),
    }
}

/// Times from 15:34:55 on. Prices at and beside the bands of 100.00, single and doubled.
fn op() -> impl Strategy<Value = Op> {
    let by = prop_oneof![
        9 => prop::sample::select(&[0, SECOND, 5 * SECOND, 15 * SECOND, 15 * SECOND - 1, 30 * SECOND, 29 * SECOND][..]),
        1 => prop::sample::select(&[-SECOND, 60 * SECOND, 300 * SECOND, 1_500 * SECOND, 64_500 * SECOND, -60 * SECOND][..]),
    ];
    let cents = prop::sample::select(
        &[
            9_500, 10_500, 9_000, 11_000, 9_500, 10_500, 9_000, 11_000, 9_499, 10_501, 10_000, 10_100,
            10_400, 9_880, 10_920, 8_999, 11_001,
        ][..],
    );
    let close =
        prop::sample::select(&[10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 300, 301, 75, 74, 0][..]);
    let kind = prop::sample::select(&[0, 1, 2, 2, 2, 3, 3, 3, 3, 4][..]);
    let mostly = |max: u32| prop_oneof![8 => Just(1), 1 => 0..=max];
    (by, cents, close, kind, mostly(2), (0u8..5, 0u8..25, 0u64..4, 0u8..12, prop::bool::weighted(0.1)))
        .prop_map(|(by, cents, close, kind, instr, (id, mark, tier, odd, is_odd))| {
            let (px, venue) = (cents * CENT, if odd == 0 { 1 } else { NATIONAL });
            // A quote at the upper band is a bid, and one at the lower band an offer, but for a few.
            let is_bid = is_odd ^ (cents > 10_000);
            let op = Op { by, instr, venue, id, px: Some(px), ..SILENT };
            match kind {
                0 => Op {
                    kind: EventKind::Ref,
                    more: vec![
                        (EventField::PrevClose, OpValue::Price(close * CENT)),
                        (EventField::Tier, OpValue::UInt(if odd > 3 { 1 } else { tier })),
                    ],
                    ..op
                },
                1 => Op {
                    kind: EventKind::Session,
                    px: (odd > 1).then_some(if odd > 3 { 10_000 * CENT } else { px }),
                    more: vec![(EventField::Phase, OpValue::Text(if odd == 2 { "halt" } else { "open" }))],
                    ..op
                },
                2 => Op { kind: EventKind::Trade, qty: Some((1, 0)), more: marks(mark), ..op },
                3 => Op {
                    kind: EventKind::Bbo,
                    bid: (odd != 1).then_some(if is_bid { px } else { px - CENT * i64::from(odd) }),
                    ask: (odd != 2).then_some(if is_bid { px + CENT * i64::from(odd) } else { px }),
                    partial: odd < 4,
                    ..op
                },
                _ => Op { kind: EventKind::Clock, ..op },
            }
        })
}

/// A reference that moves, a doubling that begins and a timer that fires with the quote that ends its state could each come in the wrong order.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// A reference or a limit state from before a reset must not give an alert after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
