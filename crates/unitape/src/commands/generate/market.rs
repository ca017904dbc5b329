//! `unitape generate market`: a day of a simulated market into files, or several.

use crate::output::{self, CommandFailure, CommandOutcome, file_failure, note, say};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use unitape_model::CivilDate;
use unitape_sim::day::market::write_market_line;
use unitape_sim::day::{
    AlertLabel, DayEvent, FixDayWriter, FixedDayWriter, OrderLife, Scenario, Sim, SimConfig, SimulatedMarket,
    SwiftDayWriter, write_line,
};
use unitape_sim::{ControlRequest, Market, MarketConfig};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape generate market --out day
  unitape generate market --out day --seed 7 --events 200000 --format events,fix,fixed,swift
  unitape generate market --out day --plant spoofing=5,wash=3 --near-miss spoofing=5 --json
  unitape generate market --out - --events 10000 | head
  unitape generate market --out week --days 5 --seed 7 --date 2026-03-02
  unitape generate market --out halted --full --control controls.jsonl

--format chooses the files: events.jsonl (events), market.fix (FIX 4.4 drop copy, mapping fix44-orders), market.fixed (fixed-width records, mapping sim-day), payments.swift (MT103 and MT202). truth.jsonl is always written: totals, labels, near misses, positions. The same options give the same bytes.

--days above 1, --full or --control make a full market: --events, --plant, --news and similar options then count for each day. It also has levels, the national best, an index, reference prices, messages, lists, links, positions, statements, short marks, desks and rejects; positions and prices carry over to the next day, and weekends have no events. A full market has no fixed-width records. A line of --control is a `control` event with ts and action (halt, reject, block, kill, resume), and optional venue, instr, firm, trader, owner, acct, desk, algo, until, dry_run. 

Scenarios of every market: spoofing, layering, wash_trade, order_to_trade_ratio, quote_stuffing, marking_close, runaway_algo, payments_structuring. Scenarios of a full market: also cross_venue_layering (with two venues), collusive_spoofing, ping_orders, smoking, excessive_bid, fat_finger, reg_sho_201, momentum_ignition, painting_tape, prearranged, off_market_trade, tailgating, front_running, stop_hunting, trade_through (with two venues), price_spike, volume_spike, payments_passthrough, payments_sanctions, payments_velocity (with two days), payments_round, restricted_list, insider_news (with a day of 90 minutes), comms_lexicon, parking, cross_product (with eight instruments), luld, eu_volatility_interruption, pump_and_dump (with two days), abusive_squeeze (with eight instruments), mwcb (with eight instruments and a day of an hour). A part of a name that only one of them has is enough; `all` means all that the market can have.")]
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
    /// Date of the first day, which then starts at 07:50 UTC
    #[arg(long, conflicts_with = "start")]
    date: Option<CivilDate>,
    /// Trading days, up to 60; more than one make a full market
    #[arg(long, default_value_t = 1)]
    days: u32,
    /// A full market also of one day
    #[arg(long)]
    full: bool,
    /// Controls to obey, one a line; makes a full market
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
    /// Messages between traders a day, of a full market
    #[arg(long, default_value_t = MarketConfig::default().comms)]
    comms: u32,
    /// Scenes to plant, as scenario=count [default: all=3; fewer in a full market without room for these]
    #[arg(long, value_delimiter = ',', value_name = "SCENARIO=N")]
    plant: Option<Vec<String>>,
    /// Scenes that just miss, as scenario=count [default: all=3; fewer in a full market without room for these]
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

impl MarketArgs {
    /// Returns whether the options ask for a full market and not for a simple day.
    fn is_full(&self) -> bool {
        self.days != 1 || self.full || self.control.is_some()
    }
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
    let mut played = PlayedMarket::new(&args, config)?;
    if args.out == Path::new("-") {
        return to_stdout(&mut played);
    }
    let stop = output::stop_flag()?;
    let started_at = Instant::now();
    let event_goal = args.events.max(1).saturating_mul(args.days.into());
    fs::create_dir_all(&args.out).map_err(|e| file_failure(&args.out, e))?;
    let mut files = MarketFiles::create(&args, &played)?;
    let (events, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    // Relaxed: figures for people.
    let position = || {
        let (event_count, bytes) = (events.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed));
        (bytes, (u128::from(bytes) * u128::from(event_goal) / u128::from(event_count.max(1))) as u64)
    };
    let note = || format!("{} events", output::grouped(events.load(Ordering::Relaxed)));
    output::with_progress("generate", position, note, || {
        files.write_all(&mut played, &events, &bytes, &stop)
    })?;
    let truth = args.out.join("truth.jsonl");
    let mut out = create(&truth)?;
    played.write_truth(&mut out).and_then(|()| out.flush()).map_err(|e| file_failure(&truth, e))?;
    summary(&args, &played, &files, started_at.elapsed().as_secs_f64())?;
    Ok(CommandOutcome::Clean)
}

