//! Sequence numbers of FIX sessions: what fills a gap is not a duplicate, and what comes twice is not lost.
//!
//! Only the greatest number of a session was kept once. So a message that was sent again after a gap, and that nobody
//! had ever seen, was left out as a duplicate, with exit code 0.
#![cfg(unix)]

use crate::common::{self, run::Bench};
use common::{assert_closes, assert_same, cat, file, fix, run};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use unitape_sim::Rng;

/// A new order of session S, number `n`; `more` comes before its time.
fn order(n: u64, more: &str) -> Vec<u8> {
    message("S", n, &format!("35=8|{more}"), &format!("37=O{n}|150=0|54=1|38=100|44=10.5|207=XLON|48=GB01|"))
}

/// A message of a session: type and flags, and its body.
fn message(session: &str, n: u64, head: &str, body: &str) -> Vec<u8> {
    let time = "20260302-09:00:00";
    let (kind, flags) = head.split_once('|').unwrap();
    fix(&format!("{kind}|49={session}|56=U|34={n}|{flags}52={time}|60={time}|{body}"))
}

const DUP: &str = "43=Y|";

fn consolidate(input: &[u8], dir: &Path, code: i32) -> Value {
    let path = file(dir, "a.fix", input);
    let account = common::consolidate_orders(&path, &dir.join("tape"), code);
    assert_closes(&account);
    account
}

/// Order ids as they are on the tape; those of a repeat with `!`.
fn orders(tape: &Path) -> Vec<String> {
    let text = |e: &Value| match &e["repeat"] {
        Value::Null => e["oid"].as_str().unwrap().to_owned(),
        flag => {
            assert_eq!(flag, "Y", "{e}");
            format!("{}!", e["oid"].as_str().unwrap())
        }
    };
    cat(tape, &["--kind", "order_new"]).iter().map(text).collect()
}

#[track_caller]
fn check(input: &[Vec<u8>], want: &str, counts: (u64, u64)) {
    let dir = tempfile::tempdir().unwrap();
    let account = consolidate(&input.concat(), dir.path(), 0);
    assert_eq!(orders(&dir.path().join("tape")).join(" "), want);
    let count = |key: &str| account[key].as_u64().unwrap_or(0);
    assert_eq!((count("duplicates"), count("repeats")), counts, "{account}");
}

fn plain(numbers: &[u64]) -> Vec<Vec<u8>> {
    numbers.iter().map(|n| order(*n, "")).collect()
}

fn again(numbers: &[u64]) -> Vec<Vec<u8>> {
    numbers.iter().map(|n| order(*n, DUP)).collect()
}

/// 3 and 4 vanished as duplicates.
#[test]
fn what_fills_a_gap_is_kept_once() {
    check(
        &[plain(&[1, 2, 5]), again(&[3, 4]), plain(&[6]), again(&[3, 4, 5, 6])].concat(),
        "O1 O2 O5 O3 O4 O6",
        (4, 0),
    );
    // From the end to the start, and one whose first number is not 1.
    check(&[plain(&[7, 12]), again(&[11, 10, 9, 8, 6, 12])].concat(), "O7 O12 O11 O10 O9 O8 O6", (1, 0));
}

/// It said nothing of having been sent before, and was kept like a new one.
#[test]
fn a_number_that_comes_twice_without_saying_so_is_flagged_and_counted() {
    check(&[plain(&[1, 2, 3, 2, 3, 4]), again(&[2])].concat(), "O1 O2 O3 O2! O3! O4", (1, 2));
    let dir = tempfile::tempdir().unwrap();
    consolidate(&plain(&[1, 2, 2]).concat(), dir.path(), 0);
    let tape = dir.path().join("tape");
    run(["tape".as_ref(), "verify".as_ref(), tape.as_os_str()]).code(0);
    let account = common::consolidate_orders(&dir.path().join("a.fix"), &tape, 0);
    assert_eq!(account["repeats"], 1, "the mark of progress has the count: {account}");
}

/// A number of 20 digits is no sequence number: its message is kept each time. The range after the greatest one that
/// is read does not overflow.
#[test]
fn the_greatest_numbers_are_kept() {
    const GREATEST: u64 = 9_999_999_999_999_999_999;
    check(
        &[plain(&[1, GREATEST, u64::MAX]), again(&[GREATEST, u64::MAX])].concat(),
        &format!("O1 O{GREATEST} O{max} O{max}", max = u64::MAX),
        (1, 0),
    );
}

