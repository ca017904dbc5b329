//! Off-market price: an execution far from a composite or evaluated price.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - The last reference price is the last by sequence, whatever its time.
//! - A reference that is not above zero is missing; an earlier one is not taken instead.
//! - An execution without match_id lacks a name of the key and takes no part.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::compare_bps;
use crate::fields;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use std::cmp::Ordering;
use unitape_model::{EventField, EventKind, InstrumentId, Price};

/// The name of the scenario.
pub const ID: &str = "off_market_trade";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Exec, EventKind::RefPx];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders];

/// The scenario.
pub struct OffMarketTradeScenario {
    /// Billionths.
    dev_bps: u64,
    references: KeyedStates<InstrumentId, ReferencePrice>,
}

/// The last reference price of an instrument.
struct ReferencePrice {
    px: Price,
    place: EvidencePlace,
}

state_value!(ReferencePrice { px, place });
watch_state!(OffMarketTradeScenario { references | dev_bps });

impl OffMarketTradeScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { dev_bps: params.nano("dev_bps"), references: KeyedStates::new() }
    }
}

impl Scenario for OffMarketTradeScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let Some(record) = input.record else {
            let px = fields::price(input.event, EventField::Px).unwrap_or(Price::NONE);
            let reference = ReferencePrice { px, place: input.context.place() };
            return self.references.set(input.event.instrument(), reference);
        };
        if let Some(field) = input.lacking_of_execution() {
            return out.missing(MissingValue::Field(field));
        }
        let Some(reference) = self.references.get(&input.instr).filter(|reference| reference.px.0 > 0) else {
            return out.missing(MissingValue::Reference(EventField::Px));
        };
        let px = Price(record.px.get());
        let distance = (i128::from(px.0) - i128::from(reference.px.0)).abs();
        if compare_bps(distance, self.dev_bps, reference.px.0.into()) == Ordering::Greater {
            let values = json!({"px": px.to_string(), "ref_px": reference.px.to_string()});
            let detail = input.context.detail(values, [reference.place]);
            out.alert(Alert::new(ID, input.ts, input.context.seq, input.execution_key(), detail));
        }
    }

    fn reset(&mut self) {
        self.references.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            bound_hit: self.references.bound_hit(),
            held_entries: self.references.len() as u64,
            ..ScenarioMetrics::default()
        }
    }
}
