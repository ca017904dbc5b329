//! Exact numbers without a limit, digit by digit.

use std::cmp::Ordering;
use std::fmt;

/// A decimal that is not negative, of any length: no sum and no product of it is ever rounded or too large.
///
/// Two equal numbers have the same digits, so that they are printed alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExactNumber {
    /// The last digit first, without zeros at the end.
    digits: Vec<u8>,
    /// How many digits are after the point; the last of them is not zero.
    places: usize,
}

impl ExactNumber {
    /// Makes the number `mantissa × 10^exponent`.
    #[must_use]
    pub fn new(mantissa: u128, exponent: i32) -> Self {
        let mut digits = vec![0; exponent.max(0) as usize];
        let mut rest = mantissa;
        while rest > 0 {
            digits.push((rest % 10) as u8);
            rest /= 10;
        }
        Self { digits, places: (-exponent).max(0) as usize }.canonical()
    }

    /// Returns whether the number is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Adds two numbers.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let places = self.places.max(other.places);
        let (mut a, b) = (self.with_places(places), other.with_places(places));
        a.resize(a.len().max(b.len()) + 1, 0);
        for (index, digit) in b.into_iter().enumerate() {
            a[index] += digit;
        }
        for index in 1..a.len() {
            a[index] += a[index - 1] / 10;
            a[index - 1] %= 10;
        }
        Self { digits: a, places }.canonical()
    }

    /// Subtracts `other`, which must not be greater.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        assert!(*self >= *other, "{self} is less than {other}");
        let places = self.places.max(other.places);
        let (mut a, b) = (self.with_places(places), other.with_places(places));
        // A number less than one has fewer digits than zero has with as many places.
        for (index, digit) in b.into_iter().enumerate().filter(|(_, digit)| *digit > 0) {
            if a[index] < digit {
                let from = (index + 1..a.len()).find(|&i| a[i] > 0).expect("the other is not greater");
                a[from] -= 1;
                a[index + 1..from].fill(9);
                a[index] += 10;
            }
            a[index] -= digit;
        }
        Self { digits: a, places }.canonical()
    }

    /// Multiplies two numbers.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        let mut sums = vec![0u32; self.digits.len() + other.digits.len() + 1];
        for (i, a) in self.digits.iter().enumerate() {
            for (j, b) in other.digits.iter().enumerate() {
                sums[i + j] += u32::from(a * b);
            }
        }
        for index in 1..sums.len() {
            sums[index] += sums[index - 1] / 10;
            sums[index - 1] %= 10;
        }
        let digits = sums.into_iter().map(|digit| digit as u8).collect();
        Self { digits, places: self.places + other.places }.canonical()
    }

    fn with_places(&self, places: usize) -> Vec<u8> {
        let mut digits = vec![0; places - self.places];
        digits.extend_from_slice(&self.digits);
        digits
    }

    fn canonical(mut self) -> Self {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        let zeros = self.digits.iter().take(self.places).take_while(|digit| **digit == 0).count();
        self.digits.drain(..zeros);
        self.places = if self.digits.is_empty() { 0 } else { self.places - zeros };
        self
    }
}

impl Ord for ExactNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        let places = self.places.max(other.places);
        let (a, b) = (self.with_places(places), other.with_places(places));
        let significant =
            |digits: &[u8]| digits.iter().rposition(|digit| *digit > 0).map_or(0, |index| index + 1);
        let (m, n) = (significant(&a), significant(&b));
        m.cmp(&n).then_with(|| a[..m].iter().rev().cmp(b[..n].iter().rev()))
    }
}

impl PartialOrd for ExactNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ExactNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = self.digits.len().max(self.places + 1);
        for index in (0..least).rev() {
            write!(f, "{}", self.digits.get(index).unwrap_or(&0))?;
            if index > 0 && index == self.places {
                f.write_str(".")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A twin that rounds would call an exact engine wrong.
    #[test]
    fn arithmetic_is_that_of_integers() {
        let text = |mantissa, exponent| ExactNumber::new(mantissa, exponent).to_string();
        assert_eq!(
            [text(0, 0), text(0, -3), text(1_500, -3), text(5, -3), text(12, 2)],
            ["0", "0", "1.5", "0.005", "1200"]
        );
        let numbers = [0u128, 1, 9, 10, 99, 100, 905, 1_000, 123_456_789, 999_999_999_999];
        for a in numbers {
            for b in numbers {
                for (x, y) in [(0, 0), (-2, 0), (0, -3), (-3, -1)] {
                    let (p, q) = (ExactNumber::new(a, x), ExactNumber::new(b, y));
                    // In thousandths.
                    let (m, n) = (a * 10u128.pow((3 + x) as u32), b * 10u128.pow((3 + y) as u32));
                    assert_eq!(p.cmp(&q), m.cmp(&n), "{p} and {q}");
                    assert_eq!(p.plus(&q), ExactNumber::new(m + n, -3));
                    assert_eq!(p.times(&q), ExactNumber::new(m * n, -6));
                    if m >= n {
                        assert_eq!(p.minus(&q), ExactNumber::new(m - n, -3));
                    }
                }
            }
        }
    }
}
