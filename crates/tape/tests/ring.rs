//! The ring tape as its users see it: laps, overruns, restarts, and files that are none.

mod common;

use std::collections::VecDeque;
use std::time::Duration;

use common::{ID, Unstamp, directory, events, mix, unit};
use proptest::prelude::*;
use unitape_model::{FrameHeader, LINE, Position, flags, frames};
use unitape_tape::{Error, RingOptions, RingTapeReader, RingTapeWriter, StartPosition, TapeId};

const SMALL: RingOptions = RingOptions { capacity_bytes: 16 << 10 };

fn append(writer: &mut RingTapeWriter, seed: u64, from: u64, to: u64) {
    let mut bytes = Vec::new();
    for i in from..to {
        bytes.clear();
        unit(seed, i, &mut bytes);
        writer.append(&bytes).unwrap();
    }
}

/// Checks units, of which those between two overruns must follow each other, and counts.
struct Checker {
    seed: u64,
    /// Index of the next unit; none after an overrun.
    next: Option<u64>,
    /// Events that were given or counted as lost.
    accounted: u64,
    given: u64,
    unit: Vec<u8>,
}

impl Checker {
    fn new(seed: u64) -> Self {
        Self { seed, next: Some(0), accounted: 0, given: 0, unit: Vec::new() }
    }

    /// Takes what is there, frame by frame or in runs.
    fn take(&mut self, reader: &mut RingTapeReader, run: bool) {
        loop {
            let got = if run {
                reader.next_run(1500).map(|run| {
                    run.map(|run| {
                        for (offset, header, frame) in frames(run.bytes) {
                            self.frame(run.position.plus(offset as u64), header, frame);
                        }
                        assert!(self.unit.is_empty(), "a run with a part of a unit");
                    })
                })
            } else {
                reader.next().map(|frame| frame.map(|f| self.frame(f.position, f.header, f.bytes)))
            };
            match got {
                Ok(Some(())) => {}
                Ok(None) => return,
                Err(Error::Overrun { position, lost_bytes, lost_events, resume_at }) => {
                    assert_eq!(resume_at.0, position.0 + lost_bytes);
                    assert_eq!(resume_at, reader.position());
                    self.accounted += lost_events;
                    self.unit.clear();
                    self.next = None;
                }
                Err(e) => panic!("seed {}: {e}", self.seed),
            }
        }
    }

