//! The tape of a merge: frames of other tapes under ids of this one.

use crate::account::bookkeeping::{GROWN, SUPERSEDED};
use crate::account::{TapeAccount, marked_entries, text, uint};
use crate::block::{EntryTally, MessageTally};
use crate::error::Error;
use crate::pipeline::tape_merge::gaps::GapTime;
use crate::pipeline::tape_merge::input::{RemovedPart, TapeReading, changed};
use crate::pipeline::tape_merge::state::{FeedName, MarkBases, MergeRecord, MergeStateLog, SourceId};
use crate::quarantine::{RawLog, raw_of_event};
use unitape_model::event::extension_entry;
use unitape_model::id_layout::{IdLayout, IdLayoutTable};
use unitape_model::message::KIND_MESSAGE;
use unitape_model::schema::{TAG_UNMAPPED, at};
use unitape_model::{
    Event, EventBuilder, EventField, EventKind, EventSchema, FrameFault, FrameHeader, LINE, NameKind,
    Position, flags, frames,
};
use unitape_tape::{Reader, Writer};

/// The tape that is written.
#[derive(Debug)]
pub struct MergedTape {
    /// The account up to the end of what is placed.
    pub account: TapeAccount,
    /// All records up to the last one.
    pub state: MergeRecord,
    pub(super) writer: Writer,
    pub(super) raw: RawLog,
    pub(super) log: MergeStateLog,
    pub(super) layouts: &'static IdLayoutTable,
    /// The frames after the last record, and what their record will say.
    pub(super) batch: Vec<u8>,
    /// Where the last frame of the batch begins, definitions of names left out.
    pub(super) last: usize,
    pub(super) fresh: MergeRecord,
    /// The tape has frames after the last record: those of the merge must be the same.
    pub(super) written: Option<WrittenFrames>,
}

/// Frames that the tape has already.
#[derive(Debug)]
pub struct WrittenFrames {
    pub(super) reader: Reader,
    pub(super) end: Position,
}

/// A batch has no more bytes, unless a unit has.
const BATCH_BYTES: usize = 256 << 10;

impl MergedTape {
    /// Places the unit in hand of input number `index`, with the flags of `mark` on its events.
    ///
    /// # Errors
    /// An id that nothing defines, raw bytes that are not there, or the disk's refusal. What was placed before is on the
    /// tape, or will be made again.
    pub fn place(&mut self, input: &mut TapeReading, index: usize, mark: u8) -> Result<(), Error> {
        let Some(unit) = input.unit else { return Ok(()) };
        let time = GapTime { ts: unit.ts, mark };
        let start = self.batch.len();
        if let Err(error) = self.note_losses(input, index, time) {
            self.batch.truncate(start);
            return Err(error);
        }
        let lent = input.lend();
        let before = BatchMark {
            start: self.batch.len(),
            sources: self.fresh.sources.len(),
            feeds: self.fresh.feeds.len(),
            user_messages: self.state.user_messages,
            bases: self.fresh.bases.clone(),
        };
        let placed = frames(&lent[unit.start..unit.end]).try_for_each(|(offset, header, frame)| {
            let offset = unit.start + offset;
            self.frame(&mut FrameInHand { input, index, offset, header, frame, mark })
        });
        let placed = placed
            .and_then(|()| self.finish_unit(before.start).map_err(|what| input.damage_at(unit.start, &what)));
        input.put_back(lent);
        match placed {
            Ok(()) => input.advance(),
            Err(Error::Tape(unitape_tape::Error::Damage { .. })) if input.skips_damage() => {
                self.pass_over(input, index, before, time)?;
            }
            Err(error) => {
                // What was placed before it can still go onto the tape.
                self.batch.truncate(before.start);
                self.restore(before);
                return Err(error);
            }
        }
        self.state.at[index] = input.progress;
        Ok(())
    }

    /// Takes back what a unit that is not placed has changed, but for the batch.
    fn restore(&mut self, before: BatchMark) {
        self.fresh.sources.truncate(before.sources);
        self.fresh.feeds.truncate(before.feeds);
        self.fresh.bases = before.bases;
        self.state.user_messages = before.user_messages;
    }

