//! Names, sources, and the account of every message, read from the tape alone.

pub(crate) mod bookkeeping;
pub(crate) mod retention_checkpoint;

mod merged;
mod tape_gaps;

pub use tape_gaps::TapeGapAccount;

pub(crate) use merged::{MERGE_STATE, refuse_merge};

use crate::account::bookkeeping::{GROWN, HEAD, RETRIED, SUPERSEDED};
use crate::block::json::bytes_of_json;
use crate::block::numbers::{FeedSessions, SequenceNumberSet};
use crate::block::{EntryTally, MessageTally};
use crate::error::Error;
use crate::formats::fast::{ALONE, SENT_AGAIN};
use crate::formats::format::FormatId;
use crate::sources::journal::{LastFile, number_of_file};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use unitape_model::{
    DefinitionTable, Event, EventField, EventKind, EventValue, Position, TapeGap, flags, frames,
};
use unitape_tape::{DefinitionReader, LostDefinitions, ReadOptions};

/// The name under which an event keeps the stated sum or number from which its transactions differ.
pub const SUM_DIFFERS: &str = "sum_differs";

/// Returns whether the event says that a sum differs.
#[inline(never)]
pub(crate) fn says_sum_differs(event: &Event<'_>) -> bool {
    matches!(event.kind(), EventKind::Payment | EventKind::Statement)
        && event.unmapped_fields().any(|(name, _)| name == SUM_DIFFERS)
}

/// The account of a tape.
#[derive(Clone, Debug)]
pub struct TapeAccount {
    /// All names and sources.
    pub names: DefinitionTable,
    /// Sources in the order of their definitions; each further 4 GiB is folded into the first.
    pub sources: Vec<SourceAccount>,
    /// Events by number of their kind.
    pub by_kind: [u64; 64],
    /// Greatest event time and the sequence numbers of each session, by feed, at its last mark of progress.
    pub feeds: BTreeMap<String, FeedAccount>,
    /// Bytes of the raw log that quarantine events refer to.
    pub raw_bytes: u64,
    /// Messages recovered from quarantine by a later retry.
    pub recovered: u64,
    /// Id that the next source definition gets.
    pub next_source: u32,
    /// Greatest time of a message that is not late, by event time and by receive time where there is one.
    pub placed_max: (i64, i64),
    /// Messages that a merge appended after their time order.
    pub late: u64,
    /// Messages whose time leads by more than it may.
    pub clock_ahead: u64,
    /// Gaps of packets that arrived on no line of a market-data feed, and of messages outside these packets.
    pub gaps: u64,
    /// Messages that state another sum or number than their transactions add up to.
    pub sums_differ: u64,
    /// The current message is one of them.
    pub(crate) differs: bool,
    /// Lines of market data that are down, by feed: names of channel and line.
    pub lines_down: BTreeMap<String, BTreeSet<(String, String)>>,
    /// Parts of other tapes that a merge lacks, or has without a check.
    pub tape_gaps: TapeGapAccount,
    /// The current frames belong to a unit that began earlier.
    pub(crate) open_unit_recovered: Option<bool>,
    /// The oldest position, if earlier frames are gone and their account was not kept.
    pub(crate) partial_from: Option<Position>,
    /// The first mark of progress that contradicts the tape before it.
    pub mismatch: Option<AccountMismatch>,
}

/// A mark of progress that does not agree with the events before it: unitape did not write one of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountMismatch {
    /// Position of the mark, if known.
    pub position: Option<Position>,
    /// The value in the mark, and the value of the tape.
    pub difference: String,
}

