//! FIX in its tag=value form: framing, fields, values, dictionaries, repeating groups, JSON.
//!
//! ```text
//! bytes ──Framer──▶ messages, faults ──Tokens──▶ (tag, value)… ──groups──▶ nested entries
//!                                                          ╰──decode_json──▶ JSON Lines
//! ```
//!
//! One pass finds the separators and sums the bytes; nothing is copied and nothing is allocated
//! per message.
//!
//! ```
//! use unitape_codec::fix::{NextFixFrame, FixFramer, MessageTokenizer, value};
//!
//! let framer = FixFramer::default();
//! let mut tokens = MessageTokenizer::new();
//! let stream = b"8=FIX.4.4\x019=18\x0135=D\x0138=7\x0144=2.50\x0110=054\x01";
//! let NextFixFrame::Message(message) = tokens.frame(&framer, stream, 0, true) else { panic!() };
//! let bytes = message.span.slice(stream);
//! assert_eq!(tokens.value(bytes, 38), Some(&b"7"[..]));
//! let price = value::decimal(tokens.value(bytes, 44).unwrap()).unwrap();
//! assert_eq!((price.mantissa, price.exponent), (250, -2));
//! ```
//!
//! It keeps no session: logon, sequence numbers and resends are the caller's.
//!
//! Imports read in one direction; each line knows only those above it:
//!
//! ```text
//!  sep, data, plain, value, standard    separators, data fields, numbers; tags and groups of the standard
//!  fault                                faults, with the names of tags
//!  token ─▶ group ─▶ dict               a field and a view of several; groups of them
//!  shapes ─▶ simd                       sequences of tags; one pass over a message
//!  scan ─▶ frame ─▶ head                where messages are
//!  tokens                               frames a message and reads its fields
//!  slots, encoding ─▶ json              what is wanted of it; it as text
//! ```

mod data;
mod dict;
pub mod encoding;
mod fault;
mod frame;
mod group;
mod head;
mod json;
mod plain;
mod scan;
mod sep;
mod shapes;
mod simd;
mod slots;
mod standard;
#[cfg(test)]
mod tests;
mod token;
mod tokens;
pub mod value;

pub use data::RawFieldTags;
pub use dict::{DictionaryFileSummary, FieldDef, FixDictionary, MessageDef};
pub use fault::{FieldFault, FixFault, FixFaultCode};
pub use frame::{FixFramer, FixLeniency, FramedFixMessage, NextFixFrame};
pub use group::{GroupSpec, GroupTable, RepeatingGroupIter};
pub use json::{FixDecodeOptions, FixSummary, decode_json};
pub use sep::FieldSeparator;
pub use slots::{ExtractedFields, FieldExtractor, FieldSelection, GroupEntry, GroupSelection};
pub use standard::{GroupMembership, TagLabel, field_name};
pub use token::{FieldToken, TokenSlice};
pub use tokens::MessageTokenizer;
pub use unitape_base::{Error, Span};

/// Groups inside groups, at most: the standard nests four deep.
pub const MAX_GROUP_DEPTH: usize = 16;
