//! Captures whose datagrams IP cut into fragments: every tape is that of the capture in which nothing was cut.

use crate::common::fragments::{cut, with_checksum};
use crate::common::{assert_same, events, run, run_in_parts};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::path::Path;
use unitape_base::capture::write::{datagram, file_header};
use unitape_feed::{FileFeed, Format, TapeAccount, quarantine};

/// A datagram of lines, sent at a time in ms.
struct Sent {
    ms: i64,
    lines: usize,
}

/// The packets of a capture, each as a record, without the file's header.
fn records(sent: &[Sent]) -> Vec<Vec<u8>> {
    let mut number = 0;
    let record = |sent: &Sent| {
        let mut payload = String::new();
        for _ in 0..sent.lines {
            number += 1;
            writeln!(
                payload,
                "{{\"ts\":{number},\"kind\":\"status\",\"instr\":\"I{}\",\"state\":\"open\"}}",
                number % 7
            )
            .unwrap();
        }
        let mut out = Vec::new();
        let [from, to] = ["10.0.0.1:9", "239.0.0.1:5000"].map(|address| address.parse().unwrap());
        datagram(&mut out, sent.ms * 1_000_000, from, to, payload.as_bytes());
        out
    };
    sent.iter().map(record).collect()
}

fn capture(path: &Path, records: &[Vec<u8>]) {
    let mut out = Vec::new();
    file_header(&mut out);
    out.extend(records.concat());
    std::fs::write(path, out).unwrap();
}

fn lines_feed(path: &Path) -> Vec<FileFeed> {
    vec![FileFeed { name: "lines".to_owned(), format: Format::events(), files: vec![path.to_owned()] }]
}

/// The event times on a tape, which number the lines.
fn numbers(tape: &Path) -> Vec<u64> {
    events(tape).iter().map(|event| event["ts"].as_u64().unwrap()).collect()
}

/// What lies between the fragments of a datagram, how many it has and in which order they come change nothing.
#[test]
fn fragments_in_any_order_give_the_same_events() {
    let dir = tempfile::tempdir().unwrap();
    let sent = [(1, 3), (2, 40), (3, 1), (4, 25), (5, 2)].map(|(ms, lines)| Sent { ms, lines });
    let all = records(&sent);
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|n: usize| &all[n]);
    let (b_parts, d_parts) = (cut(b, 7, 512), cut(d, 8, 8));
    let one = |record: &Vec<u8>| vec![record.clone()];
    let back = |parts: &[Vec<u8>]| parts.iter().rev().cloned().collect::<Vec<_>>();
    let woven: Vec<_> = b_parts
        .iter()
        .enumerate()
        .flat_map(|(n, part)| {
            [part.clone()].into_iter().chain(if n == 0 { one(c) } else { Vec::new() }).collect::<Vec<_>>()
        })
        .collect();
    let captures = [
        vec![one(a), b_parts.clone(), one(c), d_parts.clone(), one(e)],
        vec![one(a), back(&b_parts), one(c), back(&d_parts), one(e)],
        // Another datagram between the fragments comes behind theirs, as it was sent.
        vec![one(a), woven, one(d), one(e)],
        // Two datagrams at once; the last fragment of the first comes behind the whole of the second, and twice.
        vec![one(a), b_parts[..1].to_vec(), one(c), d_parts.clone(), b_parts[1..].to_vec(), one(e)],
    ];
    let count: u64 = sent.iter().map(|sent| sent.lines as u64).sum();
    for (n, parts) in captures.iter().enumerate() {
        let path = dir.path().join(format!("{n}.pcap"));
        capture(&path, &parts.concat());
        let tape = dir.path().join(format!("tape-{n}"));
        let s = run(&tape, &lines_feed(&path), 1, 1 << 20).summary;
        assert_eq!((s.messages, s.events, s.quarantined), (count, count, 0), "capture {n}");
        assert_eq!(numbers(&tape), (1..=count).collect::<Vec<_>>(), "capture {n}");
        let account = TapeAccount::load(&tape).unwrap();
        assert!(account.sources.iter().all(|source| source.end && source.tally.is_balanced()));
        for (workers, block_bytes) in [(2, 64), (1, 1000), (3, 700)] {
            let other = dir.path().join(format!("tape-{n}-{block_bytes}"));
            run(&other, &lines_feed(&path), workers, block_bytes);
            assert_same(&tape, &other, &format!("capture {n}, blocks of {block_bytes}"));
        }
    }
}

