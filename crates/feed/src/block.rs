//! A block: a stretch of one source's bytes, and the events that a worker made of it.
//!
//! The block travels: filled at intake, decoded by its worker, given ids and a place by the sequencer, copied
//! onto the tape, and then filled again. Nothing in it is allocated anew once it has grown to its size.

use crate::bookkeeping::{Quarantined, quarantine_frame};
use crate::decode::{Sorted, Statefulness};
use crate::iso20022::Carried;
pub use crate::names::Names;
use crate::names::{Destination, Waiting};
use crate::source::SourceFacts;
pub use crate::tally::Tally;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use unitape_codec::capture::Walker;
use unitape_model::{Dict, Dictionary, words};

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
    /// Whether another source of the feed follows the one that ends.
    pub more: bool,
    /// The source's bytes.
    pub bytes: Vec<u8>,
    /// How many of them were decoded; the rest belongs to the next block.
    pub decoded: usize,
    /// The events, unstamped frames one after the other.
    pub arena: Vec<u8>,
    /// What came of which message, in source order; messages that became nothing have no unit.
    pub units: Vec<Unit>,
    /// Places in the arena that hold provisional ids, in arena order.
    pub fixups: Vec<Fixup>,
    /// The names behind the provisional ids.
    pub names: Dictionary,
    /// Names whose ids are on their way.
    pub waiting: Waiting,
    /// Raw bytes for quarantine, one message after the other.
    pub raw: Vec<u8>,
    /// Sequence numbers seen, run by run.
    pub runs: Vec<SequenceRun>,
    /// The names of sessions in `runs`.
    pub sessions: Vec<Vec<u8>>,
    /// Finds sessions by name, and their latest runs.
    pub index: SessionIndex,
    /// The account of the block.
    pub tally: Tally,
    /// Units with an instrument that the reference data does not have, in order.
    pub unresolved: Vec<u32>,
    /// The account as it stood at each progress unit.
    pub tallies: Vec<Tally>,
    /// Frames that the sequencer adds: definitions and progress.
    pub added: Vec<u8>,
    /// All of it has been given a place on the tape.
    pub done: bool,
    /// The first bytes of the source, where its format has a header that all of it depends on.
    pub head: Arc<[u8]>,
    /// What headers and trailers in it say of the number of messages.
    pub claims: Vec<Claim>,
    /// Messages of the source before the block, for the decoder to hold claims against; none the first time.
    pub before: Option<u64>,
    /// What this block is besides bytes.
    pub turn: Turn,
    /// The source that begins with this block, when it was found while running.
    pub begins: Option<Box<SourceFacts>>,
    /// Format and mapping to decode it by.
    pub sorted: Option<Arc<Sorted>>,
    /// Id of the source that the events were decoded with.
    pub decoded_as: u32,
    /// For a capture, the walker as it stands at the first byte.
    pub walker: Option<Walker>,
    /// When the bytes were received: end of a stretch in the source and nanoseconds since 1970, in order.
    pub times: Vec<(u64, i64)>,
    /// Memory for a packet's payload, or for the arena written anew.
    pub payload: Vec<u8>,
    /// What came before of a message that was not over where the bytes begin; taken by the decoder.
    pub carried: Option<Box<Carried>>,
    /// The same, of where the bytes that were decoded end.
    pub leaves: Option<Box<Carried>>,
    /// The bytes in hand are those of one packet: marks of progress are the capture's to make.
    pub in_packet: bool,
    /// Where that packet was sent to, and when it was received.
    pub sent: Option<(SocketAddr, i64)>,
}

/// What a block brings to the sequencer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// Bytes of a source.
    #[default]
    Bytes,
    /// Nothing: time has passed, and the merge may have waited long enough.
    Tick,
    /// Nothing: the feed brings no more in this run.
    FeedEnd,
}

/// A header or trailer says how many messages its source has.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// So many, from the start of the source.
    pub messages: u64,
    /// So many of them are in the block before the place of which this is said.
    pub here: u64,
}

/// What came of one source message, or a mark of progress.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// Where the message starts in the source.
    pub offset: u64,
    /// Event time of its first event, [`NO_TS`] when it could not be told.
    pub ts: i64,
    /// End of its frames in the arena.
    pub end: u32,
    /// End of its entries in the fix-ups.
    pub fixups_end: u32,
    /// End of its bytes in the raw bytes.
    pub raw_end: u32,
    /// How many events it became.
    pub events: u32,
    /// Bytes of the message in the source; 0 for what is no message with events.
    pub length: u32,
    /// What it is.
    pub what: What,
}

/// A message that became one event.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Where it starts in the source.
    pub offset: u64,
    /// Event time.
    pub ts: i64,
    /// End of its frame in the arena.
    pub end: u32,
    /// Its bytes in the source.
    pub length: u32,
}

