//! Painting the tape: an owner gives many small prints in one direction and ends up where it began.

use super::Scenario;
use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo,
};

const FEW: &str = "one print fewer than min_trades";
const UPTICKS: &str = "one tick in the direction fewer than min_upticks";
const NET: &str = "the position changes by more than a tenth of the volume";
const SIZE: &str = "one of ten prints is a share larger than max_trade_qty";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::PaintingTape,
    key: &[KeyPart::Group, KeyPart::Instr],
    misses: &[FEW, UPTICKS, NET, SIZE],
    sides: BOTH_SIDES,
    cast: solo,
    write,
};

/// Ticks between two prints: more than five basis points, or a purchase and a sale would be a wash trade.
const STEP_TICKS: i64 = 7;

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let prints = if script.misses(FEW) { 9 } else { 10 };
    let rises = match script.miss {
        Some(UPTICKS) => 6,
        // The last purchase is on an odd step, which no sale may have.
        Some(NET) => 9,
        _ => terms.rng.between(7, 9),
    };
    script.walls = [6, STEP_TICKS * rises + 5];
    for n in 0..prints {
        // Up, and then back on the same prices: purchases stay on the even steps, sales on the odd ones.
        let px = STEP_TICKS * n.min(2 * rises - n);
        let direction = match n % 2 == 0 || script.misses(NET) && n == 9 {
            true => Direction::With,
            false => Direction::Against,
        };
        let opposite = if direction == Direction::With { Direction::Against } else { Direction::With };
        let qty = if script.misses(SIZE) && n == 3 { 101 } else { 100 };
        // More than a second between both entries, or the orders would seem prearranged.
        script.rest(Role::Lead, direction, px, qty);
        script.pause(terms.millis(1_100, 1_600));
        script.take(Role::Other, opposite, px, qty);
        if n == 9 {
            script.fires(Completion::Exec(Role::Lead));
        }
        script.pause(terms.millis(200, 1_500));
    }
    script.settle();
}
