//! Rows of separated values onto the tape. Risks beyond fixed-width records: a line end in quotes where a block is
//! cut, columns in another order than the layout's, a day that only the file's name contains.

use crate::common::{assert_same, feed, run};
use std::fmt::Write;
use std::path::Path;
use unitape_feed::{FileFeed, TapeAccount, feed_of_option, quarantine};

const MAPPING: &str = r#"
name = "notes"
format = "csv"
layout = "notes-layout.toml"
[message]
ts = "at"
sequence = "n"
[[rule]]
when = { "@record" = "row" }
[[rule.event]]
kind = "trade"
fields = { instr = "instr", px = "px", qty = "qty" }
"#;

const LAYOUT: &str = r##"
name = "notes"
comment = "#"
zone = "UTC"
row_bytes_max = 300
trailer = { first = "END", columns = ["mark", "rows"], count = "rows" }
column = [
  { name = "at", type = "time", form = "HH:MM:SS", date = "file", required = true },
  { name = "n", type = "int" },
  { name = "instr", required = true },
  { name = "px", type = "decimal", required = true },
  { name = "qty", type = "int", required = true },
]
"##;

fn named(dir: &Path, name: &str, bytes: &str) -> FileFeed {
    std::fs::write(dir.join("notes-layout.toml"), LAYOUT).unwrap();
    std::fs::write(dir.join("notes.toml"), MAPPING).unwrap();
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    let mapping = dir.join("notes.toml");
    feed_of_option(&format!("notes=csv:{}:{}", mapping.display(), path.display())).unwrap()
}

fn vectors() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/csv")
}

/// Good rows between all that can happen to one, and notes with line ends, separators and quotes in them.
fn adversarial(rows: usize) -> (String, u64) {
    let mut out = "\u{feff}instr,px,note,at,n,qty\n".to_owned();
    let mut bad = 0;
    for i in 0..rows {
        let note = match i % 5 {
            0 => "\"two\nlines, and a \"\"quote\"\"\"".to_owned(),
            1 => format!("\"{}\"", "\n,".repeat(i % 90)),
            _ => "plain".to_owned(),
        };
        let (at, px) = (format!("{:02}:{:02}:{:02}", i / 3600 % 24, i / 60 % 60, i % 60), i % 100 + 1);
        match i % 29 {
            3 => out += "A,1,x\n",
            7 => out += "A,1,x\"y,00:00:00,1,1\n",
            11 => writeln!(out, "A,1.x,{note},{at},{i},1").unwrap(),
            13 => writeln!(out, "A,1,{},{at},{i},1", "x".repeat(310)).unwrap(),
            17 => out += "# a comment, with \"one quote\n\n",
            _ => writeln!(out, "B{},{px}.25,{note},{at},{i},{}\r", i % 7, i + 1).unwrap(),
        }
        // A field that is too long comes in two pieces.
        bad += match i % 29 {
            3 | 7 | 11 => 1,
            13 => 2,
            _ => 0,
        };
    }
    let of = |which: usize| (0..rows).filter(|i| i % 29 == which).count();
    writeln!(out, "END,{}", rows - of(17) + of(13)).unwrap();
    (out, bad)
}

#[test]
fn any_number_of_workers_and_any_cut_gives_the_same_tape() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, bad) = adversarial(2_000);
    let feeds = [named(dir.path(), "notes_20161024.csv", &bytes)];
    let one = dir.path().join("one");
    let s = run(&one, &feeds, 1, 1 << 20).summary;
    assert_eq!((s.quarantined, s.ignored), (bad, 2), "{:?}", quarantine::list(&one).unwrap().last());
    assert_eq!(s.messages, s.ignored + s.events + s.quarantined);
    assert!(TapeAccount::load(&one).unwrap().sources.iter().all(|s| s.end && s.tally.is_balanced()));
    for (workers, block_bytes) in [(1, 97), (2, 64 << 10), (2, 5000), (3, 331), (4, 17_001)] {
        let other = dir.path().join(format!("{workers}-{block_bytes}"));
        run(&other, &feeds, workers, block_bytes);
        assert_same(&one, &other, &format!("{workers} workers, blocks of {block_bytes}"));
    }
}

