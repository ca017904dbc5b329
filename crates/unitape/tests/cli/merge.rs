//! Tapes become one tape: in the order of their times, nothing twice, nothing lost, however often the merge is killed.
//!
//! A merge knew what it had placed by the sources of the events. Each restart placed again what has no source, so that
//! six events became twelve and then eighteen, and a user's message ended the merge. `UNITAPE_KILL_ROUNDS` asks for more
//! kills.
#![cfg(unix)]

use crate::common::{self, assert_closes, assert_same, cat, file, files, quarantine, run, unitape};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use unitape_model::message::KIND_MESSAGE;
use unitape_model::{
    Dictionary, Event, EventBuilder, EventKind, EventSchema, FrameHeader, NameKind, TopicMessage, UnixNanos,
    flags, schema::at,
};
use unitape_sim::Rng;
use unitape_tape::{Reader, StartPosition, TapeId, Writer, WriterOptions};

/// A segment that a merge fills several times.
const SEGMENT: u64 = 1 << 16;

fn small() -> WriterOptions {
    WriterOptions { segment_bytes: SEGMENT, ..WriterOptions::default() }
}

/// Consolidates `dir/NAME.fix` to the tape `dir/NAME`, as feed `orders`.
fn orders_tape(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    std::fs::create_dir_all(dir.join(format!("{name}.in"))).unwrap();
    let source = file(&dir.join(format!("{name}.in")), "day.fix", bytes);
    let tape = dir.join(name);
    let feed = common::orders_option("orders", &source);
    let segment = SEGMENT.to_string();
    let code =
        run(["consolidate", "--feed", &feed, "--segment-bytes", &segment, "--tape", tape.to_str().unwrap()]);
    assert!(matches!(code.code, Some(0 | 3)), "{}", code.stderr);
    tape
}

fn set(event: &mut EventBuilder<'_>, kind: EventKind, name: &str, value: &str, names: &mut Dictionary) {
    event.set_text(EventSchema::for_kind(kind).find(name).unwrap(), value.as_bytes(), names).unwrap();
}

/// Units without a source, as a program writes them: each defines its names before it, and after some comes a message.
fn own_units(writer: &mut Writer, times: impl Iterator<Item = i64>, names: &mut Dictionary) {
    for ts in times {
        let mut unit = Vec::new();
        let instrument = format!("OWN{}", ts % 7);
        if names.get(NameKind::Instrument, instrument.as_bytes()).is_none() {
            let (id, _) = names.intern(NameKind::Instrument, instrument.as_bytes()).unwrap();
            EventBuilder::define(&mut unit, NameKind::Instrument, id, &instrument).unwrap();
        }
        let mut trade = EventBuilder::begin(&mut unit, EventKind::Trade, UnixNanos(ts));
        for (field, value) in [("instr", instrument.as_str()), ("px", "10.5"), ("qty", "3")] {
            set(&mut trade, EventKind::Trade, field, value, names);
        }
        trade.finish(flags::LAST).unwrap();
        writer.append(&unit).unwrap();
        if ts % 3 == 0 {
            let bytes = format!("after {ts} {}", "x".repeat((ts % 200) as usize));
            let (header, word) = TopicMessage::header_words((ts % 5) as u32, bytes.len()).unwrap();
            let mut frame = vec![0; header.len_bytes()];
            header.write(&mut frame);
            frame[8..16].copy_from_slice(&word.to_le_bytes());
            frame[16..16 + bytes.len()].copy_from_slice(bytes.as_bytes());
            writer.append(&frame).unwrap();
        }
    }
}

/// The morning of the day of the simulated orders.
const MORNING: i64 = 1_772_434_800_000_000_000;

/// A time in 2262: of a wrong clock.
const WRONG: i64 = 9_222_000_000_000_000_000;

/// The tape of a program, whose clock is wrong now and then.
fn own_tape(dir: &Path, name: &str, count: i64) -> PathBuf {
    let tape = dir.join(name);
    let (mut writer, _) = Writer::open(&tape, TapeId(77), small()).unwrap();
    let time = |n| if n % 100 == 50 { WRONG } else { MORNING + n * 9_000_000_000 };
    own_units(&mut writer, (0..count).map(time), &mut Dictionary::default());
    writer.close().unwrap();
    tape
}

