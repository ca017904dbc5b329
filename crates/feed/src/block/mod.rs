//! A block: a stretch of one source's bytes, and the events that a worker made of it.
//!
//! The block travels: filled at intake, decoded by its worker, given ids and a place by the sequencer, copied
//! onto the tape, and then filled again. Once a block has grown to its size, it allocates nothing more.

pub(crate) mod affected_books;
pub(crate) mod cursor;
pub(crate) mod json;
pub(crate) mod names;
pub(crate) mod numbers;
pub(crate) mod quarantine_event;
pub(crate) mod running_total;
pub(crate) mod tally;

use crate::block::affected_books::AffectedBooks;
pub use crate::block::names::BlockNameResolver;
use crate::block::names::{IdPatchTarget, WaitingNames};
use crate::block::numbers::SequenceEffect;
pub use crate::block::numbers::{SequenceRun, SessionIndex, SessionNameKey};
pub use crate::block::running_total::{ExactSum, RunningTotal, negated};
pub use crate::block::tally::{EntryTally, MessageTally};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use unitape_base::capture::CaptureWalker;
use unitape_model::{Dictionary, NameKind, UnixNanos};

/// Bytes of a source and what became of them.
#[derive(Debug, Default)]
pub struct Block {
    /// Index of the feed.
    pub feed: usize,
    /// Index of the source within the feed.
    pub source: usize,
    /// Offset of `bytes[0]` in the source.
    pub base: u64,
    /// Whether the source ends with this block.
    pub eof: bool,
    /// Whether another source of the feed follows the source that ends.
    pub more: bool,
    /// The source's bytes.
    pub bytes: Vec<u8>,
    /// The number of decoded bytes; the rest belongs to the next block.
    pub decoded: usize,
    /// The events, unstamped frames one after the other.
    pub arena: Vec<u8>,
    /// The result of each message, in source order; messages that became nothing have no unit.
    pub units: Vec<BlockMessage>,
    /// Places in the arena that hold provisional ids, in arena order.
    pub fixups: Vec<IdFixup>,
    /// The names of the provisional ids.
    pub names: Dictionary,
    /// Names whose ids are on their way.
    pub waiting: WaitingNames,
    /// Raw bytes for quarantine, one message after the other.
    pub raw: Vec<u8>,
    /// The hash of its source's bytes at each of its marks of progress, where the source has one.
    pub hashes: Vec<blake3::Hash>,
    /// The places of its marks of progress.
    pub marks: Vec<ProgressMarkIndex>,
    /// Sequence numbers seen, run by run.
    pub runs: Vec<SequenceRun>,
    /// The names of sessions in `runs`.
    pub sessions: Vec<Vec<u8>>,
    /// Finds sessions by name, and their latest runs.
    pub index: SessionIndex,
    /// The account of the block.
    pub tally: MessageTally,
    /// Units with an instrument that the reference data does not have, in order.
    pub unresolved: Vec<u32>,
    /// Entries of the messages that have some, by unit, in order.
    pub entries: Vec<(u32, EntryTally)>,
    /// Its events say something that only the tape is asked for: that packets or messages came on no line, that a line is
    /// down or back, that a sum differs.
    pub has_findings: bool,
    /// The account at each progress unit.
    pub tallies: Vec<MessageTally>,
    /// Frames that the sequencer adds: definitions and progress.
    pub added: Vec<u8>,
    /// All of it has been given a place on the tape.
    pub is_sequenced: bool,
    /// The first bytes of the source, where its format has a header that all of it depends on.
    pub head: Arc<[u8]>,
    /// Whether `head` is on the tape once for the source, in a definition that its messages in quarantine name; else each
    /// of them has it.
    pub is_head_defined: bool,
    /// Message counts that its headers and trailers state.
    pub claims: Vec<DeclaredMessageCount>,
    /// The number of messages of the source before the block, to check claims against; `None` the first time.
    pub before: Option<u64>,
    /// When the last of its bytes came, on the intake's clock.
    pub came_ns: i64,
    /// When they were received, by the clock of the source, as far as the intake knows.
    pub received_last: Option<UnixNanos>,
    /// Id of the source that the events were decoded with.
    pub decoded_as: u32,
    /// For a capture, the walker as it is at the first byte.
    pub walker: Option<CaptureWalker>,
    /// When the bytes were received: the end of each range in the source and its receive time, in order.
    pub times: Vec<(u64, UnixNanos)>,
    /// The earliest of these, where it is known; the sequencer's.
    pub received_min: Option<UnixNanos>,
    /// Memory for a packet's payload, or for the rewritten arena.
    pub payload: Vec<u8>,
    /// The unfinished message that spans the start of the bytes; the decoder takes it.
    pub carried: Option<Box<CarriedMessage>>,
    /// The unfinished message that spans the end of the decoded bytes.
    pub leaves: Option<Box<CarriedMessage>>,
    /// The current bytes are one packet, so the capture makes the marks of progress.
    pub in_packet: bool,
    /// The current bytes are one quarantine entry that is retried: they are a message by themselves.
    pub is_retry: bool,
    /// The address that packet was sent to, and its receive time.
    pub sent: Option<(SocketAddr, UnixNanos)>,
}

