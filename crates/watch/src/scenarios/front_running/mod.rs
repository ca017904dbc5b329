//! Front running: a firm deals for itself after it received a client's order and before the client's first fill.
//!
//! ```text
//!   seq ─▶  order_recv C ──── order_new (P) ──── exec (P) ──── first exec of C (A)
//!                                                  │ own execs        │ everything is judged here
//! ```
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - A client order begins with the first `order_recv` of its coid; a later one with that coid changes nothing. An execution of an
//!   unknown coid is no execution of a client order. A coid is unique on the tape.
//! - The first execution of C settles it, whether or not it has all fields. Instrument, side and price are those of
//!   the execution, firm and quantity those of the `order_recv`. If one is missing, no alert.
//! - The firm of the execution of C is not compared. Capacity and firm of an own execution are those that it names itself; an order does
//!   not give them. The parent of an execution is its own or that of its order, as the engine finds it.
//! - An own execution needs trader, price and a quantity above zero, and its order must have been seen as new.
//! - *Better* is lower for a purchase and higher for a sale.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::ids::{IdKey, field_text, id_text, name_id};
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::number::Number;
use crate::orders::quantity;
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeLogs;
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use std::collections::BTreeMap;
use unitape_model::{Decimal, EventField, EventKind, EventValue, InstrumentId, NameKind, Price, UnixNanos};

/// The name of the scenario.
pub const ID: &str = "front_running";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] =
    &[EventKind::OrderRecv, EventKind::OrderNew, EventKind::OrderAmend, EventKind::Exec];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders];

/// The scenario.
pub struct FrontRunningScenario {
    max_ahead_ns: i128,
    min_client_notional: Number,
    min_own_notional: Number,
    /// By coid.
    clients: KeyedStates<IdKey, ClientOrder>,
    own: TimeLogs<FirmSide, OwnExecution>,
    late: u64,
}

/// A firm on one side of an instrument.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct FirmSide {
    firm: u32,
    instr: InstrumentId,
    /// 1 buy, 2 sell.
    side: u8,
}

struct ClientOrder {
    coid: String,
    firm: u32,
    qty: Option<Decimal>,
    receipt: EvidencePlace,
    /// It had its first execution.
    is_settled: bool,
}

/// An execution that a firm made for itself.
#[derive(Clone, Copy)]
struct OwnExecution {
    trader: u32,
    /// Ordinal of the entry of its order.
    entry_seq: u64,
    px: Price,
    qty: Decimal,
    place: EvidencePlace,
}

/// What a trader executed for the firm ahead of the client.
#[derive(Default)]
struct TraderSums {
    qty: Number,
    notional: Number,
    evidence: Vec<EvidencePlace>,
}

state_value!(FirmSide { firm, instr, side });
state_value!(ClientOrder { coid, firm, qty, receipt, is_settled });
state_value!(OwnExecution { trader, entry_seq, px, qty, place });
watch_state!(FrontRunningScenario {
    clients, own, late | max_ahead_ns, min_client_notional, min_own_notional
});

