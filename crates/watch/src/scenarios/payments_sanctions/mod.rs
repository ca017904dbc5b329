//! Sanctions: a payment names a listed party, or a bank in a blocked country.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - Names are `dr_name` and `cr_name`; the ultimate parties and the country fields are not screened. A payment of each stage but
//!   `recall` is screened, as docs/events.md says.
//! - A payment without `ref` lacks its key: it is counted as `missing`, and not judged.
//! - A `list` event named `sanctions` adds its `party` to the parameter `list` while `from <= ts < to`; a missing end is open.
//!   If it names an account, too, the account of that side must match. An entry that names a desk, trader or firm is
//!   not about a payment. The BIC is compared with the countries alone.
//! - Letters and digits are those of Unicode (`char::is_alphanumeric`), a mark is a character of general category M. Upper
//!   case is the full mapping: ß becomes SS. A token that occurs twice in a name must occur twice in the list.
//! - A legal token is normalised like a name. If it has more than one token then (`S.A.`), it drops nothing.
//! - Countries are compared without regard to case. A BIC of fewer than six characters has no country.

mod names;
#[cfg(test)]
mod tests;

use self::names::NormalisedNames;
use crate::alert::Alert;
use crate::ids::{field_text, id_text, name_id};
use crate::missing::MissingValue;
use crate::params::ScenarioParams;
use crate::state::{state_value, watch_state};
use crate::watch::{
    EvidencePlace, Scenario, ScenarioContext, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use unitape_model::{Event, EventField, EventKind, EventValue, NameKind, UnixNanos};

/// The name of the scenario.
pub const ID: &str = "payments_sanctions";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Payment, EventKind::List];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[];

/// The scenario.
pub struct SanctionsScenario {
    /// Normalised names of the parameter.
    list: BTreeSet<String>,
    blocked_countries: Vec<String>,
    names: NormalisedNames,
    /// Entries of `list` events by normalised name.
    entries: BTreeMap<String, Vec<ListEntry>>,
    entry_count: usize,
    bound_hit: u64,
}

/// An entry of a list: when it is active, and for which account, or 0.
#[derive(Clone, Copy)]
struct ListEntry {
    acct: u32,
    from: UnixNanos,
    /// `None` if its end is open.
    to: Option<UnixNanos>,
    place: EvidencePlace,
}

state_value!(ListEntry { acct, from, to, place });
watch_state!(SanctionsScenario { entries, entry_count, bound_hit | list, blocked_countries, names });

