//! Random access by the indexes of segments. An index is an answer that nobody asked the frames for: one that is old,
//! foreign or changed must give no other event than a walk over the whole tape gives.

mod common;

use std::fs;
use std::path::Path;
use std::time::Duration;

use common::process::{SEED, number, wait_for};
use common::{ID, directory, mix, options, writable};
use unitape_model::{FrameHeader, LINE, Position, UnixNanos, flags, message::KIND_MESSAGE};
use unitape_tape::{
    Error, Reader, RemovalOptions, RepairOptions, RetentionLimits, SeekOutcome, StartPosition, TapeId,
    TapeOrigin, TimeRange, Writer, WriterOptions, repair, retain, verify,
};

const SEGMENT: u64 = 256 << 10;
const HOUR: i64 = 3600 * 1_000_000_000;

/// Unit `index`: one to three frames, some of them bookkeeping, messages, of no known time, late or of a clock ahead.
fn unit(seed: u64, index: u64, out: &mut Vec<u8>) {
    let r = mix(seed, index);
    let count = 1 + r % 3;
    for f in 0..count {
        let r = mix(r, f + 7);
        let (kind, bits, time) = match r % 23 {
            0 => (2, flags::META, i64::MAX - 5),
            1 => (8, flags::META, i64::MIN),
            2 => (KIND_MESSAGE, 0, 0),
            3 => (40, 0, 0),
            4 => (22, flags::CLOCK_AHEAD, HOUR * 1000),
            5 => (22, flags::LATE, (index as i64).saturating_sub(900).max(-3) * 1000),
            6 if r.is_multiple_of(5) => (22, 0, -HOUR),
            _ => (20, 0, index as i64 * 1000 + (r >> 40) as i64 % 30_000),
        };
        // A message says how long it is, and this one is empty.
        let time = if kind == KIND_MESSAGE { 0 } else { time };
        let lines = if r.is_multiple_of(97) { 300 } else { 1 + (r >> 20) as u16 % 9 };
        let last = if f + 1 == count { flags::LAST } else { 0 };
        let from = out.len();
        out.resize(from + usize::from(lines) * LINE, 0);
        FrameHeader::new_unstamped(kind, bits | last, lines).write(&mut out[from..]);
        out[from + 8..from + 16].copy_from_slice(&time.to_le_bytes());
        out[from + 16..from + 24].copy_from_slice(&index.to_le_bytes());
    }
}

fn append(writer: &mut Writer, seed: u64, units: std::ops::Range<u64>) {
    let mut bytes = Vec::new();
    for index in units {
        bytes.clear();
        unit(seed, index, &mut bytes);
        writer.append(&bytes).unwrap();
    }
}

/// A frame as a walk over the tape finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Walked {
    ordinal: u64,
    position: Position,
    header: FrameHeader,
    time: i64,
}

impl Walked {
    fn has_time(&self) -> bool {
        !self.header.is_meta() && self.header.kind() != KIND_MESSAGE
    }
}

/// All frames of the tape, slow and obvious, and where it ends.
fn walk(dir: &Path) -> (Vec<Walked>, SeekOutcome) {
    let mut reader = Reader::open(dir, StartPosition::Oldest).unwrap();
    let mut frames = Vec::new();
    while let Some((ordinal, frame)) = reader.next_counted().unwrap() {
        let time = i64::from_le_bytes(frame.bytes[8..16].try_into().unwrap());
        frames.push(Walked { ordinal, position: frame.position, header: frame.header, time });
    }
    (frames, SeekOutcome::End { position: reader.position(), ordinal: reader.ordinal() })
}

fn outcome(found: Option<&Walked>, end: SeekOutcome) -> SeekOutcome {
    let event = |f: &Walked| SeekOutcome::Event { position: f.position, ordinal: f.ordinal };
    found.map_or(end, event)
}

