//! Fat finger: a new order has a price or a size that was hardly meant.

use super::super::world::ListedInstrument;
use super::script::{
    BOTH_SIDES, Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, solo,
};
use super::{MS, Scenario};

const PRICE: &str = "the price is exactly max_dev_bps from the middle, or the last tick within";
const SIZE: &str = "the largest order within max_notional and max_adv_pct";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::FatFinger,
    key: &[KeyPart::Trader, KeyPart::Venue, KeyPart::Instr, KeyPart::Oid],
    misses: &[PRICE, SIZE],
    sides: BOTH_SIDES,
    cast: solo,
    write,
};

/// Billionths of a unit of the currency.
const NANO: i128 = 1_000_000_000;

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    let is_of_price = script.misses(PRICE) || script.miss.is_none() && terms.n.is_multiple_of(2);
    if is_of_price {
        // The walls are as far from the middle as each other, so the mid price is the middle.
        let most = ListedInstrument::ticks_of_bps(terms.middle, 500);
        let beyond = match script.miss {
            Some(_) => 0,
            None if terms.edge => 1,
            None => terms.rng.between(2, 40),
        };
        script.take(Role::Lead, Direction::With, most + beyond, 100);
        script.fires_for(Completion::Entry, Some("price"));
        return;
    }
    let px = terms.rng.between(-4, -1);
    let nano = i128::from(terms.listed.nano(terms.px(px)));
    let by_notional = (5_000_000 * NANO / nano) as i64;
    let by_adv = terms.listed.adv / 5;
    let most = by_notional.min(by_adv);
    let (qty, reason) = match script.miss {
        Some(_) => (most, None),
        None => (most + 1, Some(if by_adv < by_notional { "adv" } else { "notional" })),
    };
    let order = script.rest(Role::Lead, Direction::With, px, qty);
    script.fires_for(Completion::Entry, reason);
    script.pause(terms.millis(300, 3_000) + MS);
    script.cancel(order);
}
