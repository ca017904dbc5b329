//! SWIFT MT: messages of category 1 to 9 in FIN blocks, files of them, and bare statements of banks.
//!
//! ```text
//! bytes ──Framer──▶ messages, faults ──Fields──▶ (tag, value)… ──parts──▶ named components
//!                                                     ╰──decode_json──▶ JSON Lines
//! ```
//!
//! | | |
//! |---|---|
//! | [`Framer`] | blocks 1 to 5, RJE files, acknowledgements, bare bodies; what lies between |
//! | [`Fields`], [`sub_blocks`], [`MsgType`] | tags and values, parts of blocks 3 and 5, the type |
//! | [`parts`] | the named components of a value: date, currency, amount, account, BIC, … |
//! | [`value`] | components as plain integers: amounts, dates; `words` the same eight bytes at once |
//! | `quick`, `simd` | messages of the usual shape in one pass |
//! | `entries` | the lines of a statement, as JSON |
//! | [`decode_json`] | what `unitape decode swift --json` prints |
//!
//! All message types are read at the level of tags; the common fields have components. Nothing is copied and
//! nothing is allocated per message.
//!
//! ```
//! use unitape_codec::swift_mt::{Fields, Frame, Framer, MsgType, Tag, parts, value};
//!
//! let file = b"{1:F01AAAABEBBAXXX0000000000}{2:I103BBBBDEFFXXXXN}{4:\r\n\
//!     :20:REF1\r\n:32A:190425USD3700,50\r\n-}";
//! let mut fields = Fields::new();
//! let Frame::Message(message) = fields.frame(&Framer::default(), file, 0, true) else { panic!() };
//! assert_eq!(MsgType::of(&message, file, fields.as_slice()), MsgType::Mt(103));
//! let text = message.text().of(file);
//! let settled = fields.value(text, Tag::new(b"32A")).unwrap();
//! let mut split = parts::Parts::default();
//! parts::split(Tag::new(b"32A"), settled, &mut split).unwrap();
//! let amount = value::amount(split.get(settled, "amount").unwrap()).unwrap();
//! assert_eq!((amount.mantissa, amount.exponent), (370_050, -2));
//! ```
//!
//! It knows no rules between fields (which must be there, in which order), keeps no session and checks no
//! MAC or checksum: block 5 is passed on as it came.

mod bare;
mod blocks;
#[cfg(any(test, feature = "naive"))]
#[doc(hidden)]
pub mod check;
mod entries;
mod fault;
mod frame;
mod header;
mod json;
#[cfg(any(test, feature = "naive"))]
#[doc(hidden)]
pub mod naive;
#[cfg(any(test, feature = "naive"))]
#[doc(hidden)]
pub mod naive_parts;
pub mod parts;
mod quick;
pub mod sample;
mod simd;
#[cfg(test)]
mod tests;
mod tokens;
pub mod value;
mod words;

pub use entries::entries;
pub use fault::{Code, Fault, ValueFault};
pub use frame::{Form, Frame, Framer, Message, PREFACE_BYTES, PREFACE_LINES};
pub use header::header;
pub use json::{Summary, decode_json};
pub use tokens::{Fields, MsgType, Tag, Token, sub_blocks};
pub use unitape_base::Span;

/// Blocks inside blocks, at most: the standard nests four deep.
pub const NEST_MAX: usize = 8;
