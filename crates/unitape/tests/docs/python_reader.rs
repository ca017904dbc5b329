//! The reader in `examples/python`, which was written from the format pages alone, prints what `tape cat` prints.
//!
//! The pages once had no tags of fields, no numbers of dictionaries and no payloads of the extension: nobody could
//! have written a reader from them. It reads the fields of a kind out of the page's table.
#![cfg(unix)]

use crate::common::{Ran, file, files, flow, orders_option, root, run, unitape};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use unitape_model::schema::{EventFieldSpec, EventSchema, FieldLayout, at};
use unitape_model::{
    Amount, CivilDate, Decimal, EventBuilder, EventField, EventKind, EventValue, FrameHeader, InlineId,
    NameKind, Position, Price, TapePosition, UnixNanos, flags,
};
use unitape_sim::Rng;
use unitape_tape::{Publication, TapeId, Writer, WriterOptions};

/// The reader in Python, with a tape to read.
fn reader(tape: &Path) -> Command {
    let script = root().join("examples/python/read_tape.py");
    assert!(script.is_file(), "{} is missing", script.display());
    let mut command = Command::new("python3");
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(script).arg(tape);
    command
}

/// The Python reader's result for a tape: exit code, lines, problems.
fn python(tape: &Path) -> (Option<i32>, Vec<u8>, String) {
    let output = reader(tape).output();
    let output =
        output.unwrap_or_else(|e| panic!("this test needs Python 3 (see CONTRIBUTING.md): python3: {e}"));
    (output.status.code(), output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// An id that no definition gives a name is damage to the command. It prints the id where it is to pass over damage.
fn printed(tape: &Path) -> Ran {
    let options = ["--json", "--full", "--all", "--skip-damage"].map(AsRef::as_ref);
    run(["tape".as_ref(), "cat".as_ref(), tape.as_os_str()].into_iter().chain(options))
}

/// Asserts that both print the same lines, and that the reader finds nothing wrong; gives the number of lines.
#[track_caller]
fn assert_equal(tape: &Path) -> usize {
    let (code, theirs, problems) = python(tape);
    let ours = printed(tape);
    let (mut a, mut b) = (ours.stdout.split(|c| *c == b'\n'), theirs.split(|c| *c == b'\n'));
    for n in 1.. {
        match (a.next(), b.next()) {
            (None, None) => break,
            (a, b) => {
                let text = |line: Option<&[u8]>| line.map(|l| l.escape_ascii().to_string());
                assert_eq!(text(a), text(b), "line {n}; {problems}{}", ours.stderr);
            }
        }
    }
    assert_eq!((code, problems.as_str()), (Some(0), ""));
    ours.stdout.iter().filter(|c| **c == b'\n').count()
}

/// The tape that everybody makes first.
#[test]
fn the_tape_of_the_demo() {
    let dir = tempfile::tempdir().unwrap();
    let demo = dir.path().join("demo");
    run(["demo".as_ref(), "--seconds".as_ref(), "1".as_ref(), "--dir".as_ref(), demo.as_os_str()]).code(0);
    let tape = demo.join("tape");
    if std::env::var_os("UNITAPE_DEEP").is_some() {
        assert!(assert_equal(&tape) > 100_000);
        return;
    }
    // The start of it: Python needs half a minute for all.
    const LINES: usize = 20_000;
    let mut ours = unitape();
    ours.args(["tape", "cat", "--json", "--full", "--all"]).arg(&tape);
    let [ours, theirs] = [ours, reader(&tape)].map(|command| first_lines(command, LINES));
    assert_eq!(ours.len(), LINES);
    let differs = ours.iter().zip(&theirs).position(|(a, b)| a != b);
    assert_eq!(
        (theirs.len(), differs),
        (LINES, None),
        "{differs:?}: {:?}",
        differs.map(|n| (&ours[n], &theirs[n]))
    );
}

/// The first lines that a command prints; then its stdout is closed.
fn first_lines(mut command: Command, most: usize) -> Vec<String> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(most).map(Result::unwrap).collect();
    child.wait().unwrap();
    lines
}

/// Every kind with every field: none, least, greatest, too large for its place; all flags; frames that unitape never
/// writes, which the words alone do not make again; messages of users; several segments, pads, an end in a segment.
#[test]
fn every_kind_and_every_field() {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(20_261_121);
    let options = WriterOptions { segment_bytes: 1 << 15, ..WriterOptions::default() };
    let (mut writer, _) = Writer::open(dir.path(), TapeId(77), options.clone()).unwrap();
    for unit in definitions() {
        writer.append(&unit).unwrap();
    }
    let mut frames = 0u64;
    for round in 0..60 {
        for kind in EventKind::EVENTS {
            let mut frame = Vec::new();
            event(&mut frame, &mut rng, kind, round);
            // A list of ids that is cut short is refused, not printed.
            let has_list = EventSchema::for_kind(kind)
                .fields
                .iter()
                .any(|spec| matches!(spec.slot, FieldLayout::Syms { .. }));
            if round % 3 == 2 && !has_list {
                damage(&mut frame, &mut rng, kind);
            }
            writer.append(&frame).unwrap();
            frames += 1;
        }
    }
    writer.close().unwrap();
    let mut publication = Publication::open(dir.path(), options).unwrap();
    for (topic, bytes) in
        [(0, &b""[..]), (7, b"text \"quoted\"\x01\x7f"), (u32::MAX, b"\xff\x00\xfe"), (1, &[b'x'; 20_000])]
    {
        publication.offer(topic, bytes).unwrap();
        frames += 1;
    }
    publication.close().unwrap();
    assert!(files(dir.path()).keys().filter(|name| name.ends_with(".seg")).count() > 10);
    let lines = assert_equal(dir.path());
    assert_eq!(lines as u64, frames + definitions().len() as u64);
    let raw = printed(dir.path()).stdout.windows(8).filter(|at| *at == b",\"raw\":\"").count();
    assert!(raw > 500 && lines - raw > 500, "{raw} of {lines} are frames that words alone do not make");
}

/// Segments that retention removed leave their definitions and the ordinals; a killed writer leaves a tape whose last
/// checksums are of fewer bytes than there are.
#[test]
fn after_retention_and_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, _) = flow(5, 4_000, true);
    let orders = file(dir.path(), "orders.fix", &bytes);
    let tape = dir.path().join("kept");
    let feed = orders_option("orders", &orders);
    let t = tape.to_str().unwrap();
    run(["consolidate", "--feed", &feed, "--tape", t, "--segment-bytes", "65536"]).code(3);
    let all = assert_equal(&tape);
    run(["tape", "retain", t, "--bytes", "200000"]).code(0);
    let kept = assert_equal(&tape);
    assert!(kept > 100 && kept < all, "{kept} of {all}");

    let killed = dir.path().join("killed");
    let mut child = unitape()
        .args(["consolidate", "--feed", "orders=fix:fix44-orders:-", "--segment-bytes", "65536", "--tape"])
        .arg(&killed)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&bytes).unwrap();
    let begun = Instant::now();
    let events = |tape: &Path| run(["tape".as_ref(), "cat".as_ref(), tape.as_os_str()]).stdout.len();
    while events(&killed) < 100_000 {
        assert!(begun.elapsed() < Duration::from_secs(300), "nothing comes onto the tape");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    assert!(killed.join("run/writer.lock").exists(), "it closed before it was killed");
    assert!(assert_equal(&killed) > 100);
}

