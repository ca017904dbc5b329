//! Tailgating: a trader repeats on own account the deals of a client of the firm.

use super::super::world::SimulatedMarket;
use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, ScriptCast, house,
};
use super::{S, Scenario};

const FEW: &str = "one repeat fewer than min_repeat";
const LATE: &str = "the last trade comes a nanosecond more than max_after_ms after the client's deal";
const SIDE: &str = "one of five trades is on the other side";
const EARLY: &str = "the first trade comes before the client's first deal";
const FIRM: &str = "the client is one of another firm";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::Tailgating,
    key: &[KeyPart::Trader],
    misses: &[FEW, LATE, SIDE, EARLY, FIRM],
    sides: BOTH_SIDES,
    cast,
    write,
};

fn cast(world: &mut SimulatedMarket, miss: Option<&'static str>) -> ScriptCast {
    let own = house(world, miss);
    let partner = if miss == Some(FIRM) { Some(world.cast_house()[1]) } else { own.partner };
    ScriptCast { partner, ..own }
}

/// Ticks from the middle: purchases and sales are more than five basis points apart, or they would be a wash trade.
const PX: i64 = 4;

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let rounds = match script.miss {
        None => terms.rng.between(5, 7),
        Some(FEW) => 4,
        Some(_) => 5,
    };
    let qty = terms.rng.between(1, 9) * 100;
    // All orders of the scene execute against two large ones.
    let offer = script.rest(Role::Other, Direction::Against, PX, 2 * rounds * qty + 100);
    let bid = script.rest(Role::Other, Direction::With, -PX, qty + 100);
    for n in 1..=rounds {
        let is_early = script.misses(EARLY) && n == 1;
        script.pause(terms.millis(1_100, 2_500));
        if is_early {
            script.take(Role::Lead, Direction::With, PX, qty);
            script.pause(terms.millis(500, 3_000));
        }
        script.receive(qty);
        script.pause(terms.millis(20, 300));
        script.take_for_client(PX, qty);
        match script.miss {
            Some(LATE) if n == rounds => script.pause(60 * S + 1),
            None if n == rounds && terms.edge => script.pause(60 * S),
            _ => script.pause(terms.millis(500, 4_000)),
        }
        match n {
            _ if is_early => {}
            3 if script.misses(SIDE) => script.take(Role::Lead, Direction::Against, -PX, qty),
            _ => script.take(Role::Lead, Direction::With, PX, qty),
        }
        if n >= 5 {
            script.fires(Completion::Exec(Role::Lead));
        }
    }
    script.pause(terms.millis(300, 900));
    script.cancel(offer);
    script.cancel(bid);
}
