//! Counts the things of each class that each key did within a sliding window of event time.
//!
//! ```text
//!   key ──▶ ring in order of time:  ts    10  12  12  15  19      window of 5 at t = 19: (14, 19]
//!                                   class  a   b   a   a   a
//!                          so far:  a      1   1   2   3   4   ── 4 − 2 = 2
//!                                   b      0   1   1   1   1   ── 1 − 1 = 0
//! ```
//!
//! With running counts, a window is a difference of two entries, so an event in order costs the same for any window
//! length. Time may go back: a late entry is inserted at its place. Entries are kept for two windows, so entries up to
//! one window late are counted exactly. [`WindowCounts::is_complete`] shows when an entry was forgotten that could have
//! been in the window.

use crate::state::{StateFault, StateReader, StateValue, WatchState};
use hashbrown::{DefaultHashBuilder, HashMap};
use std::collections::VecDeque;
use std::hash::Hash;
use unitape_model::UnixNanos;

/// The greatest number of kept entries over all keys. After that, the current key forgets its oldest entry.
pub(crate) const ENTRIES_MAX: usize = 1 << 22;
/// Keys kept at most; then the one whose turn it is is forgotten.
pub(crate) const KEYS_MAX: usize = 1 << 20;
/// An entry that would have to be put further back than this is not kept.
const SHIFT_MAX: usize = 1 << 12;
/// One key is looked at in this many events, whether it is idle.
const SWEEP_EVERY: u32 = 16;
/// Rings of at most this many entries are kept for other keys when theirs is idle.
const SPARE_ENTRIES_MAX: usize = 1 << 8;

/// Windows of `C` classes by key.
pub(crate) struct SlidingWindows<K, const C: usize> {
    window_ns: i128,
    rings: Vec<WindowRing<K, C>>,
    by_key: HashMap<K, u32, DefaultHashBuilder>,
    spare_rings: Vec<VecDeque<WindowEntry<C>>>,
    /// The ring that is looked at next, whether it is idle.
    sweep_index: usize,
    until_sweep: u32,
    entries: usize,
    entries_max: usize,
    keys_max: usize,
    /// The latest that was ever forgotten together with its key.
    swept_ts: i64,
    /// Entries forgotten because their time was over.
    pub expired: u64,
    /// Entries forgotten because there was no room.
    pub bound_hit: u64,
}

/// The counts of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowCounts<const C: usize> {
    /// By class.
    pub counts: [u32; C],
    /// False when something that was forgotten may belong into it.
    pub is_complete: bool,
}

struct WindowRing<K, const C: usize> {
    key: K,
    /// In order of time; of one time in order of arrival.
    entries: VecDeque<WindowEntry<C>>,
    /// The counts before the first entry.
    base_counts: [u32; C],
    /// The number of entries that are not in the window that ends with the last one, and counts so far of these.
    outside_count: usize,
    counts_before: [u32; C],
    // Copied from the entries, so that an event in order reads none of them: they are far apart.
    /// Time of the first entry, or `i64::MAX` if there is none.
    first_ts: i64,
    /// Time of the first entry in the window, likewise.
    inside_ts: i64,
    /// Time of the last entry, or `i64::MIN` if there is none.
    newest_ts: i64,
    /// Counts so far of all.
    upto: [u32; C],
    forgotten_ts: i64,
}

#[derive(Clone, Copy)]
struct WindowEntry<const C: usize> {
    ts: i64,
    /// Counts so far, this one included; they wrap.
    upto: [u32; C],
}

impl<const C: usize> StateValue for WindowEntry<C> {
    fn write(&self, out: &mut Vec<u8>) {
        (self.ts, self.upto).write(out);
    }

    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
        let (ts, upto) = StateValue::read(input)?;
        Ok(Self { ts, upto })
    }
}

impl<K: StateValue, const C: usize> StateValue for WindowRing<K, C> {
    fn write(&self, out: &mut Vec<u8>) {
        self.key.write(out);
        self.entries.write(out);
        (self.base_counts, self.outside_count, self.forgotten_ts).write(out);
    }

    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
        let (key, entries) = StateValue::read(input)?;
        let (base, outside_count, forgotten_ts) = StateValue::read(input)?;
        let mut ring = Self::new(key, entries, forgotten_ts);
        (ring.base_counts, ring.outside_count) = (base, outside_count);
        if outside_count > ring.entries.len() {
            return Err(StateFault);
        }
        ring.update_copies();
        Ok(ring)
    }
}