/// The files that a writer leaves when it dies after a flush: what is durable ends within a span and within a segment.
#[test]
fn a_tape_in_use_that_was_flushed_on_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, left) = (dir.path().join("t"), dir.path().join("left"));
    let options = WriterOptions { segment_bytes: 1 << 17, ..WriterOptions::default() };
    let (mut writer, _) = Writer::open(&tape, TapeId(78), options).unwrap();
    let mut rng = Rng::new(3);
    for unit in definitions() {
        writer.append(&unit).unwrap();
    }
    let mut fill = |writer: &mut Writer, bytes: u64| {
        let end = writer.end().0 + bytes;
        while writer.end().0 < end {
            let mut frame = Vec::new();
            event(&mut frame, &mut rng, EventKind::OrderNew, 1);
            writer.append(&frame).unwrap();
        }
    };
    fill(&mut writer, 400_000);
    writer.wait_durable(writer.end(), Duration::from_secs(60)).unwrap();
    fill(&mut writer, 20_000);
    assert!(Command::new("cp").arg("-r").args([&tape, &left]).status().unwrap().success());
    assert!(assert_equal(&left) > 500);
    writer.close().unwrap();
    assert!(assert_equal(&tape) > 500);
}

/// One flipped bit in each file that has a checksum is found, and its file is named.
#[test]
fn damage_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let orders = file(dir.path(), "orders.fix", flow(6, 1_200, true).0);
    let tape = dir.path().join("t");
    let feed = orders_option("orders", &orders);
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--segment-bytes", "65536"])
        .code(3);
    assert_equal(&tape);
    let segment = "segments/0000000000000000.seg";
    for (name, at, said) in [
        (segment, 20, "header page"),
        (segment, 4096 + 1000, "checksum of the span"),
        (segment, 4096 + 192, "no frame begins so"),
        ("segments/0000000000000000.crc", 1, "checksum of the span"),
        ("definitions.log", 40, "checksum of the head"),
        ("definitions.log", 64 + 16 + 40, "the record is damaged"),
        ("durable", 16, "checksum of the head"),
        ("quarantine.raw", usize::MAX, "names bytes beyond its end"),
    ] {
        let path = tape.join(name);
        let whole = std::fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        match bytes.get_mut(at) {
            Some(byte) => *byte ^= 4,
            None => _ = bytes.pop(),
        }
        std::fs::write(&path, bytes).unwrap();
        let (code, _, problems) = python(&tape);
        assert_eq!(code, Some(3), "{name} at {at}");
        let file = Path::new(name).file_stem().unwrap().to_str().unwrap();
        assert!(problems.contains(file) && problems.contains(said), "{name} at {at}: {problems}");
        std::fs::write(&path, whole).unwrap();
    }
    assert_equal(&tape);
}

