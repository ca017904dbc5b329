//! The messages: which field is where in which message, in one table that makes the readers too.

use super::DAY_NANOS;
use super::fault::{ItchFault, ItchFaultCode};

/// How a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItchFieldType {
    /// A letter or digit.
    Letter,
    /// Letters padded with blanks, this many bytes.
    Text(u16),
    /// A stock symbol: eight bytes.
    Stock,
    /// A buy or sell indicator.
    Side,
    /// A number of this many bytes.
    Number(u16),
    /// A price in 1/10,000, four bytes.
    Price4,
    /// A price in 1/100,000,000, eight bytes.
    Price8,
}

impl ItchFieldType {
    /// Returns the size of a field of this type, in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            ItchFieldType::Letter | ItchFieldType::Side => 1,
            ItchFieldType::Text(n) | ItchFieldType::Number(n) => n as usize,
            ItchFieldType::Stock | ItchFieldType::Price8 => 8,
            ItchFieldType::Price4 => 4,
        }
    }
}

/// A field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItchFieldSpec {
    /// Its name.
    pub name: &'static str,
    /// Its first byte, counted from the type.
    pub at: usize,
    /// How it is written.
    pub sort: ItchFieldType,
}

/// A type of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItchMessageSpec {
    /// Its letter.
    pub letter: u8,
    /// Its name.
    pub name: &'static str,
    /// Its length, the type included.
    pub bytes: usize,
    /// Its fields after the eleven bytes that all messages begin with.
    pub fields: &'static [ItchFieldSpec],
}

/// The longest message.
pub const MESSAGE_BYTES_MAX: usize = 50;

macro_rules! sort {
    (letter) => {
        ItchFieldType::Letter
    };
    (side) => {
        ItchFieldType::Side
    };
    (stock) => {
        ItchFieldType::Stock
    };
    (mpid) => {
        ItchFieldType::Text(4)
    };
    (text2) => {
        ItchFieldType::Text(2)
    };
    (u32) => {
        ItchFieldType::Number(4)
    };
    (u64) => {
        ItchFieldType::Number(8)
    };
    (price4) => {
        ItchFieldType::Price4
    };
    (price8) => {
        ItchFieldType::Price8
    };
}
macro_rules! value {
    (letter) => {
        u8
    };
    (side) => {
        u8
    };
    (stock) => {
        [u8; 8]
    };
    (mpid) => {
        [u8; 4]
    };
    (text2) => {
        [u8; 2]
    };
    (u32) => {
        u32
    };
    (u64) => {
        u64
    };
    (price4) => {
        u32
    };
    (price8) => {
        u64
    };
}
macro_rules! read {
    (letter, $b:expr) => {
        $b[0]
    };
    (side, $b:expr) => {
        $b[0]
    };
    (stock, $b:expr) => {
        *$b
    };
    (mpid, $b:expr) => {
        *$b
    };
    (text2, $b:expr) => {
        *$b
    };
    (u32, $b:expr) => {
        u32::from_be_bytes(*$b)
    };
    (u64, $b:expr) => {
        u64::from_be_bytes(*$b)
    };
    (price4, $b:expr) => {
        u32::from_be_bytes(*$b)
    };
    (price8, $b:expr) => {
        u64::from_be_bytes(*$b)
    };
}

