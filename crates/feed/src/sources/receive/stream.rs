//! Streams: TCP in both directions, named pipes, standard input.

use super::tcp::{self, TcpFeed, is_passing};
use super::{PAUSE, ReceiveSource, ReceiverContext, now};
use crate::error::Error;
use crate::sources::journal::StreamJournal;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The open endpoint of a stream receiver, before data arrives.
#[derive(Debug)]
pub enum StreamEndpoint {
    /// A socket that listens.
    Listener(TcpListener, TcpFeed),
    /// The address to connect to.
    Address(TcpFeed),
    /// A named pipe.
    Fifo(PathBuf, File),
    /// Standard input.
    Stdin,
}

/// Why a stream came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The other side, or the network.
    There,
    /// The run.
    Here,
}

/// The surroundings of a stream while it is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamPeer<'a> {
    /// The listener for further senders, which are refused.
    pub listener: Option<&'a TcpListener>,
    /// The sender.
    pub peer: Option<SocketAddr>,
    /// The settings of its feed, if it uses TCP.
    pub feed: Option<&'a TcpFeed>,
}

impl StreamEndpoint {
    /// Opens everything that can be opened before data arrives.
    ///
    /// # Errors
    /// Fails if the endpoint cannot be opened.
    pub fn new(receive: ReceiveSource, context: &ReceiverContext) -> Result<Self, Error> {
        Ok(match receive {
            ReceiveSource::Listen(feed) => StreamEndpoint::Listener(tcp::listen(&feed, context)?, feed),
            ReceiveSource::Connect(feed) => {
                // A name that is not known has failed; a host that is not there yet may come.
                let lookup = feed.address.to_socket_addrs();
                lookup.map_err(|source| Error::Socket {
                    address: feed.address.clone(),
                    operation: "find",
                    source,
                })?;
                StreamEndpoint::Address(feed)
            }
            ReceiveSource::Fifo(path) => {
                let file = open_fifo(&path)?;
                StreamEndpoint::Fifo(path, file)
            }
            ReceiveSource::Stdin | ReceiveSource::Clock(_) | ReceiveSource::Udp { .. } => {
                StreamEndpoint::Stdin
            }
        })
    }

    /// Receives until the run stops or the stream has ended for good.
    ///
    /// # Errors
    /// Fails if the journal cannot be written.
    pub fn receive(self, mut journal: StreamJournal, context: &ReceiverContext) -> Result<(), Error> {
        match self {
            StreamEndpoint::Listener(socket, feed) => tcp::serve(&socket, &feed, journal, context),
            StreamEndpoint::Address(feed) => tcp::call(&feed, journal, context),
            StreamEndpoint::Fifo(path, mut file) => loop {
                if context.outlast(|| journal.begin())?.is_none() {
                    return Ok(());
                }
                context.wake_for_file();
                if copy_pipe(&file, &mut journal, context)? == StreamEnd::Here {
                    return Ok(());
                }
                // All writers are gone. The new reader is there before the old one goes, so that what a new
                // writer sends in between has a reader.
                context.outlast_with(|| journal.end())?;
                context.wake_intake();
                match context.outlast(|| open_fifo(&path))? {
                    Some(new_file) => file = new_file,
                    None => return Ok(()),
                }
            },
            StreamEndpoint::Stdin => {
                if context.outlast(|| journal.begin())?.is_none() {
                    return Ok(());
                }
                context.wake_for_file();
                let stdin = std::io::stdin();
                let stream_end = match is_pipe(&stdin) {
                    true => copy_pipe(&stdin, &mut journal, context)?,
                    false => copy(&mut stdin.lock(), &stdin, &StreamPeer::default(), &mut journal, context)?,
                };
                context.outlast_with(|| match stream_end {
                    StreamEnd::There => journal.close(),
                    StreamEnd::Here => journal.end(),
                })
            }
        }
    }
}

