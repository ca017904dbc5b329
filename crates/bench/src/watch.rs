//! `bench watch`: the stream of `generate bench` through scenarios, from memory, on one core.

use crate::answers;
use crate::context::BenchContext;
use crate::error::Error;
use crate::record::{BenchRecord, HexSha256, RepeatTimes, sha256};
use std::path::Path;
use unitape_model::{Dictionary, Event, frames};
use unitape_run::opened_watch::{OpenedWatch, WatchDirs};
use unitape_run::surveil::SurveilOutcome;
use unitape_sim::surveillance::{SurveillanceConfig, SurveillanceStream};
use unitape_tape::{ReadOptions, TapeId, Writer, WriterOptions};
use unitape_watch::twin::naive::Twins;
use unitape_watch::{Alert, ScenarioSelection, Watch};

/// A case.
struct WatchCase {
    name: &'static str,
    /// All scenarios if empty.
    scenarios: &'static [&'static str],
    /// The hash of the alerts over the full stream.
    alerts_sha256: &'static str,
    /// Events of the full stream on which the alerts are compared with the slow twins', which are quadratic.
    twin_events: u64,
}

const CASES: [WatchCase; 5] = [
    WatchCase {
        name: "otr",
        scenarios: &["order_to_trade_ratio"],
        alerts_sha256: "e908e0f26844558262a89b1d9ca8f6aefd241fcd522126a9068f2ac746b1f75c",
        twin_events: 300_000,
    },
    WatchCase {
        name: "wash",
        scenarios: &["wash_trade"],
        alerts_sha256: "0fcd033e4183180ffa9367b3ab51e41f8e60802f5eadf23aca87d979962a2454",
        twin_events: 300_000,
    },
    WatchCase {
        name: "layering",
        scenarios: &["layering"],
        alerts_sha256: "99c56fbfa9d8ee48abadd60587065788cd5fc1c1916f36b6b0bcfb7def2254d8",
        twin_events: 300_000,
    },
    WatchCase {
        name: "three",
        scenarios: &THREE,
        alerts_sha256: "25258d432267591068a25df69d0c9ccc3677b4f82b39cae34e96be18905dd083",
        twin_events: 300_000,
    },
    WatchCase {
        name: "all",
        scenarios: &[],
        alerts_sha256: "6d6ac838857f91dd840ca0933256fb621bfd089a375d2f68ae73310126abf6e7",
        twin_events: 20_000,
    },
];

/// The scenarios of `three`, `snapshot` and `alert-latency`.
pub(crate) const THREE: [&str; 3] = ["order_to_trade_ratio", "wash_trade", "layering"];

/// Events of the full stream.
const EVENTS: u64 = 10_000_000;

/// Runs the cases.
pub fn run(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    if context.wants("watch", "alert-latency") {
        answers::run_alert_latency(context, out)?;
    }
    let wanted = || CASES.iter().filter(|case| context.wants("watch", case.name));
    let has_snapshot = context.wants("watch", "snapshot");
    if wanted().next().is_none() && !has_snapshot {
        return Ok(());
    }
    let input = EventStream::new(context.pick(20_000, EVENTS));
    for case in wanted() {
        compare_with_twins(case, context.pick(2_000, case.twin_events))?;
        out(measure(context, case, &input)?)?;
    }
    if has_snapshot { measure_snapshot(context, &input, out) } else { Ok(()) }
}

/// The frames of a stream.
struct EventStream {
    events: u64,
    arena: Vec<u8>,
    names: Dictionary,
    hash: String,
}

impl EventStream {
    fn new(events: u64) -> Self {
        let mut stream = SurveillanceStream::new(SurveillanceConfig::with_events(events));
        let mut arena = Vec::new();
        while stream.next_unit(&mut arena) {}
        let hash = sha256(&arena);
        Self { events, arena, names: stream.names().clone(), hash }
    }

    fn events(&self) -> impl Iterator<Item = (Event<'_>, u64)> {
        let events =
            frames(&self.arena).map(|(_, _, frame)| Event::new(frame).expect("a frame of the stream"));
        events.zip(1..)
    }
}

/// Fails if the alerts of the case differ from those of the slow twins.
fn compare_with_twins(case: &WatchCase, events: u64) -> Result<(), Error> {
    let input = EventStream::new(events);
    let selection = ScenarioSelection::of(case.scenarios);
    let (mut watch, mut twins) = (Watch::new(&selection)?, Twins::new(&selection)?);
    let (mut fast, mut slow) = (Vec::new(), Vec::new());
    for (event, seq) in input.events() {
        watch.on_event(&event, seq, None, &input.names, &mut fast);
        twins.on_event(&event, seq, &input.names, &mut slow);
    }
    let (alerts, expected) = (fast.len(), slow.len());
    if hash_of_alerts(fast) != hash_of_alerts(slow) {
        let case = case.name;
        let message = format!("watch {case}: {alerts} alerts, the slow twins give {expected}, or others");
        return Err(Error::Failed(message));
    }
    Ok(())
}

