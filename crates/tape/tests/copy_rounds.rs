//! Tapes are copied while they are closed, abandoned or written, and the copy is opened to be read and written: the
//! original stays as it was, and the copy is what was copied or says that it is not whole.
//!
//! A copy once named the hot directory of its original, and its writer worked in there. Rounds by `UNITAPE_COPY_ROUNDS`
//! (12), seed by `UNITAPE_SEED`; a failure names both.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::process::{Account, SEED, number, wait_for};
use common::served::{ServedUnits, served};
use common::{Checker, ID, append, directory, mix, options, unit};
use unitape_tape::{Writer, WriterOptions, verify};

const SEGMENT_BYTES: u64 = 32 << 10;

/// The seed of what is appended to a copy: the original has other units at these places.
const OTHER: u64 = 0x07e4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// Its writer is gone and did not close it.
    Abandoned,
    /// Its writer appends while the files are copied, and afterwards.
    Live,
}

#[test]
fn copies_of_a_closed_file_tape() {
    rounds(State::Closed, false);
}

#[test]
fn copies_of_a_closed_hot_tape() {
    rounds(State::Closed, true);
}

#[test]
fn copies_of_an_abandoned_file_tape() {
    rounds(State::Abandoned, false);
}

#[test]
fn copies_of_an_abandoned_hot_tape() {
    rounds(State::Abandoned, true);
}

#[test]
fn copies_of_a_live_file_tape() {
    rounds(State::Live, false);
}

#[test]
fn copies_of_a_live_hot_tape() {
    rounds(State::Live, true);
}

fn rounds(state: State, hot: bool) {
    let (rounds, seed) = (number("UNITAPE_COPY_ROUNDS", 12), number("UNITAPE_SEED", SEED));
    let name = match state {
        State::Closed => "copy-closed",
        State::Abandoned => "copy-abandoned",
        State::Live => "copy-live",
    };
    let mut account = Account::begin(name, if hot { "hot" } else { "file" }, seed, rounds);
    for round in 0..rounds {
        let at = format!("{name}, hot {hot}, seed {seed}, round {round}");
        Round { at, r: mix(seed, round), seed: mix(seed, round) | 1, state, hot, place: directory() }.run();
        account.round();
    }
}

struct Round {
    /// For messages.
    at: String,
    r: u64,
    seed: u64,
    state: State,
    hot: bool,
    place: tempfile::TempDir,
}

impl Round {
    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn options(&self, hot: &str) -> WriterOptions {
        let hot = self.path(hot);
        options(SEGMENT_BYTES, self.hot.then_some(hot.as_path()))
    }

    fn run(&self) {
        let (original, copy) = (self.path("original"), self.path("copy"));
        let (mut writer, _) = Writer::open(&original, ID, self.options("hot")).expect(&self.at);
        let mut units = 40 + self.r % 300;
        append(&mut writer, self.seed, 0, units);
        let mut reader = Checker::new(&original, self.seed);
        if self.r.is_multiple_of(3) {
            wait_for(|| writer.recorded() == writer.end(), "the recorder");
        }
        if self.r.is_multiple_of(2) {
            writer.wait_durable(writer.end(), Duration::from_secs(180)).expect(&self.at);
        }
        let mut writer = match self.state {
            State::Closed => {
                writer.close().expect(&self.at);
                None
            }
            State::Abandoned => {
                drop(writer);
                None
            }
            State::Live => Some(writer),
        };
        let mut files = 0;
        copy_tree(&original, &copy, &mut || {
            files += 1;
            // The copied files are of several moments.
            if let Some(writer) = &mut writer {
                let more = mix(self.r, files) % 12;
                append(writer, self.seed, units, units + more);
                units += more;
            }
        });
        let before = writer.is_none().then(|| (files_of(&original), files_of(&self.path("hot"))));
        let whole = self.state == State::Closed || self.state == State::Abandoned && !self.hot;
        self.use_copy(&copy, units, whole);
        if let Some((tape, hot)) = before {
            self.same(&tape, &files_of(&original), "the original");
            self.same(&hot, &files_of(&self.path("hot")), "the original's hot segments");
        }
        self.use_original(&original, writer, &mut reader, units);
    }

