//! The events of a simulated day, as plain values: no text, nothing to free, so that a stream of them costs nothing.
//!
//! Prices are in ticks of their instrument, quantities whole; names are numbers that [`super::SimulatedMarket`] explains. The number
//! of an instrument is its index there.
//! Seconds forms (tape frames, lines, FIX, …) are made from these by the writers beside.

use super::market::ListEntry;
use crate::book::BestLevel;
use unitape_model::{InstrumentId, Side};

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayEvent {
    /// Ordinal in the stream, from 1, without a gap.
    pub seq: u64,
    /// Event time, nanoseconds since the Unix epoch; never goes back.
    pub ts: u64,
    /// The body of the event.
    pub body: DayEventBody,
}

/// The body of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayEventBody {
    /// Reference data of an instrument.
    Ref {
        /// Number of the instrument.
        instr: InstrumentId,
    },
    /// An owner belongs to a group.
    Party {
        /// Index of the owner.
        owner: u32,
    },
    /// A book enters a phase of its day.
    Session {
        /// Index of the book.
        book: u32,
        /// The phase.
        phase: MarketPhase,
        /// Price of the auction that ended (with `open`), or the official closing price (with `close`), in ticks.
        px: Option<i64>,
    },
    /// Trading status of a book.
    Status {
        /// Index of the book.
        book: u32,
        /// True while nothing is matched.
        halted: bool,
    },
    /// Best bid and offer of a book changed.
    Bbo {
        /// Index of the book.
        book: u32,
        /// Best bid, if there is one.
        bid: Option<BestLevel>,
        /// Best offer, if there is one.
        ask: Option<BestLevel>,
    },
    /// Public print.
    Trade {
        /// Index of the book.
        book: u32,
        /// Ticks.
        px: i64,
        /// Shares.
        qty: i64,
        /// Number of the match, the same in both executions.
        match_id: u64,
        /// Matched in an auction.
        auction: bool,
    },
    /// A client's order arrived at its broker and is not in the market yet.
    OrderRecv {
        /// Number of the client order, which is also that of the parent made from it.
        client: u64,
        /// The member that will work it.
        member: u32,
        /// Number of the instrument.
        instr: InstrumentId,
        /// Side.
        side: Side,
        /// Shares.
        qty: i64,
    },
    /// An algorithm was given a parent order to work.
    Parent {
        /// Number of the parent, from 1.
        parent: u64,
        /// The member whose algorithm works it.
        member: u32,
        /// Number of the instrument.
        instr: InstrumentId,
        /// Side.
        side: Side,
        /// Shares.
        qty: i64,
    },
    /// The venue accepted an order.
    New(OrderTicket),
    /// The venue accepted other terms; `qty` is the total. A stop that is elected comes as an amend to `limit` or
    /// `market`.
    Amend(OrderTicket),
    /// The order has ended: by request, because its rest may not rest, or at the end of the day.
    Cancel(OrderTicket),
    /// The venue refused an order.
    Reject(OrderTicket),
    /// One side of a match.
    Exec {
        /// The order, with its current terms.
        order: OrderTicket,
        /// Ticks.
        px: i64,
        /// Shares of this match.
        qty: i64,
        /// Number of the match.
        match_id: u64,
        /// Passive, aggressive or auction.
        liq: LiquidityFlag,
        /// The member on the other side.
        cpty: u32,
    },
    /// News about an instrument.
    News {
        /// Number, from 1.
        id: u64,
        /// Number of the instrument.
        instr: InstrumentId,
        /// Whether it is good for the price.
        good: bool,
        /// Ticks by which the price moves because of the news.
        ticks: i64,
    },
    /// A payment.
    Payment(Payment),
    /// An entry of a list, which a scene of a market of several days needs.
    List(ListEntry),
    /// The holding of an owner, which a scene of a market of several days reports during the day.
    Position {
        /// Index of the owner.
        owner: u32,
        /// Number of the instrument.
        instr: InstrumentId,
        /// Shares; below zero for a short position.
        qty: i64,
        /// The sum of all long holdings in the instrument.
        open_interest: i64,
    },
}

/// Terms of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderTicket {
    /// Number of the order, unique over all venues, from 1; stays the same through amends.
    pub oid: u64,
    /// Index of the book.
    pub book: u32,
    /// The member that sent it.
    pub member: u32,
    /// Side.
    pub side: Side,
    /// Kind of order.
    pub kind: OrderKind,
    /// The order's time in force.
    pub tif: TimeInForce,
    /// Limit in ticks; `None` for `market` and `stop`.
    pub px: Option<i64>,
    /// Price that elects a stop, in ticks.
    pub stop_px: Option<i64>,
    /// Total quantity, also after an amend.
    pub qty: i64,
    /// Number of the parent order; 0 if there is no parent. If the highest bit is set, the client order of that number is
    /// the parent.
    pub parent: u64,
}

/// Kind of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the usual words
pub enum OrderKind {
    Market,
    Limit,
    Stop,
    StopLimit,
}

/// The time in force of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeInForce {
    /// Rests until the end of the day.
    Day,
    /// Immediate or cancel: the part that is not filled at once is cancelled.
    Ioc,
    /// Filled in full at once, or cancelled.
    Fok,
}

/// The side of the liquidity that an execution was on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiquidityFlag {
    /// The order rested and was hit.
    Passive,
    /// The order hit a resting order.
    Aggressive,
    /// Matched in an auction.
    Auction,
}

/// Phase of a book's day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarketPhase {
    /// Nothing is accepted yet.
    Pre,
    /// Orders are accepted and not matched; the auction at its end matches them at one price.
    Auction,
    /// Continuous matching.
    Open,
    /// Only cancels are accepted, nothing is matched.
    Halt,
    /// The day is over.
    Close,
}

/// A payment between two accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payment {
    /// Number, from 1.
    pub number: u64,
    /// A bank's own transfer (MT202) and not a customer's (MT103).
    pub between_banks: bool,
    /// Index of the debtor's account.
    pub debtor: u32,
    /// Index of the creditor's account.
    pub creditor: u32,
    /// Currency.
    pub ccy: &'static str,
    /// Amount in hundredths.
    pub cents: i64,
}

impl OrderKind {
    /// Returns the order type's word in events: `market`, `limit`, `stop`, `stoplmt`.
    pub const fn word(self) -> &'static str {
        match self {
            OrderKind::Market => "market",
            OrderKind::Limit => "limit",
            OrderKind::Stop => "stop",
            OrderKind::StopLimit => "stoplmt",
        }
    }

    /// Returns whether the order waits for a trigger price before it is active.
    pub const fn is_waiting_stop(self) -> bool {
        matches!(self, OrderKind::Stop | OrderKind::StopLimit)
    }
}

impl TimeInForce {
    /// Returns the word in events.
    pub const fn word(self) -> &'static str {
        match self {
            TimeInForce::Day => "DAY",
            TimeInForce::Ioc => "IOC",
            TimeInForce::Fok => "FOK",
        }
    }
}

impl MarketPhase {
    /// Returns the word in events.
    pub const fn word(self) -> &'static str {
        match self {
            MarketPhase::Pre => "pre",
            MarketPhase::Auction => "auction",
            MarketPhase::Open => "open",
            MarketPhase::Halt => "halt",
            MarketPhase::Close => "close",
        }
    }
}
