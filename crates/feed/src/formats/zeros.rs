//! Whole numbers in the one form that quantities have.

/// Strips the trailing zeros of a number and returns their count. Most numbers are hundreds. Other numbers cannot be
/// predicted, so the code has two selections and no branches for them.
#[inline(always)]
pub fn canonical(n: u32) -> (u32, u8) {
    // The inverse of 5 and of 25 modulo 2^32: turned, a quotient stays small if there is no remainder.
    let tenth = n.wrapping_mul(0xcccc_cccd).rotate_right(1);
    let hundredth = n.wrapping_mul(0xc28f_5c29).rotate_right(2);
    let (ten, hundred) = (tenth <= u32::MAX / 10, hundredth <= u32::MAX / 100);
    let (n, exponent) = if ten { (tenth, 1) } else { (n, 0) };
    let (n, exponent) = if hundred { (hundredth, 2) } else { (n, exponent) };
    if hundred && n.is_multiple_of(10) { strip_zeros(n) } else { (n, exponent) }
}

/// Strips the remaining zeros of a number that had two and has more.
#[cold]
fn strip_zeros(mut n: u32) -> (u32, u8) {
    if n == 0 {
        return (0, 0);
    }
    let mut exponent = 2;
    while n.is_multiple_of(10) {
        (n, exponent) = (n / 10, exponent + 1);
    }
    (n, exponent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_model::Decimal;

    #[test]
    fn numbers_lose_their_zeros() {
        let one = |n: u32| {
            let d = Decimal::from_int(n.into());
            assert_eq!(canonical(n), (d.mantissa() as u32, d.exponent() as u8), "{n}");
        };
        (0..20_000).for_each(one);
        for n in [u32::MAX, 4_000_000_000, 1_000_000_000, 123_000_000, 4_294_967_290] {
            one(n);
        }
    }
}
