//! A flush that failed: which file it was of, and what that means.

use std::path::PathBuf;

use unitape_model::Position;

use crate::disk::layout::{TapePaths, segment_path};
use crate::error::Error;

/// Why the durable position does not advance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurabilityFailure {
    /// The system's number of the error.
    pub errno: i32,
    /// The file whose flush failed.
    pub file_path: PathBuf,
    /// Nothing more becomes durable until the tape is reopened; otherwise the recorder is writing it again.
    pub lasting: bool,
}

impl DurabilityFailure {
    pub(crate) fn error(&self, durable: Position) -> Error {
        Error::DurabilityFailed {
            path: self.file_path.clone(),
            durable,
            source: std::io::Error::from_raw_os_error(self.errno),
            consequence: if self.lasting {
                "events after it can be read, and more appended; reopen the tape when the disk is mended, to have it \
                 checked and written again"
            } else {
                "the recorder writes the rest again until a flush succeeds"
            },
        }
    }
}

/// The file of a tape whose flush failed; the state page stores it as one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushedFile {
    Segment(u64),
    Checksums(u64),
    Directory,
    Definitions,
    Durable,
}

impl FlushedFile {
    pub fn to_word(self) -> u64 {
        match self {
            Self::Segment(index) => 1 << 56 | index,
            Self::Checksums(index) => 2 << 56 | index,
            Self::Directory => 3 << 56,
            Self::Definitions => 4 << 56,
            Self::Durable => 5 << 56,
        }
    }

    /// Returns the path of the file or directory that `word` names.
    pub fn path_of(word: u64, paths: &TapePaths) -> PathBuf {
        let index = word & ((1 << 56) - 1);
        match word >> 56 {
            1 => segment_path(&paths.segments(), index),
            2 => paths.crc(index),
            3 => paths.segments(),
            4 => paths.definitions(),
            _ => paths.durable(),
        }
    }
}
