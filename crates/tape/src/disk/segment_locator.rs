//! Where a segment is to be found right now: among the hot ones, or on the disk.

use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use unitape_model::Position;

use crate::disk::hot::HotPathCache;
use crate::disk::layout::{TapeManifest, TapePaths, list_segments, segment_path};
use crate::disk::map::MappedSegment;
use crate::disk::segment_pool::{self, MappedSegmentCache};
use crate::error::{Error, Result};

/// The read-only view of a tape's segments.
#[derive(Debug)]
pub(crate) struct SegmentLocator {
    pub paths: TapePaths,
    pub meta: TapeManifest,
    /// Mappings of hot segments that were left, for when their files come round again.
    released_mappings: MappedSegmentCache,
    /// The hot directory that was found last.
    hot_cache: Mutex<Option<HotPathCache>>,
}

impl SegmentLocator {
    pub fn open(dir: &Path) -> Result<Self> {
        Ok(Self::from_manifest(TapePaths { tape_dir: dir.into() }, TapeManifest::load(dir)?))
    }

    /// Makes the locator of a tape whose manifest was read already.
    pub fn from_manifest(paths: TapePaths, meta: TapeManifest) -> Self {
        Self { paths, meta, released_mappings: MappedSegmentCache::default(), hot_cache: Mutex::default() }
    }

    /// Returns the directory of the tape's hot segments, if the tape has hot segments at the moment.
    pub fn hot_place(&self) -> Result<Option<PathBuf>> {
        let mut cache = self.hot_cache.lock();
        HotPathCache::locate(&mut cache, &self.paths, self.meta.id)
    }

    /// Opens segment `index` and returns it with its first ordinal. Prefers the hot segment to the one on the disk.
    pub fn segment(&self, index: u64) -> Result<Option<(MappedSegment, u64)>> {
        if let Some(hot) = self.hot_place()?
            && let Some(hot_segment) = segment_pool::open(&hot, &self.meta, index, &self.released_mappings)?
        {
            return Ok(Some(hot_segment));
        }
        MappedSegment::open(&segment_path(&self.paths.segments(), index), &self.meta, index, false)
    }

    /// Takes back a segment that [`SegmentLocator::segment`] gave and that is done with.
    pub fn return_segment(&self, segment: MappedSegment) {
        if let Some(segment) = segment.into_unlocked() {
            self.released_mappings.keep_mapping(segment);
        }
    }

    /// Returns whether `mapping` is still the file that writers write to. The durable position and the checksums
    /// describe that file only.
    ///
    /// A segment that was closed and opened again in between may have moved: the file has lost its name, or
    /// a hot one comes before it.
    pub fn is_current(&self, mapping: &MappedSegment) -> Result<bool> {
        let hot = self.hot_place()?.map(|dir| segment_path(&dir, mapping.segment_index));
        Ok(match hot.filter(|path| path.exists()) {
            Some(hot) => hot == mapping.path && mapping.has_name(),
            None => mapping.has_name(),
        })
    }

    /// Maps the segment again if `mapping` is no longer the file that writers write to. Returns `None` if it still is.
    pub fn remap_moved(&self, mapping: &MappedSegment) -> Result<Option<MappedSegment>> {
        if self.is_current(mapping)? {
            return Ok(None);
        }
        Ok(self.segment(mapping.segment_index)?.map(|(segment, _)| segment))
    }

    /// Indices of all segments there are, ascending.
    pub fn indices(&self) -> Result<Vec<u64>> {
        // The hot ones first: a segment goes from there to the disk, and one that went between two looks in the other
        // order would be in neither list.
        let mut segment_indices = match self.hot_place()? {
            Some(hot) => list_segments(&hot)?,
            None => Vec::new(),
        };
        segment_indices.extend(list_segments(&self.paths.segments())?);
        segment_indices.sort_unstable();
        segment_indices.dedup();
        Ok(segment_indices)
    }

    /// Returns the oldest position: the start of the oldest segment, or the tape's origin in it.
    pub fn oldest_position(&self) -> Result<Position> {
        let Some(&first) = self.indices()?.first() else { return Ok(Position(0)) };
        // A damaged segment says nothing of an origin, and is reported when it is read.
        let filler = match self.segment(first) {
            Ok(Some((segment, _))) => segment.filler_bytes(),
            _ => 0,
        };
        Ok(Position(first.saturating_mul(self.meta.segment_bytes)).plus(filler))
    }

    /// Returns whether the tape continues in segment `index`, which is missing and will not appear. `end` returns a
    /// position that the tape reaches.
    pub fn is_lost(&self, index: u64, mut end: impl FnMut() -> Result<Position>) -> Result<bool> {
        // Asks for the end first each time: a segment is in its place before the end passes its start. Asks twice,
        // because a recovery takes the end back before it removes the frames after it.
        for _ in 0..2 {
            if end()?.0 <= index.saturating_mul(self.meta.segment_bytes) || self.segment(index)?.is_some() {
                return Ok(false);
            }
        }
        // Retention may have been at work meanwhile.
        self.explain_missing(index).map(|()| true)
    }

    /// Explains why segment `index`, which is not there, is not: `Ok` if it may still come.
    pub fn explain_missing(&self, index: u64) -> Result<()> {
        let segment_indices = self.indices()?;
        let Some(later) = segment_indices.iter().copied().find(|&i| i >= index) else { return Ok(()) };
        if later == index {
            return Ok(());
        }
        let size = self.meta.segment_bytes;
        let position = Position(index.saturating_mul(size));
        if segment_indices.first() == Some(&later) {
            return Err(Error::Retained { position, oldest: self.oldest_position()? });
        }
        Err(Error::damage(
            &segment_path(&self.paths.segments(), index),
            0,
            "the segment is missing, later ones are there",
        ))
    }
}
