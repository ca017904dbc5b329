//! The raw log of the quarantine is evidence: bytes that have changed are damage for every reader.
//!
//! A digit of a refused price once changed places in `quarantine.raw`, and a retry made a trade of it; `tape verify`
//! called a tape whole whose raw log had been cut or removed.

use crate::common::{self, cat, file, fix, order, order_with, quarantine, root, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use unitape_model::{Event, EventBuilder, EventField, EventKind, EventSchema};
use unitape_tape::{Reader, StartPosition, Writer, WriterOptions};

/// Messages that a mended mapping knows, between orders.
fn tape(dir: &Path) -> PathBuf {
    let unknown = |n: u32| {
        fix(&format!(
            "35=ZZ|49=XLON|56=U|34={n}|52=20260302-00:00:0{n}|60=20260302-00:00:0{n}|37=N{n}|207=XNEW|58=1234{n}|"
        ))
    };
    let bytes = [order(1), unknown(2), order(3), order_with(4, "44=1.0000000001|"), unknown(5), order(6)];
    let orders = file(dir, "orders.fix", bytes.concat());
    let tape = dir.join("t");
    common::consolidate_orders(&orders, &tape, 3);
    tape
}

/// The shipped mapping with a rule for what it does not know.
fn mended(dir: &Path) -> PathBuf {
    let shipped = std::fs::read_to_string(root().join("mappings/fix44-orders.toml")).unwrap();
    let rule = "\n[[rule]]\nwhen = { \"35\" = \"ZZ\" }\n[[rule.event]]\nkind = \"news\"\n[rule.event.fields]\nnews_id = \"37\"\nheadline = \"58\"\n";
    file(dir, "mended.toml", shipped.replacen("name = \"fix44-orders\"", "name = \"mended\"", 1) + rule)
}

/// Puts other bytes of the same length in place of the first ones like these.
fn change(raw: &Path, from: &[u8], to: &[u8]) {
    let mut bytes = std::fs::read(raw).unwrap();
    let at = bytes.windows(from.len()).position(|w| w == from).expect("they are there");
    bytes[at..at + to.len()].copy_from_slice(to);
    std::fs::write(raw, bytes).unwrap();
}

fn tape_command<'a>(words: [&'a str; 2], tape: &'a Path, more: &[&'a str]) -> common::Ran {
    run(words.into_iter().chain([tape.to_str().unwrap()]).chain(more.iter().copied()))
}

#[test]
fn changed_digits_are_damage_and_no_event() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path());
    let sound = tape_command(["tape", "verify"], &tape, &["--json"]).code(0).json();
    assert_eq!(sound["quarantine"], serde_json::json!({"intact": 3, "without_checksum": 0, "damaged": 0}));
    change(&tape.join("quarantine.raw"), b"58=12342", b"58=21342");

    let out = tape_command(["tape", "verify"], &tape, &[]).code(3);
    assert!(out.text().contains("quarantine.raw") && out.text().contains("checksum"), "{}", out.text());
    let list = tape_command(["quarantine", "list"], &tape, &["--json"]).code(3).lines();
    let damaged: Vec<bool> = list.iter().map(|e| e["damaged"].is_string()).collect();
    assert_eq!(damaged, [true, false, false]);
    let position = list[0]["position"].to_string();
    let shown = tape_command(["quarantine", "show"], &tape, &[&position, "--raw"]).code(3);
    assert!(shown.stdout.is_empty() && shown.stderr.contains("checksum"), "{}", shown.stderr);
    let shown = tape_command(["quarantine", "show"], &tape, &[&position, "--raw", "--no-verify"]).code(0);
    assert!(shown.text().contains("58=21342"), "who asks for it unchecked gets it");
    tape_command(["quarantine", "show"], &tape, &[&list[2]["position"].to_string()]).code(0);

    // Repair names what is lost, and leaves what is not.
    let before = std::fs::read(tape.join("quarantine.raw")).unwrap();
    for options in [&[][..], &["--apply"]] {
        let out = tape_command(["tape", "repair"], &tape, options).code(3);
        for words in ["lost", "quarantine.raw", "orders/orders.fix at byte"] {
            assert!(out.text().contains(words), "{options:?}: {}", out.text());
        }
        assert_eq!(std::fs::read(tape.join("quarantine.raw")).unwrap(), before);
    }

    // The sound one is recovered, the damaged one is not.
    let mapping = mended(dir.path());
    let retry = ["--mapping", mapping.to_str().unwrap(), "--json"];
    let done = tape_command(["quarantine", "retry"], &tape, &retry).code(3).json();
    assert_eq!(
        (&done["tried"], &done["recovered"], &done["left"]),
        (&3.into(), &1.into(), &2.into()),
        "{done}"
    );
    assert_eq!(done["damaged"].as_array().unwrap().len(), 1);
    let news: Vec<Value> = cat(&tape, &["--kind", "news"]).iter().map(|e| e["headline"].clone()).collect();
    assert_eq!(news, ["12345"]);
}

