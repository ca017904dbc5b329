//! A data server over a small store, and its clients.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use unitape_client::wire::DataQuery;
use unitape_client::{Client, Error, Fingerprint, ServerTrust};
use unitape_model::{Dictionary, EventBuilder, EventKind, EventSchema, NameKind, UnixNanos, flags};
use unitape_run::users::{Account, Role, UserFile};
use unitape_server::demand::{DemandEvent, DemandOptions, ServedStore, serve_data};
use unitape_store::{AnswerReader, Day, MasterKey, ReadDepth, ScanFilter, SealOptions, TickSchema, seal};
use unitape_tape::{TapeId, Writer, WriterOptions};

/// The instruments, long enough that no ciphertext has one by chance.
pub const NAMES: [&str; 3] = ["VODAFONE-LSE", "VODACOM-JSE", "BARCLAYS-LSE"];
/// What is never in a log, nor on the data channel.
pub const SECRETS: [&str; 6] =
    [NAMES[0], NAMES[1], NAMES[2], "XLON-VENUE", "OWNER-OF-ORDERS", "a headline of the day"];
/// The line of an entitlement to everything.
pub const ALL_CLASSES: &str = "classes = [\"market\", \"identity\", \"provenance\"]\n";

/// Where an event of the store lies. There is one at each place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerFolder {
    pub schema: TickSchema,
    pub symbol: Option<&'static str>,
    pub day: &'static str,
}

/// All places of the store at its start.
pub fn places() -> BTreeSet<ServerFolder> {
    let of_day = |day| {
        let symbols = NAMES.into_iter().flat_map(move |symbol| {
            [TickSchema::Trades, TickSchema::Bbo, TickSchema::Orders].map(|schema| ServerFolder {
                schema,
                symbol: Some(symbol),
                day,
            })
        });
        symbols.chain([ServerFolder { schema: TickSchema::News, symbol: None, day }])
    };
    DAYS.into_iter().flat_map(of_day).collect()
}

const DAYS: [&str; 2] = ["2024-03-11", "2024-03-12"];

/// A running data server.
pub struct Desk {
    dir: tempfile::TempDir,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    pub private: SocketAddr,
    pub data: SocketAddr,
    pub certificate: rcgen::Certificate,
    fingerprint: Fingerprint,
    log: Arc<Mutex<Vec<String>>>,
}

impl Desk {
    /// Starts a server with the user `quant`, and these lines as the first entitlement.
    pub fn start(entitlement: &str) -> Self {
        Self::start_with_cost(entitlement, 8)
    }

