//! One file a command: its arguments, and what it does with the crates below.

#[cfg(feature = "bench")]
pub mod bench;
pub mod book;
pub mod breaker;
pub mod calendar;
pub mod case;
pub mod config;
pub mod consolidate;
pub mod decode;
pub mod demo;
pub mod doctor;
mod evidence;
pub mod fx;
pub mod generate;
pub mod get;
pub mod handler;
pub mod link;
mod login;
pub mod mapping;
pub mod quarantine;
pub mod range_args;
pub mod read_args;
pub mod run;
pub mod serve;
pub mod status;
pub mod store;
pub mod tape;
pub mod user;
pub mod watch;

use unitape_model::UnixNanos;

/// Returns the time of the system's clock.
pub fn clock_time() -> UnixNanos {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    UnixNanos(since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)))
}
