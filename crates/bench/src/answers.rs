//! `bench watch/alert-latency`, `cases/alert-to-case` and `serve`: the answers of live tapes and of a data server.

use crate::context::BenchContext;
use crate::error::Error;
use crate::record::{BenchRecord, LatencyHistogram, LatencyPercentiles, RepeatTimes, histogram, note};
use crate::store::make_tape;
use crate::watch::THREE;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use unitape_case::CaseStore;
use unitape_case::ingest::{IngestEnd, IngestOptions, ingest};
use unitape_client::wire::DataQuery;
use unitape_client::{Client, ServerTrust};
use unitape_model::{Calendar, Dictionary, Event, EventBuilder, NameKind, frames};
use unitape_run::surveil::{LiveControl, watch_live};
use unitape_run::users::{Account, Role, UserFile};
use unitape_server::demand::{DemandEvent, DemandOptions, ServedStore, serve_data};
use unitape_store::{
    MasterKey, ReadDepth, RowScan, ScanFilter, SealOptions, Store, SystemRandomness, TickSchema, seal,
};
use unitape_tape::{ReadOptions, TapeId, TapeManifest, Writer, WriterOptions};
use unitape_watch::twin::sample;
use unitape_watch::{ScenarioSelection, Watch};

/// Runs `watch/alert-latency`.
pub fn run_alert_latency(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    let method = "an event of a stream of orders is due 20 microseconds after the one before; time from there until its \
                  alert is committed on the alert tape of a live watch that spins; an ingest of cases runs beside it; one \
                  process, three threads; the scenarios are ";
    let LiveTimes { run, bytes, to_alert, .. } = measure_live(context)?;
    let method = format!("{method}{}", THREE.join(", "));
    let record = run.record("watch", "alert-latency", to_alert.len(), bytes, method);
    out(live_record(context, record, &to_alert))
}

/// Runs `cases/alert-to-case`.
pub fn run_cases(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    let method = "time from the commit of an alert on the alert tape of a live watch until the transaction that makes or \
                  extends its case is durable, by an ingest that follows the alert tape and sleeps when there is nothing; one process, \
                  three threads";
    let LiveTimes { run, bytes, to_case, .. } = measure_live(context)?;
    let record = run.record("cases", "alert-to-case", to_case.len(), bytes, method.to_owned());
    out(live_record(context, record, &to_case))
}

fn live_record(context: &BenchContext, record: BenchRecord, times: &LatencyHistogram) -> BenchRecord {
    let latency = Some(LatencyPercentiles::from_times(times));
    BenchRecord { latency, threads: 3, place: Some(context.medium.clone()), ..record }
}

/// The times of a live run.
struct LiveTimes {
    /// All of it.
    run: RepeatTimes,
    /// Bytes of the events.
    bytes: u64,
    /// From an event to its alert.
    to_alert: LatencyHistogram,
    /// From an alert to its case.
    to_case: LatencyHistogram,
}

fn measure_live(context: &BenchContext) -> Result<LiveTimes, Error> {
    let stream = LiveStream::new(context.pick(2_000, 400_000) as usize)?;
    let scratch_dir = context.fresh("live")?;
    stream.measure(scratch_dir.path())
}

/// Events, and which of them complete alerts.
struct LiveStream {
    /// Each as a unit; the first one begins with the definitions of all names.
    events: Vec<Vec<u8>>,
    /// For each alert, in their order: the index of its event.
    alerts: Vec<usize>,
}

impl LiveStream {
    fn new(count: usize) -> Result<Self, Error> {
        let (arena, names) = sample::orders(count, 42);
        let mut watch = Watch::new(&ScenarioSelection::of(&THREE))?;
        let (mut events, mut alerts, mut completed) = (Vec::new(), Vec::new(), Vec::new());
        for (index, (_, _, frame)) in frames(&arena).enumerate() {
            let event = Event::new(frame).expect("a frame of the sample");
            // As on the tape, where the definitions come first and have no ordinals of events.
            watch.on_event(&event, index as u64 + 1, None, &names, &mut completed);
            alerts.extend(completed.drain(..).map(|_| index));
            events.push(frame.to_vec());
        }
        // In the unit of the first event: a unit ends with an event.
        if let Some(first) = events.first_mut() {
            first.splice(..0, definitions(&names)?);
        }
        Ok(Self { events, alerts })
    }

