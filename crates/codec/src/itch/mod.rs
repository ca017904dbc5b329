//! NASDAQ TotalView-ITCH 5.0: the 23 messages of the public specification, framing, JSON.
//!
//! ```text
//!  length │ type locate tracking timestamp │ fields of the type
//!   u16   │  u8    u16     u16      u48    │  at fixed places
//! ```
//!
//! All numbers are big-endian and unsigned. Prices are whole numbers of 1/10,000 (the levels of the market-wide
//! circuit breaker of 1/100,000,000), times nanoseconds since midnight in New York, texts ASCII with trailing blanks.
//! [`ItchFramer`] finds the messages, each with two bytes of length before it as in NASDAQ's files, or in the packets of
//! SoupBinTCP; [`MoldPacketHeader`] opens the packets of MoldUDP64. A message is read where it lies:
//!
//! ```
//! use unitape_codec::itch::{NextItchFrame, ItchFramer, ItchMessage};
//!
//! let mut file = vec![0, 19, b'D', 0, 7, 0, 0, 0x1f, 0x1a, 0xce, 0xd9, 0xf0, 0x7b];
//! file.extend_from_slice(&123_456_789u64.to_be_bytes());
//! let NextItchFrame::Message(found) = ItchFramer::default().frame(&file, 0, true) else { panic!() };
//! let Some(ItchMessage::OrderDelete(delete)) = ItchMessage::of(found.body(&file)) else { panic!() };
//! assert_eq!((delete.stock_locate(), delete.order()), (7, 123_456_789));
//! assert_eq!(delete.timestamp() / 1_000_000_000, 34_200); // half past nine
//! ```
//!
//! It keeps no orders and knows no day: which order a delete is about and on which day its time was, is the feed
//! crate's to say.

mod fault;
mod frame;
mod json;
mod message;
mod mold;
#[cfg(test)]
mod tests;
mod write;

pub use fault::{ItchFault, ItchFaultCode};
pub use frame::{FramedItchMessage, GARBAGE_BYTES_MAX, ItchFramer, ItchTransport, NextItchFrame};
pub use json::{ItchSummary, decode_json, price};
pub use message::{
    AddOrder, AddOrderMpid, BrokenTrade, CrossTrade, DirectListing, Imbalance, IpoQuoting, ItchFieldSpec,
    ItchFieldType, ItchMessage, ItchMessageSpec, LuldCollar, MESSAGE_BYTES_MAX, MwcbLevels, MwcbStatus,
    OperationalHalt, OrderCancel, OrderDelete, OrderExecuted, OrderExecutedPrice, OrderReplace,
    ParticipantPosition, RegSho, RetailInterest, StockDirectory, SystemEvent, Trade, TradingAction,
    size_of_type, specs, stock_name,
};
pub use mold::{MOLD_HEAD_BYTES, MoldPacketHeader};
pub use write::{ItchMessageHeader, ItchSampleValue, write};

/// Nanoseconds of a day: a time of day is less.
pub const DAY_NANOS: u64 = 86_400_000_000_000;
