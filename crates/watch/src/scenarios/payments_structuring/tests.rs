use super::ID;
use crate::twin::naive::stream::{Op, hold, hold_reset, payment};
use proptest::prelude::*;

const PARAMS: &str = r#"{"window_h":2,"threshold":"10000","band_pct":"60","min_count":2,"cooldown_h":3}"#;

const H: i64 = 3_600_000_000_000;
/// Steps on and beside the ends of window and cooldown.
const STEPS: &[i64] = &[0, 0, 1, H, H - 1, 2 * H - 1, 2 * H, 2 * H + 1, 3 * H - 1, 3 * H, -1, -H, -2 * H];
/// The band is 4000 to 10000; two payments of 4000 and 6000 are the least sum.
const AMOUNTS: &[(i64, i8)] = &[
    (4_000, 0),
    (6_000, 0),
    (599_999, -2),
    (999_999, -2),
    (399_999, -2),
    (10_000, 0),
    (0, 0),
    (-6_000, 0),
    (5_999_999_999_999_999_999, -15),
    (9, 30),
];

fn op() -> impl Strategy<Value = Op> {
    payment(STEPS, AMOUNTS)
}

/// A payment at an edge of the window or of the band could be counted too often or not at all.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
