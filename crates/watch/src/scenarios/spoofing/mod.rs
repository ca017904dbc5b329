//! Spoofing: a large order that is not meant to trade moves others, and is pulled once they have.
//!
//! ```text
//!   seq ─▶  new O (buy) ──── exec, exec: sells of the same owner ──── cancel O
//!             │ best bid seen last              │ sum, and when the last was       │ everything is judged here
//! ```
//!
//! How the words of the definition are read, where they leave a choice:
//!
//! - *O (owner P)*: the beneficial owner that O's `order_new` names. Venue, instrument and side are those of its
//!   `order_new` as well. What says none of one of these says nothing and is counted as `missing` at its cancel.
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
#[cfg(any(test, feature = "naive"))]
pub(crate) mod naive;
#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::def::{Class, Def, Need, Param, Sort};
use crate::exact::{Total, at_most, times};
use crate::orders::{OrderState, Touched, quantity};
use crate::params::Params;
use crate::watch::{Input, Metrics, Output, Scenario};
use evidence::Evidence;
use hashbrown::{DefaultHashBuilder, HashMap};
use unitape_model::{Decimal, Dict, Kind, Price};

/// Definition of the scenario.
pub static DEF: Def = Def {
    id: "spoofing",
    title: "Spoofing (one large non-bona-fide order)",
    class: Class::Manipulation,
    inputs: &[Kind::OrderNew, Kind::OrderCancel, Kind::Exec],
    needs: &[Need::Orders, Need::Market],
    key: &["owner", "venue", "instr", "side"],
    params: &[
        Param {
            name: "max_life_ms",
            default: "5000",
            unit: "ms",
            sort: Sort::UpTo(1_000_000_000_000),
            about: "an order that lived longer than this was meant to trade",
        },
        Param {
            name: "min_ratio",
            default: "5",
            unit: "times the executed quantity",
            sort: Sort::Tolerance,
            about: "the order is at least this many times what was executed on the other side",
        },
        Param {
            name: "max_filled_pct",
            default: "10",
            unit: "% of its quantity",
            sort: Sort::Tolerance,
            about: "an order of which more was filled was meant to trade",
        },
        Param {
            name: "max_dist_ticks",
            default: "3",
            unit: "ticks",
            sort: Sort::Tolerance,
            about: "an order entered further behind the best price moves nobody",
        },
        Param {
            name: "cancel_after_exec_ms",
            default: "1500",
            unit: "ms",
            sort: Sort::UpTo(1_000_000_000_000),
            about: "it is pulled at most this long after the last execution on the other side",
        },
        Param {
            name: "min_notional",
            default: "\"50000\"",
            unit: "price × quantity, as both are quoted",
            sort: Sort::Amount,
            about: "smaller orders move nobody",
        },
    ],
    trigger: "On order_cancel of live order O (owner P): fire if life=cancel.ts-new.ts <= max_life_ms; \
              O.cum_exec*100 <= max_filled_pct*O.qty; O.qty*O.px >= min_notional (latest amended qty/px); distance \
              of the entry price behind the same-side best (BBO last seen before entry; improving = 0) <= \
              max_dist_ticks; P has exec(s) on the opposite side, same venue+instrument, between O's entry and \
              cancel (by seq); the last of them is <= cancel_after_exec_ms before the cancel; O.qty >= min_ratio * \
              sum of those exec quantities. Missing BBO: no alert.",
    clarified: "The distance uses the entry price; the ratio uses qty, not leaves; several spoofs cancelled in one \
                go each alert; BBO per venue+instrument.",
    regulation: &[
        "MAR Art. 12(2)(c)(i)-(iii)",
        "Del. Reg. (EU) 2016/522 Annex II (orders with no intention of being executed)",
        "CEA s.4c(a)(5)(C) (Dodd-Frank s.747)",
        "FINRA 5210.03 / 2010",
    ],
};

/// The scenario.
pub struct Fast {
    limits: Limits,
    /// What is remembered of each order, by its slot.
    suspects: Vec<Suspect>,
    accounts: Vec<Account>,
    free: Vec<u32>,
    by_key: HashMap<AccountKey, u32, DefaultHashBuilder>,
    evidence: Evidence,
    metrics: Metrics,
}

/// Owner, venue, instrument.
type AccountKey = (u32, u16, u32);

/// An order, from its entry until its slot is given to another.
#[derive(Clone, Copy)]
struct Suspect {
    /// Whom it is of; [`NONE`] once it is cancelled, or when it cannot be one.
    account: u32,
    /// The best price of its side when it was entered, if there was one, and what had been executed on the other side.
    best: Price,
    before: Total,
}

