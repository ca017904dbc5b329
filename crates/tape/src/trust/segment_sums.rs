//! Checks that the bytes of a segment still match its checksums.
//!
//! ```text
//!  span      0        1        2 (open)          covered: the bytes before the durable position
//!        ├────────┼────────┼─────▌──┤
//!  .crc    sum 0    sum 1    sum 2             of a closed tape the last sum is of the covered bytes and zeros;
//!                                              of another one it may be of more bytes than those
//!  durable                 └ sum ┘             always of exactly the covered bytes of the open span
//! ```

use unitape_model::{LINE, Position};

use crate::disk::durable::{DurableMark, store_durable};
use crate::disk::end::committed_bytes;
use crate::disk::layout::{TapeManifest, TapePaths, read_start, segment_path};
use crate::disk::map::MappedSegment;
use crate::disk::segment_locator::SegmentLocator;
use crate::error::{FileContext, Result};
use crate::trust::span::{SpanFault, extend_with_zeros};

/// The checksums of one segment as its `.crc` has them.
#[derive(Debug)]
pub(crate) struct SegmentSums {
    sum_bytes: Vec<u8>,
    span: u64,
    segment_bytes: u64,
}

/// The span that holds the end of the covered bytes, and its sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenSpan {
    /// The checksum of its covered bytes, from the file `durable`; `None` in tapes of earlier builds.
    pub covered_sum: Option<u32>,
    /// The bytes that the checksum in the `.crc` covers.
    pub stored_state: StoredChecksumState,
}

/// The checksum that the `.crc` has for the open span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredChecksumState {
    /// The covered bytes and zeros: the tape was closed.
    Covered,
    /// The covered bytes, perhaps more, and zeros: its recorder died.
    AtLeastCovered,
    /// A recorder may be writing it.
    Moving,
}

impl SegmentSums {
    /// Reads the checksums of segment `index`. A missing `.crc` file gives no checksums.
    pub fn load(paths: &TapePaths, meta: &TapeManifest, index: u64) -> Result<Self> {
        let path = paths.crc(index);
        let (span, size) = (meta.span(), meta.segment_bytes);
        let sums = match read_start(&path, size / span * 4) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            other => other.with_context("read", &path)?,
        };
        Ok(Self { sum_bytes: sums, span, segment_bytes: size })
    }

    /// Counts the whole checksums.
    pub fn len(&self) -> u64 {
        self.sum_bytes.len() as u64 / 4
    }

    /// Returns the checksum of span `i`, or `None` if the file has none for it.
    pub fn get(&self, i: u64) -> Option<u32> {
        let bytes = self.sum_bytes.get(i as usize * 4..i as usize * 4 + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }

    /// Checks span `i` and returns its fault, if any; checksums must cover `covered` bytes of the segment.
    ///
    /// The covered bytes must be committed, or no process may write the segment.
    pub fn fault(&self, segment: &MappedSegment, i: u64, covered: u64, open: OpenSpan) -> Option<SpanFault> {
        let span_start = i * self.span;
        let span_end = (span_start + self.span).min(covered);
        let fault =
            SpanFault { from_offset: span_start, to_offset: span_end, missing: false, is_vouched: false };
        // SAFETY: within the segment by `to`; committed or written by nobody, by the caller's word.
        let bytes = unsafe { segment.bytes(span_start, (span_end - span_start) as usize) };
        let sum = crc32c::crc32c(bytes);
        let is_whole_span = span_end - span_start == self.span;
        let vouched = !is_whole_span && open.covered_sum == Some(sum);
        if !is_whole_span && open.covered_sum.is_some() && !vouched {
            return Some(fault);
        }
        let Some(stored) = self.get(i) else {
            return Some(SpanFault { missing: true, is_vouched: vouched, ..fault });
        };
        let is_same = match open.stored_state {
            _ if is_whole_span => stored == sum,
            StoredChecksumState::Covered => {
                stored == extend_with_zeros(sum, self.span - (span_end - span_start))
            }
            _ if vouched => true,
            StoredChecksumState::AtLeastCovered => self.is_of_a_longer_start(segment, span_end, sum, stored),
            // Nothing can be said.
            StoredChecksumState::Moving => true,
        };
        (!is_same).then_some(SpanFault { is_vouched: vouched, ..fault })
    }

    /// Returns whether `stored` is the checksum of the span's bytes up to `start` or further. `sum` is the checksum up
    /// to `start`.
    fn is_of_a_longer_start(&self, segment: &MappedSegment, start: u64, mut sum: u32, stored: u32) -> bool {
        let span_end = start - start % self.span + self.span;
        for to in (start..=span_end.min(self.segment_bytes)).step_by(LINE) {
            if extend_with_zeros(sum, span_end - to) == stored {
                return true;
            }
            if to < span_end {
                // SAFETY: within the segment, which nobody writes: its recorder died, and its lock is ours.
                sum = crc32c::crc32c_append(sum, unsafe { segment.bytes(to, LINE) });
            }
        }
        false
    }

    /// Returns the first fault of the first `covered` bytes.
    pub fn first_fault(&self, segment: &MappedSegment, covered: u64, open: OpenSpan) -> Option<SpanFault> {
        (0..covered.div_ceil(self.span)).find_map(|i| self.fault(segment, i, covered, open))
    }
}

