//! A book made of its levels, as the venue publishes them: by price, or by depth.
//!
//! `A` puts a level in, `C` changes one, `D` deletes one, `R` clears a side, or both when it names none. `U` sets the
//! quantity at a price, for venues that do not say whether a level is new. An event
//! with a `depth` is by depth: 1 is the best; the levels from that depth on move back (`A`) or up (`D`). One without
//! is by price. A quantity of zero deletes.
//!
//! A caller with its own instrument numbers and without events uses [`LevelBook`] alone: a change costs some tens of
//! nanoseconds and returns its place.

use crate::fault::BookFault;
use crate::value::{PriceLevel, price_key};
use unitape_model::{Price, Side};

/// A book of levels: of one instrument, both sides.
///
/// ```
/// use unitape_book::{LevelAction, LevelBook, LevelChange, DepthLimit};
/// use unitape_model::Side;
///
/// let mut book = LevelBook::default();
/// let new = |px, depth| LevelChange {
///     action: LevelAction::Add,
///     side: Some(Side::Buy),
///     px,
///     qty: Some((10, 0)),
///     orders: 1,
///     depth: Some(depth),
/// };
/// book.apply(&new(99_000_000_000, 1), DepthLimit::Published(10));
/// let done = book.apply(&new(98_000_000_000, 2), DepthLimit::Published(10));
/// assert_eq!((done.depth, done.fault), (2, None));
/// assert_eq!(book.best(Side::Buy).unwrap().px, 99_000_000_000);
/// ```
#[derive(Clone, Debug, Default)]
pub struct LevelBook {
    sides: [BookSide; 2],
}

/// The outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelChangeOutcome {
    /// The depth of the level from the best, which is 1, now or before its removal. 0 if no level was changed.
    pub depth: u32,
    /// The current level, or the level before it was removed.
    pub level: StoredLevel,
    /// The impossible statement of the change.
    pub fault: Option<BookFault>,
}

impl LevelChangeOutcome {
    const fn without_level(fault: Option<BookFault>) -> Self {
        Self { depth: 0, level: StoredLevel { px: Price::NONE.0, qty: (0, 0), orders: u32::MAX }, fault }
    }
}

#[derive(Clone, Debug, Default)]
struct BookSide {
    /// Best last, as [`crate::ladder::PriceLadder`] has it.
    rungs: Vec<StoredLevel>,
    /// By depth, a feed can put prices out of order.
    unsorted: bool,
}

impl BookSide {
    fn clear(&mut self) {
        self.rungs.clear();
        self.unsorted = false;
    }

    /// Returns whether the level at `index` is between its neighbours. If it is not, marks the side as unsorted.
    #[inline(always)]
    fn is_sorted_at(&mut self, side: Side, index: usize) -> bool {
        let (worse, [rung, better @ ..]) = self.rungs.split_at(index) else { return true };
        let key = price_key(side, rung.px);
        let is_sorted = worse.last().is_none_or(|worse| price_key(side, worse.px) < key)
            && better.first().is_none_or(|better| price_key(side, better.px) > key);
        if !is_sorted {
            self.unsorted = true;
        }
        is_sorted
    }

    /// Finds the last level that is no better than `key`.
    fn find_level(&self, side: Side, key: i64) -> Option<usize> {
        const NEAR: usize = 8;
        let no_better = |r: &StoredLevel| price_key(side, r.px) <= key;
        // From the touch, where most changes are.
        let (far, near) = self.rungs.split_at(self.rungs.len().saturating_sub(NEAR));
        match near.iter().rposition(no_better) {
            Some(index) => Some(far.len() + index),
            None if self.unsorted => far.iter().rposition(no_better),
            None => far.partition_point(no_better).checked_sub(1),
        }
    }
}

/// A level as a book has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredLevel {
    /// The price, as [`Price`] has it.
    pub px: i64,
    /// All quantity at it: mantissa and exponent of ten.
    pub qty: (i64, i8),
    /// [`u32::MAX`] when the feed does not publish it.
    pub orders: u32,
}

impl StoredLevel {
    /// Returns whether the level has a price and a quantity.
    #[inline(always)]
    fn is_whole(&self) -> bool {
        self.px != Price::NONE.0 && self.qty.0 > 0 && (-30..=30).contains(&self.qty.1)
    }

