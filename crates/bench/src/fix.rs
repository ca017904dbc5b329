//! `bench fix`: messages to typed values, and orders to the tape.

use crate::context::BenchContext;
use crate::error::Error;
use crate::passes::{fast_pass, slow_pass};
use crate::record::{BenchRecord, HexSha256, RepeatTimes, cpu_ns, rounded, sha256};
use crate::scaling::{ScalingModel, threads_ns};
use std::fs;
use std::path::Path;
use unitape_codec::fix::MessageTokenizer;
use unitape_codec::twin::fix::sample::sample_orders;
use unitape_feed::{ConsolidateOptions, FileFeed, Format, Mapping, consolidate};

/// Runs the cases.
pub fn run(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    if context.wants("fix", "orders") {
        out(typed(context, "orders", &orders(context))?)?;
    }
    if context.wants("fix", "jse") {
        out(typed(context, "jse", &jse(context))?)?;
    }
    if context.wants("fix", "orders-to-tape") {
        to_tape(context)?.into_iter().try_for_each(out)?;
    }
    Ok(())
}

/// Makes the fixed set of sample orders.
pub fn orders(context: &BenchContext) -> Vec<u8> {
    sample_orders(context.pick(2_000, 1_000_000) as usize, 42)
}

/// Repeats the real file to about as many messages.
pub fn jse(context: &BenchContext) -> Vec<u8> {
    static FILE: &[u8] = include_bytes!("../../../vectors/fix/jse/jse_fix50_marketdata_head80.fix");
    FILE.repeat(context.pick(1, 1 + 1_000_000 / JSE_MESSAGES) as usize)
}

/// Messages of the real file.
const JSE_MESSAGES: u64 = 11_110;

fn typed(context: &BenchContext, case: &str, input: &[u8]) -> Result<BenchRecord, Error> {
    let mut tokens = MessageTokenizer::new();
    // The slow twin defines the correct values. The fast path must give the same hash before it is timed.
    let (mut slow, mut fast) = (HexSha256::default(), HexSha256::default());
    let expected = slow_pass(input, |typed| slow.add(&typed.bytes()));
    let fast_result = fast_pass(&mut tokens, input, |typed| fast.add(&typed.bytes()));
    let (slow, fast) = (slow.hex(), fast.hex());
    if (expected, &slow) != (fast_result, &fast) {
        return Err(Error::Failed(format!("fix {case}: fast path {fast_result:?}, slow twin {expected:?}")));
    }
    let mut repeats = RepeatTimes::default();
    for _ in 0..context.repeats(5) {
        let repeat_result = repeats.time(|| fast_pass(&mut tokens, input, |_| {}));
        if repeat_result != expected {
            return Err(Error::Failed(format!(
                "fix {case}: {repeat_result:?} in a repeat, {expected:?} before"
            )));
        }
    }
    let method = format!(
        "frame, checksum, all fields, the group checked against its count, up to ten typed values and those of each \
         entry of each of {} messages from memory; {} faults; values hashed beforehand and equal to the slow twin's",
        expected.messages, expected.faults
    );
    let record = repeats.record("fix", case, expected.messages, input.len() as u64, method);
    Ok(BenchRecord { input_sha256: Some(sha256(input)), output_sha256: Some(fast), ..record })
}

/// Measures the whole way: a file in the page cache becomes a tape in a new directory.
fn to_tape(context: &BenchContext) -> Result<Vec<BenchRecord>, Error> {
    let scratch_dir = context.fresh("orders-to-tape")?;
    let input = orders(context);
    let count = context.pick(2_000, 1_000_000);
    let (file, input_sha256, input_bytes) =
        (scratch_dir.path().join("orders.fix"), sha256(&input), input.len());
    fs::write(&file, &input)?;
    drop(input);
    let mut runs = WORKERS.map(|workers| FixWorkerRun { workers, ..FixWorkerRun::default() });
    let mut expected = None;
    // The first round warms up: page cache, memory, name tables.
    for round in 0..=context.repeats(5) {
        for run in &mut runs {
            let workers = run.workers;
            let tape = scratch_dir.path().join("tape");
            let options = options(&file, workers)?;
            let mut throw_away = RepeatTimes::default();
            let times = if round == 0 { &mut throw_away } else { &mut run.times };
            let outcome = times.time(|| consolidate(&tape, options))?;
            let s = &outcome.summary;
            if (s.messages, s.events, s.quarantined) != (count, count, 0) {
                let message =
                    format!("{} messages, {} events, {} refused", s.messages, s.events, s.quarantined);
                return Err(Error::Failed(format!("fix orders-to-tape: {message}, not {count}, {count}, 0")));
            }
            if round > 0 {
                run.intake_ns += outcome.turns.intake_ns;
                run.sequence_ns += outcome.turns.sequence_ns;
                run.farm_ns += outcome.turns.farm_ns;
            }
            run.tape_bytes = tape_end(&tape)?;
            let hash = tape_hash(&tape)?;
            if *expected.get_or_insert_with(|| hash.clone()) != hash {
                let message = "fix orders-to-tape: the tapes of two runs differ".to_owned();
                return Err(Error::Failed(message));
            }
            fs::remove_dir_all(&tape)?;
        }
    }
    let model = model(&runs[0], &file, &scratch_dir.path().join("tape"), (count, input_bytes as u64))?;
    let record = |run: &FixWorkerRun| {
        let method = format!(
            "file in the page cache to a closed tape in a fresh directory: hash, frame, checksum, fields, map to \
             order_new, names to ids, order, write, checksums; {} workers, {WORKERS:?} in turn; tape verified, its \
             bytes equal at each",
            run.workers
        );
        let record = run.times.record("fix", "orders-to-tape", count, input_bytes as u64, method);
        let turns = f64::from(record.repeats.max(1)) * count as f64;
        let (intake, sequence) = (run.intake_ns as f64 / turns, run.sequence_ns as f64 / turns);
        BenchRecord {
            threads: run.workers as u32,
            backing: Some("file".to_owned()),
            place: Some(context.medium.clone()),
            tape_bytes_per_op: Some(rounded(run.tape_bytes as f64 / count as f64)),
            intake_ns_per_op: Some(rounded(intake)),
            sequence_ns_per_op: Some(rounded(sequence)),
            serial_ns_per_op: Some(rounded(intake.max(sequence))),
            model: (run.workers == 1).then(|| model.clone()),
            input_sha256: Some(input_sha256.clone()),
            output_sha256: expected.clone(),
            ..record
        }
    };
    Ok(runs.iter().map(record).collect())
}

