//! Parking: an owner sells to a counterparty and buys the same back, so that somebody else seems to own it meanwhile.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - The earliest sale is that with the lowest sequence among the unused sales that fit. A purchase uses one sale.
//! - *Within*: a purchase exactly `max_days` after the sale is in; so is one that is stamped before the sale, but comes
//!   after it. Quantities are equal as numbers. The price tolerance is of the price of the sale.
//! - Position events are inputs of the definition, but its words do not use them.
//! - An execution without owner, counterparty, instrument, side, price or a quantity above zero does not count and is counted as
//!   `missing`.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::BILLION;
use crate::missing::MissingValue;
use crate::orders::quantity;
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::time_logs::TimeLogs;
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use unitape_model::{Decimal, EventField, EventKind, InstrumentId, NameKind, Price, UnixNanos};

/// The name of the scenario.
pub const ID: &str = "parking";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Exec];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Orders];

/// The scenario.
pub struct ParkingScenario {
    max_ns: i128,
    /// Billionths of a basis point.
    px_tol_bps: i128,
    /// Sales that no purchase has used.
    sales: TimeLogs<DealKey, Sale>,
    late: u64,
}

/// What the sale and the purchase have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct DealKey {
    owner: u32,
    cpty: u32,
    instr: InstrumentId,
    qty: Decimal,
}

#[derive(Clone, Copy)]
struct Sale {
    px: Price,
    place: EvidencePlace,
}

state_value!(DealKey { owner, cpty, instr, qty });
state_value!(Sale { px, place });
watch_state!(ParkingScenario { sales, late | max_ns, px_tol_bps });

impl ParkingScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let max_ns = i128::from(params.uint("max_days")) * 86_400_000_000_000;
        Self {
            max_ns,
            px_tol_bps: params.nano("px_tol_bps").into(),
            // A sale that is exactly as old is in.
            sales: TimeLogs::new(max_ns + 1),
            late: 0,
        }
    }

    /// Returns whether the prices differ by at most the tolerance. The products are under 2^124.
    fn is_near(&self, purchase_px: Price, sale_px: Price) -> bool {
        let difference = i128::from(purchase_px.0) - i128::from(sale_px.0);
        difference.abs() * BPS * BILLION <= self.px_tol_bps * i128::from(sale_px.0)
    }

    /// Returns the first unused sale that a purchase reverses, and its time.
    fn reversed(&mut self, key: &DealKey, px: Price, ts: UnixNanos) -> Option<(UnixNanos, Sale)> {
        let after = i128::from(ts.0) - self.max_ns - 1;
        let window = self.sales.window(key, after, UnixNanos::MAX);
        self.late += u64::from(!window.is_complete);
        let fits = window.iter().filter(|(_, sale)| self.is_near(px, sale.px));
        let (sale_ts, sale) = fits.min_by_key(|(_, sale)| sale.place.seq)?;
        Some((sale_ts, *sale))
    }
}

impl Scenario for ParkingScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let (ts, context) = (input.ts, input.context);
        let (key, px) = match deal(input) {
            Ok(deal) => deal,
            Err(field) => return out.missing(MissingValue::Field(field)),
        };
        if input.side == SELL {
            let sale = Sale { px, place: context.place() };
            return self.sales.add(key, ts, sale, context.expiry_ts);
        }
        let Some((sale_ts, sale)) = self.reversed(&key, px, ts) else { return };
        self.sales.retain(&key, |other| other.place.seq != sale.place.seq);
        let names = vec![
            ("owner", context.name(NameKind::Owner, key.owner)),
            ("cpty", context.name(NameKind::Firm, key.cpty)),
            ("instr", context.name(NameKind::Instrument, key.instr.0)),
        ];
        let values = json!({"qty": key.qty.to_string(), "sale_px": sale.px.to_string(),
            "purchase_px": px.to_string(), "sale_ts": sale_ts.0});
        out.alert(Alert::new(ID, ts, context.seq, names, context.detail(values, [sale.place])));
    }

    fn reset(&mut self) {
        self.sales.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            expired: self.sales.expired,
            bound_hit: self.sales.bound_hit,
            held_entries: self.sales.entry_count() as u64,
            ..ScenarioMetrics::default()
        }
    }
}

/// Returns the key and the price of an execution, or the field that it lacks.
fn deal(input: &ScenarioInput<'_, '_>) -> Result<(DealKey, Price), EventField> {
    let record = input.record.ok_or(EventField::Oid)?;
    let id = |id: u32, field| if id == 0 { Err(field) } else { Ok(id) };
    let key = DealKey {
        owner: id(input.owner, EventField::Owner)?,
        cpty: id(record.tif_or_cpty.get(), EventField::Cpty)?,
        instr: InstrumentId(id(input.instr.0, EventField::Instr)?),
        qty: quantity(record).filter(|qty| qty.mantissa() > 0).ok_or(EventField::Qty)?,
    };
    id(input.side.into(), EventField::Side)?;
    Ok((key, Price(record.px.get()).as_option().ok_or(EventField::Px)?))
}

const SELL: u8 = 2;
const BPS: i128 = 10_000;