/// The state that a source's next block needs from the end of this one: the unfinished message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarriedMessage {
    /// The context before it.
    pub context: Vec<u8>,
    /// Start of the message, or of the element around it, in the source.
    pub start: u64,
    /// Totals of the messages before the block.
    pub totals: Vec<RunningTotal>,
}

/// A header or trailer says how many messages its source has.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredMessageCount {
    /// The number that it states, from the start of the source.
    pub messages: u64,
    /// Messages in the block before the place that the claim counts up to.
    pub messages_in_block: u64,
}

/// The result of one source message, or a mark of progress.
#[derive(Clone, Copy, Debug)]
pub struct BlockMessage {
    /// Start of the message in the source.
    pub offset: u64,
    /// Event time of its first event, [`NO_TS`] when the time is unknown.
    pub ts: UnixNanos,
    /// End of its frames in the arena.
    pub end: u32,
    /// End of its entries in the fix-ups.
    pub fixups_end: u32,
    /// End of its bytes in the raw bytes.
    pub raw_end: u32,
    /// The number of its events.
    pub events: u32,
    /// The length of the message in the source, in bytes; 0 for other units than messages with events.
    pub length: u32,
    /// Its kind.
    pub kind: BlockMessageKind,
}

/// The origin of a message.
#[derive(Clone, Copy, Debug)]
pub struct MessageOrigin {
    /// Id of the source's definition.
    pub source: u32,
    /// Offset of the message in the source.
    pub offset: u64,
}

/// The bytes of a message in its source.
#[derive(Clone, Copy, Debug)]
pub struct MessageSpan {
    /// Offset of the first.
    pub offset: u64,
    /// Its length, bytes.
    pub length: usize,
}

/// A length of the arena and the number of its fix-ups then, for [`Block::roll_back`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ArenaRollbackPoint {
    /// Bytes of the arena.
    pub arena: usize,
    /// Fix-ups in it.
    pub fixups: usize,
}

/// A message that became one event.
#[derive(Clone, Copy, Debug)]
pub struct SingleEventUnit {
    /// Start in the source.
    pub offset: u64,
    /// Event time.
    pub ts: UnixNanos,
    /// End of its frame in the arena.
    pub end: u32,
    /// Its bytes in the source.
    pub length: u32,
}

