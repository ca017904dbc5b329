//! Taking units off a block: what goes onto the tape, under which ids, with which frames in between.

use super::large::{LargeMessage, LargePlace};
use super::{Piece, Sequencer};
use crate::account::bookkeeping::{Progress, define_frame, progress_frame};
use crate::block::concern::Concern;
use crate::block::numbers::flag_frame;
use crate::block::quarantined::{Quarantined, RawFacts, quarantine_frame};
use crate::block::{Block, Instead, NO_TS, Unit, What};
use crate::error::Error;
use crate::pipeline::feed_state::SourceState;
use crate::pipeline::job::Job;
use crate::quarantine::RawLog;
use std::ops::Range;
use std::sync::atomic::Ordering;
use unitape_model::schema::at;
use unitape_model::{Dict, Header, Refusal, flags};

impl Sequencer {
    /// Takes units of feed `i` while they are not later than `limit`; leaves emptied blocks in the queue, for
    /// the pieces to be copied from, and stops at the end of one.
    pub(super) fn emit_run(&mut self, i: usize, limit: i64) -> Result<(), Error> {
        let bounds = self.bounds();
        let feed = &mut self.feeds[i];
        let index = feed.in_hand().expect("a feed with a head");
        let ceiling = bounds.ceiling(feed, &feed.queue[index].block);
        // Only of the first unit is it known whether it leads.
        let mut head = feed.head.take();
        let Job { block, sorted, .. } = &mut *feed.queue[index];
        if feed.cursor.unit >= feed.cursor.noted && !block.begins_with_switch(feed.cursor.unit) {
            feed.cursor.note_stretch(block, &mut feed.sessions);
        }
        let mut run = Run { pieces: &mut self.pieces, feed: i, block: index, start: feed.cursor.arena };
        while let Some(&unit) = block.units.get(feed.cursor.unit) {
            let ahead = match head.take() {
                Some(head) => head.ahead,
                None if bounds.is_in_doubt(&unit, &feed.sources[block.source], ceiling) => break,
                None => false,
            };
            let ts = if ahead { feed.running_max } else { feed.running_max.max(unit.ts) };
            if ts > limit {
                break;
            }
            feed.running_max = ts;
            if feed.large.is_some() || matches!(unit.what, What::QuarantinePart { first: true, .. }) {
                let at = LargeStep {
                    unit: feed.cursor.unit,
                    frames: feed.cursor.arena..unit.end as usize,
                    raw: feed.cursor.raw..unit.raw_end as usize,
                    running_max: ts,
                    next_source: &mut self.next_source,
                    log: &mut self.raw,
                };
                let frames = at.frames.clone();
                let late = ts < self.placed_max;
                let step = large_step(&mut feed.large, &mut feed.sources, block, at)?;
                if let Some((added, event)) = step.placed {
                    if late {
                        mark(&mut block.added[event..added.end], flags::LATE);
                        feed.late += 1;
                    } else {
                        self.placed_max = ts;
                    }
                    run.insert(frames.start, added);
                    self.events += 1;
                }
                if step.is_part {
                    run.skip(frames);
                    feed.cursor.unit += 1;
                    feed.cursor.arena = unit.end as usize;
                    feed.cursor.fixup = unit.fixups_end as usize;
                    feed.cursor.raw = unit.raw_end as usize;
                    if feed.cursor.unit >= feed.cursor.noted && feed.cursor.unit < block.units.len() {
                        feed.cursor.note_stretch(block, &mut feed.sessions);
                    }
                    continue;
                }
            }
            if !ahead
                && is_plain(&unit, block, &feed.sources[block.source], feed.cursor.fixup)
                && feed.running_max >= self.placed_max
            {
                // As nearly all are: it goes where it stands, as it is.
                self.placed_max = feed.running_max;
                self.events += u64::from(unit.events);
                feed.cursor.unit += 1;
                feed.cursor.arena = unit.end as usize;
                feed.cursor.raw = unit.raw_end as usize;
                continue;
            }
            let frames = feed.cursor.arena..unit.end as usize;
            let state = &mut feed.sources[block.source];
            let mut wanted = state.on_tape_through.is_none_or(|t| unit.offset > t) || unit.is_progress();
            let late = feed.running_max < self.placed_max && !unit.is_progress() && !ahead;
            match unit.what {
                What::Events | What::Numbered { .. } => {}
                What::Duplicate => {
                    wanted = false;
                    block.recount(feed.cursor.unit, Instead::Duplicate);
                }
                What::Repeat { unsure } => block.count_repeat(feed.cursor.unit, unsure),
                What::Switch => {
                    // What is behind it begins anew from here, also after a restart.
                    let mark = Progress {
                        source: state.id,
                        through: unit.offset,
                        end: false,
                        running_max: feed.running_max,
                        hash: None,
                    };
                    let start = block.added.len();
                    let total = state.tally;
                    if state.defined {
                        progress_frame(&mut block.added, &mark, total, &feed.sessions);
                        run.insert(frames.start, start..block.added.len());
                    }
                    state.switch(sorted.as_ref().map(|s| s.sort.clone()).unwrap_or_default());
                    wanted = false;
                }
                What::Quarantine | What::QuarantinePart { .. } => {
                    let raw = &block.raw[feed.cursor.raw..unit.raw_end as usize];
                    let raw_at = if wanted { self.raw.append(raw)? } else { 0 };
                    let ts = if feed.running_max == NO_TS { 0 } else { feed.running_max };
                    let frame = &mut block.arena[frames.clone()];
                    patch(frame, at::TS_EVENT, &ts.to_le_bytes());
                    patch(frame, RAW_AT, &raw_at.to_le_bytes());
                }
                What::Progress { end, .. } if state.has_mark(unit.offset, end) => {
                    wanted = false;
                    feed.open_sources -= usize::from(end && !feed.grows);
                }
                What::Progress { tally, end } => {
                    if !state.defined {
                        let start = block.added.len();
                        state.define(&mut self.next_source, (unit.offset, &[]), &mut block.added);
                        run.insert(frames.start, start..block.added.len());
                    }
                    let total = state.tally.plus(block.tallies[tally as usize]);
                    let (source, running_max) = (state.id, feed.running_max);
                    let hash = block.hashes.get(tally as usize).copied();
                    let mark = Progress { source, through: unit.offset, end, running_max, hash };
                    let start = block.added.len();
                    progress_frame(&mut block.added, &mark, total, &feed.sessions);
                    run.insert(frames.start, start..block.added.len());
                    (state.through, state.end) = (unit.offset, end);
                    feed.open_sources -= usize::from(end && !feed.grows);
                }
            }
            let own = feed.cursor.fixup..unit.fixups_end as usize;
            if wanted {
                if !state.defined {
                    let raw = &block.raw[feed.cursor.raw..unit.raw_end as usize];
                    let start = block.added.len();
                    let first = (unit.offset, first_message(&block.bytes, block.base, &unit, raw));
                    state.define(&mut self.next_source, first, &mut block.added);
                    run.insert(frames.start, start..block.added.len());
                }
                let mut source = state.id;
                if unit.offset >> 32 != 0 && !unit.is_progress() {
                    let (id, new) = state.extent((unit.offset >> 32) as u32, &mut self.next_source);
                    if new {
                        let start = block.added.len();
                        state.extent_frame(id, unit.offset, &mut block.added);
                        run.insert(frames.start, start..block.added.len());
                    }
                    source = id;
                }
                if source != block.decoded_as {
                    patch_each(&mut block.arena[frames.clone()], at::SOURCE, &source.to_le_bytes());
                }
                if ahead {
                    mark(&mut block.arena[frames.clone()], flags::CLOCK_AHEAD);
                    if feed.ahead == 0
                        && let Some(stats) = &self.stats
                    {
                        stats.feeds[i].link.note(lead_note(&unit, feed.running_max));
                    }
                    feed.ahead += 1;
                } else if late {
                    mark(&mut block.arena[frames.clone()], flags::LATE);
                    feed.late += u64::from(!frames.is_empty());
                } else if !unit.is_progress() {
                    self.placed_max = self.placed_max.max(feed.running_max);
                }
                let full = block.without_place(own.clone(), &self.dictionary, |f| feed.cursor.resolved(f));
                if let Some(dict) = full {
                    block.recount(feed.cursor.unit, Instead::Quarantined);
                    self.counters.quarantined.fetch_add(1, Ordering::Relaxed);
                    let added = refuse(block, &mut self.raw, (&unit, feed.running_max, source), dict)?;
                    if late {
                        mark(&mut block.added[added.clone()], flags::LATE);
                    }
                    run.insert(frames.start, added);
                    run.skip(frames.clone());
                    self.events += 1;
                    wanted = false;
                }
            } else {
                run.skip(frames.clone());
            }
            if wanted {
                self.events += u64::from(unit.events);
                let repeat = matches!(unit.what, What::Repeat { .. });
                let mut flagged = frames.start;
                for f in own {
                    let fixup = block.fixups[f];
                    if repeat {
                        run.flag(block, &mut flagged, fixup.frame as usize);
                    }
                    let id = match feed.cursor.resolved(&fixup) {
                        0 => {
                            let name = block.names.name(fixup.dict, fixup.id).expect("the block's own name");
                            let given = self.dictionary.intern(fixup.dict, name.as_bytes());
                            let (id, new) = given.expect("it has a place");
                            if new {
                                self.defined.push((fixup.dict, id));
                                let start = block.added.len();
                                define_frame(&mut block.added, fixup.dict, id, name);
                                run.insert(fixup.frame as usize, start..block.added.len());
                            }
                            feed.cursor.resolve(&fixup, id);
                            id
                        }
                        id => id,
                    };
                    let width = if fixup.dict == Dict::Venue { 2 } else { 4 };
                    patch(&mut block.arena, fixup.at as usize, &id.to_le_bytes()[..width]);
                }
                if repeat {
                    run.flag(block, &mut flagged, frames.end);
                }
            }
            feed.cursor.unit += 1;
            feed.cursor.arena = unit.end as usize;
            feed.cursor.fixup = unit.fixups_end as usize;
            feed.cursor.raw = unit.raw_end as usize;
            if feed.cursor.unit >= feed.cursor.noted && feed.cursor.unit < block.units.len() {
                feed.cursor.note_stretch(block, &mut feed.sessions);
            }
        }
        run.end(feed.cursor.arena);
        feed.advance();
        Ok(())
    }
}

