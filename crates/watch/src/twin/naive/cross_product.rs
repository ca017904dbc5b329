//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{FieldValue, Happened, History, NaiveAlert, Number, Twin, name};
use unitape_model::{Decimal, Dictionary, EventField, EventKind, InstrumentId, NameKind};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone() }
    }

    fn judge(&self, history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        let now = history.now();
        // "On an aggressive exec of the group in U".
        let (underlying, side) = (now.instr?, now.side?);
        let group = history.group(history.owner(now)?);
        let is_of_group = |e: &Happened| {
            let qty = e.qty.filter(|qty| qty.mantissa() > 0);
            let is_whole = e.kind == EventKind::Exec && e.px.is_some() && e.side.is_some() && qty.is_some();
            is_whole && history.owner(e).is_some_and(|owner| history.group(owner) == group)
        };
        let is_aggressive = |e: &Happened| is_of_group(e) && e.text(EventField::Liq) == Some("R");
        if !is_aggressive(now) {
            return None;
        }
        // "in the window": (t-W, t]
        let (t, window) = (now.ts.0, self.params.millis("window_ms"));
        let is_in_window = |ts: i64| i128::from(ts) > i128::from(t) - window && ts <= t;
        // "its aggressive quantity on that side in the window is at least 25 % of public volume"
        let mut prints = history.prints_before(underlying, None, now.seq);
        prints.retain(|print| is_in_window(print.ts.0));
        let aggressive: Vec<&Happened> = history
            .of_instr(underlying)
            .filter(|e| is_aggressive(e) && e.side == Some(side) && is_in_window(e.ts.0))
            .collect();
        let qty: Number = aggressive.iter().map(|e| qty_of(e)).sum();
        let volume: Number = prints.iter().map(|print| Number::from(print.qty)).sum();
        let is_dominant = qty * Number::from(100) >= volume * Number::from(25);
        // "the price moved by min_move_bps from the first public trade in the window": to the last one, in the direction of the
        // side. "A print with no_last counts in volumes alone".
        prints.retain(|print| !print.no_last);
        let first = Number::from(prints.first()?.px);
        let price_move = Number::from(prints.last()?.px) - first.clone();
        let directed_move = if side == 'B' { price_move.clone() } else { Number::ZERO - price_move.clone() };
        let min_move_bps = Number::billionths(self.params.nano("min_move_bps"));
        let is_moved = first.is_positive()
            && directed_move.is_positive()
            && directed_move * Number::from(10_000) >= min_move_bps * first.clone();
        // "benefit = move * sum of signed quantity * multiplier (delta 1) of all its execs so far in instruments whose
        // ref.underlying is U"
        let reference = |instr: InstrumentId, field| history.reference_before(instr, field, now.seq);
        let signed = |e: &Happened| {
            let linked = FieldValue::Name(NameKind::Instrument, underlying.0);
            let instr = e.instr.filter(|instr| reference(*instr, EventField::Underlying) == Some(&linked))?;
            let Some(FieldValue::Decimal(multiplier)) = reference(instr, EventField::Multiplier) else {
                return None;
            };
            let exposure = qty_of(e) * Number::from(*multiplier);
            Some(if e.side == Some('B') { exposure } else { Number::ZERO - exposure })
        };
        let execs = history.of_kind(EventKind::Exec).filter(|e| is_of_group(e));
        let benefit = price_move * execs.filter_map(signed).sum();
        // "cost = sum of |px - first price| * qty of those aggressive execs"
        let cost: Number = aggressive
            .iter()
            .filter_map(|e| Some((Number::from(e.px?) - first.clone()).abs() * qty_of(e)))
            .sum();
        // "fire if benefit > 0 and benefit >= min_deriv_delta_ratio * cost"
        let ratio = Number::billionths(self.params.nano("min_deriv_delta_ratio"));
        let pays = benefit.is_positive() && benefit >= ratio * cost;
        (is_dominant && is_moved && pays).then(|| NaiveAlert {
            ts: now.ts,
            key: vec![
                ("group", name(names, NameKind::Owner, group)),
                ("underlying", name(names, NameKind::Instrument, underlying.0)),
            ],
        })
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        self.judge(history, names).into_iter().collect()
    }
}

fn qty_of(e: &Happened) -> Number {
    Number::from(e.qty.unwrap_or(Decimal::ZERO))
}
