//! A look at every segment of a tape that nobody writes: how far its frames go, whether its header page is right.
//!
//! Nothing here believes a header page or a checksum: frames carry their own place in their header word.

use unitape_model::{LINE, Position};

use crate::disk::definitions::DEFINITION_KINDS;
use crate::disk::layout::{
    HEADER_PAGE, SegmentHeader, TapeManifest, TapePaths, list_segments, read_start, segment_path,
};
use crate::disk::map::{HeaderWordState, MappedSegment};
use crate::error::{Error, FileContext, Result};

/// One segment on the disk.
#[derive(Debug)]
pub(crate) struct SegmentSurvey {
    pub index: u64,
    /// Position of its first byte of data.
    pub base: Position,
    /// Whole lines of data that the file has.
    pub length: u64,
    /// Bytes of the filler with which it begins, on a tape that begins within the segment.
    pub filler: u64,
    /// The first ordinal by its own header page, or what is wrong with that.
    pub header: Result<u64>,
    /// Data offset after the last frame that can be walked to, and after the last of them that ends a unit.
    pub frames_end: u64,
    pub unit_end: Option<u64>,
    /// Events among the frames.
    pub events: u64,
    /// The end of the walk, after the last frame.
    pub stop: SegmentScanEnd,
}

/// The reason why a walk through a segment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentScanEnd {
    /// The frames fill the segment, or a pad says that the rest is empty: the tape continues in the next one.
    Full,
    /// A word that is zero.
    Nothing,
    /// A word that is neither zero nor a frame's, or the end of a file that was cut short.
    Damage,
}

/// All segments of a tape on the disk.
#[derive(Debug)]
pub(crate) struct TapeSurvey {
    pub paths: TapePaths,
    pub meta: TapeManifest,
    /// By index, ascending; those between may be missing.
    pub segments: Vec<SegmentSurvey>,
}

impl TapeSurvey {
    /// Looks at the segments of a tape.
    ///
    /// # Errors
    /// A file that cannot be read; damage is in what it gives.
    pub fn scan_segments(paths: &TapePaths, meta: &TapeManifest) -> Result<Self> {
        let mut segments = Vec::new();
        for index in list_segments(&paths.segments())? {
            segments.push(survey(paths, meta, index)?);
        }
        Ok(Self { paths: paths.clone(), meta: *meta, segments })
    }

    /// The segment `index`, as far as its file has it.
    pub fn open(&self, survey: &SegmentSurvey, writable: bool) -> Result<MappedSegment> {
        let path = segment_path(&self.paths.segments(), survey.index);
        let found = MappedSegment::map_cut(&path, &self.meta, survey.index, writable, survey.length)?;
        found.ok_or_else(|| Error::damage(&path, 0, "the segment went away while it was looked at"))
    }

    /// The survey of the segment which holds `position`.
    pub fn segment_at(&self, position: Position) -> Option<&SegmentSurvey> {
        let size = self.meta.segment_bytes;
        self.segments.iter().find(|s| s.base <= position && position.0 - s.base.0 < size)
    }

    /// Position of the first byte of the oldest segment.
    pub fn first(&self) -> Position {
        self.segments.first().map_or(Position(0), |s| s.base)
    }

    /// The oldest position: the first byte of the oldest segment, or the tape's origin in it.
    pub fn oldest(&self) -> Position {
        self.segments.first().map_or(Position(0), |s| s.base.plus(s.filler))
    }

    /// Position after the last unit on the tape, and after the last frame.
    pub fn end(&self) -> (Position, Position) {
        let last = |of: fn(&SegmentSurvey) -> Option<u64>| {
            let end = self.segments.iter().rev().find_map(|s| of(s).map(|at| s.base.plus(at)));
            end.unwrap_or(self.first())
        };
        (last(|s| s.unit_end), last(|s| Some(s.frames_end).filter(|end| *end > 0)))
    }

    /// The end of the last unit that ends at or before `limit`, after a pad where one follows; the tape's first
    /// position where there is none. With it, the number of events before it, if that is known.
    pub fn unit_end_before(&self, limit: Position) -> Result<(Position, Option<u64>)> {
        for survey in self.segments.iter().rev().filter(|s| s.base < limit) {
            let room = (limit.0 - survey.base.0).min(survey.length);
            let segment = self.open(survey, false)?;
            let (mut at, mut events, mut found) = (0, 0, None);
            while at < room {
                match segment.look(at) {
                    HeaderWordState::Frame(header) if at + header.len_bytes() as u64 <= room => {
                        at += header.len_bytes() as u64;
                        events += u64::from(!header.is_meta());
                        if header.is_last() {
                            found = Some((at, events));
                        }
                    }
                    HeaderWordState::Pad if survey.base.plus(self.meta.segment_bytes) <= limit => {
                        if let Some((end, _)) = found.as_mut().filter(|(end, _)| *end == at) {
                            *end = self.meta.segment_bytes;
                        }
                        break;
                    }
                    _ => break,
                }
            }
            if let Some((end, events)) = found {
                let ordinal = self.first_ordinal(survey.index).map(|first| first + events);
                return Ok((survey.base.plus(end), ordinal));
            }
        }
        let ordinal = self.segments.first().and_then(|s| self.first_ordinal(s.index));
        Ok((self.first(), ordinal))
    }

