//! The books that a receiver has against the exchange's own.

use crate::exchange::{Exchange, ExchangeInstrument, ExchangeLevel, ExchangeProduct};

/// A level in the exact units of receivers, which know no exponents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExactLevel {
    /// The price, in units of 1e-9.
    pub px: i64,
    /// The quantity.
    pub qty: u64,
    /// The number of orders.
    pub orders: u32,
}

/// A book as a receiver has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReceivedBook {
    /// The book itself says that it cannot be trusted.
    pub stale: bool,
    /// Best first.
    pub bids: Vec<ExactLevel>,
    /// Best first.
    pub offers: Vec<ExactLevel>,
}

impl ExchangeProduct {
    /// Converts levels to the exact units of receivers.
    #[must_use]
    pub fn exact_levels(&self, levels: &[ExchangeLevel]) -> Vec<ExactLevel> {
        let unit = 10i64.pow((9 + i32::from(self.exponent)) as u32);
        let to_exact =
            |l: &ExchangeLevel| ExactLevel { px: l.px * unit, qty: l.qty.into(), orders: l.orders };
        levels.iter().map(to_exact).collect()
    }
}

impl Exchange {
    /// Finds the first of the `wanted` instruments whose book differs from the exchange's present book, and describes
    /// the difference. A deleted instrument may be stale: the exchange publishes nothing more about it.
    pub fn first_difference(
        &self,
        mut wanted: impl FnMut(&ExchangeInstrument) -> bool,
        mut received: impl FnMut(&ExchangeInstrument) -> Option<ReceivedBook>,
    ) -> Option<String> {
        let (world, truth) = (self.world(), self.truth());
        for (n, instrument) in world.instruments.iter().enumerate() {
            let Some(moment) = truth.current_moment(n).filter(|_| wanted(instrument)) else { continue };
            let product = world.product_of(n);
            let (bids, offers) = (product.exact_levels(&moment.bids), product.exact_levels(&moment.offers));
            let difference = match received(instrument) {
                None if !instrument.is_deleted => "is not known".to_owned(),
                Some(book) if book.stale && !instrument.is_deleted => "is stale".to_owned(),
                Some(book) if !book.stale && book.bids != bids => {
                    format!("has the bids {:?}, not {bids:?}", book.bids)
                }
                Some(book) if !book.stale && book.offers != offers => {
                    format!("has the offers {:?}, not {offers:?}", book.offers)
                }
                _ => continue,
            };
            return Some(format!("instrument {} {difference}", instrument.id));
        }
        None
    }
}
