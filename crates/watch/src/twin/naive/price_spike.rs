//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{History, NaiveAlert, Number, Twin, name};
use std::collections::HashMap;
use unitape_model::{Dictionary, InstrumentId, NameKind, Price, UnixNanos};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// The last alert of each venue, instrument and direction.
    last: HashMap<(u32, InstrumentId, &'static str), UnixNanos>,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), last: HashMap::new() }
    }

    fn seconds(&self, param: &str) -> i128 {
        i128::from(self.params.uint(param)) * 1_000_000_000
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let now = history.now();
        // "On trade p": a print of its own, and "a print with no_last counts in volumes alone".
        let Some(p) = history.print_now().filter(|print| !print.no_last).map(|print| print.px) else {
            return vec![];
        };
        let (Some(instr), Some(venue)) = (now.instr, now.venue) else { return vec![] };
        // "in (t-window,t]"
        let (t, window) = (i128::from(now.ts.0), self.seconds("window_s"));
        let prices: Vec<Price> = history
            .prints_before(instr, Some(venue), now.seq + 1)
            .iter()
            .filter(|print| !print.no_last)
            .filter(|print| i128::from(print.ts.0) > t - window && i128::from(print.ts.0) <= t)
            .map(|print| print.px)
            .collect();
        // "with >= min_trades prints (including p)"
        if (prices.len() as u64) < self.params.uint("min_trades") {
            return vec![];
        }
        let (Some(min), Some(max)) = (prices.iter().min(), prices.iter().max()) else { return vec![] };
        let (p, min, max) = (Number::from(p), Number::from(*min), Number::from(*max));
        let move_bps = Number::billionths(self.params.nano("move_bps"));
        let is_move = |distance: Number, reference: Number| {
            let is_large = distance * Number::whole(10_000) >= move_bps.clone() * reference.clone();
            reference.is_positive() && is_large
        };
        // "up if (p-min)*10000>=move_bps*min; down if (max-p)*10000>=move_bps*max"; "price_spike up before down".
        let directions =
            [("up", is_move(p.clone() - min.clone(), min)), ("down", is_move(max.clone() - p, max))];
        let mut alerts = Vec::new();
        for (direction, _) in directions.into_iter().filter(|(_, is_met)| *is_met) {
            // "Separate cooldown per direction."
            let key = (venue, instr, direction);
            let cooldown = self.seconds("cooldown_s");
            if self.last.get(&key).is_some_and(|last| t < i128::from(last.0) + cooldown) {
                continue;
            }
            self.last.insert(key, now.ts);
            alerts.push(NaiveAlert {
                ts: now.ts,
                key: vec![
                    ("venue", name(names, NameKind::Venue, venue)),
                    ("instr", name(names, NameKind::Instrument, instr.0)),
                ],
            });
        }
        alerts
    }
}
