//! Generations: earlier states stay readable, a compaction changes no answer, and its readers keep their files.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Maker, NOON, Seen, assert_same, key, open, seal, seen_in_store, tape, writer};
use proptest::prelude::*;
use unitape_model::{ClassSet, FieldClass, NameKind, UnixNanos};
use unitape_store::{
    AsOf, CompactOptions, CompactReport, Day, Error, FindingKind, ScanFilter, SealOptions, SealReport, Store,
    TickSchema, VerifyKey, VerifyOptions, compact, verify,
};

/// Everything that a state of a store answers: events in tape order, and the rows of some schemas.
#[derive(Debug)]
struct Answers {
    events: Vec<Seen>,
    rows: Vec<String>,
}

impl Answers {
    fn of(store: &Store, filter: &ScanFilter) -> Self {
        let (events, problems) = seen_in_store(store, filter);
        assert_eq!(problems, 0);
        let classes = FieldClass::ALL.into_iter().fold(ClassSet::MARKET, ClassSet::with);
        let mut rows = Vec::new();
        for schema in [TickSchema::Trades, TickSchema::Bbo, TickSchema::Mbo] {
            // Windows that cut through blocks.
            let scan = store.rows(schema, filter).unwrap().with_classes(classes);
            let mut scan = scan.with_window_bytes(1 << 12);
            while let Some(row) = scan.next() {
                let values: Vec<String> = schema
                    .row_schema()
                    .all_columns()
                    .iter()
                    .map(|column| format!("{:?}", row.value(column)))
                    .collect();
                rows.push(values.join(","));
            }
            assert_eq!(scan.problem_count(), 0);
        }
        Self { events, rows }
    }

    #[track_caller]
    fn assert_same(&self, other: &Self) {
        assert_same(&self.events, &other.events);
        assert!(self.rows == other.rows, "rows differ");
    }
}

fn compacted(store: &Path) -> CompactReport {
    let options = CompactOptions { memory_bytes: 1 << 14, ..CompactOptions::default() };
    compact(store, &key(), &options).unwrap()
}

fn as_of(state: AsOf) -> ScanFilter {
    ScanFilter { as_of: Some(state), ..ScanFilter::default() }
}

/// The blocks of each day, schema and symbol.
fn block_counts(store: &Store) -> BTreeMap<(Day, TickSchema, Option<String>), u32> {
    let mut counts = BTreeMap::new();
    let problems = store.for_each_block(&mut |block| {
        *counts.entry((block.day, block.schema, block.symbol.map(str::to_owned))).or_default() += 1;
    });
    assert!(problems.is_empty(), "{problems:?}");
    counts
}

