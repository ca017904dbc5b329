//! The end of a day: closing auctions, their effect on the scenes, and the remaining orders.

use super::event::{DayEventBody, MarketPhase};
use super::scenes::{PendingLabel, Scenario};
use super::truth::{AlertLabel, NearMiss};
use super::world::ListedInstrument;
use super::{Sim, config};

/// The closing auction of the background stays this near to the price ten minutes before, in basis points: under the 50
/// from which `marking_close` looks at a close.
const COLLAR_BPS: i64 = 40;

impl Sim {
    /// Runs the closing auction of a book and sets its official price: that of the auction, or of the last trade.
    pub(super) fn close(&mut self, book: u32) {
        let desk = self.x.desk(book);
        let before = desk.window.flatten();
        let last = desk.last_trade;
        let staged = self.at_close.iter().any(|(label_book, _)| *label_book == book);
        let limits = before.filter(|_| !staged).map(|px| {
            let room = ListedInstrument::ticks_of_bps(px, COLLAR_BPS);
            (px - room, px + room)
        });
        let reference = last.unwrap_or(self.x.world.listed(book).reference);
        let is_in_limits = |px: &i64| limits.is_none_or(|(low, high)| (low..=high).contains(px));
        let px = self.x.uncross(book, reference, limits).or(last.filter(is_in_limits));
        self.x.enter(book, MarketPhase::Close, px);
        let (seq, ts) = (self.x.seq, self.x.now);
        debug_assert!(matches!(self.x.out.last().map(|e| e.body), Some(DayEventBody::Session { .. })));
        let scenario = Scenario::MarkingClose.id();
        while let Some(index) = self.at_close.iter().position(|(label_book, _)| *label_book == book) {
            match self.at_close.remove(index).1 {
                PendingLabel::Fires { scene, key, first_seq } => {
                    let label =
                        AlertLabel { scene, scenario, key, reason: None, ts, first_seq, trigger_seq: seq };
                    self.labels.labels.push(label);
                }
                PendingLabel::Misses { scene, key, miss_reason, first_seq } => {
                    let miss = NearMiss {
                        scene,
                        scenario,
                        key,
                        misses: miss_reason,
                        first_seq,
                        trigger_seq: None,
                        last_seq: seq,
                    };
                    self.labels.near_misses.push(miss);
                }
            }
        }
    }

    /// Lists the remaining orders, one of each book in turn, so that no book must remove many at once.
    pub(super) fn list_expiring(&mut self) {
        let mut books: Vec<Vec<u32>> =
            (0..self.x.world.books() as u32).map(|book| self.x.all_of(book)).collect();
        while books.iter().any(|slots| !slots.is_empty()) {
            self.expiring.extend(books.iter_mut().filter_map(Vec::pop));
        }
        self.expiring.reverse();
    }

    /// Cancels the next remaining order. Returns false if there is none.
    pub(super) fn expire(&mut self) -> bool {
        let Some(slot) = self.expiring.pop() else { return false };
        let member = self.x.order(slot).terms.member;
        self.x.now += 100_000;
        while !self.governor.allow(member, self.x.now, 1) {
            self.x.now = (self.x.now / config::S + 1) * config::S;
        }
        self.x.cancel_slot(slot);
        true
    }
}
