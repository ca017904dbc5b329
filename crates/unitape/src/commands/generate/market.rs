//! `unitape generate market`: a day of a simulated market into files.

use crate::output::{self, CommandFailure, CommandOutcome, file_failure, say};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use unitape_sim::day::{FixDayWriter, FixedDayWriter, Scenario, Sim, SimConfig, SwiftDayWriter, write_line};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape generate market --out day
  unitape generate market --out day --seed 7 --events 200000 --format events,fix,fixed,swift
  unitape generate market --out day --plant spoofing=5,wash=3 --near-miss spoofing=5 --json
  unitape generate market --out - --events 10000 | head

Writes into the directory, as --format asks: events.jsonl (events), market.fix (FIX 4.4 drop copy, mapping fix44-orders),
market.fixed (fixed-width records, mapping sim-day), payments.swift (MT103 and MT202); and always truth.jsonl: totals,
labels, near misses, positions. The same options give the same bytes. Scenarios: spoofing, layering, wash_trade, order_to_trade_ratio, quote_stuffing, marking_close,
runaway_algo, payments_structuring, or a part of the name that fits only one, or `all`.")]
pub struct MarketArgs {
    /// Directory to write into; `-` prints the events and no truth
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The same seed makes the same day
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// About how many events
    #[arg(long, default_value_t = 100_000)]
    events: u64,
    /// What to write
    #[arg(long, value_enum, value_delimiter = ',', default_value = "events")]
    format: Vec<MarketFileFormat>,
    /// Venues, up to 6
    #[arg(long, default_value_t = 3)]
    venues: usize,
    /// Instruments, each on every venue
    #[arg(long, default_value_t = 50)]
    instruments: usize,
    /// Minutes from the start to the close
    #[arg(long, default_value_t = 525)]
    minutes: u64,
    /// Time of the start, nanoseconds since 1970 UTC
    #[arg(long, default_value_t = SimConfig::default().start_ns)]
    start: u64,
    /// Scenes to plant, as scenario=count [default: all=3]
    #[arg(long, value_delimiter = ',', value_name = "SCENARIO=N")]
    plant: Option<Vec<String>>,
    /// Scenes that just miss, as scenario=count [default: all=3]
    #[arg(long, value_delimiter = ',', value_name = "SCENARIO=N")]
    near_miss: Option<Vec<String>>,
    /// Instruments to halt for a while
    #[arg(long, default_value_t = 4)]
    halts: u32,
    /// Pieces of news
    #[arg(long, default_value_t = 20)]
    news: u32,
    /// Payments, beside the planted ones
    #[arg(long, default_value_t = 500)]
    payments: u32,
    /// Also write orders.jsonl: the life of every order
    #[arg(long)]
    orders: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
enum MarketFileFormat {
    /// JSON Lines
    Events,
    /// FIX 4.4 drop copy
    Fix,
    /// Fixed-width records: what the drop copy has
    Fixed,
    /// SWIFT messages, payments only
    Swift,
}

impl MarketFileFormat {
    fn file(self) -> &'static str {
        match self {
            MarketFileFormat::Events => "events.jsonl",
            MarketFileFormat::Fix => "market.fix",
            MarketFileFormat::Fixed => "market.fixed",
            MarketFileFormat::Swift => "payments.swift",
        }
    }
}

/// Runs the command.
pub fn run(args: MarketArgs) -> output::Result {
    let config = config(&args)?;
    if args.out == Path::new("-") {
        return to_stdout(config);
    }
    let stop = output::stop_flag()?;
    let started = Instant::now();
    let asked = config.events.max(1);
    let mut sim = Sim::new(config)?;
    fs::create_dir_all(&args.out).map_err(|e| file_failure(&args.out, e))?;
    let mut files = MarketFiles::create(&args, &sim)?;
    let (events, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    // Relaxed: figures for people.
    let position = || {
        let (done, bytes) = (events.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed));
        (bytes, (u128::from(bytes) * u128::from(asked) / u128::from(done.max(1))) as u64)
    };
    let note = || format!("{} events", output::grouped(events.load(Ordering::Relaxed)));
    output::with_progress("generate", position, note, || files.write_day(&mut sim, &events, &bytes, &stop))?;
    let truth = args.out.join("truth.jsonl");
    let mut out = create(&truth)?;
    sim.write_truth(&mut out).and_then(|()| out.flush()).map_err(|e| file_failure(&truth, e))?;
    summary(&args, &sim, &files, started.elapsed().as_secs_f64())?;
    Ok(CommandOutcome::Clean)
}

