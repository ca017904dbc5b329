//! SWIFT MT as JSON Lines: what `unitape decode swift --json` prints.
//!
//! ```text
//! {"file":"a.rje","n":0,"offset":0,"type":"MT103","blocks":{"1":{"value":"F01…","parts":{…}},"2":{…},
//!  "3":[{"tag":"108","value":"…"}],"5":[…]},"fields":[{"tag":"32A","value":"190425USD3700,",
//!  "parts":{"date":"2019-04-25","currency":"USD","amount":"3700"}},…]}
//! {"file":"a.rje","n":1,"offset":271,"length":9,"error":{"code":"garbage","message":"…"}}
//! ```
//!
//! One object for each message, each faulty message and each stretch of garbage, in order. Values are strings
//! with `\n` for line ends, `{"hex":"…"}` where the bytes are not UTF-8; amounts and rates are exact decimal
//! strings as many decimals as written; dates are `YYYY-MM-DD`. Where a value is not of its tag's form there is
//! an `error` in the place of its `parts`, and the message is a message all the same. The schema is
//! `docs/schema/decode-swift.schema.json`.
//!
//! This is the only part of the module that reads and writes, through the reader and writer of the caller; it holds a few
//! times the largest message in memory, however long the input is.

use super::fault::{SwiftFault, ValueFault};
use super::frame::{EnvelopeForm, FramedSwiftMessage, SwiftFramer};
use super::header::header;
use super::parts::{self, SubfieldFormat, SwiftComponents};
use super::tokens::{SwiftField, SwiftFieldTokenizer, SwiftMessageType, SwiftTag, sub_blocks};
use super::value::{self, CalendarDay};
use std::io::{Read, Write};
use unitape_base::json::value as text;
use unitape_base::{DecodeInput, Error, FrameStep, InputBuffer, JsonLines, LineDecoder, decode_lines};

/// The counts of a decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SwiftSummary {
    /// Good messages.
    pub messages: u64,
    /// Faulty messages and garbage.
    pub errors: u64,
    /// Values that are not of the form of their tags.
    pub bad_values: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// Decodes all of `input` to JSON Lines on `out`.
///
/// # Errors
/// Fails if the input cannot be read or the output cannot be written. Items decoded before are written.
///
/// ```
/// use unitape_codec::swift_mt::{SwiftFramer, decode_json};
///
/// let mut out = Vec::new();
/// let mut input = &b":20:REF\n:62F:C100323EUR42570,04\n-\n"[..];
/// decode_json(&mut input, "a.sta", &SwiftFramer::default(), &mut out).unwrap();
/// assert_eq!(
///     String::from_utf8(out).unwrap(),
///     concat!(
///         r#"{"file":"a.sta","n":0,"offset":0,"type":"MT940","blocks":{},"fields":["#,
///         r#"{"tag":"20","value":"REF","parts":{"reference":"REF"}},"#,
///         r#"{"tag":"62F","value":"C100323EUR42570,04","parts":{"mark":"C","date":"2010-03-23","#,
///         r#""currency":"EUR","amount":"42570.04"}}]}"#,
///         "\n"
///     )
/// );
/// ```
pub fn decode_json(
    input: &mut dyn Read,
    file_label: &str,
    framer: &SwiftFramer,
    out: &mut dyn Write,
) -> Result<SwiftSummary, Error> {
    let mut decoder = SwiftLineDecoder {
        framer,
        fields: SwiftFieldTokenizer::new(),
        writer: SwiftJsonWriter {
            lines: JsonLines::new(file_label),
            field_components: SwiftComponents::default(),
            scratch: Vec::new(),
            sequence_path: Vec::new(),
            summary: SwiftSummary::default(),
        },
    };
    let bytes = decode_lines(InputBuffer::new(input, file_label), &mut decoder, out)?;
    Ok(SwiftSummary { bytes, errors: decoder.writer.lines.errors, ..decoder.writer.summary })
}

/// Frames messages, and writes their lines.
struct SwiftLineDecoder<'f> {
    framer: &'f SwiftFramer,
    fields: SwiftFieldTokenizer,
    writer: SwiftJsonWriter,
}

impl LineDecoder for SwiftLineDecoder<'_> {
    type Fault = SwiftFault;

    fn step(&mut self, input: DecodeInput<'_>) -> FrameStep<SwiftFault> {
        let Self { framer, fields, writer } = self;
        fields.frame(framer, input.bytes, input.offset, input.eof).map(|message| {
            writer.message(input, &message, fields.as_slice());
            message.span
        })
    }

    fn lines(&mut self) -> &mut JsonLines {
        &mut self.writer.lines
    }
}

/// The lines of one file.
struct SwiftJsonWriter {
    lines: JsonLines,
    field_components: SwiftComponents,
    scratch: Vec<u8>,
    /// The sequences open (`16R`), as their path.
    sequence_path: Vec<u8>,
    summary: SwiftSummary,
}

