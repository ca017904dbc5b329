//! Products: the order of their messages, and how they come back when some are missing.
//!
//! ```text
//!  messages   41 42 43 . . 46 47 48 49          46 shows that 44 and 45 are missing: all books are stale
//!  kept                    46 47 48 49          what comes waits
//!  snapshot                      47             of one instrument, with all up to 47 in it: its book is the snapshot,
//!                                               then its levels of 48 and 49, and from there on as they come
//! ```
//!
//! A snapshot covers the gap of its instrument if the last message it includes is not before the last missing one; an
//! older snapshot is ignored. A product is whole again when all its instruments are. Without reference data, its
//! instruments are known when the snapshots have come round once.
//!
//! Waiting levels are bounded, by product and over all. If some fall out, unitape reports it, and the snapshots must
//! include them.

use super::config::{ArbitrationWindow, RecoverySettings};
use super::context::{PacketContext, SequenceRange, StreamId};
use super::ids::NativeId;
use super::message_fields::EntryFields;
use super::plan::DepthSource;
use super::stats::ProductCounters;
use std::collections::VecDeque;
use unitape_model::{InstrumentId, ProductId};

mod renumbering;

/// An instrument, while levels are applied.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackedInstrument {
    pub product: ProductId,
    /// Its levels are whole.
    pub live: bool,
    /// Snapshots mend it.
    pub mended: bool,
    /// How many levels it has is known, as far as it will be; see [`TrackedProduct::deep`].
    pub deep: bool,
    /// It is no longer traded; it is not waited for.
    pub gone: bool,
    /// Messages up to this one are in its book.
    pub has: u64,
    /// A snapshot must have at least this one in it.
    pub need: u64,
    /// Its last level that waits, one more; 0 for none.
    tail: u64,
    /// The number of levels of a side, if they are counted.
    pub levels: [u16; 2],
    /// The maximum number; 0 for no bound.
    pub depth: u16,
}

#[cfg(test)]
impl TrackedInstrument {
    /// An instrument with this many levels a side, for tests of levels alone.
    pub fn with_depth(depth: u16) -> Self {
        let (product, live, mended, deep, gone) = (ProductId(0), true, true, true, false);
        Self { product, live, mended, deep, gone, has: 0, need: 0, tail: 0, levels: [0; 2], depth }
    }
}

/// A product.
#[derive(Clone, Debug)]
pub(super) struct TrackedProduct {
    /// Its pair of channels.
    pub pair: u16,
    /// The stream that its last message came from.
    pub stream: StreamId,
    /// Its sender and partition, if known.
    pub(super) origin: StreamId,
    /// When the last message was received, or the snapshot that replaces it, and when it was sent.
    pub(super) heard: i64,
    pub(super) sent: Option<i64>,
    /// Messages in a row whose numbers may have begun again.
    pub(super) odd: u8,
    /// Its state, and the message that set it.
    pub state: (NativeId, u64),
    /// The next message, none before the first.
    pub next: Option<u64>,
    /// The last message that is known to be missing before those that came in a row.
    pub need: u64,
    /// Its instruments.
    pub instruments: Vec<InstrumentId>,
    /// The number of them that are not live.
    pub stale: u32,
    /// All of its instruments are known and live.
    pub whole: bool,
    /// How many levels it has is known, as far as it will be: a book whose lowest levels fall out unseen is not the venue's.
    pub deep: bool,
    /// Reference data define its instruments.
    pub defined: bool,
    /// Books begin empty: what is not known yet needs no snapshot.
    pub begun: bool,
    /// The first instrument whose snapshot came since it is not whole: when it comes again, all have come.
    round: Option<InstrumentId>,
    pub rounded: bool,
    /// Since when its numbers have begun again, and those of snapshots not yet, as far as is known: what is ahead may still be
    /// of the old ones.
    pub(super) restarted: Option<i64>,
    /// The other way round: snapshots are of numbers that have not come yet.
    pub(super) early: Option<i64>,
    /// The last message that a snapshot had in it; 0 for none.
    pub(super) snapshot_last: u64,
    /// When the first snapshot with that message was received, and when it was sent.
    pub(super) snapshot_at: (i64, Option<i64>),
    /// When packets of its stream were last lost.
    pub(super) lost: Option<i64>,
    /// The first message of a gap that was already reported: as lost packets when it was the next, or as a refused
    /// message.
    pub(super) explained: Option<u64>,
    /// Since when a packet of its stream lies aside, which may be the first of other numbers.
    pub(super) aside: Option<i64>,
    waits: VecDeque<WaitingLevel>,
    /// The number of the first that waits.
    base: u64,
    pub no_room: bool,
}

