//! `unitape calendar`: dates as Python has found them, times in each form, mistakes with their line.

use crate::common::{Ran, file, root, run};
use serde_json::{Value, json};
use std::path::Path;

fn vector(name: &str) -> String {
    root().join("vectors/calendar").join(name).display().to_string()
}

/// Asks the calendar of a file for a venue or a pair.
fn ask(calendar: &str, option: &str, name: &str, at: &str) -> Ran {
    run(["calendar", calendar, option, name, "--at", at, "--json"])
}

/// Each of the 200 moments of `vectors/calendar/expected.csv`, made by Python, for one venue and one pair by turns. The
/// test of the library asks for all of them.
#[test]
fn two_hundred_moments_have_the_dates_that_python_finds() {
    let expected = std::fs::read_to_string(vector("expected.csv")).unwrap();
    let calendar = vector("calendar.csv");
    let mut rows = expected.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().unwrap();
    let first_pair = head.iter().position(|name| name.len() == 6).unwrap();
    let (mut count, mut wrong) = (0, Vec::new());
    for (n, row) in rows.enumerate() {
        let venue = 1 + n % (first_pair - 1);
        let pair = first_pair + n % (head.len() - first_pair);
        let got = ask(&calendar, "--venue", head[venue], row[0]).code(0).json();
        let closes = got["closes"].as_str().unwrap_or_default();
        let cell = format!("{} {} {closes}", text(&got, "session_date"), text(&got, "day"));
        if cell.trim_end() != row[venue] {
            wrong.push(format!("{}: {got}, not {}", row[0], row[venue]));
        }
        let got = ask(&calendar, "--pair", head[pair], row[0]).code(0).json();
        if format!("{} {}", text(&got, "trade_date"), text(&got, "spot_date")) != row[pair] {
            wrong.push(format!("{}: {got}, not {}", row[0], row[pair]));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(count, 200);
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key} in {value}"))
}

#[test]
fn a_moment_may_be_written_in_each_form() {
    let calendar = vector("calendar.csv");
    let want = json!({
        "venue": "XCME", "ts": 1_772_492_400_000_000_000_i64, "session_date": "2026-03-03", "day": "open",
        "closes": null, "zone": "America/Chicago",
    });
    for at in ["2026-03-02T23:00", "2026-03-02 23:00:00", "2026-03-02T23:00:00.000Z", "1772492400000000000"] {
        assert_eq!(ask(&calendar, "--venue", "XCME", at).code(0).json(), want, "{at}");
    }
    let before = ask(&calendar, "--venue", "XCME", "1772492399999999999").code(0).json();
    assert_eq!(before["session_date"], "2026-03-02");
    let half = ask(&calendar, "--venue", "XLON", "2026-12-24").code(0).json();
    assert_eq!(
        (&half["day"], &half["closes"], &half["zone"]),
        (&json!("half"), &json!("12:30"), &json!("Europe/London"))
    );
    // Times from 1677 to 2262, and none beside them.
    for (at, date) in [("-9223372036854775808", "1677-09-21"), ("9223372036854775807", "2262-04-11")] {
        assert_eq!(ask(&calendar, "--venue", "NONE", at).code(0).json()["session_date"], date);
    }
    for at in ["noon", "2263-01-01", "9223372036854775808", "2026-02-29", ""] {
        ask(&calendar, "--venue", "XCME", at).code(2).says(&["--at", "not a time"]);
    }
}

#[test]
fn a_pair_may_be_written_with_a_slash_and_either_way_round() {
    let calendar = vector("calendar.csv");
    for (pair, shown) in [("EURUSD", "EURUSD"), ("EUR/USD", "EURUSD"), ("USD/EUR", "USDEUR")] {
        let got = ask(&calendar, "--pair", pair, "2026-03-06T22:00").code(0).json();
        let want = json!({
            "pair": shown, "ts": 1_772_834_400_000_000_000_i64, "trade_date": "2026-03-09", "spot_date": "2026-03-11",
        });
        assert_eq!(got, want);
    }
    // Without a line: midnight of UTC, and one day for the Turkish lira.
    let got = ask(&calendar, "--pair", "USDTRY", "2026-03-06T23:59:59").code(0).json();
    assert_eq!((&got["trade_date"], &got["spot_date"]), (&json!("2026-03-06"), &json!("2026-03-09")));
}

#[test]
fn people_read_one_line() {
    let calendar = vector("calendar.csv");
    for (option, name, at, line) in [
        ("--venue", "XCME", "2026-03-06T23:00", "session date 2026-03-07, weekend"),
        ("--venue", "XLON", "2026-12-24", "session date 2026-12-24, half day, closes 12:30 Europe/London"),
        ("--venue", "XJSE", "2026-12-24", "session date 2026-12-24, half day"),
        ("--venue", "XLON", "2026-12-25", "session date 2026-12-25, holiday"),
        ("--pair", "EURUSD", "2026-03-02", "trade date 2026-03-02, spot date 2026-03-04"),
    ] {
        let said = run(["calendar", &calendar, option, name, "--at", at]).code(0);
        assert!(said.text().ends_with(&format!(" UTC: {line}\n")), "{}", said.text());
    }
}

#[test]
fn mistakes_of_a_calendar_name_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("days.csv");
    let header = "what,key,date,time,zone,value\n";
    let long = "x".repeat(100_000);
    for (bytes, says) in [
        (
            format!("{header}# ours\nvenue,XCME,,17:00,Mars/Base,\n").into_bytes(),
            "days.csv:3: no time zone `Mars/Base`",
        ),
        (format!("{header}day,XCME,,17:00,,\n").into_bytes(), "days.csv:2: `day` is none of venue"),
        (b"{\"calendar\": 1}\n".to_vec(), "days.csv:1: the first line of a calendar is `what,key,date"),
        (long.into_bytes(), "days.csv:1: the first line of a calendar"),
        (Vec::new(), "days.csv:1: the calendar is empty"),
        (b"\x1f\x8b\x08\0\xff\xfe".to_vec(), "days.csv: is not text in UTF-8"),
        // A terminal must not obey what a file says.
        (format!("{header}venue,\x1b[2J,,17:00,,\n").into_bytes(), "days.csv:2: `\\x1b[2J` is no MIC"),
    ] {
        file(dir.path(), "days.csv", bytes);
        let said = ask(path.to_str().unwrap(), "--venue", "XCME", "2026-03-02").code(1).says(&[says]);
        assert!(said.stderr.lines().count() == 1 && said.stderr.len() < 400, "{}", said.stderr);
    }
    let missing = dir.path().join("missing.csv");
    ask(missing.to_str().unwrap(), "--venue", "XCME", "2026-03-02")
        .code(1)
        .says(&["missing.csv: No such file"]);
}

