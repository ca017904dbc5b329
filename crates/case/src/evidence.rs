//! The evidence of an alert, from the tape that was watched: the events that it names, and the books before and after the event
//! that completed it.

use crate::Error;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use unitape_book::{Basis, BookOptions, PriceLevel, TapeBooks};
use unitape_codec::events::{EventLineDetail, write_event};
use unitape_feed::archive::EventOrigin;
use unitape_model::{
    DefinitionTable, Event, EventField, EventValue, LostNameCounts, NameKind, Position, Side, UnixNanos,
};
use unitape_run::address::{TapeRangeBound, TapeStopPoint};
use unitape_run::follow::{FollowOutcome, TapeFollower};
use unitape_run::replay::{BookReplay, PointPresence};
use unitape_tape::{ReadOptions, Reader, StartPosition, TapeId};
use unitape_watch::Alert;

/// A watched tape, open for evidence.
pub struct EvidenceTape {
    tape_dir: PathBuf,
    read_options: ReadOptions,
    follower: TapeFollower,
    reader: Reader,
    definitions: DefinitionTable,
    /// Definitions before this position are known.
    learned: Position,
    books: Option<BookReplay>,
}

/// The evidence of an alert.
#[derive(Clone, Debug, Default)]
pub struct AlertEvidence {
    /// The events that it names, in their order.
    pub events: Vec<EvidenceLine>,
    /// The books of its instrument before the event that completed it; none if the tape does not have the point, or the alert
    /// names no instrument.
    pub before: Vec<BookDepthRecord>,
    /// The books after it.
    pub after: Vec<BookDepthRecord>,
    /// Why there are no books.
    pub without_books: Option<String>,
}

/// An event that an alert names.
#[derive(Clone, Debug)]
pub struct EvidenceLine {
    /// Its number on the tape.
    pub seq: u64,
    /// Its position.
    pub position: Option<Position>,
    /// The event, or why it cannot be shown.
    pub event: Result<EventLine, String>,
}

/// An event as a line.
#[derive(Clone, Debug)]
pub struct EventLine {
    /// JSON.
    pub json: String,
    /// Its time.
    pub ts: i64,
    /// The place of its message in its source; none if the tape names no source.
    pub origin: Option<EventOrigin>,
}

/// A book in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookDepthRecord {
    /// The venue.
    pub venue: String,
    /// The instrument.
    pub instr: String,
    /// What the book was made of: orders, levels or best prices.
    pub basis: &'static str,
    /// The bids, the best first.
    pub bids: Vec<PriceLevel>,
    /// The asks, the best first.
    pub asks: Vec<PriceLevel>,
}