/// A level that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingLevel {
    pub entry: EntryFields,
    pub sequence: u64,
    pub time: i64,
    instrument: InstrumentId,
    /// The one of this instrument before it, one more.
    before: u64,
}

/// The verdict on a message's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SequenceOutcome {
    /// It is the next, or has no number.
    Next,
    /// These are missing before it.
    Missing(SequenceRange),
    /// It is the first of all, and the books begin empty.
    Begins,
    /// It was here already.
    Old,
    /// A snapshot that was sent before it has its number already: see [`ProductRecoveryTable::has_restarted`].
    InSnapshot,
}

/// All products.
#[derive(Clone, Debug)]
pub(super) struct ProductRecoveryTable {
    bounds: RecoverySettings,
    /// Products or instruments wait for their definition.
    depth_source: DepthSource,
    /// Within this time both channels of a pair restart their numbers.
    pub(super) settle_ns: i64,
    /// A message that was sent this much later is no copy.
    pub(super) window_ns: i64,
    pub list: Vec<TrackedProduct>,
    pub instruments: Vec<TrackedInstrument>,
    /// By pair: products that are not whole.
    pub wanting: Vec<u32>,
    /// By pair: whether it has snapshots.
    snapshots: Vec<bool>,
    waiting: usize,
    /// The pair of the gap that was noticed last, until somebody has looked for snapshots that cover it.
    pub gap_of: Option<u16>,
    /// The number of restarts of any product's numbers.
    pub restarts: u64,
    pub counters: ProductCounters,
}

impl TrackedProduct {
    /// Whether it is of this sender and partition, or may be.
    pub fn is_from(&self, origin: StreamId) -> bool {
        self.origin == origin || self.origin.is_none()
    }

    /// Its snapshots are of this sender and partition, and so is all of it until messages show otherwise.
    pub fn note_snapshot_origin(&mut self, origin: StreamId) {
        if self.stream.is_none() {
            self.origin = origin;
        }
    }
}

impl ProductRecoveryTable {
    pub fn new(
        bounds: RecoverySettings,
        window: ArbitrationWindow,
        snapshots: Vec<bool>,
        depth_source: DepthSource,
    ) -> Self {
        Self {
            bounds,
            depth_source,
            settle_ns: window.dead_ns,
            window_ns: window.ns,
            list: Vec::new(),
            instruments: Vec::new(),
            wanting: vec![0; snapshots.len()],
            snapshots,
            waiting: 0,
            gap_of: None,
            restarts: 0,
            counters: ProductCounters::default(),
        }
    }

    /// A product that is seen for the first time.
    pub fn open(&mut self, pair: u16) -> Option<ProductId> {
        if self.list.len() >= self.bounds.products {
            return None;
        }
        let whole = !self.snapshots[usize::from(pair)];
        self.list.push(TrackedProduct {
            pair,
            stream: StreamId::NONE,
            origin: StreamId::NONE,
            heard: 0,
            sent: None,
            odd: 0,
            state: (NativeId::NONE, 0),
            next: None,
            need: 0,
            instruments: Vec::new(),
            stale: 0,
            whole,
            deep: whole || self.depth_source != DepthSource::OfProducts,
            defined: false,
            begun: whole,
            round: None,
            rounded: false,
            restarted: None,
            early: None,
            snapshot_last: 0,
            snapshot_at: (0, None),
            lost: None,
            explained: None,
            aside: None,
            waits: VecDeque::new(),
            base: 0,
            no_room: false,
        });
        self.wanting[usize::from(pair)] += u32::from(!whole);
        Some(ProductId(self.list.len() as u32 - 1))
    }

    /// An instrument that is seen for the first time; none beyond the bound.
    pub fn open_instrument(&mut self, product: ProductId, depth: u16) -> Option<InstrumentId> {
        if self.instruments.len() >= self.bounds.instruments {
            return None;
        }
        let of = &mut self.list[product.index()];
        let (need, levels, mended) = (of.need, [0; 2], self.snapshots[usize::from(of.pair)]);
        let deep = !mended || self.depth_source != DepthSource::OfInstruments;
        let live = of.begun && deep;
        let index = InstrumentId(self.instruments.len() as u32);
        of.instruments.push(index);
        self.instruments.push(TrackedInstrument {
            product,
            live,
            mended,
            deep,
            gone: false,
            has: 0,
            need,
            tail: 0,
            levels,
            depth,
        });
        if !live {
            of.stale += 1;
            self.set_not_whole(product);
        }
        Some(index)
    }

