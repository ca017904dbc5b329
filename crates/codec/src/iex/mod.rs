//! IEX market data: TOPS 1.6, DEEP 1.0 and DEEP+ 1.0 in packets of IEX-TP 1, from captures or bare.
//!
//! ```text
//!  packet   │ version protocol channel session lengths offset sequence time │ length │ message │ length │ message │ …
//!           │                      40 bytes                                 │  u16   │         │  u16   │
//!  message  │ type │ own byte │ timestamp │ symbol  │ fields of the type
//!           │  u8  │    u8    │    i64    │ 8 bytes │ at fixed places
//! ```
//!
//! All numbers are little-endian. Prices are signed whole numbers of 1/10,000, times nanoseconds since 1970 in UTC,
//! texts ASCII with trailing blanks. IEX calls a packet an *outbound segment*. [`IexFramer`] finds the packets and
//! [`IexPacket::parts`] the messages in one of them:
//!
//! ```
//! use unitape_codec::iex::{IexFramer, IexMessage, IexPacketPart, NextIexPacket};
//!
//! // A packet of DEEP 1.0 with one message, the system event `O`.
//! let mut payload = vec![1, 0, 0x04, 0x80, 1, 0, 0, 0, 7, 0, 0, 0, 12, 0, 1, 0];
//! for number in [0i64, 1, 1_700_000_000_000_000_000] {
//!     payload.extend(number.to_le_bytes());
//! }
//! payload.extend([10, 0, b'S', b'O']);
//! payload.extend(1_700_000_000_000_000_000i64.to_le_bytes());
//!
//! let NextIexPacket::Message(packet) = IexFramer.frame(&payload, 0, true) else { panic!() };
//! let Some(IexPacketPart::Message { span, sequence }) = packet.parts(&payload).next() else { panic!() };
//! let message = IexMessage::read(packet.header.protocol, &payload[span.start + 2..span.end]).unwrap();
//! let IexMessage::SystemEvent(event) = message else { panic!() };
//! assert_eq!((sequence, event.event()), (1, b'O'));
//! ```
//!
//! It keeps no orders and no books, and asks nobody for packets that are missing.

mod fault;
mod json;
mod message;
mod packet;
#[cfg(test)]
mod tests;

pub use fault::{IexFault, IexFaultCode};
pub use json::{IexSummary, decode_json};
pub use message::{
    AddOrder, AuctionInformation, ClearBook, IexFieldSpec, IexFieldType, IexMessage, IexMessageSpec,
    OfficialPrice, OperationalHalt, OrderDelete, OrderExecuted, OrderModify, PRICE_PLACES, PriceLevelBuy,
    PriceLevelSell, QuoteUpdate, RetailLiquidity, SecurityDirectory, SecurityEvent, ShortSalePriceTest,
    SystemEvent, Trade, TradeBreak, TradingStatus, spec_of, specs, symbol_name,
};
pub use packet::{
    GARBAGE_BYTES_MAX, IexFramer, IexPacket, IexPacketHeader, IexPacketPart, IexPacketParts, IexProtocol,
    NextIexPacket, PACKET_HEAD_BYTES,
};
