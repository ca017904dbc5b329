//! A case as one HTML file: without script, without anything from outside, ready to be printed.
//!
//! The file has a content policy that forbids scripts and requests. All text of tapes and people is escaped.

use crate::evidence::{AlertEvidence, BookDepthRecord, EvidenceTape};
use crate::model::parties_of;
use crate::{ActionRecord, AlertRecord, Case, CaseState, CaseStore, Disposition, Error};
use serde_json::Value;
use std::fmt::Write;
use unitape_model::{UnixNanos, UtcMoment};
use unitape_run::picture::{Picture, PictureOptions, escape};
use unitape_tape::ReadOptions;
use unitape_watch::{Alert, scenarios};

/// Returns a case as HTML. `now` is the time of our clock, nanoseconds since 1970.
///
/// # Errors
/// Fails if there is no such case, if the tape is not the one of its alerts, or if the database or the tape cannot be read.
pub fn html(store: &CaseStore, tape: &mut EvidenceTape, id: u64, now: i64) -> Result<String, Error> {
    let case = store.case(id)?;
    let alerts = store.alerts(id, ALERTS_MAX)?;
    let mut out = String::new();
    write_page_head(&mut out, &case, now);
    write_parties(&mut out, &case, &store.parties(id)?);
    write_reasons(&mut out, &case, &alerts);
    for alert in &alerts {
        let evidence = alert_evidence(tape, alert)?;
        write_picture(&mut out, tape, &alert.recorded.alert, &evidence)?;
        evidence_of(&mut out, alert, &evidence);
    }
    if case.alerts > alerts.len() as u64 {
        _ = writeln!(out, "<p>{} more alerts are not shown here.</p>", case.alerts - alerts.len() as u64);
    }
    write_history(&mut out, &store.actions(id)?);
    out += "</body>\n</html>\n";
    Ok(out)
}

/// Returns the evidence of an alert from the tape that it is of.
///
/// # Errors
/// Fails if the alert is of another tape, or if the tape cannot be read.
pub fn alert_evidence(tape: &mut EvidenceTape, alert: &AlertRecord) -> Result<AlertEvidence, Error> {
    require_source(tape, alert)?;
    tape.evidence(&alert.recorded.alert, DEPTH)
}

/// Returns the options of the picture of an alert: its book, the time around its evidence, and the orders of its parties.
///
/// # Errors
/// Fails if neither the alert nor its events name an instrument and a venue.
pub fn picture_options(alert: &Alert, evidence: &AlertEvidence) -> Result<PictureOptions, Error> {
    let events: Vec<Value> = evidence
        .events
        .iter()
        .filter_map(|line| serde_json::from_str(&line.event.as_ref().ok()?.json).ok())
        .collect();
    let field_text = |field: &str| {
        let of_events = || events.iter().rev().find_map(|event| event[field].as_str().map(str::to_owned));
        alert.key_value(field).map(str::to_owned).or_else(of_events)
    };
    let missing = |noun: &str| {
        Error::Value(format!("there is no picture: neither the alert nor its events name {noun}"))
    };
    let instrument = field_text("instr").ok_or_else(|| missing("an instrument"))?;
    let venue = field_text("venue").ok_or_else(|| missing("a venue"))?;
    let times = events.iter().filter_map(|event| event["ts"].as_i64()).chain([alert.ts.0]);
    let (first, last) =
        times.fold((alert.ts.0, alert.ts.0), |(first, last), ts| (first.min(ts), last.max(ts)));
    let margin = (last.saturating_sub(first) / 2).max(MARGIN_NS);
    let (since, until) = (first.saturating_sub(margin), last.saturating_add(margin));
    let mut options = PictureOptions::new(&instrument, &venue, UnixNanos(since), UnixNanos(until));
    options.parties = parties_of(alert);
    for event in &events {
        let names = ["owner", "trader"].iter().filter_map(|field| event[*field].as_str().map(str::to_owned));
        options.parties.extend(names);
    }
    options.parties.sort_unstable();
    options.parties.dedup();
    Ok(options)
}

