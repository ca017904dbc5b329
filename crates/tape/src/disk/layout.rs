//! The layout of a tape's directory: names, `tape.toml`, the header page of a segment.
//!
//! Drawn byte by byte in `docs/formats-tape.md`; the offsets are asserted below.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use unitape_model::LINE;

use crate::disk::sys;
use crate::error::{Error, FileContext, Result};

/// Version of everything in this file.
pub const FORMAT_VERSION: u64 = 1;
/// Bytes before the data of a segment file.
pub const HEADER_PAGE: u64 = 4096;
/// Bytes of tape under one checksum (less where a whole segment is smaller).
pub const CHECKSUM_SPAN: u64 = 64 * 1024;
/// Smallest segment; meant for tests, a real tape has at least 1 MiB.
pub const SEGMENT_BYTES_MIN: u64 = 4096;
/// Greatest segment.
pub const SEGMENT_BYTES_MAX: u64 = 1 << 36;

/// Greatest index of a segment. unitape ignores files with a greater index.
pub(crate) const SEGMENT_INDEX_MAX: u64 = (1 << 27) - 1;
/// No position or ordinal is greater. A greater value is damage, and sums cannot overflow.
pub(crate) const PLACE_MAX: u64 = 1 << 63;

/// Identity of a tape, 128 bits chosen by its creator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TapeId(pub u128);

impl TapeId {
    /// Makes a new identity from the system's random numbers.
    ///
    /// # Errors
    /// Fails if the system refuses to read `/dev/urandom`.
    pub fn random() -> Result<Self> {
        let path = Path::new("/dev/urandom");
        let mut bytes = [0; 16];
        fs::File::open(path)
            .and_then(|mut f| std::io::Read::read_exact(&mut f, &mut bytes))
            .with_context("read", path)?;
        Ok(Self(u128::from_le_bytes(bytes)))
    }
}

impl std::fmt::Display for TapeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The contents of `tape.toml`; written once when the tape is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapeManifest {
    /// Identity of the tape.
    pub id: TapeId,
    /// Bytes of frames in a segment, a power of two.
    pub segment_bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct TapeManifestToml {
    format: u64,
    tape: String,
    segment_bytes: u64,
    checksum_span: u64,
}

impl TapeManifest {
    /// Reads and checks `tape.toml` of `dir`.
    pub fn load(dir: &Path) -> Result<Self> {
        let path = dir.join("tape.toml");
        let text = match read_small(&path).map(String::from_utf8) {
            Ok(Ok(text)) => text,
            Ok(Err(_)) => return Err(Error::damage(&path, 0, "tape.toml is not text")),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::NotATape { path: dir.into(), reason: "there is no tape.toml in it" });
            }
            Err(e) => return Err(e).with_context("read", &path),
        };
        let damage_error = |reason: String| Error::damage(&path, 0, reason);
        let version = text.parse::<toml::Table>().map_err(|e| damage_error(e.message().into()))?;
        match version.get("format").and_then(toml::Value::as_integer) {
            Some(v) if v == FORMAT_VERSION as i64 => {}
            Some(v) => {
                return Err(Error::ForeignVersion {
                    path,
                    version: v.unsigned_abs(),
                    supported_version: FORMAT_VERSION,
                });
            }
            None => return Err(Error::NotATape { path: dir.into(), reason: "tape.toml names no format" }),
        }
        let meta: TapeManifestToml = toml::from_str(&text).map_err(|e| damage_error(e.message().into()))?;
        let id = u128::from_str_radix(&meta.tape, 16).map_err(|e| damage_error(format!("tape id: {e}")))?;
        check_segment_bytes(meta.segment_bytes).map_err(|e| damage_error(e.to_string()))?;
        if meta.checksum_span != CHECKSUM_SPAN {
            return Err(damage_error(format!(
                "checksum_span is {}, not {CHECKSUM_SPAN}",
                meta.checksum_span
            )));
        }
        Ok(Self { id: TapeId(id), segment_bytes: meta.segment_bytes })
    }

    /// Writes the text of `tape.toml`.
    pub(crate) fn text(&self) -> String {
        format!(
            "format = {FORMAT_VERSION}\ntape = \"{}\"\nsegment_bytes = {}\nchecksum_span = {CHECKSUM_SPAN}\n",
            self.id, self.segment_bytes
        )
    }

    pub(crate) fn store(&self, paths: &TapePaths) -> Result<()> {
        let text = self.text();
        let (temp, path) = (paths.run().join("tape.toml"), paths.tape_dir.join("tape.toml"));
        let file = sys::open(&temp, fs::OpenOptions::new().write(true).create(true).truncate(true));
        let file = file.with_context("create", &temp)?;
        sys::write_at(&file, text.as_bytes(), 0).with_context("write", &temp)?;
        sys::sync_data(&file).with_context("flush", &temp)?;
        sys::rename(&temp, &path).with_context("rename", &path)?;
        sync_dir(&paths.tape_dir)
    }

    pub(crate) fn span(&self) -> u64 {
        CHECKSUM_SPAN.min(self.segment_bytes)
    }
}

