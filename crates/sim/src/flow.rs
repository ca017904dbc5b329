//! The flow itself: a background of orders around a wandering price, the planted scenes on their cues, and noise.

use std::io::{self, Write};
use unitape_model::Side;

use crate::book::Best;
use crate::error::Error;
use crate::market::{Leg, Market, NewOrder, Trade};
use crate::oracle::Arm;
use crate::plan::{self, Cue, LEAST_SPAN_NS, PREPARE_NS, Plan};
use crate::rng::Rng;
use crate::truth::{Key, LastBbo, Scene, SceneLeg, Truth};
use crate::wire::Flaw;
use crate::world::{VENUES, World};

/// What flow to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowConfig {
    /// The same seed (and the rest of this) gives the same bytes.
    pub seed: u64,
    /// The flow ends with the first request at or after this many good messages; never before the books are open
    /// (about 700) and all scenes are done.
    pub messages: u64,
    /// Wash trades to plant, half of them self matches, half round trips.
    pub wash_trades: usize,
    /// Pairs of execs to plant that just miss being a wash trade.
    pub near_misses: usize,
    /// Heartbeats and damage.
    pub noise: Noise,
    /// Time of the start, nanoseconds since the epoch.
    pub start_ns: u64,
    /// Time that the flow covers, in nanoseconds. Each hour has room for 3,000 scenes.
    pub span_ns: u64,
}

/// What is in a flow that is no event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Noise {
    /// A heartbeat on each session about this often, in nanoseconds of the flow; zero is never.
    pub heartbeat_ns: u64,
    /// After each request, this many times in a million, something bad follows: in turn a wrong checksum, a wrong
    /// length, too many decimals, garbage.
    pub bad_per_million: u32,
}

impl Default for FlowConfig {
    /// Four hours from 2026-03-02 08:00 UTC, 100,000 messages, 20 wash trades, 10 near misses, no noise.
    fn default() -> FlowConfig {
        FlowConfig {
            seed: 1,
            messages: 100_000,
            wash_trades: 20,
            near_misses: 10,
            noise: Noise::default(),
            start_ns: 1_772_438_400_000_000_000,
            span_ns: 4 * 3600 * 1_000_000_000,
        }
    }
}

/// A running flow. It holds the live orders and the scenes, never the day.
#[derive(Debug)]
pub struct Flow {
    config: FlowConfig,
    rng: Rng,
    market: Market,
    /// Price in ticks that the orders of an instrument gather around.
    fair: Vec<i64>,
    /// Books opened so far.
    opened: usize,
    requests: u64,
    bytes: u64,
    next_heartbeat_ns: u64,
    plans: Vec<Plan>,
    cues: Vec<Cue>,
    next_cue: usize,
    /// First trade of the scenes whose second leg is to come.
    first_legs: Vec<Option<Trade>>,
    planted: Vec<Scene>,
    near_misses: Vec<Scene>,
}

impl Flow {
    /// Sets a flow up; nothing is written yet.
    pub fn new(config: FlowConfig) -> Result<Flow, Error> {
        let FlowConfig { start_ns, span_ns, messages, .. } = config;
        if span_ns < LEAST_SPAN_NS {
            return Err(Error::SpanTooShort { span_ns, least_ns: LEAST_SPAN_NS });
        }
        if start_ns.checked_add(span_ns).is_none_or(|end| end > YEAR_2500_NS) {
            return Err(Error::OutOfTime { start_ns, span_ns });
        }
        let most = span_ns / LEAST_GAP_NS;
        if messages > most {
            return Err(Error::TooManyMessages { messages, most });
        }
        let bad_per_million = config.noise.bad_per_million;
        if bad_per_million > 1_000_000 {
            return Err(Error::BadShare { bad_per_million });
        }
        let mut rng = Rng::new(config.seed);
        let world = World::new(&mut rng);
        let fair = world.instruments.iter().map(|i| i.reference).collect();
        let (plans, cues) =
            plan::lay_out(config.wash_trades, config.near_misses, start_ns, span_ns, &world, &mut rng)?;
        let mut market = Market::new(world, start_ns);
        market.keep_exec = bad_per_million > 0;
        Ok(Flow {
            rng,
            market,
            fair,
            opened: 0,
            requests: 0,
            bytes: 0,
            next_heartbeat_ns: start_ns + config.noise.heartbeat_ns,
            first_legs: vec![None; plans.len()],
            plans,
            cues,
            next_cue: 0,
            planted: Vec::new(),
            near_misses: Vec::new(),
            config,
        })
    }

