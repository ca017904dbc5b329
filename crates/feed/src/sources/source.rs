//! Sources of bytes: what a feed is read from, and what is known of it before.

use crate::error::Error;
use crate::formats::format::Format;
use crate::sources::hash;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A feed: a name, a format, and the files it is read from, one after the other.
#[derive(Clone, Debug)]
pub struct FileFeed {
    /// Its name.
    pub name: String,
    /// The format of its bytes.
    pub format: Format,
    /// Its files in order; `-` is stdin.
    pub files: Vec<PathBuf>,
}

/// The facts of a source before it is read.
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
    /// Looks at a file; reads it whole for its hash, on `threads` threads.
    ///
    /// # Errors
    /// Fails if the source cannot be opened or read.
    pub fn from_file(path: &Path, threads: usize) -> Result<Self, Error> {
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
        let file = File::open(path).map_err(fail)?;
        let (size, hash) = hash::hash_file(&file, threads).map_err(fail)?;
        Ok(Self { file: name, size: Some(size), hash: Some(hash) })
    }
}

/// A feed's rules for files that differ from the tape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangedSourcePolicy {
    /// Other content under a name that the tape knows is another source of this name.
    pub new_source: bool,
    /// The content of another source is read again.
    pub allows_same_content: bool,
}

/// The growth of a file.
#[derive(Clone, Debug)]
pub struct FileGrowth {
    /// The offset at which reading continues.
    pub from: u64,
    /// The message that begins there was cut by the end of the file, and is in quarantine.
    pub superseded: bool,
    /// The present length and hash of the file, if the tape has those of the whole file.
    pub facts: Option<SourceFacts>,
}

/// Returns whether this path means stdin.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A source to read from its start, or to read further.
#[derive(Clone, Debug, Default)]
pub struct PendingSource {
    /// Index of the source within its feed.
    pub index: usize,
    /// The file.
    pub path: PathBuf,
    /// The offset at which reading begins.
    pub from: u64,
    /// The length of the file, if known; bytes appended while it is read are not part of this source.
    pub size: Option<u64>,
    /// The key by which the tape knows it, if that is its first message.
    pub first: Option<String>,
}
