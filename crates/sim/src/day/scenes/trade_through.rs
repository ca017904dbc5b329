//! Trade-through: a trade on one venue while another venue has a better price.

use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo,
};
use super::{MS, S, Scenario};

const STALE: &str = "the national best price is a nanosecond older than max_age_ms";
const EQUAL: &str = "the trade is at the national best price";
const GONE: &str = "the better price is gone before the trade";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::TradeThrough,
    key: &[KeyPart::Venue, KeyPart::Instr, KeyPart::Oid, KeyPart::MatchId],
    misses: &[STALE, EQUAL, GONE],
    sides: BOTH_SIDES,
    cast: solo,
    write,
};

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let better_px = terms.rng.between(-3, 1);
    let gap = match script.miss {
        Some(EQUAL) => 0,
        _ if terms.edge => 1,
        _ => terms.rng.between(1, 4),
    };
    let (px, qty) = (better_px + gap, terms.rng.between(1, 9) * 100);
    script.rest(Role::Other, Direction::Against, px, qty);
    // More than a second between both entries, or the orders would seem prearranged.
    script.pause(terms.millis(1_100, 4_000));
    script.on_book(1);
    let better = script.rest(Role::Other, Direction::Against, better_px, 100);
    match script.miss {
        Some(STALE) => script.pause(S + 1),
        _ if terms.edge => script.pause(S),
        _ => script.pause(terms.millis(50, 900)),
    }
    if script.misses(GONE) {
        script.cancel(better);
        script.pause(terms.millis(50, 900));
    }
    script.on_book(0);
    script.take(Role::Lead, Direction::With, px, qty);
    script.fires(Completion::Exec(Role::Lead));
    script.fires(Completion::Exec(Role::Other));
    script.pause(500 * MS);
    if !script.misses(GONE) {
        script.on_book(1);
        script.cancel(better);
    }
}
