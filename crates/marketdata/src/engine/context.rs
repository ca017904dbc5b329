//! The context of a step: its packet and its message.

use super::market_event::{EventContext, ReferenceTables};
use super::message_fields::NO_TIME;
use unitape_model::{ChannelId, UnixNanos};

/// A stream, by its place among those of the engine. It is with every packet and product, and many are of none: so
/// [`StreamId::NONE`] is a number of its own, where an `Option` would take twice the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamId(u32);

impl StreamId {
    /// No stream, or one that is not known.
    pub const NONE: Self = Self(u32::MAX);

    /// The one at this place.
    #[inline]
    pub fn new(index: usize) -> Self {
        debug_assert!(index < u32::MAX as usize, "a place that means none");
        Self(index as u32)
    }

    /// Its place; beyond all where it is none.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Whether it is none.
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
    /// One id for all channels of a sender and partition.
    pub origin: StreamId,
    pub ts_recv: i64,
    pub place: u64,
    /// The sender's clock.
    pub sent: Option<i64>,
    /// It says that numbers begin again.
    pub reset: bool,
}

/// A step's surroundings, but for the tables.
#[derive(Clone, Copy)]
pub(super) struct MessageContext<'o> {
    pub of: &'o PacketContext,
    /// Its pair of channels, and whether the channel's messages are numbered by product.
    pub pair: u16,
    pub incremental: bool,
    pub snapshot: bool,
    pub sequence: Option<u64>,
    pub ts: i64,
    pub at: u32,
    pub length: u32,
}

impl<'o> MessageContext<'o> {
    /// The context of a packet, without a message.
    pub fn from_packet(of: &'o PacketContext) -> Self {
        let ts = of.sent.unwrap_or(of.ts_recv);
        Self { of, pair: 0, incremental: false, snapshot: false, sequence: None, ts, at: 0, length: 0 }
    }

    #[inline(always)]
    pub fn event_context<'t>(&self, tables: &'t ReferenceTables, ts: i64) -> EventContext<'t> {
        EventContext {
            tables,
            channel: self.of.channel,
            line: self.of.line,
            snapshot: self.snapshot,
            sequence: self.sequence,
            ts_event: UnixNanos(if ts == NO_TIME { self.ts } else { ts }),
            ts_recv: UnixNanos(self.of.ts_recv),
            place: self.of.place + u64::from(self.at),
            length: self.length,
        }
    }
}

/// Numbers that are missing, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SequenceRange {
    pub first: u64,
    pub last: u64,
}