/// Two tapes of one feed name and one file name, one of a program, and one with nothing on it.
fn inputs(dir: &Path) -> Vec<PathBuf> {
    let empty = dir.join("empty");
    Writer::open(&empty, TapeId(5), small()).unwrap().0.close().unwrap();
    vec![
        orders_tape(dir, "first", &common::flow(61, 4_000, true).0),
        orders_tape(dir, "second", &common::flow(62, 2_000, true).0),
        own_tape(dir, "own", 2_000),
        empty,
    ]
}

fn arguments(inputs: &[PathBuf], tape: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["consolidate".into()];
    inputs.iter().for_each(|input| args.extend(["--tape-in".into(), input.into()]));
    args.extend(["--segment-bytes".into(), SEGMENT.to_string().into(), "--json".into()]);
    args.extend(["--tape".into(), tape.into()]);
    args
}

fn merge(inputs: &[PathBuf], tape: &Path) -> common::Ran {
    run(arguments(inputs, tape))
}

/// An event as the merge has to have it, with the time that it is sorted by.
struct TwinEvent {
    key: i64,
    event: Value,
}

/// The events of a tape with the time by which their unit is merged.
fn twin_events(tape: &Path) -> Vec<TwinEvent> {
    let mut reader = Reader::open(tape, StartPosition::Oldest).unwrap();
    let (mut keys, mut running, mut unit) = (Vec::new(), i64::MIN, None);
    while let Some(frame) = reader.next().unwrap() {
        if !frame.header.is_meta() {
            let first = unit.is_none();
            let key = unit.get_or_insert(running);
            let timed = frame.header.kind() != KIND_MESSAGE
                && frame.header.kind() != EventKind::Quarantine as u8
                && frame.header.flags() & flags::CLOCK_AHEAD == 0;
            if first && timed {
                let ts = i64::from_le_bytes(frame.bytes[at::TS_EVENT..][..8].try_into().unwrap());
                *key = if ts == WRONG { running } else { running.max(ts) };
                running = *key;
            }
            keys.push(*key);
        }
        if frame.header.is_last() {
            unit = None;
        }
    }
    let events = full(tape);
    assert_eq!(events.len(), keys.len());
    events.into_iter().zip(keys).map(|(event, key)| TwinEvent { key, event }).collect()
}

