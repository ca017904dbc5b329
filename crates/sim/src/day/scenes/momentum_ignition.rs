//! Momentum ignition: aggressive trades move the price, and the owner sells back at the price that it made.

use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo,
};
use super::{S, Scenario};

const FEW: &str = "one execution fewer than min_aggr_execs";
const MOVE: &str = "the price moves by a tick less than min_move_bps";
const SHARE: &str = "one share less than min_reverse_pct is reversed";
const LATE: &str = "the reversal comes a nanosecond more than reverse_ms after the last execution";
const BETTER: &str = "the reversal is at the average price and not better";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::MomentumIgnition,
    key: &[KeyPart::Owner, KeyPart::Venue, KeyPart::Instr],
    misses: &[FEW, MOVE, SHARE, LATE, BETTER],
    sides: BOTH_SIDES,
    cast: solo,
    write,
};

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let first = 1;
    let least = (terms.px(first) * 30 + 9_999) / 10_000;
    let step = match script.miss {
        Some(MOVE) => least - 1,
        _ if terms.edge => least,
        _ => least + terms.rng.between(1, 9),
    };
    let count = match script.miss {
        None => terms.rng.between(5, 7),
        Some(FEW) => 4,
        Some(_) => 5,
    };
    let middle = first + (least + 1) / 2;
    let prices: Vec<i64> = match script.miss {
        // As far below the average as above it.
        Some(BETTER) => vec![first, middle, middle, middle, 2 * middle - first],
        _ => (0..count).map(|n| first + step * n / (count - 1)).collect(),
    };
    let last = prices[prices.len() - 1];
    script.walls = [6, last + 5];
    let qty = terms.rng.between(2, 9) * 100;
    for &px in &prices {
        // More than a second between both entries, or the orders would seem prearranged.
        script.rest(Role::Other, Direction::Against, px, qty);
        script.pause(terms.millis(1_100, 2_000));
        script.take(Role::Lead, Direction::With, px, qty);
        script.pause(terms.millis(100, 1_000));
    }
    let total = qty * prices.len() as i64;
    let reversed = match script.miss {
        Some(SHARE) => (total * 80 + 99) / 100 - 1,
        _ if terms.edge => (total * 80 + 99) / 100,
        _ => total * terms.rng.between(80, 100) / 100,
    };
    let px = if script.misses(BETTER) { middle } else { last };
    if script.misses(LATE) {
        // The last execution was at the clock of the last step.
        script.wait_until(script.last_step_ns() + 120 * S + 1);
    } else {
        script.pause(terms.millis(2_000, 20_000));
    }
    let bid = script.rest(Role::Other, Direction::With, px, reversed + 100);
    script.take(Role::Lead, Direction::Against, px, reversed);
    script.fires(Completion::Exec(Role::Lead));
    script.pause(terms.millis(100, 1_000));
    script.cancel(bid);
    script.settle();
}
