//! Tailgating: a trader follows the clients of the firm, in the same direction and shortly after them.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - Capacity and firm are those that the event names itself; an order does not give them. Trader, instrument and side of an
//!   execution are inherited.
//! - *Up to `max_after_ms` after it*: a repeat that is stamped before the client's deal, but comes after it, is within the limit.
//! - The client may be any; it may deal through the same trader. Quantities do not matter.
//! - Every repeat is judged, and alerts again while the count holds.
//! - A received order or an execution without firm, instrument or side is no deal and no repeat, and is counted as `missing`; so
//!   is an execution without capacity, and a repeat without trader.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::ids::{field_text, name_id};
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeLogs;
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use unitape_model::{EventField, EventKind, InstrumentId, NameKind, UnixNanos};

/// The name of the scenario.
pub const ID: &str = "tailgating";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::OrderRecv, EventKind::Exec];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders];

/// The scenario.
pub struct TailgatingScenario {
    max_after_ns: i128,
    window_ns: i128,
    min_repeat: u64,
    /// The deal with the latest stamp of the clients of each firm. If it is too early, all are.
    deals: KeyedStates<DealKey, ClientDeal>,
    repeats: TimeLogs<u32, Repeat>,
    late: u64,
}

/// What a client's deal and its repeat have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct DealKey {
    firm: u32,
    instr: InstrumentId,
    side: u8,
}

#[derive(Clone, Copy)]
struct ClientDeal {
    ts: UnixNanos,
    place: EvidencePlace,
}

/// An execution and the client's deal before it.
#[derive(Clone, Copy)]
struct Repeat {
    client: EvidencePlace,
    place: EvidencePlace,
}

state_value!(DealKey { firm, instr, side });
state_value!(ClientDeal { ts, place });
state_value!(Repeat { client, place });
watch_state!(TailgatingScenario { deals, repeats, late | max_after_ns, window_ns, min_repeat });

impl TailgatingScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let window_ns = i128::from(params.uint("window_days")) * 86_400_000_000_000;
        Self {
            max_after_ns: params.millis("max_after_ms"),
            window_ns,
            min_repeat: params.uint("min_repeat"),
            deals: KeyedStates::new(),
            repeats: TimeLogs::new(window_ns),
            late: 0,
        }
    }

    /// Keeps a client's deal, unless one with a later stamp is known.
    fn on_client(&mut self, key: DealKey, deal: ClientDeal) {
        if self.deals.get(&key).is_none_or(|last| last.ts <= deal.ts) {
            self.deals.set(key, deal);
        }
    }

    /// Counts an execution of the firm's own that repeats a client's deal.
    fn on_own(&mut self, key: DealKey, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let (ts, context, trader) = (input.ts, input.context, input.trader);
        let Some(client) = self.deals.get(&key) else { return };
        if i128::from(ts.0) - i128::from(client.ts.0) > self.max_after_ns {
            return;
        }
        if trader == 0 {
            return out.missing(MissingValue::Field(EventField::Trader));
        }
        let repeat = Repeat { client: client.place, place: context.place() };
        self.repeats.add(trader, ts, repeat, context.expiry_ts);
        let window = self.repeats.window(&trader, i128::from(ts.0) - self.window_ns, ts);
        self.late += u64::from(!window.is_complete);
        let count = window.len() as u64;
        if count >= self.min_repeat {
            let key = vec![("trader", context.name(NameKind::Trader, trader))];
            let places = window.iter().flat_map(|(_, repeat)| [repeat.client, repeat.place]);
            let detail = context.detail(json!({ "repeats": count }), places);
            out.alert(Alert::new(ID, ts, context.seq, key, detail));
        }
    }
}

impl Scenario for TailgatingScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let is_client = match input.event.kind() {
            EventKind::OrderRecv => true,
            _ => match field_text(input.event, EventField::Capacity, &mut [0; 36]) {
                Some("A") => true,
                Some("P") => false,
                Some(_) => return,
                None => return out.missing(MissingValue::Field(EventField::Capacity)),
            },
        };
        match deal_key(input) {
            Err(field) => out.missing(MissingValue::Field(field)),
            Ok(key) if is_client => {
                self.on_client(key, ClientDeal { ts: input.ts, place: input.context.place() });
            }
            Ok(key) => self.on_own(key, input, out),
        }
    }

    fn reset(&mut self) {
        self.deals.clear();
        self.repeats.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            expired: self.repeats.expired,
            bound_hit: self.deals.bound_hit() + self.repeats.bound_hit,
            held_entries: (self.deals.len() + self.repeats.entry_count()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}

/// Returns firm, instrument and side of an execution or a received order, or the field that it lacks.
fn deal_key(input: &ScenarioInput<'_, '_>) -> Result<DealKey, EventField> {
    let event = input.event;
    let (instr, side) = match input.record {
        Some(_) => (input.instr, input.side),
        None => (event.instrument(), side_code(field_text(event, EventField::Side, &mut [0; 36]))),
    };
    let id = |id: u32, field| if id == 0 { Err(field) } else { Ok(id) };
    id(side.into(), EventField::Side)?;
    Ok(DealKey {
        firm: id(name_id(event, EventField::Firm), EventField::Firm)?,
        instr: InstrumentId(id(instr.0, EventField::Instr)?),
        side,
    })
}

/// Returns the side as records have it.
fn side_code(side: Option<&str>) -> u8 {
    match side {
        Some("B") => 1,
        Some("S") => 2,
        _ => 0,
    }
}
