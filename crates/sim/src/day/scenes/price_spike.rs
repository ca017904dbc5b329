//! Price spike: a few prints within a short time move the price far.

use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo,
};
use super::{S, Scenario};

const MOVE: &str = "the price moves by a tick less than move_bps";
const FEW: &str = "one print fewer than min_trades";
const OLD: &str = "the first print is exactly window_s old";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::PriceSpike,
    key: &[KeyPart::Venue, KeyPart::Instr],
    misses: &[MOVE, FEW, OLD],
    sides: BOTH_SIDES,
    cast: solo,
    write,
};

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let least = (terms.middle * 200 + 9_999) / 10_000;
    let last = match script.miss {
        Some(MOVE) => least - 1,
        _ if terms.edge => least,
        _ => least + terms.rng.between(1, 30),
    };
    // With two prints in between, an old first one leaves as many as min_trades.
    let prices = match script.miss {
        Some(FEW) => vec![0, last],
        _ => vec![0, last / 3, last / 2, last],
    };
    script.walls = [6, last + 5];
    let qty = terms.rng.between(1, 9) * 100;
    for (n, &px) in prices.iter().enumerate() {
        script.rest(Role::Other, Direction::Against, px, qty);
        match script.miss {
            // Earlier prints leave the window, and the cooldown of an earlier alert ends.
            _ if n == 0 => script.pause(300 * S),
            Some(OLD) if n == 3 => script.wait_until(360 * S),
            None if n == 3 && terms.edge => script.wait_until(360 * S - 1),
            // More than a second between both entries, or the orders would seem prearranged.
            _ => script.pause(terms.millis(1_100, 3_000)),
        }
        script.take(Role::Lead, Direction::With, px, qty);
        if n == 3 {
            script.fires(Completion::Trade);
        }
        script.pause(terms.millis(200, 1_500));
    }
    // The prints leave the window before the price is back.
    script.pause(60 * S);
    script.settle();
}
