//! Whether a run is ready, and each reason why it is not.

use super::MonitorState;
use std::time::Instant;
use unitape_feed::LinkState;
use unitape_model::Position;
use unitape_tape::{Reader, StartPosition};

/// A reason why a run is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotReady {
    /// Its kind.
    pub code: NotReadyCode,
    /// The reason in words: what is wrong, and where.
    pub reason: String,
}

/// The kind of a reason. The words are those of `docs/metrics.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReadyCode {
    /// The tape cannot be read.
    Tape,
    /// The last flush of the tape has failed.
    NotDurable,
    /// Too much of the tape is not durable yet.
    RecorderBehind,
    /// The disk has too little room.
    Disk,
    /// A feed has failed.
    FeedFailed,
    /// A feed has given nothing for too long.
    FeedSilent,
    /// Retention removes nothing although it should, or the clock has jumped.
    Retention,
}

impl NotReadyCode {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Tape,
        Self::NotDurable,
        Self::RecorderBehind,
        Self::Disk,
        Self::FeedFailed,
        Self::FeedSilent,
        Self::Retention,
    ];

    /// Returns the word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tape => "tape",
            Self::NotDurable => "not_durable",
            Self::RecorderBehind => "recorder_behind",
            Self::Disk => "disk",
            Self::FeedFailed => "feed_failed",
            Self::FeedSilent => "feed_silent",
            Self::Retention => "retention",
        }
    }
}

/// Returns why the run is not ready; nothing if it is.
pub(super) fn reasons(state: &MonitorState) -> Vec<NotReady> {
    let mut reasons = Vec::new();
    let mut add = |code, reason: String| reasons.push(NotReady { code, reason });
    if let Some(failure) = state.lock_reported().not_durable.clone() {
        add(NotReadyCode::NotDurable, failure);
    }
    match lag_bytes(state) {
        Ok(bytes) if bytes > state.config.recorder_lag_bytes => {
            add(NotReadyCode::RecorderBehind, format!("{bytes} bytes of the tape are not durable yet"));
        }
        Ok(_) => {}
        Err(error) => add(NotReadyCode::Tape, error.to_string()),
    }
    match free_bytes(state) {
        Some(bytes) if bytes < state.config.disk_free_bytes => {
            add(NotReadyCode::Disk, format!("the disk of {} has {bytes} bytes left", state.tape.display()));
        }
        _ => {}
    }
    for feed in state.feed_figures() {
        if feed.state == LinkState::Failed || feed.error.is_some() {
            let error_text = feed.error.as_deref().unwrap_or("it is tried again");
            add(NotReadyCode::FeedFailed, format!("{}: {error_text}", feed.feed));
        } else if let Some(silent) = silent_for(state, &feed.feed, feed.events)
            && !feed.ended
        {
            add(NotReadyCode::FeedSilent, format!("{}: no event for {} s", feed.feed, silent.as_secs()));
        }
    }
    if let Some(warning) = unitape_tape::retention_warning(&state.tape) {
        add(NotReadyCode::Retention, warning);
    }
    reasons
}

/// Returns how many bytes of the tape are not durable.
pub(super) fn lag_bytes(state: &MonitorState) -> Result<u64, unitape_tape::Error> {
    let (end, durable) = end_and_durable(state)?;
    Ok(end.0.saturating_sub(durable.0))
}

/// Returns the position after the last committed frame, and the durable position.
pub(super) fn end_and_durable(state: &MonitorState) -> Result<(Position, Position), unitape_tape::Error> {
    let mut reader = Reader::open(&state.tape, StartPosition::End)?;
    let durable = reader.durable()?;
    Ok((reader.position(), durable))
}

/// Returns the free bytes of the disk of the tape, if the system says them.
pub(super) fn free_bytes(state: &MonitorState) -> Option<u64> {
    let disk = rustix::fs::statvfs(&state.tape).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Returns for how long the feed has given nothing, if that is longer than it may be.
fn silent_for(state: &MonitorState, feed: &str, events: u64) -> Option<std::time::Duration> {
    let limit = state.config.silent?.0;
    let mut reported = state.lock_reported();
    let now = Instant::now();
    let entry = reported.progress_by_feed.entry(feed.to_owned()).or_insert((state.started_at, events));
    if entry.1 != events {
        *entry = (now, events);
    }
    Some(now.duration_since(entry.0)).filter(|silent| *silent > limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operator who is woken by a reason looks for it on these pages.
    #[test]
    fn every_reason_is_on_the_pages() {
        let pages =
            [include_str!("../../../../docs/metrics.md"), include_str!("../../../../docs/guide-operator.md")];
        for code in NotReadyCode::ALL {
            let row = format!("| `{}` |", code.name());
            assert!(pages.iter().all(|page| page.contains(&row)), "{row}");
        }
    }
}
