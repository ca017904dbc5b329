//! `unitape demo`: sample feeds onto a tape, watched and replayed, with a summary that explains itself.
//!
//! | module | holds |
//! |---|---|
//! | `place` | the directory, which is the demo's own or refused |
//! | `samples` | real feeds, and a plain count of what they hold |
//! | `feeds` | all feeds: those, and three made ones whose truth is known |
//! | `depth` | one of these: market data in FAST, by lines that lose packets |
//! | `live` | the watch that follows the tape while it is written |
//! | `picture` | what stands on the tape, in one pass |
//! | `held` | what tape and handler have of the market data |
//! | `sealed` | the tape's days, sealed and read back |
//! | `check` | whether it is what must stand there |
//! | `report`, `market_data`, `layout` | the summary, for people and as data |

mod check;
mod depth;
mod feeds;
mod held;
mod layout;
mod live;
mod market_data;
mod picture;
mod place;
mod report;
mod samples;
mod sealed;

use crate::commands::{consolidate, watch};
use crate::output::{self, Done, Failure, note};
use check::Check;
use depth::DEPTH;
use feeds::Written;
use held::Held;
use live::Live;
use picture::{Found, Picture};
use place::Place;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;
use unitape_feed::quarantine::QuarantineEntry;
use unitape_feed::{AccountSummary, ConsolidateOptions, FarmEnding, RunOutcome, TapeAccount};
use unitape_watch::{Alert, ScenarioSelection};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape demo
  unitape demo --seconds 20 --dir demo
  unitape demo --json

No network, no configuration. The made feeds are the same on every machine: 100,000 messages of order flow, 20,000
events of a simulated day and 10,000 messages of an exchange's market data for each of the N seconds that the demo may
take. Exit code 0 means that the demo's own checks hold; the messages in quarantine are
broken on purpose.")]
pub struct Args {
    /// About how long it may take; 130,000 messages for each second
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=300))]
    seconds: u64,
    /// Where the feeds and the tape go: a new, empty or earlier demo's directory [default: unitape-demo in the
    /// system's temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print everything as one JSON object
    #[arg(long)]
    json: bool,
}

/// All that a demo did and saw.
struct Story {
    place: Place,
    workers: usize,
    written: Written,
    summary: AccountSummary,
    picture: Picture,
    live: Live,
    found: Vec<Found>,
    /// For each planted wash trade of the order flow, its place in `found`.
    matched: Vec<Option<usize>>,
    /// For each label of the simulated day, its place in `found`.
    labelled: Vec<Option<usize>>,
    held: Held,
    days: unitape_store::StoreSummary,
    quarantine: Vec<QuarantineEntry>,
    reasons: BTreeMap<String, u64>,
    tape: unitape_tape::TapeSummary,
    times: Times,
    checks: Vec<Check>,
}

/// How long each part took, in seconds.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
struct Times {
    make_s: f64,
    consolidate_s: f64,
    replay_s: f64,
    seal_s: f64,
    check_s: f64,
    total_s: f64,
}

/// Runs the command.
pub fn run(args: Args) -> output::Result {
    let story = act(&args)?;
    if args.json {
        output::print_json(&report::json(&story))?;
    } else {
        report::print(&story)?;
    }
    let failed: Vec<&Check> = story.checks.iter().filter(|c| !c.holds()).collect();
    if failed.is_empty() {
        return Ok(Done::Clean);
    }
    for check in failed {
        note!("  not so: {}", check.what);
        check.differs.iter().take(DIFFERENCES_SHOWN).for_each(|line| note!("    {line}"));
        if let Some(more) = check.differs.len().checked_sub(DIFFERENCES_SHOWN).filter(|n| *n > 0) {
            note!("    and {more} more");
        }
    }
    Err(Failure::Error("the demo does not hold; this must not happen, please report it".to_owned()))
}

