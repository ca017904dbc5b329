//! The payments that count, as docs/events.md words it ("Stages of a payment").

use super::{Happened, History, Id, Number, name};
use unitape_model::{Amount, Dictionary, EventField, EventKind, NameKind};

/// A payment that counts.
pub struct Transfer<'a> {
    pub event: &'a Happened,
    pub dr_acct: Option<u32>,
    pub cr_acct: Option<u32>,
    pub ccy: Option<&'a str>,
    pub amount: Amount,
}

impl Transfer<'_> {
    /// Returns the time of the payment.
    pub fn ts(&self) -> i128 {
        self.event.ts.0.into()
    }

    /// Returns the amount as a number.
    pub fn amt(&self) -> Number {
        self.amount.into()
    }
}

/// Returns the payments up to now that count, earliest first. A payment that `takes_part` refuses is none, nor is a payment
/// without an amount above zero. A transfer is remembered for `memory` nanoseconds.
pub fn transfers<'a>(
    history: &'a History,
    memory: i128,
    takes_part: impl Fn(&Transfer<'_>) -> bool,
) -> Vec<Transfer<'a>> {
    let mut payments: Vec<&Happened> = history.of_kind(EventKind::Payment).collect();
    payments.reverse();
    let mut counted: Vec<Transfer<'a>> = Vec::new();
    for event in payments {
        let Some(amount) = event.amount(EventField::Amt).filter(|amt| amt.mantissa() > 0) else { continue };
        let transfer = Transfer {
            event,
            dr_acct: event.name(EventField::DrAcct),
            cr_acct: event.name(EventField::CrAcct),
            ccy: event.text(EventField::Ccy).filter(|ccy| !ccy.is_empty()),
            amount,
        };
        // "no `stage`: each"; "`cover`, `return`, `recall`: no".
        let is_once = match event.text(EventField::Stage) {
            None => false,
            Some("initiation" | "interbank") => true,
            Some(_) => continue,
        };
        // "Once means: the first initiation or interbank event counts. A later event of either stage does not, as long as the
        // scenario remembers the first".
        let is_remembered = |first: &Transfer<'_>| {
            first.event.text(EventField::Stage).is_some()
                && first.ts() > transfer.ts() - memory
                && is_same_transfer(first, &transfer)
        };
        if takes_part(&transfer) && !(is_once && counted.iter().any(is_remembered)) {
            counted.push(transfer);
        }
    }
    counted
}

/// Implements "an event's transfer is its `uetr`. Without it, the transfer is `ref`, `dr_acct`, `cr_acct`, `ccy` and `amt`
/// together". An event with neither is a transfer of its own.
fn is_same_transfer(a: &Transfer<'_>, b: &Transfer<'_>) -> bool {
    match (id(a.event, EventField::Uetr), id(b.event, EventField::Uetr)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => {
            let reference = id(a.event, EventField::Ref);
            reference.is_some()
                && reference == id(b.event, EventField::Ref)
                && (a.dr_acct, a.cr_acct, a.ccy, a.amount) == (b.dr_acct, b.cr_acct, b.ccy, b.amount)
        }
        _ => false,
    }
}

/// Returns an id that is not empty.
pub fn id(event: &Happened, field: EventField) -> Option<&Id> {
    event.id(field).filter(|id| !matches!(id, Id::Text(text) if text.is_empty()))
}

/// Returns the name of an account.
pub fn account(names: &Dictionary, acct: Option<u32>) -> String {
    name(names, NameKind::Account, acct.unwrap_or_default())
}
