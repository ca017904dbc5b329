//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{History, Id, NaiveAlert, Number, Twin, id_text, name};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use unitape_model::{Dictionary, EventField, EventKind, InstrumentId, NameKind, Price, UnixNanos};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// The news whose reaction is not over, in the order they came.
    open: Vec<News>,
}

#[derive(Clone)]
struct News {
    id: Id,
    ts: i128,
    instrs: BTreeSet<u32>,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), open: Vec::new() }
    }

    fn nanos(&self, param: &str, unit_s: i128) -> i128 {
        i128::from(self.params.uint(param)) * unit_s * 1_000_000_000
    }

    fn judge(
        &self,
        history: &History,
        names: &Dictionary,
        (news, instr): (&News, InstrumentId),
    ) -> Option<Vec<NaiveAlert>> {
        let now = history.now();
        // "at T=N.ts+reaction (first event with ts>=T)"
        let due = news.ts + self.nanos("reaction_min", 60);
        let mut trades: Vec<(i128, Price)> = history
            .prints_before(instr, None, now.seq)
            .into_iter()
            .filter(|print| !print.no_last)
            .map(|print| (i128::from(print.ts.0), print.px))
            .collect();
        // "a trade at exactly T counts in p1": such a trade is itself the first event with ts >= T.
        let print = history.print_now().filter(|print| !print.no_last && now.instr == Some(instr));
        trades.extend(print.map(|print| (i128::from(print.ts.0), print.px)).filter(|(ts, _)| *ts == due));
        // "p0 = last trade with ts < news ts", "p1 = last trade <= T"; the last by seq.
        let p0 = Number::from(trades.iter().rfind(|(ts, _)| *ts < news.ts)?.1);
        let p1 = Number::from(trades.iter().rfind(|(ts, _)| *ts <= due)?.1);
        let change = p1 - p0.clone();
        // "If |p1-p0|*100>=min_move_pct*p0"
        let min_move = Number::billionths(self.params.nano("min_move_pct")) * p0.clone();
        if !p0.is_positive() || change.clone().abs() * Number::whole(100) < min_move {
            return None;
        }
        // "for each owner net = buys-sells with ts strictly in (N-lookback, N)"; "all venues"
        let from = news.ts - self.nanos("lookback_h", 3_600);
        let execs: Vec<_> = history
            .of_instr(instr)
            .filter(|e| e.kind == EventKind::Exec && e.seq < now.seq)
            .filter(|e| i128::from(e.ts.0) > from && i128::from(e.ts.0) < news.ts)
            .filter(|e| e.qty.is_some_and(|qty| qty.mantissa() > 0))
            .collect();
        let owners: BTreeSet<u32> = execs.iter().filter_map(|e| history.owner(e)).collect();
        let fires = |owner: &u32| {
            let mut net = Number::whole(0);
            for e in execs.iter().filter(|e| history.owner(e) == Some(*owner)) {
                let qty = Number::from(e.qty.expect("looked for above"));
                net = match e.side {
                    Some('B') => net + qty,
                    Some('S') => net - qty,
                    _ => net,
                };
            }
            // "fire if sign(net)=sign(move) and |net|*|p1-p0|>=min_profit"
            let profit = net.clone().abs() * change.clone().abs();
            net.sign() != Ordering::Equal
                && net.sign() == change.sign()
                && profit >= Number::from(self.params.amount("min_profit"))
        };
        let alert = |owner| NaiveAlert {
            ts: UnixNanos(i64::try_from(due).expect("not after the time of an event")),
            key: vec![
                ("owner", name(names, NameKind::Owner, owner)),
                ("instr", name(names, NameKind::Instrument, instr.0)),
                ("news_id", id_text(&news.id)),
            ],
        };
        Some(owners.into_iter().filter(fires).map(alert).collect())
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let now = history.now();
        let t = i128::from(now.ts.0);
        let reaction = self.nanos("reaction_min", 60);
        let (mut due, open): (Vec<News>, Vec<News>) =
            self.open.iter().cloned().partition(|news| news.ts + reaction <= t);
        due.sort_by_key(|news| news.ts);
        let mut alerts = Vec::new();
        for news in &due {
            for instr in &news.instrs {
                alerts.extend(self.judge(history, names, (news, InstrumentId(*instr))).unwrap_or_default());
            }
        }
        self.open = open;
        // "For news N on instrument i"; without a name of the key it takes no part.
        if let (EventKind::News, Some(id)) = (now.kind, now.id(EventField::NewsId)) {
            let instrs = now.names(EventField::Instrs).iter().copied().collect();
            self.open.push(News { id: id.clone(), ts: t, instrs });
        }
        alerts
    }
}
