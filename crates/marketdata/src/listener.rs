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
    /// Receives a book that has changed or recovered. unitape calls it once for each message and instrument, after all
    /// levels of the message were applied.
    fn on_book(&mut self, update: &BookUpdate<'_>) {
        _ = update;
    }

    /// Receives a trade, before the book changes of the same message.
    fn on_trade(&mut self, context: &EventContext<'_>, trade: &Trade) {
        _ = (context, trade);
    }

    /// Receives the state of a product or of an instrument.
    fn on_state(&mut self, context: &EventContext<'_>, state: &TradingState<'_>) {
        _ = (context, state);
    }

    /// Receives an instrument whose book is stale: messages are missing, or a message was impossible. A book is also
    /// stale until its first [`Listener::on_recovered`].
    fn on_stale(&mut self, context: &EventContext<'_>, instrument: InstrumentId) {
        _ = (context, instrument);
    }

    /// Receives an instrument whose book has recovered; [`Listener::on_book`] follows.
    fn on_recovered(&mut self, context: &EventContext<'_>, instrument: InstrumentId) {
        _ = (context, instrument);
    }

    /// Receives an instrument that is new, or that has new reference data of its own or of its product.
    fn on_instrument(&mut self, context: &EventContext<'_>, instrument: InstrumentId) {
        _ = (context, instrument);
    }

    /// Messages are missing on both lines.
    fn on_gap(&mut self, context: &EventContext<'_>, gap: SequenceGap) {
        _ = (context, gap);
    }

    /// Receives a packet or a message that cannot be used.
    fn on_refused(&mut self, context: &EventContext<'_>, refusal: &RefusedInput<'_>) {
        _ = (context, refusal);
    }

    /// Receives a line of the channel that is down, or back. A line is down if it is silent while the other line brings
    /// packets.
    fn on_line(&mut self, context: &EventContext<'_>, state: LineState) {
        _ = (context, state);
    }
}

/// A line that is down, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineState {
    /// Line A is 0, line B is 1.
    pub line: u8,
    /// True if the line is down.
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
    pub context: &'u EventContext<'u>,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The book was emptied before these changes, as by a snapshot: they are its whole contents.
    pub cleared: bool,
    /// The changes, in order; empty if the book has only recovered.
    pub changes: &'u [ChangedLevel],
    /// The whole depth after the change.
    pub book: BookView<'u>,
}

/// A level that changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangedLevel {
    /// The instrument.
    pub(crate) instrument: InstrumentId,
    /// The index of the change among the changes of its message.
    pub(crate) number: u32,
    /// The side of the level.
    pub side: Side,
    /// The change.
    pub action: UpdateAction,
    /// The level's depth from the best, from 1, at the time of the change. Later changes of the same message may move
    /// it.
    pub depth: u32,
    /// The level after the change, or before its removal.
    pub level: StoredLevel,
}

/// A listener that ignores every call.
impl Listener for () {}

impl<L: Listener + ?Sized> Listener for &mut L {
    fn on_book(&mut self, update: &BookUpdate<'_>) {
        (**self).on_book(update);
    }

    fn on_trade(&mut self, context: &EventContext<'_>, trade: &Trade) {
        (**self).on_trade(context, trade);
    }

    fn on_state(&mut self, context: &EventContext<'_>, state: &TradingState<'_>) {
        (**self).on_state(context, state);
    }

    fn on_stale(&mut self, context: &EventContext<'_>, instrument: InstrumentId) {
        (**self).on_stale(context, instrument);
    }

    fn on_recovered(&mut self, context: &EventContext<'_>, instrument: InstrumentId) {
        (**self).on_recovered(context, instrument);
    }

    fn on_instrument(&mut self, context: &EventContext<'_>, instrument: InstrumentId) {
        (**self).on_instrument(context, instrument);
    }

    fn on_gap(&mut self, context: &EventContext<'_>, gap: SequenceGap) {
        (**self).on_gap(context, gap);
    }

    fn on_refused(&mut self, context: &EventContext<'_>, refusal: &RefusedInput<'_>) {
        (**self).on_refused(context, refusal);
    }

    fn on_line(&mut self, context: &EventContext<'_>, state: LineState) {
        (**self).on_line(context, state);
    }
}
