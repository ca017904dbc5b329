//! Places of a tape as users name them: `tape cat` from and to one, and between two times. The indexes of the segments
//! answer, and an answer that is not that of all frames, one by one, shows somebody a part of a tape that never was.

use crate::common::{self, Ran, file, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use unitape_book::{BookOptions, TapeBooks};
use unitape_model::{Position, Side};
use unitape_run::address::TapeStopPoint;
use unitape_run::replay::{BookReplay, PointPresence, ReplayOutcome};
use unitape_tape::ReadOptions;

/// A tape of several segments, as a simulated flow makes it.
fn segmented(dir: &Path) -> PathBuf {
    segmented_of(dir, 71)
}

fn segmented_of(dir: &Path, seed: u64) -> PathBuf {
    let (bytes, _) = common::flow(seed, 9_000, false);
    let (flow, tape) = (file(dir, "flow.fix", bytes), dir.join("tape"));
    let feed = format!("orders=fix:fix44-orders:{}", flow.display());
    let tape_text = tape.to_str().unwrap();
    run(["consolidate", "--feed", &feed, "--tape", tape_text, "--segment-bytes", "131072"]).code(0);
    let segments = std::fs::read_dir(tape.join("segments")).unwrap().map(|e| e.unwrap().path());
    assert!(segments.filter(|p| p.extension().is_some_and(|e| e == "idx")).count() >= 4);
    tape
}

fn remove_indexes(tape: &Path) {
    for entry in std::fs::read_dir(tape.join("segments")).unwrap().map(|e| e.unwrap().path()) {
        if entry.extension().is_some_and(|e| e == "idx") {
            std::fs::remove_file(entry).unwrap();
        }
    }
}

/// Removes the oldest segments of a tape that nobody writes.
fn retain(tape: &Path, bytes: u64) {
    run(["tape", "retain", tape.to_str().unwrap(), "--bytes", &bytes.to_string()]).code(0);
}

fn grouped(n: usize) -> String {
    format!("{},{:03}", n / 1000, n % 1000)
}

fn number(seed: u64, n: u64) -> u64 {
    let mut x = seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 27)
}

fn at(event: &Value, key: &str) -> i64 {
    event[key].as_i64().unwrap()
}

fn cat(tape: &Path, options: &[&str]) -> Ran {
    run(["tape", "cat", tape.to_str().unwrap(), "--json", "--full"].iter().chain(options))
}

/// Compares seeded parts of the tape with those of all its events.
#[track_caller]
fn compare(tape: &Path, all: &[Value], seed: u64, count: u64) {
    for n in 0..count {
        let pick = |m: u64| &all[(number(seed, n * 4 + m) % all.len() as u64) as usize];
        let r = number(seed, n * 4 + 3);
        let (mut a, mut b) = (pick(0), pick(1));
        if at(a, "seq") > at(b, "seq") {
            (a, b) = (b, a);
        }
        let (since, until) = (at(a, "ts").min(at(b, "ts")), at(a, "ts").max(at(b, "ts")) + 1);
        let mut options: Vec<String> = Vec::new();
        let mut option = |name: &str, value: String| options.extend([name.to_owned(), value]);
        let (by_place, by_time) = (!r.is_multiple_of(3), r % 3 != 1);
        if by_place && r.is_multiple_of(2) {
            option("--from", at(a, "seq").to_string());
            option("--to", format!("@{}", at(b, "position")));
        } else if by_place {
            option("--from", format!("@{}", at(a, "position") - 64 * i64::from(at(a, "seq") > 1) + 1));
            option("--to", at(b, "seq").to_string());
        }
        if by_time {
            option("--since", since.to_string());
            option("--until", until.to_string());
        }
        let kind = (r >> 9).is_multiple_of(2);
        if kind {
            option("--kind", "exec".to_owned());
            option("--kind", "order_cancel".to_owned());
        }
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let wanted = |e: &&Value| {
            let place = !by_place || (at(a, "seq")..=at(b, "seq")).contains(&at(e, "seq"));
            let time = !by_time || (since..until).contains(&at(e, "ts"));
            place && time && (!kind || e["kind"] == "exec" || e["kind"] == "order_cancel")
        };
        let found = cat(tape, &options).code(0).lines();
        assert!(
            found.iter().eq(all.iter().filter(wanted)),
            "seed {seed}, {options:?}: {} events",
            found.len()
        );
    }
}