    /// Whether snapshots of a pair are of use to someone.
    #[inline]
    pub fn needs_snapshots(&self, pair: u16) -> bool {
        self.wanting[usize::from(pair)] > 0 || self.list.is_empty()
    }

    /// All products that are open now.
    pub fn ids(&self) -> impl Iterator<Item = ProductId> + use<> {
        (0..self.list.len() as u32).map(ProductId)
    }

    /// Whether gaps of a product are mended by snapshots.
    pub fn has_snapshots(&self, product: ProductId) -> bool {
        self.snapshots[usize::from(self.list[product.index()].pair)]
    }

    /// Checks the number of a message that has come, and notes the result.
    #[inline]
    pub fn check_sequence(
        &mut self,
        product: ProductId,
        sequence: u64,
        from: &PacketContext,
    ) -> SequenceOutcome {
        let of = &mut self.list[product.index()];
        match of.next {
            Some(next) if next == sequence && sequence > of.snapshot_last => {
                of.next = Some(sequence.wrapping_add(1));
                SequenceOutcome::Next
            }
            _ => self.check_unexpected(product, sequence, from),
        }
    }

    #[cold]
    fn check_unexpected(
        &mut self,
        product: ProductId,
        sequence: u64,
        from: &PacketContext,
    ) -> SequenceOutcome {
        let in_snapshot = self.is_in_earlier_snapshot(product, sequence, from);
        let of = &mut self.list[product.index()];
        match of.next {
            None => {
                of.next = Some(sequence.wrapping_add(1));
                if self.bounds.first == Some(sequence) && of.deep {
                    self.begin(product);
                    return SequenceOutcome::Begins;
                }
                self.require_snapshot_from(product, sequence.saturating_sub(1));
                SequenceOutcome::Next
            }
            Some(next) if sequence < next => {
                self.counters.old += 1;
                SequenceOutcome::Old
            }
            Some(_) if in_snapshot => SequenceOutcome::InSnapshot,
            Some(next) => {
                of.next = Some(sequence.wrapping_add(1));
                if sequence == next {
                    SequenceOutcome::Next
                } else {
                    SequenceOutcome::Missing(SequenceRange { first: next, last: sequence - 1 })
                }
            }
        }
    }

    /// A beacon says that this was the last message.
    pub fn beacon(&mut self, product: ProductId, last: u64, from: &PacketContext) -> SequenceOutcome {
        // The message after it was not sent yet.
        let in_snapshot = self.is_in_earlier_snapshot(product, last.saturating_add(1), from);
        let of = &mut self.list[product.index()];
        match of.next {
            None => {
                // The first message will begin the books itself.
                if self.bounds.first != Some(last.wrapping_add(1)) {
                    of.next = Some(last.wrapping_add(1));
                    self.require_snapshot_from(product, last);
                }
                SequenceOutcome::Next
            }
            Some(next) if in_snapshot && last.saturating_add(1) >= next => SequenceOutcome::InSnapshot,
            Some(next) if last >= next => {
                of.next = Some(last.wrapping_add(1));
                SequenceOutcome::Missing(SequenceRange { first: next, last })
            }
            Some(next) if last.wrapping_add(1) < next => SequenceOutcome::Old,
            Some(_) => SequenceOutcome::Next,
        }
    }

    /// The messages up to this one are missing.
    pub(super) fn require_snapshot_from(&mut self, product: ProductId, need: u64) {
        let of = &mut self.list[product.index()];
        of.need = need;
        for index in &of.instruments {
            let i = &mut self.instruments[index.index()];
            i.need = i.need.max(need);
        }
    }

    /// A product's books begin empty: nothing is missing.
    fn begin(&mut self, product: ProductId) {
        let of = &mut self.list[product.index()];
        (of.begun, of.stale) = (true, 0);
        for index in &of.instruments {
            let i = &mut self.instruments[index.index()];
            (i.live, i.has, i.levels) = (i.deep, 0, [0; 2]);
            of.stale += u32::from(!i.deep && !i.gone);
        }
        let all = of.stale == 0;
        self.drop_waiting(product);
        if all {
            self.set_whole(product);
        }
    }

