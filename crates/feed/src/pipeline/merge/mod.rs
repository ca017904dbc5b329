//! The merge of tapes: tapes become one tape.
//!
//! ```text
//!  tape a ─▶ units ─┐
//!  tape b ─▶ units ─┼─▶ in order of time ─▶ ids of this tape ─▶ tape
//!  tape c ─▶ units ─┘
//! ```
//!
//! A unit (one message with its events) is copied unchanged but for its ids. Definitions come right before their first
//! use, sources and marks of progress come along, and so do the raw bytes of what is in quarantine, events without a
//! source, and users' messages.
//!
//! `input` reads a tape unit by unit, and `output` places a unit. Two orders use them:
//!
//! | module | merges | resumes by |
//! |---|---|---|
//! | `segments` | the segments of a run, while they are written | the units on its tape, `placed_units` |
//! | `tapes` | finished tapes, each up to where it ends; notes their `gaps` | the records of its `state`, `recorder` |

mod gaps;
mod input;
mod output;
mod placed_units;
mod recorder;
mod same_tape;
mod segments;
mod state;
mod tapes;

use crate::pipeline::lead::{ClockLeadLimits, known_time};
use input::TapeReading;
use unitape_model::UnixNanos;

pub use input::InputTape;
pub use segments::{MergeOptions, MergeSegment, merge};
pub use tapes::{InputGap, TapeMergeOptions, TapeMergeOutcome, merge_tapes};

/// Returns the time up to which no unit leads by more than it may, whatever the other tapes have at hand.
#[inline]
fn time_ceiling(lead: &ClockLeadLimits, placed_max: UnixNanos) -> UnixNanos {
    match known_time(placed_max) {
        _ if lead.feeds.is_none() => UnixNanos::MAX,
        Some(placed_max) => lead.after_feeds(placed_max),
        None => UnixNanos::MIN,
    }
}

/// Returns the latest credible time of the placed events and the available units. From the earliest on, each unit is
/// compared with those before it, so that two wrong clocks do not confirm each other.
#[cold]
fn believed_max<'i>(
    inputs: impl Iterator<Item = &'i TapeReading>,
    lead: &ClockLeadLimits,
    placed_max: UnixNanos,
) -> UnixNanos {
    let mut at_hand: Vec<_> = inputs.filter_map(|input| Some((input.unit?.timed?.ts, input))).collect();
    at_hand.sort_by_key(|(ts, _)| *ts);
    at_hand.into_iter().fold(
        placed_max,
        |latest, (ts, input)| {
            if input.leads(lead, latest) { latest } else { latest.max(ts) }
        },
    )
}
