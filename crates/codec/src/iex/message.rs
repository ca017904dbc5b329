//! The messages: which field is where in which message, in one table that makes the readers too.
//!
//! Sources: IEX TOPS Specification 1.66, IEX DEEP Specification 1.08, IEX DEEP+ Specification 1.02. Each says that IEX
//! may make messages longer without notice, so bytes behind the last field are accepted.

use super::fault::{IexFault, IexFaultCode};
use super::packet::IexProtocol;

/// Decimal places of a price.
pub const PRICE_PLACES: u32 = 4;

/// How a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IexFieldType {
    /// A letter or digit.
    Letter,
    /// A side: `8` buy, `5` sell.
    Side,
    /// Letters padded with blanks, this many bytes.
    Text(u16),
    /// A symbol: eight bytes.
    Symbol,
    /// An unsigned number of this many bytes.
    Number(u16),
    /// A signed price in 1/10,000, eight bytes.
    Price,
}

impl IexFieldType {
    /// Returns the size of a field of this type, in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            IexFieldType::Letter | IexFieldType::Side => 1,
            IexFieldType::Text(bytes) | IexFieldType::Number(bytes) => bytes as usize,
            IexFieldType::Symbol | IexFieldType::Price => 8,
        }
    }
}

/// A field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IexFieldSpec {
    /// Its name.
    pub name: &'static str,
    /// Its first byte, counted from the type.
    pub offset: usize,
    /// How it is written.
    pub field_type: IexFieldType,
}

/// A type of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IexMessageSpec {
    /// Its letter.
    pub letter: u8,
    /// Its name.
    pub name: &'static str,
    /// The protocols that have it.
    pub protocols: &'static [IexProtocol],
    /// Its length, the type included; a message may be longer.
    pub bytes: usize,
    /// Its fields beside the timestamp.
    pub fields: &'static [IexFieldSpec],
}

macro_rules! field_type {
    (letter) => {
        IexFieldType::Letter
    };
    (side) => {
        IexFieldType::Side
    };
    (symbol) => {
        IexFieldType::Symbol
    };
    (reason) => {
        IexFieldType::Text(4)
    };
    (u8) => {
        IexFieldType::Number(1)
    };
    (u32) => {
        IexFieldType::Number(4)
    };
    (u64) => {
        IexFieldType::Number(8)
    };
    (price) => {
        IexFieldType::Price
    };
}
macro_rules! value {
    (letter) => {
        u8
    };
    (side) => {
        u8
    };
    (symbol) => {
        [u8; 8]
    };
    (reason) => {
        [u8; 4]
    };
    (price) => {
        i64
    };
    ($number:ident) => {
        $number
    };
}
macro_rules! read {
    (letter, $bytes:expr) => {
        $bytes[0]
    };
    (side, $bytes:expr) => {
        $bytes[0]
    };
    (symbol, $bytes:expr) => {
        *$bytes
    };
    (reason, $bytes:expr) => {
        *$bytes
    };
    (price, $bytes:expr) => {
        i64::from_le_bytes(*$bytes)
    };
    ($number:ident, $bytes:expr) => {
        $number::from_le_bytes(*$bytes)
    };
}

macro_rules! messages {
    ($(
        $(#[$about:meta])*
        $Name:ident $letter:literal in $protocols:ident, $bytes:literal $name:literal {
            $($(#[$of:meta])* $field:ident: $kind:ident @ $offset:literal,)*
        }
    )*) => {
        /// A message of a known type, where it lies.
        #[derive(Debug, Clone, Copy)]
        #[allow(missing_docs)] // documented at each type
        pub enum IexMessage<'m> { $($Name($Name<'m>),)* }

        $(
            $(#[$about])*
            #[derive(Debug, Clone, Copy)]
            pub struct $Name<'m>(&'m [u8; $bytes]);

            impl<'m> $Name<'m> {
                /// The type's letter.
                pub const LETTER: u8 = $letter;
                /// Bytes of the message, the type included.
                pub const BYTES: usize = $bytes;

                /// Nanoseconds since 1970.
                #[inline]
                #[must_use]
                pub fn timestamp(self) -> i64 {
                    timestamp(self.0)
                }

                $(
                    $(#[$of])*
                    #[inline]
                    #[must_use]
                    pub fn $field(self) -> value!($kind) {
                        let bytes = self.0[$offset..].first_chunk().expect("inside the message");
                        let bytes: &[u8; field_type!($kind).bytes()] = bytes;
                        read!($kind, bytes)
                    }
                )*
            }
        )*

        impl<'m> IexMessage<'m> {
            /// Reads the message in these bytes, which begin with its type.
            ///
            /// # Errors
            /// Fails if `protocol` has no such type, or the bytes are fewer than the type has.
            #[inline]
            pub fn read(protocol: IexProtocol, bytes: &'m [u8]) -> Result<Self, IexFault> {
                match bytes.first() {
                    $(Some(&$letter) if $protocols.contains(&protocol) => match bytes.first_chunk() {
                        Some(bytes) => Ok(Self::$Name($Name(bytes))),
                        None => Err(too_short(bytes, $bytes)),
                    },)*
                    _ => Err(unknown_message(protocol, bytes)),
                }
            }

            /// Returns the message's bytes, without the fields that a later version appends.
            #[must_use]
            pub fn bytes(self) -> &'m [u8] {
                match self { $(Self::$Name(message) => message.0,)* }
            }

            /// Returns the message's type.
            #[must_use]
            pub fn spec(self) -> &'static IexMessageSpec {
                let letter = self.bytes()[0];
                SPECS.iter().find(|spec| spec.letter == letter).expect("a known type")
            }
        }

        static SPECS: [IexMessageSpec; 19] = [$(IexMessageSpec {
            letter: $letter,
            name: $name,
            protocols: $protocols,
            bytes: $bytes,
            fields: &[$(IexFieldSpec {
                name: stringify!($field),
                offset: $offset,
                field_type: field_type!($kind),
            },)*],
        },)*];
    };
}

