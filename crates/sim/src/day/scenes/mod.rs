//! Planted scenes: each acts out one scenario, or just misses it.
//!
//! A scene has a cast of its own that does nothing else, and a book to itself while it acts (the background keeps out of
//! it, [`SceneContext`] sees to that), so that its label is exact. The definitions are those of the shared
//! scenarios, with their default parameters; the distances to the thresholds are drawn, the threshold itself among them.

mod close;
mod layering;
mod messages;
mod payments;
mod runaway;
mod spoofing;
mod stage;
mod wash;

pub(crate) use payments::StructuringScene;
pub(crate) use stage::{PendingLabel, SceneContext};

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
}

impl Scenario {
    /// All of them.
    pub const ALL: [Scenario; 8] = [
        Scenario::Spoofing,
        Scenario::Layering,
        Scenario::WashTrade,
        Scenario::OrderToTradeRatio,
        Scenario::QuoteStuffing,
        Scenario::MarkingClose,
        Scenario::RunawayAlgo,
        Scenario::PaymentsStructuring,
    ];

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
        }
    }

    /// Looks up a scenario by id. Unique beginnings and endings such as `wash`, `layering` and `structuring` are
    /// accepted too.
    pub fn from_id(id: &str) -> Option<Scenario> {
        let mut like = Self::ALL.into_iter().filter(|s| s.id() == id);
        like.next().or_else(|| {
            let mut near = Self::ALL.into_iter().filter(|s| s.id().starts_with(id) || s.id().ends_with(id));
            near.next().filter(|_| !id.is_empty() && near.next().is_none())
        })
    }

    /// Returns the longest duration of a scene, nanoseconds.
    pub(crate) const fn longest_ns(self) -> u64 {
        match self {
            Scenario::WashTrade => 70 * S,
            Scenario::RunawayAlgo => 40 * S,
            Scenario::MarkingClose | Scenario::PaymentsStructuring => 0, // they have times of their own
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
    match scenario {
        Scenario::Spoofing => Box::new(spoofing::SpoofingScene::new(miss, n, placement, world, rng)),
        Scenario::Layering => Box::new(layering::LayeringScene::new(miss, n, placement, world, rng)),
        Scenario::WashTrade => Box::new(wash::WashTradeScene::new(miss, n, placement, world, rng)),
        Scenario::OrderToTradeRatio => Box::new(messages::OrderToTradeScene::new(miss, n, placement, world)),
        Scenario::QuoteStuffing => Box::new(messages::QuoteStuffingScene::new(miss, n, placement, world)),
        Scenario::MarkingClose => Box::new(close::MarkingCloseScene::new(miss, n, placement, world, rng)),
        Scenario::RunawayAlgo => Box::new(runaway::RunawayAlgoScene::new(miss, n, placement, world)),
        Scenario::PaymentsStructuring => panic!("payments are planted by the payments"),
    }
}

/// The place and time of a scene.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScenePlacement {
    pub book: u32,
    /// A book of the same instrument, perhaps the same.
    pub other_book: u32,
    /// When the closing call begins and when it ends, nanoseconds since the epoch.
    pub close: (u64, u64),
}

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const S: u64 = 1_000 * MS;
