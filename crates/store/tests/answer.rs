//! An answer holds what its reader may see, all of it, once; and nothing else. Its keys open nothing else either.

mod common;

use common::{Maker, Rng, Seen, assert_same, open, seal, seen_in_scan, seen_in_store, source_text, writer};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use unitape_model::{
    ErrorCause, Event, EventBuilder, EventField, EventKind, EventValue, NameKind, UnixNanos, flags,
};
use unitape_store::{
    Answer, AnswerIndex, AnswerReader, BlockFetch, Day, Error, FieldClass, LeafAccess, ReadDepth, ScanFilter,
    SealOptions, SealedBlock, Store, TickSchema,
};

/// Seals `tapes` tapes in turns, each in two parts, with messages that have no time. A part has about `n` events of `days` days.
fn sealed_store(dir: &Path, seed: u64, tapes: u64, days: u64, n: usize) -> Store {
    let (path, mut rng) = (dir.join(format!("store{seed}")), Rng::new(seed));
    let mut makers: Vec<Maker> = (0..tapes).map(|tape| Maker::new(seed ^ tape << 32, days)).collect();
    for _ in 0..2 {
        for (tape, maker) in makers.iter_mut().enumerate() {
            let tape_dir = dir.join(format!("tape{seed}-{tape}"));
            let mut writer = writer(&tape_dir, 1 + tape as u128);
            maker.write(&mut writer, n / 2 + rng.below(n as u64) as usize);
            let mut unit = Vec::new();
            let mut event = EventBuilder::begin(&mut unit, EventKind::Quarantine, UnixNanos(0));
            event.set_field(EventField::Reason, EventValue::Text("early")).unwrap();
            event.finish(flags::LAST).unwrap();
            writer.append(&unit).unwrap();
            writer.close().unwrap();
            let options = SealOptions { memory_bytes: 1 << 14, block_rows: 16, ..SealOptions::default() };
            seal(&tape_dir, &path, &options).unwrap();
        }
    }
    open(&path).unwrap()
}

/// Somebody's rights, out of a seed: some days, schemas, symbols and classes, and not every leaf of them.
#[derive(Clone, Copy, Debug)]
struct Grants {
    seed: u64,
}

impl Grants {
    const ALL: Self = Self { seed: 0 };

    fn covers(self, access: &LeafAccess<'_>) -> bool {
        if self.seed == 0 {
            return true;
        }
        // Each part of a leaf is refused to one in five, and a leaf as a whole to one in six.
        let draw = |part: &str, n| Rng::new(self.seed ^ crc32c::crc32c(part.as_bytes()) as u64).one_in(n);
        let symbol = access.symbol.unwrap_or("-");
        let parts = [
            access.day.to_string(),
            access.schema.name().to_owned(),
            format!("symbol {symbol}"),
            access.class.name().to_owned(),
        ];
        !parts[..3].iter().any(|part| draw(part, 5)) && !draw(&parts[3], 9) && !draw(&parts.concat(), 6)
    }

    /// Whether an event can be read to this depth.
    fn cover(self, event: &Seen, depth: ReadDepth) -> bool {
        let (day, schema, symbol) = (event.day(), event.schema(), event.symbol());
        depth.classes().iter().all(|class| self.covers(&LeafAccess { day, schema, symbol, class: *class }))
    }

    fn answer(self, store: &Store, filter: &ScanFilter, depth: ReadDepth) -> Given {
        let answer = store.answer(filter, depth, 100_000, &|access| self.covers(access)).unwrap();
        let sealed = Arc::new(answer.blocks.iter().map(|block| sealed_bytes(&answer, block)).collect());
        Given { answer, sealed }
    }
}

/// Breaks a block on its way, or the way.
type Break = fn(&mut Vec<u8>) -> io::Result<()>;
/// Changes the block of an index on its way.
type Change = dyn FnMut(u32, &mut Vec<u8>) -> io::Result<()> + Send;

/// An answer, and the bytes of its blocks.
struct Given {
    answer: Answer,
    sealed: Arc<Vec<Vec<u8>>>,
}

/// Gives blocks, and changes them on their way.
struct ChangedBlocks {
    sealed: Arc<Vec<Vec<u8>>>,
    change: Box<Change>,
}

impl fmt::Debug for ChangedBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks", self.sealed.len())
    }
}