/// What a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A message with events.
    Events,
    /// As `Events`, but it may have been sent before: the run of this index says with which sequence.
    #[allow(missing_docs)]
    Maybe { run: u32 },
    /// A message, or garbage, that went into quarantine.
    Quarantine,
    /// What follows in this source is decoded by another mapping.
    Switch,
    /// The source has been consumed through `offset`; the tally of this index is the account so far.
    #[allow(missing_docs)]
    Progress { tally: u32, end: bool },
}

/// `Unit::ts` of a message whose time could not be told.
pub const NO_TS: i64 = i64::MIN;

/// A provisional id in the arena.
#[derive(Clone, Copy, Debug)]
pub struct Fixup {
    /// Start of the frame it stands in.
    pub frame: u32,
    /// Where it stands.
    pub at: u32,
    /// Which dictionary.
    pub dict: Dict,
    /// Its id in the block's own names.
    pub id: u32,
}

/// Messages of one session between two marks of progress of the block.
#[derive(Clone, Copy, Debug)]
pub struct SequenceRun {
    /// Index into the block's sessions.
    pub session: u32,
    /// Greatest sequence of the run.
    pub max: u64,
    /// How many units the block had before the run.
    pub units_before: u32,
    /// Whether this is a single message that may have been sent before.
    pub maybe: bool,
}

/// A progress mark stands behind every message that reaches over a multiple of this many bytes of its source,
/// wherever blocks were cut.
pub const PROGRESS_BYTES: u64 = 1 << 20;

impl Block {
    /// Makes the block ready for new bytes; `bytes` keeps what it holds.
    pub fn reset(&mut self) {
        self.decoded = 0;
        self.arena.clear();
        self.units.clear();
        self.fixups.clear();
        self.names.clear();
        self.raw.clear();
        self.runs.clear();
        self.sessions.clear();
        self.index.clear();
        self.tally = Tally::default();
        self.unresolved.clear();
        self.tallies.clear();
        self.added.clear();
        self.claims.clear();
        self.leaves = None;
    }

    /// Whether what it means is known only in its turn.
    pub fn is_stream(&self) -> bool {
        let stream = |s: &Arc<Sorted>| s.format.statefulness() == Statefulness::Stream;
        self.turn == Turn::Bytes && self.sorted.as_ref().is_some_and(stream)
    }

    /// Where the next message's frames will start.
    pub fn mark(&self) -> (usize, usize) {
        (self.arena.len(), self.fixups.len())
    }

    /// Takes back the frames since `mark`.
    pub fn back_to(&mut self, mark: (usize, usize)) {
        self.arena.truncate(mark.0);
        self.fixups.truncate(mark.1);
        self.waiting.forget();
    }

