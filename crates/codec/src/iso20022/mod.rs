//! ISO 20022: messages in XML, bare or wrapped, with their business application header.
//!
//! ```text
//! bytes ──Decoder──▶ messages, faults ──Visit──▶ elements, attributes, values
//!                                        ╰──decode_json──▶ JSON Lines
//! ```
//!
//! | | |
//! |---|---|
//! | [`Iso20022Decoder`] | where messages start and end in a stream, whatever is around them; parts of large ones |
//! | [`ElementVisitor`] | receives the content of a message: its elements, as places in the buffer |
//! | [`value`] | text, times, decimals |
//! | [`decode_json`] | what `unitape decode iso20022 --json` prints |
//!
//! All messages are read alike; nothing here knows a schema. The input is XML 1.0 in UTF-8, ISO 8859 or Windows-125x,
//! without document types: no entities but the five, nothing external, depth, names and attributes bounded. Tags must
//! match, prefixes must have a namespace, attributes must differ, references must be of characters, and text and
//! elements must not be mixed, as ISO 20022 has no such content. Nothing is copied and nothing is allocated per
//! message.
//!
//! ```
//! use unitape_codec::iso20022::{Iso20022Decoder, ElementCollector, NextIsoMessage};
//!
//! let file = br#"<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pacs.002.001.11"><Id>a&amp;b</Id></Document>"#;
//! let (mut decoder, mut leaves) = (Iso20022Decoder::default(), ElementCollector::default());
//! let NextIsoMessage::Message(message) = decoder.next(file, 0, true, &mut leaves) else { panic!() };
//! assert_eq!(message.kind.name.slice(file), b"pacs.002.001.11");
//! let (path, value) = leaves.iter().next().unwrap();
//! assert_eq!((path, value.text(file, &mut Vec::new())), (&b"Document/Id"[..], &b"a&b"[..]));
//! ```
//!
//! It checks no schema and no signature. It accepts three things that XML refuses: letters of other scripts
//! that may not be in names, `]]>` in text, and the characters U+FFFE and U+FFFF.

mod charset;
mod fault;
mod frame;
mod identifier;
mod json;
mod parse;
mod recode;
#[cfg(test)]
mod tests;
pub mod value;

pub use fault::{IsoFault, IsoFaultCode, IsoFaultKind};
pub use frame::{FramedIsoMessage, Iso20022Decoder, NextIsoMessage};
pub use identifier::MessageIdentifier;
pub use json::{ElementCollector, IsoSummary, decode_json};
pub use parse::{ElementVisitor, MessageRoot};
pub use unitape_base::Span;
pub use value::{ElementValueForm, ElementValueSpan};

/// Elements in elements, at most.
pub const DEPTH_MAX: usize = 64;

/// Attributes of an element, at most.
pub const ATTRIBUTES_MAX: usize = 32;

/// Bytes of a name with its prefix, at most.
pub const NAME_BYTES_MAX: usize = 256;

/// The largest message that `decode` reads into memory, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
