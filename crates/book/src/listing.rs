//! One instrument at one venue: its books, its phase, and its best prices.

use crate::decode::StatedSide;
use crate::fault::{BookFault, BookFaultCounts};
use crate::mbo::OrderBook;
use crate::mbp::{LevelBook, StoredLevel};
use crate::qty::{self, AggregateQuantity};
use crate::store::OrderStore;
use crate::value::{Basis, PriceLevel, QuoteFlags, SessionPhase};
use unitape_model::{Event, InstrumentId, Price, Side};

/// A price with its quantity, as compared; [`Price::NONE`] for an empty side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TouchLevel {
    pub px: i64,
    pub qty: AggregateQuantity,
}

/// The sides that a venue has published, and whether each is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublishedSides {
    pub stated_sides: [Option<StoredLevel>; 2],
    pub is_known: [bool; 2],
}

/// Best bid and best offer.
pub(crate) type TopOfBook = [TouchLevel; 2];

impl TouchLevel {
    pub const EMPTY: TouchLevel = TouchLevel { px: Price::NONE.0, qty: AggregateQuantity::ZERO };

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.px == Price::NONE.0
    }

    /// Returns the price, or `None` if the side is empty.
    #[inline]
    pub fn as_option(&self) -> Option<i64> {
        (!self.is_empty()).then_some(self.px)
    }

    #[inline]
    pub fn is_same(&self, other: &TouchLevel) -> bool {
        self.px == other.px && qty::is_same(self.qty, other.qty)
    }

    pub fn level(&self, orders: Option<u32>) -> Option<PriceLevel> {
        let qty = qty::amount(self.qty.mantissa, self.qty.exponent);
        self.as_option().map(|px| PriceLevel { px: Price(px), qty, orders })
    }
}

#[inline]
pub(crate) fn is_same_top(a: &TopOfBook, b: &TopOfBook) -> bool {
    a[0].is_same(&b[0]) && a[1].is_same(&b[1])
}

/// Returns the flags for a crossed or a locked top of book.
pub(crate) fn marks_of(top: &TopOfBook) -> QuoteFlags {
    QuoteFlags::from_prices(top[0].as_option(), top[1].as_option())
}

pub(crate) const EMPTY: TopOfBook = [TouchLevel::EMPTY; 2];

/// The place of an event: the id of its source's definition, and its offset as the event has it, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceOffset {
    pub source: u32,
    pub offset: u32,
}

impl SourceOffset {
    pub fn from_event(event: &Event<'_>) -> Self {
        Self { source: event.source(), offset: event.offset() }
    }
}

/// An instrument at a venue, by the ids of the tape. An id of 0 stands for any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ListingKey {
    pub venue: u16,
    pub instrument: InstrumentId,
}

/// An instrument at a venue.
#[derive(Clone, Debug)]
pub(crate) struct ListingBooks {
    pub venue: u16,
    pub instrument: InstrumentId,
    /// Place of the instrument among those there are.
    pub instrument_index: u32,
    pub session_phase: SessionPhase,
    /// Whether the venue is only the feed's name for a price over all venues.
    pub consolidated: bool,
    pub orders: OrderBook,
    pub levels: LevelBook,
    pub published_sides: [Option<StoredLevel>; 2],
    /// By side, whether a partial `bbo` has stated it since `published_sides` became stale. Counts only while it is stale.
    pub is_restated: [bool; 2],
    /// By basis: whether an event has described it since it was last cleared, whether it is stale, event time of the
    /// last event that touched it, its best prices.
    pub has_data: [bool; 3],
    pub is_stale: [bool; 3],
    pub ts: [i64; 3],
    pub top_by_basis: [TopOfBook; 3],
    /// By basis, the offset at which the feed reported it stale or lost a part of it. The mark ends when the feed
    /// reports it good, or sends it again in another message.
    pub loss_offsets: [Option<SourceOffset>; 3],
    /// By basis, the source of its last event.
    pub source_by_basis: [u32; 3],
    /// The number of the last loss when all was let go or recovered.
    pub cleared_loss: u64,
    /// Whether a status has halted matching.
    pub halted: bool,
    /// The basis of the best prices, and these prices.
    pub basis: Option<Basis>,
    pub best: TopOfBook,
    pub fault_counts: BookFaultCounts,
    pub crossings: u64,
    pub checked_events: u64,
    pub differs: u64,
    /// Events since the listing was last cleared that were left out because their messages may be there twice.
    pub repeat_count: u64,
    /// The place of the last event that was not late.
    pub source: u32,
    pub offset: u32,
}

