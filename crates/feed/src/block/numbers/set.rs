//! The sequence numbers of one session that were seen, as ranges.
//!
//! ```text
//!   forgotten │ 90────120      130───140 │ next
//!             floor   range      range
//! ```
//!
//! A session without gaps is one range that grows at its end. A gap makes a second one, and the messages that fill
//! the gap close it again. If there are more than [`RANGES_MAX`] ranges, the lowest is forgotten: nobody can say any
//! more which numbers below its end were seen.

use std::fmt;
use std::ops::Range;

/// Ranges of a session that are kept.
pub const RANGES_MAX: usize = 64;

/// The sequence numbers of a session that were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceNumberSet {
    /// Nobody knows whether numbers below it were seen.
    floor: u64,
    /// Seen, ascending; two of them neither overlap nor touch.
    ranges: Vec<Range<u64>>,
}

/// How certain it is that a run of numbers is a repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatCertainty {
    /// They were seen.
    Seen,
    /// Nobody knows: the bound of ranges was met.
    Forgotten,
    /// Nobody knows: the bound of sessions was met.
    NoSession,
}

impl SequenceNumberSet {
    /// Makes the set of an older mark of progress. Such a mark has only the greatest number, so all numbers up to it
    /// count as seen.
    pub fn from_greatest(greatest: u64) -> Self {
        Self { floor: greatest.saturating_add(1), ranges: Vec::new() }
    }

    /// Notes these numbers. Passes those of them to `known` that were seen before or are forgotten. Returns whether the
    /// bound was met.
    #[inline]
    pub fn insert(
        &mut self,
        numbers: Range<u64>,
        on_repeat: impl FnMut(Range<u64>, RepeatCertainty),
    ) -> bool {
        match self.ranges.last_mut() {
            // As nearly always: it follows what came before it.
            Some(last) if last.end == numbers.start => {
                last.end = numbers.end;
                false
            }
            _ => self.insert_slowly(numbers, on_repeat),
        }
    }

    fn insert_slowly(
        &mut self,
        numbers: Range<u64>,
        mut on_repeat: impl FnMut(Range<u64>, RepeatCertainty),
    ) -> bool {
        let forgotten_numbers = numbers.start..numbers.end.min(self.floor);
        if !forgotten_numbers.is_empty() {
            on_repeat(forgotten_numbers, RepeatCertainty::Forgotten);
        }
        let new_range = numbers.start.max(self.floor)..numbers.end;
        if new_range.is_empty() {
            return false;
        }
        // The ranges that it overlaps or touches merge with it.
        let first_range = self.ranges.partition_point(|r| r.end < new_range.start);
        let merged_end = self.ranges.partition_point(|r| r.start <= new_range.end);
        let mut merged_range = new_range.clone();
        for r in &self.ranges[first_range..merged_end] {
            let overlap = r.start.max(new_range.start)..r.end.min(new_range.end);
            if !overlap.is_empty() {
                on_repeat(overlap, RepeatCertainty::Seen);
            }
            merged_range = merged_range.start.min(r.start)..merged_range.end.max(r.end);
        }
        self.ranges.splice(first_range..merged_end, [merged_range]);
        let full = self.ranges.len() > RANGES_MAX;
        if full {
            self.floor = self.ranges.remove(0).end;
        }
        full
    }

    /// Restarts the session at `next`: forgets the numbers from `next` on.
    pub fn restart_at(&mut self, next: u64) {
        self.floor = self.floor.min(next);
        while let Some(last_range) = self.ranges.last_mut() {
            if last_range.start < next {
                last_range.end = last_range.end.min(next);
                break;
            }
            self.ranges.pop();
        }
    }

    /// Returns the greatest number seen; 0 if there is no such number.
    pub fn greatest_number(&self) -> u64 {
        self.ranges.last().map_or(self.floor, |r| r.end).saturating_sub(1)
    }

    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (floor, list) = match text.split_once(':') {
            Some((floor, list)) => (floor.parse().ok()?, list),
            None => (0, text),
        };
        let mut set = Self { floor, ranges: Vec::new() };
        for part in list.split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (start, end) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?.checked_add(1)?);
            let least = set.ranges.last().map_or(floor, |r| r.end.saturating_add(1));
            if start < least || start >= end || set.ranges.len() == RANGES_MAX {
                return None;
            }
            set.ranges.push(start..end);
        }
        Some(set)
    }
}

