//! Events of a tape or a store as Arrow record batches, and these as Parquet files and IPC streams.
//!
//! ```text
//!  tape ─▶ EventCursor ─▶ RowBatchBuilder ─▶ RecordBatch ─▶ C stream: Python, Polars, DuckDB
//!          (selection)    a column at a time  65,536 rows ├▶ IpcEncoder: files and pipes
//!  store ─▶ RowScan ──────────────▲                       └▶ ParquetEncoder: files
//! ```
//!
//! ```
//! use unitape_arrow::{BatchOptions, RowQuery, RowReader};
//! use unitape_model::{Dictionary, EventBuilder, EventKind, EventSchema, RowSchema, UnixNanos, flags};
//! use unitape_tape::{TapeId, Writer, WriterOptions};
//!
//! let dir = tempfile::tempdir()?;
//! let (mut writer, _) = Writer::open(dir.path(), TapeId(1), WriterOptions::default())?;
//! let (mut unit, mut names) = (Vec::new(), Dictionary::default());
//! let instrument = EventSchema::for_kind(EventKind::Bbo).find("instr").unwrap();
//! let mut define = EventBuilder::begin(&mut unit, EventKind::Define, UnixNanos(0));
//! for (field, text) in [("dict", "0"), ("index", "1"), ("name", "VOD")] {
//!     let spec = EventSchema::for_kind(EventKind::Define).find(field).unwrap();
//!     define.set_text(spec, text.as_bytes(), &mut names)?;
//! }
//! define.finish(0)?;
//! let mut event = EventBuilder::begin(&mut unit, EventKind::Bbo, UnixNanos(1_000));
//! event.set_text(instrument, b"VOD", &mut names)?;
//! event.finish(flags::LAST)?;
//! writer.append(&unit)?;
//! writer.close()?;
//!
//! let query = RowQuery::new(RowSchema::Bbo);
//! let mut reader = RowReader::open(dir.path(), query, BatchOptions::default())?;
//! let batch = reader.next_batch()?.expect("a row");
//! assert_eq!((batch.num_rows(), batch.num_columns()), (1, 14));
//! assert!(reader.next_batch()?.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It copies each row once, from the tape into columns. Columns of fixed width then go to a consumer in the same process without
//! a copy. It computes nothing: books, bars and joins are made elsewhere.

mod batch;
mod columns;
mod error;
mod fields;
mod ipc;
mod options;
mod parquet;
mod reader;
#[cfg(feature = "twin")]
pub mod twin;

pub use self::parquet::{ParquetEncoder, ROW_GROUP_BYTES_MAX, ROW_GROUP_ROWS_MAX};
pub use batch::RowBatchBuilder;
pub use error::Error;
pub use ipc::IpcEncoder;
pub use options::{BatchOptions, MisfitAction, PriceType, SizeType, describe_schema};
pub use reader::{ReadStep, RowQuery, RowReader};

/// The crates of Arrow's arrays and schemas, for callers that pass batches on.
pub use arrow_array;
pub use arrow_schema::SchemaRef;
