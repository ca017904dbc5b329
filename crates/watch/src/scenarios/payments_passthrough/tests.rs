use super::ID;
use crate::twin::naive::stream::{Op, hold, hold_reset, payment};
use proptest::prelude::*;
use unitape_model::EventField;

const PARAMS: &str = r#"{"window_min":60,"min_amt":"50000","out_pct":"90"}"#;

const M: i64 = 60_000_000_000;
/// Steps on and beside the end of the window.
const STEPS: &[i64] = &[0, 0, 1, 20 * M, 30 * M, 60 * M - 1, 60 * M, 60 * M + 1, -1, -30 * M, -60 * M];
/// Credits on and beside the least, and debits that pass 90 % of them on.
const AMOUNTS: &[(i64, i8)] = &[
    (50_000, 0),
    (50_000, 0),
    (4_999_999, -2),
    (45_000, 0),
    (4_499_999, -2),
    (22_500, 0),
    (2_249_999, -2),
    (100_000, 0),
    (0, 0),
    (-50_000, 0),
    (9, 30),
];

fn op() -> impl Strategy<Value = Op> {
    // Money also comes back, so that each account has credits and debits.
    (payment(STEPS, AMOUNTS), any::<bool>()).prop_map(|(op, is_back)| if is_back { turn(op) } else { op })
}

/// Exchanges the accounts of a payment.
fn turn(mut op: Op) -> Op {
    for (field, _) in &mut op.more {
        *field = match *field {
            EventField::DrAcct => EventField::CrAcct,
            EventField::CrAcct => EventField::DrAcct,
            other => other,
        };
    }
    op
}

/// A debit could miss one of several open credits, or count for a credit whose time is over.
#[test]
fn agrees_with_its_slow_twin() {
    hold(ID, PARAMS, 300, 60, op);
}

/// Whatever was seen before a reset must not be seen after it.
#[test]
fn a_reset_leaves_nothing() {
    hold_reset(ID, PARAMS, op);
}
