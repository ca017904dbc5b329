//! Levels to books: by depth in a few registers, and all others.

use super::Books;
use crate::engine::{LevelUpdate, UpdateAction};
use crate::listener::ChangedLevel;
use crate::select::SubscriptionMatch;
use unitape_book::{BookFault, LevelAction, LevelChange, StoredLevel};
use unitape_model::{InstrumentId, Side};

impl Books {
    /// Applies a level.
    #[inline(always)]
    pub(super) fn level(&mut self, level: &LevelUpdate) {
        // A missing quantity becomes an impossible one.
        let qty = level.qty.map_or((-1, 0), |qty| (qty.mantissa(), qty.exponent()));
        let (instrument, px, orders) = (level.instrument, level.px.0, level.orders.unwrap_or(u32::MAX));
        let Some(depth) = level.depth else {
            let (action, side) = (book_action(level.action), Some(level.side));
            let change = LevelChange { action, side, px, qty: Some(qty), orders, depth: None };
            return self.apply_level(instrument, &change);
        };
        let packed_level = PackedLevel { side: level.side, depth, exponent: qty.1 };
        match level.action {
            UpdateAction::Add => self.add_level(instrument, packed_level, px, qty.0, orders),
            UpdateAction::Change => self.change_level(instrument, packed_level, px, qty.0, orders),
            UpdateAction::Delete => self.delete_level(instrument, packed_level),
        }
    }

    // The usual kinds of level have functions of their own, not inlined: their values are in registers, and few at a
    // time.

    #[inline(never)]
    fn add_level(
        &mut self,
        instrument: InstrumentId,
        packed_level: PackedLevel,
        px: i64,
        mantissa: i64,
        orders: u32,
    ) {
        let rung = StoredLevel { px, qty: (mantissa, packed_level.exponent), orders };
        let one =
            self.books.get_mut(instrument.index()).filter(|one| one.subscription == SubscriptionMatch::Yes);
        let outcome = one.and_then(|one| {
            let is_sorted =
                one.book.add_level(packed_level.side, packed_level.depth.into(), rung, one.levels_max)?;
            one.note_change(instrument, is_sorted, &mut self.touched_instruments);
            Some(())
        });
        match outcome {
            Some(()) => self.note_change(instrument, packed_level, UpdateAction::Add, rung),
            None => self.apply_level(instrument, &packed_level.to_change(LevelAction::Add, rung)),
        }
    }

    #[inline(never)]
    fn change_level(
        &mut self,
        instrument: InstrumentId,
        packed_level: PackedLevel,
        px: i64,
        mantissa: i64,
        orders: u32,
    ) {
        let rung = StoredLevel { px, qty: (mantissa, packed_level.exponent), orders };
        let one =
            self.books.get_mut(instrument.index()).filter(|one| one.subscription == SubscriptionMatch::Yes);
        let outcome = one.and_then(|one| {
            let is_sorted = one.book.change_level(packed_level.side, packed_level.depth.into(), rung)?;
            one.note_change(instrument, is_sorted, &mut self.touched_instruments);
            Some(())
        });
        match outcome {
            Some(()) => self.note_change(instrument, packed_level, UpdateAction::Change, rung),
            None => self.apply_level(instrument, &packed_level.to_change(LevelAction::Change, rung)),
        }
    }

    #[inline(never)]
    fn delete_level(&mut self, instrument: InstrumentId, packed_level: PackedLevel) {
        let one =
            self.books.get_mut(instrument.index()).filter(|one| one.subscription == SubscriptionMatch::Yes);
        let removed_level = one.and_then(|one| {
            let rung = one.book.remove(packed_level.side, packed_level.depth.into())?;
            one.note_change(instrument, true, &mut self.touched_instruments);
            Some(rung)
        });
        match removed_level {
            Some(rung) => self.note_change(instrument, packed_level, UpdateAction::Delete, rung),
            None => {
                let rung = StoredLevel { px: i64::MAX, qty: (0, 0), orders: u32::MAX };
                self.apply_level(instrument, &packed_level.to_change(LevelAction::Delete, rung));
            }
        }
    }

    /// Notes a changed level for the listener.
    #[inline(always)]
    fn note_change(
        &mut self,
        instrument: InstrumentId,
        packed_level: PackedLevel,
        action: UpdateAction,
        level: StoredLevel,
    ) {
        let (number, depth) = (self.changes.len() as u32, packed_level.depth.into());
        self.counters.levels += 1;
        self.changes.push(ChangedLevel { instrument, number, side: packed_level.side, action, depth, level });
    }

    /// Applies a level of any kind.
    #[inline(never)]
    fn apply_level(&mut self, instrument: InstrumentId, change: &LevelChange) {
        let Some(one) = self.books.get_mut(instrument.index()) else { return };
        if one.subscription == SubscriptionMatch::No {
            one.broken = true;
            self.counters.passed_over += 1;
            return;
        }
        one.is_stale = false;
        let outcome = one.book.apply(change, one.levels_max);
        self.counters.levels += 1;
        if !one.is_touched {
            one.is_touched = true;
            self.touched_instruments.push(instrument);
        }
        if outcome.depth > 0 && one.subscription == SubscriptionMatch::Yes {
            self.changes.push(ChangedLevel {
                instrument,
                number: self.changes.len() as u32,
                side: change.side.unwrap_or(Side::Sell),
                action: match change.action {
                    LevelAction::Add => UpdateAction::Add,
                    LevelAction::Change | LevelAction::Set => UpdateAction::Change,
                    LevelAction::Delete | LevelAction::Clear => UpdateAction::Delete,
                },
                depth: outcome.depth,
                level: outcome.level,
            });
        }
        match outcome.fault {
            None => {}
            // By depth, the levels of a message may pass each other; what counts is how it leaves them.
            Some(BookFault::UnsortedLevel) => one.unsorted = true,
            Some(fault) => self.fault(instrument, fault),
        }
    }
}

#[inline]
fn book_action(action: UpdateAction) -> LevelAction {
    match action {
        UpdateAction::Add => LevelAction::Add,
        UpdateAction::Change => LevelAction::Change,
        UpdateAction::Delete => LevelAction::Delete,
    }
}

/// The parts of a level by depth that fit in one register.
#[derive(Clone, Copy)]
struct PackedLevel {
    side: Side,
    depth: u16,
    exponent: i8,
}

impl PackedLevel {
    fn to_change(self, action: LevelAction, rung: StoredLevel) -> LevelChange {
        LevelChange {
            action,
            side: Some(self.side),
            px: rung.px,
            qty: Some(rung.qty),
            orders: rung.orders,
            depth: Some(self.depth.into()),
        }
    }
}
