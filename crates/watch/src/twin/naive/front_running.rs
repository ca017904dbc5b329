//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{FieldValue, Happened, History, Id, NaiveAlert, Number, Twin, id_text, name};
use std::collections::{BTreeSet, HashSet};
use unitape_model::{Dictionary, EventField, EventKind, NameKind};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// Client orders that were evaluated.
    evaluated: HashSet<Id>,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), evaluated: HashSet::new() }
    }

    fn judge(&mut self, history: &History, names: &Dictionary) -> Option<Vec<NaiveAlert>> {
        let fill = history.now();
        // "On the first exec of client order C (capacity A, parent=C)"; "parent from the exec, else from its order".
        let is_client = fill.kind == EventKind::Exec && fill.text(EventField::Capacity) == Some("A");
        let Some(FieldValue::Id(coid)) = history.inherited(fill, EventField::Parent).filter(|_| is_client)
        else {
            return None;
        };
        // The first order_recv of a coid begins the client order.
        let receipt =
            history.of_kind(EventKind::OrderRecv).filter(|e| e.id(EventField::Coid) == Some(coid)).last()?;
        // "Evaluated once per coid, at its first exec with capacity A".
        if !self.evaluated.insert(coid.clone()) {
            return None;
        }
        let firm = receipt.name(EventField::Firm)?;
        let (instr, side, px) = (fill.instr?, fill.side?, Number::from(fill.px?));
        let client_qty = receipt.qty.filter(|qty| qty.mantissa() > 0)?;
        // "consider execs with capacity P of the receiving firm, same instrument and side, whose order was entered after C was
        // received"; "own execs seen before it, with exec.ts >= first fill - max_ahead_ms and
        // order_new.seq > order_recv.seq".
        let max_ahead = self.params.millis("max_ahead_ms");
        let own: Vec<&Happened> = history
            .of_instr(instr)
            .filter(|e| e.kind == EventKind::Exec && e.seq < fill.seq && e.side == Some(side))
            .filter(|e| e.text(EventField::Capacity) == Some("P") && e.name(EventField::Firm) == Some(firm))
            .filter(|e| i128::from(e.ts.0) >= i128::from(fill.ts.0) - max_ahead)
            .filter(|e| e.px.is_some() && e.qty.is_some_and(|qty| qty.mantissa() > 0))
            .filter(|e| {
                let entry = history.order_before(e).and_then(|order| order.new);
                entry.is_some_and(|new| new.seq > receipt.seq)
            })
            .collect();
        // "Per trader: fire if client qty*first fill px>=min_client_notional"
        let is_large =
            Number::from(client_qty) * px.clone() >= Number::from(self.params.amount("min_client_notional"));
        let traders: BTreeSet<u32> = own.iter().filter_map(|e| history.trader(e)).collect();
        let is_ahead = |trader: &u32| {
            let mine = || own.iter().filter(|e| history.trader(e) == Some(*trader));
            let qty: Number = mine().filter_map(|e| e.qty).map(Number::from).sum();
            let notional: Number =
                mine().filter_map(|e| Some(Number::from(e.px?) * Number::from(e.qty?))).sum();
            // "own notional>=min_own_notional and own average price is equal or better than the client's first fill"; "by
            // quantity-weighted average".
            let at_fill = qty * px.clone();
            let is_better = if side == 'B' { notional <= at_fill } else { notional >= at_fill };
            notional >= Number::from(self.params.amount("min_own_notional")) && is_better
        };
        let alert = |trader: u32| NaiveAlert {
            ts: fill.ts,
            key: vec![
                ("firm", name(names, NameKind::Firm, firm)),
                ("trader", name(names, NameKind::Trader, trader)),
                ("instr", name(names, NameKind::Instrument, instr.0)),
                ("coid", id_text(coid)),
            ],
        };
        Some(traders.into_iter().filter(|trader| is_large && is_ahead(trader)).map(alert).collect())
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        self.judge(history, names).unwrap_or_default()
    }
}