    /// Arena and resolver, to build an event with.
    #[inline]
    pub fn builder<'b>(&'b mut self, known: &'b Dictionary) -> (&'b mut Vec<u8>, Names<'b>) {
        let frame = self.arena.len() as u32;
        let Self { arena, names: local, fixups, waiting, .. } = self;
        (arena, Names { known, local, fixups, waiting, frame })
    }

    /// Gives all names their ids, where they wait for them. At the end of all decoding.
    pub fn settle_names(&mut self, known: &Dictionary) {
        let (waiting, mut to) = self.destination(known);
        waiting.settle(&mut to);
    }

    fn destination<'b>(&'b mut self, known: &'b Dictionary) -> (&'b mut Waiting, Destination<'b>) {
        let Self { names: local, arena, fixups, units, waiting, .. } = self;
        (waiting, Destination { known, local, arena, fixups, units })
    }

    /// Ends a message of `length` bytes that became `events` events.
    #[inline]
    pub fn end_message(
        &mut self,
        place: (u64, usize),
        ts: i64,
        events: u32,
        maybe: bool,
        known: &Dictionary,
    ) {
        let unit = self.units.len();
        let (waiting, mut to) = self.destination(known);
        waiting.next(unit, &mut to);
        self.end_resolved(place, ts, events, maybe);
    }

    /// The same for one of whose names none waits, because it was built without [`Block::builder`].
    #[inline]
    pub fn end_resolved(&mut self, (offset, length): (u64, usize), ts: i64, events: u32, maybe: bool) {
        self.tally.messages += 1;
        self.tally.with_events += 1;
        self.tally.events += u64::from(events);
        let what = if maybe { What::Maybe { run: self.runs.len() as u32 - 1 } } else { What::Events };
        self.push(offset, ts, (events, length as u32), what);
    }

    /// So many events more are of the last unit.
    pub fn extend_last(&mut self, events: u32, known: &Dictionary) {
        let unit = self.units.len() - 1;
        let (waiting, mut to) = self.destination(known);
        waiting.next(unit, &mut to);
        self.tally.events += u64::from(events);
        let (end, fixups_end) = (self.arena.len() as u32, self.fixups.len() as u32);
        let last = &mut self.units[unit];
        (last.end, last.fixups_end) = (end, fixups_end);
        last.events += events;
    }

    /// Ends messages that became one event each and brought no fix-ups; their frames stand at the end of the
    /// arena.
    #[inline]
    pub fn end_messages(&mut self, messages: impl ExactSizeIterator<Item = Ended>) {
        let count = messages.len() as u64;
        self.tally.messages += count;
        self.tally.with_events += count;
        self.tally.events += count;
        let (fixups_end, raw_end) = (self.fixups.len() as u32, self.raw.len() as u32);
        self.units.extend(messages.map(|Ended { offset, ts, end, length }| Unit {
            offset,
            ts,
            end,
            fixups_end,
            raw_end,
            events: 1,
            length,
            what: What::Events,
        }));
    }

    /// Counts messages that became so many events together; events and units are in their places.
    #[inline]
    pub fn count_many(&mut self, messages: u64, events: u64) {
        self.tally.messages += messages;
        self.tally.with_events += messages;
        self.tally.events += events;
    }

    /// The message in hand, whose unit comes next, names an instrument that the reference data does not have.
    pub fn note_unresolved(&mut self) {
        self.unresolved.push(self.units.len() as u32);
        self.tally.unresolved += 1;
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
        // The time and the place in the raw log are the sequencer's to know.
        let why = Quarantined {
            ts: 0,
            source,
            offset,
            raw_at: 0,
            length: raw.len(),
            reason,
            detail,
            head: &self.head,
        };
        quarantine_frame(&mut self.arena, &why);
        self.raw.extend_from_slice(raw);
        self.tally.messages += 1;
        self.tally.quarantined += 1;
        self.push(offset, NO_TS, (1, 0), What::Quarantine);
    }

    /// Marks progress if the message at `start..end` of the source reaches over a multiple of
    /// [`PROGRESS_BYTES`].
    #[inline]
    pub fn progress(&mut self, start: u64, end: u64) {
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
        self.push(through, NO_TS, (0, 0), What::Progress { tally, end });
    }

    /// Puts a unit before all others that says: from here on another mapping decodes this source.
    pub fn begin_with_switch(&mut self) {
        self.units.insert(
            0,
            Unit {
                offset: self.base,
                ts: NO_TS,
                end: 0,
                fixups_end: 0,
                raw_end: 0,
                events: 0,
                length: 0,
                what: What::Switch,
            },
        );
        self.runs.iter_mut().for_each(|r| r.units_before += 1);
        self.unresolved.iter_mut().for_each(|unit| *unit += 1);
    }

    /// The message of this unit did not become events after all: the account of the block, and of the marks
    /// behind it, says so.
    pub fn recount(&mut self, unit: usize, instead: Instead) {
        let events = u64::from(self.units[unit].events);
        let unresolved = u64::from(self.unresolved.binary_search(&(unit as u32)).is_ok());
        let later = self.units[unit..].iter().find_map(|u| match u.what {
            What::Progress { tally, .. } => Some(tally as usize),
            _ => None,
        });
        let later = later.unwrap_or(self.tallies.len());
        let tallies = &mut self.tallies[later..];
        for t in tallies.iter_mut().chain([&mut self.tally]) {
            t.with_events -= 1;
            t.events -= events;
            t.unresolved -= unresolved;
            match instead {
                Instead::Duplicate => t.duplicates += 1,
                Instead::Quarantined => t.quarantined += 1,
            }
        }
    }

    /// The dictionary that has no place for the names that these fix-ups would add to it; `resolved` says which
    /// have their id already, and gives 0 for others.
    pub fn without_place(
        &self,
        fixups: Range<usize>,
        dictionary: &Dictionary,
        resolved: impl Fn(&Fixup) -> u32,
    ) -> Option<Dict> {
        let fixups = &self.fixups[fixups];
        let near = |f: &Fixup| dictionary.len(f.dict) + fixups.len() as u32 > f.dict.id_max();
        if !fixups.iter().any(near) {
            return None;
        }
        let is_new = |f: &Fixup| {
            let name = self.names.name(f.dict, f.id).expect("the block's own name");
            resolved(f) == 0 && dictionary.get(f.dict, name.as_bytes()).is_none()
        };
        let mut new: Vec<_> = fixups.iter().filter(|f| is_new(f)).map(|f| (f.dict as u8, f.id)).collect();
        new.sort_unstable();
        new.dedup();
        let count = |dict: Dict| new.iter().filter(|(d, _)| *d == dict as u8).count() as u32;
        fixups.iter().map(|f| f.dict).find(|&d| count(d) > 0 && dictionary.len(d) + count(d) > d.id_max())
    }

    /// The session of this key, if it was seen before and not forgotten.
    #[inline]
    pub fn session(&self, key: &SessionKey) -> Option<usize> {
        self.index.by_key(key)
    }

    /// The session of this name; it will be found by `key` too, if it has one.
    pub fn session_named(&mut self, name: &[u8], key: Option<&SessionKey>) -> usize {
        let id = self.index.id(&mut self.sessions, name);
        if let Some(key) = key {
            self.index.keys.0[key.place()] = (*key, id as u32 + 1);
        }
        id
    }

    /// Notes a sequence number; `maybe` for a message that may have been sent before.
    #[inline]
    pub fn note_sequence(&mut self, id: usize, sequence: u64, maybe: bool) {
        let latest = self.index.latest[id] as usize;
        if !maybe && latest >= self.index.open_runs && latest < self.runs.len() {
            let run = &mut self.runs[latest];
            run.max = run.max.max(sequence);
            return;
        }
        self.index.latest[id] = self.runs.len() as u32;
        let units_before = self.units.len() as u32;
        self.runs.push(SequenceRun { session: id as u32, max: sequence, units_before, maybe });
        if maybe {
            // What comes behind it must not be taken for what it is compared with.
            self.index.open_runs = self.runs.len();
        }
    }

    fn push(&mut self, offset: u64, ts: i64, (events, length): (u32, u32), what: What) {
        self.units.push(Unit {
            offset,
            ts,
            end: self.arena.len() as u32,
            fixups_end: self.fixups.len() as u32,
            raw_end: self.raw.len() as u32,
            events,
            length,
            what,
        });
    }
}