const ALL: &[IexProtocol] = &IexProtocol::ALL;
const TOPS: &[IexProtocol] = &[IexProtocol::Tops];
const DEEP: &[IexProtocol] = &[IexProtocol::Deep];
const DEEP_PLUS: &[IexProtocol] = &[IexProtocol::DeepPlus];
const TOPS_DEEP: &[IexProtocol] = &[IexProtocol::Tops, IexProtocol::Deep];
const DEPTH: &[IexProtocol] = &[IexProtocol::Deep, IexProtocol::DeepPlus];

messages! {
    /// System Event (`S`): the day's beginning and end and what lies between.
    SystemEvent b'S' in ALL, 10 "system_event" {
        /// `O` start of messages, `S` of system hours, `R` of regular hours; `M`, `E`, `C` their ends.
        event: letter @ 1,
    }
    /// Security Directory (`D`): a security that IEX lists.
    SecurityDirectory b'D' in ALL, 31 "security_directory" {
        /// 0x80 a test security, 0x40 when issued, 0x20 an exchange-traded product.
        flags: u8 @ 1,
        /// Symbol.
        symbol: symbol @ 10,
        /// Shares of a round lot.
        round_lot_size: u32 @ 18,
        /// The previous official closing price, adjusted for corporate actions.
        adjusted_poc_price: price @ 22,
        /// Tier for limit up, limit down: 1 or 2; 0 where it does not apply.
        luld_tier: u8 @ 30,
    }
    /// Trading Status (`H`): halted, in an order acceptance period, paused, or trading.
    TradingStatus b'H' in ALL, 22 "trading_status" {
        /// `H` halted, `O` order acceptance period, `P` paused, `T` trading.
        status: letter @ 1,
        /// Symbol.
        symbol: symbol @ 10,
        /// Why.
        reason: reason @ 18,
    }
    /// Retail Liquidity Indicator (`I`).
    RetailLiquidity b'I' in ALL, 18 "retail_liquidity" {
        /// Blank for none, `A` buy, `B` sell, `C` both.
        indicator: letter @ 1,
        /// Symbol.
        symbol: symbol @ 10,
    }
    /// Operational Halt Status (`O`): a halt on IEX only.
    OperationalHalt b'O' in ALL, 18 "operational_halt" {
        /// `O` halted, `N` not.
        status: letter @ 1,
        /// Symbol.
        symbol: symbol @ 10,
    }
    /// Short Sale Price Test Status (`P`).
    ShortSalePriceTest b'P' in ALL, 19 "short_sale_price_test" {
        /// 1 when the test is in effect, 0 when it is not.
        status: u8 @ 1,
        /// Symbol.
        symbol: symbol @ 10,
        /// Blank for none, `A` activated, `C` continued, `D` deactivated, `N` not available.
        detail: letter @ 18,
    }
    /// Security Event (`E`).
    SecurityEvent b'E' in DEPTH, 18 "security_event" {
        /// `O` opening process complete, `C` closing process complete.
        event: letter @ 1,
        /// Symbol.
        symbol: symbol @ 10,
    }
    /// Quote Update (`Q`): the best bid and offer.
    QuoteUpdate b'Q' in TOPS, 42 "quote_update" {
        /// 0x80 the security is not available for trading, 0x40 outside of regular hours.
        flags: u8 @ 1,
        /// Symbol.
        symbol: symbol @ 10,
        /// Shares at the best bid; 0 where there is no bid.
        bid_size: u32 @ 18,
        /// The best bid; 0 without a bid.
        bid_price: price @ 22,
        /// The best offer; 0 without an offer.
        ask_price: price @ 30,
        /// Shares at the best offer; 0 where there is no offer.
        ask_size: u32 @ 38,
    }
    /// Price Level Update of the buy side (`8`).
    PriceLevelBuy b'8' in DEEP, 30 "price_level_buy" {
        /// 0x01 when the event that changed the book is complete.
        flags: u8 @ 1,
        /// Symbol.
        symbol: symbol @ 10,
        /// Shares at the price now; 0 removes it.
        size: u32 @ 18,
        /// The price.
        price: price @ 22,
    }
    /// Price Level Update of the sell side (`5`).
    PriceLevelSell b'5' in DEEP, 30 "price_level_sell" {
        /// 0x01 when the event that changed the book is complete.
        flags: u8 @ 1,
        /// Symbol.
        symbol: symbol @ 10,
        /// Shares at the price now; 0 removes it.
        size: u32 @ 18,
        /// The price.
        price: price @ 22,
    }
    /// Trade Report, in DEEP+ Trade (`T`). In DEEP+ it is about orders that are not displayed.
    Trade b'T' in ALL, 38 "trade" {
        /// Sale conditions: 0x80 intermarket sweep, 0x40 extended hours, 0x20 odd lot, 0x10 trade-through exempt, 0x08 cross.
        flags: u8 @ 1,
        /// Symbol.
        symbol: symbol @ 10,
        /// Shares.
        size: u32 @ 18,
        /// Price.
        price: price @ 22,
        /// Number of the trade.
        trade_id: u64 @ 30,
    }
    /// Official Price (`X`) of a security that IEX lists.
    OfficialPrice b'X' in TOPS_DEEP, 26 "official_price" {
        /// `Q` opening, `M` closing.
        price_type: letter @ 1,
        /// Symbol.
        symbol: symbol @ 10,
        /// Price.
        price: price @ 18,
    }
    /// Trade Break (`B`): an execution is void.
    TradeBreak b'B' in ALL, 38 "trade_break" {
        /// Sale conditions of the trade, as there.
        flags: u8 @ 1,
        /// Symbol.
        symbol: symbol @ 10,
        /// Shares.
        size: u32 @ 18,
        /// Price.
        price: price @ 22,
        /// Number of the trade that is void.
        trade_id: u64 @ 30,
    }
    /// Auction Information (`A`).
    AuctionInformation b'A' in TOPS_DEEP, 80 "auction_information" {
        /// `O` opening, `C` closing, `I` IPO, `H` halt, `V` volatility.
        auction_type: letter @ 1,
        /// Symbol.
        symbol: symbol @ 10,
        /// Shares that can be paired at the reference price.
        paired_shares: u32 @ 18,
        /// Reference price.
        reference_price: price @ 22,
        /// Clearing price of all orders that are eligible.
        indicative_clearing_price: price @ 30,
        /// Shares that cannot be paired.
        imbalance_shares: u32 @ 38,
        /// `B` buy, `S` sell, `N` none.
        imbalance_side: letter @ 42,
        /// How often the auction was extended.
        extension_number: u8 @ 43,
        /// Projected time of the match, seconds since 1970.
        scheduled_auction_time: u32 @ 44,
        /// Clearing price of the orders on the auction book.
        auction_book_clearing_price: price @ 48,
        /// Reference price of the collar; 0 without a collar.
        collar_reference_price: price @ 56,
        /// Lower threshold of the collar.
        lower_auction_collar: price @ 64,
        /// Upper threshold of the collar.
        upper_auction_collar: price @ 72,
    }
    /// Add Order (`a`): a displayed order is in the book.
    AddOrder b'a' in DEEP_PLUS, 38 "add_order" {
        /// `8` buy, `5` sell.
        side: side @ 1,
        /// Symbol.
        symbol: symbol @ 10,
        /// Its id.
        order: u64 @ 18,
        /// Displayed shares.
        size: u32 @ 26,
        /// Price.
        price: price @ 30,
    }
    /// Order Modify (`M`): another size, price or priority.
    OrderModify b'M' in DEEP_PLUS, 38 "order_modify" {
        /// 0x01 when the order keeps its priority.
        flags: u8 @ 1,
        /// Symbol.
        symbol: symbol @ 10,
        /// Id of the order.
        order: u64 @ 18,
        /// Displayed shares now.
        size: u32 @ 26,
        /// Price now.
        price: price @ 30,
    }
    /// Order Delete (`R`): an order is gone.
    OrderDelete b'R' in DEEP_PLUS, 26 "order_delete" {
        /// Kept free by the specification.
        reserved: u8 @ 1,
        /// Symbol.
        symbol: symbol @ 10,
        /// Id of the order.
        order: u64 @ 18,
    }
    /// Order Executed (`L`): a displayed order, in whole or in part.
    OrderExecuted b'L' in DEEP_PLUS, 46 "order_executed" {
        /// Sale conditions, as of a trade.
        flags: u8 @ 1,
        /// Symbol.
        symbol: symbol @ 10,
        /// Id of the order.
        order: u64 @ 18,
        /// Shares executed.
        size: u32 @ 26,
        /// Price of the execution, which may be another than the order's.
        price: price @ 30,
        /// Number of the trade.
        trade_id: u64 @ 38,
    }
    /// Clear Book (`C`): no order of the security is left.
    ClearBook b'C' in DEEP_PLUS, 18 "clear_book" {
        /// Kept free by the specification.
        reserved: u8 @ 1,
        /// Symbol.
        symbol: symbol @ 10,
    }
}

