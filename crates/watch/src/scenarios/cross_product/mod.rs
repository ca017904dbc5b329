//! Cross product: aggressive trading moves an underlying, and a position in a linked instrument gains by it.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - The price moves from the first public trade in the window to the last one before the execution, over all venues, after
//!   corrections. It must move along the side of the execution: up for a purchase. A print with `no_last` counts in the
//!   volume alone. Without a print, or from a price that is not above zero, there is no move.
//! - Members of the group are those of now, for all their executions. Underlying and multiplier are the last that `ref`
//!   gave. An execution in a linked instrument without a multiplier gives no benefit and is counted as `missing`.
//! - The executions so far include those of clients that the group owns, of any liquidity and any age.
//! - An execution without owner, instrument, side, price or a quantity above zero does not count and is counted as `missing`.
//! - Every aggressive execution is judged, and alerts again while the conditions hold.
//!
//! The two sides of the rule, the aggressive executions and what each owner bought so far, make the module longer than most.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::compare_bps;
use crate::fields;
use crate::missing::MissingValue;
use crate::number::Number;
use crate::orders::quantity;
use crate::params::ScenarioParams;
use crate::prints::Print;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeLogs;
use crate::watch::{
    EvidencePlace, Scenario, ScenarioContext, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use unitape_model::{Decimal, EventField, EventKind, InstrumentId, NameKind, Price};

/// The name of the scenario.
pub const ID: &str = "cross_product";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Ref, EventKind::Trade, EventKind::Exec];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] =
    &[SharedStateKind::Orders, SharedStateKind::Market, SharedStateKind::Prints];

/// The scenario.
pub struct CrossProductScenario {
    window_ns: i128,
    /// Billionths.
    min_move_bps: u64,
    min_deriv_delta_ratio: Number,
    /// Aggressive executions by instrument and side.
    aggressive: TimeLogs<(InstrumentId, u8), AggressiveExec>,
    /// What each owner bought of each instrument, less what it sold.
    bought: BTreeMap<(InstrumentId, u32), NetPurchase>,
    late: u64,
    bound_hit: u64,
}

#[derive(Clone, Copy)]
struct AggressiveExec {
    owner: u32,
    px: Price,
    qty: Decimal,
    place: EvidencePlace,
}

struct NetPurchase {
    qty: Number,
    /// The last execution.
    place: EvidencePlace,
}

/// An execution with all that it needs.
struct Deal {
    owner: u32,
    instr: InstrumentId,
    side: u8,
    px: Price,
    qty: Decimal,
}

/// Pairs of owner and instrument kept at most. Executions of later ones are counted.
const PAIRS_MAX: usize = 1 << 20;

state_value!(AggressiveExec { owner, px, qty, place });
state_value!(NetPurchase { qty, place });
watch_state!(CrossProductScenario {
    aggressive, bought, late, bound_hit | window_ns, min_move_bps, min_deriv_delta_ratio,
});