/// What a message turned out to be in its turn.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Instead {
    Duplicate,
    Quarantined,
}

/// The sessions of a block: found by name, each with its latest run.
#[derive(Debug, Default)]
pub struct SessionIndex {
    ids: HashTable<u32>,
    /// Seeded per process: names come from outside, and nothing that is written depends on the hash.
    hasher: DefaultHashBuilder,
    /// Some sessions by key, and their number and one more: each where its key says, the latest one there.
    keys: SessionKeys,
    /// By session.
    latest: Vec<u32>,
    /// Runs before this one are closed: a mark of progress, or a message that may have been sent before, stands
    /// behind them.
    open_runs: usize,
}

/// The names of the two that talk in a session, if they are short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionKey {
    words: [u64; 2],
    lengths: [u8; 2],
}

impl SessionKey {
    /// Puts a name in its place; false if it is too long for it.
    #[inline]
    pub fn put(&mut self, i: usize, name: &[u8]) -> bool {
        (self.words[i], self.lengths[i]) = (words::word(name), name.len().min(9) as u8);
        name.len() <= 8
    }

    #[inline]
    fn place(&self) -> usize {
        let mixed = self.words[0].rotate_left(29) ^ self.words[1];
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
    }
}

#[derive(Debug)]
struct SessionKeys(Box<[(SessionKey, u32); 256]>);

impl Default for SessionKeys {
    fn default() -> Self {
        Self(Box::new([(SessionKey::default(), 0); 256]))
    }
}

impl SessionIndex {
    #[inline]
    fn by_key(&self, key: &SessionKey) -> Option<usize> {
        let (known, id) = &self.keys.0[key.place()];
        (known == key).then_some(*id as usize)?.checked_sub(1)
    }

    fn clear(&mut self) {
        if !self.latest.is_empty() {
            self.keys.0.fill(Default::default());
        }
        self.ids.clear();
        self.latest.clear();
        self.open_runs = 0;
    }

    #[inline]
    fn id(&mut self, sessions: &mut Vec<Vec<u8>>, name: &[u8]) -> usize {
        let hash = self.hasher.hash_one(name);
        match self.ids.find(hash, |id| sessions[*id as usize] == name) {
            Some(&id) => id as usize,
            None => self.add(sessions, name, hash),
        }
    }

    #[cold]
    fn add(&mut self, sessions: &mut Vec<Vec<u8>>, name: &[u8], hash: u64) -> usize {
        // The name stands in every mark of progress: it must be short, and come back from there as it was.
        if name.len() > SESSION_BYTES_MAX || std::str::from_utf8(name).is_err() {
            let name = format!("blake3:{}", blake3::hash(name).to_hex());
            return self.id(sessions, name.as_bytes());
        }
        let id = sessions.len();
        sessions.push(name.to_vec());
        self.latest.push(u32::MAX);
        self.ids.insert_unique(hash, id as u32, |id| self.hasher.hash_one(&sessions[*id as usize][..]));
        id
    }
}

/// The name of a session as it came, in bytes; a longer one is told by its hash.
const SESSION_BYTES_MAX: usize = 128;

impl Unit {
    /// Whether it is a mark of progress.
    pub fn is_progress(&self) -> bool {
        matches!(self.what, What::Progress { .. })
    }
}
