//! The summary of a demo, for people and as data.

use super::check::{ExplainedAlert, key_text, near_miss_alerts, number};
use super::feeds::{MARKET, ORDERS, SAMPLE_TITLES};
use super::layout::{TextPaint, TextTable, WIDTH, quoted, wrapped};
use super::overview::PriceHistory;
use super::{DemoResults, market_data};
use crate::output::{self, CommandFailure, bytes, escape_line, grouped};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

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
    lines.extend(feed_table(story).lines(paint));
    lines.push(format!(
        "  {} on tape in {} events, {:.0} bytes an event; the feeds take turns {} times",
        bytes(tape_bytes(story)),
        grouped(event_count(story)),
        tape_bytes(story) as f64 / event_count(story).max(1) as f64,
        grouped(story.overview.switches)
    ));
    lines.extend(market_data::lines(story, paint));
    section(
        &mut lines,
        paint,
        "Order books",
        "last best bid and ask, and the way of their middle over 130 minutes",
    );
    books(&mut lines, &story.overview.books, paint);
    section(&mut lines, paint, "Indices", "last value, and its way over the same time");
    index_lines(&mut lines, &story.overview.indices, paint);
    section(
        &mut lines,
        paint,
        "Manipulations of the simulated day: planted, and found",
        "evidence = events, or positions, on the tape",
    );
    lines.extend(label_table(story).lines(paint));
    section(
        &mut lines,
        paint,
        "Wash trades of the order flow: planted, and found",
        "the same group of owners on both sides",
    );
    lines.extend(planted_table(story).lines(paint));
    lines.push(String::new());
    lines.extend(near_misses(story).lines(paint));
    section(&mut lines, paint, "Quarantine", "broken on purpose; kept byte for byte, neighbours unharmed");
    lines.extend(quarantine_table(story).lines(paint));
    section(
        &mut lines,
        paint,
        "Sealed days",
        "the tape's events by day and schema, compressed and encrypted, for scans",
    );
    lines.extend(day_table(story).lines(paint));
    more(&mut lines, story.days.len(), DAYS_SHOWN, "the first ones", "days are in the store", paint);
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
    lines.extend(answer_lines(story));
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
    let (written, account, answers) = (&story.written, &story.info["account"], &story.answers);
    let mut feeds = account["by_feed"].clone();
    for (name, feed) in feeds.as_object_mut().into_iter().flatten() {
        feed["by_kind"] = json!(story.overview.by_feed.get(name));
        feed["messages_per_s"] =
            messages_per_second(number(&feed["messages"]), story.times.consolidate_s).into();
    }
    let scenes = |name: &str, scenes: &[Value], matched: &[Option<usize>]| -> Vec<Value> {
        let pairs = scenes.iter().zip(matched).map(|(scene, index)| {
            let alert = index.map(|n| alert_json(&story.alerts[n]));
            json!({ name: scene, "alert": alert, "found": index.is_some() })
        });
        pairs.collect()
    };
    let (labelled, planted) = story.matched.split_at(written.labels.len());
    let days = story.days.iter().map(|day| {
        let schemas = day["schemas"].as_object().into_iter().flatten();
        let schemas: Map<_, _> =
            schemas.map(|(name, amount)| (name.clone(), amount["rows"].clone())).collect();
        json!({ "day": day["date"], "rows": day["rows"], "bytes": day["bytes"], "schemas": schemas })
    });
    let near_misses = written.near_misses.iter().map(|scene| {
        let raised = !near_miss_alerts(std::slice::from_ref(scene), &story.alerts).is_empty();
        json!({ "scene": scene, "alert": raised })
    });
    json!({
        "dir": story.demo_dir.dir.display().to_string(),
        "holds": story.checks.iter().all(|c| c.holds()),
        "workers": unitape_run::cores(),
        "feeds": feeds,
        "messages": account["messages"],
        "events": account["events"],
        "quarantined": account["quarantined"],
        "ignored": account["ignored"],
        "feed_switches": story.overview.switches,
        "tape": {
            "id": story.info["tape"],
            "bytes": tape_bytes(story),
            "events": event_count(story),
            "bytes_per_event": tape_bytes(story) as f64 / event_count(story).max(1) as f64,
            "disk_bytes": story.info["disk_bytes"],
        },
        "depth": market_data::json(story),
        "books": story.overview.books.iter().map(PriceHistory::json).collect::<Vec<_>>(),
        "indices": story.overview.indices.iter().map(PriceHistory::json).collect::<Vec<_>>(),
        "planted": scenes("scene", &written.planted, planted),
        "labels": scenes("label", &written.labels, labelled),
        "near_misses_of_the_day": written.near_misses_of_day,
        "not_planted": unplanted_alerts(story).map(|n| alert_json(&story.alerts[n])).collect::<Vec<_>>(),
        "days": days.collect::<Vec<_>>(),
        "answers": {
            "bank_events": answers.bank_events, "best_prices": answers.best_prices, "cases": answers.cases,
            "page": answers.page, "plot": answers.plot, "served_rows": answers.served_rows,
        },
        "near_misses": near_misses.collect::<Vec<_>>(),
        "alerts": { "live": story.alerts.len(), "live_before_the_tape_was_done": story.early },
        "quarantine": story.reasons,
        "times": story.times,
        "checks": story.checks.iter().map(|c| json!({ "what": c.what, "holds": c.holds(), "differs": c.differs })).collect::<Vec<_>>(),
        "commands": story.commands,
        "next": next(story).map(|(command, _)| command),
    })
}

