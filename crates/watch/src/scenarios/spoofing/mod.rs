//! Spoofing: a large order that is not meant to trade moves others, and is pulled once they have.
//!
//! ```text
//!   seq ─▶  new O (buy) ──── exec, exec: sells of the same owner ──── cancel O
//!             │ best bid seen last              │ sum, and when the last was       │ everything is judged here
//! ```
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - *O (owner P)*: the beneficial owner that the first event of O names, its `order_new` or an amend or, when these name
//!   none, its cancel. Venue, instrument and side are those of its `order_new`. An order without one of these has no effect and
//!   is counted as `missing` at its cancel.
//! - *P has exec(s)*: the owner of an execution that names none is that of its order. Executions without owner,
//!   instrument, side or a quantity above zero are counted as `missing`, too.
//! - *Missing BBO*: no `bbo` of the venue and instrument before the entry, or the last one has no price on O's
//!   side. A missing tick never fires either. Both are counted as `missing`. The tick is the one known at the
//!   cancel.
//! - *The last of them* is the last by sequence. An order may be stamped before its entry, and an execution after
//!   the cancel; differences below zero are within any limit.
//! - State is kept only for orders that are known; what the shared bound on orders makes forgotten is counted
//!   there (`orders_bound_hit`).

mod evidence;
#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::{QuantitySum, at_most, times};
use crate::missing::MissingValue;
use crate::orders::{OrderState, OrderUpdate, quantity};
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::watch::{Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind};
use evidence::{ExecutionEvidence, OppositeExecutions};
use hashbrown::{DefaultHashBuilder, HashMap};
use unitape_model::{Decimal, EventField, EventKind, InstrumentId, NameKind, Price, UnixNanos};

/// The name of the scenario.
pub const ID: &str = "spoofing";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::OrderNew, EventKind::OrderCancel, EventKind::Exec];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders, SharedStateKind::Market];

/// The scenario.
pub struct SpoofingScenario {
    limits: SpoofingLimits,
    /// The remembered state of each order, by its slot.
    suspects: Vec<SuspectOrder>,
    accounts: Vec<OwnerExecutions>,
    free: Vec<u32>,
    by_key: HashMap<AccountKey, u32, DefaultHashBuilder>,
    /// Where orders live that do not say whose they are: how many, and the accounts that are kept for them.
    ownerless: HashMap<ListingKey, OwnerlessOrders, DefaultHashBuilder>,
    evidence: ExecutionEvidence,
    /// Alerts that were lost because executions were forgotten.
    bound_hit: u64,
}

/// One instrument at one venue, by the ids of the tape.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ListingKey {
    venue: u16,
    instrument: InstrumentId,
}

/// Owner, venue, instrument.
type AccountKey = (u32, u16, InstrumentId);

/// An order, from its entry until its slot is given to another.
#[derive(Clone, Copy)]
struct SuspectOrder {
    /// Whom it is of; [`NONE`] once it is cancelled, or when it cannot be one; [`OWNERLESS`] when it does not say.
    account: u32,
    /// Where it is, when it does not say whose it is.
    listing: ListingKey,
    /// The best price of its side when the order was entered, if there was a price, and the executed quantity of the
    /// other side at that time.
    best: Price,
    before: QuantitySum,
    count_before: u64,
}

/// Orders of one instrument at a venue that do not say whose they are.
#[derive(Default)]
struct OwnerlessOrders {
    orders: u32,
    /// Any owner may turn out to own these orders, so meanwhile all executions are kept.
    accounts: Vec<u32>,
}

/// The executions of an owner in an instrument at a venue, while it has a known order there.
struct OwnerExecutions {
    key: AccountKey,
    /// The number of suspects that name it, and one more while it is kept for orders that do not say whose they are.
    orders: u32,
    is_held: bool,
    /// By side: buy, sell.
    executions: [SideExecutions; 2],
}

#[derive(Clone, Copy)]
struct SideExecutions {
    total: QuantitySum,
    count: u64,
    last_ts: UnixNanos,
    /// Zero when there was none.
    last_seq: u64,
    /// The last one's number in [`ExecutionEvidence`].
    last: u64,
}

const NONE: u32 = u32::MAX;
const OWNERLESS: u32 = u32::MAX - 1;
/// In place of a listing: the order names its owner.
const NOWHERE: ListingKey = ListingKey { venue: 0, instrument: InstrumentId(0) };
const NO_SUSPECT: SuspectOrder = SuspectOrder {
    account: NONE,
    listing: NOWHERE,
    best: Price::NONE,
    before: QuantitySum::ZERO,
    count_before: 0,
};
const NOTHING: SideExecutions = SideExecutions {
    total: QuantitySum::ZERO,
    count: 0,
    last_ts: UnixNanos(0),
    last_seq: 0,
    last: evidence::NONE,
};

