//! `unitape tape verify`: every check of a tape, of its account and of the bytes that its quarantine names.

use crate::output::{self, CommandFailure, CommandOutcome, grouped, say};
use std::path::Path;
use unitape_feed::TapeAccount;
use unitape_feed::quarantine::{RawLogReport, check_raw};
use unitape_model::{ErrorCause, Position};
use unitape_tape::VerifyReport;

/// Runs the command.
pub fn verify(dir: &Path, json: bool) -> output::Result {
    output::print_hot_notice(dir);
    let inspection = TapeInspection::inspect(dir)?;
    if json {
        inspection.print_json()?
    } else {
        inspection.print()?
    }
    match inspection.outside {
        Some(failure) => Err(failure),
        None => {
            Ok(if inspection.problems.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Flawed })
        }
    }
}

/// The result of all checks of a tape.
#[derive(Debug)]
pub struct TapeInspection {
    /// Frames, checksums and the dictionary log.
    report: VerifyReport,
    /// The bytes that the quarantine names.
    raw: RawLogReport,
    /// Parts of other tapes on this one that a repair accepted without a check, in words.
    accepted: Vec<String>,
    /// Messages on it that state another sum than their transactions come to. The tape is intact all the same.
    sums_differ: u64,
    /// The problems, one line each; the place comes first.
    pub problems: Vec<String>,
    /// The account could not be read, for a cause outside the data.
    outside: Option<CommandFailure>,
}

impl TapeInspection {
    /// Checks the tape in `dir`.
    ///
    /// # Errors
    /// Fails if the directory is not a tape, if the tape has a foreign version, or if a file cannot be read.
    pub fn inspect(dir: &Path) -> Result<Self, CommandFailure> {
        let report = unitape_tape::verify(dir)?;
        let mut problems: Vec<String> = report
            .problems
            .iter()
            .map(|p| {
                let positions = p.position_range.map(|(from, to)| format!(" (positions {from} to {to})"));
                let positions = positions.unwrap_or_default();
                format!("{} at offset {}: {}{positions}", p.file_path.display(), p.offset, p.problem)
            })
            .collect();
        let account = TapeAccount::load(dir);
        let mut raw = RawLogReport::default();
        match &account {
            Ok(account) => {
                for s in account.sources.iter().filter(|s| !s.tally.is_balanced()) {
                    problems.push(format!("account of {}/{} does not close", s.feed, s.file));
                }
                if let Some(m) = &account.mismatch {
                    problems.push(format!("position {}: {}", m.position.unwrap_or_default(), m.difference));
                }
                let losses = account.tape_gaps.parts.iter().filter(|part| part.is_loss);
                problems.extend(losses.map(|part| part.detail.clone()));
                match check_raw(dir, account) {
                    Ok(report) => raw = report,
                    Err(e) => problems.push(e.to_string()),
                }
                problems.extend(raw.problems());
            }
            Err(e) => problems.push(e.to_string()),
        }
        let parts = account.iter().flat_map(|account| &account.tape_gaps.parts);
        let accepted = parts.filter(|part| !part.is_loss).map(|part| part.detail.clone()).collect();
        let sums_differ = account.as_ref().map_or(0, |account| account.sums_differ);
        let outside = account.err().map(CommandFailure::from).filter(|e| e.cause() == ErrorCause::Outside);
        Ok(Self { report, raw, accepted, sums_differ, problems, outside })
    }

    fn print_json(&self) -> Result<(), CommandFailure> {
        let part = |(from, to): (Position, Position)| [from.0, to.0];
        output::print_json(&serde_json::json!({
            "frames": self.report.frames, "units": self.report.unit_count, "events": self.report.events,
            "checksums": self.report.spans, "definitions": self.report.definitions, "intact_to": self.report.intact_to.0,
            "not_covered": self.report.not_covered.map(part),
            "accepted_unverified": self.report.accepted.iter().copied().map(part).collect::<Vec<_>>(),
            "accepted_of_inputs": self.accepted,
            "quarantine": { "intact": self.raw.intact, "without_checksum": self.raw.unhashed, "damaged": self.raw.damaged },
            "sums_differ": self.sums_differ,
            "problems": self.problems,
        }))
    }

    fn print(&self) -> Result<(), CommandFailure> {
        say!(
            "{} frames, {} messages, {} events, {} checksums, {} definitions",
            grouped(self.report.frames),
            grouped(self.report.unit_count),
            grouped(self.report.events),
            grouped(self.report.spans),
            grouped(self.report.definitions)
        );
        for p in &self.problems {
            say!("{p}");
        }
        for (from, to) in &self.report.accepted {
            say!("accepted unverified by a repair: positions {from} to {to}");
        }
        for part in &self.accepted {
            say!("accepted unverified before the merge: {part}");
        }
        if self.raw.entries() > 0 {
            say!(
                "quarantine: {} messages match their checksum, {} carry no checksum, {} are damaged",
                grouped(self.raw.intact),
                grouped(self.raw.unhashed),
                grouped(self.raw.damaged)
            );
        }
        if self.sums_differ > 0 {
            say!(
                "{} messages state another sum or number than their transactions come to (sum_differs)",
                grouped(self.sums_differ)
            );
        }
        if let Some((from, to)) = self.report.not_covered {
            say!("not covered by checksums: positions {from} to {to}, not durable yet");
        }
        if self.problems.is_empty() {
            say!("intact to position {}", self.report.intact_to);
        } else {
            say!("intact only to position {}", self.report.intact_to);
        }
        Ok(())
    }
}
