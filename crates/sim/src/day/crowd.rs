//! The background: orders around a wandering price, in bursts, from people who each stay on one side.

use super::config::SimConfig;
use super::event::{DayEventBody, MarketPhase, OrderKind, TimeInForce};
use super::exchange::{NewOrder, SimulatedVenues};
use super::rate_limit::{ALGO_LIVE_MAX, ALGO_ORDER_MAX, MessageRateLimiter, STOPS_MAX};
use crate::rng::Rng;
use unitape_model::{InstrumentId, Side};

/// Numbers of parents that a market has: their text has nine digits.
const PARENTS_OF_A_MARKET: u64 = 100_000_000;

/// An order this far on the wrong side of the price is stale, in a market of several days.
const STALE_TICKS: i64 = 8;
/// Stale orders of a side that go at once.
const STALE_PULLED_MAX: u32 = 16;

/// The makers of the background, and the prices.
#[derive(Debug)]
pub(crate) struct BackgroundTraders {
    members: u32,
    depth: usize,
    /// Price in ticks that the orders of an instrument gather around.
    pub fair: Vec<i64>,
    /// Ticks that the price of an instrument is still to go, since news.
    pub drift: Vec<i64>,
    /// Price in ticks that the price of an instrument is drawn back to.
    anchors: Vec<i64>,
    /// How the prices go.
    pub pace: PricePace,
    /// The parent order that the algorithm of every fourth member works on.
    parents: Vec<AlgoParentOrder>,
    pub next_parent: u64,
    excitement: u64,
}

/// How far and how fast prices go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PricePace {
    /// For a day: within 4 % of where it started, and a tick of news at a time.
    Day,
    /// For several days: within 12 % of where the first started, and an eighth of the news with each request.
    Days,
}

#[derive(Debug, Clone, Copy, Default)]
struct AlgoParentOrder {
    number: u64,
    instr: InstrumentId,
    left: i64,
    orders: u32,
}

impl BackgroundTraders {
    pub fn new(x: &SimulatedVenues, config: &SimConfig) -> BackgroundTraders {
        let members = x.world.crowd;
        BackgroundTraders {
            members,
            depth: config.depth,
            fair: x.world.instruments.iter().map(|i| i.reference).collect(),
            drift: vec![0; x.world.instruments.len()],
            anchors: x.world.instruments.iter().map(|i| i.reference).collect(),
            pace: PricePace::Day,
            parents: vec![AlgoParentOrder::default(); members as usize / 4],
            next_parent: u64::from(config.market) * PARENTS_OF_A_MARKET,
            excitement: 0,
        }
    }

    /// Draws the time to the next request, `mean_ns` on average. Each request makes further requests more likely for a
    /// while, so that they come in bursts (a Hawkes process of branching ratio 0.8, in whole numbers).
    pub fn gap_ns(&mut self, mean_ns: u64, rng: &mut Rng) -> u64 {
        const ONE: u64 = 1 << 16;
        const JUMP: u64 = 8_500; // near 0.8 · 5 · ln 2 / 20; a little less, for the rate stands still within a gap
        self.excitement += JUMP;
        let rate = ONE + self.excitement;
        let gap = (u128::from(mean_ns) * 5 * u128::from(exponential(rng)) / u128::from(rate)) as u64;
        // Halves every twenty mean gaps; in between by a parabola through 1 and 1/2 (a straight line would fall too
        // slowly at first, and bursts would never end).
        let half = (20 * mean_ns).max(1);
        let (halvings, rest) = (gap / half, gap % half);
        let f = ((u128::from(rest) << 16) / u128::from(half)) as u64;
        let factor = ONE - ((43_994 * f) >> 16) + ((11_226 * f * f) >> 32);
        let left = self.excitement.checked_shr(halvings.min(64) as u32).unwrap_or(0);
        self.excitement = (left * factor) >> 16;
        gap.max(1)
    }