    /// Appends the events in their turn while a watch and an ingest follow.
    fn measure(&self, dir: &Path) -> Result<LiveTimes, Error> {
        let [tape, alerts, cases] = ["tape", "alerts", "cases"].map(|name| dir.join(name));
        let mut writer = Writer::open(&tape, TapeId(0xa1e7), WriterOptions::default())?.0;
        let begin = Instant::now();
        let now = || begin.elapsed().as_nanos() as u64;
        let is_written = AtomicBool::new(false);
        let (is_failed, is_ingesting) = (AtomicBool::new(false), AtomicBool::new(false));
        let looks = AtomicUsize::new(0);
        let committed = Mutex::new(Vec::with_capacity(self.alerts.len()));
        let lock = || committed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut run = RepeatTimes::default();
        let live = || {
            std::thread::scope(|scope| {
                let watching = scope.spawn(|| {
                    let control = LiveControl {
                        is_stopped: &|| is_failed.load(Ordering::Relaxed),
                        is_finished: &|| {
                            looks.fetch_add(1, Ordering::Relaxed);
                            Ok(is_written.load(Ordering::Acquire))
                        },
                        spin: true,
                        on_missing: &|| {},
                        on_snapshot_refused: &|_| {},
                        on_snapshot_passed_over: &|_| {},
                        snapshot_events: u64::MAX,
                    };
                    let selection = ScenarioSelection::of(&THREE);
                    let watched = watch_live::<unitape_run::Error>(
                        &tape,
                        &alerts,
                        &selection,
                        ReadOptions::default(),
                        &control,
                        |_, _| {
                            lock().push(now());
                            Ok(())
                        },
                    );
                    is_failed.fetch_or(watched.is_err(), Ordering::Relaxed);
                    watched.map(drop)
                });
                let ingesting = scope.spawn(|| {
                    while TapeManifest::load(&alerts).is_err() && !is_failed.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    let mut stored = Vec::with_capacity(self.alerts.len());
                    let count = AtomicUsize::new(0);
                    let mut store = CaseStore::open_or_create(&cases)?;
                    let options = IngestOptions {
                        alerts: &alerts,
                        source: &tape,
                        calendar: &Calendar::default(),
                        read: ReadOptions::default(),
                        now: &|| 1_800_000_000_000_000_000,
                        end: &|| {
                            is_ingesting.store(true, Ordering::Relaxed);
                            let is_done = count.load(Ordering::Relaxed) == self.alerts.len();
                            match is_done || is_failed.load(Ordering::Relaxed) {
                                true => IngestEnd::Now,
                                false => IngestEnd::Never,
                            }
                        },
                    };
                    ingest::<unitape_case::Error>(&mut store, &options, |ingested| {
                        stored.extend(ingested.iter().map(|_| now()));
                        count.fetch_add(ingested.len(), Ordering::Relaxed);
                        Ok(())
                    })?;
                    Ok::<_, unitape_case::Error>(stored)
                });
                let mut due_times = Vec::with_capacity(self.events.len());
                let (first, events) = self.events.split_first().expect("a stream of events");
                due_times.push(now());
                writer.append(first)?;
                // The watch checks once before it reads, and again at the end of the data.
                let is_ready = || looks.load(Ordering::Relaxed) >= 2 && is_ingesting.load(Ordering::Relaxed);
                while !is_ready() && !is_failed.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let mut due = now();
                for unit in events {
                    due += PAUSE_NS;
                    while now() < due {
                        std::hint::spin_loop();
                    }
                    due_times.push(due);
                    let written = writer.append(unit);
                    is_failed.fetch_or(written.is_err(), Ordering::Relaxed);
                    written?;
                }
                is_written.store(true, Ordering::Release);
                watching.join().expect("the watch does not panic")?;
                let stored = ingesting.join().expect("the ingest does not panic")?;
                Ok::<_, Error>((due_times, stored))
            })
        };
        let (due_times, stored) = run.time(live)?;
        writer.close()?;
        let committed = lock().clone();
        if committed.len() != self.alerts.len() || stored.len() != self.alerts.len() {
            let (expected, on_tape, in_cases) = (self.alerts.len(), committed.len(), stored.len());
            let message =
                format!("{expected} alerts, but {on_tape} on the alert tape and {in_cases} in cases");
            return Err(Error::Failed(message));
        }
        let (mut to_alert, mut to_case) = (histogram(), histogram());
        for ((event, committed), stored) in self.alerts.iter().zip(&committed).zip(&stored) {
            note(&mut to_alert, committed.saturating_sub(due_times[*event]));
            note(&mut to_case, stored.saturating_sub(*committed));
        }
        let bytes = self.events.iter().map(|unit| unit.len() as u64).sum();
        Ok(LiveTimes { run, bytes, to_alert, to_case })
    }
}

/// Time from one event to the next.
const PAUSE_NS: u64 = 20_000;

/// Returns the definitions of all names.
fn definitions(names: &Dictionary) -> Result<Vec<u8>, Error> {
    let mut unit = Vec::new();
    for kind in NameKind::ALL {
        for id in 1..=names.len(kind) {
            let name = names.name(kind, id).expect("ids without gaps");
            let defined = EventBuilder::define(&mut unit, kind, id, name);
            defined.map_err(|e| Error::Failed(e.to_string()))?;
        }
    }
    Ok(unit)
}

