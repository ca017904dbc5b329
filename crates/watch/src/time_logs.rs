//! Entries by key and time, which expire: for windows whose entries are looked at one by one, and for sums over windows of days.
//!
//! ```text
//!  key a   ·  ■ ■   ■ ■■    ■      in order of time; of one time in order of arrival
//!          └ the last that was forgotten, for running sums
//! ```
//!
//! Time may go back: a late entry goes to its place. Entries are kept for two windows, so that an event that is one window late
//! finds what it should. [`LogWindow::is_complete`] shows when something was forgotten that may belong into the window.

use crate::number::Number;
use crate::state::{StateFault, StateReader, StateValue, WatchState};
use hashbrown::{DefaultHashBuilder, HashMap};
use std::collections::VecDeque;
use std::hash::Hash;
use unitape_model::UnixNanos;

/// Entries of all keys kept at most. After that, the key of a new entry forgets its oldest.
const ENTRIES_MAX: usize = 1 << 21;
/// Keys kept at most; then the one whose turn it is is forgotten.
const KEYS_MAX: usize = 1 << 20;
/// One key is looked at in this many entries, whether it is idle.
const SWEEP_EVERY: u32 = 16;

/// Entries by key and time.
pub(crate) struct TimeLogs<K, E> {
    keep_ns: i128,
    logs: Vec<TimeLog<K, E>>,
    by_key: HashMap<K, u32, DefaultHashBuilder>,
    /// The log that is looked at next, whether it is idle.
    sweep_index: usize,
    until_sweep: u32,
    entries: usize,
    entries_max: usize,
    /// The latest that was ever forgotten together with its key.
    swept_ts: i64,
    /// Entries forgotten because their time was over.
    pub expired: u64,
    /// Entries forgotten because there was no room.
    pub bound_hit: u64,
}

struct TimeLog<K, E> {
    key: K,
    entries: VecDeque<(i64, E)>,
    /// The last entry that was forgotten.
    last_forgotten: Option<E>,
    forgotten_ts: i64,
}

/// The entries of a key in a window.
pub(crate) struct LogWindow<'a, E> {
    entries: Option<&'a VecDeque<(i64, E)>>,
    first_entry: usize,
    entries_end: usize,
    /// False when something that was forgotten may belong into it.
    pub is_complete: bool,
}

impl<'a, E> LogWindow<'a, E> {
    /// Returns the entries with their times, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (UnixNanos, &'a E)> + use<'a, E> {
        let entries = self.entries.map(|entries| entries.range(self.first_entry..self.entries_end));
        entries.into_iter().flatten().map(|(ts, entry)| (UnixNanos(*ts), entry))
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries_end - self.first_entry
    }
}

impl<K: Copy + Eq + Hash, E: Clone> TimeLogs<K, E> {
    /// Makes logs for windows of up to `window_ns` nanoseconds.
    pub fn new(window_ns: i128) -> Self {
        Self::bounded(window_ns, ENTRIES_MAX)
    }

    pub(crate) fn bounded(window_ns: i128, entries_max: usize) -> Self {
        Self {
            keep_ns: 2 * window_ns,
            logs: Vec::new(),
            by_key: HashMap::default(),
            sweep_index: 0,
            until_sweep: SWEEP_EVERY,
            entries: 0,
            entries_max,
            swept_ts: i64::MIN,
            expired: 0,
            bound_hit: 0,
        }
    }

    /// Adds an entry. Forgets what is two windows before `expiry_ts`.
    pub fn add(&mut self, key: K, ts: UnixNanos, entry: E, expiry_ts: UnixNanos) {
        self.place_entry(key, ts, entry, expiry_ts);
    }

    /// Adds an entry, and returns its log and its index there.
    fn place_entry(&mut self, key: K, ts: UnixNanos, entry: E, expiry_ts: UnixNanos) -> (usize, usize) {
        let limit = i128::from(ts.0.min(expiry_ts.0)) - self.keep_ns;
        self.until_sweep -= 1;
        if self.until_sweep == 0 {
            self.until_sweep = SWEEP_EVERY;
            self.sweep_key(limit);
        }
        let log_index = match self.by_key.get(&key) {
            Some(&index) => index as usize,
            None => self.new_log(key),
        };
        let log = &mut self.logs[log_index];
        let old_count = log.entries.len();
        while log.entries.front().is_some_and(|(ts, _)| i128::from(*ts) <= limit) {
            log.forget_first();
        }
        let expired = old_count - log.entries.len();
        self.expired += expired as u64;
        self.entries -= expired;
        if self.entries >= self.entries_max && log.forget_first() {
            self.bound_hit += 1;
            self.entries -= 1;
        }
        let index = log.entries.partition_point(|(other, _)| *other <= ts.0);
        log.entries.insert(index, (ts.0, entry));
        self.entries += 1;
        (log_index, index)
    }

