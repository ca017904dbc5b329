//! The last price of a book or an instrument up to a time in the past.
//!
//! ```text
//!  seq ─▶   ■ ■ ■ ■ ■ ■ ■ ■ ■        the prints that have a price
//!           │ a spare goes when SPARES later prints are stamped before every window that is to come
//!           └ kept for the case that a later one is cancelled
//! ```
//!
//! The last print is the last by sequence. Only the first prints are forgotten, so a print that is found is always the right one.

use crate::keyed::KeyedStates;
use crate::prints::{Print, PrintChange};
use crate::state::{StateFault, StateReader, StateValue, WatchState, state_value};
use crate::watch::EvidencePlace;
use std::collections::VecDeque;
use std::hash::Hash;
use unitape_model::{Price, UnixNanos};

/// The prints of each key that may be the last up to a time.
pub(crate) struct PastPrices<K> {
    keep_ns: i128,
    rows: KeyedStates<K, PriceRow>,
    bound_hit: u64,
}

/// The prints of a key in the order of their sequence.
struct PriceRow {
    past_prints: VecDeque<PastPrint>,
    /// Whether prints were forgotten.
    is_cut: bool,
}

/// A print that was the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PastPrint {
    ts: UnixNanos,
    pub px: Price,
    pub place: EvidencePlace,
}

state_value!(PastPrint { ts, px, place });
state_value!(PriceRow { past_prints, is_cut });

/// Later prints that make an earlier one superfluous.
const SPARES: usize = 32;
/// Prints of a key kept at most; then the first is forgotten.
const ROW_MAX: usize = 1 << 18;

impl<K: Copy + Eq + Hash> PastPrices<K> {
    /// Makes rows for times that are up to `window_ns` nanoseconds ago.
    pub fn new(window_ns: i128) -> Self {
        Self { keep_ns: 2 * window_ns, rows: KeyedStates::new(), bound_hit: 0 }
    }

    /// Takes what a trade does to the prints of a key.
    pub fn on_change(&mut self, key: K, change: &PrintChange, expiry_ts: UnixNanos) {
        match change {
            PrintChange::New(print) if print.no_last => {}
            PrintChange::New(print) => self.add_print(key, print, expiry_ts),
            PrintChange::Cancelled(before) => self.replace_print(&key, before, None),
            PrintChange::Corrected { before, after } => self.replace_print(&key, before, Some(after.px)),
        }
    }

    fn add_print(&mut self, key: K, print: &Print, expiry_ts: UnixNanos) {
        let limit = i128::from(print.ts.min(expiry_ts).0) - self.keep_ns;
        let row =
            self.rows.get_or_insert_with(key, || PriceRow { past_prints: VecDeque::new(), is_cut: false });
        while let (Some(first), Some(later)) = (row.past_prints.front(), row.past_prints.get(SPARES)) {
            let is_superfluous = later.ts <= first.ts || i128::from(later.ts.0) <= limit;
            if !is_superfluous && row.past_prints.len() < ROW_MAX {
                break;
            }
            self.bound_hit += u64::from(!is_superfluous);
            row.past_prints.pop_front();
            row.is_cut = true;
        }
        row.past_prints.push_back(print.into());
    }

    /// Gives a print another price, or removes it.
    #[cold]
    fn replace_print(&mut self, key: &K, before: &Print, px: Option<Price>) {
        let Some(row) = self.rows.get_mut(key) else { return };
        let Ok(index) = row.past_prints.binary_search_by_key(&before.seq, |print| print.place.seq) else {
            return;
        };
        match px {
            Some(px) => row.past_prints[index].px = px,
            None => drop(row.past_prints.remove(index)),
        }
    }

    /// Returns the last print of a key that is stamped `limit` or earlier. The flag is false if it may have been forgotten.
    pub fn last_until(&self, key: &K, limit: i128) -> (Option<PastPrint>, bool) {
        let Some(row) = self.rows.get(key) else { return (None, true) };
        let last_print = row.past_prints.iter().rfind(|print| i128::from(print.ts.0) <= limit).copied();
        (last_print, last_print.is_some() || !row.is_cut)
    }

