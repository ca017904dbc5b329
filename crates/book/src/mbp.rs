//! A book made of its levels, as the venue publishes them: by price, or by depth.
//!
//! `A` puts a level in, `C` changes one, `D` deletes one, `R` clears a side, or both when it names none. `U` sets the
//! quantity at a price, for venues that do not say whether a level is new. An event
//! with a `depth` is by depth: 1 is the best; the levels from that depth on move back (`A`) or up (`D`). One without
//! is by price. A quantity of zero deletes.
//!
//! A caller with instruments as numbers of its own, and no events, uses [`LevelBook`] by itself: a change costs some
//! tens of nanoseconds, and says where it was.

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
    /// The place from the best, from 1: where the level is, or was; 0 where no level was touched.
    pub depth: u32,
    /// The level as it is now, or as it was before it was removed.
    pub level: StoredLevel,
    /// The impossible statement of the change.
    pub fault: Option<BookFault>,
}

impl LevelChangeOutcome {
    const fn none(fault: Option<BookFault>) -> Self {
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

    /// Whether the level at `at` is between its neighbours; that it is not, is noted.
    #[inline(always)]
    fn is_sorted_at(&mut self, side: Side, at: usize) -> bool {
        let (worse, [here, better @ ..]) = self.rungs.split_at(at) else { return true };
        let key = price_key(side, here.px);
        let sorted = worse.last().is_none_or(|worse| price_key(side, worse.px) < key)
            && better.first().is_none_or(|better| price_key(side, better.px) > key);
        if !sorted {
            self.unsorted = true;
        }
        sorted
    }

    /// The last level that is no better than `key`.
    fn find(&self, side: Side, key: i64) -> Option<usize> {
        const NEAR: usize = 8;
        let no_better = |r: &StoredLevel| price_key(side, r.px) <= key;
        // From the touch, where most changes are.
        let (far, near) = self.rungs.split_at(self.rungs.len().saturating_sub(NEAR));
        match near.iter().rposition(no_better) {
            Some(at) => Some(far.len() + at),
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
    /// It has a price, and a quantity.
    #[inline(always)]
    fn is_whole(&self) -> bool {
        self.px != Price::NONE.0 && self.qty.0 > 0 && (-30..=30).contains(&self.qty.1)
    }

    /// The level as views have it.
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
    /// The side; none for both.
    pub side: Option<Side>,
    /// [`Price::NONE`] for none.
    pub px: i64,
    /// All quantity at it: mantissa and exponent of ten.
    pub qty: Option<(i64, i8)>,
    /// The number of orders; [`u32::MAX`] if not published.
    pub orders: u32,
    /// Its place from the best, from 1; none where it is known by its price.
    pub depth: Option<u64>,
}

/// The largest number of levels of a side, and the meaning of one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepthLimit {
    /// The venue publishes no more: by depth, a new level on a full side makes the last one fall out, without a word.
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
        self.plain(change, levels_max).unwrap_or_else(|| self.apply_any(change, levels_max))
    }

    /// Applies the usual kinds of change: see [`LevelBook::add`], [`LevelBook::change`] and [`LevelBook::take`]. It
    /// returns none for all others and changes nothing.
    #[inline]
    fn plain(&mut self, change: &LevelChange, levels_max: DepthLimit) -> Option<LevelChangeOutcome> {
        let (side, depth) = (change.side?, u32::try_from(change.depth?).ok()?);
        let (level, sorted) = match change.action {
            LevelAction::Delete => (self.take(side, depth)?, true),
            LevelAction::Clear | LevelAction::Set => return None,
            LevelAction::Add => {
                let rung = StoredLevel { px: change.px, qty: change.qty?, orders: change.orders };
                (rung, self.add(side, depth, rung, levels_max)?)
            }
            LevelAction::Change => {
                let rung = StoredLevel { px: change.px, qty: change.qty?, orders: change.orders };
                (rung, self.change(side, depth, rung)?)
            }
        };
        Some(LevelChangeOutcome { depth, level, fault: (!sorted).then_some(BookFault::UnsortedLevel) })
    }

    /// Takes out the level at a place from the best, from 1; none where there is none.
    #[inline(always)]
    pub fn take(&mut self, side: Side, depth: u32) -> Option<StoredLevel> {
        let rungs = &mut self.sides[side as usize].rungs;
        if depth == 0 {
            return None;
        }
        let at = rungs.len().checked_sub(depth as usize)?;
        Some(rungs.remove(at))
    }

    /// Puts in a whole level at a place from the best, from 1. Returns whether it is between its neighbours. Returns
    /// none where more is to be done, as where the place is none, or the side full. Then nothing is changed, and
    /// [`LevelBook::apply`] handles it.
    #[inline(always)]
    pub fn add(&mut self, side: Side, depth: u32, rung: StoredLevel, levels_max: DepthLimit) -> Option<bool> {
        let half = &mut self.sides[side as usize];
        let rungs = &mut half.rungs;
        if depth == 0 || !rung.is_whole() || rungs.len() >= levels_max.get() {
            return None;
        }
        let at = (rungs.len() + 1).checked_sub(depth as usize)?;
        rungs.push(rung);
        let moved = &mut rungs[at..];
        for n in (1..moved.len()).rev() {
            moved[n] = moved[n - 1];
        }
        moved[0] = rung;
        Some(half.is_sorted_at(side, at))
    }

    /// Puts a whole level in the place of another one; as [`LevelBook::add`].
    #[inline(always)]
    pub fn change(&mut self, side: Side, depth: u32, rung: StoredLevel) -> Option<bool> {
        let half = &mut self.sides[side as usize];
        if depth == 0 || !rung.is_whole() {
            return None;
        }
        let at = half.rungs.len().checked_sub(depth as usize)?;
        half.rungs[at] = rung;
        Some(half.is_sorted_at(side, at))
    }

    /// Applies a change of any kind.
    #[inline(never)]
    pub(crate) fn apply_any(&mut self, change: &LevelChange, levels_max: DepthLimit) -> LevelChangeOutcome {
        if change.action == LevelAction::Clear {
            match change.side {
                Some(side) => self.sides[side as usize].clear(),
                None => self.clear(),
            }
            return LevelChangeOutcome::none(None);
        }
        let Some(side) = change.side else { return LevelChangeOutcome::none(Some(BookFault::BadLevel)) };
        let rung = match (change.action, change.qty) {
            (LevelAction::Delete, _) => None,
            (_, Some(qty)) if qty.0 >= 0 && qty.1.unsigned_abs() <= 30 => {
                (qty.0 > 0).then_some(StoredLevel { px: change.px, qty, orders: change.orders })
            }
            _ => return LevelChangeOutcome::none(Some(BookFault::BadQuantity)),
        };
        let half = &mut self.sides[side as usize];
        let Some(depth) = change.depth else { return by_price(half, side, change, rung, levels_max.get()) };
        let done = by_depth(&mut half.rungs, side, change, rung, depth, levels_max);
        half.unsorted |= done.fault == Some(BookFault::UnsortedLevel);
        done
    }

    /// Takes all levels out.
    pub fn clear(&mut self) {
        self.sides.iter_mut().for_each(BookSide::clear);
    }

    /// The number of levels of a side.
    #[inline]
    pub fn levels(&self, side: Side) -> usize {
        self.sides[side as usize].rungs.len()
    }

    /// The best level of a side.
    #[inline]
    pub fn best(&self, side: Side) -> Option<&StoredLevel> {
        self.sides[side as usize].rungs.last()
    }

    /// The level at a place from the best, from 1.
    #[inline]
    pub fn level_at(&self, side: Side, depth: usize) -> Option<&StoredLevel> {
        let rungs = &self.sides[side as usize].rungs;
        rungs.len().checked_sub(depth).filter(|_| depth > 0).map(|at| &rungs[at])
    }

    /// Best first.
    pub fn iter(&self, side: Side) -> impl ExactSizeIterator<Item = &StoredLevel> + Clone {
        self.sides[side as usize].rungs.iter().rev()
    }
}

fn by_price(
    half: &mut BookSide,
    side: Side,
    change: &LevelChange,
    rung: Option<StoredLevel>,
    levels_max: usize,
) -> LevelChangeOutcome {
    if change.px == Price::NONE.0 {
        return LevelChangeOutcome::none(Some(BookFault::BadLevel));
    }
    let at = half.find(side, price_key(side, change.px));
    let rungs = &mut half.rungs;
    let found = at.filter(|&at| rungs[at].px == change.px);
    let (place, level) = match (found, rung) {
        (Some(at), None) => (rungs.len() - at, rungs.remove(at)),
        (Some(at), Some(rung)) => {
            rungs[at] = rung;
            (rungs.len() - at, rung)
        }
        (None, None) => {
            // A venue that says what is left at a price, 0, does not say that there was a level.
            let says_quantity = change.qty.is_some_and(|(mantissa, _)| mantissa == 0);
            let is_known =
                change.action == LevelAction::Set || (change.action == LevelAction::Delete && says_quantity);
            return LevelChangeOutcome::none((!is_known).then_some(BookFault::UnknownLevel));
        }
        (None, Some(_)) if rungs.len() >= levels_max => {
            return LevelChangeOutcome::none(Some(BookFault::LevelsFull));
        }
        (None, Some(rung)) => {
            let at = at.map_or(0, |at| at + 1);
            rungs.insert(at, rung);
            (rungs.len() - at, rung)
        }
    };
    let fault = match (change.action, found) {
        (LevelAction::Add, Some(_)) => Some(BookFault::DuplicateLevel),
        (LevelAction::Change, None) => Some(BookFault::UnknownLevel),
        _ => None,
    };
    LevelChangeOutcome { depth: place as u32, level, fault }
}

fn by_depth(
    rungs: &mut Vec<StoredLevel>,
    side: Side,
    change: &LevelChange,
    rung: Option<StoredLevel>,
    depth: u64,
    levels_max: DepthLimit,
) -> LevelChangeOutcome {
    let refuse = |fault| LevelChangeOutcome::none(Some(fault));
    // Counted from the end: the level at depth d is the d-th last.
    let from_end = usize::try_from(depth).unwrap_or(usize::MAX);
    let at = match rungs.len().checked_sub(from_end) {
        Some(at) if depth > 0 && change.action != LevelAction::Set => at,
        // Right after the last one there is room for a new level.
        None if change.action == LevelAction::Add && from_end == rungs.len() + 1 => {
            return match rung {
                _ if change.px == Price::NONE.0 => refuse(BookFault::BadLevel),
                None => refuse(BookFault::BadQuantity),
                Some(_) if rungs.len() >= levels_max.get() => refuse(BookFault::LevelsFull),
                Some(rung) => {
                    rungs.insert(0, rung);
                    placed(rungs, side, 0)
                }
            };
        }
        _ => return refuse(BookFault::BadLevel),
    };
    match (change.action, rung) {
        (LevelAction::Add, None) => return refuse(BookFault::BadQuantity),
        (_, None) => {
            return LevelChangeOutcome { depth: from_end as u32, level: rungs.remove(at), fault: None };
        }
        (LevelAction::Add, Some(_)) if change.px == Price::NONE.0 => return refuse(BookFault::BadLevel),
        (LevelAction::Add, Some(rung)) => {
            // A venue of fixed depth does not say that its last level falls out. Where the bound is ours alone it has that level.
            if rungs.len() >= levels_max.get() {
                rungs.remove(0);
                rungs.insert(at, rung);
                let done = placed(rungs, side, at);
                return match levels_max {
                    DepthLimit::Published(_) => done,
                    DepthLimit::Kept(_) => LevelChangeOutcome { fault: Some(BookFault::LevelsFull), ..done },
                };
            }
            rungs.insert(at + 1, rung);
            return placed(rungs, side, at + 1);
        }
        (_, Some(rung)) => {
            let px = if change.px == Price::NONE.0 { rungs[at].px } else { change.px };
            rungs[at] = StoredLevel { px, ..rung };
        }
    }
    placed(rungs, side, at)
}

/// A level was put at `at`; it is a fault if it is not between its neighbours.
fn placed(rungs: &[StoredLevel], side: Side, at: usize) -> LevelChangeOutcome {
    let fault = sorted_at(rungs, side, at).err();
    LevelChangeOutcome { depth: (rungs.len() - at) as u32, level: rungs[at], fault }
}

/// Whether the level at `at` is between its neighbours.
fn sorted_at(rungs: &[StoredLevel], side: Side, at: usize) -> LevelResult {
    let key = |at: usize| rungs.get(at).map(|r| price_key(side, r.px));
    let here = key(at);
    let above_worse = at == 0 || key(at - 1) < here;
    let below_better = key(at + 1).is_none_or(|k| Some(k) > here);
    if above_worse && below_better { Ok(()) } else { Err(BookFault::UnsortedLevel) }
}

crate::state::state!(StoredLevel { px, qty, orders });
crate::state::state!(BookSide { rungs, unsorted });
crate::state::state!(LevelBook { sides });
