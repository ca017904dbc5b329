//! Runs a program under callgrind and reads what it counted.
//!
//! ```text
//!  ──mark──────mark──────mark──────mark── … end       --dump-before=MARK: one file for each thread and part
//!  part 1 │ part 2  │ part 3  │ part 4  │ part 5
//!         stretch 0   stretch 1  stretch 2             stretch k is part k + 2
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::launch;

/// One run.
#[derive(Debug)]
pub(crate) struct CallgrindJob<'a> {
    pub(crate) valgrind: &'a Path,
    pub(crate) program: &'a Path,
    pub(crate) args: &'a [String],
    /// The function that divides the run.
    pub(crate) mark: Option<&'a str>,
    /// An empty directory, for the counts and the output.
    pub(crate) scratch: &'a Path,
    pub(crate) current_dir: &'a Path,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct RunCounts {
    pub(crate) counts: InstructionCounts,
    pub(crate) stdout: Vec<u8>,
}

/// Why there are no counts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallgrindFailure {
    /// The program does not know the case, an option, or a command: it ended with a usage error.
    Unknown(String),
    Failed(String),
}

/// Instructions by part and thread, both from 1; the first thread is the one that `main` runs on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct InstructionCounts(BTreeMap<(u64, u64), u64>);

/// Instructions of a stretch or a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InstructionTotals {
    /// Instructions of the first thread.
    pub(crate) main: u64,
    /// Instructions of all threads, including those that wait.
    pub(crate) all: u64,
}

/// A run that is longer than this waits for something.
const LONGEST: Duration = Duration::from_secs(1800);

/// Exit codes of a run that did its work: 3 says that the data had gaps or faults, as some samples have.
const DONE: [i32; 2] = [0, 3];
const USAGE: i32 = 2;

/// Runs it to its end.
pub(crate) fn count(job: &CallgrindJob<'_>) -> Result<RunCounts, CallgrindFailure> {
    let counts = job.scratch.join("counts");
    fs::create_dir_all(&counts).map_err(|e| failed(&format!("{}: {e}", counts.display())))?;
    let mut command = Command::new(job.valgrind);
    command.args(["-q", "--tool=callgrind", "--separate-threads=yes", "--fair-sched=try"]);
    command.arg(format!("--callgrind-out-file={}", counts.join("out").display()));
    if let Some(mark) = job.mark {
        command.arg(format!("--dump-before={mark}"));
    }
    command.arg("--").arg(job.program).args(job.args);
    let (stdout, stderr, code) = run(command, job)?;
    if code == Some(USAGE) {
        return Err(CallgrindFailure::Unknown(last_line(&stderr)));
    }
    if !code.is_some_and(|code| DONE.contains(&code)) {
        let ending = code.map_or_else(|| "ended by a signal".to_owned(), |code| format!("exit code {code}"));
        return Err(failed(&format!("{ending}: {}", last_line(&stderr))));
    }
    let counts = InstructionCounts::read(&counts).map_err(|e| failed(&e))?;
    Ok(RunCounts { counts, stdout })
}

/// The output of a run under valgrind that counts nothing.
pub(crate) fn run_uncounted(job: &CallgrindJob<'_>) -> Result<Vec<u8>, CallgrindFailure> {
    let mut command = Command::new(job.valgrind);
    command.args(["-q", "--tool=none", "--"]).arg(job.program).args(job.args);
    match run(command, job)? {
        (stdout, _, Some(0)) => Ok(stdout),
        (_, stderr, code) => Err(failed(&format!("exit code {code:?}: {}", last_line(&stderr)))),
    }
}

type RunEnd = (Vec<u8>, Vec<u8>, Option<i32>);

/// Runs with an environment that is the same everywhere, and gives stdout, stderr and the exit code.
fn run(mut command: Command, job: &CallgrindJob<'_>) -> Result<RunEnd, CallgrindFailure> {
    let with_path = |path: &Path, e: std::io::Error| failed(&format!("{}: {e}", path.display()));
    let (out, err) = (job.scratch.join("stdout"), job.scratch.join("stderr"));
    command.env_clear().envs(inherited_variables()).current_dir(job.current_dir).stdin(Stdio::null());
    command.stdout(File::create(&out).map_err(|e| with_path(&out, e))?);
    command.stderr(File::create(&err).map_err(|e| with_path(&err, e))?);
    launch::hide_vdso(&mut command);
    let mut child = command.spawn().map_err(|e| with_path(job.valgrind, e))?;
    let since = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if since.elapsed() < LONGEST => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                _ = child.kill();
                _ = child.wait();
                return Err(failed(&format!("still running after {} minutes", LONGEST.as_secs() / 60)));
            }
            Err(e) => return Err(with_path(job.program, e)),
        }
    };
    let read = |path: &PathBuf| fs::read(path).map_err(|e| with_path(path, e));
    Ok((read(&out)?, read(&err)?, status.code()))
}

