//! A seal that is killed leaves the store unchanged, and run again it ends in the events of one that was left alone.
//!
//! Half a day under a manifest that names all of it, or names whose tokens are given twice: nothing but killing at
//! every kind of moment finds that. `UNITAPE_KILL_ROUNDS` asks for more moments.

use crate::common::{self, file, run, unitape};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use unitape_sim::Rng;

fn arguments(tape: &Path, store: &Path) -> Vec<OsString> {
    let words = ["store", "seal", "--memory", "60000", "--store"].map(Into::into);
    words.into_iter().chain([store.into(), tape.into()]).collect()
}

/// The events in a store, or none where there is none yet.
fn events(store: &Path) -> Vec<u8> {
    if !store.join("manifest").exists() {
        return Vec::new();
    }
    run(["store".as_ref(), "scan".as_ref(), store.as_os_str(), "--json".as_ref()]).code(0).stdout
}

#[test]
fn a_killed_seal_leaves_the_old_state_and_is_made_good() {
    let rounds: u64 =
        std::env::var("UNITAPE_KILL_ROUNDS").map_or(30, |n| n.parse().expect("a number of rounds"));
    let seed: u64 = std::env::var("UNITAPE_KILL_SEED").map_or(1, |n| n.parse().expect("a seed"));
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("tape");
    // The store as it is after each of two seals of a tape that grows, undisturbed.
    let whole = dir.path().join("whole");
    let (mut kills, mut took_us) = (0, 0);
    for (stage, flow_seed) in [41, 42].into_iter().enumerate() {
        let old = dir.path().join(format!("old{stage}"));
        copy(&whole, &old);
        let orders = file(dir.path(), &format!("{flow_seed}.fix"), common::flow(flow_seed, 6_000, true).0);
        let feed = common::orders_option(&format!("feed{stage}"), &orders);
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(3);
        let since = Instant::now();
        run(arguments(&tape, &whole)).code(0);
        took_us = since.elapsed().as_micros() as u64;
        let (before, after) = (events(&old), events(&whole));
        assert!(before.len() < after.len());
        let mut round = 0;
        while kills < (stage as u64 + 1) * rounds / 2 {
            round += 1;
            assert!(round < rounds * 20, "seals end before they can be killed");
            let round_seed = seed.wrapping_mul(1_000_003) + stage as u64 * 10_000 + round;
            let mut rng = Rng::new(round_seed);
            let store = dir.path().join(format!("killed-{stage}-{round}"));
            copy(&old, &store);
            // Now and then a seal is killed twice before it is left alone.
            for _ in 0..1 + rng.below(2) {
                let mut child = unitape()
                    .args(arguments(&tape, &store))
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap();
                std::thread::sleep(Duration::from_micros(rng.below(took_us.max(1))));
                child.kill().unwrap();
                let killed = child.wait().unwrap().code().is_none();
                kills += u64::from(killed);
                let found = events(&store);
                assert!(
                    found == before || found == after,
                    "seed {round_seed}: neither the old state nor the new"
                );
                // One that was killed before there was a manifest has left no store.
                if store.join("manifest").exists() {
                    run(["store".as_ref(), "verify".as_ref(), store.as_os_str()]).code(0);
                }
            }
            run(arguments(&tape, &store)).code(0);
            if !store.join("manifest").exists() || events(&store) != after {
                panic!("seed {round_seed}: not all of it is there");
            }
            // What killed seals wrote is gone: files of the same names are left as in a store that nobody disturbed.
            assert!(names(&store).eq(names(&whole)), "seed {round_seed}: other files");
            std::fs::remove_dir_all(&store).unwrap();
            std::fs::remove_file(key(&store)).unwrap();
        }
    }
    println!("{kills} seals killed, an undisturbed one took {took_us} us");
}

