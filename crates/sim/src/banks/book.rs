//! The quotes of all banks, each in its slot.

use std::collections::{BTreeMap, BTreeSet};

use unitape_model::{CivilDate, Decimal, Price, Side};

use super::event::QuoteId;
use super::exact::ExactNumber;

/// A pair on a value date: what a line of best prices is about. Rule 3: bytewise by instrument, then by date.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BookKey {
    /// The pair, the right way round.
    pub pair: String,
    /// The date of settlement.
    pub value_date: CivilDate,
}

/// The place of one quote in a book. Rule 8: with the [`BookKey`] its key; pair and side are those of the pair the right
/// way round (rule 12), so that a quote the other way replaces one of this way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuoteSlot {
    /// The bank, `BANK@VENUE` at a venue.
    pub bank: String,
    /// The tier; rule 2: 0 where it is missing.
    pub tier: u64,
    /// To be dealt whole or not at all; rule 8: false where it is missing.
    pub full_amount: bool,
    /// The bank's side.
    pub side: Side,
}

/// A quote in its slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BankQuote {
    /// The price as quoted, above zero.
    pub px: Price,
    /// Whether the pair was quoted the other way round.
    pub inverted: bool,
    /// Rule 12: the quantity in units of the first currency of the pair.
    pub qty: ExactNumber,
    /// The quantity as quoted.
    pub quoted_qty: Decimal,
    /// Its id.
    pub quote_id: Option<QuoteId>,
    /// Rule 6: `now` when it was placed.
    pub placed: i64,
    /// Rule 5: it is on offer while `now` is less.
    pub valid_until: Option<i64>,
    /// Rule 17: whether it has been counted as a spike.
    pub spike_counted: bool,
}

/// What a withdrawal names. Rule 10: it empties the slots that match every field that is given.
#[derive(Debug, Clone, Default)]
pub struct WithdrawalFilter {
    /// The side, of the pair the right way round.
    pub side: Option<Side>,
    /// The tier.
    pub tier: Option<u64>,
    /// Sweepable or full-amount.
    pub full_amount: Option<bool>,
    /// The date.
    pub value_date: Option<CivilDate>,
    /// The id.
    pub quote_id: Option<QuoteId>,
}

/// The quotes of one pair and date.
pub type DateBook = BTreeMap<QuoteSlot, BankQuote>;

/// All quotes. Each change gives the books that it touched to `changed`.
#[derive(Debug, Clone, Default)]
pub struct QuoteBooks {
    books: BTreeMap<BookKey, DateBook>,
}

impl QuoteBooks {
    /// Rules 6 and 8: a quote replaces the one in its slot; the same price again is a new quote.
    pub fn place(
        &mut self,
        key: &BookKey,
        slot: QuoteSlot,
        quote: BankQuote,
        changed: &mut BTreeSet<BookKey>,
    ) {
        self.books.entry(key.clone()).or_default().insert(slot, quote);
        changed.insert(key.clone());
    }

    /// Rule 9: a bad quote empties its slot.
    pub fn empty(&mut self, key: &BookKey, slot: &QuoteSlot, changed: &mut BTreeSet<BookKey>) {
        if self.books.get_mut(key).is_some_and(|book| book.remove(slot).is_some()) {
            changed.insert(key.clone());
        }
    }

    /// Rule 10: a withdrawal of a bank for a pair.
    pub fn withdraw(
        &mut self,
        pair: &str,
        bank: &str,
        filter: &WithdrawalFilter,
        changed: &mut BTreeSet<BookKey>,
    ) {
        for (key, book) in self.books.iter_mut().filter(|(key, _)| key.pair == pair) {
            let before = book.len();
            book.retain(|slot, quote| {
                let matches = slot.bank == bank
                    && filter.side.is_none_or(|side| side == slot.side)
                    && filter.tier.is_none_or(|tier| tier == slot.tier)
                    && filter.full_amount.is_none_or(|full| full == slot.full_amount)
                    && filter.value_date.is_none_or(|date| date == key.value_date)
                    && filter.quote_id.as_ref().is_none_or(|id| quote.quote_id.as_ref() == Some(id));
                !matches
            });
            if book.len() < before {
                changed.insert(key.clone());
            }
        }
    }

    /// Rule 7: all quotes of a bank are withdrawn.
    pub fn withdraw_all(&mut self, bank: &str, changed: &mut BTreeSet<BookKey>) {
        for (key, book) in &mut self.books {
            let before = book.len();
            book.retain(|slot, _| slot.bank != bank);
            if book.len() < before {
                changed.insert(key.clone());
            }
        }
    }

    /// Rule 5: empties a slot if its quote ends at `due`.
    pub fn expire(&mut self, key: &BookKey, slot: &QuoteSlot, due: i64, changed: &mut BTreeSet<BookKey>) {
        let quote = self.books.get(key).and_then(|book| book.get(slot));
        if quote.is_some_and(|quote| quote.valid_until == Some(due)) {
            self.empty(key, slot, changed);
        }
    }

    /// The books with a quote of a bank, of one pair or of all.
    pub fn of_bank(&self, bank: &str, pair: Option<&str>, found: &mut BTreeSet<BookKey>) {
        let books = self.books.iter().filter(|(key, _)| pair.is_none_or(|pair| pair == key.pair));
        let with = books.filter(|(_, book)| book.keys().any(|slot| slot.bank == bank));
        found.extend(with.map(|(key, _)| key.clone()));
    }

    /// The quotes of a pair and date.
    pub fn book_mut(&mut self, key: &BookKey) -> &mut DateBook {
        self.books.entry(key.clone()).or_default()
    }

    /// The books that have a quote, in the order of rule 3.
    pub fn with_quotes(&self) -> impl Iterator<Item = (&BookKey, &DateBook)> {
        self.books.iter().filter(|(_, book)| !book.is_empty())
    }

    /// The quotes of a pair and date, if there ever was one.
    #[must_use]
    pub fn book(&self, key: &BookKey) -> Option<&DateBook> {
        self.books.get(key)
    }
}