/// A part of a tape is that of all its events, with and without indexes, and after retention.
#[test]
fn parts_of_a_tape_are_those_of_all_its_events() {
    let dir = tempfile::tempdir().unwrap();
    let tape = segmented(dir.path());
    let all = cat(&tape, &[]).code(0).lines();
    compare(&tape, &all, 1, 18);
    // The definitions of the beginning are not those of the part.
    let last = cat(&tape, &["--from", &all.len().to_string()]).code(0).lines();
    assert_eq!(last, all[all.len() - 1..]);
    retain(&tape, 500_000);
    let left = cat(&tape, &[]).code(0).lines();
    assert!(left.len() < all.len() && all.ends_with(&left));
    compare(&tape, &left, 2, 8);
    // What retention has removed was asked for, and is said.
    let first = at(&left[0], "seq");
    for from in ["1".to_owned(), (first - 1).to_string(), "@64".to_owned()] {
        let ran = cat(&tape, &["--from", &from]).code(3).says(&["retention has removed", &from]);
        assert_eq!(ran.lines(), left, "{from}");
    }
    assert_eq!(cat(&tape, &["--from", "0"]).code(0).lines(), left);
    remove_indexes(&tape);
    compare(&tape, &left, 3, 8);
}

/// Without its log of definitions a tape was unreadable from the middle on; its frames have all that is in the log.
#[test]
fn a_tape_without_its_log_is_walked() {
    let dir = tempfile::tempdir().unwrap();
    let tape = segmented(dir.path());
    let all = cat(&tape, &[]).code(0).lines();
    std::fs::remove_file(tape.join("definitions.log")).unwrap();
    compare(&tape, &all, 4, 6);
}

/// A book at a place beyond the end was given as if it were that of the place, and nothing was said.
#[test]
fn a_book_at_no_place_of_the_tape_is_not_silent() {
    let dir = tempfile::tempdir().unwrap();
    let tape = segmented(dir.path());
    let all = cat(&tape, &[]).code(0).lines();
    let book = |place: &str| run(["book", "show", tape.to_str().unwrap(), "--json", "--at", place]);
    let last = all.last().unwrap();
    let whole = run(["book", "show", tape.to_str().unwrap(), "--json"]).code(0).text().to_owned();
    for at in [all.len().to_string(), format!("@{}", last["position"]), last["ts"].to_string()] {
        assert_eq!(book(&at).code(0).text(), whole, "{at}");
    }
    let end = format!("there are {} events", grouped(all.len()));
    for at in [(all.len() + 1).to_string(), "@99999999999".to_owned()] {
        let ran = book(&at).code(3).says(&[&format!("--at {at} is beyond the end"), &end]);
        assert_eq!(ran.text(), whole);
    }
    assert_eq!(
        book("2200-01-01").code(0).says(&["2200-01-01 00:00:00", "beyond the end", &end]).text(),
        whole
    );
    retain(&tape, 500_000);
    let first = cat(&tape, &["--limit", "1"]).code(0).json();
    for at in ["1".to_owned(), (at(&first, "seq") - 1).to_string(), "@64".to_owned(), "1999-01-01".to_owned()]
    {
        book(&at).code(3).says(&[&format!("--at {at}"), "retention has removed what is before event"]);
    }
    assert!(!book(&first["seq"].to_string()).stderr.contains("--at"));
}