/// Describes the demo's events in plain sentences.
fn describe_demo(story: &DemoResults) -> String {
    let truth = &story.written.truth;
    let messages = |feed: &str| grouped(number(&story.info["account"]["by_feed"][feed]["messages"]));
    let replay_text = if story.checks.iter().all(|c| c.holds()) {
        "played again from the tape, it raised exactly the same."
    } else {
        "but not all is as it must be: see the checks below."
    };
    format!(
        "What just happened: three real feeds ({SAMPLE_TITLES}), a made-up FIX 4.4 order flow at three venues ({} messages, in \
         which {} wash trades, {} near misses and {} broken messages are hidden), a simulated day with auctions, \
         halts, news and payments ({} events, {} manipulations and {} near misses among them) and the market data of an \
         exchange in a box, in FAST on two lines that lose packets, were decoded by {} and merged by time onto one tape: a durable log that any number of programs can follow without slowing its writer. One did: a watch \
         followed the tape while it was being written and raised {} alerts, {} before the last message was on it; \
         {replay_text} The alerts are events on a tape of their own.",
        messages(ORDERS),
        truth.planted.len(),
        truth.near_misses.len(),
        grouped(truth.totals.bad.total()),
        messages(MARKET),
        story.written.labels.len(),
        story.written.near_misses_of_day,
        match unitape_run::cores() {
            1 => "one worker".to_owned(),
            workers => format!("{workers} workers"),
        },
        story.alerts.len(),
        match story.early {
            early if early == story.alerts.len() => "all of them".to_owned(),
            early => format!("{early} of them"),
        },
    )
}

pub fn section(lines: &mut Vec<String>, paint: TextPaint, title: &str, summary: &str) {
    lines.push(String::new());
    let summary_text = if summary.is_empty() { String::new() } else { format!("  {}", paint.dim(summary)) };
    lines.push(format!("{}{summary_text}", paint.bold(title)));
}

fn feed_table(story: &DemoResults) -> TextTable {
    let head =
        ["feed", ">messages", ">with events", ">duplicates", ">quarantined", ">ignored", ">events", ">size"];
    let counts = ["messages", "with_events", "duplicates", "quarantined", "ignored", "events", "bytes"];
    let mut table = TextTable::new(&head);
    let mut row = |name: &str, [numbers @ .., size]: [u64; 7]| {
        let numbers = numbers.map(grouped);
        table.row(std::iter::once(name.to_owned()).chain(numbers).chain([bytes(size)]).collect());
    };
    let mut sum = [0; 7];
    for (name, feed) in story.info["account"]["by_feed"].as_object().into_iter().flatten() {
        let counts = counts.map(|count| number(&feed[count]));
        sum.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
        row(name, counts);
    }
    row("all", sum);
    table
}