impl BlockFetch for ChangedBlocks {
    fn fetch_block(&mut self, index: u32, out: &mut Vec<u8>) -> io::Result<()> {
        let mut bytes = self.sealed[index as usize].clone();
        (self.change)(index, &mut bytes)?;
        out.extend_from_slice(&bytes);
        Ok(())
    }
}

fn sealed_bytes(answer: &Answer, block: &SealedBlock) -> Vec<u8> {
    let mut bytes = vec![0; block.bytes as usize];
    File::open(&answer.files[block.file as usize]).unwrap().read_exact_at(&mut bytes, block.offset).unwrap();
    bytes
}

/// The index of an answer that went over a wire.
fn sent_index(answer: &Answer) -> AnswerIndex {
    serde_json::from_str(&serde_json::to_string(&answer.private_index).unwrap()).unwrap()
}

fn reader_of(given: &Given) -> AnswerReader {
    changed_reader(given, sent_index(&given.answer), |_, _| Ok(()))
}

fn changed_reader(
    given: &Given,
    index: AnswerIndex,
    change: impl FnMut(u32, &mut Vec<u8>) -> io::Result<()> + Send + 'static,
) -> AnswerReader {
    let mut reader = AnswerReader::new(index, "remote").unwrap();
    reader.set_fetch(Box::new(ChangedBlocks { sealed: given.sealed.clone(), change: Box::new(change) }));
    reader
}

/// What a scan of an answer gave.
#[derive(Debug)]
struct Outcome<T> {
    items: Vec<T>,
    problems: Vec<String>,
    is_failed: bool,
}

fn events_of(reader: &AnswerReader, filter: &ScanFilter) -> Outcome<Seen> {
    let sources: Vec<Vec<u8>> = reader.sources().map(|event| event.bytes().to_vec()).collect();
    let mut scan = reader.scan(filter).unwrap();
    let items = seen_in_scan(&mut scan, reader.names(), &sources);
    assert!(scan.next().is_none(), "the end is the end");
    let problems = scan.problems().iter().map(ToString::to_string).collect();
    Outcome { items, problems, is_failed: scan.take_failure().is_some() }
}

/// Rows in small windows.
fn rows_of(reader: &AnswerReader, schema: TickSchema, filter: &ScanFilter) -> Outcome<Seen> {
    let mut scan = reader.rows(schema, filter).unwrap().with_window_bytes(4096);
    let mut items = Vec::new();
    while let Some(row) = scan.next() {
        items.push(seen_row(row.event, row.names));
    }
    assert!(scan.next().is_none(), "the end is the end");
    let problems = scan.problems().iter().map(ToString::to_string).collect();
    Outcome { items, problems, is_failed: scan.take_failure().is_some() }
}

fn seen_row(event: Event<'_>, names: &unitape_model::Dictionary) -> Seen {
    Seen::of(event.bytes(), 0, unitape_model::Position(0), names, &[])
}

fn stored_rows(store: &Store, schema: TickSchema, filter: &ScanFilter) -> Vec<Seen> {
    let (mut scan, mut all) = (store.rows(schema, filter).unwrap(), Vec::new());
    while let Some(row) = scan.next() {
        all.push(seen_row(row.event, row.names));
    }
    all
}

/// The filter without the names that the answer does not have; `None` if nothing is left of it.
fn known_part(reader: &AnswerReader, filter: &ScanFilter) -> Option<ScanFilter> {
    let has = |kind, name: &String| reader.names().get(kind, name.as_bytes()).is_some();
    let mut known = filter.clone();
    known.symbols.retain(|symbol| has(NameKind::Instrument, symbol));
    let is_left = known.symbols.is_empty() == filter.symbols.is_empty();
    let is_venue = filter.venue.as_ref().is_none_or(|venue| has(NameKind::Venue, venue));
    (is_left && is_venue).then_some(known)
}

fn random_filter(rng: &mut Rng, all: &[Seen]) -> ScanFilter {
    let event = |rng: &mut Rng| all[rng.below(all.len() as u64) as usize].clone();
    let mut filter = ScanFilter::default();
    if rng.one_in(2) {
        filter.symbols = (0..1 + rng.below(3)).map(|_| format!("instrument{}", rng.below(14))).collect();
    }
    filter.from = rng.one_in(3).then(|| UnixNanos(event(rng).ts));
    filter.to = rng.one_in(3).then(|| UnixNanos(event(rng).ts));
    filter.date = rng.one_in(3).then(|| event(rng).day());
    if rng.one_in(2) {
        filter.schemas = (0..1 + rng.below(3)).map(|_| event(rng).schema()).collect();
    }
    filter.venue = rng.one_in(4).then(|| format!("venue{}", rng.below(6)));
    filter
}

