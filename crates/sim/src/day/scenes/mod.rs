//! Planted scenes: each acts out one scenario, or just misses it.
//!
//! A scene has a cast of its own that does nothing else, and a book to itself while it acts (the background keeps out of
//! it, [`SceneContext`] sees to that), so that its label is exact. The definitions are those of the shared
//! scenarios, with their default parameters; the distances to the thresholds are drawn, the threshold itself among them.

mod abusive_squeeze;
mod close;
mod collusive_spoofing;
mod cross_product;
mod cross_venue_layering;
mod eu_volatility_interruption;
mod excessive_bid;
mod fat_finger;
mod front_running;
mod insider_news;
mod layering;
mod linked;
mod luld;
mod messages;
mod momentum_ignition;
mod mwcb;
mod off_market_trade;
mod painting_tape;
mod parking;
mod payment_script;
mod payments;
mod ping_orders;
mod prearranged;
mod price_spike;
mod pump_and_dump;
mod restricted_list;
mod runaway;
mod script;
mod short_sale;
mod smoking;
mod spoofing;
mod stage;
mod stop_hunting;
mod tailgating;
mod trade_through;
mod volume_spike;
mod wash;

pub(crate) use linked::{instruments_of, link};
pub(crate) use payment_script::{PaymentAction, PaymentScene, PlannedPayments, Transfer};
pub(crate) use stage::{PendingLabel, SceneContext};

use super::config::WINDOW_NS;
use super::world::SimulatedMarket;
use crate::rng::Rng;

