//! `unitape quarantine`: what could not become events.

use super::consolidate::usage_or_error;
use super::read_args::{self, ReadArgs};
use crate::output::{self, CommandOutcome, grouped, note, say, say_to};
use clap::builder::TypedValueParser;
use std::io::Write;
use std::path::PathBuf;
use unitape_feed::{Mapping, MasterLoader, TapeAccount, quarantine};
use unitape_model::Position;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct QuarantineArgs {
    #[command(subcommand)]
    command: QuarantineCommand,
}

#[derive(Debug, clap::Subcommand)]
enum QuarantineCommand {
    /// List the messages in quarantine, with their reasons
    #[command(
        after_help = "Example:\n  unitape quarantine list tape --json\n\nThe bytes of each message are compared with the checksum of its event. Exit code 3 when something is in quarantine, or damaged."
    )]
    List {
        /// Directory of the tape
        dir: PathBuf,
        /// Print as JSON, one object a line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Print one entry with its raw bytes
    #[command(after_help = "Example:\n  unitape quarantine show tape 1408 --raw > message.fix")]
    Show {
        /// Directory of the tape
        dir: PathBuf,
        /// Position of its event, as `list` shows it
        #[arg(value_parser = clap::value_parser!(u64).map(Position))]
        position: Position,
        /// Print nothing but the raw bytes, as they are: control characters too
        #[arg(long)]
        raw: bool,
        /// Print as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Retry with a mended mapping; recovered events are appended, flagged late
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
pub fn run(args: QuarantineArgs) -> output::Result {
    match args.command {
        QuarantineCommand::List { dir, json, read } => {
            output::print_hot_notice(&dir);
            let mut listing = quarantine::list_with(&dir, read.options())?;
            let damaged = listing.compare(&dir)?;
            let entries = &listing.entries;
            let mut out = output::stdout();
            for e in entries {
                if json {
                    writeln!(out, "{}", serde_json::to_string(e)?)?;
                } else {
                    let state = match (e.recovered, e.superseded) {
                        (true, _) => " (recovered)",
                        (_, true) => " (superseded)",
                        _ => "",
                    };
                    let (offset, length, reason) = (e.offset, e.length, &e.reason);
                    say_to!(
                        out,
                        "{:>10}  {} at byte {offset}, {length} bytes: {reason}{state}",
                        e.position,
                        e.source
                    );
                    say_to!(out, "            {}", e.detail);
                    if let Some(damage_text) = &e.damaged {
                        say_to!(out, "            damaged: quarantine.raw: {damage_text}");
                    }
                }
            }
            out.flush()?;
            if entries.is_empty() {
                let messages = TapeAccount::load_with(&dir, read.options())?.summary().messages;
                note!("unitape: nothing is in quarantine; {} messages were read", grouped(messages));
            }
            if damaged > 0 {
                note!("unitape: {} entries are damaged; see: unitape tape verify", grouped(damaged));
            }
            let flawed = damaged > 0 || entries.iter().any(|e| e.is_open());
            read_args::finish(
                &listing.reader,
                listing.names,
                if flawed { CommandOutcome::Flawed } else { CommandOutcome::Clean },
            )
        }
        QuarantineCommand::Show { dir, position, raw, json, read } => {
            output::print_hot_notice(&dir);
            let listing = quarantine::list_with(&dir, read.options())?;
            let (entry, bytes) = quarantine::show_in(&dir, &listing, position)?;
            let mut out = output::stdout();
            if raw {
                out.write_all(&bytes)?;
            } else if json {
                let mut value = serde_json::to_value(&entry)?;
                value["raw"] = match std::str::from_utf8(&bytes) {
                    Ok(text) => text.into(),
                    Err(_) => serde_json::json!({ "hex": hex_text(&bytes) }),
                };
                writeln!(out, "{value}")?;
            } else {
                say_to!(out, "{} at byte {}, {} bytes", entry.source, entry.offset, entry.length);
                say_to!(out, "{}: {}", entry.reason, entry.detail);
                say_to!(out, "{}", bytes.escape_ascii());
            }
            out.flush()?;
            read_args::finish(&listing.reader, listing.names, CommandOutcome::Clean)
        }
        QuarantineCommand::Retry { dir, mapping, reference, json } => {
            let mapping = mapping.as_deref().map(Mapping::load).transpose()?;
            let reference =
                unitape_run::inputs::reference(&reference, MasterLoader::default(), &mut |text| {
                    note!("unitape: {text}")
                })?;
            output::print_hot_notice(&dir);
            // Options that the tape's sources need and that are missing here are usage errors.
            let retry_report =
                quarantine::retry(&dir, mapping.as_ref(), reference.as_ref()).map_err(usage_or_error)?;
            if retry_report.tried == 0 {
                note!("unitape: nothing to try again: nothing is in quarantine that was not recovered");
            }
            for damage_text in &retry_report.damaged {
                note!("unitape: damaged, not tried: {damage_text}");
            }
            if json {
                output::print_json(&retry_report)?;
            } else {
                say!(
                    "{} tried, {} recovered ({} events, flagged late), {} left",
                    retry_report.tried,
                    retry_report.recovered,
                    retry_report.events,
                    retry_report.left
                );
            }
            Ok(if retry_report.left > 0 { CommandOutcome::Flawed } else { CommandOutcome::Clean })
        }
    }
}

fn hex_text(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