/// Fails if the alert is of another tape.
fn require_source(tape: &EvidenceTape, alert: &AlertRecord) -> Result<(), Error> {
    let source = alert.recorded.source_tape;
    if source.is_none_or(|source| source == tape.id().0) {
        return Ok(());
    }
    let source = source.map(|source| unitape_tape::TapeId(source).to_string()).unwrap_or_default();
    Err(Error::Ingest {
        path: tape.dir().to_owned(),
        reason: format!("alert {} is of the tape {source}, and this is {}", alert.number, tape.id()),
    })
}

fn write_page_head(out: &mut String, case: &Case, now: i64) {
    let title = escape(&format!("Case {}: {}", case.id, case.scenario.replace('_', " ")));
    _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
         form-action 'none'\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         <p><strong>{}{}</strong>{}. Exported {} UTC.</p>\n",
        case.state.name().replace('_', " "),
        case.disposition.map(|word| format!(": {}", word.name().replace('_', " "))).unwrap_or_default(),
        case.assignee.as_ref().map(|user| format!(", with {}", escape(user))).unwrap_or_default(),
        time_text(now)
    );
}

fn write_parties(out: &mut String, case: &Case, parties: &[String]) {
    *out += "<h2>Who and what</h2>\n<dl>\n";
    if let Ok(Value::Object(key)) = serde_json::from_str(&case.key) {
        key.iter().for_each(|(name, value)| write_term(out, name, &value_text(value)));
    }
    write_term(out, "parties", &parties.join(", "));
    write_term(out, "day", &case.session_date);
    write_term(out, "alerts", &case.alerts.to_string());
    *out += "</dl>\n";
}

fn write_reasons(out: &mut String, case: &Case, alerts: &[AlertRecord]) {
    *out += "<h2>Why</h2>\n";
    if let Ok(def) = scenarios::find(&case.scenario) {
        _ = writeln!(out, "<p>{}: {}</p>", escape(def.title), escape(def.trigger));
        if !def.regulation.is_empty() {
            _ = writeln!(out, "<p>{}</p>", escape(&def.regulation.join("; ")));
        }
    }
    for alert in alerts {
        let recorded = &alert.recorded;
        _ = writeln!(
            out,
            "<h3>Alert {}, {} UTC, event {}</h3>\n<dl>",
            alert.number,
            time_text(recorded.alert.ts.0),
            recorded.alert.trigger_seq
        );
        if let Value::Object(detail) = &recorded.alert.detail {
            detail
                .iter()
                .for_each(|(name, value)| write_term(out, &name.replace('_', " "), &value_text(value)));
        }
        for (name, value) in [("rule version", &recorded.rule_version), ("parameters", &recorded.params_hash)]
        {
            if let Some(value) = value {
                write_term(out, name, value);
            }
        }
        *out += "</dl>\n";
    }
}

fn write_picture(
    out: &mut String,
    tape: &EvidenceTape,
    alert: &Alert,
    evidence: &AlertEvidence,
) -> Result<(), Error> {
    *out += "<h2>The book</h2>\n";
    match picture_options(alert, evidence) {
        Ok(options) => {
            let picture = Picture::read(tape.dir(), &options, ReadOptions::default())?;
            _ = writeln!(out, "<figure>{}</figure>", picture.svg(1000, 560));
        }
        Err(Error::Value(reason)) => _ = writeln!(out, "<p>{}</p>", escape(&reason)),
        Err(error) => return Err(error),
    }
    Ok(())
}

fn evidence_of(out: &mut String, alert: &AlertRecord, evidence: &AlertEvidence) {
    _ = writeln!(
        out,
        "<h2>Evidence of alert {}</h2>\n<table>\n<tr><th>Event</th><th>Position</th><th>Content</th></tr>",
        alert.number
    );
    for line in &evidence.events {
        let position = line.position.map(|position| position.to_string()).unwrap_or_default();
        let content = match &line.event {
            Ok(event) => escape(&event.json),
            Err(reason) => format!("<em>{}</em>", escape(reason)),
        };
        _ = writeln!(
            out,
            "<tr><td>{}</td><td>{position}</td><td class=\"code\">{content}</td></tr>",
            line.seq
        );
    }
    *out += "</table>\n";
    if let Some(no_book_reason) = &evidence.without_books {
        _ = writeln!(out, "<p>{}</p>", escape(no_book_reason));
    }
    for (moment, books) in [("before", &evidence.before), ("after", &evidence.after)] {
        books.iter().for_each(|book| book_of(out, moment, alert, book));
    }
}

