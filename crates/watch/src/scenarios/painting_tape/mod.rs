//! Painting the tape: a group gives many small prints in one direction and ends up where it began.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - A print of the group is a match of which it has a leg. Its time, price and quantity are those of the first leg
//!   by sequence. An execution without match id is a print of its own.
//! - A `trade` with action `cancel` or `correct` of the same venue, instrument, match id and session date changes
//!   the legs that came before it: they do not count, or their print has the new price and quantity. A corrected
//!   print does not change the quantity of a leg.
//! - *Its volume* and *net position change* are those of all its legs in the window, small or not.
//! - Ticks are taken between successive small prints that are both in the window, in the order of their first legs.
//! - An execution with the flag `no_last` counts in volume alone.
//! - The group is judged as known at the execution, also for earlier legs.
//! - Nothing is consumed: every further execution may alert.
//!
//! Legs are kept by owner, and the owners of a group are listed anew after a group changed. Of a match 256 legs are kept. The
//! file is long because prints change after they were given.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::QuantitySum;
use crate::ids::field_text;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::number::Number;
use crate::orders::quantity;
use crate::params::ScenarioParams;
use crate::parties::OwnerGroups;
use crate::prints::has_trade_flag;
use crate::state::{StateFault, state_value, watch_state};
use crate::time_logs::TimeLogs;
use crate::watch::{
    EvidencePlace, MatchKey, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use unitape_model::records::TradeRecord;
use unitape_model::{Decimal, EventField, EventKind, EventValue, InstrumentId, NameKind, Price};

/// The name of the scenario.
pub const ID: &str = "painting_tape";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Exec, EventKind::Trade];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders, SharedStateKind::SessionDates];

/// The scenario.
pub struct PaintingTapeScenario {
    window_ns: i128,
    min_trades: usize,
    max_trade_qty: Number,
    min_upticks: u64,
    legs: TimeLogs<OwnerInstrument, PrintLeg>,
    matches: KeyedStates<MatchKey, MatchLegs>,
    /// The owners of a group that have legs in an instrument.
    members: KeyedStates<OwnerInstrument, Vec<u32>>,
    /// The state of the groups for which `members` was made; `None` if it must be made again.
    group_changes: Option<u64>,
    late: u64,
    bound_hit: u64,
}

/// An owner or a group, and an instrument.
type OwnerInstrument = (u32, InstrumentId);

/// An execution, and its print as it counts now.
#[derive(Clone, Copy)]
struct PrintLeg {
    place: EvidencePlace,
    match_key: Option<MatchKey>,
    side: u8,
    qty: Decimal,
    px: Price,
    print_qty: Decimal,
    /// The print counts in volumes alone.
    no_last: bool,
}

/// The legs of a match that count: owner and ordinal, the earliest first.
#[derive(Default)]
struct MatchLegs {
    legs: Vec<(u32, u64)>,
}

/// The small prints and the volume of a group.
struct GroupActivity {
    small: Vec<PrintLeg>,
    /// Bought and sold.
    volume: [QuantitySum; 2],
}

/// Legs of one match at most; later ones do not count.
const LEGS_MAX: usize = 256;

state_value!(PrintLeg { place, match_key, side, qty, px, print_qty, no_last });
state_value!(MatchLegs { legs });
watch_state!(PaintingTapeScenario {
    legs, matches, late, bound_hit | window_ns, min_trades, max_trade_qty, min_upticks, members, group_changes,
} then forget_members);

