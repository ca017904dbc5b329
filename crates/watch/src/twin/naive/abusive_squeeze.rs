//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{FieldValue, Happened, History, NaiveAlert, Number, Twin, name};
use std::collections::BTreeMap;
use unitape_model::{CivilDate, Decimal, Dictionary, EventField, EventKind, InstrumentId, NameKind, Price};

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
        // "fire at a position event"
        let now = history.now();
        if now.kind != EventKind::Position {
            return None;
        }
        let (group, instr) = (history.group(now.owner?), now.instr?);
        now.qty?;
        // "up to settle_days before expiry"; "days are UTC dates".
        let expiry = expiry(history, instr)?;
        let days_left = i64::from(expiry.days()) - i64::from(CivilDate::from_utc(now.ts).days());
        if days_left < 0 || days_left as u64 > self.params.uint("settle_days") {
            return None;
        }
        // "The group's long quantity is the sum of the last positions of its owners".
        let mut last: BTreeMap<u32, Decimal> = BTreeMap::new();
        let is_position = |e: &&Happened| e.kind == EventKind::Position;
        for position in history.of_instr(instr).filter(is_position) {
            if let (Some(owner), Some(qty)) = (position.owner, position.qty) {
                last.entry(owner).or_insert(qty);
            }
        }
        let mine = last.iter().filter(|(owner, _)| history.group(**owner) == group);
        let long: Number = mine.map(|(_, qty)| Number::from(*qty)).sum();
        // "long qty * 100 >= min_share_pct * open_interest (else float)"
        let float = match history.reference_before(instr, EventField::Float, now.seq) {
            Some(FieldValue::Decimal(float)) => Some(*float),
            _ => None,
        };
        let is_given = |qty: &Decimal| qty.mantissa() > 0;
        let open_interest = now.decimal(EventField::OpenInterest).filter(is_given);
        let total = open_interest.or(float.filter(is_given))?;
        let min_share_pct = Number::billionths(self.params.nano("min_share_pct"));
        let is_dominant =
            long.is_positive() && long * Number::from(100) >= min_share_pct * Number::from(total);
        // "the last trade is above that of the linked instrument with the next expiry"; "linked instruments share the
        // underlying".
        let underlying = underlying(history, instr)?;
        let linked: BTreeMap<InstrumentId, CivilDate> = history
            .of_kind(EventKind::Ref)
            .filter_map(|e| e.instr)
            .filter(|other| self::underlying(history, *other) == Some(underlying))
            .filter_map(|other| Some((other, self::expiry(history, other)?)))
            .filter(|(_, other)| *other > expiry)
            .collect();
        let next = *linked.values().min()?;
        let px = last_trade(history, instr)?;
        // Several instruments may have the next expiry: the trade is above that of each.
        let mut peers = linked.iter().filter(|(_, expiry)| **expiry == next);
        let is_premium = peers.all(|(other, _)| last_trade(history, *other).is_some_and(|peer| px > peer));
        (is_dominant && is_premium).then(|| NaiveAlert {
            ts: now.ts,
            key: vec![
                ("group", name(names, NameKind::Owner, group)),
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

fn expiry(history: &History, instr: InstrumentId) -> Option<CivilDate> {
    match history.reference_before(instr, EventField::Expiry, history.now().seq)? {
        FieldValue::Date(date) => Some(*date),
        _ => None,
    }
}

fn underlying(history: &History, instr: InstrumentId) -> Option<u32> {
    match history.reference_before(instr, EventField::Underlying, history.now().seq)? {
        FieldValue::Name(_, id) => Some(*id),
        _ => None,
    }
}

/// Returns the price of the last public trade, over all venues.
fn last_trade(history: &History, instr: InstrumentId) -> Option<Price> {
    let prints = history.prints_before(instr, None, history.now().seq);
    prints.iter().rfind(|print| !print.no_last).map(|print| print.px)
}