/// All that is seen of the books of a tape.
fn picture(tape: &TapeBooks) -> String {
    let mut out = format!("{:?} {:?}\n", tape.books.counters(), tape.books.now());
    for id in tape.books.listings() {
        let listing = tape.books.listing(id);
        let (instrument, phase) = (listing.instrument(), listing.phase());
        out += &format!("{instrument:?} {} {phase:?} {:?}", listing.venue(), listing.bbo());
        out += &format!(" {:?} {} {:?}\n", listing.faults(), listing.crossings(), listing.published_checks());
        for book in listing.books() {
            out += &format!("{:?} {:?} {:?} {:?}\n", book.basis(), book.bbo(), book.ts(), book.depth(1000));
            for (side, px) in Side::BOTH.into_iter().flat_map(|s| book.levels(s).map(move |l| (s, l.px))) {
                out += &format!("{:?}\n", book.queue(side, px).collect::<Vec<_>>());
            }
            out += &format!("{:?}\n", book.unqueued_orders().collect::<Vec<_>>());
        }
        out += &format!("{:?}\n", tape.books.consolidated(instrument));
    }
    out
}

/// Seeded points of the tape, and the books of the tape cut there: those that its frames make, one by one.
fn pictures(tape: &Path, all: &[Value], seed: u64, count: u64) -> Vec<(TapeStopPoint, String)> {
    let points = (0..count).map(|n| {
        let r = number(seed, n);
        let index = (r % all.len() as u64) as usize;
        let seq = at(&all[index], "seq") as u64;
        match (r >> 20) % 3 {
            0 => (TapeStopPoint::Ordinal(seq), seq),
            1 => {
                let position = at(&all[index], "position") as u64 + (r >> 30) % 2 * 32;
                (TapeStopPoint::Position(Position(position)), seq)
            }
            _ => {
                let time = at(&all[index], "ts") - (r >> 30) as i64 % 2;
                let later =
                    all.iter().find(|event| at(event, "ts") > time).map(|event| at(event, "seq") as u64);
                (TapeStopPoint::Time(time), later.unwrap_or(all.len() as u64 + 1) - 1)
            }
        }
    });
    let points: Vec<(TapeStopPoint, u64)> = points.collect();
    let (mut reader, names) = unitape_run::follow::open_reader(tape, ReadOptions::default()).unwrap();
    let mut books = TapeBooks::with_names(BookOptions::default(), names);
    if reader.position() > Position(0) {
        books.lose_part();
    }
    let mut shown = vec![picture(&books); points.len()];
    while let Some((ordinal, frame)) = reader.next_counted().unwrap() {
        let is_event = !frame.header.is_meta();
        books.on_frame(frame.position, frame.bytes).unwrap();
        for (n, _) in points.iter().enumerate().filter(|(_, (_, seq))| is_event && *seq == ordinal + 1) {
            shown[n] = picture(&books);
        }
    }
    points.into_iter().map(|(point, _)| point).zip(shown).collect()
}

/// Compares the books at seeded points, each from a replay of its own.
#[track_caller]
fn compare_books(tape: &Path, wanted: &[(TapeStopPoint, String)], context: &str) {
    for (point, wanted) in wanted {
        let mut replay = BookReplay::open(tape, ReadOptions::default(), BookOptions::default()).unwrap();
        _ = replay.seek(*point).unwrap();
        assert!(picture(replay.books()) == *wanted, "{context}: other books at {point}");
    }
}

/// The checkpoints of a tape, and the result of `--verify` for each.
fn checkpoints(tape: &Path, code: i32) -> Vec<(PathBuf, String)> {
    let lines = run(["book", "checkpoint", tape.to_str().unwrap(), "--verify", "--json"]).code(code).lines();
    let text = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    lines.iter().map(|line| (text(line, "checkpoint").into(), text(line, "status"))).collect()
}

/// Makes checkpoints, all of which a replay confirms.
fn make_checkpoints(tape: &Path, every: usize) -> Vec<PathBuf> {
    let every = every.to_string();
    let ran = run(["book", "checkpoint", tape.to_str().unwrap(), "--json", "--every", &every]);
    assert!(ran.code(0).json()["checkpoints"].is_u64());
    let all = checkpoints(tape, 0);
    all.into_iter().filter(|(_, status)| status == "good").map(|(path, _)| path).collect()
}