/// A message whose checksum is wrong says nothing reliable of its number.
#[test]
fn a_garbled_message_does_not_count_as_seen() {
    let mut bad = order(3, "");
    let at = bad.windows(5).position(|w| w == b"44=10").unwrap();
    bad[at + 3] = b'9';
    let dir = tempfile::tempdir().unwrap();
    let input = [plain(&[1, 2]), vec![bad], plain(&[4, 5]), again(&[3, 4])].concat();
    let account = consolidate(&input.concat(), dir.path(), 3);
    assert_eq!(orders(&dir.path().join("tape")), ["O1", "O2", "O4", "O5", "O3"]);
    assert_eq!((&account["quarantined"], &account["duplicates"]), (&1.into(), &1.into()));
    // A message that is whole on the wire and no order: the good copy must not be left out for it.
    let bad = message("S", 2, "35=8|", "37=O2|150=0|54=1|38=1x0|44=10.5|207=XLON|48=GB01|");
    let dir = tempfile::tempdir().unwrap();
    let input = [plain(&[1]), vec![bad], plain(&[3]), again(&[2, 3])].concat();
    let account = consolidate(&input.concat(), dir.path(), 3);
    assert_eq!(orders(&dir.path().join("tape")), ["O1", "O3", "O2"]);
    assert_eq!((&account["quarantined"], &account["duplicates"]), (&1.into(), &1.into()));
}

/// After each of these a number means another message than before.
#[test]
fn logons_and_sequence_resets_begin_to_count_again() {
    let logon = |n: u64, more: &str| message("S", n, "35=A|", &format!("98=0|108=30|{more}"));
    let reset = |n: u64, more: &str, head: &str| message("S", n, &format!("35=4|{head}"), more);
    let first = || [plain(&[2, 3, 4, 5])].concat();
    // The flag; a gap of the new session is filled.
    let input =
        [vec![logon(1, "")], first(), vec![logon(1, "141=Y|")], plain(&[2, 5]), again(&[3, 5])].concat();
    check(&input, "O2 O3 O4 O5 O2 O5 O3", (1, 0));
    // Number 1 without the flag: the session of the next day.
    let input = [vec![logon(1, "")], first(), vec![logon(1, "")], plain(&[2, 5]), again(&[3, 5])].concat();
    check(&input, "O2 O3 O4 O5 O2 O5 O3", (1, 0));
    // A later logon continues where the session was.
    let input = [vec![logon(1, "")], first(), vec![logon(6, "")], again(&[5]), plain(&[7])].concat();
    check(&input, "O2 O3 O4 O5 O7", (1, 0));
    // Reset mode: from NewSeqNo on; what was seen before that stays seen.
    let input = [first(), vec![reset(77, "36=4|", "")], plain(&[4]), again(&[5, 3, 4])].concat();
    check(&input, "O2 O3 O4 O5 O4 O5", (2, 0));
    let input = [first(), vec![reset(6, "123=N|36=100|", "")], plain(&[100]), again(&[5, 99, 100])].concat();
    check(&input, "O2 O3 O4 O5 O100 O99", (2, 0));
    // Gap fill: nothing comes twice for it, and the messages that it replaces were not seen.
    let input =
        [plain(&[1, 2, 5]), vec![reset(3, "123=Y|36=5|", DUP)], again(&[5, 2]), plain(&[6]), again(&[3])]
            .concat();
    check(&input, "O1 O2 O5 O6 O3", (2, 0));
}

/// Two directions in one log, and a third session with the same numbers.
#[test]
fn sessions_do_not_count_for_each_other() {
    let of = |session: &str, n: u64, head: &str| {
        let body = format!("37={session}{n}|150=0|54=1|38=100|44=10.5|207=XLON|48=GB01|");
        message(session, n, &format!("35=8|{head}"), &body)
    };
    let input = [
        of("A", 1, ""),
        of("B", 1, ""),
        of("A", 2, ""),
        of("B", 4, ""),
        of("A", 5, ""),
        of("B", 2, DUP),
        of("A", 4, DUP),
        of("A", 2, DUP),
        of("B", 3, DUP),
        of("C", 3, DUP),
        of("C", 3, DUP),
    ];
    check(&input, "A1 B1 A2 B4 A5 B2 A4 B3 C3", (2, 0));
}

