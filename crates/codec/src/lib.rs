//! Bytes to fields and back, sans I/O, one module per format.
//!
//! ```text
//!  a feed's bytes ─▶ frames ─▶ fields ─▶ (mapping, in the feed crate) ─▶ events
//!     8=FIX.4.4|9=…            38 = "100"
//!  a line of JSON ◀─────────────────── events ───────────────────▶ events again
//! ```
//!
//! | module | format |
//! |---|---|
//! | [`fix`] | FIX tag=value: framing, fields, values, dictionaries, groups, JSON |
//! | [`fixed`] | fixed-width records by a layout: framing, values, JSON |
//! | [`csv`] | rows of separated values by a layout: framing, quotes, values, JSON |
//! | [`itch`] | NASDAQ TotalView-ITCH 5.0: messages, framing, MoldUDP64, JSON |
//! | [`iex`] | IEX TOPS 1.6, DEEP 1.0, DEEP+ 1.0: messages, packets of IEX-TP, JSON |
//! | [`swift_mt`] | SWIFT MT: blocks, fields, components, statements without envelope, JSON |
//! | [`iso20022`] | ISO 20022 in XML: documents in any wrapping, values, JSON |
//! | [`text`] | news, chat and mail: JSON Lines of any make, RFC 5322, RSS, Atom, NewsML-G2, JSON |
//! | [`events`] | our own events as JSON Lines |
//! | [`next_line`] | lines of bounded length |
//! | [`charset`] | sets of characters: their names, and bytes as text in them |
//!
//! Every codec reads the bytes at hand and returns their message, or the number of bytes that it still needs. The
//! caller owns the loop, so the live reader, the file reader and the fuzzer run the same decoder. A fault in the
//! bytes is a value with a code and a place, never a panic.
//!
//! ```
//! use unitape_codec::fix::{NextFixFrame, FixFramer, FieldSeparator, MessageTokenizer, value};
//!
//! let log = b"8=FIX.4.2|9=10|35=D|38=7|10=193|";
//! let framer = FixFramer::default().with_sep(FieldSeparator::Pipe);
//! let mut tokens = MessageTokenizer::new();
//! let NextFixFrame::Message(message) = tokens.frame(&framer, log, 0, true) else { panic!() };
//! let quantity = tokens.value(message.span.slice(log), 38).and_then(value::int);
//! assert_eq!(quantity, Some(7));
//! ```
//!
//! It opens no files, reads no clock, keeps no session and gives fields no meaning.

pub mod charset;
pub mod csv;
pub mod events;
pub mod fix;
pub mod fixed;
mod foreign;
pub mod iex;
pub mod iso20022;
pub mod itch;
mod lines;
pub mod swift_mt;
pub mod text;
pub mod times;
#[cfg(any(test, feature = "twin"))]
#[doc(hidden)]
pub mod twin;

pub use lines::{LongLine, next_line};
