//! Wash trade: a beneficial group trades with itself.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - *Legs are consumed once*: an execution is evidence of at most one alert, of either arm. A leg that a
//!   round trip has used no longer makes a self match, and the other way round.
//! - *Two legs* of a match are executions on opposite sides with the same match id, venue and instrument. The later one
//!   decides, with the earliest of the others that is of the same group; a match gives one alert. There is no window
//!   between the legs of a match: they wait ([`WAITING_MAX`] pairs at most, [`LEGS_PER_MATCH_MAX`] legs of one match; those
//!   of matches in which as much was bought as sold are forgotten first).
//! - *Same group* is judged when the alert would be given, with all `party` events up to then.
//! - *Different match id*: ids of two venues are never the same, and an execution without one differs from
//!   all others.
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
use crate::def::{ConductClass, ParamDef, ParamType, ScenarioDef, SharedStateKind};
use crate::exact::{BILLION, at_most, times};
use crate::ids::IdKey;
use crate::kept::OptionalPosition;
use crate::orders::quantity;
use crate::params::ScenarioParams;
use crate::parties::OwnerGroups;
use crate::watch::{Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput};
use legs::LegLog;
use matches::MatchTable;
use serde_json::json;
use unitape_model::{Decimal, EventField, EventKind, InstrumentId, NameKind, Price, UnixNanos};

/// Definition of the scenario.
pub static DEF: ScenarioDef = ScenarioDef {
    id: "wash_trade",
    title: "Wash trade / self match / offsetting round trip",
    class: ConductClass::Manipulation,
    inputs: &[EventKind::Exec],
    needs: &[SharedStateKind::Orders],
    key: &["group", "instr"],
    params: &[
        ParamDef {
            name: "window_ms",
            default: "60000",
            unit: "ms",
            param_type: ParamType::UpTo(1_000_000_000_000),
            description: "a round trip closes less than this after it began",
        },
        ParamDef {
            name: "px_tol_bps",
            default: "5",
            unit: "bps of the earlier price",
            param_type: ParamType::Tolerance,
            description: "prices of a round trip differ by at most this",
        },
        ParamDef {
            name: "qty_tol_pct",
            default: "10",
            unit: "% of the earlier quantity",
            param_type: ParamType::Tolerance,
            description: "quantities of a round trip differ by at most this",
        },
    ],
    trigger: "Compare beneficial group (party map; default = owner). Arm self_match: both legs of one match_id have \
              the same group and opposite sides. Arm round_trip: exec e meets the earliest unconsumed exec f of the \
              same group+instrument (any venue), opposite side, different match_id, f.ts in (e.ts-window,e.ts], |px \
              diff|*10000<=px_tol_bps*f.px, |qty diff|*100<=qty_tol_pct*f.qty. Legs are consumed once.",
    clarified: "self_match is decided when the second leg arrives; earliest means the earliest exec that satisfies \
                all conditions. group defaults to owner. A match_id may have more than two legs (auction prints): any \
                two legs on opposite sides with the same beneficial owner are a self_match, decided when the later of \
                the two arrives, one alert per match_id, venue and instrument.",
    regulation: &[
        "MAR Art. 12(1)(a)",
        "Del. Reg. (EU) 2016/522 Annex II (wash trades)",
        "CEA s.4c(a)(1)-(2)",
        "FINRA 5210.02 (self-trades) / 6140",
    ],
};

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
    venue: u16,
    /// 0 buy, 1 sell.
    side: u8,
    id: Option<IdKey>,
}

/// The scenario.
pub struct WashTradeScenario {
    limits: WashTradeLimits,
    legs: LegLog,
    matches: MatchTable,
    /// Time of the execution before.
    last_ts: UnixNanos,
    metrics: ScenarioMetrics,
}

impl WashTradeScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        Self::bounded(WashTradeLimits::new(params), LEGS_MAX, WAITING_MAX)
    }

    fn bounded(limits: WashTradeLimits, legs_max: usize, waiting_max: usize) -> Self {
        Self {
            legs: LegLog::new(&limits, legs_max),
            limits,
            matches: MatchTable::new(waiting_max),
            last_ts: UnixNanos(i64::MAX),
            metrics: ScenarioMetrics::default(),
        }
    }

    /// Finds and consumes the leg that makes an alert with `e`. Also returns the name of the rule that matched.
    fn find_alert_leg(
        &mut self,
        e: &ExecutionLeg,
        parties: &OwnerGroups,
    ) -> Option<(ExecutionLeg, &'static str)> {
        // One mad time stamp must not make everything else forgotten, so two in a row have to agree.
        let now = e.ts.min(std::mem::replace(&mut self.last_ts, e.ts));
        self.legs.expire(now, &self.limits);
        self.legs.follow(parties);
        let group = parties.group(e.owner);
        let key = e.id.map(|id| (e.venue, e.instr, id));
        if let Some((number, first)) = key.and_then(|key| self.matches.take_opposite_leg(&key, e, parties)) {
            key.into_iter().for_each(|key| self.matches.add(&key, e, None));
            self.legs.consume(number);
            return Some((first, "self_match"));
        }
        // Something was forgotten that may belong into its window.
        let after = i128::from(e.ts.0) - self.limits.window_ns;
        self.metrics.late += u64::from(i128::from(self.legs.forgotten_ts.0) > after);
        if let Some((number, f)) = self.legs.find(group, e, &self.limits) {
            self.legs.consume(number);
            if let Some(id) = f.id {
                self.matches.consume(&(f.venue, f.instr, id), number);
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
    fn def(&self) -> &'static ScenarioDef {
        &DEF
    }

    #[inline]
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        self.metrics.events += 1;
        let Some(e) = leg(input) else {
            self.metrics.missing += 1;
            return;
        };
        if let Some((f, arm)) = self.find_alert_leg(&e, input.context.parties) {
            self.metrics.alerts += 1;
            out.alert(alert(&e, &f, arm, input));
        }
    }

    fn reset(&mut self) {
        self.legs.clear();
        self.matches.clear();
        self.last_ts = UnixNanos(i64::MAX);
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            expired: self.legs.expired,
            bound_hit: self.legs.bound_hit + self.matches.forgotten(),
            held_entries: (self.legs.len() + self.matches.len()) as u64,
            ..self.metrics
        }
    }
}

/// Makes a leg of the execution in `input`, if the execution has all needed values.
#[inline]
fn leg(input: &ScenarioInput<'_, '_>) -> Option<ExecutionLeg> {
    let record = input.record?;
    let qty = quantity(record).filter(|q| q.mantissa() > 0)?;
    let px = Price(record.px.get()).as_option()?;
    let (instr, side) = (InstrumentId(record.common.instrument.get()), record.side());
    let is_complete = instr.0 != 0 && input.owner != 0 && matches!(side, 1 | 2);
    is_complete.then(|| ExecutionLeg {
        ts: UnixNanos(record.common.ts_event.get()),
        px: px.0,
        qty,
        seq: input.context.seq,
        position: input.context.kept_position(),
        owner: input.owner,
        instr,
        venue: record.common.venue.get(),
        side: side - 1,
        id: IdKey::from_slot(input.event, EventField::MatchId, &record.id2),
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
    Alert::new(DEF.id, input.event.ts_event(), e.seq, key, detail)
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
        let same_match = e.venue == f.venue && e.id.is_some() && e.id == f.id;
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
