//! The selection of events, as every command takes it: the options, what they mean, and hints where one is mistaken for another.

use std::fmt;
use std::path::PathBuf;
use unitape_model::{Dictionary, EventKind, UnixNanos};
use unitape_query::{EventSelection, NameFilter};
use unitape_run::address::{self, TapeRangeBound, TapeStopPoint};
use unitape_run::follow::{TapeFollower, TapeRange};
use unitape_tape::TimeRange;

use crate::output::{CommandFailure, grouped, list_known_names, note, refuse_name};

/// A part of a tape by place and by time, or of a store by time.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RangeArgs {
    /// First event, included: an ordinal, or @position; 0 is the oldest that there is
    #[arg(long)]
    pub from: Option<String>,
    /// Last event, included: an ordinal, or @position
    #[arg(long)]
    pub to: Option<String>,
    /// Only events of this time or later: 2024-03-11, 2024-03-11T14:30:00.5 (UTC), or nanoseconds since 1970
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub since: Option<String>,
    /// Only events before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub until: Option<String>,
}

/// Which events.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SelectionArgs {
    #[command(flatten)]
    pub range: RangeArgs,
    #[command(flatten)]
    pub instruments: InstrumentArgs,
    /// Only events of this venue, or of this bank that quotes (repeatable)
    #[arg(long, value_name = "VENUE")]
    pub venue: Vec<String>,
    /// Only events of these kinds (repeatable, or with commas)
    #[arg(long, value_delimiter = ',', value_name = "KIND")]
    pub kind: Vec<String>,
    /// Print the rows of a schema: bbo, trades, mbo, quotes and others
    #[arg(long, value_delimiter = ',', value_name = "SCHEMA")]
    pub schema: Vec<String>,
    /// Print at most N
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
}

/// Which instruments.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct InstrumentArgs {
    /// Only these instruments (repeatable, or with commas)
    #[arg(long, value_delimiter = ',', value_name = "SYMBOLS")]
    symbols: Vec<String>,
    /// Only the instrument with this name, which may have commas in it (repeatable)
    #[arg(long, visible_alias = "instr", value_name = "NAME")]
    symbol: Vec<String>,
}

/// The form of the output, and where it goes.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OutputArgs {
    /// Print as JSON, one object a line
    #[arg(long)]
    pub json: bool,
    /// Print rows as CSV, with a header
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Write to this file, which gets its name when it is complete
    #[arg(id = "output", long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

impl RangeArgs {
    /// Returns whether the options ask for no part.
    pub fn is_empty(&self) -> bool {
        [&self.from, &self.to, &self.since, &self.until].iter().all(|option| option.is_none())
    }

    /// Reads the options as a part of a tape.
    ///
    /// # Errors
    /// Fails if an option has no value that it can have, or if the part cannot have an event.
    pub fn parse(&self) -> Result<TapeRange, CommandFailure> {
        let (from, to) = (parse_bound(RangeEnd::First, &self.from)?, parse_bound(RangeEnd::Last, &self.to)?);
        if let (Some(from), Some(to)) = (&from, &to)
            && from.is_after(to)
        {
            return Err(CommandFailure::Usage(format!(
                "--from {from} is after --to {to}: nothing can be between them"
            )));
        }
        Ok(TapeRange { from, to, times: parse_times(&self.since, &self.until)? })
    }

    /// Reads the options as times of a store, which has no ordinals. A time behind `--from` or `--to`, the names of these options
    /// in earlier releases, still counts.
    ///
    /// # Errors
    /// Fails if an option has no value that it can have, or if the first time is after the last.
    pub fn parse_sealed(&self) -> Result<(Option<UnixNanos>, Option<UnixNanos>), CommandFailure> {
        let parse = |end: RangeEnd, position: &Option<String>, time: &Option<String>| {
            let (option, text) = match (position, time) {
                (Some(_), Some(_)) => {
                    let message = format!(
                        "{} is the old name of {}: give one of them",
                        end.position_option(),
                        end.time()
                    );
                    return Err(CommandFailure::Usage(message));
                }
                (Some(text), None) => {
                    if let Ok(TapeStopPoint::Ordinal(_)) = TapeStopPoint::parse(text) {
                        let option = end.position_option();
                        return Err(CommandFailure::Usage(format!(
                            "{option}: `{text}` is an ordinal, and sealed days are selected by time: use {} TIME",
                            end.time()
                        )));
                    }
                    (end.position_option(), text)
                }
                (None, Some(text)) => (end.time(), text),
                (None, None) => return Ok(None),
            };
            parse_time(option, text, None).map(Some)
        };
        let since = parse(RangeEnd::First, &self.from, &self.since)?;
        let end_time = parse(RangeEnd::Last, &self.to, &self.until)?;
        // Equal bounds are a window without events.
        if let (Some(since), Some(until)) = (since, end_time)
            && since > until
        {
            let (since, until) = (address::utc(since.0), address::utc(until.0));
            return Err(CommandFailure::Usage(format!(
                "--since {since} is after --until {until}: nothing can be between them"
            )));
        }
        Ok((since, end_time))
    }
}

