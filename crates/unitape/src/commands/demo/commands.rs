//! The commands of the demo: this program, started as a user would start it, in the directory of the demo.

use super::demo_directory::{DemoDirectory, directory_failure};
use crate::output::{CommandFailure, note};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// All commands in their order, each with its name. A word in braces is a value that the demo knows when it runs.
pub const COMMANDS: [(&str, &str); 31] = [
    (
        "market",
        "generate market --full --out feeds/market --seed 20111124 --events {events} --instruments 40 --start {start} \
         --minutes {minutes} --plant {planted} --near-miss {near_misses} --payments 200 --json",
    ),
    (
        "banks",
        "generate banks --seed 7 --pairs 8 --events 4000 --out banks/banks.jsonl --truth banks/truth.jsonl --json",
    ),
    ("consolidate", "consolidate feeds/feeds.toml --tape tape --json"),
    ("watch", "watch run tape --alerts alerts {scenarios} --until-end --json"),
    ("replay", "watch replay tape {scenarios} --json"),
    ("handler", "handler feeds/depth.pcap --config feeds/depth.toml --depth 1000 --stats --json"),
    ("books", "book show tape --venue XBOX --basis levels --depth 1000 --json"),
    ("best", "book bbo tape --venue XBOX --json"),
    ("info", "tape info tape --json"),
    ("verify", "tape verify tape --json"),
    ("quarantine", "quarantine list tape --json"),
    ("status", "tape cat tape --kind status --json --full"),
    ("seal", "store seal tape --store store --json"),
    ("days", "store info store --json"),
    ("sealed", "store scan store --json"),
    ("taped", "tape cat tape --json"),
    ("sealed_status", "store scan store --kind status --json --full"),
    ("sealed_bbo", "store scan store --schema bbo --json"),
    ("sealed_trades", "store scan store --schema trades --json"),
    (
        "quant",
        "user add quant --role analyst --password-file server/quant.password --users server/users.toml",
    ),
    (
        "stranger",
        "user add stranger --role analyst --password-file server/stranger.password --users server/users.toml",
    ),
    (
        "server",
        "serve --store days=store --users server/users.toml --entitlements server/entitlements.toml --json",
    ),
    (
        "get_bbo",
        "get {server}/days --fingerprint {fingerprint} --user quant --password-file server/quant.password \
         --schema bbo --json",
    ),
    (
        "get_trades",
        "get {server}/days --fingerprint {fingerprint} --user quant --password-file server/quant.password \
         --schema trades --json",
    ),
    (
        "get_nothing",
        "get {server}/days --fingerprint {fingerprint} --user stranger --password-file server/stranger.password \
         --schema bbo --json",
    ),
    ("bank_tape", "consolidate banks/banks.jsonl --tape banks/tape --json"),
    ("bank_prices", "fx best banks/tape --json"),
    ("cases", "case ingest alerts --tape tape --cases cases --json"),
    ("case_list", "case list --cases cases --limit 1000 --json"),
    ("case_page", "case export {case} --cases cases --tape tape --html case.html"),
    ("plotted", "tape cat tape --schema bbo --symbols {instrument} --json"),
];

/// Runs commands, and keeps what they print in the directory of the demo.
#[derive(Debug)]
pub struct CommandRunner<'a> {
    demo_dir: PathBuf,
    stop_flag: &'a AtomicBool,
    values: BTreeMap<&'static str, String>,
    /// The commands that were started, as a user would type them.
    pub started_commands: Vec<String>,
}

/// A command that runs; it ends when this is dropped.
#[derive(Debug)]
pub struct RunningCommand {
    name: &'static str,
    child: Child,
}

impl<'a> CommandRunner<'a> {
    /// Makes a runner for `demo_dir` that ends its commands when `stop` is set.
    pub fn new(demo_dir: &DemoDirectory, stop: &'a AtomicBool) -> Self {
        Self {
            demo_dir: demo_dir.dir.clone(),
            stop_flag: stop,
            values: BTreeMap::new(),
            started_commands: Vec::new(),
        }
    }

    /// Sets the value of a word in braces.
    pub fn set_word(&mut self, word: &'static str, value: impl ToString) {
        self.values.insert(word, value.to_string());
    }