/// Names of every dictionary, the shortest and the longest; sources with and without a base; a mark of progress.
fn definitions() -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for dict in NameKind::ALL {
        for (i, name) in NAMES.into_iter().map(str::to_owned).chain(["n".repeat(255)]).enumerate() {
            out.push(frame(EventKind::Define, |e| {
                put(e, EventField::Dict, EventValue::UInt(dict as u64));
                put(e, EventField::Index, EventValue::UInt(i as u64 + 1));
                put(e, EventField::Name, EventValue::Text(&name));
            }));
        }
    }
    for (index, base, of) in
        [(1, 0, None), (2, 1 << 32, Some(1)), (u64::from(u32::MAX) - 2, u64::MAX - 9, None)]
    {
        out.push(frame(EventKind::Source, |e| {
            put(e, EventField::Index, EventValue::UInt(index));
            of.into_iter().for_each(|of| put(e, EventField::Of, EventValue::UInt(of)));
            put(e, EventField::Base, EventValue::UInt(base));
            put(e, EventField::Size, EventValue::UInt(u64::MAX));
            put(e, EventField::Format, EventValue::Text("a format of more than eight bytes"));
            put(e, EventField::Hash, EventValue::Text(&"0123456789abcdef".repeat(4)));
            put(e, EventField::Feed, EventValue::Text("feed \u{1f}\u{7f}\u{e9}"));
            put(e, EventField::File, EventValue::Text("file\\\"\n"));
            put(e, EventField::Mapping, EventValue::Text("mapping@1"));
        }));
    }
    out.push(frame(EventKind::Progress, |e| {
        e.source(1, 0);
        put(e, EventField::End, EventValue::Bool(false));
        for (field, n) in [
            (EventField::Through, 9),
            (EventField::Messages, 7),
            (EventField::Ignored, 4),
            (EventField::Duplicates, 2),
            (EventField::Quarantined, 1),
            (EventField::Events, 0),
        ] {
            put(e, field, EventValue::UInt(n));
        }
        e.keep_unmapped("session|\u{1}", "18446744073709551615").unwrap();
    }));
    out
}

const NAMES: [&str; 3] = ["A", "two \"2\"\\", "drei\u{e9}\u{10ffff}"];