/// Numbers of workers, measured in turn.
const WORKERS: [usize; 3] = [1, 2, 4];

/// A number of workers and its result.
#[derive(Debug, Default)]
struct FixWorkerRun {
    workers: usize,
    times: RepeatTimes,
    intake_ns: u64,
    sequence_ns: u64,
    farm_ns: u64,
    tape_bytes: u64,
}

fn options(file: &Path, workers: usize) -> Result<ConsolidateOptions<'static>, Error> {
    let feed = FileFeed {
        name: "orders".to_owned(),
        format: Format::from_mapping(Mapping::parse(include_str!("orders.toml"), "orders.toml")?)?,
        files: vec![file.to_owned()],
    };
    Ok(ConsolidateOptions { feeds: vec![feed], workers, ..ConsolidateOptions::default() })
}

/// Predicts the time with many workers from the repeats of one worker. Runs one more repeat that observes all threads.
fn model(
    run: &FixWorkerRun,
    file: &Path,
    tape: &Path,
    (count, bytes): (u64, u64),
) -> Result<ScalingModel, Error> {
    let options = options(file, run.workers)?;
    let cpu = cpu_ns();
    let (outcome, by_name) = threads_ns(|| consolidate(tape, options));
    let cpu = (cpu_ns() - cpu) as f64;
    outcome?;
    fs::remove_dir_all(tape)?;
    let thread_ns = |name: &str| by_name.get(name).copied().unwrap_or(0) as f64;
    let helpers = ["tape-prealloc", "tape-recorder", "tape-copier"].map(thread_ns);
    let per_op = |ns: f64| rounded(ns / count as f64);
    let each = |ns: u64| per_op(ns as f64 / run.times.len().max(1) as f64);
    let tape_bytes = run.tape_bytes as f64;
    let fixed = (run.times.median_ns() - run.farm_ns as f64 / run.times.len().max(1) as f64).max(0.0);
    let model = ScalingModel {
        fixed_ns: per_op(fixed),
        workers_ns: per_op((cpu - helpers.iter().sum::<f64>() - fixed).max(0.0)),
        intake_ns: each(run.intake_ns),
        sequence_ns: each(run.sequence_ns),
        keeper_ns: per_op(helpers[0]),
        recorder_ns: per_op(helpers[1]),
        sums_ns: per_op(helpers[2]),
        bytes_moved: per_op(2.0 * bytes as f64 + 3.0 * tape_bytes),
        cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        ..ScalingModel::default()
    };
    Ok(model.concluded())
}

/// Returns the number of bytes of a closed tape.
fn tape_end(dir: &Path) -> Result<u64, Error> {
    Ok(unitape_tape::Reader::open(dir, unitape_tape::StartPosition::End)?.position().0)
}

/// Computes the SHA-256 of the segments and the dictionary log of a tape. Fails if the tape does not verify.
pub fn tape_hash(dir: &Path) -> Result<String, Error> {
    let report = unitape_tape::verify(dir)?;
    if let Some(p) = report.problems.first() {
        return Err(Error::Failed(format!("{} at {}: {}", p.file_path.display(), p.offset, p.problem)));
    }
    let mut files = fs::read_dir(dir.join("segments"))?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<Vec<_>, _>>()?;
    files.sort();
    files.push(dir.join("definitions.log"));
    let mut hash = HexSha256::default();
    for file in files {
        hash.add(&fs::read(file)?);
    }
    Ok(hash.hex())
}