/// The events of a tape without what is a tape's own: numbers of events and of names, and places.
fn full(tape: &Path) -> Vec<Value> {
    let mut events = cat(tape, &["--full"]);
    for event in &mut events {
        let event = event.as_object_mut().unwrap();
        for own in ["seq", "ids", "position", "raw_at"] {
            event.remove(own);
        }
        // The merge names a feed that two tapes have after its tape.
        if let Some(Value::String(source)) =
            event.get_mut("source").filter(|s| s.as_str().is_some_and(|s| s.matches('/').count() == 2))
        {
            *source = source.split_once('/').unwrap().1.to_owned();
        }
        if let Some(src) = event.get_mut("src").and_then(Value::as_object_mut) {
            src.remove("id");
            let feed = src["feed"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
            src.insert("feed".to_owned(), feed.into());
        }
    }
    events
}

/// The bytes of all that is in quarantine, in order.
fn raw_bytes(tape: &Path) -> Vec<Vec<u8>> {
    let show = |entry: &Value| {
        let position = entry["position"].to_string();
        run(["quarantine", "show", tape.to_str().unwrap(), &position, "--raw"]).code(0).stdout
    };
    quarantine(tape).iter().take(12).map(show).collect()
}

/// The slow twin: all events of all tapes, sorted.
#[test]
fn a_merge_is_all_units_in_the_order_of_their_times() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = inputs(dir.path());
    let tape = dir.path().join("merged");
    let account = merge(&inputs, &tape).code(3).json();
    let mut wanted: Vec<TwinEvent> = inputs.iter().flat_map(|input| twin_events(input)).collect();
    wanted.sort_by_key(|event| event.key);
    let of_wrong_clock = wanted.iter_mut().filter(|event| event.event["ts"] == WRONG);
    let ahead =
        of_wrong_clock.map(|event| event.event["flags"] = serde_json::json!(["last", "clock_ahead"])).count();
    assert_eq!((ahead, &account["clock_ahead"]), (20, &serde_json::json!(20)));
    let found = full(&tape);
    assert_eq!(found.len(), wanted.len());
    for (n, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        assert_eq!(found, &wanted.event, "event {n}");
    }
    assert!(found.iter().filter(|e| e["kind"] == "message").count() > 500);

    // Two tapes have a feed of one name, and both keep their account.
    let feeds: Vec<_> = account["by_feed"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(feeds, ["first/orders", "second/orders"]);
    assert_eq!(account["gaps"], serde_json::json!([]));
    for (input, feed) in inputs.iter().zip(&feeds) {
        let own = run([
            "consolidate",
            "--feed",
            &common::orders_option("orders", &input.with_extension("in").join("day.fix")),
            "--tape",
            input.to_str().unwrap(),
            "--json",
        ]);
        assert_eq!(own.json()["by_feed"]["orders"], account["by_feed"][feed], "{feed}");
    }
    run(["tape", "verify", tape.to_str().unwrap()]).code(0);

    // What could not become events has come along with its bytes.
    let entries = quarantine(&tape);
    let of = |name: &str| entries.iter().filter(|e| e["source"].as_str().unwrap().starts_with(name)).count();
    assert_eq!((of("first/"), of("second/")), (quarantine(&inputs[0]).len(), quarantine(&inputs[1]).len()));
    let mut all = Vec::new();
    for input in &inputs[..2] {
        all.extend(raw_bytes(input));
    }
    assert!(all.len() >= 20, "{}", all.len());
    for bytes in raw_bytes(&tape) {
        assert!(all.contains(&bytes), "{}", String::from_utf8_lossy(&bytes));
    }

    // And a further run places nothing again.
    for _ in 0..3 {
        let before = files(&tape);
        let again = merge(&inputs, &tape).code(3).json();
        assert_eq!(again["messages"], account["messages"]);
        assert_eq!(again["by_kind"], account["by_kind"]);
        assert!(before == files(&tape), "a rerun changed the tape");
    }
}

/// The records of a merge: how far each input is placed.
fn records(tape: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(tape.join("merge.state")).unwrap_or_default();
    let json = |line: &str| serde_json::from_str(line.rsplit_once(' ')?.0).ok();
    text.lines().filter_map(json).collect()
}

/// Removes of an input what is placed of it, and sometimes of the merge what is old.
fn retain(inputs: &[PathBuf], tape: &Path, rng: &mut Rng) {
    let records = records(tape);
    // The last one may be of frames that are not on the tape.
    let Some(record) = records.len().checked_sub(2).map(|n| &records[n]) else { return };
    for (n, input) in inputs.iter().enumerate() {
        let placed = record["at"][n]["position"].as_u64().unwrap();
        let end = records[0]["targets"][n].as_u64().unwrap();
        let keep = (end - placed + 2 * SEGMENT).to_string();
        run(["tape", "retain", input.to_str().unwrap(), "--bytes", &keep]).code(0);
    }
    if rng.one_in(3) {
        run(["tape", "retain", tape.to_str().unwrap(), "--bytes", &(3 * SEGMENT).to_string()]);
    }
}

pub fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_all(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), &to).unwrap();
        }
    }
}

