//! Packets from the network: all lines of all channels, polled in one thread.
//!
//! Each address has a socket of its own, bound to its group; one system call reads up to 32 datagrams of it, with the
//! kernel's receive times and its count of what it had no room for. Who polls busily makes one call that asks all sockets,
//! and one for each that has something; who waits sleeps in the first.

use super::datagram::DatagramBatch;
use super::sockets::{NetworkInterface, UdpEndpoint, UdpSockets};
use crate::engine::Packet;
use crate::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use unitape_model::UnixNanos;

/// The options of sockets.
#[derive(Clone, Copy, Debug)]
pub struct LiveOptions {
    /// The interface on which groups are joined, by one of its addresses; without it the system chooses.
    pub interface: Option<IpAddr>,
    /// Room in the kernel for each socket.
    pub buffer_bytes: usize,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self { interface: None, buffer_bytes: 8 << 20 }
    }
}

/// Sockets of all lines.
#[derive(Debug)]
pub struct LiveReceiver {
    sockets: UdpSockets,
    drop_counters: Vec<DropCounter>,
    batch: DatagramBatch,
    /// Packets so far: their place.
    packets: u64,
}

/// The datagrams that the kernel dropped, of one socket.
#[derive(Clone, Copy, Debug, Default)]
struct DropCounter {
    /// The kernel's counter, which only grows (and wraps).
    counter: u32,
    dropped_total: u64,
}

/// The most sockets that are asked one by one.
const FEW: usize = 2;

impl LiveReceiver {
    /// Opens a socket for each address.
    ///
    /// # Errors
    /// Fails if the system refuses a socket.
    pub fn open(
        addresses: impl IntoIterator<Item = SocketAddr>,
        options: &LiveOptions,
    ) -> Result<Self, Error> {
        let interface = options.interface.map(NetworkInterface::Address);
        let line = |address| UdpEndpoint { address, interface: interface.clone() };
        let lines: Vec<_> = addresses.into_iter().map(line).collect();
        let sockets = UdpSockets::open(&lines, options.buffer_bytes)?;
        let drops = vec![DropCounter::default(); lines.len()];
        Ok(Self { sockets, drop_counters: drops, batch: DatagramBatch::new(), packets: 0 })
    }

    /// Passes each waiting packet to `each`, at most one batch of each socket. Returns their number.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn poll(&mut self, mut each: impl FnMut(Packet<'_>)) -> Result<usize, Error> {
        let mut received_count = 0;
        let few = self.sockets.count() <= FEW;
        if !few && !self.wait(Duration::ZERO)? {
            return Ok(0);
        }
        for n in 0..self.sockets.count() {
            if few || self.sockets.is_ready(n) {
                received_count += self.receive(n, &mut each)?;
            }
        }
        Ok(received_count)
    }

    /// Waits until a packet arrives, at most this long. Returns whether one has arrived.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, Error> {
        let waited = self.sockets.wait(timeout);
        waited.map_err(|source| Error::Receive { operation: "wait for packets".to_owned(), source })
    }

    /// Counts the datagrams that the kernel dropped, for each address.
    pub fn dropped(&self) -> impl Iterator<Item = (SocketAddr, u64)> {
        self.drop_counters.iter().enumerate().map(|(n, drops)| {
            // No datagram has reported the latest drops yet.
            let now = self.sockets.dropped(n).unwrap_or(drops.counter);
            (self.sockets.address(n), drops.dropped_total + u64::from(now.wrapping_sub(drops.counter)))
        })
    }

    fn receive(&mut self, n: usize, each: &mut impl FnMut(Packet<'_>)) -> Result<usize, Error> {
        let (to, drops) = (self.sockets.address(n), &mut self.drop_counters[n]);
        let received = self.sockets.receive(n, &mut self.batch);
        let received =
            received.map_err(|source| Error::Receive { operation: format!("receive from {to}"), source })?;
        for i in 0..received {
            let (_, payload, ts_recv, counter) = self.batch.get(i);
            if let Some(counter) = counter {
                drops.dropped_total += u64::from(counter.wrapping_sub(drops.counter));
                drops.counter = counter;
            }
            let ts_recv = ts_recv.unwrap_or_else(now);
            each(Packet { to, ts_recv, position: self.packets, payload });
            self.packets += 1;
        }
        Ok(received)
    }
}

/// Returns the current time.
pub(crate) fn now() -> UnixNanos {
    let ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64);
    UnixNanos(ns)
}
