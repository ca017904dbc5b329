//! `unitape demo`: sample feeds onto a tape, watched and replayed, with a summary that explains itself.
//!
//! The demo is a list of this program's commands. It makes the feeds, runs the commands, and compares what they print with the
//! truth that the generators give.
//!
//! | module | holds |
//! |---|---|
//! | `demo_directory` | the directory, which is the demo's own or refused |
//! | `commands` | the list of commands, run as a user would run them |
//! | `feeds` | the feeds, and the table of what each must become |
//! | `depth` | one of these: market data in FAST, by lines that lose packets |
//! | `overview` | the content of the tape, in one pass |
//! | `market_data` | what tape and handler have of the market data |
//! | `answers` | best prices of banks, cases of the alerts, rows from a server |
//! | `check` | whether these are the expected results |
//! | `report`, `layout` | the summary, for people and as data |
//! | `desk` | the alerts as cases, in a browser |

mod answers;
mod check;
mod commands;
mod demo_directory;
mod depth;
mod desk;
mod feeds;
mod layout;
mod market_data;
mod overview;
mod report;

use crate::commands::serve::ListenArgs;
use crate::output::{self, CommandFailure, CommandOutcome, note};
use answers::DemoAnswers;
use check::{DemoCheck, ExplainedAlert, number};
use commands::CommandRunner;
use demo_directory::DemoDirectory;
use feeds::WrittenFeeds;
use market_data::MarketDataResults;
use overview::TapeOverview;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use unitape_run::alert_tape;
use unitape_tape::ReadOptions;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape demo
  unitape demo --seconds 20 --dir demo
  unitape demo --desk
  unitape demo --json

No network, no configuration. The made feeds are the same on every machine: 100,000 messages of order flow, 20,000 events of a simulated day and 10,000 messages of an exchange's market data for each of the N seconds that the demo may take. Exit code 0 means that the demo's own checks hold; the messages in quarantine are broken on purpose.")]
pub struct DemoArgs {
    /// About how long it may take; 130,000 messages for each second
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=300))]
    seconds: u64,
    /// Where the feeds and the tape go: a new, empty or earlier demo's directory [default: unitape-demo in the
    /// system's temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Then serve the desk, a page on which the alerts are cases, until stopped
    #[arg(long)]
    desk: bool,
    #[command(flatten)]
    listen: ListenArgs,
    /// Print everything as one JSON object; with --desk a second one has its address and accounts
    #[arg(long)]
    json: bool,
}

/// All that a demo did and saw.
struct DemoResults {
    demo_dir: DemoDirectory,
    written: WrittenFeeds,
    /// What `unitape tape info` prints.
    info: Value,
    overview: TapeOverview,
    alerts: Vec<ExplainedAlert>,
    /// How many of the alerts the live watch had raised before the tape was done.
    early: usize,
    /// For each label of the simulated day, and then for each planted wash trade of the order flow, its place in `alerts`.
    matched: Vec<Option<usize>>,
    market_data: MarketDataResults,
    /// What `unitape store info` prints of each day.
    days: Vec<Value>,
    answers: DemoAnswers,
    quarantine: Vec<Value>,
    reasons: BTreeMap<String, u64>,
    times: PhaseTimes,
    checks: Vec<DemoCheck>,
    /// The commands that it has run.
    commands: Vec<String>,
}

/// How long each part took, in seconds.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
struct PhaseTimes {
    make_s: f64,
    consolidate_s: f64,
    replay_s: f64,
    seal_s: f64,
    check_s: f64,
    total_s: f64,
}

/// Runs the command.
pub fn run(args: DemoArgs) -> output::Result {
    let stop = output::stop_flag()?;
    let story = run_demo(&args, &stop)?;
    if args.json {
        output::print_json(&report::json(&story))?;
    } else {
        report::print(&story)?;
    }
    let failed_checks: Vec<&DemoCheck> = story.checks.iter().filter(|c| !c.holds()).collect();
    if failed_checks.is_empty() {
        return match args.desk {
            true => desk::serve(&story.demo_dir, &args.listen, &stop, args.json),
            false => Ok(CommandOutcome::Clean),
        };
    }
    for check in failed_checks {
        note!("  not so: {}", check.what);
        check.differs.iter().take(DIFFERENCES_SHOWN).for_each(|line| note!("    {line}"));
        if let Some(differences_left_out) =
            check.differs.len().checked_sub(DIFFERENCES_SHOWN).filter(|n| *n > 0)
        {
            note!("    and {differences_left_out} more");
        }
    }
    Err(CommandFailure::Error("the demo does not hold; this must not happen, please report it".to_owned()))
}

