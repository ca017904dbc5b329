//! The records of an alert tape: its alerts, and the notes of the watch about its source, each with its number.
//!
//! ```text
//!  alert tape   define  alert 1  define  alert 2  blind 3  alert 4        number: events up to it, as `tape cat` counts them
//! ```

use crate::Error;
use std::path::Path;
use unitape_model::{DefinitionTable, Dictionary};
use unitape_model::{Event, EventField, EventKind, EventValue, LostNameCounts, UnixNanos};
use unitape_query::address::TapeRangeBound;
use unitape_query::follow::{FollowOutcome, TapeFollower};
use unitape_tape::{ReadOptions, Reader};
use unitape_watch::RecordedAlert;

/// A reader of an alert tape, from its oldest record on.
#[derive(Debug)]
pub struct AlertReader {
    follower: TapeFollower,
    definitions: DefinitionTable,
}

/// A record of an alert tape.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertTapeRecord {
    /// Its number on the alert tape, from 1.
    pub number: u64,
    /// What it records.
    pub content: AlertTapeContent,
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum AlertTapeContent {
    /// An alert.
    Alert(RecordedAlert),
    /// A note of the watch about its source.
    Note(NoteRecord),
}

/// A note that the watch has not seen a part of its source, or that the source has lost events behind alerts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteRecord {
    /// The time of the event at which it was noted.
    pub ts: UnixNanos,
    /// The action: `blind` or `source_cut`.
    pub action: String,
    /// The reason.
    pub reason: String,
    /// The part, as JSON.
    pub detail: String,
}

impl AlertReader {
    /// Opens the tape in `dir`.
    ///
    /// # Errors
    /// Fails if there is no tape, or if it cannot be read.
    pub fn open(dir: &Path, read: ReadOptions) -> Result<Self, Error> {
        let (follower, names) = TapeFollower::open(dir, read)?;
        Ok(Self { follower, definitions: names })
    }

    /// Returns the next record, or `None` at the end of the tape. Passes over other events.
    ///
    /// # Errors
    /// Fails if the tape is damaged or cannot be read.
    pub fn next_record(&mut self) -> Result<Option<AlertTapeRecord>, Error> {
        loop {
            let (ordinal, frame) = match self.follower.next_step()? {
                FollowOutcome::Frame { ordinal, frame } => (ordinal, frame),
                FollowOutcome::AtEnd => return Ok(None),
                FollowOutcome::Rewound { from, to } => {
                    return Err(unitape_tape::Error::Rewound { from, to }.into());
                }
            };
            let position = frame.position;
            match self.definitions.admit_frame(frame.bytes) {
                Ok(event) => {
                    let names = self.definitions.dictionary();
                    if let Some(content) = event.and_then(|event| AlertTapeContent::read_event(&event, names))
                    {
                        return Ok(Some(AlertTapeRecord { number: ordinal + 1, content }));
                    }
                }
                Err(flaw) => self.follower.refuse_frame(position, &flaw)?,
            }
        }
    }

    /// Returns the record with this number, or the next record after it if another event has the number. Later calls of
    /// [`AlertReader::next_record`] go on behind it.
    ///
    /// # Errors
    /// Fails if retention has removed the record, or if the tape is damaged or cannot be read.
    pub fn record_from(&mut self, number: u64) -> Result<Option<AlertTapeRecord>, Error> {
        self.follower.seek(TapeRangeBound::Ordinal(number), &mut self.definitions)?;
        loop {
            match self.next_record()? {
                // The search may stop at an earlier frame.
                Some(record) if record.number < number => {}
                record => return Ok(record),
            }
        }
    }

    /// Returns the reader of the tape, which knows the damage that it passed over.
    pub fn reader(&self) -> &Reader {
        self.follower.reader()
    }

    /// Returns the names that are lost.
    pub fn lost_names(&self) -> LostNameCounts {
        self.definitions.lost_names()
    }
}

impl std::fmt::Display for NoteRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { reason, detail, .. } = self;
        match &*self.action {
            BLIND => {
                write!(f, "the watch was blind ({reason}) for the positions {detail}: alerts may be missing")
            }
            _ => {
                write!(f, "{reason}, at {detail}: the tape has lost the events of alerts before this record")
            }
        }
    }
}

impl AlertTapeContent {
    fn read_event(event: &Event<'_>, names: &Dictionary) -> Option<Self> {
        if let Some(recorded) = RecordedAlert::read(event, names) {
            return Some(Self::Alert(recorded));
        }
        let text = |field| match event.field(field, &mut [0; 36]) {
            Some(EventValue::Text(text) | EventValue::Json(text)) => text.to_owned(),
            _ => String::new(),
        };
        let action = text(EventField::Action);
        let is_note = event.kind() == EventKind::Control && matches!(&*action, BLIND | SOURCE_CUT);
        is_note.then(|| {
            let (reason, detail) = (text(EventField::Reason), text(EventField::Detail));
            Self::Note(NoteRecord { ts: event.ts_event(), action, reason, detail })
        })
    }
}

/// The action of a control for events that the watch could not see.
pub(crate) const BLIND: &str = "blind";
/// The action of a control for alerts whose events the source has lost.
pub(crate) const SOURCE_CUT: &str = "source_cut";
