//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{History, NaiveAlert, Number, Twin, id_text, name};
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

    fn judge(&self, history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        let exec = history.now();
        if exec.kind != EventKind::Exec {
            return None;
        }
        // "Executions flagged iso, exempt or auction are passed over."
        if ["iso", "exempt", "auction"].iter().any(|flag| exec.has_flag(EventField::TradeFlags, flag)) {
            return None;
        }
        let (venue, instr, px) = (exec.venue?, exec.instr?, Number::from(exec.px?));
        let (oid, match_id) = (exec.oid.as_ref()?, exec.match_id.as_ref()?);
        // "A national best price older than max_age_ms (exec.ts - bbo.ts > max_age_ms) is stale: no alert"
        let best = history.national_best_before(instr, exec.seq, names)?;
        if i128::from(exec.ts.0) - i128::from(best.ts.0) > self.params.millis("max_age_ms") {
            return None;
        }
        // "above the offer or below the bid by more than tol_bps of that price, whichever side the exec is on"
        let tolerance = Number::billionths(self.params.nano("tol_bps"));
        let is_beyond = |distance: Number, price: Number| {
            price.is_positive() && distance * Number::whole(10_000) > tolerance.clone() * price
        };
        let is_above = best.ask.map(Number::from).is_some_and(|ask| is_beyond(px.clone() - ask.clone(), ask));
        let is_below = best.bid.map(Number::from).is_some_and(|bid| is_beyond(bid.clone() - px.clone(), bid));
        (is_above || is_below).then(|| NaiveAlert {
            ts: exec.ts,
            key: vec![
                ("venue", name(names, NameKind::Venue, venue)),
                ("instr", name(names, NameKind::Instrument, instr.0)),
                ("oid", id_text(oid)),
                ("match_id", id_text(match_id)),
            ],
        })
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        self.judge(history, names).into_iter().collect()
    }
}
