//! Damage of every file of a store, and tapes that cannot be sealed: an error that names the place, and everything
//! else is read.

mod common;

use common::{Maker, Rng, Seen, assert_same, open, seal, seen_in_store, seen_on_tape, tape, writer};
use std::fs;
use std::path::{Path, PathBuf};
use unitape_model::{EventBuilder, EventField, EventKind, EventValue, NameKind, Position, UnixNanos, flags};
use unitape_store::{
    Error, MasterKey, ScanFilter, SealOptions, SealReport, Store, SystemRandomness, TickSchema,
};

fn blocks(store: &Path) -> Vec<PathBuf> {
    let (mut all, mut open) = (Vec::new(), vec![store.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "blocks") {
                all.push(path);
            }
        }
    }
    all.sort();
    all
}

/// Whether each of `part` is in `all`, in its order.
fn is_part_of(part: &[Seen], all: &[Seen]) -> bool {
    let mut rest = all.iter();
    part.iter().all(|p| rest.any(|a| a == p))
}

/// One byte changes at a time, all over the files. The scan notices each change, returns only sealed events, and
/// loses one block at most (a damaged index or file header loses nothing).
#[test]
fn a_changed_byte_costs_one_block_at_most() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path(), "tape", 31, 1, 400);
    let path = dir.path().join("store");
    let options = SealOptions { memory_bytes: 1 << 14, block_rows: 8, ..SealOptions::default() };
    seal(&tape, &path, &options).unwrap();
    let (want, mut rng) = (seen_on_tape(&tape), Rng::new(5));
    let files = blocks(&path);
    assert!(files.len() > 10);
    for round in 0..250 {
        let file = &files[rng.below(files.len() as u64) as usize];
        let good = fs::read(file).unwrap();
        let at = rng.below(good.len() as u64) as usize;
        let mut bad = good.clone();
        bad[at] ^= 1 << rng.below(8);
        fs::write(file, &bad).unwrap();
        let store = open(&path).unwrap();
        let (got, problems) = seen_in_store(&store, &ScanFilter::default());
        assert!(problems > 0, "round {round}: byte {at} of {}", file.display());
        assert!(is_part_of(&got, &want) && want.len() - got.len() <= 8, "round {round}: byte {at}");
        let mut scan = store.scan(&ScanFilter::default()).unwrap();
        while scan.next().is_some() {}
        for problem in scan.problems() {
            let Error::Damage { path, offset, .. } = problem else { panic!("{problem}") };
            assert!(path == file && *offset <= good.len() as u64, "{problem}");
        }
        fs::write(file, &good).unwrap();
    }
    assert_same(&seen_in_store(&open(&path).unwrap(), &ScanFilter::default()).0, &want);
}

