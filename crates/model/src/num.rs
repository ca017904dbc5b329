//! Exact numbers: no float appears between the wire and the tape.
//!
//! | type | holds | range | none |
//! |---|---|---|---|
//! | [`UnixNanos`] | UTC nanoseconds since 1970 | 1677 to 2262 | kept outside the type |
//! | [`Price`] | i64 in 1e-9 | ±9.223e9 | `i64::MAX`, refused on input |
//! | [`Decimal`] | i64 mantissa × 10^exponent, canonical | 18 full digits, exponent ±30 | kept outside the type |
//! | [`Amount`] | i128 mantissa × 10^exponent, canonical | 38 full digits | kept outside the type |
//!
//! A number that does not fit exactly is refused with [`NumberFault`]; nothing is rounded.

use crate::words;
use std::fmt;

/// UTC nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixNanos(pub i64);

/// A price in units of 1e-9.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(pub i64);

/// An exact decimal in canonical form: the mantissa has no trailing zero, and zero is `0e0`.
///
/// Used for quantities ([`Quantity`]) and for index levels, which venues publish with more places than a
/// price may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Decimal {
    mantissa: i64,
    exponent: i8,
}

/// A quantity: shares, contracts, units of a currency.
pub type Quantity = Decimal;

/// An amount of money, wide enough for ISO 20022 (18 digits and 5 decimals) and beyond; canonical.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Amount {
    mantissa: i128,
    exponent: i8,
}

/// Why a decimal was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NumberFault {
    /// Not of the form `-?digits(.digits)?`.
    #[error("not a decimal number")]
    Malformed,
    /// A number, but the type cannot hold it exactly.
    #[error("decimal does not fit exactly")]
    DoesNotFit,
}

/// Greatest absolute exponent a [`Decimal`] or [`Amount`] may have.
pub const EXPONENT_MAX: i8 = 30;

impl UnixNanos {
    /// The first moment there is, in 1677; before all others.
    pub const MIN: Self = Self(i64::MIN);
    /// The last moment there is, in 2262; after all others.
    pub const MAX: Self = Self(i64::MAX);
}

impl Price {
    /// "No price": the one value that input may not have.
    pub const NONE: Self = Self(i64::MAX);
    /// The number of decimal places of a price.
    pub const PLACES: u32 = 9;

    /// Parses `-?digits(.digits)?`.
    #[inline]
    pub fn parse(text: &[u8]) -> Result<Self, NumberFault> {
        let (negative, unsigned) = split_sign(text);
        if let Some((digits, places)) = words::digits(unsigned)
            && let Some(scale) = (Self::PLACES as usize).checked_sub(places as usize)
            // Nine digits before the point are in range whatever follows; more are looked at one by one.
            && digits & ((1 << (8 * 7u32.saturating_sub(places))) - 1) == 0
        {
            let v = words::number(digits) as i64 * POW10[scale];
            return Ok(Self(if negative { -v } else { v }));
        }
        Self::from_decimal(Decimal::parse(text)?)
    }

    /// Converts a decimal to an equal price. Fails if no price is equal to `d`.
    #[inline]
    pub fn from_decimal(d: Decimal) -> Result<Self, NumberFault> {
        let shift = i32::from(d.exponent) + Self::PLACES as i32;
        let scale = u32::try_from(shift).ok().and_then(|s| POW10.get(s as usize));
        match scale.and_then(|s| d.mantissa.checked_mul(*s)) {
            Some(v) if v != i64::MAX => Ok(Self(v)),
            None if d.mantissa == 0 => Ok(Self(0)),
            _ => Err(NumberFault::DoesNotFit),
        }
    }

    /// Converts the price to a canonical decimal; `None` for [`Price::NONE`].
    #[inline]
    pub fn decimal(self) -> Option<Decimal> {
        (self != Self::NONE)
            .then(|| Decimal::new(self.0, -(Self::PLACES as i8)).expect("a price is a decimal"))
    }

    /// Returns the price, or `None` for [`Price::NONE`].
    #[inline]
    pub fn as_option(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }
}

