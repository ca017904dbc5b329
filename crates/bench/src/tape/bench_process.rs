//! Second processes that are talked to in lines: readers, a recorder, reports that misbehave.
//!
//! `readers TAPE N COUNT` · `record TAPE` · `reports MODE TAPE N` and, started by that, `report MODE TAPE`.

use super::spawn;
use crate::context::BenchContext;
use crate::error::Error;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use unitape_ring::{WaitStrategy, Waiter};
use unitape_tape::measure::pin;
use unitape_tape::twin::measure::BenchFrameGenerator;
use unitape_tape::{Reader, RemovalOptions, StartPosition, SyncPolicy};

/// A second process; ends with us.
pub struct BenchProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl BenchProcess {
    /// Starts it and waits until it is ready.
    pub fn start(context: &BenchContext, arguments: &[&str]) -> Result<Self, Error> {
        let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
        let mut command = spawn(context)(&arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (stdin, lines) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        let lines = lines.ok_or_else(|| Error::Failed("the second process has no stdout".to_owned()))?;
        let mut this = Self { child, stdin, lines };
        let reply = this.line()?;
        if reply == "ready" { Ok(this) } else { Err(Error::Failed(format!("{arguments:?} said {reply:?}"))) }
    }

    /// Reads the next line of the process's output.
    pub fn line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// Asks it to end, and returns its last words.
    pub fn end(mut self) -> Result<String, Error> {
        self.stdin = None;
        let reply = self.line()?;
        let status = self.child.wait()?;
        if status.success() { Ok(reply) } else { Err(Error::Failed(format!("the second process: {status}"))) }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<(), Error> {
        Ok(kill_process(pid(&self.child), signal)?)
    }
}

impl Drop for BenchProcess {
    fn drop(&mut self) {
        // After a good end both do nothing; before it the process would wait for ever.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Runs a role. Returns `None` if the role is unknown.
pub fn role(arguments: &[String]) -> Option<Result<(), Error>> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Some(match words[..] {
        ["readers", tape, readers, count] => read(Path::new(tape), readers, count),
        ["record", tape] => record(Path::new(tape)),
        ["reports", mode, tape, count] => reports(mode, tape, count),
        ["report", mode, tape] => report(mode, Path::new(tape)),
        _ => return None,
    })
}

fn number(text: &str) -> Result<u64, Error> {
    text.parse().map_err(|e| Error::Usage(format!("{text}: {e}")))
}

fn say(word: &str) -> Result<(), Error> {
    let mut out = std::io::stdout();
    Ok(writeln!(out, "{word}").and_then(|()| out.flush())?)
}

/// Reads with `readers` readers until each has seen `count` messages.
fn read(tape: &Path, readers: &str, count: &str) -> Result<(), Error> {
    let (readers, count) = (number(readers)?, number(count)?);
    pin(1);
    let mut readers = (0..readers)
        .map(|_| Ok((Reader::open(tape, StartPosition::Oldest)?, 0)))
        .collect::<Result<Vec<(Reader, u64)>, Error>>()?;
    say("ready")?;
    let mut waiter = Waiter::new(WaitStrategy::Balanced);
    while readers.iter().any(|(_, read_count)| *read_count < count) {
        let mut idle = true;
        for (reader, read_count) in &mut readers {
            // Not more than a little in one go, so that all of them stay at the writer's heels.
            for _ in 0..1024 {
                let Some(frame) = reader.next()? else { break };
                if BenchFrameGenerator::number(frame.bytes) != *read_count {
                    return Err(Error::Failed(format!("a reader did not find message {read_count}")));
                }
                *read_count += 1;
                idle = false;
            }
        }
        // Waits as readers do, and so leaves the core to the tape's helper threads when there is nothing.
        if idle {
            waiter.wait();
        } else {
            waiter.reset();
        }
    }
    say(&format!("read {count}"))?;
    Ok(())
}

/// Makes a flag that is set when stdin ends. The end of stdin is the request to stop.
fn stdin_closed() -> Arc<AtomicBool> {
    let ended = Arc::new(AtomicBool::new(false));
    let flag = ended.clone();
    std::thread::spawn(move || {
        _ = std::io::stdin().read_to_end(&mut Vec::new());
        // Relaxed: a wish, nothing is read under it.
        flag.store(true, Ordering::Relaxed);
    });
    ended
}

/// Runs the recorder of a hot tape.
fn record(tape: &Path) -> Result<(), Error> {
    pin(1);
    let stop = stdin_closed();
    say("ready")?;
    unitape_tape::record(tape, SyncPolicy::OnClose, RemovalOptions::default(), &stop)?;
    say("recorded")?;
    Ok(())
}

/// Starts reports, lets them misbehave until the request to end, and prints how often the condition occurred.
fn reports(mode: &str, tape: &str, count: &str) -> Result<(), Error> {
    pin(1);
    let stop = stdin_closed();
    let happened = Arc::new(AtomicU64::new(0));
    let mut children = (0..number(count)?)
        .map(|_| ReportProcess::start(mode, tape, &happened))
        .collect::<Result<Vec<ReportProcess>, Error>>()?;
    say("ready")?;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(10));
        match mode {
            "stall" => {
                for signal in [Signal::STOP, Signal::CONT] {
                    for child in &children {
                        kill_process(pid(&child.0), signal)?;
                    }
                    std::thread::sleep(Duration::from_millis(30));
                }
                happened.fetch_add(1, Ordering::Relaxed);
            }
            "crash" => {
                for child in &mut children {
                    *child = ReportProcess::start(mode, tape, &happened)?;
                    happened.fetch_add(1, Ordering::Relaxed);
                }
            }
            _ => {}
        }
    }
    drop(children);
    say(&format!("happened {}", happened.load(Ordering::Relaxed)))?;
    Ok(())
}

/// A report in a process of its own; killed without warning when dropped.
struct ReportProcess(Child);

impl ReportProcess {
    fn start(mode: &str, tape: &str, happened: &Arc<AtomicU64>) -> Result<Self, Error> {
        // This binary exists, it runs.
        let mut command = std::process::Command::new(std::env::current_exe()?);
        command.args(["bench-peer", "--", "report", mode, tape]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().map(BufReader::new);
        let mut lines = stdout.ok_or_else(|| Error::Failed("the report has no stdout".to_owned()))?.lines();
        match lines.next() {
            Some(Ok(line)) if line == "ready" => {}
            other => return Err(Error::Failed(format!("the report said {other:?}"))),
        }
        let happened = happened.clone();
        std::thread::spawn(move || {
            for _ in lines.map_while(Result::ok) {
                happened.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(Self(child))
    }
}

impl Drop for ReportProcess {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Runs a report that follows the tape, or scans the whole tape repeatedly and says so each time. The parent kills it
/// at the end.
fn report(mode: &str, tape: &Path) -> Result<(), Error> {
    // The process that started us may be killed itself.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut reader = Reader::open(tape, StartPosition::Oldest)?;
    say("ready")?;
    let mut waiter = Waiter::new(WaitStrategy::Balanced);
    let mut next_number = 0;
    loop {
        match reader.next()? {
            Some(frame) if BenchFrameGenerator::number(frame.bytes) == next_number => {
                next_number += 1;
                waiter.reset();
            }
            Some(_) => return Err(Error::Failed(format!("a report did not find message {next_number}"))),
            None if mode == "scan" => {
                say("scanned")?;
                reader = Reader::open(tape, StartPosition::Oldest)?;
                next_number = 0;
            }
            None => waiter.wait(),
        }
    }
}