/// Checks the durable part of the durable position's segment, wherever that is: a writer or a recorder will read it
/// again. In a closed tape, `stored` is the exact checksum of its last span.
///
/// # Errors
/// Fails at damage; then nothing was changed.
pub(crate) fn check_durable(
    paths: &TapePaths,
    meta: &TapeManifest,
    durable: &DurableMark,
    stored: StoredChecksumState,
) -> Result<()> {
    let (index, covered) = (durable.position.0 / meta.segment_bytes, durable.position.0 % meta.segment_bytes);
    if covered == 0 {
        return Ok(());
    }
    let checks = SegmentSums::load(paths, meta, index)?;
    let open_span = OpenSpan { covered_sum: durable.open_sum, stored_state: stored };
    if let Some(hot) = SegmentLocator::from_manifest(paths.clone(), *meta).hot_place()?
        && let Some((segment, _)) = MappedSegment::open(&segment_path(&hot, index), meta, index, false)?
    {
        check_segment(&checks, &segment, covered, open_span)?;
        let Some((copy, _)) =
            MappedSegment::open(&segment_path(&paths.segments(), index), meta, index, false)?
        else {
            return Ok(());
        };
        // It may be on its way into a new file.
        let copy_bytes = committed_bytes(&copy);
        return check_segment(
            &checks,
            &copy,
            if copy_bytes < covered { copy_bytes - copy_bytes % meta.span() } else { covered },
            open_span,
        );
    }
    match MappedSegment::open(&segment_path(&paths.segments(), index), meta, index, false)? {
        Some((segment, _)) => check_segment(&checks, &segment, covered, open_span),
        None => Ok(()),
    }
}

/// Checks the durable part of the copy of a hot segment.
///
/// # Errors
/// Fails at damage.
pub(crate) fn check_copy(
    live: &SegmentLocator,
    copy: &MappedSegment,
    have: u64,
    durable: &DurableMark,
) -> Result<()> {
    let covered = durable.position.0.saturating_sub(copy.base_position.0).min(copy.data_bytes);
    let present_bytes = if have < covered { have - have % live.meta.span() } else { covered };
    if present_bytes == 0 {
        return Ok(());
    }
    let checks = SegmentSums::load(&live.paths, &live.meta, copy.segment_index)?;
    check_segment(
        &checks,
        copy,
        present_bytes,
        OpenSpan { covered_sum: durable.open_sum, stored_state: StoredChecksumState::Moving },
    )
}

/// Adds the sum of the open span, which tapes of earlier builds do not keep, after it was compared with the `.crc`.
///
/// # Errors
/// Fails at damage, or if the system refuses.
pub(crate) fn vouch(paths: &TapePaths, meta: &TapeManifest, durable: &mut DurableMark) -> Result<()> {
    if durable.open_sum.is_some() || durable.position == Position(0) {
        return Ok(());
    }
    check_durable(paths, meta, durable, StoredChecksumState::AtLeastCovered)?;
    let (index, covered) = (durable.position.0 / meta.segment_bytes, durable.position.0 % meta.segment_bytes);
    let span_start = covered - covered % meta.span();
    durable.open_sum = if span_start == covered {
        Some(0)
    } else {
        let Some((segment, _)) = SegmentLocator::from_manifest(paths.clone(), *meta).segment(index)? else {
            return Ok(());
        };
        // SAFETY: within the segment, and compared with its checksum just now, below the durable position.
        Some(crc32c::crc32c(unsafe { segment.bytes(span_start, (covered - span_start) as usize) }))
    };
    store_durable(paths, durable)
}

fn check_segment(checks: &SegmentSums, segment: &MappedSegment, covered: u64, open: OpenSpan) -> Result<()> {
    match checks.first_fault(segment, covered, open) {
        Some(fault) => Err(fault.error(&segment.path, segment.base_position)),
        None => Ok(()),
    }
}
