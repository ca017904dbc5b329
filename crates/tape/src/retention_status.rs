//! The retention of a tape and its readers: limits in force, sealed segments, named cursors and how far they are.

use std::path::Path;
use std::time::SystemTime;

use unitape_model::Position;

use crate::disk::cursor::Cursor;
use crate::disk::layout::{list_segments, segment_path};
use crate::disk::limits::RetentionLimits;
use crate::disk::seal::is_sealed;
use crate::disk::segment_locator::SegmentLocator;
use crate::disk::state_page::StatePage;
use crate::error::Result;
use crate::read::damage::ReadOptions;
use crate::read::reader::{Reader, StartPosition};
use crate::retention::enforce::{count_held, kept_state};

/// The segments of a tape that are kept, and the cursors that hold them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionStatus {
    /// The limits of the writer that has the tape open, or that died; `None` for a closed tape.
    pub limits: Option<RetentionLimits>,
    /// Oldest position there is.
    pub oldest: Position,
    /// Removal is announced up to this position; the oldest position if no removal is announced.
    pub announced_to: Position,
    /// Segments that are finished, checksummed, durable and read-only.
    pub sealed_count: u64,
    /// Segments that are not.
    pub open_count: u64,
    /// Segments that would be gone or going if no cursor held them.
    pub held_segments: u64,
    /// By how many nanoseconds the clock has jumped, while retention by age and day is suspended for it.
    pub clock_jump_ns: Option<i64>,
    /// How often the clock has jumped.
    pub clock_jumps: u64,
    /// Why nothing could be removed at the last try.
    pub trouble: Option<String>,
    /// Named cursors, by name.
    pub cursors: Vec<CursorStatus>,
}

/// Where a named cursor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorStatus {
    /// The cursor's name.
    pub name: String,
    /// The position where the cursor continues: the stored one, or an earlier cut. `None` if the cursor is new.
    pub position: Option<Position>,
    /// The place that it stored last, if the tape was cut back before that place since.
    pub rewound_from: Option<Position>,
    /// Bytes of the tape after it.
    pub lag_bytes: u64,
    /// Events after the cursor; `None` if its position was removed or no frame starts there.
    pub lag_events: Option<u64>,
    /// Seconds since it was stored.
    pub age_s: u64,
    /// Why it cannot be used.
    pub error: Option<String>,
}

/// Reads the retention status of the tape in `dir`.
///
/// # Errors
/// Fails if `dir` is no tape or has a foreign version, and at damage on the way to its end.
pub fn retention_status(dir: &Path) -> Result<RetentionStatus> {
    let segment_locator = SegmentLocator::open(dir)?;
    let oldest = segment_locator.oldest_position()?;
    let state = StatePage::attach_reader(&segment_locator.paths)?;
    let on_disk = list_segments(&segment_locator.paths.segments())?;
    let sealed =
        on_disk.iter().filter(|i| is_sealed(&segment_path(&segment_locator.paths.segments(), **i))).count();
    let (clock_jump_ns, clock_jumps, trouble) = kept_state(&segment_locator.paths);
    let tape_end = Reader::open_with(dir, StartPosition::End, FIGURES)?;
    let mut cursors = Vec::new();
    for name in Cursor::names(dir)? {
        cursors.push(cursor_status(dir, name, &tape_end)?);
    }
    let limits = state.as_ref().map(StatePage::retention);
    let held_segments = match &limits {
        Some(limits) => count_held(
            &segment_locator.paths,
            &segment_locator.meta,
            limits,
            oldest.0 / segment_locator.meta.segment_bytes,
        )?,
        None => 0,
    };
    Ok(RetentionStatus {
        limits,
        held_segments,
        oldest,
        announced_to: oldest.max(state.as_ref().map_or(Position(0), StatePage::announced)),
        sealed_count: sealed as u64,
        open_count: segment_locator.indices()?.len().saturating_sub(sealed) as u64,
        clock_jump_ns,
        clock_jumps,
        trouble,
        cursors,
    })
}

fn cursor_status(dir: &Path, name: String, end: &Reader) -> Result<CursorStatus> {
    let path = dir.join("run/cursors").join(&name);
    let stored = std::fs::metadata(path).and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let age_s = stored.elapsed().map_or(0, |d| d.as_secs());
    let (stored, mut error) = match Cursor::open(dir, &name).and_then(|c| c.load_point()) {
        Ok(point) => (point, None),
        Err(e) => (None, Some(e.to_string())),
    };
    let (mut position, mut rewound_from, mut lag_events) = (stored.map(|p| p.position), None, None);
    if let Some(point) = stored {
        match Reader::resume_with(dir, point, FIGURES) {
            Ok(reader) => {
                lag_events = Some(end.ordinal().saturating_sub(reader.ordinal()));
                rewound_from = reader.rewinds().last_rewind.map(|rewound| rewound.reader_position);
                position = Some(reader.position());
            }
            Err(e) => error = Some(e.to_string()),
        }
    }
    let lag_bytes = position.map_or(0, |p| end.position().0.saturating_sub(p.0));
    Ok(CursorStatus { name, position, rewound_from, lag_bytes, lag_events, age_s, error })
}

/// How the tape is read for figures about its readers: headers alone, and no further than they can be.
const FIGURES: ReadOptions = ReadOptions { verify: false, skip_damage: true };
