//! Files that a command is given: every error names the file.

use super::CommandFailure;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::path::Path;
use unitape_base::whole_file;

/// Makes the failure for a system error on a file.
pub fn file_failure(path: &Path, error: Error) -> CommandFailure {
    CommandFailure::from(error).with_subject(path.display())
}

/// Opens a file to read it; a directory is refused here, not with the first read.
///
/// # Errors
/// Fails if the path does not exist, is not a file or is not readable.
pub fn open_file(path: &Path) -> Result<File, CommandFailure> {
    let open_file = || {
        let file = File::open(path)?;
        match file.metadata()?.is_dir() {
            true => Err(Error::new(ErrorKind::IsADirectory, "is a directory; a file is needed")),
            false => Ok(file),
        }
    };
    open_file().map_err(|e| file_failure(path, e))
}

/// Reads the whole content of a file: templates, a dictionary, a configuration.
///
/// # Errors
/// Fails as [`open_file`] does, or if the file cannot be read or is larger than 64 MiB.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, CommandFailure> {
    whole_file::read_open(open_file(path)?, whole_file::BYTES_MAX).map_err(|e| file_failure(path, e))
}

/// Reads the text of a configuration or of parameters.
///
/// # Errors
/// Fails as [`read_bytes`] does, or if the text is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, CommandFailure> {
    String::from_utf8(read_bytes(path)?)
        .map_err(|_| CommandFailure::Error(format!("{}: is not text in UTF-8", path.display())))
}
