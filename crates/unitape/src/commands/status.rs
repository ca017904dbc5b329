//! `unitape status`: whether a run is well, and if not, why.

use crate::output::{self, CommandFailure, CommandOutcome, escape_line, grouped, say};
use serde_json::json;
use std::path::Path;
use unitape_run::config;
use unitape_server::status::RunStatus;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unitape status http://127.0.0.1:9464
  unitape status feeds.toml --json

A run serves its figures if its configuration has a monitor: [monitor] listen = \"127.0.0.1:9464\". docs/metrics.md has each figure and each reason, with its remedy.

Exit code 0: the run is ready. Exit code 1: the run is not ready, nobody answers, or the answer is not from a monitor of unitape; redirects are not followed. Exit code 3: the run is ready, and data are missing or in quarantine.")]
pub struct StatusArgs {
    /// The address of the monitor, or the configuration of the run
    #[arg(value_name = "URL|CONFIG.toml")]
    target: String,
    /// Print as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &StatusArgs) -> output::Result {
    let url = address(&args.target)?;
    let status = RunStatus::ask(&url).map_err(|error| CommandFailure::Error(error.to_string()))?;
    let feeds: Vec<&str> = status.labels("unitape_feed_messages_total").collect();
    let missing: u64 = feeds.iter().flat_map(|feed| MISSING.map(|name| status.of_feed(name, feed))).sum();
    if args.json {
        let figures: Vec<_> = status
            .figures
            .iter()
            .map(|figure| json!({ "name": figure.name, "label": figure.label, "value": figure.value }))
            .collect();
        let reasons: Vec<_> =
            status.reasons.iter().map(|r| json!({ "code": r.code, "what": r.what })).collect();
        output::print_json(&json!({ "ready": status.is_ready, "reasons": reasons, "figures": figures }))?;
    } else {
        print_status(&status, &feeds)?;
    }
    match (status.is_ready, missing) {
        (false, _) => Err(CommandFailure::Error(format!("{url}: the run is not ready"))),
        (true, 0) => Ok(CommandOutcome::Clean),
        (true, _) => Ok(CommandOutcome::Flawed),
    }
}

fn print_status(status: &RunStatus, feeds: &[&str]) -> Result<(), CommandFailure> {
    say!("{}", if status.is_ready { "ready" } else { "not ready" });
    for reason in &status.reasons {
        say!("  {}: {}", reason.code, escape_line(&reason.what));
    }
    let width = feeds.iter().map(|feed| feed.len()).chain([4]).max().unwrap_or(4);
    say!(
        "{:width$} {:>10} {:>14} {:>14} {:>12} {:>10} {:>14}",
        "feed",
        "state",
        "messages",
        "events",
        "quarantined",
        "dropped",
        "lag, bytes"
    );
    for feed in feeds {
        let figure = |name: &str| status.of_feed(name, feed);
        let state = match (
            figure("unitape_feed_failed"),
            figure("unitape_feed_ended"),
            figure("unitape_feed_connected"),
        ) {
            (1, _, _) => "failed",
            (_, 1, _) => "ended",
            (_, _, 1) => "connected",
            _ => "waiting",
        };
        say!(
            "{:width$} {state:>10} {:>14} {:>14} {:>12} {:>10} {:>14}",
            escape_line(feed),
            grouped(figure("unitape_feed_messages_total")),
            grouped(figure("unitape_feed_events_total")),
            grouped(figure("unitape_feed_quarantined_messages_total")),
            grouped(figure("unitape_feed_dropped_datagrams_total")),
            grouped(figure("unitape_feed_lag_bytes"))
        );
    }
    for figure in status.figures.iter().filter(|figure| figure.label.is_none()) {
        say!("{:36} {}", figure.name, figure.value);
    }
    for cursor in status.labels("unitape_cursor_lag_bytes") {
        say!(
            "{:36} {} bytes behind",
            format!("cursor {}", escape_line(cursor)),
            grouped(status.of_feed("unitape_cursor_lag_bytes", cursor))
        );
    }
    Ok(())
}

/// Returns the address of the monitor: the one that was given, or that of a configuration.
fn address(target: &str) -> Result<String, CommandFailure> {
    if let Some(monitor_address) = target.strip_prefix("http://") {
        return match check_port(monitor_address) {
            Ok(()) => Ok(target.to_owned()),
            Err(reason) => Err(CommandFailure::Usage(format!("{target}: {reason}"))),
        };
    }
    if target.contains("://") {
        return Err(CommandFailure::Usage(format!("{target}: a monitor is asked over http://")));
    }
    let config = config::read(Path::new(target), &[])?.value;
    match config.monitor.listen {
        Some(address) if address.port() == 0 => {
            let message = "monitor.listen has port 0, so each run takes another one; name the URL that the run has printed";
            Err(CommandFailure::Usage(format!("{target}: {message}")))
        }
        Some(address) => Ok(format!("http://{address}")),
        None => {
            Err(CommandFailure::Usage(format!("{target}: it has no monitor.listen, so nobody can be asked")))
        }
    }
}

/// Checks the port of an address without `http://`, if it has one. The HTTP client would ask another port in place of one that
/// cannot be.
fn check_port(address: &str) -> Result<(), String> {
    let host = address.split(['/', '?', '#']).next().unwrap_or_default();
    // The colons within brackets are those of an IPv6 address.
    let after_brackets = host.rsplit_once(']').map_or(host, |(_, rest)| rest);
    let Some((_, port)) = after_brackets.rsplit_once(':') else { return Ok(()) };
    if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("`{port}` is no port; a port is a number from 1 to 65535"));
    }
    match port.parse::<u16>() {
        Ok(1..) => Ok(()),
        _ => Err(format!("the port {port} is out of range; a port is a number from 1 to 65535")),
    }
}

/// Figures of a feed that say that data are missing or in quarantine.
const MISSING: [&str; 3] = [
    "unitape_feed_quarantined_messages_total",
    "unitape_feed_dropped_datagrams_total",
    "unitape_feed_packet_gaps_total",
];