    /// Makes one request of a background member, or no request if the rate limit forbids it.
    pub fn act(&mut self, x: &mut SimulatedVenues, governor: &mut MessageRateLimiter, rng: &mut Rng) {
        if rng.one_in(4) && self.algo(x, governor, rng) {
            return;
        }
        // The first instruments and venues are the busy ones.
        let n = x.world.instruments.len() as u64;
        let instr = InstrumentId(rng.below(n).min(rng.below(n)) as u32);
        let v = x.world.venues.len() as u64;
        let venue = rng.below(v).min(rng.below(v)) as usize;
        let book = x.world.book(venue, instr);
        let desk = x.desk(book);
        if desk.quiet {
            return;
        }
        match desk.phase {
            MarketPhase::Pre | MarketPhase::Close => {}
            MarketPhase::Halt => self.cancel(x, book, governor, rng),
            MarketPhase::Auction => self.call(x, book, governor, rng),
            MarketPhase::Open => {
                self.wander(instr, rng);
                if self.pace == PricePace::Days && self.pull_stale(x, book, governor) {
                    return;
                }
                let crowd = x.desk(book).crowd.len();
                let roll = rng.below(100);
                if crowd >= self.depth || crowd > 0 && roll < 30 {
                    self.cancel(x, book, governor, rng);
                } else if crowd > 0 && roll < 42 {
                    self.amend(x, book, governor, rng);
                } else {
                    self.order(x, book, governor, rng);
                }
            }
        }
    }

    /// Sends an order for the call of an auction, near the price on either side. It also fills a book before the open.
    pub fn call(
        &mut self,
        x: &mut SimulatedVenues,
        book: u32,
        governor: &mut MessageRateLimiter,
        rng: &mut Rng,
    ) {
        let instr = x.world.instr_of(book);
        let Some((member, side)) = self.somebody(x, instr, governor, rng, 1) else { return };
        let distance = rng.halving().min(12) * 2 + rng.between(-3, 4);
        let px = self.fair[instr.index()] - sign(side) * distance;
        let qty = rng.between(1, 20) * 100;
        self.enter(x, member, book, side, OrderKind::Limit, TimeInForce::Day, Some(px), None, qty, 0);
    }

    fn cancel(
        &mut self,
        x: &mut SimulatedVenues,
        book: u32,
        governor: &mut MessageRateLimiter,
        rng: &mut Rng,
    ) {
        let Some(slot) = pick(&x.desk(book).crowd, rng) else { return };
        let member = x.order(slot).terms.member;
        if governor.allow(member, x.now, 1) {
            x.cancel_slot(slot);
        }
    }

    /// Cancels some of the orders that news has left far on the wrong side of the price. Returns false if there are
    /// none.
    fn pull_stale(&self, x: &mut SimulatedVenues, book: u32, governor: &mut MessageRateLimiter) -> bool {
        let fair = self.fair[x.world.instr_of(book).index()];
        let mut pulled = false;
        for side in [Side::Buy, Side::Sell] {
            for _ in 0..STALE_PULLED_MAX {
                let Some((slot, px, _)) = x.desk(book).book.orders(side).next() else { break };
                let stale = (px - fair) * sign(side) > STALE_TICKS && x.order(slot).is_of_background();
                if !stale || !governor.allow(x.order(slot).terms.member, x.now, 1) {
                    break;
                }
                x.cancel_slot(slot);
                pulled = true;
            }
        }
        pulled
    }

    fn amend(
        &mut self,
        x: &mut SimulatedVenues,
        book: u32,
        governor: &mut MessageRateLimiter,
        rng: &mut Rng,
    ) {
        let Some(slot) = pick(&x.desk(book).crowd, rng) else { return };
        let order = *x.order(slot);
        if order.terms.kind.is_waiting_stop() || !governor.allow(order.terms.member, x.now, 1) {
            return;
        }
        let px = order.terms.px.expect("only limit orders rest");
        let open = order.terms.qty - order.filled_qty;
        if rng.one_in(2) {
            x.amend(slot, px, order.filled_qty + rng.between(1, open));
        } else {
            let side = order.terms.side;
            let px = self.fair[x.world.instr_of(book).index()] - sign(side) * (1 + rng.halving().min(12));
            x.amend(slot, px.max(1), order.terms.qty);
        }
    }

    fn order(
        &mut self,
        x: &mut SimulatedVenues,
        book: u32,
        governor: &mut MessageRateLimiter,
        rng: &mut Rng,
    ) {
        let instr = x.world.instr_of(book);
        let Some((member, side)) = self.somebody(x, instr, governor, rng, 2) else { return };
        let qty = if rng.one_in(8) { rng.between(1, 999) } else { rng.between(1, 20) * 100 };
        self.place_order(x, member, book, side, qty, 0, rng);
    }