/// Compares `count` seeded searches of each kind with the walk over the tape.
fn compare(dir: &Path, seed: u64, count: u64) {
    let (frames, end) = walk(dir);
    let events: Vec<_> = frames.iter().filter(|f| !f.header.is_meta()).collect();
    let first = events.first().map_or(0, |f| f.ordinal);
    let mut reader = Reader::open(dir, StartPosition::Oldest).unwrap();
    for n in 0..count {
        let r = mix(seed, n);
        let context = format!("seed {seed}, search {n}");
        let ordinal = first + r % (events.len() as u64 + 2);
        let wanted = outcome(events.get((ordinal - first) as usize).copied(), end);
        assert_eq!(reader.seek_ordinal(ordinal).unwrap(), wanted, "{context}, ordinal {ordinal}");
        let (oldest, SeekOutcome::End { position: last, .. }) = (frames[0].position, end) else { panic!() };
        let position = oldest.plus((r >> 7) % (last.0 - oldest.0 + 3 * SEGMENT));
        let wanted = outcome(frames.iter().find(|f| f.position >= position), end);
        assert_eq!(reader.seek_frame(position).unwrap(), wanted, "{context}, position {position}");
        continues(&mut reader, &frames, wanted, &context);
        let times: Vec<_> = frames.iter().filter(|f| f.has_time()).collect();
        let near = times.get((mix(r, 1) % times.len().max(1) as u64) as usize).map_or(0, |f| f.time);
        let time = near.saturating_add([0, -1, 1, 500_000, -HOUR, 2000 * HOUR][(mix(r, 2) % 6) as usize]);
        let later = times.iter().find(|f| f.time > time && f.header.flags() & flags::CLOCK_AHEAD == 0);
        let wanted = outcome(later.copied(), end);
        assert_eq!(reader.seek_time(UnixNanos(time)).unwrap(), wanted, "{context}, time {time}");
        continues(&mut reader, &frames, wanted, &context);
        if n % 5 == 0 {
            let since = (!r.is_multiple_of(7)).then_some(UnixNanos(time));
            let until = (!r.is_multiple_of(5))
                .then_some(UnixNanos(time.saturating_add((mix(r, 3) % 900_000) as i64)));
            ranges(dir, &frames, TimeRange { since, until }, &context);
        }
    }
}

/// The reader continues as the walk does after the place that was found.
fn continues(reader: &mut Reader, frames: &[Walked], found: SeekOutcome, context: &str) {
    let (SeekOutcome::Event { position, ordinal } | SeekOutcome::End { position, ordinal }) = found;
    assert_eq!((reader.position(), reader.ordinal()), (position, ordinal), "{context}");
    let from = frames.partition_point(|f| f.position < position);
    for wanted in frames[from..].iter().take(40) {
        let (ordinal, frame) = reader.next_counted().unwrap().unwrap();
        assert_eq!(
            (ordinal, frame.position, frame.header),
            (wanted.ordinal, wanted.position, wanted.header),
            "{context}"
        );
    }
}

/// A range gives each of its events once, in the order of the tape, and no other event.
fn ranges(dir: &Path, frames: &[Walked], range: TimeRange, context: &str) {
    let mut reader = Reader::open(dir, StartPosition::Oldest).unwrap();
    let mut given = Vec::new();
    let mut last = None;
    while let Some((ordinal, frame)) = reader.next_in_range(range).unwrap() {
        assert!(last < Some(frame.position), "{context}, {range:?}");
        last = Some(frame.position);
        if !frame.header.is_meta() {
            given.push((ordinal, frame.position));
        }
    }
    let within = |f: &&Walked| {
        let (since, until) = (range.since.map(|t| t.0), range.until.map(|t| t.0));
        f.has_time() && since.is_none_or(|t| f.time >= t) && until.is_none_or(|t| f.time < t)
    };
    let wanted: Vec<_> = frames.iter().filter(within).map(|f| (f.ordinal, f.position)).collect();
    assert!(given == wanted, "{context}, {range:?}: {} of {} events", given.len(), wanted.len());
}

fn index_path(dir: &Path, index: u64) -> std::path::PathBuf {
    dir.join(format!("segments/{index:016x}.idx"))
}

/// A closed tape of some segments.
fn closed(dir: &Path, id: TapeId, seed: u64, segment_bytes: u64, units: u64) {
    let (mut writer, _) = Writer::open(dir, id, options(segment_bytes, None)).unwrap();
    append(&mut writer, seed, 0..units);
    writer.close().unwrap();
}

