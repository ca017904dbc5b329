//! The engine of market data by FAST: packets of several channels, on two lines each, to steps.
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
//! | `packets` | packets in, steps out; early snapshots used; what was seen, summed up |
//! | `core` | what messages do: products and instruments, gaps, snapshots; definitions, states, doubt |
//! | `framing`, `taking` | where messages of a packet are; a message's fields as they come |
//! | `early`, `levels`, `products`, `around` | snapshots that came before their gap was noticed; levels of a book; order by product, gaps, recovery; what is around a step |
//! | `stats`, `lines`, `pulse` | what was counted; arbitration of two lines, the window, numbers that begin again, what each line did not bring; lines that are down |
//! | `holds`, `table`, `shipped`, `file` | what a table holds; a table with its files; the mappings that others may be like; a mapping file for a handler |
//! | `plan`, `sets` | what the table `[fast]` is compiled to; templates, and what is asked of them |
//! | `head`, `view`, `values`, `tags`, `ids`, `known` | the header of packets; a message as numbers; values; what is asked of the decoder |
//! | `codes`, `config`, `wrong`, `step` | the venue's codes; the table as its file has it; what is wrong with it; what comes out |
//!
//! It does no I/O and reads no clock: the same packets with the same receive times give the same steps. At its border a moment is
//! [`UnixNanos`](unitape_model::UnixNanos); inside it is the `i64` of one, with which windows and deadlines are reckoned.

mod around;
mod codes;
mod config;
mod core;
mod early;
mod file;
mod framing;
mod head;
mod holds;
mod ids;
mod known;
mod levels;
mod lines;
mod packets;
mod plan;
mod products;
mod pulse;
mod sets;
mod shipped;
mod stats;
mod step;
mod table;
mod tags;
mod taking;
#[cfg(test)]
mod tests;
mod values;
mod view;
mod wrong;

pub use config::FastText;
pub use file::MappingFile;
pub use holds::{Holds, HoldsChannel};
pub use lines::LineStats;
pub use packets::Engine;
pub use plan::{Config, Own};
pub use shipped::Shipped;
pub use stats::{ChannelStats, Counters, Stats};
pub use step::{
    Action, At, Channel, Code, Instrument, Level, Outcome, Packet, Phase, Product, Refusal, Role, State,
    Step, Steps, Tables, Trade,
};
pub use table::FastTable;
pub use wrong::{Made, Wrong};
