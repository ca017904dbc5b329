//! A tape that is a function of another tape: best prices, alerts.
//!
//! ```text
//!  input    ■ ■ ■ ■ ■ ■ ■ ■ ■ ■          a restart derives from the oldest event again,
//!             │   │     │   │ │
//!  output     ■   ■     ■                compares what is there,
//!                           ■ ■          and appends the rest
//! ```
//!
//! So a process that is killed at any moment leaves no trace on the output, and an input that is not the input of before
//! is found.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use unitape_model::{
    DefinitionTable, Dictionary, Event, EventBuilder, EventKind, FrameHeader, NameKind, Position, UnixNanos,
    flags,
};
use unitape_tape::{
    ReadOptions, Reader, StartPosition, SyncPolicy, TapeId, TapeManifest, Writer, WriterOptions,
};

/// The counts of a derived tape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DerivedTotals {
    /// Derived events, including earlier events of the tape.
    pub events: u64,
    /// The events that this call has appended.
    pub appended: u64,
}

/// A point of a derived tape between two units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DerivedPoint {
    /// Frames before it.
    pub frames: u64,
    /// The CRC-32C of these frames, without the stamps of the writer.
    pub crc: u32,
}

impl DerivedPoint {
    fn add_frame(&mut self, frame: &[u8]) {
        let header = (FrameHeader::read(frame).0 & !STAMP).to_le_bytes();
        self.crc = crc32c::crc32c_append(crc32c::crc32c_append(self.crc, &header), &frame[8..]);
        self.frames += 1;
    }
}

/// The content of a derived tape, in the words of its errors.
#[derive(Clone, Copy, Debug)]
pub struct DerivedContent {
    /// The plural noun, such as `best prices`.
    pub noun: &'static str,
    /// The other inputs that determine the content, such as `scenarios or parameters`. Empty if there are none.
    pub rules: &'static str,
}

/// The writer of a derived tape: compares each unit with the tape while it has units, and appends from there.
pub struct DerivedTape {
    tape_dir: PathBuf,
    derived_content: DerivedContent,
    writer: Writer,
    /// Reads the units that have not been compared, or `None` if all are compared.
    unchecked_units: Option<Reader>,
    name_dictionary: Dictionary,
    open_unit: Vec<u8>,
    /// Events of the unit.
    pending_events: u64,
    derived_totals: DerivedTotals,
    read_options: ReadOptions,
    derived_point: DerivedPoint,
    /// The position after the last unit that this call has appended.
    appended_to: Position,
}

impl DerivedTape {
    /// Makes or continues the tape in `dir`, which must have this id.
    ///
    /// # Errors
    /// Fails if the tape cannot be read or written, if another tape is there, or if its beginning is gone.
    pub fn open(dir: &Path, id: TapeId, content: DerivedContent, read: ReadOptions) -> Result<Self, Error> {
        let refuse = |reason: String| Error::OtherTape { path: dir.to_owned(), reason };
        match TapeManifest::load(dir) {
            Ok(manifest) if manifest.id != id => {
                let rules = match content.rules {
                    "" => String::new(),
                    rules => format!(", or has those of other {rules}"),
                };
                let noun = content.noun;
                return Err(refuse(format!(
                    "it does not have the {noun} of this tape{rules}; name another directory"
                )));
            }
            Ok(_) | Err(unitape_tape::Error::NotATape { .. }) => {}
            Err(e) => return Err(e.into()),
        }
        let sync = SyncPolicy::Every { bytes: 64 << 20, interval: Duration::from_secs(1) };
        let (writer, _) =
            Writer::open(dir, id, WriterOptions { sync_policy: sync, ..WriterOptions::default() })?;
        let reader = Reader::open_with(dir, StartPosition::Oldest, read)?;
        if reader.position() != Position(0) {
            return Err(refuse("retention has removed its beginning, and it cannot be continued".to_owned()));
        }
        Ok(Self {
            tape_dir: dir.to_owned(),
            derived_content: content,
            writer,
            unchecked_units: Some(reader),
            name_dictionary: Dictionary::default(),
            open_unit: Vec::new(),
            pending_events: 0,
            derived_totals: DerivedTotals::default(),
            read_options: read,
            derived_point: DerivedPoint::default(),
            appended_to: Position(0),
        })
    }

