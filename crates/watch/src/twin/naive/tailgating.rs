//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{Happened, History, NaiveAlert, Twin, name};
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

    /// Implements "an exec with capacity P of the same instrument and side, by seq after it and up to max_after_ms after it, is a
    /// repeat".
    fn is_repeat(&self, history: &History, e: &Happened) -> bool {
        let has_names = e.instr.is_some() && e.side.is_some() && e.name(EventField::Firm).is_some();
        is_deal(e, "P")
            && has_names
            && history.of_instr(e.instr.unwrap_or_default()).any(|c| {
                // "A client deals by order_recv or by an exec with capacity A of the same firm".
                (c.kind == EventKind::OrderRecv || is_deal(c, "A"))
                    && c.seq < e.seq
                    && c.side == e.side
                    && c.name(EventField::Firm) == e.name(EventField::Firm)
                    && i128::from(e.ts.0) - i128::from(c.ts.0) <= self.params.millis("max_after_ms")
            })
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let now = history.now();
        let Some(trader) = history.trader(now).filter(|_| self.is_repeat(history, now)) else {
            return vec![];
        };
        // "min_repeat times in window"; "counted once, with its own ts".
        let window = i128::from(self.params.uint("window_days")) * 86_400_000_000_000;
        let (t, from) = (i128::from(now.ts.0), i128::from(now.ts.0) - window);
        let repeats = history
            .of_trader(trader)
            .filter(|e| i128::from(e.ts.0) > from && i128::from(e.ts.0) <= t)
            .filter(|e| self.is_repeat(history, e))
            .count() as u64;
        let key = || vec![("trader", name(names, NameKind::Trader, trader))];
        let fires = repeats >= self.params.uint("min_repeat");
        fires.then(|| NaiveAlert { ts: now.ts, key: key() }).into_iter().collect()
    }
}

fn is_deal(e: &Happened, capacity: &str) -> bool {
    e.kind == EventKind::Exec && e.text(EventField::Capacity) == Some(capacity)
}
