//! Short-sale price test: a share falls by a tenth, and while the test applies somebody sells short at or below the
//! national best bid.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - The trade that triggers is a print of its own, not `no_last`, at any venue. If it is cancelled or corrected
//!   later, alert and test stay.
//! - The test applies from the trigger, by sequence, to the end of the next trading day; days between them are
//!   included. Days are local dates of the events; the next trading day is that of the calendar of the venue of the
//!   trade.
//! - A second trade of the same day triggers nothing and extends nothing.
//! - The national best bid is the last one, of any age. Mark and side are those of the execution; a side that it
//!   lacks is that of its order.
//! - A previous close that is not above zero is missing.
//! - Without an active test nothing of a short sale is compared, so a best bid is missing only while one is active.
//!
//! A price test is kept for a month after its last day. An event that is later than that is counted as `late`. The module has
//! two alerts with a key each, which makes it longer than most.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::BILLION;
use crate::fields;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::params::ScenarioParams;
use crate::prints::{Print, PrintChange};
use crate::state::{state_value, watch_state};
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use std::collections::VecDeque;
use unitape_model::{CivilDate, EventField, EventKind, InstrumentId, LocalClock, NameKind, Price};

/// The name of the scenario.
pub const ID: &str = "reg_sho_201";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Trade, EventKind::Exec];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] =
    &[SharedStateKind::Orders, SharedStateKind::Market, SharedStateKind::Prints];

/// The scenario.
pub struct ShortSaleTestScenario {
    /// Billionths.
    trigger_pct: u64,
    clock: LocalClock,
    tests: KeyedStates<InstrumentId, InstrumentTests>,
    late: u64,
    expired: u64,
    bound_hit: u64,
}

/// The price tests of an instrument.
#[derive(Default)]
struct InstrumentTests {
    /// In the order of their triggers.
    tests: VecDeque<PriceTest>,
    /// The last day of those that are forgotten.
    forgotten: Option<CivilDate>,
}

/// A price test, from the trade that triggers it to the end of its last day.
#[derive(Clone, Copy)]
struct PriceTest {
    first_day: CivilDate,
    last_day: CivilDate,
    place: EvidencePlace,
}

/// A price test is kept for this many days after its last, for events that come late.
const KEEP_DAYS: i32 = 31;
/// Price tests of an instrument that are kept at most.
const TESTS_MAX: usize = 1 << 8;
/// The second side.
const SELL: u8 = 2;

state_value!(PriceTest { first_day, last_day, place });
state_value!(InstrumentTests { tests, forgotten });
watch_state!(ShortSaleTestScenario { tests, late, expired, bound_hit | trigger_pct, clock });

