//! Bytes of a message that comes in parts, on their way into the raw log.

use super::RawLog;
use crate::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The file's name while it is opened; then it has no name, so a killed writer leaves no file.
const NAME: &str = "quarantine.part";
/// Bytes that are copied at once.
const PIECE_BYTES: u64 = 1 << 20;

/// A file without a name beside the raw log.
#[derive(Debug)]
pub struct RawSpool {
    spool_path: PathBuf,
    spool_file: File,
    length: u64,
}

impl RawSpool {
    /// Adds bytes.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn add(&mut self, raw: &[u8]) -> Result<(), Error> {
        self.spool_file
            .write_all_at(raw, self.length)
            .map_err(|source| Error::Raw { path: self.spool_path.clone(), source })?;
        self.length += raw.len() as u64;
        Ok(())
    }
}

impl RawLog {
    /// Makes a file for the parts of a message.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn spool(&self) -> Result<RawSpool, Error> {
        let path = self.log_path.with_file_name(NAME);
        let open_spool = || {
            let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        };
        let file = open_spool().map_err(|source| Error::Raw { path: path.clone(), source })?;
        Ok(RawSpool { spool_path: path, spool_file: file, length: 0 })
    }

    /// Appends the content of a spool; returns its offset.
    ///
    /// # Errors
    /// Fails if the disk refuses.
    pub fn append_spool(&mut self, spool: RawSpool) -> Result<u64, Error> {
        let raw_offset = self.log_length;
        let mut piece = Vec::new();
        let mut offset = 0;
        while offset < spool.length {
            let n = (spool.length - offset).min(PIECE_BYTES);
            piece.resize(n as usize, 0);
            spool
                .spool_file
                .read_exact_at(&mut piece, offset)
                .map_err(|source| Error::Raw { path: spool.spool_path.clone(), source })?;
            self.append(&piece)?;
            offset += n;
        }
        Ok(raw_offset)
    }
}
