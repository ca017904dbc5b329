//! `unitape store scan`; and the selection and the printing that `unitape get` has in common with it.

use super::KeyArgs;
use super::empty;
use crate::commands::tape::{readable, utc};
use crate::output::{self, CommandFailure, CommandOutcome, RowFormat, RowLines, grouped, note};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use unitape_codec::events::{EventLineDetail, write_event};
use unitape_model::{DefinitionTable, Dictionary, Event, RowSchema, UnixNanos};
use unitape_store::{AnswerReader, Day, Error, RowScan, Scan, ScanFilter, Store, StoreProgress, TickSchema};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct ScanArgs {
    /// Directory of the store
    dir: PathBuf,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    print: PrintArgs,
}

/// What is wanted of a store.
#[derive(Debug, clap::Args)]
pub struct SelectArgs {
    /// Only these instruments (repeatable, or with commas)
    #[arg(long, value_delimiter = ',', value_name = "SYMBOLS")]
    pub symbols: Vec<String>,
    /// Only the instrument of this name, which may have commas in it (repeatable)
    #[arg(long, value_name = "NAME")]
    pub symbol: Vec<String>,
    /// Event time from here on: 2024-03-11, 2024-03-11T14:30:00.5 (UTC), or nanoseconds since 1970
    #[arg(long, visible_alias = "from", value_name = "TIME", allow_hyphen_values = true)]
    pub since: Option<UnixNanos>,
    /// Event time before this
    #[arg(long, visible_alias = "to", value_name = "TIME", allow_hyphen_values = true)]
    pub until: Option<UnixNanos>,
    /// Only this day; `undated` for events without a time
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub date: Option<Day>,
    /// Rows of this schema; of events, only these schemas (repeatable, or with commas)
    #[arg(long, value_delimiter = ',', value_name = "SCHEMA")]
    pub schema: Vec<String>,
    /// Only this venue, or bank that quotes
    #[arg(long)]
    pub venue: Option<String>,
}

/// How much is printed, and how.
#[derive(Debug, clap::Args)]
pub struct PrintArgs {
    /// At most this many
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Print events, also of one schema
    #[arg(long)]
    pub events: bool,
    /// Print as JSON, one object a line
    #[arg(long)]
    pub json: bool,
    /// Print rows as CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print events with all that they hold: ids (the store's), source, receive time, flags, position
    #[arg(long)]
    pub full: bool,
}

impl SelectArgs {
    /// Returns the filter.
    pub fn filter(&self) -> Result<ScanFilter, CommandFailure> {
        // Equal bounds are a window without events.
        if let (Some(since), Some(until)) = (self.since, self.until)
            && since > until
        {
            let (since, until) = (utc(since.0), utc(until.0));
            let what = format!("--since {since} is after --until {until}: nothing can be between them");
            return Err(CommandFailure::Usage(what));
        }
        let schema = |name: &String| {
            let known = || TickSchema::ALL.map(TickSchema::name).join(", ");
            let none = || CommandFailure::Usage(format!("no schema `{name}`; schemas: {}", known()));
            TickSchema::from_name(name).ok_or_else(none)
        };
        Ok(ScanFilter {
            symbols: self.symbols.iter().chain(&self.symbol).cloned().collect(),
            from: self.since,
            to: self.until,
            date: self.date,
            schemas: self.schema.iter().map(schema).collect::<Result<_, _>>()?,
            venue: self.venue.clone(),
        })
    }
}

/// What a scan prints.
#[derive(Clone, Debug)]
pub enum ScanOutput {
    /// Events.
    Events,
    /// Rows of one schema.
    Rows(TickSchema, RowLines),
}

impl ScanOutput {
    /// Returns the output that options ask for, of these schemas.
    pub fn new(print: &PrintArgs, schemas: &[TickSchema]) -> Result<Self, CommandFailure> {
        let rows = || RowSchema::ALL.map(RowSchema::name).join(" and ");
        if print.events || print.full || schemas.is_empty() {
            if print.csv {
                let what =
                    format!("--csv prints rows: give one --schema ({}), without --events or --full", rows());
                return Err(CommandFailure::Usage(what));
            }
            return Ok(Self::Events);
        }
        let schema = schemas[0];
        if schemas.iter().any(|other| *other != schema) {
            let what = "rows are of one schema; with --events, events of several are printed".to_owned();
            return Err(CommandFailure::Usage(what));
        }
        let Some(columns) = schema.row_schema() else {
            let what = format!("{schema} has no rows yet, only {} have; --events prints its events", rows());
            return Err(CommandFailure::Usage(what));
        };
        let format = RowFormat::from_options(print.json, print.csv);
        Ok(Self::Rows(schema, RowLines::new(format, columns)))
    }
}

/// Runs the command.
pub fn run(args: &ScanArgs) -> output::Result {
    let mut filter = args.select.filter()?;
    let output = ScanOutput::new(&args.print, &filter.schemas)?;
    let store = Store::open(&args.dir, &args.key.of_store(&args.dir)?)?;
    // Of names that no event has, nothing is read.
    let is_left = empty::known_names(&store, &mut filter);
    let limit = if is_left { args.print.limit.unwrap_or(u64::MAX) } else { 0 };
    let printed = print(&TickSource::Store(&store), &filter, output, &args.print, limit)?;
    if limit > 0 && printed.events == 0 && printed.problems == 0 {
        empty::explain(&store, &args.select, args.print.limit);
    }
    Ok(printed.outcome())
}