/// A file of 2,600 instruments, so that its index has three pages. A damaged page costs nothing, and a damaged block beside it
/// costs that block; only if the page and a header in it are damaged are blocks lost, and only those of the page.
#[test]
fn a_damaged_page_of_an_index_is_read_from_the_blocks() {
    const INSTRUMENTS: u32 = 2600;
    let dir = tempfile::tempdir().unwrap();
    let (tape, path) = (dir.path().join("tape"), dir.path().join("store"));
    let (mut tape_writer, mut unit) = (writer(&tape, 9), Vec::new());
    for instrument in 1..=INSTRUMENTS {
        unit.clear();
        EventBuilder::define(&mut unit, NameKind::Instrument, instrument, &format!("I{instrument}")).unwrap();
        let mut event = EventBuilder::begin(&mut unit, EventKind::Trade, UnixNanos(common::NOON));
        event.set_field(EventField::Instr, EventValue::Sym(NameKind::Instrument, instrument)).unwrap();
        event.finish(flags::LAST).unwrap();
        tape_writer.append(&unit).unwrap();
    }
    tape_writer.close().unwrap();
    seal(&tape, &path, &SealOptions::default()).unwrap();
    let want = seen_on_tape(&tape);
    let file = blocks(&path).pop().unwrap();
    let good = fs::read(&file).unwrap();
    let mut starts = Vec::new();
    open(&path)
        .unwrap()
        .for_each_block(&mut |block| starts.push((block.offset as usize, block.bytes as usize)));
    assert_eq!(starts.len(), INSTRUMENTS as usize);
    let pages_at = starts.last().map(|(offset, bytes)| offset + bytes).unwrap();
    let root_at = good.len() - 24 - (3 * 16 + 28);
    println!(
        "{} bytes an instrument, {} in the index",
        good.len() / starts.len(),
        (good.len() - pages_at) / starts.len()
    );
    let check = |changed: &[usize], lost: usize, problems: usize| {
        let mut bad = good.clone();
        changed.iter().for_each(|byte| bad[*byte] ^= 1);
        fs::write(&file, &bad).unwrap();
        let (got, found) = seen_in_store(&open(&path).unwrap(), &ScanFilter::default());
        assert_eq!((want.len() - got.len(), found), (lost, problems), "bytes {changed:?}");
        assert!(is_part_of(&got, &want));
    };
    check(&[], 0, 0);
    // The first page, the last page, the root.
    check(&[pages_at + 50], 0, 1);
    check(&[root_at - 50], 0, 1);
    check(&[root_at + 20], 0, 1);
    // A header in the second page, whose page is whole: its block is lost. With the last page as well: no other is.
    let in_header = starts[1500].0 + 30;
    check(&[in_header], 1, 1);
    check(&[in_header, root_at - 50], 1, 2);
    // A header of a page that is damaged as well: the rest of the page is lost.
    check(&[starts[1000].0 + 30, pages_at + 50], 1024 - 1000, 2);
    fs::write(&file, &good).unwrap();
}

#[test]
fn a_file_that_is_cut_off_is_read_as_far_as_it_goes() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path(), "tape", 32, 1, 300);
    let path = dir.path().join("store");
    seal(&tape, &path, &SealOptions { block_rows: 8, ..SealOptions::default() }).unwrap();
    let want = seen_on_tape(&tape);
    let file = blocks(&path).into_iter().max_by_key(|f| fs::metadata(f).unwrap().len()).unwrap();
    let good = fs::read(&file).unwrap();
    let mut most = 0;
    for length in [0, 1, 63, 64, 65, 160, good.len() / 3, good.len() / 2, good.len() - 25, good.len() - 1] {
        fs::write(&file, &good[..length]).unwrap();
        let store = open(&path).unwrap();
        let (got, problems) = seen_in_store(&store, &ScanFilter::default());
        assert!(problems > 0 && is_part_of(&got, &want), "cut at {length}");
        assert!(got.len() >= most, "cut at {length}: a longer file gives no less");
        assert_eq!(store.missing_files().len(), 1);
        most = got.len();
    }
    assert_eq!(most, want.len(), "without its index alone, nothing is lost");
}

/// A file of another day, or of an earlier store, under a name that fits.
#[test]
fn a_file_in_the_wrong_place_is_not_taken() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path(), "tape", 33, 3, 500);
    let path = dir.path().join("store");
    seal(&tape, &path, &SealOptions::default()).unwrap();
    let files = blocks(&path);
    let of_schema: Vec<_> = files.iter().filter(|f| f.to_str().unwrap().contains("trades")).collect();
    fs::copy(of_schema[0], of_schema[1]).unwrap();
    let (got, problems) = seen_in_store(&open(&path).unwrap(), &ScanFilter::default());
    assert!(problems == 1 && is_part_of(&got, &seen_on_tape(&tape)));
}

