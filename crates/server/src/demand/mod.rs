//! Data on demand: sealed days for those who may read them.
//!
//! ```text
//!  client ══ TLS ══▶ session: log-in, query ──▶ store: heads of blocks, leaf keys, names, a ticket
//!  client ── TCP ──▶ data channel: ticket ────▶ sealed blocks, as they lie in the store
//! ```
//!
//! No key of a day and no name that the answer does not need leaves the server. Each query reads users and entitlements from their files, so
//! a change counts from the next query on.
//!
//! A thread serves one connection. Each channel has at most [`CONNECTIONS_MAX`].

mod certificate;
mod connections;
mod data;
mod entitlements;
mod session;
mod tickets;

use crate::auth::LoginAttempts;
use crate::error::Error;
use certificate::ServerCertificate;
use connections::ConnectionTable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::ServerConfig;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tickets::TicketTable;
use unitape_client::Fingerprint;
use unitape_store::{MasterKey, Store};

/// A store that is served.
#[derive(Clone, Debug)]
pub struct ServedStore {
    /// The name of the dataset.
    pub name: String,
    /// The directory.
    pub dir: PathBuf,
    /// Its key.
    pub key: MasterKey,
}

/// What a data server serves.
#[derive(Clone, Debug)]
pub struct DemandOptions {
    /// The stores.
    pub stores: Vec<ServedStore>,
    /// The file of the users.
    pub users: PathBuf,
    /// The file that says who may read what.
    pub entitlements: PathBuf,
    /// The address of the private channel; port 0 takes a free port.
    pub listen: SocketAddr,
    /// The address of the data channel.
    pub data: SocketAddr,
    /// A chain of certificates and its private key, in PEM. Without them the server makes a certificate for itself.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// What a running data server tells.
#[derive(Debug)]
pub enum DemandEvent<'a> {
    /// It listens.
    Listening {
        /// On this address, for log-ins and queries.
        private: SocketAddr,
        /// On this address, for sealed blocks.
        data: SocketAddr,
        /// With a certificate that has this fingerprint.
        fingerprint: Fingerprint,
    },
    /// Something that the client is not told in full went wrong.
    Trouble(&'a str),
}

/// Connections at a time; more are closed at once.
pub const CONNECTIONS_MAX: usize = 256;

type EventSink = dyn Fn(DemandEvent<'_>) + Send + Sync;

/// Serves data until `stop` is set.
///
/// # Errors
/// Fails if an address, the certificate, the users, the entitlements or a store cannot be used.
pub fn serve_data(
    options: &DemandOptions,
    stop: &AtomicBool,
    sink: impl Fn(DemandEvent<'_>) + Send + Sync + 'static,
) -> Result<(), Error> {
    let certificate = match &options.certificate {
        Some((chain, key)) => ServerCertificate::load(chain, key),
        None => ServerCertificate::generate(options.listen.ip()),
    };
    let certificate = certificate.map_err(Error::Certificate)?;
    let demand = DataServer {
        tls: Arc::new(certificate.config),
        stores: options.stores.iter().map(|store| (store.name.clone(), OpenStore::new(store))).collect(),
        users: options.users.clone(),
        entitlements: options.entitlements.clone(),
        data_port: 0,
        attempts: LoginAttempts::default(),
        tickets: TicketTable::default(),
        sessions: ConnectionTable::default(),
        channels: ConnectionTable::default(),
        event_sink: Box::new(sink),
    };
    // What cannot be read now will not answer any query.
    unitape_run::users::UserFile::load(&options.users)?;
    entitlements::EntitlementFile::load(&options.entitlements).map_err(Error::Entitlements)?;
    demand.stores.values().try_for_each(|store| store.open().map(drop))?;
    let listen = |address: SocketAddr| {
        let listen_error = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(listen_error)?;
        listener.set_nonblocking(true).map_err(listen_error)?;
        Ok::<_, Error>((listener.local_addr().map_err(listen_error)?, listener))
    };
    let (private, private_listener) = listen(options.listen)?;
    let (data, data_listener) = listen(options.data)?;
    let demand = DataServer { data_port: data.port(), ..demand };
    (demand.event_sink)(DemandEvent::Listening { private, data, fingerprint: certificate.fingerprint });
    std::thread::scope(|scope| {
        let demand = &demand;
        while !stop.load(Ordering::Relaxed) {
            wait_for(&private_listener, &data_listener);
            demand.sessions.close_late();
            demand.channels.close_late();
            accept_connections(&private_listener, demand, &demand.sessions, |stream| {
                std::thread::Builder::new()
                    .name("session".to_owned())
                    .spawn_scoped(scope, move || session::serve(demand, stream))
                    .map(drop)
            });
            accept_connections(&data_listener, demand, &demand.channels, |stream| {
                std::thread::Builder::new()
                    .name("data".to_owned())
                    .spawn_scoped(scope, move || data::serve(demand, stream))
                    .map(drop)
            });
        }
        demand.sessions.close_all();
        demand.channels.close_all();
    });
    Ok(())
}

/// Waits until somebody connects, or until it is time to look whether the server must stop.
fn wait_for(private: &TcpListener, data: &TcpListener) {
    let mut polled = [PollFd::new(private, PollFlags::IN), PollFd::new(data, PollFlags::IN)];
    let look = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    // A signal that comes meanwhile ends the wait, and the caller looks.
    _ = poll(&mut polled, Some(&look));
}

/// Takes who connects.
fn accept_connections(
    listener: &TcpListener,
    demand: &DataServer,
    table: &ConnectionTable,
    serve: impl Fn(connections::Connection) -> io::Result<()>,
) {
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
            // An error of one connection, or too many open files: the others continue. The connection stays in the socket,
            // so without a pause the next look would meet the same error at once.
            Err(e) => {
                demand.report_trouble(&format!("taking a connection: {e}"));
                return std::thread::sleep(REFUSED);
            }
        };
        let connection_result = set_stream_options(&stream).and_then(|()| table.insert_connection(stream));
        let served = connection_result.and_then(|connection| connection.map_or(Ok(()), &serve));
        if let Err(e) = served {
            demand.report_trouble(&format!("serving a connection: {e}"));
        }
    }
}

/// The pause after a connection that the system refused.
const REFUSED: Duration = Duration::from_millis(250);

fn set_stream_options(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(STALL_MAX))
}

