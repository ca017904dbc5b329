//! The executions behind an alert, for people: the latest of each account and side, as a chain.

use super::{ID, key};
use crate::alert::Alert;
use crate::exact::QuantitySum;
use crate::ids::{IdKey, id_text};
use crate::kept::OptionalPosition;
use crate::orders::OrderState;
use crate::state::{state_value, watch_state};
use crate::watch::ScenarioInput;
use serde_json::json;
use std::collections::VecDeque;
use std::iter::once;
use unitape_model::records::OrderRecord;
use unitape_model::{Decimal, Event, EventField, EventValue, InlineId};

/// Executions kept at most; the condition needs them only for an order that did not say whose it is.
const KEPT_MAX: usize = 1 << 16;
/// Bytes of match ids that are too long for their place, at most; the oldest executions are forgotten first.
const TEXT_BYTES_MAX: usize = 1 << 24;
/// The greatest number of executions that an alert names. The alert counts the others.
const NAMED_MAX: usize = 1 << 10;

/// No execution.
pub(super) const NONE: u64 = u64::MAX;

/// Executions by number; the first that is still kept is number `first_number`.
#[derive(Default)]
pub(super) struct ExecutionEvidence {
    executions: VecDeque<KeptExecution>,
    first_number: u64,
    /// Long match ids of those kept, one after the other.
    texts: VecDeque<u8>,
    /// Bytes of them that are gone.
    texts_base: u64,
}

#[derive(Clone, Copy)]
struct KeptExecution {
    seq: u64,
    position: OptionalPosition,
    match_id: Option<IdKey>,
    qty: Decimal,
    /// The one before of the same account and side.
    previous_number: u64,
    /// The place of its long match id.
    text_at: u64,
    text_bytes: u32,
}

/// The executions of an owner on the other side of an order during its life.
#[derive(Clone, Copy)]
pub(super) struct OppositeExecutions {
    /// All of it.
    pub total_qty: QuantitySum,
    /// The number of executions.
    pub count: u64,
    /// Ordinal of the order's entry.
    pub entry_seq: u64,
    /// Number of the last.
    pub last_number: u64,
    /// Whose order it is.
    pub owner: u32,
}

state_value!(KeptExecution { seq, position, match_id, qty, previous_number, text_at, text_bytes });
watch_state!(ExecutionEvidence { executions, first_number, texts, texts_base });

impl ExecutionEvidence {
    /// Keeps an execution after `before`. Returns its number.
    pub fn add(
        &mut self,
        input: &ScenarioInput<'_, '_>,
        record: &OrderRecord,
        qty: Decimal,
        before: u64,
    ) -> u64 {
        let match_id = IdKey::from_slot(input.event, EventField::MatchId, &record.id2);
        let text_at = self.texts_base + self.texts.len() as u64;
        if match_id.is_some_and(|id| id.is_hashed()) {
            self.keep_text(input.event);
        }
        while self.executions.len() >= KEPT_MAX
            || self.texts.len() > TEXT_BYTES_MAX && !self.executions.is_empty()
        {
            self.forget_oldest();
        }
        self.executions.push_back(KeptExecution {
            seq: input.context.seq,
            position: input.context.kept_position(),
            match_id,
            qty,
            previous_number: before,
            text_at,
            text_bytes: (self.texts_base + self.texts.len() as u64 - text_at) as u32,
        });
        self.first_number + self.executions.len() as u64 - 1
    }

    #[cold]
    fn keep_text(&mut self, event: &Event<'_>) {
        if let Some(EventValue::Id(InlineId::Text(text))) = event.field(EventField::MatchId, &mut [0; 36]) {
            self.texts.extend(text);
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.executions.pop_front() {
            self.first_number += 1;
            self.texts.drain(..(oldest.text_bytes as usize).min(self.texts.len()));
            self.texts_base += u64::from(oldest.text_bytes);
        }
    }

    pub fn clear(&mut self) {
        self.first_number += self.executions.len() as u64;
        self.executions.clear();
        self.texts_base += self.texts.len() as u64;
        self.texts.clear();
    }

    /// Returns the executions from `last` back to the entry with this ordinal, latest first.
    fn back_to(&self, entry_seq: u64, last: u64) -> impl Iterator<Item = &KeptExecution> {
        let mut number = last;
        std::iter::from_fn(move || {
            let execution = self.executions.get(number.checked_sub(self.first_number)? as usize)?;
            number = execution.previous_number;
            Some(execution)
        })
        .take_while(move |e| e.seq > entry_seq)
    }

    /// Sums the executions from the entry with this ordinal up to `last`. Returns `None` if some of them are forgotten.
    pub fn executed_since(&self, entry_seq: u64, last: u64, owner: u32) -> Option<OppositeExecutions> {
        let mut executed = OppositeExecutions {
            total_qty: QuantitySum::ZERO,
            count: 0,
            entry_seq,
            last_number: last,
            owner,
        };
        let mut oldest = last;
        for execution in self.back_to(entry_seq, last) {
            executed.total_qty.add(execution.qty);
            executed.count += 1;
            oldest = execution.previous_number;
        }
        // The execution before them is known to be too early, or there is none.
        (oldest == NONE || oldest >= self.first_number).then_some(executed)
    }

    /// Returns the complete match id of an execution.
    fn match_text(&self, execution: &KeptExecution) -> Option<String> {
        let id = execution.match_id?;
        if execution.text_bytes == 0 {
            return Some(id.text());
        }
        let text_start = (execution.text_at - self.texts_base) as usize;
        let bytes: Vec<u8> =
            self.texts.range(text_start..text_start + execution.text_bytes as usize).copied().collect();
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Makes the alert for `order`, which the current event cancels.
    #[cold]
    pub fn alert(
        &self,
        input: &ScenarioInput<'_, '_>,
        order: &OrderState,
        executed: &OppositeExecutions,
    ) -> Alert {
        let mut executions: Vec<&KeptExecution> =
            self.back_to(executed.entry_seq, executed.last_number).take(NAMED_MAX).collect();
        executions.reverse();
        let ids: Vec<String> = executions.iter().filter_map(|e| self.match_text(e)).collect();
        let now = input.context;
        let seqs = executions.iter().map(|e| e.seq);
        let seqs: Vec<u64> = once(executed.entry_seq).chain(seqs).chain([now.seq]).collect();
        let positions = executions.iter().map(|e| e.position.get());
        let positions = once(order.entry_position()).chain(positions).chain([now.position]);
        let mut detail = json!({
            "spoof_oid": id_text(input.event, EventField::Oid),
            "exec_match_ids": ids,
            "qty": order.qty().map(|q| q.to_string()),
            "px": order.px.as_option().map(|p| p.to_string()),
            "executed_opposite": executed.total_qty.to_string(),
            "filled": order.executed.to_string(),
            "life_ns": i128::from(input.ts.0) - i128::from(order.entry_ts.0),
            "seqs": seqs,
        });
        // An order that was entered on a tape is cancelled on one.
        if let Some(positions) = positions.map(|p| p.map(|p| p.0)).collect::<Option<Vec<u64>>>() {
            detail["positions"] = positions.into();
        }
        let left_out = executed.count - executions.len() as u64;
        if left_out > 0 {
            detail["left_out"] = left_out.into();
        }
        Alert::new(ID, input.ts, now.seq, key(input, order, executed.owner), detail)
    }
}