    /// Appends what happens next, a few messages, to `out`; false when the flow is over. Never stops inside a message.
    pub fn step(&mut self, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        let on = self.act(out);
        self.bytes += (out.len() - before) as u64;
        on
    }

    /// Runs the flow to its end.
    pub fn write_fix(&mut self, out: &mut dyn Write) -> io::Result<Truth> {
        const FLUSH_AT: usize = 64 << 10;
        let mut buffer = Vec::with_capacity(2 * FLUSH_AT);
        while self.step(&mut buffer) {
            if buffer.len() >= FLUSH_AT {
                out.write_all(&buffer)?;
                buffer.clear();
            }
        }
        out.write_all(&buffer)?;
        Ok(self.truth())
    }

    /// What happened so far.
    pub fn truth(&self) -> Truth {
        let last_ts = self.market.now;
        Truth {
            flow: self.market.counts.totals(self.config.seed, self.bytes, self.config.start_ns, last_ts),
            planted: self.planted.clone(),
            near_misses: self.near_misses.clone(),
            bbo: (0..self.market.world.books()).filter_map(|book| self.last_bbo(book)).collect(),
        }
    }

    fn act(&mut self, out: &mut Vec<u8>) -> bool {
        if self.opened < self.market.world.books() {
            self.open(self.opened, out);
            self.opened += 1;
            return true;
        }
        let sent = self.market.counts.messages();
        let cue = self.cues.get(self.next_cue).copied();
        if sent >= self.config.messages && cue.is_none() {
            return false;
        }
        let next_ns = self.market.now + self.gap_ns(sent);
        match cue {
            Some(cue) if sent >= self.config.messages || next_ns + PREPARE_NS >= cue.at_ns => {
                self.next_cue += 1;
                self.play(cue, out);
            }
            _ => {
                self.market.now = next_ns;
                self.background(out);
            }
        }
        self.make_noise(out);
        true
    }

    /// Time to the next request: what is left of the span over what is left of the messages, give or take.
    fn gap_ns(&mut self, sent: u64) -> u64 {
        let left_ns = (self.config.start_ns + self.config.span_ns).saturating_sub(self.market.now);
        let left = self.config.messages.saturating_sub(sent).max(1);
        let mean = u128::from(left_ns) * u128::from(sent.max(1))
            / u128::from(left)
            / u128::from(self.requests.max(1));
        // A thousandth of the span at most, so that one gap in a short flow does not swallow it.
        let mean = (mean as u64).clamp(LEAST_GAP_NS, (self.config.span_ns / 1000).max(LEAST_GAP_NS));
        mean / 2 + self.rng.below(mean)
    }

    /// A book opens with a few levels near the price and, behind them on each side, an order that is far away, huge
    /// and never touched, so that no side is ever empty.
    fn open(&mut self, book: usize, out: &mut Vec<u8>) {
        let instrument = self.market.world.instrument_index(book);
        let reference = self.market.world.instruments[instrument].reference;
        for depth in 1..=4 {
            for (side, px) in [(Side::Buy, reference - 2 * depth), (Side::Sell, reference + 2 * depth)] {
                self.market.now += LEAST_GAP_NS;
                let qty = self.rng.between(1, 20) * 100;
                self.enter(book, side, Some(px), qty, false, true, out);
            }
        }
        for (side, px) in [(Side::Buy, reference * 9 / 10), (Side::Sell, reference * 11 / 10)] {
            self.market.now += LEAST_GAP_NS;
            self.enter(book, side, Some(px), 50_000_000, false, false, out);
        }
    }

    fn background(&mut self, out: &mut Vec<u8>) {
        let roll = self.rng.below(100);
        let live = self.market.live();
        let latency_ns = LATENCY_NS + self.rng.below(25_000);
        if !live.is_empty() && (live.len() >= MOST_LIVE || roll < 30) {
            let slot = self.rng.pick(live);
            self.requests += 1;
            self.market.cancel(slot, latency_ns, out);
        } else if !live.is_empty() && roll < 44 {
            let slot = self.rng.pick(live);
            self.amend(slot, latency_ns, out);
        } else {
            self.order(out);
        }
    }

