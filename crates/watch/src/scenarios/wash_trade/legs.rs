//! The legs that wait for another leg. The earliest matching leg is found without a look at the others.
//!
//! ```text
//!   log, in order of arrival   ┌─────┬─────┬─────┬─────┬─────┐
//!                              │  7  │  8  │  9  │ 10  │ 11  │   what is two windows old is forgotten here ◀
//!                              └─────┴─────┴─────┴─────┴─────┘
//!   cell: group, instrument, side,
//!   price about 100, size about 1k    7 ───────▶ 9 ──▶ 10         chained in order of arrival
//! ```
//!
//! A cell is about as wide as the tolerances, so an execution looks at a few cells (nine at most) and in each at
//! legs that are near it; whether one really fits is then compared exactly. Cells are only a way to find: floats
//! are good enough for them, as the borders are drawn too wide rather than too narrow.

use super::{ExecutionLeg, WashTradeLimits};
use crate::parties::OwnerGroups;
use crate::state::{state_value, watch_state};
use hashbrown::{DefaultHashBuilder, HashMap};
use std::collections::VecDeque;
use unitape_model::{InstrumentId, UnixNanos};

/// A leg in the log.
#[derive(Clone, Copy)]
struct LoggedLeg {
    leg: ExecutionLeg,
    /// `u32::MAX` when it is in none, because it was consumed.
    cell_index: u32,
    /// Numbers of the neighbours in the same cell; [`NONE`] at its ends.
    previous_leg: u64,
    next_leg: u64,
}

/// Legs of one group, instrument and side whose price and quantity are about the same.
#[derive(Clone, Copy)]
struct LegCell {
    key: LegCellKey,
    first_leg: u64,
    last_leg: u64,
    /// Everything before this leg is stamped `over_ts` or earlier.
    first_live: u64,
    over_ts: UnixNanos,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct LegCellKey {
    group: u32,
    instr: InstrumentId,
    side: u8,
    px: u64,
    qty: u64,
}

const NONE: u64 = u64::MAX;
/// Nothing is earlier.
const LONG_AGO: UnixNanos = UnixNanos(i64::MIN);
const NO_CELL: u32 = u32::MAX;

pub(super) struct LegLog {
    /// Legs by number; the first is number `first_number`.
    log: VecDeque<LoggedLeg>,
    first_number: u64,
    legs_max: usize,
    cells: Vec<LegCell>,
    free_cells: Vec<u32>,
    by_key: HashMap<LegCellKey, u32, DefaultHashBuilder>,
    /// Legs that are not consumed, by group and instrument and then by side: most executions meet none.
    waiting_legs: HashMap<(u32, InstrumentId), [u32; 2], DefaultHashBuilder>,
    px_grid: ToleranceGrid,
    qty_grid: ToleranceGrid,
    /// State of [`OwnerGroups::changes`] when legs were put into cells.
    parties_changes: u64,
    /// The latest that was forgotten because its time was over.
    pub forgotten_ts: UnixNanos,
    pub expired: u64,
    pub bound_hit: u64,
}

state_value!(LoggedLeg { leg, cell_index, previous_leg, next_leg });
state_value!(LegCell { key, first_leg, last_leg, first_live, over_ts });
state_value!(LegCellKey { group, instr, side, px, qty });
watch_state!(LegLog {
    log, first_number, cells, free_cells, by_key, waiting_legs, parties_changes, forgotten_ts, expired, bound_hit
    | legs_max, px_grid, qty_grid,
});

impl LegLog {
    pub fn new(limits: &WashTradeLimits, max: usize) -> Self {
        Self {
            log: VecDeque::new(),
            first_number: 0,
            legs_max: max,
            cells: Vec::new(),
            free_cells: Vec::new(),
            by_key: HashMap::default(),
            waiting_legs: HashMap::default(),
            px_grid: ToleranceGrid::new(limits.px_tol as f64 / 1e13),
            qty_grid: ToleranceGrid::new(limits.qty_tol as f64 / 1e11),
            parties_changes: 0,
            forgotten_ts: LONG_AGO,
            expired: 0,
            bound_hit: 0,
        }
    }

