//! Payments: a background that no scenario could call structuring, and the scenes of payments.

use super::config::SimConfig;
use super::event::{DayEventBody, Payment};
use super::exchange::SimulatedVenues;
use super::scenes::{PaymentAction, PaymentScene, PlannedPayments, Transfer};
use super::truth::{AlertLabel, LabelSet, NearMiss};
use super::world::SimulatedMarket;
use crate::rng::Rng;

/// Just under the reporting threshold, in hundredths: where three payments of an account in a currency would be structuring.
const BAND: std::ops::Range<i64> = 800_000..1_000_000;
const CURRENCIES: [&str; 4] = ["USD", "EUR", "GBP", "CHF"];

/// Payments of the day.
#[derive(Debug)]
pub(crate) struct PaymentGenerator {
    pub scenes: Vec<PaymentScene>,
    /// Accounts of the background; the accounts of the scenes follow them.
    accounts: u32,
    /// Payments in the band so far, by account of the background and currency.
    in_band: Vec<[u8; CURRENCIES.len()]>,
    number: u64,
}

impl PaymentGenerator {
    pub fn new(
        config: &SimConfig,
        planned: &[PlannedPayments],
        world: &mut SimulatedMarket,
        rng: &mut Rng,
    ) -> PaymentGenerator {
        let accounts = (config.payments / 8).clamp(20, 100_000);
        world.add_pay_accounts(accounts);
        let scenes = planned.iter().map(|planned| PaymentScene::new(planned, accounts, world, rng)).collect();
        PaymentGenerator { scenes, accounts, in_band: vec![Default::default(); accounts as usize], number: 0 }
    }

    /// Makes a background payment: most sums are small, some are large, some are between banks.
    pub fn background_payment(&mut self, x: &mut SimulatedVenues, rng: &mut Rng) {
        let between_banks = rng.one_in(6);
        let debtor = rng.below(self.accounts.into()) as u32;
        let creditor = self.creditor(debtor, rng);
        let ccy = rng.below(CURRENCIES.len() as u64) as usize;
        let digits = rng.between(3, if between_banks { 11 } else { 8 }) as u32;
        let mut cents = rng.between(10i64.pow(digits), 10i64.pow(digits + 1) - 1);
        if BAND.contains(&cents) {
            let band_count = &mut self.in_band[debtor as usize][ccy];
            *band_count += 1;
            if *band_count > 2 {
                cents += BAND.end - BAND.start;
            }
        }
        self.pay(x, between_banks, debtor, creditor, CURRENCIES[ccy], cents);
    }

    /// Plays the next step of a scene.
    pub fn play_step(&mut self, n: usize, x: &mut SimulatedVenues, labels: &mut LabelSet) {
        let scene = &self.scenes[n];
        let step = scene.steps[scene.position];
        match step.action {
            PaymentAction::Transfer(transfer) => {
                let Transfer { debtor, creditor, ccy, cents } = transfer;
                self.pay(x, false, debtor, creditor, ccy, cents);
            }
            PaymentAction::List(entry) => x.emit(DayEventBody::List(entry)),
        }
        let (seq, ts, number) = (x.seq, x.now, self.number);
        let scene = &mut self.scenes[n];
        if scene.begins() {
            scene.first_seq = seq;
        }
        scene.position += 1;
        let (scenario, first_seq) = (scene.scenario.id(), scene.first_seq);
        if step.fires {
            labels.labels.push(AlertLabel {
                scene: scene.number,
                scenario,
                key: scene.key(&x.world, number),
                reason: None,
                ts,
                first_seq,
                trigger_seq: seq,
            });
        } else if let Some(miss_reason) = scene.miss.filter(|_| scene.position == scene.steps.len()) {
            labels.near_misses.push(NearMiss {
                scene: scene.number,
                scenario,
                key: scene.key(&x.world, number),
                misses: miss_reason,
                first_seq,
                trigger_seq: None,
                last_seq: seq,
            });
        }
    }

    fn creditor(&self, debtor: u32, rng: &mut Rng) -> u32 {
        (debtor + 1 + rng.below(u64::from(self.accounts) - 1) as u32) % self.accounts
    }

    fn pay(
        &mut self,
        x: &mut SimulatedVenues,
        between_banks: bool,
        debtor: u32,
        creditor: u32,
        ccy: &'static str,
        cents: i64,
    ) {
        self.number += 1;
        let payment = Payment { number: self.number, between_banks, debtor, creditor, ccy, cents };
        x.emit(DayEventBody::Payment(payment));
    }
}
