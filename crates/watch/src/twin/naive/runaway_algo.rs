//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::number::Number;
use crate::twin::naive::{FieldValue, Happened, History, Id, NaiveAlert, Twin, name};
use std::collections::HashSet;
use unitape_model::{Dictionary, EventField, EventKind, NameKind};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// "Once per algo and reason"
    given: HashSet<(u32, &'static str)>,
}

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), given: HashSet::new() }
    }

    /// Implements "message_rate (new+amend+cancel in window > max_msgs)".
    fn is_message_rate(&self, history: &History, algo: u32) -> bool {
        let (now, window) = (history.now(), self.params.millis("msg_window_ms"));
        let messages = [EventKind::OrderNew, EventKind::OrderAmend, EventKind::OrderCancel]
            .into_iter()
            .flat_map(|kind| history.of_kind(kind))
            .filter(|e| e.is_message() && e.is_in_window(now.ts, window))
            .filter(|e| algo_of(history, e) == Some(algo));
        now.is_message() && messages.count() as u64 > self.params.uint("max_msgs")
    }

    /// Implements "repeat (identical algo+venue+instr+side+px+qty order_new in window > max_repeats)".
    fn is_repeat(&self, history: &History, algo: u32) -> bool {
        let (now, window) = (history.now(), self.params.millis("repeat_window_ms"));
        let terms = |e: &Happened| Some((e.venue?, e.instr?, e.side?, e.px?, e.qty?));
        let repeats = history
            .of_kind(EventKind::OrderNew)
            .filter(|e| e.is_in_window(now.ts, window) && algo_of(history, e) == Some(algo))
            .filter(|e| terms(e) == terms(now));
        now.kind == EventKind::OrderNew
            && terms(now).is_some()
            && repeats.count() as u64 > self.params.uint("max_repeats")
    }

    /// Implements "notional (gross executed in window > max_notional)".
    fn is_notional(&self, history: &History, algo: u32) -> bool {
        let (now, window) = (history.now(), self.params.seconds("notional_window_s"));
        let gross: Number = history
            .of_kind(EventKind::Exec)
            .filter(|e| e.is_in_window(now.ts, window) && algo_of(history, e) == Some(algo))
            .filter_map(|e| Some(Number::from(e.executed_qty()?) * Number::from(e.px?).abs()))
            .sum();
        let counts = now.executed_qty().is_some() && now.px.is_some();
        counts && gross > Number::from(self.params.amount("max_notional"))
    }

    /// Implements "overfill (executed quantity of a parent > overfill_pct % of parent qty)"; "overfill counts the parent over
    /// all algos and alerts on the algo of the crossing exec".
    fn is_overfill(&self, history: &History) -> bool {
        let now = history.now();
        let Some(parent) = parent_of(history, now) else { return false };
        let of_parent = |e: &&Happened| {
            let has_key = e.executed_qty().is_some() && algo_of(history, e).is_some();
            has_key && parent_of(history, e) == Some(parent)
        };
        // The crossing execution is beyond the limit, and the one before it was not.
        let mut execs = history.of_kind(EventKind::Exec).filter(of_parent);
        let (last, before) = (execs.next(), execs.next());
        let is_beyond = |exec: &Happened| self.is_beyond(history, parent, exec);
        last.is_some_and(|e| e.seq == now.seq && is_beyond(e)) && !before.is_some_and(is_beyond)
    }

    /// Returns whether the parent was overfilled with this execution.
    fn is_beyond(&self, history: &History, parent: &Id, exec: &Happened) -> bool {
        let executed: Number = history
            .of_kind(EventKind::Exec)
            .filter(|e| e.seq <= exec.seq && algo_of(history, e).is_some())
            .filter(|e| parent_of(history, e) == Some(parent))
            .filter_map(|e| e.executed_qty().map(Number::from))
            .sum();
        let mut parents = history.of_kind(EventKind::Parent).filter(|e| e.seq < exec.seq);
        let qty = parents.find_map(|e| e.qty.filter(|_| e.id(EventField::Parent) == Some(parent)));
        let limit = |qty| Number::billionths(self.params.nano("overfill_pct")) * qty;
        qty.map(Number::from)
            .filter(Number::is_positive)
            .is_some_and(|qty| executed * Number::from(100) > limit(qty))
    }
}

/// Returns the algorithm of an event: its own, or that of its order.
fn algo_of(history: &History, e: &Happened) -> Option<u32> {
    match history.inherited(e, EventField::Algo)? {
        FieldValue::Name(_, algo) => Some(*algo),
        _ => None,
    }
}

/// Returns the parent order of an execution, likewise.
fn parent_of<'a>(history: &'a History, e: &'a Happened) -> Option<&'a Id> {
    match history.inherited(e, EventField::Parent)? {
        FieldValue::Id(parent) => Some(parent),
        _ => None,
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let now = history.now();
        let Some(algo) = algo_of(history, now) else { return vec![] };
        // "runaway_algo reasons in the order message_rate, repeat, notional, overfill"
        let reasons = [
            ("message_rate", self.is_message_rate(history, algo)),
            ("repeat", self.is_repeat(history, algo)),
            ("notional", self.is_notional(history, algo)),
            ("overfill", self.is_overfill(history)),
        ];
        // "Per algo, each reason once until re-enabled"
        let is_new = |(reason, is_met): &(&'static str, bool)| *is_met && self.given.insert((algo, *reason));
        let key = || vec![("algo", name(names, NameKind::Algo, algo))];
        reasons.into_iter().filter(is_new).map(|_| NaiveAlert { ts: now.ts, key: key() }).collect()
    }
}
