//! `unitape fx best` and `unitape fx book`: their bytes are those of the slow twin, rule by rule and stream by stream.

#[path = "../../../sim/tests/best_prices/cases.rs"]
mod cases;
#[path = "../../../sim/tests/best_prices/short_form.rs"]
mod short_form;
#[path = "../../../sim/tests/best_prices/small_stream.rs"]
mod small_stream;

use crate::common::{Ran, file, run};
use expect_test::Expect;
use serde_json::{Value, json};
use short_form::{event_line, short, sizes};
use small_stream::small_stream;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use unitape_codec::events::{LineParseOptions, parse_line};
use unitape_model::{Decimal, Dictionary, EventBuilder, NameKind, flags};
use unitape_sim::banks::{BestPriceConfig, BestPriceTruth};
use unitape_tape::{TapeId, Writer, WriterOptions};

fn fx(command: &str, tape: &Path, options: &[&str]) -> Ran {
    run(["fx", command, tape.to_str().unwrap()].iter().chain(options))
}

/// Consolidates event lines.
fn consolidate(dir: &Path, name: &str, lines: &str) -> PathBuf {
    let (input, tape) = (file(dir, &format!("{name}.jsonl"), lines), dir.join(name));
    run(["consolidate", input.to_str().unwrap(), "--tape", tape.to_str().unwrap()]).code(0);
    tape
}

/// Puts event lines onto a tape as they are: also with flags, which only a merge gives.
fn put_on_tape<'l>(tape: &Path, lines: impl Iterator<Item = &'l str>) {
    let options = WriterOptions { segment_bytes: 1 << 20, ..WriterOptions::default() };
    let (mut writer, _) = Writer::open(tape, TapeId(7), options).unwrap();
    let (mut names, mut known) = (Dictionary::default(), [0; NameKind::COUNT]);
    for line in lines {
        let ahead = if line.contains("clock_ahead") { flags::CLOCK_AHEAD } else { 0 };
        let options = LineParseOptions { flags: flags::LAST | ahead, ..LineParseOptions::default() };
        let (mut event, mut unit) = (Vec::new(), Vec::new());
        parse_line(line.as_bytes(), &mut names, &mut event, &options)
            .unwrap_or_else(|e| panic!("{line}: {e}"));
        for dict in NameKind::ALL {
            for id in known[dict as usize] + 1..=names.len(dict) {
                EventBuilder::define(&mut unit, dict, id, names.name(dict, id).unwrap()).unwrap();
            }
            known[dict as usize] = names.len(dict);
        }
        unit.extend(event);
        writer.append(&unit).unwrap();
    }
    writer.close().unwrap();
}

/// The options of the command for a configuration of the twin.
fn options(config: &BestPriceConfig) -> Vec<String> {
    let sizes: Vec<String> = config.sizes.iter().map(Decimal::to_string).collect();
    let mut options = vec!["--size".to_owned(), sizes.join(",")];
    options.extend(rule_options(config));
    options
}

fn rule_options(config: &BestPriceConfig) -> Vec<String> {
    let BestPriceConfig { stale_ms, spike_pips, spike_banks, .. } = config;
    [("--stale-ms", stale_ms), ("--spike-pips", spike_pips), ("--spike-banks", spike_banks)]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value.to_string()])
        .collect()
}

/// The lines and the last books of the twin.
fn twin(config: &BestPriceConfig, events: &str) -> (String, String) {
    let mut truth = BestPriceTruth::new(config.clone()).unwrap();
    let mut lines = Vec::new();
    events.lines().for_each(|line| truth.apply_line(line, &mut lines).unwrap());
    (String::from_utf8(lines).unwrap(), truth.book_lines())
}

