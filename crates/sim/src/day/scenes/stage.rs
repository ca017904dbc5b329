//! The stage of a scene: the exchange, and a few moves that all scenes share.

use super::super::crowd::PricePace;
use super::super::event::{DayEventBody, OrderKind, TimeInForce};
use super::super::exchange::{NewOrder, OrderRef, SimulatedVenues};
use super::super::rate_limit::MessageRateLimiter;
use super::super::truth::{AlertLabel, AlertLabelKey, LabelSet, NearMiss};
use super::super::world::SimulatedMarket;
use super::Scenario;
use crate::rng::Rng;
use unitape_model::Side;

/// The market as one scene sees it.
pub(crate) struct SceneContext<'a> {
    pub x: &'a mut SimulatedVenues,
    pub rng: &'a mut Rng,
    pub labels: &'a mut LabelSet,
    pub governor: &'a mut MessageRateLimiter,
    /// Labels that wait for the closing event of a book.
    pub at_close: &'a mut Vec<(u32, PendingLabel)>,
    /// Price in ticks that the orders of an instrument gather around.
    pub fair: &'a [i64],
    /// Ticks that the price of an instrument is still to go, since news.
    pub drift: &'a mut [i64],
    /// The number of the last news.
    pub news: &'a mut u64,
    pub pace: PricePace,
    pub next_parent: &'a mut u64,
    pub scene: u32,
}

/// The label of a scene at the closing event of its book.
#[derive(Debug, Clone)]
pub(crate) enum PendingLabel {
    Fires { scene: u32, key: AlertLabelKey, first_seq: u64 },
    Misses { scene: u32, key: AlertLabelKey, miss_reason: &'static str, first_seq: u64 },
}

/// The cast: the lead, and two members who trade only with the lead, one buying and one selling.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SceneParticipants {
    pub lead: u32,
    pub buyer: u32,
    pub seller: u32,
}

impl SceneParticipants {
    pub fn new(world: &mut SimulatedMarket, algo: bool) -> SceneParticipants {
        SceneParticipants { lead: world.cast(algo), buyer: world.cast(false), seller: world.cast(false) }
    }

    /// Returns the member who trades on `side`.
    pub fn member_on(&self, side: Side) -> u32 {
        if side == Side::Buy { self.buyer } else { self.seller }
    }
}

