//! Wash trade: a beneficial group trades with itself.
//!
//! How the words of the definition are read, where they leave a choice:
//!
//! - *Legs are consumed once*: an execution is evidence of at most one alert, of either arm. A leg that a
//!   round trip has used no longer makes a self match, and the other way round.
//! - *The second leg* of a match is the first execution on the other side with the same match id, venue and
//!   instrument. It decides: same group, or not a self match at all. There is no window between the legs of
//!   a match; the first waits until the second comes (at most [`WAITING_MAX`] wait).
//! - *Same group* is judged when the alert would be given, with all that `party` events have told by then.
//! - *Different match id*: ids of two venues are never the same, and an execution without one differs from
//!   all others.
//! - *Earliest* is by sequence. Time may go back within a stream: the window is taken literally, from the
//!   time of the event at hand, so an execution stamped later than that is not in it. An execution is
//!   forgotten when a later one is two windows ahead of it and of all that are still kept from before it,
//!   so lines up to one window late find what they should.
//! - An execution without instrument, side, price, quantity above zero or owner (its own or its order's)
//!   says nothing and is counted as `missing`.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::def::{Class, Def, Param, Sort};
use crate::fifo::FifoMap;
use crate::orders::IdKey;
use crate::params::Params;
use crate::parties::Parties;
use crate::watch::{Input, Metrics, Scenario};
use hashbrown::{DefaultHashBuilder, HashMap};
use serde_json::json;
use std::collections::VecDeque;
use unitape_model::records::Order;
use unitape_model::schema::EXP_NONE;
use unitape_model::{Decimal, Dict, Dictionary, Field, Kind, Price};

/// Definition of the scenario.
pub static DEF: Def = Def {
    id: "wash_trade",
    title: "Wash trade, self match, offsetting round trip",
    class: Class::Manipulation,
    inputs: &[Kind::Exec, Kind::Party],
    uses_orders: true,
    key: &["group", "instr"],
    params: &[
        Param {
            name: "window_ms",
            default: "60000",
            unit: "ms",
            sort: Sort::UpTo(1_000_000_000_000),
            about: "a round trip closes less than this after it began",
        },
        Param {
            name: "px_tol_bps",
            default: "5",
            unit: "bps of the earlier price",
            sort: Sort::Tolerance,
            about: "prices of a round trip differ by at most this",
        },
        Param {
            name: "qty_tol_pct",
            default: "10",
            unit: "% of the earlier quantity",
            sort: Sort::Tolerance,
            about: "quantities of a round trip differ by at most this",
        },
    ],
    trigger: "Two executions of one beneficial group (an owner is its own group unless a party event says \
              otherwise) on opposite sides of one instrument: either the two legs of one match (self_match), \
              or, at any venues, of different matches within the window and with price and quantity within \
              their tolerances (round_trip; the earliest such execution counts). An execution is used once.",
    regulation: &[
        "MAR Art. 12(1)(a)",
        "Del. Reg. (EU) 2016/522 Annex II (wash trades)",
        "CEA s.4c(a)(1)-(2)",
        "FINRA 5210.02 (self-trades) / 6140",
    ],
};

/// Executions kept for round trips at most; the oldest is forgotten first.
pub const LEGS_MAX: usize = 1 << 20;
/// First legs that wait for their second at most; the oldest is forgotten first.
pub const WAITING_MAX: usize = 1 << 18;

/// What of an execution is looked at.
#[derive(Clone, Copy, Debug)]
struct Leg {
    ts: i64,
    px: i64,
    qty: Decimal,
    seq: u64,
    /// `u64::MAX` when it is not on a tape.
    position: u64,
    owner: u32,
    instr: u32,
    venue: u16,
    /// 0 buy, 1 sell.
    side: u8,
    id: Option<IdKey>,
}

/// A leg in its queue.
#[derive(Clone, Copy)]
struct Kept {
    leg: Leg,
    consumed: bool,
    /// `u32::MAX` for a consumed leg that was filed anew: it is in none.
    queue: u32,
    /// Number of the next leg in the same queue, [`NONE`] for the last.
    next: u64,
}

type MatchKey = (u16, u32, IdKey);

/// A first leg, waiting for its second.
#[derive(Clone, Copy)]
struct Waiting {
    leg: Leg,
    number: u64,
}