    /// The first ordinal of segment `index`: as its header page says, or as its neighbours do.
    pub fn first_ordinal(&self, index: u64) -> Option<u64> {
        let i = self.segments.iter().position(|s| s.index == index)?;
        if let Ok(ordinal) = self.segments[i].header {
            return Some(ordinal);
        }
        self.ordinal_of_neighbours(i)
    }

    /// The first ordinal of the segment at place `i`, as the ones before and after it say.
    pub fn ordinal_of_neighbours(&self, i: usize) -> Option<u64> {
        let of = &self.segments[i];
        // Events before an origin are counted too.
        let begins_at_zero = self.oldest() == Position(0);
        if of.index == 0 && begins_at_zero {
            return Some(0);
        }
        let (mut events, mut index) = (0, of.index);
        for before in self.segments[..i].iter().rev() {
            if before.index + 1 != index || before.stop != SegmentScanEnd::Full {
                break;
            }
            events += before.events;
            index = before.index;
            match before.header {
                Ok(ordinal) => return Some(ordinal + events),
                Err(_) if index == 0 && begins_at_zero => return Some(events),
                Err(_) => {}
            }
        }
        let (mut events, mut index) = (0, of.index);
        for next in &self.segments[i..] {
            if next.index != index {
                break;
            }
            // An empty one may have been made ahead, and says nothing.
            if let Ok(ordinal) = next.header
                && next.frames_end > 0
            {
                return ordinal.checked_sub(events);
            }
            if next.stop != SegmentScanEnd::Full {
                break;
            }
            (events, index) = (events + next.events, index + 1);
        }
        None
    }

    /// Gives the definitions before position `end`, in order, with where they are.
    ///
    /// # Errors
    /// A file that cannot be read, or that of `visit`.
    pub fn definitions(
        &self,
        end: Position,
        visit: &mut dyn FnMut(Position, &[u8]) -> Result<()>,
    ) -> Result<()> {
        for survey in self.segments.iter().filter(|s| s.base < end) {
            let segment = self.open(survey, false)?;
            let mut at = 0;
            while at < survey.frames_end && survey.base.plus(at) < end {
                let HeaderWordState::Frame(header) = segment.look(at) else { break };
                if DEFINITION_KINDS.contains(&header.kind()) {
                    // SAFETY: `look` saw the frame, its length within the segment; nobody writes it.
                    let frame = unsafe { segment.bytes(at, header.len_bytes()) };
                    visit(survey.base.plus(at), frame)?;
                }
                at += header.len_bytes() as u64;
            }
        }
        Ok(())
    }
}

fn survey(paths: &TapePaths, meta: &TapeManifest, index: u64) -> Result<SegmentSurvey> {
    let path = segment_path(&paths.segments(), index);
    let file_bytes = std::fs::metadata(&path).with_context("look at", &path)?.len();
    let data = file_bytes.saturating_sub(HEADER_PAGE).min(meta.segment_bytes);
    let mut out = SegmentSurvey {
        index,
        base: Position(index * meta.segment_bytes),
        length: data - data % LINE as u64,
        filler: 0,
        header: Ok(0),
        frames_end: 0,
        unit_end: None,
        events: 0,
        stop: SegmentScanEnd::Damage,
    };
    let page = read_start(&path, HEADER_PAGE).with_context("read", &path)?;
    out.header = SegmentHeader::check(&page, meta, index, &path);
    if out.length == 0 {
        return Ok(out);
    }
    let Some(segment) = MappedSegment::map_cut(&path, meta, index, false, out.length)? else {
        return Ok(out);
    };
    segment.read_once();
    out.filler = segment.filler_bytes();
    while out.frames_end < out.length {
        match segment.look(out.frames_end) {
            HeaderWordState::Frame(header) => {
                out.frames_end += header.len_bytes() as u64;
                out.events += u64::from(!header.is_meta());
                if header.is_last() {
                    out.unit_end = Some(out.frames_end);
                }
            }
            HeaderWordState::Pad => {
                out.stop = SegmentScanEnd::Full;
                return Ok(out);
            }
            HeaderWordState::Nothing => {
                out.stop = SegmentScanEnd::Nothing;
                return Ok(out);
            }
            HeaderWordState::Damage(_) => return Ok(out),
        }
    }
    if out.length == meta.segment_bytes {
        out.stop = SegmentScanEnd::Full;
    }
    Ok(out)
}