    fn amend(&mut self, slot: u32, latency_ns: u64, out: &mut Vec<u8>) {
        let order = *self.market.order(slot);
        let px = order.limit.expect("only limit orders rest");
        let open = order.qty - order.done;
        let (px, open) = if self.rng.one_in(2) {
            (px, self.rng.between(1, open + open / 4))
        } else {
            let fair = self.fair[self.market.world.instrument_index(order.book)];
            (away(order.side, fair, self.rng.halving()), open)
        };
        self.requests += 1;
        self.market.amend(slot, px, order.done + open, latency_ns, out);
    }

    fn order(&mut self, out: &mut Vec<u8>) {
        let rng = &mut self.rng;
        let instrument = rng.below(self.fair.len() as u64) as usize;
        let venue = rng.pick(&[0, 0, 0, 0, 0, 1, 1, 1, 2, 2]);
        self.wander(instrument);
        let rng = &mut self.rng;
        let book = self.market.world.book(venue, instrument);
        let side = rng.pick(&[Side::Buy, Side::Sell]);
        let qty = if rng.one_in(8) { rng.between(1, 999) } else { rng.between(1, 20) * 100 };
        let roll = rng.below(100);
        // Whoever takes is sure to find enough near the price, so that nobody trades with the far order of the opening.
        let nearby =
            self.fair[instrument] + if side == Side::Buy { 1 } else { -1 } * self.fair[instrument] / 20;
        let enough = self.market.book(book).quantity_within(side.opposite(), nearby) > qty;
        let best = self.market.book(book).best(side.opposite()).filter(|_| enough);
        match (roll, best) {
            (0..12, Some(best)) => self.enter(book, side, Some(best.px), qty, true, false, out),
            (12..22, Some(best)) => self.enter(book, side, Some(best.px), qty, false, true, out),
            (22..26, Some(_)) => self.enter(book, side, None, qty, true, false, out),
            _ => {
                let px =
                    away(side, self.fair[instrument], 1 + 2 * self.rng.halving() + self.rng.between(0, 3));
                self.enter(book, side, Some(px), qty, false, true, out);
            }
        }
    }

    /// Lets the price of an instrument wander, drawn back when it is more than 3 % from where it started.
    fn wander(&mut self, instrument: usize) {
        if !self.rng.one_in(8) {
            return;
        }
        let off = self.fair[instrument] - self.market.world.instruments[instrument].reference;
        let far = off.abs() * 100 > self.market.world.instruments[instrument].reference * 3;
        self.fair[instrument] += if far { -off.signum() } else { self.rng.pick(&[-1, 1]) };
    }

    /// A new order of somebody of the background who may trade this side.
    #[allow(clippy::too_many_arguments)]
    fn enter(
        &mut self,
        book: usize,
        side: Side,
        limit: Option<i64>,
        qty: i64,
        immediate: bool,
        listed: bool,
        out: &mut Vec<u8>,
    ) {
        let instrument = self.market.world.instrument_index(book);
        let member = self.rng.pick(self.market.world.traders(instrument, side));
        let latency_ns = LATENCY_NS + self.rng.below(25_000);
        self.send(NewOrder { member, book, side, limit, qty, immediate, listed }, latency_ns, out);
    }

    fn send(&mut self, new: NewOrder, latency_ns: u64, out: &mut Vec<u8>) {
        self.requests += 1;
        self.market.submit(new, latency_ns, out);
    }

    fn play(&mut self, cue: Cue, out: &mut Vec<u8>) {
        let plan = self.plans[cue.scene];
        self.market.now = self.market.now.max(cue.at_ns.saturating_sub(PREPARE_NS)) + 1;
        let book = self.market.world.book(plan.venues[cue.leg], plan.instrument);
        let owner = self.market.world.cast(plan.owners[cue.leg]);
        let side = plan.sides[cue.leg];
        if plan.arm == Arm::SelfMatch {
            let px = self.middle(book);
            let trade =
                self.meet(book, px, plan.qty, [(owner, side.opposite()), (owner, side)], cue.at_ns, out);
            self.record(&plan, &trade, trade.taker, &trade, trade.maker);
            return;
        }
        let (px, qty, due_ns) = match self.first_legs[cue.scene] {
            None => (self.middle(book), plan.qty, cue.at_ns),
            Some(first) => {
                let (px, qty) = plan::second_terms(&plan, first.px, first.qty, &mut self.rng);
                (px, qty, first.ts + plan.gap_ns)
            }
        };
        let other = self.rng.pick(self.market.world.traders(plan.instrument, side.opposite()));
        let (owner, other) = ((owner, side), (other, side.opposite()));
        let parts = if plan.passive[cue.leg] { [owner, other] } else { [other, owner] };
        let trade = self.meet(book, px, qty, parts, due_ns, out);
        match self.first_legs[cue.scene] {
            None => self.first_legs[cue.scene] = Some(trade),
            Some(first) => {
                let leg_of =
                    |trade: &Trade, n: usize| if plan.passive[n] { trade.maker } else { trade.taker };
                self.record(&plan, &first, leg_of(&first, 0), &trade, leg_of(&trade, 1));
            }
        }
    }

