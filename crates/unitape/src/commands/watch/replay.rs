//! The replay of recorded events by `unitape watch replay` and `unitape watch quality`.

use super::replay_output::ReplayOutput;
use super::{ReplayArgs, outcome_of_refused, print_counters};
use crate::commands::range_args::{self, unknown_names};
use crate::commands::read_args::{self, ReadArgs};
use crate::output::{self, CommandFailure, CommandOutcome, grouped, note, open_file};
use std::io::{BufRead, BufReader};
use std::path::Path;
use unitape_model::{DefinitionTable, Event};
use unitape_query::EventSelection;
use unitape_run::surveil::{SurveilOutcome, Surveillance};
use unitape_watch::{Alert, ReplaySummary, ScenarioSelection, replay_cases};

/// Is given the events of a tape and their alerts while it is replayed.
pub(super) trait TapeObserver {
    /// Takes an event.
    fn on_event(&mut self, event: &Event<'_>, seq: u64, names: &DefinitionTable);
    /// Takes an alert of the last event.
    fn on_alert(&mut self, alert: &Alert) -> std::io::Result<()>;
}

pub(super) fn replay_lines(
    path: &Path,
    selection: &ScenarioSelection,
    replay: &ReplayArgs,
) -> output::Result {
    let input = open_lines(path, replay.selects_all())?;
    let mut output = ReplayOutput::open(replay, selection)?;
    let label = path.display().to_string();
    let replayed = match &mut output {
        ReplayOutput::Alerts(lines) => replay_cases(input, &label, selection, &replay.case, lines),
        ReplayOutput::Timeline { writer, .. } => replay_cases(input, &label, selection, &replay.case, writer),
    };
    let replayed = match replayed {
        Ok(replayed) => replayed,
        Err(error) => {
            output.flush_incomplete()?;
            return Err(error.into());
        }
    };
    output.finish(&replayed)?;
    if replayed.bookkeeping > 0 {
        let n = grouped(replayed.bookkeeping);
        note!("{n} lines of a tape's account passed over (define, source, progress, quarantine)");
    }
    if !replay.output.json {
        print_counters(&replayed)?;
    }
    explain(selection, &replayed);
    Ok(CommandOutcome::Clean)
}

pub(super) fn replay_tape(dir: &Path, selection: &ScenarioSelection, replay: &ReplayArgs) -> output::Result {
    let events = replay.events()?;
    output::print_hot_notice(dir);
    let mut output = ReplayOutput::open(replay, selection)?;
    let watched = match replay_part(dir, selection, &events, replay.read, &mut output) {
        Ok(watched) => watched,
        Err(failure) => {
            output.flush_incomplete()?;
            return Err(failure);
        }
    };
    let replayed = watched.summary();
    output.finish(&replayed)?;
    if !replay.output.json {
        print_counters(&replayed)?;
    }
    explain(selection, &replayed);
    finish_replay(&watched, dir)
}

/// Opens a file of events, or stdin. Fails if the options choose a part, which only a tape has.
pub(super) fn open_lines(path: &Path, selects_all: bool) -> Result<Box<dyn BufRead>, CommandFailure> {
    if !selects_all {
        let options = "--from, --to, --since, --until, --symbols, --venue and --kind";
        let message = format!("{}: {options} choose a part of a tape, and this is none", path.display());
        return Err(CommandFailure::Usage(message));
    }
    Ok(match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(BufReader::with_capacity(1 << 16, open_file(path)?)),
    })
}

/// Replays a part of a tape.
pub(super) fn replay_part(
    dir: &Path,
    selection: &ScenarioSelection,
    events: &EventSelection,
    read: ReadArgs,
    observer: &mut impl TapeObserver,
) -> Result<Surveillance, CommandFailure> {
    let mut surveillance = open_part(dir, selection, events, read)?;
    loop {
        let outcome = surveillance.step_observed(|event, seq, names| observer.on_event(event, seq, names))?;
        match outcome {
            SurveilOutcome::Frame(alerts) => alerts.iter().try_for_each(|alert| observer.on_alert(alert))?,
            SurveilOutcome::AtEnd => return Ok(surveillance),
            // The scenarios have seen events that the tape does not have any more.
            SurveilOutcome::Rewound { from, to } => {
                return Err(unitape_tape::Error::Rewound { from, to }.into());
            }
        }
    }
}

/// Opens a part of a tape, and reports if retention has removed some of it.
fn open_part(
    dir: &Path,
    selection: &ScenarioSelection,
    events: &EventSelection,
    read: ReadArgs,
) -> Result<Surveillance, CommandFailure> {
    let surveillance = Surveillance::open(dir, selection, events, read.options())?;
    if events.range.from.is_none() && !surveillance.is_complete() {
        note!(
            "unitape: retention has removed what is before event {}: the scenarios have not seen it",
            grouped(surveillance.follower().reader().ordinal() + 1)
        );
    } else if !surveillance.is_complete() {
        range_args::print_removed(&events.range, surveillance.follower());
    }
    Ok(surveillance)
}

/// Reports unknown names and flaws of the tape after a replay.
pub(super) fn finish_replay(watched: &Surveillance, dir: &Path) -> output::Result {
    if let Some(filter) = watched.filter() {
        let names = watched.watch().names.dictionary();
        unknown_names(filter.names(), names).for_each(|unknown| note!("unitape: {unknown}"));
    }
    let outcome = match outcome_of_refused(watched, dir) {
        CommandOutcome::Clean if watched.is_complete() => CommandOutcome::Clean,
        _ => CommandOutcome::Flawed,
    };
    let outcome = read_args::finish_flaws(watched.follower().flaws(), outcome);
    read_args::finish(watched.reader(), watched.lost_names(), outcome)
}

/// Says of a replay without alerts what was looked for, in how much.
fn explain(selection: &ScenarioSelection, replayed: &ReplaySummary) {
    if replayed.alerts > 0 {
        return;
    }
    let events = grouped(replayed.events);
    match &selection.scenarios[..] {
        [] => {
            let count = scenario_count(unitape_watch::scenarios::ALL.len());
            note!("unitape: no alerts: {count} over {events} events");
        }
        some => {
            let (count, names) = (scenario_count(some.len()), some.join(", "));
            note!("unitape: no alerts: {count} over {events} events: {names}");
        }
    }
}

/// Returns a number of scenarios in words.
pub(super) fn scenario_count(count: usize) -> String {
    format!("{count} scenario{}", if count == 1 { "" } else { "s" })
}