fn books(lines: &mut Vec<String>, histories: &[PriceHistory], paint: TextPaint) {
    let mut table =
        TextTable::new(&["venue", "instrument", ">size", ">bid", ">ask", ">size", ">changes", "course"]);
    for history in histories.iter().take(SHOWN) {
        table.row([vec![history.venue.clone(), history.instr.clone()], history.quote_cells()].concat());
    }
    lines.extend(table.lines(paint));
    more(lines, histories.len(), SHOWN, "the most active", "order books are on the tape", paint);
}

fn index_lines(lines: &mut Vec<String>, courses: &[PriceHistory], paint: TextPaint) {
    let mut table = TextTable::new(&["venue", "index", ">value", ">changes", "course"]);
    for c in courses.iter().take(SHOWN) {
        table.row(vec![c.venue.clone(), c.instr.clone(), c.cell(0), grouped(c.changes), c.sparkline()]);
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
    if let Some(rows_left_out) = all.checked_sub(shown_count).filter(|n| *n > 0) {
        lines.push(paint.dim(&format!("  {choice}; {rows_left_out} more {remainder}")));
    }
}

fn planted_table(story: &DemoResults) -> TextTable {
    let mut table = TextTable::new(&["planted at", "scene", "group", "instrument", "evidence", ">found"]);
    let key = |key: &Value, name: &str| key[name].as_str().unwrap_or_default().to_owned();
    let evidence = |n: usize| {
        let positions = story.alerts[n].positions.iter().map(|position| format!("@{position}"));
        positions.collect::<Vec<_>>().join(" ")
    };
    for (scene, index) in story.written.planted.iter().zip(&story.matched[story.written.labels.len()..]) {
        table.row(vec![
            time_of_day(&scene["ts"]),
            scene["arm"].as_str().unwrap_or_default().to_owned(),
            key(&scene["key"], "group"),
            key(&scene["key"], "instr"),
            index.map_or_else(|| "-".to_owned(), evidence),
            if index.is_some() { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    for n in unplanted_alerts(story) {
        let alert = &story.alerts[n].alert;
        table.row(vec![
            format!("NEVER (alert {n})"),
            alert["scenario"].as_str().unwrap_or_default().to_owned(),
            key_text(&alert["key"]),
            String::new(),
            evidence(n),
            "NO".to_owned(),
        ]);
    }
    table
}

/// Alerts that nothing was planted for.
fn unplanted_alerts(story: &DemoResults) -> impl Iterator<Item = usize> {
    (0..story.alerts.len()).filter(|n| !story.matched.contains(&Some(*n)))
}

fn label_table(story: &DemoResults) -> TextTable {
    let mut table = TextTable::new(&["planted at", "scenario", "who and where", ">evidence", ">found"]);
    for (label, index) in story.written.labels.iter().zip(&story.matched) {
        let evidence = index.map_or(0, |n| story.alerts[n].positions.len() as u64);
        table.row(vec![
            time_of_day(&label["ts"]),
            label["scenario"].as_str().unwrap_or_default().to_owned(),
            key_text(&label["key"]),
            if evidence > 0 { grouped(evidence) } else { "counts".to_owned() },
            if index.is_some() { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    table
}

fn day_table(story: &DemoResults) -> TextTable {
    let mut table = TextTable::new(&["day", ">events", ">size", ">bytes an event", "schemas"]);
    for day in story.days.iter().take(DAYS_SHOWN) {
        let schemas = day["schemas"].as_object().into_iter().flatten();
        let mut schemas: Vec<_> = schemas.map(|(name, amount)| (number(&amount["rows"]), name)).collect();
        schemas.sort_unstable_by(|a, b| b.cmp(a));
        let mut names: Vec<String> =
            schemas.iter().take(3).map(|(n, name)| format!("{name} {}", grouped(*n))).collect();
        if let Some(schemas_left_out) = schemas.len().checked_sub(3).filter(|n| *n > 0) {
            names.push(format!("{schemas_left_out} more"));
        }
        let (rows, size) = (number(&day["rows"]), number(&day["bytes"]));
        table.row(vec![
            day["date"].as_str().unwrap_or_default().to_owned(),
            grouped(rows),
            bytes(size),
            format!("{:.1}", size as f64 / rows.max(1) as f64),
            names.join(", "),
        ]);
    }
    table
}

fn near_misses(story: &DemoResults) -> TextTable {
    let mut table = TextTable::new(&["near misses: innocent because", ">planted", ">alerts"]);
    let mut by_reason: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for scene in &story.written.near_misses {
        by_reason.entry(scene["misses"].as_str().unwrap_or_default()).or_default().push(scene.clone());
    }
    for (reason, scenes) in by_reason {
        let raised = near_miss_alerts(&scenes, &story.alerts).len() as u64;
        table.row(vec![reason.to_owned(), grouped(scenes.len() as u64), grouped(raised)]);
    }
    table
}

fn quarantine_table(story: &DemoResults) -> TextTable {
    let mut table = TextTable::new(&["reason", ">messages", "for example"]);
    for (reason, n) in &story.reasons {
        let first_entry = story.quarantine.iter().find(|entry| entry["reason"] == reason.as_str());
        let detail = first_entry.and_then(|entry| entry["detail"].as_str()).unwrap_or_default();
        let room = WIDTH - 35;
        let short = if detail.chars().count() > room {
            format!("{}…", detail.chars().take(room - 1).collect::<String>())
        } else {
            detail.to_owned()
        };
        table.row(vec![reason.clone(), grouped(*n), short]);
    }
    table
}

/// Writes a line for each question that the tapes answer.
fn answer_lines(story: &DemoResults) -> Vec<String> {
    let answers = &story.answers;
    let (prices, bank_events) = (grouped(answers.best_prices), grouped(answers.bank_events));
    let (cases, alerts) = (grouped(answers.cases), grouped(story.alerts.len() as u64));
    let mut lines = vec![
        format!("  best price: {prices} changes of it among {bank_events} events of twenty banks"),
        format!("  cases: {cases} of {alerts} alerts, each to be closed by two persons"),
        "  in a browser: unitape demo --desk".to_owned(),
        format!(
            "  data on demand: {} rows of the sealed days, read back from a server by who may read them",
            grouped(answers.served_rows)
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
    let program = program_command();
    let path = |name: &str| quoted(&story.demo_dir.path(name).display().to_string());
    let [tape, alerts, cases, banks, store] = ["tape", "alerts", "cases", "banks/tape", "store"].map(path);
    let first_positions = story.alerts.first().map(|f| f.positions.as_slice()).unwrap_or_default();
    let (from, to) = (first_positions.iter().min().copied(), first_positions.iter().max().copied());
    let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
    let instr = story.market_data.histories.first().map_or("?", |history| history.instr.as_str());
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
fn program_command() -> String {
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

fn alert_json(explained: &ExplainedAlert) -> Value {
    let ExplainedAlert { alert, positions, evidence } = explained;
    let key: Vec<_> = alert["key"].as_object().into_iter().flat_map(Map::values).collect();
    json!({
        "scenario": alert["scenario"], "arm": alert["detail"]["arm"], "key": key, "ts": alert["ts"],
        "positions": positions, "evidence": evidence,
    })
}

fn time_of_day(ts: &Value) -> String {
    let text = crate::commands::tape::utc(number(ts) as i64);
    text.get(11..23).unwrap_or(&text).to_owned()
}

fn tape_bytes(story: &DemoResults) -> u64 {
    number(&story.info["end"]) - number(&story.info["first"])
}

fn event_count(story: &DemoResults) -> u64 {
    number(&story.info["retained"]["events"])
}

fn messages_per_second(messages: u64, seconds: f64) -> u64 {
    (messages as f64 / seconds.max(1e-9)) as u64
}