impl FrontRunningScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let max_ahead_ns = params.millis("max_ahead_ms");
        Self {
            max_ahead_ns,
            min_client_notional: params.amount("min_client_notional").into(),
            min_own_notional: params.amount("min_own_notional").into(),
            clients: KeyedStates::new(),
            // An execution that is exactly as old is in.
            own: TimeLogs::new(max_ahead_ns + 1),
            late: 0,
        }
    }

    fn on_receipt(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let event = input.event;
        let id = IdKey::read(event, EventField::Coid).zip(id_text(event, EventField::Coid));
        let Some((key, coid)) = id else { return out.missing(MissingValue::Field(EventField::Coid)) };
        let qty = match event.field(EventField::Qty, &mut [0; 36]) {
            Some(EventValue::Decimal(qty)) if qty.mantissa() > 0 => Some(qty),
            _ => None,
        };
        let (firm, receipt) = (name_id(event, EventField::Firm), input.context.place());
        let client = || ClientOrder { coid, firm, qty, receipt, is_settled: false };
        self.clients.get_or_insert_with(key, client);
    }

    /// Keeps an execution that a firm made for itself.
    fn on_own(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let Some(record) = input.record else { return };
        let (firm, px) = (name_id(input.event, EventField::Firm), Price(record.px.get()));
        let field = match quantity(record).filter(|qty| qty.mantissa() > 0) {
            _ if firm == 0 => EventField::Firm,
            _ if input.trader == 0 => EventField::Trader,
            _ if input.instr.0 == 0 => EventField::Instr,
            _ if !matches!(input.side, BUY | SELL) => EventField::Side,
            _ if px.as_option().is_none() => EventField::Px,
            None => EventField::Qty,
            Some(qty) => {
                let Some(entry_seq) = input.order.and_then(|update| update.order.entry_seq()) else {
                    return out.missing(MissingValue::Order);
                };
                let key = FirmSide { firm, instr: input.instr, side: input.side };
                let (trader, place) = (input.trader, input.context.place());
                let execution = OwnExecution { trader, entry_seq, px, qty, place };
                return self.own.add(key, input.ts, execution, input.context.expiry_ts);
            }
        };
        out.missing(MissingValue::Field(field));
    }

    /// Judges the traders of the firm at the first execution of a client order.
    fn on_client(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let (context, side) = (input.context, input.side);
        let client = input.parent().and_then(|coid| self.clients.get_mut(&coid));
        let Some(client) = client.filter(|client| !client.is_settled) else { return };
        client.is_settled = true;
        let px = input.record.and_then(|record| Price(record.px.get()).as_option());
        let (px, client_qty) = match (px, client.qty) {
            _ if client.firm == 0 => return out.missing(MissingValue::Field(EventField::Firm)),
            _ if input.instr.0 == 0 => return out.missing(MissingValue::Field(EventField::Instr)),
            _ if !matches!(side, BUY | SELL) => return out.missing(MissingValue::Field(EventField::Side)),
            (None, _) => return out.missing(MissingValue::Field(EventField::Px)),
            (_, None) => return out.missing(MissingValue::Field(EventField::Qty)),
            (Some(px), Some(qty)) => (px, qty),
        };
        let client_notional = Number::from(client_qty) * px.into();
        if client_notional < self.min_client_notional {
            return;
        }
        let key = FirmSide { firm: client.firm, instr: input.instr, side };
        let after = i128::from(input.ts.0) - self.max_ahead_ns - 1;
        let window = self.own.window(&key, after, UnixNanos::MAX);
        self.late += u64::from(!window.is_complete);
        let mut traders = BTreeMap::<u32, TraderSums>::new();
        for (_, own) in window.iter().filter(|(_, own)| own.entry_seq > client.receipt.seq) {
            traders.entry(own.trader).or_default().add(own);
        }
        for (trader, sums) in traders {
            let at_fill = sums.qty * px.into();
            let is_better = if side == BUY { sums.notional <= at_fill } else { sums.notional >= at_fill };
            if !is_better || sums.notional < self.min_own_notional {
                continue;
            }
            let values = json!({
                "side": if side == BUY { "B" } else { "S" },
                "client_qty": client_qty.to_string(), "client_px": px.to_string(),
                "own_qty": sums.qty.text(), "own_notional": sums.notional.text(),
            });
            let names = vec![
                ("firm", context.name(NameKind::Firm, client.firm)),
                ("trader", context.name(NameKind::Trader, trader)),
                ("instr", context.name(NameKind::Instrument, input.instr.0)),
                ("coid", client.coid.clone()),
            ];
            let detail = context.detail(values, sums.evidence.into_iter().chain([client.receipt]));
            out.alert(Alert::new(ID, input.ts, context.seq, names, detail));
        }
    }
}

impl TraderSums {
    fn add(&mut self, own: &OwnExecution) {
        let qty = Number::from(own.qty);
        self.qty = self.qty + qty;
        self.notional = self.notional + qty * own.px.into();
        self.evidence.push(own.place);
    }
}

impl Scenario for FrontRunningScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        match input.event.kind() {
            EventKind::OrderRecv => self.on_receipt(input, out),
            EventKind::Exec => match field_text(input.event, EventField::Capacity, &mut [0; 36]) {
                Some("A") => self.on_client(input, out),
                Some("P") => self.on_own(input, out),
                Some(_) => {}
                None => out.missing(MissingValue::Field(EventField::Capacity)),
            },
            _ => {}
        }
    }

    fn reset(&mut self) {
        self.clients.clear();
        self.own.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            expired: self.own.expired,
            bound_hit: self.own.bound_hit + self.clients.bound_hit(),
            held_entries: (self.own.entry_count() + self.clients.len()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}

const BUY: u8 = 1;
const SELL: u8 = 2;
