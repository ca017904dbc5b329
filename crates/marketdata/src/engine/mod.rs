//! The engine of market data by FAST: packets of several channels, on two lines each, to events.
//!
//! ```text
//!  incremental A ─┐                      ┌ products ┐
//!  incremental B ─┴▶ lines: first good ─▶│ in order │─▶ steps: levels, trades, states, ─▶ books (this crate)
//!  snapshots   ────▶ copy, window, gaps  │ gaps,    │         stale, recovered …       ─▶ events on a tape (feeds)
//!  reference   ────▶                     └ recovery ┘
//! ```
//!
//! Each row imports only from itself and the rows below it. The methods of a type that fill more than one file have a folder.
//!
//! | module | holds |
//! |---|---|
//! | `packets` | packets in, events out; early snapshots used; what was seen, summed up |
//! | `core` | what messages do: products and instruments, gaps, snapshots; definitions, states, doubt |
//! | `framing`, `field_visitor` | where messages of a packet are; a message's fields as they come |
//! | `early_snapshots`, `levels`, `products`, `context` | snapshots that came before their gap was noticed; levels of a book; order by product, gaps, recovery; what is around a step |
//! | `stats`, `arbitration`, `pulse` | what was counted; arbitration of two lines, the window, numbers that begin again, what each line did not bring; lines that are down |
//! | `config_summary`, `table`, `shipped_mappings`, `file` | what a table holds; a table with its files; the mappings that others may be like; a mapping file for a handler |
//! | `plan`, `template_set` | what the table `[fast]` is compiled to; templates, and what is asked of them |
//! | `packet_header`, `message_fields`, `values`, `field_roles`, `ids`, `id_table` | the header of packets; a message as numbers; values; what is asked of the decoder |
//! | `codes`, `config`, `config_refusal`, `market_event` | the venue's codes; the table as its file has it; what is wrong with it; what comes out |
//!
//! It does no I/O and reads no clock: the same packets with the same receive times give the same events. At its
//! border a moment is [`UnixNanos`](unitape_model::UnixNanos); inside it is the `i64` of one, with which windows and
//! deadlines are reckoned.

mod arbitration;
mod codes;
mod config;
mod config_refusal;
mod config_summary;
mod context;
mod core;
mod early_snapshots;
mod field_roles;
mod field_visitor;
mod file;
mod framing;
mod id_table;
mod ids;
mod levels;
mod market_event;
mod message_fields;
mod packet_header;
mod packets;
mod plan;
mod products;
mod pulse;
mod shipped_mappings;
mod stats;
mod table;
mod template_set;
#[cfg(test)]
mod tests;
mod values;

pub use arbitration::LineStats;
pub use config::ChannelsConfig;
pub use config_refusal::{ConfigRefusal, ConfigResult};
pub use config_summary::{ChannelSummary, ConfigSummary};
pub use file::MappingFile;
pub use market_event::{
    Channel, ChannelRole, EventContext, Instrument, LevelUpdate, MarketEvent, MarketEventSink,
    MessageOutcome, Packet, Product, ReferenceTables, RefusedInput, StateCode, Trade, TradingPhase,
    TradingState, UpdateAction,
};
pub use packets::Engine;
pub use plan::{HandlerConfig, OverrideSummary};
pub use shipped_mappings::ShippedFastMapping;
pub use stats::{ChannelStats, EngineStats, ProductCounters};
pub use table::FastMappingTable;
