//! A watch on a tape, frame by frame.

use crate::alert::Alert;
use crate::error::Error;
use crate::params::ScenarioSelection;
use crate::watch::Watch;
use unitape_model::{DefinitionTable, FrameHeader, Position};

/// A [`Watch`] that learns names from the definitions on the tape.
pub struct TapeWatch {
    /// The names defined so far.
    pub names: DefinitionTable,
    /// The scenarios.
    pub watch: Watch,
}

impl TapeWatch {
    /// The scenarios of `selection`, at the start of a tape.
    pub fn new(selection: &ScenarioSelection) -> Result<Self, Error> {
        Ok(Self { names: DefinitionTable::default(), watch: Watch::new(selection)? })
    }

    /// Takes the next frame of the tape, bookkeeping as well. `seq` is the ordinal of an event and of no
    /// matter otherwise.
    ///
    /// # Errors
    /// The error of [`DefinitionTable::admit_frame`]: a foreign or damaged tape.
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
            self.watch.on_event(&event, seq, Some(position), self.names.dictionary(), out);
        }
        Ok(())
    }
}
