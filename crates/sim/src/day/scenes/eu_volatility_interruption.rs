//! Volatility interruption: a trade prints too far from the last trade of its venue.
//!
//! The market's auctions give no price with the phase `auction`, so the static collar has no reference.

use super::Scenario;
use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo,
};
use super::stage::sign;

const EXACT: &str = "the trade is a tick nearer, within dynamic_bps";
const BETWEEN: &str = "another trade prints half-way";
const UNTRADED: &str = "the order at the far price does not trade";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::EuVolatilityInterruption,
    key: &[KeyPart::Venue, KeyPart::Instr],
    misses: &[EXACT, BETWEEN, UNTRADED],
    sides: BOTH_SIDES,
    cast: solo,
    write,
};

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let least = terms.middle * 300 / 10_000 + 1;
    let far = match script.miss {
        Some(EXACT) => least - 1,
        None if !terms.edge => least + terms.rng.between(1, 20),
        _ => least,
    };
    script.walls = [6, far + 5];
    // No trade may be far from the one before it.
    let mut last = terms.last_px.unwrap_or(terms.middle);
    while (terms.middle - last).abs() * 10_000 > 250 * last {
        last += last * 250 / 10_000 * (terms.middle - last).signum();
        let px = (last - terms.middle) * sign(terms.side);
        script.walls = [script.walls[0].max(5 - px), script.walls[1].max(px + 5)];
        trade(terms, script, px);
    }
    trade(terms, script, 0);
    if script.misses(BETWEEN) {
        trade(terms, script, far / 2);
    }
    if script.misses(UNTRADED) {
        let offer = script.rest(Role::Other, Direction::Against, far, 100);
        script.pause(terms.millis(1_100, 3_000));
        script.cancel(offer);
        return;
    }
    trade(terms, script, far);
    script.fires(Completion::Trade);
    script.pause(terms.millis(500, 2_000));
    trade(terms, script, far / 2);
    script.settle();
}

/// Makes one trade. More than a second passes between both entries, or the orders would seem prearranged.
fn trade(terms: &mut SceneTerms<'_>, script: &mut Script, px: i64) {
    let qty = terms.rng.between(1, 9) * 100;
    script.rest(Role::Other, Direction::Against, px, qty);
    script.pause(terms.millis(1_100, 2_000));
    script.take(Role::Lead, Direction::With, px, qty);
}
