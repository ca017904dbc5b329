//! What stands on a tape: names, sources, and the account of every message, read from the tape alone.

use crate::block::Tally;
use crate::error::Error;
use crate::feed_state::{Sort, SourceState};
use crate::gone;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use unitape_model::{Dict, Dictionary, Event, Field, Kind, Message, Value, flags, frames};

/// The account of a tape.
#[derive(Clone, Debug)]
pub struct Account {
    /// All names.
    pub dictionary: Dictionary,
    /// Sources in the order of their definitions; further stretches of 4 GiB are folded into their first.
    pub sources: Vec<SourceAccount>,
    /// Events by number of their kind.
    pub by_kind: [u64; 64],
    /// Greatest event time and greatest sequence of each session, by feed, at its last mark of progress.
    pub feeds: BTreeMap<String, FeedAccount>,
    /// Bytes of the raw log that quarantine events refer to.
    pub raw_bytes: u64,
    /// Messages recovered from quarantine by a later retry.
    pub recovered: u64,
    /// Id that the next source definition gets.
    pub next_source: u32,
    /// Greatest time of a message that is not late, by event time and by receive time where there is one.
    pub placed_max: (i64, i64),
    /// Messages that a merge appended behind their time order.
    pub late: u64,
    /// The frames in hand are those of a unit that has begun before.
    pub(crate) within: Option<bool>,
    /// The oldest position, where what was before it is gone and nobody kept an account of it.
    pub(crate) partial_from: Option<u64>,
}

/// A source as the tape tells it.
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
    pub sort: Sort,
    /// The account at its last mark of progress.
    pub tally: Tally,
    /// Messages behind that mark that are on the tape; what became nothing is not among them.
    pub since: Tally,
    /// Offset of that mark.
    pub through: u64,
    /// Whether it has been consumed to its end.
    pub end: bool,
    /// Where the last message behind that mark starts that is on the tape.
    pub last_offset: Option<u64>,
    /// Ids of its further definitions, each with the number of its 4 GiB: more of it, or another mapping.
    pub further: BTreeMap<u32, u32>,
    /// Id of the definition that its present mapping began with.
    pub sort_id: u32,
    /// Units of it, bookkeeping included.
    pub units: u64,
}

impl SourceAccount {
    /// The number of the 4 GiB that events with this id of a definition lie in; `None` for another source's.
    pub fn extent_of(&self, id: u32) -> Option<u32> {
        if id == self.id { Some(0) } else { self.further.get(&id).copied() }
    }
}

/// What a feed's order depends on.
#[derive(Clone, Debug, Default)]
pub struct FeedAccount {
    /// Greatest event time.
    pub running_max: Option<i64>,
    /// Greatest sequence by session.
    pub sessions: BTreeMap<Vec<u8>, u64>,
}

/// The account as the command line prints it.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)]
pub struct Summary {
    pub messages: u64,
    pub events: u64,
    pub quarantined: u64,
    pub duplicates: u64,
    pub ignored: u64,
    /// Messages that name an instrument that the reference data does not have, up to the last mark of progress of each
    /// source; printed where there are any.
    #[serde(skip_serializing_if = "is_zero")]
    pub unresolved: u64,
    pub by_feed: BTreeMap<String, FeedSummary>,
    pub by_kind: BTreeMap<&'static str, u64>,
}

/// One feed of a [`Summary`].
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
    pub bytes: u64,
    pub complete: bool,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            dictionary: Dictionary::default(),
            sources: Vec::new(),
            by_kind: [0; 64],
            feeds: BTreeMap::new(),
            raw_bytes: 0,
            recovered: 0,
            next_source: 1,
            placed_max: (i64::MIN, i64::MIN),
            late: 0,
            within: None,
            partial_from: None,
        }
    }
}

impl Account {
    /// Reads the account of the tape in `dir`.
    ///
    /// # Errors
    /// When the tape cannot be read or its definitions do not fit together.
    pub fn of(dir: &Path) -> Result<Self, Error> {
        let mut tries = 0;
        loop {
            match Self::read(dir) {
                // Retention took what was still to be read; the account of that is kept.
                Err(Error::Tape(unitape_tape::Error::Retained { .. })) if tries < 100 => tries += 1,
                other => return other,
            }
        }
    }

    fn read(dir: &Path) -> Result<Self, Error> {
        let (mut account, mut reader) = gone::begin(dir)?;
        while let Some(run) = reader.next_run(1 << 20)? {
            account.add_run(run.position.0, run.bytes)?;
        }
        Ok(account)
    }

    /// Takes a run of frames that stands at `position` into account.
    pub(crate) fn add_run(&mut self, position: u64, run: &[u8]) -> Result<(), Error> {
        for (at, _, frame) in frames(run) {
            self.add(frame).map_err(|what| Error::Inconsistent { position: position + at as u64, what })?;
        }
        Ok(())
    }