/// Names that are gone: a row without its names, or with those of others, would be a wrong row.
#[test]
fn a_damaged_dictionary_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path(), "tape", 34, 1, 200);
    let path = dir.path().join("store");
    seal(&tape, &path, &SealOptions::default()).unwrap();
    let file = path.join("dictionary.log");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 8;
    fs::write(&file, &bytes).unwrap();
    let opened = open(&path);
    assert!(matches!(&opened, Err(Error::Damage { path, .. }) if *path == file), "{opened:?}");
    // More tokens on top of what cannot be read would mean other names.
    let again = seal(&tape, &path, &SealOptions::default());
    assert!(matches!(again, Err(Error::Damage { .. })), "{again:?}");
}

fn files(store: &Path) -> Vec<PathBuf> {
    let mut all = blocks(store);
    all.extend(["manifest", "dictionary.log"].map(|name| store.join(name)));
    all
}

/// Rows of all schemas as text, and how many problems there were.
fn rows(store: &Store) -> (Vec<String>, u64) {
    let (mut all, mut problems) = (Vec::new(), 0);
    for schema in TickSchema::ALL {
        let columns = schema.row_schema().all_columns();
        let mut scan = store.rows(schema, &ScanFilter::default()).unwrap();
        while let Some(row) = scan.next() {
            let values: Vec<_> = columns.iter().map(|column| row.value(column)).collect();
            all.push(format!("{values:?}"));
        }
        problems += scan.problem_count();
    }
    (all, problems)
}

/// Each byte of each file of a small store. An event or a row that nobody sealed would be believed.
#[test]
fn each_changed_byte_is_refused_and_no_wrong_row_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path(), "tape", 37, 1, 9);
    let path = dir.path().join("store");
    seal(&tape, &path, &SealOptions { block_rows: 4, ..SealOptions::default() }).unwrap();
    let (want, want_rows) = (seen_on_tape(&tape), rows(&open(&path).unwrap()).0);
    assert!(want_rows.len() > 3);
    let mut changes = 0;
    for file in files(&path) {
        let good = fs::read(&file).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            fs::write(&file, &bad).unwrap();
            changes += 1;
            let Ok(store) = open(&path) else { continue };
            let (got, problems) = seen_in_store(&store, &ScanFilter::default());
            assert!(problems > 0, "byte {at} of {}", file.display());
            assert!(is_part_of(&got, &want), "byte {at} of {}", file.display());
            let (got, problems) = rows(&store);
            let mut rest = want_rows.iter();
            assert!(got.iter().all(|row| rest.any(|want| want == row)), "byte {at} of {}", file.display());
            // Who reads market data alone does not read the other chunks, and loses nothing by their damage.
            assert!(problems > 0 || got.len() == want_rows.len(), "byte {at} of {}", file.display());
        }
        fs::write(&file, &good).unwrap();
    }
    assert!(changes > 3_000, "{changes}");
    assert_same(&seen_in_store(&open(&path).unwrap(), &ScanFilter::default()).0, &want);
}