/// The account of a source, from the tape.
#[derive(Clone, Debug, Default)]
pub struct SourceAccount {
    /// Id of its definition.
    pub id: u32,
    /// Name of its feed.
    pub feed: String,
    /// File name.
    pub file: String,
    /// Bytes, where they were known.
    pub size: Option<u64>,
    /// BLAKE3 in hex, where it was known.
    pub hash: Option<String>,
    /// Format and mapping.
    pub format_id: FormatId,
    /// The account at its last mark of progress.
    pub tally: MessageTally,
    /// Messages after that mark that are on the tape, without those that became nothing.
    pub since: MessageTally,
    /// Offset of that mark.
    pub through: u64,
    /// Whether it has been consumed to its end.
    pub end: bool,
    /// Start of the last message after that mark that is on the tape.
    pub last_offset: Option<u64>,
    /// Starts of the messages after that mark whose time leads by more than it may, in order.
    pub ahead_offsets: Vec<u64>,
    /// Ids of its further definitions, each with the number of its 4 GiB: more of it, or another mapping.
    pub further: BTreeMap<u32, u32>,
    /// Those of its further definitions that have its first bytes, with the hash of these bytes.
    pub head_hashes: BTreeMap<u32, blake3::Hash>,
    /// Ids of definitions for events that a retry recovered with another mapping, likewise.
    pub retried: BTreeMap<u32, u32>,
    /// Format and mapping of each of its definitions.
    pub format_ids: BTreeMap<u32, FormatId>,
    /// Id of the definition that its present mapping began with.
    pub mapping_start_id: u32,
    /// Units of it, bookkeeping included.
    pub units: u64,
    /// The number of bytes up to its last mark with a hash, and their hash.
    pub marked_content: Option<(u64, String)>,
    /// Offset and length of its last message, if that is in quarantine.
    pub quarantined_tail: Option<(u64, u64)>,
}

impl SourceAccount {
    /// Continues the account of a grown file, read on from `from`; removes a message `superseded` there.
    fn continue_account(&mut self, superseded: bool, from: u64) {
        self.end = false;
        if !superseded {
            return;
        }
        self.quarantined_tail = None;
        let marked = self.through > from;
        let tally = if marked { &mut self.tally } else { &mut self.since };
        // A damaged tape may say anything.
        tally.messages = tally.messages.saturating_sub(1);
        tally.quarantined = tally.quarantined.saturating_sub(1);
        match marked {
            true => (self.through, self.last_offset) = (from, None),
            false => self.last_offset = from.checked_sub(1),
        }
    }

    /// Returns which 4 GiB extent of the source the events with this definition id are in; `None` if the id belongs
    /// to another source.
    pub fn extent_of(&self, id: u32) -> Option<u32> {
        if id == self.id { Some(0) } else { self.further.get(&id).or_else(|| self.retried.get(&id)).copied() }
    }
}

/// The state that a feed's order depends on.
#[derive(Clone, Debug, Default)]
pub struct FeedAccount {
    /// Greatest event time.
    pub running_max: Option<i64>,
    /// The sequence numbers that each session has sent.
    pub sessions: FeedSessions,
}

/// The account as the command line prints it.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)]
pub struct AccountSummary {
    pub messages: u64,
    pub events: u64,
    pub quarantined: u64,
    pub duplicates: u64,
    pub ignored: u64,
    /// Messages that name an instrument that the reference data does not have, up to the last mark of progress of each
    /// source; printed where there are any.
    #[serde(skip_serializing_if = "is_zero")]
    pub unresolved: u64,
    /// Quarantined messages that a retry has made events of; printed if there are any.
    #[serde(skip_serializing_if = "is_zero")]
    pub recovered: u64,
    /// Messages whose sequence number had arrived before, kept and flagged; printed if there are any.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeats: u64,
    /// Repeats that cannot be confirmed, because a bound was met.
    #[serde(skip_serializing_if = "is_zero")]
    pub unsure: u64,
    /// Entries of repeating groups that each make an event, up to the last mark of progress of each source; printed
    /// if there are any.
    #[serde(skip_serializing_if = "EntryTally::is_empty")]
    pub entries: EntryTally,
    /// Messages whose time leads by more than it may; printed where there are any.
    #[serde(skip_serializing_if = "is_zero")]
    pub clock_ahead: u64,
    /// Gaps of packets that arrived on no line of a market-data feed, and of messages outside these packets; printed
    /// if there are any.
    #[serde(skip_serializing_if = "is_zero")]
    pub gaps: u64,
    /// Messages that state another sum or number than their transactions add up to; printed if there are any.
    #[serde(skip_serializing_if = "is_zero")]
    pub sums_differ: u64,
    /// Lines of market data that are down at the end of the tape: feed, channel and line; printed where there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines_down: Vec<String>,
    /// Parts of other tapes that a merge lacks, each once for every feed that it may concern; printed where there are any.
    #[serde(skip_serializing_if = "is_zero")]
    pub tape_gaps: u64,
    pub by_feed: BTreeMap<String, FeedSummary>,
    pub by_kind: BTreeMap<&'static str, u64>,
}

