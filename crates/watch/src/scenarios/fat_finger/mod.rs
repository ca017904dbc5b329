//! Fat finger: a new order has a price or a size that was hardly meant.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - The mid price is exact, half of the sum, also of a crossed book. The last trade is the last print by sequence
//!   that is not `no_last` and not cancelled.
//! - A reference that is not above zero, and an average volume that is not above zero, are missing: their reason is
//!   not given, and the next source is not asked.
//! - An order is judged by what it names: without price there is neither the reason price nor notional, without side
//!   no price, without quantity neither notional nor adv. Without trader, venue or instrument it takes no part.
//! - A second order_new with the same oid is another order.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::{BILLION, ScaledNumber, at_most, compare_bps, times};
use crate::ids::id_text;
use crate::missing::MissingValue;
use crate::number::Number;
use crate::orders::quantity;
use crate::params::ScenarioParams;
use crate::prints::Print;
use crate::state::watch_state;
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use std::cmp::Ordering;
use unitape_model::{Decimal, EventField, EventKind, NameKind, Price};

/// The name of the scenario.
pub const ID: &str = "fat_finger";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::OrderNew];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Market, SharedStateKind::Prints];

/// The scenario.
pub struct FatFingerScenario {
    /// Billionths.
    max_dev_bps: u64,
    max_notional: Decimal,
    /// Billionths.
    max_adv_pct: u64,
}

/// The price that an order is compared with.
struct ReferencePrice {
    /// Twice the price, in billionths: a mid price is half of a sum.
    doubled: i128,
    source: &'static str,
    place: Option<EvidencePlace>,
}

watch_state!(FatFingerScenario { | max_dev_bps, max_notional, max_adv_pct });

impl FatFingerScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        Self {
            max_dev_bps: params.nano("max_dev_bps"),
            max_notional: params.amount("max_notional"),
            max_adv_pct: params.nano("max_adv_pct"),
        }
    }

    /// Returns whether a price is too far from the reference on the aggressive side.
    fn is_price_off(&self, px: Price, side: u8, reference: &ReferencePrice) -> bool {
        let above = 2 * i128::from(px.0) - reference.doubled;
        let deviation = if side == 1 { above } else { -above };
        deviation > 0 && compare_bps(deviation, self.max_dev_bps, reference.doubled) == Ordering::Greater
    }

    /// Returns whether price times quantity is above the limit. A product below zero is not.
    fn is_notional_large(&self, px: Price, qty: Decimal) -> bool {
        let notional =
            ScaledNumber { exponent: i32::from(qty.exponent()) - 9, ..times(qty, px.0.unsigned_abs()) };
        let is_positive = px.0.signum() * qty.mantissa().signum() > 0;
        is_positive && !at_most(notional, times(self.max_notional, 1))
    }

    /// Returns whether a quantity is too great a part of the average volume.
    fn is_share_large(&self, qty: Decimal, adv: Decimal) -> bool {
        let hundred = 100 * BILLION as u64;
        qty.mantissa() > 0 && !at_most(times(qty, hundred), times(adv, self.max_adv_pct))
    }
}

/// Returns the reference price of an order's venue and instrument, if there is one.
fn reference_price(input: &ScenarioInput<'_, '_>) -> Option<ReferencePrice> {
    let context = input.context;
    let mid = context.market.best(input.venue, input.instr).and_then(|best| {
        let doubled = i128::from(best.bid?.0) + i128::from(best.ask?.0);
        Some(ReferencePrice { doubled, source: "mid", place: Some(best.place()) })
    });
    let last = || {
        let of_print = |last: &Print| ReferencePrice {
            doubled: 2 * i128::from(last.px.0),
            source: "last",
            place: Some(last.place()),
        };
        context.prints.last_of_book(input.venue, input.instr).map(of_print)
    };
    let close = || {
        let px = context.market.reference(input.instr)?.prev_close?;
        Some(ReferencePrice { doubled: 2 * i128::from(px.0), source: "prev_close", place: None })
    };
    mid.or_else(last).or_else(close)
}

impl Scenario for FatFingerScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let Some(record) = input.record else { return };
        match () {
            () if input.trader == 0 => return out.missing(MissingValue::Field(EventField::Trader)),
            () if input.venue == 0 => return out.missing(MissingValue::Field(EventField::Venue)),
            () if input.instr.0 == 0 => return out.missing(MissingValue::Field(EventField::Instr)),
            () => {}
        }
        let (px, qty) = (Price(record.px.get()).as_option(), quantity(record));
        let reference = reference_price(input).filter(|reference| reference.doubled > 0);
        let adv = input.context.market.reference(input.instr).and_then(|terms| terms.adv);
        let adv = adv.filter(|adv| adv.mantissa() > 0);
        for (is_missing, value) in [
            (px.is_none(), MissingValue::Field(EventField::Px)),
            (qty.is_none(), MissingValue::Field(EventField::Qty)),
            (input.side == 0, MissingValue::Field(EventField::Side)),
            (reference.is_none(), MissingValue::BestPrice),
            (adv.is_none(), MissingValue::Reference(EventField::Adv)),
        ] {
            if is_missing {
                out.missing(value);
            }
        }
        let side = (input.side != 0).then_some(input.side);
        let is_price_off = || Some(self.is_price_off(px?, side?, reference.as_ref()?));
        let is_notional_large = || Some(self.is_notional_large(px?, qty?));
        let is_share_large = || Some(self.is_share_large(qty?, adv?));
        let reasons =
            [("price", is_price_off()), ("notional", is_notional_large()), ("adv", is_share_large())];
        let reasons: Vec<&str> = reasons
            .into_iter()
            .filter(|(_, is_met)| *is_met == Some(true))
            .map(|(reason, _)| reason)
            .collect();
        let (false, Some(oid)) = (reasons.is_empty(), id_text(input.event, EventField::Oid)) else { return };
        let values = json!({
            "reasons": reasons,
            "px": px.map(|px| px.to_string()),
            "qty": qty.map(|qty| qty.to_string()),
            "reference_px": reference.as_ref().map(|found| Number::new(5 * found.doubled, -10).text()),
            "reference": reference.as_ref().map(|found| found.source),
            "adv": adv.map(|adv| adv.to_string()),
        });
        let detail = input.context.detail(values, reference.and_then(|found| found.place));
        let key = vec![
            ("trader", input.context.name(NameKind::Trader, input.trader)),
            ("venue", input.context.name(NameKind::Venue, input.venue.into())),
            ("instr", input.context.name(NameKind::Instrument, input.instr.0)),
            ("oid", oid),
        ];
        out.alert(Alert::new(ID, input.ts, input.context.seq, key, detail));
    }

    fn reset(&mut self) {}

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics::default()
    }
}
