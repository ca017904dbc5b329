//! Events: the contents of the packets of all channels, in order.
//!
//! A message becomes any number of events and then [`MarketEvent::End`]. Instruments, products and channels are small
//! numbers, looked up in [`ReferenceTables`]; prices and quantities are exact.
//!
//! **Guarantees.** The events depend only on the packets, their order and their receive times. An instrument is stale
//! until it is [`MarketEvent::Recovered`]; without snapshots, that is at its first mention. From there to the next
//! [`MarketEvent::Stale`] its levels are complete: a book that applies [`MarketEvent::Clear`] and
//! [`MarketEvent::Level`] is the venue's. A stale instrument gets no levels except those of the snapshot that repairs
//! it; trades and states continue. Only where no channel has snapshots do levels continue after a gap.

use std::net::SocketAddr;
use unitape_model::{ChannelId, InstrumentId, Price, ProductId, Quantity, Side, UnixNanos};

/// A datagram.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'p> {
    /// The address it was sent to, which determines its channel and line.
    pub to: SocketAddr,
    /// The receive time; 0 if its source has no receive times. Windows are measured by it.
    pub ts_recv: UnixNanos,
    /// The place of its payload in the source; returned in [`EventContext::position`].
    pub position: u64,
    /// The bytes of the packet.
    pub payload: &'p [u8],
}

/// Receives events.
pub trait MarketEventSink {
    /// Receives the next event.
    fn emit(&mut self, context: &EventContext<'_>, step: MarketEvent<'_>);

    /// Receives a [`MarketEvent::Level`], the most frequent event, for sinks with a shorter way for it.
    #[inline(always)]
    fn emit_level(&mut self, context: &EventContext<'_>, level: &LevelUpdate) {
        self.emit(context, MarketEvent::Level(*level));
    }
}

impl<F: FnMut(&EventContext<'_>, MarketEvent<'_>)> MarketEventSink for F {
    #[inline]
    fn emit(&mut self, context: &EventContext<'_>, step: MarketEvent<'_>) {
        self(context, step);
    }
}

/// The message that an event belongs to.
#[derive(Clone, Copy, Debug)]
pub struct EventContext<'t> {
    /// Products, instruments, channels.
    pub tables: &'t ReferenceTables,
    /// The channel, an index of [`ReferenceTables::channels`].
    pub channel: ChannelId,
    /// Line A is 0, line B is 1.
    pub line: u8,
    /// The event belongs to a snapshot, or to changes that waited for a snapshot.
    pub snapshot: bool,
    /// The number of the message in its product or channel.
    pub sequence: Option<u64>,
    /// Event time: of the entry, else of the message, else of the packet.
    pub ts_event: UnixNanos,
    /// Receive time of the packet.
    pub ts_recv: UnixNanos,
    /// The place of the message in the source: the place of its packet and its own in it.
    pub position: u64,
    /// Length in bytes.
    pub length: u32,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MarketEvent<'s> {
    /// A product is new, or its reference data changed: see [`ReferenceTables::products`].
    Product(ProductId),
    /// An instrument is new, or its reference data changed: see [`ReferenceTables::instruments`].
    Instrument(InstrumentId),
    /// A level of a book.
    Level(LevelUpdate),
    /// The book of an instrument is empty, or the next events give it in full.
    #[allow(missing_docs)]
    Clear { instrument: InstrumentId },
    /// A trade.
    Trade(Trade),
    /// The state of a product, or of an instrument.
    State(TradingState<'s>),
    /// The book of the instrument is stale from here on. Where a snapshot will repair it (`mended`), no levels follow
    /// until then. Where no channel has snapshots, levels continue.
    #[allow(missing_docs)]
    Stale { instrument: InstrumentId, mended: bool },
    /// The book of the instrument has recovered.
    #[allow(missing_docs)]
    Recovered { instrument: InstrumentId },
    /// Messages of a product are missing; the first and the last of them. These are numbers of messages, also where
    /// the packets of several channels have their own. `alone`: no gap of packets was reported for them.
    #[allow(missing_docs)]
    Missing { product: ProductId, from: u64, to: u64, is_unexplained: bool },
    /// The product has all its instruments again, and needs no snapshots.
    #[allow(missing_docs)]
    Whole { product: ProductId },
    /// More levels of a product wait for snapshots than there is room for; the oldest are dropped.
    #[allow(missing_docs)]
    NoRoom { product: ProductId },
    /// Packets of a channel arrived on neither line.
    #[allow(missing_docs)]
    Lost { from: u64, to: u64 },
    /// The numbers of a channel begin again.
    Restart,
    /// A line of a channel is silent while the other line brings packets; since when, by receive times.
    #[allow(missing_docs)]
    LineDown { line: u8, since: UnixNanos },
    /// The line is back; since when it had been silent.
    #[allow(missing_docs)]
    LineUp { line: u8, since: UnixNanos },
    /// A packet or a message cannot be used.
    Refused(RefusedInput<'s>),
    /// The end of a message, or of a packet that was not decoded.
    End(MessageOutcome),
}

/// A level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelUpdate {
    /// The instrument.
    pub instrument: InstrumentId,
    /// The level's side.
    pub side: Side,
    /// The change.
    pub action: UpdateAction,
    /// The level's price; [`Price::NONE`] if the message has no price.
    pub px: Price,
    /// The total quantity at this level.
    pub qty: Option<Quantity>,
    /// The number of orders.
    pub orders: Option<u32>,
    /// The level's depth from the best, from 1. Without it the price identifies the level.
    pub depth: Option<u16>,
}