fn frame(kind: EventKind, fill: impl FnOnce(&mut EventBuilder<'_>)) -> Vec<u8> {
    let mut arena = Vec::new();
    let mut e = EventBuilder::begin(&mut arena, kind, UnixNanos(0));
    fill(&mut e);
    e.finish(flags::LAST).unwrap();
    arena
}

fn put(e: &mut EventBuilder<'_>, field: EventField, value: EventValue<'_>) {
    e.set_field(field, value).unwrap();
}

/// An event whose fields are what the dice say; in the first rounds every field is there.
fn event(out: &mut Vec<u8>, rng: &mut Rng, kind: EventKind, round: u64) {
    let ts = rng.pick(&[0, 1_710_167_401_000_000_000, i64::MIN, i64::MAX, -1]);
    let mut e = EventBuilder::begin(out, kind, UnixNanos(ts));
    // A quarantine event says where its bytes are; that they are there is checked.
    let bookkeeping = kind == EventKind::Quarantine;
    if !rng.one_in(3) {
        let source = rng.pick(&[1, 2, 9, u32::MAX - 2]);
        e.source(source, rng.pick(&[0, 5, u32::MAX]));
    }
    let odd = round % 2 == 1;
    let swapped = odd && rng.one_in(6);
    let common = |e: &mut EventBuilder<'_>, rng: &mut Rng| {
        if !rng.one_in(3) {
            e.sequence(rng.pick(&[0, 41, 0xffff_fffd, 0xffff_fffe, 0xffff_ffff, u64::MAX]));
        }
        if !rng.one_in(3) {
            let near =
                rng.pick(&[0, 1, -1, i64::from(i32::MAX) - 1, i64::from(i32::MAX), i64::from(i32::MIN) + 1]);
            let at = if rng.one_in(4) { rng.pick(&[i64::MIN, i64::MAX, 0]) } else { ts.wrapping_add(near) };
            e.ts_recv(UnixNanos(at));
        }
    };
    if !swapped {
        common(&mut e, rng);
    }
    for spec in EventSchema::for_kind(kind).fields {
        let is_raw = bookkeeping && matches!(spec.field, EventField::RawAt | EventField::Length);
        if is_raw || (round > 2 && rng.one_in(4)) {
            continue;
        }
        set(&mut e, spec, rng, ts, odd);
    }
    if swapped {
        common(&mut e, rng);
    }
    let own = if round.is_multiple_of(7) { 70 } else { rng.below(4) };
    for i in 0..own {
        let name = match rng.below(5) {
            0 => format!("own{i}"),
            1 => rng.pick(&["seq", "ext", "px", "raw", "instr", "source", "offset", ""]).to_owned(),
            _ => format!("{}{i}", rng.pick(&["a", "\u{e9}\"", "x\\y\t", "z"])),
        };
        let deep = format!("{}{}", "[".repeat(127), "]".repeat(127));
        let json = [
            "1",
            "null",
            "\"x\\u00e9\"",
            "[1, {\"a\":[]}]",
            "{}",
            "-1.50e3",
            "true",
            "[\n1]",
            " 1 ",
            "no JSON",
            "01",
            "\"\\ud800\"",
            "[1,]",
            "{\"a\" 1}",
            "",
            "NaN",
            "{\"a\":1,\"a\":2}",
            "\"tab\t\"",
            &deep,
        ];
        // In every other round only such as come back from a line as they are.
        e.keep_unmapped(&name, rng.pick(if odd { &json } else { &json[..7] })).unwrap();
    }
    e.finish(rng.below(16) as u8 & !flags::META | flags::LAST).unwrap();
}

fn set(e: &mut EventBuilder<'_>, spec: &EventFieldSpec, rng: &mut Rng, ts: i64, odd: bool) {
    let text = rng.pick(&TEXTS).to_owned();
    let on_tape = TapePosition {
        tape: rng.pick(&[1, u128::MAX, 7 << 100]),
        position: Position(rng.pick(&[0, 64, u64::MAX])),
    };
    let positions = on_tape.to_bytes().repeat(rng.below(4) as usize);
    let value = match spec.slot {
        FieldLayout::Sym { dict, .. } | FieldLayout::SymExt { dict } => {
            EventValue::Sym(dict, rng.pick(&[1, 2, 3, 4]))
        }
        FieldLayout::Publisher { bank } => {
            // Only one of the two is set.
            if bank == rng.one_in(2) {
                return;
            }
            let _ = e.set(spec, EventValue::Sym(NameKind::Venue, rng.pick(&[1, 4])));
            return;
        }
        FieldLayout::Syms { dict } => {
            let ids: Vec<u8> = (0..rng.below(4) as u32).flat_map(|i| (i + 1).to_le_bytes()).collect();
            return e.set(spec, EventValue::Syms(dict, &ids)).unwrap();
        }
        FieldLayout::Price { .. } => EventValue::Price(Price(rng.pick(&INTEGERS))),
        FieldLayout::Decimal { .. } | FieldLayout::DecimalNarrow { .. } | FieldLayout::DecimalExt => {
            let exponent = rng.pick(&[0, 1, -1, -9, -12, 12, 18, -18]);
            EventValue::Decimal(Decimal::new(rng.pick(&INTEGERS), exponent).unwrap())
        }
        FieldLayout::Amount { .. } => {
            let mantissa = i128::from(rng.pick(&INTEGERS)) << rng.below(50);
            let mantissa = rng.pick(&[mantissa, i128::MAX, 0, if odd { i128::MIN } else { i128::MIN + 1 }]);
            EventValue::Amount(Amount::new(mantissa, rng.pick(&[0, -5, 20, -30])).unwrap_or_default())
        }
        FieldLayout::Id { .. } if rng.one_in(2) => EventValue::Id(InlineId::Number(rng.pick(&NUMBERS))),
        FieldLayout::Id { .. } if odd && rng.one_in(4) => {
            EventValue::Id(InlineId::Text(b"\xff\xfenot UTF-8"))
        }
        FieldLayout::Id { .. } => EventValue::Id(InlineId::Text(text.as_bytes())),
        FieldLayout::Text { .. } => EventValue::Text(&text),
        FieldLayout::Code { values, .. } => EventValue::Text(rng.pick(values)),
        FieldLayout::Bool { .. } | FieldLayout::Flag { .. } => EventValue::Bool(rng.one_in(2)),
        FieldLayout::FlagSet { values, .. } => EventValue::Flags(values, rng.below(16) as u8),
        FieldLayout::Date { .. } | FieldLayout::DateAfter { .. } => {
            let of_event = CivilDate::from_utc(UnixNanos(ts)).days();
            let days = rng.pick(&[of_event, of_event + 253, of_event + 254, of_event - 1, 0, -1, -719_162]);
            EventValue::Date(CivilDate::from_days_checked(days).unwrap())
        }
        FieldLayout::Tape { .. } => EventValue::Tape(rng.pick(&[1, u128::MAX, 7 << 100])),
        FieldLayout::TapePosition { .. } => EventValue::TapePosition(on_tape),
        FieldLayout::TapePositions => EventValue::TapePositions(&positions),
        FieldLayout::UInt { .. } => EventValue::UInt(rng.pick(&NUMBERS)),
        FieldLayout::Nanos { .. } => EventValue::Nanos(UnixNanos(rng.pick(&[0, i64::MAX, i64::MIN + 1, 5]))),
        FieldLayout::MillisAfter { .. } => {
            let after = rng.pick(&[0, 1_000_000, 1, 65_533_000_000, 65_534_000_000, -1_000_000]);
            EventValue::Nanos(UnixNanos(rng.pick(&[
                ts.wrapping_add(after),
                i64::MAX,
                if odd { i64::MIN } else { 0 },
            ])))
        }
        FieldLayout::Json => {
            let json = ["{\"a\":[1,\"x\"]}", "7", "[ 1 ]", "null", "[1]\n", "nothing"];
            EventValue::Json(rng.pick(if odd { &json } else { &json[..3] }))
        }
    };
    e.set(spec, value).unwrap();
}

