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
            instrument.levels = [0; 2];
            emit(Step::Clear { instrument: index });
            return true;
        }
        Type::Trade | Type::Ignore => return true,
    };
    let mut update = entry.action.unwrap_or(Update::New);
    let level = |action, depth| {
        Step::Level(Level {
            instrument: index,
            side,
            action,
            px: entry.px,
            qty: entry.qty,
            orders: (entry.orders != u32::MAX).then_some(entry.orders),
            depth,
        })
    };
    if entry.depth == 0 {
        match update {
            Update::New => emit(level(Action::Add, None)),
            Update::Change | Update::Overlay => emit(level(Action::Change, None)),
            Update::Delete => emit(level(Action::Delete, None)),
            // Without a place there is nothing that these go from or to.
            Update::Thru | Update::From => counters.misplaced += 1,
            Update::Ignore => {}
        }
        return true;
    }
    let (place, max) = (entry.depth, instrument.depth);
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
    let fits = match update {
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
    let delete = |depth| level(Action::Delete, Some(depth));
    let gone = |depth| gone(index, side, depth);
    match update {
        Update::New => {
            if max > 0 && *levels >= max {
                emit(gone(max));
                *levels = max - 1;
            }
            *levels += u16::from(fits);
            emit(level(Action::Add, Some(place)));
        }
        Update::Change | Update::Overlay => emit(level(Action::Change, Some(place))),
        Update::Delete => {
            *levels -= u16::from(fits);
            emit(delete(place));
        }
        Update::Thru => {
            let count = place.min(*levels);
            *levels -= count;
            (0..count).for_each(|_| emit(gone(1)));
        }
        Update::From => {
            for depth in (place..=*levels).rev() {
                emit(gone(depth));
            }
            *levels = (*levels).min(place - 1);
        }
        Update::Ignore => {}
    }
    fits
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