/// Fails if the index has a name, file, block or key of something that the reader may not see. `given` are the events of the answer.
fn assert_tight(
    store: &Store,
    index: &Value,
    depth: ReadDepth,
    grants: Grants,
    given: &[Seen],
    all: &[Seen],
) {
    let word = |value: &Value, key: &str| value[key].as_str().unwrap().to_owned();
    let number = |value: &Value, key: &str| value[key].as_u64().unwrap();
    let list = |key: &str| index[key].as_array().unwrap().clone();
    let leaf_of = |value: &Value| {
        let day: Day = serde_json::from_value(value["day"].clone()).unwrap();
        (day, TickSchema::from_name(&word(value, "schema")).unwrap())
    };
    let may_read = |(day, schema), symbol: Option<&str>, class| {
        grants.covers(&LeafAccess { day, schema, symbol, class })
    };
    let symbol = |token: u32| store.names().name(NameKind::Instrument, token);
    let (mut files, mut symbols) = (BTreeSet::new(), BTreeSet::new());
    for block in list("blocks") {
        let file = &list("files")[number(&block, "file") as usize];
        let head = word(&block, "head");
        // Bytes 8 to 11 of a head are the token of its instrument.
        let token = u32::from_str_radix(&head[16..24], 16).unwrap().swap_bytes();
        let is_readable = depth.classes().iter().all(|class| may_read(leaf_of(file), symbol(token), *class));
        assert!(is_readable, "{file} {:?}", symbol(token));
        files.insert(number(&block, "file"));
        symbols.extend(symbol(token));
    }
    assert_eq!(files.len(), list("files").len(), "each file has a block of the answer");
    for leaf in list("leaves") {
        let class = FieldClass::ALL[number(&leaf, "class") as usize - 1];
        assert!(depth.classes().contains(&class), "{leaf}");
        assert!(may_read(leaf_of(&leaf), symbol(number(&leaf, "instrument") as u32), class), "{leaf}");
    }
    let given_names: BTreeSet<&String> =
        given.iter().flat_map(|event| event.names.iter().flat_map(|(_, names)| names)).collect();
    // The leaf of a row opens its day, so the venues of that day may be named.
    let venues: BTreeSet<&str> =
        all.iter().filter(|event| grants.cover(event, depth)).filter_map(Seen::venue).collect();
    for name in list("names") {
        let (kind, name) = (number(&name, "kind"), word(&name, "name"));
        let is_given = match depth {
            ReadDepth::Events => given_names.contains(&name),
            ReadDepth::Rows => {
                given_names.contains(&name) || kind == NameKind::Venue as u64 && venues.contains(&*name)
            }
        };
        assert!(is_given || kind == NameKind::Instrument as u64 && symbols.contains(&*name), "{name}");
    }
    let sources: BTreeSet<&String> = given.iter().filter_map(|event| event.source.as_ref()).collect();
    for frame in list("sources") {
        let hex = frame.as_str().unwrap();
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let frame: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        let text = source_text(&Event::new(&frame).unwrap());
        assert!(sources.contains(&text), "{text}");
    }
    assert!(!index.to_string().contains("c0ffee00"), "the key of the store");
}

