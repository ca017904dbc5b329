//! `unitape mapping`: is it right, and what does it make of a sample.

mod explain_text;

use crate::output::{self, CommandFailure, CommandOutcome, file_failure, grouped, say};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use unitape_feed::mapping::{FieldHint, MessageExplanation, RuleLocation};
use unitape_feed::{ConsolidateOptions, FileFeed, Format, Mapping, consolidate, explain, quarantine};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct MappingArgs {
    #[command(subcommand)]
    command: MappingCommand,
}

#[derive(Debug, clap::Subcommand)]
enum MappingCommand {
    /// Check a mapping; with a sample, explain what becomes of its messages
    #[command(after_help = "Examples:
  unitape mapping check mine.toml
  unitape mapping check fix44-orders orders.fix
  unitape mapping check mine.toml orders.fix --messages 20
  unitape mapping check mine.toml orders.fix --json | head -n 1

Errors name the file and the line.

With a sample, the command prints the account, and explains one message for each rule and for each reason of quarantine. The explanation names the rule that decided, and why the rules before it did not. It lists each event, and for each field its tag, column or path, its raw value, the table that translated it, and the value on the tape. The command leaves no files behind. Exit code 3 when messages would go into quarantine.

Without a sample, the command prints a hint for each value that the mapping keeps under the name of a field.")]
    Check {
        /// A mapping file, or the name of a shipped one
        file: String,
        /// A file of messages to try it on; `-` is stdin
        sample: Option<PathBuf>,
        /// Explain the first N messages [default: one of each sort; with --json all]
        #[arg(long, value_name = "N")]
        messages: Option<u64>,
        /// Print as JSON: a line for each message, and at last the account
        #[arg(long)]
        json: bool,
    },
    /// List the shipped mappings
    #[command(after_help = "Example:\n  unitape mapping list")]
    List,
    /// Print a shipped mapping, or with --layout its layout or templates, as a start for your own
    #[command(
        after_help = "Examples:\n  unitape mapping show fix44-orders > mine.toml\n  unitape mapping show nyse-taq-trades --layout > my-layout.toml"
    )]
    Show {
        /// The name of a shipped mapping
        name: String,
        /// The layout or templates it names
        #[arg(long)]
        layout: bool,
    },
}

/// Runs the command.
pub fn run(args: MappingArgs) -> output::Result {
    match args.command {
        MappingCommand::List => {
            for m in Mapping::all_built_in() {
                say!("{:24} {:6} {}", m.name, m.format, m.title);
            }
            Ok(CommandOutcome::Clean)
        }
        MappingCommand::Check { file, sample: Some(sample), messages, json } => {
            let mapping = Mapping::load(&file)?;
            let scratch = ScratchDirectory::new()?;
            try_on(mapping, &scratch.0, &sample, messages, json)
        }
        MappingCommand::Check { file, sample: None, json, .. } => {
            let mapping = Mapping::load(&file)?;
            let holds = mapping.fast_summary()?;
            // A hint is for who can change the file.
            let shipped = Mapping::built_in(&file).is_some();
            let hints = if shipped { Vec::new() } else { mapping.field_hints() };
            if json {
                let mut value = serde_json::json!({"mapping": mapping.name, "ok": true});
                if let Some(holds) = &holds {
                    value["fast"] = serde_json::to_value(holds)?;
                }
                if !hints.is_empty() {
                    value["hints"] = serde_json::to_value(&hints)?;
                }
                output::print_json(&value)?;
            } else if let Some(holds) = &holds {
                for line in explain_text::describe_handler(&mapping.name, holds) {
                    say!("{line}");
                }
            } else {
                say!("{}: ok, {} rules", mapping.name, mapping.rule.len());
                for FieldHint { name, kind, path, line } in &hints {
                    say!(
                        "  line {line}: `{name}` is a field of `{kind}`: write `{name} = \"{path}\"` in fields, not in keep"
                    );
                }
            }
            Ok(CommandOutcome::Clean)
        }
        MappingCommand::Show { name, layout } => show_mapping(&name, layout),
    }
}

fn show_mapping(name: &str, layout: bool) -> output::Result {
    let Some(mapping) = Mapping::built_in(name) else {
        let mapping_names = Mapping::all_built_in().map(|mapping| mapping.name.as_str());
        return Err(output::refuse_name(name, "shipped mapping", "mappings", mapping_names));
    };
    // To begin one of your own with: as they are.
    let print = |text: &str| output::unbuffered().write_all(format!("{}\n", text.trim_end()).as_bytes());
    if !layout {
        print(&mapping.text)?;
        return Ok(CommandOutcome::Clean);
    }
    let texts = mapping.layout_text.iter().map(|(text, _)| text);
    let texts: Vec<_> = texts.chain(mapping.template_texts.iter().map(|(_, text)| text)).collect();
    if texts.is_empty() {
        return Err(CommandFailure::Usage(format!("--layout: {name} names neither layout nor templates")));
    }
    for text in texts {
        print(text)?;
    }
    Ok(CommandOutcome::Clean)
}

