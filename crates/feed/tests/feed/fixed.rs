//! Fixed-width records onto the tape. Risks beyond FIX: the date of every record is in the first one, which another
//! worker read; and the number of records is only known when all blocks are.

use crate::common::{self, assert_same, feed, run, taq};
use std::path::Path;
use unitape_feed::{FileFeed, TapeAccount, feed_of_option, quarantine};
use unitape_model::{Event, frames};
use unitape_tape::{Reader, StartPosition};

const RECORD: usize = 98;

fn named(dir: &Path, name: &str, mapping: &str, bytes: &[u8]) -> FileFeed {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    feed_of_option(&format!("taq=fixed:{mapping}:{}", path.display())).unwrap()
}

/// The header with another number of records.
fn header(records: usize) -> Vec<u8> {
    let whole = std::fs::read(taq()).unwrap();
    let mut header = whole[..RECORD].to_vec();
    header[25..33].copy_from_slice(format!("{records:8}").as_bytes());
    header
}

/// Event times of the market's events, in tape order.
fn times(dir: &Path) -> Vec<i64> {
    let mut out = Vec::new();
    let mut reader = Reader::open(dir, StartPosition::Oldest).unwrap();
    while let Some(run) = reader.next_run(1 << 20).unwrap() {
        for (_, header, frame) in frames(run.bytes) {
            if let Some(event) = Event::new(frame).filter(|_| !header.is_meta()) {
                out.push(event.ts_event().0);
            }
        }
    }
    out
}

/// 9:31:09.362 in New York on 6 February 2014 is 14:31 in London; a table of summer offsets had it an hour off.
#[test]
fn the_taq_file_is_accounted_for() {
    let dir = tempfile::tempdir().unwrap();
    let outcome = run(dir.path(), &[feed(&taq())], 2, 64 << 10);
    let s = &outcome.summary;
    assert_eq!((s.messages, s.ignored, s.quarantined, s.duplicates), (9_995, 1, 0, 0));
    assert_eq!((s.events, s.by_kind["bbo"]), (9_994, 9_994));
    assert!(TapeAccount::load(dir.path()).unwrap().sources.iter().all(|s| s.end && s.tally.is_balanced()));
    let times = times(dir.path());
    assert_eq!(times[0], 1_391_697_069_362_000_000);
    let day = 1_391_644_800_000_000_000..1_391_731_200_000_000_000;
    assert!(times.iter().all(|t| day.contains(t)));
}

/// Good records between all that can happen to one: cut short, doubled in length, a digit that is none, a venue
/// nobody knows, line noise, and an empty line.
fn adversarial(records: usize) -> Vec<u8> {
    let whole = std::fs::read(taq()).unwrap();
    let mut out = header(records);
    for i in 0..records {
        let at = RECORD * (1 + i % 9_994);
        let mut record = whole[at..at + RECORD].to_vec();
        match i % 31 {
            3 => record.drain(40..60).for_each(drop),
            7 => record[30] = b'O',
            11 => record[9] = b'?',
            13 => record.splice(50..50, *b"noise").for_each(drop),
            17 => record[0] = b'9',
            19 => record[96] = b' ',
            23 => out.extend_from_slice(b"\r\n"),
            _ => {}
        }
        out.extend_from_slice(&record);
    }
    out
}

#[test]
fn any_number_of_workers_and_any_cut_gives_the_same_tape() {
    let dir = tempfile::tempdir().unwrap();
    let feeds = [feed(&taq()), named(dir.path(), "bad", "nyse-taq-bbo-98", &adversarial(3_000))];
    for (i, feed) in feeds.iter().enumerate() {
        let feed = std::slice::from_ref(feed);
        let one = dir.path().join(format!("{i}"));
        let s = run(&one, feed, 1, 1 << 20).summary;
        assert_eq!(s.messages, s.ignored + s.events + s.quarantined);
        assert!(i == 0 || s.quarantined > 300, "{}", s.quarantined);
        for (workers, block_bytes) in [(1, 97), (2, 64 << 10), (2, 5000), (3, 98), (4, 17_001)] {
            let other = dir.path().join(format!("{i}-{workers}-{block_bytes}"));
            run(&other, feed, workers, block_bytes);
            assert_same(&one, &other, &format!("feed {i}, {workers} workers, blocks of {block_bytes}"));
        }
    }
}

