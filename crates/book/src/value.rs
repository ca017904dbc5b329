//! The values of books: sides, levels, best prices, and their marks.

use crate::state::State;
use std::fmt;
use unitape_model::{Amount, Decimal, InlineId, Price, Side, UnixNanos, id};

/// Converts a price to a key that is greater for a better price on this side. The function is its own inverse.
#[inline]
pub(crate) const fn price_key(side: Side, px: i64) -> i64 {
    match side {
        Side::Buy => px,
        // Not the negative: the least price has no negative.
        Side::Sell => !px,
    }
}

/// The basis of a book. A listing may have several at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Basis {
    /// The orders themselves: `order_new`, `order_amend`, `order_cancel`, `exec`.
    Orders = 0,
    /// Levels as the venue publishes them: `level`.
    Levels = 1,
    /// The best bid and offer as the venue publishes it: `bbo`. A book of one level a side.
    Bbo = 2,
}

impl Basis {
    /// All of them.
    pub const ALL: [Basis; 3] = [Basis::Orders, Basis::Levels, Basis::Bbo];

    /// Returns the word that users see.
    pub const fn name(self) -> &'static str {
        match self {
            Basis::Orders => "orders",
            Basis::Levels => "levels",
            Basis::Bbo => "bbo",
        }
    }
}

/// A price on one side of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceLevel {
    /// The price.
    pub px: Price,
    /// The total quantity at this price, or zero if the feed does not publish it.
    pub qty: Amount,
    /// The number of orders, if the feed publishes it.
    pub orders: Option<u32>,
}

/// Best bid and offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bbo {
    /// Best bid.
    pub bid: Option<PriceLevel>,
    /// Best offer.
    pub ask: Option<PriceLevel>,
    /// Its marks.
    pub marks: QuoteFlags,
    /// Event time of the event that last touched its book.
    pub ts: UnixNanos,
}

/// The first levels of a book, best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookDepth {
    /// Bids.
    pub bids: Vec<PriceLevel>,
    /// Offers.
    pub asks: Vec<PriceLevel>,
}

/// The marks of a book or of a best price.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct QuoteFlags(u8);

impl QuoteFlags {
    /// Best bid and best offer are equal.
    pub const LOCKED: QuoteFlags = QuoteFlags(1);
    /// The best bid is above the best offer. Usual in an auction, a sign of trouble otherwise.
    pub const CROSSED: QuoteFlags = QuoteFlags(2);
    /// Not to be trusted: a fault has shown a loss, the price is too old, or it was marked by hand. On a consolidated
    /// price: a stale venue was left out.
    pub const STALE: QuoteFlags = QuoteFlags(4);
    /// Orders are gathered, and not matched as they come: before the opening, in an auction or a fixing.
    pub const AUCTION: QuoteFlags = QuoteFlags(8);
    /// Trading has stopped.
    pub const HALTED: QuoteFlags = QuoteFlags(16);
    /// The market session is over.
    pub const CLOSED: QuoteFlags = QuoteFlags(32);

    const NAMES: [(QuoteFlags, &'static str); 6] = [
        (QuoteFlags::LOCKED, "locked"),
        (QuoteFlags::CROSSED, "crossed"),
        (QuoteFlags::STALE, "stale"),
        (QuoteFlags::AUCTION, "auction"),
        (QuoteFlags::HALTED, "halted"),
        (QuoteFlags::CLOSED, "closed"),
    ];

    /// Returns whether all flags of `marks` are set.
    pub const fn contains(self, marks: QuoteFlags) -> bool {
        self.0 & marks.0 == marks.0
    }

    /// Returns whether no flag is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the flags that are set in `self` or in `marks`.
    #[must_use]
    pub const fn union(self, marks: QuoteFlags) -> QuoteFlags {
        QuoteFlags(self.0 | marks.0)
    }

    /// Returns the words that users see for the set flags.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(m, _)| self.contains(*m)).map(|(_, name)| name)
    }

    /// Returns the flag for crossed or locked best prices of both sides.
    pub(crate) fn from_prices(bid: Option<i64>, ask: Option<i64>) -> QuoteFlags {
        match (bid, ask) {
            (Some(bid), Some(ask)) if bid > ask => QuoteFlags::CROSSED,
            (Some(bid), Some(ask)) if bid == ask => QuoteFlags::LOCKED,
            _ => QuoteFlags::default(),
        }
    }
}