/// A kill between the record of a batch and its frames must neither lose nor repeat a unit, and what is placed may be
/// removed from its tape.
#[test]
fn kills_change_no_byte_of_a_merge() {
    let rounds: u64 =
        std::env::var("UNITAPE_KILL_ROUNDS").map_or(20, |n| n.parse().expect("a number of rounds"));
    let rounds = if std::env::var_os("UNITAPE_DEEP").is_some() { rounds.max(200) } else { rounds };
    let seed: u64 = std::env::var("UNITAPE_KILL_SEED").map_or(1, |n| n.parse().expect("a seed"));
    let dir = tempfile::tempdir().unwrap();
    let originals = inputs(dir.path());
    let whole = dir.path().join("whole");
    let account = merge(&originals, &whole).code(3).json();
    let batches = std::fs::read_dir(whole.join("segments")).unwrap().count() as u64 / 8;
    let whole_files = files(&whole);
    let (mut kills, mut tapes, mut removed) = (0, 0, 0);
    while kills < rounds {
        let mut rng = Rng::new(seed.wrapping_mul(1_000_003) + tapes);
        let retains = tapes % 2 == 1;
        let home = dir.path().join(format!("round-{tapes}"));
        let inputs: Vec<_> = originals.iter().map(|input| home.join(input.file_name().unwrap())).collect();
        originals.iter().zip(&inputs).for_each(|(from, to)| copy_all(from, to));
        let tape = home.join("tape");
        let what = format!("UNITAPE_KILL_SEED={seed}, tape {tapes}");
        for _ in 0..1 + rng.below(4) {
            let before = records(&tape).len() as u64;
            let further = rng.below(batches.max(2));
            let mut command = unitape();
            command.args(arguments(&inputs, &tape)).stdin(Stdio::null()).stdout(Stdio::null());
            let mut child = command.stderr(Stdio::null()).spawn().unwrap();
            while child.try_wait().unwrap().is_none() && (records(&tape).len() as u64) < before + further {
                std::thread::yield_now();
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            if retains {
                retain(&inputs, &tape, &mut rng);
                let is_gone = |input: &&PathBuf| unitape_tape::oldest_position(input).unwrap().0 > 0;
                removed += inputs.iter().filter(is_gone).count();
            }
        }
        let last = merge(&inputs, &tape);
        assert_eq!(last.code, Some(3), "{what}: {}", last.stderr);
        let last = last.json();
        for part in ["messages", "events", "quarantined", "by_kind", "by_feed", "gaps"] {
            assert_eq!(last[part], account[part], "{what}: {part}");
        }
        if tape.join("account.gone").exists() {
            for (name, bytes) in files(&tape).iter().filter(|(name, _)| name.starts_with("segments/")) {
                assert!(whole_files.get(name) == Some(bytes), "{what}: {name}");
            }
            run(["tape", "verify", tape.to_str().unwrap()]).code(0);
        } else {
            assert_same(&whole, &tape, &what);
        }
        std::fs::remove_dir_all(&home).unwrap();
        tapes += 1;
    }
    assert!(removed > 0, "retention removed something of an input");
    println!("{kills} kills, {tapes} tapes, all the same, {removed} times after retention");
}

/// What retention removed before the merge is said, and the account of the rest closes.
#[test]
fn a_beginning_that_is_gone_is_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = inputs(dir.path());
    for input in [&inputs[0], &inputs[2]] {
        run(["tape", "retain", input.to_str().unwrap(), "--bytes", &(2 * SEGMENT).to_string()]).code(0);
    }
    let oldest = |input: &Path| unitape_tape::oldest_position(input).unwrap().0;
    let tape = dir.path().join("merged");
    let account = merge(&inputs, &tape).code(3).says(&["gap: of tape first positions 0 to"]).json();
    let gap = |name: &str, n: usize| serde_json::json!({"tape": name, "from": 0, "to": oldest(&inputs[n])});
    assert!(oldest(&inputs[0]) > 0 && oldest(&inputs[2]) > 0);
    assert_eq!(account["gaps"], Value::Array(vec![gap("first", 0), gap("own", 2)]));
    run(["tape", "verify", tape.to_str().unwrap()]).code(3);
    let wanted: usize = inputs.iter().map(|input| full(input).len()).sum();
    assert_eq!((full(&tape).len(), &account["tape_gaps"]), (wanted + 2, &2.into()));
    // Messages that a mark counts and that are gone are not counted here.
    let first = full(&inputs[0]);
    let kept = first.iter().filter(|e| e["flags"].as_array().unwrap().contains(&"last".into())).count();
    let counted = &account["by_feed"]["first/orders"];
    let sum = counted["with_events"].as_u64().unwrap() + counted["quarantined"].as_u64().unwrap();
    assert_eq!(sum, kept as u64, "{counted}");
    let before = files(&tape);
    assert_eq!(merge(&inputs, &tape).code(3).json()["gaps"], account["gaps"]);
    assert!(before == files(&tape), "a rerun changed the tape");
}