state_value!(ListingKey { venue, instrument });
state_value!(SuspectOrder { account, listing, best, before, count_before });
state_value!(OwnerlessOrders { orders, accounts });
state_value!(OwnerExecutions { key, orders, is_held, executions });
state_value!(SideExecutions { total, count, last_ts, last_seq, last });
watch_state!(SpoofingScenario { suspects, accounts, free, by_key, ownerless, evidence, bound_hit | limits });

impl SpoofingScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        Self {
            limits: SpoofingLimits::new(params),
            suspects: Vec::new(),
            accounts: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::default(),
            ownerless: HashMap::default(),
            evidence: ExecutionEvidence::default(),
            bound_hit: 0,
        }
    }

    fn on_entry(&mut self, input: &ScenarioInput<'_, '_>, touched: OrderUpdate<'_>) {
        let slot = touched.slot as usize;
        if self.suspects.len() <= slot {
            self.suspects.resize(slot + 1, NO_SUSPECT);
        }
        // The slot may have belonged to another order.
        self.drop_suspect(slot);
        let order = touched.order;
        let best = input.context.market.best(order.venue, order.instr);
        let Some((key, opposite)) = account_and_opposite(order, order.owner) else {
            // An amend or its cancel may still name the owner.
            if order.owner == 0 && account_and_opposite(order, 1).is_some() {
                let listing = ListingKey { venue: order.venue, instrument: order.instr };
                self.ownerless.entry(listing).or_default().orders += 1;
                let best = best.and_then(|b| b.of_side(order.side)).unwrap_or(Price::NONE);
                self.suspects[slot] = SuspectOrder { account: OWNERLESS, listing, best, ..NO_SUSPECT };
            }
            return;
        };
        let account = self.account(key);
        self.accounts[account as usize].orders += 1;
        let side_executions = &self.accounts[account as usize].executions[opposite];
        self.suspects[slot] = SuspectOrder {
            account,
            listing: NOWHERE,
            best: best.and_then(|b| b.of_side(order.side)).unwrap_or(Price::NONE),
            before: side_executions.total,
            count_before: side_executions.count,
        };
    }

    fn on_exec(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let Some(record) = input.record else { return };
        let (venue, instr, side) = (input.venue, input.instr, input.side);
        let qty = match quantity(record).filter(|q| q.mantissa() > 0) {
            Some(qty) if input.owner != 0 && instr.0 != 0 && matches!(side, 1 | 2) => qty,
            qty => return out.missing(MissingValue::Field(lacking(input.owner, instr, side, qty))),
        };
        if !self.ownerless.is_empty() {
            self.hold((input.owner, venue, instr));
        }
        // An owner without an order has nothing to check.
        let Some(&account) = self.by_key.get(&(input.owner, venue, instr)) else { return };
        let side_executions = &mut self.accounts[account as usize].executions[usize::from(side - 1)];
        side_executions.total.add(qty);
        side_executions.count += 1;
        side_executions.last_ts = input.ts;
        side_executions.last_seq = input.context.seq;
        side_executions.last = self.evidence.add(input, record, qty, side_executions.last);
    }

    fn on_cancel(
        &mut self,
        input: &ScenarioInput<'_, '_>,
        touched: OrderUpdate<'_>,
        out: &mut ScenarioOutput<'_>,
    ) {
        let slot = touched.slot as usize;
        if touched.was_live
            && let Some(alert) = self.check_cancel(input, touched.order, slot, out)
        {
            out.alert(alert);
        }
        self.drop_suspect(slot);
    }

    fn check_cancel(
        &mut self,
        input: &ScenarioInput<'_, '_>,
        order: &OrderState,
        slot: usize,
        out: &mut ScenarioOutput<'_>,
    ) -> Option<Alert> {
        let suspect = self.suspects.get(slot).copied().unwrap_or(NO_SUSPECT);
        let best = suspect.best.as_option();
        let tick = input.context.market.reference(order.instr).and_then(|r| r.tick);
        // The owner that the cancel names, where the order named none.
        let cancel_owner = input.record.map_or(0, |record| record.owner.get());
        let owner = if order.owner == 0 { cancel_owner } else { order.owner };
        let (Some((key, opposite)), Some(best), Some(tick), Some(entry_px), Some(px), Some(qty)) = (
            account_and_opposite(order, owner),
            best,
            tick.filter(|t| t.0 > 0),
            order.entry_px.as_option(),
            order.px.as_option(),
            order.qty(),
        ) else {
            out.missing(match () {
                () if account_and_opposite(order, owner).is_none() => {
                    MissingValue::Field(lacking(owner, order.instr, order.side, order.qty()))
                }
                () if best.is_none() => MissingValue::BestPrice,
                () if order.px.as_option().is_none() || order.entry_px.as_option().is_none() => {
                    MissingValue::Field(EventField::Px)
                }
                () if order.qty().is_none() => MissingValue::Field(EventField::Qty),
                () => MissingValue::Reference(EventField::Tick),
            });
            return None;
        };
        let account_index =
            if suspect.account == OWNERLESS { self.by_key.get(&key).copied() } else { Some(suspect.account) };
        let side_executions = &self.accounts.get(account_index? as usize)?.executions[opposite];
        let entry_seq = order.entry_seq().filter(|entry_seq| side_executions.last_seq > *entry_seq)?;
        let executed = match suspect.account {
            OWNERLESS => match self.evidence.executed_since(entry_seq, side_executions.last, owner) {
                Some(executed) => executed,
                None => {
                    self.bound_hit += 1;
                    return None;
                }
            },
            _ => OppositeExecutions {
                total_qty: side_executions.total.minus_earlier(&suspect.before),
                count: side_executions.count - suspect.count_before,
                entry_seq,
                last_number: side_executions.last,
                owner,
            },
        };
        let now = input.ts;
        let limits = &self.limits;
        let fires = limits.is_short(order.entry_ts, now)
            && limits.is_pulled(side_executions.last_ts, now)
            && limits.is_near(order.side, entry_px, best, tick)
            && limits.is_hardly_filled(&order.executed, qty)
            && limits.is_large(qty, px)
            && limits.is_out_of_proportion(qty, &executed.total_qty);
        fires.then(|| self.evidence.alert(input, order, &executed))
    }

    /// Returns the account of `key` and makes it if it is new.
    fn account(&mut self, key: AccountKey) -> u32 {
        let (accounts, free) = (&mut self.accounts, &mut self.free);
        *self.by_key.entry(key).or_insert_with(|| {
            let account = OwnerExecutions { key, orders: 0, is_held: false, executions: [NOTHING; 2] };
            match free.pop() {
                Some(index) => {
                    accounts[index as usize] = account;
                    index
                }
                None => {
                    accounts.push(account);
                    accounts.len() as u32 - 1
                }
            }
        })
    }

    /// Drops the order in `slot`, and its account if no other order names it. Sums are only compared between the entry
    /// and the cancel of one order.
    fn drop_suspect(&mut self, slot: usize) {
        let Some(suspect) = self.suspects.get_mut(slot) else { return };
        let account_index = std::mem::replace(&mut suspect.account, NONE);
        if account_index == OWNERLESS {
            let listing = suspect.listing;
            return self.drop_ownerless(listing);
        }
        self.release(account_index);
    }

    /// Releases an account from one suspect order.
    fn release(&mut self, account_index: u32) {
        let Some(account) = self.accounts.get_mut(account_index as usize) else { return };
        account.orders -= 1;
        if account.orders == 0 {
            self.by_key.remove(&account.key);
            self.free.push(account_index);
        }
    }

    /// Keeps the executions of an owner in listings with live orders that name no owner.
    #[cold]
    fn hold(&mut self, key: AccountKey) {
        let listing = ListingKey { venue: key.1, instrument: key.2 };
        if !self.ownerless.contains_key(&listing) {
            return;
        }
        let account_index = self.account(key);
        let account = &mut self.accounts[account_index as usize];
        if !std::mem::replace(&mut account.is_held, true) {
            account.orders += 1;
            if let Some(ownerless) = self.ownerless.get_mut(&listing) {
                ownerless.accounts.push(account_index);
            }
        }
    }

    /// Drops an order that named no owner.
    #[cold]
    fn drop_ownerless(&mut self, listing: ListingKey) {
        let Some(ownerless) = self.ownerless.get_mut(&listing) else { return };
        ownerless.orders -= 1;
        if ownerless.orders > 0 {
            return;
        }
        for account_index in self.ownerless.remove(&listing).map_or_else(Vec::new, |o| o.accounts) {
            self.accounts[account_index as usize].is_held = false;
            self.release(account_index);
        }
    }
}

