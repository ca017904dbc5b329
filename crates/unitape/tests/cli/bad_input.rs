//! Bad input, one test each: a reason in quarantine that names the place, or an error that names file and offset;
//! neighbours are kept; the exit code is the one of the contract.

use crate::common::{
    self, assert_closes, assert_same, cat, consolidate_orders, file, fix, jse, oids, order, order_with, run,
    unitape,
};
use serde_json::Value;
use std::path::Path;

/// Consolidates `O1`, `bad`, `O3`: the bad one is in quarantine at its place with its raw bytes, both neighbours are
/// on the tape. Gives the entry.
#[track_caller]
fn between_neighbours(bad: &[u8], reason: &str) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let orders = file(dir.path(), "orders.fix", [&order(1), bad, &order(3)].concat());
    let tape = dir.path().join("t");
    let account = consolidate_orders(&orders, &tape, 3);
    assert_closes(&account);
    assert_eq!(account["quarantined"], 1, "{account}");
    assert_eq!(oids(&tape), ["O1", "O3"]);
    let mut entries = common::quarantine(&tape);
    assert_eq!(entries.len(), 1, "{entries:?}");
    let entry = entries.pop().unwrap();
    assert_eq!(entry["reason"], reason, "{entry}");
    assert_eq!(entry["offset"], order(1).len(), "{entry}");
    assert_eq!(entry["length"], bad.len(), "{entry}");
    assert_eq!(entry["source"], "orders/orders.fix");
    let position = entry["position"].to_string();
    let show = ["quarantine", "show", tape.to_str().unwrap(), &position, "--raw"];
    assert_eq!(run(show).code(0).stdout, bad);
    // The tape says the same to a reader of events.
    let events = cat(&tape, &["--kind", "quarantine"]);
    assert_eq!(events[0]["reason"], reason);
    assert_eq!(events[0]["offset"], entry["offset"]);
    entry
}

#[test]
fn a_wrong_checksum() {
    let mut bad = order(2);
    let digit = bad.len() - 2;
    bad[digit] = if bad[digit] == b'0' { b'1' } else { b'0' };
    between_neighbours(&bad, "bad_checksum");
}

#[test]
fn a_wrong_length() {
    let text = String::from_utf8(order(2)).unwrap();
    let length = text.split('\x01').nth(1).unwrap();
    let n: u32 = length[2..].parse().unwrap();
    let body = text.replacen(length, &format!("9={}", n - 3), 1);
    let body = &body[..body.rfind("10=").unwrap()];
    let sum = body.bytes().fold(0u8, u8::wrapping_add);
    between_neighbours(format!("{body}10={sum:03}\x01").as_bytes(), "bad_body_length");
}

#[test]
fn garbage_between_messages() {
    between_neighbours(b"\x00\xff not a message \x01 at all", "garbage");
}

#[test]
fn a_message_cut_off_by_the_next() {
    let whole = order(2);
    between_neighbours(&whole[..whole.len() / 2], "truncated");
}

#[test]
fn a_truncated_last_message() {
    let dir = tempfile::tempdir().unwrap();
    let last = order(3);
    let bytes = [order(1), order(2), last[..last.len() - 9].to_vec()].concat();
    let orders = file(dir.path(), "orders.fix", &bytes);
    let tape = dir.path().join("t");
    assert_closes(&consolidate_orders(&orders, &tape, 3));
    assert_eq!(oids(&tape), ["O1", "O2"]);
    let entry = &common::quarantine(&tape)[0];
    assert_eq!(entry["reason"], "truncated");
    assert_eq!(entry["offset"], order(1).len() + order(2).len());
    assert_eq!(entry["length"], last.len() - 9);
}

#[test]
fn an_unknown_message_type() {
    let entry = between_neighbours(&fix("35=ZZ|49=XLON|56=U|34=2|52=20260302-00:00:02|"), "no_rule");
    assert!(entry["detail"].as_str().unwrap().contains("ZZ"));
}

#[test]
fn a_decimal_that_does_not_fit() {
    let entry = between_neighbours(&order_with(2, "44=0.0123456789|"), "decimal_fit");
    let detail = entry["detail"].as_str().unwrap();
    assert!(detail.contains("44") && detail.contains("0.0123456789"), "{detail}");
}