/// Asserts that the lines and the last books of a tape are those of the twin, and returns the number of lines.
#[track_caller]
fn assert_as_twin(tape: &Path, config: &BestPriceConfig, events: &str, what: &str) -> usize {
    let (lines, books) = twin(config, events);
    let options = |all: Vec<String>| [all, vec!["--json".to_owned()]].concat();
    let run_with = |command: &str, all: Vec<String>| {
        let args = ["fx".to_owned(), command.to_owned(), tape.to_str().unwrap().to_owned()];
        run(args.into_iter().chain(options(all))).code(0)
    };
    let best = run_with("best", self::options(config));
    assert_lines(best.text(), &lines, what);
    let book = run_with("book", rule_options(config));
    assert_lines(book.text(), &books, what);
    lines.lines().count()
}

/// Shows the first line that differs, not all of them.
#[track_caller]
fn assert_lines(got: &str, want: &str, what: &str) {
    for (n, (got, want)) in got.lines().zip(want.lines()).enumerate() {
        assert_eq!(got, want, "{what}: line {}", n + 1);
    }
    assert!(got == want, "{what}: {} lines, not {}", got.lines().count(), want.lines().count());
}

/// What the cases of the rules ask for beside the lines: the counts on stderr.
struct Counts {
    refused: BTreeMap<&'static str, u64>,
    spikes: u64,
}

impl Counts {
    fn read(stderr: &str) -> Self {
        let reasons =
            ["no_bank", "no_pair", "no_side", "price", "quantity", "indicative", "value_date", "expired"];
        let count = |words: &str| {
            let line = stderr.lines().find_map(|line| line.strip_suffix(words));
            line.map_or(0, |count| count.parse::<u64>().unwrap())
        };
        let refused = reasons.map(|reason| (reason, count(&format!(" quotes were refused: {reason}"))));
        Self {
            refused: refused.into_iter().filter(|(_, count)| *count > 0).collect(),
            spikes: count(" quotes were a spike"),
        }
    }

    fn refused(&self) -> &BTreeMap<&'static str, u64> {
        &self.refused
    }

    fn spikes(&self) -> u64 {
        self.spikes
    }
}

/// The lines of the command for events in the short form, and its counts.
fn apply(config: BestPriceConfig, events: &str) -> (String, Counts) {
    let dir = tempfile::tempdir().unwrap();
    let lines: Vec<String> =
        events.lines().map(str::trim).filter(|line| !line.is_empty()).map(event_line).collect();
    put_on_tape(dir.path(), lines.iter().map(String::as_str));
    let options = options(&config);
    let options: Vec<&str> = options.iter().map(String::as_str).chain(["--json"]).collect();
    let ran = fx("best", dir.path(), &options).code(0);
    (ran.text().to_owned(), Counts::read(&ran.stderr))
}

fn check(config: BestPriceConfig, events: &str, expected: Expect) {
    expected.assert_eq(&short(&apply(config, events).0));
}

fn is_refused(config: BestPriceConfig) -> bool {
    let options = options(&config);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    fx("best", "tape".as_ref(), &options).code == Some(2)
}

/// The pair that an instrument is, by the book that a quote of it makes.
fn orient(written: &str) -> Option<(String, bool)> {
    let dir = tempfile::tempdir().unwrap();
    let quote =
        json!({"ts": 1, "kind": "quote", "bank": "A", "instr": written, "side": "B", "px": "1", "qty": "1"});
    if written.is_empty() {
        return None; // No tape has such a name.
    }
    put_on_tape(dir.path(), [quote.to_string().as_str()].into_iter());
    let books = fx("book", dir.path(), &["--json"]).code(0).lines();
    let book = books.first()?;
    let quote = book["bids"].get(0).or(book["asks"].get(0)).unwrap();
    Some((book["instr"].as_str().unwrap().to_owned(), quote.get("inverted").is_some()))
}

