//! Layering: several orders on one side, an execution on the other, and the layers are gone.

use super::super::exchange::OrderRef;
use super::super::world::SimulatedMarket;
use super::stage::{SceneContext, SceneParticipants, sign};
use super::{MS, S, Scenario, Scene, ScenePlacement};
use crate::rng::Rng;
use unitape_model::Side;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LayeringNearMiss {
    None,
    Orders,
    Levels,
    Build,
    Late,
    Size,
    Share,
}

const MISSES: [(LayeringNearMiss, &str); 6] = [
    (LayeringNearMiss::Orders, "one order fewer than min_orders"),
    (LayeringNearMiss::Levels, "one price fewer than min_levels"),
    (LayeringNearMiss::Build, "the oldest of four orders was entered exactly build_ms before the execution"),
    (LayeringNearMiss::Late, "the last cancel comes a nanosecond more than cancel_ms after the execution"),
    (LayeringNearMiss::Size, "the layers are one share less than min_size_ratio times what was executed"),
    (LayeringNearMiss::Share, "less than cancel_pct of the layers are cancelled in time"),
];

#[derive(Debug)]
pub(crate) struct LayeringScene {
    cast: SceneParticipants,
    book: u32,
    side: Side,
    miss: LayeringNearMiss,
    words: &'static str,
    layers: usize,
    placed: Vec<OrderRef>,
    best: i64,
    /// Quantity of the execution, and its price.
    small: i64,
    small_px: i64,
    genuine: OrderRef,
    step: u8,
    first_ts: u64,
    executed_ts: u64,
    first_seq: u64,
    total: i64,
    cancelled: i64,
    fired: bool,
}

impl LayeringScene {
    pub fn new(
        miss: bool,
        n: usize,
        placement: &ScenePlacement,
        world: &mut SimulatedMarket,
        rng: &mut Rng,
    ) -> LayeringScene {
        let (miss, words) = if miss { MISSES[n % MISSES.len()] } else { (LayeringNearMiss::None, "") };
        let layers = match miss {
            LayeringNearMiss::Orders => 3,
            LayeringNearMiss::None | LayeringNearMiss::Late => rng.between(4, 7) as usize,
            LayeringNearMiss::Share => 5,
            LayeringNearMiss::Levels | LayeringNearMiss::Build | LayeringNearMiss::Size => 4,
        };
        LayeringScene {
            cast: SceneParticipants::new(world, false),
            book: placement.book,
            side: rng.pick(&[Side::Buy, Side::Sell]),
            miss,
            words,
            layers,
            placed: Vec::with_capacity(layers),
            best: 0,
            small: rng.between(2, 9) * 100,
            small_px: 0,
            genuine: OrderRef::default(),
            step: 0,
            first_ts: 0,
            executed_ts: 0,
            first_seq: 0,
            total: 0,
            cancelled: 0,
            fired: false,
        }
    }

    /// Returns the quantity of a layer. The sum of all layers is more than three times the execution; each layer is
    /// less than five times, or it would be spoofing too.
    fn layer_qty(&self, n: usize) -> i64 {
        match self.miss {
            // Four of them make one share less than three times the execution.
            LayeringNearMiss::Size if n == 3 => self.small * 3 - 1 - 3 * ((self.small * 3 - 1) / 4),
            LayeringNearMiss::Size => (self.small * 3 - 1) / 4,
            LayeringNearMiss::Orders => self.small * 2,
            _ => self.small * 5 / 4 + n as i64 * 7,
        }
    }

    fn layer_px(&self, n: usize) -> i64 {
        let distance = if self.miss == LayeringNearMiss::Levels { n as i64 % 2 } else { n as i64 % 5 };
        self.best - sign(self.side) * distance
    }
}

impl Scene for LayeringScene {
    fn play(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        let (lead, book, opposite_side) = (self.cast.lead, self.book, self.side.opposite());
        match self.step {
            0 => {
                if self.placed.is_empty() {
                    stage.quiet(book, true);
                    let (bid, ask) = stage.dress(book, &self.cast);
                    (self.best, self.small_px) = if self.side == Side::Buy { (bid, ask) } else { (ask, bid) };
                    self.first_seq = stage.next_seq();
                    self.first_ts = stage.now();
                }
                let n = self.placed.len();
                let (px, qty) = (self.layer_px(n), self.layer_qty(n));
                self.placed.push(stage.rest(lead, book, self.side, px, qty));
                self.total += qty;
                if self.placed.len() == self.layers {
                    self.step = 1;
                }
                Some(stage.now() + stage.rng.between(50, 300) as u64 * MS)
            }
            1 => {
                self.genuine = stage.rest(lead, book, opposite_side, self.small_px, self.small);
                self.step = 2;
                Some(match self.miss {
                    LayeringNearMiss::Build => self.first_ts + 10 * S,
                    _ => stage.now() + stage.rng.between(20, 300) as u64 * MS,
                })
            }
            2 => {
                let reach = stage.x.desk(book).book.quantity_within(opposite_side, self.small_px);
                stage.take_liquidity(self.cast.member_on(self.side), book, self.side, self.small_px, reach);
                assert_eq!(stage.x.leaves(self.genuine), 0, "the small order was not reached");
                self.executed_ts = stage.now();
                self.step = 3;
                Some(stage.now() + stage.rng.between(100, 800) as u64 * MS)
            }
            _ => {
                let Some(order) = self.placed.pop() else {
                    stage.quiet(book, false);
                    return None;
                };
                let leaves = stage.x.leaves(order);
                let seq = stage.cancel(order);
                self.cancelled += leaves;
                if self.miss == LayeringNearMiss::None
                    && !self.fired
                    && self.cancelled * 100 >= 80 * self.total
                {
                    self.fired = true;
                    let key = stage.place_key(lead, book, Some(self.side));
                    stage.label(Scenario::Layering, key, None, self.first_seq, seq);
                } else if self.miss != LayeringNearMiss::None && self.placed.is_empty() {
                    let key = stage.place_key(lead, book, Some(self.side));
                    stage.near_miss(Scenario::Layering, key, self.words, self.first_seq);
                }
                let rest: i64 = self.placed.iter().map(|&o| stage.x.leaves(o)).sum();
                let late = match self.miss {
                    // The cancel that would reach the share is the first to come too late.
                    LayeringNearMiss::Late => {
                        let next = self.placed.last().map_or(0, |&o| stage.x.leaves(o));
                        (self.cancelled + next) * 100 >= 80 * self.total
                    }
                    LayeringNearMiss::Share => {
                        rest > 0
                            && (self.cancelled + rest / self.placed.len() as i64) * 100 >= 75 * self.total
                    }
                    _ => false,
                };
                let soon = stage.now() + stage.rng.between(20, 150) as u64 * MS;
                Some(match self.miss {
                    LayeringNearMiss::Late if late => soon.max(self.executed_ts + 3 * S + 1),
                    LayeringNearMiss::Share if late => soon.max(self.executed_ts + 4 * S),
                    _ => soon,
                })
            }
        }
    }
}
