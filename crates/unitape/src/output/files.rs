//! Files that a command is given: every error names the file.

use super::CommandFailure;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::path::Path;
use unitape_base::whole_file;

/// The failure of what the system refused to do with the file.
pub fn file_failure(path: &Path, error: Error) -> CommandFailure {
    CommandFailure::from(error).with_subject(path.display())
}

/// Opens a file to read it; a directory is refused here, not with the first read.
///
/// # Errors
/// When it is not there, not a file or not readable.
pub fn open_file(path: &Path) -> Result<File, CommandFailure> {
    let open = || {
        let file = File::open(path)?;
        match file.metadata()?.is_dir() {
            true => Err(Error::new(ErrorKind::IsADirectory, "is a directory; a file is needed")),
            false => Ok(file),
        }
    };
    open().map_err(|e| file_failure(path, e))
}

/// The content of a file that is read as a whole: templates, a dictionary, a configuration.
///
/// # Errors
/// As [`open_file`], or when it cannot be read or is larger than 64 MiB.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, CommandFailure> {
    whole_file::read_open(open_file(path)?, whole_file::BYTES_MAX).map_err(|e| file_failure(path, e))
}

/// The text of a configuration or of parameters.
///
/// # Errors
/// As [`read_bytes`], or when it is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, CommandFailure> {
    String::from_utf8(read_bytes(path)?)
        .map_err(|_| CommandFailure::Error(format!("{}: is not text in UTF-8", path.display())))
}