#[track_caller]
fn assert_intact(store: &Path) {
    let report = verify(store, VerifyKey::Master(&key()), &VerifyOptions::default()).unwrap();
    assert_eq!(report.problems, 0, "{:?}", report.findings);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    /// Two tapes that grow in turn, sealed whole or by day, and compacted now and then. Fails if an earlier state changes, if
    /// a block's statistics let a later row through, or if a compaction loses, doubles or moves a row.
    #[test]
    fn earlier_states_stay_what_they_were(
        seed in any::<u64>(),
        steps in proptest::collection::vec((1usize..60, 0u8..2, 0u8..5, 0u8..4), 2..9),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let tapes = [dir.path().join("first"), dir.path().join("second")];
        let mut makers = [Maker::new(seed, 3), Maker::new(seed ^ 99, 3)];
        let mut states: Vec<(u64, i64, Answers)> = Vec::new();
        for (step, (n, tape, sealed_day, then)) in steps.into_iter().enumerate() {
            let tape = usize::from(tape);
            let mut writer = writer(&tapes[tape], 9 + tape as u128);
            makers[tape].write(&mut writer, n);
            writer.close().unwrap();
            let date = (sealed_day < 3)
                .then(|| Day(Day::from_time(UnixNanos(NOON)).0 + i32::from(sealed_day)));
            // The clock goes back once; the time of the commit does not.
            let committed = if step == 3 { 5 } else { 1_000 * step as i64 };
            let options = SealOptions {
                date,
                memory_bytes: 1 << 14,
                ..SealOptions::default()
            };
            let sealed = unitape_store::seal(&tapes[tape], &store, &key(), UnixNanos(committed), &options).unwrap();
            prop_assert_eq!(sealed.compaction_problem, None);
            let opened = open(&store).unwrap();
            if let Some(generation) = sealed.generation {
                let summary = *opened.info().generations.last().unwrap();
                prop_assert_eq!((summary.generation, summary.rows), (generation, sealed.rows));
                prop_assert!(states.last().is_none_or(|last| last.1 < summary.committed.0));
                // A clock that is behind is told, and gives no earlier time.
                let ahead = states.last().map(|last| UnixNanos(last.1)).filter(|last| last.0 >= committed);
                prop_assert_eq!(sealed.last_commit_ahead, ahead);
                prop_assert!(ahead.is_some() || summary.committed.0 == committed);
                let newest = Answers::of(&opened, &ScanFilter::default());
                states.push((generation, summary.committed.0, newest));
            }
            if then == 0 {
                compacted(&store);
                for (place, blocks) in block_counts(&open(&store).unwrap()) {
                    prop_assert_eq!(blocks, 1, "{:?}", place);
                }
            }
            let reopened = open(&store).unwrap();
            for opened in [&opened, &reopened] {
                for (generation, committed, answers) in &states {
                    for state in [AsOf::Generation(*generation), AsOf::Time(UnixNanos(*committed))] {
                        Answers::of(opened, &as_of(state)).assert_same(answers);
                    }
                }
                let nothing = Answers::of(opened, &as_of(AsOf::Generation(0)));
                prop_assert!(nothing.events.is_empty() && nothing.rows.is_empty());
            }
            drop(opened);
            assert_intact(&store);
        }
        let newest = states.last().map_or(0, |state| state.0);
        let future = open(&store).unwrap().scan(&as_of(AsOf::Generation(newest + 1))).map(drop);
        let is_future = matches!(future, Err(Error::FutureGeneration { newest: n, .. }) if n == newest);
        prop_assert!(is_future, "{:?}", future);
    }
}

/// A tape that grows, and the store that it is sealed into.
struct GrownStore {
    dir: tempfile::TempDir,
    maker: Maker,
}

impl GrownStore {
    fn with_seals(seals: usize) -> Self {
        let mut this = Self { dir: tempfile::tempdir().unwrap(), maker: Maker::new(7, 2) };
        (0..seals).for_each(|_| _ = this.grow(300));
        this
    }

    fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    /// Writes `n` more events, and seals them.
    fn grow(&mut self, n: usize) -> SealReport {
        let tape = self.dir.path().join("tape");
        let mut writer = writer(&tape, 9);
        self.maker.write(&mut writer, n);
        writer.close().unwrap();
        seal(&tape, &self.store(), &SealOptions::default()).unwrap()
    }
}

/// Sets a flag when it is dropped, also by a panic.
struct EndFlag<'a>(&'a AtomicBool);

impl Drop for EndFlag<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Fails if a seal leaves a day with more parts than four, which would make each answer slower than the one before.
#[test]
fn a_seal_compacts_a_day_of_many_parts() {
    let mut grown = GrownStore::with_seals(4);
    let store = grown.store();
    assert_eq!(block_counts(&open(&store).unwrap()).values().max(), Some(&4));
    let sealed = grown.grow(300);
    assert!(sealed.compacted.len() >= 2, "{:?}", sealed.compacted);
    let opened = open(&store).unwrap();
    let counts = block_counts(&opened);
    for day in &sealed.compacted {
        assert!(counts.iter().filter(|(place, _)| place.0 == *day).all(|(_, blocks)| *blocks == 1));
        assert_eq!(opened.info().days[day].generations, [1, 2, 3, 4, 5]);
    }
    assert_eq!(compacted(&store).days.keys().filter(|day| sealed.compacted.contains(day)).count(), 0);
}