impl SanctionsScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let mut names = NormalisedNames::new(&params.texts("drop_tokens"));
        let list = params.texts("list").iter().map(|name| names.normalise(name).to_owned()).collect();
        Self {
            list,
            blocked_countries: params.texts("blocked_countries"),
            names,
            entries: BTreeMap::new(),
            entry_count: 0,
            bound_hit: 0,
        }
    }

    /// Takes an entry of the list `sanctions` that is about a party, and about nothing that a payment does not name.
    fn add_entry(&mut self, event: &Event<'_>, context: &ScenarioContext<'_>, out: &mut ScenarioOutput<'_>) {
        let name = |field, dict| context.names.name(dict, name_id(event, field));
        let is_other = [EventField::Desk, EventField::Trader, EventField::Firm]
            .iter()
            .any(|field| name_id(event, *field) != 0);
        if name(EventField::Name, NameKind::Name) != Some("sanctions") || is_other {
            return;
        }
        let Some(party) = name(EventField::Party, NameKind::Owner) else {
            return out.missing(MissingValue::Field(EventField::Party));
        };
        let time = |field| match event.field(field, &mut [0; 36]) {
            Some(EventValue::Nanos(ts)) => Some(ts),
            _ => None,
        };
        let entry = ListEntry {
            acct: name_id(event, EventField::Acct),
            from: time(EventField::From).unwrap_or(UnixNanos::MIN),
            to: time(EventField::To),
            place: context.place(),
        };
        let party = self.names.normalise(party);
        if party.is_empty() {
            return;
        }
        let is_same =
            |other: &ListEntry| (other.acct, other.from, other.to) == (entry.acct, entry.from, entry.to);
        let of_party = self.entries.get(party);
        if of_party.is_some_and(|entries| entries.iter().any(is_same)) {
            return;
        }
        if self.entry_count == ENTRIES_MAX {
            self.bound_hit += 1;
            return;
        }
        self.entry_count += 1;
        self.entries.entry(party.to_owned()).or_default().push(entry);
    }

    /// Finds what a side of a payment hits, with the events of its entries.
    fn screen(
        &mut self,
        input: &ScenarioInput<'_, '_>,
        side: &PaymentSide,
        hits: &mut Vec<Value>,
        evidence: &mut Vec<EvidencePlace>,
    ) {
        let mut scratch = [0; 36];
        if let Some(name) = field_text(input.event, side.name, &mut scratch) {
            let party = self.names.normalise(name);
            let acct = name_id(input.event, side.acct);
            let is_active = |entry: &&ListEntry| {
                let is_time = entry.from <= input.ts && entry.to.is_none_or(|to| input.ts < to);
                is_time && (entry.acct == 0 || entry.acct == acct)
            };
            let before = evidence.len();
            let entries = self.entries.get(party).into_iter().flatten().filter(is_active);
            evidence.extend(entries.map(|entry| entry.place));
            let is_listed = !party.is_empty() && self.list.contains(party);
            if is_listed || evidence.len() > before {
                hits.push(json!({"field": side.name.name(), "value": name, "listed": party}));
            }
        }
        if let Some(bic) = field_text(input.event, side.bic, &mut scratch)
            && let Some(country) = country(bic)
            && self.blocked_countries.iter().any(|blocked| blocked.eq_ignore_ascii_case(country))
        {
            hits.push(json!({"field": side.bic.name(), "value": bic, "country": country}));
        }
    }
}

impl Scenario for SanctionsScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let (event, context) = (input.event, input.context);
        if event.kind() == EventKind::List {
            return self.add_entry(event, context, out);
        }
        if field_text(event, EventField::Stage, &mut [0; 36]) == Some("recall") {
            return;
        }
        let Some(reference) = id_text(event, EventField::Ref).filter(|id| !id.is_empty()) else {
            return out.missing(MissingValue::Field(EventField::Ref));
        };
        let (mut hits, mut evidence) = (Vec::new(), Vec::new());
        SIDES.iter().for_each(|side| self.screen(input, side, &mut hits, &mut evidence));
        if !hits.is_empty() {
            let detail = context.detail(json!({ "hits": hits }), evidence);
            out.alert(Alert::new(ID, input.ts, context.seq, vec![("ref", reference)], detail));
        }
    }

    fn reset(&mut self) {
        self.entries.clear();
        self.entry_count = 0;
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            bound_hit: self.bound_hit,
            held_entries: self.entry_count as u64,
            ..ScenarioMetrics::default()
        }
    }
}

/// The fields of a side of a payment.
struct PaymentSide {
    name: EventField,
    acct: EventField,
    bic: EventField,
}

const SIDES: [PaymentSide; 2] = [
    PaymentSide { name: EventField::DrName, acct: EventField::DrAcct, bic: EventField::DrBic },
    PaymentSide { name: EventField::CrName, acct: EventField::CrAcct, bic: EventField::CrBic },
];

/// Entries of `list` events kept at most; later ones are counted, and not kept.
const ENTRIES_MAX: usize = 1 << 20;

/// Returns characters 5 and 6.
fn country(bic: &str) -> Option<&str> {
    let mut starts = bic.char_indices().map(|(start, _)| start).skip(4);
    let (start, _, end) = (starts.next()?, starts.next()?, starts.next().unwrap_or(bic.len()));
    Some(&bic[start..end])
}
