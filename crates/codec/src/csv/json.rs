//! Rows as JSON Lines: what `unitape decode csv --json` prints.
//!
//! ```text
//! {"file":"a","n":0,"offset":0,"type":"header","fields":{"columns":["Time","Symbol","Trade Price"]}}
//! {"file":"a","n":1,"offset":24,"type":"row","fields":{"Time":"2016-10-24T13:30:00.417837Z","Symbol":"A",…}}
//! {"file":"a","n":2,"offset":48,"length":9,"error":{"code":"ragged_row","message":"…"}}
//! {"file":"a","n":3,"offset":58,"type":"trailer","fields":{"mark":"END","date":"20161024","records":"2"}}
//! ```
//!
//! One object for the header, each row, good or bad, and the trailer, in order; values as for fixed-width
//! records, empty ones are left out. A trailer whose count is not met is bad itself. The schema is
//! `docs/schema/decode-csv.schema.json`.

use super::decode::{CsvRowDecoder, CsvRowKind};
use super::fault::CsvFault;
use super::layout::CsvLayout;
use crate::fixed::{ColumnValue, Error, FixedDecodeSummary};
use std::convert::Infallible;
use std::io::{Read, Write};
use std::sync::Arc;
use unitape_base::json::{number, string, value};
use unitape_base::{DecodeInput, FrameStep, InputBuffer, JsonLines, LineDecoder, Span, decode_lines};

/// Decodes all of `input` to JSON Lines on `out`; the label may contain the file's day.
///
/// # Errors
/// Fails if the input cannot be read or the output cannot be written. Items decoded before are written.
pub fn decode_json(
    input: &mut dyn Read,
    file_label: &str,
    layout: &Arc<CsvLayout>,
    out: &mut dyn Write,
) -> Result<FixedDecodeSummary, Error> {
    let mut rows = CsvRowDecoder::new(layout.clone());
    rows.set_name(file_label.rsplit(['/', '\\']).next().unwrap_or_default());
    let mut decoder = CsvLineDecoder {
        rows,
        row_count: 0,
        header_due: layout.has_header(),
        writer: CsvJsonWriter {
            json_lines: JsonLines::new(file_label),
            scratch: Vec::new(),
            summary: FixedDecodeSummary::default(),
        },
    };
    let bytes = decode_lines(InputBuffer::new(input, file_label), &mut decoder, out)?;
    Ok(FixedDecodeSummary { bytes, errors: decoder.writer.json_lines.errors, ..decoder.writer.summary })
}

/// Reads rows, and writes their lines.
struct CsvLineDecoder {
    rows: CsvRowDecoder,
    /// Rows but the header and the trailer, good and bad.
    row_count: u64,
    header_due: bool,
    writer: CsvJsonWriter,
}

impl LineDecoder for CsvLineDecoder {
    type Fault = Infallible;

    fn step(&mut self, input: DecodeInput<'_>) -> FrameStep<Infallible> {
        let Self { rows, row_count, header_due, writer } = self;
        rows.next(input.bytes, input.offset, input.base, input.eof).map(|row| {
            match row.content {
                Ok(CsvRowKind::Header) => {
                    writer.header(input, row.span, rows);
                    *header_due = false;
                }
                Ok(CsvRowKind::Row) => {
                    writer.write_row(input, row.span, rows);
                    *row_count += 1;
                }
                Ok(CsvRowKind::Trailer(count)) => match count.filter(|stated| stated != row_count) {
                    Some(stated) => {
                        writer.fault(input, row.span, CsvFault::count(stated, *row_count), rows);
                    }
                    None => writer.write_trailer(input, row.span, rows),
                },
                Err(fault) => {
                    writer.fault(input, row.span, fault, rows);
                    // A bad row in the header's place is the header.
                    *row_count += u64::from(!*header_due);
                    *header_due = false;
                }
            }
            row.with_terminator()
        })
    }

    fn lines(&mut self) -> &mut JsonLines {
        &mut self.writer.json_lines
    }
}

/// The lines of one file.
struct CsvJsonWriter {
    json_lines: JsonLines,
    scratch: Vec<u8>,
    summary: FixedDecodeSummary,
}

impl CsvJsonWriter {
    fn header(&mut self, input: DecodeInput<'_>, span: Span, decoder: &CsvRowDecoder) {
        self.json_lines.begin(input.file_offset(span.start));
        self.json_lines.pending_lines.extend_from_slice(b",\"type\":\"header\",\"fields\":{\"columns\":[");
        for (i, name) in decoder.names().iter().enumerate() {
            if i > 0 {
                self.json_lines.pending_lines.push(b',');
            }
            string(&mut self.json_lines.pending_lines, name);
        }
        self.json_lines.pending_lines.extend_from_slice(b"]}}\n");
        self.summary.records += 1;
    }

    fn write_row(&mut self, input: DecodeInput<'_>, span: Span, decoder: &CsvRowDecoder) {
        let bytes = decoder.record(span.slice(input.bytes));
        self.json_lines.begin(input.file_offset(span.start));
        let out = &mut self.json_lines.pending_lines;
        out.extend_from_slice(b",\"type\":\"row\",\"fields\":{");
        let mut needs_comma = false;
        for (column, column_value) in decoder.layout().row.columns().iter().zip(decoder.values()) {
            if *column_value == ColumnValue::None || !column.is_output() {
                continue;
            }
            write_key(out, &mut needs_comma, column.name());
            match *column_value {
                ColumnValue::Text { start, end } if !column.collapses_blanks() => {
                    value(out, &bytes[start as usize..end as usize]);
                }
                ColumnValue::Int(n) => {
                    if n < 0 {
                        out.push(b'-');
                    }
                    number(out, n.unsigned_abs());
                }
                ColumnValue::Flag(yes) => out.extend_from_slice(if yes { b"true" } else { b"false" }),
                other => {
                    self.scratch.clear();
                    other.write(bytes, column.collapses_blanks(), &mut self.scratch);
                    value(out, &self.scratch);
                }
            }
        }
        for (name, text) in decoder.extra_values(bytes) {
            write_key(out, &mut needs_comma, name);
            value(out, text);
        }
        out.extend_from_slice(b"}}\n");
        self.summary.records += 1;
    }

    fn write_trailer(&mut self, input: DecodeInput<'_>, span: Span, decoder: &CsvRowDecoder) {
        let bytes = decoder.record(span.slice(input.bytes));
        self.json_lines.begin(input.file_offset(span.start));
        let out = &mut self.json_lines.pending_lines;
        out.extend_from_slice(b",\"type\":\"trailer\",\"fields\":{");
        let mut needs_comma = false;
        for (name, text) in decoder.trailer(bytes) {
            write_key(out, &mut needs_comma, name);
            value(out, text);
        }
        out.extend_from_slice(b"}}\n");
        self.summary.records += 1;
    }

    fn fault(&mut self, input: DecodeInput<'_>, span: Span, fault: CsvFault, decoder: &CsvRowDecoder) {
        let message = decoder.explain(&fault, span.slice(input.bytes));
        self.json_lines.fault(input.file_offset(span.start), span.len(), fault.code.as_str(), &message);
    }
}

fn write_key(out: &mut Vec<u8>, needs_comma: &mut bool, name: &str) {
    if *needs_comma {
        out.push(b',');
    }
    *needs_comma = true;
    string(out, name);
    out.push(b':');
}
