//! The file of a gate: one page. Drawn in `docs/formats-tape.md`.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapRaw;
use unitape_model::Position;

use super::GateDrops;
use crate::disk::layout::{FORMAT_VERSION, TapeId, TapePaths, read_start, write_whole};
use crate::disk::sys;
use crate::error::{Error, FileContext, Result};
use crate::lockfree::{SharedMemory, gate};

const MAGIC: &[u8; 8] = b"UNITGATE";
const BYTES: u64 = 4096;

mod offset {
    pub const VERSION: usize = 8;
    pub const TAPE: usize = 16;
    pub const CRC: usize = 60;
    pub const END: usize = 64;
}

const _: () = {
    use gate::place;
    assert!(offset::VERSION == 8 && offset::TAPE == 16 && offset::CRC == 60 && offset::END == 64);
    assert!(place::POSITION == 128 && place::CAME == 136 && place::PID == 144);
    assert!(place::HEEDED == 256 && place::DROPS == 264 && place::DROPPED_BYTES == 272);
    assert!(place::DROPPED_FIRST == 280 && place::DROPPED_LAST == 288 && place::WAITS == 296);
};

/// A mapped gate.
#[derive(Debug)]
pub(super) struct GateFile {
    map: MmapRaw,
    pub file: File,
    pub path: PathBuf,
}

impl GateFile {
    /// Opens the gate at `path` and checks that it belongs to the tape. Returns `None` if there is no such file.
    pub fn open(path: &Path, tape: TapeId) -> Result<Option<Self>> {
        let file = match sys::open(path, OpenOptions::new().read(true).write(true)) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.with_context("open", path)?,
        };
        let page = read_start(path, BYTES).with_context("read", path)?;
        let damage = |offset: usize, reason: &str| {
            Err(Error::damage(path, offset as u64, format!("{reason}; remove it while nobody uses the tape")))
        };
        let length = file.metadata().with_context("look at", path)?.len();
        if page.len() < BYTES as usize || length < BYTES || page[..8] != *MAGIC {
            return damage(0, "the file is no gate");
        }
        let version = u64::from_le_bytes(page[offset::VERSION..][..8].try_into().expect("eight bytes"));
        if version != FORMAT_VERSION {
            return Err(Error::ForeignVersion {
                path: path.into(),
                version,
                supported_version: FORMAT_VERSION,
            });
        }
        if page[offset::CRC..offset::END] != crc32c::crc32c(&page[..offset::CRC]).to_le_bytes() {
            return damage(offset::CRC, "the gate's checksum does not match");
        }
        let id = u128::from_le_bytes(page[offset::TAPE..][..16].try_into().expect("sixteen bytes"));
        if id != tape.0 {
            return Err(Error::ForeignTape { path: path.into(), tape_id: TapeId(id), expected_id: tape });
        }
        let map = sys::map_part(&file, BYTES as usize, true).with_context("map", path)?;
        Ok(Some(Self { map, file, path: path.into() }))
    }

    /// Makes a gate whose reader is assumed to be at `position`; only the writer does.
    pub fn create(path: &Path, tape: TapeId, position: Position) -> Result<()> {
        let mut page = vec![0; BYTES as usize];
        let mut write_field =
            |offset: usize, bytes: &[u8]| page[offset..offset + bytes.len()].copy_from_slice(bytes);
        write_field(0, MAGIC);
        write_field(offset::VERSION, &FORMAT_VERSION.to_le_bytes());
        write_field(offset::TAPE, &tape.0.to_le_bytes());
        write_field(gate::place::POSITION as usize, &position.0.to_le_bytes());
        let crc = crc32c::crc32c(&page[..offset::CRC]);
        page[offset::CRC..offset::END].copy_from_slice(&crc.to_le_bytes());
        write_whole(path, &page)
    }

    /// Returns whether a reader holds the gate. Locks the gate for a moment, so a reader that attaches meanwhile must
    /// try again.
    pub fn is_alive(&self) -> bool {
        match self.file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => true,
            _ => {
                let _ = self.file.unlock();
                false
            }
        }
    }

    pub fn dropped(&self) -> GateDrops {
        let gate::DropCounters { count, bytes, first_position: first, last_position: last } =
            gate::dropped(self);
        GateDrops { count, bytes, first_position: first, last_position: last }
    }
}

impl SharedMemory for GateFile {
    #[inline]
    fn load(&self, offset: u64, order: Ordering) -> u64 {
        self.word(offset).load(order)
    }

    #[inline]
    fn store(&self, offset: u64, value: u64, order: Ordering) {
        self.word(offset).store(value, order);
    }

    unsafe fn fill(&self, _: u64, _: &[u8]) {
        unreachable!("a gate is words alone");
    }
}

impl GateFile {
    #[inline]
    fn word(&self, offset: u64) -> &AtomicU64 {
        assert!(offset < BYTES && offset.is_multiple_of(8));
        // SAFETY: in the mapping, which has BYTES bytes (asserted, and the file's length was checked), aligned, and
        // accessed atomically by everybody.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(offset as usize).cast()) }
    }
}

/// Returns the directory of a tape's gates.
pub(super) fn folder(paths: &TapePaths) -> PathBuf {
    paths.run().join("gates")
}

pub(super) fn check_name(name: &str) -> Result<()> {
    let is_name_byte = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_name_byte) {
        return Err(Error::Option("a gate's name is 1 to 64 letters, digits, - or _"));
    }
    Ok(())
}
