//! The summary of a demo, for people and as data.

use super::feeds::{MARKET, ORDERS};
use super::layout::{TextPaint, TextTable, WIDTH, quoted, wrapped};
use super::samples::SAMPLES;
use super::tape_overview::{ExplainedAlert, PriceHistory};
use super::{DemoResults, check};
use crate::output::{self, CommandFailure, bytes, escape_line, grouped};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use unitape_feed::FeedSummary;
use unitape_sim::day::WashTradePair;

/// Instruments shown of each kind.
const SHOWN: usize = 12;
/// Days shown; a bank's statements lie on one day each.
const DAYS_SHOWN: usize = 6;

/// Prints the summary.
pub fn print(story: &DemoResults) -> Result<(), CommandFailure> {
    let paint = TextPaint::for_stdout();
    let mut lines = Vec::new();
    lines.extend(wrapped(&describe_demo(story), WIDTH - 2));
    section(
        &mut lines,
        paint,
        "Feeds",
        "messages = with events + duplicates + quarantined + ignored; all were read side by side",
    );
    lines.extend(feeds(story).lines(paint));
    lines.push(format!(
        "  {} on tape in {} events, {:.0} bytes an event; the feeds take turns {} times",
        bytes(tape_bytes(story)),
        grouped(events(story)),
        tape_bytes(story) as f64 / events(story).max(1) as f64,
        grouped(story.picture.switches)
    ));
    lines.extend(super::market_data::lines(story, paint));
    section(
        &mut lines,
        paint,
        "Order books",
        "last best bid and ask, and the way of their middle over 130 minutes",
    );
    books(&mut lines, &story.picture.books, paint);
    section(&mut lines, paint, "Indices", "last value, and its way over the same time");
    indices(&mut lines, &story.picture.indices, paint);
    section(
        &mut lines,
        paint,
        "Manipulations of the simulated day: planted, and found",
        "evidence = events, or positions, on the tape",
    );
    lines.extend(labels(story).lines(paint));
    section(
        &mut lines,
        paint,
        "Wash trades of the order flow: planted, and found",
        "the same group of owners on both sides",
    );
    lines.extend(planted(story).lines(paint));
    lines.push(String::new());
    lines.extend(near_misses(story).lines(paint));
    section(&mut lines, paint, "Quarantine", "broken on purpose; kept byte for byte, neighbours unharmed");
    lines.extend(quarantine(story).lines(paint));
    section(
        &mut lines,
        paint,
        "Sealed days",
        "the tape's events by day and schema, compressed and encrypted, for scans",
    );
    lines.extend(days(story).lines(paint));
    more(&mut lines, story.days.days.len(), DAYS_SHOWN, "the first ones", "days are in the store", paint);
    section(&mut lines, paint, "Checked by the demo itself", "");
    for check in &story.checks {
        let mark = if check.holds() { paint.good("✓") } else { paint.bad("✗") };
        lines.push(format!("  {mark} {}", check.what));
    }
    let t = story.times;
    lines.push(paint.dim(&format!(
        "  {:.1} s: {:.1} s making the feeds, {:.1} s onto the tape, {:.1} s replay, {:.1} s sealing, {:.1} s checks",
        t.total_s, t.make_s, t.consolidate_s, t.replay_s, t.seal_s, t.check_s
    )));
    section(&mut lines, paint, "Answers", "each by the command that you would type");
    lines.extend(answers(story));
    section(&mut lines, paint, "Try next", "");
    for (command, purpose) in next(story) {
        lines.push(format!("  {}", paint.dim(&format!("# {purpose}"))));
        lines.push(format!("  {}", escape_line(&command)));
    }
    let mut out = output::stdout();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(())
}

