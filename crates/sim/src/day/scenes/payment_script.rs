//! Scenes of payments: a table of steps that a scene plays at their times.
//!
//! The accounts of a scene do nothing else. A script may reach back into the trading day before: the watch compares some
//! payments with earlier ones.

use super::super::config::{DAY_NS, S};
use super::super::market::{ListEntry, date_of};
use super::super::truth::AlertLabelKey;
use super::super::world::SimulatedMarket;
use super::payments::definition_of;
use super::{MS, Scenario};
use crate::rng::Rng;

/// The scenes of a scenario of payments.
pub(crate) struct PaymentSceneDefinition {
    pub scenario: Scenario,
    /// The key of the alert.
    pub key: &'static [PaymentKeyPart],
    /// The near misses, each by its reason.
    pub misses: &'static [&'static str],
    /// The number of accounts that only the scene has; the first is that of the alert.
    pub accounts: u32,
    /// Writes the script.
    pub write: fn(&mut PaymentScript<'_>),
}

/// A part of the key of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaymentKeyPart {
    /// The account of the scene, as `acct`.
    Account,
    /// The account of the scene, as `dr_acct`.
    Debtor,
    Currency,
    /// The reference of the last payment.
    Reference,
}

/// A scene of payments in the plan of a day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlannedPayments {
    /// The number of the scene among all scenes.
    pub number: u32,
    pub scenario: Scenario,
    pub miss: bool,
    /// The number of the scene among those of its kind.
    pub n: usize,
    /// Start of the day, nanoseconds since the epoch, and its length.
    pub start_ns: u64,
    pub span_ns: u64,
}

/// A payment scene.
#[derive(Debug, Clone)]
pub(crate) struct PaymentScene {
    pub number: u32,
    pub scenario: Scenario,
    /// The reason of a near miss.
    pub miss: Option<&'static str>,
    pub steps: Vec<PaymentStep>,
    /// The index of the next step.
    pub position: usize,
    /// The first event on the day of the scene.
    pub first_seq: u64,
    start_ns: u64,
    key: &'static [PaymentKeyPart],
    account: u32,
    ccy: &'static str,
}

/// A step of a payment scene.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PaymentStep {
    /// Nanoseconds since the epoch; `None` for any time of the day.
    pub ts: Option<u64>,
    pub action: PaymentAction,
    /// Whether the step completes a label.
    pub fires: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum PaymentAction {
    Transfer(Transfer),
    List(ListEntry),
}

/// A transfer between two accounts, by their indices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub debtor: u32,
    pub creditor: u32,
    pub ccy: &'static str,
    /// Amount in hundredths.
    pub cents: i64,
}

impl PaymentScene {
    /// Writes the script of a planned scene. `background` is the number of accounts of the background.
    pub fn new(
        planned: &PlannedPayments,
        background: u32,
        world: &mut SimulatedMarket,
        rng: &mut Rng,
    ) -> PaymentScene {
        let definition = definition_of(planned.scenario);
        let account = world.pay_accounts;
        world.add_pay_accounts(definition.accounts);
        let scene = PaymentScene {
            number: planned.number,
            scenario: planned.scenario,
            miss: planned.miss.then(|| definition.misses[planned.n % definition.misses.len()]),
            steps: Vec::new(),
            position: 0,
            first_seq: 0,
            start_ns: planned.start_ns,
            key: definition.key,
            account,
            ccy: "USD",
        };
        let mut script = PaymentScript { planned: *planned, scene, ts: None, background, world, rng };
        (definition.write)(&mut script);
        script.scene
    }

    /// Returns whether the next step is the first on the day of the scene.
    pub fn begins(&self) -> bool {
        let first = self.steps.iter().position(|step| step.ts.is_none_or(|ts| ts >= self.start_ns));
        first == Some(self.position)
    }

    /// Makes the key of the alert; `number` is that of the last payment.
    pub fn key(&self, world: &SimulatedMarket, number: u64) -> AlertLabelKey {
        let part = |part: &PaymentKeyPart| match part {
            PaymentKeyPart::Account => ("acct", world.pay_account(self.account).to_owned()),
            PaymentKeyPart::Debtor => ("dr_acct", world.pay_account(self.account).to_owned()),
            PaymentKeyPart::Currency => ("ccy", self.ccy.to_owned()),
            PaymentKeyPart::Reference => ("ref", super::super::names::payment_text(number)),
        };
        AlertLabelKey(self.key.iter().map(part).collect())
    }
}

