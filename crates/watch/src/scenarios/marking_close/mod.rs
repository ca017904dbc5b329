//! Marking the close: an owner trades with the move in the last minutes, enough to have made it.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - Only session events with phase `close` are judged; those of the open and of fixings are not.
//! - The last trade before the window is the last by sequence among those stamped at or before its start. A print
//!   with `no_last` counts in the volume and is not that trade.
//! - An execution without a price counts on the other side, where only its quantity matters, and not on the side of
//!   the move. An execution without a side counts nowhere.
//! - A reference that is not above zero is missing. Quantities that are not above zero count as nothing.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::ids::field_text;
use crate::missing::MissingValue;
use crate::number::Number;
use crate::orders::quantity;
use crate::params::ScenarioParams;
use crate::past_prices::PastPrices;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeLogs;
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use unitape_model::{Decimal, EventField, EventKind, EventValue, InstrumentId, NameKind, Price};

/// The name of the scenario.
pub const ID: &str = "marking_close";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Trade, EventKind::Exec, EventKind::Session];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders, SharedStateKind::Prints];

/// The scenario.
pub struct MarkingCloseScenario {
    window_ns: i128,
    min_move_bps: Number,
    min_share_pct: Number,
    min_notional: Number,
    prices: PastPrices<BookKey>,
    executions: TimeLogs<BookKey, CloseExecution>,
    late: u64,
}

/// Venue and instrument.
type BookKey = (u16, InstrumentId);

/// An execution that may stand in the window of a close.
#[derive(Clone, Copy)]
struct CloseExecution {
    owner: u32,
    /// 1 buy, 2 sell.
    side: u8,
    /// It took liquidity or is of an auction.
    is_aggressive: bool,
    px: Price,
    qty: Decimal,
    place: EvidencePlace,
}

/// The executions of an owner in the window.
#[derive(Default)]
struct OwnerSums {
    /// Executed with the move (dq), and its notional.
    moved: Number,
    notional: Number,
    /// Executed against it (oq).
    opposed: Number,
    evidence: Vec<EvidencePlace>,
}

state_value!(CloseExecution { owner, side, is_aggressive, px, qty, place });
watch_state!(MarkingCloseScenario {
    prices, executions, late | window_ns, min_move_bps, min_share_pct, min_notional
});