/// What an owner executed in an instrument at a venue, while it has an order there that is known.
struct Account {
    key: AccountKey,
    /// How many suspects name it.
    orders: u32,
    /// By side: buy, sell.
    done: [Done; 2],
}

#[derive(Clone, Copy)]
struct Done {
    total: Total,
    last_ts: i64,
    /// Zero when there was none.
    last_seq: u64,
    /// The last one's number in [`Evidence`].
    last: u64,
}

const NONE: u32 = u32::MAX;
const NO_SUSPECT: Suspect = Suspect { account: NONE, best: Price::NONE, before: Total::ZERO };
const NOTHING: Done = Done { total: Total::ZERO, last_ts: 0, last_seq: 0, last: evidence::NONE };

impl Fast {
    /// With empty state.
    pub fn new(params: &Params) -> Self {
        Self {
            limits: Limits::new(params),
            suspects: Vec::new(),
            accounts: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::default(),
            evidence: Evidence::default(),
            metrics: Metrics::default(),
        }
    }

    fn on_entry(&mut self, input: &Input<'_, '_>, touched: Touched<'_>) {
        let slot = touched.slot as usize;
        if self.suspects.len() <= slot {
            self.suspects.resize(slot + 1, NO_SUSPECT);
        }
        // The slot may have been that of another order.
        self.let_go(slot);
        let order = touched.order;
        let Some((key, opposite)) = whole(order) else { return };
        let account = self.account(key);
        let best = input.context.market.best(order.venue, order.instr);
        self.accounts[account as usize].orders += 1;
        self.suspects[slot] = Suspect {
            account,
            best: best.and_then(|b| b.of_side(order.side)).unwrap_or(Price::NONE),
            before: self.accounts[account as usize].done[opposite].total,
        };
    }

    fn on_exec(&mut self, input: &Input<'_, '_>) {
        let Some(record) = input.record else { return };
        let qty = quantity(record).filter(|q| q.mantissa() > 0);
        let (venue, instr, side) = (record.common.venue.get(), record.common.instrument.get(), record.side());
        let (Some(qty), true) = (qty, input.owner != 0 && instr != 0 && matches!(side, 1 | 2)) else {
            self.metrics.missing += 1;
            return;
        };
        // Of an owner without an order nothing can be asked.
        let Some(&account) = self.by_key.get(&(input.owner, venue, instr)) else { return };
        let done = &mut self.accounts[account as usize].done[usize::from(side - 1)];
        done.total.add(qty);
        done.last_ts = record.common.ts_event.get();
        done.last_seq = input.context.seq;
        done.last = self.evidence.add(input, record, done.last);
    }

    fn on_cancel(&mut self, input: &Input<'_, '_>, touched: Touched<'_>, out: &mut Output<'_>) {
        let slot = touched.slot as usize;
        if touched.was_live
            && let Some(alert) = self.judge(input, touched.order, slot)
        {
            self.metrics.alerts += 1;
            out.alert(alert);
        }
        self.let_go(slot);
    }

    fn judge(&mut self, input: &Input<'_, '_>, order: &OrderState, slot: usize) -> Option<Alert> {
        let suspect = self.suspects.get(slot).copied().unwrap_or(NO_SUSPECT);
        let best = suspect.best.some();
        let tick = input.context.market.reference(order.instr).and_then(|r| r.tick);
        let (Some((_, opposite)), Some(best), Some(tick), Some(entry_px), Some(px), Some(qty)) = (
            whole(order),
            best,
            tick.filter(|t| t.0 > 0),
            order.entry_px.some(),
            order.px.some(),
            order.qty(),
        ) else {
            self.metrics.missing += 1;
            return None;
        };
        let done = &self.accounts[suspect.account as usize].done[opposite];
        if done.last_seq <= order.entry_seq {
            return None;
        }
        let executed = done.total.since(&suspect.before);
        let now = input.event.ts_event().0;
        let limits = &self.limits;
        let fires = limits.is_short(order.entry_ts, now)
            && limits.is_pulled(done.last_ts, now)
            && limits.is_near(order.side, entry_px, best, tick)
            && limits.is_hardly_filled(&order.executed, qty)
            && limits.is_large(qty, px)
            && limits.is_out_of_proportion(qty, &executed);
        fires.then(|| self.evidence.alert(input, order, &executed, done.last))
    }

    /// The account of `key`, made now if there is none.
    fn account(&mut self, key: AccountKey) -> u32 {
        let (accounts, free) = (&mut self.accounts, &mut self.free);
        *self.by_key.entry(key).or_insert_with(|| {
            let account = Account { key, orders: 0, done: [NOTHING; 2] };
            match free.pop() {
                Some(at) => {
                    accounts[at as usize] = account;
                    at
                }
                None => {
                    accounts.push(account);
                    accounts.len() as u32 - 1
                }
            }
        })
    }

