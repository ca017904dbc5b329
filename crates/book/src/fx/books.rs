//! The books of pairs and dates, the options of the rules, and the counters.

use super::exact::Units;
use super::pair::{OrientedPair, PairName};
use super::side::{BookSide, SideOffer};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use unitape_model::{CivilDate, Decimal};

/// The sizes that best prices are kept for, rule 19's options, and the bounds.
#[derive(Clone, Debug)]
pub struct FxOptions {
    /// The sizes, in units of the first currency of a pair; equal ones are one.
    pub sizes: Vec<Decimal>,
    /// Silence of a bank after which its quotes are withdrawn, in milliseconds; 0 is never.
    pub stale_ms: u32,
    /// The distance from the median of the other banks that is still no spike, in pips; 0 is no check.
    pub spike_pips: u32,
    /// The least number of other banks for that median, at least 1.
    pub spike_banks: u32,
    /// Quotes of all books together, some 200 bytes each. A book has at least one, so this bounds the books, too.
    pub quotes_max: u32,
    /// Quotes on one side of a book.
    pub quotes_per_side_max: u32,
    /// Currency pairs.
    pub pairs_max: u32,
    /// Value dates of a pair that have quotes.
    pub dates_per_pair_max: u32,
    /// The bytes of all long ids in quotes together. Most banks' ids are shorter.
    pub id_bytes_max: usize,
    /// Switches of banks that controls have turned off.
    pub switches_max: u32,
}

impl Default for FxOptions {
    /// Returns the default options: sizes of one and five million; 5 s, 50 pips, 3 banks; 1,048,576 quotes, 4,096 on a
    /// side, 262,144 pairs, 4,096 dates of each pair, 64 MiB of long ids, 1,048,576 switches.
    fn default() -> Self {
        Self {
            sizes: vec![Decimal::from_int(1_000_000), Decimal::from_int(5_000_000)],
            stale_ms: 5_000,
            spike_pips: 50,
            spike_banks: 3,
            quotes_max: 1 << 20,
            quotes_per_side_max: 4096,
            pairs_max: 1 << 18,
            dates_per_pair_max: 4096,
            id_bytes_max: 64 << 20,
            switches_max: 1 << 20,
        }
    }
}

/// Why a quote is not in a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum QuoteRefusal {
    /// It names neither a bank nor a venue.
    NoBank,
    /// Its instrument is no currency pair.
    NoPair,
    /// It has no side.
    NoSide,
    /// It has no price above zero.
    Price,
    /// It has no quantity above zero.
    Quantity,
    /// It is not to be dealt on.
    Indicative,
    /// Its date is a weekend or in the past.
    ValueDate,
    /// The quote had already ended when it arrived.
    Expired,
    /// A bound of [`FxOptions`] is met.
    NoRoom,
}

impl QuoteRefusal {
    /// All, in the order in which they are looked for.
    pub const ALL: [Self; 9] = [
        Self::NoBank,
        Self::NoPair,
        Self::NoSide,
        Self::Price,
        Self::Quantity,
        Self::Indicative,
        Self::ValueDate,
        Self::Expired,
        Self::NoRoom,
    ];

    /// Returns the word that users see for this refusal.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoBank => "no_bank",
            Self::NoPair => "no_pair",
            Self::NoSide => "no_side",
            Self::Price => "price",
            Self::Quantity => "quantity",
            Self::Indicative => "indicative",
            Self::ValueDate => "value_date",
            Self::Expired => "expired",
            Self::NoRoom => "no_room",
        }
    }
}

/// The counters of books of quotes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FxCounters {
    /// Events `quote`, withdrawals and refused ones included.
    pub quotes: u64,
    /// Best prices given to the listener.
    pub prices: u64,
    /// Rule 17: quotes that were a spike at some evaluation.
    pub spikes: u64,
    /// Controls that were not obeyed, because [`FxOptions::switches_max`] or [`FxOptions::pairs_max`] is met.
    pub controls_no_room: u64,
    pub(super) refused: [u64; QuoteRefusal::ALL.len()],
}

