//! The bytes that an event was made of, read again from the file that the tape names.
//!
//! ```text
//!  tape   source definition: feed, file, format, size and hash ─┐
//!         event: id of the definition, offset ──────────────────┼─▶ the message's bytes, or why there are none
//!  DIR    the file, or FEED/the file ───────────────────────────┘
//! ```
//!
//! A message is returned only if the tape has a hash of first bytes of the file that reach the message's end, and the file still
//! has these bytes. A file that was found while a feed ran has its hash in its marks of progress; the caller passes them to
//! [`EventOrigin::learn_progress`].
//!
//! A compressed file is unpacked once for its bytes and once for its hashes, if its messages are asked for in the order of their
//! offsets.

use crate::account::{text, uint};
use crate::sources::content::PrefixReader;
use crate::sources::{hash, open};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use unitape_base::NextFrame;
use unitape_codec::fix::FixFramer;
use unitape_model::{DefinitionTable, Event, EventField, EventKind};

/// The place of an event's message in its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventOrigin {
    /// Name of the feed.
    pub feed: String,
    /// Name of the file, without its directory.
    pub file: String,
    /// The format's word.
    pub format: String,
    /// Offset of the message in the unpacked file, bytes.
    pub offset: u64,
    /// Id of the source's first definition.
    source_id: u32,
    /// The hashes that the tape has, the longest part first.
    hashes: Vec<PartHash>,
}

/// The hash of the first bytes of a source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PartHash {
    bytes: u64,
    /// BLAKE3 in hex.
    hash: String,
    /// The bytes are those of the unpacked content, not those of the file.
    is_unpacked: bool,
}

/// A message as its file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceMessage {
    /// The file.
    pub path: PathBuf,
    /// Its bytes, at most [`MESSAGE_BYTES_MAX`].
    pub bytes: Vec<u8>,
    /// Whether these are exactly the message. Otherwise the format does not say where a message ends, and the bytes are the
    /// first [`UNFRAMED_BYTES`] from its beginning on.
    pub is_framed: bool,
}

/// The maximum length of a message that is read, bytes.
pub const MESSAGE_BYTES_MAX: u64 = 1 << 20;

/// The number of bytes that are read of a message whose end is unknown.
pub const UNFRAMED_BYTES: usize = 256;

/// Why there are no bytes of a message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceFault {
    /// The feed was no file.
    #[error("feed {feed} was read from a stream, and no file has its bytes")]
    Stream {
        /// The feed.
        feed: String,
    },
    /// The file is missing.
    #[error("{}: the file is missing", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file is not the file that was read.
    #[error("{}: the file has changed: its hash is not the hash on the tape", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Nothing tells whether the file is the file that was read.
    #[error("{}: the tape has no hash of this part of the file, so it may have changed", path.display())]
    WithoutHash {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
}

impl EventOrigin {
    /// Returns the origin of an event by the definitions of its tape. Returns `None` if the event or its definition names
    /// none.
    pub fn of(event: &Event<'_>, definitions: &DefinitionTable) -> Option<Self> {
        let definition = definitions.source(event.source())?;
        let first_id_of = |id: u32, frame: &[u8]| {
            let of = Event::new(frame).and_then(|event| uint(&event, EventField::Of)).unwrap_or(0);
            if of == 0 { id } else { of as u32 }
        };
        let source_id = first_id_of(event.source(), &definition.frame);
        let mut hashes: Vec<PartHash> = definitions
            .sources()
            .filter(|(id, source)| first_id_of(*id, &source.frame) == source_id)
            .filter_map(|(_, source)| part_hash(&source.frame))
            .collect();
        hashes.sort_unstable_by(|a, b| b.cmp(a));
        hashes.dedup();
        Some(Self {
            feed: definition.feed.clone(),
            file: definition.file.clone(),
            format: Event::new(&definition.frame).map_or_else(String::new, |e| text(&e, EventField::Format)),
            offset: definition.base.saturating_add(event.offset().into()),
            source_id,
            hashes,
        })
    }

    /// Returns whether the tape has a hash of a part with the message in it, as far as the origin has learned.
    pub fn has_hash(&self) -> bool {
        self.hashes.iter().any(|part| !part.is_unpacked || part.bytes > self.offset)
    }

