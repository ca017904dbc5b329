//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{FieldValue, History, NaiveAlert, Number, Twin, name};
use std::collections::HashSet;
use unitape_model::{CivilDate, Dictionary, EventField, EventKind, InstrumentId, NameKind};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// The levels that are spent, by index, local day and place in the list.
    spent: HashSet<(InstrumentId, CivilDate, usize)>,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), spent: HashSet::new() }
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let now = history.now();
        if now.kind != EventKind::Index {
            return vec![];
        }
        let index = now.name(EventField::Index).map(InstrumentId);
        let (Some(index), Some(px)) = (index, now.decimal(EventField::Px)) else { return vec![] };
        let prev_close = history.reference_before(index, EventField::PrevClose, now.seq);
        let Some(FieldValue::Price(prev_close)) =
            prev_close.filter(|value| matches!(value, FieldValue::Price(px) if px.0 > 0))
        else {
            return vec![];
        };
        // "Levels 1 and 2 only before 15:25 ET (at/after: no halt)"; "Level 3 any time."
        let (date, of_day) = self.params.local_clock().read(now.ts);
        let cutoff = i128::from(self.params.uint("cutoff_s")) * 1_000_000_000;
        let is_in_time = |place: usize| place >= 2 || i128::from(of_day) < cutoff;
        // "Level price = prev_close*(1-pct) rounded half-up to 0.01; triggers when index <= level."
        let is_reached = |pct: u64| {
            let level = i128::from(prev_close.0) * (100 - i128::from(pct));
            // `level` has eleven places; a cent is a billion of them.
            let cents = (2 * level + 1_000_000_000).div_euclid(2_000_000_000);
            Number::from(px) <= Number::new(cents, -2)
        };
        // "the highest level newly reached, each level once a day"
        let reached = (0..).zip(self.params.counts("levels_pct"));
        let highest = reached
            .filter(|(place, pct)| is_in_time(*place) && is_reached(*pct))
            .map(|(place, _)| place)
            .filter(|place| !self.spent.contains(&(index, date, *place)))
            .max();
        let Some(highest) = highest else { return vec![] };
        // "a higher level spends the lower ones"
        self.spent.extend((0..=highest).map(|place| (index, date, place)));
        vec![NaiveAlert { ts: now.ts, key: vec![("index", name(names, NameKind::Instrument, index.0))] }]
    }
}