impl FxCounters {
    /// Returns how many quotes were refused for this reason. Rule 9: the first reason counts.
    #[must_use]
    pub fn refused(&self, reason: QuoteRefusal) -> u64 {
        self.refused[reason as usize]
    }
}

/// The quotes of one pair on one date.
#[derive(Clone, Debug)]
pub(super) struct Book {
    pub pair: u32,
    pub name: PairName,
    pub value_date: CivilDate,
    pub sides: [BookSide; 2],
    /// The time of its timer, which may be too early: the quote that it was set for may be replaced.
    pub expiry_due: Option<i64>,
    /// Whether the book waits for an evaluation.
    pub is_touched: bool,
    /// The offers that were printed last, by size and side.
    pub printed: Vec<[SideOffer; 2]>,
}

impl Book {
    pub(super) fn is_empty(&self) -> bool {
        self.sides.iter().all(|side| side.quotes().is_empty())
    }
}

/// A pair that was quoted.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub name: PairName,
    /// Its books, by date.
    pub books: Vec<(CivilDate, u32)>,
}

/// The pairs, and the pair of each instrument on the tape.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    pub pair_list: Vec<Pair>,
    by_name: HashMap<PairName, u32, FxBuildHasher>,
    /// By the id of the tape.
    instruments: Vec<Option<OrientedPair>>,
}

/// An instrument as a pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairReference {
    pub pair: u32,
    pub name: PairName,
    pub inverted: bool,
}

impl Pairs {
    /// Defines the name of an id.
    pub(super) fn define_pair(&mut self, instrument: u32, name: &str) {
        let index = instrument as usize;
        if self.instruments.len() <= index {
            self.instruments.resize(index + 1, None);
        }
        self.instruments[index] = OrientedPair::parse(name);
    }

    /// Returns the pair of an instrument, or `None` if the instrument is not a pair or there is no room for it.
    pub(super) fn find_pair(
        &mut self,
        instrument: u32,
        pairs_max: u32,
    ) -> Result<PairReference, QuoteRefusal> {
        let oriented = self.instruments.get(instrument as usize).copied().flatten();
        let OrientedPair { name, inverted } = oriented.ok_or(QuoteRefusal::NoPair)?;
        if let Some(pair) = self.by_name.get(&name) {
            return Ok(PairReference { pair: *pair, name, inverted });
        }
        let pair = self.pair_list.len() as u32;
        if pair >= pairs_max {
            return Err(QuoteRefusal::NoRoom);
        }
        self.pair_list.push(Pair { name, books: Vec::new() });
        self.by_name.insert(name, pair);
        Ok(PairReference { pair, name, inverted })
    }
}

/// The books, by number. A book without quotes is released: it has printed that it has no prices. A new book in its
/// place prints the same.
#[derive(Clone, Debug, Default)]
pub(super) struct BookTable {
    books: Vec<Book>,
    free_books: Vec<u32>,
}

impl BookTable {
    pub(super) fn get(&self, index: u32) -> &Book {
        &self.books[index as usize]
    }

    pub(super) fn get_mut(&mut self, index: u32) -> &mut Book {
        &mut self.books[index as usize]
    }

    pub(super) fn all(&self) -> &[Book] {
        &self.books
    }

    /// Makes a book of a pair and date.
    pub(super) fn add_book(&mut self, pair: PairReference, value_date: CivilDate, sizes: &[Size]) -> u32 {
        if let Some(index) = self.free_books.pop() {
            let book = self.get_mut(index);
            (book.pair, book.name, book.value_date) = (pair.pair, pair.name, value_date);
            return index;
        }
        self.books.push(Book {
            pair: pair.pair,
            name: pair.name,
            value_date,
            sides: [BookSide::default(), BookSide::default()],
            expiry_due: None,
            is_touched: false,
            printed: sizes.iter().map(|_| [SideOffer::default(), SideOffer::default()]).collect(),
        });
        self.books.len() as u32 - 1
    }

    /// Releases an empty book. Its last printed offers are empty, too.
    pub(super) fn release_book(&mut self, index: u32) {
        debug_assert!(self.get(index).is_empty());
        self.free_books.push(index);
    }
}

/// A size that best prices are kept for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub decimal: Decimal,
    pub units: Units,
}
