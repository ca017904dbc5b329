//! An explained message in words:
//!
//! ```text
//! #2 at byte 311, 163 bytes: MsgType "8" became 1 events by rule 2 (line 97)
//!   rule 1 (line 66) did not hold: 150 is "5", not "0"
//!   time from 60 "20240102-10:00:00.000"
//!   order_amend (line 99)
//!     oid        "O1"            from 37 "O1"
//!     side       "B"             from 54 "1", table side
//!     stop_px    –               from 99: not in the message
//!     kept 58 "hello" (nothing names it)
//! ```

use serde_json::Value as Json;
use std::fmt::Write as _;
use unitape_feed::mapping::{
    EventExplanation, ExplainedOutcome, FailedCondition, FieldExplanation, MessageExplanation, RuleLocation,
};
use unitape_marketdata::engine::ConfigSummary;

/// Explains the message in words, line by line. The text of the message itself may hold line feeds.
pub fn explain_message(m: &MessageExplanation) -> Vec<String> {
    let mut lines = Vec::new();
    let mut out = String::new();
    // Writing to a String cannot fail, here and below.
    _ = write!(out, "#{} at byte {}, {} bytes: ", m.n, m.offset, m.length);
    if !m.type_label.is_empty() {
        _ = write!(out, "{} {} ", m.type_label, m.message_type);
    }
    out.push_str(&match m.outcome {
        ExplainedOutcome::Events => match &m.events[..] {
            [_] => "became 1 event".to_owned(),
            events => format!("became {} events", events.len()),
        },
        ExplainedOutcome::Ignored => "is ignored".to_owned(),
        ExplainedOutcome::Quarantined => "goes into quarantine".to_owned(),
    });
    if let Some(rule) = m.rule {
        _ = write!(out, " by {}", describe_location("rule", rule));
    }
    lines.push(out);
    if let Some(refusal) = &m.quarantined {
        lines.push(format!("  {}: {}", refusal.reason, refusal.detail));
        lines.extend(refusal.suggestion.iter().map(|suggestion| format!("  {suggestion}")));
    }
    for passed_rule in &m.passed_over {
        lines.push(format!(
            "  {} did not hold: {}",
            describe_location("rule", passed_rule.rule),
            failed_line(&passed_rule.failed)
        ));
    }
    if let Some(time) = &m.time {
        let source = time.source.as_ref().map_or(": not in the message".to_owned(), |s| format!(" {s}"));
        let refused = time.refused.as_ref().map_or(String::new(), |r| format!(" ✗ {r}"));
        lines.push(format!("  time from {}{source}{refused}", time.from));
    }
    for s in &m.skipped {
        let entry = s.entry.map_or(String::new(), |n| format!(", entry {n}"));
        lines.push(format!(
            "  no {}{entry}: {}",
            describe_location("event", s.event),
            failed_line(&s.failed)
        ));
    }
    for e in &m.events {
        event(&mut lines, e);
    }
    lines
}

/// Writes the summary of a mapping with a table `[fast]`, line by line:
///
/// ```text
/// box: ok, packets of 3 channels of XBOX, messages numbered by product
///   depth      incremental  line A: 2, line B: 2; 7 of 7 templates used
///   messages   1 beacon, 1 depth, 2 instrument …
/// ```
pub fn describe_handler(name: &str, holds: &ConfigSummary) -> Vec<String> {
    let venue = if holds.venue.is_empty() { String::new() } else { format!(" of {}", holds.venue) };
    let channels = match holds.channels.len() {
        0 => "no channels yet, for others to be like".to_owned(),
        1 => format!("packets of 1 channel{venue}"),
        n => format!("packets of {n} channels{venue}"),
    };
    let mut lines = vec![format!("{name}: ok, {channels}, messages numbered by {}", holds.numbered_by)];
    let width = holds.channels.iter().map(|c| c.name.chars().count()).max().unwrap_or(0).max(8);
    for channel in &holds.channels {
        let [a, b] = channel.addresses;
        let line_b = if b == 0 { "no line B".to_owned() } else { format!("line B: {b}") };
        lines.push(format!(
            "  {:width$}  {:11}  line A: {a}, {line_b}; {} of {} templates used",
            channel.name, channel.role, channel.used, channel.templates
        ));
    }
    let sorts: Vec<_> = holds.messages.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    lines.push(format!("  {:width$}  {}", "messages", sorts.join(", ")));
    if !holds.passed_over.is_empty() {
        lines.push(format!("  {:width$}  {}", "unused", holds.passed_over.join(", ")));
    }
    lines
}

fn event(lines: &mut Vec<String>, e: &EventExplanation) {
    let mut out = format!("  {}", e.kind);
    if e.event.line > 0 {
        _ = write!(out, " (line {})", e.event.line);
    }
    if let Some(n) = e.entry {
        _ = write!(out, ", entry {n}");
    }
    lines.push(out);
    for f in &e.fields {
        lines.push(field_line(f, e.becomes.as_ref().and_then(|b| b.get(f.field))));
    }
    // A format without rules: the event is all there is to show.
    if e.fields.is_empty()
        && let Some(Json::Object(fields)) = &e.becomes
    {
        for (name, value) in fields.iter().filter(|(name, _)| *name != "kind") {
            lines.push(format!("    {name:10} {value}"));
        }
    }
    for kept_field in &e.kept {
        let reason = match kept_field.why {
            "keep" => "the mapping keeps it",
            "entry" => "nothing names it, in the entry",
            _ => "nothing names it",
        };
        lines.push(format!("    kept {} {} ({reason})", kept_field.name, kept_field.value));
    }
}

fn field_line(f: &FieldExplanation, becomes: Option<&Json>) -> String {
    let value = becomes.map_or("–".to_owned(), Json::to_string);
    let mut out = format!("    {:10} {value:24} ", f.field);
    out.push_str(if f.from == "const" { "the mapping's own" } else { "from " });
    if f.from != "const" {
        out.push_str(&f.from);
    }
    if let Some(source) = &f.source {
        _ = write!(out, " {source}");
    }
    if let Some(table) = &f.table {
        _ = write!(out, ", table {table}");
    }
    if let Some(suffix) = &f.suffix {
        _ = write!(out, ", with \"{suffix}\" behind it");
    }
    if let Some(note) = &f.note {
        _ = write!(out, ": {note}");
    }
    if let Some(refused) = &f.refused {
        _ = write!(out, " ✗ line {}: {refused} ({})", f.line, f.value_type);
    }
    out
}

fn failed_line(f: &FailedCondition) -> String {
    match &f.value {
        Some(value) => format!("{} is {value}, not {} (line {})", f.path, f.wanted, f.line),
        None => format!("{} is not there, and should be {} (line {})", f.path, f.wanted, f.line),
    }
}

fn describe_location(noun: &str, p: RuleLocation) -> String {
    format!("{noun} {} (line {})", p.number, p.line)
}