/// One feed of a [`AccountSummary`].
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)]
pub struct FeedSummary {
    pub messages: u64,
    pub with_events: u64,
    pub events: u64,
    pub quarantined: u64,
    pub duplicates: u64,
    pub ignored: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub unresolved: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub repeats: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub unsure: u64,
    #[serde(skip_serializing_if = "EntryTally::is_empty")]
    pub entries: EntryTally,
    pub bytes: u64,
    pub complete: bool,
}

impl AccountSummary {
    /// Messages in quarantine that no retry has recovered.
    pub fn quarantined_open(&self) -> u64 {
        self.quarantined.saturating_sub(self.recovered)
    }

    /// Returns whether the feed has a flaw: messages in quarantine, data lost on the way or at risk because a line is
    /// down, or a message whose stated sum differs from its transactions.
    pub fn is_flawed(&self) -> bool {
        self.quarantined_open() > 0
            || self.gaps + self.tape_gaps + self.sums_differ > 0
            || !self.lines_down.is_empty()
    }
}

impl Default for TapeAccount {
    fn default() -> Self {
        Self {
            names: DefinitionTable::default(),
            sources: Vec::new(),
            by_kind: [0; 64],
            feeds: BTreeMap::new(),
            raw_bytes: 0,
            recovered: 0,
            next_source: 1,
            placed_max: (i64::MIN, i64::MIN),
            late: 0,
            clock_ahead: 0,
            gaps: 0,
            sums_differ: 0,
            differs: false,
            lines_down: BTreeMap::new(),
            tape_gaps: TapeGapAccount::default(),
            open_unit_recovered: None,
            partial_from: None,
            mismatch: None,
        }
    }
}

impl TapeAccount {
    /// Reads the account of the tape in `dir`.
    ///
    /// # Errors
    /// Fails if the tape cannot be read or its definitions do not fit together.
    pub fn load(dir: &Path) -> Result<Self, Error> {
        Self::load_with(dir, ReadOptions::default())
    }

    /// Reads the account with or without checks; contents of skipped damage are missing from the account.
    ///
    /// # Errors
    /// Fails as [`TapeAccount::load`] does.
    pub fn load_with(dir: &Path, options: ReadOptions) -> Result<Self, Error> {
        let mut tries = 0;
        loop {
            match Self::read(dir, options) {
                // Retention took what was still to be read; the account of that is kept.
                Err(Error::Tape(unitape_tape::Error::Retained { .. })) if tries < 100 => tries += 1,
                other => return other,
            }
        }
    }

    /// Reads sources and their files from the dictionary log alone. Of a damaged log it reads the part before the
    /// damage; the writer of the tape refuses such a log.
    pub fn load_definitions(dir: &Path) -> Self {
        let mut account = Self::default();
        let Ok(mut log) = DefinitionReader::open(dir) else { return account };
        while let Ok(Some((_, frame))) = log.next() {
            if account.add(frame).is_err() {
                break;
            }
        }
        account
    }

    /// Finds the feed's last journal file in this account.
    pub fn last_journal_file(&self, feed: &str) -> LastFile {
        let of_feed = self.sources.iter().filter(|source| source.feed == feed);
        let files = of_feed.filter_map(|source| {
            Some(LastFile { number: number_of_file(&source.file)?, read_bytes: source.read_bytes() })
        });
        files.max_by_key(|file| file.number).unwrap_or_default()
    }