/// Fragments whose others never come are in quarantine, each with its record, and all else is read.
#[test]
fn fragments_without_the_others_go_into_quarantine() {
    let dir = tempfile::tempdir().unwrap();
    let all =
        records(&[(1, 2), (2, 30), (3, 1), (1_500, 1), (1_501, 1)].map(|(ms, lines)| Sent { ms, lines }));
    let parts = cut(&all[1], 7, 480);
    assert!(parts.len() > 3);
    let mut other = parts[1].clone();
    *other.last_mut().unwrap() ^= 1;
    let one = |n: usize| vec![all[n].clone()];
    let missing = "others of its fragments are missing";
    for (name, middle, lost, reason) in [
        ("hole", parts[..2].iter().chain(&parts[3..]).cloned().collect::<Vec<_>>(), parts.len() - 1, missing),
        ("no-first", parts[1..].to_vec(), parts.len() - 1, missing),
        ("no-last", parts[..parts.len() - 1].to_vec(), parts.len() - 1, missing),
        ("twice", vec![parts[0].clone(), parts[1].clone(), other], 3, "its fragments contradict each other"),
    ] {
        // The last of the fragments are the last records once, and once others come long after them.
        for tail in [vec![], vec![2], vec![2, 3, 4]] {
            let path = dir.path().join(format!("{name}-{}.pcap", tail.len()));
            capture(&path, &[one(0), middle.clone(), tail.iter().flat_map(|n| one(*n)).collect()].concat());
            let tape = dir.path().join(format!("{name}-{}", tail.len()));
            let s = run(&tape, &lines_feed(&path), 1, 1 << 20).summary;
            assert_eq!((s.events, s.quarantined), (2 + tail.len() as u64, lost as u64), "{name}");
            let entries = quarantine::list(&tape).unwrap();
            assert!(entries.iter().all(|entry| entry.reason == "fragment"), "{entries:?}");
            assert!(entries[0].detail.ends_with(reason), "{name}: {}", entries[0].detail);
            assert!(TapeAccount::load(&tape).unwrap().sources.iter().all(|s| s.end && s.tally.is_balanced()));
            let small = dir.path().join(format!("{name}-{}-small", tail.len()));
            run(&small, &lines_feed(&path), 2, 100);
            assert_same(&tape, &small, name);
        }
    }
    // A late one, more than a second behind.
    let path = dir.path().join("late.pcap");
    let late = [one(0), parts[..parts.len() - 1].to_vec(), one(3), parts[parts.len() - 1..].to_vec(), one(4)];
    capture(&path, &late.concat());
    let tape = dir.path().join("late");
    let s = run(&tape, &lines_feed(&path), 1, 1 << 20).summary;
    assert_eq!((s.events, s.quarantined), (4, parts.len() as u64));
}

