//! A survey of every segment of a tape that no process writes: the end of its frames, and the state of its header page.
//!
//! The survey trusts neither header pages nor checksums: frames carry their own position in their header word.

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
    pub segment_index: u64,
    /// Position of its first byte of data.
    pub base_position: Position,
    /// Whole lines of data that the file has.
    pub length: u64,
    /// Bytes of the filler with which it begins, on a tape that begins within the segment.
    pub filler: u64,
    /// The first ordinal from its own header page, or the fault of that page.
    pub header: Result<u64>,
    /// Data offset after the last frame that can be walked to, and after the last of them that ends a unit.
    pub frames_end: u64,
    pub unit_end: Option<u64>,
    /// Events among the frames.
    pub events: u64,
    /// The end of the walk, after the last frame.
    pub scan_end: SegmentScanEnd,
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
    /// Fails if a file cannot be read. The survey reports damage.
    pub fn scan_segments(paths: &TapePaths, meta: &TapeManifest) -> Result<Self> {
        let mut segments = Vec::new();
        for index in list_segments(&paths.segments())? {
            segments.push(survey_segment(paths, meta, index)?);
        }
        Ok(Self { paths: paths.clone(), meta: *meta, segments })
    }

    /// Maps the surveyed segment, up to the length that its file has.
    pub fn open(&self, survey: &SegmentSurvey, writable: bool) -> Result<MappedSegment> {
        let path = segment_path(&self.paths.segments(), survey.segment_index);
        let segment =
            MappedSegment::map_cut(&path, &self.meta, survey.segment_index, writable, survey.length)?;
        segment.ok_or_else(|| Error::damage(&path, 0, "the segment went away while it was looked at"))
    }

    /// Returns the survey of the segment that holds `position`.
    pub fn segment_at(&self, position: Position) -> Option<&SegmentSurvey> {
        let size = self.meta.segment_bytes;
        self.segments.iter().find(|s| s.base_position <= position && position.0 - s.base_position.0 < size)
    }

    /// Returns the position of the first byte of the oldest segment.
    pub fn first(&self) -> Position {
        self.segments.first().map_or(Position(0), |s| s.base_position)
    }

    /// Returns the oldest position: the first byte of the oldest segment, or the tape's origin in it.
    pub fn oldest_position(&self) -> Position {
        self.segments.first().map_or(Position(0), |s| s.base_position.plus(s.filler))
    }

    /// Returns the position after the last unit on the tape, and the position after the last frame.
    pub fn end_positions(&self) -> (Position, Position) {
        let last = |select_end: fn(&SegmentSurvey) -> Option<u64>| {
            let survey_end = self
                .segments
                .iter()
                .rev()
                .find_map(|s| select_end(s).map(|offset| s.base_position.plus(offset)));
            survey_end.unwrap_or(self.first())
        };
        (last(|s| s.unit_end), last(|s| Some(s.frames_end).filter(|end| *end > 0)))
    }

    /// Returns the end of the last unit that ends at or before `limit`, after a pad that follows. Without such a unit
    /// it is the tape's first position. Also returns the number of events before it, if that is known.
    pub fn unit_end_before(&self, limit: Position) -> Result<(Position, Option<u64>)> {
        for survey in self.segments.iter().rev().filter(|s| s.base_position < limit) {
            let room = (limit.0 - survey.base_position.0).min(survey.length);
            let segment = self.open(survey, false)?;
            let (mut offset, mut events, mut unit_end) = (0, 0, None);
            while offset < room {
                match segment.header_state(offset) {
                    HeaderWordState::Frame(header) if offset + header.len_bytes() as u64 <= room => {
                        offset += header.len_bytes() as u64;
                        events += u64::from(!header.is_meta());
                        if header.is_last() {
                            unit_end = Some((offset, events));
                        }
                    }
                    HeaderWordState::Pad if survey.base_position.plus(self.meta.segment_bytes) <= limit => {
                        if let Some((end, _)) = unit_end.as_mut().filter(|(end, _)| *end == offset) {
                            *end = self.meta.segment_bytes;
                        }
                        break;
                    }
                    _ => break,
                }
            }
            if let Some((end, events)) = unit_end {
                let ordinal = self.first_ordinal(survey.segment_index).map(|first| first + events);
                return Ok((survey.base_position.plus(end), ordinal));
            }
        }
        let ordinal = self.segments.first().and_then(|s| self.first_ordinal(s.segment_index));
        Ok((self.first(), ordinal))
    }

    /// Returns the first ordinal of segment `index`, from its header page or from its neighbours.
    pub fn first_ordinal(&self, index: u64) -> Option<u64> {
        let i = self.segments.iter().position(|s| s.segment_index == index)?;
        if let Ok(ordinal) = self.segments[i].header {
            return Some(ordinal);
        }
        self.ordinal_of_neighbours(i)
    }

    /// Computes the first ordinal of segment `i` of the survey from its neighbours.
    pub fn ordinal_of_neighbours(&self, i: usize) -> Option<u64> {
        let segment = &self.segments[i];
        // Events before an origin are counted too.
        let begins_at_zero = self.oldest_position() == Position(0);
        if segment.segment_index == 0 && begins_at_zero {
            return Some(0);
        }
        let (mut events, mut index) = (0, segment.segment_index);
        for before in self.segments[..i].iter().rev() {
            if before.segment_index + 1 != index || before.scan_end != SegmentScanEnd::Full {
                break;
            }
            events += before.events;
            index = before.segment_index;
            match before.header {
                Ok(ordinal) => return Some(ordinal + events),
                Err(_) if index == 0 && begins_at_zero => return Some(events),
                Err(_) => {}
            }
        }
        let (mut events, mut index) = (0, segment.segment_index);
        for next in &self.segments[i..] {
            if next.segment_index != index {
                break;
            }
            // An empty one may have been made ahead, and says nothing.
            if let Ok(ordinal) = next.header
                && next.frames_end > 0
            {
                return ordinal.checked_sub(events);
            }
            if next.scan_end != SegmentScanEnd::Full {
                break;
            }
            (events, index) = (events + next.events, index + 1);
        }
        None
    }

    /// Passes the definitions before position `end` to `visit`, in order, with their locations.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or if `visit` fails.
    pub fn definitions(
        &self,
        end: Position,
        visit: &mut dyn FnMut(Position, &[u8]) -> Result<()>,
    ) -> Result<()> {
        for survey in self.segments.iter().filter(|s| s.base_position < end) {
            let segment = self.open(survey, false)?;
            let mut offset = 0;
            while offset < survey.frames_end && survey.base_position.plus(offset) < end {
                let HeaderWordState::Frame(header) = segment.header_state(offset) else { break };
                if DEFINITION_KINDS.contains(&header.kind()) {
                    // SAFETY: `look` saw the frame, its length within the segment; nobody writes it.
                    let frame = unsafe { segment.bytes(offset, header.len_bytes()) };
                    visit(survey.base_position.plus(offset), frame)?;
                }
                offset += header.len_bytes() as u64;
            }
        }
        Ok(())
    }
}