    fn read(dir: &Path, options: ReadOptions) -> Result<Self, Error> {
        let (mut account, mut reader) = retention_checkpoint::open_at_checkpoint(dir, options)?;
        let mut lost_definitions = LostDefinitions::new(dir, options.skip_damage);
        while let Some(run) = reader.next_run(1 << 20)? {
            lost_definitions.learn_before_bytes(run.position, run.bytes, |_, frame| account.add(frame))?;
            if options.skip_damage {
                // A mark that does not fit follows from the loss.
                frames(run.bytes).for_each(|(_, _, frame)| _ = account.add(frame));
            } else if let Err((position, reason)) = account.add_run(run.position, run.bytes) {
                return Err(reader.damage_at(position, &reason).into());
            }
        }
        Ok(account)
    }

    /// Takes a run of frames that is at `position` into account.
    ///
    /// # Errors
    /// Fails at the first frame that does not fit the frames before it; returns its position and the reason.
    pub(crate) fn add_run(&mut self, position: Position, run: &[u8]) -> Result<(), (Position, String)> {
        for (offset, _, frame) in frames(run) {
            let position = position.plus(offset as u64);
            let agreed = self.mismatch.is_none();
            self.add(frame).map_err(|reason| (position, reason))?;
            if let Some(mismatch) = self.mismatch.as_mut().filter(|_| agreed) {
                mismatch.position = Some(position);
            }
        }
        Ok(())
    }

    /// Takes one frame into account.
    ///
    /// # Errors
    /// Fails if this frame does not fit the frames before it.
    pub fn add(&mut self, frame: &[u8]) -> Result<(), String> {
        // A user's message is of no source.
        let event = self.names.admit_frame(frame).map_err(|flaw| flaw.to_string())?;
        let Some(event) = event else { return Ok(()) };
        // Readers recognise bookkeeping by the flag, this account by the kind: the two must agree.
        let (kind, header) = (event.kind(), event.header());
        if kind.is_meta() != header.is_meta() {
            let (name, with) = (kind.name(), if kind.is_meta() { "without" } else { "with" });
            return Err(format!(
                "a frame of kind `{name}` {with} the flag of bookkeeping: unitape did not write it"
            ));
        }
        if kind == EventKind::Quarantine && self.is_tape_gap(&event) {
            // It is no message of its source.
            return Ok(());
        }
        self.add_event(&event)?;
        if event.header().is_last() {
            let id = match event.kind() {
                EventKind::Source => uint(&event, EventField::Index).unwrap_or(0) as u32,
                _ => event.source(),
            };
            if id != 0 {
                self.source_mut(id)?.0.units += 1;
            }
        }
        Ok(())
    }

