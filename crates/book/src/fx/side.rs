//! One side of a book: its quotes in order, which of them are on offer, and the best prices of a size.

use super::exact::Units;
use super::quote::{OffReason, Quote, QuoteId, QuoteSlot, UNIT_SQUARED};
use unitape_model::{Price, Side};

/// The quotes of one side in the order of rule 14, the best first.
#[derive(Clone, Debug, Default)]
pub(super) struct BookSide {
    quotes: Vec<Quote>,
    /// Whether the slot changed since the last evaluation.
    pub is_changed: bool,
}

impl BookSide {
    pub(super) fn quotes(&self) -> &[Quote] {
        &self.quotes
    }

    /// Inserts a quote at its place in the order. Its slot must be empty.
    pub(super) fn insert<'n>(&mut self, quote: Quote, side: Side, bank: impl Fn(u16) -> &'n str) {
        let index = self.quotes.partition_point(|candidate| candidate.compare(&quote, side, &bank).is_lt());
        self.quotes.insert(index, quote);
        self.is_changed = true;
    }

    /// Removes the quote of a slot.
    pub(super) fn remove(&mut self, slot: &QuoteSlot) -> Option<Quote> {
        let index = self.quotes.iter().position(|quote| quote.slot == *slot)?;
        self.is_changed = true;
        Some(self.quotes.remove(index))
    }

    /// Removes the quotes that match and passes each to `removed`.
    pub(super) fn remove_matching(
        &mut self,
        matches: impl Fn(&Quote) -> bool,
        mut removed: impl FnMut(&Quote),
    ) {
        let old_count = self.quotes.len();
        self.quotes.retain(|quote| {
            let is_match = matches(quote);
            if is_match {
                removed(quote);
            }
            !is_match
        });
        self.is_changed |= self.quotes.len() < old_count;
        // The memory of a flood is released after it.
        if self.quotes.capacity() > KEPT_CAPACITY && self.quotes.len() < self.quotes.capacity() / 8 {
            self.quotes.shrink_to(KEPT_CAPACITY);
        }
    }

    /// Says of each quote why it is not on offer (rules 17 and 18), and returns how many are a spike for the first time.
    pub(super) fn mark_off(
        &mut self,
        rule: SpikeRule,
        is_disabled: impl Fn(u16) -> bool,
        banks: &mut BankBests,
    ) -> u64 {
        banks.clear();
        for quote in &mut self.quotes {
            let bank = banks.get(quote.slot.publisher, &is_disabled);
            quote.off_reason = bank.is_disabled.then_some(OffReason::Disabled);
            // The best ones come first. Inverted quotes are in no median.
            if quote.off_reason.is_none() && !quote.inverted {
                banks.add_bank(quote.slot.publisher, quote.px);
            }
        }
        let mut spikes = 0;
        if rule.distance == 0 || banks.len() < rule.banks {
            return 0;
        }
        for quote in self.quotes.iter_mut().filter(|quote| quote.off_reason.is_none()) {
            let median = banks.doubled_median_without(quote.slot.publisher, rule.banks);
            if median.is_some_and(|median| rule.is_beyond(quote, median)) {
                quote.off_reason = Some(OffReason::Spike);
                spikes += u64::from(!quote.was_spike);
                quote.was_spike = true;
            }
        }
        spikes
    }
}

/// More room of a side is given back when it is not needed.
const KEPT_CAPACITY: usize = 256;

/// Rule 17, for one pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpikeRule {
    /// The distance from the median that is still no spike, in units of 10⁻⁹; 0 is no check.
    pub distance: i128,
    /// The least number of other banks for a median.
    pub banks: usize,
}

impl SpikeRule {
    /// Returns whether a quote is more than the distance away from a median. The median is given doubled. For an
    /// inverted quote, both sides of the comparison are multiplied by its units: these are below 2⁶³ and a doubled
    /// median below 2⁶⁴.
    fn is_beyond(&self, quote: &Quote, doubled_median: i128) -> bool {
        let px = i128::from(quote.px.0);
        if quote.inverted {
            (2 * UNIT_SQUARED - doubled_median * px).abs() > 2 * self.distance * px
        } else {
            (2 * px - doubled_median).abs() > 2 * self.distance
        }
    }
}

