//! A run is given its configuration and reports by values; nothing of it is read from a terminal's text.

use std::path::Path;
use std::sync::{Arc, Mutex};
use unitape_model::ErrorCause;
use unitape_run::follow::{FollowOutcome, TapeFollower};
use unitape_run::layered::FlagValue;
use unitape_run::{Error, PreparedRun, RunControl, RunEvent, RunReport, address, config, run};
use unitape_tape::ReadOptions;

fn prepared(dir: &Path, feeds: &str) -> Result<PreparedRun, Error> {
    let file = dir.join("feeds.toml");
    std::fs::write(&file, format!("[tape]\ndir = 'tape'\n{feeds}")).unwrap();
    let loaded = config::read(&file, &[])?;
    PreparedRun::new(loaded.value, &loaded.origins, &mut |note| panic!("{note}"))
}

fn report(prepared: PreparedRun) -> (RunReport, Vec<String>) {
    let seen = Mutex::new(Vec::new());
    let events = |event: RunEvent<'_>| seen.lock().unwrap().push(format!("{event:?}"));
    let control = RunControl {
        stop: Arc::default(),
        stop_signal: None,
        reload: Arc::default(),
        reports_changes: true,
        events: &events,
    };
    let report = run(prepared, control).unwrap();
    (report, seen.into_inner().unwrap())
}

const TRADES: &str = "\
{\"seq\":1,\"ts\":1,\"kind\":\"trade\",\"venue\":\"XLON\",\"instr\":\"I\",\"px\":\"2.5\",\"qty\":\"10\"}
{\"seq\":2,\"ts\":2,\"kind\":\"trade\",\"venue\":\"XLON\",\"instr\":\"I\",\"px\":\"2.6\",\"qty\":\"10\"}
";

/// A server's view of a run must not come from lines that the command line prints.
#[test]
fn a_run_reports_by_values() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.jsonl"), TRADES).unwrap();
    let feeds = "[[feed]]\nname = 'a'\nformat = 'events'\nfiles = ['a.jsonl']\n";
    let (report, events) = report(prepared(dir.path(), feeds).unwrap());
    assert!(report.result().is_ok() && !report.is_flawed());
    assert_eq!((report.outcome.summary.events, report.figures[0].events), (2, 2));
    assert!(events.iter().any(|event| event.starts_with("Figures")), "{events:?}");

    let (mut follower, _) = TapeFollower::open(&dir.path().join("tape"), ReadOptions::default()).unwrap();
    let mut ordinals = Vec::new();
    while let FollowOutcome::Frame { ordinal, frame } = follower.next_step().unwrap() {
        if !frame.header.is_meta() {
            ordinals.push(ordinal + 1);
        }
    }
    assert_eq!((ordinals, follower.rewind_count()), (vec![1, 2], 0));
}

#[test]
fn a_feed_that_fails_is_in_the_report() {
    let dir = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap();
    let feeds = format!("[[feed]]\nname = 'a'\nformat = 'events'\nrestart = 'never'\nlisten = '{listen}'\n");
    let (report, _) = report(prepared(dir.path(), &feeds).unwrap());
    assert_eq!((report.failed.len(), report.failed[0].feed.as_str()), (1, "a"));
    assert_eq!(report.result().unwrap_err().cause(), ErrorCause::Outside);
}

/// The exit code of the command line is made of the cause: 1, 2 or 3.
#[test]
fn errors_name_the_side_of_their_cause() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("feeds.toml");
    let feed = "[[feed]]\nname = 'a'\nformat = 'events'\nfiles = ['x']\n";
    let cause = |feeds: &str| prepared(dir.path(), feeds).unwrap_err().cause();
    assert_eq!(cause(""), ErrorCause::Outside);
    assert_eq!(cause(&feed.replace("events", "nothing")), ErrorCause::Outside);
    std::fs::write(dir.path().join("broken"), "{").unwrap();
    let reference = "[[reference]]\nfile = 'broken'\nmapping = 'events'\n";
    assert_eq!(cause(&format!("{feed}{reference}")), ErrorCause::Data);

    prepared(dir.path(), feed).unwrap();
    let flag = FlagValue { flag: "--workers", key: "run.workers", value: "many".into() };
    assert_eq!(config::read(&file, &[flag]).unwrap_err().cause(), ErrorCause::Call);
    let mut loaded = config::read(&file, &[]).unwrap();
    assert_eq!(loaded.value.restrict_to_feed("b", &loaded.origins).unwrap_err().cause(), ErrorCause::Call);
    assert_eq!(address::TapeStopPoint::parse("never").unwrap_err().cause(), ErrorCause::Call);
    assert_eq!(config::read(&dir.path().join("gone"), &[]).unwrap_err().cause(), ErrorCause::Outside);
}
