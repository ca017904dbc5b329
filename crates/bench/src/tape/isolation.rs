//! `isolation`: a trading path beside reports that stall, crash, and scan the day.

use super::bench_process::BenchProcess;
use super::check::read_back;
use super::control::{RecordDescription, RepeatResult, RepeatsByDistance};
use super::stopped_recorder::cores;
use super::{BackingBench, LINES, RecordSink, frame_bytes, from_due_time, moved};
use crate::context::BenchContext;
use crate::error::Error;
use crate::record::{BenchRecord, LatencyHistogram, cpu_ns, histogram, note};
use std::time::Instant;
use unitape_tape::measure::pin;
use unitape_tape::twin::measure::{BenchFrameGenerator, payload_of, wait_for_helpers};
use unitape_tape::{Reader, StartPosition, TapeId, Writer, WriterOptions};

/// Messages a second on the trading path.
const RATE: u64 = 200_000;

/// Reports on the other core.
const REPORTS: &str = "3";

const CONDITIONS: [(&str, &str); 5] = [
    ("alone", "nothing beside it"),
    ("tail", "beside it 3 reports that follow the tape"),
    ("stall", "beside it 3 reports that follow the tape and are stopped half of the time"),
    ("crash", "beside it 3 reports that follow the tape and are killed and started again all the time"),
    ("scan", "beside it 3 reports that scan the whole day again and again"),
];

/// Runs the case if it is selected.
pub fn run(bench: &mut BackingBench<'_>, out: RecordSink<'_>) -> Result<(), Error> {
    if !bench.wants("isolation") {
        return Ok(());
    }
    let context = bench.context;
    let (day, count) = (context.pick(10_000, 2_000_000), context.pick(20_000, 2 * RATE));
    let mut options = bench.options.clone();
    if options.helpers.cpus.is_empty() && context.options.tune.pin && cores() > 1 {
        options.helpers.cpus = vec![1];
    }
    let mut repeats_by_condition: Vec<RepeatsByDistance> =
        CONDITIONS.iter().map(|_| RepeatsByDistance::default()).collect();
    let mut hashes = None;
    for _ in 0..context.repeats(3) {
        for ((condition, _), gathered) in CONDITIONS.iter().zip(&mut repeats_by_condition) {
            let (trial, control_result) = bench.control.run_with_control(|| {
                let scratch_dir = context.fresh("isolation")?;
                let tape = scratch_dir.path().join("tape");
                let name = tape.to_str().ok_or_else(|| Error::Failed("--dir: not UTF-8".to_owned()))?;
                let mut trading = SingleCoreTrading::open(&tape, &options, day)?;
                let reports = reports(context, condition, name)?;
                wait_for_helpers(&options);
                pin(0);
                let cpu = cpu_ns();
                let (wall_ns, times) = trading.run(count)?;
                let cpu_ns = cpu_ns() - cpu;
                if let Some(reports) = reports {
                    happened(condition, &reports.end()?)?;
                }
                trading.writer.close()?;
                hashes = Some(read_back(&tape, LINES, day + count, false)?);
                Ok(RepeatResult { times: Some(times), control: None, count, wall_ns, cpu_ns })
            })?;
            gathered.add(trial, &control_result);
        }
    }
    for (i, (condition, condition_text)) in CONDITIONS.iter().enumerate() {
        let method = format!(
            "{RATE} messages of {} bytes a second from append until seen by a reader on the same core, from due \
             time, behind a day of {day}; {condition_text}, on the other core with the helper threads",
            payload_of(LINES)
        );
        let description = |_: &_| RecordDescription {
            case: "isolation",
            bytes: frame_bytes(LINES),
            method: method.clone(),
        };
        let baseline = (i > 0).then_some(&repeats_by_condition[0]);
        for record in repeats_by_condition[i].records_against(baseline, description) {
            let condition = Some((*condition).to_owned());
            let record = from_due_time(record);
            out(moved(BenchRecord { condition, rate_per_s: Some(RATE), ..record }, LINES, hashes.as_ref()))?;
        }
    }
    Ok(())
}

fn reports(context: &BenchContext, condition: &str, tape: &str) -> Result<Option<BenchProcess>, Error> {
    match condition {
        "alone" => Ok(None),
        mode => BenchProcess::start(context, &["reports", mode, tape, REPORTS]).map(Some),
    }
}

/// Fails unless the condition occurred, because otherwise the measurement shows nothing.
fn happened(condition: &str, reply: &str) -> Result<(), Error> {
    match reply.strip_prefix("happened ").and_then(|n| n.parse::<u64>().ok()) {
        Some(n) if n > 0 || condition == "tail" => Ok(()),
        _ => Err(Error::Failed(format!("tape isolation {condition}: the reports said {reply:?}"))),
    }
}

/// Writer and trading reader on one core.
struct SingleCoreTrading {
    writer: Writer,
    reader: Reader,
    messages: BenchFrameGenerator,
    read_count: u64,
}

impl SingleCoreTrading {
    /// Opens the tape, with the day so far written and read.
    fn open(tape: &std::path::Path, options: &WriterOptions, day: u64) -> Result<Self, Error> {
        let (writer, _) = Writer::open(tape, TapeId(1), options.clone())?;
        let reader = Reader::open(tape, StartPosition::Oldest)?;
        let mut this = Self { writer, reader, messages: BenchFrameGenerator::new(LINES), read_count: 0 };
        for _ in 0..day {
            this.writer.append(this.messages.next())?;
            this.read()?;
        }
        Ok(this)
    }

    /// Reads the message appended last.
    fn read(&mut self) -> Result<(), Error> {
        loop {
            match self.reader.next()? {
                Some(frame) if BenchFrameGenerator::number(frame.bytes) == self.read_count => break,
                Some(_) => {
                    let message = format!("the trading reader did not find message {}", self.read_count);
                    return Err(Error::Failed(message));
                }
                None => std::hint::spin_loop(),
            }
        }
        self.read_count += 1;
        Ok(())
    }

    fn run(&mut self, count: u64) -> Result<(u64, LatencyHistogram), Error> {
        let mut times = histogram();
        let every = 1_000_000_000 / RATE;
        let since = Instant::now();
        for i in 0..count {
            let due = i * every;
            while (since.elapsed().as_nanos() as u64) < due {
                std::hint::spin_loop();
            }
            self.writer.append(self.messages.next())?;
            self.read()?;
            note(&mut times, since.elapsed().as_nanos() as u64 - due);
        }
        Ok((since.elapsed().as_nanos() as u64, times))
    }
}
