//! Sources of bytes and the intake that cuts them into blocks.

use crate::block::Block;
use crate::decode::Format;
use crate::error::Error;
use crate::head::Head;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A feed: a name, a format, and the files it is read from, one after the other.
#[derive(Clone, Debug)]
pub struct Feed {
    /// Its name.
    pub name: String,
    /// What its bytes are.
    pub format: Format,
    /// Its files in order; `-` is stdin.
    pub files: Vec<PathBuf>,
}

/// What is known of a source before it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFacts {
    /// File name without its path.
    pub file: String,
    /// Bytes, if they can be known.
    pub size: Option<u64>,
    /// BLAKE3 of the content in hex, if it can be known.
    pub hash: Option<String>,
}

impl SourceFacts {
    /// Looks at a file; reads it whole for its hash.
    ///
    /// # Errors
    /// When it cannot be opened or read.
    pub fn of(path: &Path) -> Result<Self, Error> {
        if is_stdin(path) {
            return Ok(Self { file: "-".to_owned(), size: None, hash: None });
        }
        let fail = |source| Error::Read { path: path.to_owned(), offset: 0, source };
        // Looked at before it is opened: a pipe has one reader, and that is not this one.
        let meta = std::fs::metadata(path).map_err(fail)?;
        if meta.is_dir() {
            return Err(fail(std::io::Error::new(ErrorKind::IsADirectory, "is a directory; name its files")));
        }
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        if !meta.is_file() {
            return Ok(Self { file: name, size: None, hash: None });
        }
        let mut file = File::open(path).map_err(fail)?;
        let mut hasher = blake3::Hasher::new();
        let mut buf = vec![0; 1 << 18];
        let mut size = 0u64;
        loop {
            match file.read(&mut buf) {
                Ok(0) => break,
                Ok(n) => {
                    hasher.update(&buf[..n]);
                    size += n as u64;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Read { path: path.to_owned(), offset: size, source }),
            }
        }
        Ok(Self { file: name, size: Some(size), hash: Some(hasher.finalize().to_hex().to_string()) })
    }
}

/// Whether this path stands for stdin.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A source that is to be read, or read on.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Index of the source within its feed.
    pub index: usize,
    /// The file.
    pub path: PathBuf,
    /// Where to begin.
    pub from: u64,
    /// Its bytes, where they are known; what is appended while it is read is not of this source.
    pub size: Option<u64>,
}

/// The state behind the intake turnstile: which source is open, how far it is claimed.
#[derive(Debug)]
pub struct Intake {
    feeds: Vec<FeedIntake>,
    block_bytes: usize,
    /// Bytes of input claimed so far, for progress bars.
    pub claimed_bytes: Arc<AtomicU64>,
}

#[derive(Debug)]
struct FeedIntake {
    format: Format,
    pending: std::collections::VecDeque<Pending>,
    open: Option<Open>,
    head: Head,
    /// Blocks claimed and not yet wholly on the tape; the feed that a merge waits for has the fewest.
    outstanding: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Open {
    index: usize,
    path: PathBuf,
    reader: Reader,
    /// Offset of the next byte to read, the carried ones not counted.
    offset: u64,
    size: Option<u64>,
    /// Bytes behind the last cut.
    carry: Vec<u8>,
}

#[derive(Debug)]
enum Reader {
    File(File),
    Stdin(std::io::Stdin),
}

/// A message that spans more than this without a cut is taken as it comes; the decoder will say what it is.
const UNCUT_BYTES_MAX: usize = 16 << 20;

impl Intake {
    /// An intake over feeds, each with its format, its sources in order and its count of outstanding blocks.
    pub fn new(
        feeds: impl IntoIterator<Item = (Format, Vec<Pending>, Arc<AtomicU64>)>,
        block_bytes: usize,
        claimed_bytes: Arc<AtomicU64>,
    ) -> Self {
        let feeds = feeds
            .into_iter()
            .map(|(format, pending, outstanding)| FeedIntake {
                format,
                pending: pending.into(),
                open: None,
                head: Head::default(),
                outstanding,
            })
            .collect();
        Self { feeds, block_bytes, claimed_bytes }
    }