impl InstrumentArgs {
    /// Returns the choice of one instrument, or of all.
    pub fn from_name(name: Option<String>) -> Self {
        Self { symbols: Vec::new(), symbol: name.into_iter().collect() }
    }

    /// Returns whether no instrument is named, which chooses all.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty() && self.symbol.is_empty()
    }

    /// Returns the options as they could be written.
    pub fn words(&self) -> impl Iterator<Item = String> + '_ {
        let symbols = (!self.symbols.is_empty()).then(|| format!("--symbols {}", self.symbols.join(",")));
        symbols.into_iter().chain(self.symbol.iter().map(|name| format!("--symbol {name}")))
    }

    /// Returns the names.
    pub fn names(&self) -> Vec<String> {
        self.symbols.iter().chain(&self.symbol).cloned().collect()
    }
}

impl SelectionArgs {
    /// Returns whether the options select all.
    pub fn is_empty(&self) -> bool {
        let lists = [&self.venue, &self.kind, &self.schema];
        self.range.is_empty()
            && self.instruments.is_empty()
            && self.limit.is_none()
            && lists.iter().all(|list| list.is_empty())
    }

    /// Reads the kinds, and whether users' messages are among them.
    ///
    /// # Errors
    /// Fails if a kind is unknown.
    pub fn kinds(&self) -> Result<(Vec<EventKind>, bool), CommandFailure> {
        let mut kinds = Vec::new();
        for name in self.kind.iter().filter(|name| *name != MESSAGE) {
            let refuse = || refuse_name(name, "kind", "kinds", kind_names());
            kinds.push(EventKind::from_name(name).ok_or_else(refuse)?);
        }
        Ok((kinds, self.kind.iter().any(|name| name == MESSAGE)))
    }

    /// Reads the options as a selection of events of a tape. It has nothing of `--schema`.
    ///
    /// # Errors
    /// Fails if an option has no value that it can have, or if options contradict each other.
    pub fn parse(&self) -> Result<EventSelection, CommandFailure> {
        let (kinds, includes_messages) = self.kinds()?;
        Ok(EventSelection {
            range: self.range.parse()?,
            kinds,
            includes_messages,
            instruments: self.instruments.names(),
            venues: self.venue.clone(),
            includes_bookkeeping: false,
            limit: self.limit,
        })
    }
}

/// Reads `--since` and `--until` of a tape.
///
/// # Errors
/// Fails if one is no time, or if no time can be between them.
pub fn parse_times(
    since: &Option<String>,
    until: &Option<String>,
) -> Result<Option<TimeRange>, CommandFailure> {
    let parse = |end: RangeEnd, text: &Option<String>| {
        text.as_deref().map(|text| parse_time(end.time(), text, Some(end.position_option()))).transpose()
    };
    let (since, until) = (parse(RangeEnd::First, since)?, parse(RangeEnd::Last, until)?);
    if let (Some(since), Some(until)) = (since, until)
        && since >= until
    {
        return Err(CommandFailure::Usage(
            "--since is not before --until: nothing can be between them".to_owned(),
        ));
    }
    Ok((since.is_some() || until.is_some()).then_some(TimeRange { since, until }))
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

/// Returns a sentence for each filter with a name that the tape does not have, with the names that it has.
pub fn unknown_names<'a>(
    filters: &'a [NameFilter; 2],
    names: &'a Dictionary,
) -> impl Iterator<Item = String> + 'a {
    NAME_NOUNS.iter().zip(filters).filter_map(|(noun, filter)| {
        let dict = filter.dict();
        let is_missing = |name: &&String| names.get(dict, name.as_bytes()).is_none();
        let missing: Vec<&str> = filter.wanted().iter().filter(is_missing).map(String::as_str).collect();
        let all_names = (1..=names.len(dict)).filter_map(|id| names.name(dict, id));
        let listed = list_known_names(missing.first()?, noun.plural, all_names);
        Some(format!("no event has the {} {}; {listed}", noun.singular, missing.join(", ")))
    })
}