impl Scenario for SpoofingScenario {
    #[inline]
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        match (input.event.kind(), input.order) {
            (EventKind::Exec, _) => self.on_exec(input, out),
            (EventKind::OrderNew, Some(touched)) => self.on_entry(input, touched),
            (EventKind::OrderCancel, Some(touched)) => self.on_cancel(input, touched, out),
            // An order that was never seen is never live.
            _ => {}
        }
    }

    fn on_venue_change(&mut self, input: &ScenarioInput<'_, '_>) {
        if let (EventKind::OrderCancel, Some(touched)) = (input.event.kind(), input.order) {
            self.drop_suspect(touched.slot as usize);
        }
    }

    fn reset(&mut self) {
        self.suspects.clear();
        self.accounts.clear();
        self.free.clear();
        self.by_key.clear();
        self.ownerless.clear();
        self.evidence.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        let held_entries = self.by_key.len() as u64;
        ScenarioMetrics { bound_hit: self.bound_hit, held_entries, ..ScenarioMetrics::default() }
    }
}

/// Returns the account of an order and the index of the opposite side's executions. Returns `None` if the order does
/// not name its owner or was never seen new.
#[inline]
fn account_and_opposite(order: &OrderState, owner: u32) -> Option<(AccountKey, usize)> {
    let is_complete = owner != 0 && order.instr.0 != 0 && matches!(order.side, 1 | 2);
    is_complete.then(|| ((owner, order.venue, order.instr), usize::from(2 - order.side)))
}