/// A pipe has nobody who writes into it, so a reader of it waits for ever; a directory and a device are no log either.
#[test]
fn what_is_no_file_in_the_place_of_the_raw_log_is_damage() {
    let makers: [&dyn Fn(&Path); 3] = [
        &|raw| assert!(std::process::Command::new("mkfifo").arg(raw).status().unwrap().success()),
        &|raw| std::fs::create_dir(raw).unwrap(),
        &|raw| std::os::unix::fs::symlink("/dev/zero", raw).unwrap(),
    ];
    for make in makers {
        let dir = tempfile::tempdir().unwrap();
        let tape = tape(dir.path());
        let raw = tape.join("quarantine.raw");
        std::fs::remove_file(&raw).unwrap();
        make(&raw);
        let merged = dir.path().join("merged");
        let orders = dir.path().join("orders.fix");
        for command in [
            &["tape", "verify", tape.to_str().unwrap()][..],
            &["quarantine", "list", tape.to_str().unwrap()],
            &["quarantine", "retry", tape.to_str().unwrap()],
            &["consolidate", "--tape-in", tape.to_str().unwrap(), "--tape", merged.to_str().unwrap()],
            &["consolidate", orders.to_str().unwrap(), "--tape", tape.to_str().unwrap(), "--new-source"],
        ] {
            let ran = run(command).code(3);
            let said = ran.text().to_owned() + &ran.stderr;
            assert!(said.contains("quarantine.raw"), "{command:?}: {said}");
        }
    }
}

#[test]
fn a_raw_log_that_was_cut_or_removed_is_damage() {
    for cut in [Some(40), Some(0), None] {
        let dir = tempfile::tempdir().unwrap();
        let tape = tape(dir.path());
        let raw = tape.join("quarantine.raw");
        let left = std::fs::metadata(&raw).unwrap().len();
        match cut {
            Some(bytes) => {
                std::fs::File::options().write(true).open(&raw).unwrap().set_len(left - 1 - bytes).unwrap()
            }
            None => std::fs::remove_file(&raw).unwrap(),
        }
        for json in [&["--json"][..], &[]] {
            let out = tape_command(["tape", "verify"], &tape, json).code(3);
            assert!(out.text().contains("quarantine.raw"), "{cut:?}: {}", out.text());
            assert!(!out.text().contains("intact to position"), "{cut:?}: {}", out.text());
        }
        let list = tape_command(["quarantine", "list"], &tape, &["--json"]).code(3).lines();
        assert!(list.last().unwrap()["damaged"].is_string(), "{cut:?}");
        tape_command(["tape", "repair"], &tape, &[]).code(3);
        let done = tape_command(["quarantine", "retry"], &tape, &["--json"]);
        assert_eq!(done.code, Some(3), "{cut:?}: {}", done.stderr);
    }
}

/// A tape of an earlier build has no checksums in its quarantine events: it is read, and `verify` says so.
#[test]
fn entries_without_a_checksum_are_read_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path());
    let older = dir.path().join("older");
    let id = unitape_tape::tape_status(&tape).unwrap().id;
    let (mut writer, _) = Writer::open(&older, id, WriterOptions::default()).unwrap();
    let mut reader = Reader::open(&tape, StartPosition::Oldest).unwrap();
    let mut unit = Vec::new();
    while let Some(frame) = reader.next().unwrap() {
        match Event::new(frame.bytes).filter(|e| e.kind() == EventKind::Quarantine) {
            Some(event) => without_hash(&event, &mut unit),
            None => unit.extend_from_slice(frame.bytes),
        }
        if frame.header.is_last() {
            writer.append(&unit).unwrap();
            unit.clear();
        }
    }
    writer.close().unwrap();
    std::fs::copy(tape.join("quarantine.raw"), older.join("quarantine.raw")).unwrap();

    let out = tape_command(["tape", "verify"], &older, &["--json"]).code(0).json();
    assert_eq!(out["quarantine"], serde_json::json!({"intact": 0, "without_checksum": 3, "damaged": 0}));
    assert!(tape_command(["tape", "verify"], &older, &[]).code(0).text().contains("3 carry no checksum"));
    let (entries, newer) = (quarantine(&older), quarantine(&tape));
    assert_eq!(entries.len(), newer.len());
    let shown = ["quarantine", "show"];
    tape_command(shown, &older, &[&entries[0]["position"].to_string()]).code(0);
    // Their length is checked all the same.
    std::fs::File::options().write(true).open(older.join("quarantine.raw")).unwrap().set_len(10).unwrap();
    tape_command(["tape", "verify"], &older, &[]).code(3);
}