/// Gives other names, which nobody has, to what of a filter the reader may not see.
fn with_strange_names(filter: &ScanFilter, readable: &[&Seen]) -> ScanFilter {
    let mut strange = filter.clone();
    let is_listed =
        |event: &Seen, symbol: &String| event.names.iter().any(|(_, names)| names.contains(symbol));
    for (n, symbol) in strange.symbols.iter_mut().enumerate() {
        if !readable.iter().any(|event| is_listed(event, symbol)) {
            *symbol = format!("nobody{n}");
        }
    }
    let is_hidden = |venue: &String| !readable.iter().any(|event| event.venue() == Some(venue));
    strange.venue = strange.venue.map(|venue| if is_hidden(&venue) { "nowhere".to_owned() } else { venue });
    strange
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// An answer that is short, doubled or out of order is a lie; one that has more tells what may not be told.
    #[test]
    fn an_answer_is_what_the_slow_twin_gives(seed in 1u64.., tapes in 1u64..4, days in 1u64..4) {
        let dir = tempfile::tempdir().unwrap();
        let store = sealed_store(dir.path(), seed, tapes, days, 120);
        let (all, _) = seen_in_store(&store, &ScanFilter::default());
        let mut rng = Rng::new(seed ^ 5);
        for round in 0..9 {
            let filter = if round == 0 { ScanFilter::default() } else { random_filter(&mut rng, &all) };
            let grants = Grants { seed: if rng.one_in(4) { 0 } else { rng.next() | 1 } };
            let (has_window, undated) = (filter.from.is_some() || filter.to.is_some(), "undated".parse::<Day>().unwrap());

            let answer = grants.answer(&store, &filter, ReadDepth::Events);
            let want: Vec<Seen> = all
                .iter()
                .filter(|event| grants.cover(event, ReadDepth::Events) && event.matches(&filter))
                .cloned()
                .collect();
            let reader = reader_of(&answer);
            let outcome = known_part(&reader, &filter).map(|known| events_of(&reader, &known));
            let got = outcome.map_or_else(Vec::new, |outcome| {
                assert!(outcome.problems.is_empty() && !outcome.is_failed, "{:?}", outcome.problems);
                outcome.items
            });
            assert_same(&got, &want);
            let index = serde_json::to_value(&answer.answer.private_index).unwrap();
            assert_tight(&store, &index, ReadDepth::Events, grants, &want, &all);
            let readable: Vec<&Seen> = all.iter().filter(|e| grants.cover(e, ReadDepth::Events)).collect();
            let strange = grants.answer(&store, &with_strange_names(&filter, &readable), ReadDepth::Events);
            prop_assert_eq!(&serde_json::to_value(&strange.answer.private_index).unwrap(), &index, "what is hidden is not there");

            let answer = grants.answer(&store, &filter, ReadDepth::Rows);
            let (reader, mut given) = (reader_of(&answer), Vec::new());
            for schema in TickSchema::ALL {
                if !(filter.schemas.is_empty() || filter.schemas.contains(&schema)) {
                    continue;
                }
                let whole = ScanFilter { schemas: vec![schema], ..ScanFilter::default() };
                let mut want = stored_rows(&store, schema, &whole);
                // Rows without a time are in no window of time.
                let is_in_window = |row: &Seen| !has_window || row.day() != undated;
                want.retain(|row| {
                    grants.cover(row, ReadDepth::Rows) && row.matches(&filter) && is_in_window(row)
                });
                let outcome = known_part(&reader, &filter).map(|known| rows_of(&reader, schema, &known));
                let got = outcome.map_or_else(Vec::new, |outcome| {
                    assert!(outcome.problems.is_empty() && !outcome.is_failed, "{:?}", outcome.problems);
                    outcome.items
                });
                assert_same(&got, &want);
                given.append(&mut want);
            }
            let index = serde_json::to_value(&answer.answer.private_index).unwrap();
            assert_tight(&store, &index, ReadDepth::Rows, grants, &given, &all);
            let readable: Vec<&Seen> = all.iter().filter(|e| grants.cover(e, ReadDepth::Rows)).collect();
            let strange = grants.answer(&store, &with_strange_names(&filter, &readable), ReadDepth::Rows);
            prop_assert_eq!(&serde_json::to_value(&strange.answer.private_index).unwrap(), &index, "what is hidden is not there");
            prop_assert!(reader.scan(&ScanFilter::default()).is_err(), "rows have no events");
        }
    }
}

/// A key that opens the neighbour's leaf, or another class of the same one, gives out what was not paid for.
#[test]
fn a_leaf_key_opens_no_other_leaf() {
    let dir = tempfile::tempdir().unwrap();
    let store = sealed_store(dir.path(), 71, 1, 2, 25);
    let answer = Grants::ALL.answer(&store, &ScanFilter::default(), ReadDepth::Events);
    let index = serde_json::to_value(&answer.answer.private_index).unwrap();
    let leaves = index["leaves"].as_array().unwrap().clone();
    let keys: BTreeSet<&str> = leaves.iter().map(|leaf| leaf["key"].as_str().unwrap()).collect();
    assert!(keys.len() == leaves.len() && leaves.len() > 60, "{}", leaves.len());
    let read = |index: Value| {
        let reader = changed_reader(&answer, serde_json::from_value(index).unwrap(), |_, _| Ok(()));
        let mut scan = reader.scan(&ScanFilter::default()).unwrap();
        let mut n = 0;
        while scan.next().is_some() {
            n += 1;
        }
        (n, scan.problem_count() as usize)
    };
    assert!(matches!(read(index.clone()), (1.., 0)));
    for class in FieldClass::ALL {
        // The leaves of this class, each with the key of the leaf that is `shift` further, of whatever class; the others are right.
        for shift in 1..leaves.len() {
            let mut index = index.clone();
            let changed = index["leaves"].as_array_mut().unwrap();
            for (n, leaf) in changed.iter_mut().enumerate().filter(|(_, leaf)| leaf["class"] == class as u64)
            {
                leaf["key"] = leaves[(n + shift) % leaves.len()]["key"].clone();
            }
            assert_eq!(read(index), (0, answer.sealed.len()), "{class:?} {shift}");
        }
    }
}

