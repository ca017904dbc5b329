//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::transfers::{Transfer, account, transfers};
use crate::twin::naive::{History, NaiveAlert, Number, Twin};
use unitape_model::Dictionary;

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone() }
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let days = i128::from(self.params.uint("baseline_days"));
        let window = i128::from(self.params.uint("window_h")) * 3_600_000_000_000;
        let baseline = days * 86_400_000_000_000;
        let payments = transfers(history, window + baseline, |payment| {
            payment.dr_acct.is_some() && payment.ccy.is_some()
        });
        let is_now = |payment: &&Transfer<'_>| payment.event.seq == history.now().seq;
        let Some(now) = payments.iter().find(is_now) else { return vec![] };
        // Count and sum of the payments of the account and currency in (from, to].
        let measure = |from: i128, to: i128| {
            let of_account = || {
                payments
                    .iter()
                    .filter(|payment| (payment.dr_acct, payment.ccy) == (now.dr_acct, now.ccy))
                    .filter(|payment| payment.ts() > from && payment.ts() <= to)
            };
            (of_account().count() as i128, of_account().map(Transfer::amt).sum::<Number>())
        };
        let t = now.ts();
        let (count, sum) = measure(t - window, t);
        // "mean = payments of the account and currency in (t - window - baseline_days, t - window] / baseline_days"
        let (count_before, sum_before) = measure(t - window - baseline, t - window);
        // "no payment in the baseline: no alert".
        if count_before == 0 || count < i128::from(self.params.uint("min_count")) {
            return vec![];
        }
        // "count or sum >= mult * its mean"
        let mult = Number::billionths(self.params.nano("mult"));
        let days = Number::from(days);
        let is_fast = Number::from(count) * days.clone() >= mult.clone() * Number::from(count_before)
            || sum * days >= mult * sum_before;
        let ccy = now.ccy.unwrap_or_default().to_owned();
        let key = || vec![("acct", account(names, now.dr_acct)), ("ccy", ccy)];
        is_fast.then(|| NaiveAlert { ts: now.event.ts, key: key() }).into_iter().collect()
    }
}