/// Unconsumed legs of one group in one instrument, by side, each in the order of arrival; chained through
/// [`Kept::next`].
#[derive(Clone, Copy)]
struct Queue {
    key: (u32, u32),
    ends: [Ends; 2],
}

#[derive(Clone, Copy)]
struct Ends {
    first: u64,
    last: u64,
}

const NONE: u64 = u64::MAX;
const EMPTY: Ends = Ends { first: NONE, last: NONE };

/// The scenario.
pub struct WashTrade {
    limits: Limits,
    /// Legs by number; the first is number `base`.
    legs: VecDeque<Kept>,
    base: u64,
    legs_max: usize,
    queues: Vec<Queue>,
    free: Vec<u32>,
    /// Queue by group and instrument.
    by_key: HashMap<(u32, u32), u32, DefaultHashBuilder>,
    waiting: FifoMap<MatchKey, Waiting>,
    /// State of [`Parties::changes`] when legs were put into queues.
    parties_changes: u64,
    metrics: Metrics,
}

impl WashTrade {
    /// With empty state.
    pub fn new(params: &Params) -> Self {
        Self::bounded(Limits::new(params), LEGS_MAX, WAITING_MAX)
    }

    fn bounded(limits: Limits, legs_max: usize, waiting_max: usize) -> Self {
        Self {
            limits,
            legs: VecDeque::new(),
            base: 0,
            legs_max,
            queues: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::default(),
            waiting: FifoMap::new(waiting_max),
            parties_changes: 0,
            metrics: Metrics::default(),
        }
    }

    /// The leg that makes an alert with `e`, and which arm it is; the leg is consumed.
    fn judge(&mut self, e: &Leg, parties: &Parties) -> Option<(Leg, &'static str)> {
        self.expire(e.ts);
        if self.parties_changes != parties.changes() {
            self.parties_changes = parties.changes();
            self.file_anew(parties);
        }
        let group = parties.group(e.owner);
        let key = e.id.map(|id| (e.venue, e.instr, id));
        let first = key.and_then(|key| self.waiting.get(&key));
        if let (Some(key), Some(first)) = (key, first.filter(|f| f.leg.side != e.side)) {
            self.waiting.remove(&key);
            if parties.group(first.leg.owner) == group {
                // It leaves its queue when the queue is next walked.
                if let Some(kept) = first.number.checked_sub(self.base) {
                    self.legs[kept as usize].consumed = true;
                }
                return Some((first.leg, "self_match"));
            }
        }
        let queue = self.queue((group, e.instr));
        if let Some((number, f)) = self.round_trip(queue, e) {
            if let Some(id) = f.id {
                let key = (f.venue, f.instr, id);
                if self.waiting.get(&key).is_some_and(|w| w.number == number) {
                    self.waiting.remove(&key);
                }
            }
            self.drop_if_empty(queue);
            return Some((f, "round_trip"));
        }
        let number = self.keep(queue, *e);
        if let (Some(key), None) = (key, first) {
            self.waiting.insert(key, Waiting { leg: *e, number });
        }
        None
    }

    /// Finds, consumes and takes out the earliest leg that makes a round trip with `e`.
    fn round_trip(&mut self, queue: u32, e: &Leg) -> Option<(u64, Leg)> {
        let side = usize::from(1 - e.side);
        let (mut before, mut at) = (NONE, self.queues[queue as usize].ends[side].first);
        while at != NONE {
            let kept = &self.legs[(at - self.base) as usize];
            let (next, leg, consumed) = (kept.next, kept.leg, kept.consumed);
            let found = !consumed && self.limits.meet(e, &leg);
            if !(found || consumed) {
                (before, at) = (at, next);
                continue;
            }
            let ends = &mut self.queues[queue as usize].ends[side];
            match before {
                NONE => ends.first = next,
                before => self.legs[(before - self.base) as usize].next = next,
            }
            if ends.last == at {
                ends.last = before;
            }
            if found {
                self.legs[(at - self.base) as usize].consumed = true;
                return Some((at, leg));
            }
            at = next;
        }
        None
    }

    /// Forgets what is two windows behind `now`, from the oldest on.
    fn expire(&mut self, now: i64) {
        while self.legs.front().is_some_and(|k| self.limits.is_over(k.leg.ts, now)) {
            self.forget_oldest();
            self.metrics.expired += 1;
        }
    }