    fn frame(&mut self, position: Position, header: FrameHeader, frame: &[u8]) {
        assert!(header.is_at(position));
        let from = self.unit.len();
        self.unit.extend_from_slice(frame);
        header.unstamp().write(&mut self.unit[from..]);
        self.accounted += u64::from(!header.is_meta());
        if header.is_last() {
            let index = u64::from_le_bytes(frame[8..16].try_into().unwrap());
            assert!(
                self.next.is_none_or(|next| next == index),
                "seed {}: unit {index} is not the next",
                self.seed
            );
            let mut want = Vec::new();
            unit(self.seed, index, &mut want);
            assert!(self.unit == want, "seed {}: unit {index} is not as it was written", self.seed);
            self.unit.clear();
            self.next = Some(index + 1);
            self.given += 1;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Against the slow twin, a queue that forgets what is a capacity behind: what is given is a part of it without
    /// a hole, from the oldest to the newest, and the losses are counted to the event.
    #[test]
    fn what_is_left_is_given_and_what_is_lost_is_counted(
        seed in any::<u64>(),
        bursts in proptest::collection::vec((1u64..90, any::<bool>(), any::<bool>()), 1..30),
    ) {
        let dir = directory();
        let path = dir.path().join("ring");
        let (mut writer, _) = RingTapeWriter::open(&path, ID, SMALL).unwrap();
        let mut reader = RingTapeReader::open(&path, StartPosition::Oldest).unwrap();
        let mut checker = Checker::new(seed);
        let mut twin: VecDeque<(Position, u64)> = VecDeque::new();
        let mut next = 0;
        for (count, run, reopen) in bursts {
            for i in next..next + count {
                let mut bytes = Vec::new();
                unit(seed, i, &mut bytes);
                twin.push_back((writer.append(&bytes).unwrap(), i));
            }
            next += count;
            // Only what lies a capacity behind must be gone, and no more than a block and a unit before that.
            let end = writer.end().0;
            while twin.front().is_some_and(|(at, _)| at.0 + SMALL.capacity_bytes < end + 64) {
                twin.pop_front();
            }
            let late = RingTapeReader::open(&path, StartPosition::Oldest).unwrap();
            let oldest = twin.iter().find(|(at, _)| *at == late.position());
            prop_assert!(oldest.is_some(), "the oldest unit is not one that is left");
            let kept = end - late.position().0;
            prop_assert!(end < SMALL.capacity_bytes || kept >= SMALL.capacity_bytes * 7 / 8 - 1280, "{kept} kept");
            if count.is_multiple_of(3) {
                checker.take(&mut reader, run);
                prop_assert_eq!(checker.next, Some(next));
                prop_assert_eq!(checker.accounted, writer.ordinal());
                prop_assert_eq!((reader.ordinal(), reader.position()), (writer.ordinal(), writer.end()));
                prop_assert_eq!(reader.lag_bytes(), 0);
            }
            let at_end = RingTapeReader::open(&path, StartPosition::End).unwrap();
            prop_assert_eq!((at_end.position(), at_end.ordinal()), (writer.end(), writer.ordinal()));
            let (at, index) = twin[twin.len() / 2];
            if at >= late.position() {
                let mut middle = RingTapeReader::open(&path, StartPosition::At(at)).unwrap();
                let frame = middle.next().unwrap().unwrap();
                prop_assert_eq!(&frame.bytes[8..16], &index.to_le_bytes());
            }
            if reopen {
                let (end, ordinal, epoch) = (writer.end(), writer.ordinal(), writer.epoch());
                drop(writer);
                let (again, recovery) = RingTapeWriter::open(&path, ID, SMALL).unwrap();
                prop_assert_eq!((recovery.end, recovery.ordinal, recovery.epoch), (end, ordinal, epoch + 1));
                prop_assert!(!recovery.clean && !recovery.created && !recovery.emptied);
                writer = again;
            }
        }
        checker.take(&mut reader, true);
        prop_assert_eq!(checker.accounted, writer.ordinal());
        prop_assert_eq!(reader.epoch(), writer.epoch());
    }

    /// A frame written in place must be the frame that is appended whole, however its bytes come.
    #[test]
    fn drafts_equal_appends(parts in proptest::collection::vec(0usize..70, 0..12)) {
        let dir = directory();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        let (mut appended, _) = RingTapeWriter::open(&one, ID, SMALL).unwrap();
        let (mut drafted, _) = RingTapeWriter::open(&two, ID, SMALL).unwrap();
        let length: usize = 8 + parts.iter().sum::<usize>();
        let header = FrameHeader::new_unstamped(20, flags::LAST, length.div_ceil(LINE) as u16);
        let bytes: Vec<u8> = (0..length).map(|i| mix(9, i as u64) as u8).collect();
        // So often that old laps lie below.
        for _ in 0..40 {
            let mut unit = vec![0; header.len_bytes()];
            unit[..length].copy_from_slice(&bytes);
            header.write(&mut unit);
            let at = appended.append(&unit).unwrap();
            drafted.draft(header).unwrap().push(&bytes[..5.min(length - 8)]).unwrap(); // given up
            let mut draft = drafted.draft(header).unwrap();
            let mut from = 8;
            for part in &parts {
                draft.push(&bytes[from..from + part]).unwrap();
                from += part;
            }
            let room = draft.room();
            prop_assert!(draft.push(&vec![1; room + 1]).is_err());
            prop_assert_eq!(draft.commit(), at);
        }
        let mut readers = [&one, &two].map(|path| RingTapeReader::open(path, StartPosition::Oldest).unwrap());
        let [a, b] = &mut readers;
        while let Some(frame) = a.next().unwrap() {
            prop_assert_eq!(frame.bytes, b.next().unwrap().unwrap().bytes);
        }
        prop_assert!(b.next().unwrap().is_none());
    }
}

/// Payload that looks like a header word of a later lap was once all it took to invent a frame.
#[test]
fn payload_that_looks_like_a_frame_is_none() {
    let dir = directory();
    let path = dir.path().join("ring");
    let (mut writer, _) = RingTapeWriter::open(&path, ID, SMALL).unwrap();
    let mut reader = RingTapeReader::open(&path, StartPosition::Oldest).unwrap();
    for turn in 0..2000u64 {
        // Every line of the second frame pretends to be a frame of the next lap at its own place.
        let lines = 2 + (turn % 7) as u16;
        let mut unit = vec![0; lines as usize * LINE];
        FrameHeader::new_unstamped(20, flags::LAST, lines).write(&mut unit);
        for line in 1..lines as usize {
            let position = writer.end().plus(SMALL.capacity_bytes + (line * LINE) as u64);
            FrameHeader::new_unstamped(20, flags::LAST, 1)
                .with_stamp(position)
                .write(&mut unit[line * LINE..]);
        }
        writer.append(&unit).unwrap();
        let frame = reader.next().unwrap().expect("the frame that was just written");
        assert_eq!((frame.header.lines(), &frame.bytes[8..]), (lines, &unit[8..]));
        assert!(reader.next().unwrap().is_none());
    }
}

#[test]
fn what_is_no_unit_is_refused_and_leaves_nothing() {
    let dir = directory();
    let path = dir.path().join("ring");
    let (mut writer, _) = RingTapeWriter::open(&path, ID, SMALL).unwrap();
    let mut long = vec![0; 4096 + LINE];
    FrameHeader::new_unstamped(20, flags::LAST, 65).write(&mut long);
    let mut open = [0; LINE];
    FrameHeader::new_unstamped(20, 0, 1).write(&mut open);
    for bad in [&long[..], &open, &open[..40], &[]] {
        assert!(matches!(writer.append(bad), Err(Error::BadUnit { .. })));
    }
    for header in [
        FrameHeader::new_unstamped(20, 0, 1),
        FrameHeader::new_unstamped(1, 1, 1),
        FrameHeader::new_unstamped(20, 1, 65),
    ] {
        assert!(matches!(writer.draft(header), Err(Error::BadUnit { .. })));
    }
    assert_eq!(writer.end(), Position(0));
}

/// Each of these was once accepted as a ring, or rejected with an error that did not help.
#[test]
fn foreign_short_and_damaged_files_are_named() {
    let dir = directory();
    let path = dir.path().join("ring");
    let open = || RingTapeReader::open(&path, StartPosition::Oldest).unwrap_err();
    assert!(matches!(open(), Error::NotATape { .. }));
    let (mut writer, recovery) = RingTapeWriter::open(&path, ID, SMALL).unwrap();
    assert!(recovery.created && recovery.clean && recovery.epoch == 1);
    append(&mut writer, 1, 0, 100);
    let locked = RingTapeWriter::open(&path, ID, SMALL).unwrap_err();
    assert!(matches!(locked, Error::Locked { holder, .. } if holder == u64::from(std::process::id())));
    let reader = RingTapeReader::open(&path, StartPosition::Oldest).unwrap();
    assert_eq!(reader.writer().unwrap(), Some(u64::from(std::process::id())));
    writer.close().unwrap();
    assert_eq!(reader.writer().unwrap(), None);
    assert!(RingTapeWriter::open(&path, ID, SMALL).unwrap().1.clean);

    let other = RingTapeWriter::open(&path, TapeId(5), SMALL).unwrap_err();
    assert!(matches!(other, Error::ForeignTape { .. }), "{other}");
    let larger = RingTapeWriter::open(&path, ID, RingOptions { capacity_bytes: 1 << 20 }).unwrap_err();
    assert!(matches!(larger, Error::RingCapacity { found: 16384, wanted: 1_048_576, .. }), "{larger}");
    for wrong in [0, 8 << 10, 17 << 10, 1 << 40] {
        let refused = RingTapeWriter::open(&path, ID, RingOptions { capacity_bytes: wrong }).unwrap_err();
        assert!(matches!(refused, Error::Option(_)));
    }

    let good = std::fs::read(&path).unwrap();
    let with = |at: usize, bytes: &[u8]| {
        let mut bad = good.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        std::fs::write(&path, bad).unwrap();
        let error = open();
        // The writer refuses it as well, and leaves it unchanged.
        let before = std::fs::read(&path).unwrap();
        assert!(RingTapeWriter::open(&path, ID, SMALL).is_err());
        assert!(std::fs::read(&path).unwrap()[..64] == before[..64]);
        error
    };
    assert!(matches!(with(0, b"UNITAPE\x01"), Error::NotATape { .. }));
    assert!(matches!(with(8, &[9]), Error::ForeignVersion { found: 9, .. }));
    assert!(matches!(with(16, &[9]), Error::Damage { offset: 60, .. }));
    assert!(matches!(with(128, &[9]), Error::Damage { offset: 128, .. }));
    assert!(matches!(with(128, &[0xff; 8]), Error::Damage { offset: 128, .. }));
    assert!(matches!(with(512, &[0xff; 512]), Error::Damage { .. }));
    for length in [0, 10, 4096, good.len() - 1, good.len() + 64] {
        let mut cut = good.clone();
        cut.resize(length, 0);
        std::fs::write(&path, cut).unwrap();
        let error = open();
        assert!(matches!(error, Error::Damage { .. } | Error::NotATape { .. }), "{length}: {error}");
        assert!(RingTapeWriter::open(&path, ID, SMALL).is_err());
    }
    // A frame that no writer wrote: the reader says where, the others get what comes before it.
    std::fs::write(&path, &good).unwrap();
    let oldest = RingTapeReader::open(&path, StartPosition::Oldest).unwrap().position();
    let at = 4096 + oldest.0 % SMALL.capacity_bytes;
    let mut bad = good;
    bad[at as usize] ^= 1;
    std::fs::write(&path, bad).unwrap();
    let mut reader = RingTapeReader::open(&path, StartPosition::Oldest).unwrap();
    assert!(matches!(reader.next(), Err(Error::Damage { offset, .. }) if offset == at));
}

/// A ring that is removed and created again under a reader once left it waiting for ever.
#[test]
fn a_reader_notices_that_its_ring_was_removed() {
    let dir = directory();
    let path = dir.path().join("ring");
    let (mut writer, _) = RingTapeWriter::open(&path, ID, SMALL).unwrap();
    append(&mut writer, 1, 0, 3);
    let mut reader = RingTapeReader::open(&path, StartPosition::End).unwrap();
    assert!(!reader.wait(Duration::from_millis(1)).unwrap());
    std::fs::remove_file(&path).unwrap();
    let (mut second, recovery) = RingTapeWriter::open(&path, ID, SMALL).unwrap();
    assert!(recovery.created);
    append(&mut second, 1, 0, 3);
    let met = (0..10_000).find_map(|_| reader.next().err()).expect("the reader gets an error");
    assert!(matches!(met, Error::Removed { .. }), "{met}");
}

/// Retained, overwritten, never written: the errors distinguish why a position cannot be had.
#[test]
fn positions_that_are_gone_or_were_never_there() {
    let dir = directory();
    let path = dir.path().join("ring");
    let (mut writer, _) = RingTapeWriter::open(&path, ID, SMALL).unwrap();
    append(&mut writer, 2, 0, 200);
    let at =
        |position| RingTapeReader::open(&path, StartPosition::At(Position(position))).map(|r| r.position().0);
    assert!(matches!(at(0), Err(Error::Retained { .. })));
    let end = writer.end().0;
    assert_eq!(at(end).unwrap(), end);
    assert!(matches!(at(end + 64), Err(Error::NoFrame(_))));
    assert!(matches!(at(u64::MAX), Err(Error::NoFrame(_))));
    assert!(matches!(at(end - 63), Err(Error::NoFrame(_))));
}

/// After a restart of the machine without a clean close nothing in the file can be trusted, and a position must
/// not come a second time with other bytes.
#[test]
fn a_ring_that_met_a_restart_begins_anew_behind_itself() {
    let dir = directory();
    let path = dir.path().join("ring");
    let (mut writer, _) = RingTapeWriter::open(&path, ID, SMALL).unwrap();
    append(&mut writer, 2, 0, 300);
    let end = writer.end();
    drop(writer);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[400] ^= 1; // the identity of the boot
    std::fs::write(&path, &bytes).unwrap();
    let (mut writer, recovery) = RingTapeWriter::open(&path, ID, SMALL).unwrap();
    assert!(recovery.emptied && !recovery.clean && recovery.end > end && recovery.ordinal == 0);
    assert_eq!(recovery.epoch, 2);
    append(&mut writer, 2, 0, 5);
    let mut reader = RingTapeReader::open(&path, StartPosition::Oldest).unwrap();
    let mut checker = Checker::new(2);
    checker.take(&mut reader, false);
    assert_eq!((checker.given, checker.accounted), (5, writer.ordinal()));
    // Closed before the restart, it is trusted.
    writer.close().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[400] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let (_, recovery) = RingTapeWriter::open(&path, ID, SMALL).unwrap();
    assert!(recovery.clean && !recovery.emptied);
}

/// Readers at the heels of a writer that goes round and round, in threads: TSan and luck look for what loom's few
/// lines are too small for.
#[test]
fn readers_beside_a_writer_that_laps_them() {
    let dir = directory();
    let path = dir.path().join("ring");
    let (mut writer, _) = RingTapeWriter::open(&path, ID, SMALL).unwrap();
    let total: u64 = 60_000;
    let mut bytes = Vec::new();
    (0..total).for_each(|i| unit(3, i, &mut bytes));
    let wanted = events(&bytes);
    std::thread::scope(|s| {
        for run in [false, true] {
            let path = &path;
            s.spawn(move || {
                let mut reader = RingTapeReader::open(path, StartPosition::Oldest).unwrap();
                let mut checker = Checker::new(3);
                checker.accounted = reader.ordinal();
                checker.next = None;
                while checker.accounted < wanted {
                    assert!(reader.wait(Duration::from_secs(60)).unwrap());
                    checker.take(&mut reader, run);
                }
                assert_eq!((checker.accounted, checker.next), (wanted, Some(total)));
                assert!(reader.losses().events + checker.given > 0);
            });
        }
        append(&mut writer, 3, 0, total);
    });
}
