//! The scenarios, one folder each: definition, code, and its own cases beside it. The slow twins are in `twin/naive`.
//!
//! A new one is its folder, its twin and its line in [`ALL`]; `docs/writing-a-scenario.md` explains how.

pub mod abusive_squeeze;
pub mod collusive_spoofing;
pub mod comms_lexicon;
pub mod cross_product;
pub mod cross_venue_layering;
pub mod eu_volatility_interruption;
pub mod excessive_bid;
pub mod fat_finger;
pub mod front_running;
pub mod insider_news;
pub mod layering;
pub mod luld;
pub mod marking_close;
pub mod momentum_ignition;
pub mod mwcb;
pub mod off_market_trade;
pub mod order_to_trade_ratio;
pub mod painting_tape;
pub mod parking;
pub mod payments_passthrough;
pub mod payments_round;
pub mod payments_sanctions;
pub mod payments_structuring;
pub mod payments_velocity;
pub mod ping_orders;
pub mod prearranged;
pub mod price_spike;
pub mod pump_and_dump;
pub mod quote_stuffing;
pub mod reg_sho_201;
pub mod restricted_list;
pub mod runaway_algo;
pub mod smoking;
pub mod spoofing;
pub mod stop_hunting;
pub mod tailgating;
pub mod trade_through;
pub mod volume_spike;
pub mod wash_trade;

use crate::def::{ScenarioDef, definition};
use crate::error::Error;
use crate::params::{ScenarioParams, ScenarioSelection};
#[cfg(any(test, feature = "twin"))]
use crate::twin::naive::Twin;
use crate::watch::{Scenario, SharedStateKind};
use unitape_model::EventKind;

/// A scenario that can be run.
pub struct ScenarioEntry {
    /// Its name, which is that of its definition.
    pub id: &'static str,
    /// The kinds of events that it judges.
    pub inputs: &'static [EventKind],
    /// The shared state that it needs.
    pub needs: &'static [SharedStateKind],
    /// Makes one with empty state.
    pub make: fn(&ScenarioParams) -> Box<dyn Scenario>,
    /// Makes its slow twin.
    #[cfg(any(test, feature = "twin"))]
    pub twin: fn(&ScenarioParams) -> Box<dyn Twin>,
}

impl ScenarioEntry {
    /// Returns the definition of the scenario.
    ///
    /// # Panics
    /// Panics if the agreed list, or the file of the types of parameters, has no such scenario; a test looks for each.
    pub fn def(&self) -> &'static ScenarioDef {
        definition(self.id).expect("each scenario of the registry has a definition")
    }
}

macro_rules! entry {
    ($folder:ident, $scenario:ident) => {
        ScenarioEntry {
            id: $folder::ID,
            inputs: $folder::INPUTS,
            needs: $folder::NEEDS,
            make: |params| Box::new($folder::$scenario::new(params)),
            #[cfg(any(test, feature = "twin"))]
            twin: |params| Box::new(crate::twin::naive::$folder::Slow::new(params)),
        }
    };
}

/// All of them, in the order of their names.
pub const ALL: &[ScenarioEntry] = &[
    entry!(abusive_squeeze, SqueezeScenario),
    entry!(collusive_spoofing, CollusiveSpoofingScenario),
    entry!(comms_lexicon, LexiconScenario),
    entry!(cross_product, CrossProductScenario),
    entry!(cross_venue_layering, CrossVenueLayeringScenario),
    entry!(eu_volatility_interruption, VolatilityInterruptionScenario),
    entry!(excessive_bid, ExcessiveBidScenario),
    entry!(fat_finger, FatFingerScenario),
    entry!(front_running, FrontRunningScenario),
    entry!(insider_news, InsiderNewsScenario),
    entry!(layering, LayeringScenario),
    entry!(luld, LimitBandScenario),
    entry!(marking_close, MarkingCloseScenario),
    entry!(momentum_ignition, MomentumIgnitionScenario),
    entry!(mwcb, MarketWideBreakerScenario),
    entry!(off_market_trade, OffMarketTradeScenario),
    entry!(order_to_trade_ratio, OrderToTradeScenario),
    entry!(painting_tape, PaintingTapeScenario),
    entry!(parking, ParkingScenario),
    entry!(payments_passthrough, PassthroughScenario),
    entry!(payments_round, RoundAmountsScenario),
    entry!(payments_sanctions, SanctionsScenario),
    entry!(payments_structuring, StructuringScenario),
    entry!(payments_velocity, VelocityScenario),
    entry!(ping_orders, PingOrdersScenario),
    entry!(prearranged, PrearrangedScenario),
    entry!(price_spike, PriceSpikeScenario),
    entry!(pump_and_dump, PumpAndDumpScenario),
    entry!(quote_stuffing, QuoteStuffingScenario),
    entry!(reg_sho_201, ShortSaleTestScenario),
    entry!(restricted_list, RestrictedListScenario),
    entry!(runaway_algo, RunawayAlgoScenario),
    entry!(smoking, SmokingScenario),
    entry!(spoofing, SpoofingScenario),
    entry!(stop_hunting, StopHuntingScenario),
    entry!(tailgating, TailgatingScenario),
    entry!(trade_through, TradeThroughScenario),
    entry!(volume_spike, VolumeSpikeScenario),
    entry!(wash_trade, WashTradeScenario),
];

/// Finds the definition with this name.
pub fn find(id: &str) -> Result<&'static ScenarioDef, Error> {
    ALL.iter().find(|entry| entry.id == id).map(ScenarioEntry::def).ok_or_else(|| Error::UnknownScenario {
        name: id.to_owned(),
        scenarios: ALL.iter().map(|entry| entry.id).collect::<Vec<_>>().join(", "),
    })
}

/// Returns the scenarios that `selection` runs.
pub(crate) fn selected(
    selection: &ScenarioSelection,
) -> Result<impl Iterator<Item = &'static ScenarioEntry> + use<>, Error> {
    let only = selection.scenarios.iter().map(|id| find(id)).collect::<Result<Vec<_>, _>>()?;
    Ok(ALL.iter().filter(move |entry| only.is_empty() || only.iter().any(|def| def.id == entry.id)))
}

#[cfg(test)]
mod tests;