    /// Returns the entries of a key in `(after, to]`.
    pub fn window(&self, key: &K, after: i128, to: UnixNanos) -> LogWindow<'_, E> {
        let Some(log) = self.by_key.get(key).map(|index| &self.logs[*index as usize]) else {
            let is_complete = i128::from(self.swept_ts) <= after;
            return LogWindow { entries: None, first_entry: 0, entries_end: 0, is_complete };
        };
        let first_entry = log.entries.partition_point(|(ts, _)| i128::from(*ts) <= after);
        let end_index = log.entries.partition_point(|(ts, _)| *ts <= to.0).max(first_entry);
        let is_complete = i128::from(log.forgotten_ts) <= after;
        LogWindow { entries: Some(&log.entries), first_entry, entries_end: end_index, is_complete }
    }

    /// Changes or removes entries of a key: `change` returns whether an entry stays.
    pub fn retain(&mut self, key: &K, mut change: impl FnMut(&mut E) -> bool) {
        if let Some(index) = self.by_key.get(key) {
            let log = &mut self.logs[*index as usize];
            let old_count = log.entries.len();
            log.entries.retain_mut(|(_, entry)| change(entry));
            self.entries -= old_count - log.entries.len();
        }
    }

    /// Returns the keys that have entries, in no order that means anything.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.logs.iter().map(|log| &log.key)
    }

    /// Entries kept now.
    pub fn entry_count(&self) -> usize {
        self.entries
    }

    /// Forgets everything but the counters.
    pub fn clear(&mut self) {
        self.logs.clear();
        self.by_key.clear();
        self.sweep_index = 0;
        self.until_sweep = SWEEP_EVERY;
        self.entries = 0;
        self.swept_ts = i64::MIN;
    }

    /// Looks at one key, and forgets it when all of it is at or before `limit`.
    fn sweep_key(&mut self, limit: i128) {
        if self.sweep_index >= self.logs.len() {
            self.sweep_index = 0;
        }
        let Some(log) = self.logs.get(self.sweep_index) else { return };
        if i128::from(log.newest_ts()) <= limit {
            self.expired += self.logs[self.sweep_index].entries.len() as u64;
            self.drop_log();
        } else {
            self.sweep_index += 1;
        }
    }

    /// Forgets the key at the hand.
    fn drop_log(&mut self) {
        let log = self.logs.swap_remove(self.sweep_index);
        self.by_key.remove(&log.key);
        if let Some(swept_log) = self.logs.get(self.sweep_index) {
            self.by_key.insert(swept_log.key, self.sweep_index as u32);
        }
        self.swept_ts = self.swept_ts.max(log.newest_ts());
        self.entries -= log.entries.len();
    }

    fn new_log(&mut self, key: K) -> usize {
        if self.logs.len() == KEYS_MAX {
            self.sweep_index %= self.logs.len();
            self.bound_hit += self.logs[self.sweep_index].entries.len() as u64;
            self.drop_log();
        }
        let log_index = self.logs.len();
        self.by_key.insert(key, log_index as u32);
        self.logs.push(TimeLog {
            key,
            entries: VecDeque::new(),
            last_forgotten: None,
            forgotten_ts: self.swept_ts,
        });
        log_index
    }
}

impl<K, E> TimeLog<K, E> {
    /// Returns the time of the last entry, kept or forgotten.
    fn newest_ts(&self) -> i64 {
        self.entries.back().map_or(self.forgotten_ts, |(ts, _)| (*ts).max(self.forgotten_ts))
    }

    fn forget_first(&mut self) -> bool {
        let Some((ts, entry)) = self.entries.pop_front() else { return false };
        self.forgotten_ts = self.forgotten_ts.max(ts);
        self.last_forgotten = Some(entry);
        true
    }
}

