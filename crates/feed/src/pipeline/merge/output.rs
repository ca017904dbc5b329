//! The tape of a merge: frames of other tapes under ids of this one. Both merges place their units with it; they differ in
//! when a batch goes onto the tape, and in what is noted beside it.

use crate::account::bookkeeping::{GROWN, SUPERSEDED};
use crate::account::{TapeAccount, marked_entries, text, uint};
use crate::block::{EntryTally, MessageTally};
use crate::error::Error;
use crate::pipeline::merge::gaps::GapTime;
use crate::pipeline::merge::input::{RemovedPart, TapeReading, changed};
use crate::pipeline::merge::state::{FeedName, MarkBases, MergeRecord, SourceId};
use crate::quarantine::{RawLog, raw_of_event};
use unitape_model::event::extension_entry;
use unitape_model::id_layout::{IdLayout, IdLayoutTable};
use unitape_model::message::KIND_MESSAGE;
use unitape_model::schema::{TAG_UNMAPPED, at};
use unitape_model::{
    Event, EventBuilder, EventField, EventKind, EventSchema, FrameFault, FrameHeader, LINE, NameKind, flags,
    frames,
};
use unitape_tape::Writer;

/// The tape that is written.
#[derive(Debug)]
pub struct MergedTape {
    /// The account up to the end of the placed units.
    pub account: TapeAccount,
    /// All records up to the last one.
    pub merge_state: MergeRecord,
    pub(super) writer: Writer,
    pub(super) raw_log: RawLog,
    layouts: &'static IdLayoutTable,
    /// The frames that are placed and not on the tape yet, and the content of their future record.
    pub(super) batch: Vec<u8>,
    /// Where the last frame of the batch begins, definitions of names left out.
    pub(super) last_frame_start: usize,
    pub(super) new_records: MergeRecord,
    kind: MergeKind,
}

/// The tapes that a merge has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeKind {
    /// Any tapes. The account is kept up to the last unit, and two feeds of one name get other names.
    Tapes,
    /// The segments of a run, each with a feed of its own. The account ends where the merge began.
    Segments,
}

/// A batch has no more bytes, unless a unit has.
const BATCH_BYTES: usize = 256 << 10;

impl MergedTape {
    /// Makes the output of a merge that continues where `account` and `state` end.
    pub fn new(
        kind: MergeKind,
        account: TapeAccount,
        state: MergeRecord,
        writer: Writer,
        raw: RawLog,
    ) -> Self {
        Self {
            account,
            merge_state: state,
            writer,
            raw_log: raw,
            layouts: IdLayoutTable::get(),
            batch: Vec::with_capacity(2 * BATCH_BYTES),
            last_frame_start: 0,
            new_records: MergeRecord::default(),
            kind,
        }
    }

    /// Places the current unit of input number `index`, with the flags of `mark` on its events.
    ///
    /// # Errors
    /// Fails if an id has no definition, if raw bytes are missing, or if the disk refuses. Units placed before are on
    /// the tape, or will be made again.
    pub fn place_unit(&mut self, input: &mut TapeReading, index: usize, mark: u8) -> Result<(), Error> {
        let Some(unit) = input.unit else { return Ok(()) };
        let time = GapTime { ts: unit.ts, mark };
        let frame_start = self.batch.len();
        if let Err(error) = self.note_losses(input, index, time) {
            self.batch.truncate(frame_start);
            return Err(error);
        }
        let input_frames = input.take_frames();
        let batch_mark = BatchMark {
            batch_bytes: self.batch.len(),
            source_count: self.new_records.sources.len(),
            feeds: self.new_records.feeds.len(),
            user_messages: self.merge_state.user_messages,
            mark_bases: self.new_records.bases.clone(),
        };
        let place_result =
            frames(&input_frames[unit.start..unit.end]).try_for_each(|(offset, header, frame)| {
                let offset = unit.start + offset;
                self.frame(&mut FrameInHand {
                    input,
                    input_index: index,
                    offset,
                    header,
                    frame,
                    merge_flags: mark,
                })
            });
        let place_result = place_result.and_then(|()| {
            self.finish_unit(batch_mark.batch_bytes).map_err(|reason| input.damage_at(unit.start, &reason))
        });
        input.put_back(input_frames);
        match place_result {
            Ok(()) => input.advance(),
            Err(Error::Tape(unitape_tape::Error::Damage { .. })) if input.skips_damage() => {
                self.pass_over(input, index, batch_mark, time)?;
            }
            Err(error) => {
                // What was placed before it can still go onto the tape.
                self.batch.truncate(batch_mark.batch_bytes);
                self.undo_unit(batch_mark);
                return Err(error);
            }
        }
        self.merge_state.progress[index] = input.progress;
        Ok(())
    }

