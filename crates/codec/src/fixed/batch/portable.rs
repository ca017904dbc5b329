//! The kernel for every processor: eight digits in a word, record by record.

use super::clock::Clock;
use super::{Found, Lanes, Number};
use crate::fixed::digits::number;

pub(super) fn numbers(op: &Number, bytes: &[u8], starts: &[u32], values: &mut Lanes) -> Found {
    let mut found = Found::default();
    for (lane, at) in starts.iter().enumerate() {
        let at = *at as usize;
        let (start, end) = (at + op.start, at + op.start + op.width);
        values[lane] = match number(bytes, start, end) {
            Some(n) => n as i64,
            None => one(op, &bytes[start..end], lane, &mut found),
        };
    }
    found
}

/// A number that is not all digits.
#[cold]
pub(super) fn one(op: &Number, text: &[u8], lane: usize, found: &mut Found) -> i64 {
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
pub(super) fn clocks(op: &Clock, bytes: &[u8], starts: &[u32], values: &mut Lanes) -> Found {
    let mut found = Found::default();
    for (lane, at) in starts.iter().enumerate() {
        values[lane] = one_clock(op, bytes, *at as usize, lane, &mut found);
    }
    found
}

pub(super) fn one_clock(op: &Clock, bytes: &[u8], at: usize, lane: usize, found: &mut Found) -> i64 {
    let (start, end) = (at + op.start, at + op.start + 6 + op.digits);
    let fraction = if op.digits == 0 { Some(0) } else { number(bytes, start + 6, end) };
    if let (Some(clock), Some(fraction)) = (number(bytes, start, start + 6), fraction) {
        let (hour, minute, second) = (clock / 10_000, clock / 100 % 100, clock % 100);
        if hour < 24 && minute < 60 && second < 60 {
            let fraction = fraction * 10u64.pow(9 - op.digits as u32);
            return (((hour * 60 + minute) * 60 + second) * 1_000_000_000 + fraction) as i64;
        }
    } else if op.blank && bytes[start..end].iter().all(|b| *b == op.pad) {
        found.none |= 1 << lane;
        return 0;
    }
    found.bad |= 1 << lane;
    0
}
