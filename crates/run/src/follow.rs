//! A tape that is read from its oldest frame on, and followed as it grows.
//!
//! A reader that follows meets the end of the tape, where it waits, and cuts: after a power loss the tape may be shorter
//! than what was read of it. Then what was learned from what was cut is not the tape's any more, and it is read again.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;
use unitape_model::{DefinitionTable, Position};
use unitape_tape::{Error, Frame, LostDefinitions, ReadOptions, Reader, StartPosition};

/// A reader of all of the tape in `dir`, and the names of what is gone before it.
///
/// # Errors
/// When the tape or its log of definitions cannot be read.
pub fn open(dir: &Path, options: ReadOptions) -> Result<(Reader, DefinitionTable), Error> {
    let reader = Reader::open_with(dir, StartPosition::Oldest, options)?;
    let mut names = DefinitionTable::default();
    if options.skip_damage {
        names.set_log(LostDefinitions::names(dir));
    }
    let mut lost = LostDefinitions::new(dir, options.skip_damage);
    lost.learn_before(reader.position(), |_, frame| names.admit_frame(frame).map(drop))?;
    Ok((reader, names))
}

/// A step of a follower.
#[derive(Debug)]
pub enum FollowOutcome<'a> {
    /// The next frame.
    Frame {
        /// The number of events before it.
        ordinal: u64,
        /// The frame.
        frame: Frame<'a>,
    },
    /// All that is on the tape was read.
    AtEnd,
    /// The tape was cut back. The caller forgets what it has learned, and calls [`TapeFollower::reopen`].
    Rewound {
        /// The position up to which it was read.
        from: Position,
        /// The position of the cut: the next frames replace those that were read after it.
        to: Position,
    },
}

/// A follower of a tape.
#[derive(Debug)]
pub struct TapeFollower {
    dir: PathBuf,
    options: ReadOptions,
    reader: Reader,
    rewinds: u64,
}

impl TapeFollower {
    /// Begins at the oldest frame of the tape in `dir`; gives the names of what is gone before it, too.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(dir: &Path, options: ReadOptions) -> Result<(Self, DefinitionTable), Error> {
        let (reader, names) = open(dir, options)?;
        Ok((Self { dir: dir.to_owned(), options, reader, rewinds: 0 }, names))
    }

    /// The next step.
    ///
    /// # Errors
    /// When the tape is damaged or cannot be read.
    #[inline]
    pub fn step(&mut self) -> Result<FollowOutcome<'_>, Error> {
        match self.reader.next_counted() {
            Ok(Some((ordinal, frame))) => Ok(FollowOutcome::Frame { ordinal, frame }),
            Ok(None) => Ok(FollowOutcome::AtEnd),
            Err(error) => rewound(error, &mut self.rewinds),
        }
    }

    /// Waits at the end of the tape until there is more, for a fifth of a second at most: then [`FollowOutcome::AtEnd`], and the
    /// caller looks again.
    ///
    /// # Errors
    /// As [`TapeFollower::step`].
    pub fn wait(&mut self) -> Result<FollowOutcome<'static>, Error> {
        match self.reader.wait(LOOK) {
            Ok(_) => Ok(FollowOutcome::AtEnd),
            Err(error) => rewound(error, &mut self.rewinds),
        }
    }

    /// Begins again at the oldest frame, after a cut; gives the names of what is gone before it.
    ///
    /// # Errors
    /// As [`open`].
    pub fn reopen(&mut self) -> Result<DefinitionTable, Error> {
        let (reader, names) = open(&self.dir, self.options)?;
        self.reader = reader;
        Ok(names)
    }

    /// Refuses the frame at this position, which is not what a frame must be.
    ///
    /// # Errors
    /// That damage, where it is not to be skipped.
    pub fn refuse(&mut self, position: Position, what: &dyn Display) -> Result<(), Error> {
        self.reader.refuse(position, what)
    }

    /// The number of times that the tape was cut back.
    pub fn rewinds(&self) -> u64 {
        self.rewinds
    }

    /// The reader, which knows what it passed over.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }
}

#[cold]
fn rewound(error: Error, rewinds: &mut u64) -> Result<FollowOutcome<'static>, Error> {
    let Error::Rewound { from, to } = error else { return Err(error) };
    *rewinds += 1;
    Ok(FollowOutcome::Rewound { from, to })
}

/// The time that a follower waits before the caller may look whether it is to stop.
const LOOK: Duration = Duration::from_millis(200);
