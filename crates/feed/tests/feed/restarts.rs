//! A run is stopped somewhere, its input changes, and it is started again: nothing of another input passes for the rest
//! of the old one, and what is refused harms nothing.
//!
//! Rounds by `UNITAPE_RESTART_ROUNDS` (20), seed by `UNITAPE_SEED`; a failure names both and what was changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{assert_same, events, small_tape};
use unitape_feed::{ConsolidateOptions, FileFeed, RunOutcome, TapeAccount, consolidate, feed_of_option};

/// The change of the input before the run is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// Not at all, but it was written again.
    Rewritten,
    /// Lines were appended.
    Grown,
    /// One line near the beginning is another one.
    Mended,
    /// One line near the end is another one.
    MendedAtTheEnd,
    /// It ends earlier.
    Cut,
    /// All lines are others.
    Replaced,
}

const CHANGES: [Change; 6] =
    [Change::Rewritten, Change::Grown, Change::Mended, Change::MendedAtTheEnd, Change::Cut, Change::Replaced];

#[test]
fn restarts_of_a_stopped_run_with_changed_input() {
    rounds(false);
}

#[test]
fn restarts_of_a_finished_run_with_changed_input() {
    rounds(true);
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|e| panic!("{name}: {e}")))
}

fn mix(seed: u64, index: u64) -> u64 {
    let mut x = seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 31)
}

/// Runs all rounds, and says at the end in how many what went wrong.
fn rounds(finished: bool) {
    let (rounds, seed) = (number("UNITAPE_RESTART_ROUNDS", 20), number("UNITAPE_SEED", 20_261_121));
    let since = std::time::Instant::now();
    let mut wrong = Vec::new();
    for n in 0..rounds {
        let round = Round::new(mix(seed, n), finished);
        if let Err(what) = round.run() {
            wrong.push(format!("seed {seed}, round {n}, {:?}: {what}", round.change));
        }
    }
    record(
        if finished { "restart-finished" } else { "restart-stopped" },
        seed,
        rounds,
        (!wrong.is_empty(), since),
    );
    let all = wrong.len();
    wrong.truncate(20);
    assert!(all == 0, "{all} of {rounds} rounds, the first of them:\n{}", wrong.join("\n"));
}

/// The line for `cargo xtask rounds`.
fn record(test: &str, seed: u64, rounds: u64, (failed, since): (bool, std::time::Instant)) {
    use std::io::Write;
    let Ok(path) = std::env::var("UNITAPE_ROUNDS_OUT") else { return };
    let elapsed_s = since.elapsed().as_millis() as f64 / 1000.0;
    let failures = u64::from(failed);
    let line = serde_json::json!({"test": test, "backing": "file", "rounds": rounds, "seed": seed,
        "failures": failures, "elapsed_s": elapsed_s});
    let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}

struct Round {
    r: u64,
    place: tempfile::TempDir,
    /// The run is stopped at its end, not before.
    finished: bool,
    change: Change,
    /// The names of the lines before and after the change.
    before: Vec<String>,
    after: Vec<String>,
}

