//! Floods of messages: too many orders for the trades, and quote stuffing.

use std::collections::VecDeque;
use unitape_model::Side;

use super::super::exchange::OrderRef;
use super::super::truth::AlertLabelKey;
use super::super::world::SimulatedMarket;
use super::stage::{SceneContext, SceneParticipants, sign};
use super::{MS, Scenario, Scene, ScenePlacement};

/// Entries and cancels of one trader, all within a second, and the alert on their ratio to his trades.
#[derive(Debug)]
pub(crate) struct MessageFlood {
    pub lead: u32,
    pub book: u32,
    pub side: Side,
    pub sent: u64,
    pub execs: u64,
    pub first_seq: u64,
    fired: bool,
}

impl MessageFlood {
    pub fn new(lead: u32, book: u32, side: Side) -> MessageFlood {
        MessageFlood { lead, book, side, sent: 0, execs: 0, first_seq: 0, fired: false }
    }

    /// Draws a price far enough from the best price to rest untouched.
    pub fn untouched_px(&self, stage: &mut SceneContext<'_>, cast: &SceneParticipants) -> i64 {
        let (bid, ask) = stage.dress(self.book, cast);
        let best = if self.side == Side::Buy { bid } else { ask };
        best - sign(self.side) * stage.rng.between(5, 9)
    }

    /// Says that a message went out with this ordinal. All messages of a flood must be within a second.
    pub fn count(&mut self, stage: &mut SceneContext<'_>, seq: u64) {
        if self.sent == 0 {
            self.first_seq = seq;
        }
        self.sent += 1;
        if self.sent >= 50 && self.sent > 20 * self.execs && !self.fired {
            self.fired = true;
            let key = stage.trader_key(self.lead);
            stage.label(Scenario::OrderToTradeRatio, key, None, self.first_seq, seq);
        }
    }

    pub fn enter(&mut self, stage: &mut SceneContext<'_>, px: i64, qty: i64) -> OrderRef {
        let seq = stage.next_seq();
        let order = stage.rest(self.lead, self.book, self.side, px, qty);
        self.count(stage, seq);
        order
    }

    pub fn cancel(&mut self, stage: &mut SceneContext<'_>, order: OrderRef) -> u64 {
        let seq = stage.cancel(order);
        self.count(stage, seq);
        seq
    }
}

/// Order-to-trade ratio.
#[derive(Debug)]
pub(crate) struct OrderToTradeScene {
    cast: SceneParticipants,
    flood: MessageFlood,
    miss: Option<&'static str>,
    /// Messages to send, and trades to have before.
    messages: u64,
    trades: u64,
    live: Option<OrderRef>,
    px: i64,
}

impl OrderToTradeScene {
    pub fn new(
        miss: bool,
        n: usize,
        placement: &ScenePlacement,
        world: &mut SimulatedMarket,
    ) -> OrderToTradeScene {
        let (miss, messages, trades) = match (miss, n % 2) {
            (false, odd) => (None, [60, 75][odd], [0, 2][odd]),
            (true, 0) => (Some("one message fewer than min_msgs"), 49, 0),
            (true, _) => (Some("messages are max_ratio times the trades and not more"), 60, 3),
        };
        let cast = SceneParticipants::new(world, false);
        let side = if n.is_multiple_of(3) { Side::Sell } else { Side::Buy };
        OrderToTradeScene {
            cast,
            flood: MessageFlood::new(cast.lead, placement.book, side),
            miss,
            messages,
            trades,
            live: None,
            px: 0,
        }
    }
}

impl Scene for OrderToTradeScene {
    fn play(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        let (book, side) = (self.flood.book, self.flood.side);
        if self.flood.sent == 0 {
            stage.quiet(book, true);
            self.px = self.flood.untouched_px(stage, &self.cast);
        }
        if self.flood.execs < self.trades {
            // An order of his that trades at once: one message, one execution.
            let px = stage.middle(book, &self.cast);
            let seq = stage.next_seq();
            let counterparty = (self.cast.member_on(side.opposite()), side.opposite(), 0);
            let [taker, _] =
                stage.trade_between(book, px, 100, &self.cast, [counterparty, (self.cast.lead, side, 0)]);
            debug_assert!(taker > seq);
            // The trade is counted first: 2 of them never make a difference before the fiftieth message.
            self.flood.execs += 1;
            self.flood.count(stage, seq);
        } else if let Some(order) = self.live.take() {
            self.flood.cancel(stage, order);
        } else {
            self.live = Some(self.flood.enter(stage, self.px, 300));
        }
        if self.flood.sent < self.messages {
            return Some(stage.now() + stage.rng.between(5, 12) as u64 * MS);
        }
        if let Some(words) = self.miss {
            let key = stage.trader_key(self.cast.lead);
            stage.near_miss(Scenario::OrderToTradeRatio, key, words, self.flood.first_seq);
        }
        stage.quiet(book, false);
        None
    }
}

