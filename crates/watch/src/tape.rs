//! A watch on a tape, frame by frame.

use crate::alert::Alert;
use crate::error::Error;
use crate::params::ScenarioSelection;
use crate::state::watch_state;
use crate::watch::Watch;
use std::collections::BTreeSet;
use unitape_model::{DefinitionTable, Event, EventKind, FrameHeader, NameKind, Position};

/// A [`Watch`] that learns names from the definitions on the tape.
pub struct TapeWatch {
    /// The names defined so far.
    pub names: DefinitionTable,
    /// The scenarios.
    pub watch: Watch,
    refused_messages: RefusedMessages,
}

/// The messages in quarantine, by their instruments.
#[derive(Debug, Default)]
struct RefusedMessages {
    /// Names of instruments.
    instruments: BTreeSet<String>,
    /// Messages that may be of any instrument.
    unnamed: u64,
    /// All of them, those included that could not have changed anything.
    count: u64,
}

/// Instruments whose names are kept; a message of a further one counts as of any.
const REFUSED_MAX: usize = 4096;

impl RefusedMessages {
    #[cold]
    fn add_message(&mut self, event: &Event<'_>) {
        self.count += 1;
        let mut name = None;
        for (key, json) in event.unmapped_fields() {
            match key {
                "books" if json == "false" => return,
                "instr" => name = serde_json::from_str::<String>(json).ok(),
                _ => {}
            }
        }
        match name {
            Some(name) if self.instruments.len() < REFUSED_MAX || self.instruments.contains(&name) => {
                self.instruments.insert(name);
            }
            _ => self.unnamed += 1,
        }
    }
}

watch_state!(RefusedMessages { instruments, unnamed, count });
watch_state!(TapeWatch { watch, refused_messages | names });

impl TapeWatch {
    /// Starts the scenarios of `selection` at the beginning of a tape.
    pub fn new(selection: &ScenarioSelection) -> Result<Self, Error> {
        let (names, refused) = (DefinitionTable::default(), RefusedMessages::default());
        Ok(Self { names, watch: Watch::new(selection)?, refused_messages: refused })
    }

    /// Takes the next frame of the tape, bookkeeping as well. `seq` is the ordinal of an event and of no
    /// matter otherwise.
    ///
    /// # Errors
    /// Fails as [`DefinitionTable::admit_frame`] does: the tape is foreign or damaged.
    #[inline]
    pub fn on_frame(
        &mut self,
        position: Position,
        frame: &[u8],
        seq: u64,
        out: &mut Vec<Alert>,
    ) -> Result<(), Error> {
        let event = self.names.admit_frame(frame);
        let event = event.map_err(|flaw| Error::Frame { position, message: flaw.to_string() })?;
        if let Some(event) = event.filter(|_| !FrameHeader::read(frame).is_meta()) {
            if event.kind() == EventKind::Quarantine {
                self.refused_messages.add_message(&event);
            }
            self.watch.on_event(&event, seq, Some(position), self.names.dictionary(), out);
        }
        Ok(())
    }

    /// Returns the instruments whose messages are all in quarantine so far, sorted.
    pub fn refused_instruments(&self) -> impl Iterator<Item = &str> {
        let names = self.refused_messages.instruments.iter();
        names
            .map(String::as_str)
            .filter(|name| self.names.get(NameKind::Instrument, name.as_bytes()).is_none())
    }

    /// Counts the quarantined messages that may be of any instrument. Returns 0 if any of the `events` so far is not a
    /// refused message.
    pub fn nothing_but_refused(&self, events: u64) -> u64 {
        if self.refused_messages.count == events { self.refused_messages.unnamed } else { 0 }
    }
}
