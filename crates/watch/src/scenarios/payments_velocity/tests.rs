use super::ID;
use crate::twin::naive::stream::{Op, hold, hold_reset, payment};
use proptest::prelude::*;

const PARAMS: &str = r#"{"window_h":1,"mult":"1.5","min_count":3,"baseline_days":2}"#;

const H: i64 = 3_600_000_000_000;
/// Steps on and beside the ends of window (1 h) and baseline (2 days before it).
const STEPS: &[i64] =
    &[0, 0, 0, 1, H / 4, H / 2, H - 1, H, H + 1, 12 * H, 48 * H - 1, 48 * H, 49 * H, -1, -H, -48 * H];
/// Sums that meet the limit exactly, and sums that no 128 bits hold.
const AMOUNTS: &[(i64, i8)] =
    &[(100, 0), (100, 0), (75, 0), (7_499, -2), (1, -30), (0, 0), (-100, 0), (i64::MAX, 20)];

fn op() -> impl Strategy<Value = Op> {
    payment(STEPS, AMOUNTS)
}

/// Counts and sums of window and baseline could miss a payment where the one ends and the other begins.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
