//! Price spike: the price of an instrument at a venue moves far within a short time.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - A print with `no_last` is neither judged nor one of the prints of the window. Nor is a trade that cancels or
//!   corrects one; it changes the prints that later trades are compared with.
//! - The window is read literally: prints that are stamped later than the current one are not in it.
//! - A minimum or maximum that is not above zero has no basis points and gives no alert in its direction. The bare
//!   inequality would hold for every trade at such a price.
//! - An alert that is held back by the cooldown does not begin a new one.
//!
//! The lowest and the highest print of a window are found at the ends of two rows for each venue and instrument: the first
//! has the prints that no later print is below, the second those that no later print is above. So a print costs the same for
//! any window; only one that comes late is compared with each print of its window. The rows make the module longer than most.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::cooldown::AlertCooldowns;
use crate::exact::compare_bps;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::params::ScenarioParams;
use crate::prints::{Print, PrintChange};
use crate::state::{state_value, watch_state};
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use std::cmp::Ordering;
use std::collections::VecDeque;
use unitape_model::{EventKind, InstrumentId, NameKind, Price, UnixNanos};

/// The name of the scenario.
pub const ID: &str = "price_spike";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Trade];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Prints];

/// The scenario.
pub struct PriceSpikeScenario {
    window_ns: i128,
    /// Billionths.
    move_bps: u64,
    min_trades: usize,
    books: KeyedStates<BookKey, BookExtremes>,
    cooldowns: AlertCooldowns<(u16, InstrumentId, u8)>,
    late: u64,
    bound_hit: u64,
}

/// Venue and instrument.
type BookKey = (u16, InstrumentId);

/// The prints of a book that may be the lowest or highest of a window that ends at its latest print or later.
struct BookExtremes {
    latest_ts: i64,
    lows: VecDeque<ExtremePrint>,
    highs: VecDeque<ExtremePrint>,
}

#[derive(Clone, Copy)]
struct ExtremePrint {
    ts: i64,
    px: Price,
    place: EvidencePlace,
}

/// Prints of a book in each row at most; then the oldest is forgotten.
const ROW_MAX: usize = 1 << 14;

const DIRECTIONS: [&str; 2] = ["up", "down"];

state_value!(ExtremePrint { ts, px, place });
state_value!(BookExtremes { latest_ts, lows, highs });
watch_state!(PriceSpikeScenario { books, cooldowns, late, bound_hit | window_ns, move_bps, min_trades });

impl PriceSpikeScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let seconds = |param| 1_000_000_000 * i128::from(params.uint(param));
        Self {
            window_ns: seconds("window_s"),
            move_bps: params.nano("move_bps"),
            min_trades: usize::try_from(params.uint("min_trades")).unwrap_or(usize::MAX),
            books: KeyedStates::new(),
            cooldowns: AlertCooldowns::new(seconds("cooldown_s")),
            late: 0,
            bound_hit: 0,
        }
    }

    fn on_print(&mut self, print: &Print, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let context = input.context;
        let after = i128::from(print.ts.0) - self.window_ns;
        let window = context.prints.of_book(print.venue, print.instr, after, print.ts);
        self.late += u64::from(!window.is_complete);
        let book = self.books.get_or_insert_with((print.venue, print.instr), BookExtremes::new);
        let is_late = print.ts.0 < book.latest_ts;
        self.bound_hit += book.add(print.into());
        let priced = || window.iter().map(|(_, print)| print).filter(|print| !print.no_last);
        let (low, high) = if is_late {
            // A window that ends earlier has extremes that the rows may lack.
            let extremes = || priced().map(ExtremePrint::from);
            (extremes().min_by_key(|print| print.px), extremes().max_by_key(|print| print.px))
        } else {
            book.latest_ts = print.ts.0;
            book.expire(after);
            (book.lows.front().copied(), book.highs.front().copied())
        };
        let (Some(low), Some(high)) = (low, high) else { return };
        let distances = [
            (i128::from(print.px.0) - i128::from(low.px.0), low),
            (i128::from(high.px.0) - i128::from(print.px.0), high),
        ];
        for (direction, (distance, extreme)) in (0..).zip(distances) {
            let is_met = extreme.px.0 > 0
                && compare_bps(distance, self.move_bps, extreme.px.0.into()) != Ordering::Less
                && priced().rev().take(self.min_trades).count() >= self.min_trades;
            if !is_met || !self.cooldowns.may_fire((print.venue, print.instr, direction), input.ts) {
                continue;
            }
            let values = json!({
                "direction": DIRECTIONS[usize::from(direction)],
                "px": print.px.to_string(),
                "from_px": extreme.px.to_string(),
            });
            let key = vec![
                ("venue", context.name(NameKind::Venue, print.venue.into())),
                ("instr", context.name(NameKind::Instrument, print.instr.0)),
            ];
            out.alert(Alert::new(ID, input.ts, context.seq, key, context.detail(values, [extreme.place])));
        }
    }

    /// Finds the extremes of a book anew, after one of its prints was cancelled or corrected.
    #[cold]
    fn on_change(&mut self, before: &Print, input: &ScenarioInput<'_, '_>) {
        let Some(book) = self.books.get_mut(&(before.venue, before.instr)) else { return };
        book.lows.clear();
        book.highs.clear();
        let latest_ts = UnixNanos(book.latest_ts);
        let after = i128::from(book.latest_ts) - self.window_ns;
        let window = input.context.prints.of_book(before.venue, before.instr, after, latest_ts);
        for (_, print) in window.iter().filter(|(_, print)| !print.no_last) {
            self.bound_hit += book.add(print.into());
        }
    }
}

