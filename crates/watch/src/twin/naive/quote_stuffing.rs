//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{Happened, History, NaiveAlert, Twin, name};
use std::collections::HashMap;
use unitape_model::{Dictionary, EventKind, InstrumentId, NameKind, UnixNanos};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// The last alert of each trader, venue and instrument.
    last: HashMap<(u32, u32, InstrumentId), UnixNanos>,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), last: HashMap::new() }
    }

    /// Implements "F=cancels of orders alive <= max_live_ms"; "Alive = cancel ts - order_new ts; [...] a cancel of an unknown
    /// or filled order counts in N and C only. A cancel of an order already cancelled counts in N and C only, too."
    fn is_fast(&self, history: &History, cancel: &Happened) -> bool {
        let Some(order) = history.order_before(cancel).filter(|order| order.is_live()) else { return false };
        let alive = |new: &Happened| i128::from(cancel.ts.0) - i128::from(new.ts.0);
        order.new.is_some_and(|new| alive(new) <= self.params.millis("max_live_ms"))
    }

    fn judge(&mut self, history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        // "Per trader+venue+instrument on each cancel"; a cancel that the venue made is none of the trader.
        let cancel = history.now();
        let is_cancel = |e: &Happened| e.kind == EventKind::OrderCancel && e.is_message();
        if !is_cancel(cancel) {
            return None;
        }
        let key = (history.trader(cancel)?, cancel.venue?, cancel.instr?);
        // "N=new+amend+cancel, C=cancels, F=..., X=execs, all in (t-window,t]"
        let in_window: Vec<&Happened> = history
            .of_trader(key.0)
            .filter(|e| e.venue == Some(key.1) && e.instr == Some(key.2))
            .filter(|e| e.is_in_window(cancel.ts, self.params.millis("window_ms")))
            .collect();
        let count =
            |counts: &dyn Fn(&Happened) -> bool| in_window.iter().filter(|e| counts(e)).count() as u128;
        let (n, c) = (count(&Happened::is_message), count(&is_cancel));
        let f = count(&|e| is_cancel(e) && self.is_fast(history, e));
        let x = count(&|e| e.kind == EventKind::Exec);
        // "Fire if N>=min_msgs and F*100>=min_fast_cancel_pct*C and X*100<=max_exec_pct*N"; percentages are in billionths.
        let nano = |name| u128::from(self.params.nano(name));
        let fires = n >= u128::from(self.params.uint("min_msgs"))
            && f * 100 * 1_000_000_000 >= nano("min_fast_cancel_pct") * c
            && x * 100 * 1_000_000_000 <= nano("max_exec_pct") * n;
        // "cooldown per key, counted from the last emitted alert, alert allowed again at last+cooldown"
        let (now, cooldown) = (i128::from(cancel.ts.0), self.params.millis("cooldown_ms"));
        if !fires || self.last.get(&key).is_some_and(|last| now < i128::from(last.0) + cooldown) {
            return None;
        }
        self.last.insert(key, cancel.ts);
        Some(NaiveAlert {
            ts: cancel.ts,
            key: vec![
                ("trader", name(names, NameKind::Trader, key.0)),
                ("venue", name(names, NameKind::Venue, key.1)),
                ("instr", name(names, NameKind::Instrument, key.2.0)),
            ],
        })
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        self.judge(history, names).into_iter().collect()
    }
}