fn config(args: &MarketArgs) -> Result<SimConfig, CommandFailure> {
    let scenes = |of: &Option<Vec<String>>| match of {
        Some(list) => scenes(list),
        None => Ok(SimConfig::default().plant),
    };
    let span_ns = args.minutes.checked_mul(60_000_000_000);
    Ok(SimConfig {
        seed: args.seed,
        events: args.events,
        venues: args.venues,
        instruments: args.instruments,
        start_ns: args.start,
        span_ns: span_ns.ok_or_else(|| CommandFailure::Usage("--minutes: too many".to_owned()))?,
        halts: args.halts,
        news: args.news,
        payments: args.payments,
        plant: scenes(&args.plant)?,
        near_misses: scenes(&args.near_miss)?,
        keep_lives: args.orders,
        ..SimConfig::default()
    })
}

/// `spoofing=5`, `all=2`; later ones win.
fn scenes(list: &[String]) -> Result<BTreeMap<Scenario, u32>, CommandFailure> {
    let mut counts = BTreeMap::new();
    for item in list.iter().filter(|item| !item.is_empty()) {
        let usage = |why: &str| {
            let ids: Vec<&str> = Scenario::ALL.iter().map(|s| s.id()).collect();
            CommandFailure::Usage(format!("{item}: {why}; scenarios are all, {}", ids.join(", ")))
        };
        let (name, count) = item.split_once('=').unwrap_or((item, "1"));
        let count: u32 = count.parse().map_err(|_| usage("wants scenario=count"))?;
        if name == "all" {
            counts.extend(Scenario::ALL.map(|s| (s, count)));
        } else {
            counts.insert(Scenario::from_id(name).ok_or_else(|| usage("no such scenario"))?, count);
        }
    }
    Ok(counts)
}

fn to_stdout(config: SimConfig) -> output::Result {
    let mut sim = Sim::new(config)?;
    let (mut out, mut lines, mut scratch) = (output::stdout(), Vec::new(), Vec::new());
    while sim.step().is_some() {
        lines.clear();
        sim.last_events().iter().for_each(|e| write_line(sim.world(), e, &mut scratch, &mut lines));
        out.write_all(&lines)?;
    }
    out.flush()?;
    Ok(CommandOutcome::Clean)
}

/// The files under way, each with its name.
struct MarketFiles {
    events: Option<MarketFile>,
    fix: Option<(FixDayWriter, MarketFile)>,
    fixed: Option<(FixedDayWriter, MarketFile)>,
    swift: Option<(SwiftDayWriter, MarketFile)>,
    orders: Option<MarketFile>,
    scratch: Vec<u8>,
    buffer: Vec<u8>,
}

struct MarketFile {
    path: PathBuf,
    out: BufWriter<File>,
    bytes: u64,
}

impl MarketFile {
    fn create(path: PathBuf) -> Result<MarketFile, CommandFailure> {
        Ok(MarketFile { out: create(&path)?, path, bytes: 0 })
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), CommandFailure> {
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes).map_err(|e| file_failure(&self.path, e))
    }

    fn end(&mut self) -> Result<(), CommandFailure> {
        self.out.flush().map_err(|e| file_failure(&self.path, e))
    }
}

impl MarketFiles {
    fn create(args: &MarketArgs, sim: &Sim) -> Result<MarketFiles, CommandFailure> {
        let sink = |format: MarketFileFormat| {
            let wanted = args.format.contains(&format);
            wanted.then(|| MarketFile::create(args.out.join(format.file()))).transpose()
        };
        let orders = args.orders.then(|| MarketFile::create(args.out.join("orders.jsonl"))).transpose()?;
        Ok(MarketFiles {
            events: sink(MarketFileFormat::Events)?,
            fix: sink(MarketFileFormat::Fix)?.map(|sink| (FixDayWriter::new(sim.world()), sink)),
            fixed: sink(MarketFileFormat::Fixed)?
                .map(|sink| (FixedDayWriter::new(sim.world(), sim.config().start_ns), sink)),
            swift: sink(MarketFileFormat::Swift)?.map(|sink| (SwiftDayWriter::default(), sink)),
            orders,
            scratch: Vec::new(),
            buffer: Vec::new(),
        })
    }