/// What a tape gets later is placed by a later merge, and the events that come after their time say so.
#[test]
fn a_tape_that_grew_is_continued() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let mut names = Dictionary::default();
    let grow = |tape: &Path, times: &[i64], names: &mut Dictionary| {
        let id = TapeId(tape.ends_with("a").into());
        let (mut writer, _) = Writer::open(tape, id, small()).unwrap();
        own_units(&mut writer, times.iter().copied(), names);
        writer.close().unwrap();
    };
    grow(&a, &[10, 40], &mut names);
    grow(&b, &[20, 70], &mut Dictionary::default());
    let (inputs, tape) = ([a.clone(), b], dir.path().join("merged"));
    let times = || -> Vec<String> {
        let of = |e: &Value| {
            let late = e["flags"].as_array().is_some_and(|flags| flags.contains(&"late".into()));
            format!("{}{}", e["ts"], if late { " late" } else { "" })
        };
        cat(&tape, &["--full", "--kind", "trade"]).iter().map(of).collect()
    };
    let clean = merge(&inputs, &tape).code(0).json();
    assert_closes_without_sources(&clean);
    assert_eq!(times(), ["10", "20", "40", "70"]);
    grow(&a, &[50, 80], &mut names);
    merge(&inputs, &tape).code(0);
    assert_eq!(times(), ["10", "20", "40", "70", "50 late", "80"]);
    merge(&inputs, &tape).code(0);
    assert_eq!(times().len(), 6);
    run(["tape", "verify", tape.to_str().unwrap()]).code(0);
}

/// Units without a source are in no feed, and in the account by kind.
fn assert_closes_without_sources(account: &Value) {
    assert_eq!(account["by_kind"], serde_json::json!({"trade": 4}));
    assert_eq!((&account["messages"], &account["recovered"]), (&0.into(), &Value::Null));
}

/// What is refused changes nothing.
#[test]
fn other_tapes_than_before_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (own_tape(dir.path(), "a", 30), orders_tape(dir.path(), "b", &common::order(1)));
    let tape = dir.path().join("merged");
    merge(&[a.clone(), b.clone()], &tape).code(0);
    let before = files(&tape);
    let pairs = |list: &[(&str, &Path)]| -> common::Ran {
        let mut args: Vec<OsString> = vec!["consolidate".into()];
        for (name, input) in list {
            args.extend(["--tape-in".into(), format!("{name}={}", input.display()).into()]);
        }
        args.extend(["--tape".into(), (&tape).into()]);
        run(args)
    };
    pairs(&[("b", &b), ("a", &a)]).code(2).says(&["tape 1 of the merge is a, not b"]);
    pairs(&[("a", &a)]).code(2).says(&["a merge of 2 tapes, and 1 are given"]);
    pairs(&[("a", &a), ("a", &b)]).code(2).says(&["two tapes have the name a"]);
    pairs(&[("a", &a), ("b", &a)]).code(2).says(&["the same tape as a"]);
    pairs(&[("a", &a), ("b", &tape)]).code(2).says(&["the tape that the merge writes"]);
    let other = orders_tape(dir.path(), "other", &common::order(2));
    pairs(&[("a", &a), ("b", &other)]).code(3).says(&["tape b", "the merge has tape"]);
    pairs(&[("a", &a), ("b", dir.path())]).code(1).says(&["not a tape"]);
    let source = b.with_extension("in").join("day.fix");
    for beside in
        [&["--tape-in", "x", "market.fix"][..], &["--tape-in", "x", "--feed", "n=fix::f"], &["--skip-damage"]]
    {
        run(["consolidate", "--tape", "t"].iter().chain(beside)).code(2);
    }
    assert!(before == files(&tape), "a refused merge changed the tape");

    // Neither onto what is no merge, nor files onto a merge.
    let plain = orders_tape(dir.path(), "plain", &common::order(3));
    let before = files(&plain);
    merge(&[a, b], &plain).code(2).says(&["no merge of tapes"]);
    assert!(before == files(&plain));
    let onto = run([
        "consolidate",
        "--feed",
        &common::orders_option("n", &source),
        "--tape",
        tape.to_str().unwrap(),
    ]);
    onto.code(2).says(&["merge of tapes"]);
}