    /// Takes one frame into account.
    ///
    /// # Errors
    /// What about it does not fit what came before.
    pub fn add(&mut self, frame: &[u8]) -> Result<(), String> {
        let Some(event) = Event::new(frame) else {
            // A user's message is of no source.
            return Message::of(frame).map(drop).ok_or_else(|| "frame of an unknown kind".to_owned());
        };
        self.take(&event)?;
        if event.header().is_last() {
            let id = match event.kind() {
                Kind::Source => uint(&event, Field::Index).unwrap_or(0) as u32,
                _ => event.source(),
            };
            if id != 0 {
                self.source_mut(id)?.0.units += 1;
            }
        }
        Ok(())
    }

    fn take(&mut self, event: &Event<'_>) -> Result<(), String> {
        match event.kind() {
            Kind::Define => self.define(event),
            Kind::Source => self.define_source(event),
            Kind::Progress => self.progress(event),
            kind => {
                self.by_kind[usize::from(kind as u8 & 63)] += 1;
                let (flag, last) = (event.header().flags() & flags::LATE != 0, event.header().is_last());
                let begins = self.within.is_none();
                let recovered = match self.within {
                    Some(recovered) => recovered,
                    None => flag && self.is_recovered(event)?,
                };
                self.within = Some(recovered).filter(|_| !last);
                if recovered {
                    self.recovered += u64::from(last);
                    return Ok(());
                }
                if flag {
                    self.late += u64::from(last);
                } else if begins && !(kind == Kind::Quarantine && event.ts_event().0 == 0) {
                    // What was refused before anything told the time has none, and is 0 on the tape.
                    let ts = event.ts_event();
                    self.placed_max.0 = self.placed_max.0.max(ts.0);
                    self.placed_max.1 = self.placed_max.1.max(event.ts_recv().unwrap_or(ts).0);
                }
                if kind == Kind::Quarantine {
                    let part = |field| uint(event, field).unwrap_or(0);
                    let end = part(Field::RawAt).checked_add(part(Field::Length));
                    self.raw_bytes = self.raw_bytes.max(end.ok_or("a place no raw log can have")?);
                }
                if event.source() != 0 {
                    let (source, base) = self.source_mut(event.source())?;
                    let offset = base + u64::from(event.offset());
                    source.last_offset = Some(source.last_offset.map_or(offset, |o| o.max(offset)));
                    let quarantined = kind == Kind::Quarantine;
                    source.since = source.since.plus(Tally {
                        messages: last.into(),
                        with_events: (last && !quarantined).into(),
                        events: (!quarantined).into(),
                        quarantined: quarantined.into(),
                        ..Tally::default()
                    });
                }
                Ok(())
            }
        }
    }

    /// Puts what a run has counted in place of what the tape said when it began.
    pub fn settle(&mut self, state: &SourceState) {
        if state.first_id == 0 {
            return;
        }
        let index = self.sources.iter().position(|s| s.id == state.first_id);
        let index = index.unwrap_or_else(|| {
            let (id, feed, file) = (state.first_id, state.feed.clone(), state.file.clone());
            self.sources.push(SourceAccount { id, feed, file, ..SourceAccount::default() });
            self.sources.len() - 1
        });
        {
            let source = &mut self.sources[index];
            source.tally = state.tally;
            source.since = Tally::default();
            source.through = state.through;
            source.end = state.end;
        }
    }

