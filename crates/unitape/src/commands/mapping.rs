//! `unitape mapping`: is it right, and what does it make of a sample.

use crate::output::{self, Done, grouped, say};
use std::path::PathBuf;
use unitape_feed::{Feed, Format, Mapping, Options, consolidate, quarantine};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check a mapping; with a sample, say what becomes of its messages
    #[command(
        after_help = "Examples:\n  unitape mapping check mine.toml\n  unitape mapping check fix44-orders orders.fix"
    )]
    Check {
        /// A mapping file, or the name of a shipped one
        file: String,
        /// A file of messages to try it on
        sample: Option<PathBuf>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Name the shipped mappings
    #[command(after_help = "Example:\n  unitape mapping list")]
    List,
}

/// Runs the command.
pub fn run(args: Args) -> output::Result {
    match args.command {
        Command::List => {
            for m in Mapping::all_built_in() {
                say!("{:24} {:6} {}", m.name, m.format, m.title);
            }
            Ok(Done::Clean)
        }
        Command::Check { file, sample, json } => check(&file, sample, json),
    }
}

fn check(file: &str, sample: Option<PathBuf>, json: bool) -> output::Result {
    let mapping = Mapping::load(file)?;
    let Some(sample) = sample else {
        if json {
            output::print_json(&serde_json::json!({"mapping": mapping.name, "ok": true}))?;
        } else {
            say!("{}: ok, {} rules", mapping.name, mapping.rule.len());
        }
        return Ok(Done::Clean);
    };
    // A tape of its own, that goes when we have looked at it.
    let dir = scratch_dir()?;
    let feed = Feed { name: "sample".to_owned(), format: Format::by(mapping)?, files: vec![sample] };
    let tried = consolidate(&dir, Options { feeds: vec![feed], ..Options::default() })
        .and_then(|outcome| Ok((outcome, quarantine::list(&dir)?)));
    // What is left behind is temporary by name and place.
    _ = std::fs::remove_dir_all(&dir);
    let (outcome, entries) = tried?;
    let s = &outcome.summary;
    if json {
        let mut value = serde_json::to_value(s)?;
        value["quarantine"] = serde_json::to_value(&entries)?;
        output::print_json(&value)?;
    } else {
        say!(
            "{} messages: {} ignored, {} quarantined, {} duplicates, the rest became {} events",
            grouped(s.messages),
            grouped(s.ignored),
            grouped(s.quarantined),
            grouped(s.duplicates),
            grouped(s.events)
        );
        for (kind, n) in &s.by_kind {
            say!("  {kind:14} {}", grouped(*n));
        }
        for e in entries.iter().take(10) {
            say!("  at byte {}: {}: {}", e.offset, e.reason, e.detail);
        }
        if entries.len() > 10 {
            say!("  … and {} more", entries.len() - 10);
        }
    }
    Ok(if s.quarantined > 0 { Done::Flawed } else { Done::Clean })
}

/// A directory that nobody else has: what a killed check left behind must not be taken for ours.
fn scratch_dir() -> std::io::Result<PathBuf> {
    let base = std::env::temp_dir();
    let mut n = 0u32;
    loop {
        let dir = base.join(format!("unitape-mapping-check-{}-{n}", std::process::id()));
        match std::fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && n < u32::MAX => n += 1,
            Err(e) => return Err(e),
        }
    }
}