/// A checkpoint is an answer to a question that somebody asks later, of a tape that may be another one by then: its books
/// are those of all frames, or it is not used.
#[test]
fn checkpoints_change_no_book() {
    let dir = tempfile::tempdir().unwrap();
    let tape = segmented(dir.path());
    let all = cat(&tape, &[]).code(0).lines();
    let wanted = pictures(&tape, &all, 6, 100);
    let made = make_checkpoints(&tape, 1_000);
    assert_eq!(made.len(), all.len() / 1_000);
    compare_books(&tape, &wanted, "with checkpoints");
    remove_indexes(&tape);
    compare_books(&tape, &wanted[..30], "without indexes");
    // Made again from the last good one, they are the same.
    let before = std::fs::read(&made[2]).unwrap();
    made[2..].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    assert_eq!(make_checkpoints(&tape, 1_000), made);
    assert!(std::fs::read(&made[2]).unwrap() == before);
    // Retention: a replay of what is left knows less than a checkpoint from before, and not one event may be its own.
    retain(&tape, 500_000);
    let left = cat(&tape, &[]).code(0).lines();
    assert!(checkpoints(&tape, 0).iter().all(|(_, status)| status == "outdated"));
    let wanted = pictures(&tape, &left, 7, 30);
    compare_books(&tape, &wanted, "after retention");
    assert!(!make_checkpoints(&tape, 1_000).is_empty());
    compare_books(&tape, &wanted, "after retention, with new checkpoints");
}

/// A checkpoint with one wrong bit, of another tape or of frames that were cut away is not used.
#[test]
fn a_wrong_checkpoint_makes_no_wrong_book() {
    let dir = tempfile::tempdir().unwrap();
    let tape = segmented(dir.path());
    let all = cat(&tape, &[]).code(0).lines();
    let made = make_checkpoints(&tape, 1_500);
    let (path, seq) = (&made[1], 3_000);
    let wanted = pictures(&tape, &all[..seq + 20], 8, 1);
    let wanted = vec![(TapeStopPoint::Ordinal(seq as u64), books_at(&tape, seq as u64))]
        .into_iter()
        .chain(wanted)
        .collect::<Vec<_>>();
    let intact = std::fs::read(path).unwrap();
    let flips = (0..192).chain((0..24).map(|n| 192 + (number(9, n) % (intact.len() as u64 - 192)) as usize));
    for (n, at) in flips.enumerate() {
        let mut bytes = intact.clone();
        bytes[at] ^= 1 << (n % 8);
        std::fs::write(path, &bytes).unwrap();
        compare_books(&tape, &wanted[..1], &format!("byte {at}"));
    }
    assert_eq!(checkpoints(&tape, 3).iter().filter(|(_, status)| status == "wrong").count(), 1);
    for bytes in [&intact[..100], &intact[..192], &intact[..intact.len() - 1], &[&intact[..], b"x"].concat()]
    {
        std::fs::write(path, bytes).unwrap();
        compare_books(&tape, &wanted, "another length");
    }
    // That of another event under this name.
    std::fs::copy(&made[0], path).unwrap();
    compare_books(&tape, &wanted, "another checkpoint");
    std::fs::write(path, &intact).unwrap();
    compare_books(&tape, &wanted, "mended");
    // Those of another tape.
    let other_dir = dir.path().join("other");
    std::fs::create_dir(&other_dir).unwrap();
    let other = segmented_of(&other_dir, 73);
    let other_wanted = pictures(&other, &cat(&other, &[]).code(0).lines(), 10, 5);
    std::fs::create_dir(other.join("checkpoints")).unwrap();
    for path in &made {
        std::fs::copy(path, other.join("checkpoints").join(path.file_name().unwrap())).unwrap();
    }
    assert!(checkpoints(&other, 0).iter().all(|(_, status)| status == "outdated"));
    compare_books(&other, &other_wanted, "of another tape");
    // What is before a checkpoint is not read again, and what is after one that was cut away is.
    damage(&tape, at(&all[3_200], "position") as u64);
    let after = all.len() as u64;
    let mut replay = BookReplay::open(&tape, ReadOptions::default(), BookOptions::default()).unwrap();
    assert_eq!(replay.seek(TapeStopPoint::Ordinal(after)).unwrap(), PointPresence::There);
    run(["tape", "repair", tape.to_str().unwrap(), "--apply", "--truncate"]);
    let left = cat(&tape, &[]).code(0).lines();
    assert!(left.len() < 3_200, "{} events", left.len());
    let more = file(dir.path(), "more.fix", common::flow(72, 4_000, false).0);
    let feed = format!("more=fix:fix44-orders:{}", more.display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
    let now = cat(&tape, &[]).code(0).lines();
    assert!(now.len() > 4_600);
    let found = checkpoints(&tape, 0);
    assert!(found.iter().any(|(_, status)| status == "outdated"), "{found:?}");
    compare_books(&tape, &pictures(&tape, &now, 11, 40), "after a cut");
}

/// A backup got other data than the tape, and the checkpoints of the tape beside it: they have one id, one epoch, and a last event
/// that may be the same.
#[test]
fn checkpoints_of_a_copy_that_diverged_are_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, copy) = (segmented(dir.path()), dir.path().join("copy"));
    crate::merge::copy_all(&tape, &copy);
    for (tape, seed) in [(&tape, 91), (&copy, 92)] {
        let more = file(dir.path(), "more.fix", common::flow(seed, 4_000, false).0);
        let feed = format!("more=fix:fix44-orders:{}", more.display());
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
    }
    make_checkpoints(&tape, 1_500);
    let all = cat(&copy, &[]).code(0).lines();
    let wanted = pictures(&copy, &all, 12, 30);
    crate::merge::copy_all(&tape.join("checkpoints"), &copy.join("checkpoints"));
    compare_books(&copy, &wanted, "of a copy that diverged");
    assert!(checkpoints(&copy, 0).iter().any(|(_, status)| status == "outdated"));
}

