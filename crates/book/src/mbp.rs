//! A book made of its levels, as the venue publishes them: by price, or by depth.
//!
//! `A` puts a level in, `C` changes one, `D` deletes one, `R` clears a side, or both when it names none. An event
//! with a `depth` is by depth: 1 is the best, what stands at it or behind moves back (`A`) or up (`D`). One without
//! is by price. A quantity of zero deletes.
//!
//! Who has instruments as numbers of his own, and no events, uses [`LevelBook`] by itself: a change costs some tens of
//! nanoseconds, and says where it was.

use crate::fault::Fault;
use crate::value::{Level, price_key};
use unitape_model::{Price, Side};

/// A book of levels: of one instrument, both sides.
///
/// ```
/// use unitape_book::{LevelAction, LevelBook, LevelChange, LevelsMax};
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
/// book.apply(&new(99_000_000_000, 1), LevelsMax::Published(10));
/// let done = book.apply(&new(98_000_000_000, 2), LevelsMax::Published(10));
/// assert_eq!((done.depth, done.fault), (2, None));
/// assert_eq!(book.best(Side::Buy).unwrap().px, 99_000_000_000);
/// ```
#[derive(Clone, Debug, Default)]
pub struct LevelBook {
    sides: [Half; 2],
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelDone {
    /// The place from the best, from 1: where the level is, or was; 0 where no level was touched.
    pub depth: u32,
    /// The level as it is now, or as it was before it was taken out.
    pub level: Rung,
    /// What it says that cannot be.
    pub fault: Option<Fault>,
}

impl LevelDone {
    const fn none(fault: Option<Fault>) -> Self {
        Self { depth: 0, level: Rung { px: Price::NONE.0, qty: (0, 0), orders: u32::MAX }, fault }
    }
}

#[derive(Clone, Debug, Default)]
struct Half {
    /// Best last, as [`crate::ladder::Ladder`] has it.
    rungs: Vec<Rung>,
    /// By depth, a feed can put prices out of order.
    unsorted: bool,
}

impl Half {
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
        let no_better = |r: &Rung| price_key(side, r.px) <= key;
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
pub struct Rung {
    /// The price, as [`Price`] has it.
    pub px: i64,
    /// All quantity at it: mantissa and exponent of ten.
    pub qty: (i64, i8),
    /// [`u32::MAX`] when the feed does not tell.
    pub orders: u32,
}

impl Rung {
    /// It has a price, and a quantity.
    #[inline(always)]
    fn is_whole(&self) -> bool {
        self.px != Price::NONE.0 && self.qty.0 > 0 && (-30..=30).contains(&self.qty.1)
    }

    /// The same as views have it.
    pub fn level(&self) -> Level {
        Level {
            px: Price(self.px),
            qty: crate::qty::amount(self.qty.0.into(), self.qty.1),
            orders: (self.orders != u32::MAX).then_some(self.orders),
        }
    }
}

/// What becomes of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is put in.
    Add,
    /// It is another one now.
    Change,
    /// It is taken out.
    Delete,
    /// All of the side go, or of both where none is named.
    Clear,
}

/// A change of a level, as a `level` event tells it.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// What becomes of it.
    pub action: Action,
    /// Which side; none for both.
    pub side: Option<Side>,
    /// [`Price::NONE`] for none.
    pub px: i64,
    /// All quantity at it: mantissa and exponent of ten.
    pub qty: Option<(i64, i8)>,
    /// How many orders; [`u32::MAX`] for not told.
    pub orders: u32,
    /// Its place from the best, from 1; none where it is known by its price.
    pub depth: Option<u64>,
}

/// How many levels a side has at most, and what one more means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelsMax {
    /// The venue publishes no more: by depth, a new level on a full side makes the last one fall out, without a word.
    Published(u32),
    /// No more are kept. The venue has more, so whatever is left out is a fault.
    Kept(u32),
}

impl LevelsMax {
    #[inline]
    const fn get(self) -> usize {
        match self {
            LevelsMax::Published(n) | LevelsMax::Kept(n) => n as usize,
        }
    }
}

type Outcome = Result<(), Fault>;

impl LevelBook {
    /// Takes an event; no more than so many levels are kept of a side.
    #[inline]
    pub(crate) fn on_level(&mut self, change: &Change, levels_max: u32) -> Outcome {
        self.apply(change, LevelsMax::Kept(levels_max)).fault.map_or(Ok(()), Err)
    }

