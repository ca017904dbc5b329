//! The file `durable`: how far the tape survives power loss.
//!
//! ```text
//! 0 "UNITDURA"  8 format version u64  16 position u64  24 bytes of definitions.log u64  32 1, checksum of the open span  60 crc32c of 0..60
//! ```

use std::fs::OpenOptions;
use std::time::Duration;

use unitape_model::Position;

use crate::disk::layout::{FORMAT_VERSION, PLACE_MAX, TapePaths, read_small};
use crate::disk::sys;
use crate::error::{Error, FileContext, Result};

/// How far the tape survives power loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DurableMark {
    pub position: Position,
    pub definitions_bytes: u64,
    /// The checksum of the bytes before the position in its span; `None` in tapes of earlier builds.
    pub open_sum: Option<u32>,
}

impl DurableMark {
    /// Encodes the durable position as the bytes of its file, with a checksum.
    pub fn encode(&self) -> [u8; 64] {
        let mut text = [0u8; 64];
        text[..8].copy_from_slice(DURABLE_MAGIC);
        text[8..16].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        text[16..24].copy_from_slice(&self.position.0.to_le_bytes());
        text[24..32].copy_from_slice(&self.definitions_bytes.to_le_bytes());
        let open_sum = self.open_sum.map_or(0, |sum| 1 << 32 | u64::from(sum));
        text[32..40].copy_from_slice(&open_sum.to_le_bytes());
        let crc = crc32c::crc32c(&text[..60]);
        text[60..].copy_from_slice(&crc.to_le_bytes());
        text
    }
}

const DURABLE_MAGIC: &[u8; 8] = b"UNITDURA";

/// Reads the durable position; zero if there is none yet.
pub(crate) fn load_durable(paths: &TapePaths) -> Result<DurableMark> {
    // A reader may see half of it during a write.
    for _ in 0..5 {
        match load_once(paths) {
            Err(Error::Damage { .. }) => std::thread::sleep(Duration::from_millis(1)),
            other => return other,
        }
    }
    load_once(paths)
}

fn load_once(paths: &TapePaths) -> Result<DurableMark> {
    let path = paths.durable();
    let text = match read_small(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(DurableMark::default()),
        other => other.with_context("read", &path)?,
    };
    let sound = text.len() == 64
        && text[..8] == *DURABLE_MAGIC
        && text[60..] == crc32c::crc32c(&text[..60]).to_le_bytes();
    if !sound {
        return Err(Error::damage(&path, 0, "the durable position does not match its checksum"));
    }
    let word = |offset: usize| u64::from_le_bytes(text[offset..offset + 8].try_into().expect("eight bytes"));
    if word(8) != FORMAT_VERSION {
        return Err(Error::ForeignVersion { path, version: word(8), supported_version: FORMAT_VERSION });
    }
    if word(16) > PLACE_MAX || !word(16).is_multiple_of(unitape_model::LINE as u64) {
        return Err(Error::damage(&path, 16, "the durable position is none"));
    }
    let open_sum = (word(32) >> 32 == 1).then_some(word(32) as u32);
    Ok(DurableMark { position: Position(word(16)), definitions_bytes: word(24), open_sum })
}

/// Writes the durable position and flushes it. The file is written whole each time, so that a flush after a failed
/// flush reports the truth.
pub(crate) fn store_durable(paths: &TapePaths, durable: &DurableMark) -> Result<()> {
    let text = durable.encode();
    let path = paths.durable();
    match sys::open(&path, OpenOptions::new().write(true)) {
        // In place: 64 bytes lie in one sector, and the name must not move for it.
        Ok(file) => {
            sys::overwrite_at(&file, &text, 0).with_context("write", &path)?;
            sys::sync_data(&file).with_context("flush", &path)
        }
        // Made whole or not at all: without it the disk may be full, or the process killed, in the middle.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let temp = paths.run().join("durable");
            let options = OpenOptions::new().write(true).create(true).truncate(true).clone();
            let file = sys::open(&temp, &options).with_context("create", &temp)?;
            sys::write_at(&file, &text, 0).with_context("write", &temp)?;
            sys::sync_data(&file).with_context("flush", &temp)?;
            sys::rename(&temp, &path).with_context("rename", &path)
        }
        Err(e) => Err(e).with_context("open", &path),
    }
}
