//! `unitape store export`: rows of one schema as a file, or as a directory with a file for each date or symbol.

use super::KeyArgs;
use super::empty;
use super::partitions::{PartitionKey, PartitionWriter, check_directory};
use super::scan::{ColumnArgs, ScanRows, SealedArgs, TickSource, end_scan};
use crate::output::{
    self, ColumnFormat, CommandFailure, CommandOutcome, Destination, OutputDirectory, RowForm, RowFormat,
    bytes, grouped, note, note_misfits, say,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use unitape_model::EventRow;
use unitape_store::{Error, ScanFilter, Store, StoreProgress, TickSchema};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("schema", |arg| arg.help("The schema of the rows").required(true)),
    mut_arg("kind", |arg| arg.hide(true)),
    mut_arg("limit", |arg| arg.help("Export at most N rows, the first ones by event time"))
)]
pub struct ExportArgs {
    /// Directory of the store
    dir: PathBuf,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    select: SealedArgs,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Format of the files
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: ExportFormat,
    /// The file, or with --partition the directory; it gets its name when it is complete
    #[arg(id = "output", long, short, value_name = "FILE")]
    file: PathBuf,
    /// Write a directory with a file for each date or each symbol
    #[arg(long, value_enum, value_name = "KEY")]
    partition: Option<PartitionKey>,
    /// Replace a file, or the export in a directory, that exists
    #[arg(long)]
    force: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportFormat {
    /// Parquet
    Parquet,
    /// Arrow IPC stream
    Arrow,
    /// CSV with a header
    Csv,
}

impl ExportFormat {
    fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
            Self::Csv => "csv",
        }
    }

    fn form(self) -> RowForm {
        match self {
            Self::Parquet => RowForm::Columns(ColumnFormat::Parquet),
            Self::Arrow => RowForm::Columns(ColumnFormat::Arrow),
            Self::Csv => RowForm::Lines(RowFormat::Csv),
        }
    }

    /// Returns the ending of the files' names.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            // Of a stream; `.arrow` is a file with an index behind it.
            Self::Arrow => "arrows",
            Self::Csv => "csv",
        }
    }
}

/// Runs the command.
pub fn run(args: &ExportArgs) -> output::Result {
    let mut filter = args.select.filter()?;
    let searched = args.select.describe(&filter);
    let searched = args.columns.set_state(&mut filter, &searched)?;
    let rows = ScanRows {
        schema: only_schema(args, &filter)?,
        classes: args.columns.classes()?,
        form: args.format.form(),
    };
    check_output(args)?;
    let store = Store::open(&args.dir, &args.key.of_store(&args.dir)?)?;
    let is_left = empty::known_names(&store, &mut filter)?;
    let limit = if is_left { args.select.limit().unwrap_or(u64::MAX) } else { 0 };
    let (stop, generation) = (output::stop_flag()?, store.generation(filter.as_of)?);
    let export = Export { store: &store, rows, filter, limit, stop: &stop, progress: Arc::default() };
    let progress = export.progress.clone();
    let counts = super::with_progress("export", &progress, || match args.partition {
        None => export.write_file(&args.file),
        Some(key) => export.write_directory(&args.file, key, args.format),
    })?;
    note_misfits(counts.nulls);
    print_summary(args, generation, rows.schema, &counts)?;
    if limit > 0 && counts.rows == 0 && counts.problems == 0 {
        empty::explain(&store, &searched);
    }
    let is_clean = counts.problems == 0 && counts.nulls == 0;
    Ok(if is_clean { CommandOutcome::Clean } else { CommandOutcome::Flawed })
}

/// The numbers of an export.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportCounts {
    pub files: u64,
    pub rows: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Values that did not fit their column, and are null.
    pub nulls: u64,
    /// Damaged blocks.
    pub problems: u64,
}

/// An export that runs.
#[derive(Debug)]
pub struct Export<'a> {
    pub store: &'a Store,
    pub rows: ScanRows,
    pub filter: ScanFilter,
    /// Rows at most.
    pub limit: u64,
    /// Set by a signal.
    pub stop: &'a AtomicBool,
    pub progress: Arc<StoreProgress>,
}

