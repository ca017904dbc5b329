//! The best price over all venues of each instrument, as events on a tape of its own.
//!
//! ```text
//!  input   ■ ■ ■ ■ ■ ■ ■ ■ ■        books ─▶ best price over the venues, where it is another
//!              │     │   │                        │
//!  output      bbo   bbo bbo   venue NBBO, the time of its cause, cause = {tape, position}
//! ```
//!
//! The output is a function of the input, see [`crate::derived_tape`].

use crate::Error;
use crate::derived_tape::{DerivedContent, DerivedTape, DerivedTotals, derived_id};
use crate::replay::{BookReplay, ReplayOutcome};
use std::path::Path;
use unitape_book::{ALL_VENUES, BookOptions, ConsolidatedBbo, ConsolidatedSide};
use unitape_model::{
    Amount, Decimal, EventField, EventKind, EventValue, InstrumentId, NameKind, Price, TapePosition,
    UnixNanos,
};
use unitape_tape::{ReadOptions, TapeId};

/// The counts of a derivation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BestPriceTotals {
    /// Best prices on the output.
    pub events: u64,
    /// Those among them that this call has put there.
    pub appended: u64,
    /// Sides with a price and without a quantity, because the sum over the venues has more digits than a field holds.
    pub quantities_left_out: u64,
}

/// A derivation of the best prices of a tape.
///
/// ```no_run
/// use unitape_run::best_price_tape::BestPriceTape;
/// use unitape_run::replay::ReplayOutcome;
///
/// let mut prices = BestPriceTape::open("tape".as_ref(), "nbbo".as_ref(), Default::default())?;
/// while prices.step()? != ReplayOutcome::AtEnd {}
/// println!("{} best prices", prices.close()?.events);
/// # Ok::<(), unitape_run::Error>(())
/// ```
pub struct BestPriceTape {
    replay: BookReplay,
    input: TapeId,
    output: DerivedTape,
    /// The last best price of each instrument, by its id on the input.
    last: Vec<BestQuote>,
    /// The instruments of the current event.
    touched: Vec<InstrumentId>,
    quantities_left_out: u64,
}

/// What a best price event says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BestQuote {
    bid: Option<(Price, Amount)>,
    ask: Option<(Price, Amount)>,
}

impl BestQuote {
    fn new(best: &ConsolidatedBbo) -> Self {
        let side = |side: Option<ConsolidatedSide>| side.map(|side| (side.level.px, side.level.qty));
        Self { bid: side(best.bid), ask: side(best.ask) }
    }
}

impl BestPriceTape {
    /// Reads the tape in `input`, and makes or continues the one in `output`.
    ///
    /// # Errors
    /// When a tape cannot be read or written, or the output is one of something else.
    pub fn open(input: &Path, output: &Path, read: ReadOptions) -> Result<Self, Error> {
        let replay = BookReplay::open(input, read, BookOptions::default())?;
        if replay.first().seq > 1 {
            return Err(Error::OtherTape {
                path: input.to_owned(),
                what: "retention has removed its beginning, without which its books lack orders".to_owned(),
            });
        }
        let input = replay.reader().id();
        Ok(Self {
            replay,
            input,
            output: DerivedTape::open(output, output_id(input), CONTENT, read)?,
            last: Vec::new(),
            touched: Vec::new(),
            quantities_left_out: 0,
        })
    }

    /// Applies the next event of the input, and puts the best prices that it changed onto the output, by id of the instrument.
    ///
    /// # Errors
    /// When a tape cannot be read or written. When the input is not the one of which the output was made, or was cut back.
    pub fn step(&mut self) -> Result<ReplayOutcome, Error> {
        let outcome = self.replay.step()?;
        match outcome {
            ReplayOutcome::Event => self.put_changes()?,
            ReplayOutcome::AtEnd => self.output.require_compared()?,
            ReplayOutcome::Rewound { .. } => return Err(self.output.input_cut()),
            ReplayOutcome::Reached => {}
        }
        Ok(outcome)
    }

