//! The record of an origin, `run/origin`: where a tape was to begin that does not begin at 0, and the epoch that its
//! opener asked for last.
//!
//! ```text
//!  0 "UNITORIG"  8 format version u64  16 tape u128  32 position u64  40 ordinal u64  48 epoch u64  60 crc32c of 0..60
//! ```
//!
//! It is on the disk before any file of the tape, so an opening that died before `tape.toml` was there is known. Like
//! the lineage it survives a clean close, and is not of the tape.

use std::fs::OpenOptions;
use std::path::PathBuf;

use unitape_model::{LINE, Position};

use crate::disk::layout::{FORMAT_VERSION, PLACE_MAX, TapeId, TapePaths, read_small, remove, sync_dir};
use crate::disk::sys;
use crate::error::{Error, FileContext, Result};

/// The contents of `run/origin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OriginRecord {
    pub tape: TapeId,
    /// The tape begins here.
    pub position: Position,
    /// Events before that.
    pub ordinal: u64,
    /// The last epoch that a caller requested.
    pub epoch: u64,
}

const MAGIC: &[u8; 8] = b"UNITORIG";

const BYTES: usize = 64;

mod offset {
    pub const VERSION: usize = 8;
    pub const TAPE: usize = 16;
    pub const POSITION: usize = 32;
    pub const ORDINAL: usize = 40;
    pub const EPOCH: usize = 48;
    pub const CRC: usize = 60;
}

const _: () = {
    assert!(offset::VERSION == 8 && offset::TAPE == 16 && offset::POSITION == offset::TAPE + 16);
    assert!(offset::ORDINAL == 40 && offset::EPOCH == 48 && offset::CRC + 4 == BYTES);
};

impl OriginRecord {
    /// Returns the path of the tape's origin file.
    pub fn path(paths: &TapePaths) -> PathBuf {
        paths.run().join("origin")
    }

    /// Reads the record, or returns `None` if there is no such file.
    ///
    /// # Errors
    /// Fails if the file is damaged or has a foreign version, or if the system refuses.
    pub fn load(paths: &TapePaths) -> Result<Option<Self>> {
        let path = Self::path(paths);
        let text = match read_small(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.with_context("read", &path)?,
        };
        let sound = text.len() == BYTES
            && text[..8] == *MAGIC
            && text[offset::CRC..] == crc32c::crc32c(&text[..offset::CRC]).to_le_bytes();
        if !sound {
            let reason = "the record of the tape's origin does not match its checksum; `unitape tape repair DIR --apply` \
                        moves it away";
            return Err(Error::damage(&path, 0, reason));
        }
        let word =
            |offset: usize| u64::from_le_bytes(text[offset..offset + 8].try_into().expect("eight bytes"));
        if word(offset::VERSION) != FORMAT_VERSION {
            return Err(Error::ForeignVersion {
                path,
                version: word(offset::VERSION),
                supported_version: FORMAT_VERSION,
            });
        }
        let tape =
            u128::from_le_bytes(text[offset::TAPE..offset::POSITION].try_into().expect("sixteen bytes"));
        let (position, ordinal) = (word(offset::POSITION), word(offset::ORDINAL));
        if position > PLACE_MAX || !position.is_multiple_of(LINE as u64) || ordinal > PLACE_MAX {
            return Err(Error::damage(&path, offset::POSITION as u64, "the origin is no position of a tape"));
        }
        let (tape, position, epoch) = (TapeId(tape), Position(position), word(offset::EPOCH));
        Ok(Some(Self { tape, position, ordinal, epoch }))
    }

    /// Writes it, so that it survives a power loss before anything else happens.
    pub fn store(&self, paths: &TapePaths) -> Result<()> {
        let (path, temp) = (Self::path(paths), paths.run().join("making-origin"));
        let write_result = (|| {
            let options = OpenOptions::new().write(true).create(true).truncate(true).clone();
            let file = sys::open(&temp, &options).with_context("create", &temp)?;
            sys::write_at(&file, &self.encode(), 0).with_context("write", &temp)?;
            sys::sync_data(&file).with_context("flush", &temp)?;
            sys::rename(&temp, &path).with_context("rename", &path)?;
            sync_dir(&paths.run())
        })();
        if write_result.is_err() {
            let _ = remove(&temp);
        }
        write_result?;
        sync_dir(&paths.tape_dir)
    }

    fn encode(&self) -> [u8; BYTES] {
        let mut out = [0; BYTES];
        let mut write_field =
            |offset: usize, bytes: &[u8]| out[offset..offset + bytes.len()].copy_from_slice(bytes);
        write_field(0, MAGIC);
        write_field(offset::VERSION, &FORMAT_VERSION.to_le_bytes());
        write_field(offset::TAPE, &self.tape.0.to_le_bytes());
        write_field(offset::POSITION, &self.position.0.to_le_bytes());
        write_field(offset::ORDINAL, &self.ordinal.to_le_bytes());
        write_field(offset::EPOCH, &self.epoch.to_le_bytes());
        let crc = crc32c::crc32c(&out[..offset::CRC]);
        out[offset::CRC..].copy_from_slice(&crc.to_le_bytes());
        out
    }
}