/// Every bad record is in quarantine with its own bytes, and every good one is an event.
#[test]
fn neighbours_of_bad_records_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("tape");
    let s = run(&tape, &[named(dir.path(), "bad", "nyse-taq-bbo-98", &adversarial(31))], 1, 1000).summary;
    // Two became one line where the line end was lost; the other five are bad by themselves.
    assert_eq!((s.messages, s.ignored, s.quarantined, s.events), (32, 1, 7, 24));
    let entries = quarantine::list(&tape).unwrap();
    let reasons: Vec<&str> = entries.iter().map(|e| e.reason.as_str()).collect();
    assert_eq!(
        reasons,
        [
            "short_record",
            "bad_number",
            "unknown_value",
            "long_record",
            "bad_time",
            "long_record",
            "record_count"
        ]
    );
    assert_eq!(entries[6].detail, "31 records stated, 30 found");
    assert_eq!((entries[6].length, entries[6].offset), (0, adversarial(31).len() as u64));
    let (_, raw) = quarantine::show(&tape, entries[1].position).unwrap();
    assert_eq!((raw.len(), raw[30]), (96, b'O'));
}

/// The file's middle knows nothing of its date: a run that resumes there must look at its start again.
#[test]
fn stopped_and_started_again() {
    let dir = tempfile::tempdir().unwrap();
    let whole = std::fs::read(taq()).unwrap();
    let mut bytes = header(3 * 9_994);
    (0..3).for_each(|_| bytes.extend_from_slice(&whole[RECORD..]));
    let feeds = [named(dir.path(), "long", "nyse-taq-bbo-98", &bytes)];
    let (one, parts) = (dir.path().join("one"), dir.path().join("parts"));
    let s = run(&one, &feeds, 1, 1 << 20).summary;
    assert_eq!((s.events, s.quarantined), (29_982, 0));
    assert!(common::run_in_parts(&parts, &feeds, 2, 100_000, 11_000) > 1);
    assert_same(&one, &parts, "stopped and started again");
}

/// A mended mapping recovers what it refused before, with the time that the header's date gives it.
#[test]
fn retry_knows_the_date() {
    let dir = tempfile::tempdir().unwrap();
    let shipped = include_str!("../../../../mappings/nyse-taq-bbo-98.toml");
    let lacking = dir.path().join("lacking.toml");
    std::fs::write(&lacking, shipped.replace("N = \"XNYS\"\n", "")).unwrap();
    let whole = std::fs::read(taq()).unwrap();
    let bytes = [header(2), whole[RECORD..3 * RECORD].to_vec()].concat();
    let tape = dir.path().join("tape");
    let s = run(&tape, &[named(dir.path(), "two", &lacking.display().to_string(), &bytes)], 1, 100).summary;
    assert_eq!((s.events, s.quarantined), (1, 1));
    let mended = unitape_feed::Mapping::load("nyse-taq-bbo-98").unwrap();
    let retried = quarantine::retry(&tape, Some(&mended), None).unwrap();
    assert_eq!((retried.recovered, retried.left), (1, 0));
    assert_eq!(times(&tape).last(), Some(&1_391_697_069_362_000_000));
}

/// Records without a terminator, their trailer long after them in another block.
#[test]
fn a_trailer_is_held_against_all_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let layout = "name = 'f'\nterminator = 'none'\n\
        [[record]]\nname='end'\nrole='trailer'\nwhen={k='T'}\ncount='n'\ncolumn=[{name='k',length=1},{name='n',length=7,type='int'}]\n\
        [[record]]\nname='px'\ncolumn=[{name='k',length=1},{name='px',length=5,type='decimal',decimals=2},{name='day',length=2,type='filler'}]\n";
    // A mapping needs an event time, which these have not: they all go into quarantine, and are counted.
    let mapping = "name='m'\nformat='fixed'\nlayout='layout.toml'\nmessage={ts='px'}\n\
        [[rule]]\nwhen={'@record'='end'}\nignore=true\n\
        [[rule]]\n[[rule.event]]\nkind='ref_px'\nfields={instr='k',px='px'}\n";
    std::fs::write(dir.path().join("layout.toml"), layout).unwrap();
    let file = dir.path().join("m.toml");
    std::fs::write(&file, mapping).unwrap();
    for (stated, ignored) in [(1000, 1), (999, 0)] {
        let bytes = format!("{}T{stated:07}", "A0012399".repeat(1000));
        let feed = named(dir.path(), "f", &file.display().to_string(), bytes.as_bytes());
        let one = dir.path().join(format!("one-{stated}"));
        let s = run(&one, std::slice::from_ref(&feed), 1, 1 << 20).summary;
        assert_eq!((s.messages, s.ignored, s.events), (1001, ignored, 0));
        let last = quarantine::list(&one).unwrap().pop().unwrap();
        assert_eq!(last.reason, if ignored == 1 { "bad_time" } else { "record_count" });
        let many = dir.path().join(format!("many-{stated}"));
        run(&many, &[feed], 3, 70);
        assert_same(&one, &many, "blocks of 70 bytes");
    }
}

