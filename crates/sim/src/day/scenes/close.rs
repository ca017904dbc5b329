//! Marking the close: buying the price up into the closing auction, or selling it down.

use super::super::world::SimulatedMarket;
use super::stage::{PendingLabel, SceneContext, SceneParticipants, sign};
use super::{S, Scene, ScenePlacement};
use crate::rng::Rng;
use unitape_model::Side;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkingNearMiss {
    None,
    Move,
    Share,
    Notional,
}

const MISSES: [(MarkingNearMiss, &str); 3] = [
    (MarkingNearMiss::Move, "the close is less than min_move_bps from the price before"),
    (MarkingNearMiss::Share, "less than min_share_pct of the volume"),
    (MarkingNearMiss::Notional, "less than min_notional"),
];

/// The background stays out of the book for the ten minutes of the window, so that only the scene trades.
#[derive(Debug)]
pub(crate) struct MarkingCloseScene {
    cast: SceneParticipants,
    /// Others who trade the same way, so that the lead's share is small.
    crowd: Vec<u32>,
    book: u32,
    side: Side,
    miss: MarkingNearMiss,
    words: &'static str,
    call: u64,
    end: u64,
    step: u8,
    /// Price before and price to reach, in ticks.
    reference: i64,
    target: i64,
    first_seq: u64,
    /// Steps of the way up that were traded.
    steps_done: u8,
}

/// Trades on the way, before the auction.
const TRADES: u8 = 4;

impl MarkingCloseScene {
    pub fn new(
        miss: bool,
        n: usize,
        placement: &ScenePlacement,
        world: &mut SimulatedMarket,
        rng: &mut Rng,
    ) -> MarkingCloseScene {
        let (miss, words) = if miss { MISSES[n % MISSES.len()] } else { (MarkingNearMiss::None, "") };
        let cast = SceneParticipants::new(world, false);
        let other_count = match miss {
            MarkingNearMiss::None => 2,
            MarkingNearMiss::Share => 5,
            _ => 0,
        };
        let crowd = (0..other_count).map(|_| world.cast(false)).collect();
        let side = rng.pick(&[Side::Buy, Side::Sell]);
        let (call, end) = placement.close;
        MarkingCloseScene {
            cast,
            crowd,
            book: placement.book,
            side,
            miss,
            words,
            call,
            end,
            step: 0,
            reference: 0,
            target: 0,
            first_seq: 0,
            steps_done: 0,
        }
    }

    /// Shares of the lead in each trade and in the auction, so that all of his are worth about 200,000, or less than
    /// 100,000 where that is to be missed.
    fn portion(&self, stage: &SceneContext<'_>) -> i64 {
        let money = if self.miss == MarkingNearMiss::Notional { 95_000 } else { 200_000 };
        let dear = self.reference.max(self.target);
        match self.miss {
            MarkingNearMiss::Notional => {
                (stage.qty_worth(self.book, dear, money) / i64::from(TRADES + 1)).max(1)
            }
            _ => {
                stage.qty_worth(self.book, self.reference.min(self.target), money) / i64::from(TRADES + 1) + 1
            }
        }
    }
}

impl MarkingCloseScene {
    /// Returns the traders and their quantities each time: the lead, and others. Two who go along with the lead have
    /// less than a fifth each; five who trade as much as the lead leave the lead a sixth.
    fn parts(&self, stage: &SceneContext<'_>) -> Vec<(u32, i64)> {
        let lead = self.portion(stage);
        let other_qty = if self.miss == MarkingNearMiss::None { (lead * 3 / 10).max(1) } else { lead };
        std::iter::once((self.cast.lead, lead)).chain(self.crowd.iter().map(|&m| (m, other_qty))).collect()
    }
}

impl Scene for MarkingCloseScene {
    fn play(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        let (book, side) = (self.book, self.side);
        let counterparty = self.cast.member_on(side.opposite());
        match self.step {
            0 => {
                // A trade right before the window is the price that the close is compared with.
                stage.quiet(book, true);
                let px = stage.middle(book, &self.cast);
                let parts = [(self.cast.seller, Side::Sell, 0), (self.cast.buyer, Side::Buy, 0)];
                stage.trade_between(book, px, 100, &self.cast, parts);
                let bps = if self.miss == MarkingNearMiss::Move { 42 } else { stage.rng.between(60, 120) };
                self.reference = px;
                self.target = px + sign(side) * (px * bps / 10_000);
                self.step = 1;
                Some(self.call - 60 * S)
            }
            1 => {
                // Members with orders in between cancel them first.
                if stage.pull(book, side.opposite(), self.target) {
                    self.step = 2;
                    self.first_seq = stage.next_seq();
                    return Some(stage.now() + 5 * S);
                }
                Some(stage.now() + S)
            }
            2 => {
                self.steps_done += 1;
                let distance = self.target - self.reference;
                let px = self.reference + distance * i64::from(self.steps_done) / i64::from(TRADES);
                for (member, qty) in self.parts(stage) {
                    stage.rest(counterparty, book, side.opposite(), px, qty);
                    stage.take_liquidity(member, book, side, px, qty);
                }
                if self.steps_done == TRADES {
                    self.step = 3;
                    return Some(self.call + S);
                }
                Some(stage.now() + 4 * S)
            }
            _ => {
                for (member, qty) in self.parts(stage) {
                    stage.rest(counterparty, book, side.opposite(), self.target, qty);
                    stage.rest(member, book, side, self.target, qty);
                }
                let key = stage.place_key(self.cast.lead, book, None);
                let (scene, first_seq) = (stage.scene, self.first_seq);
                let pending = match self.miss {
                    MarkingNearMiss::None => PendingLabel::Fires { scene, key, first_seq },
                    _ => PendingLabel::Misses { scene, key, miss_reason: self.words, first_seq },
                };
                stage.at_close.push((book, pending));
                debug_assert!(stage.now() < self.end);
                None
            }
        }
    }
}
