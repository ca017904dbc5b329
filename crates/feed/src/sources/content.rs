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

/// Hashes the unpacked content of a file from its start on.
pub struct PrefixReader {
    reader: Box<dyn Read>,
    hash: ContentHash,
    buffer: Vec<u8>,
}

impl PrefixReader {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let reader = open::unpack(File::open(path)?)?;
        Ok(Self { reader, hash: ContentHash::default(), buffer: vec![0; READ_BYTES] })
    }

    /// Returns the hash of the bytes that were read.
    pub fn hash(&self) -> &ContentHash {
        &self.hash
    }

    /// Reads on until `bytes` bytes are read, or the file ends.
    ///
    /// # Errors
    /// Fails if the file cannot be read or unpacked.
    pub fn read_to(&mut self, bytes: u64) -> std::io::Result<()> {
        while self.hash.end_offset < bytes {
            let want = (bytes - self.hash.end_offset).min(READ_BYTES as u64) as usize;
            match self.read_buffer(want)? {
                0 => break,
                count => {
                    self.hash.hasher.update(&self.buffer[..count]);
                    self.hash.end_offset += count as u64;
                }
            }
        }
        Ok(())
    }

    fn read_buffer(&mut self, want: usize) -> std::io::Result<usize> {
        loop {
            match self.reader.read(&mut self.buffer[..want]) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

/// Hashes the first `bytes` bytes of the file's unpacked content.
///
/// # Errors
/// Fails if the file cannot be read or unpacked.
pub fn prefix(path: &Path, bytes: u64) -> std::io::Result<FilePrefix> {
    let mut reader = PrefixReader::open(path)?;
    reader.read_to(bytes)?;
    let more = reader.hash.end_offset == bytes && reader.read_buffer(1)? > 0;
    Ok(FilePrefix { hash: reader.hash, more })
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