fn measure(context: &BenchContext, case: &WatchCase, input: &EventStream) -> Result<BenchRecord, Error> {
    let WatchCase { name: case, scenarios, alerts_sha256: frozen, twin_events } = case;
    let resident_before = resident_bytes();
    let mut watch = Watch::new(&ScenarioSelection::of(scenarios))?;
    let (mut repeats, mut alerts) = (RepeatTimes::default(), Vec::new());
    let mut expected: Option<(usize, String)> = None;
    // The first round warms up: tables have grown to the size they keep.
    for round in 0..=context.repeats(3) {
        watch.reset();
        let mut warm_up = RepeatTimes::default();
        let times = if round == 0 { &mut warm_up } else { &mut repeats };
        times.time(|| {
            for (event, seq) in input.events() {
                watch.on_event(&event, seq, None, &input.names, &mut alerts);
            }
        });
        let outcome = (alerts.len(), hash_of_alerts(std::mem::take(&mut alerts)));
        let first = expected.get_or_insert_with(|| outcome.clone());
        if *first != outcome {
            return Err(Error::Failed(format!("watch {case}: the alerts of two repeats differ")));
        }
    }
    let state_bytes = resident_bytes().saturating_sub(resident_before);
    let (alert_count, hash) = expected.expect("at least one round ran");
    if input.events == EVENTS && hash != *frozen {
        let message = format!(
            "watch {case}: the {alert_count} alerts of the full stream have the hash {hash}, not {frozen}"
        );
        return Err(Error::Failed(message));
    }
    let names = if scenarios.is_empty() { "all scenarios".to_owned() } else { scenarios.join(", ") };
    let mut forgotten: u64 = watch.metrics().map(|(_, metrics)| metrics.bound_hit).sum();
    forgotten += watch.shared_metrics().orders_bound_hit;
    let method = format!(
        "the {} events of `generate bench` from memory through {names}; {alert_count} alerts, the same in every repeat, and on \
         a stream of {} events those of the slow twins; {} MB of state, {forgotten} entries forgotten for lack of room",
        input.events,
        context.pick(2_000, *twin_events),
        state_bytes / 1_000_000,
    );
    let record = repeats.record("watch", case, input.events, input.arena.len() as u64, method);
    Ok(BenchRecord { input_sha256: Some(input.hash.clone()), output_sha256: Some(hash), ..record })
}

/// Measures the snapshot of the state after the whole stream: the pause while it is saved in memory, its way to the disk, and
/// the restart from it.
fn measure_snapshot(
    context: &BenchContext,
    input: &EventStream,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    let selection = ScenarioSelection::of(&THREE);
    let scratch_dir = context.fresh("snapshot")?;
    let [source, alerts] = ["tape", "alerts"].map(|name| scratch_dir.path().join(name));
    write_stream(&source, input.events)?;
    let dirs = WatchDirs { source: &source, alerts: &alerts };
    let open = || OpenedWatch::open(dirs, &selection, ReadOptions::default(), &|_| {});
    let OpenedWatch { mut surveillance, mut alert_tape, snapshots, .. } = open()?;
    loop {
        match surveillance.step()? {
            SurveilOutcome::Frame([]) => {}
            SurveilOutcome::Frame(alerts) => _ = alert_tape.write_alerts(alerts)?,
            SurveilOutcome::AtEnd => break,
            SurveilOutcome::Rewound { .. } => {
                return Err(Error::Failed("watch snapshot: the tape was cut back".to_owned()));
            }
        }
    }
    let point = alert_tape.point();
    alert_tape.close()?;
    let (mut pause, mut disk, mut restart) =
        (RepeatTimes::default(), RepeatTimes::default(), RepeatTimes::default());
    let mut state_bytes = 0;
    for _ in 0..context.repeats(3) {
        let snapshot = pause.time(|| surveillance.take_snapshot(point));
        disk.time(|| snapshots.write_snapshot(&snapshot))?;
        let reopened = restart.time(open)?;
        let state = reopened.surveillance.take_snapshot(point).state;
        reopened.alert_tape.close()?;
        if !reopened.is_resumed || state != snapshot.state {
            return Err(Error::Failed("watch snapshot: the loaded state is another one".to_owned()));
        }
        state_bytes = state.len();
    }
    let conditions = [
        ("pause", pause, "the state is copied into memory; the watch stands still meanwhile"),
        ("disk", disk, "the copy is hashed, written to a file and flushed"),
        (
            "restart",
            restart,
            "both tapes are opened, the snapshot is compared with them, and it becomes a state",
        ),
    ];
    for (condition, times, action) in conditions {
        let method = format!(
            "{action}: {} bytes, of {} after the {} events of `generate bench`; saved again, the loaded state has the same bytes",
            state_bytes,
            THREE.join(", "),
            input.events
        );
        let record = times.record("watch", "snapshot", 1, state_bytes as u64, method);
        let place = Some(context.medium.clone());
        let input_sha256 = Some(input.hash.clone());
        out(BenchRecord { condition: Some(condition.to_owned()), place, input_sha256, ..record })?;
    }
    Ok(())
}

/// Writes the stream of so many events onto a new tape.
fn write_stream(dir: &Path, events: u64) -> Result<(), Error> {
    let mut stream = SurveillanceStream::new(SurveillanceConfig::with_events(events));
    let mut writer = Writer::open(dir, TapeId(0x5a7c), WriterOptions::default())?.0;
    let mut units = Vec::new();
    stream.write_definitions(&mut units);
    while !units.is_empty() {
        writer.append(&units)?;
        units.clear();
        while units.len() < BATCH_BYTES && stream.next_unit(&mut units) {}
    }
    writer.close()?;
    Ok(())
}

/// Units are put onto a tape together up to about this size.
const BATCH_BYTES: usize = 1 << 18;

/// Hashes the fields of the alerts that the twins also have: all but the detail, which is for people.
fn hash_of_alerts(alerts: Vec<Alert>) -> String {
    let (mut hash, mut line) = (HexSha256::default(), Vec::new());
    for alert in alerts {
        line.clear();
        Alert { detail: serde_json::Value::Null, ..alert }.write_json(&mut line, None);
        line.push(b'\n');
        hash.add(&line);
    }
    hash.hex()
}

/// Returns the memory of this process that is in use, bytes; 0 where the system does not tell.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}