    fn forget_oldest(&mut self) {
        let Some(kept) = self.legs.pop_front() else { return };
        if let Some(queue) = self.queues.get_mut(kept.queue as usize) {
            let ends = &mut queue.ends[usize::from(kept.leg.side)];
            // A queue is in the order of arrival, so what is still in one is its first.
            if ends.first == self.base {
                *ends = if kept.next == NONE { EMPTY } else { Ends { first: kept.next, ..*ends } };
                self.drop_if_empty(kept.queue);
            }
        }
        self.base += 1;
    }

    fn keep(&mut self, mut queue: u32, leg: Leg) -> u64 {
        if self.legs.len() == self.legs_max {
            self.forget_oldest();
            self.metrics.bound_hit += 1;
            // The queue may have been the forgotten leg's own and gone with it.
            queue = self.queue(self.queues[queue as usize].key);
        }
        let number = self.base + self.legs.len() as u64;
        self.legs.push_back(Kept { leg, consumed: false, queue, next: NONE });
        self.append(queue, leg.side, number);
        number
    }

    fn append(&mut self, queue: u32, side: u8, number: u64) {
        let ends = &mut self.queues[queue as usize].ends[usize::from(side)];
        match ends.last {
            NONE => ends.first = number,
            last => self.legs[(last - self.base) as usize].next = number,
        }
        ends.last = number;
    }

    /// The queue of `key`, made now if there is none.
    fn queue(&mut self, key: (u32, u32)) -> u32 {
        let (queues, free) = (&mut self.queues, &mut self.free);
        *self.by_key.entry(key).or_insert_with(|| {
            let queue = Queue { key, ends: [EMPTY; 2] };
            match free.pop() {
                Some(at) => {
                    queues[at as usize] = queue;
                    at
                }
                None => {
                    queues.push(queue);
                    queues.len() as u32 - 1
                }
            }
        })
    }

    fn drop_if_empty(&mut self, at: u32) {
        let queue = &self.queues[at as usize];
        if queue.ends.iter().all(|e| e.first == NONE) && self.by_key.remove(&queue.key).is_some() {
            self.free.push(at);
        }
    }

    /// Groups have changed: files all legs under the groups of now.
    fn file_anew(&mut self, parties: &Parties) {
        self.by_key.clear();
        self.queues.clear();
        self.free.clear();
        for i in 0..self.legs.len() {
            let Kept { leg, consumed, .. } = self.legs[i];
            let queue = if consumed { u32::MAX } else { self.queue((parties.group(leg.owner), leg.instr)) };
            self.legs[i] = Kept { leg, consumed, queue, next: NONE };
            if !consumed {
                self.append(queue, leg.side, self.base + i as u64);
            }
        }
    }
}

impl Scenario for WashTrade {
    fn def(&self) -> &'static Def {
        &DEF
    }

    fn on_event(&mut self, input: &Input<'_, '_>, out: &mut Vec<Alert>) {
        if input.event.kind() != Kind::Exec {
            return;
        }
        self.metrics.events += 1;
        let Some(e) = leg(input) else {
            self.metrics.missing += 1;
            return;
        };
        if let Some((f, arm)) = self.judge(&e, input.parties) {
            self.metrics.alerts += 1;
            out.push(alert(&e, &f, arm, input));
        }
    }

    fn reset(&mut self) {
        self.base += self.legs.len() as u64;
        self.legs.clear();
        self.queues.clear();
        self.free.clear();
        self.by_key.clear();
        self.waiting.clear();
    }

    fn metrics(&self) -> Metrics {
        let held = (self.legs.len() + self.waiting.len()) as u64;
        Metrics { bound_hit: self.metrics.bound_hit + self.waiting.bound_hit, held, ..self.metrics }
    }
}

/// The execution of `input`, if it says all that is needed.
#[inline]
fn leg(input: &Input<'_, '_>) -> Option<Leg> {
    let order = Order::of(input.event)?;
    let exponent = order.common.kind_b as i8;
    let qty = Decimal::from_canonical(order.qty.get(), exponent);
    let px = Price(order.px.get()).some()?;
    let (instr, side) = (order.common.instrument.get(), order.side());
    let whole =
        instr != 0 && input.owner != 0 && matches!(side, 1 | 2) && exponent != EXP_NONE && qty.mantissa() > 0;
    whole.then(|| Leg {
        ts: order.common.ts_event.get(),
        px: px.0,
        qty,
        seq: input.seq,
        position: input.position.map_or(u64::MAX, |p| p.0),
        owner: input.owner,
        instr,
        venue: order.common.venue.get(),
        side: side - 1,
        id: IdKey::of(input.event, Field::MatchId, &order.id2),
    })
}

