//! FAST, "FIX adapted for streaming": messages by templates that are loaded at run time.
//!
//! ```text
//!  template files ─▶ Templates ─▶ program: blocks of ops        once
//!                                    │
//!  bytes of a message ─────────▶ Decoder ─▶ Message: items      no allocation a message, once warm
//!                                    └ dictionaries, carried to the next message, as before where one is bad
//! ```
//!
//! The specification is FAST 1.1 of 2006-12-20. `docs/formats-fast.md` lists the supported parts of 1.2, and the
//! choices where the specification leaves room. Values have the types of the template; decimals are exact.
//!
//! ```
//! use std::sync::Arc;
//! use unitape_fast::{Decoder, TemplateFile, Templates, FieldValue};
//!
//! let xml = br#"<templates><template name="Quote" id="1"><uInt32 name="Qty"><copy/></uInt32></template></templates>"#;
//! let templates = Templates::load(&[TemplateFile { name: "quote.xml", content: xml }])?;
//! let mut decoder = Decoder::new(Arc::new(templates));
//! assert_eq!(decoder.decode(b"\xe0\x81\x85").unwrap().get("Qty"), Some(FieldValue::UInt(5)));
//! // The id and the quantity are those of the message before.
//! assert_eq!(decoder.decode(b"\x80").unwrap().get("Qty"), Some(FieldValue::UInt(5)));
//! # Ok::<(), unitape_fast::TemplateError>(())
//! ```
//!
//! [`encode`] is the way back. Fields are given no meaning.
//!
//! Imports read in one direction; each line knows only those above it:
//!
//! ```text
//!  template, fault, wire, ops, projection     what templates say, what bytes mean
//!  entry ─▶ packed_value ─▶ slot ─▶ program  data: of a message, of dictionaries, of templates compiled
//!  record ─▶ visit                             a message for who reads it
//!  workspace ─▶ exact ─▶ engine                what a message is decoded with, and the two engines
//!  dictionary ─▶ compile                       templates into a program
//!  decode ─▶ frames, objects ─▶ json; encode   the face
//! ```

mod compile;
mod decode;
mod dictionary;
pub mod encode;
mod engine;
mod entry;
mod exact;
mod fault;
mod frames;
mod json;
mod objects;
mod ops;
mod packed_value;
mod program;
mod projection;
mod record;
mod slot;
pub mod template;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "twin"))]
#[doc(hidden)]
pub mod twin;
mod visit;
mod wire;
mod workspace;

pub use decode::Decoder;
pub use encode::{Encoder, MessageDraft, SequenceRef};
pub use fault::{MessageFault, MessageFaultCode};
pub use frames::{MESSAGE_BYTES_MAX, StreamFraming};
pub use json::{DecodeSummary, DictionaryResetPolicy, JsonDecodeOptions, decode_json};
pub use projection::{DecodedFieldRef, Projection, UNTAGGED, UnknownField};
pub use record::{FieldValue, Message, MessageToken, TaggedToken};
pub use template::{TemplateError, TemplateErrorCode, TemplateFile, Templates};
pub use visit::{DecodedValue, MessagePart, MessagePartIter, MessageVisitor};
