//! `unitape watch`: surveillance over events.

mod detail;
mod line;
mod list;
mod page;
mod quality;
mod replay;
mod replay_output;
mod show;
mod timeline;

use self::line::AlertPrinter;
use super::range_args::{OutputArgs, SelectionArgs};
use super::read_args::{self, ReadArgs};
use crate::output::{
    self, CommandFailure, CommandOutcome, Destination, grouped, note, read_text, say, say_to,
};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use unitape_query::EventSelection;
use unitape_run::surveil::{LiveControl, LiveReport, Surveillance, watch_live};
use unitape_watch::{
    Alert, ParamDef, ParamOverlay, ReplaySummary, ScenarioDef, ScenarioSelection, WatchCalendar,
};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    #[command(subcommand)]
    command: WatchCommand,
}

#[derive(Debug, clap::Subcommand)]
enum WatchCommand {
    /// Follow a tape and put alerts onto a tape of their own
    #[command(after_help = "Examples:
  unitape watch run tape --alerts alerts
  unitape watch run tape --alerts alerts --until-end --json
  unitape tape cat alerts --json --follow

The watch waits for the tape, follows it while it is written, and prints each new alert. Alerts of one event are one unit. An alert names the watched tape, the number and position of its event, the version of the scenario and the hash of its parameters, its key and its evidence.

You can stop and restart the watch at any time. It goes on at its last snapshot in DIR.state or, without one, at the oldest event; it compares the alerts with those in DIR, and appends the rest. DIR is then the same as after a watch that never stopped. Other scenarios, other parameters or another calendar need another directory. If retention has removed the beginning of the tape and there is no snapshot, the watch begins at the oldest event and puts a control `blind` with the lost part into DIR; set hold_for_cursors to prevent that. If the tape was cut back behind an alert, as a power loss may do, the alert stays, a control `source_cut` follows it, and the watch goes on.

With --json each alert is one object, as `unitape watch replay` prints it. The last line has the totals: {\"totals\": {\"events\", \"alerts\", \"appended\"}}, and counters if something may have kept an alert back.

Exit code 3: the tape is damaged, its names are lost, the watch was blind for a part of it, the tape was cut back behind an alert, all messages of an instrument are in quarantine, or DIR has alerts that this tape does not give.")]
    Run {
        /// Directory of the tape to watch
        tape: PathBuf,
        /// Directory of the alert tape that the watch makes or continues
        #[arg(long, value_name = "DIR")]
        alerts: PathBuf,
        #[command(flatten)]
        scenarios: ScenarioArgs,
        /// End when all is read and nobody writes the tape
        #[arg(long)]
        until_end: bool,
        /// Look for the next event without a pause; this uses a core
        #[arg(long)]
        spin: bool,
        /// Print alerts as JSON, one object a line
        #[arg(long)]
        json: bool,
        /// Write a snapshot of the state after each N events
        #[arg(long, value_name = "N", default_value = "4194304")]
        snapshot_every: NonZeroU64,
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Run scenarios over recorded events: JSON Lines, or a tape
    #[command(after_help = "Examples:
  unitape watch replay vectors/watch/spoofing.jsonl --json
  unitape watch replay tape --scenario wash_trade --params '{\"window_ms\": 30000}' --json
  unitape watch replay tape --since 2026-03-02T14:30 --until 2026-03-02T15:00
  unitape watch replay vectors/watch/spoofing.jsonl --scenario spoofing --case SPOOF-P1 --timeline

--case runs the named cases of a file alone. --timeline prints the events in lines instead of alert lines: time since the first event, seq, kind, party, fields. A line marked ==> follows the event that completed an alert. The margin of each event has the numbers of the alerts that name it as evidence. A timeline is text: --json is refused with it. It has 2000 events at most; --limit N makes that N.

--from, --to, --since, --until, --symbols, --venue and --kind select events of a tape, as with `unitape tape cat`. The scenarios see the selected events alone: they do not know orders, prices and references before them. --limit ends the output after N alerts.

Parameters of the command line win over those of the input's case and header. These win over the configuration, and that over the defaults. --params takes `{\"scenario\": {\"param\": value}}`, or with --scenario `{\"param\": value}`, as JSON text or as a file of JSON or TOML.

With --json the last line is {\"counters\": …} if something may have kept an alert back. It counts by scenario: alerts that the cooldown held back (held_back), events that lack a value (missing, and missing_values by value) or are too late (late), and entries dropped because memory was full (bound_hit).

A tape is compared with its checksums as it is read. Exit code 3 when it is damaged or cannot be checked: alerts are then those before the damage, and with --skip-damage also those after it. Exit code 3 also when all messages of an instrument are in quarantine.")]
    Replay {
        /// EVENTS.jsonl, `-` for stdin, or the directory of a tape
        input: PathBuf,
        #[command(flatten)]
        scenarios: ScenarioArgs,
        #[command(flatten)]
        replay: Box<ReplayArgs>,
    },
    /// List the alerts of an alert tape
    #[command(after_help = "Examples:
  unitape watch list alerts
  unitape watch list alerts --scenario spoofing --since 2026-03-02T14:30 --key owner=ACME
  unitape watch list alerts --csv -o alerts.csv

ALERTS is what `unitape watch run TAPE --alerts ALERTS` writes. The number of an alert is its number on that tape: give it to `unitape watch show`. `who` has the parties in the key of the alert, `what` the rest of the key, and `detail` the values that tell the most. --key, --venue and --symbols select by the key; of several values for one name, one must be there.

With --json each alert is one object, as `unitape watch replay` prints it, with number, trigger_position, source_tape, rule_version and params_hash. --csv has key and detail as JSON. A part of the tape that the watch has not seen, and a cut of the tape behind an alert, is a note on stderr, and with --json an object with the action `blind` or `source_cut`.

Exit code 3 when the alert tape is damaged; the alerts before the damage are printed.")]
    List(list::ListArgs),
    /// Show an alert: its rule, its values, its evidence with source bytes, and the book before and after
    #[command(after_help = "Examples:
  unitape watch show alerts 1 --tape tape
  unitape watch show alerts 1 --tape tape --sources day
  unitape watch show alerts 1 --tape tape --params '{\"min_ratio\": 10}' --json

--tape is the tape that was watched; the alert names its id. --sources is the directory with the files that the tape was made of. Bytes are printed only if the file has the hash that the tape has of it.

The parameters are printed if the alert has the hash of the defaults, or of those in --params: give it what the watch was given.

Exit code 3 when evidence is not on the tape any more, when a source file is missing or has changed, when a tape is damaged, or when it is not the tape of the alert.")]
    Show(show::ShowArgs),
    /// Report the values that the scenarios need and that events lack, by field, kind, feed and mapping
    #[command(after_help = "Examples:
  unitape watch quality tape
  unitape watch quality tape --scenario spoofing --scenario layering --since 2026-03-02 --until 2026-03-03
  unitape watch quality tape --csv -o quality.csv

A scenario cannot judge an event that lacks a value it needs: such events give no alert. Each row has the missing value, the kind of the events, the feed and the mapping that made them, how many such events there are, how many events of this kind the feed has, and the scenarios that needed the value. `ref.` before a field means the reference data of the instrument, `order` an order whose beginning is not there, `best price` a best price of the venue, `baseline` the usual values of earlier days. Events of a file have no feed.

With --json each row is one object, with the number of events by scenario; the last line has the totals. --csv has the scenarios in one column, with blanks between them.

Exit code 3 as for `unitape watch replay`; missing values alone do not change the exit code.")]
    Quality(quality::QualityArgs),
    /// Print the generated part of a scenario's page
    #[command(hide = true)]
    Page {
        /// The scenario
        id: String,
        /// Files with cases: the first case that expects an alert becomes the example
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// List the scenarios, with their exact definitions and the regulations they implement
    #[command(after_help = "Example:\n  unitape watch scenarios")]
    Scenarios {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

/// Which events are replayed, and how the alerts are printed. Alerts have no schema and no columns.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("schema", |arg| arg.hide(true)),
    mut_arg("csv", |arg| arg.hide(true)),
    mut_arg("limit", |arg| arg.help("Print at most N alerts; with --timeline, N events [default: all; with --timeline 2000]"))
)]
struct ReplayArgs {
    /// Run only the case with this id, of a file with cases; may be repeated
    #[arg(long, value_name = "ID")]
    case: Vec<String>,
    /// Print a timeline of the events with the alerts, instead of alert lines
    #[arg(long)]
    timeline: bool,
    #[command(flatten)]
    select: SelectionArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    read: ReadArgs,
}

/// Which scenarios run, with which parameters.
#[derive(Debug, Default, clap::Args)]
struct ScenarioArgs {
    /// Only this scenario; may be repeated [default: all]
    #[arg(long)]
    scenario: Vec<String>,
    /// Parameters: JSON text or a file
    #[arg(long, value_name = "FILE.toml|JSON")]
    params: Option<String>,
    /// Calendar with the session dates of venues [default: dates in UTC]
    #[arg(long, value_name = "FILE.csv")]
    calendar: Option<PathBuf>,
}

impl ReplayArgs {
    /// Refuses the options of rows.
    fn check(&self) -> Result<(), CommandFailure> {
        let refusal = match () {
            () if !self.select.schema.is_empty() => {
                "--schema prints rows, and scenarios read events: use --kind, or `unitape tape cat --schema`"
            }
            () if self.timeline && self.output.json => {
                "--timeline is text for people: use --json without it, or `unitape tape cat --json` for the events"
            }
            () if self.output.csv => "--csv prints rows, and alerts have none: use --json",
            () => return Ok(()),
        };
        Err(CommandFailure::Usage(refusal.to_owned()))
    }

    /// Returns whether the options select all events.
    fn selects_all(&self) -> bool {
        SelectionArgs { limit: None, ..self.select.clone() }.is_empty()
    }

    /// Reads the selection of events. `--limit` is a number of alerts, not of events.
    fn events(&self) -> Result<EventSelection, CommandFailure> {
        Ok(EventSelection { limit: None, ..self.select.parse()? })
    }
}

impl ScenarioArgs {
    /// Reads the parameters.
    fn parse(self) -> Result<ScenarioSelection, CommandFailure> {
        let mut selection = ScenarioSelection { scenarios: self.scenario, ..ScenarioSelection::default() };
        if let Some(path) = &self.calendar {
            let text = read_text(path)?;
            selection.calendar = WatchCalendar::parse(&text)
                .map_err(|e| CommandFailure::Error(format!("{}:{}: {}", path.display(), e.line, e.fault)))?;
        }
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
        WatchCommand::Run { tape, alerts, scenarios, until_end, spin, json, snapshot_every, read } => {
            let output = LiveOutput { until_end, spin, json, snapshot_every };
            run_live(&tape, &alerts, &scenarios.parse()?, read, output)
        }
        WatchCommand::Replay { input, scenarios, replay } => {
            replay.check()?;
            let scenarios = scenarios.parse()?;
            if input.is_dir() && !replay.case.is_empty() {
                let message = "--case chooses from a file with cases, and this is a tape";
                Err(CommandFailure::Usage(format!("{}: {message}", input.display())))
            } else if input.is_dir() {
                replay::replay_tape(&input, &scenarios, &replay)
            } else {
                replay::replay_lines(&input, &scenarios, &replay)
            }
        }
        WatchCommand::List(args) => list::run(&args),
        WatchCommand::Show(args) => show::run(&args),
        WatchCommand::Scenarios { json } => scenarios(json),
        WatchCommand::Quality(args) => quality::run(args),
        WatchCommand::Page { id, files } => page::print_page(&id, &files),
    }
}

/// How a live watch ends, waits and prints.
#[derive(Clone, Copy, Debug)]
struct LiveOutput {
    until_end: bool,
    spin: bool,
    json: bool,
    snapshot_every: NonZeroU64,
}

fn run_live(
    tape: &Path,
    alerts: &Path,
    selection: &ScenarioSelection,
    read: ReadArgs,
    LiveOutput { until_end, spin, json, snapshot_every }: LiveOutput,
) -> output::Result {
    if tape.is_file() {
        let message = "this is a file; `unitape watch replay` reads files, and `unitape consolidate` makes a tape of one";
        return Err(CommandFailure::Usage(format!("{}: {message}", tape.display())));
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
        on_snapshot_refused: &|error| {
            note!(
                "unitape: no snapshot: {error}; the watch goes on, and a restart judges {} from an earlier point",
                tape.display()
            );
        },
        on_snapshot_passed_over: &|error| {
            note!("unitape: {error}; the watch judges {} from an earlier point", tape.display());
        },
        snapshot_events: snapshot_every.get(),
    };
    let mut out = output::stdout();
    let mut line = Vec::new();
    let mut printer = AlertPrinter::new(selection, json);
    let report = watch_live(tape, alerts, selection, read.options(), &control, |alert, is_new| {
        if is_new {
            line.clear();
            printer.write(&mut line, alert, None);
            out.write_all(&line)?;
            out.flush()?;
        }
        Ok::<(), CommandFailure>(())
    })?;
    let Some(LiveReport { surveillance, totals, blind, source_cut }) = report else {
        return Ok(CommandOutcome::Clean);
    };
    let summary = surveillance.summary();
    if json {
        let mut last = json!({
            "totals": { "events": summary.events, "alerts": totals.events, "appended": totals.appended }
        });
        if let Some((from, to)) = blind {
            last["blind"] = json!({ "from": from.0, "to": to.0 });
        }
        if let Some(to) = source_cut {
            last["source_cut"] = json!({ "to": to.0 });
        }
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
    let mut outcome = outcome_of_refused(&surveillance, tape);
    if let Some((from, to)) = blind {
        note!(
            "unitape: retention has removed the events between the positions @{from} and @{to}, and no snapshot covers them: alerts \
             may be missing; {} has a control `blind` with this part",
            alerts.display()
        );
        outcome = CommandOutcome::Flawed;
    }
    if let Some(to) = source_cut {
        note!(
            "unitape: the tape was cut back to the position @{to}, behind alerts that {} has: they stay, and a control `source_cut` \
             follows them",
            alerts.display()
        );
        outcome = CommandOutcome::Flawed;
    }
    let outcome = read_args::finish_flaws(surveillance.follower().flaws(), outcome);
    read_args::finish(surveillance.reader(), surveillance.lost_names(), outcome)
}

/// Writes alerts, as many as are asked for at most.
struct AlertLines {
    line: Vec<u8>,
    printer: AlertPrinter,
    json: bool,
    left: u64,
    out: Destination,
}

impl AlertLines {
    /// Opens the destination that the options name.
    fn open(replay: &ReplayArgs, selection: &ScenarioSelection) -> Result<Self, CommandFailure> {
        let OutputArgs { json, file, .. } = &replay.output;
        let left = replay.select.limit.unwrap_or(u64::MAX);
        let printer = AlertPrinter::new(selection, *json);
        Ok(Self { line: Vec::new(), printer, json: *json, left, out: Destination::open(file.as_deref())? })
    }

    /// Writes an alert, of this case if it has one.
    fn write(&mut self, alert: &Alert, case: Option<&str>) -> std::io::Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        self.line.clear();
        self.printer.write(&mut self.line, alert, case);
        self.out.write_all(&self.line)
    }

    /// Writes the counters as the last line of JSON, and ends the output.
    fn finish(mut self, replayed: &ReplaySummary) -> Result<(), CommandFailure> {
        if let Some(counters) = counters(replayed).filter(|_| self.json) {
            writeln!(self.out, "{counters}")?;
        }
        self.out.finish()
    }
}

/// Prints the counters of anything that keeps an alert from being given.
fn print_counters(replayed: &ReplaySummary) -> Result<(), CommandFailure> {
    say!("{} events, {} alerts", grouped(replayed.events), grouped(replayed.alerts));
    for ((id, m), missing) in replayed.metrics.iter().zip(&replayed.missing) {
        let values: Vec<String> = missing
            .by_value()
            .into_iter()
            .map(|(value, n)| format!("{} {}", grouped(n), value.name()))
            .collect();
        let missing = format!("events that lack a value and cannot be judged ({})", values.join(", "));
        for (count, text) in [
            (m.held_back, "alerts held back by the cooldown"),
            (m.missing, missing.as_str()),
            (m.late, "events too late to be judged in full"),
            (m.bound_hit, "things forgotten because memory was full"),
        ] {
            if count > 0 {
                say!("{id}: {} {text}", grouped(count));
            }
        }
    }
    let shared = &replayed.shared;
    for (count, text) in [
        (shared.orders_bound_hit, "live orders forgotten because memory was full"),
        (shared.market_bound_hit, "prices and references not kept because memory was full"),
        (shared.timers_bound_hit, "timers not set because memory was full"),
        (shared.prints_bound_hit, "prints and last prices forgotten because memory was full"),
    ] {
        if count > 0 {
            say!("{} {text}", grouped(count));
        }
    }
    Ok(())
}

/// Writes the counters as one JSON object. Returns `None` if nothing was counted.
fn counters(replayed: &ReplaySummary) -> Option<Value> {
    let mut all = Map::new();
    for ((id, m), missing) in replayed.metrics.iter().zip(&replayed.missing) {
        let counts = [
            ("held_back", m.held_back),
            ("missing", m.missing),
            ("late", m.late),
            ("bound_hit", m.bound_hit),
        ];
        let counts = counts.into_iter().filter(|(_, n)| *n > 0);
        let mut counts: Map<String, Value> = counts.map(|(word, n)| (word.to_owned(), n.into())).collect();
        let values = missing.by_value().into_iter();
        let values: Map<String, Value> = values.map(|(value, n)| (value.name(), n.into())).collect();
        if !values.is_empty() {
            counts.insert("missing_values".to_owned(), values.into());
        }
        if !counts.is_empty() {
            all.insert((*id).to_owned(), counts.into());
        }
    }
    let shared = &replayed.shared;
    for (word, n) in [
        ("orders_bound_hit", shared.orders_bound_hit),
        ("market_bound_hit", shared.market_bound_hit),
        ("timers_bound_hit", shared.timers_bound_hit),
        ("prints_bound_hit", shared.prints_bound_hit),
    ] {
        if n > 0 {
            all.insert(word.to_owned(), n.into());
        }
    }
    (!all.is_empty()).then(|| json!({ "counters": all }))
}

/// Returns and reports a flawed outcome if all messages of an instrument, or all messages of the tape, are in
/// quarantine.
fn outcome_of_refused(watched: &Surveillance, dir: &Path) -> CommandOutcome {
    let watch = watched.watch();
    let names: Vec<&str> = watch.refused_instruments().collect();
    let unnamed = watch.nothing_but_refused(watched.summary().events);
    if names.is_empty() && unnamed == 0 {
        return CommandOutcome::Clean;
    }
    let message = match &names[..] {
        [] => format!("all {} messages are in quarantine", grouped(unnamed)),
        [one] => format!("all messages of {one} are in quarantine"),
        [first, ..] => format!(
            "all messages of {} instruments are in quarantine, of {first} among them",
            grouped(names.len() as u64)
        ),
    };
    note!("unitape: the scenarios have not seen: {message}; see: unitape quarantine list {}", dir.display());
    CommandOutcome::Flawed
}

fn scenarios(json: bool) -> output::Result {
    let mut out = output::stdout();
    for entry in unitape_watch::scenarios::ALL {
        let def = entry.def();
        if json {
            writeln!(out, "{}", def_json(def))?;
        } else {
            say_to!(out, "{}: {}", def.id, def.title);
            say_to!(out, "    {}; an alert is about {}", def.class.name(), def.key().join(", "));
            for p in &def.params {
                say_to!(out, "    {} = {} {}: {}", p.name, p.default, p.unit, p.description);
            }
            say_to!(out, "    {}", def.trigger);
            if !def.clarified.is_empty() {
                say_to!(out, "    {}", def.clarified);
            }
            for r in &def.regulation {
                say_to!(out, "    {r}");
            }
        }
    }
    out.flush()?;
    Ok(CommandOutcome::Clean)
}

/// Writes a definition as one JSON object. `params` gives the defaults as `--params` accepts them.
fn def_json(def: &ScenarioDef) -> Value {
    let params: Map<_, _> = def.params.iter().map(|p| (p.name.to_owned(), p.default.clone())).collect();
    let parameter = |p: &ParamDef| {
        let ParamDef { name, default, unit, param_type, description } = p;
        json!({"name": name, "default": default, "unit": unit, "wanted": param_type.wanted(), "about": description})
    };
    json!({
        "id": def.id, "title": def.title, "class": def.class.name(), "key": def.key(),
        "inputs": def.inputs,
        "trigger": def.trigger, "clarified": def.clarified, "params": params,
        "parameters": def.params.iter().map(parameter).collect::<Vec<_>>(), "regulation": def.regulation,
    })
}
