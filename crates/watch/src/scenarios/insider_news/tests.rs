use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind, NameKind};

const PARAMS: &str = r#"{"lookback_h":1,"reaction_min":1,"min_move_pct":"5","min_profit":"100"}"#;

const MINUTE: i64 = 60_000_000_000;
const HOUR: i64 = 60 * MINUTE;
const PX: i64 = 100_000_000_000;

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

fn op() -> impl Strategy<Value = Op> {
    let by = prop_oneof![
        9 => prop::sample::select(&[0, 0, 1, MINUTE / 2, MINUTE, MINUTE - 1][..]),
        1 => prop::sample::select(&[-1, -MINUTE, HOUR, HOUR - 1, HOUR - MINUTE, -HOUR][..]),
    ];
    let px = prop_oneof![
        9 => prop::sample::select(&[PX, PX + 5 * PX / 100, PX + 5 * PX / 100 - 1, PX - 5 * PX / 100, PX * 2][..]),
        1 => prop::sample::select(&[0, -PX][..]),
    ];
    let qty =
        prop::sample::select(&[(20, 0), (20, 0), (10, 0), (1, 0), (19_999_999_999, -9), (0, 0), (-1, 0)][..]);
    let kind = prop::sample::select(&[0, 1, 1, 1, 2, 2, 2, 3][..]);
    let mostly = |max: u32| prop_oneof![8 => Just(1), 1 => 0..=max];
    (by, px, qty, kind, (mostly(2), 0u32..3, 0u32..3), (0u8..5, 0u8..25, 0u8..3)).prop_map(
        |(by, px, qty, kind, (instr, venue, owner), (id, mark, side))| {
            let op = Op { by, instr, venue, px: Some(px), qty: Some(qty), id, ..SILENT };
            let news_id = (mark > 1).then_some((EventField::NewsId, OpValue::Id(id)));
            let instrs = match mark {
                2 => vec![1, 2],
                3 => vec![1, 1],
                _ => vec![1],
            };
            let instrs = (EventField::Instrs, OpValue::Names(NameKind::Instrument, instrs));
            match kind {
                0 => Op { kind: EventKind::News, more: news_id.into_iter().chain([instrs]).collect(), ..op },
                1 => Op { kind: EventKind::Trade, more: marks(mark), ..op },
                2 => Op { kind: EventKind::Exec, owner, side, ..op },
                _ => Op { kind: EventKind::Clock, ..op },
            }
        },
    )
}

/// A trade at exactly T, executions at the borders of the lookback and news that comes late could be counted wrongly.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// News from before a reset must not be judged after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
