//! A damaged tape: no command uses a value that does not match its checksum, or a name that is not defined; each says
//! which file and position it is, ends with 3, and continues after the damage if asked to.

use crate::common::{self, Ran, cat, file, fix, run};
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

const SEGMENT_BYTES: u64 = 128 << 10;
const SPAN_BYTES: u64 = 64 << 10;
const HEADER_BYTES: u64 = 4096;

/// An order of number `n` in one of three instruments, of which the third is met late.
fn order(n: u32) -> Vec<u8> {
    let time = format!("20260302-{:02}:{:02}:{:02}", n / 3600, n / 60 % 60, n % 60);
    let instrument = if n == 1_500 { 3 } else { 1 + n % 2 };
    fix(&format!(
        "35=8|49=XLON|56=U|34={n}|52={time}|60={time}|37=O{n}|150=0|54=1|38=100|40=2|207=XLON|48=GB000000000{instrument}|22=4|44={}.5|",
        1 + n % 90
    ))
}

/// A closed tape of several segments.
fn tape(dir: &Path) -> PathBuf {
    let orders: Vec<u8> = (1..4_500).flat_map(order).collect();
    let feed = common::orders_option("orders", &file(dir, "orders.fix", orders));
    let tape = dir.join("tape");
    let bytes = SEGMENT_BYTES.to_string();
    let args = ["consolidate", "--feed", &feed, "--segment-bytes", &bytes, "--tape"];
    run(args.iter().map(AsRef::as_ref).chain([tape.as_os_str()])).code(0);
    assert!(segments(&tape).len() >= 4, "{:?}", segments(&tape));
    tape
}

fn segments(tape: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(tape.join("segments")).unwrap().map(|e| e.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|e| e == "seg"));
    all.sort();
    all
}

fn segment(tape: &Path, index: u64) -> PathBuf {
    tape.join(format!("segments/{index:016x}.seg"))
}

fn open(path: &Path) -> fs::File {
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

fn read(tape: &Path, position: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let file = open(&segment(tape, position / SEGMENT_BYTES));
    file.read_exact_at(&mut bytes, HEADER_BYTES + position % SEGMENT_BYTES).unwrap();
    bytes
}

fn write(tape: &Path, position: u64, bytes: &[u8]) {
    let file = open(&segment(tape, position / SEGMENT_BYTES));
    file.write_all_at(bytes, HEADER_BYTES + position % SEGMENT_BYTES).unwrap();
}

/// Makes the checksum of the span at `position` that of what is there.
fn resum(tape: &Path, position: u64) {
    let from = position - position % SPAN_BYTES;
    let sum = crc32c(&read(tape, from, SPAN_BYTES as usize));
    let sums = open(&segment(tape, position / SEGMENT_BYTES).with_extension("crc"));
    sums.write_all_at(&sum.to_le_bytes(), from % SEGMENT_BYTES / SPAN_BYTES * 4).unwrap();
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 },
        )
    })
}

/// Every command that reads a tape, with what it puts on stdout.
fn readers(dir: &Path, tape: &Path, options: &[&str]) -> Vec<(&'static str, Ran)> {
    let t = tape.to_str().unwrap();
    let store = dir.join(format!("store{}", options.len()));
    _ = fs::remove_dir_all(&store);
    let s = store.to_str().unwrap();
    let mut all = vec![
        ("cat", vec!["tape", "cat", t, "--json", "--full"]),
        ("replay", vec!["tape", "replay", t, "--json"]),
        ("info", vec!["tape", "info", t, "--json"]),
        ("watch", vec!["watch", "replay", t, "--json"]),
        ("book", vec!["book", "show", t, "--json"]),
        ("quarantine", vec!["quarantine", "list", t, "--json"]),
    ];
    if !options.contains(&"--no-verify") {
        all.push(("seal", vec!["store", "seal", t, "--store", s, "--json"]));
    }
    let ran = |args: &[&str]| run(args.iter().chain(options));
    all.iter().map(|(name, args)| (*name, ran(args))).collect()
}

fn lines(ran: &Ran) -> Vec<Value> {
    ran.lines()
}

