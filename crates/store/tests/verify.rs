//! `verify` refuses every changed, missing, swapped and foreign file, with the master key and with the public one.

mod common;

use common::{key, open, seal, tape};
use std::fs;
use std::path::{Path, PathBuf};

use unitape_model::UnixNanos;
use unitape_store::{
    Error, FindingKind, MasterKey, PublicKey, SealOptions, SystemRandomness, VerifyKey, VerifyOptions,
    VerifyReport, verify,
};

/// All files of a store but those that are for locks alone, and empty.
fn files(store: &Path) -> Vec<PathBuf> {
    let (mut all, mut open) = (Vec::new(), vec![store.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { open.push(path) } else { all.push(path) }
        }
    }
    all.retain(|path| !path.ends_with("store.lock") && !path.parent().unwrap().ends_with("readers"));
    all.sort();
    all
}

/// A store of two generations, in small blocks, over several days.
fn small_store(dir: &Path, name: &str, n: usize) -> PathBuf {
    store_of(dir, name, n, &[51, 52])
}

/// A store of a tape of `n` events for each seed.
fn store_of(dir: &Path, name: &str, n: usize, seeds: &[u64]) -> PathBuf {
    let path = dir.join(name);
    let options = SealOptions { block_rows: 4, ..SealOptions::default() };
    for seed in seeds.iter().copied() {
        let tape = tape(dir, &format!("tape-{name}-{seed}"), seed, 2, n);
        seal(&tape, &path, &options).unwrap();
    }
    path
}

fn public_key(store: &Path) -> PublicKey {
    open(store).unwrap().info().public_key
}

fn check(store: &Path, key: VerifyKey<'_>) -> Result<VerifyReport, Error> {
    verify(store, key, &VerifyOptions::default())
}

/// Checks a store with each key that it has; `public` is the pinned one.
fn with_both(store: &Path, public: PublicKey) -> [Result<VerifyReport, Error>; 2] {
    let master = key();
    [VerifyKey::Master(&master), VerifyKey::Public(public)].map(|key| check(store, key))
}

#[track_caller]
fn assert_intact(store: &Path, public: PublicKey) {
    for report in with_both(store, public) {
        let report = report.unwrap();
        assert!(report.problems == 0, "{:?}", report.findings);
    }
}

/// The problems of a store, which there must be, with either key.
#[track_caller]
fn problems(store: &Path, public: PublicKey) -> [Vec<(FindingKind, PathBuf)>; 2] {
    with_both(store, public).map(|report| {
        let report = report.unwrap();
        let found: Vec<_> = report.findings.iter().filter(|f| f.kind.is_problem()).collect();
        assert!(!found.is_empty() && report.problems == found.len() as u64);
        found.iter().map(|f| (f.kind, f.path.clone())).collect()
    })
}

/// Each byte of each file. One that nobody checks is where the forger writes.
#[test]
fn each_changed_byte_of_a_store_is_found_with_either_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = store_of(dir.path(), "store", 4, &[51]);
    let public = public_key(&path);
    assert_intact(&path, public);
    let mut changes = 0;
    for file in files(&path) {
        let good = fs::read(&file).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            fs::write(&file, &bad).unwrap();
            for report in with_both(&path, public) {
                let Ok(report) = report else {
                    // In the version alone a byte makes another format of it.
                    assert!(
                        file.ends_with("manifest") && at == 14,
                        "byte {at} of {}: {report:?}",
                        file.display()
                    );
                    continue;
                };
                assert!(report.problems > 0, "byte {at} of {}", file.display());
                for finding in &report.findings {
                    assert_eq!((finding.kind, &finding.path), (FindingKind::Changed, &file), "byte {at}");
                    assert!(finding.offset.is_none_or(|offset| offset <= good.len() as u64));
                }
            }
            changes += 1;
        }
        for length in [0, good.len() / 2, good.len() - 1, good.len() + 1] {
            let mut bad = good.clone();
            bad.resize(length, 0);
            fs::write(&file, &bad).unwrap();
            // What a killed seal appends to the dictionary does not count.
            if length > good.len() && file.ends_with("dictionary.log") {
                assert_intact(&path, public);
            } else {
                problems(&path, public);
            }
        }
        fs::write(&file, &good).unwrap();
    }
    assert!(changes > 3_000, "{changes}");
    assert_intact(&path, public);
}

