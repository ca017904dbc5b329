//! Cross product: aggressive trades move an underlying, and an instrument that is linked to it gains by that.

use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo,
};
use super::{S, Scenario};

const MOVE: &str = "the price moves by a tick less than min_move_bps";
const SHARE: &str = "the volume of others is one share too large";
const COST: &str = "a share too few is held for min_deriv_delta_ratio";
const SIDE: &str = "the linked instrument was sold, not bought, or the reverse";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::CrossProduct,
    key: &[KeyPart::Group, KeyPart::Underlying],
    misses: &[MOVE, SHARE, COST, SIDE],
    sides: BOTH_SIDES,
    cast: solo,
    write,
};

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let least = (terms.middle * 20 + 9_999) / 10_000;
    let is_inside = script.miss.is_none() && !terms.edge;
    let px = match script.miss {
        Some(MOVE) => least - 1,
        _ if is_inside => least + terms.rng.between(0, 15),
        _ => least,
    };
    script.walls = [6, px + 5];
    // An execution comes before its print: at the second one the lead has twice the quantity, and one print.
    let qty = terms.rng.between(1, 9) * 100;
    let held_qty = match script.miss {
        Some(COST) => 10 * qty - 1,
        _ if is_inside => 10 * qty + terms.rng.between(1, 10) * qty,
        _ => 10 * qty,
    };
    let other_qty = match script.miss {
        Some(SHARE) => 7 * qty + 1,
        _ if is_inside => terms.rng.between(1, 6) * qty,
        _ => 7 * qty,
    };
    let (rests, takes) = match script.misses(SIDE) {
        true => (Direction::With, Direction::Against),
        false => (Direction::Against, Direction::With),
    };
    script.on_book(1);
    script.rest(Role::Other, rests, 0, held_qty);
    script.pause(terms.millis(1_100, 3_000));
    script.take(Role::Lead, takes, 0, held_qty);
    script.on_book(0);
    // Earlier prints of all venues leave the window.
    script.pause(60 * S);
    for (role, px, qty) in [(Role::Other, 0, other_qty), (Role::Lead, px, qty), (Role::Lead, px, qty)] {
        script.rest(Role::Other, Direction::Against, px, qty);
        // More than a second between both entries, or the orders would seem prearranged.
        script.pause(terms.millis(1_100, 3_000));
        script.take(role, Direction::With, px, qty);
    }
    script.fires(Completion::Exec(Role::Lead));
    script.settle();
}
