//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{Happened, History, NaiveAlert, Twin, name};
use std::collections::HashMap;
use unitape_model::{Dictionary, EventKind, NameKind, UnixNanos};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// The last alert of each trader.
    last: HashMap<u32, UnixNanos>,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), last: HashMap::new() }
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let now = history.now();
        let is_message = Happened::is_message;
        let is_execution = |e: &Happened| e.kind == EventKind::Exec;
        // "Per trader on each order/exec event".
        if !is_message(now) && !is_execution(now) {
            return vec![];
        }
        let Some(trader) = history.trader(now) else { return vec![] };
        // "N = new+amend+cancel, X = exec in (t-window,t]".
        let (t, window) = (i128::from(now.ts.0), self.params.millis("window_ms"));
        let in_window: Vec<_> = history
            .of_trader(trader)
            .filter(|e| i128::from(e.ts.0) > t - window && i128::from(e.ts.0) <= t)
            .collect();
        let n = in_window.iter().filter(|e| is_message(e)).count() as u128;
        let x = in_window.iter().filter(|e| is_execution(e)).count() as u128;
        // "Fire if N>=min_msgs and N>max_ratio*X"; the ratio is in billionths.
        let max_ratio = u128::from(self.params.nano("max_ratio"));
        if n < u128::from(self.params.uint("min_msgs")) || n * 1_000_000_000 <= max_ratio * x {
            return vec![];
        }
        // "Re-arm at last alert + cooldown (inclusive)".
        if self
            .last
            .get(&trader)
            .is_some_and(|last| t < i128::from(last.0) + self.params.millis("cooldown_ms"))
        {
            return vec![];
        }
        self.last.insert(trader, now.ts);
        vec![NaiveAlert { ts: now.ts, key: vec![("trader", name(names, NameKind::Trader, trader))] }]
    }
}
