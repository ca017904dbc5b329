//! `unitape quarantine`: what could not become events.

use crate::output::{self, Done, say};
use std::io::Write;
use std::path::PathBuf;
use unitape_feed::{Loader, Mapping, quarantine};
use unitape_model::Position;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// What is in quarantine, and why
    #[command(after_help = "Example:\n  unitape quarantine list tape --json")]
    List {
        /// Directory of the tape
        dir: PathBuf,
        /// Print as JSON, one object a line
        #[arg(long)]
        json: bool,
    },
    /// One entry with its raw bytes
    #[command(after_help = "Example:\n  unitape quarantine show tape 1408 --raw > message.fix")]
    Show {
        /// Directory of the tape
        dir: PathBuf,
        /// Position of its event, as `list` shows it
        position: u64,
        /// Print nothing but the raw bytes
        #[arg(long)]
        raw: bool,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Try again with a mended mapping; what is recovered is appended, flagged late
    #[command(after_help = "Examples:
  unitape quarantine retry tape --mapping mended.toml
  unitape quarantine retry tape --reference master.txt:nyse-taq-master")]
    Retry {
        /// Directory of the tape
        dir: PathBuf,
        /// The mended mapping: a file, or the name of a shipped one [default: the source's own]
        #[arg(long)]
        mapping: Option<String>,
        /// Reference data, for sources that were read with it: a file and the mapping that reads it (repeatable)
        #[arg(long, value_name = "FILE:MAPPING")]
        reference: Vec<String>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub fn run(args: Args) -> output::Result {
    match args.command {
        Command::List { dir, json } => {
            let entries = quarantine::list(&dir)?;
            let mut out = output::stdout();
            for e in &entries {
                if json {
                    writeln!(out, "{}", serde_json::to_string(e)?)?;
                } else {
                    let state = if e.recovered { " (recovered)" } else { "" };
                    writeln!(
                        out,
                        "{:>10}  {} at byte {}, {} bytes: {}{state}\n            {}",
                        e.position, e.source, e.offset, e.length, e.reason, e.detail
                    )?;
                }
            }
            out.flush()?;
            Ok(if entries.iter().any(|e| !e.recovered) { Done::Flawed } else { Done::Clean })
        }
        Command::Show { dir, position, raw, json } => {
            let (entry, bytes) = quarantine::show(&dir, Position(position))?;
            let mut out = output::stdout();
            if raw {
                out.write_all(&bytes)?;
            } else if json {
                let mut value = serde_json::to_value(&entry)?;
                value["raw"] = match std::str::from_utf8(&bytes) {
                    Ok(text) => text.into(),
                    Err(_) => serde_json::json!({ "hex": hex(&bytes) }),
                };
                writeln!(out, "{value}")?;
            } else {
                writeln!(out, "{} at byte {}, {} bytes", entry.source, entry.offset, entry.length)?;
                writeln!(out, "{}: {}", entry.reason, entry.detail)?;
                writeln!(out, "{}", bytes.escape_ascii())?;
            }
            out.flush()?;
            Ok(Done::Clean)
        }
        Command::Retry { dir, mapping, reference, json } => {
            let mapping = mapping.as_deref().map(Mapping::load).transpose()?;
            let reference = super::consolidate::reference(&reference, Loader::default())?;
            let done = quarantine::retry(&dir, mapping.as_ref(), reference.as_ref())?;
            if json {
                output::print_json(&done)?;
            } else {
                say!(
                    "{} tried, {} recovered ({} events, flagged late), {} left",
                    done.tried,
                    done.recovered,
                    done.events,
                    done.left
                );
            }
            Ok(if done.left > 0 { Done::Flawed } else { Done::Clean })
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
