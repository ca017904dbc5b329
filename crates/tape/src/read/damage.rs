//! Damage, as a reader treats it: it checks or does not, stops at damage or continues after it, and counts lost
//! frames.

use std::path::{Path, PathBuf};

use unitape_model::Position;

/// Options of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Spans are compared with their checksums before their frames are given out; by default they are.
    pub verify: bool,
    /// Damage is no error: the reader continues at the start of the next segment that it can read, and counts the
    /// damage.
    pub skip_damage: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { verify: true, skip_damage: false }
    }
}

/// A part of a tape that a reader has passed over because it is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedPart {
    /// In which file the damage is.
    pub file_path: PathBuf,
    /// At which byte of it.
    pub offset: u64,
    /// The damage, in words.
    pub reason: String,
    /// Nothing from here on was given.
    pub from_position: Position,
    /// The position where reading resumed; the known end of the tape if nothing can be read after the damage.
    pub to_position: Position,
    /// Events (non-META frames) in between, where the next segment says how many precede it.
    pub events: Option<u64>,
}

/// The damaged parts that a reader has passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamagedParts {
    /// How many places.
    pub count: u64,
    /// The first of them, 1000 at most.
    pub parts: Vec<DamagedPart>,
    /// Bytes of tape.
    pub bytes: u64,
    /// Events among them, as far as their number is known.
    pub events: u64,
    /// Parts whose number of events is not known.
    pub uncounted: u64,
}

/// Bytes that should have a checksum and could not be compared with one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnverifiedBytes {
    /// Bytes of tape that were given without a check.
    pub bytes: u64,
    /// Where the first of them are.
    pub first_position: Option<Position>,
    /// The first file that is missing or short, and why it could not be used.
    pub first_file: Option<(PathBuf, String)>,
}

impl UnverifiedBytes {
    /// Returns whether no byte lacks a checksum that it should have.
    pub fn is_empty(&self) -> bool {
        self.first_file.is_none()
    }

    pub(crate) fn add_bytes(&mut self, file: &Path, reason: &str, from: Position, to: Position) {
        self.note_missing_sum(file, reason);
        self.first_position = self.first_position.or(Some(from));
        self.bytes += to.0.saturating_sub(from.0);
    }

    /// Notes that a required file is missing or damaged.
    pub(crate) fn note_missing_sum(&mut self, file: &Path, reason: &str) {
        self.first_file.get_or_insert_with(|| (file.into(), reason.to_owned()));
    }

    /// Adds the counts of another reader of the same tape.
    pub fn add_counts(&mut self, unverified: &UnverifiedBytes) {
        self.bytes += unverified.bytes;
        self.first_position = self.first_position.or(unverified.first_position);
        self.first_file = self.first_file.take().or_else(|| unverified.first_file.clone());
    }
}

/// Where reading stopped at damage after which nothing can be read yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DamageStop {
    pub position: Position,
    /// Events before it, where that is known.
    pub ordinal: Option<u64>,
    /// Bytes after it that are counted.
    pub counted_bytes: u64,
}
