//! `unitape watch`: surveillance over events.

use super::range_args::{RangeArgs, TapeRange};
use super::read_args::{self, ReadArgs};
use crate::output::{
    self, CommandFailure, CommandOutcome, grouped, note, open_file, plain, read_text, say, say_to,
};
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use unitape_model::LostNameCounts;
use unitape_run::address::EventAddress;
use unitape_run::follow::{FollowOutcome, TapeFollower};
use unitape_watch::{
    Alert, Error, ParamDef, ParamOverlay, ReplaySummary, ScenarioDef, ScenarioSelection, TapeWatch,
    replay_jsonl,
};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    #[command(subcommand)]
    command: WatchCommand,
}

#[derive(Debug, clap::Subcommand)]
enum WatchCommand {
    /// Run scenarios over events that have been: JSON Lines, or a tape
    #[command(after_help = "Examples:
  unitape watch replay vectors/watch/spoofing.jsonl --json
  unitape watch replay tape --scenario wash_trade --params '{\"window_ms\": 30000}' --json
  unitape watch replay tape --since 2026-03-02T14:30 --until 2026-03-02T15:00

--from, --to, --since and --until choose a part of a tape, as those of `unitape tape cat` do. The scenarios see the events of
that part alone: orders, prices and references from before it are not known to them.

Parameters: the command line wins over the input's case and header, these over the configuration, that over the
defaults. `{\"scenario\": {\"param\": value}}`, or with --scenario `{\"param\": value}`; JSON text, or a file of JSON or
TOML.

With --json the last line is {\"counters\": …} where anything was counted that could have kept an alert back: by scenario
alerts held_back, events missing something or too late, things forgotten at a bound (bound_hit).

A tape is compared with its checksums as it is read. Exit code 3 when something is damaged or cannot be checked; the
alerts are those of what was read before it, and with --skip-damage also after it.")]
    Replay {
        /// EVENTS.jsonl, `-` for stdin, or the directory of a tape
        input: PathBuf,
        /// Only this scenario [default: all]
        #[arg(long)]
        scenario: Option<String>,
        /// Parameters: JSON text or a file
        #[arg(long, value_name = "FILE.toml|JSON")]
        params: Option<String>,
        /// Print alerts as JSON, one object a line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Name the scenarios, their parameters and the rules behind them
    #[command(after_help = "Example:\n  unitape watch scenarios")]
    Scenarios {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub fn run(args: WatchArgs) -> output::Result {
    match args.command {
        WatchCommand::Replay { input, scenario, params, json, range, read } => {
            let selection = selection(scenario, params.as_deref())?;
            if input.is_dir() {
                let part = TapePart { range: range.parse()?, read };
                replay_tape(&input, &selection, json, part)
            } else if range.is_empty() {
                replay_lines(&input, &selection, json)
            } else {
                let what = "--from, --to, --since and --until choose a part of a tape, and this is none";
                Err(CommandFailure::Usage(format!("{}: {what}", input.display())))
            }
        }
        WatchCommand::Scenarios { json } => scenarios(json),
    }
}

fn selection(scenario: Option<String>, params: Option<&str>) -> Result<ScenarioSelection, CommandFailure> {
    let only = scenario.as_deref();
    let command_line = match params {
        None => ParamOverlay::default(),
        Some(text) if text.trim_start().starts_with('{') => ParamOverlay::parse(text, only)?,
        Some(path) => {
            let text = read_text(Path::new(path)).map_err(|e| {
                e.with_subject("--params is no JSON text, which begins with a brace, and no file")
            })?;
            ParamOverlay::parse(&text, only)
                .map_err(|e| CommandFailure::from(e).into_configured().with_subject(path))?
        }
    };
    Ok(ScenarioSelection { scenario, command_line, ..ScenarioSelection::default() })
}

fn replay_lines(path: &Path, selection: &ScenarioSelection, json: bool) -> output::Result {
    let input: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(BufReader::with_capacity(1 << 16, open_file(path)?))
    };
    let mut out = output::stdout();
    let mut line = Vec::new();
    let label = path.display().to_string();
    let replayed = replay_jsonl(input, &label, selection, |alert, case| {
        line.clear();
        write_alert(&mut line, alert, case, json);
        out.write_all(&line)
    })?;
    if json && let Some(counters) = counters(&replayed) {
        writeln!(out, "{counters}")?;
    }
    out.flush()?;
    if replayed.bookkeeping > 0 {
        let n = grouped(replayed.bookkeeping);
        note!("{n} lines of a tape's account passed over (define, source, progress, quarantine)");
    }
    if !json {
        print_counters(&replayed)?;
    }
    explain(selection, &replayed);
    Ok(CommandOutcome::Clean)
}

/// Prints the counters of anything that keeps an alert from being given.
fn print_counters(replayed: &ReplaySummary) -> Result<(), CommandFailure> {
    say!("{} events, {} alerts", grouped(replayed.events), grouped(replayed.alerts));
    for (id, m) in &replayed.metrics {
        for (count, what) in [
            (m.held_back, "alerts held back by the cooldown"),
            (m.missing, "events that say too little to be judged"),
            (m.late, "events too late to be judged in full"),
            (m.bound_hit, "things forgotten because memory was full"),
        ] {
            if count > 0 {
                say!("{id}: {} {what}", grouped(count));
            }
        }
    }
    let shared = &replayed.shared;
    for (count, what) in [
        (shared.orders_bound_hit, "live orders forgotten because memory was full"),
        (shared.market_bound_hit, "prices and references not kept because memory was full"),
        (shared.timers_bound_hit, "timers not set because memory was full"),
    ] {
        if count > 0 {
            say!("{} {what}", grouped(count));
        }
    }
    Ok(())
}

/// The counters as one JSON object; none when nothing was counted.
fn counters(replayed: &ReplaySummary) -> Option<Value> {
    let mut all = Map::new();
    for (id, m) in &replayed.metrics {
        let counts = [
            ("held_back", m.held_back),
            ("missing", m.missing),
            ("late", m.late),
            ("bound_hit", m.bound_hit),
        ];
        let counts = counts.into_iter().filter(|(_, n)| *n > 0);
        let counts: Map<String, Value> = counts.map(|(word, n)| (word.to_owned(), n.into())).collect();
        if !counts.is_empty() {
            all.insert((*id).to_owned(), counts.into());
        }
    }
    let shared = &replayed.shared;
    for (word, n) in [
        ("orders_bound_hit", shared.orders_bound_hit),
        ("market_bound_hit", shared.market_bound_hit),
        ("timers_bound_hit", shared.timers_bound_hit),
    ] {
        if n > 0 {
            all.insert(word.to_owned(), n.into());
        }
    }
    (!all.is_empty()).then(|| json!({ "counters": all }))
}

/// Says of a replay without alerts what was looked for, in how much.
fn explain(selection: &ScenarioSelection, replayed: &ReplaySummary) {
    if replayed.alerts > 0 {
        return;
    }
    let ran: Vec<&str> = match &selection.scenario {
        Some(scenario) => vec![scenario],
        None => unitape_watch::scenarios::ALL.iter().map(|e| e.def.id).collect(),
    };
    let scenarios = if ran.len() == 1 { "scenario" } else { "scenarios" };
    let events = grouped(replayed.events);
    note!("unitape: no alerts: {} {scenarios} over {events} events: {}", ran.len(), ran.join(", "));
}

/// What of a tape is read, and how.
#[derive(Clone, Copy, Debug, Default)]
struct TapePart {
    range: TapeRange,
    read: ReadArgs,
}

/// A watch that has seen its part of a tape.
struct WatchedPart {
    replayed: ReplaySummary,
    /// It knows the skipped damage.
    follower: TapeFollower,
    names: LostNameCounts,
    /// Retention has left all of what was asked for.
    is_whole: bool,
}

fn replay_tape(dir: &Path, selection: &ScenarioSelection, json: bool, part: TapePart) -> output::Result {
    let mut out = output::stdout();
    let mut line = Vec::new();
    output::print_hot_notice(dir);
    let watched = watch_part(dir, selection, part, |alert| {
        line.clear();
        write_alert(&mut line, alert, None, json);
        Ok(out.write_all(&line)?)
    });
    // Also what came before damage.
    out.flush()?;
    let WatchedPart { replayed, follower, names, is_whole } = watched?;
    if !json {
        print_counters(&replayed)?;
    } else if let Some(counters) = counters(&replayed) {
        writeln!(out, "{counters}")?;
        out.flush()?;
    }
    explain(selection, &replayed);
    let done = if is_whole { CommandOutcome::Clean } else { CommandOutcome::Flawed };
    read_args::finish(follower.reader(), names, done)
}

/// Watches the tape in `dir` from its oldest frame to where it ends now.
pub fn watch_tape(
    dir: &Path,
    selection: &ScenarioSelection,
    sink: impl FnMut(&Alert) -> Result<(), CommandFailure>,
) -> Result<ReplaySummary, CommandFailure> {
    watch_part(dir, selection, TapePart::default(), sink).map(|watched| watched.replayed)
}

/// Watches a part of a tape, with or without checks.
fn watch_part(
    dir: &Path,
    selection: &ScenarioSelection,
    part: TapePart,
    mut sink: impl FnMut(&Alert) -> Result<(), CommandFailure>,
) -> Result<WatchedPart, CommandFailure> {
    let TapePart { range, read } = part;
    let mut watch = TapeWatch::new(selection)?;
    let (mut follower, names) = read.follow(dir)?;
    watch.names = names;
    let is_whole = range.seek(&mut follower, &mut watch.names)?;
    let mut skipped = range.times.and_then(|times| follower.keep_times(times));
    let (mut replayed, mut alerts) = (ReplaySummary::default(), Vec::new());
    loop {
        let (ordinal, frame) = match follower.step()? {
            FollowOutcome::Frame { ordinal, frame } => (ordinal, frame),
            FollowOutcome::AtEnd => break,
            // The scenarios have seen what the tape does not have any more.
            FollowOutcome::Rewound { from, to } => {
                return Err(unitape_tape::Error::Rewound { from, to }.into());
            }
        };
        let (position, seq) = (frame.position, ordinal + 1);
        let place = EventAddress { seq, position };
        if range.is_over(place) {
            break;
        }
        if let Some(skipped) = &mut skipped {
            skipped.learn_before(&frame, &mut watch.names)?;
        }
        let is_meta = frame.header.is_meta();
        if !is_meta && !range.has(place, &frame) {
            continue;
        }
        replayed.events += u64::from(!is_meta);
        match watch.on_frame(position, frame.bytes, seq, &mut alerts) {
            Err(Error::Frame { message, .. }) => follower.refuse(position, &message)?,
            other => other?,
        }
        for alert in alerts.drain(..) {
            replayed.alerts += 1;
            sink(&alert)?;
        }
    }
    replayed.add_counters(&watch.watch);
    let names = watch.names.lost_names();
    Ok(WatchedPart { replayed, follower, names, is_whole })
}

fn write_alert(line: &mut Vec<u8>, alert: &Alert, case: Option<&str>, json: bool) {
    if json {
        alert.write_json(line, case);
    } else {
        let case = case.map(|c| format!("{c}: ")).unwrap_or_default();
        let key: Vec<String> = alert.key.iter().map(|(k, v)| format!("{k} {v}")).collect();
        let when = super::tape::utc(alert.ts.0);
        let text = format!(
            "{case}{when}  {}  {}  event {}  {}",
            alert.scenario,
            key.join(", "),
            alert.trigger_seq,
            alert.detail
        );
        line.extend_from_slice(plain(&text).as_bytes());
    }
    line.push(b'\n');
}

fn scenarios(json: bool) -> output::Result {
    let mut out = output::stdout();
    for def in unitape_watch::scenarios::ALL.iter().map(|e| e.def) {
        if json {
            writeln!(out, "{}", def_json(def))?;
        } else {
            say_to!(out, "{}: {}", def.id, def.title);
            say_to!(out, "    {}; an alert is about {}", def.class.name(), def.key.join(", "));
            for p in def.params {
                say_to!(out, "    {} = {} {}: {}", p.name, p.default, p.unit, p.about);
            }
            say_to!(out, "    {}", def.trigger);
            if !def.clarified.is_empty() {
                say_to!(out, "    {}", def.clarified);
            }
            for r in def.regulation {
                say_to!(out, "    {r}");
            }
        }
    }
    out.flush()?;
    Ok(CommandOutcome::Clean)
}

/// A definition as one JSON object; `params` gives the defaults as `--params` accepts them.
fn def_json(def: &ScenarioDef) -> Value {
    let default = |p: &ParamDef| serde_json::from_str(p.default).unwrap_or_else(|_| Value::from(p.default));
    let params: Map<_, _> = def.params.iter().map(|p| (p.name.to_owned(), default(p))).collect();
    let parameter = |p: &ParamDef| {
        let ParamDef { name, unit, sort, about, .. } = p;
        json!({"name": name, "default": default(p), "unit": unit, "wanted": sort.wanted(), "about": about})
    };
    json!({
        "id": def.id, "title": def.title, "class": def.class.name(), "key": def.key,
        "inputs": def.inputs.iter().map(|kind| kind.name()).collect::<Vec<_>>(),
        "trigger": def.trigger, "clarified": def.clarified, "params": params,
        "parameters": def.params.iter().map(parameter).collect::<Vec<_>>(), "regulation": def.regulation,
    })
}
