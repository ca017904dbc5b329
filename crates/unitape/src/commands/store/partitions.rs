//! Rows in a directory with a file for each value of a column: `date=2024-03-11/part-0.parquet`.
//!
//! Of dates one file is open at a time. Rows of symbols follow one another by time, so the files of 64 symbols are open together;
//! the rows of other symbols are counted, and read again, 64 symbols at a time. A symbol has one file, however many symbols there
//! are, and no more rows are in memory than of 64 files.

use super::export::{Export, ExportCounts};
use crate::output::{CommandFailure, Destination, RowEncoder, file_failure, grouped, note};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use unitape_model::{EventRow, NameKind};
use unitape_store::{Day, ScanFilter};

/// The column whose values choose the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PartitionKey {
    /// A file for each day of the store
    Date,
    /// A file for each symbol
    Symbol,
}

/// Writes the files of an export.
#[derive(Debug)]
pub struct PartitionWriter<'a> {
    export: &'a Export<'a>,
    /// The directory of the files.
    directory: &'a Path,
    extension: &'static str,
    metadata: Vec<(String, String)>,
    counts: ExportCounts,
}

/// A file of a partition that is being written.
#[derive(Debug)]
struct OpenPart {
    encoder: RowEncoder,
    destination: Destination,
}

impl<'a> PartitionWriter<'a> {
    /// Makes a writer of files with this ending.
    ///
    /// # Errors
    /// Fails if the store does not have the state of the export yet.
    pub fn new(
        export: &'a Export<'a>,
        directory: &'a Path,
        extension: &'static str,
    ) -> Result<Self, CommandFailure> {
        let (metadata, counts) = (export.metadata()?, ExportCounts::default());
        Ok(Self { export, directory, extension, metadata, counts })
    }

    /// Returns the numbers of what was written.
    pub fn counts(&self) -> ExportCounts {
        self.counts
    }

    /// Writes a file for each day that has rows.
    ///
    /// # Errors
    /// Fails if the rows cannot be read or written.
    pub fn write_dates(&mut self) -> Result<(), CommandFailure> {
        let filter = &self.export.filter;
        let days = self.export.store.info().days;
        for day in days.into_keys().filter(|day| filter.date.is_none_or(|date| date == *day)) {
            if self.counts.rows == self.export.limit {
                break;
            }
            let value = if day == Day::UNDATED { NO_VALUE.to_owned() } else { day.to_string() };
            let filter = ScanFilter { date: Some(day), ..filter.clone() };
            let mut part = None;
            let problems = self.export.for_each_row(&filter, |row| {
                if part.is_none() {
                    part = Some(self.open_part("date", &value, FILE_BATCH_ROWS)?);
                }
                if let Some(part) = &mut part {
                    self.counts.bytes += part.put_row(row)?.bytes;
                }
                self.counts.rows += 1;
                Ok(self.counts.rows < self.export.limit)
            })?;
            self.counts.problems += problems;
            if let Some(part) = part {
                self.finish_part(part)?;
            }
        }
        Ok(())
    }

    /// Writes a file for each symbol that has rows, and one for the rows without a symbol.
    ///
    /// # Errors
    /// Fails if the rows cannot be read or written.
    pub fn write_symbols(&mut self) -> Result<(), CommandFailure> {
        let mut parts: BTreeMap<u32, OpenPart> = BTreeMap::new();
        // Rows of the symbols without a file yet, which later passes write.
        let mut left: BTreeMap<u32, u64> = BTreeMap::new();
        self.counts.problems = self.export.for_each_row(&self.export.filter, |row| {
            let instrument = row.event.instrument().0;
            // A filter of names cannot choose rows without one, so that these are always written in this pass.
            let is_open = parts.contains_key(&instrument);
            if is_open || parts.len() < OPEN_FILES_MAX || instrument == NO_INSTRUMENT {
                self.put_row_of_symbol(&mut parts, row)?;
            } else {
                *left.entry(instrument).or_default() += 1;
            }
            self.counts.rows += 1;
            Ok(self.counts.rows < self.export.limit)
        })?;
        self.finish_parts(parts)?;
        let instruments: Vec<u32> = left.keys().copied().collect();
        for group in instruments.chunks(OPEN_FILES_MAX) {
            self.write_group(group, &mut left)?;
        }
        Ok(())
    }