#[test]
fn a_changed_byte_is_named_by_its_block_where_there_is_the_master_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = small_store(dir.path(), "store", 40);
    // The manifest may be the largest file.
    let blocks = files(&path).into_iter().filter(|file| file.extension().is_some_and(|end| end == "blocks"));
    let file = blocks.max_by_key(|file| fs::metadata(file).unwrap().len()).unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let second = 64 + u32::from_le_bytes(bytes[68..72].try_into().unwrap()) as usize;
    bytes[second + 200] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let [with_master, with_public] = with_both(&path, public_key(&path)).map(Result::unwrap);
    let finding = &with_master.findings[0];
    assert_eq!((finding.block, with_master.findings.len()), (Some(1), 1), "{finding:?}");
    assert!(finding.offset.is_some_and(|offset| offset > second as u64), "{finding:?}");
    let finding = &with_public.findings[0];
    assert_eq!((finding.block, finding.offset, with_public.findings.len()), (None, None, 1), "{finding:?}");
}

#[test]
fn missing_swapped_and_foreign_files_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let [path, other] = ["store", "other"].map(|name| small_store(dir.path(), name, 30));
    let public = public_key(&path);
    let all = files(&path);
    assert!(all.len() > 8);
    for file in all.iter().filter(|file| !file.ends_with("manifest")) {
        let good = fs::read(file).unwrap();
        fs::remove_file(file).unwrap();
        for found in problems(&path, public) {
            assert_eq!(found[0], (FindingKind::Missing, file.clone()));
        }
        fs::create_dir(file).unwrap();
        problems(&path, public);
        fs::remove_dir(file).unwrap();
        // The file of another store under the same key, and another file of this one.
        let name = file.strip_prefix(&path).unwrap();
        let next = all.iter().find(|next| *next != file && !next.ends_with("manifest")).unwrap();
        for from in [&other.join(name), next] {
            if let Ok(bytes) = fs::read(from) {
                fs::write(file, bytes).unwrap();
                for found in problems(&path, public) {
                    assert!(found.iter().all(|found| *found == (FindingKind::Changed, file.clone())));
                }
            }
        }
        fs::write(file, &good).unwrap();
    }
    for pair in all.windows(2) {
        let [a, b] = [0, 1].map(|i| fs::read(&pair[i]).unwrap());
        fs::write(&pair[0], &b).unwrap();
        fs::write(&pair[1], &a).unwrap();
        problems(&path, public);
        fs::write(&pair[0], &a).unwrap();
        fs::write(&pair[1], &b).unwrap();
    }
    assert_intact(&path, public);

    // What the store does not name, and what looks like something that it could have.
    let sealed = all.iter().find(|file| file.to_str().unwrap().ends_with("1.blocks")).unwrap();
    let theirs = files(&other).into_iter().find(|file| file.to_str().unwrap().ends_with("1.blocks")).unwrap();
    for (name, from) in [
        ("notes.txt".to_owned(), &all[0]),
        ("2024-03-11/notes.txt".into(), &all[0]),
        ("2024-03-11/bbo/notes.txt".into(), &all[0]),
        (format!("{}/00000009.blocks", sealed.parent().unwrap().display()), sealed),
        (format!("{}/00000009.blocks", sealed.parent().unwrap().display()), &theirs),
        (format!("{}/00000000.blocks", sealed.parent().unwrap().display()), sealed),
        ("2023-01-01/bbo/00000001.blocks".into(), sealed),
        ("2023-01-01/nope/00000001.blocks".into(), sealed),
        ("store.lock/x".into(), sealed),
    ] {
        let place = path.join(name);
        let parent = place.parent().unwrap();
        if parent.ends_with("store.lock") {
            fs::remove_file(parent).unwrap();
        }
        fs::create_dir_all(parent).unwrap();
        fs::copy(from, &place).unwrap();
        for found in problems(&path, public) {
            assert!(found.len() == 1 && found[0].0 == FindingKind::Foreign, "{found:?}");
            assert!(place.starts_with(&found[0].1), "{found:?}");
        }
        fs::remove_file(&place).unwrap();
        if parent.ends_with("store.lock") {
            fs::remove_dir(parent).unwrap();
        }
        _ = fs::remove_dir(path.join("2023-01-01/nope"));
    }
    // Directories of ours without a file are what a killed seal leaves.
    assert_intact(&path, public);

    fs::remove_file(path.join("manifest")).unwrap();
    for report in with_both(&path, public) {
        assert!(matches!(report, Err(Error::NotAStore { .. })), "{report:?}");
    }
}