    /// Fills `block` with the next bytes of the feed that is most wanted; false at the end of all input.
    ///
    /// # Errors
    /// When a source cannot be read.
    pub fn fill(&mut self, block: &mut Block) -> Result<bool, Error> {
        // Relaxed: a guess at what the merge needs next; the result does not depend on it.
        let outstanding = |f: &FeedIntake| f.outstanding.load(Ordering::Relaxed);
        let left =
            self.feeds.iter_mut().enumerate().filter(|(_, f)| f.open.is_some() || !f.pending.is_empty());
        let Some((index, feed)) = left.min_by_key(|(_, f)| outstanding(f)) else { return Ok(false) };
        feed.outstanding.fetch_add(1, Ordering::Relaxed);
        block.feed = index;
        let n = feed.fill(block, self.block_bytes)?;
        self.claimed_bytes.fetch_add(n as u64, Ordering::Relaxed);
        Ok(true)
    }
}

impl FeedIntake {
    fn fill(&mut self, block: &mut Block, block_bytes: usize) -> Result<usize, Error> {
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let pending = self.pending.pop_front().expect("checked by the caller");
                self.open.insert(Open::new(pending)?)
            }
        };
        block.source = open.index;
        block.base = open.offset - open.carry.len() as u64;
        block.bytes.clear();
        block.bytes.append(&mut open.carry);
        let before = block.bytes.len();
        let mut want = block_bytes;
        loop {
            block.eof = open.read(&mut block.bytes, want)?;
            if block.eof {
                break;
            }
            let cut = self.format.cut(&block.bytes);
            if cut > 0 || block.bytes.len() > UNCUT_BYTES_MAX {
                let cut = if cut > 0 { cut } else { block.bytes.len() };
                open.carry.extend_from_slice(&block.bytes[cut..]);
                block.bytes.truncate(cut);
                break;
            }
            want = block.bytes.len();
        }
        let n = block.bytes.len() + open.carry.len() - before;
        self.head.give(block, &self.format, &open.path)?;
        if block.eof {
            self.open = None;
        }
        Ok(n)
    }
}

impl Open {
    fn new(pending: Pending) -> Result<Self, Error> {
        let Pending { index, path, from, size } = pending;
        let fail = |source| Error::Read { path: path.clone(), offset: from, source };
        let reader = if is_stdin(&path) {
            Reader::Stdin(std::io::stdin())
        } else {
            let mut file = File::open(&path).map_err(fail)?;
            // A pipe cannot seek, and starts at its start.
            if from > 0 {
                file.seek(SeekFrom::Start(from)).map_err(fail)?;
            }
            Reader::File(file)
        };
        Ok(Self { index, path, reader, offset: from, size, carry: Vec::new() })
    }

    /// Reads `want` bytes more, fewer only at the end; true at the end.
    fn read(&mut self, bytes: &mut Vec<u8>, want: usize) -> Result<bool, Error> {
        let fail = |source, offset, path: &Path| Err(Error::Read { path: path.to_owned(), offset, source });
        let until_end = self.size.map(|size| size.saturating_sub(self.offset));
        let mut left = until_end.map_or(want, |n| want.min(usize::try_from(n).unwrap_or(want)));
        while left > 0 {
            let reader: &mut dyn Read = match &mut self.reader {
                Reader::File(f) => f,
                Reader::Stdin(s) => s,
            };
            match reader.take(left as u64).read_to_end(bytes) {
                Ok(0) if self.size.is_some() => {
                    let source =
                        std::io::Error::new(ErrorKind::UnexpectedEof, "became shorter while it was read");
                    return fail(source, self.offset, &self.path);
                }
                Ok(0) => return Ok(true),
                Ok(n) => {
                    left -= n;
                    self.offset += n as u64;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(source) => return fail(source, self.offset, &self.path),
            }
        }
        Ok(self.size.is_some_and(|size| self.offset >= size))
    }
}
