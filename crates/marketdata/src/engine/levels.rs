//! Venues' level entries, translated into changes of a book.
//!
//! A book gets each single level change. "Delete from here on" becomes one deletion for each level. Where a side is
//! full, its last level is deleted before another is inserted above it. For this, the levels of each side are
//! counted; their prices are not kept.

use super::codes::{EntryAction, EntryType};
use super::market_event::{LevelUpdate, MarketEvent, UpdateAction};
use super::message_fields::EntryFields;
use super::products::TrackedInstrument;
use super::stats::ProductCounters;
use unitape_model::{InstrumentId, Price, Side};

/// Applies an entry for a level, or for an empty book. Returns whether it is possible: an entry at a depth that its
/// side does not have shows that the book differs from the venue's. If a snapshot repairs the book, no event is emitted
/// for such a level.
#[inline]
pub(super) fn apply_entry(
    id: InstrumentId,
    instrument: &mut TrackedInstrument,
    entry: &EntryFields,
    counters: &mut ProductCounters,
    mut emit: impl FnMut(MarketEvent<'static>),
) -> bool {
    match apply_plain(instrument, entry) {
        Some((side, action)) => {
            emit(MarketEvent::Level(level_update(id, side, action, entry)));
            true
        }
        None => apply_any(id, instrument, entry, counters, &mut emit),
    }
}

/// Makes the level update of an entry.
#[inline(always)]
pub(super) fn level_update(
    instrument: InstrumentId,
    side: Side,
    action: UpdateAction,
    entry: &EntryFields,
) -> LevelUpdate {
    LevelUpdate {
        instrument,
        side,
        action,
        px: entry.px,
        qty: entry.qty,
        orders: (entry.orders != u32::MAX).then_some(entry.orders),
        depth: (entry.depth > 0).then_some(entry.depth),
    }
}

/// Applies the usual kind of entry: a non-empty level at an existing or the next depth, with room for it. Counts the
/// entry. Returns `None` for any other entry and changes nothing.
#[inline(always)]
pub(super) fn apply_plain(
    instrument: &mut TrackedInstrument,
    entry: &EntryFields,
) -> Option<(Side, UpdateAction)> {
    let side = match entry.entry_type {
        EntryType::Bid => Side::Buy,
        EntryType::Offer => Side::Sell,
        _ => return None,
    };
    let levels = &mut instrument.levels[side as usize];
    let room = if instrument.depth_max == 0 { u16::MAX } else { instrument.depth_max };
    let (better, is_empty) = (entry.depth.wrapping_sub(1), entry.qty.is_some_and(|qty| qty.mantissa() == 0));
    if better >= room {
        return None;
    }
    match entry.action.unwrap_or(EntryAction::New) {
        EntryAction::New if better <= *levels && *levels < room && !is_empty => {
            *levels += 1;
            Some((side, UpdateAction::Add))
        }
        EntryAction::Change | EntryAction::Overlay if better < *levels && !is_empty => {
            Some((side, UpdateAction::Change))
        }
        EntryAction::Delete if better < *levels => {
            *levels -= 1;
            Some((side, UpdateAction::Delete))
        }
        _ => None,
    }
}

/// Applies an entry of any kind.
#[inline(never)]
pub(super) fn apply_any(
    id: InstrumentId,
    instrument: &mut TrackedInstrument,
    entry: &EntryFields,
    counters: &mut ProductCounters,
    emit: &mut impl FnMut(MarketEvent<'static>),
) -> bool {
    let side = match entry.entry_type {
        EntryType::Bid => Side::Buy,
        EntryType::Offer => Side::Sell,
        EntryType::Empty => {
            apply_implied(ImpliedDeletion::Empty, id, Side::Buy, instrument, emit);
            return true;
        }
        EntryType::Trade | EntryType::Ignore => return true,
    };
    let mut update = entry.action.unwrap_or(EntryAction::New);
    let (entry_depth, max) = (entry.depth, instrument.depth_max);
    let mut levels_fit = true;
    let action = if entry_depth == 0 {
        // Without a place the level is known by its price, and none are counted.
        match update {
            EntryAction::New => UpdateAction::Add,
            EntryAction::Change | EntryAction::Overlay => UpdateAction::Change,
            EntryAction::Delete => UpdateAction::Delete,
            // There is nothing that these go from or to.
            EntryAction::Thru | EntryAction::From => {
                counters.misplaced += 1;
                return true;
            }
            EntryAction::Ignore => return true,
        }
    } else {
        let mended = instrument.is_mendable;
        let levels = &mut instrument.levels[side as usize];
        if max > 0 && entry_depth > max {
            counters.beyond += 1;
            return true;
        }
        // A level of nothing is none.
        let is_empty = entry.qty.is_some_and(|qty| qty.mantissa() == 0);
        if is_empty && matches!(update, EntryAction::Change | EntryAction::Overlay) {
            update = EntryAction::Delete;
        }
        levels_fit = match update {
            EntryAction::New => entry_depth - 1 <= *levels && (*levels < u16::MAX || max > 0) && !is_empty,
            EntryAction::Ignore => true,
            _ => entry_depth <= *levels,
        };
        if !levels_fit {
            counters.misplaced += 1;
            if mended {
                return false;
            }
        }
        match update {
            EntryAction::New => {
                if max > 0 && *levels >= max {
                    apply_implied(ImpliedDeletion::LastGoes, id, side, instrument, emit);
                }
                instrument.levels[side as usize] += u16::from(levels_fit);
                UpdateAction::Add
            }
            EntryAction::Change | EntryAction::Overlay => UpdateAction::Change,
            EntryAction::Delete => {
                *levels -= u16::from(levels_fit);
                UpdateAction::Delete
            }
            EntryAction::Thru | EntryAction::From => {
                let deletion = if update == EntryAction::Thru {
                    ImpliedDeletion::Thru(entry_depth)
                } else {
                    ImpliedDeletion::From(entry_depth)
                };
                apply_implied(deletion, id, side, instrument, emit);
                return levels_fit;
            }
            EntryAction::Ignore => return levels_fit,
        }
    };
    emit(MarketEvent::Level(level_update(id, side, action, entry)));
    levels_fit
}

/// Deletions that the venue sends as one word for several levels, or does not send at all.
#[derive(Clone, Copy)]
enum ImpliedDeletion {
    Empty,
    /// A side has as many levels as it has room for, and gets another one.
    LastGoes,
    Thru(u16),
    From(u16),
}

#[cold]
#[inline(never)]
fn apply_implied(
    deletion: ImpliedDeletion,
    id: InstrumentId,
    side: Side,
    instrument: &mut TrackedInstrument,
    emit: &mut impl FnMut(MarketEvent<'static>),
) {
    let max = instrument.depth_max;
    let levels = &mut instrument.levels[side as usize];
    let (first, count) = match deletion {
        ImpliedDeletion::Empty => {
            instrument.levels = [0; 2];
            return emit(MarketEvent::Clear { instrument: id });
        }
        ImpliedDeletion::LastGoes => {
            *levels = max - 1;
            return emit(level_deletion(id, side, max));
        }
        ImpliedDeletion::Thru(last_depth) => (1, last_depth.min(*levels)),
        ImpliedDeletion::From(first_depth) => {
            (first_depth, levels.checked_sub(first_depth).map_or(0, |n| n + 1))
        }
    };
    let old_count = std::mem::replace(levels, *levels - count);
    for n in 0..count {
        // From the best on each is the best by then; from the last on they are as they were.
        let depth = if let ImpliedDeletion::Thru(_) = deletion { first } else { old_count - n };
        emit(level_deletion(id, side, depth));
    }
}

/// Removes the levels beyond a new depth of the book.
pub(super) fn trim(
    id: InstrumentId,
    instrument: &mut TrackedInstrument,
    mut emit: impl FnMut(MarketEvent<'static>),
) {
    let max = instrument.depth_max;
    for side in [Side::Buy, Side::Sell] {
        let levels = &mut instrument.levels[side as usize];
        while max > 0 && *levels > max {
            emit(level_deletion(id, side, *levels));
            *levels -= 1;
        }
    }
}

/// Makes the deletion of a level that the venue does not report itself.
fn level_deletion(instrument: InstrumentId, side: Side, depth: u16) -> MarketEvent<'static> {
    let (action, px, qty, orders) = (UpdateAction::Delete, Price::NONE, None, None);
    MarketEvent::Level(LevelUpdate { instrument, side, action, px, qty, orders, depth: Some(depth) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ids::NativeId;
    use proptest::prelude::*;
    use unitape_model::Quantity;

    fn entry(side: bool, action: u8, depth: u16, qty: Option<i64>) -> EntryFields {
        let action = match action {
            0..=3 => Some(EntryAction::New),
            4 => Some(EntryAction::Change),
            5 => Some(EntryAction::Overlay),
            6 => Some(EntryAction::Delete),
            7 => Some(EntryAction::Thru),
            8 => Some(EntryAction::From),
            9 => Some(EntryAction::Ignore),
            _ => None,
        };
        let entry_type = if side { EntryType::Bid } else { EntryType::Offer };
        let qty = qty.map(|n| Quantity::new(n, 0).unwrap());
        EntryFields {
            entry_type,
            action,
            depth,
            qty,
            px: Price(5),
            ..EntryFields::with_instrument(NativeId::NONE)
        }
    }

    proptest! {
        /// An entry that only looks plain, at the last place or without content: the fast path emits and counts the
        /// same as the other one.
        #[test]
        fn the_quick_way_agrees(
            depth in prop_oneof![Just(0), 1u16..6],
            mended in any::<bool>(),
            entries in prop::collection::vec((any::<bool>(), 0u8..11, 0u16..8, prop::option::of(0i64..4)), 0..60),
        ) {
            let mut quick = TrackedInstrument::with_depth(depth);
            quick.is_mendable = mended;
            let mut slow = quick;
            let (mut quick_counts, mut other_counts) = (ProductCounters::default(), ProductCounters::default());
            for (side, action, depth, qty) in entries {
                let entry = entry(side, action, depth, qty);
                let (mut steps, mut expected) = (Vec::new(), Vec::new());
                let fits =
                    apply_entry(InstrumentId(3), &mut quick, &entry, &mut quick_counts, |step| steps.push(step));
                let other_fits =
                    apply_any(InstrumentId(3), &mut slow, &entry, &mut other_counts, &mut |step| expected.push(step));
                prop_assert_eq!((fits, steps), (other_fits, expected));
                prop_assert_eq!((quick.levels, quick_counts), (slow.levels, other_counts));
            }
        }
    }
}