impl ListingBooks {
    pub fn new(
        venue: u16,
        instrument: InstrumentId,
        group: u32,
        phase: SessionPhase,
        consolidated: bool,
    ) -> Self {
        Self {
            venue,
            instrument,
            instrument_index: group,
            session_phase: phase,
            consolidated,
            orders: OrderBook::new(),
            levels: LevelBook::default(),
            published_sides: [None; 2],
            is_restated: [false; 2],
            has_data: [false; 3],
            is_stale: [false; 3],
            ts: [0; 3],
            top_by_basis: [EMPTY; 3],
            loss_offsets: [None; 3],
            source_by_basis: [u32::MAX; 3],
            cleared_loss: 0,
            halted: false,
            basis: None,
            best: EMPTY,
            fault_counts: BookFaultCounts::default(),
            crossings: 0,
            checked_events: 0,
            differs: 0,
            repeat_count: 0,
            source: 0,
            offset: 0,
        }
    }

    /// Returns whether the venue matches orders as they arrive.
    #[inline]
    pub fn is_continuous(&self) -> bool {
        self.session_phase.is_continuous() && !self.halted
    }

    /// Returns the flags of the session phase and the trading status.
    pub fn marks(&self) -> QuoteFlags {
        let marks = self.session_phase.marks();
        if self.halted { marks.union(QuoteFlags::HALTED) } else { marks }
    }

    /// Returns whether the current event is at the same source and offset as the notice that made a basis stale. Events
    /// without a source have no offset.
    pub fn is_word(&self, basis: Basis) -> bool {
        self.source != 0
            && self.loss_offsets[basis as usize]
                == Some(SourceOffset { source: self.source, offset: self.offset })
    }

    /// Returns whether a late event comes from before the last offset that was read of its source.
    pub fn is_out_of_turn(&self, source: u32, offset: u32) -> bool {
        source == self.source && offset < self.offset
    }

    /// Counts a fault; all but a late event show that something was missed.
    #[cold]
    pub fn fault(&mut self, basis: Basis, fault: BookFault) {
        self.fault_counts.count(fault);
        if fault != BookFault::Late {
            self.mark_stale(basis);
        }
    }

    /// Marks a basis as not to be trusted, until it is stated again.
    pub fn mark_stale(&mut self, basis: Basis) {
        self.is_stale[basis as usize] = true;
        self.forget_restated(basis);
    }

    /// Marks a basis as having lost events at this offset.
    pub fn mark_lost(&mut self, basis: Basis, offset: SourceOffset) {
        self.loss_offsets[basis as usize] = Some(offset);
        self.forget_restated(basis);
    }

    /// Ends both marks of a basis. Returns whether the basis was marked as having lost events.
    #[inline]
    pub fn end_marks(&mut self, basis: Basis) -> bool {
        self.is_stale[basis as usize] = false;
        self.forget_restated(basis);
        self.loss_offsets[basis as usize].take().is_some()
    }

    /// Forgets which sides partial quotes restated before a loss. They say nothing about the time after it.
    #[inline]
    fn forget_restated(&mut self, basis: Basis) {
        if basis == Basis::Bbo {
            self.is_restated = [false; 2];
        }
    }

