//! A watch on a tape, frame by frame.

use crate::alert::Alert;
use crate::error::Error;
use crate::params::Selection;
use crate::watch::Watch;
use unitape_model::{Dict, Dictionary, Event, Field, Header, Kind, Message, Position, Value};

/// A [`Watch`] that learns names from the definitions on the tape.
pub struct TapeWatch {
    /// The names defined so far.
    pub names: Dictionary,
    /// The scenarios.
    pub watch: Watch,
}

impl TapeWatch {
    /// The scenarios of `selection`, at the start of a tape.
    pub fn new(selection: &Selection) -> Result<Self, Error> {
        Ok(Self { names: Dictionary::default(), watch: Watch::new(selection)? })
    }

    /// Takes the next frame of the tape, bookkeeping as well. `seq` is the ordinal of an event and of no
    /// matter otherwise.
    #[inline]
    pub fn on_frame(
        &mut self,
        position: Position,
        frame: &[u8],
        seq: u64,
        out: &mut Vec<Alert>,
    ) -> Result<(), Error> {
        let Some(event) = Event::new(frame) else {
            if Message::of(frame).is_some() {
                return Ok(());
            }
            return Err(Error::Frame { position, message: "not a frame of a kind we know" });
        };
        if !Header::read(frame).is_meta() {
            self.watch.on_event(&event, seq, Some(position), &self.names, out);
        } else if event.kind() == Kind::Define && !self.define(&event) {
            return Err(Error::Frame { position, message: "a definition that does not follow the others" });
        }
        Ok(())
    }

    fn define(&mut self, event: &Event<'_>) -> bool {
        let uint = |field| match event.field(field, &mut [0; 36]) {
            Some(Value::UInt(v)) => Some(v),
            _ => None,
        };
        let dict = uint(Field::Dict).and_then(|d| u8::try_from(d).ok()).and_then(Dict::from_u8);
        let id = uint(Field::Index).and_then(|id| u32::try_from(id).ok());
        let mut scratch = [0; 36];
        match (dict, id, event.field(Field::Name, &mut scratch)) {
            (Some(dict), Some(id), Some(Value::Text(name))) => self.names.define(dict, id, name.as_bytes()),
            _ => false,
        }
    }
}