    fn add_event(&mut self, event: &Event<'_>) -> Result<(), String> {
        match event.kind() {
            EventKind::Define => Ok(()),
            EventKind::Source => self.define_source(event),
            EventKind::Progress => self.add_progress(event),
            kind => {
                self.by_kind[usize::from(kind as u8 & 63)] += 1;
                let (flag, last) = (event.header().flags() & flags::LATE != 0, event.header().is_last());
                let begins = self.open_unit_recovered.is_none();
                let recovered = match self.open_unit_recovered {
                    Some(recovered) => recovered,
                    None => flag && self.is_recovered(event)?,
                };
                self.open_unit_recovered = Some(recovered).filter(|_| !last);
                if matches!(kind, EventKind::Payment | EventKind::Statement) {
                    self.differs |= says_sum_differs(event);
                }
                if last && self.differs {
                    (self.sums_differ, self.differs) = (self.sums_differ + 1, false);
                }
                if recovered {
                    self.recovered += u64::from(last);
                    return Ok(());
                }
                let is_ahead = event.header().flags() & flags::CLOCK_AHEAD != 0;
                self.clock_ahead += u64::from(is_ahead && last);
                if kind == EventKind::Status {
                    self.gaps += u64::from(is_gap(event));
                    self.note_line(event)?;
                }
                if flag {
                    self.late += u64::from(last);
                } else if is_ahead {
                    // Its time is not believed.
                } else if kind == EventKind::Clock && self.is_tick(event.source()) {
                    // The time of a tick makes nothing late.
                } else if begins && !(kind == EventKind::Quarantine && event.ts_event().0 == 0) {
                    // A message that was refused before its time was read has none; the tape shows 0.
                    let ts = event.ts_event();
                    self.placed_max.0 = self.placed_max.0.max(ts.0);
                    self.placed_max.1 = self.placed_max.1.max(event.ts_recv().unwrap_or(ts).0);
                }
                if kind == EventKind::Quarantine {
                    let part = |field| uint(event, field).unwrap_or(0);
                    let (raw_offset, length) = (part(EventField::RawAt), part(EventField::Length));
                    let raw_end = raw_offset.checked_add(length).ok_or_else(|| {
                        format!("a quarantine event names {length} bytes at {raw_offset} of quarantine.raw; no file is so long")
                    })?;
                    self.raw_bytes = self.raw_bytes.max(raw_end);
                }
                if event.source() != 0 {
                    let (source, base) = self.source_mut(event.source())?;
                    let offset = base + u64::from(event.offset());
                    let length = || uint(event, EventField::Length).unwrap_or(0);
                    source.quarantined_tail = (kind == EventKind::Quarantine).then(|| (offset, length()));
                    source.last_offset = Some(source.last_offset.map_or(offset, |o| o.max(offset)));
                    if is_ahead && last {
                        source.ahead_offsets.push(offset);
                    }
                    let quarantined = kind == EventKind::Quarantine;
                    source.since = source.since.plus(MessageTally {
                        messages: last.into(),
                        with_events: (last && !quarantined).into(),
                        events: (!quarantined).into(),
                        quarantined: quarantined.into(),
                        ..MessageTally::default()
                    });
                }
                Ok(())
            }
        }
    }

    /// Notes a part of another tape that a merge lacks. Returns whether the event is such a note.
    #[cold]
    fn is_tape_gap(&mut self, event: &Event<'_>) -> bool {
        let gap = TapeGap::from_event(event);
        if let Some(gap) = gap {
            self.tape_gaps.add_gap(gap, event);
        }
        gap.is_some()
    }

    /// Notes a line of market data that is down, or back.
    #[cold]
    fn note_line(&mut self, event: &Event<'_>) -> Result<(), String> {
        let is_down = match event.field(EventField::State, &mut [0; 36]) {
            Some(EventValue::Text("line_down")) => true,
            Some(EventValue::Text("line_up")) => false,
            _ => return Ok(()),
        };
        let name = |wanted| {
            let (_, json) = event.unmapped_fields().find(|(name, _)| *name == wanted)?;
            serde_json::from_str::<String>(json).ok()
        };
        // A venue's own word for a state names no line.
        let (Some(channel), Some(line)) = (name("channel"), name("line")) else { return Ok(()) };
        if event.source() == 0 {
            return Ok(());
        }
        let feed = self.source_mut(event.source())?.0.feed.clone();
        let lines = self.lines_down.entry(feed).or_default();
        if is_down {
            lines.insert((channel, line));
        } else {
            lines.remove(&(channel, line));
        }
        Ok(())
    }

    /// Fails if another program wrote into the account: a run that continued from it would leave out messages that it
    /// never read.
    ///
    /// # Errors
    /// Fails at the mark that does not agree with the tape.
    pub(crate) fn refuse_mismatch(&self) -> Result<(), Error> {
        let Some(AccountMismatch { position, difference }) = self.mismatch.clone() else { return Ok(()) };
        let position = position.unwrap_or_default();
        Err(Error::Inconsistent { position, reason: format!("{difference}; use a new tape") })
    }

