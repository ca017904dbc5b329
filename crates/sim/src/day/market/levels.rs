//! The price levels of the first venue.

use unitape_model::Side;

use super::super::event::DayEventBody;
use super::super::exchange::SimulatedVenues;
use super::event::{LevelAction, MarketEventBody, PriceLevel};

/// Publishes the levels of the books of the first venue, all of them and by price, as far as they changed in a step.
#[derive(Debug)]
pub(super) struct LevelFeed {
    /// Levels of each book, best first, bids and offers.
    published: Vec<[Vec<PriceLevel>; 2]>,
    touched: Vec<u32>,
    now: Vec<PriceLevel>,
}

impl LevelFeed {
    pub fn new(instruments: usize) -> LevelFeed {
        let published = (0..instruments).map(|_| [Vec::new(), Vec::new()]).collect();
        LevelFeed { published, touched: Vec::new(), now: Vec::new() }
    }

    pub fn apply(&mut self, body: &DayEventBody) {
        let book = match body {
            DayEventBody::New(t) | DayEventBody::Amend(t) | DayEventBody::Cancel(t) => t.book,
            DayEventBody::Exec { order, .. } => order.book,
            _ => return,
        };
        // The books of the first venue come first.
        if (book as usize) < self.published.len() && !self.touched.contains(&book) {
            self.touched.push(book);
        }
    }

    /// Publishes the changes: removed levels, then new and changed levels.
    pub fn publish(&mut self, x: &SimulatedVenues, mut each: impl FnMut(MarketEventBody)) {
        for book in self.touched.drain(..) {
            for side in [Side::Buy, Side::Sell] {
                self.now.clear();
                for (_, px, qty) in x.desk(book).book.orders(side) {
                    match self.now.last_mut() {
                        Some(level) if level.px == px => {
                            (level.qty, level.orders) = (level.qty + qty, level.orders + 1);
                        }
                        _ => self.now.push(PriceLevel { px, qty, orders: 1 }),
                    }
                }
                let before = &mut self.published[book as usize][side.index()];
                let rank = |px: i64| if side == Side::Buy { -px } else { px };
                let find = |levels: &[PriceLevel], px| levels.binary_search_by_key(&rank(px), |l| rank(l.px));
                for level in before.iter().filter(|level| find(&self.now, level.px).is_err()) {
                    each(MarketEventBody::Level { book, side, action: LevelAction::Delete, level: *level });
                }
                for &level in &self.now {
                    let action = match find(before, level.px) {
                        Ok(index) if before[index] == level => continue,
                        Ok(_) => LevelAction::Change,
                        Err(_) => LevelAction::Add,
                    };
                    each(MarketEventBody::Level { book, side, action, level });
                }
                std::mem::swap(before, &mut self.now);
            }
        }
    }
}