    /// Takes a change; `levels_max` bounds each side.
    #[inline]
    pub fn apply(&mut self, change: &Change, levels_max: LevelsMax) -> LevelDone {
        self.plain(change, levels_max).unwrap_or_else(|| self.apply_any(change, levels_max))
    }

    /// What nearly all changes are: see [`LevelBook::add`], [`LevelBook::change`] and [`LevelBook::take`]. None for all
    /// others, of which it changes nothing.
    #[inline]
    fn plain(&mut self, change: &Change, levels_max: LevelsMax) -> Option<LevelDone> {
        let (side, depth) = (change.side?, u32::try_from(change.depth?).ok()?);
        let (level, sorted) = match change.action {
            Action::Delete => (self.take(side, depth)?, true),
            Action::Clear => return None,
            Action::Add => {
                let rung = Rung { px: change.px, qty: change.qty?, orders: change.orders };
                (rung, self.add(side, depth, rung, levels_max)?)
            }
            Action::Change => {
                let rung = Rung { px: change.px, qty: change.qty?, orders: change.orders };
                (rung, self.change(side, depth, rung)?)
            }
        };
        Some(LevelDone { depth, level, fault: (!sorted).then_some(Fault::UnsortedLevel) })
    }

    /// Takes out the level at a place from the best, from 1; none where there is none.
    #[inline(always)]
    pub fn take(&mut self, side: Side, depth: u32) -> Option<Rung> {
        let rungs = &mut self.sides[side as usize].rungs;
        if depth == 0 {
            return None;
        }
        let at = rungs.len().checked_sub(depth as usize)?;
        Some(rungs.remove(at))
    }

