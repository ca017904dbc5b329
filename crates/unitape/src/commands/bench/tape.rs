//! `bench tape`: round trips and one way between two pinned processes, beside the raw control.

use super::Context;
use super::record::{Hash, Latency, Record, Repeats, cpu_ns, rounded};
use crate::output::Failure;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use unitape_model::{Header, LINE, flags};
use unitape_tape::measure::{one_way, percentile, pin, raw_round_trips, round_trips};
use unitape_tape::{Backing, Options, Reader, Start, Sync, TapeId, Writer};

/// Readers of `readers20`.
const READERS: usize = 20;

/// Runs the cases.
pub fn run(context: &Context, out: &mut dyn FnMut(Record) -> Result<(), Failure>) -> Result<(), Failure> {
    let hot = Options { backing: Backing::Hot { dir: None, window_segments: 64 }, ..Options::default() };
    for (backing, options) in [("hot", hot), ("file", Options::default())] {
        round_trip(context, backing, &options, out)?;
        for case in ["one-way", "sustained"] {
            if context.wants("tape", case) {
                out(streamed(context, backing, &options, case)?)?;
            }
        }
        if context.wants("tape", "readers20") {
            out(readers(context, backing, &options)?)?;
        }
    }
    Ok(())
}

/// `raw`, `rtt` and `rtt-load`: the control before and after each repeat of the others.
fn round_trip(
    context: &Context,
    backing: &str,
    options: &Options,
    out: &mut dyn FnMut(Record) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let wanted: Vec<&str> =
        ["raw", "rtt", "rtt-load"].into_iter().filter(|case| context.wants("tape", case)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let count = context.pick(2_000, 200_000);
    let control_dir = if Path::new("/dev/shm").is_dir() { Path::new("/dev/shm") } else { &context.dir };
    // One line of 64 bytes, and two: 128 is the frame of an order, and the 100-byte messages of the peers.
    let durable = Sync::Every { bytes: 1 << 20, interval: Duration::from_millis(10) };
    let loaded = Options { sync: durable, ..options.clone() };
    let tapes: [(&str, &str, u16, &Options); 3] =
        [("rtt", "rtt", 2, options), ("rtt-64", "rtt", 1, options), ("rtt-load", "rtt-load", 2, &loaded)];
    let mut raw = Samples::default();
    let mut found: Vec<Samples> = tapes.iter().map(|_| Samples::default()).collect();
    let mut hash = vec![None; tapes.len()];
    for _ in 0..context.repeats(5) {
        let mut before = raw.add(|| raw_round_trips(control_dir, count, &spawn))?;
        for (i, (case, family, lines, options)) in tapes.iter().enumerate() {
            if !wanted.contains(family) {
                continue;
            }
            let place = context.fresh(case)?;
            let median = found[i].add(|| round_trips(place.path(), options, *lines, count, &spawn))?;
            let after = raw.add(|| raw_round_trips(control_dir, count, &spawn))?;
            found[i].controls.push((before + after, median));
            before = after;
            hash[i] = Some(read_back(&place.path().join("there"), count, usize::from(*lines) * LINE)?);
        }
    }
    if wanted.contains(&"raw") {
        let method = "a u64 there and back in shared memory between two pinned processes".to_owned();
        let record = raw.record("raw", count, 8, method);
        out(Record { backing: Some(backing.to_owned()), place: Some("tmpfs".to_owned()), ..record })?;
    }
    for (i, (case, family, lines, options)) in tapes.iter().enumerate() {
        if !wanted.contains(family) {
            continue;
        }
        let size = usize::from(*lines) * LINE;
        let flushed = match options.sync {
            Sync::OnClose => "",
            Sync::Every { .. } => "; the tape there made durable every 1 MiB or 10 ms all along",
        };
        let method = format!(
            "frames of {size} bytes there and back over two {backing} tapes between two pinned processes, every \
             word read; raw control before and after each repeat{flushed}; processor time with opening and closing"
        );
        let record = found[i].record(case, count, size as u64, method);
        out(Record {
            backing: Some(backing.to_owned()),
            place: Some(context.place_of(backing)),
            ratio_to_raw: Some(found[i].ratio()),
            input_sha256: hash[i].as_ref().map(|(input, _)| input.clone()),
            output_sha256: hash[i].as_ref().map(|(_, output)| output.clone()),
            ..record
        })?;
    }
    Ok(())
}

/// The times of round trips over all repeats.
#[derive(Default)]
struct Samples {
    repeats: Repeats,
    times: Vec<u64>,
    /// Twice the median of the control around a repeat, and the repeat's median.
    controls: Vec<(u64, u64)>,
}

impl Samples {
    /// Gives the median of the repeat.
    fn add(&mut self, measure: impl FnOnce() -> unitape_tape::Result<Vec<u64>>) -> Result<u64, Failure> {
        let free = Unpinned::keep()?;
        let before = cpu_ns();
        let times = measure()?;
        let cpu = cpu_ns() - before;
        drop(free);
        let median = percentile(&times, 0.5);
        self.repeats.add(times.iter().sum(), cpu);
        self.times.extend(times);
        Ok(median)
    }

    /// Median over the repeats of their ratio to the control.
    fn ratio(&self) -> f64 {
        let mut ratios: Vec<f64> =
            self.controls.iter().map(|(raw2, own)| 2.0 * *own as f64 / (*raw2).max(1) as f64).collect();
        ratios.sort_by(f64::total_cmp);
        rounded(ratios.get(ratios.len() / 2).copied().unwrap_or(0.0))
    }

    fn record(&mut self, case: &str, count: u64, bytes: u64, method: String) -> Record {
        self.times.sort_unstable();
        let record = self.repeats.record("tape", case, count, 2 * bytes * count, method);
        Record { threads: 2, latency: Some(Latency::of(&self.times)), ..record }
    }
}

/// `one-way` into memory that is ready, and `sustained` beyond it.
fn streamed(context: &Context, backing: &str, options: &Options, case: &str) -> Result<Record, Failure> {
    let sustained = case == "sustained";
    let count = context.pick(20_000, if sustained { 16_000_000 } else { 900_000 });
    let options = match sustained {
        true => options.clone(),
        false => Options { prefault_bytes: 64 << 20, ..options.clone() },
    };
    let mut repeats = Repeats::default();
    let mut hash = None;
    for _ in 0..context.repeats(5) {
        let place = context.fresh(case)?;
        let free = Unpinned::keep()?;
        let before = cpu_ns();
        let way = one_way(place.path(), &options, 1, count, &spawn)?;
        repeats.add(way.read_ns, cpu_ns() - before);
        drop(free);
        hash = Some(read_back(&place.path().join("one-way"), count, LINE)?);
    }
    let what = if sustained { "segments made on the way" } else { "memory faulted in before" };
    let method = format!(
        "{} MB of 64-byte frames, one append each, to one reader in another pinned process that reads every word; \
         until the last is read; {what}; processor time with opening and closing",
        count * LINE as u64 / 1_000_000
    );
    let record = repeats.record("tape", case, count, count * LINE as u64, method);
    let (input, output) = hash.unzip();
    Ok(Record {
        threads: 2,
        backing: Some(backing.to_owned()),
        place: Some(context.place_of(backing)),
        input_sha256: input,
        output_sha256: output,
        ..record
    })
}

/// The writer's rate with twenty readers of the tape, against the same with none.
fn readers(context: &Context, backing: &str, options: &Options) -> Result<Record, Failure> {
    let count = context.pick(20_000, 4_000_000);
    let mut with = Repeats::default();
    let mut alone = Repeats::default();
    let mut hash = None;
    for _ in 0..context.repeats(5) {
        for (readers, repeats) in [(0, &mut alone), (READERS, &mut with)] {
            let place = context.fresh("readers20")?;
            let tape = place.path().join("tape");
            let free = Unpinned::keep()?;
            let (mut writer, _) = Writer::open(&tape, TapeId(1), options.clone())?;
            let mut readers = Readers::start(&tape, readers, count)?;
            pin(0);
            let unit = frame(1);
            let (cpu, since) = (cpu_ns(), Instant::now());
            for _ in 0..count {
                writer.append(&unit)?;
            }
            repeats.add(since.elapsed().as_nanos() as u64, cpu_ns() - cpu);
            drop(free);
            readers.finish(count)?;
            writer.close()?;
            hash = Some(read_back(&tape, count, LINE)?);
        }
    }
    let method = format!(
        "time of the writer for frames of 64 bytes, one append each, while {READERS} readers in another pinned \
         process each read the whole tape; with readers and without in turn"
    );
    let bytes = count * LINE as u64;
    let record = with.record("tape", "readers20", count, bytes, method);
    let alone = alone.record("tape", "alone", count, bytes, String::new());
    let (input, output) = hash.unzip();
    Ok(Record {
        threads: 2,
        backing: Some(backing.to_owned()),
        place: Some(context.place_of(backing)),
        ratio_to_alone: Some(rounded(record.ns_per_op / alone.ns_per_op.max(1e-9))),
        input_sha256: input,
        output_sha256: output,
        ..record
    })
}

/// Where this thread may run, and will again when this is dropped: the measurements pin it, and threads that it
/// starts afterwards would share its core.
struct Unpinned(CpuSet);

impl Unpinned {
    fn keep() -> Result<Self, Failure> {
        Ok(Self(sched_getaffinity(None)?))
    }
}

impl Drop for Unpinned {
    fn drop(&mut self) {
        // It was allowed there before; if that has just changed, staying pinned is all that can be done.
        _ = sched_setaffinity(None, &self.0);
    }
}

/// The process of the readers; none when there are none.
struct Readers(Option<(std::process::Child, BufReader<std::process::ChildStdout>)>);

impl Readers {
    fn start(tape: &Path, readers: usize, count: u64) -> Result<Self, Failure> {
        if readers == 0 {
            return Ok(Self(None));
        }
        let tape = tape.to_str().ok_or_else(|| Failure::Error("--dir: not UTF-8".to_owned()))?;
        let arguments = ["readers".to_owned(), tape.to_owned(), readers.to_string(), count.to_string()];
        let mut child = spawn(&arguments).stdout(Stdio::piped()).spawn()?;
        let lines = child.stdout.take().map(BufReader::new);
        let lines = lines.ok_or_else(|| Failure::Error("the readers have no stdout".to_owned()))?;
        let mut this = Self(Some((child, lines)));
        this.expect("ready")?;
        Ok(this)
    }

    fn expect(&mut self, word: &str) -> Result<(), Failure> {
        let Some((_, lines)) = &mut self.0 else { return Ok(()) };
        let mut line = String::new();
        lines.read_line(&mut line)?;
        if line.trim_end() == word {
            return Ok(());
        }
        Err(Failure::Error(format!("tape readers20: the readers said {line:?} instead of {word:?}")))
    }

    /// Waits until every reader has seen every frame.
    fn finish(&mut self, count: u64) -> Result<(), Failure> {
        self.expect(&format!("read {count}"))
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.0 {
            // After a good end both do nothing; before it the process would wait for ever.
            _ = child.kill();
            _ = child.wait();
        }
    }
}

/// The second process: reads with so many readers until each has seen `count` frames.
pub fn peer(arguments: &[String]) -> crate::output::Result {
    if arguments.first().is_none_or(|a| a != "readers") {
        unitape_tape::measure::peer(arguments)?;
        return Ok(crate::output::Done::Clean);
    }
    let [_, tape, readers, count] = arguments else {
        return Err(Failure::Usage("readers TAPE N COUNT".to_owned()));
    };
    let number = |text: &String| text.parse::<u64>().map_err(|e| Failure::Usage(format!("{text}: {e}")));
    let (readers, count) = (number(readers)?, number(count)?);
    pin(1);
    let mut readers = (0..readers)
        .map(|_| Ok((Reader::open(Path::new(tape), Start::Oldest)?, 0, 0)))
        .collect::<Result<Vec<(Reader, u64, u64)>, Failure>>()?;
    let mut out = crate::output::stdout();
    writeln!(out, "ready").and_then(|()| out.flush())?;
    while readers.iter().any(|(_, seen, _)| *seen < count) {
        for (reader, seen, sum) in &mut readers {
            // Not more than a little in one go, so that all of them stay at the writer's heels.
            for _ in 0..1024 {
                let Some(frame) = reader.next()? else { break };
                *seen += 1;
                *sum = frame.bytes.iter().fold(*sum, |sum: u64, b| sum.wrapping_add(u64::from(*b)));
            }
        }
    }
    let first = readers.first().map(|(_, seen, sum)| (*seen, *sum));
    let same = readers.iter().all(|(_, seen, sum)| Some((*seen, *sum)) == first);
    let word = if same { format!("read {count}") } else { "readers differ".to_owned() };
    writeln!(out, "{word}").and_then(|()| out.flush())?;
    Ok(crate::output::Done::Clean)
}

/// The command that runs [`peer`].
fn spawn(arguments: &[String]) -> Command {
    // This binary exists, it runs.
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "unitape".into()));
    command.arg("bench-peer").arg("--").args(arguments).stdin(Stdio::null());
    command
}

fn frame(lines: u16) -> Vec<u8> {
    let mut unit = vec![0x5a; usize::from(lines) * LINE];
    Header::unstamped(20, flags::LAST, lines).write(&mut unit);
    unit
}

/// Reads the tape again, by the plain reader: all frames are there, each as it was written. Gives the hashes of
/// what should be there and of what is, both without the header words.
fn read_back(tape: &Path, count: u64, size: usize) -> Result<(String, String), Failure> {
    let mut reader = Reader::open(tape, Start::Oldest)?;
    let body = vec![0x5a; size - 8];
    let (mut input, mut output) = (Hash::default(), Hash::default());
    let mut seen = 0;
    while let Some(frame) = reader.next()? {
        output.add(&frame.bytes[8..]);
        input.add(&body);
        seen += 1;
    }
    let (input, output) = (input.hex(), output.hex());
    if seen != count || input != output {
        let what = format!("{}: {seen} frames of {count}, or not those written", tape.display());
        return Err(Failure::Error(what));
    }
    Ok((input, output))
}