    /// Returns the published sides after a partial quote, and which of them are known then.
    ///
    /// A side is known while the basis is not stale. In a stale one it is known again from the first price or end that
    /// states it. A price of a side that is not known has no quantity unless the quote states one.
    ///
    /// # Errors
    /// Fails if a quantity has no price: the side is known to be empty.
    pub fn with_partial(&self, stated: &[StatedSide; 2]) -> Result<PublishedSides, BookFault> {
        let b = Basis::Bbo as usize;
        let is_known = self.has_data[b] && !self.is_marked(Basis::Bbo);
        let mut after = PublishedSides {
            stated_sides: self.published_sides,
            is_known: self.is_restated.map(|side| side || is_known),
        };
        for ((side, is_side_known), stated) in
            after.stated_sides.iter_mut().zip(&mut after.is_known).zip(stated)
        {
            match *stated {
                StatedSide { px: None, qty: None } => {}
                StatedSide { qty: Some((mantissa, _)), .. } if mantissa <= 0 => {
                    (*side, *is_side_known) = (None, true)
                }
                StatedSide { px: Some(px), qty } => {
                    let old_qty = side.filter(|_| *is_side_known).map(|level| level.qty);
                    let qty = qty.or(old_qty).unwrap_or((0, 0));
                    (*side, *is_side_known) = (Some(StoredLevel { px, qty, orders: u32::MAX }), true);
                }
                StatedSide { px: None, qty: Some(qty) } => match side {
                    Some(level) => level.qty = qty,
                    None if *is_side_known => return Err(BookFault::BadLevel),
                    None => {}
                },
            }
        }
        Ok(after)
    }

    /// Returns whether a basis is stale at `now`: it is marked, or its last event is older than `stale_after_ns`.
    #[inline]
    pub fn is_stale(&self, basis: Basis, now: i64, stale_after_ns: Option<i64>) -> bool {
        let is_old = |after| now.saturating_sub(self.ts[basis as usize]) > after;
        self.is_marked(basis) || stale_after_ns.is_some_and(is_old)
    }

    /// Returns whether a fault, the feed or an operator marked a basis as stale.
    #[inline]
    pub fn is_marked(&self, basis: Basis) -> bool {
        self.is_stale[basis as usize] || self.loss_offsets[basis as usize].is_some()
    }

    /// Chooses the first basis in `prefer` that is not stale. If all are stale, chooses the first basis that has data.
    #[inline]
    pub fn choose(&self, prefer: &[Basis; 3], now: i64, stale_after_ns: Option<i64>) -> Option<Basis> {
        let has_data = |b: &&Basis| self.has_data[**b as usize];
        let fresh = |b: &&Basis| !self.is_stale(**b, now, stale_after_ns);
        prefer.iter().filter(has_data).find(fresh).or_else(|| prefer.iter().find(has_data)).copied()
    }

    /// Reads the best prices of a basis from its book.
    #[inline]
    pub fn top_of(&self, store: &OrderStore, basis: Basis) -> TopOfBook {
        let rung = |r: Option<&StoredLevel>| match r {
            Some(r) => {
                let qty = AggregateQuantity { mantissa: r.qty.0.into(), exponent: r.qty.1 };
                TouchLevel { px: r.px, qty }
            }
            None => TouchLevel::EMPTY,
        };
        Side::BOTH.map(|side| match basis {
            Basis::Orders => match self.orders.best(store, side) {
                Some((px, mantissa, exponent)) => {
                    TouchLevel { px, qty: AggregateQuantity { mantissa, exponent } }
                }
                None => TouchLevel::EMPTY,
            },
            Basis::Levels => rung(self.levels.best(side)),
            Basis::Bbo => rung(self.published_sides[side as usize].as_ref()),
        })
    }

    /// Forgets the contents of all books of the listing.
    pub fn clear(&mut self, store: &mut OrderStore) {
        self.orders.clear(store);
        self.levels.clear();
        (self.published_sides, self.is_restated) = ([None; 2], [false; 2]);
        self.source_by_basis = [u32::MAX; 3];
        (self.has_data, self.is_stale, self.loss_offsets) = ([false; 3], [false; 3], [None; 3]);
        self.repeat_count = 0;
    }
}

crate::state::state!(TouchLevel { px, qty });
crate::state::state!(SourceOffset { source, offset });
crate::state::state!(ListingKey { venue, instrument });
crate::state::state!(ListingBooks {
    venue,
    instrument,
    instrument_index,
    session_phase,
    consolidated,
    orders,
    levels,
    published_sides,
    is_restated,
    has_data,
    is_stale,
    ts,
    top_by_basis,
    loss_offsets,
    source_by_basis,
    cleared_loss,
    halted,
    basis,
    best,
    fault_counts,
    crossings,
    checked_events,
    differs,
    repeat_count,
    source,
    offset,
});
