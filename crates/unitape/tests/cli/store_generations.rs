//! `store scan --as-of` and `store compact`: earlier states stay readable, and a compaction changes no answer, also when it is
//! killed.

use crate::common::{self, Ran, file, run, unitape};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use unitape_sim::Rng;

/// What a store prints of a state.
fn printed(store: &Path, options: &[&str]) -> Vec<u8> {
    let words = |more: &[&str]| scan(store, &[options, more].concat()).code(0).stdout;
    [words(&["--json", "--full"]), words(&["--schema", "mbo", "--csv"])].concat()
}

fn scan(store: &Path, options: &[&str]) -> Ran {
    let command = ["store".as_ref(), "scan".as_ref(), store.as_os_str()];
    run(command.into_iter().chain(options.iter().map(AsRef::as_ref)))
}

/// A store of two tapes that grew in turn, sealed each time, and what it printed after each seal.
fn grown_store(dir: &Path) -> (PathBuf, Vec<Vec<u8>>) {
    let store = dir.join("ticks");
    let mut states = Vec::new();
    for (n, name) in ["first", "second", "first", "second"].into_iter().enumerate() {
        let orders = file(dir, &format!("{n}.fix"), common::flow(7 + n as u64, 600, false).0);
        let feed = common::orders_option(&format!("feed{n}"), &orders);
        let tape = dir.join(name);
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
        let sealed = ["store", "seal", tape.to_str().unwrap(), "--store", store.to_str().unwrap(), "--json"];
        assert_eq!(run(sealed).code(0).json()["generation"], n + 1);
        states.push(printed(&store, &[]));
    }
    (store, states)
}

fn command(verb: &str, store: &Path, options: &[&str]) -> Ran {
    run(["store", verb, store.to_str().unwrap()].into_iter().chain(options.iter().copied()))
}

#[test]
fn earlier_states_are_read_before_and_after_a_compaction() {
    let dir = tempfile::tempdir().unwrap();
    let (store, states) = grown_store(dir.path());
    let info = command("info", &store, &["--json"]).code(0).json();
    let generations = info["generations"].as_array().unwrap();
    assert_eq!(generations.len(), 4);
    let committed: Vec<i64> = generations.iter().map(|of| of["committed"].as_i64().unwrap()).collect();
    assert!(committed.is_sorted_by(|a, b| a < b), "{committed:?}");
    let all_rows: u64 = generations.iter().map(|of| of["rows"].as_u64().unwrap()).sum();
    assert_eq!(info["rows"], all_rows);
    for round in 0..2 {
        for (n, state) in states.iter().enumerate() {
            let (generation, time) = ((n + 1).to_string(), format!("{}ns", committed[n]));
            for as_of in [&generation, &time] {
                assert!(printed(&store, &["--as-of", as_of]) == *state, "round {round}: --as-of {as_of}");
            }
        }
        scan(&store, &["--as-of", "5"]).code(2).says(&["no such generation: 5", "the newest one is 4"]);
        scan(&store, &["--as-of", "2026-13-01"]).code(2).says(&["--as-of", "neither a generation"]);
        let before_all = scan(&store, &["--as-of", "1990-01-01", "--json"]).code(0);
        assert!(before_all.stdout.is_empty() && before_all.stderr.contains("--as-of 1990-01-01"));
        if round == 0 {
            let report = command("compact", &store, &["--json", "--memory", "64K"]).code(0).json();
            let rows: u64 = report["days"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
            assert_eq!(rows, all_rows);
            assert!(report["files_after"].as_u64() < report["files_before"].as_u64(), "{report}");
            assert_eq!(report["kept_files"], 0);
            command("verify", &store, &[]).code(0);
            let blocks = command("info", &store, &["--blocks", "--json"]).code(0).lines();
            let mut places: Vec<_> =
                blocks.iter().map(|block| [&block["date"], &block["schema"], &block["symbol"]]).collect();
            places.sort_by_key(|place| place.map(ToString::to_string));
            assert!(places.windows(2).all(|pair| pair[0] != pair[1]), "an instrument with two small blocks");
        }
    }
    let again = command("compact", &store, &[]).code(0);
    assert!(again.text().contains("nothing to compact"), "{}", again.text());
    command("compact", &dir.path().join("none"), &[]).code(1);
    assert!(!dir.path().join("none").exists(), "a compaction makes no store");
}

/// A compaction that is killed at any moment. Fails if a row is lost or doubled, or if files stay that do not belong to the
/// store. `UNITAPE_KILL_ROUNDS` asks for more moments.
#[test]
fn a_killed_compaction_changes_nothing() {
    let rounds: u64 =
        std::env::var("UNITAPE_KILL_ROUNDS").map_or(12, |n| n.parse().expect("a number of rounds"));
    let dir = tempfile::tempdir().unwrap();
    let (old, states) = grown_store(dir.path());
    let (mut kills, mut took_us) = (0, 20_000);
    for round in 0..rounds * 4 {
        if kills >= rounds {
            break;
        }
        let mut rng = Rng::new(round + 1);
        let store = dir.path().join(format!("killed-{round}"));
        std::fs::copy(old.with_extension("key"), store.with_extension("key")).unwrap();
        for (name, bytes) in common::files(&old) {
            let path = store.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let mut child = unitape()
            .args(["store", "compact", store.to_str().unwrap(), "--memory", "64K"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(rng.below(took_us)));
        child.kill().unwrap();
        kills += u64::from(child.wait().unwrap().code().is_none());
        assert!(printed(&store, &[]) == states[3], "round {round}: another answer");
        assert!(printed(&store, &["--as-of", "2"]) == states[1], "round {round}: another earlier answer");
        command("verify", &store, &[]).code(0);
        let since = Instant::now();
        command("compact", &store, &["--memory", "64K"]).code(0);
        took_us = took_us.max(since.elapsed().as_micros() as u64).min(2_000_000);
        assert!(printed(&store, &[]) == states[3], "round {round}: another answer after it was made good");
        let verified = command("verify", &store, &["--json"]).code(0).lines();
        assert_eq!(verified.len(), 1, "round {round}: files are left: {verified:?}");
        std::fs::remove_dir_all(&store).unwrap();
    }
    assert!(kills > 0, "compactions end before they can be killed");
}
