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
    /// Damage is passed over, so there may be such between two frames.
    skip: bool,
    log: Option<DefinitionReader>,
    /// The log was read as far as it can be.
    over: bool,
    /// The record that was read and is not due yet.
    held: Option<(Position, Vec<u8>)>,
    /// Where the next frame is if nothing is between.
    next: u64,
}

impl LostDefinitions {
    /// The definitions of the tape in `dir`, for a reader that passes over damage or does not.
    pub fn new(dir: &Path, skip_damage: bool) -> Self {
        let paths = TapePaths { dir: dir.into() };
        Self { paths, skip: skip_damage, log: None, over: false, held: None, next: u64::MAX }
    }

    /// Gives `learn` the definitions before `position` that it was not given.
    ///
    /// # Errors
    /// A log that is missing or damaged, or a definition that `learn` refuses; none where damage is passed over.
    pub fn learn_before<W: Display>(
        &mut self,
        position: Position,
        learn: impl FnMut(Position, &[u8]) -> std::result::Result<(), W>,
    ) -> Result<()> {
        self.next = position.0;
        self.between(Position(0), position, learn)
    }

    /// All names and sources that the log of the tape in `dir` has, as far as it can be read.
    pub fn names(dir: &Path) -> DefinitionTable {
        let mut names = DefinitionTable::default();
        names.set_lenient(true);
        let mut log = Self::new(dir, true);
        // Nothing is an error where damage is passed over.
        _ = log.learn_before(Position(u64::MAX), |_, frame| names.admit_frame(frame).map(drop));
        names
    }

    fn between<W: Display>(
        &mut self,
        from: Position,
        position: Position,
        mut learn: impl FnMut(Position, &[u8]) -> std::result::Result<(), W>,
    ) -> Result<()> {
        while position.0 > 0 && !self.over {
            if self.held.is_none() {
                match self.read() {
                    Ok(held) => self.held = held,
                    Err(_) if self.skip => self.over = true,
                    Err(e) => return Err(e),
                }
            }
            let Some((at, frame)) = self.held.take_if(|(at, _)| *at < position) else { break };
            if at >= from
                && let Err(what) = learn(at, &frame)
                && !self.skip
            {
                return Err(Error::damage(&self.paths.definitions(), 0, format!("position {at}: {what}")));
            }
        }
        Ok(())
    }

    /// Gives the definitions before `bytes`, which were read at `position`, where some may lie between them and those
    /// before.
    ///
    /// # Errors
    /// As [`LostDefinitions::learn_before`].
    #[inline]
    pub fn learn_before_bytes<W: Display>(
        &mut self,
        position: Position,
        bytes: &[u8],
        learn: impl FnMut(Position, &[u8]) -> std::result::Result<(), W>,
    ) -> Result<()> {
        if self.skip && self.next != position.0 {
            self.between(Position(self.next), position, learn)?;
        }
        self.next = position.0 + bytes.len() as u64;
        Ok(())
    }

    fn read(&mut self) -> Result<Option<(Position, Vec<u8>)>> {
        let log = match &mut self.log {
            Some(log) => log,
            None => {
                let path = self.paths.definitions();
                if !path.exists() {
                    let what = "the dictionary log is missing, which has the names of what was removed";
                    return Err(Error::damage(&path, 0, what));
                }
                self.log.insert(DefinitionReader::open(&self.paths.dir)?)
            }
        };
        Ok(log.next()?.map(|(at, frame)| (at, frame.to_vec())))
    }
}
