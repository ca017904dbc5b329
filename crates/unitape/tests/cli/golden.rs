//! A tape and a journal that the release f0271f1 wrote, read by this one; its store is refused.
//! `vectors/golden/f0271f1/README.md` says how they were made. Nobody makes them again.

use crate::common::{self, cat, file, files, finish, order, root, run, unitape};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// SHA-256 over the name and the bytes of each golden file.
const DIGEST: &str = "3283c49c603595bdd424611da8e628a41b80bbbdb7dc4f681df68d287c2a56e1";

fn golden(name: &str) -> PathBuf {
    root().join("vectors/golden/f0271f1").join(name)
}

/// The lines that the old release printed.
fn printed(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(golden(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Asserts that each line has all that it had in the old release. A field may be new if `is_new` says so.
#[track_caller]
fn assert_kept(now: &[Value], old: &[Value], is_new: impl Fn(&str, &Value) -> bool) {
    assert_eq!(now.len(), old.len());
    for (now, old) in now.iter().zip(old) {
        let (now_fields, old_fields) = (now.as_object().unwrap(), old.as_object().unwrap());
        for (name, value) in old_fields {
            assert_eq!(now_fields.get(name), Some(value), "{name} of {old}");
        }
        for (name, value) in now_fields.iter().filter(|(name, _)| !old_fields.contains_key(*name)) {
            assert!(is_new(name, value), "{name} is new in {now}");
        }
    }
}

/// An old tape says nothing of a field that came later.
fn is_nothing(_: &str, value: &Value) -> bool {
    *value == 0
}

/// A copy that a test may write to.
fn copy(name: &str, to: &Path) -> PathBuf {
    let to = to.join(name);
    for (file, bytes) in files(&golden(name)) {
        let path = to.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    to
}

/// A golden file that was made again would hide that an old tape can no longer be read.
#[test]
fn the_golden_files_are_those_of_the_old_release() {
    let mut hash = Sha256::new();
    for (name, bytes) in files(&golden("")).into_iter().filter(|(name, _)| name != "README.md") {
        hash.update(format!("{name} {}\n", bytes.len()));
        hash.update(bytes);
    }
    let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, DIGEST, "a golden file changed; take it back from the commit before");
}

#[test]
fn an_old_tape_is_sound_and_has_the_same_events() {
    let dir = tempfile::tempdir().unwrap();
    let tape = copy("tape", dir.path());
    run(["tape", "verify", tape.to_str().unwrap()]).code(0);
    assert_kept(&cat(&tape, &["--full", "--all"]), &printed("cat.jsonl"), is_nothing);
    let entries = run(["quarantine", "list", tape.to_str().unwrap(), "--json"]).code(3).lines();
    assert_eq!(entries, printed("quarantine.jsonl"));
}

/// A writer of this release appends after the old one's end and changes nothing before it.
#[test]
fn an_old_tape_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let tape = copy("tape", dir.path());
    let more = file(dir.path(), "more.fix", [order(21), order(22)].concat());
    // The account still has the three messages in quarantine.
    common::consolidate_orders(&more, &tape, 3);
    let (before, after) = (printed("cat.jsonl"), cat(&tape, &["--full", "--all"]));
    assert_kept(&after[..before.len()], &before, is_nothing);
    let new: Vec<&str> = after[before.len()..].iter().filter_map(|event| event["oid"].as_str()).collect();
    assert_eq!(new, ["O21", "O22"]);
    run(["tape", "verify", tape.to_str().unwrap()]).code(0);
}

/// The old release's journal makes the tape that the old release had written.
#[test]
fn an_old_journal_makes_the_same_tape() {
    let dir = tempfile::tempdir().unwrap();
    copy("journal", dir.path());
    for name in ["day.toml", "kinds.jsonl", "orders.fix"] {
        std::fs::copy(golden(name), dir.path().join(name)).unwrap();
    }
    finish(unitape().arg("run").arg(dir.path().join("day.toml"))).code(3);
    // Entries in quarantine have become longer, so that what follows them has moved.
    let at_no_place = |mut events: Vec<Value>| -> Vec<Value> {
        events.iter_mut().for_each(|event| _ = event.as_object_mut().unwrap().remove("position"));
        events
    };
    let mut now = at_no_place(cat(&dir.path().join("tape"), &["--full"]));
    // `alert` and `control` have another layout since.
    let is_layout = |word: &Value| word == "layout_1";
    now.iter_mut().for_each(|event| event["flags"].as_array_mut().unwrap().retain(|word| !is_layout(word)));
    let is_of_quarantine = |name: &str, _: &Value| ["hash", "books", "venue", "instr"].contains(&name);
    assert_kept(&now, &at_no_place(printed("events.jsonl")), is_of_quarantine);
}

#[test]
fn an_old_journal_of_datagrams_is_a_capture() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("packets");
    let capture = golden("packets/00000001.pcap");
    common::consolidate_orders(&capture, &tape, 0);
    assert_eq!(cat(&tape, &[]), printed("packets.jsonl"));
}

/// Nothing of version 0 of the store was final: this release refuses it, and its tape is sealed again.
#[test]
fn an_old_store_is_refused_and_its_tape_is_sealed_again() {
    let dir = tempfile::tempdir().unwrap();
    let (old, tape, new) = (copy("store", dir.path()), copy("tape", dir.path()), dir.path().join("new"));
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());
    let before = files(Path::new(old));
    for args in [
        vec!["store", "scan", old, "--json"],
        vec!["store", "info", old],
        vec!["store", "seal", tape.to_str().unwrap(), "--store", old],
    ] {
        let ran = run(args).code(1).says(&["format 0", "seal its tapes again"]);
        assert_eq!(ran.text(), "");
    }
    assert_eq!(files(Path::new(old)), before);
    run(["store", "seal", tape.to_str().unwrap(), "--store", new]).code(0);
    let scan = run(["store", "scan", new, "--json"]).code(0).lines();
    assert_eq!(scan, cat(&tape, &[]));
    // The old release left out events without a time.
    let timed: Vec<Value> = scan.into_iter().filter(|event| event["ts"] != 0).collect();
    assert_kept(&timed, &printed("scan.jsonl"), is_nothing);
}
