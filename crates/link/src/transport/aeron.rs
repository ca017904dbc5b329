//! Aeron over UDP: its C client, and its media driver in this process.
//!
//! ```text
//!  sender    subscription at its address, stream 1 ◀── hello, acknowledge ───────── publication   receiver
//!            publication, stream 2 ── welcome, data, announce … ─▶ subscription at its address
//! ```
//!
//! The driver works in a directory of its own, which is new each time: two drivers in one directory destroy each other, and a
//! driver waits up to 20 s before it uses a directory that had another one. The directory is beside a lock file. What a killed process
//! leaves is removed by the next one that finds this lock free.

use rusteron_media_driver::bindings::aeron_threading_mode_enum::AERON_THREADING_MODE_SHARED;
use rusteron_media_driver::{
    Aeron, AeronAsyncAddExclusivePublication, AeronContext, AeronDriver, AeronDriverContext,
    AeronExclusivePublication, AeronFragmentClosureAssembler, AeronHeader, AeronOfferError,
    AeronSubscription, Handlers, IntoCString,
};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::Transport;
use crate::error::Error;

/// The end of a link that a transport is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// Sends a tape.
    Sender,
    /// Receives a tape.
    Receiver,
}

/// Aeron over UDP. Fields are dropped in this order: a publication before its client, the client before its driver.
pub struct AeronTransport {
    publications: BTreeMap<SocketAddr, Publication>,
    subscription: AeronSubscription,
    assembler: AeronFragmentClosureAssembler,
    client: Aeron,
    _driver: AeronDriver,
    _directory: DriverDirectory,
    address: SocketAddr,
    stream_out: i32,
    /// The last error that Aeron has reported outside a call.
    reported: Arc<Mutex<Option<String>>>,
}

enum Publication {
    Requested(AeronAsyncAddExclusivePublication),
    Open(AeronExclusivePublication),
}

/// Bytes of a term. Aeron keeps three for each stream, in sparse files.
const TERM_BYTES: usize = 16 << 20;

/// Messages are taken in turns of this many fragments.
const FRAGMENTS: usize = 256;

const STREAM_TO_SENDER: i32 = 1;
const STREAM_TO_RECEIVER: i32 = 2;

/// How long client and driver may be stopped before one takes the other for dead.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long a driver may take to open a socket.
const OPEN_WAIT: Duration = Duration::from_secs(20);

impl AeronTransport {
    /// Starts a driver, and listens at `address`. With port 0 the system chooses one.
    ///
    /// # Errors
    /// Fails if the driver cannot start, or cannot listen there.
    pub fn open(end: LinkEnd, address: SocketAddr) -> Result<Self, Error> {
        let directory = DriverDirectory::create()?;
        let path = directory.path.join("driver").display().to_string().into_c_string();
        let driver = start_driver(&path).map_err(failed("start the media driver"))?;
        let reported = Arc::new(Mutex::new(None));
        let client = start_client(&path, reported.clone()).map_err(failed("start the client"))?;
        let (stream_in, stream_out) = match end {
            LinkEnd::Sender => (STREAM_TO_SENDER, STREAM_TO_RECEIVER),
            LinkEnd::Receiver => (STREAM_TO_RECEIVER, STREAM_TO_SENDER),
        };
        let subscription = subscribe(&client, address, stream_in, &reported)?;
        let resolved = subscription.resolved_endpoint_as_string(ENDPOINT_BYTES_MAX);
        let resolved = resolved.map_err(failed("ask for the address"))?;
        let address = resolved.parse().map_err(|_| Error::Aeron {
            doing: "ask for the address".to_owned(),
            what: format!("`{resolved}` is no address"),
        })?;
        let assembler =
            AeronFragmentClosureAssembler::new().map_err(failed("make an assembler of fragments"))?;
        Ok(Self {
            publications: BTreeMap::new(),
            subscription,
            assembler,
            client,
            _driver: driver,
            _directory: directory,
            address,
            stream_out,
            reported,
        })
    }

