//! Definitions that a reader does not meet: those of segments that retention removed, and of damaged parts that it
//! passes over. The dictionary log has them.
//!
//! ```text
//!   definitions.log  d d d d d d d d d d d d
//!                    └──┬──┘       └┬┘
//!   tape             ░░░│░░░ ■ d ■ ■│▒▒▒│■ ■ d ■      ░ removed   ▒ damaged
//!                       first frame     next frame that can be read
//! ```

use std::fmt::Display;
use std::path::Path;

use unitape_model::{DefinitionTable, Position};

use crate::disk::DefinitionReader;
use crate::disk::layout::TapePaths;
use crate::error::{Error, Result};

/// The definitions before and between the frames of one reader, from the dictionary log.
#[derive(Debug)]
pub struct LostDefinitions {
    paths: TapePaths,
    /// The reader passes over damage, so there may be damage between two frames.
    skips_damage: bool,
    log: Option<DefinitionReader>,
    /// The log was read as far as it can be.
    is_exhausted: bool,
    /// The record that was read and is not due yet.
    pending_record: Option<(Position, Vec<u8>)>,
    /// Where the next frame is if nothing is between.
    next_position: u64,
}

impl LostDefinitions {
    /// Makes a reader of the lost definitions of the tape in `dir`; `skip_damage` passes over damage in the log.
    pub fn new(dir: &Path, skip_damage: bool) -> Self {
        let paths = TapePaths { tape_dir: dir.into() };
        Self {
            paths,
            skips_damage: skip_damage,
            log: None,
            is_exhausted: false,
            pending_record: None,
            next_position: u64::MAX,
        }
    }

    /// Passes the earlier definitions before `position` to `add_definition`, unless it has learned them already.
    ///
    /// # Errors
    /// Fails if the log is missing or damaged, or if `add_definition` refuses a definition. Never fails if damage is passed
    /// over.
    pub fn learn_before<W: Display>(
        &mut self,
        position: Position,
        add_definition: impl FnMut(Position, &[u8]) -> std::result::Result<(), W>,
    ) -> Result<()> {
        self.next_position = position.0;
        self.check_between(Position(0), position, add_definition)
    }

    /// Reads all names and sources from the dictionary log of the tape in `dir`, as far as the log can be read.
    pub fn names(dir: &Path) -> DefinitionTable {
        let mut definitions = DefinitionTable::default();
        definitions.set_lenient(true);
        let mut log = Self::new(dir, true);
        // Nothing is an error where damage is passed over.
        _ = log.learn_before(Position(u64::MAX), |_, frame| definitions.admit_frame(frame).map(drop));
        definitions
    }

    fn check_between<W: Display>(
        &mut self,
        from: Position,
        position: Position,
        mut add_definition: impl FnMut(Position, &[u8]) -> std::result::Result<(), W>,
    ) -> Result<()> {
        while position.0 > 0 && !self.is_exhausted {
            if self.pending_record.is_none() {
                match self.next_definition() {
                    Ok(record) => self.pending_record = record,
                    Err(_) if self.skips_damage => self.is_exhausted = true,
                    Err(e) => return Err(e),
                }
            }
            let Some((record_position, frame)) =
                self.pending_record.take_if(|(candidate_position, _)| *candidate_position < position)
            else {
                break;
            };
            if record_position >= from
                && let Err(reason) = add_definition(record_position, &frame)
                && !self.skips_damage
            {
                return Err(Error::damage(
                    &self.paths.definitions(),
                    0,
                    format!("position {record_position}: {reason}"),
                ));
            }
        }
        Ok(())
    }

    /// Gives the definitions before `bytes`, which were read at `position`, where some may lie between them and those
    /// before.
    ///
    /// # Errors
    /// Fails as [`LostDefinitions::learn_before`] does.
    #[inline]
    pub fn learn_before_bytes<W: Display>(
        &mut self,
        position: Position,
        bytes: &[u8],
        add_definition: impl FnMut(Position, &[u8]) -> std::result::Result<(), W>,
    ) -> Result<()> {
        if self.skips_damage && self.next_position != position.0 {
            self.check_between(Position(self.next_position), position, add_definition)?;
        }
        self.next_position = position.0 + bytes.len() as u64;
        Ok(())
    }

    fn next_definition(&mut self) -> Result<Option<(Position, Vec<u8>)>> {
        let log = match &mut self.log {
            Some(log) => log,
            None => {
                let path = self.paths.definitions();
                if !path.exists() {
                    let message = "the dictionary log is missing, which has the names of what was removed";
                    return Err(Error::damage(&path, 0, message));
                }
                self.log.insert(DefinitionReader::open(&self.paths.tape_dir)?)
            }
        };
        Ok(log.next()?.map(|(position, frame)| (position, frame.to_vec())))
    }
}