impl MarkingCloseScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let window_ns = params.seconds("window_s");
        Self {
            window_ns,
            min_move_bps: Number::billionths(params.nano("min_move_bps")),
            min_share_pct: Number::billionths(params.nano("min_share_pct")),
            min_notional: params.amount("min_notional").into(),
            prices: PastPrices::new(window_ns),
            executions: TimeLogs::new(window_ns),
            late: 0,
        }
    }

    fn on_execution(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let key = match input.side_book() {
            Ok(key) => key,
            Err(field) => return out.missing(MissingValue::Field(field)),
        };
        let Some(record) = input.record else { return };
        let Some(qty) = quantity(record).filter(|qty| qty.mantissa() > 0) else {
            return out.missing(MissingValue::Field(EventField::Qty));
        };
        let px = Price(record.px.get());
        let is_aggressive = matches!(field_text(input.event, EventField::Liq, &mut [0; 36]), Some("R" | "X"));
        let (owner, side, place) = (key.owner, key.side, input.context.place());
        let execution = CloseExecution { owner, side, is_aggressive, px, qty, place };
        self.executions.add((key.venue, key.instr), input.ts, execution, input.context.expiry_ts);
    }

    /// Judges the owners at a close.
    fn on_close(
        &mut self,
        (venue, instr): BookKey,
        px: Price,
        input: &ScenarioInput<'_, '_>,
        out: &mut ScenarioOutput<'_>,
    ) {
        let (context, close) = (input.context, Number::from(px));
        let start = i128::from(input.ts.0) - self.window_ns;
        let (reference, is_complete) = self.prices.last_until(&(venue, instr), start);
        let prints = context.prints.of_book(venue, instr, start, input.ts);
        let executions = self.executions.window(&(venue, instr), start, input.ts);
        self.late += u64::from(!(is_complete && prints.is_complete && executions.is_complete));
        let Some(reference) = reference.filter(|print| print.px.0 > 0) else {
            return out.missing(MissingValue::Baseline);
        };
        let reference_px = Number::from(reference.px);
        let change = close - reference_px;
        let side = match px.cmp(&reference.px) {
            Ordering::Greater => BUY,
            Ordering::Less => SELL,
            Ordering::Equal => return,
        };
        if change.abs() * Number::whole(10_000) < self.min_move_bps * reference_px {
            return;
        }
        let traded = prints.iter().map(|(_, print)| print.qty).filter(|qty| qty.mantissa() > 0);
        let volume = traded.fold(Number::ZERO, |sum, qty| sum + qty.into());
        if !volume.is_positive() {
            return;
        }
        let mut owners = BTreeMap::<u32, OwnerSums>::new();
        for (_, execution) in executions.iter() {
            owners.entry(execution.owner).or_default().add(execution, side);
        }
        for (owner, sums) in owners {
            let share = (sums.moved - sums.opposed) * Number::whole(100);
            if sums.notional < self.min_notional || share < self.min_share_pct * volume {
                continue;
            }
            let values = json!({
                "side": if side == BUY { "B" } else { "S" },
                "close_px": px.to_string(), "reference_px": reference.px.to_string(),
                "qty": sums.moved.text(), "opposite_qty": sums.opposed.text(),
                "notional": sums.notional.text(), "volume": volume.text(),
            });
            let key = vec![
                ("owner", context.name(NameKind::Owner, owner)),
                ("venue", context.name(NameKind::Venue, venue.into())),
                ("instr", context.name(NameKind::Instrument, instr.0)),
            ];
            let evidence = sums.evidence.into_iter().chain([reference.place]);
            out.alert(Alert::new(ID, input.ts, context.seq, key, context.detail(values, evidence)));
        }
    }
}

impl OwnerSums {
    /// Adds an execution, where the price moved to `side`.
    fn add(&mut self, execution: &CloseExecution, side: u8) {
        let qty = Number::from(execution.qty);
        match execution.px.as_option() {
            _ if execution.side != side => self.opposed = self.opposed + qty,
            Some(px) if execution.is_aggressive => {
                self.moved = self.moved + qty;
                self.notional = self.notional + Number::from(px) * qty;
                self.evidence.push(execution.place);
            }
            _ => {}
        }
    }
}

impl Scenario for MarkingCloseScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let event = input.event;
        match event.kind() {
            EventKind::Exec => self.on_execution(input, out),
            EventKind::Trade => {
                let Some(change) = input.print else { return };
                let print = change.print();
                match print.lacking_of_book() {
                    Some(field) => out.missing(MissingValue::Field(field)),
                    None => {
                        let key = (print.venue, print.instr);
                        self.prices.on_change(key, &change, input.context.expiry_ts);
                    }
                }
            }
            _ if field_text(event, EventField::Phase, &mut [0; 36]) == Some("close") => {
                let (venue, instr) = (event.venue(), event.instrument());
                match event.field(EventField::Px, &mut [0; 36]) {
                    _ if venue == 0 => out.missing(MissingValue::Field(EventField::Venue)),
                    _ if instr.0 == 0 => out.missing(MissingValue::Field(EventField::Instr)),
                    Some(EventValue::Price(px)) => self.on_close((venue, instr), px, input, out),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn print_window_ns(&self) -> i128 {
        self.window_ns
    }

    fn reset(&mut self) {
        self.prices.clear();
        self.executions.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            expired: self.executions.expired,
            bound_hit: self.executions.bound_hit + self.prices.bound_hit(),
            held_entries: (self.executions.entry_count() + self.prices.len()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}

const BUY: u8 = 1;
const SELL: u8 = 2;