#[test]
fn reasons_are_told_and_neighbours_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, _) = adversarial(29);
    let tape = dir.path().join("tape");
    let s = run(&tape, &[named(dir.path(), "x_20161024.csv", &bytes.replace("END,29", "END,30"))], 2, 200)
        .summary;
    assert_eq!((s.events, s.quarantined), (24, 6));
    let entries = quarantine::list(&tape).unwrap();
    let reasons: Vec<&str> = entries.iter().map(|e| e.reason.as_str()).collect();
    assert_eq!(reasons, ["ragged_row", "bad_quote", "bad_number", "long_row", "ragged_row", "record_count"]);
    assert_eq!(entries[5].detail, "30 rows stated, 29 found");
    assert_eq!(entries[2].detail, "column px: \"1.x\" is no number of the form the layout says");
}

/// The same rows without a day in the name are refused, each with that reason, and not put on some other day.
#[test]
fn without_a_day_in_the_name_there_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let rows = "at,n,instr,px,qty\n00:00:01,1,A,1,1\n";
    let tape = dir.path().join("tape");
    let s = run(&tape, &[named(dir.path(), "rows.csv", rows)], 1, 1000).summary;
    assert_eq!((s.events, s.quarantined), (0, 1));
    assert_eq!(quarantine::list(&tape).unwrap()[0].reason, "no_date");
}

#[test]
fn the_taq_files_are_known_and_accounted_for() {
    let dir = tempfile::tempdir().unwrap();
    for (name, kind, events) in [
        ("EQY_US_ALL_TRADE_20161024.txt", "trade", 60),
        ("SPLITS_US_ALL_BBO_A_20161024.txt", "bbo", 40),
        ("EQY_US_ALL_NBBO_20161024.txt", "bbo", 40),
        ("EQY_US_ALL_REF_MASTER_20161024.txt", "ref", 6),
    ] {
        let tape = dir.path().join(name);
        let s = run(&tape, &[feed(&vectors().join(name))], 2, 1000).summary;
        assert_eq!((s.messages, s.ignored, s.quarantined), (events + 2, 2, 0));
        assert_eq!(s.by_kind[kind], events);
    }
}

/// A file of this name and content by a shipped mapping: events, and code and detail of each entry in quarantine.
fn shipped(mapping: &str, name: &str, bytes: impl AsRef<[u8]>) -> (u64, Vec<(String, String)>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let feed = feed_of_option(&format!("f=csv:{mapping}:{}", path.display())).unwrap();
    let tape = dir.path().join("tape");
    let events = run(&tape, &[feed], 1, 1 << 20).summary.events;
    let entries = quarantine::list(&tape).unwrap();
    (events, entries.into_iter().map(|entry| (entry.reason, entry.detail)).collect())
}

/// Candles of Dukascopy, and ticks under names of another export, became quotes without a price, exit code 0.
#[test]
fn a_header_without_the_prices_of_the_mapping_is_refused() {
    let ticks = |header: &str| {
        let row = "02.03.2026 00:00:03.123 GMT+0200,1.08012,1.08001,1.5,0.75\n";
        shipped("dukascopy-ticks", "EURUSD_Ticks_02.03.2026-02.03.2026.csv", format!("{header}\n{row}"))
    };
    assert_eq!(ticks("Local time,Ask,Bid,AskVolume,BidVolume"), (1, Vec::new()));
    // Sizes may be missing: dukascopy-node leaves them out by default.
    assert_eq!(ticks("Local time,Ask,Bid,x,y"), (1, Vec::new()));
    for (header, lacking) in [
        (
            "Local time,Open,High,Low,Close",
            "none of the columns `Bid`, `bidPrice` (bid of bbo); none of the columns `Ask`, `askPrice` (ask of bbo)",
        ),
        (
            "Local time,Ask price,Bid price,AskVolume,BidVolume",
            "none of the columns `Bid`, `bidPrice` (bid of bbo)",
        ),
        ("Local time,ask,bid,AskVolume,BidVolume", "none of the columns `Ask`, `askPrice` (ask of bbo)"),
        ("Local time,Ask,Mid,AskVolume,BidVolume", "none of the columns `Bid`, `bidPrice` (bid of bbo)"),
        (
            "Time,Ask,Bid,AskVolume,BidVolume",
            "none of the columns `Local time`, `Gmt time`, `Time (EET)`, `timestamp` (event time)",
        ),
    ] {
        let (events, entries) = ticks(header);
        assert_eq!((events, entries.len()), (0, 2), "{header}");
        let (reason, detail) = &entries[0];
        assert_eq!((reason.as_str(), entries[1].0.as_str()), ("bad_header", "no_header"));
        let columns = header.split(',').map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        assert!(detail.contains(lacking) && detail.contains(&columns), "{detail}");
    }
}

