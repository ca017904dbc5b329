//! The side of an order, and of a book.

/// The buying or the selling side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Side {
    /// Buys; the bids of a book.
    Buy = 0,
    /// Sells; the offers of a book.
    Sell = 1,
}

impl Side {
    /// Both, bids first.
    pub const BOTH: [Side; 2] = [Side::Buy, Side::Sell];

    /// Returns `B` or `S`, as in events.
    #[must_use]
    pub const fn letter(self) -> &'static str {
        match self {
            Side::Buy => "B",
            Side::Sell => "S",
        }
    }

    /// Returns the opposite side.
    #[must_use]
    pub const fn opposite(self) -> Side {
        match self {
            Side::Buy => Side::Sell,
            Side::Sell => Side::Buy,
        }
    }

    /// Returns `0` for buy, `1` for sell: an index into an array of both.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Decodes the side code of event records: 1 buy, 2 sell; `None` for any other code.
    #[inline]
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Side> {
        match code {
            1 => Some(Side::Buy),
            2 => Some(Side::Sell),
            _ => None,
        }
    }
}
