//! Messages as JSON Lines: what `unitape decode iex --json` prints.
//!
//! ```text
//! {"file":"a","n":4,"offset":130,"protocol":"deep","channel":1,"session":9,"sequence":5,"type":"8","fields":{"timestamp":…,"price":"99.05"}}
//! {"file":"a","n":5,"offset":168,"length":40,"error":{"code":"unknown_type","message":"…"}}
//! ```
//!
//! One object for each message, good or bad, in order; `type` is the letter. Numbers are numbers, prices strings in
//! canonical form, texts without the blanks behind them; a blank one is left out. `extra` is the number of bytes that a
//! later version has behind the fields. Heartbeats, and packets of a capture that are no UDP, become no line. The
//! schema is `docs/schema/decode-iex.schema.json`.

use super::fault::{IexFault, IexFaultCode};
use super::message::{IexFieldType, IexMessage, PRICE_PLACES};
use super::packet::{GARBAGE_BYTES_MAX, IexFramer, IexPacketHeader, IexPacketPart};
use crate::itch::price;
use std::io::{Read, Write};
use unitape_base::capture::{CaptureWalker, NextCaptureRecord, UdpParseOutcome, is_capture, udp};
use unitape_base::json::{number, value};
use unitape_base::{
    DecodeInput, Error, FrameFault, FrameStep, InputBuffer, JsonLines, LineDecoder, Span, decode_lines,
};

/// The counts of a decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IexSummary {
    /// Good messages.
    pub messages: u64,
    /// Bad messages, and bytes that are no message.
    pub errors: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// Decodes all of `input`, a capture or packets back to back, to JSON Lines on `out`.
///
/// # Errors
/// Fails if the input cannot be read or the output cannot be written. Items decoded before are written.
pub fn decode_json(input: &mut dyn Read, file_label: &str, out: &mut dyn Write) -> Result<IexSummary, Error> {
    let mut source = InputBuffer::new(input, file_label);
    source.read(0, MAGIC_BYTES)?;
    let mut decoder = IexLineDecoder {
        walker: is_capture(source.bytes()).then(CaptureWalker::default),
        writer: IexJsonWriter { lines: JsonLines::new(file_label), summary: IexSummary::default() },
    };
    let bytes = decode_lines(source, &mut decoder, out)?;
    Ok(IexSummary { bytes, errors: decoder.writer.lines.errors, ..decoder.writer.summary })
}

/// Reads packets, of a capture or back to back, and writes lines of their messages.
struct IexLineDecoder {
    walker: Option<CaptureWalker>,
    writer: IexJsonWriter,
}

impl LineDecoder for IexLineDecoder {
    type Fault = IexFault;

    fn step(&mut self, input: DecodeInput<'_>) -> FrameStep<IexFault> {
        match &mut self.walker {
            Some(walker) => self.writer.write_record(walker, input),
            None => self.writer.packet(input),
        }
    }

    fn lines(&mut self) -> &mut JsonLines {
        &mut self.writer.lines
    }
}

/// Bytes that tell a capture from packets back to back.
const MAGIC_BYTES: usize = 4;

/// The lines of one file.
struct IexJsonWriter {
    lines: JsonLines,
    summary: IexSummary,
}

impl IexJsonWriter {
    /// Decodes the next record of a capture.
    fn write_record(&mut self, walker: &mut CaptureWalker, input: DecodeInput<'_>) -> FrameStep<IexFault> {
        let DecodeInput { bytes, offset, eof, base } = input;
        let bytes_left = bytes.len() - offset;
        let fault = |detail: &str| IexFault::new(IexFaultCode::BadCapture, detail);
        let (end, fault) = match walker.next(bytes, offset) {
            NextCaptureRecord::Skip { end } => (end, None),
            NextCaptureRecord::Dropped { count, end, .. } => {
                (end, Some(fault(&format!("{count} datagrams were dropped before this place"))))
            }
            NextCaptureRecord::Packet(packet) => {
                let captured = &bytes[packet.bytes.clone()];
                let fault = match udp(packet.link, captured, packet.is_cut()) {
                    UdpParseOutcome::Datagram(datagram) => {
                        let base = base + (packet.bytes.start + datagram.payload.start) as u64;
                        self.write_payload(&captured[datagram.payload], base);
                        None
                    }
                    UdpParseOutcome::Other => None,
                    UdpParseOutcome::Cut(_) => {
                        let [captured, original] = [captured.len() as u64, packet.original.into()];
                        Some(fault(&format!("{captured} of {original} bytes were captured")))
                    }
                    UdpParseOutcome::Fragment(_) => Some(fault("a fragment of a datagram")),
                    UdpParseOutcome::Bad(reason) => Some(fault(reason)),
                };
                (packet.end, fault)
            }
            NextCaptureRecord::More if !eof => {
                return FrameStep::Incomplete { from: offset, need: bytes.len() + 1 };
            }
            _ if bytes_left == 0 && eof => return FrameStep::End,
            NextCaptureRecord::More => {
                (bytes.len(), Some(fault("the capture ends in the middle of a record")))
            }
            NextCaptureRecord::Lost { .. } if bytes_left < GARBAGE_BYTES_MAX && !eof => {
                return FrameStep::Incomplete { from: offset, need: offset + GARBAGE_BYTES_MAX };
            }
            NextCaptureRecord::Lost { reason } => {
                (offset + bytes_left.min(GARBAGE_BYTES_MAX), Some(fault(reason)))
            }
        };
        let span = Span { start: offset, end };
        match fault {
            Some(fault) => FrameStep::Bad { span, fault },
            None => FrameStep::Skipped(span),
        }
    }