macro_rules! messages {
    ($($(#[$about:meta])* $Name:ident $letter:literal $bytes:literal $name:literal {
        $($(#[$of:meta])* $field:ident: $sort:ident @ $at:literal,)*
    })*) => {
        /// A message of a known type and of its length, where it lies.
        #[derive(Debug, Clone, Copy)]
        #[allow(missing_docs)] // documented at each type
        pub enum ItchMessage<'m> { $($Name($Name<'m>),)* }

        $(
            $(#[$about])*
            #[derive(Debug, Clone, Copy)]
            pub struct $Name<'m>(&'m [u8; $bytes]);

            impl<'m> $Name<'m> {
                /// The type's letter.
                pub const LETTER: u8 = $letter;
                /// Bytes of the message, the type included.
                pub const BYTES: usize = $bytes;

                /// Wraps the bytes of a message of this type; does not check the type byte.
                #[inline]
                #[must_use]
                pub fn new(bytes: &'m [u8; $bytes]) -> Self {
                    Self(bytes)
                }

                /// Returns the code of the security, valid for this day only; 0 if the message is about no security.
                #[inline]
                #[must_use]
                pub fn stock_locate(self) -> u16 {
                    u16::from_be_bytes([self.0[1], self.0[2]])
                }

                /// Returns the number that NASDAQ uses for tracking.
                #[inline]
                #[must_use]
                pub fn tracking_number(self) -> u16 {
                    u16::from_be_bytes([self.0[3], self.0[4]])
                }

                /// Nanoseconds since midnight.
                #[inline]
                #[must_use]
                pub fn timestamp(self) -> u64 {
                    timestamp(self.0)
                }

                $(
                    $(#[$of])*
                    #[inline]
                    #[must_use]
                    pub fn $field(self) -> value!($sort) {
                        let bytes = self.0[$at..].first_chunk().expect("inside the message");
                        let bytes: &[u8; sort!($sort).bytes()] = bytes;
                        read!($sort, bytes)
                    }
                )*
            }
        )*

        impl<'m> ItchMessage<'m> {
            /// Parses the message in these bytes. Returns `None` if the type is unknown or the length is not that of
            /// the type.
            #[inline]
            #[must_use]
            pub fn of(bytes: &'m [u8]) -> Option<Self> {
                match *bytes.first()? {
                    $($letter => Some(Self::$Name($Name(bytes.try_into().ok()?))),)*
                    _ => None,
                }
            }

            /// Returns the message's bytes.
            #[must_use]
            pub fn bytes(self) -> &'m [u8] {
                match self { $(Self::$Name(m) => m.0,)* }
            }
        }

        static SPECS: [ItchMessageSpec; 23] = [$(ItchMessageSpec {
            letter: $letter,
            name: $name,
            bytes: $bytes,
            fields: &[$(ItchFieldSpec { name: stringify!($field), at: $at, sort: sort!($sort) },)*],
        },)*];

        const SIZES: [u8; 256] = {
            let mut sizes = [0; 256];
            $(sizes[$letter as usize] = $bytes;)*
            sizes
        };
    };
}