/// A search once could end at an event of a clock ahead, before a late one, or in a chunk of bookkeeping alone.
#[test]
fn searches_agree_with_a_walk_over_the_tape() {
    let seed = number("UNITAPE_SEED", SEED);
    for hot in [false, true] {
        let (dir, shm) = (directory(), directory());
        let place = shm.path().join("hot");
        let options = options(SEGMENT, hot.then_some(place.as_path()));
        let (mut writer, _) = Writer::open(dir.path(), ID, options).unwrap();
        append(&mut writer, seed, 0..2300);
        // Some segments have an index by now, the last one has none.
        wait_for(|| writer.recorded() == writer.end(), "the recorder");
        compare(dir.path(), mix(seed, 1), 60);
        append(&mut writer, seed, 2300..2500);
        writer.close().unwrap();
        let report = verify(dir.path()).unwrap();
        assert!(report.is_intact(), "{:?}", report.problems);
        assert!(index_path(dir.path(), 3).exists() && !index_path(dir.path(), 20).exists());
        compare(dir.path(), mix(seed, 2), 100);
        // A tape of an earlier build has none.
        (0..20).for_each(|index| _ = fs::remove_file(index_path(dir.path(), index)));
        compare(dir.path(), mix(seed, 3), 20);
        assert!(verify(dir.path()).unwrap().is_intact());
    }
}

/// A reader could wait for ever, or jump back, where the tape grows or is cut while it searches.
#[test]
fn searches_of_a_growing_tape() {
    let dir = directory();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT, None)).unwrap();
    let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
    let end = reader.seek_ordinal(0).unwrap();
    assert_eq!(end, SeekOutcome::End { position: Position(0), ordinal: 0 });
    let mut kept = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
    let range = TimeRange { since: Some(UnixNanos(200_000)), until: Some(UnixNanos(900_000)) };
    let mut given = 0;
    for part in 0..12 {
        append(&mut writer, 5, part * 150..(part + 1) * 150);
        let (frames, end) = walk(dir.path());
        for n in 0..12 {
            let ordinal = mix(part, n) % (writer.ordinal() + 1);
            let wanted = frames.iter().find(|f| !f.header.is_meta() && f.ordinal == ordinal);
            assert_eq!(
                reader.seek_ordinal(ordinal).unwrap(),
                outcome(wanted, end),
                "part {part}, ordinal {ordinal}"
            );
        }
        assert_eq!(reader.seek_time(UnixNanos(i64::MAX)).unwrap(), end);
        assert_eq!(reader.seek_ordinal(u64::MAX).unwrap(), end);
        while let Some((_, frame)) = kept.next_in_range(range).unwrap() {
            given += u64::from(!frame.header.is_meta());
        }
        let wanted = frames.iter().filter(|f| f.has_time() && (200_000..900_000).contains(&f.time)).count();
        assert_eq!(given, wanted as u64, "part {part}");
    }
    // Its writer dies, and the next one begins again in the segment of the end.
    drop(writer);
    let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT, None)).unwrap();
    append(&mut writer, 6, 0..600);
    writer.close().unwrap();
    compare(dir.path(), 9, 40);
    assert!(verify(dir.path()).unwrap().is_intact());
}

