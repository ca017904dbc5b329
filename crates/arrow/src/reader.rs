//! The rows of a tape as batches, up to an end that is fixed when reading begins.

use crate::{BatchOptions, Error, RowBatchBuilder};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use unitape_model::{Position, RowSchema};
use unitape_query::address::TapeRangeBound;
use unitape_query::follow::TapeRange;
use unitape_query::{CursorOutcome, EventCursor, EventSelection, Selected};
use unitape_tape::{ReadOptions, TimeRange, UnverifiedBytes};

/// Which rows of a tape.
#[derive(Clone, Debug)]
pub struct RowQuery {
    /// The schema.
    pub schema: RowSchema,
    /// Only rows of these instruments; `None` for all. An empty list selects no row.
    pub symbols: Option<Vec<String>>,
    /// Only rows of these event times.
    pub times: Option<TimeRange>,
    /// The number of rows at most.
    pub limit: Option<u64>,
    /// The end of the tape: nothing from this position on is read. `None` for the end that the reader comes to.
    pub end: Option<Position>,
}

impl RowQuery {
    /// Selects all rows of a schema.
    pub fn new(schema: RowSchema) -> Self {
        Self { schema, symbols: None, times: None, limit: None, end: None }
    }

    fn selection(&self) -> EventSelection {
        let is_empty = self.symbols.as_ref().is_some_and(Vec::is_empty) || self.end == Some(Position(0));
        // A bound includes its frame, and a frame has more than one byte.
        let end_bound = self
            .end
            .and_then(|end| end.0.checked_sub(1))
            .map(|last| TapeRangeBound::Position(Position(last)));
        EventSelection {
            range: TapeRange { from: None, to: end_bound, times: self.times },
            kinds: self.schema.kinds().to_vec(),
            instruments: self.symbols.clone().unwrap_or_default(),
            limit: if is_empty { Some(0) } else { self.limit },
            ..EventSelection::default()
        }
    }
}

/// A step of a reader.
#[derive(Debug)]
#[must_use]
pub enum ReadStep {
    /// The next rows.
    Batch(RecordBatch),
    /// As many frames were read as the caller allowed. The next call continues.
    Paused,
    /// There are no more rows.
    End,
}

/// A reader of rows.
///
/// Damage is an error after the rows before it, and the reader gives nothing more.
#[derive(Debug)]
pub struct RowReader {
    cursor: EventCursor,
    builder: RowBatchBuilder,
    schema: RowSchema,
    options: BatchOptions,
    end: Option<Position>,
    /// An error that comes after the rows before it.
    failure: Option<Error>,
    is_done: bool,
}

impl RowReader {
    /// Begins at the oldest frame of the tape in `dir`.
    ///
    /// # Errors
    /// Fails if the tape or its log of definitions cannot be read.
    pub fn open(dir: &Path, query: RowQuery, options: BatchOptions) -> Result<Self, Error> {
        let cursor = EventCursor::open(dir, query.selection(), ReadOptions::default())?;
        let builder = RowBatchBuilder::new(query.schema, options);
        Ok(Self {
            cursor,
            builder,
            schema: query.schema,
            options,
            end: query.end,
            failure: None,
            is_done: false,
        })
    }

    /// Reads until a batch is full, or `frames` frames at most.
    ///
    /// # Errors
    /// Fails if the tape is damaged, was cut back or cannot be read, or if a size does not fit; the rows before it were given.
    pub fn step(&mut self, frames: u64) -> Result<ReadStep, Error> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if self.is_done {
            return Ok(ReadStep::End);
        }
        // What a panic leaves half done is not used again.
        let result = catch_unwind(AssertUnwindSafe(|| self.fill_batch(frames)));
        let result = result.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            self.builder = RowBatchBuilder::new(self.schema, self.options);
            Err(Error::Panic(text.unwrap_or_default()))
        });
        match result {
            Ok(FillOutcome::Paused) => Ok(ReadStep::Paused),
            Ok(FillOutcome::Full) => self.builder.finish().map(ReadStep::Batch),
            Ok(FillOutcome::End) => {
                self.is_done = true;
                if self.builder.rows() == 0 {
                    Ok(ReadStep::End)
                } else {
                    self.builder.finish().map(ReadStep::Batch)
                }
            }
            Err(error) => {
                self.is_done = true;
                if self.builder.rows() == 0 {
                    return Err(error);
                }
                self.failure = Some(error);
                self.builder.finish().map(ReadStep::Batch)
            }
        }
    }

    /// Reads the next batch; `None` at the end.
    ///
    /// # Errors
    /// As [`RowReader::step`].
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        loop {
            match self.step(u64::MAX)? {
                ReadStep::Batch(batch) => return Ok(Some(batch)),
                ReadStep::Paused => {}
                ReadStep::End => return Ok(None),
            }
        }
    }

    /// Returns the Arrow schema of the batches.
    pub fn arrow_schema(&self) -> SchemaRef {
        self.builder.arrow_schema().clone()
    }

    /// Returns the bytes that should have a checksum and could not be compared with one.
    pub fn unverified(&self) -> &UnverifiedBytes {
        self.cursor.reader().unverified()
    }

    fn fill_batch(&mut self, mut frames: u64) -> Result<FillOutcome, Error> {
        let builder = &mut self.builder;
        loop {
            let mut pushed = Ok(());
            let outcome = self.cursor.next_within(&mut frames, |address, selected| {
                if let Selected::Event(event, names) = selected {
                    pushed = builder.push(address, &event, names.dictionary());
                }
            })?;
            pushed?;
            match outcome {
                CursorOutcome::Given if builder.is_full() => return Ok(FillOutcome::Full),
                CursorOutcome::Given => {}
                CursorOutcome::Paused => return Ok(FillOutcome::Paused),
                CursorOutcome::Done => return Ok(FillOutcome::End),
                CursorOutcome::AtEnd => {
                    let current_end = self.cursor.reader().position();
                    return match self.end {
                        Some(end) if current_end < end => Err(Error::Shortened { current_end, end }),
                        _ => Ok(FillOutcome::End),
                    };
                }
                CursorOutcome::Rewound { from, to } => return Err(Error::Rewound { from, to }),
            }
        }
    }
}

/// The outcome of filling a batch.
enum FillOutcome {
    Full,
    Paused,
    End,
}

impl Iterator for RowReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl RecordBatchReader for RowReader {
    fn schema(&self) -> SchemaRef {
        self.arrow_schema()
    }
}