impl CrossProductScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let window_ns = params.millis("window_ms");
        Self {
            window_ns,
            min_move_bps: params.nano("min_move_bps"),
            min_deriv_delta_ratio: Number::billionths(params.nano("min_deriv_delta_ratio")),
            aggressive: TimeLogs::new(window_ns),
            bought: BTreeMap::new(),
            late: 0,
            bound_hit: 0,
        }
    }

    /// Adds an execution to what its owner bought.
    fn keep(&mut self, deal: &Deal, place: EvidencePlace) {
        let key = (deal.instr, deal.owner);
        if self.bought.len() == PAIRS_MAX && !self.bought.contains_key(&key) {
            self.bound_hit += 1;
            return;
        }
        let net = self.bought.entry(key).or_insert(NetPurchase { qty: Number::ZERO, place });
        let qty = Number::from(deal.qty);
        net.qty = if deal.side == BUY { net.qty + qty } else { net.qty - qty };
        net.place = place;
    }

    /// Judges an aggressive execution, which is already kept.
    fn judge(&mut self, deal: &Deal, input: &ScenarioInput<'_, '_>) -> Option<Alert> {
        let context = input.context;
        let after = i128::from(input.ts.0) - self.window_ns;
        let prints = context.prints.of_instr(deal.instr, after, input.ts);
        let window = self.aggressive.window(&(deal.instr, deal.side), after, input.ts);
        self.late += u64::from(!prints.is_complete || !window.is_complete);
        let priced = || prints.iter().map(|(_, print)| print).filter(|print| !print.no_last);
        let first = priced().min_by_key(|print| print.seq)?;
        let last = priced().max_by_key(|print| print.seq)?;
        if !self.is_moved(first, last, deal.side) {
            return None;
        }
        let group = context.parties.group(deal.owner);
        let mine = || {
            let execs = window.iter().map(|(_, exec)| exec);
            execs.filter(|exec| context.parties.group(exec.owner) == group)
        };
        let qty = mine().fold(Number::ZERO, |sum, exec| sum + exec.qty.into());
        let volume = prints.iter().fold(Number::ZERO, |sum, (_, print)| sum + print.qty.into());
        if qty * Number::whole(100) < volume * Number::whole(MIN_SHARE_PCT) {
            return None;
        }
        let first_px = Number::from(first.px);
        let (exposure, held) = self.exposure(deal.instr, group, context);
        let benefit = (Number::from(last.px) - first_px) * exposure;
        let cost = mine()
            .fold(Number::ZERO, |sum, exec| sum + (Number::from(exec.px) - first_px).abs() * exec.qty.into());
        if !benefit.is_positive() || benefit < self.min_deriv_delta_ratio * cost {
            return None;
        }
        let key = vec![
            ("group", context.name(NameKind::Owner, group)),
            ("underlying", context.name(NameKind::Instrument, deal.instr.0)),
        ];
        let values = json!({
            "first_px": first.px.to_string(), "last_px": last.px.to_string(), "aggressive": qty.text(),
            "volume": volume.text(), "exposure": exposure.text(), "benefit": benefit.text(), "cost": cost.text(),
        });
        let evidence = mine().map(|exec| exec.place).chain([first.place(), last.place()]).chain(held);
        Some(Alert::new(ID, input.ts, context.seq, key, context.detail(values, evidence)))
    }

    /// Returns whether the price moved far enough along a side.
    fn is_moved(&self, first: &Print, last: &Print, side: u8) -> bool {
        let rise = i128::from(last.px.0) - i128::from(first.px.0);
        let distance = if side == BUY { rise } else { -rise };
        first.px.0 > 0
            && distance > 0
            && compare_bps(distance, self.min_move_bps, first.px.0.into()) != Ordering::Less
    }

    /// Returns the units of the underlying that a group bought in linked instruments, and the last execution of each owner there.
    fn exposure(
        &self,
        underlying: InstrumentId,
        group: u32,
        context: &ScenarioContext<'_>,
    ) -> (Number, Vec<EvidencePlace>) {
        let (mut exposure, mut places) = (Number::ZERO, Vec::new());
        let linked = context.market.references().filter(|(_, terms)| terms.underlying == Some(underlying));
        for (instr, multiplier) in linked.filter_map(|(instr, terms)| Some((instr, terms.multiplier?))) {
            let of_instr = self.bought.range((instr, 0)..=(instr, u32::MAX));
            for (_, net) in of_instr.filter(|((_, owner), _)| context.parties.group(*owner) == group) {
                exposure = exposure + net.qty * multiplier.into();
                places.push(net.place);
            }
        }
        (exposure, places)
    }
}

impl Scenario for CrossProductScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        if input.event.kind() != EventKind::Exec {
            return;
        }
        let deal = match deal(input) {
            Ok(deal) => deal,
            Err(field) => return out.missing(MissingValue::Field(field)),
        };
        let (context, place) = (input.context, input.context.place());
        self.keep(&deal, place);
        let terms = context.market.reference(deal.instr);
        if terms.is_some_and(|terms| terms.underlying.is_some() && terms.multiplier.is_none()) {
            out.missing(MissingValue::Reference(EventField::Multiplier));
        }
        if fields::has_text(input.event, EventField::Liq, "R") {
            let exec = AggressiveExec { owner: deal.owner, px: deal.px, qty: deal.qty, place };
            self.aggressive.add((deal.instr, deal.side), input.ts, exec, context.expiry_ts);
            self.judge(&deal, input).into_iter().for_each(|alert| out.alert(alert));
        }
    }

    fn print_window_ns(&self) -> i128 {
        self.window_ns
    }

    fn reset(&mut self) {
        self.aggressive.clear();
        self.bought.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            expired: self.aggressive.expired,
            bound_hit: self.bound_hit + self.aggressive.bound_hit,
            held_entries: (self.aggressive.entry_count() + self.bought.len()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}

/// Returns an execution with all that it needs, or the field that it lacks.
fn deal(input: &ScenarioInput<'_, '_>) -> Result<Deal, EventField> {
    let ScenarioInput { owner, instr, side, record, .. } = *input;
    let qty = record.and_then(quantity).filter(|qty| qty.mantissa() > 0);
    match (owner, instr.0, side) {
        (0, _, _) => Err(EventField::Owner),
        (_, 0, _) => Err(EventField::Instr),
        (_, _, 1 | 2) => Ok(Deal {
            owner,
            instr,
            side,
            px: record.and_then(|record| Price(record.px.get()).as_option()).ok_or(EventField::Px)?,
            qty: qty.ok_or(EventField::Qty)?,
        }),
        _ => Err(EventField::Side),
    }
}

const BUY: u8 = 1;
/// The aggressive executions are at least this much of the public volume.
const MIN_SHARE_PCT: i128 = 25;
