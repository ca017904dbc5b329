//! Quantities inside books: whole numbers of a power of ten, so that sums are exact and need no division.
//!
//! An order keeps i64 in a power of its own, a book adds in i128 in the least power that it has met. A quantity that
//! does not fit exactly is refused; nothing is rounded.

use unitape_model::num::EXPONENT_MAX;
use unitape_model::{Amount, Decimal};

/// A quantity of one order, as its event has it or as [`normalize`] leaves it: `mantissa` × 10^`exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OrderQuantity {
    pub mantissa: i64,
    pub exponent: i8,
}

impl OrderQuantity {
    /// Returns the mantissa in units of 10^`exponent`. Returns `None` if the quantity is absent or does not fit.
    #[inline]
    pub fn units(self, exponent: i8) -> Option<i64> {
        align(self.mantissa.into(), self.exponent, exponent).and_then(|m| i64::try_from(m).ok())
    }
}

/// Converts `m × 10^from` to a whole number of `10^to`. Returns `None` if it is not whole or does not fit.
#[inline]
pub(crate) fn align(m: i128, from: i8, to: i8) -> Option<i128> {
    if from == to {
        return Some(m);
    }
    align_unequal(m, from, to)
}

#[inline(never)]
fn align_unequal(m: i128, from: i8, to: i8) -> Option<i128> {
    let k = i32::from(from) - i32::from(to);
    m.checked_mul(*POW10.get(usize::try_from(k).ok()?)?)
}

/// Gives a quantity an exponent at or below zero where it fits, so that all whole numbers of shares have the same
/// exponent.
#[inline]
pub(crate) fn normalize(qty: OrderQuantity) -> Option<OrderQuantity> {
    match qty.exponent {
        0 => Some(qty),
        e @ 1..=18 => match qty.mantissa.checked_mul(POW10[e as usize] as i64) {
            Some(mantissa) => Some(OrderQuantity { mantissa, exponent: 0 }),
            None => Some(qty),
        },
        e => (e.unsigned_abs() <= EXPONENT_MAX as u8).then_some(qty),
    }
}

/// Makes the quantity `m × 10^e` for users.
pub(crate) fn amount(m: i128, e: i8) -> Amount {
    // A sum of quantities has at most three digits more than i64 and its exponent can only grow.
    Amount::new(m, e).unwrap_or(Amount::from_canonical(m, e))
}

/// Makes an order's quantity `m × 10^e` for users.
pub(crate) fn decimal(m: i64, e: i8) -> Decimal {
    Decimal::new(m, e).unwrap_or(Decimal::from_canonical(m, e))
}

/// A sum of quantities: `mantissa` × 10^`exponent`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AggregateQuantity {
    pub mantissa: i128,
    pub exponent: i8,
}

impl AggregateQuantity {
    pub const ZERO: Self = Self { mantissa: 0, exponent: 0 };
}

/// Adds two quantities. Returns `None` if the sum does not fit.
pub(crate) fn add(a: AggregateQuantity, b: AggregateQuantity) -> Option<AggregateQuantity> {
    let exponent = a.exponent.min(b.exponent);
    let [a, b] = [a, b].map(|q| align(q.mantissa, q.exponent, exponent));
    Some(AggregateQuantity { mantissa: a?.checked_add(b?)?, exponent })
}

/// Returns whether two quantities are equal.
#[inline]
pub(crate) fn is_same(a: AggregateQuantity, b: AggregateQuantity) -> bool {
    if a.exponent == b.exponent { a.mantissa == b.mantissa } else { same_unequal(a, b) }
}

/// Compares quantities of two exponents; not inlined, so that the comparison above stays small enough to be.
#[inline(never)]
fn same_unequal(a: AggregateQuantity, b: AggregateQuantity) -> bool {
    amount(a.mantissa, a.exponent) == amount(b.mantissa, b.exponent)
}

const POW10: [i128; 39] = {
    let mut t = [1i128; 39];
    let mut i = 1;
    while i < 39 {
        t[i] = t[i - 1] * 10;
        i += 1;
    }
    t
};

crate::state::state!(OrderQuantity { mantissa, exponent });
crate::state::state!(AggregateQuantity { mantissa, exponent });

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Fails if a digit is lost between two exponents, which no test with round lots would show.
        #[test]
        fn aligning_is_exact_or_refused(m in any::<i64>(), from in -30i8..=11, to in -30i8..=11) {
            match align(m.into(), from, to) {
                Some(units) => prop_assert_eq!(amount(units, to), amount(m.into(), from)),
                None => prop_assert!(to > from || i32::from(from) - i32::from(to) > 19),
            }
            let OrderQuantity { mantissa: n, exponent: e } =
                normalize(OrderQuantity { mantissa: m, exponent: from }).unwrap();
            prop_assert_eq!(amount(n.into(), e), amount(m.into(), from));
            prop_assert!(e <= 0 || n == m);
        }

        #[test]
        fn sums_are_exact(a in any::<i64>(), b in any::<i64>(), e in -9i8..=9, f in -9i8..=9) {
            let quantity = |mantissa, exponent| AggregateQuantity { mantissa, exponent };
            let sum = add(quantity(a.into(), e), quantity(b.into(), f)).unwrap();
            prop_assert_eq!(sum.exponent, e.min(f));
            let (a, b) = (align(a.into(), e, -9).unwrap(), align(b.into(), f, -9).unwrap());
            prop_assert!(is_same(sum, quantity(a + b, -9)));
            prop_assert!(!is_same(sum, quantity(a + b + 1, -9)));
        }
    }

    /// Exponents of a damaged tape are any bytes.
    #[test]
    fn nonsense_is_refused() {
        for e in [i8::MIN, -31, 31, i8::MAX] {
            assert_eq!(normalize(OrderQuantity { mantissa: 1, exponent: e }), None);
        }
        assert_eq!(align(1, i8::MAX, i8::MIN), None);
        let quantity = |mantissa| AggregateQuantity { mantissa, exponent: 0 };
        assert!(add(quantity(i128::MAX), quantity(1)).is_none());
    }
}