/// Writes the report as JSON.
pub fn json(story: &DemoResults) -> Value {
    let truth = &story.written.truth;
    let feeds: serde_json::Map<_, _> = story
        .summary
        .by_feed
        .iter()
        .map(|(name, f)| {
            let mut value = serde_json::to_value(f).unwrap_or_default();
            value["by_kind"] = json!(story.picture.by_feed.get(name));
            value["messages_per_s"] = rate(f.messages, story.times.consolidate_s).into();
            (name.clone(), value)
        })
        .collect();
    let scenes: Vec<Value> = truth
        .planted
        .iter()
        .zip(&story.matched)
        .map(|(scene, index)| json!({ "scene": scene, "alert": index.map(|n| alert_json(&story.explained_alerts[n])), "found": index.is_some() }))
        .collect();
    let labels: Vec<Value> = story
        .written
        .market
        .labels
        .iter()
        .zip(&story.labelled)
        .map(|(label, index)| json!({ "label": label, "alert": index.map(|n| alert_json(&story.explained_alerts[n])), "found": index.is_some() }))
        .collect();
    let days = story.days.days.iter().map(|(day, info)| {
        let schemas: serde_json::Map<_, _> = info
            .schemas
            .iter()
            .map(|(schema, amount)| (schema.name().to_owned(), amount.rows.into()))
            .collect();
        json!({ "day": day.to_string(), "rows": info.all.rows, "bytes": info.all.bytes, "schemas": schemas })
    });
    let near: Vec<Value> = truth
        .near_misses
        .iter()
        .map(|scene| {
            let raised =
                !check::near_miss_alerts(std::slice::from_ref(scene), &story.explained_alerts).is_empty();
            json!({ "scene": scene, "alert": raised })
        })
        .collect();
    json!({
        "dir": story.demo_dir.dir.display().to_string(),
        "holds": story.checks.iter().all(|c| c.holds()),
        "workers": story.workers,
        "feeds": feeds,
        "messages": story.summary.messages,
        "events": story.summary.events,
        "quarantined": story.summary.quarantined,
        "ignored": story.summary.ignored,
        "feed_switches": story.picture.switches,
        "tape": {
            "id": story.tape.id.to_string(),
            "bytes": tape_bytes(story),
            "events": events(story),
            "bytes_per_event": tape_bytes(story) as f64 / events(story).max(1) as f64,
            "disk_bytes": story.tape.disk_bytes,
        },
        "depth": super::market_data::json(story),
        "books": story.picture.books.iter().map(course_json).collect::<Vec<_>>(),
        "indices": story.picture.indices.iter().map(course_json).collect::<Vec<_>>(),
        "planted": scenes,
        "labels": labels,
        "near_misses_of_the_day": story.written.market.near_misses,
        "not_planted": unplanted(story).map(|n| alert_json(&story.explained_alerts[n])).collect::<Vec<_>>(),
        "days": days.collect::<Vec<_>>(),
        "answers": {
            "bank_events": story.answers.bank_events, "best_prices": story.answers.best_prices, "cases": story.answers.cases,
            "page": story.answers.page, "plot": story.answers.plot, "served_rows": story.served_rows,
        },
        "near_misses": near,
        "alerts": { "live": story.live.alerts.len(), "live_before_the_tape_was_done": story.live.early },
        "quarantine": story.reasons,
        "times": story.times,
        "checks": story.checks.iter().map(|c| json!({ "what": c.what, "holds": c.holds(), "differs": c.differs })).collect::<Vec<_>>(),
        "next": next(story).map(|(command, _)| command),
    })
}

/// Describes the demo's events in plain sentences.
fn describe_demo(story: &DemoResults) -> String {
    let truth = &story.written.truth;
    let messages = |feed| story.summary.by_feed.get(feed).map_or(0, |f| f.messages);
    let replay_text = if story.checks.iter().all(|c| c.holds()) {
        "played again from the tape, it raised exactly the same."
    } else {
        "but not all is as it must be: see the checks below."
    };
    format!(
        "What just happened: three real feeds ({}), a made-up FIX 4.4 order flow at three venues ({} messages, in \
         which {} wash trades, {} near misses and {} broken messages are hidden), a simulated day with auctions, \
         halts, news and payments ({} events, {} manipulations and {} near misses among them) and the market data of an \
         exchange in a box, in FAST on two lines that lose packets, were decoded by {} and merged by time onto one tape: a durable log that any number of programs can follow without slowing its writer. One did: a watch \
         followed the tape while it was being written and raised {} alerts, {} before the last message was on it; \
         {replay_text} The alerts are events on a tape of their own.",
        SAMPLES.map(|s| s.title).join("; "),
        grouped(messages(ORDERS)),
        truth.planted.len(),
        truth.near_misses.len(),
        grouped(truth.totals.bad.total()),
        grouped(messages(MARKET)),
        story.written.market.labels.len(),
        story.written.market.near_misses,
        if story.workers == 1 { "one worker".to_owned() } else { format!("{} workers", story.workers) },
        story.live.alerts.len(),
        match story.live.early {
            early if early == story.live.alerts.len() => "all of them".to_owned(),
            early => format!("{early} of them"),
        },
    )
}

