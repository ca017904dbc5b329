//! Receivers: sockets and pipes, written down in journals as they come.
//!
//! Each feed has one thread. It reads, writes the journal, counts, and wakes the intake; it knows nothing of formats.
//! When it is too far ahead of the decoders, it stops reading a stream; its sender then waits, by TCP's or the pipe's
//! own back-pressure. Datagrams are dropped, by us or by the kernel as configured. Each drop is counted and is in the
//! journal, so it comes onto the tape.

mod clock;
mod retry;
mod stream;
mod tcp;
mod udp;
mod wait;

use crate::error::Error;
use crate::sources::folder::FolderKind;
use crate::sources::journal::{
    self, CLOSED, InitialJournalState, LastFile, PacketJournal, StreamContinuity, StreamJournal,
    journaled_bytes, noted_number,
};
use crate::sources::link::RestartPolicy;
use crate::sources::stats::{FeedStats, RunMonitor};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use unitape_marketdata::wire::{UdpEndpoint, UdpSockets};
use unitape_model::{ErrorCause, UnixNanos};

pub use clock::{ClockSource, ClockWriter, TickReference, TickRequest, WallClock};
pub use tcp::TcpFeed;
pub use udp::OverflowPolicy;
pub use wait::HaltSignal;

/// The input of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiveSource {
    /// TCP, where senders connect; one connection at a time.
    Listen(TcpFeed),
    /// TCP, to a sender that listens.
    Connect(TcpFeed),
    /// A named pipe.
    Fifo(PathBuf),
    /// Standard input.
    Stdin,
    /// The run's own clock: a tick when the feeds are quiet.
    Clock(ClockSource),
    /// UDP, to hosts or to groups, all of them into one journal.
    Udp {
        /// The addresses that datagrams are sent to.
        lines: Vec<UdpEndpoint>,
        /// Bytes of the buffer of each socket, as the kernel grants them.
        buffer_bytes: usize,
        /// When the decoders are too far behind.
        when_full: OverflowPolicy,
        /// So long after midnight (UTC) the journal begins a new file.
        day_begins: Option<Duration>,
    },
}

impl ReceiveSource {
    /// Returns the kind of the journal's directory.
    pub(crate) fn folder_kind(&self) -> FolderKind {
        match self {
            ReceiveSource::Udp { .. } => FolderKind::Packets,
            _ => FolderKind::Streams,
        }
    }

    pub(crate) fn continuity(&self) -> StreamContinuity {
        match self {
            ReceiveSource::Udp { .. } => StreamContinuity::Packets,
            ReceiveSource::Listen(feed) | ReceiveSource::Connect(feed) if feed.resume => {
                StreamContinuity::Resumed
            }
            ReceiveSource::Fifo(_) | ReceiveSource::Clock(_) => StreamContinuity::Pipe,
            ReceiveSource::Listen(_) | ReceiveSource::Connect(_) | ReceiveSource::Stdin => {
                StreamContinuity::Connection
            }
        }
    }
}

/// The context of a receiver: its journal, and its statistics.
#[derive(Clone, Debug)]
pub struct ReceiverContext {
    /// Directory of the journal.
    pub dir: PathBuf,
    /// Figures of the run.
    pub stats: Arc<RunMonitor>,
    /// Index of the feed.
    pub index: usize,
    /// When up, receiving ends.
    pub stop: Arc<AtomicBool>,
    /// Bytes that it may be ahead of the decoders.
    pub lag_bytes_max: u64,
    /// The number of the journal's last file in the tape's dictionary log; 0 without one.
    pub tape_number: u64,
    /// Bytes of a file of a datagram journal, about.
    pub file_bytes: u64,
    /// The restart policy when it fails.
    pub restart: RestartPolicy,
    /// Ends its waits when the run stops.
    pub halt: Arc<HaltSignal>,
    /// It asks again and again instead of waiting in the kernel.
    pub spin: bool,
}

impl ReceiverContext {
    fn feed_stats(&self) -> &FeedStats {
        &self.stats.feeds[self.index]
    }