/// A damaged tape is read as `tape cat` reads it.
#[test]
fn damage_ends_a_merge_with_its_place_or_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = inputs(dir.path());
    common::damage::flip(&inputs[0].join("segments/0000000000000003.seg"), 4096 + 300);
    let tape = dir.path().join("merged");
    merge(&inputs, &tape).code(3).says(&["0000000000000003"]);
    let left = full(&tape).len();
    let mut args = arguments(&inputs, &tape);
    args.push("--skip-damage".into());
    let account = run(&args).code(3).says(&["skipped 1 damaged parts"]).json();
    assert!(full(&tape).len() > left);
    assert_eq!(account["gaps"], serde_json::json!([]));
    run(["tape", "verify", tape.to_str().unwrap()]).code(3);
    // Later merges say it as well, also those that need not pass over anything.
    assert_eq!(account["damaged"][0]["tape"], "first");
    let again = merge(&inputs, &tape).code(3).says(&["damage: of tape first positions"]).json();
    assert_eq!(again["damaged"], account["damaged"]);
    let lost: usize = inputs[1..].iter().map(|input| full(input).len()).sum();
    let first = run(["tape", "cat", inputs[0].to_str().unwrap(), "--json", "--skip-damage"]).code(3).lines();
    // The event of the gap is the merge's own.
    assert_eq!(full(&tape).len(), lost + first.len() + 1);
}

/// Bytes of quarantine that are damaged, with which every merge ended in the same place, also where damage is passed over.
#[test]
fn a_damaged_message_in_quarantine_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = inputs(dir.path());
    let entries = quarantine(&inputs[0]).len();
    assert!(entries > 1, "{entries}");
    common::damage::flip(&inputs[0].join("quarantine.raw"), 3);
    let tape = dir.path().join("merged");
    merge(&inputs, &tape).code(3).says(&["quarantine.raw"]);
    let mut args = arguments(&inputs, &tape);
    args.push("--skip-damage".into());
    let account = run(&args).code(3).json();
    assert_eq!(account["damaged"].as_array().unwrap().len(), 1, "{account}");
    let others: usize = inputs[1..].iter().map(|input| quarantine(input).len()).sum();
    // The message is left out, and the gap is there in its place.
    assert_eq!(quarantine(&tape).len(), entries + others);
    run(["tape", "verify", tape.to_str().unwrap()]).code(3);
    assert_eq!(merge(&inputs, &tape).code(3).json()["damaged"], account["damaged"]);
}

/// A tape like that of [`own_tape`], whose frames have the same lengths and other times.
fn own_tape_later(dir: &Path, name: &str, from: i64, to: i64) -> PathBuf {
    let tape = dir.join(name);
    let (mut writer, _) = Writer::open(&tape, TapeId(77), small()).unwrap();
    let later = 7 * 3 * 200 * 5;
    let times = (from..to).map(|n| MORNING + n * 9_000_000_000 + later);
    own_units(&mut writer, times, &mut Dictionary::default());
    writer.close().unwrap();
    tape
}

/// Live runs of one configuration write tapes of one id. The second was taken for the first: a merge of both was refused, and
/// one of the second continued where that of the first had ended, so that its beginning was lost without a word.
#[test]
fn tapes_of_one_id_are_told_apart_by_their_events() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (own_tape(dir.path(), "a", 300), own_tape_later(dir.path(), "b", 0, 400));
    let both = dir.path().join("both");
    let account = merge(&[a.clone(), b.clone()], &both).code(0).json();
    assert_eq!(account["by_kind"]["trade"], 700);
    let messages = |count: i64| (0..count).filter(|n| (MORNING + n * 9_000_000_000) % 3 == 0).count();
    assert_eq!(account["user_messages"], messages(300) + messages(400));
    let copy = dir.path().join("copy");
    copy_all(&a, &copy);
    merge(&[a.clone(), copy], &dir.path().join("twice")).code(2).says(&["the same tape as a"]);

    let one = dir.path().join("one");
    merge(std::slice::from_ref(&a), &one).code(0);
    let before = files(&one);
    std::fs::rename(&a, dir.path().join("old")).unwrap();
    std::fs::rename(&b, &a).unwrap();
    merge(std::slice::from_ref(&a), &one).code(3).says(&["tape a", "another one now"]);
    assert!(before == files(&one));
}