    /// Undoes the changes of a unit that is not placed, except in the batch.
    fn undo_unit(&mut self, before: BatchMark) {
        self.new_records.sources.truncate(before.source_count);
        self.new_records.feeds.truncate(before.feeds);
        self.new_records.bases = before.mark_bases;
        self.merge_state.user_messages = before.user_messages;
    }

    /// Leaves out the current unit, which is damaged. The names that it was the first to have are known from here on, so
    /// their definitions stay.
    #[cold]
    fn pass_over(
        &mut self,
        input: &mut TapeReading,
        index: usize,
        before: BatchMark,
        time: GapTime,
    ) -> Result<(), Error> {
        for source in &self.new_records.sources[before.source_count..] {
            input.sources.remove(&source.own);
        }
        let batch_start = before.batch_bytes;
        let mut definitions = Vec::new();
        for (_, header, frame) in frames(&self.batch[batch_start..]) {
            if header.kind() == EventKind::Define as u8 {
                self.last_frame_start = batch_start + definitions.len();
                definitions.extend_from_slice(frame);
            }
        }
        self.batch.truncate(batch_start);
        self.batch.extend_from_slice(&definitions);
        self.undo_unit(before);
        self.finish_unit(batch_start).map_err(|reason| input.damage_at(0, &reason))?;
        let placed_end = input.progress.position;
        input.advance();
        input.passed_over.push(RemovedPart { from: placed_end, to: input.progress.position });
        self.merge_state.progress[index] = input.progress;
        self.note_losses(input, index, time)
    }

