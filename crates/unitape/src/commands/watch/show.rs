//! `unitape watch show`.

use super::ScenarioArgs;
use super::detail::{names_evidence, value_text};
use super::line::key_value_text;
use super::list::recorded_json;
use crate::commands::evidence::{books_json, evidence_line_json, print_books, print_evidence_line};
use crate::commands::read_args::{self, ReadArgs};
use crate::commands::tape::utc;
use crate::output::{self, CommandFailure, CommandOutcome, note, say_to};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use unitape_case::evidence::{AlertEvidence, EvidenceLine, EvidenceTape};
use unitape_feed::archive::{EventOrigin, SourceArchive, SourceFault};
use unitape_run::alert_reader::{AlertReader, AlertTapeContent};
use unitape_run::tape_content::require_alert_tape;
use unitape_tape::TapeId;
use unitape_watch::{ParamOverlay, RecordedAlert, ScenarioDef, ScenarioParams, ScenarioSelection, scenarios};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Directory of the alert tape
    alerts: PathBuf,
    /// The number of the alert on the alert tape
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    number: u64,
    /// Directory of the tape that was watched
    #[arg(long)]
    tape: PathBuf,
    /// Directory with the files that the tape was made of, or with a directory of them for each feed
    #[arg(long, value_name = "DIR")]
    sources: Option<PathBuf>,
    /// The parameters of the watch: JSON text or a file
    #[arg(long, value_name = "FILE.toml|JSON")]
    params: Option<String>,
    /// Levels of each side of a book
    #[arg(long, value_name = "N", default_value_t = 5)]
    depth: usize,
    /// Print as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command.
pub fn run(args: &ShowArgs) -> output::Result {
    let read = args.read.options();
    output::print_hot_notice(&args.alerts);
    require_alert_tape(&args.alerts, read)?;
    let mut alert_tape = AlertReader::open(&args.alerts, read)?;
    let recorded = find_alert(&mut alert_tape, args)?;
    let rules = AlertRules::of(&recorded, args.params.as_deref())?;
    output::print_hot_notice(&args.tape);
    let mut tape = EvidenceTape::open(&args.tape, read)?;
    require_source(&tape, &recorded, args.number)?;
    let mut evidence = tape.evidence(&recorded.alert, args.depth)?;
    let mut messages = Vec::new();
    if let Some(dir) = &args.sources {
        tape.learn_hashes(&mut evidence)?;
        let mut archive = SourceArchive::new(dir);
        messages = ShownMessage::read_all(&evidence.events, &mut archive, args.json);
    }
    let shown = ShownAlert { number: args.number, recorded, rules, evidence, messages };
    let mut out = output::stdout();
    if args.json {
        writeln!(out, "{}", shown.json())?;
    } else {
        shown.print(&mut out)?;
    }
    out.flush()?;
    drop(out);
    let outcome = shown.outcome();
    let outcome = read_args::finish(alert_tape.reader(), alert_tape.lost_names(), outcome)?;
    read_args::finish(tape.reader(), tape.lost_names(), outcome)
}

fn find_alert(alert_tape: &mut AlertReader, args: &ShowArgs) -> Result<RecordedAlert, CommandFailure> {
    let (number, dir) = (args.number, args.alerts.display());
    match alert_tape.record_from(number)? {
        Some(record) if record.number == number => match record.content {
            AlertTapeContent::Alert(recorded) => Ok(recorded),
            AlertTapeContent::Note(note) => {
                Err(CommandFailure::Usage(format!("{dir}: record {number} is no alert but a note: {note}")))
            }
        },
        _ => Err(CommandFailure::Usage(format!("{dir}: no alert {number}; see: unitape watch list {dir}"))),
    }
}

