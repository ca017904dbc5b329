//! Another key for a store, and the end of a day.

mod common;

use common::{Maker, Seen, assert_same, key, open, seal, seen_in_store, writer};
use std::fs;
use std::path::{Path, PathBuf};
use unitape_model::UnixNanos;
use unitape_store::{
    AsOf, CompactOptions, Error, MasterKey, ScanFilter, SealOptions, Store, SystemRandomness, VerifyKey,
    VerifyOptions, compact, erase_day, rekey, verify,
};

/// A store of a tape that grew, in `seals` parts over three days.
fn grown_store(dir: &Path, seals: usize) -> (PathBuf, Maker) {
    let (tape, store, mut maker) = (dir.join("tape"), dir.join("store"), Maker::new(5, 3));
    for _ in 0..seals {
        grow(&tape, &mut maker);
        seal(&tape, &store, &SealOptions::default()).unwrap();
    }
    (store, maker)
}

fn grow(tape: &Path, maker: &mut Maker) {
    let mut writer = writer(tape, 9);
    maker.write(&mut writer, 200);
    writer.close().unwrap();
}

fn everything(store: &Store) -> Vec<Seen> {
    let (events, problems) = seen_in_store(store, &ScanFilter::default());
    assert_eq!(problems, 0);
    events
}

fn assert_intact(store: &Path, key: &MasterKey) {
    let report = verify(store, VerifyKey::Master(key), &VerifyOptions::default()).unwrap();
    assert_eq!(report.problems, 0, "{:?}", report.findings);
}

/// Fails if the old key still opens the store, if the new one opens something else, or if data are lost on the way.
#[test]
fn another_key_opens_the_same_store_and_the_old_one_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut maker) = grown_store(dir.path(), 2);
    let before = everything(&open(&store).unwrap());
    let (reader, manifest) = (open(&store).unwrap(), fs::read(store.join("manifest")).unwrap());
    let new_key = MasterKey::random(&SystemRandomness).unwrap();
    let wrong = rekey(&store, &new_key, &new_key, &SystemRandomness);
    assert!(matches!(wrong, Err(Error::WrongKey { .. })), "{wrong:?}");
    assert_eq!(fs::read(store.join("manifest")).unwrap(), manifest);
    rekey(&store, &key(), &new_key, &SystemRandomness).unwrap();
    let old = open(&store).map(drop);
    assert!(matches!(old, Err(Error::WrongKey { .. })), "{old:?}");
    assert_same(&everything(&Store::open(&store, &new_key).unwrap()), &before);
    assert_same(&everything(&reader), &before);
    drop(reader);
    assert_intact(&store, &new_key);
    // The store goes on under the new key.
    let tape = dir.path().join("tape");
    grow(&tape, &mut maker);
    unitape_store::seal(&tape, &store, &new_key, UnixNanos(0), &SealOptions::default()).unwrap();
    compact(&store, &new_key, &CompactOptions::default()).unwrap();
    let opened = Store::open(&store, &new_key).unwrap();
    let state =
        |generation| ScanFilter { as_of: Some(AsOf::Generation(generation)), ..ScanFilter::default() };
    assert_same(&seen_in_store(&opened, &state(2)).0, &before);
    assert!(everything(&opened).len() > before.len());
    assert_intact(&store, &new_key);
}

/// Fails if an event of an erased day is still to be found, in any state, or if another day is touched.
#[test]
fn an_erased_day_is_gone_in_every_state_and_stays_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = grown_store(dir.path(), 3);
    let opened = open(&store).unwrap();
    let before = everything(&opened);
    let days: Vec<_> = opened.info().days.keys().copied().collect();
    let day = days[days.len() / 2];
    let want: Vec<Seen> = before.iter().filter(|event| event.day() != day).cloned().collect();
    assert!(want.len() < before.len() && !want.is_empty());
    // A reader that is at work reads to its end.
    let report = erase_day(&store, &key(), day, &SystemRandomness).unwrap();
    assert_eq!(report.rows as usize, before.len() - want.len());
    assert!(report.files > 0 && report.kept_files == report.files);
    assert_same(&everything(&opened), &before);
    assert_intact(&store, &key());
    drop(opened);
    let again = erase_day(&store, &key(), day, &SystemRandomness).unwrap();
    assert_eq!((again.rows, again.files), (0, 0));
    assert!(!store.join(day.to_string()).exists(), "its files are still there");
    let erased = open(&store).unwrap();
    assert_same(&everything(&erased), &want);
    for generation in 1..=3 {
        let filter = ScanFilter { as_of: Some(AsOf::Generation(generation)), ..ScanFilter::default() };
        assert!(seen_in_store(&erased, &filter).0.iter().all(|event| event.day() != day));
    }
    assert!(!erased.info().days.contains_key(&day));
    drop(erased);
    let tape = dir.path().join("tape");
    assert_eq!(seal(&tape, &store, &SealOptions::default()).unwrap().generation, None);
    let of_day = SealOptions { date: Some(day), ..SealOptions::default() };
    assert_eq!(seal(&tape, &store, &of_day).unwrap().generation, None, "the day comes back");
    compact(&store, &key(), &CompactOptions::default()).unwrap();
    assert_same(&everything(&open(&store).unwrap()), &want);
    assert_intact(&store, &key());
}

/// Fails if a backup of the files of an erased day brings it back.
#[test]
fn files_of_an_erased_day_do_not_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = grown_store(dir.path(), 1);
    let day = *open(&store).unwrap().info().days.keys().next().unwrap();
    let (folder, backup) = (store.join(day.to_string()), dir.path().join("backup"));
    fs::rename(&folder, &backup).unwrap();
    let copy = |from: &Path, to: &Path| {
        for schema in fs::read_dir(from).unwrap() {
            let schema = schema.unwrap();
            fs::create_dir_all(to.join(schema.file_name())).unwrap();
            for file in fs::read_dir(schema.path()).unwrap() {
                let file = file.unwrap();
                fs::copy(file.path(), to.join(schema.file_name()).join(file.file_name())).unwrap();
            }
        }
    };
    copy(&backup, &folder);
    erase_day(&store, &key(), day, &SystemRandomness).unwrap();
    assert!(!folder.exists());
    copy(&backup, &folder);
    let opened = open(&store).unwrap();
    assert!(everything(&opened).iter().all(|event| event.day() != day));
    let report = verify(&store, VerifyKey::Master(&key()), &VerifyOptions::default()).unwrap();
    assert!(!report.findings.is_empty(), "files that do not belong to the store are not told");
}
