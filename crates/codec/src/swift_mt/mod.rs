//! SWIFT MT: messages of category 1 to 9 in FIN blocks, files of them, and bare statements of banks.
//!
//! ```text
//! bytes ──Framer──▶ messages, faults ──Fields──▶ (tag, value)… ──parts──▶ named components
//!                                                     ╰──decode_json──▶ JSON Lines
//! ```
//!
//! | | |
//! |---|---|
//! | [`SwiftFramer`] | blocks 1 to 5, RJE files, acknowledgements, bare bodies; what lies between |
//! | [`SwiftFieldTokenizer`], [`sub_blocks`], [`SwiftMessageType`] | tags and values, parts of blocks 3 and 5, the type |
//! | [`parts`] | the named components of a value: date, currency, amount, account, BIC, … |
//! | [`value`] | components as plain integers: amounts, dates; `words` the same eight bytes at once |
//! | `usual_shape`, `simd` | messages of the usual shape in one pass |
//! | `entries` | the lines of a statement, as JSON |
//! | [`decode_json`] | what `unitape decode swift --json` prints |
//!
//! All message types are read at the level of tags; the common fields have components. Nothing is copied and
//! nothing is allocated per message.
//!
//! ```
//! use unitape_codec::swift_mt::{SwiftFieldTokenizer, NextSwiftFrame, SwiftFramer, SwiftMessageType, SwiftTag, parts, value};
//!
//! let file = b"{1:F01AAAABEBBAXXX0000000000}{2:I103BBBBDEFFXXXXN}{4:\r\n\
//!     :20:REF1\r\n:32A:190425USD3700,50\r\n-}";
//! let mut fields = SwiftFieldTokenizer::new();
//! let NextSwiftFrame::Message(message) = fields.frame(&SwiftFramer::default(), file, 0, true) else { panic!() };
//! assert_eq!(SwiftMessageType::from_message(&message, file, fields.as_slice()), SwiftMessageType::Mt(103));
//! let text = message.text().slice(file);
//! let settled = fields.value(text, SwiftTag::new(b"32A")).unwrap();
//! let mut split = parts::SwiftComponents::default();
//! parts::split(SwiftTag::new(b"32A"), settled, &mut split).unwrap();
//! let amount = value::amount(split.get(settled, "amount").unwrap()).unwrap();
//! assert_eq!((amount.mantissa, amount.exponent), (370_050, -2));
//! ```
//!
//! It knows no rules between fields (which must be there, in which order), keeps no session and checks no
//! MAC or checksum: block 5 is passed on as it came.

mod bare;
mod blocks;
mod entries;
mod fault;
mod frame;
mod header;
mod json;
pub mod parts;
mod simd;
#[cfg(test)]
mod tests;
mod tokens;
mod usual_shape;
pub mod value;
mod words;

pub use entries::entries;
pub use fault::{SwiftFault, SwiftFaultCode, ValueFault};
pub use frame::{
    EnvelopeForm, FramedSwiftMessage, NextSwiftFrame, PREFACE_BYTES, PREFACE_LINES, SwiftFramer,
};
pub use header::header;
pub use json::{SwiftSummary, decode_json};
pub use tokens::{SwiftField, SwiftFieldTokenizer, SwiftMessageType, SwiftTag, sub_blocks};
pub use unitape_base::Span;

/// Blocks inside blocks, at most: the standard nests four deep.
pub const NEST_MAX: usize = 8;