    /// Messages up to `to` are missing: gives each instrument whose book is stale from now on to `each`.
    pub fn gap(&mut self, product: ProductId, missing: SequenceRange, mut each: impl FnMut(InstrumentId)) {
        let SequenceRange { first: from, last: to } = missing;
        self.counters.gaps += 1;
        let explained = self.list[product.index()].explained.take();
        self.counters.gaps_alone += u64::from(explained != Some(from));
        self.counters.missing = self.counters.missing.saturating_add((to - from).saturating_add(1));
        let mended = self.has_snapshots(product);
        self.drop_waiting(product);
        let of = &mut self.list[product.index()];
        of.need = to;
        (of.round, of.rounded) = (None, false);
        of.begun &= !mended;
        for index in &of.instruments {
            let i = &mut self.instruments[index.index()];
            i.need = i.need.max(to);
            // An instrument whose snapshot was ahead has the missing messages.
            if !i.live || i.has >= to {
                continue;
            }
            i.live = !mended;
            of.stale += u32::from(mended && !i.gone);
            each(*index);
        }
        if mended {
            self.gap_of = Some(self.list[product.index()].pair);
            self.set_not_whole(product);
        }
    }

    /// The numbers of a product begin again: as before its first message.
    pub fn restart(&mut self, product: ProductId, now: i64, mut each: impl FnMut(InstrumentId)) {
        self.restarts += 1;
        self.drop_waiting(product);
        let (mended, settle_ns) = (self.has_snapshots(product), self.settle_ns);
        let of = &mut self.list[product.index()];
        (of.next, of.need, of.round, of.rounded) = (None, 0, None, false);
        (of.state, of.odd, of.lost, of.aside) = ((NativeId::NONE, 0), 0, None, None);
        of.snapshot_last = 0;
        // The first of the two to begin again waits for the other.
        let waited = of.early.is_some_and(|since| now.saturating_sub(since) <= settle_ns);
        (of.restarted, of.early) = ((!waited).then_some(now), None);
        of.begun = !mended;
        of.stale = 0;
        for index in &of.instruments {
            let i = &mut self.instruments[index.index()];
            let was = i.live;
            (i.live, i.has, i.need, i.levels) = (!mended, 0, 0, [0; 2]);
            of.stale += u32::from(mended && !i.gone);
            if was {
                each(*index);
            }
        }
        if mended {
            self.set_not_whole(product);
        }
    }

    /// A message of the product has come on this stream.
    #[inline]
    pub fn note_stream(&mut self, product: ProductId, from: &PacketContext) {
        let of = &mut self.list[product.index()];
        (of.stream, of.origin) = (from.stream, from.origin);
        (of.heard, of.sent, of.odd) = (from.ts_recv, from.sent, 0);
    }

    /// The numbers of a pair's snapshots begin again.
    pub fn snapshots_restart(&mut self, pair: u16, origin: StreamId, now: i64) {
        // A venue may send snapshots under another name than the rest.
        let named = self.list.iter().any(|p| p.pair == pair && p.origin == origin);
        for of in self.list.iter_mut().filter(|p| p.pair == pair && (p.is_from(origin) || !named)) {
            let first = of.restarted.is_none() && of.next.is_some();
            (of.early, of.restarted) = (first.then_some(now), None);
        }
    }

    /// A level of an instrument that is not live.
    pub fn hold_level(
        &mut self,
        instrument: InstrumentId,
        entry: EntryFields,
        sequence: u64,
        time: i64,
    ) -> bool {
        let i = &mut self.instruments[instrument.index()];
        let of = &mut self.list[i.product.index()];
        self.counters.waited += 1;
        let mut ran_out = false;
        if of.waits.len() >= self.bounds.levels || self.waiting >= self.bounds.levels_all {
            self.counters.no_room += 1;
            ran_out = !of.no_room;
            of.no_room = true;
            // The oldest makes room; where the product has none, what comes itself is let go.
            let Some(oldest) = of.waits.pop_front() else {
                i.need = i.need.max(sequence);
                return ran_out;
            };
            of.base += 1;
            self.waiting -= 1;
            let other = &mut self.instruments[oldest.instrument.index()];
            other.need = other.need.max(oldest.sequence);
        }
        let i = &mut self.instruments[instrument.index()];
        of.waits.push_back(WaitingLevel { entry, sequence, time, instrument, before: i.tail });
        i.tail = of.base + of.waits.len() as u64;
        self.waiting += 1;
        ran_out
    }

