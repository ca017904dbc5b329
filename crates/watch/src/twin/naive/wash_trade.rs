//! The words of the definition, each looked up in everything that happened.

use crate::exact::QuantitySum;
use crate::params::ScenarioParams;
use crate::twin::naive::{Happened, History, Id, NaiveAlert, Twin, name};
use std::collections::HashSet;
use unitape_model::{CivilDate, Decimal, Dictionary, EventKind, InstrumentId, NameKind};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// Executions that were used, by sequence.
    consumed: HashSet<u64>,
    /// Executions that completed a self match.
    alerted: HashSet<u64>,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        let params = params.clone();
        Self { params, consumed: HashSet::new(), alerted: HashSet::new() }
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let Some(e) = whole(history, history.now()) else { return vec![] };
        // "Compare beneficial group (party map; default = owner)."
        let group = history.group(e.owner);
        // Every execution with all needed fields, earliest first.
        let mut earlier: Vec<Leg<'_>> = history
            .of_instr(e.instr)
            .filter(|f| f.seq < e.event.seq)
            .filter_map(|f| whole(history, f))
            .collect();
        earlier.reverse();
        let found = NaiveAlert {
            ts: e.event.ts,
            key: vec![
                ("group", name(names, NameKind::Owner, group)),
                ("instr", name(names, NameKind::Instrument, e.instr.0)),
            ],
        };
        // "any two legs on opposite sides with the same beneficial owner are a self_match, decided when the later of the two
        // arrives, one alert per match_id, venue and instrument".
        let alerted = earlier.iter().any(|f| f.same_match(&e) && self.alerted.contains(&f.event.seq));
        let first = earlier.iter().find(|f| {
            f.same_match(&e)
                && f.side != e.side
                && history.group(f.owner) == group
                && !self.consumed.contains(&f.event.seq)
        });
        if let Some(f) = first.filter(|_| !alerted) {
            self.consumed.extend([f.event.seq, e.event.seq]);
            self.alerted.insert(e.event.seq);
            return vec![found];
        }
        // "Arm round_trip: exec e meets the earliest unconsumed exec f".
        let window = self.params.millis("window_ms");
        let (px_tol, qty_tol) = (self.params.nano("px_tol_bps"), self.params.nano("qty_tol_pct"));
        let f = earlier.iter().find(|f| {
            let (e_ts, f_ts) = (i128::from(e.event.ts.0), i128::from(f.event.ts.0));
            !self.consumed.contains(&f.event.seq)
                && history.group(f.owner) == group
                && f.side != e.side
                && !f.same_match(&e)
                && f_ts > e_ts - window
                && f_ts <= e_ts
                && i128::from(e.px - f.px).abs() * 10_000 * 1_000_000_000
                    <= i128::from(px_tol) * i128::from(f.px)
                && qty_near(e.qty, f.qty, qty_tol)
        });
        if let Some(f) = f {
            self.consumed.extend([f.event.seq, e.event.seq]);
            return vec![found];
        }
        vec![]
    }
}

/// An execution with all needed fields.
struct Leg<'a> {
    event: &'a Happened,
    owner: u32,
    instr: InstrumentId,
    side: char,
    px: i64,
    qty: Decimal,
}

impl Leg<'_> {
    /// Implements "match_id per venue+instrument" and "a match_id belongs to its session date". An execution without a match id differs from all others.
    fn same_match(&self, other: &Self) -> bool {
        fn id<'a>(leg: &'a Leg<'_>) -> (Option<&'a Id>, Option<u32>, InstrumentId, CivilDate) {
            (leg.event.match_id.as_ref(), leg.event.venue, leg.instr, leg.event.session_date)
        }
        self.event.match_id.is_some() && id(self) == id(other)
    }
}

fn whole<'a>(history: &History, event: &'a Happened) -> Option<Leg<'a>> {
    let qty = event.qty.filter(|q| event.kind == EventKind::Exec && q.mantissa() > 0)?;
    Some(Leg {
        event,
        owner: history.owner(event)?,
        instr: event.instr?,
        side: event.side?,
        px: event.px?.0,
        qty,
    })
}

/// Implements "|qty diff|*100<=qty_tol_pct*f.qty", with the tolerance in billionths.
fn qty_near(e: Decimal, f: Decimal, tolerance: u64) -> bool {
    let (e, f) = (QuantitySum::from_decimal(e), QuantitySum::from_decimal(f));
    let difference = e.max(f).minus_earlier(&e.min(f));
    difference.times(100).times(1_000_000_000) <= f.times(tolerance)
}