/// The event as an earlier build wrote it.
fn without_hash(event: &Event<'_>, out: &mut Vec<u8>) {
    let mut e = EventBuilder::begin(out, EventKind::Quarantine, event.ts_event());
    e.source(event.source(), event.offset());
    for spec in
        EventSchema::for_kind(EventKind::Quarantine).fields.iter().filter(|s| s.field != EventField::Hash)
    {
        if let Some(value) = event.field(spec.field, &mut [0; 36]) {
            e.set(spec, value).unwrap();
        }
    }
    event.unmapped_fields().for_each(|(name, json)| e.keep_unmapped(name, json).unwrap());
    e.finish(event.header().flags()).unwrap();
}

/// Events of a retry with another mapping name that mapping, and the source keeps its own.
#[test]
fn recovered_events_name_the_mapping_that_made_them() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path());
    let mapping = mended(dir.path());
    let retry = ["--mapping", mapping.to_str().unwrap()];
    tape_command(["quarantine", "retry"], &tape, &retry).code(3);
    let all = cat(&tape, &["--all", "--full"]);
    let mapping_of = |event: &Value| {
        let id = &event["src"]["id"];
        let definition = all.iter().find(|e| e["kind"] == "source" && e["index"] == *id).unwrap();
        definition["mapping"].as_str().unwrap().split('@').next().unwrap().to_owned()
    };
    let of_kind =
        |kind: &str| -> Vec<String> { all.iter().filter(|e| e["kind"] == kind).map(mapping_of).collect() };
    assert_eq!(of_kind("news"), ["mended", "mended"]);
    assert_eq!(of_kind("order_new"), ["fix44-orders"; 3]);
    let news = all.iter().find(|e| e["kind"] == "news").unwrap();
    assert_eq!(
        (&news["src"]["file"], &news["src"]["offset"]),
        (&"orders.fix".into(), &order(1).len().into())
    );
    let info = tape_command(["tape", "info"], &tape, &["--json"]).code(0).json();
    assert_eq!(info["sources"].as_array().unwrap().len(), 1);
    assert!(
        info["sources"][0]["mapping"].as_str().unwrap().starts_with("fix44-orders@"),
        "{}",
        info["sources"]
    );
    let states: Vec<Value> = quarantine(&tape).iter().map(|e| e["recovered"].clone()).collect();
    assert_eq!(states, [true, false, true]);

    // The same command again, and more of the feed: as if no retry had been.
    let orders = dir.path().join("orders.fix");
    common::consolidate_orders(&orders, &tape, 3);
    assert_eq!(cat(&tape, &["--all", "--full"]), all);
    let more = file(dir.path(), "more.fix", [order(7), order(8)].concat());
    common::consolidate_orders(&more, &tape, 3);
    assert_eq!(common::oids(&tape), ["O1", "O3", "O6", "O7", "O8"]);
    tape_command(["tape", "verify"], &tape, &[]).code(0);
}

#[test]
fn a_mapping_of_another_format_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path());
    let before = common::files(&tape);
    let ran = tape_command(["quarantine", "retry"], &tape, &["--mapping", "nyse-taq-trades"]).code(2);
    let ran = ran.says(&["nyse-taq-trades", "csv", "fix"]);
    assert!(ran.stdout.is_empty(), "{}", ran.text());
    let after = common::files(&tape);
    let kept = |files: &std::collections::BTreeMap<String, Vec<u8>>| {
        files
            .iter()
            .filter(|(name, _)| !name.starts_with("run"))
            .map(|(n, b)| (n.clone(), b.clone()))
            .collect::<Vec<_>>()
    };
    assert!(kept(&before) == kept(&after), "a refused retry changed the tape");
}

/// An unreadable message has no time before the first time of its feed, and its year is not 1970.
#[test]
fn no_time_is_printed_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let orders = file(dir.path(), "orders.fix", [b"garbage\n".to_vec(), order(1)].concat());
    let tape = dir.path().join("t");
    common::consolidate_orders(&orders, &tape, 3);
    let printed = tape_command(["tape", "cat"], &tape, &["--all"]).code(0);
    let kinds: Vec<&str> = printed
        .text()
        .lines()
        .filter(|line| line.split_whitespace().nth(1) == Some("-"))
        .map(|line| line.split_whitespace().nth(2).unwrap())
        .collect();
    assert!(kinds.contains(&"source") && kinds.contains(&"quarantine"), "{}", printed.text());
    assert!(!printed.text().contains("1970-") && !printed.text().contains("1677-"), "{}", printed.text());
    assert!(printed.text().contains("2026-03-02 00:00:01.000000000  order_new"), "{}", printed.text());
}