/// Runs `serve`.
pub fn run_serve(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    let scratch_dir = context.fresh("serve")?;
    let (tape, dir) = (scratch_dir.path().join("tape"), scratch_dir.path().join("store"));
    make_tape(&tape, context.pick(20_000, 4_000_000))?;
    let key = MasterKey::random(&SystemRandomness)?;
    seal(&tape, &dir, &key, unitape_model::UnixNanos(0), &SealOptions::default())?;
    let store = Store::open(&dir, &key)?;
    let filter = ScanFilter { schemas: vec![TickSchema::Bbo], ..ScanFilter::default() };
    let (rows, expected_hash) = drain(store.rows(TickSchema::Bbo, &filter)?)?;
    let mut measure = |case: &str, method: &str, read: &mut dyn FnMut() -> Result<(u64, String), Error>| {
        let (mut times, mut warm) = (RepeatTimes::default(), RepeatTimes::default());
        for round in 0..=context.repeats(5) {
            let times = if round == 0 { &mut warm } else { &mut times };
            if times.time(&mut *read)? != (rows, expected_hash.clone()) {
                return Err(Error::Failed(format!("serve {case}: other rows than those of the store")));
            }
        }
        let record = times.record("serve", case, rows, rows * 64, method.to_owned());
        out(BenchRecord {
            place: Some(context.medium.clone()),
            output_sha256: Some(expected_hash.clone()),
            threads: if case == "get" { 2 } else { 1 },
            ..record
        })
    };
    if context.wants("serve", "local") {
        let method = "all best quotes of a day of 1,000 instruments, in the page cache, as rows in the order of event time, by \
                      the owner of the store; each price is hashed";
        measure("local", method, &mut || drain(store.rows(TickSchema::Bbo, &filter)?))?;
    }
    if context.wants("serve", "get") {
        let method = "the same rows from a data server in the same process: query, sealed blocks over loopback, decrypted \
                      and put in order by the client";
        serve_while(scratch_dir.path(), &dir, &key, |client| {
            let query = DataQuery::new("days", ReadDepth::Rows, &filter);
            measure("get", method, &mut || drain(client.query(&query)?.rows(TickSchema::Bbo, &filter)?))
        })?;
    }
    Ok(())
}

/// Counts the rows, and hashes the bids.
fn drain(mut scan: RowScan<'_>) -> Result<(u64, String), Error> {
    let (mut rows, mut sum) = (0, 0u64);
    while let Some(row) = scan.next() {
        rows += 1;
        // Not the hash of the record, which would be most of the time.
        let bid = &row.event.bytes()[40..48];
        sum = sum.rotate_left(5) ^ u64::from_le_bytes(bid.try_into().expect("eight bytes"));
    }
    if let Some(failure) = scan.take_failure() {
        return Err(failure.into());
    }
    match scan.problems().first() {
        Some(problem) => Err(Error::Failed(problem.to_string())),
        None => Ok((rows, crate::record::sha256(&sum.to_le_bytes()))),
    }
}

/// Serves a store while `work` has a client of the server.
fn serve_while(
    scratch_dir: &Path,
    dir: &Path,
    key: &MasterKey,
    work: impl FnOnce(&mut Client) -> Result<(), Error>,
) -> Result<(), Error> {
    const PASSWORD: &str = "a password for a bench";
    let (users, entitlements) = (scratch_dir.join("users.toml"), scratch_dir.join("entitlements.toml"));
    let account = Account {
        name: "bench".to_owned(),
        person: "bench".to_owned(),
        role: Role::Analyst,
        parties: Vec::new(),
        is_disabled: false,
    };
    UserFile::add_account(&users, &account, PASSWORD)?;
    std::fs::write(&entitlements, "format = 1\n[[entitlement]]\nuser = \"bench\"\ndataset = \"days\"\n")?;
    let any_port = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    let options = DemandOptions {
        stores: vec![ServedStore { name: "days".to_owned(), dir: dir.to_owned(), key: key.clone() }],
        users,
        entitlements,
        listen: any_port,
        data: any_port,
        certificate: None,
    };
    let (stop, (sender, receiver)) = (AtomicBool::new(false), mpsc::channel());
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            serve_data(&options, &stop, move |event| {
                if let DemandEvent::Listening { private, fingerprint, .. } = event {
                    _ = sender.send((private, fingerprint));
                }
            })
        });
        let worked = receiver.recv().ok().map(|(address, fingerprint)| {
            let trust = ServerTrust::in_fingerprint(fingerprint);
            let (host, port) = (address.ip().to_string(), address.port());
            work(&mut Client::log_in(&host, port, &trust, "bench", PASSWORD)?)
        });
        stop.store(true, Ordering::Relaxed);
        server.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        worked.unwrap_or_else(|| Err(Error::Failed("the data server did not listen".to_owned())))
    })
}