/// The commands of the documentation, as they are written there.
#[test]
fn best_prices_are_the_bytes_of_the_truth() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (events, truth) = (path("b.jsonl"), path("t.jsonl"));
    run(["generate", "banks", "--events", "20000", "--seed", "7", "--out", &events, "--truth", &truth])
        .code(0);
    run(["consolidate", &events, "--tape", &path("b")]).code(0);
    let best = fx("best", &dir.path().join("b"), &["--json"]).code(0);
    let truth = fs::read_to_string(truth).unwrap();
    assert!(truth.lines().count() > 5_000, "{} lines are no test", truth.lines().count());
    assert_lines(best.text(), &truth, "seed 7");
    best.says(&["best prices from 19,733 quotes among 20,000 events", "quotes were a spike"]);
}

/// The stream has all that goes wrong with banks: silence, slow clocks, repeated ids, late cancels, both ways round.
#[test]
fn streams_of_banks_give_the_lines_and_books_of_the_twin() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 1..=4 {
        let input = dir.path().join("input");
        let stream = [
            "--events",
            "20000",
            "--pairs",
            "12",
            "--banks",
            "12",
            "--tiers",
            "2",
            "--rate",
            "2000",
            "--seed",
            &seed.to_string(),
        ];
        run(["generate", "banks", "--out", input.to_str().unwrap()].iter().chain(&stream)).code(0);
        let events = fs::read_to_string(input).unwrap();
        let tape = consolidate(dir.path(), &format!("seed-{seed}"), &events);
        let lines = assert_as_twin(&tape, &BestPriceConfig::default(), &events, &format!("seed {seed}"));
        assert!(lines > 5_000, "seed {seed}: {lines} lines are no test");
    }
}

/// An option that reaches the books and not the prices would show quotes that nobody is offered.
#[test]
fn options_of_the_rules_are_those_of_the_twin() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("input");
    let stream = ["--pairs", "3", "--banks", "10", "--tiers", "3", "--rate", "400", "--events", "4000"];
    run(["generate", "banks", "--out", input.to_str().unwrap()].iter().chain(&stream)).code(0);
    let events = fs::read_to_string(input).unwrap();
    let tape = consolidate(dir.path(), "tape", &events);
    let plain = BestPriceConfig::default();
    let odd = ["750000.5", "0.0000000001", "9223372036854775807", "1000000"];
    for (n, config) in [
        BestPriceConfig { stale_ms: 400, ..plain.clone() },
        BestPriceConfig { stale_ms: 0, spike_pips: 0, ..plain.clone() },
        BestPriceConfig { spike_pips: 1, spike_banks: 1, ..plain.clone() },
        BestPriceConfig { spike_banks: 9, ..plain.clone() },
        BestPriceConfig { spike_pips: u32::MAX, stale_ms: u32::MAX, ..plain.clone() },
        sizes(odd),
    ]
    .into_iter()
    .enumerate()
    {
        assert_as_twin(&tape, &config, &events, &format!("options {n}"));
    }
}

/// Few banks, pairs and prices: slots are met again, prices tie and cross, clocks are ahead, and timers fall on events.
#[test]
fn small_streams_give_the_lines_and_books_of_the_twin() {
    let dir = tempfile::tempdir().unwrap();
    let config = BestPriceConfig { stale_ms: 20, spike_banks: 2, ..sizes(["1", "4", "9"]) };
    let mut lines = 0;
    for seed in 1_000..1_024 {
        let events = small_stream(seed, 700);
        let tape = dir.path().join(seed.to_string());
        put_on_tape(&tape, events.iter().map(String::as_str));
        lines += assert_as_twin(&tape, &config, &events.join("\n"), &format!("seed {seed}"));
    }
    assert!(lines > 5_000, "{lines} lines are no test");
}