    /// Runs commands side by side until all have ended.
    pub fn run(&mut self, names: &[&'static str]) -> Result<(), CommandFailure> {
        let running = names.iter().map(|&name| self.start_command(name)).collect::<Result<Vec<_>, _>>()?;
        running.into_iter().try_for_each(|command| self.finish(command))
    }

    /// Starts a command whose output goes into files.
    pub fn start_command(&mut self, name: &'static str) -> Result<RunningCommand, CommandFailure> {
        let path = self.output_file(name);
        let file = File::create(&path).map_err(|e| directory_failure("write", &path, &e))?;
        self.start_with(name, file.into())
    }

    /// Waits for a command, and fails if it has failed.
    pub fn finish(&self, mut command: RunningCommand) -> Result<(), CommandFailure> {
        let status = self.wait_for(&mut command)?;
        self.check_status(&command, status)
    }

    /// Waits for a command.
    pub fn wait_for(&self, command: &mut RunningCommand) -> Result<ExitStatus, CommandFailure> {
        loop {
            if let Some(status) = command.child.try_wait()? {
                return Ok(status);
            }
            self.pause_for_key()?;
        }
    }

    /// Waits until a server has printed its address, and returns the line.
    pub fn first_line(&self, server: &mut RunningCommand) -> Result<Value, CommandFailure> {
        loop {
            let status = server.child.try_wait()?;
            if let Some((line, _)) = self.output_text(server.name)?.split_once('\n') {
                return Ok(serde_json::from_str(line)?);
            }
            if let Some(status) = status {
                return Err(self.command_failure(server.name, status));
            }
            self.pause_for_key()?;
        }
    }

    /// Runs two commands side by side, and returns where their lines differ first.
    pub fn compare_outputs(&mut self, names: [&'static str; 2]) -> Result<Vec<String>, CommandFailure> {
        let mut commands = Vec::new();
        for name in names {
            let mut command = self.start_with(name, Stdio::piped())?;
            let stdout = command.child.stdout.take().expect("a pipe was asked for");
            // The pipe goes first: a command that still writes into it would not end.
            commands.push((BufReader::with_capacity(1 << 16, stdout), command));
        }
        let [(got, first), (wanted, second)] = &mut commands[..] else { unreachable!("two commands") };
        let difference = self.first_difference_of(got, wanted)?;
        if difference.is_empty() {
            for command in [first, second] {
                let status = self.wait_for(command)?;
                self.check_status(command, status)?;
            }
        }
        Ok(difference)
    }

    fn first_difference_of(
        &self,
        got: &mut impl BufRead,
        wanted: &mut impl BufRead,
    ) -> Result<Vec<String>, CommandFailure> {
        let (mut got_line, mut wanted_line) = (Vec::new(), Vec::new());
        for number in 1.. {
            got_line.clear();
            wanted_line.clear();
            got.read_until(b'\n', &mut got_line)?;
            wanted.read_until(b'\n', &mut wanted_line)?;
            if got_line != wanted_line {
                let [got, wanted] = [&got_line, &wanted_line].map(|line| String::from_utf8_lossy(line));
                return Ok(vec![format!("line {number}: {}, but {}", got.trim_end(), wanted.trim_end())]);
            }
            self.check_stop()?;
            if got_line.is_empty() {
                break;
            }
        }
        Ok(Vec::new())
    }

    /// Returns what a command has printed.
    pub fn output_text(&self, name: &str) -> Result<String, CommandFailure> {
        let path = self.output_file(name);
        fs::read_to_string(&path).map_err(|e| directory_failure("read", &path, &e))
    }

    /// Returns what a command has printed, an object a line.
    pub fn lines(&self, name: &str) -> Result<Vec<Value>, CommandFailure> {
        let text = self.output_text(name)?;
        Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }

    /// Returns the last object that a command has printed.
    pub fn last_object(&self, name: &str) -> Result<Value, CommandFailure> {
        Ok(self.lines(name)?.pop().unwrap_or_default())
    }

    /// Returns the command that `name` stands for, with its values.
    fn command_words(&self, name: &str) -> String {
        let (_, words) = COMMANDS.iter().find(|(n, _)| *n == name).expect("a command of the list");
        self.values
            .iter()
            .fold((*words).to_owned(), |words, (word, value)| words.replace(&format!("{{{word}}}"), value))
    }

    fn start_with(&mut self, name: &'static str, stdout: Stdio) -> Result<RunningCommand, CommandFailure> {
        self.check_stop()?;
        let words = self.command_words(name);
        let is_terminal = std::io::stderr().is_terminal();
        if is_terminal {
            note!("$ unitape {words}");
        }
        let errors = self.errors_file(name);
        let stderr = match is_terminal && WITH_PROGRESS.contains(&name) {
            true => Stdio::inherit(),
            false => File::create(&errors).map_err(|e| directory_failure("write", &errors, &e))?.into(),
        };
        let child = Command::new(std::env::current_exe()?)
            .args(words.split(' '))
            .current_dir(&self.demo_dir)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()?;
        self.started_commands.push(format!("unitape {words}"));
        Ok(RunningCommand { name, child })
    }

    fn check_status(&self, command: &RunningCommand, status: ExitStatus) -> Result<(), CommandFailure> {
        match status.code() {
            Some(0) => Ok(()),
            Some(3) if FLAWED.contains(&command.name) => Ok(()),
            _ => Err(self.command_failure(command.name, status)),
        }
    }

    fn command_failure(&self, name: &str, status: ExitStatus) -> CommandFailure {
        let reason = fs::read_to_string(self.errors_file(name)).unwrap_or_default();
        CommandFailure::Error(format!(
            "unitape {} ended with {status}: {}",
            self.command_words(name),
            reason.trim_end()
        ))
    }

    fn check_stop(&self) -> Result<(), CommandFailure> {
        // Relaxed: the signal handler hands nothing over but the wish.
        match self.stop_flag.load(Ordering::Relaxed) {
            true => Err(CommandFailure::Error("stopped".to_owned())),
            false => Ok(()),
        }
    }

    fn pause_for_key(&self) -> Result<(), CommandFailure> {
        std::thread::sleep(Duration::from_millis(2));
        self.check_stop()
    }

    fn output_file(&self, name: &str) -> PathBuf {
        output_file(&self.demo_dir, name, "out")
    }

    fn errors_file(&self, name: &str) -> PathBuf {
        output_file(&self.demo_dir, name, "err")
    }
}

impl Drop for RunningCommand {
    /// Asks the command to end as Ctrl-C does, and waits for it.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // It may have ended meanwhile.
            _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            _ = self.child.wait();
        }
    }
}

