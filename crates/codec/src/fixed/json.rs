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

use std::io::{Read, Write};
use std::sync::Arc;

use super::decode::{FixedWidthDecoder, NextRecord};
use super::error::Error;
use super::fault::RecordFault;
use super::layout::FixedWidthLayout;
use super::text::RecordRole;
use super::value::ColumnValue;
use unitape_base::Span;
use unitape_base::json::{head, number, string, value};
use unitape_base::{InputBuffer, READ_BYTES};

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
/// If the input cannot be read or the output not be written; what was decoded before is written.
pub fn decode_json(
    input: &mut dyn Read,
    file_label: &str,
    layout: &Arc<FixedWidthLayout>,
    out: &mut dyn Write,
) -> Result<FixedDecodeSummary, Error> {
    let mut source = InputBuffer::new(input, file_label);
    let mut decoder = FixedWidthDecoder::new(layout.clone());
    let mut lines = RecordJsonWriter {
        head: head(file_label),
        text: Vec::with_capacity(2 * FLUSH_BYTES),
        scratch: Vec::new(),
        summary: FixedDecodeSummary::default(),
    };
    // Records but the header and the trailer, good and bad.
    let mut counted = 0u64;
    let mut at = 0;
    // How much more is read when the same place stays undecided: doubled each time, so that a trickle of input
    // does not cost its square.
    let mut patience = 1;
    let result = loop {
        match decoder.next(source.bytes(), at, source.base, source.eof) {
            NextRecord::Record { span, kind, end } => {
                let stated = decoder.trailer_count(kind).filter(|n| *n != counted);
                match (stated, layout.records()[usize::from(kind)].role()) {
                    (Some(stated), _) => {
                        lines.fault(&source, span, RecordFault::count(stated, counted), layout)
                    }
                    (None, _) => lines.record(&source, span, kind, &decoder),
                }
                counted += u64::from(layout.records()[usize::from(kind)].role() == RecordRole::Data);
                (at, patience) = (end, 1);
            }
            NextRecord::Bad { span, fault, end } => {
                lines.fault(&source, span, fault, layout);
                // A bad record in the header's place is the header.
                counted += u64::from(layout.header.is_none() || source.base + span.start as u64 > 0);
                (at, patience) = (end, 1);
            }
            NextRecord::Incomplete { from, need } => {
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
            NextRecord::End => {
                if let Some(stated) = decoder.header_count().filter(|n| *n != counted) {
                    let end = Span { start: source.bytes().len(), end: source.bytes().len() };
                    lines.fault(&source, end, RecordFault::count(stated, counted), layout);
                }
                break Ok(());
            }
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
struct RecordJsonWriter {
    head: Vec<u8>,
    text: Vec<u8>,
    scratch: Vec<u8>,
    summary: FixedDecodeSummary,
}

impl RecordJsonWriter {
    fn record(&mut self, source: &InputBuffer<'_>, span: Span, kind: u16, decoder: &FixedWidthDecoder) {
        let record = &decoder.layout().records()[usize::from(kind)];
        let bytes = decoder.record(span.slice(source.bytes()));
        self.start(source, span.start);
        let out = &mut self.text;
        out.extend_from_slice(b",\"type\":\"");
        out.extend_from_slice(record.name().as_bytes());
        out.extend_from_slice(b"\",\"fields\":{");
        let mut comma = false;
        for (column, found) in record.columns().iter().zip(decoder.values()) {
            if *found == ColumnValue::None || !column.is_output() {
                continue;
            }
            if comma {
                out.push(b',');
            }
            comma = true;
            out.push(b'"');
            out.extend_from_slice(column.name().as_bytes());
            out.extend_from_slice(b"\":");
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
        out.extend_from_slice(b"}}\n");
        self.summary.records += 1;
    }

    fn fault(&mut self, source: &InputBuffer<'_>, span: Span, fault: RecordFault, layout: &FixedWidthLayout) {
        self.start(source, span.start);
        self.text.extend_from_slice(b",\"length\":");
        number(&mut self.text, span.len() as u64);
        self.text.extend_from_slice(b",\"error\":{\"code\":\"");
        self.text.extend_from_slice(fault.code.as_str().as_bytes());
        self.text.extend_from_slice(b"\",\"message\":");
        string(&mut self.text, &fault.text(layout, span.slice(source.bytes())));
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