    /// Summarizes the account for people.
    pub fn summary(&self) -> AccountSummary {
        let mut summary = AccountSummary {
            recovered: self.recovered,
            clock_ahead: self.clock_ahead,
            gaps: self.gaps,
            sums_differ: self.sums_differ,
            lines_down: self.lines_down(),
            tape_gaps: self.tape_gaps.losses,
            ..AccountSummary::default()
        };
        for source in &self.sources {
            let feed = summary
                .by_feed
                .entry(source.feed.clone())
                .or_insert_with(|| FeedSummary { complete: true, ..FeedSummary::default() });
            let t = source.tally.plus(source.since);
            add_saturating(&mut feed.messages, t.messages);
            add_saturating(&mut feed.with_events, t.with_events);
            add_saturating(&mut feed.events, t.events);
            add_saturating(&mut feed.quarantined, t.quarantined);
            add_saturating(&mut feed.duplicates, t.duplicates);
            add_saturating(&mut feed.ignored, t.ignored);
            add_saturating(&mut feed.unresolved, t.unresolved);
            add_saturating(&mut feed.repeats, t.repeats);
            add_saturating(&mut feed.unsure, t.unsure);
            feed.entries = feed.entries.plus(t.entries);
            add_saturating(&mut feed.bytes, source.through);
            feed.complete &= source.end;
        }
        for feed in summary.by_feed.values() {
            add_saturating(&mut summary.messages, feed.messages);
            add_saturating(&mut summary.events, feed.events);
            add_saturating(&mut summary.quarantined, feed.quarantined);
            add_saturating(&mut summary.duplicates, feed.duplicates);
            add_saturating(&mut summary.ignored, feed.ignored);
            add_saturating(&mut summary.unresolved, feed.unresolved);
            add_saturating(&mut summary.repeats, feed.repeats);
            add_saturating(&mut summary.unsure, feed.unsure);
            summary.entries = summary.entries.plus(feed.entries);
        }
        for kind in EventKind::EVENTS {
            match self.by_kind[kind as usize] {
                0 => {}
                n => _ = summary.by_kind.insert(kind.name(), n),
            }
        }
        summary
    }

    fn lines_down(&self) -> Vec<String> {
        let lines =
            self.lines_down.iter().flat_map(|(feed, lines)| lines.iter().map(move |line| (feed, line)));
        lines.map(|(feed, (channel, line))| format!("line {line} of {channel}, feed {feed}")).collect()
    }

    fn define_source(&mut self, event: &Event<'_>) -> Result<(), String> {
        let id = uint(event, EventField::Index).unwrap_or(0) as u32;
        let base = uint(event, EventField::Base).unwrap_or(0);
        let first_id = uint(event, EventField::Of).unwrap_or(0) as u32;
        let (feed, file) = (text(event, EventField::Feed), text(event, EventField::File));
        let optional = |field| Some(text(event, field)).filter(|t| !t.is_empty());
        let books = event.unmapped_fields().find(|(name, _)| *name == "books");
        let books = books.and_then(|(_, json)| serde_json::from_str(json).ok());
        let format_id = FormatId {
            format: text(event, EventField::Format),
            mapping: optional(EventField::Mapping),
            books,
        };
        self.next_source = self.next_source.max(id.saturating_add(1));
        if first_id > 0 || base > 0 {
            // Tapes of before `of` name the source by feed and file only.
            let base_source = match first_id {
                0 => self.sources.iter_mut().rev().find(|s| s.feed == feed && s.file == file),
                definition_id => self.sources.iter_mut().find(|s| s.id == definition_id),
            };
            let first = base_source.ok_or("a further stretch of a source that is not defined")?;
            first.format_ids.insert(id, format_id.clone());
            if event.unmapped_fields().any(|(name, _)| name == RETRIED) {
                first.retried.insert(id, (base >> 32) as u32);
                return Ok(());
            }
            first.further.insert(id, (base >> 32) as u32);
            if let Some(head) = head_of(event) {
                first.head_hashes.insert(id, blake3::hash(&head));
                return Ok(());
            }
            if let Some((superseded, from)) = growth_of(event) {
                first.continue_account(superseded, from);
                let quarantined = &mut self.by_kind[EventKind::Quarantine as usize];
                *quarantined = quarantined.saturating_sub(u64::from(superseded));
                first.size = uint(event, EventField::Size).or(first.size);
                first.hash = optional(EventField::Hash).or(first.hash.take());
            }
            if first.format_id != format_id {
                (first.format_id, first.mapping_start_id) = (format_id, id);
            }
            return Ok(());
        }
        // A handler that has seen nothing reads it, and watches the lines from the start.
        self.lines_down.remove(&feed);
        self.sources.push(SourceAccount {
            id,
            mapping_start_id: id,
            feed,
            file,
            size: uint(event, EventField::Size),
            hash: optional(EventField::Hash),
            format_ids: BTreeMap::from([(id, format_id.clone())]),
            format_id,
            ..SourceAccount::default()
        });
        Ok(())
    }