    /// Whether to use a snapshot of an instrument that includes all up to `last`.
    pub fn accepts_snapshot(&mut self, instrument: InstrumentId, last: u64, from: &PacketContext) -> bool {
        let now = from.ts_recv;
        let i = &mut self.instruments[instrument.index()];
        let of = &mut self.list[i.product.index()];
        if of.round == Some(instrument) {
            of.rounded = true;
        }
        let next = of.next.unwrap_or(1);
        // Should the other channel's word have been lost, this is over after a time.
        let lately =
            |since: Option<i64>| since.is_some_and(|since| now.saturating_sub(since) <= self.settle_ns);
        // A snapshot that was sent long after a message and lacks it counts otherwise: a venue may begin again
        // without a word.
        let later = from.sent.zip(of.sent).map(|(sent, before)| sent.saturating_sub(before));
        let lacks = last.saturating_add(1) < next && later.is_some_and(|later| later > self.settle_ns);
        let other_numbers =
            lacks || lately(of.early) || lately(of.aside) || of.restarted.is_some() && last >= next;
        if !other_numbers && last > of.snapshot_last {
            (of.snapshot_last, of.snapshot_at) = (last, (now, from.sent));
        }
        if i.live || i.gone {
            self.counters.snapshots_spare += 1;
            return false;
        }
        if last < i.need || other_numbers || !of.deep || !i.deep {
            self.counters.snapshots_old += 1;
            return false;
        }
        if of.next.is_none() {
            of.heard = now;
        }
        // The round begins with one that is used: those before may have been too old.
        of.round.get_or_insert(instrument);
        true
    }

    /// The snapshot is used: the levels of the instrument after it, in order, which `apply` gets.
    pub fn apply_snapshot(&mut self, instrument: InstrumentId, last: u64, behind: &mut Vec<WaitingLevel>) {
        self.counters.snapshots += 1;
        self.counters.recovered += 1;
        let i = &mut self.instruments[instrument.index()];
        let of = &mut self.list[i.product.index()];
        // A snapshot that arrives before any message replaces them.
        if of.next.is_none() {
            of.next = Some(last.wrapping_add(1));
        }
        behind.clear();
        let mut at = i.tail;
        while at > of.base {
            let waiting = &of.waits[(at - 1 - of.base) as usize];
            if waiting.sequence <= last {
                break;
            }
            behind.push(*waiting);
            at = waiting.before;
        }
        behind.reverse();
        (i.tail, i.has, i.live) = (0, last, true);
        of.stale -= 1;
    }

    /// Whether a product is whole now, that was not.
    pub fn becomes_whole(&mut self, product: ProductId) -> bool {
        let of = &self.list[product.index()];
        if of.whole || of.stale > 0 || of.instruments.is_empty() || !(of.defined || of.rounded) {
            return false;
        }
        self.set_whole(product);
        self.drop_waiting(product);
        true
    }

    fn set_whole(&mut self, product: ProductId) {
        let of = &mut self.list[product.index()];
        of.restarted = None;
        if !of.whole {
            of.whole = true;
            self.wanting[usize::from(of.pair)] -= 1;
        }
    }

    pub(super) fn set_not_whole(&mut self, product: ProductId) {
        let of = &mut self.list[product.index()];
        if of.whole {
            of.whole = false;
            (of.round, of.rounded) = (None, false);
            self.wanting[usize::from(of.pair)] += 1;
        }
    }

    /// How many levels an instrument has is known from now on. Whether its book is known with that: it began empty, and all
    /// since then has waited.
    pub fn becomes_deep(&mut self, instrument: InstrumentId) -> bool {
        let i = &mut self.instruments[instrument.index()];
        let of = &self.list[i.product.index()];
        !std::mem::replace(&mut i.deep, true) && of.begun && !i.live && !i.gone && i.need <= of.need
    }

    /// An instrument is no longer traded.
    pub fn set_delisted(&mut self, instrument: InstrumentId) {
        let i = &mut self.instruments[instrument.index()];
        if !i.gone && !i.live {
            self.list[i.product.index()].stale -= 1;
        }
        i.gone = true;
    }

    /// It is traded again.
    pub fn set_listed(&mut self, instrument: InstrumentId) {
        let i = &mut self.instruments[instrument.index()];
        if i.gone && !i.live {
            let product = i.product;
            i.gone = false;
            self.list[product.index()].stale += 1;
            self.set_not_whole(product);
        }
        self.instruments[instrument.index()].gone = false;
    }

    /// Drops waiting levels, which are of no use any more.
    fn drop_waiting(&mut self, product: ProductId) {
        let of = &mut self.list[product.index()];
        self.waiting -= of.waits.len();
        of.base += of.waits.len() as u64;
        of.waits.clear();
        of.no_room = false;
    }

    /// Levels that wait, of all products.
    pub fn waiting(&self) -> usize {
        self.waiting
    }
}