/// Fails if the alert is of another tape.
fn require_source(tape: &EvidenceTape, recorded: &RecordedAlert, number: u64) -> Result<(), CommandFailure> {
    if recorded.source_tape == Some(tape.id().0) {
        return Ok(());
    }
    let source = recorded
        .source_tape
        .map_or_else(|| "names no watched tape".to_owned(), |id| format!("is of the tape {}", TapeId(id)));
    let message = format!("this is the tape {}, and alert {number} {source}", tape.id());
    Err(CommandFailure::Data(format!("{}: {message}", tape.dir().display())))
}

/// The rules that gave an alert, as far as they are known.
struct AlertRules {
    /// None if this build has no such scenario.
    def: Option<&'static ScenarioDef>,
    params: Option<(ParamOrigin, ScenarioParams)>,
}

/// Where the parameters of an alert are known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParamOrigin {
    Defaults,
    CommandLine,
}

impl ParamOrigin {
    const fn name(self) -> &'static str {
        match self {
            Self::Defaults => "defaults",
            Self::CommandLine => "params",
        }
    }
}

impl AlertRules {
    /// Returns the rules of an alert. The parameters are the defaults or `given`, whichever have the hash in the alert.
    fn of(recorded: &RecordedAlert, given: Option<&str>) -> Result<Self, CommandFailure> {
        let id = &*recorded.alert.scenario;
        let given = given.map(|text| parse_params(text, id)).transpose()?;
        let Ok(def) = scenarios::find(id) else { return Ok(Self { def: None, params: None }) };
        let defaults = (ParamOrigin::Defaults, ParamOverlay::default());
        let overlays = given.map(|given| (ParamOrigin::CommandLine, given)).into_iter().chain([defaults]);
        let mut params = None;
        for (origin, overlay) in overlays {
            let selection =
                ScenarioSelection { command_line: overlay.clone(), ..ScenarioSelection::of(&[id]) };
            let rules = selection.rules()?;
            if rules.scenarios.iter().any(|rules| Some(&rules.params_hash) == recorded.params_hash.as_ref()) {
                params = Some((origin, ScenarioParams::resolve(def, &[&overlay])));
            }
        }
        Ok(Self { def: Some(def), params })
    }
}

/// Reads `--params` as the watch took it: for all its scenarios, or for this one alone.
fn parse_params(text: &str, id: &str) -> Result<ParamOverlay, CommandFailure> {
    let parse = |scenario: Vec<String>| {
        ScenarioArgs { scenario, params: Some(text.to_owned()), calendar: None }.parse()
    };
    let selection = parse(Vec::new()).or_else(|_| parse(vec![id.to_owned()]))?;
    Ok(selection.command_line)
}

/// The source bytes of an evidence event as they are printed, or why there are none.
enum ShownMessage {
    Message {
        path: PathBuf,
        is_framed: bool,
        /// Text, or hexadecimal digits; cut if it is for people.
        text: String,
        is_hex: bool,
    },
    Fault(SourceFault),
    /// The tape names no source.
    WithoutSource,
    /// The event is not on the tape.
    WithoutEvent,
}

impl ShownMessage {
    /// Returns the message of each event. Reads each file forward.
    fn read_all(lines: &[EvidenceLine], archive: &mut SourceArchive, json: bool) -> Vec<Self> {
        let origin_of = |line: &EvidenceLine| line.event.as_ref().ok().and_then(|event| event.origin.clone());
        let mut order: Vec<(usize, EventOrigin)> =
            lines.iter().enumerate().filter_map(|(index, line)| Some((index, origin_of(line)?))).collect();
        order.sort_by(|(_, a), (_, b)| (&a.feed, &a.file, a.offset).cmp(&(&b.feed, &b.file, b.offset)));
        let without_origin = |line: &EvidenceLine| match line.event {
            Ok(_) => Self::WithoutSource,
            Err(_) => Self::WithoutEvent,
        };
        let mut messages: Vec<Self> = lines.iter().map(without_origin).collect();
        for (index, origin) in order {
            messages[index] = Self::read(&origin, archive, json);
        }
        messages
    }

