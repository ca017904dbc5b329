//! `unitape store scan`; and the selection and the printing that `unitape get` has in common with it.

use super::KeyArgs;
use super::empty;
use crate::commands::range_args::{OutputArgs, SelectionArgs};
use crate::commands::tape::{readable, utc};
use crate::output::{
    self, ColumnFormat, CommandFailure, CommandOutcome, Destination, RowEncoder, RowForm, RowFormat,
    RowOutput, grouped, note, note_misfits, refuse_name, refuse_terminal,
};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use unitape_codec::events::{EventLineDetail, write_event};
use unitape_model::{ClassSet, DefinitionTable, Dictionary, Event, EventKind, FieldClass, UnixNanos};
use unitape_store::{
    AnswerReader, AsOf, Day, Error, RowScan, Scan, ScanFilter, Store, StoreProgress, TickSchema,
};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct ScanArgs {
    /// Directory of the store
    dir: PathBuf,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    select: SealedArgs,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Print rows as a Parquet file
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    parquet: bool,
    /// Print rows as an Arrow IPC stream
    #[arg(long, conflicts_with_all = ["json", "csv", "parquet"])]
    arrow: bool,
}

/// Which columns of rows, and of which state of the store.
#[derive(Debug, clap::Args)]
pub struct ColumnArgs {
    /// Columns of these classes behind those of market data (identity, provenance; repeatable, or with commas)
    #[arg(long, value_name = "CLASS", value_delimiter = ',')]
    with: Vec<String>,
    /// The store as an earlier generation left it: its number, or a time (the last generation committed by then)
    #[arg(long, value_name = "GENERATION|TIME")]
    as_of: Option<String>,
}

/// Parses a state of a store: digits alone are a generation; a time has a date, or ends in `ns`.
fn parse_as_of(text: &str) -> Result<AsOf, CommandFailure> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let refuse = || {
        CommandFailure::Usage(format!(
            "--as-of: `{text}` is neither a generation (digits) nor a time (2024-03-11T14:30, or nanoseconds as 1710167400000000000ns)"
        ))
    };
    if is_number(text) {
        return text.parse().map(AsOf::Generation).map_err(|_| refuse());
    }
    let time = match text.strip_suffix("ns") {
        Some(nanoseconds) => nanoseconds.parse().map(UnixNanos).map_err(|_| refuse())?,
        None => text.parse().map_err(|_| refuse())?,
    };
    Ok(AsOf::Time(time))
}

impl ColumnArgs {
    /// Sets the state in the filter. Returns the options that narrow the scan, as they could be written.
    ///
    /// # Errors
    /// Fails if the state is no generation and no time.
    pub fn set_state(&self, filter: &mut ScanFilter, searched: &str) -> Result<String, CommandFailure> {
        let Some(as_of) = &self.as_of else { return Ok(searched.to_owned()) };
        filter.as_of = Some(parse_as_of(as_of)?);
        Ok(format!("{searched} --as-of {as_of}").trim_start().to_owned())
    }

    /// Returns the classes of the columns.
    ///
    /// # Errors
    /// Fails if there is no such class.
    pub fn classes(&self) -> Result<ClassSet, CommandFailure> {
        let optional = [FieldClass::Identity, FieldClass::Provenance];
        self.with.iter().try_fold(ClassSet::MARKET, |classes, name| {
            let class = optional.into_iter().find(|class| class.name() == name);
            let refuse = || refuse_name(name, "class", "classes", optional.map(FieldClass::name));
            class.map(|class| classes.with(class)).ok_or_else(refuse)
        })
    }
}

/// Which sealed events. They are selected by time, so that `--from` and `--to` are old names of `--since` and `--until`.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("from", |arg| arg.hide(true)),
    mut_arg("to", |arg| arg.hide(true)),
    mut_arg("venue", |arg| arg.help("Only events of this venue, or of this bank that quotes")),
    mut_arg("schema", |arg| arg.help("Rows of this schema; of events, only these schemas (repeatable, or with commas)"))
)]
pub struct SealedArgs {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Only this day; `undated` for events without a time
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<Day>,
}

/// How much is printed, and how.
#[derive(Debug, clap::Args)]
pub struct PrintArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// Print events, also of one schema
    #[arg(long)]
    pub events: bool,
    /// Print all that an event holds: ids (the store's), source, receive time, flags, position
    #[arg(long)]
    pub full: bool,
}