impl<K: StateValue + Copy + Eq + Hash, const C: usize> WatchState for SlidingWindows<K, C> {
    fn save(&self, out: &mut Vec<u8>) {
        self.rings.write(out);
        (self.sweep_index, self.until_sweep, self.swept_ts).write(out);
        (self.expired, self.bound_hit).write(out);
    }

    fn load(&mut self, input: &mut StateReader<'_>) -> Result<(), StateFault> {
        self.rings = StateValue::read(input)?;
        (self.sweep_index, self.until_sweep, self.swept_ts) = StateValue::read(input)?;
        (self.expired, self.bound_hit) = StateValue::read(input)?;
        self.by_key = (0..).zip(&self.rings).map(|(index, ring)| (ring.key, index)).collect();
        self.entries = self.rings.iter().map(|ring| ring.entries.len()).sum();
        if self.by_key.len() == self.rings.len() && self.until_sweep > 0 { Ok(()) } else { Err(StateFault) }
    }
}

impl<K: Copy + Eq + Hash, const C: usize> SlidingWindows<K, C> {
    /// Makes windows of `window_ns` nanoseconds.
    pub fn new(window_ns: i128) -> Self {
        Self::bounded(window_ns, ENTRIES_MAX, KEYS_MAX)
    }

    pub(crate) fn bounded(window_ns: i128, entries_max: usize, keys_max: usize) -> Self {
        Self {
            window_ns,
            rings: Vec::new(),
            by_key: HashMap::default(),
            spare_rings: Vec::new(),
            sweep_index: 0,
            until_sweep: SWEEP_EVERY,
            entries: 0,
            entries_max,
            keys_max,
            swept_ts: i64::MIN,
            expired: 0,
            bound_hit: 0,
        }
    }

    /// Adds an entry of `class` for `key` at `ts`, and counts its window `(ts − window, ts]`. Forgets what is two windows
    /// before `expiry_ts`.
    #[inline]
    pub fn add(&mut self, key: K, class: usize, ts: UnixNanos, expiry_ts: UnixNanos) -> WindowCounts<C> {
        let (ts, now) = (ts.0, ts.0.min(expiry_ts.0));
        self.until_sweep -= 1;
        if self.until_sweep == 0 {
            self.until_sweep = SWEEP_EVERY;
            self.sweep_key(now);
        }
        let ring_index = match self.by_key.get(&key) {
            Some(&index) => index as usize,
            None => self.new_ring(key),
        };
        let ring = &mut self.rings[ring_index];
        let limit = i128::from(now) - 2 * self.window_ns;
        if i128::from(ring.first_ts) <= limit {
            let expired = ring.expire_entries(limit);
            self.expired += expired as u64;
            self.entries -= expired;
        }
        if self.entries == self.entries_max {
            self.bound_hit += 1;
            if !ring.forget_first() {
                return WindowCounts { counts: [0; C], is_complete: false };
            }
            self.entries -= 1;
        }
        let ring = &mut self.rings[ring_index];
        let window_counts = ring.add_entry(class, ts, self.window_ns);
        self.entries += usize::from(window_counts.is_some());
        window_counts.unwrap_or(WindowCounts { counts: [0; C], is_complete: false })
    }

    /// Entries kept now.
    pub fn entry_count(&self) -> usize {
        self.entries
    }

    /// Forgets everything but the counters.
    pub fn clear(&mut self) {
        self.rings.clear();
        self.by_key.clear();
        self.sweep_index = 0;
        self.entries = 0;
        self.swept_ts = i64::MIN;
    }

    /// Looks at one key, and forgets it when all it did was over two windows ago.
    fn sweep_key(&mut self, now: i64) {
        if self.sweep_index >= self.rings.len() {
            self.sweep_index = 0;
        }
        let Some(ring) = self.rings.get(self.sweep_index) else { return };
        let newest = if ring.entries.is_empty() { ring.forgotten_ts } else { ring.newest_ts };
        if i128::from(newest) <= i128::from(now) - 2 * self.window_ns {
            self.expired += self.rings[self.sweep_index].entries.len() as u64;
            self.drop_ring();
        } else {
            self.sweep_index += 1;
        }
    }

    /// Forgets the key at the hand.
    fn drop_ring(&mut self) {
        let mut ring = self.rings.swap_remove(self.sweep_index);
        self.by_key.remove(&ring.key);
        if let Some(swept_ring) = self.rings.get(self.sweep_index) {
            self.by_key.insert(swept_ring.key, self.sweep_index as u32);
        }
        let newest = ring.newest_ts.max(ring.forgotten_ts);
        self.swept_ts = self.swept_ts.max(newest);
        self.entries -= ring.entries.len();
        if ring.entries.capacity() <= SPARE_ENTRIES_MAX {
            ring.entries.clear();
            self.spare_rings.push(ring.entries);
        }
    }