#[test]
fn a_price_beyond_the_range() {
    let dir = tempfile::tempdir().unwrap();
    let orders = file(dir.path(), "o.fix", [order(1), order_with(2, "44=99999999999|"), order(3)].concat());
    let tape = dir.path().join("t");
    consolidate_orders(&orders, &tape, 3);
    assert_eq!(oids(&tape), ["O1", "O3"]);
    assert!(common::quarantine(&tape)[0]["detail"].as_str().unwrap().contains("99999999999"));
}

/// A mapping may list the symbols that it knows; another one is refused by name.
#[test]
fn an_unknown_symbol() {
    let dir = tempfile::tempdir().unwrap();
    let mapping = file(dir.path(), "listed.toml", LISTED);
    let of = |n: u32, symbol: &str| {
        fix(&format!(
            "35=8|49=X|56=U|34={n}|52=20260302-09:00:00|37=O{n}|54=1|38=5|44=1|207=XLON|55={symbol}|"
        ))
    };
    let orders = file(dir.path(), "o.fix", [of(1, "VOD"), of(2, "WHAT"), of(3, "BARC")].concat());
    let tape = dir.path().join("t");
    let feed = format!("o=fix:{}:{}", mapping.display(), orders.display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(3);
    assert_eq!(oids(&tape), ["O1", "O3"]);
    assert_eq!(cat(&tape, &["--kind", "order_new"])[0]["instr"], "GB00BH4HKS39");
    let entry = &common::quarantine(&tape)[0];
    assert_eq!(entry["offset"], of(1, "VOD").len());
    assert!(entry["detail"].as_str().unwrap().contains("WHAT"), "{entry}");
}

const LISTED: &str = r#"
name = "listed"
format = "fix"
title = "orders of two listed symbols"
[message]
ts = "52"
[table.symbols]
VOD = "GB00BH4HKS39"
BARC = "GB0031348658"
[[rule]]
when = { "35" = "8" }
[[rule.event]]
kind = "order_new"
[rule.event.fields]
oid = "37"
side = { from = "54", table = "side" }
px = "44"
qty = "38"
venue = "207"
instr = { from = "55", table = "symbols" }
[table.side]
"1" = "B"
"2" = "S"
"#;

/// Zeros are no messages; a bare file of them is not recognised, and as a feed it is quarantine from end to end,
/// the same at any cut.
#[test]
fn a_file_of_zeros() {
    let dir = tempfile::tempdir().unwrap();
    let zeros = file(dir.path(), "zeros.bin", vec![0; 20 << 20]);
    let tape = |name: &str| dir.path().join(name);
    run(["consolidate".as_ref(), zeros.as_os_str(), "--tape".as_ref(), tape("x").as_os_str()])
        .code(3)
        .says(&["zeros.bin", "zeros", "--feed"]);
    assert!(!tape("x").exists(), "a tape was made for nothing");
    for format in ["fix:fix44-orders", "events:"] {
        let feed = format!("z={format}:{}", zeros.display());
        let mut made = Vec::new();
        for (workers, block) in [("1", "262144"), ("3", "1000003")] {
            let tape = tape(&format!("{}-{workers}", &format[..3]));
            let args =
                ["consolidate", "--feed", &feed, "--workers", workers, "--block-bytes", block, "--tape"];
            let account = run(args.into_iter().chain([tape.to_str().unwrap(), "--json"])).code(3).json();
            assert_closes(&account);
            assert_eq!(account["events"], 0);
            let total: u64 = common::quarantine(&tape).iter().map(|e| e["length"].as_u64().unwrap()).sum();
            assert_eq!(total, 20 << 20, "every byte is in quarantine");
            made.push(tape);
        }
        assert_same(&made[0], &made[1], format);
    }
}

/// Nothing identifies the format of an empty file; named as a feed, it is a complete one of no messages.
#[test]
fn an_empty_file() {
    let dir = tempfile::tempdir().unwrap();
    let empty = file(dir.path(), "empty.fix", "");
    let tape = dir.path().join("t");
    run(["consolidate".as_ref(), empty.as_os_str(), "--tape".as_ref(), tape.as_os_str()]).code(3).says(&[
        "empty.fix",
        "the file is empty",
        "--feed",
    ]);
    let account = consolidate_orders(&empty, &tape, 0);
    assert_eq!(account["messages"], 0);
    assert_eq!(account["by_feed"]["orders"]["complete"], true);
    assert_eq!(account["by_feed"]["orders"]["bytes"], 0);
    assert_eq!(consolidate_orders(&empty, &tape, 0)["messages"], 0);
}

#[test]
fn content_that_is_not_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    for (name, bytes, words) in [
        ("text.txt", &b"hello, world"[..], "hello"),
        ("packed.gz", &b"\x1f\x8b\x08\x00"[..], "gzip"),
        ("fix42.fix", &b"8=FIX.4.2\x019=5\x0135=0\x0110=161\x01"[..], "FIX.4.2"),
    ] {
        let path = file(dir.path(), name, bytes);
        run(["consolidate".as_ref(), path.as_os_str(), "--tape".as_ref(), tape.as_os_str()]).code(3).says(&[
            name,
            words,
            "--feed name=format:mapping:path",
        ]);
    }
}