    /// A price to meet at: halfway between the best ones, but not where a thin side has only its far order.
    fn middle(&self, book: usize) -> i64 {
        let fair = self.fair[self.market.world.instrument_index(book)];
        let best = |side| self.market.book(book).best(side).expect("a book keeps both sides").px;
        ((best(Side::Buy) + best(Side::Sell)) / 2).clamp(fair - 20, fair + 20)
    }

    /// Makes two members trade with each other and with nobody else, at `due_ns` unless it is later already: the
    /// background first takes what stands in the way, then the first rests alone at the price and the second hits it.
    fn meet(
        &mut self,
        book: usize,
        px: i64,
        qty: i64,
        [maker, taker]: [(u16, Side); 2],
        due_ns: u64,
        out: &mut Vec<u8>,
    ) -> Trade {
        for side in [Side::Buy, Side::Sell] {
            let in_the_way = self.market.book(book).quantity_within(side, px);
            if in_the_way > 0 {
                self.market.now += LEAST_GAP_NS;
                self.enter(book, side.opposite(), Some(px), in_the_way, true, false, out);
            }
        }
        let limit = Some(px);
        let (member, side) = maker;
        self.market.now += LEAST_GAP_NS;
        let rest = NewOrder { member, book, side, limit, qty, immediate: false, listed: false };
        self.send(rest, LATENCY_NS, out);
        let (member, side) = taker;
        self.market.now = (self.market.now + LEAST_GAP_NS).max(due_ns.saturating_sub(LATENCY_NS));
        let hit = NewOrder { member, book, side, limit, qty, immediate: true, listed: false };
        self.send(hit, LATENCY_NS, out);
        let [trade] = self.market.trades[..] else {
            panic!("a meeting is one trade: {:?}", self.market.trades)
        };
        assert_eq!(
            (trade.px, trade.qty, trade.maker.member),
            (px, qty, maker.0),
            "a stranger was at the meeting"
        );
        trade
    }

    fn record(&mut self, plan: &Plan, first: &Trade, first_leg: Leg, second: &Trade, second_leg: Leg) {
        let legs = [self.leg(first, first_leg), self.leg(second, second_leg)];
        let key = Key {
            group: legs[1].owner.clone(),
            instr: self.market.world.instrument_of(second.book).isin.clone(),
        };
        let scene =
            Scene { scenario: "wash_trade", arm: plan.arm, miss: plan.miss, ts: second.ts, key, legs };
        if plan.miss.is_some() { &mut self.near_misses } else { &mut self.planted }.push(scene);
    }

    fn leg(&self, trade: &Trade, leg: Leg) -> SceneLeg {
        let world = &self.market.world;
        SceneLeg {
            ts: trade.ts,
            venue: VENUES[world.venue_of(trade.book)],
            oid: format!("O{:010}", leg.oid),
            match_id: format!("M{:010}", trade.match_id),
            exec_id: format!("E{:010}", leg.exec_id),
            owner: world.members[leg.member as usize].owner.clone(),
            side: if leg.side == Side::Buy { 'B' } else { 'S' },
            px: world.instrument_of(trade.book).decimal(trade.px),
            qty: trade.qty.to_string(),
        }
    }