impl EvidenceTape {
    /// Opens the tape in `dir`.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn open(dir: &Path, read: ReadOptions) -> Result<Self, Error> {
        let (follower, names) = TapeFollower::open(dir, read)?;
        let reader = Reader::open_with(dir, StartPosition::Oldest, read)?;
        let learned = follower.reader().position();
        Ok(Self {
            tape_dir: dir.to_owned(),
            read_options: read,
            follower,
            reader,
            definitions: names,
            learned,
            books: None,
        })
    }

    /// Returns the id of the tape.
    pub fn id(&self) -> TapeId {
        self.reader.id()
    }

    /// Returns the directory of the tape.
    pub fn dir(&self) -> &Path {
        &self.tape_dir
    }

    /// Returns a reader of the tape, which knows the damage that it passed over.
    pub fn reader(&self) -> &Reader {
        self.follower.reader()
    }

    /// Returns the names that are lost.
    pub fn lost_names(&self) -> LostNameCounts {
        self.definitions.lost_names()
    }

    /// Returns the evidence of an alert, with books of `depth` levels.
    ///
    /// # Errors
    /// Fails if the tape is damaged or cannot be read. Events that retention has removed are named as such.
    pub fn evidence(&mut self, alert: &Alert, depth: usize) -> Result<AlertEvidence, Error> {
        let evidence_positions = alert.evidence();
        let last_position = evidence_positions.iter().filter_map(|event| event.position).max();
        self.learn_to(last_position.unwrap_or_default())?;
        let mut evidence = AlertEvidence::default();
        let mut listing = ListingName {
            venue: alert.key_value("venue").map(str::to_owned),
            instr: alert.key_value("instr").map(str::to_owned),
        };
        for event in evidence_positions {
            let is_trigger = event.seq == alert.trigger_seq;
            let line = match event.position {
                None => Err("the alert does not say where it is on the tape".to_owned()),
                Some(position) => {
                    let listing = is_trigger.then_some((alert.ts, &mut listing));
                    self.event_at(position, event.seq, listing)?
                }
            };
            let line = match line {
                // An alert at the end of a time, such as a bucket of volume, completes with the first event after it.
                Ok(line) if is_trigger && line.ts < alert.ts.0 => {
                    Err("another event is there: this is another tape of that id, or it was cut".to_owned())
                }
                other => other,
            };
            evidence.events.push(EvidenceLine { seq: event.seq, position: event.position, event: line });
        }
        self.add_books(alert, &listing, depth, &mut evidence)?;
        Ok(evidence)
    }

    /// Completes the origins of evidence events with the hashes of their files. A file that was found while a feed ran has its
    /// hash in the next mark of progress after the event.
    ///
    /// # Errors
    /// Fails if the tape is damaged or cannot be read.
    pub fn learn_hashes(&mut self, evidence: &mut AlertEvidence) -> Result<(), Error> {
        for line in &mut evidence.events {
            if let (Some(position), Ok(EventLine { origin: Some(origin), .. })) =
                (line.position, &mut line.event)
                && !origin.has_hash()
            {
                self.reader.seek_frame(position).map(drop)?;
                while let Some(frame) = self.reader.next()? {
                    if Event::new(frame.bytes).is_some_and(|event| origin.learn_progress(&event)) {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Learns the names that are defined before `position`.
    fn learn_to(&mut self, position: Position) -> Result<(), Error> {
        if position < self.learned {
            return Ok(());
        }
        match self.follower.seek(TapeRangeBound::Position(position), &mut self.definitions) {
            // The names are those of the log, and the events are named as removed.
            Ok(()) | Err(unitape_tape::Error::Retained { .. }) => {}
            // The tape ends before it; the events are named as missing.
            Err(unitape_tape::Error::NoFrame(_)) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
        loop {
            match self.follower.next_step()? {
                FollowOutcome::Frame { frame, .. } => {
                    let frame_position = frame.position;
                    if let Err(flaw) = self.definitions.admit_frame(frame.bytes) {
                        self.follower.refuse_frame(frame_position, &flaw)?;
                    }
                    if frame_position >= position {
                        break;
                    }
                }
                FollowOutcome::AtEnd => break,
                FollowOutcome::Rewound { from, to } => {
                    return Err(unitape_tape::Error::Rewound { from, to }.into());
                }
            }
        }
        self.learned = position;
        Ok(())
    }

    /// Returns the event at a position as a line, or why there is none. Completes the listing of an alert at this time from
    /// an event at this time: a later one only showed that the time was over.
    fn event_at(
        &mut self,
        position: Position,
        seq: u64,
        listing: Option<(UnixNanos, &mut ListingName)>,
    ) -> Result<Result<EventLine, String>, Error> {
        let frame = match self.reader.frame_at(position) {
            Ok(frame) => frame,
            Err(unitape_tape::Error::Retained { oldest, .. }) => {
                return Ok(Err(format!(
                    "retention has removed it: the tape now begins at position {oldest}"
                )));
            }
            Err(unitape_tape::Error::NoFrame(_)) => {
                return Ok(Err(
                    "the tape has no event there: it was cut, or is another tape of that id".to_owned()
                ));
            }
            Err(e) => return Err(e.into()),
        };
        let event = match self.definitions.admit_frame(frame.bytes) {
            Ok(Some(event)) => event,
            Ok(None) => return Ok(Err("the tape has a message of a user there".to_owned())),
            Err(flaw) => return Ok(Err(format!("the event is damaged: {flaw}"))),
        };
        let names = &self.definitions;
        if let Some((ts, listing)) = listing
            && ts == event.ts_event()
        {
            let name = |field| match event.field(field, &mut [0; 36]) {
                Some(EventValue::Sym(dict, id)) => names.dictionary().name(dict, id).map(str::to_owned),
                _ => None,
            };
            listing.venue = listing.venue.take().or_else(|| name(EventField::Venue));
            listing.instr = listing.instr.take().or_else(|| name(EventField::Instr));
        }
        let mut line = Vec::new();
        write_event(&mut line, &event, seq, names.dictionary(), names, EventLineDetail::Plain);
        let json = String::from_utf8_lossy(&line).into_owned();
        let origin = EventOrigin::of(&event, &self.definitions);
        Ok(Ok(EventLine { json, ts: event.ts_event().0, origin }))
    }

    fn add_books(
        &mut self,
        alert: &Alert,
        listing: &ListingName,
        depth: usize,
        evidence: &mut AlertEvidence,
    ) -> Result<(), Error> {
        let Some(instr) = &listing.instr else {
            evidence.without_books = Some("neither the alert nor its event names an instrument".to_owned());
            return Ok(());
        };
        let trigger = evidence.events.iter().find(|line| line.seq == alert.trigger_seq);
        if let Some(Err(reason)) = trigger.map(|line| &line.event) {
            evidence.without_books = Some(format!("event {}: {reason}", alert.trigger_seq));
            return Ok(());
        }
        let mut books = match self.books.take() {
            Some(books) => books,
            None => BookReplay::open(&self.tape_dir, self.read_options, BookOptions::default())?,
        };
        let stop_before_trigger = TapeStopPoint::Ordinal(alert.trigger_seq.saturating_sub(1));
        let after = TapeStopPoint::Ordinal(alert.trigger_seq);
        for (point, into) in [(stop_before_trigger, &mut evidence.before), (after, &mut evidence.after)] {
            if books.seek(point)? == PointPresence::Removed {
                evidence.without_books = Some("retention has removed what the books rest on".to_owned());
            }
            *into = depth_of(books.books(), instr, listing.venue.as_deref(), depth);
        }
        if evidence.before.is_empty() && evidence.after.is_empty() && evidence.without_books.is_none() {
            evidence.without_books = Some(format!("there is no book of {instr} at this point"));
        }
        self.books = Some(books);
        Ok(())
    }
}

impl std::fmt::Debug for EvidenceTape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EvidenceTape").field("dir", &self.tape_dir).finish_non_exhaustive()
    }
}

/// The listing whose book is shown; without a venue all listings of the instrument are.
#[derive(Debug)]
struct ListingName {
    venue: Option<String>,
    instr: Option<String>,
}

/// Returns the books of an instrument: of each listing the one that its best price comes from.
fn depth_of(tape: &TapeBooks, instr: &str, venue: Option<&str>, depth: usize) -> Vec<BookDepthRecord> {
    let name = |dict, id: u32| tape.names.name(dict, id).unwrap_or_default().to_owned();
    let mut records = BTreeMap::new();
    for id in tape.books.listings() {
        let listing = tape.books.listing(id);
        let of_venue = name(NameKind::Venue, listing.venue().into());
        let is_wanted = name(NameKind::Instrument, listing.instrument().0) == instr
            && venue.is_none_or(|venue| venue == of_venue);
        let Some(basis) = listing.basis().or_else(|| listing.books().map(|book| book.basis()).next()) else {
            continue;
        };
        if !is_wanted {
            continue;
        }
        // Best prices say less than levels or orders, if there are these as well.
        let book =
            listing.books().find(|book| book.basis() != Basis::Bbo).unwrap_or_else(|| listing.book(basis));
        let levels = |side| book.levels(side).take(depth).collect();
        let record = BookDepthRecord {
            venue: of_venue.clone(),
            instr: instr.to_owned(),
            basis: book.basis().name(),
            bids: levels(Side::Buy),
            asks: levels(Side::Sell),
        };
        records.insert(of_venue, record);
    }
    records.into_values().collect()
}
