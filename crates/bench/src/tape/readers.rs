//! `readers1`, `readers4`, `readers20`: the cost of readers for the writer.
//!
//! On two cores, the tape's helper threads need the readers' core, or they take the writer's core. So there are three
//! measurements. With ready memory and helpers on the readers' core, it shows the effect of the readers alone. The
//! others make segments on the way, and leave the helpers to the system's scheduler.

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
use unitape_tape::twin::measure::{BenchFrameGenerator, payload_of, wait_for_helpers};
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

/// Runs the selected cases.
pub fn run(bench: &mut BackingBench<'_>, out: RecordSink<'_>) -> Result<(), Error> {
    let selected_cases: Vec<(u32, &'static str)> =
        READERS.into_iter().filter(|(_, case)| bench.wants(case)).collect();
    if selected_cases.is_empty() {
        return Ok(());
    }
    for reader_condition in ways(bench) {
        measure(bench, &selected_cases, &reader_condition, out)?;
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
    selected_cases: &[(u32, &'static str)],
    reader_condition: &ReaderCondition,
    out: RecordSink<'_>,
) -> Result<(), Error> {
    let context = bench.context;
    let mut baseline = RepeatsByDistance::default();
    let mut repeats_by_case: Vec<RepeatsByDistance> =
        selected_cases.iter().map(|_| RepeatsByDistance::default()).collect();
    let mut hashes: Option<TapeHashes> = None;
    for _ in 0..context.repeats(5) {
        let each = std::iter::once((0, &mut baseline))
            .chain(selected_cases.iter().map(|(n, _)| *n).zip(&mut repeats_by_case));
        for (readers, gathered) in each {
            let (trial, control_result) = bench.control.run_with_control(|| {
                let scratch_dir = context.fresh("readers")?;
                let tape = scratch_dir.path().join("tape");
                let (mut writer, _) = Writer::open(&tape, TapeId(1), reader_condition.options.clone())?;
                let second = start(bench.context, &tape, readers, reader_condition.count)?;
                if reader_condition.settled {
                    wait_for_helpers(&reader_condition.options);
                }
                pin(0);
                let mut messages = BenchFrameGenerator::new(LINES);
                let (cpu, since) = (cpu_ns(), Instant::now());
                for _ in 0..reader_condition.count {
                    writer.append(messages.next())?;
                }
                let (wall_ns, cpu_ns) = (since.elapsed().as_nanos() as u64, cpu_ns() - cpu);
                if let Some(second) = second {
                    let reply = second.end()?;
                    if reply != format!("read {}", reader_condition.count) {
                        return Err(Error::Failed(format!("tape readers: the readers said {reply:?}")));
                    }
                }
                writer.close()?;
                hashes = Some(read_back(&tape, LINES, reader_condition.count, false)?);
                Ok(RepeatResult {
                    times: None,
                    control: None,
                    count: reader_condition.count,
                    wall_ns,
                    cpu_ns,
                })
            })?;
            gathered.add(trial, &control_result);
        }
    }
    for ((readers, case), gathered) in selected_cases.iter().zip(&repeats_by_case) {
        let method = format!(
            "time of the writer, alone on its core, for messages of {} bytes in frames of {}, one append each, \
             while {readers} readers in one process on the other core each read the whole tape; {}; with readers \
             and without in turn",
            payload_of(LINES),
            frame_bytes(LINES),
            reader_condition.text
        );
        let description =
            |_: &_| RecordDescription { case, bytes: frame_bytes(LINES), method: method.clone() };
        for record in gathered.records_against(Some(&baseline), description) {
            let condition = Some(reader_condition.condition.to_owned());
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
