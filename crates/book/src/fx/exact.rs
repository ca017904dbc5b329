//! Exact amounts: whole numbers of 384 bits, which are wide enough for every product and sum of the rules.
//!
//! A quantity counts units of 10⁻³⁹: an inverted quantity is `qty` × `px`, which have at most 30 and 9 places. A
//! notional counts units of 10⁻⁴⁸. The largest notional is a size of 2⁶³ × 10³⁰ at a price of 2⁶³ × 10⁻⁹, which is 2³⁵⁴
//! units.

use std::cmp::Ordering;
use std::fmt;
use unitape_model::Decimal;
use unitape_model::num::EXPONENT_MAX;

/// A whole number below 2³⁸⁴, the least significant word first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Units([u64; WORDS]);

const WORDS: usize = 6;

/// The places of a quantity.
pub(super) const QTY_PLACES: u8 = 39;
/// The places of a notional.
pub(super) const NOTIONAL_PLACES: u8 = QTY_PLACES + 9;

impl Units {
    /// Returns a quantity above zero in units of 10⁻³⁹; `None` for another one, and for an exponent that only a damaged
    /// tape has.
    pub(super) fn from_qty(qty: Decimal) -> Option<Self> {
        Self::at_places(qty, QTY_PLACES)
    }

    /// Returns `qty` × `px` in units of 10⁻³⁹, for a price in units of 10⁻⁹. Rule 12: the quantity in base of a quote the
    /// other way round.
    pub(super) fn from_inverted_qty(qty: Decimal, px: u64) -> Option<Self> {
        Some(Self::at_places(qty, QTY_PLACES - 9)?.times(px))
    }

    fn at_places(qty: Decimal, places: u8) -> Option<Self> {
        let mantissa = u64::try_from(qty.mantissa()).ok().filter(|mantissa| *mantissa > 0)?;
        let exponent = qty.exponent();
        if exponent.unsigned_abs() > EXPONENT_MAX.unsigned_abs() {
            return None;
        }
        let power = i32::from(exponent) + i32::from(places);
        Some(POWERS[usize::try_from(power).ok()?].times(mantissa))
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// Returns the product. The bounds of the numbers on a tape keep it below 2³⁸⁴.
    pub(super) const fn times(self, factor: u64) -> Self {
        let (mut words, mut carry, mut i) = ([0; WORDS], 0u128, 0);
        while i < WORDS {
            let product = self.0[i] as u128 * factor as u128 + carry;
            (words[i], carry) = (product as u64, product >> 64);
            i += 1;
        }
        debug_assert!(carry == 0);
        Self(words)
    }

    /// Returns the sum.
    pub(super) fn plus(self, other: Self) -> Self {
        let (mut words, mut carry) = ([0; WORDS], false);
        for (word, (a, b)) in words.iter_mut().zip(self.0.into_iter().zip(other.0)) {
            let (sum, first) = a.overflowing_add(b);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*word, carry) = (sum, first || second);
        }
        debug_assert!(!carry);
        Self(words)
    }

    /// Returns the difference; `other` must not be greater.
    pub(super) fn minus(self, other: Self) -> Self {
        let (mut words, mut borrow) = ([0; WORDS], false);
        for (word, (a, b)) in words.iter_mut().zip(self.0.into_iter().zip(other.0)) {
            let (difference, first) = a.overflowing_sub(b);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            (*word, borrow) = (difference, first || second);
        }
        debug_assert!(!borrow);
        Self(words)
    }

    /// Divides by 10¹⁹ in place, and returns the rest.
    fn split_off_digits(&mut self) -> u64 {
        let mut remainder = 0u128;
        for word in self.0.iter_mut().rev() {
            let dividend = remainder << 64 | u128::from(*word);
            (*word, remainder) = ((dividend / CHUNK) as u64, dividend % CHUNK);
        }
        remainder as u64
    }
}

impl Ord for Units {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl PartialOrd for Units {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An exact amount that is not negative; it prints without an exponent and without trailing zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactAmount {
    units: Units,
    places: u8,
}

impl ExactAmount {
    pub(super) fn new(units: Units, places: u8) -> Self {
        Self { units, places }
    }
}

impl fmt::Display for ExactAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut digits, mut units, mut end) = ([b'0'; DIGITS], self.units, DIGITS);
        while !units.is_zero() {
            let mut chunk = units.split_off_digits();
            for digit in digits[..end].iter_mut().rev().take(CHUNK_DIGITS) {
                *digit += (chunk % 10) as u8;
                chunk /= 10;
            }
            end = end.saturating_sub(CHUNK_DIGITS);
        }
        let digits = std::str::from_utf8(&digits).expect("digits are ASCII");
        let (integer_digits, fraction) = digits.split_at(DIGITS - usize::from(self.places));
        let (integer_digits, fraction) =
            (integer_digits.trim_start_matches('0'), fraction.trim_end_matches('0'));
        f.write_str(if integer_digits.is_empty() { "0" } else { integer_digits })?;
        if fraction.is_empty() { Ok(()) } else { write!(f, ".{fraction}") }
    }
}