/// Reads and writes down until the end.
///
/// # Errors
/// Fails if the journal cannot be written.
pub fn copy(
    from: &mut impl Read,
    fd: &impl AsFd,
    side: &StreamPeer<'_>,
    journal: &mut StreamJournal,
    context: &ReceiverContext,
) -> Result<StreamEnd, Error> {
    let mut buf = vec![0; READ_BYTES];
    let limit = side.feed.and_then(|feed| feed.idle_limit);
    let resume = side.feed.is_some_and(|feed| feed.resume);
    let listener = side.listener.map(AsFd::as_fd);
    let mut last_read = Instant::now();
    let mut rotation = JournalRotation::default();
    loop {
        if context.is_stopped() {
            return Ok(StreamEnd::Here);
        }
        if pause_if_full(context) {
            side.refuse_new_senders(fd, context);
            last_read = Instant::now();
            continue;
        }
        let time_left = limit.map(|limit| limit.saturating_sub(last_read.elapsed()));
        let ready = context.wait(fd, listener, time_left);
        if ready.is_second_ready {
            side.refuse_new_senders(fd, context);
        }
        if !ready.is_first_ready {
            if let Some(limit) = limit.filter(|limit| last_read.elapsed() >= *limit) {
                let peer = side.peer.map_or_else(|| "its sender".to_owned(), |peer| peer.to_string());
                context
                    .feed_stats()
                    .link
                    .note(format!("{peer} has sent nothing for {limit:?}: its connection is closed"));
                return Ok(StreamEnd::There);
            }
            continue;
        }
        let read_bytes_max = if resume { rotation.read_bytes(journal, context)? } else { READ_BYTES };
        match from.read(&mut buf[..read_bytes_max]) {
            Ok(0) => return Ok(StreamEnd::There),
            Ok(n) => {
                let ts = now();
                context.outlast_with(|| journal.append(&buf[..n], ts))?;
                context.note_bytes(n as u64);
                last_read = Instant::now();
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(e) => {
                if let Some(peer) = side.peer {
                    context.feed_stats().link.note(format!("the connection of {peer} has ended: {e}"));
                }
                return Ok(StreamEnd::There);
            }
        }
    }
}

/// When the journal of a resumed stream continues in a further file.
#[derive(Debug, Default)]
struct JournalRotation {
    /// The decoder made no progress: the receiver does not wait for it before this time.
    not_before: Option<Instant>,
}

impl JournalRotation {
    /// Lets the stream continue in a further file where the present one is long enough and ends between two messages,
    /// as the decoder says. Returns how many bytes to read next.
    fn read_bytes(&mut self, journal: &mut StreamJournal, context: &ReceiverContext) -> Result<usize, Error> {
        let len = journal.file_len();
        if len < context.file_bytes || self.not_before.is_some_and(|earliest| Instant::now() < earliest) {
            return Ok(READ_BYTES);
        }
        let (began, before) = (Instant::now(), context.feed_stats().decoded_position());
        if before.number != journal.number() {
            // Nothing of this file has been decoded in this run.
            return Ok(READ_BYTES);
        }
        loop {
            let settled = context.feed_stats().decoded_position();
            if settled.number == journal.number() && settled.through == len {
                if settled.between_messages {
                    context.outlast_with(|| journal.rotate())?;
                    context.wake_for_file();
                    return Ok(READ_BYTES);
                }
                // Short ones of another length each time: soon one ends where a message does, however the sender writes.
                return Ok(1 + (len.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize);
            }
            if began.elapsed() >= SETTLE || context.is_stopped() {
                // Its blocks wait for another feed, perhaps for long: the sender is not to wait with them.
                self.not_before = (settled == before).then(|| began + SETTLE_AGAIN);
                return Ok(READ_BYTES);
            }
            std::thread::sleep(SETTLE_LOOK);
        }
    }
}

/// Moves a pipe into the journal until its end.
fn copy_pipe(
    pipe: &impl AsFd,
    journal: &mut StreamJournal,
    context: &ReceiverContext,
) -> Result<StreamEnd, Error> {
    loop {
        if context.is_stopped() {
            return Ok(StreamEnd::Here);
        }
        if pause_if_full(context) || !context.wait(pipe, None, None).is_first_ready {
            continue;
        }
        // The data in the pipe stays there, and the journal has all moved data: nothing is in hand.
        let moved_bytes = context.outlast(|| match journal.splice(pipe, now) {
            Err(Error::Read { source, .. }) if is_passing(&source) => Ok(None),
            moved => moved.map(Some),
        })?;
        match moved_bytes {
            Some(Some(0)) => return Ok(StreamEnd::There),
            Some(Some(n)) => context.note_bytes(n as u64),
            Some(None) => {}
            None => return Ok(StreamEnd::Here),
        }
    }
}

/// Waits a little when the decoders are too far behind; whether it did.
fn pause_if_full(context: &ReceiverContext) -> bool {
    let full = context.is_full();
    if full {
        context.feed_stats().pauses.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(PAUSE);
    }
    full
}

fn open_fifo(path: &Path) -> Result<File, Error> {
    let fail = |source| Error::Read { path: path.to_owned(), offset: 0, source };
    // Without waiting for a writer.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(fail)?;
    if !is_pipe(&file) {
        return Err(fail(std::io::Error::new(ErrorKind::InvalidInput, "is no named pipe")));
    }
    Ok(file)
}

fn is_pipe(fd: &impl AsFd) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|s| rustix::fs::FileType::from_raw_mode(s.st_mode).is_fifo())
}

/// Bytes that one read of a socket asks for.
const READ_BYTES: usize = 256 << 10;

/// How long the decoder is waited for there, once for each read, and how soon it is seen.
const SETTLE: Duration = Duration::from_millis(200);
const SETTLE_LOOK: Duration = Duration::from_micros(100);

/// How long the receiver does not wait for a decoder without progress.
const SETTLE_AGAIN: Duration = Duration::from_secs(1);
