//! `unitape run`: the configured feeds onto a tape, until stopped.

mod report;

use crate::output::{self, CommandFailure, CommandOutcome, cause_of, note, say};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use unitape_run::config::{self, FeedProcessMode};
use unitape_run::layered::{FlagValue, LayeredConfig};
use unitape_run::{PreparedRun, RunControl, RunEvent, SegmentProcesses, run as run_feeds, run_apart};
use unitape_server::monitor::Monitor;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape run feeds.toml
  unitape run feeds.toml --check
  UNITAPE_RUN__WORKERS=4 unitape run feeds.toml --json
  UNITAPE_RUN__CLOCK=1s unitape run feeds.toml    # an event `clock` after each second without one

With `[monitor] listen = \"127.0.0.1:9464\"` the run serves /metrics, /healthz and /readyz; see `unitape status`.

SIGINT and SIGTERM end the run after all received messages are on the tape. SIGHUP, or a change of its file, loads a mapping again. A new run resumes where the tape ends, and reads the rest of files that have grown. Different content under a known file name ends its feed; --new-source treats it as a new source. Known content under a new file name ends its feed, too; --again accepts it.

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

docs/reference/config.md has every key. `unitape config show feeds.toml --origin` prints the values in force.")]
pub struct RunArgs {
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

impl RunArgs {
    fn flags(&self) -> Result<Vec<FlagValue>, CommandFailure> {
        let mut flags = Vec::new();
        if let Some(workers) = self.workers {
            let value = toml::Value::Integer(workers.into());
            flags.push(FlagValue { flag: "--workers", key: "run.workers", value });
        }
        if let Some(dir) = &self.tape {
            // A path on the command line begins where the command was given.
            let dir = std::path::absolute(dir)?;
            let text =
                dir.to_str().ok_or_else(|| CommandFailure::Usage("--tape: a path in UTF-8".to_owned()))?;
            flags.push(FlagValue { flag: "--tape", key: "tape.dir", value: text.into() });
        }
        Ok(flags)
    }

    /// Makes the command that runs a single feed in a process of its own.
    fn segment_command(&self, feed: &str) -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("run").arg(&self.config).args(["--segment", feed, "--supervised"]);
        if let Some(dir) = &self.tape {
            command.arg("--tape").arg(std::path::absolute(dir)?);
        }
        if let Some(workers) = self.workers {
            command.arg("--workers").arg(workers.to_string());
        }
        for (is_given, flag) in [(self.new_source, "--new-source"), (self.again, "--again")] {
            if is_given {
                command.arg(flag);
            }
        }
        Ok(command)
    }
}

/// Runs the command.
pub fn run(args: RunArgs) -> output::Result {
    let LayeredConfig { value: mut config, origins } = config::read(&args.config, &args.flags()?)?;
    if let Some(feed) = &args.segment {
        config.restrict_to_feed(feed, &origins)?;
    }
    for feed in &mut config.feed {
        feed.new_source |= args.new_source;
        feed.again |= args.again;
    }
    let prepared = PreparedRun::new(config, &origins, &mut |text| note!("unitape: {text}"))?;
    if args.check {
        prepared.config.check_places(&origins)?;
        return print_check(&args.config, &prepared);
    }
    let tape = prepared.config.tape.dir.clone();
    let json = args.json || args.supervised;
    // A process of a segment is watched by the one that has started it.
    let monitor = match args.supervised {
        true => None,
        false => Monitor::start(&prepared.config.monitor, tape.clone())?,
    };
    if let Some(monitor) = &monitor {
        note!("unitape: figures and health: http://{}", monitor.address());
    }
    let events = |event: RunEvent<'_>| {
        if let Some(monitor) = &monitor {
            monitor.on_event(&event);
        }
        report::print_event(event, json);
    };
    let mut control = RunControl {
        stop: output::stop_flag()?,
        stop_signal: None,
        reload: Arc::default(),
        reports_changes: args.supervised,
        events: &events,
    };
    let report = if prepared.config.run.segments == FeedProcessMode::Apart && args.segment.is_none() {
        let command = |name: &str| args.segment_command(name);
        run_apart(&prepared.config, control, SegmentProcesses { command: &command, cause_of })?
    } else {
        control.stop_signal = Some(output::stop_signal()?);
        if let Err(e) = signal_hook::flag::register(signal_hook::consts::SIGHUP, control.reload.clone()) {
            note!("unitape: SIGHUP will not reload mappings: {e}");
        }
        run_feeds(prepared, control)?
    };
    report::last(&report, &tape, args.json)?;
    // A supervisor asks only whether it came to its end.
    Ok(if report.is_flawed() && !args.supervised { CommandOutcome::Flawed } else { CommandOutcome::Clean })
}

fn print_check(file: &Path, prepared: &PreparedRun) -> output::Result {
    let (config, feeds) = (&prepared.config, &prepared.feeds);
    let feed_names: Vec<_> = feeds.iter().map(|f| f.name.as_str()).collect();
    say!("{}: {} feeds: {}", file.display(), feeds.len(), feed_names.join(", "));
    for (feed, run) in config.feed.iter().zip(feeds) {
        // The mapping names the addresses, not this.
        let listened = feed.listens(&run.format).unwrap_or_default();
        for address in listened {
            say!("  {} listens to {address}", feed.name);
        }
    }
    if let Some(cost) = config.delay_of_merge() {
        say!("  {cost}");
    }
    Ok(CommandOutcome::Clean)
}
