//! Abusive squeeze: a group holds much of a contract shortly before it expires, and the contract trades above the next one.

use super::Scenario;
use super::script::{Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo};
use unitape_model::Side;

const SHARE: &str = "a share less than min_share_pct is held";
const LEVEL: &str = "both contracts trade at the same price";
const EARLY: &str = "the contract expires a day after settle_days";
const MISSES: [&str; 3] = [SHARE, LEVEL, EARLY];

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::AbusiveSqueeze,
    key: &[KeyPart::Group, KeyPart::Instr],
    misses: &MISSES,
    sides: &[Side::Buy],
    cast: solo,
    write,
};

/// `settle_days`.
pub(super) const SETTLE_DAYS: i32 = 3;

/// The lead sells its position so much lower than it bought it, or both would be a wash trade.
const UNWIND_TICKS: i64 = 12;

/// Returns whether the `n`th near miss needs a contract that expires later.
pub(super) fn is_early(n: usize) -> bool {
    MISSES[n % MISSES.len()] == EARLY
}

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    // On another UTC day than that of the start the contract has fewer days left.
    let days = if script.misses(EARLY) { SETTLE_DAYS + 1 } else { SETTLE_DAYS };
    if terms.days_left != Some(days) {
        script.is_abandoned = true;
        return;
    }
    let is_inside = script.miss.is_none() && !terms.edge;
    let premium = match script.miss {
        Some(LEVEL) => 0,
        _ if is_inside => terms.rng.between(2, 20),
        _ => 1,
    };
    // Both contracts have the same tick. Where their prices have parted, the lower one trades as high as the other.
    let distance = terms.other_middle - terms.middle;
    let (px, next_px) = (distance.max(0), (-distance).max(0) - premium);
    let reach = px.max(next_px.abs()) + UNWIND_TICKS + 6;
    script.walls = [reach, reach];
    let qty = terms.rng.between(1, 9) * 100;
    script.on_book(1);
    script.rest(Role::Other, Direction::Against, next_px, qty);
    script.pause(terms.millis(1_100, 3_000));
    script.take(Role::Other, Direction::With, next_px, qty);
    script.on_book(0);
    script.pause(terms.millis(500, 3_000));
    let surplus = match script.miss {
        Some(SHARE) => -1,
        _ if is_inside => terms.rng.between(1, 50) * 100,
        _ => 0,
    };
    script.corner(px, surplus);
    script.pause(terms.millis(500, 3_000));
    script.report_position();
    script.fires(Completion::Position);
    script.pause(terms.millis(500, 3_000));
    script.unwind(px - UNWIND_TICKS);
}
