//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::transfers::{Transfer, account, transfers};
use crate::twin::naive::{History, NaiveAlert, Number, Twin};
use std::collections::HashSet;
use unitape_model::Dictionary;

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// Credits that gave their alert, by sequence.
    alerted: HashSet<u64>,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), alerted: HashSet::new() }
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let window = i128::from(self.params.uint("window_min")) * 60_000_000_000;
        let payments = transfers(history, window, |payment| {
            (payment.dr_acct.is_some() || payment.cr_acct.is_some()) && payment.ccy.is_some()
        });
        let is_now = |payment: &&Transfer<'_>| payment.event.seq == history.now().seq;
        let Some(now) = payments.iter().find(is_now).filter(|now| now.dr_acct.is_some()) else {
            return vec![];
        };
        let min_amt = Number::from(self.params.amount("min_amt"));
        let out_pct = Number::billionths(self.params.nano("out_pct"));
        let mut alerts = Vec::new();
        // "After a credit >= min_amt to account A"; "each qualifying credit is its own episode".
        for credit in &payments {
            // "debits of A in less than window_min"; "strictly less than the window".
            let is_debit = |payment: &&Transfer<'_>| {
                payment.event.seq > credit.event.seq
                    && payment.dr_acct.is_some()
                    && (payment.dr_acct, payment.ccy) == (credit.cr_acct, credit.ccy)
                    && payment.ts() - credit.ts() < window
            };
            if credit.amt() < min_amt || !is_debit(&now) {
                continue;
            }
            // "sum to >= out_pct % of it"; "one alert per credit, at the debit that reaches the sum".
            let sum: Number = payments.iter().filter(is_debit).map(Transfer::amt).sum();
            if sum * Number::from(100) >= out_pct.clone() * credit.amt()
                && self.alerted.insert(credit.event.seq)
            {
                let ccy = now.ccy.unwrap_or_default().to_owned();
                let key = vec![("acct", account(names, now.dr_acct)), ("ccy", ccy)];
                alerts.push(NaiveAlert { ts: now.event.ts, key });
            }
        }
        alerts
    }
}
