//! What a strategy is told.

use crate::engine::{Action, At, Refusal, State, Trade};
use crate::view::BookView;
use unitape_book::StoredLevel;
use unitape_model::{InstrumentId, ProductId, Side, UnixNanos};

/// Who is told. Every call is made in the thread that gives packets, between two packets; it must be short, for nothing is
/// received meanwhile. What is not wanted is left as it is here: it does nothing.
///
/// Instruments and products are numbers, looked up in [`At::tables`]. Calls are for what is subscribed only, but for
/// [`Listener::gap`], [`Listener::refused`] and [`Listener::line`].
pub trait Listener {
    /// The book of an instrument has changed, or is known again. Once for each message and instrument, when all levels of
    /// the message have been applied.
    fn book(&mut self, update: &Update<'_>) {
        _ = update;
    }

    /// A trade; before the changes of books that are in the same message.
    fn trade(&mut self, at: &At<'_>, trade: &Trade) {
        _ = (at, trade);
    }

    /// The state of a product or of an instrument.
    fn state(&mut self, at: &At<'_>, state: &State<'_>) {
        _ = (at, state);
    }

    /// From here on the book of the instrument is not to be trusted: messages are missing, or one said what cannot be. So it
    /// is until [`Listener::recovered`] says otherwise for the first time.
    fn stale(&mut self, at: &At<'_>, instrument: InstrumentId) {
        _ = (at, instrument);
    }

    /// From here on it is: followed by [`Listener::book`].
    fn recovered(&mut self, at: &At<'_>, instrument: InstrumentId) {
        _ = (at, instrument);
    }

    /// An instrument is new, or something is told of it or of its product.
    fn instrument(&mut self, at: &At<'_>, instrument: InstrumentId) {
        _ = (at, instrument);
    }

    /// Messages are missing on both lines.
    fn gap(&mut self, at: &At<'_>, gap: Gap) {
        _ = (at, gap);
    }

    /// A packet or a message cannot be used.
    fn refused(&mut self, at: &At<'_>, refusal: &Refusal<'_>) {
        _ = (at, refusal);
    }

    /// A line of the channel is down, or back: nothing came on it while the other line brought packets.
    fn line(&mut self, at: &At<'_>, state: LineState) {
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

/// What is missing, the first and the last of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Gap {
    /// Messages of a product.
    Messages { product: ProductId, from: u64, to: u64 },
    /// Packets of the channel.
    Packets { from: u64, to: u64 },
    /// Levels of a product that waited for a snapshot, and for which there was no room.
    NoRoom { product: ProductId },
}

/// A book has changed.
#[derive(Clone, Copy, Debug)]
pub struct Update<'u> {
    /// By which message.
    pub at: &'u At<'u>,
    /// Whose book.
    pub instrument: InstrumentId,
    /// The book was emptied before these changes, as by a snapshot: they are all it has.
    pub cleared: bool,
    /// What changed, in order; empty where only its being known has.
    pub changes: &'u [Changed],
    /// The whole depth as it is now.
    pub book: BookView<'u>,
}

/// A level that changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Changed {
    /// Whose.
    pub(crate) instrument: InstrumentId,
    /// Among those of its message.
    pub(crate) number: u32,
    /// Which side.
    pub side: Side,
    /// What became of it.
    pub action: Action,
    /// Its place from the best, from 1, when it changed; by then, as later changes of the same message may move it.
    pub depth: u32,
    /// The level as it became, or as it was before it was taken out.
    pub level: StoredLevel,
}

/// Nobody.
impl Listener for () {}

impl<L: Listener + ?Sized> Listener for &mut L {
    fn book(&mut self, update: &Update<'_>) {
        (**self).book(update);
    }

    fn trade(&mut self, at: &At<'_>, trade: &Trade) {
        (**self).trade(at, trade);
    }

    fn state(&mut self, at: &At<'_>, state: &State<'_>) {
        (**self).state(at, state);
    }

    fn stale(&mut self, at: &At<'_>, instrument: InstrumentId) {
        (**self).stale(at, instrument);
    }

    fn recovered(&mut self, at: &At<'_>, instrument: InstrumentId) {
        (**self).recovered(at, instrument);
    }

    fn instrument(&mut self, at: &At<'_>, instrument: InstrumentId) {
        (**self).instrument(at, instrument);
    }

    fn gap(&mut self, at: &At<'_>, gap: Gap) {
        (**self).gap(at, gap);
    }

    fn refused(&mut self, at: &At<'_>, refusal: &Refusal<'_>) {
        (**self).refused(at, refusal);
    }

    fn line(&mut self, at: &At<'_>, state: LineState) {
        (**self).line(at, state);
    }
}
