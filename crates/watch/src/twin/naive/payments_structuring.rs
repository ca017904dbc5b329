//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::transfers::{Transfer, account, transfers};
use crate::twin::naive::{History, NaiveAlert, Number, Twin};
use std::collections::HashMap;
use unitape_model::{Dictionary, UnixNanos};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// The last alert of each account and currency.
    last: HashMap<(Option<u32>, String), UnixNanos>,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), last: HashMap::new() }
    }

    /// Implements "threshold*(1-band) <= amt < threshold".
    fn is_in_band(&self, payment: &Transfer<'_>) -> bool {
        let hundred = || Number::from(100);
        let threshold = || Number::from(self.params.amount("threshold"));
        let band_pct = Number::billionths(self.params.nano("band_pct"));
        threshold() * (hundred() - band_pct) <= payment.amt() * hundred() && payment.amt() < threshold()
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let hour = 3_600_000_000_000;
        let window = i128::from(self.params.uint("window_h")) * hour;
        let payments =
            transfers(history, window, |payment| payment.dr_acct.is_some() && payment.ccy.is_some());
        let is_now = |payment: &&Transfer<'_>| payment.event.seq == history.now().seq;
        let Some(now) = payments.iter().find(is_now).filter(|now| self.is_in_band(now)) else {
            return vec![];
        };
        // "Payments of one debtor account+currency ... in (t-window,t]".
        let in_window: Vec<_> = payments
            .iter()
            .filter(|payment| (payment.dr_acct, payment.ccy) == (now.dr_acct, now.ccy))
            .filter(|payment| self.is_in_band(payment))
            .filter(|payment| payment.ts() > now.ts() - window && payment.ts() <= now.ts())
            .collect();
        // "fire when count>=min_count and sum>=threshold".
        let sum: Number = in_window.iter().map(|payment| payment.amt()).sum();
        let ccy = now.ccy.unwrap_or_default().to_owned();
        if (in_window.len() as u64) < self.params.uint("min_count")
            || sum < Number::from(self.params.amount("threshold"))
        {
            return vec![];
        }
        // "alert allowed again at last+cooldown"
        let cooldown = i128::from(self.params.uint("cooldown_h")) * hour;
        let key = (now.dr_acct, ccy.clone());
        if self.last.get(&key).is_some_and(|last| now.ts() < i128::from(last.0) + cooldown) {
            return vec![];
        }
        self.last.insert(key, now.event.ts);
        vec![NaiveAlert {
            ts: now.event.ts,
            key: vec![("dr_acct", account(names, now.dr_acct)), ("ccy", ccy)],
        }]
    }
}
