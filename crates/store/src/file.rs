//! A file of blocks: one schema of one day, as one seal wrote it.
//!
//! ```text
//! header 64 B │ block │ block │ … │ sealed index: offset and header of each block │ end 24 B
//! ```
//!
//! A scan reads the index first. If the index is damaged or cut off, the scan walks the headers. All information about
//! the contents is sealed; day, schema, generation and lengths are unencrypted.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use unitape_model::FieldClass;

use crate::FORMAT_VERSION;
use crate::bits::PAD;
use crate::block::BlockSealer;
use crate::day::Day;
use crate::decode::OpenBlock;
use crate::error::{Error, IoContext, Result};
use crate::header::{self, BlockHeader, ClassSize, chunk_bytes, special};
use crate::keys::{
    Binding, Cipher, DayKeys, Hasher, KeyOfLeaf, Leaf, LeafKeys, Piece, SEAL_BYTES, StoreId, StoreKeys,
};
use crate::manifest::{FileDigest, FileEntry};
use crate::schema::TickSchema;
use crate::table::TableReader;

const MAGIC: &[u8; 8] = b"UNISTORE";
const END_MAGIC: &[u8; 4] = b"UIDX";
/// Bytes of the file's header.
const HEADER: usize = 64;
/// Bytes of an entry of the index.
const ENTRY: usize = 8 + header::HEADER;
/// Bytes at the end of the file.
const END: usize = 24;

/// The identity of a file: its place in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileId {
    pub day: Day,
    pub schema: TickSchema,
    /// The latest generation in it.
    pub generation: u64,
    /// Revision of the manifest that named the file first, if a compaction wrote it; 0 if a seal did.
    pub revision: u64,
    /// A random number of the seal or compaction that wrote it: one that was killed had the same numbers.
    pub commit: u128,
}

impl FileId {
    /// Returns the path of the file in the store's directory. The path has only unitape's own numbers and names, never
    /// text from a file.
    pub fn path(&self, store: &Path) -> PathBuf {
        store.join(self.listed_path())
    }

    /// Returns the path of the file as the manifest lists it.
    pub fn listed_path(&self) -> String {
        let Self { day, schema, generation, revision, .. } = self;
        match revision {
            0 => format!("{day}/{}/{generation:08x}.blocks", schema.name()),
            _ => format!("{day}/{}/{generation:08x}-{revision:08x}.blocks", schema.name()),
        }
    }

    /// Reads the path of a file. The number of its commit is not in the path, and is 0 here.
    pub fn parse_path(path: &str) -> Option<Self> {
        let words: Vec<&str> = path.split('/').collect();
        let [day, schema, name] = words[..] else { return None };
        let numbers = name.strip_suffix(".blocks")?;
        let (generation, revision) = numbers.split_once('-').unwrap_or((numbers, "0"));
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        let id = Self {
            day: day.parse().ok()?,
            schema: TickSchema::from_name(schema)?,
            generation: number(generation)?,
            revision: number(revision)?,
            commit: 0,
        };
        // One way of writing a path is right.
        (id.listed_path() == path).then_some(id)
    }

    /// Returns whether `start` is the beginning, or a part of the beginning, of a file that was begun at this place of
    /// this store.
    pub fn may_begin(&self, start: &[u8], store: StoreId) -> bool {
        start == &self.header(store)[..start.len().min(HEADER)]
    }

    fn header(&self, store: StoreId) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        let mut write_field =
            |offset: usize, bytes: &[u8]| out[offset..offset + bytes.len()].copy_from_slice(bytes);
        write_field(0, MAGIC);
        write_field(8, &FORMAT_VERSION.to_le_bytes());
        write_field(16, &store.0);
        write_field(32, &self.generation.to_le_bytes());
        write_field(40, &self.day.0.to_le_bytes());
        write_field(44, &[self.schema as u8]);
        write_field(48, &self.revision.to_le_bytes());
        let crc = crc32c::crc32c(&out[..60]);
        out[60..].copy_from_slice(&crc.to_le_bytes());
        out
    }
}

/// A file being written. It is opened again for each write: a tape may have more days than a process may have files.
#[derive(Debug)]
pub(crate) struct FileWriter {
    id: FileId,
    file_path: PathBuf,
    index_bytes: Vec<u8>,
    hasher: Hasher,
    pub file_entry: FileEntry,
    pub ordinals: (u64, u64),
}

