//! `unitape generate banks`: quotes of many banks, with their best prices.

use crate::output::{self, CommandFailure, CommandOutcome, file_failure, grouped, say};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use unitape_model::{Calendar, Decimal};
use unitape_sim::banks::{BankStream, BankStreamConfig, BestPriceConfig, BestPriceTruth, ValueDates};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape generate banks -o banks.jsonl
  unitape generate banks -o banks.jsonl --truth best.jsonl --size 1000000,5000000
  unitape generate banks -o banks.jsonl --truth best.jsonl --stale-ms 2000 --spike-pips 20 --spike-banks 4
  unitape generate banks --seed 7 --pairs 4 --banks 8 --tiers 3 --rate 500 --seconds 30 | head
  unitape generate banks -o banks.jsonl --truth best.jsonl --calendar examples/calendar.csv --json

Writes events as JSON lines: two-sided quotes in tiers, sweepable and full-amount, of banks, venues and banks at venues; status, withdrawals, forwards, deals, rejects, controls, and faults. The same options give the same bytes.

--truth writes a line for each pair, value date and size whose best price changed: ts, instr, value_date, size, state, bid, ask, bid_sweep, ask_sweep. The options of the truth do not change the events. The rules: docs/best-price-rules.md; what is in the stream: docs/generate-banks.md.")]
pub struct BanksArgs {
    /// File of events; `-` prints them, without a summary
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    /// The same seed makes the same events
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Currency pairs, up to 50
    #[arg(long, default_value_t = 50)]
    pairs: usize,
    /// Banks and venues that quote, up to 200
    #[arg(long, default_value_t = 20)]
    banks: usize,
    /// Tiers of a pair, up to 10
    #[arg(long, default_value_t = 5)]
    tiers: usize,
    /// How many events [default: 100000, without --seconds]
    #[arg(long)]
    events: Option<u64>,
    /// Stop after this many seconds of the stream's time
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seconds: Option<u64>,
    /// Events a second, about
    #[arg(long, default_value_t = 5_000)]
    rate: u32,
    /// Time of the start, nanoseconds since 1970 UTC
    #[arg(long, default_value_t = BankStreamConfig::default().start_ns)]
    start: u64,
    /// The best prices, one a line
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Sizes of best prices, more than one with commas
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "1000000,5000000",
        value_parser = parse_size,
        requires = "truth"
    )]
    size: Vec<Decimal>,
    /// Silence after which the quotes of a bank are withdrawn; 0 is never
    #[arg(long, default_value_t = 5_000, requires = "truth")]
    stale_ms: u32,
    /// Distance from the median of other banks beyond which a quote is a spike; 0 is no check
    #[arg(long, default_value_t = 50, requires = "truth")]
    spike_pips: u32,
    /// The least number of other banks for that median
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..), requires = "truth")]
    spike_banks: u32,
    /// Calendar of spot dates and holidays
    #[arg(long, value_name = "FILE", requires = "truth")]
    calendar: Option<PathBuf>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

fn parse_size(text: &str) -> Result<Decimal, String> {
    let size = Decimal::parse(text.as_bytes()).ok().filter(|size| size.mantissa() > 0);
    size.ok_or_else(|| "a size is a number above 0".to_owned())
}