/// What is scanned.
#[derive(Clone, Copy, Debug)]
pub enum TickSource<'a> {
    /// A store, with its key.
    Store(&'a Store),
    /// The answer of a server.
    Answer(&'a AnswerReader),
}

impl<'a> TickSource<'a> {
    fn scan(self, filter: &ScanFilter) -> Result<Scan<'a>, Error> {
        match self {
            Self::Store(store) => store.scan(filter),
            Self::Answer(answer) => answer.scan(filter),
        }
    }

    fn rows(self, schema: TickSchema, filter: &ScanFilter) -> Result<RowScan<'a>, Error> {
        match self {
            Self::Store(store) => store.rows(schema, filter),
            Self::Answer(answer) => answer.rows(schema, filter),
        }
    }

    fn names(self) -> &'a Dictionary {
        match self {
            Self::Store(store) => store.names(),
            Self::Answer(answer) => answer.names(),
        }
    }

    fn sources(self) -> Vec<Event<'a>> {
        match self {
            Self::Store(store) => store.sources().collect(),
            Self::Answer(answer) => answer.sources().collect(),
        }
    }
}

/// What was printed, and what was met on the way.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrintedScan {
    /// Events or rows.
    pub events: u64,
    /// Damaged blocks.
    pub problems: u64,
}

impl PrintedScan {
    /// Returns the outcome of the command that printed it.
    pub fn outcome(&self) -> CommandOutcome {
        if self.problems == 0 { CommandOutcome::Clean } else { CommandOutcome::Flawed }
    }
}

/// Scans and prints, `limit` events or rows at most.
pub fn print(
    source: &TickSource<'_>,
    filter: &ScanFilter,
    output: ScanOutput,
    args: &PrintArgs,
    limit: u64,
) -> Result<PrintedScan, CommandFailure> {
    let progress = Arc::new(StoreProgress::default());
    let (events, problems, failure, is_refused) = match output {
        ScanOutput::Events => {
            let mut scan = source.scan(filter)?.with_progress(progress.clone());
            let events = with_bar(&progress, || print_events(&mut scan, source, args, limit))?;
            report(scan.problems(), scan.problem_count());
            let is_refused = scan.problems().iter().any(Error::is_refusal);
            (events, scan.problem_count(), scan.take_failure(), is_refused)
        }
        ScanOutput::Rows(schema, lines) => {
            let mut scan = source.rows(schema, filter)?.with_progress(progress.clone());
            let events = with_bar(&progress, || print_rows(&mut scan, lines, limit))?;
            report(scan.problems(), scan.problem_count());
            let is_refused = scan.problems().iter().any(Error::is_refusal);
            (events, scan.problem_count(), scan.take_failure(), is_refused)
        }
    };
    match failure {
        Some(failure) => Err(failure.into()),
        None if is_refused => {
            let what = "the system refused to read some of it, as named above; the rest was printed";
            Err(CommandFailure::Error(what.to_owned()))
        }
        None => Ok(PrintedScan { events, problems }),
    }
}

/// Prints events, `limit` at most, and returns how many there were.
fn print_events(
    scan: &mut Scan<'_>,
    source: &TickSource<'_>,
    args: &PrintArgs,
    limit: u64,
) -> Result<u64, CommandFailure> {
    let (names, mut sources) = (source.names(), DefinitionTable::default());
    for event in source.sources() {
        sources.admit(&event)?;
    }
    let (mut out, mut line, mut count) = (output::stdout(), Vec::new(), 0);
    while count < limit {
        let Some(row) = scan.next() else { break };
        count += 1;
        line.clear();
        let form = if args.full { EventLineDetail::FullAt(row.position) } else { EventLineDetail::Plain };
        // As on the tape: ordinals count from 1 where people see them.
        write_event(&mut line, &row.event(), row.ordinal + 1, names, &sources, form);
        if !args.json {
            line = readable(&line);
        }
        line.push(b'\n');
        out.write_all(&line)?;
    }
    out.flush()?;
    Ok(count)
}

/// Prints rows, `limit` at most, and returns how many there were.
fn print_rows(scan: &mut RowScan<'_>, mut lines: RowLines, limit: u64) -> Result<u64, CommandFailure> {
    let (mut out, mut line, mut count) = (output::stdout(), String::new(), 0);
    lines.begin(&mut line);
    while count < limit {
        let Some(row) = scan.next() else { break };
        count += 1;
        lines.put_row(&mut line, |column| row.value(column));
        out.write_all(line.as_bytes())?;
        line.clear();
    }
    out.write_all(line.as_bytes())?;
    out.flush()?;
    Ok(count)
}

/// Names the damage that a scan met.
fn report(problems: &[Error], count: u64) {
    problems.iter().for_each(|p| note!("unitape: {p}"));
    if count > problems.len() as u64 {
        note!("unitape: {} problems in all", grouped(count));
    }
}

/// Runs a scan with a bar beside it. Between the lines of a terminal a bar would be in their way.
fn with_bar<T>(progress: &StoreProgress, print: impl FnOnce() -> T) -> T {
    if std::io::stdout().is_terminal() { print() } else { super::with_progress("scan", progress, print) }
}