    /// Draws a member who may now trade the instrument and send `cost` messages, with the member's side.
    fn somebody(
        &self,
        x: &SimulatedVenues,
        instr: InstrumentId,
        governor: &mut MessageRateLimiter,
        rng: &mut Rng,
        cost: u8,
    ) -> Option<(u32, Side)> {
        (0..8).find_map(|_| {
            let member = rng.below(self.members.into()) as u32;
            let manual = member % 4 != 3;
            (manual && governor.allow(member, x.now, cost)).then(|| (member, x.world.side_of(member, instr)))
        })
    }

    /// Places a new order of a random type.
    #[allow(clippy::too_many_arguments)]
    fn place_order(
        &mut self,
        x: &mut SimulatedVenues,
        member: u32,
        book: u32,
        side: Side,
        qty: i64,
        parent: u64,
        rng: &mut Rng,
    ) {
        let fair = self.fair[x.world.instr_of(book).index()];
        let reach = fair + sign(side) * 20;
        let matching_book = &x.desk(book).book;
        let best = matching_book.best(side.opposite()).filter(|best| (best.px - reach) * sign(side) <= 0);
        let roll = rng.below(200);
        let (kind, tif, px, stop_px) = match (roll, best) {
            (0..16, Some(best)) => (OrderKind::Limit, TimeInForce::Ioc, Some(best.px), None),
            (16..20, Some(best)) => (OrderKind::Limit, TimeInForce::Fok, Some(best.px), None),
            (20..28, Some(_)) if matching_book.quantity_within(side.opposite(), reach) > qty => {
                (OrderKind::Market, TimeInForce::Ioc, None, None)
            }
            (28..46, Some(best)) => (OrderKind::Limit, TimeInForce::Day, Some(best.px), None),
            (46..49, _) if parent == 0 && x.stops_of[member as usize] < STOPS_MAX => {
                let stop_px = fair + sign(side) * rng.between(2, 10);
                if roll == 46 {
                    (OrderKind::Stop, TimeInForce::Day, None, Some(stop_px))
                } else {
                    (OrderKind::StopLimit, TimeInForce::Day, Some(stop_px + sign(side) * 3), Some(stop_px))
                }
            }
            _ => {
                let distance = 1 + 2 * rng.halving().min(12) + rng.between(0, 3);
                (OrderKind::Limit, TimeInForce::Day, Some((fair - sign(side) * distance).max(1)), None)
            }
        };
        self.enter(x, member, book, side, kind, tif, px, stop_px, qty, parent);
    }

    #[allow(clippy::too_many_arguments)]
    fn enter(
        &mut self,
        x: &mut SimulatedVenues,
        member: u32,
        book: u32,
        side: Side,
        kind: OrderKind,
        tif: TimeInForce,
        px: Option<i64>,
        stop_px: Option<i64>,
        qty: i64,
        parent: u64,
    ) {
        x.submit(NewOrder { member, book, side, kind, tif, px, stop_px, qty, parent, crowd: true });
    }

    /// Sends the next child order of an algorithm's parent order. Returns false if the algorithm may not send an order.
    fn algo(&mut self, x: &mut SimulatedVenues, governor: &mut MessageRateLimiter, rng: &mut Rng) -> bool {
        let algo_index = rng.below(self.parents.len() as u64) as usize;
        let member = algo_index as u32 * 4 + 3;
        let AlgoParentOrder { number, instr, left, orders } = self.parents[algo_index];
        // No two of 32 orders have one quantity, so that an algorithm never seems to repeat itself.
        let most = (ALGO_ORDER_MAX * 1_000_000_000
            / x.world.instruments[instr.index()].nano(self.fair[instr.index()]))
        .clamp(33, 4_000);
        let qty = 1 + i64::from(orders % 32) + 32 * rng.between(0, most / 32 - 1);
        if number == 0 || left < qty {
            let instr = InstrumentId(rng.below(self.fair.len() as u64) as u32);
            self.next_parent += 1;
            let (parent, side) = (self.next_parent, x.world.side_of(member, instr));
            let qty = rng.between(20, 200) * 1_000;
            if x.world.members[member as usize].agency {
                x.emit(DayEventBody::OrderRecv { client: parent, member, instr, side, qty });
            }
            x.emit(DayEventBody::Parent { parent, member, instr, side, qty });
            self.parents[algo_index] = AlgoParentOrder { number: parent, instr, left: qty, orders };
            return true;
        }
        let venue = rng.below(x.world.venues.len() as u64) as usize;
        let book = x.world.book(venue, instr);
        let desk = x.desk(book);
        let free = desk.phase == MarketPhase::Open && !desk.quiet && desk.crowd.len() < self.depth;
        if !free
            || x.live_algo_orders(member) >= ALGO_LIVE_MAX
            || !governor.allow(member, x.now, 2)
            || !governor.allow_algo_order(member, x.now)
        {
            return false;
        }
        self.parents[algo_index].left -= qty;
        self.parents[algo_index].orders += 1;
        let side = x.world.side_of(member, instr);
        self.place_order(x, member, book, side, qty, number, rng);
        true
    }

