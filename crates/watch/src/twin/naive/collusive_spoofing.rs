//! The words of the definition: "As spoofing, owner replaced by linked group".

use crate::params::ScenarioParams;
use crate::twin::naive::number::Number;
use crate::twin::naive::{History, NaiveAlert, Twin, name, spoofing};
use unitape_model::{Dictionary, EventField, EventKind, NameKind};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone() }
    }

    /// Implements "Owners belong together if party gives them one group and none of their link_scores is below
    /// link_score_min; a missing link_score counts as 1; an owner of no group takes no part here".
    fn linked_group(&self, history: &History, owner: u32) -> Option<u32> {
        let party = history.of_owner(owner).find(|e| e.kind == EventKind::Party)?;
        let score = party.decimal(EventField::LinkScore).map_or(Number::from(1), Number::from);
        let least = Number::billionths(self.params.nano("link_score_min"));
        party.group.filter(|_| score >= least)
    }

    fn judge(&self, history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        let group = |owner| self.linked_group(history, owner);
        let spoof = spoofing::find_spoof(history, &self.params, group)?;
        Some(NaiveAlert {
            ts: history.now().ts,
            key: vec![
                ("group", name(names, NameKind::Owner, spoof.party)),
                ("venue", name(names, NameKind::Venue, spoof.new.venue?)),
                ("instr", name(names, NameKind::Instrument, spoof.new.instr?.0)),
            ],
        })
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        self.judge(history, names).into_iter().collect()
    }
}