    /// Writes the files of these symbols, which are sorted and have as many rows `left`.
    fn write_group(&mut self, group: &[u32], left: &mut BTreeMap<u32, u64>) -> Result<(), CommandFailure> {
        let names = self.export.store.names();
        let symbols = group.iter().filter_map(|id| names.name(NameKind::Instrument, *id));
        let filter =
            ScanFilter { symbols: symbols.map(str::to_owned).collect(), ..self.export.filter.clone() };
        let mut parts = BTreeMap::new();
        let mut rows: u64 = group.iter().filter_map(|id| left.get(id)).sum();
        let problems = self.export.for_each_row(&filter, |row| {
            let instrument = row.event.instrument().0;
            let is_wanted = group.binary_search(&instrument).is_ok();
            if let Some(rows_left) = left.get_mut(&instrument).filter(|count| is_wanted && **count > 0) {
                *rows_left -= 1;
                rows -= 1;
                self.put_row_of_symbol(&mut parts, row)?;
            }
            Ok(rows > 0)
        })?;
        self.finish_parts(parts)?;
        // The first pass has counted damage, but for what was damaged after it.
        if rows > 0 {
            note!("unitape: {} rows could not be read a second time, and are missing", grouped(rows));
            self.counts.rows -= rows;
            self.counts.problems += problems.max(1);
        }
        Ok(())
    }

    fn put_row_of_symbol(
        &mut self,
        parts: &mut BTreeMap<u32, OpenPart>,
        row: &EventRow<'_>,
    ) -> Result<(), CommandFailure> {
        let instrument = row.event.instrument().0;
        let part = match parts.entry(instrument) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let value = match row.names.name(NameKind::Instrument, instrument) {
                    Some(name) => escape_value(name),
                    None => NO_VALUE.to_owned(),
                };
                entry.insert(self.open_part("symbol", &value, PART_BATCH_ROWS)?)
            }
        };
        let written = part.put_row(row)?;
        self.counts.bytes += written.bytes;
        if written.has_batch {
            self.counts.bytes += free_memory(parts)?;
        }
        Ok(())
    }

    /// Opens the file of a value, which is escaped already.
    fn open_part(&self, key: &str, value: &str, batch_rows: usize) -> Result<OpenPart, CommandFailure> {
        let folder = format!("{key}={value}");
        if folder.len() > FILE_NAME_BYTES_MAX {
            return Err(CommandFailure::Error(format!(
                "a {key} takes {} bytes as the name of a directory, and {FILE_NAME_BYTES_MAX} fit: select others: {value}",
                folder.len()
            )));
        }
        let folder = self.directory.join(folder);
        fs::create_dir(&folder).map_err(|e| file_failure(&folder, e))?;
        let path = folder.join(format!("part-0.{}", self.extension));
        let encoder = self.export.rows.encoder(&self.metadata, batch_rows)?;
        Ok(OpenPart { encoder, destination: Destination::open(Some(&path))? })
    }

    fn finish_parts(&mut self, parts: BTreeMap<u32, OpenPart>) -> Result<(), CommandFailure> {
        parts.into_values().try_for_each(|part| self.finish_part(part))
    }

    fn finish_part(&mut self, part: OpenPart) -> Result<(), CommandFailure> {
        let OpenPart { mut encoder, mut destination } = part;
        encoder.finish()?;
        self.counts.bytes += encoder.write_to(&mut destination)?;
        self.counts.nulls += encoder.nulls();
        self.counts.files += 1;
        destination.finish()
    }
}

/// The effect of a row on its file.
struct WrittenRow {
    /// The bytes that were written to the file.
    bytes: u64,
    /// Whether a batch was encoded.
    has_batch: bool,
}

impl OpenPart {
    fn put_row(&mut self, row: &EventRow<'_>) -> Result<WrittenRow, CommandFailure> {
        let has_batch = self.encoder.put_row(row)?;
        Ok(WrittenRow { bytes: self.encoder.write_to(&mut self.destination)?, has_batch })
    }
}

