//! `unitape tape retain`, and what `tape info` prints about the limits and the cursors that hold segments.

use crate::output::{self, CommandFailure, CommandOutcome, bytes, escape_line, grouped, say};
use std::path::PathBuf;
use unitape_run::config::{TimeSpan, TimeSpanRefusal};
use unitape_run::removal;
use unitape_tape::{RetentionLimits, RetentionStatus};

/// Arguments of `tape retain`.
#[derive(Debug, clap::Args)]
pub struct RetainArgs {
    /// Directory of the tape
    dir: PathBuf,
    /// Keep about this many bytes of its end
    #[arg(long)]
    bytes: Option<u64>,
    /// Keep segments finished within this time: 90min, 12h, 30d
    #[arg(long, value_parser = parse_time_span)]
    age: Option<TimeSpan>,
    /// Keep segments finished on the last DAYS days of UTC; today is one
    #[arg(long)]
    days: Option<u32>,
    /// Keep segments that named cursors have not read, up to this many bytes of its end
    #[arg(long)]
    hold_bytes: Option<u64>,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Parses a time span and escapes it in an error, because clap prints the error of an option unchanged.
fn parse_time_span(text: &str) -> Result<TimeSpan, TimeSpanRefusal> {
    text.parse().map_err(|TimeSpanRefusal { span_text: text }| TimeSpanRefusal {
        span_text: escape_line(&text).into_owned(),
    })
}

/// Applies limits to a tape that nobody writes.
pub fn retain(args: &RetainArgs) -> output::Result {
    let limits = RetentionLimits {
        bytes: args.bytes,
        age: args.age.map(|span| span.0),
        days: args.days,
        hold_for_cursors: args.hold_bytes,
        ..RetentionLimits::default()
    };
    if !limits.is_limited() {
        let message = "nothing to retain by: give --bytes, --age or --days; see unitape tape retain --help";
        return Err(CommandFailure::Usage(message.to_owned()));
    }
    output::print_hot_notice(&args.dir);
    let removed = unitape_tape::retain(&args.dir, &limits, &removal(), args.dry_run)?;
    if args.json {
        output::print_json(&serde_json::json!({
            "segments": removed.segments, "bytes": removed.bytes, "oldest": removed.oldest.0,
            "dry_run": args.dry_run,
        }))?;
    } else {
        let verb = if args.dry_run { "would remove" } else { "removed" };
        let (segments, size) = (grouped(removed.segments), bytes(removed.bytes));
        say!("{verb} {segments} segments, {size}; the oldest position is {}", removed.oldest);
    }
    Ok(CommandOutcome::Clean)
}

/// Makes the fields of `tape info --json`.
pub fn fields(retention: &RetentionStatus) -> serde_json::Value {
    let limits = retention.limits.as_ref().map(|l| {
        serde_json::json!({
            "bytes": l.bytes, "age_s": l.age.map(|age| age.as_secs_f64()), "days": l.days,
            "notice_s": l.notice_period.as_secs_f64(), "hold_bytes": l.hold_for_cursors,
        })
    });
    let cursors = retention.cursors.iter().map(|c| {
        serde_json::json!({
            "name": c.name, "position": c.position.map(|p| p.0), "lag_bytes": c.lag_bytes,
            "lag_events": c.lag_events, "age_s": c.age_s, "error": c.error,
            "rewound_from": c.rewound_from.map(|p| p.0),
        })
    });
    serde_json::json!({
        "limits": limits, "announced": retention.announced_to.0, "sealed": retention.sealed_count, "open": retention.open_count,
        "held": retention.held_segments, "clock_jump_s": retention.clock_jump_ns.map(|ns| ns as f64 / 1e9),
        "clock_jumps": retention.clock_jumps, "trouble": retention.trouble, "cursors": cursors.collect::<Vec<_>>(),
    })
}

/// Prints the retention for people.
pub fn print_retention(retention: &RetentionStatus) -> Result<(), CommandFailure> {
    say!(
        "kept      {} sealed segments, {} open{}",
        grouped(retention.sealed_count),
        retention.open_count,
        limits_text(retention)
    );
    if retention.announced_to > retention.oldest {
        say!("going     everything before position {}, soon", retention.announced_to);
    }
    if let Some(ns) = retention.clock_jump_ns {
        let s = ns / 1_000_000_000;
        say!("clock     has jumped by {s} s; nothing goes for its age or day until it is back, or believed");
    }
    if let Some(trouble) = &retention.trouble {
        say!("trouble   nothing could be removed: {trouble}");
    }
    for c in &retention.cursors {
        let position_text = c.position.map_or_else(|| "new".to_owned(), |p| format!("at position {p}"));
        let events = c.lag_events.map_or_else(String::new, |n| format!(", {} events", grouped(n)));
        let rewound = |from| format!("; rewound from {from}, where the tape was cut back");
        let rewound = c.rewound_from.map_or_else(String::new, rewound);
        let error = c.error.as_ref().map_or_else(String::new, |e| format!("; {e}"));
        say!(
            "cursor    {} {position_text}, {} behind{events}, {} s old{rewound}{error}",
            c.name,
            bytes(c.lag_bytes),
            c.age_s
        );
    }
    if retention.held_segments > 0 {
        say!("held      {} segments are there for cursors only", retention.held_segments);
    }
    Ok(())
}

fn limits_text(retention: &RetentionStatus) -> String {
    let Some(limits) = retention.limits.as_ref().filter(|l| l.is_limited()) else { return String::new() };
    let mut words = Vec::new();
    words.extend(limits.bytes.map(bytes));
    words.extend(limits.age.map(|age| TimeSpan(age).to_string()));
    words.extend(limits.days.map(|days| format!("{days} days")));
    format!("; no more than {}", words.join(", "))
}