impl SealedArgs {
    /// Returns the filter of the store.
    ///
    /// # Errors
    /// Fails if an option has no value that it can have, or selects what a store does not have.
    pub fn filter(&self) -> Result<ScanFilter, CommandFailure> {
        let selection = &self.selection;
        let (from, to) = selection.range.parse_sealed()?;
        let schema = |name: &String| {
            let refuse = || refuse_name(name, "schema", "schemas", TickSchema::ALL.map(TickSchema::name));
            TickSchema::from_name(name).ok_or_else(refuse)
        };
        let mut schemas: Vec<TickSchema> = selection.schema.iter().map(schema).collect::<Result<_, _>>()?;
        if schemas.is_empty() {
            // Only their schemas are read; of these, the other kinds are not printed.
            schemas.extend(self.kinds()?.into_iter().filter_map(TickSchema::for_kind));
            schemas.sort_unstable();
            schemas.dedup();
        }
        let venue = match &selection.venue[..] {
            [] => None,
            [venue] => Some(venue.clone()),
            _ => {
                let message = "a store is read for one venue: give --venue once".to_owned();
                return Err(CommandFailure::Usage(message));
            }
        };
        let symbols = selection.instruments.names();
        Ok(ScanFilter { symbols, from, to, date: self.date, schemas, venue, as_of: None })
    }

    /// Returns the kinds of events that are asked for; all if there are none.
    ///
    /// # Errors
    /// Fails if a kind is unknown, or is that of users' messages.
    pub fn kinds(&self) -> Result<Vec<EventKind>, CommandFailure> {
        match self.selection.kinds()? {
            (kinds, false) => Ok(kinds),
            (_, true) => {
                let message =
                    "--kind message: users' messages are not sealed; `unitape tape cat` prints them";
                Err(CommandFailure::Usage(message.to_owned()))
            }
        }
    }

    /// Returns the most events or rows that are printed.
    pub fn limit(&self) -> Option<u64> {
        self.selection.limit
    }

    /// Returns the options that narrow the scan, as they could be written.
    pub fn describe(&self, filter: &ScanFilter) -> String {
        let SelectionArgs { instruments, kind, schema, limit, .. } = &self.selection;
        let mut options: Vec<String> = instruments.words().collect();
        options.extend((!kind.is_empty()).then(|| format!("--kind {}", kind.join(","))));
        options.extend((!schema.is_empty()).then(|| format!("--schema {}", schema.join(","))));
        options.extend(filter.venue.as_ref().map(|venue| format!("--venue {venue}")));
        options.extend(filter.date.map(|date| format!("--date {date}")));
        options.extend(filter.from.map(|since| format!("--since {}", utc(since.0))));
        options.extend(filter.to.map(|until| format!("--until {}", utc(until.0))));
        options.extend(limit.map(|limit| format!("--limit {limit}")));
        options.join(" ")
    }
}

/// Rows of one schema, with the columns of these classes.
#[derive(Clone, Copy, Debug)]
pub struct ScanRows {
    /// The schema.
    pub schema: TickSchema,
    /// The classes.
    pub classes: ClassSet,
    /// The form.
    pub form: RowForm,
}

impl ScanRows {
    /// Begins to read the rows.
    ///
    /// # Errors
    /// Fails if the source does not have a name of the filter.
    pub fn scan<'s>(
        &self,
        source: &TickSource<'s>,
        filter: &ScanFilter,
        progress: &Arc<StoreProgress>,
    ) -> Result<RowScan<'s>, Error> {
        let scan = source.rows(self.schema, filter)?.with_classes(self.classes);
        Ok(scan.with_progress(progress.clone()))
    }

    /// Returns the keys and values for the schema of columns.
    ///
    /// # Errors
    /// Fails if the store does not have the state of the filter yet.
    pub fn metadata(
        &self,
        source: &TickSource<'_>,
        filter: &ScanFilter,
    ) -> Result<Vec<(String, String)>, Error> {
        let schema = ("unitape.schema".to_owned(), self.schema.name().to_owned());
        let generation = match source {
            TickSource::Store(store) => Some(store.generation(filter.as_of)?),
            TickSource::Answer(_) => None,
        };
        let generation = generation.map(|n| ("unitape.generation".to_owned(), n.to_string()));
        Ok([schema].into_iter().chain(generation).collect())
    }

    /// Begins an output of the rows.
    ///
    /// # Errors
    /// Fails if the form has no type for a column.
    pub fn encoder(
        &self,
        metadata: &[(String, String)],
        batch_rows: usize,
    ) -> Result<RowEncoder, CommandFailure> {
        let ScanRows { schema, classes, form } = *self;
        RowEncoder::new(&RowOutput { form, schema: schema.row_schema(), classes, metadata, batch_rows })
    }
}

