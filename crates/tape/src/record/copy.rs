//! The disk's copy of a hot segment, and how bytes get into it.
//!
//! ```text
//!   hot      ■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■□□□   committed, and not yet
//!            │    from                                       to│
//!   pages  ──┴─┬───────┬──────────────────────────────────┬────┴──┬──
//!   copy       │ 3rd   │ 1st: all whole pages, directly   │ 2nd   │
//!              └───────┴──────────────────────────────────┴───────┘
//! ```
//!
//! Small pieces are stored through a mapping. Large pieces go around the page cache, from the hot segment's own memory:
//! through the cache this kind of machine writes a third of what its disk can write.
//!
//! Invariant: the page with the first new word is written last, so that incomplete data cannot be reached, whenever the
//! process dies. After the last new frame there are zeros.

use std::fs::File;
use std::path::PathBuf;

use parking_lot::Mutex;

use crate::disk::layout::{HEADER_PAGE, SegmentHeader, segment_path};
use crate::disk::map::{MappedSegment, SegmentAllocation};
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::sys;
use crate::error::{FileContext, Result};

/// Bytes from which going around the page cache is worth its three calls.
const DIRECT_MIN: u64 = 256 << 10;

/// Alignment of direct writes, in the file and in memory.
const PAGE: u64 = 4096;

/// The disk's copy of a hot segment.
#[derive(Debug)]
pub(crate) struct SegmentCopy {
    pub segment: MappedSegment,
    /// Data offset up to which it is there already.
    copied_end: u64,
    /// The writer of the copy, for one thread at a time.
    writer: Mutex<CopyWriter>,
}

/// How much is written.
#[derive(Debug)]
struct CopyWriter {
    /// The copy's file, opened around the page cache; `None` if the file system does not support that.
    direct: Option<File>,
    last_page: LastPage,
}

/// The last page of a direct write.
#[derive(Debug)]
#[repr(C, align(4096))]
struct AlignedPage([u8; PAGE as usize]);

type LastPage = Box<AlignedPage>;

impl SegmentCopy {
    /// Makes a copy that already has everything up to data offset `copied_end`.
    pub fn new(segment: MappedSegment, copied_end: u64) -> Self {
        let direct = sys::open_direct(&segment.path).ok();
        let writer = CopyWriter { direct, last_page: Box::new(AlignedPage([0; PAGE as usize])) };
        Self { segment, copied_end, writer: Mutex::new(writer) }
    }

    /// Copies the committed bytes of `source` from data offset `from`, a frame's start, to `to`, a frame's end.
    pub fn copy_range(&self, source: &MappedSegment, from: u64, to: u64) -> Result<()> {
        let copy_start = from.max(self.copied_end);
        if copy_start >= to {
            return Ok(());
        }
        let mut writer = self.writer.lock();
        if to - copy_start >= DIRECT_MIN && writer.direct.is_some() {
            match writer.copy_range(source, copy_start, to) {
                // A file system that opens a file for this and then will not have it.
                Err(e) if e.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                    writer.direct = None;
                }
                other => return other.with_context("write", &self.segment.path),
            }
        }
        // SAFETY: the caller's word is that the range is committed in `source`. It is beyond what this copy has
        // committed, and only the holder of the recorder's lock writes to it.
        unsafe { self.segment.copy_in(copy_start, source.bytes(copy_start, (to - copy_start) as usize)) };
        Ok(())
    }
}

impl CopyWriter {
    fn copy_range(&mut self, source: &MappedSegment, from: u64, to: u64) -> std::io::Result<()> {
        let Some(file) = &self.direct else { return Ok(()) };
        let first_page = from - from % PAGE;
        let last_page = to - to % PAGE;
        let write = |from: u64, to: u64| {
            // SAFETY: committed by the caller's word: the range ends at `to` at most, and what is before `from` in
            // the first page was committed before.
            let bytes = unsafe { source.bytes(from, (to - from) as usize) };
            sys::write_at(file, bytes, HEADER_PAGE + from)
        };
        write(first_page + PAGE, last_page)?;
        if last_page < to {
            let length = (to - last_page) as usize;
            // SAFETY: as above.
            self.last_page.0[..length].copy_from_slice(unsafe { source.bytes(last_page, length) });
            self.last_page.0[length..].fill(0);
            sys::write_at(file, &self.last_page.0, HEADER_PAGE + last_page)?;
        }
        write(first_page, first_page + PAGE)
    }
}

/// The file of the next copy, made while the disk is busy with this one.
#[derive(Debug, Default)]
pub(crate) struct SpareCopy {
    /// The segment for which it was tried last.
    tried_segment: u64,
    made: Option<MappedSegment>,
}

impl SpareCopy {
    /// Returns the path of a copy until it is complete and gets its name.
    pub fn path(live: &SegmentLocator) -> PathBuf {
        live.paths.run().join("recording")
    }

    /// Makes that of segment `index`, once. If it cannot, the caller that needs it tries again and reports why.
    pub fn make_copy(&mut self, live: &SegmentLocator, index: u64) {
        if self.tried_segment != index && !segment_path(&live.paths.segments(), index).exists() {
            // The first ordinal is known when it is taken.
            let header = SegmentHeader { meta: live.meta, index, first_ordinal: 0 };
            self.made = MappedSegment::create(&Self::path(live), &header, SegmentAllocation::Ready).ok();
        }
        self.tried_segment = index;
    }

    /// Installs the file of a copy with this header, and returns it with its path. The `durable` bytes are on the disk in
    /// the new file before it replaces the old one, which has them too.
    pub fn install(
        &mut self,
        live: &SegmentLocator,
        header: &SegmentHeader,
        path: PathBuf,
        durable: &[u8],
    ) -> Result<MappedSegment> {
        let temp = Self::path(live);
        let mut segment = match self.made.take().filter(|made| made.segment_index == header.index) {
            Some(made) => {
                made.write_header(header);
                made
            }
            None => MappedSegment::create(&temp, header, SegmentAllocation::Ready)?,
        };
        if !durable.is_empty() {
            // SAFETY: the new file is ours, has no segment's name yet, and is larger than what is durable of a segment.
            unsafe { segment.copy_in(0, durable) };
            sys::sync_data(&segment.file).with_context("flush", &temp)?;
        }
        sys::rename(&temp, &path).with_context("rename", &path)?;
        segment.path = path;
        Ok(segment)
    }
}

impl Drop for SpareCopy {
    fn drop(&mut self) {
        if let Some(open_copy) = &self.made {
            // If the file stays, the next recorder removes it.
            _ = sys::unlink(&open_copy.path);
        }
    }
}

const _: () = assert!(HEADER_PAGE.is_multiple_of(PAGE) && DIRECT_MIN >= 4 * PAGE);
