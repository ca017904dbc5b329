//! TCP in both directions: one sender at a time, each connection a source of its own or a piece of one stream.
//!
//! **One connection, one source.** Where a connection ends, its last message ends: half a message goes into
//! quarantine as truncated, and the next connection starts clean. With `resume`, all connections are pieces of one
//! stream instead. On each one unitape first sends a line `unitape-resume N`, N being the bytes of the stream that it
//! has written down, and the sender resumes from there. So neither our death nor the sender's loses or repeats a
//! byte.
//!
//! **A second sender** is refused at once, and stderr says so: it would wait in the socket for the first one to go. A
//! sender that connects after the first has hung up is served when all bytes of the first one have been read. The
//! kernel's keepalive finds a sender that has vanished, and `idle_limit` finds one that is silent for too long.

use super::stream::{StreamEnd, StreamPeer, copy};
use super::{PAUSE, ReceiverContext};
use crate::error::Error;
use crate::sources::journal::StreamJournal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{SockRef, TcpKeepalive};
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A feed that arrives by TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpFeed {
    /// Host and port.
    pub address: String,
    /// Whether connections are pieces of one stream; then unitape sends to each the number of bytes that it already
    /// has.
    pub resume: bool,
    /// Ends after this number of connections; 0: never.
    pub connections: u64,
    /// The time after which the kernel probes a silent peer; `None` means never.
    pub keepalive: Option<Duration>,
    /// A connection that brings nothing for so long is closed; `None`: never.
    pub idle_limit: Option<Duration>,
}

/// Opens the socket that listens.
///
/// # Errors
/// Fails if the system refuses.
pub fn listen(feed: &TcpFeed, context: &ReceiverContext) -> Result<TcpListener, Error> {
    let fail = |operation| move |source| Error::Socket { address: feed.address.clone(), operation, source };
    let since = Instant::now();
    let socket = loop {
        // The address is used again at once (SO_REUSEADDR): what remains of old connections does not hold it.
        match TcpListener::bind(&feed.address) {
            // A run that was killed may be about to die.
            Err(e)
                if e.kind() == ErrorKind::AddrInUse && since.elapsed() < DYING && !context.is_stopped() =>
            {
                context.sleep(Duration::from_millis(5));
            }
            other => break other.map_err(fail("listen"))?,
        }
    };
    socket.set_nonblocking(true).map_err(fail("listen"))?;
    Ok(socket)
}

/// Receives from senders that connect to `socket`, one after the other.
///
/// # Errors
/// Fails if the journal cannot be written, or nobody can be accepted.
pub fn serve(
    socket: &TcpListener,
    feed: &TcpFeed,
    journal: StreamJournal,
    context: &ReceiverContext,
) -> Result<(), Error> {
    let accept = || match socket.accept() {
        Ok(accepted) => Ok(Some(accepted)),
        Err(e) if is_passing(&e) => {
            _ = context.wait(socket, None, None);
            Ok(None)
        }
        Err(source) => Err(Error::Socket { address: feed.address.clone(), operation: "accept", source }),
    };
    receive_connections(accept, Some(socket), feed, journal, context)
}

/// Receives from a sender that listens, again and again.
///
/// # Errors
/// Fails if the journal cannot be written, or the host is not known any more.
pub fn call(feed: &TcpFeed, journal: StreamJournal, context: &ReceiverContext) -> Result<(), Error> {
    let mut refusals = ConnectFailures::default();
    let connect = || {
        context.sleep(refusals.wait);
        if context.is_stopped() {
            return Ok(None);
        }
        let lookup = feed.address.to_socket_addrs();
        let addresses = lookup.map_err(|source| Error::Socket {
            address: feed.address.clone(),
            operation: "find",
            source,
        });
        let mut refused = None;
        for address in addresses? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => {
                    refusals.end_failures(context, address);
                    return Ok(Some((stream, address)));
                }
                Err(e) => refused = Some((address, e)),
            }
        }
        refusals.note_failure(context, refused);
        Ok(None)
    };
    receive_connections(connect, None, feed, journal, context)
}

/// Attempts to connect that failed one after the other.
#[derive(Debug, Default)]
struct ConnectFailures {
    count: u64,
    last_message: String,
    /// The wait before the next attempt: it grows up to a bound while nobody answers.
    wait: Duration,
}

impl ConnectFailures {
    fn note_failure(&mut self, context: &ReceiverContext, refused: Option<(SocketAddr, std::io::Error)>) {
        self.count += 1;
        self.wait = context.restart.next_wait(self.wait);
        context.feed_stats().refusals.fetch_add(1, Ordering::Relaxed);
        let message = match refused {
            Some((address, e)) => format!("cannot connect to {address}: {e}"),
            None => "cannot connect: the host has no address".to_owned(),
        };
        if message != self.last_message {
            let backoff_max = context.restart.backoff_max;
            context
                .feed_stats()
                .link
                .note(format!("{message}; it is tried again, at least every {backoff_max:?}"));
            self.last_message = message;
        }
    }

