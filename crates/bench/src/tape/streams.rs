//! `one-way`: a burst into memory that is ready. `sustained`: full rate for a time, with the disk in the loop.

use super::check::{TapeHashes, read_back};
use super::control::{RecordDescription, RepeatResult, RepeatsByDistance};
use super::{BackingBench, LINES, RecordSink, frame_bytes, moved, spawn};
use crate::error::Error;
use crate::record::{BenchRecord, cpu_ns, rounded};
use std::time::Duration;
use unitape_tape::measure::disk;
use unitape_tape::twin::measure::{StreamMeasurement, one_way, payload_of, sustained};
use unitape_tape::{Backing, HelperThreadAffinity, RetentionLimits, SyncPolicy, WriterOptions};

/// The bytes at the tape's end that `sustained` keeps, so that the disk does not fill.
const RETAIN_BYTES: u64 = 2 << 30;

/// Room for a burst in one segment.
const BURST_SEGMENT_BYTES: u64 = 128 << 20;

/// Runs the selected cases.
pub fn run(bench: &mut BackingBench<'_>, out: RecordSink<'_>) -> Result<(), Error> {
    if bench.wants("one-way") {
        burst(bench, out)?;
    }
    if bench.wants("sustained") {
        at_full_rate(bench, out)?;
    }
    Ok(())
}

fn burst(bench: &mut BackingBench<'_>, out: RecordSink<'_>) -> Result<(), Error> {
    let context = bench.context;
    let count = context.pick(20_000, 900_000);
    // All of it fits into the first segment: nothing is made on the way.
    let segment_bytes = bench.options.segment_bytes.max(BURST_SEGMENT_BYTES);
    let options = WriterOptions { segment_bytes, prefault_bytes: segment_bytes, ..bench.options.clone() };
    let mut variants = vec![("helpers in turn with all", options.clone(), RepeatsByDistance::default())];
    if options.helpers.nice_value.is_none() {
        let helpers = HelperThreadAffinity { nice_value: Some(19), ..options.helpers.clone() };
        variants.push((
            "helpers wait (nice 19)",
            WriterOptions { helpers, ..options },
            RepeatsByDistance::default(),
        ));
    }
    let mut hashes = None;
    for _ in 0..context.repeats(7) {
        for (_, options, gathered) in &mut variants {
            let (trial, control_result) = bench.control.run_with_control(|| {
                let scratch_dir = context.fresh("one-way")?;
                let cpu = cpu_ns();
                let measurement = one_way(scratch_dir.path(), options, LINES, count, &spawn(context))?;
                let cpu_ns = cpu_ns() - cpu;
                hashes = Some(read_back(&scratch_dir.path().join("one-way"), LINES, count, false)?);
                Ok(RepeatResult { times: None, control: None, count, wall_ns: measurement.read_ns, cpu_ns })
            })?;
            gathered.add(trial, &control_result);
        }
    }
    let method = format!(
        "a burst of {} MB: messages of {} bytes in frames of {}, one append each, on a {} tape to one reader in \
         another pinned process that reads every word; until the last is read; the writer's memory faulted in \
         before; processor time with opening and closing",
        count * frame_bytes(LINES) / 1_000_000,
        payload_of(LINES),
        frame_bytes(LINES),
        bench.backing
    );
    for (condition, _, gathered) in variants {
        for record in gathered.records(|_| RecordDescription {
            case: "one-way",
            bytes: frame_bytes(LINES),
            method: method.clone(),
        }) {
            let condition = Some(condition.to_owned());
            out(moved(BenchRecord { condition, ..record }, LINES, hashes.as_ref()))?;
        }
    }
    Ok(())
}

fn at_full_rate(bench: &mut BackingBench<'_>, out: RecordSink<'_>) -> Result<(), Error> {
    let context = bench.context;
    let time = Duration::from_secs(context.options.seconds);
    let mut options = WriterOptions {
        sync_policy: SyncPolicy::Every { bytes: disk::FLUSH_BYTES, interval: Duration::from_millis(100) },
        recorder_wait: Duration::from_secs(60),
        ..bench.options.clone()
    };
    let mut retain = RETAIN_BYTES;
    if context.options.quick {
        // Room for two such tapes is all that the tests of a small machine have.
        retain = 64 << 20;
        options.segment_bytes = 8 << 20;
        if let Backing::Hot { window_segments, .. } = &mut options.backing {
            *window_segments = 8;
        }
    }
    options.retention = RetentionLimits { bytes: Some(retain), ..RetentionLimits::default() };
    let part = if context.options.quick { Duration::from_millis(200) } else { time / 6 };
    let mut disk_rates = Vec::new();
    let mut stream_outcome: Option<(StreamMeasurement, TapeHashes)> = None;
    let (trial, control_result) = bench.control.run_with_control(|| {
        let scratch_dir = context.fresh("sustained")?;
        disk_rates.clear();
        disk_rates.push(disk::mb_per_s(scratch_dir.path(), retain, part)?);
        let cpu = cpu_ns();
        let measurement = sustained(scratch_dir.path(), &options, LINES, time, retain / 2, &spawn(context))?;
        let cpu_ns = cpu_ns() - cpu;
        let hashes = read_back(&scratch_dir.path().join("one-way"), LINES, measurement.frames, true)?;
        disk_rates.push(disk::mb_per_s(scratch_dir.path(), retain, part)?);
        stream_outcome = Some((measurement, hashes));
        // Until it is on the disk, or the last segments would be free.
        Ok(RepeatResult {
            times: None,
            control: None,
            count: measurement.frames,
            wall_ns: measurement.closed_ns,
            cpu_ns,
        })
    })?;
    let mut gathered = RepeatsByDistance::default();
    gathered.add(trial, &control_result);
    let disk_mb_per_s = disk_rates.iter().sum::<f64>() / disk_rates.len().max(1) as f64;
    let on_disk = context.medium != "tmpfs";
    let against = if on_disk {
        format!(
            "against {:.1} s before and after of the disk alone, written by pwrite of 4 MiB, through the page \
             cache or around it, whichever is faster, and fdatasync every {} MiB",
            part.as_secs_f64(),
            disk::FLUSH_BYTES >> 20
        )
    } else {
        "no disk measured, the files are in memory: give --dir on a disk".to_owned()
    };
    let method = format!(
        "{} s at full rate: messages of {} bytes in frames of {}, one append each, on a {} tape to one reader in \
         another pinned process that reads every word; segments made on the way, {} GiB of the tape's end kept, \
         the sender waits if the reader is half of that behind, \
         made durable every {} MiB or 100 ms; until all is read and durable; {against}",
        time.as_secs(),
        payload_of(LINES),
        frame_bytes(LINES),
        bench.backing,
        rounded(retain as f64 / (1 << 30) as f64),
        disk::FLUSH_BYTES >> 20
    );
    let hashes = stream_outcome.map(|(_, hashes)| hashes);
    for record in gathered.records(|_| RecordDescription {
        case: "sustained",
        bytes: frame_bytes(LINES),
        method: method.clone(),
    }) {
        let ratio_to_disk = on_disk.then(|| rounded(record.mb_per_s / disk_mb_per_s.max(1e-9)));
        let disk_mb_per_s = on_disk.then(|| rounded(disk_mb_per_s));
        let medium = Some(context.medium.clone());
        out(moved(
            BenchRecord { place: medium, disk_mb_per_s, ratio_to_disk, ..record },
            LINES,
            hashes.as_ref(),
        ))?;
    }
    Ok(())
}