/// Of each block in turn: what came is not what was sealed. It is reported, and it costs that block alone.
#[test]
fn a_block_that_is_not_the_one_that_was_sealed_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let (store, other) = (sealed_store(dir.path(), 72, 2, 2, 40), dir.path().join("other"));
    for tape in 0..2 {
        seal(
            &dir.path().join(format!("tape72-{tape}")),
            &other,
            &SealOptions { memory_bytes: 1 << 14, block_rows: 16, ..SealOptions::default() },
        )
        .unwrap();
    }
    let all = ScanFilter::default();
    let answer = Grants::ALL.answer(&store, &all, ReadDepth::Events);
    let index = serde_json::to_value(&answer.answer.private_index).unwrap();
    let rows = |block: u32| {
        // Bytes 4 to 7 of a head are its rows.
        let head = index["blocks"][block as usize]["head"].as_str().unwrap();
        u32::from_str_radix(&head[8..16], 16).unwrap().swap_bytes() as usize
    };
    let whole = events_of(&reader_of(&answer), &all);
    let of_other = Grants::ALL.answer(&open(&other).unwrap(), &all, ReadDepth::Events);
    let mut rng = Rng::new(8);
    let mut swaps = 0;
    for victim in 0..answer.sealed.len() as u32 {
        let own = &answer.sealed[victim as usize];
        let others = answer.sealed.iter().chain(of_other.sealed.iter());
        let mut strangers: Vec<Vec<u8>> =
            others.filter(|bytes| bytes.len() == own.len() && *bytes != own).cloned().collect();
        let mut flipped = own.clone();
        flipped[rng.below(own.len() as u64) as usize] ^= 1 << rng.below(8);
        swaps += strangers.len();
        strangers.truncate(2);
        strangers.extend([flipped, vec![0; own.len()]]);
        for stranger in strangers {
            let reader = changed_reader(&answer, sent_index(&answer.answer), move |index, bytes| {
                if index == victim {
                    bytes.clone_from(&stranger);
                }
                Ok(())
            });
            let outcome = events_of(&reader, &all);
            assert!(!outcome.is_failed && outcome.problems.len() == 1, "{:?}", outcome.problems);
            assert!(outcome.problems[0].contains("are not as they were sealed"), "{:?}", outcome.problems);
            assert!(outcome.problems[0].starts_with("damage"), "{:?}", outcome.problems);
            assert_eq!(outcome.items.len(), whole.items.len() - rows(victim));
            let mut rest = whole.items.iter();
            assert!(outcome.items.iter().all(|event| rest.any(|known| known == event)));
        }
    }
    assert!(swaps > 20, "{swaps} blocks had another's length");
}

/// Fails if an erased instrument is given to somebody who may read an instrument of the name that stands for it.
#[test]
fn an_erased_instrument_is_given_to_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let store = sealed_store(dir.path(), 75, 1, 1, 80);
    let all = ScanFilter::default();
    let token = store.names().get(NameKind::Instrument, b"instrument1").expect("it has events");
    let (label, is_it) = (format!("erased-{token}"), |name: Option<&str>| name == Some("instrument1"));
    let given = |store: &Store, may_read: &dyn Fn(&LeafAccess<'_>) -> bool| {
        let answer = store.answer(&all, ReadDepth::Rows, 100_000, may_read).unwrap();
        serde_json::to_value(&answer.private_index).unwrap()["blocks"].as_array().unwrap().len()
    };
    let own = given(&store, &|access| is_it(access.symbol));
    let before = given(&store, &|_| true);
    assert!(own > 0 && before > own);
    drop(store);
    let path = dir.path().join("store75");
    unitape_store::erase_name(&path, &common::key(), "instrument1", &unitape_store::SystemRandomness)
        .unwrap();
    let store = open(&path).unwrap();
    assert_eq!(given(&store, &|access| access.symbol == Some(&label)), 0);
    assert_eq!(given(&store, &|_| true), before - own);
}