    fn is_stopped(&self) -> bool {
        // Relaxed: seen soon enough; nothing is handed over by it.
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns the last file that the journal ever had; `None` if the run must stop. If the journal was removed or
    /// the machine was restarted, the receiver waits for the number that the tape knows.
    fn last_file(&self) -> Option<LastFile> {
        let file_note = noted_number(&self.dir);
        // A journal from a backup notes less than the tape knows.
        let number = file_note.map_or(0, |note| note.number).max(self.tape_number);
        if file_note.is_some_and(|note| note.is_of_this_boot) {
            return Some(LastFile { number, read_bytes: 0 });
        }
        loop {
            if let Some(journal_read) = self.feed_stats().journal_read.get() {
                return Some(LastFile {
                    number: number.max(journal_read.number),
                    read_bytes: journal_read.read_of(number),
                });
            }
            if self.is_stopped() {
                return None;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn is_full(&self) -> bool {
        self.feed_stats().lag_bytes() >= self.lag_bytes_max
    }

    fn note_bytes(&self, bytes: u64) {
        if bytes > 0 {
            self.feed_stats().note_received(bytes);
            self.wake_intake();
        }
    }

    /// Has the journal read: it has more, or its stream has ended, or the receiver is in another state.
    fn wake_intake(&self) {
        // Release: pairs with the Acquire of the intake; what was written before is there.
        self.feed_stats().came.store(true, Ordering::Release);
        self.stats.wake.notify();
        self.stats.placed.notify();
    }

    /// Wakes the reader of the journal after a new file has begun, or if no more data will arrive.
    fn wake_for_file(&self) {
        // Release: as in `wake`.
        self.feed_stats().began.store(true, Ordering::Release);
        self.wake_intake();
    }
}

/// Starts the receiver of the feed `name`; `None` when its journal is closed and nothing more will come. Its socket or pipe is
/// opened in its thread: what cannot be opened yet is tried again, and holds up no other feed.
///
/// # Errors
/// Fails if the system has no thread for it.
pub fn start(
    name: &str,
    receive: &ReceiveSource,
    context: ReceiverContext,
) -> Result<Option<JoinHandle<()>>, Error> {
    let closed_path = context.dir.join(CLOSED);
    match receive {
        // Each run has an input of its own.
        ReceiveSource::Stdin => _ = std::fs::remove_file(&closed_path),
        // The sequencer writes it.
        ReceiveSource::Clock(_) => return Ok(None),
        _ if closed_path.exists() => return Ok(None),
        _ => {}
    }
    let lock = match journal::lock(&context.dir) {
        Ok(lock) => lock,
        Err(error) => {
            context.feed_stats().fail(error.to_string(), error.cause());
            return Ok(None);
        }
    };
    // Once is enough: a feed has one receiver.
    _ = context.feed_stats().journal_start.set(InitialJournalState::read(&context.dir));
    context.feed_stats().received_bytes.store(journaled_bytes(&context.dir), Ordering::Relaxed);
    if matches!(receive, ReceiveSource::Listen(_) | ReceiveSource::Connect(_)) {
        context.feed_stats().link.wait();
    }
    let receive = receive.clone();
    let body = move || {
        // A receiver that has panicked says so on stderr; the feed must not seem to be at its end.
        match catch_unwind(AssertUnwindSafe(|| receive_from(receive, &context))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => context.feed_stats().fail(error.to_string(), error.cause()),
            Err(_) => context.feed_stats().fail("its receiver has panicked".to_owned(), ErrorCause::Outside),
        }
        drop(lock);
        context.wake_for_file();
    };
    std::thread::Builder::new()
        .name(format!("receive[{name}]"))
        .spawn(body)
        .map(Some)
        .map_err(|source| Error::Spawn { worker: 0, source })
}

/// Opens the input and its journal, and receives.
fn receive_from(receive: ReceiveSource, context: &ReceiverContext) -> Result<(), Error> {
    let Some(last_file) = context.last_file() else { return Ok(()) };
    match receive {
        ReceiveSource::Udp { lines, buffer_bytes, when_full, day_begins } => {
            let open_journal =
                || PacketJournal::open(&context.dir, context.file_bytes, day_begins, last_file);
            let Some(journal) = context.outlast(open_journal)? else { return Ok(()) };
            let open_sockets =
                || Ok(UdpSockets::open(&lines, buffer_bytes)?.ended_by(context.halt.wait_fd()));
            let Some(sockets) = context.outlast(open_sockets)? else { return Ok(()) };
            udp::receive(sockets, when_full, journal, context)
        }
        streams => {
            let continuity = streams.continuity();
            let Some(journal) =
                context.outlast(|| StreamJournal::open(&context.dir, continuity, last_file))?
            else {
                return Ok(());
            };
            let Some(stream_endpoint) =
                context.outlast(|| stream::StreamEndpoint::new(streams.clone(), context))?
            else {
                return Ok(());
            };
            stream_endpoint.receive(journal, context)
        }
    }
}

/// Returns the present time of our clock.
pub(crate) fn now() -> UnixNanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).map_or(UnixNanos::MAX, UnixNanos)
}

/// Returns the time since `received`. It is 0 if the clock was set back.
pub(crate) fn age_ns(received: UnixNanos) -> i64 {
    now().0.saturating_sub(received.0).max(0)
}

/// How often a receiver of datagrams asks how many the kernel has dropped.
const LOOK: Duration = Duration::from_millis(200);

/// How long a receiver sleeps when it must not continue reading.
const PAUSE: Duration = Duration::from_millis(1);
