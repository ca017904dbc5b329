//! The sequence numbers that each session of a feed has sent, and the consequence for a message that says it may have
//! been sent before.
//!
//! ```text
//!  worker                        sequencer, stretch by stretch up to the next mark of progress
//!  runs of numbers, session ──▶  known of them? ──▶ no: nothing to do
//!  by session                                   └─▶ yes: its unit becomes a duplicate or a repeat
//! ```
//!
//! A number that was not seen is new, whatever the message says of itself: so it is with a gap that is filled. A number
//! that was seen is a duplicate where the message says so (43=Y), and is left out; where it does not, or where nobody
//! knows any more, the message is kept and flagged as a repeat.

mod flag;
mod index;
mod set;

pub use flag::{REPEAT, flag_frame};
pub use index::{SessionIndex, SessionNameKey};
pub use set::{RepeatCertainty, SequenceNumberSet};

use crate::block::Block;
use std::collections::BTreeMap;
use std::ops::Range;

/// The number of sessions that a feed keeps, the first ones in its order. A message that a further session flags as
/// sent again is kept and flagged, so the bound loses nothing.
pub const SESSIONS_MAX: usize = 1024;

/// The effect of one session's messages on the numbers that it has sent, between two marks of progress of a block.
#[derive(Clone, Copy, Debug)]
pub struct SequenceRun {
    /// Index into the block's sessions.
    pub session: u32,
    /// Before its numbers, the session counts from here again.
    pub restart: Option<u64>,
    /// Its numbers, one after the other.
    pub start: u64,
    /// Behind its last number.
    pub end: u64,
}

/// The effect of a message on the numbers of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceEffect {
    /// Its own number is used.
    Counts,
    /// It replaces messages that are not sent again: its number belongs to no message.
    Fills,
    /// The session counts from `next` again; `counts` says whether its own number is used after that.
    #[allow(missing_docs)]
    Restarts { next: u64, counts: bool },
}

/// The sessions of a feed.
#[derive(Clone, Debug, Default)]
pub struct FeedSessions {
    id_by_name: BTreeMap<Vec<u8>, u32>,
    sets: Vec<SequenceNumberSet>,
    /// The number of runs of sessions that are not kept, see [`SESSIONS_MAX`].
    pub refused_runs: u64,
    /// The number of forgotten ranges, see [`set::RANGES_MAX`].
    pub forgotten_ranges: u64,
}

/// Numbers of a run that were known when it came.
#[derive(Clone, Debug)]
pub struct RepeatRange {
    /// Index of the run.
    pub run: u32,
    /// The numbers.
    pub numbers: Range<u64>,
    /// The certainty of the repeat.
    pub certainty: RepeatCertainty,
}

impl FeedSessions {
    /// Iterates over the sessions by name.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &SequenceNumberSet)> {
        self.id_by_name.iter().map(|(name, id)| (&name[..], &self.sets[*id as usize]))
    }

    /// Adds a session, unless the bound is met.
    pub fn insert_session(&mut self, name: Vec<u8>, set: SequenceNumberSet) {
        if let Some(id) = self.id(&name) {
            self.sets[id as usize] = set;
        }
    }

    fn id(&mut self, name: &[u8]) -> Option<u32> {
        if let Some(id) = self.id_by_name.get(name) {
            return Some(*id);
        }
        if self.sets.len() == SESSIONS_MAX {
            return None;
        }
        let id = self.sets.len() as u32;
        self.id_by_name.insert(name.to_vec(), id);
        self.sets.push(SequenceNumberSet::default());
        Some(id)
    }

    /// Notes these runs of a block; `ids` keeps the block's sessions that were looked up. `known` receives the
    /// numbers that were known already.
    pub(super) fn note_runs(
        &mut self,
        block: &Block,
        runs: Range<usize>,
        ids: &mut Vec<Option<u32>>,
        repeats: &mut Vec<RepeatRange>,
    ) {
        for run in runs {
            let SequenceRun { session, restart, start, end } = block.runs[run];
            while ids.len() <= session as usize {
                ids.push(self.id(&block.sessions[ids.len()]));
            }
            let run = run as u32;
            let Some(id) = ids[session as usize] else {
                self.refused_runs += 1;
                repeats.push(RepeatRange { run, numbers: start..end, certainty: RepeatCertainty::NoSession });
                continue;
            };
            let set = &mut self.sets[id as usize];
            if let Some(restart_number) = restart {
                set.restart_at(restart_number);
            }
            if start < end {
                let full = set.insert(start..end, |numbers, certainty| {
                    repeats.push(RepeatRange { run, numbers, certainty })
                });
                self.forgotten_ranges += u64::from(full);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::cursor::BlockCursor;

    /// Guards against an unreported bound: a feed that exceeds it looks like a feed without duplicates.
    #[test]
    fn sessions_beyond_the_bound_are_counted() {
        let mut block = Block::default();
        let name = |i: usize| format!("S{i}").into_bytes();
        for i in 0..SESSIONS_MAX + 3 {
            let id = block.session_by_name(&name(i), None);
            block.note_sequence(id, 1, SequenceEffect::Counts);
        }
        let mut sessions = FeedSessions::default();
        BlockCursor::default().note_stretch(&mut block, &mut sessions);
        assert_eq!((sessions.refused_runs, sessions.iter().count()), (3, SESSIONS_MAX));
        assert!(
            sessions.id_by_name.contains_key(&name(0))
                && !sessions.id_by_name.contains_key(&name(SESSIONS_MAX))
        );
    }
}