    /// Returns the open publication to an address. `None` if the driver is not ready with it.
    fn publication(&mut self, to: SocketAddr) -> Result<Option<&AeronExclusivePublication>, Error> {
        if !self.publications.contains_key(&to) {
            let channel = format!("{}|term-length={TERM_BYTES}", channel(to)).into_c_string();
            let requested = self.client.async_add_exclusive_publication(&channel, self.stream_out);
            let requested = requested.map_err(failed(format!("publish to {to}")))?;
            self.publications.insert(to, Publication::Requested(requested));
        }
        let publication = self.publications.get_mut(&to).expect("inserted above");
        if let Publication::Requested(requested) = publication {
            match requested.poll() {
                Ok(None) => return Ok(None),
                Ok(Some(open)) => *publication = Publication::Open(open),
                Err(error) => {
                    self.publications.remove(&to);
                    return Err(failed(format!("publish to {to}"))(error));
                }
            }
        }
        match &self.publications[&to] {
            Publication::Open(open) => Ok(Some(open)),
            Publication::Requested(_) => Ok(None),
        }
    }

    fn check_reported(&self) -> Result<(), Error> {
        // A thread that has panicked left the text whole.
        match self.reported.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(what) => Err(Error::Aeron { doing: "run the client".to_owned(), what }),
            None => Ok(()),
        }
    }
}

impl Transport for AeronTransport {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn message_bytes_max(&self) -> usize {
        // Aeron's limit is an eighth of a term.
        TERM_BYTES / 8
    }

    fn send(&mut self, to: SocketAddr, message: &[u8]) -> Result<bool, Error> {
        let Some(publication) = self.publication(to)? else { return Ok(false) };
        match publication.offer(message) {
            Ok(_) => Ok(true),
            Err(error) if error.is_retryable() => Ok(false),
            Err(AeronOfferError::MaxPositionExceeded) => {
                self.forget(to);
                Ok(false)
            }
            Err(error) => Err(failed(format!("send to {to}"))(error)),
        }
    }

    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<usize, Error> {
        self.check_reported()?;
        let mut context = (each, 0usize);
        let take = |(each, count): &mut (&mut dyn FnMut(&[u8]), usize), message: &[u8], _: AeronHeader| {
            each(message);
            *count += 1;
        };
        let polled = self.assembler.poll(&self.subscription, &mut context, take, FRAGMENTS);
        polled.map_err(failed("receive"))?;
        Ok(context.1)
    }

    fn forget(&mut self, to: SocketAddr) {
        self.publications.remove(&to);
    }
}

impl std::fmt::Debug for AeronTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let addresses: Vec<_> = self.publications.keys().collect();
        f.debug_struct("AeronTransport").field("address", &self.address).field("to", &addresses).finish()
    }
}

/// The longest text of an address that Aeron returns.
const ENDPOINT_BYTES_MAX: usize = 128;

fn channel(address: SocketAddr) -> String {
    format!("aeron:udp?endpoint={address}")
}

fn failed<E: Display>(doing: impl Into<String>) -> impl FnOnce(E) -> Error {
    let doing = doing.into();
    move |error| Error::Aeron { doing, what: reason(&error.to_string()) }
}

/// Returns the system's reason in a text of Aeron, which is the line `(98) Address already in use` among the places in Aeron's code;
/// otherwise the whole text in one line.
fn reason(text: &str) -> String {
    let code_and_words = |line: &str| {
        let (code, words) = line.trim().strip_prefix('(')?.split_once(") ")?;
        code.parse::<i32>().ok().map(|code| format!("{words} (error {code})"))
    };
    let lines = || text.lines().flat_map(|line| line.split("\\n"));
    let found = lines().find_map(code_and_words);
    found.unwrap_or_else(|| {
        lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
    })
}

fn start_driver(path: &std::ffi::CStr) -> Result<AeronDriver, rusteron_media_driver::AeronCError> {
    let context = AeronDriverContext::new()?;
    context.set_dir(path)?;
    context.set_dir_delete_on_shutdown(true)?;
    context.set_term_buffer_sparse_file(true)?;
    context.set_threading_mode(AERON_THREADING_MODE_SHARED)?;
    context.set_client_liveness_timeout_ns(PATIENCE.as_nanos() as u64)?;
    context.set_publication_unblock_timeout_ns(2 * PATIENCE.as_nanos() as u64)?;
    let driver = AeronDriver::new(&context)?;
    // False: the driver makes its thread itself.
    driver.start(false)?;
    Ok(driver)
}

