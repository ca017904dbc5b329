//! The checksums beside a segment.

use std::fs::{File, OpenOptions};
use std::time::SystemTime;

use crate::disk::layout::{Meta, Paths};
use crate::disk::sys;
use crate::error::{At, Result};
use crate::keep::seal::unseal;

/// Checksums of the spans of one segment, `%016x.crc`: u32 little-endian each.
#[derive(Debug)]
pub(crate) struct Sums {
    pub file: Option<(File, std::path::PathBuf)>,
    span: u64,
    size: u64,
    pub index: u64,
    /// Bytes added so far, and the sum of those in the span that is open.
    added: u64,
    running: u32,
    /// Sums not yet written, the first of them of span `written`.
    pending: Vec<u8>,
    written: u64,
}

impl Sums {
    pub fn new(meta: &Meta) -> Self {
        let (span, size) = (meta.span(), meta.segment_bytes);
        Self { file: None, span, size, index: 0, added: 0, running: 0, pending: Vec::new(), written: 0 }
    }

    pub fn begin(&mut self, paths: &Paths, index: u64) -> Result<()> {
        let path = paths.crc(index);
        unseal(&path)?;
        let file = sys::open(&path, OpenOptions::new().write(true).create(true).truncate(true));
        let file = file.at("create", &path)?;
        self.file = Some((file, path));
        self.index = index;
        (self.added, self.running, self.written) = (0, 0, 0);
        self.pending.clear();
        Ok(())
    }

    /// Dates the file, which says when the segment was finished.
    pub fn date(&self, time: SystemTime) -> Result<()> {
        let Some((file, path)) = &self.file else { return Ok(()) };
        sys::set_modified(file, time).at("date", path)
    }

    pub fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let part = bytes.len().min((self.span - self.added % self.span) as usize);
            self.running = crc32c::crc32c_append(self.running, &bytes[..part]);
            self.added += part as u64;
            bytes = &bytes[part..];
            if self.added.is_multiple_of(self.span) {
                self.pending.extend_from_slice(&self.running.to_le_bytes());
                self.running = 0;
            }
        }
    }

    /// Adds the zeros behind a pad.
    pub fn fill(&mut self) {
        while self.added < self.size {
            let part = (self.size - self.added).min(ZEROS.len() as u64);
            self.add(&ZEROS[..part as usize]);
        }
    }

    /// Writes the sums of the spans that are full, and with `partial` that of the open one, padded with zeros.
    pub fn store(&mut self, partial: bool) -> Result<()> {
        let Some((file, path)) = &self.file else { return Ok(()) };
        let open = self.added % self.span;
        let mut out = std::mem::take(&mut self.pending);
        let whole = out.len() as u64 / 4;
        if partial && open > 0 {
            let sum = padded(self.running, self.span - open);
            out.extend_from_slice(&sum.to_le_bytes());
        }
        let result = sys::write_at(file, &out, self.written * 4).at("write", path);
        out.truncate(whole as usize * 4);
        match result {
            Ok(()) => self.written += whole,
            Err(_) => self.pending = out,
        }
        result
    }
}

/// The checksum that a span with these first bytes and zeros behind them has.
pub(crate) fn span_sum(bytes: &[u8], span: u64) -> u32 {
    padded(crc32c::crc32c(bytes), span - bytes.len() as u64)
}

/// The sum `crc` continued over `zeros` zero bytes.
pub(crate) fn padded(mut crc: u32, mut zeros: u64) -> u32 {
    while zeros > 0 {
        let part = zeros.min(ZEROS.len() as u64);
        crc = crc32c::crc32c_append(crc, &ZEROS[..part as usize]);
        zeros -= part;
    }
    crc
}

static ZEROS: [u8; 4096] = [0; 4096];
