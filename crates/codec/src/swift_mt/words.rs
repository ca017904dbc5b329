//! Short values eight or sixteen bytes at once, in plain words with the first byte lowest: the fast twins of
//! [`value`](super::value), which the tests hold them to.

use super::value::Decimal;
use unitape_base::digits::{ONES, all_digits, number, pairs, zeros};

pub(super) use unitape_base::digits::HIGH;

/// Sets the highest bit of each byte from `LOW` to `HIGHEST`.
#[inline(always)]
const fn mark_between<const LOW: u8, const HIGHEST: u8>(word: u64) -> u64 {
    let low7 = word & !HIGH;
    let low_bias = low7 + ONES * (0x80 - LOW as u64);
    let greater = low7 + ONES * (0x7f - HIGHEST as u64);
    low_bias & !greater & !word & HIGH
}

/// Sets the highest bit of each digit.
#[inline(always)]
pub(super) const fn digits(word: u64) -> u64 {
    mark_between::<b'0', b'9'>(word)
}

/// Sets the highest bit of each upper-case letter.
#[inline(always)]
pub(super) const fn letters(word: u64) -> u64 {
    mark_between::<b'A', b'Z'>(word)
}

/// Sets the highest bit of each upper-case letter and each digit.
#[inline(always)]
pub(super) const fn alphanumerics(word: u64) -> u64 {
    digits(word) | letters(word)
}

/// Counts the bytes from the first on whose highest bit is set in `marks`.
#[inline(always)]
pub(super) const fn run(marks: u64) -> usize {
    (!marks & HIGH).trailing_zeros() as usize / 8
}

/// Parses an amount of at most sixteen characters at the start of two words; returns its length and value. Returns
/// `None` if the words do not show its end, or start with no amount.
#[inline(always)]
pub(super) fn amount(first: u64, second: u64) -> Option<(usize, Decimal)> {
    let join_words = |low: u64, high: u64| u128::from(high) << 64 | u128::from(low);
    let comma = ONES * b',' as u64;
    let commas = join_words(zeros(first ^ comma), zeros(second ^ comma));
    let end_marks = !(join_words(digits(first), digits(second)) | commas) & join_words(HIGH, HIGH);
    let bits = end_marks.trailing_zeros() as usize / 8 * 8;
    let len = bits / 8;
    if !(1..16).contains(&len) {
        return None;
    }
    let commas = commas & ((1 << bits) - 1);
    // The last character highest, zeros below the first.
    let up = 128 - bits;
    let zero = ONES * b'0' as u64;
    let text = (join_words(first, second) ^ join_words(zero, zero)) << up;
    let (digits, decimals) = if commas == 0 {
        (text, 0)
    } else {
        // The digits before the comma move into its place.
        let comma_bit = commas.trailing_zeros() as usize / 8 * 8;
        let low_mask = (1u128 << (comma_bit + up)) - 1;
        ((text & low_mask) << 8 | text & !(low_mask << 8 | 0xff), len - comma_bit / 8 - 1)
    };
    if commas & commas.wrapping_sub(1) != 0 || len == 1 && commas != 0 {
        return None;
    }
    let (high, low) = (number(digits as u64), number((digits >> 64) as u64));
    let mantissa = i64::from(high) * 100_000_000 + i64::from(low);
    Some((len, Decimal { mantissa, exponent: -(decimals as i8) }))
}

/// Converts `YYMMDD` to midnight in UTC, in nanoseconds since 1970. `february_30` works as in
/// [`value_date`](super::value::value_date).
#[inline(always)]
pub(super) fn date(word: u64, february_30: bool) -> Option<i64> {
    let [year, month, day] = three_pairs(word)?;
    epoch_midnight(if year >= 80 { 1900 + year } else { 2000 + year }, month, day, february_30)
}

/// Converts `YYYYMMDD` to midnight in UTC, in nanoseconds since 1970.
#[inline(always)]
pub(super) fn date_long(word: u64) -> Option<i64> {
    let digits = word ^ (ONES * b'0' as u64);
    if !all_digits(digits) {
        return None;
    }
    let pairs = pairs(digits);
    let pair = |n: u32| (pairs >> (16 * n) & 0xff) as u32;
    epoch_midnight(pair(0) * 100 + pair(1), pair(2), pair(3), false)
}

/// Parses `MMDD`, the entry date after a value date with this year and midnight. It must be in the same year and
/// within half a year; [`entry_date`](super::value::entry_date) reads the others.
#[inline(always)]
pub(super) fn entry_date(year: Option<&[u8; 2]>, word: u64, value: i64) -> Option<i64> {
    let &[tens, ones] = year?;
    let year = u64::from(tens) | u64::from(ones) << 8;
    let entry_ns = date(word << 16 | year, false)?;
    ((entry_ns - value).abs() <= 182 * 86_400_000_000_000).then_some(entry_ns)
}

/// Converts `HHMMSS`, or `HHMM` with zeros after it, to seconds since midnight.
#[inline(always)]
pub(super) fn time(word: u64) -> Option<i64> {
    let [hours, minutes, seconds] = three_pairs(word)?;
    (hours < 24 && minutes < 60 && seconds <= 60)
        .then(|| (i64::from(hours) * 60 + i64::from(minutes)) * 60 + i64::from(seconds))
}

