//! Layering across venues: the layers are on one venue, the execution on another.

use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo,
};
use super::{MS, S, Scenario};

const ORDERS: &str = "one order fewer than min_orders";
const LEVELS: &str = "one price fewer than min_levels";
const BUILD: &str = "the oldest of four orders was entered exactly build_ms before the execution";
const LATE: &str =
    "the cancel that reaches cancel_pct comes a nanosecond more than cancel_ms after the execution";
const SIZE: &str = "the layers are one share less than min_size_ratio times what was executed";
const SHARE: &str = "less than cancel_pct of the layers are cancelled in time";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::CrossVenueLayering,
    key: &[KeyPart::Owner, KeyPart::Instr, KeyPart::Side],
    misses: &[ORDERS, LEVELS, BUILD, LATE, SIZE, SHARE],
    sides: BOTH_SIDES,
    cast: solo,
    write,
};

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let small = terms.rng.between(2, 9) * 100;
    let count = match script.miss {
        None => terms.rng.between(4, 6),
        Some(ORDERS) => 3,
        Some(SHARE) => 5,
        Some(_) => 4,
    };
    let least = small * 3 - 1;
    let qty = |n: i64| match script.miss {
        Some(SIZE) if n == 3 => least - 3 * (least / 4),
        Some(SIZE) => least / 4,
        Some(ORDERS) => small * 2,
        _ => small * 5 / 4 + n * 7,
    };
    let quantities: Vec<i64> = (0..count).map(qty).collect();
    let mut layers = Vec::new();
    for (n, &qty) in quantities.iter().enumerate() {
        let levels = if script.misses(LEVELS) { 2 } else { 4 };
        layers.push(script.rest(Role::Lead, Direction::With, -1 - n as i64 % levels, qty));
        script.pause(terms.millis(50, 300));
    }
    script.on_book(1);
    script.rest(Role::Lead, Direction::Against, 1, small);
    script.pause(terms.millis(20, 300));
    if script.misses(BUILD) {
        script.wait_until(10 * S);
    }
    script.take(Role::Other, Direction::With, 1, small);
    let executed_ns = script.clock();
    script.on_book(0);
    script.pause(terms.millis(100, 600));
    let (total, mut cancelled, mut has_fired) = (quantities.iter().sum::<i64>(), 0, false);
    for (&layer, qty) in layers.iter().zip(quantities) {
        let reaches = (cancelled + qty) * 100 >= 80 * total;
        match script.miss {
            Some(LATE | SHARE) if reaches => script.wait_until(executed_ns + 3 * S + 1),
            None if reaches && terms.edge => script.wait_until(executed_ns + 3 * S),
            _ => {}
        }
        script.cancel(layer);
        cancelled += qty;
        if reaches && !has_fired {
            has_fired = true;
            script.fires(Completion::Cancel);
        }
        script.pause(20 * MS);
    }
}