fn start_client(
    path: &std::ffi::CStr,
    reported: Arc<Mutex<Option<String>>>,
) -> Result<Aeron, rusteron_media_driver::AeronCError> {
    let context = AeronContext::new()?;
    context.set_dir(path)?;
    context.set_driver_timeout_ms(PATIENCE.as_millis() as u64)?;
    // Without a handler of ours the C client ends the process.
    context.set_error_handler(Some(move |code: i32, text: &str| {
        let text = format!("error {code}: {}", reason(text));
        *reported.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }))?;
    let client = Aeron::new(&context)?;
    client.start()?;
    Ok(client)
}

fn subscribe(
    client: &Aeron,
    address: SocketAddr,
    stream: i32,
    reported: &Mutex<Option<String>>,
) -> Result<AeronSubscription, Error> {
    let doing = || format!("listen at {address}");
    let requested = client.async_add_subscription(
        &channel(address).into_c_string(),
        stream,
        Handlers::NONE,
        Handlers::NONE,
    );
    let requested = requested.map_err(failed(doing()))?;
    let since = Instant::now();
    while since.elapsed() < OPEN_WAIT {
        if let Some(subscription) = requested.poll().map_err(failed(doing()))? {
            return Ok(subscription);
        }
        if let Some(what) = reported.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(Error::Aeron { doing: doing(), what });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(Error::Aeron {
        doing: doing(),
        what: format!("the driver has not answered for {} s", OPEN_WAIT.as_secs()),
    })
}

/// The directory of a driver, removed when it is dropped.
struct DriverDirectory {
    path: PathBuf,
    /// Locked for as long as the directory is in use.
    _lock: File,
}

const DIRECTORY_PREFIX: &str = "unitape-link-";
const LOCK_NAME: &str = "lock";

/// A directory younger than this may not be locked yet by the process that makes it.
const DIRECTORY_AGE_MIN: Duration = Duration::from_secs(60);

impl DriverDirectory {
    /// Makes a new directory in shared memory, or in the folder for temporary files where there is none.
    fn create() -> Result<Self, Error> {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        remove_unused(&parent);
        for attempt in 0u32.. {
            let path = parent.join(format!("{DIRECTORY_PREFIX}{}-{attempt}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => {
                    let lock = lock_directory(&path)
                        .map_err(|source| Error::Io { doing: format!("lock {}", path.display()), source })?;
                    return Ok(Self { path, _lock: lock });
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(Error::Io { doing: format!("make {}", path.display()), source }),
            }
        }
        unreachable!("a directory has not 2^32 entries")
    }
}

impl Drop for DriverDirectory {
    fn drop(&mut self) {
        // What stays is removed by the next process.
        _ = fs::remove_dir_all(&self.path);
    }
}

fn lock_directory(path: &Path) -> std::io::Result<File> {
    let lock = File::create(path.join(LOCK_NAME))?;
    lock.try_lock()?;
    Ok(lock)
}

/// Removes directories whose processes are dead. What cannot be removed is left: it belongs to another user.
fn remove_unused(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        if !entry.file_name().to_string_lossy().starts_with(DIRECTORY_PREFIX) {
            continue;
        }
        let is_old = |made: SystemTime| made.elapsed().is_ok_and(|age| age >= DIRECTORY_AGE_MIN);
        let made = entry.metadata().and_then(|metadata| metadata.modified());
        let lock = File::open(path.join(LOCK_NAME));
        if made.is_ok_and(is_old) && lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Aeron says where in its code it failed, in seven lines; a person needs one of them.
    #[test]
    fn the_reason_of_the_system_is_found() {
        let text = "generic error, see message\n[f, a.c:3807] registration error\n(98) Address already in use\n[g, b.c:93] failed";
        assert_eq!(reason(text), "Address already in use (error 98)");
        assert_eq!(reason("no\nnumber\n"), "no; number");
    }
}