    /// Waits at the end of the input until there is more, or for a fifth of a second.
    ///
    /// # Errors
    /// As [`BestPriceTape::step`].
    pub fn wait(&mut self) -> Result<(), Error> {
        match self.replay.wait()? {
            ReplayOutcome::Rewound { .. } => Err(self.output.input_cut()),
            _ => Ok(()),
        }
    }

    /// The counts so far.
    pub fn totals(&self) -> BestPriceTotals {
        let DerivedTotals { events, appended } = self.output.totals();
        BestPriceTotals { events, appended, quantities_left_out: self.quantities_left_out }
    }

    /// The replay of the input.
    pub fn replay(&self) -> &BookReplay {
        &self.replay
    }

    /// Makes the output durable, and returns the counts.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn close(self) -> Result<BestPriceTotals, Error> {
        let totals = self.totals();
        self.output.close()?;
        Ok(totals)
    }

    fn put_changes(&mut self) -> Result<(), Error> {
        let books = &self.replay.books().books;
        self.touched.clear();
        let changed = self.replay.changes().iter().filter(|change| change.consolidated);
        self.touched.extend(changed.map(|change| books.listing(change.listing).instrument()));
        // An event of a whole venue changes many.
        self.touched.sort_unstable();
        self.touched.dedup();
        for n in 0..self.touched.len() {
            let instrument = self.touched[n];
            let quote = BestQuote::new(&self.replay.books().books.consolidated(instrument));
            let at = instrument.0 as usize;
            if self.last.len() <= at {
                self.last.resize(at + 1, BestQuote::default());
            }
            if self.last[at] != quote {
                self.last[at] = quote;
                self.put(instrument, &quote)?;
            }
        }
        Ok(())
    }

    /// Puts a best price onto the output, or compares it with the one that is there.
    fn put(&mut self, instrument: InstrumentId, quote: &BestQuote) -> Result<(), Error> {
        let moment = self.replay.moment();
        let name = self.replay.books().names.name(NameKind::Instrument, instrument.0);
        let name = name.ok_or_else(|| Error::OtherTape {
            path: self.replay.dir().to_owned(),
            what: format!(
                "the definition of instrument {} is lost, so its best price has no name; `unitape tape repair` may find it",
                instrument.0
            ),
        })?;
        let venue = self.output.id_of(NameKind::Venue, ALL_VENUES)?;
        let instrument = self.output.id_of(NameKind::Instrument, name)?;
        let mut event = self.output.begin(EventKind::Bbo, UnixNanos(moment.ts));
        let mut set = |field, value| event.set_field(field, value).expect("a value of its field");
        set(EventField::Venue, EventValue::Sym(NameKind::Venue, venue));
        set(EventField::Instr, EventValue::Sym(NameKind::Instrument, instrument));
        let sides = [
            (quote.bid, EventField::Bid, EventField::BidQty),
            (quote.ask, EventField::Ask, EventField::AskQty),
        ];
        for (side, px_field, qty_field) in sides {
            let Some((px, qty)) = side else { continue };
            set(px_field, EventValue::Price(px));
            // A quantity that nobody publishes is none, and so is a sum that no field can have.
            if qty.mantissa() > 0 {
                match i64::try_from(qty.mantissa()).map(|mantissa| Decimal::new(mantissa, qty.exponent())) {
                    Ok(Ok(qty)) => set(qty_field, EventValue::Decimal(qty)),
                    _ => self.quantities_left_out += 1,
                }
            }
        }
        let cause = TapePosition { tape: self.input.0, position: moment.position };
        set(EventField::Cause, EventValue::TapePosition(cause));
        event.finish(0).expect("a best price is short");
        self.output.commit()?;
        Ok(())
    }
}

impl std::fmt::Debug for BestPriceTape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BestPriceTape")
            .field("output", &self.output)
            .field("totals", &self.totals())
            .finish_non_exhaustive()
    }
}

/// Returns the id of the tape with the best prices of this tape.
fn output_id(input: TapeId) -> TapeId {
    derived_id("best prices over all venues", input, b"")
}

const CONTENT: DerivedContent = DerivedContent { noun: "best prices", rules: "" };
