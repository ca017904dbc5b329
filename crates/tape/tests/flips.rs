//! Each round flips one bit of a tape, or cuts or removes one of its files. Every unit served must be a unit written,
//! or the damage reported; nobody serves another value for a right one, and no writer shortens the durable part.
//!
//! Rounds by `UNITAPE_FLIP_ROUNDS` (150), seed by `UNITAPE_SEED`; a failure names both and what was changed. A bit that no
//! frame, header, checksum or log owns may be flipped unseen (`docs/formats-tape.md`, "Damage").

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::process::{Account, SEED, number, wait_for};
use common::served::{ServedUnits, served};
use common::{ID, append, content, directory, mix, options, unit, writable};
use unitape_tape::{CHECKSUM_SPAN, DefinitionReader, HEADER_PAGE, Writer, verify};

const SEGMENT_BYTES: u64 = 32 << 10;

/// Seed of the units on the tapes.
const UNITS_SEED: u64 = 4;

/// The good tape that every round has a copy of.
struct GoodTape {
    place: tempfile::TempDir,
    units: u64,
    /// Where it ends; all of it is durable.
    end: u64,
    hot: bool,
    closed: bool,
    /// It stays the owner of its hot segments, so that a copy of it is opened from its own files.
    is_original: bool,
}

/// The damage that a round does.
#[derive(Clone, Copy, Debug)]
enum Change {
    Flip { at: u64, bit: u8 },
    Cut(u64),
    Remove,
}

#[test]
fn readers_of_a_damaged_closed_tape() {
    rounds("flip-reader", &good(false, true), |round| round.read());
}

#[test]
fn readers_of_a_damaged_abandoned_tape() {
    rounds("flip-reader", &good(false, false), |round| round.read());
}

#[test]
fn readers_of_a_damaged_abandoned_hot_tape() {
    rounds("flip-reader", &good(true, false), |round| round.read());
}

#[test]
fn verification_of_a_damaged_closed_tape() {
    rounds("flip-verify", &good(false, true), |round| round.verify());
}

#[test]
fn verification_of_a_damaged_abandoned_tape() {
    rounds("flip-verify", &good(false, false), |round| round.verify());
}

#[test]
fn writers_of_a_damaged_closed_tape() {
    rounds("flip-writer", &good(false, true), |round| round.write());
}

#[test]
fn writers_of_a_damaged_abandoned_tape() {
    rounds("flip-writer", &good(false, false), |round| round.write());
}

#[test]
fn writers_of_a_damaged_abandoned_hot_tape() {
    rounds("flip-writer", &good(true, false), |round| round.write());
}

/// A copy that lacks something may be of a moment before; one that has everything and differs in a bit is damaged.
#[test]
fn writers_of_a_damaged_copy_of_a_hot_tape() {
    let good = GoodTape { is_original: true, ..good(true, false) };
    rounds("flip-writer", &good, |round| match round.change {
        Change::Flip { .. } => round.write(),
        Change::Cut(_) | Change::Remove => Ok(()),
    });
}

fn good(hot: bool, closed: bool) -> GoodTape {
    good_in(directory(), hot, closed)
}

fn good_in(place: tempfile::TempDir, hot: bool, closed: bool) -> GoodTape {
    let hot_dir = place.path().join("hot");
    let tape = place.path().join("tape");
    let (mut writer, _) =
        Writer::open(&tape, ID, options(SEGMENT_BYTES, hot.then_some(hot_dir.as_path()))).unwrap();
    let units = 260;
    append(&mut writer, UNITS_SEED, 0, units);
    let end = writer.end();
    writer.wait_durable(end, Duration::from_secs(60)).unwrap();
    wait_for(|| writer.recorded() == end, "the recorder");
    if closed {
        writer.close().unwrap();
    } else {
        drop(writer);
    }
    GoodTape { place, units, end: end.0, hot, closed, is_original: false }
}

/// Runs all rounds, and says at the end in how many what went wrong: one fault must not hide another.
fn rounds(name: &'static str, good: &GoodTape, check: impl Fn(&Round<'_>) -> Result<(), String>) {
    let (rounds, seed) = (number("UNITAPE_FLIP_ROUNDS", 150), number("UNITAPE_SEED", SEED));
    let mut account = Account::begin(name, if good.hot { "hot" } else { "file" }, seed, rounds);
    let mut wrong = Vec::new();
    for n in 0..rounds {
        let round = Round::new(good, mix(seed, n));
        if let Err(what) = check(&round) {
            wrong.push(format!("seed {seed}, round {n}: {:?} of {}: {what}", round.change, round.name));
        }
        account.round();
    }
    let all = wrong.len();
    wrong.truncate(20);
    assert!(all == 0, "{all} of {rounds} rounds, the first of them:\n{}", wrong.join("\n"));
}

