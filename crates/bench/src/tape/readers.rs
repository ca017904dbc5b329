//! `readers1`, `readers4`, `readers20`: what readers cost the writer.
//!
//! On two cores the tape's helper threads need the core on which the readers run, or they take the writer's. So
//! it is measured in three ways: with memory that is ready and helpers on the readers' core, which shows what the
//! readers alone do; with segments made on the way; and with helpers wherever the system puts them.

use super::bench_process::BenchProcess;
use super::check::{TapeHashes, read_back};
use super::control::{RecordDescription, RepeatResult, RepeatsByDistance};
use super::stopped_recorder::cores;
use super::{BackingBench, LINES, RecordSink, frame_bytes, moved};
use crate::error::Error;
use crate::record::{BenchRecord, cpu_ns};
use std::path::Path;
use std::time::Instant;
use unitape_tape::measure::pin;
use unitape_tape::twin::measure::{BenchFrameGenerator, payload_of, settle};
use unitape_tape::{TapeId, Writer, WriterOptions};

const READERS: [(u32, &str); 3] = [(1, "readers1"), (4, "readers4"), (20, "readers20")];

/// A way of measuring.
struct ReaderCondition {
    condition: &'static str,
    text: &'static str,
    count: u64,
    options: WriterOptions,
    settled: bool,
}

/// Runs the cases that are wanted.
pub fn run(bench: &mut BackingBench<'_>, out: RecordSink<'_>) -> Result<(), Error> {
    let wanted: Vec<(u32, &'static str)> =
        READERS.into_iter().filter(|(_, case)| bench.wants(case)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    for way in ways(bench) {
        measure(bench, &wanted, &way, out)?;
    }
    Ok(())
}

fn ways(bench: &BackingBench<'_>) -> Vec<ReaderCondition> {
    let context = bench.context;
    let mut pinned = bench.options.clone();
    if pinned.helpers.cpus.is_empty() && context.options.tune.pin && cores() > 1 {
        pinned.helpers.cpus = vec![1];
    }
    let segment_bytes = if context.options.quick { 8 << 20 } else { 256 << 20 };
    let ready = WriterOptions { segment_bytes, prefault_bytes: segment_bytes, ..pinned.clone() };
    let mut ways = vec![
        ReaderCondition {
            condition: "memory ready",
            text: "memory faulted in before, helper threads on the readers' core",
            count: context.pick(20_000, 1_800_000),
            options: ready,
            settled: true,
        },
        ReaderCondition {
            condition: "made on the way",
            text: "segments made on the way, helper threads on the readers' core",
            count: context.pick(20_000, 3_000_000),
            options: pinned,
            settled: false,
        },
    ];
    if bench.options.helpers.cpus.is_empty() {
        ways.push(ReaderCondition {
            condition: "helpers anywhere",
            text: "segments made on the way, helper threads wherever the system puts them",
            count: context.pick(20_000, 3_000_000),
            options: bench.options.clone(),
            settled: false,
        });
    }
    ways
}

fn measure(
    bench: &mut BackingBench<'_>,
    wanted: &[(u32, &'static str)],
    way: &ReaderCondition,
    out: RecordSink<'_>,
) -> Result<(), Error> {
    let context = bench.context;
    let mut alone = RepeatsByDistance::default();
    let mut found: Vec<RepeatsByDistance> = wanted.iter().map(|_| RepeatsByDistance::default()).collect();
    let mut hashes: Option<TapeHashes> = None;
    for _ in 0..context.repeats(5) {
        let each = std::iter::once((0, &mut alone)).chain(wanted.iter().map(|(n, _)| *n).zip(&mut found));
        for (readers, gathered) in each {
            let (trial, beside) = bench.control.run_with_control(|| {
                let place = context.fresh("readers")?;
                let tape = place.path().join("tape");
                let (mut writer, _) = Writer::open(&tape, TapeId(1), way.options.clone())?;
                let second = start(bench.context, &tape, readers, way.count)?;
                if way.settled {
                    settle(&way.options);
                }
                pin(0);
                let mut messages = BenchFrameGenerator::new(LINES);
                let (cpu, since) = (cpu_ns(), Instant::now());
                for _ in 0..way.count {
                    writer.append(messages.next())?;
                }
                let (wall_ns, cpu_ns) = (since.elapsed().as_nanos() as u64, cpu_ns() - cpu);
                if let Some(second) = second {
                    let said = second.end()?;
                    if said != format!("read {}", way.count) {
                        return Err(Error::Failed(format!("tape readers: the readers said {said:?}")));
                    }
                }
                writer.close()?;
                hashes = Some(read_back(&tape, LINES, way.count, false)?);
                Ok(RepeatResult { times: None, control: None, count: way.count, wall_ns, cpu_ns })
            })?;
            gathered.add(trial, &beside);
        }
    }
    for ((readers, case), gathered) in wanted.iter().zip(&found) {
        let method = format!(
            "time of the writer, alone on its core, for messages of {} bytes in frames of {}, one append each, \
             while {readers} readers in one process on the other core each read the whole tape; {}; with readers \
             and without in turn",
            payload_of(LINES),
            frame_bytes(LINES),
            way.text
        );
        let description =
            |_: &_| RecordDescription { case, bytes: frame_bytes(LINES), method: method.clone() };
        for record in gathered.records_against(Some(&alone), description) {
            let condition = Some(way.condition.to_owned());
            out(moved(BenchRecord { condition, ..record }, LINES, hashes.as_ref()))?;
        }
    }
    Ok(())
}

fn start(
    context: &super::BenchContext,
    tape: &Path,
    readers: u32,
    count: u64,
) -> Result<Option<BenchProcess>, Error> {
    if readers == 0 {
        return Ok(None);
    }
    let tape = tape.to_str().ok_or_else(|| Error::Failed("--dir: not UTF-8".to_owned()))?;
    BenchProcess::start(context, &["readers", tape, &readers.to_string(), &count.to_string()]).map(Some)
}
