//! A range of bytes in a buffer that somebody else holds.

use std::convert::Infallible;

/// Offsets from `start` up to, not including, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// Returns these bytes of `buf`; empty if the span lies outside.
    #[inline]
    #[must_use]
    pub fn slice(self, buf: &[u8]) -> &[u8] {
        buf.get(self.start..self.end).unwrap_or_default()
    }

    /// Returns the length in bytes.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        self.end - self.start
    }

    /// Returns whether the span is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.end == self.start
    }
}

/// Some framers skip nothing.
impl From<Infallible> for Span {
    fn from(skipped: Infallible) -> Self {
        match skipped {}
    }
}
