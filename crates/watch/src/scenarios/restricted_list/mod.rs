//! Restricted list: an order in an instrument that the trader, account, desk or firm may not trade.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - An entry is about an instrument. One that names none (a party or an issuer alone) applies to no order.
//! - An entry stays: a later one with other times does not replace it. Several entries that apply give one alert.
//! - The desk of an order is its own, or else the one that the last `party` event of its owner names that has a desk.
//! - What an entry names and the order lacks does not match. `role` and `issuer` are not conditions.
//! - An entry that comes again with equal terms says nothing new, and only the first is evidence.
//! - An order without trader or instrument takes no part. The entry must have a lower sequence than the order.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::fields;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::watch::{
    EvidencePlace, Scenario, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use std::collections::VecDeque;
use unitape_model::records::OrderRecord;
use unitape_model::{Event, EventField, EventKind, EventValue, InstrumentId, NameKind, UnixNanos};

/// The name of the scenario.
pub const ID: &str = "restricted_list";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::OrderNew, EventKind::List, EventKind::Party];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[];

/// The scenario.
pub struct RestrictedListScenario {
    entries: KeyedStates<InstrumentId, VecDeque<ListEntry>>,
    /// The last desk of each owner.
    desks: KeyedStates<u32, u32>,
    bound_hit: u64,
}

/// An entry of a list. A name that it lacks is 0.
#[derive(Clone, Copy, Debug)]
struct ListEntry {
    terms: EntryTerms,
    place: EvidencePlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EntryTerms {
    list: u32,
    party: u32,
    acct: u32,
    desk: u32,
    trader: u32,
    firm: u32,
    from: Option<UnixNanos>,
    to: Option<UnixNanos>,
}

/// Who gives an order. A name that it lacks is 0.
struct OrderParties {
    trader: u32,
    acct: u32,
    desk: u32,
    firm: u32,
}

/// Different entries about an instrument that are kept at most; then the oldest is forgotten.
const ENTRIES_MAX: usize = 1 << 12;

state_value!(ListEntry { terms, place });
state_value!(EntryTerms { list, party, acct, desk, trader, firm, from, to });
watch_state!(RestrictedListScenario { entries, desks, bound_hit });

impl RestrictedListScenario {
    /// Makes the scenario with empty state.
    pub fn new(_params: &ScenarioParams) -> Self {
        Self { entries: KeyedStates::new(), desks: KeyedStates::new(), bound_hit: 0 }
    }

    fn on_list(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let event = input.event;
        let terms = EntryTerms::read(event);
        let list = input.context.names.name(NameKind::Name, terms.list);
        if !matches!(list, Some("restricted" | "watch")) {
            return;
        }
        if event.instrument().0 == 0 {
            return out.missing(MissingValue::Field(EventField::Instr));
        }
        let entries = self.entries.get_or_insert_with(event.instrument(), VecDeque::new);
        // A list that is sent again says nothing new.
        if entries.iter().any(|entry| entry.terms == terms) {
            return;
        }
        if entries.len() == ENTRIES_MAX {
            entries.pop_front();
            self.bound_hit += 1;
        }
        entries.push_back(ListEntry { terms, place: input.context.place() });
    }

    fn on_party(&mut self, event: &Event<'_>) {
        let owner_and_desk =
            fields::name_id(event, EventField::Owner).zip(fields::name_id(event, EventField::Desk));
        if let Some((owner, desk)) = owner_and_desk {
            self.desks.set(owner, desk);
        }
    }

    fn on_order(&self, input: &ScenarioInput<'_, '_>, record: &OrderRecord, out: &mut ScenarioOutput<'_>) {
        match () {
            () if input.trader == 0 => return out.missing(MissingValue::Field(EventField::Trader)),
            () if input.instr.0 == 0 => return out.missing(MissingValue::Field(EventField::Instr)),
            () => {}
        }
        let Some(entries) = self.entries.get(&input.instr) else { return };
        let desk_of_owner = || self.desks.get(&record.owner.get()).copied();
        let desk = fields::name_id(input.event, EventField::Desk).or_else(desk_of_owner);
        let parties = OrderParties {
            trader: input.trader,
            acct: record.acct.get(),
            desk: desk.unwrap_or(0),
            firm: record.firm.get(),
        };
        let applies = |entry: &&ListEntry| entry.terms.applies(&parties, input);
        let Some(first) = entries.iter().find(applies) else { return };
        let context = input.context;
        let time = |ts: Option<UnixNanos>| ts.map(|ts| ts.0.to_string());
        let values = json!({
            "list": context.name(NameKind::Name, first.terms.list),
            "from": time(first.terms.from),
            "to": time(first.terms.to),
        });
        let evidence = entries.iter().filter(applies).map(|entry| entry.place);
        let detail = context.detail(values, evidence);
        let key = vec![
            ("trader", context.name(NameKind::Trader, input.trader)),
            ("instr", context.name(NameKind::Instrument, input.instr.0)),
        ];
        out.alert(Alert::new(ID, input.ts, context.seq, key, detail));
    }
}

impl EntryTerms {
    fn read(event: &Event<'_>) -> Self {
        let id = |field| fields::name_id(event, field).unwrap_or(0);
        let time = |field| match event.field(field, &mut [0; 36]) {
            Some(EventValue::Nanos(ts)) => Some(ts),
            _ => None,
        };
        Self {
            list: id(EventField::Name),
            party: id(EventField::Party),
            acct: id(EventField::Acct),
            desk: id(EventField::Desk),
            trader: id(EventField::Trader),
            firm: id(EventField::Firm),
            from: time(EventField::From),
            to: time(EventField::To),
        }
    }

    /// Returns whether the entry forbids an order of these parties now.
    fn applies(&self, parties: &OrderParties, input: &ScenarioInput<'_, '_>) -> bool {
        let is_active =
            self.from.is_none_or(|from| from <= input.ts) && self.to.is_none_or(|to| input.ts < to);
        let is_named = |named: u32, of_order: u32| named == 0 || named == of_order;
        // The entry names an account or a desk among the owners, so the names are compared.
        let names = input.context.names;
        let is_party = |dict, id| {
            id != 0
                && names
                    .name(NameKind::Owner, self.party)
                    .is_some_and(|party| names.name(dict, id) == Some(party))
        };
        is_active
            && is_named(self.acct, parties.acct)
            && is_named(self.desk, parties.desk)
            && is_named(self.trader, parties.trader)
            && is_named(self.firm, parties.firm)
            && (self.party == 0
                || is_party(NameKind::Account, parties.acct)
                || is_party(NameKind::Desk, parties.desk))
    }
}

impl Scenario for RestrictedListScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        match (input.event.kind(), input.record) {
            (EventKind::List, _) => self.on_list(input, out),
            (EventKind::Party, _) => self.on_party(input.event),
            (_, Some(record)) => self.on_order(input, record, out),
            _ => {}
        }
    }

    fn reset(&mut self) {
        self.entries.clear();
        self.desks.clear();
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            bound_hit: self.bound_hit + self.entries.bound_hit() + self.desks.bound_hit(),
            held_entries: (self.entries.len() + self.desks.len()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}
