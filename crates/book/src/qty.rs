//! Quantities inside books: whole numbers of a power of ten, so that sums are exact and need no division.
//!
//! An order keeps i64 in a power of its own, a book adds in i128 in the least power that it has met. What does
//! not fit exactly is refused; nothing is rounded.

use unitape_model::num::EXPONENT_MAX;
use unitape_model::{Amount, Decimal};

/// `m × 10^from` as a whole number of `10^to`; none when it is none or does not fit.
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

/// A quantity with an exponent at or below zero where it fits, so that whole numbers of shares all have the same.
#[inline]
pub(crate) fn settle(m: i64, e: i8) -> Option<(i64, i8)> {
    match e {
        0 => Some((m, 0)),
        1..=18 => match m.checked_mul(POW10[e as usize] as i64) {
            Some(m) => Some((m, 0)),
            None => Some((m, e)),
        },
        _ => (e.unsigned_abs() <= EXPONENT_MAX as u8).then_some((m, e)),
    }
}

/// The quantity `m × 10^e` for users.
pub(crate) fn amount(m: i128, e: i8) -> Amount {
    // A sum of quantities has at most three digits more than i64 and its exponent can only grow.
    Amount::new(m, e).unwrap_or(Amount::from_canonical(m, e))
}

/// The quantity `m × 10^e` of an order for users.
pub(crate) fn decimal(m: i64, e: i8) -> Decimal {
    Decimal::new(m, e).unwrap_or(Decimal::from_canonical(m, e))
}

/// The sum of two quantities, none when it does not fit.
pub(crate) fn add(a: (i128, i8), b: (i128, i8)) -> Option<(i128, i8)> {
    let e = a.1.min(b.1);
    Some((align(a.0, a.1, e)?.checked_add(align(b.0, b.1, e)?)?, e))
}

/// Whether two quantities are equal.
#[inline]
pub(crate) fn same(a: (i128, i8), b: (i128, i8)) -> bool {
    if a.1 == b.1 { a.0 == b.0 } else { same_unequal(a, b) }
}

/// Of two exponents; not inlined, so that the comparison above stays small enough to be.
#[inline(never)]
fn same_unequal(a: (i128, i8), b: (i128, i8)) -> bool {
    amount(a.0, a.1) == amount(b.0, b.1)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A digit lost on the way from one power to another would show in no test with round lots.
        #[test]
        fn aligning_is_exact_or_refused(m in any::<i64>(), from in -30i8..=11, to in -30i8..=11) {
            match align(m.into(), from, to) {
                Some(units) => prop_assert_eq!(amount(units, to), amount(m.into(), from)),
                None => prop_assert!(to > from || i32::from(from) - i32::from(to) > 19),
            }
            let (n, e) = settle(m, from).unwrap();
            prop_assert_eq!(amount(n.into(), e), amount(m.into(), from));
            prop_assert!(e <= 0 || n == m);
        }

        #[test]
        fn sums_are_exact(a in any::<i64>(), b in any::<i64>(), e in -9i8..=9, f in -9i8..=9) {
            let (sum, g) = add((a.into(), e), (b.into(), f)).unwrap();
            prop_assert_eq!(g, e.min(f));
            let (a, b) = (align(a.into(), e, -9).unwrap(), align(b.into(), f, -9).unwrap());
            prop_assert!(same((sum, g), (a + b, -9)));
            prop_assert!(!same((sum, g), (a + b + 1, -9)));
        }
    }

    /// Exponents of a damaged tape are any bytes.
    #[test]
    fn nonsense_is_refused() {
        for e in [i8::MIN, -31, 31, i8::MAX] {
            assert_eq!(settle(1, e), None);
        }
        assert_eq!(align(1, i8::MAX, i8::MIN), None);
        assert_eq!(add((i128::MAX, 0), (1, 0)), None);
    }
}
