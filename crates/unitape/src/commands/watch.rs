//! `unitape watch`: surveillance over events.

use crate::output::{self, Done, Failure, grouped, say};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use unitape_tape::{Reader, Start};
use unitape_watch::{Alert, Def, Overlay, Param, Replayed, Selection, TapeWatch, replay_jsonl};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Run scenarios over events that have been: JSON Lines, or a tape
    #[command(after_help = "Examples:
  unitape watch replay vectors/watch/spoofing.jsonl --json
  unitape watch replay tape --scenario wash_trade --params '{\"window_ms\": 30000}' --json

Parameters: the command line wins over the input's case and header, these over the configuration, that over the
defaults. `{\"scenario\": {\"param\": value}}`, or with --scenario `{\"param\": value}`; JSON text, or a file of JSON or
TOML.")]
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
pub fn run(args: Args) -> output::Result {
    match args.command {
        Command::Replay { input, scenario, params, json } => {
            let selection = selection(scenario, params.as_deref())?;
            if input.is_dir() {
                replay_tape(&input, &selection, json)
            } else {
                replay_lines(&input, &selection, json)
            }
        }
        Command::Scenarios { json } => scenarios(json),
    }
}

fn selection(scenario: Option<String>, params: Option<&str>) -> Result<Selection, Failure> {
    let only = scenario.as_deref();
    let command_line = match params {
        None => Overlay::default(),
        Some(text) if text.trim_start().starts_with('{') => Overlay::parse(text, only)?,
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|e| Failure::Error(format!("--params {path}: {e} (JSON text begins with `{{`)")))?;
            Overlay::parse(&text, only).map_err(|e| Failure::Error(format!("{path}: {e}")))?
        }
    };
    Ok(Selection { scenario, command_line, ..Selection::default() })
}

fn replay_lines(path: &Path, selection: &Selection, json: bool) -> output::Result {
    let input: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let file = File::open(path).map_err(|e| Failure::Error(format!("{}: {e}", path.display())))?;
        Box::new(BufReader::with_capacity(1 << 16, file))
    };
    let mut out = output::stdout();
    let mut line = Vec::new();
    let label = path.display().to_string();
    let replayed = replay_jsonl(input, &label, selection, |alert, case| {
        line.clear();
        write_alert(&mut line, alert, case, json);
        out.write_all(&line)
    })?;
    out.flush()?;
    if !json {
        tell(&replayed)?;
    }
    Ok(Done::Clean)
}

/// What was counted, as far as it matters: whatever keeps an alert from being given.
fn tell(replayed: &Replayed) -> Result<(), Failure> {
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

fn replay_tape(dir: &Path, selection: &Selection, json: bool) -> output::Result {
    let mut out = output::stdout();
    let mut line = Vec::new();
    let replayed = watch_tape(dir, selection, |alert| {
        line.clear();
        write_alert(&mut line, alert, None, json);
        Ok(out.write_all(&line)?)
    })?;
    out.flush()?;
    if !json {
        tell(&replayed)?;
    }
    Ok(Done::Clean)
}

/// Watches the tape in `dir` from its oldest frame to where it ends now.
pub fn watch_tape(
    dir: &Path,
    selection: &Selection,
    mut sink: impl FnMut(&Alert) -> Result<(), Failure>,
) -> Result<Replayed, Failure> {
    let mut reader = Reader::open(dir, Start::Oldest)?;
    let mut watch = TapeWatch::new(selection)?;
    let (mut replayed, mut alerts) = (Replayed::default(), Vec::new());
    loop {
        let seq = reader.ordinal() + 1;
        let Some(frame) = reader.next()? else { break };
        replayed.events += u64::from(!frame.header.is_meta());
        watch.on_frame(frame.position, frame.bytes, seq, &mut alerts)?;
        for alert in alerts.drain(..) {
            replayed.alerts += 1;
            sink(&alert)?;
        }
    }
    replayed.add_counters(&watch.watch);
    Ok(replayed)
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
        line.extend_from_slice(text.as_bytes());
    }
    line.push(b'\n');
}

fn scenarios(json: bool) -> output::Result {
    let mut out = output::stdout();
    for def in unitape_watch::scenarios::ALL.iter().map(|e| e.def) {
        if json {
            writeln!(out, "{}", def_json(def))?;
        } else {
            writeln!(out, "{}: {}", def.id, def.title)?;
            writeln!(out, "    {}; an alert is about {}", def.class.name(), def.key.join(", "))?;
            for p in def.params {
                writeln!(out, "    {} = {} {}: {}", p.name, p.default, p.unit, p.about)?;
            }
            writeln!(out, "    {}", def.trigger)?;
            if !def.clarified.is_empty() {
                writeln!(out, "    {}", def.clarified)?;
            }
            for r in def.regulation {
                writeln!(out, "    {r}")?;
            }
        }
    }
    out.flush()?;
    Ok(Done::Clean)
}

/// A definition as one JSON object; `params` gives the defaults as `--params` takes them.
fn def_json(def: &Def) -> Value {
    let default = |p: &Param| serde_json::from_str(p.default).unwrap_or_else(|_| Value::from(p.default));
    let params: Map<_, _> = def.params.iter().map(|p| (p.name.to_owned(), default(p))).collect();
    let told = |p: &Param| {
        let Param { name, unit, sort, about, .. } = p;
        json!({"name": name, "default": default(p), "unit": unit, "wanted": sort.wanted(), "about": about})
    };
    json!({
        "id": def.id, "title": def.title, "class": def.class.name(), "key": def.key,
        "inputs": def.inputs.iter().map(|kind| kind.name()).collect::<Vec<_>>(),
        "trigger": def.trigger, "clarified": def.clarified, "params": params,
        "parameters": def.params.iter().map(told).collect::<Vec<_>>(), "regulation": def.regulation,
    })
}
