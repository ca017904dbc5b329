//! Public prints as they count now, kept once for all scenarios.
//!
//! ```text
//!  trade            a print        by match: venue, instrument, session date, id
//!  trade, cancel    ╳ it does not count from here on
//!  trade, correct   it counts with the new price and quantity
//! ```
//!
//! The windows are as long as the longest of a running scenario. The last price of a book and of an instrument is that of the
//! last print by sequence that counts; prints flagged `no_last` count in volumes alone.

use crate::ids::{IdKey, field_text};
use crate::kept::OptionalPosition;
use crate::keyed::KeyedStates;
use crate::state::{state_value, watch_state};
use crate::time_logs::{LogWindow, TimeLogs};
use crate::watch::EvidencePlace;
use std::collections::VecDeque;
use unitape_model::records::TradeRecord;
use unitape_model::{
    CivilDate, Decimal, Event, EventField, EventValue, InstrumentId, Position, Price, UnixNanos,
};

/// A public print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Print {
    /// Ordinal of the trade that printed it.
    pub seq: u64,
    position: OptionalPosition,
    /// The time at which it counts.
    pub ts: UnixNanos,
    /// Price.
    pub px: Price,
    /// Quantity.
    pub qty: Decimal,
    /// Venue; 0 none.
    pub venue: u16,
    /// Instrument.
    pub instr: InstrumentId,
    /// It counts in volumes alone, not as a last price.
    pub no_last: bool,
}

impl Print {
    /// Reads the venue, instrument, price and quantity of a trade that counts at `ts`.
    fn of_trade(event: &Event<'_>, seq: u64, position: Option<Position>, ts: UnixNanos) -> Option<Self> {
        let record = TradeRecord::from_event(event)?;
        let (venue, instr) = (record.common.venue.get(), InstrumentId(record.common.instrument.get()));
        let px = Price(record.px.get()).as_option()?;
        let Some(EventValue::Decimal(qty)) = event.field(EventField::Qty, &mut [0; 36]) else { return None };
        let no_last = has_trade_flag(event, "no_last");
        Some(Self { seq, position: OptionalPosition::new(position), ts, px, qty, venue, instr, no_last })
    }

    /// Reads the print that a trade makes when it comes. Returns `None` if it cancels or corrects a print, or comes again.
    pub(crate) fn of_arriving(
        event: &Event<'_>,
        seq: u64,
        position: Option<Position>,
        ts: UnixNanos,
    ) -> Option<Self> {
        let is_new = !event.is_repeat() && changing_action(event, &mut [0; 36]).is_none();
        Self::of_trade(event, seq, position, ts).filter(|_| is_new)
    }

    /// Returns the name that a print lacks to belong to a book: that of its venue or its instrument.
    pub(crate) fn lacking_of_book(&self) -> Option<EventField> {
        match (self.venue, self.instr.0) {
            (0, _) => Some(EventField::Venue),
            (_, 0) => Some(EventField::Instr),
            _ => None,
        }
    }

    /// Returns the place of its trade, for evidence.
    pub(crate) fn place(&self) -> EvidencePlace {
        EvidencePlace { seq: self.seq, position: self.position }
    }
}

/// What a trade does to the prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintChange {
    /// It is a print.
    New(Print),
    /// This print does not count any more.
    Cancelled(Print),
    /// A print counts as another one.
    Corrected {
        /// As it counted before.
        before: Print,
        /// As it counts now, with its own time and ordinal.
        after: Print,
    },
}

impl PrintChange {
    /// Returns the print as it counted first: the new one, or the one that is cancelled or corrected.
    pub(crate) fn print(&self) -> &Print {
        match self {
            Self::New(print) | Self::Cancelled(print) | Self::Corrected { before: print, .. } => print,
        }
    }
}

/// All prints that are known.
pub struct PrintTable {
    by_match: KeyedStates<PrintKey, Vec<Print>>,
    by_book: TimeLogs<(u16, InstrumentId), Print>,
    by_instr: TimeLogs<InstrumentId, Print>,
    last_of_book: KeyedStates<(u16, InstrumentId), LastPrints>,
    last_of_instr: KeyedStates<InstrumentId, LastPrints>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PrintKey {
    venue: u16,
    instr: InstrumentId,
    session_date: CivilDate,
    id: IdKey,
}

/// The last prints that have a price, the oldest first: the one before the last is the last again if that is cancelled.
#[derive(Clone, Debug, Default)]
struct LastPrints {
    last_prints: VecDeque<Print>,
}

/// Prints of a book that are remembered for its last price.
const LAST_MAX: usize = 32;

state_value!(Print { seq, position, ts, px, qty, venue, instr, no_last });
state_value!(PrintKey { venue, instr, session_date, id });
state_value!(LastPrints { last_prints });
watch_state!(PrintTable { by_match, by_book, by_instr, last_of_book, last_of_instr });

impl PrintTable {
    /// Makes a table for windows of up to `window_ns` nanoseconds.
    pub(crate) fn new(window_ns: i128) -> Self {
        Self {
            by_match: KeyedStates::new(),
            by_book: TimeLogs::new(window_ns),
            by_instr: TimeLogs::new(window_ns),
            last_of_book: KeyedStates::new(),
            last_of_instr: KeyedStates::new(),
        }
    }

