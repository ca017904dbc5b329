//! A book made of its levels, as the venue publishes them: by price, or by depth.
//!
//! `A` puts a level in, `C` changes one, `D` deletes one, `R` clears a side, or both when it names none. An event
//! with a `depth` is by depth: 1 is the best, what stands at it or behind moves back (`A`) or up (`D`). One without
//! is by price. A quantity of zero deletes.

use crate::fault::Fault;
use crate::value::{Level, Side};
use unitape_model::Price;

/// A book of levels.
#[derive(Clone, Debug, Default)]
pub(crate) struct LevelBook {
    sides: [Half; 2],
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

    /// The last level that is no better than `key`.
    fn find(&self, side: Side, key: i64) -> Option<usize> {
        const NEAR: usize = 8;
        let no_better = |r: &Rung| side.key(r.px) <= key;
        // From the touch, where most changes are.
        let (far, near) = self.rungs.split_at(self.rungs.len().saturating_sub(NEAR));
        match near.iter().rposition(no_better) {
            Some(at) => Some(far.len() + at),
            None if self.unsorted => far.iter().rposition(no_better),
            None => far.partition_point(no_better).checked_sub(1),
        }
    }
}

/// A level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rung {
    pub px: i64,
    pub qty: (i64, i8),
    /// [`u32::MAX`] when the feed does not tell.
    pub orders: u32,
}

impl Rung {
    pub fn level(&self) -> Level {
        Level {
            px: Price(self.px),
            qty: crate::qty::amount(self.qty.0.into(), self.qty.1),
            orders: (self.orders != u32::MAX).then_some(self.orders),
        }
    }
}

/// What a `level` event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Add,
    Change,
    Delete,
    Clear,
}

/// A `level` event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub action: Action,
    pub side: Option<Side>,
    /// [`Price::NONE`] for none.
    pub px: i64,
    pub qty: Option<(i64, i8)>,
    pub orders: u32,
    pub depth: Option<u64>,
}

type Outcome = Result<(), Fault>;

impl LevelBook {
    /// Takes an event; `levels_max` bounds each side.
    pub fn on_level(&mut self, change: &Change, levels_max: usize) -> Outcome {
        if change.action == Action::Clear {
            match change.side {
                Some(side) => self.sides[side as usize].clear(),
                None => self.clear(),
            }
            return Ok(());
        }
        let side = change.side.ok_or(Fault::BadLevel)?;
        let rung = match (change.action, change.qty) {
            (Action::Delete, _) => None,
            (_, Some(qty)) if qty.0 >= 0 && qty.1.unsigned_abs() <= 30 => {
                (qty.0 > 0).then_some(Rung { px: change.px, qty, orders: change.orders })
            }
            _ => return Err(Fault::BadQuantity),
        };
        let half = &mut self.sides[side as usize];
        let Some(depth) = change.depth else { return by_price(half, side, change, rung, levels_max) };
        let outcome = by_depth(&mut half.rungs, side, change, rung, depth, levels_max);
        half.unsorted |= outcome == Err(Fault::UnsortedLevel);
        outcome
    }

    pub fn clear(&mut self) {
        self.sides.iter_mut().for_each(Half::clear);
    }

    pub fn levels(&self, side: Side) -> usize {
        self.sides[side as usize].rungs.len()
    }

    #[inline]
    pub fn best(&self, side: Side) -> Option<&Rung> {
        self.sides[side as usize].rungs.last()
    }

    /// Best first.
    pub fn iter(&self, side: Side) -> impl Iterator<Item = &Rung> {
        self.sides[side as usize].rungs.iter().rev()
    }
}

fn by_price(half: &mut Half, side: Side, change: &Change, rung: Option<Rung>, levels_max: usize) -> Outcome {
    if change.px == Price::NONE.0 {
        return Err(Fault::BadLevel);
    }
    let at = half.find(side, side.key(change.px));
    let rungs = &mut half.rungs;
    let found = at.filter(|&at| rungs[at].px == change.px);
    match (found, rung) {
        (Some(at), None) => _ = rungs.remove(at),
        (Some(at), Some(rung)) => rungs[at] = rung,
        (None, None) => return Err(Fault::UnknownLevel),
        (None, Some(_)) if rungs.len() >= levels_max => return Err(Fault::LevelsFull),
        (None, Some(rung)) => rungs.insert(at.map_or(0, |at| at + 1), rung),
    }
    match (change.action, found) {
        (Action::Add, Some(_)) => Err(Fault::DuplicateLevel),
        (Action::Change, None) => Err(Fault::UnknownLevel),
        _ => Ok(()),
    }
}

fn by_depth(
    rungs: &mut Vec<Rung>,
    side: Side,
    change: &Change,
    rung: Option<Rung>,
    depth: u64,
    levels_max: usize,
) -> Outcome {
    // Counted from the end: the level at depth d is the d-th last.
    let from_end = usize::try_from(depth).unwrap_or(usize::MAX);
    let at = match rungs.len().checked_sub(from_end) {
        Some(at) if depth > 0 => at,
        // Right behind the last one there is room for a new level.
        None if change.action == Action::Add && from_end == rungs.len() + 1 => {
            return match rung {
                _ if change.px == Price::NONE.0 => Err(Fault::BadLevel),
                None => Err(Fault::BadQuantity),
                Some(_) if rungs.len() >= levels_max => Err(Fault::LevelsFull),
                Some(rung) => {
                    rungs.insert(0, rung);
                    sorted_at(rungs, side, 0)
                }
            };
        }
        _ => return Err(Fault::BadLevel),
    };
    match (change.action, rung) {
        (Action::Add, None) => return Err(Fault::BadQuantity),
        (_, None) => {
            rungs.remove(at);
            return Ok(());
        }
        (Action::Add, Some(_)) if change.px == Price::NONE.0 => return Err(Fault::BadLevel),
        (Action::Add, Some(rung)) => {
            // A venue of fixed depth does not say that its last level falls out; the bound here does.
            if rungs.len() >= levels_max {
                rungs.remove(0);
                rungs.insert(at, rung);
                return sorted_at(rungs, side, at);
            }
            rungs.insert(at + 1, rung);
            return sorted_at(rungs, side, at + 1);
        }
        (_, Some(rung)) => {
            let px = if change.px == Price::NONE.0 { rungs[at].px } else { change.px };
            rungs[at] = Rung { px, ..rung };
        }
    }
    sorted_at(rungs, side, at)
}

/// Whether the level at `at` is between its neighbours.
fn sorted_at(rungs: &[Rung], side: Side, at: usize) -> Outcome {
    let key = |at: usize| rungs.get(at).map(|r| side.key(r.px));
    let here = key(at);
    let above_worse = at == 0 || key(at - 1) < here;
    let below_better = key(at + 1).is_none_or(|k| Some(k) > here);
    if above_worse && below_better { Ok(()) } else { Err(Fault::UnsortedLevel) }
}