impl Decimal {
    /// Zero.
    pub const ZERO: Self = Self { mantissa: 0, exponent: 0 };

    /// Makes `mantissa × 10^exponent` in canonical form. Fails if the exponent is beyond [`EXPONENT_MAX`].
    #[inline]
    pub fn new(mut mantissa: i64, exponent: i8) -> Result<Self, NumberFault> {
        if mantissa == 0 {
            return Ok(Self::ZERO);
        }
        let mut exponent = i32::from(exponent);
        while mantissa % 10 == 0 {
            mantissa /= 10;
            exponent += 1;
        }
        Ok(Self { mantissa, exponent: check_exponent(exponent)? })
    }

    /// Takes parts that are canonical already, as they are on a tape.
    #[inline]
    pub const fn from_canonical(mantissa: i64, exponent: i8) -> Self {
        Self { mantissa, exponent }
    }

    /// Makes a decimal from a whole number.
    #[inline]
    pub fn from_int(v: i64) -> Self {
        Self::new(v, 0).expect("an i64 strips at most 18 zeros")
    }

    /// Returns the mantissa, without trailing zeros.
    #[inline]
    pub const fn mantissa(self) -> i64 {
        self.mantissa
    }

    /// Returns the exponent of ten.
    #[inline]
    pub const fn exponent(self) -> i8 {
        self.exponent
    }

    /// Parses `-?digits(.digits)?`; `.5` and `5.` are accepted as FIX does, an exponent is not.
    #[inline]
    pub fn parse(text: &[u8]) -> Result<Self, NumberFault> {
        let (negative, unsigned) = split_sign(text);
        let Some((digits, places)) = words::digits(unsigned) else { return Self::parse_any(text) };
        if digits == 0 {
            return Ok(Self::ZERO);
        }
        // Zeros at the end are taken off by moving all digits up, and counted.
        let zeros = digits.leading_zeros() / 8;
        let m = words::number(digits << (8 * zeros)) as i64;
        // Sixteen digits at most: exponent and mantissa are in range.
        Ok(Self { mantissa: if negative { -m } else { m }, exponent: (zeros as i32 - places as i32) as i8 })
    }

    /// Parses any text as [`Decimal::parse`] does, digit by digit.
    #[inline(never)]
    fn parse_any(text: &[u8]) -> Result<Self, NumberFault> {
        let (negative, digits) = split_sign(text);
        let (mut m, mut zeros, mut places, mut has_digits, mut point) = (0u64, 0usize, 0i32, false, false);
        for &b in digits {
            let d = b.wrapping_sub(b'0');
            if d <= 9 {
                has_digits = true;
                places += i32::from(point);
                if d == 0 {
                    zeros += usize::from(m != 0);
                } else {
                    let scale = *UPOW10.get(zeros + 1).ok_or(NumberFault::DoesNotFit)?;
                    m = m
                        .checked_mul(scale)
                        .and_then(|v| v.checked_add(u64::from(d)))
                        .ok_or(NumberFault::DoesNotFit)?;
                    zeros = 0;
                }
            } else if b == b'.' && !point {
                point = true;
            } else {
                return Err(NumberFault::Malformed);
            }
        }
        if !has_digits {
            return Err(NumberFault::Malformed);
        }
        if m == 0 {
            return Ok(Self::ZERO);
        }
        let mantissa = if negative { 0i64.checked_sub_unsigned(m) } else { i64::try_from(m).ok() };
        let exponent = i32::try_from(zeros).map_err(|_| NumberFault::DoesNotFit)? - places;
        Ok(Self { mantissa: mantissa.ok_or(NumberFault::DoesNotFit)?, exponent: check_exponent(exponent)? })
    }

    /// Returns the number × 10^places as an exact integer. Returns `None` if the product is no integer or does not fit
    /// in an `i128`.
    #[inline]
    pub fn scaled(self, places: i8) -> Option<i128> {
        let shift = i32::from(self.exponent) + i32::from(places);
        let m = i128::from(self.mantissa);
        if m == 0 {
            return Some(0);
        }
        10i128.checked_pow(u32::try_from(shift).ok()?).and_then(|s| m.checked_mul(s))
    }

