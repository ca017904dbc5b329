//! A file of blocks: one schema of one day, as one seal wrote it.
//!
//! ```text
//! header 64 B │ block │ block │ … │ index: offset and header of each block │ end 24 B
//! ```
//!
//! The index is what a scan looks at first. Should it be damaged or cut off, the headers are walked instead.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use unitape_tape::TapeId;

use crate::FORMAT_VERSION;
use crate::bits::PAD;
use crate::block::{self, BlockHeader};
use crate::day::Day;
use crate::error::{Error, IoContext, Result};
use crate::manifest::FileEntry;
use crate::schema::TickSchema;

const MAGIC: &[u8; 8] = b"UNISTORE";
const END_MAGIC: &[u8; 4] = b"UIDX";
/// Bytes of the file's header.
const HEADER: usize = 64;
/// Bytes of an entry of the index.
const ENTRY: usize = 8 + block::HEADER;
/// Bytes at the end of the file.
const END: usize = 24;

/// The identity of a file: its place in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId {
    pub day: Day,
    pub schema: TickSchema,
    pub generation: u64,
    pub tape: TapeId,
}

impl FileId {
    /// Its path below the store's directory. Made of numbers and names of ours, never of text from a file.
    pub fn path(&self, store: &Path) -> PathBuf {
        store
            .join(self.day.to_string())
            .join(self.schema.name())
            .join(format!("{:08x}.blocks", self.generation))
    }

    fn header(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, MAGIC);
        put(8, &FORMAT_VERSION.to_le_bytes());
        put(16, &self.tape.0.to_le_bytes());
        put(32, &self.generation.to_le_bytes());
        put(40, &self.day.0.to_le_bytes());
        put(44, &[self.schema as u8]);
        let crc = crc32c::crc32c(&out[..60]);
        out[60..].copy_from_slice(&crc.to_le_bytes());
        out
    }
}

/// A file being written. It is opened again for each stripe: a tape may have more days than a process may have files.
#[derive(Debug)]
pub(crate) struct FileWriter {
    path: PathBuf,
    index: Vec<u8>,
    pub entry: FileEntry,
    pub ordinals: (u64, u64),
}

impl FileWriter {
    /// Begins the file, in place of one that a killed seal may have left.
    pub fn create(store: &Path, id: FileId) -> Result<Self> {
        let path = id.path(store);
        let folder = path.parent().expect("a file in a folder");
        std::fs::create_dir_all(folder).with_context("make", folder)?;
        std::fs::write(&path, id.header()).with_context("write", &path)?;
        let entry = FileEntry {
            schema: id.schema,
            bytes: HEADER as u64,
            blocks: 0,
            rows: 0,
            raw_bytes: 0,
            ts_min: i64::MAX,
            ts_max: i64::MIN,
        };
        Ok(Self { path, index: Vec::new(), entry, ordinals: (u64::MAX, 0) })
    }

    /// Appends blocks that follow each other in `bytes`.
    pub fn append(&mut self, bytes: &[u8], headers: &[BlockHeader]) -> Result<()> {
        let file = OpenOptions::new().append(true).open(&self.path);
        file.and_then(|mut f| f.write_all(bytes)).with_context("append to", &self.path)?;
        let e = &mut self.entry;
        for head in headers {
            self.index.extend_from_slice(&e.bytes.to_le_bytes());
            self.index.extend_from_slice(&head.encode());
            e.bytes += u64::from(head.bytes);
            e.blocks += 1;
            e.rows += u64::from(head.rows);
            e.raw_bytes += u64::from(head.raw_bytes);
            e.ts_min = e.ts_min.min(head.ts_min.0);
            e.ts_max = e.ts_max.max(head.ts_max.0);
            self.ordinals.0 = self.ordinals.0.min(head.ordinal_first);
            self.ordinals.1 = self.ordinals.1.max(head.ordinal_last);
        }
        Ok(())
    }