    /// The account for people.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        for source in &self.sources {
            let feed = summary
                .by_feed
                .entry(source.feed.clone())
                .or_insert_with(|| FeedSummary { complete: true, ..FeedSummary::default() });
            let t = source.tally.plus(source.since);
            feed.messages += t.messages;
            feed.with_events += t.with_events;
            feed.events += t.events;
            feed.quarantined += t.quarantined;
            feed.duplicates += t.duplicates;
            feed.ignored += t.ignored;
            feed.unresolved += t.unresolved;
            feed.bytes += source.through;
            feed.complete &= source.end;
        }
        for feed in summary.by_feed.values() {
            summary.messages += feed.messages;
            summary.events += feed.events;
            summary.quarantined += feed.quarantined;
            summary.duplicates += feed.duplicates;
            summary.ignored += feed.ignored;
            summary.unresolved += feed.unresolved;
        }
        for kind in Kind::EVENTS {
            match self.by_kind[kind as usize] {
                0 => {}
                n => _ = summary.by_kind.insert(kind.name(), n),
            }
        }
        summary
    }

    fn define(&mut self, event: &Event<'_>) -> Result<(), String> {
        let mut scratch = [0; 36];
        let Some(Value::Text(name)) = event.field(Field::Name, &mut scratch) else {
            return Err("a definition without a name".to_owned());
        };
        let dict = uint(event, Field::Dict).and_then(|d| Dict::from_u8(d as u8));
        match (dict, uint(event, Field::Index)) {
            (Some(dict), Some(id)) if self.dictionary.define(dict, id as u32, name.as_bytes()) => Ok(()),
            _ => Err(format!("the definition of \"{name}\" does not follow the ones before it")),
        }
    }

    fn define_source(&mut self, event: &Event<'_>) -> Result<(), String> {
        let id = uint(event, Field::Index).unwrap_or(0) as u32;
        let base = uint(event, Field::Base).unwrap_or(0);
        let of = uint(event, Field::Of).unwrap_or(0) as u32;
        let (feed, file) = (text(event, Field::Feed), text(event, Field::File));
        let optional = |field| Some(text(event, field)).filter(|t| !t.is_empty());
        let sort = Sort { format: text(event, Field::Format), mapping: optional(Field::Mapping) };
        self.next_source = self.next_source.max(id.saturating_add(1));
        if of > 0 || base > 0 {
            // Tapes of before `of` name the source by feed and file only.
            let first = match of {
                0 => self.sources.iter_mut().rev().find(|s| s.feed == feed && s.file == file),
                of => self.sources.iter_mut().find(|s| s.id == of),
            };
            let first = first.ok_or("a further stretch of a source that is not defined")?;
            first.further.insert(id, (base >> 32) as u32);
            if first.sort != sort {
                (first.sort, first.sort_id) = (sort, id);
            }
            return Ok(());
        }
        self.sources.push(SourceAccount {
            id,
            sort_id: id,
            feed,
            file,
            size: uint(event, Field::Size),
            hash: optional(Field::Hash),
            sort,
            ..SourceAccount::default()
        });
        Ok(())
    }

    /// Whether a late event is one that a retry made of a message in quarantine: its place in the source lies
    /// before what the tape has of it, where a merge only ever goes on.
    fn is_recovered(&mut self, event: &Event<'_>) -> Result<bool, String> {
        if event.source() == 0 {
            return Ok(true);
        }
        let (source, base) = self.source_mut(event.source())?;
        let offset = base + u64::from(event.offset());
        Ok(offset < source.through || source.last_offset.is_some_and(|last| offset <= last))
    }

    fn progress(&mut self, event: &Event<'_>) -> Result<(), String> {
        let n = |field| uint(event, field).unwrap_or(0);
        let mut tally = Tally {
            messages: n(Field::Messages),
            events: n(Field::Events),
            quarantined: n(Field::Quarantined),
            duplicates: n(Field::Duplicates),
            ignored: n(Field::Ignored),
            unresolved: n(Field::Unresolved),
            with_events: 0,
        };
        tally.with_events = tally
            .messages
            .checked_sub(tally.quarantined + tally.duplicates + tally.ignored)
            .ok_or("the account of a source does not close")?;
        let ended = event.field(Field::End, &mut [0; 36]) == Some(Value::Bool(true));
        let (source, _) = self.source_mut(event.source())?;
        source.tally = tally;
        source.through = n(Field::Through);
        source.end = ended;
        source.last_offset = None;
        source.since = Tally::default();
        let name = source.feed.clone();
        let feed = self.feeds.entry(name).or_default();
        let ts = event.ts_event().0;
        feed.running_max = Some(feed.running_max.map_or(ts, |m| m.max(ts)));
        feed.sessions = event
            .unmapped()
            .filter_map(|(session, max)| Some((session.as_bytes().to_vec(), max.parse().ok()?)))
            .collect();
        Ok(())
    }

    /// The source that an id of a definition belongs to, and where in it the definition's offsets begin.
    pub fn source_of(&self, id: u32) -> Option<(&SourceAccount, u64)> {
        // Few sources, and the one in use is the last one mostly.
        self.sources.iter().rev().find_map(|s| Some((s, u64::from(s.extent_of(id)?) << 32)))
    }

    fn source_mut(&mut self, id: u32) -> Result<(&mut SourceAccount, u64), String> {
        let found = self.sources.iter_mut().rev().find_map(|s| Some((s.extent_of(id)?, s)));
        let (extent, source) = found.ok_or_else(|| format!("source {id} is not defined"))?;
        Ok((source, u64::from(extent) << 32))
    }
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// An unsigned integer field.
pub fn uint(event: &Event<'_>, field: Field) -> Option<u64> {
    match event.field(field, &mut [0; 36]) {
        Some(Value::UInt(v)) => Some(v),
        _ => None,
    }
}

/// A text field; empty when it is not there.
pub fn text(event: &Event<'_>, field: Field) -> String {
    match event.field(field, &mut [0; 36]) {
        Some(Value::Text(t)) => t.to_owned(),
        _ => String::new(),
    }
}
