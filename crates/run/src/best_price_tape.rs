//! The best price over all venues of each instrument, as events on a tape of its own.
//!
//! ```text
//!  input   ■ ■ ■ ■ ■ ■ ■ ■ ■        books ─▶ best price over the venues, where it is another
//!              │     │   │                        │
//!  output      bbo   bbo bbo   venue NBBO, the time of its cause, cause = {tape, position}
//! ```
//!
//! The output is a function of the input, see [`crate::derived_tape`].
//!
//! If a best price leaves out a venue with a stale book, an event `status` of the venue NBBO with the state `stale`
//! follows in the same unit. The state `recovered` ends it. If a part of the input is missing, the output has a
//! `status` without an instrument: an instrument without a price after it has no known price.
//!
//! If retention has removed the beginning of the input, the output keeps its events. The books begin at the oldest
//! event. The output continues with the event that caused its last event, and from there on writes each difference from
//! its last state.

use crate::Error;
use crate::derived_tape::{DerivedContent, DerivedTape, DerivedTotals, derived_id};
use crate::replay::{BookReplay, ReplayOutcome};
use std::collections::BTreeMap;
use std::path::Path;
use unitape_book::{ALL_VENUES, BookOptions, ConsolidatedBbo, ConsolidatedSide, QuoteFlags};
use unitape_model::{
    Amount, Decimal, Event, EventField, EventKind, EventValue, InstrumentId, NameKind, Position, Price,
    TapePosition, UnixNanos,
};
use unitape_tape::{ReadOptions, TapeId};

/// The counts of a derivation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BestPriceTotals {
    /// Best prices on the output.
    pub events: u64,
    /// Those among them that this call has put there.
    pub appended: u64,
    /// Words on the output that prices are stale.
    pub stale: u64,
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
/// while prices.apply_next()? != ReplayOutcome::AtEnd {}
/// println!("{} best prices", prices.close()?.events);
/// # Ok::<(), unitape_run::Error>(())
/// ```
pub struct BestPriceTape {
    replay: BookReplay,
    input_tape: TapeId,
    output: DerivedTape,
    /// The last state of each instrument, by its id on the input. `None` before its first event.
    last_states: Vec<Option<BestPriceState>>,
    /// The last words that the output had when it was opened, by name; only where retention has removed the beginning of the
    /// input.
    adopted: BTreeMap<String, BestPriceState>,
    /// The event that caused the last event of the output then. Earlier events add nothing to the output.
    resumes_at: Option<Position>,
    /// Nothing was put there since the output was opened so.
    is_silent: bool,
    /// Whether a part of the input is missing and the output has a status for it.
    says_missing: bool,
    /// The losses of the books that the output knows of.
    known_losses: u64,
    stale_words: u64,
    /// The instruments of the current event.
    touched_instruments: Vec<InstrumentId>,
    quantities_left_out: u64,
}

/// The last word of the output on an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BestPriceState {
    quote: BestQuote,
    /// A venue is left out because its book is stale.
    is_stale: bool,
}

/// The content of a best price event.
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

    /// Reads the best price of an event of the output. A quantity that the output left out is zero, like the quantity
    /// of an empty side.
    fn from_event(event: &Event<'_>) -> Self {
        let side = |px, qty| {
            let Some(EventValue::Price(px)) = event.field(px, &mut [0; 36]) else { return None };
            let qty = match event.field(qty, &mut [0; 36]) {
                Some(EventValue::Decimal(qty)) => {
                    Amount::new(i128::from(qty.mantissa()), qty.exponent()).ok()
                }
                _ => None,
            };
            Some((px, qty.unwrap_or_default()))
        };
        Self {
            bid: side(EventField::Bid, EventField::BidQty),
            ask: side(EventField::Ask, EventField::AskQty),
        }
    }
}

impl BestPriceTape {
    /// Reads the tape in `input`, and makes or continues the one in `output`.
    ///
    /// # Errors
    /// Fails if a tape cannot be read or written, or if the output has other content.
    pub fn open(input: &Path, output: &Path, read: ReadOptions) -> Result<Self, Error> {
        let replay = BookReplay::open(input, read, BookOptions::default())?;
        let input = replay.reader().id();
        let mut this = Self {
            input_tape: input,
            output: DerivedTape::open(output, output_id(input), CONTENT, read)?,
            last_states: Vec::new(),
            adopted: BTreeMap::new(),
            resumes_at: None,
            is_silent: false,
            says_missing: false,
            known_losses: 0,
            stale_words: 0,
            touched_instruments: Vec::new(),
            quantities_left_out: 0,
            replay,
        };
        if this.replay.first().position > Position(0) {
            this.adopt_output()?;
        }
        Ok(this)
    }

