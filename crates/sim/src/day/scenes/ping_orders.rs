//! Ping orders: small orders that never rest look for hidden liquidity, and a large order follows.

use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo,
};
use super::{MS, S, Scenario};

const FEW: &str = "one probe fewer than min_pings";
const BIG: &str = "one of five probes is a share larger than max_ping_qty";
const SMALL: &str = "the order is one share less than min_follow_ratio times the largest probe";
const LATE: &str = "the order comes a nanosecond more than follow_ms after the last probe";
const WINDOW: &str = "the first of five probes is exactly window_ms older than the order";
const BLIND: &str = "no probe was executed";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::PingOrders,
    key: &[KeyPart::Owner, KeyPart::Venue, KeyPart::Instr, KeyPart::Side],
    misses: &[FEW, BIG, SMALL, LATE, WINDOW, BLIND],
    sides: BOTH_SIDES,
    cast: solo,
    write,
};

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let count = match script.miss {
        None => terms.rng.between(5, 7),
        Some(FEW) => 4,
        Some(_) => 5,
    };
    let hit = terms.rng.between(0, count - 2);
    script.rest(Role::Other, Direction::Against, 2, 150);
    script.pause(100 * MS);
    let start_ns = script.clock();
    let mut largest = 0;
    for n in 0..count {
        // The last probe is the large one, so that the others are too few whatever comes before.
        let qty = if script.misses(BIG) && n == count - 1 { 101 } else { terms.rng.between(40, 100) };
        largest = largest.max(qty);
        // One probe meets the resting order; no other order is near.
        let px = if n == hit && !script.misses(BLIND) { 2 } else { 1 };
        script.take(Role::Lead, Direction::With, px, qty);
        if n < count - 1 {
            script.pause(if script.misses(WINDOW) { 400 * MS } else { terms.millis(40, 100) });
        }
    }
    let ratio = if terms.edge { 20 } else { terms.rng.between(21, 30) };
    let qty = if script.misses(SMALL) { largest * 20 - 1 } else { largest * ratio };
    match script.miss {
        Some(WINDOW) => script.wait_until(start_ns + 2 * S),
        Some(LATE) => script.pause(S + 1),
        _ if terms.edge => script.pause(S),
        _ => script.pause(terms.millis(20, 400)),
    }
    let order = script.rest(Role::Lead, Direction::With, -2, qty);
    script.fires(Completion::Entry);
    script.pause(terms.millis(300, 900));
    script.cancel(order);
}