    /// Converts the stored level to the level of the views.
    pub fn level(&self) -> PriceLevel {
        PriceLevel {
            px: Price(self.px),
            qty: crate::qty::amount(self.qty.0.into(), self.qty.1),
            orders: (self.orders != u32::MAX).then_some(self.orders),
        }
    }
}

/// The action on a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelAction {
    /// It is put in.
    Add,
    /// It is another one now.
    Change,
    /// It is removed.
    Delete,
    /// All of the side go, or of both where none is named.
    Clear,
    /// The quantity at its price is this one now, whether there was a level or not; of a level by price only.
    Set,
}

/// A change of a level, as a `level` event describes it.
#[derive(Clone, Copy, Debug)]
pub struct LevelChange {
    /// The action on the level.
    pub action: LevelAction,
    /// The side, or `None` for both sides.
    pub side: Option<Side>,
    /// [`Price::NONE`] for none.
    pub px: i64,
    /// All quantity at it: mantissa and exponent of ten.
    pub qty: Option<(i64, i8)>,
    /// The number of orders; [`u32::MAX`] if not published.
    pub orders: u32,
    /// The depth from the best level, which is 1. `None` if the price identifies the level.
    pub depth: Option<u64>,
}

/// The largest number of levels of a side, and the meaning of one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepthLimit {
    /// The venue publishes at most this many levels. By depth, a new level on a full side silently removes the last
    /// level.
    Published(u32),
    /// No more are kept. The venue has more, so whatever is left out is a fault.
    Kept(u32),
}

impl DepthLimit {
    #[inline]
    const fn get(self) -> usize {
        match self {
            DepthLimit::Published(n) | DepthLimit::Kept(n) => n as usize,
        }
    }
}

type LevelResult = Result<(), BookFault>;

impl LevelBook {
    /// Applies an event; a side keeps at most `levels_max` levels.
    #[inline]
    pub(crate) fn on_level(&mut self, change: &LevelChange, levels_max: u32) -> LevelResult {
        self.apply(change, DepthLimit::Kept(levels_max)).fault.map_or(Ok(()), Err)
    }

    /// Takes a change; `levels_max` bounds each side.
    #[inline]
    pub fn apply(&mut self, change: &LevelChange, levels_max: DepthLimit) -> LevelChangeOutcome {
        self.apply_simple(change, levels_max).unwrap_or_else(|| self.apply_any(change, levels_max))
    }

    /// Applies the usual kinds of change: see [`LevelBook::add_level`], [`LevelBook::change_level`] and [`LevelBook::remove`]. It
    /// returns none for all others and changes nothing.
    #[inline]
    fn apply_simple(&mut self, change: &LevelChange, levels_max: DepthLimit) -> Option<LevelChangeOutcome> {
        let (side, depth) = (change.side?, u32::try_from(change.depth?).ok()?);
        let (level, is_sorted) = match change.action {
            LevelAction::Delete => (self.remove(side, depth)?, true),
            LevelAction::Clear | LevelAction::Set => return None,
            LevelAction::Add => {
                let new_level = StoredLevel { px: change.px, qty: change.qty?, orders: change.orders };
                (new_level, self.add_level(side, depth, new_level, levels_max)?)
            }
            LevelAction::Change => {
                let new_level = StoredLevel { px: change.px, qty: change.qty?, orders: change.orders };
                (new_level, self.change_level(side, depth, new_level)?)
            }
        };
        Some(LevelChangeOutcome { depth, level, fault: (!is_sorted).then_some(BookFault::UnsortedLevel) })
    }

    /// Removes the level at a depth, counted from 1 at the best level. Returns `None` if there is no such level.
    #[inline(always)]
    pub fn remove(&mut self, side: Side, depth: u32) -> Option<StoredLevel> {
        let rungs = &mut self.sides[side as usize].rungs;
        if depth == 0 {
            return None;
        }
        let index = rungs.len().checked_sub(depth as usize)?;
        Some(rungs.remove(index))
    }