fn run_demo(args: &DemoArgs, stop: &AtomicBool) -> Result<DemoResults, CommandFailure> {
    let started = Instant::now();
    let demo_dir = DemoDirectory::prepare(args.dir.as_deref())?;
    let mut commands = CommandRunner::new(&demo_dir, stop);
    let mut times = PhaseTimes::default();
    let written_feeds = feeds::write_feeds(&demo_dir, &mut commands, args.seconds, stop)?;
    times.make_s = started.elapsed().as_secs_f64();

    let started_at = Instant::now();
    let consolidation = commands.start_command("consolidate")?;
    let watch = commands.start_command("watch")?;
    commands.finish(consolidation)?;
    let early = commands.output_text("watch")?.lines().filter(|line| line.starts_with(ALERT)).count();
    commands.finish(watch)?;
    times.consolidate_s = started_at.elapsed().as_secs_f64();

    let started_at = Instant::now();
    commands.run(&["replay", "books", "best", "handler"])?;
    let is_alert = |line: &Value| line["scenario"].is_string();
    let mut live_alerts = commands.lines("watch")?;
    let live_totals = live_alerts.pop().unwrap_or_default();
    let mut replayed = commands.lines("replay")?;
    replayed.retain(is_alert);
    let recorded = alert_tape::read_alerts(&demo_dir.path("alerts"), ReadOptions::default())?;
    let recorded = recorded.iter().map(|recorded| {
        let mut line = Vec::new();
        recorded.alert.write_json(&mut line, None);
        serde_json::from_slice(&line)
    });
    let recorded = recorded.collect::<Result<Vec<Value>, _>>()?;
    let mut replay_differs = check::alert_differences("live", &live_alerts, &replayed);
    replay_differs.extend(check::alert_differences("on the alert tape", &recorded, &replayed));
    times.replay_s = started_at.elapsed().as_secs_f64();

    let started_at = Instant::now();
    commands.run(&["seal"])?;
    let mut sealed_differ = commands.compare_outputs(["sealed", "taped"])?;
    commands.run(&["days", "sealed_status", "status", "sealed_bbo", "sealed_trades"])?;
    sealed_differ
        .extend(check::sealed_differences(commands.lines("sealed_status")?, commands.lines("status")?));
    times.seal_s = started_at.elapsed().as_secs_f64();

    let started_at = Instant::now();
    commands.run(&["info", "verify", "quarantine"])?;
    let mut positions: Vec<u64> = live_alerts.iter().flat_map(ExplainedAlert::positions_of).collect();
    positions.sort_unstable();
    let overview = overview::read_overview(&demo_dir.path("tape"), &positions)?;
    let alerts: Vec<_> =
        live_alerts.into_iter().map(|alert| ExplainedAlert::new(alert, &overview.events)).collect();
    let scenes: Vec<&Value> = written_feeds.labels.iter().chain(&written_feeds.planted).collect();
    let (matched, alerts_differ) = check::match_scenes(&scenes, &alerts);
    let market_data = market_data::read_results(&commands, &written_feeds.depth)?;
    let quarantine = commands.lines("quarantine")?;
    let (mut reasons, mut flow_reasons) = (BTreeMap::new(), BTreeMap::new());
    for entry in &quarantine {
        let reason = entry["reason"].as_str().unwrap_or("?");
        *reasons.entry(reason.to_owned()).or_insert(0) += 1;
        if !market_data::is_from_exchange(entry) {
            *flow_reasons.entry(reason.to_owned()).or_insert(0) += 1;
        }
    }
    let info = commands.last_object("info")?;
    let mut accounts =
        check::account_differences(&info["account"]["by_feed"], &overview, &written_feeds.counts);
    accounts.extend(market_data::undamaged_messages(&written_feeds.depth, &quarantine));
    let on_tape: u64 = overview.by_feed.values().flat_map(BTreeMap::values).sum();
    let run_events = number(&commands.last_object("consolidate")?["events"]);
    let (tape_events, watched_events) =
        (number(&info["account"]["events"]), number(&live_totals["totals"]["events"]));
    if run_events != tape_events || watched_events != on_tape {
        accounts.push(format!(
            "{run_events} events by the run, {tape_events} by the account; {watched_events} met by the live watch, {on_tape} on \
             the tape"
        ));
    }
    let instrument = overview.books.first().map_or("", |book| book.instr.as_str());
    let answers = answers::ask_tapes(&demo_dir, &mut commands, alerts.len() as u64, instrument)?;
    let truth = &written_feeds.truth;
    let books = &written_feeds.depth.books;
    let mut depths = market_data::book_differences(books, "the tape", &market_data.tape);
    depths.extend(market_data::book_differences(books, "the handler", &market_data.handler));
    let problems = commands.last_object("verify")?["problems"].take();
    let problems = problems.as_array().into_iter().flatten().map(Value::to_string).collect();
    let checks = [
        ("every planted manipulation is found, with its evidence, and nothing else", alerts_differ),
        (
            "no near miss is in any alert's evidence",
            check::near_miss_alerts(&written_feeds.near_misses, &alerts),
        ),
        ("the live watch put on its tape the alerts that a replay gives", replay_differs),
        ("every message and every byte is accounted for, kind by kind", accounts),
        ("quarantine holds what was broken, by reason", check::reasons(truth, &flow_reasons)),
        ("the last best prices are those of the books", check::last_bbo(&truth.bbo, &overview.books)),
        ("the depth of every instrument is the exchange's own, level by level", depths),
        (
            "what the lines lost is known, packet by packet, and every book is mended",
            market_data::line_differences(&written_feeds.depth.came, &market_data),
        ),
        ("the tape is intact, checksums and all", problems),
        ("the sealed days hold what stands on the tape, event by event", sealed_differ),
        (
            "a data server gives the same rows to who may read them, and nothing to a stranger",
            answers.served_differs.clone(),
        ),
        (
            "the best prices of eight pairs at twenty banks are the banks' own, line by line",
            answers.prices_differ.clone(),
        ),
        ("every alert is in a case, once", answers.cases_differ.clone()),
        ("a plot from Python, where it is installed, has the rows of the tape", answers.plot_differs.clone()),
    ];
    let days = commands.last_object("days")?["days"].as_array().cloned().unwrap_or_default();
    times.check_s = started_at.elapsed().as_secs_f64();
    times.total_s = started.elapsed().as_secs_f64();
    Ok(DemoResults {
        commands: commands.started_commands,
        demo_dir,
        written: written_feeds,
        info,
        overview,
        alerts,
        early,
        matched,
        market_data,
        days,
        answers,
        quarantine,
        reasons,
        times,
        checks: checks.map(|(what, differs)| DemoCheck { what, differs }).into(),
    })
}

/// How a line of `unitape watch` with an alert begins.
const ALERT: &str = r#"{"scenario":"#;
const DIFFERENCES_SHOWN: usize = 8;