    /// The order in `slot` is of no interest any more, nor is an account without one: sums are only ever
    /// compared between the entry and the cancel of one order.
    fn let_go(&mut self, slot: usize) {
        let Some(suspect) = self.suspects.get_mut(slot) else { return };
        let at = std::mem::replace(&mut suspect.account, NONE);
        let Some(account) = self.accounts.get_mut(at as usize) else { return };
        account.orders -= 1;
        if account.orders == 0 {
            self.by_key.remove(&account.key);
            self.free.push(at);
        }
    }
}

impl Scenario for Fast {
    fn def(&self) -> &'static Def {
        &DEF
    }

    #[inline]
    fn on_event(&mut self, input: &Input<'_, '_>, out: &mut Output<'_>) {
        self.metrics.events += 1;
        match (input.event.kind(), input.order) {
            (Kind::Exec, _) => self.on_exec(input),
            (Kind::OrderNew, Some(touched)) => self.on_entry(input, touched),
            (Kind::OrderCancel, Some(touched)) => self.on_cancel(input, touched, out),
            // An order that was never seen is never live.
            _ => {}
        }
    }

    fn reset(&mut self) {
        self.suspects.clear();
        self.accounts.clear();
        self.free.clear();
        self.by_key.clear();
        self.evidence.clear();
    }

    fn metrics(&self) -> Metrics {
        Metrics { held: self.by_key.len() as u64, ..self.metrics }
    }
}

/// Whose an order is and where, and the place of the other side's executions; `None` when it does not say, or was
/// never seen new.
#[inline]
fn whole(order: &OrderState) -> Option<(AccountKey, usize)> {
    let whole = order.entry_owner != 0 && order.instr != 0 && matches!(order.side, 1 | 2);
    whole.then(|| ((order.entry_owner, order.venue, order.instr), usize::from(2 - order.side)))
}

/// The parameters, ready for exact arithmetic.
struct Limits {
    max_life_ns: i128,
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

impl Limits {
    fn new(params: &Params) -> Self {
        Self {
            max_life_ns: params.millis("max_life_ms"),
            cancel_after_exec_ns: params.millis("cancel_after_exec_ms"),
            min_ratio: params.nano("min_ratio"),
            max_filled: params.nano("max_filled_pct"),
            max_dist: params.nano("max_dist_ticks"),
            min_notional: params.amount("min_notional"),
        }
    }

    fn is_short(&self, entry: i64, cancel: i64) -> bool {
        i128::from(cancel) - i128::from(entry) <= self.max_life_ns
    }

    fn is_pulled(&self, last_exec: i64, cancel: i64) -> bool {
        i128::from(cancel) - i128::from(last_exec) <= self.cancel_after_exec_ns
    }

    /// distance ≤ limit × tick; both sides are under 2^127.
    fn is_near(&self, side: u8, entry_px: Price, best: Price, tick: Price) -> bool {
        let behind = i128::from(best.0) - i128::from(entry_px.0);
        let behind = if side == 1 { behind } else { -behind };
        behind.max(0) * i128::from(BILLION) <= i128::from(self.max_dist) * i128::from(tick.0)
    }

    /// executed × 100 ≤ limit × quantity.
    fn is_hardly_filled(&self, executed: &Total, qty: Decimal) -> bool {
        executed.times(100 * BILLION) <= Total::of(qty).times(self.max_filled)
    }

    /// quantity × price ≥ limit.
    fn is_large(&self, qty: Decimal, px: Price) -> bool {
        px.0 >= 0 && {
            let (mantissa, exponent) = times(qty, px.0.unsigned_abs());
            at_most(times(self.min_notional, 1), (mantissa, exponent - Price::PLACES as i32))
        }
    }

    /// quantity ≥ ratio × executed.
    fn is_out_of_proportion(&self, qty: Decimal, executed: &Total) -> bool {
        executed.times(self.min_ratio) <= Total::of(qty).times(BILLION)
    }
}

/// The side of an order, for the key.
fn side_name(side: u8) -> &'static str {
    if side == 1 { "B" } else { "S" }
}

/// The key of an order's alert.
fn key(input: &Input<'_, '_>, order: &OrderState) -> Vec<(&'static str, String)> {
    let context = input.context;
    vec![
        ("owner", context.name(Dict::Owner, order.entry_owner)),
        ("venue", context.name(Dict::Venue, order.venue.into())),
        ("instr", context.name(Dict::Instrument, order.instr)),
        ("side", side_name(order.side).to_owned()),
    ]
}