    /// Keys with prints.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Prints and keys forgotten because there was no room.
    pub fn bound_hit(&self) -> u64 {
        self.bound_hit + self.rows.bound_hit()
    }

    /// Forgets everything but the counters.
    pub fn clear(&mut self) {
        self.rows.clear();
    }
}

impl From<&Print> for PastPrint {
    fn from(print: &Print) -> Self {
        Self { ts: print.ts, px: print.px, place: print.place() }
    }
}

impl<K: StateValue + Copy + Eq + Hash> WatchState for PastPrices<K> {
    fn save(&self, out: &mut Vec<u8>) {
        self.rows.save(out);
        self.bound_hit.write(out);
    }

    fn load(&mut self, input: &mut StateReader<'_>) -> Result<(), StateFault> {
        self.rows.load(input)?;
        self.bound_hit = StateValue::read(input)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::twin::naive::stream::{Op, SILENT, arena};
    use proptest::prelude::*;
    use unitape_model::{Event, EventKind, frames};

    const W: i64 = 10;

    /// A print, and which earlier one is cancelled or gets another price.
    fn step() -> impl Strategy<Value = (Op, Option<(usize, Option<i64>)>)> {
        let by = prop_oneof![30 => 0i64..3, 1 => prop::sample::select(&[W, 3 * W, -1, -W, -3 * W][..])];
        let change = prop::option::weighted(0.1, (0usize..40, prop::option::of(1i64..9)));
        let op = (by, 1i64..9).prop_map(|(by, px)| Op {
            kind: EventKind::Trade,
            by,
            instr: 1,
            venue: 1,
            px: Some(px),
            qty: Some((1, 0)),
            ..SILENT
        });
        (op, change)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// Fails if a row that has forgotten prints gives another last print than a plain list. It may know none, and says so;
        /// but not in a stream in the order of time, for a time inside of the window.
        #[test]
        fn the_last_print_is_that_of_a_list(steps in proptest::collection::vec(step(), 0..200)) {
            let ops: Vec<Op> = steps.iter().map(|(op, _)| op.clone()).collect();
            let arena = arena(&ops);
            let mut prices = PastPrices::<u8>::new(W.into());
            let (mut list, mut last_ts, mut is_ordered) = (Vec::<Print>::new(), UnixNanos(i64::MIN), true);
            for (((_, _, frame), (_, change)), seq) in frames(&arena).zip(&steps).zip(1..) {
                let event = Event::new(frame).unwrap();
                let ts = event.ts_event();
                let expiry_ts = ts.min(last_ts);
                is_ordered &= ts >= last_ts && change.is_none();
                last_ts = ts;
                let print = Print::of_arriving(&event, seq, None, ts).unwrap();
                prices.on_change(1, &PrintChange::New(print), expiry_ts);
                list.push(print);
                if let Some((index, px)) = change.filter(|(back, _)| *back < list.len()) {
                    let index = list.len() - 1 - index;
                    let before = list[index];
                    match px {
                        Some(px) => {
                            list[index].px = Price(px);
                            let after = list[index];
                            prices.on_change(1, &PrintChange::Corrected { before, after }, expiry_ts);
                        }
                        None => {
                            list.remove(index);
                            prices.on_change(1, &PrintChange::Cancelled(before), expiry_ts);
                        }
                    }
                }
                for limit in [ts.0 - 3 * W, ts.0 - W, ts.0 - 1, ts.0] {
                    let want = list.iter().rfind(|print| print.ts.0 <= limit).map(PastPrint::from);
                    let (got, is_complete) = prices.last_until(&1, limit.into());
                    prop_assert!(got == want || !is_complete && got.is_none());
                    prop_assert!(is_complete || !is_ordered || limit < ts.0 - W);
                }
            }
        }
    }
}
