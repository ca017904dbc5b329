//! A sealed day holds what the tape holds: every kind, every byte, in its order, however it was cut.

mod common;

use common::{
    DAY, Maker, NOON, Seen, assert_same, open, seal, seen_in_scan, seen_in_store, seen_on_tape, tape, writer,
};
use proptest::prelude::*;
use std::path::Path;
use unitape_model::{EventField, EventKind, UnixNanos};
use unitape_store::{Day, ScanFilter, SealOptions, TickSchema};

fn everything(store: &Path) -> Vec<Seen> {
    let (all, problems) = seen_in_store(&open(store).unwrap(), &ScanFilter::default());
    assert_eq!(problems, 0);
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// The order of the tape was once lost where a part ended, and a kind that had no home.
    #[test]
    fn a_scan_gives_the_tape(seed in any::<u64>(), n in 1usize..700, days in 1u64..4, memory in 11u32..20, rows in prop_oneof![1usize..8, Just(65_536)]) {
        let dir = tempfile::tempdir().unwrap();
        let tape = tape(dir.path(), "tape", seed, days, n);
        let store = dir.path().join("store");
        let options = SealOptions { memory_bytes: 1 << memory, block_rows: rows, ..SealOptions::default() };
        let sealed = seal(&tape, &store, &options).unwrap();
        let want = seen_on_tape(&tape);
        prop_assert_eq!(sealed.rows as usize, want.len());
        assert_same(&everything(&store), &want);
        // In windows that cut through blocks.
        let opened = open(&store).unwrap();
        let sources: Vec<Vec<u8>> = opened.sources().map(|e| e.bytes().to_vec()).collect();
        let mut scan = opened.scan(&ScanFilter::default()).unwrap().with_window_bytes(1 << (memory / 2));
        assert_same(&seen_in_scan(&mut scan, opened.names(), &sources), &want);
        prop_assert_eq!(scan.problem_count(), 0);
        let info = opened.info();
        prop_assert_eq!(info.all().rows as usize, want.len());
        prop_assert_eq!(info.all().raw_bytes as usize, want.iter().map(|s| s.frame.len()).sum::<usize>());
        // Once more: there is nothing to add, and nothing is written.
        let manifest = std::fs::read(store.join("manifest")).unwrap();
        prop_assert_eq!(seal(&tape, &store, &options).unwrap().generation, None);
        prop_assert_eq!(std::fs::read(store.join("manifest")).unwrap(), manifest);
    }

    /// A tape that grows, sealed now and then, some days on their own: everything once, still in its order.
    #[test]
    fn a_tape_that_grows_is_sealed_in_parts(seed in any::<u64>(), steps in proptest::collection::vec((1usize..150, 0u8..4), 1..7)) {
        let dir = tempfile::tempdir().unwrap();
        let (path, store) = (dir.path().join("tape"), dir.path().join("store"));
        let mut maker = Maker::new(seed, 3);
        for (n, what) in steps {
            let mut writer = writer(&path, 9);
            maker.write(&mut writer, n);
            writer.close().unwrap();
            let date = (what < 3).then(|| Day(Day::from_time(UnixNanos(NOON)).0 + i32::from(what)));
            let before = open(&store).map_or(0, |s| s.info().all().rows);
            let options = SealOptions { date, memory_bytes: 1 << 14, ..SealOptions::default() };
            let sealed = seal(&path, &store, &options).unwrap();
            let store = open(&store).unwrap();
            prop_assert_eq!(store.info().all().rows, before + sealed.rows);
            if let Some(day) = date {
                let (of_day, _) = seen_in_store(&store, &ScanFilter { date, ..ScanFilter::default() });
                let mut want = seen_on_tape(&path);
                want.retain(|s| Day::from_time(UnixNanos(s.ts)) == day);
                assert_same(&of_day, &want);
            }
        }
        seal(&path, &store, &SealOptions::default()).unwrap();
        assert_same(&everything(&store), &seen_on_tape(&path));
    }

    /// A filter that skips blocks must skip nothing that the slow way would find.
    #[test]
    fn filters_give_what_the_slow_filter_gives(seed in any::<u64>(), picks in proptest::collection::vec(any::<u64>(), 12)) {
        let dir = tempfile::tempdir().unwrap();
        let tape = tape(dir.path(), "tape", seed, 2, 500);
        let path = dir.path().join("store");
        seal(&tape, &path, &SealOptions { memory_bytes: 1 << 15, block_rows: 16, ..SealOptions::default() }).unwrap();
        let (all, store) = (seen_on_tape(&tape), open(&path).unwrap());
        for round in picks.chunks(2) {
            let (p, q) = (round[0], round[1]);
            let some = |bit: u32| p >> bit & 1 == 1;
            let ts = |n: u64| UnixNanos(all[n as usize % all.len()].ts);
            let filter = ScanFilter {
                symbols: if some(0) { vec![format!("instrument{}", q % 12), format!("instrument{}", q / 12 % 12)] } else { vec![] },
                from: some(1).then(|| ts(q >> 8)),
                to: some(2).then(|| ts(q >> 16)),
                date: some(3).then(|| Day::from_time(ts(q >> 24))),
                schemas: if some(4) { vec![TickSchema::ALL[q as usize % 16], TickSchema::Bbo] } else { vec![] },
                venue: some(5).then(|| format!("venue{}", q % 5)),
                as_of: None,
            };
            let want: Vec<Seen> = all.iter().filter(|s| s.matches(&filter)).cloned().collect();
            let (got, problems) = seen_in_store(&store, &filter);
            prop_assert_eq!(problems, 0);
            assert_same(&got, &want);
        }
    }
}

