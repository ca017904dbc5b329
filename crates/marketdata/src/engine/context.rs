//! The context of a step: its packet and its message.

use super::market_event::{EventContext, ReferenceTables};
use super::message_fields::NO_TIME;
use unitape_model::{ChannelId, UnixNanos};

/// A stream, by its index in the engine. Every packet and product has this field, and many have no stream.
/// [`StreamId::NONE`] is therefore a number of its own: an `Option` would take twice the space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamId(u32);

impl StreamId {
    /// No stream, or an unknown stream.
    pub const NONE: Self = Self(u32::MAX);

    /// Makes the id of the entry with this index.
    #[inline]
    pub fn new(index: usize) -> Self {
        debug_assert!(index < u32::MAX as usize, "a place that means none");
        Self(index as u32)
    }

    /// Returns the index; beyond every table for `NONE`.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns whether the id is `NONE`.
    #[inline]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}

/// The context of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketContext {
    pub channel: ChannelId,
    pub line: u8,
    pub stream: StreamId,
    /// An id that all channels of a sender and partition share.
    pub origin: StreamId,
    pub ts_recv: i64,
    pub position: u64,
    /// The sender's clock.
    pub sent_ns: Option<i64>,
    /// The packet has the reset flag: numbers restart.
    pub has_reset: bool,
}

/// A step's surroundings, but for the tables.
#[derive(Clone, Copy)]
pub(super) struct MessageContext<'o> {
    pub packet: &'o PacketContext,
    /// The pair of channels, and whether the channel's messages are numbered by product.
    pub channel_pair: u16,
    pub is_incremental: bool,
    pub is_snapshot: bool,
    pub sequence: Option<u64>,
    pub ts: i64,
    pub message_offset: u32,
    pub message_length: u32,
}

impl<'o> MessageContext<'o> {
    /// Makes the context of a packet, without a message.
    pub fn from_packet(packet: &'o PacketContext) -> Self {
        let ts = packet.sent_ns.unwrap_or(packet.ts_recv);
        Self {
            packet,
            channel_pair: 0,
            is_incremental: false,
            is_snapshot: false,
            sequence: None,
            ts,
            message_offset: 0,
            message_length: 0,
        }
    }

    #[inline(always)]
    pub fn event_context<'t>(&self, tables: &'t ReferenceTables, ts: i64) -> EventContext<'t> {
        EventContext {
            tables,
            channel: self.packet.channel,
            line: self.packet.line,
            snapshot: self.is_snapshot,
            sequence: self.sequence,
            ts_event: UnixNanos(if ts == NO_TIME { self.ts } else { ts }),
            ts_recv: UnixNanos(self.packet.ts_recv),
            position: self.packet.position + u64::from(self.message_offset),
            length: self.message_length,
        }
    }
}

/// Numbers that are missing, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SequenceRange {
    pub first: u64,
    pub last: u64,
}