    /// Starts a server that takes this much memory to check a password.
    pub fn start_with_cost(entitlement: &str, memory_kib: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let cost = format!("[argon2]\nmemory_kib = {memory_kib}\niterations = 1\n");
        write_private(&path("users.toml"), &format!("format = 1\n{cost}"));
        add_user(&path("users.toml"), "quant", "quant's password");
        write_entitlements(&path("entitlements.toml"), entitlement);
        DAYS.iter().for_each(|day| seal_day(dir.path(), day));
        let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(path("chain.pem"), pem("CERTIFICATE", signed.cert.der())).unwrap();
        write_private(&path("key.pem"), &pem("PRIVATE KEY", &signed.signing_key.serialize_der()));
        let served = ServedStore { name: "ticks".to_owned(), dir: path("store"), key: master() };
        let options = DemandOptions {
            stores: vec![served],
            users: path("users.toml"),
            entitlements: path("entitlements.toml"),
            listen: "127.0.0.1:0".parse().unwrap(),
            data: "127.0.0.1:0".parse().unwrap(),
            certificate: Some((path("chain.pem"), path("key.pem"))),
        };
        let (stop, log) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::spawn({
            let (stop, log) = (stop.clone(), log.clone());
            move || {
                let sink = move |event: DemandEvent<'_>| match event {
                    DemandEvent::Listening { private, data, fingerprint } => {
                        sender.send((private, data, fingerprint)).unwrap();
                    }
                    DemandEvent::Trouble(text) => log.lock().unwrap().push(text.to_owned()),
                };
                serve_data(&options, &stop, sink).unwrap();
            }
        });
        let (private, data, fingerprint) = receiver.recv().unwrap();
        assert_eq!(fingerprint, Fingerprint::of_certificate(signed.cert.der()));
        let certificate = signed.cert;
        Self { dir, stop, thread: Some(thread), private, data, certificate, fingerprint, log }
    }

    pub fn users(&self) -> PathBuf {
        self.dir.path().join("users.toml")
    }

    pub fn entitlements(&self) -> PathBuf {
        self.dir.path().join("entitlements.toml")
    }

    pub fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    pub fn add_user(&self, name: &str, password: &str) {
        add_user(&self.users(), name, password);
    }

    /// Puts these lines in the place of all entitlements.
    pub fn entitle(&self, entitlement: &str) {
        write_entitlements(&self.entitlements(), entitlement);
    }

    pub fn seal_day(&self, day: &str) {
        seal_day(self.dir.path(), day);
    }

    pub fn log_in_with(&self, user: &str, password: &str) -> Result<Client, Error> {
        let trust = ServerTrust::in_fingerprint(self.fingerprint);
        Client::log_in("127.0.0.1", self.private.port(), &trust, user, password)
    }

    /// Logs a user in whose password is made of its name.
    pub fn log_in(&self, user: &str) -> Client {
        self.log_in_with(user, &format!("{user}'s password")).unwrap()
    }

    /// Returns where the rows lie that a client gets.
    pub fn rows(&self, client: &mut Client) -> BTreeSet<ServerFolder> {
        let reader = client.query(&query("ticks", ReadDepth::Rows, &ScanFilter::default())).unwrap();
        assert!(reader.problems().is_empty());
        let mut places = BTreeSet::new();
        for schema in [TickSchema::Trades, TickSchema::Bbo] {
            let mut scan = reader.rows(schema, &ScanFilter::default()).unwrap();
            while let Some(row) = scan.next() {
                let symbol = row.names.name(NameKind::Instrument, row.event.instrument().0);
                assert!(places.insert(place(schema, symbol, row.event.ts_event())), "a row came twice");
            }
            assert!(scan.problems().is_empty() && scan.take_failure().is_none());
        }
        places
    }

    /// Returns where the events lie that a client gets.
    pub fn events(&self, client: &mut Client) -> BTreeSet<ServerFolder> {
        let reader = client.query(&query("ticks", ReadDepth::Events, &ScanFilter::default())).unwrap();
        let (mut scan, mut places) = (reader.scan(&ScanFilter::default()).unwrap(), BTreeSet::new());
        while let Some(row) = scan.next() {
            let event = row.event();
            let symbol = reader.names().name(NameKind::Instrument, event.instrument().0);
            let schema = TickSchema::for_kind(event.kind()).unwrap();
            let symbol = symbol.filter(|_| schema != TickSchema::News);
            assert!(places.insert(place(schema, symbol, event.ts_event())), "an event came twice");
        }
        assert!(scan.problems().is_empty() && scan.take_failure().is_none());
        places
    }

    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// Fails if the log has a password, a key or one of `secrets`.
    pub fn assert_log_is_clean(&self, secrets: &[&str]) {
        for text in self.log() {
            for secret in secrets.iter().chain(&["'s password", KEY_DIGITS]) {
                assert!(!text.contains(secret), "{secret} is in the log: {text}");
            }
        }
    }

    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().into_iter().for_each(|thread| thread.join().unwrap());
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let result = thread.join();
            assert!(std::thread::panicking() || result.is_ok(), "the server panicked");
        }
    }
}

pub fn query(dataset: &str, depth: ReadDepth, filter: &ScanFilter) -> DataQuery {
    DataQuery::new(dataset, depth, filter)
}

/// The text with which a query for rows of a dataset is refused.
pub fn refusal_text(client: &mut Client, dataset: &str) -> String {
    match client.query(&query(dataset, ReadDepth::Rows, &ScanFilter::default())) {
        Err(Error::Refused(refusal)) => refusal.text,
        other => panic!("{other:?}"),
    }
}

/// The days of the trades of an answer.
pub fn days(reader: &AnswerReader) -> BTreeSet<String> {
    let mut days = BTreeSet::new();
    let mut scan = reader.rows(TickSchema::Trades, &ScanFilter::default()).unwrap();
    while let Some(row) = scan.next() {
        days.insert(Day::from_time(row.event.ts_event()).to_string());
    }
    assert!(scan.problems().is_empty() && scan.take_failure().is_none());
    days
}

