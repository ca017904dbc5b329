//! Receivers: sockets and pipes, written down in journals as they come.
//!
//! One thread a feed. It reads, writes the journal, counts, and wakes the intake; it knows nothing of formats. When
//! it is further ahead of the decoders than it may be, a stream is not read on (its sender then waits, by TCP's or
//! the pipe's own back-pressure), and datagrams are dropped, by us or by the kernel as configured; each drop is
//! counted and stands in the journal, so it comes onto the tape.

pub(crate) mod datagram;
pub(crate) mod sockets;
mod stream;
mod udp;

use crate::error::Error;
use crate::folder::{CLOSED, Sort};
use crate::journal::{PacketJournal, StreamJournal, journaled_bytes};
use crate::stats::{FeedStats, Stats};
use sockets::{Sockets, UdpLine};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use udp::WhenFull;

/// What is received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receive {
    /// TCP, where senders connect; one connection at a time.
    Listen {
        /// Host and port.
        address: String,
        /// Connections are pieces of one stream, and each is told how much of it is there.
        resume: bool,
        /// Ends after so many connections; 0: never.
        connections: u64,
    },
    /// TCP, to a sender that listens.
    Connect {
        /// Host and port.
        address: String,
        /// As above.
        resume: bool,
        /// As above: connections that were made.
        connections: u64,
    },
    /// A named pipe.
    Fifo(PathBuf),
    /// Standard input.
    Stdin,
    /// UDP, to hosts or to groups, all of them into one journal.
    Udp {
        /// Where datagrams are sent to.
        lines: Vec<UdpLine>,
        /// Bytes of the buffer of each socket, as the kernel grants them.
        buffer_bytes: usize,
        /// When the decoders are too far behind.
        when_full: WhenFull,
        /// So long after midnight (UTC) the journal begins a new file.
        day_begins: Option<Duration>,
    },
}

impl Receive {
    /// What its journal holds.
    pub(crate) fn sort(&self) -> Sort {
        match self {
            Receive::Udp { .. } => Sort::Packets,
            _ => Sort::Streams,
        }
    }
}

/// Where a receiver writes and whom it tells.
#[derive(Clone, Debug)]
pub struct Place {
    /// Directory of the journal.
    pub dir: PathBuf,
    /// Figures of the run.
    pub stats: Arc<Stats>,
    /// Index of the feed.
    pub index: usize,
    /// When up, receiving ends.
    pub stop: Arc<AtomicBool>,
    /// Bytes that it may be ahead of the decoders.
    pub lag_bytes_max: u64,
    /// Bytes of a file of a datagram journal, about.
    pub file_bytes: u64,
}

impl Place {
    fn stats(&self) -> &FeedStats {
        &self.stats.feeds[self.index]
    }

    fn stopped(&self) -> bool {
        // Relaxed: seen soon enough; nothing is handed over by it.
        self.stop.load(Ordering::Relaxed)
    }

    fn full(&self) -> bool {
        self.stats().lag_bytes() >= self.lag_bytes_max
    }

    fn came(&self, bytes: u64) {
        self.stats().received(bytes);
        self.stats.wake.up();
    }
}

/// Starts the receiver of the feed `name`; `None` when its journal is closed and nothing more will come.
///
/// # Errors
/// When the socket or the pipe cannot be opened, or the disk refuses.
pub fn start(name: &str, receive: &Receive, place: Place) -> Result<Option<JoinHandle<()>>, Error> {
    let closed = place.dir.join(CLOSED);
    match receive {
        // Each run has an input of its own.
        Receive::Stdin => _ = std::fs::remove_file(&closed),
        _ if closed.exists() => return Ok(None),
        _ => {}
    }
    let work: Box<dyn FnOnce() -> Result<(), Error> + Send> = match receive.clone() {
        Receive::Udp { lines, buffer_bytes, when_full, day_begins } => {
            let journal = PacketJournal::open(&place.dir, place.file_bytes, day_begins)?;
            let sockets = Sockets::open(&lines, buffer_bytes)?;
            let place = place.clone();
            Box::new(move || udp::receive(sockets, when_full, journal, &place))
        }
        streams => {
            let goes_on = match &streams {
                Receive::Listen { resume, .. } | Receive::Connect { resume, .. } => *resume,
                Receive::Fifo(_) => true,
                _ => false,
            };
            let journal = StreamJournal::open(&place.dir, goes_on)?;
            let opened = stream::Opened::new(streams)?;
            let place = place.clone();
            Box::new(move || opened.receive(journal, &place))
        }
    };
    place.stats().received_bytes.store(journaled_bytes(&place.dir), Ordering::Relaxed);
    let told = place;
    let body = move || {
        if let Err(error) = work() {
            told.stats().fail(error.to_string());
        }
        told.stats.wake.up();
    };
    std::thread::Builder::new()
        .name(format!("receive[{name}]"))
        .spawn(body)
        .map(Some)
        .map_err(|source| Error::Spawn { worker: 0, source })
}

/// Our clock, ns since 1970.
fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Waits until there is something to read, for a short while; whether there is.
fn readable(fd: &impl std::os::fd::AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    let wait = Timespec { tv_sec: 0, tv_nsec: LOOK.as_nanos() as i64 };
    poll(&mut fds, Some(&wait)).is_ok_and(|n| n > 0)
}

/// How soon a receiver that waits sees that it is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// How long a receiver sleeps that may not go on reading.
const PAUSE: Duration = Duration::from_millis(1);
