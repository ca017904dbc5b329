//! Packets off the wire: all lines of all channels, polled in one thread.
//!
//! Each address has a socket of its own, bound to its group; one system call takes up to 32 datagrams of it, with the
//! kernel's receive times and its count of what it had no room for. Who polls busily makes one call that asks all sockets,
//! and one for each that has something; who waits sleeps in the first.

use crate::error::Error;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use unitape_feed::fast::Packet;
use unitape_feed::{Datagrams, open_datagrams};

/// How sockets are opened.
#[derive(Clone, Copy, Debug)]
pub struct LiveOptions {
    /// By which interface groups are joined: an address of it; the system's choice without.
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
pub struct Live {
    sockets: Vec<Line>,
    batch: Datagrams,
    /// Packets so far: their place.
    packets: u64,
}

/// A socket.
#[derive(Debug)]
struct Line {
    socket: UdpSocket,
    to: SocketAddr,
    /// The kernel's counter, which only grows (and wraps).
    counter: u32,
    dropped: u64,
}

/// Of so few sockets each is asked by itself.
const FEW: usize = 2;

impl Live {
    /// Opens a socket for each address.
    ///
    /// # Errors
    /// When the system refuses one.
    pub fn open(
        addresses: impl IntoIterator<Item = SocketAddr>,
        options: &LiveOptions,
    ) -> Result<Self, Error> {
        let mut sockets = Vec::new();
        for to in addresses {
            let socket =
                open_datagrams(to, options.interface, options.buffer_bytes).map_err(Error::Socket)?;
            sockets.push(Line { socket, to, counter: 0, dropped: 0 });
        }
        Ok(Self { sockets, batch: Datagrams::new(), packets: 0 })
    }

    /// Gives each packet that is there to `each`, at most one batch of each socket; how many there were.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn poll(&mut self, mut each: impl FnMut(Packet<'_>)) -> Result<usize, Error> {
        let mut all = 0;
        if self.sockets.len() <= FEW {
            for n in 0..self.sockets.len() {
                all += self.receive(n, &mut each)?;
            }
            return Ok(all);
        }
        let ready = self.ready(Some(Duration::ZERO))?;
        for n in 0..self.sockets.len() {
            if ready >> n.min(READY_BITS) & 1 == 1 {
                all += self.receive(n, &mut each)?;
            }
        }
        Ok(all)
    }

    /// Waits until a packet is there, at most so long; whether one is.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, Error> {
        Ok(self.ready(Some(timeout))? != 0)
    }

    /// How many datagrams the kernel had no room for, of each address.
    pub fn dropped(&self) -> impl Iterator<Item = (SocketAddr, u64)> {
        self.sockets.iter().map(|line| (line.to, line.dropped))
    }

    /// Which sockets have something, a bit each; those beyond the last bit share it.
    fn ready(&self, timeout: Option<Duration>) -> Result<u64, Error> {
        let mut room = [const { None }; ROOM];
        let timeout =
            timeout.map(|t| Timespec { tv_sec: t.as_secs() as _, tv_nsec: t.subsec_nanos().into() });
        let mut bits = 0u64;
        for (group, lines) in self.sockets.chunks(ROOM).enumerate() {
            for (place, line) in room.iter_mut().zip(lines) {
                *place = Some(PollFd::new(&line.socket, PollFlags::IN));
            }
            let mut asked: [PollFd<'_>; ROOM] = std::array::from_fn(|n| {
                room[n].take().unwrap_or_else(|| PollFd::new(&lines[0].socket, PollFlags::empty()))
            });
            // Only one group of sockets can be waited for; there is no second one unless there are more than 64.
            let timeout = if self.sockets.len() > ROOM { Some(&NO_TIME) } else { timeout.as_ref() };
            match poll(&mut asked[..lines.len()], timeout) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => return Ok(0),
                Err(e) => {
                    return Err(Error::Receive { what: "wait for packets".to_owned(), source: e.into() });
                }
            }
            for (n, asked) in asked[..lines.len()].iter().enumerate() {
                bits |= u64::from(!asked.revents().is_empty()) << (group * ROOM + n).min(READY_BITS);
            }
        }
        Ok(bits)
    }

    fn receive(&mut self, n: usize, each: &mut impl FnMut(Packet<'_>)) -> Result<usize, Error> {
        let line = &mut self.sockets[n];
        let received = self.batch.receive(&line.socket);
        let received = received
            .map_err(|source| Error::Receive { what: format!("receive from {}", line.to), source })?;
        for i in 0..received {
            let (_, payload, ts_recv, counter) = self.batch.get(i);
            if let Some(counter) = counter {
                line.dropped += u64::from(counter.wrapping_sub(line.counter));
                line.counter = counter;
            }
            let ts_recv = ts_recv.unwrap_or_else(now_ns);
            each(Packet { to: line.to, ts_recv, place: self.packets, payload });
            self.packets += 1;
        }
        Ok(received)
    }
}

/// Sockets that are asked with one call.
const ROOM: usize = 64;

/// The last bit of what is ready.
const READY_BITS: usize = 63;

const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Nanoseconds since 1970.
pub(crate) fn now_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64)
}
