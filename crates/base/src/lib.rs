//! Parts that the decoders of all formats share, sans I/O.
//!
//! | module | |
//! |---|---|
//! | [`Span`], [`Decimal`], [`Error`] | a place in a buffer, a number as it is written, errors that end the work |
//! | [`digits`], [`date`] | digits to numbers, eight at once; days and moments |
//! | [`xml`] | the loops over the bytes of XML, and references |
//! | [`InputBuffer`], [`json`] | input in pieces, and JSON text by hand |
//! | [`NextFrame`], [`decode_lines()`] | what a framer finds; the loop of `unitape decode` |
//! | [`toml`] | mistakes in files that people write: their line, and what was meant |
//! | [`whole_file`] | files that are read as a whole |
//! | [`capture`] | pcap and pcapng, and the UDP payloads in their packets |
//!
//! ```
//! use unitape_base::{Span, date, json};
//!
//! let buf = b"<at>2019-04-25T12:00:00Z</at>";
//! let text = Span { start: 4, end: 24 }.slice(buf);
//! assert_eq!(date::time(text), Some(1_556_193_600_000_000_000));
//! let mut out = Vec::new();
//! json::value(&mut out, text);
//! assert_eq!(out, b"\"2019-04-25T12:00:00Z\"");
//! ```
//!
//! It knows no format, and gives fields no meaning.

pub mod capture;
pub mod date;
mod decimal;
mod decode_lines;
pub mod digits;
mod error;
mod frame;
pub mod json;
mod source;
mod span;
pub mod toml;
pub mod whole_file;
pub mod xml;

pub use decimal::Decimal;
pub use decode_lines::{DecodeInput, JsonLines, LineDecoder, decode_lines};
pub use error::Error;
pub use frame::{FrameFault, FrameStep, FramedLine, NextFrame};
pub use source::{InputBuffer, READ_BYTES};
pub use span::Span;
