//! IEX-TP 1: packets in a stream or a datagram, and the messages of a packet.
//!
//! ```text
//!  0         1          2          4         8         12        14      16            24         32          40
//! ┌─────────┬──────────┬──────────┬─────────┬─────────┬─────────┬───────┬─────────────┬──────────┬───────────┬──
//! │ version │ reserved │ protocol │ channel │ session │ payload │ count │   stream    │ sequence │ send time │ …
//! │   = 1   │          │          │         │         │  bytes  │       │   offset    │          │           │
//! └─────────┴──────────┴──────────┴─────────┴─────────┴─────────┴───────┴─────────────┴──────────┴───────────┴──
//!     u8         u8        u16        u32       u32       u16      u16        i64          i64        i64
//! ```
//!
//! (IEX Transport Specification, "Outbound Segment".) `sequence` is the number of the first message of the
//! packet. Each further message has the next number. A packet without messages is a heartbeat; its `sequence` is the
//! number of the message that comes next. Numbers begin with 1 in each session of a channel. A datagram holds one
//! packet; a stream has packets back to back.

use super::fault::{IexFault, IexFaultCode};
use unitape_base::{NextFrame, Span};

/// Bytes before the first message of a packet.
pub const PACKET_HEAD_BYTES: usize = 40;

/// Bytes that are no packet are reported in pieces of this size, at most.
pub const GARBAGE_BYTES_MAX: usize = 64 << 10;

/// The message protocol of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IexProtocol {
    /// TOPS 1.6: best bid and offer, last sale.
    Tops,
    /// DEEP 1.0: the sizes at all prices, last sale.
    Deep,
    /// DEEP+ 1.0: all displayed orders.
    DeepPlus,
}

impl IexProtocol {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tops, Self::Deep, Self::DeepPlus];

    /// Looks up a protocol by its message protocol id; `None` for an unknown id.
    #[must_use]
    pub const fn from_id(id: u16) -> Option<Self> {
        match id {
            0x8003 => Some(Self::Tops),
            0x8004 => Some(Self::Deep),
            0x8005 => Some(Self::DeepPlus),
            _ => None,
        }
    }

    /// Returns the message protocol id.
    #[must_use]
    pub const fn id(self) -> u16 {
        match self {
            Self::Tops => 0x8003,
            Self::Deep => 0x8004,
            Self::DeepPlus => 0x8005,
        }
    }

    /// Returns the protocol's word in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tops => "tops",
            Self::Deep => "deep",
            Self::DeepPlus => "deep_plus",
        }
    }

    /// Returns the protocol's name and version as IEX writes them.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tops => "TOPS 1.6",
            Self::Deep => "DEEP 1.0",
            Self::DeepPlus => "DEEP+ 1.0",
        }
    }
}

/// The head of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IexPacketHeader {
    /// The protocol of its messages.
    pub protocol: IexProtocol,
    /// The stream of bytes that it is a part of.
    pub channel: u32,
    /// The session of the channel, a trading day.
    pub session: u32,
    /// Bytes behind the head.
    pub payload_bytes: u16,
    /// Messages in them; 0 in a heartbeat.
    pub messages: u16,
    /// Bytes of the session before this packet's payload.
    pub stream_offset: u64,
    /// Number of its first message, or of the next one in a heartbeat.
    pub sequence: u64,
    /// When it was sent, nanoseconds since 1970.
    pub send_time_ns: i64,
}

impl IexPacketHeader {
    /// Parses the packet head at the start of `bytes`. Returns `None` for fewer than 40 bytes, an unknown version or
    /// an unknown protocol.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let head = bytes.first_chunk::<PACKET_HEAD_BYTES>()?;
        let protocol = IexProtocol::from_id(u16_at(head, 2)).filter(|_| head[0] == VERSION)?;
        Some(Self {
            protocol,
            channel: u32_at(head, 4),
            session: u32_at(head, 8),
            payload_bytes: u16_at(head, 12),
            messages: u16_at(head, 14),
            stream_offset: u64_at(head, 16),
            sequence: u64_at(head, 24),
            send_time_ns: u64_at(head, 32) as i64,
        })
    }

    /// Appends the head to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[VERSION, 0]);
        out.extend_from_slice(&self.protocol.id().to_le_bytes());
        out.extend_from_slice(&self.channel.to_le_bytes());
        out.extend_from_slice(&self.session.to_le_bytes());
        out.extend_from_slice(&self.payload_bytes.to_le_bytes());
        out.extend_from_slice(&self.messages.to_le_bytes());
        out.extend_from_slice(&self.stream_offset.to_le_bytes());
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&self.send_time_ns.to_le_bytes());
    }

    /// Returns whether the head is credible among other bytes: its numbers must fit each other.
    fn is_plausible(&self) -> bool {
        let (bytes, messages) = (usize::from(self.payload_bytes), usize::from(self.messages));
        if messages == 0 { bytes == 0 } else { bytes >= messages * 3 }
    }
}

