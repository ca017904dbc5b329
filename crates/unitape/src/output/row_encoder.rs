//! Rows in the form that a command is asked for, as bytes.

use super::{CommandFailure, RowFormat, RowLines, grouped, note};
use std::io::{IsTerminal, Write};
use std::path::Path;
use unitape_arrow::{
    BatchOptions, IpcEncoder, MisfitAction, ParquetEncoder, RowBatchBuilder, SizeType, describe_schema,
};
use unitape_model::{ClassSet, EventRow, Position, RowSchema};
use unitape_query::address::EventAddress;

/// The form of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowForm {
    /// Text, a row a line.
    Lines(RowFormat),
    /// Columns, in bytes that a terminal cannot show.
    Columns(ColumnFormat),
}

/// A format of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnFormat {
    /// A Parquet file.
    Parquet,
    /// An Arrow IPC stream.
    Arrow,
}

impl ColumnFormat {
    /// Returns the format that the options `--parquet` and `--arrow` choose.
    pub fn from_options(parquet: bool, arrow: bool) -> Option<Self> {
        match (parquet, arrow) {
            (true, _) => Some(Self::Parquet),
            (_, true) => Some(Self::Arrow),
            _ => None,
        }
    }

    /// Returns the option that chooses it.
    pub fn option(self) -> &'static str {
        match self {
            Self::Parquet => "--parquet",
            Self::Arrow => "--arrow",
        }
    }
}

/// Refuses to write the bytes of `option` to a terminal.
///
/// # Errors
/// Fails if stdout is a terminal and no file is named.
pub fn refuse_terminal(option: &str, file: Option<&Path>) -> Result<(), CommandFailure> {
    if file.is_none() && std::io::stdout().is_terminal() {
        return Err(CommandFailure::Usage(format!(
            "{option} writes bytes, which a terminal cannot show: name a file with -o, or use a pipe"
        )));
    }
    Ok(())
}

/// Prints on stderr how many values of a column format are null because they do not fit. Does nothing if there are none.
pub fn note_misfits(nulls: u64) {
    if nulls > 0 {
        note!(
            "unitape: values that do not fit decimal(38,18) and are null: {}; --json and --csv have them",
            grouped(nulls)
        );
    }
}

/// The rows of one output.
#[derive(Clone, Copy, Debug)]
pub struct RowOutput<'a> {
    /// The form.
    pub form: RowForm,
    /// The schema.
    pub schema: RowSchema,
    /// The classes of the columns.
    pub classes: ClassSet,
    /// Keys and values for the schema of columns.
    pub metadata: &'a [(String, String)],
    /// Rows of a batch of columns at most.
    pub batch_rows: usize,
}

/// An encoder of the rows of one output.
#[derive(Debug)]
pub enum RowEncoder {
    /// Of lines.
    Lines(LineEncoder),
    /// Of columns.
    Columns(Box<ColumnEncoder>),
}

/// Lines that are not written yet.
#[derive(Debug)]
pub struct LineEncoder {
    lines: RowLines,
    line_text: String,
}

/// Columns that are not written yet.
#[derive(Debug)]
pub struct ColumnEncoder {
    builder: RowBatchBuilder,
    stream: ColumnStream,
}

#[derive(Debug)]
enum ColumnStream {
    Parquet(ParquetEncoder),
    Arrow(IpcEncoder),
}

impl RowEncoder {
    /// Begins an output: with its header, where the form has one.
    ///
    /// # Errors
    /// Fails if the format has no type for a column.
    pub fn new(output: &RowOutput<'_>) -> Result<Self, CommandFailure> {
        let RowOutput { form, schema, classes, metadata, batch_rows } = *output;
        let format = match form {
            RowForm::Lines(format) => {
                let (mut lines, mut line_text) = (RowLines::new(format, schema, classes), String::new());
                lines.begin(&mut line_text);
                return Ok(Self::Lines(LineEncoder { lines, line_text }));
            }
            RowForm::Columns(format) => format,
        };
        let options = BatchOptions {
            sizes: SizeType::Wide,
            misfit: MisfitAction::Null,
            classes,
            rows: batch_rows,
            ..BatchOptions::default()
        };
        let builder = RowBatchBuilder::new(schema, options);
        let stream = match format {
            ColumnFormat::Parquet => {
                ColumnStream::Parquet(ParquetEncoder::new(builder.arrow_schema(), metadata)?)
            }
            ColumnFormat::Arrow => {
                let schema = describe_schema(builder.arrow_schema(), metadata);
                ColumnStream::Arrow(IpcEncoder::new(&schema)?)
            }
        };
        Ok(Self::Columns(Box::new(ColumnEncoder { builder, stream })))
    }