struct Round<'a> {
    good: &'a GoodTape,
    place: tempfile::TempDir,
    /// The file that was changed, from the tape's directory.
    name: String,
    change: Change,
}

impl<'a> Round<'a> {
    /// A copy of the good tape, changed in one place; of a hot one another that was written alike, which has its own hot
    /// segments.
    fn new(good: &'a GoodTape, r: u64) -> Self {
        let mut place = directory();
        if good.hot && !good.is_original {
            place = good_in(place, true, good.closed).place;
        } else {
            for (name, bytes) in content(good.place.path()) {
                let path = place.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
        }
        let tape = place.path().join("tape");
        let files = content(&tape);
        let (name, bytes) = files.iter().nth((r % files.len() as u64) as usize).unwrap();
        let length = bytes.len() as u64;
        let (kind, place_in_file) = (mix(r, 1) % 10, mix(r, 2));
        let change = match kind {
            0 => Change::Remove,
            _ if length == 0 => Change::Remove,
            1 => Change::Cut(place_in_file % length),
            // Half of the flips where little is: in headers, and at the end.
            2..=4 => Change::Flip { at: place_in_file % length.min(128), bit: 1 << (place_in_file >> 61) },
            _ => Change::Flip { at: place_in_file % length, bit: 1 << (place_in_file >> 61) },
        };
        let path = tape.join(name);
        match change {
            Change::Remove => fs::remove_file(&path).unwrap(),
            Change::Cut(to) => writable(&path).set_len(to).unwrap(),
            Change::Flip { at, bit } => {
                let mut bytes = bytes.clone();
                bytes[at as usize] ^= bit;
                fs::write(&path, bytes).unwrap();
            }
        }
        Self { good, place, name: name.clone(), change }
    }

    fn tape(&self) -> PathBuf {
        self.place.path().join("tape")
    }

    fn serve(&self) -> ServedUnits {
        served(&self.tape(), |index, out| unit(UNITS_SEED, index, out))
    }

    /// Whether the oldest segment is gone, which is how it looks after retention.
    fn is_retention(&self) -> bool {
        matches!(self.change, Change::Remove) && self.name == format!("segments/{:016x}.seg", 0)
    }

    /// All served units are right, and missing ones are reported.
    fn read(&self) -> Result<(), String> {
        let found = self.serve();
        if let Some(wrong) = found.wrong {
            return Err(format!("served: {wrong}"));
        }
        let missing = !found.is_all(self.good.units);
        if missing && found.errors.is_empty() && !self.is_retention() {
            return Err(format!("{} units of {}, and no error", found.units, self.good.units));
        }
        Ok(())
    }

    /// A change of owned bytes is reported; a change of others does no harm.
    fn verify(&self) -> Result<(), String> {
        let report = verify(&self.tape());
        let intact = report.as_ref().is_ok_and(|report| report.is_intact());
        if !intact {
            return Ok(());
        }
        if self.is_owned() && !self.is_retention() {
            return Err("the verification calls it intact".to_owned());
        }
        let found = self.serve();
        if found.is_all(self.good.units) || self.is_retention() {
            Ok(())
        } else {
            Err(format!("the verification calls intact what is not all there: {found:?}"))
        }
    }

    /// Whether a frame, a header, a checksum or a log owns what was changed.
    fn is_owned(&self) -> bool {
        let owned = |at: u64| match self.name.rsplit('.').next() {
            Some("seg") => {
                let index = u64::from_str_radix(&self.name[9..25], 16).unwrap();
                let data = self.good.end.saturating_sub(index * SEGMENT_BYTES).min(SEGMENT_BYTES);
                // A checksum has its whole span, what is not written of it too.
                let span = CHECKSUM_SPAN.min(SEGMENT_BYTES);
                at < 68 || (HEADER_PAGE..HEADER_PAGE + data.next_multiple_of(span)).contains(&at)
            }
            // If a tape was not closed, the checksum of its last span is in `durable`.
            Some("crc") => self.good.closed || at < self.whole_spans() * 4,
            Some("log") => true,
            // A tape that was abandoned before its first flush has no such file.
            _ => {
                self.name == "durable"
                    && at < 64
                    && (self.good.closed || !matches!(self.change, Change::Remove))
            }
        };
        match self.change {
            Change::Flip { at, .. } => owned(at),
            Change::Cut(to) => owned(to),
            Change::Remove => owned(0),
        }
    }

    /// Spans before the end in the segment whose checksums were changed.
    fn whole_spans(&self) -> u64 {
        let index = u64::from_str_radix(&self.name[9..25], 16).unwrap();
        self.good.end.saturating_sub(index * SEGMENT_BYTES).min(SEGMENT_BYTES)
            / CHECKSUM_SPAN.min(SEGMENT_BYTES)
    }

    /// A writer opens it or refuses: what was durable is there as it was, and what is served afterwards is right.
    fn write(&self) -> Result<(), String> {
        let tape = self.tape();
        let before = content(&tape);
        let hot = self.place.path().join(if self.good.is_original { "other" } else { "hot" });
        let options = options(SEGMENT_BYTES, self.good.hot.then_some(hot.as_path()));
        let opened = Writer::open(&tape, ID, options);
        let refused = opened.is_err();
        let mut units = self.good.units;
        if let Ok((mut writer, recovery)) = opened {
            if recovery.end_position.0 < self.good.end {
                return Err(format!(
                    "the writer begins at {}, {} is durable",
                    recovery.end_position, self.good.end
                ));
            }
            append(&mut writer, UNITS_SEED, units, units + 5);
            units += 5;
            // It may say at the end what it has found meanwhile.
            let _ = writer.close();
        }
        self.kept(&before, &content(&tape))?;
        let found = self.serve();
        if let Some(wrong) = found.wrong {
            return Err(format!("served after a writer (refused: {refused}): {wrong}"));
        }
        if !found.is_all(units) && found.errors.is_empty() && !self.is_retention() && !refused {
            return Err(format!("{} units of {units} after a writer, and no error", found.units));
        }
        Ok(())
    }

    /// No segment is shorter or gone, and what was durable in it has the same bytes; the log of definitions is not shorter.
    fn kept(&self, before: &Files, after: &Files) -> Result<(), String> {
        for (name, old) in before.iter().filter(|(name, _)| name.ends_with(".seg")) {
            let index = u64::from_str_radix(&name[9..25], 16).unwrap();
            let durable = self.good.end.saturating_sub(index * SEGMENT_BYTES).min(SEGMENT_BYTES);
            let Some(new) = after.get(name).filter(|_| durable > 0) else {
                if durable == 0 {
                    continue;
                }
                return Err(format!("the writer has removed {name}"));
            };
            let end = (HEADER_PAGE + durable).min(old.len() as u64) as usize;
            if new.len() < end {
                return Err(format!("the writer has cut {name} to {} bytes, {end} were durable", new.len()));
            }
            if new[..end] != old[..end] && !self.mended(name, new, end) {
                return Err(format!("the writer has changed durable bytes of {name}"));
            }
        }
        let length = |files: &Files| files.get("definitions.log").map_or(0, Vec::len);
        if length(after) < length(before) {
            return Err(format!("the writer has cut definitions.log to {} bytes", length(after)));
        }
        Ok(())
    }

    /// Whether the file is again what it was before it was damaged.
    fn mended(&self, name: &str, new: &[u8], end: usize) -> bool {
        let good = fs::read(self.good.place.path().join("tape").join(name)).unwrap();
        new[..end] == good[..end]
    }
}

type Files = std::collections::BTreeMap<String, Vec<u8>>;

/// All records of a log of definitions up to its end or an error, and whether there was one.
fn records(dir: &Path) -> (Vec<Vec<u8>>, bool) {
    let mut found = Vec::new();
    let Ok(mut log) = DefinitionReader::open(dir) else { return (found, true) };
    loop {
        match log.next() {
            Ok(Some((_, frame))) => found.push(frame.to_vec()),
            Ok(None) => return (found, false),
            Err(_) => return (found, true),
        }
    }
}

/// A log that was cut after a whole record looked whole.
#[test]
fn definitions_that_are_cut_behind_a_record() {
    let good = good(false, false);
    let tape = good.place.path().join("tape");
    let log = tape.join("definitions.log");
    let (all, is_damaged) = records(&tape);
    assert!(all.len() > 20 && !is_damaged);
    for (n, frame) in all.iter().enumerate().rev() {
        // A record has 16 bytes before its frame.
        let length = fs::metadata(&log).unwrap().len() - 16 - frame.len() as u64;
        writable(&log).set_len(length).unwrap();
        assert_eq!(records(&tape), (all[..n].to_vec(), true));
    }
}

/// The log of definitions is what a reader of names believes: a record that is not as it was written is an error.
#[test]
fn definitions_of_a_damaged_tape() {
    let good = good(false, true);
    let (all, _) = records(&good.place.path().join("tape"));
    assert!(all.len() > 20);
    rounds("flip-definitions", &good, |round| {
        let (found, reported) = records(&round.tape());
        if !all.starts_with(&found) {
            return Err("a definition that is none".to_owned());
        }
        if found.len() < all.len() && !reported {
            return Err(format!("{} definitions of {}, and no error", found.len(), all.len()));
        }
        Ok(())
    });
    assert!(good.closed);
}