/// Lists all message types.
#[must_use]
pub fn specs() -> &'static [IexMessageSpec] {
    &SPECS
}

/// Looks up a message type by its letter in a protocol.
#[must_use]
pub fn spec_of(protocol: IexProtocol, letter: u8) -> Option<&'static IexMessageSpec> {
    SPECS.iter().find(|spec| spec.letter == letter && spec.protocols.contains(&protocol))
}

/// Trims the trailing blanks of a symbol.
#[inline]
#[must_use]
pub fn symbol_name(symbol: &[u8; 8]) -> &[u8] {
    symbol.trim_ascii_end()
}

impl<'m> IexMessage<'m> {
    /// Nanoseconds since 1970.
    #[inline]
    #[must_use]
    pub fn timestamp(self) -> i64 {
        timestamp(self.bytes())
    }

    /// Returns the message's symbol; `None` for a system event.
    #[must_use]
    pub fn symbol(self) -> Option<&'m [u8; 8]> {
        match self {
            IexMessage::SystemEvent(_) => None,
            other => other.bytes().get(SYMBOL_OFFSET..)?.first_chunk(),
        }
    }

    /// Checks its values for impossible ones.
    ///
    /// # Errors
    /// Fails at the first fault.
    pub fn check(self) -> Result<(), IexFault> {
        let bytes = self.bytes();
        if timestamp(bytes) < 0 {
            return Err(IexFault::new(IexFaultCode::BadTime, "timestamp: before 1970"));
        }
        for field in self.spec().fields {
            let value = &bytes[field.offset..field.offset + field.field_type.bytes()];
            let (code, detail) = match field.field_type {
                IexFieldType::Side if !matches!(value, b"8" | b"5") => {
                    (IexFaultCode::BadSide, "neither 8 (buy) nor 5 (sell)")
                }
                IexFieldType::Symbol if !is_name(value) => {
                    (IexFaultCode::BadSymbol, "no symbol of printable ASCII")
                }
                IexFieldType::Letter | IexFieldType::Text(_)
                    if !value.iter().all(|byte| matches!(byte, b' '..=b'~')) =>
                {
                    (IexFaultCode::BadText, "not printable ASCII")
                }
                _ => continue,
            };
            return Err(IexFault::new(code, format!("{}: {detail}", field.name)));
        }
        Ok(())
    }
}

