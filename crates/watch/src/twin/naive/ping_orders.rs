//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::number::Number;
use crate::twin::naive::{Happened, History, NaiveAlert, Twin, name};
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

    /// Implements "IOC orders with qty<=max_ping_qty".
    fn is_probe(&self, e: &Happened) -> bool {
        let most = Number::from(self.params.amount("max_ping_qty"));
        let is_small = e.qty.map(Number::from).is_some_and(|qty| qty.is_positive() && qty <= most);
        e.kind == EventKind::OrderNew && e.text(EventField::Tif) == Some("IOC") && is_small
    }

    fn judge(&self, history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        // "Another order = an order_new of the same key that is not itself a probe; amends do not count"
        let follow = history.now();
        if follow.kind != EventKind::OrderNew || self.is_probe(follow) {
            return None;
        }
        let (owner, venue, instr, side) = (follow.owner?, follow.venue?, follow.instr?, follow.side?);
        // "Per owner+venue+instrument+side: IOC orders [...] in (t-window,t] are probes."; latest first.
        let probes: Vec<&Happened> = history
            .of_owner(owner)
            .filter(|e| e.venue == Some(venue) && e.instr == Some(instr) && e.side == Some(side))
            .filter(|e| self.is_probe(e) && e.is_in_window(follow.ts, self.params.millis("window_ms")))
            .collect();
        // "probes>=min_pings, last probe <= follow_ms ago"
        let enough = probes.len() as u64 >= self.params.uint("min_pings");
        let ago = i128::from(follow.ts.0) - i128::from(probes.first()?.ts.0);
        // "qty>=min_follow_ratio*max probe qty"
        let ratio = Number::billionths(self.params.nano("min_follow_ratio"));
        let qty = Number::from(follow.qty?);
        let large =
            probes.iter().filter_map(|e| e.qty).all(|probe| qty >= ratio.clone() * Number::from(probe));
        // "and at least one probe had an exec"; "the probe's exec must be seen before it".
        let is_of_probe = |e: &Happened| {
            let order = history.order_before(e);
            order
                .and_then(|order| order.new)
                .is_some_and(|new| probes.iter().any(|probe| probe.seq == new.seq))
        };
        let hit = history.of_kind(EventKind::Exec).any(|e| e.executed_qty().is_some() && is_of_probe(e));
        let fires = enough && ago <= self.params.millis("follow_ms") && large && hit;
        fires.then(|| NaiveAlert {
            ts: follow.ts,
            key: vec![
                ("owner", name(names, NameKind::Owner, owner)),
                ("venue", name(names, NameKind::Venue, venue)),
                ("instr", name(names, NameKind::Instrument, instr.0)),
                ("side", side.to_string()),
            ],
        })
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        self.judge(history, names).into_iter().collect()
    }
}
