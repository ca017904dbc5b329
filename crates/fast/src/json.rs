//! Messages as JSON Lines: the output of `unitape decode fast --json`.
//!
//! ```text
//! {"file":"a","n":4,"offset":130,"type":{"id":7,"name":"Quote"},"fields":{"SeqNum":3,"Px":{"mantissa":942755,"exponent":-2},"Levels":[{"Qty":5}]}}
//! {"file":"a","n":5,"offset":168,"error":{"code":"D9","message":"…"}}
//! ```
//!
//! It writes one object for each message, good or bad, in order. Integers are numbers. A byte vector and text that is
//! not UTF-8 are `{"hex":"…"}`. A group is an object and a sequence an array. Absent fields and lengths are left out.
//! The fields of a static reference are among the fields of the template. A dynamic reference is an object under
//! `@ref`. A name that the template holds more than once is always an array. An element with a single value without a
//! name is that value. Bytes after the message of a frame are counted (`rest_bytes`). The schema is
//! `docs/schema/decode-fast.schema.json`.

use super::fault::{MessageFault, MessageFaultCode};
use super::frames::{MESSAGE_BYTES_MAX, NextPacket, PacketReader, StreamFraming};
use super::objects::fields;
use super::record::Message;
use super::{Decoder, Templates};
use std::fmt::Display;
use std::io::{Read, Write};
use unitape_base::Error;
use unitape_base::json::{head, number, string};
use unitape_base::{InputBuffer, READ_BYTES};

/// How a file is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonDecodeOptions {
    /// Where messages begin and end.
    pub framing: StreamFraming,
    /// Where dictionaries are emptied.
    pub reset: DictionaryResetPolicy,
}

/// Where dictionaries are emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DictionaryResetPolicy {
    /// Nowhere: they are carried through all files.
    #[default]
    Never,
    /// Before each message.
    Message,
    /// A reset before each packet; the framing determines how many messages a packet has.
    Packet,
}

/// The counts of a decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecodeSummary {
    /// Good messages.
    pub messages: u64,
    /// The number of bad messages and of packets without a message.
    pub errors: u64,
}

/// The decoder writes its output at this size, within a message as well, and before it waits for input.
const FLUSH_BYTES: usize = 64 << 10;

/// Decodes all of `input` to JSON Lines on `out`. The decoder continues from its previous state.
///
/// # Errors
/// Fails if the input cannot be read or the output cannot be written. Messages that were decoded before are written.
pub fn decode_json(
    input: &mut dyn Read,
    file_label: &str,
    decoder: &mut Decoder,
    options: JsonDecodeOptions,
    out: &mut dyn Write,
) -> Result<DecodeSummary, Error> {
    let mut lines = JsonLineWriter {
        line_head: head(file_label),
        pending_lines: Vec::new(),
        summary: DecodeSummary::default(),
        line_writer: out,
    };
    let mut units = PacketReader::new(InputBuffer::new(input, file_label), options.framing);
    let mut patience = 1;
    let result = loop {
        let unit = match units.next() {
            Ok(unit) => unit,
            Err(error) => break Err(error),
        };
        let needed_bytes = match unit {
            NextPacket::More(more) => Ok(Some(more)),
            NextPacket::End => break Ok(()),
            NextPacket::Bad { offset, code, reason } => {
                lines.bad(offset, code.as_str(), &reason);
                Ok(None)
            }
            NextPacket::Packet { offset, from, to } => {
                let packet = &units.source.bytes()[from..to];
                let packet_offset = PacketOffset { offset, is_bytes: true };
                lines.packet(packet_offset, packet, decoder, options).map(|()| None)
            }
            NextPacket::Text { offset, bytes } => {
                let packet_offset = PacketOffset { offset, is_bytes: false };
                lines.packet(packet_offset, &bytes, decoder, options).map(|()| None)
            }
            NextPacket::Open { offset, from } => {
                let open = lines.open(offset, from, &mut units, decoder, options);
                open.map(|is_whole| (!is_whole).then_some(0))
            }
        };
        let needed_bytes = match needed_bytes {
            Ok(needed_bytes) => needed_bytes,
            Err(error) => break Err(error),
        };
        if let Some(needed_bytes) = needed_bytes {
            // Shown before anything is waited for; who sends little at a time is not asked about each byte.
            lines.flush()?;
            let is_size_known = needed_bytes > 0;
            if let Err(error) =
                units.fill(if is_size_known { needed_bytes } else { units.bytes_buffered() + patience })
            {
                break Err(error);
            }
            if !is_size_known {
                patience = (2 * patience).min(READ_BYTES);
            }
            continue;
        }
        patience = 1;
        if lines.pending_lines.len() >= FLUSH_BYTES {
            lines.flush()?;
        }
    };
    lines.flush()?;
    result.map(|()| lines.summary)
}

/// The place of a packet in the input.
#[derive(Clone, Copy)]
struct PacketOffset {
    /// Offset of a byte, or the number of a line where packets are lines of text.
    offset: u64,
    /// The packet's bytes are at this offset, and each of its messages has an offset of its own. Messages of a line, or of a
    /// packet that came in fragments, share one.
    is_bytes: bool,
}

struct JsonLineWriter<'o> {
    line_head: Vec<u8>,
    pending_lines: Vec<u8>,
    summary: DecodeSummary,
    line_writer: &'o mut dyn Write,
}