/// What a scan prints.
#[derive(Clone, Debug)]
pub enum ScanOutput {
    /// Events.
    Events,
    /// Rows of one schema.
    Rows(ScanRows),
}

impl ScanOutput {
    /// Returns the output that options ask for, of these schemas and kinds.
    ///
    /// # Errors
    /// Fails if the options ask for rows of several schemas, or for a form of rows for events.
    pub fn new(
        print: &PrintArgs,
        columns: Option<ColumnFormat>,
        schemas: &[TickSchema],
        kinds: &[EventKind],
        classes: ClassSet,
    ) -> Result<Self, CommandFailure> {
        if print.events || print.full || schemas.is_empty() || !kinds.is_empty() {
            if let Some(option) = columns.map(ColumnFormat::option).or(print.output.csv.then_some("--csv")) {
                return Err(CommandFailure::Usage(format!(
                    "{option} prints rows: give one --schema, without --events, --full or --kind"
                )));
            }
            if classes != ClassSet::MARKET {
                let message =
                    "--with adds columns to rows: give one --schema, without --events, --full or --kind";
                return Err(CommandFailure::Usage(message.to_owned()));
            }
            return Ok(Self::Events);
        }
        let schema = schemas[0];
        if schemas.iter().any(|other_schema| *other_schema != schema) {
            let message = "rows are of one schema; with --events, events of several are printed".to_owned();
            return Err(CommandFailure::Usage(message));
        }
        let form = match columns {
            Some(format) => RowForm::Columns(format),
            None => RowForm::Lines(RowFormat::from_options(print.output.json, print.output.csv)),
        };
        Ok(Self::Rows(ScanRows { schema, classes, form }))
    }
}

/// Runs the command.
pub fn run(args: &ScanArgs) -> output::Result {
    let (mut filter, kinds) = (args.select.filter()?, args.select.kinds()?);
    let searched = args.select.describe(&filter);
    let searched = args.columns.set_state(&mut filter, &searched)?;
    let columns = ColumnFormat::from_options(args.parquet, args.arrow);
    let classes = args.columns.classes()?;
    let output = ScanOutput::new(&args.print, columns, &filter.schemas, &kinds, classes)?;
    if let Some(format) = columns {
        refuse_terminal(format.option(), args.print.output.file.as_deref())?;
    }
    let store = Store::open(&args.dir, &args.key.of_store(&args.dir)?)?;
    // Of names that no event has, nothing is read.
    let is_left = empty::known_names(&store, &mut filter)?;
    let limit = if is_left { args.select.limit().unwrap_or(u64::MAX) } else { 0 };
    let mut printer = ScanPrinter::open(&args.print, kinds)?;
    let printed = printer.print(&TickSource::Store(&store), &filter, output, limit)?;
    printer.finish()?;
    if limit > 0 && printed.events == 0 && printed.problems == 0 {
        empty::explain(&store, &searched);
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
    /// Values that did not fit their column, and are null.
    pub nulls: u64,
}

impl PrintedScan {
    /// Returns the outcome of the command that printed it.
    pub fn outcome(&self) -> CommandOutcome {
        if self.problems == 0 && self.nulls == 0 { CommandOutcome::Clean } else { CommandOutcome::Flawed }
    }
}

/// Prints scans to one destination.
pub struct ScanPrinter<'a> {
    args: &'a PrintArgs,
    /// The kinds of events that are printed; all if there are none.
    kinds: Vec<EventKind>,
    destination: Destination,
}

impl<'a> ScanPrinter<'a> {
    /// Opens the destination that the options name.
    ///
    /// # Errors
    /// Fails if the file cannot be made.
    pub fn open(args: &'a PrintArgs, kinds: Vec<EventKind>) -> Result<Self, CommandFailure> {
        Ok(Self { args, kinds, destination: Destination::open(args.output.file.as_deref())? })
    }