#[test]
fn a_wrong_call_names_the_option() {
    let calendar = vector("calendar.csv");
    for (option, name, says) in [
        ("--venue", "CME", "a MIC has 4 capital letters or digits"),
        ("--venue", "xlon", "a MIC has 4 capital letters or digits"),
        ("--pair", "EUR", "two currencies make a pair"),
        ("--pair", "EUREUR", "two currencies make a pair"),
        ("--pair", "eurusd", "two currencies make a pair"),
    ] {
        ask(&calendar, option, name, "2026-03-02").code(2).says(&[option, says]);
    }
    run(["calendar", &calendar, "--at", "2026-03-02"]).code(2).says(&["--venue", "--pair"]);
    let both = ["calendar", &calendar, "--venue", "XLON", "--pair", "EURUSD", "--at", "2026-03-02"];
    run(both).code(2).says(&["cannot be used with"]);
}

/// A mistake in the calendar of a run was found only when the calendar was first asked.
#[test]
fn a_run_does_not_begin_with_a_wrong_calendar() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "in.jsonl", "{\"ts\":1,\"kind\":\"clock\"}\n");
    let config = file(dir.path(), "run.toml", configuration("days.csv"));
    let config = config.to_str().unwrap();
    run(["run", config, "--check"]).code(1).says(&["run.toml:4: run.calendar: ", "days.csv: No such file"]);
    let header = "what,key,date,time,zone,value\n";
    file(dir.path(), "days.csv", format!("{header}pair,EURUSD,,17:00,UTC,99\n"));
    for more in [&["--check"][..], &[]] {
        let ran = run(["run", config].iter().chain(more));
        ran.code(1).says(&["run.toml:4: run.calendar: ", "days.csv:2: `99` is no lag"]);
    }
    assert!(!dir.path().join("t").exists(), "no tape is made");
    file(dir.path(), "days.csv", format!("{header}pair,EURUSD,,17:00,UTC,2\n"));
    run(["run", config, "--check"]).code(0);
    run(["run", config]).code(0);
    let shown = run(["config", "show", config, "--origin"]).code(0);
    let line = shown.text().lines().find(|line| line.starts_with("run.calendar = ")).unwrap();
    assert!(line.contains("/days.csv") && line.ends_with("run.toml:4"), "{line}");
    // The calendar is that of the configuration's directory, or of a variable.
    let other = Path::new(config).with_file_name("none.csv");
    let mut command = crate::common::unitape();
    command.args(["run", config, "--check"]).env("UNITAPE_RUN__CALENDAR", &other);
    crate::common::finish(&mut command).code(1).says(&["UNITAPE_RUN__CALENDAR: run.calendar: ", "none.csv"]);
}

fn configuration(calendar: &str) -> String {
    format!(
        "[tape]\ndir = \"t\"\n[run]\ncalendar = \"{calendar}\"\n[[feed]]\nname = \"n\"\nformat = \"events\"\nfiles = [\"in.jsonl\"]\n"
    )
}