/// Sealed bytes that are whole, in the place of others: two blocks of one length, a file of another store, an older manifest's
/// dictionary.
#[test]
fn what_was_moved_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path(), "tape", 38, 1, 900);
    let [path, other] = ["store", "other"].map(|name| dir.path().join(name));
    for store in [&path, &other] {
        seal(&tape, store, &SealOptions { block_rows: 4, ..SealOptions::default() }).unwrap();
    }
    let want = seen_on_tape(&tape);
    let mut swaps = 0;
    for file in blocks(&path) {
        let good = fs::read(&file).unwrap();
        // Blocks follow one another behind 64 bytes; each has its length at 4.
        let (mut starts, mut at) = (vec![], 64);
        while good[at..].starts_with(b"UBLK") {
            let bytes = u32::from_le_bytes(good[at + 4..at + 8].try_into().unwrap()) as usize;
            starts.push((bytes, at));
            at += bytes;
        }
        starts.sort_unstable();
        for pair in starts.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            let [(bytes, a), (_, b)] = pair else { unreachable!() };
            let mut bad = good.clone();
            bad[*a..a + bytes].copy_from_slice(&good[*b..b + bytes]);
            bad[*b..b + bytes].copy_from_slice(&good[*a..a + bytes]);
            fs::write(&file, &bad).unwrap();
            let (got, problems) = seen_in_store(&open(&path).unwrap(), &ScanFilter::default());
            assert!(problems == 2 && is_part_of(&got, &want) && got.len() < want.len());
            swaps += 1;
        }
        fs::write(&file, &good).unwrap();
    }
    assert!(swaps > 0, "no two blocks have one length");
    for file in files(&path) {
        let (good, name) = (fs::read(&file).unwrap(), file.strip_prefix(&path).unwrap());
        fs::copy(other.join(name), &file).unwrap();
        // The other store has the same tape under the same key: all that differs is its id.
        match open(&path) {
            Ok(store) => {
                let (got, problems) = seen_in_store(&store, &ScanFilter::default());
                assert!(problems > 0 && is_part_of(&got, &want), "{}", file.display());
            }
            Err(e) => assert!(matches!(e, Error::Damage { .. }), "{e}"),
        }
        fs::write(&file, &good).unwrap();
    }
}

/// A name in clear tells who traded, whatever else is sealed.
#[test]
fn no_name_is_in_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path(), "tape", 39, 2, 600);
    let path = dir.path().join("store");
    seal(&tape, &path, &SealOptions::default()).unwrap();
    let store = open(&path).unwrap();
    let mut names: Vec<String> =
        ["a rather long name of file number", "note", "text that is far"].map(Into::into).into();
    for dict in NameKind::ALL {
        names
            .extend((1..=store.names().len(dict)).map(|id| store.names().name(dict, id).unwrap().to_owned()));
    }
    // A hash, written in hexadecimal digits, may have such a name in it by chance.
    names.retain(|name| !name.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert!(names.len() > 30, "{}", names.len());
    for file in files(&path) {
        let bytes = fs::read(&file).unwrap();
        let place = file.display().to_string();
        for name in &names {
            let is_there =
                bytes.windows(name.len()).any(|window| window.eq_ignore_ascii_case(name.as_bytes()));
            assert!(
                !is_there && !place[path.display().to_string().len()..].contains(name),
                "{name} in {place}"
            );
        }
    }
}

#[test]
fn another_key_opens_nothing_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path(), "tape", 40, 1, 50);
    let path = dir.path().join("store");
    seal(&tape, &path, &SealOptions::default()).unwrap();
    let manifest = fs::read(path.join("manifest")).unwrap();
    let other = MasterKey::random(&SystemRandomness).unwrap();
    assert!(matches!(Store::open(&path, &other), Err(Error::WrongKey { .. })));
    let sealed =
        unitape_store::seal(&tape, &path, &other, unitape_model::UnixNanos(0), &SealOptions::default());
    assert!(matches!(sealed, Err(Error::WrongKey { .. })), "{sealed:?}");
    assert_eq!(fs::read(path.join("manifest")).unwrap(), manifest);
}

#[test]
fn an_event_that_names_what_is_not_defined_is_not_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape");
    let mut writer = writer(&path, 1);
    Maker::new(1, 1).write(&mut writer, 20);
    let mut unit = Vec::new();
    let mut e = EventBuilder::begin(&mut unit, EventKind::Status, UnixNanos(0));
    let schema = e.schema();
    e.set(schema.get(EventField::Venue).unwrap(), EventValue::Sym(NameKind::Venue, 77)).unwrap();
    e.set(schema.get(EventField::State).unwrap(), EventValue::Text("x")).unwrap();
    e.finish(flags::LAST).unwrap();
    let position = writer.append(&unit).unwrap();
    writer.close().unwrap();
    let store = dir.path().join("store");
    match seal(&path, &store, &SealOptions::default()) {
        Err(Error::Tape(unitape_tape::Error::Damage { reason: what, .. })) => {
            assert_eq!(what, format!("position {position}: venue 77 is not defined"));
        }
        other => panic!("{other:?}"),
    }
    // Nothing of it is in the store, and nothing is left lying about.
    assert_eq!(open(&store).unwrap().info().all().rows, 0);
    assert_eq!(blocks(&store), Vec::<PathBuf>::new());
}