/// What can be summed up and taken away again.
pub(crate) trait RunningTotal: Clone + Default {
    /// Adds another total.
    fn add_total(&mut self, other: &Self);
    /// Returns the total less an earlier one.
    fn minus_total(&self, earlier: &Self) -> Self;
}

impl<const N: usize> RunningTotal for [u64; N]
where
    [u64; N]: Default,
{
    fn add_total(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(mine, other)| *mine += other);
    }

    fn minus_total(&self, earlier: &Self) -> Self {
        std::array::from_fn(|n| self[n] - earlier[n])
    }
}

impl RunningTotal for Number {
    fn add_total(&mut self, other: &Self) {
        *self = *self + *other;
    }

    fn minus_total(&self, earlier: &Self) -> Self {
        *self - *earlier
    }
}

impl<A: RunningTotal, B: RunningTotal> RunningTotal for (A, B) {
    fn add_total(&mut self, other: &Self) {
        self.0.add_total(&other.0);
        self.1.add_total(&other.1);
    }

    fn minus_total(&self, earlier: &Self) -> Self {
        (self.0.minus_total(&earlier.0), self.1.minus_total(&earlier.1))
    }
}

/// Running sums by key and time: the sum of any window is a difference of two.
pub(crate) struct TimeSums<K, T> {
    /// The sum of each entry and all before it.
    logs: TimeLogs<K, T>,
}

impl<K: Copy + Eq + Hash, T: RunningTotal> TimeSums<K, T> {
    /// Makes sums for windows of up to `window_ns` nanoseconds.
    pub fn new(window_ns: i128) -> Self {
        Self { logs: TimeLogs::new(window_ns) }
    }

    /// Adds a value. Forgets what is two windows before `expiry_ts`.
    pub fn add(&mut self, key: K, ts: UnixNanos, value: &T, expiry_ts: UnixNanos) {
        let (log_index, index) = self.logs.place_entry(key, ts, value.clone(), expiry_ts);
        let log = &mut self.logs.logs[log_index];
        let total_before = match index.checked_sub(1) {
            Some(before) => Some(&log.entries[before].1),
            None => log.last_forgotten.as_ref(),
        };
        let mut sum = total_before.cloned().unwrap_or_default();
        sum.add_total(value);
        log.entries[index].1 = sum;
        // Those after a late entry.
        log.entries.range_mut(index + 1..).for_each(|(_, sum)| sum.add_total(value));
    }

    /// Returns the sum of the values in `(after, to]`, and whether nothing that belongs to it was forgotten.
    pub fn sum(&self, key: &K, after: i128, to: UnixNanos) -> (T, bool) {
        let window = self.logs.window(key, after, to);
        let Some(entries) = window.entries.filter(|_| window.entries_end > window.first_entry) else {
            return (T::default(), window.is_complete);
        };
        let upto = &entries[window.entries_end - 1].1;
        let total_before = match window.first_entry.checked_sub(1) {
            Some(before) => Some(&entries[before].1),
            None => self
                .logs
                .by_key
                .get(key)
                .and_then(|index| self.logs.logs[*index as usize].last_forgotten.as_ref()),
        };
        (total_before.map_or_else(|| upto.clone(), |before| upto.minus_total(before)), window.is_complete)
    }

    /// Returns the logs, for counters.
    pub fn logs(&self) -> &TimeLogs<K, T> {
        &self.logs
    }

    /// Forgets everything but the counters.
    pub fn clear(&mut self) {
        self.logs.clear();
    }
}

impl<K: StateValue, E: StateValue> StateValue for TimeLog<K, E> {
    fn write(&self, out: &mut Vec<u8>) {
        let Self { key, entries, last_forgotten: before, forgotten_ts } = self;
        key.write(out);
        entries.write(out);
        before.write(out);
        forgotten_ts.write(out);
    }

    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
        let (key, entries) = StateValue::read(input)?;
        let (before, forgotten_ts) = StateValue::read(input)?;
        Ok(Self { key, entries, last_forgotten: before, forgotten_ts })
    }
}

impl<K: StateValue + Copy + Eq + Hash, E: StateValue> WatchState for TimeLogs<K, E> {
    fn save(&self, out: &mut Vec<u8>) {
        self.logs.write(out);
        (self.sweep_index, self.until_sweep, self.swept_ts).write(out);
        (self.expired, self.bound_hit).write(out);
    }