/// The state of a running data server.
struct DataServer {
    tls: Arc<ServerConfig>,
    stores: BTreeMap<String, OpenStore>,
    users: PathBuf,
    entitlements: PathBuf,
    data_port: u16,
    attempts: LoginAttempts,
    tickets: TicketTable,
    /// Connections to the private channel.
    sessions: ConnectionTable,
    /// Connections to the data channel.
    channels: ConnectionTable,
    event_sink: Box<EventSink>,
}

impl DataServer {
    fn report_trouble(&self, text: &str) {
        (self.event_sink)(DemandEvent::Trouble(text));
    }
}

/// A store, opened again when its manifest is another one.
struct OpenStore {
    served: ServedStore,
    latest_store: Mutex<Option<(ManifestState, Arc<Store>)>>,
}

/// What tells two manifests apart without reading them.
type ManifestState = (u64, u64, SystemTime);

impl OpenStore {
    fn new(served: &ServedStore) -> Self {
        Self { served: served.clone(), latest_store: Mutex::new(None) }
    }

    /// Returns the store as it is now.
    fn open(&self) -> Result<Arc<Store>, unitape_store::Error> {
        let ServedStore { dir, key, .. } = &self.served;
        let state = manifest_state(dir);
        let mut latest = self.latest_store.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(state), Some((latest_state, store))) = (&state, &*latest)
            && latest_state == state
        {
            return Ok(store.clone());
        }
        let store = Arc::new(Store::open(dir, key)?);
        // A manifest that came meanwhile is another state, and is read by the next query.
        *latest = state.map(|state| (state, store.clone()));
        Ok(store)
    }
}

fn manifest_state(dir: &std::path::Path) -> Option<ManifestState> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(dir.join("manifest")).ok()?;
    Some((metadata.ino(), metadata.len(), metadata.modified().ok()?))
}

/// The time between two looks whether the server must stop.
const LOOK: Duration = Duration::from_millis(50);
/// A client that takes nothing for this long is let go.
const STALL_MAX: Duration = Duration::from_secs(60);
/// Who says nothing for this long is let go.
const IDLE_MAX: Duration = Duration::from_secs(15 * 60);
/// A connection must say within this time whose it is.
const LOGIN_MAX: Duration = Duration::from_secs(10);
