//! Instruments that are linked to others, for the scenes that need such a pair: the last ones of the list.

use super::super::market::CONSTITUENTS_MAX;
use super::super::world::{ContractTerms, SimulatedMarket};
use super::{Scenario, abusive_squeeze};
use unitape_model::InstrumentId;

/// Returns the instruments of a scene, the `n`th of its kind, if it needs certain ones: the instrument that it is about
/// first.
pub(crate) fn instruments_of(
    scenario: Scenario,
    miss: bool,
    n: usize,
    world: &SimulatedMarket,
) -> Option<Vec<InstrumentId>> {
    match scenario {
        Scenario::CrossProduct => Some(pair(world, 0).to_vec()),
        Scenario::AbusiveSqueeze if miss && abusive_squeeze::is_early(n) => Some(pair(world, 2).to_vec()),
        Scenario::AbusiveSqueeze => Some(pair(world, 1).to_vec()),
        Scenario::Mwcb => Some(world.instrument_ids().take(CONSTITUENTS_MAX).collect()),
        _ => None,
    }
}

/// Links the pairs of a scenario's scenes. Of two contracts, the one that expires later has the prices of the other.
pub(crate) fn link(scenario: Scenario, world: &mut SimulatedMarket) {
    if scenario == Scenario::CrossProduct {
        let [underlying, linked] = pair(world, 0);
        return world.link_instrument(linked, ContractTerms { underlying, expiry_days: None });
    }
    for (number, days) in [(1, abusive_squeeze::SETTLE_DAYS), (2, abusive_squeeze::SETTLE_DAYS + 1)] {
        let ([near, next], underlying) = (pair(world, number), InstrumentId(number - 1));
        world.link_instrument(near, ContractTerms { underlying, expiry_days: Some(days) });
        world.link_instrument(next, ContractTerms { underlying, expiry_days: Some(days + 30) });
        let near = world.instruments[near.index()].clone();
        let next = &mut world.instruments[next.index()];
        (next.tick_nano, next.decimals, next.reference) = (near.tick_nano, near.decimals, near.reference);
    }
}

/// Returns a pair by its number from the end of the list.
fn pair(world: &SimulatedMarket, number: u32) -> [InstrumentId; 2] {
    let last = world.instruments.len() as u32 - 1 - 2 * number;
    [InstrumentId(last - 1), InstrumentId(last)]
}