/// Whether a unit is a message with events, none of which changes on its way to the tape.
#[inline]
fn is_plain(unit: &Unit, block: &Block, state: &SourceState, fixup: usize) -> bool {
    unit.what.is_events()
        && unit.fixups_end as usize == fixup
        && unit.offset >> 32 == 0
        && state.defined
        && state.id == block.decoded_as
        && state.on_tape_through.is_none_or(|t| unit.offset > t)
}

/// A unit that may be a part of a large message.
struct LargeStep<'a> {
    unit: usize,
    frames: Range<usize>,
    raw: Range<usize>,
    running_max: i64,
    next_source: &'a mut u32,
    log: &'a mut RawLog,
}

/// What became of it.
#[derive(Default)]
struct LargeOutcome {
    /// Where in the block's added frames those of a message are that is whole now, and where of these its event begins.
    placed: Option<(Range<usize>, usize)>,
    /// The unit was a part, or a mark within one, and is done with.
    is_part: bool,
}

/// Puts a unit to the large message that it continues, and places the message where the unit is its last part or none.
#[cold]
fn large_step(
    large: &mut Option<Box<LargeMessage>>,
    sources: &mut [SourceState],
    block: &mut Block,
    at: LargeStep<'_>,
) -> Result<LargeOutcome, Error> {
    let unit = block.units[at.unit];
    let mut outcome = LargeOutcome::default();
    let whole = match large.as_mut() {
        Some(open) if open.continues(&unit, block.source) => {
            open.add(&block.raw[at.raw.clone()])?;
            block.count_as_part(at.unit);
            outcome.is_part = true;
            unit.what == What::QuarantinePart { first: false, last: true }
        }
        Some(open) if open.hides(&unit, block.source) => {
            outcome.is_part = true;
            false
        }
        open => open.is_some(),
    };
    if let Some(open) = large.take_if(|_| whole) {
        let (state, added) = (&mut sources[open.source], &mut block.added);
        let place = LargePlace {
            state,
            next_source: at.next_source,
            log: &mut *at.log,
            added,
            running_max: at.running_max,
        };
        outcome.placed = open.close(place)?;
    }
    if !outcome.is_part && matches!(unit.what, What::QuarantinePart { first: true, .. }) {
        let wanted = sources[block.source].on_tape_through.is_none_or(|t| unit.offset > t);
        let spool = if wanted { Some(at.log.spool()?) } else { None };
        let (frame, raw) = (&block.arena[at.frames.clone()], &block.raw[at.raw.clone()]);
        *large = Some(Box::new(LargeMessage::begin(block, &unit, frame, raw, spool)?));
        outcome.is_part = true;
    }
    Ok(outcome)
}

