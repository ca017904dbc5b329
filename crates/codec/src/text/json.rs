//! Messages of text as JSON Lines: what `unitape decode jsonl --json` and its like print.
//!
//! ```text
//! {"file":"a.jsonl","n":0,"offset":0,"type":"object","fields":{"id":"7","author.name":"Ann","to[]":["Bob","Cy"]}}
//! {"file":"a.jsonl","n":1,"offset":62,"length":9,"error":{"code":"bad_json","message":"…"}}
//! ```
//!
//! One object for each message and each stretch that is none, in order. A value is a string, whatever it was: numbers
//! as they were written. Nothing (`null`, `[]`, `{}`) is `null`. A path that is there more than once is an array, at the
//! place of its first occurrence, and so is every path of a list. The schema of JSON Lines is
//! `docs/schema/decode-jsonl.schema.json`.
//!
//! This is the only part of the module that reads and writes, through the reader and writer of the caller.

use super::{HEAD_BYTES, PathValueKind, PathValues, TextFault, TextMessage, TextMessageDecoder};
use std::io::{Read, Write};
use unitape_base::json::string;
use unitape_base::{DecodeInput, Error, FrameStep, InputBuffer, JsonLines, LineDecoder, decode_lines};

/// The counts of a decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextSummary {
    /// Good messages.
    pub messages: u64,
    /// Faulty messages and garbage.
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
    decoder: &mut impl TextMessageDecoder,
    out: &mut dyn Write,
) -> Result<TextSummary, Error> {
    let mut source = InputBuffer::new(input, file_label);
    // No more than it takes: a line that came is read before the next one comes.
    while source.unread_bytes < HEAD_BYTES && !source.eof && source.bytes().trim_ascii_start().len() < 4 {
        source.read(0, source.unread_bytes + 1)?;
    }
    decoder.inspect_head(&source.bytes()[..source.unread_bytes.min(HEAD_BYTES)]);
    let writer = TextJsonWriter { lines: JsonLines::new(file_label), ..TextJsonWriter::default() };
    let mut decoder = TextLineDecoder { decoder, path_values: PathValues::default(), writer };
    let bytes = decode_lines(source, &mut decoder, out)?;
    Ok(TextSummary { bytes, errors: decoder.writer.lines.errors, ..decoder.writer.summary })
}

/// Reads messages, and writes their lines.
struct TextLineDecoder<'d, D> {
    decoder: &'d mut D,
    path_values: PathValues,
    writer: TextJsonWriter,
}

impl<D: TextMessageDecoder> LineDecoder for TextLineDecoder<'_, D> {
    type Fault = TextFault;

    fn step(&mut self, input: DecodeInput<'_>) -> FrameStep<TextFault> {
        self.decoder.next(input.bytes, input.offset, input.eof, &mut self.path_values).map(|message| {
            self.writer.message(input, &message, &self.path_values);
            message.span
        })
    }

    fn lines(&mut self) -> &mut JsonLines {
        &mut self.writer.lines
    }
}

/// The lines of one file.
#[derive(Default)]
struct TextJsonWriter {
    lines: JsonLines,
    /// Values in order of path, then of place.
    path_order: Vec<(u32, u32)>,
    /// For each value, where its path's values begin in `path_order`; `AGAIN` for all but the first.
    first_by_value: Vec<u32>,
    summary: TextSummary,
}

const AGAIN: u32 = u32::MAX;

impl TextJsonWriter {
    fn message(&mut self, input: DecodeInput<'_>, message: &TextMessage, leaves: &PathValues) {
        self.lines.begin(input.file_offset(message.span.start));
        self.push_bytes(b",\"type\":");
        string(&mut self.lines.pending_lines, message.kind);
        if let Some(note) = leaves.charset_note() {
            self.push_bytes(b",\"encoding\":");
            string(&mut self.lines.pending_lines, note);
        }
        self.push_bytes(b",\"fields\":{");
        let values = leaves.as_slice();
        self.path_order.clear();
        self.path_order.extend(values.iter().enumerate().map(|(n, leaf)| (leaf.path, n as u32)));
        self.path_order.sort_unstable();
        self.first_by_value.clear();
        self.first_by_value.resize(values.len(), AGAIN);
        for (order_index, (path, n)) in self.path_order.iter().enumerate() {
            if order_index == 0 || self.path_order[order_index - 1].0 != *path {
                self.first_by_value[*n as usize] = order_index as u32;
            }
        }
        let mut needs_comma = false;
        for n in 0..values.len() {
            if self.first_by_value[n] == AGAIN {
                continue;
            }
            if needs_comma {
                self.push_bytes(b",");
            }
            needs_comma = true;
            let number = values[n].path;
            let path = leaves.path(number);
            string(&mut self.lines.pending_lines, path);
            self.push_bytes(b":");
            let group_start = self.first_by_value[n] as usize;
            let count = self.path_order[group_start..].iter().take_while(|(p, _)| *p == number).count();
            let is_list = count > 1 || path.contains("[]");
            if is_list {
                self.push_bytes(b"[");
            }
            for i in group_start..group_start + count {
                if i > group_start {
                    self.push_bytes(b",");
                }
                let leaf = &values[self.path_order[i].1 as usize];
                match leaf.kind {
                    PathValueKind::Nothing | PathValueKind::EmptyList => self.push_bytes(b"null"),
                    _ => string(&mut self.lines.pending_lines, leaves.text(leaf)),
                }
            }
            if is_list {
                self.push_bytes(b"]");
            }
        }
        self.push_bytes(b"}}\n");
        self.summary.messages += 1;
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        self.lines.pending_lines.extend_from_slice(bytes);
    }
}