#[test]
fn a_missing_file() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing.fix");
    let tape = dir.path().join("t");
    for input in [missing.display().to_string(), common::orders_option("o", &missing)] {
        let input = if input.contains('=') { vec!["--feed".to_owned(), input] } else { vec![input] };
        let args = input.into_iter().chain(["--tape".to_owned(), tape.display().to_string()]);
        run(["consolidate".to_owned()].into_iter().chain(args))
            .code(1)
            .says(&["missing.fix", "No such file"]);
    }
    assert!(!tape.exists(), "a tape was made for nothing");
}

#[test]
fn an_input_that_is_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    for args in [
        vec![dir.path().display().to_string()],
        vec!["--feed".into(), common::orders_option("o", dir.path())],
    ] {
        let args = args.into_iter().chain(["--tape".to_owned(), tape.display().to_string()]);
        run(["consolidate".to_owned()].into_iter().chain(args)).code(1).says(&["is a directory"]);
    }
}

/// The kernel refuses these even to root: a directory under a file, one in the process table, a device.
#[test]
fn a_directory_without_permission() {
    let dir = tempfile::tempdir().unwrap();
    let parent = file(dir.path(), "file", "not a directory");
    let jse = jse();
    for tape in [parent.join("tape").as_path(), Path::new("/proc/self/tape"), Path::new("/dev/null")] {
        let place = tape.display().to_string();
        run(["consolidate".as_ref(), jse.as_os_str(), "--tape".as_ref(), tape.as_os_str()])
            .code(1)
            .says(&[&place]);
    }
}

/// A full disk: the error names file and reason, committed data are whole, and when there is room
/// again the same command makes the same tape as if nothing had been.
#[test]
fn a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let tape = |name: &str| dir.path().join(name);
    let command = |tape: &Path| {
        format!(
            "'{}' consolidate '{}' --tape '{}' --segment-bytes 1048576",
            unitape().get_program().display(),
            jse().display(),
            tape.display()
        )
    };
    let sh = |script: String| common::finish(std::process::Command::new("bash").args(["-c", &script]));
    sh(command(&tape("whole"))).code(0);
    // No file may be larger than 256 KiB, so no segment can be made at all.
    sh(format!("ulimit -f 256; {}", command(&tape("t")))).code(1).says(&[
        "disk full",
        "/t/",
        "File too large",
    ]);
    sh(command(&tape("t"))).code(0);
    assert_same(&tape("whole"), &tape("t"), "after the disk was full");
}

/// The disk fills up in the middle of a run: a file system of two megabytes.
#[test]
fn a_disk_that_fills_up() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=2m none '{0}' && '{1}' consolidate '{2}' --tape '{0}/t' --segment-bytes 524288; echo code $?; \
         '{1}' tape verify '{0}/t'; echo verify $?; mount -o remount,size=64m '{0}' && \
         '{1}' consolidate '{2}' --tape '{0}/t' --segment-bytes 524288; echo again $?; cp -r '{0}/t' '{3}'",
        file(dir.path(), "unused", "").with_file_name("mnt").display(),
        unitape().get_program().display(),
        jse().display(),
        dir.path().join("copy").display(),
    );
    std::fs::create_dir(dir.path().join("mnt")).unwrap();
    // A mount of its own, seen by nobody else and gone with the shell.
    let out = common::finish(std::process::Command::new("unshare").args(["-rm", "bash", "-c", &script]));
    let said = out.text().to_owned() + &out.stderr;
    for words in ["code 1", "disk full", "unverified", "verify 3", "again 0"] {
        assert!(said.contains(words), "no {words:?} in {said}");
    }
    let whole = dir.path().join("whole");
    run([
        "consolidate".as_ref(),
        jse().as_os_str(),
        "--tape".as_ref(),
        whole.as_os_str(),
        "--segment-bytes".as_ref(),
        "524288".as_ref(),
    ])
    .code(0);
    assert_same(&whole, &dir.path().join("copy"), "after the disk was full");
}