fn config(args: &MarketArgs) -> Result<SimConfig, CommandFailure> {
    let span_ns = args.minutes.saturating_mul(60_000_000_000);
    let possible: Vec<Scenario> = match args.is_full() {
        true => Scenario::of_market(args.venues, args.instruments, args.days, span_ns).collect(),
        false => Scenario::SIMPLE_DAY.to_vec(),
    };
    let scenes = |option: &Option<Vec<String>>| match option {
        Some(list) => parse_scene_counts(list, &possible),
        None => Ok(possible.iter().map(|&scenario| (scenario, SCENES_DEFAULT)).collect()),
    };
    let span_ns = args.minutes.checked_mul(60_000_000_000);
    Ok(SimConfig {
        seed: args.seed,
        events: args.events,
        venues: args.venues,
        instruments: args.instruments,
        start_ns: start_ns(args)?,
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

/// Parses the number of scenes, such as `spoofing=5` and `all=2`, where `all` means the `possible` ones. Later items
/// win.
fn parse_scene_counts(
    list: &[String],
    possible: &[Scenario],
) -> Result<BTreeMap<Scenario, u32>, CommandFailure> {
    let mut counts = BTreeMap::new();
    for item in list.iter().filter(|item| !item.is_empty()) {
        let usage = |reason: &str| {
            let ids: Vec<&str> = Scenario::ALL.iter().map(|s| s.id()).collect();
            CommandFailure::Usage(format!("{item}: {reason}; scenarios are all, {}", ids.join(", ")))
        };
        let (name, count) = item.split_once('=').unwrap_or((item, "1"));
        let count: u32 = count.parse().map_err(|_| usage("wants scenario=count"))?;
        if name == "all" {
            counts.extend(possible.iter().map(|&s| (s, count)));
        } else {
            counts.insert(Scenario::from_id(name).ok_or_else(|| usage("no such scenario"))?, count);
        }
    }
    Ok(counts)
}

/// Returns the start time that the user gave, or the usual time of day on the given date.
fn start_ns(args: &MarketArgs) -> Result<u64, CommandFailure> {
    const DAY_NS: u64 = 86_400_000_000_000;
    let Some(date) = args.date else { return Ok(args.start) };
    let days = u64::try_from(date.days()).ok().and_then(|days| days.checked_mul(DAY_NS));
    let usual = SimConfig::default().start_ns % DAY_NS;
    days.map(|days| days + usual).ok_or_else(|| CommandFailure::Usage("--date: before 1970".to_owned()))
}

/// Makes a full market. Of scenes that nobody asked for there are fewer if the market has no room for all of them; a line on
/// stderr says so.
fn market_with_room(args: &MarketArgs, mut config: MarketConfig) -> Result<Market, CommandFailure> {
    let is_default = args.plant.is_none() && args.near_miss.is_none();
    let mut crowded: Option<(&str, u32)> = None;
    loop {
        let most =
            config.day.plant.values().chain(config.day.near_misses.values()).copied().max().unwrap_or(0);
        match Market::new(config.clone()) {
            Err(unitape_sim::Error::NoRoom { kind, placed }) if is_default && most > 0 => {
                crowded = Some((kind, placed));
                let scenes = [&mut config.day.plant, &mut config.day.near_misses];
                scenes.into_iter().flat_map(|counts| counts.values_mut()).for_each(|count| *count -= 1);
            }
            market => {
                let market = market?;
                if let Some((kind, placed)) = crowded {
                    note!(
                        "unitape: {most} instead of {SCENES_DEFAULT} scenes and near misses of every scenario: no instrument is free \
                         for another {kind} after {placed}; give more --instruments or --minutes"
                    );
                }
                return Ok(market);
            }
        }
    }
}

/// A day, or a full market.
enum PlayedMarket {
    Day(Box<Sim>),
    Full(Box<Market>),
}

impl PlayedMarket {
    fn new(args: &MarketArgs, day: SimConfig) -> Result<PlayedMarket, CommandFailure> {
        if !args.is_full() {
            return Ok(PlayedMarket::Day(Box::new(Sim::new(day)?)));
        }
        if args.format.contains(&MarketFileFormat::Fixed) {
            let reason = "--format fixed is of one day; without --days, --full and --control there is one";
            return Err(CommandFailure::Usage(reason.to_owned()));
        }
        let config = MarketConfig { day, days: args.days, comms: args.comms, ..MarketConfig::default() };
        let mut market = market_with_room(args, config)?;
        if let Some(path) = &args.control {
            let text = output::read_text(path)?;
            for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                let obey = ControlRequest::from_line(line).and_then(|control| market.control(&control));
                obey.map_err(|e| CommandFailure::Error(format!("{}: line {}: {e}", path.display(), n + 1)))?;
            }
        }
        Ok(PlayedMarket::Full(Box::new(market)))
    }

    /// Plays a step; false when all is over.
    fn step(&mut self) -> bool {
        match self {
            PlayedMarket::Day(sim) => sim.step().is_some(),
            PlayedMarket::Full(market) => market.step().is_some(),
        }
    }

    /// Appends the lines of the last step.
    fn write_lines(&self, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
        match self {
            PlayedMarket::Day(sim) => {
                sim.last_events().iter().for_each(|e| write_line(sim.world(), e, scratch, out));
            }
            PlayedMarket::Full(market) => {
                market.last_events().iter().for_each(|e| write_market_line(market, e, scratch, out));
            }
        }
    }

    /// Hands on the events of the last step that a drop copy may have.
    fn for_each_day_event(&self, mut each: impl FnMut(&DayEvent)) {
        match self {
            PlayedMarket::Day(sim) => sim.last_events().iter().for_each(each),
            PlayedMarket::Full(market) => {
                market.last_events().iter().filter_map(|e| e.day_event()).for_each(|e| each(&e));
            }
        }
    }

    fn sim(&self) -> &Sim {
        match self {
            PlayedMarket::Day(sim) => sim,
            PlayedMarket::Full(market) => market.sim(),
        }
    }

    fn world(&self) -> &SimulatedMarket {
        self.sim().world()
    }

    fn take_lives(&mut self) -> Vec<OrderLife> {
        match self {
            PlayedMarket::Day(sim) => sim.take_lives(),
            PlayedMarket::Full(market) => market.take_lives(),
        }
    }

    fn events(&self) -> u64 {
        match self {
            PlayedMarket::Day(sim) => sim.events(),
            PlayedMarket::Full(market) => market.events(),
        }
    }

    fn write_truth(&self, out: &mut dyn Write) -> std::io::Result<()> {
        match self {
            PlayedMarket::Day(sim) => sim.write_truth(out),
            PlayedMarket::Full(market) => market.write_truth(out),
        }
    }

    fn labels(&self) -> Vec<&AlertLabel> {
        match self {
            PlayedMarket::Day(sim) => sim.labels(),
            PlayedMarket::Full(market) => market.labels(),
        }
    }

    fn near_misses(&self) -> usize {
        match self {
            PlayedMarket::Day(sim) => sim.near_misses().len(),
            PlayedMarket::Full(market) => market.near_misses().len(),
        }
    }

    fn by_kind(&self) -> BTreeMap<&'static str, u64> {
        match self {
            PlayedMarket::Day(sim) => sim.totals().by_kind,
            PlayedMarket::Full(market) => {
                let mut files_by_format = BTreeMap::new();
                let days = market.days().iter().flat_map(|day| &day.by_kind);
                days.for_each(|(kind, n)| *files_by_format.entry(*kind).or_default() += n);
                files_by_format
            }
        }
    }
}

fn to_stdout(played: &mut PlayedMarket) -> output::Result {
    let (mut out, mut lines, mut scratch) = (output::stdout(), Vec::new(), Vec::new());
    while played.step() {
        lines.clear();
        played.write_lines(&mut scratch, &mut lines);
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
    file_path: PathBuf,
    writer: BufWriter<File>,
    bytes: u64,
}

impl MarketFile {
    fn create(path: PathBuf) -> Result<MarketFile, CommandFailure> {
        Ok(MarketFile { writer: create(&path)?, file_path: path, bytes: 0 })
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), CommandFailure> {
        self.bytes += bytes.len() as u64;
        self.writer.write_all(bytes).map_err(|e| file_failure(&self.file_path, e))
    }

    fn end_file(&mut self) -> Result<(), CommandFailure> {
        self.writer.flush().map_err(|e| file_failure(&self.file_path, e))
    }
}

impl MarketFiles {
    fn create(args: &MarketArgs, played: &PlayedMarket) -> Result<MarketFiles, CommandFailure> {
        let sink = |format: MarketFileFormat| {
            let is_wanted = args.format.contains(&format);
            is_wanted.then(|| MarketFile::create(args.out.join(format.file()))).transpose()
        };
        let orders = args.orders.then(|| MarketFile::create(args.out.join("orders.jsonl"))).transpose()?;
        Ok(MarketFiles {
            events: sink(MarketFileFormat::Events)?,
            fix: sink(MarketFileFormat::Fix)?.map(|sink| (FixDayWriter::new(played.world()), sink)),
            fixed: sink(MarketFileFormat::Fixed)?
                .map(|sink| (FixedDayWriter::new(played.world(), played.sim().config().start_ns), sink)),
            swift: sink(MarketFileFormat::Swift)?.map(|sink| (SwiftDayWriter::default(), sink)),
            orders,
            scratch: Vec::new(),
            buffer: Vec::new(),
        })
    }

    fn write_all(
        &mut self,
        played: &mut PlayedMarket,
        events: &AtomicU64,
        bytes: &AtomicU64,
        stop: &AtomicBool,
    ) -> Result<(), CommandFailure> {
        while played.step() {
            let buffer = &mut self.buffer;
            if let Some(sink) = &mut self.events {
                buffer.clear();
                played.write_lines(&mut self.scratch, buffer);
                sink.write_bytes(buffer)?;
            }
            if let Some((fix, sink)) = &mut self.fix {
                buffer.clear();
                played.for_each_day_event(|e| _ = fix.write(played.world(), e, buffer));
                sink.write_bytes(buffer)?;
            }
            if let Some((fixed, sink)) = &mut self.fixed {
                buffer.clear();
                played.for_each_day_event(|e| _ = fixed.write(played.world(), e, buffer));
                sink.write_bytes(buffer)?;
            }
            if let Some((swift, sink)) = &mut self.swift {
                buffer.clear();
                played.for_each_day_event(|e| _ = swift.write(played.world(), e, buffer));
                sink.write_bytes(buffer)?;
            }
            if let Some(sink) = &mut self.orders {
                buffer.clear();
                let lives = played.take_lives();
                lives.iter().try_for_each(|life| life.write_jsonl(played.sim(), buffer))?;
                sink.write_bytes(buffer)?;
            }
            // Relaxed: figures for people, and a wish.
            events.store(played.events(), Ordering::Relaxed);
            bytes.store(self.sinks().map(|s| s.bytes).sum(), Ordering::Relaxed);
            if stop.load(Ordering::Relaxed) {
                return Err(CommandFailure::Error("stopped; the files are incomplete".to_owned()));
            }
        }
        if let Some((fixed, sink)) = &mut self.fixed {
            self.buffer.clear();
            fixed.end(&mut self.buffer);
            sink.write_bytes(&self.buffer)?;
        }
        let line_files = [self.events.as_mut(), self.orders.as_mut()].into_iter().flatten();
        let by_format = line_files
            .chain(self.fix.as_mut().map(|f| &mut f.1))
            .chain(self.fixed.as_mut().map(|f| &mut f.1))
            .chain(self.swift.as_mut().map(|s| &mut s.1));
        by_format.into_iter().try_for_each(MarketFile::end_file)
    }

    fn sinks(&self) -> impl Iterator<Item = &MarketFile> {
        let line_files = [self.events.as_ref(), self.orders.as_ref()].into_iter().flatten();
        line_files
            .chain(self.fix.as_ref().map(|f| &f.1))
            .chain(self.fixed.as_ref().map(|f| &f.1))
            .chain(self.swift.as_ref().map(|s| &s.1))
    }
}

fn summary(
    args: &MarketArgs,
    played: &PlayedMarket,
    files: &MarketFiles,
    elapsed_s: f64,
) -> Result<(), CommandFailure> {
    let mut labels: BTreeMap<&str, u64> = BTreeMap::new();
    played.labels().iter().for_each(|l| *labels.entry(l.scenario).or_default() += 1);
    let sizes: BTreeMap<String, u64> = files.sinks().map(|s| (name_of(&s.file_path), s.bytes)).collect();
    if args.json {
        return output::print_json(&serde_json::json!({
            "seed": args.seed,
            "events": played.events(),
            "by_kind": played.by_kind(),
            "labels": labels,
            "near_misses": played.near_misses(),
            "files": sizes,
            "elapsed_s": elapsed_s,
        }));
    }
    say!("{} events in {}", output::grouped(played.events()), args.out.display());
    for (file, size) in &sizes {
        say!("  {file:<15} {}", output::bytes(*size));
    }
    say!("  {:<15} what there is to find:", "truth.jsonl");
    for (scenario, n) in &labels {
        say!("    {n:>4}  {scenario}");
    }
    say!("    {:>4}  near misses, which must not be found", played.near_misses());
    Ok(())
}

fn create(path: &Path) -> Result<BufWriter<File>, CommandFailure> {
    File::create(path).map(|f| BufWriter::with_capacity(1 << 16, f)).map_err(|e| file_failure(path, e))
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Scenes and near misses of each scenario, without --plant and --near-miss.
const SCENES_DEFAULT: u32 = 3;
