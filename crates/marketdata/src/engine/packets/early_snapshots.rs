//! The engine keeps packets of snapshots, and uses them when a gap is noticed.

use super::Engine;
use crate::engine::config::DictionaryResetMode;
use crate::engine::context::PacketContext;
use crate::engine::framing::PacketBody;
use crate::engine::market_event::{
    ChannelRole, EventContext, LevelUpdate, MarketEvent, MarketEventSink, MessageOutcome,
};

impl Engine {
    /// Uses early snapshots of a pair: they arrived before the gap that was just noticed, and include its messages.
    #[cold]
    #[inline(never)]
    pub(super) fn use_early(&mut self, pair: u16, out: &mut impl MarketEventSink) {
        let early = std::mem::take(&mut self.early_snapshots[usize::from(pair)]);
        let old_count = self.core.products.counters.snapshots;
        for (packet, bytes) in early.latest_first() {
            if !self.core.products.needs_snapshots(pair) {
                break;
            }
            if packet.restarts != self.core.products.restarts {
                continue;
            }
            let channel = packet.context.channel;
            let open_result = self.packets.open(channel, bytes);
            let decode_result = open_result.and_then(|(_, body)| {
                self.packets.body(
                    channel,
                    PacketBody { payload: bytes, offset: body },
                    &mut self.core.long_ids,
                )
            });
            if decode_result.is_ok() {
                self.core.batch(
                    &self.packets.batch,
                    &packet.context,
                    bytes,
                    &mut SnapshotReplaySink(&mut *out),
                );
            }
        }
        self.core.products.counters.snapshots_early += self.core.products.counters.snapshots - old_count;
        self.early_snapshots[usize::from(pair)] = early;
    }

    /// Keeps a packet of snapshots for a gap that is noticed later.
    #[inline]
    pub(super) fn keep_early(&mut self, packet_context: &PacketContext, payload: &[u8]) {
        let channel = &self.config.channels[packet_context.channel.index()];
        if channel.role == ChannelRole::Snapshot && self.config.reset_mode != DictionaryResetMode::Never {
            let restarts = self.core.products.restarts;
            self.early_snapshots[usize::from(channel.channel_pair)].keep_packet(
                packet_context,
                restarts,
                payload,
                &self.config.recovery,
            );
        }
    }
}

/// Steps of a packet that was accounted for when it came.
struct SnapshotReplaySink<'s, S>(&'s mut S);

impl<S: MarketEventSink> MarketEventSink for SnapshotReplaySink<'_, S> {
    fn emit(&mut self, context: &EventContext<'_>, step: MarketEvent<'_>) {
        match step {
            // A bad message was of no use when it came, either.
            MarketEvent::Refused(_) => {}
            MarketEvent::End(_) => self.0.emit(context, MarketEvent::End(MessageOutcome::Early)),
            step => self.0.emit(context, step),
        }
    }

    fn emit_level(&mut self, context: &EventContext<'_>, level: &LevelUpdate) {
        self.0.emit_level(context, level);
    }
}
