//! `unitape demo`: sample feeds onto a tape, watched and replayed, with a summary that explains itself.
//!
//! | module | holds |
//! |---|---|
//! | `demo_directory` | the directory, which is the demo's own or refused |
//! | `samples` | real feeds, and a plain count of what they hold |
//! | `feeds` | all feeds: those, and three made ones whose truth is known |
//! | `depth` | one of these: market data in FAST, by lines that lose packets |
//! | `live` | the watch that follows the tape while it is written |
//! | `tape_overview` | the content of the tape, in one pass |
//! | `market_data_results` | what tape and handler have of the market data |
//! | `sealed_days` | the tape's days, sealed and read back |
//! | `answers` | best prices of banks, cases of the alerts, a case on paper |
//! | `check` | whether these are the expected results |
//! | `report`, `market_data`, `layout` | the summary, for people and as data |
//! | `desk` | the alerts as cases, in a browser |

mod answers;
mod check;
mod demo_directory;
mod depth;
mod desk;
mod feeds;
mod layout;
mod live;
mod market_data;
mod market_data_results;
mod report;
mod samples;
mod sealed_days;
mod served;
mod tape_overview;

use crate::commands::serve::ListenArgs;
use crate::commands::{consolidate, watch};
use crate::output::{self, CommandFailure, CommandOutcome, note};
use answers::DemoAnswers;
use check::DemoCheck;
use demo_directory::DemoDirectory;
use depth::DEPTH;
use feeds::WrittenFeeds;
use live::LiveWatchResult;
use market_data_results::MarketDataResults;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use tape_overview::{ExplainedAlert, TapeOverview};
use unitape_feed::quarantine::QuarantineEntry;
use unitape_feed::{AccountSummary, ConsolidateOptions, FarmEnding, RunOutcome, TapeAccount};
use unitape_run::alert_tape;
use unitape_tape::ReadOptions;
use unitape_watch::{Alert, ScenarioSelection};

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
    workers: usize,
    written: WrittenFeeds,
    summary: AccountSummary,
    picture: TapeOverview,
    live: LiveWatchResult,
    explained_alerts: Vec<ExplainedAlert>,
    /// For each planted wash trade of the order flow, its place in `found`.
    matched: Vec<Option<usize>>,
    /// For each label of the simulated day, its place in `found`.
    labelled: Vec<Option<usize>>,
    market_data: MarketDataResults,
    days: unitape_store::StoreSummary,
    /// Rows of them that were read back from a data server.
    served_rows: u64,
    answers: DemoAnswers,
    quarantine: Vec<QuarantineEntry>,
    reasons: BTreeMap<String, u64>,
    tape: unitape_tape::TapeSummary,
    times: PhaseTimes,
    checks: Vec<DemoCheck>,
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
    let story = act(&args, &stop)?;
    if args.json {
        output::print_json(&report::json(&story))?;
    } else {
        report::print(&story)?;
    }
    let failed: Vec<&DemoCheck> = story.checks.iter().filter(|c| !c.holds()).collect();
    if failed.is_empty() {
        return match args.desk {
            true => desk::serve(&story.demo_dir, &args.listen, &stop, args.json),
            false => Ok(CommandOutcome::Clean),
        };
    }
    for check in failed {
        note!("  not so: {}", check.what);
        check.differs.iter().take(DIFFERENCES_SHOWN).for_each(|line| note!("    {line}"));
        if let Some(more) = check.differs.len().checked_sub(DIFFERENCES_SHOWN).filter(|n| *n > 0) {
            note!("    and {more} more");
        }
    }
    Err(CommandFailure::Error("the demo does not hold; this must not happen, please report it".to_owned()))
}

