//! Shared parts of all commands that read a tape: the options, the names on it, and the bytes that were not or could
//! not be checked.

use crate::output::{self, CommandFailure, CommandOutcome, grouped, note};
use std::path::Path;
use unitape_model::{DefinitionTable, LostNameCounts};
use unitape_run::follow::{self, TapeFlaws};
use unitape_tape::{DamagedParts, ReadOptions, Reader, UnverifiedBytes};

/// Options of every command that reads a tape.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct ReadArgs {
    /// Read without comparing the tape with its checksums
    #[arg(long)]
    pub no_verify: bool,
    /// Read on after damage, at the next segment, and count what is lost; the exit code is still 3
    #[arg(long)]
    pub skip_damage: bool,
}

impl ReadArgs {
    /// Makes the reader's options from these arguments.
    pub fn options(self) -> ReadOptions {
        ReadOptions { verify: !self.no_verify, skip_damage: self.skip_damage }
    }

    /// Opens a reader of the whole tape in `dir`. Returns it with the names that the removed part of the tape defined.
    pub fn open(self, dir: &Path) -> Result<(Reader, DefinitionTable), CommandFailure> {
        Ok(follow::open_reader(dir, self.options())?)
    }
}

/// Prints the flaws of the content of a tape; gives how the command ends if nothing else is wrong.
pub fn finish_flaws(flaws: &TapeFlaws, outcome: CommandOutcome) -> CommandOutcome {
    if flaws.losses > 0 {
        note!(
            "unitape: the tape is a merge that lacks parts of its inputs ({} times); see: unitape tape verify",
            grouped(flaws.losses)
        );
    }
    if flaws.unverified > 0 {
        note!(
            "unitape: the tape is a merge with parts that a repair accepted without a check; see: unitape tape verify"
        );
    }
    for (from, to) in &flaws.accepted {
        note!("unitape: a repair accepted positions {from} to {to} of the tape without a check");
    }
    if *flaws == TapeFlaws::default() { outcome } else { CommandOutcome::Flawed }
}

/// Prints what a reader has passed over or could not check; gives how the command ends.
pub fn finish(reader: &Reader, names: LostNameCounts, outcome: CommandOutcome) -> output::Result {
    finish_with(reader.damaged(), reader.unverified(), names, outcome)
}

/// Prints the damage, unchecked bytes and lost names of a reader; gives how the command ends.
pub fn finish_with(
    damaged: &DamagedParts,
    unverified: &UnverifiedBytes,
    names: LostNameCounts,
    outcome: CommandOutcome,
) -> output::Result {
    for part in &damaged.parts {
        let events = match part.events {
            Some(events) => format!("{} events", grouped(events)),
            None => "events that nobody has counted".to_owned(),
        };
        note!(
            "unitape: damage: {} at offset {}: {}; skipped positions {} to {}, {} bytes, {events}",
            part.file_path.display(),
            part.offset,
            part.reason,
            part.from_position,
            part.to_position,
            grouped(part.to_position.0 - part.from_position.0)
        );
    }
    if damaged.count > 0 {
        let open_damage = match damaged.uncounted {
            0 => String::new(),
            n => format!(", and those of {} parts that nobody has counted", grouped(n)),
        };
        note!(
            "unitape: skipped {} damaged parts: {} bytes, {} events{open_damage}",
            grouped(damaged.count),
            grouped(damaged.bytes),
            grouped(damaged.events)
        );
    }
    if names.from_log > 0 {
        note!("unitape: {} definitions are lost; their names are those of the log", grouped(names.from_log));
    }
    if names.nameless > 0 {
        note!("unitape: {} ids have no name, because their definitions are lost", grouped(names.nameless));
    }
    if let Some((path, reason)) = &unverified.first_file {
        let bytes = match unverified.first_position {
            Some(from) => {
                format!("{} bytes from position {from} on were not checked", grouped(unverified.bytes))
            }
            None => "what was read matches its checksums, but nothing says where the tape ends".to_owned(),
        };
        note!("unitape: unverified: {}: {reason}; {bytes}", path.display());
    }
    let clean = damaged.count == 0 && unverified.is_empty() && names == LostNameCounts::default();
    Ok(if clean { outcome } else { CommandOutcome::Flawed })
}

/// Makes the JSON of the checks' result, for the output of a command.
pub fn fields(damaged: &DamagedParts, unverified: &UnverifiedBytes) -> serde_json::Value {
    let parts: Vec<_> = damaged
        .parts
        .iter()
        .map(|part| {
            serde_json::json!({
                "file": part.file_path, "offset": part.offset, "what": part.reason, "from": part.from_position.0, "to": part.to_position.0,
                "events": part.events,
            })
        })
        .collect();
    serde_json::json!({
        "skipped": damaged.count, "skipped_bytes": damaged.bytes, "skipped_events": damaged.events,
        "skipped_uncounted": damaged.uncounted, "parts": parts,
        "unverified_bytes": unverified.bytes, "unverified_from": unverified.first_position.map(|from| from.0),
        "unverified": unverified.first_file.as_ref().map(|(path, reason)| format!("{}: {reason}", path.display())),
    })
}