impl SwiftJsonWriter {
    fn message(&mut self, input: DecodeInput<'_>, message: &FramedSwiftMessage, fields: &[SwiftField]) {
        let buf = input.bytes;
        self.lines.begin(input.file_offset(message.span.start));
        let kind = SwiftMessageType::from_message(message, buf, fields);
        self.write_format(format_args!(",\"type\":\"{kind}\""));
        if let Some(variant) = message_variant(message, buf) {
            self.write_format(format_args!(",\"variant\":"));
            text(&mut self.lines.pending_lines, variant);
        }
        if !message.ack.is_empty() {
            self.write_ack(message, buf);
        }
        if message.form == EnvelopeForm::Bare && !message.preface.is_empty() {
            self.write_format(format_args!(",\"preface\":"));
            let (preface, mut scratch) = (message.preface.slice(buf), std::mem::take(&mut self.scratch));
            text(&mut self.lines.pending_lines, one_line_end(trim_bytes(preface), &mut scratch));
            self.scratch = scratch;
        }
        self.write_format(format_args!(",\"blocks\":{{"));
        let mut needs_comma = false;
        for (block, name) in [(1, "1"), (2, "2"), (3, "3"), (5, "5"), (6, "S")] {
            let Some(span) = message.block(block) else { continue };
            self.write_format(format_args!("{}\"{name}\":", if needs_comma { "," } else { "" }));
            needs_comma = true;
            if block < 3 {
                let content = span.slice(buf);
                let split_outcome = header(block, content, &mut self.field_components);
                self.write_value("{", content, split_outcome);
            } else {
                self.sub_blocks(span.slice(buf));
            }
        }
        self.write_format(format_args!("}},\"fields\":["));
        self.fields(message.text().slice(buf), fields, kind, message, buf);
        self.write_format(format_args!("]}}\n"));
        self.summary.messages += 1;
    }

    fn fields(
        &mut self,
        all: &[u8],
        fields: &[SwiftField],
        kind: SwiftMessageType,
        message: &FramedSwiftMessage,
        buf: &[u8],
    ) {
        let is_cover = kind == SwiftMessageType::Mt(202) && message_variant(message, buf) == Some(b"COV");
        let is_nested = trimmed_start(all).first() == Some(&b'{');
        self.sequence_path.clear();
        for (n, token) in fields.iter().enumerate() {
            let content = token.slice(all);
            self.write_format(format_args!("{}{{\"tag\":", if n > 0 { "," } else { "" }));
            text(&mut self.lines.pending_lines, token.name(all));
            if token.tag == SwiftTag::new(b"16S") {
                self.leave_sequence(content);
            }
            // Sequence B of a cover payment is the customer's transfer: it starts with its ordering customer.
            if is_cover && matches!(token.tag.split(), Some((50, _))) && self.sequence_path.is_empty() {
                self.sequence_path.extend_from_slice(b"B");
            }
            if !self.sequence_path.is_empty() {
                self.write_format(format_args!(",\"path\":"));
                let path = std::mem::take(&mut self.sequence_path);
                text(&mut self.lines.pending_lines, &path);
                self.sequence_path = path;
            }
            if token.tag == SwiftTag::new(b"16R") {
                self.enter_sequence(content);
            }
            let split_outcome = if is_nested {
                Ok(false)
            } else {
                parts::split(token.tag, content, &mut self.field_components)
            };
            self.write_value(",", content, split_outcome);
        }
    }

    fn enter_sequence(&mut self, code: &[u8]) {
        if self.sequence_path.len() < PATH_MAX {
            if !self.sequence_path.is_empty() {
                self.sequence_path.push(b'/');
            }
            self.sequence_path.extend_from_slice(code);
        }
    }

    fn leave_sequence(&mut self, code: &[u8]) {
        let parent = self.sequence_path.len().saturating_sub(code.len());
        if self.sequence_path.ends_with(code) && (parent == 0 || self.sequence_path[parent - 1] == b'/') {
            self.sequence_path.truncate(parent.saturating_sub(1));
        }
    }

    /// Writes `"value":…,"parts":{…}}` after the `open` text.
    fn write_value(&mut self, open: &str, content: &[u8], split_outcome: Result<bool, ValueFault>) {
        self.write_format(format_args!("{open}\"value\":"));
        let mut scratch = std::mem::take(&mut self.scratch);
        text(&mut self.lines.pending_lines, one_line_end(content, &mut scratch));
        self.scratch = scratch;
        match split_outcome {
            Ok(false) => {}
            Ok(true) => self.parts(content),
            Err(fault) => {
                self.write_format(format_args!(
                    ",\"error\":{{\"code\":\"{}\",\"message\":\"{fault}\"}}",
                    fault.code()
                ));
                self.summary.bad_values += 1;
            }
        }
        self.write_format(format_args!("}}"));
    }

