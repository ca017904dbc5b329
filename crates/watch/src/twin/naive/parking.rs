//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{Happened, History, NaiveAlert, Number, Twin, name};
use std::collections::HashSet;
use unitape_model::{Decimal, Dictionary, EventField, EventKind, InstrumentId, NameKind, Price};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// Sales that were used, by sequence.
    used: HashSet<u64>,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), used: HashSet::new() }
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let Some(purchase) = whole(history, history.now()).filter(|deal| deal.side == 'B') else {
            return vec![];
        };
        // "max_days is elapsed time": within it.
        let max_days = i128::from(self.params.uint("max_days")) * 86_400_000_000_000;
        let px_tol_bps = Number::billionths(self.params.nano("px_tol_bps"));
        // "Sale to counterparty reversed within max_days at nearly the same price"; "The purchase has the quantity of the sale and
        // a higher seq".
        let is_reversed = |sale: &Deal<'_>| {
            let difference = Number::from(purchase.px) - Number::from(sale.px);
            sale.side == 'S'
                && sale.event.seq < purchase.event.seq
                && !self.used.contains(&sale.event.seq)
                && (sale.owner, sale.cpty, sale.instr) == (purchase.owner, purchase.cpty, purchase.instr)
                && sale.qty == purchase.qty
                && i128::from(purchase.event.ts.0) - i128::from(sale.event.ts.0) <= max_days
                && difference.abs() * Number::from(10_000) <= px_tol_bps.clone() * Number::from(sale.px)
        };
        // "each sale is used once, the earliest first": the list begins with the latest.
        let deals = history.of_instr(purchase.instr).filter_map(|e| whole(history, e));
        let Some(sale) = deals.filter(is_reversed).last() else { return vec![] };
        self.used.insert(sale.event.seq);
        vec![NaiveAlert {
            ts: purchase.event.ts,
            key: vec![
                ("owner", name(names, NameKind::Owner, purchase.owner)),
                ("cpty", name(names, NameKind::Firm, purchase.cpty)),
                ("instr", name(names, NameKind::Instrument, purchase.instr.0)),
            ],
        }]
    }
}

/// An execution with all needed fields.
struct Deal<'a> {
    event: &'a Happened,
    owner: u32,
    cpty: u32,
    instr: InstrumentId,
    side: char,
    px: Price,
    qty: Decimal,
}

fn whole<'a>(history: &History, event: &'a Happened) -> Option<Deal<'a>> {
    let qty = event.qty.filter(|qty| event.kind == EventKind::Exec && qty.mantissa() > 0)?;
    Some(Deal {
        event,
        owner: history.owner(event)?,
        cpty: event.name(EventField::Cpty)?,
        instr: event.instr?,
        side: event.side?,
        px: event.px?,
        qty,
    })
}