/// A price that is not the one that was written went into books, alerts and, under a checksum of its own, into the
/// store; nothing was said, with exit code 0.
#[test]
fn a_flipped_price_is_never_printed() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path());
    let all = cat(&tape, &["--full"]);
    let victim = all.iter().position(|e| e["position"].as_u64().unwrap() > 3 * SPAN_BYTES + 30_000).unwrap();
    let position = all[victim]["position"].as_u64().unwrap();
    let (index, span) = (position / SEGMENT_BYTES, position - position % SPAN_BYTES);
    // The price is eight bytes from byte 40 of the frame on: another one, 68.7 higher, that is as good as the right one.
    let byte = read(&tape, position + 44, 1)[0];
    write(&tape, position + 44, &[byte ^ 0x10]);
    let name = format!("{index:016x}.seg at offset {}", HEADER_BYTES + span % SEGMENT_BYTES);
    for (command, ran) in readers(dir.path(), &tape, &[]) {
        assert_eq!(ran.code, Some(3), "{command}: {}", ran.stderr);
        for word in ["damage: ", &name, &format!("positions {span} to {}", span + SPAN_BYTES)] {
            assert!(ran.stderr.contains(word), "{command}: {word:?} is not in {}", ran.stderr);
        }
        match command {
            "cat" => {
                let got = lines(&ran);
                assert!(!got.is_empty() && got.len() < victim && got == all[..got.len()], "{command}");
            }
            "replay" => assert!(lines(&ran).len() < victim),
            "watch" => {}
            _ => assert_eq!(ran.text(), "", "{command}"),
        }
    }
    let store = dir.path().join("store0");
    let info = run(["store".as_ref(), "info".as_ref(), store.as_os_str(), "--json".as_ref()]).code(0).json();
    assert_eq!(info["rows"], 0, "nothing of it is in the store");
    // A run that continues where the tape ends reads it, too, and does not put more on top of it.
    let feed = common::orders_option("orders", &dir.path().join("orders.fix"));
    let (before, copy) = (common::files(&tape), dir.path().join("copy"));
    for (name, bytes) in &before {
        fs::create_dir_all(copy.join(name).parent().unwrap()).unwrap();
        fs::write(copy.join(name), bytes).unwrap();
    }
    let more =
        ["consolidate".as_ref(), "--feed".as_ref(), feed.as_ref(), "--tape".as_ref(), copy.as_os_str()];
    run(more).code(3).says(&["damage: ", &name]);
    let after = common::files(&copy);
    assert!(
        before.iter().filter(|(name, _)| name.ends_with(".seg")).all(|(name, bytes)| after[name] == *bytes)
    );
    // A user who asks for it gets it.
    for (command, ran) in readers(dir.path(), &tape, &["--no-verify"]) {
        assert!(!ran.stderr.contains("damage: "), "{command}: {}", ran.stderr);
        if command == "cat" {
            assert_eq!(ran.code, Some(0));
            let got = lines(&ran);
            assert_ne!(got[victim]["px"], all[victim]["px"]);
            assert_eq!(got.len(), all.len());
        }
    }
    // The events after it are there, and the loss is counted: nothing more than up to the next segment.
    let next = (index + 1) * SEGMENT_BYTES;
    for (command, ran) in readers(dir.path(), &tape, &["--skip-damage"]) {
        assert_eq!(ran.code, Some(3), "{command}: {}", ran.stderr);
        let got = if command == "cat" { lines(&ran) } else { Vec::new() };
        if command == "cat" {
            let wanted: Vec<&Value> = all
                .iter()
                .filter(|e| {
                    let at = e["position"].as_u64().unwrap();
                    at >= next || got.iter().any(|e| e["position"] == at) && at < span
                })
                .collect();
            assert_eq!(got.iter().collect::<Vec<_>>(), wanted);
            assert!(got.iter().any(|e| e["position"].as_u64().unwrap() < span));
            let lost = all.len() - got.len();
            assert!(
                ran.stderr.contains(&format!(" {} events", grouped(lost))),
                "{lost} lost: {}",
                ran.stderr
            );
            assert!(!ran.stderr.contains("no name"), "{}", ran.stderr);
        }
        assert!(ran.stderr.contains("skipped 1 damaged parts"), "{command}: {}", ran.stderr);
    }
    let sealed = run(["store", "info", dir.path().join("store1").to_str().unwrap(), "--json"]).code(0).json();
    assert!(sealed["rows"].as_u64().unwrap() > 3_000, "{sealed}");
}