/// Every kind, also with the greatest and smallest times there are.
#[test]
fn every_kind_and_every_time_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape");
    let mut writer = writer(&path, 3);
    let mut maker = Maker::new(3, 1);
    for _ in 0..3 {
        for kind in EventKind::EVENTS {
            let mut unit = Vec::new();
            maker.event(kind, &mut unit);
            writer.append(&unit).unwrap();
        }
    }
    for ts in [i64::MIN, i64::MIN + 1, -1, 0, 1, NOON - DAY, i64::MAX - 1, i64::MAX] {
        let mut unit = Vec::new();
        let e = unitape_model::EventBuilder::begin(&mut unit, EventKind::Clock, UnixNanos(ts));
        e.finish(unitape_model::flags::LAST).unwrap();
        writer.append(&unit).unwrap();
    }
    writer.close().unwrap();
    let store = dir.path().join("store");
    let sealed = seal(&path, &store, &SealOptions::default()).unwrap();
    assert_eq!(sealed.days.len(), 6, "{sealed:?}");
    let all = everything(&store);
    assert_same(&all, &seen_on_tape(&path));
    assert!(EventKind::EVENTS.iter().all(|k| all.iter().filter(|s| s.kind == *k).count() >= 3));
}

/// Two stores of a tape hold the same events. No file of one is that of the other: a nonce that is used twice, or made from
/// what it seals, shows which blocks are alike.
#[test]
fn stores_of_one_tape_have_the_same_events_and_no_file_alike() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path(), "tape", 17, 2, 400);
    let stores = ["a", "b"].map(|name| {
        let store = dir.path().join(name);
        seal(&tape, &store, &SealOptions { memory_bytes: 1 << 14, ..SealOptions::default() }).unwrap();
        (everything(&store), common_files(&store))
    });
    assert_same(&stores[0].0, &stores[1].0);
    assert!(stores[0].1.len() > 20 && stores[0].1.len() == stores[1].1.len());
    for ((name, a), (other, b)) in stores[0].1.iter().zip(&stores[1].1) {
        // What is as long is in the same place; the tags and nonces differ.
        assert_eq!(name, other);
        assert!(a.is_empty() || a != b, "{name}");
    }
}

fn common_files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let (mut all, mut open) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().display().to_string();
                all.push((name, std::fs::read(&path).unwrap()));
            }
        }
    }
    all.sort();
    all
}

/// A message that was refused before its feed had a time: it was once left out, and the store had fewer events than the tape.
#[test]
fn events_without_a_time_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape");
    let mut writer = writer(&path, 3);
    let mut maker = Maker::new(4, 1);
    for n in 0..6 {
        let mut unit = Vec::new();
        if n % 3 == 0 {
            let kind = EventKind::Quarantine;
            let mut e = unitape_model::EventBuilder::begin(&mut unit, kind, UnixNanos(0));
            e.set_field(EventField::Reason, unitape_model::EventValue::Text("early")).unwrap();
            e.finish(unitape_model::flags::LAST).unwrap();
        } else {
            maker.event(EventKind::Bbo, &mut unit);
        }
        writer.append(&unit).unwrap();
    }
    writer.close().unwrap();
    let store = dir.path().join("store");
    let sealed = seal(&path, &store, &SealOptions::default()).unwrap();
    assert_eq!((sealed.rows, sealed.days.get(&Day::UNDATED)), (6, Some(&2)));
    let want = seen_on_tape(&path);
    assert_same(&everything(&store), &want);
    let opened = open(&store).unwrap();
    let of_date = |date| seen_in_store(&opened, &ScanFilter { date: Some(date), ..ScanFilter::default() }).0;
    assert_eq!(of_date(Day::UNDATED).len(), 2);
    assert_eq!(of_date(Day(0)).len(), 0, "1970 is not their day");
    // Times of the store are those of events that have one.
    assert!(opened.info().all().ts_min.is_some_and(|ts| ts > UnixNanos(NOON - DAY)));
    assert_eq!(seal(&path, &store, &SealOptions::default()).unwrap().generation, None);
}

/// Tapes of two segments in one store: names are the store's, and each tape keeps its order.
#[test]
fn several_tapes_share_a_store_and_its_names() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let tapes = [21, 22].map(|seed| tape(dir.path(), &format!("tape{seed}"), seed, 2, 300));
    for tape in tapes.iter().chain(&tapes) {
        seal(tape, &store, &SealOptions::default()).unwrap();
    }
    let want: Vec<Seen> = tapes.iter().flat_map(|t| seen_on_tape(t)).collect();
    assert_same(&everything(&store), &want);
    let info = open(&store).unwrap().info();
    assert_eq!((info.tapes.len(), info.generation), (2, 2));
}