impl Round {
    fn new(r: u64, finished: bool) -> Self {
        let lines = 300 + (r % 1_500) as usize;
        let change = CHANGES[(mix(r, 1) % CHANGES.len() as u64) as usize];
        let before: Vec<String> = (0..lines).map(|n| format!("A{n}")).collect();
        let mut after = before.clone();
        let some = (mix(r, 2) % (lines as u64 / 4)) as usize;
        match change {
            Change::Rewritten => {}
            Change::Grown => after.extend((0..=some).map(|n| format!("G{n}"))),
            Change::Mended => after[some] = "M".to_owned(),
            Change::MendedAtTheEnd => after[lines - 1 - some] = "M".to_owned(),
            Change::Cut => after.truncate(lines - 1 - some),
            Change::Replaced => after.iter_mut().for_each(|name| name.replace_range(..1, "R")),
        }
        Self { r, place: tempfile::tempdir().unwrap(), finished, change, before, after }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn run(&self) -> Result<(), String> {
        let tape = self.path("tape");
        self.write(&self.before);
        let stop_at = if self.finished { u64::MAX } else { mix(self.r, 3) % self.before.len() as u64 };
        self.consolidate(&tape, stop_at).map_err(|e| format!("the first run: {e}"))?;
        let begun = names(&tape);
        if !self.before.starts_with(&begun) {
            return Err("the first run has put something else on the tape".to_owned());
        }
        self.write(&self.after);
        let outcome = self.consolidate(&tape, u64::MAX);
        let found = names(&tape);
        match outcome {
            Ok(_) => self.accepted(&tape, &begun, &found)?,
            Err(_) if found != begun => return Err("refused, and the tape is another one".to_owned()),
            Err(e) if self.change == Change::Rewritten => {
                return Err(format!("the same input is refused: {e}"));
            }
            Err(_) => {
                // With the input as it was, everything is as if nothing had happened.
                self.write(&self.before);
                self.consolidate(&tape, u64::MAX).map_err(|e| format!("the old input again: {e}"))?;
                self.equal_to_one_go(&tape);
            }
        }
        let report = unitape_tape::verify(&tape).map_err(|e| e.to_string())?;
        if !report.is_intact() {
            return Err(format!("{:?}", report.problems));
        }
        let account = TapeAccount::load(&tape).map_err(|e| e.to_string())?;
        if !account.sources.iter().all(|source| source.end && source.tally.is_balanced()) {
            return Err(format!("the account does not close: {:?}", account.sources));
        }
        Ok(())
    }

    /// The run ended well: the tape has the old input alone, or all of the old and then all of the new one, as sources of
    /// their own; never a part of one and the rest of another, and no line of a file twice because the file has grown.
    fn accepted(&self, tape: &Path, begun: &[String], found: &[String]) -> Result<(), String> {
        if self.change == Change::Rewritten {
            self.equal_to_one_go(tape);
            return Ok(());
        }
        let both = [self.before.as_slice(), &self.after].concat();
        let right = match self.change {
            Change::Grown => found == self.after,
            _ => begun.len() == self.before.len() && found == both || begun.is_empty() && found == self.after,
        };
        if right {
            return Ok(());
        }
        let kind = match found {
            found if found == both => "all of the old input and all of the new one".to_owned(),
            found if found == self.before => "the old input alone".to_owned(),
            found => format!("{} lines", found.len()),
        };
        let (old, new) = (self.before.len(), self.after.len());
        Err(format!(
            "accepted: {old} lines, of which {} were read, became {new}; on the tape: {kind}",
            begun.len()
        ))
    }

    fn equal_to_one_go(&self, tape: &Path) {
        let one = self.path("one");
        self.write(&self.before);
        self.consolidate(&one, u64::MAX).unwrap();
        assert_same(&one, tape, &format!("{:?}", self.change));
    }

    fn write(&self, names: &[String]) {
        let line = |(n, name): (usize, &String)| {
            format!(
                "{{\"seq\":{n},\"ts\":{n},\"kind\":\"status\",\"venue\":\"V\",\"instr\":\"{name}\",\"state\":\"open\"}}\n"
            )
        };
        let text: String = names.iter().enumerate().map(line).collect();
        fs::write(self.path("in.jsonl"), text).unwrap();
    }

    /// Consolidates until this number of messages was read, or to the end.
    fn consolidate(&self, tape: &Path, stop_at: u64) -> Result<RunOutcome, unitape_feed::Error> {
        let feed: FileFeed =
            feed_of_option(&format!("in=events:{}", self.path("in.jsonl").display())).unwrap();
        let stop = AtomicBool::new(stop_at == 0);
        let options = ConsolidateOptions {
            feeds: vec![feed],
            workers: 1 + (self.r % 2) as usize,
            block_bytes: 4_000,
            tape: small_tape(),
            stop: Some(&stop),
            ..ConsolidateOptions::default()
        };
        let (progress, over) = (options.progress.clone(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Relaxed: wishes, nothing is read under them.
                while progress.counters.messages.load(Ordering::Relaxed) < stop_at
                    && !over.load(Ordering::Relaxed)
                {
                    std::thread::yield_now();
                }
                stop.store(stop_at != u64::MAX || over.load(Ordering::Relaxed), Ordering::Relaxed);
            });
            let outcome = consolidate(tape, options);
            over.store(true, Ordering::Relaxed);
            outcome
        })
    }
}

/// The instruments of all events on the tape, in order: each is the name of a line.
fn names(tape: &Path) -> Vec<String> {
    events(tape).iter().map(|event| event["instr"].as_str().unwrap_or_default().to_owned()).collect()
}
