//! `unitape tape repair`: what of a damaged tape can be made again, and what needs your word.

use super::verify::TapeInspection;
use crate::output::{self, CommandFailure, CommandOutcome, grouped, say};
use std::path::PathBuf;
use unitape_tape::{RepairFinding, RepairOptions, RepairRemedy, RepairReport};

/// Arguments of `tape repair`.
#[derive(Debug, clap::Args)]
pub struct RepairArgs {
    /// Directory of the tape
    dir: PathBuf,
    /// Change the tape; without it repair only says what it would do
    #[arg(long)]
    apply: bool,
    /// Accept data without a matching checksum as they are; `tape verify` continues to report them
    #[arg(long)]
    accept_unverified: bool,
    /// Cut the tape before the first damage that cannot be mended; what comes after it is moved away
    #[arg(long)]
    truncate: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn repair(args: &RepairArgs) -> output::Result {
    // A tape that cannot be read has no findings here; the next repair knows it.
    let mut foreign_damage: Vec<_> =
        unitape_feed::checkpoint_damage(&args.dir).ok().flatten().into_iter().collect();
    let lost_bytes = unitape_feed::quarantine::raw_damage(&args.dir).unwrap_or_default();
    foreign_damage.extend(lost_bytes.iter().cloned());
    let options = RepairOptions {
        apply: args.apply,
        accept_unverified: args.accept_unverified,
        truncates: args.truncate,
        foreign_damage,
    };
    let report = unitape_tape::repair(&args.dir, &options)?;
    // A mended tape shows the other problems.
    let remains = match args.apply && !report.is_clean() {
        true => {
            // A cut may have removed some of their events.
            let foreign_damage = unitape_feed::quarantine::raw_damage(&args.dir).unwrap_or(lost_bytes);
            unitape_tape::repair(&args.dir, &RepairOptions { foreign_damage, ..RepairOptions::default() })?
        }
        false => RepairReport::default(),
    };
    // A repair knows how files are made again, `verify` knows all that can be wrong with them.
    let unmended = match report.is_clean() || args.apply && remains.is_clean() {
        true => TapeInspection::inspect(&args.dir)?.problems,
        false => Vec::new(),
    };
    let has_loss = report.findings.iter().any(|f| f.remedy == RepairRemedy::Nothing);
    let flawed = if args.apply { has_loss || !remains.is_clean() } else { !report.is_clean() };
    let flawed = flawed || !unmended.is_empty();
    let outcome = RepairOutcome { report, remains, unmended };
    if args.json {
        json(args, &outcome)?;
    } else {
        print_outcome(args, &outcome)?;
    }
    Ok(if flawed { CommandOutcome::Flawed } else { CommandOutcome::Clean })
}

/// The findings and actions of a repair, and the problems after it.
struct RepairOutcome {
    report: RepairReport,
    /// The findings of another repair.
    remains: RepairReport,
    /// Problems that `verify` finds and no repair mends.
    unmended: Vec<String>,
}

fn json(args: &RepairArgs, outcome: &RepairOutcome) -> Result<(), CommandFailure> {
    let RepairOutcome { report, remains, unmended } = outcome;
    let finding = |f: &RepairFinding| {
        serde_json::json!({
            "file": f.file_path, "offset": f.offset,
            "positions": f.position_range.map(|(from, to)| [from.0, to.0]),
            "what": f.problem, "remedy": remedy_word(f.remedy), "action": f.action, "mended": f.is_mended && args.apply,
        })
    };
    let cut = report.cut.map(|cut| {
        serde_json::json!({
            "position": cut.position.0, "end": cut.end_before_cut.0, "events": cut.events, "done": cut.is_applied && args.apply,
        })
    });
    output::print_json(&serde_json::json!({
        "applied": report.applied, "aside": report.backup_dir, "cut": cut,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "remains": remains.findings.iter().map(finding).collect::<Vec<_>>(), "unmended": unmended,
    }))
}

fn print_outcome(args: &RepairArgs, outcome: &RepairOutcome) -> Result<(), CommandFailure> {
    let RepairOutcome { report, remains, unmended } = outcome;
    if report.is_clean() {
        if unmended.is_empty() {
            say!("nothing to repair");
        }
        return print_unmended(unmended);
    }
    report.findings.iter().try_for_each(|f| print_finding(f, args.apply))?;
    if let Some(cut) = report.cut {
        let (from, to, events) = (cut.position, cut.end_before_cut, grouped(cut.events));
        match (cut.is_applied, args.apply) {
            (true, true) => say!("cut at position {from}: {events} events up to position {to} went"),
            (true, false) => {
                say!("would cut at position {from}: {events} events up to position {to} would go")
            }
            (false, _) => {
                say!("--truncate would cut at position {from}: {events} events up to position {to} would go")
            }
        }
    }
    if let Some(backup_dir) = &report.backup_dir {
        say!("what was replaced is in {}", backup_dir.display());
    }
    if !args.apply {
        say!("nothing was changed; --apply does it");
    } else if remains.is_clean() && unmended.is_empty() {
        say!("repaired");
    } else if remains.is_clean() {
        print_unmended(unmended)?;
    } else {
        say!("still damaged:");
        remains.findings.iter().try_for_each(|f| print_finding(f, false))?;
    }
    Ok(())
}

fn print_unmended(problems: &[String]) -> Result<(), CommandFailure> {
    for problem in problems {
        say!("cannot be mended: {problem}");
    }
    Ok(())
}

fn print_finding(f: &RepairFinding, applied: bool) -> Result<(), CommandFailure> {
    let positions =
        f.position_range.map(|(from, to)| format!(" (positions {from} to {to})")).unwrap_or_default();
    let state = match (f.is_mended, applied) {
        (true, true) => "mended",
        (true, false) => "can be mended",
        (false, _) if f.remedy == RepairRemedy::Nothing => "lost",
        (false, _) => "damaged",
    };
    say!("{state}: {} at offset {}: {}{positions}", f.file_path.display(), f.offset, f.problem);
    say!("    {}", f.action);
    Ok(())
}

/// Returns the word for the remedy.
fn remedy_word(remedy: RepairRemedy) -> &'static str {
    match remedy {
        RepairRemedy::Mend => "mend",
        RepairRemedy::Accept => "accept-unverified",
        RepairRemedy::Truncate => "truncate",
        RepairRemedy::AcceptOrTruncate => "accept-unverified or truncate",
        RepairRemedy::Nothing => "none",
    }
}
