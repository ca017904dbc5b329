//! A command of a page that runs beside the commands after it, such as `unitape run` beside `unitape status`.

use super::commands::{CommandFolder, HANG, Shown, indent};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// A running command. It is killed with its test.
pub(super) struct Job {
    child: Child,
    errors: PathBuf,
    exit: i32,
}

impl Job {
    /// Starts the command of a line that ends with ` &`.
    pub(super) fn start(folder: &CommandFolder, shown: &Shown) -> Result<Self, String> {
        // The process is the command itself: a signal to a shell in between would not reach it.
        let child = folder.start(&format!("exec {}", shown.command), "job")?;
        Ok(Self { child, errors: folder.log("job", "err"), exit: shown.exit })
    }

    /// Repeats a command until it succeeds: what it shows may need a moment. Fails as the command does if this command has ended,
    /// or after [`HANG`].
    pub(super) fn beside(&mut self, mut command: impl FnMut() -> Result<(), String>) -> Result<(), String> {
        let begin = Instant::now();
        loop {
            let result = command();
            let Err(why) = result else { return Ok(()) };
            if let Some(status) = self.child.try_wait().map_err(|e| e.to_string())? {
                return Err(format!("{why}\nthe command beside it {}", self.said(status)));
            }
            if begin.elapsed() > HANG {
                return Err(why);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the command by a `kill` that names it `$!`.
    pub(super) fn end(mut self, kill: &str) -> Result<(), String> {
        if !kill.contains("$!") {
            return Err("does not name its process, `$!`".to_owned());
        }
        let line = kill.replace("$!", &self.child.id().to_string());
        let killed = Command::new("sh").args(["-c", &line]).status().map_err(|e| e.to_string())?;
        if !killed.success() {
            return Err(format!("ended with {killed}"));
        }
        let begin = Instant::now();
        let status = loop {
            match self.child.try_wait().map_err(|e| e.to_string())? {
                Some(status) => break status,
                None if begin.elapsed() > HANG => return Err("has not ended the command".to_owned()),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        if kill.contains("KILL") || status.code() == Some(self.exit) {
            return Ok(());
        }
        Err(format!("ended a command that {}", self.said(status)))
    }

    fn said(&self, status: ExitStatus) -> String {
        let errors = std::fs::read_to_string(&self.errors).unwrap_or_default();
        format!("ended with {status}, not exit code {}\n{}", self.exit, indent(&errors))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
