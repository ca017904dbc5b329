//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{Happened, History, NaiveAlert, Twin, name};
use unitape_model::{Dictionary, EventField, EventKind, NameKind};

/// The scenario, slowly.
pub struct Slow;

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(_params: &ScenarioParams) -> Self {
        Self
    }

    fn judge(history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        // "Order in a restricted instrument"
        let order = history.now();
        if order.kind != EventKind::OrderNew {
            return None;
        }
        let (trader, instr) = (order.trader?, order.instr?);
        let text = |dict, id: Option<u32>| id.map(|id| name(names, dict, id));
        let trader_name = name(names, NameKind::Trader, trader);
        let acct = text(NameKind::Account, order.name(EventField::Acct));
        let firm = text(NameKind::Firm, order.name(EventField::Firm));
        // The desk of the order, or else of its owner.
        let desk_of_owner = || {
            let parties = history.of_owner(order.owner?).filter(|e| e.kind == EventKind::Party);
            parties.filter_map(|party| party.name(EventField::Desk)).next()
        };
        let desk = text(NameKind::Desk, order.name(EventField::Desk).or_else(desk_of_owner));
        let applies = |entry: &&Happened| {
            // "Entries named restricted or watch"
            let list = text(NameKind::Name, entry.name(EventField::Name));
            let is_list = matches!(list.as_deref(), Some("restricted" | "watch"));
            // "active for from <= ts < to (nanoseconds), a missing from or to is open"
            let is_active = entry.time(EventField::From).is_none_or(|from| from <= order.ts)
                && entry.time(EventField::To).is_none_or(|to| order.ts < to);
            // "An entry applies if each of its party, acct, desk, trader and firm that it names matches by name";
            // "party is an account or desk, a missing party is everybody".
            let party = text(NameKind::Owner, entry.name(EventField::Party));
            let is_named = |field, dict, of_order: &Option<String>| {
                text(dict, entry.name(field)).is_none_or(|named| of_order.as_ref() == Some(&named))
            };
            is_list
                && is_active
                && party.is_none_or(|party| [&acct, &desk].contains(&&Some(party)))
                && is_named(EventField::Acct, NameKind::Account, &acct)
                && is_named(EventField::Desk, NameKind::Desk, &desk)
                && is_named(EventField::Trader, NameKind::Trader, &Some(trader_name.clone()))
                && is_named(EventField::Firm, NameKind::Firm, &firm)
        };
        let mut entries = history.of_instr(instr).filter(|e| e.kind == EventKind::List && e.seq < order.seq);
        entries.any(|entry| applies(&entry)).then(|| NaiveAlert {
            ts: order.ts,
            key: vec![("trader", trader_name.clone()), ("instr", name(names, NameKind::Instrument, instr.0))],
        })
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        Self::judge(history, names).into_iter().collect()
    }
}