/// The kind of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockMessageKind {
    /// A message with events.
    Events,
    /// As `EventLinesFormat`; its sequence number is of the run of this index; `may_be_repeat`: it may have been sent
    /// before.
    #[allow(missing_docs)]
    Numbered { run: u32, may_be_repeat: bool },
    /// A message with events whose number was seen before, or that is `unsure`: kept and flagged.
    #[allow(missing_docs)]
    Repeat { unsure: bool },
    /// A message with events that was seen before and states this: left out.
    Duplicate,
    /// A message, or garbage, that went into quarantine.
    Quarantine,
    /// A part of a message that is larger than its framer waits for, or garbage that may be such a part. `first` and
    /// `last` state which part it is. Each part has an event of its own in the block; on the tape they share one
    /// event.
    #[allow(missing_docs)]
    QuarantinePart { first: bool, last: bool },
    /// Another mapping decodes the rest of this source.
    Switch,
    /// The source has been consumed through `offset`; the tally of this index is the account so far.
    #[allow(missing_docs)]
    Progress { tally: u32, end: bool },
}

/// `BlockMessage::ts` of a message whose time is unknown.
pub const NO_TS: UnixNanos = UnixNanos::MIN;

/// A provisional id in the arena.
#[derive(Clone, Copy, Debug)]
pub struct IdFixup {
    /// Start of the frame it is in.
    pub frame: u32,
    /// The place of the id.
    pub id_offset: u32,
    /// The dictionary.
    pub dict: NameKind,
    /// Its id in the block's own names.
    pub id: u32,
}

/// The place of a mark of progress in a block.
#[derive(Clone, Copy, Debug)]
pub struct ProgressMarkIndex {
    /// Its unit.
    pub unit: u32,
    /// Runs of sequence numbers before it.
    pub runs: u32,
}

/// A progress mark follows every message that reaches over a multiple of this many bytes of its source, wherever
/// blocks were cut.
pub const PROGRESS_BYTES: u64 = 1 << 20;

impl Block {
    /// Prepares the block for new bytes; `bytes` keeps its content.
    pub fn reset(&mut self) {
        self.decoded = 0;
        self.arena.clear();
        self.units.clear();
        self.fixups.clear();
        self.names.clear();
        self.raw.clear();
        self.runs.clear();
        self.marks.clear();
        self.hashes.clear();
        self.sessions.clear();
        self.index.clear();
        self.tally = MessageTally::default();
        self.unresolved.clear();
        self.entries.clear();
        self.has_findings = false;
        self.tallies.clear();
        self.added.clear();
        self.claims.clear();
        self.leaves = None;
    }

    /// Marks the start of the next message's frames.
    pub fn mark(&self) -> ArenaRollbackPoint {
        ArenaRollbackPoint { arena: self.arena.len(), fixups: self.fixups.len() }
    }

    /// Takes back the frames since `mark`.
    pub fn roll_back(&mut self, mark: ArenaRollbackPoint) {
        self.arena.truncate(mark.arena);
        self.fixups.truncate(mark.fixups);
        self.waiting.forget_message();
    }

