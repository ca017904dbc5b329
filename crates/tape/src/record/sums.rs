//! The checksums beside a segment.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::SystemTime;

use unitape_model::Position;

use crate::disk::durable::DurableMark;
use crate::disk::layout::{TapeManifest, TapePaths};
use crate::disk::map::MappedSegment;
use crate::disk::seal::unseal;
use crate::disk::sys;
use crate::error::{Error, FileContext, Result};
use crate::trust::span::{SpanFault, ZEROS, extend_with_zeros};

/// Checksums of the spans of one segment, `%016x.crc`: u32 little-endian each.
///
/// Durable bytes have their checksums for good. A recorder that follows them again compares the bytes with the
/// checksums and never writes new ones: bytes that were changed meanwhile would get a checksum of their own.
#[derive(Debug)]
pub(crate) struct ChecksumWriter {
    pub sums_file: Option<(File, PathBuf)>,
    span: u64,
    segment_bytes: u64,
    pub segment_index: u64,
    /// Bytes added so far, and the sum of those in the span that is open.
    added: u64,
    span_crc: u32,
    /// Sums not yet written, the first of them of span `written_spans`.
    pending_sums: Vec<u8>,
    written_spans: u64,
    /// The durable bytes of the segment, with the checksums of their whole spans and of the part of the last one.
    covered_bytes: u64,
    durable_sums: Vec<u8>,
    open_sum: Option<u32>,
    /// Where the bytes are from, and the position of the first of them.
    source: PathBuf,
    segment_base: Position,
}

impl ChecksumWriter {
    pub fn new(meta: &TapeManifest) -> Self {
        Self {
            sums_file: None,
            span: meta.span(),
            segment_bytes: meta.segment_bytes,
            segment_index: 0,
            added: 0,
            span_crc: 0,
            pending_sums: Vec::new(),
            written_spans: 0,
            covered_bytes: 0,
            durable_sums: Vec::new(),
            open_sum: None,
            source: PathBuf::new(),
            segment_base: Position(0),
        }
    }

    /// Begins the checksums of `segment`; the checksums of durable bytes stay.
    ///
    /// # Errors
    /// Fails at damage: checksums of durable bytes are missing.
    pub fn begin_segment(
        &mut self,
        paths: &TapePaths,
        segment: &MappedSegment,
        durable: &DurableMark,
    ) -> Result<()> {
        let path = paths.crc(segment.segment_index);
        self.covered_bytes =
            durable.position.0.saturating_sub(segment.base_position.0).min(self.segment_bytes);
        (self.source, self.segment_base, self.segment_index) =
            (segment.path.clone(), segment.base_position, segment.segment_index);
        self.open_sum = durable.open_sum.filter(|_| self.covered_bytes < self.segment_bytes);
        let (whole_spans, begun_spans) =
            (self.covered_bytes / self.span, self.covered_bytes.div_ceil(self.span));
        unseal(&path)?;
        let file = match self.covered_bytes {
            0 => sys::open_or_make(&path),
            _ => sys::open(&path, OpenOptions::new().read(true).write(true)),
        };
        let file = match file {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(self.missing_sums_error(0)),
            other => other.with_context("open", &path)?,
        };
        self.durable_sums.resize(begun_spans as usize * 4, 0);
        if let Err(e) = file.read_exact_at(&mut self.durable_sums, 0) {
            let length = file.metadata().with_context("look at", &path)?.len();
            return if length < begun_spans * 4 {
                Err(self.missing_sums_error(length / 4))
            } else {
                Err(e).with_context("read", &path)
            };
        }
        self.durable_sums.truncate(whole_spans as usize * 4);
        if file.metadata().with_context("look at", &path)?.len() > begun_spans * 4 {
            // The other checksums are of bytes that may have been cut since.
            sys::set_len(&file, begun_spans * 4).with_context("cut", &path)?;
        }
        self.sums_file = Some((file, path));
        (self.added, self.span_crc, self.written_spans) = (0, 0, whole_spans);
        self.pending_sums.clear();
        Ok(())
    }

    /// Dates the file, which says when the segment was finished.
    pub fn set_finish_time(&self, time: SystemTime) -> Result<()> {
        let Some((file, path)) = &self.sums_file else { return Ok(()) };
        sys::set_modified(file, time).with_context("date", path)
    }

    /// Adds the next bytes of the segment.
    ///
    /// # Errors
    /// Fails at damage: durable bytes do not match their checksum.
    pub fn add_bytes(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let mut part = self.span - self.added % self.span;
            if self.added < self.covered_bytes {
                part = part.min(self.covered_bytes - self.added);
            }
            let part = part.min(bytes.len() as u64) as usize;
            self.span_crc = crc32c::crc32c_append(self.span_crc, &bytes[..part]);
            self.added += part as u64;
            bytes = &bytes[part..];
            if self.added.is_multiple_of(self.span) {
                let sum = std::mem::take(&mut self.span_crc).to_le_bytes();
                if self.added > self.covered_bytes {
                    self.pending_sums.extend_from_slice(&sum);
                } else if self.durable_sums[(self.added / self.span - 1) as usize * 4..][..4] != sum {
                    return Err(self.differs_error(self.added - self.span));
                }
            } else if self.added == self.covered_bytes
                && self.open_sum.is_some_and(|sum| sum != self.span_crc)
            {
                return Err(self.differs_error(self.added - self.added % self.span));
            }
        }
        Ok(())
    }

    /// Returns the checksum of the bytes added to the open span; zero if no span is open.
    pub fn open_sum(&self) -> u32 {
        self.span_crc
    }

    /// Adds the zeros after a pad.
    pub fn add_pad_zeros(&mut self) -> Result<()> {
        while self.added < self.segment_bytes {
            let part = (self.segment_bytes - self.added).min(ZEROS.len() as u64);
            self.add_bytes(&ZEROS[..part as usize])?;
        }
        Ok(())
    }

    /// Writes the sums of the spans that are full, and with `includes_open_span` that of the open one, padded with
    /// zeros.
    pub fn store_sums(&mut self, includes_open_span: bool) -> Result<()> {
        let Some((file, path)) = &self.sums_file else { return Ok(()) };
        let open_bytes = self.added % self.span;
        let mut out = std::mem::take(&mut self.pending_sums);
        let sum_count = out.len() as u64 / 4;
        // The one of durable bytes that are followed again says more than these do.
        if includes_open_span && open_bytes > 0 && self.added >= self.covered_bytes {
            let sum = extend_with_zeros(self.span_crc, self.span - open_bytes);
            out.extend_from_slice(&sum.to_le_bytes());
        }
        let result = sys::write_at(file, &out, self.written_spans * 4).with_context("write", path);
        out.truncate(sum_count as usize * 4);
        match result {
            Ok(()) => self.written_spans += sum_count,
            Err(_) => self.pending_sums = out,
        }
        result
    }

    #[cold]
    fn differs_error(&self, from: u64) -> Error {
        let span_end = (from + self.span).min(self.covered_bytes);
        let fault = SpanFault { from_offset: from, to_offset: span_end, missing: false, is_vouched: false };
        fault.error(&self.source, self.segment_base)
    }

    #[cold]
    fn missing_sums_error(&self, spans: u64) -> Error {
        let span_start = spans * self.span;
        let span_end = (span_start + self.span).min(self.covered_bytes);
        let fault =
            SpanFault { from_offset: span_start, to_offset: span_end, missing: true, is_vouched: false };
        fault.error(&self.source, self.segment_base)
    }
}
