//! `recorder-behind`: the writer's delays while its recorder is stopped for a while.

use super::bench_process::BenchProcess;
use super::check::read_back;
use super::control::{RecordDescription, RepeatResult, RepeatsByDistance};
use super::{BackingBench, LINES, RecordSink, frame_bytes, from_due_time, moved};
use crate::error::Error;
use crate::record::{BenchRecord, cpu_ns, histogram, note};
use rustix::process::Signal;
use std::time::Instant;
use unitape_tape::measure::pin;
use unitape_tape::twin::measure::{BenchFrameGenerator, payload_of, wait_for_helpers};
use unitape_tape::{HelperThreadAffinity, RecorderLocation, TapeId, Writer, WriterOptions};

/// Messages a second.
const RATE: u64 = 1_000_000;

/// Parts of a run. The recorder is stopped from the second part to the last but one.
const PARTS: u64 = 8;

/// Runs the case if it is selected and if there is a recorder that can be stopped.
pub fn run(bench: &mut BackingBench<'_>, out: RecordSink<'_>) -> Result<(), Error> {
    if bench.backing != "hot" || !bench.wants("recorder-behind") {
        return Ok(());
    }
    let context = bench.context;
    let count = context.pick(40_000, 2 * RATE);
    let mut options = WriterOptions { recorder: RecorderLocation::External, ..bench.options.clone() };
    if options.helpers == HelperThreadAffinity::default() && context.options.tune.pin && cores() > 1 {
        options.helpers.cpus = vec![1];
    }
    let (mut undisturbed, mut stopped) = (RepeatsByDistance::default(), RepeatsByDistance::default());
    let mut hashes = None;
    for _ in 0..context.repeats(3) {
        for (stop, gathered) in [(false, &mut undisturbed), (true, &mut stopped)] {
            let (trial, control_result) = bench.control.run_with_control(|| {
                let scratch_dir = context.fresh("recorder-behind")?;
                let tape = scratch_dir.path().join("tape");
                let name = tape.to_str().ok_or_else(|| Error::Failed("--dir: not UTF-8".to_owned()))?;
                let (mut writer, _) = Writer::open(&tape, TapeId(1), options.clone())?;
                let recorder = BenchProcess::start(context, &["record", name])?;
                wait_for_helpers(&options);
                let cpu = cpu_ns();
                let (wall_ns, times) = appends(&mut writer, count, stop.then_some(&recorder))?;
                let cpu_ns = cpu_ns() - cpu;
                recorder.end()?;
                writer.close()?;
                hashes = Some(read_back(&tape, LINES, count, false)?);
                Ok(RepeatResult { times: Some(times), control: None, count, wall_ns, cpu_ns })
            })?;
            gathered.add(trial, &control_result);
        }
    }
    for (condition, gathered, baseline) in
        [("undisturbed", &undisturbed, None), ("stopped", &stopped, Some(&undisturbed))]
    {
        let condition_text = match baseline {
            None => "recorded all along by a process on the other core",
            Some(_) => "the recorder, a process on the other core, stopped for three quarters of the time",
        };
        let method = format!(
            "{RATE} messages of {} bytes a second, one append each, by one writer alone on its core; latency of \
             the append from due time; {condition_text}; helper threads on the other core",
            payload_of(LINES)
        );
        let description = |_: &_| RecordDescription {
            case: "recorder-behind",
            bytes: frame_bytes(LINES),
            method: method.clone(),
        };
        for record in gathered.records_against(baseline, description) {
            let condition = Some(condition.to_owned());
            let record = from_due_time(record);
            out(moved(BenchRecord { condition, rate_per_s: Some(RATE), ..record }, LINES, hashes.as_ref()))?;
        }
    }
    Ok(())
}

/// Appends at the rate, from due time; stops the recorder meanwhile, and makes sure that it lagged.
fn appends(
    writer: &mut Writer,
    count: u64,
    recorder: Option<&BenchProcess>,
) -> Result<(u64, crate::record::LatencyHistogram), Error> {
    let mut messages = BenchFrameGenerator::new(LINES);
    let mut times = histogram();
    let every = 1_000_000_000 / RATE;
    let (stop, go_on) = (count / PARTS, count - count / PARTS);
    let mut lag = 0;
    pin(0);
    let since = Instant::now();
    for i in 0..count {
        let due = i * every;
        while (since.elapsed().as_nanos() as u64) < due {
            std::hint::spin_loop();
        }
        // By the message and not by a clock, so that it is stopped for as many on a machine that is busy. Costs the
        // writer two system calls, which are in its figures.
        if let Some(recorder) = recorder {
            if i == stop {
                recorder.signal(Signal::STOP)?;
            } else if i == go_on {
                lag = writer.end().0 - writer.recorded().0;
                recorder.signal(Signal::CONT)?;
            }
        }
        writer.append(messages.next())?;
        note(&mut times, since.elapsed().as_nanos() as u64 - due);
    }
    let wall_ns = since.elapsed().as_nanos() as u64;
    let written = count * frame_bytes(LINES);
    if recorder.is_some() && lag < written / 4 {
        let message = format!("the recorder was stopped, but only {lag} bytes behind then");
        return Err(Error::Failed(message));
    }
    Ok((wall_ns, times))
}

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
