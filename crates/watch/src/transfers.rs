//! Payments that count: each transfer once, whatever stages of it are reported (docs/events.md, "Stages of a payment").
//!
//! ```text
//!  initiation U1   interbank U1   interbank U1        cover, return, recall   no stage
//!  counts          remembered     counts again,       never count             each counts
//!                                 a memory later
//! ```
//!
//! A transfer is its `uetr`, or else `ref`, `dr_acct`, `cr_acct`, `ccy` and `amt` together. A payment with neither `uetr` nor
//! `ref` is a transfer of its own. A transfer is kept for two memories, so that an event that is one memory late finds it.

use crate::ids::{IdKey, field_text, name_id};
use crate::missing::MissingValue;
use crate::state::{state_value, watch_state};
use crate::table::{BoundedTable, EntryRank};
use crate::watch::{ScenarioInput, ScenarioMetrics, ScenarioOutput};
use unitape_model::{Amount, Event, EventField, EventValue, NameKind, UnixNanos};

/// Transfers kept at most; the oldest is forgotten first.
const TRANSFERS_MAX: usize = 1 << 20;

/// A payment of a stage that can count, with an amount above zero.
#[derive(Clone, Copy)]
pub(crate) struct Payment {
    /// The account of the debtor, or 0.
    pub dr_acct: u32,
    /// The account of the creditor, or 0.
    pub cr_acct: u32,
    /// The key of the currency, or [`IdKey::NONE`].
    pub ccy: IdKey,
    pub amt: Amount,
    transfer: Option<TransferKey>,
}

/// What the stages of one transfer have in common. With a `uetr`, the other fields are zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct TransferKey {
    uetr: IdKey,
    reference: IdKey,
    dr_acct: u32,
    cr_acct: u32,
    ccy: IdKey,
    amt: Amount,
}

state_value!(TransferKey { uetr, reference, dr_acct, cr_acct, ccy, amt });

impl TransferKey {
    fn of_uetr(uetr: IdKey) -> Self {
        let (reference, ccy, amt) = (IdKey::NONE, IdKey::NONE, Amount::default());
        Self { uetr, reference, dr_acct: 0, cr_acct: 0, ccy, amt }
    }
}

impl Payment {
    /// Reads a payment. Returns `None` if its stage does not count, or if it has no amount above zero: then counts the amount
    /// as missing.
    pub fn read(event: &Event<'_>, out: &mut ScenarioOutput<'_>) -> Option<Self> {
        let is_once = match field_text(event, EventField::Stage, &mut [0; 36]) {
            None => false,
            Some("initiation" | "interbank") => true,
            Some(_) => return None,
        };
        let amt = match event.field(EventField::Amt, &mut [0; 36]) {
            Some(EventValue::Amount(amt)) if amt.mantissa() > 0 => amt,
            _ => {
                out.missing(MissingValue::Field(EventField::Amt));
                return None;
            }
        };
        let (dr_acct, cr_acct) = (name_id(event, EventField::DrAcct), name_id(event, EventField::CrAcct));
        let ccy = match field_text(event, EventField::Ccy, &mut [0; 36]) {
            None | Some("") => IdKey::NONE,
            Some(ccy) => IdKey::of_text(ccy),
        };
        let full_id = |field| IdKey::read(event, field).filter(|id| *id != IdKey::of_text(""));
        let transfer = || {
            if let Some(uetr) = full_id(EventField::Uetr) {
                return Some(TransferKey::of_uetr(uetr));
            }
            let reference = full_id(EventField::Ref)?;
            Some(TransferKey { uetr: IdKey::NONE, reference, dr_acct, cr_acct, ccy, amt })
        };
        let transfer = if is_once { transfer() } else { None };
        Some(Self { dr_acct, cr_acct, ccy, amt, transfer })
    }

    /// Returns the key of debtor account and currency. Counts the first that is missing.
    pub fn debtor(&self, out: &mut ScenarioOutput<'_>) -> Option<(u32, IdKey)> {
        if self.dr_acct == 0 {
            out.missing(MissingValue::Field(EventField::DrAcct));
        } else if self.ccy == IdKey::NONE {
            out.missing(MissingValue::Field(EventField::Ccy));
        } else {
            return Some((self.dr_acct, self.ccy));
        }
        None
    }
}

/// Writes the key of an alert: the debtor account under `acct`, and the currency.
pub(crate) fn alert_key(
    acct: &'static str,
    payment: &Payment,
    input: &ScenarioInput<'_, '_>,
) -> Vec<(&'static str, String)> {
    let ccy = field_text(input.event, EventField::Ccy, &mut [0; 36]).unwrap_or_default().to_owned();
    vec![(acct, input.context.name(NameKind::Account, payment.dr_acct)), ("ccy", ccy)]
}