    fn last_bbo(&self, book: usize) -> Option<LastBbo> {
        let world = &self.market.world;
        let published = self.market.published[book];
        let [bid, ask] = published.sides;
        if published.ts == 0 {
            return None;
        }
        let px = |best: Option<Best>| best.map(|best| world.instrument_of(book).decimal(best.px));
        let qty = |best: Option<Best>| best.map(|best| best.qty.to_string());
        let (venue, instr) = (VENUES[world.venue_of(book)], world.instrument_of(book).isin.clone());
        let ts = published.ts;
        Some(LastBbo { ts, venue, instr, bid: px(bid), bid_qty: qty(bid), ask: px(ask), ask_qty: qty(ask) })
    }

    fn make_noise(&mut self, out: &mut Vec<u8>) {
        let Noise { heartbeat_ns, bad_per_million } = self.config.noise;
        if heartbeat_ns > 0 && self.market.now >= self.next_heartbeat_ns {
            self.next_heartbeat_ns = self.market.now + heartbeat_ns;
            (0..VENUES.len()).for_each(|venue| self.market.heartbeat(venue, out));
        }
        if bad_per_million > 0 && self.rng.below(1_000_000) < u64::from(bad_per_million) {
            self.damage(out);
        }
    }

    /// Bad messages are extra: a copy of an exec under the session's next number. One that is taken for good shows as
    /// an exec too many; losing it loses nothing.
    fn damage(&mut self, out: &mut Vec<u8>) {
        let Some((venue, body)) = &self.market.last_exec else { return };
        let kind = self.market.counts.bad.total() % 4;
        let (wire, bad) = (&mut self.market.wire, &mut self.market.counts.bad);
        if kind == 3 {
            bad.garbage += 1;
            // Neither digits nor letters: it cannot hold the start of a message by chance.
            out.extend(
                (0..self.rng.between(8, 64))
                    .map(|_| b"\x00\x01\x02 !#|~\x80\xff"[self.rng.below(10) as usize]),
            );
            return;
        }
        wire.begin(*venue, b'8', self.market.now);
        match kind {
            0 => {
                bad.checksum += 1;
                wire.raw(body);
                wire.end_flawed(Flaw::Checksum, out);
            }
            1 => {
                bad.body_length += 1;
                wire.raw(body);
                let off = self.rng.between(1, 9) * self.rng.pick(&[-1, 1]);
                wire.end_flawed(Flaw::BodyLength(off), out);
            }
            _ => {
                bad.decimals += 1;
                let tag = b"\x0131=";
                let at = body.windows(tag.len()).position(|w| w == tag).expect("an exec has its price")
                    + tag.len();
                let end = at + body[at..].iter().position(|&b| b == 1).expect("a field has its end");
                wire.raw(&body[..end]);
                let point: &[u8] = if body[at..end].contains(&b'.') { b"" } else { b"." };
                wire.raw(point);
                wire.raw(b"000000000001");
                wire.raw(&body[end..]);
                wire.end(out);
            }
        }
    }
}

/// `ticks` worse than `from` for whoever trades on `side`.
fn away(side: Side, from: i64, ticks: i64) -> i64 {
    match side {
        Side::Buy => from - ticks,
        Side::Sell => from + ticks,
    }
}

/// Least time from a request to its answer.
const LATENCY_NS: u64 = 5_000;
/// Least time between two requests; above the longest answer, so that time never goes back.
const LEAST_GAP_NS: u64 = 50_000;
/// Orders that rest at once, besides two for each book.
const MOST_LIVE: usize = 1_500;
const YEAR_2500_NS: u64 = 16_725_225_600_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// A slot that is not given back grows the flow with the day; a stray trade at the far order makes prices absurd.
    #[test]
    fn memory_follows_the_live_orders_and_prices_stay_near() {
        let mut flow =
            Flow::new(FlowConfig { messages: 150_000, ..FlowConfig::default() }).expect("a good config");
        let far_orders = 2 * flow.market.world.books();
        let (mut out, mut trades) = (Vec::new(), 0);
        while flow.step(&mut out) {
            out.clear();
            assert!(flow.market.live().len() <= MOST_LIVE);
            assert!(flow.market.slots() <= MOST_LIVE + far_orders + 2, "{} slots", flow.market.slots());
            for trade in &flow.market.trades {
                let reference = flow.market.world.instrument_of(trade.book).reference;
                assert!((trade.px - reference).abs() * 100 < reference * 6, "{trade:?}");
                trades += 1;
            }
        }
        assert!(trades > 5_000 && out.capacity() < 1 << 20);
    }
}
