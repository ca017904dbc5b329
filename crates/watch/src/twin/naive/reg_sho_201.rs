//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{FieldValue, History, NaiveAlert, Number, Twin, name};
use unitape_model::{CivilDate, Dictionary, EventField, EventKind, InstrumentId, NameKind};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// The triggers: instrument, first and last day of the price test.
    triggers: Vec<(InstrumentId, CivilDate, CivilDate)>,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), triggers: Vec::new() }
    }

    /// Implements "Trigger when a trade is <= (100-trigger_pct) % of prev close (rest of day and next day)."
    fn trigger(&mut self, history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        let trade = history.now();
        let px = history.print_now().filter(|print| !print.no_last)?.px;
        let instr = trade.instr?;
        let prev_close = match history.reference_before(instr, EventField::PrevClose, trade.seq)? {
            FieldValue::Price(px) => Number::from(*px),
            _ => return None,
        };
        // "threshold unrounded"
        let rest = Number::whole(100) - Number::billionths(self.params.nano("trigger_pct"));
        if !prev_close.is_positive() || Number::from(px) * Number::whole(100) > rest * prev_close {
            return None;
        }
        // "trigger once a day per instrument"
        let (today, _) = self.params.local_clock().read(trade.ts);
        if self.triggers.iter().any(|(i, first, _)| (*i, *first) == (instr, today)) {
            return None;
        }
        // "next day is the next trading day of the venue calendar"; "a re-trigger extends"
        let venue = trade.venue.and_then(|venue| names.name(NameKind::Venue, venue)).unwrap_or_default();
        self.triggers.push((instr, today, history.trading_day_after(venue, today)));
        Some(NaiveAlert { ts: trade.ts, key: vec![("instr", name(names, NameKind::Instrument, instr.0))] })
    }

    /// Implements "While active: short sale exec (short=Y, not exempt E) at px <= national best bid is a violation."
    fn violation(&self, history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        let exec = history.now();
        // "violation per exec with side S and short Y"
        let is_short = exec.side == Some('S') && exec.text(EventField::Short) == Some("Y");
        if exec.kind != EventKind::Exec || !is_short {
            return None;
        }
        let (instr, trader) = (exec.instr?, history.trader(exec)?);
        let (today, _) = self.params.local_clock().read(exec.ts);
        let is_active = |(i, first, last): &(InstrumentId, CivilDate, CivilDate)| {
            *i == instr && *first <= today && today <= *last
        };
        let bid = history.national_best_before(instr, exec.seq, names)?.bid?;
        let fires = exec.px? <= bid && self.triggers.iter().any(is_active);
        fires.then(|| NaiveAlert {
            ts: exec.ts,
            key: vec![
                ("instr", name(names, NameKind::Instrument, instr.0)),
                ("trader", name(names, NameKind::Trader, trader)),
            ],
        })
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let trigger = self.trigger(history, names);
        trigger.into_iter().chain(self.violation(history, names)).collect()
    }
}
