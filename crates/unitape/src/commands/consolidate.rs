//! `unitape consolidate`: many feeds onto one tape.

use crate::output::{self, Done, Failure, bytes, grouped, note, plain, read_text, say, say_lines};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use unitape_feed::{
    ClockLead, Ending, Error, Feed, Format, Loader, Options, Outcome, Reference, SourceRules, consolidate,
    feed_of_file, feed_of_option,
};
use unitape_run::config::Wait;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape consolidate market.fix --tape tape
  unitape consolidate --feed orders=fix:fix44-orders:orders.fix market.fix --tape tape --workers 2 --json
  unitape consolidate feeds.toml --tape tape
  unitape consolidate quotes.fix prints.txt --reference master.txt:nyse-taq-master --tape tape

A file is recognised by its content; --feed says what it is. Feeds are merged by event time, each in its own
order. A rerun goes on where the last one ended and does nothing when all is done; a file that has grown is read on.
Other content under a name that the tape has, and the same content under another name, are errors: --new-source and
--again say that it is meant so. With reference data (a file of
instruments and the mapping that reads it) an ISIN, a FIGI and a symbol on its venue become one instrument, by the day of
the event; what is not in it keeps its name and is counted as unresolved.

feeds.toml:
  [[feed]]
  name = \"orders\"
  format = \"fix\"
  mapping = \"fix44-orders\"     # shipped, or a file
  files = [\"orders-1.fix\", \"orders-2.fix\"]
  new_source = false         # the same as --new-source, --again: for this feed
  again = false
  [[reference]]
  file = \"master.txt\"
  mapping = \"nyse-taq-master\"")]
pub struct Args {
    /// Input files (`-` is stdin, with --feed), or one CONFIG.toml
    #[arg(value_name = "CONFIG.toml|FILE")]
    inputs: Vec<PathBuf>,
    /// Directory of the tape; made if it does not exist
    #[arg(long, value_name = "DIR")]
    tape: PathBuf,
    /// Worker threads; the tape does not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=WORKERS_MAX))]
    workers: Option<u16>,
    /// A feed: name=format:mapping:path (repeatable)
    #[arg(long, value_name = "FEED")]
    feed: Vec<String>,
    /// Reference data: a file of instruments, and the mapping that reads it or `events` (repeatable)
    #[arg(long, value_name = "FILE:MAPPING")]
    reference: Vec<String>,
    /// An instrument that the reference data does not have puts its message into quarantine
    #[arg(long)]
    reference_strict: bool,
    /// Other content under a name that the tape has is another source of this name (new_source)
    #[arg(long)]
    new_source: bool,
    /// Read a file that holds what another one holds a second time (again)
    #[arg(long)]
    again: bool,
    /// How far an event's time may lead that of its receipt (10min) or, without one, of the other feeds (366d); or
    /// `unbounded`. What leads by more is flagged clock_ahead
    #[arg(long, value_name = "SPAN")]
    clock_lead: Option<String>,
    /// Bytes of a block; the tape does not depend on it
    #[arg(long, value_name = "BYTES", default_value_t = unitape_feed::BLOCK_BYTES as u32, hide = true,
        value_parser = clap::value_parser!(u32).range(64..=unitape_feed::BLOCK_BYTES_MAX as i64))]
    block_bytes: u32,
    /// Bytes of a segment of a new tape, a power of two
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    segment_bytes: u64,
    /// Print the account as JSON
    #[arg(long)]
    json: bool,
}