pub(crate) fn check_segment_bytes(bytes: u64) -> Result<()> {
    if bytes.is_power_of_two() && (SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&bytes) {
        Ok(())
    } else {
        Err(Error::Option("segment_bytes must be a power of two from 4 KiB to 64 GiB"))
    }
}

/// Flushes the names in a directory to the disk.
pub(crate) fn sync_dir(path: &Path) -> Result<()> {
    sys::sync_dir(path).with_context("flush", path)
}

/// Names of the files of a tape.
#[derive(Clone, Debug)]
pub(crate) struct TapePaths {
    pub tape_dir: PathBuf,
}

impl TapePaths {
    pub fn run(&self) -> PathBuf {
        self.tape_dir.join("run")
    }
    pub fn segments(&self) -> PathBuf {
        self.tape_dir.join("segments")
    }
    pub fn crc(&self, index: u64) -> PathBuf {
        self.tape_dir.join(format!("segments/{index:016x}.crc"))
    }
    pub fn index(&self, index: u64) -> PathBuf {
        self.tape_dir.join(format!("segments/{index:016x}.idx"))
    }
    pub fn definitions(&self) -> PathBuf {
        self.tape_dir.join("definitions.log")
    }
    pub fn durable(&self) -> PathBuf {
        self.tape_dir.join("durable")
    }
    pub fn hot(&self) -> PathBuf {
        self.tape_dir.join("run/hot")
    }
    pub fn hot_mark(&self) -> PathBuf {
        self.tape_dir.join("run/hot.mark")
    }
    pub fn writer_lock(&self) -> PathBuf {
        self.tape_dir.join("run/writer.lock")
    }
    pub fn retention(&self) -> PathBuf {
        self.tape_dir.join("run/retention")
    }
    pub fn recorder_lock(&self) -> PathBuf {
        self.tape_dir.join("run/recorder.lock")
    }
}

/// Returns the path of segment `index` in `dir`.
pub(crate) fn segment_path(dir: &Path, index: u64) -> PathBuf {
    dir.join(format!("{index:016x}.seg"))
}

/// Lists the indices of the segments in `dir`, ascending; empty if there is no such directory.
pub(crate) fn list_segments(dir: &Path) -> Result<Vec<u64>> {
    list_of(dir, ".seg")
}

/// Indices of the segments that have a file of checksums in a directory, in order.
pub(crate) fn list_sums(dir: &Path) -> Result<Vec<u64>> {
    list_of(dir, ".crc")
}

/// Indices of the segments that have an index in a directory, in order.
pub(crate) fn list_indexes(dir: &Path) -> Result<Vec<u64>> {
    list_of(dir, ".idx")
}

/// Removes the files that are beside segment `index`.
pub(crate) fn remove_beside(paths: &TapePaths, index: u64) -> Result<()> {
    remove(&paths.index(index))?;
    remove(&paths.crc(index))
}

fn list_of(dir: &Path, ending: &str) -> Result<Vec<u64>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e).with_context("list", dir),
    };
    let mut out = Vec::new();
    for entry in entries {
        let name = entry.with_context("list", dir)?.file_name();
        let index = name.to_str().and_then(|n| n.strip_suffix(ending)).filter(|n| n.len() == 16);
        let index = index.and_then(|n| u64::from_str_radix(n, 16).ok());
        // Beyond the last one the positions of the greatest segments would not fit 63 bits.
        out.extend(index.filter(|&i| i <= SEGMENT_INDEX_MAX));
    }
    out.sort_unstable();
    Ok(out)
}

