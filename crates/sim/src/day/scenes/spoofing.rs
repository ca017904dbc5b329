//! Spoofing: a large order, a small execution on the other side, and the cancel of the large order.

use super::super::exchange::OrderRef;
use super::super::world::SimulatedMarket;
use super::stage::{SceneContext, SceneParticipants, sign};
use super::{MS, S, Scenario, Scene, ScenePlacement};
use crate::rng::Rng;
use unitape_model::Side;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpoofingNearMiss {
    None,
    Life,
    Ratio,
    Filled,
    Distance,
    Stale,
    Notional,
    NoExec,
}

const MISSES: [(SpoofingNearMiss, &str); 7] = [
    (SpoofingNearMiss::Life, "the order lives a nanosecond more than max_life_ms"),
    (SpoofingNearMiss::Ratio, "the order is one share less than min_ratio times what was executed"),
    (SpoofingNearMiss::Filled, "one share more than max_filled_pct of the order was filled"),
    (SpoofingNearMiss::Distance, "the order is entered a tick more than max_dist_ticks behind the best"),
    (
        SpoofingNearMiss::Stale,
        "the cancel comes a nanosecond more than cancel_after_exec_ms after the execution",
    ),
    (SpoofingNearMiss::Notional, "the order is worth less than min_notional"),
    (SpoofingNearMiss::NoExec, "nothing was executed on the other side"),
];

#[derive(Debug)]
pub(crate) struct SpoofingScene {
    cast: SceneParticipants,
    book: u32,
    side: Side,
    miss: SpoofingNearMiss,
    words: &'static str,
    /// At the threshold itself and not inside.
    edge: bool,
    step: u8,
    /// Quantities of the large order and of the small one.
    qty: [i64; 2],
    px: [i64; 2],
    orders: [OrderRef; 2],
    entered: u64,
    first_seq: u64,
}

impl SpoofingScene {
    pub fn new(
        miss: bool,
        n: usize,
        placement: &ScenePlacement,
        world: &mut SimulatedMarket,
        rng: &mut Rng,
    ) -> SpoofingScene {
        let (miss, words) = if miss { MISSES[n % MISSES.len()] } else { (SpoofingNearMiss::None, "") };
        SpoofingScene {
            cast: SceneParticipants::new(world, false),
            book: placement.book,
            side: rng.pick(&[Side::Buy, Side::Sell]),
            miss,
            words,
            edge: rng.one_in(4),
            step: 0,
            qty: [0; 2],
            px: [0; 2],
            orders: [OrderRef::default(); 2],
            entered: 0,
            first_seq: 0,
        }
    }

    fn enter(&mut self, stage: &mut SceneContext<'_>) {
        let (bid, ask) = stage.dress(self.book, &self.cast);
        let (near, far) = if self.side == Side::Buy { (bid, ask) } else { (ask, bid) };
        let distance = match self.miss {
            SpoofingNearMiss::Distance => 4,
            _ if self.edge => 3,
            _ => stage.rng.between(0, 3),
        };
        self.px = [near - sign(self.side) * distance, far];
        let worth = stage.qty_worth(self.book, self.px[0], 60_000);
        let ratio = stage.rng.between(6, 8);
        let small = (worth / 5 + 1).max(stage.rng.between(1, 5) * 100);
        self.qty = match self.miss {
            SpoofingNearMiss::Ratio => [small * 5 - 1, small],
            // One share less than is worth the least that counts.
            SpoofingNearMiss::Notional => {
                let large = stage.qty_worth(self.book, self.px[0], 50_000) - 1;
                [large, (large / 6).max(1)]
            }
            _ if self.edge => [small * 5, small],
            _ => [small * ratio, small],
        };
        self.first_seq = stage.next_seq();
        self.entered = stage.now();
        self.orders[0] = stage.rest(self.cast.lead, self.book, self.side, self.px[0], self.qty[0]);
    }
}

impl Scene for SpoofingScene {
    fn play(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        self.step += 1;
        let (lead, book, opposite_side) = (self.cast.lead, self.book, self.side.opposite());
        match self.step {
            1 => {
                stage.quiet(book, true);
                self.enter(stage);
                Some(stage.now() + stage.rng.between(50, 400) as u64 * MS)
            }
            2 => {
                if self.miss == SpoofingNearMiss::Filled {
                    let qty_ahead =
                        stage.x.desk(book).book.quantity_within(self.side, self.px[0]) - self.qty[0];
                    let hit = qty_ahead + self.qty[0] / 10 + 1;
                    stage.take_liquidity(
                        self.cast.member_on(opposite_side),
                        book,
                        opposite_side,
                        self.px[0],
                        hit,
                    );
                }
                self.orders[1] = stage.rest(lead, book, opposite_side, self.px[1], self.qty[1]);
                Some(match self.miss {
                    SpoofingNearMiss::Life => self.entered + 4 * S,
                    _ => stage.now() + stage.rng.between(20, 200) as u64 * MS,
                })
            }
            3 => {
                if self.miss != SpoofingNearMiss::NoExec {
                    let reach = stage.x.desk(book).book.quantity_within(opposite_side, self.px[1]);
                    stage.take_liquidity(self.cast.member_on(self.side), book, self.side, self.px[1], reach);
                    assert_eq!(stage.x.leaves(self.orders[1]), 0, "the small order was not reached");
                }
                Some(match self.miss {
                    SpoofingNearMiss::Life => self.entered + 5 * S + 1,
                    SpoofingNearMiss::Stale => stage.now() + 1500 * MS + 1,
                    _ if self.edge => stage.now() + 1500 * MS,
                    _ => stage.now() + stage.rng.between(10, 1400) as u64 * MS,
                })
            }
            _ => {
                let seq = stage.cancel(self.orders[0]);
                let key = stage.place_key(lead, book, Some(self.side));
                if self.miss == SpoofingNearMiss::None {
                    stage.label(Scenario::Spoofing, key, None, self.first_seq, seq);
                } else {
                    stage.near_miss(Scenario::Spoofing, key, self.words, self.first_seq);
                }
                stage.quiet(book, false);
                None
            }
        }
    }
}
