//! The tables of the scenes of payments. Amounts are in hundredths.

use super::super::config::S;
use super::super::market::ListEntry;
use super::Scenario;
use super::payment_script::{PaymentKeyPart, PaymentSceneDefinition, PaymentScript};
use unitape_model::NameKind;

/// Returns the definition of a scenario of payments.
pub(super) fn definition_of(scenario: Scenario) -> &'static PaymentSceneDefinition {
    DEFINITIONS
        .into_iter()
        .find(|definition| definition.scenario == scenario)
        .unwrap_or_else(|| panic!("{} is not of payments", scenario.id()))
}

const DEFINITIONS: [&PaymentSceneDefinition; 5] = [&STRUCTURING, &PASSTHROUGH, &SANCTIONS, &VELOCITY, &ROUND];

/// A sum is paid in parts that stay just under the reporting threshold.
const STRUCTURING: PaymentSceneDefinition = PaymentSceneDefinition {
    scenario: Scenario::PaymentsStructuring,
    key: &[PaymentKeyPart::Debtor, PaymentKeyPart::Currency],
    misses: &[FEW_PARTS, OUTSIDE, THIRD_CURRENCY],
    accounts: 1,
    write: write_structuring,
};

const FEW_PARTS: &str = "one payment fewer than min_count";
const OUTSIDE: &str = "all others just outside the band";
const THIRD_CURRENCY: &str = "the third is in another currency";

fn write_structuring(script: &mut PaymentScript<'_>) {
    let n = script.planned.n;
    let [ccy, other_ccy] = if n.is_multiple_of(2) { ["USD", "EUR"] } else { ["EUR", "USD"] };
    script.set_currency(ccy);
    let count = match (script.is_miss(), n % 3) {
        (false, 2) => 0,
        (false, odd) => 3 + odd,
        (true, _) => 2,
    };
    let mut parts: Vec<_> = (0..count).map(|_| (ccy, script.rng.between(800_000, 999_999))).collect();
    match count {
        0 => parts.extend([(ccy, 800_000), (ccy, 999_999), (ccy, 800_000)]),
        _ if script.misses(OUTSIDE) => parts.extend([(ccy, 799_999), (ccy, 1_000_000), (ccy, 1_000_001)]),
        _ if script.misses(THIRD_CURRENCY) => parts.push((other_ccy, 900_000)),
        _ => {}
    }
    for (number, (ccy, cents)) in parts.into_iter().enumerate() {
        script.pay_somebody(ccy, cents);
        if number == 2 {
            script.fires();
        }
    }
}

/// Money leaves an account within the hour after it came.
const PASSTHROUGH: PaymentSceneDefinition = PaymentSceneDefinition {
    scenario: Scenario::PaymentsPassthrough,
    key: &[PaymentKeyPart::Account, PaymentKeyPart::Currency],
    misses: &[SMALL_CREDIT, SHORT, LATE_DEBIT, DEBIT_CURRENCY],
    accounts: 3,
    write: write_passthrough,
};

const SMALL_CREDIT: &str = "the credit is a cent below min_amt";
const SHORT: &str = "the debits are a cent short of out_pct";
const LATE_DEBIT: &str = "the last debit comes exactly window_min after the credit";
const DEBIT_CURRENCY: &str = "the last debit is in another currency";

/// The length of a scene of pass-through.
pub(super) const PASSTHROUGH_NS: u64 = 3_600 * S;

