//! Exact arithmetic for conditions: inequalities are meant as written, at any size and number of places.
//!
//! A product of a few small factors is compared as mantissa and exponent ([`at_most`]). A sum over many events is a
//! [`QuantitySum`], wide enough that it never rounds and never overflows.

use std::cmp::Ordering;
use unitape_model::Decimal;
use unitape_model::schema::EXP_NONE;

/// One, in the billionths that decimal parameters come in.
pub(crate) const BILLION: i128 = 1_000_000_000;

/// A number from 0 on: `mantissa` × 10^`exponent`, in as many forms as it has trailing zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScaledNumber {
    pub mantissa: u128,
    pub exponent: i32,
}

/// Computes `|d| × factor`. The mantissa stays under 2^127 for a factor under 2^63.
#[inline]
pub(crate) fn times(d: Decimal, factor: u64) -> ScaledNumber {
    ScaledNumber {
        mantissa: u128::from(d.mantissa().unsigned_abs()) * u128::from(factor),
        exponent: d.exponent().into(),
    }
}

/// Returns whether a ≤ b, exactly.
pub(crate) fn at_most(a: ScaledNumber, b: ScaledNumber) -> bool {
    let shift = a.exponent - b.exponent;
    let (a, b) = (a.mantissa, b.mantissa);
    let scale = 10u128.checked_pow(shift.unsigned_abs());
    // A value beyond 128 bits on one side is greater than anything on the other.
    if shift >= 0 {
        a == 0 || scale.and_then(|s| a.checked_mul(s)).is_some_and(|a| a <= b)
    } else {
        a == 0 || (b != 0 && scale.and_then(|s| b.checked_mul(s)).is_none_or(|b| a <= b))
    }
}

/// Compares a distance of prices with basis points, in billionths of one, of a price above zero. Distance and price have
/// the same unit and stay under 2^66.
#[inline]
pub(crate) fn compare_bps(distance: i128, bps_nano: u64, reference: i128) -> Ordering {
    (distance * 10_000 * BILLION).cmp(&(i128::from(bps_nano) * reference))
}

/// Returns the quantity of an order after a reduction, at least zero. A reduction that is not above zero or whose
/// difference a decimal cannot hold is left out.
pub(crate) fn reduced(qty: Decimal, reduction: Decimal) -> Decimal {
    let is_reduction = reduction.mantissa() > 0 && qty.exponent() != EXP_NONE;
    let Some(qty_left) = qty.checked_sub(reduction).filter(|_| is_reduction) else { return qty };
    if qty_left.is_negative() { Decimal::ZERO } else { qty_left }
}

/// A sum of quantities: five words in units of 10^-30, the least a [`Decimal`] can be. The greatest decimal
/// is under 2^263 of them, so 2^57 of these fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuantitySum([u64; 5]);

/// A [`QuantitySum`] times a factor or two: wide enough for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuantityProduct([u64; 7]);

impl QuantitySum {
    /// Nothing.
    pub const ZERO: Self = Self([0; 5]);

    /// Converts the quantity `d`. A quantity that is not above zero becomes zero.
    #[inline]
    pub fn from_decimal(d: Decimal) -> Self {
        let mut this = Self([0; 5]);
        if d.mantissa() > 0 {
            this.0[0] = d.mantissa() as u64;
            let mut zeros = (i32::from(d.exponent()) + 30).clamp(0, 60) as u32;
            while zeros > 0 {
                let step = zeros.min(19);
                scale_words(&mut this.0, 10u64.pow(step));
                zeros -= step;
            }
        }
        this
    }

    /// Adds the quantity `d`, if it is above zero.
    #[inline]
    pub fn add(&mut self, d: Decimal) {
        self.add_sum(&Self::from_decimal(d));
    }

    /// Adds another sum.
    #[inline]
    pub fn add_sum(&mut self, other: &Self) {
        let mut carry = false;
        for (word, more) in self.0.iter_mut().zip(other.0) {
            (*word, carry) = word.carrying_add(more, carry);
        }
    }

    /// Returns the quantity added since `earlier`, an older state of the same sum.
    #[inline]
    pub fn minus_earlier(&self, earlier: &Self) -> Self {
        let mut amount_left = *self;
        let mut borrow = false;
        for (word, less) in amount_left.0.iter_mut().zip(earlier.0) {
            (*word, borrow) = word.borrowing_sub(less, borrow);
        }
        amount_left
    }

    /// Adds another sum.
    pub(crate) fn plus(&mut self, other: &Self) {
        let mut carry = false;
        for (word, more) in self.0.iter_mut().zip(other.0) {
            (*word, carry) = word.carrying_add(more, carry);
        }
    }

    /// Adds sums up.
    #[cfg(any(test, feature = "twin"))]
    pub(crate) fn total(sums: impl IntoIterator<Item = Self>) -> Self {
        let mut total = Self::ZERO;
        sums.into_iter().for_each(|sum| total.plus(&sum));
        total
    }

    /// Multiplies the sum by `factor`.
    #[inline]
    pub(crate) fn times(&self, factor: u64) -> QuantityProduct {
        let mut product = [0; 7];
        product[..5].copy_from_slice(&self.0);
        scale_words(&mut product, factor);
        QuantityProduct(product)
    }
}

