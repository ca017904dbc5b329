//! The output of `unitape watch replay`: lines of alerts, or a timeline.

use super::replay::TapeObserver;
use super::timeline::{EVENTS_MAX, TimelineWriter};
use super::{AlertLines, ReplayArgs};
use crate::output::{CommandFailure, Destination, note};
use std::io::Write;
use unitape_model::{DefinitionTable, Dictionary, Event};
use unitape_watch::{Alert, ReplayObserver, ReplaySummary, ScenarioSelection};

/// What a replay prints while it runs.
pub(super) enum ReplayOutput {
    /// A line for each alert.
    Alerts(AlertLines),
    /// The events in lines, with the alerts under them.
    Timeline {
        /// The writer of the lines.
        writer: TimelineWriter<Destination>,
        /// The greatest number of events.
        limit: u64,
    },
}

impl ReplayOutput {
    /// Opens the destination that the options name.
    pub(super) fn open(replay: &ReplayArgs, selection: &ScenarioSelection) -> Result<Self, CommandFailure> {
        if !replay.timeline {
            return AlertLines::open(replay, selection).map(Self::Alerts);
        }
        let limit = replay.select.limit.unwrap_or(EVENTS_MAX);
        let out = Destination::open(replay.output.file.as_deref())?;
        Ok(Self::Timeline { writer: TimelineWriter::new(out, limit), limit })
    }

    /// Writes what precedes an error. A file does not get its name.
    pub(super) fn flush_incomplete(self) -> std::io::Result<()> {
        match self {
            Self::Alerts(mut lines) => lines.out.flush(),
            Self::Timeline { writer, .. } => writer.finish()?.0.flush(),
        }
    }

    /// Ends the output: the counters as the last line of JSON, or the timeline of the last case.
    pub(super) fn finish(self, replayed: &ReplaySummary) -> Result<(), CommandFailure> {
        match self {
            Self::Alerts(lines) => lines.finish(replayed),
            Self::Timeline { writer, limit } => {
                let (out, omissions) = writer.finish()?;
                out.finish()?;
                if let Some(message) = omissions.message(limit) {
                    note!("unitape: {message}");
                }
                Ok(())
            }
        }
    }
}

impl TapeObserver for ReplayOutput {
    #[inline]
    fn on_event(&mut self, event: &Event<'_>, seq: u64, names: &DefinitionTable) {
        if let Self::Timeline { writer, .. } = self {
            writer.add_event(event, seq, names.dictionary(), names);
        }
    }

    fn on_alert(&mut self, alert: &Alert) -> std::io::Result<()> {
        match self {
            Self::Alerts(lines) => lines.write(alert, None),
            Self::Timeline { writer, .. } => {
                writer.add_alert(alert);
                Ok(())
            }
        }
    }
}

impl ReplayObserver for AlertLines {
    fn on_case(&mut self, _: &str, _: Option<&str>) -> std::io::Result<()> {
        Ok(())
    }

    fn on_event(&mut self, _: &Event<'_>, _: u64, _: &Dictionary) -> std::io::Result<()> {
        Ok(())
    }

    fn on_alert(&mut self, alert: &Alert, case: Option<&str>) -> std::io::Result<()> {
        self.write(alert, case)
    }
}
