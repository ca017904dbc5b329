//! The kernel for every processor: eight digits in a word, record by record.

use super::clock::ClockColumn;
use super::rows::RecordBatch;
use super::{DigitColumn, LaneFaults, Lanes};
use crate::fixed::digits::parse_number;

pub(super) fn read_numbers<'b>(
    op: &DigitColumn,
    rows: impl RecordBatch<'b>,
    values: &mut Lanes,
    odd: &mut bool,
) -> LaneFaults {
    let mut faults = LaneFaults::default();
    *odd = false;
    for (lane, text) in rows.column::<16>(op.column_start).enumerate() {
        values[lane] = match parse_number(text, 0, op.digit_count) {
            Some(n) => n as i64,
            None => {
                *odd = true;
                read_odd_number(op, &text[..op.digit_count], lane, &mut faults)
            }
        };
    }
    faults
}

/// Reads a number that is all digits, in the first bytes of `text`. Returns false if it has another byte.
#[inline]
pub(super) fn read_plain_number(op: &DigitColumn, text: &[u8], value: &mut i64) -> bool {
    parse_number(text, 0, op.digit_count).map(|n| *value = n as i64).is_some()
}

/// Reads a number that is not all digits.
#[cold]
fn read_odd_number(op: &DigitColumn, text: &[u8], lane: usize, faults: &mut LaneFaults) -> i64 {
    let blanks = text.iter().take_while(|b| **b == op.pad).count();
    let digits = &text[blanks..];
    if digits.is_empty() {
        *(if op.allows_blank { &mut faults.empty } else { &mut faults.bad_lanes }) |= 1 << lane;
        return 0;
    }
    if blanks > 0 && !op.may_be_padded || !digits.iter().all(u8::is_ascii_digit) {
        faults.bad_lanes |= 1 << lane;
        return 0;
    }
    digits.iter().fold(0, |n, b| n * 10 + i64::from(b - b'0'))
}

/// Nanoseconds since midnight.
pub(super) fn read_clocks<'b>(
    op: &ClockColumn,
    rows: impl RecordBatch<'b>,
    values: &mut Lanes,
    odd: &mut bool,
) -> LaneFaults {
    let mut faults = LaneFaults::default();
    *odd = false;
    for (lane, text) in rows.column::<16>(op.column_start).enumerate() {
        if plain_clock(op, text, &mut values[lane]) {
            continue;
        }
        *odd = true;
        values[lane] = 0;
        if op.allows_blank
            && text[..6 + op.fraction_digits].iter().all(|b| *b == op.pad && !b.is_ascii_digit())
        {
            faults.empty |= 1 << lane;
        } else {
            faults.bad_lanes |= 1 << lane;
        }
    }
    faults
}

/// Reads a time of day that is all digits. Returns false if it has another byte.
#[inline]
pub(super) fn plain_clock(op: &ClockColumn, text: &[u8], value: &mut i64) -> bool {
    let fraction =
        if op.fraction_digits == 0 { Some(0) } else { parse_number(text, 6, 6 + op.fraction_digits) };
    let (Some(clock), Some(fraction)) = (parse_number(text, 0, 6), fraction) else { return false };
    let (hour, minute, second) = (clock / 10_000, clock / 100 % 100, clock % 100);
    if hour >= 24 || minute >= 60 || second >= 60 {
        return false;
    }
    let fraction = fraction * 10u64.pow(9 - op.fraction_digits as u32);
    *value = (((hour * 60 + minute) * 60 + second) * 1_000_000_000 + fraction) as i64;
    true
}

/// Returns the lanes that have this value.
pub(super) fn equal_lanes(values: &Lanes, value: i64) -> u64 {
    values.iter().enumerate().fold(0, |lanes, (lane, n)| lanes | u64::from(*n == value) << lane)
}