/// Letters, digits and blanks in code page 037.
fn ebcdic(text: &str) -> Vec<u8> {
    let byte = |b: u8| match b {
        b'0'..=b'9' => 0xf0 + (b - b'0'),
        b'A'..=b'I' => 0xc1 + (b - b'A'),
        b'J'..=b'R' => 0xd1 + (b - b'J'),
        b'S'..=b'Z' => 0xe2 + (b - b'S'),
        b'}' => 0xd0,
        _ => 0x40,
    };
    text.bytes().map(byte).collect()
}

const MAINFRAME: &str = r#"
name = "mainframe"
terminator = "none"
encoding = "ebcdic-037"
zone = "UTC"
[[record]]
name = "head"
role = "header"
column = [
  { name = "mark", length = 1, type = "literal", is = "H" },
  { name = "day", length = 8, type = "date", form = "YYYYMMDD" },
  { name = "rest", length = 15, type = "filler" },
]
[[record]]
name = "tail"
role = "trailer"
when = { mark = "T" }
count = "records"
column = [
  { name = "mark", length = 1 },
  { name = "records", length = 4, type = "int", storage = "packed" },
  { name = "rest", length = 19, type = "filler" },
]
[[record]]
name = "trade"
when = { mark = "D" }
column = [
  { name = "mark", length = 1 },
  { name = "time", length = 6, type = "time", form = "HHMMSS", date = "header.day", required = true },
  { name = "instr", length = 6, required = true },
  { name = "px", length = 4, type = "decimal", decimals = 2, storage = "packed", required = true },
  { name = "qty", length = 4, type = "int", storage = "binary", required = true },
  { name = "net", length = 3, type = "int", sign = "overpunch" },
]
"#;

/// A file of a mainframe with a packed number that is none among its records, under a trailer that says `stated`.
fn mainframe(records: u32, stated: u32) -> Vec<u8> {
    let packed = |n: u32| u32::from_str_radix(&format!("{n:07}c"), 16).unwrap().to_be_bytes();
    let mut bytes = ebcdic(&format!("H20140206{:15}", ""));
    for i in 0..records {
        bytes.extend(ebcdic(&format!("D{:02}{:02}{:02}A{:<5}", i / 3600, i / 60 % 60, i % 60, i % 7)));
        bytes.extend(if i == 100 { [0xff; 4] } else { packed(100_000 + i) });
        bytes.extend(i.to_be_bytes());
        bytes.extend(ebcdic("12}"));
    }
    bytes.extend(ebcdic("T"));
    bytes.extend(packed(stated));
    bytes.extend(ebcdic(&" ".repeat(19)));
    bytes
}

/// Bytes of a mainframe were once translated as a whole, packed numbers and all, and each price was another.
#[test]
fn a_mainframes_records_at_any_number_of_workers() {
    let dir = tempfile::tempdir().unwrap();
    let mapping = "name='m'\nformat='fixed'\nlayout='mainframe.toml'\nmessage={ts='time'}\n\
        [[rule]]\nwhen={'@record'='head'}\nignore=true\n[[rule]]\nwhen={'@record'='tail'}\nignore=true\n\
        [[rule]]\n[[rule.event]]\nkind='trade'\nfields={instr='instr',px='px',qty='qty'}\n";
    std::fs::write(dir.path().join("mainframe.toml"), MAINFRAME).unwrap();
    let file = dir.path().join("m.toml");
    std::fs::write(&file, mapping).unwrap();
    for (stated, ignored, reasons) in
        [(2000, 2, &["bad_number"][..]), (1999, 1, &["bad_number", "record_count"])]
    {
        let bytes = mainframe(2000, stated);
        let feed = named(dir.path(), "f", &file.display().to_string(), &bytes);
        let one = dir.path().join(format!("one-{stated}"));
        let s = run(&one, std::slice::from_ref(&feed), 1, 1 << 20).summary;
        assert_eq!((s.messages, s.events, s.ignored), (2002, 1999, ignored));
        let entries = quarantine::list(&one).unwrap();
        assert_eq!(entries.iter().map(|e| e.reason.as_str()).collect::<Vec<_>>(), reasons);
        // Entries of the quarantine have times too.
        let times = times(&one);
        assert_eq!(
            (times[0], *times.iter().max().unwrap()),
            (1_391_644_800_000_000_000, 1_391_646_799_000_000_000)
        );
        for (workers, block_bytes) in [(2, 1000), (4, 331), (4, 4096)] {
            let other = dir.path().join(format!("{workers}-{block_bytes}-{stated}"));
            run(&other, std::slice::from_ref(&feed), workers, block_bytes);
            assert_same(&one, &other, &format!("{workers} workers, blocks of {block_bytes}"));
        }
    }
}
