//! Market data for a strategy: it subscribes to products, and is called when a book changes, a trade happens, a state
//! changes, or something is missing.
//!
//! ```text
//!  pcap ──────────┐          ┌────────────────────────────┐ events  ┌─────────┐
//!  multicast A, B ┼ packets ▶│ two lines, gaps, recovery  │────────▶│  books  │──▶ Listener
//!  samples ───────┘          │ (engine)                   │         └─────────┘
//!                            └────────────────────────────┘      what is subscribed
//! ```
//!
//! ```no_run
//! use unitape_marketdata::{Handler, Listener, LiveOptions, Side, Subscription, BookUpdate};
//!
//! struct Strategy;
//!
//! impl Listener for Strategy {
//!     fn on_book(&mut self, update: &BookUpdate<'_>) {
//!         if let (Some(bid), Some(ask)) = (update.book.best(Side::Buy), update.book.best(Side::Sell)) {
//!             println!("{} {} {}", update.instrument, bid.px, ask.px);
//!         }
//!     }
//! }
//!
//! let mut handler = Handler::open("venue.toml".as_ref())?;
//! handler.subscribe(Subscription::Group("BUND".to_owned()));
//! handler.listen(&LiveOptions::default())?;
//! loop {
//!     handler.poll(&mut Strategy)?;
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), unitape_marketdata::Error>(())
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `handler` | the engine, the books and the sources together |
//! | [`engine`] | packets to events: two lines, gaps, recovery, and what messages mean |
//! | `books` | events to books and calls; `select` holds the subscriptions |
//! | `listener`, `view` | the calls to a strategy, and its view of books |
//! | `file`, [`wire`] | packets from captures, samples and the network |
//!
//! **Cost.** A book is found by its instrument's number, without a look-up. Changes that nobody subscribed to are not
//! applied. Nothing is allocated once books and buffers have grown. Calls are direct, because the listener is a type
//! parameter.
//!
//! **Guarantees.** A book that is not stale is the venue's, as far as its messages say. A book is stale before the
//! first snapshot, after a gap, after an impossible level ([`Books::faults`]), and where levels arrived while nobody
//! had subscribed. It stays stale until its next snapshot, or until the venue empties it.
//!
//! **Limits.** It has no thread, keeps no orders, and writes no tape; a feed of the same mapping does that, with the
//! same engine. It knows no other format, no tape and no compression.

mod books;
pub mod engine;
mod error;
mod file;
mod handler;
mod listener;
mod select;
mod view;
pub mod wire;

pub use books::{BookUpdater, Books, HandlerCounters};
pub use engine::{
    ChannelRole, ChannelStats, EventContext, Instrument, LineStats, Packet, ReferenceTables, RefusedInput,
    StateCode, Trade, TradingPhase, TradingState, UpdateAction,
};
pub use error::Error;
pub use file::{PacketFile, PacketFileCounts};
pub use handler::Handler;
pub use listener::{BookUpdate, ChangedLevel, LineState, Listener, SequenceGap};
pub use select::Subscription;
pub use unitape_book::StoredLevel;
pub use unitape_model::{ChannelId, InstrumentId, ProductId, Side, UnixNanos};
pub use view::BookView;
pub use wire::{LiveOptions, LiveReceiver};
