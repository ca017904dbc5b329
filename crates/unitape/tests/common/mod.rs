//! Helpers of the command-line tests: the binary, inputs made by hand or by the simulator, and tapes compared byte
//! for byte.
#![allow(dead_code)] // each test file uses its part

pub mod binary;
pub mod damage;
pub mod example;
pub mod folder;
pub mod inputs;
pub mod kill_points;
pub mod ports;
pub mod run;

pub use binary::binary;

use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use unitape_sim::day::{DropCopyTruth, Scenario};
use unitape_sim::{DropCopy, InjectedNoiseConfig, SimConfig};
use unitape_tape::WriterOptions;
#[allow(unused_imports)] // each test file uses its part
pub use unitape_testkit::{assert_same, files, jse, root, units};

/// The result of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Ran {
    /// Asserts the exit code, showing all that was said when it is another.
    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        let out = String::from_utf8_lossy(&self.stdout[..self.stdout.len().min(2000)]);
        assert_eq!(self.code, Some(code), "stdout: {out}\nstderr: {}", self.stderr);
        self
    }

    /// Asserts that stderr has all of these words.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in: {}", self.stderr);
        }
        self
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// Stdout as one JSON value a line.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        self.text().lines().map(parse).collect()
    }

    /// Stdout as one JSON object.
    #[track_caller]
    pub fn json(&self) -> Value {
        let mut lines = self.lines();
        assert_eq!(lines.len(), 1, "one line expected: {lines:?}");
        lines.pop().unwrap()
    }
}

/// The command, ready for arguments.
pub fn unitape() -> Command {
    Command::new(binary())
}

/// Runs the command with these arguments to its end.
pub fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Ran {
    finish(unitape().args(args))
}

/// Runs a prepared command to its end.
pub fn finish(command: &mut Command) -> Ran {
    let output = command.stdin(Stdio::null()).output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Asks a process to end.
pub fn terminate(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

/// Runs the command with `input` on stdin.
pub fn run_with_stdin<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, input: &[u8]) -> Ran {
    let mut command = unitape();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // A command that reads no further closes its end; that is not what is tested here.
        scope.spawn(move || _ = stdin.write_all(input));
        child.wait_with_output().unwrap()
    });
    Ran {
        code: output.status.code(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// `--feed` for a file of FIX orders.
pub fn orders_option(name: &str, path: &Path) -> String {
    format!("{name}=fix:fix44-orders:{}", path.display())
}

/// Consolidates `name=fix:fix44-orders:path` and gives the account; `code` is expected.
#[track_caller]
pub fn consolidate_orders(path: &Path, tape: &Path, code: i32) -> Value {
    let feed = orders_option("orders", path);
    run([
        OsStr::new("consolidate"),
        "--feed".as_ref(),
        feed.as_ref(),
        "--tape".as_ref(),
        tape.as_ref(),
        "--json".as_ref(),
    ])
    .code(code)
    .json()
}

/// The events of a tape, as `tape cat --json` with these options prints them.
#[track_caller]
pub fn cat(tape: &Path, options: &[&str]) -> Vec<Value> {
    run(["tape".as_ref(), "cat".as_ref(), tape.as_os_str(), "--json".as_ref()]
        .into_iter()
        .chain(options.iter().map(OsStr::new)))
    .code(0)
    .lines()
}

/// The quarantine of a tape, whatever the exit code.
#[track_caller]
pub fn quarantine(tape: &Path) -> Vec<Value> {
    run(["quarantine".as_ref(), "list".as_ref(), tape.as_os_str(), "--json".as_ref()]).lines()
}

/// Writes `bytes` to `dir/name` and gives its path.
pub fn file(dir: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// A FIX 4.4 message with right length and checksum; `|` separates the fields of `body`.
pub fn fix(body: &str) -> Vec<u8> {
    unitape_testkit::fix("FIX.4.4", body)
}

/// The report of a new order, number `n` of its session, at second `n` of the day.
pub fn order(n: u32) -> Vec<u8> {
    order_with(n, "44=10.5|")
}

/// The report of a new order with other fields in place of its price.
pub fn order_with(n: u32, fields: &str) -> Vec<u8> {
    let time = format!("20260302-{:02}:{:02}:{:02}", n / 3600, n / 60 % 60, n % 60);
    fix(&format!(
        "35=8|49=XLON|56=U|34={n}|52={time}|60={time}|37=O{n}|150=0|54=1|38=100|40=2|207=XLON|48=GB0000000001|22=4|{fields}"
    ))
}

/// The oids of the orders on a tape, in order: who is there, who is missing, who is there twice.
#[track_caller]
pub fn oids(tape: &Path) -> Vec<String> {
    let text = |v: &Value| v["oid"].as_str().unwrap().to_owned();
    cat(tape, &["--kind", "order_new"]).iter().map(text).collect()
}

/// A drop copy of a simulated day up to its close, of about this many messages but at least 900, with heartbeats and
/// damage when `noisy`. The same arguments give the same bytes.
pub fn flow(seed: u64, messages: u64, noisy: bool) -> (Vec<u8>, DropCopyTruth) {
    let noise = match noisy {
        true => InjectedNoiseConfig { heartbeat_ns: 60_000_000_000, bad_per_million: 20_000 },
        false => InjectedNoiseConfig::default(),
    };
    let day = SimConfig {
        seed,
        events: messages * 7 / 10,
        instruments: 12,
        depth: 12,
        halts: 1,
        plant: [(Scenario::WashTrade, 6)].into(),
        near_misses: [(Scenario::WashTrade, 4)].into(),
        ..SimConfig::default()
    };
    let mut bytes = Vec::new();
    let truth = DropCopy::new(day, noise).unwrap().to_close().write_fix(&mut bytes).unwrap();
    (bytes, truth)
}

/// Makes a tape of the first units of another one, with its id.
pub fn tape_of_units(dir: &Path, whole: &Path, units: &[Vec<u8>]) {
    unitape_testkit::tape_of_units(dir, whole, units, WriterOptions::default());
}

/// Asserts that every message of an account is in one of its classes, for each feed and in all.
#[track_caller]
pub fn assert_closes(account: &Value) {
    let n = |v: &Value, key: &str| v[key].as_u64().unwrap_or_else(|| panic!("no {key} in {v}"));
    let feeds = account["by_feed"].as_object().unwrap();
    for (name, f) in feeds {
        let sum = n(f, "with_events") + n(f, "quarantined") + n(f, "duplicates") + n(f, "ignored");
        assert_eq!(n(f, "messages"), sum, "{name}: {f}");
        if let entries @ Value::Object(_) = &f["entries"] {
            let sum = n(entries, "with_events") + n(entries, "quarantined") + n(entries, "ignored");
            assert_eq!(n(entries, "total"), sum, "{name}: {f}");
        }
    }
    for key in ["messages", "events", "quarantined", "duplicates", "ignored"] {
        let sum: u64 = feeds.values().map(|f| n(f, key)).sum();
        assert_eq!(n(account, key), sum, "{key}: {account}");
    }
    let kinds: u64 = account["by_kind"].as_object().unwrap().values().map(|v| v.as_u64().unwrap()).sum();
    assert_eq!(kinds, n(account, "events") + n(account, "quarantined"), "{account}");
}
