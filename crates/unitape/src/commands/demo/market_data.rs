//! The summary's part on market data in FAST: what its lines lost, how it came back, and the best prices of its books.

use super::DemoResults;
use super::layout::{TextPaint, TextTable};
use super::report::{course_json, more, section};
use crate::output::grouped;
use serde_json::{Value, json};

/// Instruments shown.
const SHOWN: usize = 6;

/// Writes the market data for people.
pub fn lines(story: &DemoResults, paint: TextPaint) -> Vec<String> {
    let mut lines = Vec::new();
    let summary = "FAST on two lines; the first good copy of each packet wins";
    section(&mut lines, paint, "Market data", summary);
    lines.extend(table(story).lines(paint));
    let (loss, stats) = (&story.market_data.loss, &story.market_data.stats);
    let sum = |counter: fn(&unitape_marketdata::engine::ChannelStats) -> u64| {
        stats.channels.iter().map(counter).sum::<u64>()
    };
    let ms = |ns: i64| (ns as f64 / 1e6).round() as u64;
    lines.push(format!(
        "  {} packets that one line did not bring came on the other; {} came on neither, with {} messages",
        grouped(sum(|channel| channel.recovered)),
        grouped(sum(|channel| channel.lost)),
        grouped(loss.messages)
    ));
    lines.push(format!(
        "  {} times a book was stale for that, and mended by a snapshot: after {} ms, {} ms at most",
        grouped(loss.stale),
        ms(loss.stale_ns / loss.mended.max(1) as i64),
        ms(loss.stale_ns_max)
    ));
    lines.push(String::new());
    lines.extend(best(story).lines(paint));
    let all = story.market_data.courses.len();
    more(&mut lines, all, SHOWN, "the most active", "books by level are on the tape", paint);
    lines
}

fn table(story: &DemoResults) -> TextTable {
    let head = [
        "channel",
        "line",
        ">packets",
        ">first",
        ">twice",
        ">missing",
        ">out of order",
        ">damaged",
        ">on neither",
    ];
    let mut table = TextTable::new(&head);
    for channel in &story.market_data.stats.channels {
        for (n, line) in channel.lines.iter().enumerate() {
            let [name, lost_text] = match n {
                0 => [channel.name.clone(), grouped(channel.lost)],
                _ => [String::new(), String::new()],
            };
            let counts = [line.packets, line.first, line.twice, line.missed, line.reordered, line.corrupt];
            let cells =
                [name, ["A", "B"][n].to_owned()].into_iter().chain(counts.map(grouped)).chain([lost_text]);
            table.row(cells.collect());
        }
    }
    table
}

fn best(story: &DemoResults) -> TextTable {
    let mut table =
        TextTable::new(&["instrument", "group", ">size", ">bid", ">ask", ">size", ">changes", "course"]);
    for c in story.market_data.courses.iter().take(SHOWN) {
        let value = |n: usize| c.last.get(n).cloned().flatten().unwrap_or_else(|| "-".to_owned());
        let group = story.market_data.groups.get(&c.instr).cloned().unwrap_or_default();
        let cells = [value(1), value(0), value(2), value(3), grouped(c.changes), c.sparkline()];
        table.row([c.instr.clone(), group].into_iter().chain(cells).collect());
    }
    table
}

/// Writes the market data of the report as JSON.
pub fn json(story: &DemoResults) -> Value {
    let results = &story.market_data;
    let products = results.stats.products;
    json!({
        "made": story.written.depth.faults,
        "channels": results.stats.channels,
        "loss": results.loss,
        "snapshots": {
            "taken": products.snapshots, "old": products.snapshots_old, "spare": products.snapshots_spare,
        },
        "instruments": results.tape.len(),
        "levels": results.tape.values().flatten().map(|b| b.sides.iter().map(Vec::len).sum::<usize>()).sum::<usize>(),
        "books": results.courses.iter().map(course_json).collect::<Vec<_>>(),
    })
}