/// Ends the largest row groups until all of them together take less than the limit. Returns the bytes written.
fn free_memory(parts: &mut BTreeMap<u32, OpenPart>) -> Result<u64, CommandFailure> {
    let mut bytes = 0;
    while parts.values().map(|part| part.encoder.memory_bytes()).sum::<usize>() > OPEN_BYTES_MAX {
        let Some(part) = parts.values_mut().max_by_key(|part| part.encoder.memory_bytes()) else { break };
        part.encoder.end_row_group()?;
        bytes += part.encoder.write_to(&mut part.destination)?;
    }
    Ok(bytes)
}

/// Refuses a directory that an export must not replace: one that has something in it, and with `--force` one that has something
/// other than an export.
///
/// # Errors
/// Fails if the directory is refused or cannot be read.
pub fn check_directory(path: &Path, is_forced: bool) -> Result<(), CommandFailure> {
    let failure = |e| file_failure(path, e);
    let refuse = |fault: String| Err(CommandFailure::Usage(format!("{}: {fault}", path.display())));
    match fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(failure(e)),
        Ok(metadata) if !metadata.is_dir() => {
            return refuse("is no directory; --partition writes into one".to_owned());
        }
        Ok(_) => {}
    }
    let entries = list_entries(path)?;
    if entries.is_empty() {
        return Ok(());
    }
    if !is_forced {
        return refuse("exists and is not empty; --force replaces the export in it".to_owned());
    }
    for folder in entries {
        let files = match is_partition(&folder) && folder.is_dir() && !folder.is_symlink() {
            true => list_entries(&folder)?,
            false => vec![folder],
        };
        if let Some(other) = files.iter().find(|file| !is_part(file)) {
            return refuse(format!("has something other than an export: {}", other.display()));
        }
    }
    Ok(())
}

fn list_entries(path: &Path) -> Result<Vec<PathBuf>, CommandFailure> {
    let entries = fs::read_dir(path).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let mut paths: Vec<PathBuf> =
        entries.map_err(|e| file_failure(path, e))?.iter().map(fs::DirEntry::path).collect();
    paths.sort();
    Ok(paths)
}

fn is_partition(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    ["date=", "symbol="].iter().any(|key| name.starts_with(key))
}

/// Returns whether a path is a file of an export: `symbol=VOD/part-0.parquet`.
fn is_part(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_named = ["parquet", "arrows", "csv"].iter().any(|ending| name == format!("part-0.{ending}"));
    is_named && path.parent().is_some_and(is_partition) && path.is_file()
}

/// Returns a value as a part of a path, as Hive writes it: bytes that a path or a shell takes for something else are `%` and two
/// hexadecimal digits. No two values are alike, and none is that of rows without a value.
fn escape_value(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for (i, c) in value.char_indices() {
        let is_reserved = c.is_control() || RESERVED.contains(c) || (i == 0 && value == NO_VALUE);
        if is_reserved {
            c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| _ = write!(escaped, "%{byte:02X}"));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// The value of rows without one, by which readers know them.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";
/// The characters that Hive escapes beside those that cannot be printed.
const RESERVED: &str = "\"#%'*/:=?\\{}[]^";
/// The instrument of rows without one.
const NO_INSTRUMENT: u32 = 0;
/// Files of symbols that are open together, beside that of rows without a symbol.
const OPEN_FILES_MAX: usize = 64;
/// Bytes of row groups that all open files may have in memory together.
const OPEN_BYTES_MAX: usize = 256 << 20;
/// Rows of a batch of columns in one of many open files.
const PART_BATCH_ROWS: usize = 1 << 12;
/// Rows of a batch of columns in the only open file.
const FILE_BATCH_ROWS: usize = 1 << 16;
/// Bytes of a name in the file systems of Linux.
const FILE_NAME_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    /// A symbol could choose the file of another one, or one outside the directory.
    #[test]
    fn no_symbol_leaves_its_directory() {
        for (value, escaped) in [
            ("VOD", "VOD"),
            ("../x", "..%2Fx"),
            ("a/b", "a%2Fb"),
            ("a%2Fb", "a%252Fb"),
            ("A B%", "A B%25"),
            ("", ""),
            ("..", ".."),
            ("x\ny\u{7f}\u{9b}", "x%0Ay%7F%C2%9B"),
            ("é", "é"),
            (NO_VALUE, "%5F_HIVE_DEFAULT_PARTITION__"),
            ("k=v:{1}", "k%3Dv%3A%7B1%7D"),
        ] {
            assert_eq!(escape_value(value), escaped);
        }
    }
}
