//! The figures as text, in the form 0.0.4 of Prometheus.
//!
//! Each figure has one name, with its base unit in it, and is described in `docs/metrics.md`. Labels are the feed and the cursor:
//! never an instrument, a person or a path.

use super::MonitorState;
use super::ready::{end_and_durable, free_bytes, lag_bytes, reasons};
use std::fmt::Write;
use unitape_feed::{FeedStatsSnapshot, LinkState};
use unitape_tape::{CursorStatus, retention_status};

/// Whether a figure only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows, until the run ends.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// A figure.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Whether it only grows.
    pub kind: MetricKind,
    /// Its meaning, in a sentence.
    pub help: &'static str,
}

const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Counter, help }
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Gauge, help }
}

/// The figures of each feed, label `feed`, in the order of `feed_values`.
pub const FEED_METRICS: [Metric; 32] = [
    counter("unitape_feed_messages_total", "Messages of the sources that are open or were read in this run."),
    counter("unitape_feed_events_total", "Events made of the messages."),
    counter("unitape_feed_quarantined_messages_total", "Messages in quarantine."),
    counter("unitape_feed_duplicate_messages_total", "Messages that had been there before."),
    counter("unitape_feed_ignored_messages_total", "Messages that the mapping ignores."),
    counter("unitape_feed_late_messages_total", "Messages that were appended after their time order."),
    counter("unitape_feed_clock_ahead_messages_total", "Messages whose time leads by more than it may."),
    gauge("unitape_feed_held_seconds_mean", "Average time that held messages waited for other feeds."),
    gauge("unitape_feed_held_seconds_max", "Longest time that a held message waited for other feeds."),
    counter("unitape_feed_waited_seconds_total", "Time that other feeds have waited for this one."),
    counter("unitape_feed_dropped_datagrams_total", "Datagrams dropped by unitape or by the kernel."),
    counter("unitape_feed_connections_total", "Connections made or accepted."),
    counter("unitape_feed_refused_senders_total", "Senders refused because another one was connected."),
    counter("unitape_feed_failed_connects_total", "Attempts to connect that failed."),
    counter("unitape_feed_received_bytes_total", "Bytes that the sources hold, as far as known."),
    counter("unitape_feed_read_bytes_total", "Bytes taken out of the sources."),
    gauge("unitape_feed_lag_bytes", "Bytes received and not yet read."),
    gauge("unitape_feed_lag_bytes_max", "The most bytes that were received and not yet read."),
    gauge("unitape_feed_blocks", "Blocks read and not yet wholly on the tape."),
    gauge("unitape_feed_blocks_max", "The most blocks that were read and not yet on the tape."),
    counter(
        "unitape_feed_repeated_messages_total",
        "Messages kept although their sequence number had come before.",
    ),
    counter("unitape_feed_unsure_repeats_total", "Repeats that cannot be confirmed because a bound was met."),
    counter(
        "unitape_feed_refused_sessions_total",
        "Stretches of messages of sessions beyond the 1,024 that are kept.",
    ),
    counter(
        "unitape_feed_forgotten_ranges_total",
        "Times that a session had too many gaps, and its lowest numbers were forgotten.",
    ),
    counter(
        "unitape_feed_pauses_total",
        "Times that a receiver stopped reading because the lag was at its bound.",
    ),
    gauge(
        "unitape_feed_last_event_timestamp_seconds",
        "Latest event time, since 1970; 0 before the first event.",
    ),
    gauge("unitape_feed_connected", "1 while a sender is connected, or where the source has none; else 0."),
    gauge(
        "unitape_feed_failed",
        "1 while the feed has failed and is tried again, or ended before its end; else 0.",
    ),
    gauge("unitape_feed_ended", "1 once nothing more comes in this run; else 0."),
    gauge("unitape_feed_complete", "1 once the source has come to its end; else 0."),
    counter("unitape_feed_failures_total", "Times that the feed failed, whether it continued or not."),
    counter("unitape_feed_packet_gaps_total", "Gaps in the packets of a market-data handler; 0 without one."),
];

