//! A cut that is not complete: `DIR/cut` is written before a repair changes the first file, and removed after the last.
//!
//! ```text
//!  0 "UNITCUT\0"  8 format version u64  16 tape u128  32 position u64  40 ordinal u64  48 durable u64  56 epoch u64
//!  64 end u64  72 events u64  80 crc32c of 0..80  84 zeros
//! ```
//!
//! The file holds these 512 bytes twice: a flipped bit in one copy leaves the other. A killed repair leaves the file. A
//! writer refuses such a tape, `verify` reports it, and the next repair completes the cut before it does anything else:
//! half of a cut looks like damage.

use std::path::PathBuf;

use unitape_model::{LINE, Position};

use crate::disk::layout::{FORMAT_VERSION, PLACE_MAX, TapeId, TapeManifest, TapePaths, read_small};
use crate::error::{Error, FileContext, Result};

/// The facts that a killed repair needs to complete its cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingCut {
    /// The tape is to end here.
    pub position: Position,
    /// Events before that.
    pub ordinal: u64,
    /// How far the tape was durable before the cut.
    pub durable: Position,
    /// Epoch of the last writer before the cut; 0: unknown. A cut of an earlier epoch is out of date: a writer that
    /// does not know this file has appended since.
    pub epoch: u64,
    /// The tape reached to here before the cut.
    pub end_before_cut: Position,
    /// Events that the cut takes away.
    pub events: u64,
}

impl PendingCut {
    /// Reads the pending cut, if a repair left one.
    ///
    /// # Errors
    /// Fails if the file is damaged, or belongs to another tape or version.
    pub fn load(paths: &TapePaths, id: TapeId) -> Result<Option<Self>> {
        let path = Self::path(paths);
        let bytes = match read_small(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.with_context("read", &path)?,
        };
        let sound = |copy: &&[u8]| {
            copy[..8] == *MAGIC
                && copy[offset::CRC..][..4] == crc32c::crc32c(&copy[..offset::CRC]).to_le_bytes()
        };
        let Some(copy) = bytes.chunks_exact(COPY_BYTES).find(sound) else {
            return Err(Error::damage(&path, 0, "the record of a cut does not match its checksum"));
        };
        let word =
            |offset: usize| u64::from_le_bytes(copy[offset..offset + 8].try_into().expect("eight bytes"));
        if word(offset::VERSION) != FORMAT_VERSION {
            return Err(Error::ForeignVersion {
                path,
                version: word(offset::VERSION),
                supported_version: FORMAT_VERSION,
            });
        }
        if copy[offset::TAPE..offset::POSITION] != id.0.to_le_bytes() {
            return Err(Error::damage(&path, offset::TAPE as u64, "the cut is of another tape"));
        }
        let position = word(offset::POSITION);
        if position > PLACE_MAX || !position.is_multiple_of(LINE as u64) {
            return Err(Error::damage(&path, offset::POSITION as u64, "the cut is at no position"));
        }
        Ok(Some(Self {
            position: Position(position),
            ordinal: word(offset::ORDINAL),
            durable: Position(word(offset::DURABLE)),
            epoch: word(offset::EPOCH),
            end_before_cut: Position(word(offset::END)),
            events: word(offset::EVENTS),
        }))
    }

    /// Refuses a tape whose cut is not complete.
    ///
    /// # Errors
    /// Fails if there is a pending cut, and as [`PendingCut::load`] does.
    pub fn refuse(paths: &TapePaths, id: TapeId) -> Result<()> {
        match Self::load(paths, id)? {
            Some(cut) => Err(Error::damage(&Self::path(paths), 0, cut.problem_text())),
            None => Ok(()),
        }
    }

    /// Describes the problem of a tape that has a pending cut.
    pub fn problem_text(&self) -> String {
        format!(
            "a repair was killed while it cut the tape at position {}; `unitape tape repair --apply` completes the cut",
            self.position
        )
    }

    pub fn path(paths: &TapePaths) -> PathBuf {
        paths.tape_dir.join("cut")
    }

    pub fn encode(&self, meta: &TapeManifest) -> Vec<u8> {
        let mut copy = [0; COPY_BYTES];
        copy[..8].copy_from_slice(MAGIC);
        copy[offset::TAPE..offset::POSITION].copy_from_slice(&meta.id.0.to_le_bytes());
        let words = [
            (offset::VERSION, FORMAT_VERSION),
            (offset::POSITION, self.position.0),
            (offset::ORDINAL, self.ordinal),
            (offset::DURABLE, self.durable.0),
            (offset::EPOCH, self.epoch),
            (offset::END, self.end_before_cut.0),
            (offset::EVENTS, self.events),
        ];
        for (offset, word) in words {
            copy[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32c::crc32c(&copy[..offset::CRC]);
        copy[offset::CRC..offset::CRC + 4].copy_from_slice(&crc.to_le_bytes());
        copy.repeat(2)
    }
}

const MAGIC: &[u8; 8] = b"UNITCUT\0";

/// Bytes of a copy: a sector, so that one which cannot be read leaves the other copy.
const COPY_BYTES: usize = 512;

mod offset {
    pub const VERSION: usize = 8;
    pub const TAPE: usize = 16;
    pub const POSITION: usize = 32;
    pub const ORDINAL: usize = 40;
    pub const DURABLE: usize = 48;
    pub const EPOCH: usize = 56;
    pub const END: usize = 64;
    pub const EVENTS: usize = 72;
    pub const CRC: usize = 80;
}