/// Fails if a compaction takes the files away from a reader that is at work, or if they stay after it.
#[test]
fn a_reader_keeps_its_files() {
    let grown = GrownStore::with_seals(3);
    let store = grown.store();
    let before = Answers::of(&open(&store).unwrap(), &ScanFilter::default());
    let files = || -> Vec<String> {
        let mut files = Vec::new();
        let mut folders = vec![store.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "blocks") {
                    files.push(path.strip_prefix(&store).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        files.sort();
        files
    };
    let old_files = files();
    let reader = open(&store).unwrap();
    let report = compacted(&store);
    assert_eq!(report.kept_files, report.files.0);
    assert!(old_files.iter().all(|file| files().contains(file)), "a reader has lost its files");
    Answers::of(&reader, &ScanFilter::default()).assert_same(&before);
    Answers::of(&open(&store).unwrap(), &ScanFilter::default()).assert_same(&before);
    // They are no problem, and a verification says what they are.
    let findings = verify(&store, VerifyKey::Master(&key()), &VerifyOptions::default()).unwrap();
    assert_eq!(findings.problems, 0, "{:?}", findings.findings);
    let left_over = findings.findings.iter().filter(|finding| finding.kind == FindingKind::LeftOver);
    assert_eq!(left_over.count() as u64, report.kept_files);
    drop(reader);
    // Whoever changes the store next removes them.
    compacted(&store);
    assert!(!files().iter().any(|file| old_files.contains(file)), "{:?}", files());
    Answers::of(&open(&store).unwrap(), &ScanFilter::default()).assert_same(&before);
    assert_intact(&store);
}

/// Readers that begin at any time while seals and compactions follow each other. Fails if one meets a problem, or sees half
/// of a generation.
#[test]
fn readers_beside_seals_and_compactions_see_whole_generations() {
    let mut grown = GrownStore::with_seals(1);
    let store = grown.store();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = 0;
                    while !is_over.load(Ordering::Relaxed) || seen == 0 {
                        let opened = open(&store).unwrap();
                        let generations = opened.info().generations;
                        let (events, problems) = seen_in_store(&opened, &ScanFilter::default());
                        assert_eq!(problems, 0);
                        assert_eq!(events.len() as u64, generations.iter().map(|g| g.rows).sum::<u64>());
                        let first = seen_in_store(&opened, &as_of(AsOf::Generation(1))).0;
                        assert_eq!(first.len() as u64, generations[0].rows);
                        seen += 1;
                    }
                    seen
                })
            })
            .collect();
        let end = EndFlag(&is_over);
        for round in 0..12 {
            grown.grow(100);
            if round % 3 == 0 {
                compacted(&store);
            }
        }
        drop(end);
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() > 0));
    });
    assert_intact(&store);
}

/// Fails if a compaction of a damaged day throws the intact rows away with the damaged ones.
#[test]
fn a_damaged_day_is_not_compacted() {
    let grown = GrownStore::with_seals(2);
    let store = grown.store();
    let mut damaged = None;
    let opened = open(&store).unwrap();
    opened.for_each_block(&mut |block| {
        if block.schema == TickSchema::Trades && damaged.is_none() {
            damaged = Some((store.join(block.file), block.offset + u64::from(block.bytes) - 9));
        }
    });
    drop(opened);
    let (path, offset) = damaged.unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[offset as usize] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let manifest = std::fs::read(store.join("manifest")).unwrap();
    let result = compact(&store, &key(), &CompactOptions::default());
    assert!(matches!(result, Err(Error::Damage { block: Some(_), .. })), "{result:?}");
    assert_eq!(std::fs::read(store.join("manifest")).unwrap(), manifest);
    assert_eq!(seen_in_store(&open(&store).unwrap(), &ScanFilter::default()).1, 1, "one problem as before");
}

/// Fails if a name shows in a state in which the store did not have it.
#[test]
fn a_later_name_is_unknown_in_an_earlier_state() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    for seed in [3, 4] {
        let name = format!("tape{seed}");
        seal(&tape(dir.path(), &name, seed, 1, 200), &store, &SealOptions::default()).unwrap();
    }
    let opened = open(&store).unwrap();
    let count = |state| opened.name_count(NameKind::Instrument, state).unwrap();
    let (first, now) = (count(Some(AsOf::Generation(1))), count(None));
    let names = opened.names();
    let filter = |token: u32, state| ScanFilter {
        symbols: vec![names.name(NameKind::Instrument, token).unwrap().to_owned()],
        as_of: state,
        ..ScanFilter::default()
    };
    assert!(opened.scan(&filter(first, Some(AsOf::Generation(1)))).is_ok());
    if first < now {
        assert!(opened.scan(&filter(now, None)).is_ok());
        let early = opened.scan(&filter(now, Some(AsOf::Generation(1)))).map(drop);
        assert!(matches!(early, Err(Error::UnknownName { .. })), "{early:?}");
    }
}
