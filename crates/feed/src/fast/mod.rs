//! The FAST market-data handler: packets of several channels, on two lines each, to steps, and steps to events.
//!
//! ```text
//!  incremental A ─┐                      ┌ products ┐
//!  incremental B ─┴▶ lines: first good ─▶│ in order │─▶ steps: levels, trades, states, ─▶ events on a tape (feeds)
//!  snapshots   ────▶ copy, window, gaps  │ gaps,    │         stale, recovered …       ─▶ books (another crate)
//!  reference   ────▶                     └ recovery ┘
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `config`, `plan` | the table `[fast]` of a mapping, and what it is compiled to |
//! | `handler` | packets in, steps out |
//! | `lines` | arbitration of two lines, the window, numbers that begin again |
//! | `view` | a message's fields as numbers |
//! | `core`, `products`, `levels` | what messages do: order by product, gaps, recovery, levels |
//! | `step` | what comes out |
//!
//! It does no I/O and reads no clock: the same packets with the same receive times give the same steps.

mod config;
mod core;
mod handler;
mod levels;
mod lines;
mod plan;
mod products;
mod step;
#[cfg(test)]
mod tests;
mod view;

pub use config::FastText;
pub use handler::{ChannelStats, Handler, Stats};
pub use lines::LineStats;
pub use plan::{Config, Wrong};
pub use products::Counters;
pub use step::{
    Action, At, Channel, Code, Instrument, Level, Outcome, Packet, Phase, Product, Refusal, Role, Side,
    State, Step, Steps, Tables, Trade,
};
