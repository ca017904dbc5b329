//! Fixed-width records as JSON Lines: what `unitape decode fixed --json` prints.
//!
//! ```text
//! {"file":"a","n":1,"offset":98,"type":"bbo","fields":{"time":"2014-02-06T14:31:09.362Z","symbol":"AOCHDQ",…}}
//! {"file":"a","n":2,"offset":196,"length":40,"error":{"code":"short_record","message":"…"}}
//! ```
//!
//! One object for each record, good or bad, in order; `type` is the record's name. Text is a string (`{"hex":…}`
//! where it is not UTF-8), whole numbers are numbers, decimals strings in canonical form, flags true and false,
//! dates and times strings as ISO 8601 has them; an instant is in UTC. A blank column is left out, as are filler
//! and literals. A header whose count is not met becomes an object after the last record, with length 0. The
//! schema is `docs/schema/decode-fixed.schema.json`.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::sync::Arc;

use super::decode::{FixedWidthDecoder, NextRecord};
use super::error::Error;
use super::fault::RecordFault;
use super::layout::FixedWidthLayout;
use super::text::RecordRole;
use super::value::ColumnValue;
use unitape_base::json::{number, value};
use unitape_base::{DecodeInput, FrameStep, InputBuffer, JsonLines, LineDecoder, Span, decode_lines};

/// The counts of a decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FixedDecodeSummary {
    /// Good records.
    pub records: u64,
    /// Bad records, and a count that is not met.
    pub errors: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// Decodes all of `input` to JSON Lines on `out`.
///
/// # Errors
/// Fails if the input cannot be read or the output cannot be written. Items decoded before are written.
pub fn decode_json(
    input: &mut dyn Read,
    file_label: &str,
    layout: &Arc<FixedWidthLayout>,
    out: &mut dyn Write,
) -> Result<FixedDecodeSummary, Error> {
    let mut decoder = RecordLineDecoder {
        layout,
        records: FixedWidthDecoder::new(layout.clone()),
        record_count: 0,
        writer: RecordJsonWriter {
            lines: JsonLines::new(file_label),
            scratch: Vec::new(),
            summary: FixedDecodeSummary::default(),
        },
    };
    let bytes = decode_lines(InputBuffer::new(input, file_label), &mut decoder, out)?;
    Ok(FixedDecodeSummary { bytes, errors: decoder.writer.lines.errors, ..decoder.writer.summary })
}

/// Reads records, and writes their lines.
struct RecordLineDecoder<'l> {
    layout: &'l FixedWidthLayout,
    records: FixedWidthDecoder,
    /// Records but the header and the trailer, good and bad.
    record_count: u64,
    writer: RecordJsonWriter,
}

impl LineDecoder for RecordLineDecoder<'_> {
    type Fault = Infallible;

    fn step(&mut self, input: DecodeInput<'_>) -> FrameStep<Infallible> {
        let Self { layout, records, record_count, writer } = self;
        let next_record = records.next(input.bytes, input.offset, input.base, input.eof);
        if next_record == NextRecord::End
            && let Some(stated) = records.header_count().filter(|stated| stated != record_count)
        {
            let end_span = Span { start: input.bytes.len(), end: input.bytes.len() };
            writer.fault(input, end_span, RecordFault::count(stated, *record_count), layout);
        }
        next_record.map(|line| {
            match line.content {
                Ok(kind) => {
                    match records.trailer_count(kind).filter(|stated| stated != record_count) {
                        Some(stated) => {
                            writer.fault(input, line.span, RecordFault::count(stated, *record_count), layout);
                        }
                        None => writer.write_record(input, line.span, kind, records),
                    }
                    let role = layout.records()[usize::from(kind)].role();
                    *record_count += u64::from(role == RecordRole::Data);
                }
                Err(fault) => {
                    writer.fault(input, line.span, fault, layout);
                    // A bad record in the header's place is the header.
                    let is_first = input.file_offset(line.span.start) == 0;
                    *record_count += u64::from(layout.header.is_none() || !is_first);
                }
            }
            line.with_terminator()
        })
    }

    fn lines(&mut self) -> &mut JsonLines {
        &mut self.writer.lines
    }
}

/// The lines of one file.
struct RecordJsonWriter {
    lines: JsonLines,
    scratch: Vec<u8>,
    summary: FixedDecodeSummary,
}

impl RecordJsonWriter {
    fn write_record(&mut self, input: DecodeInput<'_>, span: Span, kind: u16, decoder: &FixedWidthDecoder) {
        let record = &decoder.layout().records()[usize::from(kind)];
        let bytes = decoder.record(span.slice(input.bytes));
        self.lines.begin(input.file_offset(span.start));
        let out = &mut self.lines.pending_lines;
        out.extend_from_slice(b",\"type\":\"");
        out.extend_from_slice(record.name().as_bytes());
        out.extend_from_slice(b"\",\"fields\":{");
        let mut needs_comma = false;
        for (column, column_value) in record.columns().iter().zip(decoder.values()) {
            if *column_value == ColumnValue::None || !column.is_output() {
                continue;
            }
            if needs_comma {
                out.push(b',');
            }
            needs_comma = true;
            out.push(b'"');
            out.extend_from_slice(column.name().as_bytes());
            out.extend_from_slice(b"\":");
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
        out.extend_from_slice(b"}}\n");
        self.summary.records += 1;
    }

    fn fault(&mut self, input: DecodeInput<'_>, span: Span, fault: RecordFault, layout: &FixedWidthLayout) {
        let message = fault.text(layout, span.slice(input.bytes));
        self.lines.fault(input.file_offset(span.start), span.len(), fault.code.as_str(), &message);
    }
}