messages! {
    /// System Event (`S`): the day's beginning and end and what lies between.
    SystemEvent b'S' 12 "system_event" {
        /// `O` start of messages, `S` of system hours, `Q` of market hours; `M`, `E`, `C` their ends.
        event: letter @ 11,
    }
    /// Stock Directory (`R`): a security that may be traded today.
    StockDirectory b'R' 39 "stock_directory" {
        /// Symbol.
        stock: stock @ 11,
        /// Listing market: `Q` `G` `S` NASDAQ, `N` NYSE, `A` American, `P` Arca, `Z` BATS, `V` IEX.
        market_category: letter @ 19,
        /// For NASDAQ issues, `N` normal, `D` deficient, …
        financial_status: letter @ 20,
        /// Shares of a round lot.
        round_lot_size: u32 @ 21,
        /// `Y` when only round lots are accepted.
        round_lots_only: letter @ 25,
        /// Class of the issue.
        issue_classification: letter @ 26,
        /// Sub-type of the issue.
        issue_sub_type: text2 @ 27,
        /// `P` live, `T` a test.
        authenticity: letter @ 29,
        /// Whether it is on the Reg SHO threshold list.
        short_sale_threshold: letter @ 30,
        /// Whether an IPO is set up.
        ipo_flag: letter @ 31,
        /// Tier for limit up, limit down: `1` or `2`.
        luld_tier: letter @ 32,
        /// Whether it is an exchange-traded product.
        etp_flag: letter @ 33,
        /// Leverage of an exchange-traded product; 0 for other securities.
        etp_leverage: u32 @ 34,
        /// Whether the product is inverse.
        inverse: letter @ 38,
    }
    /// Stock Trading Action (`H`): trading halted, paused, in quotation only, or on.
    TradingAction b'H' 25 "trading_action" {
        /// Symbol.
        stock: stock @ 11,
        /// `H` halted, `P` paused, `Q` quotation only, `T` trading.
        state: letter @ 19,
        /// Kept free by the specification.
        reserved: letter @ 20,
        /// Why.
        reason: mpid @ 21,
    }
    /// Reg SHO Short Sale Price Test Restricted Indicator (`Y`).
    RegSho b'Y' 20 "reg_sho" {
        /// Symbol.
        stock: stock @ 11,
        /// `0` no test, `1` restricted from now on, `2` still restricted.
        action: letter @ 19,
    }
    /// Market Participant Position (`L`).
    ParticipantPosition b'L' 26 "participant_position" {
        /// Market participant.
        mpid: mpid @ 11,
        /// Symbol.
        stock: stock @ 15,
        /// `Y` for a primary market maker.
        primary: letter @ 23,
        /// `N` normal, `P` passive, `S` syndicate, `R` pre-syndicate, `L` penalty.
        mode: letter @ 24,
        /// `A` active, `E` excused, `W` withdrawn, `S` suspended, `D` deleted.
        state: letter @ 25,
    }
    /// MWCB Decline Level (`V`): where the market-wide circuit breaker trips today.
    MwcbLevels b'V' 35 "mwcb_levels" {
        /// Level 1.
        level_1: price8 @ 11,
        /// Level 2.
        level_2: price8 @ 19,
        /// Level 3.
        level_3: price8 @ 27,
    }
    /// MWCB Status (`W`): it has tripped.
    MwcbStatus b'W' 12 "mwcb_status" {
        /// The level that was breached: `1`, `2`, `3`.
        breached: letter @ 11,
    }
    /// Quoting Period Update for an IPO (`K`).
    IpoQuoting b'K' 28 "ipo_quoting" {
        /// Symbol.
        stock: stock @ 11,
        /// When quotation is released, seconds since midnight.
        release_time: u32 @ 19,
        /// `A` anticipated, `C` cancelled or postponed.
        qualifier: letter @ 23,
        /// Price of the IPO.
        price: price4 @ 24,
    }
    /// LULD Auction Collar (`J`).
    LuldCollar b'J' 35 "luld_collar" {
        /// Symbol.
        stock: stock @ 11,
        /// Reference price.
        reference_price: price4 @ 19,
        /// Upper collar.
        upper_price: price4 @ 23,
        /// Lower collar.
        lower_price: price4 @ 27,
        /// How often the auction was extended.
        extension: u32 @ 31,
    }
    /// Operational Halt (`h`): one market stops, not all.
    OperationalHalt b'h' 21 "operational_halt" {
        /// Symbol.
        stock: stock @ 11,
        /// `Q` NASDAQ, `B` BX, `X` PSX.
        market: letter @ 19,
        /// `H` halted, `T` trading again.
        action: letter @ 20,
    }
    /// Add Order without attribution (`A`): an order is in the book.
    AddOrder b'A' 36 "add_order" {
        /// Reference of the order.
        order: u64 @ 11,
        /// `B` or `S`.
        side: side @ 19,
        /// Displayed shares.
        shares: u32 @ 20,
        /// Symbol.
        stock: stock @ 24,
        /// Price.
        price: price4 @ 32,
    }
    /// Add Order with attribution (`F`).
    AddOrderMpid b'F' 40 "add_order_mpid" {
        /// Reference of the order.
        order: u64 @ 11,
        /// `B` or `S`.
        side: side @ 19,
        /// Displayed shares.
        shares: u32 @ 20,
        /// Symbol.
        stock: stock @ 24,
        /// Price.
        price: price4 @ 32,
        /// Market participant.
        attribution: mpid @ 36,
    }
    /// Order Executed (`E`) at its own price.
    OrderExecuted b'E' 31 "order_executed" {
        /// Reference of the order.
        order: u64 @ 11,
        /// Shares executed.
        shares: u32 @ 19,
        /// Number of the match.
        match_number: u64 @ 23,
    }
    /// Order Executed with Price (`C`): at another price than its own.
    OrderExecutedPrice b'C' 36 "order_executed_price" {
        /// Reference of the order.
        order: u64 @ 11,
        /// Shares executed.
        shares: u32 @ 19,
        /// Number of the match.
        match_number: u64 @ 23,
        /// `N` when a cross trade prints it.
        printable: letter @ 31,
        /// Price of the execution.
        price: price4 @ 32,
    }
    /// Order Cancel (`X`): a part of it.
    OrderCancel b'X' 23 "order_cancel" {
        /// Reference of the order.
        order: u64 @ 11,
        /// Shares removed.
        shares: u32 @ 19,
    }
    /// Order Delete (`D`): all that is left of it.
    OrderDelete b'D' 19 "order_delete" {
        /// Reference of the order.
        order: u64 @ 11,
    }
    /// Order Replace (`U`): gone, and another in its place.
    OrderReplace b'U' 35 "order_replace" {
        /// Reference of the old order.
        order: u64 @ 11,
        /// Reference of the new order.
        new_order: u64 @ 19,
        /// Its displayed shares.
        shares: u32 @ 27,
        /// Its price.
        price: price4 @ 31,
    }
    /// Trade, not of a cross (`P`): against an order that was not displayed.
    Trade b'P' 44 "trade" {
        /// Reference of the order; 0 since 2010.
        order: u64 @ 11,
        /// Side of the order; always `B` since 2014.
        side: side @ 19,
        /// Shares.
        shares: u32 @ 20,
        /// Symbol.
        stock: stock @ 24,
        /// Price.
        price: price4 @ 32,
        /// Number of the match.
        match_number: u64 @ 36,
    }
    /// Cross Trade (`Q`): all of an auction in one print.
    CrossTrade b'Q' 40 "cross_trade" {
        /// Shares; 0 where nothing crossed.
        shares: u64 @ 11,
        /// Symbol.
        stock: stock @ 19,
        /// Price.
        price: price4 @ 27,
        /// Number of the match.
        match_number: u64 @ 31,
        /// `O` opening, `C` closing, `H` IPO or after a halt, `I` intraday or after the close.
        cross_type: letter @ 39,
    }
    /// Broken Trade (`B`): an execution is void.
    BrokenTrade b'B' 19 "broken_trade" {
        /// Number of the match.
        match_number: u64 @ 11,
    }
    /// Net Order Imbalance Indicator (`I`).
    Imbalance b'I' 50 "imbalance" {
        /// Shares that can be paired at the reference price.
        paired_shares: u64 @ 11,
        /// Shares that cannot.
        imbalance_shares: u64 @ 19,
        /// `B`, `S`, `N` none, `O` too few orders, `P` paused.
        direction: letter @ 27,
        /// Symbol.
        stock: stock @ 28,
        /// Price of the cross from cross orders only.
        far_price: price4 @ 36,
        /// Price of the cross from all orders.
        near_price: price4 @ 40,
        /// Reference price.
        reference_price: price4 @ 44,
        /// `O`, `C`, `H`, `A` extended trading close.
        cross_type: letter @ 48,
        /// How far the near price is from the best price.
        variation: letter @ 49,
    }
    /// Retail Price Improvement Indicator (`N`).
    RetailInterest b'N' 20 "retail_interest" {
        /// Symbol.
        stock: stock @ 11,
        /// `B`, `S`, `A` both, `N` none.
        interest: letter @ 19,
    }
    /// Direct Listing with Capital Raise Price Discovery (`O`).
    DirectListing b'O' 48 "direct_listing" {
        /// Symbol.
        stock: stock @ 11,
        /// `Y` when it may be released for trading.
        eligible: letter @ 19,
        /// Least price allowed.
        min_price: price4 @ 20,
        /// Greatest price allowed.
        max_price: price4 @ 24,
        /// Reference price when the volatility test passed.
        near_price: price4 @ 28,
        /// When that was. The specification gives no unit.
        near_time: u64 @ 32,
        /// Lower collar.
        lower_price: price4 @ 40,
        /// Upper collar.
        upper_price: price4 @ 44,
    }
}

