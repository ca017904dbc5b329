//! `bench tape`: the tape as messaging, between pinned processes and beside the raw control.
//!
//! Messages have 100 bytes and frames two lines, unless the case says otherwise. Every case runs on a hot tape and on a
//! tape of files, each repeat between two controls ([`control`]).

mod bench_process;
mod check;
mod control;
mod isolation;
mod readers;
mod stopped_recorder;
mod streams;
mod trips;
mod tune;

pub use tune::TapeTuning;

use crate::context::BenchContext;
use crate::error::Error;
use crate::record::BenchRecord;
use check::TapeHashes;
use control::ControlMeasurement;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::process::{Command, Stdio};
use unitape_tape::twin::measure::payload_of;
use unitape_tape::{Backing, WriterOptions};

/// The cases, in the order in which they run.
pub const CASES: [&str; 12] = [
    "raw",
    "rtt",
    "rtt-64",
    "rtt-rate",
    "rtt-load",
    "one-way",
    "sustained",
    "recorder-behind",
    "readers1",
    "readers4",
    "readers20",
    "isolation",
];

/// Lines of the frame of a message of 100 bytes.
const LINES: u16 = 2;

type RecordSink<'a> = &'a mut dyn FnMut(BenchRecord) -> Result<(), Error>;

/// Runs the cases.
pub fn run(context: &BenchContext, out: RecordSink<'_>) -> Result<(), Error> {
    let hot =
        WriterOptions { backing: Backing::Hot { dir: None, window_segments: 8 }, ..WriterOptions::default() };
    unitape_tape::measure::set_pinning(context.options.tune.pin);
    for (backing, options) in [("hot", hot), ("file", WriterOptions::default())] {
        let mut bench = BackingBench {
            context,
            backing,
            options: context.options.tune.apply(&options),
            control: ControlMeasurement::new(context),
        };
        let out: RecordSink<'_> = &mut |record: BenchRecord| {
            let tuned = context.options.tune.description();
            let medium = record.place.clone().unwrap_or_else(|| context.place_of(backing));
            out(BenchRecord { backing: Some(backing.to_owned()), place: Some(medium), tuned, ..record })
        };
        trips::run(&mut bench, out)?;
        streams::run(&mut bench, out)?;
        stopped_recorder::run(&mut bench, out)?;
        readers::run(&mut bench, out)?;
        isolation::run(&mut bench, out)?;
        if context.wants("tape", "raw") {
            for record in bench.control.records()? {
                out(BenchRecord { place: Some("tmpfs".to_owned()), ..record })?;
            }
        }
    }
    Ok(())
}

/// One backing with its control.
struct BackingBench<'a> {
    context: &'a BenchContext,
    backing: &'static str,
    options: WriterOptions,
    control: ControlMeasurement<'a>,
}

impl BackingBench<'_> {
    fn wants(&self, case: &str) -> bool {
        self.context.wants("tape", case)
    }
}

/// Adds the number of moved bytes and their hash to the record.
fn moved(record: BenchRecord, lines: u16, hashes: Option<&TapeHashes>) -> BenchRecord {
    BenchRecord {
        payload_bytes: Some(payload_of(lines) as u64),
        input_sha256: hashes.map(|h| h.input.clone()),
        output_sha256: hashes.map(|h| h.output.clone()),
        ..record
    }
}

/// Takes out the ratios to the control, whose trips are back to back: it compares with nothing that is measured from due
/// time.
fn from_due_time(record: BenchRecord) -> BenchRecord {
    BenchRecord {
        raw_p50_ns: None,
        raw_p9999_ns: None,
        ratio_to_raw: None,
        ratio_p9999_to_raw: None,
        ..record
    }
}

/// Returns the number of bytes of a frame.
fn frame_bytes(lines: u16) -> u64 {
    u64::from(lines) * unitape_model::LINE as u64
}

/// Where this thread may run, and will again when this is dropped: the measurements pin it, and threads that it
/// starts afterwards would share its core.
struct AffinityGuard(CpuSet);

impl AffinityGuard {
    fn keep() -> Result<Self, Error> {
        Ok(Self(sched_getaffinity(None)?))
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        // It was allowed there before; if that has just changed, staying pinned is all that can be done.
        _ = sched_setaffinity(None, &self.0);
    }
}

/// Runs the second process of a measurement.
pub fn peer(unpinned: bool, arguments: &[String]) -> Result<(), Error> {
    unitape_tape::measure::set_pinning(!unpinned);
    if let Some(result) = bench_process::role(arguments) {
        return result;
    }
    unitape_tape::twin::measure::peer(arguments)?;
    Ok(())
}

/// Makes the command that runs [`peer`].
fn spawn(context: &BenchContext) -> impl Fn(&[String]) -> Command {
    let pinned = context.options.tune.pin;
    move |arguments| {
        // This binary exists, it runs.
        let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "unitape".into()));
        command.arg("bench-peer");
        if !pinned {
            command.arg("--unpinned");
        }
        command.arg("--").args(arguments).stdin(Stdio::null());
        command
    }
}
