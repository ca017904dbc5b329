//! `decode iex`, and captures of IEX by the command line onto a tape, into books and out of the quarantine.

use crate::common::{cat, file, root, run, run_with_stdin};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;

fn vector(name: &str) -> Vec<u8> {
    std::fs::read(root().join("vectors/iex").join(name)).unwrap()
}

fn consolidate(capture: &Path, tape: &Path, code: i32) -> serde_json::Value {
    let args = [OsStr::new("consolidate"), capture.as_os_str(), "--tape".as_ref(), tape.as_os_str()];
    run(args.into_iter().chain([OsStr::new("--json")])).code(code).lines()[0].clone()
}

/// A bad message in the middle of a capture must cost that message only.
#[test]
fn iex_messages_from_stdin_and_the_bad_one_among_them() {
    let clean = run_with_stdin(["decode", "iex", "-", "--json"], &vector("deep.pcapng")).code(0).lines();
    let mut bad = vector("deep.pcapng");
    let trade = bad.windows(3).position(|bytes| bytes == [38, 0, b'T']).unwrap();
    bad[trade + 2] = b'z';
    let lines = run_with_stdin(["decode", "iex", "-", "--json"], &bad).code(3).lines();
    assert_eq!(lines.len(), clean.len());
    let index = lines.iter().position(|line| line.get("error").is_some()).unwrap();
    assert_eq!(
        (&lines[index]["error"]["code"], &lines[index]["offset"]),
        (&"unknown_type".into(), &(trade as u64).into())
    );
    assert_eq!(lines[index + 1], clean[index + 1]);
    let text = run_with_stdin(["decode", "iex", "-"], &bad).code(3);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("no message of DEEP 1.0 has the type z, 38 bytes are stated"), "{text}");
}

/// From a file as it is downloaded, of which nothing is said, to the books of its orders.
#[test]
fn a_downloaded_iex_capture_becomes_books() {
    let dir = tempfile::tempdir().unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&vector("deep_plus.pcap")).unwrap();
    let capture = file(dir.path(), "20260302_IEXTP1_DEEP_PLUS1.0.pcap.gz", gzip.finish().unwrap());
    let tape = dir.path().join("tape");
    let summary = consolidate(&capture, &tape, 0);
    assert_eq!((&summary["quarantined"], &summary["by_kind"]["exec"]), (&0.into(), &1.into()), "{summary}");
    let book = |time: &str| {
        let args = [OsStr::new("book"), tape.as_os_str(), "--orders".as_ref(), "--json".as_ref()];
        run(args.into_iter().chain(["--at", time].map(OsStr::new))).code(0).lines()[0].clone()
    };
    // After the amends: the order that lost its priority is behind the other one.
    let half_past_nine = book("2026-03-02T14:30:00.009Z");
    assert_eq!(half_past_nine["bids"][0]["queue"][0]["oid"], "1001", "{half_past_nine}");
    assert_eq!(half_past_nine["bids"][0]["qty"], "300");
    assert_eq!(half_past_nine["asks"][0]["qty"], "600");
}

/// A message of a packet that a mended mapping can read must come out of the quarantine by itself.
#[test]
fn an_iex_message_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let shipped = std::fs::read_to_string(root().join("mappings/iex.toml")).unwrap();
    let suffix = format!("suffix = \"{}\"", "x".repeat(255));
    let mine = shipped.replace("name = \"iex\"", "name = \"mine\"");
    let mapping = file(dir.path(), "mine.toml", mine.replace("suffix = \"\"", &suffix));
    let tape = dir.path().join("tape");
    let feed = format!("iex=iex:{}:{}", mapping.display(), root().join("vectors/iex/tops.pcap").display());
    let args =
        [OsStr::new("consolidate"), "--feed".as_ref(), feed.as_ref(), "--tape".as_ref(), tape.as_os_str()];
    run(args).code(3);
    let trades = |tape: &Path| cat(tape, &["--kind", "trade"]).len();
    assert_eq!(trades(&tape), 0);
    file(dir.path(), "mine.toml", mine);
    let args = [OsStr::new("quarantine"), "retry".as_ref(), tape.as_os_str(), "--mapping".as_ref()];
    run(args.into_iter().chain([mapping.as_os_str()])).code(0);
    assert_eq!(trades(&tape), 2, "the trade and its break");
}