    /// Decodes the payload of a datagram.
    fn write_payload(&mut self, bytes: &[u8], base: u64) {
        let mut offset = 0;
        loop {
            offset = match self.packet(DecodeInput { bytes, offset, eof: true, base }) {
                FrameStep::Message(span) | FrameStep::Skipped(span) => span.end,
                FrameStep::Bad { span, fault } => {
                    self.fault(base, span, &fault);
                    span.end
                }
                FrameStep::Incomplete { .. } | FrameStep::End => return,
            };
        }
    }

    /// Decodes the next packet.
    fn packet(&mut self, input: DecodeInput<'_>) -> FrameStep<IexFault> {
        let DecodeInput { bytes, offset, eof, base } = input;
        IexFramer.frame(bytes, offset, eof).map(|packet| {
            for part in packet.parts(bytes) {
                match part {
                    IexPacketPart::Message { span, sequence } => {
                        let body = &bytes[span.start + 2..span.end];
                        match decode_checked(packet.header, body) {
                            Ok(message) => {
                                let message_place = MessagePlace {
                                    header: packet.header,
                                    offset: base + span.start as u64,
                                    sequence,
                                };
                                self.message(message_place, message, body.len());
                            }
                            Err(fault) => self.fault(base, span, &fault),
                        }
                    }
                    IexPacketPart::Truncated { span, fault, .. } => self.fault(base, span, &fault),
                    IexPacketPart::Behind(span) => {
                        self.fault(base, span, &IexFault::new(IexFaultCode::Garbage, BEHIND));
                    }
                }
            }
            packet.span
        })
    }

    fn message(&mut self, message_place: MessagePlace, message: IexMessage<'_>, length: usize) {
        let MessagePlace { header, offset, sequence } = message_place;
        self.lines.begin(offset);
        let (bytes, spec) = (message.bytes(), message.spec());
        let out = &mut self.lines.pending_lines;
        out.extend_from_slice(b",\"protocol\":\"");
        out.extend_from_slice(header.protocol.as_str().as_bytes());
        out.push(b'"');
        for (name, number_value) in
            [("channel", header.channel.into()), ("session", header.session.into()), ("sequence", sequence)]
        {
            write_key(out, name);
            number(out, number_value);
        }
        out.extend_from_slice(b",\"type\":\"");
        out.push(spec.letter);
        out.extend_from_slice(b"\",\"fields\":{\"timestamp\":");
        number(out, message.timestamp().unsigned_abs());
        for field in spec.fields {
            let raw = &bytes[field.offset..field.offset + field.field_type.bytes()];
            match field.field_type {
                IexFieldType::Letter | IexFieldType::Text(_) if raw.trim_ascii_end().is_empty() => {}
                IexFieldType::Letter | IexFieldType::Side | IexFieldType::Symbol | IexFieldType::Text(_) => {
                    write_key(out, field.name);
                    value(out, raw.trim_ascii_end());
                }
                IexFieldType::Number(_) => {
                    write_key(out, field.name);
                    number(out, parse_unsigned(raw));
                }
                IexFieldType::Price => {
                    write_key(out, field.name);
                    let units = parse_unsigned(raw) as i64;
                    out.extend_from_slice(if units < 0 { b"\"-" } else { b"\"" });
                    price(out, units.unsigned_abs(), PRICE_PLACES);
                    out.push(b'"');
                }
            }
        }
        out.push(b'}');
        if length > spec.bytes {
            write_key(out, "extra");
            number(out, (length - spec.bytes) as u64);
        }
        out.extend_from_slice(b"}\n");
        self.summary.messages += 1;
    }

    fn fault(&mut self, base: u64, span: Span, fault: &IexFault) {
        self.lines.fault(base + span.start as u64, span.len(), fault.code_word(), fault);
    }
}

/// The place of a message.
#[derive(Clone, Copy)]
struct MessagePlace {
    header: IexPacketHeader,
    /// Offset in the file.
    offset: u64,
    /// Its number.
    sequence: u64,
}

/// What is wrong with bytes behind the last message of a packet.
const BEHIND: &str = "behind the last message of a packet";

fn decode_checked(header: IexPacketHeader, body: &[u8]) -> Result<IexMessage<'_>, IexFault> {
    let message = IexMessage::read(header.protocol, body)?;
    message.check()?;
    Ok(message)
}

fn write_key(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn parse_unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
