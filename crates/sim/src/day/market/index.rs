//! The index.

use unitape_model::InstrumentId;

use super::super::event::DayEventBody;
use super::super::world::SimulatedMarket;

/// Constituents of the index: the first instruments, at most this many.
pub(crate) const CONSTITUENTS_MAX: usize = 20;

/// An index of equal weights: 1000 times the mean of `last / base` over the constituents. `last` is the price of the last
/// print on any venue (the previous close before the first), `base` the previous close of the first day. Each quotient is
/// cut to twelve places, and the value is rounded to hundredths, halves up.
#[derive(Debug)]
pub(super) struct IndexSeries {
    base: Vec<i64>,
    last: Vec<i64>,
    published: i64,
    published_at: u64,
    moved: bool,
}

impl IndexSeries {
    pub fn new(world: &SimulatedMarket) -> IndexSeries {
        let base: Vec<i64> =
            world.instruments.iter().take(CONSTITUENTS_MAX).map(|listed| listed.reference).collect();
        IndexSeries { last: base.clone(), base, published: 100_000, published_at: 0, moved: false }
    }

    pub fn apply(&mut self, world: &SimulatedMarket, body: &DayEventBody) {
        let DayEventBody::Trade { book, px, .. } = *body else { return };
        let instr: InstrumentId = world.instr_of(book);
        if let Some(last) = self.last.get_mut(instr.index()) {
            *last = px;
            self.moved = true;
        }
    }

    /// Returns the new index value in hundredths, if it has changed and either a second has passed since the last value
    /// or the day ends.
    pub fn publish(&mut self, now: u64, at_end: bool) -> Option<i64> {
        if !self.moved || !at_end && now < self.published_at + INTERVAL_NS {
            return None;
        }
        self.moved = false;
        let value = index_value(&self.last, &self.base);
        if value == self.published {
            return None;
        }
        (self.published, self.published_at) = (value, now);
        Some(value)
    }

    /// Returns the last published value, in hundredths.
    pub fn published(&self) -> i64 {
        self.published
    }

    /// Returns the previous closes of the first day.
    pub fn base(&self) -> &[i64] {
        &self.base
    }
}

/// Returns the value of the index in hundredths.
pub(crate) fn index_value(last: &[i64], base: &[i64]) -> i64 {
    let quotients = last.iter().zip(base);
    let sum: i128 = quotients.map(|(&last, &base)| i128::from(last) * PLACES / i128::from(base)).sum();
    let unit = PLACES * base.len() as i128;
    ((sum * 100_000 * 2 + unit) / (unit * 2)) as i64
}

const INTERVAL_NS: u64 = 1_000_000_000;
const PLACES: i128 = 1_000_000_000_000;