/// A withdrawal by a long id once would compare a part of it, and an id of one form with the same of another.
#[test]
fn ids_and_quantities_of_any_length_are_exact() {
    let dir = tempfile::tempdir().unwrap();
    let long = |last: char| format!("{}{last}", "x".repeat(300));
    let quote = |ts: u64, bank: &str, id: Value, px: &str, qty: &str| json!({"ts": ts, "kind": "quote", "bank": bank, "instr": "EURUSD", "side": "B", "px": px, "qty": qty, "quote_id": id});
    let withdrawal = |ts: u64, id: Value| json!({"ts": ts, "kind": "quote", "bank": "A", "instr": "EURUSD", "withdrawn": true, "quote_id": id});
    let most = "9223372036854775807";
    let inverted = json!({"ts": 9, "kind": "quote", "bank": "E", "instr": "USDEUR", "side": "S", "px": "9000000000.000000001",
        "qty": "9223372036854775807000000000000000000000000000000"});
    let lines = [
        quote(1, "A", json!(long('a')), "1.2", "5"),
        withdrawal(2, json!(long('b'))),
        withdrawal(3, json!(long('a'))),
        quote(4, "A", json!("z".repeat(46)), "1.2", "5"),
        withdrawal(5, json!("z".repeat(45))),
        quote(6, "B", json!(u64::MAX), "9223372036.854775806", most),
        quote(7, "C", json!("é\"\\"), "0.000000001", "0.000000000000000000000000000001"),
        quote(8, "D", Value::Null, "1.1", "9223372036854775807000000000000000000000000000000"),
        inverted,
    ];
    let events: String = lines.iter().fold(String::new(), |mut all, line| {
        writeln!(all, "{line}").unwrap();
        all
    });
    let tape = dir.path().join("tape");
    put_on_tape(&tape, events.lines());
    let config = BestPriceConfig {
        spike_pips: 0,
        ..sizes(["1", "9223372036854775807000000000000000000000000000", "0.000000000000000000000000000002"])
    };
    assert!(assert_as_twin(&tape, &config, &events, "odd numbers") > 8);
}

/// 100,000 pairs are more than there are; a table that grows without bound, or that is searched from end to end, fails here.
#[test]
fn a_hundred_thousand_pairs_have_a_book_each() {
    let dir = tempfile::tempdir().unwrap();
    let code = |n: u32| -> String {
        [n / 676, n / 26 % 26, n % 26].map(|n| (b'A' + n as u8) as char).iter().collect()
    };
    let events: String = (0..100_000u32).fold(String::new(), |mut all, n| {
        let instr = format!("{}{}", code(n / 10_000), code(1_000 + n % 10_000));
        writeln!(
            all,
            r#"{{"ts":{n},"kind":"quote","bank":"A","instr":"{instr}","side":"B","px":"1.1","qty":"2000000"}}"#
        )
        .unwrap();
        all
    });
    let tape = consolidate(dir.path(), "tape", &events);
    let best = fx("best", &tape, &["--size", "1000000", "--json"]).code(0);
    assert_eq!(best.text().lines().count(), 100_000);
    let book = fx("book", &tape, &["--json"]).code(0);
    assert_eq!(book.text().lines().count(), 100_000);
}

/// One bank that quotes without end must not take the room of others, and what was left out must be said.
#[test]
fn a_flood_of_one_bank_meets_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    let quote = |ts: u64, bank: &str, tier: u64, px: &str| {
        json!({"ts": ts, "kind": "quote", "bank": bank, "instr": "EURUSD", "side": "B", "tier": tier, "px": px, "qty": "1"})
            .to_string()
    };
    let mut lines: Vec<String> = (0..4_200).map(|n| quote(n, "A", n, &format!("1.{n:04}"))).collect();
    lines.push(json!({"ts": 5_000, "kind": "status", "venue": "A", "state": "logout"}).to_string());
    lines.push(quote(5_001, "B", 0, "1.1"));
    let tape = dir.path().join("tape");
    put_on_tape(&tape, lines.iter().map(String::as_str));
    let best = fx("best", &tape, &["--size", "1,4096,4097", "--json"]).code(3);
    let best = best.says(&["104 quotes were refused: no_room", "4,096 on a side of a book"]).lines();
    let sizes = |ts: u64| -> Vec<&str> {
        best.iter().filter(|line| line["ts"] == ts).map(|line| line["size"].as_str().unwrap()).collect()
    };
    assert_eq!(sizes(4_095), ["1", "4096"]);
    assert_eq!([sizes(4_096), sizes(4_199)], [[""; 0]; 2], "there is no room for a better price");
    assert_eq!(sizes(5_000), ["1", "4096"], "all are withdrawn");
    assert_eq!(sizes(5_001), ["1"], "and there is room for others");
}