/// A bit of an index that nobody checks could send a reader to another event.
#[test]
fn an_index_changed_in_any_byte_gives_no_wrong_answer() {
    let dir = directory();
    closed(dir.path(), ID, 11, 128 << 10, 800);
    let (frames, end) = walk(dir.path());
    let events: Vec<_> = frames.iter().filter(|f| !f.header.is_meta()).collect();
    let path = index_path(dir.path(), 1);
    let whole = fs::read(&path).unwrap();
    let within = |f: &&&Walked| f.position.0 >> 17 == 1;
    let inside: Vec<_> = events.iter().filter(within).copied().collect();
    let check = |context: &str| {
        for n in 0..3 {
            let wanted = inside[(mix(n, 3) % inside.len() as u64) as usize];
            let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
            let found = reader.seek_ordinal(wanted.ordinal).unwrap();
            assert_eq!(found, outcome(Some(wanted), end), "{context}");
            let later = |f: &&Walked| {
                f.has_time() && f.time > wanted.time && f.header.flags() & flags::CLOCK_AHEAD == 0
            };
            let found = reader.seek_time(UnixNanos(wanted.time)).unwrap();
            assert_eq!(found, outcome(frames.iter().find(later), end), "{context}");
        }
        let (since, until) = (Some(UnixNanos(inside[9].time)), Some(UnixNanos(inside[9].time + 90_000)));
        ranges(dir.path(), &frames, TimeRange { since, until }, context);
    };
    check("as it is");
    let reported = |context: &str| {
        let problems = verify(dir.path()).unwrap().problems;
        assert!(problems.len() == 1 && problems[0].file_path == path, "{context}: {problems:?}");
        problems[0].offset
    };
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        replace(&path, &bytes);
        let context = format!("byte {at}");
        check(&context);
        assert!(reported(&context) < whole.len() as u64);
    }
    for length in (0..whole.len()).step_by(13) {
        replace(&path, &whole[..length]);
        check(&format!("cut to {length} bytes"));
        reported("cut");
    }
    replace(&path, &[&whole[..], b"more"].concat());
    check("longer");
    reported("longer");
    let other = directory();
    closed(other.path(), TapeId(77), 11, 128 << 10, 800);
    for (from, context) in [
        (index_path(other.path(), 1), "of another tape"),
        (index_path(dir.path(), 2), "of another segment"),
        (dir.path().join("segments/0000000000000001.crc"), "of another kind"),
    ] {
        replace(&path, &fs::read(from).unwrap());
        check(context);
        reported(context);
    }
    // Of the same tape and segment, with other frames.
    let older = directory();
    closed(older.path(), ID, 12, 128 << 10, 800);
    replace(&path, &fs::read(index_path(older.path(), 1)).unwrap());
    check("of other frames");
    reported("of other frames");
    // Its checksums match, and what it says of a chunk is wrong: the frames do not confirm it.
    for field in [128, 136, 144, 152, 160, 168, 176, 184, 192, 200] {
        let mut bytes = whole.clone();
        bytes[field + usize::from(matches!(field, 128 | 168))] ^= 0x40;
        seal_sums(&mut bytes);
        replace(&path, &bytes);
        let wanted =
            inside.iter().rev().find(|f| f.position.0 % (128 << 10) < 64 << 10 || field >= 168).unwrap();
        let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
        let found = reader.seek_ordinal(wanted.ordinal).unwrap();
        assert_eq!(found, outcome(Some(wanted), end), "forged at {field}");
        reported("forged");
    }
    let found = repair(dir.path(), &RepairOptions::default()).unwrap().findings;
    assert!(found.len() == 1 && found[0].file_path == path && found[0].is_mended, "{found:?}");
    let done = repair(dir.path(), &RepairOptions { apply: true, ..RepairOptions::default() }).unwrap();
    assert_eq!(done.findings, found);
    assert_eq!(fs::read(&path).unwrap(), whole);
    assert!(verify(dir.path()).unwrap().is_intact());
    fs::remove_file(&path).unwrap();
    check("missing");
    assert!(verify(dir.path()).unwrap().is_intact());
}

/// Gives an index the checksums of what it says.
fn seal_sums(bytes: &mut [u8]) {
    let sum = crc32c::crc32c(&bytes[128..]).to_le_bytes();
    bytes[108..112].copy_from_slice(&sum);
    let sum = crc32c::crc32c(&bytes[..124]).to_le_bytes();
    bytes[124..128].copy_from_slice(&sum);
}

fn replace(path: &Path, bytes: &[u8]) {
    let file = writable(path);
    file.set_len(0).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, bytes, 0).unwrap();
}