/// More threads than this help nowhere, and each has its memory.
const WORKERS_MAX: i64 = 256;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    feed: Vec<ConfigFeed>,
    #[serde(default)]
    reference: Vec<ConfigReference>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigReference {
    file: PathBuf,
    mapping: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFeed {
    name: String,
    format: String,
    #[serde(default)]
    mapping: String,
    files: Vec<PathBuf>,
    #[serde(default)]
    new_source: bool,
    #[serde(default)]
    again: bool,
}

/// Runs the command.
pub fn run(args: Args) -> output::Result {
    let mut loader = Loader::default();
    let mut feed_rules = BTreeMap::new();
    let mut feeds = feeds(&args, &mut loader, &mut feed_rules)?;
    match reference(&args.reference, loader)? {
        Some(reference) => {
            let reference = Arc::new(reference.strictly(args.reference_strict));
            for feed in &mut feeds {
                feed.format = feed.format.clone().with_reference(&reference);
            }
        }
        None if args.reference_strict => {
            let what =
                "--reference-strict goes with --reference FILE:MAPPING, or [[reference]] of CONFIG.toml";
            return Err(Failure::Usage(what.to_owned()));
        }
        None => {}
    }
    let stop = output::stop_flag()?;
    let options = Options {
        feeds,
        lead: lead(args.clock_lead.as_deref())?,
        workers: args.workers.map_or_else(cores, usize::from),
        block_bytes: args.block_bytes as usize,
        tape: unitape_tape::Options { segment_bytes: args.segment_bytes, ..Default::default() },
        stop: Some(&stop),
        rules: SourceRules { new_source: args.new_source, again: args.again },
        feed_rules,
        ..Options::default()
    };
    output::print_hot_notice(&args.tape);
    let started = Instant::now();
    let outcome = run_with_progress(&args.tape, options).map_err(usage_or_error)?;
    let elapsed_s = started.elapsed().as_secs_f64();
    outcome.notes.iter().for_each(|text| note!("unitape: {text}"));
    if args.json {
        let mut account = serde_json::to_value(&outcome.summary)?;
        account["elapsed_s"] = elapsed_s.into();
        output::print_json(&account)?;
    } else {
        print_summary(&args.tape, &outcome, elapsed_s)?;
    }
    if outcome.ending == Ending::Stopped {
        return Err(Failure::Error("stopped; the same command goes on from here".to_owned()));
    }
    Ok(if outcome.summary.is_flawed() { Done::Flawed } else { Done::Clean })
}

fn lead(told: Option<&str>) -> Result<ClockLead, Failure> {
    let Some(text) = told else { return Ok(ClockLead::default()) };
    let Wait(lead) =
        Wait::try_from(text.to_owned()).map_err(|e| Failure::Usage(format!("--clock-lead: {e}")))?;
    Ok(ClockLead { receipt: lead, feeds: lead })
}

/// Consolidates with a progress bar.
pub fn run_with_progress(dir: &Path, options: Options<'_>) -> Result<Outcome, unitape_feed::Error> {
    let progress = options.progress.clone();
    // Relaxed throughout: figures for people.
    let position = || (progress.bytes.load(Ordering::Relaxed), progress.bytes_total.load(Ordering::Relaxed));
    let note = || {
        let c = &progress.counters;
        let (events, quarantined) = (c.events.load(Ordering::Relaxed), c.quarantined.load(Ordering::Relaxed));
        format!("{} events, {} quarantined", grouped(events), grouped(quarantined))
    };
    output::with_progress("consolidate", position, note, || consolidate(dir, options))
}

/// What cannot be in a feed or in reference data of the command line is a matter of usage.
pub fn usage_or_error(error: Error) -> Failure {
    match error {
        Error::Config { .. } => Failure::Usage(error.to_string()),
        error => error.into(),
    }
}

/// How many workers this machine is good for.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What the loader has already and these options name; none where that is nothing.
pub fn reference(options: &[String], mut loader: Loader) -> Result<Option<Reference>, Failure> {
    options.iter().try_for_each(|option| loader.add_option(option)).map_err(usage_or_error)?;
    loader.notes().for_each(|note| note!("unitape: {note}"));
    Ok(if loader.is_empty() { None } else { Some(loader.finish()?) })
}

fn feeds(
    args: &Args,
    loader: &mut Loader,
    rules: &mut BTreeMap<String, SourceRules>,
) -> Result<Vec<Feed>, Failure> {
    let mut feeds: Vec<Feed> = Vec::new();
    for option in &args.feed {
        let feed = feed_of_option(option).map_err(usage_or_error)?;
        // The same name again: one more file of the same feed.
        match feeds.iter_mut().find(|f| f.name == feed.name) {
            Some(first) if first.format.mapping() == feed.format.mapping() => first.files.extend(feed.files),
            Some(_) => {
                return Err(Failure::Usage(format!("--feed {option}: the feed has another format already")));
            }
            None => feeds.push(feed),
        }
    }
    for path in &args.inputs {
        if path.extension().is_some_and(|e| e == "toml") {
            let given = SourceRules { new_source: args.new_source, again: args.again };
            feeds.extend(read_config(path, loader, (given, &mut *rules))?);
        } else if path.as_os_str() == "-" {
            let what = "stdin has no content to recognise it by; say --feed name=format:mapping:-";
            return Err(Failure::Usage(what.to_owned()));
        } else {
            feeds.push(feed_of_file(path)?);
        }
    }
    if feeds.is_empty() {
        return Err(Failure::Usage(
            "nothing to consolidate: name a file, a CONFIG.toml or a --feed".to_owned(),
        ));
    }
    let mut names = BTreeMap::new();
    for feed in &mut feeds {
        let n = names.entry(feed.name.clone()).and_modify(|n| *n += 1).or_insert(1);
        if *n > 1 {
            feed.name = format!("{}-{n}", feed.name);
        }
    }
    Ok(feeds)
}

fn read_config(
    path: &Path,
    loader: &mut Loader,
    (given, rules): (SourceRules, &mut BTreeMap<String, SourceRules>),
) -> Result<Vec<Feed>, Failure> {
    let at = |failure: Failure| failure.configured().of(path.display());
    let text = read_text(path)?;
    let config: Config = toml::from_str(&text).map_err(|e| {
        let line = e.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
        Failure::Error(format!("{}:{line}: {}", path.display(), e.message()))
    })?;
    let base = path.parent().unwrap_or(Path::new(""));
    for r in &config.reference {
        let added = Loader::format(&r.mapping).and_then(|format| loader.add(&base.join(&r.file), &format));
        added.map_err(|e| at(e.into()))?;
    }
    let mut feed = |f: ConfigFeed| {
        let files = f.files.into_iter().map(|p| base.join(p)).collect();
        let own = SourceRules { new_source: given.new_source || f.new_source, again: given.again || f.again };
        rules.insert(f.name.clone(), own);
        Ok(Feed {
            format: Format::named(&f.format, &f.mapping).map_err(|e| at(e.into()))?,
            name: f.name,
            files,
        })
    };
    config.feed.into_iter().map(&mut feed).collect()
}

/// The account for people.
pub fn print_summary(dir: &Path, outcome: &Outcome, elapsed_s: f64) -> Result<(), Failure> {
    let s = &outcome.summary;
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["feed", "messages", "with events", "quarantined", "duplicates", "ignored", "events"]);
    for (name, f) in &s.by_feed {
        let counts = [f.messages, f.with_events, f.quarantined, f.duplicates, f.ignored, f.events];
        table.add_row(std::iter::once(plain(name).into_owned()).chain(counts.map(grouped)));
    }
    say_lines(&mut output::unbuffered(), &table)?;
    let rate = if outcome.fresh_messages == 0 {
        if outcome.stopped { "stopped, nothing was read" } else { "nothing left to do" }.to_owned()
    } else {
        let per_s = outcome.fresh_messages as f64 / elapsed_s;
        format!(
            "{} messages in {elapsed_s:.2} s ({} a second)",
            grouped(outcome.fresh_messages),
            grouped(per_s as u64)
        )
    };
    if s.unresolved > 0 {
        say!(
            "{} messages name an instrument that the reference data does not have (unresolved)",
            grouped(s.unresolved)
        );
    }
    if s.repeats > 0 {
        say!("{} messages came with a sequence number that had come before (repeat)", grouped(s.repeats));
    }
    if s.unsure > 0 {
        say!(
            "of {} of these nobody knows, because a session had too many gaps or there were too many sessions",
            grouped(s.unsure)
        );
    }
    if s.clock_ahead > 0 {
        say!("{} messages have a time that leads by more than it may (clock_ahead)", grouped(s.clock_ahead));
    }
    say!("{rate}; tape {}, {}", dir.display(), bytes(disk_bytes(dir)));
    if s.recovered > 0 {
        say!(
            "{} of the {} in quarantine were recovered by a retry",
            grouped(s.recovered),
            grouped(s.quarantined)
        );
    }
    if s.gaps > 0 {
        let tape = dir.display();
        say!(
            "{} gaps: packets or messages came on no line; see: unitape tape cat {tape} --kind status",
            grouped(s.gaps)
        );
    }
    if s.quarantined_open() > 0 {
        say!("see: unitape quarantine list {}", dir.display());
    }
    Ok(())
}

fn disk_bytes(dir: &Path) -> u64 {
    unitape_tape::info(dir).map_or(0, |i| i.disk_bytes)
}