/// A tape of a later format must not be guessed at.
#[test]
fn a_tape_of_a_foreign_version() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    let orders = file(dir.path(), "o.fix", order(1));
    consolidate_orders(&orders, &tape, 0);
    let meta = tape.join("tape.toml");
    let text = std::fs::read_to_string(&meta).unwrap();
    let line = text.lines().find(|l| l.starts_with("format")).unwrap();
    std::fs::write(&meta, text.replace(line, "format = 99")).unwrap();
    let t = tape.to_str().unwrap();
    let feed = common::orders_option("orders", &orders);
    for args in
        [vec!["tape", "cat", t], vec!["tape", "info", t], vec!["consolidate", "--feed", &feed, "--tape", t]]
    {
        run(args).code(1).says(&["tape.toml", "99"]);
    }
}

/// A directory of other things is not accepted as a tape, nor made into one.
#[test]
fn a_directory_that_is_no_tape() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path().to_str().unwrap();
    for args in [["tape", "cat", d], ["tape", "info", d], ["tape", "verify", d], ["quarantine", "list", d]] {
        run(args).code(1).says(&[d]);
    }
    let missing = dir.path().join("none");
    run(["tape".as_ref(), "cat".as_ref(), missing.as_os_str()]).code(1).says(&["none"]);
}

/// Every byte of a tape is covered: damage is found by `verify`, which names the file and ends with 3, and `cat` gives
/// what comes before it.
#[test]
fn a_damaged_tape() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    let orders = file(dir.path(), "o.fix", (1..200).map(order).collect::<Vec<_>>().concat());
    consolidate_orders(&orders, &tape, 0);
    let t = tape.to_str().unwrap();
    run(["tape", "verify", t]).code(0);
    let segment = tape.join("segments").join("0000000000000000.seg");
    let bytes = std::fs::read(&segment).unwrap();
    let at = 4096 + 64 * 101 + 20;
    let mut damaged = bytes.clone();
    damaged[at] ^= 4;
    std::fs::write(&segment, &damaged).unwrap();
    let report = run(["tape", "verify", t, "--json"]).code(3).json();
    let problems = report["problems"].as_array().unwrap();
    assert!(!problems.is_empty());
    assert!(problems[0].as_str().unwrap().contains("0000000000000000.seg"), "{problems:?}");
    assert!(problems[0].as_str().unwrap().contains("offset"), "{problems:?}");
    // Damage of a header ends the reading: nothing of its span is given, or without checks what comes before it.
    let mut damaged = bytes;
    let header = 4096 + 64 * 100;
    damaged[header..header + 64].fill(0xee);
    std::fs::write(&segment, &damaged).unwrap();
    let out = run(["tape", "cat", t, "--json", "--kind", "order_new"]);
    assert!(out.code == Some(3) && out.text().is_empty(), "{out:?}");
    let out = run(["tape", "cat", t, "--json", "--kind", "order_new", "--no-verify"]).code(3);
    assert!(out.text().lines().count() > 5);
    run(["tape", "verify", t]).code(3);
}

/// A file that has changed since its tape was begun is refused by name, not mixed.
#[test]
fn an_input_that_changed_since() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    let pipe_end = (1..30_000).map(order).collect::<Vec<_>>().concat();
    let orders = file(dir.path(), "o.fix", &pipe_end);
    let feed = common::orders_option("orders", &orders);
    // Begun and stopped at once.
    let mut child = unitape()
        .args(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--block-bytes", "4096"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let has_tape = || tape.join("definitions").exists() || std::fs::read_dir(tape.join("segments")).is_ok();
    while !has_tape() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    assert!(has_tape(), "ended before there was a tape");
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::write(&orders, order(7)).unwrap();
    let out = run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]);
    // Killed before the source was defined, the tape knows of no other content; otherwise it says so.
    if out.code != Some(0) {
        out.code(3).says(&["o.fix", "orders", "changed"]);
    } else {
        assert_eq!(oids(&tape), ["O7"]);
    }
}