/// A trade.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trade {
    /// The instrument.
    pub instrument: InstrumentId,
    /// The price.
    pub px: Price,
    /// The quantity.
    pub qty: Quantity,
    /// The venue's trade id.
    pub id: Option<u64>,
    /// The side of the aggressor.
    pub aggressor: Option<Side>,
}

/// A state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TradingState<'s> {
    /// The product.
    pub product: ProductId,
    /// The instrument; `None` for all instruments of the product.
    pub instrument: Option<InstrumentId>,
    /// The venue's code.
    pub code: StateCode<'s>,
    /// The phase of the code in the configuration.
    pub phase: Option<TradingPhase>,
}

/// A code as the venue sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateCode<'s> {
    /// A number.
    Number(u64),
    /// Letters.
    Text(&'s [u8]),
}

/// The change of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum UpdateAction {
    /// The level is inserted. By depth, the levels at its depth and after it move back.
    Add,
    /// The level changes. By depth, the price may change too.
    Change,
    /// The level is removed. By depth, the levels after it move up.
    Delete,
}

/// A phase of trading, as events have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum TradingPhase {
    Pre,
    Open,
    Auction,
    Fixing,
    Halt,
    Close,
}

impl TradingPhase {
    /// All of them, as words of events.
    pub const WORDS: [&'static str; 6] = ["pre", "open", "auction", "fixing", "halt", "close"];

    /// Returns the word for the value.
    #[must_use]
    pub const fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// A packet or message that cannot be used, with the reason.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RefusedInput<'s> {
    /// The reason in one word.
    pub code: &'static str,
    /// The reason in a sentence, with template, field and byte.
    pub detail: &'s str,
    /// The bytes.
    pub raw: &'s [u8],
}

/// The outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageOutcome {
    /// The message was used: its events precede this event, if there are any.
    Used,
    /// The message has nothing that the engine needs.
    Ignored,
    /// The message's levels wait for a snapshot, and follow with it.
    Waits,
    /// The other line brought it before, or it arrived twice.
    Duplicate,
    /// The message was refused: [`MarketEvent::Refused`] precedes this event.
    Refused,
    /// A snapshot that arrived before its gap was noticed, and had ended then: it is used now.
    Early,
}

/// The known channels, products and instruments.
#[derive(Clone, Debug, Default)]
pub struct ReferenceTables {
    /// In the order of the configuration.
    pub channels: Vec<Channel>,
    /// In the order in which they were seen.
    pub products: Vec<Product>,
    /// In the order in which they were seen.
    pub instruments: Vec<Instrument>,
}

/// A channel.
#[derive(Clone, Debug)]
pub struct Channel {
    /// The channel's name.
    pub name: String,
    /// The channel's role.
    pub role: ChannelRole,
}

/// The kind of data that a channel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelRole {
    /// Changes of books.
    Incremental,
    /// Whole books.
    Snapshot,
    /// Products and instruments.
    Reference,
}

impl ChannelRole {
    /// Returns the word for the role.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            ChannelRole::Incremental => "incremental",
            ChannelRole::Snapshot => "snapshot",
            ChannelRole::Reference => "reference",
        }
    }
}

/// A product: the unit for which messages are numbered. If a venue numbers messages by channel, a channel is a product.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Product {
    /// The venue's id of it.
    pub id: String,
    /// The product's name; empty until reference data give a name.
    pub name: String,
    /// The subscription group; the product's name if reference data give no group.
    pub group: String,
    /// The most levels of a side, if reference data give that.
    pub depth: Option<u16>,
    /// The least step of a price.
    pub tick: Option<Price>,
    /// The product's currency.
    pub currency: String,
}

/// An instrument.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instrument {
    /// The venue's id of it; its name in events.
    pub id: String,
    /// The product, an index of [`ReferenceTables::products`].
    pub product: ProductId,
    /// The instrument's symbol or description; empty until reference data give it.
    pub symbol: String,
    /// The subscription group, if it differs from the product's.
    pub group: String,
    /// The most levels of a side, if reference data give that for the instrument and not for its product.
    pub depth: Option<u16>,
    /// The least step of a price.
    pub tick: Option<Price>,
    /// The contract's size.
    pub multiplier: Option<Quantity>,
    /// The instrument's currency, if it differs from the product's.
    pub currency: String,
}

impl ReferenceTables {
    /// Iterates over all instruments seen so far.
    pub fn instrument_ids(&self) -> impl Iterator<Item = InstrumentId> + use<> {
        (0..self.instruments.len() as u32).map(InstrumentId)
    }

    /// Returns the subscription group of an instrument.
    #[must_use]
    pub fn group(&self, instrument: InstrumentId) -> &str {
        let instrument = &self.instruments[instrument.index()];
        match &self.products[instrument.product.index()] {
            _ if !instrument.group.is_empty() => &instrument.group,
            product if !product.group.is_empty() => &product.group,
            product if !product.name.is_empty() => &product.name,
            product => &product.id,
        }
    }
}
