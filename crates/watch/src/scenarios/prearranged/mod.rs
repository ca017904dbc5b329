//! Prearranged orders: two owners enter equal orders at the same time, which fill each other.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - *Fully filled* is judged at the order's own leg: it is the first fill of the order (executions with a quantity
//!   above zero), and its quantity is the latest quantity of the order.
//! - *Second leg*: a pair counts when its later leg comes. There is no window between the legs of a match.
//! - *Different groups* as known at the second leg. Owners are those of the executions, and those of their orders
//!   when these name none.
//! - *A match counts once for an owner pair*, also after the alert that forgot it.
//! - A match belongs to its venue, instrument and session date. The count is per owner pair and instrument, over
//!   all venues.
//! - *Counted matches are forgotten*: all of that pair and instrument, those outside the window, too.
//!
//! Of a match 256 legs are kept. Orders have a mark once they have a fill: the executed quantity does not tell, as venues
//! restate it.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::kept::OptionalSequence;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::orders::quantity;
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeLogs;
use crate::watch::{
    EvidencePlace, MatchKey, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use unitape_model::{Decimal, EventField, EventKind, InstrumentId, NameKind, UnixNanos};

/// The name of the scenario.
pub const ID: &str = "prearranged";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Exec];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders, SharedStateKind::SessionDates];

/// The scenario.
pub struct PrearrangedScenario {
    entry_gap_ns: i128,
    min_repeat: u64,
    window_ns: i128,
    /// The ordinal of the entry of the order in each slot of the orders, once it has a fill.
    filled: Vec<OptionalSequence>,
    matches: KeyedStates<MatchKey, FilledMatch>,
    counted: TimeLogs<PairKey, CountedMatch>,
    late: u64,
    bound_hit: u64,
}

/// Two owners, the lower id first, and the instrument.
type PairKey = ([u32; 2], InstrumentId);

/// The executions of a match that fully filled their orders.
#[derive(Default)]
struct FilledMatch {
    legs: Vec<FilledLeg>,
    /// The pairs of owners for which the match counted.
    pairs: Vec<[u32; 2]>,
}

/// An execution that fully filled its order.
#[derive(Clone, Copy)]
struct FilledLeg {
    owner: u32,
    side: u8,
    qty: Decimal,
    entry_ts: UnixNanos,
    place: EvidencePlace,
}

/// The two legs of a match that counts.
#[derive(Clone, Copy)]
struct CountedMatch {
    legs: [EvidencePlace; 2],
}

/// Legs of one match at most; later ones do not wait for others.
const LEGS_MAX: usize = 256;

state_value!(FilledMatch { legs, pairs });
state_value!(FilledLeg { owner, side, qty, entry_ts, place });
state_value!(CountedMatch { legs });
watch_state!(PrearrangedScenario {
    filled, matches, counted, late, bound_hit | entry_gap_ns, min_repeat, window_ns,
});

impl PrearrangedScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let window_ns = 1_000_000_000 * i128::from(params.uint("window_s"));
        Self {
            entry_gap_ns: params.millis("entry_gap_ms"),
            min_repeat: params.uint("min_repeat"),
            window_ns,
            filled: Vec::new(),
            matches: KeyedStates::new(),
            counted: TimeLogs::new(window_ns),
            late: 0,
            bound_hit: 0,
        }
    }

    /// Returns an execution that fully filled its order, and its match; `None` if it did not. The error is what it lacks.
    fn filled_leg(
        &mut self,
        input: &ScenarioInput<'_, '_>,
    ) -> Result<Option<(MatchKey, FilledLeg)>, MissingValue> {
        let qty = input.record.and_then(quantity).filter(|qty| qty.mantissa() > 0);
        let qty = qty.ok_or(MissingValue::Field(EventField::Qty))?;
        let update = input.order.ok_or(MissingValue::Order)?;
        let (slot, order) = (update.slot as usize, update.order);
        let entry = OptionalSequence::new(order.entry_seq().ok_or(MissingValue::Order)?);
        if self.filled.len() <= slot {
            self.filled.resize(slot + 1, OptionalSequence::NONE);
        }
        let is_first = std::mem::replace(&mut self.filled[slot], entry) != entry;
        let book = input.side_book().map_err(MissingValue::Field)?;
        // An absent match id differs from every other.
        let key = input.match_key().filter(|_| is_first && order.qty() == Some(qty));
        let (owner, side, entry_ts, place) = (book.owner, book.side, order.entry_ts, input.context.place());
        Ok(key.map(|key| (key, FilledLeg { owner, side, qty, entry_ts, place })))
    }

    /// Pairs a leg with the earlier ones of its match.
    fn on_leg(
        &mut self,
        key: MatchKey,
        leg: FilledLeg,
        input: &ScenarioInput<'_, '_>,
        out: &mut ScenarioOutput<'_>,
    ) {
        let (ts, parties) = (input.ts, input.context.parties);
        let filled = self.matches.get_or_insert_with(key, FilledMatch::default);
        let mut pairs = Vec::new();
        for other in &filled.legs {
            let gap = i128::from(other.entry_ts.0) - i128::from(leg.entry_ts.0);
            let mut owners = [leg.owner, other.owner];
            owners.sort_unstable();
            let counts = other.side != leg.side
                && parties.group(other.owner) != parties.group(leg.owner)
                && other.qty == leg.qty
                && gap.abs() <= self.entry_gap_ns
                && !filled.pairs.contains(&owners);
            if counts {
                filled.pairs.push(owners);
                pairs.push((owners, CountedMatch { legs: [other.place, leg.place] }));
            }
        }
        if filled.legs.len() < LEGS_MAX {
            filled.legs.push(leg);
        } else {
            self.bound_hit += 1;
        }
        for (owners, counted) in pairs {
            let pair = (owners, key.instr);
            self.counted.add(pair, ts, counted, input.context.expiry_ts);
            let window = self.counted.window(&pair, i128::from(ts.0) - self.window_ns, ts);
            self.late += u64::from(!window.is_complete);
            if window.len() as u64 >= self.min_repeat {
                let places = window.iter().flat_map(|(_, counted)| counted.legs);
                out.alert(alert(pair, window.len(), places, input));
                self.counted.retain(&pair, |_| false);
            }
        }
    }
}

/// Makes the alert of a pair of owners.
fn alert(
    (owners, instr): PairKey,
    matches: usize,
    places: impl Iterator<Item = EvidencePlace>,
    input: &ScenarioInput<'_, '_>,
) -> Alert {
    let context = input.context;
    let mut owners = owners.map(|owner| context.name(NameKind::Owner, owner));
    owners.sort_unstable();
    let key =
        vec![("owners", json!(owners).to_string()), ("instr", context.name(NameKind::Instrument, instr.0))];
    let detail = context.detail(json!({ "matches": matches }), places);
    Alert::new(ID, input.ts, context.seq, key, detail)
}

impl Scenario for PrearrangedScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        match self.filled_leg(input) {
            Ok(Some((key, leg))) => self.on_leg(key, leg, input, out),
            Ok(None) => {}
            Err(value) => out.missing(value),
        }
    }

    fn reset(&mut self) {
        self.filled.clear();
        self.matches.clear();
        self.counted.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            expired: self.counted.expired,
            bound_hit: self.bound_hit + self.matches.bound_hit() + self.counted.bound_hit,
            held_entries: (self.matches.len() + self.counted.entry_count()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}
