//! What venues say of levels, as what becomes of a book.
//!
//! A book is told of each level that goes or comes: "delete from here on" is as many deletions as there are levels, and
//! where a side has room for so many levels only, the last one is deleted before another is put in before it. For this,
//! the levels of each side are counted; their prices are not kept.

use super::codes::{Type, Update};
use super::products::Instrument;
use super::stats::Counters;
use super::step::{Action, Level, Step};
use super::view::Entry;
use unitape_model::{InstrumentId, Price, Side};

/// Applies an entry for a level, or for an empty book. Gives whether it can be: one at a place that its side does not have
/// says that the book is not the venue's. Where a snapshot mends that, nothing is told of such a level.
#[inline]
pub(super) fn apply(
    id: InstrumentId,
    instrument: &mut Instrument,
    entry: &Entry,
    counters: &mut Counters,
    mut emit: impl FnMut(Step<'static>),
) -> bool {
    match plain(instrument, entry) {
        Some(what) => {
            emit(Step::Level(told(id, what, entry)));
            true
        }
        None => apply_any(id, instrument, entry, counters, &mut emit),
    }
}

/// The level of an entry.
#[inline(always)]
pub(super) fn told(instrument: InstrumentId, (side, action): (Side, Action), entry: &Entry) -> Level {
    Level {
        instrument,
        side,
        action,
        px: entry.px,
        qty: entry.qty,
        orders: (entry.orders != u32::MAX).then_some(entry.orders),
        depth: (entry.depth > 0).then_some(entry.depth),
    }
}

/// What nearly all entries are: a level at a place that its side has or that comes next, of something, and with room. It
/// is counted. None for all others, of which it changes nothing.
#[inline(always)]
pub(super) fn plain(instrument: &mut Instrument, entry: &Entry) -> Option<(Side, Action)> {
    let side = match entry.sort {
        Type::Bid => Side::Buy,
        Type::Offer => Side::Sell,
        _ => return None,
    };
    let levels = &mut instrument.levels[side as usize];
    let room = if instrument.depth == 0 { u16::MAX } else { instrument.depth };
    let (better, nothing) = (entry.depth.wrapping_sub(1), entry.qty.is_some_and(|qty| qty.mantissa() == 0));
    if better >= room {
        return None;
    }
    match entry.action.unwrap_or(Update::New) {
        Update::New if better <= *levels && *levels < room && !nothing => {
            *levels += 1;
            Some((side, Action::Add))
        }
        Update::Change | Update::Overlay if better < *levels && !nothing => Some((side, Action::Change)),
        Update::Delete if better < *levels => {
            *levels -= 1;
            Some((side, Action::Delete))
        }
        _ => None,
    }
}

/// The same for whatever an entry may be.
#[inline(never)]
pub(super) fn apply_any(
    id: InstrumentId,
    instrument: &mut Instrument,
    entry: &Entry,
    counters: &mut Counters,
    emit: &mut impl FnMut(Step<'static>),
) -> bool {
    let side = match entry.sort {
        Type::Bid => Side::Buy,
        Type::Offer => Side::Sell,
        Type::Empty => {
            seldom(Seldom::Empty, (id, Side::Buy), instrument, emit);
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
                    seldom(Seldom::LastGoes, (id, side), instrument, emit);
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
                seldom(what, (id, side), instrument, emit);
                return fits;
            }
            Update::Ignore => return fits,
        }
    };
    emit(Step::Level(told(id, (side, action), entry)));
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
    (id, side): (InstrumentId, Side),
    instrument: &mut Instrument,
    emit: &mut impl FnMut(Step<'static>),
) {
    let max = instrument.depth;
    let levels = &mut instrument.levels[side as usize];
    let (first, count) = match what {
        Seldom::Empty => {
            instrument.levels = [0; 2];
            return emit(Step::Clear { instrument: id });
        }
        Seldom::LastGoes => {
            *levels = max - 1;
            return emit(gone(id, side, max));
        }
        Seldom::Thru(place) => (1, place.min(*levels)),
        Seldom::From(place) => (place, levels.checked_sub(place).map_or(0, |n| n + 1)),
    };
    let before = std::mem::replace(levels, *levels - count);
    for n in 0..count {
        // From the best on each is the best by then; from the last on they are as they were.
        let depth = if let Seldom::Thru(_) = what { first } else { before - n };
        emit(gone(id, side, depth));
    }
}

/// The depth of a book has become known, or another: what is beyond it goes.
pub(super) fn trim(id: InstrumentId, instrument: &mut Instrument, mut emit: impl FnMut(Step<'static>)) {
    let max = instrument.depth;
    for side in [Side::Buy, Side::Sell] {
        let levels = &mut instrument.levels[side as usize];
        while max > 0 && *levels > max {
            emit(gone(id, side, *levels));
            *levels -= 1;
        }
    }
}

/// A level goes that nobody tells of.
fn gone(instrument: InstrumentId, side: Side, depth: u16) -> Step<'static> {
    let (action, px, qty, orders) = (Action::Delete, Price::NONE, None, None);
    Step::Level(Level { instrument, side, action, px, qty, orders, depth: Some(depth) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ids::Id;
    use proptest::prelude::*;
    use unitape_model::Quantity;

    fn entry((side, action, depth, qty): (bool, u8, u16, Option<i64>)) -> Entry {
        let action = match action {
            0..=3 => Some(Update::New),
            4 => Some(Update::Change),
            5 => Some(Update::Overlay),
            6 => Some(Update::Delete),
            7 => Some(Update::Thru),
            8 => Some(Update::From),
            9 => Some(Update::Ignore),
            _ => None,
        };
        let sort = if side { Type::Bid } else { Type::Offer };
        let qty = qty.map(|n| Quantity::new(n, 0).unwrap());
        Entry { sort, action, depth, qty, px: Price(5), ..Entry::nothing(Id::NONE) }
    }

    proptest! {
        /// An entry that looks plain and is not, at the last place or of nothing: the quick way tells and counts what the
        /// other one does.
        #[test]
        fn the_quick_way_agrees(
            depth in prop_oneof![Just(0), 1u16..6],
            mended in any::<bool>(),
            entries in prop::collection::vec((any::<bool>(), 0u8..11, 0u16..8, prop::option::of(0i64..4)), 0..60),
        ) {
            let mut quick = Instrument::with_depth(depth);
            quick.mended = mended;
            let mut other = quick;
            let (mut quick_counts, mut other_counts) = (Counters::default(), Counters::default());
            for entry in entries.into_iter().map(entry) {
                let (mut told, mut expected) = (Vec::new(), Vec::new());
                let fits = apply(InstrumentId(3), &mut quick, &entry, &mut quick_counts, |step| told.push(step));
                let other_fits =
                    apply_any(InstrumentId(3), &mut other, &entry, &mut other_counts, &mut |step| expected.push(step));
                prop_assert_eq!((fits, told), (other_fits, expected));
                prop_assert_eq!((quick.levels, quick_counts), (other.levels, other_counts));
            }
        }
    }
}