/// One bad byte in a header, and no command printed anything of the segments after it.
#[test]
fn after_a_flipped_header_later_segments_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path());
    let all = cat(&tape, &["--full"]);
    let last = segments(&tape).len() as u64 - 1;
    // A first ordinal, an index, the version, and the magic.
    for (index, offset) in [(1, 57), (0, 33), (2, 8), (last, 0)] {
        let file = open(&segment(&tape, index));
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).unwrap();
        file.write_all_at(&[byte[0] ^ 2], offset).unwrap();
        let name = format!("{index:016x}.seg");
        for (command, ran) in readers(dir.path(), &tape, &[]) {
            assert_eq!(ran.code, Some(3), "segment {index}, {command}: {}", ran.stderr);
            assert!(
                ran.stderr.contains("damage: ") && ran.stderr.contains(&name),
                "{command}: {}",
                ran.stderr
            );
        }
        let (from, to) = (index * SEGMENT_BYTES, (index + 1) * SEGMENT_BYTES);
        let wanted: Vec<&Value> =
            all.iter().filter(|e| !(from..to).contains(&e["position"].as_u64().unwrap())).collect();
        for (command, ran) in readers(dir.path(), &tape, &["--skip-damage"]) {
            assert_eq!(ran.code, Some(3), "segment {index}, {command}: {}", ran.stderr);
            assert!(ran.stderr.contains("skipped 1 damaged parts"), "{command}: {}", ran.stderr);
            if command == "cat" {
                assert_eq!(lines(&ran).iter().collect::<Vec<_>>(), wanted, "segment {index}");
                let lost = match index == last {
                    true => "events that nobody has counted".to_owned(),
                    false => format!(" {} events", grouped(all.len() - wanted.len())),
                };
                assert!(ran.stderr.contains(&lost), "{lost}: {}", ran.stderr);
            }
        }
        file.write_all_at(&byte, offset).unwrap();
    }
    assert_eq!(cat(&tape, &["--full"]), all);
}

fn grouped(n: usize) -> String {
    match n {
        n if n < 1000 => n.to_string(),
        n => format!("{},{:03}", n / 1000, n % 1000),
    }
}

/// A definition that does not follow the others: `cat` printed ids with exit code 0, `watch` and `book` refused with 1,
/// `seal` in other words. An id that no definition precedes means nothing.
#[test]
fn a_name_that_is_not_defined_is_damage_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path());
    let all = cat(&tape, &["--full", "--all"]);
    let definitions: Vec<&Value> =
        all.iter().filter(|e| e["kind"] == "define" && e["dict"] == "instrument").collect();
    assert_eq!(definitions.len(), 3);
    let of = |n: usize| definitions[n]["position"].as_u64().unwrap();
    let (first, third) = (of(0), of(2));
    let user = all.iter().find(|e| e["instr"] == "GB0000000003").unwrap();
    let user = user["position"].as_u64().unwrap();
    let original = read(&tape, third, 64);
    let mut again = original.clone();
    // The definition of another name once more: nothing is wrong with that, but the third is not defined then.
    again[8..].copy_from_slice(&read(&tape, first, 64)[8..]);
    let mut far = original.clone();
    far[32] += 4;
    for (frame, position, what) in [
        (&again, user, "instrument 3 is not defined"),
        (&far, third, "the definition of instrument 7, \"GB0000000003\", does not follow those before it"),
    ] {
        write(&tape, third, frame);
        resum(&tape, third);
        let said = format!(
            "damage: {} at offset {}: position {position}: {what}\n",
            segment(&tape, position / SEGMENT_BYTES).display(),
            HEADER_BYTES + position % SEGMENT_BYTES
        );
        for (command, ran) in readers(dir.path(), &tape, &[]) {
            assert_eq!(ran.code, Some(3), "{what}: {command}: {}", ran.stderr);
            assert!(ran.stderr.ends_with(&said), "{command}: {} is not {said}", ran.stderr);
        }
        for (command, ran) in readers(dir.path(), &tape, &["--skip-damage"]) {
            assert_eq!(ran.code, Some(3), "{what}: {command}: {}", ran.stderr);
            assert!(ran.stderr.contains("lost"), "{command}: {}", ran.stderr);
            if command == "cat" {
                let got = lines(&ran);
                assert!(got.last().unwrap()["position"].as_u64().unwrap() > user + SEGMENT_BYTES);
                assert!(got.iter().all(|e| e["instr"].is_string()), "an id without a name");
            }
        }
    }
    write(&tape, third, &original);
    resum(&tape, third);
    assert_eq!(cat(&tape, &["--full", "--all"]), all);
}