/// A connection that breaks, and a block that is cut or too long: an end before the end is a failure, never a short answer.
#[test]
fn a_fetch_that_fails_ends_the_scan_with_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let store = sealed_store(dir.path(), 73, 2, 2, 40);
    let all = ScanFilter::default();
    let of_events = Grants::ALL.answer(&store, &all, ReadDepth::Events);
    let of_rows = Grants::ALL.answer(&store, &all, ReadDepth::Rows);
    let events = events_of(&reader_of(&of_events), &all).items;
    let rows = rows_of(&reader_of(&of_rows), TickSchema::Bbo, &all).items;
    let breaks: [Break; 4] = [
        |_| Err(io::ErrorKind::ConnectionReset.into()),
        |bytes| {
            bytes.pop();
            Ok(())
        },
        |bytes| {
            bytes.push(0);
            Ok(())
        },
        |bytes| {
            bytes.clear();
            Ok(())
        },
    ];
    for break_block in breaks {
        let (mut short_events, mut short_rows) = (BTreeSet::new(), BTreeSet::new());
        for victim in 0..of_events.sealed.len() as u32 {
            let change =
                move |index, bytes: &mut Vec<u8>| if index == victim { break_block(bytes) } else { Ok(()) };
            let outcome = events_of(&changed_reader(&of_events, sent_index(&of_events.answer), change), &all);
            assert!(outcome.is_failed && outcome.problems.is_empty(), "block {victim}");
            assert_same(&outcome.items, &events[..outcome.items.len()]);
            short_events.insert(outcome.items.len());
        }
        for victim in 0..of_rows.sealed.len() as u32 {
            let change =
                move |index, bytes: &mut Vec<u8>| if index == victim { break_block(bytes) } else { Ok(()) };
            let outcome = rows_of(
                &changed_reader(&of_rows, sent_index(&of_rows.answer), change),
                TickSchema::Bbo,
                &all,
            );
            assert!(outcome.problems.is_empty());
            let given = outcome.items.len();
            assert_same(&outcome.items, &rows[..given]);
            // A window has all rows of its time: the next row is of another.
            assert_eq!(given == rows.len(), !outcome.is_failed, "block {victim} may be of other rows");
            assert!(
                given == 0 || given == rows.len() || rows[given - 1].ts < rows[given].ts,
                "half a window"
            );
            short_rows.insert(given);
        }
        assert!(short_events.len() > 5 && short_rows.len() > 3, "{short_events:?} {short_rows:?}");
    }
}

/// A file that is gone or cut short: its blocks are not known, so nobody knows whether they were the reader's. An answer that does
/// not say so looks like a day without trades.
#[test]
fn a_file_that_is_gone_is_a_problem_of_all_who_may_read_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = sealed_store(dir.path(), 74, 1, 1, 80);
    let all = ScanFilter::default();
    let whole = Grants::ALL.answer(&store, &all, ReadDepth::Rows);
    let trades = |path: &&PathBuf| path.to_str().unwrap().contains("/trades/");
    let path = whole.answer.files.iter().find(trades).unwrap().clone();
    let good = std::fs::read(&path).unwrap();
    let only = |schema: TickSchema, symbol: Option<&'static str>| {
        move |access: &LeafAccess<'_>| {
            access.schema == schema && symbol.is_none_or(|name| access.symbol == Some(name))
        }
    };
    let damages: [&dyn Fn(); 3] =
        [&|| std::fs::remove_file(&path).unwrap(), &|| std::fs::write(&path, &good[..100]).unwrap(), &|| {
            std::fs::write(&path, &good[..good.len() / 2]).unwrap()
        }];
    for damage in damages {
        damage();
        let problems = |filter: &ScanFilter, may_read: &dyn Fn(&LeafAccess<'_>) -> bool| {
            let answer = store.answer(filter, ReadDepth::Rows, 100_000, may_read).unwrap();
            sent_index(&answer).problems
        };
        let symbol = |name: &str| ScanFilter { symbols: vec![name.to_owned()], ..ScanFilter::default() };
        for n in 0..12 {
            let name: &'static str = format!("instrument{n}").leak();
            let is_there = store.names().get(NameKind::Instrument, name.as_bytes()).is_some();
            let found = problems(&all, &only(TickSchema::Trades, Some(name)));
            assert_eq!(found.is_empty(), !is_there, "{name}: {found:?}");
            assert!(
                found
                    .iter()
                    .all(|text| text.contains("/trades/") && !text.contains(dir.path().to_str().unwrap()))
            );
            assert_eq!(problems(&symbol(name), &only(TickSchema::Trades, Some(name))).is_empty(), !is_there);
            let others = problems(&symbol("instrument0"), &only(TickSchema::Trades, Some("instrument1")));
            assert!(others.is_empty(), "{others:?}");
        }
        assert!(problems(&all, &only(TickSchema::Bbo, None)).is_empty(), "a reader of quotes alone");
        assert!(problems(&all, &|_| false).is_empty());
        std::fs::write(&path, &good).unwrap();
    }
}