fn quotes() -> String {
    let quote = |ts: u64, bank: &str, side: &str, px: &str| {
        format!(
            "{{\"ts\":{ts},\"kind\":\"quote\",\"bank\":\"{bank}\",\"instr\":\"EURUSD\",\"side\":\"{side}\",\"px\":\"{px}\",\"qty\":\"2000000\",\"quote_id\":\"{bank}-{ts}\"}}\n"
        )
    };
    quote(1, "CITI", "B", "1.085") + &quote(2, "UBS", "S", "1.0852") + &quote(3, "JPM", "B", "1.0849")
}

#[test]
fn tables_show_prices_and_quotes() {
    let dir = tempfile::tempdir().unwrap();
    let more = r#"{"ts":4,"kind":"quote","bank":"DB","instr":"USDEUR","side":"B","px":"0.9","qty":"5000000","tier":2,"full_amount":true}
{"ts":5,"kind":"control","venue":"JPM","action":"disable"}
{"ts":6,"kind":"quote","bank":"A\u001b[2J","instr":"GBPUSD","side":"B","px":"1.3","qty":"5000000"}
"#;
    let tape = consolidate(dir.path(), "tape", &(quotes() + more));
    let best = fx("best", &tape, &["--size", "3000000"]).code(0);
    let rows: Vec<Vec<&str>> = best.text().lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["time,", "UTC", "pair"]);
    let tail = ["3000000", "-", "-", "3254900", "in", "2", "-", "normal"];
    assert_eq!(rows[1][2..], [&["EUR/USD", "1970-01-05"][..], &tail].concat());
    assert!(best.text().contains("0.9 DB/2 full inverted"), "{}", best.text());
    // A terminal must not obey the name of a bank.
    assert!(best.text().contains(r"1.3 A\x1b[2J/0"), "{}", best.text());
    let book = fx("book", &tape, &[]).code(0);
    assert!(book.text().contains(r"A\x1b[2J/0  5000000"), "{}", book.text());
    for words in [
        "EUR/USD for 1970-01-05, 2 bids and 2 asks, 1970-01-01 00:00:00.000000006",
        "CITI/0  2000000   1.085  1.0852  2000000  UBS/0",
        "JPM/0 disabled  2000000  1.0849  0.9     5000000  DB/2 full inverted",
    ] {
        assert!(book.text().contains(words), "no {words} in\n{}", book.text());
    }
}

/// An empty answer looked like a quiet market.
#[test]
fn an_empty_answer_is_explained() {
    let dir = tempfile::tempdir().unwrap();
    let tape = consolidate(dir.path(), "tape", &quotes());
    let none = consolidate(dir.path(), "none", "{\"ts\":1,\"kind\":\"clock\"}\n");
    for json in [&[][..], &["--json"]] {
        let explained = |command: &str, tape: &Path, options: &[&str], words: &[&str]| {
            let ran = fx(command, tape, &[options, json].concat()).code(0).says(words);
            assert_eq!((ran.text(), ran.stderr.lines().count()), ("", 1), "{options:?}: {}", ran.stderr);
        };
        for (command, what) in [("best", "no best price: "), ("book", "no book: ")] {
            explained(command, &none, &[], &[what, "none of the 1 events is a quote", "generate banks"]);
            explained(
                command,
                &tape,
                &["--instr", "GBPUSD"],
                &[what, "no quote of GBP/USD", "there is only EUR/USD"],
            );
        }
        explained(
            "best",
            &tape,
            &["--size", "9000000"],
            &["no best price for 9000000: the 3 quotes made none"],
        );
        explained("book", &tape, &["--value-date", "2026-03-04"], &["no book for 2026-03-04"]);
    }
    for options in [&["--instr", "EURUSD"][..], &["--instr", "USD/EUR"], &["--value-date", "1970-01-05"]] {
        assert_eq!(
            fx("book", &tape, &[options, &["--json"]].concat()).code(0).lines().len(),
            1,
            "{options:?}"
        );
    }
    assert_eq!(fx("best", &tape, &["--instr", "USDEUR", "--size", "1", "--json"]).code(0).lines().len(), 2);
}