impl ShortSaleTestScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        Self {
            trigger_pct: params.nano("trigger_pct"),
            clock: params.local_clock(),
            tests: KeyedStates::new(),
            late: 0,
            expired: 0,
            bound_hit: 0,
        }
    }

    /// Returns whether a price is at or below the threshold, which is not rounded.
    fn is_triggering(&self, px: Price, prev_close: Price) -> bool {
        let rest = 100 * BILLION - i128::from(self.trigger_pct);
        i128::from(px.0) * 100 * BILLION <= rest * i128::from(prev_close.0)
    }

    fn on_print(&mut self, print: &Print, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let context = input.context;
        if print.instr.0 == 0 {
            return out.missing(MissingValue::Field(EventField::Instr));
        }
        let prev_close = context.market.reference(print.instr).and_then(|terms| terms.prev_close);
        let Some(prev_close) = prev_close.filter(|px| px.0 > 0) else {
            return out.missing(MissingValue::Reference(EventField::PrevClose));
        };
        if !self.is_triggering(print.px, prev_close) {
            return;
        }
        let (today, _) = self.clock.read(print.ts);
        let (expiry_day, _) = self.clock.read(print.ts.min(context.expiry_ts));
        let tests = self.tests.get_or_insert_with(print.instr, InstrumentTests::default);
        self.late += u64::from(tests.forgotten.is_some_and(|last_day| today <= last_day));
        if tests.tests.iter().any(|test| test.first_day == today) {
            return;
        }
        let (expired, left_out) = tests.forget(expiry_day);
        self.expired += expired;
        self.bound_hit += left_out;
        let venue = context.names.name(NameKind::Venue, print.venue.into()).unwrap_or_default();
        let last_day = context.session_dates.trading_day_after(venue, today);
        tests.tests.push_back(PriceTest { first_day: today, last_day, place: print.place() });
        let values = json!({
            "px": print.px.to_string(),
            "prev_close": prev_close.to_string(),
            "last_day": last_day.to_string(),
        });
        let key = vec![("instr", context.name(NameKind::Instrument, print.instr.0))];
        out.alert(Alert::new(ID, input.ts, context.seq, key, context.detail(values, [])));
    }

    fn on_exec(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let (Some(record), context) = (input.record, input.context) else { return };
        if !fields::has_text(input.event, EventField::Short, "Y") || !matches!(input.side, 0 | SELL) {
            return;
        }
        let Some(px) = Price(record.px.get()).as_option() else {
            return out.missing(MissingValue::Field(EventField::Px));
        };
        match () {
            () if input.side == 0 => return out.missing(MissingValue::Field(EventField::Side)),
            () if input.instr.0 == 0 => return out.missing(MissingValue::Field(EventField::Instr)),
            () if input.trader == 0 => return out.missing(MissingValue::Field(EventField::Trader)),
            () => {}
        }
        let Some(tests) = self.tests.get(&input.instr) else { return };
        let (today, _) = self.clock.read(input.ts);
        self.late += u64::from(tests.forgotten.is_some_and(|last_day| today <= last_day));
        let is_active = |test: &&PriceTest| test.first_day <= today && today <= test.last_day;
        let Some(test) = tests.tests.iter().rfind(is_active) else { return };
        let best = context.market.national_best(input.instr, context.names);
        let Some((best, bid)) = best.and_then(|best| Some((best, best.bid?))) else {
            return out.missing(MissingValue::BestPrice);
        };
        if px <= bid {
            let values = json!({"px": px.to_string(), "bid": bid.to_string()});
            let key = vec![
                ("instr", context.name(NameKind::Instrument, input.instr.0)),
                ("trader", context.name(NameKind::Trader, input.trader)),
            ];
            let detail = context.detail(values, [test.place, best.place()]);
            out.alert(Alert::new(ID, input.ts, context.seq, key, detail));
        }
    }
}

impl InstrumentTests {
    /// Forgets what ended long before `day`. Returns the number of forgotten tests, and of those for which there was no room.
    fn forget(&mut self, day: CivilDate) -> (u64, u64) {
        let limit = day.days().saturating_sub(KEEP_DAYS);
        let before = self.tests.len();
        let forgotten = &mut self.forgotten;
        self.tests.retain(|test| {
            let is_kept = test.last_day.days() >= limit;
            if !is_kept {
                *forgotten = (*forgotten).max(Some(test.last_day));
            }
            is_kept
        });
        let expired = (before - self.tests.len()) as u64;
        if self.tests.len() < TESTS_MAX {
            return (expired, 0);
        }
        self.tests.pop_front();
        (expired, 1)
    }
}

impl Scenario for ShortSaleTestScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        match input.print {
            Some(PrintChange::New(print)) if !print.no_last => self.on_print(&print, input, out),
            _ if input.event.kind() == EventKind::Exec => self.on_exec(input, out),
            _ => {}
        }
    }

    fn reset(&mut self) {
        self.tests.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            expired: self.expired,
            bound_hit: self.bound_hit + self.tests.bound_hit(),
            held_entries: self.tests.len() as u64,
            ..ScenarioMetrics::default()
        }
    }
}
