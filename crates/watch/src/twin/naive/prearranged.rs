//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{Happened, History, Id, NaiveAlert, Twin, name};
use std::collections::HashSet;
use unitape_model::{CivilDate, Decimal, Dictionary, EventKind, InstrumentId, NameKind, UnixNanos};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// "a match counts once for an owner pair"
    seen: HashSet<(MatchOf, [u32; 2])>,
    /// The counted matches that are not forgotten.
    counted: Vec<CountedMatch>,
}

/// "match_id per venue+instrument", and its session date.
type MatchOf = (Id, u32, InstrumentId, CivilDate);

struct CountedMatch {
    owners: [u32; 2],
    instr: InstrumentId,
    ts: UnixNanos,
}

/// An execution that fully fills its order.
struct FullFill {
    match_of: MatchOf,
    owner: u32,
    side: char,
    qty: Decimal,
    /// "entry times are those of order_new"
    entry_ts: UnixNanos,
}

/// Implements "Fully filled = the only fill of each order and equal to its latest amended quantity", at the execution itself.
fn full_fill(history: &History, e: &Happened) -> Option<FullFill> {
    let qty = e.executed_qty()?;
    let order = history.order_before(e)?;
    let is_only = !history.of_order(e).iter().any(|other| other.executed_qty().is_some());
    let match_of = (e.match_id.clone()?, e.venue?, e.instr?, e.session_date);
    (is_only && order.qty == Some(qty)).then_some(FullFill {
        match_of,
        owner: history.owner(e)?,
        side: e.side?,
        qty,
        entry_ts: order.new?.ts,
    })
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), seen: HashSet::new(), counted: Vec::new() }
    }

    fn judge(&mut self, history: &History, names: &Dictionary) -> Option<Vec<NaiveAlert>> {
        let now = history.now();
        let e = full_fill(history, now)?;
        let gap = self.params.millis("entry_gap_ms");
        let mut alerts = Vec::new();
        // "Of a match with more than two legs each pair on opposite sides is looked at". "Alert at the second leg".
        for f in history.of_kind(EventKind::Exec).filter(|f| f.seq < now.seq) {
            let Some(f) = full_fill(history, f) else { continue };
            // "A match counts when two different groups trade, both orders are fully filled by that single match with equal
            // order quantity, and their entry times differ by <= entry_gap_ms."
            let counts = f.match_of == e.match_of
                && f.side != e.side
                && history.group(f.owner) != history.group(e.owner)
                && f.qty == e.qty
                && (i128::from(f.entry_ts.0) - i128::from(e.entry_ts.0)).abs() <= gap;
            // "owners = the two owner codes in ascending order"
            let mut owners = [e.owner, f.owner];
            owners.sort_by_key(|owner| name(names, NameKind::Owner, *owner));
            if !counts || !self.seen.insert((e.match_of.clone(), owners)) {
                continue;
            }
            let instr = e.match_of.2;
            self.counted.push(CountedMatch { owners, instr, ts: now.ts });
            // "Fire when the unordered owner pair reaches min_repeat counted matches in (t-window_s,t] in one instrument"
            let (t, window) = (i128::from(now.ts.0), self.params.seconds("window_s"));
            let in_window = |ts: UnixNanos| i128::from(ts.0) > t - window && i128::from(ts.0) <= t;
            let is_same = |m: &CountedMatch| m.owners == owners && m.instr == instr;
            let count = self.counted.iter().filter(|m| is_same(m) && in_window(m.ts)).count();
            if count as u64 >= self.params.uint("min_repeat") {
                // "after an alert all counted matches are forgotten"
                self.counted.retain(|m| !is_same(m));
                let codes = owners.map(|owner| name(names, NameKind::Owner, owner));
                let owners = ("owners", serde_json::json!(codes).to_string());
                let key = vec![owners, ("instr", name(names, NameKind::Instrument, instr.0))];
                alerts.push(NaiveAlert { ts: now.ts, key });
            }
        }
        Some(alerts)
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        self.judge(history, names).unwrap_or_default()
    }
}
