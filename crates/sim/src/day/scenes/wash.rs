//! Wash trades: with oneself, with a friend of the same group, at once or there and back.

use super::super::truth::AlertLabelKey;
use super::super::world::SimulatedMarket;
use super::stage::{SceneContext, SceneParticipants};
use super::{MS, S, Scenario, Scene, ScenePlacement};
use crate::rng::Rng;
use unitape_model::Side;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WashTradeVariant {
    SelfMatch,
    RoundTrip,
    Window,
    Price,
    Quantity,
    SameSide,
    Stranger,
}

const MISSES: [(WashTradeVariant, &str); 5] = [
    (WashTradeVariant::Window, "the second leg comes exactly window_ms after the first"),
    (WashTradeVariant::Price, "one tick more than px_tol_bps from the first price"),
    (WashTradeVariant::Quantity, "one share more than qty_tol_pct from the first quantity"),
    (WashTradeVariant::SameSide, "both legs are on one side"),
    (WashTradeVariant::Stranger, "the second leg is somebody else's"),
];

#[derive(Debug)]
pub(crate) struct WashTradeScene {
    cast: SceneParticipants,
    /// The owner of the second leg: the same, another of his group, or a stranger.
    second: u32,
    books: [u32; 2],
    side: Side,
    plot: WashTradeVariant,
    words: &'static str,
    passive: [bool; 2],
    first: Option<(u64, i64, i64, u64)>,
}

impl WashTradeScene {
    pub fn new(
        miss: bool,
        n: usize,
        placement: &ScenePlacement,
        world: &mut SimulatedMarket,
        rng: &mut Rng,
    ) -> WashTradeScene {
        let (plot, words) = if miss {
            MISSES[n % MISSES.len()]
        } else {
            ([WashTradeVariant::SelfMatch, WashTradeVariant::RoundTrip][n % 2], "")
        };
        let cast = SceneParticipants::new(world, false);
        let second = match plot {
            WashTradeVariant::Stranger => world.cast(false),
            _ if n % 4 >= 2 => world.cast_linked(cast.lead),
            _ => cast.lead,
        };
        WashTradeScene {
            cast,
            second,
            books: [placement.book, placement.other_book],
            side: rng.pick(&[Side::Buy, Side::Sell]),
            plot,
            words,
            passive: [rng.one_in(2), rng.one_in(2)],
            first: None,
        }
    }

    /// Trades one leg: another member of the cast takes the other side. Returns the ordinal of the execution of
    /// `member`.
    fn leg(&self, stage: &mut SceneContext<'_>, n: usize, member: u32, side: Side, px: i64, qty: i64) -> u64 {
        let (own_part, other_part) =
            ((member, side, 0), (self.cast.member_on(side.opposite()), side.opposite(), 0));
        let parts = if self.passive[n] { [own_part, other_part] } else { [other_part, own_part] };
        let [taker, maker] = stage.trade_between(self.books[n], px, qty, &self.cast, parts);
        if self.passive[n] { maker } else { taker }
    }
}

impl Scene for WashTradeScene {
    fn play(&mut self, stage: &mut SceneContext<'_>) -> Option<u64> {
        let lead = self.cast.lead;
        let key = AlertLabelKey(vec![
            ("group", stage.x.world.group_name(lead).to_owned()),
            ("instr", stage.x.world.isin(self.books[0]).to_owned()),
        ]);
        let Some((ts, px, qty, first_seq)) = self.first else {
            let px = stage.middle(self.books[0], &self.cast);
            let qty = stage.rng.between(4, 40) * 50;
            if self.plot == WashTradeVariant::SelfMatch {
                let parts = [(self.second, self.side.opposite(), 0), (lead, self.side, 0)];
                let [taker, maker] = stage.trade_between(self.books[0], px, qty, &self.cast, parts);
                stage.label(Scenario::WashTrade, key, Some("self_match"), taker.min(maker), taker.max(maker));
                return None;
            }
            let seq = self.leg(stage, 0, lead, self.side, px, qty);
            self.first = Some((stage.now(), px, qty, seq));
            return Some(match self.plot {
                WashTradeVariant::Window => stage.now() + 60 * S,
                _ => stage.now() + stage.rng.between(300, 40_000) as u64 * MS,
            });
        };
        // In whole ticks |Δpx| · 10⁴ ≤ 5 · px has the largest solution 5 · px / 10⁴, rounded down; the tick cancels.
        let (px_most, qty_most) = (px * 5 / 10_000, qty * 10 / 100);
        let sign = stage.rng.pick(&[1, -1]);
        let (px, qty) = match self.plot {
            WashTradeVariant::Price => (px + sign * (px_most + 1), qty),
            WashTradeVariant::Quantity => (px, qty + sign * (qty_most + 1)),
            WashTradeVariant::RoundTrip => {
                (px + stage.rng.between(-px_most, px_most), qty + stage.rng.between(-qty_most, qty_most))
            }
            _ => (px, qty),
        };
        debug_assert!(stage.now() >= ts);
        let side = if self.plot == WashTradeVariant::SameSide { self.side } else { self.side.opposite() };
        let seq = self.leg(stage, 1, self.second, side, px, qty);
        if self.plot == WashTradeVariant::RoundTrip {
            stage.label(Scenario::WashTrade, key, Some("round_trip"), first_seq, seq);
        } else {
            stage.near_miss(Scenario::WashTrade, key, self.words, first_seq);
            let miss = stage.labels.near_misses.last_mut().expect("it was just labelled");
            miss.trigger_seq = Some(seq);
        }
        None
    }
}
