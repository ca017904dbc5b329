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
    /// The instrument's levels are complete.
    pub is_live: bool,
    /// Snapshots mend it.
    pub is_mendable: bool,
    /// How many levels it has is known, as far as it will be; see [`TrackedProduct::deep`].
    pub deep: bool,
    /// The instrument is no longer traded; the engine does not wait for it.
    pub is_delisted: bool,
    /// Messages up to this one are in its book.
    pub last_in_book: u64,
    /// A snapshot must have at least this one in it.
    pub snapshot_min: u64,
    /// Index of the instrument's last waiting level, plus one; 0 if no level waits.
    last_waiting: u64,
    /// The number of levels of a side, if they are counted.
    pub levels: [u16; 2],
    /// The maximum number; 0 for no bound.
    pub depth_max: u16,
}

#[cfg(test)]
impl TrackedInstrument {
    /// Makes an instrument with `depth` levels a side, for tests of levels alone.
    pub fn with_depth(depth: u16) -> Self {
        let (product, live, mended, deep, is_delisted) = (ProductId(0), true, true, true, false);
        Self {
            product,
            is_live: live,
            is_mendable: mended,
            deep,
            is_delisted,
            last_in_book: 0,
            snapshot_min: 0,
            last_waiting: 0,
            levels: [0; 2],
            depth_max: depth,
        }
    }
}

/// A product.
#[derive(Clone, Debug)]
pub(super) struct TrackedProduct {
    /// The product's pair of channels.
    pub channel_pair: u16,
    /// The stream that its last message came from.
    pub stream: StreamId,
    /// The product's sender and partition, if known.
    pub(super) origin: StreamId,
    /// When the last message was received, or the snapshot that replaces it, and when it was sent.
    pub(super) heard_ns: i64,
    pub(super) sent_ns: Option<i64>,
    /// Messages in a row whose numbers may have begun again.
    pub(super) odd_messages: u8,
    /// The product's state, and the message that set it.
    pub product_state: (NativeId, u64),
    /// The number of the next message; `None` before the first message.
    pub next_number: Option<u64>,
    /// The last missing message before the ones received in a row.
    pub last_missing: u64,
    /// The product's instruments.
    pub instruments: Vec<InstrumentId>,
    /// The number of them that are not live.
    pub stale_instruments: u32,
    /// All of its instruments are known and live.
    pub is_complete: bool,
    /// How many levels it has is known, as far as it will be: a book whose lowest levels fall out unseen is not the venue's.
    pub deep: bool,
    /// Reference data define its instruments.
    pub is_defined: bool,
    /// Books begin empty: instruments that are not known yet need no snapshot.
    pub begins_empty: bool,
    /// The first instrument whose snapshot came since it is not whole: when it comes again, all have come.
    round_start: Option<InstrumentId>,
    pub is_round_complete: bool,
    /// The time since which the product's numbers have restarted, but not those of its snapshots, as far as is known.
    /// Snapshots with later numbers may still belong to the old numbering.
    pub(super) restarted: Option<i64>,
    /// The reverse: the snapshots belong to a numbering of which no messages have arrived.
    pub(super) early_since_ns: Option<i64>,
    /// The last message that a snapshot included; 0 if there was no snapshot.
    pub(super) snapshot_last: u64,
    /// When the first snapshot with that message was received, and when it was sent.
    pub(super) snapshot_at: (i64, Option<i64>),
    /// When packets of its stream were last lost.
    pub(super) last_loss: Option<i64>,
    /// The first message of a gap that was already reported: as lost packets when it was the next, or as a refused
    /// message.
    pub(super) explained: Option<u64>,
    /// Since when a packet of its stream lies aside, which may be the first of other numbers.
    pub(super) aside_since: Option<i64>,
    waiting_levels: VecDeque<WaitingLevel>,
    /// The number of the first that waits.
    first_waiting: u64,
    pub no_room: bool,
}

