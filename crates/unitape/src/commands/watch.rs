//! `unitape watch`: surveillance over events.

use super::range_args::{self, RangeArgs};
use super::read_args::{self, ReadArgs};
use crate::output::{
    self, CommandFailure, CommandOutcome, grouped, note, open_file, plain, read_text, say, say_to,
};
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use unitape_run::follow::TapeRange;
use unitape_run::surveil::{LiveControl, LiveReport, SurveilOutcome, Surveillance, watch_live};
use unitape_watch::{
    Alert, ParamDef, ParamOverlay, ReplaySummary, ScenarioDef, ScenarioSelection, replay_jsonl,
};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    #[command(subcommand)]
    command: WatchCommand,
}

#[derive(Debug, clap::Subcommand)]
enum WatchCommand {
    /// Follow a tape and put the alerts of scenarios onto a tape of their own
    #[command(after_help = "Examples:
  unitape watch run tape --alerts alerts
  unitape watch run tape --alerts alerts --until-end --json
  unitape tape cat alerts --json --follow

The watch waits for the tape, follows it while it is written, and prints each new alert. Alerts of one event are one unit. An alert \
names the watched tape, the number and position of its event, the version of the scenario and the hash of its parameters, its key \
and its evidence.

Stop and restart it at any time: it judges the tape from the oldest event again, compares the alerts with those in DIR, and appends \
the rest. DIR is then the same as that of a watch that never stopped. Other scenarios or parameters need another directory. A tape \
whose beginning retention has removed is refused: set hold_for_cursors where the tape has limits.

With --json each alert is one object, as `unitape watch replay` prints it. The last line has the totals: \
{\"totals\": {\"events\", \"alerts\", \"appended\"}}, and counters where something may have kept an alert back.

Exit code 3: the tape is damaged, its names are lost, its beginning is gone, all messages of an instrument are in quarantine, or DIR \
has alerts that it does not give.")]
    Run {
        /// Directory of the tape to watch
        tape: PathBuf,
        /// Directory of the alert tape that the watch makes or continues
        #[arg(long, value_name = "DIR")]
        alerts: PathBuf,
        #[command(flatten)]
        selection: SelectionArgs,
        /// End when all is read and nobody writes the tape
        #[arg(long)]
        until_end: bool,
        /// Look for the next event without a pause; this uses a core
        #[arg(long)]
        spin: bool,
        /// Print alerts as JSON, one object a line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Run scenarios over recorded events: JSON Lines, or a tape
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

A tape is compared with its checksums as it is read. Exit code 3 when something is damaged or cannot be checked, or when all
messages of an instrument are in quarantine; the
alerts are those of what was read before it, and with --skip-damage also after it.")]
    Replay {
        /// EVENTS.jsonl, `-` for stdin, or the directory of a tape
        input: PathBuf,
        #[command(flatten)]
        selection: SelectionArgs,
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

/// Which scenarios run, with which parameters.
#[derive(Debug, Default, clap::Args)]
struct SelectionArgs {
    /// Only this scenario; may be repeated [default: all]
    #[arg(long)]
    scenario: Vec<String>,
    /// Parameters: JSON text or a file
    #[arg(long, value_name = "FILE.toml|JSON")]
    params: Option<String>,
}

impl SelectionArgs {
    /// Reads the parameters.
    fn parse(self) -> Result<ScenarioSelection, CommandFailure> {
        let mut selection = ScenarioSelection { scenarios: self.scenario, ..ScenarioSelection::default() };
        let single = selection.single();
        selection.command_line = match self.params.as_deref() {
            None => ParamOverlay::default(),
            Some(text) if text.trim_start().starts_with('{') => ParamOverlay::parse(text, single)?,
            Some(path) => {
                let text = read_text(Path::new(path)).map_err(|e| {
                    e.with_subject("--params is no JSON text, which begins with a brace, and no file")
                })?;
                ParamOverlay::parse(&text, single)
                    .map_err(|e| CommandFailure::from(e).into_configured().with_subject(path))?
            }
        };
        Ok(selection)
    }
}

/// Runs the command.
pub fn run(args: WatchArgs) -> output::Result {
    match args.command {
        WatchCommand::Run { tape, alerts, selection, until_end, spin, json, read } => {
            let output = LiveOutput { until_end, spin, json };
            run_live(&tape, &alerts, &selection.parse()?, read, output)
        }
        WatchCommand::Replay { input, selection, json, range, read } => {
            let selection = selection.parse()?;
            if input.is_dir() {
                replay_tape(&input, &selection, json, range.parse()?, read)
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

/// How a live watch ends, waits and prints.
#[derive(Clone, Copy, Debug)]
struct LiveOutput {
    until_end: bool,
    spin: bool,
    json: bool,
}

fn run_live(
    tape: &Path,
    alerts: &Path,
    selection: &ScenarioSelection,
    read: ReadArgs,
    LiveOutput { until_end, spin, json }: LiveOutput,
) -> output::Result {
    if tape.is_file() {
        let what = "this is a file; `unitape watch replay` reads files, and `unitape consolidate` makes a tape of one";
        return Err(CommandFailure::Usage(format!("{}: {what}", tape.display())));
    }
    let stop = output::stop_flag()?;
    output::print_hot_notice(tape);
    let control = LiveControl {
        is_stopped: &|| stop.load(Ordering::Relaxed),
        is_finished: &|| match unitape_tape::tape_status(tape) {
            Ok(status) => Ok(until_end && !status.live),
            // A tape that is not there yet is not finished.
            Err(unitape_tape::Error::NotATape { .. }) => Ok(false),
            Err(e) => Err(e.into()),
        },
        spin,
        on_missing: &|| note!("unitape: waiting for a tape in {}", tape.display()),
    };
    let mut out = output::stdout();
    let mut line = Vec::new();
    let report = watch_live(tape, alerts, selection, read.options(), &control, |alert, is_new| {
        if is_new {
            line.clear();
            write_alert(&mut line, alert, None, json);
            out.write_all(&line)?;
            out.flush()?;
        }
        Ok::<(), CommandFailure>(())
    })?;
    let Some(LiveReport { surveillance, totals }) = report else { return Ok(CommandOutcome::Clean) };
    let summary = surveillance.summary();
    if json {
        let mut last = json!({
            "totals": { "events": summary.events, "alerts": totals.events, "appended": totals.appended }
        });
        if let Some(Value::Object(counters)) = counters(&summary) {
            last.as_object_mut().expect("an object").extend(counters);
        }
        writeln!(out, "{last}")?;
        out.flush()?;
    } else {
        print_counters(&summary)?;
        let (alerts_there, appended) = (grouped(totals.events), grouped(totals.appended));
        say!("{}: {alerts_there} alerts, {appended} of them new", alerts.display());
    }
    let done = outcome_of_refused(&surveillance, tape);
    let done = read_args::finish_flaws(surveillance.follower().flaws(), done);
    read_args::finish(surveillance.reader(), surveillance.lost_names(), done)
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
    let ran: Vec<&str> = match &selection.scenarios[..] {
        [] => unitape_watch::scenarios::ALL.iter().map(|e| e.def.id).collect(),
        chosen => chosen.iter().map(String::as_str).collect(),
    };
    let scenarios = if ran.len() == 1 { "scenario" } else { "scenarios" };
    let events = grouped(replayed.events);
    note!("unitape: no alerts: {} {scenarios} over {events} events: {}", ran.len(), ran.join(", "));
}

fn replay_tape(
    dir: &Path,
    selection: &ScenarioSelection,
    json: bool,
    range: TapeRange,
    read: ReadArgs,
) -> output::Result {
    let mut out = output::stdout();
    let mut line = Vec::new();
    output::print_hot_notice(dir);
    let watched = replay_part(dir, selection, range, read, |alert| {
        line.clear();
        write_alert(&mut line, alert, None, json);
        Ok(out.write_all(&line)?)
    });
    // Also the alerts of the events before damage.
    out.flush()?;
    let watched = watched?;
    let replayed = watched.summary();
    if !json {
        print_counters(&replayed)?;
    } else if let Some(counters) = counters(&replayed) {
        writeln!(out, "{counters}")?;
        out.flush()?;
    }
    explain(selection, &replayed);
    let done = match outcome_of_refused(&watched, dir) {
        CommandOutcome::Clean if watched.is_complete() => CommandOutcome::Clean,
        _ => CommandOutcome::Flawed,
    };
    let done = read_args::finish_flaws(watched.follower().flaws(), done);
    read_args::finish(watched.reader(), watched.lost_names(), done)
}

/// Flawed where all messages of an instrument, or all there are, are in quarantine, which it says.
fn outcome_of_refused(watched: &Surveillance, dir: &Path) -> CommandOutcome {
    let watch = watched.watch();
    let names: Vec<&str> = watch.refused_instruments().collect();
    let unnamed = watch.nothing_but_refused(watched.summary().events);
    if names.is_empty() && unnamed == 0 {
        return CommandOutcome::Clean;
    }
    let what = match &names[..] {
        [] => format!("all {} messages are in quarantine", grouped(unnamed)),
        [one] => format!("all messages of {one} are in quarantine"),
        [first, ..] => format!(
            "all messages of {} instruments are in quarantine, of {first} among them",
            grouped(names.len() as u64)
        ),
    };
    note!("unitape: the scenarios have not seen: {what}; see: unitape quarantine list {}", dir.display());
    CommandOutcome::Flawed
}

/// Replays the tape in `dir` from its oldest frame to its present end.
pub fn watch_tape(
    dir: &Path,
    selection: &ScenarioSelection,
    sink: impl FnMut(&Alert) -> Result<(), CommandFailure>,
) -> Result<ReplaySummary, CommandFailure> {
    let watched = replay_part(dir, selection, TapeRange::default(), ReadArgs::default(), sink)?;
    Ok(watched.summary())
}

/// Replays a part of a tape, with or without checks.
fn replay_part(
    dir: &Path,
    selection: &ScenarioSelection,
    range: TapeRange,
    read: ReadArgs,
    mut sink: impl FnMut(&Alert) -> Result<(), CommandFailure>,
) -> Result<Surveillance, CommandFailure> {
    let mut surveillance = Surveillance::open(dir, selection, range, read.options())?;
    if range.from.is_none() && !surveillance.is_complete() {
        note!(
            "unitape: retention has removed what is before event {}: the scenarios have not seen it",
            grouped(surveillance.follower().reader().ordinal() + 1)
        );
    } else if !surveillance.is_complete() {
        range_args::print_removed(&range, surveillance.follower());
    }
    loop {
        match surveillance.step()? {
            SurveilOutcome::Frame(alerts) => alerts.iter().try_for_each(&mut sink)?,
            SurveilOutcome::AtEnd => return Ok(surveillance),
            // The scenarios have seen events that the tape does not have any more.
            SurveilOutcome::Rewound { from, to } => {
                return Err(unitape_tape::Error::Rewound { from, to }.into());
            }
        }
    }
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