    /// Scans and prints, `limit` events or rows at most.
    ///
    /// # Errors
    /// Fails if the source cannot be read, or if the destination refuses the data.
    pub fn print(
        &mut self,
        source: &TickSource<'_>,
        filter: &ScanFilter,
        output: ScanOutput,
        limit: u64,
    ) -> Result<PrintedScan, CommandFailure> {
        let progress = Arc::new(StoreProgress::default());
        let mut printed = PrintedScan::default();
        let ended = match output {
            ScanOutput::Events => {
                let mut scan = source.scan(filter)?.with_progress(progress.clone());
                printed.events = with_bar(&progress, || self.print_events(&mut scan, source, limit))?;
                printed.problems = scan.problem_count();
                let failure = scan.take_failure();
                end_scan(scan.problems(), printed.problems, failure)
            }
            ScanOutput::Rows(rows) => {
                let mut scan = rows.scan(source, filter, &progress)?;
                let encoder = rows.encoder(&rows.metadata(source, filter)?, BATCH_ROWS)?;
                (printed.events, printed.nulls) =
                    with_bar(&progress, || self.print_rows(&mut scan, encoder, limit))?;
                printed.problems = scan.problem_count();
                let failure = scan.take_failure();
                end_scan(scan.problems(), printed.problems, failure)
            }
        };
        note_misfits(printed.nulls);
        ended.map(|()| printed)
    }

    /// Ends the output.
    ///
    /// # Errors
    /// Fails if the destination refuses the data.
    pub fn finish(self) -> Result<(), CommandFailure> {
        self.destination.finish()
    }

    /// Prints events, `limit` at most, and returns how many there were.
    fn print_events(
        &mut self,
        scan: &mut Scan<'_>,
        source: &TickSource<'_>,
        limit: u64,
    ) -> Result<u64, CommandFailure> {
        let (names, mut sources) = (source.names(), DefinitionTable::default());
        for event in source.sources() {
            sources.admit_event(&event)?;
        }
        let (mut line, mut count) = (Vec::new(), 0);
        while count < limit {
            let Some(row) = scan.next() else { break };
            if !self.kinds.is_empty() && !self.kinds.contains(&row.event().kind()) {
                continue;
            }
            count += 1;
            line.clear();
            let detail = match self.args.full {
                true => EventLineDetail::FullAt(row.position),
                false => EventLineDetail::Plain,
            };
            // As on the tape: ordinals count from 1 where people see them.
            write_event(&mut line, &row.event(), row.ordinal + 1, names, &sources, detail);
            if !self.args.output.json {
                line = readable(&line);
            }
            line.push(b'\n');
            self.destination.write_all(&line)?;
        }
        self.destination.flush()?;
        Ok(count)
    }

    /// Prints rows, `limit` at most. Returns how many there were, and how many of their values are null because they did not fit.
    fn print_rows(
        &mut self,
        scan: &mut RowScan<'_>,
        mut encoder: RowEncoder,
        limit: u64,
    ) -> Result<(u64, u64), CommandFailure> {
        let mut count = 0;
        while count < limit {
            let Some(row) = scan.next() else { break };
            count += 1;
            encoder.put_row(&row)?;
            encoder.write_to(&mut self.destination)?;
        }
        encoder.finish()?;
        encoder.write_to(&mut self.destination)?;
        self.destination.flush()?;
        Ok((count, encoder.nulls()))
    }
}

/// Ends a scan: reports the damage that it met, and returns what ended it or what the system refused.
///
/// # Errors
/// Fails with the failure, or if the system refused to read something.
pub fn end_scan(problems: &[Error], count: u64, failure: Option<Error>) -> Result<(), CommandFailure> {
    report_damage(problems, count);
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    if problems.iter().any(Error::is_refusal) {
        let message = "the system refused to read some of it, as named above; the rest was printed";
        return Err(CommandFailure::Error(message.to_owned()));
    }
    Ok(())
}

/// Reports the damage that a scan met.
fn report_damage(problems: &[Error], count: u64) {
    problems.iter().for_each(|p| note!("unitape: {p}"));
    if count > problems.len() as u64 {
        note!("unitape: {} problems in all", grouped(count));
    }
}

/// Runs a scan with a bar beside it. Between the lines of a terminal a bar would be in their way.
fn with_bar<T>(progress: &StoreProgress, print: impl FnOnce() -> T) -> T {
    if std::io::stdout().is_terminal() { print() } else { super::with_progress("scan", progress, print) }
}

/// Rows of a batch of columns.
const BATCH_ROWS: usize = 1 << 16;