    /// Leaves out the unit in hand, which is damaged. The names that it was the first to have are known from here on, so
    /// their definitions stay.
    #[cold]
    fn pass_over(
        &mut self,
        input: &mut TapeReading,
        index: usize,
        before: BatchMark,
        time: GapTime,
    ) -> Result<(), Error> {
        for source in &self.fresh.sources[before.sources..] {
            input.sources.remove(&source.own);
        }
        let start = before.start;
        let mut kept = Vec::new();
        for (_, header, frame) in frames(&self.batch[start..]) {
            if header.kind() == EventKind::Define as u8 {
                self.last = start + kept.len();
                kept.extend_from_slice(frame);
            }
        }
        self.batch.truncate(start);
        self.batch.extend_from_slice(&kept);
        self.restore(before);
        self.finish_unit(start).map_err(|what| input.damage_at(0, &what))?;
        let from = input.progress.position;
        input.advance();
        input.passed_over.push(RemovedPart { from, to: input.progress.position });
        self.state.at[index] = input.progress;
        self.note_losses(input, index, time)
    }

    /// Whether the batch is full.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.batch.len() >= BATCH_BYTES
    }

    /// Puts the batch on the tape, after the record of it.
    ///
    /// # Errors
    /// The disk's refusal, or a tape that has other frames there.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.compare_written()?;
        if self.batch.is_empty() {
            return Ok(());
        }
        let extent = self.extent();
        self.record(extent.end)?;
        let batch = &self.batch;
        let before = |limit: u64| {
            let mut cut = (0, 0);
            for (offset, header, frame) in frames(batch) {
                let end = (offset + frame.len()) as u64;
                if end > limit {
                    break;
                }
                cut = (end, cut.1 + u64::from(!header.is_meta()));
            }
            cut
        };
        let mut claim = self.writer.claim(batch.len() as u64, before, extent.ordinals)?;
        claim.put(batch)?;
        claim.publish();
        assert_eq!(self.writer.end().0, extent.end, "the record says where the batch ends");
        self.batch.clear();
        Ok(())
    }

    /// Records the state with the tape's end there.
    ///
    /// # Errors
    /// The disk's refusal.
    pub fn record(&mut self, end: u64) -> Result<(), Error> {
        let mut record = std::mem::take(&mut self.fresh);
        (record.end, record.raw) = (end, self.account.raw_bytes);
        record.user_messages = self.state.user_messages;
        record.at.clone_from(&self.state.at);
        self.log.append(&record)?;
        self.state.apply(record);
        Ok(())
    }

    /// Compares the batch with what the tape has after the last record; what it does not have stays in the batch.
    fn compare_written(&mut self) -> Result<(), Error> {
        let Some(WrittenFrames { reader, end }) = &mut self.written else { return Ok(()) };
        let mut done = 0;
        for (offset, header, frame) in frames(&self.batch) {
            if reader.position() >= *end {
                break;
            }
            let there = reader.next()?;
            let same = there.as_ref().is_some_and(|there| {
                let unstamped = FrameHeader::new_unstamped(
                    there.header.kind(),
                    there.header.flags(),
                    there.header.lines(),
                );
                unstamped == header && there.bytes[8..] == frame[8..]
            });
            if !same {
                let position = there.map_or(*end, |there| there.position);
                return Err(Error::Inconsistent { position, what: OTHER_FRAMES.to_owned() });
            }
            done = offset + frame.len();
        }
        let reached = reader.position() >= *end;
        self.batch.drain(..done);
        if reached {
            self.written = None;
            self.raw.release()?;
        }
        Ok(())
    }

    /// All inputs are placed up to their targets, so the tape has nothing that the merge did not make.
    ///
    /// # Errors
    /// It has.
    pub fn refuse_rest(&mut self) -> Result<(), Error> {
        match &self.written {
            Some(written) if written.reader.position() < written.end => {
                let position = written.reader.position();
                Err(Error::Inconsistent { position, what: OTHER_FRAMES.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Where the batch will end. A frame that does not fit its segment begins the next one.
    fn extent(&self) -> BatchExtent {
        let (segment_bytes, start) = (self.writer.meta().segment_bytes, self.writer.end().0);
        let mut extent = BatchExtent { end: start, ordinals: 0 };
        for (_, header, frame) in frames(&self.batch) {
            let bytes = frame.len() as u64;
            if extent.end % segment_bytes + bytes > segment_bytes {
                extent.end = extent.end.next_multiple_of(segment_bytes);
            }
            extent.end += bytes;
            extent.ordinals += u64::from(!header.is_meta());
        }
        extent
    }

    pub(super) fn bases(&self) -> MarkBases {
        self.fresh.bases.clone().or_else(|| self.state.bases.clone()).unwrap_or_default()
    }

    /// Ends the unit that begins at this offset of the batch, and takes it into account.
    #[inline]
    pub(super) fn finish_unit(&mut self, start: usize) -> Result<(), String> {
        if self.batch.len() == start {
            return Ok(());
        }
        // A definition that ended the unit may not be in it any more.
        let last = &mut self.batch[self.last..];
        FrameHeader::read(last).with_flags(flags::LAST).write(last);
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
                     use a new tape with a larger --segment-bytes"
                ),
            ));
        }
        if f.header.kind() == KIND_MESSAGE {
            self.copy(f, 0);
            self.state.user_messages += 1;
            return Ok(());
        }
        match self.layouts.find(f.header, f.frame) {
            Some(layout) => self.known_frame(f, layout),
            None => Err(f.damage(&FrameFault::UnknownKind(f.header.kind()))),
        }
    }

    fn known_frame(&mut self, f: &mut FrameInHand<'_>, layout: &IdLayout) -> Result<(), Error> {
        match layout.kind {
            EventKind::Define | EventKind::Source => {
                let event = Event::new(f.frame).expect("of a known layout");
                f.input.names.admit(&event).map_err(|fault| f.damage(&fault))?;
                match layout.kind {
                    EventKind::Source => self.define_source(f, f.frame, Growth::Kept).map(drop),
                    _ => Ok(()),
                }
            }
            kind => {
                let mark = if f.header.is_meta() { 0 } else { f.mark };
                let from = self.copy(f, mark);
                if !put_ids(f.input, layout, f.header, &mut self.batch[from..]) {
                    self.batch.truncate(from);
                    self.define_names(f, layout)?;
                    let from = self.copy(f, mark);
                    let known = put_ids(f.input, layout, f.header, &mut self.batch[from..]);
                    assert!(known, "all names are defined");
                }
                let from = self.batch.len() - f.frame.len();
                match kind {
                    EventKind::Progress => self.rebase_mark(from),
                    EventKind::Quarantine => self.copy_raw(f, from)?,
                    _ => {}
                }
                Ok(())
            }
        }
    }

    /// Copies a frame to the batch; gives where it is.
    #[inline]
    fn copy(&mut self, f: &FrameInHand<'_>, mark: u8) -> usize {
        let from = self.batch.len();
        self.batch.extend_from_slice(f.frame);
        self.last = from;
        FrameHeader::new_unstamped(f.header.kind(), f.header.flags() | mark, f.header.lines())
            .write(&mut self.batch[from..]);
        from
    }

    /// Defines what a frame names and this tape does not have yet.
    #[cold]
    fn define_names(&mut self, f: &mut FrameInHand<'_>, layout: &IdLayout) -> Result<(), Error> {
        let event = Event::new(f.frame).expect("of a known layout");
        f.input.names.admit(&event).map_err(|fault| f.damage(&fault))?;
        let source = word(f.frame, at::SOURCE);
        if source != 0 && !f.input.sources.contains_key(&source) {
            self.define_source_from_log(f, source)?;
        }
        if layout.venue {
            let own = u16::from_le_bytes([f.frame[at::VENUE], f.frame[at::VENUE + 1]]);
            self.define_name(f, NameKind::Venue, own.into())?;
        }
        for id in &layout.wide {
            self.define_name(f, id.dict, word(f.frame, id.at))?;
        }
        let mut listed = Vec::new();
        layout.each_listed(f.header, f.frame, |dict, at| listed.push((dict, word(f.frame, at))));
        listed.into_iter().try_for_each(|(dict, own)| self.define_name(f, dict, own))
    }

    fn define_name(&mut self, f: &mut FrameInHand<'_>, dict: NameKind, own: u32) -> Result<(), Error> {
        if own == 0 || f.input.ids[dict as usize].get(own as usize).is_some_and(|id| *id != 0) {
            return Ok(());
        }
        let undefined = FrameFault::Undefined { dict, id: own };
        let name = f.input.names.name(dict, own).map(str::to_owned).ok_or_else(|| f.damage(&undefined))?;
        let full = |_| {
            let what = format!("no place for another {}, there are {}", dict.name(), dict.id_max());
            changed(&f.input.tape.name, &what)
        };
        let (id, new) = self.account.names.dictionary_mut().intern(dict, name.as_bytes()).map_err(full)?;
        if new {
            EventBuilder::define(&mut self.batch, dict, id, &name).expect("a name of a dictionary");
        }
        let ids = &mut f.input.ids[dict as usize];
        if ids.len() <= own as usize {
            ids.resize(own as usize + 1, 0);
        }
        ids[own as usize] = id;
        Ok(())
    }

    /// Defines a source whose definition is gone with the beginning of its tape, as the dictionary log has it.
    pub(super) fn define_source_from_log(&mut self, f: &mut FrameInHand<'_>, own: u32) -> Result<(), Error> {
        let undefined = FrameFault::UndefinedSource(own);
        let source = f.input.names.source(own).cloned().ok_or_else(|| f.damage(&undefined))?;
        let event = Event::new(&source.frame).expect("a definition was read");
        let first = match uint(&event, EventField::Of).unwrap_or(0) as u32 {
            // Tapes of before `of` name the source by feed and file only.
            0 if source.base > 0 => {
                let is_same =
                    |s: &&unitape_model::SourceDefinition| s.feed == source.feed && s.file == source.file;
                f.input.names.sources().find(|(id, s)| *id != own && is_same(s)).map_or(0, |(id, _)| id)
            }
            of => of,
        };
        if first != 0 && first != own && !f.input.sources.contains_key(&first) {
            self.define_source_from_log(f, first)?;
        }
        let id = self.define_source(f, &source.frame, Growth::LeftOut)?;
        if first == 0 {
            let mut bases = self.bases();
            bases.open.insert(id);
            self.fresh.bases = Some(bases);
        }
        Ok(())
    }

    /// Gives a definition of a source its id here, and its feed the name here.
    fn define_source(&mut self, f: &mut FrameInHand<'_>, frame: &[u8], growth: Growth) -> Result<u32, Error> {
        let event = Event::new(frame).expect("a definition was read");
        let own = uint(&event, EventField::Index).unwrap_or(0) as u32;
        if let Some(id) = f.input.sources.get(&own) {
            return Ok(*id);
        }
        let of = uint(&event, EventField::Of).unwrap_or(0) as u32;
        let of = match of {
            0 => 0,
            of => match f.input.sources.get(&of) {
                Some(of) => *of,
                None => {
                    self.define_source_from_log(f, of)?;
                    f.input.sources[&of]
                }
            },
        };
        let id = self.account.next_source.max(self.next_source());
        let feed = text(&event, EventField::Feed);
        let name = self.feed_name(f, &feed);
        let renamed = (name != feed).then_some(name.as_str());
        let from = self.batch.len();
        self.last = from;
        copy_definition(&mut self.batch, &event, renamed, growth);
        self.batch[from + INDEX..from + INDEX + 4].copy_from_slice(&id.to_le_bytes());
        if of != 0 {
            self.batch[from + OF..from + OF + 4].copy_from_slice(&of.to_le_bytes());
        }
        f.input.sources.insert(own, id);
        self.fresh.sources.push(SourceId { input: f.index, own, id });
        Ok(id)
    }

    /// The id after those of the definitions in the batch.
    fn next_source(&self) -> u32 {
        self.fresh.sources.last().map_or(1, |source| source.id + 1)
    }

    /// The name of a feed on this tape: its own, unless another tape has one of this name.
    fn feed_name(&mut self, f: &FrameInHand<'_>, feed: &str) -> String {
        let all = || self.state.feeds.iter().chain(&self.fresh.feeds);
        if let Some(known) = all().find(|known| known.input == f.index && known.own == feed) {
            return known.name.clone();
        }
        let is_used = |name: &str| all().any(|known| known.name == name);
        let mut name = feed.to_owned();
        if self.state.shared.iter().any(|shared| shared == feed) || is_used(feed) {
            name = format!("{}/{feed}", f.input.tape.name);
        }
        while is_used(&name) {
            name = format!("{}/{name}", f.input.tape.name);
        }
        let known = FeedName { input: f.index, own: feed.to_owned(), name: name.clone() };
        self.fresh.feeds.push(known);
        name
    }

    /// Takes out of a mark of progress what it counts and this tape does not have.
    fn rebase_mark(&mut self, from: usize) {
        let source = word(&self.batch[from..], at::SOURCE);
        let Some((account, _)) = self.account.source_of(source) else { return };
        let has_bases = [&self.fresh.bases, &self.state.bases].into_iter().flatten();
        let concerned = |b: &MarkBases| b.known.contains_key(&account.id) || b.open.contains(&account.id);
        if !has_bases.into_iter().any(concerned) {
            return;
        }
        let (id, seen) = (account.id, account.tally.plus(account.since));
        let mut bases = self.bases();
        let mark = mark_tally(&self.batch[from..]);
        if bases.open.remove(&id) {
            let less = |n: u64, seen: u64| n.saturating_sub(seen);
            let mut base = MessageTally {
                messages: 0,
                with_events: less(mark.with_events, seen.with_events),
                events: less(mark.events, seen.events),
                quarantined: less(mark.quarantined, seen.quarantined),
                duplicates: less(mark.duplicates, seen.duplicates),
                ignored: less(mark.ignored, seen.ignored),
                unresolved: less(mark.unresolved, seen.unresolved),
                repeats: less(mark.repeats, seen.repeats),
                unsure: less(mark.unsure, seen.unsure),
                entries: mark.entries.minus(seen.entries),
            };
            base.messages = base.with_events + base.quarantined + base.duplicates + base.ignored;
            bases.known.insert(id, base);
            self.fresh.bases = Some(bases.clone());
        }
        let base = bases.known.get(&id).copied().unwrap_or_default();
        for field in MARK_FIELDS {
            let less = (field.of)(&mark).saturating_sub((field.of)(&base));
            self.batch[from + field.at..from + field.at + 8].copy_from_slice(&less.to_le_bytes());
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
            Err(error) if f.input.skips_damage() => return Err(f.damage(&error)),
            raw => raw?,
        };
        let at = self.raw.append(&raw)?;
        self.batch[from + RAW_AT..from + RAW_AT + 8].copy_from_slice(&at.to_le_bytes());
        Ok(())
    }
}