    /// Takes a trade that counts at `ts`. Returns `None` if it changes nothing: it cancels or corrects a print that nobody
    /// knows.
    pub(crate) fn on_trade(
        &mut self,
        event: &Event<'_>,
        seq: u64,
        position: Option<Position>,
        ts: UnixNanos,
        expiry_ts: UnixNanos,
        session_date: CivilDate,
    ) -> Option<PrintChange> {
        let print = Print::of_trade(event, seq, position, ts)?;
        let key = IdKey::read(event, EventField::MatchId).map(|id| PrintKey {
            venue: print.venue,
            instr: print.instr,
            session_date,
            id,
        });
        let mut scratch = [0; 36];
        let Some(action) = changing_action(event, &mut scratch) else {
            self.add_print(print, key, expiry_ts);
            return Some(PrintChange::New(print));
        };
        let prints = self.by_match.get_mut(&key?)?;
        match action {
            "cancel" => {
                let last_print = prints.pop()?;
                self.replace_print(last_print, None);
                Some(PrintChange::Cancelled(last_print))
            }
            _ => {
                let last_print = prints.last_mut()?;
                let print_before = *last_print;
                (last_print.px, last_print.qty) = (print.px, print.qty);
                let after = *last_print;
                self.replace_print(print_before, Some(after));
                Some(PrintChange::Corrected { before: print_before, after })
            }
        }
    }

    fn add_print(&mut self, print: Print, key: Option<PrintKey>, expiry_ts: UnixNanos) {
        if let Some(key) = key {
            self.by_match.get_or_insert_with(key, Vec::new).push(print);
        }
        let book = (print.venue, print.instr);
        self.by_book.add(book, print.ts, print, expiry_ts);
        self.by_instr.add(print.instr, print.ts, print, expiry_ts);
        if !print.no_last {
            self.last_of_book.get_or_insert_with(book, LastPrints::default).push(print);
            self.last_of_instr.get_or_insert_with(print.instr, LastPrints::default).push(print);
        }
    }

    /// Puts a print in place of another, or removes it.
    #[cold]
    fn replace_print(&mut self, before: Print, after: Option<Print>) {
        let change = |print: &mut Print| {
            if print.seq != before.seq {
                return true;
            }
            after.is_some_and(|after| {
                *print = after;
                true
            })
        };
        let book = (before.venue, before.instr);
        self.by_book.retain(&book, change);
        self.by_instr.retain(&before.instr, change);
        for last in [self.last_of_book.get_mut(&book), self.last_of_instr.get_mut(&before.instr)] {
            last.into_iter().for_each(|last| last.last_prints.retain_mut(change));
        }
    }

    /// Returns the prints of an instrument at a venue in `(after, to]`, the oldest first.
    pub(crate) fn of_book(
        &self,
        venue: u16,
        instr: InstrumentId,
        after: i128,
        to: UnixNanos,
    ) -> LogWindow<'_, Print> {
        self.by_book.window(&(venue, instr), after, to)
    }

    /// Returns the prints of an instrument over all venues in `(after, to]`, the oldest first.
    pub(crate) fn of_instr(&self, instr: InstrumentId, after: i128, to: UnixNanos) -> LogWindow<'_, Print> {
        self.by_instr.window(&instr, after, to)
    }

    /// Returns the last print of an instrument at a venue that has a price.
    pub fn last_of_book(&self, venue: u16, instr: InstrumentId) -> Option<&Print> {
        self.last_of_book.get(&(venue, instr))?.last_prints.back()
    }

    /// Returns the last print of an instrument over all venues that has a price.
    pub fn last_of_instr(&self, instr: InstrumentId) -> Option<&Print> {
        self.last_of_instr.get(&instr)?.last_prints.back()
    }

    /// Returns the last print of an instrument at a venue that has a price and came before the event `seq`.
    pub(crate) fn last_of_book_before(&self, venue: u16, instr: InstrumentId, seq: u64) -> Option<&Print> {
        self.last_of_book.get(&(venue, instr))?.last_prints.iter().rfind(|print| print.seq < seq)
    }

    /// Prints and prices forgotten because there was no room.
    pub(crate) fn bound_hit(&self) -> u64 {
        let states =
            self.by_match.bound_hit() + self.last_of_book.bound_hit() + self.last_of_instr.bound_hit();
        states + self.by_book.bound_hit + self.by_instr.bound_hit
    }

    pub(crate) fn reset(&mut self) {
        self.by_match.clear();
        self.by_book.clear();
        self.by_instr.clear();
        self.last_of_book.clear();
        self.last_of_instr.clear();
    }
}

impl LastPrints {
    fn push(&mut self, print: Print) {
        if self.last_prints.len() == LAST_MAX {
            self.last_prints.pop_front();
        }
        self.last_prints.push_back(print);
    }
}

/// Returns the action of a trade that cancels or corrects a print.
fn changing_action<'s>(event: &'s Event<'_>, scratch: &'s mut [u8; 36]) -> Option<&'s str> {
    field_text(event, EventField::Action, scratch).filter(|action| *action != "new")
}

/// Returns whether a trade or an execution has this flag.
pub(crate) fn has_trade_flag(event: &Event<'_>, flag: &str) -> bool {
    match event.field(EventField::TradeFlags, &mut [0; 36]) {
        Some(EventValue::Flags(names, set)) => {
            names.iter().position(|name| *name == flag).is_some_and(|bit| set >> bit & 1 == 1)
        }
        _ => false,
    }
}