/// Returns the first field that an order or an execution lacks.
#[cold]
fn lacking(owner: u32, instr: InstrumentId, side: u8, qty: Option<Decimal>) -> EventField {
    match () {
        () if owner == 0 => EventField::Owner,
        () if instr.0 == 0 => EventField::Instr,
        () if !matches!(side, 1 | 2) => EventField::Side,
        () if qty.is_none() => EventField::Qty,
        () => EventField::Oid,
    }
}

/// The parameters, ready for exact arithmetic.
pub(super) struct SpoofingLimits {
    pub max_life_ns: i128,
    cancel_after_exec_ns: i128,
    /// Billionths.
    min_ratio: u64,
    /// Billionths of a percent.
    max_filled: u64,
    /// Billionths of a tick.
    max_dist: u64,
    min_notional: Decimal,
}

const BILLION: u64 = 1_000_000_000;

impl SpoofingLimits {
    /// Reads the parameters.
    pub fn new(params: &ScenarioParams) -> Self {
        Self {
            max_life_ns: params.millis("max_life_ms"),
            cancel_after_exec_ns: params.millis("cancel_after_exec_ms"),
            min_ratio: params.nano("min_ratio"),
            max_filled: params.nano("max_filled_pct"),
            max_dist: params.nano("max_dist_ticks"),
            min_notional: params.amount("min_notional"),
        }
    }

    /// Returns whether the order lived up to the limit.
    pub fn is_short(&self, entry: UnixNanos, cancel: UnixNanos) -> bool {
        i128::from(cancel.0) - i128::from(entry.0) <= self.max_life_ns
    }

    /// Returns whether the cancel came soon enough after the execution.
    pub fn is_pulled(&self, last_exec: UnixNanos, cancel: UnixNanos) -> bool {
        i128::from(cancel.0) - i128::from(last_exec.0) <= self.cancel_after_exec_ns
    }

    /// Returns whether distance ≤ limit × tick. Both sides are under 2^127.
    pub fn is_near(&self, side: u8, entry_px: Price, best: Price, tick: Price) -> bool {
        let buy_distance = i128::from(best.0) - i128::from(entry_px.0);
        let distance = if side == 1 { buy_distance } else { -buy_distance };
        distance.max(0) * i128::from(BILLION) <= i128::from(self.max_dist) * i128::from(tick.0)
    }

    /// Returns whether executed × 100 ≤ limit × quantity.
    pub fn is_hardly_filled(&self, executed: &QuantitySum, qty: Decimal) -> bool {
        executed.times(100 * BILLION) <= QuantitySum::from_decimal(qty).times(self.max_filled)
    }

    /// Returns whether quantity × price ≥ limit.
    pub fn is_large(&self, qty: Decimal, px: Price) -> bool {
        px.0 >= 0 && {
            let mut notional = times(qty, px.0.unsigned_abs());
            notional.exponent -= Price::PLACES as i32;
            at_most(times(self.min_notional, 1), notional)
        }
    }

    /// Returns whether quantity ≥ ratio × executed.
    pub fn is_out_of_proportion(&self, qty: Decimal, executed: &QuantitySum) -> bool {
        executed.times(self.min_ratio) <= QuantitySum::from_decimal(qty).times(BILLION)
    }
}

/// Returns the side of an order as the key writes it.
fn side_name(side: u8) -> &'static str {
    if side == 1 { "B" } else { "S" }
}

/// Makes the key of an order's alert.
fn key(input: &ScenarioInput<'_, '_>, order: &OrderState, owner: u32) -> Vec<(&'static str, String)> {
    let context = input.context;
    vec![
        ("owner", context.name(NameKind::Owner, owner)),
        ("venue", context.name(NameKind::Venue, order.venue.into())),
        ("instr", context.name(NameKind::Instrument, order.instr.0)),
        ("side", side_name(order.side).to_owned()),
    ]
}