    /// Returns whether the batch is full.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.batch.len() >= BATCH_BYTES
    }

    pub(super) fn bases(&self) -> MarkBases {
        self.new_records.bases.clone().or_else(|| self.merge_state.bases.clone()).unwrap_or_default()
    }

    /// Ends the unit that begins at this offset of the batch, and takes it into the account of a merge of tapes.
    #[inline]
    pub(super) fn finish_unit(&mut self, start: usize) -> Result<(), String> {
        if self.batch.len() == start {
            return Ok(());
        }
        // A definition that ended the unit may not be in it any more.
        let last_frame = &mut self.batch[self.last_frame_start..];
        FrameHeader::read(last_frame).with_flags(flags::LAST).write(last_frame);
        if self.kind == MergeKind::Segments {
            return Ok(());
        }
        frames(&self.batch[start..]).try_for_each(|(_, _, frame)| self.account.add(frame))
    }

    fn frame(&mut self, f: &mut FrameInHand<'_>) -> Result<(), Error> {
        let segment_bytes = self.writer.meta().segment_bytes;
        if f.frame.len() as u64 > segment_bytes {
            let bytes = f.frame.len();
            return Err(changed(
                &f.input.tape.name,
                &format!(
                    "an event of {bytes} bytes is longer than a segment of the merge, which has {segment_bytes}; \
                     use a new tape with larger segments (--segment-bytes, or `tape.segment_bytes` of a run)"
                ),
            ));
        }
        if f.header.kind() == KIND_MESSAGE {
            self.copy_frame(f, 0);
            self.merge_state.user_messages += 1;
            return Ok(());
        }
        match self.layouts.find(f.header, f.frame) {
            Some(layout) => self.known_frame(f, layout),
            None => Err(f.damage_error(&FrameFault::UnknownKind(f.header.kind()))),
        }
    }

    fn known_frame(&mut self, f: &mut FrameInHand<'_>, layout: &IdLayout) -> Result<(), Error> {
        match layout.kind {
            EventKind::Define | EventKind::Source => {
                let event = Event::new(f.frame).expect("of a known layout");
                f.input.names.admit_event(&event).map_err(|fault| f.damage_error(&fault))?;
                match layout.kind {
                    EventKind::Source => self.define_source(f, f.frame, Growth::Kept).map(drop),
                    _ => Ok(()),
                }
            }
            kind => {
                let mark = if f.header.is_meta() { 0 } else { f.merge_flags };
                let frame_start = self.copy_frame(f, mark);
                if !write_ids(f.input, layout, f.header, &mut self.batch[frame_start..]) {
                    self.batch.truncate(frame_start);
                    self.define_names(f, layout)?;
                    let frame_start = self.copy_frame(f, mark);
                    let has_all_ids = write_ids(f.input, layout, f.header, &mut self.batch[frame_start..]);
                    assert!(has_all_ids, "all names are defined");
                }
                let frame_start = self.batch.len() - f.frame.len();
                match kind {
                    EventKind::Progress => self.rebase_progress_mark(frame_start),
                    EventKind::Quarantine => self.copy_raw(f, frame_start)?,
                    _ => {}
                }
                Ok(())
            }
        }
    }

    /// Copies a frame to the batch; returns its offset there.
    #[inline]
    fn copy_frame(&mut self, f: &FrameInHand<'_>, mark: u8) -> usize {
        let frame_start = self.batch.len();
        self.batch.extend_from_slice(f.frame);
        self.last_frame_start = frame_start;
        FrameHeader::new_unstamped(f.header.kind(), f.header.flags() | mark, f.header.lines())
            .write(&mut self.batch[frame_start..]);
        frame_start
    }

    /// Defines the names of a frame that this tape does not have yet.
    #[cold]
    fn define_names(&mut self, f: &mut FrameInHand<'_>, layout: &IdLayout) -> Result<(), Error> {
        let event = Event::new(f.frame).expect("of a known layout");
        f.input.names.admit_event(&event).map_err(|fault| f.damage_error(&fault))?;
        let source = word_at(f.frame, at::SOURCE);
        if source != 0 && !f.input.sources.contains_key(&source) {
            self.define_source_from_log(f, source)?;
        }
        if layout.has_venue {
            let own_id = u16::from_le_bytes([f.frame[at::VENUE], f.frame[at::VENUE + 1]]);
            self.define_name(f, NameKind::Venue, own_id.into())?;
        }
        for id in &layout.wide_ids {
            self.define_name(f, id.dict, word_at(f.frame, id.offset))?;
        }
        let mut listed = Vec::new();
        layout.each_listed(f.header, f.frame, |dict, offset| listed.push((dict, word_at(f.frame, offset))));
        listed.into_iter().try_for_each(|(dict, own_id)| self.define_name(f, dict, own_id))
    }

    fn define_name(&mut self, f: &mut FrameInHand<'_>, dict: NameKind, own_id: u32) -> Result<(), Error> {
        if own_id == 0 || f.input.ids[dict as usize].get(own_id as usize).is_some_and(|id| *id != 0) {
            return Ok(());
        }
        let undefined = FrameFault::Undefined { dict, id: own_id };
        let name =
            f.input.names.name(dict, own_id).map(str::to_owned).ok_or_else(|| f.damage_error(&undefined))?;
        let full = |_| {
            let reason = format!("no place for another {}, there are {}", dict.name(), dict.id_max());
            changed(&f.input.tape.name, &reason)
        };
        let (id, new) = self.account.names.dictionary_mut().intern(dict, name.as_bytes()).map_err(full)?;
        if new {
            EventBuilder::define(&mut self.batch, dict, id, &name).expect("a name of a dictionary");
        }
        let ids = &mut f.input.ids[dict as usize];
        if ids.len() <= own_id as usize {
            ids.resize(own_id as usize + 1, 0);
        }
        ids[own_id as usize] = id;
        Ok(())
    }

    /// Defines a source whose definition is gone with the beginning of its tape, as the dictionary log has it.
    pub(super) fn define_source_from_log(
        &mut self,
        f: &mut FrameInHand<'_>,
        own_id: u32,
    ) -> Result<(), Error> {
        let undefined = FrameFault::UndefinedSource(own_id);
        let source = f.input.names.source(own_id).cloned().ok_or_else(|| f.damage_error(&undefined))?;
        let event = Event::new(&source.frame).expect("a definition was read");
        let base_source = match uint(&event, EventField::Of).unwrap_or(0) as u32 {
            // Tapes of before `of` name the source by feed and file only.
            0 if source.base > 0 => {
                let is_same =
                    |s: &&unitape_model::SourceDefinition| s.feed == source.feed && s.file == source.file;
                f.input.names.sources().find(|(id, s)| *id != own_id && is_same(s)).map_or(0, |(id, _)| id)
            }
            first_id => first_id,
        };
        if base_source != 0 && base_source != own_id && !f.input.sources.contains_key(&base_source) {
            self.define_source_from_log(f, base_source)?;
        }
        let id = self.define_source(f, &source.frame, Growth::LeftOut)?;
        if base_source == 0 {
            let mut bases = self.bases();
            bases.open.insert(id);
            self.new_records.bases = Some(bases);
        }
        Ok(())
    }

    /// Assigns a definition of a source its id on this tape, and its feed the name on this tape.
    fn define_source(&mut self, f: &mut FrameInHand<'_>, frame: &[u8], growth: Growth) -> Result<u32, Error> {
        let event = Event::new(frame).expect("a definition was read");
        let own_id = uint(&event, EventField::Index).unwrap_or(0) as u32;
        if let Some(id) = f.input.sources.get(&own_id) {
            return Ok(*id);
        }
        let own_first_id = uint(&event, EventField::Of).unwrap_or(0) as u32;
        let first_id = match own_first_id {
            0 => 0,
            own_first_id => match f.input.sources.get(&own_first_id) {
                Some(merged_id) => *merged_id,
                None => {
                    self.define_source_from_log(f, own_first_id)?;
                    f.input.sources[&own_first_id]
                }
            },
        };
        let id = self.account.next_source.max(self.next_source());
        let feed = text(&event, EventField::Feed);
        let name = match self.kind {
            MergeKind::Tapes => self.feed_name(f, &feed),
            MergeKind::Segments => feed.clone(),
        };
        let renamed = (name != feed).then_some(name.as_str());
        let frame_start = self.batch.len();
        self.last_frame_start = frame_start;
        copy_definition(&mut self.batch, &event, renamed, growth);
        self.batch[frame_start + INDEX..frame_start + INDEX + 4].copy_from_slice(&id.to_le_bytes());
        if first_id != 0 {
            self.batch[frame_start + OF..frame_start + OF + 4].copy_from_slice(&first_id.to_le_bytes());
        }
        f.input.sources.insert(own_id, id);
        self.new_records.sources.push(SourceId { input: f.input_index, own: own_id, id });
        Ok(id)
    }

    /// Returns the id after the last definition in the batch.
    fn next_source(&self) -> u32 {
        self.new_records.sources.last().map_or(1, |source| source.id + 1)
    }

    /// Returns the name of a feed on this tape: its own, unless another tape has a feed with this name.
    fn feed_name(&mut self, f: &FrameInHand<'_>, feed: &str) -> String {
        let feed_names = || self.merge_state.feeds.iter().chain(&self.new_records.feeds);
        if let Some(entry) = feed_names().find(|entry| entry.input == f.input_index && entry.own == feed) {
            return entry.name.clone();
        }
        let is_used = |name: &str| feed_names().any(|entry| entry.name == name);
        let mut name = feed.to_owned();
        if self.merge_state.shared.iter().any(|shared| shared == feed) || is_used(feed) {
            name = format!("{}/{feed}", f.input.tape.name);
        }
        while is_used(&name) {
            name = format!("{}/{name}", f.input.tape.name);
        }
        let entry = FeedName { input: f.input_index, own: feed.to_owned(), name: name.clone() };
        self.new_records.feeds.push(entry);
        name
    }

    /// Subtracts from a mark of progress the counts of events that this tape lacks.
    fn rebase_progress_mark(&mut self, from: usize) {
        if self.new_records.bases.is_none() && self.merge_state.bases.is_none() {
            return;
        }
        let source = word_at(&self.batch[from..], at::SOURCE);
        let Some((account, _)) = self.account.source_of(source) else { return };
        let has_bases = [&self.new_records.bases, &self.merge_state.bases].into_iter().flatten();
        let concerned = |b: &MarkBases| b.known.contains_key(&account.id) || b.open.contains(&account.id);
        if !has_bases.into_iter().any(concerned) {
            return;
        }
        let (id, tape_tally) = (account.id, account.tally.plus(account.since));
        let mut bases = self.bases();
        let mark = mark_tally(&self.batch[from..]);
        if bases.open.remove(&id) {
            let less = |n: u64, tape_count: u64| n.saturating_sub(tape_count);
            let mut base = MessageTally {
                messages: 0,
                with_events: less(mark.with_events, tape_tally.with_events),
                events: less(mark.events, tape_tally.events),
                quarantined: less(mark.quarantined, tape_tally.quarantined),
                duplicates: less(mark.duplicates, tape_tally.duplicates),
                ignored: less(mark.ignored, tape_tally.ignored),
                unresolved: less(mark.unresolved, tape_tally.unresolved),
                repeats: less(mark.repeats, tape_tally.repeats),
                unsure: less(mark.unsure, tape_tally.unsure),
                entries: mark.entries.minus(tape_tally.entries),
            };
            base.messages = base.with_events + base.quarantined + base.duplicates + base.ignored;
            bases.known.insert(id, base);
            self.new_records.bases = Some(bases.clone());
        }
        let base = bases.known.get(&id).copied().unwrap_or_default();
        for field in MARK_FIELDS {
            let less = (field.count_of)(&mark).saturating_sub((field.count_of)(&base));
            self.batch[from + field.offset..from + field.offset + 8].copy_from_slice(&less.to_le_bytes());
        }
        let EntryTally { total, with_events, quarantined, ignored } = mark.entries.minus(base.entries);
        let entries = [total, with_events, quarantined, ignored];
        let mut offset = usize::from(EventSchema::for_kind(EventKind::Progress).fixed_bytes);
        let frame = &mut self.batch[from..];
        while let Some((tag, payload)) = extension_entry(frame, offset) {
            offset = payload.end;
            if let Some(i) = ENTRY_FIELDS.iter().position(|field| *field as u16 == tag) {
                frame[payload].copy_from_slice(&entries[i].to_le_bytes());
            }
        }
    }

    /// Copies the bytes of a message in quarantine to the raw log of this tape.
    #[cold]
    fn copy_raw(&mut self, f: &FrameInHand<'_>, from: usize) -> Result<(), Error> {
        let event = Event::new(f.frame).expect("of a known layout");
        let raw = match raw_of_event(&f.input.tape.dir, &event) {
            Err(error) if f.input.skips_damage() => return Err(f.damage_error(&error)),
            raw => raw?,
        };
        let raw_offset = self.raw_log.append(&raw)?;
        self.batch[from + RAW_AT..from + RAW_AT + 8].copy_from_slice(&raw_offset.to_le_bytes());
        Ok(())
    }
}

