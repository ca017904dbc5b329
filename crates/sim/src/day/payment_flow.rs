//! Payments: a background that no scenario could call structuring, and the structuring scenes.

use super::config::SimConfig;
use super::event::{DayEventBody, Payment};
use super::exchange::SimulatedVenues;
use super::scenes::StructuringScene;
use super::truth::{AlertLabel, LabelSet, NearMiss};
use super::world::SimulatedMarket;
use crate::rng::Rng;

/// Just under the reporting threshold, in hundredths: where three payments of an account in a currency would be structuring.
const BAND: std::ops::Range<i64> = 800_000..1_000_000;
const CURRENCIES: [&str; 4] = ["USD", "EUR", "GBP", "CHF"];

/// Payments of the day.
#[derive(Debug)]
pub(crate) struct PaymentGenerator {
    pub structuring: Vec<StructuringScene>,
    /// Accounts of the background; the accounts of the scenes follow them.
    accounts: u32,
    /// Payments in the band so far, by account of the background and currency.
    in_band: Vec<[u8; CURRENCIES.len()]>,
    number: u64,
}

impl PaymentGenerator {
    pub fn new(
        config: &SimConfig,
        scenes: &[(u32, bool, usize)],
        world: &mut SimulatedMarket,
        rng: &mut Rng,
    ) -> PaymentGenerator {
        let accounts = (config.payments / 8).clamp(20, 100_000);
        world.add_pay_accounts(accounts + scenes.len() as u32);
        let scene = |(index, &(number, miss, n)): (usize, &(u32, bool, usize))| {
            StructuringScene::new(number, miss, n, accounts + index as u32, rng)
        };
        let structuring = scenes.iter().enumerate().map(scene).collect();
        PaymentGenerator {
            structuring,
            accounts,
            in_band: vec![Default::default(); accounts as usize],
            number: 0,
        }
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

    /// Makes the next payment of a scene.
    pub fn structure(&mut self, n: usize, x: &mut SimulatedVenues, labels: &mut LabelSet) {
        let scene = &self.structuring[n];
        let (debtor, (ccy, cents)) = (scene.debtor, scene.parts[scene.made]);
        let creditor = (debtor.wrapping_mul(2_654_435_761)) % self.accounts;
        self.pay(x, false, debtor, creditor, ccy, cents);
        let (seq, ts) = (x.seq, x.now);
        let scene = &mut self.structuring[n];
        scene.made += 1;
        if scene.made == 1 {
            scene.first_seq = seq;
        }
        let (scenario, key, first_seq) = (StructuringScene::id(), scene.key(&x.world), scene.first_seq);
        if scene.fires_at() == Some(scene.made) {
            let label = AlertLabel {
                scene: scene.scene,
                scenario,
                key,
                reason: None,
                ts,
                first_seq,
                trigger_seq: seq,
            };
            labels.labels.push(label);
        } else if let Some(miss_reason) = scene.miss.filter(|_| scene.made == scene.parts.len()) {
            labels.near_misses.push(NearMiss {
                scene: scene.scene,
                scenario,
                key,
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