/// Other bytes than unitape writes, in a frame whose header stays: the ids of names too, whose names are then not known.
fn damage(frame: &mut [u8], rng: &mut Rng, kind: EventKind) {
    let fixed = usize::from(EventSchema::for_kind(kind).fixed_bytes);
    for _ in 0..1 + rng.below(3) {
        // In a quarantine event, the fields that name its bytes stay unchanged.
        let all = if kind == EventKind::Quarantine { 8..32 } else { 8..frame.len() };
        let byte = all.start + rng.below((all.end - all.start) as u64) as usize;
        // A layout that nobody knows would be no event.
        if byte != at::KIND_A || !kind.has_layouts() {
            frame[byte] = rng.pick(&[0, 1, 2, 3, 0x7f, 0x80, 0xff, b'A']);
        }
    }
    if kind != EventKind::Quarantine && rng.one_in(2) {
        let flag = if rng.one_in(2) { flags::EXT } else { 0 };
        frame[7] = frame[7] & !flags::EXT | flag;
    }
    // A mark of something too large for its place, and no entry.
    if kind == EventKind::Trade && rng.one_in(2) {
        frame[39] = 0x81;
    }
    assert!(FrameHeader::read(frame).len_bytes() == frame.len() && frame.len() >= fixed);
}

const INTEGERS: [i64; 12] = [
    0,
    1,
    -1,
    25_005,
    4_294_967_295,
    4_294_967_296,
    -4_294_967_297,
    i64::MAX - 1,
    i64::MIN,
    10_000_000_000,
    123_456_789_012_345_678,
    -500,
];
const NUMBERS: [u64; 13] = [
    0,
    1,
    253,
    254,
    255,
    65_534,
    0xffff_fffe,
    0xffff_ffff,
    (1 << 56) - 1,
    1 << 56,
    u64::MAX - 1,
    u64::MAX,
    300,
];
const TEXTS: [&str; 10] = [
    "",
    "B",
    "12345678",
    "123456789",
    "25ecf178-55e3-4914-90d6-53db38ff46c5",
    "25ECF178-55E3-4914-90D6-53DB38FF46C5",
    "25ECf178-55E3-4914-90D6-53DB38FF46C5",
    "tab\t quote\" back\\ nul\0 high\u{10ffff}",
    "\u{1}begins low",
    "a text that no place of the fixed part can hold, whatever the kind, with \u{e9}",
];
