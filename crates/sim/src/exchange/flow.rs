//! The day of the exchange: what happens when, on which channel it is said.

use super::book::{ExchangeBook, PublishedTrade, PublishedUpdate};
use super::faults::{ExchangePacket, FaultCounts, FaultyLines};
use super::publish::{FastPublisher, IncrementalEntry, PACKET_BYTES, SnapshotMessage};
use super::truth::{BookHistory, HALTED, TRADED};
use super::world::{InstrumentKind, ListedProducts};
use super::{ChannelTemplates, DeliveredPacket, Error, ExchangeChannel, ExchangeConfig};
use crate::rng::Rng;

/// The exchange is silent for this long before it restarts.
const PAUSE_NS: u64 = 200_000_000;
/// No receiver waits for as long.
const GIVEN_UP_NS: u64 = 2_000_000_000;
/// Between two packets at the end.
const SETTLE_NS: u64 = 100_000;

/// A running exchange.
#[derive(Debug)]
pub struct Exchange {
    config: ExchangeConfig,
    world: ListedProducts,
    truth: BookHistory,
    publisher: FastPublisher,
    lines: FaultyLines,
    rng: Rng,
    now_ns: u64,
    /// The numbers of all messages so far.
    messages: u64,
    books: Vec<TradedInstrument>,
    products: Vec<ProductState>,
    partitions: Vec<PartitionState>,
    flow_ns: u64,
    /// When something is halted, or traded again.
    state_ns: u64,
    reference_ns: u64,
    /// The next of the cycle: products, then instruments.
    reference_next: usize,
    reference_numbers: u32,
    /// Complex instruments that are to come.
    spreads: u32,
    /// Instruments that are to be deleted.
    deletions: u32,
    changes: Vec<(u64, IncrementalEntry)>,
    updates: Vec<PublishedUpdate>,
    trades: Vec<PublishedTrade>,
    /// All was said.
    settled: bool,
}

#[derive(Debug)]
struct TradedInstrument {
    book: ExchangeBook,
    status: u32,
    /// When it is traded again.
    resume_ns: u64,
    trade: Option<PublishedTrade>,
    /// The book has changed since its last snapshot.
    fresh: bool,
    touched_ns: u64,
}

#[derive(Debug, Default)]
struct ProductState {
    open: bool,
    resume_ns: u64,
    /// When it said something last.
    said_ns: u64,
    trades: u32,
    snapshots: u32,
}

#[derive(Debug, Default)]
struct PartitionState {
    /// By their places.
    products: Vec<usize>,
    snapshot_ns: u64,
    /// The next of the cycle: product and instrument, by their places in partition and product.
    snapshot_next: (usize, usize),
    /// The next packet is the first after a restart.
    resets: [bool; 2],
}

impl Exchange {
    /// Sets an exchange up; nothing is said yet.
    ///
    /// # Errors
    /// Fails if the configuration is impossible, or if the templates cannot express a required message.
    pub fn new(config: ExchangeConfig, templates: &ChannelTemplates) -> Result<Self, Error> {
        config.check()?;
        let mut rng = Rng::new(config.seed);
        let world = ListedProducts::new(&config, &mut rng);
        let mut partitions: Vec<PartitionState> =
            (0..config.partitions).map(|_| PartitionState::default()).collect();
        for (product_index, product) in world.products.iter().enumerate() {
            partitions[product.partition as usize - 1].products.push(product_index);
        }
        partitions.retain(|partition| !partition.products.is_empty());
        let start_ns = config.start_ns;
        for (n, partition) in partitions.iter_mut().enumerate() {
            partition.snapshot_ns = start_ns + config.snapshot_ns / 2 + n as u64;
        }
        let mut exchange = Self {
            truth: BookHistory::new(world.products.len(), config.moments_max),
            publisher: FastPublisher::new(templates, config.partitions)?,
            lines: FaultyLines::new(&config, templates),
            products: world
                .products
                .iter()
                .map(|_| ProductState { open: true, said_ns: start_ns, ..ProductState::default() })
                .collect(),
            books: Vec::new(),
            rng,
            now_ns: start_ns,
            messages: 0,
            partitions,
            flow_ns: start_ns,
            state_ns: start_ns + config.beacon_ns / 2,
            reference_ns: start_ns,
            reference_next: 0,
            reference_numbers: 0,
            spreads: config.spreads,
            deletions: config.deletions,
            changes: Vec::new(),
            updates: Vec::new(),
            trades: Vec::new(),
            settled: false,
            world,
            config,
        };
        for instrument in 0..exchange.world.instruments.len() {
            exchange.list(instrument);
        }
        Ok(exchange)
    }

