//! The views for users: best prices as they change, and the quotes of a book.

use super::books::Book;
use super::exact::{ExactAmount, NOTIONAL_PLACES, QTY_PLACES, Units};
use super::pair::PairName;
use super::publishers::Publishers;
use super::quote::{OffReason, Quote, QuotedPrice};
use super::side::{OfferedQuote, SideOffer, SweepLeg};
use std::cmp::Ordering;
use unitape_model::{CivilDate, Decimal, InlineId, Price, Side, UnixNanos};

/// The best prices of a pair and date for a size, at the moment of a change.
#[derive(Clone, Copy, Debug)]
pub struct BestPrice<'a> {
    /// The moment: `now` of the event, or the due time of a timer.
    pub ts: UnixNanos,
    /// The pair, the right way round.
    pub pair: PairName,
    /// The date of settlement.
    pub value_date: CivilDate,
    /// The size, in units of the first currency.
    pub size: Decimal,
    pub(super) size_units: Units,
    pub(super) sides: &'a [SideOffer; 2],
    pub(super) publishers: &'a Publishers,
}

/// A listener to best prices. It is called for each changed best price.
pub type PriceListener<'l> = dyn FnMut(&BestPrice<'_>) + 'l;

/// How the best bid compares with the best ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriceState {
    /// The bid is below the ask, or a side is missing.
    Normal,
    /// They are equal.
    Locked,
    /// The bid is above the ask.
    Crossed,
}

impl PriceState {
    /// Returns the word that users see for this state.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Locked => "locked",
            Self::Crossed => "crossed",
        }
    }
}

/// The best quote of one bank.
#[derive(Clone, Copy, Debug)]
pub struct BestQuote<'a> {
    /// The price as quoted.
    pub px: Price,
    /// The bank.
    pub bank: &'a str,
    /// The tier, or 0 if it is missing.
    pub tier: u64,
    /// The id of the quote.
    pub quote_id: Option<InlineId<'a>>,
    /// Whether the quote must be dealt in full or not at all.
    pub full_amount: bool,
    /// Whether the pair was quoted in the other direction.
    pub inverted: bool,
}

/// Several quotes that make up a size together.
#[derive(Clone, Copy, Debug)]
pub struct SweepView<'a> {
    size: Units,
    legs: &'a [SweepLeg],
    publishers: &'a Publishers,
}

/// A part of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct SweepLegView<'a> {
    /// The quote.
    pub quote: BestQuote<'a>,
    /// The quantity taken of it.
    pub qty: ExactAmount,
}

impl<'a> BestPrice<'a> {
    /// Returns the best quote of one bank (rule 14).
    #[must_use]
    pub fn best(&self, side: Side) -> Option<BestQuote<'a>> {
        let best = self.sides[side.index()].best.as_ref();
        best.map(|quote| BestQuote::new(quote, self.publishers))
    }

    /// Returns the sweep (rule 15).
    #[must_use]
    pub fn sweep(&self, side: Side) -> Option<SweepView<'a>> {
        let legs = &self.sides[side.index()].legs;
        (!legs.is_empty()).then_some(SweepView { size: self.size_units, legs, publishers: self.publishers })
    }

    /// Returns the state. Rule 16: from the best bid and the best ask of one bank each, not from the sweeps.
    #[must_use]
    pub fn state(&self) -> PriceState {
        let price = |quote: BestQuote<'_>| QuotedPrice { px: quote.px, inverted: quote.inverted };
        let [Some(bid), Some(ask)] = Side::BOTH.map(|side| self.best(side).map(price)) else {
            return PriceState::Normal;
        };
        match bid.compare(ask) {
            Ordering::Greater => PriceState::Crossed,
            Ordering::Equal => PriceState::Locked,
            Ordering::Less => PriceState::Normal,
        }
    }
}

impl<'a> BestQuote<'a> {
    fn new(quote: &'a OfferedQuote, publishers: &'a Publishers) -> Self {
        Self {
            px: quote.px,
            bank: publishers.name(quote.slot.publisher),
            tier: quote.slot.tier,
            quote_id: quote.id.get(),
            full_amount: quote.slot.full_amount,
            inverted: quote.inverted,
        }
    }
}

impl<'a> SweepView<'a> {
    /// Returns the exact sum of price × quantity.
    #[must_use]
    pub fn notional(&self) -> ExactAmount {
        let products = self.legs.iter().map(|leg| leg.amount.times(leg.quote.px.0 as u64));
        ExactAmount::new(products.fold(Units::default(), Units::plus), NOTIONAL_PLACES)
    }

    /// Returns the quantity: the size.
    #[must_use]
    pub fn qty(&self) -> ExactAmount {
        ExactAmount::new(self.size, QTY_PLACES)
    }

    /// Returns the legs, in the order in which they are taken.
    pub fn legs(&self) -> impl ExactSizeIterator<Item = SweepLegView<'a>> + use<'a> {
        let publishers = self.publishers;
        self.legs.iter().map(move |leg| SweepLegView {
            quote: BestQuote::new(&leg.quote, publishers),
            qty: ExactAmount::new(leg.amount, QTY_PLACES),
        })
    }
}

/// The quotes of one pair on one date.
#[derive(Clone, Copy, Debug)]
pub struct FxBookView<'a> {
    pub(super) book: &'a Book,
    pub(super) publishers: &'a Publishers,
}

/// A quote of a book.
#[derive(Clone, Copy, Debug)]
pub struct FxQuoteView<'a> {
    /// The price as quoted.
    pub px: Price,
    /// The quantity as quoted.
    pub qty: Decimal,
    /// The bank.
    pub bank: &'a str,
    /// The tier, or 0 if it is missing.
    pub tier: u64,
    /// The id of the quote.
    pub quote_id: Option<InlineId<'a>>,
    /// `now` when it was placed.
    pub placed: UnixNanos,
    /// It is on offer while `now` is less.
    pub valid_until: Option<UnixNanos>,
    /// Whether the quote must be dealt in full or not at all.
    pub full_amount: bool,
    /// Whether the pair was quoted in the other direction.
    pub inverted: bool,
    /// Why it is not on offer.
    pub off: Option<OffReason>,
}

impl<'a> FxBookView<'a> {
    /// Returns the name of the pair, in the market's order of the two currencies.
    #[must_use]
    pub fn pair(&self) -> PairName {
        self.book.name
    }

    /// Returns the date of settlement.
    #[must_use]
    pub fn value_date(&self) -> CivilDate {
        self.book.value_date
    }

    /// Returns the quotes of a side in the order of rule 14, the best first. Quotes that are not on offer are included.
    pub fn quotes(&self, side: Side) -> impl ExactSizeIterator<Item = FxQuoteView<'a>> + use<'a> {
        let publishers = self.publishers;
        self.book.sides[side.index()].quotes().iter().map(move |quote: &'a Quote| FxQuoteView {
            px: quote.px,
            qty: quote.qty,
            bank: publishers.name(quote.slot.publisher),
            tier: quote.slot.tier,
            quote_id: quote.id.get(),
            placed: UnixNanos(quote.placed_ns),
            valid_until: quote.valid_until.map(UnixNanos),
            full_amount: quote.slot.full_amount,
            inverted: quote.inverted,
            off: quote.off_reason,
        })
    }
}
