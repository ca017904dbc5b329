//! The words of the definition, each looked up in everything that happened.

use crate::exact::QuantitySum;
use crate::params::ScenarioParams;
use crate::twin::naive::{Happened, History, NaiveAlert, Order, Twin, name, opposite, sum};
use std::collections::{BTreeSet, HashMap};
use unitape_model::{Dictionary, EventKind, InstrumentId, NameKind};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// "L and E on different venues of the same instrument".
    is_cross_venue: bool,
    /// "one episode per key at a time, a new one may open after it ends"
    episodes: HashMap<LayerKey, Episode>,
}

/// Whose orders are layered, and where.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct LayerKey {
    owner: u32,
    /// "(venue removed from the key)" if it is `None`.
    venue: Option<u32>,
    instr: InstrumentId,
    /// "key.side is the side of the layered orders."
    side: char,
}

struct Episode {
    /// Sequence of E.
    seq: u64,
    /// tE+cancel_ms.
    end: i128,
    /// The `order_new` of each order of L. "the set is fixed when the episode opens"
    layers: Vec<u64>,
    /// Q.
    size: QuantitySum,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), is_cross_venue: false, episodes: HashMap::new() }
    }

    /// Makes the twin of the same scenario across venues.
    pub(super) fn cross_venue(params: &ScenarioParams) -> Self {
        Self { is_cross_venue: true, ..Self::new(params) }
    }

    /// Implements "On exec E by owner P on side s".
    fn open(&mut self, history: &History) -> Option<()> {
        let e = history.now();
        e.executed_qty()?;
        let (owner, instr, side) = (history.owner(e)?, e.instr?, opposite(e.side?));
        let venue = e.venue.filter(|_| !self.is_cross_venue);
        let key = LayerKey { owner, venue, instr, side };
        let now = i128::from(e.ts.0);
        // "and no open episode"
        if self.episodes.get(&key).is_some_and(|episode| now <= episode.end) {
            return None;
        }
        // "let L = P's live orders on the opposite side, same venue+instrument, entered in (tE-build_ms,tE]"
        let is_there = |new: &Happened| match self.is_cross_venue {
            false => new.venue == e.venue,
            // "L are the live orders on venues other than that of E"
            true => new.venue.is_some() && new.venue != e.venue,
        };
        let layers: Vec<Order<'_>> = history
            .of_kind(EventKind::OrderNew)
            .filter(|new| new.instr == Some(instr) && new.side == Some(side) && is_there(new))
            .filter(|new| new.is_in_window(e.ts, self.params.millis("build_ms")))
            .filter_map(|new| history.order_of(new, e.seq + 1))
            .filter(|order| order.is_live() && order.owner == Some(owner))
            .collect();
        // "If |L|>=min_orders and distinct prices>=min_levels"; "latest amended price counts for distinct prices".
        let levels: BTreeSet<i64> = layers.iter().filter_map(|order| Some(order.px?.0)).collect();
        let counts = [(layers.len(), "min_orders"), (levels.len(), "min_levels")];
        if counts.iter().any(|(count, least)| (*count as u64) < self.params.uint(least)) {
            return None;
        }
        // "open episode (Q=sum leaves of L, G=E.qty)"
        let size = QuantitySum::total(layers.iter().map(Order::leaves));
        let layers = layers.iter().filter_map(|order| Some(order.new?.seq)).collect();
        let end = now + self.params.millis("cancel_ms");
        self.episodes.insert(key, Episode { seq: e.seq, end, layers, size });
        None
    }

    /// Implements "On each cancel of an order of L at t<=tE+cancel_ms".
    fn judge(&mut self, history: &History, names: &Dictionary) -> Option<NaiveAlert> {
        let cancel = history.now();
        let layer_of = |e: &Happened| history.order_before(e)?.new.map(|new| new.seq);
        let leaves = |e: &Happened| history.order_before(e).map_or(QuantitySum::ZERO, |order| order.leaves());
        let is_cancel = |e: &Happened| {
            e.kind == EventKind::OrderCancel && !e.is_of_venue() && leaves(e) > QuantitySum::ZERO
        };
        if !is_cancel(cancel) {
            return None;
        }
        let layer = layer_of(cancel)?;
        let (key, episode) = self.episodes.iter().find(|(_, episode)| episode.layers.contains(&layer))?;
        if i128::from(cancel.ts.0) > episode.end {
            return None;
        }
        let belongs = |e: &Happened| e.seq > episode.seq && i128::from(e.ts.0) <= episode.end;
        let is_layer = |e: &Happened| layer_of(e).is_some_and(|layer| episode.layers.contains(&layer));
        // "add its leaves to C"; "leaves as at that cancel".
        let c = history
            .of_kind(EventKind::OrderCancel)
            .filter(|e| belongs(e) && is_cancel(e) && is_layer(e))
            .map(leaves);
        let c = QuantitySum::total(c);
        // "Later execs of P on side s within cancel_ms add to G"; for other venues "later execs and cancels on any venue
        // count".
        let g = sum(history
            .of_owner(key.owner)
            .filter(|e| e.executed_qty().is_some() && (belongs(e) || e.seq == episode.seq))
            .filter(|e| e.instr == Some(key.instr) && e.side == Some(opposite(key.side)))
            .filter(|e| self.is_cross_venue || e.venue == key.venue));
        // "fills of L within cancel_ms add to F"
        let f = sum(history.of_kind(EventKind::Exec).filter(|e| belongs(e) && is_layer(e)));
        // "fire when C*100>=cancel_pct*Q and Q>=min_size_ratio*G and F*100<=max_filled_pct*Q"; the limits are in billionths.
        let (q, nano) = (episode.size, |name| self.params.nano(name));
        let percent = |sum: QuantitySum| sum.times(100).times(1_000_000_000);
        let fires = percent(c) >= q.times(nano("cancel_pct"))
            && q.times(1_000_000_000) >= g.times(nano("min_size_ratio"))
            && percent(f) <= q.times(nano("max_filled_pct"));
        let key = *key;
        fires.then(|| {
            // "Episode closes on alert"
            self.episodes.remove(&key);
            let mut names_of_key = vec![("owner", name(names, NameKind::Owner, key.owner))];
            names_of_key.extend(key.venue.map(|venue| ("venue", name(names, NameKind::Venue, venue))));
            names_of_key.push(("instr", name(names, NameKind::Instrument, key.instr.0)));
            names_of_key.push(("side", key.side.to_string()));
            NaiveAlert { ts: cancel.ts, key: names_of_key }
        })
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        self.open(history);
        self.judge(history, names).into_iter().collect()
    }
}