/// Each shipped mapping of quotes, with the column of a price under another name.
#[test]
fn no_shipped_mapping_makes_quotes_without_prices() {
    for (mapping, name, column) in [
        ("nyse-taq-quotes", "SPLITS_US_ALL_BBO_A_20161024.txt", "Bid_Price"),
        ("nyse-taq-nbbo", "EQY_US_ALL_NBBO_20161024.txt", "Best_Offer_Price"),
        ("nyse-taq-trades", "EQY_US_ALL_TRADE_20161024.txt", "Trade Price"),
        ("mt5-ticks", "EURUSD_202603020000_202603020001.csv", "<BID>"),
        ("mt5-bars", "EURUSD_M1_202603020000_202603020001.csv", "<OPEN>"),
        ("binance-futures-trades", "ETHUSDT-trades-2026-03-02.csv", "price"),
        ("dukascopy-ticks", "eurusd-tick-2026-03-02-2026-03-03.csv", "askPrice"),
    ] {
        let bytes = std::fs::read_to_string(vectors().join(name)).unwrap();
        assert!(bytes.contains(column), "{name}");
        let (events, entries) = shipped(mapping, name, bytes.replacen(column, "other", 1));
        assert_eq!(events, 0, "{mapping}");
        assert_eq!(entries[0].0, "bad_header", "{mapping}");
        assert!(entries[0].1.contains(&format!("`{column}`")), "{mapping}: {}", entries[0].1);
    }
}

/// Prints and quotes in one file: without the columns of the quotes the prints are good, and each quote is refused.
#[test]
fn rows_of_events_whose_prices_the_file_lacks_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let layout = "name='l'\nzone='UTC'\ncolumn=[{name='t',type='timestamp',form='@ms'},{name='k'},{name='i'},\
        {name='p',type='decimal'},{name='b',type='decimal'},{name='a',type='decimal'}]";
    let mapping = r#"
name = "m"
format = "csv"
layout = "l.toml"
[message]
ts = "t"
[[rule]]
when = { k = "T" }
event = [{ kind = "trade", fields = { instr = "i", px = "p", qty = { const = "1" } } }]
[[rule]]
when = { k = "Q" }
event = [{ kind = "bbo", fields = { instr = "i", bid = "b", ask = "a" } }]
"#;
    std::fs::write(dir.path().join("l.toml"), layout).unwrap();
    std::fs::write(dir.path().join("m.toml"), mapping).unwrap();
    let read = |name: &str, rows: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, rows).unwrap();
        let option = format!("f=csv:{}:{}", dir.path().join("m.toml").display(), path.display());
        let tape = dir.path().join(format!("{name}-tape"));
        let summary = run(&tape, &[feed_of_option(&option).unwrap()], 1, 1 << 20).summary;
        let details = quarantine::list(&tape).unwrap().into_iter().map(|entry| entry.detail).collect();
        (summary.events, details)
    };
    let rows = "1700000000000,T,A,1,2,3\n1700000000000,Q,A,1,2,3\n";
    let none: Vec<String> = Vec::new();
    assert_eq!(read("all", &format!("t,k,i,p,b,a\n{rows}")), (2, none));
    let refused = vec!["ask (a): the header has no such column".to_owned()];
    assert_eq!(read("prints", &format!("t,k,i,p,b,x\n{rows}")), (1, refused));
    let (events, details) = read("nothing", &format!("t,k,i,x,b,y\n{rows}"));
    assert_eq!(events, 0);
    assert!(details[0].contains("no column `p` (px of trade); no column `a` (ask of bbo)"), "{details:?}");
}