    /// Returns the traded products.
    #[must_use]
    pub fn world(&self) -> &ListedProducts {
        &self.world
    }

    /// Returns the true books. They are ahead of the packets delivered so far.
    #[must_use]
    pub fn truth(&self) -> &BookHistory {
        &self.truth
    }

    /// Returns the counts of the faults so far.
    #[must_use]
    pub fn faults(&self) -> FaultCounts {
        self.lines.counts
    }

    /// Messages with a number of their product so far.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &ExchangeConfig {
        &self.config
    }

    /// Returns the next delivered packet, in order of time, or `None` at the end.
    ///
    /// # Errors
    /// Fails if the templates cannot express a value.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<DeliveredPacket>, Error> {
        loop {
            if let Some(packet) = self.lines.next(if self.settled { u64::MAX } else { self.now_ns }) {
                return Ok(Some(packet));
            }
            if self.settled {
                return Ok(None);
            }
            if self.is_over() {
                self.publish_final_state()?;
            } else {
                self.step()?;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.messages >= self.config.messages || self.now_ns - self.config.start_ns >= self.config.span_ns
    }

    /// Publishes the final state. First every packet under way arrives. Then every product sends its last number, and
    /// every instrument and every book is published again. No packet of these is lost, so a correct receiver ends up
    /// complete.
    fn publish_final_state(&mut self) -> Result<(), Error> {
        self.lines.stop_faults();
        self.now_ns += PAUSE_NS;
        for product in 0..self.products.len() {
            self.beacon(product)?;
        }
        self.reference_next = 0;
        while self.reference_next < self.world.products.len() + self.world.instruments.len() {
            self.now_ns += SETTLE_NS;
            self.reference()?;
        }
        // A receiver that still waits for a lost packet, or for the notice that a channel has restarted, has given it
        // up by now. Everything is sent twice: the first may be the notice that a channel counts from the beginning
        // again.
        for _ in 0..2 {
            self.now_ns += GIVEN_UP_NS;
            for product in 0..self.products.len() {
                self.beacon(product)?;
            }
            for partition in 0..self.partitions.len() {
                self.partitions[partition].snapshot_next = (0, 0);
                while self.partitions[partition].snapshot_next.0 < self.partitions[partition].products.len() {
                    self.now_ns += SETTLE_NS;
                    self.snapshots(partition)?;
                }
            }
        }
        self.settled = true;
        Ok(())
    }

    /// Runs the next action of the exchange.
    fn step(&mut self) -> Result<(), Error> {
        let beacon = (0..self.products.len())
            .map(|product_index| {
                (self.products[product_index].said_ns + self.config.beacon_ns, product_index)
            })
            .min()
            .unwrap_or((u64::MAX, 0));
        let snapshot = (0..self.partitions.len())
            .map(|partition_index| (self.partitions[partition_index].snapshot_ns, partition_index))
            .min()
            .unwrap_or((u64::MAX, 0));
        let next = self.flow_ns.min(self.reference_ns).min(beacon.0).min(snapshot.0);
        self.now_ns = self.now_ns.max(next);
        if next == self.flow_ns {
            let before = self.messages;
            self.flow()?;
            // As many messages as were said take so long; where there was nothing to say, it is tried again soon.
            let mean = 4_000_000_000 / u64::from(self.config.rate) * (self.messages - before).max(1) / 4;
            let mean = if self.messages == before { mean / 8 } else { mean };
            self.flow_ns = self.now_ns + 1 + self.rng.below(2 * mean + 1);
            if self.lines.restarts() {
                self.restart();
            }
            Ok(())
        } else if next == snapshot.0 {
            self.partitions[snapshot.1].snapshot_ns = self.now_ns + self.config.snapshot_ns;
            self.snapshots(snapshot.1)
        } else if next == beacon.0 {
            self.beacon(beacon.1)
        } else {
            self.reference_ns = self.now_ns + self.config.reference_ns;
            self.reference()
        }
    }

    /// Lists an instrument, with an empty book.
    fn list(&mut self, instrument: usize) {
        let (product, listed_instrument) =
            (self.world.product_of(instrument), &self.world.instruments[instrument]);
        let book = ExchangeBook::new(product.depth, product.tick, listed_instrument.fair);
        let progress = self.truth.progress_of(listed_instrument.product);
        self.truth.record_book(instrument, progress, &book, TRADED, None, [true; 2]);
        self.books.push(TradedInstrument {
            book,
            status: TRADED,
            resume_ns: 0,
            trade: None,
            fresh: true,
            touched_ns: self.now_ns,
        });
    }

    /// Restarts everything except the set of traded instruments.
    fn restart(&mut self) {
        self.truth.restart();
        self.now_ns += PAUSE_NS;
        for (instrument, listed) in self.books.iter_mut().enumerate() {
            listed.book.clear();
            (listed.status, listed.trade, listed.fresh) = (TRADED, None, true);
            listed.touched_ns = self.now_ns;
            let progress = self.truth.progress_of(self.world.instruments[instrument].product);
            self.truth.record_book(instrument, progress, &listed.book, TRADED, None, [true; 2]);
        }
        for state in &mut self.products {
            *state = ProductState { open: true, said_ns: self.now_ns, ..ProductState::default() };
        }
        for (n, partition) in self.partitions.iter_mut().enumerate() {
            partition.resets = [true; 2];
            partition.snapshot_ns = self.now_ns + self.config.snapshot_ns / 2 + n as u64;
        }
        self.flow_ns = self.now_ns + 1;
        self.reference_ns = self.now_ns + self.config.reference_ns / 2;
    }

    fn begin(&mut self, channel: ExchangeChannel, partition: usize) -> Result<u32, Error> {
        let id = match channel {
            ExchangeChannel::Reference => 1,
            _ => self.world.products[self.partitions[partition].products[0]].partition,
        };
        let reset = match channel {
            ExchangeChannel::Reference => false,
            _ => std::mem::take(&mut self.partitions[partition].resets[channel as usize]),
        };
        self.publisher.begin(channel, id, self.now_ns, reset)?;
        Ok(id)
    }

    fn send(&mut self, channel: ExchangeChannel, partition: u32) -> Result<(), Error> {
        let (bytes, number) = (self.publisher.packet(channel), self.publisher.number(channel, partition));
        let packet = ExchangePacket { channel, partition, ts_ns: self.now_ns, number, bytes };
        self.lines.send(&self.config, packet)
    }

    /// Sends a packet of events in a partition.
    fn flow(&mut self) -> Result<(), Error> {
        let partition = self.rng.below(self.partitions.len() as u64) as usize;
        let messages = 1 + self.rng.halving().min(8);
        let mut id = None;
        for _ in 0..messages {
            let products = &self.partitions[partition].products;
            let product = products[self.rng.below(products.len() as u64) as usize];
            let state = self.now_ns >= self.state_ns;
            let subject = if !self.products[product].open && self.now_ns < self.products[product].resume_ns {
                MessageSubject::Nothing
            } else if !self.products[product].open {
                MessageSubject::Product
            } else if state {
                // By time, not by messages: at a high rate all would be halted always.
                self.state_ns = self.now_ns + self.rng.below(2 * self.config.beacon_ns);
                self.rng.pick(&[
                    MessageSubject::Product,
                    MessageSubject::Mass,
                    MessageSubject::Instrument,
                    MessageSubject::Instrument,
                ])
            } else {
                self.happen(product)
            };
            if matches!(subject, MessageSubject::Nothing) {
                continue;
            }
            if id.is_none() {
                id = Some(self.begin(ExchangeChannel::Incremental, partition)?);
            }
            self.say(product, subject)?;
            self.products[product].said_ns = self.now_ns;
            self.messages += 1;
            let full = self.publisher.packet(ExchangeChannel::Incremental).len() > PACKET_BYTES;
            if full || self.messages == self.config.messages {
                break;
            }
        }
        match id {
            Some(id) => self.send(ExchangeChannel::Incremental, id),
            None => Ok(()),
        }
    }

    /// Changes the books of a product at random.
    fn happen(&mut self, product: usize) -> MessageSubject {
        self.changes.clear();
        let instruments = &self.world.products[product].instruments;
        // Mostly one of the first; later ones are quiet, as real ones are.
        let count = instruments.len() as u64;
        let near = self.rng.below(count) * self.rng.below(count) / count;
        let instrument = instruments[near as usize];
        if self.world.instruments[instrument].is_deleted {
            return MessageSubject::Nothing;
        }
        let listed = &mut self.books[instrument];
        if listed.status == HALTED {
            return if self.now_ns < listed.resume_ns {
                MessageSubject::Nothing
            } else {
                MessageSubject::Resume(instrument)
            };
        }
        let id = self.world.instruments[instrument].id;
        let acts = 1 + self.rng.halving().min(3);
        let mut changed = [false; 2];
        for _ in 0..acts {
            self.updates.clear();
            self.trades.clear();
            listed.book.act(&mut self.rng, &mut self.updates, &mut self.trades);
            for trade in &self.trades {
                self.products[product].trades += 1;
                let trade = PublishedTrade { px: trade.px, id: self.products[product].trades, ..*trade };
                listed.trade = Some(trade);
                self.changes.push((id, IncrementalEntry::Trade(trade)));
            }
            for update in &self.updates {
                changed[update.side as usize] = true;
                self.changes.push((id, IncrementalEntry::Level(*update)));
            }
        }
        if self.changes.is_empty() {
            MessageSubject::Nothing
        } else {
            MessageSubject::Depth(instrument, changed)
        }
    }

    /// Says it with the product's next number.
    fn say(&mut self, product: usize, subject: MessageSubject) -> Result<(), Error> {
        let (progress, ts_ns) = (self.truth.next(product), self.now_ns);
        let listed_product = &self.world.products[product];
        match subject {
            MessageSubject::Nothing => unreachable!("it has no number"),
            MessageSubject::Depth(instrument, changed) => {
                self.publisher.depth(listed_product, progress.seq, &self.changes, ts_ns)?;
                let listed = &mut self.books[instrument];
                (listed.fresh, listed.touched_ns) = (true, ts_ns);
                self.truth.record_book(
                    instrument,
                    progress,
                    &listed.book,
                    listed.status,
                    listed.trade,
                    changed,
                );
            }
            MessageSubject::Product => {
                let state = &mut self.products[product];
                state.open = !state.open;
                state.resume_ns = ts_ns + self.rng.below(3 * self.config.beacon_ns);
                self.publisher.product_state(listed_product, progress.seq, state.open, ts_ns)?;
            }
            MessageSubject::Mass => {
                let first = listed_product.instruments[0];
                let status = if self.books[first].status == TRADED { HALTED } else { TRADED };
                self.publisher.mass_state(listed_product, progress.seq, status, ts_ns)?;
                let resume_ns = ts_ns + self.rng.below(2 * self.config.beacon_ns);
                for instrument in listed_product.instruments.clone() {
                    let named = &self.world.instruments[instrument];
                    if !matches!(named.kind, InstrumentKind::Spread(_)) && !named.is_deleted {
                        self.books[instrument].resume_ns = resume_ns;
                        self.status(instrument, progress, status);
                    }
                }
            }
            MessageSubject::Instrument | MessageSubject::Resume(_) => {
                let instrument = match subject {
                    MessageSubject::Resume(instrument) => instrument,
                    _ => {
                        listed_product.instruments
                            [self.rng.below(listed_product.instruments.len() as u64) as usize]
                    }
                };
                let instrument = if self.world.instruments[instrument].is_deleted {
                    listed_product.instruments[0]
                } else {
                    instrument
                };
                let status = if self.books[instrument].status == TRADED { HALTED } else { TRADED };
                let named = &self.world.instruments[instrument];
                self.publisher.instrument_state(listed_product, named, progress.seq, status, ts_ns)?;
                self.books[instrument].resume_ns = ts_ns + self.rng.below(4 * self.config.beacon_ns);
                self.status(instrument, progress, status);
            }
        }
        Ok(())
    }

    fn status(&mut self, instrument: usize, progress: super::ProductProgress, status: u32) {
        let listed = &mut self.books[instrument];
        listed.status = status;
        self.truth.record_book(instrument, progress, &listed.book, status, listed.trade, [false; 2]);
    }

    /// Sends the number of a quiet product's last message.
    fn beacon(&mut self, product: usize) -> Result<(), Error> {
        let id = self.world.products[product].partition;
        let partition = self.partitions.iter().position(|p| p.products.contains(&product));
        let id_of = self.begin(ExchangeChannel::Incremental, partition.expect("every product has one"))?;
        debug_assert_eq!(id, id_of);
        self.publisher.beacon(&self.world.products[product], self.truth.progress_of(product).seq)?;
        self.products[product].said_ns = self.now_ns;
        self.send(ExchangeChannel::Incremental, id)
    }

    /// Sends a packet of book snapshots, as many as fit.
    fn snapshots(&mut self, partition: usize) -> Result<(), Error> {
        let id = self.begin(ExchangeChannel::Snapshot, partition)?;
        let mut sent_count = 0;
        let partition_state = &mut self.partitions[partition];
        let is_listed = |i: &&usize| !self.world.instruments[**i].is_deleted;
        let count = |p: &usize| self.world.products[*p].instruments.iter().filter(is_listed).count();
        let all: usize = partition_state.products.iter().map(count).sum();
        while sent_count < all && self.publisher.packet(ExchangeChannel::Snapshot).len() < PACKET_BYTES / 2 {
            let (nth, index) = partition_state.snapshot_next;
            let product_index = partition_state.products[nth % partition_state.products.len()];
            let product = &self.world.products[product_index];
            let Some(instrument) = product.instruments.get(index).copied() else {
                partition_state.snapshot_next = (nth + 1, 0);
                continue;
            };
            partition_state.snapshot_next = (nth, index + 1);
            if self.world.instruments[instrument].is_deleted {
                continue;
            }
            let state = &mut self.products[product_index];
            state.snapshots += 1;
            let listed = &mut self.books[instrument];
            let snapshot = SnapshotMessage {
                product,
                instrument: &self.world.instruments[instrument],
                seq: state.snapshots,
                last_seq: self.truth.progress_of(product_index).seq,
                moment: self.truth.current_moment(instrument),
                is_open: state.open,
                is_fresh: std::mem::take(&mut listed.fresh),
                ts_ns: listed.touched_ns,
            };
            self.publisher.snapshot(&snapshot)?;
            sent_count += 1;
        }
        self.send(ExchangeChannel::Snapshot, id)
    }

    /// Sends a packet of reference data, or of a new instrument.
    fn reference(&mut self) -> Result<(), Error> {
        let id = self.begin(ExchangeChannel::Reference, 0)?;
        let cycle = self.world.products.len() + self.world.instruments.len();
        if self.spreads > 0 && self.reference_next >= cycle {
            self.spreads -= 1;
            let instrument = self.spread();
            self.reference_numbers += 1;
            self.publisher.reference.instrument(&self.world, instrument, self.reference_numbers, true)?;
            return self.send(ExchangeChannel::Reference, id);
        }
        if self.deletions > 0 && self.reference_next >= cycle {
            self.deletions -= 1;
            let product = &self.world.products[self.rng.below(self.world.products.len() as u64) as usize];
            let nth = self.rng.below(product.instruments.len() as u64) as usize;
            let instrument = product.instruments[nth];
            if nth > 0 && !self.world.instruments[instrument].is_deleted {
                self.world.instruments[instrument].is_deleted = true;
                self.reference_numbers += 1;
                self.publisher.reference.instrument(&self.world, instrument, self.reference_numbers, true)?;
                return self.send(ExchangeChannel::Reference, id);
            }
        }
        while self.publisher.packet(ExchangeChannel::Reference).len() < PACKET_BYTES / 2 {
            self.reference_next %= cycle;
            self.reference_numbers += 1;
            match self.reference_next.checked_sub(self.world.products.len()) {
                None => {
                    let product = &self.world.products[self.reference_next];
                    self.publisher.reference.product(product, self.reference_numbers, &self.config)?;
                }
                Some(instrument) if self.world.instruments[instrument].is_deleted => {}
                Some(instrument) => {
                    self.publisher.reference.instrument(
                        &self.world,
                        instrument,
                        self.reference_numbers,
                        false,
                    )?;
                }
            }
            self.reference_next += 1;
            if self.reference_next == cycle {
                break;
            }
        }
        self.send(ExchangeChannel::Reference, id)
    }

    /// Adds a new spread of two instruments of a product.
    fn spread(&mut self) -> usize {
        let product = self.rng.below(self.world.products.len() as u64) as usize;
        let simple = &self.world.products[product].instruments;
        let legs = [simple[0], simple[simple.len().min(2) - 1]];
        let instrument = self.world.add(product, InstrumentKind::Spread(legs), 0, self.rng.between(-5, 5));
        self.list(instrument);
        instrument
    }
}

/// The subject of a message.
#[derive(Debug, Clone, Copy)]
enum MessageSubject {
    Nothing,
    /// The book of an instrument; the sides that have changed.
    Depth(usize, [bool; 2]),
    /// The product is traded, or not.
    Product,
    /// All its simple instruments are.
    Mass,
    /// One is.
    Instrument,
    /// This one is again.
    Resume(usize),
}
