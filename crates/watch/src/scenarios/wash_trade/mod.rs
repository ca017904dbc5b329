//! Wash trade: a beneficial group trades with itself.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - *Legs are consumed once*: an execution is evidence of at most one alert, of either arm. A leg that a
//!   round trip has used no longer makes a self match, and the other way round.
//! - *Two legs* of a match are executions on opposite sides with the same match id, venue, instrument and session date. The later one
//!   decides, with the earliest of the others that is of the same group; a match gives one alert. There is no window
//!   between the legs of a match: they wait ([`WAITING_MAX`] pairs at most, [`LEGS_PER_MATCH_MAX`] legs of one match; those
//!   of matches in which as much was bought as sold are forgotten first).
//! - *Same group* is judged when the alert would be given, with all `party` events up to then.
//! - *Different match id*: ids of two venues or two session dates are never the same, and an execution without one
//!   differs from all others.
//! - *Earliest* is by sequence. Time may go back within a stream: the window is taken literally, from the
//!   time of the event at hand, so an execution stamped later than that is not in it. An execution is
//!   forgotten when two later ones in a row are two windows ahead of it and of all that are still kept from
//!   before it, so lines up to one window late find what they should; one that is later still is counted as
//!   `late` when something was forgotten that it might have met.
//! - An execution without instrument, side, price, quantity above zero or owner (its own or its order's)
//!   says nothing and is counted as `missing`.

mod legs;
mod matches;
#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::{BILLION, at_most, times};
use crate::kept::OptionalPosition;
use crate::missing::MissingValue;
use crate::orders::quantity;
use crate::params::ScenarioParams;
use crate::parties::OwnerGroups;
use crate::state::{state_value, watch_state};
use crate::watch::{MatchKey, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind};
use legs::LegLog;
use matches::MatchTable;
use serde_json::json;
use unitape_model::{Decimal, EventField, EventKind, InstrumentId, NameKind, Price, UnixNanos};

/// The name of the scenario.
pub const ID: &str = "wash_trade";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Exec];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders, SharedStateKind::SessionDates];

/// Executions kept for round trips at most; the oldest is forgotten first.
pub const LEGS_MAX: usize = 1 << 20;
pub use matches::LEGS_PER_MATCH_MAX;

/// Pairs of legs that wait for others of their match at most; the oldest is forgotten first.
pub const WAITING_MAX: usize = 1 << 18;

/// The fields of an execution that the scenario reads.
#[derive(Clone, Copy, Debug)]
struct ExecutionLeg {
    ts: UnixNanos,
    px: i64,
    qty: Decimal,
    seq: u64,
    position: OptionalPosition,
    owner: u32,
    instr: InstrumentId,
    /// 0 buy, 1 sell.
    side: u8,
    match_key: Option<MatchKey>,
}

/// The scenario.
pub struct WashTradeScenario {
    limits: WashTradeLimits,
    legs: LegLog,
    matches: MatchTable,
    late: u64,
}

state_value!(ExecutionLeg { ts, px, qty, seq, position, owner, instr, side, match_key });
watch_state!(WashTradeScenario { legs, matches, late | limits });

impl WashTradeScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        Self::bounded(WashTradeLimits::new(params), LEGS_MAX, WAITING_MAX)
    }

    fn bounded(limits: WashTradeLimits, legs_max: usize, waiting_max: usize) -> Self {
        Self { legs: LegLog::new(&limits, legs_max), limits, matches: MatchTable::new(waiting_max), late: 0 }
    }

    /// Finds and consumes the leg that makes an alert with `e`. Also returns the name of the rule that matched.
    fn find_alert_leg(
        &mut self,
        e: &ExecutionLeg,
        parties: &OwnerGroups,
        expiry_ts: UnixNanos,
    ) -> Option<(ExecutionLeg, &'static str)> {
        self.legs.expire(expiry_ts, &self.limits);
        self.legs.follow(parties);
        let group = parties.group(e.owner);
        let key = e.match_key;
        if let Some((number, first)) = key.and_then(|key| self.matches.take_opposite_leg(&key, e, parties)) {
            key.into_iter().for_each(|key| self.matches.add(&key, e, None));
            self.legs.consume(number);
            return Some((first, "self_match"));
        }
        // Something was forgotten that may belong into its window.
        let after = i128::from(e.ts.0) - self.limits.window_ns;
        self.late += u64::from(i128::from(self.legs.forgotten_ts.0) > after);
        if let Some((number, f)) = self.legs.find(group, e, &self.limits) {
            self.legs.consume(number);
            if let Some(key) = &f.match_key {
                self.matches.consume(key, number);
            }
            key.into_iter().for_each(|key| self.matches.add(&key, e, None));
            return Some((f, "round_trip"));
        }
        let number = self.legs.keep(group, *e);
        if let Some(key) = key {
            self.matches.add(&key, e, Some(number));
        }
        None
    }
}

