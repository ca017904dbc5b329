//! Limit up-limit down: a quote reaches a price band and stays there until the pause, or a trade is outside the bands.
//!
//! The reference of the bands is a mean of prints on all venues. So the scene trades first, after five minutes without a
//! print: its price is then the only one in the mean.

use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo,
};
use super::{MS, S, Scenario};
use unitape_model::Side;

const SHORT: &str = "the quote is a tick short of the band";
const BEYOND: &str = "the quote is a tick beyond the band";
const INSIDE: &str = "the trade is at the last price inside the band";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::Luld,
    key: &[KeyPart::Instr],
    misses: &[SHORT, BEYOND, INSIDE],
    sides: BOTH_SIDES,
    cast: solo,
    write,
};

/// Time in which the prints before leave the mean, and the pause of an earlier limit state ends.
const QUIET_NS: u64 = 320 * S;
/// `limit_state_s`.
pub(super) const LIMIT_STATE_NS: u64 = 15 * S;

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let Some((distance, is_at_band)) = distance_to_band(terms) else {
        script.is_abandoned = true;
        return;
    };
    let is_quote = match script.miss {
        Some(INSIDE) => false,
        Some(_) => true,
        None => is_at_band && terms.n.is_multiple_of(2),
    };
    let px = match script.miss {
        Some(SHORT) => distance - i64::from(is_at_band),
        Some(INSIDE) => distance,
        Some(_) => distance + 1,
        None if is_quote => distance,
        None if terms.edge => distance + 1,
        None => distance + terms.rng.between(1, 9),
    };
    script.walls = [6, px + 5];
    let qty = terms.rng.between(1, 9) * 100;
    script.rest(Role::Other, Direction::Against, 0, qty);
    script.pause(QUIET_NS);
    script.take(Role::Other, Direction::With, 0, qty);
    script.pause(terms.millis(500, 3_000));
    if is_quote {
        let quote = script.rest(Role::Lead, Direction::With, px, qty);
        script.fires(Completion::LimitState);
        script.pause(LIMIT_STATE_NS + terms.millis(1, 2_000));
        script.cancel(quote);
    } else {
        script.rest(Role::Other, Direction::Against, px, qty);
        script.pause(terms.millis(1_100, 3_000));
        script.take(Role::Lead, Direction::With, px, qty);
        script.fires(Completion::Trade);
        script.settle();
    }
}

/// Returns the distance from the middle to the last tick inside the band on the lead's side, and whether the band is at
/// that tick. Returns `None` if the middle is not well inside, or if the bands change while the scene acts.
fn distance_to_band(terms: &SceneTerms<'_>) -> Option<(i64, bool)> {
    let listed = terms.listed;
    let mut prints = terms.prints?.clone();
    let is_inside = |[lower, upper]: [i64; 2]| (lower..=upper).contains(&listed.nano(terms.middle));
    let first_ts = terms.now_ts + QUIET_NS + 500 * MS;
    let is_constant = |prints: &super::script::InstrumentPrints, ts: u64| {
        let [before, after] = [ts, terms.now_ts + 2 * QUIET_NS].map(|ts| prints.bands(ts, listed));
        before.filter(|bands| Some(*bands) == after)
    };
    is_constant(&prints, terms.now_ts).filter(|bands| is_inside(*bands))?;
    prints.add(first_ts, terms.middle, 1, listed);
    let [lower, upper] = is_constant(&prints, first_ts)?;
    let tick = listed.tick_nano;
    let distance = match terms.side {
        Side::Buy => upper.div_euclid(tick) - terms.middle,
        Side::Sell => terms.middle - (lower + tick - 1).div_euclid(tick),
    };
    let band = if terms.side == Side::Buy { upper } else { lower };
    (distance > 6).then_some((distance, band % tick == 0))
}