fn output_file(dir: &Path, name: &str, ending: &str) -> PathBuf {
    dir.join("output").join(format!("{name}.{ending}"))
}

/// Commands that may end with exit code 3: lines and banks lose and break data on purpose. What `verify` finds is for a check.
const FLAWED: [&str; 7] = ["consolidate", "handler", "books", "best", "verify", "quarantine", "bank_tape"];
/// Commands that draw a progress bar where stderr is a terminal.
const WITH_PROGRESS: [&str; 3] = ["market", "consolidate", "seal"];

#[cfg(test)]
mod tests {
    use super::*;

    fn demo_dir(temp: &tempfile::TempDir) -> DemoDirectory {
        DemoDirectory::prepare(Some(temp.path())).unwrap()
    }

    /// Fails if a command of the list cannot be told from another one, or if a blank in its text would become a word.
    #[test]
    fn every_command_has_its_name_and_single_blanks() {
        let names: std::collections::BTreeSet<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), COMMANDS.len());
        assert!(COMMANDS.iter().all(|(_, words)| words.split(' ').all(|word| !word.is_empty())));
    }

    /// Fails if a demo that is stopped leaves a command behind: the watch would wait for a tape for ever.
    #[test]
    fn a_stop_ends_the_commands() {
        let (temp, stop) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
        let runner = CommandRunner::new(&demo_dir(&temp), &stop);
        let child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let mut command = RunningCommand { name: "watch", child };
        stop.store(true, Ordering::Relaxed);
        assert!(
            matches!(runner.wait_for(&mut command), Err(CommandFailure::Error(what)) if what == "stopped")
        );
        drop(command);
        assert!(rustix::process::test_kill_process(pid).is_err());
    }

    /// Fails if a line that only one of two commands prints is no difference.
    #[test]
    fn another_line_and_a_missing_line_differ() {
        let (temp, stop) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
        let runner = CommandRunner::new(&demo_dir(&temp), &stop);
        let difference =
            |[mut got, mut wanted]: [&[u8]; 2]| runner.first_difference_of(&mut got, &mut wanted).unwrap();
        assert_eq!(difference([b"a\nb\n", b"a\nb\n"]), [""; 0]);
        assert_eq!(difference([b"a\nb\n", b"a\nc\n"]), ["line 2: b, but c"]);
        assert_eq!(difference([b"a\n", b"a\nc\n"]), ["line 2: , but c"]);
    }
}