/// An ordinal that retention has removed could give the oldest event instead, without a word.
#[test]
fn what_retention_removed_is_an_error() {
    let dir = directory();
    closed(dir.path(), ID, 21, SEGMENT, 2500);
    let limits = RetentionLimits { bytes: Some(SEGMENT), ..RetentionLimits::default() };
    let removed = retain(dir.path(), &limits, &RemovalOptions::default(), false).unwrap();
    assert!(removed.segments > 2);
    assert!(!index_path(dir.path(), 0).exists() && !index_path(dir.path(), removed.segments - 1).exists());
    let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
    let first = reader.ordinal();
    for ordinal in [0, first / 2, first - 1] {
        let error = reader.seek_ordinal(ordinal).unwrap_err();
        let Error::RetainedEvent { ordinal: asked, oldest_ordinal, oldest } = error else {
            panic!("{error}")
        };
        assert_eq!((asked, oldest_ordinal, oldest), (ordinal, first, removed.oldest));
    }
    compare(dir.path(), 4, 60);
}

/// A tape that begins at an origin counts events that it never had, and its first segment begins with a filler.
#[test]
fn searches_of_a_tape_with_an_origin() {
    for at in [SEGMENT, SEGMENT * 3 + 64 * 1003] {
        let dir = directory();
        let origin = TapeOrigin { position: Position(at), ordinal: 4000, definitions: &[], epoch: 1 };
        let (mut writer, _) = Writer::open_at(dir.path(), ID, &origin, options(SEGMENT, None)).unwrap();
        append(&mut writer, 31, 0..1500);
        writer.close().unwrap();
        assert!(verify(dir.path()).unwrap().is_intact());
        assert!(index_path(dir.path(), at / SEGMENT).exists());
        let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
        assert!(matches!(reader.seek_ordinal(3999), Err(Error::RetainedEvent { oldest_ordinal: 4000, .. })));
        compare(dir.path(), at, 60);
    }
}

/// A search must not read the tape: in a tape whose first segments no index covers it may, elsewhere not.
#[test]
fn a_search_reads_one_chunk_and_not_the_tape() {
    let dir = directory();
    closed(dir.path(), ID, 41, SEGMENT, 2500);
    let (frames, _) = walk(dir.path());
    let wanted = frames.iter().rfind(|f| !f.header.is_meta() && f.position.0 >> 18 == 3).unwrap();
    // Damage in all chunks but that of the event: who read them would report it.
    let chunk = (wanted.position.0 % SEGMENT) >> 16;
    for index in 0..4u64 {
        let file = writable(&dir.path().join(format!("segments/{index:016x}.seg")));
        for span in (0..4).filter(|&span| index < 3 || span < chunk) {
            std::os::unix::fs::FileExt::write_all_at(&file, &[0x55; 8], 4096 + (span << 16) + 24).unwrap();
        }
    }
    let mut reader = Reader::open(dir.path(), StartPosition::Oldest).unwrap();
    let found = reader.seek_ordinal(wanted.ordinal).unwrap();
    assert_eq!(found, SeekOutcome::Event { position: wanted.position, ordinal: wanted.ordinal });
    assert!(reader.next().unwrap().is_some());
}

/// An index that a writer has left of a segment that the next one cuts is of frames that are gone.
#[test]
fn a_cut_removes_the_indexes_after_it() {
    let dir = directory();
    let (mut writer, _) = Writer::open(dir.path(), ID, options(SEGMENT, None)).unwrap();
    append(&mut writer, 51, 0..900);
    let durable = writer.end();
    writer.wait_durable(durable, Duration::from_secs(60)).unwrap();
    append(&mut writer, 51, 900..2200);
    wait_for(|| writer.recorded() == writer.end(), "the recorder");
    drop(writer);
    let last = durable.0 / SEGMENT;
    let path = dir.path().join(format!("segments/{:016x}.seg", last + 1));
    // The rest of the tape is damaged beyond what is durable.
    std::os::unix::fs::FileExt::write_all_at(&writable(&path), &[0xff; 64], 4096).unwrap();
    let options = WriterOptions { truncate_damage: true, ..options(SEGMENT, None) };
    let (mut writer, _) = Writer::open(dir.path(), ID, options).unwrap();
    append(&mut writer, 52, 0..1500);
    writer.close().unwrap();
    let report = verify(dir.path()).unwrap();
    assert!(report.is_intact(), "{:?}", report.problems);
    compare(dir.path(), 8, 60);
}