/// More gaps than are kept: a message that may be a repeat is kept, flagged and counted, never left out.
#[test]
fn beyond_the_bound_of_gaps_nothing_is_dropped() {
    let odd: Vec<u64> = (0..300).map(|i| 2 * i + 1).collect();
    let even: Vec<u64> = (1..300).map(|i| 2 * i).collect();
    let dir = tempfile::tempdir().unwrap();
    let account = consolidate(&[plain(&odd), again(&even)].concat().concat(), dir.path(), 0);
    let got: BTreeSet<String> =
        orders(&dir.path().join("tape")).iter().map(|o| o.trim_end_matches('!').to_owned()).collect();
    let want: BTreeSet<String> = odd.iter().chain(&even).map(|n| format!("O{n}")).collect();
    assert_eq!(got, want);
    assert_eq!((&account["events"], &account["duplicates"]), (&599.into(), &0.into()));
    let flagged = orders(&dir.path().join("tape")).iter().filter(|o| o.ends_with('!')).count() as u64;
    assert!(flagged > 200, "{flagged}");
    assert_eq!((&account["repeats"], &account["unsure"]), (&flagged.into(), &flagged.into()));
    let said =
        run(["consolidate", "--feed", &common::orders_option("orders", &dir.path().join("a.fix")), "--tape"]
            .map(std::ffi::OsStr::new)
            .into_iter()
            .chain([dir.path().join("tape").as_os_str()]))
        .code(0);
    assert!((said.text().to_owned() + &said.stderr).contains("repeat"), "{said:?}");
}

/// More sessions than are kept: what the last ones say they send again is kept and flagged.
#[test]
fn beyond_the_bound_of_sessions_nothing_is_dropped() {
    let of = |i: u64, head: &str| {
        let body = format!("37=O{i}|150=0|54=1|38=100|44=10.5|207=XLON|48=GB01|");
        message(&format!("S{i}"), 7, &format!("35=8|{head}"), &body)
    };
    let input: Vec<_> =
        (0..1030).map(|i| of(i, "")).chain([of(3, DUP), of(1029, DUP), of(1029, "")]).collect();
    let dir = tempfile::tempdir().unwrap();
    let account = consolidate(&input.concat(), dir.path(), 0);
    let last = orders(&dir.path().join("tape")).split_off(1030);
    assert_eq!(last, ["O1029!", "O1029"]);
    assert_eq!((&account["duplicates"], &account["unsure"]), (&1.into(), &1.into()));
}

/// An input of several marks of progress with all of it, and what each message must become by a plain list of numbers.
fn mixture(seed: u64, messages: u64) -> (Vec<u8>, Vec<String>, (u64, u64)) {
    let mut rng = Rng::new(seed);
    let (mut bytes, mut want, mut counts) = (Vec::new(), Vec::new(), (0, 0));
    let mut sessions: BTreeMap<u64, (u64, BTreeSet<u64>)> = BTreeMap::new();
    for i in 0..messages {
        let id = rng.below(3);
        let (next, seen) = sessions.entry(id).or_insert((1, BTreeSet::new()));
        let session = format!("S{id}");
        if rng.one_in(800) {
            bytes.extend(message(&session, 1, "35=A|", "98=0|108=30|141=Y|"));
            (*next, *seen) = (2, BTreeSet::from([1]));
            continue;
        }
        if rng.one_in(300) {
            // A heartbeat: it becomes nothing, and its number is used.
            bytes.extend(message(&session, *next, "35=0|", ""));
            seen.insert(*next);
            *next += 1;
            continue;
        }
        let (n, dup) = match rng.below(40) {
            0 => (1 + rng.below(*next), true),
            1 => (1 + rng.below(*next), false),
            2 => (*next + 1, false),
            _ => (*next, false),
        };
        *next = (*next).max(n + 1);
        let symbol = if rng.one_in(20) { format!("NEW{i}") } else { format!("X{}", rng.below(20)) };
        let long = if rng.one_in(7) {
            format!("58={}|", "t".repeat(1 + rng.below(90) as usize))
        } else {
            String::new()
        };
        let body = format!("37=O{i}|150=0|54=1|38=100|44=10.5|207=XLON|48={symbol}|{long}");
        bytes.extend(message(&session, n, if dup { "35=8|43=Y|" } else { "35=8|" }, &body));
        match (seen.insert(n), dup) {
            (true, _) => want.push(format!("O{i}")),
            (false, true) => counts.0 += 1,
            (false, false) => {
                want.push(format!("O{i}!"));
                counts.1 += 1;
            }
        }
    }
    (bytes, want, counts)
}

