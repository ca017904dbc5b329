//! The desk over HTTP: accounts log in, work on cases, and see the book behind an alert.
//!
//! ```text
//!  alert tape ──▶ ingest thread ─▶ cases.db ◀─ api ◀─ axum ◀─ browser: the page of `web/`, embedded
//!  tape ─────────▶ evidence, picture ────────▶ api
//! ```
//!
//! A handler reads the request, asks the library of cases and writes the answer; no rule about cases is here or in the page.
//! Prices, quantities, ids and nanoseconds are text in JSON, so that a browser loses no digit.
//!
//! Only addresses of this machine are served: there is no TLS yet.
//!
//! [`demand`] serves sealed days, over TLS; [`monitor`] serves the figures and the health of a run, and [`status`] asks for them.

#![deny(clippy::print_stdout, clippy::print_stderr)] // who prints is the caller

mod api;
mod auth;
pub mod demand;
mod error;
mod gate;
mod library;
pub mod monitor;
mod page;
pub mod status;

pub use error::Error;

use auth::SessionTable;
use library::Library;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What a desk serves.
#[derive(Clone, Debug)]
pub struct DeskOptions {
    /// Directory of the watched tape.
    pub tape: PathBuf,
    /// Directory of its alert tape; new alerts become cases while the desk runs.
    pub alerts: PathBuf,
    /// Directory of the cases.
    pub cases: PathBuf,
    /// The file of the users.
    pub users: PathBuf,
    /// The address to listen on. It must be one of this machine; port 0 takes a free port.
    pub listen: SocketAddr,
}

/// What a running desk tells.
#[derive(Debug)]
pub enum DeskEvent<'a> {
    /// It listens on this address.
    Listening(SocketAddr),
    /// Something that the user of the page is not told in full went wrong.
    Trouble(&'a str),
}

/// Serves the desk until `stop` is set.
///
/// # Errors
/// Fails if the address is not one of this machine or cannot be used; if the users, the cases or a tape cannot be read.
pub fn serve(
    options: &DeskOptions,
    stop: &AtomicBool,
    sink: impl Fn(DeskEvent<'_>) + Send + Sync + 'static,
) -> Result<(), Error> {
    if !options.listen.ip().is_loopback() {
        return Err(Error::NotLoopback(options.listen));
    }
    let sink: Arc<dyn Fn(DeskEvent<'_>) + Send + Sync> = Arc::new(sink);
    let library = Arc::new(Library::open(options, sink.clone())?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(BLOCKING_MAX)
        .enable_all()
        .thread_name("desk")
        .build()
        .map_err(Error::Runtime)?;
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ingest = scope.spawn(|| {
            library.ingest_until(&|| stop.load(Ordering::Relaxed) || is_done.load(Ordering::Relaxed))
        });
        let served = runtime.block_on(listen(options, library.clone(), stop, &sink));
        is_done.store(true, Ordering::Relaxed);
        // Requests that still run end with the runtime; ingest ends at its next look.
        runtime.shutdown_timeout(Duration::from_secs(5));
        let ingested = ingest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        served?;
        ingested
    })
}

async fn listen(
    options: &DeskOptions,
    library: Arc<Library>,
    stop: &AtomicBool,
    sink: &Arc<dyn Fn(DeskEvent<'_>) + Send + Sync>,
) -> Result<(), Error> {
    let bind = |source| Error::Listen { address: options.listen, source };
    let listener = tokio::net::TcpListener::bind(options.listen).await.map_err(bind)?;
    let address = listener.local_addr().map_err(bind)?;
    let desk = Arc::new(Desk { library, sessions: SessionTable::default(), address });
    let router = api::router(desk.clone())
        .fallback(page::page)
        .layer(axum::middleware::from_fn_with_state(desk, gate::gate));
    sink(DeskEvent::Listening(address));
    let stop_signal = async {
        while !stop.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::select! {
        served = async { axum::serve(listener, router).await } => served.map_err(bind),
        () = stop_signal => Ok(()),
    }
}

/// The state of a running desk.
struct Desk {
    library: Arc<Library>,
    sessions: SessionTable,
    address: SocketAddr,
}

/// Threads that read tapes and the database for requests; more requests wait.
const BLOCKING_MAX: usize = 8;
/// The time between two looks whether the desk must stop.
const LOOK: Duration = Duration::from_millis(50);