impl Scenario for WashTradeScenario {
    #[inline]
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let e = match leg(input) {
            Ok(e) => e,
            Err(field) => return out.missing(MissingValue::Field(field)),
        };
        if let Some((f, arm)) = self.find_alert_leg(&e, input.context.parties, input.context.expiry_ts) {
            out.alert(alert(&e, &f, arm, input));
        }
    }

    fn reset(&mut self) {
        self.legs.clear();
        self.matches.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            expired: self.legs.expired,
            bound_hit: self.legs.bound_hit + self.matches.forgotten(),
            held_entries: (self.legs.len() + self.matches.len()) as u64,
            late: self.late,
            ..ScenarioMetrics::default()
        }
    }
}

/// Makes a leg of the execution in `input`. The error is the first field that it lacks.
#[inline]
fn leg(input: &ScenarioInput<'_, '_>) -> Result<ExecutionLeg, EventField> {
    let Some(record) = input.record else { return Err(EventField::Oid) };
    let require = |is_there: bool, field| if is_there { Ok(()) } else { Err(field) };
    let qty = quantity(record).filter(|q| q.mantissa() > 0).ok_or(EventField::Qty)?;
    let px = Price(record.px.get()).as_option().ok_or(EventField::Px)?;
    require(input.instr.0 != 0, EventField::Instr)?;
    require(input.owner != 0, EventField::Owner)?;
    require(matches!(input.side, 1 | 2), EventField::Side)?;
    Ok(ExecutionLeg {
        ts: input.ts,
        px: px.0,
        qty,
        seq: input.context.seq,
        position: input.context.kept_position(),
        owner: input.owner,
        instr: input.instr,
        side: input.side - 1,
        match_key: input.match_key(),
    })
}

#[cold]
fn alert(e: &ExecutionLeg, f: &ExecutionLeg, arm: &'static str, input: &ScenarioInput<'_, '_>) -> Alert {
    let context = input.context;
    let mut detail = json!({"arm": arm, "seqs": [f.seq, e.seq]});
    if let (Some(earlier), Some(position)) = (f.position.get(), e.position.get()) {
        detail["positions"] = json!([earlier.0, position.0]);
    }
    let group = context.parties.group(e.owner);
    let key = vec![
        ("group", context.name(NameKind::Owner, group)),
        ("instr", context.name(NameKind::Instrument, e.instr.0)),
    ];
    Alert::new(ID, e.ts, e.seq, key, detail)
}

/// The parameters, ready for exact arithmetic.
#[derive(Clone, Copy, Debug)]
struct WashTradeLimits {
    window_ns: i128,
    /// Billionths of a basis point.
    px_tol: u64,
    /// Billionths of a percent.
    qty_tol: u64,
}

impl WashTradeLimits {
    fn new(params: &ScenarioParams) -> Self {
        Self {
            window_ns: params.millis("window_ms"),
            px_tol: params.nano("px_tol_bps"),
            qty_tol: params.nano("qty_tol_pct"),
        }
    }

    /// Returns whether an execution at `ts` can be forgotten at `now`.
    #[inline]
    fn is_over(&self, ts: UnixNanos, now: UnixNanos) -> bool {
        i128::from(now.0) - i128::from(ts.0) >= 2 * self.window_ns
    }

    /// Returns whether `e` and the earlier `f` make a round trip. Both are of one group and instrument, on opposite
    /// sides.
    #[inline]
    fn is_round_trip(&self, e: &ExecutionLeg, f: &ExecutionLeg) -> bool {
        let age = i128::from(e.ts.0) - i128::from(f.ts.0);
        let same_match = e.match_key.is_some() && e.match_key == f.match_key;
        (0..self.window_ns).contains(&age)
            && !same_match
            && self.px_near(e.px, f.px)
            && self.qty_near(e.qty, f.qty)
    }

    /// Returns whether |e − f| × 10,000 ≤ tolerance × f. Every product is under 2^123.
    #[inline]
    fn px_near(&self, e: i64, f: i64) -> bool {
        let (e, f) = (i128::from(e), i128::from(f));
        (e - f).abs() * 10_000 * BILLION <= i128::from(self.px_tol) * f
    }

    /// Returns whether |e − f| × 100 ≤ tolerance × f for quantities above zero, that is (100 − tolerance) × f ≤ 100 × e
    /// ≤ (100 + tolerance) × f.
    #[inline]
    fn qty_near(&self, e: Decimal, f: Decimal) -> bool {
        const HUNDRED: u64 = 100 * 1_000_000_000;
        let low = HUNDRED.saturating_sub(self.qty_tol);
        let (low, high) = (times(f, low), times(f, HUNDRED + self.qty_tol));
        let e = times(e, HUNDRED);
        at_most(low, e) && at_most(e, high)
    }
}