/// Reads a file that is small unless it is damaged; no more than 64 KiB of it.
pub(crate) fn read_small(path: &Path) -> std::io::Result<Vec<u8>> {
    read_start(path, 64 << 10)
}

/// Reads the first bytes of a file.
pub(crate) fn read_start(path: &Path, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut out = Vec::new();
    open_regular(path)?.take(bytes_max).read_to_end(&mut out)?;
    Ok(out)
}

/// Opens a regular file for reading. Opening a pipe would wait for its writer, and opening a device may do anything.
///
/// # Errors
/// Fails with [`std::io::ErrorKind::InvalidData`] if it is no regular file, and with the system's error if it refuses.
pub fn open_regular(path: &Path) -> std::io::Result<fs::File> {
    open_regular_with(fs::File::options().read(true), path)
}

/// Opens a regular file with `options`, as [`open_regular`] does.
///
/// # Errors
/// Fails as [`open_regular`] does.
pub fn open_regular_with(options: &mut fs::OpenOptions, path: &Path) -> std::io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    let not_regular = || std::io::Error::new(std::io::ErrorKind::InvalidData, "it is no regular file");
    let open_result = options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32).open(path);
    let file = open_result
        .map_err(|e| if e.kind() == std::io::ErrorKind::IsADirectory { not_regular() } else { e })?;
    // Of the open file: the name may mean another one by now.
    if !file.metadata()?.is_file() {
        return Err(not_regular());
    }
    Ok(file)
}

/// How the names of files begin that wait to be used again.
pub(crate) const SPARE: &str = "spare-";

/// Removes segments that are not yet in their place, and spare segments.
pub(crate) fn remove_unfinished(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir).with_context("list", dir)? {
        let entry = entry.with_context("list", dir)?;
        let name = entry.file_name();
        if name.to_str().is_some_and(is_unfinished) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Returns whether a file of that name is a segment that does not have its index yet.
pub(crate) fn is_unfinished(name: &str) -> bool {
    let is_index = |text: &str| text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let has_index_after = |start| name.strip_prefix(start).is_some_and(is_index);
    has_index_after("prepared-")
        || has_index_after("making-")
        || has_index_after(SPARE)
        || name == "making-first"
}

/// Removes a file that may be gone already.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match sys::unlink(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e).with_context("remove", path),
        _ => Ok(()),
    }
}

/// Writes a small file under another name first, so that it is there whole or not at all.
pub(crate) fn write_whole(path: &Path, text: &[u8]) -> Result<()> {
    let temp = path.with_extension(UNFINISHED);
    let write_result = (|| {
        let file = sys::open(&temp, OpenOptions::new().write(true).create(true).truncate(true));
        sys::write_at(&file.with_context("create", &temp)?, text, 0).with_context("write", &temp)?;
        sys::rename(&temp, path).with_context("rename", path)
    })();
    if write_result.is_err() {
        // If the file stays, the next attempt writes over it.
        let _ = sys::unlink(&temp);
    }
    write_result
}

/// Extension of the names under which [`write_whole`] writes.
pub(crate) const UNFINISHED: &str = "new";

const MAGIC: &[u8; 8] = b"UNITAPE\x01";

/// Offsets in the header page.
mod offset {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 8;
    pub const TAPE: usize = 16;
    pub const INDEX: usize = 32;
    pub const BASE: usize = 40;
    pub const SEGMENT_BYTES: usize = 48;
    pub const FIRST_ORDINAL: usize = 56;
    pub const CRC: usize = 64;
    pub const END: usize = 68;
}

const _: () = {
    assert!(offset::VERSION == offset::MAGIC + 8 && offset::TAPE == 16 && offset::INDEX == offset::TAPE + 16);
    assert!(offset::BASE == 40 && offset::SEGMENT_BYTES == 48 && offset::FIRST_ORDINAL == 56);
    assert!(offset::CRC == 64 && offset::END == 68 && (offset::END as u64) < HEADER_PAGE);
    assert!(HEADER_PAGE.is_multiple_of(LINE as u64) && CHECKSUM_SPAN.is_multiple_of(LINE as u64));
};