/// A system that refuses to open a file says nothing of the file: an answer without it would look whole, or damaged. Who may read
/// nothing of the file does not hear of it.
#[test]
fn a_file_that_the_system_refuses_fails_the_answers_that_need_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = sealed_store(dir.path(), 77, 1, 1, 40);
    let all = ScanFilter::default();
    let whole = Grants::ALL.answer(&store, &all, ReadDepth::Rows).answer;
    let path = whole.files.iter().find(|path| path.to_str().unwrap().contains("/trades/")).unwrap();
    std::fs::remove_file(path).unwrap();
    std::os::unix::fs::symlink(path, path).unwrap();
    for depth in [ReadDepth::Rows, ReadDepth::Events] {
        let error = store.answer(&all, depth, 100_000, &|_| true).unwrap_err();
        assert!(error.is_refusal() && error.cause() == ErrorCause::Outside, "{error}");
        let quotes = |access: &LeafAccess<'_>| access.schema == TickSchema::Bbo;
        let answer = store.answer(&all, depth, 100_000, &quotes).unwrap();
        assert!(!answer.blocks.is_empty() && answer.private_index.problems.is_empty());
    }
}

/// The venues of a damaged block are not known. A reader who asks for one of them must hear of the damage, although the answer has
/// no such name.
#[test]
fn a_damaged_block_is_a_problem_of_who_asks_for_a_venue() {
    let dir = tempfile::tempdir().unwrap();
    let store = sealed_store(dir.path(), 76, 1, 1, 40);
    let schemas = vec![TickSchema::Bbo];
    let bbo = ScanFilter { schemas: schemas.clone(), ..ScanFilter::default() };
    let whole = Grants::ALL.answer(&store, &bbo, ReadDepth::Rows).answer;
    assert!(whole.blocks.len() > 5);
    for block in &whole.blocks {
        let path = &whole.files[block.file as usize];
        let good = std::fs::read(path).unwrap();
        let mut bad = good.clone();
        bad[block.offset as usize + 20] ^= 1;
        std::fs::write(path, bad).unwrap();
        for venue in [None, Some("venue1".to_owned()), Some("nowhere".to_owned())] {
            let filter = ScanFilter { schemas: schemas.clone(), venue, ..ScanFilter::default() };
            let answer = store.answer(&filter, ReadDepth::Rows, 100_000, &|_| true).unwrap();
            let sealed = Arc::new(answer.blocks.iter().map(|block| sealed_bytes(&answer, block)).collect());
            let reader = reader_of(&Given { answer, sealed });
            let read = known_part(&reader, &filter).map(|known| rows_of(&reader, TickSchema::Bbo, &known));
            let found = read.map_or(0, |outcome| outcome.problems.len());
            assert_eq!(reader.problems().len() + found, 1, "{filter:?} {:?}", reader.problems());
        }
        std::fs::write(path, good).unwrap();
    }
}

