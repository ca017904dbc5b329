//! `unitape serve`: sealed days for those who may read them, or the desk in a browser.

use super::login::UserFileArgs;
use super::store::KeyArgs;
use crate::output::{self, CommandFailure, CommandOutcome, note, say};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use unitape_server::demand::{DemandEvent, DemandOptions, ServedStore, serve_data};
use unitape_server::{DeskEvent, DeskOptions};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape serve --store ticks --users users.toml --listen 127.0.0.1:7411
  unitape serve --store taq=/data/ticks --store fx --users users.toml --entitlements who.toml --cert chain.pem --cert-key key.pem
  unitape serve --desk --tape tape --alerts alerts --cases cases
  unitape serve --desk --tape tape --alerts alerts --cases cases --listen 127.0.0.1:8080 --json

With --store, `unitape get` reads the store from another machine. Users log in over TLS, and get the keys, names and blocks of their entitlements, and nothing else. A user without an entitlement gets nothing (docs/serve.md). Without --cert the server makes a certificate at each start, and prints its fingerprint for `get --fingerprint`.

The desk is a page for analysts: the queue of cases, the reason and the evidence of each alert, the book around it, and the actions on a case. The same users, roles and rules apply as with `unitape case`. New alerts on the alert tape become cases. The desk has no TLS yet, so it listens on addresses of this machine alone. A session ends after 30 minutes without a request, after 12 hours, and when the desk stops.")]
pub struct ServeArgs {
    /// Serve this store, under this name [default: the name of its directory] (repeatable)
    #[arg(long, value_name = "[NAME=]DIR", required_unless_present = "desk", conflicts_with = "desk")]
    store: Vec<String>,
    #[command(flatten)]
    key: KeyArgs,
    /// Who may read what of the stores [default: entitlements.toml beside the user file]
    #[arg(long, value_name = "FILE", requires = "store")]
    entitlements: Option<PathBuf>,
    /// Send sealed blocks from this address [default: the one of --listen, with a free port]
    #[arg(long, value_name = "ADDR", requires = "store")]
    data: Option<SocketAddr>,
    /// The certificate of the server, and those between it and its authority, in PEM
    #[arg(long, value_name = "FILE", requires = "store", requires = "cert_key")]
    cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    cert_key: Option<PathBuf>,
    /// Serve the desk
    #[arg(long, requires_all = ["tape", "alerts", "cases"])]
    desk: bool,
    /// Directory of the watched tape
    #[arg(long, value_name = "DIR", requires = "desk")]
    tape: Option<PathBuf>,
    /// Directory of its alert tape
    #[arg(long, value_name = "DIR", requires = "desk")]
    alerts: Option<PathBuf>,
    /// Directory of the cases
    #[arg(long, value_name = "DIR", requires = "desk")]
    cases: Option<PathBuf>,
    #[command(flatten)]
    users: UserFileArgs,
    #[command(flatten)]
    listen: ListenArgs,
    /// Print the address as JSON
    #[arg(long)]
    json: bool,
}

/// Where a server listens.
#[derive(Debug, clap::Args)]
pub struct ListenArgs {
    /// Listen on this address; port 0 takes a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Write the port into this file once the server listens
    #[arg(long, value_name = "FILE")]
    pub port_file: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: ServeArgs) -> output::Result {
    let stop = output::stop_flag()?;
    let ServeArgs { tape: Some(tape), alerts: Some(alerts), cases: Some(cases), .. } = args else {
        return serve_stores(&args, &stop);
    };
    let options = DeskOptions {
        users: args.users.path(Some(&cases))?,
        tape,
        alerts,
        cases,
        listen: args.listen.listen,
    };
    let json = args.json;
    serve_desk(&options, args.listen.port_file.as_deref(), &stop, move |address| {
        if json {
            output::print_json(&serde_json::json!({ "desk": format!("http://{address}") }))
        } else {
            say!("The desk is at http://{address}; Ctrl-C ends it.");
            Ok(())
        }
    })
}