impl PaintingTapeScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let window_ns = 1_000_000_000 * i128::from(params.uint("window_s"));
        Self {
            window_ns,
            min_trades: usize::try_from(params.uint("min_trades")).unwrap_or(usize::MAX),
            max_trade_qty: params.amount("max_trade_qty").into(),
            min_upticks: params.uint("min_upticks"),
            legs: TimeLogs::new(window_ns),
            matches: KeyedStates::new(),
            members: KeyedStates::new(),
            group_changes: None,
            late: 0,
            bound_hit: 0,
        }
    }

    fn forget_members(&mut self) -> Result<(), StateFault> {
        self.members.clear();
        self.group_changes = None;
        Ok(())
    }

    fn on_exec(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let (context, owner, instr, ts) = (input.context, input.owner, input.instr, input.ts);
        let leg = match print_leg(input) {
            Ok(leg) => leg,
            Err(field) => return out.missing(MissingValue::Field(field)),
        };
        if let Some(key) = leg.match_key {
            let of_match = self.matches.get_or_insert_with(key, MatchLegs::default);
            if of_match.legs.len() == LEGS_MAX {
                self.bound_hit += 1;
                return;
            }
            of_match.legs.push((owner, leg.place.seq));
        }
        self.legs.add((owner, instr), ts, leg, context.expiry_ts);
        self.follow(context.parties);
        let group = context.parties.group(owner);
        let members = self.members.get_or_insert_with((group, instr), Vec::new);
        if !members.contains(&owner) {
            members.push(owner);
        }
        let after = i128::from(ts.0) - self.window_ns;
        let window = |owner: &u32| self.legs.window(&(*owner, instr), after, ts);
        let windows: Vec<_> = members.iter().map(window).collect();
        // No owner: members that were forgotten are not in the list.
        let is_complete = window(&0).is_complete && windows.iter().all(|window| window.is_complete);
        self.late += u64::from(!is_complete);
        if windows.iter().map(|window| window.len()).sum::<usize>() < self.min_trades {
            return;
        }
        let legs = windows.iter().flat_map(|window| window.iter().map(|(_, leg)| leg));
        let activity = self.activity(legs, group, context.parties);
        let [ups, downs] = activity.ticks();
        let fires = activity.small.len() >= self.min_trades
            && ups.max(downs) >= self.min_upticks
            && activity.is_flat();
        if fires {
            let key = vec![
                ("group", context.name(NameKind::Owner, group)),
                ("instr", context.name(NameKind::Instrument, instr.0)),
            ];
            let values = json!({ "trades": activity.small.len(), "upticks": ups, "downticks": downs });
            let detail = context.detail(values, activity.small.iter().map(|leg| leg.place));
            out.alert(Alert::new(ID, ts, context.seq, key, detail));
        }
    }

    /// Makes the lists of members again after a group changed.
    fn follow(&mut self, parties: &OwnerGroups) {
        if self.group_changes == Some(parties.changes()) {
            return;
        }
        self.group_changes = Some(parties.changes());
        self.members.clear();
        for &(owner, instr) in self.legs.keys() {
            let members = self.members.get_or_insert_with((parties.group(owner), instr), Vec::new);
            members.push(owner);
        }
    }

    /// Sums the legs of a group up, and finds its small prints: a print counts at the first leg of the group.
    fn activity<'l>(
        &self,
        legs: impl Iterator<Item = &'l PrintLeg>,
        group: u32,
        parties: &OwnerGroups,
    ) -> GroupActivity {
        let mut activity = GroupActivity { small: Vec::new(), volume: [QuantitySum::ZERO; 2] };
        for leg in legs {
            activity.volume[usize::from(leg.side - 1)].add(leg.qty);
            let of_match = leg.match_key.and_then(|key| self.matches.get(&key));
            let first =
                of_match.and_then(|m| m.legs.iter().find(|(owner, _)| parties.group(*owner) == group));
            let is_first = first.is_none_or(|(_, seq)| *seq == leg.place.seq);
            if is_first && !leg.no_last && Number::from(leg.print_qty) <= self.max_trade_qty {
                activity.small.push(*leg);
            }
        }
        activity.small.sort_unstable_by_key(|leg| leg.place.seq);
        activity
    }

    /// Cancels or corrects the print of the legs that came before.
    fn on_trade(&mut self, input: &ScenarioInput<'_, '_>) {
        let mut scratch = [0; 36];
        let action = field_text(input.event, EventField::Action, &mut scratch);
        let correction = match action {
            Some("cancel") => None,
            Some("correct") => corrected_print(input),
            _ => return,
        };
        let Some(key) = input.match_key() else { return };
        let Some(of_match) = self.matches.get(&key) else { return };
        for (owner, _) in &of_match.legs {
            self.legs.retain(&(*owner, key.instr), |leg| {
                if leg.match_key != Some(key) {
                    return true;
                }
                correction.is_some_and(|(px, qty)| {
                    (leg.px, leg.print_qty) = (px, qty);
                    true
                })
            });
        }
        if correction.is_none() {
            self.matches.remove(&key);
        }
    }
}

impl GroupActivity {
    /// Counts the prints above and below the ones before them.
    fn ticks(&self) -> [u64; 2] {
        let pairs = || self.small.windows(2);
        let ups = pairs().filter(|pair| pair[1].px > pair[0].px).count();
        let downs = pairs().filter(|pair| pair[1].px < pair[0].px).count();
        [ups as u64, downs as u64]
    }

    /// Returns whether the position changed by 10 % of the volume at most.
    fn is_flat(&self) -> bool {
        let [bought, sold] = self.volume;
        let net = bought.max(sold).minus_earlier(&bought.min(sold));
        let mut volume = bought;
        volume.add_sum(&sold);
        net.times(100) <= volume.times(10)
    }
}

/// Makes a leg of the execution in `input`. The error is the first field that it lacks.
fn print_leg(input: &ScenarioInput<'_, '_>) -> Result<PrintLeg, EventField> {
    let require = |is_there: bool, field| if is_there { Ok(()) } else { Err(field) };
    require(input.owner != 0, EventField::Owner)?;
    require(input.instr.0 != 0, EventField::Instr)?;
    require(matches!(input.side, 1 | 2), EventField::Side)?;
    let px = input.record.and_then(|record| Price(record.px.get()).as_option()).ok_or(EventField::Px)?;
    let qty = input.record.and_then(quantity).filter(|qty| qty.mantissa() > 0).ok_or(EventField::Qty)?;
    Ok(PrintLeg {
        place: input.context.place(),
        match_key: input.match_key(),
        side: input.side,
        qty,
        px,
        print_qty: qty,
        no_last: has_trade_flag(input.event, "no_last"),
    })
}

/// Returns the new price and quantity that a trade gives.
fn corrected_print(input: &ScenarioInput<'_, '_>) -> Option<(Price, Decimal)> {
    let px = Price(TradeRecord::from_event(input.event)?.px.get()).as_option()?;
    match input.event.field(EventField::Qty, &mut [0; 36]) {
        Some(EventValue::Decimal(qty)) => Some((px, qty)),
        _ => None,
    }
}

impl Scenario for PaintingTapeScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        match input.event.kind() {
            EventKind::Trade => self.on_trade(input),
            _ => self.on_exec(input, out),
        }
    }

    fn reset(&mut self) {
        self.legs.clear();
        self.matches.clear();
        self.members.clear();
        self.group_changes = None;
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            expired: self.legs.expired,
            bound_hit: self.bound_hit
                + self.legs.bound_hit
                + self.matches.bound_hit()
                + self.members.bound_hit(),
            held_entries: (self.legs.entry_count() + self.matches.len()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}