    /// Takes the hash of a mark of progress, if it is a mark of this source after the message. Returns whether it is.
    pub fn learn_progress(&mut self, event: &Event<'_>) -> bool {
        if event.kind() != EventKind::Progress || event.source() != self.source_id {
            return false;
        }
        let (bytes, hash) = (uint(event, EventField::Through).unwrap_or(0), text(event, EventField::Hash));
        if bytes <= self.offset || hash.is_empty() {
            return false;
        }
        self.hashes.insert(0, PartHash { bytes, hash, is_unpacked: true });
        true
    }
}

/// Returns the hash in the definition of a source. A source that was found while a feed ran has another text there.
fn part_hash(definition: &[u8]) -> Option<PartHash> {
    let event = Event::new(definition)?;
    let (bytes, hash) = (uint(&event, EventField::Size)?, text(&event, EventField::Hash));
    (!hash.is_empty() && !hash.starts_with(open::FIRST)).then_some(PartHash {
        bytes,
        hash,
        is_unpacked: false,
    })
}

/// A directory with the files of sources.
pub struct SourceArchive {
    source_dir: PathBuf,
    /// The parts of files that were compared, and whether they have the hash.
    compared: BTreeMap<(PathBuf, PartHash), bool>,
    /// The file whose unpacked content was hashed last.
    hashed: Option<(PathBuf, PrefixReader)>,
    /// The compressed file that was read last.
    packed: Option<(PathBuf, ForwardReader)>,
}

impl SourceArchive {
    /// Makes the archive of the files in `dir`, or of each feed in the directory of its name in `dir`.
    pub fn new(dir: &Path) -> Self {
        Self { source_dir: dir.to_owned(), compared: BTreeMap::new(), hashed: None, packed: None }
    }

    /// Returns the message of an origin. Compares each part of a file with its hash once.
    ///
    /// # Errors
    /// Fails if the file is missing, has changed or cannot be read, or if no hash reaches the end of the message.
    pub fn message(&mut self, origin: &EventOrigin) -> Result<SourceMessage, SourceFault> {
        let path = self.path_of(origin)?;
        let fail = |source| SourceFault::Read { path: path.clone(), source };
        if !origin.has_hash() {
            return Err(SourceFault::WithoutHash { path });
        }
        let is_packed = is_packed(&path).map_err(fail)?;
        let mut found: Option<(Vec<u8>, bool)> = None;
        for part in &origin.hashes {
            // The length of a compressed file says nothing about its content: it is compared as a whole.
            let is_whole = is_packed && !part.is_unpacked;
            let covered = if is_whole { u64::MAX } else { part.bytes.saturating_sub(origin.offset) };
            if covered == 0 || !self.has_part(&path, part, is_whole).map_err(fail)? {
                continue;
            }
            let (bytes, is_framed) = match &mut found {
                Some(found) => found,
                none => none.insert(self.read_message(&path, origin, is_packed).map_err(fail)?),
            };
            if *is_framed && bytes.len() as u64 > covered {
                continue;
            }
            // Bytes after the hash may be of anything.
            bytes.truncate(usize::try_from(covered).unwrap_or(usize::MAX));
            return Ok(SourceMessage { path, bytes: std::mem::take(bytes), is_framed: *is_framed });
        }
        Err(if found.is_some() { SourceFault::WithoutHash { path } } else { SourceFault::Changed { path } })
    }

    fn path_of(&self, origin: &EventOrigin) -> Result<PathBuf, SourceFault> {
        // A name with a directory in it is none that unitape has written.
        let name = Path::new(&origin.file);
        if origin.file == "-" || name.file_name() != Some(name.as_os_str()) {
            return Err(SourceFault::Stream { feed: origin.feed.clone() });
        }
        let path = self.source_dir.join(name);
        let feed = Path::new(&origin.feed);
        let path_of_feed = self.source_dir.join(feed).join(name);
        let has_own_directory = feed.file_name() == Some(feed.as_os_str()) && path_of_feed.is_file();
        match () {
            () if has_own_directory => Ok(path_of_feed),
            () if path.is_file() => Ok(path),
            () => Err(SourceFault::Missing { path }),
        }
    }

