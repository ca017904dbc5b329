//! Books of a tape, frame by frame.

use crate::books::{Books, Change, Options};
use crate::error::Error;
use unitape_model::{Dict, Dictionary, Event, Field, Header, Kind, Message, Position, Value};

/// [`Books`] that learn names from the definitions on the tape.
pub struct TapeBooks {
    /// The names defined so far.
    pub names: Dictionary,
    /// The books.
    pub books: Books,
}

/// The venue that stands for all venues, as `bbo` events name it.
pub const ALL_VENUES: &str = "NBBO";

impl TapeBooks {
    /// No books, at the start of a tape.
    pub fn new(options: Options) -> Self {
        Self { names: Dictionary::default(), books: Books::new(options) }
    }

    /// Takes the next frame of the tape, bookkeeping as well, and tells what changed.
    ///
    /// # Errors
    /// A frame of a kind we do not know, or a definition that does not follow the others: a foreign or damaged tape.
    #[inline]
    pub fn on_frame(&mut self, position: Position, frame: &[u8]) -> Result<&[Change], Error> {
        let Some(event) = Event::new(frame) else {
            return match Message::of(frame) {
                Some(_) => Ok(&[]),
                None => Err(Error::Frame { position, message: "not a frame of a kind we know" }),
            };
        };
        if !Header::read(frame).is_meta() {
            return Ok(self.books.on_event(&event));
        }
        if event.kind() == Kind::Define && !self.define(&event) {
            return Err(Error::Frame { position, message: "a definition that does not follow the others" });
        }
        Ok(&[])
    }

    /// Takes a definition, as from the definitions log of a tape whose first segments are gone.
    ///
    /// # Errors
    /// As [`TapeBooks::on_frame`].
    pub fn on_definition(&mut self, position: Position, frame: &[u8]) -> Result<(), Error> {
        match Event::new(frame) {
            Some(event) if event.kind() == Kind::Define && !self.define(&event) => {
                Err(Error::Frame { position, message: "a definition that does not follow the others" })
            }
            Some(_) => Ok(()),
            None => Err(Error::Frame { position, message: "not a frame of a kind we know" }),
        }
    }

    fn define(&mut self, event: &Event<'_>) -> bool {
        let uint = |field| match event.field(field, &mut [0; 36]) {
            Some(Value::UInt(v)) => Some(v),
            _ => None,
        };
        let dict = uint(Field::Dict).and_then(|d| u8::try_from(d).ok()).and_then(Dict::from_u8);
        let id = uint(Field::Index).and_then(|id| u32::try_from(id).ok());
        let mut scratch = [0; 36];
        let (Some(dict), Some(id), Some(Value::Text(name))) =
            (dict, id, event.field(Field::Name, &mut scratch))
        else {
            return false;
        };
        if dict == Dict::Venue
            && name == ALL_VENUES
            && let Ok(venue) = u16::try_from(id)
        {
            self.books.set_all_venues(venue);
        }
        self.names.define(dict, id, name.as_bytes())
    }
}
