//! The position of the sequencer in a block.

use crate::block::numbers::{FeedSessions, RepeatCertainty, RepeatRange};
use crate::block::{Block, BlockMessage, BlockMessageKind, IdFixup, NO_TS};
use unitape_model::{Event, NameKind};

/// The position in the first block of a feed's queue.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct BlockCursor {
    pub unit_index: usize,
    pub arena: usize,
    pub fixup: usize,
    pub raw_offset: usize,
    /// Runs of sequence numbers that were noted, marks that these were noted up to, and the first unit whose number was not.
    pub run_index: usize,
    pub mark_index: usize,
    pub recorded_units_end: usize,
    /// The known numbers up to the next mark of progress.
    pub repeat_ranges: Vec<RepeatRange>,
    /// Ids of the block's sessions, as far as they were looked up; `None` for a session that is not kept.
    pub sessions: Vec<Option<u32>>,
    /// Global ids of the block's own names, by dictionary and own id; 0 not yet given.
    resolved: [Vec<u32>; NameKind::COUNT],
}

impl BlockCursor {
    /// Returns the id given to the block's own name; 0 if it has no id yet.
    pub fn resolved_id(&self, fixup: &IdFixup) -> u32 {
        self.resolved[fixup.dict as usize].get(fixup.id as usize).copied().unwrap_or(0)
    }

    /// Keeps the id that was given to the block's own name.
    pub fn resolve_fixup(&mut self, fixup: &IdFixup, id: u32) {
        let table = &mut self.resolved[fixup.dict as usize];
        if table.len() <= fixup.id as usize {
            table.resize(fixup.id as usize + 1, 0);
        }
        table[fixup.id as usize] = id;
    }

    /// Notes the numbers of the block up to its next mark of progress, and decides for each message whether it is a
    /// duplicate or a repeat.
    pub fn note_stretch(&mut self, block: &mut Block, sessions: &mut FeedSessions) {
        let (runs, units) = match block.marks.get(self.mark_index) {
            Some(mark) => (mark.runs as usize, mark.unit as usize),
            None => (block.runs.len(), block.units.len()),
        };
        self.mark_index += 1;
        self.recorded_units_end = units + 1;
        self.repeat_ranges.clear();
        if self.run_index < runs {
            sessions.note_runs(block, self.run_index..runs, &mut self.sessions, &mut self.repeat_ranges);
            self.run_index = runs;
        }
        if !self.repeat_ranges.is_empty() {
            self.mark_known(block, units);
        }
    }

    /// Marks the units up to `end` whose numbers were known.
    #[cold]
    fn mark_known(&self, block: &mut Block, end: usize) {
        let mut frame = self.arena;
        for i in self.unit_index..end {
            let BlockMessage { kind, end, .. } = block.units[i];
            let BlockMessageKind::Numbered { run, may_be_repeat } = kind else {
                frame = end as usize;
                continue;
            };
            let number = Event::new(&block.arena[frame..]).and_then(|e| e.sequence());
            frame = end as usize;
            let first_repeat = self.repeat_ranges.partition_point(|k| k.run < run);
            let run_repeats = self.repeat_ranges[first_repeat..].iter().take_while(|k| k.run == run);
            let Some(part) = run_repeats.into_iter().find(|k| number.is_some_and(|n| k.numbers.contains(&n)))
            else {
                continue;
            };
            match (part.certainty, may_be_repeat) {
                // The tape does not have it. If its time moved the feed's, a restart would merge the rest by another one.
                (RepeatCertainty::Seen, true) => {
                    (block.units[i].kind, block.units[i].ts) = (BlockMessageKind::Duplicate, NO_TS);
                }
                (RepeatCertainty::Seen, false) => {
                    block.units[i].kind = BlockMessageKind::Repeat { unsure: false }
                }
                (RepeatCertainty::NoSession, false) => {}
                (RepeatCertainty::Forgotten, _) | (RepeatCertainty::NoSession, true) => {
                    block.units[i].kind = BlockMessageKind::Repeat { unsure: true };
                }
            }
        }
    }
}