/// Flips a bit of the frame at `position`.
fn damage(tape: &Path, position: u64) {
    const SEGMENT: u64 = 131_072;
    let path = tape.join(format!("segments/{:016x}.seg", position / SEGMENT));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(4096 + position % SEGMENT + 40) as usize] ^= 1;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
}

/// The books after an event, by the frames.
fn books_at(tape: &Path, seq: u64) -> String {
    let (mut reader, names) = unitape_run::follow::open_reader(tape, ReadOptions::default()).unwrap();
    let mut books = TapeBooks::with_names(BookOptions::default(), names);
    while let Some((ordinal, frame)) = reader.next_counted().unwrap() {
        books.on_frame(frame.position, frame.bytes).unwrap();
        if !frame.header.is_meta() && ordinal + 1 == seq {
            break;
        }
    }
    picture(&books)
}

/// A replay that goes forward and back keeps nothing of where it was: its books are those of the tape cut there.
#[test]
fn a_replay_at_any_point_is_the_tape_cut_there() {
    let dir = tempfile::tempdir().unwrap();
    let tape = segmented(dir.path());
    let all = cat(&tape, &[]).code(0).lines();
    let mut replay = BookReplay::open(&tape, ReadOptions::default(), BookOptions::default()).unwrap();
    for (point, wanted) in pictures(&tape, &all, 5, 100) {
        assert_eq!(replay.seek(point).unwrap(), PointPresence::There, "{point}");
        assert!(picture(replay.books()) == wanted, "other books at {point}");
    }
    // Step by step from there, and the changes are those of the steps.
    _ = replay.take_changed();
    let seq = replay.moment().seq;
    let mut changed = std::collections::BTreeSet::new();
    for n in 1..=20 {
        assert_eq!(replay.step().unwrap(), ReplayOutcome::Event);
        assert_eq!(replay.moment().seq, seq + n);
        changed.extend(replay.changes().iter().map(|change| change.listing));
    }
    assert_eq!(replay.take_changed(), changed);
    assert!(replay.take_changed().is_empty());
}