/// The first fragment of one datagram and the last one of another, which the sender gave the same identification, became
/// one datagram that nobody sent.
#[test]
fn fragments_of_two_datagrams_with_one_identification_go_into_quarantine() {
    let dir = tempfile::tempdir().unwrap();
    let all: Vec<_> = records(&[(1, 2), (2, 30), (3, 30), (4, 2)].map(|(ms, lines)| Sent { ms, lines }));
    let [one, other] = [1, 2].map(|n: usize| cut(&with_checksum(&all[n]), 7, 1024));
    assert_eq!((one.len(), other.len()), (2, 2));
    let rest = |n: usize| all[n].clone();
    for (n, parts, lost, events) in [
        (0, vec![one[0].clone(), one[1].clone(), other[0].clone(), other[1].clone()], 0, 64),
        // The last fragment of the first datagram was lost, and so was the first of the second one.
        (1, vec![one[0].clone(), other[1].clone()], 2, 4),
        (2, vec![other[1].clone(), one[0].clone()], 2, 4),
        (3, vec![one[0].clone(), other[1].clone(), other[0].clone(), other[1].clone()], 2, 34),
    ] {
        let path = dir.path().join(format!("{n}.pcap"));
        capture(&path, &[vec![rest(0)], parts, vec![rest(3)]].concat());
        let tape = dir.path().join(format!("tape-{n}"));
        let s = run(&tape, &lines_feed(&path), 1, 1 << 20).summary;
        assert_eq!((s.events, s.quarantined), (events, lost), "capture {n}");
        let entries = quarantine::list(&tape).unwrap();
        assert!(entries.iter().all(|entry| entry.detail.contains("its checksum differs")), "{entries:?}");
        let small = dir.path().join(format!("small-{n}"));
        run(&small, &lines_feed(&path), 2, 100);
        assert_same(&tape, &small, "small blocks");
    }
}

/// Where a datagram is always open, the next one begins, and none becomes whole: a reader that waits for that reads to the end.
#[test]
fn datagrams_that_are_open_all_the_time_do_not_hold_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let all = records(&(0..14_000).map(|n| Sent { ms: n / 100, lines: 30 }).collect::<Vec<_>>());
    let mut lost = 0;
    let parts = all.iter().enumerate().flat_map(|(n, record)| match n % 100 {
        0 => {
            lost += 1;
            vec![cut(record, n as u16, 1400).swap_remove(0)]
        }
        _ => vec![record.clone()],
    });
    let path = dir.path().join("day.pcap");
    capture(&path, &parts.collect::<Vec<_>>());
    assert!(std::fs::metadata(&path).unwrap().len() > 20 << 20);
    let (tape, other) = (dir.path().join("tape"), dir.path().join("other"));
    let s = run(&tape, &lines_feed(&path), 1, 256 << 10).summary;
    assert_eq!((s.events, s.quarantined), (30 * (14_000 - lost), lost));
    run(&other, &lines_feed(&path), 2, 900_000);
    assert_same(&tape, &other, "blocks of 900,000");
}

/// A capture with fragments of several datagrams among each other, some of them missing.
fn woven(seed: u64) -> Vec<Vec<u8>> {
    let mut state = seed;
    let mut pick = move |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let sent: Vec<_> =
        (0..60).map(|n| Sent { ms: n * (1 + pick(60) as i64), lines: 1 + pick(30) as usize }).collect();
    let mut out = Vec::new();
    for (n, record) in records(&sent).iter().enumerate() {
        let parts = match pick(3) {
            0 => vec![record.clone()],
            _ => cut(record, n as u16, 8 * (1 + pick(80) as usize)),
        };
        for part in parts {
            if pick(150) > 0 {
                // Up to eight records before the end.
                let place = out.len() - (pick(9) as usize).min(out.len()) * usize::from(pick(3) == 0);
                out.insert(place, part);
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    // Stopped wherever it is, and started again: nothing twice, nothing missing, the same bytes.
    #[test]
    fn captures_with_fragments_stopped_and_started_again(
        seed in any::<u64>(), workers in 1usize..4, block in 64usize..20_000,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("day.pcap");
        capture(&path, &woven(seed));
        let (whole, parts) = (dir.path().join("whole"), dir.path().join("parts"));
        run(&whole, &lines_feed(&path), 1, 1 << 20);
        prop_assert!(TapeAccount::load(&whole).unwrap().sources.iter().all(|s| s.end && s.tally.is_balanced()));
        run_in_parts(&parts, &lines_feed(&path), workers, block, 20);
        assert_same(&whole, &parts, &format!("seed {seed}, {workers} workers, blocks of {block}"));
    }
}