/// A script under way.
pub(crate) struct PaymentScript<'a> {
    pub planned: PlannedPayments,
    pub world: &'a mut SimulatedMarket,
    pub rng: &'a mut Rng,
    scene: PaymentScene,
    /// The time of the next step; `None` for any time of the day.
    ts: Option<u64>,
    background: u32,
}

impl PaymentScript<'_> {
    /// Returns whether the scene is the near miss with this reason.
    pub fn misses(&self, reason: &str) -> bool {
        self.scene.miss == Some(reason)
    }

    /// Returns whether the scene is a near miss.
    pub fn is_miss(&self) -> bool {
        self.scene.miss.is_some()
    }

    /// Returns whether the scene fires at the threshold itself and not inside. Never in a near miss.
    pub fn is_edge(&self) -> bool {
        !self.is_miss() && self.planned.n % 2 == 1
    }

    /// Returns an account of the scene by its number; that of the alert is 0.
    pub fn account(&self, number: u32) -> u32 {
        self.scene.account + number
    }

    /// Chooses the currency of the scene.
    pub fn set_currency(&mut self, ccy: &'static str) {
        self.scene.ccy = ccy;
    }

    /// Begins at a time of the day from which the scene has `long_ns` left.
    pub fn begin(&mut self, long_ns: u64) {
        self.begin_after(0, long_ns);
    }

    /// Begins at a time that is later than `after_ns` into the day and leaves the scene `long_ns`.
    pub fn begin_after(&mut self, after_ns: u64, long_ns: u64) {
        let room = self.planned.span_ns.checked_sub(after_ns + long_ns + S).expect("the day is long enough");
        self.ts = Some(self.planned.start_ns + after_ns + S + self.rng.below(room.max(1)));
    }

    /// Begins `after_ns` into the trading day before.
    pub fn begin_day_before(&mut self, after_ns: u64) {
        let mut start_ns = self.planned.start_ns - DAY_NS;
        while date_of(start_ns).is_weekend() {
            start_ns -= DAY_NS;
        }
        self.ts = Some(start_ns + after_ns);
    }

    /// Returns the time of the next step. A script of one time must have begun.
    pub fn ts(&self) -> u64 {
        self.ts.expect("the script has begun")
    }

    /// Moves the next step to a time.
    pub fn wait_until(&mut self, ts: u64) {
        self.ts = Some(ts);
    }

    /// Lets a random time pass before the next step.
    pub fn pause(&mut self, low_ms: i64, high_ms: i64) {
        let pause_ns = self.rng.between(low_ms, high_ms) as u64 * MS;
        self.wait_until(self.ts() + pause_ns);
    }

    /// Pays from an account of the scene, in the scene's currency, to another account of the scene.
    pub fn pay(&mut self, debtor: u32, creditor: u32, cents: i64) {
        self.pay_in(self.scene.ccy, debtor, creditor, cents);
    }

    /// Pays in another currency.
    pub fn pay_in(&mut self, ccy: &'static str, debtor: u32, creditor: u32, cents: i64) {
        let (debtor, creditor) = (self.account(debtor), self.account(creditor));
        self.push(PaymentAction::Transfer(Transfer { debtor, creditor, ccy, cents }));
    }

    /// Pays from the account of the alert to an account of the background.
    pub fn pay_somebody(&mut self, ccy: &'static str, cents: i64) {
        let debtor = self.account(0);
        let creditor = debtor.wrapping_mul(2_654_435_761) % self.background;
        self.push(PaymentAction::Transfer(Transfer { debtor, creditor, ccy, cents }));
    }

    /// Adds an entry to a list.
    pub fn list(&mut self, entry: ListEntry) {
        self.push(PaymentAction::List(entry));
    }

    /// Marks the last step: it completes a label, unless the scene is a near miss.
    pub fn fires(&mut self) {
        let is_label = !self.is_miss();
        self.scene.steps.last_mut().expect("a mark follows its step").fires = is_label;
    }

    fn push(&mut self, action: PaymentAction) {
        self.scene.steps.push(PaymentStep { ts: self.ts, action, fires: false });
    }
}