crate::state::wrapped!(QuantitySum, [u64; 5], |sum| sum.0, |words| Some(QuantitySum(words)));

impl Ord for QuantitySum {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl PartialOrd for QuantitySum {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl QuantityProduct {
    /// Multiplies the product by another factor.
    pub(crate) fn times(mut self, factor: u64) -> Self {
        scale_words(&mut self.0, factor);
        self
    }
}

impl PartialOrd for QuantityProduct {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

#[inline]
fn scale_words<const N: usize>(words: &mut [u64; N], factor: u64) {
    let mut carry = 0u64;
    for word in words {
        let wide = u128::from(*word) * u128::from(factor) + u128::from(carry);
        (*word, carry) = (wide as u64, (wide >> 64) as u64);
    }
    debug_assert_eq!(carry, 0, "wide enough by construction");
}

impl std::fmt::Display for QuantitySum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Digit by digit from the right; for people, and rare.
        let (mut words, mut digits) = (self.0, Vec::new());
        while words != [0; 5] || digits.len() <= 30 {
            let mut remainder = 0u128;
            for word in words.iter_mut().rev() {
                let wide = remainder << 64 | u128::from(*word);
                (*word, remainder) = ((wide / 10) as u64, wide % 10);
            }
            digits.push(b'0' + remainder as u8);
        }
        digits.reverse();
        let text = String::from_utf8(digits).expect("digits");
        let (units, places) = text.split_at(text.len() - 30);
        match places.trim_end_matches('0') {
            "" => f.write_str(units),
            places => write!(f, "{units}.{places}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal() -> impl Strategy<Value = Decimal> {
        let exponent = prop_oneof![-30i8..=-1, Just(0), Just(0), 1i8..=11];
        let mantissa = prop_oneof![0i64..2_000, Just(i64::MAX), any::<i64>()];
        (mantissa, exponent).prop_map(|(m, e)| Decimal::new(m, e).expect("a small exponent"))
    }

    /// Writes the number in units of 10^-30 by hand, as decimal digits, least first.
    fn digits(d: Decimal, factor: u64) -> Vec<u8> {
        let mut text = (u128::from(d.mantissa().unsigned_abs()) * u128::from(factor)).to_string();
        text.extend(std::iter::repeat_n('0', (i32::from(d.exponent()) + 30) as usize));
        let mut out: Vec<u8> = text.bytes().rev().map(|b| b - b'0').collect();
        out.resize(100, 0);
        out
    }

    fn plus(a: &[u8], b: &[u8]) -> Vec<u8> {
        let mut carry = 0;
        a.iter()
            .zip(b)
            .map(|(a, b)| {
                let sum = a + b + carry;
                carry = sum / 10;
                sum % 10
            })
            .collect()
    }

    fn less_or_same(a: &[u8], b: &[u8]) -> bool {
        a.iter().rev().le(b.iter().rev())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// Fails if a carry between words is lost, which would make a sum of odd quantities too small, rarely and
        /// silently.
        #[test]
        fn sums_and_products_are_those_of_pencil_and_paper(
            parts in proptest::collection::vec(decimal(), 0..8),
            more in proptest::collection::vec(decimal(), 0..8),
            other in decimal(),
            factors in (0u64..=1 << 60, 0u64..=1 << 60),
        ) {
            let mut sum = QuantitySum::ZERO;
            let mut twin = vec![0; 100];
            let counts = |d: &&Decimal| d.mantissa() > 0;
            for d in parts.iter() {
                sum.add(*d);
            }
            for d in parts.iter().filter(counts) {
                twin = plus(&twin, &digits(*d, 1));
            }
            let before = sum;
            let mut extra = vec![0; 100];
            for d in &more {
                sum.add(*d);
            }
            for d in more.iter().filter(counts) {
                extra = plus(&extra, &digits(*d, 1));
            }
            let read = |t: QuantitySum| {
                let text = t.to_string();
                let (units, places) = text.split_once('.').unwrap_or((&text, ""));
                let mut out: Vec<u8> =
                    format!("{units}{places:0<30}").bytes().rev().map(|b| b - b'0').collect();
                out.resize(100, 0);
                out
            };
            prop_assert_eq!(read(before), twin.clone());
            prop_assert_eq!(read(sum.minus_earlier(&before)), extra.clone());
            prop_assert_eq!(before <= sum.minus_earlier(&before), less_or_same(&twin, &extra));
            if other.mantissa() > 0 {
                prop_assert_eq!(
                    QuantitySum::from_decimal(other).times(factors.0) <= QuantitySum::from_decimal(other).times(factors.1),
                    factors.0 <= factors.1
                );
                prop_assert_eq!(QuantitySum::from_decimal(other).times(3).times(5), QuantitySum::from_decimal(other).times(15));
            }
        }

        /// Pairs whose products pass 128 bits, against digits.
        #[test]
        fn scaled_numbers_compare_as_their_digits(a in decimal(), b in decimal(),
                                                  fa in 0u64..=1 << 60, fb in 0u64..=1 << 60) {
            prop_assert_eq!(at_most(times(a, fa), times(b, fb)), less_or_same(&digits(a, fa), &digits(b, fb)));
        }
    }
}