/// The transfers that counted.
pub(crate) struct Transfers {
    memory_ns: i128,
    /// The time of the event that counted last.
    counted_transfers: BoundedTable<TransferKey, i64>,
    /// The latest time that was forgotten because it was over.
    forgotten_ts: i64,
    late: u64,
    expired: u64,
}

watch_state!(Transfers { counted_transfers, forgotten_ts, late, expired | memory_ns });

impl Transfers {
    /// Makes a memory of `memory_ns` nanoseconds without any transfer.
    pub fn new(memory_ns: i128) -> Self {
        Self::bounded(memory_ns, TRANSFERS_MAX)
    }

    fn bounded(memory_ns: i128, transfers_max: usize) -> Self {
        let counted = BoundedTable::new(transfers_max, 0);
        Self { memory_ns, counted_transfers: counted, forgotten_ts: i64::MIN, late: 0, expired: 0 }
    }

    /// Returns whether a payment counts, and remembers its transfer. It does not count while an event of the same transfer that
    /// counted is less than the memory old.
    pub fn admit(&mut self, payment: &Payment, ts: UnixNanos, expiry_ts: UnixNanos) -> bool {
        let Some(key) = payment.transfer else { return true };
        self.expire_transfers(i128::from(ts.0.min(expiry_ts.0)) - 2 * self.memory_ns);
        let after = i128::from(ts.0) - self.memory_ns;
        let last = self.counted_transfers.find(&key).map(|slot| *self.counted_transfers.get(slot));
        if last.is_some_and(|last| i128::from(last) > after) {
            return false;
        }
        self.late += u64::from(i128::from(self.forgotten_ts) > after);
        self.counted_transfers.insert(key, ts.0, EntryRank::Kept);
        true
    }

    /// Forgets transfers that counted at `limit` or before, the oldest first.
    fn expire_transfers(&mut self, limit: i128) {
        while let Some(slot) = self.counted_transfers.oldest(EntryRank::Kept)
            && i128::from(*self.counted_transfers.get(slot)) <= limit
        {
            self.forgotten_ts = self.forgotten_ts.max(*self.counted_transfers.get(slot));
            self.counted_transfers.remove(slot);
            self.expired += 1;
        }
    }

    /// Returns the counters of the memory.
    pub fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            expired: self.expired,
            bound_hit: self.counted_transfers.forgotten_entries[EntryRank::Kept as usize],
            held_entries: self.counted_transfers.len() as u64,
            ..ScenarioMetrics::default()
        }
    }

    /// Forgets everything but the counters.
    pub fn clear(&mut self) {
        self.counted_transfers.clear();
        self.forgotten_ts = i64::MIN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payment(uetr: &str) -> Payment {
        let transfer = Some(TransferKey::of_uetr(IdKey::of_text(uetr)));
        Payment { dr_acct: 1, cr_acct: 2, ccy: IdKey::NONE, amt: Amount::default(), transfer }
    }

    fn admit(transfers: &mut Transfers, uetr: &str, ts: i64) -> bool {
        transfers.admit(&payment(uetr), UnixNanos(ts), UnixNanos(ts))
    }

    /// Fails if a transfer counts again too early or never, or if a late event is judged as if nothing was forgotten.
    #[test]
    fn a_transfer_counts_again_after_its_memory() {
        let mut transfers = Transfers::new(10);
        let counts = [("a", 0), ("a", 9), ("a", 10), ("b", 29), ("b", 29), ("a", 19), ("a", 20)]
            .map(|(uetr, ts)| admit(&mut transfers, uetr, ts));
        assert_eq!(counts, [true, false, true, true, false, false, true]);
        assert_eq!((transfers.late, transfers.expired), (0, 0));
        assert!(admit(&mut transfers, "c", 60) && admit(&mut transfers, "b", 30));
        assert_eq!((transfers.late, transfers.expired), (1, 2));
    }

    /// Fails if more transfers are kept than may be, or if one that had to go is not reported.
    #[test]
    fn the_bound_holds() {
        let mut transfers = Transfers::bounded(10, 2);
        assert!(["a", "b", "c", "a"].iter().all(|uetr| admit(&mut transfers, uetr, 0)));
        assert_eq!((transfers.metrics().held_entries, transfers.metrics().bound_hit), (2, 2));
    }
}