pub fn section(lines: &mut Vec<String>, paint: TextPaint, title: &str, summary: &str) {
    lines.push(String::new());
    let summary_text = if summary.is_empty() { String::new() } else { format!("  {}", paint.dim(summary)) };
    lines.push(format!("{}{summary_text}", paint.bold(title)));
}

fn feeds(story: &DemoResults) -> TextTable {
    let head =
        ["feed", ">messages", ">with events", ">duplicates", ">quarantined", ">ignored", ">events", ">size"];
    let mut table = TextTable::new(&head);
    let s = &story.summary;
    let mut row = |name: &str, counts: [u64; 7]| {
        let [numbers @ .., size] = counts;
        let numbers = numbers.map(grouped);
        table.row(std::iter::once(name.to_owned()).chain(numbers).chain([bytes(size)]).collect());
    };
    let mut sum = [0; 7];
    for (name, f) in &s.by_feed {
        let FeedSummary { messages, with_events, duplicates, quarantined, ignored, events, bytes, .. } = *f;
        let counts = [messages, with_events, duplicates, quarantined, ignored, events, bytes];
        sum.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
        row(name, counts);
    }
    row("all", sum);
    table
}

fn books(lines: &mut Vec<String>, courses: &[PriceHistory], paint: TextPaint) {
    let mut table =
        TextTable::new(&["venue", "instrument", ">size", ">bid", ">ask", ">size", ">changes", "course"]);
    for c in courses.iter().take(SHOWN) {
        let value = |n: usize| c.last.get(n).cloned().flatten().unwrap_or_else(|| "-".to_owned());
        let cells = [value(1), value(0), value(2), value(3), grouped(c.changes), c.sparkline()];
        table.row([c.venue.clone(), c.instr.clone()].into_iter().chain(cells).collect());
    }
    lines.extend(table.lines(paint));
    more(lines, courses.len(), SHOWN, "the most active", "order books are on the tape", paint);
}

fn indices(lines: &mut Vec<String>, courses: &[PriceHistory], paint: TextPaint) {
    let mut table = TextTable::new(&["venue", "index", ">value", ">changes", "course"]);
    for c in courses.iter().take(SHOWN) {
        let value = c.last.first().cloned().flatten().unwrap_or_else(|| "-".to_owned());
        table.row(vec![c.venue.clone(), c.instr.clone(), value, grouped(c.changes), c.sparkline()]);
    }
    lines.extend(table.lines(paint));
    more(lines, courses.len(), SHOWN, "the most active", "indices are on the tape", paint);
}

/// Says which of how many are shown.
pub fn more(
    lines: &mut Vec<String>,
    all: usize,
    shown_count: usize,
    choice: &str,
    remainder: &str,
    paint: TextPaint,
) {
    if let Some(more) = all.checked_sub(shown_count).filter(|n| *n > 0) {
        lines.push(paint.dim(&format!("  {choice}; {more} more {remainder}")));
    }
}