impl BookExtremes {
    fn new() -> Self {
        Self { latest_ts: i64::MIN, lows: VecDeque::new(), highs: VecDeque::new() }
    }

    /// Adds a print to the rows. Returns the number of prints that are forgotten because there is no room.
    fn add(&mut self, print: ExtremePrint) -> u64 {
        let is_low = |print: &ExtremePrint, other: &ExtremePrint| print.px <= other.px;
        let is_high = |print: &ExtremePrint, other: &ExtremePrint| print.px >= other.px;
        add_to_row(&mut self.lows, print, is_low) + add_to_row(&mut self.highs, print, is_high)
    }

    /// Forgets the prints up to `limit`.
    fn expire(&mut self, limit: i128) {
        for row in [&mut self.lows, &mut self.highs] {
            while row.front().is_some_and(|print| i128::from(print.ts) <= limit) {
                row.pop_front();
            }
        }
    }
}

/// Puts a print at its time into a row. Prints before it that it makes superfluous leave, and it stays away if one after it
/// makes it superfluous.
fn add_to_row(
    row: &mut VecDeque<ExtremePrint>,
    print: ExtremePrint,
    replaces: impl Fn(&ExtremePrint, &ExtremePrint) -> bool,
) -> u64 {
    let end = row.partition_point(|other| other.ts <= print.ts);
    if row.get(end).is_some_and(|later| replaces(later, &print)) {
        return 0;
    }
    let start = row.partition_point(|other| other.ts <= print.ts && !replaces(&print, other));
    row.drain(start..end);
    row.insert(start, print);
    if row.len() <= ROW_MAX {
        return 0;
    }
    row.pop_front();
    1
}

impl From<&Print> for ExtremePrint {
    fn from(print: &Print) -> Self {
        Self { ts: print.ts.0, px: print.px, place: print.place() }
    }
}

impl Scenario for PriceSpikeScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        match input.print {
            Some(PrintChange::New(print)) if print.no_last => {}
            Some(PrintChange::New(print)) => match print.lacking_of_book() {
                Some(field) => out.missing(MissingValue::Field(field)),
                None => self.on_print(&print, input, out),
            },
            Some(PrintChange::Cancelled(before) | PrintChange::Corrected { before, .. }) => {
                self.on_change(&before, input);
            }
            None => {}
        }
    }

    fn print_window_ns(&self) -> i128 {
        self.window_ns
    }

    fn reset(&mut self) {
        self.books.clear();
        self.cooldowns.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            held_back: self.cooldowns.held_back,
            late: self.late,
            bound_hit: self.bound_hit + self.books.bound_hit() + self.cooldowns.bound_hit(),
            held_entries: self.books.len() as u64,
            ..ScenarioMetrics::default()
        }
    }
}
