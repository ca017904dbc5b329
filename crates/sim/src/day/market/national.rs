//! The best of all venues.

use unitape_model::{InstrumentId, Side};

use super::super::event::{DayEventBody, MarketPhase};
use super::super::world::SimulatedMarket;
use super::event::MarketEventBody;
use crate::book::BestLevel;

/// Derives the national best from the venues' events: from the last `bbo` of each venue whose book is in the phase
/// `open`. The quantities at the best price are added up. Venues do not know each other's prices, so the national best
/// may be crossed.
#[derive(Debug)]
pub(super) struct NationalBest {
    /// Last best of each book, bid first, and whether the book is open.
    books: Vec<([Option<BestLevel>; 2], bool)>,
    published: Vec<[Option<BestLevel>; 2]>,
    touched: Vec<InstrumentId>,
}

impl NationalBest {
    pub fn new(world: &SimulatedMarket) -> NationalBest {
        NationalBest {
            books: vec![([None; 2], false); world.books()],
            published: vec![[None; 2]; world.instruments.len()],
            touched: Vec::new(),
        }
    }

    /// Books are empty when a day begins.
    pub fn begin_day(&mut self) {
        self.books.fill(([None; 2], false));
    }

    pub fn apply(&mut self, world: &SimulatedMarket, body: &DayEventBody) {
        let book = match *body {
            DayEventBody::Bbo { book, bid, ask } => {
                self.books[book as usize].0 = [bid, ask];
                book
            }
            DayEventBody::Session { book, phase, .. } => {
                self.books[book as usize].1 = phase == MarketPhase::Open;
                book
            }
            _ => return,
        };
        let instr = world.instr_of(book);
        if !self.touched.contains(&instr) {
            self.touched.push(instr);
        }
    }

    /// Publishes the changes.
    pub fn publish(&mut self, world: &SimulatedMarket, mut each: impl FnMut(MarketEventBody)) {
        for n in 0..self.touched.len() {
            let instr = self.touched[n];
            let [bid, ask] = [Side::Buy, Side::Sell].map(|side| self.best(world, instr, side));
            if self.published[instr.index()] != [bid, ask] {
                self.published[instr.index()] = [bid, ask];
                each(MarketEventBody::NationalBest { instr, bid, ask });
            }
        }
        self.touched.clear();
    }

    /// Returns the mid price in halves of a tick, if both sides have a price.
    pub fn mid_half_ticks(&self, instr: InstrumentId) -> Option<i64> {
        let [bid, ask] = self.published[instr.index()];
        Some(bid?.px + ask?.px)
    }

    fn best(&self, world: &SimulatedMarket, instr: InstrumentId, side: Side) -> Option<BestLevel> {
        let rank = |px: i64| if side == Side::Buy { px } else { -px };
        let mut best: Option<BestLevel> = None;
        for venue in 0..world.venues.len() {
            let (sides, open) = self.books[world.book(venue, instr) as usize];
            let Some(level) = sides[side.index()].filter(|_| open) else { continue };
            best = Some(match best {
                Some(best) if best.px == level.px => BestLevel { px: best.px, qty: best.qty + level.qty },
                Some(best) if rank(best.px) > rank(level.px) => best,
                _ => level,
            });
        }
        best
    }
}
