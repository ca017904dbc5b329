//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::transfers::id;
use crate::twin::naive::{Happened, History, NaiveAlert, Twin, id_text};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unitape_model::{Dictionary, EventField, EventKind, NameKind};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone() }
    }

    /// Implements "normalised (NFKD, strip marks, upper, non-alphanumerics to space, drop legal tokens, sort tokens)".
    fn normalise(&self, name: &str) -> Vec<String> {
        // "whole tokens only"
        let legal_tokens: Vec<_> =
            self.params.texts("drop_tokens").iter().map(|token| tokens(token)).collect();
        let mut name_tokens = tokens(name);
        name_tokens.retain(|token| !legal_tokens.contains(&vec![token.clone()]));
        name_tokens.sort();
        name_tokens
    }

    fn is_listed(&self, history: &History, names: &Dictionary, party: &Party<'_>) -> bool {
        let Some(name) = party.name.map(|name| self.normalise(name)) else { return false };
        // "an empty name never matches"
        if name.is_empty() {
            return false;
        }
        // "equal to a list name": "params.list (normalised alike)".
        if self.params.texts("list").iter().any(|listed| self.normalise(listed) == name) {
            return true;
        }
        // Entries of a list that is named `sanctions`: of those, active from <= ts < to, whose every subject matches.
        history.of_kind(EventKind::List).any(|entry| {
            let read = |field, dict| entry.name(field).and_then(|id| names.name(dict, id));
            let time = |field| entry.time(field);
            let is_other = [EventField::Desk, EventField::Trader, EventField::Firm]
                .iter()
                .any(|field| entry.name(*field).is_some());
            read(EventField::Name, NameKind::Name) == Some("sanctions")
                && time(EventField::From).is_none_or(|from| from <= history.now().ts)
                && time(EventField::To).is_none_or(|to| history.now().ts < to)
                && !is_other
                && read(EventField::Acct, NameKind::Account).is_none_or(|acct| Some(acct) == party.acct)
                && read(EventField::Party, NameKind::Owner)
                    .is_some_and(|listed| self.normalise(listed) == name)
        })
    }

    /// Implements "BIC characters 5-6 in blocked countries".
    fn is_blocked(&self, party: &Party<'_>) -> bool {
        let country: String = party.bic.unwrap_or_default().chars().skip(4).take(2).collect();
        let is_country = |blocked: &String| blocked.eq_ignore_ascii_case(&country);
        country.chars().count() == 2 && self.params.texts("blocked_countries").iter().any(is_country)
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let now = history.now();
        // A recall is not screened: "a bank asks for it back; nothing is paid".
        if now.kind != EventKind::Payment || now.text(EventField::Stage) == Some("recall") {
            return vec![];
        }
        let Some(reference) = id(now, EventField::Ref) else { return vec![] };
        // "Both names and both BICs"
        let parties = [
            Party::read(now, names, [EventField::DrName, EventField::DrAcct, EventField::DrBic]),
            Party::read(now, names, [EventField::CrName, EventField::CrAcct, EventField::CrBic]),
        ];
        // "One alert per payment event".
        let hit = parties.iter().any(|party| self.is_listed(history, names, party) || self.is_blocked(party));
        hit.then(|| NaiveAlert { ts: now.ts, key: vec![("ref", id_text(reference))] }).into_iter().collect()
    }
}

/// A side of a payment.
struct Party<'a> {
    name: Option<&'a str>,
    acct: Option<&'a str>,
    bic: Option<&'a str>,
}

impl<'a> Party<'a> {
    fn read(payment: &'a Happened, names: &'a Dictionary, [name, acct, bic]: [EventField; 3]) -> Self {
        Self {
            name: payment.text(name),
            acct: payment.name(acct).and_then(|id| names.name(NameKind::Account, id)),
            bic: payment.text(bic),
        }
    }
}

fn tokens(name: &str) -> Vec<String> {
    let letters: String = name.nfkd().filter(|c| !is_combining_mark(*c)).collect();
    let spaced = letters.to_uppercase().replace(|c: char| !c.is_alphanumeric(), " ");
    spaced.split_whitespace().map(str::to_owned).collect()
}