fn write_passthrough(script: &mut PaymentScript<'_>) {
    let (ccy, other_ccy) = currencies(script);
    script.set_currency(ccy);
    let credit = match script.is_edge() || script.misses(SMALL_CREDIT) {
        true => 5_000_000 - i64::from(script.misses(SMALL_CREDIT)),
        false => script.rng.between(5_000_000, 90_000_000),
    };
    let least = (credit * 90 + 99) / 100;
    let total = match script.is_edge() || script.is_miss() {
        true => least - i64::from(script.misses(SHORT)),
        false => script.rng.between(least, credit),
    };
    script.begin(PASSTHROUGH_NS);
    let end = script.ts() + PASSTHROUGH_NS;
    script.pay(1, 0, credit);
    let parts = script.rng.between(2, 3);
    for part in 1..parts {
        script.pause(60_000, 1_500_000);
        script.pay(0, 2, total / parts + part);
    }
    script.pause(60_000, 500_000);
    if script.is_edge() || script.misses(LATE_DEBIT) {
        script.wait_until(end - u64::from(!script.is_miss()));
    }
    let rest = total - (1..parts).map(|part| total / parts + part).sum::<i64>();
    script.pay_in(if script.misses(DEBIT_CURRENCY) { other_ccy } else { ccy }, 0, 2, rest);
    script.fires();
}

/// A payment names a listed party, or a bank in a blocked country.
const SANCTIONS: PaymentSceneDefinition = PaymentSceneDefinition {
    scenario: Scenario::PaymentsSanctions,
    key: &[PaymentKeyPart::Reference],
    misses: &[COUNTRY, WORD, LONGER, ENDED, EARLY],
    accounts: 2,
    write: write_sanctions,
};

const COUNTRY: &str = "the letters of the country are the first of the BIC";
const WORD: &str = "the name lacks a word of the listed name";
const LONGER: &str = "a word of the name has a letter more";
const ENDED: &str = "the entry ends as the payment comes";
const EARLY: &str = "the entry begins a nanosecond after the payment";

fn write_sanctions(script: &mut PaymentScript<'_>) {
    let (ccy, _) = currencies(script);
    script.set_currency(ccy);
    let (number, n) = (script.planned.number, script.planned.n);
    let is_creditor = script.rng.one_in(2);
    let account = script.account(is_creditor.into());
    let cents = script.rng.between(10_000, 700_000);
    script.begin(60 * S);
    if script.misses(COUNTRY) || !script.is_miss() && n.is_multiple_of(2) {
        let bic = if script.is_miss() { "KPZZGB2L" } else { "ZZQQKP2L" };
        script.world.set_pay_party(account, format!("QUARRY MILL {number}"), bic.to_owned());
        script.pay(0, 1, cents);
        return script.fires();
    }
    let name = match () {
        () if script.misses(WORD) => format!("Salt {number}, Lantern"),
        () if script.misses(LONGER) => format!("Salt {number}, Lanterns Harbour"),
        () => format!("Salt {number}, Lantern-Harbour Gmbh"),
    };
    let bic = super::super::names::bic(account);
    script.world.set_pay_party(account, name, bic);
    let party = script.world.name(NameKind::Owner, &format!("HARBOUR LANTERN SALT {number} CO. LTD"));
    script.world.name(NameKind::Name, "sanctions");
    let listed_ts = script.ts();
    script.pause(1_000, 60_000);
    let ts = script.ts();
    let (from, to) = match () {
        () if script.misses(ENDED) => (listed_ts, Some(ts)),
        () if script.misses(EARLY) => (ts + 1, None),
        () if script.rng.one_in(2) => (ts, Some(ts + 1)),
        () => (listed_ts, None),
    };
    script.wait_until(listed_ts);
    script.list(ListEntry::Sanctioned { party, from, to });
    script.wait_until(ts);
    script.pay(0, 1, cents);
    script.fires();
}

/// An account pays far more often, or far more, than in the weeks before.
const VELOCITY: PaymentSceneDefinition = PaymentSceneDefinition {
    scenario: Scenario::PaymentsVelocity,
    key: &[PaymentKeyPart::Account, PaymentKeyPart::Currency],
    misses: &[FEW_PAYMENTS, MEAN, BASELINE],
    accounts: 2,
    write: write_velocity,
};

const FEW_PAYMENTS: &str = "one payment fewer than min_count in the window";
const MEAN: &str = "one payment and a cent short of mult times the mean";
const BASELINE: &str = "the earlier payments are in another currency";

