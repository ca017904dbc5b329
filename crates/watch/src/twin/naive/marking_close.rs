//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{Happened, History, NaiveAlert, Number, Twin, name};
use std::cmp::Ordering;
use std::collections::BTreeSet;
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

    fn judge(&self, history: &History, names: &Dictionary) -> Option<Vec<NaiveAlert>> {
        // "Runs on session events with phase close that carry px"
        let session = history.now();
        let is_close = session.kind == EventKind::Session && session.text(EventField::Phase) == Some("close");
        let (instr, venue, close) = (session.instr?, session.venue?, Number::from(session.px?));
        if !is_close {
            return None;
        }
        let close_ts = i128::from(session.ts.0);
        let window = i128::from(self.params.uint("window_s")) * 1_000_000_000;
        let is_inside = |ts: i64| i128::from(ts) > close_ts - window && i128::from(ts) <= close_ts;
        // "ref = last public trade with ts <= close-window (none: no alert)"
        let prints = history.prints_before(instr, Some(venue), session.seq);
        let reference = prints
            .iter()
            .rfind(|print| !print.no_last && i128::from(print.ts.0) <= close_ts - window)
            .map(|print| Number::from(print.px))
            .filter(Number::is_positive)?;
        // "If |close-ref|*10000 >= min_move_bps*ref, let d = direction."
        let change = close - reference.clone();
        let d = match change.sign() {
            Ordering::Greater => 'B',
            Ordering::Less => 'S',
            Ordering::Equal => return None,
        };
        let min_move = Number::billionths(self.params.nano("min_move_bps")) * reference;
        if change.abs() * Number::whole(10_000) < min_move {
            return None;
        }
        // "public volume in the window"; "zero public volume ...: no alert"
        let volume = prints
            .iter()
            .filter(|print| is_inside(print.ts.0) && print.qty.mantissa() > 0)
            .fold(Number::whole(0), |sum, print| sum + Number::from(print.qty));
        if !volume.is_positive() {
            return None;
        }
        // "over (close-window, close]"; "same venue and instrument throughout"
        let execs: Vec<&Happened> = history
            .of_instr(instr)
            .filter(|e| e.kind == EventKind::Exec && e.venue == Some(venue) && e.seq < session.seq)
            .filter(|e| is_inside(e.ts.0) && e.qty.is_some_and(|qty| qty.mantissa() > 0))
            .collect();
        let owners: BTreeSet<u32> = execs.iter().filter_map(|e| history.owner(e)).collect();
        let fires = |owner: &u32| {
            let (mut dq, mut oq, mut notional) = (Number::whole(0), Number::whole(0), Number::whole(0));
            for e in execs.iter().filter(|e| history.owner(e) == Some(*owner)) {
                let qty = Number::from(e.qty.expect("looked for above"));
                let is_aggressive = matches!(e.text(EventField::Liq), Some("R" | "X"));
                match (e.side, e.px) {
                    // "dq = aggressive or auction execs (liq R/X) on side d"; "notional = sum of px*qty of the execs"
                    (Some(side), Some(px)) if side == d && is_aggressive => {
                        dq = dq + qty.clone();
                        notional = notional + Number::from(px) * qty;
                    }
                    // "oq = all execs on the other side"
                    (Some(side), _) if side != d => oq = oq + qty,
                    _ => {}
                }
            }
            // "notional(dq)>=min_notional and (dq-oq)*100 >= min_share_pct * public volume"
            let min_share = Number::billionths(self.params.nano("min_share_pct")) * volume.clone();
            notional >= Number::from(self.params.amount("min_notional"))
                && (dq - oq) * Number::whole(100) >= min_share
        };
        let alert = |owner| NaiveAlert {
            ts: session.ts,
            key: vec![
                ("owner", name(names, NameKind::Owner, owner)),
                ("venue", name(names, NameKind::Venue, venue)),
                ("instr", name(names, NameKind::Instrument, instr.0)),
            ],
        };
        Some(owners.into_iter().filter(fires).map(alert).collect())
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        self.judge(history, names).unwrap_or_default()
    }
}