    /// Returns whether the file has a part with this hash; with `is_whole`, whether it is this part.
    fn has_part(&mut self, path: &Path, part: &PartHash, is_whole: bool) -> std::io::Result<bool> {
        let key = (path.to_owned(), part.clone());
        if let Some(has_part) = self.compared.get(&key) {
            return Ok(*has_part);
        }
        let has_part = if part.is_unpacked {
            let is_ahead = |(hashed, reader): &(PathBuf, PrefixReader)| {
                hashed == path && reader.hash().bytes() <= part.bytes
            };
            if !self.hashed.as_ref().is_some_and(is_ahead) {
                self.hashed = Some((path.to_owned(), PrefixReader::open(path)?));
            }
            let (_, reader) = self.hashed.as_mut().expect("it is open");
            reader.read_to(part.bytes)?;
            reader.hash().bytes() == part.bytes && reader.hash().hex() == part.hash
        } else {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            let has_length = if is_whole { length == part.bytes } else { length >= part.bytes };
            has_length && hash::hash_prefix(&file, part.bytes, 1)? == part.hash
        };
        self.compared.insert(key, has_part);
        Ok(has_part)
    }

    /// Returns the bytes of a message, and whether they end where the message ends.
    fn read_message(
        &mut self,
        path: &Path,
        origin: &EventOrigin,
        is_packed: bool,
    ) -> std::io::Result<(Vec<u8>, bool)> {
        let has_end = is_framed_format(&origin.format);
        let want = if has_end { MESSAGE_BYTES_MAX as usize } else { UNFRAMED_BYTES };
        let mut plain = Vec::new();
        let bytes = if is_packed {
            let is_ahead = |(packed, reader): &(PathBuf, ForwardReader)| {
                packed == path && reader.buffer_offset <= origin.offset
            };
            if !self.packed.as_ref().is_some_and(is_ahead) {
                let reader = ForwardReader::new(open::unpack(File::open(path)?)?);
                self.packed = Some((path.to_owned(), reader));
            }
            let (_, reader) = self.packed.as_mut().expect("it is open");
            reader.bytes_at(origin.offset, want)?
        } else {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(origin.offset))?;
            file.take(want as u64).read_to_end(&mut plain)?;
            &plain
        };
        let length = message_length(&origin.format, bytes);
        Ok((bytes[..length.unwrap_or(bytes.len().min(UNFRAMED_BYTES))].to_vec(), length.is_some()))
    }
}

impl std::fmt::Debug for SourceArchive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceArchive").field("source_dir", &self.source_dir).finish_non_exhaustive()
    }
}

/// A stream of bytes that is read once, from its start on.
struct ForwardReader {
    reader: Box<dyn Read>,
    /// Offset of the first byte in the buffer.
    buffer_offset: u64,
    buffer: Vec<u8>,
}

impl ForwardReader {
    fn new(reader: Box<dyn Read>) -> Self {
        Self { reader, buffer_offset: 0, buffer: Vec::new() }
    }

