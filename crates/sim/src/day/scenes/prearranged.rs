//! Prearranged trades: two owners enter equal orders at the same time, which fill each other.

use super::super::world::SimulatedMarket;
use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, ScriptCast, solo,
};
use super::{MS, S, Scenario};

const FEW: &str = "one match fewer than min_repeat";
const LATE: &str = "the last orders come a nanosecond more than entry_gap_ms after each other";
const PART: &str = "one of the last orders is a share larger than the other";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::Prearranged,
    key: &[KeyPart::Owners, KeyPart::Instr],
    misses: &[FEW, LATE, PART],
    sides: BOTH_SIDES,
    cast,
    write,
};

fn cast(world: &mut SimulatedMarket, miss: Option<&'static str>) -> ScriptCast {
    ScriptCast { partner: Some(world.cast(false)), ..solo(world, miss) }
}

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let matches = if script.misses(FEW) { 2 } else { 3 };
    for n in 1..=matches {
        let (px, qty) = (terms.rng.between(-2, 2), terms.rng.between(2, 30) * 100);
        let is_last = n == matches;
        let excess = i64::from(is_last && script.misses(PART));
        let order = script.rest(Role::Lead, Direction::With, px, qty + excess);
        script.pause(match script.miss {
            Some(LATE) if is_last => S + 1,
            _ if terms.edge => S,
            _ => terms.millis(1, 900),
        });
        script.take(Role::Partner, Direction::Against, px, qty);
        if n == 3 {
            script.fires(Completion::LastExec);
        }
        if excess > 0 {
            script.pause(500 * MS);
            script.cancel(order);
        }
        script.pause(terms.millis(500, 4_000));
    }
}