/// What a unit may change before it is known to be whole.
struct BatchMark {
    /// Bytes of the batch.
    batch_bytes: usize,
    source_count: usize,
    feeds: usize,
    user_messages: u64,
    mark_bases: Option<MarkBases>,
}

/// A frame that is being placed.
pub(super) struct FrameInHand<'f> {
    pub(super) input: &'f mut TapeReading,
    pub(super) input_index: usize,
    /// Where it is in the frames that were read.
    pub(super) offset: usize,
    pub(super) header: FrameHeader,
    pub(super) frame: &'f [u8],
    /// Flags that the merge sets on its events.
    pub(super) merge_flags: u8,
}

impl FrameInHand<'_> {
    fn damage_error(&self, reason: &dyn std::fmt::Display) -> Error {
        self.input.damage_at(self.offset, reason)
    }
}

/// What becomes of the word in a definition that its file has grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    Kept,
    /// What grew is gone, and so is the message that it superseded.
    LeftOut,
}

/// Replaces a frame's own ids by the ids of the merge's tape; returns false if an id is not assigned yet.
#[inline]
fn write_ids(input: &TapeReading, layout: &IdLayout, header: FrameHeader, frame: &mut [u8]) -> bool {
    let mut has_all_ids = true;
    let source = word_at(frame, at::SOURCE);
    if source != 0 {
        match input.sources.get(&source) {
            Some(id) => frame[at::SOURCE..at::SOURCE + 4].copy_from_slice(&id.to_le_bytes()),
            None => return false,
        }
    }
    if header.is_meta() {
        return true;
    }
    let id_of = |dict: NameKind, own_id: u32| match own_id {
        0 => Some(0),
        own_id => input.ids[dict as usize].get(own_id as usize).copied().filter(|id| *id != 0),
    };
    if layout.has_venue {
        let own_id = u16::from_le_bytes([frame[at::VENUE], frame[at::VENUE + 1]]);
        let Some(id) = id_of(NameKind::Venue, own_id.into()) else { return false };
        frame[at::VENUE..at::VENUE + 2].copy_from_slice(&(id as u16).to_le_bytes());
    }
    for id_slot in &layout.wide_ids {
        let Some(id) = id_of(id_slot.dict, word_at(frame, id_slot.offset)) else { return false };
        frame[id_slot.offset..id_slot.offset + 4].copy_from_slice(&id.to_le_bytes());
    }
    if !layout.listed_ids.is_empty() && header.flags() & flags::EXT != 0 {
        let mut listed_ids = Vec::new();
        layout.each_listed(header, frame, |dict, offset| listed_ids.push((dict, offset)));
        for (dict, offset) in listed_ids {
            match id_of(dict, word_at(frame, offset)) {
                Some(id) => frame[offset..offset + 4].copy_from_slice(&id.to_le_bytes()),
                None => has_all_ids = false,
            }
        }
    }
    has_all_ids
}