/// A tape made again under the id of another one: its events would pass for a continuation.
#[test]
fn another_tape_under_the_same_id_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, store) = (dir.path().join("tape"), dir.path().join("store"));
    for (seed, n) in [(1, 100), (2, 200), (3, 50)] {
        _ = fs::remove_dir_all(&path);
        let mut writer = writer(&path, 7);
        Maker::new(seed, 1).write(&mut writer, n);
        writer.close().unwrap();
        let sealed = seal(&path, &store, &SealOptions::default());
        match seed {
            1 => assert_eq!(sealed.unwrap().rows, 100),
            _ => assert!(matches!(sealed, Err(Error::OtherTape { .. })), "{sealed:?}"),
        }
    }
    assert_eq!(open(&store).unwrap().info().all().rows, 100);
}

/// Events that retention removed before they were sealed are reported; the rest is sealed with names from the
/// dictionary log.
#[test]
fn what_retention_took_is_told_as_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let path = tape(dir.path(), "tape", 35, 1, 6_000);
    let whole = seen_on_tape(&path);
    let end = unitape_tape::info(&path).unwrap().end_position.0;
    let limits = unitape_tape::RetentionLimits { bytes: Some(end - (300 << 10)), ..Default::default() };
    unitape_tape::retain(&path, &limits, &unitape_tape::RemovalOptions::default(), false).unwrap();
    let store = dir.path().join("store");
    let SealReport { gap, rows, .. } = seal(&path, &store, &SealOptions::default()).unwrap();
    let first = Position(256 << 10);
    assert_eq!(gap, Some((Position(0), first)));
    assert!(rows > 0 && (rows as usize) < whole.len());
    let (got, problems) = seen_in_store(&open(&store).unwrap(), &ScanFilter::default());
    let want: Vec<Seen> = whole.into_iter().filter(|s| s.position >= first.0).collect();
    assert_eq!(problems, 0);
    assert_same(&got, &want);
}

/// A live tape is sealed as far as it is durable: what power loss may take must not be in the store.
#[test]
fn a_tape_that_is_being_written_is_sealed_as_far_as_it_is_durable() {
    let dir = tempfile::tempdir().unwrap();
    let (path, store) = (dir.path().join("tape"), dir.path().join("store"));
    let mut maker = Maker::new(36, 1);
    let mut open = writer(&path, 5);
    maker.write(&mut open, 50);
    open.close().unwrap();
    let mut open = writer(&path, 5);
    maker.write(&mut open, 50);
    let durable = unitape_tape::tape_status(&path).unwrap();
    assert!(durable.live);
    let sealed = seal(&path, &store, &SealOptions::default()).unwrap();
    assert!(sealed.rows >= 50 && sealed.to <= durable.durable, "{sealed:?}");
    open.close().unwrap();
    let rest = seal(&path, &store, &SealOptions::default()).unwrap();
    assert_eq!(sealed.rows + rest.rows, 100);
}

#[test]
fn options_that_cannot_be_are_refused() {
    for options in [
        SealOptions { memory_bytes: 0, ..SealOptions::default() },
        SealOptions { memory_bytes: usize::MAX, ..SealOptions::default() },
        SealOptions { block_rows: 0, ..SealOptions::default() },
        SealOptions { block_rows: 65_537, ..SealOptions::default() },
    ] {
        let refused = seal(Path::new("t"), Path::new("s"), &options);
        assert!(matches!(refused, Err(Error::Option(_))), "{refused:?}");
    }
}
