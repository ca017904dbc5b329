//! Sealed days of ticks, encrypted. **Format 1**, which is not final before its golden files.
//!
//! ```text
//!  tape ──seal──▶ STORE/manifest                       what belongs to the store, signed; renamed into place last
//!   + key         STORE/dictionary.log                 names → the store's own tokens, sealed
//!                 STORE/2024-03-11/bbo/00000001.blocks  one schema of one day, as seal 1 wrote it
//!                                                        │
//!                 block: ≤ 65,536 rows of one instrument, by time, each column sealed, in three classes
//!                          market │ identity │ provenance      each with a key of its own
//!                                                        │
//!  rows   ◀─rows──── market alone, in the order of event time
//!  events ◀─scan──── all classes, in the order of the tape, byte for byte
//! ```
//!
//! A scan returns every sealed event of every kind, with flags, extension, ordinal and position. Only the ids are the
//! store's own. Rows need only the key of the market data. A day is the UTC date of the event time,
//! or the session date by the store's calendar.
//! `docs/formats-store.md` draws the layout and lists the unencrypted parts.
//!
//! ```
//! use unitape_model::{Dictionary, EventBuilder, EventKind, EventSchema, UnixNanos, flags};
//! use unitape_store::{MasterKey, ScanFilter, SealOptions, Store, SystemRandomness, seal};
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
//! let key = MasterKey::random(&SystemRandomness)?;
//! assert_eq!(seal(&tape, &store, &key, UnixNanos(1_710_253_800_000_000_000), &SealOptions::default())?.rows, 1);
//! let store = Store::open(&store, &key)?;
//! let mut scan = store.scan(&ScanFilter::default())?;
//! let row = scan.next().expect("what was sealed");
//! assert_eq!((row.position, &row.frame[4..]), (position, &unit[4..]));
//! assert!(scan.next().is_none() && scan.problems().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`verify()`] compares a store with its signed manifest, also without the master key. [`compact()`] puts the parts of a day
//! together and changes no answer. [`ScanFilter::as_of`] reads the store as an earlier generation left it. The store does not
//! check entitlements; it never keeps books or raises alerts.

mod answer;
mod bits;
mod block;
mod blocks;
mod cells;
mod column;
mod compact;
mod day;
mod decode;
mod dictionary;
mod error;
mod file;
mod frames;
mod freshness;
mod gather;
mod header;
mod index;
mod keys;
mod leases;
mod manifest;
mod rekey;
mod rows;
mod runs;
mod scan;
mod schema;
mod seal;
mod selection;
mod source;
mod store;
mod stream;
mod table;
mod tape_rows;
mod templates;
mod tuples;
#[cfg(any(test, feature = "twin"))]
#[doc(hidden)]
pub mod twin;
mod verify;
mod window;
mod writer;

pub use answer::{Answer, AnswerIndex, AnswerReader, BlockFetch, LeafAccess, ReadDepth, SealedBlock};
pub use compact::{CompactOptions, CompactReport, PARTS_MAX, compact};
pub use day::Day;
pub use error::{Error, Result};
pub use freshness::{Freshness, GenerationMemory};
pub use keys::{KEY_FILE_VARIABLE, MasterKey, PublicKey, Randomness, SystemRandomness};
pub use manifest::{AsOf, GenerationSummary, check_format};
pub use rekey::{EraseReport, NameErasure, erase_day, erase_name, rekey};
pub use rows::RowScan;
pub use scan::{Scan, ScanFilter, StoredEvent};
pub use schema::TickSchema;
pub use seal::{SealOptions, SealReport, StoreProgress, seal};
pub use store::{BlockSummary, DaySummary, Store, StoreSummary, StoredTotals, TapePart};
pub use verify::{Finding, FindingKind, VerifyKey, VerifyOptions, VerifyReport, verify};
pub use writer::check_place;

pub use unitape_model::FieldClass;

/// Version of everything that the store writes. It is not final before there are golden files of it.
pub const FORMAT_VERSION: u32 = 1;
