//! The calls that a strategy receives.

use crate::engine::{EventContext, RefusedInput, Trade, TradingState, UpdateAction};
use crate::view::BookView;
use unitape_book::StoredLevel;
use unitape_model::{InstrumentId, ProductId, Side, UnixNanos};

/// Receives the calls. Every call is made in the thread that supplies packets, between two packets. It must be short,
/// because nothing is received meanwhile. Override only the callbacks you need; the defaults do nothing.
///
/// Instruments and products are numbers, looked up in [`EventContext::tables`]. Calls are made for subscriptions
/// only, except [`Listener::on_gap`], [`Listener::on_refused`] and [`Listener::on_line`].
pub trait Listener {
    /// The book of an instrument has changed, or has recovered. Called once for each message and instrument, after
    /// all levels of the message were applied.
    fn on_book(&mut self, update: &BookUpdate<'_>) {
        _ = update;
    }

    /// A trade; called before the book changes of the same message.
    fn on_trade(&mut self, at: &EventContext<'_>, trade: &Trade) {
        _ = (at, trade);
    }

    /// The state of a product or of an instrument.
    fn on_state(&mut self, at: &EventContext<'_>, state: &TradingState<'_>) {
        _ = (at, state);
    }

    /// The book of the instrument is stale: messages are missing, or one was impossible. A book is also stale until
    /// its first [`Listener::on_recovered`].
    fn on_stale(&mut self, at: &EventContext<'_>, instrument: InstrumentId) {
        _ = (at, instrument);
    }

    /// The book of the instrument has recovered; [`Listener::on_book`] follows.
    fn on_recovered(&mut self, at: &EventContext<'_>, instrument: InstrumentId) {
        _ = (at, instrument);
    }

    /// An instrument is new, or reference data of it or of its product changed.
    fn on_instrument(&mut self, at: &EventContext<'_>, instrument: InstrumentId) {
        _ = (at, instrument);
    }

    /// Messages are missing on both lines.
    fn on_gap(&mut self, at: &EventContext<'_>, gap: SequenceGap) {
        _ = (at, gap);
    }

    /// A packet or a message cannot be used.
    fn on_refused(&mut self, at: &EventContext<'_>, refusal: &RefusedInput<'_>) {
        _ = (at, refusal);
    }

    /// A line of the channel is down, or back. A line is down if it is silent while the other line brings packets.
    fn on_line(&mut self, at: &EventContext<'_>, state: LineState) {
        _ = (at, state);
    }
}

/// A line that is down, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineState {
    /// Line A is 0, line B is 1.
    pub line: u8,
    /// It is down.
    pub down: bool,
    /// Since when it was silent, by receive times.
    pub since: UnixNanos,
}

/// The range that is missing, with its first and last number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SequenceGap {
    /// Messages of a product.
    Messages { product: ProductId, from: u64, to: u64 },
    /// Packets of the channel.
    Packets { from: u64, to: u64 },
    /// Levels of a product that waited for a snapshot, and for which there was no room.
    NoRoom { product: ProductId },
}

/// A book has changed.
#[derive(Clone, Copy, Debug)]
pub struct BookUpdate<'u> {
    /// The message that changed it.
    pub at: &'u EventContext<'u>,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The book was emptied before these changes, as by a snapshot: they are its whole contents.
    pub cleared: bool,
    /// The changes, in order; empty if the book has only recovered.
    pub changes: &'u [ChangedLevel],
    /// The whole depth as it is now.
    pub book: BookView<'u>,
}

/// A level that changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangedLevel {
    /// The instrument.
    pub(crate) instrument: InstrumentId,
    /// Its number among the changes of its message.
    pub(crate) number: u32,
    /// Its side.
    pub side: Side,
    /// The change.
    pub action: UpdateAction,
    /// Its place from the best, from 1, at the time of the change. Later changes of the same message may move it.
    pub depth: u32,
    /// The level as it became, or as it was before it was removed.
    pub level: StoredLevel,
}

/// A listener that ignores every call.
impl Listener for () {}

impl<L: Listener + ?Sized> Listener for &mut L {
    fn on_book(&mut self, update: &BookUpdate<'_>) {
        (**self).on_book(update);
    }

    fn on_trade(&mut self, at: &EventContext<'_>, trade: &Trade) {
        (**self).on_trade(at, trade);
    }

    fn on_state(&mut self, at: &EventContext<'_>, state: &TradingState<'_>) {
        (**self).on_state(at, state);
    }

    fn on_stale(&mut self, at: &EventContext<'_>, instrument: InstrumentId) {
        (**self).on_stale(at, instrument);
    }

    fn on_recovered(&mut self, at: &EventContext<'_>, instrument: InstrumentId) {
        (**self).on_recovered(at, instrument);
    }

    fn on_instrument(&mut self, at: &EventContext<'_>, instrument: InstrumentId) {
        (**self).on_instrument(at, instrument);
    }

    fn on_gap(&mut self, at: &EventContext<'_>, gap: SequenceGap) {
        (**self).on_gap(at, gap);
    }

    fn on_refused(&mut self, at: &EventContext<'_>, refusal: &RefusedInput<'_>) {
        (**self).on_refused(at, refusal);
    }

    fn on_line(&mut self, at: &EventContext<'_>, state: LineState) {
        (**self).on_line(at, state);
    }
}
