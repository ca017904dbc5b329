//! Files that a configuration is read from: every error names the file.

use crate::Error;
use std::fs::File;
use std::io;
use std::path::Path;
use unitape_base::whole_file;

/// Reads the text of a configuration.
///
/// # Errors
/// Fails if the path does not exist, is not a file, is not readable, is larger than 64 MiB or is not UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    let read_file = || {
        let file = File::open(path)?;
        match file.metadata()?.is_dir() {
            true => Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory; a file is needed")),
            false => whole_file::read_open(file, whole_file::BYTES_MAX),
        }
    };
    let bytes = read_file().map_err(|source| Error::File { path: path.to_owned(), source })?;
    String::from_utf8(bytes).map_err(|_| Error::NotText { path: path.to_owned() })
}
