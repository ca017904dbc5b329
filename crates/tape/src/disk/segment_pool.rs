//! Shared memory that is used again: a hot segment that is on the disk gives its pages to a later one.
//!
//! ```text
//!   0007.seg ──recorder: on the disk──▶ spare-0007 ──preallocator: nobody holds it, zeroed──▶ prepared-000c ──▶ 000c.seg
//!      ▲ readers hold it (shared lock)      │ somebody still does
//!      └ no name, no new reader             └──▶ unlinked; its memory goes with the last who has it
//! ```
//!
//! Fresh pages are most of the cost of a hot tape: the kernel must find and clear each page, and enter it into the page
//! tables of the writer and of every reader. Reused pages need only to be zeroed.
//!
//! Invariant: bytes that a reader can see are never written again. A reader holds a shared lock on the file while it
//! has the segment. It trusts a segment only if, under the lock, the file still has its name: then the file was not
//! renamed before, and cannot be taken until the lock is released. The preallocator takes a file only when it has lost
//! its name and the exclusive lock is free. It releases the lock before the file gets its next name. The kernel
//! releases the locks of dead processes. A stopped process keeps its segment, and the preallocator makes a fresh one.
//!
//! The lock protects whole files, so memory order plays no part: the system calls are far stronger than the order
//! needed between the last byte zeroed and the first byte read.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::disk::layout::{SPARE, SegmentHeader, TapeManifest, remove, segment_path};
use crate::disk::map::MappedSegment;
use crate::disk::memory::FileId;
use crate::disk::sys;
use crate::error::{Error, FileContext, Result};

/// Greatest number of spare files; further ones are removed.
const SPARES_MAX: usize = 4;

/// Mappings kept to be used again, at most: a window of segments.
const MAPPINGS_MAX: usize = 64;

/// Takes segment `index`, which is on the disk, out of the hot directory: to be used again, or for good.
pub(crate) fn retire_segment(hot: &Path, index: u64) -> Result<()> {
    let path = segment_path(hot, index);
    if spare_files(hot).len() >= SPARES_MAX {
        return remove(&path);
    }
    match sys::rename(&path, &hot.join(format!("{SPARE}{index:016x}"))) {
        // A process that closed or removed the tape was sooner.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.with_context("rename", &path),
    }
}

/// Mappings of segments that their owner has finished with. They are not locked: their content has no meaning.
#[derive(Debug)]
pub(crate) struct MappedSegmentCache<T = MappedSegment>(Mutex<Vec<T>>);

impl<T> Default for MappedSegmentCache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: AsRef<MappedSegment>> MappedSegmentCache<T> {
    /// Keeps a mapping, and drops those whose files are gone: they would hold the memory.
    pub fn keep_mapping(&self, segment: T) {
        let mut all = self.0.lock();
        all.retain(|mapping| mapping.as_ref().is_linked());
        if all.len() < MAPPINGS_MAX {
            all.push(segment);
        }
    }

    /// Takes the mapping of a file out of the pool, if the pool has it.
    pub fn take_mapping(&self, file: FileId) -> Option<T> {
        let mut all = self.0.lock();
        let index = all.iter().position(|mapping| mapping.as_ref().id() == Some(file))?;
        Some(all.swap_remove(index))
    }
}

impl AsRef<MappedSegment> for MappedSegment {
    fn as_ref(&self) -> &MappedSegment {
        self
    }
}

/// Makes a zeroed segment at `path` from a spare file in `hot`, or returns `None` if there is no usable spare. `mapped`
/// holds the writer's own mappings of earlier files.
pub(crate) fn recycle(
    hot: &Path,
    path: &Path,
    header: &SegmentHeader,
    mapped: &MappedSegmentCache<Arc<MappedSegment>>,
) -> Option<MappedSegment> {
    for spare in spare_files(hot) {
        // A file that cannot be used is removed: a stopped reader's file would otherwise come before all others.
        match reuse_spare(&spare, path, header, mapped) {
            Some(segment) => return Some(segment),
            None => _ = remove(&spare),
        }
    }
    None
}

fn reuse_spare(
    spare: &Path,
    path: &Path,
    header: &SegmentHeader,
    mapped: &MappedSegmentCache<Arc<MappedSegment>>,
) -> Option<MappedSegment> {
    let cached_segment = mapped.take_mapping(FileId::from_path(spare)?);
    let segment = match cached_segment {
        Some(mapping) => mapping.reuse_as(spare, header),
        None => MappedSegment::map_spare(spare, header)
            .filter(|segment| FileId::from_path(spare) == segment.id())?,
    };
    if !segment.lock_exclusive() {
        return None;
    }
    segment.zero();
    segment.write_header(header);
    sys::rename(spare, path).ok()?;
    segment.unlock_file();
    Some(segment.reuse_as(path, header))
}

/// Files that wait to be used again.
fn spare_files(hot: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(hot) else { return Vec::new() };
    let waits = |name: &std::ffi::OsStr| name.to_str().is_some_and(|n| n.starts_with(SPARE));
    entries.flatten().filter(|e| waits(&e.file_name())).map(|e| e.path()).collect()
}

/// Opens segment `index` of a hot directory for its writer, or returns `None` if it does not exist.
pub(crate) fn open_own(hot: &Path, meta: &TapeManifest, index: u64) -> Result<Option<(MappedSegment, u64)>> {
    let path = segment_path(hot, index);
    let own_segment = MappedSegment::open(&path, meta, index, true)?;
    if own_segment.as_ref().is_some_and(|(segment, _)| FileId::from_path(&path) != segment.id()) {
        let reason = "is a link; a hot segment lies in its directory itself".into();
        return Err(Error::UnsafeHot { path, reason });
    }
    Ok(own_segment)
}

/// Opens segment `index` of a hot directory for a reader, locked so that no writer recycles it. Returns `None` if it
/// does not exist.
pub(crate) fn open(
    hot: &Path,
    meta: &TapeManifest,
    index: u64,
    mapped: &MappedSegmentCache,
) -> Result<Option<(MappedSegment, u64)>> {
    let path = segment_path(hot, index);
    let header = SegmentHeader { meta: *meta, index, first_ordinal: 0 };
    // Each turn but the last means that the segment lost its name in between, which happens to it once.
    for _ in 0..3 {
        let Some(file) = FileId::from_path(&path) else { return Ok(None) };
        let mut segment = match mapped.take_mapping(file) {
            Some(mapping) => mapping.reuse_as(&path, &header),
            None => match MappedSegment::map(&path, meta, index, false)? {
                Some(segment) => segment,
                None => return Ok(None),
            },
        };
        if segment.lock_shared() && FileId::from_path(&path) == segment.id() {
            let first_ordinal = segment.first_ordinal(meta)?;
            return Ok(Some((segment, first_ordinal)));
        }
    }
    Ok(None)
}
