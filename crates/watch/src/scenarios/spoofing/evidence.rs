//! The executions behind an alert, for people: the latest of each account and side, as a chain.

use super::{DEF, key};
use crate::alert::Alert;
use crate::exact::Total;
use crate::ids::IdKey;
use crate::orders::OrderState;
use crate::watch::Input;
use serde_json::{Value, json};
use std::collections::VecDeque;
use unitape_model::Field;
use unitape_model::records::Order;

/// Executions kept at most; the condition does not need them, so a forgotten one is only not named.
const KEPT_MAX: usize = 1 << 16;
/// Executions that an alert names at most.
const NAMED_MAX: usize = 32;

/// No execution.
pub(super) const NONE: u64 = u64::MAX;

/// Executions by number; the first that is still kept is number `base`.
#[derive(Default)]
pub(super) struct Evidence {
    kept: VecDeque<Execution>,
    base: u64,
}

#[derive(Clone, Copy)]
struct Execution {
    seq: u64,
    /// `u64::MAX` when it is not on a tape.
    position: u64,
    match_id: Option<IdKey>,
    /// The one before of the same account and side.
    before: u64,
}

impl Evidence {
    /// Keeps an execution behind `before`; gives its number.
    pub fn add(&mut self, input: &Input<'_, '_>, record: &Order, before: u64) -> u64 {
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
            self.base += 1;
        }
        self.kept.push_back(Execution {
            seq: input.context.seq,
            position: input.context.position_or_none(),
            match_id: IdKey::of(input.event, Field::MatchId, &record.id2),
            before,
        });
        self.base + self.kept.len() as u64 - 1
    }

    pub fn clear(&mut self) {
        self.base += self.kept.len() as u64;
        self.kept.clear();
    }

    /// The alert of `order`, cancelled by the event at hand; `last` is the last execution on the other side.
    #[cold]
    pub fn alert(&self, input: &Input<'_, '_>, order: &OrderState, executed: &Total, last: u64) -> Alert {
        let (mut executions, mut at) = (Vec::new(), last);
        while let Some(execution) = at.checked_sub(self.base).and_then(|i| self.kept.get(i as usize)) {
            if execution.seq <= order.entry_seq || executions.len() == NAMED_MAX {
                break;
            }
            executions.push(execution);
            at = execution.before;
        }
        executions.reverse();
        let oid = IdKey::read(input.event, Field::Oid).map(|id| id.text());
        let ids: Vec<String> = executions.iter().filter_map(|e| Some(e.match_id?.text())).collect();
        let seqs = |of: fn(&Execution) -> u64, entry: u64, now: u64| {
            let between = executions.iter().map(|e| of(e));
            std::iter::once(entry).chain(between).chain([now]).collect::<Vec<u64>>()
        };
        let now = input.context;
        let mut detail = json!({
            "spoof_oid": oid,
            "exec_match_ids": ids,
            "qty": order.qty().map(|q| q.to_string()),
            "px": order.px.some().map(|p| p.to_string()),
            "executed_opposite": executed.to_string(),
            "filled": order.executed.to_string(),
            "life_ns": i128::from(input.event.ts_event().0) - i128::from(order.entry_ts),
            "seqs": seqs(|e| e.seq, order.entry_seq, now.seq),
        });
        if let Some(position) = now.position {
            detail["positions"] = Value::from(seqs(|e| e.position, order.entry_position, position.0));
        }
        Alert {
            scenario: DEF.id,
            ts: input.event.ts_event(),
            trigger_seq: now.seq,
            key: key(input, order),
            detail,
        }
    }
}