/// A seal that was killed has left files that no generation has, names that do not count, and a manifest that is not in its place.
#[test]
fn what_a_killed_seal_leaves_is_no_problem() {
    let dir = tempfile::tempdir().unwrap();
    let path = small_store(dir.path(), "store", 30);
    let public = public_key(&path);
    let saved = dir.path().join("saved");
    fs::rename(&path, &saved).unwrap();
    copy(&saved, &path);
    let tape = tape(dir.path(), "more", 53, 2, 30);
    seal(&tape, &path, &SealOptions { block_rows: 4, ..SealOptions::default() }).unwrap();
    assert_eq!(check(&path, VerifyKey::Public(public)).unwrap().generation, Some(3));
    // As it is killed before the rename.
    fs::rename(path.join("manifest"), path.join("manifest.new")).unwrap();
    fs::copy(saved.join("manifest"), path.join("manifest")).unwrap();
    for report in with_both(&path, public) {
        let report = report.unwrap();
        assert_eq!((report.problems, report.generation), (0, Some(2)), "{:?}", report.findings);
        assert!(report.findings.len() >= 3, "{:?}", report.findings);
        assert!(report.findings.iter().all(|finding| finding.kind == FindingKind::LeftOver));
    }
    // As it is killed while it makes its first file.
    let half = files(&path).into_iter().find(|file| file.to_str().unwrap().ends_with("3.blocks")).unwrap();
    for length in [0, 30, 64] {
        let bytes = fs::read(&half).unwrap();
        fs::write(&half, &bytes[..length]).unwrap();
        assert_intact(&path, public);
        fs::write(&half, bytes).unwrap();
    }
    seal(&tape, &path, &SealOptions::default()).unwrap();
    for report in with_both(&path, public) {
        let report = report.unwrap();
        assert_eq!((report.generation, report.findings), (Some(3), Vec::new()));
    }
}

/// A store that somebody else has sealed, and an older state, whose generation is all that tells it.
#[test]
fn another_signer_is_refused_and_an_older_state_says_its_generation() {
    let dir = tempfile::tempdir().unwrap();
    let path = small_store(dir.path(), "store", 20);
    let public = public_key(&path);
    let old = dir.path().join("old");
    copy(&path, &old);
    let tape = tape(dir.path(), "more", 54, 1, 20);
    seal(&tape, &path, &SealOptions::default()).unwrap();
    let now = check(&path, VerifyKey::Public(public)).unwrap();
    let then = check(&old, VerifyKey::Public(public)).unwrap();
    assert_eq!((now.generation, then.generation), (Some(3), Some(2)));
    assert_eq!((&now.store, now.public_key), (&then.store, Some(public)));
    // Files of two states are no state.
    fs::copy(old.join("manifest"), path.join("manifest")).unwrap();
    assert_intact(&path, public);
    fs::remove_file(old.join("dictionary.log")).unwrap();
    problems(&old, public);

    let forged = dir.path().join("forged");
    let theirs = MasterKey::random(&SystemRandomness).unwrap();
    unitape_store::seal(&tape, &forged, &theirs, UnixNanos(0), &SealOptions::default()).unwrap();
    let report = check(&forged, VerifyKey::Public(public));
    let Err(Error::WrongSigner { signer: found, .. }) = &report else { panic!("{report:?}") };
    assert_ne!(*found, public);
    assert!(check(&forged, VerifyKey::Public(*found)).unwrap().findings.is_empty());
    let report = check(&forged, VerifyKey::Master(&key()));
    assert!(matches!(report, Err(Error::WrongKey { .. })), "{report:?}");
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let place = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(file, place).unwrap();
    }
}