/// A packet and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IexPacket {
    /// Its head.
    pub header: IexPacketHeader,
    /// The packet from its head on, as far as the input has it.
    pub span: Span,
}

/// The next packet of the input.
pub type NextIexPacket = NextFrame<IexPacket, IexFault>;

/// Finds packets.
#[derive(Debug, Clone, Copy, Default)]
pub struct IexFramer;

impl IexFramer {
    /// Finds the packet at `offset`; `eof` must be true if no more bytes follow `buf`.
    #[must_use]
    pub fn frame(&self, buf: &[u8], offset: usize, eof: bool) -> NextIexPacket {
        let packet_bytes = buf.get(offset..).unwrap_or_default();
        let Some(header) = IexPacketHeader::read(packet_bytes) else {
            return skip_bad_bytes(buf, offset, eof);
        };
        let packet_end = offset + PACKET_HEAD_BYTES + usize::from(header.payload_bytes);
        if packet_end > buf.len() && !eof {
            return NextIexPacket::Incomplete { from: offset, need: packet_end };
        }
        NextIexPacket::Message(IexPacket {
            header,
            span: Span { start: offset, end: packet_end.min(buf.len()) },
        })
    }

    /// Returns an offset in `buf` with only whole packets before it; `buf` must begin at a packet.
    #[must_use]
    pub fn cut(&self, buf: &[u8]) -> usize {
        let mut offset = 0;
        loop {
            offset = match self.frame(buf, offset, false) {
                NextIexPacket::Message(packet) => packet.span.end,
                NextIexPacket::Bad { span, .. } => span.end,
                NextIexPacket::Incomplete { from, .. } => return from,
                NextIexPacket::End => return buf.len(),
            };
        }
    }
}

/// A part of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IexPacketPart {
    /// A message of any type.
    Message {
        /// The message with the two bytes of its length.
        span: Span,
        /// Its number in its session.
        sequence: u64,
    },
    /// The packet ends before its last message does. No part follows.
    Truncated {
        /// What is left of the packet; empty if it ends between two messages.
        span: Span,
        /// Number of the first message that is missing.
        sequence: u64,
        /// The fault.
        fault: IexFault,
    },
    /// Bytes of the payload behind the last message. No part follows.
    Behind(Span),
}

/// The parts of a packet in their order; see [`IexPacket::parts`].
#[derive(Debug, Clone)]
pub struct IexPacketParts<'b> {
    buf: &'b [u8],
    packet: IexPacket,
    /// The next byte.
    offset: usize,
    /// Messages that were found.
    message_count: u16,
    is_finished: bool,
}

impl IexPacket {
    /// Iterates over the packet's messages and faults; `buf` must be the buffer in which the packet was found.
    #[must_use]
    pub fn parts<'b>(&self, buf: &'b [u8]) -> IexPacketParts<'b> {
        let offset = self.span.start + PACKET_HEAD_BYTES;
        IexPacketParts {
            buf: &buf[..self.span.end],
            packet: *self,
            offset,
            message_count: 0,
            is_finished: false,
        }
    }
}

