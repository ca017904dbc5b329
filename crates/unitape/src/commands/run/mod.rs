//! `unitape run`: the configured feeds onto a tape, until stopped.

mod apart;
mod reload;
mod report;

use crate::output::{self, Done, Failure, note, say};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use unitape_feed::{RunOptions, run as run_feeds};
use unitape_run::config::{self, Backing, Config, Segments};
use unitape_run::layered::{Flag, Loaded};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape run feeds.toml
  unitape run feeds.toml --check
  UNITAPE_RUN__WORKERS=4 unitape run feeds.toml --json

SIGINT and SIGTERM end it in order: all that was received is on the tape. SIGHUP, or a change of its file, loads a
mapping anew. Started again, it goes on where the tape ends, and reads files on that have grown. A file that is another
one under its name, or holds what another one holds, ends its feed: --new-source and --again say that it is meant so.

feeds.toml:
  [tape]
  dir = \"tape\"

  [[feed]]
  name = \"orders\"
  format = \"fix\"
  mapping = \"fix44-orders\"
  listen = \"127.0.0.1:9000\"

  [[feed]]
  name = \"market\"
  format = \"fix\"
  mapping = \"jse-fix50-indices\"
  directory = \"in\"

Every key: docs/guide-engineer.md; what is in force: unitape config show feeds.toml --origin")]
pub struct Args {
    /// The configuration
    #[arg(value_name = "CONFIG.toml")]
    pub config: PathBuf,
    /// Check the configuration and its mappings, and run nothing
    #[arg(long)]
    pub check: bool,
    /// Directory of the tape (tape.dir)
    #[arg(long, value_name = "DIR")]
    pub tape: Option<PathBuf>,
    /// Worker threads (run.workers)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: Option<u16>,
    /// Run one feed only, onto its own tape: its part where segments are apart
    #[arg(long, value_name = "FEED")]
    pub segment: Option<String>,
    /// Other content under a name that the tape has is another source of this name (feed.new_source)
    #[arg(long)]
    pub new_source: bool,
    /// Read a file that holds what another one holds a second time (feed.again)
    #[arg(long)]
    pub again: bool,
    /// Figures and the account as JSON, one object a line
    #[arg(long)]
    pub json: bool,
    /// Started by a run for one of its segments, which asks only whether it came to its end
    #[arg(long, hide = true, requires = "segment")]
    pub supervised: bool,
}

impl Args {
    fn flags(&self) -> Result<Vec<Flag>, Failure> {
        let mut flags = Vec::new();
        if let Some(workers) = self.workers {
            let value = toml::Value::Integer(workers.into());
            flags.push(Flag { flag: "--workers", key: "run.workers", value });
        }
        if let Some(dir) = &self.tape {
            // A path on the command line begins where the command was given.
            let dir = std::path::absolute(dir)?;
            let text = dir.to_str().ok_or_else(|| Failure::Usage("--tape: a path in UTF-8".to_owned()))?;
            flags.push(Flag { flag: "--tape", key: "tape.dir", value: text.into() });
        }
        Ok(flags)
    }
}

/// Runs the command.
pub fn run(args: Args) -> output::Result {
    let Loaded { value: mut config, origins } = config::read(&args.config, &args.flags()?)?;
    if let Some(feed) = &args.segment {
        config.only(feed, &origins)?;
    }
    let reference = config.reference(&origins, &mut |text| note!("unitape: {text}"))?;
    for feed in &mut config.feed {
        feed.new_source |= args.new_source;
        feed.again |= args.again;
    }
    let feeds = config.feeds(&origins, reference.as_ref())?;
    if args.check {
        config.check_places(&origins)?;
        let names: Vec<_> = feeds.iter().map(|f| f.name.as_str()).collect();
        say!("{}: {} feeds: {}", args.config.display(), feeds.len(), names.join(", "));
        for (feed, run) in config.feed.iter().zip(&feeds) {
            // What is listened to stands in the mapping, not here.
            let listened = feed.listens(&run.format).unwrap_or_default();
            for address in listened {
                say!("  {} listens to {address}", feed.name);
            }
        }
        if let Some(cost) = config.delay_of_merge() {
            say!("  {cost}");
        }
        return Ok(Done::Clean);
    }
    if config.run.segments == Segments::Apart && args.segment.is_none() {
        return apart::run(&args, &config);
    }
    let stop = output::stop_flag()?;
    if args.supervised {
        apart::wait_for_dying(&config.tape.dir, &stop);
    }
    let mut options = RunOptions::new(feeds);
    options.workers = match config.run.workers {
        0 => super::consolidate::cores(),
        n => n.into(),
    };
    options.tape = tape_options(&config);
    options.wait = config.run.wait.0;
    options.lead = config.lead();
    options.scan = config.run.scan.0;
    options.idle = config.run.idle.0;
    options.lag_bytes_max = config.run.lag_bytes;
    options.journal_file_bytes = config.run.journal_file_bytes;
    options.spin = config.run.spin;
    options.stop = stop.clone();
    options.stop_signal = Some(output::stop_signal()?);
    let (stats, reload) = (options.stats.clone(), options.reload.clone());
    output::print_hot_notice(&config.tape.dir);
    let started = Instant::now();
    let over = Arc::new(AtomicBool::new(false));
    let teller = report::Teller::new(&stats, &config.tape.dir, args.json, config.run.stats.0);
    let teller = if args.supervised { teller.with_changes() } else { teller };
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| teller.tell_until(&over));
        let watch = scope.spawn(|| reload::watch(&config, reference.as_ref(), &reload, &over));
        let outcome = run_feeds(&config.tape.dir, options);
        // Release: pairs with the Acquire in both threads; they end.
        over.store(true, Ordering::Release);
        watch.thread().unpark();
        stats.over.up();
        stats.placed.up();
        outcome
    });
    let outcome = outcome.map_err(|e| Failure::from(e).configured())?;
    let elapsed_s = started.elapsed().as_secs_f64();
    report::last(&stats, &config.tape.dir, &outcome, args.json, elapsed_s)?;
    let s = &outcome.summary;
    let dropped = stats.feeds.iter().any(|f| f.drops.load(Ordering::Relaxed) > 0);
    let flawed = s.is_flawed() || dropped;
    Ok(if flawed && !args.supervised { Done::Flawed } else { Done::Clean })
}

/// How the tape of this configuration is written.
fn tape_options(config: &Config) -> unitape_tape::Options {
    let backing = match config.tape.backing {
        Backing::File => unitape_tape::Backing::File,
        Backing::Hot => unitape_tape::Backing::Hot { dir: None, window_segments: 4 },
    };
    let interval = config.tape.sync.0;
    unitape_tape::Options {
        segment_bytes: config.tape.segment_bytes,
        backing,
        sync: unitape_tape::Sync::Every { bytes: 64 << 20, interval },
        retention: config.tape.retention(),
        removal: super::tape::removal(),
        ..unitape_tape::Options::default()
    }
}