fn try_on(
    mapping: Mapping,
    scratch: &Path,
    sample: &Path,
    messages: Option<u64>,
    json: bool,
) -> output::Result {
    // It is read twice; what can be read only once is written down first.
    let copied = scratch.join("stdin");
    let sample = if sample.as_os_str() == "-" {
        let copy = || std::io::copy(&mut std::io::stdin().lock(), &mut std::fs::File::create(&copied)?);
        copy().map_err(|e| file_failure(&copied, e))?;
        &copied
    } else {
        sample
    };
    let format = Format::from_mapping(mapping)?;
    let feed = FileFeed { name: "sample".to_owned(), format: format.clone(), files: vec![sample.to_owned()] };
    let tape = scratch.join("tape");
    let outcome =
        consolidate(&tape, ConsolidateOptions { feeds: vec![feed], ..ConsolidateOptions::default() })?;
    let entries = quarantine::list(&tape)?;
    let s = &outcome.summary;
    if json {
        let mut out = output::stdout();
        let fired = explain_sample(&format, sample, |explanation, _| {
            if messages.is_none_or(|most| explanation.n < most) {
                serde_json::to_writer(&mut out, explanation).map_err(std::io::Error::from)?;
                out.write_all(b"\n")?;
            }
            Ok(())
        })?;
        out.flush()?;
        drop(out);
        let mut value = serde_json::to_value(s)?;
        value["quarantine"] = serde_json::to_value(&entries)?;
        value["rules"] = fired
            .iter()
            .map(|(p, n)| serde_json::json!({"rule": p.number, "line": p.line, "messages": n}))
            .collect();
        output::print_json(&value)?;
    } else {
        say!(
            "{} messages: {} ignored, {} quarantined, {} duplicates, the rest became {} events",
            grouped(s.messages),
            grouped(s.ignored),
            grouped(s.quarantined),
            grouped(s.duplicates),
            grouped(s.events)
        );
        for (kind, n) in &s.by_kind {
            say!("  {kind:14} {}", grouped(*n));
        }
        for e in entries.iter().take(10) {
            say!("  at byte {}: {}: {}", e.offset, e.reason, e.detail);
        }
        if entries.len() > 10 {
            say!("  … and {} more", entries.len() - 10);
        }
        let mut sorts = BTreeSet::new();
        let fired = explain_sample(&format, sample, |explanation, rule| {
            let wanted = match messages {
                Some(most) => explanation.n < most,
                None => {
                    let reason = explanation.quarantined.as_ref().map(|w| w.reason.clone());
                    let kind = explanation.events.first().filter(|_| rule.is_none()).map(|e| e.kind);
                    sorts.len() < SORTS_MAX && sorts.insert((rule, explanation.outcome, reason, kind))
                }
            };
            if wanted {
                say!("");
                for line in explain_text::explain_message(explanation) {
                    say!("{line}");
                }
            }
            Ok(())
        })?;
        if !fired.is_empty() {
            say!("");
            say!("messages by the rule that decided:");
        }
        for (location, n) in &fired {
            say!("  rule {:<3} line {:<5} {}", location.number, location.line, grouped(*n));
        }
    }
    Ok(if s.quarantined > 0 { CommandOutcome::Flawed } else { CommandOutcome::Clean })
}

/// Explains the sample and counts how often each rule decided.
fn explain_sample(
    format: &Format,
    sample: &Path,
    mut each: impl FnMut(&MessageExplanation, Option<RuleLocation>) -> Result<(), CommandFailure>,
) -> Result<BTreeMap<RuleLocation, u64>, CommandFailure> {
    let mut fired: BTreeMap<RuleLocation, u64> = BTreeMap::new();
    let mut failure = None;
    let rules = explain(format, sample, |explanation| {
        if let Some(location) = explanation.rule {
            *fired.entry(location).or_default() += 1;
        }
        match each(&explanation, explanation.rule) {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => {
                failure = Some(e);
                ControlFlow::Break(())
            }
        }
    })?;
    rules.into_iter().for_each(|location| _ = fired.entry(location).or_default());
    failure.map_or(Ok(fired), Err)
}

/// The most kinds of messages that are shown if none are named.
const SORTS_MAX: usize = 20;

/// A directory that nobody else has, and that goes with this: files of a killed check must not be mistaken for ours.
struct ScratchDirectory(PathBuf);

impl ScratchDirectory {
    fn new() -> Result<Self, CommandFailure> {
        let base = std::env::temp_dir();
        let mut n = 0u32;
        loop {
            let dir = base.join(format!("unitape-mapping-check-{}-{n}", std::process::id()));
            match std::fs::create_dir(&dir) {
                Ok(()) => return Ok(Self(dir)),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && n < u32::MAX => n += 1,
                Err(e) => return Err(file_failure(&dir, e)),
            }
        }
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // Files left over are temporary by name and place.
        _ = std::fs::remove_dir_all(&self.0);
    }
}