    /// Returns whether the number is below zero.
    #[inline]
    pub const fn is_negative(self) -> bool {
        self.mantissa < 0
    }

    /// Returns the difference, or `None` if a decimal cannot hold it exactly.
    pub fn checked_sub(self, subtrahend: Self) -> Option<Self> {
        let exponent = match (self.mantissa, subtrahend.mantissa) {
            (_, 0) => return Some(self),
            (0, _) => subtrahend.exponent,
            _ => self.exponent.min(subtrahend.exponent),
        };
        let units = |number: Self| {
            let zeros = i32::from(number.exponent) - i32::from(exponent);
            let scale = 10i128.checked_pow(u32::try_from(zeros).ok()?)?;
            i128::from(number.mantissa).checked_mul(scale)
        };
        let minuend = if self.mantissa == 0 { 0 } else { units(self)? };
        let difference = Amount::new(minuend.checked_sub(units(subtrahend)?)?, exponent).ok()?;
        let mantissa = i64::try_from(difference.mantissa).ok()?;
        Some(Self { mantissa, exponent: difference.exponent })
    }
}

impl Amount {
    /// Makes `mantissa × 10^exponent` in canonical form. Fails if the exponent is beyond [`EXPONENT_MAX`].
    pub fn new(mut mantissa: i128, exponent: i8) -> Result<Self, NumberFault> {
        if mantissa == 0 {
            return Ok(Self::default());
        }
        let mut exponent = i32::from(exponent);
        while mantissa % 10 == 0 {
            mantissa /= 10;
            exponent += 1;
        }
        Ok(Self { mantissa, exponent: check_exponent(exponent)? })
    }

    /// Takes parts that are canonical already, as they are on a tape.
    pub const fn from_canonical(mantissa: i128, exponent: i8) -> Self {
        Self { mantissa, exponent }
    }

    /// Returns the mantissa, without trailing zeros.
    pub const fn mantissa(self) -> i128 {
        self.mantissa
    }

    /// Returns the exponent of ten.
    pub const fn exponent(self) -> i8 {
        self.exponent
    }

    /// Returns the number × 10^places as an exact integer. Returns `None` if the product is no integer or does not fit
    /// in an `i128`.
    pub fn scaled(self, places: i8) -> Option<i128> {
        if self.mantissa == 0 {
            return Some(0);
        }
        let shift = i32::from(self.exponent) + i32::from(places);
        10i128.checked_pow(u32::try_from(shift).ok()?)?.checked_mul(self.mantissa)
    }

    /// Parses `-?digits(.digits)?`.
    pub fn parse(text: &[u8]) -> Result<Self, NumberFault> {
        // Sixteen characters, as nearly all are, make the same number in either.
        if words::digits(split_sign(text).1).is_some() {
            let d = Decimal::parse(text)?;
            return Ok(Self { mantissa: d.mantissa.into(), exponent: d.exponent });
        }
        Self::parse_any(text)
    }

    /// Parses any text as [`Amount::parse`] does, digit by digit.
    #[inline(never)]
    fn parse_any(text: &[u8]) -> Result<Self, NumberFault> {
        let (negative, digits) = split_sign(text);
        let (mut m, mut places, mut has_digits, mut point) = (0i128, 0i32, false, false);
        // Trailing zeros are put off, so that a long tail of them does not overflow.
        let mut zeros = 0i32;
        for &b in digits {
            match b {
                b'0'..=b'9' => {
                    has_digits = true;
                    places += i32::from(point);
                    if b == b'0' {
                        zeros += i32::from(m != 0);
                        continue;
                    }
                    let scale = 10i128.checked_pow(zeros as u32 + 1).ok_or(NumberFault::DoesNotFit)?;
                    m = m
                        .checked_mul(scale)
                        .and_then(|v| v.checked_add(i128::from(b - b'0')))
                        .ok_or(NumberFault::DoesNotFit)?;
                    zeros = 0;
                }
                b'.' if !point => point = true,
                _ => return Err(NumberFault::Malformed),
            }
        }
        if !has_digits {
            return Err(NumberFault::Malformed);
        }
        if m == 0 {
            return Ok(Self::default());
        }
        Ok(Self { mantissa: if negative { -m } else { m }, exponent: check_exponent(zeros - places)? })
    }
}

fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    }
}

fn check_exponent(exponent: i32) -> Result<i8, NumberFault> {
    i8::try_from(exponent)
        .ok()
        .filter(|e| (-EXPONENT_MAX..=EXPONENT_MAX).contains(e))
        .ok_or(NumberFault::DoesNotFit)
}

/// Writes canonical text: no exponent, no trailing zeros after the point.
fn write_decimal(f: &mut impl fmt::Write, negative: bool, mantissa: u128, exponent: i8) -> fmt::Result {
    if negative {
        f.write_char('-')?;
    }
    if exponent >= 0 {
        write!(f, "{mantissa}")?;
        return (0..if mantissa == 0 { 0 } else { exponent }).try_for_each(|_| f.write_char('0'));
    }
    let places = u32::from(exponent.unsigned_abs());
    match 10u128.checked_pow(places) {
        Some(unit) => write!(f, "{}.{:0w$}", mantissa / unit, mantissa % unit, w = places as usize),
        None => write!(f, "0.{mantissa:0w$}", w = places as usize),
    }
}

impl From<Decimal> for Amount {
    fn from(number: Decimal) -> Self {
        Self { mantissa: number.mantissa.into(), exponent: number.exponent }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, self.mantissa < 0, u128::from(self.mantissa.unsigned_abs()), self.exponent)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, self.mantissa < 0, self.mantissa.unsigned_abs(), self.exponent)
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.decimal() {
            Some(d) => d.fmt(f),
            None => f.write_str("none"),
        }
    }
}

impl fmt::Debug for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Price({self})")
    }
}

const POW10: [i64; 19] = {
    let mut t = [1i64; 19];
    let mut i = 1;
    while i < 19 {
        t[i] = t[i - 1] * 10;
        i += 1;
    }
    t
};

