//! The gaps of the inputs on the tape of the merge: an event for each feed that may have lost something.
//!
//! The event stands before the first unit after the gap, or where the merge ends. It is a function of the input and of
//! what is placed, so a merge that was killed writes the same one when it is continued.

use super::input::{RemovedPart, TapeReading};
use super::output::{FrameInHand, MergedTape};
use super::state::GapRecord;
use crate::account::{text, uint};
use crate::block::quarantine_event::{TapeGapDetails, tape_gap_frame};
use crate::error::Error;
use std::collections::BTreeMap;
use unitape_model::{Event, EventField, EventKind, FrameHeader, Position, TapeGap, UnixNanos, flags};
use unitape_tape::LostDefinitions;

/// The time of the event of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapTime {
    /// The time of the unit after the gap, or of the last one before it.
    pub ts: i64,
    /// Flags of the event: those that the merge sets on the events of that unit.
    pub mark: u8,
}

/// A gap of the current input.
#[derive(Clone, Copy, Debug)]
struct InputGapPart {
    gap: TapeGap,
    part: RemovedPart,
    time: GapTime,
}

impl MergedTape {
    /// Notes the missing and the unchecked parts of an input. The next mark of each of its sources states how much is
    /// missing, and an event for each feed states where.
    ///
    /// # Errors
    /// Fails if a source cannot be defined.
    pub fn note_losses(&mut self, input: &mut TapeReading, index: usize, time: GapTime) -> Result<(), Error> {
        if input.gap.is_none() && input.passed_over.is_empty() && !input.meets_accepted() {
            return Ok(());
        }
        let record = |part: RemovedPart| GapRecord { input: index, from: part.from, to: part.to };
        let gap = input.gap.take();
        // Damage after the last unit is met again by the next merge.
        let mut damaged = std::mem::take(&mut input.passed_over);
        let is_known = |part: &RemovedPart| {
            self.merge_state
                .damaged
                .iter()
                .chain(&self.new_records.damaged)
                .any(|gap_record| *gap_record == record(*part))
        };
        damaged.retain(|part| !is_known(part));
        let mut accepted = input.take_accepted();
        accepted.retain(|part| gap.is_none_or(|gap| part.to > gap.to));
        if gap.is_some() || !damaged.is_empty() {
            let mut bases = self.bases();
            for id in input.sources.values() {
                bases.open.extend(self.account.source_of(*id).map(|(source, _)| source.id));
            }
            self.new_records.bases = Some(bases);
        }
        let gaps = gap.map(|part| (TapeGap::Removed, part)).into_iter();
        let gaps = gaps.chain(damaged.iter().map(|part| (TapeGap::Damaged, *part)));
        for (gap, part) in gaps.chain(accepted.iter().map(|part| (TapeGap::Unverified, *part))) {
            self.push_gap(input, index, InputGapPart { gap, part, time })?;
        }
        if let Some(gap) = gap {
            input.progress.position = gap.to;
            self.merge_state.progress[index] = input.progress;
        }
        self.new_records.gaps.extend(gap.map(record));
        self.new_records.damaged.extend(damaged.into_iter().map(record));
        self.new_records.accepted.extend(accepted.into_iter().map(record));
        Ok(())
    }

    /// Notes the missing parts of the inputs after their last units.
    ///
    /// # Errors
    /// Fails as [`MergedTape::note_losses`] does.
    pub fn note_last_losses(&mut self, inputs: &mut [TapeReading]) -> Result<(), Error> {
        let placed_max = inputs.iter().filter_map(|input| input.progress.running_max).max();
        for (index, input) in inputs.iter_mut().enumerate() {
            input.note_last_damage()?;
            let ts = input.progress.running_max.or(placed_max).unwrap_or(i64::MIN);
            let mark = if placed_max.is_some_and(|max| ts < max) { flags::LATE } else { 0 };
            self.note_losses(input, index, GapTime { ts, mark })?;
        }
        Ok(())
    }

    /// Puts the event of a gap into the batch, for each feed that it may concern.
    fn push_gap(&mut self, input: &mut TapeReading, index: usize, gap: InputGapPart) -> Result<(), Error> {
        let InputGapPart { gap, part, time } = gap;
        let RemovedPart { from, to } = part;
        let name = input.tape.name.clone();
        let detail = match gap {
            TapeGap::Removed => {
                format!(
                    "of tape {name} positions {from} to {to} are missing: retention removed them before they were merged"
                )
            }
            TapeGap::Damaged => {
                format!("of tape {name} positions {from} to {to} are missing: they are damaged")
            }
            TapeGap::Unverified => {
                format!("of tape {name} a repair accepted positions {from} to {to} without a check")
            }
        };
        let mut sources = self.affected_sources(input, part);
        if sources.is_empty() {
            sources.push(0);
        }
        for own_id in sources {
            let frame_start = self.batch.len();
            let source = match own_id {
                0 => 0,
                own_id => match input.sources.get(&own_id) {
                    Some(id) => *id,
                    None => {
                        let mut in_hand = FrameInHand {
                            input,
                            input_index: index,
                            offset: 0,
                            header: FrameHeader::new_unstamped(EventKind::Source as u8, 0, 1),
                            frame: &[],
                            merge_flags: 0,
                        };
                        self.define_source_from_log(&mut in_hand, own_id)?;
                        input.sources[&own_id]
                    }
                },
            };
            self.last_frame_start = self.batch.len();
            tape_gap_frame(
                &mut self.batch,
                &TapeGapDetails {
                    ts: finish_time(time.ts),
                    mark: time.mark,
                    source,
                    gap,
                    detail: &detail,
                    tape: &name,
                    from: Position(from),
                    to: Position(to),
                },
            );
            self.finish_unit(frame_start).map_err(|reason| input.damage_at(0, &reason))?;
        }
        Ok(())
    }

    /// Returns a source of each feed that may have had events in a part of the input, by its id there: one that is on the tape
    /// of the merge, if there is one. A source that had ended before the part has lost nothing.
    fn affected_sources(&self, input: &mut TapeReading, part: RemovedPart) -> Vec<u32> {
        let mut affected = BTreeMap::<String, u32>::new();
        let dir = input.tape.dir.clone();
        let mut log = LostDefinitions::new(&dir, true);
        // A log that is missing or damaged is no error here: it has fewer sources then.
        _ = log.learn_before(Position(part.to), |position, frame| -> Result<(), &str> {
            let Some(event) = Event::new(frame).filter(|event| event.kind() == EventKind::Source) else {
                return Ok(());
            };
            let own_id = uint(&event, EventField::Index).unwrap_or(0) as u32;
            if input.names.source(own_id).is_none() && input.names.admit_event(&event).is_err() {
                return Ok(());
            }
            let id = input.sources.get(&own_id);
            let account = id.and_then(|id| self.account.source_of(*id));
            if position.0 < part.from && account.is_some_and(|(source, _)| source.end) {
                return Ok(());
            }
            let chosen = affected.entry(text(&event, EventField::Feed)).or_insert(own_id);
            if id.is_some() && !input.sources.contains_key(chosen) {
                *chosen = own_id;
            }
            Ok(())
        });
        affected.into_values().collect()
    }
}

/// Returns the time of an event; 0 without a time.
fn finish_time(ts: i64) -> UnixNanos {
    UnixNanos(if ts == i64::MIN { 0 } else { ts })
}
