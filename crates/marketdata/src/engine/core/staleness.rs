//! Marks products stale though no message is known to be missing. The reasons: numbers that may have begun again
//! unseen, another sender, a book with an impossible level, and the end of all messages.

use super::MessageProcessor;
use crate::engine::context::{MessageContext, PacketContext, SequenceRange};
use crate::engine::market_event::{ChannelRole, MarketEvent, MarketEventSink};
use crate::engine::message_fields::NO_TIME;
use unitape_model::{InstrumentId, ProductId};

impl MessageProcessor {
    /// Requests a snapshot for an instrument whose book differs from the venue's. The snapshot must include all
    /// messages received so far. Returns false if the feed has no snapshots for the product.
    pub fn want_snapshot(&mut self, instrument: InstrumentId) -> bool {
        let product = self.products.instruments[instrument.index()].product;
        self.products.has_snapshots(product) && {
            self.products.want_snapshot(instrument);
            true
        }
    }

    /// Marks an instrument as stale after an impossible level.
    #[cold]
    #[inline(never)]
    pub fn mark_stale(
        &mut self,
        instrument: InstrumentId,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) {
        if self.want_snapshot(instrument) {
            out.emit(
                &context.event_context(&self.tables, NO_TIME),
                MarketEvent::Stale { instrument, mended: true },
            );
        }
    }

    /// Detects whether a product's numbers have restarted, from a message whose number was already in a message or a
    /// snapshot. See `ProductRecoveryTable::has_restarted`.
    #[cold]
    #[inline(never)]
    pub fn detect_restart(
        &mut self,
        product: ProductId,
        sequence: u64,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) -> bool {
        if !self.products.has_restarted(product, sequence, context.packet) {
            return false;
        }
        out.emit(&context.event_context(&self.tables, NO_TIME), MarketEvent::Restart);
        let (tables, mended) = (&self.tables, self.products.has_snapshots(product));
        self.products.restart_product(product, context.packet.ts_recv, |instrument| {
            out.emit(&context.event_context(tables, NO_TIME), MarketEvent::Stale { instrument, mended });
        });
        true
    }

    /// Packets of a stream came on no line.
    #[cold]
    pub fn packets_lost(
        &mut self,
        packet_context: &PacketContext,
        lost_range: SequenceRange,
        out: &mut impl MarketEventSink,
    ) {
        self.emit_for_packet(
            packet_context,
            0,
            MarketEvent::Lost { from: lost_range.first, to: lost_range.last },
            out,
        );
        if self.config.channels[packet_context.channel.index()].role != ChannelRole::Incremental {
            return;
        }
        for product in self.products.ids() {
            if self.products.list[product.index()].stream != packet_context.stream {
                continue;
            }
            if self.products.note_loss(product, packet_context.ts_recv) {
                self.restart_unseen(product, packet_context, false, out);
            }
            self.unnumbered_lost(product, &MessageContext::from_packet(packet_context), out);
        }
    }

    /// Messages of a product are missing. Where its messages have no numbers, no gap will show that.
    #[cold]
    pub fn unnumbered_lost(
        &mut self,
        product: ProductId,
        context: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) {
        let tracked_product = &self.products.list[product.index()];
        let mended = self.products.has_snapshots(product);
        if tracked_product.next_number.is_some() || mended {
            return;
        }
        let is_live = |instrument: &&InstrumentId| self.products.instruments[instrument.index()].is_live;
        for &instrument in tracked_product.instruments.iter().filter(is_live) {
            out.emit(
                &context.event_context(&self.tables, NO_TIME),
                MarketEvent::Stale { instrument, mended },
            );
        }
    }

    /// Restarts the products of a pair whose snapshot numbers have restarted, if lost packets may have hidden a restart
    /// of the product's own numbers.
    #[cold]
    pub fn restart_after_losses(
        &mut self,
        pair: u16,
        packet_context: &PacketContext,
        out: &mut impl MarketEventSink,
    ) {
        for product in self.products.ids() {
            if self.products.list[product.index()].channel_pair == pair
                && self.products.may_have_restarted(product, packet_context.ts_recv)
            {
                self.restart_unseen(product, packet_context, true, out);
            }
        }
    }

    /// Handles a possible restart of a product's numbers in lost packets, now or (`since`) recently.
    #[cold]
    fn restart_unseen(
        &mut self,
        product: ProductId,
        packet_context: &PacketContext,
        since: bool,
        out: &mut impl MarketEventSink,
    ) {
        let (context, mended) =
            (MessageContext::from_packet(packet_context), self.products.has_snapshots(product));
        let tables = &self.tables;
        self.products.restart_unseen(product, packet_context.ts_recv, since, |instrument| {
            out.emit(&context.event_context(tables, NO_TIME), MarketEvent::Stale { instrument, mended });
        });
    }

    /// Handles the first packet of a stream that states the start of its numbers. An earlier snapshot that includes
    /// messages then belongs to the previous numbers.
    #[cold]
    #[inline(never)]
    pub fn begins_behind_snapshots(
        &mut self,
        packet_context: &PacketContext,
        out: &mut impl MarketEventSink,
    ) {
        let channel = &self.config.channels[packet_context.channel.index()];
        let (products, pair, origin) = (&self.products, channel.channel_pair, packet_context.origin);
        let before = |product: ProductId| {
            let instruments = &products.list[product.index()].instruments;
            products.may_be_of(product, pair, origin)
                && instruments.iter().any(|i| products.instruments[i.index()].last_in_book > 0)
        };
        if channel.role == ChannelRole::Incremental && products.ids().any(before) {
            self.restart_stream(packet_context, out);
        }
    }

    /// Marks all books as stale, because no more packets will arrive. The books stay unchanged.
    pub fn close(&mut self, packet_context: &PacketContext, out: &mut impl MarketEventSink) {
        let context = MessageContext::from_packet(packet_context);
        for instrument in (0..self.products.instruments.len() as u32).map(InstrumentId) {
            if std::mem::take(&mut self.products.instruments[instrument.index()].is_live) {
                let stale = MarketEvent::Stale { instrument, mended: false };
                out.emit(&context.event_context(&self.tables, NO_TIME), stale);
            }
        }
    }
}
