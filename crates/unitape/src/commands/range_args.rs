//! Options of commands that read a part of a tape.

use unitape_run::address::{self, TapeRangeBound};
use unitape_run::follow::{TapeFollower, TapeRange};
use unitape_tape::TimeRange;

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

/// Prints that retention has removed the beginning of the range.
pub fn print_removed(range: &TapeRange, follower: &TapeFollower) {
    let (from, reader) = (range.from.map(|from| from.to_string()).unwrap_or_default(), follower.reader());
    note!(
        "unitape: --from {from}: retention has removed what is before event {}, at position @{}",
        grouped(reader.ordinal() + 1),
        reader.position()
    );
}
