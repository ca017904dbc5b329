//! Peers in processes of their own: one pass over the input for each line that they are sent, so that their repeats
//! are in turn with ours.
//!
//! ```text
//!    us                          the peer
//!                          <──   ready NAME                             the input is in memory
//!    values FILE           ──>   one pass, the values it finds into FILE
//!                          <──   done WALL CPU MESSAGES FAULTS SUM
//!    pass                  ──>   one pass, timed by the peer's own clock
//!                          <──   done WALL CPU MESSAGES FAULTS SUM
//! ```
//!
//! In between it waits for the next line. The other ends are `bench/cpp/worker.hpp` and `Worker.java`.

use crate::programs::{class_path, java};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use unitape_bench::record::{HexSha256, RepeatTimes};

/// The counts and the sum of one pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassTotals {
    /// Good messages.
    pub messages: u64,
    /// Faulty messages and values.
    pub faults: u64,
    /// Of the values.
    pub sum: u64,
}

/// A peer's process. It ends when it is dropped.
#[derive(Debug)]
pub struct Worker {
    name: String,
    process: Child,
    lines: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// Passes before any is timed.
    warm: u32,
}

impl Worker {
    /// Starts it; gives it back when it has its input in memory.
    pub fn start(mut command: Command) -> Result<Self, String> {
        let program = command.get_program().display().to_string();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|e| format!("{program}: {e}"))?;
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(format!("{program}: no pipes"));
        };
        let (lines, answers) = (Some(to), BufReader::new(from));
        let mut worker = Self { name: program, process, lines, answers, warm: 0 };
        let first = worker.answer()?;
        let name = first.strip_prefix("ready ").ok_or_else(|| worker.complaint(&first))?;
        worker.name = name.to_owned();
        Ok(worker)
    }

    /// Starts one of the Java peers. Before a pass is timed it does some more: what runs often is then compiled.
    pub fn java(arguments: &[&str], input: &Path) -> Result<Self, String> {
        let mut command = Command::new("java");
        command
            .args(JVM)
            .arg("-cp")
            .arg(class_path(&java()?))
            .arg("unitape.Worker")
            .args(arguments)
            .arg(input);
        let mut worker = Self::start(command)?;
        worker.warm = 3;
        Ok(worker)
    }

    /// Its own name, with the version.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A pass whose values are hashed, and then those that warm up; all must find the same.
    pub fn values(&mut self, dir: &Path) -> Result<(PassTotals, String), String> {
        let file = dir.join("values");
        let (found, _, _) = self.ask(&format!("values {}", file.display()))?;
        let hash = hash_of(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        for _ in 0..self.warm {
            let (again, _, _) = self.ask("pass")?;
            if again != found {
                return Err(format!("{}: {again:?} in a pass, {found:?} before", self.name));
            }
        }
        Ok((found, hash))
    }

    /// A timed pass.
    pub fn pass(&mut self, times: &mut RepeatTimes) -> Result<PassTotals, String> {
        let (found, wall_ns, cpu_ns) = self.ask("pass")?;
        times.add(wall_ns, cpu_ns);
        Ok(found)
    }

    fn ask(&mut self, line: &str) -> Result<(PassTotals, u64, u64), String> {
        if let Some(lines) = &mut self.lines {
            // If it is gone, its answer says so.
            let _ = writeln!(lines, "{line}").and_then(|()| lines.flush());
        }
        let answer = self.answer()?;
        let mut words = answer.split(' ');
        let done = words.next() == Some("done");
        let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [wall_ns, cpu_ns, messages, faults, sum] if done => {
                Ok((PassTotals { messages, faults, sum }, wall_ns, cpu_ns))
            }
            _ => Err(self.complaint(&answer)),
        }
    }

    fn answer(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(0) => Err(format!("{}: has ended", self.name)),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(e) => Err(format!("{}: {e}", self.name)),
        }
    }

    fn complaint(&self, answer: &str) -> String {
        format!("{}: said {answer:?}", self.name)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It ends by itself when there are no more lines; what hangs is ended.
        self.lines = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The kindest collector for one thread's throughput, memory enough for the input, days in UTC.
const JVM: [&str; 5] = ["-Xms3g", "-Xmx3g", "-Xmn2g", "-XX:+UseParallelGC", "-Duser.timezone=UTC"];

fn hash_of(file: &Path) -> std::io::Result<String> {
    let (mut reader, mut hash, mut part) = (File::open(file)?, HexSha256::default(), vec![0; 1 << 20]);
    loop {
        match reader.read(&mut part)? {
            0 => break,
            n => hash.add(&part[..n]),
        }
    }
    std::fs::remove_file(file)?;
    Ok(hash.hex())
}