    fn new_ring(&mut self, key: K) -> usize {
        if self.rings.len() == self.keys_max {
            self.sweep_index %= self.rings.len();
            self.bound_hit += self.rings[self.sweep_index].entries.len() as u64;
            self.drop_ring();
        }
        let ring_index = self.rings.len();
        self.by_key.insert(key, ring_index as u32);
        self.rings.push(WindowRing::new(key, self.spare_rings.pop().unwrap_or_default(), self.swept_ts));
        ring_index
    }
}

impl<K, const C: usize> WindowRing<K, C> {
    fn new(key: K, entries: VecDeque<WindowEntry<C>>, forgotten_ts: i64) -> Self {
        Self {
            key,
            entries,
            base_counts: [0; C],
            outside_count: 0,
            counts_before: [0; C],
            first_ts: i64::MAX,
            inside_ts: i64::MAX,
            newest_ts: i64::MIN,
            upto: [0; C],
            forgotten_ts,
        }
    }

    /// Forgets the entries up to `limit` and returns their number.
    fn expire_entries(&mut self, limit: i128) -> usize {
        let old_count = self.entries.len();
        while i128::from(self.first_ts) <= limit && self.forget_first() {}
        old_count - self.entries.len()
    }

    fn forget_first(&mut self) -> bool {
        let Some(oldest_entry) = self.entries.pop_front() else { return false };
        self.base_counts = oldest_entry.upto;
        self.outside_count = self.outside_count.saturating_sub(1);
        self.forgotten_ts = self.forgotten_ts.max(oldest_entry.ts);
        self.update_copies();
        true
    }

    /// Updates the copies from the entries.
    fn update_copies(&mut self) {
        let ts = |entry: Option<&WindowEntry<C>>, default_ts: i64| entry.map_or(default_ts, |e| e.ts);
        self.first_ts = ts(self.entries.front(), i64::MAX);
        self.inside_ts = ts(self.entries.get(self.outside_count), i64::MAX);
        self.newest_ts = ts(self.entries.back(), i64::MIN);
        self.counts_before = self.counts_before(self.outside_count);
        self.upto = self.counts_before(self.entries.len());
    }

    /// Counts so far of the first `n` entries.
    #[inline]
    fn counts_before(&self, n: usize) -> [u32; C] {
        if n == 0 { self.base_counts } else { self.entries[n - 1].upto }
    }

    /// Adds an entry and returns the counts of its window. Returns `None` if the entry was not kept.
    #[inline]
    fn add_entry(&mut self, class: usize, ts: i64, window_ns: i128) -> Option<WindowCounts<C>> {
        let after = i128::from(ts) - window_ns;
        if ts < self.newest_ts {
            return self.add_late(class, ts, after);
        }
        self.upto[class] = self.upto[class].wrapping_add(1);
        self.entries.push_back(WindowEntry { ts, upto: self.upto });
        self.newest_ts = ts;
        self.first_ts = self.first_ts.min(ts);
        self.inside_ts = self.inside_ts.min(ts);
        // The window only moves on; each entry is passed once.
        while self.outside_count < self.entries.len() && i128::from(self.inside_ts) <= after {
            self.counts_before = self.entries[self.outside_count].upto;
            self.outside_count += 1;
            self.inside_ts = self.entries.get(self.outside_count).map_or(i64::MAX, |e| e.ts);
        }
        Some(self.counts_between(self.counts_before, self.upto, after))
    }

    #[cold]
    fn add_late(&mut self, class: usize, ts: i64, after: i128) -> Option<WindowCounts<C>> {
        let index = self.entries.partition_point(|e| e.ts <= ts);
        if self.entries.len() - index > SHIFT_MAX {
            self.forgotten_ts = self.forgotten_ts.max(ts);
            return None;
        }
        self.entries.insert(index, WindowEntry { ts, upto: self.counts_before(index) });
        for entry in self.entries.iter_mut().skip(index) {
            entry.upto[class] = entry.upto[class].wrapping_add(1);
        }
        self.outside_count += usize::from(index < self.outside_count);
        self.update_copies();
        let first_entry = self.entries.partition_point(|e| i128::from(e.ts) <= after);
        Some(self.counts_between(
            self.counts_before(first_entry.min(index + 1)),
            self.counts_before(index + 1),
            after,
        ))
    }

