//! The order of a sealed day: by event time in blocks, on any budget of memory, and the days of a calendar.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{DAY, NOON, Rng, key, open, seal, writer};
use unitape_model::{
    Event, EventBuilder, EventField, EventKind, EventValue, NameKind, Price, UnixNanos, flags,
};
use unitape_store::{
    Day, Error, ScanFilter, SealOptions, Store, TickSchema, VerifyKey, VerifyOptions, verify,
};
use unitape_tape::{Reader, StartPosition};

/// Appends a print of an instrument at a venue, both by their ids, with the definitions of `names` before it.
fn write_trade(
    writer: &mut unitape_tape::Writer,
    ts: i64,
    (instrument, venue): (u32, u32),
    names: &[(NameKind, &str)],
) {
    let (mut unit, mut ids) = (Vec::new(), BTreeMap::new());
    for (kind, name) in names {
        let id = ids.entry(*kind as u8).and_modify(|id| *id += 1).or_insert(1);
        EventBuilder::define(&mut unit, *kind, *id, name).unwrap();
    }
    let mut event = EventBuilder::begin(&mut unit, EventKind::Trade, UnixNanos(ts));
    event.set_field(EventField::Instr, EventValue::Sym(NameKind::Instrument, instrument)).unwrap();
    event.set_field(EventField::Venue, EventValue::Sym(NameKind::Venue, venue)).unwrap();
    event.set_field(EventField::Px, EventValue::Price(Price(1_000_000_000 + ts % 100 * 10_000))).unwrap();
    event.finish(flags::LAST).unwrap();
    writer.append(&unit).unwrap();
}

/// The rows of each block, by day, schema and symbol.
fn blocks(store: &Store) -> BTreeMap<(Day, TickSchema, Option<String>), Vec<u32>> {
    let mut all: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    let problems = store.for_each_block(&mut |block| {
        let symbol = block.symbol.map(str::to_owned);
        all.entry((block.day, block.schema, symbol)).or_default().push(block.rows);
    });
    assert!(problems.is_empty(), "{problems:?}");
    all
}

fn assert_intact(store: &Path) {
    let report = verify(store, VerifyKey::Master(&key()), &VerifyOptions::default()).unwrap();
    assert_eq!(report.problems, 0, "{:?}", report.findings);
}

/// 200,000 rows, every fifth one up to a day late, within a budget that holds a tenth of them: runs are merged, and merged
/// runs once more. Fails if a row is lost, doubled or out of order, or if a block is cut before it is full.
#[test]
fn late_rows_are_sorted_within_a_budget() {
    const ROWS: u64 = 200_000;
    let dir = tempfile::tempdir().unwrap();
    let (tape, path) = (dir.path().join("tape"), dir.path().join("store"));
    let (mut tape_writer, mut rng) = (writer(&tape, 9), Rng::new(7));
    let instruments = ["A", "B", "C"].map(|name| (NameKind::Instrument, name));
    let names = [&instruments[..], &[(NameKind::Venue, "V")]].concat();
    let mut times: BTreeMap<Day, Vec<(i64, u64)>> = BTreeMap::new();
    for ordinal in 0..ROWS {
        let late_by = if rng.one_in(5) { rng.below(DAY as u64) as i64 } else { 0 };
        // Several rows share each nanosecond.
        let ts = NOON + ordinal as i64 / 7 * 1_000 - late_by;
        let instrument = 1 + rng.below(30).min(2) as u32;
        write_trade(&mut tape_writer, ts, (instrument, 1), if ordinal == 0 { &names } else { &[] });
        times.entry(Day::from_time(UnixNanos(ts))).or_default().push((ts, ordinal));
    }
    tape_writer.close().unwrap();
    let options = SealOptions { memory_bytes: 2 << 20, ..SealOptions::default() };
    assert_eq!(seal(&tape, &path, &options).unwrap().rows, ROWS);
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), times.len() + 4, "runs are left behind");
    assert_intact(&path);
    let store = open(&path).unwrap();
    for (place, rows) in blocks(&store) {
        let (last, full) = rows.split_last().unwrap();
        assert!(full.iter().all(|rows| *rows == 65_536) && *last > 0, "{place:?}: {rows:?}");
    }
    // By time, ties in the order of the tape.
    times.values_mut().for_each(|of_day| of_day.sort_unstable());
    let filter = ScanFilter::default();
    let mut scan = store.rows(TickSchema::Trades, &filter).unwrap().with_window_bytes(1 << 20);
    for (ts, ordinal) in times.values().flatten() {
        let row = scan.next().expect("as many rows as were written");
        assert_eq!(row.event.ts_event().0, *ts, "row {ordinal} of the tape");
    }
    assert!(scan.next().is_none() && scan.problem_count() == 0);
    // In the order of the tape.
    let mut scan = store.scan(&filter).unwrap().with_window_bytes(1 << 20);
    let mut reader = Reader::open(&tape, StartPosition::Oldest).unwrap();
    while let Some(frame) = reader.next().unwrap() {
        let event = Event::new(frame.bytes).unwrap();
        if !event.kind().is_meta() {
            let stored = scan.next().expect("every event of the tape");
            assert_eq!((stored.position, stored.event().ts_event()), (frame.position, event.ts_event()));
        }
    }
    assert!(scan.next().is_none() && scan.problem_count() == 0);
}

