//! Scenarios of orders and their messages.

use std::collections::{BTreeSet, HashMap};

use super::{Alert, Event, MS, ONE, key};

/// Order state by (venue, oid).
struct Order<'a> {
    new: &'a Event,
    qty: i128,
    px: Option<i128>,
    executed: i128,
    gone: bool,
}

impl Order<'_> {
    fn live(&self) -> bool {
        !self.gone && self.qty > self.executed
    }
}

#[derive(Default)]
struct Orders<'a>(HashMap<(&'a str, &'a str), Order<'a>>);

impl<'a> Orders<'a> {
    fn id(e: &'a Event) -> (&'a str, &'a str) {
        (e.get("venue"), e.get("oid"))
    }

    fn of(&self, e: &'a Event) -> Option<&Order<'a>> {
        self.0.get(&Self::id(e))
    }

    /// Call after the event was looked at: the state that an event finds is the one before it.
    fn apply(&mut self, e: &'a Event) {
        match e.kind.as_str() {
            "order_new" => {
                let order = Order { new: e, qty: e.num("qty"), px: e.nano("px"), executed: 0, gone: false };
                self.0.insert(Self::id(e), order);
            }
            "order_amend" => {
                if let Some(o) = self.0.get_mut(&Self::id(e)) {
                    o.qty = e.num("qty");
                    o.px = e.nano("px").or(o.px);
                }
            }
            "order_cancel" => {
                if let Some(o) = self.0.get_mut(&Self::id(e)) {
                    o.gone = true;
                }
            }
            "exec" => {
                if let Some(o) = self.0.get_mut(&Self::id(e)) {
                    o.executed += e.num("qty");
                }
            }
            _ => {}
        }
    }
}

pub fn spoofing(events: &[Event]) -> Vec<Alert> {
    let mut found = Vec::new();
    let mut orders = Orders::default();
    let ticks: HashMap<&str, i128> =
        events.iter().filter(|e| e.kind == "ref").map(|e| (e.get("instr"), e.num("tick"))).collect();
    let mut bbo: HashMap<(&str, &str), &Event> = HashMap::new();
    let mut bbo_before: HashMap<u64, Option<&Event>> = HashMap::new();
    let mut execs: HashMap<(&str, &str, &str), Vec<&Event>> = HashMap::new();
    for e in events {
        let place = || (e.get("venue"), e.get("instr"));
        match e.kind.as_str() {
            "bbo" => drop(bbo.insert(place(), e)),
            "order_new" => drop(bbo_before.insert(e.seq, bbo.get(&place()).copied())),
            "exec" => execs.entry((e.get("owner"), e.get("venue"), e.get("instr"))).or_default().push(e),
            "order_cancel" => {
                if let Some(o) = orders.of(e).filter(|o| o.live()) {
                    let (owner, venue, instr) = (o.new.get("owner"), o.new.get("venue"), o.new.get("instr"));
                    let side = o.new.get("side");
                    let entry_px = o.new.nano("px");
                    let behind = bbo_before[&o.new.seq].and_then(|b| {
                        let best = b.nano(if side == "B" { "bid" } else { "ask" })?;
                        Some(if side == "B" { best - entry_px? } else { entry_px? - best }.max(0))
                    });
                    let other: Vec<&&Event> = execs
                        .get(&(owner, venue, instr))
                        .into_iter()
                        .flatten()
                        .filter(|x| x.get("side") != side && x.seq > o.new.seq && x.seq < e.seq)
                        .collect();
                    let fires = e.ts - o.new.ts <= 5000 * MS
                        && o.executed * 100 <= 10 * o.qty
                        && o.px.is_some_and(|px| o.qty * px >= 50_000 * ONE * ONE)
                        && behind.is_some_and(|b| b <= 3 * ticks[instr])
                        && other.last().is_some_and(|x| e.ts - x.ts <= 1500 * MS)
                        && o.qty >= 5 * other.iter().map(|x| x.num("qty")).sum::<i128>();
                    if fires {
                        let key =
                            key(&[("owner", owner), ("venue", venue), ("instr", instr), ("side", side)]);
                        found.push(("spoofing", key, e.seq));
                    }
                }
            }
            _ => {}
        }
        orders.apply(e);
    }
    found
}

struct Episode<'a> {
    set: Vec<(&'a str, &'a str)>,
    opened: i64,
    q: i128,
    g: i128,
    f: i128,
    c: i128,
}