const UPOW10: [u64; 20] = {
    let mut t = [1u64; 20];
    let mut i = 1;
    while i < 20 {
        t[i] = t[i - 1] * 10;
        i += 1;
    }
    t
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(s: &str) -> String {
        Decimal::parse(s.as_bytes()).map_or_else(|e| e.to_string(), |d| d.to_string())
    }

    #[test]
    fn decimals_print_canonically() {
        for (from, to) in [
            ("2500.50", "2500.5"),
            ("100", "100"),
            ("-0.0", "0"),
            ("000.00100", "0.001"),
            (".5", "0.5"),
            ("5.", "5"),
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("9223372036854775808", "decimal does not fit exactly"),
            ("100000000000000000000000000", "100000000000000000000000000"),
            ("0.000000000000000000000000000001", "0.000000000000000000000000000001"),
            ("1e5", "not a decimal number"),
            ("", "not a decimal number"),
            (".", "not a decimal number"),
            ("--1", "not a decimal number"),
            ("1.2.3", "not a decimal number"),
        ] {
            assert_eq!(canonical(from), to, "{from}");
        }
    }

    /// Twelve places came from a real index feed; as a price they must be refused, never rounded.
    #[test]
    fn a_price_holds_nine_places_and_no_more() {
        assert_eq!(Price::parse(b"2981.739999999").unwrap().0, 2_981_739_999_999);
        assert_eq!(Price::parse(b"2981.739999999999"), Err(NumberFault::DoesNotFit));
        assert_eq!(Price::parse(b"1.00000000000000").unwrap().0, 1_000_000_000);
        assert_eq!(Price::parse(b"9223372036.854775806").unwrap().0, i64::MAX - 1);
        assert_eq!(Price::parse(b"9223372036.854775807"), Err(NumberFault::DoesNotFit), "the value for none");
        assert_eq!(Price::parse(b"9223372037"), Err(NumberFault::DoesNotFit));
    }

    #[test]
    fn an_amount_holds_eighteen_digits_and_five_decimals() {
        let text = "999999999999999999.99999";
        assert_eq!(Amount::parse(text.as_bytes()).unwrap().to_string(), text);
    }

    /// A reduction that was rounded left an order with more or less than the venue has.
    #[test]
    fn a_difference_is_exact_or_refused() {
        let difference = |a: &str, b: &str| {
            let [a, b] = [a, b].map(|text| Decimal::parse(text.as_bytes()).unwrap());
            a.checked_sub(b).map(|rest| rest.to_string())
        };
        for (a, b, rest) in [
            ("10", "3", "7"),
            ("300", "100", "200"),
            ("1.5", "0.25", "1.25"),
            ("0.25", "1", "-0.75"),
            ("5", "5", "0"),
            ("0", "7", "-7"),
            ("7", "0", "7"),
            ("0", "0.000000000000000000000000000001", "-0.000000000000000000000000000001"),
            ("9223372036854775807", "1", "9223372036854775806"),
            ("100000000000000000000", "90000000000000000000", "10000000000000000000"),
        ] {
            assert_eq!(difference(a, b).as_deref(), Some(rest), "{a} - {b}");
        }
        assert_eq!(difference("100000000000000000000", "1"), None);
        assert_eq!(difference("1000000000000", "0.000000000000000000000000000001"), None);
        assert_eq!(difference("-9223372036854775808", "1"), None);
        let damaged = Decimal::from_canonical(7, i8::MIN);
        assert_eq!(Decimal::from_int(1).checked_sub(damaged), None);
        assert_eq!(damaged.checked_sub(Decimal::from_canonical(7, i8::MAX)), None);
    }

    proptest! {
        #[test]
        fn differences_agree_with_scaled_integers(a in any::<i64>(), b in any::<i64>(), e in -9i8..9, f in -9i8..9) {
            let (a, b) = (Decimal::new(a, e).unwrap(), Decimal::new(b, f).unwrap());
            let exact = a.scaled(9).unwrap() - b.scaled(9).unwrap();
            match a.checked_sub(b) {
                Some(rest) => prop_assert_eq!(rest.scaled(9), Some(exact)),
                None => prop_assert!(i64::try_from(Amount::new(exact, -9).unwrap().mantissa()).is_err()),
            }
        }

        #[test]
        fn decimal_text_round_trips(m in any::<i64>(), e in -12i8..12) {
            let d = Decimal::new(m, e).unwrap();
            prop_assert_eq!(Decimal::parse(d.to_string().as_bytes()).unwrap(), d);
            prop_assert!(d.mantissa() == 0 || d.mantissa() % 10 != 0);
        }

        #[test]
        fn amount_agrees_with_decimal(m in any::<i64>(), e in -12i8..12) {
            let d = Decimal::new(m, e).unwrap();
            let a = Amount::parse(d.to_string().as_bytes()).unwrap();
            prop_assert_eq!((a.mantissa(), a.exponent()), (i128::from(d.mantissa()), d.exponent()));
        }

        /// Short numbers are read as words; digit by digit they must come to the same, faults too.
        #[test]
        fn short_numbers_agree_with_the_slow_way(
            text in "-?[0-9]{0,9}[.]?[0-9]{0,12}|-?[0-9]{0,17}0{0,6}[.]?0{0,6}|[-0-9.e ]{0,9}",
        ) {
            let slow = Decimal::parse_any(text.as_bytes());
            prop_assert_eq!(Decimal::parse(text.as_bytes()), slow, "{}", &text);
            let price = slow.and_then(Price::from_decimal);
            prop_assert_eq!(Price::parse(text.as_bytes()), price, "{}", &text);
            let amount = Amount::parse_any(text.as_bytes());
            prop_assert_eq!(Amount::parse(text.as_bytes()), amount, "{}", &text);
        }

        #[test]
        fn price_text_round_trips(v in i64::MIN..i64::MAX) {
            prop_assert_eq!(Price::parse(Price(v).to_string().as_bytes()), Ok(Price(v)));
        }
    }
}