/// The parts of our environment that programs may see: the places of samples and of programs.
fn inherited_variables() -> impl Iterator<Item = (String, String)> {
    ["PATH", "UNITAPE_SAMPLES"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
}

fn failed(reason: &str) -> CallgrindFailure {
    CallgrindFailure::Failed(reason.to_owned())
}

fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it said nothing").to_owned()
}

impl InstructionCounts {
    /// Reads all files in a directory.
    fn read(dir: &Path) -> Result<Self, String> {
        let mut counts = Self::default();
        let with_dir = |e: std::io::Error| format!("{}: {e}", dir.display());
        for entry in fs::read_dir(dir).map_err(with_dir)? {
            let path = entry.map_err(with_dir)?.path();
            let file = File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            counts.add(BufReader::new(file)).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        if counts.0.is_empty() { Err("callgrind counted nothing".to_owned()) } else { Ok(counts) }
    }

    /// Adds one file of counts; an empty one has none.
    fn add(&mut self, file: impl BufRead) -> Result<(), String> {
        let (mut part, mut thread, mut total) = (None, None, None);
        for line in file.split(b'\n') {
            let line = line.map_err(|e| e.to_string())?;
            let value = |name: &[u8]| {
                let text = std::str::from_utf8(line.strip_prefix(name)?).ok()?;
                text.trim().parse::<u64>().ok()
            };
            part = part.or_else(|| value(b"part:"));
            thread = thread.or_else(|| value(b"thread:"));
            total = value(b"totals:").or(total);
        }
        match (part, thread, total) {
            (None, None, None) => Ok(()),
            (Some(part), thread, Some(total)) => {
                *self.0.entry((part, thread.unwrap_or(1))).or_default() += total;
                Ok(())
            }
            _ => Err("no file of callgrind's".to_owned()),
        }
    }

    /// These, as part, thread and instructions.
    #[cfg(test)]
    pub(crate) fn from_counts(counts: impl IntoIterator<Item = (u64, u64, u64)>) -> Self {
        Self(counts.into_iter().map(|(part, thread, count)| ((part, thread), count)).collect())
    }

    /// The totals of the whole run.
    pub(crate) fn total(&self) -> InstructionTotals {
        self.sum(|_| true)
    }

    /// The totals of the stretch after the mark with this number, from 0.
    pub(crate) fn totals_after_mark(&self, from: u64) -> InstructionTotals {
        self.sum(|part| part == from + 2)
    }

    /// The number of times that the mark was passed.
    pub(crate) fn marks(&self) -> u64 {
        // The last part ends with the run.
        self.0.keys().map(|(part, _)| part - 1).max().unwrap_or(0)
    }

    fn sum(&self, wanted: impl Fn(u64) -> bool) -> InstructionTotals {
        let mut sum = InstructionTotals { main: 0, all: 0 };
        for ((part, thread), count) in &self.0 {
            if wanted(*part) {
                sum.all += count;
                sum.main += if *thread == 1 { *count } else { 0 };
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(part: u64, thread: u64, total: u64) -> String {
        format!(
            "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd:  x part: 9\npart: {part}\n\
             thread: {thread}\n\n\ndesc: Trigger: --dump-before=mark\n\npositions: line\nevents: Ir\nsummary: 1\n\n\
             ob=(3) libc.so.6\nfn=(5) thread: 8\n33 6\n\ntotals: {total}\n"
        )
    }

    /// A stretch that is off by one is the work between two repeats, not a repeat.
    #[test]
    fn a_stretch_is_between_its_mark_and_the_next() {
        let mut counts = InstructionCounts::default();
        for (part, thread, total) in
            [(1, 1, 1_000), (2, 1, 10), (2, 2, 500), (3, 1, 7), (4, 1, 11), (5, 1, 3)]
        {
            counts.add(file(part, thread, total).as_bytes()).unwrap();
        }
        counts.add(&b""[..]).unwrap();
        assert_eq!(counts.marks(), 4);
        assert_eq!(counts.totals_after_mark(0), InstructionTotals { main: 10, all: 510 });
        assert_eq!(counts.totals_after_mark(2), InstructionTotals { main: 11, all: 11 });
        assert_eq!(counts.total(), InstructionTotals { main: 1_031, all: 1_531 });
    }

    #[test]
    fn what_is_not_a_file_of_counts_is_an_error() {
        for text in ["totals: 5\n", "part: 1\n"] {
            assert!(InstructionCounts::default().add(text.as_bytes()).is_err(), "{text}");
        }
    }
}
