//! Trade-through: an execution outside the national best bid and offer.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - The age of the national best price is that of the last event of the venue `NBBO`, for both sides; a partial
//!   event repeats the side that it does not name. A price that is stamped later than the execution is not stale.
//! - A side without a price is not compared; the other one is. A price that is not above zero has no basis points and
//!   is missing.
//! - Flagged means in `trade_flags`. An execution in an auction by `liq` alone (`X`) is judged.
//! - An execution without match_id lacks a name of the key and takes no part.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::compare_bps;
use crate::missing::MissingValue;
use crate::params::ScenarioParams;
use crate::prints::has_trade_flag;
use crate::state::watch_state;
use crate::watch::{Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind};
use serde_json::json;
use std::cmp::Ordering;
use unitape_model::{EventKind, Price};

/// The name of the scenario.
pub const ID: &str = "trade_through";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Exec];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders, SharedStateKind::Market];

/// Flags of executions that may be outside.
const EXEMPTIONS: [&str; 3] = ["iso", "exempt", "auction"];

/// The scenario.
pub struct TradeThroughScenario {
    max_age_ns: i128,
    /// Billionths.
    tol_bps: u64,
}

watch_state!(TradeThroughScenario { | max_age_ns, tol_bps });

impl TradeThroughScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { max_age_ns: params.millis("max_age_ms"), tol_bps: params.nano("tol_bps") }
    }

    /// Returns whether an execution is beyond a best price by more than the tolerance.
    fn is_beyond(&self, distance: i128, best: Price) -> bool {
        compare_bps(distance, self.tol_bps, best.0.into()) == Ordering::Greater
    }
}

impl Scenario for TradeThroughScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let Some(record) = input.record else { return };
        if EXEMPTIONS.iter().any(|flag| has_trade_flag(input.event, flag)) {
            return;
        }
        if let Some(field) = input.lacking_of_execution() {
            return out.missing(MissingValue::Field(field));
        }
        let age_ns = |ts: i64| i128::from(input.ts.0) - i128::from(ts);
        let best = input.context.market.national_best(input.instr, input.context.names);
        let Some(best) = best.filter(|best| age_ns(best.ts.0) <= self.max_age_ns) else {
            return out.missing(MissingValue::BestPrice);
        };
        let (bid, ask) = (best.bid.filter(|bid| bid.0 > 0), best.ask.filter(|ask| ask.0 > 0));
        if (bid, ask) != (best.bid, best.ask) || bid.is_none() && ask.is_none() {
            out.missing(MissingValue::BestPrice);
        }
        let px = Price(record.px.get());
        let is_above = ask.is_some_and(|ask| self.is_beyond(i128::from(px.0) - i128::from(ask.0), ask));
        let is_below = bid.is_some_and(|bid| self.is_beyond(i128::from(bid.0) - i128::from(px.0), bid));
        if is_above || is_below {
            let text = |px: Option<Price>| px.map(|px| px.to_string());
            let values = json!({
                "px": px.to_string(),
                "bid": text(bid),
                "ask": text(ask),
                "age_ns": age_ns(best.ts.0).to_string(),
            });
            let detail = input.context.detail(values, [best.place()]);
            out.alert(Alert::new(ID, input.ts, input.context.seq, input.execution_key(), detail));
        }
    }

    fn reset(&mut self) {}

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics::default()
    }
}