    fn read(origin: &EventOrigin, archive: &mut SourceArchive, json: bool) -> Self {
        let message = match archive.message(origin) {
            Ok(message) => message,
            Err(fault) => return Self::Fault(fault),
        };
        let (path, is_framed, bytes) = (message.path, message.is_framed, message.bytes);
        let is_hex = std::str::from_utf8(&bytes).is_err();
        let text = match String::from_utf8(bytes) {
            Ok(text) if json => text,
            Ok(text) => bytes_text(text.as_bytes()),
            Err(error) if json => hex_text(error.as_bytes()),
            Err(error) => bytes_text(error.as_bytes()),
        };
        Self::Message { path, is_framed, text, is_hex }
    }

    fn print(&self, out: &mut impl Write, origin: Option<&EventOrigin>) -> Result<(), CommandFailure> {
        let offset = origin.map_or(0, |origin| origin.offset);
        match self {
            Self::Message { path, is_framed, text, .. } => {
                let path = path.display();
                let end = if *is_framed { "" } else { " and following" };
                say_to!(*out, "{INDENT}{path}, byte {offset}{end}: {text}");
            }
            Self::Fault(fault) => say_to!(*out, "{INDENT}{fault}"),
            Self::WithoutSource => say_to!(*out, "{INDENT}the tape names no source of this event"),
            Self::WithoutEvent => {}
        }
        Ok(())
    }

    fn add_to(&self, value: &mut Value) {
        match self {
            Self::Message { path, is_framed, text, is_hex } => {
                value["path"] = path.display().to_string().into();
                value["is_framed"] = (*is_framed).into();
                value[if *is_hex { "hex" } else { "text" }] = text.as_str().into();
            }
            Self::Fault(fault) => value["missing"] = fault.to_string().into(),
            Self::WithoutSource => value["missing"] = "the tape names no source of this event".into(),
            Self::WithoutEvent => {}
        }
    }
}

/// All that is shown of an alert.
struct ShownAlert {
    number: u64,
    recorded: RecordedAlert,
    rules: AlertRules,
    evidence: AlertEvidence,
    /// Of each evidence event; empty without a directory of sources.
    messages: Vec<ShownMessage>,
}

impl ShownAlert {
    fn json(&self) -> Value {
        let mut value = recorded_json(self.number, &self.recorded);
        let AlertRules { def, params } = &self.rules;
        value["title"] = def.map(|def| def.title).into();
        value["rule"] = def.map(|def| def.trigger).into();
        value["clarified"] = def.map(|def| def.clarified).into();
        value["regulation"] = def.map(|def| def.regulation.clone()).into();
        value["has_same_rule"] = self.has_same_rule().into();
        let parameters = params.as_ref().zip(*def).map(|((_, params), def)| {
            let parameter = |p: &unitape_watch::ParamDef| {
                json!({ "name": p.name, "value": params.value(p.name), "unit": p.unit, "about": p.description })
            };
            def.params.iter().map(parameter).collect::<Vec<_>>()
        });
        value["parameters"] = parameters.into();
        value["parameters_from"] = params.as_ref().map(|(origin, _)| origin.name()).into();
        let events = self.evidence.events.iter().enumerate().map(|(n, line)| {
            let mut value = evidence_line_json(line);
            let origin = line.event.as_ref().ok().and_then(|event| event.origin.as_ref());
            if let Some(EventOrigin { feed, file, format, offset, .. }) = origin {
                value["source"] = json!({ "feed": feed, "file": file, "format": format, "offset": offset });
            }
            if let Some(message) = self.messages.get(n) {
                message.add_to(&mut value["source"]);
            }
            value
        });
        value["evidence"] = events.collect();
        value["books"] = books_json(&self.evidence);
        value["without_books"] = self.evidence.without_books.clone().into();
        value
    }

