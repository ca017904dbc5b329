//! Market data in FAST: what its lines lost, how it came back, and the books that the tape and a handler have of it, compared
//! with the exchange; and the summary's part on it.

use super::DemoResults;
use super::check::{Differences, number};
use super::commands::CommandRunner;
use super::depth::{BookSides, ChannelArrivals, DEPTH, ExchangeTruth};
use super::layout::{TextPaint, TextTable};
use super::overview::{PriceHistory, sort_by_changes};
use super::report::{more, section};
use crate::output::{CommandFailure, grouped};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The results of the commands that read the market data.
#[derive(Debug, Default)]
pub struct MarketDataResults {
    /// The books at the end of the tape; none for one that is stale.
    pub tape: BTreeMap<String, Option<BookSides>>,
    /// The books of a handler after the last packet.
    pub handler: BTreeMap<String, Option<BookSides>>,
    /// The handler's counters: see `unitape_marketdata::engine::EngineStats`.
    pub stats: Value,
    /// Groups of products, by instrument.
    pub groups: BTreeMap<String, String>,
    /// Best prices and how they moved, the most active instrument first.
    pub histories: Vec<PriceHistory>,
    /// The losses recorded on the tape.
    pub loss: PacketLossSummary,
}

/// The tape's record of packets that arrived on no line.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PacketLossSummary {
    /// Packets, by channel.
    pub packets: BTreeMap<String, u64>,
    /// Messages.
    pub messages: u64,
    /// Times that a book became stale, and times that it was mended.
    pub stale: u64,
    pub mended: u64,
    /// How long one was stale, in nanoseconds: all together, and at most.
    pub stale_ns: i64,
    pub stale_ns_max: i64,
    /// Instruments that are stale at the end.
    pub left: Vec<String>,
}

/// Reads the results of the commands.
pub fn read_results(
    commands: &CommandRunner<'_>,
    truth: &ExchangeTruth,
) -> Result<MarketDataResults, CommandFailure> {
    let mut results = MarketDataResults::default();
    for mut book in commands.lines("handler")? {
        if book["stats"].is_object() {
            results.stats = book["stats"].take();
            continue;
        }
        results.groups.insert(number_text(&book["instr"]), number_text(&book["group"]));
        let is_good = book["stale"] == false;
        results.handler.insert(number_text(&book["instr"]), book_sides(book, is_good));
    }
    for book in commands.lines("books")?.into_iter().filter(|line| line["instr"].is_string()) {
        let marks = book["marks"].as_array().into_iter().flatten();
        let is_good = marks.clone().all(|mark| mark != "stale") && book["faults"] == json!({});
        results.tape.insert(number_text(&book["instr"]), book_sides(book, is_good));
    }
    let mut histories: BTreeMap<String, PriceHistory> = BTreeMap::new();
    for price in commands.lines("best")?.iter().filter(|line| line["kind"] == "bbo") {
        let history = histories.entry(number_text(&price["instr"])).or_default();
        (history.venue, history.instr) = (number_text(&price["venue"]), number_text(&price["instr"]));
        let values = ["bid", "bid_qty", "ask", "ask_qty"].map(|name| price[name].as_str().map(str::to_owned));
        history.add(price["ts"].as_i64().unwrap_or(0), values.into(), &truth.span_ns);
    }
    results.histories = histories.into_values().collect();
    sort_by_changes(&mut results.histories);
    results.loss = PacketLossSummary::from_status(&commands.lines("status")?);
    Ok(results)
}

fn number_text(value: &Value) -> String {
    value.as_str().unwrap_or("?").to_owned()
}

fn book_sides(mut book: Value, is_good: bool) -> Option<BookSides> {
    is_good.then(|| ["bids", "asks"].map(|side| book[side].take()))
}