/// Names that are lost with damage are in the dictionary log; where that is lost as well, ids are printed and counted.
#[test]
fn names_that_are_lost_come_from_the_log_and_what_has_none_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path());
    let all = cat(&tape, &["--full"]);
    // The first segment has the definitions of most names.
    open(&segment(&tape, 0)).write_all_at(b"x", 3).unwrap();
    let t = tape.to_str().unwrap();
    let skip = ["tape", "cat", t, "--json", "--full", "--skip-damage"];
    let ran = run(skip).code(3);
    let kept = all.iter().filter(|e| e["position"].as_u64().unwrap() >= SEGMENT_BYTES);
    assert_eq!(ran.lines().iter().collect::<Vec<_>>(), kept.collect::<Vec<_>>());
    assert!(!ran.stderr.contains("no name"), "{}", ran.stderr);
    fs::remove_file(tape.join("definitions.log")).unwrap();
    let ran = run(skip).code(3).says(&["ids have no name"]);
    assert!(ran.lines().iter().any(|e| e["instr"]["id"] == 1), "{}", ran.text().lines().next().unwrap());
    assert!(ran.lines().iter().any(|e| e["instr"] == "GB0000000003"), "a later definition is learned");
}

/// Without checksums nothing vouches for a tape: its data is printed, and that nobody knows is said.
#[test]
fn a_tape_whose_checksums_are_missing_is_unverified() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path());
    let all = cat(&tape, &["--full"]);
    let sums = segment(&tape, 1).with_extension("crc");
    for (missing, sealed) in [(sums.clone(), None), (tape.join("durable"), Some(all.len()))] {
        let bytes = fs::read(&missing).unwrap();
        fs::remove_file(&missing).unwrap();
        let name = missing.file_name().unwrap().to_str().unwrap();
        for (command, ran) in readers(dir.path(), &tape, &[]) {
            assert_eq!(ran.code, Some(3), "{name}: {command}: {}", ran.stderr);
            let word = if command == "seal" && sealed.is_none() { "unchecked: " } else { "unverified: " };
            assert!(ran.stderr.contains(word) && ran.stderr.contains(name), "{command}: {}", ran.stderr);
            match command {
                "cat" => assert_eq!(lines(&ran), all, "{name}"),
                "seal" => {
                    let rows = lines(&ran).first().map(|line| line["rows"].as_u64().unwrap() as usize);
                    assert_eq!(rows, sealed, "{name}");
                }
                _ => {}
            }
        }
        // Half of the sums are as good as none for the other half.
        fs::write(&missing, &bytes[..bytes.len() / 2]).unwrap();
        run(["tape", "cat", tape.to_str().unwrap()]).code(3).says(&["unverified: ", name]);
        fs::write(&missing, &bytes).unwrap();
    }
    assert_eq!(cat(&tape, &["--full"]), all);
    run(["store", "seal", tape.to_str().unwrap(), "--store", dir.path().join("s").to_str().unwrap()]).code(0);
}

/// A hole where a frame was: reading stopped there with exit code 0, as at the end.
#[test]
fn a_hole_before_the_durable_position_is_no_end() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape(dir.path());
    let all = cat(&tape, &["--full"]);
    let position = all[all.len() / 2]["position"].as_u64().unwrap();
    write(&tape, position, &[0; 8]);
    let t = tape.to_str().unwrap();
    run(["tape", "cat", t]).code(3).says(&["damage: "]);
    run(["tape", "cat", t, "--no-verify"]).code(3).says(&[&format!("nothing at position {position}")]);
    resum(&tape, position);
    run(["tape", "cat", t]).code(3).says(&[&format!("nothing at position {position}")]);
    run(["book", "show", t]).code(3).says(&["damage: "]);
}
