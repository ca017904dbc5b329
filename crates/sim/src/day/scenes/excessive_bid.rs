//! Advancing the bid: an owner enters again at its price whenever its order there trades.

use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo,
};
use super::{MS, Scenario};

const FEW: &str = "one refresh fewer than min_refresh";
const SHARE: &str = "the owner holds exactly 60 % of the displayed quantity";
const LEVEL: &str = "the owner enters again a tick behind the price that traded";
const UNHIT: &str = "nothing is executed before one of the five entries";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::ExcessiveBid,
    key: &[KeyPart::Owner, KeyPart::Venue, KeyPart::Instr],
    misses: &[FEW, SHARE, LEVEL, UNHIT],
    sides: BOTH_SIDES,
    cast: solo,
    write,
};

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let px = terms.rng.between(-4, -1);
    // All executions are of the first order, so that the owner has 1500 shares there at each entry.
    let mut orders = vec![script.rest(Role::Lead, Direction::With, px, 1_800)];
    script.pause(terms.millis(20, 100));
    let stranger = if script.misses(SHARE) { 1_000 } else { 999 };
    let other =
        (script.misses(SHARE) || terms.edge).then(|| script.rest(Role::Other, Direction::With, px, stranger));
    let refreshes = if script.misses(FEW) { 4 } else { 5 };
    for n in 1..=refreshes {
        script.pause(terms.millis(300, 2_000));
        if !(script.misses(UNHIT) && n == 3) {
            script.take(Role::Other, Direction::Against, px, 300);
        }
        script.pause(terms.millis(50, 500));
        let entry_px = if script.misses(LEVEL) { px - 1 } else { px };
        orders.push(script.rest(Role::Lead, Direction::With, entry_px, 300));
        if n == 5 {
            script.fires(Completion::Entry);
        }
    }
    for order in orders.into_iter().chain(other) {
        script.pause(300 * MS);
        script.cancel(order);
    }
}
