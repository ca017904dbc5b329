//! Reading on after damage, and bits that flip anywhere: found, or in bytes that no frame owns.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use common::{ID, append, content, directory, mix, options};
use proptest::prelude::*;
use unitape_tape::{
    DefinitionReader, Error, HEADER_PAGE, ReadOptions, Reader, StartPosition, Writer, verify,
};

const SEGMENT_BYTES: u64 = 8 << 10;

/// A closed tape, and where it ends.
fn closed(dir: &Path) -> u64 {
    let (mut writer, _) = Writer::open(dir, ID, options(SEGMENT_BYTES, None)).unwrap();
    append(&mut writer, 6, 0, 150);
    let end = writer.end().0;
    writer.close().unwrap();
    end
}

type Frames = BTreeMap<u64, Vec<u8>>;
type Files = BTreeMap<String, Vec<u8>>;

/// Every frame that can be read, by position; damage is left behind.
fn frames(dir: &Path, start: StartPosition) -> (Frames, Vec<(u64, u64)>) {
    frames_with(dir, start, true)
}

/// Every readable frame, with or without a comparison of checksums.
fn frames_with(dir: &Path, start: StartPosition, verify: bool) -> (Frames, Vec<(u64, u64)>) {
    let (mut out, mut gaps) = (BTreeMap::new(), Vec::new());
    let options = ReadOptions { verify, ..ReadOptions::default() };
    let Ok(mut reader) = Reader::open_with(dir, start, options) else { return (out, gaps) };
    loop {
        match reader.next() {
            Ok(Some(frame)) => drop(out.insert(frame.position.0, frame.bytes.to_vec())),
            Ok(None) => return (out, gaps),
            Err(Error::Damage { .. } | Error::ForeignVersion { .. }) => {
                let from = reader.position().0;
                let Some(to) = reader.skip_damage().unwrap() else { return (out, gaps) };
                assert!(to.0 > from && to.0.is_multiple_of(SEGMENT_BYTES));
                gaps.push((from, to.0));
            }
            Err(e) => panic!("{e}"),
        }
    }
}

/// A day whose noon is damaged has a morning and an evening. Once everything after the first bad byte was out of
/// reach, and `verify` called what stood there garbage.
#[test]
fn what_is_before_and_behind_damage_can_be_read() {
    let whole = directory();
    let end = closed(whole.path());
    let (all, none) = frames(whole.path(), StartPosition::Oldest);
    assert!(none.is_empty() && end > 5 * SEGMENT_BYTES);
    let files = content(whole.path());
    for round in 0..40u64 {
        let r = mix(31, round);
        let index = 1 + r % (end / SEGMENT_BYTES - 1);
        let (from, to) = (index * SEGMENT_BYTES, (index + 1) * SEGMENT_BYTES);
        let name = format!("segments/{index:016x}.seg");
        let dir = directory();
        for (name, bytes) in &files {
            fs::create_dir_all(dir.path().join(name).parent().unwrap()).unwrap();
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        let path = dir.path().join(&name);
        let mut bytes = files[&name].clone();
        // The first position that is lost with it.
        let lost = match round % 4 {
            0 => {
                fs::remove_file(&path).unwrap();
                from
            }
            1 => {
                fs::write(&path, &bytes[..(HEADER_PAGE + r % SEGMENT_BYTES) as usize]).unwrap();
                from
            }
            2 => {
                bytes[(r >> 8) as usize % 64] ^= 1 << (r & 7);
                fs::write(&path, &bytes).unwrap();
                from
            }
            _ => {
                let within: Vec<u64> = all.range(from..to).map(|(at, _)| *at).collect();
                let at = within[(r >> 8) as usize % within.len()];
                // A header word: the frame itself, or a hole.
                let word = (HEADER_PAGE + at - from) as usize;
                if r.is_multiple_of(3) {
                    bytes[word..word + 8].fill(0);
                } else {
                    bytes[word] ^= 1;
                }
                fs::write(&path, &bytes).unwrap();
                at
            }
        };
        let report = verify(dir.path()).unwrap();
        let problem = report.problems.iter().find(|p| p.file_path == path && p.position_range.is_some());
        let problem = problem.unwrap_or_else(|| panic!("round {round}: {:?}", report.problems));
        let (first, behind) = problem.position_range.unwrap();
        assert!(first.0 <= lost && behind.0 <= to, "round {round}: {problem:?}");
        assert!(report.intact_to.0 <= lost, "round {round}: {}", report.intact_to);
        // All of it is looked at, and nothing sound is called garbage.
        assert!(
            report.problems.iter().all(|p| !p.problem.contains("behind")),
            "round {round}: {:?}",
            report.problems
        );
        let mut expected = all.clone();
        expected.retain(|at, _| *at < lost || *at >= to);
        let (found, _) = frames_with(dir.path(), StartPosition::Oldest, false);
        assert!(found == expected, "round {round}: {} of {} frames", found.len(), expected.len());
        assert_eq!(report.frames, expected.len() as u64, "round {round}");
        // With checks nothing of the span is given out: here it is the segment.
        expected.retain(|at, _| *at < from || *at >= to);
        let (found, gaps) = frames(dir.path(), StartPosition::Oldest);
        assert!(found == expected, "round {round}: {} of {} frames", found.len(), expected.len());
        assert_eq!(gaps, [(from, to)], "round {round}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// A bit that flips anywhere in any file must be found, or be one that nobody reads.
    #[test]
    fn a_flipped_bit_is_found_or_harmless(file in any::<prop::sample::Index>(), at in any::<u64>(), bit in 0u8..8) {
        static TAPE: std::sync::OnceLock<(Files, Frames)> =
            std::sync::OnceLock::new();
        let (files, all) = TAPE.get_or_init(|| {
            let dir = directory();
            closed(dir.path());
            (content(dir.path()), frames(dir.path(), StartPosition::Oldest).0)
        });
        let dir = directory();
        let name = file.get(&files.keys().collect::<Vec<_>>()).to_string();
        let at = (at % files[&name].len() as u64) as usize;
        for (other, bytes) in files {
            let path = dir.path().join(other);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut bytes = bytes.clone();
            if *other == name {
                bytes[at] ^= 1 << bit;
            }
            fs::write(path, bytes).unwrap();
        }
        match verify(dir.path()) {
            Err(_) => {}
            Ok(report) if !report.is_intact() => {
                // It says where: the file, and in a segment the span or the page.
                let file = dir.path().join(&name);
                let crc = file.with_extension("seg");
                let named = report.problems.iter().any(|p| {
                    p.file_path == file || p.file_path == crc || p.file_path == Path::new("definitions.log") || name == "tape.toml"
                });
                prop_assert!(named, "{name} {at}: {:?}", report.problems);
            }
            Ok(_) => {
                prop_assert!(frames(dir.path(), StartPosition::Oldest).0 == *all, "{name} byte {at} bit {bit}");
                let mut log = DefinitionReader::open(dir.path()).unwrap();
                while let Some((position, frame)) = log.next().unwrap() {
                    prop_assert!(all[&position.0] == frame, "{name} byte {at} bit {bit}");
                }
                let owned = (name.ends_with(".seg") && at >= HEADER_PAGE as usize)
                    || (name.ends_with(".seg") && at < 68)
                    || name == "durable";
                prop_assert!(!owned, "{name} byte {at} bit {bit} was not found");
            }
        }
    }
}