fn book_of(out: &mut String, moment: &str, alert: &AlertRecord, book: &BookDepthRecord) {
    let BookDepthRecord { venue, instr, basis, bids, asks } = book;
    _ = writeln!(
        out,
        "<table>\n<caption>The book of {} at {} (from {basis}) {moment} event {}</caption>\n\
         <tr><th>Bid quantity</th><th>Bid</th><th>Ask</th><th>Ask quantity</th></tr>",
        escape(instr),
        escape(venue),
        alert.recorded.alert.trigger_seq
    );
    for n in 0..bids.len().max(asks.len()) {
        let cell = |level: Option<&unitape_book::PriceLevel>| {
            level.map_or_else(Default::default, |level| [level.px.to_string(), level.qty.to_string()])
        };
        let ([bid, bid_qty], [ask, ask_qty]) = (cell(bids.get(n)), cell(asks.get(n)));
        _ = writeln!(out, "<tr><td>{bid_qty}</td><td>{bid}</td><td>{ask}</td><td>{ask_qty}</td></tr>");
    }
    *out += "</table>\n";
}

fn write_history(out: &mut String, actions: &[ActionRecord]) {
    *out += "<h2>History</h2>\n<table>\n<tr><th>Number</th><th>Time (UTC)</th><th>Who</th><th>What</th><th>State</th><th>Text</th></tr>\n";
    for action in actions {
        let author_text = action
            .author
            .as_ref()
            .map_or("ingest".to_owned(), |author| format!("{} ({})", author.user, author.role));
        let mut action_text = action.kind.name().replace('_', " ");
        if let Some(user) = &action.assignee {
            action_text += &format!(" to {user}");
        }
        if let Some(word) = action.disposition.map(Disposition::name) {
            action_text += &format!(" as {word}");
        }
        _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            action.number,
            time_text(action.ts),
            escape(&author_text),
            escape(&action_text),
            action.state.map(CaseState::name).unwrap_or_default().replace('_', " "),
            escape(action.text.as_deref().unwrap_or_default())
        );
    }
    *out += "</table>\n";
}

fn write_term(out: &mut String, name: &str, value: &str) {
    _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
}

/// Returns text as it is, another value as JSON.
fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn time_text(ns: i64) -> String {
    UtcMoment(UnixNanos(ns)).to_string()
}

/// Alerts of a case that are shown in full.
const ALERTS_MAX: u64 = 20;
/// Levels of each side of a book.
const DEPTH: usize = 10;
/// A picture begins so long before the evidence and ends so long after it, or half of its length.
const MARGIN_NS: i64 = 1_000_000_000;
const STYLE: &str = "body{font:14px/1.4 sans-serif;color:#17212b;max-width:1100px;margin:1.5rem auto;padding:0 1rem}\
h1{font-size:1.4rem}h2{font-size:1.1rem;border-bottom:1px solid #c9d2da}h3{font-size:1rem}\
table{border-collapse:collapse;margin:.5rem 0}th,td{text-align:left;vertical-align:top;padding:.2rem .6rem;border-bottom:1px solid #c9d2da;\
overflow-wrap:anywhere;unicode-bidi:isolate}.code{font-family:monospace;font-size:12px}caption{text-align:left;color:#4a5a68}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem}dt{color:#4a5a68}dd{margin:0;overflow-wrap:anywhere;unicode-bidi:isolate}\
figure{margin:0}svg{max-width:100%;height:auto}@media print{body{margin:0;max-width:none}h2{break-after:avoid}figure,tr{break-inside:avoid}}";
