//! Marks products stale though no message is known to be missing. The reasons: numbers that may have begun again
//! unseen, another sender, a book with an impossible level, and the end of all messages.

use super::MessageProcessor;
use crate::engine::context::{MessageContext, PacketContext, SequenceRange};
use crate::engine::market_event::{ChannelRole, MarketEvent, MarketEventSink};
use crate::engine::message_fields::NO_TIME;
use unitape_model::{InstrumentId, ProductId};

impl MessageProcessor {
    /// The book of an instrument is not the venue's: it needs a snapshot with all that has come until now. False where none
    /// will come.
    pub fn want_snapshot(&mut self, instrument: InstrumentId) -> bool {
        let product = self.products.instruments[instrument.index()].product;
        self.products.has_snapshots(product) && {
            self.products.want_snapshot(instrument);
            true
        }
    }

    /// An instrument has a level that cannot be.
    #[cold]
    #[inline(never)]
    pub fn mark_stale(
        &mut self,
        instrument: InstrumentId,
        around: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) {
        if self.want_snapshot(instrument) {
            out.emit(
                &around.event_context(&self.tables, NO_TIME),
                MarketEvent::Stale { instrument, mended: true },
            );
        }
    }

    /// A message whose number was there already, in a message or in a snapshot: whether the product's numbers have begun again
    /// with it, see `ProductRecoveryTable::has_restarted`.
    #[cold]
    #[inline(never)]
    pub fn detect_restart(
        &mut self,
        product: ProductId,
        sequence: u64,
        around: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) -> bool {
        if !self.products.has_restarted(product, sequence, around.of) {
            return false;
        }
        out.emit(&around.event_context(&self.tables, NO_TIME), MarketEvent::Restart);
        let (tables, mended) = (&self.tables, self.products.has_snapshots(product));
        self.products.restart(product, around.of.ts_recv, |instrument| {
            out.emit(&around.event_context(tables, NO_TIME), MarketEvent::Stale { instrument, mended });
        });
        true
    }

    /// Packets of a stream came on no line.
    #[cold]
    pub fn packets_lost(&mut self, of: &PacketContext, lost: SequenceRange, out: &mut impl MarketEventSink) {
        self.emit_for_packet(of, 0, MarketEvent::Lost { from: lost.first, to: lost.last }, out);
        if self.config.channels[of.channel.index()].role != ChannelRole::Incremental {
            return;
        }
        for product in self.products.ids() {
            if self.products.list[product.index()].stream != of.stream {
                continue;
            }
            if self.products.note_loss(product, of.ts_recv) {
                self.restart_unseen(product, of, false, out);
            }
            self.unnumbered_lost(product, &MessageContext::from_packet(of), out);
        }
    }

    /// Messages of a product are missing. Where its messages have no numbers, no gap will show that.
    #[cold]
    pub fn unnumbered_lost(
        &mut self,
        product: ProductId,
        around: &MessageContext<'_>,
        out: &mut impl MarketEventSink,
    ) {
        let of = &self.products.list[product.index()];
        let mended = self.products.has_snapshots(product);
        if of.next.is_some() || mended {
            return;
        }
        let live = |instrument: &&InstrumentId| self.products.instruments[instrument.index()].live;
        for &instrument in of.instruments.iter().filter(live) {
            out.emit(&around.event_context(&self.tables, NO_TIME), MarketEvent::Stale { instrument, mended });
        }
    }

    /// The numbers of a pair's snapshots have begun again, and those of products may have in packets that were lost before.
    #[cold]
    pub fn restart_after_losses(&mut self, pair: u16, of: &PacketContext, out: &mut impl MarketEventSink) {
        for product in self.products.ids() {
            if self.products.list[product.index()].pair == pair
                && self.products.may_have_restarted(product, of.ts_recv)
            {
                self.restart_unseen(product, of, true, out);
            }
        }
    }

    /// The numbers of a product may have begun again in packets that were lost, now or (`since`) lately.
    #[cold]
    fn restart_unseen(
        &mut self,
        product: ProductId,
        of: &PacketContext,
        since: bool,
        out: &mut impl MarketEventSink,
    ) {
        let (around, mended) = (MessageContext::from_packet(of), self.products.has_snapshots(product));
        let tables = &self.tables;
        self.products.restart_unseen(product, of.ts_recv, since, |instrument| {
            out.emit(&around.event_context(tables, NO_TIME), MarketEvent::Stale { instrument, mended });
        });
    }

    /// The first packet of a stream states that numbers begin with it. An earlier snapshot that includes messages
    /// then belongs to the numbers before.
    #[cold]
    #[inline(never)]
    pub fn begins_behind_snapshots(&mut self, of: &PacketContext, out: &mut impl MarketEventSink) {
        let channel = &self.config.channels[of.channel.index()];
        let (products, pair, origin) = (&self.products, channel.pair, of.origin);
        let before = |product: ProductId| {
            let known = &products.list[product.index()].instruments;
            products.may_be_of(product, pair, origin)
                && known.iter().any(|i| products.instruments[i.index()].has > 0)
        };
        if channel.role == ChannelRole::Incremental && products.ids().any(before) {
            self.restart(of, out);
        }
    }

    /// Nothing more will come: no book is known from here on, but all stay unchanged.
    pub fn close(&mut self, of: &PacketContext, out: &mut impl MarketEventSink) {
        let around = MessageContext::from_packet(of);
        for instrument in (0..self.products.instruments.len() as u32).map(InstrumentId) {
            if std::mem::take(&mut self.products.instruments[instrument.index()].live) {
                let stale = MarketEvent::Stale { instrument, mended: false };
                out.emit(&around.event_context(&self.tables, NO_TIME), stale);
            }
        }
    }
}