/// Figures of the run and its tape, without label but for the cursors'.
pub const TAPE_METRICS: [Metric; 16] = [
    gauge("unitape_ready", "1 while the run is ready, as /readyz says; else 0."),
    gauge("unitape_uptime_seconds", "Time since the monitor began."),
    gauge("unitape_tape_committed_bytes", "Position after the last committed frame."),
    gauge("unitape_tape_durable_bytes", "Position up to which frames survive a power loss."),
    gauge("unitape_tape_recorder_lag_bytes", "Committed bytes that are not durable yet."),
    gauge("unitape_tape_oldest_bytes", "Position of the oldest frame that retention has left."),
    gauge("unitape_tape_sealed_segments", "Segments that are finished, checksummed and durable."),
    gauge("unitape_tape_open_segments", "Segments that are not finished."),
    gauge("unitape_tape_held_segments", "Segments that are kept only because a cursor needs them."),
    counter("unitape_tape_clock_jumps_total", "Times that the clock has jumped, as retention saw it."),
    gauge("unitape_tape_retention_stopped", "1 while retention cannot remove what it should; else 0."),
    gauge("unitape_tape_flush_failing", "1 while the last flush has failed; else 0."),
    gauge("unitape_disk_free_bytes", "Bytes that the disk of the tape has left."),
    gauge("unitape_cursor_lag_bytes", "Bytes of the tape after the cursor."),
    gauge("unitape_cursor_lag_events", "Events of the tape after the cursor."),
    gauge("unitape_cursor_age_seconds", "Time since the cursor was stored."),
];

/// Returns the page.
pub(super) fn render(state: &MonitorState) -> String {
    let mut out = String::new();
    let feeds = state.feed_figures();
    let values: Vec<(String, [String; FEED_METRICS.len()])> =
        feeds.iter().map(|feed| (label_value(&feed.feed), feed_values(feed))).collect();
    for (n, metric) in FEED_METRICS.iter().enumerate().filter(|_| !values.is_empty()) {
        write_head(&mut out, metric);
        for (feed, values) in &values {
            _ = writeln!(out, "{}{{feed=\"{feed}\"}} {}", metric.name, values[n]);
        }
    }
    render_tape(state, &mut out);
    out
}

/// Returns the figures of a feed in the order of [`FEED_METRICS`]. A new figure without a name does not compile.
fn feed_values(feed: &FeedStatsSnapshot) -> [String; FEED_METRICS.len()] {
    let FeedStatsSnapshot {
        feed: _,
        messages,
        events,
        quarantined,
        duplicates,
        ignored,
        late,
        clock_ahead,
        held_ns_mean,
        held_ns_max,
        waited_ns,
        drops,
        connections,
        refused,
        refusals,
        received_bytes,
        read_bytes,
        lag_bytes,
        lag_bytes_max,
        blocks,
        blocks_max,
        repeats,
        unsure,
        sessions_refused,
        ranges_forgotten,
        pauses,
        ts_max,
        ended,
        complete,
        state,
        failures,
        error,
        handler,
    } = feed;
    let flag_text = |yes: bool| u8::from(yes).to_string();
    let is_connected = matches!(state, LinkState::Connected | LinkState::Open);
    let is_failed = *state == LinkState::Failed || error.is_some();
    let gaps =
        handler.as_ref().map_or(0, |stats| stats.channels.iter().map(|channel| channel.gaps).sum::<u64>());
    [
        messages.to_string(),
        events.to_string(),
        quarantined.to_string(),
        duplicates.to_string(),
        ignored.to_string(),
        late.to_string(),
        clock_ahead.to_string(),
        seconds_text(*held_ns_mean),
        seconds_text(*held_ns_max),
        seconds_text(*waited_ns),
        drops.to_string(),
        connections.to_string(),
        refused.to_string(),
        refusals.to_string(),
        received_bytes.to_string(),
        read_bytes.to_string(),
        lag_bytes.to_string(),
        lag_bytes_max.to_string(),
        blocks.to_string(),
        blocks_max.to_string(),
        repeats.to_string(),
        unsure.to_string(),
        sessions_refused.to_string(),
        ranges_forgotten.to_string(),
        pauses.to_string(),
        seconds_text(u64::try_from(ts_max.unwrap_or(0)).unwrap_or(0)),
        flag_text(is_connected),
        flag_text(is_failed),
        flag_text(*ended),
        flag_text(*complete),
        failures.to_string(),
        gaps.to_string(),
    ]
}