    /// Returns whether a retry made this late event from a message in quarantine. Its offset is then before events of
    /// the source that the tape already has; a merge only moves forward.
    fn is_recovered(&mut self, event: &Event<'_>) -> Result<bool, String> {
        // A retry knows the source of what it recovers.
        if event.source() == 0 {
            return Ok(false);
        }
        let (source, base) = self.source_mut(event.source())?;
        let offset = base + u64::from(event.offset());
        Ok(offset < source.through || source.last_offset.is_some_and(|last| offset <= last))
    }

    fn add_progress(&mut self, event: &Event<'_>) -> Result<(), String> {
        let n = |field| uint(event, field).unwrap_or(0);
        let mut tally = MessageTally {
            messages: n(EventField::Messages),
            events: n(EventField::Events),
            quarantined: n(EventField::Quarantined),
            duplicates: n(EventField::Duplicates),
            ignored: n(EventField::Ignored),
            unresolved: n(EventField::Unresolved),
            repeats: n(EventField::Repeats),
            unsure: n(EventField::Unsure),
            with_events: 0,
            entries: marked_entries(event),
        };
        if !tally.entries.is_balanced() {
            let EntryTally { total, with_events, quarantined, ignored } = tally.entries;
            return Err(format!(
                "the account of the entries of a source does not close: {total} entries, {with_events} with events, \
                 {quarantined} in quarantine and {ignored} ignored"
            ));
        }
        let without_events =
            tally.quarantined.checked_add(tally.duplicates).and_then(|n| n.checked_add(tally.ignored));
        tally.with_events = without_events
            .and_then(|excluded_count| tally.messages.checked_sub(excluded_count))
            .ok_or("the account of a source does not close")?;
        let hash = Some(text(event, EventField::Hash)).filter(|t| !t.is_empty());
        let source_has_ended = event.field(EventField::End, &mut [0; 36]) == Some(EventValue::Bool(true));
        let is_complete = self.partial_from.is_none();
        let (source, _) = self.source_mut(event.source())?;
        let tape_tally = source.tally.plus(source.since);
        let parts = |t: &MessageTally| [t.with_events, t.events, t.quarantined];
        // Bytes read again under another mapping are counted again, while their first events stay on the tape.
        let disagrees =
            is_complete && source.mapping_start_id == source.id && parts(&tape_tally) != parts(&tally);
        let mismatch = disagrees.then(|| {
            let ([with_events, events, quarantined], [has_with, has_events, has_quarantined]) =
                (parts(&tally), parts(&tape_tally));
            format!(
                "the mark says {with_events} messages with events, {events} events and {quarantined} in quarantine of {}/{}, \
                 the tape has {has_with}, {has_events} and {has_quarantined} before it: unitape did not write one of the two",
                source.feed, source.file
            )
        });
        source.tally = tally;
        source.through = n(EventField::Through);
        if let Some(hash) = hash {
            source.marked_content = Some((source.through, hash));
        }
        source.end = source_has_ended;
        source.last_offset = None;
        source.ahead_offsets.clear();
        source.since = MessageTally::default();
        let name = source.feed.clone();
        if let Some(difference) = mismatch {
            self.mismatch.get_or_insert(AccountMismatch { position: None, difference });
        }
        let feed = self.feeds.entry(name).or_default();
        let ts = event.ts_event().0;
        feed.running_max = Some(feed.running_max.map_or(ts, |m| m.max(ts)));
        feed.sessions = FeedSessions::default();
        for (session, numbers_text) in event.unmapped_fields() {
            // Older marks have the greatest number alone.
            let set = match numbers_text.strip_prefix('"').and_then(|s| s.strip_suffix('"')) {
                Some(text) => SequenceNumberSet::parse(text),
                None => numbers_text.parse().ok().map(SequenceNumberSet::from_greatest),
            };
            let set = set.ok_or_else(|| {
                format!("a mark says {numbers_text} of session {session:?}: these are no sequence numbers")
            })?;
            feed.sessions.insert_session(session.as_bytes().to_vec(), set);
        }
        Ok(())
    }

