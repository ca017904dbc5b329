//! The best prices of a tape, frame by frame.

use super::books::FxOptions;
use super::engine::FxBooks;
use super::view::PriceListener;
use crate::error::Error;
use unitape_model::{DefinitionTable, FrameHeader, NameKind, Position};

/// [`FxBooks`] that learn names from the definitions on the tape.
#[derive(Clone, Debug)]
pub struct TapeFx {
    /// The names defined so far.
    pub names: DefinitionTable,
    /// The books.
    pub books: FxBooks,
    /// The instruments and venues whose names the books have.
    known: [u32; 2],
}

impl TapeFx {
    /// Makes books without quotes, with the names that are known already: those of a tape whose first segments are gone.
    ///
    /// # Errors
    /// As [`FxBooks::new`].
    pub fn with_names(options: FxOptions, names: DefinitionTable) -> Result<Self, Error> {
        let mut this = Self { names, books: FxBooks::new(options)?, known: [0; 2] };
        this.learn_names();
        Ok(this)
    }

    /// Applies the next frame of the tape, bookkeeping as well, and calls `listener` for each best price that changed.
    ///
    /// # Errors
    /// The error of [`DefinitionTable::admit_frame`]: a foreign or damaged tape.
    pub fn on_frame(
        &mut self,
        position: Position,
        frame: &[u8],
        listener: &mut PriceListener<'_>,
    ) -> Result<(), Error> {
        let event = self.names.admit_frame(frame);
        let event = event.map_err(|fault| Error::Frame { position, message: fault.to_string() })?;
        self.learn_names();
        let header = FrameHeader::read(frame);
        match event {
            Some(event) if !header.is_meta() => self.books.on_event(&event, listener),
            // The last frame of a message need not be an event.
            _ if header.is_last() => self.books.end_message(listener),
            _ => {}
        }
        Ok(())
    }

    /// Gives the books the names that are new.
    #[inline]
    fn learn_names(&mut self) {
        let known = [NameKind::Instrument, NameKind::Venue].map(|dict| self.names.len(dict));
        if self.known != known {
            self.define_names(known);
        }
    }

    #[cold]
    fn define_names(&mut self, known: [u32; 2]) {
        let [instruments, venues] = std::mem::replace(&mut self.known, known);
        for id in instruments + 1..=known[0] {
            if let Some(name) = self.names.name(NameKind::Instrument, id) {
                self.books.define_instrument(id, name);
            }
        }
        for id in venues + 1..=known[1] {
            if let (Some(name), Ok(id)) = (self.names.name(NameKind::Venue, id), u16::try_from(id)) {
                self.books.define_publisher(id, name);
            }
        }
    }
}
