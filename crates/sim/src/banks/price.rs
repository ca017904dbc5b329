//! The best prices of one book, from its quotes at a moment.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write;

use unitape_model::Side;

use super::book::{BankQuote, DateBook, QuoteSlot};
use super::event::QuoteId;
use super::exact::ExactNumber;

/// A quote that is on offer.
#[derive(Debug, Clone, Copy)]
pub struct OfferedQuote<'a> {
    /// The quote's slot.
    pub slot: &'a QuoteSlot,
    /// The quote.
    pub quote: &'a BankQuote,
}

/// Rule 17: which quotes are spikes.
#[derive(Debug, Clone, Copy)]
pub struct SpikeRule {
    /// The greatest distance from the median that is no spike, in units of 1e-9.
    pub distance_nanos: i128,
    /// The least number of other banks.
    pub banks: usize,
}

impl SpikeRule {
    /// Returns the spikes among the enabled quotes of one side. Checks all quotes, also inverted ones.
    #[must_use]
    pub fn spikes(&self, quotes: &[OfferedQuote<'_>], side: Side) -> Vec<QuoteSlot> {
        if self.distance_nanos == 0 {
            return Vec::new();
        }
        // "Each other bank's best on offer in that book before the filter, of any size, inverted quotes excluded".
        let mut best: BTreeMap<&str, i64> = BTreeMap::new();
        for OfferedQuote { slot, quote } in quotes.iter().filter(|q| !q.quote.inverted) {
            let of_bank = best.entry(&slot.bank).or_insert(quote.px.0);
            let better = if side == Side::Buy { quote.px.0 > *of_bank } else { quote.px.0 < *of_bank };
            *of_bank = if better { quote.px.0 } else { *of_bank };
        }
        let mut medians: BTreeMap<&str, Option<i128>> = BTreeMap::new();
        for OfferedQuote { slot, .. } in quotes {
            medians.entry(&slot.bank).or_insert_with(|| self.doubled_median(&best, &slot.bank));
        }
        let is_spike = |q: &&OfferedQuote<'_>| {
            medians[q.slot.bank.as_str()].is_some_and(|median| self.is_beyond(q.quote, median))
        };
        quotes.iter().filter(is_spike).map(|q| q.slot.clone()).collect()
    }

    /// Returns twice the median of the best prices of the other banks: "mean of the middle two if even".
    fn doubled_median(&self, best: &BTreeMap<&str, i64>, bank: &str) -> Option<i128> {
        let other_prices = best.iter().filter(|(other_bank, _)| **other_bank != bank);
        let mut prices: Vec<i128> = other_prices.map(|(_, px)| i128::from(*px)).collect();
        prices.sort_unstable();
        let n = prices.len();
        (n >= self.banks && n > 0).then(|| prices[(n - 1) / 2] + prices[n / 2])
    }

    /// Compares twice the distance with twice the bound ("more than spike_pips"). An inverted price is 1e18 over its
    /// units, so both sides are multiplied by these units. No product passes 2^127, as units are below 2^63.
    fn is_beyond(&self, quote: &BankQuote, doubled_median: i128) -> bool {
        let px = i128::from(quote.px.0);
        if quote.inverted {
            (2 * UNIT_SQUARED - doubled_median * px).abs() > 2 * self.distance_nanos * px
        } else {
            (2 * px - doubled_median).abs() > 2 * self.distance_nanos
        }
    }
}

/// Compares two quotes of a side, the better first (rule 14): price, age, bank bytewise, lower tier, sweepable first.
#[must_use]
pub fn offer_order(side: Side, a: &OfferedQuote<'_>, b: &OfferedQuote<'_>) -> Ordering {
    let price = compare_prices(a.quote, b.quote);
    let price = if side == Side::Buy { price.reverse() } else { price };
    price
        .then_with(|| a.quote.placed.cmp(&b.quote.placed))
        .then_with(|| a.slot.bank.as_bytes().cmp(b.slot.bank.as_bytes()))
        .then_with(|| a.slot.tier.cmp(&b.slot.tier))
        .then_with(|| a.slot.full_amount.cmp(&b.slot.full_amount))
}

/// Prices of the pair the right way round: a quote the other way is one over its price, which is compared as a fraction.
fn compare_prices(a: &BankQuote, b: &BankQuote) -> Ordering {
    let fraction = |quote: &BankQuote| {
        let px = i128::from(quote.px.0);
        if quote.inverted { [UNIT_SQUARED, px] } else { [px, 1] }
    };
    let ([a_over, a_under], [b_over, b_under]) = (fraction(a), fraction(b));
    (a_over * b_under).cmp(&(b_over * a_under))
}

/// The best prices of a book for a size.
#[derive(Debug, Clone)]
pub struct BestPrices<'a> {
    /// From one bank, by side.
    best: [Option<OfferedQuote<'a>>; 2],
    /// From several banks, by side.
    sweeps: [Option<QuoteSweep<'a>>; 2],
    size: &'a ExactNumber,
}

#[derive(Debug, Clone)]
struct QuoteSweep<'a> {
    notional: ExactNumber,
    legs: Vec<SweepLeg<'a>>,
}

#[derive(Debug, Clone)]
struct SweepLeg<'a> {
    offered: OfferedQuote<'a>,
    qty: ExactNumber,
}