    /// Puts in a whole level at a place from the best, from 1. Gives whether it is between its neighbours. None where that is
    /// not all there is to it, as where the place is none, or the side full: then nothing is changed, and
    /// [`LevelBook::apply`] tells what becomes of it.
    #[inline(always)]
    pub fn add(&mut self, side: Side, depth: u32, rung: Rung, levels_max: LevelsMax) -> Option<bool> {
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
    pub fn change(&mut self, side: Side, depth: u32, rung: Rung) -> Option<bool> {
        let half = &mut self.sides[side as usize];
        if depth == 0 || !rung.is_whole() {
            return None;
        }
        let at = half.rungs.len().checked_sub(depth as usize)?;
        half.rungs[at] = rung;
        Some(half.is_sorted_at(side, at))
    }

    /// The same for whatever a change may be.
    #[inline(never)]
    pub(crate) fn apply_any(&mut self, change: &Change, levels_max: LevelsMax) -> LevelDone {
        if change.action == Action::Clear {
            match change.side {
                Some(side) => self.sides[side as usize].clear(),
                None => self.clear(),
            }
            return LevelDone::none(None);
        }
        let Some(side) = change.side else { return LevelDone::none(Some(Fault::BadLevel)) };
        let rung = match (change.action, change.qty) {
            (Action::Delete, _) => None,
            (_, Some(qty)) if qty.0 >= 0 && qty.1.unsigned_abs() <= 30 => {
                (qty.0 > 0).then_some(Rung { px: change.px, qty, orders: change.orders })
            }
            _ => return LevelDone::none(Some(Fault::BadQuantity)),
        };
        let half = &mut self.sides[side as usize];
        let Some(depth) = change.depth else { return by_price(half, side, change, rung, levels_max.get()) };
        let done = by_depth(&mut half.rungs, side, change, rung, depth, levels_max);
        half.unsorted |= done.fault == Some(Fault::UnsortedLevel);
        done
    }

    /// Takes all levels out.
    pub fn clear(&mut self) {
        self.sides.iter_mut().for_each(Half::clear);
    }

    /// How many levels a side has.
    #[inline]
    pub fn levels(&self, side: Side) -> usize {
        self.sides[side as usize].rungs.len()
    }

    /// The best level of a side.
    #[inline]
    pub fn best(&self, side: Side) -> Option<&Rung> {
        self.sides[side as usize].rungs.last()
    }

    /// The level at a place from the best, from 1.
    #[inline]
    pub fn at(&self, side: Side, depth: usize) -> Option<&Rung> {
        let rungs = &self.sides[side as usize].rungs;
        rungs.len().checked_sub(depth).filter(|_| depth > 0).map(|at| &rungs[at])
    }

    /// Best first.
    pub fn iter(&self, side: Side) -> impl ExactSizeIterator<Item = &Rung> + Clone {
        self.sides[side as usize].rungs.iter().rev()
    }
}

fn by_price(
    half: &mut Half,
    side: Side,
    change: &Change,
    rung: Option<Rung>,
    levels_max: usize,
) -> LevelDone {
    if change.px == Price::NONE.0 {
        return LevelDone::none(Some(Fault::BadLevel));
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
        (None, None) => return LevelDone::none(Some(Fault::UnknownLevel)),
        (None, Some(_)) if rungs.len() >= levels_max => return LevelDone::none(Some(Fault::LevelsFull)),
        (None, Some(rung)) => {
            let at = at.map_or(0, |at| at + 1);
            rungs.insert(at, rung);
            (rungs.len() - at, rung)
        }
    };
    let fault = match (change.action, found) {
        (Action::Add, Some(_)) => Some(Fault::DuplicateLevel),
        (Action::Change, None) => Some(Fault::UnknownLevel),
        _ => None,
    };
    LevelDone { depth: place as u32, level, fault }
}

fn by_depth(
    rungs: &mut Vec<Rung>,
    side: Side,
    change: &Change,
    rung: Option<Rung>,
    depth: u64,
    levels_max: LevelsMax,
) -> LevelDone {
    let refuse = |fault| LevelDone::none(Some(fault));
    // Counted from the end: the level at depth d is the d-th last.
    let from_end = usize::try_from(depth).unwrap_or(usize::MAX);
    let at = match rungs.len().checked_sub(from_end) {
        Some(at) if depth > 0 => at,
        // Right behind the last one there is room for a new level.
        None if change.action == Action::Add && from_end == rungs.len() + 1 => {
            return match rung {
                _ if change.px == Price::NONE.0 => refuse(Fault::BadLevel),
                None => refuse(Fault::BadQuantity),
                Some(_) if rungs.len() >= levels_max.get() => refuse(Fault::LevelsFull),
                Some(rung) => {
                    rungs.insert(0, rung);
                    placed(rungs, side, 0)
                }
            };
        }
        _ => return refuse(Fault::BadLevel),
    };
    match (change.action, rung) {
        (Action::Add, None) => return refuse(Fault::BadQuantity),
        (_, None) => {
            return LevelDone { depth: from_end as u32, level: rungs.remove(at), fault: None };
        }
        (Action::Add, Some(_)) if change.px == Price::NONE.0 => return refuse(Fault::BadLevel),
        (Action::Add, Some(rung)) => {
            // A venue of fixed depth does not say that its last level falls out. Where the bound is ours alone it has that level.
            if rungs.len() >= levels_max.get() {
                rungs.remove(0);
                rungs.insert(at, rung);
                let done = placed(rungs, side, at);
                return match levels_max {
                    LevelsMax::Published(_) => done,
                    LevelsMax::Kept(_) => LevelDone { fault: Some(Fault::LevelsFull), ..done },
                };
            }
            rungs.insert(at + 1, rung);
            return placed(rungs, side, at + 1);
        }
        (_, Some(rung)) => {
            let px = if change.px == Price::NONE.0 { rungs[at].px } else { change.px };
            rungs[at] = Rung { px, ..rung };
        }
    }
    placed(rungs, side, at)
}

/// A level was put at `at`; it is a fault if it is not between its neighbours.
fn placed(rungs: &[Rung], side: Side, at: usize) -> LevelDone {
    let fault = sorted_at(rungs, side, at).err();
    LevelDone { depth: (rungs.len() - at) as u32, level: rungs[at], fault }
}

/// Whether the level at `at` is between its neighbours.
fn sorted_at(rungs: &[Rung], side: Side, at: usize) -> Outcome {
    let key = |at: usize| rungs.get(at).map(|r| price_key(side, r.px));
    let here = key(at);
    let above_worse = at == 0 || key(at - 1) < here;
    let below_better = key(at + 1).is_none_or(|k| Some(k) > here);
    if above_worse && below_better { Ok(()) } else { Err(Fault::UnsortedLevel) }
}
