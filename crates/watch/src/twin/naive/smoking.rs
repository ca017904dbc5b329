//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{Happened, History, NaiveAlert, Twin, name, opposite};
use unitape_model::{Dictionary, EventKind, InstrumentId, NameKind, Price};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
}

/// The key of a lure.
#[derive(PartialEq, Eq)]
struct Lure {
    owner: u32,
    venue: u32,
    instr: InstrumentId,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone() }
    }

    /// Returns the lure of which this is an execution.
    fn lure(&self, history: &History, exec: &Happened) -> Option<Lure> {
        exec.executed_qty()?;
        let order = history.order_before(exec)?;
        let new = order.new?;
        let (owner, venue) = (order.owner.or(exec.owner)?, new.venue?);
        let (instr, side, entry_px) = (new.instr?, new.side?, new.px?);
        // "order_new better than the same-side best of its venue (BBO last seen before it)"
        let best = history.best_before(new.venue, instr, new.seq)?;
        let improves = match side {
            'B' => entry_px > best.bid?,
            _ => entry_px < best.ask?,
        };
        // "an amend of it within reprice_ms to a price at least attract_ticks worse than its entry price (a cancel and a new
        // order is none)"; an amend that the venue made is none of the owner. The last of them counts.
        let is_worse = |amend: &Happened, px: Price| {
            let worse = i128::from(entry_px.0) - i128::from(px.0);
            let worse = if side == 'B' { worse } else { -worse };
            let least = history.ticks_before(instr, self.params.nano("attract_ticks"), amend.seq);
            least.is_some_and(|least| worse * 1_000_000_000 >= least)
        };
        let reprice = self.params.millis("reprice_ms");
        let life = history.of_order(exec);
        let amended_px =
            life.iter().rev().filter(|e| e.kind == EventKind::OrderAmend && e.is_message()).find_map(
                |amend| {
                    let age = i128::from(amend.ts.0) - i128::from(new.ts.0);
                    amend.px.filter(|px| age <= reprice && is_worse(amend, *px))
                },
            )?;
        // "an order_new of another owner on the other side, by seq between its entry and its exec"
        let has_contra = history
            .of_instr(instr)
            .filter(|e| e.kind == EventKind::OrderNew && e.seq > new.seq && e.seq < exec.seq)
            .filter(|e| e.venue == new.venue && e.side == Some(opposite(side)))
            .any(|e| e.owner.is_some_and(|other| other != owner));
        // "an exec of it at the amended price"
        let fits = improves && has_contra && exec.px == Some(amended_px);
        fits.then_some(Lure { owner, venue, instr })
    }

    fn judge(&self, history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        // "It counts at that exec, with its ts". An order is one lure, at its first such execution.
        let first_lure = |exec: &Happened| {
            let lure = self.lure(history, exec)?;
            let life = history.of_order(exec);
            let is_first = !life.iter().any(|e| self.lure(history, e).is_some());
            is_first.then_some(lure)
        };
        let now = history.now();
        let lure = first_lure(now)?;
        // "min_events in window", "nothing is consumed"
        let count = history
            .of_kind(EventKind::Exec)
            .filter(|e| e.is_in_window(now.ts, self.params.seconds("window_s")))
            .filter(|e| first_lure(e).as_ref() == Some(&lure))
            .count();
        (count as u64 >= self.params.uint("min_events")).then(|| NaiveAlert {
            ts: now.ts,
            key: vec![
                ("owner", name(names, NameKind::Owner, lure.owner)),
                ("venue", name(names, NameKind::Venue, lure.venue)),
                ("instr", name(names, NameKind::Instrument, lure.instr.0)),
            ],
        })
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        self.judge(history, names).into_iter().collect()
    }
}
