//! A network in memory, with faults that a seed decides and a clock that its user sets.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use super::Transport;
use crate::error::Error;

/// The faults of a network, in percent of the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkFaults {
    /// Messages that are lost.
    pub lost: u32,
    /// Messages that arrive twice.
    pub doubled: u32,
    /// Messages that arrive later than others that were sent after them.
    pub delayed: u32,
    /// Calls of [`Transport::send`] that are not taken.
    pub refused: u32,
    /// Messages of which a bit is flipped.
    pub flipped: u32,
}

/// A network of this thread.
#[derive(Clone, Debug)]
pub struct MemoryNetwork(Rc<RefCell<NetworkState>>);

#[derive(Debug)]
struct NetworkState {
    network_faults: NetworkFaults,
    random: u64,
    now: Duration,
    /// Messages under way, by the time of their arrival and the order in which they were sent.
    messages: BTreeMap<(Duration, u64), (SocketAddr, Vec<u8>)>,
    sent_messages: u64,
    message_bytes_max: usize,
}

/// How long a message takes.
const DELAY: Duration = Duration::from_micros(100);

/// How long a delayed message takes longer, at most.
const DELAY_MORE_US: u64 = 20_000;

impl MemoryNetwork {
    /// Makes a network that carries messages of up to `message_bytes_max` bytes.
    pub fn new(seed: u64, faults: NetworkFaults, message_bytes_max: usize) -> Self {
        Self(Rc::new(RefCell::new(NetworkState {
            network_faults: faults,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            now: Duration::ZERO,
            messages: BTreeMap::new(),
            sent_messages: 0,
            message_bytes_max,
        })))
    }

    /// Returns an end of the network at this address.
    pub fn connect(&self, address: SocketAddr) -> MemoryTransport {
        MemoryTransport { network: self.0.clone(), address }
    }

    /// Sets the time.
    pub fn set_time(&self, now: Duration) {
        self.0.borrow_mut().now = now;
    }

    /// Sets the faults of messages that are sent from now on.
    pub fn set_faults(&self, faults: NetworkFaults) {
        self.0.borrow_mut().network_faults = faults;
    }

    /// Puts a message of a stranger on its way.
    pub fn inject(&self, to: SocketAddr, message: &[u8]) {
        self.0.borrow_mut().queue_message(to, message);
    }
}

/// An end of a network in memory.
#[derive(Debug)]
pub struct MemoryTransport {
    network: Rc<RefCell<NetworkState>>,
    address: SocketAddr,
}

impl Transport for MemoryTransport {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn message_bytes_max(&self) -> usize {
        self.network.borrow().message_bytes_max
    }

    fn send(&mut self, to: SocketAddr, message: &[u8]) -> Result<bool, Error> {
        let mut network = self.network.borrow_mut();
        assert!(message.len() <= network.message_bytes_max, "a message of {} bytes", message.len());
        let faults = network.network_faults;
        if network.happens(faults.refused) {
            return Ok(false);
        }
        if network.happens(faults.lost) {
            return Ok(true);
        }
        network.queue_message(to, message);
        if network.happens(faults.doubled) {
            network.queue_message(to, message);
        }
        Ok(true)
    }

    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<usize, Error> {
        let messages = self.network.borrow_mut().take_arrived(self.address);
        messages.iter().for_each(|message| each(message));
        Ok(messages.len())
    }

    fn forget(&mut self, _: SocketAddr) {}
}

impl NetworkState {
    fn queue_message(&mut self, to: SocketAddr, message: &[u8]) {
        let mut message = message.to_vec();
        let faults = self.network_faults;
        if self.happens(faults.flipped) {
            let bit = self.next(message.len() as u64 * 8);
            message[bit as usize / 8] ^= 1 << (bit % 8);
        }
        let more = if self.happens(faults.delayed) { self.next(DELAY_MORE_US) } else { 0 };
        let arrival = self.now + DELAY + Duration::from_micros(more);
        self.sent_messages += 1;
        self.messages.insert((arrival, self.sent_messages), (to, message));
    }

    fn take_arrived(&mut self, address: SocketAddr) -> Vec<Vec<u8>> {
        let now = self.now;
        let arrived = self.messages.extract_if(.., |(arrival, _), (to, _)| *arrival <= now && *to == address);
        arrived.map(|(_, (_, message))| message).collect()
    }

    fn happens(&mut self, percent: u32) -> bool {
        self.next(100) < u64::from(percent)
    }

    /// Returns a number below `limit`.
    fn next(&mut self, limit: u64) -> u64 {
        // xorshift64*, which needs no more state than a number.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit.max(1)
    }
}
