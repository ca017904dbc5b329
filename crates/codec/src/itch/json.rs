//! Messages as JSON Lines: what `unitape decode itch --json` prints.
//!
//! ```text
//! {"file":"a","n":4,"offset":130,"type":"A","fields":{"stock_locate":7,…,"shares":100,"stock":"ZVZZT","price":"10.25"}}
//! {"file":"a","n":5,"offset":168,"length":40,"error":{"code":"unknown_type","message":"…"}}
//! ```
//!
//! One object for each message, good or bad, in order; `type` is the letter. Numbers are numbers, `timestamp` in
//! nanoseconds since midnight in New York, prices strings in canonical form. Texts are without the blanks after them;
//! a blank one is left out. Control packets of the framing become no line. The schema is
//! `docs/schema/decode-itch.schema.json`.

use super::fault::ItchFault;
use super::frame::ItchFramer;
use super::message::{ItchFieldType, ItchMessage};
use std::io::{Read, Write};
use unitape_base::json::{number, value};
use unitape_base::{
    DecodeInput, Error, FrameFault, FrameStep, InputBuffer, JsonLines, LineDecoder, decode_lines,
};

/// The counts of a decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ItchSummary {
    /// Good messages.
    pub messages: u64,
    /// Bad ones.
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
    framer: ItchFramer,
    out: &mut dyn Write,
) -> Result<ItchSummary, Error> {
    let writer = ItchJsonWriter { lines: JsonLines::new(file_label), summary: ItchSummary::default() };
    let mut decoder = ItchLineDecoder { framer, writer };
    let bytes = decode_lines(InputBuffer::new(input, file_label), &mut decoder, out)?;
    Ok(ItchSummary { bytes, errors: decoder.writer.lines.errors, ..decoder.writer.summary })
}

/// Frames messages, and writes their lines.
struct ItchLineDecoder {
    framer: ItchFramer,
    writer: ItchJsonWriter,
}

impl LineDecoder for ItchLineDecoder {
    type Fault = ItchFault;

    fn step(&mut self, input: DecodeInput<'_>) -> FrameStep<ItchFault> {
        let Self { framer, writer } = self;
        framer.frame(input.bytes, input.offset, input.eof).map(|frame| {
            let offset = input.file_offset(frame.span.start);
            match ItchMessage::of(frame.body(input.bytes)).map(|m| (m, m.check())) {
                Some((message, Ok(()))) => writer.message(offset, message),
                Some((_, Err(fault))) => {
                    writer.lines.fault(offset, frame.span.len(), fault.code_word(), &fault);
                }
                None => unreachable!("the framer gives messages of their type's length"),
            }
            frame.span
        })
    }

    fn lines(&mut self) -> &mut JsonLines {
        &mut self.writer.lines
    }
}

/// Writes an exact price of `places` decimal places in canonical form.
pub fn price(out: &mut Vec<u8>, units: u64, places: u32) {
    let scale = 10u64.pow(places);
    number(out, units / scale);
    let (mut rest, mut places) = (units % scale, places);
    if rest == 0 {
        return;
    }
    while rest % 10 == 0 {
        (rest, places) = (rest / 10, places - 1);
    }
    out.push(b'.');
    for exponent in (0..places).rev() {
        out.push(b'0' + (rest / 10u64.pow(exponent) % 10) as u8);
    }
}

/// The lines of one file.
struct ItchJsonWriter {
    lines: JsonLines,
    summary: ItchSummary,
}

impl ItchJsonWriter {
    fn message(&mut self, offset: u64, message: ItchMessage<'_>) {
        self.lines.begin(offset);
        let (bytes, spec) = (message.bytes(), message.spec());
        let out = &mut self.lines.pending_lines;
        out.extend_from_slice(b",\"type\":\"");
        out.push(spec.letter);
        out.extend_from_slice(b"\",\"fields\":{\"stock_locate\":");
        number(out, u64::from(message.stock_locate()));
        out.extend_from_slice(b",\"tracking_number\":");
        number(out, parse_unsigned(&bytes[3..5]));
        out.extend_from_slice(b",\"timestamp\":");
        number(out, message.timestamp());
        for field in spec.fields {
            let raw = &bytes[field.at..field.at + field.sort.bytes()];
            if matches!(field.sort, ItchFieldType::Letter | ItchFieldType::Text(_))
                && raw.trim_ascii_end().is_empty()
            {
                continue;
            }
            out.extend_from_slice(b",\"");
            out.extend_from_slice(field.name.as_bytes());
            out.extend_from_slice(b"\":");
            match field.sort {
                ItchFieldType::Letter
                | ItchFieldType::Side
                | ItchFieldType::Stock
                | ItchFieldType::Text(_) => value(out, raw.trim_ascii_end()),
                ItchFieldType::Number(_) => number(out, parse_unsigned(raw)),
                ItchFieldType::Price4 | ItchFieldType::Price8 => {
                    out.push(b'"');
                    price(out, parse_unsigned(raw), if field.sort == ItchFieldType::Price4 { 4 } else { 8 });
                    out.push(b'"');
                }
            }
        }
        out.extend_from_slice(b"}}\n");
        self.summary.messages += 1;
    }
}

fn parse_unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}