/// An end of a range, with the options that set it.
#[derive(Clone, Copy)]
enum RangeEnd {
    First,
    Last,
}

impl RangeEnd {
    /// Returns the option for an ordinal or a position.
    fn position_option(self) -> &'static str {
        match self {
            Self::First => "--from",
            Self::Last => "--to",
        }
    }

    /// Returns the option for a time.
    fn time(self) -> &'static str {
        match self {
            Self::First => "--since",
            Self::Last => "--until",
        }
    }
}

/// Reads an ordinal or a position. A time gets a hint.
fn parse_bound(end: RangeEnd, text: &Option<String>) -> Result<Option<TapeRangeBound>, CommandFailure> {
    let Some(text) = text else { return Ok(None) };
    match TapeStopPoint::parse(text) {
        Ok(TapeStopPoint::Time(_)) => Err(CommandFailure::Usage(format!(
            "{}: `{text}` is a time: use {}",
            end.position_option(),
            end.time()
        ))),
        _ => TapeRangeBound::parse(text)
            .map(Some)
            .map_err(|e| CommandFailure::from(e).with_subject(end.position_option())),
    }
}

/// Reads the time of `option`, for a command that takes no ordinals and positions.
///
/// # Errors
/// Fails if the text is no time.
pub fn parse_time_alone(option: &str, text: &str) -> Result<UnixNanos, CommandFailure> {
    parse_time(option, text, None)
}

/// Reads a time. A position is refused. A number that may be meant as an ordinal counts as nanoseconds since 1970, and stderr
/// has a hint. `position_option` is the option that takes ordinals and positions, where the command has one.
fn parse_time(option: &str, text: &str, position_option: Option<&str>) -> Result<UnixNanos, CommandFailure> {
    match (TapeStopPoint::parse(text), position_option) {
        (Ok(TapeStopPoint::Position(_)), Some(position_option)) => {
            return Err(CommandFailure::Usage(format!(
                "{option}: `{text}` is a position: use {position_option}"
            )));
        }
        (Ok(TapeStopPoint::Position(_)), None) => {
            let message = format!("{option}: `{text}` is a position, and {option} takes a time");
            return Err(CommandFailure::Usage(message));
        }
        (Ok(TapeStopPoint::Ordinal(1..)), Some(position_option)) => {
            note!("unitape: {option} {text} is {text} ns after 1970; for an ordinal use {position_option}");
        }
        (Ok(TapeStopPoint::Ordinal(1..)), None) => {
            note!("unitape: {option} {text} is {text} ns after 1970; {option} takes a time");
        }
        _ => {}
    }
    parse_nanoseconds(option, text)
}

fn parse_nanoseconds(option: &str, text: &str) -> Result<UnixNanos, CommandFailure> {
    address::parse_time(text).map_err(|e| CommandFailure::from(e).with_subject(option))
}

fn kind_names() -> impl Iterator<Item = &'static str> {
    EventKind::EVENTS.into_iter().map(EventKind::name).chain([MESSAGE])
}

/// What a filter of names selects by.
#[derive(Clone, Copy, Debug)]
pub struct NameNoun {
    /// One of them.
    pub singular: &'static str,
    /// Several.
    pub plural: &'static str,
}

impl fmt::Display for NameNoun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.singular)
    }
}

/// The nouns of the two filters of names, in their order.
pub const NAME_NOUNS: [NameNoun; 2] = [
    NameNoun { singular: "instrument", plural: "instruments" },
    NameNoun { singular: "venue", plural: "venues" },
];
/// The word of `--kind` for a user's message.
pub const MESSAGE: &str = "message";
