//! Finds equal content under two names.

use crate::error::Error;
use crate::sources::content;
use crate::sources::hash;
use crate::sources::open::{self, is_first_message};
use std::fs::File;
use std::path::Path;

/// The known content of a source, to find it under another name.
#[derive(Clone, Debug)]
pub struct KnownContent {
    /// Name of its feed.
    pub feed: String,
    /// Name of its file.
    pub file: String,
    /// The number of known bytes.
    pub bytes: u64,
    /// Their hash.
    pub hash: String,
    /// Place and hash of its first message; then `bytes` and `hash` are of what is unpacked.
    pub first: Option<String>,
}

impl KnownContent {
    /// Whether the file at `path` begins with all of it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_in(&self, path: &Path) -> std::io::Result<bool> {
        let Some(first) = &self.first else {
            let file = File::open(path)?;
            return Ok(
                file.metadata()?.len() == self.bytes && hash::hash_prefix(&file, self.bytes, 1)? == self.hash
            );
        };
        if !is_first_message(path, first)? {
            return Ok(false);
        }
        let prefix = content::prefix(path, self.bytes)?;
        Ok(prefix.hash.bytes() == self.bytes && prefix.hash.hex() == self.hash)
    }

    /// That `file` of `feed` has it, too.
    pub fn error(&self, feed: &str, file: &str) -> Error {
        same_content(SourceName { feed, file }, SourceName { feed: &self.feed, file: &self.file })
    }
}

/// Whether the file at `path` begins with all that the one at `other` holds.
///
/// # Errors
/// When one of them cannot be read.
pub fn begins_with(path: &Path, other: &Path) -> std::io::Result<bool> {
    let (mut a, mut b) = (open::unpack(File::open(path)?)?, open::unpack(File::open(other)?)?);
    let (mut of_a, mut of_b) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let n = read_full(&mut b, &mut of_b)?;
        let m = read_full(&mut a, &mut of_a[..n])?;
        if of_a[..m] != of_b[..n] {
            return Ok(false);
        }
        if n < of_b.len() {
            return Ok(true);
        }
        // Contents that fit in one read mostly differ there.
    }
}

fn read_full(reader: &mut impl std::io::Read, buf: &mut [u8]) -> std::io::Result<usize> {
    let mut n = 0;
    while n < buf.len() {
        match reader.read(&mut buf[n..]) {
            Ok(0) => break,
            Ok(m) => n += m,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(n)
}

/// A file by the name under which a feed has it.
#[derive(Clone, Copy)]
pub struct SourceName<'f> {
    pub feed: &'f str,
    pub file: &'f str,
}

/// The error for equal content under two names.
pub fn same_content(this: SourceName<'_>, other: SourceName<'_>) -> Error {
    let what = format!(
        "it holds what {} of feed {} holds; leave one of them out, or read it a second time with \
         --again (again = true)",
        other.file, other.feed
    );
    Error::SourceChanged { feed: this.feed.to_owned(), file: this.file.to_owned(), what }
}
