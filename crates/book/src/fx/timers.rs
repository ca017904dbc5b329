//! Changes at a time and not by an event: quotes end, banks fall silent, controls end.
//!
//! Each book has one timer for the quote that ends first. Each publisher has one timer for its silence, and each switch
//! has one for its end. So the number of books, publishers and switches bounds the number of timers, however many
//! quotes arrive.

use std::collections::BTreeSet;

/// Rule 18: a bank, or a bank in one pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct BankSwitch {
    pub publisher: u16,
    pub pair: Option<u32>,
}

/// A timer that is due.
#[derive(Clone, Copy, Debug)]
pub(super) enum DueTimer {
    /// Quotes of this book may end.
    Expiry(u32),
    /// This publisher may be silent.
    Silence(u16),
    /// The control of this switch ends.
    ControlEnd(BankSwitch),
}

/// The timers, in the order of their times.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    pub expiries: BTreeSet<(i64, u32)>,
    pub silence_ends: BTreeSet<(i64, u16)>,
    pub control_ends: BTreeSet<(i64, BankSwitch)>,
}

impl Timers {
    /// Returns the first time of a timer.
    pub(super) fn next_due(&self) -> Option<i64> {
        let expiry = self.expiries.first().map(|(due, _)| *due);
        let silence = self.silence_ends.first().map(|(due, _)| *due);
        let control_end = self.control_ends.first().map(|(due, _)| *due);
        [expiry, silence, control_end].into_iter().flatten().min()
    }

    /// Takes out a timer of this time.
    pub(super) fn pop(&mut self, due: i64) -> Option<DueTimer> {
        fn take_due<T: Ord + Copy>(timers: &mut BTreeSet<(i64, T)>, due: i64) -> Option<T> {
            let (_, subject) = *timers.first().filter(|(first, _)| *first == due)?;
            timers.pop_first();
            Some(subject)
        }
        take_due(&mut self.expiries, due)
            .map(DueTimer::Expiry)
            .or_else(|| take_due(&mut self.silence_ends, due).map(DueTimer::Silence))
            .or_else(|| take_due(&mut self.control_ends, due).map(DueTimer::ControlEnd))
    }
}
