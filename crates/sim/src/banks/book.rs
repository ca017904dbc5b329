//! The quotes of all banks, each in its slot.

use std::collections::{BTreeMap, BTreeSet};

use unitape_model::{CivilDate, Decimal, Price, Side};

use super::event::QuoteId;
use super::exact::ExactNumber;

/// A pair on a value date: the subject of a line of best prices. Rule 3: bytewise by instrument, then by date.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BookKey {
    /// The pair, the right way round.
    pub pair: String,
    /// The date of settlement.
    pub value_date: CivilDate,
}

/// The slot of a quote in a book. It is the key of the quote together with the [`BookKey`] (rule 8). Pair and side are
/// those of the usual orientation (rule 12), so that an inverted quote replaces a quote in the usual orientation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuoteSlot {
    /// The bank, `BANK@VENUE` at a venue.
    pub bank: String,
    /// The tier; 0 if it is missing (rule 2).
    pub tier: u64,
    /// To be dealt whole or not at all; false if it is missing (rule 8).
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
    /// The quote's id.
    pub quote_id: Option<QuoteId>,
    /// Rule 6: `now` when it was placed.
    pub placed: i64,
    /// Rule 5: it is on offer while `now` is less.
    pub valid_until: Option<i64>,
    /// Rule 17: whether it has been counted as a spike.
    pub spike_counted: bool,
}

/// The fields that a withdrawal names. It empties the slots that match every given field (rule 10).
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

/// All quotes. Each change adds the changed books to `changed`.
#[derive(Debug, Clone, Default)]
pub struct QuoteBooks {
    books: BTreeMap<BookKey, DateBook>,
}

impl QuoteBooks {
    /// Inserts a quote and replaces the quote in its slot (rules 6 and 8); a quote with the same price again is a new
    /// quote.
    pub fn insert_quote(
        &mut self,
        key: &BookKey,
        slot: QuoteSlot,
        quote: BankQuote,
        changed: &mut BTreeSet<BookKey>,
    ) {
        self.books.entry(key.clone()).or_default().insert(slot, quote);
        changed.insert(key.clone());
    }

    /// Empties the slot of a bad quote (rule 9).
    pub fn empty(&mut self, key: &BookKey, slot: &QuoteSlot, changed: &mut BTreeSet<BookKey>) {
        if self.books.get_mut(key).is_some_and(|book| book.remove(slot).is_some()) {
            changed.insert(key.clone());
        }
    }

    /// Withdraws the quotes of a bank for a pair that `filter` selects (rule 10).
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

    /// Withdraws all quotes of a bank (rule 7).
    pub fn withdraw_all(&mut self, bank: &str, changed: &mut BTreeSet<BookKey>) {
        for (key, book) in &mut self.books {
            let before = book.len();
            book.retain(|slot, _| slot.bank != bank);
            if book.len() < before {
                changed.insert(key.clone());
            }
        }
    }

    /// Empties a slot if its quote ends at `due` (rule 5).
    pub fn expire(&mut self, key: &BookKey, slot: &QuoteSlot, due: i64, changed: &mut BTreeSet<BookKey>) {
        let quote = self.books.get(key).and_then(|book| book.get(slot));
        if quote.is_some_and(|quote| quote.valid_until == Some(due)) {
            self.empty(key, slot, changed);
        }
    }

    /// Adds the books that have a quote of a bank to `keys`, for one pair or for all.
    pub fn add_books_of_bank(&self, bank: &str, pair: Option<&str>, keys: &mut BTreeSet<BookKey>) {
        let books = self.books.iter().filter(|(key, _)| pair.is_none_or(|pair| pair == key.pair));
        let with = books.filter(|(_, book)| book.keys().any(|slot| slot.bank == bank));
        keys.extend(with.map(|(key, _)| key.clone()));
    }

    /// Returns the book of a pair and date, and makes it if it is new.
    pub fn book_mut(&mut self, key: &BookKey) -> &mut DateBook {
        self.books.entry(key.clone()).or_default()
    }

    /// Iterates over the books that have a quote, in the order of rule 3.
    pub fn with_quotes(&self) -> impl Iterator<Item = (&BookKey, &DateBook)> {
        self.books.iter().filter(|(_, book)| !book.is_empty())
    }

    /// Returns the book of a pair and date, if it ever had a quote.
    #[must_use]
    pub fn book(&self, key: &BookKey) -> Option<&DateBook> {
        self.books.get(key)
    }
}