/// `1-5,8`; with forgotten numbers `90:90-120,130`: the numbers below 90 are forgotten.
impl fmt::Display for SequenceNumberSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.floor > 0 {
            write!(f, "{}:", self.floor)?;
        }
        for (i, r) in self.ranges.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            match r.end - 1 - r.start {
                0 => write!(f, "{comma}{}", r.start)?,
                _ => write!(f, "{comma}{}-{}", r.start, r.end - 1)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RepeatCertainty::{Forgotten, Seen};
    use std::collections::BTreeMap;

    fn insert(set: &mut SequenceNumberSet, numbers: Range<u64>) -> Vec<(Range<u64>, RepeatCertainty)> {
        let mut repeats = Vec::new();
        set.insert(numbers, |range, certainty| repeats.push((range, certainty)));
        repeats
    }

    /// Guards against a set that keeps only the greatest number: messages that filled a gap counted as duplicates.
    #[test]
    fn gaps_are_kept_and_filled() {
        let mut set = SequenceNumberSet::default();
        assert_eq!(insert(&mut set, 1..3), []);
        assert_eq!(insert(&mut set, 5..6), []);
        assert_eq!(set.to_string(), "1-2,5");
        assert_eq!(insert(&mut set, 3..5), []);
        assert_eq!(set.to_string(), "1-5");
        assert_eq!(insert(&mut set, 4..8), [(4..6, Seen)]);
        assert_eq!((set.to_string().as_str(), set.greatest_number()), ("1-7", 7));
    }

    #[test]
    fn beyond_the_bound_the_lowest_are_forgotten_and_nothing_is_called_seen() {
        let mut set = SequenceNumberSet::default();
        let full = (0..=RANGES_MAX as u64).filter(|i| set.insert(10 * i..10 * i + 2, |_, _| {})).count();
        assert_eq!(full, 1);
        assert_eq!(insert(&mut set, 1..5), [(1..2, Forgotten)]);
        assert_eq!(insert(&mut set, 0..2), [(0..2, Forgotten)]);
        assert_eq!(insert(&mut set, 10..13), [(10..12, Seen)]);
        assert_eq!(SequenceNumberSet::parse(&set.to_string()), Some(set));
    }

    #[test]
    fn a_restart_forgets_what_comes_again_and_no_more() {
        let mut set = SequenceNumberSet::parse("5:7-20,30-40").unwrap();
        set.restart_at(10);
        assert_eq!(set.to_string(), "5:7-9");
        set.restart_at(1);
        assert_eq!(set.to_string(), "1:");
        set.restart_at(0);
        assert_eq!(set, SequenceNumberSet::default());
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for text in ["x", "5-4", "1-2,3", "1-2,2", "9:3", "1-18446744073709551615", "-", "1-2-3", ":1"] {
            assert_eq!(SequenceNumberSet::parse(text), None, "{text}");
        }
        let many = (0..=RANGES_MAX).map(|i| (3 * i).to_string()).collect::<Vec<_>>().join(",");
        assert_eq!(SequenceNumberSet::parse(&many), None);
        assert_eq!(SequenceNumberSet::parse(""), Some(SequenceNumberSet::default()));
    }

    /// Compares the set with a set of single numbers, below the bound.
    #[test]
    fn it_is_what_a_set_of_single_numbers_is() {
        let mut state = 7u64;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for _ in 0..200 {
            let (mut set, mut twin) = (SequenceNumberSet::default(), BTreeMap::<u64, ()>::new());
            for _ in 0..60 {
                let start = next(120);
                if next(12) == 0 {
                    set.restart_at(start);
                    twin.retain(|n, ()| *n < start);
                    continue;
                }
                let numbers = start..start + 1 + next(6);
                let repeats: Vec<u64> =
                    insert(&mut set, numbers.clone()).into_iter().flat_map(|(r, _)| r).collect();
                let expected: Vec<u64> = numbers.clone().filter(|n| twin.contains_key(n)).collect();
                assert_eq!(repeats, expected, "{set}");
                twin.extend(numbers.map(|n| (n, ())));
                assert_eq!(SequenceNumberSet::parse(&set.to_string()).as_ref(), Some(&set));
            }
        }
    }
}