/// Times are read as people write them, and wrong ones end the command before it prints.
#[test]
fn times_have_several_forms() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for (n, ts) in [1_772_409_599_999_999_999_i64, 1_772_409_600_000_000_000, 1_772_461_800_500_000_000]
        .into_iter()
        .enumerate()
    {
        let mut line = serde_json::json!({ "seq": n + 1, "ts": ts, "kind": "trade" });
        for (key, value) in [("px", "1"), ("qty", "1"), ("venue", "XLON"), ("instr", "VOD")] {
            line[key] = value.into();
        }
        text += &format!("{line}\n");
    }
    let (lines, tape) = (file(dir.path(), "lines.jsonl", text), dir.path().join("t"));
    run(["consolidate", lines.to_str().unwrap(), "--tape", tape.to_str().unwrap()]).code(0);
    let seqs = |options: &str| -> Vec<i64> {
        let options: Vec<String> = options.split(' ').map(|o| o.replace('_', " ")).collect();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        cat(&tape, &options).code(0).lines().iter().map(|e| at(e, "seq")).collect()
    };
    assert_eq!(seqs("--since 2026-03-02"), [2, 3]);
    assert_eq!(seqs("--until 2026-03-02Z"), [1]);
    assert_eq!(seqs("--since 2026-03-02T14:30"), [3]);
    assert_eq!(seqs("--since 2026-03-02_14:30:00.5"), [3]);
    assert_eq!(seqs("--since 2026-03-02T14:30:00.500000001Z"), [0_i64; 0]);
    assert_eq!(seqs("--until 1772409600000000000"), [1]);
    assert_eq!(seqs("--since -5 --until 2026-03-02"), [1]);
    // Both, and an event that is not in both is not printed.
    assert_eq!(seqs("--since 2026-03-02 --until 2026-03-03 --to 2"), [2]);
    assert_eq!(seqs("--since 2026-03-02 --limit 1"), [2]);
    cat(&tape, &["--since", "2027-01-01"]).code(0).says(&["no event with --since 2027-01-01"]);
    cat(&tape, &["--to", "99"]).code(0).says(&["--to 99 is beyond the end: there are 3 events"]);
    cat(&tape, &["--since", "noon"]).code(2).says(&["--since", "`noon`", "2026-03-02"]);
    cat(&tape, &["--until", "2026-02-30"]).code(2).says(&["--until", "`2026-02-30`"]);
    let both = ["--since", "2026-03-03", "--until", "2026-03-03"];
    cat(&tape, &both).code(2).says(&["--since is not before --until"]);
}

/// A date behind `--from` was said to be neither an ordinal nor a position, and a number behind `--since` was a moment of 1970.
#[test]
fn an_option_of_the_other_kind_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let line = r#"{"ts":1772409600000000000,"kind":"trade","venue":"XLON","instr":"VOD","px":"1","qty":"1"}"#;
    let lines = file(dir.path(), "lines.jsonl", format!("{line}\n"));
    let (tape, store) = (dir.path().join("t"), dir.path().join("s"));
    let (tape, store) = (tape.to_str().unwrap(), store.to_str().unwrap());
    run(["consolidate", lines.to_str().unwrap(), "--tape", tape]).code(0);
    run(["store", "seal", tape, "--store", store]).code(0);
    for command in [["tape", "cat", tape], ["watch", "replay", tape]] {
        for (option, value, hint) in [
            ("--from", "2026-03-02", "--from: `2026-03-02` is a time: use --since"),
            ("--from", "1772409600000000000", "is a time: use --since"),
            ("--to", "2026-03-02T14:30", "is a time: use --until"),
            ("--since", "@4096", "is a position: use --from"),
        ] {
            run(command.into_iter().chain([option, value])).code(2).says(&[hint]);
        }
        for (option, value, hint) in [
            ("--since", "17", "--since 17 is 17 ns after 1970; for an ordinal use --from"),
            ("--until", "999999999999999", "for an ordinal use --to"),
        ] {
            run(command.into_iter().chain([option, value])).code(0).says(&[hint]);
        }
        let zero = run(command.into_iter().chain(["--since", "0"])).code(0);
        assert!(!zero.stderr.contains("1970"), "{}", zero.stderr);
        run(command.into_iter().chain(["--until", "1000000000000000"])).code(0);
    }
    for (option, value, hint) in [
        (
            "--from",
            "17",
            "--from: `17` is an ordinal, and sealed days are selected by time: use --since TIME",
        ),
        ("--to", "@4096", "is a position, and --to takes a time"),
    ] {
        run(["store", "scan", store, option, value]).code(2).says(&[hint]);
    }
    // The old names of --since and --until, for one release.
    let scan = |options: &[&str]| run(["store", "scan", store, "--json"].iter().chain(options));
    assert_eq!(scan(&["--from", "2026-03-02", "--to", "2026-03-03"]).code(0).lines().len(), 1);
    assert_eq!(scan(&["--from", "1772409600000000001"]).code(0).lines().len(), 0);
    scan(&["--from", "2026-03-02", "--since", "2026-03-02"])
        .code(2)
        .says(&["--from is the old name of --since"]);
}