fn survey_segment(paths: &TapePaths, meta: &TapeManifest, index: u64) -> Result<SegmentSurvey> {
    let path = segment_path(&paths.segments(), index);
    let file_bytes = std::fs::metadata(&path).with_context("look at", &path)?.len();
    let data = file_bytes.saturating_sub(HEADER_PAGE).min(meta.segment_bytes);
    let mut out = SegmentSurvey {
        segment_index: index,
        base_position: Position(index * meta.segment_bytes),
        length: data - data % LINE as u64,
        filler: 0,
        header: Ok(0),
        frames_end: 0,
        unit_end: None,
        events: 0,
        scan_end: SegmentScanEnd::Damage,
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
        match segment.header_state(out.frames_end) {
            HeaderWordState::Frame(header) => {
                out.frames_end += header.len_bytes() as u64;
                out.events += u64::from(!header.is_meta());
                if header.is_last() {
                    out.unit_end = Some(out.frames_end);
                }
            }
            HeaderWordState::Pad => {
                out.scan_end = SegmentScanEnd::Full;
                return Ok(out);
            }
            HeaderWordState::Nothing => {
                out.scan_end = SegmentScanEnd::Nothing;
                return Ok(out);
            }
            HeaderWordState::Damage(_) => return Ok(out),
        }
    }
    if out.length == meta.segment_bytes {
        out.scan_end = SegmentScanEnd::Full;
    }
    Ok(out)
}
