//! Memory below a mapped file: which file it is, whether it lives in memory, where its holes are, and hints about
//! its pages and lines.
//!
//! This module does not know segments; none of the hints changes a byte.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use memmap2::MmapRaw;
use unitape_model::LINE;

#[cfg(target_os = "linux")]
use crate::disk::sys;

/// The identity of a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId(u64, u64);

impl FileId {
    /// Identifies the file that has this name now. A link is identified as a link, so that it does not pass for its
    /// target.
    pub fn from_path(path: &Path) -> Option<Self> {
        std::fs::symlink_metadata(path).ok().map(|m| Self::from(&m))
    }

    /// Identifies the file that an opening of this name finds now, also through a link.
    pub fn from_target(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|m| Self::from(&m))
    }
}

impl From<&Metadata> for FileId {
    fn from(meta: &Metadata) -> Self {
        Self(meta.dev(), meta.ino())
    }
}

/// Prefetches a cache line; a hint that does not affect results.
#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch touches no memory that the program can see; any address will do.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Faults in pages for writing. An old kernel refuses, and they are faulted one by one as they are written.
pub(crate) fn populate(map: &MmapRaw, from: u64, length: u64) {
    #[cfg(target_os = "linux")]
    sys::advise(map, from, length, rustix::mm::Advice::LinuxPopulateWrite);
    #[cfg(not(target_os = "linux"))]
    let _ = (map, from, length);
}

/// Asks for huge pages, which a file system in memory provides if it is mounted with `huge=advise`.
pub(crate) fn advise_huge(map: &MmapRaw) {
    #[cfg(target_os = "linux")]
    sys::advise(map, 0, map.len() as u64, rustix::mm::Advice::LinuxHugepage);
    #[cfg(not(target_os = "linux"))]
    let _ = map;
}

/// Says that the pages are gone through once, from first to last. The kernel then does not note of each, when they are
/// unmapped, that it was in use.
pub(crate) fn advise_once(map: &MmapRaw) {
    #[cfg(target_os = "linux")]
    sys::advise(map, 0, map.len() as u64, rustix::mm::Advice::Sequential);
    #[cfg(not(target_os = "linux"))]
    let _ = map;
}

/// Returns whether the file is on a file system in memory.
pub(crate) fn is_in_memory(file: &File) -> bool {
    #[cfg(target_os = "linux")]
    {
        const TMPFS: i128 = 0x0102_1994;
        rustix::fs::fstatfs(file).is_ok_and(|fs| fs.f_type as i128 == TMPFS)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        false
    }
}

/// Finds the first byte at or after `offset` that is not in a hole of the file, or returns `None` if only holes follow.
pub(crate) fn next_data(file: &File, offset: u64) -> Option<u64> {
    #[cfg(target_os = "linux")]
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(offset)) {
        Ok(data_offset) => Some(data_offset),
        Err(rustix::io::Errno::NXIO) => None,
        // A file system that does not distinguish holes from data: everything is data.
        Err(_) => Some(offset),
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        Some(offset)
    }
}

/// Copies `length` bytes after the header word. A frame of few lines is copied without a call, and no store crosses a
/// line. The code is written out, because the compiler would turn a loop over lines into a call again.
///
/// # Safety
/// As `copy_nonoverlapping`.
#[inline(always)] // into the append, where it is the most of it
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    const HEAD: usize = LINE - 8;
    // SAFETY: both ranges have `length` bytes and do not overlap, as for `copy_nonoverlapping`; the parts follow one another
    // and end with `length`.
    unsafe {
        let line = |n: usize| {
            let offset = HEAD + n * LINE;
            std::ptr::copy_nonoverlapping(from.add(offset), to.add(offset), LINE);
        };
        let head = || std::ptr::copy_nonoverlapping(from, to, HEAD);
        match length / LINE {
            _ if length % LINE != HEAD => std::ptr::copy_nonoverlapping(from, to, length), // no end of a frame
            0 => head(),
            1 => (head(), line(0)).1,
            2 => (head(), line(0), line(1)).2,
            3 => (head(), line(0), line(1), line(2)).3,
            _ => std::ptr::copy_nonoverlapping(from, to, length),
        }
    }
}
