//! Parking: an owner sells to a counterparty and buys the same back at nearly the same price.

use super::super::world::SimulatedMarket;
use super::script::{
    Completion, Direction, KeyPart, Role, SceneDefinition, SceneTerms, Script, ScriptCast, solo,
};
use super::{S, Scenario};
use unitape_model::Side;

const QTY: &str = "a share fewer is bought back";
const PRICE: &str = "the purchase is a tick more than px_tol_bps from the sale";
const STRANGER: &str = "another counterparty sells it back";
const ORDER: &str = "the purchase comes before the sale";

pub(super) const DEFINITION: SceneDefinition = SceneDefinition {
    scenario: Scenario::Parking,
    key: &[KeyPart::Owner, KeyPart::Cpty, KeyPart::Instr],
    misses: &[QTY, PRICE, STRANGER, ORDER],
    sides: &[Side::Sell],
    cast,
    write,
};

/// Makes a cast with a partner. The executions of the lead name the counterparty.
fn cast(world: &mut SimulatedMarket, miss: Option<&'static str>) -> ScriptCast {
    let ScriptCast { participants, .. } = solo(world, miss);
    let partner = world.cast(false);
    world.disclose_counterparties(participants.lead);
    ScriptCast { participants, partner: Some(partner) }
}

fn write(terms: &mut SceneTerms<'_>, script: &mut Script) {
    // The tolerance is of the price of the sale.
    let most = terms.middle * 20 / 10_000;
    let distance = match script.miss {
        Some(PRICE) => most + 1,
        _ if terms.edge => most,
        _ => terms.rng.between(0, most),
    };
    let purchase_px = if terms.rng.one_in(2) { distance } else { -distance };
    let reach = distance + 6;
    script.walls = [reach, reach];
    let qty = terms.rng.between(2, 30) * 100;
    // Within a minute both would be a wash trade.
    if script.misses(ORDER) {
        purchase(terms, script, purchase_px, qty);
        script.pause(60 * S);
    }
    script.rest(Role::Partner, Direction::Against, 0, qty);
    script.pause(terms.millis(1_100, 3_000));
    script.take(Role::Lead, Direction::With, 0, qty);
    if !script.misses(ORDER) {
        script.pause(60 * S + terms.millis(0, 9_000));
        purchase(terms, script, purchase_px, qty);
        script.fires(Completion::Exec(Role::Lead));
    }
}

/// Lets the lead buy the sold quantity back. More than a second passes between both entries, or the orders would seem
/// prearranged.
fn purchase(terms: &mut SceneTerms<'_>, script: &mut Script, px: i64, sale_qty: i64) {
    let qty = sale_qty - i64::from(script.misses(QTY));
    let seller = if script.misses(STRANGER) { Role::Other } else { Role::Partner };
    script.rest(seller, Direction::With, px, qty);
    script.pause(terms.millis(1_100, 3_000));
    script.take(Role::Lead, Direction::Against, px, qty);
}
