//! Market-wide circuit breaker: the index falls to a level.
//!
//! The scene trades once in each constituent of the index, in one step, so that the index is known. All books of the
//! constituents are its own meanwhile. Each level fires once a day: the scenes of a day take the levels in turn.

use super::super::config::{DAY_NS, S};
use super::super::market::{CONSTITUENTS_MAX, index_value};
use super::super::truth::{AlertLabel, AlertLabelKey};
use super::super::world::SimulatedMarket;
use super::stage::{SceneContext, SceneParticipants};
use super::{MS, Scenario, Scene, ScenePlacement};
use crate::rng::Rng;
use unitape_model::Side;

const ABOVE: &str = "the last price of a constituent is a tick too high for the level";
const SPENT: &str = "the level has fired before on the day";
const MISSES: [&str; 2] = [ABOVE, SPENT];

/// `levels_pct`.
const LEVELS_PCT: [i64; 3] = [7, 13, 20];
/// `cutoff_s`, in nanoseconds.
const CUTOFF_NS: u64 = 55_500 * S;
/// `tz_offset_s` is below zero.
const OFFSET_NS: u64 = 14_400 * S;

#[derive(Debug)]
pub(crate) struct BreakerScene {
    miss: Option<&'static str>,
    edge: bool,
    cast: SceneParticipants,
    /// The books of the constituents in which it trades.
    books: Vec<u32>,
    /// The prices before the fall.
    middles: Vec<i64>,
    first_seq: u64,
    stage: BreakerStage,
}

#[derive(Debug, Clone, Copy)]
enum BreakerStage {
    Starts,
    /// An event lets the market publish an index value that is still due.
    Waits,
    Falls,
    Recovers,
}

impl BreakerScene {
    pub fn new(
        miss: bool,
        n: usize,
        placement: &ScenePlacement,
        world: &mut SimulatedMarket,
        rng: &mut Rng,
    ) -> BreakerScene {
        let venue = world.venue_of(placement.book);
        let constituents = world.instrument_ids().take(CONSTITUENTS_MAX);
        BreakerScene {
            miss: miss.then(|| MISSES[n % MISSES.len()]),
            edge: rng.one_in(3) && !miss,
            books: constituents.map(|instr| world.book(venue, instr)).collect(),
            cast: SceneParticipants::new(world, false),
            middles: Vec::new(),
            first_seq: 0,
            stage: BreakerStage::Starts,
        }
    }

    /// Keeps the background out of the constituents on all venues, or lets it in again.
    fn quiet(&self, stage: &mut SceneContext<'_>, quiet: bool) {
        for venue in 0..stage.x.world.venues.len() {
            for &book in &self.books {
                let book = stage.x.world.book(venue, stage.x.world.instr_of(book));
                stage.quiet(book, quiet);
            }
        }
    }

    /// Returns the level that fires next, by its index.
    fn next_level(&self, stage: &SceneContext<'_>) -> usize {
        let (date, count) = stage.x.breaker_levels;
        if date == local_day(stage.now()) { count } else { 0 }
    }

    /// Returns the prices that make the index fall to a value, or to the nearest one below; those of a near miss are just
    /// above it. Returns `None` if the index is as low already.
    fn prices(&self, stage: &SceneContext<'_>, target: i64) -> Option<Vec<i64>> {
        let base = &stage.x.index_base;
        let value = index_value(&self.middles, base);
        if target * 100 > value * 97 {
            return None;
        }
        let mut prices: Vec<i64> = self.middles.iter().map(|px| px * target / value).collect();
        let value_with = |prices: &[i64], n: usize| {
            let mut raised_prices = prices.to_vec();
            raised_prices[n] += 1;
            index_value(&raised_prices, base)
        };
        for n in 0..prices.len() {
            while value_with(&prices, n) <= target {
                prices[n] += 1;
            }
        }
        if self.miss == Some(ABOVE) {
            let nearest = (0..prices.len()).min_by_key(|&n| value_with(&prices, n))?;
            prices[nearest] += 1;
        }
        (index_value(&prices, base) <= target || self.miss == Some(ABOVE)).then_some(prices)
    }

    /// Trades once in each book, at its price.
    fn trade(&self, stage: &mut SceneContext<'_>, prices: &[i64], maker: Side) {
        let parties = [maker, maker.opposite()].map(|side| (self.cast.member_on(side), side, 0));
        for (&book, &px) in self.books.iter().zip(prices) {
            stage.trade_between(book, px, 100, &self.cast, parties);
        }
    }

    /// Makes the index fall. Returns false if it cannot fall to a level now.
    fn fall(&mut self, stage: &mut SceneContext<'_>) -> bool {
        let mut level = self.next_level(stage);
        let local_ts = stage.now() - OFFSET_NS;
        if self.miss == Some(SPENT) {
            match level.checked_sub(1) {
                Some(last) => level = last,
                None => return false,
            }
        }
        if level >= LEVELS_PCT.len() || local_ts % DAY_NS >= CUTOFF_NS {
            return false;
        }
        let margin = if self.miss.is_none() && !self.edge { stage.rng.between(1, 300) } else { 0 };
        // Rounded to hundredths, halves up.
        let level_px = (2 * stage.x.index_close * (100 - LEVELS_PCT[level]) + 100).div_euclid(200);
        let Some(prices) = self.prices(stage, level_px - margin) else { return false };
        self.first_seq = stage.next_seq();
        self.trade(stage, &prices, Side::Buy);
        if self.miss.is_none() {
            stage.x.breaker_levels = (local_day(stage.now()), level + 1);
            stage.labels.index_label = Some(AlertLabel {
                scene: stage.scene,
                scenario: Scenario::Mwcb.id(),
                key: self.key(stage),
                reason: None,
                ts: stage.now(),
                first_seq: self.first_seq,
                trigger_seq: 0,
            });
        }
        true
    }

    fn key(&self, stage: &SceneContext<'_>) -> AlertLabelKey {
        AlertLabelKey(vec![("index", stage.x.world.index_name())])
    }
}

impl Scene for BreakerScene {
    fn play(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        match self.stage {
            BreakerStage::Starts => {
                self.quiet(stage, true);
                self.middles = self.books.iter().map(|&book| stage.fair_of(book)).collect();
                self.stage = BreakerStage::Waits;
            }
            BreakerStage::Waits => {
                let px = self.middles[0] - 50;
                let order = stage.rest(self.cast.buyer, self.books[0], Side::Buy, px, 100);
                stage.cancel(order);
                self.stage = BreakerStage::Falls;
            }
            BreakerStage::Falls => {
                if !self.fall(stage) {
                    self.quiet(stage, false);
                    return None;
                }
                self.stage = BreakerStage::Recovers;
            }
            BreakerStage::Recovers => {
                let middles = self.middles.clone();
                self.trade(stage, &middles, Side::Sell);
                if let Some(reason) = self.miss {
                    stage.near_miss(Scenario::Mwcb, self.key(stage), reason, self.first_seq);
                }
                self.quiet(stage, false);
                return None;
            }
        }
        // The index is published after each step that is a second later than the last value.
        Some(stage.now() + S + stage.rng.between(10, 500) as u64 * MS)
    }
}

/// Returns the number of the local day.
fn local_day(ts: u64) -> u64 {
    (ts - OFFSET_NS) / DAY_NS
}
