//! `decode itch`, and ITCH by the command line onto a tape and into books.

use crate::common::{file, root, run, run_with_stdin};

fn vectors() -> Vec<u8> {
    std::fs::read(root().join("vectors/itch/20200130.itch50")).unwrap()
}

/// A bad message in the middle of a day must cost that message only.
#[test]
fn messages_from_stdin_and_the_bad_one_among_them() {
    let clean = run_with_stdin(["decode", "itch", "-", "--json"], &vectors()).code(0).lines();
    assert_eq!(clean.len(), 23);
    let mut bad = vectors();
    let at = bad.windows(3).position(|w| w == [0, 36, b'A']).unwrap();
    bad[at + 2 + 19] = b'Q';
    let lines = run_with_stdin(["decode", "itch", "-", "--json"], &bad).code(3).lines();
    assert_eq!(lines.len(), 23);
    assert_eq!(
        (&lines[10]["error"]["code"], &lines[10]["offset"]),
        (&"bad_side".into(), &(at as u64).into())
    );
    assert_eq!((&lines[11]["type"], &lines[11]["fields"]["price"]), (&"F".into(), &"12.3001".into()));
    let text = run_with_stdin(["decode", "itch", "-"], &bad).code(3);
    let text = String::from_utf8_lossy(&text.stdout);
    assert!(text.contains("! bad_side: side: neither B nor S"), "{text}");
}

/// From a file that nothing is said of to the books of its orders.
#[test]
fn a_bare_file_becomes_a_tape() {
    let dir = tempfile::tempdir().unwrap();
    let day = file(dir.path(), "S013020-v50.txt", vectors());
    let tape = dir.path().join("tape");
    let os = std::ffi::OsStr::new;
    let ran = run([os("consolidate"), day.as_os_str(), os("--tape"), tape.as_os_str(), os("--json")]);
    let summary = &ran.code(0).lines()[0];
    assert_eq!(
        (&summary["messages"], &summary["events"], &summary["quarantined"]),
        (&23.into(), &26.into(), &0.into())
    );
    let events = run([std::ffi::OsStr::new("tape"), "cat".as_ref(), tape.as_os_str(), "--json".as_ref()]);
    let events = events.code(0).lines();
    // 09:30 in New York is 14:30 in London on that day.
    assert_eq!(events[1]["ts"], 1_580_360_400_000_000_000i64 + 11_192_499_503_105);
    let nameless = file(dir.path(), "day.txt", vectors());
    let other = dir.path().join("other");
    let ran = run([os("consolidate"), nameless.as_os_str(), os("--tape"), other.as_os_str()]);
    ran.code(2).says(&["say session_date"]);
}
