//! What all commands share: how they end, where their data goes, how they show progress.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How a command ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Nothing to remark.
    Clean,
    /// Done, but there are gaps, quarantined or corrupt data.
    Flawed,
}

/// How a command failed.
#[derive(Debug)]
pub enum Failure {
    /// Stdout was closed by its reader.
    ClosedStdout,
    /// Arguments that cannot be.
    Usage(String),
    /// Anything else, in words.
    Error(String),
}

/// What a command comes to.
pub type Result = std::result::Result<Done, Failure>;

impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(e) = cause {
            if e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
                return Self::ClosedStdout;
            }
            cause = e.source();
        }
        Self::Error(error.to_string())
    }
}

/// Buffered stdout; flush it before the command ends.
pub fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Prints a line as `println!` does, but a closed stdout ends the command and does not panic.
macro_rules! say {
    ($($words:tt)*) => { $crate::output::print_line(format_args!($($words)*))? };
}
pub(crate) use say;

/// Prints a line.
pub fn print_line(words: std::fmt::Arguments<'_>) -> std::result::Result<(), Failure> {
    Ok(writeln!(io::stdout().lock(), "{words}")?)
}

/// Prints one JSON object as a line.
pub fn print_json(value: &impl serde::Serialize) -> std::result::Result<(), Failure> {
    let mut out = stdout();
    serde_json::to_writer(&mut out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// Raised by the first SIGINT or SIGTERM, so that a run ends in order; a second one kills.
pub fn stop_flag() -> std::result::Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, flag.clone())?;
        signal_hook::flag::register(signal, flag.clone())?;
    }
    Ok(flag)
}

/// A file that may not grow any more is told as an error of the write, with its name, and does not kill us.
pub fn refusals_not_signals() -> std::result::Result<(), Failure> {
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default())?;
    Ok(())
}

/// Runs `work` with a progress bar beside it, where stderr is a terminal. `position` gives bytes done and bytes
/// in all (0 when not known), `note` a few words behind the bar.
pub fn with_progress<T>(
    what: &str,
    position: impl Fn() -> (u64, u64) + Sync,
    note: impl Fn() -> String + Sync,
    work: impl FnOnce() -> T,
) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let bar = indicatif::ProgressBar::new(0);
    let style = "{prefix} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {msg}";
    bar.set_style(
        indicatif::ProgressStyle::with_template(style).expect("a template of ours").progress_chars("━━ "),
    );
    bar.set_prefix(what.to_owned());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Acquire: pairs with the Release below; the last figures are then the final ones.
            while !done.load(Ordering::Acquire) {
                let (at, total) = position();
                bar.set_length(total.max(at));
                bar.set_position(at);
                bar.set_message(note());
                std::thread::sleep(Duration::from_millis(60));
            }
            bar.finish_and_clear();
        });
        // A panic in the work must not leave the bar waiting for ever.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        done.store(true, Ordering::Release);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// `1234567` as `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Bytes for people: `1.4 MiB`.
pub fn bytes(n: u64) -> String {
    indicatif::HumanBytes(n).to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(super::grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