impl PacketLossSummary {
    /// Sums up the losses that `status` events report.
    fn from_status(events: &[Value]) -> Self {
        let mut loss = Self::default();
        let mut stale_since: BTreeMap<String, i64> = BTreeMap::new();
        for event in events {
            let (instr, ts) = (number_text(&event["instr"]), event["ts"].as_i64().unwrap_or(0));
            let range = || match (event["from"].as_u64(), event["to"].as_u64()) {
                (Some(from), Some(to)) => to + 1 - from,
                _ => 0,
            };
            match event["state"].as_str() {
                Some("stale") => {
                    loss.stale += 1;
                    stale_since.insert(instr, ts);
                }
                Some("recovered") => {
                    if let Some(since) = stale_since.remove(&instr) {
                        let ns = (ts - since).max(0);
                        (loss.mended, loss.stale_ns) = (loss.mended + 1, loss.stale_ns + ns);
                        loss.stale_ns_max = loss.stale_ns_max.max(ns);
                    }
                }
                Some("missing") => loss.messages += range(),
                Some("lost") => *loss.packets.entry(number_text(&event["channel"])).or_default() += range(),
                _ => {}
            }
        }
        loss.left = stale_since.into_keys().collect();
        loss
    }
}

/// Lists the books that differ from the exchange's.
pub fn book_differences(
    truth: &BTreeMap<String, BookSides>,
    owner: &str,
    books: &BTreeMap<String, Option<BookSides>>,
) -> Vec<String> {
    let mut differences = Vec::new();
    for (instr, expected_sides) in truth {
        match books.get(instr) {
            None => differences.push(format!("{owner} has no book of {instr}")),
            Some(None) => differences.push(format!("{owner} has {instr} as stale, or with faults")),
            Some(Some(sides)) => {
                for (side, (is, must)) in ["bids", "asks"].iter().zip(sides.iter().zip(expected_sides)) {
                    if is != must {
                        differences.push(format!("{owner}, {instr}: {side} {is}, but {must}"));
                    }
                }
            }
        }
    }
    let untraded = books.keys().filter(|instr| !truth.contains_key(*instr));
    differences.extend(untraded.map(|instr| format!("{owner} has a book of {instr}, which nobody trades")));
    differences
}

/// Lists the counts in which the handler or the tape differs from the packets that arrived on the lines.
pub fn line_differences(came: &[ChannelArrivals; 3], results: &MarketDataResults) -> Vec<String> {
    let mut differences = Differences::default();
    let channels = results.stats["channels"].as_array().map_or(&[][..], Vec::as_slice);
    differences.expect("channels", channels.len() as u64, came.len() as u64);
    let lost_in_time = |channel: &Value| number(&channel["lost"]).saturating_sub(number(&channel["late"]));
    for (channel, must) in channels.iter().zip(came) {
        let name = number_text(&channel["name"]);
        for ((line, letter), must) in [0, 1].into_iter().zip(["A", "B"]).zip(&must.lines) {
            for (count, must) in [("packets", must.packets), ("twice", must.twice), ("missed", must.missed)] {
                let is = number(&channel["lines"][line][count]);
                differences.expect(&format!("{name}, line {letter}: {count}"), is, must);
            }
        }
        // Snapshots that nobody needs are not looked into: damage in them is not seen.
        let lost = lost_in_time(channel);
        differences.expect(&format!("{name}: lost"), lost, must.lost.min(lost.max(must.unheard)));
        let on_tape = results.loss.packets.get(&name).copied().unwrap_or(0);
        differences.expect(&format!("{name}: lost, on the tape"), on_tape, number(&channel["lost"]));
    }
    differences.expect("depth: lost", channels.first().map_or(0, lost_in_time), came[0].lost);
    let missing = number(&results.stats["products"]["missing"]);
    differences.expect("messages missing", results.loss.messages, missing);
    differences.expect("books mended", results.loss.mended, results.loss.stale);
    let stale_lines = results.loss.left.iter().map(|instr| format!("{instr} is stale at the end"));
    differences.lines.into_iter().chain(stale_lines).collect()
}