    fn load(&mut self, input: &mut StateReader<'_>) -> Result<(), StateFault> {
        self.logs = StateValue::read(input)?;
        (self.sweep_index, self.until_sweep, self.swept_ts) = StateValue::read(input)?;
        (self.expired, self.bound_hit) = StateValue::read(input)?;
        self.by_key = (0..).zip(&self.logs).map(|(index, log)| (log.key, index)).collect();
        self.entries = self.logs.iter().map(|log| log.entries.len()).sum();
        if self.by_key.len() == self.logs.len() && self.until_sweep > 0 { Ok(()) } else { Err(StateFault) }
    }
}

impl<K: StateValue + Copy + Eq + Hash, T: StateValue> WatchState for TimeSums<K, T> {
    fn save(&self, out: &mut Vec<u8>) {
        self.logs.save(out);
    }

    fn load(&mut self, input: &mut StateReader<'_>) -> Result<(), StateFault> {
        self.logs.load(input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const W: i64 = 10;

    fn step() -> impl Strategy<Value = (u8, u64, i64)> {
        (0u8..3, 1u64..5, prop::sample::select(&[0, 1, 4, W - 1, W, W + 1, 3 * W, -1, -W, -3 * W][..]))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// Fails if entries or sums differ from a plain list's wherever they claim to be complete, also in streams whose time
        /// goes back, and after a save and a load.
        #[test]
        fn logs_and_sums_are_those_of_a_list(steps in proptest::collection::vec(step(), 0..100)) {
            let (mut logs, mut sums) = (TimeLogs::<u8, u64>::new(W.into()), TimeSums::<u8, [u64; 1]>::new(W.into()));
            let (mut list, mut ts, mut last, mut back) = (Vec::new(), 0, i64::MIN, false);
            for (n, (key, value, step_ns)) in steps.into_iter().enumerate() {
                ts += step_ns;
                back |= step_ns < 0;
                let expiry_ts = UnixNanos(ts.min(std::mem::replace(&mut last, ts)));
                list.push((key, value, ts));
                logs.add(key, UnixNanos(ts), value, expiry_ts);
                sums.add(key, UnixNanos(ts), &[value], expiry_ts);
                let after = i128::from(ts - W);
                let in_window = |e: &&(u8, u64, i64)| e.0 == key && i128::from(e.2) > after && e.2 <= ts;
                let mut want: Vec<(i64, u64)> = list.iter().filter(in_window).map(|e| (e.2, e.1)).collect();
                want.sort_by_key(|e| e.0);
                let window = logs.window(&key, after, UnixNanos(ts));
                if window.is_complete {
                    let got: Vec<(i64, u64)> = window.iter().map(|(ts, value)| (ts.0, *value)).collect();
                    prop_assert_eq!(got.len(), window.len());
                    prop_assert_eq!(&got, &want);
                } else {
                    prop_assert!(back, "in order, nothing is ever forgotten too early");
                }
                let (sum, is_complete) = sums.sum(&key, after, UnixNanos(ts));
                if is_complete {
                    prop_assert_eq!(sum, [want.iter().map(|e| e.1).sum::<u64>()]);
                }
                if n % 7 == 3 {
                    let mut bytes = Vec::new();
                    sums.save(&mut bytes);
                    sums = TimeSums::new(W.into());
                    sums.load(&mut StateReader::new(&bytes)).unwrap();
                }
            }
            prop_assert_eq!(logs.entry_count(), logs.logs.iter().map(|log| log.entries.len()).sum::<usize>());
        }

        /// Fails if more entries are kept than may be.
        #[test]
        fn bounds_hold(steps in proptest::collection::vec(step(), 0..100)) {
            let mut logs = TimeLogs::<u8, u64>::bounded(W.into(), 4);
            let mut ts = 0;
            for (key, value, step_ns) in steps {
                ts += step_ns;
                logs.add(key, UnixNanos(ts), value, UnixNanos(ts));
                prop_assert!(logs.entry_count() <= 4 + logs.logs.len());
                logs.retain(&key, |entry| *entry != 3);
                prop_assert!(logs.window(&key, i128::MIN, UnixNanos(i64::MAX)).iter().all(|(_, entry)| *entry != 3));
            }
        }
    }
}