/// A tape that was cut back and has grown again, longer than it was: the merge continued where the old frames had ended.
#[test]
fn a_tape_that_was_cut_and_has_grown_again_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (a, tape) = (own_tape(dir.path(), "a", 2_000), dir.path().join("merged"));
    merge(std::slice::from_ref(&a), &tape).code(0);
    let before = files(&tape);
    let point = Reader::open(&a, StartPosition::End).unwrap().point();
    let segment = a.join("segments/0000000000000001.seg");
    common::damage::flip(&segment, 4096 + 1_000);
    run(["tape", "repair", a.to_str().unwrap(), "--apply", "--truncate"]).code(0);
    let (mut writer, _) = Writer::open(&a, TapeId(77), small()).unwrap();
    let mut names = Dictionary::default();
    (0..7).for_each(|n| _ = names.intern(NameKind::Instrument, format!("OWN{n}").as_bytes()).unwrap());
    own_units(&mut writer, (2_000..6_000).map(|n| MORNING + n * 9_000_000_000), &mut names);
    writer.close().unwrap();
    merge(std::slice::from_ref(&a), &tape).code(3).says(&["tape a", "use a new tape"]);
    assert!(before == files(&tape));
    // Every reader that keeps its place learns of the cut.
    assert!(Reader::open(&a, StartPosition::End).unwrap().position() > point.position);
    assert_eq!(Reader::resume(&a, point).unwrap().rewinds().count, 1);
}

/// What a merge cannot do is refused with the way out, and leaves the tape as it was.
#[test]
fn refusals_say_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = inputs(dir.path());
    let tape = dir.path().join("merged");
    merge(&inputs, &tape).code(3);
    let before = files(&tape);
    let retried = run(["quarantine", "retry", tape.to_str().unwrap()]);
    retried.code(2).says(&["is a merge of tapes", "on its own tape"]);
    assert!(before == files(&tape));

    let long = dir.path().join("long");
    let (mut writer, _) = Writer::open(&long, TapeId(9), small()).unwrap();
    let (header, word) = TopicMessage::header_words(1, 40_000).unwrap();
    let mut frame = vec![0; header.len_bytes()];
    header.write(&mut frame);
    frame[8..16].copy_from_slice(&word.to_le_bytes());
    writer.append(&frame).unwrap();
    writer.close().unwrap();
    let to = |segment: &str, tape: &str| {
        let tape = dir.path().join(tape);
        let (input, tape) = (long.to_str().unwrap(), tape.to_str().unwrap());
        run(["consolidate", "--tape-in", input, "--tape", tape, "--segment-bytes", segment, "--json"])
    };
    to("16384", "narrow").code(3).says(&["tape long", "longer than a segment", "--segment-bytes"]);
    assert_eq!(to("65536", "wide").code(0).json()["user_messages"], 1);
    let inside = long.join("merged");
    let inside =
        run(["consolidate", "--tape-in", long.to_str().unwrap(), "--tape", inside.to_str().unwrap()]);
    inside.code(2).says(&["would be in it"]);
    let plain = file(dir.path(), "plain", b"x");
    let named = run(["consolidate", "--tape-in", plain.to_str().unwrap(), "--tape", tape.to_str().unwrap()]);
    named.code(2).says(&["a tape is a directory"]);
    for name in [" ", "a\nb", "a "] {
        let option = format!("{name}={}", long.display());
        let named = run(["consolidate", "--tape-in", &option, "--tape", "t"]);
        named.code(2).says(&["a name has"]);
    }
}

#[test]
fn frames_are_what_the_test_takes_them_for() {
    let dir = tempfile::tempdir().unwrap();
    let tape = own_tape(dir.path(), "own", 9);
    let mut reader = Reader::open(&tape, StartPosition::Oldest).unwrap();
    let mut kinds = Vec::new();
    while let Some(frame) = reader.next().unwrap() {
        assert_eq!(FrameHeader::read(frame.bytes).kind(), frame.header.kind());
        kinds.extend(Event::new(frame.bytes).map(|event| (event.kind(), event.source())));
    }
    assert!(kinds.iter().all(|(_, source)| *source == 0) && kinds.len() > 9);
    assert_closes(
        &merge(&[orders_tape(dir.path(), "o", &common::order(1))], &dir.path().join("m")).code(0).json(),
    );
}
