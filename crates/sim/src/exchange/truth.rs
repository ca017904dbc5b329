//! The truth: the books of the exchange as they were at each number of their product, to compare a receiver's with.

use super::book::{ExchangeBook, ExchangeLevel, PublishedTrade};
use std::collections::VecDeque;
use std::sync::Arc;
use unitape_model::Side;

/// The progress of a product's messages. Numbers begin again with each restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ProductProgress {
    /// Restarts before.
    pub restarts: u32,
    /// `MsgSeqNum` of the product's last message; nought before the first.
    pub seq: u32,
}

/// The published state of an instrument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedBookSnapshot {
    /// Since this message.
    pub at: ProductProgress,
    /// Best first.
    pub bids: Arc<[ExchangeLevel]>,
    /// Best first.
    pub offers: Arc<[ExchangeLevel]>,
    /// `SecurityTradingStatus`.
    pub status: u32,
    /// The last one since the books began.
    pub trade: Option<PublishedTrade>,
}

/// `SecurityTradingStatus`: traded.
pub const TRADED: u32 = 17;
/// `SecurityTradingStatus`: halted.
pub const HALTED: u32 = 2;

/// The books as they were, and where each product is.
#[derive(Debug, Clone)]
pub struct BookHistory {
    /// By instrument.
    moments: Vec<VecDeque<PublishedBookSnapshot>>,
    /// By product.
    at: Vec<ProductProgress>,
    moments_max: usize,
    forgotten: u64,
}

impl BookHistory {
    pub(super) fn new(products: usize, moments_max: usize) -> Self {
        let moments_max = moments_max.max(1);
        Self {
            moments: Vec::new(),
            at: vec![ProductProgress::default(); products],
            moments_max,
            forgotten: 0,
        }
    }

    /// The state of a product, by its place.
    #[must_use]
    pub fn progress_of(&self, product: usize) -> ProductProgress {
        self.at[product]
    }

    /// An instrument as it was when its product was at `at`; none where it was not there yet, or that is forgotten.
    #[must_use]
    pub fn moment(&self, instrument: usize, at: ProductProgress) -> Option<&PublishedBookSnapshot> {
        let moments = self.moments.get(instrument)?;
        let behind = moments.partition_point(|moment| moment.at <= at);
        behind.checked_sub(1).map(|index| &moments[index])
    }

    /// An instrument as it was at `at` and as it was since, until the next restart.
    pub fn moments_since(
        &self,
        instrument: usize,
        at: ProductProgress,
    ) -> impl Iterator<Item = &PublishedBookSnapshot> {
        let moments = self.moments.get(instrument);
        let from = moments.map_or(0, |m| m.partition_point(|moment| moment.at <= at).saturating_sub(1));
        let behind = moments.into_iter().flat_map(move |m| m.range(from..));
        behind.take_while(move |moment| moment.at.restarts <= at.restarts)
    }

    /// The current state of an instrument.
    #[must_use]
    pub fn current_moment(&self, instrument: usize) -> Option<&PublishedBookSnapshot> {
        self.moments.get(instrument)?.back()
    }

    /// Moments that were more than were to be kept of an instrument.
    #[must_use]
    pub fn forgotten_moments(&self) -> u64 {
        self.forgotten
    }

    /// The product's next message.
    pub(super) fn next(&mut self, product: usize) -> ProductProgress {
        self.at[product].seq += 1;
        self.at[product]
    }

    pub(super) fn restart(&mut self) {
        for at in &mut self.at {
            *at = ProductProgress { restarts: at.restarts + 1, seq: 0 };
        }
    }

    /// A book has changed with the message at `at`.
    pub(super) fn put(
        &mut self,
        instrument: usize,
        at: ProductProgress,
        book: &ExchangeBook,
        status: u32,
        trade: Option<PublishedTrade>,
        changed: [bool; 2],
    ) {
        if self.moments.len() <= instrument {
            self.moments.resize(instrument + 1, VecDeque::new());
        }
        let moments = &mut self.moments[instrument];
        let side = |side: Side, before: Option<&Arc<[ExchangeLevel]>>| match before {
            Some(before) if !changed[side as usize] => before.clone(),
            _ => book.level_snapshot(side),
        };
        let last = moments.back();
        let bids = side(Side::Buy, last.map(|moment| &moment.bids));
        let offers = side(Side::Sell, last.map(|moment| &moment.offers));
        if last.is_some_and(|last| last.at == at) {
            moments.pop_back();
        }
        if moments.len() == self.moments_max {
            moments.pop_front();
            self.forgotten += 1;
        }
        moments.push_back(PublishedBookSnapshot { at, bids, offers, status, trade });
    }
}
