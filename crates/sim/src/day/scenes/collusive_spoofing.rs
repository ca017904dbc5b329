//! Collusive spoofing: one owner of a group pulls a large order after another one has traded on the other side.

use super::super::world::SimulatedMarket;
use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, ScriptCast,
};
use super::stage::SceneParticipants;
use super::{MS, S, Scenario};

const LINK: &str = "the link of the owner that trades is weaker than link_score_min";
const STRANGER: &str = "the owner that trades is of no group";
const LIFE: &str = "the order lives a nanosecond more than max_life_ms";
const RATIO: &str = "the order is one share less than min_ratio times what was executed";
const FILLED: &str = "one share more than max_filled_pct of the order was filled";
const DISTANCE: &str = "the order is entered a tick more than max_dist_ticks behind the best";
const STALE: &str = "the cancel comes a nanosecond more than cancel_after_exec_ms after the execution";
const NOTIONAL: &str = "the order is worth less than min_notional";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::CollusiveSpoofing,
    key: &[KeyPart::Group, KeyPart::Venue, KeyPart::Instr],
    misses: &[LINK, STRANGER, LIFE, RATIO, FILLED, DISTANCE, STALE, NOTIONAL],
    sides: BOTH_SIDES,
    cast,
    write,
};

/// Makes two owners of the group of a third, which does nothing: the owner after which a group is named has no `party`
/// event.
fn cast(world: &mut SimulatedMarket, miss: Option<&'static str>) -> ScriptCast {
    let mut participants = SceneParticipants::new(world, false);
    let head = participants.lead;
    participants.lead = world.cast_scored(head, 80);
    let partner = match miss {
        Some(STRANGER) => world.cast(false),
        Some(LINK) => world.cast_scored(head, 79),
        _ => world.cast_linked(head),
    };
    ScriptCast { participants, partner: Some(partner) }
}

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let px = match script.miss {
        Some(DISTANCE) => -10,
        Some(FILLED) => -3,
        _ if terms.edge => -9,
        _ => terms.rng.between(-9, -3),
    };
    let small = (terms.qty_worth(px, 60_000) / 5 + 1).max(terms.rng.between(1, 5) * 100);
    let [large, small] = match script.miss {
        Some(RATIO) => [small * 5 - 1, small],
        Some(NOTIONAL) => {
            let large = terms.qty_worth(px, 50_000) - 1;
            [large, (large / 6).max(1)]
        }
        _ if terms.edge => [small * 5, small],
        _ => [small * terms.rng.between(6, 7), small],
    };
    let order = script.rest(Role::Lead, Direction::With, px, large);
    script.pause(terms.millis(50, 400));
    if script.misses(FILLED) {
        script.take(Role::Other, Direction::Against, px, large / 10 + 1);
    }
    script.rest(Role::Partner, Direction::Against, 2, small);
    script.pause(terms.millis(20, 200));
    if script.misses(LIFE) {
        script.wait_until(4 * S);
    }
    script.take(Role::Other, Direction::With, 2, small);
    match script.miss {
        Some(LIFE) => script.wait_until(5 * S + 1),
        Some(STALE) => script.pause(1_500 * MS + 1),
        _ if terms.edge => script.pause(1_500 * MS),
        _ => script.pause(terms.millis(10, 1_400)),
    }
    script.cancel(order);
    script.fires(Completion::Cancel);
}