fn planted(story: &DemoResults) -> TextTable {
    let mut table = TextTable::new(&["planted at", "scene", "group", "instrument", "evidence", ">found"]);
    let part = |scene: &WashTradePair, n: usize| {
        scene.key.0.get(n).map_or_else(String::new, |(_, value)| value.clone())
    };
    for (scene, index) in story.written.truth.planted.iter().zip(&story.matched) {
        let evidence = match index {
            Some(n) => story.explained_alerts[*n]
                .positions
                .iter()
                .map(|p| format!("@{p}"))
                .collect::<Vec<_>>()
                .join(" "),
            None => "-".to_owned(),
        };
        table.row(vec![
            time_of_day(scene.ts),
            scene.arm.to_owned(),
            part(scene, 0),
            part(scene, 1),
            evidence,
            if index.is_some() { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    for n in unplanted(story) {
        let f = &story.explained_alerts[n];
        let key = |part_index: usize| f.key.get(part_index).cloned().unwrap_or_default();
        let evidence = f.positions.iter().map(|p| format!("@{p}")).collect::<Vec<_>>().join(" ");
        table.row(vec![
            format!("NEVER (alert {n})"),
            f.arm.clone(),
            key(0),
            key(1),
            evidence,
            "NO".to_owned(),
        ]);
    }
    table
}

/// Alerts that nothing was planted for.
fn unplanted(story: &DemoResults) -> impl Iterator<Item = usize> {
    let planted = |n: &usize| story.matched.contains(&Some(*n)) || story.labelled.contains(&Some(*n));
    (0..story.explained_alerts.len()).filter(move |n| !planted(n))
}

fn labels(story: &DemoResults) -> TextTable {
    let mut table = TextTable::new(&["planted at", "scenario", "who and where", ">evidence", ">found"]);
    for (label, index) in story.written.market.labels.iter().zip(&story.labelled) {
        let evidence = index.map_or(0, |n| story.explained_alerts[n].positions.len() as u64);
        table.row(vec![
            time_of_day(label.ts),
            label.scenario.to_owned(),
            check::key(label),
            if evidence > 0 { grouped(evidence) } else { "counts".to_owned() },
            if index.is_some() { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    table
}

fn days(story: &DemoResults) -> TextTable {
    let mut table = TextTable::new(&["day", ">events", ">size", ">bytes an event", "schemas"]);
    for (day, info) in story.days.days.iter().take(DAYS_SHOWN) {
        let mut schemas: Vec<_> =
            info.schemas.iter().map(|(schema, amount)| (amount.rows, schema.name())).collect();
        schemas.sort_unstable_by(|a, b| b.cmp(a));
        let mut names =
            schemas.iter().take(3).map(|(n, name)| format!("{name} {}", grouped(*n))).collect::<Vec<_>>();
        if let Some(more) = schemas.len().checked_sub(3).filter(|n| *n > 0) {
            names.push(format!("{more} more"));
        }
        let per_event = info.all.bytes as f64 / info.all.rows.max(1) as f64;
        table.row(vec![
            day.to_string(),
            grouped(info.all.rows),
            bytes(info.all.bytes),
            format!("{per_event:.1}"),
            names.join(", "),
        ]);
    }
    table
}

fn near_misses(story: &DemoResults) -> TextTable {
    let mut table = TextTable::new(&["near misses: innocent because", ">planted", ">alerts"]);
    let scenes = &story.written.truth.near_misses;
    let reasons: BTreeSet<&str> = scenes.iter().filter_map(|s| s.misses).collect();
    for reason in reasons {
        let reason_scenes: Vec<WashTradePair> =
            scenes.iter().filter(|s| s.misses == Some(reason)).cloned().collect();
        let raised = check::near_miss_alerts(&reason_scenes, &story.explained_alerts).len() as u64;
        table.row(vec![reason.to_owned(), grouped(reason_scenes.len() as u64), grouped(raised)]);
    }
    table
}

fn quarantine(story: &DemoResults) -> TextTable {
    let mut table = TextTable::new(&["reason", ">messages", "for example"]);
    for (reason, n) in &story.reasons {
        let first = story.quarantine.iter().find(|e| e.reason == *reason);
        let detail = first.map(|e| e.detail.clone()).unwrap_or_default();
        let room = WIDTH - 35;
        let short = if detail.chars().count() > room {
            format!("{}…", detail.chars().take(room - 1).collect::<String>())
        } else {
            detail
        };
        table.row(vec![reason.clone(), grouped(*n), short]);
    }
    table
}

/// Writes a line for each question that the tapes answer.
fn answers(story: &DemoResults) -> Vec<String> {
    let answers = &story.answers;
    let (prices, bank_events) = (grouped(answers.best_prices), grouped(answers.bank_events));
    let (cases, alerts) = (grouped(answers.cases), grouped(story.live.alerts.len() as u64));
    let mut lines = vec![
        format!("  best price: {prices} changes of it among {bank_events} events of twenty banks"),
        format!("  cases: {cases} of {alerts} alerts, each to be closed by two persons"),
        "  in a browser: unitape demo --desk".to_owned(),
        format!(
            "  data on demand: {} rows of the sealed days, read back from a server by who may read them",
            grouped(story.served_rows)
        ),
    ];
    if let Some(name) = answers.page.as_ref().and_then(|page| page.file_name()) {
        let name = name.to_string_lossy();
        lines.push(format!("  a case with the picture of its book: {name} in the directory of the demo"));
    }
    lines.push(match answers.plot.as_ref().and_then(|plot| plot.file_name()) {
        Some(name) => {
            format!("  a plot from Python: {} in the directory of the demo", name.to_string_lossy())
        }
        None => "  a plot from Python: needs unitape and matplotlib there, see docs/python.md".to_owned(),
    });
    lines
}

/// Commands to continue with, and what they do.
fn next(story: &DemoResults) -> [(String, &'static str); 8] {
    let program = program();
    let tape = quoted(&story.demo_dir.tape().display().to_string());
    let alerts = quoted(&story.demo_dir.alerts().display().to_string());
    let cases = quoted(&story.demo_dir.cases().display().to_string());
    let banks = quoted(&story.demo_dir.banks().join("tape").display().to_string());
    let store = quoted(&story.demo_dir.store().display().to_string());
    let first = story.explained_alerts.first().map(|f| f.positions.as_slice()).unwrap_or_default();
    let (from, to) = (first.iter().min().copied(), first.iter().max().copied());
    let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
    let instr = story.market_data.courses.first().map_or("?", |course| course.instr.as_str());
    let window = r#"'{"wash_trade":{"window_ms":120000}}'"#;
    [
        (
            format!("{program} tape cat {tape} --kind exec --from @{from} --to @{to}"),
            "the executions from the first alert's first piece of evidence to its last",
        ),
        (
            format!("{program} tape cat {alerts} --kind alert --limit 5"),
            "the first alerts on the tape of the live watch, with the rules that gave them",
        ),
        (format!("{program} quarantine list {tape}"), "what was broken, where, and why"),
        (
            format!("{program} watch replay {tape} --params {window}"),
            "the same tape with a window of two minutes: some near misses become alerts",
        ),
        (format!("{program} fx book {banks}"), "the quotes of twenty banks behind the last best prices"),
        (
            format!("{program} case list --cases {cases} --limit 5"),
            "the first cases; `case show` has why, and the book before and after",
        ),
        (
            format!("{program} store scan {store} --schema bbo --since 2014-02-06 --until 2014-02-07"),
            "the quotes of a day in New York, out of the sealed days",
        ),
        (
            format!("{program} book {tape} --venue XBOX --instr {instr} --depth 3"),
            "the depth of the exchange's most active instrument, from the levels on the tape",
        ),
    ]
}

/// Returns the command that starts this program from the current directory.
fn program() -> String {
    let called = std::env::args().next().unwrap_or_else(|| "unitape".to_owned());
    let current_dir = std::env::current_dir().ok();
    let relative = current_dir
        .and_then(|dir| Path::new(&called).strip_prefix(dir).ok().map(|p| p.display().to_string()));
    match relative {
        // A path without a slash would be looked for in PATH.
        Some(path) if path.contains('/') => quoted(&path),
        Some(path) => quoted(&format!("./{path}")),
        None => quoted(&called),
    }
}

fn alert_json(f: &ExplainedAlert) -> Value {
    let positions: Vec<u64> = f.positions.iter().map(|p| p.0).collect();
    json!({ "scenario": f.scenario, "arm": f.arm, "key": f.key, "ts": f.ts, "positions": positions, "evidence": f.legs })
}

pub fn course_json(c: &PriceHistory) -> Value {
    json!({
        "venue": c.venue, "instr": c.instr, "changes": c.changes, "ts": c.ts, "last": c.last,
        "sparkline": c.sparkline(),
    })
}

fn time_of_day(ts: u64) -> String {
    let text = crate::commands::tape::utc(ts as i64);
    text.get(11..23).unwrap_or(&text).to_owned()
}

fn tape_bytes(story: &DemoResults) -> u64 {
    story.tape.end.0 - story.tape.first.0
}

fn events(story: &DemoResults) -> u64 {
    story.tape.ordinals - story.tape.first_ordinal
}

fn rate(messages: u64, seconds: f64) -> u64 {
    (messages as f64 / seconds.max(1e-9)) as u64
}