    fn print(&self, out: &mut impl Write) -> Result<(), CommandFailure> {
        let RecordedAlert { alert, rule_version, .. } = &self.recorded;
        let (time, scenario, trigger) = (utc(alert.ts.0), &alert.scenario, alert.trigger_seq);
        say_to!(*out, "alert {}: {time}  {scenario}, event {trigger}", self.number);
        match self.rules.def {
            None => say_to!(*out, "this build has no scenario {scenario}"),
            Some(def) => {
                say_to!(*out, "{}: {}", def.title, def.trigger);
                if !def.clarified.is_empty() {
                    say_to!(*out, "{}", def.clarified);
                }
            }
        }
        if let (Some(version), Some(false)) = (rule_version, self.has_same_rule()) {
            say_to!(
                *out,
                "these are the words of this build; the alert follows the version {version} of them"
            );
        }
        say_to!(*out, "key:");
        for (name, value) in &alert.key {
            say_to!(*out, "    {name} {}", key_value_text(value));
        }
        self.print_params(out)?;
        say_to!(*out, "detail:");
        for (name, value) in alert.detail.as_object().into_iter().flatten() {
            if !names_evidence(name) {
                say_to!(*out, "    {name} {}", value_text(name, value));
            }
        }
        say_to!(*out, "evidence:");
        for (n, line) in self.evidence.events.iter().enumerate() {
            print_evidence_line(out, line)?;
            if let Some(message) = self.messages.get(n) {
                message.print(out, line.event.as_ref().ok().and_then(|event| event.origin.as_ref()))?;
            }
        }
        print_books(out, trigger, &self.evidence)
    }

    fn print_params(&self, out: &mut impl Write) -> Result<(), CommandFailure> {
        let hash = self.recorded.params_hash.as_deref().unwrap_or("-");
        let AlertRules { def: Some(def), params: Some((origin, params)) } = &self.rules else {
            say_to!(
                *out,
                "measured against thresholds that are not known: their hash is {hash}; give the parameters of the watch \
                 with --params"
            );
            return Ok(());
        };
        let origin_text = match origin {
            ParamOrigin::Defaults => "the defaults",
            ParamOrigin::CommandLine => "those of --params",
        };
        say_to!(*out, "measured against thresholds, {origin_text}:");
        for param in &def.params {
            let value = params.value(param.name);
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            say_to!(*out, "    {} = {value} {}: {}", param.name, param.unit, param.description);
        }
        Ok(())
    }

    /// Returns whether the alert follows the definition of this build; `None` if that is not known.
    fn has_same_rule(&self) -> Option<bool> {
        Some(self.rules.def?.version() == *self.recorded.rule_version.as_ref()?)
    }

    /// Prints what is missing; gives how the command ends if nothing else is wrong.
    fn outcome(&self) -> CommandOutcome {
        let mut outcome = CommandOutcome::Clean;
        if self.evidence.events.iter().any(|line| line.event.is_err()) {
            note!("unitape: some evidence is not on the tape any more");
            outcome = CommandOutcome::Flawed;
        }
        let mut reasons: Vec<String> = Vec::new();
        for message in &self.messages {
            if let ShownMessage::Fault(fault) = message {
                reasons.push(fault.to_string());
            }
        }
        reasons.dedup();
        for reason in &reasons {
            note!("unitape: {reason}");
            outcome = CommandOutcome::Flawed;
        }
        outcome
    }
}

/// Returns bytes for people: text, or hexadecimal digits, cut if there are many.
fn bytes_text(bytes: &[u8]) -> String {
    let (text, length) = match std::str::from_utf8(bytes) {
        Ok(text) => (text.chars().take(TEXT_MAX).collect::<String>(), text.chars().count()),
        Err(_) => (hex_text(&bytes[..bytes.len().min(TEXT_MAX / 2)]), bytes.len() * 2),
    };
    match length.saturating_sub(TEXT_MAX) {
        0 => text,
        more => format!("{text} … and {more} more characters"),
    }
}

fn hex_text(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        _ = write!(text, "{byte:02x}");
        text
    })
}

/// The blanks under the number of an event.
const INDENT: &str = "           ";
/// The longest text of a message, in characters.
const TEXT_MAX: usize = 4_096;
