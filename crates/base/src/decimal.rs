//! Decimal numbers as they are written.

/// An exact decimal: `mantissa` × 10^`exponent`, exponent 0 or negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    /// All digits as written, without the point.
    pub mantissa: i64,
    /// Minus the number of digits after the point.
    pub exponent: i8,
}