/// Lists the messages of the exchange in quarantine that no line damaged, and entries whose bytes quarantine does not have.
pub fn undamaged_messages(truth: &ExchangeTruth, quarantine: &[Value]) -> Vec<String> {
    let damaged = quarantine.iter().filter(|entry| !entry["damaged"].is_null());
    let mut differences: Vec<String> =
        damaged.map(|entry| format!("damaged in quarantine: {entry}")).collect();
    for entry in quarantine.iter().filter(|entry| is_from_exchange(entry) && entry["reason"] != "late") {
        let offset = number(&entry["offset"]);
        if !truth.damaged.iter().any(|range| range.contains(&offset)) {
            differences.push(format!("{DEPTH}: {} at byte {offset} was not damaged", entry["reason"]));
        }
    }
    differences
}

/// Returns whether an entry of quarantine is from the exchange's feed.
pub fn is_from_exchange(entry: &Value) -> bool {
    number_text(&entry["source"]).split('/').next() == Some(DEPTH)
}

/// Instruments shown.
const SHOWN: usize = 6;

/// Writes the market data for people.
pub fn lines(story: &DemoResults, paint: TextPaint) -> Vec<String> {
    let mut lines = Vec::new();
    let summary = "FAST on two lines; the first good copy of each packet wins";
    section(&mut lines, paint, "Market data", summary);
    let results = &story.market_data;
    lines.extend(line_table(&results.stats).lines(paint));
    let loss = &results.loss;
    let channels = || results.stats["channels"].as_array().into_iter().flatten();
    let sum = |count: &str| channels().map(|channel| number(&channel[count])).sum();
    let ms = |ns: i64| (ns as f64 / 1e6).round() as u64;
    lines.push(format!(
        "  {} packets that one line did not bring came on the other; {} came on neither, with {} messages",
        grouped(sum("recovered")),
        grouped(sum("lost")),
        grouped(loss.messages)
    ));
    lines.push(format!(
        "  {} times a book was stale for that, and mended by a snapshot: after {} ms, {} ms at most",
        grouped(loss.stale),
        ms(loss.stale_ns / loss.mended.max(1) as i64),
        ms(loss.stale_ns_max)
    ));
    lines.push(String::new());
    let head = ["instrument", "group", ">size", ">bid", ">ask", ">size", ">changes", "course"];
    let mut table = TextTable::new(&head);
    for history in results.histories.iter().take(SHOWN) {
        let group = results.groups.get(&history.instr).cloned().unwrap_or_default();
        table.row([vec![history.instr.clone(), group], history.quote_cells()].concat());
    }
    lines.extend(table.lines(paint));
    more(
        &mut lines,
        results.histories.len(),
        SHOWN,
        "the most active",
        "books by level are on the tape",
        paint,
    );
    lines
}

fn line_table(stats: &Value) -> TextTable {
    let counts = [
        ("packets", ">packets"),
        ("first", ">first"),
        ("twice", ">twice"),
        ("missed", ">missing"),
        ("reordered", ">out of order"),
        ("corrupt", ">damaged"),
    ];
    let mut head = vec!["channel", "line"];
    head.extend(counts.map(|(_, title)| title).into_iter().chain([">on neither"]));
    let mut table = TextTable::new(&head);
    for channel in stats["channels"].as_array().into_iter().flatten() {
        for (index, letter) in ["A", "B"].into_iter().enumerate() {
            let [name, lost] = match index {
                0 => [number_text(&channel["name"]), grouped(number(&channel["lost"]))],
                _ => [String::new(), String::new()],
            };
            let cells = counts.map(|(count, _)| grouped(number(&channel["lines"][index][count])));
            table.row([name, letter.to_owned()].into_iter().chain(cells).chain([lost]).collect());
        }
    }
    table
}