/// Runs the command.
pub fn run(args: BanksArgs) -> output::Result {
    let stream = BankStream::new(stream_config(&args))?;
    refuse_one_file(&args)?;
    let truth = args.truth.as_deref().map(|path| TruthFile::create(path, &args)).transpose()?;
    let mut run = BankRun { stream, truth, stop_flag: output::stop_flag()? };
    let (events, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    if args.out == Path::new("-") {
        let mut out = output::stdout();
        while let Some(line) = run.next_line()? {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        return Ok(CommandOutcome::Clean);
    }
    let started_at = Instant::now();
    let events_max = args.events.unwrap_or(args.seconds.map_or(100_000, |s| s * u64::from(args.rate)));
    let mut out = create(&args.out)?;
    // Relaxed: figures for people.
    let position = || {
        let (event_count, bytes) = (events.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed));
        (bytes, (u128::from(bytes) * u128::from(events_max) / u128::from(event_count.max(1))) as u64)
    };
    let note = || format!("{} events", grouped(events.load(Ordering::Relaxed)));
    output::with_progress("generate", position, note, || -> Result<(), CommandFailure> {
        while let Some(line) = run.next_line()? {
            writeln!(out, "{line}").map_err(|e| file_failure(&args.out, e))?;
            // Relaxed: figures for people.
            events.store(run.stream.events(), Ordering::Relaxed);
            bytes.fetch_add(line.len() as u64 + 1, Ordering::Relaxed);
        }
        out.flush().map_err(|e| file_failure(&args.out, e))
    })?;
    summary(&args, &run, started_at.elapsed().as_secs_f64())?;
    Ok(CommandOutcome::Clean)
}

/// Refuses one file for the events and for the best prices, also by a link.
fn refuse_one_file(args: &BanksArgs) -> Result<(), CommandFailure> {
    let Some(truth) = args.truth.as_deref() else { return Ok(()) };
    let usage = |reason: &str| Err(CommandFailure::Usage(format!("--truth {}: {reason}", truth.display())));
    if truth == Path::new("-") {
        return usage("the best prices go into a file; the events may go to stdout");
    }
    if args.out == Path::new("-") {
        return Ok(());
    }
    drop(create(&args.out)?);
    let id = |path: &Path| std::fs::canonicalize(path).ok();
    match id(truth) == id(&args.out) {
        true => usage("the events go into this file"),
        false => Ok(()),
    }
}

/// A stream under way, with its best prices.
struct BankRun {
    stream: BankStream,
    truth: Option<TruthFile>,
    stop_flag: Arc<AtomicBool>,
}

impl BankRun {
    /// Makes the next event and writes its best prices. Returns `None` at the end.
    fn next_line(&mut self) -> Result<Option<String>, CommandFailure> {
        // Relaxed: a wish.
        if self.stop_flag.load(Ordering::Relaxed) {
            return Err(CommandFailure::Error("stopped; the files are incomplete".to_owned()));
        }
        let line = self.stream.next_line();
        match (&line, &mut self.truth) {
            (Some(line), Some(truth)) => truth.apply_line(line)?,
            (None, Some(truth)) => truth.end_file()?,
            (_, None) => {}
        }
        Ok(line)
    }
}

fn stream_config(args: &BanksArgs) -> BankStreamConfig {
    let defaults = BankStreamConfig::default();
    BankStreamConfig {
        seed: args.seed,
        events: args.events.unwrap_or(if args.seconds.is_some() { u64::MAX } else { defaults.events }),
        span_ns: args.seconds.map_or(defaults.span_ns, |seconds| seconds * 1_000_000_000),
        pairs: args.pairs,
        banks: args.banks,
        tiers: args.tiers,
        rate: args.rate,
        start_ns: args.start,
    }
}

/// The best prices under way.
struct TruthFile {
    truth_path: PathBuf,
    writer: BufWriter<File>,
    truth: BestPriceTruth,
    buffer: Vec<u8>,
}

impl TruthFile {
    fn create(path: &Path, args: &BanksArgs) -> Result<Self, CommandFailure> {
        let calendar = args.calendar.as_deref().map(read_calendar).transpose()?;
        let truth = BestPriceTruth::new(BestPriceConfig {
            sizes: args.size.clone(),
            stale_ms: args.stale_ms,
            spike_pips: args.spike_pips,
            spike_banks: args.spike_banks,
            dates: ValueDates { calendar },
        })?;
        Ok(Self { truth_path: path.to_owned(), writer: create(path)?, truth, buffer: Vec::new() })
    }

    fn apply_line(&mut self, line: &str) -> Result<(), CommandFailure> {
        self.buffer.clear();
        self.truth.apply_line(line, &mut self.buffer)?;
        self.writer.write_all(&self.buffer).map_err(|e| file_failure(&self.truth_path, e))
    }

    fn end_file(&mut self) -> Result<(), CommandFailure> {
        self.writer.flush().map_err(|e| file_failure(&self.truth_path, e))
    }
}

fn read_calendar(path: &Path) -> Result<Arc<Calendar>, CommandFailure> {
    let calendar = Calendar::parse(&output::read_text(path)?);
    let wrong = |e: unitape_model::CalendarError| {
        CommandFailure::Error(format!("{}:{}: {}", path.display(), e.line, e.fault))
    };
    calendar.map(Arc::new).map_err(wrong)
}

fn create(path: &Path) -> Result<BufWriter<File>, CommandFailure> {
    File::create(path).map(|f| BufWriter::with_capacity(1 << 16, f)).map_err(|e| file_failure(path, e))
}

fn summary(args: &BanksArgs, run: &BankRun, elapsed_s: f64) -> Result<(), CommandFailure> {
    let (stream, truth) = (&run.stream, run.truth.as_ref().map(|file| &file.truth));
    if args.json {
        return output::print_json(&serde_json::json!({
            "seed": args.seed,
            "events": stream.events(),
            "counts": stream.counts(),
            "lines": truth.map(BestPriceTruth::lines),
            "refused": truth.map(BestPriceTruth::refused),
            "spikes": truth.map(BestPriceTruth::spikes),
            "elapsed_s": elapsed_s,
        }));
    }
    say!("{} events in {}", grouped(stream.events()), args.out.display());
    for (name, n) in stream.counts() {
        say!("  {:>9}  {name}", grouped(*n));
    }
    if let (Some(truth), Some(path)) = (truth, &args.truth) {
        say!("{} best prices in {}", grouped(truth.lines()), path.display());
        say!("  {:>9}  quotes were a spike", grouped(truth.spikes()));
        for (reason, n) in truth.refused() {
            say!("  {:>9}  quotes were refused: {reason}", grouped(*n));
        }
    }
    Ok(())
}