    /// Returns up to `want` bytes from `offset` on: fewer only at the end. The bytes before `offset` are gone then.
    ///
    /// # Errors
    /// Fails if the stream cannot be read, or ends before `offset`.
    fn bytes_at(&mut self, offset: u64, want: usize) -> std::io::Result<&[u8]> {
        let passed = offset.checked_sub(self.buffer_offset).ok_or(ErrorKind::InvalidInput)?;
        let kept = usize::try_from(passed).unwrap_or(usize::MAX).min(self.buffer.len());
        self.buffer.drain(..kept);
        self.buffer_offset += kept as u64;
        let skip = offset - self.buffer_offset;
        let skipped = std::io::copy(&mut (&mut self.reader).take(skip), &mut std::io::sink())?;
        self.buffer_offset += skipped;
        if skipped < skip {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let more = want.saturating_sub(self.buffer.len()) as u64;
        (&mut self.reader).take(more).read_to_end(&mut self.buffer)?;
        Ok(&self.buffer[..want.min(self.buffer.len())])
    }
}

fn is_packed(path: &Path) -> std::io::Result<bool> {
    let mut magic = [0; 4];
    let length = File::open(path)?.read_at(&mut magic, 0)?;
    Ok(open::is_packed(&magic[..length]))
}

/// Returns whether the format says where a message ends.
fn is_framed_format(format: &str) -> bool {
    matches!(format, "events" | "jsonl" | "csv" | "fixed" | "fix")
}

/// Returns the length of the message at the beginning of `bytes`, without its line end, for formats that say where a message
/// ends.
fn message_length(format: &str, bytes: &[u8]) -> Option<usize> {
    match format {
        "events" | "jsonl" | "csv" | "fixed" => {
            let length = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
            let is_whole = length < bytes.len() || (bytes.len() as u64) < MESSAGE_BYTES_MAX;
            is_whole.then(|| bytes[..length].strip_suffix(b"\r").map_or(length, <[u8]>::len))
        }
        "fix" => match FixFramer::default().with_lenient(true).frame(bytes, 0, false) {
            NextFrame::Message(message) if message.span.start == 0 => Some(message.span.end),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the bytes of the next message count as this message's.
    #[test]
    fn a_message_ends_where_its_format_says() {
        assert_eq!(message_length("events", b"{}\r\n{}\n"), Some(2));
        assert_eq!(message_length("csv", b"a,b"), Some(3));
        let fix = b"8=FIX.4.2\x019=5\x0135=0\x0110=161\x018=FIX.4.2\x01";
        assert_eq!(message_length("fix", fix), Some(fix.len() - 10));
        assert_eq!(message_length("fix", b"no message"), None);
        assert_eq!(message_length("itch", b"\0\x0c"), None);
    }

    fn origin(file: &str, offset: u64, hashes: &[(&[u8], bool)]) -> EventOrigin {
        let hashes = hashes.iter().map(|(part, is_unpacked)| PartHash {
            bytes: part.len() as u64,
            hash: blake3::hash(part).to_hex().to_string(),
            is_unpacked: *is_unpacked,
        });
        let (feed, file, format) = ("f".to_owned(), file.to_owned(), "events".to_owned());
        EventOrigin { feed, file, format, offset, source_id: 1, hashes: hashes.collect() }
    }

    /// Fails if bytes of another file are shown as those of the event.
    #[test]
    fn a_file_counts_only_with_the_hash_of_a_part_around_the_message() {
        let dir = tempfile::tempdir().unwrap();
        let (first, all) = (&b"{1}\n{2}\n"[..], &b"{1}\n{2}\n{3}\n"[..]);
        std::fs::write(dir.path().join("a"), all).unwrap();
        let fault = |origin: &EventOrigin| SourceArchive::new(dir.path()).message(origin).unwrap_err();
        let bytes = |origin: &EventOrigin| SourceArchive::new(dir.path()).message(origin).unwrap().bytes;
        assert_eq!(bytes(&origin("a", 4, &[(all, false)])), b"{2}");
        // A file that has grown, and one that is back at an earlier length.
        assert_eq!(bytes(&origin("a", 4, &[(first, false)])), b"{2}");
        assert_eq!(bytes(&origin("a", 4, &[(b"{1}\n{2}\n{3}\n{4}\n", false), (first, true)])), b"{2}");
        assert!(matches!(fault(&origin("a", 8, &[(first, false)])), SourceFault::Changed { .. }));
        assert!(matches!(fault(&origin("a", 8, &[(first, true)])), SourceFault::WithoutHash { .. }));
        assert!(matches!(
            fault(&origin("a", 4, &[(b"{1}\n{2}\n{4}\n", false)])),
            SourceFault::Changed { .. }
        ));
        assert!(matches!(fault(&origin("b", 4, &[(all, false)])), SourceFault::Missing { .. }));
        for name in ["../a", "-", "x/a", ".."] {
            assert!(matches!(fault(&origin(name, 4, &[(all, false)])), SourceFault::Stream { .. }), "{name}");
        }
        // Two feeds with files of one name.
        std::fs::create_dir(dir.path().join("f")).unwrap();
        std::fs::write(dir.path().join("f/a"), b"{7}\n").unwrap();
        assert_eq!(bytes(&origin("a", 0, &[(b"{7}\n", false)])), b"{7}");
    }

    /// Fails if a line counts that was longer, or had another end, than the line that was read: the hash covers its beginning.
    #[test]
    fn a_hash_reaches_the_end_of_the_message() {
        let dir = tempfile::tempdir().unwrap();
        let all = &b"{1}\n{2}{3}\n{4}\n"[..];
        std::fs::write(dir.path().join("a"), all).unwrap();
        std::fs::write(dir.path().join("a.zst"), zstd::encode_all(all, 1).unwrap()).unwrap();
        let read = |file, part, is_unpacked| {
            SourceArchive::new(dir.path()).message(&origin(file, 4, &[(part, is_unpacked)]))
        };
        for (file, is_unpacked) in [("a", false), ("a", true), ("a.zst", true)] {
            let begun = read(file, b"{1}\n{2}", is_unpacked);
            assert!(matches!(begun, Err(SourceFault::WithoutHash { .. })), "{file} {is_unpacked}: {begun:?}");
            // The line end itself is no part of the message.
            for part in [&b"{1}\n{2}{3}"[..], b"{1}\n{2}{3}\n"] {
                assert_eq!(read(file, part, is_unpacked).unwrap().bytes, b"{2}{3}");
            }
        }
        // Without a known end, only the hashed bytes count.
        let unframed = EventOrigin { format: "itch".to_owned(), ..origin("a", 4, &[(b"{1}\n{2}", false)]) };
        assert_eq!(SourceArchive::new(dir.path()).message(&unframed).unwrap().bytes, b"{2}");
        // A compressed file that has grown: which of its bytes the hash covers is unknown.
        let packed = std::fs::read(dir.path().join("a.zst")).unwrap();
        std::fs::write(dir.path().join("a.zst"), [&packed[..], &packed].concat()).unwrap();
        assert!(matches!(read("a.zst", &packed, false), Err(SourceFault::Changed { .. })));
    }

    /// Fails if messages in order are read from the start each time, or bytes get lost between them.
    #[test]
    fn a_forward_reader_reads_each_byte_once() {
        struct Counted(std::io::Cursor<Vec<u8>>, std::rc::Rc<std::cell::Cell<usize>>);
        impl Read for Counted {
            fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
                let count = self.0.read(buf)?;
                self.1.set(self.1.get() + count);
                Ok(count)
            }
        }
        let content: Vec<u8> = (0..10_000u32).map(|n| (n % 251) as u8).collect();
        let count = std::rc::Rc::new(std::cell::Cell::new(0));
        let mut reader =
            ForwardReader::new(Box::new(Counted(std::io::Cursor::new(content.clone()), count.clone())));
        for offset in [0, 0, 5, 90, 100, 4_000, 9_950, 10_000] {
            let bytes = reader.bytes_at(offset, 100).unwrap();
            let offset = offset as usize;
            assert_eq!(bytes, &content[offset..(offset + 100).min(content.len())], "{offset}");
        }
        assert_eq!(count.get(), content.len());
        assert_eq!(reader.bytes_at(10_001, 1).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert!(reader.bytes_at(9_000, 1).is_err());
    }

    #[test]
    fn a_packed_file_is_compared_packed_and_read_unpacked() {
        let dir = tempfile::tempdir().unwrap();
        let content = b"{1}\n{2}\n".repeat(100);
        let packed = zstd::encode_all(&content[..], 1).unwrap();
        std::fs::write(dir.path().join("a.zst"), &packed).unwrap();
        let of = |offset, hash: (&[u8], bool)| origin("a.zst", offset, &[hash]);
        let mut archive = SourceArchive::new(dir.path());
        for hash in [(&packed[..], false), (&content[..], true)] {
            for offset in [0, 4, 796, 4] {
                let expected = if offset == 0 { b"{1}" } else { b"{2}" };
                assert_eq!(archive.message(&of(offset, hash)).unwrap().bytes, expected, "{offset}");
            }
        }
        // Marks of progress forward and backward.
        for length in [8, 16, 12, 8] {
            assert_eq!(archive.message(&of(4, (&content[..length], true))).unwrap().bytes, b"{2}");
        }
        assert!(matches!(archive.message(&of(4, (&content, false))), Err(SourceFault::Changed { .. })));
    }
}