/// The stretch of a block's arena that is being taken, as pieces.
struct Run<'p> {
    pieces: &'p mut Vec<Piece>,
    feed: usize,
    block: usize,
    /// Start of what has not become a piece yet.
    start: usize,
}

impl Run<'_> {
    /// Puts what was added to the block before the frame at `before`.
    fn insert(&mut self, before: usize, added: Range<usize>) {
        self.push(false, self.start..before);
        self.push(true, added);
        self.start = before;
    }

    /// Has the frames from `from` up to `to` go onto the tape as repeats: copies with the flag in place of them.
    fn flag(&mut self, block: &mut Block, from: &mut usize, to: usize) {
        while *from < to {
            let end = *from + Header::read(&block.arena[*from..]).len_bytes();
            let start = block.added.len();
            flag_frame(&block.arena[*from..end], &mut block.added);
            self.insert(*from, start..block.added.len());
            self.skip(*from..end);
            *from = end;
        }
    }

    /// Leaves these frames out.
    fn skip(&mut self, frames: Range<usize>) {
        self.push(false, self.start..frames.start);
        self.start = frames.end;
    }

    fn end(mut self, at: usize) {
        self.push(false, self.start..at);
    }

    fn push(&mut self, added: bool, range: Range<usize>) {
        if !range.is_empty() {
            let (feed, block) = (self.feed as u32, self.block as u32);
            self.pieces.push(Piece { feed, block, added, start: range.start as u32, end: range.end as u32 });
        }
    }
}