#[cold]
fn alert(e: &Leg, f: &Leg, arm: &'static str, input: &Input<'_, '_>) -> Alert {
    let mut detail = json!({"arm": arm, "seqs": [f.seq, e.seq]});
    if e.position != u64::MAX {
        detail["positions"] = json!([f.position, e.position]);
    }
    let group = input.parties.group(e.owner);
    Alert {
        scenario: DEF.id,
        ts: input.event.ts_event(),
        trigger_seq: e.seq,
        key: vec![
            ("group", name(input.names, Dict::Owner, group)),
            ("instr", name(input.names, Dict::Instrument, e.instr)),
        ],
        detail,
    }
}

/// The name of an id; an id without one is shown by its number.
fn name(names: &Dictionary, dict: Dict, id: u32) -> String {
    names.name(dict, id).map_or_else(|| format!("#{id}"), str::to_owned)
}

/// The parameters, ready for exact arithmetic.
#[derive(Clone, Copy, Debug)]
struct Limits {
    window_ns: i128,
    /// Billionths of a basis point.
    px_tol: i128,
    /// Billionths of a percent.
    qty_tol: i128,
}

const BILLION: i128 = 1_000_000_000;

impl Limits {
    fn new(params: &Params) -> Self {
        Self {
            window_ns: i128::from(params.uint("window_ms")) * 1_000_000,
            px_tol: params.nano("px_tol_bps").into(),
            qty_tol: params.nano("qty_tol_pct").into(),
        }
    }

    /// Whether an execution at `ts` can be forgotten at `now`.
    #[inline]
    fn is_over(&self, ts: i64, now: i64) -> bool {
        i128::from(now) - i128::from(ts) >= 2 * self.window_ns
    }

    /// Whether `e`, the later, and `f` of one group, instrument and opposite sides make a round trip.
    #[inline]
    fn meet(&self, e: &Leg, f: &Leg) -> bool {
        let age = i128::from(e.ts) - i128::from(f.ts);
        let same_match = e.venue == f.venue && e.id.is_some() && e.id == f.id;
        (0..self.window_ns).contains(&age)
            && !same_match
            && self.px_near(e.px, f.px)
            && self.qty_near(e.qty, f.qty)
    }

    /// |e − f| × 10,000 ≤ tolerance × f; every product is under 2^123.
    #[inline]
    fn px_near(&self, e: i64, f: i64) -> bool {
        let (e, f) = (i128::from(e), i128::from(f));
        (e - f).abs() * 10_000 * BILLION <= self.px_tol * f
    }

    /// |e − f| × 100 ≤ tolerance × f for quantities above zero, that is
    /// (100 − tolerance) × f ≤ 100 × e ≤ (100 + tolerance) × f.
    #[inline]
    fn qty_near(&self, e: Decimal, f: Decimal) -> bool {
        let hundred = 100 * BILLION;
        let low = (hundred - self.qty_tol).max(0);
        let (low, high) = (times(f, low), times(f, hundred + self.qty_tol));
        let e = times(e, hundred);
        at_most(low, e) && at_most(e, high)
    }
}

/// A number from 0 on as mantissa and exponent; the mantissa stays under 2^123.
fn times(d: Decimal, factor: i128) -> (u128, i8) {
    (d.mantissa().unsigned_abs() as u128 * factor.unsigned_abs(), d.exponent())
}

/// a ≤ b, exactly.
fn at_most((a, a_exp): (u128, i8), (b, b_exp): (u128, i8)) -> bool {
    let shift = i32::from(a_exp) - i32::from(b_exp);
    let scale = 10u128.checked_pow(shift.unsigned_abs());
    // What passes 128 bits on one side is greater than anything on the other.
    if shift >= 0 {
        a == 0 || scale.and_then(|s| a.checked_mul(s)).is_some_and(|a| a <= b)
    } else {
        a == 0 || (b != 0 && scale.and_then(|s| b.checked_mul(s)).is_none_or(|b| a <= b))
    }
}