    fn end_failures(&mut self, context: &ReceiverContext, address: SocketAddr) {
        if self.count > 0 {
            let (n, times) = (self.count, if self.count == 1 { "attempt" } else { "attempts" });
            context.feed_stats().link.note(format!("is connected to {address}, after {n} {times}"));
        }
        // A sender that hangs up at once is not asked at once.
        *self = Self { wait: context.restart.next_wait(Duration::ZERO), ..Self::default() };
    }
}

/// Receives one connection after the other.
fn receive_connections(
    mut next: impl FnMut() -> Result<Option<(TcpStream, SocketAddr)>, Error>,
    listener: Option<&TcpListener>,
    feed: &TcpFeed,
    mut journal: StreamJournal,
    context: &ReceiverContext,
) -> Result<(), Error> {
    let mut attempts = 0;
    while !context.is_stopped() {
        let Some(Some((stream, peer))) = context.outlast(&mut next)? else { continue };
        attempts += 1;
        context.feed_stats().connections.fetch_add(1, Ordering::Relaxed);
        context.feed_stats().link.connect();
        context.wake_intake();
        let side = StreamPeer { listener, peer: Some(peer), feed: Some(feed) };
        let stream_end = receive_connection(stream, &side, &mut journal, context)?;
        if !feed.resume {
            context.outlast_with(|| journal.end())?;
        }
        context.feed_stats().link.wait();
        context.wake_intake();
        if stream_end == StreamEnd::There && attempts == feed.connections {
            return context.outlast_with(|| journal.close());
        }
    }
    Ok(())
}

fn receive_connection(
    mut stream: TcpStream,
    side: &StreamPeer<'_>,
    journal: &mut StreamJournal,
    context: &ReceiverContext,
) -> Result<StreamEnd, Error> {
    let Some(journal_bytes) = context.outlast(|| journal.begin())? else { return Ok(StreamEnd::Here) };
    context.wake_for_file();
    // A socket that fails is a connection that ended.
    let ready = stream.set_nonblocking(true).and_then(|()| {
        if let Some(after) = side.feed.and_then(|feed| feed.keepalive) {
            let between = (after / 3).max(Duration::from_secs(1));
            let keepalive = TcpKeepalive::new().with_time(after).with_interval(between).with_retries(3);
            SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
        }
        match side.feed.is_some_and(|feed| feed.resume) {
            true => stream.write_all(format!("unitape-resume {journal_bytes}\n").as_bytes()),
            false => Ok(()),
        }
    });
    if ready.is_err() {
        return Ok(StreamEnd::There);
    }
    let fd = stream.try_clone();
    match fd {
        Ok(fd) => copy(&mut stream, &fd, side, journal, context),
        Err(_) => Ok(StreamEnd::There),
    }
}

impl StreamPeer<'_> {
    /// Refuses new senders while the sender of `connected` is connected. After it hangs up, its remaining bytes must
    /// be read, and the next sender waits meanwhile.
    pub fn refuse_new_senders(&self, connected: &impl AsFd, context: &ReceiverContext) {
        let Some(listener) = self.listener else { return };
        // A sender that is in the queue at the first look came before the second one.
        while is_ready(listener, PollFlags::IN) && !is_ready(connected, PollFlags::RDHUP) {
            match listener.accept() {
                Ok((mut stream, from)) => {
                    context.feed_stats().refused.fetch_add(1, Ordering::Relaxed);
                    let peer = self.peer.map_or_else(|| "another".to_owned(), |peer| peer.to_string());
                    context.feed_stats().link.note(format!(
                        "refused a sender from {from}: {peer} is connected, and a port serves one sender at a time"
                    ));
                    if self.feed.is_some_and(|feed| feed.resume) {
                        // It waits for a line; one that does not fit is no reason to wait.
                        _ = stream.set_nonblocking(true).and_then(|()| stream.write_all(b"unitape-busy\n"));
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    // Without descriptors it stays in the socket.
                    context.sleep(PAUSE);
                    return;
                }
            }
        }
    }
}

/// Returns whether one of these events, an error or a hang-up is present now.
fn is_ready(fd: &impl AsFd, events: PollFlags) -> bool {
    let mut fds = [PollFd::new(fd, events)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|n| n > 0)
}

/// Returns whether an error means only that no data or connection is available now.
pub fn is_passing(e: &std::io::Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::TimedOut | ErrorKind::ConnectionAborted
    )
}

/// How long one attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(2);

/// How long a port may be in use by a run that was killed just now.
const DYING: Duration = Duration::from_secs(1);
