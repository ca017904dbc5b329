//! The events of a market of several days.

use unitape_model::{InstrumentId, Side};

use super::super::event::{DayEvent, DayEventBody};
use super::control::ControlRequest;
use crate::book::BestLevel;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketEvent {
    /// Ordinal in the stream, from 1, without a gap over all days.
    pub seq: u64,
    /// Event time, nanoseconds since the Unix epoch; never goes back.
    pub ts: u64,
    /// The body of the event.
    pub body: MarketEventBody,
}

/// The body of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarketEventBody {
    /// An event of the day.
    Day {
        /// The event.
        body: DayEventBody,
        /// The short-sale mark of the sale in the event; `None` for other events.
        short: Option<ShortMark>,
    },
    /// A price level of the first venue changed.
    Level {
        /// Index of the book.
        book: u32,
        /// Side.
        side: Side,
        /// The change of the level.
        action: LevelAction,
        /// The level after the change; a removed level as it was before.
        level: PriceLevel,
    },
    /// The best of all venues changed.
    NationalBest {
        /// Number of the instrument.
        instr: InstrumentId,
        /// Best bid, and all quantity at it on all venues.
        bid: Option<BestLevel>,
        /// Best offer, and all quantity at it on all venues.
        ask: Option<BestLevel>,
    },
    /// Reference data of the index.
    IndexRef {
        /// The index value at the end of the previous day, in hundredths.
        prev_close: i64,
    },
    /// Value of the index.
    Index {
        /// In hundredths.
        px: i64,
    },
    /// Composite price of an instrument.
    ReferencePrice {
        /// Number of the instrument.
        instr: InstrumentId,
        /// In halves of a tick.
        half_ticks: i64,
    },
    /// News that corrects earlier news.
    Revision(NewsRevision),
    /// A message between traders.
    Comm(CommMessage),
    /// An entry of a list.
    List(ListEntry),
    /// A link between two owners.
    Link(OwnerLink),
    /// The holding of an owner as the day begins, or when a scene reports it.
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
    /// The cash of an account in a currency over the day.
    Statement(Box<CashStatement>),
    /// The market obeys a control from here on.
    Control(Box<ControlRequest>),
}

/// Whether a sale is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShortMark {
    /// The owner sells more than the held quantity.
    Short,
    /// The owner holds it.
    Long,
    /// Short, and exempt from the price test.
    Exempt,
}

impl ShortMark {
    /// Returns `Y`, `N` or `E`.
    pub const fn letter(self) -> &'static str {
        match self {
            ShortMark::Short => "Y",
            ShortMark::Long => "N",
            ShortMark::Exempt => "E",
        }
    }
}

/// The change of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LevelAction {
    /// The level is new.
    Add,
    /// The quantity or the number of orders has changed.
    Change,
    /// The level was removed.
    Delete,
}

impl LevelAction {
    /// Returns `A`, `C` or `D`.
    pub const fn letter(self) -> &'static str {
        match self {
            LevelAction::Add => "A",
            LevelAction::Change => "C",
            LevelAction::Delete => "D",
        }
    }
}

/// A price level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceLevel {
    /// Ticks.
    pub px: i64,
    /// Shares.
    pub qty: i64,
    /// Number of orders.
    pub orders: u32,
}

/// News that corrects earlier news and reverses half of its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewsRevision {
    /// Number, in one row with all news.
    pub id: u64,
    /// Number of the news that it corrects.
    pub revises: u64,
    /// Number of the instrument.
    pub instr: InstrumentId,
    /// Ticks by which the price moves because of the news.
    pub ticks: i64,
}

/// A message between traders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommMessage {
    /// Number, from 1.
    pub number: u64,
    /// The sender, a member.
    pub from: u32,
    /// The recipients, members; the second may be the same as the first.
    pub to: [u32; 2],
    /// The message that it answers.
    pub reply_to: Option<u64>,
    /// Number of the instrument that it is about, if it is about one.
    pub instr: Option<InstrumentId>,
    /// Whether the sender changed it afterwards.
    pub changed: bool,
    /// Which text it has.
    pub text: u8,
}

/// An entry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListEntry {
    /// A party may not deal in an instrument.
    Restricted {
        /// Number of the instrument.
        instr: InstrumentId,
        /// The party.
        party: ListedParty,
        /// From and to, nanoseconds since the epoch.
        span: (u64, u64),
    },
    /// An owner is an insider of an issuer, from the start of the first day on.
    Insider {
        /// Number of the instrument.
        instr: InstrumentId,
        /// Index of the owner.
        owner: u32,
        /// A director, and not an adviser.
        director: bool,
        /// From when, nanoseconds since the epoch.
        from: u64,
    },
    /// A firm is watched in an instrument today.
    Watch {
        /// Number of the instrument.
        instr: InstrumentId,
        /// Index of the firm.
        firm: u32,
        /// From and to, nanoseconds since the epoch.
        span: (u64, u64),
    },
    /// A party is under sanctions.
    Sanctioned {
        /// Id of the party's name in [`unitape_model::NameKind::Owner`].
        party: u32,
        /// From when, nanoseconds since the epoch.
        from: u64,
        /// Until when; `None` for an entry without an end.
        to: Option<u64>,
    },
}

/// The party of a restriction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedParty {
    /// A desk by its index.
    Desk(u32),
    /// The account of a member.
    Account(u32),
    /// The trader of a member.
    Trader(u32),
}

/// A link between two owners, which belong to different groups and remain in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerLink {
    /// Index of the owner.
    pub owner: u32,
    /// Index of the other.
    pub linked: u32,
    /// They share a desk, of this index; without one an address.
    pub desk: Option<u32>,
    /// Hundredths.
    pub score: i64,
}

/// The cash of an account in a currency over a day. Amounts are in units of 1e-9.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CashStatement {
    /// The member whose account it is.
    pub member: u32,
    /// Currency.
    pub ccy: &'static str,
    /// Number, from 1.
    pub number: u64,
    /// Before the day.
    pub opening: i128,
    /// After it.
    pub closing: i128,
    /// Payments and receipts, by instrument.
    pub entries: Vec<CashEntry>,
}

/// The amount that an account paid (below zero) or received for an instrument in a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CashEntry {
    /// Number of the instrument.
    pub instr: InstrumentId,
    /// Net purchase, shares.
    pub qty: i64,
    /// Units of 1e-9.
    pub amount: i128,
}

impl MarketEvent {
    /// Converts the event to an event of a day, for the writers of drop copies and payments. Returns `None` if a day
    /// has no such event.
    pub fn day_event(&self) -> Option<DayEvent> {
        match self.body {
            MarketEventBody::Day { body, .. } => Some(DayEvent { seq: self.seq, ts: self.ts, body }),
            _ => None,
        }
    }
}

impl MarketEventBody {
    /// Returns the word for the event's kind, as in `docs/events.md`.
    pub fn kind(&self) -> &'static str {
        match self {
            MarketEventBody::Day { body, .. } => body.kind(),
            MarketEventBody::Level { .. } => "level",
            MarketEventBody::NationalBest { .. } => "bbo",
            MarketEventBody::IndexRef { .. } => "ref",
            MarketEventBody::Index { .. } => "index",
            MarketEventBody::ReferencePrice { .. } => "ref_px",
            MarketEventBody::Revision(_) => "news",
            MarketEventBody::Comm(_) => "comm",
            MarketEventBody::List(_) => "list",
            MarketEventBody::Link(_) => "party",
            MarketEventBody::Position { .. } => "position",
            MarketEventBody::Statement(_) => "statement",
            MarketEventBody::Control(_) => "control",
        }
    }
}