impl FileWriter {
    /// Begins the file and replaces a file that a killed seal may have left.
    pub fn create(store: &Path, store_id: StoreId, id: FileId) -> Result<Self> {
        let path = id.path(store);
        let folder = path.parent().expect("a file in a folder");
        std::fs::create_dir_all(folder).with_context("make", folder)?;
        let (header, mut hasher) = (id.header(store_id), Hasher::new());
        std::fs::write(&path, header).with_context("write", &path)?;
        hasher.update(&header);
        let entry = FileEntry {
            schema: id.schema,
            bytes: HEADER as u64,
            blocks: 0,
            rows: 0,
            raw_bytes: 0,
            ts_min: i64::MAX,
            ts_max: i64::MIN,
        };
        Ok(Self {
            id,
            file_path: path,
            index_bytes: Vec::new(),
            hasher,
            file_entry: entry,
            ordinals: (u64::MAX, 0),
        })
    }

    /// Appends blocks that follow each other in `bytes`.
    pub fn append_blocks(&mut self, bytes: &[u8], headers: &[BlockHeader]) -> Result<()> {
        let file = OpenOptions::new().append(true).open(&self.file_path);
        file.and_then(|mut f| f.write_all(bytes)).with_context("append to", &self.file_path)?;
        self.hasher.update(bytes);
        let e = &mut self.file_entry;
        for head in headers {
            self.index_bytes.extend_from_slice(&e.bytes.to_le_bytes());
            self.index_bytes.extend_from_slice(&head.encode());
            e.bytes += u64::from(head.bytes);
            e.blocks += 1;
            e.rows += u64::from(head.rows);
            e.raw_bytes += u64::from(head.raw_bytes);
            e.ts_min = e.ts_min.min(head.ts_min.0);
            e.ts_max = e.ts_max.max(head.ts_max.0);
            self.ordinals.0 = self.ordinals.0.min(head.ordinal_min);
            self.ordinals.1 = self.ordinals.1.max(head.ordinal_max);
        }
        Ok(())
    }

    /// Writes the index and flushes all of it to the disk.
    pub fn finish(&mut self, sealer: &BlockSealer<'_>) -> Result<()> {
        let mut index = Vec::with_capacity(self.index_bytes.len() + SEAL_BYTES + END);
        let binding = index_binding(sealer.keys, &self.id, self.file_entry.blocks);
        sealer.keys.index.seal(sealer.random, binding.bytes(), &self.index_bytes, &mut index)?;
        let mut end_mark = [0; END];
        end_mark[..4].copy_from_slice(END_MAGIC);
        end_mark[8..16].copy_from_slice(&self.file_entry.bytes.to_le_bytes());
        let crc = crc32c::crc32c(&end_mark[..20]);
        end_mark[20..].copy_from_slice(&crc.to_le_bytes());
        index.extend_from_slice(&end_mark);
        let mut file =
            OpenOptions::new().append(true).open(&self.file_path).with_context("open", &self.file_path)?;
        file.write_all(&index).with_context("append to", &self.file_path)?;
        self.hasher.update(&index);
        self.file_entry.bytes += index.len() as u64;
        self.index_bytes = Vec::new();
        file.sync_all().with_context("sync", &self.file_path)
    }

    pub fn path(&self) -> &Path {
        &self.file_path
    }

    /// Returns the length and the hash of the bytes written so far.
    pub fn digest(&self) -> FileDigest {
        FileDigest { bytes: self.file_entry.bytes, hash: self.hasher.clone().finish() }
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
    block_file: File,
    file_path: PathBuf,
    length: u64,
}

impl BlockFile {
    /// Opens the file.
    pub fn open(store: &Path, id: &FileId) -> Result<Self> {
        let path = id.path(store);
        let file = unitape_tape::open_regular(&path).with_context("open", &path)?;
        let length = file.metadata().with_context("look at", &path)?.len();
        Ok(Self { block_file: file, file_path: path, length })
    }

    /// Finds the blocks of the file and reports each problem on the way.
    pub fn places(
        &self,
        keys: &StoreKeys,
        id: &FileId,
        entry: &FileEntry,
        problems: &mut impl FnMut(Error),
    ) -> Vec<BlockLocation> {
        let mut head = [0; HEADER];
        if self.block_file.read_exact_at(&mut head, 0).is_err() {
            problems(Error::damage(&self.file_path, 0, "the file is cut short"));
            return Vec::new();
        }
        if head[60..] != crc32c::crc32c(&head[..60]).to_le_bytes() {
            problems(Error::damage(&self.file_path, 0, "the checksum of the file's header does not match"));
        } else if head != id.header(keys.store) {
            problems(Error::damage(&self.file_path, 0, "the file belongs to another place or version"));
            return Vec::new();
        }
        match self.index(keys, id, entry) {
            Ok(places) => places,
            Err(e) => {
                problems(e);
                self.walk_blocks(keys, id, problems)
            }
        }
    }

