//! Every feed on one tape: the library façade. The crates below, under one roof.
//!
//! ```
//! use unitape::feed::{ConsolidateOptions, consolidate, feed_of_option};
//! use unitape::tape::{Reader, StartPosition};
//!
//! let dir = tempfile::tempdir()?;
//! let lines = dir.path().join("mine.jsonl");
//! std::fs::write(&lines, br#"{"seq":1,"ts":1,"kind":"trade","venue":"XLON","instr":"I","px":"2.5","qty":"10"}"#)?;
//! let feed = feed_of_option(&format!("mine=events::{}", lines.display()))?;
//! let tape = dir.path().join("tape");
//! let outcome = consolidate(&tape, ConsolidateOptions { feeds: vec![feed], ..ConsolidateOptions::default() })?;
//! assert_eq!(outcome.summary.events, 1);
//!
//! let mut reader = Reader::open(&tape, StartPosition::Oldest)?;
//! let mut events = 0;
//! while let Some(frame) = reader.next()? {
//!     events += u64::from(!frame.header.is_meta());
//! }
//! assert_eq!(events, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use unitape_book as book;
pub use unitape_case as case;
pub use unitape_codec as codec;
pub use unitape_feed as feed;
#[cfg(feature = "link")]
pub use unitape_link as link;
pub use unitape_marketdata as marketdata;
pub use unitape_model as model;
pub use unitape_ring as ring;
pub use unitape_run as run;
pub use unitape_sim as sim;
pub use unitape_store as store;
pub use unitape_tape as tape;
pub use unitape_watch as watch;

/// The Rust in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