/// Each command had names of its own for the same option.
#[test]
fn one_selection_means_the_same_in_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for (n, (kind, venue, instr)) in [
        ("trade", "XLON", "VOD"),
        ("index", "XLON", "A,B"),
        ("trade", "CHIX", "BARC"),
        ("trade", "CHIX", "VOD"),
        ("trade", "XLON", "A,B"),
    ]
    .into_iter()
    .enumerate()
    {
        let ts = 1_772_409_600_000_000_000u64 + n as u64;
        let values = match kind {
            "trade" => format!(r#""px":"1","qty":"1","instr":"{instr}""#),
            _ => format!(r#""px":"1","index":"{instr}""#),
        };
        text += &format!(r#"{{"ts":{ts},"kind":"{kind}","venue":"{venue}",{values}}}"#);
        text.push('\n');
    }
    let lines = file(dir.path(), "lines.jsonl", text);
    let (tape, store) = (dir.path().join("t"), dir.path().join("s"));
    run(["consolidate", lines.to_str().unwrap(), "--tape", tape.to_str().unwrap()]).code(0);
    run(["store", "seal", tape.to_str().unwrap(), "--store", store.to_str().unwrap()]).code(0);
    let output = dir.path().join("out.jsonl");
    for (options, seqs) in [
        ("--instr VOD", &[1, 4][..]),
        ("--symbols VOD,BARC", &[1, 3, 4]),
        ("--instr VOD --symbols BARC", &[1, 3, 4]),
        ("--symbol A,B", &[2, 5]),
        ("--kind trade", &[1, 3, 4, 5]),
        ("--kind trade,index --venue XLON", &[1, 2, 5]),
        ("--kind index --kind trade --limit 2", &[1, 2]),
        ("--since 1772409600000000001 --until 1772409600000000003", &[2, 3]),
    ] {
        for command in [["tape", "cat", tape.to_str().unwrap()], ["store", "scan", store.to_str().unwrap()]] {
            let call = || command.into_iter().chain(["--json"]).chain(options.split(' '));
            let printed = run(call()).code(0);
            let printed_seqs: Vec<i64> = printed.lines().iter().map(|event| at(event, "seq")).collect();
            assert_eq!(printed_seqs, seqs, "{command:?} {options}");
            let to_file = run(call().chain(["-o", output.to_str().unwrap()])).code(0);
            assert!(to_file.stdout.is_empty(), "{command:?} {options}");
            assert_eq!(std::fs::read(&output).unwrap(), printed.stdout, "{command:?} {options}");
        }
    }
    let store = store.to_str().unwrap();
    run(["store", "scan", store, "--venue", "XLON", "--venue", "CHIX"]).code(2).says(&["give --venue once"]);
    run(["store", "scan", store, "--kind", "message"]).code(2).says(&["unitape tape cat"]);
    run(["store", "scan", store, "--kind", "trade", "--csv"]).code(2).says(&["--kind"]);
}

/// The scenarios see the part of a tape that was asked for, and nothing else: that part printed as lines gives the same alerts.
#[test]
fn a_watch_sees_a_part_of_a_tape() {
    let dir = tempfile::tempdir().unwrap();
    let day = dir.path().join("day");
    let day_text = day.to_str().unwrap();
    let options = ["--events", "12000", "--instruments", "40", "--minutes", "120"];
    run(["generate", "market", "--out", day_text].iter().chain(&options)).code(0);
    let (tape, events) = (dir.path().join("tape"), day.join("events.jsonl"));
    let (tape, events) = (tape.to_str().unwrap(), events.to_str().unwrap());
    run(["consolidate", events, "--tape", tape, "--segment-bytes", "131072"]).code(0);
    let all = cat(Path::new(tape), &[]).code(0).lines();
    let watch = |input: &str, options: &[&str]| {
        let ran = run(["watch", "replay", input, "--json"].iter().chain(options)).code(0);
        let alerts = ran.lines().into_iter().filter(|line| line.get("scenario").is_some());
        alerts.map(|alert| (alert["scenario"].clone(), alert["trigger_seq"].clone())).collect::<Vec<_>>()
    };
    let whole = watch(tape, &[]);
    assert!(whole.len() > 10, "{}", whole.len());
    assert_eq!(watch(tape, &["--from", "1", "--since", "1970-01-01"]), whole);
    let mut found = 0;
    for n in 0..12 {
        let pick = |m: u64| &all[(number(5, n * 3 + m) % all.len() as u64) as usize];
        let (a, b) = (at(pick(0), "seq"), at(pick(1), "seq"));
        let (from, to) = (a.min(b), a.max(b));
        let times = [at(pick(0), "ts"), at(pick(2), "ts")];
        let texts = [from, to, times[0].min(times[1]), times[0].max(times[1]) + 1].map(|n| n.to_string());
        let [from, to, since, until] = texts.each_ref().map(String::as_str);
        let part = match n % 3 {
            0 => vec!["--from", from, "--to", to],
            1 => vec!["--since", since, "--until", until],
            _ => vec!["--from", from, "--until", until],
        };
        let lines = run(["tape", "cat", tape, "--json"].iter().chain(&part)).code(0);
        let printed = file(dir.path(), "part.jsonl", lines.text());
        let alerts = watch(tape, &part);
        assert_eq!(alerts, watch(printed.to_str().unwrap(), &[]), "{part:?}");
        found += alerts.len();
    }
    assert!(found > 10, "the parts have alerts: {found}");
    // By name: what `tape cat` prints with the same options.
    let instrument = all.iter().find_map(|event| event["instr"].as_str()).unwrap();
    for options in [&["--symbols", instrument][..], &["--kind", "exec,order_new"], &["--instr", "NOPE"]] {
        let lines = run(["tape", "cat", tape, "--json"].iter().chain(options)).code(0);
        let printed = file(dir.path(), "named.jsonl", lines.text());
        assert_eq!(watch(tape, options), watch(printed.to_str().unwrap(), &[]), "{options:?}");
    }
    run(["watch", "replay", tape, "--instr", "NOPE"]).code(0).says(&["no event has the instrument NOPE"]);
    assert_eq!(watch(tape, &["--limit", "3"]), whole[..3]);
    assert_eq!(watch(events, &["--limit", "3"]).len(), 3);
    let alerts = dir.path().join("alerts.jsonl");
    let to_file = run(["watch", "replay", tape, "--json", "-o", alerts.to_str().unwrap()]).code(0);
    assert!(to_file.stdout.is_empty() && alerts.exists());
    run(["watch", "replay", tape, "--schema", "bbo"]).code(2).says(&["scenarios read events: use --kind"]);
    run(["watch", "replay", tape, "--csv"]).code(2).says(&["use --json"]);
    let none = run(["watch", "replay", events, "--from", "3"]).code(2);
    none.says(&["choose a part of a tape, and this is none"]);
    let over = run(["watch", "replay", tape, "--from", "9", "--to", "3"]).code(2);
    over.says(&["nothing can be between them"]);
}
