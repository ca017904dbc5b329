//! A FIX message of any size is one message: in quarantine with all its bytes, its neighbours on the tape, in bounded
//! memory. It was once cut into an entry for each mebibyte.

use crate::common::{self, file, oids, order, order_with, quarantine, run};
use std::path::Path;

/// Orders around one of this many bytes of text.
fn input(bytes: usize) -> Vec<u8> {
    let text = format!("58={}|", "x".repeat(bytes));
    [order(1), order(2), order_with(3, &text), order(4), order(5)].concat()
}

fn consolidated(dir: &Path, workers: &str, name: &str, input: &Path) -> std::path::PathBuf {
    let tape = dir.join(name);
    let feed = common::orders_option("orders", input);
    let args =
        ["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--workers", workers, "--json"];
    let account = run(args).code(3).json();
    assert_eq!((&account["messages"], &account["quarantined"]), (&5.into(), &1.into()), "{account}");
    tape
}

#[test]
fn a_large_message_is_quarantined_once() {
    for bytes in [1 << 20, 3 << 20, 50_000_000] {
        let dir = tempfile::tempdir().unwrap();
        let all = input(bytes);
        let orders = file(dir.path(), "orders.fix", &all);
        let (start, end) = (order(1).len() * 2, all.len() - order(4).len() * 2);
        let tape = consolidated(dir.path(), "1", "one", &orders);
        assert_eq!(oids(&tape), ["O1", "O2", "O4", "O5"], "{bytes}: the neighbours live");
        let entries = quarantine(&tape);
        assert_eq!(entries.len(), 1, "{bytes}");
        assert_eq!(
            (&entries[0]["offset"], &entries[0]["length"], &entries[0]["reason"]),
            (&start.into(), &(end - start).into(), &"bad_body_length".into())
        );
        let raw = std::fs::read(tape.join("quarantine.raw")).unwrap();
        assert!(raw == all[start..end], "{bytes}: all of its bytes are kept");
        let verified = run(["tape", "verify", tape.to_str().unwrap(), "--json"]).code(0).json();
        assert_eq!(verified["quarantine"]["intact"], 1);
        assert!(!tape.join("quarantine.part").exists());
        if bytes < 10_000_000 {
            let many = consolidated(dir.path(), "3", "many", &orders);
            common::assert_same(&tape, &many, "workers");
        }
        // The same command finds nothing to do.
        consolidated(dir.path(), "1", "one", &orders);
        assert_eq!(quarantine(&tape).len(), 1);
    }
}

/// A message that ends the file is whole when the file has grown.
#[test]
fn a_large_message_that_the_file_ended_in_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let all = input(3 << 20);
    let orders = file(dir.path(), "orders.fix", &all[..all.len() - order(4).len() * 2 - (1 << 20)]);
    let tape = dir.path().join("t");
    let feed = common::orders_option("orders", &orders);
    let args = ["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"];
    let account = run(args).code(3).json();
    assert_eq!((&account["messages"], &account["quarantined"]), (&3.into(), &1.into()), "{account}");
    std::fs::write(&orders, &all).unwrap();
    let account = run(args).code(3).json();
    assert_eq!((&account["messages"], &account["quarantined"]), (&5.into(), &1.into()), "{account}");
    assert_eq!(oids(&tape), ["O1", "O2", "O4", "O5"]);
    run(["tape", "verify", tape.to_str().unwrap()]).code(0);
}