    /// Goes on after a point without a comparison of the units before it. Returns whether the tape has the point; otherwise it
    /// is still at its beginning.
    ///
    /// # Errors
    /// Fails if the tape cannot be read.
    pub fn skip_to(&mut self, point: DerivedPoint) -> Result<bool, Error> {
        let mut reader = Reader::open_with(&self.tape_dir, StartPosition::Oldest, self.read_options)?;
        let (mut names, mut reached, mut events) = (DefinitionTable::default(), DerivedPoint::default(), 0);
        while reached.frames < point.frames {
            let Some(frame) = reader.next()? else { return Ok(false) };
            if names.admit_frame(frame.bytes).is_err() {
                return Ok(false);
            }
            events += u64::from(!frame.header.is_meta());
            reached.add_frame(frame.bytes);
        }
        if reached != point {
            return Ok(false);
        }
        self.name_dictionary = names.dictionary().clone();
        self.derived_totals.events = events;
        (self.derived_point, self.unchecked_units) = (point, Some(reader));
        Ok(true)
    }

    /// Returns the point after the last unit.
    pub fn point(&self) -> DerivedPoint {
        self.derived_point
    }

    /// Returns whether all units up to the point are durable, as far as this call knows.
    pub fn is_durable(&self) -> bool {
        self.writer.durable() >= self.appended_to
    }

    /// Returns the id of a name on this tape. A new name gets its definition in the unit, before the next event.
    ///
    /// # Errors
    /// Fails if the dictionary is full.
    pub fn id_of(&mut self, dict: NameKind, name: &str) -> Result<u32, Error> {
        match self.name_dictionary.intern(dict, name.as_bytes()) {
            Ok((id, is_new)) => {
                if is_new {
                    EventBuilder::define(&mut self.open_unit, dict, id, name)
                        .expect("a name of a dictionary");
                }
                Ok(id)
            }
            Err(_) => Err(Error::OtherTape {
                path: self.tape_dir.clone(),
                reason: format!("there is no room for another {}", dict.name()),
            }),
        }
    }