fn act(args: &Args) -> Result<Story, Failure> {
    let started = Instant::now();
    let stop = output::stop_flag()?;
    let place = Place::prepare(args.dir.as_deref())?;
    let tape = place.tape();
    let workers = unitape_run::cores();
    let mut times = Times::default();

    let written = feeds::write(&place, args.seconds, &stop)?;
    times.make_s = started.elapsed().as_secs_f64();

    let from = Instant::now();
    let options = ConsolidateOptions {
        feeds: written.feeds.clone(),
        workers,
        stop: Some(&stop),
        ..ConsolidateOptions::default()
    };
    let (outcome, live): (RunOutcome, Live) =
        live::alongside(&tape, || Ok(consolidate::run_with_progress(&tape, options)?))?;
    times.consolidate_s = from.elapsed().as_secs_f64();
    if outcome.ending == FarmEnding::Stopped {
        return Err(Failure::Error("stopped".to_owned()));
    }

    let from = Instant::now();
    let mut replayed: Vec<Alert> = Vec::new();
    watch::watch_tape(&tape, &ScenarioSelection::default(), |alert| {
        replayed.push(alert.clone());
        Ok(())
    })?;
    times.replay_s = from.elapsed().as_secs_f64();

    let from = Instant::now();
    // From the tape alone: what the run itself has counted is then compared with it.
    let account = TapeAccount::load(&tape)?;
    let summary = account.summary();
    let picture = picture::look(&tape, &account)?;
    let found = picture::evidence(&tape, &account, &live.alerts)?;
    let (labelled, mut alerts_differ) = check::labels(&written.market.labels, &found);
    // What is left must be the wash trades of the order flow, and nothing else.
    let left: Vec<usize> = (0..found.len()).filter(|n| !labelled.contains(&Some(*n))).collect();
    let rest: Vec<Found> = left.iter().map(|n| found[*n].clone()).collect();
    let (matched, rest_differs) = check::scenes(&written.truth.planted, &rest);
    let matched: Vec<_> = matched.into_iter().map(|at| at.map(|n| left[n])).collect();
    alerts_differ.extend(rest_differs);
    let held = held::look(&tape, &account, &written.depth)?;
    let quarantine = unitape_feed::quarantine::list(&tape)?;
    let (mut reasons, mut of_flow) = (BTreeMap::new(), BTreeMap::new());
    for entry in &quarantine {
        *reasons.entry(entry.reason.clone()).or_insert(0) += 1;
        if !held::of_depth(entry) {
            *of_flow.entry(entry.reason.clone()).or_insert(0) += 1;
        }
    }
    let sizes = sizes(&written)?;
    let mut accounts = check::account(&summary, &picture, &written.counted, &sizes, &[DEPTH]);
    let size = sizes.get(DEPTH).copied().unwrap_or(0);
    accounts.extend(held::account(summary.by_feed.get(DEPTH), size, &written.depth, &quarantine));
    if outcome.summary.events != summary.events || live.events != summary.by_kind.values().sum::<u64>() {
        accounts.push(format!(
            "{} events by the run, {} by the tape, {} frames of events met by the live watch",
            outcome.summary.events, summary.events, live.events
        ));
    }
    let since = Instant::now();
    let sealed = sealed::seal_and_compare(&place)?;
    times.seal_s = since.elapsed().as_secs_f64();
    let truth = &written.truth;
    let mut depths = held::books(&written.depth.truth, "the tape", &held.tape);
    depths.extend(held::books(&written.depth.truth, "the handler", &held.handler));
    let checks = vec![
        Check::new("every planted manipulation is found, with its evidence, and nothing else", alerts_differ),
        Check::new("no near miss is in any alert's evidence", check::missed(&truth.near_misses, &found)),
        Check::new("replay gives the same alerts as the live watch", check::alerts(&live.alerts, &replayed)),
        Check::new("every message and every byte is accounted for, kind by kind", accounts),
        Check::new("quarantine holds what was broken, by reason", check::reasons(truth, &of_flow)),
        Check::new(
            "the last best prices are those of the books",
            check::last_bbo(&truth.bbo, &picture.books),
        ),
        Check::new("the depth of every instrument is the exchange's own, level by level", depths),
        Check::new(
            "what the lines lost is known, packet by packet, and every book is mended",
            held::lines(&written.depth.came, &held),
        ),
        Check::new("the tape is intact, checksums and all", verify(&tape)?),
        Check::new("the sealed days hold what stands on the tape, event by event", sealed.differs),
    ];
    times.check_s = from.elapsed().as_secs_f64() - times.seal_s;
    times.total_s = started.elapsed().as_secs_f64();
    let tape = unitape_tape::info(&tape)?;
    Ok(Story {
        place,
        workers,
        written,
        summary,
        picture,
        live,
        found,
        matched,
        labelled,
        held,
        days: sealed.info,
        quarantine,
        reasons,
        tape,
        times,
        checks,
    })
}

fn verify(tape: &std::path::Path) -> Result<Vec<String>, Failure> {
    let report = unitape_tape::verify(tape)?;
    let problems = report.problems.iter();
    Ok(problems.map(|p| format!("{} at offset {}: {}", p.file.display(), p.offset, p.what)).collect())
}

/// Bytes of the files of each feed.
fn sizes(written: &Written) -> Result<BTreeMap<String, u64>, Failure> {
    let mut sizes = BTreeMap::new();
    for feed in &written.feeds {
        for file in &feed.files {
            let size = std::fs::metadata(file).map_err(|e| place::at("look at", file, &e))?.len();
            *sizes.entry(feed.name.clone()).or_insert(0) += size;
        }
    }
    Ok(sizes)
}

const DIFFERENCES_SHOWN: usize = 8;