    /// Takes over the events of the output that the input no longer has.
    fn adopt_output(&mut self) -> Result<(), Error> {
        let Self { output, adopted, resumes_at, says_missing, stale_words: stale, .. } = self;
        output.adopt_written(|event, names| {
            let instrument = names.name(NameKind::Instrument, event.instrument().0);
            if event.kind() == EventKind::Bbo {
                let Some(name) = instrument else { return };
                adopted.entry(name.to_owned()).or_default().quote = BestQuote::from_event(event);
            } else if let Some(is_stale) = staleness_of(event) {
                *stale += u64::from(is_stale);
                match instrument {
                    Some(name) => adopted.entry(name.to_owned()).or_default().is_stale = is_stale,
                    None => *says_missing = is_stale,
                }
            }
            *resumes_at = cause_of(event).max(*resumes_at);
        })?;
        self.is_silent = true;
        Ok(())
    }

    /// Applies the next event of the input, and puts the best prices that it changed onto the output, by id of the instrument.
    ///
    /// # Errors
    /// Fails if a tape cannot be read or written. Fails if the output was made from another input, or if the input was
    /// cut back.
    pub fn apply_next(&mut self) -> Result<ReplayOutcome, Error> {
        let outcome = self.replay.step()?;
        match outcome {
            ReplayOutcome::Event => self.put_changes()?,
            ReplayOutcome::AtEnd => {
                if self.resumes_at.is_some_and(|cause| cause >= self.replay.end().position) {
                    return Err(self.output.input_cut());
                }
                self.output.require_compared()?;
            }
            ReplayOutcome::Rewound { .. } => return Err(self.output.input_cut()),
            ReplayOutcome::Reached => {}
        }
        Ok(outcome)
    }

    /// Waits at the end of the input until there is more, or for a fifth of a second.
    ///
    /// # Errors
    /// Fails as [`BestPriceTape::apply_next`] does.
    pub fn wait(&mut self) -> Result<(), Error> {
        match self.replay.wait()? {
            ReplayOutcome::Rewound { .. } => Err(self.output.input_cut()),
            _ => Ok(()),
        }
    }

    /// Returns the counts so far.
    pub fn totals(&self) -> BestPriceTotals {
        let DerivedTotals { events, appended } = self.output.totals();
        let (stale, quantities_left_out) = (self.stale_words, self.quantities_left_out);
        BestPriceTotals { events, appended, stale, quantities_left_out }
    }

    /// Returns the replay of the input.
    pub fn replay(&self) -> &BookReplay {
        &self.replay
    }

    /// Returns whether the output marks prices as stale, or a part of the input as missing.
    pub fn is_flawed(&self) -> bool {
        self.stale_words > 0 || self.replay.books().books.lacks_part()
    }

    /// Makes the output durable, and returns the counts.
    ///
    /// # Errors
    /// Fails if the disk reports an error.
    pub fn close(self) -> Result<BestPriceTotals, Error> {
        let totals = self.totals();
        self.output.close()?;
        Ok(totals)
    }

    fn put_changes(&mut self) -> Result<(), Error> {
        if self.resumes_at.is_some_and(|cause| self.replay.moment().position < cause) {
            return Ok(());
        }
        let books = &self.replay.books().books;
        let losses = books.counters().lost;
        if self.known_losses != losses {
            self.known_losses = losses;
            let is_missing = books.lacks_part();
            if is_missing && !self.says_missing {
                self.put_status(None, true)?;
                self.output.commit()?;
            }
            self.says_missing = is_missing;
        }
        if std::mem::take(&mut self.is_silent) {
            self.put_differences()?;
        }
        let books = &self.replay.books().books;
        self.touched_instruments.clear();
        let changed_instruments = self.replay.changes().iter().filter(|change| change.consolidated_changed);
        self.touched_instruments
            .extend(changed_instruments.map(|change| books.listing(change.listing).instrument()));
        // An event of a whole venue changes many.
        self.touched_instruments.sort_unstable();
        self.touched_instruments.dedup();
        for n in 0..self.touched_instruments.len() {
            self.put_change(self.touched_instruments[n])?;
        }
        Ok(())
    }

    /// Appends the prices of all instruments that differ from their last state on the output.
    fn put_differences(&mut self) -> Result<(), Error> {
        let (books, names) = (&self.replay.books().books, &self.replay.books().names);
        let mut instruments: Vec<_> = books.instruments().collect();
        let adopted = self.adopted.keys();
        let adopted_ids =
            adopted.filter_map(|name| names.get(NameKind::Instrument, name.as_bytes()).map(InstrumentId));
        instruments.extend(adopted_ids);
        instruments.sort_unstable();
        instruments.dedup();
        instruments.into_iter().try_for_each(|instrument| self.put_change(instrument))
    }

