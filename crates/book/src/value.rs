//! What books are asked for: sides, levels, best prices, and what may be said of them.

use std::fmt;
use unitape_model::{Amount, Decimal, InlineId, Price, Side, UnixNanos, id};

/// A price as a key that is the greater the better the price is on this side. Its own inverse.
#[inline]
pub(crate) const fn price_key(side: Side, px: i64) -> i64 {
    match side {
        Side::Buy => px,
        // Not the negative, which the least price has none of.
        Side::Sell => !px,
    }
}

/// What a book is built from. A listing may have several at once.
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

    /// The word users see.
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
pub struct Level {
    /// The price.
    pub px: Price,
    /// All quantity at it; zero where the feed does not tell.
    pub qty: Amount,
    /// How many orders stand there, where the feed tells.
    pub orders: Option<u32>,
}

/// Best bid and offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bbo {
    /// Best bid.
    pub bid: Option<Level>,
    /// Best offer.
    pub ask: Option<Level>,
    /// What is to be said of it.
    pub marks: Marks,
    /// Event time of the event that last touched what it was taken from.
    pub ts: UnixNanos,
}

/// The first levels of a book, best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Bids.
    pub bids: Vec<Level>,
    /// Offers.
    pub asks: Vec<Level>,
}

/// What is to be said of a book or of a best price.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Marks(u8);

impl Marks {
    /// Best bid and best offer are equal.
    pub const LOCKED: Marks = Marks(1);
    /// The best bid is above the best offer. Usual in an auction, a sign of trouble otherwise.
    pub const CROSSED: Marks = Marks(2);
    /// Not to be trusted: a fault has shown that something was missed, it is too old, or it was marked by hand.
    /// On a consolidated price: a venue was left out for that.
    pub const STALE: Marks = Marks(4);
    /// Orders are gathered, and not matched as they come: before the opening, in an auction or a fixing.
    pub const AUCTION: Marks = Marks(8);
    /// Trading has stopped.
    pub const HALTED: Marks = Marks(16);
    /// The market session is over.
    pub const CLOSED: Marks = Marks(32);

    const NAMES: [(Marks, &'static str); 6] = [
        (Marks::LOCKED, "locked"),
        (Marks::CROSSED, "crossed"),
        (Marks::STALE, "stale"),
        (Marks::AUCTION, "auction"),
        (Marks::HALTED, "halted"),
        (Marks::CLOSED, "closed"),
    ];

    /// Whether all of `marks` are set.
    pub const fn has(self, marks: Marks) -> bool {
        self.0 & marks.0 == marks.0
    }

    /// Whether none is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// These and those.
    #[must_use]
    pub const fn with(self, marks: Marks) -> Marks {
        Marks(self.0 | marks.0)
    }

    /// The words users see.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(m, _)| self.has(*m)).map(|(_, name)| name)
    }

    /// Crossed or locked, of the best prices of both sides.
    pub(crate) fn of_prices(bid: Option<i64>, ask: Option<i64>) -> Marks {
        match (bid, ask) {
            (Some(bid), Some(ask)) if bid > ask => Marks::CROSSED,
            (Some(bid), Some(ask)) if bid == ask => Marks::LOCKED,
            _ => Marks::default(),
        }
    }
}

impl fmt::Debug for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// The phase of a market session, as `session` events tell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Phase {
    /// Nothing was told; taken as continuous trading.
    #[default]
    Untold,
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

impl Phase {
    /// The phase of this name.
    pub(crate) fn from_name(name: &str) -> Option<Phase> {
        [Phase::Pre, Phase::Open, Phase::Auction, Phase::Fixing, Phase::Halt, Phase::Close]
            .into_iter()
            .find(|p| p.name() == Some(name))
    }

    /// The word for it, none for [`Phase::Untold`].
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Phase::Untold => None,
            Phase::Pre => Some("pre"),
            Phase::Open => Some("open"),
            Phase::Auction => Some("auction"),
            Phase::Fixing => Some("fixing"),
            Phase::Halt => Some("halt"),
            Phase::Close => Some("close"),
        }
    }

    /// Whether orders are matched as they come.
    pub const fn is_continuous(self) -> bool {
        matches!(self, Phase::Untold | Phase::Open)
    }

    pub(crate) const fn marks(self) -> Marks {
        match self {
            Phase::Untold | Phase::Open => Marks(0),
            Phase::Pre | Phase::Auction | Phase::Fixing => Marks::AUCTION,
            Phase::Halt => Marks::HALTED,
            Phase::Close => Marks::CLOSED,
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
    /// Its limit; none for a market order.
    pub px: Option<Price>,
    /// What is left of it.
    pub left: Decimal,
    /// What is seen of that.
    pub shown: Decimal,
    /// What was executed.
    pub done: Decimal,
    /// Whether it stands in the queue of its price. Orders that are to be executed at once, stop orders, orders
    /// without a price and one that is being matched do not.
    pub queued: bool,
}

/// An order id as a key: its 24 bytes in an event or, for one that is too long for that, a mark that no id in
/// place begins with, its length and a 128-bit hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OrderId(pub(crate) [u8; 24]);

impl OrderId {
    pub(crate) const MARK_HASHED: u8 = 0x1f;

    /// The key of an id that has its place in an event's fixed part; none for one that is too long for it.
    pub fn of(oid: InlineId<'_>) -> Option<OrderId> {
        let mut slot = [0; 24];
        id::pack_id(oid, &mut slot).then_some(OrderId(slot))
    }

    /// The bytes of the key.
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
