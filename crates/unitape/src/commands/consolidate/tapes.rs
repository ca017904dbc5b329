//! `unitape consolidate --tape-in`: many tapes onto one tape.

use super::{ConsolidateArgs, lead_limits, print_summary, usage_or_error};
use crate::commands::read_args;
use crate::output::{self, CommandFailure, CommandOutcome, grouped, note};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use unitape_feed::{Error, InputTape, RunProgress, TapeMergeOptions, TapeMergeOutcome, merge_tapes};
use unitape_model::LostNameCounts;
use unitape_tape::{ReadOptions, WriterOptions};

/// Merges the tapes.
pub fn run(args: &ConsolidateArgs) -> output::Result {
    let inputs =
        args.tape_in.iter().map(|option| InputTape::parse(option)).collect::<Result<Vec<_>, Error>>();
    let inputs = inputs.map_err(usage_or_error)?;
    let stop = output::stop_flag()?;
    inputs.iter().for_each(|input| output::print_hot_notice(&input.dir));
    output::print_hot_notice(&args.tape);
    let progress = Arc::new(RunProgress::default());
    let options = TapeMergeOptions {
        inputs,
        tape: WriterOptions { segment_bytes: args.segment_bytes, ..WriterOptions::default() },
        read: ReadOptions { verify: true, skip_damage: args.skip_damage },
        lead: lead_limits(args.clock_lead.as_deref())?,
        stop: Some(&stop),
        progress: progress.clone(),
    };
    let started_at = Instant::now();
    // Relaxed: figures for people.
    let position = || (progress.bytes.load(Ordering::Relaxed), progress.bytes_total.load(Ordering::Relaxed));
    let merged = output::with_progress("merge", position, String::new, || merge_tapes(&args.tape, options));
    let merged = merged.map_err(usage_or_error)?;
    let elapsed_s = started_at.elapsed().as_secs_f64();
    match args.json {
        true => print_account(&merged, elapsed_s)?,
        false => print_summary(&args.tape, &merged.run, elapsed_s)?,
    }
    merged.run.notes.iter().for_each(|text| note!("unitape: {text}"));
    for gap in &merged.gaps {
        let bytes = grouped(gap.to - gap.from);
        note!(
            "unitape: gap: of tape {} positions {} to {} were removed before they were merged, {bytes} bytes",
            gap.tape,
            gap.from,
            gap.to
        );
    }
    for part in &merged.damaged {
        let bytes = grouped(part.to - part.from);
        note!(
            "unitape: damage: of tape {} positions {} to {} are not in the merge, {bytes} bytes",
            part.tape,
            part.from,
            part.to
        );
    }
    for part in &merged.accepted {
        note!(
            "unitape: unverified: of tape {} a repair accepted positions {} to {} without a check",
            part.tape,
            part.from,
            part.to
        );
    }
    let is_whole = merged.gaps.is_empty() && merged.damaged.is_empty();
    let mut outcome = match is_whole && !merged.run.summary.is_flawed() {
        true => CommandOutcome::Clean,
        false => CommandOutcome::Flawed,
    };
    for losses in &merged.losses {
        outcome =
            read_args::finish_with(&losses.damaged, &losses.unverified, LostNameCounts::default(), outcome)?;
    }
    if merged.run.stopped {
        return Err(CommandFailure::Error("stopped; the same command resumes from here".to_owned()));
    }
    Ok(outcome)
}

/// Prints the account as JSON. `gaps` lists the gaps of the tapes, and `lost` counts the gaps of packets.
fn print_account(merged: &TapeMergeOutcome, elapsed_s: f64) -> Result<(), CommandFailure> {
    let mut account = serde_json::to_value(&merged.run.summary)?;
    if merged.run.summary.gaps > 0 {
        account["lost"] = merged.run.summary.gaps.into();
    }
    account["gaps"] = serde_json::to_value(&merged.gaps)?;
    account["damaged"] = serde_json::to_value(&merged.damaged)?;
    account["accepted_unverified"] = serde_json::to_value(&merged.accepted)?;
    account["user_messages"] = merged.user_messages.into();
    account["elapsed_s"] = elapsed_s.into();
    output::print_json(&account)
}
