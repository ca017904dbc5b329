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
use super::frame::{ItchFramer, NextItchFrame};
use super::message::{ItchFieldType, ItchMessage};
use std::io::{Read, Write};
use unitape_base::json::{head, number, string, value};
use unitape_base::{Error, Span};
use unitape_base::{InputBuffer, READ_BYTES};

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
/// If the input cannot be read or the output not be written; what was decoded before is written.
pub fn decode_json(
    input: &mut dyn Read,
    file_label: &str,
    framer: ItchFramer,
    out: &mut dyn Write,
) -> Result<ItchSummary, Error> {
    let mut source = InputBuffer::new(input, file_label);
    let mut lines = ItchJsonWriter {
        head: head(file_label),
        text: Vec::with_capacity(2 * FLUSH_BYTES),
        summary: ItchSummary::default(),
    };
    let (mut at, mut patience) = (0, 1);
    let result = loop {
        let end = match framer.frame(source.bytes(), at, source.eof) {
            NextItchFrame::Message(found) => {
                let offset = source.base + found.span.start as u64;
                match ItchMessage::of(found.body(source.bytes())).map(|m| (m, m.check())) {
                    Some((message, Ok(()))) => lines.message(offset, message),
                    Some((_, Err(fault))) => lines.fault(offset, found.span, fault),
                    None => unreachable!("the framer gives messages of their type's length"),
                }
                found.span.end
            }
            NextItchFrame::Control(span) => span.end,
            NextItchFrame::Bad { span, fault } => {
                lines.fault(source.base + span.start as u64, span, fault);
                span.end
            }
            NextItchFrame::Incomplete { from, need } => {
                if let Err(error) = lines.flush(out) {
                    break Err(error);
                }
                let wanted = (need - from).max(source.bytes().len() - from + patience);
                patience = (patience * 2).min(READ_BYTES);
                if let Err(error) = source.read(from, wanted) {
                    break Err(error);
                }
                at = 0;
                continue;
            }
            NextItchFrame::End => break Ok(()),
        };
        (at, patience) = (end, 1);
        if lines.text.len() >= FLUSH_BYTES {
            lines.flush(out)?;
        }
    };
    lines.flush(out)?;
    result?;
    lines.summary.bytes = source.base + source.bytes().len() as u64;
    Ok(lines.summary)
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
    for place in (0..places).rev() {
        out.push(b'0' + (rest / 10u64.pow(place) % 10) as u8);
    }
}

/// The decoder writes its output at this size, and before it waits for input.
const FLUSH_BYTES: usize = 64 << 10;

/// The lines of one file.
struct ItchJsonWriter {
    head: Vec<u8>,
    text: Vec<u8>,
    summary: ItchSummary,
}

impl ItchJsonWriter {
    fn message(&mut self, offset: u64, message: ItchMessage<'_>) {
        self.start(offset);
        let (bytes, spec) = (message.bytes(), message.spec());
        let out = &mut self.text;
        out.extend_from_slice(b",\"type\":\"");
        out.push(spec.letter);
        out.extend_from_slice(b"\",\"fields\":{\"stock_locate\":");
        number(out, u64::from(message.stock_locate()));
        out.extend_from_slice(b",\"tracking_number\":");
        number(out, whole(&bytes[3..5]));
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
                ItchFieldType::Number(_) => number(out, whole(raw)),
                ItchFieldType::Price4 | ItchFieldType::Price8 => {
                    out.push(b'"');
                    price(out, whole(raw), if field.sort == ItchFieldType::Price4 { 4 } else { 8 });
                    out.push(b'"');
                }
            }
        }
        out.extend_from_slice(b"}}\n");
        self.summary.messages += 1;
    }

    fn fault(&mut self, offset: u64, span: Span, fault: ItchFault) {
        self.start(offset);
        self.text.extend_from_slice(b",\"length\":");
        number(&mut self.text, span.len() as u64);
        self.text.extend_from_slice(b",\"error\":{\"code\":\"");
        self.text.extend_from_slice(fault.code.as_str().as_bytes());
        self.text.extend_from_slice(b"\",\"message\":");
        string(&mut self.text, &fault.to_string());
        self.text.extend_from_slice(b"}}\n");
        self.summary.errors += 1;
    }

    fn start(&mut self, offset: u64) {
        self.text.extend_from_slice(&self.head);
        number(&mut self.text, self.summary.messages + self.summary.errors);
        self.text.extend_from_slice(b",\"offset\":");
        number(&mut self.text, offset);
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

fn whole(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}
