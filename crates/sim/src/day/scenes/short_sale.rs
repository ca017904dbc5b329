//! The short-sale price test: a share falls by a tenth, and somebody sells short at the best bid.

use super::super::world::SimulatedMarket;
use super::Scenario;
use super::script::{
    Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, ScriptCast, solo,
};
use unitape_model::Side;

const THRESHOLD: &str = "the lowest price is a tick above the threshold";
const EXEMPT: &str = "the short sale is exempt";
const LONG: &str = "the seller holds what it sells";

const TRIGGER_KEY: &[KeyPart] = &[KeyPart::Instr];

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::RegSho201,
    key: &[KeyPart::Instr, KeyPart::Trader],
    misses: &[THRESHOLD, EXEMPT, LONG],
    sides: &[Side::Sell],
    cast,
    write,
};

/// The partner buys at the low and sells what it holds at the end.
fn cast(world: &mut SimulatedMarket, miss: Option<&'static str>) -> ScriptCast {
    ScriptCast { partner: Some(world.cast(false)), ..solo(world, miss) }
}

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    // The lead sells, so a distance from the middle is downwards.
    let threshold = terms.middle - terms.listed.reference * 90 / 100;
    if threshold < 10 {
        // The market has fallen as far already.
        script.is_abandoned = true;
        return;
    }
    let low = if script.misses(THRESHOLD) { threshold - 1 } else { threshold };
    script.walls = [6, low + 3];
    if script.misses(LONG) {
        script.rest(Role::Other, Direction::With, 0, 200);
        script.pause(terms.millis(100, 400));
        script.take(Role::Lead, Direction::Against, 0, 150);
        script.pause(terms.millis(1_000, 3_000));
    }
    script.rest(Role::Partner, Direction::Against, low, 120);
    script.pause(terms.millis(100, 900));
    script.take(Role::Other, Direction::With, low, 120);
    if script.misses(THRESHOLD) {
        script.key = TRIGGER_KEY;
    } else {
        script.fires_always(Completion::Trade, TRIGGER_KEY, Some("trigger"));
        script.pause(terms.millis(300, 2_000));
        script.rest(Role::Other, Direction::Against, low, 300);
        script.pause(terms.millis(100, 900));
        script.take(Role::Lead, Direction::With, low, 150);
        script.set_exempt(script.misses(EXEMPT));
        script.fires_for(Completion::Exec(Role::Lead), Some("violation"));
    }
    script.pause(terms.millis(500, 2_000));
    script.rest(Role::Other, Direction::Against, 0, 200);
    script.pause(terms.millis(100, 900));
    script.take(Role::Partner, Direction::With, 0, 120);
}
