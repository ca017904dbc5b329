//! Exact numbers of any size and sign, in decimal digits, as with pencil and paper.

use std::cmp::Ordering;
use std::ops::{Add, Mul, Sub};
use unitape_model::{Amount, Decimal, Price};

/// A number. It never rounds and never overflows.
#[derive(Clone, Debug)]
pub struct Number {
    is_negative: bool,
    /// Least digit first.
    digits: Vec<u8>,
    /// How many of the digits follow the point.
    places: usize,
}

impl Number {
    /// Zero.
    pub const ZERO: Self = Self { is_negative: false, digits: Vec::new(), places: 0 };

    /// Makes `mantissa` × 10^`exponent`.
    pub fn new(mantissa: i128, exponent: i32) -> Self {
        let mut digits = vec![0; usize::try_from(exponent).unwrap_or(0)];
        digits.extend(mantissa.unsigned_abs().to_string().bytes().rev().map(|digit| digit - b'0'));
        let places = usize::try_from(-exponent).unwrap_or(0);
        Self { is_negative: mantissa < 0, digits, places }
    }

    /// Makes a whole number.
    pub fn whole(number: i128) -> Self {
        Self::new(number, 0)
    }

    /// Converts a parameter that is in billionths of its unit.
    pub fn billionths(nano: u64) -> Self {
        Self::new(nano.into(), -9)
    }

    /// Returns the distance from zero.
    pub fn abs(self) -> Self {
        Self { is_negative: false, ..self }
    }

    /// Compares the number with zero.
    pub fn sign(&self) -> Ordering {
        match self.digits.iter().any(|digit| *digit != 0) {
            false => Ordering::Equal,
            true if self.is_negative => Ordering::Less,
            true => Ordering::Greater,
        }
    }

    /// Returns whether the number is above zero.
    pub fn is_positive(&self) -> bool {
        self.sign() == Ordering::Greater
    }

    /// Returns the digits of both numbers with as many places and as many digits.
    fn aligned(&self, other: &Self) -> [Vec<u8>; 2] {
        let places = self.places.max(other.places);
        let mut both = [self, other].map(|number| {
            let mut digits = vec![0; places - number.places];
            digits.extend(&number.digits);
            digits
        });
        let length = both[0].len().max(both[1].len());
        both.iter_mut().for_each(|digits| digits.resize(length, 0));
        both
    }
}

impl From<i128> for Number {
    fn from(integer: i128) -> Self {
        Self::new(integer, 0)
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

/// A price has nine places.
impl From<Price> for Number {
    fn from(px: Price) -> Self {
        Self::new(px.0.into(), -9)
    }
}

impl std::iter::Sum for Number {
    fn sum<I: Iterator<Item = Self>>(numbers: I) -> Self {
        numbers.fold(Self::ZERO, Self::add)
    }
}

impl Add for Number {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let [mut a, mut b] = self.aligned(&other);
        let places = self.places.max(other.places);
        let mut is_negative = self.is_negative;
        if self.is_negative == other.is_negative {
            let mut carry = 0;
            for (a, b) in a.iter_mut().zip(&b) {
                let sum = *a + b + carry;
                (*a, carry) = (sum % 10, sum / 10);
            }
            a.push(carry);
        } else {
            // The lesser is taken from the greater, whose sign the result has.
            if a.iter().rev().lt(b.iter().rev()) {
                std::mem::swap(&mut a, &mut b);
                is_negative = other.is_negative;
            }
            let mut borrow = 0;
            for (a, b) in a.iter_mut().zip(&b) {
                let difference = 10 + *a - b - borrow;
                (*a, borrow) = (difference % 10, u8::from(difference < 10));
            }
        }
        Self { is_negative, digits: a, places }
    }
}

impl Sub for Number {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let is_negative = !other.is_negative;
        self + Self { is_negative, ..other }
    }
}

impl Mul for Number {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let mut digits = vec![0; self.digits.len() + other.digits.len()];
        for (position, a) in self.digits.iter().enumerate() {
            let mut carry = 0;
            for (digit, b) in digits[position..].iter_mut().zip(other.digits.iter().chain([&0])) {
                let sum = *digit + a * b + carry;
                (*digit, carry) = (sum % 10, sum / 10);
            }
        }
        let is_negative = self.is_negative != other.is_negative;
        Self { is_negative, digits, places: self.places + other.places }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        let [a, b] = self.aligned(other);
        let by_size = a.iter().rev().cmp(b.iter().rev());
        match (self.sign(), other.sign()) {
            (Ordering::Less, Ordering::Less) => by_size.reverse(),
            (Ordering::Greater, Ordering::Greater) => by_size,
            (a, b) => a.cmp(&b),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Fails if a carry or a sign is lost: then a twin, and the code that agrees with it, would both be wrong.
        #[test]
        fn numbers_calculate_as_integers_do(
            (a, b, c) in (any::<i32>(), any::<i64>(), -1_000i64..1_000),
            (e, f) in (-3i32..=0, -3i32..=0),
        ) {
            // In thousandths.
            let thousandths = |number: i64, exponent: i32| i128::from(number) * 10i128.pow((exponent + 3) as u32);
            let (x, y) = (thousandths(a.into(), e), thousandths(b, f));
            let (p, q) = (Number::new(a.into(), e), Number::new(b.into(), f));
            prop_assert_eq!(p.clone() + q.clone(), Number::new(x + y, -3));
            prop_assert_eq!(p.clone() - q.clone(), Number::new(x - y, -3));
            prop_assert_eq!(p.clone() * q.clone(), Number::new(i128::from(a) * i128::from(b), e + f));
            prop_assert_eq!(p.cmp(&q), x.cmp(&y));
            prop_assert_eq!(p.clone().abs(), Number::new(x.abs(), -3));
            prop_assert_eq!(p.sign(), x.cmp(&0));
            prop_assert_eq!(p.clone() * Number::whole(c.into()) - q, Number::new(x * i128::from(c) - y, -3));
        }
    }
}
