//! Sealed days of ticks. **Version 0**: real, exact, checked, and not yet the final format.
//!
//! ```text
//!  tape ──seal──▶ STORE/manifest                       what belongs to the store; renamed into place last
//!                 STORE/dictionary.log                 names → the store's own tokens
//!                 STORE/2024-03-11/bbo/00000001.blocks  one schema of one day, as seal 1 wrote it
//!                                                        │
//!                 block: ≤ 65,536 rows of one kind and instrument, by column, a checksum on each
//!                                                        │
//!  events ◀─scan──────────────────────────────────────────┘  in the order of the tape, byte for byte
//! ```
//!
//! A scan returns every sealed event of every kind, with flags, extension, ordinal and position; only the ids are the
//! store's. A day is the UTC date of the event time. The layout is drawn in `docs/formats-store.md`.
//!
//! ```
//! use unitape_model::{Dictionary, EventBuilder, EventKind, EventSchema, UnixNanos, flags};
//! use unitape_store::{ScanFilter, SealOptions, Store, seal};
//! use unitape_tape::{WriterOptions, TapeId, Writer};
//!
//! let dir = tempfile::tempdir()?;
//! let (tape, store) = (dir.path().join("tape"), dir.path().join("store"));
//! let mut unit = Vec::new();
//! let event = EventBuilder::begin(&mut unit, EventKind::Clock, UnixNanos(1_710_167_400_000_000_000));
//! event.finish(flags::LAST).unwrap();
//! let (mut writer, _) = Writer::open(&tape, TapeId(1), WriterOptions { segment_bytes: 4096, ..WriterOptions::default() })?;
//! let position = writer.append(&unit)?;
//! writer.close()?;
//!
//! assert_eq!(seal(&tape, &store, &SealOptions::default())?.rows, 1);
//! let store = Store::open(&store)?;
//! let mut scan = store.scan(&ScanFilter::default())?;
//! let row = scan.next().expect("what was sealed");
//! assert_eq!((row.position, &row.frame[4..]), (position, &unit[4..]));
//! assert!(scan.next().is_none() && scan.problems().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The store does not yet encrypt, check entitlements, read corrections or as-of states, compact or export. It never
//! keeps books or raises alerts.

mod bits;
mod block;
mod cells;
pub mod check;
mod column;
mod day;
mod decode;
mod dictionary;
mod error;
mod file;
mod manifest;
mod scan;
mod schema;
mod seal;
mod store;
mod stripe;

pub use day::Day;
pub use error::{Error, Result};
pub use scan::{Scan, ScanFilter, StoredEvent};
pub use schema::TickSchema;
pub use seal::{SealOptions, SealReport, StoreProgress, seal};
pub use store::{DaySummary, Store, StoreSummary, StoredTotals};

/// Version of everything that the store writes. 0 is not final: a later one may not read it.
pub const FORMAT_VERSION: u32 = 0;
