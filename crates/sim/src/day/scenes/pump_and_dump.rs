//! Pump and dump: an owner buys, news and volume drive the price up, and the owner sells.

use super::script::{
    Completion, Direction, InstrumentPrints, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo,
};
use super::{S, Scenario};
use unitape_model::Side;

const PUMP: &str = "the price rises by a tick less than pump_pct";
const DUMP: &str = "a share less than dump_pct is sold";
const PROFIT: &str = "the sale is at the average price of the purchases";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::PumpAndDump,
    key: &[KeyPart::Owner, KeyPart::Instr],
    misses: &[PUMP, DUMP, PROFIT],
    sides: &[Side::Buy],
    cast: solo,
    write,
};

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let Some(least_volume) = terms.prints.and_then(|prints| least_volume(prints, terms.now_ts)) else {
        script.is_abandoned = true;
        return;
    };
    let is_inside = script.miss.is_none() && !terms.edge;
    let least = (terms.middle + 4) / 5;
    let high = match script.miss {
        Some(PUMP) => least - 1,
        _ if is_inside => least + terms.rng.between(1, 40),
        _ => least,
    };
    script.walls = [6, high + 5];
    let qty = terms.rng.between(1, 9) * 100;
    let sale_qty = match script.miss {
        Some(DUMP) => qty * 14 / 10 - 1,
        _ if is_inside => terms.rng.between(qty * 14 / 10, 2 * qty),
        _ => qty * 14 / 10,
    };
    let sale_px = match script.miss {
        Some(PROFIT) => 0,
        _ if is_inside => terms.rng.between(1, high),
        _ => 1,
    };
    trade(terms, script, Role::Lead, 0, qty);
    trade(terms, script, Role::Lead, 0, qty);
    script.pause(terms.millis(200, 2_000));
    script.news(terms.rng.between(10, 30));
    trade(terms, script, Role::Other, high / 2, qty);
    // The rest of the volume that the day needs.
    trade(terms, script, Role::Other, high, (least_volume - 3 * qty).max(100));
    script.pause(terms.millis(500, 3_000));
    script.rest(Role::Other, Direction::With, sale_px, sale_qty);
    script.pause(terms.millis(1_100, 3_000));
    script.take(Role::Lead, Direction::Against, sale_px, sale_qty);
    script.fires(Completion::Exec(Role::Lead));
    script.settle();
}

/// Returns the volume that the UTC day still needs for `pump_volume_mult` times the mean of thirty days. Returns `None`
/// if there is no volume before, or if the day ends while the scene acts.
fn least_volume(prints: &InstrumentPrints, now_ts: u64) -> Option<i64> {
    let [before, later] = [now_ts, now_ts + 60 * S].map(|ts| prints.volume_before(ts));
    (before > 0 && before == later).then(|| (before + 5) / 6 - prints.volume_today(now_ts))
}

/// Makes one trade. More than a second passes between both entries, or the orders would seem prearranged.
fn trade(terms: &mut SceneTerms<'_>, script: &mut Script, taker: Role, px: i64, qty: i64) {
    script.rest(Role::Other, Direction::Against, px, qty);
    script.pause(terms.millis(1_100, 2_000));
    script.take(taker, Direction::With, px, qty);
}
