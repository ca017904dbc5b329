//! The volume of a book by the minute, as far back as a volume spike is judged.

use std::collections::VecDeque;

/// Nanoseconds of a minute.
pub(crate) const MINUTE_NS: u64 = 60_000_000_000;
const MINUTES_OF_A_DAY: u64 = 24 * 60;
/// Minutes with which a minute is compared.
const BASELINE: u64 = 30;

/// The volumes of the last minutes. Minutes are counted since the epoch.
#[derive(Debug, Default)]
pub(crate) struct MinuteVolumes {
    /// Minutes with a print, and their volume.
    rows: VecDeque<(u64, i64)>,
    /// The first minutes with a print of the last two UTC days that have prints.
    firsts: [Option<u64>; 2],
}

impl MinuteVolumes {
    /// Adds a print.
    pub fn add(&mut self, ts: u64, qty: i64) {
        let minute = ts / MINUTE_NS;
        let is_of_day = |first: u64| first / MINUTES_OF_A_DAY == minute / MINUTES_OF_A_DAY;
        if !self.firsts[1].is_some_and(is_of_day) {
            self.firsts = [self.firsts[1], Some(minute)];
        }
        match self.rows.back_mut() {
            Some(row) if row.0 == minute => row.1 += qty,
            _ => self.rows.push_back((minute, qty)),
        }
        while self.rows.front().is_some_and(|row| row.0 + BASELINE < minute) {
            self.rows.pop_front();
        }
    }

    /// Counts the minutes before a minute that count for its mean, and sums up their volume. A minute counts from the
    /// first print of its UTC day on.
    pub fn baseline(&self, minute: u64) -> (i64, i64) {
        let is_present = |n: &u64| {
            let mut firsts = self.firsts.iter().flatten();
            firsts.any(|first| first / MINUTES_OF_A_DAY == n / MINUTES_OF_A_DAY && first <= n)
        };
        let minutes = minute - BASELINE..minute;
        let rows = self.rows.iter().filter(|row| minutes.contains(&row.0));
        (minutes.clone().filter(is_present).count() as i64, rows.map(|row| row.1).sum())
    }
}