    #[inline]
    fn counts_between(&self, before: [u32; C], upto: [u32; C], after: i128) -> WindowCounts<C> {
        let counts = std::array::from_fn(|c| upto[c].wrapping_sub(before[c]));
        WindowCounts { counts, is_complete: i128::from(self.forgotten_ts) <= after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const W: i64 = 10;

    /// Windows of a stream, whose expiry waits for a second event that agrees.
    struct StreamWindows<const C: usize> {
        windows: SlidingWindows<u8, C>,
        last_ts: i64,
    }

    impl<const C: usize> StreamWindows<C> {
        fn new(windows: SlidingWindows<u8, C>) -> Self {
            Self { windows, last_ts: i64::MIN }
        }

        fn add(&mut self, key: u8, class: usize, ts: i64) -> WindowCounts<C> {
            let expiry_ts = ts.min(std::mem::replace(&mut self.last_ts, ts));
            self.windows.add(key, class, UnixNanos(ts), UnixNanos(expiry_ts))
        }
    }

    fn step() -> impl Strategy<Value = (u8, usize, i64)> {
        (0u8..3, 0usize..2, prop::sample::select(&[0, 1, 4, W - 1, W, W + 1, 3 * W, -1, -W, -3 * W][..]))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// Fails if the counts differ from a plain list's wherever they claim to be complete, also in streams whose
        /// time goes back.
        #[test]
        fn windows_are_those_of_a_list(steps in proptest::collection::vec(step(), 0..120)) {
            let mut windows = StreamWindows::<2>::new(SlidingWindows::new(W.into()));
            let (mut list, mut ts, mut back) = (Vec::new(), 0, false);
            for (key, class, step_ns) in steps {
                ts += step_ns;
                back |= step_ns < 0;
                list.push((key, class, ts));
                let count = |c| list.iter().filter(|e| e.0 == key && e.1 == c && e.2 > ts - W && e.2 <= ts).count();
                let window_counts = windows.add(key, class, ts);
                if window_counts.is_complete {
                    prop_assert_eq!(window_counts.counts, [count(0) as u32, count(1) as u32]);
                } else {
                    prop_assert!(back, "in order, nothing is ever forgotten too early");
                }
            }
            let windows = windows.windows;
            prop_assert_eq!(windows.entry_count(), windows.rings.iter().map(|r| r.entries.len()).sum::<usize>());
            prop_assert_eq!(windows.by_key.len(), windows.rings.len());
        }

        /// Fails if an event that is up to one window late is not counted exactly, whatever else is in the stream.
        #[test]
        fn what_is_one_window_late_is_complete(late in proptest::collection::vec((0u8..3, 0..W), 1..120)) {
            let mut windows = StreamWindows::<1>::new(SlidingWindows::new(W.into()));
            for (i, (key, late)) in late.into_iter().enumerate() {
                prop_assert!(windows.add(key, 0, i as i64 * 3 - late).is_complete);
            }
        }

        /// Fails if the kept entries exceed their bounds, or if an entry that is forgotten early is not counted.
        #[test]
        fn bounds_hold(steps in proptest::collection::vec(step(), 0..120)) {
            let mut windows = StreamWindows::<2>::new(SlidingWindows::bounded(W.into(), 4, 2));
            let (mut ts, mut incomplete) = (0, 0);
            for (key, class, step_ns) in steps {
                ts += step_ns;
                incomplete += u64::from(!windows.add(key, class, ts).is_complete);
                prop_assert!(windows.windows.entry_count() <= 4 && windows.windows.rings.len() <= 2);
            }
            prop_assert!(incomplete == 0 || windows.windows.bound_hit + windows.windows.expired > 0);
        }
    }

    /// Fails if an event with a wrong time stamp empties the windows, as one of the year 2262 once did.
    #[test]
    fn one_mad_time_stamp_forgets_nothing() {
        let mut windows = StreamWindows::<1>::new(SlidingWindows::new(W.into()));
        for key in 0..50 {
            windows.add(key, 0, 0);
        }
        windows.add(7, 0, i64::MAX);
        for key in 0..50 {
            assert_eq!(windows.add(key, 0, 1), WindowCounts { counts: [2], is_complete: true }, "{key}");
        }
    }

    /// Fails if the last nanosecond is taken for the mark of "no entry", as it once was.
    #[test]
    fn the_ends_of_time_are_times() {
        for window_ns in [0, 1, i128::from(i64::MAX)] {
            let mut windows = StreamWindows::<1>::new(SlidingWindows::new(window_ns));
            for ts in [i64::MAX, i64::MAX, i64::MIN, i64::MIN, i64::MAX] {
                let window_counts = windows.add(1, 0, ts);
                assert!(window_counts.counts[0] <= 3 && (window_ns > 0 || window_counts.counts == [0]));
            }
        }
    }
}