/// Where the symbol is in each message that has one.
const SYMBOL_OFFSET: usize = 10;

/// Nanoseconds since 1970, out of the bytes 2 to 9 of any message.
#[inline]
fn timestamp(message: &[u8]) -> i64 {
    i64::from_le_bytes(*message[2..].first_chunk().expect("inside the message"))
}

/// Returns whether a symbol is printable ASCII, not blank, with trailing blanks only.
fn is_name(symbol: &[u8]) -> bool {
    let name = symbol.trim_ascii_end();
    !name.is_empty()
        && name.iter().all(|byte| matches!(byte, b'!'..=b'~'))
        && symbol[name.len()..].iter().all(|byte| *byte == b' ')
}

#[cold]
fn too_short(bytes: &[u8], size: usize) -> IexFault {
    let (letter, length) = (bytes[0].escape_ascii(), bytes.len());
    let detail = format!("a message of type {letter} has {size} bytes or more, {length} are stated");
    IexFault::new(IexFaultCode::BadLength, detail)
}

#[cold]
fn unknown_message(protocol: IexProtocol, bytes: &[u8]) -> IexFault {
    let Some(letter) = bytes.first() else {
        return IexFault::new(IexFaultCode::BadLength, "a message has a type, 0 bytes are stated");
    };
    let (name, letter, length) = (protocol.name(), letter.escape_ascii(), bytes.len());
    let detail = format!("no message of {name} has the type {letter}, {length} bytes are stated");
    IexFault::new(IexFaultCode::UnknownType, detail)
}
