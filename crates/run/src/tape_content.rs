//! The kind of a tape, seen from its events: which commands take it.
//!
//! The manifest of a tape names only the tape. So a command that needs alerts or controls looks at the first event
//! before it reads on. Otherwise "no alerts" from a tape of another kind would calm a user wrongly.

use crate::Error;
use crate::breaker::control_tape_id;
use std::path::Path;
use unitape_model::{ErrorCause, EventField, EventKind, EventValue, TapePosition};
use unitape_query::follow::{FollowOutcome, TapeFollower};
use unitape_tape::{ReadOptions, TapeId};
use unitape_watch::breakers::RecordedControl;

/// The content of a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapeContent {
    /// No event, and nothing that only a tape of sources has: any kind of tape begins so.
    Nothing,
    /// Controls of breakers, and of the persons who trip and reset them.
    Controls,
    /// Alerts of a watch.
    Alerts,
    /// Events of feeds, with the kind of the first event. `None` if there are only notes about sources.
    Market(Option<EventKind>),
}

impl TapeContent {
    /// Reads the content of the tape in `dir`, as far as the first event shows it.
    ///
    /// # Errors
    /// Fails if there is no tape, or if its beginning is damaged or cannot be read.
    pub fn read(dir: &Path, read: ReadOptions) -> Result<Self, Error> {
        let (mut follower, mut names) = TapeFollower::open(dir, read)?;
        let id = follower.reader().id();
        let mut without_event = Self::Nothing;
        loop {
            let frame = match follower.next_step()? {
                FollowOutcome::Frame { frame, .. } => frame,
                FollowOutcome::AtEnd | FollowOutcome::Rewound { .. } => return Ok(without_event),
            };
            let (position, kind) = (frame.position, frame.header.kind());
            match names.admit_frame(frame.bytes) {
                Ok(Some(event)) if event.kind() == EventKind::Alert => return Ok(Self::Alerts),
                Ok(Some(event)) if event.kind() == EventKind::Control => {
                    // A watch notes where it was blind.
                    let is_blind = matches!(
                        event.field(EventField::Action, &mut [0; 36]),
                        Some(EventValue::Text("blind"))
                    );
                    return Ok(match RecordedControl::read(&event, names.dictionary()) {
                        Some(control) if is_breaker_tape(id, control.cause) => Self::Controls,
                        None if is_blind => Self::Alerts,
                        _ => Self::Market(Some(EventKind::Control)),
                    });
                }
                Ok(Some(event)) if !event.kind().is_meta() => return Ok(Self::Market(Some(event.kind()))),
                Ok(_) if kind != EventKind::Define as u8 => without_event = Self::Market(None),
                Ok(_) => {}
                Err(flaw) => follower.refuse_frame(position, &flaw)?,
            }
        }
    }

    /// Returns the words for it.
    fn words(self) -> String {
        match self {
            Self::Nothing => "a tape without events".to_owned(),
            Self::Controls => "the control tape of a breaker".to_owned(),
            Self::Alerts => "an alert tape".to_owned(),
            Self::Market(None) => "a tape of sources or messages without events".to_owned(),
            Self::Market(Some(kind)) => {
                format!("a tape of the market: its first event is of the kind {}", kind.name())
            }
        }
    }
}

/// Returns whether the id of a tape is the id of the control tape for controls with this cause.
fn is_breaker_tape(id: TapeId, cause: TapePosition) -> bool {
    id == control_tape_id(TapeId(cause.tape))
}

/// Fails if the tape in `dir` holds something else than controls. A tape without events may be a control tape.
///
/// # Errors
/// Fails if the tape has other content, if there is no tape, or if its beginning cannot be read.
pub fn require_control_tape(dir: &Path, read: ReadOptions) -> Result<(), Error> {
    match TapeContent::read(dir, read)? {
        TapeContent::Nothing | TapeContent::Controls => Ok(()),
        content => Err(Error::OtherContent {
            path: dir.to_owned(),
            content: content.words(),
            needed: "no control tape; give --control the directory that `unitape breaker run` writes",
        }),
    }
}

/// Fails if the tape in `dir` holds something else than alerts. A tape without events may be an alert tape.
///
/// # Errors
/// Fails if the tape has other content or if there is no tape. The later reader reports damage at the beginning.
pub fn require_alert_tape(dir: &Path, read: ReadOptions) -> Result<(), Error> {
    match TapeContent::read(dir, read) {
        Ok(TapeContent::Nothing | TapeContent::Alerts) => Ok(()),
        Ok(content) => Err(Error::OtherContent {
            path: dir.to_owned(),
            content: content.words(),
            needed: "no alert tape; name the directory that `unitape watch run --alerts DIR` writes",
        }),
        Err(error) if error.cause() == ErrorCause::Data => Ok(()),
        Err(error) => Err(error),
    }
}
