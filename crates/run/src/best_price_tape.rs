//! The best price over all venues of each instrument, as events on a tape of its own.
//!
//! ```text
//!  input   ■ ■ ■ ■ ■ ■ ■ ■ ■        books ─▶ best price over the venues, where it is another
//!              │     │   │                        │
//!  output      bbo   bbo bbo   venue NBBO, the time of its cause, cause = {tape, position}
//! ```
//!
//! The output is a function of the input. So a later call reads the input from its start, compares what it derives with
//! what the output has, and appends from there: a call that was killed leaves no trace, and an input that is not the one
//! of before is found.

use crate::Error;
use crate::replay::{BookReplay, ReplayOutcome};
use std::path::{Path, PathBuf};
use std::time::Duration;
use unitape_book::{ALL_VENUES, BookOptions, ConsolidatedBbo, ConsolidatedSide};
use unitape_model::{
    Amount, Decimal, Dictionary, EventBuilder, EventField, EventKind, EventValue, FrameHeader, InstrumentId,
    NameKind, Position, Price, TapePosition, UnixNanos, flags,
};
use unitape_tape::{
    ReadOptions, Reader, StartPosition, SyncPolicy, TapeId, TapeManifest, Writer, WriterOptions,
};

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
    output: PathBuf,
    writer: Writer,
    /// What the output had, from where it has not been compared.
    written: Option<Reader>,
    names: Dictionary,
    /// The last best price of each instrument, by its id on the input.
    last: Vec<BestQuote>,
    /// The instruments of the event in hand.
    touched: Vec<InstrumentId>,
    unit: Vec<u8>,
    totals: BestPriceTotals,
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
        let refuse = |what: &str| Error::OtherTape { path: output.to_owned(), what: what.to_owned() };
        if replay.first().seq > 1 {
            return Err(Error::OtherTape {
                path: input.to_owned(),
                what: "retention has removed its beginning, without which its books lack orders".to_owned(),
            });
        }
        let input = replay.reader().id();
        let id = output_id(input);
        match TapeManifest::load(output) {
            Ok(manifest) if manifest.id != id => {
                return Err(refuse("it does not have the best prices of this tape; name another directory"));
            }
            Ok(_) | Err(unitape_tape::Error::NotATape { .. }) => {}
            Err(e) => return Err(e.into()),
        }
        let sync = SyncPolicy::Every { bytes: 64 << 20, interval: Duration::from_secs(1) };
        let (writer, _) = Writer::open(output, id, WriterOptions { sync, ..WriterOptions::default() })?;
        let reader = Reader::open_with(output, StartPosition::Oldest, read)?;
        if reader.position() != Position(0) {
            return Err(refuse("retention has removed its beginning, and it cannot be continued"));
        }
        Ok(Self {
            replay,
            input,
            output: output.to_owned(),
            writer,
            written: Some(reader),
            names: Dictionary::default(),
            last: Vec::new(),
            touched: Vec::new(),
            unit: Vec::new(),
            totals: BestPriceTotals::default(),
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
            ReplayOutcome::AtEnd => self.require_compared()?,
            ReplayOutcome::Rewound { .. } => return Err(self.cut()),
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
            ReplayOutcome::Rewound { .. } => Err(self.cut()),
            _ => Ok(()),
        }
    }

    /// The counts so far.
    pub fn totals(&self) -> BestPriceTotals {
        self.totals
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
        self.writer.close()?;
        Ok(self.totals)
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
        let mut unit = std::mem::take(&mut self.unit);
        unit.clear();
        let mut id_of = |dict, name: &str| match self.names.intern(dict, name.as_bytes()) {
            Ok((id, new)) => {
                if new {
                    EventBuilder::define(&mut unit, dict, id, name).expect("a name of a dictionary");
                }
                Ok(id)
            }
            Err(_) => Err(Error::OtherTape {
                path: self.output.clone(),
                what: format!("there is no room for another {}", dict.name()),
            }),
        };
        let venue = id_of(NameKind::Venue, ALL_VENUES)?;
        let instrument = id_of(NameKind::Instrument, name)?;
        let mut event = EventBuilder::begin(&mut unit, EventKind::Bbo, UnixNanos(moment.ts));
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
                    _ => self.totals.quantities_left_out += 1,
                }
            }
        }
        let cause = TapePosition { tape: self.input.0, position: moment.position };
        set(EventField::Cause, EventValue::TapePosition(cause));
        event.finish(flags::LAST).expect("a best price is short");
        let is_there = self.is_written(&unit)?;
        if !is_there {
            self.writer.append(&unit)?;
            self.totals.appended += 1;
        }
        self.totals.events += 1;
        self.unit = unit;
        Ok(())
    }

    /// Whether the output has this unit; an error where it has another one.
    fn is_written(&mut self, unit: &[u8]) -> Result<bool, Error> {
        let Some(written) = &mut self.written else { return Ok(false) };
        for (n, (_, _, frame)) in unitape_model::frames(unit).enumerate() {
            match written.next()? {
                Some(there) if same(frame, there.bytes) => {}
                None if n == 0 => {
                    self.written = None;
                    return Ok(false);
                }
                _ => return Err(self.other()),
            }
        }
        Ok(true)
    }

    /// At the end of the input: the output has nothing that was not derived from it.
    fn require_compared(&mut self) -> Result<(), Error> {
        match &mut self.written {
            Some(written) => match written.next()? {
                None => {
                    self.written = None;
                    Ok(())
                }
                Some(_) => Err(self.other()),
            },
            None => Ok(()),
        }
    }

    fn other(&self) -> Error {
        let what = "it has best prices that this input does not give: the input was cut or is another one, or this build \
                    derives others; name another directory";
        Error::OtherTape { path: self.output.clone(), what: what.to_owned() }
    }

    fn cut(&self) -> Error {
        let what = "the input was cut back while it was read; run the command again";
        Error::OtherTape { path: self.output.clone(), what: what.to_owned() }
    }
}

impl std::fmt::Debug for BestPriceTape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BestPriceTape")
            .field("output", &self.output)
            .field("totals", &self.totals)
            .finish_non_exhaustive()
    }
}

/// The id of the tape with the best prices of this one.
fn output_id(input: TapeId) -> TapeId {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"best prices over all venues");
    hasher.update(&input.0.to_le_bytes());
    let bytes = hasher.finalize();
    TapeId(u128::from_le_bytes(bytes.as_bytes()[..16].try_into().expect("sixteen of 32 bytes")))
}

/// Whether two frames are the same, without the stamp of the writer.
fn same(mine: &[u8], there: &[u8]) -> bool {
    const STAMP: u64 = 0xffff_ffff;
    let header = FrameHeader::read(mine).0 & !STAMP == FrameHeader::read(there).0 & !STAMP;
    header && mine[8..] == there[8..]
}