fn render_tape(state: &MonitorState, out: &mut String) {
    let flag_text = |yes: bool| Some(u8::from(yes).to_string());
    let ends = end_and_durable(state).ok();
    let retention = retention_status(&state.tape).ok();
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    let values: [Option<String>; 13] = [
        flag_text(reasons(state).is_empty()),
        Some(format!("{:.3}", state.started_at.elapsed().as_secs_f64())),
        number(ends.map(|(end, _)| end.0)),
        number(ends.map(|(_, durable)| durable.0)),
        number(lag_bytes(state).ok()),
        number(retention.as_ref().map(|status| status.oldest.0)),
        number(retention.as_ref().map(|status| status.sealed_count)),
        number(retention.as_ref().map(|status| status.open_count)),
        number(retention.as_ref().map(|status| status.held_segments)),
        number(retention.as_ref().map(|status| status.clock_jumps)),
        flag_text(retention.as_ref().is_some_and(|status| status.trouble.is_some())),
        flag_text(state.lock_reported().not_durable.is_some()),
        number(free_bytes(state)),
    ];
    // A figure that cannot be read is left out: a wrong zero would hide the problem.
    for (metric, value) in TAPE_METRICS.iter().zip(values) {
        if let Some(value) = value {
            write_head(out, metric);
            _ = writeln!(out, "{} {value}", metric.name);
        }
    }
    let cursors = retention.map(|status| status.cursors).unwrap_or_default();
    for (n, metric) in TAPE_METRICS.iter().enumerate().skip(13) {
        let value = |cursor: &CursorStatus| match n {
            13 => Some(cursor.lag_bytes),
            14 => cursor.lag_events,
            _ => Some(cursor.age_s),
        };
        let values: Vec<(&str, u64)> =
            cursors.iter().filter_map(|cursor| Some((cursor.name.as_str(), value(cursor)?))).collect();
        if values.is_empty() {
            continue;
        }
        write_head(out, metric);
        for (cursor, value) in values {
            _ = writeln!(out, "{}{{cursor=\"{}\"}} {value}", metric.name, label_value(cursor));
        }
    }
}

fn write_head(out: &mut String, metric: &Metric) {
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
    };
    _ = writeln!(out, "# HELP {} {}\n# TYPE {} {kind}", metric.name, metric.help, metric.name);
}

/// Returns nanoseconds as seconds, exactly.
fn seconds_text(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Returns the value of a label with its escapes.
fn label_value(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scraper refuses a page with a name that is there twice.
    #[test]
    fn names_are_unique_and_have_their_form() {
        let mut names: Vec<&str> =
            FEED_METRICS.iter().chain(&TAPE_METRICS).map(|metric| metric.name).collect();
        for metric in FEED_METRICS.iter().chain(&TAPE_METRICS) {
            assert_eq!(
                metric.name.ends_with("_total"),
                metric.kind == MetricKind::Counter,
                "{}",
                metric.name
            );
            assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{}", metric.name);
            assert!(metric.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", metric.name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FEED_METRICS.len() + TAPE_METRICS.len());
    }

    /// Each name must be explained: an operator who is woken by it reads the page.
    #[test]
    fn every_name_is_on_the_page() {
        let page = include_str!("../../../../docs/metrics.md");
        for metric in FEED_METRICS.iter().chain(&TAPE_METRICS) {
            assert!(
                page.contains(&format!("| `{}` |", metric.name)),
                "{} is not in docs/metrics.md",
                metric.name
            );
        }
    }

    /// A rule over a figure with another name never fires.
    #[test]
    fn the_alert_rules_name_figures() {
        let rules = include_str!("../../../../deploy/alerts.yml");
        let words = rules.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names: Vec<&str> = words.filter(|word| word.starts_with("unitape_")).collect();
        assert!(names.len() >= 4, "{names:?}");
        for name in names {
            let is_figure = FEED_METRICS.iter().chain(&TAPE_METRICS).any(|metric| metric.name == name);
            assert!(is_figure, "{name} in deploy/alerts.yml");
        }
    }

    #[test]
    fn labels_are_escaped_and_seconds_are_exact() {
        assert_eq!(label_value("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
        assert_eq!(seconds_text(1_322_115_156_833_993_723), "1322115156.833993723");
    }
}
