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
use crate::index::{PageEntry, append_index, open_page, open_root, root_bytes};
use crate::keys::{Binding, Cipher, DayKeys, Hasher, KeyOfLeaf, Leaf, LeafKeys, Piece, StoreId, StoreKeys};
use crate::manifest::{FileDigest, FileEntry};
use crate::schema::TickSchema;
use crate::table::TableReader;

const MAGIC: &[u8; 8] = b"UNISTORE";
const END_MAGIC: &[u8; 4] = b"UIDX";
/// Bytes of the file's header.
const HEADER: usize = 64;
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
    /// Of the blocks so far.
    headers: Vec<BlockHeader>,
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
            headers: Vec::new(),
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
            self.headers.push(*head);
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
        let (mut index, headers) = (Vec::new(), std::mem::take(&mut self.headers));
        let (keys, random) = (sealer.keys, sealer.random);
        let root_start = append_index(keys, random, &self.id, &headers, HEADER as u64, &mut index)?;
        let root_at = self.file_entry.bytes + root_start as u64;
        let mut end_mark = [0; END];
        end_mark[..4].copy_from_slice(END_MAGIC);
        end_mark[8..16].copy_from_slice(&root_at.to_le_bytes());
        let crc = crc32c::crc32c(&end_mark[..20]);
        end_mark[20..].copy_from_slice(&crc.to_le_bytes());
        index.extend_from_slice(&end_mark);
        let mut file =
            OpenOptions::new().append(true).open(&self.file_path).with_context("open", &self.file_path)?;
        file.write_all(&index).with_context("append to", &self.file_path)?;
        self.hasher.update(&index);
        self.file_entry.bytes += index.len() as u64;
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

impl BlockLocation {
    /// Returns where the block ends.
    fn end(&self) -> u64 {
        self.offset + u64::from(self.head.bytes)
    }
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

    /// Returns how long the file was when it was opened.
    pub fn length(&self) -> u64 {
        self.length
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
        match self.root(keys, id, entry) {
            Ok((pages, pages_at)) => self.read_pages(keys, id, &pages, pages_at, problems),
            Err(e) => {
                problems(e);
                let mut places = Vec::new();
                self.walk_blocks(keys, id, HEADER as u64, 0..u32::MAX, &mut places, problems);
                places
            }
        }
    }

    /// Reads the root of the index. Returns it and where the pages begin.
    fn root(&self, keys: &StoreKeys, id: &FileId, entry: &FileEntry) -> Result<(Vec<PageEntry>, u64)> {
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
        let root_at = u64::from_le_bytes(end_mark[8..16].try_into().expect("eight bytes"));
        // The root is no longer than the file.
        let bytes = root_bytes(entry.blocks);
        if root_at.checked_add(bytes) != Some(end_at) {
            return damage_error(end_at, "the index has another length than the manifest says");
        }
        let mut root = vec![0; bytes as usize];
        self.block_file.read_exact_at(&mut root, root_at).with_context("read", &self.file_path)?;
        let Some(pages) = open_root(keys, id, entry.blocks, &mut root) else {
            return damage_error(root_at, "the index is not as it was sealed");
        };
        let page_bytes: u64 = pages.iter().map(|page| u64::from(page.bytes)).sum();
        let pages_at = root_at.checked_sub(page_bytes).filter(|pages_at| *pages_at >= HEADER as u64);
        let begins = pages.first().is_none_or(|page| page.first_offset == HEADER as u64);
        let are_in_order = pages.windows(2).all(|pair| pair[0].first_offset < pair[1].first_offset);
        match pages_at.filter(|_| begins && are_in_order) {
            Some(pages_at) => Ok((pages, pages_at)),
            None => damage_error(root_at, "an index that is none of this file"),
        }
    }

    /// Reads the headers of all blocks from the pages, which begin at `pages_at`. Those of a damaged page are read from the blocks.
    fn read_pages(
        &self,
        keys: &StoreKeys,
        id: &FileId,
        pages: &[PageEntry],
        pages_at: u64,
        problems: &mut impl FnMut(Error),
    ) -> Vec<BlockLocation> {
        let (mut places, mut headers, mut page_at) = (Vec::new(), Vec::new(), pages_at);
        let mut first_number = 0;
        for (number, page) in pages.iter().enumerate() {
            let end = pages.get(number + 1).map_or(pages_at, |next| next.first_offset);
            headers.clear();
            let mut read = || {
                let mut sealed = vec![0; page.bytes as usize];
                self.block_file.read_exact_at(&mut sealed, page_at).with_context("read", &self.file_path)?;
                open_page(keys, id, (number, page), first_number, sealed, &mut headers)
                    .map_err(|reason| Error::damage(&self.file_path, page_at, reason))?;
                let bytes: u64 = headers.iter().map(|head| u64::from(head.bytes)).sum();
                match page.first_offset.checked_add(bytes) == Some(end) {
                    true => Ok(()),
                    false => {
                        Err(Error::damage(&self.file_path, page_at, "a page of other blocks than it has"))
                    }
                }
            };
            match read() {
                Ok(()) => {
                    let mut offset = page.first_offset;
                    for head in &headers {
                        places.push(BlockLocation { offset, head: *head });
                        offset += u64::from(head.bytes);
                    }
                }
                Err(e) => {
                    problems(e);
                    let numbers = first_number..first_number + page.blocks;
                    let found = places.len();
                    self.walk_blocks(keys, id, page.first_offset, numbers, &mut places, problems);
                    let lost = page.blocks as usize - (places.len() - found);
                    if lost > 0 {
                        let offset = places[found..].last().map_or(page.first_offset, BlockLocation::end);
                        let reason = format!("{lost} blocks from here on cannot be found without the index");
                        problems(Error::damage(&self.file_path, offset, reason));
                    }
                }
            }
            page_at += u64::from(page.bytes);
            first_number += page.blocks;
        }
        places
    }

    /// Finds the blocks with these numbers by their headers, as far as they follow one another. The first one is at this offset.
    fn walk_blocks(
        &self,
        keys: &StoreKeys,
        id: &FileId,
        first_offset: u64,
        numbers: Range<u32>,
        places: &mut Vec<BlockLocation>,
        problems: &mut impl FnMut(Error),
    ) {
        let (mut offset, mut start_bytes) = (first_offset, [0; header::START]);
        for number in numbers {
            if offset + header::START as u64 > self.length {
                break;
            }
            if let Err(source) = self.block_file.read_exact_at(&mut start_bytes, offset) {
                problems(Error::Io { doing: "read", path: self.file_path.clone(), source });
                break;
            }
            // The index follows the last block, and it is known to be damaged.
            let Some(head) = open_header(keys, id, number, &mut start_bytes) else { break };
            if offset + u64::from(head.bytes) > self.length {
                problems(Error::block_damage(&self.file_path, number, offset, "the block is cut short"));
                break;
            }
            places.push(BlockLocation { offset, head });
            offset += u64::from(head.bytes);
        }
    }

    pub fn path(&self) -> &Path {
        &self.file_path
    }
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
            let columns = long_columns(block, class_start, sizes, specials, head.rows as usize)
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
    rows: usize,
) -> std::result::Result<Vec<Range<usize>>, &'static str> {
    let mut table = TableReader::open(block, class_start, sizes, specials, rows)?;
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