impl SceneContext<'_> {
    pub fn now(&self) -> u64 {
        self.x.now
    }

    pub fn next_seq(&self) -> u64 {
        self.x.seq + 1
    }

    /// Keeps the background out of a book, or lets it in again.
    pub fn quiet(&mut self, book: u32, quiet: bool) {
        self.x.desk_mut(book).quiet = quiet;
    }

    /// Submits a limit order that rests if it meets no order.
    pub fn rest(&mut self, member: u32, book: u32, side: Side, px: i64, qty: i64) -> OrderRef {
        self.submit(member, book, side, px, qty, TimeInForce::Day, 0)
    }

    /// Submits a limit order that executes against resting orders and then ends.
    pub fn take_liquidity(&mut self, member: u32, book: u32, side: Side, px: i64, qty: i64) {
        self.submit(member, book, side, px, qty, TimeInForce::Ioc, 0);
    }

    #[allow(clippy::too_many_arguments)]
    pub fn submit(
        &mut self,
        member: u32,
        book: u32,
        side: Side,
        px: i64,
        qty: i64,
        tif: TimeInForce,
        parent: u64,
    ) -> OrderRef {
        let (kind, px, stop_px) = (OrderKind::Limit, Some(px), None);
        self.x.submit(NewOrder { member, book, side, kind, tif, px, stop_px, qty, parent, crowd: false })
    }

    /// Sends an order that a control refuses.
    pub fn send_refused(&mut self, member: u32, book: u32, side: Side, px: i64, qty: i64, parent: u64) {
        let (kind, tif, px, stop_px) = (OrderKind::Limit, TimeInForce::Day, Some(px), None);
        self.x.send_refused(NewOrder {
            member,
            book,
            side,
            kind,
            tif,
            px,
            stop_px,
            qty,
            parent,
            crowd: false,
        });
    }

    /// Cancels an order that must be there and returns the ordinal of the event.
    pub fn cancel(&mut self, order_ref: OrderRef) -> u64 {
        assert!(self.x.leaves(order_ref) > 0, "a scene cancels an order that has gone");
        let seq = self.next_seq();
        self.x.cancel(order_ref);
        seq
    }

    /// Returns the price in ticks around which the orders of a book gather. In a market of several days, news may move
    /// it at once. A scene that has begun must not follow it while it acts, so it keeps to the prices of its book.
    pub fn fair_of(&self, book: u32) -> i64 {
        let fair = self.fair[self.x.world.instr_of(book).index()];
        if self.pace == PricePace::Day {
            return fair;
        }
        let best = |side| self.x.desk(book).book.best(side).map(|best| best.px);
        let fair = best(Side::Buy).map_or(fair, |bid| fair.max(bid));
        best(Side::Sell).map_or(fair, |ask| fair.min(ask))
    }

    /// Sees to it that a book has both sides near its price, at least three ticks apart from where it is thin; returns
    /// the best of both, bid first.
    pub fn dress(&mut self, book: u32, cast: &SceneParticipants) -> (i64, i64) {
        let fair = self.fair_of(book);
        for (side, sign) in [(Side::Buy, 1), (Side::Sell, -1)] {
            let best = self.x.desk(book).book.best(side).map(|b| b.px);
            let opposite_best = self.x.desk(book).book.best(side.opposite()).map(|b| b.px);
            let far = best.is_none_or(|px| (fair - px) * sign > 12);
            if far {
                let px = fair - sign * self.rng.between(2, 4);
                // Never across the other side.
                let px = match opposite_best {
                    Some(opposite_px) if (opposite_px - px) * sign <= 0 => opposite_px - sign,
                    _ => px,
                };
                let qty = self.rng.between(1, 9) * 100;
                self.rest(cast.member_on(side), book, side, px, qty);
            }
        }
        let best = |side| self.x.desk(book).book.best(side).expect("both sides are there now").px;
        (best(Side::Buy), best(Side::Sell))
    }

    /// Makes two members trade only with each other. First the two of the cast fill the orders in between. Then `maker`
    /// rests alone at the price, and `taker`, on the other side, hits that order. Returns the ordinals of the
    /// executions of the taker and of the maker.
    pub fn trade_between(
        &mut self,
        book: u32,
        px: i64,
        qty: i64,
        cast: &SceneParticipants,
        [maker, taker]: [(u32, Side, u64); 2],
    ) -> [u64; 2] {
        // These fills may elect a stop, which may be in between again.
        loop {
            let mut clear = true;
            for side in [Side::Buy, Side::Sell] {
                let in_the_way = self.x.desk(book).book.quantity_within(side, px);
                if in_the_way > 0 {
                    self.take_liquidity(
                        cast.member_on(side.opposite()),
                        book,
                        side.opposite(),
                        px,
                        in_the_way,
                    );
                    clear = false;
                }
            }
            if clear {
                break;
            }
        }
        let before = self.x.out.len();
        let maker = self.submit(maker.0, book, maker.1, px, qty, TimeInForce::Day, maker.2);
        let taker = self.submit(taker.0, book, taker.1, px, qty, TimeInForce::Ioc, taker.2);
        let exec = |oid: u64| {
            let mut execs = self.x.out[before..].iter().filter_map(|e| match e.body {
                DayEventBody::Exec { order, qty, .. } if order.oid == oid => Some((e.seq, qty)),
                _ => None,
            });
            execs.next().expect("a meeting is one trade")
        };
        let executions = [exec(taker.oid), exec(maker.oid)];
        assert!(executions.iter().all(|e| e.1 == qty), "a stranger was at the meeting");
        executions.map(|e| e.0)
    }

    /// Returns a price between the best bid and ask, at which two members can meet.
    pub fn middle(&mut self, book: u32, cast: &SceneParticipants) -> i64 {
        let (bid, ask) = self.dress(book, cast);
        (bid + ask) / 2
    }

    /// Cancels the background's orders of `side` at `limit` and better, as far as the rate limit allows in this second.
    /// Returns true if all of them are cancelled.
    pub fn pull(&mut self, book: u32, side: Side, limit: i64) -> bool {
        let sign = if side == Side::Buy { 1 } else { -1 };
        let near = |px: i64| (px - limit) * sign >= 0;
        let slots: Vec<u32> =
            self.x.desk(book).book.orders(side).take_while(|o| near(o.1)).map(|o| o.0).collect();
        let mut all = true;
        for slot in slots {
            if self.governor.allow(self.x.order(slot).terms.member, self.x.now, 1) {
                self.x.cancel_slot(slot);
            } else {
                all = false;
            }
        }
        all
    }

    pub fn label(
        &mut self,
        scenario: Scenario,
        key: AlertLabelKey,
        reason: Option<&'static str>,
        first_seq: u64,
        seq: u64,
    ) {
        let (scene, ts) = (self.scene, self.x.now);
        let scenario = scenario.id();
        self.labels.labels.push(AlertLabel { scene, scenario, key, reason, ts, first_seq, trigger_seq: seq });
    }

    pub fn near_miss(
        &mut self,
        scenario: Scenario,
        key: AlertLabelKey,
        miss_reason: &'static str,
        first_seq: u64,
    ) {
        let (scene, last_seq, scenario) = (self.scene, self.x.seq, scenario.id());
        let trigger_seq = None;
        let miss = NearMiss { scene, scenario, key, misses: miss_reason, first_seq, trigger_seq, last_seq };
        self.labels.near_misses.push(miss);
    }

    /// Makes an alert key from `owner`, `venue`, `instr` and, if given, `side`.
    pub fn place_key(&self, member: u32, book: u32, side: Option<Side>) -> AlertLabelKey {
        let world = &self.x.world;
        let mut key = vec![
            ("owner", world.owner_name(member).to_owned()),
            ("venue", world.venue_name(book).to_owned()),
            ("instr", world.isin(book).to_owned()),
        ];
        key.extend(side.map(|side| ("side", side.letter().to_owned())));
        AlertLabelKey(key)
    }

    pub fn trader_key(&self, member: u32) -> AlertLabelKey {
        AlertLabelKey(vec![("trader", self.x.world.trader_name(member).to_owned())])
    }

    /// Returns the least quantity whose value at `px` reaches `money` (whole units of the currency).
    pub fn qty_worth(&self, book: u32, px: i64, money: i64) -> i64 {
        let nano = i128::from(self.x.world.listed(book).nano(px));
        ((i128::from(money) * 1_000_000_000 + nano - 1) / nano) as i64
    }
}

/// Returns 1 for a buyer, -1 for a seller. A price times this sign is greater if it is better for the resting side.
pub(crate) fn sign(side: Side) -> i64 {
    if side == Side::Buy { 1 } else { -1 }
}