    /// Appends the best price of an instrument to the output if it differs from the last state.
    fn put_change(&mut self, instrument: InstrumentId) -> Result<(), Error> {
        let books = &self.replay.books().books;
        let best = books.consolidated(instrument);
        // Of an instrument without a book that had a price, the orders are gone.
        let is_gone = !self.adopted.is_empty() && books.listings_of(instrument).next().is_none();
        let state = BestPriceState {
            quote: BestQuote::new(&best),
            is_stale: is_gone || best.marks.contains(QuoteFlags::STALE),
        };
        let number = instrument.0 as usize;
        if self.last_states.len() <= number {
            self.last_states.resize(number + 1, None);
        }
        let last_prices = self.last_states[number].unwrap_or_else(|| {
            let name = self.replay.books().names.name(NameKind::Instrument, instrument.0);
            name.and_then(|name| self.adopted.get(name).copied()).unwrap_or_default()
        });
        self.last_states[number] = Some(state);
        let is_other = last_prices.quote != state.quote;
        if last_prices.is_stale && !state.is_stale {
            self.put_status(Some(instrument), false)?;
        }
        if is_other {
            self.write_price(instrument, &state.quote)?;
        }
        // A reader takes a best price as whole, so the word comes after each one.
        if state.is_stale && (is_other || !last_prices.is_stale) {
            self.put_status(Some(instrument), true)?;
        }
        self.output.commit()?;
        Ok(())
    }

    fn instrument_id(&mut self, instrument: InstrumentId) -> Result<u32, Error> {
        let name = self.replay.books().names.name(NameKind::Instrument, instrument.0);
        let name = name.ok_or_else(|| Error::OtherTape {
            path: self.replay.dir().to_owned(),
            reason: format!(
                "the definition of instrument {} is lost, so its best price has no name; `unitape tape repair` may find it",
                instrument.0
            ),
        })?;
        self.output.id_of(NameKind::Instrument, name)
    }

    /// Puts the word into the unit that the best prices of an instrument, or of all of them, are stale, or are so no longer.
    fn put_status(&mut self, instrument: Option<InstrumentId>, is_stale: bool) -> Result<(), Error> {
        let moment = self.replay.moment();
        let venue = self.output.id_of(NameKind::Venue, ALL_VENUES)?;
        let instrument = instrument.map(|instrument| self.instrument_id(instrument)).transpose()?;
        let cause = TapePosition { tape: self.input_tape.0, position: moment.position };
        let mut event = self.output.begin_event(EventKind::Status, UnixNanos(moment.ts));
        let mut set = |field, value| event.set_field(field, value).expect("a value of its field");
        set(EventField::Venue, EventValue::Sym(NameKind::Venue, venue));
        if let Some(instrument) = instrument {
            set(EventField::Instr, EventValue::Sym(NameKind::Instrument, instrument));
        }
        set(EventField::State, EventValue::Text(if is_stale { STALE } else { RECOVERED }));
        let reason = match (is_stale, instrument) {
            (true, None) => Some("a part of the tape is missing"),
            (true, Some(_)) => Some("a venue with a stale book is left out"),
            (false, _) => None,
        };
        if let Some(reason) = reason {
            set(EventField::Reason, EventValue::Text(reason));
        }
        let json =
            serde_json::json!({ "tape": TapeId(cause.tape).to_string(), "position": cause.position.0 });
        event.keep_unmapped(CAUSE, &json.to_string()).expect("a short name");
        event.finish(0).expect("a status is short");
        self.stale_words += u64::from(is_stale);
        Ok(())
    }

    /// Puts a best price into the unit.
    fn write_price(&mut self, instrument: InstrumentId, quote: &BestQuote) -> Result<(), Error> {
        let moment = self.replay.moment();
        let venue = self.output.id_of(NameKind::Venue, ALL_VENUES)?;
        let instrument = self.instrument_id(instrument)?;
        let mut event = self.output.begin_event(EventKind::Bbo, UnixNanos(moment.ts));
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
            // A quantity that nobody publishes is left out, and so is a sum that fits no field.
            if qty.mantissa() > 0 {
                match i64::try_from(qty.mantissa()).map(|mantissa| Decimal::new(mantissa, qty.exponent())) {
                    Ok(Ok(qty)) => set(qty_field, EventValue::Decimal(qty)),
                    _ => self.quantities_left_out += 1,
                }
            }
        }
        let cause = TapePosition { tape: self.input_tape.0, position: moment.position };
        set(EventField::Cause, EventValue::TapePosition(cause));
        event.finish(0).expect("a best price is short");
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

/// Returns whether a status of the output marks prices as stale (true) or as recovered (false).
fn staleness_of(event: &Event<'_>) -> Option<bool> {
    match event.field(EventField::State, &mut [0; 36]) {
        Some(EventValue::Text(STALE)) => Some(true),
        Some(EventValue::Text(RECOVERED)) => Some(false),
        _ => None,
    }
}

/// Returns the position of the input event that caused an event of the output.
fn cause_of(event: &Event<'_>) -> Option<Position> {
    if let Some(EventValue::TapePosition(cause)) = event.field(EventField::Cause, &mut [0; 36]) {
        return Some(cause.position);
    }
    let (_, json) = event.unmapped_fields().find(|(name, _)| *name == CAUSE)?;
    let cause: serde_json::Value = serde_json::from_str(json).ok()?;
    cause["position"].as_u64().map(Position)
}

const STALE: &str = "stale";
const RECOVERED: &str = "recovered";
/// The field of a status with the position of its cause, as `bbo` has it.
const CAUSE: &str = "cause";

const CONTENT: DerivedContent = DerivedContent { noun: "best prices", rules: "" };