/// A disk that fails at any one call leaves the state before or the one after, and the exit code says which. Once the last
/// flush failed, the store had the new manifest while the command removed the new files as those of a failed seal.
#[cfg(target_os = "linux")]
#[test]
fn a_change_whose_disk_fails_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (tape, old) = (path("tape"), path("old"));
    for (generation, flow_seed) in [41, 42, 43].into_iter().enumerate() {
        let orders = file(dir.path(), &format!("{flow_seed}.fix"), common::flow(flow_seed, 300, false).0);
        let feed = common::orders_option(&format!("feed{generation}"), &orders);
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
        if generation < 2 {
            run(arguments(&tape, &old)).code(0);
        }
    }
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (key, new_key) = (text(&key(&old)), text(&path("new.key")));
    std::fs::write(path("new.key"), "5".repeat(64)).unwrap();
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let keyed = |words: &[&str], store: &Path, key: &str| {
        let words = [words, &[store.to_str().unwrap(), "--key", key]].concat();
        words.into_iter().map(OsString::from).collect::<Vec<_>>()
    };
    let seal = |store: &Path| {
        words(&["store", "seal", "--key", &key, &text(&tape), "--store", &text(store), "--memory", "60000"])
    };
    let compact = |store: &Path| keyed(&["store", "compact"], store, &key);
    let erase = |store: &Path| keyed(&["store", "erase", "--date", "2026-03-02"], store, &key);
    let events = run(keyed(&["store", "scan", "--json"], &old, &key)).code(0).lines();
    let instrument = events.iter().find_map(|event| event["instr"].as_str()).unwrap().to_owned();
    let name = |store: &Path| keyed(&["store", "erase", "--name", &instrument], store, &key);
    let rekey = |store: &Path| keyed(&["store", "rekey", "--new-key", &new_key], store, &key);
    type Arguments<'a> = &'a dyn Fn(&Path) -> Vec<OsString>;
    let changes: [(&str, Arguments<'_>); 5] =
        [("seal", &seal), ("compact", &compact), ("erase", &erase), ("name", &name), ("rekey", &rekey)];
    // The key that opens the store, and what is in it.
    let state = |store: &Path| {
        let with_new = run(keyed(&["store", "scan", "--json"], store, &new_key));
        let is_new = with_new.code == Some(0);
        let ran =
            if is_new { with_new } else { run(keyed(&["store", "scan", "--json"], store, &key)).code(0) };
        (is_new, ran.stdout)
    };
    let kill_points = common::kill_points::KillPoints::new();
    for (change, args) in changes {
        let (whole, store) = (path(&format!("{change}-whole")), path(&format!("{change}-failed")));
        copy(&old, &whole);
        let (ran, calls) = kill_points.count(&args(&whole));
        ran.code(0);
        let (before, after) = (state(&old), state(&whole));
        let mut failures = 0;
        for call in 1..=calls {
            copy(&old, &store);
            let failed = kill_points.fail_at(call, &args(&store));
            let name = format!("{change}, call {call} of {calls}: {:?} {}", failed.code, failed.stderr);
            let found = state(&store);
            if failed.code != Some(0) {
                failures += 1;
                assert!(matches!(failed.code, Some(1 | 3 | 4)), "{name}");
                assert!(failed.stderr.contains("io: "), "{name}");
            }
            if failed.code == Some(0) || failed.stderr.contains("has the change") {
                assert!(found == after, "{name}: not the new state");
            } else {
                assert!(found == before || failed.code == Some(3) && found == after, "{name}: another state");
            }
            let used_key = if found.0 { &new_key } else { &key };
            run(keyed(&["store", "verify"], &store, used_key)).code(0);
            // Whoever has rekeyed it cannot do that again with the old key, and an erased name is unknown.
            if change == "name" && found == after {
                run(args(&store)).code(1);
                // The next change removes what was left.
                run(keyed(&["store", "compact", "--date", "1999-01-01"], &store, &key)).code(0);
            } else if !found.0 {
                let again = run(args(&store));
                assert_eq!(again.code, Some(0), "{name}: {}", again.stderr);
            }
            assert!(state(&store) == after, "{name}: not all of it is there");
            let [left, wanted] = [&store, &whole].map(|store| names(store).collect::<Vec<_>>());
            assert_eq!(left, wanted, "{name}: other files");
            std::fs::remove_dir_all(&store).unwrap();
        }
        assert!(failures > calls / 2, "{change}: {failures} of {calls} calls failed");
        println!("{change}: {failures} of {calls} failing calls ended the command");
    }
}

/// The key file beside a store.
fn key(store: &Path) -> PathBuf {
    store.with_extension("key")
}

fn names(store: &Path) -> impl Iterator<Item = String> {
    common::files(store).into_keys()
}

/// Copies a store and its key; one that is not there becomes none.
fn copy(from: &Path, to: &Path) {
    if !from.exists() {
        return;
    }
    std::fs::copy(key(from), key(to)).unwrap();
    for (name, bytes) in common::files(from) {
        let path = to.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}