/// The fields of a segment's header page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub meta: TapeManifest,
    pub index: u64,
    pub first_ordinal: u64,
}

impl SegmentHeader {
    pub fn encode(&self) -> [u8; offset::END] {
        let mut out = [0; offset::END];
        let mut write_field =
            |offset: usize, bytes: &[u8]| out[offset..offset + bytes.len()].copy_from_slice(bytes);
        write_field(offset::MAGIC, MAGIC);
        write_field(offset::VERSION, &FORMAT_VERSION.to_le_bytes());
        write_field(offset::TAPE, &self.meta.id.0.to_le_bytes());
        write_field(offset::INDEX, &self.index.to_le_bytes());
        write_field(offset::BASE, &(self.index * self.meta.segment_bytes).to_le_bytes());
        write_field(offset::SEGMENT_BYTES, &self.meta.segment_bytes.to_le_bytes());
        write_field(offset::FIRST_ORDINAL, &self.first_ordinal.to_le_bytes());
        let crc = crc32c::crc32c(&out[..offset::CRC]);
        out[offset::CRC..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads a page with a matching checksum, whichever tape it belongs to.
    pub fn read(page: &[u8]) -> Option<Self> {
        let u64_at =
            |offset: usize| u64::from_le_bytes(page[offset..offset + 8].try_into().expect("eight bytes"));
        let sound = page.len() >= offset::END
            && page[..8] == *MAGIC
            && page[offset::CRC..offset::END] == crc32c::crc32c(&page[..offset::CRC]).to_le_bytes()
            && u64_at(offset::VERSION) == FORMAT_VERSION
            && check_segment_bytes(u64_at(offset::SEGMENT_BYTES)).is_ok();
        let id = || u128::from_le_bytes(page[offset::TAPE..offset::INDEX].try_into().expect("sixteen bytes"));
        sound.then(|| Self {
            meta: TapeManifest { id: TapeId(id()), segment_bytes: u64_at(offset::SEGMENT_BYTES) },
            index: u64_at(offset::INDEX),
            first_ordinal: u64_at(offset::FIRST_ORDINAL),
        })
    }

    /// Reads the page and checks that it belongs to segment `index` of the tape. Returns its first ordinal.
    pub fn check(page: &[u8], meta: &TapeManifest, index: u64, path: &Path) -> Result<u64> {
        let u64_at =
            |offset: usize| u64::from_le_bytes(page[offset..offset + 8].try_into().expect("eight bytes"));
        let damage_error =
            |fault_offset: usize, reason: &str| Err(Error::damage(path, fault_offset as u64, reason));
        if page.len() < offset::END || page[..8] != *MAGIC {
            return damage_error(offset::MAGIC, "the header page does not start with the tape's magic");
        }
        // First: `tape.toml` has said that the tape is of our format, so another number is a flipped bit mostly.
        if page[offset::CRC..offset::END] != crc32c::crc32c(&page[..offset::CRC]).to_le_bytes() {
            return damage_error(offset::CRC, "the checksum of the header page does not match");
        }
        if u64_at(offset::VERSION) != FORMAT_VERSION {
            let version = u64_at(offset::VERSION);
            return Err(Error::ForeignVersion {
                path: path.into(),
                version,
                supported_version: FORMAT_VERSION,
            });
        }
        if page[offset::TAPE..offset::INDEX] != meta.id.0.to_le_bytes() {
            return damage_error(offset::TAPE, "the segment belongs to another tape");
        }
        if u64_at(offset::INDEX) != index
            || Some(u64_at(offset::BASE)) != index.checked_mul(meta.segment_bytes)
        {
            return damage_error(offset::INDEX, "the segment's index is not that of its name");
        }
        if u64_at(offset::SEGMENT_BYTES) != meta.segment_bytes {
            return damage_error(offset::SEGMENT_BYTES, "the segment has another size than tape.toml says");
        }
        if u64_at(offset::FIRST_ORDINAL) > PLACE_MAX {
            return damage_error(offset::FIRST_ORDINAL, "more events before it than a tape can hold");
        }
        Ok(u64_at(offset::FIRST_ORDINAL))
    }
}
