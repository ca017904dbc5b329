//! `rtt`, `rtt-64`: back to back. `rtt-rate`: at fixed rates, from due time. `rtt-load`: the same beside a batch.

use super::check::{TapeHashes, read_back};
use super::control::{RecordDescription, RepeatResult, RepeatsByDistance, shared_dir};
use super::{BackingBench, LINES, RecordSink, frame_bytes, moved, spawn};
use crate::error::Error;
use crate::record::{BenchRecord, cpu_ns, histogram, note};
use std::time::Duration;
use unitape_tape::twin::measure::{
    SendSchedule, payload_of, raw_round_trips_at, round_trips, round_trips_at,
};
use unitape_tape::{SyncPolicy, WriterOptions};

/// Messages a second of `rtt-rate`. The first rate is also the rate of `rtt-load`.
const RATES: [u64; 3] = [100_000, 500_000, 1_000_000];

/// Messages of the batch of `rtt-load` in the time between two messages: a million a second, and four.
const BATCHES: [u64; 2] = [10, 40];

/// Runs the selected cases.
pub fn run(bench: &mut BackingBench<'_>, out: RecordSink<'_>) -> Result<(), Error> {
    back_to_back(bench, out)?;
    if bench.wants("rtt-rate") {
        for rate in RATES {
            let paced = PacedTrips::new(bench, rate, &[0]);
            paced.run(bench, out, "rtt-rate")?;
        }
    }
    if bench.wants("rtt-load") {
        // Flushed all along, as a tape that must be durable soon is.
        let sync = SyncPolicy::Every { bytes: 1 << 20, interval: Duration::from_millis(10) };
        let mut paced = PacedTrips::new(bench, RATES[0], &[0, BATCHES[0], BATCHES[1]]);
        paced.options.sync_policy = sync;
        paced.run(bench, out, "rtt-load")?;
    }
    Ok(())
}

fn back_to_back(bench: &mut BackingBench<'_>, out: RecordSink<'_>) -> Result<(), Error> {
    let cases: Vec<(&'static str, u16)> =
        [("rtt", LINES), ("rtt-64", 1)].into_iter().filter(|(case, _)| bench.wants(case)).collect();
    let context = bench.context;
    let count = context.pick(2_000, 200_000);
    let mut repeats_by_case: Vec<(RepeatsByDistance, Option<TapeHashes>)> =
        cases.iter().map(|_| (RepeatsByDistance::default(), None)).collect();
    for _ in 0..context.repeats(5) {
        for ((case, lines), (gathered, hashes)) in cases.iter().zip(&mut repeats_by_case) {
            let options = &bench.options;
            let (trial, control_result) = bench.control.run_with_control(|| {
                let scratch_dir = context.fresh(case)?;
                let cpu = cpu_ns();
                let times = round_trips(scratch_dir.path(), options, *lines, count, &spawn(context))?;
                let cpu_ns = cpu_ns() - cpu;
                *hashes = Some(read_back(&scratch_dir.path().join("there"), *lines, count, false)?);
                let mut all = histogram();
                times.iter().for_each(|&ns| note(&mut all, ns));
                Ok(RepeatResult {
                    times: Some(all),
                    control: None,
                    count,
                    wall_ns: times.iter().sum(),
                    cpu_ns,
                })
            })?;
            gathered.add(trial, &control_result);
        }
    }
    for ((case, lines), (gathered, hashes)) in cases.into_iter().zip(&repeats_by_case) {
        let method = format!(
            "messages of {} bytes in frames of {} there and back over two {} tapes with their recorders, one at a \
             time, every word read; raw control before and after each repeat; processor time with opening and \
             closing",
            payload_of(lines),
            frame_bytes(lines),
            bench.backing
        );
        let description =
            |_: &_| RecordDescription { case, bytes: 2 * frame_bytes(lines), method: method.clone() };
        for record in gathered.records(description) {
            out(moved(record, lines, hashes.as_ref()))?;
        }
    }
    Ok(())
}

/// Round trips at one rate, without and with batches beside them.
struct PacedTrips {
    rate: u64,
    count: u64,
    options: WriterOptions,
    batches: Vec<(u64, RepeatsByDistance)>,
}

impl PacedTrips {
    fn new(bench: &BackingBench<'_>, rate: u64, batches: &[u64]) -> Self {
        // A second of each, so that rare events of the slow rates have their chance.
        let count = bench.context.pick(2_000, rate);
        let batches = batches.iter().map(|&batch| (batch, RepeatsByDistance::default())).collect();
        Self { rate, count, options: bench.options.clone(), batches }
    }

    fn run(
        mut self,
        bench: &mut BackingBench<'_>,
        out: RecordSink<'_>,
        case: &'static str,
    ) -> Result<(), Error> {
        let context = bench.context;
        let mut hashes = None;
        let (options, count, rate) = (&self.options, self.count, self.rate);
        for _ in 0..context.repeats(5) {
            for (batch, gathered) in &mut self.batches {
                let (trial, control_result) = bench.control.run_with_control(|| {
                    let scratch_dir = context.fresh(case)?;
                    let mut times = histogram();
                    let every = Duration::from_nanos(1_000_000_000 / rate);
                    let pace = SendSchedule { count, every, batch: *batch };
                    let cpu = cpu_ns();
                    let wall_ns =
                        round_trips_at(scratch_dir.path(), options, LINES, pace, &spawn(context), |ns| {
                            note(&mut times, ns);
                        })?;
                    let cpu_ns = cpu_ns() - cpu;
                    hashes = Some(read_back(&scratch_dir.path().join("there"), LINES, count, false)?);
                    let mut raw = histogram();
                    let dir = shared_dir(context);
                    raw_round_trips_at(&dir, count, every, &spawn(context), |ns| note(&mut raw, ns))?;
                    Ok(RepeatResult { times: Some(times), control: Some(raw), count, wall_ns, cpu_ns })
                })?;
                gathered.add(trial, &control_result);
            }
        }
        let baseline = &self.batches[0].1;
        for (batch, gathered) in &self.batches {
            let loaded = rate * batch;
            let load_text = match batch {
                0 if self.batches.len() == 1 => String::new(),
                0 => "; the same without load, for comparison".to_owned(),
                _ => format!(
                    "; beside it {loaded} messages a second from the same sender on a second tape, in parts of 4 \
                     whenever nothing is due or out, read by the same process"
                ),
            };
            let flushed = match self.options.sync_policy {
                SyncPolicy::OnClose => "",
                SyncPolicy::Every { .. } => "; the tapes of the sender made durable every 1 MiB or 10 ms",
            };
            let method = format!(
                "{rate} messages of {} bytes a second there and back over two {} tapes with their recorders, each \
                 sent when it is due whatever is still out; latency from due time{load_text}{flushed}; right \
                 behind each repeat the raw control at the same rate, from due time too",
                payload_of(LINES),
                bench.backing
            );
            let description =
                |_: &_| RecordDescription { case, bytes: 2 * frame_bytes(LINES), method: method.clone() };
            let against = (*batch > 0).then_some(baseline);
            for record in gathered.records_against(against, description) {
                let condition = match batch {
                    0 if self.batches.len() == 1 => None,
                    0 => Some("unloaded".to_owned()),
                    _ => Some(format!("beside {} M/s", loaded / 1_000_000)),
                };
                let record = BenchRecord { condition, rate_per_s: Some(rate), ..record };
                out(moved(record, LINES, hashes.as_ref()))?;
            }
        }
        Ok(())
    }
}