    fn index(&self, keys: &StoreKeys, id: &FileId, entry: &FileEntry) -> Result<Vec<BlockLocation>> {
        let damage_error = |offset: u64, reason: &str| Err(Error::damage(&self.file_path, offset, reason));
        if self.length != entry.bytes {
            let length_reason =
                format!("{} bytes long, not {} as the manifest says", self.length, entry.bytes);
            return Err(Error::damage(&self.file_path, self.length.min(entry.bytes), length_reason));
        }
        let end_at = self.length.saturating_sub(END as u64);
        let mut end_mark = [0; END];
        self.block_file.read_exact_at(&mut end_mark, end_at).with_context("read", &self.file_path)?;
        if end_mark[..4] != *END_MAGIC || end_mark[20..] != crc32c::crc32c(&end_mark[..20]).to_le_bytes() {
            return damage_error(end_at, "the end of the index does not match its checksum");
        }
        let index_at = u64::from_le_bytes(end_mark[8..16].try_into().expect("eight bytes"));
        // The index is no longer than the file.
        let bytes = u64::from(entry.blocks) * ENTRY as u64 + SEAL_BYTES as u64;
        if index_at.checked_add(bytes) != Some(end_at) {
            return damage_error(end_at, "the index has another length than the manifest says");
        }
        let mut index = vec![0; bytes as usize];
        self.block_file.read_exact_at(&mut index, index_at).with_context("read", &self.file_path)?;
        let binding = index_binding(keys, id, entry.blocks);
        let Some(index) = keys.index.open(binding.bytes(), &mut index) else {
            return damage_error(index_at, "the index is not as it was sealed");
        };
        let mut places = Vec::with_capacity(index.len() / ENTRY);
        let mut next_offset = HEADER as u64;
        for (i, e) in index.chunks_exact(ENTRY).enumerate() {
            let offset = u64::from_le_bytes(e[..8].try_into().expect("eight bytes"));
            let head = BlockHeader::decode(&e[8..]);
            let sound =
                head.ok().filter(|h| offset == next_offset && offset + u64::from(h.bytes) <= index_at);
            let Some(head) = sound.filter(|head| head.number as usize == i) else {
                return damage_error(
                    index_at + (i * ENTRY) as u64,
                    "an entry of the index that is no block's",
                );
            };
            next_offset = offset + u64::from(head.bytes);
            places.push(BlockLocation { offset, head });
        }
        Ok(places)
    }

    /// Finds blocks by their headers, as far as they follow one another.
    fn walk_blocks(
        &self,
        keys: &StoreKeys,
        id: &FileId,
        problems: &mut impl FnMut(Error),
    ) -> Vec<BlockLocation> {
        let (mut places, mut offset) = (Vec::new(), HEADER as u64);
        let mut start_bytes = [0; header::START];
        while offset + header::START as u64 <= self.length {
            if let Err(source) = self.block_file.read_exact_at(&mut start_bytes, offset) {
                problems(Error::Io { doing: "read", path: self.file_path.clone(), source });
                break;
            }
            let number = places.len() as u32;
            // The index follows the last block, and it is known to be damaged.
            let Some(head) = open_header(keys, id, number, &mut start_bytes) else { break };
            if offset + u64::from(head.bytes) > self.length {
                problems(Error::block_damage(&self.file_path, number, offset, "the block is cut short"));
                break;
            }
            places.push(BlockLocation { offset, head });
            offset += u64::from(head.bytes);
        }
        places
    }

    pub fn path(&self) -> &Path {
        &self.file_path
    }
}

fn index_binding(keys: &StoreKeys, id: &FileId, blocks: u32) -> Binding {
    Binding::new(Piece::Index, keys.store).file(id).bind_number(blocks.into())
}

/// Opens the header of a block at the beginning of `start`. Returns `None` if the header was changed after the seal.
fn open_header(keys: &StoreKeys, id: &FileId, number: u32, start: &mut [u8]) -> Option<BlockHeader> {
    let (clear, sealed) = start.get_mut(..header::START)?.split_at_mut(header::CLEAR);
    let binding = BlockHeader::binding(keys, id, number);
    let head = BlockHeader::decode(keys.index.open(binding.bytes(), sealed)?).ok()?;
    let is_same = clear[..4] == header::MAGIC && clear[4..] == head.bytes.to_le_bytes();
    (is_same && head.number == number).then_some(head)
}

/// Opens blocks of a store.
#[derive(Debug)]
pub(crate) struct BlockOpener<'a> {
    pub keys: &'a StoreKeys,
    pub days: &'a DayKeys,
    pub leaf_keys: LeafKeys<'a>,
}

