//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{History, NaiveAlert, Number, Twin, name};
use unitape_model::{Dictionary, EventField, EventKind, NameKind, Price};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone() }
    }

    /// Returns whether `px` is further from `reference` than the parameter allows; "basis points are of the reference".
    fn is_beyond(&self, px: Price, reference: Option<Price>, param: &str) -> bool {
        let Some(reference) = reference.map(Number::from).filter(Number::is_positive) else { return false };
        let distance = (Number::from(px) - reference.clone()).abs();
        distance * Number::whole(10_000) > Number::billionths(self.params.nano(param)) * reference
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let now = history.now();
        // "Before a trade prints at p"; "every trade is judged".
        let Some(p) = history.print_now().filter(|print| !print.no_last).map(|print| print.px) else {
            return vec![];
        };
        let (Some(instr), Some(venue)) = (now.instr, now.venue) else { return vec![] };
        // "Last auction px is that of the last session event with phase auction that carries px"
        let is_auction = |phase: Option<&str>| phase == Some("auction");
        let auction = history
            .of_instr(instr)
            .filter(|e| e.kind == EventKind::Session && e.venue == Some(venue) && e.seq < now.seq)
            .filter(|e| is_auction(e.text(EventField::Phase)))
            .find_map(|e| e.px);
        // "last trade px is that of the trade before, also of one that interrupted"
        let last = history.last_price_before(instr, Some(venue), now.seq);
        // "|p-last auction px| > static_bps or |p-last trade px| > dynamic_bps"; "together are one alert"
        let is_static = self.is_beyond(p, auction, "static_bps");
        let is_dynamic = self.is_beyond(p, last, "dynamic_bps");
        if !is_static && !is_dynamic {
            return vec![];
        }
        vec![NaiveAlert {
            ts: now.ts,
            key: vec![
                ("venue", name(names, NameKind::Venue, venue)),
                ("instr", name(names, NameKind::Instrument, instr.0)),
            ],
        }]
    }
}