/// Replaces, removes and doubles each value of the index in turn; calls `visit` with what came of it.
fn change_each(value: &Value, visit: &mut dyn FnMut(Value)) {
    let strange = ["", "zz", "undated", "\u{e4}\u{e4}", "00", "trades", "events", "9999-12-31"];
    let numbers = [0, 1, 2, 1 << 20, u64::from(u32::MAX), u64::MAX];
    let mut puts: Vec<Value> = strange.into_iter().map(Value::from).collect();
    puts.extend(numbers.into_iter().map(Value::from));
    puts.extend([
        Value::Null,
        Value::from(-1),
        Value::from(0.5),
        serde_json::json!([]),
        serde_json::json!({"a": 1}),
    ]);
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let with = |put: Option<Value>| {
                    let mut fields = fields.clone();
                    fields.remove(key);
                    fields.extend(put.map(|put| (key.clone(), put)));
                    Value::from(fields)
                };
                visit(with(None));
                change_each(field, &mut |put| visit(with(Some(put))));
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                let with = |put: &[Value]| [&items[..n], put, &items[n + 1..]].concat().into();
                visit(with(&[]));
                visit(with(&[item.clone(), item.clone()]));
                change_each(item, &mut |put| visit(with(&[put])));
            }
            puts.push([&items[..], &items[..]].concat().into());
            puts.push(items.iter().rev().cloned().collect());
        }
        Value::String(text) => {
            puts.push(text.to_uppercase().into());
            puts.push(format!("{text}0").into());
            puts.push(text.chars().rev().collect::<String>().into());
            puts.push(text[..text.len() / 2].into());
            // Each byte of a head becomes the least and the greatest there is.
            for at in (0..text.len()).step_by(2).filter(|_| text.len() == 192) {
                puts.extend(
                    ["00", "ff"].map(|byte| format!("{}{byte}{}", &text[..at], &text[at + 2..]).into()),
                );
            }
        }
        Value::Number(number) => puts.extend(number.as_u64().map(|n| Value::from(n ^ 1))),
        Value::Bool(_) | Value::Null => {}
    }
    puts.into_iter().filter(|put| put != value).for_each(visit);
}

/// A server that is broken, or is somebody else: its index is refused, or read as far as it goes. Nothing panics, and nothing comes
/// twice.
#[test]
fn an_index_with_any_value_changed_is_refused_or_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = sealed_store(dir.path(), 75, 2, 1, 6);
    let wanted = ScanFilter {
        schemas: vec![TickSchema::Trades, TickSchema::Bbo, TickSchema::News],
        ..ScanFilter::default()
    };
    let (mut refused, mut read) = (0, 0);
    for depth in [ReadDepth::Rows, ReadDepth::Events] {
        let answer = Grants::ALL.answer(&store, &wanted, depth);
        let index = serde_json::to_value(&answer.answer.private_index).unwrap();
        let count = |reader: &AnswerReader| {
            let mut n = [0; 3];
            for (n, schema) in n.iter_mut().zip([TickSchema::Trades, TickSchema::Bbo]) {
                let mut scan = reader.rows(schema, &ScanFilter::default()).unwrap();
                while let Some(row) = scan.next() {
                    let columns = schema.row_schema().columns();
                    columns.iter().for_each(|column| drop(row.value(column)));
                    *n += 1;
                }
            }
            if let Ok(mut scan) = reader.scan(&ScanFilter::default()) {
                while let Some(event) = scan.next() {
                    assert!(event.event().bytes().len() >= 64);
                    n[2] += 1;
                }
            }
            n
        };
        let whole = count(&reader_of(&answer));
        assert!(whole[0] > 3 && whole[1] > 3, "{whole:?}");
        change_each(&index, &mut |changed| {
            let text = changed.to_string();
            let index = serde_json::from_value(changed).ok();
            let Some(Ok(mut reader)) = index.map(|index| AnswerReader::new(index, "remote")) else {
                refused += 1;
                return;
            };
            let change = Box::new(|_, _: &mut Vec<u8>| Ok(()));
            reader.set_fetch(Box::new(ChangedBlocks { sealed: answer.sealed.clone(), change }));
            let n = count(&reader);
            read += 1;
            assert!(n.iter().zip(whole).all(|(n, whole)| *n <= whole), "{n:?} of {whole:?}: {text}");
        });
    }
    assert!(refused > 1000 && read > 1000, "{refused} {read}");
    let error = AnswerReader::new(serde_json::from_str(EMPTY).unwrap(), "remote").unwrap_err();
    assert!(matches!(error, Error::AnswerIndex), "{error}");
}

/// An index whose store is none.
const EMPTY: &str = r#"{"generation": 1, "problems": [], "depth": "rows", "store": "00", "tapes": [], "files": [], "blocks": [],
    "leaves": [], "names": [], "sources": []}"#;