    fn write_day(
        &mut self,
        sim: &mut Sim,
        events: &AtomicU64,
        bytes: &AtomicU64,
        stop: &AtomicBool,
    ) -> Result<(), CommandFailure> {
        while sim.step().is_some() {
            let buffer = &mut self.buffer;
            if let Some(sink) = &mut self.events {
                buffer.clear();
                sim.last_events().iter().for_each(|e| write_line(sim.world(), e, &mut self.scratch, buffer));
                sink.put(buffer)?;
            }
            if let Some((fix, sink)) = &mut self.fix {
                buffer.clear();
                sim.last_events().iter().for_each(|e| _ = fix.write(sim.world(), e, buffer));
                sink.put(buffer)?;
            }
            if let Some((fixed, sink)) = &mut self.fixed {
                buffer.clear();
                sim.last_events().iter().for_each(|e| _ = fixed.write(sim.world(), e, buffer));
                sink.put(buffer)?;
            }
            if let Some((swift, sink)) = &mut self.swift {
                buffer.clear();
                sim.last_events().iter().for_each(|e| _ = swift.write(sim.world(), e, buffer));
                sink.put(buffer)?;
            }
            if let Some(sink) = &mut self.orders {
                buffer.clear();
                let lives = sim.take_lives();
                lives.iter().try_for_each(|life| life.write_jsonl(sim, buffer))?;
                sink.put(buffer)?;
            }
            // Relaxed: figures for people, and a wish.
            events.store(sim.events(), Ordering::Relaxed);
            bytes.store(self.sinks().map(|s| s.bytes).sum(), Ordering::Relaxed);
            if stop.load(Ordering::Relaxed) {
                return Err(CommandFailure::Error("stopped; the files are incomplete".to_owned()));
            }
        }
        if let Some((fixed, sink)) = &mut self.fixed {
            self.buffer.clear();
            fixed.end(&mut self.buffer);
            sink.put(&self.buffer)?;
        }
        let plain = [self.events.as_mut(), self.orders.as_mut()].into_iter().flatten();
        let by_format = plain
            .chain(self.fix.as_mut().map(|f| &mut f.1))
            .chain(self.fixed.as_mut().map(|f| &mut f.1))
            .chain(self.swift.as_mut().map(|s| &mut s.1));
        by_format.into_iter().try_for_each(MarketFile::end)
    }

    fn sinks(&self) -> impl Iterator<Item = &MarketFile> {
        let plain = [self.events.as_ref(), self.orders.as_ref()].into_iter().flatten();
        plain
            .chain(self.fix.as_ref().map(|f| &f.1))
            .chain(self.fixed.as_ref().map(|f| &f.1))
            .chain(self.swift.as_ref().map(|s| &s.1))
    }
}

fn summary(args: &MarketArgs, sim: &Sim, files: &MarketFiles, elapsed_s: f64) -> Result<(), CommandFailure> {
    let totals = sim.totals();
    let mut labels: BTreeMap<&str, u64> = BTreeMap::new();
    sim.labels().iter().for_each(|l| *labels.entry(l.scenario).or_default() += 1);
    let sizes: BTreeMap<String, u64> = files.sinks().map(|s| (name_of(&s.path), s.bytes)).collect();
    if args.json {
        return output::print_json(&serde_json::json!({
            "seed": totals.seed,
            "events": totals.events,
            "by_kind": totals.by_kind,
            "labels": labels,
            "near_misses": sim.near_misses().len(),
            "files": sizes,
            "elapsed_s": elapsed_s,
        }));
    }
    say!("{} events in {}", output::grouped(totals.events), args.out.display());
    for (file, size) in &sizes {
        say!("  {file:<15} {}", output::bytes(*size));
    }
    say!("  {:<15} what there is to find:", "truth.jsonl");
    for (scenario, n) in &labels {
        say!("    {n:>4}  {scenario}");
    }
    say!("    {:>4}  near misses, which must not be found", sim.near_misses().len());
    Ok(())
}

fn create(path: &Path) -> Result<BufWriter<File>, CommandFailure> {
    File::create(path).map(|f| BufWriter::with_capacity(1 << 16, f)).map_err(|e| file_failure(path, e))
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}