impl<'a> BlockOpener<'a> {
    pub fn new(keys: &'a StoreKeys, days: &'a DayKeys) -> Self {
        Self { keys, days, leaf_keys: LeafKeys::new(keys) }
    }

    /// Reads a block into `out` and opens its chunks of these classes: market data alone, or all.
    pub fn read_block<'b>(
        &mut self,
        file: &BlockFile,
        id: &FileId,
        location: &BlockLocation,
        classes: &[FieldClass],
        out: &'b mut Vec<u8>,
    ) -> Result<OpenBlock<'b>> {
        let head = &location.head;
        let bytes = head.end_of(*classes.last().expect("a class at least"));
        out.clear();
        out.resize(bytes + PAD, 0);
        file.block_file
            .read_exact_at(&mut out[..bytes], location.offset)
            .with_context("read", &file.file_path)?;
        let parts = self.open(id, head, classes, out).map_err(|(offset, reason)| {
            Error::block_damage(&file.file_path, head.number, location.offset + offset as u64, reason)
        })?;
        Ok(OpenBlock { bytes: out, parts })
    }

    /// Opens the chunks of a block in place, and returns their ranges. The offset of an error is in the block.
    pub fn open(
        &mut self,
        id: &FileId,
        head: &BlockHeader,
        classes: &[FieldClass],
        block: &mut [u8],
    ) -> OpenedChunks {
        // The index has a copy; both are sealed, so a difference is damage of the block.
        if open_header(self.keys, id, head.number, block) != Some(*head) {
            return Err((0, "the block header is not the one that the index has".to_owned()));
        }
        open_chunks(self.keys.store, &mut (&mut self.leaf_keys, self.days), id, head, classes, block)
    }
}

/// Where the chunks of each opened class of a block begin, in the order of [`FieldClass::ALL`]; or the offset and the words of a
/// fault.
pub(crate) type OpenedChunks = std::result::Result<[Option<usize>; 3], (usize, String)>;

/// Opens the chunks of a block of `store` in their places.
pub(crate) fn open_chunks(
    store: StoreId,
    keys: &mut impl KeyOfLeaf,
    id: &FileId,
    head: &BlockHeader,
    classes: &[FieldClass],
    block: &mut [u8],
) -> OpenedChunks {
    let mut parts = [None; 3];
    for class in classes {
        let (end, sizes) = (head.end_of(*class), head.class_size(*class));
        let class_start = end - sizes.bytes as usize;
        let leaf = Leaf { day: id.day, schema: id.schema, instrument: head.instrument, class: *class };
        let cipher = keys.key_of(leaf).map_err(|e| (class_start, e.to_string()))?;
        let binding = Binding::new(Piece::Chunk, store).file(id);
        let open_chunk = |block: &mut [u8], chunk: Range<usize>, number| {
            let binding = binding.chunk(head, *class, number);
            let changed = || (chunk.start, format!("the {} data are not as they were sealed", class.name()));
            cipher.open(binding.bytes(), &mut block[chunk.clone()]).map(drop).ok_or_else(changed)
        };
        open_chunk(block, class_start..class_start + sizes.first_bytes as usize, 0)?;
        if sizes.is_split() {
            let specials = special::of_class(*class, head.single_tape().is_none()).len();
            let columns = long_columns(block, class_start, sizes, specials)
                .map_err(|reason| (class_start, reason.to_owned()))?;
            for (column, number) in columns.into_iter().zip(1..) {
                open_chunk(block, column.start..column.start + chunk_bytes(column.len()), number)?;
            }
        }
        parts[class.index()] = Some(class_start);
    }
    Ok(parts)
}

/// Returns where the columns with chunks of their own are.
fn long_columns(
    block: &[u8],
    class_start: usize,
    sizes: ClassSize,
    specials: usize,
) -> std::result::Result<Vec<Range<usize>>, &'static str> {
    let mut table = TableReader::open(block, class_start, sizes, specials)?;
    let mut columns = Vec::new();
    while let Some(entry) = table.next()? {
        columns.extend(entry.long_values());
    }
    Ok(columns)
}

impl KeyOfLeaf for (&mut LeafKeys<'_>, &DayKeys) {
    fn key_of(&mut self, leaf: Leaf) -> Result<&Cipher> {
        self.0.open(leaf, self.1)
    }
}