/// Copies a definition of a source, with another name of its feed, or without the word that its file grew.
fn copy_definition(out: &mut Vec<u8>, event: &Event<'_>, feed: Option<&str>, growth: Growth) {
    let (header, bytes) = (event.header(), event.bytes());
    let line_start = out.len();
    let grew = |payload: &[u8]| {
        let has_name = |name: &str| payload.get(2..2 + name.len()) == Some(name.as_bytes());
        has_name(GROWN) || has_name(SUPERSEDED)
    };
    out.extend_from_slice(&bytes[..usize::from(event.schema().fixed_bytes)]);
    for (tag, payload) in event.extension_entries() {
        let payload = match feed {
            Some(feed) if tag == EventField::Feed as u16 => feed.as_bytes(),
            _ if growth == Growth::LeftOut && tag == TAG_UNMAPPED && grew(payload) => continue,
            _ => payload,
        };
        out.extend_from_slice(&tag.to_le_bytes());
        out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        out.extend_from_slice(payload);
    }
    let length = (out.len() - line_start).next_multiple_of(LINE);
    out.resize(line_start + length, 0);
    let kept_flags = match growth {
        Growth::Kept => header.flags(),
        Growth::LeftOut => header.flags() & !flags::LAST,
    };
    let lines = (length / LINE) as u16;
    FrameHeader::new_unstamped(header.kind(), kept_flags, lines).write(&mut out[line_start..]);
}