impl Iterator for IexPacketParts<'_> {
    type Item = IexPacketPart;

    fn next(&mut self) -> Option<IexPacketPart> {
        let IexPacket { header, span } = self.packet;
        let remaining_span = Span { start: self.offset, end: span.end };
        if self.is_finished {
            return None;
        }
        if self.message_count == header.messages {
            self.is_finished = true;
            let is_cut = span.len() < PACKET_HEAD_BYTES + usize::from(header.payload_bytes);
            return match remaining_span.is_empty() {
                true if is_cut => Some(self.truncated_part(remaining_span)),
                true => None,
                false => Some(IexPacketPart::Behind(remaining_span)),
            };
        }
        let length =
            self.buf[self.offset..].first_chunk().map(|length| usize::from(u16::from_le_bytes(*length)));
        let end = length.map(|length| self.offset + 2 + length).filter(|end| *end <= span.end);
        let Some(end) = end else {
            self.is_finished = true;
            return Some(self.truncated_part(remaining_span));
        };
        let part = IexPacketPart::Message { span: Span { end, ..remaining_span }, sequence: self.sequence() };
        (self.offset, self.message_count) = (end, self.message_count + 1);
        Some(part)
    }
}

impl IexPacketParts<'_> {
    fn sequence(&self) -> u64 {
        self.packet.header.sequence.wrapping_add(self.message_count.into())
    }

    #[cold]
    fn truncated_part(&self, span: Span) -> IexPacketPart {
        let IexPacketHeader { messages, payload_bytes, .. } = self.packet.header;
        let bytes = self.packet.span.len() - PACKET_HEAD_BYTES;
        let detail = format!(
            "{messages} messages in {payload_bytes} bytes are stated, {} in {bytes} bytes are there",
            self.message_count
        );
        let fault = IexFault::new(IexFaultCode::Truncated, detail);
        IexPacketPart::Truncated { span, sequence: self.sequence(), fault }
    }
}

/// The version of IEX-TP.
const VERSION: u8 = 1;

/// Refuses the bytes at `offset` up to the next packet.
#[cold]
fn skip_bad_bytes(buf: &[u8], offset: usize, eof: bool) -> NextIexPacket {
    let bytes_after = buf.get(offset..).unwrap_or_default();
    if bytes_after.len() < PACKET_HEAD_BYTES {
        return match eof {
            false => NextIexPacket::Incomplete { from: offset, need: offset + PACKET_HEAD_BYTES },
            true if bytes_after.is_empty() => NextIexPacket::End,
            true => {
                let detail = "the input ends inside the head of a packet";
                let fault = IexFault::new(IexFaultCode::Truncated, detail);
                NextIexPacket::Bad { span: Span { start: offset, end: buf.len() }, fault }
            }
        };
    }
    let fault = match bytes_after {
        [VERSION, 0, low, high, ..] if high & 0x80 != 0 => {
            let id = u16::from_le_bytes([*low, *high]);
            let detail = format!("message protocol {id:#06x} is none of TOPS 1.6, DEEP 1.0 and DEEP+ 1.0");
            IexFault::new(IexFaultCode::UnknownProtocol, detail)
        }
        _ => IexFault::new(IexFaultCode::Garbage, "no packet of IEX-TP 1 begins here"),
    };
    let last_offset = bytes_after.len() - PACKET_HEAD_BYTES;
    for skipped in 1..=last_offset.min(GARBAGE_BYTES_MAX) {
        let begins = skipped == GARBAGE_BYTES_MAX
            || IexPacketHeader::read(&bytes_after[skipped..]).is_some_and(|header| header.is_plausible());
        if begins {
            return NextIexPacket::Bad { span: Span { start: offset, end: offset + skipped }, fault };
        }
    }
    if !eof {
        return NextIexPacket::Incomplete { from: offset, need: buf.len() + 1 };
    }
    let garbage_end = buf.len().min(offset + GARBAGE_BYTES_MAX);
    NextIexPacket::Bad { span: Span { start: offset, end: garbage_end }, fault }
}

fn u16_at(head: &[u8; PACKET_HEAD_BYTES], offset: usize) -> u16 {
    u16::from_le_bytes([head[offset], head[offset + 1]])
}

fn u32_at(head: &[u8; PACKET_HEAD_BYTES], offset: usize) -> u32 {
    u32::from_le_bytes(*head[offset..].first_chunk().expect("inside the head"))
}

fn u64_at(head: &[u8; PACKET_HEAD_BYTES], offset: usize) -> u64 {
    u64::from_le_bytes(*head[offset..].first_chunk().expect("inside the head"))
}
