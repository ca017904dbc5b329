//! Combines the engine, the books and the sources of packets.

use crate::books::{Books, HandlerCounters};
use crate::engine::{Engine, HandlerConfig, Packet, ReferenceTables};
use crate::error::Error;
use crate::file::{PacketFile, PacketFileCounts};
use crate::listener::Listener;
use crate::select::Subscription;
use crate::view::BookView;
use crate::wire::{LiveOptions, LiveReceiver, now};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use unitape_model::{InstrumentId, UnixNanos};

/// A handler of market data: packets in, calls out. It has no thread of its own: it calls the listener in the thread
/// that supplies packets or polls.
#[derive(Debug)]
pub struct Handler {
    engine: Engine,
    books: Books,
    live_receiver: Option<LiveReceiver>,
}

impl Handler {
    /// Creates a handler from the configuration in this file.
    ///
    /// # Errors
    /// Fails if the configuration is wrong; the error names the line.
    pub fn open(config: &Path) -> Result<Self, Error> {
        Ok(Self::new(HandlerConfig::load(config)?))
    }

    /// Creates a handler from this configuration.
    #[must_use]
    pub fn new(config: Arc<HandlerConfig>) -> Self {
        Self { engine: Engine::new(config), books: Books::default(), live_receiver: None }
    }

    /// Adds a subscription; best before the first packet. Changes of an instrument that arrived before it was
    /// subscribed are lost: its book is stale until the venue sends it in full, as a snapshot does. If no change
    /// arrived before, its book is current, and is reported with its first change.
    pub fn subscribe(&mut self, subscription: Subscription) {
        self.books.subscribe(subscription, self.engine.tables());
        self.books.recover_broken(&mut self.engine);
    }

    /// Removes a subscription.
    pub fn unsubscribe(&mut self, subscription: &Subscription) {
        self.books.unsubscribe(subscription, self.engine.tables());
    }

    /// Processes a packet.
    #[inline]
    pub fn packet<L: Listener>(&mut self, packet: Packet<'_>, listener: &mut L) {
        self.engine.packet(packet, &mut self.books.updater(listener));
        self.books.recover_broken(&mut self.engine);
    }

    /// Handles a pause: no packet arrived until `now`. Packets that have waited too long for a missing packet are
    /// processed without it.
    pub fn idle<L: Listener>(&mut self, now: UnixNanos, listener: &mut L) {
        self.engine.idle(now, &mut self.books.updater(listener));
        self.books.recover_broken(&mut self.engine);
    }

    /// Processes all packets of a capture, and at its end those that still wait. With `channel`, reads packets with
    /// their lengths before them, of that channel.
    ///
    /// # Errors
    /// Fails if the file cannot be read; the packets before the error were processed.
    pub fn replay<L: Listener>(
        &mut self,
        file: &Path,
        channel: Option<&str>,
        listener: &mut L,
    ) -> Result<PacketFileCounts, Error> {
        let channel_address = channel.map(|name| self.address(name)).transpose()?;
        let mut file = PacketFile::open(file, channel_address)?;
        while let Some(packet) = file.next()? {
            self.packet(packet, listener);
        }
        self.engine.finish(&mut self.books.updater(listener));
        Ok(file.counts())
    }

    /// Returns the first address of the channel with this name.
    fn address(&self, channel: &str) -> Result<SocketAddr, Error> {
        let n = self.engine.tables().channels.iter().position(|c| c.name == channel);
        let find_address = |n: usize| self.engine.config().addresses().find(|(_, c, _)| c.index() == n);
        n.and_then(find_address)
            .map(|(address, ..)| address)
            .ok_or_else(|| Error::Channel(channel.to_owned()))
    }

    /// Listens to all lines of all channels.
    ///
    /// # Errors
    /// Fails if a socket cannot be opened.
    pub fn listen(&mut self, options: &LiveOptions) -> Result<(), Error> {
        let addresses: Vec<_> = self.engine.config().addresses().map(|(address, ..)| address).collect();
        self.live_receiver = Some(LiveReceiver::open(addresses, options)?);
        Ok(())
    }

    /// Processes the packets that have arrived, at most a batch of each line. Returns how many there were. Call it
    /// repeatedly, or after [`Handler::wait`], even if that found nothing: only this call gives up missing packets by
    /// time.
    ///
    /// # Errors
    /// Fails if the handler does not listen to any channel, or if the system refuses.
    pub fn poll<L: Listener>(&mut self, listener: &mut L) -> Result<usize, Error> {
        let Self { engine: core, books, live_receiver: live } = self;
        let live_receiver = live.as_mut().ok_or(Error::NotLive)?;
        let got = live_receiver.poll(|packet| {
            core.packet(packet, &mut books.updater(listener));
            books.recover_broken(core);
        })?;
        if got == 0 {
            core.idle(now(), &mut books.updater(listener));
            books.recover_broken(core);
        }
        Ok(got)
    }

    /// Waits until a packet arrives, at most this long. Returns whether one has arrived. Do not wait longer than the
    /// window of the configuration, see [`Handler::poll`].
    ///
    /// # Errors
    /// Fails if the handler does not listen to any channel, or if the system refuses.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, Error> {
        self.live_receiver.as_mut().ok_or(Error::NotLive)?.wait(timeout)
    }

    /// Returns the book of an instrument, or `None` if the instrument is not subscribed.
    #[must_use]
    pub fn book(&self, instrument: InstrumentId) -> Option<BookView<'_>> {
        self.books.book(instrument)
    }

    /// Channels, products and instruments, as far as they are known.
    #[must_use]
    pub fn tables(&self) -> &ReferenceTables {
        self.engine.tables()
    }

    /// Finds an instrument by id or symbol, among those seen so far.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<InstrumentId> {
        let all = &self.tables().instruments;
        let find_where = |is_match: &dyn Fn(&crate::engine::Instrument) -> bool| {
            all.iter().position(is_match).map(|n| InstrumentId(n as u32))
        };
        find_where(&|i| i.id == name).or_else(|| find_where(&|i| i.symbol == name))
    }

    /// Returns the books, with their work counters.
    #[must_use]
    pub fn books(&self) -> &Books {
        &self.books
    }

    /// Counts of the work on books.
    #[must_use]
    pub fn counters(&self) -> HandlerCounters {
        self.books.counters()
    }

    /// Returns the engine, with its statistics of channels and lines.
    #[must_use]
    pub fn core(&self) -> &Engine {
        &self.engine
    }

    /// Returns the open sockets, or `None` if the handler is not live.
    #[must_use]
    pub fn live(&self) -> Option<&LiveReceiver> {
        self.live_receiver.as_ref()
    }
}