impl fmt::Debug for QuoteFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// The phase of a market session, from `session` events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SessionPhase {
    /// No event has named a phase; treated as continuous trading.
    #[default]
    Unknown,
    /// Before the opening.
    Pre,
    /// Continuous trading.
    Open,
    /// An auction.
    Auction,
    /// A fixing.
    Fixing,
    /// A halt.
    Halt,
    /// Closed.
    Close,
}

impl SessionPhase {
    /// Finds the phase with this name.
    pub(crate) fn from_name(name: &str) -> Option<SessionPhase> {
        [
            SessionPhase::Pre,
            SessionPhase::Open,
            SessionPhase::Auction,
            SessionPhase::Fixing,
            SessionPhase::Halt,
            SessionPhase::Close,
        ]
        .into_iter()
        .find(|p| p.name() == Some(name))
    }

    /// Returns the word of the phase, or `None` for [`SessionPhase::Unknown`].
    pub const fn name(self) -> Option<&'static str> {
        match self {
            SessionPhase::Unknown => None,
            SessionPhase::Pre => Some("pre"),
            SessionPhase::Open => Some("open"),
            SessionPhase::Auction => Some("auction"),
            SessionPhase::Fixing => Some("fixing"),
            SessionPhase::Halt => Some("halt"),
            SessionPhase::Close => Some("close"),
        }
    }

    /// Returns whether the venue matches orders as they arrive. An unknown phase counts as open.
    pub const fn is_continuous(self) -> bool {
        matches!(self, SessionPhase::Unknown | SessionPhase::Open)
    }

    pub(crate) const fn marks(self) -> QuoteFlags {
        match self {
            SessionPhase::Unknown | SessionPhase::Open => QuoteFlags(0),
            SessionPhase::Pre | SessionPhase::Auction | SessionPhase::Fixing => QuoteFlags::AUCTION,
            SessionPhase::Halt => QuoteFlags::HALTED,
            SessionPhase::Close => QuoteFlags::CLOSED,
        }
    }
}

/// An order of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderView {
    /// The venue's id.
    pub oid: OrderId,
    /// Its side.
    pub side: Side,
    /// The limit price, or `None` for a market order.
    pub px: Option<Price>,
    /// The remaining quantity.
    pub left: Decimal,
    /// The visible part of that.
    pub visible_qty: Decimal,
    /// The executed quantity.
    pub executed_qty: Decimal,
    /// Whether the order is in the queue of its price. Orders for immediate execution, stop orders, orders without a
    /// price and an order that is being matched are in no queue.
    pub is_queued: bool,
}

/// An order id as a key: its 24 bytes in an event. A longer id has a mark with which no id in the fixed part begins,
/// its length and a 128-bit hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OrderId(pub(crate) [u8; 24]);

impl OrderId {
    pub(crate) const MARK_HASHED: u8 = 0x1f;

    /// Makes the key of an order id that fits into the event's fixed part. Returns `None` for a longer id.
    pub fn from_inline(oid: InlineId<'_>) -> Option<OrderId> {
        let mut slot = [0; 24];
        id::pack_id(oid, &mut slot).then_some(OrderId(slot))
    }

    /// Returns the bytes of the key.
    pub fn bytes(&self) -> &[u8; 24] {
        &self.0
    }
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0[0] == Self::MARK_HASHED {
            f.write_str("#")?;
            return self.0[8..].iter().try_for_each(|b| write!(f, "{b:02x}"));
        }
        match id::unpack_id(&self.0, &mut [0; 36]) {
            Some(InlineId::Number(n)) => n.fmt(f),
            Some(InlineId::Text(t)) => f.write_str(&String::from_utf8_lossy(t)),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

crate::state::state!(OrderId { 0 });
crate::state::state!(QuoteFlags { 0 });

impl State for Basis {
    fn encode(&self, out: &mut Vec<u8>) {
        (*self as u8).encode(out);
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        Basis::ALL.get(usize::from(u8::decode(input)?)).copied()
    }
}

impl State for SessionPhase {
    fn encode(&self, out: &mut Vec<u8>) {
        (*self as u8).encode(out);
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        let number = u8::decode(input)?;
        let flag_names = [
            SessionPhase::Unknown,
            SessionPhase::Pre,
            SessionPhase::Open,
            SessionPhase::Auction,
            SessionPhase::Fixing,
            SessionPhase::Halt,
            SessionPhase::Close,
        ];
        flag_names.into_iter().find(|phase| *phase as u8 == number)
    }
}