    /// Begins another day: prices start where they closed, and parents of the day before are done.
    pub fn begin_day(&mut self, x: &SimulatedVenues) {
        self.fair = x.world.instruments.iter().map(|i| i.reference).collect();
        self.parents.iter_mut().for_each(|parent| parent.number = 0);
        self.excitement = 0;
    }

    /// Returns the sign of an excessive price move that news should reverse: 1 if the price is too high, -1 if it is
    /// too low, 0 otherwise.
    pub fn overextension_sign(&self, instr: InstrumentId) -> i64 {
        let anchor = self.anchors[instr.index()];
        let off = self.fair[instr.index()] + self.drift[instr.index()] - anchor;
        if self.pace == PricePace::Days && off.abs() * 100 > anchor * 8 { off.signum() } else { 0 }
    }

    /// Lets the price of an instrument wander. Draws it back if it is far from its start, and moves it as news demands.
    fn wander(&mut self, instr: InstrumentId, rng: &mut Rng) {
        let drift = self.drift[instr.index()];
        let mut band = 4;
        if self.pace == PricePace::Days {
            band = 12;
            let step = (drift.abs() + 7) / 8 * drift.signum();
            self.fair[instr.index()] += step;
            self.drift[instr.index()] -= step;
        } else if drift != 0 && rng.one_in(4) {
            self.fair[instr.index()] += drift.signum();
            self.drift[instr.index()] -= drift.signum();
        }
        if !rng.one_in(16) {
            return;
        }
        let anchor = self.anchors[instr.index()];
        let off = self.fair[instr.index()] - anchor;
        let far = off.abs() * 100 > anchor * band;
        self.fair[instr.index()] += if far { -off.signum() } else { rng.pick(&[-1, 1]) };
    }
}

fn pick(candidates: &[u32], rng: &mut Rng) -> Option<u32> {
    (!candidates.is_empty()).then(|| rng.pick(candidates))
}

fn sign(side: Side) -> i64 {
    if side == Side::Buy { 1 } else { -1 }
}

/// Draws from the exponential distribution of mean one, in 1/65536, with whole numbers: -ln of a uniform draw. The
/// logarithm comes from bits and a parabola (off by 0.8 % at most).
fn exponential(rng: &mut Rng) -> u64 {
    let u = rng.bits() | 1;
    let zeros = u64::from(u.leading_zeros());
    let x = (u << zeros << 1) >> 48;
    let log2 = x + ((22_545 * x * (65_536 - x)) >> 32);
    ((((zeros + 1) << 16) - log2) * 45_426) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bursts that feed on themselves without end once put the events of an hour into its first minute.
    #[test]
    fn bursts_end_and_gaps_have_their_mean() {
        let config = SimConfig::default();
        let sim = super::super::Sim::new(config.clone()).expect("a good config");
        let (mut crowd, mut rng) = (BackgroundTraders::new(&sim.x, &config), Rng::new(9));
        let gaps: Vec<u64> = (0..400_000).map(|_| crowd.gap_ns(1_000_000, &mut rng)).collect();
        let mean = gaps.iter().sum::<u64>() / gaps.len() as u64;
        assert!((850_000..1_200_000).contains(&mean), "{mean}");
        let busiest = gaps.chunks(100).map(|c| c.iter().sum::<u64>()).min().expect("many");
        assert!(busiest < 50_000_000, "no bursts: a hundred take {busiest} ns at least");
    }

    /// A mean that is off would make a day too long or too short for its events.
    #[test]
    fn exponential_has_mean_and_variance_one() {
        let mut rng = Rng::new(5);
        let draws: Vec<f64> = (0..200_000).map(|_| exponential(&mut rng) as f64 / 65_536.0).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!((mean - 1.0).abs() < 0.02 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
