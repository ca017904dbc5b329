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

use super::decode::{CsvRowDecoder, NextCsvRow};
use super::fault::CsvFault;
use super::layout::CsvLayout;
use crate::fixed::{ColumnValue, Error, FixedDecodeSummary};
use std::io::{Read, Write};
use std::sync::Arc;
use unitape_base::Span;
use unitape_base::json::{head, number, string, value};
use unitape_base::{InputBuffer, READ_BYTES};

/// Decodes all of `input` to JSON Lines on `out`; the label may contain the file's day.
///
/// # Errors
/// If the input cannot be read or the output not be written; what was decoded before is written.
pub fn decode_json(
    input: &mut dyn Read,
    file_label: &str,
    layout: &Arc<CsvLayout>,
    out: &mut dyn Write,
) -> Result<FixedDecodeSummary, Error> {
    let mut source = InputBuffer::new(input, file_label);
    let mut decoder = CsvRowDecoder::new(layout.clone());
    decoder.set_name(file_label.rsplit(['/', '\\']).next().unwrap_or_default());
    let mut lines = CsvJsonWriter {
        head: head(file_label),
        text: Vec::new(),
        scratch: Vec::new(),
        summary: FixedDecodeSummary::default(),
    };
    // Rows but the header and the trailer, good and bad.
    let mut counted = 0u64;
    let mut at = 0;
    // How much more is read when the same place stays undecided: doubled each time, so that a trickle of input
    // does not cost its square.
    let mut patience = 1;
    let mut header_due = layout.has_header();
    let result = loop {
        let next = decoder.next(source.bytes(), at, source.base, source.eof);
        match next {
            NextCsvRow::Header { span, end } => {
                lines.header(&source, span, &decoder);
                (at, patience, header_due) = (end, 1, false);
            }
            NextCsvRow::Row { span, end } => {
                lines.row(&source, span, &decoder);
                (at, patience) = (end, 1);
                counted += 1;
            }
            NextCsvRow::Trailer { span, end, count } => {
                match count.filter(|n| *n != counted) {
                    Some(stated) => lines.fault(&source, span, CsvFault::count(stated, counted), &decoder),
                    None => lines.trailer(&source, span, &decoder),
                }
                (at, patience) = (end, 1);
            }
            NextCsvRow::Bad { span, fault, end } => {
                lines.fault(&source, span, fault, &decoder);
                // A bad row in the header's place is the header.
                counted += u64::from(!header_due);
                (at, patience, header_due) = (end, 1, false);
            }
            NextCsvRow::Incomplete { from, need } => {
                if let Err(error) = lines.flush(out) {
                    break Err(error);
                }
                let wanted = (need - from).max(source.bytes().len() - from + patience);
                patience = (patience * 2).min(READ_BYTES);
                if let Err((offset, source)) = source.fill(from, wanted) {
                    break Err(Error::Read { file: file_label.to_owned(), offset, source });
                }
                at = 0;
                continue;
            }
            NextCsvRow::End => break Ok(()),
        }
        if lines.text.len() >= FLUSH_BYTES
            && let Err(error) = lines.flush(out)
        {
            return Err(error);
        }
    };
    lines.flush(out)?;
    result?;
    lines.summary.bytes = source.base + source.bytes().len() as u64;
    Ok(lines.summary)
}

/// The decoder writes its output at this size, and before it waits for input.
const FLUSH_BYTES: usize = 64 << 10;

/// The lines of one file.
struct CsvJsonWriter {
    head: Vec<u8>,
    text: Vec<u8>,
    scratch: Vec<u8>,
    summary: FixedDecodeSummary,
}

impl CsvJsonWriter {
    fn header(&mut self, source: &InputBuffer<'_>, span: Span, decoder: &CsvRowDecoder) {
        self.start(source, span.start);
        self.text.extend_from_slice(b",\"type\":\"header\",\"fields\":{\"columns\":[");
        for (i, name) in decoder.names().iter().enumerate() {
            if i > 0 {
                self.text.push(b',');
            }
            string(&mut self.text, name);
        }
        self.text.extend_from_slice(b"]}}\n");
        self.summary.records += 1;
    }

    fn row(&mut self, source: &InputBuffer<'_>, span: Span, decoder: &CsvRowDecoder) {
        let bytes = decoder.record(span.slice(source.bytes()));
        self.start(source, span.start);
        let out = &mut self.text;
        out.extend_from_slice(b",\"type\":\"row\",\"fields\":{");
        let mut comma = false;
        for (column, found) in decoder.layout().row.columns().iter().zip(decoder.values()) {
            if *found == ColumnValue::None || !column.is_output() {
                continue;
            }
            key(out, &mut comma, column.name());
            match *found {
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
            key(out, &mut comma, name);
            value(out, text);
        }
        out.extend_from_slice(b"}}\n");
        self.summary.records += 1;
    }

    fn trailer(&mut self, source: &InputBuffer<'_>, span: Span, decoder: &CsvRowDecoder) {
        let bytes = decoder.record(span.slice(source.bytes()));
        self.start(source, span.start);
        let out = &mut self.text;
        out.extend_from_slice(b",\"type\":\"trailer\",\"fields\":{");
        let mut comma = false;
        for (name, text) in decoder.trailer(bytes) {
            key(out, &mut comma, name);
            value(out, text);
        }
        out.extend_from_slice(b"}}\n");
        self.summary.records += 1;
    }

    fn fault(&mut self, source: &InputBuffer<'_>, span: Span, fault: CsvFault, decoder: &CsvRowDecoder) {
        self.start(source, span.start);
        self.text.extend_from_slice(b",\"length\":");
        number(&mut self.text, span.len() as u64);
        self.text.extend_from_slice(b",\"error\":{\"code\":\"");
        self.text.extend_from_slice(fault.code.as_str().as_bytes());
        self.text.extend_from_slice(b"\",\"message\":");
        string(&mut self.text, &decoder.explain(&fault, span.slice(source.bytes())));
        self.text.extend_from_slice(b"}}\n");
        self.summary.errors += 1;
    }

    fn start(&mut self, source: &InputBuffer<'_>, at: usize) {
        self.text.extend_from_slice(&self.head);
        number(&mut self.text, self.summary.records + self.summary.errors);
        self.text.extend_from_slice(b",\"offset\":");
        number(&mut self.text, source.base + at as u64);
    }

    fn flush(&mut self, out: &mut dyn Write) -> Result<(), Error> {
        if self.text.is_empty() {
            return Ok(());
        }
        let written = out.write_all(&self.text).and_then(|()| out.flush());
        self.text.clear();
        written.map_err(|source| Error::Write { source })
    }
}

fn key(out: &mut Vec<u8>, comma: &mut bool, name: &str) {
    if *comma {
        out.push(b',');
    }
    *comma = true;
    string(out, name);
    out.push(b':');
}
