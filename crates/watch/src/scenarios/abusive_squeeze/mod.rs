//! Abusive squeeze: a group holds much of a contract shortly before it expires, and the contract trades above the next one.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - The expiry day itself is zero days before expiry, and counts. After it there is no alert.
//! - Open interest is that of the position event itself; if it names none above zero, the last float of the instrument
//!   takes its place. Without either there is no alert. The position must be above zero.
//! - A short position of an owner reduces the sum of the group. A position event without a quantity changes nothing and is counted as
//!   `missing`. Members of the group are those of now.
//! - Last trades are over all venues, after corrections, without those that are marked `no_last`. If several linked
//!   instruments have the next expiry, the last trade must be above that of each; each must have traded.
//! - Every position event of the group is judged, and alerts again while the conditions hold.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::fields;
use crate::ids::name_id;
use crate::missing::MissingValue;
use crate::number::Number;
use crate::params::ScenarioParams;
use crate::prints::Print;
use crate::state::{state_value, watch_state};
use crate::watch::{
    EvidencePlace, Scenario, ScenarioContext, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use std::collections::BTreeMap;
use unitape_model::{CivilDate, Decimal, EventField, EventKind, InstrumentId, NameKind};

/// The name of the scenario.
pub const ID: &str = "abusive_squeeze";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Ref, EventKind::Trade, EventKind::Position];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Market, SharedStateKind::Prints];

/// The scenario.
pub struct SqueezeScenario {
    min_share_pct: Number,
    settle_days: u64,
    /// The last position of each owner in each instrument.
    positions: BTreeMap<(InstrumentId, u32), HeldPosition>,
    bound_hit: u64,
}

#[derive(Clone, Copy)]
struct HeldPosition {
    qty: Decimal,
    place: EvidencePlace,
}

/// A contract that trades above those with the next expiry.
struct Premium {
    last: Print,
    /// The greatest of their last trades.
    next: Print,
    next_expiry: CivilDate,
}

/// Positions kept at most. Later ones of other owners and instruments are counted.
const POSITIONS_MAX: usize = 1 << 20;

state_value!(HeldPosition { qty, place });
watch_state!(SqueezeScenario { positions, bound_hit | min_share_pct, settle_days });

impl SqueezeScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        Self {
            min_share_pct: Number::billionths(params.nano("min_share_pct")),
            settle_days: params.uint("settle_days"),
            positions: BTreeMap::new(),
            bound_hit: 0,
        }
    }

    /// Keeps a position as the last one of its owner.
    fn keep(&mut self, key: (InstrumentId, u32), position: HeldPosition) {
        if self.positions.len() < POSITIONS_MAX || self.positions.contains_key(&key) {
            self.positions.insert(key, position);
        } else {
            self.bound_hit += 1;
        }
    }

    /// Judges the group of the owner. The error is the value that is missing.
    fn judge(
        &self,
        (instr, owner): (InstrumentId, u32),
        input: &ScenarioInput<'_, '_>,
    ) -> Result<Option<Alert>, MissingValue> {
        let context = input.context;
        let terms = context.market.reference(instr).copied().unwrap_or_default();
        let expiry = terms.expiry.ok_or(MissingValue::Reference(EventField::Expiry))?;
        let days_left = i64::from(expiry.days()) - i64::from(CivilDate::from_utc(input.ts).days());
        if !u64::try_from(days_left).is_ok_and(|days| days <= self.settle_days) {
            return Ok(None);
        }
        let is_given = |qty: &Decimal| qty.mantissa() > 0;
        let open_interest = fields::decimal(input.event, EventField::OpenInterest).filter(is_given);
        let total = open_interest
            .or(terms.float.filter(is_given))
            .ok_or(MissingValue::Field(EventField::OpenInterest))?;
        let group = context.parties.group(owner);
        let of_group = || {
            let of_instr = self.positions.range((instr, 0)..=(instr, u32::MAX));
            of_instr.filter(|((_, owner), _)| context.parties.group(*owner) == group)
        };
        let sum = |sum: Number, (_, held): (_, &HeldPosition)| sum + held.qty.into();
        let long = of_group().fold(Number::ZERO, sum);
        if !long.is_positive() || long * Number::whole(100) < self.min_share_pct * total.into() {
            return Ok(None);
        }
        let underlying = terms.underlying.ok_or(MissingValue::Reference(EventField::Underlying))?;
        let Some(premium) = premium(context, instr, underlying, expiry) else { return Ok(None) };
        let key = vec![
            ("group", context.name(NameKind::Owner, group)),
            ("instr", context.name(NameKind::Instrument, instr.0)),
        ];
        let values = json!({
            "long": long.text(), "of": total.to_string(), "days_left": days_left,
            "px": premium.last.px.to_string(), "next_px": premium.next.px.to_string(),
            "next_instr": context.name(NameKind::Instrument, premium.next.instr.0),
            "next_expiry": premium.next_expiry.to_string(),
        });
        let trades = [premium.last.place(), premium.next.place()];
        let evidence = of_group().map(|(_, held)| held.place).chain(trades);
        Ok(Some(Alert::new(ID, input.ts, context.seq, key, context.detail(values, evidence))))
    }
}

/// Returns the last trades if that of the contract is above that of each linked instrument with the next expiry.
fn premium(
    context: &ScenarioContext<'_>,
    instr: InstrumentId,
    underlying: InstrumentId,
    expiry: CivilDate,
) -> Option<Premium> {
    let later = || {
        let linked = context
            .market
            .references()
            .filter(|(instr, terms)| instr.0 != 0 && terms.underlying == Some(underlying));
        let dated = linked.filter_map(|(instr, terms)| Some((instr, terms.expiry?)));
        dated.filter(|(_, other)| *other > expiry)
    };
    let next_expiry = later().map(|(_, other)| other).min()?;
    let last = *context.prints.last_of_instr(instr)?;
    let peers = later().filter(|(_, other)| *other == next_expiry);
    let prints = peers.map(|(peer, _)| context.prints.last_of_instr(peer).copied());
    let next = prints.collect::<Option<Vec<_>>>()?.into_iter().max_by_key(|print| (print.px, print.seq))?;
    (last.px > next.px).then_some(Premium { last, next, next_expiry })
}

impl Scenario for SqueezeScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        if input.event.kind() != EventKind::Position {
            return;
        }
        let (owner, instr) = (name_id(input.event, EventField::Owner), input.event.instrument());
        let qty = fields::decimal(input.event, EventField::Qty);
        let qty = match (owner, instr.0, qty) {
            (0, _, _) => return out.missing(MissingValue::Field(EventField::Owner)),
            (_, 0, _) => return out.missing(MissingValue::Field(EventField::Instr)),
            (_, _, None) => return out.missing(MissingValue::Field(EventField::Qty)),
            (_, _, Some(qty)) => qty,
        };
        self.keep((instr, owner), HeldPosition { qty, place: input.context.place() });
        match self.judge((instr, owner), input) {
            Ok(alert) => alert.into_iter().for_each(|alert| out.alert(alert)),
            Err(value) => out.missing(value),
        }
    }

    fn reset(&mut self) {
        self.positions.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            bound_hit: self.bound_hit,
            held_entries: self.positions.len() as u64,
            ..ScenarioMetrics::default()
        }
    }
}