    /// Finds the source that a definition id belongs to, and the source offset at which the definition's offsets
    /// begin.
    pub fn source_of(&self, id: u32) -> Option<(&SourceAccount, u64)> {
        // Few sources, and the one in use is the last one mostly.
        self.sources.iter().rev().find_map(|s| Some((s, u64::from(s.extent_of(id)?) << 32)))
    }

    /// Returns whether the source with this id has the ticks of a run's clock.
    fn is_tick(&self, id: u32) -> bool {
        let source = self.sources.iter().rev().find(|s| s.extent_of(id).is_some());
        source.is_some_and(|s| s.format_id.format == crate::formats::clock::NAME)
    }

    fn source_mut(&mut self, id: u32) -> Result<(&mut SourceAccount, u64), String> {
        let extent_and_source = self.sources.iter_mut().rev().find_map(|s| Some((s.extent_of(id)?, s)));
        let (extent, source) = extent_and_source.ok_or_else(|| format!("source {id} is not defined"))?;
        Ok((source, u64::from(extent) << 32))
    }
}

/// Adds a number and saturates: a damaged tape may state any number.
fn add_saturating(sum: &mut u64, n: u64) {
    *sum = sum.saturating_add(n);
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Reads the first bytes of the source out of a further definition that has them.
pub(crate) fn head_of(event: &Event<'_>) -> Option<Vec<u8>> {
    event.unmapped_fields().find(|(name, _)| *name == HEAD).map(|(_, json)| bytes_of_json(json))
}

/// Reads a further definition of a file that has grown: whether a message is superseded, and the offset at which
/// reading continues.
pub fn growth_of(event: &Event<'_>) -> Option<(bool, u64)> {
    event.unmapped_fields().find_map(|(name, value)| match name {
        GROWN => Some((false, value.parse().ok()?)),
        SUPERSEDED => Some((true, value.parse().ok()?)),
        _ => None,
    })
}

/// Returns whether the event reports lost data: packets, or messages outside the packets reported lost, that arrived
/// on no line and that the venue does not send again. A venue's own word for a state has no range.
fn is_gap(event: &Event<'_>) -> bool {
    let has_field = |wanted| event.unmapped_fields().any(|(name, _)| name == wanted);
    match event.field(EventField::State, &mut [0; 36]) {
        Some(EventValue::Text("lost")) => has_field("channel") && has_field("from") && !has_field(SENT_AGAIN),
        Some(EventValue::Text("missing")) => has_field("product") && has_field("from") && has_field(ALONE),
        _ => false,
    }
}

/// Returns the account of entries in a mark of progress.
pub fn marked_entries(event: &Event<'_>) -> EntryTally {
    let number = |field| uint(event, field).unwrap_or(0);
    EntryTally {
        total: number(EventField::Entries),
        with_events: number(EventField::EntriesUsed),
        quarantined: number(EventField::EntriesQuarantined),
        ignored: number(EventField::EntriesIgnored),
    }
}

/// Reads an unsigned integer field; `None` if the event lacks it.
pub fn uint(event: &Event<'_>, field: EventField) -> Option<u64> {
    match event.field(field, &mut [0; 36]) {
        Some(EventValue::UInt(v)) => Some(v),
        _ => None,
    }
}

/// Reads a text field; empty if the event lacks it.
pub fn text(event: &Event<'_>, field: EventField) -> String {
    match event.field(field, &mut [0; 36]) {
        Some(EventValue::Text(t)) => t.to_owned(),
        _ => String::new(),
    }
}