/// What a unit may change before it is known to be whole.
struct BatchMark {
    /// Bytes of the batch.
    start: usize,
    sources: usize,
    feeds: usize,
    user_messages: u64,
    bases: Option<MarkBases>,
}

/// A frame that is being placed.
pub(super) struct FrameInHand<'f> {
    pub(super) input: &'f mut TapeReading,
    pub(super) index: usize,
    /// Where it is in the frames that were read.
    pub(super) offset: usize,
    pub(super) header: FrameHeader,
    pub(super) frame: &'f [u8],
    /// Flags that the merge sets on its events.
    pub(super) mark: u8,
}

impl FrameInHand<'_> {
    fn damage(&self, what: &dyn std::fmt::Display) -> Error {
        self.input.damage_at(self.offset, what)
    }
}

/// Where a batch will end on the tape, and its events.
#[derive(Clone, Copy, Debug)]
struct BatchExtent {
    end: u64,
    ordinals: u64,
}

/// What becomes of the word in a definition that its file has grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    Kept,
    /// What grew is gone, and so is the message that it superseded.
    LeftOut,
}

/// Puts ids of the merge's tape in the place of a frame's own; false if one has none yet.
#[inline]
fn put_ids(input: &TapeReading, layout: &IdLayout, header: FrameHeader, frame: &mut [u8]) -> bool {
    let mut known = true;
    let source = word(frame, at::SOURCE);
    if source != 0 {
        match input.sources.get(&source) {
            Some(id) => frame[at::SOURCE..at::SOURCE + 4].copy_from_slice(&id.to_le_bytes()),
            None => return false,
        }
    }
    if header.is_meta() {
        return true;
    }
    let id_of = |dict: NameKind, own: u32| match own {
        0 => Some(0),
        own => input.ids[dict as usize].get(own as usize).copied().filter(|id| *id != 0),
    };
    if layout.venue {
        let own = u16::from_le_bytes([frame[at::VENUE], frame[at::VENUE + 1]]);
        let Some(id) = id_of(NameKind::Venue, own.into()) else { return false };
        frame[at::VENUE..at::VENUE + 2].copy_from_slice(&(id as u16).to_le_bytes());
    }
    for place in &layout.wide {
        let Some(id) = id_of(place.dict, word(frame, place.at)) else { return false };
        frame[place.at..place.at + 4].copy_from_slice(&id.to_le_bytes());
    }
    if !layout.listed.is_empty() && header.flags() & flags::EXT != 0 {
        let mut places = Vec::new();
        layout.each_listed(header, frame, |dict, at| places.push((dict, at)));
        for (dict, at) in places {
            match id_of(dict, word(frame, at)) {
                Some(id) => frame[at..at + 4].copy_from_slice(&id.to_le_bytes()),
                None => known = false,
            }
        }
    }
    known
}