/// The tape is the same at any number of workers and wherever blocks are cut, and it is what a list of all numbers says.
#[test]
fn the_tape_is_that_of_a_plain_list_at_any_number_of_workers() {
    let dir = tempfile::tempdir().unwrap();
    // So few gaps at a time that the bound is not met.
    let (bytes, want, counts) = mixture(5, 16_000);
    assert!(bytes.len() > 2 << 20 && counts.0 > 100 && counts.1 > 100, "{} {counts:?}", bytes.len());
    let input = file(dir.path(), "a.fix", &bytes);
    let feed = common::orders_option("orders", &input);
    for (name, workers, block) in [("one", "1", "1048576"), ("two", "2", "65536"), ("four", "4", "777")] {
        let tape = dir.path().join(name);
        let args = ["consolidate", "--feed", &feed, "--workers", workers, "--block-bytes", block, "--json"];
        let account =
            run(args.map(std::ffi::OsStr::new).into_iter().chain(["--tape".as_ref(), tape.as_os_str()]))
                .code(0)
                .json();
        assert_closes(&account);
        assert_eq!((&account["duplicates"], &account["repeats"]), (&counts.0.into(), &counts.1.into()));
        assert_same(&dir.path().join("one"), &tape, name);
    }
    let got = orders(&dir.path().join("one"));
    let at = got.iter().zip(&want).position(|(a, b)| a != b);
    assert!(got.len() == want.len() && at.is_none(), "{at:?}: {:?}", at.map(|at| (&got[at], &want[at])));
    run(["tape".as_ref(), "verify".as_ref(), dir.path().join("one").as_os_str()]).code(0);
}

/// The numbers are on the tape: a run that begins again in the middle knows which gaps there are.
#[test]
fn the_numbers_come_back_after_a_restart() {
    let bench = Bench::new("", &[("a", "files = [\"1\", \"2\"]")]);
    file(bench.dir.path(), "1", plain(&[1, 2, 5, 9]).concat());
    file(bench.dir.path(), "2", [again(&[3, 5, 9, 8]), plain(&[2, 10])].concat().concat());
    let whole = tempfile::tempdir().unwrap();
    let run_whole = |first: bool| {
        let files = if first { "files = [\"1\"]" } else { "files = [\"1\", \"2\"]" };
        bench.configure("", &[("a", files)]);
        assert_eq!(bench.start().ends().0, Some(0));
    };
    run_whole(false);
    std::fs::rename(bench.tape(), whole.path().join("t")).unwrap();
    run_whole(true);
    run_whole(false);
    let want = ["O1", "O2", "O5", "O9", "O3", "O8", "O2!", "O10"];
    assert_eq!(orders(&whole.path().join("t")), want);
    assert_eq!(orders(&bench.tape()), want);
}

/// Retention removes the marks that say which numbers were seen; the account of what is gone has them.
#[test]
fn the_numbers_come_back_after_retention() {
    let run_with = |bench: &Bench, feeds: &[(&str, &str)]| {
        let tape = "retain_bytes = 131072\nretain_notice = \"0s\"\n";
        bench.configure("wait = \"unbounded\"", feeds);
        let text = std::fs::read_to_string(bench.path("run.toml")).unwrap();
        let text = text.replace("[run]", &format!("segment_bytes = 65536\n{tape}[run]"));
        file(bench.dir.path(), "run.toml", text);
        let (code, said) = bench.start().ends();
        assert_eq!(code, Some(0), "{said}");
    };
    let bench = Bench::new("", &[]);
    let (a1, a12) = (("a", "files = [\"1\"]"), ("a", "files = [\"1\", \"2\"]"));
    let other = ("b", "files = [\"other\"]");
    file(bench.dir.path(), "1", plain(&[1, 2, 5, 9]).concat());
    file(bench.dir.path(), "2", [again(&[3, 5, 9, 8]), plain(&[2, 10])].concat().concat());
    let later: Vec<u8> = (1..6_000u64)
        .flat_map(|n| {
            message("B", n, "35=8|", &format!("37=B{n}|150=0|54=1|38=100|44=10.5|207=XLON|48=GB01|"))
        })
        .collect();
    file(bench.dir.path(), "other", later);
    run_with(&bench, &[a1, other]);
    let first = unitape_tape::tape_status(&bench.tape()).unwrap().oldest_position;
    assert!(first.0 > 1 << 16, "nothing was removed: {first}");
    run_with(&bench, &[a12, other]);
    let mut got = orders(&bench.tape());
    got.retain(|o| o.starts_with('O'));
    assert_eq!(got, ["O3", "O8", "O2!", "O10"]);
}
