use super::ID;
use crate::twin::naive::stream::{Op, hold, hold_reset, payment};
use proptest::prelude::*;

const PARAMS: &str = r#"{"round_to":1000,"min_count":4,"window_days":1}"#;

const H: i64 = 3_600_000_000_000;
/// Steps on and beside the end of the window.
const STEPS: &[i64] = &[0, 0, 1, H, 2 * H, 6 * H, 12 * H, 24 * H - 1, 24 * H, 24 * H + 1, -1, -H, -24 * H];
/// Mostly round, so that four of five are.
const AMOUNTS: &[(i64, i8)] =
    &[(1_000, 0), (2_000, 0), (25, 3), (9, 30), (7, 8), (1_500, 0), (100_001, -2), (0, 0), (-1_000, 0)];

fn op() -> impl Strategy<Value = Op> {
    payment(STEPS, AMOUNTS)
}

/// A payment that leaves the window could be taken from the wrong count.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