/// Fails if the days of a store mix two rules, or if an event is sought in another day than it is sealed in.
#[test]
fn days_follow_the_calendar_of_the_first_seal() {
    // From 17:00 in Chicago on, XCME trades for the next date; XNAS rolls at midnight UTC.
    let chicago = "what,key,date,time,zone,value\nvenue,XCME,,17:00,America/Chicago,\n";
    let dir = tempfile::tempdir().unwrap();
    let (tape, path) = (dir.path().join("tape"), dir.path().join("store"));
    let seal_with = |calendar| seal(&tape, &path, &SealOptions { calendar, ..SealOptions::default() });
    let day = |text: &str| text.parse::<Day>().unwrap();
    // 2024-03-11 21:00 and 23:00 UTC are 16:00 and 18:00 in Chicago.
    let (before, after) = (NOON + DAY / 24 * 13 / 2, NOON + DAY / 24 * 17 / 2);
    let mut tape_writer = writer(&tape, 9);
    let mut names = &[(NameKind::Instrument, "A"), (NameKind::Venue, "XCME"), (NameKind::Venue, "XNAS")][..];
    for (ts, venue) in [(before, 1), (before, 2), (after, 1), (after, 2)] {
        write_trade(&mut tape_writer, ts, (1, venue), std::mem::take(&mut names));
    }
    tape_writer.close().unwrap();
    let sealed = seal_with(Some(chicago)).unwrap();
    assert_eq!(sealed.days, BTreeMap::from([(day("2024-03-11"), 3), (day("2024-03-12"), 1)]));
    assert_intact(&path);
    let rows = |date: &str| {
        let filter = ScanFilter { date: Some(day(date)), ..ScanFilter::default() };
        let store = open(&path).unwrap();
        let mut scan = store.scan(&filter).unwrap();
        std::iter::from_fn(|| scan.next().map(|row| row.event().ts_event().0)).collect::<Vec<_>>()
    };
    assert_eq!((rows("2024-03-11"), rows("2024-03-12")), (vec![before, before, after], vec![after]));
    // Another calendar is refused, and leaves the store as it was; none, and the same one, go on.
    let mut tape_writer = writer(&tape, 9);
    write_trade(&mut tape_writer, after + 1, (1, 1), &[]);
    tape_writer.close().unwrap();
    let other = chicago.replace("17:00", "16:00");
    assert!(matches!(seal_with(Some(&other)), Err(Error::OtherCalendar { has_calendar: true, .. })));
    assert_eq!(seal_with(None).unwrap().days, BTreeMap::from([(day("2024-03-12"), 1)]));
    assert_eq!(seal_with(Some(chicago)).unwrap().rows, 0);
    assert_intact(&path);
    // A store of UTC dates stays one.
    let utc = dir.path().join("utc");
    seal(&tape, &utc, &SealOptions::default()).unwrap();
    let options = SealOptions { calendar: Some(chicago), ..SealOptions::default() };
    assert!(matches!(seal(&tape, &utc, &options), Err(Error::OtherCalendar { has_calendar: false, .. })));
}
