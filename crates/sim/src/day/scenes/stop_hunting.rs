//! Stop hunting: aggressive trades move the price to a client's stop order, and the owner reverses its position.

use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, house,
};
use super::{S, Scenario};

const SHARE: &str = "the volume of others is one share too large for min_aggr_share_pct";
const BARRIER: &str = "the price ends a tick more than barrier_ticks before the stop";
const LATE: &str = "the reversal comes a nanosecond more than reverse_ms after the last execution";
const PART: &str = "one share is not reversed";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::StopHunting,
    key: &[KeyPart::Owner, KeyPart::Instr],
    misses: &[SHARE, BARRIER, LATE, PART],
    sides: BOTH_SIDES,
    cast: house,
    write,
};

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    // Prints of all venues count.
    let stop_px = terms.rng.between(12, 20);
    let last = match script.miss {
        Some(BARRIER) => stop_px - 3,
        _ if terms.edge => stop_px - 2,
        _ => stop_px - terms.rng.between(1, 2),
    };
    script.walls = [6, stop_px + 5];
    let stop_qty = terms.rng.between(5, 40) * 100;
    let stop = script.stop(Role::Partner, Direction::With, stop_px, stop_qty);
    // Earlier prints leave the window.
    script.pause(60 * S);
    let qty = terms.rng.between(2, 9) * 100;
    let prices = [1, (1 + last) / 2, last];
    // The last execution comes before its print: two prints of the lead count, and the quantity of three executions.
    let stranger = match script.miss {
        Some(SHARE) => 4 * qty + 1,
        _ if terms.edge => 4 * qty,
        _ => terms.rng.between(1, 3) * qty,
    };
    for (n, px) in prices.into_iter().enumerate() {
        // More than a second between both entries, or the orders would seem prearranged.
        script.rest(Role::Other, Direction::Against, px, qty);
        script.pause(terms.millis(1_100, 2_000));
        script.take(Role::Lead, Direction::With, px, qty);
        script.pause(terms.millis(100, 1_000));
        if n == 0 {
            script.rest(Role::Other, Direction::Against, 2, stranger);
            script.pause(terms.millis(1_100, 2_000));
            script.take(Role::Other, Direction::With, 2, stranger);
            script.pause(terms.millis(100, 1_000));
        }
    }
    match script.miss {
        Some(LATE) => script.wait_until(script.last_step_ns() + 120 * S + 1),
        _ if terms.edge => script.wait_until(script.last_step_ns() + 120 * S),
        _ => script.pause(terms.millis(2_000, 20_000)),
    }
    let reversed = 3 * qty - i64::from(script.misses(PART));
    let bid = script.rest(Role::Other, Direction::With, last, reversed + 100);
    script.take(Role::Lead, Direction::Against, last, reversed);
    script.fires(Completion::Exec(Role::Lead));
    script.pause(terms.millis(100, 1_000));
    script.cancel(bid);
    script.cancel(stop);
    script.settle();
}