    /// Legs in the log, consumed ones as well.
    pub fn len(&self) -> usize {
        self.log.len()
    }

    /// Files all legs under the current groups, if groups changed.
    #[inline]
    pub fn follow(&mut self, parties: &OwnerGroups) {
        if self.parties_changes != parties.changes() {
            self.parties_changes = parties.changes();
            self.file_anew(parties);
        }
    }

    /// Forgets legs that are two windows older than `now`, from the oldest on.
    #[inline]
    pub fn expire(&mut self, now: UnixNanos, limits: &WashTradeLimits) {
        while let Some(oldest) = self.log.front().filter(|k| limits.is_over(k.leg.ts, now)) {
            self.forgotten_ts = self.forgotten_ts.max(oldest.leg.ts);
            self.forget_oldest();
            self.expired += 1;
        }
    }

    /// Finds the earliest leg of `group` that makes a round trip with `e`. Returns the leg and its number.
    #[inline]
    pub fn find(
        &mut self,
        group: u32,
        e: &ExecutionLeg,
        limits: &WashTradeLimits,
    ) -> Option<(u64, ExecutionLeg)> {
        let side = 1 - e.side;
        let waiting = self.waiting_legs.get(&(group, e.instr))?;
        if waiting[usize::from(side)] == 0 {
            return None;
        }
        let mut earliest = None;
        for px in self.px_grid.cell_range(e.px as f64) {
            for qty in self.qty_grid.cell_range(leg_size(e)) {
                let key = LegCellKey { group, instr: e.instr, side, px, qty };
                if let Some(&cell) = self.by_key.get(&key) {
                    earliest = self.first_of(cell, e, limits, earliest.unwrap_or(NONE)).or(earliest);
                }
            }
        }
        earliest.map(|number| (number, self.logged_leg(number).leg))
    }

    /// Appends a leg of `group`. Returns its number.
    pub fn keep(&mut self, group: u32, leg: ExecutionLeg) -> u64 {
        if self.log.len() == self.legs_max {
            self.forget_oldest();
            self.bound_hit += 1;
        }
        let number = self.first_number + self.log.len() as u64;
        self.log.push_back(LoggedLeg { leg, cell_index: NO_CELL, previous_leg: NONE, next_leg: NONE });
        self.file(number, group);
        number
    }

    /// Takes the leg out of the search, if it is still there.
    pub fn consume(&mut self, number: u64) {
        if number < self.first_number {
            return;
        }
        let LoggedLeg { cell_index: cell, previous_leg: before, next_leg: after, .. } =
            *self.logged_leg(number);
        if cell == NO_CELL {
            return;
        }
        self.logged_leg_mut(number).cell_index = NO_CELL;
        if before != NONE {
            self.logged_leg_mut(before).next_leg = after;
        }
        if after != NONE {
            self.logged_leg_mut(after).previous_leg = before;
        }
        let leg_cell = &mut self.cells[cell as usize];
        if leg_cell.first_leg == number {
            leg_cell.first_leg = after;
        }
        if leg_cell.last_leg == number {
            leg_cell.last_leg = before;
        }
        if leg_cell.first_live == number {
            leg_cell.first_live = after;
        }
        let key = leg_cell.key;
        if leg_cell.first_leg == NONE {
            self.by_key.remove(&key);
            self.free_cells.push(cell);
        }
        if let hashbrown::hash_map::Entry::Occupied(mut waiting) =
            self.waiting_legs.entry((key.group, key.instr))
        {
            waiting.get_mut()[usize::from(key.side)] -= 1;
            if *waiting.get() == [0; 2] {
                waiting.remove();
            }
        }
    }

