//! What one asks of the tapes: the best price of many banks, cases of the alerts, and a case on paper. Each answer is given by the
//! command that a user would type.

use super::demo_directory::DemoDirectory;
use crate::output::CommandFailure;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The answers, and where they differ from the truth.
#[derive(Debug)]
pub struct DemoAnswers {
    /// Events of the simulated banks.
    pub bank_events: u64,
    /// Changes of their best prices.
    pub best_prices: u64,
    /// Where the best prices are not those of the banks' own truth.
    pub prices_differ: Vec<String>,
    /// Cases of the alerts.
    pub cases: u64,
    /// Where the cases do not have the alerts.
    pub cases_differ: Vec<String>,
    /// A case of spoofing as a page, if there is one.
    pub page: Option<PathBuf>,
    /// A plot of best prices, where Python has what it needs.
    pub plot: Option<PathBuf>,
    /// Where the rows of the plot are not those of the tape.
    pub plot_differs: Vec<String>,
}

/// Asks. The plot is of `instrument`.
pub fn ask(demo_dir: &DemoDirectory, alerts: usize, instrument: &str) -> Result<DemoAnswers, CommandFailure> {
    let banks = demo_dir.banks();
    fs::create_dir_all(&banks).map_err(|e| super::demo_directory::directory_failure("make", &banks, &e))?;
    let (events, truth, tape) = (banks.join("banks.jsonl"), banks.join("truth.jsonl"), banks.join("tape"));
    let text = |path: &PathBuf| path.display().to_string();
    let (events, truth_file, tape) = (text(&events), text(&truth), text(&tape));
    call(&[
        "generate",
        "banks",
        "--seed",
        "7",
        "--pairs",
        "8",
        "--events",
        BANK_EVENTS,
        "--out",
        &events,
        "--truth",
        &truth_file,
    ])?;
    let account = last_json(&call(&["consolidate", &events, "--tape", &tape, "--json"])?)?;
    let best = call(&["fx", "best", &tape, "--json"])?;
    let truth = fs::read_to_string(&truth)
        .map_err(|e| super::demo_directory::directory_failure("read", &truth, &e))?;
    let prices_differ = first_difference(&best, &truth);

    let (cases, alert_tape, watched) =
        (text(&demo_dir.cases()), text(&demo_dir.alerts()), text(&demo_dir.tape()));
    call(&["case", "ingest", &alert_tape, "--tape", &watched, "--cases", &cases, "--json"])?;
    let list = call(&["case", "list", "--cases", &cases, "--limit", "1000", "--json"])?;
    let list: Vec<Value> = list.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let list: Vec<&Value> = list.iter().filter(|case| case["case"].is_u64()).collect();
    let in_cases: u64 = list.iter().filter_map(|case| case["alerts"].as_u64()).sum();
    let cases_differ = match in_cases == alerts as u64 {
        true => Vec::new(),
        false => vec![format!("{alerts} alerts, and {in_cases} in cases")],
    };
    let spoofing =
        list.iter().find(|case| case["scenario"] == "spoofing").map(|case| case["case"].to_string());
    let page = spoofing.map(|number| -> Result<PathBuf, CommandFailure> {
        let page = demo_dir.dir.join("case.html");
        call(&["case", "export", &number, "--cases", &cases, "--tape", &watched, "--html", &text(&page)])?;
        Ok(page)
    });
    let (plot, plot_differs) = plot(demo_dir, instrument)?;
    Ok(DemoAnswers {
        bank_events: account["events"].as_u64().unwrap_or(0),
        best_prices: best.lines().count() as u64,
        prices_differ,
        cases: list.len() as u64,
        cases_differ,
        page: page.transpose()?,
        plot,
        plot_differs,
    })
}

/// Plots best prices in Python; returns the file, and where its rows are not those of the tape. Without Python, or without the
/// packages that the plot needs, there is no file.
fn plot(
    demo_dir: &DemoDirectory,
    instrument: &str,
) -> Result<(Option<PathBuf>, Vec<String>), CommandFailure> {
    let (file, tape) = (demo_dir.dir.join("plot.svg"), demo_dir.tape().display().to_string());
    let ran = Command::new("python3")
        .args(["-c", PLOT, &tape, instrument])
        .arg(&file)
        .stdin(Stdio::null())
        .output();
    let ran = match ran {
        Ok(ran) => ran,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok((None, Vec::new())),
        Err(e) => return Err(e.into()),
    };
    if !ran.status.success() {
        let reason = reason_of(&ran);
        let reason = reason.lines().last().unwrap_or_default();
        let is_missing = reason.starts_with("ModuleNotFoundError");
        return Ok((None, if is_missing { Vec::new() } else { vec![format!("Python: {reason}")] }));
    }
    let plotted = last_json(&String::from_utf8_lossy(&ran.stdout))?;
    let rows = call(&["tape", "cat", &tape, "--schema", "bbo", "--instr", instrument, "--json"])?;
    let expected_quotes = rows.lines().count() as u64;
    let differs = match plotted["quotes"].as_u64() == Some(expected_quotes) {
        true => Vec::new(),
        false => vec![format!("{} quotes in the plot, {expected_quotes} on the tape", plotted["quotes"])],
    };
    Ok((Some(file), differs))
}

/// The program that plots; see `docs/python.md`.
const PLOT: &str = include_str!("../../../../../examples/python/plot_best_prices.py");

/// Runs a command of this program, and returns what it printed.
fn call(args: &[&str]) -> Result<String, CommandFailure> {
    let program = std::env::current_exe()?;
    let ran = Command::new(program).args(args).stdin(Stdio::null()).output()?;
    // Exit code 3 says that data are missing or in quarantine: the banks send such on purpose.
    if !matches!(ran.status.code(), Some(0 | 3)) {
        return Err(CommandFailure::Error(format!(
            "unitape {} ended with {}: {}",
            args[..2].join(" "),
            ran.status,
            reason_of(&ran)
        )));
    }
    String::from_utf8(ran.stdout).map_err(|_| CommandFailure::Error("a command printed no text".to_owned()))
}

/// Returns what a command said on stderr.
pub fn reason_of(ran: &Output) -> String {
    String::from_utf8_lossy(&ran.stderr).trim_end().to_owned()
}

fn last_json(text: &str) -> Result<Value, CommandFailure> {
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|e| CommandFailure::Error(format!("`{last}`: {e}")))
}

/// Returns where two texts differ first, by lines.
pub fn first_difference(got: &str, wanted: &str) -> Vec<String> {
    if got == wanted {
        return Vec::new();
    }
    let mut pairs = got.lines().zip(wanted.lines()).enumerate();
    let differing = pairs.find(|(_, (got, wanted))| got != wanted);
    vec![match differing {
        Some((n, (got, wanted))) => format!("line {}: {got}, but it must be {wanted}", n + 1),
        None => format!("{} lines, but {} must be there", got.lines().count(), wanted.lines().count()),
    }]
}

const BANK_EVENTS: &str = "4000";
