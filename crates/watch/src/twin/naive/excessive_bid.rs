//! The words of the definition, each looked up in everything that happened.

use crate::exact::QuantitySum;
use crate::params::ScenarioParams;
use crate::twin::naive::{Happened, History, NaiveAlert, Twin, name};
use unitape_model::{Dictionary, EventKind, NameKind, Price};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone() }
    }

    /// Implements "within level_tol_ticks of the price", with the tick known at `new`.
    fn is_level(&self, history: &History, new: &Happened, px: Price) -> bool {
        let (Some(instr), Some(level)) = (new.instr, new.px) else { return false };
        let most = history.ticks_before(instr, self.params.nano("level_tol_ticks"), new.seq);
        let difference = (i128::from(level.0) - i128::from(px.0)).abs();
        most.is_some_and(|most| difference * 1_000_000_000 <= most)
    }

    /// Implements "A refresh is an order_new of the owner within level_tol_ticks of the price of an earlier order of the
    /// same side of which something was executed since his last entry there".
    fn is_refresh(&self, history: &History, new: &Happened) -> bool {
        let (Some(owner), Some(instr)) = (new.owner, new.instr) else { return false };
        let same_book = |e: &Happened| e.venue == new.venue && e.instr == new.instr && e.side == new.side;
        let is_entry = |e: &Happened| {
            let is_his = e.kind == EventKind::OrderNew && e.owner == new.owner && same_book(e);
            is_his && e.px.is_some_and(|px| self.is_level(history, new, px))
        };
        let last_entry =
            history.of_instr(instr).find(|e| e.seq < new.seq && is_entry(e)).map_or(0, |e| e.seq);
        let is_hit = |exec: &Happened| {
            let order = history.order_before(exec).filter(|_| exec.executed_qty().is_some());
            order.is_some_and(|order| {
                let is_his = order.owner.or(exec.owner) == Some(owner) && order.new.is_some_and(same_book);
                // The price when it was executed: the latest amended one.
                is_his && order.px.is_some_and(|px| self.is_level(history, new, px))
            })
        };
        history.of_kind(EventKind::Exec).any(|e| e.seq > last_entry && e.seq < new.seq && is_hit(e))
    }

    /// Implements "holds > 60 % of displayed size there"; "displayed size is that of the BBO last seen, if its price is the
    /// level, and holds his orders only as far as the BBO shows them".
    fn is_floor(&self, history: &History, new: &Happened) -> Option<bool> {
        let (owner, instr, side) = (new.owner?, new.instr?, new.side?);
        let best = history.best_before(new.venue, instr, new.seq)?;
        let (px, displayed) = match side {
            'B' => (best.bid?, best.bid_qty?),
            _ => (best.ask?, best.ask_qty?),
        };
        // His orders at that price as they were when the BBO came.
        let held = history
            .of_instr(instr)
            .filter(|e| e.kind == EventKind::OrderNew && e.venue == new.venue && e.side == Some(side))
            .filter_map(|e| history.order_of(e, best.seq))
            .filter(|order| order.owner == Some(owner) && order.px == Some(px))
            .map(|order| order.leaves());
        let held = QuantitySum::total(held);
        let displayed = QuantitySum::from_decimal(displayed);
        let is_most = displayed > QuantitySum::ZERO && held.times(100) > displayed.times(60);
        Some(self.is_level(history, new, px) && is_most)
    }

    fn judge(&self, history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        let new = history.now();
        if new.kind != EventKind::OrderNew {
            return None;
        }
        let (owner, venue, instr, side, _) = (new.owner?, new.venue?, new.instr?, new.side?, new.px?);
        if !self.is_refresh(history, new) || !self.is_floor(history, new)? {
            return None;
        }
        // "Owner re-enters at one price level >= min_refresh times as it is hit"
        let count = history
            .of_owner(owner)
            .filter(|e| {
                e.kind == EventKind::OrderNew && e.is_in_window(new.ts, self.params.seconds("window_s"))
            })
            .filter(|e| e.venue == new.venue && e.instr == new.instr && e.side == Some(side))
            .filter(|e| e.px.is_some_and(|px| self.is_level(history, new, px)))
            .filter(|e| self.is_refresh(history, e))
            .count();
        (count as u64 >= self.params.uint("min_refresh")).then(|| NaiveAlert {
            ts: new.ts,
            key: vec![
                ("owner", name(names, NameKind::Owner, owner)),
                ("venue", name(names, NameKind::Venue, venue)),
                ("instr", name(names, NameKind::Instrument, instr.0)),
            ],
        })
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        self.judge(history, names).into_iter().collect()
    }
}
