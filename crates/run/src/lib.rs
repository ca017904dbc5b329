//! Configuration, supervision, books and surveillance over tapes. The command line uses it, as does any other program that
//! runs feeds and follows tapes.
//!
//! ```text
//!  feeds.toml ◀ UNITAPE_* ◀ flags ──▶ layered ──▶ config ──▶ feeds, ready to run ──▶ run ──▶ RunReport
//!                                                                                      └─▶ RunEvent …
//!  tape ──▶ query::follow ──▶ frames, its end, cuts ──▶ replay ──▶ books at a point ──▶ picture
//!                                        │         └─▶ best_price_tape ─┬▶ derived_tape: compare, append
//!                                        ├─▶ fx ──▶ best prices of many banks
//!                          surveil: scenarios, live or replayed ─▶ alert_tape ┘ ──▶ alert_reader
//!                          breaker: limits, persons ──▶ control tape
//!  users.toml, name, password ──▶ users ──▶ an account: person, role
//! ```
//!
//! ```
//! let dir = tempfile::tempdir()?;
//! let file = dir.path().join("feeds.toml");
//! std::fs::write(&file, "
//! [tape]
//! dir = 'tape'
//! [[feed]]
//! name = 'orders'
//! format = 'fix'
//! mapping = 'fix44-orders'
//! listen = '127.0.0.1:9000'
//! ")?;
//! let loaded = unitape_run::config::read(&file, &[])?;
//! let feeds = loaded.value.feeds(&loaded.origins, None)?;
//! assert_eq!(feeds[0].name, "orders");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It prints nothing: the caller receives all remarks for people, and every error names its cause. The command line
//! owns exit codes, words and help texts.

#![deny(clippy::print_stdout, clippy::print_stderr)] // who prints is the caller

pub mod alert_reader;
pub mod alert_tape;
pub mod best_price_tape;
pub mod breaker;
pub mod config;
pub mod derived_tape;
mod error;
mod files;
pub mod fx;
pub mod inputs;
pub mod layered;
pub mod opened_watch;
pub mod picture;
pub mod replay;
mod supervise;
pub mod surveil;
pub mod tape_content;
pub mod ticks;
pub mod users;
pub mod watch_snapshot;

pub use error::Error;
pub use supervise::{
    EventSink, FailedFeed, PreparedRun, RunControl, RunEvent, RunReport, SegmentProcesses, run, run_apart,
};
pub use unitape_query::{address, follow};

use unitape_tape::RemovalOptions;

/// Returns the options for removing segments: unitape updates the account of the tape before the segments are removed.
pub fn removal() -> RemovalOptions {
    RemovalOptions { before_removal: Some(unitape_feed::update_checkpoint()), ..RemovalOptions::default() }
}

/// Returns the number of workers for this machine.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