    /// Inserts a complete level at a depth, counted from 1 at the best level. Returns whether the level is between its
    /// neighbours. Returns `None` and changes nothing if more work is needed, such as for an invalid depth or a full
    /// side. [`LevelBook::apply`] then handles it.
    #[inline(always)]
    pub fn add_level(
        &mut self,
        side: Side,
        depth: u32,
        new_level: StoredLevel,
        levels_max: DepthLimit,
    ) -> Option<bool> {
        let half = &mut self.sides[side as usize];
        let rungs = &mut half.rungs;
        if depth == 0 || !new_level.is_whole() || rungs.len() >= levels_max.get() {
            return None;
        }
        let index = (rungs.len() + 1).checked_sub(depth as usize)?;
        rungs.push(new_level);
        let moved_rungs = &mut rungs[index..];
        for n in (1..moved_rungs.len()).rev() {
            moved_rungs[n] = moved_rungs[n - 1];
        }
        moved_rungs[0] = new_level;
        Some(half.is_sorted_at(side, index))
    }

    /// Puts a whole level in the place of another one; as [`LevelBook::add_level`].
    #[inline(always)]
    pub fn change_level(&mut self, side: Side, depth: u32, new_level: StoredLevel) -> Option<bool> {
        let half = &mut self.sides[side as usize];
        if depth == 0 || !new_level.is_whole() {
            return None;
        }
        let index = half.rungs.len().checked_sub(depth as usize)?;
        half.rungs[index] = new_level;
        Some(half.is_sorted_at(side, index))
    }

    /// Applies a change of any kind.
    #[inline(never)]
    pub(crate) fn apply_any(&mut self, change: &LevelChange, levels_max: DepthLimit) -> LevelChangeOutcome {
        if change.action == LevelAction::Clear {
            match change.side {
                Some(side) => self.sides[side as usize].clear(),
                None => self.clear(),
            }
            return LevelChangeOutcome::without_level(None);
        }
        let Some(side) = change.side else {
            return LevelChangeOutcome::without_level(Some(BookFault::BadLevel));
        };
        let new_level = match (change.action, change.qty) {
            (LevelAction::Delete, _) => None,
            (_, Some(qty)) if qty.0 >= 0 && qty.1.unsigned_abs() <= 30 => {
                (qty.0 > 0).then_some(StoredLevel { px: change.px, qty, orders: change.orders })
            }
            _ => return LevelChangeOutcome::without_level(Some(BookFault::BadQuantity)),
        };
        let half = &mut self.sides[side as usize];
        let Some(depth) = change.depth else {
            return by_price(half, side, change, new_level, levels_max.get());
        };
        let outcome = by_depth(&mut half.rungs, side, change, new_level, depth, levels_max);
        half.unsorted |= outcome.fault == Some(BookFault::UnsortedLevel);
        outcome
    }

    /// Takes all levels out.
    pub fn clear(&mut self) {
        self.sides.iter_mut().for_each(BookSide::clear);
    }

    /// Counts the levels of a side.
    #[inline]
    pub fn levels(&self, side: Side) -> usize {
        self.sides[side as usize].rungs.len()
    }

    /// Returns the best level of a side.
    #[inline]
    pub fn best(&self, side: Side) -> Option<&StoredLevel> {
        self.sides[side as usize].rungs.last()
    }

    /// Returns the level at a depth. Depth 1 is the best level.
    #[inline]
    pub fn level_at(&self, side: Side, depth: usize) -> Option<&StoredLevel> {
        let rungs = &self.sides[side as usize].rungs;
        rungs.len().checked_sub(depth).filter(|_| depth > 0).map(|index| &rungs[index])
    }

    /// Returns the levels of a side, best first.
    pub fn iter(&self, side: Side) -> impl ExactSizeIterator<Item = &StoredLevel> + Clone {
        self.sides[side as usize].rungs.iter().rev()
    }
}

fn by_price(
    half: &mut BookSide,
    side: Side,
    change: &LevelChange,
    new_level: Option<StoredLevel>,
    levels_max: usize,
) -> LevelChangeOutcome {
    if change.px == Price::NONE.0 {
        return LevelChangeOutcome::without_level(Some(BookFault::BadLevel));
    }
    let nearest_index = half.find_level(side, price_key(side, change.px));
    let rungs = &mut half.rungs;
    let match_index = nearest_index.filter(|&index| rungs[index].px == change.px);
    let (depth, level) = match (match_index, new_level) {
        (Some(index), None) => (rungs.len() - index, rungs.remove(index)),
        (Some(index), Some(new_level)) => {
            rungs[index] = new_level;
            (rungs.len() - index, new_level)
        }
        (None, None) => {
            // A venue that states a remaining quantity of 0 at a price does not say that there was a level.
            let says_quantity = change.qty.is_some_and(|(mantissa, _)| mantissa == 0);
            let is_known =
                change.action == LevelAction::Set || (change.action == LevelAction::Delete && says_quantity);
            return LevelChangeOutcome::without_level((!is_known).then_some(BookFault::UnknownLevel));
        }
        (None, Some(_)) if rungs.len() >= levels_max => {
            return LevelChangeOutcome::without_level(Some(BookFault::LevelsFull));
        }
        (None, Some(new_level)) => {
            let insert_index = nearest_index.map_or(0, |index| index + 1);
            rungs.insert(insert_index, new_level);
            (rungs.len() - insert_index, new_level)
        }
    };
    let fault = match (change.action, match_index) {
        (LevelAction::Add, Some(_)) => Some(BookFault::DuplicateLevel),
        (LevelAction::Change, None) => Some(BookFault::UnknownLevel),
        _ => None,
    };
    LevelChangeOutcome { depth: depth as u32, level, fault }
}

