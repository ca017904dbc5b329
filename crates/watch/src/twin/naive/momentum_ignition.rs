//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::number::Number;
use crate::twin::naive::{Happened, History, NaiveAlert, Twin, name, opposite};
use std::collections::{HashMap, HashSet};
use unitape_model::{Decimal, Dictionary, InstrumentId, NameKind, Price, UnixNanos};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// "Each side ignites by itself".
    ignitions: HashMap<(Listing, char), Ignition>,
    /// "an alert consumes the execs of its ignition": by sequence.
    consumed: HashSet<u64>,
}

/// Owner, venue, instrument.
type Listing = (u32, u32, InstrumentId);

/// An ignition that was active when its last execution came.
#[derive(Default)]
struct Ignition {
    execs: Vec<Leg>,
    reversal: Vec<Leg>,
}

/// An execution with all needed fields.
#[derive(Clone, Copy)]
struct Leg {
    seq: u64,
    ts: UnixNanos,
    listing: Listing,
    side: char,
    px: Price,
    qty: Decimal,
    is_aggressive: bool,
}

fn leg(history: &History, e: &Happened) -> Option<Leg> {
    Some(Leg {
        seq: e.seq,
        ts: e.ts,
        listing: (history.owner(e)?, e.venue?, e.instr?),
        side: e.side?,
        px: e.px?,
        qty: e.executed_qty()?,
        is_aggressive: e.is_aggressive(),
    })
}

/// Sums quantities, and quantities times prices: "averages are quantity-weighted".
fn totals(legs: &[Leg]) -> (Number, Number) {
    let qty = legs.iter().map(|leg| Number::from(leg.qty)).sum();
    (qty, legs.iter().map(|leg| Number::from(leg.qty) * Number::from(leg.px)).sum())
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), ignitions: HashMap::new(), consumed: HashSet::new() }
    }

    /// Returns whether an ignition is active for an execution: "up to reverse_ms after the last ignition exec".
    fn is_active(&self, ignition: &Ignition, e: &Leg) -> bool {
        let reverse = self.params.millis("reverse_ms");
        ignition.execs.last().is_some_and(|last| i128::from(e.ts.0) <= i128::from(last.ts.0) + reverse)
    }

    /// Returns the executions with which `e` ignites its side.
    fn ignite(&self, history: &History, e: &Leg) -> Option<Vec<Leg>> {
        // "Owner's aggressive execs (liq R) on side s in (t-ignite,t]"
        let mut execs: Vec<Leg> = history
            .of_owner(e.listing.0)
            .filter(|other| other.is_in_window(e.ts, self.params.millis("ignite_ms")))
            .filter_map(|other| leg(history, other))
            .filter(|other| other.listing == e.listing && other.side == e.side && other.is_aggressive)
            .filter(|other| !self.consumed.contains(&other.seq))
            .collect();
        execs.reverse();
        // "First = oldest aggressive exec in the window"
        let first = execs.first()?.px;
        let moved = i128::from(e.px.0) - i128::from(first.0);
        let moved = if e.side == 'B' { moved } else { -moved };
        let least = i128::from(self.params.nano("min_move_bps"));
        // "when count>=min_aggr_execs and exec price moved >= min_move_bps from the first to the current one in direction s"
        let fires = execs.len() as u64 >= self.params.uint("min_aggr_execs")
            && first.0 > 0
            && moved * 10_000 * 1_000_000_000 >= least * i128::from(first.0);
        fires.then_some(execs)
    }

    /// Implements "fire when R*100>=min_reverse_pct*Q and the reversal average is better than the ignition average".
    fn is_reversed(&self, ignition: &Ignition, side: char) -> bool {
        let ((q, ignition_value), (r, reversal_value)) =
            (totals(&ignition.execs), totals(&ignition.reversal));
        let least = Number::billionths(self.params.nano("min_reverse_pct"));
        // "better is strict": the quotients of value and quantity, multiplied by both quantities.
        let (sold, bought) = (reversal_value * q.clone(), ignition_value * r.clone());
        let is_better = if side == 'B' { sold > bought } else { sold < bought };
        r.is_positive() && is_better && r * Number::from(100) >= least * q
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let Some(e) = leg(history, history.now()) else { return vec![] };
        let mut alerts = Vec::new();
        for side in ['B', 'S'] {
            let key = (e.listing, side);
            let mut ignition = self.ignitions.remove(&key).unwrap_or_default();
            let was_active = self.is_active(&ignition, &e);
            if was_active && e.side == opposite(side) {
                // "Opposite-side execs of the owner (any liq) [...] accumulate R"
                ignition.reversal.push(e);
            } else if was_active && e.is_aggressive {
                // "further same-side aggressive execs extend it"
                ignition.execs.push(e);
            } else if e.side == side
                && e.is_aggressive
                && let Some(execs) = self.ignite(history, &e)
            {
                ignition = Ignition { execs, reversal: Vec::new() };
            }
            // "the condition is tested at every exec of the owner"
            if self.is_active(&ignition, &e) && self.is_reversed(&ignition, side) {
                // "the alert ends the ignition and consumes its execs"
                self.consumed.extend(ignition.execs.iter().map(|leg| leg.seq));
                alerts.push(NaiveAlert {
                    ts: e.ts,
                    key: vec![
                        ("owner", name(names, NameKind::Owner, e.listing.0)),
                        ("venue", name(names, NameKind::Venue, e.listing.1)),
                        ("instr", name(names, NameKind::Instrument, e.listing.2.0)),
                    ],
                });
            } else {
                self.ignitions.insert(key, ignition);
            }
        }
        alerts
    }
}
