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
    pub progress: ProductProgress,
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
    progress: Vec<ProductProgress>,
    moments_max: usize,
    forgotten: u64,
}

impl BookHistory {
    pub(super) fn new(products: usize, moments_max: usize) -> Self {
        let moments_max = moments_max.max(1);
        Self {
            moments: Vec::new(),
            progress: vec![ProductProgress::default(); products],
            moments_max,
            forgotten: 0,
        }
    }

    /// Returns the progress of a product, by index.
    #[must_use]
    pub fn progress_of(&self, product: usize) -> ProductProgress {
        self.progress[product]
    }

    /// Returns an instrument's state when its product was at `progress`. Returns `None` if the instrument did not exist
    /// yet, or if the state is forgotten.
    #[must_use]
    pub fn moment(&self, instrument: usize, progress: ProductProgress) -> Option<&PublishedBookSnapshot> {
        let moments = self.moments.get(instrument)?;
        let end_index = moments.partition_point(|moment| moment.progress <= progress);
        end_index.checked_sub(1).map(|index| &moments[index])
    }

    /// Iterates over an instrument's state at `progress` and all later states, until the next restart.
    pub fn moments_since(
        &self,
        instrument: usize,
        progress: ProductProgress,
    ) -> impl Iterator<Item = &PublishedBookSnapshot> {
        let moments = self.moments.get(instrument);
        let from =
            moments.map_or(0, |m| m.partition_point(|moment| moment.progress <= progress).saturating_sub(1));
        let later_moments = moments.into_iter().flat_map(move |m| m.range(from..));
        later_moments.take_while(move |moment| moment.progress.restarts <= progress.restarts)
    }

    /// Returns the current state of an instrument.
    #[must_use]
    pub fn current_moment(&self, instrument: usize) -> Option<&PublishedBookSnapshot> {
        self.moments.get(instrument)?.back()
    }

    /// Moments that were more than were to be kept of an instrument.
    #[must_use]
    pub fn forgotten_moments(&self) -> u64 {
        self.forgotten
    }

    /// Advances to the product's next message.
    pub(super) fn next(&mut self, product: usize) -> ProductProgress {
        self.progress[product].seq += 1;
        self.progress[product]
    }

    pub(super) fn restart(&mut self) {
        for progress in &mut self.progress {
            *progress = ProductProgress { restarts: progress.restarts + 1, seq: 0 };
        }
    }

    /// Records a book that the message at `progress` changed.
    pub(super) fn record_book(
        &mut self,
        instrument: usize,
        progress: ProductProgress,
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
        if last.is_some_and(|last| last.progress == progress) {
            moments.pop_back();
        }
        if moments.len() == self.moments_max {
            moments.pop_front();
            self.forgotten += 1;
        }
        moments.push_back(PublishedBookSnapshot { progress, bids, offers, status, trade });
    }
}
