//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::transfers::{Transfer, account, transfers};
use crate::twin::naive::{History, NaiveAlert, Twin};
use unitape_model::{Amount, Dictionary};

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
        let window = i128::from(self.params.uint("window_days")) * 86_400_000_000_000;
        // "acct is the debtor's, all currencies".
        let payments = transfers(history, window, |payment| payment.dr_acct.is_some());
        // "tested at every payment of the account".
        let is_now = |payment: &&Transfer<'_>| payment.event.seq == history.now().seq;
        let Some(now) = payments.iter().find(is_now) else { return vec![] };
        let in_window: Vec<_> = payments
            .iter()
            .filter(|payment| payment.dr_acct == now.dr_acct)
            .filter(|payment| payment.ts() > now.ts() - window && payment.ts() <= now.ts())
            .collect();
        // "min_count payments with amt % round_to == 0 from one account in window, >= 80 % of its payments".
        let round_to = self.params.uint("round_to");
        let round = in_window.iter().filter(|payment| is_multiple(payment.amount, round_to)).count() as u64;
        let is_usual = round * 100 >= 80 * in_window.len() as u64;
        let fires = round >= self.params.uint("min_count") && is_usual;
        let key = || vec![("acct", account(names, now.dr_acct))];
        fires.then(|| NaiveAlert { ts: now.event.ts, key: key() }).into_iter().collect()
    }
}

/// Implements "amt % round_to == 0". Nothing is a multiple of zero.
fn is_multiple(amt: Amount, round_to: u64) -> bool {
    // An amount has no zeros at the end of its mantissa: with places, it is no whole number.
    if round_to == 0 || amt.exponent() < 0 {
        return false;
    }
    let mut rest = amt.mantissa() % i128::from(round_to);
    for _ in 0..amt.exponent() {
        rest = rest * 10 % i128::from(round_to);
    }
    rest == 0
}
