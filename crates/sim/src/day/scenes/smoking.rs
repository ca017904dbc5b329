//! Smoking: an attractive order draws others in and is repriced before they trade with it.

use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo,
};
use super::{MS, Scenario};

const FEW: &str = "one lure fewer than min_events";
const ATTRACT: &str = "the last lure is repriced by one tick less than attract_ticks";
const LATE: &str = "the last lure is repriced a nanosecond after reprice_ms";
const EQUAL: &str = "the last lure is as good as the best and not better";
const REPLACE: &str = "the last lure is cancelled and entered again, not amended";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::Smoking,
    key: &[KeyPart::Owner, KeyPart::Venue, KeyPart::Instr],
    misses: &[FEW, ATTRACT, LATE, EQUAL, REPLACE],
    sides: BOTH_SIDES,
    cast: solo,
    write,
};

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let lures = if script.misses(FEW) { 2 } else { 3 };
    for n in 1..=lures {
        let is_wrong = |script: &Script, reason| n == lures && script.misses(reason);
        let equal = is_wrong(script, EQUAL).then(|| script.rest(Role::Other, Direction::With, -1, 200));
        let lure = script.rest(Role::Lead, Direction::With, -1, 300 + n * 100);
        let px = match () {
            () if is_wrong(script, ATTRACT) => -2,
            () if terms.edge => -3,
            () => terms.rng.between(-5, -3),
        };
        match () {
            () if is_wrong(script, LATE) => script.pause(500 * MS + 1),
            () if terms.edge => script.pause(500 * MS),
            () => script.pause(terms.millis(50, 450)),
        }
        let lure = if is_wrong(script, REPLACE) {
            script.cancel(lure);
            script.rest(Role::Lead, Direction::With, px, 300 + n * 100)
        } else {
            script.amend(lure, px);
            lure
        };
        script.pause(terms.millis(10, 200));
        equal.into_iter().for_each(|order| script.cancel(order));
        script.take(Role::Other, Direction::Against, px, 200);
        if n == 3 {
            script.fires(Completion::Exec(Role::Lead));
        }
        script.pause(terms.millis(100, 400));
        script.cancel(lure);
        script.pause(terms.millis(500, 2_500));
    }
}
