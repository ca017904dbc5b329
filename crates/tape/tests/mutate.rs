//! A good tape, then its files changed at random: whatever is opened gives a result or an error, never a panic,
//! and what the verification calls intact can be read. `fuzz/src/targets/tape_open.rs` does the same for long.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use common::{ID, append, content, directory, options};
use proptest::prelude::*;
use unitape_tape::{
    DefinitionReader, ReadOptions, Reader, RemovalOptions, RetentionLimits, StartPosition, Writer,
    WriterOptions, info, retain, retention_status, verify,
};

const SEGMENT_BYTES: u64 = 4096;

/// Files of a small tape: closed, or left behind by a writer that died.
fn good(clean: bool) -> &'static BTreeMap<String, Vec<u8>> {
    static TAPES: [OnceLock<BTreeMap<String, Vec<u8>>>; 2] = [OnceLock::new(), OnceLock::new()];
    TAPES[usize::from(clean)].get_or_init(|| {
        let dir = directory();
        let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT_BYTES, None)).unwrap();
        append(&mut writer, 4, 0, 60);
        if clean {
            writer.close().unwrap();
        } else {
            // As after a kill; its threads change nothing while the files are read.
            drop(writer);
        }
        content(dir.path())
    })
}

#[derive(Clone, Debug)]
enum Change {
    Flip(u64),
    Word(u64, u64),
    Zeros(u64, u16),
    Cut(u64),
    Longer(u16),
    Remove,
    /// The file gets the content of another one.
    Swap(usize),
    /// A segment of this index beside the others.
    Plant(u64),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => any::<u64>().prop_map(Change::Flip),
        4 => (any::<u64>(), prop_oneof![Just(0), Just(u64::MAX), any::<u64>()]).prop_map(|(a, w)| Change::Word(a, w)),
        2 => (any::<u64>(), any::<u16>()).prop_map(|(a, n)| Change::Zeros(a, n)),
        1 => any::<u64>().prop_map(Change::Cut),
        1 => any::<u16>().prop_map(Change::Longer),
        1 => Just(Change::Remove),
        1 => any::<usize>().prop_map(Change::Swap),
        1 => prop_oneof![Just(u64::MAX), 0u64..20, any::<u64>()].prop_map(Change::Plant),
    ]
}

fn apply(files: &mut BTreeMap<String, Vec<u8>>, which: usize, change: &Change) {
    let names: Vec<String> = files.keys().cloned().collect();
    let Some(name) = names.get(which % names.len().max(1)) else { return };
    let other = |i: usize| files[&names[i % names.len()]].clone();
    match change {
        Change::Remove => drop(files.remove(name)),
        Change::Swap(i) => drop(files.insert(name.clone(), other(*i))),
        Change::Plant(index) => drop(files.insert(format!("segments/{index:016x}.seg"), other(which))),
        change => {
            let file = files.get_mut(name).unwrap();
            let length = file.len() as u64;
            match *change {
                _ if length == 0 => {}
                Change::Flip(at) => file[(at % length) as usize] ^= 1 << (at >> 61),
                Change::Word(at, word) => {
                    // On its place of eight bytes, where the fields are.
                    let at = (at % length) as usize & !7;
                    let end = (at + 8).min(file.len());
                    file[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
                }
                Change::Zeros(at, n) => {
                    let at = (at % length) as usize;
                    let end = (at + usize::from(n)).min(file.len());
                    file[at..end].fill(0);
                }
                Change::Cut(at) => file.truncate((at % length) as usize),
                Change::Longer(n) => file.resize(file.len() + usize::from(n), 0x41),
                _ => unreachable!("handled above"),
            }
        }
    }
}

fn write(dir: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Reads until the end or an error; a reader that goes round and round fails.
fn read(dir: &Path, start: StartPosition) -> Option<u64> {
    read_with(dir, start, ReadOptions::default())
}

/// Reads until the end or an error, with or without checks and stops.
fn read_with(dir: &Path, start: StartPosition, options: ReadOptions) -> Option<u64> {
    let mut reader = Reader::open_with(dir, start, options).ok()?;
    for _ in 0..100_000 {
        match reader.next() {
            Ok(Some(frame)) => assert!(frame.header.is_at(frame.position) && !frame.bytes.is_empty()),
            Ok(None) | Err(_) => return Some(reader.position().0),
        }
    }
    panic!("the reader does not come to an end");
}

fn open_all(dir: &Path) {
    let report = verify(dir);
    // A checksum that is damaged takes a span from a reader, and nothing from who does not look at it.
    let read_to =
        read_with(dir, StartPosition::Oldest, ReadOptions { verify: false, ..ReadOptions::default() });
    read(dir, StartPosition::Oldest);
    for start in [StartPosition::Oldest, StartPosition::End] {
        read_with(dir, start, ReadOptions { skip_damage: true, ..ReadOptions::default() });
    }
    if let (Ok(report), Some(read_to)) = (&report, read_to) {
        assert!(report.problems.len() <= 1000);
        assert!(read_to >= report.intact_to.0, "intact to {}, read to {read_to}", report.intact_to);
    }
    read(dir, StartPosition::End);
    // Errors are fine, panics are not; what is found is the business of the other tests.
    let _ = info(dir);
    if let Ok(mut log) = DefinitionReader::open(dir) {
        while let Ok(Some(_)) = log.next() {}
    }
    let limits = RetentionLimits { bytes: Some(2 * SEGMENT_BYTES), ..RetentionLimits::default() };
    let _ = retain(dir, &limits, &RemovalOptions::default(), false);
    let _ = retention_status(dir);
    if let Ok(mut reader) = Reader::open(dir, StartPosition::Oldest) {
        let _ = reader.lag();
    }
    let small = fs::read_to_string(dir.join("tape.toml")).is_ok_and(|t| t.contains("segment_bytes = 4096\n"));
    if small {
        for truncate_damage in [false, true] {
            let options = WriterOptions { truncate_damage, ..options(SEGMENT_BYTES, None) };
            let Ok((mut writer, recovery)) = Writer::open(dir, ID, options) else { continue };
            assert_eq!(writer.end(), recovery.end_position);
            let mut unit = Vec::new();
            common::unit(4, 60, &mut unit);
            if writer.append(&unit).is_ok() && writer.close().is_ok() {
                assert!(
                    read(dir, StartPosition::At(recovery.end_position)) > Some(recovery.end_position.0),
                    "{recovery:?}"
                );
            }
        }
    }
}

/// 300 cases, or as many as `PROPTEST_CASES` says.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(300), failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn changed_files_give_errors_and_never_panics(
        clean in any::<bool>(),
        changes in proptest::collection::vec((any::<usize>(), change()), 1..5),
    ) {
        let dir = directory();
        let mut files = good(clean).clone();
        for (which, change) in &changes {
            apply(&mut files, *which, change);
        }
        write(dir.path(), &files);
        open_all(dir.path());
    }
}
