//! The engine of market data by FAST: packets of several channels, on two lines each, to steps.
//!
//! ```text
//!  incremental A ─┐                      ┌ products ┐
//!  incremental B ─┴▶ lines: first good ─▶│ in order │─▶ steps: levels, trades, states, ─▶ books (this crate)
//!  snapshots   ────▶ copy, window, gaps  │ gaps,    │         stale, recovered …       ─▶ events on a tape (feeds)
//!  reference   ────▶                     └ recovery ┘
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `config`, `plan`, `checks`, `holds` | the table `[fast]` of a mapping, what it is compiled to, and what it holds |
//! | `packets`, `framing`, `head` | packets in, steps out; where messages of a packet are; its header |
//! | `lines`, `missed`, `pulse` | arbitration of two lines, the window, numbers that begin again; what each line did not bring; lines that are down |
//! | `tags`, `view`, `taking`, `values`, `ids` | what is asked of the decoder, and a message's fields as numbers |
//! | `core`, `products`, `levels`, `states`, `define` | what messages do: order by product, gaps, recovery, levels, definitions |
//! | `doubt` | what is believed no longer, though nothing is missing |
//! | `early` | snapshots that came before their gap was noticed |
//! | `step`, `stats` | what comes out, and what was counted |
//! | `table`, `file`, `shipped` | a table with its files; a mapping file for a handler; the mappings that others may be like |
//!
//! It does no I/O and reads no clock: the same packets with the same receive times give the same steps.

mod around;
mod checks;
mod config;
mod core;
mod define;
mod doubt;
mod early;
mod file;
mod framing;
mod head;
mod holds;
mod ids;
mod known;
mod levels;
mod lines;
mod missed;
mod packets;
mod plan;
mod products;
mod pulse;
mod shipped;
mod states;
mod stats;
mod step;
mod table;
mod tags;
mod taking;
#[cfg(test)]
mod tests;
mod values;
mod view;

pub use config::FastText;
pub use file::MappingFile;
pub use holds::{Holds, HoldsChannel};
pub use lines::LineStats;
pub use packets::Engine;
pub use plan::{Config, Made, Own, Wrong};
pub use shipped::Shipped;
pub use stats::{ChannelStats, Counters, Stats};
pub use step::{
    Action, At, Channel, Code, Instrument, Level, Outcome, Packet, Phase, Product, Refusal, Role, State,
    Step, Steps, Tables, Trade,
};
pub use table::FastTable;