    fn parts(&mut self, content: &[u8]) {
        self.lines.pending_lines.extend_from_slice(b",\"parts\":{");
        let mut day = None;
        for n in 0..self.field_components.as_slice().len() {
            let part = self.field_components.as_slice()[n];
            self.write_format(format_args!("{}\"{}\":", if n > 0 { "," } else { "" }, part.name));
            let bytes = part.slice(content);
            match part.kind {
                SubfieldFormat::Text => text(&mut self.lines.pending_lines, bytes),
                SubfieldFormat::Lines => {
                    self.lines.pending_lines.push(b'[');
                    for (n, line) in bytes.split(|b| *b == b'\n').enumerate() {
                        if n > 0 {
                            self.lines.pending_lines.push(b',');
                        }
                        text(&mut self.lines.pending_lines, line.strip_suffix(b"\r").unwrap_or(line));
                    }
                    self.lines.pending_lines.push(b']');
                }
                SubfieldFormat::Amount => {
                    self.lines.pending_lines.push(b'"');
                    value::write_amount(bytes, &mut self.lines.pending_lines);
                    self.lines.pending_lines.push(b'"');
                }
                SubfieldFormat::Date => self.write_day(value::date(bytes), bytes),
                SubfieldFormat::DateLong => self.write_day(value::date_long(bytes), bytes),
                SubfieldFormat::ValueDate => {
                    day = value::value_date(bytes);
                    self.write_day(day, bytes);
                }
                SubfieldFormat::EntryDate => {
                    self.write_day(day.and_then(|d| value::entry_date(bytes, d)), bytes)
                }
                SubfieldFormat::Time => {
                    let pairs = bytes.chunks(2);
                    self.lines.pending_lines.push(b'"');
                    for (n, pair) in pairs.enumerate() {
                        if n > 0 {
                            self.lines.pending_lines.push(b':');
                        }
                        self.lines.pending_lines.extend_from_slice(pair);
                    }
                    self.lines.pending_lines.push(b'"');
                }
            }
        }
        self.lines.pending_lines.push(b'}');
    }

    /// Writes a day, or the raw bytes if the calendar has no such day (an entry date may name any day).
    fn write_day(&mut self, day: Option<CalendarDay>, bytes: &[u8]) {
        match day {
            Some(day) => {
                self.lines.pending_lines.push(b'"');
                day.write(&mut self.lines.pending_lines);
                self.lines.pending_lines.push(b'"');
            }
            None => text(&mut self.lines.pending_lines, bytes),
        }
    }

    fn sub_blocks(&mut self, content: &[u8]) {
        self.lines.pending_lines.push(b'[');
        let mut scratch = std::mem::take(&mut self.scratch);
        for (n, token) in sub_blocks(content).enumerate() {
            self.write_format(format_args!("{}{{\"tag\":", if n > 0 { "," } else { "" }));
            text(&mut self.lines.pending_lines, token.name(content));
            self.write_format(format_args!(",\"value\":"));
            text(&mut self.lines.pending_lines, one_line_end(token.slice(content), &mut scratch));
            self.lines.pending_lines.push(b'}');
        }
        self.scratch = scratch;
        self.lines.pending_lines.push(b']');
    }

    /// Writes `"ack":{"status":"ACK","fields":[…]}` for the blocks in front.
    fn write_ack(&mut self, message: &FramedSwiftMessage, buf: &[u8]) {
        let blocks = message.ack.slice(buf);
        let block4 = sub_blocks(blocks).find(|token| token.tag == SwiftTag::new(b"4"));
        let content = block4.map_or(&[][..], |token| token.slice(blocks));
        let is_refused = message.is_refused(buf) == Some(true);
        self.write_format(format_args!(
            ",\"ack\":{{\"status\":\"{}\",\"fields\":",
            if is_refused { "NAK" } else { "ACK" }
        ));
        self.sub_blocks(content);
        self.lines.pending_lines.push(b'}');
    }

    fn write_format(&mut self, words: std::fmt::Arguments<'_>) {
        // Writing to a Vec cannot fail.
        let _ = self.lines.pending_lines.write_fmt(words);
    }
}

/// Bytes of the path of sequences, at most; deeper sequences appear under their last known parent.
const PATH_MAX: usize = 256;

/// Returns field 119 of block 3: `COV`, `STP`, `REMIT`.
fn message_variant<'b>(message: &FramedSwiftMessage, buf: &'b [u8]) -> Option<&'b [u8]> {
    let content = message.block(3)?.slice(buf);
    sub_blocks(content).find(|token| token.tag == SwiftTag::new(b"119")).map(|token| token.slice(content))
}

/// Replaces every line end by `\n`.
fn one_line_end<'v>(bytes: &'v [u8], scratch: &'v mut Vec<u8>) -> &'v [u8] {
    if !bytes.contains(&b'\r') {
        return bytes;
    }
    scratch.clear();
    for (n, byte) in bytes.iter().enumerate() {
        if *byte != b'\r' || bytes.get(n + 1) != Some(&b'\n') {
            scratch.push(*byte);
        }
    }
    scratch
}

fn trim_bytes(bytes: &[u8]) -> &[u8] {
    let last_kept = bytes.iter().rposition(|b| !matches!(b, b'\r' | b'\n'));
    &bytes[..last_kept.map_or(0, |end| end + 1)]
}

fn trimmed_start(bytes: &[u8]) -> &[u8] {
    let first_kept = bytes.iter().position(|b| !matches!(b, b'\r' | b'\n' | b' ' | b'\t'));
    &bytes[first_kept.unwrap_or(bytes.len())..]
}