/// A level that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingLevel {
    pub entry: EntryFields,
    pub sequence: u64,
    pub time_ns: i64,
    instrument: InstrumentId,
    /// Index of the instrument's previous waiting level, plus one.
    previous_waiting: u64,
}

/// The verdict on a message's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SequenceOutcome {
    /// The message is the next one, or has no number.
    Next,
    /// These are missing before it.
    Missing(SequenceRange),
    /// The message is the first of all, and the books begin empty.
    Begins,
    /// The message has arrived before.
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
    pub unwhole_products: Vec<u32>,
    /// By pair: whether it has snapshots.
    snapshots: Vec<bool>,
    waiting_count: usize,
    /// The pair of the last gap, until the engine has looked for snapshots that cover it.
    pub gap_of: Option<u16>,
    /// The number of restarts of any product's numbers.
    pub restarts: u64,
    pub counters: ProductCounters,
}

impl TrackedProduct {
    /// Returns whether the product belongs to this sender and partition, or may belong to it.
    pub fn is_from(&self, origin: StreamId) -> bool {
        self.origin == origin || self.origin.is_none()
    }

    /// Notes the sender and partition of the product's snapshots. They apply to the whole product until messages show
    /// otherwise.
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
            unwhole_products: vec![0; snapshots.len()],
            snapshots,
            waiting_count: 0,
            gap_of: None,
            restarts: 0,
            counters: ProductCounters::default(),
        }
    }

    /// Opens a product that is seen for the first time. Returns `None` beyond the bound.
    pub fn open(&mut self, pair: u16) -> Option<ProductId> {
        if self.list.len() >= self.bounds.products {
            return None;
        }
        let is_complete = !self.snapshots[usize::from(pair)];
        self.list.push(TrackedProduct {
            channel_pair: pair,
            stream: StreamId::NONE,
            origin: StreamId::NONE,
            heard_ns: 0,
            sent_ns: None,
            odd_messages: 0,
            product_state: (NativeId::NONE, 0),
            next_number: None,
            last_missing: 0,
            instruments: Vec::new(),
            stale_instruments: 0,
            is_complete,
            deep: is_complete || self.depth_source != DepthSource::OfProducts,
            is_defined: false,
            begins_empty: is_complete,
            round_start: None,
            is_round_complete: false,
            restarted: None,
            early_since_ns: None,
            snapshot_last: 0,
            snapshot_at: (0, None),
            last_loss: None,
            explained: None,
            aside_since: None,
            waiting_levels: VecDeque::new(),
            first_waiting: 0,
            no_room: false,
        });
        self.unwhole_products[usize::from(pair)] += u32::from(!is_complete);
        Some(ProductId(self.list.len() as u32 - 1))
    }

    /// Opens an instrument that is seen for the first time. Returns `None` beyond the bound.
    pub fn open_instrument(&mut self, product: ProductId, depth: u16) -> Option<InstrumentId> {
        if self.instruments.len() >= self.bounds.instruments {
            return None;
        }
        let tracked_product = &mut self.list[product.index()];
        let (need, levels, mended) =
            (tracked_product.last_missing, [0; 2], self.snapshots[usize::from(tracked_product.channel_pair)]);
        let deep = !mended || self.depth_source != DepthSource::OfInstruments;
        let begins_live = tracked_product.begins_empty && deep;
        let index = InstrumentId(self.instruments.len() as u32);
        tracked_product.instruments.push(index);
        self.instruments.push(TrackedInstrument {
            product,
            is_live: begins_live,
            is_mendable: mended,
            deep,
            is_delisted: false,
            last_in_book: 0,
            snapshot_min: need,
            last_waiting: 0,
            levels,
            depth_max: depth,
        });
        if !begins_live {
            tracked_product.stale_instruments += 1;
            self.set_not_whole(product);
        }
        Some(index)
    }

    /// Returns whether any product of a pair needs snapshots.
    #[inline]
    pub fn needs_snapshots(&self, pair: u16) -> bool {
        self.unwhole_products[usize::from(pair)] > 0 || self.list.is_empty()
    }

    /// Iterates over all open products.
    pub fn ids(&self) -> impl Iterator<Item = ProductId> + use<> {
        (0..self.list.len() as u32).map(ProductId)
    }

    /// Returns whether the feed has snapshots that repair the product's gaps.
    pub fn has_snapshots(&self, product: ProductId) -> bool {
        self.snapshots[usize::from(self.list[product.index()].channel_pair)]
    }

    /// Checks the number of a message that has come, and notes the result.
    #[inline]
    pub fn check_sequence(
        &mut self,
        product: ProductId,
        sequence: u64,
        from: &PacketContext,
    ) -> SequenceOutcome {
        let tracked_product = &mut self.list[product.index()];
        match tracked_product.next_number {
            Some(next) if next == sequence && sequence > tracked_product.snapshot_last => {
                tracked_product.next_number = Some(sequence.wrapping_add(1));
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
        let tracked_product = &mut self.list[product.index()];
        match tracked_product.next_number {
            None => {
                tracked_product.next_number = Some(sequence.wrapping_add(1));
                if self.bounds.first == Some(sequence) && tracked_product.deep {
                    self.begin_product(product);
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
                tracked_product.next_number = Some(sequence.wrapping_add(1));
                if sequence == next {
                    SequenceOutcome::Next
                } else {
                    SequenceOutcome::Missing(SequenceRange { first: next, last: sequence - 1 })
                }
            }
        }
    }

    /// Takes a beacon, which says that `last` was the product's last message.
    pub fn beacon(&mut self, product: ProductId, last: u64, from: &PacketContext) -> SequenceOutcome {
        // The message after it was not sent yet.
        let in_snapshot = self.is_in_earlier_snapshot(product, last.saturating_add(1), from);
        let tracked_product = &mut self.list[product.index()];
        match tracked_product.next_number {
            None => {
                // The first message will begin the books itself.
                if self.bounds.first != Some(last.wrapping_add(1)) {
                    tracked_product.next_number = Some(last.wrapping_add(1));
                    self.require_snapshot_from(product, last);
                }
                SequenceOutcome::Next
            }
            Some(next) if in_snapshot && last.saturating_add(1) >= next => SequenceOutcome::InSnapshot,
            Some(next) if last >= next => {
                tracked_product.next_number = Some(last.wrapping_add(1));
                SequenceOutcome::Missing(SequenceRange { first: next, last })
            }
            Some(next) if last.wrapping_add(1) < next => SequenceOutcome::Old,
            Some(_) => SequenceOutcome::Next,
        }
    }

    /// Notes that the messages up to `need` are missing.
    pub(super) fn require_snapshot_from(&mut self, product: ProductId, need: u64) {
        let tracked_product = &mut self.list[product.index()];
        tracked_product.last_missing = need;
        for index in &tracked_product.instruments {
            let i = &mut self.instruments[index.index()];
            i.snapshot_min = i.snapshot_min.max(need);
        }
    }

    /// Begins a product's books as empty: nothing is missing.
    fn begin_product(&mut self, product: ProductId) {
        let tracked_product = &mut self.list[product.index()];
        (tracked_product.begins_empty, tracked_product.stale_instruments) = (true, 0);
        for index in &tracked_product.instruments {
            let i = &mut self.instruments[index.index()];
            (i.is_live, i.last_in_book, i.levels) = (i.deep, 0, [0; 2]);
            tracked_product.stale_instruments += u32::from(!i.deep && !i.is_delisted);
        }
        let is_whole = tracked_product.stale_instruments == 0;
        self.drop_waiting(product);
        if is_whole {
            self.set_whole(product);
        }
    }

    /// Notes that the messages `missing` are lost. Passes each instrument whose book becomes stale to `each`.
    pub fn gap(&mut self, product: ProductId, missing: SequenceRange, mut each: impl FnMut(InstrumentId)) {
        let SequenceRange { first: from, last: to } = missing;
        self.counters.gaps += 1;
        let explained = self.list[product.index()].explained.take();
        self.counters.gaps_alone += u64::from(explained != Some(from));
        self.counters.missing = self.counters.missing.saturating_add((to - from).saturating_add(1));
        let mended = self.has_snapshots(product);
        self.drop_waiting(product);
        let tracked_product = &mut self.list[product.index()];
        tracked_product.last_missing = to;
        (tracked_product.round_start, tracked_product.is_round_complete) = (None, false);
        tracked_product.begins_empty &= !mended;
        for index in &tracked_product.instruments {
            let i = &mut self.instruments[index.index()];
            i.snapshot_min = i.snapshot_min.max(to);
            // An instrument whose snapshot was ahead has the missing messages.
            if !i.is_live || i.last_in_book >= to {
                continue;
            }
            i.is_live = !mended;
            tracked_product.stale_instruments += u32::from(mended && !i.is_delisted);
            each(*index);
        }
        if mended {
            self.gap_of = Some(self.list[product.index()].channel_pair);
            self.set_not_whole(product);
        }
    }

    /// Starts the numbers of a product over, as before its first message.
    pub fn restart_product(&mut self, product: ProductId, now: i64, mut each: impl FnMut(InstrumentId)) {
        self.restarts += 1;
        self.drop_waiting(product);
        let (mended, settle_ns) = (self.has_snapshots(product), self.settle_ns);
        let tracked_product = &mut self.list[product.index()];
        (
            tracked_product.next_number,
            tracked_product.last_missing,
            tracked_product.round_start,
            tracked_product.is_round_complete,
        ) = (None, 0, None, false);
        (
            tracked_product.product_state,
            tracked_product.odd_messages,
            tracked_product.last_loss,
            tracked_product.aside_since,
        ) = ((NativeId::NONE, 0), 0, None, None);
        tracked_product.snapshot_last = 0;
        // The first of the two to begin again waits for the other.
        let waited =
            tracked_product.early_since_ns.is_some_and(|since| now.saturating_sub(since) <= settle_ns);
        (tracked_product.restarted, tracked_product.early_since_ns) = ((!waited).then_some(now), None);
        tracked_product.begins_empty = !mended;
        tracked_product.stale_instruments = 0;
        for index in &tracked_product.instruments {
            let i = &mut self.instruments[index.index()];
            let was = i.is_live;
            (i.is_live, i.last_in_book, i.snapshot_min, i.levels) = (!mended, 0, 0, [0; 2]);
            tracked_product.stale_instruments += u32::from(mended && !i.is_delisted);
            if was {
                each(*index);
            }
        }
        if mended {
            self.set_not_whole(product);
        }
    }

    /// Notes that a message of the product has arrived on this stream.
    #[inline]
    pub fn note_stream(&mut self, product: ProductId, from: &PacketContext) {
        let tracked_product = &mut self.list[product.index()];
        (tracked_product.stream, tracked_product.origin) = (from.stream, from.origin);
        (tracked_product.heard_ns, tracked_product.sent_ns, tracked_product.odd_messages) =
            (from.ts_recv, from.sent_ns, 0);
    }

    /// Starts the numbers of a pair's snapshots over.
    pub fn snapshots_restart(&mut self, pair: u16, origin: StreamId, now: i64) {
        // A venue may send snapshots under another name than the rest.
        let is_named = self.list.iter().any(|p| p.channel_pair == pair && p.origin == origin);
        for tracked_product in
            self.list.iter_mut().filter(|p| p.channel_pair == pair && (p.is_from(origin) || !is_named))
        {
            let is_first_message =
                tracked_product.restarted.is_none() && tracked_product.next_number.is_some();
            (tracked_product.early_since_ns, tracked_product.restarted) =
                (is_first_message.then_some(now), None);
        }
    }

    /// Holds a level of an instrument that is not live.
    pub fn hold_level(
        &mut self,
        instrument: InstrumentId,
        entry: EntryFields,
        sequence: u64,
        time: i64,
    ) -> bool {
        let i = &mut self.instruments[instrument.index()];
        let tracked_product = &mut self.list[i.product.index()];
        self.counters.waited += 1;
        let mut ran_out = false;
        if tracked_product.waiting_levels.len() >= self.bounds.levels
            || self.waiting_count >= self.bounds.levels_all
        {
            self.counters.no_room += 1;
            ran_out = !tracked_product.no_room;
            tracked_product.no_room = true;
            // The oldest level makes room. If the product has no waiting level, the new one is dropped.
            let Some(oldest) = tracked_product.waiting_levels.pop_front() else {
                i.snapshot_min = i.snapshot_min.max(sequence);
                return ran_out;
            };
            tracked_product.first_waiting += 1;
            self.waiting_count -= 1;
            let oldest_instrument = &mut self.instruments[oldest.instrument.index()];
            oldest_instrument.snapshot_min = oldest_instrument.snapshot_min.max(oldest.sequence);
        }
        let i = &mut self.instruments[instrument.index()];
        tracked_product.waiting_levels.push_back(WaitingLevel {
            entry,
            sequence,
            time_ns: time,
            instrument,
            previous_waiting: i.last_waiting,
        });
        i.last_waiting = tracked_product.first_waiting + tracked_product.waiting_levels.len() as u64;
        self.waiting_count += 1;
        ran_out
    }

    /// Decides whether to use a snapshot of an instrument that includes all messages up to `last`.
    pub fn accepts_snapshot(&mut self, instrument: InstrumentId, last: u64, from: &PacketContext) -> bool {
        let now = from.ts_recv;
        let i = &mut self.instruments[instrument.index()];
        let tracked_product = &mut self.list[i.product.index()];
        if tracked_product.round_start == Some(instrument) {
            tracked_product.is_round_complete = true;
        }
        let expected_number = tracked_product.next_number.unwrap_or(1);
        // Should the other channel's word have been lost, this is over after a time.
        let lately =
            |since: Option<i64>| since.is_some_and(|since| now.saturating_sub(since) <= self.settle_ns);
        // A snapshot that was sent long after a message and lacks it counts otherwise: a venue may begin again
        // without a word.
        let later =
            from.sent_ns.zip(tracked_product.sent_ns).map(|(sent, before)| sent.saturating_sub(before));
        let lacks =
            last.saturating_add(1) < expected_number && later.is_some_and(|later| later > self.settle_ns);
        let other_numbers = lacks
            || lately(tracked_product.early_since_ns)
            || lately(tracked_product.aside_since)
            || tracked_product.restarted.is_some() && last >= expected_number;
        if !other_numbers && last > tracked_product.snapshot_last {
            (tracked_product.snapshot_last, tracked_product.snapshot_at) = (last, (now, from.sent_ns));
        }
        if i.is_live || i.is_delisted {
            self.counters.snapshots_spare += 1;
            return false;
        }
        if last < i.snapshot_min || other_numbers || !tracked_product.deep || !i.deep {
            self.counters.snapshots_old += 1;
            return false;
        }
        if tracked_product.next_number.is_none() {
            tracked_product.heard_ns = now;
        }
        // The round begins with one that is used: those before may have been too old.
        tracked_product.round_start.get_or_insert(instrument);
        true
    }

    /// Applies a snapshot and moves the instrument's later levels, in order, to `later_levels`.
    pub fn apply_snapshot(
        &mut self,
        instrument: InstrumentId,
        last: u64,
        later_levels: &mut Vec<WaitingLevel>,
    ) {
        self.counters.snapshots += 1;
        self.counters.recovered += 1;
        let i = &mut self.instruments[instrument.index()];
        let tracked_product = &mut self.list[i.product.index()];
        // A snapshot that arrives before any message replaces them.
        if tracked_product.next_number.is_none() {
            tracked_product.next_number = Some(last.wrapping_add(1));
        }
        later_levels.clear();
        let mut level_number = i.last_waiting;
        while level_number > tracked_product.first_waiting {
            let waiting =
                &tracked_product.waiting_levels[(level_number - 1 - tracked_product.first_waiting) as usize];
            if waiting.sequence <= last {
                break;
            }
            later_levels.push(*waiting);
            level_number = waiting.previous_waiting;
        }
        later_levels.reverse();
        (i.last_waiting, i.last_in_book, i.is_live) = (0, last, true);
        tracked_product.stale_instruments -= 1;
    }

    /// Returns whether a product has just become complete.
    pub fn becomes_whole(&mut self, product: ProductId) -> bool {
        let tracked_product = &self.list[product.index()];
        if tracked_product.is_complete
            || tracked_product.stale_instruments > 0
            || tracked_product.instruments.is_empty()
            || !(tracked_product.is_defined || tracked_product.is_round_complete)
        {
            return false;
        }
        self.set_whole(product);
        self.drop_waiting(product);
        true
    }

    fn set_whole(&mut self, product: ProductId) {
        let tracked_product = &mut self.list[product.index()];
        tracked_product.restarted = None;
        if !tracked_product.is_complete {
            tracked_product.is_complete = true;
            self.unwhole_products[usize::from(tracked_product.channel_pair)] -= 1;
        }
    }

    pub(super) fn set_not_whole(&mut self, product: ProductId) {
        let tracked_product = &mut self.list[product.index()];
        if tracked_product.is_complete {
            tracked_product.is_complete = false;
            (tracked_product.round_start, tracked_product.is_round_complete) = (None, false);
            self.unwhole_products[usize::from(tracked_product.channel_pair)] += 1;
        }
    }

    /// Notes that the depth of an instrument is known from now on. Returns whether its book is now known too: it began
    /// empty, and all later levels have waited.
    pub fn becomes_deep(&mut self, instrument: InstrumentId) -> bool {
        let i = &mut self.instruments[instrument.index()];
        let tracked_product = &self.list[i.product.index()];
        !std::mem::replace(&mut i.deep, true)
            && tracked_product.begins_empty
            && !i.is_live
            && !i.is_delisted
            && i.snapshot_min <= tracked_product.last_missing
    }

    /// Marks an instrument as no longer traded.
    pub fn set_delisted(&mut self, instrument: InstrumentId) {
        let i = &mut self.instruments[instrument.index()];
        if !i.is_delisted && !i.is_live {
            self.list[i.product.index()].stale_instruments -= 1;
        }
        i.is_delisted = true;
    }

    /// Marks an instrument as traded again.
    pub fn set_listed(&mut self, instrument: InstrumentId) {
        let i = &mut self.instruments[instrument.index()];
        if i.is_delisted && !i.is_live {
            let product = i.product;
            i.is_delisted = false;
            self.list[product.index()].stale_instruments += 1;
            self.set_not_whole(product);
        }
        self.instruments[instrument.index()].is_delisted = false;
    }

    /// Drops waiting levels that are no longer of use.
    fn drop_waiting(&mut self, product: ProductId) {
        let tracked_product = &mut self.list[product.index()];
        self.waiting_count -= tracked_product.waiting_levels.len();
        tracked_product.first_waiting += tracked_product.waiting_levels.len() as u64;
        tracked_product.waiting_levels.clear();
        tracked_product.no_room = false;
    }

    /// Counts the waiting levels of all products.
    pub fn waiting(&self) -> usize {
        self.waiting_count
    }
}