impl<'a> BestPrices<'a> {
    /// Finds the best prices for `size` among the quotes on offer, for bids and asks.
    #[must_use]
    pub fn new(offered: &'a [Vec<OfferedQuote<'a>>; 2], size: &'a ExactNumber) -> Self {
        // Rule 14: one quote with qty ≥ size, sweepable or full-amount.
        let best = |side: Side| {
            let large = offered[side.index()].iter().filter(|q| q.quote.qty >= *size);
            large.min_by(|a, b| offer_order(side, a, b)).copied()
        };
        Self {
            best: Side::BOTH.map(best),
            sweeps: Side::BOTH.map(|side| QuoteSweep::new(&offered[side.index()], side, size)),
            size,
        }
    }

    /// Returns whether there is no price at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.best.iter().all(Option::is_none) && self.sweeps.iter().all(Option::is_none)
    }

    /// Writes the part of the line after `size` (rule 2).
    #[must_use]
    pub fn content(&self) -> String {
        let mut text = format!("\"state\":\"{}\"", self.state());
        for (name, best) in ["bid", "ask"].iter().zip(self.best) {
            match best {
                Some(q) => {
                    _ = write!(text, ",\"{name}\":{{\"px\":\"{}\"", q.quote.px);
                    write_origin(&q, &mut text);
                    if q.slot.full_amount {
                        text.push_str(",\"full_amount\":true");
                    }
                    if q.quote.inverted {
                        text.push_str(",\"inverted\":true");
                    }
                    text.push('}');
                }
                None => _ = write!(text, ",\"{name}\":null"),
            }
        }
        for (name, sweep) in ["bid_sweep", "ask_sweep"].iter().zip(&self.sweeps) {
            let Some(QuoteSweep { notional, legs }) = sweep else {
                _ = write!(text, ",\"{name}\":null");
                continue;
            };
            _ = write!(
                text,
                ",\"{name}\":{{\"notional\":\"{notional}\",\"qty\":\"{}\",\"legs\":[",
                self.size
            );
            for (index, leg) in legs.iter().enumerate() {
                text.push_str(if index > 0 { "," } else { "" });
                _ = write!(text, "{{\"px\":\"{}\",\"qty\":\"{}\"", leg.offered.quote.px, leg.qty);
                write_origin(&leg.offered, &mut text);
                text.push('}');
            }
            text.push_str("]}");
        }
        text
    }

    /// Returns the state of `bid` and `ask` of the line (rule 16).
    fn state(&self) -> &'static str {
        let [Some(bid), Some(ask)] = self.best else { return "normal" };
        match compare_prices(bid.quote, ask.quote) {
            Ordering::Greater => "crossed",
            Ordering::Equal => "locked",
            Ordering::Less => "normal",
        }
    }
}

impl<'a> QuoteSweep<'a> {
    /// Collects sweepable quotes in order, each up to its quantity (rule 15). Returns `None` if the total quantity is
    /// too small.
    fn new(offered: &[OfferedQuote<'a>], side: Side, size: &ExactNumber) -> Option<Self> {
        let mut quotes: Vec<OfferedQuote<'a>> =
            offered.iter().filter(|q| !q.slot.full_amount && !q.quote.inverted).copied().collect();
        quotes.sort_by(|a, b| offer_order(side, a, b));
        let mut sweep = QuoteSweep { notional: ExactNumber::default(), legs: Vec::new() };
        let mut left = size.clone();
        for offered in quotes {
            if left.is_zero() {
                break;
            }
            let qty = (&left).min(&offered.quote.qty).clone();
            left = left.minus(&qty);
            let px = ExactNumber::new(offered.quote.px.0 as u128, -9);
            sweep.notional = sweep.notional.plus(&px.times(&qty));
            sweep.legs.push(SweepLeg { offered, qty });
        }
        left.is_zero().then_some(sweep)
    }
}

/// Returns the enabled quotes of each side. A disabled quote enters no price and no median (rule 18).
#[must_use]
pub fn enabled_quotes<'a>(
    book: &'a DateBook,
    is_disabled: impl Fn(&str) -> bool,
) -> [Vec<OfferedQuote<'a>>; 2] {
    Side::BOTH.map(|side| {
        let of_side = book.iter().filter(|(slot, _)| slot.side == side && !is_disabled(&slot.bank));
        of_side.map(|(slot, quote)| OfferedQuote { slot, quote }).collect()
    })
}

/// Writes bank, tier (0 if it was missing) and the id, if there is one (rule 2).
pub(super) fn write_origin(q: &OfferedQuote<'_>, text: &mut String) {
    let json = |text: &str| serde_json::to_string(text).expect("a text is JSON");
    _ = write!(text, ",\"bank\":{},\"tier\":{}", json(&q.slot.bank), q.slot.tier);
    match &q.quote.quote_id {
        Some(QuoteId::Number(id)) => _ = write!(text, ",\"quote_id\":{id}"),
        Some(QuoteId::Text(id)) => _ = write!(text, ",\"quote_id\":{}", json(id)),
        None => {}
    }
}

/// One, squared, in units of 1e-9.
const UNIT_SQUARED: i128 = 1_000_000_000_000_000_000;