/// Quarantines a message whose names have no place in `dict`; gives where its event stands in `added`. `message`
/// is its unit, the time of its place, and the id of its source.
fn refuse(
    block: &mut Block,
    log: &mut RawLog,
    message: (&Unit, i64, u32),
    dict: Dict,
) -> Result<Range<usize>, Error> {
    let (unit, ts, source) = message;
    let at = (unit.offset - block.base) as usize;
    let raw = &block.bytes[at..at + unit.length as usize];
    let raw_at = log.append(raw)?;
    let detail = format!("no place for another {}, there are {}", dict.name(), dict.id_max());
    let why = Quarantined {
        ts: if ts == NO_TS { 0 } else { ts },
        source,
        offset: unit.offset,
        raw_at,
        raw: RawFacts::of(raw),
        reason: Refusal::DictionaryFull.code(),
        detail: &detail,
        head: &block.head,
        concern: &Concern::Feed,
    };
    let start = block.added.len();
    quarantine_frame(&mut block.added, &why);
    Ok(start..block.added.len())
}

/// The bytes of a message: raw ones where it was refused.
fn first_message<'b>(bytes: &'b [u8], base: u64, unit: &Unit, raw: &'b [u8]) -> &'b [u8] {
    match unit.what {
        What::Quarantine | What::QuarantinePart { .. } => raw,
        _ => {
            let at = (unit.offset - base) as usize;
            bytes.get(at..at + unit.length as usize).unwrap_or_default()
        }
    }
}

/// What is printed of the first message of a feed that leads.
#[cold]
fn lead_note(unit: &Unit, running_max: i64) -> String {
    let beside = if running_max == NO_TS { "none" } else { &running_max.to_string() };
    format!(
        "the event at byte {} has the time {} (ns since 1970), which leads by more than it may; the feed's latest is {beside}. \
         It is flagged clock_ahead and does not move the merge; so are further ones, and the figures count them",
        unit.offset, unit.ts
    )
}

/// Flags the frames of a unit.
fn mark(mut run: &mut [u8], flag: u8) {
    while !run.is_empty() {
        let header = Header::read(run);
        header.with_flags(header.flags() | flag).write(run);
        run = &mut run[header.len_bytes()..];
    }
}

fn patch_each(mut run: &mut [u8], at: usize, bytes: &[u8]) {
    while !run.is_empty() {
        patch(run, at, bytes);
        let len = Header::read(run).len_bytes();
        run = &mut run[len..];
    }
}

fn patch(frame: &mut [u8], at: usize, bytes: &[u8]) {
    frame[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Where a quarantine event says its place in the raw log; the tests hold it against the schema.
const RAW_AT: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_model::{Field, Kind, Schema, Slot};

    #[test]
    fn the_place_in_the_raw_log_stands_where_the_schema_says() {
        let slot = Schema::of(Kind::Quarantine).get(Field::RawAt).unwrap().slot;
        assert_eq!(slot, Slot::UInt { at: RAW_AT as u16, width: 8 });
    }
}
