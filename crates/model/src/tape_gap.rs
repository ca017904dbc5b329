//! The gaps of tapes that were merged: a merge writes each of them onto its own tape, in place of what it lacks.
//!
//! ```text
//!  input    ░░░░░░░░ ■ ■ ■ ■ ▒▒▒▒ ■ ■      ░ removed by retention   ▒ damaged, passed over
//!                    │ │ │ │      │ │
//!  merge           Q ■ ■ ■ ■    Q ■ ■      Q  an event `quarantine` of each feed that may have lost something
//! ```
//!
//! The event has no bytes in the raw log and is no message of its source: the account of the source does not count it. No
//! input can bring such an event, as only unitape writes `quarantine`.

use crate::event::{Event, EventValue};
use crate::kind::{EventField, EventKind};

/// The reason why a part of a tape is missing or not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapeGap {
    /// Retention had removed it before it was merged.
    Removed,
    /// The part is damaged, and the merge passed over it.
    Damaged,
    /// The part is there, but a repair accepted it without a check.
    Unverified,
}

impl TapeGap {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Removed, Self::Damaged, Self::Unverified];

    /// Returns the `reason` of the event.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Removed => "tape_removed",
            Self::Damaged => "tape_damaged",
            Self::Unverified => "tape_unverified",
        }
    }

    /// Returns the gap that an event reports, if the event reports a gap.
    #[inline]
    pub fn from_event(event: &Event<'_>) -> Option<Self> {
        if event.kind() != EventKind::Quarantine {
            return None;
        }
        match event.field(EventField::Reason, &mut [0; 36]) {
            Some(EventValue::Text(reason)) => Self::ALL.into_iter().find(|gap| gap.reason() == reason),
            _ => None,
        }
    }

    /// Returns whether events are missing: of an accepted part they are there.
    pub fn is_loss(self) -> bool {
        self != Self::Unverified
    }
}
