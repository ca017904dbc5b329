//! Off-market price: a trade far from the reference price of its instrument.

use super::super::world::ListedInstrument;
use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo,
};
use super::{MS, Scenario};

const PRICE: &str = "the price is exactly dev_bps from the reference price, or the last tick within";
const LATER: &str = "a later reference price is nearer to the trade";
const AFTER: &str = "the reference price moves away after the trade";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::OffMarketTrade,
    key: &[KeyPart::Venue, KeyPart::Instr, KeyPart::Oid, KeyPart::MatchId],
    misses: &[PRICE, LATER, AFTER],
    sides: BOTH_SIDES,
    cast: solo,
    write,
};

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let most = ListedInstrument::ticks_of_bps(terms.middle, 100);
    let px = match script.miss {
        Some(PRICE) => most,
        _ if terms.edge => most + 1,
        _ => most + terms.rng.between(2, 40),
    };
    script.walls = [6, px + 5];
    let qty = terms.rng.between(1, 9) * 100;
    script.rest(Role::Other, Direction::Against, px, qty);
    // More than a second between both entries, or the orders would seem prearranged.
    script.pause(terms.millis(1_100, 5_000));
    script.publish_reference(if script.misses(AFTER) { px } else { 0 });
    if script.misses(LATER) {
        script.publish_reference(px - most / 2);
    }
    script.take(Role::Lead, Direction::With, px, qty);
    script.fires(Completion::Exec(Role::Lead));
    script.fires(Completion::Exec(Role::Other));
    script.pause(500 * MS);
    script.publish_reference(0);
    script.settle();
}