/// Scenarios that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the ids of the scenarios
pub enum Scenario {
    Spoofing,
    Layering,
    WashTrade,
    OrderToTradeRatio,
    QuoteStuffing,
    MarkingClose,
    RunawayAlgo,
    PaymentsStructuring,
    CrossVenueLayering,
    CollusiveSpoofing,
    PingOrders,
    Smoking,
    ExcessiveBid,
    FatFinger,
    RegSho201,
    MomentumIgnition,
    PaintingTape,
    Prearranged,
    OffMarketTrade,
    Tailgating,
    FrontRunning,
    StopHunting,
    TradeThrough,
    PriceSpike,
    VolumeSpike,
    PaymentsPassthrough,
    PaymentsSanctions,
    PaymentsVelocity,
    PaymentsRound,
    RestrictedList,
    InsiderNews,
    CommsLexicon,
    Parking,
    CrossProduct,
    Luld,
    EuVolatilityInterruption,
    PumpAndDump,
    AbusiveSqueeze,
    Mwcb,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Scenario; 39] = [
        Scenario::Spoofing,
        Scenario::Layering,
        Scenario::WashTrade,
        Scenario::OrderToTradeRatio,
        Scenario::QuoteStuffing,
        Scenario::MarkingClose,
        Scenario::RunawayAlgo,
        Scenario::PaymentsStructuring,
        Scenario::CrossVenueLayering,
        Scenario::CollusiveSpoofing,
        Scenario::PingOrders,
        Scenario::Smoking,
        Scenario::ExcessiveBid,
        Scenario::FatFinger,
        Scenario::RegSho201,
        Scenario::MomentumIgnition,
        Scenario::PaintingTape,
        Scenario::Prearranged,
        Scenario::OffMarketTrade,
        Scenario::Tailgating,
        Scenario::FrontRunning,
        Scenario::StopHunting,
        Scenario::TradeThrough,
        Scenario::PriceSpike,
        Scenario::VolumeSpike,
        Scenario::PaymentsPassthrough,
        Scenario::PaymentsSanctions,
        Scenario::PaymentsVelocity,
        Scenario::PaymentsRound,
        Scenario::RestrictedList,
        Scenario::InsiderNews,
        Scenario::CommsLexicon,
        Scenario::Parking,
        Scenario::CrossProduct,
        Scenario::Luld,
        Scenario::EuVolatilityInterruption,
        Scenario::PumpAndDump,
        Scenario::AbusiveSqueeze,
        Scenario::Mwcb,
    ];

    /// The scenarios of a simple day. A market of several days can have all.
    pub const SIMPLE_DAY: [Scenario; 8] = [
        Scenario::Spoofing,
        Scenario::Layering,
        Scenario::WashTrade,
        Scenario::OrderToTradeRatio,
        Scenario::QuoteStuffing,
        Scenario::MarkingClose,
        Scenario::RunawayAlgo,
        Scenario::PaymentsStructuring,
    ];

    /// Returns the scenarios that a market with these venues, instruments and days of this length can have.
    pub fn of_market(
        venues: usize,
        instruments: usize,
        days: u32,
        span_ns: u64,
    ) -> impl Iterator<Item = Scenario> {
        let is_possible = move |scenario: &Scenario| {
            scenario.venues_min() <= venues
                && scenario.instruments_min() <= instruments
                && scenario.days_min() <= days
                && scenario.span_min_ns() <= span_ns
        };
        Self::ALL.into_iter().filter(is_possible)
    }

    /// Returns whether the labels of a market of several days are complete for the scenario. The background may trigger
    /// the others by chance.
    pub const fn is_covered(self) -> bool {
        !matches!(
            self,
            Scenario::PingOrders
                | Scenario::Smoking
                | Scenario::ExcessiveBid
                | Scenario::FatFinger
                | Scenario::RegSho201
                | Scenario::MomentumIgnition
                | Scenario::PaintingTape
                | Scenario::Prearranged
                | Scenario::OffMarketTrade
                | Scenario::Tailgating
                | Scenario::StopHunting
                | Scenario::TradeThrough
                | Scenario::PriceSpike
                | Scenario::VolumeSpike
                | Scenario::PaymentsPassthrough
                | Scenario::PaymentsVelocity
                | Scenario::RestrictedList
                | Scenario::InsiderNews
                | Scenario::CrossProduct
                | Scenario::Luld
                | Scenario::EuVolatilityInterruption
                | Scenario::AbusiveSqueeze
                | Scenario::Mwcb
        )
    }

    /// Returns how many venues a scene needs.
    pub const fn venues_min(self) -> usize {
        if matches!(self, Scenario::CrossVenueLayering | Scenario::TradeThrough) { 2 } else { 1 }
    }

    /// Returns whether a scene has the books of its instrument on all venues to itself.
    pub(crate) const fn is_on_all_venues(self) -> bool {
        matches!(
            self,
            Scenario::StopHunting
                | Scenario::TradeThrough
                | Scenario::Luld
                | Scenario::PumpAndDump
                | Scenario::Mwcb
        ) || self.is_of_pair()
    }

    /// Returns whether a scene has two instruments that are linked.
    pub(crate) const fn is_of_pair(self) -> bool {
        matches!(self, Scenario::CrossProduct | Scenario::AbusiveSqueeze)
    }

    /// Returns whether a scene must know the earlier prints of its instrument.
    pub(crate) const fn follows_prints(self) -> bool {
        matches!(self, Scenario::Luld | Scenario::PumpAndDump)
    }

    /// Returns whether the cast of a scene trades in the opening auction, whose price the scene needs.
    pub(crate) const fn joins_auction(self) -> bool {
        matches!(self, Scenario::Luld)
    }

    /// Returns how many instruments a market with a scene has at least.
    pub const fn instruments_min(self) -> usize {
        if self.is_of_pair() || matches!(self, Scenario::Mwcb) { 8 } else { 1 }
    }

    /// Returns on which day of a market the first scene can be. The watch compares some payments with those of earlier
    /// days.
    pub const fn days_min(self) -> u32 {
        if matches!(self, Scenario::PaymentsVelocity | Scenario::PumpAndDump) { 2 } else { 1 }
    }

    /// Returns how long a day a scene needs, nanoseconds.
    pub(crate) const fn span_min_ns(self) -> u64 {
        match self {
            Scenario::MarkingClose => 2 * WINDOW_NS,
            Scenario::PaymentsPassthrough => payments::PASSTHROUGH_NS + 60 * S,
            Scenario::InsiderNews => insider_news::LONGEST_NS + WINDOW_NS + 1_000 * S,
            Scenario::Mwcb => 3_600 * S,
            _ => 0,
        }
    }

    /// Returns whether the scenes are scripts of payments.
    pub(crate) const fn is_of_payments(self) -> bool {
        matches!(
            self,
            Scenario::PaymentsStructuring
                | Scenario::PaymentsPassthrough
                | Scenario::PaymentsSanctions
                | Scenario::PaymentsVelocity
                | Scenario::PaymentsRound
        )
    }

    /// Returns whether a scene cannot be in an instrument, before or after a scene of another scenario on the same day: a
    /// fall by a tenth fires once a day, so the scene about it comes before others that may bring the price as low.
    pub(crate) const fn excludes(self, other: Scenario, is_before: bool) -> bool {
        use Scenario::{Luld, Mwcb, RegSho201};
        match (self, other) {
            (RegSho201, RegSho201) => true,
            (RegSho201, Luld | Mwcb) => !is_before,
            (Luld | Mwcb, RegSho201) => is_before,
            _ => false,
        }
    }

    /// Returns whether a scene must know the volume of its book.
    pub(crate) const fn measures_volume(self) -> bool {
        matches!(self, Scenario::VolumeSpike)
    }

    /// Returns the id of the scenario.
    pub const fn id(self) -> &'static str {
        match self {
            Scenario::Spoofing => "spoofing",
            Scenario::Layering => "layering",
            Scenario::WashTrade => "wash_trade",
            Scenario::OrderToTradeRatio => "order_to_trade_ratio",
            Scenario::QuoteStuffing => "quote_stuffing",
            Scenario::MarkingClose => "marking_close",
            Scenario::RunawayAlgo => "runaway_algo",
            Scenario::PaymentsStructuring => "payments_structuring",
            Scenario::CrossVenueLayering => "cross_venue_layering",
            Scenario::CollusiveSpoofing => "collusive_spoofing",
            Scenario::PingOrders => "ping_orders",
            Scenario::Smoking => "smoking",
            Scenario::ExcessiveBid => "excessive_bid",
            Scenario::FatFinger => "fat_finger",
            Scenario::RegSho201 => "reg_sho_201",
            Scenario::MomentumIgnition => "momentum_ignition",
            Scenario::PaintingTape => "painting_tape",
            Scenario::Prearranged => "prearranged",
            Scenario::OffMarketTrade => "off_market_trade",
            Scenario::Tailgating => "tailgating",
            Scenario::FrontRunning => "front_running",
            Scenario::StopHunting => "stop_hunting",
            Scenario::TradeThrough => "trade_through",
            Scenario::PriceSpike => "price_spike",
            Scenario::VolumeSpike => "volume_spike",
            Scenario::PaymentsPassthrough => "payments_passthrough",
            Scenario::PaymentsSanctions => "payments_sanctions",
            Scenario::PaymentsVelocity => "payments_velocity",
            Scenario::PaymentsRound => "payments_round",
            Scenario::RestrictedList => "restricted_list",
            Scenario::InsiderNews => "insider_news",
            Scenario::CommsLexicon => "comms_lexicon",
            Scenario::Parking => "parking",
            Scenario::CrossProduct => "cross_product",
            Scenario::Luld => "luld",
            Scenario::EuVolatilityInterruption => "eu_volatility_interruption",
            Scenario::PumpAndDump => "pump_and_dump",
            Scenario::AbusiveSqueeze => "abusive_squeeze",
            Scenario::Mwcb => "mwcb",
        }
    }

    /// Looks up a scenario by id. Unique beginnings and endings such as `wash`, `ping` and `structuring` are accepted
    /// too; of the endings of a simple day's scenarios and of others, the former win.
    pub fn from_id(id: &str) -> Option<Scenario> {
        let unique = |scenarios: &[Scenario]| {
            let mut near = scenarios.iter().filter(|s| s.id().starts_with(id) || s.id().ends_with(id));
            near.next().copied().filter(|_| !id.is_empty() && near.next().is_none())
        };
        let same = Self::ALL.into_iter().find(|s| s.id() == id);
        same.or_else(|| unique(&Self::SIMPLE_DAY)).or_else(|| unique(&Self::ALL))
    }

    /// Returns the longest duration of a scene, nanoseconds.
    pub(crate) const fn longest_ns(self) -> u64 {
        match self {
            Scenario::WashTrade => 70 * S,
            Scenario::RunawayAlgo => 40 * S,
            Scenario::MomentumIgnition => 170 * S,
            Scenario::PaintingTape => 60 * S,
            Scenario::Tailgating => 110 * S,
            Scenario::FrontRunning => 320 * S,
            Scenario::StopHunting => 205 * S,
            Scenario::PriceSpike => 440 * S,
            Scenario::VolumeSpike => 185 * S,
            // The window before the close is for others.
            Scenario::InsiderNews => insider_news::LONGEST_NS + WINDOW_NS,
            Scenario::Parking | Scenario::CrossProduct => 85 * S,
            Scenario::Luld => 350 * S,
            Scenario::PumpAndDump => 40 * S,
            Scenario::Mwcb => 10 * S,
            Scenario::MarkingClose => 0, // it has times of its own
            _ if self.is_of_payments() => 0,
            _ => 25 * S,
        }
    }
}

