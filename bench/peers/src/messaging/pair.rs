//! One repeat of one subject: its two processes, started in turn, watched, and their sums checked.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use unitape_bench_side::{Case, ProcessResult, Task, Words, expected_sum};

/// How long a repeat may take; a process that has lost the other one spins for ever.
const LIMIT: Duration = Duration::from_secs(180);

/// What a repeat is to do.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// What is measured.
    pub case: Case,
    /// Messages that are measured, and those before.
    pub count: u64,
    pub warm: u64,
    /// Passed on to the peer.
    pub flavour: &'a str,
    /// Whether messages are whole or numbers alone.
    pub whole: bool,
    /// Where the peer's files are put.
    pub dir: &'a Path,
}

/// Runs the two processes; `command` makes the one for the given arguments.
pub fn run(plan: &Plan<'_>, command: &dyn Fn(&[String]) -> Command) -> Result<ProcessResult, String> {
    let shared = fresh(&shared_memory())?;
    let dir = fresh(plan.dir)?;
    Words::make(shared.path())?;
    let task = Task {
        first: true,
        case: plan.case,
        shared: shared.path().into(),
        dir: dir.path().into(),
        count: plan.count,
        warm: plan.warm,
        flavour: plan.flavour.to_owned(),
    };
    let mut talk = Talk::new();
    let _first = talk.start(true, command(&task.arguments()?))?;
    let up = talk.line(true)?;
    if up != "up" {
        return Err(format!("the first process said {up:?} instead of \"up\""));
    }
    let _second = talk.start(false, command(&Task { first: false, ..task }.arguments()?))?;
    let (answered, found) = (talk.found(false)?, talk.found(true)?);
    let all = plan.count + plan.warm;
    check("the second process", &answered, all, plan.whole)?;
    if plan.case == Case::RoundTrip {
        check("the first process", &found, all, plan.whole)?;
        let measured: u64 = found.latencies.iter().map(|(_, count)| count).sum();
        if measured != plan.count {
            return Err(format!("{measured} round trips of {} have a time", plan.count));
        }
    }
    Ok(found)
}

/// Where shared memory is, as a directory.
pub fn shared_memory() -> PathBuf {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { shm.into() } else { std::env::temp_dir() }
}

/// A fresh directory in it.
pub fn fresh(parent: &Path) -> Result<tempfile::TempDir, String> {
    tempfile::Builder::new()
        .prefix("unitape-peers-")
        .tempdir_in(parent)
        .map_err(|e| format!("{}: {e}", parent.display()))
}

fn check(who: &str, found: &ProcessResult, all: u64, whole: bool) -> Result<(), String> {
    let sum = expected_sum(all, whole);
    if (found.seen, found.sum) == (all, sum) {
        return Ok(());
    }
    Err(format!("{who} saw {} messages of {all}, with the sum {} and not {sum}", found.seen, found.sum))
}

/// What the two processes say; the end of either before it has said all ends the talk.
struct Talk {
    until: Instant,
    give: Sender<(bool, Option<String>)>,
    said: Receiver<(bool, Option<String>)>,
    /// Said by the one while the other was waited for.
    kept: VecDeque<(bool, String)>,
    /// Whether the second, and the first, has said what it found.
    done: [bool; 2],
}

impl Talk {
    fn new() -> Self {
        let (give, said) = channel();
        Self { until: Instant::now() + LIMIT, give, said, kept: VecDeque::new(), done: [false; 2] }
    }

    fn start(&self, first: bool, mut command: Command) -> Result<Process, String> {
        // The process ends when its stdin does, and so with this one.
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("{}: {e}", command.get_program().display()))?;
        let (give, out) = (self.give.clone(), child.stdout.take());
        // Ends with the process; what nobody waits for any more is thrown away.
        std::thread::spawn(move || {
            let lines = out.into_iter().flat_map(|out| BufReader::new(out).lines().map_while(Result::ok));
            for line in lines.map(Some).chain([None]) {
                if give.send((first, line)).is_err() {
                    return;
                }
            }
        });
        Ok(Process(child))
    }

    fn line(&mut self, first: bool) -> Result<String, String> {
        if let Some(at) = self.kept.iter().position(|(who, _)| *who == first)
            && let Some((_, line)) = self.kept.remove(at)
        {
            return Ok(line);
        }
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left) {
                Ok((who, Some(line))) => {
                    self.done[usize::from(who)] |= line.starts_with('{');
                    if who == first {
                        return Ok(line);
                    }
                    self.kept.push_back((who, line));
                }
                // A process ends with what it found.
                Ok((who, None)) if self.done[usize::from(who)] => {}
                Ok((who, None)) => {
                    let name = if who { "first" } else { "second" };
                    return Err(format!("the {name} process ended early; what it said of it stands above"));
                }
                Err(_) => return Err(format!("the two processes were not done after {LIMIT:?}")),
            }
        }
    }

    fn found(&mut self, first: bool) -> Result<ProcessResult, String> {
        let line = self.line(first)?;
        serde_json::from_str(&line).map_err(|e| format!("{line:?}: {e}"))
    }
}

/// A process; it does not outlive its repeat.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // One that has said all takes a moment to let go of what it had open; one that has not would stay.
        for _ in 0..100 {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // Both fail only when it has just ended.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}
