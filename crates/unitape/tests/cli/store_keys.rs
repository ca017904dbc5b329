//! `store rekey` and `store erase`: the old key opens nothing, an erased day is nowhere.

use crate::common::{self, Ran, file, run};
use std::path::{Path, PathBuf};

/// A store of two days of orders.
fn store(dir: &Path) -> PathBuf {
    let day = |n: i64, oid: &str| {
        let ts = 1_710_167_400_000_000_000 + n * 86_400_000_000_000;
        format!(
            r#"{{"ts":{ts},"kind":"order_new","oid":"{oid}","side":"B","px":"9","qty":"5","venue":"XLON","instr":"I1"}}"#
        ) + "\n"
    };
    let lines = file(dir, "orders.jsonl", day(0, "FIRST") + &day(1, "SECOND"));
    let store = dir.join("ticks");
    command("seal", &lines, &["--store", store.to_str().unwrap()]).code(0);
    store
}

fn command(verb: &str, subject: &Path, options: &[&str]) -> Ran {
    run(["store", verb, subject.to_str().unwrap()].into_iter().chain(options.iter().copied()))
}

fn printed(store: &Path, options: &[&str]) -> Vec<u8> {
    command("scan", store, &[options, &["--json", "--full"]].concat()).code(0).stdout
}

#[test]
fn another_key_opens_the_store_and_the_old_one_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let (before, new_key) = (printed(&store, &[]), dir.path().join("new.key"));
    let new = ["--key", new_key.to_str().unwrap()];
    // A wrong key changes nothing, and makes no file.
    let wrong = file(dir.path(), "wrong.key", "5a".repeat(32));
    let options = ["--key", wrong.to_str().unwrap(), "--new-key", new_key.to_str().unwrap()];
    command("rekey", &store, &options).code(1).says(&["wrong key"]);
    assert!(!new_key.exists());
    let made = command("rekey", &store, &["--new-key", new_key.to_str().unwrap()]).code(0);
    assert!(made.stderr.contains("made the key") && made.text().contains("new.key alone"), "{made:?}");
    let old = command("scan", &store, &["--json"]).code(1);
    assert!(old.stdout.is_empty() && old.stderr.contains("wrong key"), "{old:?}");
    assert!(printed(&store, &new) == before, "another store");
    command("verify", &store, &new).code(0);
    // Sealing goes on with the new key.
    let lines = dir.path().join("orders.jsonl");
    let again = ["--store", store.to_str().unwrap(), "--json"];
    let sealed = command("seal", &lines, &[&again[..], &new].concat()).code(0).json();
    assert_eq!(sealed["rows"], 0);
}

#[test]
fn an_erased_day_is_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let erased = command("erase", &store, &["--date", "2024-03-11", "--json"]).code(0).json();
    assert_eq!((&erased["rows"], &erased["files"], &erased["kept_files"]), (&1.into(), &1.into(), &0.into()));
    for options in [&[][..], &["--as-of", "1"], &["--date", "2024-03-11"]] {
        let text = String::from_utf8(printed(&store, options)).unwrap();
        assert!(!text.contains("FIRST"), "{options:?}: {text}");
    }
    assert!(String::from_utf8(printed(&store, &[])).unwrap().contains("SECOND"));
    assert!(!common::files(&store).keys().any(|name| name.contains("2024-03-11")));
    command("verify", &store, &[]).code(0);
    let again = command("erase", &store, &["--date", "2024-03-11"]).code(0);
    assert!(again.text().contains("nothing to erase"), "{}", again.text());
    let lines = dir.path().join("orders.jsonl");
    let sealed = command("seal", &lines, &["--store", store.to_str().unwrap(), "--json"]).code(0).json();
    assert_eq!(sealed["rows"], 0, "the day comes back");
}
