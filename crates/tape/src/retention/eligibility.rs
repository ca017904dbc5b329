//! The retention rule of a tape: which segments go by its limits. Pure; who removes them is in `enforce`.
//!
//! ```text
//!  gone │ announced │ kept ... kept │ the segment of the end
//!       ▲           ▲
//!  oldest kept   removal announced up to here: readers see it at least `notice` before the files go
//! ```
//!
//! A segment goes, oldest first, when any limit says so. Never does one that holds the end or anything that is not
//! recorded and durable. Age and day are those of when a segment was finished: the modification time of its
//! checksum file, which is written last, and which, unlike a byte in it, does not make two tapes of the same
//! frames differ.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use unitape_model::Position;

use crate::disk::limits::RetentionLimits;
use crate::retention::clock::ClockSource;

/// The clocks and the hook that removal uses besides the limits.
#[derive(Clone, Debug, Default)]
pub struct RemovalOptions {
    /// The clocks.
    pub clock: ClockSource,
    /// Called before anything is removed.
    pub before_removal: Option<RemovalHook>,
}

/// Called before segments are removed, while they are still there: with the tape's directory and the position
/// that will be the oldest. When it fails nothing is removed, and it is asked again later.
#[derive(Clone)]
pub struct RemovalHook(Arc<RemovalCallback>);

type RemovalCallback = dyn Fn(&Path, Position) -> std::result::Result<(), String> + Send + Sync;

impl RemovalHook {
    /// Calls `hook`.
    pub fn new(
        hook: impl Fn(&Path, Position) -> std::result::Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(hook))
    }

    /// Announces that everything before `oldest` will be removed.
    ///
    /// # Errors
    /// Fails with the reason if it must not be removed yet.
    pub fn call(&self, dir: &Path, oldest: Position) -> std::result::Result<(), String> {
        (self.0)(dir, oldest)
    }
}

impl fmt::Debug for RemovalHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemovalHook")
    }
}

/// A finished segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FinishedSegment {
    pub segment_index: u64,
    pub finished_ns: i64,
}

/// The state of the tape that the limits are compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetentionInputs<'a> {
    pub segment_bytes: u64,
    /// Recorded up to here.
    pub recorded_to: Position,
    /// The time; `None` while it cannot be trusted. Then no segment is removed because of its age.
    pub now_ns: Option<i64>,
    /// Where the named cursors are.
    pub cursors: &'a [Position],
}

/// Returns the index of the first segment that stays.
///
/// A segment is finished no sooner than the segments before it, whatever its own time says: a slow clock makes no
/// segment older. A time in the future is ignored, and its segment is removed with the next one.
pub(crate) fn first_kept<'a>(
    limits: &RetentionLimits,
    finished: impl IntoIterator<Item = &'a FinishedSegment>,
    reach: &RetentionInputs<'_>,
) -> u64 {
    let size = reach.segment_bytes;
    let mut keep = limits.bytes.map_or(0, |bytes| reach.recorded_to.0.saturating_sub(bytes) / size);
    if let Some(now) = reach.now_ns.filter(|_| limits.is_timed()) {
        let mut latest = i64::MIN;
        for segment in finished {
            if segment.finished_ns > now {
                continue;
            }
            latest = latest.max(segment.finished_ns);
            if !is_over(limits, latest, now) {
                break;
            }
            keep = keep.max(segment.segment_index + 1);
        }
    }
    if let Some((bytes, slowest)) = limits.hold_for_cursors.zip(reach.cursors.iter().min()) {
        keep = keep.min(slowest.0.max(reach.recorded_to.0.saturating_sub(bytes)) / size);
    }
    keep.min(last_of(reach.recorded_to, size))
}

/// Returns the segment of a tape's end: the segment before, if the next segment has not begun.
fn last_of(end: Position, size: u64) -> u64 {
    end.0.saturating_sub(1) / size
}

fn is_over(limits: &RetentionLimits, finished_ns: i64, now_ns: i64) -> bool {
    let age = now_ns.saturating_sub(finished_ns);
    let days = now_ns.div_euclid(DAY_NS).saturating_sub(finished_ns.div_euclid(DAY_NS));
    limits.age.is_some_and(|max| i128::from(age) > max.as_nanos().min(i64::MAX as u128) as i128)
        || limits.days.is_some_and(|max| days >= i64::from(max))
}

const DAY_NS: i64 = 86_400_000_000_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use proptest::prelude::*;

    /// Applies the rules to a single segment, each in turn, without a shortcut.
    fn stays(
        limits: &RetentionLimits,
        all: &[FinishedSegment],
        reach: &RetentionInputs<'_>,
        index: u64,
    ) -> bool {
        let size = reach.segment_bytes;
        let (end, recorded) = ((index + 1) * size, reach.recorded_to.0);
        // The segment of the end, or one after it.
        if recorded <= end {
            return true;
        }
        let is_held_by_cursor = limits.hold_for_cursors.is_some_and(|bytes| {
            let near = end + bytes > recorded;
            near && reach.cursors.iter().any(|c| c.0 < end)
        });
        if is_held_by_cursor {
            return true;
        }
        // It goes if it, or any later one, is over a limit: the rest goes before it.
        let is_over_limit = |segment: &FinishedSegment| {
            let by_bytes = limits.bytes.is_some_and(|b| (segment.segment_index + 1) * size + b <= recorded);
            let by_time = reach.now_ns.is_some_and(|now| {
                let before =
                    all.iter().filter(|f| f.segment_index <= segment.segment_index && f.finished_ns <= now);
                let newest_ns = before.map(|f| f.finished_ns).max();
                segment.finished_ns <= now
                    && newest_ns.is_some_and(|finish_ns| is_over(limits, finish_ns, now))
            });
            by_bytes || by_time
        };
        !all.iter().filter(|f| f.segment_index >= index).any(is_over_limit)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Against the slow twin, with clocks that went anywhere while the tape was written.
        #[test]
        fn the_first_kept_is_the_first_that_stays(
            limits in (
                proptest::option::of(0u64..4000), proptest::option::of(0u64..30),
                proptest::option::of(1u32..4), proptest::option::of(0u64..4000),
            ),
            first in 0u64..5,
            times in proptest::collection::vec(-2i64..40, 1..12),
            beyond in 0u64..300,
            now in proptest::option::of(0i64..40),
            cursors in proptest::collection::vec((0u64..4000).prop_map(Position), 0..3),
        ) {
            const QUARTER: i64 = DAY_NS / 4;
            let (bytes, age, days, hold) = limits;
            let age = age.map(|n| Duration::from_nanos(n * QUARTER as u64));
            let limits = RetentionLimits { bytes, age, days, hold_for_cursors: hold, ..RetentionLimits::default() };
            let finished: Vec<_> = times
                .iter()
                .enumerate()
                .map(|(i, t)| FinishedSegment { segment_index: first + i as u64, finished_ns: t * QUARTER })
                .collect();
            let segment_bytes = 256;
            let recorded =
                Position((first + times.len() as u64) * segment_bytes + beyond.min(segment_bytes - 1));
            let reach =
                RetentionInputs { segment_bytes, recorded_to: recorded, now_ns: now.map(|n| n * QUARTER), cursors: &cursors };
            let keep = first_kept(&limits, &finished, &reach).max(first);
            let slow = (first..).find(|i| stays(&limits, &finished, &reach, *i)).unwrap();
            prop_assert_eq!(keep, slow);
        }
    }
}
