//! What one asks of the tapes and the sealed days: the best price of many banks, cases of the alerts, a case on paper, a plot,
//! and rows from a data server.

use super::check::{first_difference, number};
use super::commands::CommandRunner;
use super::demo_directory::DemoDirectory;
use super::desk::random_password;
use crate::output::{self, CommandFailure};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The answers, and where they differ from the truth.
#[derive(Debug, Default)]
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
    /// Rows that were read back from a data server.
    pub served_rows: u64,
    /// Where these are not those of the store, or where somebody got something who may not read it.
    pub served_differs: Vec<String>,
}

/// Asks. The plot is of `instrument`.
pub fn ask_tapes(
    demo_dir: &DemoDirectory,
    commands: &mut CommandRunner<'_>,
    alerts: u64,
    instrument: &str,
) -> Result<DemoAnswers, CommandFailure> {
    commands.run(&["bank_tape", "cases"])?;
    commands.run(&["bank_prices", "case_list"])?;
    let best = commands.output_text("bank_prices")?;
    let truth = output::read_text(&demo_dir.path("banks/truth.jsonl"))?;

    let mut list = commands.lines("case_list")?;
    list.retain(|case| case["case"].is_u64());
    let in_cases: u64 = list.iter().map(|case| number(&case["alerts"])).sum();
    let cases_differ = match in_cases == alerts {
        true => Vec::new(),
        false => vec![format!("{alerts} alerts, and {in_cases} in cases")],
    };
    let page = match list.iter().find(|case| case["scenario"] == "spoofing") {
        Some(case) => {
            commands.set_word("case", &case["case"]);
            commands.run(&["case_page"])?;
            Some(demo_dir.path("case.html"))
        }
        None => None,
    };
    let (plot, plot_differs) = plot_prices(demo_dir, commands, instrument)?;
    let (served_rows, served_differs) = read_back(demo_dir, commands)?;
    Ok(DemoAnswers {
        bank_events: number(&commands.last_object("bank_tape")?["events"]),
        best_prices: best.lines().count() as u64,
        prices_differ: first_difference(&best, &truth),
        cases: list.len() as u64,
        cases_differ,
        page,
        plot,
        plot_differs,
        served_rows,
        served_differs,
    })
}

/// Plots best prices in Python; returns the file, and where its rows are not those of the tape. Without Python, or without the
/// packages that the plot needs, there is no file.
fn plot_prices(
    demo_dir: &DemoDirectory,
    commands: &mut CommandRunner<'_>,
    instrument: &str,
) -> Result<(Option<PathBuf>, Vec<String>), CommandFailure> {
    let (file, tape) = (demo_dir.path("plot.svg"), demo_dir.path("tape"));
    let mut python = Command::new("python3");
    python.args(["-c", PLOT]).arg(&tape).arg(instrument).arg(&file).stdin(Stdio::null());
    let ran = match python.output() {
        Ok(ran) => ran,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok((None, Vec::new())),
        Err(e) => return Err(e.into()),
    };
    if !ran.status.success() {
        let reason = String::from_utf8_lossy(&ran.stderr);
        let reason = reason.trim_end().lines().last().unwrap_or_default();
        let is_missing = reason.starts_with("ModuleNotFoundError");
        return Ok((None, if is_missing { Vec::new() } else { vec![format!("Python: {reason}")] }));
    }
    let plotted: Value = serde_json::from_slice(&ran.stdout)?;
    commands.set_word("instrument", instrument);
    commands.run(&["plotted"])?;
    let expected_quotes = commands.output_text("plotted")?.lines().count() as u64;
    let difference = match plotted["quotes"].as_u64() == Some(expected_quotes) {
        true => Vec::new(),
        false => vec![format!("{} quotes in the plot, {expected_quotes} on the tape", plotted["quotes"])],
    };
    Ok((Some(file), difference))
}

/// The program that plots; see `docs/python.md`.
const PLOT: &str = include_str!("../../../../../examples/python/plot_best_prices.py");

/// Serves the sealed days on this machine and reads rows back; returns their number, and where they are not those of the store,
/// or where somebody got something who may not read it.
fn read_back(
    demo_dir: &DemoDirectory,
    commands: &mut CommandRunner<'_>,
) -> Result<(u64, Vec<String>), CommandFailure> {
    for user in ["quant", "stranger"] {
        let file = demo_dir.path(&format!("server/{user}.password"));
        output::write_private_file(&file, format!("{}\n", random_password()?).as_bytes())?;
        commands.run(&[user])?;
    }
    demo_dir.write("server/entitlements.toml", ENTITLEMENTS.as_bytes())?;
    let mut server = commands.start_command("server")?;
    let address = commands.first_line(&mut server)?;
    for word in ["server", "fingerprint"] {
        commands.set_word(word, address[word].as_str().unwrap_or_default());
    }
    let (mut rows, mut differs) = (0, Vec::new());
    for (name, scan) in [("get_bbo", "sealed_bbo"), ("get_trades", "sealed_trades")] {
        commands.run(&[name])?;
        let actual_text = commands.output_text(name)?;
        rows += actual_text.lines().count() as u64;
        differs.extend(first_difference(&actual_text, &commands.output_text(scan)?));
    }
    let mut stranger = commands.start_command("get_nothing")?;
    if commands.wait_for(&mut stranger)?.success() || !commands.output_text("get_nothing")?.is_empty() {
        differs.push("somebody without an entitlement got an answer".to_owned());
    }
    Ok((rows, differs))
}

const ENTITLEMENTS: &str = "format = 1\n\n[[entitlement]]\nuser = \"quant\"\ndataset = \"days\"\n";