    /// Forgets all legs; numbers continue.
    pub fn clear(&mut self) {
        self.first_number += self.log.len() as u64;
        self.log.clear();
        self.forget_cells();
        self.forgotten_ts = LONG_AGO;
    }

    /// Finds the first leg of a cell that matches `e` and has a number before `limit`.
    fn first_of(&mut self, cell: u32, e: &ExecutionLeg, limits: &WashTradeLimits, limit: u64) -> Option<u64> {
        let LegCell { first_leg: first, first_live: from, over_ts, .. } = self.cells[cell as usize];
        // Legs that have expired for an execution in order have also expired for later executions. A late execution
        // begins at the front.
        let after = i128::from(e.ts.0) - limits.window_ns;
        let passed = i128::from(over_ts.0) <= after;
        let (mut leg_number, mut passing) = (if passed { from } else { first }, passed);
        while leg_number < limit {
            let LoggedLeg { leg, next_leg: next, .. } = *self.logged_leg(leg_number);
            if passing && i128::from(leg.ts.0) <= after {
                let cell = &mut self.cells[cell as usize];
                (cell.first_live, cell.over_ts) = (next, cell.over_ts.max(leg.ts));
            } else {
                passing = false;
                if limits.is_round_trip(e, &leg) {
                    return Some(leg_number);
                }
            }
            leg_number = next;
        }
        None
    }

    fn forget_oldest(&mut self) {
        if self.log.is_empty() {
            return;
        }
        self.consume(self.first_number);
        self.log.pop_front();
        self.first_number += 1;
    }

    /// Puts a leg at the end of its cell.
    fn file(&mut self, number: u64, group: u32) {
        let leg = self.logged_leg(number).leg;
        let key = LegCellKey {
            group,
            instr: leg.instr,
            side: leg.side,
            px: self.px_grid.cell_of(leg.px as f64),
            qty: self.qty_grid.cell_of(leg_size(&leg)),
        };
        self.waiting_legs.entry((group, leg.instr)).or_default()[usize::from(leg.side)] += 1;
        let new_cell =
            LegCell { key, first_leg: number, last_leg: number, first_live: number, over_ts: LONG_AGO };
        let (cells, free) = (&mut self.cells, &mut self.free_cells);
        let mut is_new = false;
        let cell = *self.by_key.entry(key).or_insert_with(|| {
            is_new = true;
            match free.pop() {
                Some(index) => {
                    cells[index as usize] = new_cell;
                    index
                }
                None => {
                    cells.push(new_cell);
                    cells.len() as u32 - 1
                }
            }
        });
        let mut previous_leg = NONE;
        if !is_new {
            let leg_cell = &mut self.cells[cell as usize];
            previous_leg = std::mem::replace(&mut leg_cell.last_leg, number);
            if leg_cell.first_live == NONE {
                leg_cell.first_live = number;
            }
            self.logged_leg_mut(previous_leg).next_leg = number;
        }
        let entry = self.logged_leg_mut(number);
        (entry.cell_index, entry.previous_leg, entry.next_leg) = (cell, previous_leg, NONE);
    }

    fn file_anew(&mut self, parties: &OwnerGroups) {
        self.forget_cells();
        for number in self.first_number..self.first_number + self.log.len() as u64 {
            let LoggedLeg { leg, cell_index: cell, .. } = *self.logged_leg(number);
            if cell != NO_CELL {
                self.file(number, parties.group(leg.owner));
            }
        }
    }

    fn forget_cells(&mut self) {
        self.by_key.clear();
        self.waiting_legs.clear();
        self.cells.clear();
        self.free_cells.clear();
    }

    #[inline]
    fn logged_leg(&self, number: u64) -> &LoggedLeg {
        &self.log[(number - self.first_number) as usize]
    }

