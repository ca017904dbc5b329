//! Signs that a product is not at its numbers: copies, other senders, numbers that begin again unseen.

use super::{ProductRecoveryTable, TrackedProduct};
use crate::engine::context::{PacketContext, StreamId};
use unitape_model::{InstrumentId, ProductId};

impl TrackedProduct {
    /// Returns whether no message with this number or a later number has arrived.
    fn may_be_new(&self, sequence: u64) -> bool {
        self.stream.is_none() || self.next_number.is_none_or(|next| sequence >= next)
    }
}

impl ProductRecoveryTable {
    /// Requests a snapshot for an instrument whose book differs from the venue's. The snapshot must include all
    /// messages received so far.
    pub fn want_snapshot(&mut self, instrument: InstrumentId) {
        let i = &mut self.instruments[instrument.index()];
        let (product, tracked_product) = (i.product, &mut self.list[i.product.index()]);
        i.snapshot_min =
            i.snapshot_min.max(tracked_product.next_number.map_or(0, |next| next.saturating_sub(1)));
        i.levels = [0; 2];
        if std::mem::take(&mut i.is_live) && !i.is_delisted {
            tracked_product.stale_instruments += 1;
            self.set_not_whole(product);
        }
    }

    /// Messages of the product come on another stream, as far as that is known.
    pub fn is_elsewhere(&self, product: ProductId, stream: StreamId) -> bool {
        let current_stream = self.list[product.index()].stream;
        current_stream != stream && !current_stream.is_none() && !stream.is_none()
    }

    /// Decides whether a product's numbers have restarted, when a message repeats a number. Most such messages are
    /// copies. But a venue may continue from another sender, or restart its numbers without notice.
    ///
    /// unitape believes two such messages in a row if they came long after all others, or if another sender sent them
    /// after the others. It believes one message if another sender announces the restart, or if the message is no copy
    /// but has a number that an earlier snapshot included.
    pub fn has_restarted(&mut self, product: ProductId, sequence: u64, from: &PacketContext) -> bool {
        let elsewhere = self.is_elsewhere(product, from.stream);
        let in_snapshot = self.is_in_earlier_snapshot(product, sequence, from);
        let tracked_product = &mut self.list[product.index()];
        if in_snapshot && tracked_product.may_be_new(sequence) {
            return true;
        }
        let later =
            from.sent_ns.zip(tracked_product.sent_ns).map(|(sent, before)| sent.saturating_sub(before));
        if elsewhere && from.has_reset && later.is_none_or(|later| later > 0) {
            return true;
        }
        let silent = from.ts_recv.saturating_sub(tracked_product.heard_ns) > self.settle_ns;
        let after = elsewhere && later.is_some_and(|later| later > self.window_ns);
        tracked_product.odd_messages =
            if silent || after || in_snapshot { tracked_product.odd_messages + 1 } else { 0 };
        tracked_product.odd_messages > 1
    }

    /// Returns whether an earlier snapshot includes this number, so that the snapshot has other numbers than the
    /// message. Differing clocks of senders and a slow line must not produce this result. The usual case is a copy from
    /// the slow line.
    pub fn is_in_earlier_snapshot(&self, product: ProductId, sequence: u64, from: &PacketContext) -> bool {
        let tracked_product = &self.list[product.index()];
        if tracked_product.snapshot_last == 0 || sequence > tracked_product.snapshot_last {
            return false;
        }
        let (received, sent) = tracked_product.snapshot_at;
        let may_be_new = tracked_product.may_be_new(sequence);
        match from.sent_ns.zip(sent) {
            Some((sent, before)) => {
                sent.saturating_sub(before) > if may_be_new { self.window_ns } else { self.settle_ns }
            }
            None => may_be_new && from.ts_recv.saturating_sub(received) > self.settle_ns,
        }
    }

    /// Notes since when a packet of a stream lies aside, or `None` when its meaning is known.
    #[cold]
    pub fn set_aside_since(&mut self, stream: StreamId, since: Option<i64>) {
        self.list
            .iter_mut()
            .filter(|tracked_product| tracked_product.stream == stream)
            .for_each(|tracked_product| tracked_product.aside_since = since);
    }

    /// Notes lost packets of the stream that carries a product's messages. Returns whether the product's numbers may
    /// have restarted in them, as those of its snapshots have.
    pub fn note_loss(&mut self, product: ProductId, now: i64) -> bool {
        let settle_ns = self.settle_ns;
        let tracked_product = &mut self.list[product.index()];
        (tracked_product.last_loss, tracked_product.explained) = (Some(now), tracked_product.next_number);
        tracked_product.next_number.is_some()
            && tracked_product.early_since_ns.is_some_and(|since| now.saturating_sub(since) <= settle_ns)
    }

    /// Returns whether a product's numbers may have restarted unseen, in lost packets. The caller has seen that the
    /// numbers of its snapshots restarted.
    pub fn may_have_restarted(&self, product: ProductId, now: i64) -> bool {
        let tracked_product = &self.list[product.index()];
        tracked_product.early_since_ns.is_some()
            && tracked_product.last_loss.is_some_and(|since| now.saturating_sub(since) <= self.settle_ns)
    }

    /// Restarts a product whose numbers seem to have restarted unseen. `since` says whether the last message has a new
    /// number; then a snapshot must include it.
    pub fn restart_unseen(
        &mut self,
        product: ProductId,
        now: i64,
        since: bool,
        each: impl FnMut(InstrumentId),
    ) {
        let expected_number = self.list[product.index()].next_number.filter(|_| since);
        self.restart_product(product, now, each);
        let tracked_product = &mut self.list[product.index()];
        // Its snapshots have the new numbers already.
        (tracked_product.restarted, tracked_product.early_since_ns) = (None, None);
        if let Some(expected_number) = expected_number {
            tracked_product.next_number = Some(expected_number);
            self.require_snapshot_from(product, expected_number.saturating_sub(1));
        }
    }

    /// Returns whether a product known only by snapshots may belong to the incremental channel of this pair and origin.
    /// A venue may send snapshots under another name than its other messages.
    pub fn may_be_of(&self, product: ProductId, pair: u16, origin: StreamId) -> bool {
        let tracked_product = &self.list[product.index()];
        let named = |p: &TrackedProduct| {
            p.channel_pair == pair && !p.stream.is_none() && p.origin == tracked_product.origin
        };
        tracked_product.stream.is_none()
            && tracked_product.channel_pair == pair
            && (tracked_product.is_from(origin) || !self.list.iter().any(named))
    }
}
