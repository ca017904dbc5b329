//! A cut that is not complete: `DIR/cut` is written before a repair changes the first file, and removed after the last.
//!
//! ```text
//!  0 "UNITCUT\0"  8 format version u64  16 tape u128  32 position u64  40 ordinal u64  48 durable u64  60 crc32c of 0..60
//! ```
//!
//! A killed repair leaves the file. A writer refuses such a tape, `verify` reports it, and the next repair completes the
//! cut before it looks at anything else: half of a cut looks like damage.

use std::path::PathBuf;

use unitape_model::{LINE, Position};

use crate::disk::layout::{FORMAT_VERSION, PLACE_MAX, TapeId, TapeManifest, TapePaths, read_small};
use crate::error::{Error, FileContext, Result};

/// What the rest of a cut needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingCut {
    /// The tape is to end here.
    pub position: Position,
    /// Events before that.
    pub ordinal: u64,
    /// How far the tape was durable before the cut.
    pub durable: Position,
}

impl PendingCut {
    /// The file, if a repair left one.
    ///
    /// # Errors
    /// A file that is damaged, of another tape or of another version.
    pub fn load(paths: &TapePaths, id: TapeId) -> Result<Option<Self>> {
        let path = Self::path(paths);
        let bytes = match read_small(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.with_context("read", &path)?,
        };
        let sound = bytes.len() == BYTES
            && bytes[..8] == *MAGIC
            && bytes[60..] == crc32c::crc32c(&bytes[..60]).to_le_bytes();
        if !sound {
            return Err(Error::damage(&path, 0, "the record of a cut does not match its checksum"));
        }
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if word(8) != FORMAT_VERSION {
            return Err(Error::ForeignVersion { path, found: word(8), known: FORMAT_VERSION });
        }
        if bytes[16..32] != id.0.to_le_bytes() {
            return Err(Error::damage(&path, 16, "the cut is of another tape"));
        }
        if word(32) > PLACE_MAX || !word(32).is_multiple_of(LINE as u64) {
            return Err(Error::damage(&path, 32, "the cut is at no position"));
        }
        Ok(Some(Self { position: Position(word(32)), ordinal: word(40), durable: Position(word(48)) }))
    }

    /// Refuses a tape whose cut is not complete.
    ///
    /// # Errors
    /// The cut, or what [`PendingCut::load`] refuses.
    pub fn refuse(paths: &TapePaths, id: TapeId) -> Result<()> {
        match Self::load(paths, id)? {
            Some(cut) => Err(Error::damage(&Self::path(paths), 0, cut.problem_text())),
            None => Ok(()),
        }
    }

    /// What is wrong with a tape that has one.
    pub fn problem_text(&self) -> String {
        format!(
            "a repair was killed while it cut the tape at position {}; `unitape tape repair --apply` completes the cut",
            self.position
        )
    }

    pub fn path(paths: &TapePaths) -> PathBuf {
        paths.dir.join("cut")
    }

    pub fn encode(&self, meta: &TapeManifest) -> [u8; BYTES] {
        let mut out = [0; BYTES];
        out[..8].copy_from_slice(MAGIC);
        out[8..16].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        out[16..32].copy_from_slice(&meta.id.0.to_le_bytes());
        for (at, word) in [(32, self.position.0), (40, self.ordinal), (48, self.durable.0)] {
            out[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32c::crc32c(&out[..60]);
        out[60..].copy_from_slice(&crc.to_le_bytes());
        out
    }
}

const MAGIC: &[u8; 8] = b"UNITCUT\0";
const BYTES: usize = 64;
