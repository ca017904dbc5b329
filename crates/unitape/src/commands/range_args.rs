//! Options of commands that read a part of a tape.

use unitape_model::{DefinitionTable, Event};
use unitape_run::address::{self, EventAddress, TapeRangeBound};
use unitape_run::follow::TapeFollower;
use unitape_tape::{Frame, TimeRange};

use crate::output::{CommandFailure, grouped, note};

/// Which part of a tape.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RangeArgs {
    /// First event: an ordinal, or @position; 0 is the oldest that there is
    #[arg(long)]
    pub from: Option<String>,
    /// Last event: an ordinal, or @position
    #[arg(long)]
    pub to: Option<String>,
    /// Only events of this time or later, in UTC, or nanoseconds since 1970
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub since: Option<String>,
    /// Only events before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub until: Option<String>,
}

/// A part of a tape: by place, by time, or both.
#[derive(Clone, Copy, Debug, Default)]
pub struct TapeRange {
    /// The first place.
    pub from: Option<TapeRangeBound>,
    /// The last place.
    pub to: Option<TapeRangeBound>,
    /// Times of the events, wherever these are.
    pub times: Option<TimeRange>,
}

impl RangeArgs {
    /// Whether no part is asked for.
    pub fn is_empty(&self) -> bool {
        [&self.from, &self.to, &self.since, &self.until].iter().all(|option| option.is_none())
    }

    /// Reads the options.
    ///
    /// # Errors
    /// When they are no bounds, or nothing can be between them.
    pub fn parse(&self) -> Result<TapeRange, CommandFailure> {
        let bound = |text: &Option<String>| text.as_deref().map(TapeRangeBound::parse).transpose();
        let (from, to) = (bound(&self.from)?, bound(&self.to)?);
        if let (Some(from), Some(to)) = (&from, &to)
            && from.is_after(to)
        {
            return Err(CommandFailure::Usage(format!(
                "--from {from} is after --to {to}: nothing can be between them"
            )));
        }
        let time = |option: &str, text: &Option<String>| {
            let parsed = text.as_deref().map(address::parse_time).transpose();
            parsed.map_err(|e| CommandFailure::from(e).with_subject(option))
        };
        let (since, until) = (time("--since", &self.since)?, time("--until", &self.until)?);
        if let (Some(since), Some(until)) = (since, until)
            && since >= until
        {
            return Err(CommandFailure::Usage(
                "--since is not before --until: nothing can be between them".to_owned(),
            ));
        }
        let times = (since.is_some() || until.is_some()).then_some(TimeRange { since, until });
        Ok(TapeRange { from, to, times })
    }
}

impl TapeRange {
    /// Goes to `--from` where it is after the start of the tape; gives whether retention has left all of what was asked for.
    ///
    /// # Errors
    /// When the tape is damaged or cannot be read.
    pub fn seek(
        &self,
        follower: &mut TapeFollower,
        names: &mut DefinitionTable,
    ) -> Result<bool, CommandFailure> {
        let is_start = |from: &TapeRangeBound| match from {
            TapeRangeBound::Ordinal(seq) => *seq == 0,
            TapeRangeBound::Position(position) => position.0 == 0,
        };
        let Some(from) = self.from.filter(|from| !is_start(from)) else { return Ok(true) };
        match follower.seek(from, names) {
            Ok(()) => Ok(true),
            Err(unitape_tape::Error::Retained { .. } | unitape_tape::Error::RetainedEvent { .. }) => {
                let reader = follower.reader();
                note!(
                    "unitape: --from {from}: retention has removed what is before event {}, at position @{}",
                    grouped(reader.ordinal() + 1),
                    reader.position()
                );
                Ok(false)
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Whether nothing more can come.
    #[inline]
    pub fn is_over(&self, place: EventAddress) -> bool {
        self.to.is_some_and(|to| to.is_before_event(place))
    }

    /// Whether this place is not before the first.
    #[inline]
    pub fn is_reached_by(&self, place: EventAddress) -> bool {
        self.from.is_none_or(|from| from.is_reached_by(place))
    }

    /// Whether the event or message of this frame is of the part. A message has no time.
    #[inline]
    pub fn has(&self, place: EventAddress, frame: &Frame<'_>) -> bool {
        let is_of_times = |times: TimeRange| {
            frame.message().is_none()
                && Event::new(frame.bytes).is_none_or(|event| times.contains(event.ts_event()))
        };
        self.is_reached_by(place) && self.times.is_none_or(is_of_times)
    }
}