/// Reads the account in a mark of progress.
fn mark_tally(frame: &[u8]) -> MessageTally {
    let event = Event::new(frame).expect("a mark of progress");
    let n = |field| uint(&event, field).unwrap_or(0);
    let mut tally = MessageTally {
        messages: n(EventField::Messages),
        with_events: 0,
        events: n(EventField::Events),
        quarantined: n(EventField::Quarantined),
        duplicates: n(EventField::Duplicates),
        ignored: n(EventField::Ignored),
        unresolved: n(EventField::Unresolved),
        repeats: n(EventField::Repeats),
        unsure: n(EventField::Unsure),
        entries: marked_entries(&event),
    };
    let without_events = tally.quarantined.saturating_add(tally.duplicates).saturating_add(tally.ignored);
    tally.with_events = tally.messages.saturating_sub(without_events);
    tally
}

/// The account of entries in a mark of progress, each eight bytes of its extension.
const ENTRY_FIELDS: [EventField; 4] = [
    EventField::Entries,
    EventField::EntriesUsed,
    EventField::EntriesQuarantined,
    EventField::EntriesIgnored,
];

/// A number of a mark of progress, and its place.
struct MarkField {
    offset: usize,
    count_of: fn(&MessageTally) -> u64,
}

/// A test holds the places against the schema.
const MARK_FIELDS: [MarkField; 8] = [
    MarkField { offset: 48, count_of: |t| t.messages },
    MarkField { offset: 56, count_of: |t| t.ignored },
    MarkField { offset: 64, count_of: |t| t.duplicates },
    MarkField { offset: 72, count_of: |t| t.quarantined },
    MarkField { offset: 80, count_of: |t| t.events },
    MarkField { offset: 88, count_of: |t| t.unresolved },
    MarkField { offset: 96, count_of: |t| t.repeats },
    MarkField { offset: 104, count_of: |t| t.unsure },
];