/// Writes the market data of the report as JSON.
pub fn json(story: &DemoResults) -> Value {
    let results = &story.market_data;
    let products = &results.stats["products"];
    let levels = |sides: &BookSides| sides.iter().filter_map(Value::as_array).map(Vec::len).sum::<usize>();
    json!({
        "made": story.written.depth.fault_counts,
        "channels": results.stats["channels"],
        "loss": results.loss,
        "snapshots": {
            "taken": products["snapshots"], "old": products["snapshots_old"], "spare": products["snapshots_spare"],
        },
        "instruments": results.tape.len(),
        "levels": results.tape.values().flatten().map(levels).sum::<usize>(),
        "books": results.histories.iter().map(PriceHistory::json).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_model::Price;

    fn book(px: i64) -> BookSides {
        [json!([{ "px": Price(px).to_string(), "qty": "5", "orders": 1 }]), json!([])]
    }

    /// Fails if the self-check accepts a wrong book.
    #[test]
    fn another_book_fails() {
        let truth = BTreeMap::from([("1".to_owned(), book(10))]);
        let differences = |book: Option<Option<BookSides>>| {
            let books = book.into_iter().map(|book| ("1".to_owned(), book)).collect();
            book_differences(&truth, "the tape", &books)
        };
        assert_eq!(differences(Some(Some(book(10)))), [""; 0]);
        for wrong in [None, Some(None), Some(Some(book(11)))] {
            assert_eq!(differences(wrong).len(), 1);
        }
        let untraded = BTreeMap::from([("1".to_owned(), Some(book(10)))]);
        assert_eq!(book_differences(&BTreeMap::new(), "the tape", &untraded).len(), 1);
    }

    #[test]
    fn other_figures_of_lines_fail() {
        let channel = |name: &str, lost: u64| {
            let line = json!({ "packets": 0, "twice": 0, "missed": 0 });
            json!({ "name": name, "lines": [line, line], "lost": lost, "late": 0 })
        };
        let channels = [channel("depth", 2), channel("snapshot", 0), channel("reference", 0)];
        let mut results = MarketDataResults {
            stats: json!({ "channels": channels, "products": { "missing": 0 } }),
            ..MarketDataResults::default()
        };
        results.loss.packets.insert("depth".to_owned(), 2);
        let mut came: [ChannelArrivals; 3] = Default::default();
        (came[0].lost, came[0].unheard) = (2, 2);
        assert_eq!(line_differences(&came, &results), [""; 0]);
        results.loss.stale = 1;
        assert_eq!(line_differences(&came, &results).len(), 1);
        came[0].lines[1].missed = 1;
        assert_eq!(line_differences(&came, &results).len(), 2);
        (came[0].lost, came[0].unheard) = (3, 3);
        assert!(line_differences(&came, &results).len() > 2);
        results.stats = Value::Null;
        assert!(line_differences(&came, &results).iter().any(|line| line.starts_with("channels")));
    }

    /// Fails if a loss that the tape states is not counted, because the check of the lines would compare nothing.
    #[test]
    fn losses_are_read_from_status_events() {
        let events = [
            json!({ "state": "lost", "channel": "depth", "from": 3, "to": 4 }),
            json!({ "state": "missing", "from": 7, "to": 7 }),
            json!({ "state": "stale", "instr": "1", "ts": 5 }),
            json!({ "state": "stale", "instr": "2", "ts": 5 }),
            json!({ "state": "recovered", "instr": "1", "ts": 9 }),
            json!({ "state": "halted", "instr": "3", "ts": 9 }),
        ];
        let loss = PacketLossSummary::from_status(&events);
        assert_eq!((loss.packets["depth"], loss.messages, loss.stale, loss.mended), (2, 1, 2, 1));
        assert_eq!((loss.stale_ns, loss.stale_ns_max, loss.left), (4, 4, vec!["2".to_owned()]));
    }
}
