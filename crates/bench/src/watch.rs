//! `bench watch`: events through scenarios, from memory, on one core.

use crate::answers;
use crate::context::BenchContext;
use crate::error::Error;
use crate::record::{BenchRecord, HexSha256, RepeatTimes, sha256};
use unitape_model::{Dictionary, Event, frames};
use unitape_watch::twin::naive::Twins;
use unitape_watch::twin::sample;
use unitape_watch::{Alert, ScenarioSelection, Watch};

/// The cases and the scenarios that each runs.
const CASES: [(&str, &[&str]); 4] = [
    ("otr", &["order_to_trade_ratio"]),
    ("wash", &["wash_trade"]),
    ("spoofing", &["spoofing"]),
    ("three", &THREE),
];

/// The scenarios of `three` and of `alert-latency`.
pub(crate) const THREE: [&str; 3] = ["order_to_trade_ratio", "spoofing", "wash_trade"];

/// Runs the cases.
pub fn run(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    if context.wants("watch", "alert-latency") {
        answers::run_alert_latency(context, out)?;
    }
    let wanted = || CASES.iter().filter(|(case, _)| context.wants("watch", case));
    if wanted().next().is_none() {
        return Ok(());
    }
    let (arena, names) = sample::orders(context.pick(5_000, 500_000) as usize, 42);
    let input =
        WatchedEvents { hash: sha256(&arena), events: events(&arena), bytes: arena.len() as u64, names };
    wanted().try_for_each(|(case, scenarios)| out(measure(context, case, scenarios, &input)?))
}

struct WatchedEvents<'a> {
    hash: String,
    events: Vec<Event<'a>>,
    bytes: u64,
    names: Dictionary,
}

fn events(arena: &[u8]) -> Vec<Event<'_>> {
    frames(arena).map(|(_, _, frame)| Event::new(frame).expect("a frame of the sample")).collect()
}

fn measure(
    context: &BenchContext,
    case: &str,
    scenarios: &[&str],
    input: &WatchedEvents<'_>,
) -> Result<BenchRecord, Error> {
    let selection = ScenarioSelection::of(scenarios);
    let mut twins = Twins::new(&selection)?;
    let (mut slow, mut alerts) = (HexSha256::default(), Vec::new());
    let mut expected = 0;
    for (event, seq) in input.events.iter().zip(1..) {
        twins.on_event(event, seq, &input.names, &mut alerts);
        expected += alerts.len();
        alerts.drain(..).for_each(|alert| add(&mut slow, alert));
    }
    let slow = slow.hex();
    let (mut watch, mut repeats) = (Watch::new(&selection)?, RepeatTimes::default());
    // The first round warms up: tables have grown to the size they keep.
    for round in 0..=context.repeats(7) {
        watch.reset();
        let mut warm_up = RepeatTimes::default();
        let times = if round == 0 { &mut warm_up } else { &mut repeats };
        times.time(|| {
            for (event, seq) in input.events.iter().zip(1..) {
                watch.on_event(event, seq, None, &input.names, &mut alerts);
            }
        });
        let mut fast = HexSha256::default();
        let alert_count = alerts.len();
        alerts.drain(..).for_each(|alert| add(&mut fast, alert));
        if fast.hex() != slow {
            let message =
                format!("watch {case}: {alert_count} alerts, the slow twin gives {expected}, or others");
            return Err(Error::Failed(message));
        }
    }
    let method = format!(
        "{} events (orders, amends, cancels, executions, best prices) of {} traders in {} instruments at 3 venues from \
         memory through {}; {expected} alerts, equal to the slow twin's in every repeat",
        input.events.len(),
        sample::TRADERS,
        sample::INSTRUMENTS,
        scenarios.join(", "),
    );
    let record = repeats.record("watch", case, input.events.len() as u64, input.bytes, method);
    Ok(BenchRecord { input_sha256: Some(input.hash.clone()), output_sha256: Some(slow), ..record })
}

/// Adds the fields of an alert that the twin also has: all but the detail, which is for people.
fn add(hash: &mut HexSha256, alert: Alert) {
    let mut line = Vec::new();
    Alert { detail: serde_json::Value::Null, ..alert }.write_json(&mut line, None);
    line.push(b'\n');
    hash.add(&line);
}
