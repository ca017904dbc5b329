//! What venues say of levels, as what becomes of a book.
//!
//! A book is told of each level that goes or comes: "delete from here on" is as many deletions as there are levels, and
//! where a side has room for so many levels only, the last one is deleted before another is put in before it. For this,
//! the levels of each side are counted; their prices are not kept.

use super::plan::{Type, Update};
use super::products::{Counters, Instrument};
use super::step::{Action, Level, Side, Step};
use super::view::Entry;
use unitape_model::Price;

/// Applies an entry for a level, or for an empty book. Gives whether it can be: one at a place that its side does not have
/// says that the book is not the venue's. Where a snapshot mends that, nothing is told of such a level.
#[inline]
pub(super) fn apply(
    index: u32,
    instrument: &mut Instrument,
    entry: &Entry,
    counters: &mut Counters,
    mut emit: impl FnMut(Step<'static>),
) -> bool {
    let side = match entry.sort {
        Type::Bid => Side::Buy,
        Type::Offer => Side::Sell,
        Type::Empty => {
            seldom(Seldom::Empty, (index, Side::Buy), instrument, &mut emit);
            return true;
        }
        Type::Trade | Type::Ignore => return true,
    };
    let mut update = entry.action.unwrap_or(Update::New);
    let (place, max) = (entry.depth, instrument.depth);
    let mut fits = true;
    let action = if place == 0 {
        // Without a place the level is known by its price, and none are counted.
        match update {
            Update::New => Action::Add,
            Update::Change | Update::Overlay => Action::Change,
            Update::Delete => Action::Delete,
            // There is nothing that these go from or to.
            Update::Thru | Update::From => {
                counters.misplaced += 1;
                return true;
            }
            Update::Ignore => return true,
        }
    } else {
        let mended = instrument.mended;
        let levels = &mut instrument.levels[side as usize];
        if max > 0 && place > max {
            counters.beyond += 1;
            return true;
        }
        // A level of nothing is none.
        let nothing = entry.qty.is_some_and(|qty| qty.mantissa() == 0);
        if nothing && matches!(update, Update::Change | Update::Overlay) {
            update = Update::Delete;
        }
        fits = match update {
            Update::New => place - 1 <= *levels && (*levels < u16::MAX || max > 0) && !nothing,
            Update::Ignore => true,
            _ => place <= *levels,
        };
        if !fits {
            counters.misplaced += 1;
            if mended {
                return false;
            }
        }
        match update {
            Update::New => {
                if max > 0 && *levels >= max {
                    seldom(Seldom::LastGoes, (index, side), instrument, &mut emit);
                }
                instrument.levels[side as usize] += u16::from(fits);
                Action::Add
            }
            Update::Change | Update::Overlay => Action::Change,
            Update::Delete => {
                *levels -= u16::from(fits);
                Action::Delete
            }
            Update::Thru | Update::From => {
                let what = if update == Update::Thru { Seldom::Thru(place) } else { Seldom::From(place) };
                seldom(what, (index, side), instrument, &mut emit);
                return fits;
            }
            Update::Ignore => return fits,
        }
    };
    emit(Step::Level(Level {
        instrument: index,
        side,
        action,
        px: entry.px,
        qty: entry.qty,
        orders: (entry.orders != u32::MAX).then_some(entry.orders),
        depth: (place > 0).then_some(place),
    }));
    fits
}

/// What is told of a side in one word, and means several of its levels or none that is told.
#[derive(Clone, Copy)]
enum Seldom {
    Empty,
    /// A side has as many levels as it has room for, and gets another one.
    LastGoes,
    Thru(u16),
    From(u16),
}

#[cold]
#[inline(never)]
fn seldom(
    what: Seldom,
    (index, side): (u32, Side),
    instrument: &mut Instrument,
    emit: &mut impl FnMut(Step<'static>),
) {
    let max = instrument.depth;
    let levels = &mut instrument.levels[side as usize];
    let (first, count) = match what {
        Seldom::Empty => {
            instrument.levels = [0; 2];
            return emit(Step::Clear { instrument: index });
        }
        Seldom::LastGoes => {
            *levels = max - 1;
            return emit(gone(index, side, max));
        }
        Seldom::Thru(place) => (1, place.min(*levels)),
        Seldom::From(place) => (place, levels.checked_sub(place).map_or(0, |n| n + 1)),
    };
    let before = std::mem::replace(levels, *levels - count);
    for n in 0..count {
        // From the best on each is the best by then; from the last on they are as they were.
        let depth = if let Seldom::Thru(_) = what { first } else { before - n };
        emit(gone(index, side, depth));
    }
}

/// The depth of a book has become known, or another: what is beyond it goes.
pub(super) fn trim(index: u32, instrument: &mut Instrument, mut emit: impl FnMut(Step<'static>)) {
    let max = instrument.depth;
    for side in [Side::Buy, Side::Sell] {
        let levels = &mut instrument.levels[side as usize];
        while max > 0 && *levels > max {
            emit(gone(index, side, *levels));
            *levels -= 1;
        }
    }
}

/// A level goes that nobody tells of.
fn gone(instrument: u32, side: Side, depth: u16) -> Step<'static> {
    let (action, px, qty, orders) = (Action::Delete, Price::NONE, None, None);
    Step::Level(Level { instrument, side, action, px, qty, orders, depth: Some(depth) })
}
