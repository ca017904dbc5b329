//! Market-wide circuit breaker: an index falls to a level at which the whole market halts.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - The first two levels of the list are those that the cutoff concerns; any further one may fire at any time.
//! - A level that fires spends the levels before it in the list, at any time of day. The words that levels 1 and 2
//!   are not spent after the cutoff speak of an index that reaches them alone.
//! - A day is the local date of the event. If time goes back over midnight, the levels of the earlier day are still
//!   spent.
//! - The previous close is the last one before the event; another close on the same day moves the levels and spends
//!   nothing. A close that is not above zero is missing.
//! - A value of zero or below is an index value as any other.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::fields;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::number::Number;
use crate::params::ScenarioParams;
use crate::state::watch_state;
use crate::watch::{Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind};
use serde_json::json;
use unitape_model::{CivilDate, Decimal, EventField, EventKind, InstrumentId, LocalClock, NameKind, Price};

/// The name of the scenario.
pub const ID: &str = "mwcb";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Index];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Market];

/// The levels that the cutoff concerns: the first two of the list.
const LEVELS_BEFORE_CUTOFF: usize = 2;

/// The scenario.
pub struct MarketWideBreakerScenario {
    levels_pct: Vec<u64>,
    cutoff_ns: i128,
    clock: LocalClock,
    /// The number of spent levels by index and local day. They are the first ones of the list.
    spent: KeyedStates<(InstrumentId, CivilDate), usize>,
}

watch_state!(MarketWideBreakerScenario { spent | levels_pct, cutoff_ns, clock });

impl MarketWideBreakerScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        Self {
            levels_pct: params.counts("levels_pct"),
            cutoff_ns: i128::from(params.uint("cutoff_s")) * 1_000_000_000,
            clock: params.local_clock(),
            spent: KeyedStates::new(),
        }
    }

    fn judge(
        &mut self,
        index: InstrumentId,
        px: Decimal,
        prev_close: Price,
        input: &ScenarioInput<'_, '_>,
    ) -> Option<Alert> {
        let (date, of_day) = self.clock.read(input.ts);
        let spent = self.spent.get(&(index, date)).copied().unwrap_or(0);
        let is_before_cutoff = i128::from(of_day) < self.cutoff_ns;
        let open = if is_before_cutoff { spent } else { spent.max(LEVELS_BEFORE_CUTOFF) };
        let highest = (open..self.levels_pct.len())
            .rev()
            .find(|place| Number::from(px) <= level_price(prev_close, self.levels_pct[*place]))?;
        self.spent.set((index, date), highest + 1);
        let pct = self.levels_pct[highest];
        let values = json!({
            "level": highest + 1,
            "pct": pct,
            "level_px": level_price(prev_close, pct).text(),
            "px": px.to_string(),
            "prev_close": prev_close.to_string(),
        });
        let key = vec![("index", input.context.name(NameKind::Instrument, index.0))];
        Some(Alert::new(ID, input.ts, input.context.seq, key, input.context.detail(values, [])))
    }
}

/// Returns the price of a level, rounded to a cent, half a cent up.
fn level_price(prev_close: Price, pct: u64) -> Number {
    // In units of 10^-11, of which a cent has a billion.
    let level = i128::from(prev_close.0) * (100 - i128::from(pct));
    Number::new((2 * level + 1_000_000_000).div_euclid(2_000_000_000), -2)
}

impl Scenario for MarketWideBreakerScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let Some(index) = fields::name_id(input.event, EventField::Index).map(InstrumentId) else {
            return out.missing(MissingValue::Field(EventField::Index));
        };
        let Some(px) = fields::decimal(input.event, EventField::Px) else {
            return out.missing(MissingValue::Field(EventField::Px));
        };
        let prev_close = input.context.market.reference(index).and_then(|terms| terms.prev_close);
        let Some(prev_close) = prev_close.filter(|px| px.0 > 0) else {
            return out.missing(MissingValue::Reference(EventField::PrevClose));
        };
        if let Some(alert) = self.judge(index, px, prev_close, input) {
            out.alert(alert);
        }
    }

    fn reset(&mut self) {
        self.spent.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            bound_hit: self.spent.bound_hit(),
            held_entries: self.spent.len() as u64,
            ..ScenarioMetrics::default()
        }
    }
}