    /// Begins an event of the unit. The caller finishes it before the next call.
    pub fn begin_event(&mut self, kind: EventKind, ts: UnixNanos) -> EventBuilder<'_> {
        self.pending_events += 1;
        EventBuilder::begin(&mut self.open_unit, kind, ts)
    }

    /// Forgets the last event, which was refused. Its builder has left the unit unchanged.
    pub fn retry(&mut self) {
        self.pending_events -= 1;
    }

    /// Ends the unit: compares it with the tape, or appends it. Returns whether it was appended.
    ///
    /// # Errors
    /// Fails if the tape has another unit there, or cannot be read or written.
    pub fn commit(&mut self) -> Result<bool, Error> {
        if self.open_unit.is_empty() {
            return Ok(false);
        }
        mark_last(&mut self.open_unit);
        let is_new = !self.is_written()?;
        if is_new {
            let position = self.writer.append(&self.open_unit)?;
            self.appended_to = position.plus(self.open_unit.len() as u64);
            self.derived_totals.appended += self.pending_events;
        }
        unitape_model::frames(&self.open_unit).for_each(|(_, _, frame)| self.derived_point.add_frame(frame));
        self.derived_totals.events += self.pending_events;
        self.open_unit.clear();
        self.pending_events = 0;
        Ok(is_new)
    }

    /// Fails if the tape has units that were not derived from the input, which is at its end.
    ///
    /// # Errors
    /// Fails if the tape has such units or cannot be read.
    pub fn require_compared(&mut self) -> Result<(), Error> {
        let Some(unchecked_units) = &mut self.unchecked_units else { return Ok(()) };
        if unchecked_units.next()?.is_some() {
            return Err(self.differs_error());
        }
        self.unchecked_units = None;
        Ok(())
    }

    /// Takes the units of the tape that were not compared as they are, because the input has lost the events that caused them,
    /// and forgets the unit that was not committed. Passes each event to `learn`, with the names that the tape has by then.
    ///
    /// # Errors
    /// Fails if the tape cannot be read.
    pub fn adopt_written(
        &mut self,
        mut learn: impl FnMut(&Event<'_>, &DefinitionTable),
    ) -> Result<(), Error> {
        if self.unchecked_units.take().is_none() {
            return Ok(());
        }
        let mut reader = Reader::open_with(&self.tape_dir, StartPosition::Oldest, self.read_options)?;
        let (mut names, compared) = (DefinitionTable::default(), self.derived_point.frames);
        let mut frames = 0;
        while let Some(frame) = reader.next()? {
            let (position, is_meta, is_new) = (frame.position, frame.header.is_meta(), frames >= compared);
            frames += 1;
            if is_new {
                self.derived_point.add_frame(frame.bytes);
            }
            match names.admit_frame(frame.bytes) {
                Ok(Some(event)) if is_new && !is_meta => {
                    self.derived_totals.events += 1;
                    learn(&event, &names);
                }
                Ok(_) => {}
                Err(fault) => {
                    let fault = fault.to_string();
                    return Err(reader.damage_at(position, &fault).into());
                }
            }
        }
        self.name_dictionary = names.dictionary().clone();
        self.open_unit.clear();
        self.pending_events = 0;
        Ok(())
    }

    /// Returns whether all units of before have been compared.
    pub fn is_compared(&self) -> bool {
        self.unchecked_units.is_none()
    }

    /// Returns the counts so far.
    pub fn totals(&self) -> DerivedTotals {
        self.derived_totals
    }

    /// Returns the directory of the tape.
    pub fn dir(&self) -> &Path {
        &self.tape_dir
    }

    /// Makes the tape durable, and returns the counts.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn close(self) -> Result<DerivedTotals, Error> {
        self.writer.close()?;
        Ok(self.derived_totals)
    }

    /// Returns the error of an input that was cut back while it was read.
    pub fn input_cut(&self) -> Error {
        let reason = "the input was cut back while it was read; run the command again";
        Error::OtherTape { path: self.tape_dir.clone(), reason: reason.to_owned() }
    }

    /// Returns whether the tape has the unit; fails if it has another one there.
    fn is_written(&mut self) -> Result<bool, Error> {
        let Some(unchecked_units) = &mut self.unchecked_units else { return Ok(false) };
        for (n, (_, _, frame)) in unitape_model::frames(&self.open_unit).enumerate() {
            match unchecked_units.next()? {
                Some(existing_frame) if is_same(frame, existing_frame.bytes) => {}
                None if n == 0 => {
                    self.unchecked_units = None;
                    return Ok(false);
                }
                _ => return Err(self.differs_error()),
            }
        }
        Ok(true)
    }

    fn differs_error(&self) -> Error {
        let noun = self.derived_content.noun;
        Error::OtherTape {
            path: self.tape_dir.clone(),
            reason: format!(
                "it has {noun} that this input does not give: the input was cut or is another one, or this build derives \
                 others; name another directory"
            ),
        }
    }
}

impl std::fmt::Debug for DerivedTape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DerivedTape")
            .field("dir", &self.tape_dir)
            .field("totals", &self.derived_totals)
            .finish_non_exhaustive()
    }
}

/// Returns the id of a tape that is derived from `input`: of the kind of derivation, the input and its rules.
pub fn derived_id(kind: &str, input: TapeId, rules: &[u8]) -> TapeId {
    let mut hasher = blake3::Hasher::new();
    hasher.update(kind.as_bytes());
    hasher.update(&input.0.to_le_bytes());
    hasher.update(rules);
    let bytes = hasher.finalize();
    TapeId(u128::from_le_bytes(bytes.as_bytes()[..16].try_into().expect("sixteen of 32 bytes")))
}

/// Sets the flag of the last frame of a unit on its last frame alone.
fn mark_last(unit: &mut [u8]) {
    let last_frame = unitape_model::frames(unit).last().map(|(offset, header, _)| (offset, header));
    if let Some((offset, header)) = last_frame {
        header.with_flags(header.flags() | flags::LAST).write(&mut unit[offset..]);
    }
}

/// Returns whether two frames are the same, without the stamp of the writer.
fn is_same(mine: &[u8], existing_frame: &[u8]) -> bool {
    let is_same_header = FrameHeader::read(mine).0 & !STAMP == FrameHeader::read(existing_frame).0 & !STAMP;
    is_same_header && mine[8..] == existing_frame[8..]
}

/// The bits of a frame's header that the writer stamps.
const STAMP: u64 = 0xffff_ffff;
