//! Aeron over UDP: its C client, and its media driver in this process.
//!
//! ```text
//!  sender    subscription at its address, stream 1 ◀── hello, acknowledge ───────── publication   receiver
//!            publication, stream 2 ── welcome, data, announce … ─▶ subscription at its address
//! ```
//!
//! The driver works in a directory of its own, see `driver_directory.rs`.

use rusteron_media_driver::bindings::aeron_threading_mode_enum::AERON_THREADING_MODE_SHARED;
use rusteron_media_driver::{
    Aeron, AeronAsyncAddExclusivePublication, AeronContext, AeronDriver, AeronDriverContext,
    AeronExclusivePublication, AeronFragmentClosureAssembler, AeronHeader, AeronOfferError,
    AeronSubscription, Handlers, IntoCString,
};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Transport;
use super::driver_directory::DriverDirectory;
use crate::error::{Error, aeron_reason};

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
    reported_error: Arc<Mutex<Option<String>>>,
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
        let path = directory.path().join("driver").display().to_string().into_c_string();
        let driver = start_driver(&path).map_err(aeron_error("start the media driver"))?;
        let reported = Arc::new(Mutex::new(None));
        let client = start_client(&path, reported.clone()).map_err(aeron_error("start the client"))?;
        let (stream_in, stream_out) = match end {
            LinkEnd::Sender => (STREAM_TO_SENDER, STREAM_TO_RECEIVER),
            LinkEnd::Receiver => (STREAM_TO_RECEIVER, STREAM_TO_SENDER),
        };
        let subscription = subscribe(&client, address, stream_in, &reported)?;
        let resolved = subscription.resolved_endpoint_as_string(ENDPOINT_BYTES_MAX);
        let resolved = resolved.map_err(aeron_error("ask for the address"))?;
        let address = resolved.parse().map_err(|_| Error::Aeron {
            doing: "ask for the address".to_owned(),
            reason: format!("`{resolved}` is no address"),
        })?;
        let assembler =
            AeronFragmentClosureAssembler::new().map_err(aeron_error("make an assembler of fragments"))?;
        Ok(Self {
            publications: BTreeMap::new(),
            subscription,
            assembler,
            client,
            _driver: driver,
            _directory: directory,
            address,
            stream_out,
            reported_error: reported,
        })
    }

    /// Returns the open publication to an address. `None` if the driver is not ready with it.
    fn publication(&mut self, to: SocketAddr) -> Result<Option<&AeronExclusivePublication>, Error> {
        if !self.publications.contains_key(&to) {
            let channel = format!("{}|term-length={TERM_BYTES}", channel_uri(to)).into_c_string();
            let requested = self.client.async_add_exclusive_publication(&channel, self.stream_out);
            let requested = requested.map_err(aeron_error(format!("publish to {to}")))?;
            self.publications.insert(to, Publication::Requested(requested));
        }
        let publication = self.publications.get_mut(&to).expect("inserted above");
        if let Publication::Requested(requested) = publication {
            match requested.poll() {
                Ok(None) => return Ok(None),
                Ok(Some(open)) => *publication = Publication::Open(open),
                Err(error) => {
                    self.publications.remove(&to);
                    return Err(aeron_error(format!("publish to {to}"))(error));
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
        match self.reported_error.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(reason) => Err(Error::Aeron { doing: "run the client".to_owned(), reason }),
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
            Err(error) => Err(aeron_error(format!("send to {to}"))(error)),
        }
    }

    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<usize, Error> {
        self.check_reported()?;
        let mut inbox = Inbox { message_handler: each, count: 0 };
        let polled = self.assembler.poll(&self.subscription, &mut inbox, Inbox::deliver_message, FRAGMENTS);
        polled.map_err(aeron_error("receive"))?;
        Ok(inbox.count)
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

/// The taker of whole messages in a call of [`Transport::receive`].
struct Inbox<'a> {
    message_handler: &'a mut dyn FnMut(&[u8]),
    count: usize,
}

impl Inbox<'_> {
    fn deliver_message(&mut self, message: &[u8], _: AeronHeader) {
        (self.message_handler)(message);
        self.count += 1;
    }
}

/// The longest text of an address that Aeron returns.
const ENDPOINT_BYTES_MAX: usize = 128;

fn channel_uri(address: SocketAddr) -> String {
    format!("aeron:udp?endpoint={address}")
}

fn aeron_error<E: Display>(doing: impl Into<String>) -> impl FnOnce(E) -> Error {
    let doing = doing.into();
    move |error| Error::Aeron { doing, reason: aeron_reason(&error.to_string()) }
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
        let text = format!("error {code}: {}", aeron_reason(text));
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
        &channel_uri(address).into_c_string(),
        stream,
        Handlers::NONE,
        Handlers::NONE,
    );
    let requested = requested.map_err(aeron_error(doing()))?;
    let since = Instant::now();
    while since.elapsed() < OPEN_WAIT {
        if let Some(subscription) = requested.poll().map_err(aeron_error(doing()))? {
            return Ok(subscription);
        }
        if let Some(reason) = reported.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(Error::Aeron { doing: doing(), reason });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(Error::Aeron {
        doing: doing(),
        reason: format!("the driver has not answered for {} s", OPEN_WAIT.as_secs()),
    })
}
