//! A runaway algorithm, for each of the four reasons.

use super::super::event::DayEventBody;
use super::super::exchange::OrderRef;
use super::super::truth::AlertLabelKey;
use super::super::world::SimulatedMarket;
use super::messages::MessageFlood;
use super::stage::{SceneContext, SceneParticipants};
use super::{MS, S, Scenario, Scene, ScenePlacement};
use unitape_model::Side;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreachedLimit {
    MessageRate,
    Repeat,
    Notional,
    Overfill,
}

/// Orders that a halted runaway sends before it gives up.
const REFUSED_MAX: u64 = 25;

const REASONS: [(BreachedLimit, &str, &str); 4] = [
    (BreachedLimit::MessageRate, "message_rate", "max_msgs messages in the window and not more"),
    (
        BreachedLimit::Repeat,
        "repeat",
        "max_repeats alike in the window; the next comes exactly repeat_window_ms after the first",
    ),
    (BreachedLimit::Notional, "notional", "max_notional is not passed"),
    (BreachedLimit::Overfill, "overfill", "exactly overfill_pct of the parent is executed"),
];

#[derive(Debug)]
pub(crate) struct RunawayAlgoScene {
    cast: SceneParticipants,
    flood: MessageFlood,
    reason: BreachedLimit,
    word: &'static str,
    /// Why it does not fire.
    miss: Option<&'static str>,
    first_ts: u64,
    px: i64,
    live: Vec<OrderRef>,
    entered: u64,
    parent: (u64, i64),
    executed: i64,
    fired: bool,
    refused: u64,
}

impl RunawayAlgoScene {
    pub fn new(
        miss: bool,
        n: usize,
        placement: &ScenePlacement,
        world: &mut SimulatedMarket,
    ) -> RunawayAlgoScene {
        let (reason, word, miss_reason) = REASONS[n % REASONS.len()];
        let cast = SceneParticipants::new(world, true);
        let side = if n.is_multiple_of(3) { Side::Sell } else { Side::Buy };
        RunawayAlgoScene {
            cast,
            flood: MessageFlood::new(cast.lead, placement.book, side),
            reason,
            word,
            miss: miss.then_some(miss_reason),
            first_ts: 0,
            px: 0,
            live: Vec::new(),
            entered: 0,
            parent: (0, 0),
            executed: 0,
            fired: false,
            refused: 0,
        }
    }

    fn key(&self, stage: &SceneContext<'_>) -> AlertLabelKey {
        AlertLabelKey(vec![("algo", stage.x.world.algo_name(self.cast.lead).expect("it has one").to_owned())])
    }

    fn fire(&mut self, stage: &mut SceneContext<'_>, seq: u64) {
        if self.miss.is_none() && !self.fired {
            self.fired = true;
            let key = self.key(stage);
            stage.label(Scenario::RunawayAlgo, key, Some(self.word), self.flood.first_seq, seq);
        }
    }

    fn end(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        assert!(self.fired || self.miss.is_some(), "a runaway that does not fire: {:?}", self.reason);
        if let Some(words) = self.miss {
            let key = self.key(stage);
            stage.near_miss(Scenario::RunawayAlgo, key, words, self.flood.first_seq);
        }
        stage.quiet(self.flood.book, false);
        None
    }

    /// Enters and cancels by turns, 8 ms apart: within a second all of it.
    fn message_rate(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        let seq = stage.next_seq();
        match self.live.pop() {
            Some(order) => drop(self.flood.cancel(stage, order)),
            None => {
                let qty = 100 + self.flood.sent as i64;
                self.live.push(self.flood.enter(stage, self.px, qty));
            }
        }
        if self.flood.sent > 100 {
            self.fire(stage, seq);
        }
        let messages = if self.miss.is_some() { 100 } else { 110 };
        if self.flood.sent < messages { Some(stage.now() + 8 * MS) } else { self.end(stage) }
    }

    /// Enters the same order again and again, then slowly out again.
    fn repeat(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        let orders = if self.miss.is_some() { 21 } else { 23 };
        if self.entered < orders {
            let seq = stage.next_seq();
            if self.entered == 0 {
                self.first_ts = stage.now();
                self.flood.first_seq = seq;
            }
            self.live.push(stage.rest(self.cast.lead, self.flood.book, self.flood.side, self.px, 700));
            self.entered += 1;
            if self.entered == 21 {
                self.fire(stage, seq);
            }
            return Some(match self.miss {
                Some(_) if self.entered == 20 => self.first_ts + 10 * S,
                _ => stage.now() + 400 * MS,
            });
        }
        match self.live.pop() {
            Some(order) => {
                stage.cancel(order);
                Some(stage.now() + 300 * MS)
            }
            None => self.end(stage),
        }
    }

    /// Buys or sells with the cast, five times.
    fn trades(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        let (book, side, lead) = (self.flood.book, self.flood.side, self.cast.lead);
        let px = stage.middle(book, &self.cast);
        if self.entered == 0 {
            self.flood.first_seq = stage.next_seq();
            if self.reason == BreachedLimit::Overfill {
                *stage.next_parent += 1;
                self.parent = (*stage.next_parent, stage.rng.between(4, 40) * 100);
                let (instr, qty) = (stage.x.world.instr_of(book), self.parent.1);
                stage.x.emit(DayEventBody::Parent { parent: self.parent.0, member: lead, instr, side, qty });
            }
        }
        let qty = match (self.reason, self.miss.is_some()) {
            // A fifth of the parent each, or a little more with the last.
            (BreachedLimit::Overfill, missed) if self.entered == 4 => {
                self.parent.1 - self.executed + i64::from(!missed)
            }
            (BreachedLimit::Overfill, _) => self.parent.1 / 5,
            (_, true) => stage.qty_worth(book, px, 1_990_000) - 1,
            (_, false) => stage.qty_worth(book, px, 2_050_000),
        };
        let counterparty = (self.cast.member_on(side.opposite()), side.opposite(), 0);
        let [taker, _] =
            stage.trade_between(book, px, qty, &self.cast, [counterparty, (lead, side, self.parent.0)]);
        self.entered += 1;
        self.executed += qty;
        if self.entered == 5 {
            self.fire(stage, taker);
            return self.end(stage);
        }
        Some(stage.now() + stage.rng.between(500, 3_000) as u64 * MS)
    }
}

impl Scene for RunawayAlgoScene {
    fn play(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        if self.px == 0 {
            stage.quiet(self.flood.book, true);
            self.px = self.flood.untouched_px(stage, &self.cast);
        }
        match self.reason {
            BreachedLimit::MessageRate => self.message_rate(stage),
            BreachedLimit::Repeat => self.repeat(stage),
            BreachedLimit::Notional | BreachedLimit::Overfill => self.trades(stage),
        }
    }

    /// Sends an order that a control refuses. A runaway algorithm does not know that it is halted.
    fn send_refused(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        let (qty, pause) = match self.reason {
            BreachedLimit::MessageRate => (100 + (self.flood.sent + self.refused) as i64, 8 * MS),
            BreachedLimit::Repeat => (700, 400 * MS),
            BreachedLimit::Notional => {
                (stage.qty_worth(self.flood.book, self.px.max(1), 2_050_000), 500 * MS)
            }
            BreachedLimit::Overfill => ((self.parent.1 / 5).max(1), 500 * MS),
        };
        let (lead, book, side) = (self.cast.lead, self.flood.book, self.flood.side);
        stage.send_refused(lead, book, side, self.px, qty, self.parent.0);
        self.refused += 1;
        (self.refused < REFUSED_MAX).then(|| stage.now() + pause)
    }
}
