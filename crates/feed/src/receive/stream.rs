//! Streams: TCP in both directions, named pipes, standard input.
//!
//! **One connection, one source.** Where a connection ends, its last message ends: half a message goes into
//! quarantine as truncated, and the next connection starts clean. With `resume`, all connections are pieces of one
//! stream instead: on each one we first send a line `unitape-resume N`, N being the bytes of the stream that we
//! have written down, and the sender goes on from there. So neither our death nor the sender's loses or repeats
//! a byte.

use super::{LOOK, PAUSE, Place, Receive, now_ns, readable};
use crate::error::Error;
use crate::journal::StreamJournal;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a receiver of streams has open before its thread begins.
#[derive(Debug)]
pub enum Opened {
    /// A socket that listens.
    #[allow(missing_docs)]
    Listener { socket: TcpListener, address: String, resume: bool, connections: u64 },
    /// Where to connect to.
    #[allow(missing_docs)]
    Address { address: String, resume: bool, connections: u64 },
    /// A named pipe.
    Fifo(PathBuf, File),
    /// Standard input.
    Stdin,
}

/// Why a stream came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// The other side, or the network.
    There,
    /// The run.
    Here,
}

impl Opened {
    /// Opens what can be opened before data comes.
    ///
    /// # Errors
    /// When it cannot be.
    pub fn new(receive: Receive) -> Result<Self, Error> {
        Ok(match receive {
            Receive::Listen { address, resume, connections } => {
                let fail = |what| {
                    let address = address.clone();
                    move |source| Error::Socket { address, what, source }
                };
                let socket = TcpListener::bind(&address).map_err(fail("listen"))?;
                socket.set_nonblocking(true).map_err(fail("listen"))?;
                Opened::Listener { socket, address, resume, connections }
            }
            Receive::Connect { address, resume, connections } => {
                // A name that cannot be is said at once; a host that is not there yet may come.
                address.to_socket_addrs().map_err(|source| Error::Socket {
                    address: address.clone(),
                    what: "find",
                    source,
                })?;
                Opened::Address { address, resume, connections }
            }
            Receive::Fifo(path) => {
                let file = open_fifo(&path)?;
                Opened::Fifo(path, file)
            }
            Receive::Stdin | Receive::Udp { .. } => Opened::Stdin,
        })
    }

    /// Receives until the run stops or the stream has ended for good.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn receive(self, mut journal: StreamJournal, place: &Place) -> Result<(), Error> {
        match self {
            Opened::Listener { socket, address, resume, connections } => {
                let accept = || match socket.accept() {
                    Ok((stream, _)) => Ok(Some(stream)),
                    Err(e) if passing(&e) => {
                        _ = readable(&socket);
                        Ok(None)
                    }
                    Err(source) => Err(Error::Socket { address: address.clone(), what: "accept", source }),
                };
                connected(accept, (resume, connections), journal, place)
            }
            Opened::Address { address, resume, connections } => {
                let mut wait = Duration::ZERO;
                let connect = || {
                    sleep(wait, place);
                    let stream = address
                        .to_socket_addrs()
                        .ok()
                        .and_then(|mut all| all.find_map(|a| TcpStream::connect_timeout(&a, CONNECT).ok()));
                    // The longer it is not there, the less often it is asked for; up to a bound.
                    wait = if stream.is_some() { RETRY } else { (wait * 2).clamp(RETRY, RETRY_MAX) };
                    Ok(stream)
                };
                connected(connect, (resume, connections), journal, place)
            }
            Opened::Fifo(path, mut file) => loop {
                journal.begin()?;
                if pipe(&file, &mut journal, place)? == Ended::Here {
                    return Ok(());
                }
                // All writers are gone. The new reader is there before the old one goes, so that what a new
                // writer sends in between has a reader.
                journal.end()?;
                place.stats.wake.up();
                file = open_fifo(&path)?;
            },
            Opened::Stdin => {
                journal.begin()?;
                let stdin = std::io::stdin();
                let ended = match is_pipe(&stdin) {
                    true => pipe(&stdin, &mut journal, place)?,
                    false => copy(&mut stdin.lock(), &stdin, &mut journal, place)?,
                };
                match ended {
                    Ended::There => journal.close()?,
                    Ended::Here => journal.end()?,
                }
                Ok(())
            }
        }
    }
}

/// Receives one connection after the other.
fn connected(
    mut next: impl FnMut() -> Result<Option<TcpStream>, Error>,
    (resume, connections): (bool, u64),
    mut journal: StreamJournal,
    place: &Place,
) -> Result<(), Error> {
    let mut made = 0;
    while !place.stopped() {
        let Some(stream) = next()? else { continue };
        made += 1;
        place.stats().connections.fetch_add(1, Ordering::Relaxed);
        let ended = connection(stream, resume, &mut journal, place)?;
        if !resume {
            journal.end()?;
            place.stats.wake.up();
        }
        if ended == Ended::There && made == connections {
            return journal.close();
        }
    }
    Ok(())
}

fn connection(
    mut stream: TcpStream,
    resume: bool,
    journal: &mut StreamJournal,
    place: &Place,
) -> Result<Ended, Error> {
    let have = journal.begin()?;
    // A socket that fails is a connection that ended.
    let ready = stream.set_nonblocking(true).and_then(|()| {
        if resume { stream.write_all(format!("unitape-resume {have}\n").as_bytes()) } else { Ok(()) }
    });
    if ready.is_err() {
        return Ok(Ended::There);
    }
    let fd = stream.try_clone();
    match fd {
        Ok(fd) => copy(&mut stream, &fd, journal, place),
        Err(_) => Ok(Ended::There),
    }
}

/// Reads and writes down until the end.
fn copy(
    from: &mut impl Read,
    fd: &impl AsFd,
    journal: &mut StreamJournal,
    place: &Place,
) -> Result<Ended, Error> {
    let mut buf = vec![0; READ_BYTES];
    loop {
        if place.stopped() {
            return Ok(Ended::Here);
        }
        if paused(place) || !readable(fd) {
            continue;
        }
        match from.read(&mut buf) {
            Ok(0) => return Ok(Ended::There),
            Ok(n) => {
                journal.append(&buf[..n], now_ns())?;
                place.came(n as u64);
            }
            Err(e) if passing(&e) => {}
            Err(_) => return Ok(Ended::There),
        }
    }
}

/// Moves a pipe into the journal until its end.
fn pipe(pipe: &impl AsFd, journal: &mut StreamJournal, place: &Place) -> Result<Ended, Error> {
    loop {
        if place.stopped() {
            return Ok(Ended::Here);
        }
        if paused(place) || !readable(pipe) {
            continue;
        }
        match journal.splice(pipe, now_ns) {
            Ok(0) => return Ok(Ended::There),
            Ok(n) => place.came(n as u64),
            Err(Error::Read { source, .. }) if passing(&source) => {}
            Err(e) => return Err(e),
        }
    }
}

/// Waits a little when the decoders are too far behind; whether it did.
fn paused(place: &Place) -> bool {
    let full = place.full();
    if full {
        place.stats().pauses.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(PAUSE);
    }
    full
}

fn sleep(whole: Duration, place: &Place) {
    let mut left = whole;
    while !left.is_zero() && !place.stopped() {
        let part = left.min(LOOK);
        std::thread::sleep(part);
        left -= part;
    }
}

fn passing(e: &std::io::Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::TimedOut | ErrorKind::ConnectionAborted
    )
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

/// How long one attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(2);

/// How long to wait before the next attempt to connect, at first and at most.
const RETRY: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Bytes that one read of a socket asks for.
const READ_BYTES: usize = 256 << 10;
