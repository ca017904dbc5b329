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
    name_counts: [u32; 2],
}

impl TapeFx {
    /// Makes books without quotes, with names that are already known. A tape whose first segments are gone needs these
    /// names.
    ///
    /// # Errors
    /// Fails as [`FxBooks::new`] does.
    pub fn with_names(options: FxOptions, names: DefinitionTable) -> Result<Self, Error> {
        let mut this = Self { names, books: FxBooks::new(options)?, name_counts: [0; 2] };
        this.add_new_names();
        Ok(this)
    }

    /// Applies the next frame of the tape, bookkeeping as well, and calls `listener` for each best price that changed.
    ///
    /// # Errors
    /// Fails as [`DefinitionTable::admit_frame`] does: the tape is foreign or damaged.
    pub fn on_frame(
        &mut self,
        position: Position,
        frame: &[u8],
        listener: &mut PriceListener<'_>,
    ) -> Result<(), Error> {
        let event = self.names.admit_frame(frame);
        let event = event.map_err(|fault| Error::Frame { position, message: fault.to_string() })?;
        self.add_new_names();
        let header = FrameHeader::read(frame);
        match event {
            Some(event) if !header.is_meta() => self.books.on_event(&event, listener),
            // The last frame of a message need not be an event.
            _ if header.is_last() => self.books.end_message(listener),
            _ => {}
        }
        Ok(())
    }

    /// Passes new names to the books.
    #[inline]
    fn add_new_names(&mut self) {
        let name_counts = [NameKind::Instrument, NameKind::Venue].map(|dict| self.names.len(dict));
        if self.name_counts != name_counts {
            self.define_names(name_counts);
        }
    }

    #[cold]
    fn define_names(&mut self, name_counts: [u32; 2]) {
        let [instruments, venues] = std::mem::replace(&mut self.name_counts, name_counts);
        for id in instruments + 1..=name_counts[0] {
            if let Some(name) = self.names.name(NameKind::Instrument, id) {
                self.books.define_instrument(id, name);
            }
        }
        for id in venues + 1..=name_counts[1] {
            if let (Some(name), Ok(id)) = (self.names.name(NameKind::Venue, id), u16::try_from(id)) {
                self.books.define_publisher(id, name);
            }
        }
    }
}
