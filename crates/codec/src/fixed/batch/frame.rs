//! Where records are that have their length and their line end, without looking at what is in them.

use super::LANES;
use super::simd::BatchKernel;
use crate::fixed::layout::FixedWidthLayout;
use crate::fixed::text::{RecordRole, RecordTerminator};

/// Finds records one after the other.
#[derive(Debug, Clone)]
pub struct RecordFramer {
    kernel: BatchKernel,
    select: RecordTypeLookup,
}

/// A record that has its length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FramedRecord {
    /// Without its terminator.
    pub length: u32,
    /// Behind its terminator.
    pub end: u32,
    /// Which of the layout's records it is.
    pub kind: u16,
}

/// How the type of a record is recognised.
#[derive(Debug, Clone)]
enum RecordTypeLookup {
    /// There is only this one.
    One(u16),
    /// By the byte at this offset; [`u16::MAX`] means no type.
    Byte(usize, Box<[u16; 256]>),
    /// By its selectors.
    Any,
}

impl RecordFramer {
    /// Makes a framer for records of this layout.
    #[must_use]
    pub fn new(layout: &FixedWidthLayout) -> Self {
        let data: Vec<_> =
            (0..).zip(layout.records()).filter(|(_, r)| r.role() != RecordRole::Header).collect();
        if let [(kind, only)] = data[..]
            && only.selectors.is_empty()
        {
            return Self { kernel: BatchKernel::best(), select: RecordTypeLookup::One(kind) };
        }
        let selector_range = data.iter().flat_map(|(_, r)| &r.selectors).map(|s| s.range.clone()).next();
        let decides_alone = |range: &std::ops::Range<usize>| {
            range.len() == 1 && data.iter().flat_map(|(_, r)| &r.selectors).all(|s| s.range == *range)
        };
        let select = match selector_range.filter(decides_alone) {
            // If this byte alone decides, each byte value selects one record type.
            Some(byte_range) => {
                let mut text = vec![0; byte_range.start + 1];
                let kind = |byte: usize| {
                    text[byte_range.start] = byte as u8;
                    layout.kind_of(&text).unwrap_or(u16::MAX)
                };
                RecordTypeLookup::Byte(byte_range.start, Box::new(std::array::from_fn(kind)))
            }
            None => RecordTypeLookup::Any,
        };
        Self { kernel: BatchKernel::best(), select }
    }

    /// Frames the records from `offset` on and returns their number. Each record must have the length of its kind,
    /// its terminator and no other line end inside. A [`Decoder`](super::FixedWidthDecoder) finds the same records
    /// there, unless `offset` is the start of their file. Returns 0 if the text must be translated first.
    #[inline]
    pub fn frame_records(
        &self,
        layout: &FixedWidthLayout,
        bytes: &[u8],
        offset: usize,
        records: &mut [FramedRecord; LANES],
    ) -> usize {
        if layout.page.is_some() {
            return 0; // selectors are of translated text
        }
        let (mut next, mut count) = (offset, 0);
        for framed in records.iter_mut() {
            let Some(record) = self.record_at(layout, bytes, next) else { break };
            *framed = record;
            next = record.end as usize;
            count += 1;
        }
        if layout.terminator == RecordTerminator::None
            || memchr::memchr_iter(b'\n', &bytes[offset..next]).count() == count
        {
            return count;
        }
        let mut record_start = offset;
        let has_one_line_end = |f: &&FramedRecord| {
            let record_end = f.end as usize;
            let is_single_line = memchr::memchr(b'\n', &bytes[record_start..record_end])
                == Some(record_end - record_start - 1);
            record_start = record_end;
            is_single_line
        };
        records[..count].iter().take_while(has_one_line_end).count()
    }

    /// Returns the first record from `offset` on and the number of records like it, at most [`LANES`]. They have the
    /// same type, length and line end, and [`RecordFramer::frame_records`] finds them first too. Returns `None` if each record
    /// must be looked at.
    #[inline]
    #[must_use]
    pub fn uniform_run(
        &self,
        layout: &FixedWidthLayout,
        bytes: &[u8],
        offset: usize,
    ) -> Option<(FramedRecord, usize)> {
        if layout.page.is_some() {
            return None;
        }
        let first_record = self.record_at(layout, bytes, offset)?;
        let (length, stride) = (first_record.length as usize, first_record.end as usize - offset);
        let bytes_after = &bytes[offset..];
        let records = || bytes_after.chunks_exact(stride).take(LANES);
        // The loops look at the same bytes of each record; what they look for is decided before.
        let count = match (layout.terminator, stride - length) {
            (RecordTerminator::None, _) => records().len(),
            (_, 2) => {
                records().take_while(|r| matches!(r[length..], [b'\r', b'\n']) && r[0] != b'\r').count()
            }
            // A carriage return before a line feed belongs to the line end; one before a record is passed over.
            _ => {
                let terminator_index = length - 1;
                records()
                    .take_while(|r| r[length] == b'\n' && r[terminator_index] != b'\r' && r[0] != b'\r')
                    .count()
            }
        };
        // The bytes from the start of a record on decide its type.
        let from = |i: usize| match layout.terminator {
            RecordTerminator::None => &bytes_after[i * stride..][..stride],
            _ => &bytes_after[i * stride..],
        };
        let alike = |i: &usize| self.kind_of(layout, from(*i)) == Some(first_record.kind);
        let count = match self.select {
            RecordTypeLookup::One(_) => count,
            RecordTypeLookup::Byte(..) | RecordTypeLookup::Any => (0..count).take_while(alike).count(),
        };
        let is_uniform = layout.terminator == RecordTerminator::None
            || self.kernel.count(&bytes_after[..count * stride], b'\n') == count;
        (is_uniform && count > 0).then_some((first_record, count))
    }

    #[inline]
    fn record_at(&self, layout: &FixedWidthLayout, bytes: &[u8], offset: usize) -> Option<FramedRecord> {
        let text = bytes.get(offset..).filter(|t| !t.is_empty())?;
        let framed = |length: usize, end: usize, kind| {
            let (length, end) = (u32::try_from(length).ok()?, u32::try_from(end).ok()?);
            Some(FramedRecord { length, end, kind })
        };
        if layout.terminator == RecordTerminator::None {
            let length = layout.record_bytes_max;
            let kind = self.kind_of(layout, text.get(..length)?)?;
            return framed(length, offset + length, kind);
        }
        let kind = self.kind_of(layout, text)?;
        let length = layout.records[usize::from(kind)].bytes;
        let (last, line_end) = (*text.get(length - 1)?, text.get(length..)?);
        let line_end = match (layout.terminator, line_end) {
            (_, [b'\r', b'\n', ..]) => 2,
            // With a carriage return before it the line is shorter than the record.
            (RecordTerminator::Newline, [b'\n', ..]) if last != b'\r' => 1,
            _ => return None,
        };
        // Line ends between records are passed over before one begins.
        if matches!(text[0], b'\n' | b'\r') {
            return None;
        }
        framed(length, offset + length + line_end, kind)
    }

    #[inline]
    fn kind_of(&self, layout: &FixedWidthLayout, text: &[u8]) -> Option<u16> {
        match &self.select {
            RecordTypeLookup::One(kind) => Some(*kind),
            RecordTypeLookup::Byte(offset, kinds) => match kinds[usize::from(*text.get(*offset)?)] {
                u16::MAX => None,
                kind => Some(kind),
            },
            RecordTypeLookup::Any => layout.kind_of(text),
        }
    }
}