    /// Adds a row. Returns whether a batch of columns was encoded before it.
    ///
    /// # Errors
    /// Fails if the rows cannot be encoded.
    pub fn put_row(&mut self, row: &EventRow<'_>) -> Result<bool, CommandFailure> {
        match self {
            Self::Lines(LineEncoder { lines, line_text }) => {
                lines.put_row(line_text, |column| row.value(column));
                Ok(false)
            }
            Self::Columns(columns) => {
                let is_full = columns.builder.is_full();
                if is_full {
                    columns.encode_batch()?;
                }
                // The address is for the error of a value that does not fit, which is null here.
                let address = EventAddress { seq: 0, position: Position(0) };
                columns.builder.push(address, &row.event, row.names)?;
                Ok(is_full)
            }
        }
    }

    /// Encodes all that is left, and the end of the output. [`RowEncoder::write_to`] has to follow.
    ///
    /// # Errors
    /// Fails if the rows cannot be encoded.
    pub fn finish(&mut self) -> Result<(), CommandFailure> {
        if let Self::Columns(columns) = self {
            columns.encode_batch()?;
            match &mut columns.stream {
                ColumnStream::Parquet(encoder) => encoder.finish()?,
                ColumnStream::Arrow(encoder) => encoder.finish()?,
            }
        }
        Ok(())
    }

    /// Writes the bytes since the last call, and returns how many there were.
    ///
    /// # Errors
    /// Fails if the writer refuses them.
    #[inline]
    pub fn write_to(&mut self, out: &mut impl Write) -> Result<u64, CommandFailure> {
        match self {
            Self::Lines(LineEncoder { line_text, .. }) => {
                out.write_all(line_text.as_bytes())?;
                let bytes = line_text.len();
                line_text.clear();
                Ok(bytes as u64)
            }
            Self::Columns(columns) => {
                let encoded = match &mut columns.stream {
                    ColumnStream::Parquet(encoder) => encoder.take_bytes(),
                    ColumnStream::Arrow(encoder) => encoder.take_bytes(),
                };
                out.write_all(&encoded)?;
                Ok(encoded.len() as u64)
            }
        }
    }

    /// Returns the number of values that did not fit their column and are null.
    pub fn nulls(&self) -> u64 {
        match self {
            Self::Lines(_) => 0,
            Self::Columns(columns) => columns.builder.misfits(),
        }
    }

    /// Returns the bytes of memory of rows that are encoded and wait for the end of their row group.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Columns(columns) => match &columns.stream {
                ColumnStream::Parquet(encoder) => encoder.memory_bytes(),
                ColumnStream::Arrow(_) => 0,
            },
            Self::Lines(_) => 0,
        }
    }

    /// Ends the row group, which frees its memory.
    ///
    /// # Errors
    /// Fails if the rows cannot be encoded.
    pub fn end_row_group(&mut self) -> Result<(), CommandFailure> {
        if let Self::Columns(columns) = self
            && let ColumnStream::Parquet(encoder) = &mut columns.stream
        {
            encoder.end_row_group()?;
        }
        Ok(())
    }
}

impl ColumnEncoder {
    /// Encodes the rows so far as a batch.
    fn encode_batch(&mut self) -> Result<(), CommandFailure> {
        if self.builder.rows() > 0 {
            let batch = self.builder.finish()?;
            match &mut self.stream {
                ColumnStream::Parquet(encoder) => encoder.encode(&batch)?,
                ColumnStream::Arrow(encoder) => encoder.encode(&batch)?,
            }
        }
        Ok(())
    }
}
