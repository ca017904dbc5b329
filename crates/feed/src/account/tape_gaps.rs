//! The parts of other tapes that a merge lacks, or has without a check.

use crate::account::text;
use serde::{Deserialize, Serialize};
use unitape_model::{Event, EventField, TapeGap};

/// The gaps of the tapes that were merged, as events on the tape of the merge report them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct TapeGapAccount {
    /// Events that report a missing part: one for each feed that it may concern.
    pub losses: u64,
    /// Events that report a part without a check, likewise.
    pub unverified: u64,
    /// The parts in words, each once; the first 1,000 of them.
    pub parts: Vec<TapeGapPart>,
}

/// A part of another tape.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct TapeGapPart {
    /// Whether the part's events are missing; otherwise they are present without a check.
    pub is_loss: bool,
    /// The tape, the positions and the cause, in words.
    pub detail: String,
}

impl TapeGapAccount {
    /// Takes the event of a gap into account.
    pub fn add_gap(&mut self, gap: TapeGap, event: &Event<'_>) {
        let is_loss = gap.is_loss();
        *(if is_loss { &mut self.losses } else { &mut self.unverified }) += 1;
        let part = TapeGapPart { is_loss, detail: text(event, EventField::Detail) };
        if self.parts.len() < PARTS_MAX && !self.parts.contains(&part) {
            self.parts.push(part);
        }
    }
}

const PARTS_MAX: usize = 1000;
