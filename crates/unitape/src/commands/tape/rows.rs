//! `tape cat --schema`: the events of one schema as rows.

use super::{CatArgs, CatOutput, print_rewind};
use crate::output::{CommandFailure, Destination, RowFormat, RowLines, note, refuse_name, refuse_terminal};
use std::io::Write;
use unitape_arrow::{BatchOptions, IpcEncoder, MisfitAction, RowBatchBuilder, SizeType};
use unitape_model::{ClassSet, EventRow, Position, RowSchema};
use unitape_query::Selected;
use unitape_query::address::EventAddress;

/// Reads the option `--schema`.
///
/// # Errors
/// Fails if there is no such schema, or if there are several.
pub fn schema(args: &CatArgs) -> Result<Option<RowSchema>, CommandFailure> {
    let name = match &args.select.schema[..] {
        [] => return Ok(None),
        [name] => name,
        _ => return Err(CommandFailure::Usage("rows are of one schema: give --schema once".to_owned())),
    };
    let refuse = || refuse_name(name, "schema", "schemas", RowSchema::ALL.map(RowSchema::name));
    RowSchema::from_name(name).map(Some).ok_or_else(refuse)
}

/// Refuses to write the bytes of `--arrow` to a terminal.
///
/// # Errors
/// Fails if stdout is a terminal and no file is named.
pub fn check_terminal(args: &CatArgs) -> Result<(), CommandFailure> {
    if args.arrow { refuse_terminal("--arrow", args.output.file.as_deref()) } else { Ok(()) }
}

/// Rows as lines: JSON, CSV or a table.
pub struct RowText {
    lines: RowLines,
    line_text: String,
    destination: Destination,
}

impl RowText {
    /// Begins the output.
    pub fn new(args: &CatArgs, schema: RowSchema, out: Destination) -> Self {
        let format = RowFormat::from_options(args.output.json, args.output.csv);
        let mut lines = RowLines::new(format, schema, ClassSet::MARKET);
        let mut line = String::new();
        lines.begin(&mut line);
        Self { lines, line_text: line, destination: out }
    }
}

impl CatOutput for RowText {
    fn add(&mut self, _: EventAddress, selected: Selected<'_>) {
        let Selected::Event(event, names) = selected else { return };
        let row = EventRow { event, names: names.dictionary() };
        self.lines.put_row(&mut self.line_text, |column| row.value(column));
    }

    fn write(&mut self) -> Result<(), CommandFailure> {
        self.destination.write_all(self.line_text.as_bytes())?;
        self.line_text.clear();
        Ok(())
    }

    fn flush(&mut self) -> Result<(), CommandFailure> {
        self.write()?;
        Ok(self.destination.flush()?)
    }

    fn rewound(&mut self, from: Position, to: Position) -> Result<(), CommandFailure> {
        print_rewind(self.lines.format == RowFormat::Json, from, to, &mut self.destination)
    }

    fn finish(mut self) -> Result<bool, CommandFailure> {
        self.write()?;
        self.destination.finish()?;
        Ok(true)
    }
}

/// Rows as an Arrow IPC stream.
pub struct RowStream {
    builder: RowBatchBuilder,
    encoder: IpcEncoder,
    destination: Destination,
    failure: Option<unitape_arrow::Error>,
}

impl RowStream {
    /// Begins the stream.
    ///
    /// # Errors
    /// Fails if Arrow cannot encode the schema.
    pub fn new(schema: RowSchema, out: Destination) -> Result<Self, CommandFailure> {
        let options =
            BatchOptions { sizes: SizeType::Wide, misfit: MisfitAction::Null, ..BatchOptions::default() };
        let builder = RowBatchBuilder::new(schema, options);
        let encoder = IpcEncoder::new(builder.arrow_schema())?;
        Ok(Self { builder, encoder, destination: out, failure: None })
    }

    /// Writes the rows so far as a batch.
    fn write_batch(&mut self) -> Result<(), CommandFailure> {
        if self.builder.rows() > 0 {
            let batch = self.builder.finish()?;
            self.encoder.encode(&batch)?;
        }
        Ok(self.destination.write_all(&self.encoder.take_bytes())?)
    }
}

impl CatOutput for RowStream {
    fn add(&mut self, address: EventAddress, selected: Selected<'_>) {
        if let Selected::Event(event, names) = selected {
            self.failure = self.builder.push(address, &event, names.dictionary()).err();
        }
    }

    fn write(&mut self) -> Result<(), CommandFailure> {
        if let Some(failure) = self.failure.take() {
            return Err(failure.into());
        }
        if self.builder.is_full() { self.write_batch() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), CommandFailure> {
        self.write_batch()?;
        Ok(self.destination.flush()?)
    }

    fn rewound(&mut self, from: Position, to: Position) -> Result<(), CommandFailure> {
        self.builder.forget_ids();
        print_rewind(false, from, to, &mut self.destination)
    }

    fn finish(mut self) -> Result<bool, CommandFailure> {
        self.write_batch()?;
        self.encoder.finish()?;
        self.destination.write_all(&self.encoder.take_bytes())?;
        self.destination.finish()?;
        let misfits = self.builder.misfits();
        if misfits > 0 {
            note!(
                "unitape: sizes that do not fit decimal(38,18) and are null: {misfits}; --json prints them"
            );
        }
        Ok(misfits == 0)
    }
}
