//! Structuring: a sum is paid in parts that stay just under the reporting threshold.

use super::super::world::SimulatedMarket;
use super::Scenario;
use crate::rng::Rng;

/// Payments that one debtor has to make, and their kind.
#[derive(Debug, Clone)]
pub(crate) struct StructuringScene {
    /// Number of the scene.
    pub scene: u32,
    /// Why it misses.
    pub miss: Option<&'static str>,
    /// Index of the debtor's account.
    pub debtor: u32,
    /// Currency and hundredths of each payment.
    pub parts: Vec<(&'static str, i64)>,
    /// The number of payments made.
    pub made: usize,
    /// First event.
    pub first_seq: u64,
}

impl StructuringScene {
    pub fn new(scene: u32, miss: bool, n: usize, debtor: u32, rng: &mut Rng) -> StructuringScene {
        let ccy = ["USD", "EUR"][n % 2];
        let mut inside = |n: usize| (0..n).map(|_| (ccy, rng.between(800_000, 999_999))).collect::<Vec<_>>();
        let (miss, parts) = match (miss, n % 3) {
            (false, 2) => (None, vec![(ccy, 800_000), (ccy, 999_999), (ccy, 800_000)]),
            (false, odd) => (None, inside(3 + odd)),
            (true, 0) => (Some("one payment fewer than min_count"), inside(2)),
            (true, 1) => {
                let mut parts = inside(2);
                parts.extend([(ccy, 799_999), (ccy, 1_000_000), (ccy, 1_000_001)]);
                (Some("all others just outside the band"), parts)
            }
            (true, _) => {
                let mut parts = inside(2);
                parts.push((if ccy == "USD" { "EUR" } else { "USD" }, 900_000));
                (Some("the third is in another currency"), parts)
            }
        };
        StructuringScene { scene, miss, debtor, parts, made: 0, first_seq: 0 }
    }

    /// Returns the number of the payment that completes the scene: the third. Returns `None` for a near miss.
    pub fn fires_at(&self) -> Option<usize> {
        self.miss.is_none().then_some(3)
    }

    /// Returns the id of the scenario.
    pub fn id() -> &'static str {
        Scenario::PaymentsStructuring.id()
    }

    /// Returns the key of the alert.
    pub fn key(&self, world: &SimulatedMarket) -> super::super::truth::AlertLabelKey {
        let account = world.pay_account(self.debtor).to_owned();
        super::super::truth::AlertLabelKey(vec![("dr_acct", account), ("ccy", self.parts[0].0.to_owned())])
    }
}