#[test]
fn wrong_options_say_what_is_right() {
    for (options, words) in [
        (&["--size", "1e6"][..], "a size is a number above 0, as in --size 1000000,5000000"),
        (&["--size", "1000000,-5"], "a size is a number above 0"),
        (&["--size", "1,,2"], "a size is a number above 0"),
        (&["--instr", "EUR-USD"], "no currency pair; write EURUSD or EUR/USD"),
        (&["--stale-ms", "x"], "--stale-ms"),
        (&["--spike-banks", "0"], "--spike-banks"),
    ] {
        fx("best", "tape".as_ref(), options).code(2).says(&[words]);
    }
    fx("book", "tape".as_ref(), &["--value-date", "today"]).code(2).says(&["write 2026-12-25"]);
    fx("book", "nowhere".as_ref(), &[]).code(1).says(&["nowhere"]);
    for help in [&["fx", "--help"][..], &["fx", "best", "--help"], &["fx", "book", "--help"]] {
        let help = run(help).code(0);
        for words in ["Examples:", "docs/best-price-rules.md"] {
            assert!(help.text().contains(words), "no {words} in {}", help.text());
        }
    }
}

/// A price from behind a damaged place may lack a withdrawal: what is printed before it is right, and the code says the rest.
#[test]
fn damage_and_a_gone_beginning_end_with_3() {
    let dir = tempfile::tempdir().unwrap();
    let (input, tape) = (dir.path().join("input"), dir.path().join("tape"));
    let stream = ["--pairs", "3", "--rate", "400", "--events", "6000"];
    run(["generate", "banks", "--out", input.to_str().unwrap()].iter().chain(&stream)).code(0);
    let path = tape.to_str().unwrap();
    run(["consolidate", input.to_str().unwrap(), "--tape", path, "--segment-bytes", "131072"]).code(0);
    let whole = fx("best", &tape, &["--json"]).code(0);

    let copy = dir.path().join("copy");
    let copied = std::process::Command::new("cp").args(["-r", path, copy.to_str().unwrap()]).status();
    assert!(copied.unwrap().success());
    run(["tape", "retain", copy.to_str().unwrap(), "--bytes", "400000"]).code(0);
    for command in ["best", "book"] {
        fx(command, &copy, &["--json"]).code(3).says(&["retention has removed", "older quotes are missing"]);
    }

    let segment = tape.join(format!("segments/{:016x}.seg", 2));
    let mut bytes = fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    fs::write(&segment, bytes).unwrap();
    let damaged = fx("best", &tape, &["--json"]).code(3);
    assert!(!damaged.text().is_empty() && damaged.text().len() < whole.text().len());
    assert!(whole.text().starts_with(damaged.text()), "what is printed before the damage is right");
    assert_eq!(fx("book", &tape, &["--json"]).code(3).text(), "");
    for command in ["best", "book"] {
        let skipped =
            fx(command, &tape, &["--json", "--skip-damage"]).code(3).says(&["skipped 1 damaged parts"]);
        assert!(skipped.text().lines().count() > 3);
    }
}
