//! A quote in its slot, and the order of the quotes of a side.

use super::exact::Units;
use std::cmp::Ordering;
use std::sync::Arc;
use unitape_model::{Decimal, InlineId, Price, Side};

/// A quote that is in a book.
#[derive(Clone, Debug)]
pub(super) struct Quote {
    /// The slot. Rule 8: with pair, date and side, at most one quote has it.
    pub slot: QuoteSlot,
    /// The price as quoted, above zero.
    pub px: Price,
    /// Whether the pair was quoted in the other direction.
    pub inverted: bool,
    /// The quantity as quoted, above zero.
    pub qty: Decimal,
    /// Rule 12: the quantity in base, in units of 10⁻³⁹.
    pub base_units: Units,
    pub id: QuoteId,
    /// Rule 6: `now` when it was placed, its age.
    pub placed_ns: i64,
    /// Rule 5: it is on offer while `now` is less.
    pub valid_until: Option<i64>,
    /// Why it was not on offer at the last evaluation.
    pub off_reason: Option<OffReason>,
    /// Rule 17: whether it was counted as a spike.
    pub was_spike: bool,
}

/// The place of a quote on its side of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QuoteSlot {
    pub publisher: u16,
    pub tier: u64,
    pub full_amount: bool,
}

/// Why a quote that is in a book is not on offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffReason {
    /// Rule 18: a control disabled its bank.
    Disabled,
    /// Rule 17: it is too far from the median of the other banks.
    Spike,
}

impl OffReason {
    /// Returns the word that JSON uses for this state.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Spike => "spike",
        }
    }
}

/// The id of a quote. Rule 10: the number 7 is not the text `7`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum QuoteId {
    #[default]
    Missing,
    Number(u64),
    Short {
        length: u8,
        bytes: [u8; Self::SHORT_MAX],
    },
    /// Shared, so that a copy allocates nothing.
    Long(Arc<[u8]>),
}

impl QuoteId {
    /// The longest text that is kept without an allocation: a UUID, and some more.
    const SHORT_MAX: usize = 46;

    pub(super) fn new(id: InlineId<'_>) -> Self {
        match id {
            InlineId::Number(number) => Self::Number(number),
            InlineId::Text(text) if text.len() <= Self::SHORT_MAX => {
                let mut bytes = [0; Self::SHORT_MAX];
                bytes[..text.len()].copy_from_slice(text);
                Self::Short { length: text.len() as u8, bytes }
            }
            InlineId::Text(text) => Self::Long(text.into()),
        }
    }

    pub(super) fn get(&self) -> Option<InlineId<'_>> {
        match self {
            Self::Missing => None,
            Self::Number(number) => Some(InlineId::Number(*number)),
            Self::Short { length, bytes } => Some(InlineId::Text(&bytes[..usize::from(*length)])),
            Self::Long(text) => Some(InlineId::Text(text)),
        }
    }

    /// Returns the number of bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        if let Self::Long(text) = self { text.len() } else { 0 }
    }
}

impl Quote {
    /// Compares two quotes of a side, the better first. Rule 14: price, age, bank bytewise, lower tier, sweepable first.
    /// `bank` returns the name of a publisher.
    pub(super) fn compare<'n>(&self, other: &Self, side: Side, bank: impl Fn(u16) -> &'n str) -> Ordering {
        let price = self.price().compare(other.price());
        let price = if side == Side::Buy { price.reverse() } else { price };
        let (a, b) = (&self.slot, &other.slot);
        price
            .then_with(|| self.placed_ns.cmp(&other.placed_ns))
            .then_with(|| {
                if a.publisher == b.publisher {
                    Ordering::Equal
                } else {
                    bank(a.publisher).cmp(bank(b.publisher))
                }
            })
            .then_with(|| a.tier.cmp(&b.tier))
            .then_with(|| a.full_amount.cmp(&b.full_amount))
    }

    pub(super) fn price(&self) -> QuotedPrice {
        QuotedPrice { px: self.px, inverted: self.inverted }
    }
}

/// A price as quoted, and whether the pair was quoted the other way round.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuotedPrice {
    pub px: Price,
    pub inverted: bool,
}

impl QuotedPrice {
    /// Compares prices of the pair the right way round. An inverted price is 10¹⁸ over its units, so the comparison
    /// multiplies both by these.
    pub(super) fn compare(self, other: Self) -> Ordering {
        let (a, b) = (self.px, other.px);
        match (self.inverted, other.inverted) {
            (false, false) => a.0.cmp(&b.0),
            (true, true) => b.0.cmp(&a.0),
            (false, true) => (i128::from(a.0) * i128::from(b.0)).cmp(&UNIT_SQUARED),
            (true, false) => UNIT_SQUARED.cmp(&(i128::from(a.0) * i128::from(b.0))),
        }
    }
}

/// One, squared, in units of 10⁻⁹.
pub(super) const UNIT_SQUARED: i128 = 1_000_000_000_000_000_000;