/// Where a source's definition says its id, and that of its first definition; where a quarantine event says its
/// place in the raw log.
const INDEX: usize = 32;
const OF: usize = 36;
const RAW_AT: usize = 40;

#[inline]
fn word_at(frame: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(frame[offset..offset + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_model::FieldLayout;

    /// Guards against a number written to a wrong offset: it would be an id, or a part of a time.
    #[test]
    fn places_are_those_of_the_schema() {
        let slot_of = |kind, field| EventSchema::for_kind(kind).get(field).unwrap().slot;
        let uint = |offset: usize, width| FieldLayout::UInt { offset: offset as u16, width };
        assert_eq!(slot_of(EventKind::Source, EventField::Index), uint(INDEX, 4));
        assert_eq!(slot_of(EventKind::Source, EventField::Of), uint(OF, 4));
        assert_eq!(slot_of(EventKind::Quarantine, EventField::RawAt), uint(RAW_AT, 8));
        let fields = [
            EventField::Messages,
            EventField::Ignored,
            EventField::Duplicates,
            EventField::Quarantined,
            EventField::Events,
            EventField::Unresolved,
            EventField::Repeats,
            EventField::Unsure,
        ];
        for (field, mark) in fields.into_iter().zip(MARK_FIELDS) {
            assert_eq!(slot_of(EventKind::Progress, field), uint(mark.offset, 8));
        }
    }
}
