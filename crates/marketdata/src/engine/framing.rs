//! A packet split into its header, its messages, and their contents.

use super::config::{ByteOrder, DictionaryResetMode};
use super::field_visitor::{self, VisitorContext};
use super::ids::LongIdTable;
use super::message_fields::PacketMessages;
use super::packet_header::{self, PacketHeader};
use super::plan::{HandlerConfig, PacketFraming};
use std::sync::Arc;
use unitape_fast::{Decoder, MessageFault};
use unitape_model::ChannelId;

/// A packet, and where its messages begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketBody<'p> {
    pub payload: &'p [u8],
    pub offset: usize,
}

/// Takes packets apart, one at a time.
#[derive(Debug)]
pub(super) struct PacketDecoder {
    config: Arc<HandlerConfig>,
    /// By channel.
    decoders: Vec<Decoder>,
    packet_buffer: PacketBuffer,
    /// The template of the packet's header, where that was read without the decoder: the packet is not in hand yet.
    header_template: Option<u32>,
    /// The fields of the current packet's messages.
    pub batch: PacketMessages,
}

/// The bytes of the packet in hand, with room after them: messages that end well before the end of a buffer are
/// decoded where they lie, and need no copy each.
#[derive(Debug, Default)]
struct PacketBuffer {
    buffer: Vec<u8>,
    length: usize,
}

/// Bytes after a packet, which may be anything.
const ROOM: usize = 1024;

impl PacketBuffer {
    #[inline]
    fn copy_from(&mut self, payload: &[u8]) {
        self.length = payload.len();
        if self.buffer.len() < payload.len() + ROOM {
            self.buffer.resize(payload.len() + ROOM, 0);
        }
        self.buffer[..payload.len()].copy_from_slice(payload);
    }
}

/// Why a packet cannot be used.
pub(super) struct PacketFault {
    pub code: &'static str,
    pub detail: String,
}

impl PacketDecoder {
    pub fn new(config: Arc<HandlerConfig>) -> Self {
        let projected = |set: u16| Decoder::with_projection(config.sets[usize::from(set)].projection.clone());
        let decoders = config.channels.iter().map(|c| projected(c.template_set)).collect();
        Self {
            decoders,
            packet_buffer: PacketBuffer::default(),
            header_template: None,
            batch: PacketMessages::default(),
            config,
        }
    }

    /// Reads the part before the messages of a packet; returns where they begin.
    #[inline]
    pub fn open(&mut self, channel: ChannelId, payload: &[u8]) -> Result<(PacketHeader, usize), PacketFault> {
        let Self { config, decoders, packet_buffer: hand, header_template, .. } = self;
        *header_template = None;
        let set = &config.sets[usize::from(config.channels[channel.index()].template_set)];
        if let Some(program) = &set.header_program
            && let Some((head, body)) = program.read_header(payload, config.time_unit)
            && head.sequence.is_some()
        {
            *header_template = Some(program.id);
            return Ok((head, body));
        }
        let decoder = &mut decoders[channel.index()];
        hand.copy_from(payload);
        if config.reset_mode != DictionaryResetMode::Never {
            decoder.reset();
        }
        match config.packet_framing {
            PacketFraming::Header => {
                let message = decoder.decode_in(&hand.buffer, 0..hand.length);
                let message = message.map_err(|fault| packet_fault(&fault, 0))?;
                if !set.headers[message.template] {
                    let name = &set.templates.list()[message.template].name.local;
                    let detail = format!("a packet begins with {name}, which is no header");
                    return Err(PacketFault { code: "no_header", detail });
                }
                let head = packet_header::decoded_header(&message, config.time_unit);
                let body = message.bytes;
                if head.sequence.is_none() {
                    let detail = "the header has no number".to_owned();
                    return Err(PacketFault { code: "missing", detail });
                }
                Ok((head, body))
            }
            PacketFraming::Number { bytes, order, skip, every } => {
                let n = usize::from(bytes);
                let Some(number) = payload.get(..n).filter(|_| payload.len() >= n + usize::from(skip)) else {
                    let detail = "shorter than what stands before a message".to_owned();
                    return Err(PacketFault { code: "truncated", detail });
                };
                let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
                let number = match order {
                    ByteOrder::Big => number.iter().fold(0, add),
                    ByteOrder::Little => number.iter().rev().fold(0, add),
                };
                let body = if every { 0 } else { n + usize::from(skip) };
                Ok((PacketHeader { sequence: Some(number), ..PacketHeader::default() }, body))
            }
            PacketFraming::Plain | PacketFraming::Length => Ok((PacketHeader::default(), 0)),
        }
    }