impl Export<'_> {
    /// Passes the rows of a filter to `visit`, until it returns false. Returns the number of damaged blocks.
    ///
    /// # Errors
    /// Fails if `visit` fails, if a signal came, or if the system refused to read something.
    pub fn for_each_row(
        &self,
        filter: &ScanFilter,
        mut visit: impl FnMut(&EventRow<'_>) -> Result<bool, CommandFailure>,
    ) -> Result<u64, CommandFailure> {
        let mut scan = self.rows.scan(&TickSource::Store(self.store), filter, &self.progress)?;
        while let Some(row) = scan.next() {
            // Relaxed: a flag alone.
            if self.stop.load(Ordering::Relaxed) {
                return Err(CommandFailure::Error("stopped by a signal: nothing was exported".to_owned()));
            }
            if !visit(&row)? {
                break;
            }
        }
        let (count, failure) = (scan.problem_count(), scan.take_failure());
        end_scan(scan.problems(), count, failure)?;
        Ok(count)
    }

    /// Returns the keys and values for the schema of columns.
    ///
    /// # Errors
    /// Fails if the store does not have the state of the filter yet.
    pub fn metadata(&self) -> Result<Vec<(String, String)>, Error> {
        self.rows.metadata(&TickSource::Store(self.store), &self.filter)
    }

    fn write_file(&self, path: &Path) -> Result<ExportCounts, CommandFailure> {
        let mut encoder = self.rows.encoder(&self.metadata()?, FILE_BATCH_ROWS)?;
        let mut destination = Destination::open(Some(path))?;
        let mut counts = ExportCounts { files: 1, ..ExportCounts::default() };
        if self.limit > 0 {
            counts.problems = self.for_each_row(&self.filter, |row| {
                encoder.put_row(row)?;
                counts.bytes += encoder.write_to(&mut destination)?;
                counts.rows += 1;
                Ok(counts.rows < self.limit)
            })?;
        }
        encoder.finish()?;
        counts.bytes += encoder.write_to(&mut destination)?;
        counts.nulls = encoder.nulls();
        destination.finish()?;
        Ok(counts)
    }

    fn write_directory(
        &self,
        path: &Path,
        key: PartitionKey,
        format: ExportFormat,
    ) -> Result<ExportCounts, CommandFailure> {
        let directory = OutputDirectory::create(path)?;
        let mut writer = PartitionWriter::new(self, directory.path(), format.extension())?;
        if self.limit > 0 {
            match key {
                PartitionKey::Date => writer.write_dates()?,
                PartitionKey::Symbol => writer.write_symbols()?,
            }
        }
        let counts = writer.counts();
        directory.finish()?;
        Ok(counts)
    }
}

/// Returns the schema of the rows.
fn only_schema(args: &ExportArgs, filter: &ScanFilter) -> Result<TickSchema, CommandFailure> {
    if !args.select.kinds()?.is_empty() {
        let message = "--kind selects events, and an export has the rows of one --schema".to_owned();
        return Err(CommandFailure::Usage(message));
    }
    match &filter.schemas[..] {
        [schema, others @ ..] if others.iter().all(|other| other == schema) => Ok(*schema),
        _ => Err(CommandFailure::Usage("an export has the rows of one schema: give one --schema".to_owned())),
    }
}

/// Refuses an output that exists, before anything is read.
fn check_output(args: &ExportArgs) -> Result<(), CommandFailure> {
    let path = &args.file;
    if args.partition.is_some() {
        return check_directory(path, args.force);
    }
    let fault = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => "is a directory; --partition date or symbol writes into one",
        // A device or a pipe is written to, and stays.
        Ok(metadata) if metadata.is_file() && !args.force => "exists; --force replaces it",
        _ => return Ok(()),
    };
    Err(CommandFailure::Usage(format!("{}: {fault}", path.display())))
}

fn print_summary(
    args: &ExportArgs,
    generation: u64,
    schema: TickSchema,
    counts: &ExportCounts,
) -> Result<(), CommandFailure> {
    let ExportCounts { files, rows, bytes: file_bytes, nulls, problems } = *counts;
    if args.json {
        return output::print_json(&serde_json::json!({
            "generation": generation, "schema": schema.name(), "format": args.format.name(),
            "files": files, "rows": rows, "bytes": file_bytes, "nulls": nulls, "damaged_blocks": problems,
        }));
    }
    let summary = format!(
        "{} {} of {schema}, {} in {} {}, into {}",
        grouped(rows),
        if rows == 1 { "row" } else { "rows" },
        bytes(file_bytes),
        grouped(files),
        if files == 1 { "file" } else { "files" },
        args.file.display()
    );
    // A device may be stdout, and has the rows.
    if args.file.is_file() || args.file.is_dir() {
        say!("{summary}");
    } else {
        note!("{summary}");
    }
    Ok(())
}

/// Rows of a batch of columns in one file.
const FILE_BATCH_ROWS: usize = 1 << 16;
