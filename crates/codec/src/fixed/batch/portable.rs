//! The kernel for every processor: eight digits in a word, record by record.

use super::clock::ClockColumn;
use super::rows::RecordBatch;
use super::{DigitColumn, LaneFaults, Lanes};
use crate::fixed::digits::number;

pub(super) fn numbers<'b>(
    op: &DigitColumn,
    rows: impl RecordBatch<'b>,
    values: &mut Lanes,
    odd: &mut bool,
) -> LaneFaults {
    let mut found = LaneFaults::default();
    *odd = false;
    for (lane, text) in rows.column::<16>(op.start).enumerate() {
        values[lane] = match number(text, 0, op.width) {
            Some(n) => n as i64,
            None => {
                *odd = true;
                one(op, &text[..op.width], lane, &mut found)
            }
        };
    }
    found
}

/// A number that is all digits, in the first bytes of `text`; false if it is not.
#[inline]
pub(super) fn plain(op: &DigitColumn, text: &[u8], value: &mut i64) -> bool {
    number(text, 0, op.width).map(|n| *value = n as i64).is_some()
}

/// A number that is not all digits.
#[cold]
fn one(op: &DigitColumn, text: &[u8], lane: usize, found: &mut LaneFaults) -> i64 {
    let blanks = text.iter().take_while(|b| **b == op.pad).count();
    let digits = &text[blanks..];
    if digits.is_empty() {
        *(if op.blank { &mut found.none } else { &mut found.bad }) |= 1 << lane;
        return 0;
    }
    if blanks > 0 && !op.leading || !digits.iter().all(u8::is_ascii_digit) {
        found.bad |= 1 << lane;
        return 0;
    }
    digits.iter().fold(0, |n, b| n * 10 + i64::from(b - b'0'))
}

/// Nanoseconds since midnight.
pub(super) fn clocks<'b>(
    op: &ClockColumn,
    rows: impl RecordBatch<'b>,
    values: &mut Lanes,
    odd: &mut bool,
) -> LaneFaults {
    let mut found = LaneFaults::default();
    *odd = false;
    for (lane, text) in rows.column::<16>(op.start).enumerate() {
        if plain_clock(op, text, &mut values[lane]) {
            continue;
        }
        *odd = true;
        values[lane] = 0;
        if op.blank && text[..6 + op.digits].iter().all(|b| *b == op.pad && !b.is_ascii_digit()) {
            found.none |= 1 << lane;
        } else {
            found.bad |= 1 << lane;
        }
    }
    found
}

/// A time of day in digits alone, likewise; false if it is not.
#[inline]
pub(super) fn plain_clock(op: &ClockColumn, text: &[u8], value: &mut i64) -> bool {
    let fraction = if op.digits == 0 { Some(0) } else { number(text, 6, 6 + op.digits) };
    let (Some(clock), Some(fraction)) = (number(text, 0, 6), fraction) else { return false };
    let (hour, minute, second) = (clock / 10_000, clock / 100 % 100, clock % 100);
    if hour >= 24 || minute >= 60 || second >= 60 {
        return false;
    }
    let fraction = fraction * 10u64.pow(9 - op.digits as u32);
    *value = (((hour * 60 + minute) * 60 + second) * 1_000_000_000 + fraction) as i64;
    true
}

/// The lanes that have this value.
pub(super) fn equal(values: &Lanes, value: i64) -> u64 {
    values.iter().enumerate().fold(0, |lanes, (lane, n)| lanes | u64::from(*n == value) << lane)
}