/// Parses two digits, three times.
#[inline(always)]
fn three_pairs(word: u64) -> Option<[u32; 3]> {
    let digits = (word ^ (ONES * b'0' as u64)) & 0xffff_ffff_ffff;
    if !all_digits(digits) {
        return None;
    }
    let pairs = pairs(digits);
    Some([0, 16, 32].map(|n| (pairs >> n & 0xff) as u32))
}

#[inline(always)]
fn epoch_midnight(year: u32, month: u32, day: u32, february_30: bool) -> Option<i64> {
    if month.wrapping_sub(1) >= 12 {
        return None;
    }
    let month_index = year.wrapping_sub(YEARS.0) as usize * 12 + month as usize - 1;
    let (Some(&start), Some(&next)) = (MONTHS.get(month_index), MONTHS.get(month_index + 1)) else {
        return None;
    };
    let days_in_month = (next - start) as u32;
    let day = if february_30 && month == 2 && matches!(day, 29 | 30) { day.min(days_in_month) } else { day };
    (day.wrapping_sub(1) < days_in_month)
        .then(|| (i64::from(start) + i64::from(day) - 1) * 86_400_000_000_000)
}

/// The years that a [`Day`](super::value::CalendarDay) may have.
const YEARS: (u32, u32) = (1900, 2261);

/// The first day of each month of these years, and of the one after them, in days since 1970.
static MONTHS: [i32; (YEARS.1 - YEARS.0 + 1) as usize * 12 + 1] = {
    let mut firsts = [0; (YEARS.1 - YEARS.0 + 1) as usize * 12 + 1];
    let (mut n, mut year, mut day) = (0, YEARS.0, -25_567);
    while year <= YEARS.1 {
        let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let lengths = [31, 28 + is_leap as i32, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut month = 0;
        while month < 12 {
            firsts[n] = day;
            day += lengths[month];
            (n, month) = (n + 1, month + 1);
        }
        year += 1;
    }
    firsts[n] = day;
    firsts
};

#[cfg(test)]
mod tests {
    use super::super::value;
    use super::*;
    use proptest::prelude::*;

    fn word(text: &[u8]) -> u64 {
        let mut padded = [0; 8];
        padded[..text.len()].copy_from_slice(text);
        u64::from_le_bytes(padded)
    }

    // A table of months that is one day off is so for a century.
    #[test]
    fn every_day_of_the_calendar_and_many_that_are_none() {
        for year in 1898..2264 {
            for month in 0..14 {
                for day in 0..33 {
                    let text = format!("{year:04}{month:02}{day:02}");
                    let slow = value::date_long(text.as_bytes()).map(value::CalendarDay::nanos);
                    assert_eq!(date_long(word(text.as_bytes())), slow, "{text}");
                    if (1980..2080).contains(&year) {
                        let short = &text.as_bytes()[2..];
                        assert_eq!(
                            date(word(short), false),
                            value::date(short).map(value::CalendarDay::nanos),
                            "{text}"
                        );
                        let lenient = value::value_date(short).map(value::CalendarDay::nanos);
                        assert_eq!(date(word(short), true), lenient, "{text}");
                    }
                }
            }
        }
    }

    proptest! {
        // Commas at both ends, one too many, a digit too many, and bytes with their highest bit set.
        #[test]
        fn short_values_as_the_obvious_reads_them(
            text in prop_oneof!["[0-9]{0,17}", "[0-9]{0,9},[0-9]{0,8}", "[0-9,]{0,16}"], behind in any::<[u8; 16]>(),
        ) {
            let len = text.len().min(16);
            let mut bytes = behind;
            bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
            let most = bytes.iter().take_while(|b| b.is_ascii_digit() || **b == b',').count();
            let slow = if most < 16 { value::amount(&bytes[..most]).map(|amount| (most, amount)) } else { None };
            prop_assert_eq!(amount(word(&bytes[..8]), word(&bytes[8..])), slow);
        }

        #[test]
        fn times_and_days_of_any_bytes(bytes in prop_oneof![any::<[u8; 6]>(), "[0-9:]{6}".prop_map(|text| {
            text.as_bytes().try_into().expect("six bytes")
        })]) {
            prop_assert_eq!(time(word(&bytes)), value::time(&bytes));
            prop_assert_eq!(date(word(&bytes), false), value::date(&bytes).map(value::CalendarDay::nanos));
        }

        #[test]
        fn classes_of_any_bytes(bytes in any::<[u8; 8]>()) {
            let marks = |is: fn(&u8) -> bool| {
                bytes.iter().enumerate().filter(|(_, b)| is(b)).fold(0, |marks, (n, _)| marks | 0x80 << (8 * n))
            };
            prop_assert_eq!(digits(word(&bytes)), marks(u8::is_ascii_digit));
            prop_assert_eq!(letters(word(&bytes)), marks(u8::is_ascii_uppercase));
            prop_assert_eq!(run(digits(word(&bytes))), bytes.iter().take_while(|b| b.is_ascii_digit()).count());
        }
    }
}
