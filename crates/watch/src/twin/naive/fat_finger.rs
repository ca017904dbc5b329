//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{FieldValue, Happened, History, NaiveAlert, Number, Twin, id_text, name};
use unitape_model::{Dictionary, EventField, EventKind, InstrumentId, NameKind};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone() }
    }

    /// Implements "reference = BBO mid, else last trade, else prev_close"; "BBO and last trade of the order's venue".
    fn reference(&self, history: &History, order: &Happened, instr: InstrumentId) -> Option<Number> {
        let best = history.best_before(order.venue, instr, order.seq);
        // "one-sided BBO: no mid, use the last trade"
        let mid = best.and_then(|best| {
            let sum = Number::from(best.bid?) + Number::from(best.ask?);
            Some(sum * Number::new(5, -1))
        });
        let last = || history.last_price_before(instr, order.venue, order.seq).map(Number::from);
        let prev_close = || match history.reference_before(instr, EventField::PrevClose, order.seq)? {
            FieldValue::Price(px) => Some(Number::from(*px)),
            _ => None,
        };
        mid.or_else(last).or_else(prev_close)
    }

    fn judge(&self, history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        // "On order_new"
        let order = history.now();
        if order.kind != EventKind::OrderNew {
            return None;
        }
        let (trader, venue, instr) = (order.trader?, order.venue?, order.instr?);
        let (px, qty) = (order.px.map(Number::from), order.qty.map(Number::from));
        // "price (only in the aggressive direction: buy above / sell below) if deviation*10000 > max_dev_bps*ref"
        let is_price_off = || {
            let reference = self.reference(history, order, instr).filter(Number::is_positive)?;
            let above = px.clone()? - reference.clone();
            let deviation = match order.side? {
                'B' => above,
                _ => Number::whole(0) - above,
            };
            let max_dev = Number::billionths(self.params.nano("max_dev_bps")) * reference;
            Some(deviation.is_positive() && deviation * Number::whole(10_000) > max_dev)
        };
        // "notional if px*qty > max_notional"
        let is_notional_large = || {
            let max_notional = Number::from(self.params.amount("max_notional"));
            Some(px.clone()? * qty.clone()? > max_notional)
        };
        // "adv if qty*100 > max_adv_pct*ADV"
        let is_share_large = || {
            let adv = match history.reference_before(instr, EventField::Adv, order.seq)? {
                FieldValue::Decimal(adv) => Number::from(*adv),
                _ => return None,
            };
            let max_adv = Number::billionths(self.params.nano("max_adv_pct")) * adv.clone();
            Some(adv.is_positive() && qty.clone()? * Number::whole(100) > max_adv)
        };
        // "One alert per order with all reasons."
        if ![is_price_off(), is_notional_large(), is_share_large()].contains(&Some(true)) {
            return None;
        }
        Some(NaiveAlert {
            ts: order.ts,
            key: vec![
                ("trader", name(names, NameKind::Trader, trader)),
                ("venue", name(names, NameKind::Venue, venue)),
                ("instr", name(names, NameKind::Instrument, instr.0)),
                ("oid", id_text(order.oid.as_ref()?)),
            ],
        })
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        self.judge(history, names).into_iter().collect()
    }
}