    /// Returns the arena and the resolver that build an event.
    #[inline]
    pub fn builder<'b>(&'b mut self, dictionary: &'b Dictionary) -> (&'b mut Vec<u8>, BlockNameResolver<'b>) {
        let frame = self.arena.len() as u32;
        let Self { arena, names: local, fixups, waiting, .. } = self;
        (arena, BlockNameResolver { dictionary, local, fixups, waiting_names: waiting, frame })
    }

    /// Resolves all waiting names. The caller must call it when decoding ends.
    pub fn resolve_names(&mut self, dictionary: &Dictionary) {
        let (waiting, mut to) = self.destination(dictionary);
        waiting.resolve_all(&mut to);
    }

    fn destination<'b>(
        &'b mut self,
        dictionary: &'b Dictionary,
    ) -> (&'b mut WaitingNames, IdPatchTarget<'b>) {
        let Self { names: local, arena, fixups, units, waiting, .. } = self;
        (waiting, IdPatchTarget { dictionary, local, arena, fixups, units })
    }

    /// Ends a message that became `events` events.
    #[inline]
    pub fn end_message(
        &mut self,
        span: MessageSpan,
        ts: UnixNanos,
        events: u32,
        kind: BlockMessageKind,
        dictionary: &Dictionary,
    ) {
        let unit = self.units.len();
        let (waiting, mut to) = self.destination(dictionary);
        waiting.next(unit, &mut to);
        self.end_resolved(span, ts, events, kind);
    }

    /// Ends a message without pending names, because it was built without [`Block::builder`].
    #[inline]
    pub fn end_resolved(&mut self, span: MessageSpan, ts: UnixNanos, events: u32, kind: BlockMessageKind) {
        self.tally.messages += 1;
        self.tally.with_events += 1;
        self.tally.events += u64::from(events);
        self.push(span.offset, ts, events, span.length as u32, kind);
    }

    /// Adds this number of events to the last unit.
    pub fn extend_last(&mut self, events: u32, dictionary: &Dictionary) {
        let unit = self.units.len() - 1;
        let (waiting, mut to) = self.destination(dictionary);
        waiting.next(unit, &mut to);
        self.tally.events += u64::from(events);
        let (end, fixups_end) = (self.arena.len() as u32, self.fixups.len() as u32);
        let block_unit = &mut self.units[unit];
        (block_unit.end, block_unit.fixups_end) = (end, fixups_end);
        block_unit.events += events;
    }

    /// Ends messages that became one event each and brought no fix-ups; their frames are at the end of the
    /// arena.
    #[inline]
    pub fn end_messages(&mut self, messages: impl ExactSizeIterator<Item = SingleEventUnit>) {
        let count = messages.len() as u64;
        self.tally.messages += count;
        self.tally.with_events += count;
        self.tally.events += count;
        let (fixups_end, raw_end) = (self.fixups.len() as u32, self.raw.len() as u32);
        self.units.extend(messages.map(|SingleEventUnit { offset, ts, end, length }| BlockMessage {
            offset,
            ts,
            end,
            fixups_end,
            raw_end,
            events: 1,
            length,
            kind: BlockMessageKind::Events,
        }));
    }

    /// Counts messages that became this number of events together; events and units are in their places.
    #[inline]
    pub fn count_many(&mut self, messages: u64, events: u64) {
        self.tally.messages += messages;
        self.tally.with_events += messages;
        self.tally.events += events;
    }

    /// Counts the current message as unresolved: its instrument is not in the reference data. Its unit must be the
    /// next one added.
    pub fn note_unresolved(&mut self) {
        self.unresolved.push(self.units.len() as u32);
        self.tally.unresolved += 1;
    }

    /// Counts the entries of the current message, whose unit comes next.
    pub fn note_entries(&mut self, entries: EntryTally) {
        self.entries.push((self.units.len() as u32, entries));
        self.tally.entries = self.tally.entries.plus(entries);
    }

    /// Ends a message that the mapping does not want.
    #[inline]
    pub fn end_ignored(&mut self) {
        self.tally.messages += 1;
        self.tally.ignored += 1;
    }

    /// Ends a message that its decoder has had before.
    #[inline]
    pub fn end_duplicate(&mut self) {
        self.tally.messages += 1;
        self.tally.duplicates += 1;
    }

    /// Puts a message, or garbage, into quarantine.
    pub fn quarantine(&mut self, source: u32, offset: u64, raw: &[u8], reason: &str, detail: &str) {
        self.quarantine_message(MessageOrigin { source, offset }, raw, reason, detail, &AffectedBooks::Feed);
    }

    /// Marks progress if the message at `start..end` of the source reaches over a multiple of
    /// [`PROGRESS_BYTES`].
    #[inline]
    pub fn mark_crossed_progress(&mut self, start: u64, end: u64) {
        if start / PROGRESS_BYTES != end / PROGRESS_BYTES && !self.in_packet {
            self.mark_progress(end, false);
        }
    }

    /// Marks progress; `end` says that the source ends here.
    #[cold]
    pub fn mark_progress(&mut self, through: u64, end: bool) {
        let tally = self.tallies.len() as u32;
        self.tallies.push(self.tally);
        self.index.open_runs = self.runs.len();
        self.marks.push(ProgressMarkIndex { unit: self.units.len() as u32, runs: self.runs.len() as u32 });
        self.push(through, NO_TS, 0, 0, BlockMessageKind::Progress { tally, end });
    }

    /// Puts a unit before all others that says: from here on another mapping decodes this source.
    pub fn begin_with_switch(&mut self) {
        self.units.insert(
            0,
            BlockMessage {
                offset: self.base,
                ts: NO_TS,
                end: 0,
                fixups_end: 0,
                raw_end: 0,
                events: 0,
                length: 0,
                kind: BlockMessageKind::Switch,
            },
        );
        self.marks.iter_mut().for_each(|m| m.unit += 1);
        self.unresolved.iter_mut().for_each(|unit| *unit += 1);
        self.entries.iter_mut().for_each(|(unit, _)| *unit += 1);
    }

    /// Returns whether the unit at this index is the format switch that begins the block.
    pub fn begins_with_switch(&self, unit: usize) -> bool {
        unit == 0 && self.units.first().is_some_and(|u| u.kind == BlockMessageKind::Switch)
    }

    /// Corrects the account of the block and of its later marks: the unit's message became no events after all.
    pub fn recount_unit(&mut self, unit: usize, verdict: TurnVerdict) {
        let events = u64::from(self.units[unit].events);
        let unresolved = u64::from(self.unresolved.binary_search(&(unit as u32)).is_ok());
        let entries = self.entries.binary_search_by_key(&(unit as u32), |(entry_unit, _)| *entry_unit);
        let entries = entries.map_or(EntryTally::default(), |i| self.entries[i].1);
        let (repeats, unsure) = match self.units[unit].kind {
            BlockMessageKind::Repeat { unsure } => (1, u64::from(unsure)),
            _ => (0, 0),
        };
        for t in self.tallies_behind(unit) {
            t.with_events -= 1;
            t.events -= events;
            t.unresolved -= unresolved;
            t.repeats -= repeats;
            t.unsure -= unsure;
            t.entries = t.entries.minus(entries);
            match verdict {
                TurnVerdict::Duplicate => t.duplicates += 1,
                TurnVerdict::Quarantined => {
                    t.quarantined += 1;
                    t.entries = t.entries.plus(entries.in_quarantine());
                }
            }
        }
    }

    /// Counts the unit's message as a repeat in the account of the block and of its later marks.
    pub fn count_repeat(&mut self, unit: usize, unsure: bool) {
        for t in self.tallies_behind(unit) {
            t.repeats += 1;
            t.unsure += u64::from(unsure);
        }
    }

    /// Counts the unit's message as a part of the previous message in the account of the block and of its later
    /// marks.
    pub fn count_as_part(&mut self, unit: usize) {
        for t in self.tallies_behind(unit) {
            t.messages -= 1;
            t.quarantined -= 1;
        }
    }

    /// Iterates over the accounts that include the message of this unit.
    fn tallies_behind(&mut self, unit: usize) -> impl Iterator<Item = &mut MessageTally> {
        let later = self.units[unit..].iter().find_map(|u| match u.kind {
            BlockMessageKind::Progress { tally, .. } => Some(tally as usize),
            _ => None,
        });
        let later = later.unwrap_or(self.tallies.len());
        self.tallies[later..].iter_mut().chain([&mut self.tally])
    }

    /// Returns the dictionary that has no room for the names of these fix-ups. `resolved` must return the id of a
    /// name that has one, and 0 for other names.
    pub fn full_dictionary(
        &self,
        fixups: Range<usize>,
        dictionary: &Dictionary,
        resolved: impl Fn(&IdFixup) -> u32,
    ) -> Option<NameKind> {
        let fixups = &self.fixups[fixups];
        let near = |f: &IdFixup| dictionary.len(f.dict) + fixups.len() as u32 > f.dict.id_max();
        if !fixups.iter().any(near) {
            return None;
        }
        let is_new = |f: &IdFixup| {
            let name = self.names.name(f.dict, f.id).expect("the block's own name");
            resolved(f) == 0 && dictionary.get(f.dict, name.as_bytes()).is_none()
        };
        let mut new_names: Vec<_> =
            fixups.iter().filter(|f| is_new(f)).map(|f| (f.dict as u8, f.id)).collect();
        new_names.sort_unstable();
        new_names.dedup();
        let count = |dict: NameKind| new_names.iter().filter(|(d, _)| *d == dict as u8).count() as u32;
        fixups.iter().map(|f| f.dict).find(|&d| count(d) > 0 && dictionary.len(d) + count(d) > d.id_max())
    }

    /// Looks up a session by its key; `None` if the key is new or forgotten.
    #[inline]
    pub fn find_session(&self, key: &SessionNameKey) -> Option<usize> {
        self.index.by_key(key)
    }

    /// Finds or adds the session `name`. If `key` is given, [`Self::find_session`] finds the session too.
    pub fn session_by_name(&mut self, name: &[u8], key: Option<&SessionNameKey>) -> usize {
        let id = self.index.id(&mut self.sessions, name);
        if let Some(key) = key {
            self.index.keep_key(*key, id);
        }
        id
    }

    /// Notes the sequence number of a message of this session; returns the run that it is in.
    #[inline]
    pub fn note_sequence(&mut self, id: usize, sequence: u64, numbering: SequenceEffect) -> u32 {
        let latest = self.index.latest_run_by_session[id];
        if numbering == SequenceEffect::Counts
            && latest as usize >= self.index.open_runs
            && let Some(run) = self.runs.get_mut(latest as usize)
            && run.end == sequence
        {
            run.end += 1;
            return latest;
        }
        self.begin_run(id, sequence, numbering)
    }

    fn begin_run(&mut self, id: usize, sequence: u64, numbering: SequenceEffect) -> u32 {
        let session = id as u32;
        let run = match numbering {
            SequenceEffect::Counts => {
                SequenceRun { session, restart: None, start: sequence, end: sequence + 1 }
            }
            SequenceEffect::Fills => return u32::MAX,
            SequenceEffect::Restarts { next, counts } => {
                let run_start = if counts { sequence } else { next };
                SequenceRun {
                    session,
                    restart: Some(next),
                    start: run_start,
                    end: run_start + u64::from(counts),
                }
            }
        };
        let latest = self.runs.len() as u32;
        self.index.latest_run_by_session[id] = latest;
        self.runs.push(run);
        latest
    }

    pub(crate) fn push(
        &mut self,
        offset: u64,
        ts: UnixNanos,
        events: u32,
        length: u32,
        kind: BlockMessageKind,
    ) {
        self.units.push(BlockMessage {
            offset,
            ts,
            end: self.arena.len() as u32,
            fixups_end: self.fixups.len() as u32,
            raw_end: self.raw.len() as u32,
            events,
            length,
            kind,
        });
    }
}

/// The new kind of a message, decided in its turn.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum TurnVerdict {
    Duplicate,
    Quarantined,
}

impl BlockMessageKind {
    /// Returns whether the message has events, as far as its decoder knows.
    #[inline]
    pub fn is_events(self) -> bool {
        matches!(self, BlockMessageKind::Events | BlockMessageKind::Numbered { .. })
    }
}

impl BlockMessage {
    /// Returns whether the unit is a mark of progress.
    pub fn is_progress(&self) -> bool {
        matches!(self.kind, BlockMessageKind::Progress { .. })
    }
}