/// Serves stores until `stop`.
fn serve_stores(args: &ServeArgs, stop: &Arc<AtomicBool>) -> output::Result {
    let users = args.users.path(None)?;
    let mut stores: Vec<ServedStore> = Vec::new();
    for text in &args.store {
        let store = named_store(text, &args.key)?;
        if stores.iter().any(|earlier_store| earlier_store.name == store.name) {
            let message = format!("two stores have the name {}: name one otherwise, NAME=DIR", store.name);
            return Err(CommandFailure::Usage(message));
        }
        stores.push(store);
    }
    let default_path = || users.with_file_name("entitlements.toml");
    let options = DemandOptions {
        stores,
        entitlements: args.entitlements.clone().unwrap_or_else(default_path),
        users,
        listen: args.listen.listen,
        data: args.data.unwrap_or(SocketAddr::new(args.listen.listen.ip(), 0)),
        certificate: args.cert.clone().zip(args.cert_key.clone()),
    };
    let (json, port_file) = (args.json, args.listen.port_file.clone());
    let store_names: Vec<String> = options.stores.iter().map(|store| store.name.clone()).collect();
    let outcome = Announcement::new(stop);
    let announced = outcome.clone();
    serve_data(&options, stop, move |event| match event {
        DemandEvent::Trouble(text) => note!("unitape: {text}"),
        DemandEvent::Listening { private, data, fingerprint } => {
            let announce = || {
                if json {
                    output::print_json(&serde_json::json!({
                        "server": format!("unitape://{private}"), "data": data.to_string(),
                        "fingerprint": fingerprint.to_string(), "datasets": store_names,
                    }))?;
                } else {
                    for name in &store_names {
                        say!("unitape://{private}/{name}");
                    }
                    say!("sealed blocks from {data}; certificate {fingerprint}; Ctrl-C ends it");
                }
                port_file.as_deref().map_or(Ok(()), |path| write_port(path, private.port()))
            };
            announced.note_result(announce());
        }
    })?;
    outcome.take_result()
}

/// Reads `[NAME=]DIR`, and the key of the store.
fn named_store(text: &str, key: &KeyArgs) -> Result<ServedStore, CommandFailure> {
    let (name, dir) = match text.split_once('=') {
        Some((name, dir)) if !name.contains('/') => (name.to_owned(), PathBuf::from(dir)),
        _ => {
            let dir = PathBuf::from(text);
            let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            (name, dir)
        }
    };
    if name.is_empty() || name.contains('/') {
        return Err(CommandFailure::Usage(format!("`{text}`: name the store, NAME=DIR")));
    }
    let key = key.of_store(&dir)?;
    Ok(ServedStore { name, dir, key })
}

/// Serves a desk until `stop`; `announce` prints its address.
pub fn serve_desk(
    options: &DeskOptions,
    port_file: Option<&Path>,
    stop: &Arc<AtomicBool>,
    announce: impl Fn(SocketAddr) -> Result<(), CommandFailure> + Send + Sync + 'static,
) -> output::Result {
    let port_file = port_file.map(Path::to_owned);
    let outcome = Announcement::new(stop);
    let announced = outcome.clone();
    unitape_server::serve(options, stop, move |event| match event {
        DeskEvent::Trouble(text) => note!("unitape: {text}"),
        DeskEvent::Listening(address) => {
            let announcement = announce(address).and_then(|()| match &port_file {
                Some(path) => write_port(path, address.port()),
                None => Ok(()),
            });
            announced.note_result(announcement);
        }
    })?;
    outcome.take_result()
}

/// Whether the address of a server could be announced. A server that nobody can find ends.
#[derive(Clone, Debug)]
struct Announcement {
    stop_flag: Arc<AtomicBool>,
    failure: Arc<Mutex<Option<CommandFailure>>>,
}

impl Announcement {
    fn new(stop: &Arc<AtomicBool>) -> Self {
        Self { stop_flag: stop.clone(), failure: Arc::default() }
    }

    /// Stops the server if the announcement failed.
    fn note_result(&self, announced: Result<(), CommandFailure>) {
        if let Err(failure) = announced {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
            self.stop_flag.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the outcome of a server that has ended.
    fn take_result(&self) -> output::Result {
        match self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(failure) => Err(failure),
            None => Ok(CommandOutcome::Clean),
        }
    }
}

/// Writes the port as a whole: who reads the file never sees half of it.
fn write_port(path: &Path, port: u16) -> Result<(), CommandFailure> {
    output::write_file(path, format!("{port}\n").as_bytes())
}
