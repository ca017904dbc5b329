//! Exact signed numbers: sums of price times quantity, and products of these.
//!
//! A number has 1,024 bits and a count of decimal places. Prices have 9 places; a [`Decimal`] has 30 at most and is under 2^163
//! in units of 10^-30 unless its exponent is positive (2^200 then). So a sum of 2^32 products of price and quantity is under
//! 2^300, and a product of two such sums with two parameters is under 2^740.

use crate::state::{StateFault, StateReader, StateValue};
use bnum::cast::As;
use bnum::types::I1024;
use std::cmp::Ordering;
use std::ops::{Add, Mul, Neg, Sub};
use unitape_model::{Amount, Decimal, Price};

/// `raw` × 10^-`places`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number {
    raw: I1024,
    places: u32,
}

impl Number {
    pub const ZERO: Self = Self { raw: NOTHING, places: 0 };

    /// Makes `mantissa` × 10^`exponent`.
    pub fn new(mantissa: i128, exponent: i32) -> Self {
        let raw: I1024 = mantissa.as_();
        match u32::try_from(exponent) {
            Ok(exponent) => Self { raw: raw * power_of_ten(exponent), places: 0 },
            Err(_) => Self { raw, places: exponent.unsigned_abs() },
        }
    }

    /// Makes a whole number.
    pub fn whole(number: i128) -> Self {
        Self::new(number, 0)
    }

    /// Makes a number that is given in billionths, as a parameter is.
    pub fn billionths(nano: u64) -> Self {
        Self::new(nano.into(), -9)
    }

    /// Returns the distance from zero.
    pub fn abs(self) -> Self {
        if self.is_negative() { -self } else { self }
    }

    /// Returns whether the number is below zero.
    pub fn is_negative(self) -> bool {
        self.raw.is_negative()
    }

    /// Returns whether the number is above zero.
    pub fn is_positive(self) -> bool {
        self.raw > NOTHING
    }

    /// Brings two numbers to the same places.
    fn align_scales(self, other: Self) -> (I1024, I1024, u32) {
        let places = self.places.max(other.places);
        let at = |number: Self| match places - number.places {
            0 => number.raw,
            more => number.raw * power_of_ten(more),
        };
        (at(self), at(other), places)
    }

    /// Returns the greatest whole number that is not above this one ÷ `divisor`, which must be above zero. It is at least -2^126
    /// and at most 2^126.
    pub fn floor_quotient(self, divisor: i128) -> i128 {
        let divisor: I1024 = divisor.as_();
        let bound: I1024 = (1i128 << 126).as_();
        self.raw.div_euclid(divisor * power_of_ten(self.places)).clamp(-bound, bound).as_()
    }

    /// Writes the number in decimal digits, without trailing zeros after the point.
    pub fn text(self) -> String {
        let mut digits = Vec::new();
        let (mut rest, ten) = (self.abs().raw, power_of_ten(1));
        while rest != NOTHING || digits.len() <= self.places as usize {
            let digit: u8 = (rest % ten).as_();
            digits.push(b'0' + digit);
            rest /= ten;
        }
        digits.reverse();
        let text = String::from_utf8(digits).expect("digits");
        let (units, places) = text.split_at(text.len() - self.places as usize);
        let sign = if self.is_negative() { "-" } else { "" };
        match places.trim_end_matches('0') {
            "" => format!("{sign}{units}"),
            places => format!("{sign}{units}.{places}"),
        }
    }
}

/// Zero.
const NOTHING: I1024 = I1024::from_le_bytes([0; 128]);

fn power_of_ten(exponent: u32) -> I1024 {
    let ten: I1024 = 10u8.as_();
    ten.pow(exponent)
}

impl From<Price> for Number {
    fn from(px: Price) -> Self {
        Self::new(px.0.into(), -9)
    }
}

impl From<Decimal> for Number {
    fn from(decimal: Decimal) -> Self {
        Self::new(decimal.mantissa().into(), decimal.exponent().into())
    }
}

impl From<Amount> for Number {
    fn from(amount: Amount) -> Self {
        Self::new(amount.mantissa(), amount.exponent().into())
    }
}

impl Add for Number {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (a, b, places) = self.align_scales(other);
        Self { raw: a + b, places }
    }
}

impl Sub for Number {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Neg for Number {
    type Output = Self;

    fn neg(self) -> Self {
        Self { raw: -self.raw, places: self.places }
    }
}

impl Mul for Number {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self { raw: self.raw * other.raw, places: self.places + other.places }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b, _) = self.align_scales(*other);
        a.cmp(&b)
    }
}

impl Default for Number {
    fn default() -> Self {
        Self::ZERO
    }
}

impl StateValue for Number {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.raw.to_le_bytes());
        self.places.write(out);
    }

    fn read(input: &mut StateReader<'_>) -> Result<Self, StateFault> {
        let bytes: [u8; 128] = StateValue::read(input)?;
        Ok(Self { raw: I1024::from_le_bytes(bytes), places: u32::read(input)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = (i64, i32)> {
        (prop_oneof![-2_000i64..2_000, any::<i64>()], -30i32..=11)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Fails if numbers of different places are added, multiplied or compared wrongly. A small mantissa fits 128 bits.
        #[test]
        fn numbers_are_exact(a in -2_000i128..2_000, b in -2_000i128..2_000, p in 0i32..8, q in 0i32..8) {
            let (x, y) = (Number::new(a, -p), Number::new(b, -q));
            let scale = 10i128.pow(16);
            let (wide_x, wide_y) = (a * scale / 10i128.pow(p as u32), b * scale / 10i128.pow(q as u32));
            prop_assert_eq!(x.cmp(&y), wide_x.cmp(&wide_y));
            prop_assert_eq!(x + y, Number::new(wide_x + wide_y, -16));
            prop_assert_eq!(x - y, Number::new(wide_x - wide_y, -16));
            prop_assert_eq!(x * y, Number::new(a * b, -p - q));
            prop_assert_eq!(x.abs().is_negative(), false);
        }

        /// Fails if the product of two great sums wraps, or is saved as another number.
        #[test]
        fn great_numbers_do_not_wrap((a, x) in number(), (b, y) in number()) {
            let (a, b) = (Number::new(a.into(), x), Number::new(b.into(), y));
            let great = Number::whole(1 << 64);
            let sum = a * Number::from(Price(i64::MAX - 1)) * great;
            let product = sum * sum * great;
            prop_assert!(!product.is_negative());
            prop_assert_eq!(a * b * great * great, b * great * a * great);
            let mut bytes = Vec::new();
            product.write(&mut bytes);
            prop_assert_eq!(Number::read(&mut StateReader::new(&bytes)).unwrap(), product);
        }
    }

    #[test]
    fn a_number_is_written_as_people_write_it() {
        for (mantissa, exponent, text) in
            [(0, 0, "0"), (-5, -1, "-0.5"), (1_200, -2, "12"), (7, 3, "7000"), (1, -9, "0.000000001")]
        {
            assert_eq!(Number::new(mantissa, exponent).text(), text);
        }
    }
}
