//! The words of the definition, each looked up in everything that happened.

use crate::exact::QuantitySum;
use crate::params::ScenarioParams;
use crate::twin::naive::{Happened, History, NaiveAlert, Print, Twin, name, opposite, sum};
use std::collections::HashMap;
use unitape_model::{Dictionary, EventField, EventKind, InstrumentId, NameKind, Price, UnixNanos};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// "the last such exec", by owner, instrument and side.
    last: HashMap<(u32, InstrumentId, char), Hunt>,
}

/// An aggressive execution that reached a stop.
#[derive(Clone, Copy)]
struct Hunt {
    seq: u64,
    ts: UnixNanos,
    /// "his aggressive quantity on that side in the window"
    qty: QuantitySum,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), last: HashMap::new() }
    }

    /// Implements "On an aggressive exec of the owner".
    fn hunt(&self, history: &History, e: &Happened) -> Option<Hunt> {
        let (owner, instr, side, px) = (history.owner(e)?, e.instr?, e.side?, e.px?);
        if !e.is_aggressive() {
            return None;
        }
        let window = self.params.seconds("window_s");
        // "his aggressive quantity on that side in the window is at least min_aggr_share_pct % of public volume"
        let qty = sum(history
            .of_owner(owner)
            .filter(|other| other.is_aggressive() && other.is_in_window(e.ts, window))
            .filter(|other| other.instr == Some(instr) && other.side == Some(side)));
        let in_window = |ts: UnixNanos| {
            let (ts, t) = (i128::from(ts.0), i128::from(e.ts.0));
            ts > t - window && ts <= t
        };
        // "public price and volume are [...] over all venues when not" in the key
        let prints: Vec<Print> = history
            .prints_before(instr, None, e.seq)
            .into_iter()
            .filter(|print| in_window(print.ts))
            .collect();
        let volume = QuantitySum::total(prints.iter().map(|print| QuantitySum::from_decimal(print.qty)));
        let share = self.params.nano("min_aggr_share_pct");
        let is_large = qty.times(100).times(1_000_000_000) >= volume.times(share);
        // "the price went from the first public trade in the window"; "a print with no_last counts in volumes alone"
        let first = prints.iter().find(|print| !print.no_last)?.px;
        let most = history.ticks_before(instr, self.params.nano("barrier_ticks"), e.seq)?;
        let is_within =
            |px: Price, stop: Price| (i128::from(px.0) - i128::from(stop.0)).abs() * 1_000_000_000 <= most;
        // "to within barrier_ticks of a live stop order (order_new with stop_px, capacity A, same firm, same side), not there
        // before"
        let firm = e.name(EventField::Firm)?;
        let reaches_stop = history
            .of_instr(instr)
            .filter(|new| new.kind == EventKind::OrderNew && new.side == Some(side))
            .filter(|new| new.text(EventField::Capacity) == Some("A"))
            .filter(|new| new.name(EventField::Firm) == Some(firm))
            .filter_map(|new| stop_px(history, new, e.seq + 1))
            .any(|stop| is_within(px, stop) && !is_within(first, stop));
        (is_large && reaches_stop).then_some(Hunt { seq: e.seq, ts: e.ts, qty })
    }

    /// Implements "alert at the opposite exec by which, up to reverse_ms after the last such exec, that whole quantity is
    /// reversed".
    fn judge(&self, history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        let now = history.now();
        now.executed_qty()?;
        let (owner, instr, side) = (history.owner(now)?, now.instr?, now.side?);
        let hunt = self.last.get(&(owner, instr, opposite(side)))?;
        let end = i128::from(hunt.ts.0) + self.params.millis("reverse_ms");
        let reversal = |before: u64| {
            let since = history.of_owner(owner).filter(|e| e.seq > hunt.seq && e.seq < before);
            let opposite = since.filter(|e| e.executed_qty().is_some() && e.side == Some(side));
            sum(opposite.filter(|e| e.instr == Some(instr) && i128::from(e.ts.0) <= end))
        };
        // The execution by which it is reversed: it was not before.
        let fires = reversal(now.seq) < hunt.qty && reversal(now.seq + 1) >= hunt.qty;
        fires.then(|| NaiveAlert {
            ts: now.ts,
            key: vec![
                ("owner", name(names, NameKind::Owner, owner)),
                ("instr", name(names, NameKind::Instrument, instr.0)),
            ],
        })
    }
}

/// Returns the latest stop price of a live order before `seq`. Only an order that was entered with one is a stop order.
fn stop_px(history: &History, new: &Happened, seq: u64) -> Option<Price> {
    let entry_px = new.price(EventField::StopPx)?;
    history.order_of(new, seq).filter(|order| order.is_live())?;
    let now = Happened { seq, ..new.clone() };
    let amends = history.of_order(&now).into_iter().rev().filter(|e| e.kind == EventKind::OrderAmend);
    let amended = amends.filter_map(|e| e.price(EventField::StopPx)).next();
    Some(amended.unwrap_or(entry_px))
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let now = history.now();
        let alert = self.judge(history, names);
        if let Some(hunt) = self.hunt(history, now) {
            let side = now.side.unwrap_or_default();
            let key = history.owner(now).zip(now.instr).map(|(owner, instr)| (owner, instr, side));
            self.last.extend(key.map(|key| (key, hunt)));
        }
        alert.into_iter().collect()
    }
}
