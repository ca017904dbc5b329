//! Signs that a product is not at its numbers: copies, other senders, numbers that begin again unseen.

use super::{ProductRecoveryTable, TrackedProduct};
use crate::engine::context::{PacketContext, StreamId};
use unitape_model::{InstrumentId, ProductId};

impl TrackedProduct {
    /// Whether no message with this number has come, nor one after it.
    fn may_be_new(&self, sequence: u64) -> bool {
        self.stream.is_none() || self.next.is_none_or(|next| sequence >= next)
    }
}

impl ProductRecoveryTable {
    /// The book of an instrument is not the venue's: it needs a snapshot with all that has come until now.
    pub fn want_snapshot(&mut self, instrument: InstrumentId) {
        let i = &mut self.instruments[instrument.index()];
        let (product, of) = (i.product, &mut self.list[i.product.index()]);
        i.need = i.need.max(of.next.map_or(0, |next| next.saturating_sub(1)));
        i.levels = [0; 2];
        if std::mem::take(&mut i.live) && !i.gone {
            of.stale += 1;
            self.set_not_whole(product);
        }
    }

    /// Messages of the product come on another stream, as far as that is known.
    pub fn is_elsewhere(&self, product: ProductId, stream: StreamId) -> bool {
        let at = self.list[product.index()].stream;
        at != stream && !at.is_none() && !stream.is_none()
    }

    /// A message has come whose number was there already. Most are copies, but a venue may continue from another
    /// sender, or restart their numbers without a word: two in a row that came long after all others, or that another
    /// sender sent after them, are believed; one of another sender that says so is believed at once, and so is one
    /// that is no copy but has a number that a snapshot had before it.
    pub fn has_restarted(&mut self, product: ProductId, sequence: u64, from: &PacketContext) -> bool {
        let elsewhere = self.is_elsewhere(product, from.stream);
        let in_snapshot = self.is_in_earlier_snapshot(product, sequence, from);
        let of = &mut self.list[product.index()];
        if in_snapshot && of.may_be_new(sequence) {
            return true;
        }
        let later = from.sent.zip(of.sent).map(|(sent, before)| sent.saturating_sub(before));
        if elsewhere && from.reset && later.is_none_or(|later| later > 0) {
            return true;
        }
        let silent = from.ts_recv.saturating_sub(of.heard) > self.settle_ns;
        let after = elsewhere && later.is_some_and(|later| later > self.window_ns);
        of.odd = if silent || after || in_snapshot { of.odd + 1 } else { 0 };
        of.odd > 1
    }

    /// Whether a snapshot has this number that was sent before the message: then the snapshot counts otherwise. Senders whose
    /// clocks differ, and lines of which one is slow, must not make it so. A copy that the slow line brings is the usual case.
    pub fn is_in_earlier_snapshot(&self, product: ProductId, sequence: u64, from: &PacketContext) -> bool {
        let of = &self.list[product.index()];
        if of.snapshot_last == 0 || sequence > of.snapshot_last {
            return false;
        }
        let (received, sent) = of.snapshot_at;
        let may_be_new = of.may_be_new(sequence);
        match from.sent.zip(sent) {
            Some((sent, before)) => {
                sent.saturating_sub(before) > if may_be_new { self.window_ns } else { self.settle_ns }
            }
            None => may_be_new && from.ts_recv.saturating_sub(received) > self.settle_ns,
        }
    }

    /// A packet of a stream lies aside since then, or its meaning has become known.
    #[cold]
    pub fn set_aside_since(&mut self, stream: StreamId, since: Option<i64>) {
        self.list.iter_mut().filter(|of| of.stream == stream).for_each(|of| of.aside = since);
    }

    /// Packets of the stream that a product's messages come from were lost. Whether its numbers may have begun again in them:
    /// those of its snapshots have.
    pub fn note_loss(&mut self, product: ProductId, now: i64) -> bool {
        let settle_ns = self.settle_ns;
        let of = &mut self.list[product.index()];
        (of.lost, of.explained) = (Some(now), of.next);
        of.next.is_some() && of.early.is_some_and(|since| now.saturating_sub(since) <= settle_ns)
    }

    /// The numbers of a product's snapshots have begun again. Whether its own may have, unseen: packets with them were lost.
    pub fn may_have_restarted(&self, product: ProductId, now: i64) -> bool {
        let of = &self.list[product.index()];
        of.early.is_some() && of.lost.is_some_and(|since| now.saturating_sub(since) <= self.settle_ns)
    }

    /// A product's numbers have begun again, unseen, as far as unitape can see. `since` says whether the last message
    /// is of the new numbers: then a snapshot must include it.
    pub fn restart_unseen(
        &mut self,
        product: ProductId,
        now: i64,
        since: bool,
        each: impl FnMut(InstrumentId),
    ) {
        let next = self.list[product.index()].next.filter(|_| since);
        self.restart(product, now, each);
        let of = &mut self.list[product.index()];
        // Its snapshots have the new numbers already.
        (of.restarted, of.early) = (None, None);
        if let Some(next) = next {
            of.next = Some(next);
            self.require_snapshot_from(product, next.saturating_sub(1));
        }
    }

    /// Whether a product that is known by snapshots alone may be of the incremental channel of this pair and origin. A venue
    /// may send snapshots under another name than the rest.
    pub fn may_be_of(&self, product: ProductId, pair: u16, origin: StreamId) -> bool {
        let of = &self.list[product.index()];
        let named = |p: &TrackedProduct| p.pair == pair && !p.stream.is_none() && p.origin == of.origin;
        of.stream.is_none() && of.pair == pair && (of.is_from(origin) || !self.list.iter().any(named))
    }
}