fn write_velocity(script: &mut PaymentScript<'_>) {
    let (ccy, other_ccy) = currencies(script);
    script.set_currency(ccy);
    let count = match () {
        () if script.misses(FEW_PAYMENTS) => 9,
        () if script.is_edge() || script.is_miss() => 10,
        () => script.rng.between(10, 12),
    };
    // An odd number of hundredths is no round amount.
    let amounts: Vec<i64> = (0..count).map(|_| script.rng.between(10_000, 500_000) | 1).collect();
    // Of the thirty days, six times the payments and the sum of the window are a fifth a day.
    let sum_max = 6 * amounts.iter().sum::<i64>();
    let is_by_sum = script.rng.one_in(2);
    let baseline: Vec<i64> = match () {
        () if script.misses(MEAN) => shares(sum_max + 1, 61),
        () if script.is_edge() && is_by_sum => shares(sum_max, 61),
        () if script.is_edge() => shares(sum_max + 60, 60),
        () => (0..script.rng.between(1, 5)).map(|_| script.rng.between(10_000, 500_000) | 1).collect(),
    };
    // The first halves of both days are for the earlier payments, so that these are a window old.
    let half_ns = script.planned.span_ns / 2;
    let baseline_ccy = if script.misses(BASELINE) { other_ccy } else { ccy };
    script.begin_day_before(half_ns / 4);
    let (start_ts, step_ns) = (script.ts(), half_ns / 2 / baseline.len() as u64);
    for (number, cents) in baseline.into_iter().enumerate() {
        script.wait_until(start_ts + number as u64 * step_ns);
        script.pay_in(baseline_ccy, 0, 1, cents);
    }
    script.begin_after(half_ns, half_ns / 2);
    let (start_ts, step_ns) = (script.ts(), half_ns / 4 / amounts.len() as u64);
    for (number, cents) in amounts.into_iter().enumerate() {
        script.wait_until(start_ts + number as u64 * step_ns);
        script.pay(0, 1, cents);
        if number >= 9 {
            script.fires();
        }
    }
}

/// Splits a sum into amounts that are nearly equal, and not all round.
fn shares(sum: i64, count: i64) -> Vec<i64> {
    let mut shares: Vec<i64> = (1..count).map(|n| sum / count + [1, -1][n as usize % 2]).collect();
    shares.push(sum - shares.iter().sum::<i64>());
    shares
}

/// Most payments of an account are multiples of a round sum.
const ROUND: PaymentSceneDefinition = PaymentSceneDefinition {
    scenario: Scenario::PaymentsRound,
    key: &[PaymentKeyPart::Account],
    misses: &[FEW_ROUND, SHARE, CENT],
    accounts: 2,
    write: write_round,
};

const FEW_ROUND: &str = "one payment fewer than min_count";
const SHARE: &str = "seven of nine are round, less than 80 %";
const CENT: &str = "one of five amounts is a cent more";

fn write_round(script: &mut PaymentScript<'_>) {
    let (odd_count, count) = match () {
        () if script.misses(FEW_ROUND) => (0, 4),
        () if script.misses(SHARE) => (2, 7),
        // Eight of ten are exactly the share.
        () if script.is_edge() => (2, 8),
        () if script.is_miss() => (0, 5),
        () => (0, script.rng.between(5, 7)),
    };
    script.begin(100 * S);
    for number in 0..odd_count + count {
        // Never in the band of structuring.
        let thousands = script.rng.pick(&[1, 2, 3, 5, 7, 12, 20, 35, 50]);
        let is_odd = number < odd_count || script.misses(CENT) && number == 2;
        let (ccy, _) = currencies(script);
        script.pay_in(ccy, 0, 1, thousands * 100_000 + i64::from(is_odd));
        if (number - odd_count >= 4) && (number + 1 - odd_count) * 5 >= (number + 1) * 4 {
            script.fires();
        }
        script.pause(1_000, 9_000);
    }
}

/// Draws two currencies.
fn currencies(script: &mut PaymentScript<'_>) -> (&'static str, &'static str) {
    const PAIRS: [(&str, &str); 4] = [("USD", "EUR"), ("EUR", "GBP"), ("GBP", "CHF"), ("CHF", "USD")];
    script.rng.pick(&PAIRS)
}
