//! `store rekey` and `store erase`: the old key opens nothing, an erased day and an erased name are nowhere.

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
    let inside = store.join("inside.key");
    command("rekey", &store, &["--new-key", inside.to_str().unwrap()]).code(2).says(&["in every copy"]);
    assert!(!inside.exists());
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

/// Fails if a name can be read after it was erased, or if an event goes with it.
#[test]
fn an_erased_name_is_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let rows = |options: &[&str]| command("scan", &store, &[options, &["--json"]].concat()).code(0).lines();
    assert_eq!(rows(&["--symbols", "I1"]).len(), 2);
    let erased = command("erase", &store, &["--name", "I1", "--json"]).code(0).json();
    let tokens = serde_json::json!([{ "kind": "instrument", "token": 1, "shown": "erased-1" }]);
    assert_eq!(
        (&erased["name"], &erased["tokens"], &erased["kept_files"]),
        (&"I1".into(), &tokens, &0.into())
    );
    for options in [&[][..], &["--as-of", "1"]] {
        let rows = rows(options);
        assert!(rows.len() == 2 && rows.iter().all(|row| row["instr"] == "erased-1"), "{rows:?}");
    }
    for row in rows(&["--schema", "mbo"]) {
        assert_eq!(
            (&row["symbol"], &row["venue"], &row["instrument_id"]),
            (&"erased-1".into(), &"XLON".into(), &1.into())
        );
    }
    for name in ["I1", "erased-1"] {
        let found = command("scan", &store, &["--symbols", name, "--json"]).code(0);
        assert!(
            found.stdout.is_empty() && found.stderr.contains("nothing in the store has the symbol"),
            "{found:?}"
        );
    }
    let info = command("info", &store, &["--symbols", "--json"]).code(0).lines();
    assert!(info.iter().all(|line| line["symbol"] == "erased-1"), "{info:?}");
    command("verify", &store, &[]).code(0);
    command("erase", &store, &["--name", "I1"]).code(1).says(&["nothing in the store is called `I1`"]);
    command("erase", &store, &[]).code(2).says(&["--date", "--name"]);
    command("erase", &store, &["--name", "XLON", "--date", "2024-03-11"]).code(2).says(&["--date", "--name"]);
    let venue = command("erase", &store, &["--name", "XLON"]).code(0);
    assert_eq!(venue.text(), "the venue XLON is erased: its events have the name erased-1\n");
    // The tape of another file has the name again.
    let line = r#"{"ts":1710167500000000000,"kind":"order_new","oid":"THIRD","side":"B","px":"9","qty":"5","venue":"XLON","instr":"I1"}"#;
    let more = file(dir.path(), "more.jsonl", line.to_owned() + "\n");
    command("seal", &more, &["--store", store.to_str().unwrap()]).code(0);
    let third = rows(&["--symbols", "I1"]);
    assert!(third.len() == 1 && third[0]["oid"] == "THIRD" && third[0]["venue"] == "XLON", "{third:?}");
    assert_eq!(rows(&[]).len(), 3);
    command("verify", &store, &[]).code(0);
}