/// Quote stuffing.
#[derive(Debug)]
pub(crate) struct QuoteStuffingScene {
    cast: SceneParticipants,
    flood: MessageFlood,
    miss: Option<&'static str>,
    /// Entries to make, how far apart, and how long each lives.
    entries: u64,
    every_ns: u64,
    alive_ns: u64,
    start: u64,
    entered: u64,
    cancels: u64,
    live: VecDeque<(OrderRef, u64)>,
    px: i64,
    fired: bool,
}

impl QuoteStuffingScene {
    pub fn new(
        miss: bool,
        n: usize,
        placement: &ScenePlacement,
        world: &mut SimulatedMarket,
    ) -> QuoteStuffingScene {
        let (miss, entries, every_ns, alive_ns) = match (miss, n % 2) {
            (false, 0) => (None, 260, 3 * MS, MS),
            (false, _) => (None, 280, 3 * MS, 100 * MS),
            (true, 0) => (Some("two messages fewer than min_msgs"), 249, 3 * MS, 2 * MS),
            (true, _) => {
                (Some("every order lives a nanosecond more than max_live_ms"), 270, 3 * MS, 100 * MS + 1)
            }
        };
        let cast = SceneParticipants::new(world, false);
        let side = if n.is_multiple_of(3) { Side::Sell } else { Side::Buy };
        QuoteStuffingScene {
            cast,
            flood: MessageFlood::new(cast.lead, placement.book, side),
            miss,
            entries,
            every_ns,
            alive_ns,
            start: 0,
            entered: 0,
            cancels: 0,
            live: VecDeque::new(),
            px: 0,
            fired: false,
        }
    }
}

impl Scene for QuoteStuffingScene {
    fn play(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        let book = self.flood.book;
        if self.flood.sent == 0 {
            stage.quiet(book, true);
            self.px = self.flood.untouched_px(stage, &self.cast);
            self.start = stage.now();
        }
        assert!(stage.now() - self.start < super::S, "a flood longer than a second");
        if self.live.front().is_some_and(|&(_, entered)| stage.now() >= entered + self.alive_ns) {
            let (order, _) = self.live.pop_front().expect("it was just there");
            let seq = self.flood.cancel(stage, order);
            self.cancels += 1;
            let fires = self.miss.is_none() && self.flood.sent >= 500 && !self.fired;
            if fires {
                self.fired = true;
                let key = key(stage, self.cast.lead, book);
                stage.label(Scenario::QuoteStuffing, key, None, self.flood.first_seq, seq);
            }
        } else if self.entered < self.entries && stage.now() >= self.start + self.entered * self.every_ns {
            let px = self.px - sign(self.flood.side) * (self.entered % 3) as i64;
            let order = self.flood.enter(stage, px, 100);
            self.live.push_back((order, stage.now()));
            self.entered += 1;
        }
        let next_entry = (self.entered < self.entries).then(|| self.start + self.entered * self.every_ns);
        let next_cancel = self.live.front().map(|&(_, entered)| entered + self.alive_ns);
        let next = next_entry.into_iter().chain(next_cancel).min();
        if next.is_none() {
            if let Some(words) = self.miss {
                let key = key(stage, self.cast.lead, book);
                stage.near_miss(Scenario::QuoteStuffing, key, words, self.flood.first_seq);
            }
            assert!(self.miss.is_some() || self.fired, "stuffing that does not fire");
            stage.quiet(book, false);
        }
        next
    }
}

fn key(stage: &SceneContext<'_>, lead: u32, book: u32) -> AlertLabelKey {
    let world = &stage.x.world;
    AlertLabelKey(vec![
        ("trader", world.trader_name(lead).to_owned()),
        ("venue", world.venue_name(book).to_owned()),
        ("instr", world.isin(book).to_owned()),
    ])
}