fn place(schema: TickSchema, symbol: Option<&str>, ts: UnixNanos) -> ServerFolder {
    let symbol = symbol.map(|symbol| *NAMES.iter().find(|name| **name == symbol).expect("a name of ours"));
    let day = Day::from_time(ts).to_string();
    ServerFolder { schema, symbol, day: DAYS.iter().find(|known| **known == day).expect("a day of ours") }
}

fn master() -> MasterKey {
    MasterKey::parse(&KEY_DIGITS.repeat(8)).unwrap()
}

const KEY_DIGITS: &str = "c0ffee00";

fn add_user(path: &Path, name: &str, password: &str) {
    let account = Account {
        name: name.to_owned(),
        person: name.to_owned(),
        role: Role::Analyst,
        parties: Vec::new(),
        is_disabled: false,
    };
    UserFile::add_account(path, &account, password).unwrap();
}

fn write_private(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Writes DER as PEM.
fn pem(label: &str, der: &[u8]) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut lines = vec![String::new()];
    for bytes in der.chunks(3) {
        let word =
            bytes.iter().fold(0, |word, byte| word << 8 | usize::from(*byte)) << (8 * (3 - bytes.len()));
        let line = lines.last_mut().expect("a line at least");
        for n in 0..4 {
            let digit = char::from(digits[word >> (18 - 6 * n) & 63]);
            line.push(if n <= bytes.len() { digit } else { '=' });
        }
        if line.len() == 64 {
            lines.push(String::new());
        }
    }
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn write_entitlements(path: &Path, entitlement: &str) {
    let table = if entitlement.is_empty() { "" } else { "[[entitlement]]\n" };
    write_private(path, &format!("format = 1\n{table}{entitlement}\n"));
}

/// Seals a day of events, of a tape of its own.
fn seal_day(dir: &Path, day: &str) {
    let start = i64::from(day.parse::<Day>().unwrap().0) * 86_400_000_000_000 + 9 * 3_600_000_000_000;
    let tape = dir.join(format!("tape-{day}"));
    let options = WriterOptions { segment_bytes: 64 << 10, prefault_bytes: 0, ..WriterOptions::default() };
    let (mut writer, _) = Writer::open(&tape, TapeId(1 + start as u128), options).unwrap();
    let (mut names, mut unit) = (Dictionary::default(), Vec::new());
    let kinds = [(NameKind::Venue, SECRETS[3]), (NameKind::Owner, SECRETS[4])];
    for (kind, name) in kinds.into_iter().chain(NAMES.map(|name| (NameKind::Instrument, name))) {
        let (id, _) = names.intern(kind, name.as_bytes()).unwrap();
        EventBuilder::define(&mut unit, kind, id, name).unwrap();
    }
    for (n, symbol) in (0..).zip(NAMES) {
        let (instrument, venue) = (("instr", symbol), ("venue", SECRETS[3]));
        let trade = [instrument, venue, ("px", "10.5"), ("qty", "3")];
        let bbo = [instrument, venue, ("bid", "10.4"), ("ask", "10.6")];
        let order = [instrument, ("coid", "1"), ("owner", SECRETS[4]), ("qty", "5")];
        let events: [(_, &[_]); 3] =
            [(EventKind::Trade, &trade), (EventKind::Bbo, &bbo), (EventKind::OrderRecv, &order)];
        for (kind, fields) in events {
            append(&mut unit, kind, start + n, fields, &mut names);
        }
    }
    append(&mut unit, EventKind::News, start + 9, &[("headline", SECRETS[5])], &mut names);
    writer.append(&unit).unwrap();
    writer.close().unwrap();
    seal(&tape, &dir.join("store"), &master(), UnixNanos(0), &SealOptions::default()).unwrap();
}

fn append(unit: &mut Vec<u8>, kind: EventKind, ts: i64, fields: &[(&str, &str)], names: &mut Dictionary) {
    let mut event = EventBuilder::begin(unit, kind, UnixNanos(ts));
    for (field, value) in fields {
        let spec = EventSchema::for_kind(kind).find(field).unwrap();
        event.set_text(spec, value.as_bytes(), names).unwrap();
    }
    event.finish(flags::LAST).unwrap();
}
