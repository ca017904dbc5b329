//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{History, NaiveAlert, Number, Twin, id_text, name};
use unitape_model::{Dictionary, EventKind, NameKind};

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
        let (venue, instr, px) = (exec.venue?, exec.instr?, Number::from(exec.px?));
        let (oid, match_id) = (exec.oid.as_ref()?, exec.match_id.as_ref()?);
        // "The reference is the last ref_px of the instrument, of any source and age"
        let last = history.of_instr(instr).find(|e| e.kind == EventKind::RefPx && e.seq < exec.seq);
        let reference = Number::from(last?.px?);
        if !reference.is_positive() {
            return None;
        }
        // "|px - composite/BVAL-like reference| > dev_bps"; "basis points are of it"
        let deviation = (px - reference.clone()).abs() * Number::whole(10_000);
        let fires = deviation > Number::billionths(self.params.nano("dev_bps")) * reference;
        fires.then(|| NaiveAlert {
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