    /// Reads all messages of a packet from `offset` on. The packet is the last one opened.
    #[inline]
    pub fn body(
        &mut self,
        channel: ChannelId,
        body: PacketBody<'_>,
        ids: &mut LongIdTable,
    ) -> Result<(), PacketFault> {
        let PacketBody { payload, offset: mut message_offset } = body;
        let Self { config, decoders, packet_buffer: hand, header_template, batch } = self;
        let decoder = &mut decoders[channel.index()];
        if let Some(header) = header_template.take() {
            hand.copy_from(payload);
            decoder.reset_to_template_id(header);
        }
        debug_assert_eq!(&hand.buffer[..hand.length], payload, "another packet is in hand");
        batch.clear();
        let set = &config.sets[usize::from(config.channels[channel.index()].template_set)];
        // Nothing lies between messages, and nothing has to be done there.
        let is_contiguous = match config.packet_framing {
            PacketFraming::Length | PacketFraming::Number { every: true, .. } => false,
            PacketFraming::Header | PacketFraming::Number { .. } | PacketFraming::Plain => {
                config.reset_mode != DictionaryResetMode::Message
            }
        };
        while message_offset < payload.len() {
            let mut message_length = payload.len();
            if !is_contiguous {
                (message_offset, message_length) = next_message_range(config, payload, message_offset)?;
                if config.reset_mode == DictionaryResetMode::Message {
                    decoder.reset();
                }
            }
            let decoded = decoder.decode_in(&hand.buffer, message_offset..message_length);
            // It is not moved: that would be a copy for each message.
            let message = match &decoded {
                Ok(message) => message,
                Err(fault) => return Err(packet_fault(fault, message_offset)),
            };
            let length = message.bytes;
            if !is_contiguous
                && config.packet_framing == PacketFraming::Length
                && message_offset + length != message_length
            {
                let detail = format!("bytes behind the message at byte {message_offset}");
                return Err(PacketFault { code: "garbage", detail });
            }
            let context = VisitorContext { config, long_ids: ids };
            field_visitor::extract_fields(
                message,
                set.kind_by_template[message.template],
                message_offset,
                context,
                batch,
            );
            message_offset += length;
        }
        Ok(())
    }
}

#[cold]
fn packet_fault(fault: &MessageFault, offset: usize) -> PacketFault {
    PacketFault { code: fault.code.as_str(), detail: format!("{fault}, which begins at byte {offset}") }
}

/// Returns the start of the next message, after the bytes before it, and its limit.
#[inline(never)]
fn next_message_range(
    config: &HandlerConfig,
    payload: &[u8],
    offset: usize,
) -> Result<(usize, usize), PacketFault> {
    match config.packet_framing {
        PacketFraming::Number { bytes, skip, every: true, .. } => {
            let offset = offset + usize::from(bytes) + usize::from(skip);
            if offset >= payload.len() {
                return Err(PacketFault {
                    code: "truncated",
                    detail: format!("no message at byte {offset}"),
                });
            }
            Ok((offset, payload.len()))
        }
        PacketFraming::Length => read_length_prefix(payload, offset),
        PacketFraming::Header | PacketFraming::Number { .. } | PacketFraming::Plain => {
            Ok((offset, payload.len()))
        }
    }
}

/// Returns the range of a message that follows its length.
fn read_length_prefix(payload: &[u8], offset: usize) -> Result<(usize, usize), PacketFault> {
    let unread_bytes = &payload[offset..];
    let Some(stop) = unread_bytes.iter().take(5).position(|b| *b >= 0x80) else {
        return Err(PacketFault {
            code: "truncated",
            detail: format!("a length without end at byte {offset}"),
        });
    };
    let length = unread_bytes[..=stop].iter().fold(0u64, |n, b| n << 7 | u64::from(b & 0x7f));
    let body_start = offset + stop + 1;
    match usize::try_from(length)
        .ok()
        .and_then(|n| body_start.checked_add(n))
        .filter(|end| *end <= payload.len())
    {
        Some(end) if end > body_start => Ok((body_start, end)),
        Some(_) => {
            Err(PacketFault { code: "D12", detail: format!("a message without a byte at byte {offset}") })
        }
        None => Err(PacketFault {
            code: "truncated",
            detail: format!("the packet ends inside the message at byte {body_start}"),
        }),
    }
}