    /// Reads the copy, appends to it where a writer opens it, and reads again.
    fn use_copy(&self, copy: &Path, units: u64, whole: bool) {
        let at = &self.at;
        let first = self.serve(copy, None);
        assert!(first.units <= units, "{at}: {} units where {units} were written", first.units);
        if whole {
            assert!(first.is_all(units), "{at}: {units} units were copied: {first:?}");
        }
        // Its own hot directory, or none: what the copy says of the original's must not matter.
        let options = if mix(self.r, 5).is_multiple_of(2) {
            self.options("hot-of-the-copy")
        } else {
            options(SEGMENT_BYTES, None)
        };
        let (mut writer, _) = match Writer::open(copy, ID, options) {
            Ok(opened) => opened,
            // Refused, and said why: a copy of several moments may be damaged.
            Err(e) => return assert!(!whole, "{at}: a whole copy is refused: {e}"),
        };
        let had = self.serve(copy, None);
        assert!(had.errors.is_empty(), "{at}: the writer has opened the copy: {had:?}");
        assert!(had.units >= first.units, "{at}: {} units before, {} after opening", first.units, had.units);
        append(&mut writer, OTHER, had.units, had.units + 9);
        writer.close().unwrap_or_else(|e| panic!("{at}: closing the copy: {e}"));
        let all = self.serve(copy, Some(had.units));
        assert!(all.is_all(had.units + 9), "{at}: {} units and 9 of its own: {all:?}", had.units);
        let report = verify(copy).expect(at);
        assert!(report.is_intact(), "{at}: {:?}", report.problems);
    }

    /// The units that the copy serves: those of the original, from `own` on its own.
    fn serve(&self, copy: &Path, own: Option<u64>) -> ServedUnits {
        let found = served(copy, |index, out| {
            let seed = if own.is_some_and(|own| index >= own) { OTHER } else { self.seed };
            unit(seed, index, out);
        });
        assert_eq!(found.wrong, None, "{}: the copy", self.at);
        found
    }

    /// Continues the original, whose units must all be there.
    fn use_original(&self, original: &Path, writer: Option<Writer>, reader: &mut Checker, units: u64) {
        let at = &self.at;
        let mut writer = match writer {
            Some(writer) => writer,
            None => Writer::open(original, ID, self.options("hot")).expect(at).0,
        };
        append(&mut writer, self.seed, units, units + 50);
        wait_for(|| reader.catch_up() == units + 50, "the original's reader");
        writer.close().unwrap_or_else(|e| panic!("{at}: closing the original: {e}"));
        let found = self.serve(original, None);
        assert!(found.is_all(units + 50), "{at}: the original: {found:?}");
        let report = verify(original).expect(at);
        assert!(report.is_intact(), "{at}: the original: {:?}", report.problems);
    }

    fn same(&self, before: &Files, after: &Files, what: &str) {
        let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(before), names(after), "{}: files of {what}", self.at);
        for (name, file) in before {
            assert!(*file == after[name], "{}: {name} of {what} was changed", self.at);
        }
    }
}

/// Inode and content by path.
type Files = BTreeMap<String, (u64, Vec<u8>)>;

fn files_of(dir: &Path) -> Files {
    let mut found = Files::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(next) = open.pop() {
        let Ok(entries) = fs::read_dir(&next) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let inode = fs::metadata(&path).unwrap().ino();
                found.insert(path.display().to_string(), (inode, fs::read(&path).unwrap()));
            }
        }
    }
    found
}

/// Copies a directory as `cp -r` does; `step` is called before each file.
fn copy_tree(from: &Path, to: &Path, step: &mut impl FnMut()) {
    fs::create_dir_all(to).unwrap();
    let mut entries: Vec<PathBuf> = fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_tree(&path, &target, step);
            continue;
        }
        step();
        match fs::copy(&path, &target) {
            Ok(_) => {}
            // The preallocator and the recorder make and rename files meanwhile.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => panic!("{}: {e}", path.display()),
        }
    }
}