impl JsonLineWriter<'_> {
    fn flush(&mut self) -> Result<(), Error> {
        if self.pending_lines.is_empty() {
            return Ok(());
        }
        let write_result =
            self.line_writer.write_all(&self.pending_lines).and_then(|()| self.line_writer.flush());
        write_result.map_err(|source| Error::Write { source })?;
        self.pending_lines.clear();
        Ok(())
    }

    /// Decodes the messages of a packet.
    fn packet(
        &mut self,
        packet_offset: PacketOffset,
        packet: &[u8],
        decoder: &mut Decoder,
        options: JsonDecodeOptions,
    ) -> Result<(), Error> {
        let PacketOffset { offset, is_bytes } = packet_offset;
        let head = options.framing.head_bytes();
        let Some(mut packet_left) = packet.get(head..) else {
            self.bad(offset, MessageFaultCode::Truncated.as_str(), &"a packet that is shorter than its head");
            return Ok(());
        };
        let mut reset = options.reset;
        loop {
            match reset {
                DictionaryResetPolicy::Never => {}
                DictionaryResetPolicy::Message => decoder.reset(),
                DictionaryResetPolicy::Packet => {
                    decoder.reset();
                    reset = DictionaryResetPolicy::Never;
                }
            }
            let message_offset =
                if is_bytes { offset + (packet.len() - packet_left.len()) as u64 } else { offset };
            let templates = decoder.templates().clone();
            let bytes_used = match decoder.decode(packet_left) {
                Ok(message) => {
                    let bytes_left =
                        if options.framing.many() { 0 } else { packet_left.len() - message.bytes };
                    self.message(message_offset, &templates, &message, bytes_left)?;
                    message.bytes
                }
                Err(fault) => {
                    self.fault(message_offset, &fault);
                    return Ok(());
                }
            };
            packet_left = &packet_left[bytes_used..];
            if !options.framing.many() || packet_left.is_empty() {
                return Ok(());
            }
        }
    }

    /// Decodes a message that shows its own end; false if it needs more bytes. Nothing after a bad one can be
    /// decoded.
    fn open(
        &mut self,
        offset: u64,
        from: usize,
        units: &mut PacketReader<'_>,
        decoder: &mut Decoder,
        options: JsonDecodeOptions,
    ) -> Result<bool, Error> {
        let head = options.framing.head_bytes();
        let offset = offset + head as u64;
        if options.reset != DictionaryResetPolicy::Never {
            decoder.reset();
        }
        let templates = decoder.templates().clone();
        let bytes = &units.source.bytes()[from..];
        let is_complete = units.source.eof || bytes.len() > MESSAGE_BYTES_MAX;
        let result = match bytes.get(head..) {
            Some(bytes) => decoder.decode(bytes),
            None => Err(MessageFault {
                code: MessageFaultCode::Truncated,
                template: String::new(),
                field: String::new(),
                offset: 0,
            }),
        };
        match result {
            Ok(message) => {
                self.message(offset, &templates, &message, 0)?;
                units.buffer_offset = from + head + message.bytes;
            }
            Err(fault) if fault.code == MessageFaultCode::Truncated && !is_complete => return Ok(false),
            Err(fault) => {
                self.fault(offset, &fault);
                let packet_left = units.skip_to_end()?;
                // Into the object that was just written.
                self.pending_lines.truncate(self.pending_lines.len() - 2);
                self.pending_lines.extend_from_slice(b",\"rest_bytes\":");
                number(&mut self.pending_lines, packet_left);
                self.pending_lines.extend_from_slice(b"}\n");
            }
        }
        Ok(true)
    }

    fn start(&mut self, offset: u64) {
        let n = self.summary.messages + self.summary.errors;
        self.pending_lines.extend_from_slice(&self.line_head);
        number(&mut self.pending_lines, n);
        self.pending_lines.extend_from_slice(b",\"offset\":");
        number(&mut self.pending_lines, offset);
    }

    fn fault(&mut self, offset: u64, fault: &MessageFault) {
        self.bad(offset, fault.code.as_str(), fault);
    }

    fn bad(&mut self, offset: u64, code: &str, reason: &dyn Display) {
        self.start(offset);
        self.pending_lines.extend_from_slice(b",\"error\":{\"code\":");
        string(&mut self.pending_lines, code);
        self.pending_lines.extend_from_slice(b",\"message\":");
        string(&mut self.pending_lines, &reason.to_string());
        self.pending_lines.extend_from_slice(b"}}\n");
        self.summary.errors += 1;
    }

    fn message(
        &mut self,
        offset: u64,
        templates: &Templates,
        message: &Message<'_>,
        left: usize,
    ) -> Result<(), Error> {
        self.start(offset);
        let template = &templates.list()[message.template];
        self.pending_lines.extend_from_slice(b",\"type\":{\"id\":");
        number(&mut self.pending_lines, template.id.unwrap_or_default().into());
        self.pending_lines.extend_from_slice(b",\"name\":");
        string(&mut self.pending_lines, &template.name.local);
        self.pending_lines.extend_from_slice(b"},\"fields\":{");
        // All bytes gathered of a message are written but the last, which decides about commas.
        let (text, out) = (&mut self.pending_lines, &mut self.line_writer);
        fields(text, templates, message, |text| {
            if text.len() < FLUSH_BYTES {
                return Ok(());
            }
            let all_but_last = text.len() - 1;
            out.write_all(&text[..all_but_last]).map_err(|source| Error::Write { source })?;
            text.drain(..all_but_last);
            Ok(())
        })?;
        self.pending_lines.push(b'}');
        if left > 0 {
            self.pending_lines.extend_from_slice(b",\"rest_bytes\":");
            number(&mut self.pending_lines, left as u64);
        }
        self.pending_lines.extend_from_slice(b"}\n");
        self.summary.messages += 1;
        Ok(())
    }
}
