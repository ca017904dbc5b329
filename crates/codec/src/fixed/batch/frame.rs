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
    /// By the byte at this place; [`u16::MAX`] for none.
    Byte(usize, Box<[u16; 256]>),
    /// By its selectors.
    Any,
}

impl RecordFramer {
    /// For records of this layout.
    #[must_use]
    pub fn new(layout: &FixedWidthLayout) -> Self {
        let data: Vec<_> =
            (0..).zip(layout.records()).filter(|(_, r)| r.role() != RecordRole::Header).collect();
        if let [(kind, only)] = data[..]
            && only.when.is_empty()
        {
            return Self { kernel: BatchKernel::best(), select: RecordTypeLookup::One(kind) };
        }
        let place = data.iter().flat_map(|(_, r)| &r.when).map(|s| s.at.clone()).next();
        let one = |at: &std::ops::Range<usize>| {
            at.len() == 1 && data.iter().flat_map(|(_, r)| &r.when).all(|s| s.at == *at)
        };
        let select = match place.filter(one) {
            // If this byte alone decides, each byte value selects one record type.
            Some(at) => {
                let mut text = vec![0; at.start + 1];
                let kind = |byte: usize| {
                    text[at.start] = byte as u8;
                    layout.kind_of(&text).unwrap_or(u16::MAX)
                };
                RecordTypeLookup::Byte(at.start, Box::new(std::array::from_fn(kind)))
            }
            None => RecordTypeLookup::Any,
        };
        Self { kernel: BatchKernel::best(), select }
    }

    /// The records from `at` on that have the length of their kind, their terminator after it and no other line
    /// end in them: these are the records that a [`Decoder`](super::FixedWidthDecoder) finds there, where `at` is not the
    /// start of their file. Gives how many there are; none where text has to be translated first.
    #[inline]
    pub fn fill(
        &self,
        layout: &FixedWidthLayout,
        bytes: &[u8],
        at: usize,
        found: &mut [FramedRecord; LANES],
    ) -> usize {
        if layout.page.is_some() {
            return 0; // selectors are of translated text
        }
        let (mut next, mut count) = (at, 0);
        for framed in found.iter_mut() {
            let Some(record) = self.record_at(layout, bytes, next) else { break };
            *framed = record;
            next = record.end as usize;
            count += 1;
        }
        if layout.terminator == RecordTerminator::None
            || memchr::memchr_iter(b'\n', &bytes[at..next]).count() == count
        {
            return count;
        }
        let mut start = at;
        let one = |f: &&FramedRecord| {
            let end = f.end as usize;
            let whole = memchr::memchr(b'\n', &bytes[start..end]) == Some(end - start - 1);
            start = end;
            whole
        };
        found[..count].iter().take_while(one).count()
    }

    /// The first of the records from `at` on and how many there are, at most [`LANES`], where all of them are of one
    /// sort, length and line end; these are the first that [`RecordFramer::fill`] finds. `None` where that has to look at
    /// each.
    #[inline]
    #[must_use]
    pub fn even(&self, layout: &FixedWidthLayout, bytes: &[u8], at: usize) -> Option<(FramedRecord, usize)> {
        if layout.page.is_some() {
            return None;
        }
        let first = self.record_at(layout, bytes, at)?;
        let (length, whole) = (first.length as usize, first.end as usize - at);
        let rest = &bytes[at..];
        let records = || rest.chunks_exact(whole).take(LANES);
        // The loops look at the same bytes of each record; what they look for is decided before.
        let count = match (layout.terminator, whole - length) {
            (RecordTerminator::None, _) => records().len(),
            (_, 2) => {
                records().take_while(|r| matches!(r[length..], [b'\r', b'\n']) && r[0] != b'\r').count()
            }
            // A carriage return before a line feed belongs to the line end; one before a record is passed over.
            _ => {
                let last = length - 1;
                records().take_while(|r| r[length] == b'\n' && r[last] != b'\r' && r[0] != b'\r').count()
            }
        };
        // The bytes from the start of a record on decide its type.
        let from = |i: usize| match layout.terminator {
            RecordTerminator::None => &rest[i * whole..][..whole],
            _ => &rest[i * whole..],
        };
        let alike = |i: &usize| self.kind_of(layout, from(*i)) == Some(first.kind);
        let count = match self.select {
            RecordTypeLookup::One(_) => count,
            RecordTypeLookup::Byte(..) | RecordTypeLookup::Any => (0..count).take_while(alike).count(),
        };
        let even = layout.terminator == RecordTerminator::None
            || self.kernel.count(&rest[..count * whole], b'\n') == count;
        (even && count > 0).then_some((first, count))
    }

    #[inline]
    fn record_at(&self, layout: &FixedWidthLayout, bytes: &[u8], at: usize) -> Option<FramedRecord> {
        let text = bytes.get(at..).filter(|t| !t.is_empty())?;
        let framed = |length: usize, end: usize, kind| {
            let (length, end) = (u32::try_from(length).ok()?, u32::try_from(end).ok()?);
            Some(FramedRecord { length, end, kind })
        };
        if layout.terminator == RecordTerminator::None {
            let length = layout.record_bytes_max;
            let kind = self.kind_of(layout, text.get(..length)?)?;
            return framed(length, at + length, kind);
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
        framed(length, at + length + line_end, kind)
    }

    #[inline]
    fn kind_of(&self, layout: &FixedWidthLayout, text: &[u8]) -> Option<u16> {
        match &self.select {
            RecordTypeLookup::One(kind) => Some(*kind),
            RecordTypeLookup::Byte(at, kinds) => match kinds[usize::from(*text.get(*at)?)] {
                u16::MAX => None,
                kind => Some(kind),
            },
            RecordTypeLookup::Any => layout.kind_of(text),
        }
    }
}
