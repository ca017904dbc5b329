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
    /// Offset and hash of its first message; if present, `bytes` and `hash` refer to the unpacked content.
    pub first: Option<String>,
}

impl KnownContent {
    /// Returns whether the file at `path` begins with the whole content.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
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

    /// Makes the error for `file` of `feed`, which has the same content.
    pub fn error(&self, feed: &str, file: &str) -> Error {
        same_content(SourceName { feed, file }, SourceName { feed: &self.feed, file: &self.file })
    }
}

/// Returns whether the file at `path` begins with the whole content of the file at `other_path`.
///
/// # Errors
/// Fails if a file cannot be read.
pub fn begins_with(path: &Path, other_path: &Path) -> std::io::Result<bool> {
    let (mut a, mut b) = (open::unpack(File::open(path)?)?, open::unpack(File::open(other_path)?)?);
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

/// Makes the error for equal content under two names.
pub fn same_content(this: SourceName<'_>, other_source: SourceName<'_>) -> Error {
    let difference = format!(
        "it holds what {} of feed {} holds; leave one of them out, or read it a second time with \
         --again (again = true)",
        other_source.file, other_source.feed
    );
    Error::SourceChanged { feed: this.feed.to_owned(), file: this.file.to_owned(), difference }
}
