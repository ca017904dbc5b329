//! Files that are read as a whole: settings, templates, dictionaries.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Bytes of a file of templates or a dictionary, at most. The largest in `vectors` has 1.4 MiB.
pub const BYTES_MAX: u64 = 64 << 20;

/// Reads the bytes of a file.
///
/// # Errors
/// Fails if the file cannot be read or is larger than `bytes_max`: an endless device is too large.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    read_open(File::open(path)?, bytes_max)
}

/// Reads the bytes of an open file.
///
/// # Errors
/// Fails as [`read`] does.
pub fn read_open(file: File, bytes_max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > bytes_max {
        true => Err(Error::new(ErrorKind::FileTooLarge, format!("larger than {} MiB", bytes_max >> 20))),
        false => Ok(bytes),
    }
}

/// Reads the text of a file.
///
/// # Errors
/// Fails as [`read`] does, and if the text is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String> {
    let text = String::from_utf8(read(path, bytes_max)?);
    text.map_err(|_| Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_end_is_refused() {
        let error = read(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "larger than 1 MiB");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"a\xFF").unwrap();
        assert_eq!(read(file.path(), 2).unwrap(), b"a\xFF");
        assert!(read(file.path(), 1).is_err());
        assert_eq!(read_text(file.path(), 2).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
