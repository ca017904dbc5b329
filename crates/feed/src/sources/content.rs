//! The hash of what was read of a source that was found while running: each of its marks of progress has that of the
//! bytes before it, so that a later run knows whether they are still the same.

use crate::block::{Block, BlockMessageKind};
use crate::sources::open;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The hash of a source's bytes, unpacked, up to a place.
#[derive(Clone, Debug, Default)]
pub struct ContentHash {
    hasher: blake3::Hasher,
    end_offset: u64,
}

/// The beginning of a file.
#[derive(Debug)]
pub struct FilePrefix {
    /// Its hash, and how long it is: shorter than was asked for where the file is.
    pub hash: ContentHash,
    /// Whether the file has more.
    pub more: bool,
}

impl ContentHash {
    /// Returns how many bytes were hashed.
    pub fn bytes(&self) -> u64 {
        self.end_offset
    }

    /// Returns the hash in hex.
    pub fn hex(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }

    /// Adds the decoded bytes of the block, and stores in it the hash at each of its marks of progress. Returns false
    /// if the block does not follow the bytes added before.
    pub fn add(&mut self, block: &mut Block) -> bool {
        block.hashes.clear();
        let Block { units, marks, bytes, base, decoded, hashes, .. } = block;
        let throughs = marks.iter().map(|mark| {
            let unit = &units[mark.unit as usize];
            debug_assert!(matches!(unit.kind, BlockMessageKind::Progress { .. }), "a mark is of progress");
            (unit.offset, true)
        });
        let decoded_end = *base + *decoded as u64;
        for (through, is_mark) in throughs.chain([(decoded_end, false)]) {
            let index_of = |offset: u64| usize::try_from(offset.checked_sub(*base)?).ok();
            let Some(part) =
                index_of(self.end_offset).zip(index_of(through)).and_then(|(a, b)| bytes.get(a..b))
            else {
                return false;
            };
            self.hasher.update(part);
            self.end_offset = through;
            if is_mark {
                hashes.push(self.hasher.finalize());
            }
        }
        true
    }
}

/// Hashes the first `bytes` bytes of the file's unpacked content.
///
/// # Errors
/// Fails if the file cannot be read or unpacked.
pub fn prefix(path: &Path, bytes: u64) -> std::io::Result<FilePrefix> {
    let mut reader = open::unpack(File::open(path)?)?;
    let mut hash = ContentHash::default();
    let mut buf = vec![0; READ_BYTES];
    loop {
        let bytes_left = bytes - hash.end_offset;
        let want = bytes_left.clamp(1, READ_BYTES as u64) as usize;
        match reader.read(&mut buf[..want]) {
            Ok(0) => return Ok(FilePrefix { hash, more: false }),
            Ok(_) if bytes_left == 0 => return Ok(FilePrefix { hash, more: true }),
            Ok(n) => {
                hash.hasher.update(&buf[..n]);
                hash.end_offset += n as u64;
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Returns the unpacked length of the file at `path`; reads at most `most` bytes.
///
/// # Errors
/// Fails if the file cannot be read or unpacked.
pub fn length(path: &Path, most: u64) -> std::io::Result<u64> {
    std::io::copy(&mut open::unpack(File::open(path)?)?.take(most), &mut std::io::sink())
}

/// Bytes read at once, so that they are still near when they are hashed.
const READ_BYTES: usize = 1 << 17;
