//! `bench farm`: the cost of the ordered farm without work.

use crate::context::BenchContext;
use crate::error::Error;
use crate::record::{BenchRecord, InstructionMarks, RepeatTimes, cpu_ns, mark};
use unitape_ring::twin::measure::{FarmBenchConfig, measure};

/// Runs the cases.
pub fn run(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    if !context.wants("farm", "empty") {
        return Ok(());
    }
    let messages = context.pick(20_000, 20_000_000);
    for threads in [1, 2] {
        for per_block in [1, 64, 327] {
            let load = FarmBenchConfig::empty(threads, messages / if per_block == 1 { 10 } else { 1 });
            let load = FarmBenchConfig { block_bytes: per_block * load.message_bytes, ..load };
            let from = mark();
            let (before, mut repeats) = (cpu_ns(), RepeatTimes::default());
            let runs = measure(&load, context.repeats(5))?;
            mark();
            // One run more than is reported warms up.
            let cpu = (cpu_ns() - before) / (runs.len() as u64 + 1);
            for run in &runs {
                repeats.add(run.elapsed.as_nanos() as u64, cpu);
            }
            let method = format!(
                "200-byte messages, {per_block} to a block, each one's length read; blocks claimed and numbered in \
                 order; sum and count of the numbers checked by arithmetic"
            );
            let bytes = load.messages * load.message_bytes as u64;
            let case = match per_block {
                1 => "empty-batch1",
                64 => "empty",
                _ => "empty-64KiB",
            };
            let record = repeats.record("farm", case, load.messages, bytes, method);
            let marks = InstructionMarks { from, operations: load.messages * (runs.len() as u64 + 1) };
            out(BenchRecord { threads: threads as u32, marks: Some(marks), ..record })?;
        }
    }
    Ok(())
}