/// Lists all message types, in the order of the specification's chapters.
#[must_use]
pub fn specs() -> &'static [ItchMessageSpec] {
    &SPECS
}

/// Returns the length of a message of this type in bytes; 0 if there is no such type.
#[inline]
#[must_use]
pub fn size_of_type(letter: u8) -> usize {
    usize::from(SIZES[usize::from(letter)])
}

/// Trims the trailing blanks of a symbol.
#[inline]
#[must_use]
pub fn stock_name(stock: &[u8; 8]) -> &[u8] {
    stock.trim_ascii_end()
}

/// Nanoseconds since midnight, out of the bytes 5 to 10 of any message.
#[inline]
fn timestamp(message: &[u8]) -> u64 {
    let word: &[u8; 8] = message[3..].first_chunk().expect("inside the message");
    u64::from_be_bytes(*word) & 0xffff_ffff_ffff
}

impl<'m> ItchMessage<'m> {
    /// Returns the code of the security, valid for this day only.
    #[must_use]
    pub fn stock_locate(self) -> u16 {
        let bytes = self.bytes();
        u16::from_be_bytes([bytes[1], bytes[2]])
    }

    /// Nanoseconds since midnight.
    #[must_use]
    pub fn timestamp(self) -> u64 {
        timestamp(self.bytes())
    }

    /// Returns the message's type.
    #[must_use]
    pub fn spec(self) -> &'static ItchMessageSpec {
        let letter = self.bytes()[0];
        SPECS.iter().find(|s| s.letter == letter).expect("a known type")
    }

    /// Checks its values for impossible ones.
    ///
    /// # Errors
    /// Fails at the first fault.
    pub fn check(self) -> Result<(), ItchFault> {
        let bytes = self.bytes();
        if timestamp(bytes) >= DAY_NANOS {
            return Err(ItchFault::from_code(ItchFaultCode::BadTime, bytes[0], "timestamp"));
        }
        for field in self.spec().fields {
            let value = &bytes[field.at..field.at + field.sort.bytes()];
            let code = match field.sort {
                ItchFieldType::Side if !matches!(value, b"B" | b"S") => ItchFaultCode::BadSide,
                ItchFieldType::Stock if !is_name(value) => ItchFaultCode::BadStock,
                ItchFieldType::Letter | ItchFieldType::Text(_)
                    if !value.iter().all(|b| matches!(b, b' '..=b'~')) =>
                {
                    ItchFaultCode::BadText
                }
                _ => continue,
            };
            return Err(ItchFault::from_code(code, bytes[0], field.name));
        }
        Ok(())
    }
}

/// Returns whether a symbol is printable ASCII, not blank, with trailing blanks only.
fn is_name(stock: &[u8]) -> bool {
    let name = stock.trim_ascii_end();
    !name.is_empty()
        && name.iter().all(|b| matches!(b, b'!'..=b'~'))
        && stock[name.len()..].iter().all(|b| *b == b' ')
}