pub fn layering(events: &[Event]) -> Vec<Alert> {
    let mut found = Vec::new();
    let mut orders = Orders::default();
    // Key: owner, venue, instr, side of the layers.
    let mut episodes: HashMap<[&str; 4], Episode<'_>> = HashMap::new();
    let mut entered: HashMap<[&str; 4], Vec<(&str, &str)>> = HashMap::new();
    let opposite = |side: &str| if side == "B" { "S" } else { "B" };
    for e in events {
        match e.kind.as_str() {
            "order_new" => {
                let at = [e.get("owner"), e.get("venue"), e.get("instr"), e.get("side")];
                entered.entry(at).or_default().push(Orders::id(e));
            }
            "exec" => {
                let own = [e.get("owner"), e.get("venue"), e.get("instr"), e.get("side")];
                // A fill of a layer.
                if let Some(ep) = episodes.get_mut(&own)
                    && e.ts <= ep.opened + 3000 * MS
                    && ep.set.contains(&Orders::id(e))
                {
                    ep.f += e.num("qty");
                }
                let layers = [own[0], own[1], own[2], opposite(own[3])];
                if episodes.get(&layers).is_some_and(|ep| e.ts > ep.opened + 3000 * MS) {
                    episodes.remove(&layers);
                }
                if let Some(ep) = episodes.get_mut(&layers) {
                    ep.g += e.num("qty");
                } else {
                    let live = |id: &&(&str, &str)| {
                        let o = &orders.0[*id];
                        o.live() && o.new.ts > e.ts - 10_000 * MS && o.new.ts <= e.ts
                    };
                    let set: Vec<_> =
                        entered.get(&layers).into_iter().flatten().filter(live).copied().collect();
                    let prices: BTreeSet<_> = set.iter().map(|id| orders.0[id].px).collect();
                    if set.len() >= 4 && prices.len() >= 3 {
                        let q = set.iter().map(|id| orders.0[id].qty - orders.0[id].executed).sum();
                        let g = e.num("qty");
                        episodes.insert(layers, Episode { set, opened: e.ts, q, g, f: 0, c: 0 });
                    }
                }
            }
            "order_cancel" => {
                let Some(o) = orders.of(e).filter(|o| o.live()) else {
                    orders.apply(e);
                    continue;
                };
                let at = [o.new.get("owner"), o.new.get("venue"), o.new.get("instr"), o.new.get("side")];
                if let Some(ep) = episodes.get_mut(&at)
                    && ep.set.contains(&Orders::id(e))
                    && e.ts <= ep.opened + 3000 * MS
                {
                    ep.c += o.qty - o.executed;
                    if ep.c * 100 >= 80 * ep.q && ep.q >= 3 * ep.g && ep.f * 100 <= 5 * ep.q {
                        let names = ["owner", "venue", "instr", "side"];
                        let pairs: Vec<_> = names.into_iter().zip(at).collect();
                        found.push(("layering", key(&pairs), e.seq));
                        episodes.remove(&at);
                    }
                }
            }
            _ => {}
        }
        orders.apply(e);
    }
    found
}

pub fn order_to_trade_ratio(events: &[Event]) -> Vec<Alert> {
    let mut found = Vec::new();
    let mut history: HashMap<&str, Vec<&Event>> = HashMap::new();
    let mut last_alert: HashMap<&str, i64> = HashMap::new();
    for e in events.iter().filter(|e| e.is_message() || e.kind == "exec") {
        let trader = e.get("trader");
        let seen = history.entry(trader).or_default();
        seen.push(e);
        let window = seen.iter().rev().take_while(|x| x.ts > e.ts - 1000 * MS);
        let (mut n, mut x) = (0, 0);
        window.for_each(|w| if w.is_message() { n += 1 } else { x += 1 });
        let armed = last_alert.get(trader).is_none_or(|&at| e.ts >= at + 60_000 * MS);
        if n >= 50 && n > 20 * x && armed {
            last_alert.insert(trader, e.ts);
            found.push(("order_to_trade_ratio", e.key(&["trader"]), e.seq));
        }
    }
    found
}

pub fn quote_stuffing(events: &[Event]) -> Vec<Alert> {
    let mut found = Vec::new();
    let mut orders = Orders::default();
    // Event, and for a cancel of a live order how long that lived.
    let mut history: HashMap<[&str; 3], Vec<(&Event, Option<i64>)>> = HashMap::new();
    let mut last_alert: HashMap<[&str; 3], i64> = HashMap::new();
    for e in events.iter().filter(|e| e.is_message() || e.kind == "exec") {
        let at = [e.get("trader"), e.get("venue"), e.get("instr")];
        let alive = match e.kind.as_str() {
            "order_cancel" => orders.of(e).filter(|o| o.live()).map(|o| e.ts - o.new.ts),
            _ => None,
        };
        let seen = history.entry(at).or_default();
        seen.push((e, alive));
        if e.kind == "order_cancel" {
            let (mut n, mut c, mut f, mut x) = (0, 0, 0, 0);
            for (w, alive) in seen.iter().rev().take_while(|(w, _)| w.ts > e.ts - 1000 * MS) {
                n += i32::from(w.is_message());
                c += i32::from(w.kind == "order_cancel");
                f += i32::from(alive.is_some_and(|ns| ns <= 100 * MS));
                x += i32::from(w.kind == "exec");
            }
            let armed = last_alert.get(&at).is_none_or(|&last| e.ts >= last + 60_000 * MS);
            if n >= 500 && f * 100 >= 90 * c && x * 100 <= n && armed {
                last_alert.insert(at, e.ts);
                found.push(("quote_stuffing", e.key(&["trader", "venue", "instr"]), e.seq));
            }
        }
        orders.apply(e);
    }
    found
}
