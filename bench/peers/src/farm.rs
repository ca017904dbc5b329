//! Ordered parallel work with nothing in it: ours, `crossbeam-channel` with a reorder map, `rayon` chunks, oneTBB's
//! pipeline in a process of its own.
//!
//! The load is that of `unitape_ring::twin::measure`: blocks of 64 messages of 200 bytes, each message's length read,
//! blocks numbered in order, the sum of the numbers checked.

use crate::Asked;
use crate::apart::Worker;
use crate::messaging::pair::{fresh, shared_memory};
use crate::programs::cpp;
use crossbeam_channel::bounded;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::process::Command;
use unitape_bench::record::{BenchRecord, RepeatTimes, cpu_ns};
use unitape_ring::twin::measure::{FarmBenchConfig, measure};

const MESSAGE_BYTES: usize = 200;
const PER_BLOCK: u64 = 64;
const WORKERS: usize = 2;

/// How the subjects are asked for.
pub const IDS: [&str; 4] = ["unitape", "crossbeam", "rayon", "tbb"];

/// Runs the case.
pub fn run(asked: &Asked) -> Result<Vec<BenchRecord>, String> {
    let messages = if asked.quick { 20_000 } else { 20_000_000 };
    let blocks = messages / PER_BLOCK;
    let messages = blocks * PER_BLOCK;
    let arena = arena();
    let load = FarmBenchConfig::empty(WORKERS, messages);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(WORKERS).build().map_err(|e| e.to_string())?;
    let mut pipeline = asked.had("tbb", || {
        let mut command = Command::new(cpp("tbb", "tbb", "libtbb-dev")?);
        command.args([WORKERS as u64, blocks, BLOCKS_AT_ONCE as u64].map(|number| number.to_string()));
        Worker::start(command)
    });
    if let Some(worker) = &mut pipeline {
        // It warms up as ours does.
        let (found, _) = worker.values(fresh(&shared_memory())?.path())?;
        check(worker.name(), found.sum, messages)?;
    }
    let mut times: [RepeatTimes; 4] = Default::default();
    let [ours, crossbeam, rayon, tbb] = &mut times;
    for _ in 0..asked.repeats {
        if asked.takes("unitape") {
            let before = cpu_ns();
            let runs = measure(&load, 1).map_err(|e| e.to_string())?;
            // One run warms up.
            let cpu = (cpu_ns() - before) / 2;
            ours.add(runs[0].elapsed.as_nanos() as u64, cpu);
        }
        if asked.takes("crossbeam") {
            check("crossbeam", crossbeam.time(|| channels(&arena, blocks)), messages)?;
        }
        if asked.takes("rayon") {
            check("rayon", rayon.time(|| pool.install(|| chunks(&arena, blocks))), messages)?;
        }
        if let Some(worker) = &mut pipeline {
            let found = worker.pass(tbb)?;
            check(worker.name(), found.sum, messages)?;
        }
    }
    let record = |(repeats, (subject, how)): (&RepeatTimes, (&str, &str))| {
        let bytes = messages * MESSAGE_BYTES as u64;
        let method =
            format!("200-byte messages, 64 to a block, each one's length read, {WORKERS} workers; {how}");
        let record = repeats.record("farm", "empty", messages, bytes, method);
        BenchRecord { subject: subject.to_owned(), threads: WORKERS as u32, ..record }
    };
    let pipeline = pipeline.as_ref().map_or("", |worker| worker.name());
    let subjects = [
        ("unitape", "blocks claimed and numbered in order by the workers themselves"),
        (
            "crossbeam-channel 0.5",
            "one thread sends blocks through a bounded channel, one puts what comes back in order with a map",
        ),
        ("rayon 1", "parallel map over all blocks, collected in order, then numbered"),
        (
            pipeline,
            "in a process of its own, by its clock; parallel_pipeline with 64 blocks at once, claimed in a filter that is \
             serial_in_order, walked in a parallel one, numbered in a third that is serial_in_order",
        ),
    ];
    Ok(times.iter().zip(subjects).filter(|(repeats, _)| !repeats.is_empty()).map(record).collect())
}

/// As many as the channels hold.
const BLOCKS_AT_ONCE: usize = 64;

fn check(who: &str, sum: u64, messages: u64) -> Result<(), String> {
    let n = u128::from(messages);
    let expected = (n * n.saturating_sub(1) / 2) as u64;
    if sum == expected { Ok(()) } else { Err(format!("farm empty: {who}: sum {sum}, not {expected}")) }
}

fn arena() -> Vec<u8> {
    let mut arena = vec![0; PER_BLOCK as usize * MESSAGE_BYTES];
    for message in arena.chunks_exact_mut(MESSAGE_BYTES) {
        message[..8].copy_from_slice(&(MESSAGE_BYTES as u64).to_le_bytes());
    }
    arena
}

/// Walks a block by its lengths; gives how many messages it has.
fn walk(arena: &[u8]) -> u64 {
    let (mut at, mut messages) = (0, 0);
    while let Some(length) = arena.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes) {
        at += std::hint::black_box(length) as usize;
        messages += 1;
    }
    messages
}

/// Numbers the messages of the next block; gives the sum of the numbers.
fn number(next: &mut u64, messages: u64) -> u64 {
    let first = *next;
    *next += messages;
    first.wrapping_mul(messages).wrapping_add(messages * (messages - 1) / 2)
}

fn channels(arena: &[u8], blocks: u64) -> u64 {
    let (to_workers, work) = bounded::<u64>(BLOCKS_AT_ONCE);
    let (to_order, done) = bounded::<(u64, u64)>(BLOCKS_AT_ONCE);
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            let (work, to_order) = (work.clone(), to_order.clone());
            scope.spawn(move || {
                for block in work {
                    if to_order.send((block, walk(arena))).is_err() {
                        return;
                    }
                }
            });
        }
        drop((work, to_order));
        let order = scope.spawn(move || {
            let (mut waiting, mut turn, mut next, mut sum) = (BTreeMap::new(), 0, 0, 0u64);
            for (block, messages) in done {
                waiting.insert(block, messages);
                while let Some(messages) = waiting.remove(&turn) {
                    sum = sum.wrapping_add(number(&mut next, messages));
                    turn += 1;
                }
            }
            sum
        });
        for block in 0..blocks {
            if to_workers.send(block).is_err() {
                break;
            }
        }
        drop(to_workers);
        order.join().unwrap_or(0)
    })
}

fn chunks(arena: &[u8], blocks: u64) -> u64 {
    let counts: Vec<u64> = (0..blocks).into_par_iter().map(|_| walk(arena)).collect();
    let mut next = 0;
    counts.into_iter().fold(0, |sum, messages| sum.wrapping_add(number(&mut next, messages)))
}
