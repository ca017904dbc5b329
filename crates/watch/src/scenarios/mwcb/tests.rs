use super::ID;
use crate::twin::naive::stream::{Op, OpValue, SILENT, hold, hold_reset};
use proptest::prelude::*;
use unitape_model::{EventField, EventKind, NameKind};

const PARAMS: &str = r#"{"levels_pct":[7,13,20],"cutoff_s":3,"tz_offset_s":-60}"#;

const SECOND: i64 = 1_000_000_000;

fn op() -> impl Strategy<Value = Op> {
    let by = prop_oneof![
        9 => prop::sample::select(&[0, 0, 1, SECOND, SECOND - 1][..]),
        3 => prop::sample::select(&[60 * SECOND, -SECOND, -60 * SECOND, 86_340 * SECOND, -86_400 * SECOND][..]),
    ];
    // The levels of 100.03 are 93.03, 87.03 and 80.02.
    let px = prop::sample::select(
        &[
            (9_303, -2),
            (9_304, -2),
            (93_030_000_001, -9),
            (8_703, -2),
            (8_704, -2),
            (8_002, -2),
            (8_003, -2),
            (0, 0),
            (-5, 0),
            (95, 0),
        ][..],
    );
    let close = prop_oneof![4 => Just(100_030_000_000i64), 1 => Just(100_000_000_000), 1 => -1i64..1];
    let index = prop_oneof![8 => Just(1), 1 => 1u32..3];
    (by, px, close, index, 0u8..6).prop_map(|(by, (mantissa, exponent), close, index, kind)| {
        let reference = vec![(EventField::PrevClose, OpValue::Price(close))];
        let value = vec![
            (EventField::Index, OpValue::Name(NameKind::Instrument, index)),
            (EventField::Px, OpValue::Decimal(mantissa, exponent)),
        ];
        match kind {
            0 | 1 => Op { kind: EventKind::Ref, by, instr: index, more: reference, ..SILENT },
            _ => Op { kind: EventKind::Index, by, more: value, ..SILENT },
        }
    })
}

/// A level at its cent, a day that changes or comes back, and a cutoff that passes could each spend a level wrongly.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Levels that were spent before a reset are not spent after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