/// The banks that quote on one side, and the best price of each, in the order of the side.
#[derive(Clone, Debug, Default)]
pub(super) struct BankBests {
    prices: Vec<Price>,
    /// By publisher.
    banks: Vec<BankBest>,
    evaluation_round: u64,
}

/// A bank that quotes on this side in this round, or quoted on it in an earlier round.
#[derive(Clone, Copy, Debug, Default)]
struct BankBest {
    evaluation_round: u64,
    is_disabled: bool,
    /// The place of its price among the prices.
    price_index: Option<usize>,
}

impl BankBests {
    fn clear(&mut self) {
        self.prices.clear();
        self.evaluation_round += 1;
    }

    fn len(&self) -> usize {
        self.prices.len()
    }

    /// Returns a bank; asks whether it is disabled when it is met first.
    fn get(&mut self, publisher: u16, is_disabled: impl Fn(u16) -> bool) -> BankBest {
        let index = usize::from(publisher);
        if self.banks.len() <= index {
            self.banks.resize(index + 1, BankBest::default());
        }
        let bank = &mut self.banks[index];
        if bank.evaluation_round != self.evaluation_round {
            *bank = BankBest {
                evaluation_round: self.evaluation_round,
                is_disabled: is_disabled(publisher),
                price_index: None,
            };
        }
        *bank
    }

    /// Adds the price of a bank that was met, unless it has one.
    fn add_bank(&mut self, publisher: u16, px: Price) {
        let bank = &mut self.banks[usize::from(publisher)];
        if bank.price_index.is_none() {
            bank.price_index = Some(self.prices.len());
            self.prices.push(px);
        }
    }

    /// Returns twice the median of the banks without one of them, or `None` if fewer than `least` remain. Rule 17: an
    /// even number of banks has the mean of the middle two as its median. The prices are in order, so the index gives
    /// the middle.
    fn doubled_median_without(&self, publisher: u16, least: usize) -> Option<i128> {
        let price_index = self.banks[usize::from(publisher)].price_index;
        let count = self.prices.len() - usize::from(price_index.is_some());
        if count == 0 || count < least {
            return None;
        }
        let price = |n: usize| {
            let is_behind = price_index.is_some_and(|index| n >= index);
            i128::from(self.prices[n + usize::from(is_behind)].0)
        };
        Some(price((count - 1) / 2) + price(count / 2))
    }
}

/// The best price and the sweep of one side for one size, as a line prints them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SideOffer {
    /// Rule 14: the best quote of one bank.
    pub best: Option<OfferedQuote>,
    /// Rule 15: the legs of a sweep. There are none if the total quantity is too small.
    pub legs: Vec<SweepLeg>,
}

/// A quote as a line prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OfferedQuote {
    pub slot: QuoteSlot,
    pub px: Price,
    pub inverted: bool,
    pub id: QuoteId,
}

/// A part of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SweepLeg {
    pub quote: OfferedQuote,
    /// The amount taken from the quote.
    pub amount: Units,
}

impl SideOffer {
    /// Sets the best prices of a side for a size.
    pub(super) fn evaluate(&mut self, side: &BookSide, size: Units) {
        let offered = || side.quotes.iter().filter(|quote| quote.off_reason.is_none());
        // Rule 14: a quote of at least the size, sweepable or full-amount.
        self.best = offered().find(|quote| quote.base_units >= size).map(OfferedQuote::new);
        // Rule 15: sweepable quotes in order, each up to its quantity. Inverted ones are in no sweep.
        self.legs.clear();
        let mut size_left = size;
        for quote in offered().filter(|quote| !quote.slot.full_amount && !quote.inverted) {
            let amount = size_left.min(quote.base_units);
            self.legs.push(SweepLeg { quote: OfferedQuote::new(quote), amount });
            size_left = size_left.minus(amount);
            if size_left.is_zero() {
                return;
            }
        }
        self.legs.clear();
    }
}

impl OfferedQuote {
    fn new(quote: &Quote) -> Self {
        Self { slot: quote.slot, px: quote.px, inverted: quote.inverted, id: quote.id.clone() }
    }
}
