//! Names of a store: an erased one stays erased for every reader, and its events stay.
//!
//! Once all names of a seal were sealed together, so that a name could go only with the store.

mod common;

use common::{key, open, seal, seen_in_store, tape};
use std::fs;
use std::path::Path;
use unitape_model::NameKind;
use unitape_store::{
    AsOf, CompactOptions, Error, FindingKind, NameErasure, ScanFilter, SealOptions, Store, SystemRandomness,
    TickSchema, VerifyKey, VerifyOptions, compact, erase_name, verify,
};

fn names_in(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("dictionary")).collect();
    names.sort();
    names
}

/// All events of a store, and the number of problems.
fn all(store: &Store) -> (Vec<common::Seen>, usize) {
    seen_in_store(store, &ScanFilter::default())
}

#[test]
fn an_erased_name_is_nowhere_and_its_events_stay() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    for seed in [61, 62] {
        seal(&tape(dir.path(), &format!("t{seed}"), seed, 1, 300), &store, &SealOptions::default()).unwrap();
    }
    let reader = open(&store).unwrap();
    let name = reader.names().name(NameKind::Instrument, 2).unwrap().to_owned();
    let filter = ScanFilter { symbols: vec![name.clone()], ..ScanFilter::default() };
    let (before, problems) = all(&reader);
    assert!(problems == 0 && !seen_in_store(&reader, &filter).0.is_empty());

    let erase = |name: &str| erase_name(&store, &key(), name, &SystemRandomness);
    let erased = erase(&name).unwrap();
    assert_eq!(erased, NameErasure { tokens: vec![(NameKind::Instrument, 2)], kept_files: 1 });
    // The reader from before has a lease of the old dictionary, which it may read again.
    assert_eq!(names_in(&store).len(), 2);
    assert_eq!(reader.names().get(NameKind::Instrument, name.as_bytes()), Some(2));
    let report = verify(&store, VerifyKey::Master(&key()), &VerifyOptions::default()).unwrap();
    let kinds: Vec<_> = report.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!((kinds, report.problems), (vec![FindingKind::LeftOver], 0));
    drop(reader);
    assert!(matches!(erase(&name), Err(Error::UnknownName { .. })));
    assert_eq!(names_in(&store).len(), 1, "the old dictionary stays");

    let reader = open(&store).unwrap();
    let renamed = |seen: &common::Seen| {
        let mut seen = seen.clone();
        seen.names.iter_mut().flat_map(|(_, names)| names).filter(|n| **n == name).for_each(|n| {
            "erased-2".clone_into(n);
        });
        seen
    };
    let (after, problems) = all(&reader);
    assert_eq!(problems, 0);
    common::assert_same(&after, &before.iter().map(renamed).collect::<Vec<_>>());
    for text in [&name, "erased-2"] {
        for as_of in [None, Some(AsOf::Generation(1))] {
            let filter = ScanFilter { symbols: vec![text.to_owned()], as_of, ..ScanFilter::default() };
            let scanned = reader.scan(&filter).map(drop);
            assert!(matches!(scanned, Err(Error::UnknownName { .. })), "{text}: {scanned:?}");
            assert!(reader.rows(TickSchema::Trades, &filter).is_err());
        }
    }
    drop(reader);
    // A compaction and a seal go on from there, and the name gets another token.
    compact(&store, &key(), &CompactOptions::default()).unwrap();
    let count = open(&store).unwrap().names().len(NameKind::Instrument);
    seal(&tape(dir.path(), "t63", 63, 1, 600), &store, &SealOptions::default()).unwrap();
    let reader = open(&store).unwrap();
    assert_eq!(reader.names().get(NameKind::Instrument, name.as_bytes()), Some(count + 1));
    assert_eq!(reader.names().name(NameKind::Instrument, 2), Some("erased-2"));
    let report = verify(&store, VerifyKey::Master(&key()), &VerifyOptions::default()).unwrap();
    assert_eq!(report.findings, []);
    let public = VerifyKey::Public(report.public_key.unwrap());
    assert_eq!(verify(&store, public, &VerifyOptions::default()).unwrap().findings, []);
}

/// Fails if verification says only that the dictionary is changed, and not where.
#[test]
fn each_damaged_record_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    seal(&tape(dir.path(), "tape", 64, 1, 100), &store, &SealOptions::default()).unwrap();
    let file = store.join("dictionary.log");
    let mut bytes = fs::read(&file).unwrap();
    // Records up to 32 bytes have 88; a source may be among the first.
    let mut starts = vec![16];
    while *starts.last().unwrap() < bytes.len() {
        let start = *starts.last().unwrap();
        let sealed = u32::from_le_bytes(bytes[start + 4..start + 8].try_into().unwrap());
        starts.push(start + 24 + sealed as usize);
    }
    let wanted = [starts[1], starts[5], starts[starts.len() - 2]];
    wanted.iter().zip([9, 24, 60]).for_each(|(start, offset)| bytes[start + offset] ^= 1);
    fs::write(&file, &bytes).unwrap();
    let report = verify(&store, VerifyKey::Master(&key()), &VerifyOptions::default()).unwrap();
    let found: Vec<_> = report.findings.iter().map(|finding| (finding.kind, finding.offset)).collect();
    assert_eq!(found, wanted.map(|start| (FindingKind::Changed, Some(start as u64))));
    assert!(report.findings.iter().all(|finding| finding.path == file));
}