fn act(args: &DemoArgs, stop: &AtomicBool) -> Result<DemoResults, CommandFailure> {
    let started = Instant::now();
    let demo_dir = DemoDirectory::prepare(args.dir.as_deref())?;
    let tape = demo_dir.tape();
    let workers = unitape_run::cores();
    let mut times = PhaseTimes::default();

    let written = feeds::write(&demo_dir, args.seconds, stop)?;
    times.make_s = started.elapsed().as_secs_f64();

    let from = Instant::now();
    let options = ConsolidateOptions {
        feeds: written.feeds.clone(),
        workers,
        stop: Some(stop),
        ..ConsolidateOptions::default()
    };
    let (outcome, live): (RunOutcome, LiveWatchResult) =
        live::watch_while(&tape, &demo_dir.alerts(), || Ok(consolidate::run_with_progress(&tape, options)?))?;
    times.consolidate_s = from.elapsed().as_secs_f64();
    if outcome.ending == FarmEnding::Stopped {
        return Err(CommandFailure::Error("stopped".to_owned()));
    }

    let from = Instant::now();
    let mut replayed: Vec<Alert> = Vec::new();
    watch::watch_tape(&tape, &ScenarioSelection::default(), |alert| {
        replayed.push(alert.clone());
        Ok(())
    })?;
    let recorded = alert_tape::read_alerts(&demo_dir.alerts(), ReadOptions::default())?;
    let recorded: Vec<Alert> = recorded.into_iter().map(|recorded| recorded.alert).collect();
    let mut replay_differs = check::alerts("live", &live.alerts, &replayed);
    replay_differs.extend(check::alerts("on the alert tape", &recorded, &replayed));
    times.replay_s = from.elapsed().as_secs_f64();

    let from = Instant::now();
    // From the tape alone: what the run itself has counted is then compared with it.
    let account = TapeAccount::load(&tape)?;
    let summary = account.summary();
    let picture = tape_overview::read_overview(&tape, &account)?;
    let explained_alerts = tape_overview::evidence(&tape, &account, &live.alerts)?;
    let (labelled, mut alerts_differ) = check::labels(&written.market.labels, &explained_alerts);
    // The remaining alerts must be the wash trades of the order flow, and nothing else.
    let left: Vec<usize> = (0..explained_alerts.len()).filter(|n| !labelled.contains(&Some(*n))).collect();
    let rest: Vec<ExplainedAlert> = left.iter().map(|n| explained_alerts[*n].clone()).collect();
    let (matched, rest_differs) = check::scenes(&written.truth.planted, &rest);
    let matched: Vec<_> = matched.into_iter().map(|index| index.map(|n| left[n])).collect();
    alerts_differ.extend(rest_differs);
    let market_data = market_data_results::read_results(&tape, &account, &written.depth)?;
    let quarantine = unitape_feed::quarantine::list(&tape)?;
    let (mut reasons, mut of_flow) = (BTreeMap::new(), BTreeMap::new());
    for entry in &quarantine {
        *reasons.entry(entry.reason.clone()).or_insert(0) += 1;
        if !market_data_results::is_from_exchange(entry) {
            *of_flow.entry(entry.reason.clone()).or_insert(0) += 1;
        }
    }
    let sizes = sizes(&written)?;
    let mut accounts = check::account(&summary, &picture, &written.counted, &sizes, &[DEPTH]);
    let size = sizes.get(DEPTH).copied().unwrap_or(0);
    accounts.extend(market_data_results::account(
        summary.by_feed.get(DEPTH),
        size,
        &written.depth,
        &quarantine,
    ));
    if outcome.summary.events != summary.events || live.events != summary.by_kind.values().sum::<u64>() {
        accounts.push(format!(
            "{} events by the run, {} by the tape, {} frames of events met by the live watch",
            outcome.summary.events, summary.events, live.events
        ));
    }
    let since = Instant::now();
    let sealed = sealed_days::seal_and_compare(&demo_dir)?;
    times.seal_s = since.elapsed().as_secs_f64();
    let served = served::read_back(&demo_dir)?;
    let busiest = picture.books.iter().max_by_key(|book| book.changes);
    let instrument = busiest.map_or("", |book| book.instr.as_str());
    let answers = answers::ask(&demo_dir, live.alerts.len(), instrument)?;
    let truth = &written.truth;
    let mut depths = market_data_results::books(&written.depth.truth, "the tape", &market_data.tape);
    depths.extend(market_data_results::books(&written.depth.truth, "the handler", &market_data.handler));
    let checks = vec![
        DemoCheck::new(
            "every planted manipulation is found, with its evidence, and nothing else",
            alerts_differ,
        ),
        DemoCheck::new(
            "no near miss is in any alert's evidence",
            check::near_miss_alerts(&truth.near_misses, &explained_alerts),
        ),
        DemoCheck::new("the live watch put on its tape the alerts that a replay gives", replay_differs),
        DemoCheck::new("every message and every byte is accounted for, kind by kind", accounts),
        DemoCheck::new("quarantine holds what was broken, by reason", check::reasons(truth, &of_flow)),
        DemoCheck::new(
            "the last best prices are those of the books",
            check::last_bbo(&truth.bbo, &picture.books),
        ),
        DemoCheck::new("the depth of every instrument is the exchange's own, level by level", depths),
        DemoCheck::new(
            "what the lines lost is known, packet by packet, and every book is mended",
            market_data_results::lines(&written.depth.came, &market_data),
        ),
        DemoCheck::new("the tape is intact, checksums and all", verify(&tape)?),
        DemoCheck::new("the sealed days hold what stands on the tape, event by event", sealed.differs),
        DemoCheck::new(
            "a data server gives the same rows to who may read them, and nothing to a stranger",
            served.differs,
        ),
        DemoCheck::new(
            "the best prices of eight pairs at twenty banks are the banks' own, line by line",
            answers.prices_differ.clone(),
        ),
        DemoCheck::new("every alert is in a case, once", answers.cases_differ.clone()),
        DemoCheck::new(
            "a plot from Python, where it is installed, has the rows of the tape",
            answers.plot_differs.clone(),
        ),
    ];
    times.check_s = from.elapsed().as_secs_f64() - times.seal_s;
    times.total_s = started.elapsed().as_secs_f64();
    let tape = unitape_tape::info(&tape)?;
    Ok(DemoResults {
        demo_dir,
        workers,
        written,
        summary,
        picture,
        live,
        explained_alerts,
        matched,
        labelled,
        market_data,
        days: sealed.info,
        served_rows: served.rows,
        answers,
        quarantine,
        reasons,
        tape,
        times,
        checks,
    })
}

fn verify(tape: &std::path::Path) -> Result<Vec<String>, CommandFailure> {
    let report = unitape_tape::verify(tape)?;
    let problems = report.problems.iter();
    Ok(problems.map(|p| format!("{} at offset {}: {}", p.file.display(), p.offset, p.problem)).collect())
}

/// Returns the number of bytes of each feed's files.
fn sizes(written: &WrittenFeeds) -> Result<BTreeMap<String, u64>, CommandFailure> {
    let mut sizes = BTreeMap::new();
    for feed in &written.feeds {
        for file in &feed.files {
            let size = std::fs::metadata(file)
                .map_err(|e| demo_directory::directory_failure("look at", file, &e))?
                .len();
            *sizes.entry(feed.name.clone()).or_insert(0) += size;
        }
    }
    Ok(sizes)
}

const DIFFERENCES_SHOWN: usize = 8;
