//! Other processes that are stopped and killed, and the account of rounds.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use memmap2::MmapRaw;

/// Seed of the ordinary test run.
pub const SEED: u64 = 20_261_121;

/// A number from the environment.
pub fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|e| panic!("{name}: {e}")))
}

/// The account of one test's rounds, for `cargo xtask rounds`: progress, and at the end one line of JSON in the
/// file that `UNITAPE_ROUNDS_OUT` names, also when the test fails.
pub struct Account {
    test: &'static str,
    backing: &'static str,
    seed: u64,
    rounds: u64,
    wanted: u64,
    since: Instant,
}

impl Account {
    pub fn begin(test: &'static str, backing: &'static str, seed: u64, wanted: u64) -> Self {
        Self { test, backing, seed, rounds: 0, wanted, since: Instant::now() }
    }

    /// Counts a round that is done.
    pub fn round(&mut self) {
        self.rounds += 1;
        if self.rounds.is_multiple_of(500) {
            let Self { test, backing, rounds, wanted, .. } = self;
            eprintln!("{test} {backing}: {rounds} of {wanted} rounds, {:?}", self.since.elapsed());
        }
    }

    /// Rounds done so far.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let Ok(path) = std::env::var("UNITAPE_ROUNDS_OUT") else { return };
        let failures = u64::from(std::thread::panicking());
        let Self { test, backing, seed, rounds, .. } = self;
        let elapsed_s = self.since.elapsed().as_millis() as f64 / 1000.0;
        let line = format!(
            "{{\"test\":\"{test}\",\"backing\":\"{backing}\",\"rounds\":{rounds},\"seed\":{seed},\
             \"failures\":{failures},\"elapsed_s\":{elapsed_s}}}\n"
        );
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
}

pub fn wait_for(mut done: impl FnMut() -> bool, what: &str) {
    for turn in 0..2_000_000u32 {
        if done() {
            return;
        }
        if turn > 100_000 {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    panic!("waited in vain for {what}");
}

/// The test binary once more, as the process `role`.
pub fn again(role: &str, dir: &Path, seed: u64, counter: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture", "--test-threads", "1"]);
    command.env("UNITAPE_CHILD", role).env("DIR", dir).env("SEED", seed.to_string()).env("COUNTER", counter);
    command.stdout(Stdio::null());
    command
}

/// A child that does not outlive the test.
pub struct Victim(pub Child);

impl Victim {
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Counters that the processes share: how many units are committed, how many each reader has seen.
pub struct Counter(MmapRaw);

impl Counter {
    pub fn create(path: &Path) -> Self {
        std::fs::write(path, [0; 4096]).unwrap();
        Self::open(path)
    }

    pub fn open(path: &Path) -> Self {
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        Self(MmapRaw::map_raw(&file).unwrap())
    }

    pub fn committed(&self) -> &AtomicU64 {
        self.word(0)
    }

    pub fn seen(&self, reader: usize) -> &AtomicU64 {
        self.word(1 + reader)
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < 64);
        // SAFETY: the page has 4096 bytes, index asserted, and is aligned; all processes use atomics.
        unsafe { AtomicU64::from_ptr(self.0.as_mut_ptr().cast::<u64>().add(index * 8)) }
    }
}