/// Each bad row had the header of its file in its event: 70 kB of rows became a tape of 288 MB.
#[test]
fn a_long_header_is_on_the_tape_once() {
    let dir = tempfile::tempdir().unwrap();
    let layout = "name='l'\nzone='UTC'\ncolumn=[{name='t',type='timestamp',form='@ms'},{name='i'},{name='p',type='decimal'}]";
    let mapping = |table: &str| {
        format!(
            "name='m'\nformat='csv'\nlayout='l.toml'\n[message]\nts='t'\nunlisted='drop'\n[table.names]\n{table}\n[[rule]]\n\
             [[rule.event]]\nkind='trade'\n[rule.event.fields]\ninstr={{from='i',table='names'}}\npx='p'\nqty={{const='1'}}\n"
        )
    };
    std::fs::write(dir.path().join("l.toml"), layout).unwrap();
    std::fs::write(dir.path().join("m.toml"), mapping("A='A'")).unwrap();
    std::fs::write(dir.path().join("mended.toml"), mapping("A='A'\nB='B'")).unwrap();
    let rows = |range: std::ops::Range<u64>| -> String {
        range
            .map(|n| format!("{},{},1\n", 1_700_000_000_000 + n, if n % 10 == 0 { "A" } else { "B" }))
            .collect()
    };
    let header = |columns: usize| (0..columns).map(|n| format!(",column{n:05}")).collect::<String>();
    // Short rows are padded, so that a row need not be as long as the header.
    std::fs::write(dir.path().join("l.toml"), format!("short='pad'\n{layout}")).unwrap();
    let feed_of = |name: &str, columns: usize, rows: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("t,i,p{}\n{rows}", header(columns))).unwrap();
        [feed_of_option(&format!("f=csv:{}:{}", dir.path().join("m.toml").display(), path.display()))
            .unwrap()]
    };
    let read = |name: &str, columns: usize| {
        let feeds = feed_of(&format!("{name}.csv"), columns, &rows(0..2_000));
        let tape = dir.path().join(name);
        assert_eq!(run(&tape, &feeds, 1, 1 << 20).summary.quarantined, 1_800);
        for (workers, block_bytes) in [(2, 4_000), (3, 70_000)] {
            let other = dir.path().join(format!("{name}-{workers}"));
            run(&other, &feeds, workers, block_bytes);
            assert_same(&tape, &other, name);
        }
        let end = quarantine::list(&tape).unwrap().last().unwrap().position.0;
        (tape, end)
    };
    let (long, short) = (read("long", 3_000), read("short", 0));
    let header_bytes = header(3_000).len() as u64;
    assert!(header_bytes > 30_000);
    assert!(long.1 < short.1 + 3 * header_bytes, "{} and {} bytes", long.1, short.1);
    // Every row is read again with its header.
    let mended = unitape_feed::Mapping::load(dir.path().join("mended.toml").to_str().unwrap()).unwrap();
    for (tape, _) in [&long, &short] {
        let report = quarantine::retry(tape, Some(&mended), None).unwrap();
        assert_eq!((report.tried, report.recovered, report.left), (1_800, 1_800, 0));
    }
    // A run that resumes in the middle knows the header of the tape.
    let tape = dir.path().join("grown");
    let first = feed_of("grown.csv", 3_000, &rows(0..1_000));
    run(&tape, &first, 1, 1 << 20);
    run(&tape, &feed_of("grown.csv", 3_000, &rows(0..2_000)), 1, 1 << 20);
    let entries = quarantine::list(&tape).unwrap();
    assert_eq!(entries.len(), 1_800);
    assert!(entries.last().unwrap().position.0 < short.1 + 3 * header_bytes);
    assert_eq!(quarantine::retry(&tape, Some(&mended), None).unwrap().recovered, 1_800);
}