/// The digits that one division by a word brings.
const CHUNK_DIGITS: usize = 19;
const CHUNK: u128 = 10_000_000_000_000_000_000;
/// 2³⁸⁴ has 116 digits.
const DIGITS: usize = 7 * CHUNK_DIGITS;

/// Powers of ten, up to the largest exponent of a quantity.
const POWERS: [Units; QTY_PLACES as usize + EXPONENT_MAX as usize + 1] = {
    let mut powers = [Units([1, 0, 0, 0, 0, 0]); QTY_PLACES as usize + EXPONENT_MAX as usize + 1];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = powers[i - 1].times(10);
        i += 1;
    }
    powers
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn units(number: u128) -> Units {
        Units([number as u64, (number >> 64) as u64, 0, 0, 0, 0])
    }

    /// Multiplies digits as in school, the last digit first: the slow twin.
    fn product(a: &str, b: &str) -> String {
        let digits = |text: &str| text.bytes().rev().map(|b| u32::from(b - b'0')).collect::<Vec<_>>();
        let (a, b) = (digits(a), digits(b));
        let mut out = vec![0u32; a.len() + b.len() + 1];
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                out[i + j] += x * y;
            }
            for i in 1..out.len() {
                out[i] += out[i - 1] / 10;
                out[i - 1] %= 10;
            }
        }
        let text: String = out.iter().rev().map(|digit| char::from_digit(*digit, 10).unwrap()).collect();
        let text = text.trim_start_matches('0');
        if text.is_empty() { "0".to_owned() } else { text.to_owned() }
    }

    proptest! {
        /// Fails if a carry is lost, which would make a sum of two large banks a small sum.
        #[test]
        fn words_agree_with_digits(a in any::<u128>(), b in any::<u128>(), f in any::<[u64; 3]>()) {
            let [a, b] = [a, b].map(|n| n >> 1);
            let (x, y) = (units(a), units(b));
            prop_assert_eq!(x.plus(y), units(a + b));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(units(a.max(b)).minus(units(a.min(b))), units(a.abs_diff(b)));
            let wide = f.into_iter().fold(x, Units::times);
            let digits = f.into_iter().fold(a.to_string(), |all, f| product(&all, &f.to_string()));
            prop_assert_eq!(ExactAmount::new(wide, 0).to_string(), digits);
            let sum = wide.plus(wide);
            prop_assert_eq!(sum, wide.times(2));
            prop_assert_eq!(sum.minus(wide), wide);
            prop_assert_eq!(sum > wide, a > 0 && f.iter().all(|f| *f > 0));
        }

        /// Fails if a quantity prints as another quantity, because nobody can deal that leg.
        #[test]
        fn quantities_print_as_their_decimals(mantissa in 1i64.., exponent in -EXPONENT_MAX..=11) {
            let qty = Decimal::new(mantissa, exponent).unwrap();
            let exact = ExactAmount::new(Units::from_qty(qty).unwrap(), QTY_PLACES);
            prop_assert_eq!(exact.to_string(), qty.to_string());
            let inverted = Units::from_inverted_qty(qty, 1_000_000_000).unwrap();
            prop_assert_eq!(ExactAmount::new(inverted, QTY_PLACES).to_string(), qty.to_string());
        }
    }

    #[test]
    fn the_largest_notional_fits() {
        let size = Units::from_qty(Decimal::from_canonical(i64::MAX, EXPONENT_MAX)).unwrap();
        let notional = ExactAmount::new(size.times(i64::MAX as u64), NOTIONAL_PLACES).to_string();
        let product = product(&i64::MAX.to_string(), &i64::MAX.to_string());
        assert_eq!(notional, format!("{product}{}", "0".repeat(21)));
        let inverted = Decimal::from_canonical(i64::MAX, EXPONENT_MAX);
        assert!(Units::from_inverted_qty(inverted, i64::MAX as u64).unwrap() > size);
    }

    /// Exponents of a damaged tape are any bytes.
    #[test]
    fn nonsense_is_no_quantity() {
        for (mantissa, exponent) in [(0, 0), (-1, 0), (1, 31), (1, -31), (1, i8::MIN), (1, i8::MAX)] {
            assert_eq!(Units::from_qty(Decimal::from_canonical(mantissa, exponent)), None);
            assert_eq!(Units::from_inverted_qty(Decimal::from_canonical(mantissa, exponent), 1), None);
        }
    }
}