fn by_depth(
    rungs: &mut Vec<StoredLevel>,
    side: Side,
    change: &LevelChange,
    new_level: Option<StoredLevel>,
    depth: u64,
    levels_max: DepthLimit,
) -> LevelChangeOutcome {
    let refuse = |fault| LevelChangeOutcome::without_level(Some(fault));
    // Counted from the end: the level at depth d is the d-th last.
    let from_end = usize::try_from(depth).unwrap_or(usize::MAX);
    let index = match rungs.len().checked_sub(from_end) {
        Some(index) if depth > 0 && change.action != LevelAction::Set => index,
        // Right after the last one there is room for a new level.
        None if change.action == LevelAction::Add && from_end == rungs.len() + 1 => {
            return match new_level {
                _ if change.px == Price::NONE.0 => refuse(BookFault::BadLevel),
                None => refuse(BookFault::BadQuantity),
                Some(_) if rungs.len() >= levels_max.get() => refuse(BookFault::LevelsFull),
                Some(new_level) => {
                    rungs.insert(0, new_level);
                    outcome_at(rungs, side, 0)
                }
            };
        }
        _ => return refuse(BookFault::BadLevel),
    };
    match (change.action, new_level) {
        (LevelAction::Add, None) => return refuse(BookFault::BadQuantity),
        (_, None) => {
            return LevelChangeOutcome { depth: from_end as u32, level: rungs.remove(index), fault: None };
        }
        (LevelAction::Add, Some(_)) if change.px == Price::NONE.0 => return refuse(BookFault::BadLevel),
        (LevelAction::Add, Some(new_level)) => {
            // A venue of fixed depth does not report that its last level is removed. If the bound is unitape's own, the
            // venue still has that level.
            if rungs.len() >= levels_max.get() {
                rungs.remove(0);
                rungs.insert(index, new_level);
                let outcome = outcome_at(rungs, side, index);
                return match levels_max {
                    DepthLimit::Published(_) => outcome,
                    DepthLimit::Kept(_) => {
                        LevelChangeOutcome { fault: Some(BookFault::LevelsFull), ..outcome }
                    }
                };
            }
            rungs.insert(index + 1, new_level);
            return outcome_at(rungs, side, index + 1);
        }
        (_, Some(new_level)) => {
            let px = if change.px == Price::NONE.0 { rungs[index].px } else { change.px };
            rungs[index] = StoredLevel { px, ..new_level };
        }
    }
    outcome_at(rungs, side, index)
}

/// Makes the outcome for a level at `index`. The outcome has a fault if the level is not between its neighbours.
fn outcome_at(rungs: &[StoredLevel], side: Side, index: usize) -> LevelChangeOutcome {
    let fault = sorted_at(rungs, side, index).err();
    LevelChangeOutcome { depth: (rungs.len() - index) as u32, level: rungs[index], fault }
}

/// Fails unless the level at `index` is between its neighbours.
fn sorted_at(rungs: &[StoredLevel], side: Side, index: usize) -> LevelResult {
    let key = |neighbour: usize| rungs.get(neighbour).map(|r| price_key(side, r.px));
    let own_key = key(index);
    let above_worse = index == 0 || key(index - 1) < own_key;
    let below_better = key(index + 1).is_none_or(|k| Some(k) > own_key);
    if above_worse && below_better { Ok(()) } else { Err(BookFault::UnsortedLevel) }
}

crate::state::state!(StoredLevel { px, qty, orders });
crate::state::state!(BookSide { rungs, unsorted });
crate::state::state!(LevelBook { sides });