/// A scene under way.
pub(crate) trait Scene: std::fmt::Debug + Send {
    /// Acts, and returns the time of the scene's next action, or `None` when the scene is over.
    fn play(&mut self, stage: &mut SceneContext<'_>) -> Option<u64>;

    /// Sends a request that a control refuses, and returns the time of the next one, or `None` when it gives up. A
    /// scene whose lead obeys gives up at once.
    fn send_refused(&mut self, _stage: &mut SceneContext<'_>) -> Option<u64> {
        None
    }

    /// Returns the book whose volume by the minute the scene must know.
    fn measured_book(&self) -> Option<u32> {
        None
    }
}

/// Makes a scene of the books: the `n`th of a scenario that fires, or the `n`th that misses.
pub(crate) fn make(
    scenario: Scenario,
    miss: bool,
    n: usize,
    placement: &ScenePlacement,
    world: &mut SimulatedMarket,
    rng: &mut Rng,
) -> Box<dyn Scene> {
    if let Some(definition) = script_of(scenario) {
        let miss = miss.then(|| definition.misses[n % definition.misses.len()]);
        let cast = (definition.cast)(world, miss);
        return Box::new(script::ScriptedScene::new(definition, miss, n, placement, cast, rng));
    }
    match scenario {
        Scenario::Spoofing => Box::new(spoofing::SpoofingScene::new(miss, n, placement, world, rng)),
        Scenario::Layering => Box::new(layering::LayeringScene::new(miss, n, placement, world, rng)),
        Scenario::WashTrade => Box::new(wash::WashTradeScene::new(miss, n, placement, world, rng)),
        Scenario::OrderToTradeRatio => Box::new(messages::OrderToTradeScene::new(miss, n, placement, world)),
        Scenario::QuoteStuffing => Box::new(messages::QuoteStuffingScene::new(miss, n, placement, world)),
        Scenario::MarkingClose => Box::new(close::MarkingCloseScene::new(miss, n, placement, world, rng)),
        Scenario::RunawayAlgo => Box::new(runaway::RunawayAlgoScene::new(miss, n, placement, world)),
        Scenario::Mwcb => Box::new(mwcb::BreakerScene::new(miss, n, placement, world, rng)),
        Scenario::VolumeSpike => {
            Box::new(volume_spike::VolumeSpikeScene::new(miss, n, placement, world, rng))
        }
        _ => panic!("payments and messages have no book"),
    }
}

/// Returns the definition of the scenario's scenes, if they are scripted.
fn script_of(scenario: Scenario) -> Option<&'static script::SceneDefinition> {
    Some(match scenario {
        Scenario::CrossVenueLayering => &cross_venue_layering::DEFINITION,
        Scenario::CollusiveSpoofing => &collusive_spoofing::DEFINITION,
        Scenario::PingOrders => &ping_orders::DEFINITION,
        Scenario::Smoking => &smoking::DEFINITION,
        Scenario::ExcessiveBid => &excessive_bid::DEFINITION,
        Scenario::FatFinger => &fat_finger::DEFINITION,
        Scenario::RegSho201 => &short_sale::DEFINITION,
        Scenario::MomentumIgnition => &momentum_ignition::DEFINITION,
        Scenario::PaintingTape => &painting_tape::DEFINITION,
        Scenario::Prearranged => &prearranged::DEFINITION,
        Scenario::OffMarketTrade => &off_market_trade::DEFINITION,
        Scenario::Tailgating => &tailgating::DEFINITION,
        Scenario::FrontRunning => &front_running::DEFINITION,
        Scenario::StopHunting => &stop_hunting::DEFINITION,
        Scenario::TradeThrough => &trade_through::DEFINITION,
        Scenario::PriceSpike => &price_spike::DEFINITION,
        Scenario::RestrictedList => &restricted_list::DEFINITION,
        Scenario::InsiderNews => &insider_news::DEFINITION,
        Scenario::Parking => &parking::DEFINITION,
        Scenario::CrossProduct => &cross_product::DEFINITION,
        Scenario::Luld => &luld::DEFINITION,
        Scenario::EuVolatilityInterruption => &eu_volatility_interruption::DEFINITION,
        Scenario::PumpAndDump => &pump_and_dump::DEFINITION,
        Scenario::AbusiveSqueeze => &abusive_squeeze::DEFINITION,
        _ => return None,
    })
}

/// The place and time of a scene.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScenePlacement {
    pub book: u32,
    /// A book of the same instrument, perhaps the same.
    pub other_book: u32,
    /// Nanoseconds since the epoch.
    pub start_ts: u64,
    /// When the closing call begins and when it ends, nanoseconds since the epoch.
    pub close: (u64, u64),
}

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const S: u64 = 1_000 * MS;