    /// Writes the index and flushes all of it to the disk.
    pub fn finish(&mut self) -> Result<()> {
        let mut end = [0; END];
        end[..4].copy_from_slice(END_MAGIC);
        end[4..8].copy_from_slice(&self.entry.blocks.to_le_bytes());
        end[8..16].copy_from_slice(&self.entry.bytes.to_le_bytes());
        end[16..20].copy_from_slice(&crc32c::crc32c(&self.index).to_le_bytes());
        let crc = crc32c::crc32c(&end[..20]);
        end[20..].copy_from_slice(&crc.to_le_bytes());
        let mut file = OpenOptions::new().append(true).open(&self.path).with_context("open", &self.path)?;
        file.write_all(&self.index)
            .and_then(|()| file.write_all(&end))
            .with_context("append to", &self.path)?;
        self.entry.bytes += (self.index.len() + END) as u64;
        self.index = Vec::new();
        file.sync_all().with_context("sync", &self.path)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The place of a block, and its header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockLocation {
    pub offset: u64,
    pub head: BlockHeader,
}

/// A file of blocks to read from.
#[derive(Debug)]
pub(crate) struct BlockFile {
    file: File,
    path: PathBuf,
    length: u64,
}

impl BlockFile {
    /// Opens the file.
    pub fn open(store: &Path, id: &FileId) -> Result<Self> {
        let path = id.path(store);
        let file = File::open(&path).with_context("open", &path)?;
        let length = file.metadata().with_context("look at", &path)?.len();
        Ok(Self { file, path, length })
    }

    /// The blocks that can be found, and what was wrong on the way.
    pub fn places(
        &self,
        id: &FileId,
        entry: &FileEntry,
        problems: &mut impl FnMut(Error),
    ) -> Vec<BlockLocation> {
        let mut head = [0; HEADER];
        if self.file.read_exact_at(&mut head, 0).is_err() {
            problems(Error::damage(&self.path, 0, "the file is cut short"));
            return Vec::new();
        }
        if head[60..] != crc32c::crc32c(&head[..60]).to_le_bytes() {
            problems(Error::damage(&self.path, 0, "the checksum of the file's header does not match"));
        } else if head != id.header() {
            problems(Error::damage(&self.path, 0, "the file belongs to another place or version"));
            return Vec::new();
        }
        match self.index(entry) {
            Ok(places) => places,
            Err(e) => {
                problems(e);
                self.walk(problems)
            }
        }
    }

    fn index(&self, entry: &FileEntry) -> Result<Vec<BlockLocation>> {
        let bad = |offset: u64, what: &str| Err(Error::damage(&self.path, offset, what));
        if self.length != entry.bytes {
            let what = format!("{} bytes long, not {} as the manifest says", self.length, entry.bytes);
            return Err(Error::damage(&self.path, self.length.min(entry.bytes), what));
        }
        let end_at = self.length.saturating_sub(END as u64);
        let mut end = [0; END];
        self.file.read_exact_at(&mut end, end_at).with_context("read", &self.path)?;
        if end[..4] != *END_MAGIC || end[20..] != crc32c::crc32c(&end[..20]).to_le_bytes() {
            return bad(end_at, "the end of the index does not match its checksum");
        }
        let blocks = u64::from(u32::from_le_bytes(end[4..8].try_into().expect("four bytes")));
        let index_at = u64::from_le_bytes(end[8..16].try_into().expect("eight bytes"));
        // The index is no longer than the file.
        if index_at.checked_add(blocks * ENTRY as u64) != Some(end_at) || blocks != u64::from(entry.blocks) {
            return bad(end_at, "the index has another length than it says");
        }
        let mut index = vec![0; (end_at - index_at) as usize];
        self.file.read_exact_at(&mut index, index_at).with_context("read", &self.path)?;
        if end[16..20] != crc32c::crc32c(&index).to_le_bytes() {
            return bad(index_at, "the checksum of the index does not match");
        }
        let mut places = Vec::with_capacity(index.len() / ENTRY);
        let mut next = HEADER as u64;
        for (i, e) in index.chunks_exact(ENTRY).enumerate() {
            let offset = u64::from_le_bytes(e[..8].try_into().expect("eight bytes"));
            let head = BlockHeader::decode(&e[8..]);
            let sound = head.ok().filter(|h| offset == next && offset + u64::from(h.bytes) <= index_at);
            let Some(head) = sound else {
                return bad(index_at + (i * ENTRY) as u64, "an entry of the index that is no block's");
            };
            next = offset + u64::from(head.bytes);
            places.push(BlockLocation { offset, head });
        }
        Ok(places)
    }

    /// Finds blocks by their headers, as far as they follow one another.
    fn walk(&self, problems: &mut impl FnMut(Error)) -> Vec<BlockLocation> {
        let (mut places, mut offset) = (Vec::new(), HEADER as u64);
        let mut head = [0; block::HEADER];
        while offset + block::HEADER as u64 <= self.length {
            if let Err(source) = self.file.read_exact_at(&mut head, offset) {
                problems(Error::Io { doing: "read", path: self.path.clone(), source });
                break;
            }
            let number = places.len() as u32;
            match BlockHeader::decode(&head) {
                Ok(head) if offset + u64::from(head.bytes) <= self.length => {
                    places.push(BlockLocation { offset, head });
                    offset += u64::from(head.bytes);
                }
                Ok(_) => {
                    problems(Error::block_damage(&self.path, number, offset, "the block is cut short"));
                    break;
                }
                // The index follows the last block, and it is known to be damaged.
                Err(_) => break,
            }
        }
        places
    }

    /// Reads a block into `out`, with room after it to load from.
    pub fn read(&self, place: &BlockLocation, out: &mut Vec<u8>) -> Result<()> {
        let bytes = place.head.bytes as usize;
        out.clear();
        out.resize(bytes + PAD, 0);
        self.file.read_exact_at(&mut out[..bytes], place.offset).with_context("read", &self.path)?;
        // The index has a copy; its own checksum says which of the two is damaged.
        if out[..block::HEADER] != place.head.encode() {
            let what = "the block header is not the one that the index has";
            return Err(Error::block_damage(&self.path, place.head.number, place.offset, what));
        }
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}