/// Copies a definition of a source, with another name of its feed, or without the word that its file grew.
fn copy_definition(out: &mut Vec<u8>, event: &Event<'_>, feed: Option<&str>, growth: Growth) {
    let (header, bytes) = (event.header(), event.bytes());
    let from = out.len();
    let grew = |payload: &[u8]| {
        let named = |name: &str| payload.get(2..2 + name.len()) == Some(name.as_bytes());
        named(GROWN) || named(SUPERSEDED)
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
    let length = (out.len() - from).next_multiple_of(LINE);
    out.resize(from + length, 0);
    let kept = match growth {
        Growth::Kept => header.flags(),
        Growth::LeftOut => header.flags() & !flags::LAST,
    };
    let lines = (length / LINE) as u16;
    FrameHeader::new_unstamped(header.kind(), kept, lines).write(&mut out[from..]);
}

/// The account that a mark of progress says.
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
    let without = tally.quarantined.saturating_add(tally.duplicates).saturating_add(tally.ignored);
    tally.with_events = tally.messages.saturating_sub(without);
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
    at: usize,
    of: fn(&MessageTally) -> u64,
}

/// A test holds the places against the schema.
const MARK_FIELDS: [MarkField; 8] = [
    MarkField { at: 48, of: |t| t.messages },
    MarkField { at: 56, of: |t| t.ignored },
    MarkField { at: 64, of: |t| t.duplicates },
    MarkField { at: 72, of: |t| t.quarantined },
    MarkField { at: 80, of: |t| t.events },
    MarkField { at: 88, of: |t| t.unresolved },
    MarkField { at: 96, of: |t| t.repeats },
    MarkField { at: 104, of: |t| t.unsure },
];

/// Where a source's definition says its id, and that of its first definition; where a quarantine event says its
/// place in the raw log.
const INDEX: usize = 32;
const OF: usize = 36;
const RAW_AT: usize = 40;

const OTHER_FRAMES: &str = "the tape has frames that this merge did not make; use a new tape";

#[inline]
fn word(frame: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(frame[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_model::FieldLayout;

    /// A number written to another place would be an id, or a part of a time.
    #[test]
    fn places_are_those_of_the_schema() {
        let place = |kind, field| EventSchema::for_kind(kind).get(field).unwrap().slot;
        let uint = |at: usize, width| FieldLayout::UInt { at: at as u16, width };
        assert_eq!(place(EventKind::Source, EventField::Index), uint(INDEX, 4));
        assert_eq!(place(EventKind::Source, EventField::Of), uint(OF, 4));
        assert_eq!(place(EventKind::Quarantine, EventField::RawAt), uint(RAW_AT, 8));
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
            assert_eq!(place(EventKind::Progress, field), uint(mark.at, 8));
        }
    }
}