    #[inline]
    fn logged_leg_mut(&mut self, number: u64) -> &mut LoggedLeg {
        &mut self.log[(number - self.first_number) as usize]
    }
}

#[cfg(test)]
impl LegLog {
    /// Cells and counts must be of the legs that are searched, and of no others.
    pub fn check(&self) {
        let filed = self.log.iter().filter(|k| k.cell_index != NO_CELL).count();
        let counted: u32 = self.waiting_legs.values().flatten().sum();
        let mut chained = 0;
        for &cell in self.by_key.values() {
            let mut number = self.cells[cell as usize].first_leg;
            assert_ne!(number, NONE, "an empty cell is freed");
            while number != NONE {
                assert_eq!(self.logged_leg(number).cell_index, cell);
                chained += 1;
                number = self.logged_leg(number).next_leg;
            }
        }
        assert_eq!((filed, filed), (counted as usize, chained));
        assert_eq!(self.cells.len(), self.by_key.len() + self.free_cells.len());
    }
}

/// Returns the quantity of a leg as a floating-point number, which is exact enough to choose a cell.
fn leg_size(leg: &ExecutionLeg) -> f64 {
    leg.qty.mantissa() as f64 * 10f64.powi(leg.qty.exponent().into())
}

/// Numbers from the same cell differ by about a tolerance. The cell of a positive number is the upper bits of its
/// float, so a cell is between 2^-(bits+1) and 2^-bits of its numbers wide.
#[derive(Clone, Copy)]
struct ToleranceGrid {
    /// A share: how far two numbers that meet may be apart.
    tolerance: f64,
    /// Bits of the mantissa that are looked at; `None` puts all numbers into one cell.
    bits: Option<u32>,
}

/// More than the rounding of all that is done with floats here.
const MARGIN: f64 = 1e-12;
/// So that a cell stays wider than [`MARGIN`].
const BITS_MAX: u32 = 36;

impl ToleranceGrid {
    fn new(tolerance: f64) -> Self {
        // From the least to the greatest that meets a number, as a share of the least.
        let width = (1.0 + tolerance) / (1.0 - tolerance) - 1.0;
        let uses_grid = tolerance < 0.3;
        let bits =
            uses_grid.then(|| (0..BITS_MAX).take_while(|b| width * 2f64.powi(*b as i32 + 1) <= 1.0).count());
        Self { tolerance, bits: bits.map(|b| b as u32) }
    }

    /// Returns the cell of `x`. A value that is not above zero is in cell 0.
    #[inline]
    fn cell_of(&self, x: f64) -> u64 {
        match self.bits {
            Some(bits) if x > 0.0 => x.to_bits() >> (52 - bits),
            _ => 0,
        }
    }

    /// Returns the cells of all values that may match `x`: f with |x − f| ≤ tolerance × f.
    #[inline]
    fn cell_range(&self, x: f64) -> std::ops::RangeInclusive<u64> {
        if x <= 0.0 {
            return 0..=0;
        }
        let least = x / (1.0 + self.tolerance) * (1.0 - MARGIN);
        let distance_max = x / (1.0 - self.tolerance) * (1.0 + MARGIN);
        self.cell_of(least)..=self.cell_of(distance_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        /// Fails if a cell is left out, which loses an alert at the edge of a tolerance, or if there are too many
        /// cells, which makes the search slow.
        #[test]
        fn whatever_meets_is_in_one_of_few_cells(
            tolerance in prop_oneof![Just(0.0), Just(5e-4), Just(0.1), Just(0.2999), Just(0.3), Just(7.0), 0.0..0.5f64],
            f in prop_oneof![1.0..1e6f64, Just(1e-21), Just(9.2e48), Just(100.0)],
            by in prop_oneof![Just(1.0), Just(-1.0), -1.0..1.0f64],
        ) {
            let grid = ToleranceGrid::new(tolerance);
            let e = f * (1.0 + tolerance * by);
            let cells = grid.cell_range(e);
            prop_assert!(cells.contains(&grid.cell_of(f)), "{e} {f} {cells:?}");
            prop_assert!(cells.end() - cells.start() < 3, "{cells:?}");
        }
    }
}
