//! Front running: a trader deals on own account between the receipt of a client's order and its first execution.

use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, house,
};
use super::{S, Scenario};

const CLIENT: &str = "the client's order is one share less than min_client_notional";
const OWN: &str = "the own execution is one share less than min_own_notional";
const WORSE: &str = "the own price is a tick worse than the client's first execution";
const OLD: &str = "the own execution is a nanosecond older than max_ahead_ms";
const BEFORE: &str = "the own order was entered before the client's order was received";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::FrontRunning,
    key: &[KeyPart::Firm, KeyPart::Trader, KeyPart::Instr, KeyPart::Coid],
    misses: &[CLIENT, OWN, WORSE, OLD, BEFORE],
    sides: BOTH_SIDES,
    cast: house,
    write,
};

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let own_px = terms.rng.between(-3, 1);
    let client_px = match script.miss {
        Some(WORSE) => own_px - 1,
        _ if terms.edge => own_px,
        _ => own_px + terms.rng.between(0, 3),
    };
    let client_qty = match script.miss {
        Some(CLIENT) => terms.qty_worth(client_px, 100_000) - 1,
        _ if terms.edge => terms.qty_worth(client_px, 100_000),
        _ => {
            let money = terms.rng.between(110_000, 400_000);
            terms.qty_worth(client_px, money)
        }
    };
    let own_qty = match script.miss {
        Some(OWN) => terms.qty_worth(own_px, 5_000) - 1,
        _ if terms.edge => terms.qty_worth(own_px, 5_000),
        _ => {
            let money = terms.rng.between(6_000, 20_000);
            terms.qty_worth(own_px, money)
        }
    };
    if script.misses(BEFORE) {
        script.rest(Role::Lead, Direction::With, own_px, own_qty);
        script.pause(terms.millis(200, 2_000));
    }
    script.receive(client_qty);
    script.pause(terms.millis(200, 2_000));
    if !script.misses(BEFORE) {
        script.rest(Role::Lead, Direction::With, own_px, own_qty);
        // More than a second between both entries, or the orders would seem prearranged.
        script.pause(terms.millis(1_100, 4_000));
    }
    script.take(Role::Other, Direction::Against, own_px, own_qty);
    let own_ns = script.last_step_ns();
    script.pause(terms.millis(200, 2_000));
    let offer = script.rest(Role::Other, Direction::Against, client_px, 300);
    match script.miss {
        Some(OLD) => script.wait_until(own_ns + 300 * S + 1),
        _ if terms.edge => script.wait_until(own_ns + 300 * S),
        _ => script.pause(terms.millis(1_100, 15_000)),
    }
    script.take_for_client(client_px, 100);
    script.fires(Completion::Exec(Role::Partner));
    // A client order is judged once, at its first execution.
    script.pause(terms.millis(500, 3_000));
    script.take_for_client(client_px, 100);
    script.pause(terms.millis(300, 900));
    script.cancel(offer);
}
